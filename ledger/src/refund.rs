//! Refund: the read model of one refund and of the decision on it (interface 2.11, 3.6).

use std::collections::BTreeMap;

use crate::event::{GiveBack, SellerDraw, TakeBack};
use crate::fees::Commission;
use crate::{Centavos, Event, LedgerId, Minute, Object, ObjectId, Record, Sealed, Split};

pub use crate::facts::webhook_event::RefundDecision;

/// A refund, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refund {
    /// The refund's id, which contains the time of the request.
    pub id: ObjectId,
    /// The charge that it gives back a part of.
    pub charge: ObjectId,
    /// The merchant's ledger.
    pub merchant: LedgerId,
    /// How much is given back, centavos.
    pub amount: Centavos,
    /// Take-backs of splits: one for each recipient.
    pub take_back: Vec<Split>,
    /// Why, if the merchant said so: a sealed [`crate::personal::FreeText`].
    pub reason: Option<Sealed>,
    /// Last change of its metadata, sealed.
    pub metadata: Option<Sealed>,
    /// How often its metadata was changed.
    pub changes: u32,
    /// Its status.
    pub decision: RefundDecision,
    /// The commission that came back with it.
    pub commission: Commission,
}

impl Object for Refund {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::RefundRequested { id, charge, amount, take_back, .. } => Some(Self {
                id: *id,
                charge: *charge,
                merchant: record.owner,
                amount: *amount,
                take_back: take_back.clone(),
                reason: record.personal.clone(),
                metadata: None,
                changes: 0,
                decision: RefundDecision::Pending,
                commission: Commission::default(),
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::RefundApproved { id, commission, .. } if *id == self.id => {
                    self.decision = RefundDecision::Approved;
                    self.commission = *commission;
                }
                Event::RefundRejected { id, notes, .. } if *id == self.id => {
                    self.decision = RefundDecision::Rejected { notes: notes.clone() };
                }
                Event::RefundFailed { id, notes, .. } if *id == self.id => {
                    self.decision = RefundDecision::Failed { notes: notes.clone() };
                    self.commission = Commission::default();
                }
                Event::MetadataChanged { id, .. } if *id == self.id => {
                    self.metadata.clone_from(&record.personal);
                    self.changes += 1;
                }
                _ => {}
            }
        }
    }
}

/// Where the money of an approved refund came from, and what recipients have paid of it since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundMoney {
    charge: ObjectId,
    /// The seller's accounts that gave it.
    pub drawn: SellerDraw,
    /// True when it gave commission back.
    pub gave_commission: bool,
    /// The debts that it made.
    pub take_backs: Vec<TakeBack>,
    /// Centavos that recipients paid from pending splits, by the place of the split in the charge.
    /// A split whose rest was anticipated has none.
    from_pending: BTreeMap<u32, Centavos>,
    /// What was written off of the debts, by the place of the split in the charge.
    written_off: BTreeMap<u32, Centavos>,
}

impl RefundMoney {
    /// Reads it from the Records about the charge of a refund, in their order; none before the
    /// approval.
    pub fn read<E>(id: ObjectId, records: impl IntoIterator<Item = Result<Record, E>>) -> Result<Option<Self>, E> {
        let mut found: Option<Self> = None;
        for record in records {
            record?.events.iter().for_each(|event| Self::follow(&mut found, id, event));
        }
        Ok(found)
    }

    fn follow(found: &mut Option<Self>, refund: ObjectId, event: &Event) {
        match (event, found) {
            (Event::RefundApproved { id, charge, drawn, commission, take_backs, .. }, found) if *id == refund => {
                *found = Some(Self {
                    charge: *charge,
                    drawn: *drawn,
                    gave_commission: !commission.total().is_zero(),
                    take_backs: take_backs.clone(),
                    from_pending: BTreeMap::new(),
                    written_off: BTreeMap::new(),
                });
            }
            (Event::ClawbackRecovered { debts, .. }, Some(found)) => {
                for debt in debts.iter().filter(|debt| debt.refund == refund) {
                    *found.from_pending.entry(debt.split.index).or_default() += debt.from_pending;
                }
            }
            // An anticipated split is not pending any more, and its rest was paid out less a fee.
            (Event::SplitsAnticipated { splits, .. }, Some(found)) => {
                splits.iter().filter(|part| part.split.charge == found.charge).for_each(|part| {
                    found.from_pending.remove(&part.split.index);
                });
            }
            (Event::ClawbackWrittenOff { debts, .. }, Some(found)) => {
                for debt in debts.iter().filter(|debt| debt.refund == refund) {
                    *found.written_off.entry(debt.split.index).or_default() += debt.total();
                }
            }
            _ => {}
        }
    }

    /// What the charge's Pending gave and does not get back from recipients.
    pub(crate) fn kept_from_pending(&self) -> Centavos {
        self.drawn.from_pending - self.take_backs.iter().map(|part| part.to_pending).sum()
    }

    /// What recipients get again. `due` is when the splits fall due, where they have not yet.
    pub(crate) fn give_backs(&self, due: Option<Minute>) -> Vec<GiveBack> {
        let of = |sums: &BTreeMap<u32, Centavos>, index| sums.get(&index).copied().unwrap_or_default();
        let parts = self.take_backs.iter().map(|part| {
            let amount = part.amount - of(&self.written_off, part.index);
            let from_pending = of(&self.from_pending, part.index);
            let to_pending = if due.is_some() { from_pending.min(amount) } else { Centavos::ZERO };
            let (recipient, index, taken) = (part.recipient, part.index, part.amount);
            GiveBack { recipient, index, taken, from_pending, due, to_pending, to_available: amount - to_pending }
        });
        parts.collect()
    }
}
