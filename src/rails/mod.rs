//! Rails to the outside: the sandbox's acquirer, PIX institution and payout institution. No rail to
//! the real world exists yet.

mod acquirer;
mod acquirer_books;
mod end_to_end_id;
mod payouts;
pub mod sandbox;

pub use end_to_end_id::end_to_end_id;
