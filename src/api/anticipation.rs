//! Anticipation of card splits (interface 2.10, 3.3): the splits that can be anticipated, its
//! price, and the anticipation itself.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use actors::engine::ListedSplit;
use axum::extract::State;
use axum::response::Response;
use ledger::anticipation::Anticipation;
use ledger::event::{Cut, SplitKey};
use ledger::recipient::{AnticipationTerms, CardSplit};
use ledger::{
    Centavos, Fees, LedgerId, ObjectId, Rate, RecipientCommand, RecipientState, Record, Rejection, SplitHistory,
    Timestamp,
};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, Type};

use crate::api::splits::require_split;
use crate::api::sub_recipients::find_own;
use crate::api::{App, AppState};
use web::json::ITSELF;
use web::reply::{WholeListParams, decimal, items_of, linked};
use web::views::charge::payer;
use web::views::statement::{parse_split_id, place_of, split_id};
use web::{
    Caller, Checker, Code, JsonBody, KeyScope, KeyedBody, PageQuery, PathId, Problem, Raw, Result, not_found, ok,
    parse, time,
};

/// What is to be anticipated.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"split_ids": ["019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e-0"], "target_days": 2}))]
pub struct AnticipationRequest<'a> {
    /// Ids of pending card splits, each once.
    #[schema(value_type = Vec<String>, min_items = 1)]
    split_ids: Raw<'a>,
    /// 2, 7 or 15.
    #[schema(schema_with = target_days)]
    target_days: Raw<'a>,
    /// The fee that the caller has seen, centavos: 409 when it is another by now.
    #[schema(value_type = Option<i64>, minimum = 0, example = 48)]
    fee_cents: Raw<'a>,
}

/// What an anticipation did, or would do.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnticipationResult {
    /// Always true.
    success: bool,
    /// How many splits.
    #[schema(example = 1)]
    anticipated_count: usize,
    /// What was left of them, centavos.
    #[schema(example = 2000)]
    original_cents: i64,
    /// The fees, each rounded by itself, centavos.
    #[schema(example = 48)]
    fee_cents: i64,
    /// What becomes available, centavos.
    #[schema(example = 1952)]
    net_cents: i64,
    /// 2, 7 or 15.
    #[schema(schema_with = target_days)]
    target_days: u8,
    /// The account's rate, percent.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 2.38)]
    rate_percent: Decimal,
}

/// The splits that can be anticipated.
#[derive(Debug, Serialize, ToSchema)]
pub struct Anticipable {
    /// Newest first.
    items: Vec<AnticipableSplit>,
    /// The account's rates, percent.
    rates: Rates,
    /// Address of the splits that follow; where the request has `limit`, and there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A split that can be anticipated.
#[derive(Debug, Serialize, ToSchema)]
pub struct AnticipableSplit {
    /// The split's id.
    #[schema(example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e-0")]
    id: String,
    /// What is left of it, centavos.
    #[schema(example = 2000)]
    amount_cents: i64,
    /// Always `credit_card`.
    #[schema(pattern = "^(credit_card)$")]
    payment_method: &'static str,
    /// When it becomes available unless anticipated.
    balance_available_at: String,
    /// Payer's name.
    #[schema(example = "João Ávila")]
    payment_nome: String,
    /// The price for each number of days.
    fees: Quotes,
}

/// The account's rates, percent.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = AnticipationPercents)]
pub struct Rates {
    /// For 2 days.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 2.38)]
    d2: Decimal,
    /// For 7 days.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 2.0)]
    d7: Decimal,
    /// For 15 days.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 1.5)]
    d15: Decimal,
}

/// The price of a split for each number of days.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnticipationQuotes)]
pub struct Quotes {
    /// For 2 days.
    d2: Quote,
    /// For 7 days; null when the split falls due before.
    #[schema(required)]
    d7: Option<Quote>,
    /// For 15 days; null when the split falls due before.
    #[schema(required)]
    d15: Option<Quote>,
}

/// The price of a split.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AnticipationQuote)]
pub struct Quote {
    /// 2, 7 or 15.
    #[schema(schema_with = target_days)]
    target_days: u8,
    /// Rate of the anticipation, percent.
    #[serde(serialize_with = "decimal")]
    #[schema(value_type = f64, example = 2.38)]
    rate_percent: Decimal,
    /// Fee of the anticipation, centavos.
    #[schema(example = 48)]
    fee_cents: i64,
    /// What becomes available, centavos.
    #[schema(example = 1952)]
    net_cents: i64,
}

/// The numbers of days that an anticipation may name.
fn target_days() -> Object {
    Object::builder().schema_type(Type::Integer).enum_values(Some([2, 7, 15])).build()
}

impl Quote {
    fn of(target_days: u8, rate: Rate, amount: Centavos) -> Self {
        let fee = rate.of(amount);
        Self { target_days, rate_percent: rate.as_percent(), fee_cents: fee.0, net_cents: (amount - fee).0 }
    }
}

/// The checked request.
struct CheckedAnticipation {
    splits: Vec<SplitKey>,
    target_days: u8,
    expected_fee: Option<Centavos>,
}

/// The most splits that a body of the largest size can name; there is no smaller limit.
const SPLITS_MAX: usize = 100_000;

/// Anticipates card splits, all or none: what is left of them after the fee is available at once.
#[utoipa::path(post, path = "/api/dashboard/sub-recipients/{id}/anticipate", operation_id = "anticipate",
    request_body = AnticipationRequest, responses((status = 200, body = AnticipationResult), (status = 403)))]
pub async fn anticipate(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    let wire: AnticipationRequest<'_> = parse(sent.bytes())?;
    let Ok((recipient, row)) = find_own(&app, caller, &id) else {
        require_split(&app, caller)?;
        wire.check()?;
        return Err(not_found());
    };
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&row.id.txid()))?;
    let (app, wire) = (&app, &wire);
    let execute = |admitted| async move {
        require_split(app, caller)?;
        let command = command(app, caller, recipient, &wire.check()?)?;
        Ok(app.engine.command_recipient(recipient, command, caller.context(admitted)).await?)
    };
    let of = |record: &Record| Anticipation::of(&record.events);
    key.run_recorded(recipient, of, execute).await?.answer(|done| Ok(ok(AnticipationResult::of(&done))))
}

/// Tells what an anticipation would do, and keeps nothing.
#[utoipa::path(post, path = "/api/dashboard/sub-recipients/{id}/anticipate/simulate",
    operation_id = "simulate_anticipation", request_body = AnticipationRequest,
    responses((status = 200, body = AnticipationResult), (status = 403)))]
pub async fn simulate(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    let wire: AnticipationRequest<'_> = parse(&body.bytes)?;
    require_split(&app, caller)?;
    let wanted = wire.check()?;
    let (recipient, _) = find_own(&app, caller, &id)?;
    let terms = terms(&app, caller, &wanted)?;
    let splits = card_splits(&app, recipient, &wanted.splits)?;
    let id = app.engine.new_id(caller.group)?;
    let simulate = move |books: &RecipientState, now: Timestamp| {
        // Everything published has been received.
        let cut = Cut { foreign: u64::MAX, minute: now.minute(), own: u64::MAX };
        let splits = books.anticipated(&splits, terms, now, cut)?;
        Ok::<_, Rejection>(Anticipation::new(id, &splits, terms.target_days, terms.rate))
    };
    let done = app.engine.read_recipient(recipient, simulate).await??;
    Ok(ok(AnticipationResult::of(&done)))
}

impl AnticipationRequest<'_> {
    fn check(&self) -> Result<CheckedAnticipation> {
        let mut check = Checker::new();
        let ids = check.array("split_ids", self.split_ids, 1..=SPLITS_MAX, |check, id| check.text(ITSELF, id, 0..=100));
        let mut seen = HashSet::new();
        if ids.as_ref().is_some_and(|ids| !ids.iter().all(|id| seen.insert(id))) {
            check.refuse::<()>("split_ids", "duplicate", "split_ids não pode ter itens repetidos");
        }
        let target_days = check.integer("target_days", self.target_days, 2..=15).and_then(|days| match days {
            2 | 7 | 15 => u8::try_from(days).ok(),
            _ => check.refuse("target_days", "unknown_value", "target_days deve ser 2, 7 ou 15"),
        });
        let expected_fee = check.given_or(None, self.fee_cents, |check, raw| {
            check.integer("fee_cents", raw, 0..=i64::MAX).map(|fee| Some(Centavos(fee)))
        });
        let (ids, (target_days, expected_fee)) = check.finish_with(ids.zip(target_days.zip(expected_fee)))?;
        let splits = (0..).zip(&ids).map(|(index, id)| parse_split_id(id).ok_or_else(|| unknown(index)));
        Ok(CheckedAnticipation { splits: splits.collect::<Result<_, _>>()?, target_days, expected_fee })
    }
}

/// No split of this id in the recipient's statement.
fn unknown(index: usize) -> Problem {
    let problem = not_found().message("Split não encontrado");
    problem.field(format!("split_ids[{index}]"), Code::NotFound.row().code, "Split não encontrado")
}

/// The command, with all of the splits' history that does not change.
fn command(app: &App, caller: Caller, recipient: LedgerId, wanted: &CheckedAnticipation) -> Result<RecipientCommand> {
    let terms = terms(app, caller, wanted)?;
    let splits = card_splits(app, recipient, &wanted.splits)?;
    Ok(RecipientCommand::Anticipate { id: app.engine.new_id(caller.group)?, splits, terms })
}

/// The days of an anticipation, and the caller's rate for them.
fn terms(app: &App, caller: Caller, wanted: &CheckedAnticipation) -> Result<AnticipationTerms> {
    let fees = fees(app, caller)?;
    let rate = match wanted.target_days {
        2 => fees.anticipation_d2,
        7 => fees.anticipation_d7,
        _ => fees.anticipation_d15,
    };
    Ok(AnticipationTerms { target_days: wanted.target_days, rate, expected_fee: wanted.expected_fee })
}

fn fees(app: &App, caller: Caller) -> Result<Fees> {
    Ok(app.engine.known_merchant(caller.group, |row| row.settings.fees)?)
}

/// The card splits of these keys, in their order: an unknown one is 404, one that is no card split
/// 409.
fn card_splits(app: &App, recipient: LedgerId, keys: &[SplitKey]) -> Result<Vec<CardSplit>> {
    let mut by_charge: Vec<usize> = (0..keys.len()).collect();
    by_charge.sort_by_key(|place| keys[*place].charge);
    let mut splits: Vec<Option<CardSplit>> = vec![None; keys.len()];
    let mut unknown_at: Option<usize> = None;
    // A charge is read once, and one at a time.
    let mut read: Option<(ObjectId, Option<SplitHistory>)> = None;
    for place in by_charge {
        let SplitKey { charge, index } = keys[place];
        if read.as_ref().is_none_or(|(known, _)| *known != charge) {
            read = Some((charge, app.engine.split_history(recipient, charge)?));
        }
        let history = read.as_ref().and_then(|(_, history)| history.as_ref());
        if history.is_none_or(|history| history.nominal(index).is_none()) {
            unknown_at = Some(unknown_at.map_or(place, |earlier| earlier.min(place)));
        }
        splits[place] = history.and_then(|history| history.card_split(index));
    }
    if let Some(place) = unknown_at {
        return Err(unknown(place));
    }
    let splits = splits.into_iter().enumerate();
    let splits = splits.map(|(index, split)| split.ok_or(Rejection::SplitNotAnticipable { index }));
    Ok(splits.collect::<Result<_, _>>()?)
}

impl AnticipationResult {
    fn of(done: &Anticipation) -> Self {
        Self {
            success: true,
            anticipated_count: done.count,
            original_cents: done.original.0,
            fee_cents: done.fee.0,
            net_cents: done.net().0,
            target_days: done.target_days,
            rate_percent: done.rate.as_percent(),
        }
    }
}

/// The card splits of a recipient that can be anticipated, and the account's rates.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients/{id}/anticipate", operation_id = "list_anticipable",
    params(WholeListParams), responses((status = 200, body = Anticipable)))]
pub async fn list(State(app): AppState, caller: Caller, PathId(id): PathId, query: PageQuery) -> Result<Response> {
    let (recipient, _) = find_own(&app, caller, &id)?;
    let now = app.engine.read_recipient(recipient, |_, now| now).await?;
    let fees = fees(&app, caller)?;
    let rates = Rates {
        d2: fees.anticipation_d2.as_percent(),
        d7: fees.anticipation_d7.as_percent(),
        d15: fees.anticipation_d15.as_percent(),
    };
    let [after, before] = query.cursors.places(|id| place_of(&app.engine, recipient, id))?;
    let engine = Arc::clone(&app.engine);
    let place = move |split: &Result<AnticipableSplit>| {
        let key = split.as_ref().ok().and_then(|split| parse_split_id(&split.id))?;
        Some((engine.splits_listed_by(key.charge).ok()??, key.index))
    };
    let place_too = place.clone();
    let first = before.map_or(u64::MAX, |(number, _)| number + 1);
    let walk = Walk { app, recipient, now, fees, before: Some(first), listed: VecDeque::new(), charge: None };
    let walk = walk.skip_while(move |split| before.is_some_and(|before| place(split) >= Some(before)));
    let walk = walk.take_while(move |split| after.is_none_or(|after| split.is_err() || place_too(split) > Some(after)));
    let (items, next) = query.cursors.first(walk, |split| split.id.clone())?;
    let rest = next.as_ref().map_or_else(|| json!({ "rates": rates }), |next| json!({"rates": rates, "next": next}));
    Ok(next.iter().fold(items_of(items, &rest)?, |answer, next| linked(answer, next)))
}

/// Splits that are looked up at once.
const READ_AT_ONCE: usize = 256;

/// The splits that can be anticipated; a few at a time are in memory.
struct Walk {
    app: Arc<App>,
    recipient: LedgerId,
    now: Timestamp,
    fees: Fees,
    /// Ordinal to go on from; none at the end.
    before: Option<u64>,
    listed: VecDeque<ListedSplit>,
    /// A charge's splits stand together: it is read once.
    charge: Option<(ListedSplit, SplitHistory)>,
}

impl Iterator for Walk {
    type Item = Result<AnticipableSplit>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.listed.pop_front() {
                Some(listed) => match self.look_at(listed) {
                    Ok(Some(found)) => return Some(Ok(found)),
                    Ok(None) => {}
                    Err(problem) => return Some(Err(problem)),
                },
                None => match self.app.engine.splits_before(self.recipient, self.before?, READ_AT_ONCE) {
                    Ok((listed, before)) => (self.listed, self.before) = (listed.into(), before),
                    Err(error) => return Some(Err(error.into())),
                },
            }
        }
    }
}

impl Walk {
    fn look_at(&mut self, listed: ListedSplit) -> Result<Option<AnticipableSplit>> {
        let charge = match self.charge.take().filter(|(known, _)| known.sequence == listed.sequence) {
            Some((_, charge)) => charge,
            None => self.app.engine.listed_split_history(self.recipient, listed)?,
        };
        let found = self.anticipable(&charge, listed.index);
        if charge.is_over(self.now) {
            // All older splits are due too.
            (self.before, self.listed) = (None, VecDeque::new());
        }
        self.charge = Some((listed, charge));
        Ok(found)
    }

    fn anticipable(&self, charge: &SplitHistory, index: u32) -> Option<AnticipableSplit> {
        let split = charge.card_split(index)?;
        let left = charge.left(index).filter(|left| left.is_positive())?;
        if charge.place(index, self.now).is_some() {
            return None;
        }
        let fees = &self.fees;
        let offered = |days, rate| split.is_offered(days, self.now).then(|| Quote::of(days, rate, left));
        Some(AnticipableSplit {
            id: split_id(charge.charge, index),
            amount_cents: left.0,
            payment_method: "credit_card",
            balance_available_at: time(split.due.start()),
            payment_nome: payer(&self.app.engine, charge.charge, charge.payer.as_ref()).name,
            fees: Quotes {
                d2: Quote::of(2, fees.anticipation_d2, left),
                d7: offered(7, fees.anticipation_d7),
                d15: offered(15, fees.anticipation_d15),
            },
        })
    }
}
