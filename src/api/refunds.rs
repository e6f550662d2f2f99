//! Refunds, as merchants ask for them and read them (interface 2.11, 3.6). The operations team
//! decides ([`crate::ops::refunds`]).

use std::ops::Range;
use std::sync::Arc;

use actors::read_model::Listing;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::{MerchantCommand, RequestRefund};
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::personal::{FreeText, SealedFor};
use ledger::record::Record;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::splits;
use crate::app::App;
use crate::http::body::JsonBody;
use crate::http::caller::{Caller, PathId};
use crate::http::idempotency::{Admitted, KeyScope, SentKey, recorded};
use crate::http::json::{Checker, Raw, parse};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{All, FILTERED_MAX, Filter, all_of, created, ok, query};
use crate::views::charge::Charge;
use crate::views::refund::{Refund, RefundView};

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
    let key = sent_key.read(&app.engine, KeyScope::Merchant(caller.group), None, &body)?;
    let (app, wire) = (&app, &wire);
    let execute = |Admitted { key, permit }| async move {
        let order = check(app, caller, wire)?;
        let command = MerchantCommand::RequestRefund(Box::new(order));
        recorded(app.engine.command(caller.group, command, key, caller.requester(), permit).await?)
    };
    key.run(caller.ledger(), Ok, execute).await?.answer(|record| answer(app, &record))
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
        facts: Charge::facts(&app.engine, caller.group, charge)?,
        id,
        amount: Centavos(amount),
        take_back,
        reason: reason.as_deref().map(seal).transpose()?,
    })
}

/// The answer of the request that a Record carried out.
fn answer(app: &App, record: &Record) -> Result<Response, Problem> {
    let refund = Refund::asked_by(&app.engine, record).ok_or_else(|| Problem::new(Code::Internal))?;
    Ok(created(refund.view(&app.engine)))
}

/// One refund of the account.
#[utoipa::path(get, path = "/api/refunds/{id}", operation_id = "get_refund", params(("id" = String, Path)),
    responses((status = 200, body = RefundView)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(id): PathId) -> Result<Response, Problem> {
    let found = ObjectId::parse(&id).map(|id| Refund::find(&app.engine, id)).transpose()?.flatten();
    let refund = found.filter(|refund| refund.group == caller.group).ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok(ok(refund.view(&app.engine)))
}

/// How many refunds are looked up at once.
const LOOKED_UP_AT_ONCE: usize = 100;

/// Values of `status`.
const STATUSES: [&str; 3] = ["pending", "approved", "rejected"];

/// All refunds of the account, newest first. With a status, the period may hold 2,000 refunds.
#[utoipa::path(get, path = "/api/refunds", operation_id = "list_refunds",
    params(("status" = Option<String>, Query, pattern = "^(pending|approved|rejected)$", description = "`pending`, `approved` or `rejected`"),
        ("from" = Option<String>, Query, description = "Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Created before this instant, or on this day at the latest")),
    responses((status = 200, body = All<RefundView>)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, parts: Parts) -> Result<Response, Problem> {
    let (merchant, filter) = (caller.ledger(), Filter::read(&query(&parts)?, "status", &STATUSES)?);
    // Later refunds are not in this list.
    let end = app.engine.read_model().published().0 + 1;
    let range = filter.range(&app.engine, Listing::Refunds(merchant))?;
    let range = range.start..range.end.min(end);
    let count = if filter.word.is_some() { FILTERED_MAX } else { 0 };
    let (total, newest) = app.engine.read_model().newest_refunds(merchant, range.clone(), count)?;
    filter.check("status", total)?;
    let Some(status) = filter.word else {
        return all_of(total, AllRefunds { app, merchant, range, page: Vec::new() });
    };
    let mut found = Vec::new();
    for sequence in newest {
        if Refund::asked_at(&app.engine, sequence)?.fate.status() == status {
            found.push(sequence);
        }
    }
    let read = move |sequence| Ok(Refund::asked_at(&app.engine, sequence)?.view(&app.engine));
    all_of(found.len() as u64, found.into_iter().map(read))
}

/// The refunds of a merchant in a range of Records, newest first.
struct AllRefunds {
    app: Arc<App>,
    merchant: LedgerId,
    range: Range<u64>,
    /// Found and not given yet, oldest first.
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
        Some(sequence.and_then(|sequence| Ok(Refund::asked_at(&self.app.engine, sequence)?.view(&self.app.engine))))
    }
}
