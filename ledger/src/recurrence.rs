//! Recurring charges: a plan's terms, the dates of its cycles, and the states of a subscription
//! (interface 2.12, 3.7).
//!
//! Dates are counted from a subscription's anchor, never from the date before, so that 31 January
//! is followed by 28 February and then by 31 March. They are dates in Sao Paulo, at the anchor's
//! time of day there.

use minicbor::{Decode, Encode};
use strum::IntoStaticStr;

use crate::terms::{CardFace, Split};
use crate::time::{BEHIND_UTC_MS, DAY_MS, civil, day_of};
use crate::{Centavos, ObjectId, PaymentMethod, Rate, Timestamp};

/// The most cycles of a plan, and the most grace cycles: ten years of days.
pub const CYCLES_MAX: u32 = 3_650;

/// Days after the first charge of a cycle at which a refused card is tried again, also past the
/// date of the next cycle.
pub const RETRY_DAYS: [u16; 3] = [1, 3, 5];

/// How often a plan charges (`billingCycle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum BillingCycle {
    /// Every day.
    #[n(0)]
    Daily,
    /// Every 7 days.
    #[n(1)]
    Weekly,
    /// Every month.
    #[n(2)]
    Monthly,
    /// Every 3 months.
    #[n(3)]
    Quarterly,
    /// Every 6 months.
    #[n(4)]
    Biannual,
    /// Every 12 months.
    #[n(5)]
    Annual,
}

impl BillingCycle {
    /// The date that is `count` cycles after the anchor: the same day of the month, or the month's
    /// last when it has no such day.
    ///
    /// ```
    /// use ledger::recurrence::BillingCycle;
    /// use ledger::time::Timestamp;
    ///
    /// // Noon of 31 January 2026: a month later it is 28 February, and then 31 March.
    /// let anchor = Timestamp(1_769_871_600_000);
    /// assert_eq!(BillingCycle::Monthly.date(anchor, 1), anchor.plus_days(28));
    /// assert_eq!(BillingCycle::Monthly.date(anchor, 2), anchor.plus_days(28 + 31));
    /// ```
    pub fn date(self, anchor: Timestamp, count: u32) -> Timestamp {
        let local_ms = anchor.0 - BEHIND_UTC_MS;
        let (day, time_ms) = (local_ms.div_euclid(DAY_MS), local_ms.rem_euclid(DAY_MS));
        let count = i64::from(count);
        let day = match self {
            Self::Daily => day + count,
            Self::Weekly => day + 7 * count,
            Self::Monthly => months_later(day, count),
            Self::Quarterly => months_later(day, 3 * count),
            Self::Biannual => months_later(day, 6 * count),
            Self::Annual => months_later(day, 12 * count),
        };
        Timestamp(day * DAY_MS + time_ms + BEHIND_UTC_MS)
    }
}

/// The day this number of months later; days are counted from 1970-01-01.
fn months_later(day: i64, count: i64) -> i64 {
    let (year, month, day_of_month) = civil(day);
    let months = year * 12 + (month - 1) + count;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let first = day_of(year, month);
    let next = if month == 12 { day_of(year + 1, 1) } else { day_of(year, month + 1) };
    first + day_of_month.min(next - first) - 1
}

/// Additional fee of the first cycles (interface 2.12).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct InitialFee {
    /// Its description.
    #[n(0)]
    pub description: String,
    /// Centavos a cycle.
    #[n(1)]
    pub amount: Centavos,
    /// How many of the first charges carry it.
    #[n(2)]
    pub cycles: u32,
}

/// Terms of a plan; they never change.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PlanTerms {
    /// Its name, unique in the account.
    #[n(0)]
    pub tag: String,
    /// Centavos a cycle.
    #[n(1)]
    pub amount: Centavos,
    /// How often it charges.
    #[n(2)]
    pub billing_cycle: BillingCycle,
    /// How many cycles it charges, at least 1.
    #[n(3)]
    pub total_cycles: u32,
    /// Cycles that pass before the first charge; they are not among the total.
    #[n(4)]
    pub grace_cycles: u32,
    /// Additional fee of the first charges.
    #[n(5)]
    pub initial_fee: Option<InitialFee>,
}

impl PlanTerms {
    /// Additional fee of a cycle, counted from 1.
    pub fn fee_of(&self, cycle: u32) -> Option<Centavos> {
        self.initial_fee.as_ref().filter(|fee| cycle <= fee.cycles).map(|fee| fee.amount)
    }
}

/// A card that was stored with the acquirer.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct StoredCard {
    /// The `card_token`: under this id stands what the acquirer calls it.
    #[n(0)]
    pub id: ObjectId,
    /// The face of the card: the part that may be stored.
    #[n(1)]
    pub face: CardFace,
}

/// Terms of a subscription; they never change.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SubscriptionTerms {
    /// The plan.
    #[n(0)]
    pub plan: ObjectId,
    /// Credit card or PIX.
    #[n(1)]
    pub method: PaymentMethod,
    /// The card with which it began; none for PIX.
    #[n(2)]
    pub card: Option<StoredCard>,
    /// The recipients' parts of each cycle's charge; of a cycle without initial fee, where they are
    /// by percent.
    #[n(3)]
    pub splits: Vec<Split>,
    /// When it began: dates are counted from here.
    #[n(4)]
    pub anchor: Timestamp,
    /// The splits that are a share of each cycle's total, by their places.
    #[cbor(n(5), default, skip_if = "Vec::is_empty")]
    pub percents: Vec<SplitPercent>,
}

/// Split of a subscription that is a share of each cycle's total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct SplitPercent {
    /// Position among the splits, from 0.
    #[n(0)]
    pub index: u32,
    /// The share, above 0 %.
    #[n(1)]
    pub share: Rate,
}

impl SubscriptionTerms {
    /// The splits of a cycle of `total`; a share is rounded half up to the centavo, by itself.
    pub fn splits_of(&self, total: Centavos) -> Vec<Split> {
        let mut splits = self.splits.clone();
        for SplitPercent { index, share } in &self.percents {
            if let Some(split) = splits.get_mut(*index as usize) {
                split.amount = share.of(total);
            }
        }
        splits
    }
}

/// How a subscription fares, whether it is paused or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[cbor(index_only)]
#[strum(serialize_all = "snake_case")]
pub enum SubscriptionStatus {
    /// No cycle was paid yet.
    #[default]
    #[n(0)]
    Pending,
    /// The last cycle that ended was paid.
    #[n(1)]
    Active,
    /// The last cycle that ended was not paid.
    #[n(2)]
    PastDue,
    /// The merchant ended it.
    #[n(3)]
    Cancelled,
    /// Every cycle was paid.
    #[n(4)]
    Completed,
}

/// Why a cycle was not paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, IntoStaticStr)]
#[cbor(index_only)]
#[strum(serialize_all = "snake_case")]
pub enum UnpaidReason {
    /// The card was refused, and all its tries are over.
    #[n(0)]
    CardRefused,
    /// Nobody paid the PIX code, or it was cancelled.
    #[n(1)]
    PixNotPaid,
    /// The account may not split any more.
    #[n(2)]
    SplitNotEnabled,
    /// A recipient of its splits is not active any more.
    #[n(3)]
    RecipientNotActive,
    /// The account's options or fees no longer allow these terms.
    #[n(4)]
    NotBillable,
}

/// Next try of a cycle whose card was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct CycleRetry {
    /// The cycle, counted from 1.
    #[n(0)]
    pub cycle: u32,
    /// When the cycle was charged first.
    #[n(1)]
    pub first_at: Timestamp,
    /// When it is tried again.
    #[n(2)]
    pub at: Timestamp,
}

impl CycleRetry {
    /// The next try of a cycle after `last`; `None` when all are over.
    fn after(cycle: u32, first_at: Timestamp, last: Timestamp) -> Option<Self> {
        let tries = RETRY_DAYS.map(|days| first_at.plus_days(days));
        tries.into_iter().find(|at| *at > last).map(|at| Self { cycle, first_at, at })
    }
}

/// The cycles of a subscription by how they ended, and those that are tried again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct CycleCounts {
    /// Cycles that were paid.
    #[n(0)]
    pub paid: u32,
    /// Cycles that ended without a payment.
    #[n(1)]
    pub unpaid: u32,
    /// Why the last cycle that ended was not paid; `None` when it was.
    #[n(2)]
    pub reason: Option<UnpaidReason>,
    /// The cycle that was charged last; `attempts` and `cycle_at` are its.
    #[n(3)]
    pub charged: u32,
    /// Cycles that are tried again, oldest first.
    #[n(4)]
    pub retries: Vec<CycleRetry>,
    /// The cycle whose card was refused at its last try, while nothing was charged since: another
    /// card is tried for it.
    #[n(5)]
    pub given_up: Option<Box<CycleRetry>>,
}

/// Standing of a subscription. Every event about it carries the whole standing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SubscriptionStanding {
    /// How it fares.
    #[n(0)]
    pub status: SubscriptionStatus,
    /// True while nothing is charged, because the merchant said so.
    #[n(1)]
    pub is_paused: bool,
    /// The last cycle that began, counted from 1; 0 before the first.
    #[n(2)]
    pub cycle: u32,
    /// Charges so far of the cycle that was charged last.
    #[n(3)]
    pub attempts: u8,
    /// When the cycle that was charged last was charged first.
    #[n(4)]
    pub cycle_at: Option<Timestamp>,
    /// How many cycles after the anchor the next date is.
    #[n(5)]
    pub place: u32,
    /// When the next cycle begins; `None` if this one is the last.
    #[n(6)]
    pub next_cycle_at: Option<Timestamp>,
    /// When a card that was refused is tried again: the first of `counts.retries`.
    #[n(7)]
    pub retry_at: Option<Timestamp>,
    /// The charge that waits for its outcome.
    #[n(8)]
    pub open: Option<ObjectId>,
    /// When the merchant ended it.
    #[n(9)]
    pub cancelled_at: Option<Timestamp>,
    /// Its cycles by how they ended. `None` before the first charge.
    #[n(10)]
    pub counts: Option<CycleCounts>,
    /// The stored card that took the place of that of its terms; `None` while none did.
    #[n(11)]
    pub card: Option<Box<StoredCard>>,
}

/// How a charge of a subscription ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum CycleOutcome {
    /// Paid or captured.
    #[n(0)]
    Paid,
    /// The card was refused.
    #[n(1)]
    Refused,
    /// Nobody paid the PIX code, or all tries of a card passed during a pause.
    #[n(2)]
    Unpaid,
    /// There was no charge: the account may not split any more, or its options no longer allow
    /// these splits.
    #[n(3)]
    NotBillable,
}

impl SubscriptionStanding {
    /// A subscription that has just begun.
    pub fn begun(plan: &PlanTerms, anchor: Timestamp) -> Self {
        let place = plan.grace_cycles;
        Self { place, next_cycle_at: Some(plan.billing_cycle.date(anchor, place)), ..Self::default() }
    }

    /// When it is charged next; `None` if it is not.
    pub fn next_charge_at(&self) -> Option<Timestamp> {
        if self.is_paused || self.has_ended() {
            return None;
        }
        [self.retry_at, self.next_cycle_at].into_iter().flatten().min()
    }

    /// When it needs attention; while a charge waits for its outcome, that is the charge's.
    pub fn due_at(&self) -> Option<Timestamp> {
        self.next_charge_at().filter(|_| self.open.is_none())
    }

    /// Cycles that were paid.
    pub fn paid_cycles(&self) -> u32 {
        self.counts.as_ref().map_or(0, |counts| counts.paid)
    }

    /// Cycles that ended without a payment.
    pub fn unpaid_cycles(&self) -> u32 {
        self.counts.as_ref().map_or(0, |counts| counts.unpaid)
    }

    /// Why the last cycle that ended was not paid; `None` when it was, and before.
    pub fn unpaid_reason(&self) -> Option<UnpaidReason> {
        self.counts.as_ref().and_then(|counts| counts.reason)
    }

    /// True when the cycle that was charged last is tried again.
    pub fn is_retried(&self) -> bool {
        self.counts.as_ref().is_some_and(|counts| counts.retries.iter().any(|retry| retry.cycle == counts.charged))
    }

    /// True once nothing of it can change any more: cancelled, or its last cycle has ended, paid or
    /// not.
    pub fn has_ended(&self) -> bool {
        match self.status {
            SubscriptionStatus::Cancelled | SubscriptionStatus::Completed => true,
            _ => self.next_cycle_at.is_none() && self.retry_at.is_none() && self.open.is_none(),
        }
    }

    /// The stored card that it is charged to; none for PIX.
    pub fn card_of<'a>(&'a self, terms: &'a SubscriptionTerms) -> Option<&'a StoredCard> {
        self.card.as_deref().or(terms.card.as_ref())
    }

    /// It is charged to another card from `now` on. Cycles that are tried again are tried at once,
    /// and so is the cycle that was given up last; of a paused one nothing is tried.
    pub(crate) fn with_card(mut self, card: StoredCard, now: Timestamp) -> Self {
        self.card = Some(Box::new(card));
        if self.is_paused {
            return self;
        }
        let Some(mut counts) = self.counts.take() else { return self };
        if let Some(given_up) = counts.given_up.take() {
            counts.unpaid -= 1;
            counts.retries.push(CycleRetry { at: now, ..*given_up });
        }
        counts.retries.iter_mut().for_each(|retry| retry.at = retry.at.min(now));
        counts.retries.sort_by_key(|retry| (retry.at, retry.cycle));
        self.with(counts)
    }

    /// The next charge is made at `now`: of a cycle whose card was refused, once the time of its
    /// next try has come, otherwise of the next cycle.
    pub(crate) fn charged(mut self, plan: &PlanTerms, anchor: Timestamp, now: Timestamp) -> Self {
        let mut counts = self.counts.take().unwrap_or_default();
        counts.given_up = None;
        let is_retry = self.retry_at.is_some_and(|at| self.next_cycle_at.is_none_or(|next| at <= next));
        let again = counts.retries.iter().position(|retry| is_retry && Some(retry.at) == self.retry_at);
        match again.map(|place| counts.retries.remove(place)) {
            Some(CycleRetry { cycle, first_at, .. }) => {
                // Tries whose time passed while nothing could be charged are over.
                let passed = RETRY_DAYS.iter().filter(|days| first_at.plus_days(**days) <= now).count();
                self.attempts = 1 + u8::try_from(passed).unwrap_or(u8::MAX);
                (self.cycle_at, counts.charged) = (Some(first_at), cycle);
            }
            None => {
                self.cycle += 1;
                (self.attempts, self.cycle_at, counts.charged) = (1, Some(now), self.cycle);
                self.place += 1;
                let is_more = self.cycle < plan.total_cycles;
                self.next_cycle_at = is_more.then(|| plan.billing_cycle.date(anchor, self.place));
            }
        }
        self.with(counts)
    }

    /// The charge that it waited for has ended. A refused card is tried again on the cycle's own
    /// days. `reason` says why there was no charge ([`CycleOutcome::NotBillable`]), or why a
    /// refused card is not tried again.
    pub(crate) fn after(mut self, outcome: CycleOutcome, reason: Option<UnpaidReason>) -> Self {
        self.open = None;
        let mut counts = self.counts.take().unwrap_or_default();
        let again = || {
            let (first_at, tried) = (self.cycle_at?, usize::from(self.attempts).checked_sub(1)?);
            let at = first_at.plus_days(*RETRY_DAYS.get(tried)?);
            Some(CycleRetry { cycle: counts.charged, first_at, at })
        };
        match (outcome, again()) {
            (CycleOutcome::Paid, _) => {
                counts.paid += 1;
                counts.reason = None;
                self.status = SubscriptionStatus::Active;
            }
            (CycleOutcome::Refused, Some(retry)) if reason.is_none() => {
                counts.retries.push(retry);
                counts.retries.sort_by_key(|retry| (retry.at, retry.cycle));
            }
            (CycleOutcome::Refused, _) => {
                let cycle = counts.charged;
                counts.given_up = self.cycle_at.map(|first_at| Box::new(CycleRetry { cycle, first_at, at: first_at }));
                self.give_up(&mut counts, UnpaidReason::CardRefused);
            }
            (CycleOutcome::Unpaid, _) => self.give_up(&mut counts, UnpaidReason::PixNotPaid),
            (CycleOutcome::NotBillable, _) => self.give_up(&mut counts, reason.unwrap_or(UnpaidReason::NotBillable)),
        }
        self.with(counts).ended()
    }

    /// Charges go on with the next date to come. Dates that passed meanwhile are neither charged
    /// nor counted, and tries whose time has passed are over.
    pub(crate) fn resumed(mut self, plan: &PlanTerms, anchor: Timestamp, now: Timestamp) -> Self {
        self.is_paused = false;
        let mut counts = self.counts.take().unwrap_or_default();
        let (passed, mut retries): (Vec<_>, Vec<_>) = counts.retries.drain(..).partition(|retry| retry.at <= now);
        for CycleRetry { cycle, first_at, .. } in passed {
            match CycleRetry::after(cycle, first_at, now) {
                Some(retry) => retries.push(retry),
                None => self.give_up(&mut counts, UnpaidReason::CardRefused),
            }
        }
        retries.sort_by_key(|retry| (retry.at, retry.cycle));
        counts.retries = retries;
        while self.next_cycle_at.is_some_and(|at| at <= now) {
            self.place += 1;
            self.next_cycle_at = Some(plan.billing_cycle.date(anchor, self.place));
        }
        self.with(counts).ended()
    }

    pub(crate) fn cancelled(self, now: Timestamp) -> Self {
        Self {
            status: SubscriptionStatus::Cancelled,
            is_paused: false,
            next_cycle_at: None,
            retry_at: None,
            open: None,
            cancelled_at: Some(now),
            counts: self.counts.map(|counts| CycleCounts { retries: Vec::new(), ..counts }),
            ..self
        }
    }

    /// A cycle was not paid.
    fn give_up(&mut self, counts: &mut CycleCounts, reason: UnpaidReason) {
        counts.unpaid += 1;
        counts.reason = Some(reason);
        self.status = SubscriptionStatus::PastDue;
    }

    fn with(mut self, counts: CycleCounts) -> Self {
        self.retry_at = counts.retries.first().map(|retry| retry.at);
        self.counts = Some(counts);
        self
    }

    /// The last cycle may have ended: the subscription is completed only if every cycle was paid.
    fn ended(mut self) -> Self {
        if self.has_ended() && self.status != SubscriptionStatus::Cancelled {
            let is_whole = self.unpaid_cycles() == 0;
            self.is_paused = false;
            self.status = if is_whole { SubscriptionStatus::Completed } else { SubscriptionStatus::PastDue };
        }
        self
    }
}
