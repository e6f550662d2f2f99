//! Charges of all merchants: the newest, and one by its txid with the Records about it.

use std::sync::Arc;

use actors::engine::{ChargeFilter, ChargeQuery, Engine};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::object;
use ledger::{AMOUNT_MAX, Centavos, Charge, ObjectId, Record};
use serde::Serialize;
use store::cut::Position;
use utoipa::ToSchema;

use crate::named_ledger::filtered_owners;
use crate::{Desk, DeskState, Operator};
use web::cut::{NextBefore, next_before, requested_before};
use web::reply::items_of;
use web::views::charge::{ChargeView, charge_filter};
use web::{Code, PathId, Problem, Result, number, ok, query};

/// Charges of an answer, when it is not said how many.
const CHARGES_A_PAGE: u64 = 20;
/// Records about a charge that are listed.
const RECORDS_MAX: usize = 100;

/// The newest charges of all merchants.
#[derive(Debug, Serialize, ToSchema)]
pub struct NewestChargePage {
    /// The charges, newest first.
    items: Vec<ChargeOfMerchant>,
    /// `before` of the next, older charges; absent at the begin of the journal. There may be more
    /// even after an empty page: one answer looks through 2,000 Records at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<NextBefore>,
}

/// The end of [`NewestChargePage`].
#[derive(Serialize)]
struct GoOn {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<NextBefore>,
}

/// A charge, and whose it is.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChargeOfMerchant {
    /// The merchant.
    merchant_id: String,
    /// The Record that opened it: its place in the journal of its partition.
    sequence: u64,
    /// The partition.
    partition: u16,
    /// The charge, as its merchant reads it.
    #[serde(flatten)]
    charge: ChargeView,
}

/// A charge, whose it is, and the Records about it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ChargeWithRecords {
    /// The merchant.
    merchant_id: String,
    /// The Records about it, oldest first, 100 at most; see `GET /ops/records/{sequence}`.
    #[schema(example = json!([41, 42]))]
    records: Vec<u64>,
    /// Their partition.
    partition: u16,
    /// The charge, as its merchant reads it.
    #[serde(flatten)]
    charge: ChargeView,
}

/// The newest charges of all merchants that meet all that is given. The journal is read back from
/// its end, or from `before`: 2,000 Records at most, so an answer may have fewer charges than were
/// asked for. Of one merchant, or the merchant of a recipient, only its own Records are read.
#[utoipa::path(get, path = "/ops/charges", operation_id = "list_newest_charges",
    params(("status" = Option<String>, Query, pattern = "^(CONCLUIDA|pending|RECUSADA|cancelled)$", description = "`pending`, `CONCLUIDA`, `RECUSADA` or `cancelled`"),
        ("payment_method" = Option<String>, Query, pattern = "^(pix|credit_card|debit_card)$", description = "`pix`, `credit_card` or `debit_card`"),
        ("merchant_id" = Option<String>, Query, description = "Only charges of this merchant"),
        ("recipient_id" = Option<String>, Query, description = "Only charges with a split of this recipient"),
        ("from" = Option<String>, Query, description = "Created at this instant (RFC 3339) or on this day (`YYYY-MM-DD`, Sao Paulo), or later"),
        ("to" = Option<String>, Query, description = "Created before this instant, or on this day at the latest"),
        ("amount_from" = Option<u64>, Query, description = "This amount or more, centavos"),
        ("amount_to" = Option<u64>, Query, description = "This amount or less, centavos"),
        ("before" = Option<String>, Query, description = "Only charges that Records before this one opened, of each partition; `next_before` of the answer before.", example = "1000"),
        ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = NewestChargePage), (status = 404)))]
pub async fn list(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let wanted = charge_query(&desk, &pairs)?;
    let through = requested_before(&pairs, &desk.engine.published())?;
    let count = number(&pairs, "per_page", 1..=100)?.unwrap_or(CHARGES_A_PAGE);
    let newest = desk.engine.newest_charges(&through, &wanted, usize::try_from(count).unwrap_or(usize::MAX))?;
    let view = move |(Position { partition, sequence }, id): (Position, ObjectId)| {
        let charge: Charge = desk.engine.known_object(id)?;
        let (merchant_id, charge) =
            (merchant_of(&desk.engine, id)?, ChargeView::of_any_merchant(&desk.engine, &charge)?);
        Ok(ChargeOfMerchant { merchant_id, sequence: sequence.0, partition: partition.0, charge })
    };
    let next_before = next_before(&newest.rest);
    items_of(newest.found.into_iter().map(view), &GoOn { next_before })
}

/// Which charges a query asks for.
pub fn charge_query(desk: &Desk, pairs: &[(String, String)]) -> Result<ChargeQuery> {
    let ChargeFilter { status, method, from, to, .. } = charge_filter(pairs)?;
    let (group, recipient) = filtered_owners(desk, pairs)?;
    let amount = |name| {
        let amount = number(pairs, name, 0..=AMOUNT_MAX.0.unsigned_abs())?;
        Ok::<_, Problem>(amount.map(|amount| Centavos(amount.cast_signed())))
    };
    let (amount_from, amount_to) = (amount("amount_from")?, amount("amount_to")?);
    Ok(ChargeQuery { group, recipient, status, method, from, to, amount_from, amount_to })
}

/// A charge of any merchant.
#[utoipa::path(get, path = "/ops/charges/{txid}", operation_id = "get_charge_of_any_merchant", params(("txid" = String, Path)),
    responses((status = 200, body = ChargeWithRecords), (status = 400)))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(txid): PathId) -> Result<Response> {
    let charge = named(&desk, &txid)?;
    let (records, _) = records_about(&desk.engine, charge.id)?;
    let partition = records.first().map_or(0, |(at, _)| at.partition.0);
    let records = records.into_iter().map(|(at, _)| at.sequence.0).collect();
    let (merchant_id, charge) =
        (merchant_of(&desk.engine, charge.id)?, ChargeView::of_any_merchant(&desk.engine, &charge)?);
    Ok(ok(ChargeWithRecords { merchant_id, records, partition, charge }))
}

/// The charge of a txid, whoever's it is.
pub fn named(desk: &Desk, txid: &str) -> Result<Charge> {
    let not_found = || Problem::new(Code::ChargeNotFound);
    let id = ObjectId::parse(txid).ok_or_else(not_found)?;
    desk.engine.object(id)?.ok_or_else(not_found)
}

/// The Records about a charge, oldest first, 100 at most; and whether there are more.
pub fn records_about(engine: &Arc<Engine>, id: ObjectId) -> Result<(Vec<(Position, Record)>, bool)> {
    let is_about = |record: &Record| {
        let mut is_about = false;
        record.events.iter().for_each(|event| object::each_in(event, |named| is_about |= named == id));
        is_about
    };
    let mut records = Vec::new();
    for found in engine.history(id)? {
        let (at, record) = found?;
        if is_about(&record) {
            if records.len() == RECORDS_MAX {
                return Ok((records, true));
            }
            records.push((at, record));
        }
    }
    Ok((records, false))
}

/// The id of the merchant in whose group an object is.
fn merchant_of(engine: &Engine, id: ObjectId) -> Result<String> {
    Ok(engine.merchant_id(engine.ids().group(id))?.uuid().to_string())
}
