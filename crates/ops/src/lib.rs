//! Operators' API: one file per resource, behind its own listener and credential.
//!
//! It knows the transport and the JSON views ([`web`]), nodes and webhooks, and nothing of the
//! merchants' API. The console calls the functions that the handlers here call.

pub mod account_sums;
pub mod api_keys;
pub mod audit;
pub mod audited_changes;
pub mod backup;
pub mod batches;
pub mod blocks;
pub mod booked_records;
pub mod books;
pub mod cards;
pub mod charges;
pub mod chart;
pub mod checkpoint;
pub mod clock;
pub mod closing;
pub mod cluster;
pub mod desk;
pub mod disputes;
pub mod entries;
pub mod erasures;
pub mod explanations;
pub mod export_jobs;
pub mod export_stream;
pub mod found_item;
pub mod health;
pub mod holds;
pub mod invented_parties;
pub mod item_details;
pub mod item_flags;
pub mod item_version;
pub mod key_management;
pub mod last_backup;
pub mod list_file;
pub mod lists;
pub mod merchants;
pub mod named_ledger;
pub mod notes;
pub mod operator;
pub mod other_nodes;
pub mod overview;
pub mod people;
pub mod periods;
pub mod preview;
pub mod queue;
pub mod queue_item;
pub mod rail_items;
pub mod recipients;
pub mod reconciliations;
pub mod records;
pub mod refunds;
pub mod reports;
pub mod sandbox;
pub mod search;
pub mod second_operator;
pub mod storefront;
pub mod sub_recipients;
pub mod subscriptions;
pub mod uncompared;
pub mod webhooks;
pub mod wire_words;
pub mod withdrawals;

// What every handler names, by its short name.
pub use desk::{Desk, DeskState};
pub use operator::{Admin, AdminCall, Decider, DeciderCall, NeededRole, Operator, OperatorCall};
pub use search::ItemKind;
