//! Operators' API: a file a resource, behind its own listener and credential.
//!
//! It knows the transport ([`crate::http`]) and the JSON views ([`crate::views`]). It knows nothing
//! of the merchants' API.

pub mod api_keys;
pub mod audit;
pub mod backup;
pub mod books;
pub mod disputes;
pub mod export;
pub mod health;
pub mod merchants;
pub mod operator;
pub mod queue;
pub mod refunds;
pub mod sandbox;
pub mod sub_recipients;
pub mod webhooks;
pub mod withdrawals;
