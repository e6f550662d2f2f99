//! Rails to the outside: the sandbox's acquirer, PIX institution, payout institution and bank. No
//! rail to the real world exists yet.

mod acquirer;
mod acquirer_books;
mod bank_books;
mod days;
mod end_to_end_id;
mod folder_lock;
mod lines;
mod payouts;
mod pix_books;
mod refused_refunds;
pub mod sandbox;
mod settlement_days;

pub use end_to_end_id::end_to_end_id;
