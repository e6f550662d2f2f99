//! Export of a ledger over HTTP: the query of the request, the headers of the file, and what an
//! exporter has to know when it does not read all Records.

use std::sync::Arc;

use actors::engine::Engine;
use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use books::export::{Exporter, Format, Request};
use chrono::NaiveDate;
use derived::records::LoadError;
use ledger::{Entry, Event, GroupNumber, LedgerId, RecipientNumber, Record, Timestamp};
use store::{BlockHash, Cut};
use wire::timestamp::{begin_of, day};

use crate::cut::as_header;
use crate::gzip::Encoding;
use crate::streamed_body::BoxError;
use crate::{Checker, Problem, one_of, refused, single};

/// What the query of an export asks for.
pub fn request(pairs: &[(String, String)], ledger: Option<String>) -> Result<Request, Problem> {
    let mut check = Checker::new();
    let format = match single(pairs, "format")? {
        None => Some(Format::Jsonl),
        Some(name) => Format::made(name).or_else(|| {
            let made = Format::MADE.map(Format::name).join(", ");
            check.refuse("format", "unknown", format!("format deve ser um destes: {made}"))
        }),
    };
    let [from, to] = days(&mut check, pairs)?;
    if from.zip(to).is_some_and(|(from, to)| from > to) {
        check.refuse::<()>("to", "before_from", "to não pode ser anterior a from");
    }
    let is_of_one_ledger = ledger.is_some();
    if format.is_some_and(Format::is_plain_text) && !is_of_one_ledger {
        check.refuse::<()>("ledger", "one_ledger", "ledger deve ser um só neste formato");
    }
    let format = check.finish_with(format)?;
    Ok(Request { ledger, format, from, to })
}

/// The days of a query, its `from` and its `to`.
pub fn days(check: &mut Checker, pairs: &[(String, String)]) -> Result<[Option<NaiveDate>; 2], Problem> {
    let mut named = |name| {
        let text = single(pairs, name)?;
        Ok::<_, Problem>(text.and_then(|text| {
            day(text).or_else(|| check.refuse(name, "invalid_date", format!("{name} deve ser uma data (AAAA-MM-DD)")))
        }))
    };
    Ok([named("from")?, named("to")?])
}

/// Whether the rows of an export are to have labels, as its query says. Error: 400 for a format
/// that has no rows.
pub fn wants_labels(pairs: &[(String, String)], format: Format) -> Result<bool, Problem> {
    let wanted = one_of(pairs, "labels", &["true", "false"])? == Some("true");
    if wanted && (format.is_plain_text() || format.is_mapped()) {
        let message = "labels é dos formatos de linhas; os outros se juntam pelo txid";
        return Err(refused("labels", "not_taken", message));
    }
    Ok(wanted)
}

/// The encoding of an export for a caller: what is compressed already is not compressed again.
pub fn encoding(request: &Request, headers: &HeaderMap) -> Encoding {
    if request.format.is_compressed() { Encoding::Identity } else { Encoding::of(headers) }
}

/// An answer that browsers keep as a file.
pub fn file(request: &Request, encoding: Encoding, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{}\"", request.file_name());
    let headers = [(CONTENT_TYPE, request.format.media_type().to_owned()), (CONTENT_DISPOSITION, disposition)];
    (headers, encoding.headers(), body).into_response()
}

/// The header that names the last Record that counts in a stream, by partition: `X-Cut: 0=42`.
pub fn cut_header(cut: &Cut) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static("x-cut"), as_header(cut))
}

/// Gives an exporter the ids of a merchant and of its recipients.
pub fn know_group(engine: &Engine, group: GroupNumber, exporter: &mut Exporter) {
    engine.glance(group, |row| {
        exporter.know(LedgerId::Merchant(group), row.id);
        for (number, recipient) in (1..).map(RecipientNumber).zip(&row.recipients) {
            exporter.know(LedgerId::Recipient(group, number), recipient.id);
        }
    });
}

/// Gives an exporter the ids in a Record's rows, where it does not know them. An export of
/// many merchants keeps few of them in memory.
pub fn know_named(engine: &Engine, record: &Record, exporter: &mut Exporter) {
    exporter.forget_some();
    let ledgers = record.entries.iter().map(Entry::ledger).chain([record.owner]);
    ledgers.for_each(|ledger| know_ledger(engine, ledger, exporter));
}

fn know_ledger(engine: &Engine, ledger: LedgerId, exporter: &mut Exporter) {
    if let Some(group) = ledger.group().filter(|group| !exporter.knows(LedgerId::Merchant(*group))) {
        know_group(engine, group, exporter);
    }
}

/// The last Records that were booked before a day, and the hash of the journal there; zeros when
/// there are none. For a thread that may wait.
pub fn booked_before(engine: &Engine, day: Option<NaiveDate>) -> Result<(Cut, BlockHash), LoadError> {
    match day {
        Some(day) => head_of(engine, engine.last_booked_before(Timestamp(begin_of(day)))?),
        None => Ok((engine.published().begin(), BlockHash::ZERO)),
    }
}

/// A cut, and the hash of the journal there; zeros for an empty one. For a thread that may wait.
pub fn head_of(engine: &Engine, at: Cut) -> Result<(Cut, BlockHash), LoadError> {
    let head = engine.head_hash(&at)?;
    Ok((at, head))
}

/// Begins an export through `last` at its first day: seeds the exporter with the opening balances,
/// and returns the cut after which it must read. For a thread that may wait.
pub fn begin(engine: &Engine, request: &Request, last: &Cut, exporter: &mut Exporter) -> Result<Cut, BoxError> {
    exporter.know_closed(engine.closings());
    let Some(from) = request.from else { return Ok(last.begin()) };
    let before = engine.last_booked_before(Timestamp(begin_of(from)))?.up_to(last);
    let Some(booked_at) = engine.booked_at(&before)? else { return Ok(before) };
    exporter.pass(booked_at.0);
    if !request.format.is_plain_text() && !exporter.is_keeping_balances() {
        return Ok(before);
    }
    if let Some(ledger) = exporter.asked() {
        for (account, balance) in engine.ledger_as_of(ledger, &before)? {
            exporter.open_balance(ledger, account, balance)?;
        }
        return Ok(before);
    }
    for row in engine.balances_as_of(&before)?.rows() {
        let (ledger, account, balance) = row?;
        exporter.forget_some();
        know_ledger(engine, ledger, exporter);
        exporter.open_balance(ledger, account, balance)?;
    }
    Ok(before)
}

/// Gives an exporter the card of the charge that a Record captured.
pub fn know_cards(engine: &Arc<Engine>, record: &Record, exporter: &mut Exporter) -> Result<(), LoadError> {
    for event in &record.events {
        let Event::CardCaptured { charge, .. } = event else { continue };
        if exporter.knows_card(*charge) {
            continue;
        }
        if let Some(opened) = engine.history(*charge)?.next() {
            exporter.know_cards(&opened?.1);
        }
    }
    Ok(())
}
