//! The HTTP interface: how a request is taken in, checked and answered.
//!
//! A request passes [`server`] (the connection), [`front`] (what every route shares), a credential, [`body`] and
//! [`json`] before a handler sees it. Whatever goes wrong on the way is a [`problem::Problem`].

pub mod app;
pub mod balance;
pub mod body;
pub mod card;
pub mod charges;
pub mod credential;
pub mod events;
pub mod front;
pub mod idempotency;
pub mod json;
pub mod ops;
pub mod pix;
pub mod problem;
pub mod reply;
pub mod routes;
pub mod server;
pub mod splits;
pub mod statement;
pub mod sub_recipients;
pub mod timestamp;
