//! The running server against what others wrote.
//!
//! They are tools of other languages. `tests/conformance/README.md` says how to get them. A test whose tool is not there says so and
//! passes, unless `CENTAVO_CONFORMANCE=required`.

#![allow(clippy::unwrap_used)]

#[path = "../harness/mod.rs"]
mod harness;
mod tool;
mod webhooks;
