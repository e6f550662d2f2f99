//! Adjustments of paid charges: open refunds, disputes and repayments, and how much of each charge
//! they have taken. A charge is forgotten when its window is over and nothing of it is open, so
//! this does not grow with history.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::{Decode, Encode};

use crate::event::{GiveBack, SellerDraw};
use crate::section::{Objects, Section};
use crate::{Centavos, Event, ObjectId, PaymentMethod, RecipientNumber, Record, Split, Timestamp};

/// How much of one charge refunds and disputes have taken, centavos.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct ChargeAdjustments {
    /// It can be refunded or disputed through this time, or one of both.
    #[n(0)]
    pub(super) window_ends: Timestamp,
    /// How many of its refunds, disputes and repayments are open.
    #[n(1)]
    open: u32,
    /// Refunds that wait for their decision.
    #[n(2)]
    pub(super) requested: Centavos,
    /// Refunds that were approved.
    #[n(3)]
    pub(super) refunded: Centavos,
    /// Disputes that are open.
    #[n(4)]
    pub(super) disputed: Centavos,
    /// Disputes that were accepted.
    #[n(5)]
    pub(super) lost: Centavos,
    /// Amounts drawn from the charge's Pending, less amounts returned to it; below zero when more
    /// was returned.
    #[n(6)]
    pub(super) drawn_pending: Centavos,
    /// The refunds for which commission was given back.
    #[n(7)]
    pub(super) commission_through: Centavos,
    /// Take-backs of its splits, by recipient.
    #[n(8)]
    pub(super) taken: BTreeMap<RecipientNumber, RecipientTakeBack>,
}

/// Take-back of one recipient's splits of a charge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct RecipientTakeBack {
    /// By refunds that wait for their decision.
    #[n(0)]
    pub(super) requested: Centavos,
    /// By refunds that were approved.
    #[n(1)]
    pub(super) approved: Centavos,
}

impl ChargeAdjustments {
    /// The part of a charge of this amount that no refund has asked for or given back.
    pub(super) fn unrefunded(&self, amount: Centavos) -> Centavos {
        amount - self.refunded - self.requested
    }

    /// The part of it that no dispute holds or has taken either; below zero where disputes passed
    /// what was left.
    pub(super) fn free(&self, amount: Centavos) -> Centavos {
        self.unrefunded(amount) - self.disputed - self.lost
    }

    /// The same, where refunds that wait for their decision do not count.
    pub(super) fn ungiven(&self, amount: Centavos) -> Centavos {
        self.free(amount) + self.requested
    }

    fn take(&mut self, parts: &[Split], change: impl Fn(&mut RecipientTakeBack, Centavos)) {
        for part in parts {
            let taken = self.taken.entry(part.recipient).or_default();
            change(taken, part.amount);
            if *taken == RecipientTakeBack::default() {
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
        /// The charge.
        #[n(0)]
        charge: ObjectId,
        /// The amount, centavos.
        #[n(1)]
        amount: Centavos,
        /// The splits that it is to take back.
        #[n(2)]
        take_back: Vec<Split>,
        /// How often a dispute of the charge was opened or decided meanwhile.
        #[cbor(n(3), skip_if = "is_zero")]
        changes: u32,
    },
    /// A dispute that waits for its decision.
    #[n(1)]
    Dispute {
        /// The charge.
        #[n(0)]
        charge: ObjectId,
        /// The amount, centavos.
        #[n(1)]
        amount: Centavos,
        /// The accounts that the held money came from.
        #[n(2)]
        drawn: SellerDraw,
    },
    /// Money that goes back to the payer.
    #[n(2)]
    Repayment(#[n(0)] Repayment),
}

fn is_zero(changes: &u32) -> bool {
    *changes == 0
}

fn is_false(flag: &bool) -> bool {
    !flag
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

/// How money goes back to a payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum RepaymentKind {
    /// We order the rail to send it: of a refund.
    #[n(0)]
    Sent,
    /// The rail takes it from us once we say that it may: of an accepted dispute.
    #[n(1)]
    Taken,
    /// We order the rail to send it: of a payment that nobody asked for.
    #[n(2)]
    Unordered,
}

/// Money that goes back to a payer: decided, and not yet confirmed by the rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Repayment {
    /// The charge.
    #[n(0)]
    pub charge: ObjectId,
    /// How the charge was paid.
    #[n(1)]
    pub method: PaymentMethod,
    /// The amount, centavos.
    #[n(2)]
    pub amount: Centavos,
    /// Who sends it.
    #[n(3)]
    pub kind: RepaymentKind,
    /// When it was decided; the rail is asked from this time on.
    #[n(4)]
    pub since: Timestamp,
    /// True when the rail refuses it: the rail is not asked again.
    #[cbor(n(5), skip_if = "is_false")]
    pub is_refused: bool,
    /// When it was last sent again; `None` if it was sent once.
    #[n(6)]
    pub tried_at: Option<Timestamp>,
}

impl Repayment {
    /// The repayments that a Record decides, by id: of a refund, of a dispute, or of a payment that
    /// nobody asked for.
    pub fn decided_by(record: &Record) -> impl Iterator<Item = (ObjectId, Self)> + '_ {
        record.events.iter().filter_map(|event| Self::of(event, record.effective_at))
    }

    pub(super) fn of(event: &Event, since: Timestamp) -> Option<(ObjectId, Self)> {
        let (id, charge, method, amount, kind) = match event {
            Event::RefundApproved { id, charge, method, amount, .. } => {
                (*id, *charge, *method, *amount, RepaymentKind::Sent)
            }
            Event::DisputeAccepted { id, charge, method, amount } => {
                (*id, *charge, *method, *amount, RepaymentKind::Taken)
            }
            Event::LatePixReceived { charge, amount, id, .. } => {
                (id.unwrap_or(*charge), *charge, PaymentMethod::Pix, *amount, RepaymentKind::Unordered)
            }
            _ => return None,
        };
        Some((id, Self { charge, method, amount, kind, since, is_refused: false, tried_at: None }))
    }
}

/// The adjusted charges, and what is open of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Adjustments {
    pub(super) charges: Objects<ChargeAdjustments>,
    pub(super) open: Objects<Open>,
    /// The charges with nothing open, by the end of their window.
    expiring: BTreeSet<(Timestamp, ObjectId)>,
    /// The open repayments, by the time from which the rail is asked to send them.
    attention: BTreeSet<(Timestamp, ObjectId)>,
}

impl Adjustments {
    pub(super) fn charge(&self, id: ObjectId) -> Option<&ChargeAdjustments> {
        self.charges.get(id)
    }

    /// All that waits for a decision or for a rail.
    pub(super) fn all_open(&self) -> impl Iterator<Item = (ObjectId, &Open)> {
        self.open.iter()
    }

    pub(super) fn open(&self, id: ObjectId) -> Option<&Open> {
        self.open.get(id)
    }

    /// The version of a refund or dispute that waits for its decision, from 1.
    pub(super) fn version_of(&self, id: ObjectId) -> Option<u32> {
        match self.open.get(id)? {
            Open::Refund { changes, .. } => Some(changes + 1),
            Open::Dispute { .. } => Some(1),
            Open::Repayment(_) => None,
        }
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

    /// Keeps a refund that the Record of this ordinal asks for.
    pub(super) fn ask(
        &mut self,
        ordinal: u64,
        id: ObjectId,
        (charge, window_ends): (ObjectId, Timestamp),
        amount: Centavos,
        take_back: &[Split],
    ) {
        self.touch(charge, ordinal, window_ends);
        self.insert(id, ordinal, Open::Refund { charge, amount, take_back: take_back.to_vec(), changes: 0 });
        self.change(charge, |adjusted| {
            adjusted.requested += amount;
            adjusted.take(take_back, |taken, amount| taken.requested += amount);
        });
    }

    /// Ends a refund that was rejected.
    pub(super) fn reject(&mut self, id: ObjectId) {
        let Some(Open::Refund { charge, amount, take_back, .. }) = self.remove(id) else { return };
        self.change(charge, |adjusted| {
            adjusted.requested -= amount;
            adjusted.take(&take_back, |taken, amount| taken.requested -= amount);
        });
    }

    /// Turns a refund into a repayment: the Record of this ordinal approved it. `drawn_pending` is
    /// what the refund took of the charge's Pending, less the commission that it gave back to it.
    pub(super) fn approve(
        &mut self,
        ordinal: u64,
        repayment: Option<(ObjectId, Repayment)>,
        drawn_pending: Centavos,
        commission_through: Centavos,
    ) {
        let Some((id, repayment)) = repayment else { return };
        let Some(Open::Refund { charge, amount, take_back, .. }) = self.remove(id) else { return };
        self.insert(id, ordinal, Open::Repayment(repayment));
        self.change(charge, |adjusted| {
            adjusted.requested -= amount;
            adjusted.refunded += amount;
            adjusted.drawn_pending += drawn_pending;
            adjusted.commission_through = commission_through;
            adjusted.take(&take_back, |taken, amount| {
                taken.requested -= amount;
                taken.approved += amount;
            });
        });
    }

    /// Ends the repayment of a refund that its rail refused or has undone. `drawn_pending` is what
    /// the charge's Pending gave, below zero where it got money back.
    pub(super) fn fail(
        &mut self,
        [id, charge]: [ObjectId; 2],
        amount: Centavos,
        drawn_pending: Centavos,
        commission_through: Centavos,
        give_backs: &[GiveBack],
    ) {
        self.remove(id);
        let parts: Vec<_> =
            give_backs.iter().map(|part| Split { recipient: part.recipient, amount: part.taken }).collect();
        self.change(charge, |adjusted| {
            adjusted.refunded -= amount;
            adjusted.drawn_pending += drawn_pending;
            adjusted.commission_through = commission_through;
            adjusted.take(&parts, |taken, amount| taken.approved -= amount);
        });
    }

    /// Keeps a dispute that the Record of this ordinal opened.
    pub(super) fn hold(
        &mut self,
        ordinal: u64,
        id: ObjectId,
        (charge, window_ends): (ObjectId, Timestamp),
        amount: Centavos,
        drawn: SellerDraw,
    ) {
        self.touch(charge, ordinal, window_ends);
        self.insert(id, ordinal, Open::Dispute { charge, amount, drawn });
        self.change(charge, |adjusted| {
            adjusted.disputed += amount;
            adjusted.drawn_pending += drawn.from_pending;
        });
        self.note_dispute(charge);
    }

    /// Turns a dispute into a repayment: the Record of this ordinal accepted it.
    pub(super) fn accept(&mut self, ordinal: u64, repayment: Option<(ObjectId, Repayment)>) {
        let Some((id, repayment)) = repayment else { return };
        let Some(Open::Dispute { charge, amount, .. }) = self.remove(id) else { return };
        self.insert(id, ordinal, Open::Repayment(repayment));
        self.change(charge, |adjusted| {
            adjusted.disputed -= amount;
            adjusted.lost += amount;
        });
        self.note_dispute(charge);
    }

    /// Releases an amount of a dispute, which ends when that was all: `to_pending` went back to the
    /// charge's Pending.
    pub(super) fn release(&mut self, id: ObjectId, released: Centavos, to_pending: Centavos) {
        let Some(Open::Dispute { charge, amount, .. }) = self.open.get(id) else { return };
        let (charge, is_all) = (*charge, released == *amount);
        if is_all {
            self.remove(id);
        } else {
            self.open.change(id, |open| {
                if let Open::Dispute { amount, drawn, .. } = open {
                    *drawn = drawn.first(*amount - released);
                    *amount -= released;
                }
            });
        }
        self.change(charge, |adjusted| {
            adjusted.disputed -= released;
            adjusted.drawn_pending -= to_pending;
        });
        self.note_dispute(charge);
    }

    /// An accepted dispute was won: its amount can be disputed again, `to_pending` went back to the
    /// charge's Pending, and its rail is not asked about it any more.
    pub(super) fn reverse(&mut self, [id, charge]: [ObjectId; 2], amount: Centavos, to_pending: Centavos) {
        self.remove(id);
        // A charge that was forgotten meanwhile counts none of its earlier disputes.
        self.change(charge, |adjusted| {
            adjusted.lost = (adjusted.lost - amount).max(Centavos::ZERO);
            adjusted.drawn_pending -= to_pending;
        });
        self.note_dispute(charge);
    }

    /// A dispute of a charge was opened or decided: the refunds of the charge that wait change.
    fn note_dispute(&mut self, disputed: ObjectId) {
        let waits = |open: &Open| matches!(open, Open::Refund { charge, .. } if *charge == disputed);
        let refunds: Vec<_> = self.open.iter().filter(|(_, open)| waits(open)).map(|(id, _)| id).collect();
        for id in refunds {
            self.open.change(id, |open| {
                if let Open::Refund { changes, .. } = open {
                    *changes += 1;
                }
            });
        }
    }

    /// Keeps the repayment of a PIX payment that nobody asked for. Its charge is remembered through
    /// `window_ends`.
    pub(super) fn receive_unordered(
        &mut self,
        ordinal: u64,
        repayment: Option<(ObjectId, Repayment)>,
        window_ends: Timestamp,
    ) {
        let Some((id, repayment)) = repayment else { return };
        self.touch(repayment.charge, ordinal, window_ends);
        self.insert(id, ordinal, Open::Repayment(repayment));
    }

    /// Keeps a repayment that its rail refuses.
    pub(super) fn refuse(&mut self, id: ObjectId) {
        if let Some(Open::Repayment(repayment)) = self.open.get(id) {
            self.attention.remove(&(repayment.since, id));
        }
        self.change_repayment(id, |repayment| repayment.is_refused = true);
    }

    /// Notes when a repayment was sent once more.
    pub(super) fn note_tried(&mut self, id: ObjectId, at: Timestamp) {
        self.change_repayment(id, |repayment| repayment.tried_at = Some(at));
    }

    fn change_repayment(&mut self, id: ObjectId, change: impl FnOnce(&mut Repayment)) {
        self.open.change(id, |open| {
            if let Open::Repayment(repayment) = open {
                change(repayment);
            }
        });
    }

    /// Ends a repayment: the rail has sent it.
    pub(super) fn sent(&mut self, id: ObjectId) {
        self.remove(id);
    }

    /// Money of a charge came back to its Pending. A charge that was forgotten can't be drawn on
    /// any more.
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

    /// Builds the derived lists, once all sections are read.
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
            self.charges.insert(charge, ordinal, ChargeAdjustments { window_ends, ..ChargeAdjustments::default() });
            self.expiring.insert((window_ends, charge));
        }
    }

    fn change(&mut self, charge: ObjectId, change: impl FnOnce(&mut ChargeAdjustments)) {
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
        if let Open::Repayment(repayment @ Repayment { is_refused: false, .. }) = open {
            self.attention.insert((repayment.since, id));
        }
    }
}
