//! Refunds, as merchants ask for them and read them (interface 2.11, 3.6). The operations team decides ([`super::ops::refunds`]).

use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::response::Response;
use ledger::event::{Event, Split};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::merchant::{MerchantCommand, RefundOrder};
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
use super::reply::{All, all_of, created, ok, time};
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
        for sequence in app.engine.projector().about(id)? {
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

    /// Takes in what the Records about it say of its decision.
    fn followed(mut self, app: &App) -> Result<Self, Problem> {
        for sequence in app.engine.projector().about(self.id)? {
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
        let (status, notes) = match &self.fate {
            Fate::Pending => ("pending", None),
            Fate::Approved => ("approved", None),
            Fate::Rejected(notes) => ("rejected", Some(notes.clone())),
        };
        RefundView {
            id: self.id.uuid().to_string(),
            payment_id: self.charge.txid(),
            amount: self.amount.0,
            status,
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

fn check(app: &App, caller: Caller, wire: &RefundRequest<'_>) -> Result<RefundOrder, Problem> {
    let mut check = Checker::new();
    let payment_id = check.text("payment_id", wire.payment_id, 1..=64);
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let reason = check.optional_text("reason", wire.reason, 0..=500);
    let take_back = splits::read(&mut check, wire.splits);
    let checked = (|| Some((payment_id?, amount?, take_back?)))();
    let (payment_id, amount, take_back) = check.finish_with(checked)?;
    let charge = ObjectId::parse(&payment_id).ok_or_else(|| Problem::new(Code::ChargeNotFound))?;
    let now = app.engine.now();
    let id = app.new_id(caller.group)?;
    let seal =
        |text: &str| app.engine.keyring().seal_value(SealedFor::reason(id), now, &FreeText { text: text.to_owned() });
    Ok(RefundOrder {
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

/// All refunds of the account, newest first.
#[utoipa::path(get, path = "/api/refunds", operation_id = "list_refunds", responses((status = 200, body = All<RefundView>)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, Problem> {
    let merchant = caller.ledger();
    // What is asked for from here on is not in this list.
    let end = Sequence(app.engine.projector().published().0 + 1);
    let (total, _) = app.engine.projector().refunds_before(merchant, end, 0)?;
    all_of(total, AllRefunds { app, merchant, end, page: Vec::new() })
}

/// The refunds of a merchant in Records before `end`, newest first.
struct AllRefunds {
    app: Arc<App>,
    merchant: LedgerId,
    end: Sequence,
    /// What was looked up and not given yet, oldest first.
    page: Vec<Sequence>,
}

impl AllRefunds {
    fn look_up(&mut self) -> Result<Option<Sequence>, Problem> {
        if self.page.is_empty() {
            let (_, page) = self.app.engine.projector().refunds_before(self.merchant, self.end, LOOKED_UP_AT_ONCE)?;
            self.end = page.last().copied().unwrap_or(self.end);
            self.page = page;
            self.page.reverse();
        }
        Ok(self.page.pop())
    }

    fn read(&self, sequence: Sequence) -> Result<RefundView, Problem> {
        let refund = Refund::asked_by(&self.app, &self.app.engine.record(sequence)?);
        let refund = refund.ok_or_else(|| Problem::new(Code::Internal))?.followed(&self.app)?;
        Ok(refund.view(&self.app))
    }
}

impl Iterator for AllRefunds {
    type Item = Result<RefundView, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let sequence = self.look_up().transpose()?;
        Some(sequence.and_then(|sequence| self.read(sequence)))
    }
}
