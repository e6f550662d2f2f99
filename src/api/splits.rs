//! Split items of a request (interface 2.4): parsing and checks; ids of splits.

use ledger::event::SplitKey;
use ledger::id::ObjectId;
use ledger::merchant::SplitRequest;
use ledger::money::{AMOUNT_MAX, Centavos};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::app::App;
use web::caller::Caller;
use web::json::{Checker, ITSELF, Raw};
use web::problem::{Code, Problem};
use web::views::statement::split_id;

/// One element of `splits`.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = SplitRequest)]
pub struct SplitItem<'a> {
    /// The recipient's id, as registration gave it.
    #[schema(value_type = String, format = "uuid")]
    sub_recipient_id: Raw<'a>,
    /// Centavos that the recipient gets, exactly.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
}

/// The most splits that a body of the largest size can hold; there is no smaller limit (interface
/// 2.4 rule 3).
const SPLITS_MAX: usize = 100_000;

/// Reads `splits`; absent, null and empty are the same.
pub fn read(check: &mut Checker, raw: Raw<'_>) -> Option<Vec<SplitRequest>> {
    if raw.is_none() {
        return Some(Vec::new());
    }
    check.array("splits", raw, 0..=SPLITS_MAX, |check, element| {
        check.object(ITSELF, element, |check, item: SplitItem<'_>| {
            let recipient = check.uuid("sub_recipient_id", item.sub_recipient_id);
            let amount = check.centavos("amount", item.amount, 1..=AMOUNT_MAX.0);
            Some(SplitRequest { recipient: ObjectId(recipient?.as_u128()), amount: Centavos(amount?) })
        })
    })
}

/// Refuses splits on an account that is not configured for them (interface 5.4), before their
/// meaning is looked at.
pub fn admit(app: &App, caller: Caller, splits: Raw<'_>) -> Result<(), Problem> {
    let asks = splits.is_some_and(|raw| raw.get().trim_start_matches(['[', ' ', '\n', '\r', '\t']) != "]");
    if asks { require_split(app, caller) } else { Ok(()) }
}

/// Refuses an account that is not configured for split.
pub fn require_split(app: &App, caller: Caller) -> Result<(), Problem> {
    let enabled = app.engine.merchant(caller.group, |row| row.settings.split_enabled);
    if enabled == Some(true) { Ok(()) } else { Err(Problem::new(Code::SplitNotEnabled)) }
}

/// The split that an id names, in the form in which it is given out, in letters of either case.
pub fn parse_split_id(text: &str) -> Option<SplitKey> {
    let text = text.to_ascii_lowercase();
    let (charge, index) = text.split_once('-')?;
    let (charge, index) = (ObjectId::parse(charge)?, index.parse().ok()?);
    (split_id(charge, index) == text).then_some(SplitKey { charge, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_has_one_id() {
        let charge = ObjectId(0x019B_796E_4D24_8000_8000_0000_0000_0003);
        let id = split_id(charge, 10);
        assert_eq!(parse_split_id(&id), Some(SplitKey { charge, index: 10 }));
        assert_eq!(parse_split_id(&id.to_uppercase()), Some(SplitKey { charge, index: 10 }));
        let txid = charge.txid();
        for other in [
            format!("{txid}-010"),
            format!("{txid}-+1"),
            format!("{txid}-"),
            txid.clone(),
            format!("{}-1", charge.uuid()),
        ] {
            assert_eq!(parse_split_id(&other), None, "{other}");
        }
    }
}
