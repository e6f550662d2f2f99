//! Refunds (interface 2.11, 3.6, 7): asked for by the merchant, decided by the operations team, borne by the seller. Recipients keep
//! their splits unless the refund takes them back. Money moves on approval; the rail sends it afterwards.

use std::collections::BTreeMap;

use super::adjustments::{Adjusted, Open, Repayment};
use super::{MerchantState, SplitRequest};
use crate::event::{Drawn, Due, Event, PaidBack, Split, TakeBack, Terms};
use crate::fees::Commission;
use crate::id::{IdKey, ObjectId, RecipientNumber};
use crate::money::Centavos;
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::time::{Minute, Timestamp};

/// How long after its payment a PIX charge can be refunded or disputed, days of 24 hours.
pub const PIX_WINDOW_DAYS: u16 = 90;
/// The same, of a card charge.
pub const CARD_WINDOW_DAYS: u16 = 180;

/// What the Record of a charge's payment says. It never changes, so it is read before a command is sent and comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeFacts {
    /// Which charge.
    pub charge: ObjectId,
    /// Its terms.
    pub terms: Terms,
    /// When it was paid.
    pub paid_at: Timestamp,
    /// What its payment added to the seller's Pending; nothing for PIX.
    pub pending: Centavos,
    /// When that falls due; none for PIX.
    pub seller_due: Option<Minute>,
    /// When its splits fall due, and the acquirer pays us; none for PIX.
    pub splits_due: Option<Minute>,
}

impl ChargeFacts {
    /// The facts that a Record tells of a charge; none when it is not the Record of its payment.
    pub fn told_by(record: &Record, id: ObjectId) -> Option<Self> {
        let paid_at = record.effective_at;
        record.events.iter().find_map(|event| match event {
            Event::CardCaptured { charge, terms, seller, seller_due, splits_due, .. } if *charge == id => Some(Self {
                charge: id,
                terms: terms.clone(),
                paid_at,
                pending: seller.raised,
                seller_due: Some(*seller_due),
                splits_due: Some(*splits_due),
            }),
            Event::PixPaid { charge, terms, .. } if *charge == id => Some(Self {
                charge: id,
                terms: terms.clone(),
                paid_at,
                pending: Centavos::ZERO,
                seller_due: None,
                splits_due: None,
            }),
            _ => None,
        })
    }

    /// True when an event is the payment of this charge.
    pub fn is_payment_of(event: &Event, id: ObjectId) -> bool {
        matches!(event, Event::CardCaptured { charge, .. } | Event::PixPaid { charge, .. } if *charge == id)
    }

    /// Until when it can be refunded or disputed.
    pub fn window_ends(&self) -> Timestamp {
        self.paid_at.plus_days(if self.terms.method.is_card() { CARD_WINDOW_DAYS } else { PIX_WINDOW_DAYS })
    }
}

/// A refund, as asked for (interface section 4).
#[derive(Clone, Debug)]
pub struct RequestRefund {
    /// Its id.
    pub id: ObjectId,
    /// Of which charge.
    pub facts: ChargeFacts,
    /// How much, centavos.
    pub amount: Centavos,
    /// What it is to take back of recipients' splits.
    pub take_back: Vec<SplitRequest>,
    /// Why, sealed.
    pub reason: Option<Sealed>,
}

impl MerchantState {
    /// Eligibility comes before the amount (decisions, Cashout and refunds); a recipient without a split in the charge is bad input and
    /// comes before both.
    pub(super) fn request_refund(
        &self,
        order: RequestRefund,
        now: Timestamp,
        ids: &IdKey,
    ) -> Result<Decision, Rejection> {
        let RequestRefund { id, facts, amount, take_back, reason } = order;
        let take_back = self.of_splits(&facts.terms, &take_back, ids)?;
        let adjusted = self.in_window(&facts, now)?;
        let (unrefunded, free) = (adjusted.unrefunded(facts.terms.amount), adjusted.free(facts.terms.amount));
        if adjusted.refunded == facts.terms.amount {
            return Err(Rejection::ChargeRefunded);
        }
        if free.is_zero() && unrefunded.is_positive() {
            return Err(Rejection::ChargeDisputed);
        }
        if amount > unrefunded {
            return Err(Rejection::RefundExceedsCharge);
        }
        if amount > free {
            return Err(Rejection::ChargeDisputed);
        }
        if take_back.iter().map(|part| part.split.amount).sum::<Centavos>() > amount {
            return Err(Rejection::TakeBackExceedsRefund);
        }
        for Wanted { split, nominal, index } in &take_back {
            let taken = adjusted.taken.get(&split.recipient).copied().unwrap_or_default();
            if taken.asked + taken.approved + split.amount > *nominal {
                return Err(Rejection::TakeBackExceedsSplit { index: *index });
            }
        }
        let take_back = take_back.into_iter().map(|part| part.split).collect();
        let window_ends = facts.window_ends();
        let requested = Event::RefundRequested { id, charge: facts.charge, amount, take_back, window_ends };
        Ok(Decision { events: vec![requested], personal: reason })
    }

    /// The money moves: from the charge's own Pending, then Available, then Deficit. Commission that comes back is there to be drawn on.
    pub(super) fn approve_refund(
        &self,
        id: ObjectId,
        facts: &ChargeFacts,
        now: Timestamp,
    ) -> Result<Decision, Rejection> {
        let Some(Open::Refund { charge, amount, take_back }) = self.open_of(id, facts) else {
            return Err(Rejection::RefundAlreadyDecided);
        };
        let adjusted = self.adjusted(*charge);
        let (commission, commission_through) = self.commission_back(facts, &adjusted, *amount);
        let commission_pending = is_pending(facts, now);
        let back = commission.total();
        let (to_pending, to_available) =
            if commission_pending { (back, Centavos::ZERO) } else { (Centavos::ZERO, back) };
        let available = self.available() + to_available;
        let drawn = drawn(*amount, self.pending_of(facts, now) + to_pending, available);
        let approved = Event::RefundApproved {
            id,
            charge: *charge,
            method: facts.terms.method,
            amount: *amount,
            drawn,
            seller_due: facts.seller_due,
            commission,
            commission_pending,
            take_backs: take_backs(facts, &adjusted, take_back, drawn),
            commission_through,
            acquirer_due: facts.splits_due,
        };
        let mut events = vec![approved];
        events.extend(self.recovery(available - drawn.from_available));
        Ok(Decision { events, personal: None })
    }

    pub(super) fn reject_refund(&self, id: ObjectId, notes: String) -> Result<Decision, Rejection> {
        let Some(Open::Refund { charge, amount, .. }) = self.adjustments.open(id) else {
            return Err(Rejection::RefundAlreadyDecided);
        };
        Ok(Decision::of(Event::RefundRejected { id, charge: *charge, amount: *amount, notes }))
    }

    /// The rail sent money back to a payer. What it sent through the acquirer comes off what the acquirer is still to pay for the charge;
    /// the rest is owed to the acquirer from here on. Told twice, it changes nothing.
    pub(super) fn repaid(&self, id: ObjectId) -> Decision {
        let Some(Open::Repayment(repayment)) = self.adjustments.open(id) else { return Decision::default() };
        let Repayment { charge, method, amount, acquirer_due, .. } = *repayment;
        let acquirer_keeps = acquirer_due.and_then(|minute| {
            let amount = amount.min(self.acquirer_due.at(minute));
            amount.is_positive().then_some(Due { minute, amount })
        });
        Decision::of(Event::PayerRepaid { id, charge, method, amount, acquirer_keeps })
    }

    /// A code was paid after it had ended: the money goes back. A second word of the same payment changes nothing.
    pub(super) fn receive_late_pix(
        &self,
        charge: ObjectId,
        amount: Centavos,
        end_to_end_id: String,
    ) -> Result<Decision, Rejection> {
        if self.open_charges.get(charge).is_some() {
            return self.confirm_pix(charge, end_to_end_id);
        }
        if self.adjustments.charge(charge).is_some() {
            return Ok(Decision::default());
        }
        Ok(Decision::of(Event::LatePixReceived { charge, amount, end_to_end_id }))
    }

    /// A recipient paid back a part of what a refund took back.
    pub(super) fn come_back(&mut self, debt: &PaidBack) {
        self.raise_pending(debt.seller_due, debt.to_pending);
        self.adjustments.come_back(debt.split.charge, debt.to_pending);
    }

    /// What is pending of a charge's own money.
    pub(super) fn pending_of(&self, facts: &ChargeFacts, now: Timestamp) -> Centavos {
        if !is_pending(facts, now) {
            return Centavos::ZERO;
        }
        facts.pending - self.adjusted(facts.charge).drawn_pending
    }

    /// How much of a charge is spoken for, if it is not too old.
    pub(super) fn in_window(&self, facts: &ChargeFacts, now: Timestamp) -> Result<Adjusted, Rejection> {
        if now > facts.window_ends() { Err(Rejection::ChargeTooOld) } else { Ok(self.adjusted(facts.charge)) }
    }

    fn adjusted(&self, charge: ObjectId) -> Adjusted {
        self.adjustments.charge(charge).cloned().unwrap_or_default()
    }

    /// What is to be taken back, once for each recipient, in the order of first mention.
    fn of_splits(&self, terms: &Terms, orders: &[SplitRequest], ids: &IdKey) -> Result<Vec<Wanted>, Rejection> {
        let mut nominal: BTreeMap<RecipientNumber, Centavos> = BTreeMap::new();
        for split in terms.splits.iter().filter(|_| !orders.is_empty()) {
            *nominal.entry(split.recipient).or_default() += split.amount;
        }
        let (mut wanted, mut places): (Vec<Wanted>, _) = (Vec::new(), BTreeMap::new());
        for (index, order) in orders.iter().enumerate() {
            let found = self.find_recipient(order.recipient, ids).map(|(number, _)| number);
            let found = found.and_then(|number| nominal.get(&number).map(|nominal| (number, *nominal)));
            let (recipient, nominal) = found.ok_or(Rejection::SplitRecipientNotFound { index })?;
            match places.get(&recipient).and_then(|place: &usize| wanted.get_mut(*place)) {
                Some(known) => known.split.amount += order.amount,
                None => {
                    places.insert(recipient, wanted.len());
                    wanted.push(Wanted { split: Split { recipient, amount: order.amount }, nominal, index });
                }
            }
        }
        Ok(wanted)
    }

    /// The commission that comes back with a refund, each component rounded on the sum of the charge's refunds that give it back, so that
    /// many small ones return no more than one large one; and that sum.
    fn commission_back(&self, facts: &ChargeFacts, adjusted: &Adjusted, amount: Centavos) -> (Commission, Centavos) {
        let before = adjusted.commission_through;
        if !self.settings.options.refund_commission {
            return (Commission::default(), before);
        }
        let through = before + amount;
        let charged = &facts.terms.commission;
        let back = |part: Centavos| part.share(through, facts.terms.amount) - part.share(before, facts.terms.amount);
        let commission = Commission {
            mdr: back(charged.mdr),
            antifraud: back(charged.antifraud),
            margin: back(charged.margin),
            pix: back(charged.pix),
        };
        (commission, through)
    }
}

/// What a refund is to take back of one recipient.
struct Wanted {
    split: Split,
    /// What the recipient got of the charge.
    nominal: Centavos,
    /// Where the request mentions it first.
    index: usize,
}

/// What the seller's money of a charge gives: the charge's own Pending, never another's; then Available; what is missing becomes a
/// Deficit.
pub(super) fn drawn(amount: Centavos, pending: Centavos, available: Centavos) -> Drawn {
    let from_pending = amount.min(pending);
    let from_available = (amount - from_pending).min(available);
    Drawn { from_pending, from_available, to_deficit: amount - from_pending - from_available }
}

/// True while the charge's own money is pending.
pub(super) fn is_pending(facts: &ChargeFacts, now: Timestamp) -> bool {
    facts.seller_due.is_some_and(|due| !due.is_due(now))
}

/// The debts that a refund makes, split by split: a recipient's first splits first. What is paid back first undoes what the refund drew
/// from Available and Deficit, the rest goes to the charge's Pending.
fn take_backs(facts: &ChargeFacts, adjusted: &Adjusted, parts: &[Split], drawn: Drawn) -> Vec<TakeBack> {
    let mut shortfall = drawn.from_available + drawn.to_deficit;
    let named: BTreeMap<_, Vec<_>> = parts.iter().map(|part| (part.recipient, Vec::new())).collect();
    let splits = (0..).zip(&facts.terms.splits).fold(named, |mut named, (index, split)| {
        named.entry(split.recipient).and_modify(|splits: &mut Vec<(u32, Centavos)>| splits.push((index, split.amount)));
        named
    });
    let mut debts = Vec::with_capacity(parts.len());
    for part in parts {
        let mut taken = adjusted.taken.get(&part.recipient).copied().unwrap_or_default().approved;
        let mut wanted = part.amount;
        for (index, nominal) in splits.get(&part.recipient).into_iter().flatten() {
            let before = taken.min(*nominal);
            let amount = wanted.min(*nominal - before);
            (taken, wanted) = (taken - before, wanted - amount);
            if amount.is_positive() {
                let to_available = amount.min(shortfall);
                shortfall -= to_available;
                debts.push(TakeBack {
                    recipient: part.recipient,
                    index: *index,
                    amount,
                    due: facts.splits_due,
                    to_available,
                    to_pending: amount - to_available,
                });
            }
        }
    }
    debts
}
