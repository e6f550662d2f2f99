//! The rails that this release has.

mod payouts;
pub mod sandbox;
