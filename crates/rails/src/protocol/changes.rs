//! List of what happened without an order: payments that were received, transfers whose money came
//! back, cases of payers' banks.

use actors::rails::{
    CaseStage, PixReceipts, PixSpan, RailCase, RailCases, RailResult, ReturnedPayout, ReturnedPayouts,
};
use ledger::{Centavos, ObjectId, PayoutBank};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wire::timestamp::with_milliseconds;

use super::calls::BridgeCalls;
use super::messages::{Centavo, PixPayment, Returned, is_reference, stamp};
use super::pix::receipt;
use super::settings::RailKind;
use crate::client::values::{REASON_LEN_MAX, instant, shortened};

const PATH: &str = "/changes";

#[derive(Deserialize)]
struct Page<T> {
    changes: Vec<T>,
    has_more: bool,
}

/// A page of the payments of a span.
pub(super) async fn received(calls: &BridgeCalls, span: PixSpan) -> RailResult<PixReceipts> {
    let read = |payment: PixPayment| receipt(payment, None);
    let (payments, has_more) = page(calls, (RailKind::Pix, "payment"), span, read).await?;
    Ok(PixReceipts { payments, has_more })
}

#[derive(Deserialize)]
struct ReturnOfPayout {
    id: String,
    amount: Centavo,
    #[serde(flatten)]
    returned: Returned,
}

/// A page of the transfers whose money came back in a span.
pub(super) async fn returned(calls: &BridgeCalls, span: PixSpan, to: PayoutBank) -> RailResult<ReturnedPayouts> {
    let read = |change: ReturnOfPayout| {
        let id = ObjectId::parse(&change.id).ok_or("id has not 32 hexadecimal digits of ours")?;
        let (reason, stamp) = (change.returned.reason(), change.returned.stamp()?);
        Ok(ReturnedPayout { id, amount: change.amount.into(), reason, stamp, to })
    };
    let (transfers, has_more) = page(calls, (RailKind::Payout, "returned_payout"), span, read).await?;
    Ok(ReturnedPayouts { transfers, has_more })
}

#[derive(Deserialize)]
struct CaseOfBank {
    case: String,
    charge: String,
    amount: Centavo,
    reason: Option<String>,
    due_at: Option<String>,
    status: String,
    reference: Option<String>,
    at: String,
}

/// A page of the cases that changed in a span; none where the bridge has no such list.
pub(super) async fn cases(calls: &BridgeCalls, rail: RailKind, span: PixSpan) -> RailResult<RailCases> {
    if !calls.serving(rail).await?.disputes {
        return Ok(RailCases::default());
    }
    let (cases, has_more) = page(calls, (rail, "dispute"), span, read_case).await?;
    Ok(RailCases { cases, has_more })
}

fn read_case(change: CaseOfBank) -> Result<RailCase, &'static str> {
    if !is_reference(&change.case) {
        return Err("case has not 1 to 64 visible ASCII characters");
    }
    let amount = Centavos::from(change.amount);
    if !amount.is_positive() {
        return Err("amount is not above 0");
    }
    let due_at = change.due_at.as_deref().map(|text| instant(text).ok_or("due_at is no instant with a zone"));
    let stage = match change.status.as_str() {
        "open" => CaseStage::Open,
        "debited" => CaseStage::Debited(stamp(change.reference.as_deref(), Some(&change.at))?),
        "released" => CaseStage::Released,
        _ => return Err("status is a word that is not known"),
    };
    let reason = shortened(change.reason.as_deref().unwrap_or_default(), REASON_LEN_MAX);
    Ok(RailCase {
        id: change.case,
        charge: ObjectId::parse(&change.charge).unwrap_or_else(|| ObjectId::of_text(&change.charge)),
        amount,
        reason,
        due_at: due_at.transpose()?,
        stage,
        is_debit_alone: false,
    })
}

/// A page of one kind. One entry that cannot be read makes the whole page no answer: it may be
/// money.
async fn page<T: DeserializeOwned, U>(
    calls: &BridgeCalls,
    (rail, kind): (RailKind, &str),
    span: PixSpan,
    read: impl Fn(T) -> Result<U, &'static str>,
) -> RailResult<(Vec<U>, bool)> {
    calls.serving(rail).await?;
    let query = [
        ("kind", kind.to_owned()),
        ("from", with_milliseconds(span.from.0)),
        ("until", with_milliseconds(span.until.0)),
        ("page", span.page.to_string()),
    ];
    let answer = calls.list(PATH, &query).await?;
    let whole = match answer.status.as_u16() {
        200 => answer.read::<Page<T>>(),
        status => Err(format!("its answer {status} is no list")),
    };
    let entries = whole.and_then(|Page { changes, has_more }| {
        if changes.is_empty() && has_more {
            return Err("a page without entries is not the end of the list".to_owned());
        }
        let read = |(number, entry)| read(entry).map_err(|defect| format!("entry {number}: {defect}"));
        Ok(((1..).zip(changes).map(read).collect::<Result<_, _>>()?, has_more))
    });
    entries.map_err(|defect: String| calls.unknown(PATH, &format!("{kind}, page {}: {defect}", span.page)))
}
