//! Batches of the acquirer, page by page.

use actors::rails::{RailError, SettlementCursor, SettlementLine, SettlementPage};
use ledger::event::Batch;
use ledger::{Centavos, ObjectId, SettledObject};
use serde::Deserialize;
use wire::timestamp::day;

use super::calls::BridgeCalls;
use super::messages::Centavo;
use super::settings::RailKind;

const PATH: &str = "/settlements";
/// Characters of a batch's reference.
const REFERENCE_LEN_MAX: usize = 64;

/// Answer of `GET /settlements`.
#[derive(Deserialize)]
struct Page {
    /// Null where there are no more; its absence says nothing.
    #[serde(deserialize_with = "Option::deserialize")]
    batch: Option<PageBatch>,
}

#[derive(Deserialize)]
struct PageBatch {
    number: u64,
    reference: String,
    paid_on: String,
    lines: Vec<Line>,
    is_last: bool,
}

#[derive(Deserialize)]
struct Line {
    /// Our id; of a sale that is not ours, whatever text names it.
    charge: String,
    #[serde(flatten)]
    object: LineObject,
    gross: Centavo,
    fee: Centavo,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LineObject {
    Installment { number: u8 },
    Refund { id: String },
    Dispute { id: String },
}

/// The lines behind a cursor.
pub(super) async fn settlements(
    calls: &BridgeCalls,
    after: SettlementCursor,
) -> Result<Option<SettlementPage>, RailError> {
    calls.serving(RailKind::Card).await?;
    let query = [("after", after.batch.to_string()), ("line", after.lines.to_string())];
    let answer = calls.list(PATH, &query).await?;
    let page = match answer.status.as_u16() {
        200 => answer.read::<Page>().and_then(|page| page.batch.map(|batch| read(batch, after)).transpose()),
        status => Err(format!("its answer {status} is no list")),
    };
    page.map_err(|defect| calls.unknown(PATH, &format!("after {}: {defect}", after.batch)))
}

fn read(batch: PageBatch, after: SettlementCursor) -> Result<SettlementPage, String> {
    let PageBatch { number, reference, paid_on, lines, is_last } = batch;
    if number <= after.batch {
        return Err("number is not above that of the last batch".to_owned());
    }
    let is_sound =
        (1..=REFERENCE_LEN_MAX).contains(&reference.chars().count()) && !reference.contains(char::is_control);
    if !is_sound {
        return Err("reference has not 1 to 64 characters".to_owned());
    }
    if lines.is_empty() {
        return Err("a page of a batch has no lines".to_owned());
    }
    let paid_on = days_since_1970(&paid_on).ok_or("paid_on is no day")?;
    let lines = lines.into_iter().map(line).collect();
    Ok(SettlementPage { batch: Batch { number, reference, paid_on, of_file: false }, lines, is_last })
}

fn days_since_1970(text: &str) -> Option<u32> {
    let since = day(text)?.signed_duration_since(chrono::NaiveDate::default());
    u32::try_from(since.num_days()).ok()
}

fn line(line: Line) -> SettlementLine {
    let Line { charge, object, gross, fee } = line;
    let object = match object {
        LineObject::Installment { number } => SettledObject::Installment(number),
        LineObject::Refund { id } => SettledObject::Refund(id_of(&id)),
        LineObject::Dispute { id } => SettledObject::Dispute(id_of(&id)),
    };
    SettlementLine { charge: id_of(&charge), object, gross: Centavos::from(gross), fee: Centavos::from(fee) }
}

/// An id of ours, or one that no object has.
fn id_of(text: &str) -> ObjectId {
    ObjectId::parse(text).unwrap_or_else(|| ObjectId::of_text(text))
}
