//! HTTP transport: how a request is taken in, checked and answered. It knows no resource of the
//! API; those are in [`crate::api`] and [`crate::ops`].
//!
//! A request passes [`server`] (the connection, with [`outgoing`]), [`middleware`] (shared by every
//! route), the [`guards`], [`body`] and [`json`] before a handler sees it. Every failure on the way
//! is a [`problem::Problem`].

pub mod api_key;
pub mod body;
pub mod caller;
pub mod client;
mod connection;
pub mod credential;
pub mod cut;
pub mod guards;
pub mod gzip;
pub mod idempotency;
pub mod json;
pub mod keyed;
pub mod language;
pub mod measures;
pub mod middleware;
pub mod names;
pub mod openapi;
pub mod outgoing;
pub mod pace;
pub mod problem;
pub mod reading;
pub mod reference;
pub mod refusals;
pub mod reply;
pub mod server;
pub mod session;
pub mod streamed;
pub mod tls;
pub mod trace;
