//! Reconciliation: compares a file of another institution with the books, line by line. It is pure,
//! and books nothing.

pub mod acquirer;
pub mod finding;
pub mod ofx;
pub mod pix;
pub mod statement;
