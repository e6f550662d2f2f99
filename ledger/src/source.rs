//! Where an entry comes from, in words: the name of its fact and the outside ids of the objects that it is about. What leaves the
//! program (exports, reports) names them; nothing is decided by them.

use crate::event::Event;
use crate::id::ObjectId;
use crate::postings;
use crate::record::Record;

/// What an entry comes from. Ids only: no name, no document, nothing of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The fact's name, in snake case. It never changes once it was given.
    pub event: &'static str,
    /// What the fact is about, as the outside names it: `txid`, `end_to_end_id`, …, each with its id.
    pub objects: Vec<(&'static str, String)>,
}

impl Source {
    /// The name of a fact that has none of its own yet.
    pub const UNNAMED: &'static str = "other";

    /// What an event is the source of.
    pub fn of(event: &Event) -> Self {
        let source = |event, objects| Self { event, objects };
        let uuid = |name, id: ObjectId| (name, id.uuid().to_string());
        match event {
            Event::CardCaptured { charge, .. } => source("card_captured", vec![("txid", charge.txid())]),
            Event::PixPaid { charge, end_to_end_id, .. } => {
                source("pix_paid", vec![("txid", charge.txid()), ("end_to_end_id", end_to_end_id.clone())])
            }
            Event::Matured { .. } => source("matured", Vec::new()),
            Event::AcquirerPaid { .. } => source("acquirer_paid", Vec::new()),
            Event::DeficitRecovered { .. } => source("deficit_recovered", Vec::new()),
            Event::WithdrawalRequested { id, .. } => source("withdrawal_requested", vec![uuid("withdrawal", *id)]),
            Event::WithdrawalPaid { id, .. } => source("withdrawal_paid", vec![uuid("withdrawal", *id)]),
            Event::WithdrawalRejected { id, .. } => source("withdrawal_rejected", vec![uuid("withdrawal", *id)]),
            Event::WithdrawalReturned { id, .. } => source("withdrawal_returned", vec![uuid("withdrawal", *id)]),
            Event::SplitsAnticipated { id, .. } => source("splits_anticipated", vec![uuid("anticipation", *id)]),
            Event::ClawbackRecovered { .. } => source("clawback_recovered", Vec::new()),
            Event::CashoutCreated { id, .. } => source("cashout_created", vec![uuid("cashout", *id)]),
            Event::CashoutProcessed { id, end_to_end_id, .. } => {
                source("cashout_processed", vec![uuid("cashout", *id), ("end_to_end_id", end_to_end_id.clone())])
            }
            Event::CashoutFailed { id, .. } => source("cashout_failed", vec![uuid("cashout", *id)]),
            Event::RefundApproved { id, charge, .. } => {
                source("refund_approved", vec![uuid("refund", *id), ("txid", charge.txid())])
            }
            Event::PayerRepaid { charge, .. } => source("payer_repaid", vec![("txid", charge.txid())]),
            Event::LatePixReceived { charge, end_to_end_id, .. } => {
                let objects = vec![("txid", charge.txid()), ("end_to_end_id", end_to_end_id.clone())];
                source("late_pix_received", objects)
            }
            Event::DisputeOpened { id, charge, .. } => {
                source("dispute_opened", vec![uuid("dispute", *id), ("txid", charge.txid())])
            }
            Event::DisputeAccepted { id, charge, .. } => {
                source("dispute_accepted", vec![uuid("dispute", *id), ("txid", charge.txid())])
            }
            Event::DisputeReleased { id, charge, .. } => {
                source("dispute_released", vec![uuid("dispute", *id), ("txid", charge.txid())])
            }
            // Facts that move no money; a test asks for the name of every one that does.
            _ => source(Self::UNNAMED, Vec::new()),
        }
    }
}

/// The source of each entry of a Record, in the order of its entries.
pub fn of_entries(record: &Record) -> Vec<Source> {
    let mut sources = Vec::with_capacity(record.entries.len());
    for event in &record.events {
        let made = match record.events.len() {
            1 => record.entries.len(),
            _ => postings::entries(record.owner, std::slice::from_ref(event)).len(),
        };
        sources.extend(std::iter::repeat_n(Source::of(event), made));
    }
    sources.resize(record.entries.len(), Source { event: Source::UNNAMED, objects: Vec::new() });
    sources
}
