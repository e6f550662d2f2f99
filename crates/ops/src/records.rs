//! Records of the journal: the newest, and one with its rows and the parts of the facts that sum
//! many objects.

use actors::engine::Engine;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::export::{Exporter, Format, Request, Stream};
use derived::merged::newest_first;
use derived::records::LoadError;
use ledger::event::SettledLine;
use ledger::{Centavos, Event, Minute, ObjectId, Record, SettledObject, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use store::Sequence;
use store::cut::{Cut, Position};
use utoipa::ToSchema;
use wire::timestamp::day_of;

use crate::audited_changes::{FieldChange, changes};
use crate::{DeskState, Operator};
use web::cut::{NextBefore, next_before, requested_before, requested_position};
use web::views::export_file::{know_cards, know_group};
use web::views::ledger::ledger_name;
use web::{PathId, Result, failed, not_found, number, ok, query, time};

/// One Record.
#[derive(Debug, Serialize, ToSchema)]
struct JournalRecordView {
    /// Its place in the journal of its partition.
    sequence: u64,
    /// The partition.
    partition: u16,
    /// When it was booked.
    booked_at: String,
    /// When it took effect.
    effective_at: String,
    /// What the institution says whose act it books; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    institution: Option<InstitutionActView>,
    /// Ledger of the owner who decided it.
    owner: String,
    /// Its rows, with the columns of an export.
    #[schema(value_type = Vec<Object>)]
    rows: Vec<Box<RawValue>>,
    /// The parts of facts that sum many objects in one entry.
    parts: Vec<RecordPartView>,
    /// The fields that it changed, old and new, as the audit trail has them.
    changes: Vec<FieldChange>,
}

/// An act of an institution: a capture, a payment, a payout or a return.
#[derive(Debug, Serialize, ToSchema)]
struct InstitutionActView {
    /// Its own id of the act.
    #[schema(example = "000000000017")]
    id: String,
    /// When it happened there.
    at: String,
}

/// One part of a fact that sums many; amounts in centavos.
#[derive(Debug, Default, Serialize, ToSchema)]
struct RecordPartView {
    /// The fact, as the rows name it.
    #[schema(example = "acquirer_settled")]
    event: &'static str,
    /// The charge.
    #[schema(required)]
    txid: Option<String>,
    /// The installment of the charge, from 1.
    #[schema(required)]
    installment: Option<u8>,
    /// The refund.
    #[schema(required, format = "uuid")]
    refund: Option<String>,
    /// The dispute.
    #[schema(required, format = "uuid")]
    dispute: Option<String>,
    /// The day on which the money falls due, in America/Sao_Paulo.
    #[schema(required, format = Date, example = "2026-11-27")]
    due_date: Option<String>,
    /// Before the fee; below zero where money is taken back.
    amount: i64,
    /// The fee.
    fee: i64,
}

/// One of the newest Records.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
struct NewestRecordView {
    /// Its place in the journal of its partition.
    sequence: u64,
    /// The partition.
    partition: u16,
    /// When it was booked.
    booked_at: String,
    /// When it took effect.
    effective_at: String,
    /// Ledger of the owner who decided it.
    owner: String,
    /// Names of its facts, each once, as the rows of exports name them.
    #[schema(example = json!(["charge_opened"]))]
    events: Vec<&'static str>,
    /// The operator who asked for it; absent where none did.
    operator: Option<String>,
    /// The API key that asked for it; absent where none did.
    api_key_id: Option<String>,
}

/// The newest Records.
#[derive(Debug, Serialize, ToSchema)]
struct NewestRecordPage {
    /// The Records, newest first.
    items: Vec<NewestRecordView>,
    /// `before` of the next, older Records; absent at the begin of the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_before: Option<NextBefore>,
}

/// A Record with its place in the journals, and when it was booked.
type BookedRecord = (Position, Timestamp, Record);

/// Records of an answer, when it is not said how many.
const RECORDS_A_PAGE: u64 = 20;

/// The newest Records of the journal, or those before one.
#[utoipa::path(get, path = "/ops/records", operation_id = "list_newest_records",
    params(("before" = Option<String>, Query, description = "Only Records before this one, of each partition; `next_before` of the answer before.", example = "1000"),
        ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = NewestRecordPage), (status = 400)))]
pub async fn list(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let through = requested_before(&pairs, &desk.engine.published())?;
    let count = number(&pairs, "per_page", 1..=100)?.unwrap_or(RECORDS_A_PAGE);
    let (records, rest) = newest_through(&desk.engine, &through, count)?;
    let next_before = next_before(&rest);
    let items = records.into_iter().map(|(at, booked_at, record)| {
        let mut events: Vec<_> = record.events.iter().map(Event::name).collect();
        events.dedup();
        NewestRecordView {
            sequence: at.sequence.0,
            partition: at.partition.0,
            booked_at: time(booked_at),
            effective_at: time(record.takes_effect_at()),
            owner: ledger_name(&desk.engine, record.owner),
            events,
            operator: record.operator.clone(),
            api_key_id: record.api_key.map(|key| key.uuid().to_string()),
        }
    });
    Ok(ok(NewestRecordPage { items: items.collect(), next_before }))
}

/// The published Records through a cut, in the order of booking, newest first, so many at most;
/// and those that are left.
fn newest_through(engine: &Engine, through: &Cut, most: u64) -> Result<(Vec<BookedRecord>, Cut), LoadError> {
    let mut rest = through.up_to(&engine.published());
    let lists = rest.iter().map(|mut at| {
        move || {
            if at.sequence < Sequence::FIRST {
                return Ok(None);
            }
            let (booked_at, record) = engine.booked_record(at)?;
            let found = (at, booked_at, record);
            at = at.before();
            Ok(Some((booked_at, found)))
        }
    });
    let mut found = Vec::new();
    for record in newest_first(lists).take(usize::try_from(most).unwrap_or(usize::MAX)) {
        let (_, record) = record?;
        rest.reach(record.0.before());
        found.push(record);
    }
    Ok((found, rest))
}

/// A Record of the journal: its rows, and the parts of what it sums.
#[utoipa::path(get, path = "/ops/records/{sequence}", operation_id = "get_record",
    params(("sequence" = String, Path, pattern = "^[1-9][0-9]{0,18}$", example = "1", description = "Its place in the journal, as rows and `Centavo-Sequence` name it."),
        ("partition" = Option<u64>, Query, maximum = 65535, description = "Its partition; 0 when absent.")),
    responses((status = 200, body = JournalRecordView), (status = 400), (status = 404)))]
pub async fn record(State(desk): DeskState, _: Operator, PathId(sequence): PathId, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let at = requested_position(&sequence, &pairs)?.filter(|at| desk.engine.has_record(*at));
    let at = at.ok_or_else(not_found)?;
    let (booked_at, record) = desk.engine.booked_record(at)?;
    let mut exporter = Exporter::new(Request { ledger: None, format: Format::Jsonl, from: None, to: None });
    record.owner.group().into_iter().for_each(|group| know_group(&desk.engine, group, &mut exporter));
    know_cards(&desk.engine, &record, &mut exporter)?;
    exporter.know_closed(desk.engine.closings());
    let mut out = Stream(Vec::new());
    exporter.post(at, booked_at.0, &record, &mut out).map_err(failed)?;
    let lines = out.0.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let rows: Result<_, _> = lines.map(serde_json::from_slice).collect();
    Ok(ok(JournalRecordView {
        sequence: at.sequence.0,
        partition: at.partition.0,
        booked_at: time(booked_at),
        effective_at: time(record.takes_effect_at()),
        institution: record.rail.as_ref().map(|rail| InstitutionActView { id: rail.id.clone(), at: time(rail.at) }),
        owner: ledger_name(&desk.engine, record.owner),
        rows: rows.map_err(failed)?,
        parts: parts_of(&record),
        changes: changes(&desk, at, &record),
    }))
}

/// The parts of the facts of a Record that sum many.
fn parts_of(record: &Record) -> Vec<RecordPartView> {
    let mut parts = Vec::new();
    for event in &record.events {
        match event {
            Event::Matured { dues, .. } => {
                parts.extend(dues.iter().map(|due| RecordPartView::due(event, None, Some(due.minute), due.amount)));
            }
            Event::AcquirerSettled { lines, .. } => parts.extend(lines.iter().map(|line| settled(event, line))),
            Event::ClawbackRecovered { debts, .. } => parts.extend(debts.iter().map(|debt| {
                let amount = debt.from_pending + debt.from_available;
                let refund = Some(debt.refund.uuid().to_string());
                RecordPartView { refund, ..RecordPartView::due(event, Some(debt.split.charge), debt.due, amount) }
            })),
            Event::ClawbackWrittenOff { debts, .. } => parts.extend(debts.iter().map(|debt| {
                let refund = Some(debt.refund.uuid().to_string());
                RecordPartView { refund, ..RecordPartView::due(event, Some(debt.split.charge), None, debt.total()) }
            })),
            Event::SplitsAnticipated { splits, .. } => parts.extend(splits.iter().map(|split| {
                let due = RecordPartView::due(event, Some(split.split.charge), Some(split.due), split.amount);
                RecordPartView { fee: split.fee.0, ..due }
            })),
            _ => {}
        }
    }
    parts
}

impl RecordPartView {
    fn due(event: &Event, charge: Option<ObjectId>, due: Option<Minute>, amount: Centavos) -> Self {
        Self {
            event: event.name(),
            txid: charge.map(ObjectId::txid),
            due_date: due.map(|minute| day_of(minute.start().0).to_string()),
            amount: amount.0,
            ..Self::default()
        }
    }
}

/// A line of a batch of the acquirer.
fn settled(event: &Event, line: &SettledLine) -> RecordPartView {
    let part = RecordPartView { fee: line.fee.0, ..RecordPartView::due(event, Some(line.charge), None, line.gross) };
    match line.object {
        SettledObject::Installment(installment) => RecordPartView { installment: Some(installment), ..part },
        SettledObject::Refund(id) => RecordPartView { refund: Some(id.uuid().to_string()), ..part },
        SettledObject::Dispute(id) => RecordPartView { dispute: Some(id.uuid().to_string()), ..part },
    }
}
