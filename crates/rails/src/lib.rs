//! Rails to the outside: adapters for institutions, and the sandbox's acquirer, PIX institution,
//! payout institution and bank.
//!
//! The traits of rails are the engine's (`actors::rails`); here they are implemented. It may import
//! `actors`, `ledger`, and `wire` for the text of days and instants. The sandbox's institutions
//! keep records of their own, in files, as if they were other companies: they know nothing of the
//! journal, of HTTP, or of how the books are written. Adapters keep no records, and are clients of
//! HTTP alone.
//!
//! Begin with [`sandbox`], which puts the institutions of a sandbox together, or with [`api_pix`],
//! the adapter for institutions that receive PIX payments, or with [`protocol`], the adapter for
//! whatever speaks the rail protocol. [`efi`] sends transfers, and [`adyen`] charges cards.

mod acquirer;
mod acquirer_books;
pub mod adyen;
pub mod api_pix;
mod bank_books;
mod client;
pub mod efi;
mod end_to_end_id;
mod folder_lock;
mod lines;
mod participant_lists;
mod payouts;
mod pix_books;
pub mod protocol;
mod refused_refunds;
pub mod sandbox;
mod shared_settings;

pub use client::SettingsError;
pub use end_to_end_id::end_to_end_id;
pub use shared_settings::{PaysFrom, Repeats};
