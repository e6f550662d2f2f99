//! Operations: their own listener and credential. Merchants and their keys, reviews, the books, backups, the sandbox clock.

pub mod api_keys;
pub mod backup;
pub mod books;
pub mod disputes;
pub mod health;
pub mod merchants;
pub mod refunds;
pub mod sandbox;
pub mod sub_recipients;
