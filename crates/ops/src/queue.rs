//! Operators' queue: everything that waits for a decision, of all merchants.

use actors::engine::{WaitingItem, WaitingKind, WaitingPage};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::{AMOUNT_MAX, GroupNumber, LedgerId, ObjectId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

use crate::item_flags::{EXPIRES_SOON_MS, flags};
use crate::list_file::too_many;
use crate::named_ledger::filtered_owners;
use crate::queue_item::{QueueItem, kind_name, view};
use crate::wire_words::FLAGS;
use crate::{Desk, DeskState, Operator};
use web::reply::between;
use web::{Checker, Problem, Result, number, ok, one_of, query};

/// Items of one answer; `total` counts all.
const ITEMS_MAX: usize = 1_000;

/// What waits.
#[derive(Debug, Serialize, ToSchema)]
pub struct Queue {
    /// The first 1,000 at most.
    items: Vec<QueueItem>,
    /// How many there are.
    total: usize,
    /// Sum of the amounts of all of them, centavos.
    #[schema(value_type = i64, example = 81_200)]
    amount: i128,
}

/// The kinds of what waits, as the query names them.
pub const KINDS: [&str; 10] =
    ["recipient", "withdrawal", "refund", "dispute", "payout", "entry", "rail", "period", "batch", "erasure"];

/// Orders of the queue: the oldest first, or what can be decided on for at most 7 more days before
/// it.
pub const ORDERS: [&str; 2] = ["age", "deadline"];

/// Items whose flags are read for a filter by flag, at most.
const FLAGS_READ_MAX: usize = 2_000;

/// A transfer is shown when its outcome has been unknown for this long, milliseconds.
const PAYOUT_AGE_MS: i64 = 10 * 60_000;

/// Filter and order of the queue.
#[derive(Clone, Debug, Default)]
pub struct QueueFilter {
    /// Only of this merchant's group.
    pub group: Option<GroupNumber>,
    /// Only of this recipient: its registration, its withdrawals and what concerns them.
    pub recipient: Option<LedgerId>,
    /// Only of this kind.
    pub kind: Option<&'static str>,
    /// Only of at least this amount, centavos; what has no amount is left out.
    pub amount_from: Option<i64>,
    /// Only of at most this amount, centavos; what has no amount is left out.
    pub amount_to: Option<i64>,
    /// Only what was asked for at this time or later.
    pub from: Option<Timestamp>,
    /// Only what was asked for before this time.
    pub to: Option<Timestamp>,
    /// Only with this flag.
    pub flag: Option<&'static str>,
    /// True when what expires soon comes first.
    pub by_deadline: bool,
}

impl QueueFilter {
    /// Reads a query. Errors: 400 `validation_failed`; 404 of a merchant that does not exist.
    pub fn read(desk: &Desk, pairs: &[(String, String)]) -> Result<Self> {
        let (group, recipient) = filtered_owners(desk, pairs)?;
        let (kind, flag) = (one_of(pairs, "kind", &KINDS)?, one_of(pairs, "flag", &FLAGS.names())?);
        let by_deadline = one_of(pairs, "order", &ORDERS)? == Some("deadline");
        let limit = |name| {
            let most = AMOUNT_MAX.0.unsigned_abs();
            Ok::<_, Problem>(number(pairs, name, 0..=most)?.and_then(|amount| i64::try_from(amount).ok()))
        };
        let (amount_from, amount_to) = (limit("amount_from")?, limit("amount_to")?);
        let mut check = Checker::new();
        if amount_from.zip(amount_to).is_some_and(|(from, to)| from > to) {
            check.refuse::<()>("amount_to", "before_from", "amount_to não pode ser menor que amount_from");
        }
        let (from, to) = between(&mut check, pairs)?;
        check.finish()?;
        Ok(Self { group, recipient, kind, amount_from, amount_to, from, to, flag, by_deadline })
    }

    fn wants(&self, item: &WaitingItem) -> bool {
        let has_amount = |is_within: &dyn Fn(i64) -> bool| item.amount().is_some_and(|amount| is_within(amount.0));
        self.group.is_none_or(|group| item.ledger.group() == Some(group))
            && self.recipient.is_none_or(|recipient| item.ledger == recipient)
            && self.kind.is_none_or(|kind| kind == kind_name(item))
            && self.amount_from.is_none_or(|from| has_amount(&|amount| amount >= from))
            && self.amount_to.is_none_or(|to| has_amount(&|amount| amount <= to))
            && self.from.is_none_or(|from| item.since() >= from)
            && self.to.is_none_or(|to| item.since() < to)
    }

    /// The first `most` of the items that it wants, in its order. Error: 400 `too_many_items` where
    /// too many may have the flag.
    pub fn page(&self, desk: &Desk, most: usize) -> Result<WaitingPage> {
        let Some(flag) = self.flag else { return Ok(self.unflagged(desk, most)) };
        let WaitingPage { items, total, .. } = self.unflagged(desk, FLAGS_READ_MAX);
        if total > FLAGS_READ_MAX {
            let message = format!("flag procura em até {FLAGS_READ_MAX} itens: escolha um filtro menor");
            return Err(too_many("flag", message));
        }
        let mut flagged = WaitingPage::default();
        for item in items {
            if flags(desk, &item)?.0.contains(&flag) {
                flagged.total += 1;
                flagged.amount += i128::from(item.amount().unwrap_or_default().0);
                flagged.items.push(item);
            }
        }
        flagged.items.truncate(most);
        Ok(flagged)
    }

    fn unflagged(&self, desk: &Desk, most: usize) -> WaitingPage {
        let now = desk.engine.now();
        let soon = now..=now.plus_ms(EXPIRES_SOON_MS);
        let rank = |item: &WaitingItem| {
            let deadline = item.deadline().filter(|until| self.by_deadline && soon.contains(until));
            (deadline.is_none(), deadline.unwrap_or_else(|| item.since()))
        };
        desk.engine.queue(|item| is_shown(item, now) && self.wants(item), rank, most)
    }
}

/// The queue, oldest first; with `order=deadline`, items that expire soon stand at its head.
#[utoipa::path(get, path = "/ops/queue", operation_id = "get_queue",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only of this merchant."),
        ("merchant" = Option<String>, Query, description = "The same, by its id or its name."),
        ("recipient_id" = Option<String>, Query, format = "uuid", description = "Only of this recipient."),
        ("recipient" = Option<String>, Query, description = "The same, by its id or its name."),
        ("kind" = Option<String>, Query, pattern = "^(recipient|withdrawal|refund|dispute|payout|entry|rail|period|batch|erasure)$", description = "Only of this kind."),
        ("amount_from" = Option<i64>, Query, minimum = 0, example = 100_000, description = "Only of at least so many centavos; what is not about money is left out."),
        ("amount_to" = Option<i64>, Query, minimum = 0, description = "Only of at most so many centavos."),
        ("from" = Option<String>, Query, example = "2026-11-01", description = "Only what was asked for at this instant (RFC 3339) or on this day (Sao Paulo), or later."),
        ("to" = Option<String>, Query, example = "2026-11-30", description = "Only what was asked for before the end of this day, or before this instant."),
        ("flag" = Option<String>, Query, pattern = "^(expired|expires_soon|disputed|exceeds_charge|foreign_account|rejected_before|rejected_elsewhere|shared_document|shared_account|shared_phone|shared_address|frozen|account_replaced|first_to_account|returned_before)$", description = "Only with this flag; 2,000 items are looked through."),
        ("order" = Option<String>, Query, pattern = "^(age|deadline)$", description = "`age` when absent; `deadline`: first what can be decided on for at most 7 more days, then the rest by age.")),
    responses((status = 200, body = Queue), (status = 404)))]
pub async fn get(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let WaitingPage { items, total, amount } = QueueFilter::read(&desk, &query(&parts)?)?.page(&desk, ITEMS_MAX)?;
    let items = items.iter().map(|item| view(&desk, item)).collect::<Result<_, _>>()?;
    Ok(ok(Queue { items, total, amount }))
}

/// Whether an item is shown at a time: a transfer is, once its outcome has been unknown for ten
/// minutes, and everything else at once.
pub fn is_shown(item: &WaitingItem, now: Timestamp) -> bool {
    let is_late = item.since().plus_ms(PAYOUT_AGE_MS) <= now;
    is_late || !matches!(item.what, WaitingKind::Payout { .. })
}

/// The item of the queue with an id; `None` when nothing of this id waits.
pub fn waiting(desk: &Desk, id: ObjectId) -> Option<WaitingItem> {
    desk.engine.waiting_item(id)
}
