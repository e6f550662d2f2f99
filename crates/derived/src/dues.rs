//! Due times: one time for each ledger, at which it needs attention next. Published credits lower
//! it; only the ledger's owner, which knows the exact time, raises it. So a time may be too early,
//! which costs one needless look, but never too late.

use std::collections::BTreeSet;

use ledger::recipient::first_asked_at;
use ledger::{
    AdjustmentTarget, Event, IdMap, IdSet, LedgerId, Minute, OpenCharge, Record, SubscriptionStanding, Timestamp,
};
use minicbor::{Decode, Encode};

use store::Sequence;

/// The due times of all ledgers, in order.
#[derive(Debug, Default)]
pub struct Dues {
    at: IdMap<LedgerId, Hint>,
    in_order: BTreeSet<(Timestamp, LedgerId)>,
    /// Ledgers whose owner is being asked: off the list, but not forgotten.
    inquiries: IdSet<LedgerId>,
}

/// When a ledger needs attention.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Hint {
    /// When to look.
    #[n(0)]
    at: Option<Timestamp>,
    /// The earliest credit since the owner last answered, and the sequence of the last one.
    #[n(1)]
    since: Option<(Timestamp, u64)>,
}

impl Dues {
    /// Counts a published Record, for those ledgers that have not counted it yet. `owes` says
    /// whether a recipient has a debt; a debt is paid back from every credit.
    pub fn count(
        &mut self,
        sequence: Sequence,
        record: &Record,
        is_new: impl Fn(LedgerId) -> bool,
        owes: impl Fn(LedgerId) -> bool,
    ) {
        let Some(group) = record.owner.group() else { return };
        for event in &record.events {
            match event {
                Event::ChargeOpened { .. } | Event::CardAuthorized { .. } => {
                    let at = OpenCharge::attention_after(event, record.effective_at);
                    at.into_iter().for_each(|at| self.lower(record.owner, at, sequence, &is_new));
                }
                Event::CardCaptured { terms, seller_due, splits_due, .. } => {
                    self.lower(record.owner, seller_due.start(), sequence, &is_new);
                    for split in &terms.splits {
                        let recipient = LedgerId::Recipient(group, split.recipient);
                        self.lower(recipient, splits_due.start(), sequence, &is_new);
                    }
                }
                Event::PixPaid { terms, .. } => {
                    let recipients = terms.splits.iter().map(|split| LedgerId::Recipient(group, split.recipient));
                    let debtors = recipients.filter(|recipient| owes(*recipient));
                    debtors.for_each(|debtor| self.lower(debtor, record.effective_at, sequence, &is_new));
                }
                Event::RefundApproved { take_backs, .. } => {
                    self.lower(record.owner, record.effective_at, sequence, &is_new);
                    for take_back in take_backs {
                        let recipient = LedgerId::Recipient(group, take_back.recipient);
                        self.lower(recipient, record.effective_at, sequence, &is_new);
                    }
                }
                Event::RefundFailed { seller_due, give_backs, .. } => {
                    let due = |due: Option<Minute>| due.map_or(record.effective_at, Minute::start);
                    self.lower(record.owner, due(*seller_due), sequence, &is_new);
                    give_backs.iter().for_each(|part| {
                        let recipient = LedgerId::Recipient(group, part.recipient);
                        self.lower(recipient, due(part.due.filter(|_| !owes(recipient))), sequence, &is_new);
                    });
                }
                Event::ClawbackRecovered { .. } => {
                    self.lower(LedgerId::Merchant(group), record.effective_at, sequence, &is_new);
                }
                Event::Matured { foreign_through, next_due, .. } if is_new(record.owner) => {
                    self.matured(record.owner, *next_due, *foreign_through);
                }
                event => {
                    let found = needs_attention(record, event);
                    found.into_iter().for_each(|(ledger, at)| self.lower(ledger, at, sequence, &is_new));
                }
            }
        }
    }

    /// The earliest time at which somebody needs attention.
    pub fn first(&self) -> Option<Timestamp> {
        self.in_order.first().map(|(at, _)| *at)
    }

    /// The earliest time after `now` at which somebody needs attention.
    pub fn first_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.in_order.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// Up to `most` ledgers that need attention at `now`. They are off the list until
    /// [`Dues::answered`], unless a new credit comes.
    pub fn take_due(&mut self, now: Timestamp, most: usize) -> Vec<LedgerId> {
        let due: Vec<_> = self.in_order.iter().take_while(|(at, _)| *at <= now).take(most).copied().collect();
        for (at, ledger) in &due {
            self.in_order.remove(&(*at, *ledger));
            if let Some(hint) = self.at.get_mut(ledger) {
                *hint = Hint::default();
            }
            self.inquiries.insert(*ledger);
        }
        due.into_iter().map(|(_, ledger)| ledger).collect()
    }

    /// Notes when an owner that was asked needs attention next. Records published since the
    /// question still count.
    pub fn answered(&mut self, ledger: LedgerId, next_due: Option<Timestamp>) {
        self.inquiries.remove(&ledger);
        let hint = self.at.entry(ledger).or_default();
        let at = [next_due, hint.since.map(|(at, _)| at)].into_iter().flatten().min();
        let before = std::mem::replace(&mut hint.at, at);
        if hint.at.is_none() {
            self.at.remove(&ledger);
        }
        self.reorder(ledger, before, at);
    }

    /// The due time to keep for a ledger. A ledger that is being asked is asked again after a
    /// restart.
    pub fn hint(&self, ledger: LedgerId) -> Option<Hint> {
        let hint = self.at.get(&ledger).cloned();
        if self.inquiries.contains(&ledger) {
            return Some(Hint { at: Some(Timestamp(0)), ..hint.unwrap_or_default() });
        }
        hint
    }

    /// Restores the dues of a ledger.
    pub fn restore(&mut self, ledger: LedgerId, hint: Option<Hint>) {
        if let Some(hint) = hint {
            self.reorder(ledger, None, hint.at);
            self.at.insert(ledger, hint);
        }
    }

    fn lower(&mut self, ledger: LedgerId, at: Timestamp, sequence: Sequence, is_new: &impl Fn(LedgerId) -> bool) {
        if !is_new(ledger) {
            return;
        }
        let hint = self.at.entry(ledger).or_default();
        let earliest = hint.since.map_or(at, |(earliest, _)| earliest.min(at));
        hint.since = Some((earliest, sequence.0));
        if hint.at.is_none_or(|known| at < known) {
            let before = hint.at.replace(at);
            self.reorder(ledger, before, Some(at));
        }
    }

    /// Notes that the owner booked what was due through `cut`; it had not seen the credits after
    /// that.
    fn matured(&mut self, ledger: LedgerId, next_due: Option<Timestamp>, cut: u64) {
        let hint = self.at.entry(ledger).or_default();
        let unseen = hint.since.filter(|(_, last)| *last > cut).map(|(at, _)| at);
        let at = [next_due, unseen].into_iter().flatten().min();
        hint.since = hint.since.filter(|(_, last)| *last > cut);
        let before = std::mem::replace(&mut hint.at, at);
        self.reorder(ledger, before, at);
    }

    fn reorder(&mut self, ledger: LedgerId, before: Option<Timestamp>, after: Option<Timestamp>) {
        if before == after {
            return;
        }
        if let Some(before) = before {
            self.in_order.remove(&(before, ledger));
        }
        if let Some(after) = after {
            self.in_order.insert((after, ledger));
        }
    }
}

/// The ledger that an event concerns alone, and when it needs attention.
fn needs_attention(record: &Record, event: &Event) -> Option<(LedgerId, Timestamp)> {
    let at = match event {
        Event::DisputeReleased { to_pending, seller_due, .. }
        | Event::DisputeReversed { to_pending, seller_due, .. } => {
            seller_due.filter(|_| to_pending.is_positive())?.start()
        }
        // Goodwill pays the debts of its recipient.
        Event::AdjustmentCreated { target: Some(AdjustmentTarget::Recipient(number)), .. } => {
            return Some((LedgerId::Recipient(record.owner.group()?, *number), record.effective_at));
        }
        // Money is on its way out, or to be sent.
        Event::WithdrawalApproved { .. }
        | Event::CashoutCreated { .. }
        | Event::DisputeAccepted { .. }
        | Event::LatePixReceived { .. } => record.effective_at,
        // It may come back.
        Event::WithdrawalPaid { .. } => first_asked_at(record.effective_at),
        event => SubscriptionStanding::in_event(event)?.1.due_at()?,
    };
    Some((record.owner, at))
}
