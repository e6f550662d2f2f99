//! Recurring charges: a plan's terms, the dates of its cycles, and the states of a subscription
//! (interface 2.12, 3.7).
//!
//! Dates are counted from a subscription's anchor, never from the date before, so that 31 January
//! is followed by 28 February and then by 31 March. They are dates in Sao Paulo, at the anchor's
//! time of day there.

use minicbor::{Decode, Encode};

use crate::fees::PaymentMethod;
use crate::id::ObjectId;
use crate::money::Centavos;
use crate::terms::{CardFace, Split};
use crate::time::{BEHIND_UTC_MS, DAY_MS, Timestamp, civil, day_of};

/// The most cycles of a plan, and the most grace cycles: ten years of days.
pub const CYCLES_MAX: u32 = 3_650;

/// Days after the first charge of a cycle at which a refused card is tried again.
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
    /// The card; none for PIX.
    #[n(2)]
    pub card: Option<StoredCard>,
    /// The recipients' parts of each cycle's charge.
    #[n(3)]
    pub splits: Vec<Split>,
    /// When it began: dates are counted from here.
    #[n(4)]
    pub anchor: Timestamp,
}

/// How a subscription fares, whether it is paused or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
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
    /// Its last cycle has ended.
    #[n(4)]
    Completed,
}

/// Standing of a subscription. Every event about it carries the whole standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
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
    /// Charges of this cycle so far.
    #[n(3)]
    pub attempts: u8,
    /// When this cycle was charged first.
    #[n(4)]
    pub cycle_at: Option<Timestamp>,
    /// How many cycles after the anchor the next date is.
    #[n(5)]
    pub place: u32,
    /// When the next cycle begins; none when this one is the last.
    #[n(6)]
    pub next_cycle_at: Option<Timestamp>,
    /// When this cycle's card is tried again.
    #[n(7)]
    pub retry_at: Option<Timestamp>,
    /// The charge that waits for its outcome.
    #[n(8)]
    pub open: Option<ObjectId>,
    /// When the merchant ended it.
    #[n(9)]
    pub cancelled_at: Option<Timestamp>,
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
    /// Nobody paid the PIX code.
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

    /// When it is charged next; none when it is not.
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

    /// True once nothing of it can change any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.status, SubscriptionStatus::Cancelled | SubscriptionStatus::Completed)
    }

    /// The next charge is made at `now`: of the next cycle, once its date has come, otherwise of
    /// this one again.
    pub(crate) fn charged(mut self, plan: &PlanTerms, anchor: Timestamp, now: Timestamp) -> Self {
        if self.next_cycle_at.is_none_or(|at| at > now) {
            self.attempts += 1;
            self.retry_at = None;
            return self;
        }
        if self.retry_at.take().is_some() {
            // Its time passed while nothing could be charged.
            self.status = SubscriptionStatus::PastDue;
        }
        self.cycle += 1;
        self.attempts = 1;
        self.cycle_at = Some(now);
        self.place += 1;
        let next = (self.cycle < plan.total_cycles).then(|| plan.billing_cycle.date(anchor, self.place));
        self.next_cycle_at = next;
        self
    }

    /// The charge that it waited for has ended. A refused card is tried again as long as this cycle
    /// is not over.
    pub(crate) fn after(mut self, outcome: CycleOutcome) -> Self {
        self.open = None;
        match outcome {
            CycleOutcome::Paid if self.next_cycle_at.is_none() => self.status = SubscriptionStatus::Completed,
            CycleOutcome::Paid => self.status = SubscriptionStatus::Active,
            CycleOutcome::Refused => {
                let days = RETRY_DAYS.get(usize::from(self.attempts).wrapping_sub(1));
                let retry_at = self.cycle_at.zip(days).map(|(at, days)| at.plus_days(*days));
                self.retry_at = retry_at.filter(|at| self.next_cycle_at.is_none_or(|next| *at < next));
                if self.retry_at.is_none() {
                    self.give_up();
                }
            }
            CycleOutcome::Unpaid | CycleOutcome::NotBillable => self.give_up(),
        }
        self
    }

    /// Charges go on with the next date to come. Dates that passed meanwhile are neither charged
    /// nor counted.
    pub(crate) fn resumed(mut self, plan: &PlanTerms, anchor: Timestamp, now: Timestamp) -> Self {
        self.is_paused = false;
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.give_up();
        }
        while self.next_cycle_at.is_some_and(|at| at <= now) {
            self.place += 1;
            self.next_cycle_at = Some(plan.billing_cycle.date(anchor, self.place));
        }
        self
    }

    pub(crate) fn cancelled(self, now: Timestamp) -> Self {
        Self {
            status: SubscriptionStatus::Cancelled,
            is_paused: false,
            next_cycle_at: None,
            retry_at: None,
            open: None,
            cancelled_at: Some(now),
            ..self
        }
    }

    /// This cycle was not paid.
    fn give_up(&mut self) {
        let is_last = self.next_cycle_at.is_none();
        self.status = if is_last { SubscriptionStatus::Completed } else { SubscriptionStatus::PastDue };
    }
}
