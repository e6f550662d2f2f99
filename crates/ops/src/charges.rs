//! One charge of any merchant by its txid, with the Records about it, and the filter of charges.

use std::sync::Arc;

use actors::engine::{ChargeFilter, ChargeQuery, Engine};
use axum::extract::State;
use axum::response::Response;
use ledger::object;
use ledger::{AMOUNT_MAX, Centavos, Charge, ObjectId, Record};
use serde::Serialize;
use store::cut::Position;
use utoipa::ToSchema;

use crate::named_ledger::filtered_owners;
use crate::{Desk, DeskState, Operator};
use web::views::charge::{ChargeView, charge_filter};
use web::{Code, PathId, Problem, Result, number, ok};

/// Records about a charge that are listed.
const RECORDS_MAX: usize = 100;

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
#[utoipa::path(get, path = "/ops/charges/{txid}", operation_id = "get_charge_of_any_merchant",
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
