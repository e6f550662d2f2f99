//! Refunds, as merchants ask for them and read them (interface 2.11, 3.6). The operations team decides ([`super::ops::refunds`]).

use std::ops::Range;
use std::sync::Arc;

use actors::read_model::Listing;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::event::{Event, Split};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::merchant::{MerchantCommand, RequestRefund};
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::personal::{FreeText, SealedFor};
use ledger::record::Record;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::{App, Caller, PathId, Settled, settled};
use super::body::JsonBody;
use super::charges::{Charge, SplitView};
use super::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use super::json::{Checker, Raw, parse};
use super::problem::{Code, Problem};
use super::reply::{All, FILTERED_MAX, Filter, all_of, created, ok, query, time};
use super::splits;

/// A refund, as asked for.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({
    "payment_id": "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", "amount": 3000, "reason": "Produto devolvido",
}))]
pub struct RefundRequest<'a> {
    /// The charge: its txid.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    payment_id: Raw<'a>,
    /// Centavos; may be a part of the charge.
    #[serde(borrow)]
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Why, at most 500 characters.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, max_length = 500)]
    reason: Raw<'a>,
    /// What to take back of recipients' splits; absent, they keep all of them.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
}

/// A refund, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefundView {
    /// The refund's id.
    #[schema(format = "uuid")]
    id: String,
    /// The charge: its txid.
    payment_id: String,
    /// Centavos.
    #[schema(example = 3000)]
    amount: i64,
    /// `pending`, `approved` or `rejected`.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    status: &'static str,
    /// When it was asked for.
    created_at: String,
    /// Why, as the merchant said; where it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Produto devolvido")]
    reason: Option<String>,
    /// What it takes back of recipients' splits; where it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<SplitView>,
    /// Why it was rejected; rejected ones only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Sem comprovante")]
    notes: Option<String>,
}

/// Where a refund stands.
enum Fate {
    Pending,
    Approved,
    Rejected(String),
}

impl Fate {
    fn status(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected(_) => "rejected",
        }
    }
}

/// A refund, from its Records.
pub struct Refund {
    /// Its id.
    pub id: ObjectId,
    /// Of which charge.
    pub charge: ObjectId,
    /// Whose.
    pub group: GroupNumber,
    amount: Centavos,
    take_back: Vec<Split>,
    reason: Option<String>,
    fate: Fate,
}

impl Refund {
    /// Finds a refund, whosever it is.
    pub fn find(app: &App, id: ObjectId) -> Result<Option<Self>, Problem> {
        for sequence in app.engine.read_model().about(id)? {
            let asked = Self::asked_by(app, &app.engine.record(sequence)?);
            if let Some(refund) = asked.filter(|refund| refund.id == id) {
                return Ok(Some(refund.followed(app)?));
            }
        }
        Ok(None)
    }

    /// The refund that a Record asks for.
    fn asked_by(app: &App, record: &Record) -> Option<Self> {
        let group = record.owner.group()?;
        let reason = app.engine.keyring().open_personal::<FreeText>(record);
        record.events.iter().find_map(|event| match event {
            Event::RefundRequested { id, charge, amount, take_back, .. } => Some(Self {
                id: *id,
                charge: *charge,
                group,
                amount: *amount,
                take_back: take_back.clone(),
                reason: reason.as_ref().map(|reason| reason.text.clone()),
                fate: Fate::Pending,
            }),
            _ => None,
        })
    }

    /// The refund that the Record of this sequence asked for, as it stands now.
    fn asked_at(app: &App, sequence: Sequence) -> Result<Self, Problem> {
        let asked = Self::asked_by(app, &app.engine.record(sequence)?);
        asked.ok_or_else(|| Problem::new(Code::Internal))?.followed(app)
    }

    /// Takes in what the Records about it say of its decision.
    fn followed(mut self, app: &App) -> Result<Self, Problem> {
        for sequence in app.engine.read_model().about(self.id)? {
            for event in app.engine.record(sequence)?.events {
                match event {
                    Event::RefundApproved { id, .. } if id == self.id => self.fate = Fate::Approved,
                    Event::RefundRejected { id, notes, .. } if id == self.id => self.fate = Fate::Rejected(notes),
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// The refund as it is shown.
    pub fn view(&self, app: &App) -> RefundView {
        let notes = match &self.fate {
            Fate::Rejected(notes) => Some(notes.clone()),
            Fate::Pending | Fate::Approved => None,
        };
        RefundView {
            id: self.id.uuid().to_string(),
            payment_id: self.charge.txid(),
            amount: self.amount.0,
            status: self.fate.status(),
            created_at: time(self.id.created_at()),
            reason: self.reason.clone(),
            splits: self.take_back.iter().map(|part| SplitView::of(app, self.group, part)).collect(),
            notes,
        }
    }
}

/// Asks for a refund of a paid charge. The operations team decides; money moves when it approves.
#[utoipa::path(post, path = "/api/refunds", operation_id = "request_refund", request_body = RefundRequest,
    responses((status = 201, body = RefundView), (status = 404)))]
pub async fn request(
    State(app): State<Arc<App>>,
    caller: Caller,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: RefundRequest<'_> = parse(&body)?;
    let key = Key::of(&app, &sent_key, &caller.group.0.to_string(), "POST /api/refunds", &body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(&app, caller.ledger())? {
            Keyed::Replay(record, _) => return Ok(replayed(answer(&app, &record)?)),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        let order = check(&app, caller, &wire)?;
        let command = MerchantCommand::RequestRefund(Box::new(order));
        match settled(app.engine.command(caller.group, command, lookup, caller.requester(), permit).await?)? {
            Settled::Recorded(record) => return answer(&app, &record),
            Settled::KeyTaken => {}
            Settled::Unchanged => return Err(Problem::new(Code::Internal)),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}

fn check(app: &App, caller: Caller, wire: &RefundRequest<'_>) -> Result<RequestRefund, Problem> {
    let mut check = Checker::new();
    // Any text names a charge or none: one that cannot be an id is not found (interface 7).
    let payment_id = check.any_text("payment_id", wire.payment_id);
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let reason = check.optional_text("reason", wire.reason, 0..=500);
    let take_back = splits::read(&mut check, wire.splits);
    let checked = (|| Some((payment_id?, amount?, take_back?)))();
    let (payment_id, amount, take_back) = check.finish_with(checked)?;
    let charge = ObjectId::parse(payment_id.trim()).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let now = app.engine.now();
    let id = app.new_id(caller.group)?;
    let seal =
        |text: &str| app.engine.keyring().seal_value(SealedFor::reason(id), now, &FreeText { text: text.to_owned() });
    Ok(RequestRefund {
        facts: Charge::facts(app, caller, charge)?,
        id,
        amount: Centavos(amount),
        take_back,
        reason: reason.as_deref().map(seal).transpose()?,
    })
}

/// The answer of the request that a Record carried out.
fn answer(app: &App, record: &Record) -> Result<Response, Problem> {
    let refund = Refund::asked_by(app, record).ok_or_else(|| Problem::new(Code::Internal))?;
    Ok(created(refund.view(app)))
}

/// One refund of the account.
#[utoipa::path(get, path = "/api/refunds/{id}", operation_id = "get_refund", params(("id" = String, Path)),
    responses((status = 200, body = RefundView)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(id): PathId) -> Result<Response, Problem> {
    let found = ObjectId::parse(&id).map(|id| Refund::find(&app, id)).transpose()?.flatten();
    let refund = found.filter(|refund| refund.group == caller.group).ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok(ok(refund.view(&app)))
}

/// How many refunds are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 100;

/// What a refund may be.
const STATUSES: [&str; 3] = ["pending", "approved", "rejected"];

/// All refunds of the account, newest first. With a status, the period may hold 2,000 refunds.
#[utoipa::path(get, path = "/api/refunds", operation_id = "list_refunds",
    params(("status" = Option<String>, Query, pattern = "^(pending|approved|rejected)$", description = "`pending`, `approved` or `rejected`"),
        ("from" = Option<String>, Query, description = "Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Created before this instant, or on this day at the latest")),
    responses((status = 200, body = All<RefundView>)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, parts: Parts) -> Result<Response, Problem> {
    let (merchant, filter) = (caller.ledger(), Filter::read(&query(&parts)?, "status", &STATUSES)?);
    // What is asked for from here on is not in this list.
    let end = app.engine.read_model().published().0 + 1;
    let range = filter.range(&app, Listing::Refunds(merchant))?;
    let range = range.start..range.end.min(end);
    let count = if filter.word.is_some() { FILTERED_MAX } else { 0 };
    let (total, newest) = app.engine.read_model().newest_refunds(merchant, range.clone(), count)?;
    filter.check("status", total)?;
    let Some(status) = filter.word else {
        return all_of(total, AllRefunds { app, merchant, range, page: Vec::new() });
    };
    let mut found = Vec::new();
    for sequence in newest {
        if Refund::asked_at(&app, sequence)?.fate.status() == status {
            found.push(sequence);
        }
    }
    let read = move |sequence| Ok(Refund::asked_at(&app, sequence)?.view(&app));
    all_of(found.len() as u64, found.into_iter().map(read))
}

/// The refunds of a merchant in a range of Records, newest first.
struct AllRefunds {
    app: Arc<App>,
    merchant: LedgerId,
    range: Range<u64>,
    /// What was looked up and not given yet, oldest first.
    page: Vec<Sequence>,
}

impl AllRefunds {
    fn look_up(&mut self) -> Result<Option<Sequence>, Problem> {
        if self.page.is_empty() {
            let read_model = self.app.engine.read_model();
            let (_, page) = read_model.newest_refunds(self.merchant, self.range.clone(), LOOKED_UP_AT_ONCE)?;
            self.range.end = page.last().map_or(self.range.end, |oldest| oldest.0);
            self.page = page;
            self.page.reverse();
        }
        Ok(self.page.pop())
    }
}

impl Iterator for AllRefunds {
    type Item = Result<RefundView, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let sequence = self.look_up().transpose()?;
        Some(sequence.and_then(|sequence| Ok(Refund::asked_at(&self.app, sequence)?.view(&self.app))))
    }
}
