//! Reconciliation: compares a file of another institution with the books, line by line. It books
//! nothing. Readers of files and comparisons are pure; [`booked_movements`] asks its caller for the
//! Records that it needs.

pub mod acquirer;
pub mod adyen_report;
pub mod booked_movements;
mod cnab240;
pub mod finding;
pub mod ofx;
mod ofx_tokens;
mod ofx_values;
pub mod pix;
pub mod statement;
