//! Operators' queue: everything that waits for a decision, of all merchants, oldest first.

use std::sync::Arc;

use actors::engine::{WaitingItem, WaitingKind};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::ObjectId;
use ledger::personal::Sealed;
use ledger::rail_word::AskedRailWord;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use wire::mask;

use crate::audit::OfMerchant;
use crate::desk::Desk;
use crate::operator::Operator;
use crate::rail_items::outcome_name;
use web::json::Checker;
use web::problem::Problem;
use web::reply::{ok, query, single, time};
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::views::recipient::{known_recipient, open, recipient_id, status_name};
use web::views::withdrawal::DestinationView;

/// Items of one answer; `total` counts all.
const ITEMS_MAX: usize = 1_000;

/// What waits.
#[derive(Debug, Serialize, ToSchema)]
pub struct Queue {
    /// The oldest 1,000 at most, oldest first.
    items: Vec<QueueItem>,
    /// How many there are.
    total: usize,
}

/// One thing to decide on.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueueItem {
    /// `recipient`, `withdrawal`, `refund`, `dispute`, `entry` of an operator, `payout`: a transfer
    /// whose institution has not answered for ten minutes, or `rail`: a charge or repayment that
    /// its rail has left unknown for an hour, or a repayment that it refuses.
    #[schema(pattern = "^(recipient|withdrawal|refund|dispute|payout|entry|rail)$")]
    pub kind: &'static str,
    /// Of what is to be decided on.
    #[schema(format = "uuid")]
    pub id: String,
    /// Version of what is shown, which a decision may name: an item that changed meanwhile is
    /// another version. From 1.
    #[schema(example = 1)]
    pub version: u32,
    /// Whose it is; absent from an entry of the house ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub merchant_id: Option<String>,
    /// Centavos, where it is about money.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 1200)]
    pub amount: Option<i64>,
    /// When it was asked for.
    pub created_at: String,
    /// Where it stands: a recipient is `draft` or `pending`, a dispute `open`, a transfer or what a
    /// rail left unknown `in_processing`, or `waiting_second` once an operator has said what became
    /// of it, all else `pending`.
    #[schema(pattern = "^(draft|pending|open|in_processing|waiting_second)$")]
    pub status: &'static str,
    /// The charge's txid; refunds, disputes and rail items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payment_id: Option<String>,
    /// Until when it can be approved; refunds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub approvable_until: Option<String>,
    /// The open disputes of the charge; refunds, where there are some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disputes: Vec<String>,
    /// Why it should wait, or can't be approved any more; refunds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Há disputa aberta desta cobrança")]
    pub note: Option<&'static str>,
    /// True for one that passes what was left of the charge, and is to be contested; disputes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exceeds_charge: Option<bool>,
    /// The rail's id of the case; disputes that a rail opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "MED-2026-118")]
    pub case_id: Option<String>,
    /// Until when the rail has to be answered; disputes that a rail opened, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub due_at: Option<String>,
    /// The recipient; withdrawals, their transfers and returns, write-offs of its debt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub recipient_id: Option<String>,
    /// The recipient's name; recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Ana Prado")]
    pub name: Option<String>,
    /// The recipient's document, masked; recipients.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "***.456.789-**")]
    pub document: Option<String>,
    /// What of a recipient is to be decided on: its `registration`, or the `bank_account` of an
    /// active one that was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^(registration|bank_account)$")]
    pub review: Option<&'static str>,
    /// Where money goes, masked: the account of a recipient to be decided on; that of a withdrawal
    /// or its transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub destination: Option<DestinationView>,
    /// The operator who asked for an entry, or who was the first to say the outcome of a transfer
    /// or rail item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "ana")]
    pub requested_by: Option<String>,
    /// The account that would be debited; entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Assets:Bank:Own")]
    pub debit: Option<String>,
    /// The account that would be credited; entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Assets:Bank:Settlement")]
    pub credit: Option<String>,
    /// Why, as that operator said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Comissão de novembro")]
    pub reason: Option<String>,
    /// Reference of the document that proves it, as that operator said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "EXTRATO-2026-11-30-17")]
    pub reference: Option<String>,
    /// The outcome by that operator, `happened` or `did_not_happen`; transfers and rail items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, pattern = "^(happened|did_not_happen)$")]
    pub outcome: Option<&'static str>,
    /// The withdrawal that came back; entries that say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub withdrawal: Option<String>,
    /// The day on which it would take effect; entries, absent where it is the day of its booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = Date, example = "2026-11-30")]
    pub effective_date: Option<String>,
}

/// The kind that is asked for, if one is.
#[derive(Clone, Copy, Debug)]
pub struct OfKind(Option<&'static str>);

/// The kinds of what waits, as the query names them.
pub const KINDS: [&str; 7] = ["recipient", "withdrawal", "refund", "dispute", "payout", "entry", "rail"];

/// A transfer is shown when its outcome has been unknown for this long, milliseconds.
const PAYOUT_AGE_MS: i64 = 10 * 60_000;

impl<S: Sync> FromRequestParts<S> for OfKind {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let pairs = query(parts)?;
        let mut check = Checker::new();
        let kind = single(&pairs, "kind")?.and_then(|text| {
            let known = KINDS.into_iter().find(|kind| *kind == text);
            known.or_else(|| check.refuse("kind", "unknown", format!("kind deve ser {}", KINDS.join(" ou "))))
        });
        check.finish()?;
        Ok(Self(kind))
    }
}

/// What waits for a decision, oldest first.
#[utoipa::path(get, path = "/ops/queue", operation_id = "get_queue",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only of this merchant."),
        ("kind" = Option<String>, Query, pattern = "^(recipient|withdrawal|refund|dispute|payout|entry|rail)$", description = "Only of this kind.")),
    responses((status = 200, body = Queue), (status = 404)))]
pub async fn get(
    State(desk): State<Arc<Desk>>,
    _: Operator,
    OfMerchant(group): OfMerchant,
    OfKind(kind): OfKind,
) -> Result<Response, Problem> {
    let now = desk.engine.now();
    let is_wanted = |item: &WaitingItem| {
        is_shown(item, now)
            && group.is_none_or(|group| item.ledger.group() == Some(group))
            && kind.is_none_or(|kind| kind == kind_name(item))
    };
    let (total, oldest) = desk.engine.queue(is_wanted, ITEMS_MAX);
    let items = oldest.into_iter().map(|item| view(&desk, &item)).collect::<Result<_, _>>()?;
    Ok(ok(Queue { items, total }))
}

/// Whether an item is shown at a time: a transfer is, once its outcome has been unknown for ten
/// minutes, and everything else at once.
pub fn is_shown(item: &WaitingItem, now: Timestamp) -> bool {
    let is_late = item.id.created_at().plus_ms(PAYOUT_AGE_MS) <= now;
    is_late || !matches!(item.what, WaitingKind::Payout { .. })
}

/// Whether an item is approved or rejected. Transfers and rail items are settled instead.
pub fn is_decided_on(item: &WaitingItem) -> bool {
    !matches!(item.what, WaitingKind::Payout { .. } | WaitingKind::Rail { .. })
}

/// The version of an item: of a recipient, that of its profile; of a refund, as the ledger counts
/// the disputes of its charge. Nothing else changes while it waits.
pub fn version_of(desk: &Desk, item: &WaitingItem) -> Result<u32, Problem> {
    Ok(match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount => {
            known_recipient(&desk.engine, item.id)?.1.profiles.current().map_or(1, |profile| profile.version)
        }
        WaitingKind::Refund { version, .. } => version.unwrap_or(1),
        _ => 1,
    })
}

/// The kind of an item.
pub fn kind_name(item: &WaitingItem) -> &'static str {
    match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount => "recipient",
        WaitingKind::Withdrawal { .. } => "withdrawal",
        WaitingKind::Refund { .. } => "refund",
        WaitingKind::Dispute { .. } => "dispute",
        WaitingKind::Payout { .. } => "payout",
        WaitingKind::HouseEntry { .. } => "entry",
        WaitingKind::Rail { .. } => "rail",
    }
}

impl QueueItem {
    /// Takes in an operator's word on an unknown outcome.
    fn say_unknown(&mut self, asked: Option<AskedRailWord>) {
        self.status = if asked.is_some() { "waiting_second" } else { "in_processing" };
        if let Some(AskedRailWord { word, reason, by }) = asked {
            self.outcome = Some(outcome_name(word.happened));
            (self.requested_by, self.reason, self.reference) = (Some(by), Some(reason), Some(word.reference));
        }
    }

    /// Takes in what operators said of an entry.
    fn say_entry(&mut self, entry: HouseEntryView) {
        self.requested_by = Some(entry.requested_by);
        self.debit = Some(entry.debit);
        self.credit = Some(entry.credit);
        self.reason = Some(entry.reason);
        self.reference = Some(entry.reference);
        self.withdrawal = entry.withdrawal;
        self.effective_date = entry.effective_date;
    }
}

/// The item of the queue with an id; `None` when nothing of this id waits.
pub fn waiting(desk: &Desk, id: ObjectId) -> Option<WaitingItem> {
    desk.engine.queue(|item| item.id == id, 1).1.pop()
}

/// What all items show, whatever waits.
fn plain_view(desk: &Desk, item: &WaitingItem) -> Result<QueueItem, Problem> {
    let merchant = |group| desk.engine.merchant_id(group);
    let merchant = item.ledger.group().map(merchant).transpose()?;
    Ok(QueueItem {
        kind: kind_name(item),
        id: item.id.uuid().to_string(),
        version: version_of(desk, item)?,
        merchant_id: merchant.map(|id| id.uuid().to_string()),
        amount: None,
        created_at: time(item.id.created_at()),
        status: "pending",
        payment_id: None,
        approvable_until: None,
        disputes: Vec::new(),
        note: None,
        exceeds_charge: None,
        case_id: None,
        due_at: None,
        recipient_id: recipient_id(&desk.engine, item.ledger).map(|id| id.uuid().to_string()),
        name: None,
        document: None,
        review: None,
        destination: None,
        requested_by: None,
        debit: None,
        credit: None,
        reason: None,
        reference: None,
        outcome: None,
        withdrawal: None,
        effective_date: None,
    })
}

/// An item as it is shown.
pub fn view(desk: &Desk, item: &WaitingItem) -> Result<QueueItem, Problem> {
    let mut view = plain_view(desk, item)?;
    let open_account = |sealed: &Sealed| DestinationView::open(&desk.engine, item.id, sealed);
    match &item.what {
        WaitingKind::Recipient | WaitingKind::BankAccount => {
            let (_, row) = known_recipient(&desk.engine, item.id)?;
            let profile = open(&desk.engine, &row, row.profiles.current());
            let changed_at = row.bank_review.filter(|_| item.what == WaitingKind::BankAccount).map(|(_, at)| at);
            view.created_at = time(changed_at.unwrap_or(row.created_at));
            view.status = changed_at.map_or(status_name(row.status), |_| "pending");
            view.review = Some(if changed_at.is_some() { "bank_account" } else { "registration" });
            view.destination = profile.receiving_account().map(DestinationView::of);
            view.document = Some(mask::document(&profile.document));
            view.name = Some(profile.name);
            view.recipient_id = None;
        }
        WaitingKind::Withdrawal { amount, destination } => {
            view.amount = Some(amount.0);
            view.destination = open_account(destination);
        }
        WaitingKind::Payout { amount, destination } => {
            view.amount = Some(amount.0);
            view.destination = destination.as_ref().and_then(open_account);
            view.say_unknown(desk.engine.asked_rail_word(item.id)?);
        }
        WaitingKind::Rail { charge, amount } => {
            view.amount = Some(amount.0);
            view.payment_id = Some(charge.txid());
            view.say_unknown(desk.engine.asked_rail_word(item.id)?);
        }
        WaitingKind::HouseEntry { amount } => {
            view.amount = Some(amount.0);
            let entry = OperatorEntry::known(&desk.engine, item.id)?;
            view.say_entry(HouseEntryView::of_any(&desk.engine, entry));
        }
        WaitingKind::Refund { charge, amount, until, disputes, .. } => {
            view.amount = Some(amount.0);
            view.payment_id = Some(charge.txid());
            view.approvable_until = until.map(time);
            view.disputes = disputes.iter().flatten().map(|id| id.uuid().to_string()).collect();
            view.note = if until.is_some_and(|until| until < desk.engine.now()) {
                Some("O prazo passou: a devolução só pode ser recusada")
            } else if view.disputes.is_empty() {
                None
            } else {
                Some("Há disputa aberta desta cobrança: a devolução espera por ela")
            };
        }
        WaitingKind::Dispute { charge, amount, exceeds, case } => {
            view.case_id = case.as_ref().map(|case| case.id.clone());
            view.due_at = case.as_ref().and_then(|case| case.due_at).map(time);
            view.amount = Some(amount.0);
            view.payment_id = Some(charge.txid());
            view.exceeds_charge = Some(exceeds.is_some());
            view.status = "open";
        }
    }
    Ok(view)
}
