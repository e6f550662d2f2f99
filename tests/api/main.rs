//! The product from outside: every test starts its own server on an empty folder, talks to it over a socket, and moves the
//! sandbox clock by hand. Nothing is shared between tests, and nothing is known of the inside but what the interface promises.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

mod balance;
mod card;
mod charges;
mod errors;
mod idempotency;
mod lifecycle;
mod operations;
mod pix;
mod statement;
mod sub_recipients;
mod webhooks;
mod world;
