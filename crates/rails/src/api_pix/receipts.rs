//! Payments that were received (`pix`), page by page.

use actors::rails::{PixReceipt, PixReceipts, PixSpan, RailError, RailResult};
use serde_json::Value;
use serde_json::value::RawValue;
use wire::timestamp::with_milliseconds;

use crate::client::values::{amount, instant, is_message_id, is_txid, whole};

use super::calls::Calls;
use super::messages::{Page, Payment};

/// Payments of a page, as asked for. An answer's size is bounded all the same.
const PAGE_ITEMS: u32 = 1_000;
/// Pages of a span: a list that is said to be longer, or to go on behind an empty page, is not
/// believed.
const PAGES_MAX: u64 = 1_000;
/// Words in place of a txid where there is none.
const NO_TXID: [&str; 2] = ["", "***"];

/// A page of the payments of a span.
pub(super) async fn received(calls: &Calls, span: PixSpan) -> RailResult<PixReceipts> {
    let read = |text: &RawValue| {
        let payment = serde_json::from_str::<Payment>(text.get()).map_err(|_| "a field is absent or wrong".to_owned());
        payment.and_then(|payment| receipt(&payment))
    };
    let (payments, has_more) = page(calls, &calls.institution.pix, &[], span, read).await?;
    Ok(PixReceipts { payments, has_more })
}

/// A page of a list of a span, with more filters. An item that cannot be read makes the whole page
/// no answer: it may be money. True when another page follows.
pub(crate) async fn page<T>(
    calls: &Calls,
    path: &str,
    filters: &[(&'static str, String)],
    span: PixSpan,
    read: impl Fn(&RawValue) -> Result<T, String>,
) -> RailResult<(Vec<T>, bool)> {
    let mut query = vec![
        ("inicio", with_milliseconds(span.from.0)),
        ("fim", with_milliseconds(span.until.0)),
        ("paginacao.paginaAtual", span.page.to_string()),
        ("paginacao.itensPorPagina", PAGE_ITEMS.to_string()),
    ];
    query.extend_from_slice(filters);
    let answer = calls.get(path, &query).await?;
    let page = match answer.status.as_u16() {
        200 => answer.read::<Page<'_>>().and_then(|page| items(&page, span.page, read)),
        status => Err(format!("its answer {status} is none that is known")),
    };
    page.map_err(|defect| {
        calls.complain(path, &format!("page {}: {defect}", span.page));
        RailError::NoAnswer
    })
}

fn items<T>(
    page: &Page<'_>,
    page_number: u32,
    read: impl Fn(&RawValue) -> Result<T, String>,
) -> Result<(Vec<T>, bool), String> {
    let pagination = &page.parametros.paginacao;
    if pagination.page.as_ref().is_some_and(|page| whole(page) != Some(page_number.into())) {
        return Err("paginaAtual is not the page that was asked for".to_owned());
    }
    let pages = whole(&pagination.pages).ok_or("quantidadeDePaginas is no number")?;
    if pages > PAGES_MAX {
        return Err(format!("quantidadeDePaginas is above {PAGES_MAX}"));
    }
    let has_more = pages > u64::from(page_number) + 1;
    let items = page.pix.as_deref().unwrap_or_default();
    let is_empty = pagination.items.as_ref().and_then(whole) == Some(0);
    if items.is_empty() && (has_more || (page.pix.is_none() && !is_empty)) {
        return Err("a page without payments is not the end of the list".to_owned());
    }
    let numbered = |(number, text): (usize, &&RawValue)| {
        read(text).map_err(|defect| format!("payment {number}{}: {defect}", id_of(text)))
    };
    Ok(((1..).zip(items).map(numbered).collect::<Result<_, _>>()?, has_more))
}

/// The end-to-end id of a payment that cannot be read, in brackets; nothing where it has none.
fn id_of(text: &RawValue) -> String {
    let value: Value = serde_json::from_str(text.get()).unwrap_or_default();
    let id = value["endToEndId"].as_str().filter(|id| is_message_id(id));
    id.map(|id| format!(" ({id})")).unwrap_or_default()
}

/// A payment; the error names the field that cannot be read.
pub(super) fn receipt(payment: &Payment) -> Result<PixReceipt, String> {
    if !is_message_id(&payment.end_to_end_id) {
        return Err("endToEndId has not 32 letters and digits".to_owned());
    }
    let txid = payment.txid.clone().filter(|txid| !NO_TXID.contains(&txid.as_str()));
    if txid.as_deref().is_some_and(|txid| !is_txid(txid)) {
        return Err("txid has not 1 to 35 letters and digits".to_owned());
    }
    let amount = amount(&payment.valor).filter(|amount| amount.is_positive());
    Ok(PixReceipt {
        end_to_end_id: payment.end_to_end_id.clone(),
        txid,
        amount: amount.ok_or("valor is no amount")?,
        paid_at: instant(&payment.horario).ok_or("horario is no instant with a zone")?,
    })
}
