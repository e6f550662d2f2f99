//! One thing that a search found: its name, its money and where it stands, whatever it is.

use actors::engine::{Engine, MerchantRow};
use ledger::event::AnticipatedSplit;
use ledger::{
    Cashout, Centavos, Charge, Dispute, Event, LedgerId, ObjectId, Payer, Record, Refund, Settings, Withdrawal,
};
use serde::Serialize;
use utoipa::ToSchema;
use wire::cut_text::record_name;
use wire::mask;

use crate::closing::shown_settings;
use crate::{Desk, ItemKind, merchants};
use web::views::cashout::cashout_status;
use web::views::charge::{CardView, charge_status, payer};
use web::views::dispute::dispute_status;
use web::views::house_entry::OperatorEntry;
use web::views::ledger::owner_name;
use web::views::recipient::{find_recipient, open, recipient_id, status_name};
use web::views::refund::{reason_text, refund_status};
use web::views::stored_card::customer_of;
use web::views::subscription;
use web::views::withdrawal::WithdrawalView;
use web::{Result, time};
use webhooks::event::OutboxEvent;

/// One thing that was found. Fields that it does not have are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct FoundItem {
    /// Its id: a txid, a UUID, the position of a Record or the name of a ledger.
    #[schema(example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e")]
    pub id: String,
    /// The merchant.
    pub merchant_id: Option<String>,
    /// Name of the merchant; empty when it was erased.
    pub merchant_name: Option<String>,
    /// Name of the payer or customer, the recipient or the merchant.
    pub name: Option<String>,
    /// Document of the same, masked.
    pub document: Option<String>,
    /// Its amount, centavos.
    pub amount: Option<i64>,
    /// Where it stands, in the words of its own view.
    #[schema(example = "CONCLUIDA")]
    pub status: Option<&'static str>,
    /// How a charge is paid.
    #[schema(example = "pix")]
    pub payment_method: Option<&'static str>,
    /// When it was created.
    pub created_at: Option<String>,
    /// The charge of a refund or a dispute: its txid.
    pub charge: Option<String>,
    /// The recipient of a withdrawal or an anticipation.
    pub recipient_id: Option<String>,
    /// The fee, centavos: part of the amount of a cashout or an anticipation.
    pub fee: Option<i64>,
    /// Why it was asked for or opened, of a refund or a dispute; why it failed, of a cashout.
    pub reason: Option<String>,
    /// Until when the rail of a dispute has to be answered.
    pub due_at: Option<String>,
    /// The plan of a subscription.
    pub plan_id: Option<String>,
    /// Tag of the plan, on a list; there the amount is that of a cycle.
    pub plan: Option<String>,
    /// When a subscription is charged next.
    pub next_charge_at: Option<String>,
    /// What may be shown of a stored card, or of that of a subscription.
    pub card: Option<CardView>,
    /// The Record that made it. A search gives it only where the thing has no page of its own.
    #[schema(example = "42")]
    pub record: Option<String>,
}

impl FoundItem {
    /// What every object has: its id, its merchant, and when it was made.
    pub fn of(desk: &Desk, id: ObjectId) -> Self {
        let group = desk.engine.ids().group(id);
        let merchant = desk.engine.merchant_id(group).ok();
        Self {
            id: id.uuid().to_string(),
            merchant_name: merchant.map(|_| owner_name(&desk.engine, LedgerId::Merchant(group)).unwrap_or_default()),
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

    fn of_recipient(self, desk: &Desk, recipient: LedgerId) -> Self {
        let recipient = recipient_id(&desk.engine, recipient).and_then(|id| recipient_item(desk, id));
        let Some(FoundItem { id, name, document, .. }) = recipient else { return self };
        Self { recipient_id: Some(id), name, document, ..self }
    }

    pub(crate) fn by(self, payer: Payer) -> Self {
        self.named(payer.name, &payer.document)
    }
}

/// A charge, with its payer.
pub fn charge_item(desk: &Desk, charge: &Charge) -> Result<FoundItem> {
    let payment_method = Some(charge.terms.method.name());
    let item = FoundItem { id: charge.id.txid(), payment_method, ..FoundItem::of(desk, charge.id) };
    let item = item.money(charge.terms.amount, charge_status(&charge.outcome));
    Ok(item.by(payer(&desk.engine, charge.id, charge.payer.as_ref())))
}

/// What an id is of; `None` if it is no object's.
pub fn item_of(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>> {
    use ItemKind::{Anticipations, Cashouts, Charges, Disputes, Merchants, Recipients, Refunds, Withdrawals};
    for kind in [Merchants, Recipients, Charges, Refunds, Disputes, Withdrawals, Cashouts, Anticipations] {
        if let Some(item) = item_of_kind(desk, kind, id)? {
            return Ok(Some((kind, item)));
        }
    }
    other_item(desk, id)
}

/// The thing of a kind that an id names; `None` if it names none of this kind.
pub(crate) fn item_of_kind(desk: &Desk, kind: ItemKind, id: ObjectId) -> Result<Option<FoundItem>> {
    let engine = &desk.engine;
    Ok(match kind {
        ItemKind::Charges => engine.object(id)?.map(|charge| charge_item(desk, &charge)).transpose()?,
        ItemKind::Merchants => merchant_item(desk, id),
        ItemKind::Recipients => recipient_item(desk, id),
        ItemKind::Refunds => engine.object(id)?.map(|refund| refund_item(desk, &refund)).transpose()?,
        ItemKind::Disputes => engine.object(id)?.map(|dispute| dispute_item(desk, &dispute)).transpose()?,
        ItemKind::Withdrawals => engine.object(id)?.map(|withdrawal| withdrawal_item(desk, &withdrawal)),
        ItemKind::Cashouts => engine.object(id)?.map(|cashout| cashout_item(desk, &cashout)).transpose()?,
        ItemKind::Anticipations => {
            let made = engine.history(id)?.find_map(|found| match found {
                Ok((at, record)) => {
                    let item = anticipation_item(desk, &record).filter(|item| ObjectId::parse(&item.id) == Some(id));
                    item.map(|item| Ok(FoundItem { record: Some(record_name(at)), ..item }))
                }
                Err(error) => Some(Err(error)),
            });
            made.transpose()?
        }
        _ => other_item(desk, id)?.filter(|(of, _)| *of == kind).map(|(_, item)| item),
    })
}

fn merchant_item(desk: &Desk, id: ObjectId) -> Option<FoundItem> {
    let group = merchants::find(desk, &id.txid()).ok()?;
    let of = |row: &MerchantRow| (row.profiles.current().cloned(), row.settings, row.recipients.len());
    let (sealed, settings, recipients) = desk.engine.glance(group, of)?;
    let profile = merchants::profile(desk, group, sealed.as_ref());
    let status = match shown_settings(&desk.engine, group, settings, recipients) {
        Settings { closed: true, .. } => "closed",
        Settings { closing: true, .. } => "closing",
        Settings { suspended: true, .. } => "suspended",
        Settings { payouts_held: true, .. } => "payouts_held",
        _ => "active",
    };
    let item = FoundItem { status: Some(status), ..FoundItem::of(desk, id) };
    Some(item.named(profile.name, &profile.document))
}

fn recipient_item(desk: &Desk, id: ObjectId) -> Option<FoundItem> {
    let (_, row) = find_recipient(&desk.engine, id)?;
    let profile = open(&desk.engine, &row, row.profiles.current());
    let item = FoundItem { status: Some(status_name(row.status)), ..FoundItem::of(desk, id) };
    Some(item.named(profile.name, &profile.document))
}

fn refund_item(desk: &Desk, refund: &Refund) -> Result<FoundItem> {
    let reason = reason_text(&desk.engine, refund.id, refund.reason.as_ref());
    let item = FoundItem { charge: Some(refund.charge.txid()), reason, ..FoundItem::of(desk, refund.id) };
    let item = item.money(refund.amount, refund_status(&refund.decision));
    Ok(item.by(payer_of(desk, refund.charge)?))
}

fn dispute_item(desk: &Desk, dispute: &Dispute) -> Result<FoundItem> {
    let reason = reason_text(&desk.engine, dispute.id, dispute.reason.as_ref());
    let due_at = dispute.case.as_ref().and_then(|case| case.due_at).map(time);
    let item = FoundItem { charge: Some(dispute.charge.txid()), reason, due_at, ..FoundItem::of(desk, dispute.id) };
    let item = item.money(dispute.amount, dispute_status(&dispute.decision));
    Ok(item.by(payer_of(desk, dispute.charge)?))
}

/// Who paid a charge; empty when that was erased.
pub(crate) fn payer_of(desk: &Desk, charge: ObjectId) -> Result<Payer> {
    let charge: Charge = desk.engine.known_object(charge)?;
    Ok(payer(&desk.engine, charge.id, charge.payer.as_ref()))
}

fn withdrawal_item(desk: &Desk, withdrawal: &Withdrawal) -> FoundItem {
    let status = WithdrawalView::of(&desk.engine, withdrawal).status;
    let item = FoundItem::of(desk, withdrawal.id).money(withdrawal.amount, status);
    item.of_recipient(desk, withdrawal.recipient)
}

fn cashout_item(desk: &Desk, cashout: &Cashout) -> Result<FoundItem> {
    let reason = cashout.rejection().and_then(|(_, notes)| notes).map(str::to_owned);
    let item = FoundItem { fee: Some(cashout.fee.0), reason, ..FoundItem::of(desk, cashout.id) };
    let item = item.money(cashout.amount, cashout_status(&cashout.stage));
    with_record(&desk.engine, cashout.id, item)
}

/// The anticipation that a Record of a recipient made.
pub(crate) fn anticipation_item(desk: &Desk, record: &Record) -> Option<FoundItem> {
    let (id, splits) = record.events.iter().find_map(|event| match event {
        Event::SplitsAnticipated { id, splits, .. } => Some((*id, splits)),
        _ => None,
    })?;
    let sum = |of: fn(&AnticipatedSplit) -> Centavos| splits.iter().map(|split| of(split).0).sum();
    let item = FoundItem {
        amount: Some(sum(|split| split.amount)),
        fee: Some(sum(|split| split.fee)),
        ..FoundItem::of(desk, id)
    };
    Some(item.of_recipient(desk, record.owner))
}

/// An API key, an entry, a webhook event, a subscription or a stored card.
fn other_item(desk: &Desk, id: ObjectId) -> Result<Option<(ItemKind, FoundItem)>> {
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
        let item = FoundItem {
            status: Some(subscription::status_name(&row.standing)),
            plan_id: Some(row.terms.plan.uuid().to_string()),
            next_charge_at: row.standing.next_charge_at().map(time),
            card: row.card().map(|card| CardView::of(&card.face)),
            ..item
        };
        return Ok(Some((ItemKind::Subscriptions, item.by(engine.subscriber(&row)))));
    }
    if let Some(row) = engine.stored_card(merchant, id)? {
        let customer = customer_of(engine, &row).unwrap_or_default();
        let item = FoundItem { card: Some(CardView::of(&row.face)), ..item };
        return Ok(Some((ItemKind::Cards, item.by(customer))));
    }
    Ok(None)
}

/// The same with the first Record about it.
fn with_record(engine: &Engine, id: ObjectId, item: FoundItem) -> Result<FoundItem> {
    let first = engine.history(id)?.next().transpose()?;
    Ok(FoundItem { record: first.map(|(at, _)| record_name(at)), ..item })
}
