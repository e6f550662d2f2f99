//! # The engine
//!
//! Who owns what, in which order, made durable.

pub mod journal;
pub mod resident;
pub mod store;
