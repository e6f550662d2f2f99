//! Operations: their own listener and credential. Merchants and their keys, the queue and its reviews, the audit trail, the books,
//! exports, backups, the sandbox clock.

pub mod api_keys;
pub mod audit;
pub mod backup;
pub mod books;
pub mod disputes;
pub mod export;
pub mod health;
pub mod merchants;
pub mod queue;
pub mod refunds;
pub mod sandbox;
pub mod sub_recipients;
pub mod webhooks;
pub mod withdrawals;
