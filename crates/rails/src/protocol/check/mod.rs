//! Conformance test of a bridge, over the wire and in the test environment of its institution: the
//! rules of `docs/rails/rail.yaml`, by their numbers. It moves money of that environment.

mod charge_ends;
mod lists;
mod orders;
mod wire_calls;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Protocol;
use super::calls::BridgeCalls;
use super::capabilities::Capabilities;
use crate::shared_settings::Repeats;
use wire_calls::ObservedAnswer;

/// What is ordered from the bridge.
#[derive(Clone, Debug)]
pub struct CheckOrders {
    /// Number of a card that the test environment charges.
    pub card: String,
    /// PIX key to which transfers go, with its kind; without one none is sent.
    pub pix_key: Option<(&'static str, String)>,
}

/// Why a rule is not known to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defect {
    /// It is broken: what was seen.
    Broken(String),
    /// It could not be tried: why.
    NotTested(String),
}

/// Result of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its number.
    pub rule: u8,
    /// What it promises.
    pub promise: &'static str,
    /// What was found.
    pub result: Result<(), Defect>,
}

/// What each rule promises, in its order.
const PROMISES: [&str; 16] = [
    "the capabilities say what the bridge is",
    "nothing is answered without the secret",
    "an id that it has not is 404 not_found",
    "a malformed order leaves nothing behind",
    "an order is answered by its object",
    "GET answers as the order did",
    "a repeat does what `repeats` says",
    "another order under a known id changes nothing",
    "an order whose connection broke is there once",
    "the end of what was carried out changes nothing",
    "the end of an id that it never had closes it",
    "an order after the end of its id carries nothing out",
    "a PIX charge has a BR Code, and ends unpaid",
    "refunds are made once, and never above the payment",
    "what a list has shown once it shows again",
    "a short id has one transfer",
];

/// Tries each rule, and reports each finding at once. Returns true if no rule is broken.
pub async fn check(bridge: &Protocol, orders: CheckOrders, mut report: impl FnMut(&Finding)) -> bool {
    let mut is_sound = true;
    let mut note = |rule: u8, result: Result<(), Defect>| {
        is_sound &= !matches!(result, Err(Defect::Broken(_)));
        report(&Finding { rule, promise: PROMISES[usize::from(rule) - 1], result });
    };
    let capabilities = match wire_calls::capabilities(&bridge.calls).await {
        Ok(capabilities) => capabilities,
        Err(defect) => {
            note(1, Err(defect));
            return false;
        }
    };
    bridge.calls.known.note(capabilities.clone());
    note(1, Ok(()));
    let (ids, unanswered) = (wire_calls::Ids::new(), RefCell::default());
    let check = Check { calls: &bridge.calls, capabilities, orders, ids, unanswered };
    // Before the others, so that a lost answer is named by the rule that is about it.
    let (none, answers) = (check.says_that_it_has_none().await, check.answers_orders().await);
    note(2, check.asks_for_the_secret().await);
    note(3, none);
    note(4, check.refuses_what_is_malformed().await);
    note(5, answers);
    note(6, check.finds_what_it_took().await);
    note(7, check.repeats_as_it_says().await);
    note(8, check.refuses_another_order().await);
    note(9, check.survives_a_cut().await);
    note(10, check.keeps_what_it_carried_out().await);
    note(11, check.closes_an_id().await);
    note(12, check.carries_nothing_out_late().await);
    note(13, check.registers_pix().await);
    note(14, check.refunds_once().await);
    note(15, check.lists_the_same_again().await);
    note(16, check.keeps_short_ids_apart().await);
    is_sound
}

/// Result of a rule.
type Rule = Result<(), Defect>;

fn broken<T>(what: impl Into<String>) -> Result<T, Defect> {
    Err(Defect::Broken(what.into()))
}

fn not_tested<T>(why: impl Into<String>) -> Result<T, Defect> {
    Err(Defect::NotTested(why.into()))
}

/// A bridge that is tried.
struct Check<'a> {
    calls: &'a BridgeCalls,
    capabilities: Capabilities,
    orders: CheckOrders,
    ids: wire_calls::Ids,
    /// Kinds of requests that had no answer, as `PUT /cards/…`: the first one is a finding, and
    /// what needs another one of them is not tested.
    unanswered: RefCell<BTreeSet<String>>,
}

/// Centavos of an order.
const AMOUNT: i64 = 1_000;

impl Check<'_> {
    fn serves(&self, kind: &str) -> bool {
        self.capabilities.serves.iter().any(|served| served == kind)
    }

    fn forgets(&self) -> bool {
        self.capabilities.repeats == Repeats::Again
    }

    /// Tries a rule with each kind of order that the bridge takes. One that could not be tried with
    /// a kind is not tested: a bridge that pays a repeated payout twice would pass.
    async fn with_each_order(&self, rule: impl AsyncFn(&'static str) -> Rule) -> Rule {
        let mut lists = Vec::new();
        let lacks_key = self.serves("payout") && self.orders.pix_key.is_none();
        let mut untested = lacks_key.then(|| "payouts, for there is no PIX key to send to (--pix-key)".to_owned());
        if self.serves("card") {
            lists.push(super::cards::LIST);
        }
        if self.serves("pix") {
            lists.push(super::pix::LIST);
        }
        if self.serves("payout") && !lacks_key {
            lists.push(super::payouts::LIST);
        }
        let mut found = Ok(());
        for list in lists {
            match rule(list).await {
                Err(Defect::NotTested(why)) => untested = Some(format!("{list}: {why}")),
                result => found = found.and(result),
            }
        }
        found.and(untested.map_or(Ok(()), not_tested))
    }

    /// The body of an order.
    fn body(&self, list: &str) -> Value {
        match list {
            super::cards::LIST => json!({
                "amount": AMOUNT, "installments": 1, "method": "credit",
                "card": {
                    "number": self.orders.card, "holder_name": "FULANO DE TAL", "exp_month": 12, "exp_year": 2034,
                    "cvv": "123",
                },
            }),
            super::pix::LIST => json!({
                "amount": AMOUNT, "expires_at": wire_calls::in_an_hour(),
                "payer": { "name": "Fulano de Tal", "document": "52998224725" }, "description": "Centavo rail check",
            }),
            _ => {
                let (kind, key) = self.orders.pix_key.clone().unwrap_or_default();
                json!({ "amount": AMOUNT, "to": { "pix_key": { "type": kind, "key": key } } })
            }
        }
    }

    /// Orders under an id; gives body and answer. An order that the institution refuses tries
    /// nothing.
    async fn ordered(&self, list: &'static str, id: &str) -> Result<(Value, ObservedAnswer), Defect> {
        let body = self.body(list);
        let seen = self.put(&format!("{list}/{id}"), &body).await?;
        seen.object(list, AMOUNT)?;
        Ok((body, seen))
    }
}
