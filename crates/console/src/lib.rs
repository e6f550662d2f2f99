//! Operators' console: pages for people, made on the server, on the operators' listener under
//! `/console`.
//!
//! A screen calls the functions that the handlers of [`ops`] call, and adds nothing of its
//! own: it names no command of a merchant, computes no fee, and reaches the journal only through
//! the engine. Every page works without JavaScript; the script adds keys.
//! Words of both languages stand in [`words`], the routes in [`routes`]. A page shows all merchants
//! or one ([`scope`]).

pub mod anticipations;
pub mod assets;
pub mod audit;
pub mod books;
pub mod charge;
pub mod dispute;
pub mod endpoint;
pub mod exports;
pub mod find;
pub mod fitting;
pub mod flow;
pub mod form;
pub mod health;
pub mod house;
pub mod keys;
pub mod many;
pub mod merchants;
pub mod newest;
pub mod overview;
pub mod page;
pub mod paging;
pub mod periods;
pub mod queries;
pub mod queue;
pub mod recipients;
pub mod records;
pub mod refused_form;
pub mod routes;
pub mod sandbox;
pub mod scope;
pub mod sent_form;
pub mod settings;
pub mod show;
pub mod sign_in;
pub mod table;
pub mod trial_balance;
pub mod webhooks;
pub mod wire_words;
pub mod words;

use std::sync::Arc;

use axum::extract::FromRef;
use ops::desk::Desk;
use web::session::Sessions;

/// State of the pages.
#[derive(Clone)]
pub struct Console {
    /// State of the operators' handlers, whose functions the pages call.
    pub desk: Arc<Desk>,
    /// The operators who are signed in.
    pub sessions: Arc<Sessions>,
}

impl FromRef<Console> for Arc<Desk> {
    fn from_ref(console: &Console) -> Self {
        Arc::clone(&console.desk)
    }
}
