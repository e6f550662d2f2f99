//! Details of an item of the queue: what its decider should know, and the decisions that were taken
//! on it, for ever.

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::State;
use axum::response::Response;
use ledger::audit::{self, AuditSubject, AuditedFact};
use ledger::{
    Cashout, Charge, Dispute, Event, LedgerId, ObjectId, RecipientProfile, Record, Refund, SealedFor, Timestamp,
    Withdrawal,
};
use serde::Serialize;
use store::cut::Position;
use utoipa::ToSchema;
use wire::mask;

use crate::books::{PreviewedEntryView, entries_view};
use crate::charges::records_about;
use crate::found_item::{FoundItem, item_of_kind};
use crate::item_flags::{compared, is_same, opened};
use crate::preview::{ChangedBalance, ForeseenDecision, foreseen};
use crate::queue::{QueueFilter, waiting};
use crate::queue_item::{QueueItem, is_decided_on, kind_name, view};
use crate::{Desk, DeskState, ItemKind, Operator};
use web::views::charge::ChargeView;
use web::views::dispute::DisputeView;
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::views::ledger::owner_name;
use web::views::recipient::{self, RecipientView, find_recipient, open, recipient_id};
use web::views::refund::RefundView;
use web::views::registration::{Registration, covered};
use web::views::statement::statement;
use web::views::withdrawal::{ReviewedWithdrawal, WithdrawalView};
use web::{Cursors, Page, PathId, Result, not_found, ok, time};

/// Earlier withdrawals that are listed.
const EARLIER_MAX: usize = 10;
/// Recipients with one value in common that are listed.
const SHARING_MAX: usize = 20;
/// What is done that is listed as a decision.
const ACTIONS: [&str; 7] = ["request", "approve", "reject", "accept", "release", "settle", "cancel"];

/// An item of the queue, or what was decided on; see `GET /ops/queue/{id}`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct ItemDetails {
    /// As in the queue. A `period`, `batch` or `erasure` has an item and no more.
    #[schema(pattern = "^(recipient|withdrawal|refund|dispute|payout|entry|rail|period|batch|erasure)$")]
    pub kind: &'static str,
    /// Of what is or was to be decided on, as in the queue.
    #[schema(example = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e")]
    pub id: String,
    /// The item as the queue shows it; null when nothing waits.
    #[schema(required)]
    #[serialize_always]
    pub item: Option<QueueItem>,
    /// What it is about, as lists show it, also once it was decided on: amount, merchant, name,
    /// reason, and where it stands; null where that is not known any more.
    #[schema(required)]
    #[serialize_always]
    pub object: Option<FoundItem>,
    /// What operators asked for and decided, and a merchant who took its withdrawal back, oldest
    /// first.
    pub decisions: Vec<TakenDecision>,
    /// The charge; refunds, disputes and rail items.
    pub charge: Option<ChargeView>,
    /// The refunds of the charge, this one among them, oldest first, as its first 100 Records name
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refunds: Vec<RefundView>,
    /// The disputes of the charge, this one among them, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<DisputeView>,
    /// The withdrawal.
    pub withdrawal: Option<ReviewedWithdrawal>,
    /// The recipient's other withdrawals, the newest 10.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_withdrawals: Vec<WithdrawalView>,
    /// Since when the recipient's bank account is the one to which the withdrawal goes, or was.
    pub account_since: Option<String>,
    /// Until when it was, where another account was registered since.
    pub account_until: Option<String>,
    /// The splits that the withdrawal takes, among the recipient's newest 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<WithdrawnSplit>,
    /// The registration, masked: `POST /ops/recipients/{id}/reveal` has it whole; recipients.
    pub registration: Option<Registration>,
    /// The recipient; recipients and withdrawals.
    pub recipient: Option<RecipientView>,
    /// Other recipients, of any merchant, that share something of the registration, now or earlier;
    /// recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sharing: Vec<Sharing>,
    /// The entry of an operator.
    pub entry: Option<HouseEntryView>,
    /// The balances that the approval would change, as in its preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<ChangedBalance>,
    /// How many balances there are beside these 100.
    #[schema(nullable = false)]
    pub balances_left_out: Option<usize>,
    /// The commission that would go back to the merchant, centavos; refunds.
    pub commission_returned: Option<i64>,
    /// The decisions on what waits, whose entries a page shows.
    #[serde(skip)]
    pub foreseen: Vec<ForeseenDecision>,
}

/// Another recipient that shares a value with the registration.
#[derive(Debug, Serialize, ToSchema)]
pub struct Sharing {
    /// What is shared.
    #[schema(pattern = "^(document|bank_account|phone|address)$")]
    pub value: &'static str,
    /// The other recipient's id.
    pub recipient_id: String,
    /// Its name; empty when it was erased.
    #[schema(example = "Bia Lima")]
    pub name: String,
    /// Status of its registration.
    #[schema(pattern = "^(draft|pending|active|rejected)$")]
    pub status: &'static str,
    /// Its merchant's name; empty when it was erased.
    pub merchant_name: String,
}

/// A split that a withdrawal takes.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawnSplit {
    /// The charge's txid.
    pub payment_id: String,
    /// What of it is withdrawn, centavos.
    pub amount_cents: i64,
}

/// What an operator asked for or decided.
#[derive(Debug, Serialize, ToSchema)]
pub struct TakenDecision {
    /// What was done.
    #[schema(pattern = "^(request|approve|reject|accept|release|settle|cancel)$")]
    pub action: &'static str,
    /// The operator's name; null when a merchant's API key did it.
    #[schema(required, example = "ana")]
    pub operator: Option<String>,
    /// The API key, when one did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_id: Option<String>,
    /// When it was done.
    pub at: String,
    /// The reason, where one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The Record's place in the journal of its partition.
    pub sequence: u64,
    /// The partition.
    pub partition: u16,
    /// What it booked: one balanced entry for each ledger that is touched.
    pub entries: Vec<PreviewedEntryView>,
    /// The Record, whose entries a page shows.
    #[serde(skip)]
    pub record: Arc<Record>,
}

/// An item of the queue with what its decider should know: the charge, its refunds and disputes,
/// the recipient's registration, the withdrawal and the ones before it. Once it was decided on,
/// `item` is null, and `decisions` says by whom, when and why, for ever.
#[utoipa::path(get, path = "/ops/queue/{id}", operation_id = "get_queue_item",
    responses((status = 200, body = ItemDetails), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    match ObjectId::parse(&id) {
        Some(id) => Ok(ok(details(&desk, id).await?)),
        None => Ok(ok(without_object(&desk, &id)?)),
    }
}

/// The details of a month or a file that waits: the item as the queue shows it.
fn without_object(desk: &Desk, id: &str) -> Result<ItemDetails> {
    for kind in ["period", "batch", "erasure"] {
        let filter = QueueFilter { kind: Some(kind), ..QueueFilter::default() };
        for item in filter.page(desk, usize::MAX)?.items {
            let item = view(desk, &item)?;
            if item.id == id {
                return Ok(ItemDetails { kind, id: id.to_owned(), item: Some(item), ..ItemDetails::default() });
            }
        }
    }
    Err(not_found())
}

/// The details of an item that waits, or was decided on. Error: 404 `not_found`.
pub async fn details(desk: &Desk, id: ObjectId) -> Result<ItemDetails> {
    let engine = &desk.engine;
    let mut shown = if let Some(refund) = engine.object::<Refund>(id)? {
        of_charge(desk, "refund", refund.charge)?
    } else if let Some(dispute) = engine.object::<Dispute>(id)? {
        of_charge(desk, "dispute", dispute.charge)?
    } else if let Some(withdrawal) = engine.object::<Withdrawal>(id)? {
        of_withdrawal(desk, &withdrawal)?
    } else if let Some((ledger, row)) = find_recipient(engine, id) {
        let recipient = Some(recipient::view(engine, ledger, &row).without_contacts());
        let profile = open(engine, &row, row.profiles.current());
        let sharing = sharing(desk, id, &profile)?;
        let registration = Some(Registration::of(covered(profile), mask::document));
        ItemDetails { kind: "recipient", recipient, registration, sharing, ..Default::default() }
    } else if let Some(entry) = OperatorEntry::find(engine, id)? {
        let entry = Some(HouseEntryView::of_any(engine, entry));
        ItemDetails { kind: "entry", entry, ..Default::default() }
    } else if engine.object::<Charge>(id)?.is_some() {
        of_charge(desk, "rail", id)?
    } else if engine.object::<Cashout>(id)?.is_some() {
        ItemDetails { kind: "payout", ..Default::default() }
    } else {
        ItemDetails::default()
    };
    if let Some(item) = waiting(desk, id) {
        shown.kind = kind_name(&item);
        shown.item = Some(view(desk, &item)?);
        if is_decided_on(&item) {
            shown.foreseen = foreseen(desk, &item).await?;
            if let Some(approval) = shown.foreseen.first() {
                shown.balances = approval.balances.clone();
                shown.balances_left_out = approval.balances_left_out;
                shown.commission_returned = approval.commission_returned;
            }
        }
    }
    if shown.kind.is_empty() {
        return Err(not_found());
    }
    shown.id = id.uuid().to_string();
    let object = item_kind(shown.kind).map(|kind| item_of_kind(desk, kind, id)).transpose()?;
    shown.object = object.flatten();
    if shown.withdrawal.is_some() {
        shown.splits = splits(desk, id).await?;
    }
    shown.decisions = decisions(desk, id)?;
    Ok(shown)
}

/// What lists call the things of a kind.
pub fn item_kind(kind: &str) -> Option<ItemKind> {
    Some(match kind {
        "recipient" => ItemKind::Recipients,
        "withdrawal" => ItemKind::Withdrawals,
        "refund" => ItemKind::Refunds,
        "dispute" => ItemKind::Disputes,
        "entry" => ItemKind::Entries,
        "rail" => ItemKind::Charges,
        "payout" => ItemKind::Cashouts,
        _ => return None,
    })
}

/// The splits that a withdrawal takes, among the newest of its recipient.
async fn splits(desk: &Desk, withdrawal: ObjectId) -> Result<Vec<WithdrawnSplit>> {
    let recipient = desk.engine.known_object::<Withdrawal>(withdrawal)?.recipient;
    let newest = Page { page: 1, per_page: 100 };
    let listed = statement(&desk.engine, recipient, &[], newest, &Cursors::default()).await?.items.into_iter();
    let own = withdrawal.uuid().to_string();
    let own = listed.filter(|split| split.withdrawal_id.as_ref() == Some(&own));
    Ok(own.map(|split| WithdrawnSplit { payment_id: split.payment_id, amount_cents: split.amount_cents }).collect())
}

/// The last decision on an object; `None` if there was none.
pub fn last_decision(desk: &Desk, id: ObjectId) -> Result<Option<TakenDecision>> {
    Ok(decisions(desk, id)?.pop())
}

/// What operators asked for and decided about an object.
fn decisions(desk: &Desk, id: ObjectId) -> Result<Vec<TakenDecision>> {
    let mut taken = Vec::new();
    let records = match find_recipient(&desk.engine, id) {
        Some((ledger, row)) => desk.engine.registration(ledger, row.created_at)?,
        None => desk.engine.history(id)?,
    };
    for found in records {
        let (Position { partition, sequence }, record) = found?;
        let is_about = |subject| match subject {
            AuditSubject::Object(of) => of == id,
            AuditSubject::Recipient(number) => desk.engine.ids().recipient_number(id) == number,
            _ => false,
        };
        let row = audit::of_record(&record).filter(|row| ACTIONS.contains(&row.action) && is_about(row.subject));
        // What a merchant asks for is the item itself, and no decision on it.
        let is_decision = |action: &str| record.operator.is_some() || action == "cancel";
        if let Some(AuditedFact { action, notes, .. }) = row.filter(|row| is_decision(row.action)) {
            taken.push(TakenDecision {
                action,
                operator: record.operator.clone(),
                api_key_id: record.api_key.map(|key| key.uuid().to_string()),
                at: time(record.effective_at),
                notes,
                sequence: sequence.0,
                partition: partition.0,
                entries: entries_view(desk, &record),
                record: Arc::new(record),
            });
        }
    }
    Ok(taken)
}

/// A charge with its refunds and disputes.
fn of_charge(desk: &Desk, kind: &'static str, id: ObjectId) -> Result<ItemDetails> {
    let charge: Charge = desk.engine.known_object(id)?;
    let (mut refunds, mut disputes) = (Vec::new(), Vec::new());
    let (records, _) = records_about(&desk.engine, id)?;
    for event in records.iter().flat_map(|(_, record)| &record.events) {
        match event {
            Event::RefundRequested { id, .. } => {
                refunds.push(RefundView::of(&desk.engine, &desk.engine.known_object(*id)?));
            }
            Event::DisputeOpened { id, .. } => {
                disputes.push(DisputeView::of(&desk.engine, &desk.engine.known_object(*id)?));
            }
            _ => {}
        }
    }
    let charge = Some(ChargeView::of_any_merchant(&desk.engine, &charge)?);
    Ok(ItemDetails { kind, charge, refunds, disputes, ..Default::default() })
}

/// A withdrawal, its recipient and the recipient's other withdrawals.
fn of_withdrawal(desk: &Desk, withdrawal: &Withdrawal) -> Result<ItemDetails> {
    let engine = &desk.engine;
    let mut shown = ItemDetails { kind: "withdrawal", ..Default::default() };
    let Listed { items, .. } = engine.withdrawals(withdrawal.recipient, 0, EARLIER_MAX + 1)?;
    for other in items {
        let other = other?;
        if other.id != withdrawal.id && shown.other_withdrawals.len() < EARLIER_MAX {
            shown.other_withdrawals.push(WithdrawalView::of(engine, &other));
        }
    }
    if let Some(id) = recipient_id(engine, withdrawal.recipient) {
        let (ledger, row) = recipient::known_recipient(engine, id)?;
        shown.recipient = Some(recipient::view(engine, ledger, &row).without_contacts());
        let (since, until) = account_span(desk, withdrawal, row.created_at)?;
        (shown.account_since, shown.account_until) = (since.map(time), until.map(time));
    }
    shown.withdrawal = Some(ReviewedWithdrawal::of(engine, withdrawal));
    Ok(shown)
}

/// Since when the account of a withdrawal has been its recipient's, and until when it was; `None`
/// for what is not known, or goes on.
fn account_span(
    desk: &Desk,
    withdrawal: &Withdrawal,
    registered_at: Timestamp,
) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    let Some(own) = opened(desk, withdrawal.id, &withdrawal.destination) else { return Ok((None, None)) };
    let (mut since, mut until) = (None, None);
    for found in desk.engine.registration(withdrawal.recipient, registered_at)? {
        let (_, record) = found?;
        let document = record.events.iter().find_map(|event| match event {
            Event::RecipientRegistered { document, .. }
            | Event::RecipientRegisteredAgain { document, .. }
            | Event::RecipientChanged { document, .. } => Some(*document),
            _ => None,
        });
        let sealed = document.zip(record.personal.as_ref());
        let open = |(document, sealed)| desk.engine.keyring().open_value(SealedFor::recipient(document), sealed);
        let Some(RecipientProfile { bank: Some(bank), .. }) = sealed.and_then(open) else { continue };
        match (is_same(&bank, &own), since, until) {
            (true, None, _) | (true, _, Some(_)) => (since, until) = (Some(record.effective_at), None),
            (false, Some(_), None) => until = Some(record.effective_at),
            _ => {}
        }
    }
    Ok((since, until))
}

/// The other recipients that share document, bank account, first phone or address.
fn sharing(desk: &Desk, id: ObjectId, profile: &RecipientProfile) -> Result<Vec<Sharing>> {
    let engine = &desk.engine;
    let mut all = Vec::new();
    for (name, _, value) in compared(profile) {
        for other in engine.recipients_sharing(&value, id, SHARING_MAX)? {
            let (ledger, row) = recipient::known_recipient(engine, other)?;
            let merchant = ledger.group().and_then(|group| owner_name(engine, LedgerId::Merchant(group)));
            all.push(Sharing {
                value: name,
                recipient_id: other.uuid().to_string(),
                name: owner_name(engine, ledger).unwrap_or_default(),
                status: recipient::status_name(row.status),
                merchant_name: merchant.unwrap_or_default(),
            });
        }
    }
    Ok(all)
}
