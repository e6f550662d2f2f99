//! Operators' API: one file per resource, behind its own listener and credential.
//!
//! It knows the transport and the JSON views ([`web`]), nodes and webhooks, and nothing of the
//! merchants' API. The console calls the functions that the handlers here call.

pub mod api_keys;
pub mod audit;
pub mod audited_changes;
pub mod backup;
pub mod balance_alerts;
pub mod batches;
pub mod blocks;
pub mod booked_records;
pub mod books;
pub mod charges;
pub mod checkpoint;
pub mod clock;
pub mod cluster;
pub mod desk;
pub mod disputes;
pub mod entries;
pub mod export;
pub mod exports;
pub mod found_item;
pub mod health;
pub mod holds;
pub mod invented_parties;
pub mod item_details;
pub mod item_flags;
pub mod item_version;
pub mod last_backup;
pub mod list_file;
pub mod lists;
pub mod made_up;
pub mod merchants;
pub mod notes;
pub mod operator;
pub mod other_nodes;
pub mod overview;
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
pub mod uncompared;
pub mod webhooks;
pub mod withdrawals;
