//! One subscription of any merchant, and the plans of those in a list.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use axum::extract::State;
use axum::response::Response;
use ledger::merchant::Plan;
use ledger::{GroupNumber, LedgerId, ObjectId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::found_item::FoundItem;
use crate::other_nodes::plans;
use crate::webhooks::without_contacts;
use crate::{Desk, DeskState, Operator};
use web::views::charge::CardView;
use web::views::ledger::owner_name;
use web::views::recipient::recipient_id;
use web::views::subscription::SubscriptionView;
use web::{PathId, Result, failed, not_found};

/// A subscription, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct SubscriptionOfMerchant {
    /// The merchant.
    merchant_id: String,
    /// Tag of the plan.
    plan: String,
    /// Centavos of a cycle, without an initial fee.
    amount: i64,
    /// What may be shown of its card; absent for PIX.
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<CardView>,
    /// The recipients of its splits, with their names.
    recipients: Vec<SplitRecipient>,
    /// The subscription, as its merchant reads it.
    #[serde(flatten)]
    subscription: SubscriptionView,
}

/// A recipient of the splits of a subscription.
#[derive(Debug, Serialize, ToSchema)]
pub struct SplitRecipient {
    /// The recipient.
    id: String,
    /// Its name; empty when it was erased.
    #[schema(example = "Ana Souza")]
    name: String,
}

/// A subscription of any merchant; its customer's e-mail and phone masked.
#[utoipa::path(get, path = "/ops/subscriptions/{id}", operation_id = "get_subscription_of_any_merchant",
    responses((status = 200, body = SubscriptionOfMerchant), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let id = ObjectId::parse(&id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    let row = desk.engine.subscription(LedgerId::Merchant(group), id)?.ok_or_else(not_found)?;
    let plan = row.terms.plan;
    let plan = desk.engine.read_merchant(group, move |books, _| books.plan(plan).cloned()).await?;
    let plan = plan.ok_or_else(|| failed("a subscription without its plan"))?;
    let recipients = row.terms.splits.iter().filter_map(|split| {
        let ledger = LedgerId::Recipient(group, split.recipient);
        let id = recipient_id(&desk.engine, ledger)?.uuid().to_string();
        Some(SplitRecipient { id, name: owner_name(&desk.engine, ledger).unwrap_or_default() })
    });
    without_contacts(&SubscriptionOfMerchant {
        recipients: recipients.collect(),
        merchant_id: desk.engine.merchant_id(group)?.uuid().to_string(),
        plan: plan.terms.tag,
        amount: plan.terms.amount.0,
        card: row.card().map(|card| CardView::of(&card.face)),
        subscription: SubscriptionView::of(&desk.engine, &row),
    })
}

/// Fills in the plans of subscriptions in a list, and their amounts; not those of merchants whose
/// node cannot be asked now.
pub(crate) async fn with_plans(desk: &Desk, mut items: Vec<FoundItem>) -> Vec<FoundItem> {
    let mut known: BTreeMap<GroupNumber, Vec<Plan>> = BTreeMap::new();
    for item in &mut items {
        let Some(plan) = item.plan_id.as_deref().and_then(ObjectId::parse) else { continue };
        let group = desk.engine.ids().group(plan);
        let of_group = match known.entry(group) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(plans(desk, group).await.unwrap_or_default()),
        };
        let found = of_group.iter().find(|known| known.id == plan);
        item.amount = found.map(|plan| plan.terms.amount.0);
        item.plan = found.map(|plan| plan.terms.tag.clone());
    }
    items
}
