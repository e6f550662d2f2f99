//! Equipment of the tests that hurt the server: the real binary on a data folder, callers with a
//! log of their own, the books as the server shows them, and power cuts. Each test includes this by
//! path and uses what it needs.

#![allow(dead_code)]

pub(crate) mod books;
pub(crate) mod callers;
#[path = "../../actors/tests/power_cut/cut.rs"]
pub(crate) mod cut;
pub(crate) mod server;

/// A number from the environment.
pub(crate) fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
