//! Subscription as JSON (interface 3.7).

use actors::engine::{Engine, SubscriptionRow};
use ledger::recurrence::{SplitPercent, SubscriptionStatus, SubscriptionTerms};
use ledger::{GroupNumber, Payer, SubscriptionStanding};
use serde::Serialize;
use utoipa::ToSchema;
use wire::mask;

use crate::time;
use crate::views::charge::SplitView;
use crate::views::labels::LabelsView;

/// A subscription.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionView {
    /// Its id.
    id: String,
    /// Its plan.
    plan_id: String,
    /// Who pays.
    customer: CustomerView,
    /// `credit_card` or `pix`.
    #[schema(pattern = "^(credit_card|pix)$")]
    payment_method: &'static str,
    /// The stored card; null for PIX.
    #[schema(required, format = "uuid")]
    card_token: Option<String>,
    /// The recipients' parts of every cycle's charge.
    splits: Vec<CycleSplitView>,
    #[serde(flatten)]
    labels: LabelsView,
    /// `pending` (no cycle was paid yet), `active`, `past_due`, `paused`, `cancelled` or
    /// `completed`.
    #[schema(pattern = "^(active|pending|past_due|paused|cancelled|completed)$")]
    pub status: &'static str,
    /// The last cycle that began, from 1; 0 before the first.
    cycle: u32,
    /// Cycles that were paid.
    paid_cycles: u32,
    /// Cycles that ended without a payment. A subscription with such cycles ends as `past_due`.
    unpaid_cycles: u32,
    /// Why the last cycle that ended was not paid: `card_refused` (after its last try),
    /// `pix_not_paid`, `split_not_enabled`, `recipient_not_active` or `not_billable`; null when it
    /// was paid.
    #[schema(required, pattern = "^(card_refused|pix_not_paid|split_not_enabled|recipient_not_active|not_billable)$")]
    unpaid_reason: Option<&'static str>,
    /// When it is charged next; null when it is not.
    #[schema(required)]
    next_charge_at: Option<String>,
    /// When it began: dates are counted from here.
    started_at: String,
    /// When it was cancelled.
    #[schema(required)]
    cancelled_at: Option<String>,
}

/// Who pays a subscription, or stored a card.
#[derive(Debug, Serialize, ToSchema)]
pub struct CustomerView {
    /// Full name.
    name: String,
    /// E-mail address of the customer.
    #[schema(required, example = "joao@example.com")]
    email: Option<String>,
    /// CPF, masked.
    document: String,
    /// Digits only.
    #[schema(required, example = "11987654321")]
    phone: Option<String>,
}

/// A recipient's part of every cycle's charge.
#[derive(Debug, Serialize, ToSchema)]
pub struct CycleSplitView {
    /// The recipient and its part; of a cycle without initial fee, where it is by percent.
    #[serde(flatten)]
    part: SplitView,
    /// Percent of each cycle's total; only where the split was asked for by percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "12.5")]
    percent: Option<String>,
}

impl CustomerView {
    /// What is shown of a customer.
    pub fn of(customer: Payer) -> Self {
        let Payer { name, document, email, phone, .. } = customer;
        Self { name, email, document: mask::document(&document), phone }
    }
}

impl CycleSplitView {
    fn all(engine: &Engine, group: GroupNumber, terms: &SubscriptionTerms) -> Vec<Self> {
        let all = terms.splits.iter().map(|split| Self { part: SplitView::of(engine, group, split), percent: None });
        let mut all: Vec<_> = all.collect();
        for SplitPercent { index, share } in &terms.percents {
            if let Some(split) = all.get_mut(*index as usize) {
                split.percent = Some(share.as_percent().to_string());
            }
        }
        all
    }
}

impl SubscriptionView {
    /// What is shown of a subscription.
    pub fn of(engine: &Engine, row: &SubscriptionRow) -> Self {
        let SubscriptionRow { id, terms, standing, .. } = row;
        let group = engine.ids().group(*id);
        let customer = engine.subscriber(row);
        Self {
            id: id.uuid().to_string(),
            plan_id: terms.plan.uuid().to_string(),
            labels: customer.labels.clone().into(),
            customer: CustomerView::of(customer),
            payment_method: terms.method.name(),
            card_token: row.card().map(|card| card.id.uuid().to_string()),
            splits: CycleSplitView::all(engine, group, terms),
            status: status_name(standing),
            cycle: standing.cycle,
            paid_cycles: standing.paid_cycles(),
            unpaid_cycles: standing.unpaid_cycles(),
            unpaid_reason: standing.unpaid_reason().map(Into::into),
            next_charge_at: standing.next_charge_at().map(time),
            started_at: time(terms.anchor),
            cancelled_at: standing.cancelled_at.map(time),
        }
    }
}

/// Wire name of a subscription's status; a pause comes before the status that it interrupts.
pub fn status_name(standing: &SubscriptionStanding) -> &'static str {
    match standing.status {
        SubscriptionStatus::Pending | SubscriptionStatus::Active | SubscriptionStatus::PastDue
            if standing.is_paused =>
        {
            "paused"
        }
        status => status.into(),
    }
}
