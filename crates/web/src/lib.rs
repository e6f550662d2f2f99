//! HTTP without a resource: how a request is received, checked and answered, and the JSON views
//! that the merchants' API, the operators' API and webhooks share. Handlers are in the crates
//! above.
//!
//! A request passes [`server`] (the connection, with [`outgoing`]), [`middleware`] (shared by every
//! route), the [`guards`], [`body`] and [`json`] before a handler sees it. Every failure on the way
//! is a [`problem::Problem`].
//!
//! [`credential`] and [`session`] say who asks, [`idempotency`] carries a request with a key out
//! once, and [`refusals`] says why the engine did not. [`reply`] and [`streamed_body`] make
//! answers, of the JSON in [`views`]. [`openapi`] describes them, [`reference`] for people.

pub mod api_key;
pub mod blocking_reads;
pub mod body;
pub mod caller;
pub mod client;
mod connection;
pub mod credential;
pub mod cut;
pub mod descriptors;
pub mod guards;
pub mod gzip;
pub mod idempotency;
pub mod json;
pub mod keyed_request;
pub mod language;
pub mod last_uses;
pub mod measures;
pub mod middleware;
pub mod names;
pub mod network;
pub mod openapi;
pub mod outgoing;
pub mod pace;
pub mod problem;
pub mod reference;
pub mod refusals;
pub mod reply;
pub mod request_context;
pub mod server;
pub mod session;
pub mod streamed_body;
pub mod tls;
pub mod views;

// What every handler names, by its short name.
pub use body::{FormBody, JsonBody};
pub use caller::{Caller, PathId};
pub use credential::{Role, Secret};
pub use idempotency::{KeyScope, KeyedResult, SentKey, decided, recorded};
pub use json::{Checker, Raw, checked, parse, parse_exact, parse_unread_exact, refused};
pub use keyed_request::KeyedBody;
pub use language::Language;
pub use problem::{Code, FieldError, Problem, Result, broken, failed, not_found};
pub use reply::{
    CursorParams, Cursors, LabelParams, List, Page, PageParams, PageQuery, created, number, ok, one_of, only, query,
    single, time,
};
pub use session::FormOutcome;
