//! Subscriptions: charges of a plan, made by the schedule on their dates. The state has the
//! subscriptions that go on; those that have ended are only in the journal.
//!
//! At most one charge of a subscription waits for its outcome. The Record that opens a charge also
//! counts it, so a crash cannot make a second charge for the same subscription, cycle and attempt.
//! The Record of the outcome moves the subscription on.

use std::collections::{BTreeMap, BTreeSet};

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::{MerchantState, SplitPart, SplitRequest, SplitRule};
use crate::recurrence::{CycleOutcome, PlanTerms, SplitPercent, SubscriptionTerms, UnpaidReason};
use crate::section::{Section, TouchedSections};
use crate::{
    Decision, Event, IdKey, ObjectId, PaymentMethod, RailName, RecipientStatus, Rejection, Result, Sealed, Split,
    StoredCard, SubscriptionStanding, Terms, Timestamp,
};

/// Shortest and longest life of a cycle's PIX code, days. In between it lives until the next
/// cycle's date.
const PIX_DAYS: (u16, u16) = (1, 30);

/// A change that a merchant asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionChange {
    /// Charge nothing for now.
    Pause,
    /// Go on with the next date to come.
    Resume,
    /// End it.
    Cancel,
}

/// Request to begin a subscription.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// Its id.
    pub id: ObjectId,
    /// The plan.
    pub plan: ObjectId,
    /// Credit card or PIX.
    pub method: PaymentMethod,
    /// The stored card, read from the journal; none for PIX.
    pub card: Option<StoredCard>,
    /// Recipients' parts of every cycle's charge.
    pub splits: Vec<SplitRule>,
    /// The payer.
    pub customer: Sealed,
}

/// A subscription that goes on.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Subscription {
    /// Plan, method, card and splits.
    #[n(0)]
    pub terms: SubscriptionTerms,
    /// Its cycle, its next date, and the charge that it waits for.
    #[n(1)]
    pub standing: SubscriptionStanding,
    /// The ordinal of the merchant's Record that began it.
    #[n(2)]
    pub begun: u64,
}

impl Subscription {
    /// The stored card that it is charged to; none for PIX.
    pub fn card(&self) -> Option<&StoredCard> {
        self.standing.card_of(&self.terms)
    }
}

impl MerchantState {
    /// The subscriptions that go on, by id.
    pub fn subscriptions(&self) -> &BTreeMap<ObjectId, Subscription> {
        &self.subscriptions.by_id
    }

    /// The subscriptions that are to be charged by `now`, oldest date first.
    pub fn subscriptions_due(&self, now: Timestamp) -> impl Iterator<Item = (ObjectId, &Subscription)> {
        let due = self.subscriptions.due.iter().take_while(move |(at, _)| *at <= now);
        due.filter_map(|(_, id)| self.subscriptions.by_id.get(id).map(|subscription| (*id, subscription)))
    }

    /// The splits are checked against the plan's amount: no cycle charges less. Splits by percent
    /// are checked against the total with the initial fee too.
    pub(super) fn subscribe(&self, wanted: Subscribe, now: Timestamp, ids: &IdKey) -> Result<Decision> {
        let Subscribe { id, plan: plan_id, method, card, splits, customer } = wanted;
        card.iter().try_for_each(|card| self.deleted_cards.refuse(card.id))?;
        let plan = self.plan(plan_id).ok_or(Rejection::PlanNotFound)?;
        let of_total = |total| splits.iter().map(|rule| rule.of(total)).collect::<Vec<SplitRequest>>();
        let charge = self.terms(plan.terms.amount, method, 1, &of_total(plan.terms.amount), ids)?;
        let percents: Vec<_> = splits.iter().zip(0..).filter_map(|(rule, index)| rule.percent(index)).collect();
        if let Some(fee) = plan.terms.fee_of(1).filter(|_| !percents.is_empty()) {
            let total = plan.terms.amount + fee;
            self.terms(total, method, 1, &of_total(total), ids)?;
        }
        if !plan.enabled {
            return Err(Rejection::PlanDisabled);
        }
        let terms = SubscriptionTerms { plan: plan_id, method, card, splits: charge.splits, anchor: now, percents };
        let standing = SubscriptionStanding::begun(&plan.terms, now);
        let created = Event::SubscriptionCreated { id, terms, standing };
        Ok(Decision { events: vec![created], personal: Some(customer) })
    }

    /// The intent of the next charge, if one is due; one Record has the charge and counts the
    /// cycle. A cycle whose splits the account may not charge any more passes without a charge.
    pub(super) fn bill_subscription(
        &self,
        id: ObjectId,
        charge: ObjectId,
        (payer, rail): (Sealed, Option<RailName>),
        now: Timestamp,
    ) -> Result<Decision> {
        let Some(subscription) = self.subscriptions.by_id.get(&id) else {
            return Ok(Decision::default());
        };
        let Subscription { terms, standing, .. } = subscription;
        let Some(plan) = self.plan(terms.plan).map(|plan| &plan.terms) else { return Err(Rejection::PlanNotFound) };
        if standing.due_at().is_none_or(|at| at > now) {
            return Ok(Decision::default());
        }
        let standing = standing.clone().charged(plan, terms.anchor, now);
        let cycle = standing.counts.as_ref().map_or(standing.cycle, |counts| counts.charged);
        let charged = match self.cycle_terms(terms, plan, cycle) {
            Ok(charged) => charged,
            Err(rejection) => {
                let outcome = CycleOutcome::NotBillable;
                let standing = standing.after(outcome, Some(reason_of(&rejection)));
                return Ok(Decision::of(Event::SubscriptionAdvanced { id, charge: None, outcome, standing }));
            }
        };
        let card = subscription.card().map(|card| card.face.clone());
        let next = plan.billing_cycle.date(terms.anchor, standing.place);
        let (shortest, longest) = (now.plus_days(PIX_DAYS.0), now.plus_days(PIX_DAYS.1));
        let expires_at = card.is_none().then(|| next.max(shortest).min(longest));
        let standing = SubscriptionStanding { open: Some(charge), ..standing };
        let opened = Event::ChargeOpened { charge, terms: charged, card, expires_at, rail };
        let billed = Event::SubscriptionBilled { id, charge, standing };
        Ok(Decision { events: vec![opened, billed], personal: Some(payer) })
    }

    /// Adds to the Record of a charge's outcome how the subscription goes on that waits for it.
    /// `given_up` says why a refused charge is not tried again.
    pub(super) fn advancing(
        &self,
        mut decision: Decision,
        charge: ObjectId,
        outcome: CycleOutcome,
        given_up: Option<UnpaidReason>,
    ) -> Decision {
        if let Some((id, subscription)) = self.subscriptions.of_charge(charge) {
            let standing = subscription.standing.clone().after(outcome, given_up);
            decision.events.push(Event::SubscriptionAdvanced { id, charge: Some(charge), outcome, standing });
        }
        decision
    }

    /// Asking for the present state changes nothing. A charge that waits for its outcome goes on.
    pub(super) fn change_subscription(
        &self,
        id: ObjectId,
        change: SubscriptionChange,
        now: Timestamp,
    ) -> Result<Decision> {
        let subscription = self.subscriptions.by_id.get(&id).ok_or(Rejection::SubscriptionEnded)?;
        let (terms, standing) = (&subscription.terms, subscription.standing.clone());
        let plan = self.plan(terms.plan).ok_or(Rejection::PlanNotFound)?;
        Ok(match change {
            SubscriptionChange::Pause if standing.is_paused => Decision::default(),
            SubscriptionChange::Pause => Decision::of(Event::SubscriptionPaused {
                id,
                standing: SubscriptionStanding { is_paused: true, ..standing },
            }),
            SubscriptionChange::Resume if !standing.is_paused => Decision::default(),
            SubscriptionChange::Resume => {
                let unpaid = standing.unpaid_cycles();
                let standing = standing.resumed(&plan.terms, terms.anchor, now);
                let resumed = Event::SubscriptionResumed { id, standing: standing.clone() };
                let outcome = CycleOutcome::Unpaid;
                let given_up = (standing.unpaid_cycles() > unpaid).then_some(Event::SubscriptionAdvanced {
                    id,
                    charge: None,
                    outcome,
                    standing,
                });
                Decision { events: [resumed].into_iter().chain(given_up).collect(), personal: None }
            }
            SubscriptionChange::Cancel => {
                Decision::of(Event::SubscriptionCancelled { id, standing: standing.cancelled(now) })
            }
        })
    }

    /// Charges the next cycles to another stored card, at the same dates. A cycle whose first card
    /// was refused is tried at once. A charge that waits for its outcome goes on.
    pub(super) fn change_subscription_card(&self, id: ObjectId, card: StoredCard, now: Timestamp) -> Result<Decision> {
        let subscription = self.subscriptions.by_id.get(&id).ok_or(Rejection::SubscriptionEnded)?;
        self.deleted_cards.refuse(card.id)?;
        match subscription.card() {
            None => Err(Rejection::SubscriptionByPix),
            Some(known) if known.id == card.id => Ok(Decision::default()),
            Some(_) => {
                let standing = subscription.standing.clone().with_card(card, now);
                Ok(Decision::of(Event::SubscriptionCardChanged { id, standing }))
            }
        }
    }

    /// The terms of one cycle's charge, at the fees of now.
    fn cycle_terms(&self, terms: &SubscriptionTerms, plan: &PlanTerms, cycle: u32) -> Result<Terms> {
        self.takes_charges()?;
        if !terms.splits.is_empty() && !self.settings.split_enabled {
            return Err(Rejection::SplitNotEnabled);
        }
        let is_active = |split: &Split| {
            self.recipient(split.recipient).is_some_and(|recipient| recipient.status == RecipientStatus::Active)
        };
        if let Some(index) = terms.splits.iter().position(|split| !is_active(split)) {
            return Err(Rejection::SplitRecipientNotActive { index });
        }
        let fee = plan.fee_of(cycle);
        let splits = terms.splits_of(plan.amount + fee.unwrap_or_default());
        self.quote(plan.amount, fee, terms.method, 1, splits)
    }
}

impl SplitRule {
    /// The share that a subscription stores of the split at `index`; `None` for one by amount.
    fn percent(self, index: u32) -> Option<SplitPercent> {
        match self.part {
            SplitPart::Amount(_) => None,
            SplitPart::Percent(share) => Some(SplitPercent { index, share }),
        }
    }
}

/// Why a cycle could not be charged.
fn reason_of(rejection: &Rejection) -> UnpaidReason {
    match rejection {
        Rejection::SplitNotEnabled => UnpaidReason::SplitNotEnabled,
        Rejection::SplitRecipientNotActive { .. } => UnpaidReason::RecipientNotActive,
        _ => UnpaidReason::NotBillable,
    }
}

/// The subscriptions that go on: by id, by their next date, by the charge that they wait for, and
/// by section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subscriptions {
    by_id: BTreeMap<ObjectId, Subscription>,
    due: BTreeSet<(Timestamp, ObjectId)>,
    by_charge: BTreeMap<ObjectId, ObjectId>,
    by_section: BTreeSet<(u64, ObjectId)>,
    touched: TouchedSections,
}

/// Subscriptions that were begun one after the other share a section. One without splits takes
/// about 120 bytes.
const ORDINALS_PER_SECTION: u64 = 32;

impl Subscriptions {
    /// Keeps one that the Record of this ordinal began.
    pub(super) fn begin(
        &mut self,
        id: ObjectId,
        terms: &SubscriptionTerms,
        standing: &SubscriptionStanding,
        ordinal: u64,
    ) {
        let subscription = Subscription { terms: terms.clone(), standing: standing.clone(), begun: ordinal };
        self.touched.touch(section_of(&subscription));
        self.index(id, subscription);
    }

    /// Moves a subscription on; one that has ended is forgotten.
    pub(super) fn set(&mut self, id: ObjectId, standing: &SubscriptionStanding) {
        let Some(mut subscription) = self.by_id.remove(&id) else { return };
        self.touched.touch(section_of(&subscription));
        self.by_section.remove(&(section_of(&subscription), id));
        if let Some(at) = subscription.standing.due_at() {
            self.due.remove(&(at, id));
        }
        if let Some(charge) = subscription.standing.open {
            self.by_charge.remove(&charge);
        }
        subscription.standing = standing.clone();
        if !standing.has_ended() {
            self.index(id, subscription);
        }
    }

    /// The first date on which a subscription is to be charged.
    pub(super) fn first_due(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| *at)
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[id, subscription], …]`; `None` if there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let (first, last) = ((number, ObjectId(0)), (number, ObjectId(u128::MAX)));
        let ids = self.by_section.range(first..=last).map(|(_, id)| id);
        let all: Vec<_> = ids.filter_map(|id| self.by_id.get(id).map(|subscription| (id, subscription))).collect();
        (!all.is_empty()).then(|| minicbor::to_vec(all).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let all: Vec<(ObjectId, Subscription)> = minicbor::decode(bytes)?;
        all.into_iter().for_each(|(id, subscription)| self.index(id, subscription));
        Ok(())
    }

    fn of_charge(&self, charge: ObjectId) -> Option<(ObjectId, &Subscription)> {
        let id = self.by_charge.get(&charge)?;
        self.by_id.get(id).map(|subscription| (*id, subscription))
    }

    fn index(&mut self, id: ObjectId, subscription: Subscription) {
        self.due.extend(subscription.standing.due_at().map(|at| (at, id)));
        self.by_charge.extend(subscription.standing.open.map(|charge| (charge, id)));
        self.by_section.insert((section_of(&subscription), id));
        self.by_id.insert(id, subscription);
    }
}

fn section_of(subscription: &Subscription) -> u64 {
    subscription.begun / ORDINALS_PER_SECTION
}
