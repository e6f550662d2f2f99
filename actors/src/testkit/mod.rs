//! Test equipment: conformance tests for rails. Stores have theirs in `store::testkit`.
//!
//! The feature `testkit` compiles it. Only tests and benchmarks of this repository enable the
//! feature; the product has none of it.

#![allow(clippy::unwrap_used, reason = "where a test has nothing to unwrap it has failed, and says where")]

pub mod rails;
