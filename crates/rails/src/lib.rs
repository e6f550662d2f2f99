//! Rails to the outside: the sandbox's acquirer, PIX institution, payout institution and bank. No
//! rail to the real world exists yet.
//!
//! The traits of rails are the engine's (`actors::rails`); here they are implemented. It may import
//! `actors`, `ledger`, and `wire` for the text of days and instants. Institutions keep records of
//! their own, in files, as if they were other companies: they know nothing of the journal, of HTTP,
//! or of how the books are written.
//!
//! Begin with [`sandbox`], which puts the institutions of a sandbox together. An adapter for a real
//! institution is a file beside `acquirer.rs` or `payouts.rs`.

mod acquirer;
mod acquirer_books;
mod bank_books;
mod end_to_end_id;
mod folder_lock;
mod lines;
mod payouts;
mod pix_books;
mod refused_refunds;
pub mod sandbox;
mod settlement_days;

pub use end_to_end_id::end_to_end_id;
