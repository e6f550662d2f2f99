//! Test equipment of the tests from outside, and of the benchmarks: the real binary on a data
//! folder, callers with a log of their own, the books as the server shows them; an engine with
//! merchants; an institution that speaks API Pix.

#![allow(clippy::unwrap_used, reason = "where a test has nothing to unwrap it has failed, and says where")]

pub mod adyen_player;
pub mod api_pix_player;
pub mod books;
pub mod callers;
pub mod cut_proxy;
pub mod efi_player;
pub mod played_http;
pub mod played_tls;
pub mod rail_player;
pub mod server;
pub mod shop;
pub mod useless_answers;
pub mod wall_clock;

/// A number from the environment.
pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}
