//! Plans (interface 2.12, 3.7): amounts and dates of subscriptions. A plan is never removed: its
//! tag stays unique, and its subscriptions go on.

use std::collections::BTreeMap;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::recurrence::PlanTerms;
use crate::section::{Section, TouchedSections};
use crate::{Decision, Event, ObjectId, Record, Rejection, Result};

/// A plan with an initial fee takes about 100 bytes.
const PLANS_PER_SECTION: usize = 32;

/// A plan as its merchant keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Plan {
    /// Its id.
    #[n(0)]
    pub id: ObjectId,
    /// Its tag, amount and dates.
    #[n(1)]
    pub terms: PlanTerms,
    /// True while it takes new subscriptions.
    #[n(2)]
    pub enabled: bool,
}

impl Plan {
    /// The plan that a Record creates; `None` if it creates none.
    pub fn created_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::PlanCreated { id, plan } => Some(Self { id: *id, terms: plan.clone(), enabled: true }),
            _ => None,
        })
    }
}

impl MerchantState {
    /// The plan of an id.
    pub fn plan(&self, id: ObjectId) -> Option<&Plan> {
        self.plans.get(id)
    }

    /// The plans, in the order of their creation.
    pub fn plans(&self) -> &[Plan] {
        &self.plans.list
    }

    pub(super) fn create_plan(&self, id: ObjectId, plan: PlanTerms) -> Result<Decision> {
        if self.plans.by_tag.contains_key(&folded(&plan.tag)) {
            return Err(Rejection::TagTaken);
        }
        Ok(Decision::of(Event::PlanCreated { id, plan }))
    }

    /// Existing subscriptions go on. Disabling it again changes nothing.
    pub(super) fn disable_plan(&self, id: ObjectId) -> Result<Decision> {
        match self.plan(id) {
            None => Err(Rejection::PlanNotFound),
            Some(plan) if !plan.enabled => Ok(Decision::default()),
            Some(_) => Ok(Decision::of(Event::PlanDisabled { id })),
        }
    }
}

/// A tag in small letters: tags that differ in case alone are one.
fn folded(tag: &str) -> String {
    tag.to_lowercase()
}

/// The plans, in the order of their creation, by id and by folded tag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plans {
    list: Vec<Plan>,
    by_id: BTreeMap<ObjectId, usize>,
    by_tag: BTreeMap<String, usize>,
    touched: TouchedSections,
}

impl Plans {
    pub(super) fn get(&self, id: ObjectId) -> Option<&Plan> {
        self.by_id.get(&id).and_then(|at| self.list.get(*at))
    }

    /// A new plan takes subscriptions.
    pub(super) fn create(&mut self, id: ObjectId, terms: &PlanTerms) {
        self.touched.touch((self.list.len() / PLANS_PER_SECTION) as u64);
        self.index(Plan { id, terms: terms.clone(), enabled: true });
    }

    pub(super) fn disable(&mut self, id: ObjectId) {
        let Some(at) = self.by_id.get(&id).copied() else { return };
        if let Some(plan) = self.list.get_mut(at) {
            plan.enabled = false;
            self.touched.touch((at / PLANS_PER_SECTION) as u64);
        }
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[plan, …]`; `None` if there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let page = self.list.chunks(PLANS_PER_SECTION).nth(usize::try_from(number).ok()?)?;
        Some(minicbor::to_vec(page).expect("writing into memory cannot fail"))
    }

    /// Sections come in order, and all but the last are full.
    pub(super) fn read_section(&mut self, number: u64, bytes: &[u8]) -> Result<(), Error> {
        if self.list.len() as u64 != number * PLANS_PER_SECTION as u64 {
            return Err(Error::message("plans are counted without a gap"));
        }
        let page: Vec<Plan> = minicbor::decode(bytes)?;
        page.into_iter().for_each(|plan| self.index(plan));
        Ok(())
    }

    fn index(&mut self, plan: Plan) {
        let at = self.list.len();
        self.by_id.insert(plan.id, at);
        self.by_tag.insert(folded(&plan.terms.tag), at);
        self.list.push(plan);
    }
}
