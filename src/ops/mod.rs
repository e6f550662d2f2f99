//! Operators' API: a file a resource, behind its own listener and credential.
//!
//! It knows the transport ([`web`]) and the JSON views ([`web::views`]). It knows nothing
//! of the merchants' API.

pub mod api_keys;
pub mod audit;
pub mod backup;
pub mod batches;
pub mod blocks;
pub mod booked_records;
pub mod books;
pub mod charges;
pub mod checkpoint;
pub mod clock;
pub mod cluster;
pub mod disputes;
pub mod entries;
pub mod export;
pub mod exports;
pub mod health;
pub mod item_version;
pub mod made_up;
pub mod merchants;
pub mod operator;
pub mod other_nodes;
pub mod periods;
pub mod preview;
pub mod queue;
pub mod rail_items;
pub mod recipients;
pub mod reconciliations;
pub mod records;
pub mod refunds;
pub mod reports;
pub mod sandbox;
pub mod sub_recipients;
pub mod uncompared;
pub mod webhooks;
pub mod withdrawals;
