//! The HTTP interface: how a request is taken in, checked and answered.
//!
//! A request passes [`server`] (the connection, with [`outgoing`]), [`middleware`] (what every route shares), a credential, [`rate_limits`], [`body`] and
//! [`json`] before a handler sees it. Whatever goes wrong on the way is a [`problem::Problem`].

pub mod anticipation;
pub mod app;
pub mod balance;
pub mod body;
pub mod card;
pub mod cards;
pub mod cashout;
pub mod charges;
pub mod credential;
pub mod disputes;
pub mod events;
pub mod guesses;
pub mod idempotency;
pub mod json;
pub mod measures;
pub mod middleware;
pub mod openapi;
pub mod ops;
pub mod outgoing;
pub mod pace;
pub mod pix;
pub mod plans;
pub mod problem;
pub mod rate_limits;
pub mod reading;
pub mod reference;
pub mod refunds;
pub mod registration;
pub mod reply;
pub mod reports;
pub mod routes;
pub mod server;
pub mod split_history;
pub mod splits;
pub mod statement;
pub mod streamed;
pub mod sub_recipients;
pub mod subscriptions;
pub mod timestamp;
pub mod trace;
pub mod withdrawals;
