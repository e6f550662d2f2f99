//! Export of the books while the server runs.

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use books::error::BooksError;
use books::export::{Exporter, Format, Out, PLATFORM, Request, Stream};
use ledger::record::Record;
use store::BlockHash;
use store::cut::{Cut, positions};
use wire::timestamp::day_of;

use crate::books::find;
use crate::named_ledger::outside_name;
use crate::{Desk, DeskState, Operator};
use web::cut;
use web::streamed_body::{BoxError, ReadPace, streamed, turn};
use web::views::export_file::{
    begin, cut_header, encoding, file, know_cards, know_group, know_named, request, wants_labels,
};
use web::views::row_labels::exporter;
use web::{Result, query, single};

/// The formats that the route makes.
pub fn format_names() -> impl Iterator<Item = &'static str> {
    Format::MADE.into_iter().map(Format::name)
}

/// A ledger, or the rows of all, from one day to another, both included, through the Record `at`.
/// Days are days in America/Sao_Paulo. One at a time; it reads the journal from the first day on.
#[utoipa::path(get, path = "/ops/export",
    params(("ledger" = Option<String>, Query, max_length = 200, description = "`M-…`, `R-…`, `P-…` or `P-house`; the id of a merchant or recipient, or its name where one has it; `P-all` for the whole platform as one ledger; `all` when absent."),
        ("format" = Option<String>, Query, pattern = "^(jsonl|csv|csv-ptbr|parquet|xlsx|beancount|hledger|ledger)$", description = "`jsonl` when absent; `csv`, `csv-ptbr`, `parquet`, `xlsx`; of one ledger the text of `beancount`, `hledger` or `ledger`."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; the first of the books when absent."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent."),
        ("labels" = Option<bool>, Query, description = "`true` adds the columns `merchant_reference`, `metadata` (a JSON object) and `fiscal_documents` of the charge, cashout or refund of each row, as they are now; of rows alone."),
        ("at" = Option<String>, Query, description = "The last Records that count, `0=42` with commas between partitions, or `42` where there is one; the last of all when absent.", example = "0=42")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"), (String = "application/vnd.apache.parquet"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 404)))]
pub async fn export(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let ledger = ledger_of(&desk, &pairs)?;
    let request = request(&pairs, ledger)?;
    let has_labels = wants_labels(&pairs, request.format)?;
    let published = desk.engine.published();
    let cut = cut::requested(&pairs, "at", &published)?.unwrap_or(published);
    let one_at_a_time = turn(&desk.exporting, "Another export is under way.").await?;
    let (asked, through, encoding) = (request.clone(), cut.clone(), encoding(&request, &parts.headers));
    let body = streamed("an export", move |out| {
        let _until_it_ends = one_at_a_time;
        let mut encoded = encoding.encoder(out);
        let mut exporter = exporter(&desk.engine, &asked, has_labels.then_some(false));
        let mut out = Stream(&mut encoded);
        write(&desk, &asked, &through, &mut exporter, &mut out)?;
        exporter.finish(&mut out)?;
        Ok(encoded.finish()?)
    });
    Ok(([cut_header(&cut)], file(&request, encoding, body)).into_response())
}

/// The outside name of the ledger that is asked for; none for all.
pub fn ledger_of(desk: &Desk, pairs: &[(String, String)]) -> Result<Option<String>> {
    let ledger = single(pairs, "ledger")?.filter(|ledger| *ledger != "all");
    ledger.map(|text| outside_name(desk, "ledger", text)).transpose()
}

/// Writes the rows of an export through a cut, from its first day on. Gives the last Records of its
/// days, and the hash of the journal there. For a thread that may wait.
pub fn write(
    desk: &Desk,
    request: &Request,
    cut: &Cut,
    exporter: &mut Exporter,
    out: &mut dyn Out,
) -> Result<(Cut, BlockHash), BoxError> {
    let engine = &desk.engine;
    let ledger = request.ledger.as_deref().filter(|ledger| *ledger != PLATFORM);
    if let Some(group) = ledger.and_then(|name| find(desk, name).ok()?.group()) {
        know_group(engine, group, exporter);
    }
    let mut pace = ReadPace::new(engine);
    let mut reached = begin(engine, request, cut, exporter)?;
    for block in engine.blocks(&reached.next()) {
        if cut.is_within(&reached) {
            break;
        }
        let block = block?;
        if request.to.is_some_and(|to| day_of(block.booked_at_ms) > to) {
            exporter.pass(block.booked_at_ms);
            break;
        }
        for (at, bytes) in positions(&block).take_while(|(at, _)| cut.contains(*at)) {
            let record = Record::decode(bytes).map_err(|error| BooksError::Decode { at, error })?;
            know_cards(engine, &record, exporter)?;
            know_named(engine, &record, exporter);
            exporter.post(at, block.booked_at_ms, &record, out)?;
            reached.reach(at);
        }
        pace.step();
    }
    let head = engine.head_hash(&reached)?;
    Ok((reached, head))
}
