//! Split items of a request (interface 2.4): parsing and checks; ids of splits.

use ledger::merchant::{SplitPart, SplitRule};
use ledger::{AMOUNT_MAX, Centavos, ObjectId, Rate, SplitRequest};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::api::app::App;
use web::json::ITSELF;
use web::{Caller, Checker, Code, Problem, Raw, Result};

/// One element of `splits`: the recipient gets either an amount or a percent of the total.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = SplitRequest)]
pub struct SplitItem<'a> {
    /// The recipient's id, as registration gave it.
    #[schema(value_type = String, format = "uuid")]
    sub_recipient_id: Raw<'a>,
    /// Centavos that the recipient gets, exactly. Required without `percent`.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Percent of the total that the recipient gets, above 0, with at most four decimals, such as
    /// `"12.5"`; rounded half up to the centavo. Not with `amount`.
    #[schema(value_type = Option<String>, pattern = r"^\d{1,3}(\.\d{1,4})?$")]
    percent: Raw<'a>,
}

/// One element of `splits` of a refund: what is taken back of a recipient.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = TakeBackRequest)]
pub struct TakeBackItem<'a> {
    /// The recipient's id, as registration gave it.
    #[schema(value_type = String, format = "uuid")]
    sub_recipient_id: Raw<'a>,
    /// Centavos that are taken back.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
}

/// The most splits that a body of the largest size can hold; there is no smaller limit (interface
/// 2.4 rule 3).
const SPLITS_MAX: usize = 100_000;

/// Reads `splits` of a charge; absent, null and empty are the same.
pub fn read(check: &mut Checker, raw: Raw<'_>) -> Option<Vec<SplitRule>> {
    items(check, raw, |check, item: SplitItem<'_>| {
        let recipient = check.uuid("sub_recipient_id", item.sub_recipient_id);
        let part = match (item.amount, item.percent) {
            (Some(_), Some(_)) => check.refuse("percent", "ambiguous", "envie amount ou percent, não os dois"),
            (None, Some(percent)) => read_percent(check, percent).map(SplitPart::Percent),
            (amount, None) => check.centavos("amount", amount, 1..=AMOUNT_MAX.0).map(Centavos).map(SplitPart::Amount),
        };
        Some(SplitRule { recipient: ObjectId(recipient?.as_u128()), part: part? })
    })
}

/// The items of `splits`, each checked; an absent list is empty.
fn items<'a, T: Deserialize<'a>, U>(
    check: &mut Checker,
    raw: Raw<'a>,
    item: impl Fn(&mut Checker, T) -> Option<U>,
) -> Option<Vec<U>> {
    if raw.is_none() {
        return Some(Vec::new());
    }
    check.array("splits", raw, 0..=SPLITS_MAX, |check, element| check.object(ITSELF, element, &item))
}

/// The parts of a charge of `total`.
pub fn of_total(rules: Vec<SplitRule>, total: Centavos) -> Vec<SplitRequest> {
    rules.into_iter().map(|rule| rule.of(total)).collect()
}

fn read_percent(check: &mut Checker, raw: &RawValue) -> Option<Rate> {
    let percent = check.decimal_percent("percent", Some(raw))?;
    match Rate::percent(percent) {
        Ok(share) if share > Rate::default() => Some(share),
        _ => check.refuse("percent", "out_of_range", "percent deve ser maior que 0"),
    }
}

/// Reads `splits` of a refund; absent, null and empty are the same.
pub fn read_take_back(check: &mut Checker, raw: Raw<'_>) -> Option<Vec<SplitRequest>> {
    items(check, raw, |check, item: TakeBackItem<'_>| {
        let recipient = check.uuid("sub_recipient_id", item.sub_recipient_id);
        let amount = check.centavos("amount", item.amount, 1..=AMOUNT_MAX.0);
        Some(SplitRequest { recipient: ObjectId(recipient?.as_u128()), amount: Centavos(amount?) })
    })
}

/// Refuses splits on an account that is not configured for them (interface 5.4), before their
/// meaning is looked at.
pub fn admit(app: &App, caller: Caller, splits: Raw<'_>) -> Result<()> {
    let asks = splits.is_some_and(|raw| raw.get().trim_start_matches(['[', ' ', '\n', '\r', '\t']) != "]");
    if asks { require_split(app, caller) } else { Ok(()) }
}

/// Refuses an account that is not configured for split.
pub fn require_split(app: &App, caller: Caller) -> Result<()> {
    let enabled = app.engine.merchant(caller.group, |row| row.settings.split_enabled);
    if enabled == Some(true) { Ok(()) } else { Err(Problem::new(Code::SplitNotEnabled)) }
}
