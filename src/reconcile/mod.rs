//! Reconciliation: compares a file of another institution with the books, line by line. It is pure,
//! and books nothing.

pub mod acquirer;
pub mod finding;
pub mod ofx;
mod ofx_tokens;
mod ofx_values;
pub mod pix;
pub mod statement;
