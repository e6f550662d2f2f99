//! Entries of the house ledger (`P-house`): one operator asks for an entry, another approves it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::house::{HouseAccount, HouseCommand, HouseEntry, HouseEntryTerms};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::object::Object;
use ledger::time::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::body::JsonBody;
use crate::http::caller::PathId;
use crate::http::idempotency::{KeyScope, SentKey, decided};
use crate::http::json::{Checker, Raw, parse, parse_unread};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{created, ok};
use crate::http::timestamp::{Named, business_day, day};
use crate::ops::operator::{Decider, Operator};
use crate::ops::sub_recipients::Notes;
use crate::views::house_entry::HouseEntryView;

/// The group in the ids of entries: no merchant's.
const HOUSE_GROUP: GroupNumber = GroupNumber(0);

/// An entry of the house ledger: one amount from one account to another.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"debit": "Assets:Bank:Own", "credit": "Assets:Bank:Settlement", "amount": 250000,
    "reason": "Comissão de novembro", "reference": "EXTRATO-2026-11-30-17"}))]
pub struct HouseEntryRequest<'a> {
    /// The account to debit: `Assets:Bank:Settlement`, `Assets:Bank:Pix`, `Assets:Bank:Own`,
    /// `Liabilities:Suspense`, `Expenses:Bank:Fees`, `Expenses:Acquirer:Fees`,
    /// `Expenses:Losses:Other` or `Equity:Capital`.
    #[serde(borrow)]
    #[schema(value_type = String)]
    debit: Raw<'a>,
    /// The account to credit, another one of these.
    #[serde(borrow)]
    #[schema(value_type = String)]
    credit: Raw<'a>,
    /// How much, centavos.
    #[serde(borrow)]
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Why, at most 500 characters.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
    /// Reference of the document that proves it, at most 100 characters.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    reference: Raw<'a>,
    /// The day on which it takes effect, not after today and not in a closed month; the day of its
    /// booking when absent or null.
    #[serde(borrow, default)]
    #[schema(value_type = Option<String>, format = Date, example = "2026-11-30")]
    effective_date: Option<Raw<'a>>,
}

/// Asks for an entry of the house ledger. It waits in the queue until another operator approves it.
#[utoipa::path(post, path = "/ops/entries", operation_id = "request_entry", request_body = HouseEntryRequest,
    responses((status = 201, body = HouseEntryView)))]
pub async fn request(
    State(app): State<Arc<App>>,
    Decider(operator): Decider,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: HouseEntryRequest<'_> = parse(&body)?;
    let key = sent_key.read(&app.engine, KeyScope::Operators, None, &body)?;
    let (app, wire, operator) = (&app, &wire, &operator);
    let execute = |admitted| async move {
        let (terms, reason) = check(wire, app.engine.now())?;
        let command = HouseCommand::Request { id: app.new_id(HOUSE_GROUP)?, terms, reason };
        Ok(app.engine.command_house(command, operator.context(admitted)).await?)
    };
    let requested = key.run_recorded(LedgerId::System, HouseEntry::made_by, execute).await?;
    requested.answer(|entry| Ok(created(HouseEntryView::of(entry))))
}

fn check(wire: &HouseEntryRequest<'_>, now: Timestamp) -> Result<(HouseEntryTerms, String), Problem> {
    let mut check = Checker::new();
    let debit = account(&mut check, "debit", wire.debit);
    let credit = account(&mut check, "credit", wire.credit);
    let credit = credit.and_then(|credit| match debit == Some(credit) {
        true => check.refuse("credit", "same_account", "credit e debit devem ser contas diferentes"),
        false => Some(credit),
    });
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let reason = check.text("reason", wire.reason, 1..=500);
    let reference = check.text("reference", wire.reference, 1..=100);
    let effective_day = wire.effective_date.and_then(|raw| past_day(&mut check, raw, now));
    let checked = (|| {
        let (amount, reference) = (Centavos(amount?), reference?.into_owned());
        Some((
            HouseEntryTerms { debit: debit?, credit: credit?, amount, reference, effective_day },
            reason?.into_owned(),
        ))
    })();
    check.finish_with(checked)
}

/// A day that is not after today, in days since 1970-01-01.
fn past_day(check: &mut Checker, raw: Raw<'_>, now: Timestamp) -> Option<u32> {
    let text = check.text("effective_date", raw, 1..=10)?;
    let Some(begin) = day(&text).and_then(|_| Named::parse(&text)) else {
        return check.refuse("effective_date", "invalid_date", "effective_date deve ser uma data (AAAA-MM-DD)");
    };
    let day = business_day(begin.begin);
    if day > business_day(now.0) {
        return check.refuse("effective_date", "in_the_future", "effective_date não pode ser depois de hoje");
    }
    Some(day)
}

fn account(check: &mut Checker, name: &'static str, raw: Raw<'_>) -> Option<HouseAccount> {
    let found = check.text(name, raw, 1..=100)?;
    HouseAccount::named(&found)
        .or_else(|| check.refuse(name, "unknown", format!("{name} não é uma conta que o operador pode lançar")))
}

/// An entry of the house ledger.
#[utoipa::path(get, path = "/ops/entries/{id}", operation_id = "get_entry", params(("id" = String, Path)),
    responses((status = 200, body = HouseEntryView)))]
pub async fn get(State(app): State<Arc<App>>, _: Operator, PathId(id): PathId) -> Result<Response, Problem> {
    Ok(ok(HouseEntryView::of(named(&app, &id)?)))
}

/// Approves an entry, which is booked at once. The operator who asked for it gets 409
/// `second_operator_needed`.
#[utoipa::path(post, path = "/ops/entries/{id}/approve", operation_id = "approve_entry", params(("id" = String, Path)),
    responses((status = 200, body = HouseEntryView)))]
pub async fn approve(
    State(app): State<Arc<App>>,
    Decider(operator): Decider,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    parse_unread(&body)?;
    decide(&app, &operator, &id, (&sent_key, &body), |id| Ok(HouseCommand::Approve { id })).await
}

/// Rejects an entry, or takes back one's own.
#[utoipa::path(post, path = "/ops/entries/{id}/reject", operation_id = "reject_entry", params(("id" = String, Path)),
    request_body = Notes,
    responses((status = 200, body = HouseEntryView)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    Decider(operator): Decider,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: Notes<'_> = parse(&body)?;
    let command = |id| Ok(HouseCommand::Reject { id, notes: wire.check()? });
    decide(&app, &operator, &id, (&sent_key, &body), command).await
}

fn named(app: &App, id: &str) -> Result<HouseEntry, Problem> {
    let id = ObjectId::parse(id).filter(|id| app.engine.ids().group(*id) == HOUSE_GROUP);
    let found = id.map(|id| app.engine.object(id)).transpose()?.flatten();
    found.ok_or_else(|| Problem::new(Code::NotFound))
}

async fn decide(
    app: &App,
    operator: &Operator,
    id: &str,
    (sent_key, body): (&SentKey, &[u8]),
    command: impl Fn(ObjectId) -> Result<HouseCommand, Problem>,
) -> Result<Response, Problem> {
    let HouseEntry { id, .. } = named(app, id)?;
    let key = sent_key.read(&app.engine, KeyScope::Operators, Some(&id.txid()), body)?;
    let command = &command;
    let execute =
        |admitted| async move { decided(app.engine.command_house(command(id)?, operator.context(admitted)).await?) };
    let decided = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    decided.answer(|()| Ok(ok(HouseEntryView::of(named(app, &id.txid())?))))
}
