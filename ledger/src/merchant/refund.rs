//! Refunds (interface 2.11, 3.6, 7). The merchant asks, the operations team decides, the seller
//! bears it. Recipients keep their splits unless the refund takes them back. Money moves on
//! approval; the rail sends it afterwards.

use std::collections::BTreeMap;

use super::adjustments::{ChargeAdjustments, Open, Repayment, RepaymentKind};
use super::{MerchantState, SplitRequest};
use crate::event::{PaidBack, SellerDraw, TakeBack};
use crate::fees::Commission;
use crate::{
    Centavos, Decision, Event, Fingerprint, IdKey, Minute, ObjectId, PaymentMethod, RecipientNumber, Record, Rejection,
    Result, Sealed, Split, Terms, Timestamp,
};

/// How long after its payment a PIX charge can be refunded, days of 24 hours.
pub const PIX_WINDOW_DAYS: u16 = 90;
/// The same, of a card charge.
pub const CARD_WINDOW_DAYS: u16 = 180;

/// How long after its payment a charge can be disputed, in days of 24 hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisputeWindows {
    /// A card charge, by a chargeback.
    pub chargeback_days: u16,
    /// A PIX charge, by the special return mechanism.
    pub med_days: u16,
}

impl Default for DisputeWindows {
    /// The card networks' longest deadline, and that of the PIX regulation.
    fn default() -> Self {
        Self { chargeback_days: 540, med_days: 90 }
    }
}

/// Facts of a paid charge, from the Record of its payment. They never change, so the caller reads
/// them and sends them with the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChargeFacts {
    /// The charge.
    pub charge: ObjectId,
    /// Its terms.
    pub terms: Terms,
    /// When it was paid, by the word of its acquirer or institution.
    pub paid_at: Timestamp,
    /// Amount that its payment added to the seller's Pending; zero for PIX.
    pub pending: Centavos,
    /// When that falls due; none for PIX.
    pub seller_due: Option<Minute>,
    /// When its splits fall due; none for PIX.
    pub splits_due: Option<Minute>,
    /// Fee of the acquirer that was booked with it, centavos; zero for PIX.
    pub acquirer_mdr: Centavos,
    /// The windows of disputes, as this installation has them.
    pub disputes: DisputeWindows,
}

impl ChargeFacts {
    /// The facts of a charge in the Record of its payment; none in any other Record.
    pub fn in_record(record: &Record, id: ObjectId) -> Option<Self> {
        let paid_at = record.takes_effect_at();
        record.events.iter().find_map(|event| match event {
            Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, .. }
                if *charge == id =>
            {
                Some(Self {
                    charge: id,
                    terms: terms.clone(),
                    paid_at,
                    pending: seller.raised,
                    seller_due: Some(*seller_due),
                    splits_due: Some(*splits_due),
                    acquirer_mdr: *acquirer_mdr,
                    disputes: DisputeWindows::default(),
                })
            }
            Event::PixPaid { charge, terms, .. } if *charge == id => Some(Self {
                charge: id,
                terms: terms.clone(),
                paid_at,
                pending: Centavos::ZERO,
                seller_due: None,
                splits_due: None,
                acquirer_mdr: Centavos::ZERO,
                disputes: DisputeWindows::default(),
            }),
            _ => None,
        })
    }

    /// True when an event is the payment of this charge.
    pub fn is_payment_of(event: &Event, id: ObjectId) -> bool {
        matches!(event, Event::CardCaptured { charge, .. } | Event::PixPaid { charge, .. } if *charge == id)
    }

    /// The part of the acquirer's fee that was booked for one installment, from 1, centavos. The
    /// parts of all installments sum to the fee; there is none for another number.
    pub fn booked_fee(&self, installment: u8) -> Centavos {
        let installments = if self.terms.method == PaymentMethod::CreditCard { self.terms.installments } else { 1 };
        if installment == 0 || installment > installments {
            return Centavos::ZERO;
        }
        let through = |paid: u8| self.acquirer_mdr.share(Centavos(paid.into()), Centavos(installments.into()));
        through(installment) - through(installment - 1)
    }

    /// Until when a refund of it can be asked for and carried out.
    pub fn refundable_until(&self) -> Timestamp {
        self.paid_at.plus_days(if self.terms.method.is_card() { CARD_WINDOW_DAYS } else { PIX_WINDOW_DAYS })
    }

    /// Until when its payer's bank can dispute it.
    pub fn disputable_until(&self) -> Timestamp {
        let DisputeWindows { chargeback_days, med_days } = self.disputes;
        self.paid_at.plus_days(if self.terms.method.is_card() { chargeback_days } else { med_days })
    }

    /// Until when it can be refunded or disputed.
    pub fn window_ends(&self) -> Timestamp {
        self.refundable_until().max(self.disputable_until())
    }
}

/// A refund, as asked for (interface section 4).
#[derive(Clone, Debug)]
pub struct RequestRefund {
    /// Its id.
    pub id: ObjectId,
    /// The charge.
    pub facts: ChargeFacts,
    /// The amount, centavos; all that can still be given back, where there is none.
    pub amount: Option<Centavos>,
    /// Take-backs of recipients' splits.
    pub take_back: Vec<SplitRequest>,
    /// Why, sealed.
    pub reason: Option<Sealed>,
}

/// A PIX payment that no charge waits for: its charge ended or was paid before, or has another
/// amount.
#[derive(Clone, Debug)]
pub struct UnorderedPix {
    /// Id of its repayment.
    pub id: ObjectId,
    /// The charge that it names.
    pub charge: ObjectId,
    /// The amount, centavos.
    pub amount: Centavos,
    /// End-to-end id of the payment.
    pub end_to_end_id: String,
    /// Keyed digest of account and end-to-end id, which counts once for ever.
    pub key: Fingerprint,
}

impl MerchantState {
    /// Eligibility comes before the amount (decisions, Cashout and refunds); a recipient without a
    /// split in the charge is bad input and comes before both.
    pub(super) fn request_refund(&self, wanted: RequestRefund, now: Timestamp, ids: &IdKey) -> Result<Decision> {
        let RequestRefund { id, facts, amount, take_back, reason } = wanted;
        let take_back = self.of_splits(&facts.terms, &take_back, ids)?;
        let adjusted = self.refundable(&facts, now)?;
        let (unrefunded, free) = (adjusted.unrefunded(facts.terms.amount), adjusted.free(facts.terms.amount));
        if adjusted.refunded == facts.terms.amount {
            return Err(Rejection::ChargeRefunded);
        }
        if !free.is_positive() && unrefunded.is_positive() {
            return Err(Rejection::ChargeDisputed);
        }
        let amount = amount.unwrap_or(unrefunded.min(free));
        if amount > unrefunded || !amount.is_positive() {
            return Err(Rejection::RefundExceedsCharge);
        }
        if amount > free {
            return Err(Rejection::ChargeDisputed);
        }
        if take_back.iter().map(|part| part.split.amount).sum::<Centavos>() > amount {
            return Err(Rejection::TakeBackExceedsRefund);
        }
        for TakeBackPart { split, nominal, index } in &take_back {
            let taken = adjusted.taken.get(&split.recipient).copied().unwrap_or_default();
            if taken.requested + taken.approved + split.amount > *nominal {
                return Err(Rejection::TakeBackExceedsSplit { index: *index });
            }
        }
        let take_back = take_back.into_iter().map(|part| part.split).collect();
        let (window_ends, remembered_until) = (facts.refundable_until(), Some(facts.window_ends()));
        let charge = facts.charge;
        let requested = Event::RefundRequested { id, charge, amount, take_back, window_ends, remembered_until };
        Ok(Decision { events: vec![requested], personal: reason })
    }

    /// The money moves: from the charge's own Pending, then Available, then Deficit. Commission
    /// that comes back is there to be drawn on. A refund is approved while it can be carried out,
    /// and while disputes leave enough of the charge.
    pub(super) fn approve_refund(&self, id: ObjectId, facts: &ChargeFacts, now: Timestamp) -> Result<Decision> {
        let Some(Open::Refund { charge, amount, take_back, .. }) = self.open_of(id, facts) else {
            return Err(Rejection::RefundAlreadyDecided);
        };
        let adjusted = self.refundable(facts, now)?;
        if *amount > adjusted.ungiven(facts.terms.amount) {
            return Err(Rejection::ChargeDisputed);
        }
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
        };
        let mut events = vec![approved];
        events.extend(self.recovery(available - drawn.from_available));
        Ok(Decision { events, personal: None })
    }

    pub(super) fn ask_refund_approval(&self, id: ObjectId) -> Result<Decision> {
        match self.adjustments.open(id) {
            Some(Open::Refund { .. }) => Ok(Decision::of(Event::ApprovalAsked { id, is_refund: true, reason: None })),
            _ => Err(Rejection::RefundAlreadyDecided),
        }
    }

    pub(super) fn reject_refund(&self, id: ObjectId, notes: String) -> Result<Decision> {
        let Some(Open::Refund { charge, amount, .. }) = self.adjustments.open(id) else {
            return Err(Rejection::RefundAlreadyDecided);
        };
        Ok(Decision::of(Event::RefundRejected { id, charge: *charge, amount: *amount, notes }))
    }

    /// The rail sent money back to a payer, or knows that a dispute was accepted. Confirming it
    /// again changes nothing.
    pub(super) fn repaid(&self, id: ObjectId) -> Decision {
        let Some(Open::Repayment(repayment)) = self.adjustments.open(id) else { return Decision::default() };
        let Repayment { kind, charge, method, amount, .. } = *repayment;
        Decision::of(match kind {
            RepaymentKind::Sent => Event::PayerRepaid { id, charge, method, amount, is_unordered: false },
            RepaymentKind::Unordered => Event::PayerRepaid { id, charge, method, amount, is_unordered: true },
            RepaymentKind::Taken => Event::AcceptanceConfirmed { id, charge },
        })
    }

    /// A payment that nobody asked for goes back. One that its charge waits for is no such payment.
    pub(super) fn receive_unordered_pix(&self, received: UnorderedPix) -> Result<Decision> {
        let UnorderedPix { id, charge, amount, end_to_end_id, key } = received;
        if self.open_charges.get(charge).is_some_and(|open| open.terms.amount == amount) {
            return self.confirm_pix(charge, amount, end_to_end_id);
        }
        let (id, key) = (Some(id), Some(key));
        Ok(Decision::of(Event::LatePixReceived { charge, amount, end_to_end_id, id, key }))
    }

    /// Repayments to payers that are due by `now`, oldest first, each under the id of its refund,
    /// of its dispute, or of its own for a payment that nobody asked for.
    pub fn repayments(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, Repayment)> {
        self.adjustments.repayments(now)
    }

    /// The dated part of an approved refund. Commission that comes back is there before the refund
    /// draws.
    pub(super) fn apply_refund(&mut self, event: &Event, record: &Record) {
        let Event::RefundApproved { drawn, seller_due, commission, commission_pending, commission_through, .. } = event
        else {
            return;
        };
        let to_pending = if *commission_pending { commission.total() } else { Centavos::ZERO };
        self.raise_pending(*seller_due, to_pending);
        self.draw_pending(*seller_due, drawn);
        let (repayment, drawn_pending) = (Repayment::of(event, record.effective_at), drawn.from_pending - to_pending);
        self.adjustments.approve(record.ordinal, repayment, drawn_pending, *commission_through);
    }

    pub(super) fn apply_late_pix(&mut self, event: &Event, record: &Record) {
        let (repayment, window_ends) =
            (Repayment::of(event, record.effective_at), record.effective_at.plus_days(PIX_WINDOW_DAYS));
        self.adjustments.receive_unordered(record.ordinal, repayment, window_ends);
    }

    /// Takes an amount drawn from a charge's own Pending out of its due minute.
    pub(super) fn draw_pending(&mut self, seller_due: Option<Minute>, drawn: &SellerDraw) {
        if let Some(due) = seller_due.filter(|_| drawn.from_pending.is_positive()) {
            self.pending.take(due, drawn.from_pending);
        }
    }

    /// Adds an amount that returns to a charge's own Pending to its due minute.
    pub(super) fn raise_pending(&mut self, seller_due: Option<Minute>, to_pending: Centavos) {
        if let Some(due) = seller_due {
            self.pending.add(due, to_pending);
        }
    }

    /// A recipient paid back a part of a split that a refund took back.
    pub(super) fn come_back(&mut self, debt: &PaidBack) {
        self.raise_pending(debt.seller_due, debt.to_pending);
        self.adjustments.come_back(debt.split.charge, debt.to_pending);
    }

    /// The part of a charge's own money that is still pending.
    pub(super) fn pending_of(&self, facts: &ChargeFacts, now: Timestamp) -> Centavos {
        if !is_pending(facts, now) {
            return Centavos::ZERO;
        }
        facts.pending - self.adjusted(facts.charge).drawn_pending
    }

    /// How much of a charge is taken already, if the charge is not too old for a refund.
    fn refundable(&self, facts: &ChargeFacts, now: Timestamp) -> Result<ChargeAdjustments> {
        if now > facts.refundable_until() { Err(Rejection::ChargeTooOld) } else { Ok(self.adjusted(facts.charge)) }
    }

    pub(super) fn adjusted(&self, charge: ObjectId) -> ChargeAdjustments {
        self.adjustments.charge(charge).cloned().unwrap_or_default()
    }

    /// The parts to take back, one for each recipient, in the order of first mention.
    fn of_splits(&self, terms: &Terms, requests: &[SplitRequest], ids: &IdKey) -> Result<Vec<TakeBackPart>> {
        let mut nominal: BTreeMap<RecipientNumber, Centavos> = BTreeMap::new();
        for split in terms.splits.iter().filter(|_| !requests.is_empty()) {
            *nominal.entry(split.recipient).or_default() += split.amount;
        }
        let (mut wanted, mut places): (Vec<TakeBackPart>, _) = (Vec::new(), BTreeMap::new());
        for (index, request) in requests.iter().enumerate() {
            let found = self.find_recipient(request.recipient, ids).map(|(number, _)| number);
            let found = found.and_then(|number| nominal.get(&number).map(|nominal| (number, *nominal)));
            let (recipient, nominal) = found.ok_or(Rejection::SplitRecipientNotFound { index })?;
            match places.get(&recipient).and_then(|place: &usize| wanted.get_mut(*place)) {
                Some(known) => known.split.amount += request.amount,
                None => {
                    places.insert(recipient, wanted.len());
                    wanted.push(TakeBackPart { split: Split { recipient, amount: request.amount }, nominal, index });
                }
            }
        }
        Ok(wanted)
    }

    /// The commission that a refund returns, and the sum of the charge's refunds that returned it.
    /// Each component is rounded on that sum, so that many small refunds return no more than one
    /// large one.
    fn commission_back(
        &self,
        facts: &ChargeFacts,
        adjusted: &ChargeAdjustments,
        amount: Centavos,
    ) -> (Commission, Centavos) {
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

/// The part that a refund takes back of one recipient.
struct TakeBackPart {
    split: Split,
    /// Sum of the recipient's splits of the charge.
    nominal: Centavos,
    /// Its first position in the request.
    index: usize,
}

/// The accounts that give a refunded or disputed amount: the charge's own Pending, never another
/// charge's; then Available; what is missing becomes a Deficit.
pub(super) fn drawn(amount: Centavos, pending: Centavos, available: Centavos) -> SellerDraw {
    let from_pending = amount.min(pending);
    let from_available = (amount - from_pending).min(available);
    SellerDraw { from_pending, from_available, to_deficit: amount - from_pending - from_available }
}

/// True while the charge's own money is pending.
pub(super) fn is_pending(facts: &ChargeFacts, now: Timestamp) -> bool {
    facts.seller_due.is_some_and(|due| !due.is_due(now))
}

/// The debts that a refund makes, split by split: a recipient's first splits first. Money that is
/// paid back first undoes what the refund drew from Available and Deficit; the rest goes to the
/// charge's Pending.
fn take_backs(facts: &ChargeFacts, adjusted: &ChargeAdjustments, parts: &[Split], drawn: SellerDraw) -> Vec<TakeBack> {
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
