//! One thing that a search found: its name, its money and where it stands, whatever it is.

use actors::engine::Engine;
use ledger::cashout::Cashout;
use ledger::charge::Charge;
use ledger::dispute::Dispute;
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::personal::{Payer, SealedFor};
use ledger::refund::Refund;
use ledger::withdrawal::Withdrawal;
use serde::Serialize;
use utoipa::ToSchema;
use wire::cut_text::record_name;
use wire::mask;

use crate::desk::Desk;
use crate::merchants;
use crate::search::ItemKind;
use web::problem::Problem;
use web::reply::time;
use web::views::cashout::cashout_status;
use web::views::charge::{charge_status, payer};
use web::views::house_entry::OperatorEntry;
use web::views::recipient::{find_recipient, open, recipient_id, status_name};
use web::views::refund::refund_status;
use web::views::subscription;
use web::views::withdrawal::WithdrawalView;
use webhooks::event::OutboxEvent;

/// One thing that was found. Fields that it does not have are absent.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct FoundItem {
    /// Its id: a txid, a UUID, the place of a Record or the name of a ledger.
    #[schema(example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e")]
    pub id: String,
    /// The merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub merchant_id: Option<String>,
    /// Name of the payer, the recipient or the merchant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "João Ávila")]
    pub name: Option<String>,
    /// Document of the same, masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "***.456.789-**")]
    pub document: Option<String>,
    /// Its amount, centavos.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 8253)]
    pub amount: Option<i64>,
    /// Where it stands, in the words of its own view.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "CONCLUIDA")]
    pub status: Option<&'static str>,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub created_at: Option<String>,
    /// The charge of a refund or a dispute: its txid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub charge: Option<String>,
    /// The recipient of a withdrawal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub recipient_id: Option<String>,
    /// The Record that made it, where that is all there is to see of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "42")]
    pub record: Option<String>,
}

impl FoundItem {
    /// What every object has: its id, its merchant, and when it was made.
    pub fn of(desk: &Desk, id: ObjectId) -> Self {
        let merchant = desk.engine.merchant_id(desk.engine.ids().group(id)).ok();
        Self {
            id: id.uuid().to_string(),
            merchant_id: merchant.map(|merchant| merchant.uuid().to_string()),
            created_at: Some(time(id.created_at())),
            ..Self::default()
        }
    }

    fn named(self, name: String, document: &str) -> Self {
        let name = Some(name).filter(|name| !name.is_empty());
        let document = (!document.is_empty()).then(|| mask::document(document));
        Self { name, document, ..self }
    }

    fn money(self, amount: Centavos, status: &'static str) -> Self {
        Self { amount: Some(amount.0), status: Some(status), ..self }
    }

    fn by(self, payer: Payer) -> Self {
        self.named(payer.name, &payer.document)
    }
}

/// A charge, with its payer.
pub(crate) fn charge_item(desk: &Desk, charge: &Charge) -> Result<FoundItem, Problem> {
    let item = FoundItem { id: charge.id.txid(), ..FoundItem::of(desk, charge.id) };
    let item = item.money(charge.terms.amount, charge_status(&charge.outcome));
    Ok(item.by(payer(&desk.engine, charge.id, charge.payer.as_ref())))
}

/// What an id is of; `None` if it is no object's.
pub(crate) fn item_of(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>, Problem> {
    let engine = &desk.engine;
    if let Ok(group) = merchants::find(desk, &id.txid()) {
        let sealed = engine.glance(group, |row| row.profiles.current().cloned()).flatten();
        let profile = merchants::profile(desk, group, sealed.as_ref());
        return Ok(Some((ItemKind::Merchants, FoundItem::of(desk, id).named(profile.name, &profile.document))));
    }
    if let Some((_, row)) = find_recipient(engine, id) {
        let profile = open(engine, &row, row.profiles.current());
        let item = FoundItem { status: Some(status_name(row.status)), ..FoundItem::of(desk, id) };
        return Ok(Some((ItemKind::Recipients, item.named(profile.name, &profile.document))));
    }
    match money_item(desk, id)? {
        None => other_item(desk, id),
        found => Ok(found),
    }
}

/// A charge, refund, dispute, withdrawal or cashout.
fn money_item(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>, Problem> {
    let engine = &desk.engine;
    let item = || FoundItem::of(desk, id);
    if let Some(charge) = engine.object::<Charge>(id)? {
        return Ok(Some((ItemKind::Charges, charge_item(desk, &charge)?)));
    }
    if let Some(refund) = engine.object::<Refund>(id)? {
        let item = FoundItem { charge: Some(refund.charge.txid()), ..item() };
        return Ok(Some((ItemKind::Refunds, item.money(refund.amount, refund_status(&refund.decision)))));
    }
    if let Some(dispute) = engine.object::<Dispute>(id)? {
        let item = FoundItem { amount: Some(dispute.amount.0), charge: Some(dispute.charge.txid()), ..item() };
        return Ok(Some((ItemKind::Disputes, item)));
    }
    if let Some(withdrawal) = engine.object::<Withdrawal>(id)? {
        let recipient = recipient_id(engine, withdrawal.recipient);
        let recipient_id = recipient.map(|recipient| recipient.uuid().to_string());
        let status = WithdrawalView::of(engine, &withdrawal).status;
        let item = FoundItem { recipient_id, ..item() }.money(withdrawal.amount, status);
        return Ok(Some((ItemKind::Withdrawals, item)));
    }
    let Some(cashout) = engine.object::<Cashout>(id)? else { return Ok(None) };
    let item = item().money(cashout.amount, cashout_status(&cashout.stage));
    Ok(Some((ItemKind::Cashouts, with_record(engine, id, item)?)))
}

/// An API key, an entry, a webhook event, a subscription or a stored card.
fn other_item(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>, Problem> {
    let engine = &desk.engine;
    let item = FoundItem::of(desk, id);
    if let Some(key) = engine.api_key(id) {
        let status = Some(if key.revoked { "revoked" } else { "active" });
        return Ok(Some((ItemKind::ApiKeys, FoundItem { status, ..item })));
    }
    if OperatorEntry::find(engine, id)?.is_some() {
        return Ok(Some((ItemKind::Entries, with_record(engine, id, item)?)));
    }
    let group = engine.ids().group(id);
    if OutboxEvent::find(engine, group, id)?.is_some() {
        return Ok(Some((ItemKind::WebhookEvents, item)));
    }
    let merchant = LedgerId::Merchant(group);
    if let Some(row) = engine.subscription(merchant, id)? {
        let payer: Payer = engine.keyring().open_value(SealedFor::customer(id), &row.customer).unwrap_or_default();
        let item = FoundItem { status: Some(subscription::status_name(&row.standing)), ..item }.by(payer);
        return Ok(Some((ItemKind::Subscriptions, with_record(engine, id, item)?)));
    }
    if engine.stored_card(merchant, id)?.is_some() {
        return Ok(Some((ItemKind::Cards, with_record(engine, id, item)?)));
    }
    Ok(None)
}

/// The same with the first Record about it.
fn with_record(engine: &Engine, id: ObjectId, item: FoundItem) -> Result<FoundItem, Problem> {
    let first = engine.history(id)?.next().transpose()?;
    Ok(FoundItem { record: first.map(|(at, _)| record_name(at)), ..item })
}
