//! What can still change about charges that were paid, once somebody asked for a refund or disputed one: how much of each is spoken for,
//! and the refunds, disputes and repayments that are open. A charge is forgotten when its window is over and nothing of it is open, so
//! that none of this grows with history.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::MerchantState;
use super::refund::PIX_WINDOW_DAYS;
use crate::event::{Drawn, Event, Split};
use crate::fees::PaymentMethod;
use crate::id::{ObjectId, RecipientNumber};
use crate::money::Centavos;
use crate::record::Record;
use crate::section::{Objects, Section};
use crate::time::{Minute, Timestamp};

/// How much of one charge is spoken for, centavos.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct Adjusted {
    /// It can be refunded or disputed through this time.
    #[n(0)]
    pub(super) window_ends: Timestamp,
    /// How many of its refunds, disputes and repayments are open.
    #[n(1)]
    open: u32,
    /// Refunds that wait for their decision.
    #[n(2)]
    pub(super) asked: Centavos,
    /// Refunds that were approved.
    #[n(3)]
    pub(super) refunded: Centavos,
    /// Disputes that are open.
    #[n(4)]
    pub(super) disputed: Centavos,
    /// Disputes that were accepted.
    #[n(5)]
    pub(super) lost: Centavos,
    /// What was drawn from the charge's Pending, less what came back to it: below zero when more came.
    #[n(6)]
    pub(super) drawn_pending: Centavos,
    /// The refunds for which commission was given back.
    #[n(7)]
    pub(super) commission_through: Centavos,
    /// What is taken back of its splits, by recipient.
    #[n(8)]
    pub(super) taken: BTreeMap<RecipientNumber, Taken>,
}

/// What is taken back of one recipient's splits of a charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct Taken {
    /// By refunds that wait for their decision.
    #[n(0)]
    pub(super) asked: Centavos,
    /// By refunds that were approved.
    #[n(1)]
    pub(super) approved: Centavos,
}

impl Adjusted {
    /// What of a charge of this amount is not asked back, nor given back.
    pub(super) fn unrefunded(&self, amount: Centavos) -> Centavos {
        amount - self.refunded - self.asked
    }

    /// What of it is not disputed either.
    pub(super) fn free(&self, amount: Centavos) -> Centavos {
        self.unrefunded(amount) - self.disputed - self.lost
    }

    fn take(&mut self, parts: &[Split], change: impl Fn(&mut Taken, Centavos)) {
        for part in parts {
            let taken = self.taken.entry(part.recipient).or_default();
            change(taken, part.amount);
            if *taken == Taken::default() {
                self.taken.remove(&part.recipient);
            }
        }
    }
}

/// Something that waits for a decision, or for a rail.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) enum Open {
    /// A refund that waits for its decision.
    #[n(0)]
    Refund {
        /// Of which charge.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// What it is to take back.
        #[n(2)]
        take_back: Vec<Split>,
    },
    /// A dispute that waits for its decision.
    #[n(1)]
    Dispute {
        /// Of which charge.
        #[n(0)]
        charge: ObjectId,
        /// How much.
        #[n(1)]
        amount: Centavos,
        /// Where it came from.
        #[n(2)]
        drawn: Drawn,
    },
    /// Money that is to be sent back to the payer.
    #[n(2)]
    Repayment(#[n(0)] Repayment),
}

impl Open {
    /// The charge that it is about.
    pub(super) fn charge(&self) -> ObjectId {
        match self {
            Self::Refund { charge, .. } | Self::Dispute { charge, .. } => *charge,
            Self::Repayment(repayment) => repayment.charge,
        }
    }
}

/// Money that is decided to go back to a payer, and that the rail has not surely sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Repayment {
    /// Of which charge.
    #[n(0)]
    pub charge: ObjectId,
    /// How the charge was paid.
    #[n(1)]
    pub method: PaymentMethod,
    /// How much, centavos.
    #[n(2)]
    pub amount: Centavos,
    /// When the acquirer pays for the charge; none for PIX.
    #[n(3)]
    pub acquirer_due: Option<Minute>,
    /// Since when it is to be sent.
    #[n(4)]
    pub since: Timestamp,
}

impl Repayment {
    /// The repayments that a Record decides, each under its id: a refund's, a dispute's, or that of a charge that was paid too late.
    pub fn decided_by(record: &Record) -> impl Iterator<Item = (ObjectId, Self)> + '_ {
        record.events.iter().filter_map(|event| Self::of(event, record.effective_at))
    }

    fn of(event: &Event, since: Timestamp) -> Option<(ObjectId, Self)> {
        match event {
            Event::RefundApproved { id, charge, method, amount, acquirer_due, .. }
            | Event::DisputeAccepted { id, charge, method, amount, acquirer_due } => {
                let (charge, method, amount, acquirer_due) = (*charge, *method, *amount, *acquirer_due);
                Some((*id, Self { charge, method, amount, acquirer_due, since }))
            }
            Event::LatePixReceived { charge, amount, .. } => {
                let (method, acquirer_due) = (PaymentMethod::Pix, None);
                Some((*charge, Self { charge: *charge, method, amount: *amount, acquirer_due, since }))
            }
            _ => None,
        }
    }
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Adjustments {
    charges: Objects<Adjusted>,
    open: Objects<Open>,
    /// The charges with nothing open, by the end of their window.
    expiring: BTreeSet<(Timestamp, ObjectId)>,
    /// The repayments.
    attention: BTreeSet<(Timestamp, ObjectId)>,
}

impl Adjustments {
    pub(super) fn charge(&self, id: ObjectId) -> Option<&Adjusted> {
        self.charges.get(id)
    }

    pub(super) fn open(&self, id: ObjectId) -> Option<&Open> {
        self.open.get(id)
    }

    /// The sum of the open disputes, centavos.
    pub(super) fn disputed(&self) -> Centavos {
        let disputes = self.open.iter().filter_map(|(_, open)| match open {
            Open::Dispute { amount, .. } => Some(*amount),
            _ => None,
        });
        disputes.sum()
    }

    /// When the first repayment is to be sent.
    pub(super) fn first_attention(&self) -> Option<Timestamp> {
        self.attention.first().map(|(since, _)| *since)
    }

    /// The repayments that are to be sent by `now`, oldest first.
    pub(super) fn repayments(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, Repayment)> {
        let ids = self.attention.iter().take_while(move |(since, _)| *since <= now).map(|(_, id)| *id);
        ids.filter_map(|id| match self.open.get(id) {
            Some(Open::Repayment(repayment)) => Some((id, *repayment)),
            _ => None,
        })
    }

    /// A refund was asked for by the Record of this ordinal.
    pub(super) fn ask(
        &mut self,
        ordinal: u64,
        id: ObjectId,
        (charge, window_ends): (ObjectId, Timestamp),
        amount: Centavos,
        take_back: &[Split],
    ) {
        self.touch(charge, ordinal, window_ends);
        self.insert(id, ordinal, Open::Refund { charge, amount, take_back: take_back.to_vec() });
        self.change(charge, |adjusted| {
            adjusted.asked += amount;
            adjusted.take(take_back, |taken, amount| taken.asked += amount);
        });
    }

    /// A refund was rejected.
    pub(super) fn reject(&mut self, id: ObjectId) {
        let Some(Open::Refund { charge, amount, take_back }) = self.remove(id) else { return };
        self.change(charge, |adjusted| {
            adjusted.asked -= amount;
            adjusted.take(&take_back, |taken, amount| taken.asked -= amount);
        });
    }

    /// A refund was approved by the Record of this ordinal, and is to be sent. `drawn_pending` is what it took of the charge's
    /// Pending, less the commission that it gave back to it.
    pub(super) fn approve(
        &mut self,
        ordinal: u64,
        repayment: Option<(ObjectId, Repayment)>,
        drawn_pending: Centavos,
        commission_through: Centavos,
    ) {
        let Some((id, repayment)) = repayment else { return };
        let Some(Open::Refund { charge, amount, take_back }) = self.remove(id) else { return };
        self.insert(id, ordinal, Open::Repayment(repayment));
        self.change(charge, |adjusted| {
            adjusted.asked -= amount;
            adjusted.refunded += amount;
            adjusted.drawn_pending += drawn_pending;
            adjusted.commission_through = commission_through;
            adjusted.take(&take_back, |taken, amount| {
                taken.asked -= amount;
                taken.approved += amount;
            });
        });
    }

    /// A dispute was opened by the Record of this ordinal.
    pub(super) fn hold(
        &mut self,
        ordinal: u64,
        id: ObjectId,
        (charge, window_ends): (ObjectId, Timestamp),
        amount: Centavos,
        drawn: Drawn,
    ) {
        self.touch(charge, ordinal, window_ends);
        self.insert(id, ordinal, Open::Dispute { charge, amount, drawn });
        self.change(charge, |adjusted| {
            adjusted.disputed += amount;
            adjusted.drawn_pending += drawn.from_pending;
        });
    }

    /// A dispute was accepted by the Record of this ordinal; its money is to be sent.
    pub(super) fn accept(&mut self, ordinal: u64, repayment: Option<(ObjectId, Repayment)>) {
        let Some((id, repayment)) = repayment else { return };
        let Some(Open::Dispute { charge, amount, .. }) = self.remove(id) else { return };
        self.insert(id, ordinal, Open::Repayment(repayment));
        self.change(charge, |adjusted| {
            adjusted.disputed -= amount;
            adjusted.lost += amount;
        });
    }

    /// A dispute was released; so much went back to the charge's Pending.
    pub(super) fn release(&mut self, id: ObjectId, to_pending: Centavos) {
        let Some(Open::Dispute { charge, amount, .. }) = self.remove(id) else { return };
        self.change(charge, |adjusted| {
            adjusted.disputed -= amount;
            adjusted.drawn_pending -= to_pending;
        });
    }

    /// A payment came too late, and is to be sent back. Its charge is remembered through `window_ends`, so that the same payment is
    /// not booked again.
    pub(super) fn receive_late(
        &mut self,
        ordinal: u64,
        repayment: Option<(ObjectId, Repayment)>,
        window_ends: Timestamp,
    ) {
        let Some((_, repayment)) = repayment else { return };
        self.touch(repayment.charge, ordinal, window_ends);
        self.insert(repayment.charge, ordinal, Open::Repayment(repayment));
    }

    /// A repayment was sent.
    pub(super) fn sent(&mut self, id: ObjectId) {
        self.remove(id);
    }

    /// Money of a charge came back to its Pending. A charge that was forgotten can't be drawn on any more.
    pub(super) fn come_back(&mut self, charge: ObjectId, to_pending: Centavos) {
        self.charges.change(charge, |adjusted| adjusted.drawn_pending -= to_pending);
    }

    /// Forgets the charges whose window is over and that have nothing open.
    pub(super) fn forget_before(&mut self, now: Timestamp) {
        while let Some((window_ends, charge)) = self.expiring.first().copied().filter(|(ends, _)| *ends < now) {
            self.expiring.remove(&(window_ends, charge));
            self.charges.remove(charge);
        }
    }

    pub(super) fn take_touched(&mut self, charges: u8, open: u8) -> impl Iterator<Item = Section> + use<> {
        self.charges.take_touched(charges).chain(self.open.take_touched(open))
    }

    pub(super) fn charges_section(&self, number: u64) -> Option<Vec<u8>> {
        self.charges.section(number)
    }

    pub(super) fn open_section(&self, number: u64) -> Option<Vec<u8>> {
        self.open.section(number)
    }

    pub(super) fn read_charges(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.charges.read_section(bytes)
    }

    pub(super) fn read_open(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.open.read_section(bytes)
    }

    /// Builds again what is derived, once all sections are read.
    pub(super) fn index(&mut self) {
        let closed = self.charges.iter().filter(|(_, adjusted)| adjusted.open == 0);
        self.expiring = closed.map(|(id, adjusted)| (adjusted.window_ends, id)).collect();
        let open = std::mem::take(&mut self.open);
        open.iter().for_each(|(id, open)| self.index_open(id, open));
        self.open = open;
    }

    /// Makes a charge's entry, if it has none.
    fn touch(&mut self, charge: ObjectId, ordinal: u64, window_ends: Timestamp) {
        if self.charges.get(charge).is_none() {
            self.charges.insert(charge, ordinal, Adjusted { window_ends, ..Adjusted::default() });
            self.expiring.insert((window_ends, charge));
        }
    }

    fn change(&mut self, charge: ObjectId, change: impl FnOnce(&mut Adjusted)) {
        let expiring = &mut self.expiring;
        self.charges.change(charge, |adjusted| {
            change(adjusted);
            if adjusted.open == 0 {
                expiring.insert((adjusted.window_ends, charge));
            } else {
                expiring.remove(&(adjusted.window_ends, charge));
            }
        });
    }

    fn insert(&mut self, id: ObjectId, ordinal: u64, open: Open) {
        self.index_open(id, &open);
        self.change(open.charge(), |adjusted| adjusted.open += 1);
        self.open.insert(id, ordinal, open);
    }

    fn remove(&mut self, id: ObjectId) -> Option<Open> {
        let open = self.open.remove(id)?;
        if let Open::Repayment(repayment) = &open {
            self.attention.remove(&(repayment.since, id));
        }
        self.change(open.charge(), |adjusted| adjusted.open -= 1);
        Some(open)
    }

    fn index_open(&mut self, id: ObjectId, open: &Open) {
        if let Open::Repayment(repayment) = open {
            self.attention.insert((repayment.since, id));
        }
    }
}

impl MerchantState {
    /// Applies an event of a refund, a dispute or a late payment.
    pub(super) fn adjust(&mut self, event: &Event, record: &Record) {
        let ordinal = record.ordinal;
        let repayment = Repayment::of(event, record.effective_at);
        match event {
            Event::RefundRequested { id, charge, amount, take_back, window_ends } => {
                self.adjustments.ask(ordinal, *id, (*charge, *window_ends), *amount, take_back);
            }
            Event::RefundRejected { id, .. } => self.adjustments.reject(*id),
            Event::RefundApproved { drawn, seller_due, commission, commission_pending, commission_through, .. } => {
                let to_pending = if *commission_pending { commission.total() } else { Centavos::ZERO };
                self.raise_pending(*seller_due, to_pending);
                self.draw_pending(*seller_due, drawn);
                let drawn_pending = drawn.from_pending - to_pending;
                self.adjustments.approve(ordinal, repayment, drawn_pending, *commission_through);
            }
            Event::PayerRepaid { id, acquirer_keeps, .. } => {
                if let Some(kept) = acquirer_keeps {
                    self.acquirer_due.take(kept.minute, kept.amount);
                }
                self.adjustments.sent(*id);
            }
            Event::DisputeOpened { id, charge, amount, drawn, seller_due, window_ends, .. } => {
                self.draw_pending(*seller_due, drawn);
                self.adjustments.hold(ordinal, *id, (*charge, *window_ends), *amount, *drawn);
            }
            Event::DisputeAccepted { .. } => self.adjustments.accept(ordinal, repayment),
            Event::DisputeReleased { id, to_pending, seller_due, .. } => {
                self.raise_pending(*seller_due, *to_pending);
                self.adjustments.release(*id, *to_pending);
            }
            Event::LatePixReceived { .. } => {
                self.adjustments.receive_late(ordinal, repayment, record.effective_at.plus_days(PIX_WINDOW_DAYS));
            }
            _ => {}
        }
    }

    /// Takes what was drawn from a charge's own Pending out of the minute in which that falls due.
    fn draw_pending(&mut self, seller_due: Option<Minute>, drawn: &Drawn) {
        if let Some(due) = seller_due.filter(|_| drawn.from_pending.is_positive()) {
            self.pending.take(due, drawn.from_pending);
        }
    }

    /// Adds what comes back to a charge's own Pending to the minute in which that falls due.
    pub(super) fn raise_pending(&mut self, seller_due: Option<Minute>, to_pending: Centavos) {
        if let Some(due) = seller_due {
            self.pending.add(due, to_pending);
        }
    }
}
