//! The rails that this release has.

pub mod sandbox;
