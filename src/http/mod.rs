//! The HTTP interface: how a request is taken in, checked and answered.
//!
//! A request passes [`server`] (the connection), [`front`] (what every route shares), a credential, [`body`] and
//! [`json`] before a handler sees it. Whatever goes wrong on the way is a [`problem::Problem`].

pub mod body;
pub mod credential;
pub mod front;
pub mod json;
pub mod problem;
pub mod server;
pub mod timestamp;
