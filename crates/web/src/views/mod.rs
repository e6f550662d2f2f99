//! JSON views: the bodies that the merchants' API, the operators' API and the webhooks show alike.
//!
//! A view knows no route and no handler.

pub mod cashout;
pub mod charge;
pub mod checkpoint;
pub mod delivery;
pub mod dispute;
pub mod export_file;
pub mod export_job;
pub mod fiscal;
pub mod house_entry;
pub mod labels;
pub mod ledger;
pub mod recipient;
pub mod refund;
pub mod registration;
pub mod row_labels;
pub mod statement;
pub mod stored_card;
pub mod subscription;
pub mod withdrawal;
