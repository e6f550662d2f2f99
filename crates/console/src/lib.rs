//! Operators' console: pages for people, made on the server, on the operators' listener under
//! `/console`.
//!
//! A screen calls the functions that the handlers of [`ops`] call, and adds nothing of its
//! own: it names no command of a merchant, computes no fee, and reaches the journal only through
//! the engine. Every page works without JavaScript; the script adds keys.
//! Words of both languages stand in [`words`], the routes in [`routes`]. A page shows all merchants
//! or one ([`scope`]).

mod anticipations;
mod assets;
mod audit;
mod books;
mod charge;
mod daily_chart;
mod dispute;
mod endpoint;
mod exports;
mod field_changes;
mod find;
mod form;
mod health;
mod holds;
mod house;
mod item;
mod item_context;
mod keys;
mod ledger_field;
mod list_filter;
mod list_table;
mod lists;
mod many_decisions;
mod merchants;
mod money_flow;
mod notes;
mod overview;
mod page;
mod page_size;
mod paging;
mod people;
mod periods;
mod queries;
mod queue;
mod recipients;
mod reconciliations;
mod records;
mod recurrence;
mod refund;
mod refused_form;
mod registration;
mod reports;
pub mod routes;
mod sandbox;
mod scope;
mod sent_form;
mod settings;
pub mod show;
mod sign_in;
mod table;
mod trial_balance;
mod webhooks;
mod wire_words;
mod words;

// What most pages name, by its short name.
pub(crate) use page::{PageRequest, Screen, Section, Visit};
pub(crate) use paging::{pager, pager_named, part_named};
pub(crate) use sent_form::PostedForm;
pub(crate) use words::Word;

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
