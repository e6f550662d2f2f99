//! List of what happened without an order: payments that were received, transfers whose money came
//! back.

use actors::rails::{PixReceipts, PixSpan, RailError, ReturnedPayout, ReturnedPayouts};
use ledger::event::PayoutBank;
use ledger::id::ObjectId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wire::timestamp::with_milliseconds;

use super::calls::BridgeCalls;
use super::messages::{Centavo, PixPayment, Returned};
use super::pix::receipt;
use super::settings::RailKind;

const PATH: &str = "/changes";

#[derive(Deserialize)]
struct Page<T> {
    changes: Vec<T>,
    has_more: bool,
}

/// A page of the payments of a span.
pub(super) async fn received(calls: &BridgeCalls, span: PixSpan) -> Result<PixReceipts, RailError> {
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
pub(super) async fn returned(calls: &BridgeCalls, span: PixSpan, to: PayoutBank) -> Result<ReturnedPayouts, RailError> {
    let read = |change: ReturnOfPayout| {
        let id = ObjectId::parse(&change.id).ok_or("id has not 32 hexadecimal digits of ours")?;
        let (reason, stamp) = (change.returned.reason(), change.returned.stamp()?);
        Ok(ReturnedPayout { id, amount: change.amount.into(), reason, stamp, to })
    };
    let (transfers, has_more) = page(calls, (RailKind::Payout, "returned_payout"), span, read).await?;
    Ok(ReturnedPayouts { transfers, has_more })
}

/// A page of one kind. One entry that cannot be read makes the whole page no answer: it may be
/// money.
async fn page<T: DeserializeOwned, U>(
    calls: &BridgeCalls,
    (rail, kind): (RailKind, &str),
    span: PixSpan,
    read: impl Fn(T) -> Result<U, &'static str>,
) -> Result<(Vec<U>, bool), RailError> {
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
