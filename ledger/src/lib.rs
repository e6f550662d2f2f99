//! # Rules of money
//!
//! Double-entry rules of a payment platform: what may happen to money, and the entries that it
//! posts. A merchant and a recipient are two state machines. `decide` checks a command against the
//! state and gives facts or a rejection; `evolve` applies facts and cannot fail. [`postings`] turns
//! facts into balanced entries, the only place where money moves.
//!
//! ```
//! use ledger::id::{GroupNumber, IdKey};
//! use ledger::merchant::{MerchantCommand, MerchantState};
//! use ledger::money::Centavos;
//! use ledger::rejection::Rejection;
//! use ledger::time::Timestamp;
//!
//! // Deciding changes nothing: this merchant was never opened, so nothing may happen to its money.
//! let (merchant, ids) = (MerchantState::default(), IdKey::new([0; 16]));
//! let (group, now) = (GroupNumber(1), Timestamp(1_795_000_000_000));
//! let charge = ids.object(group, now, 1);
//! let (acquirer_mdr, captured_at, brand) = (Centavos(299), None, None);
//! let capture = MerchantCommand::CaptureCard { charge, acquirer_mdr, captured_at, brand };
//! assert_eq!(merchant.decide(capture, group, now, &ids), Err(Rejection::MerchantNotFound));
//! ```
//!
//! The example `embed` carries a split charge through.
//!
//! **Architecture Invariant:** this crate is pure. It knows no clock, no chance, no environment,
//! no I/O, no async, no float and no `HashMap`; the same commands at the same times always give the
//! same Records. Its manifest cannot name a runtime.

#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

pub mod account;
pub mod adjustment;
pub mod anticipation;
pub mod asked_entry;
pub mod audit;
pub mod balances;
mod card_refusal;
pub mod cashout;
pub mod charge;
pub mod dispute;
pub mod entry;
pub mod erasure;
pub mod event;
pub mod event_choice;
mod facts;
pub mod fees;
pub mod fiscal_key;
pub mod house;
pub mod id;
pub mod invariants;
pub mod merchant;
pub mod money;
pub mod object;
pub mod period;
pub mod personal;
mod pix_code;
pub mod postings;
pub mod rail_name;
pub mod rail_word;
pub mod receivable_sums;
pub mod receivables;
pub mod recipient;
pub mod record;
pub mod recurrence;
pub mod refund;
pub mod rejection;
pub mod scope;
pub mod section;
pub mod source;
pub mod statement;
mod subscription;
pub mod tax_id;
pub mod terms;
pub mod time;
pub mod webhook_events;
pub mod withdrawal;
pub mod withdrawal_return;
pub mod write_off;

// The words of every other file, here and in the crates above, by their short names.
pub use account::Account;
pub use cashout::Cashout;
pub use charge::{Charge, ChargeOutcome};
pub use dispute::Dispute;
pub use entry::{Balance, Balances, Entry, Posting, Side};
pub use event::{
    AdjustmentTarget, Batch, CardBrand, CardFace, CardRefusal, DisputeKind, Event, HouseEntryTerms, PayoutBank,
    SettledObject, Split, Terms,
};
pub use event_choice::EventChoice;
pub use fees::{Fees, PaymentMethod, Settings};
pub use house::HOUSE_GROUP;
pub use id::{Fingerprint, GroupNumber, IdKey, IdMap, IdSet, LedgerId, ObjectId, RecipientNumber};
pub use merchant::{
    ChargeFacts, DisputeWindows, EndedBatch, MerchantCommand, MerchantState, OpenCharge, RecipientStatus, SplitRequest,
};
pub use money::{AMOUNT_MAX, Centavos, Rate};
pub use object::Object;
pub use personal::{
    BankAccount, FreeText, Labels, MerchantProfile, Metadata, Payer, PixDestination, RecipientProfile, Sealed,
    SealedFor,
};
pub use rail_name::RailName;
pub use receivables::Receivables;
pub use recipient::{Credit, RecipientCommand, RecipientState, SplitHistory};
pub use record::{Decision, Idempotency, RailStamp, Record, Requester};
pub use recurrence::{StoredCard, SubscriptionStanding};
pub use refund::Refund;
pub use rejection::{Rejection, Result};
pub use scope::Scopes;
pub use time::{Minute, Month, Timestamp};
pub use webhook_events::{WebhookEvent, WebhookEventKind};
pub use withdrawal::Withdrawal;
