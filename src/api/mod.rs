//! Merchants' API, a file a resource: parsing of the request, checks, the command, and the answer.
//!
//! It knows the transport ([`web`]) and the JSON views ([`web::views`]). Of the
//! operators' API it uses the payer of the sandbox ([`ops::sandbox::pay`]), the tries and tests of
//! webhooks ([`ops::webhooks`]), and the management of API keys ([`ops::key_management`]).

pub mod anticipation;
pub mod app;
pub mod authenticate;
pub mod balance;
pub mod batch;
pub mod card;
pub mod card_brands;
pub mod card_data;
pub mod cashout;
pub mod charges;
pub mod disputes;
pub mod events;
pub mod fiscal_documents;
pub mod keys;
pub mod labels;
pub mod payer;
pub mod pix;
pub mod places;
pub mod plans;
pub mod qr_code;
pub mod quote;
pub mod refunds;
pub mod registration;
pub mod report_limit;
pub mod reports;
pub mod scopes;
pub mod splits;
pub mod stored_cards;
pub mod sub_recipients;
pub mod subscriptions;
pub mod withdrawals;

pub use app::{App, AppState};
