//! Batches of the acquirer: the list of those that are booked; and the booking of a settlement
//! file, for an acquirer that gives files only, by two operators.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::{Engine, FileBatch, FilePreview, FileRefusal, Listed, SettlementFile};
use actors::rails::SettlementLine;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use books::reconcile::acquirer::{self, FileLine};
use books::reconcile::finding::{FileError, SettledAmount};
use books::reconcile::{adyen_report, booked_movements};
use chrono::NaiveDate;
use derived::checkpoint::{hex, unhex};
use ledger::merchant::SentFile;
use ledger::{EndedBatch, LedgerId, ObjectId, Record};
use serde::Serialize;
use sha2::{Digest, Sha256};
use store::cut::Position;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

use crate::booked_records::EngineRecords;
use crate::books::{PreviewedEntryView, entries_view};
use crate::reconciliations::{ReconciliationFile, unreadable};
use crate::sub_recipients::Notes;
use crate::{Decider, DeciderCall, Desk, DeskState, Operator};
use web::body::{FileFormat, InstitutionFile};
use web::json::or_empty;
use web::reply::list_of;
use web::{
    Code, KeyScope, List, PageQuery, Problem, Result, SentKey, decided, failed, not_found, ok, one_of, parse_exact,
    query, time,
};

/// A batch of the acquirer that is booked whole.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchView {
    #[serde(flatten)]
    batch: FileBatchView,
    /// When it was booked.
    booked_at: String,
    /// The Record that ended it: its place in the journal of its partition.
    #[schema(minimum = 1, example = 42)]
    sequence: u64,
    /// The partition.
    partition: u16,
}

/// The acquirer's batches that are booked, newest first.
#[utoipa::path(get, path = "/ops/batches", operation_id = "list_batches",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<BatchView>)))]
pub async fn list(State(desk): DeskState, _: Operator, PageQuery { page, .. }: PageQuery) -> Result<Response> {
    let Listed { total, items } = desk.engine.batches(page.skip(), page.count())?;
    list_of(total, page, items.map(|found| Ok(booked_view(found?))))
}

fn booked_view((at, record, booked): (Position, Record, EndedBatch)) -> BatchView {
    BatchView {
        batch: FileBatchView::of(booked),
        booked_at: time(record.effective_at),
        sequence: at.sequence.0,
        partition: at.partition.0,
    }
}

/// Batches of a settlement file at most.
const BATCHES_MAX: usize = 1_000;
/// Entries of one answer; all of them are booked.
const ENTRIES_MAX: usize = 1_000;
/// Bytes of a Record for each batch of a file, at most.
const BYTES_PER_BATCH: usize = 512;

/// A settlement file of the acquirer.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchFileView {
    /// SHA-256 of its lines, hexadecimal: two files with the same lines are the same, however they
    /// are written.
    digest: String,
    /// `preview`: nothing was changed. `waiting_second`: another operator has to send the same
    /// file. `booked`: its batches are booked.
    #[schema(pattern = "^(preview|waiting_second|booked)$")]
    status: &'static str,
    /// The operator who sent it first; absent from a preview.
    requested_by: Option<String>,
    /// The operator who approved it by sending it too.
    approved_by: Option<String>,
    /// Its batches, in the order of the file; those that were booked before the booking broke off
    /// are absent.
    batches: Vec<FileBatchView>,
    /// The first 1,000 of the entries that it books: one for each merchant of a batch, in the books
    /// of the platform, and one of the house for the lines that name no captured charge.
    entries: Vec<PreviewedEntryView>,
}

/// A batch of a settlement file.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileBatchView {
    /// The acquirer's name for it, which stands on the bank statement.
    batch: String,
    /// The day of the payment.
    paid_on: String,
    /// How many lines it has.
    lines: u64,
    /// What the acquirer pays: the sum of its lines, after fees, centavos; below zero when it takes
    /// more than it pays.
    net: i64,
    /// How many of its lines name a charge that was never captured, or were settled before.
    unexplained_lines: u64,
    /// The sum of these, after fees, centavos. It goes to `Liabilities:Suspense` of `P-house`.
    unexplained_net: i64,
}

/// Books a settlement file of the acquirer, with the columns and limits of the CSV file that
/// `POST /ops/reconciliations` compares. The first operator who sends it asks for it: 202
/// `waiting_second`, nothing is booked. Another operator who sends a file with the same lines
/// approves it: its batches are booked, and the answer is 200. Both answers have what is booked;
/// with `preview=true` nothing is changed. Each batch is booked once: 409 `batch_already_booked`
/// refuses the whole file. So does a line for a charge without an outcome: 409 `state_conflict`.
/// When the booking breaks off (503), the same file is sent once more, by any operator.
#[utoipa::path(post, path = "/ops/batches", operation_id = "book_batches",
    params(("preview" = Option<bool>, Query, description = "True to see what would be booked: nothing is changed.")),
    request_body(content((ReconciliationFile = "text/csv", example = "batch,paid_on,charge,kind,id,gross,fee,net\nLOTE-20785,2026-11-27,019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e,installment,1,10000,299,9701\n"))),
    responses((status = 200, body = BatchFileView), (status = 202, body = BatchFileView), (status = 409)))]
pub async fn book(
    State(desk): DeskState,
    Decider(operator): Decider,
    sent_key: SentKey,
    parts: Parts,
    file: InstitutionFile,
) -> Result<Response> {
    let pairs = query(&parts)?;
    // The file itself says whether it was sent before: a key is only checked.
    sent_key.read(&desk.engine, KeyScope::Operators, None, b"")?;
    let is_preview = one_of(&pairs, "preview", &["true", "false"])? == Some("true");
    if file.format != FileFormat::Csv {
        return Err(Problem::new(Code::UnsupportedMediaType).message("O arquivo deve ser CSV"));
    }
    let sent = book_file(&desk, operator, &file.bytes, is_preview).await?;
    let status = if sent.status() == WAITING { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok((status, ok(BatchFileView::of(&desk, sent))).into_response())
}

/// A settlement file that was rejected.
#[derive(Debug, Serialize, ToSchema)]
pub struct RejectedFile {
    /// SHA-256 of its lines, hexadecimal.
    digest: String,
    /// Always `rejected`.
    #[schema(pattern = "^(rejected)$")]
    status: &'static str,
}

/// Rejects a settlement file that waits for another operator, by its digest: it waits no more, and
/// nothing of it is booked. The same file may be sent again, and waits then as a new one.
#[utoipa::path(post, path = "/ops/batches/{id}/reject", operation_id = "reject_batches",
    params(("id" = String, Path, description = "The `digest` of the file.")), request_body = Notes,
    responses((status = 200, body = RejectedFile)))]
pub async fn reject(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    let wire: Notes<'_> = parse_exact(or_empty(sent.bytes()))?;
    let digest = unhex(id).filter(|digest| hex(digest) == *id).ok_or_else(not_found)?;
    let (notes, key) = (&wire.check()?, call.key(id)?);
    let execute = |admitted| async move {
        decided(desk.engine.reject_settlement_file(digest, notes.clone(), operator.context(admitted)).await?)
    };
    let rejected = key.run(LedgerId::System, |_| Ok(()), execute).await?;
    rejected.answer(|()| Ok(ok(RejectedFile { digest: hex(&digest), status: "rejected" })))
}

const WAITING: &str = "waiting_second";

/// A settlement file that was sent, or looked at.
pub struct BookedFile {
    digest: String,
    /// Who sent it; none of a preview.
    sent: Option<SentFile>,
    /// What it books.
    pub preview: FilePreview,
}

impl BookedFile {
    /// `preview`, `waiting_second` or `booked`.
    pub fn status(&self) -> &'static str {
        match &self.sent {
            None => "preview",
            Some(SentFile { approved: None, .. }) => WAITING,
            Some(_) => "booked",
        }
    }
}

/// Books a settlement file, or asks for it; of a preview, neither.
pub async fn book_file(desk: &Desk, operator: Operator, file: &[u8], is_preview: bool) -> Result<BookedFile> {
    let (engine, bytes) = (Arc::clone(&desk.engine), file.to_vec());
    let file = spawn_blocking(move || read(&engine, &bytes)).await.map_err(failed)??;
    let digest = hex(&file.digest);
    if is_preview {
        let preview = desk.engine.preview_settlement_file(&file).await.map_err(refused)?;
        return Ok(BookedFile { digest, sent: None, preview });
    }
    let permit = desk.engine.permit(file.batches.len() * BYTES_PER_BATCH)?;
    let engine = Arc::clone(&desk.engine);
    // The booking goes on when the caller goes away.
    let booking = tokio::spawn(async move { engine.book_settlement_file(file, operator.context(permit)).await });
    let (sent, preview) = booking.await.map_err(failed)?.map_err(refused)?;
    Ok(BookedFile { digest, sent: Some(sent), preview })
}

impl BatchFileView {
    fn of(desk: &Desk, file: BookedFile) -> Self {
        let status = file.status();
        let BookedFile { digest, sent, preview } = file;
        let (requested_by, approved) = sent.map(|sent| (sent.asked_by, sent.approved)).unzip();
        let entries = preview.records.iter().flat_map(|record| entries_view(desk, record)).take(ENTRIES_MAX);
        Self {
            digest,
            status,
            requested_by,
            approved_by: approved.flatten().map(|(_, by)| by),
            entries: entries.collect(),
            batches: preview.batches.into_iter().map(FileBatchView::of).collect(),
        }
    }
}

impl FileBatchView {
    fn of(ended: EndedBatch) -> Self {
        Self {
            batch: ended.batch.reference,
            paid_on: acquirer::day(ended.batch.paid_on).to_string(),
            lines: ended.lines,
            net: ended.net.0,
            unexplained_lines: ended.unexplained_lines,
            unexplained_net: ended.unexplained_net.0,
        }
    }
}

fn refused(refusal: FileRefusal) -> Problem {
    let detail = refusal.to_string();
    match refusal {
        FileRefusal::BatchBooked(batch) => Problem::new(Code::BatchAlreadyBooked).detail(detail).member("batch", batch),
        FileRefusal::PendingCharge(charge) => {
            Problem::new(Code::StateConflict).detail(detail).member("payment_id", charge)
        }
        FileRefusal::OtherUnfinished => Problem::new(Code::StateConflict).detail(detail),
        FileRefusal::SecondOperatorNeeded => Problem::new(Code::SecondOperatorNeeded).detail(detail),
        FileRefusal::Unavailable(unavailable) => unavailable.into(),
    }
}

/// Reads a file whole. Errors: its first wrong line.
fn read(engine: &Arc<Engine>, file: &[u8]) -> Result<SettlementFile> {
    let mut lines = acquirer::read(file).map_err(unreadable)?.lines;
    let digest = name_lines(engine, &mut lines)?;
    let wrong = |line: u64, defect: String| unreadable(FileError { line, defect });
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut batches: Vec<FileBatch> = Vec::new();
    for FileLine { line, batch, key: (charge, object), settled, .. } in lines {
        let day = settled.paid_on;
        let paid_on = u32::try_from((day - NaiveDate::default()).num_days());
        let paid_on = paid_on.map_err(|_| wrong(line, "paid_on inválido".to_owned()))?;
        let place = *places.entry(batch).or_insert_with_key(|reference| {
            batches.push(FileBatch { reference: reference.clone(), paid_on, lines: Vec::new() });
            batches.len() - 1
        });
        if batches.len() > BATCHES_MAX {
            return Err(wrong(line, format!("mais de {BATCHES_MAX} lotes")));
        }
        if batches[place].paid_on != paid_on {
            return Err(wrong(line, "paid_on difere do da primeira linha do lote".to_owned()));
        }
        let SettledAmount { gross, fee, .. } = settled;
        batches[place].lines.push(SettlementLine { charge, object, gross, fee });
    }
    if batches.is_empty() {
        return Err(wrong(1, "o arquivo não tem linhas".to_owned()));
    }
    Ok(SettlementFile { digest, batches })
}

/// Gives the lines of a report of Adyen the names that the books have for them: those of its
/// approval where it is approved, so that a booking that broke off goes on with the same lines.
/// Gives the digest of the lines as they were read.
pub(crate) fn name_lines(engine: &Arc<Engine>, lines: &mut [FileLine]) -> Result<[u8; 32], Problem> {
    let former = |line: &FileLine| line.text.as_ref().and_then(|_| adyen_report::former_reference(&line.batch));
    let records = EngineRecords::new(engine);
    let formerly = digest_of(lines, |line| former(line).unwrap_or_else(|| line.batch.clone()));
    let is_former = engine.sent_file(&formerly)?.is_some();
    let digest = if is_former { formerly } else { digest_of(lines, |line| line.batch.clone()) };
    let mut batches: BTreeMap<String, (String, BTreeSet<ObjectId>)> = BTreeMap::new();
    for (line, former) in lines.iter().filter_map(|line| Some((line, former(line)?))) {
        batches.entry(line.batch.clone()).or_insert((former, BTreeSet::new())).1.insert(line.key.0);
    }
    // A batch that was booked, or a file that was sent, before references named the merchant
    // account keeps its references. A charge is of one account.
    for (batch, (former, charges)) in batches {
        let booked = booked_movements::batch(&records, &former)?;
        if is_former || booked.lines.keys().any(|(charge, _)| charges.contains(charge)) {
            lines.iter_mut().filter(|line| line.batch == batch).for_each(|line| line.batch.clone_from(&former));
        }
    }
    let approved_at = engine.sent_file(&digest)?.and_then(|sent| sent.approved_at);
    adyen_report::name_objects(&records, lines, approved_at)?;
    Ok(digest)
}

/// SHA-256 of lines, under these references of their batches.
fn digest_of(lines: &[FileLine], reference: impl Fn(&FileLine) -> String) -> [u8; 32] {
    let mut digest = Sha256::new();
    for line in lines {
        let FileLine { key: (charge, object), settled: SettledAmount { paid_on, gross, fee }, .. } = line;
        let ((kind, id), charge, batch) = (acquirer::kind_and_id(*object), charge.txid(), reference(line));
        digest.update(format!("{batch},{paid_on},{charge},{kind},{id},{},{}\n", gross.0, fee.0));
    }
    digest.finalize().into()
}
