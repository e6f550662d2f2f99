//! Reports while the server runs.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use books::export::PLATFORM;
use books::labels::LabelsOf;
use books::reports::{
    DayOf, Report, ReportContext, ReportFormat, ReportMaker, ReportOwner, ReportRequest, ReportSummary, WrongReport,
};
use ledger::{LedgerId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use store::cut::Cut;
use utoipa::ToSchema;
use wire::cut_text::CutView;
use wire::timestamp::day_of;

use crate::books::find;
use crate::export_stream::ledger_of;
use crate::{Desk, DeskState, Operator};
use web::cut::{self, as_header};
use web::gzip::Encoding;
use web::streamed_body::{BoxError, ReadPace, streamed, turn};
use web::views::export_file::days;
use web::views::ledger::{merchant_profile, owner};
use web::views::row_labels::row_labels;
use web::{Checker, Code, Page, PathId, Problem, Result, failed, not_found, one_of, query, refused, single};
use wire::mask;

/// A report as JSON: its rows, their sums, and the part of the journal that it is of.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportView {
    /// Its name.
    report: String,
    /// The ledger that was asked for; null for all.
    #[schema(required)]
    ledger: Option<String>,
    /// The account that was asked for; null for all.
    #[schema(required)]
    account: Option<String>,
    /// The first day; null for the beginning.
    #[schema(required, format = "date", example = "2026-07-01")]
    from: Option<String>,
    /// The last day; null for all through the cut.
    #[schema(required, format = "date", example = "2026-07-31")]
    to: Option<String>,
    /// The columns, in their order.
    columns: Vec<ReportColumn>,
    /// The rows: a value for each column, null where there is none.
    #[schema(value_type = Vec<Object>)]
    rows: Vec<Value>,
    /// The sums of the columns that can be added up.
    #[schema(value_type = Object)]
    totals: Value,
    /// How many rows there are.
    count: u64,
    /// The last Record that counts, by partition of the journal.
    #[schema(value_type = BTreeMap<String, u64>, example = json!({"0": 42}))]
    cut: CutView,
    /// SHA-256 of the block that has this Record, hexadecimal; it covers all blocks before.
    head: String,
}

/// One column of a report.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportColumn {
    /// Its name in each row.
    #[schema(example = "account")]
    name: String,
    /// Its head for people, in Portuguese.
    label: String,
    /// `text`, `centavos`, `date`, `count`, or `percent` (a decimal string).
    #[schema(pattern = "^(text|centavos|date|count|percent)$")]
    kind: String,
}

/// A report of the days from `from` to `to`, both included, through the Record `at`. Days are days
/// in America/Sao_Paulo, of the booking. One at a time, exports counted. It reads the journal from
/// the last balance file before the first day; receivables and settlement-calendar, which are of
/// the end of one day, from the last one before that end. The headers `Report-Cut` and
/// `Report-Head` name the cut in every format.
#[utoipa::path(get, path = "/ops/reports/{name}", operation_id = "read_report",
    params(("name" = String, Path, pattern = "^(trial-balance|general-ledger|daily-close|receivables|settlement-calendar|fees|anticipation-income|monthly-totals|late-entries|changed-days|statement)$", example = "trial-balance", description = "The report's name."),
        ("ledger" = Option<String>, Query, max_length = 200, description = "One ledger, by its name, by the id of its merchant or recipient, or by their name where it is unique; `P-all` for the platform as one; `all` when absent. Not for daily-close and settlement-calendar; fees, anticipation-income and monthly-totals take `M-…`; statement wants `M-…` or `R-…`."),
        ("account" = Option<String>, Query, pattern = "^[A-Z][A-Za-z0-9:-]{0,199}$", description = "Of general-ledger: an account, with those below it."),
        ("by" = Option<String>, Query, pattern = "^(booking|effect)$", description = "Of trial-balance and general-ledger: whether the days are those of the booking (when absent) or of the effect."),
        ("format" = Option<String>, Query, pattern = "^(json|csv|csv-ptbr|xlsx|html)$", description = "`json` when absent."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; receivables and settlement-calendar, which are of the end of one day, take none."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent."),
        ("at" = Option<String>, Query, description = "The last Records that count, `0=42` with commas between partitions, or `42` where there is one; the last of all when absent.", example = "0=42"),
        ("names" = Option<bool>, Query, description = "`true` adds `name` and `tax_id` (masked) before each ledger, and, in the formats for people, company and day of issue."),
        ("labels" = Option<bool>, Query, description = "`true` adds, after the ids of statement, general-ledger and late-entries, `merchant_reference`, `metadata` (a JSON object) and `fiscal_documents` of the charge, cashout or refund of each row, as they are now."),
        ("page" = Option<u64>, Query, description = "Of `json` and `html`: the page of the rows; all rows when absent. `count`, the header `Report-Rows` and the totals are of all."),
        ("per_page" = Option<u64>, Query, description = "Rows of a page, at most 1,000."),
        ("tax_ids" = Option<bool>, Query, description = "`true`: as `names`, with CPF or CNPJ unmasked. It needs the right `tax-ids`, which no role includes, and stands in the audit trail.")),
    responses((status = 200, content((ReportView = "application/json"), (String = "text/csv"), (String = "text/html"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 400), (status = 403), (status = 404)))]
pub async fn report(
    State(desk): DeskState,
    operator: Operator,
    PathId(name): PathId,
    parts: Parts,
) -> Result<Response> {
    let report = Report::named(&name).ok_or_else(not_found)?;
    let pairs = query(&parts)?;
    let (request, format) = asked(&desk, report, &pairs)?;
    let (rows, labels) = (rows(&pairs, format)?, labels(&desk, &pairs)?);
    let context = ReportContext { rows, labels, ..context(&desk, &operator, &request, &pairs).await? };
    let published = desk.engine.published();
    let cut = cut::requested(&pairs, "at", &published)?.unwrap_or(published);
    let one_at_a_time = turn(&desk.exporting, "Another export or report is under way.").await?;
    // The handler has a thread that may wait. The answer begins when the report is whole, so that
    // a report that cannot be made is a problem, and no broken file.
    let made = make(&desk, (&request, format, context), &cut);
    drop(one_at_a_time);
    let (file, made) = made?;
    let encoding = if format.is_compressed() { Encoding::Identity } else { Encoding::of(&parts.headers) };
    let body = streamed("a report", move |out| {
        let mut encoded = encoding.encoder(out);
        io::copy(&mut io::BufReader::new(file), &mut encoded)?;
        Ok(encoded.finish()?)
    });
    let disposition = match format {
        ReportFormat::Json | ReportFormat::Html => "inline".to_owned(),
        format => format!("attachment; filename=\"{}\"", request.file_name(format)),
    };
    let policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(format.media_type())),
        (CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).map_err(failed)?),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy)),
        (HeaderName::from_static("report-cut"), as_header(&made.cut)),
        (HeaderName::from_static("report-rows"), HeaderValue::from(made.rows)),
        (HeaderName::from_static("report-head"), HeaderValue::from_str(&made.head).map_err(failed)?),
    ];
    Ok((headers, encoding.headers(), body).into_response())
}

/// What the query asks for.
pub(super) fn asked(desk: &Desk, report: Report, pairs: &[(String, String)]) -> Result<(ReportRequest, ReportFormat)> {
    let mut check = Checker::new();
    let format = match single(pairs, "format")? {
        None => Some(ReportFormat::Json),
        Some(name) => ReportFormat::served(name).or_else(|| {
            let served = ReportFormat::SERVED.map(ReportFormat::name).join(", ");
            check.refuse("format", "unknown", format!("format deve ser um destes: {served}"))
        }),
    };
    let [from, to] = days(&mut check, pairs)?;
    let ledger = ledger_of(desk, pairs)?;
    let account = single(pairs, "account")?.map(str::to_owned);
    let is_name = |name: &String| {
        name.len() <= ACCOUNT_LEN_MAX
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ":-".contains(letter))
    };
    if account.as_ref().is_some_and(|name| name.is_empty() || !is_name(name)) {
        check.refuse::<()>("account", "invalid", "account deve ser o nome de uma conta");
    }
    let by = one_of(pairs, "by", &["booking", "effect"])?.and_then(DayOf::named).unwrap_or_default();
    let request = ReportRequest { report, ledger, account, by, from, to };
    if let Err(wrong) = request.check() {
        let (field, code, message) = refusal(wrong);
        check.refuse::<()>(field, code, message);
    }
    let format = check.finish_with(format)?;
    Ok((request, format))
}

/// The look-up of labels, where they are asked for.
pub(super) fn labels(desk: &Desk, pairs: &[(String, String)]) -> Result<Option<LabelsOf>> {
    let is_asked = one_of(pairs, "labels", &["true", "false"])? == Some("true");
    Ok(is_asked.then(|| row_labels(&desk.engine, false)))
}

/// The rows of the page that is asked for, from 0; all where none is.
fn rows(pairs: &[(String, String)], format: ReportFormat) -> Result<Option<Range<u64>>> {
    if single(pairs, "page")?.is_none() && single(pairs, "per_page")?.is_none() {
        return Ok(None);
    }
    let page = Page::read(pairs, ROWS_A_PAGE)?;
    match format {
        ReportFormat::Json | ReportFormat::Html => Ok(Some(page.skip()..page.skip().saturating_add(page.per_page))),
        _ => Err(refused("page", "not_taken", "page é dos formatos json e html")),
    }
}

/// Rows of a page of a report, where the request does not say how many.
const ROWS_A_PAGE: u64 = 100;

/// What a report has beside Records, where names or tax ids are asked for. That tax ids are read is
/// in the audit trail before anybody reads one.
async fn context(
    desk: &Arc<Desk>,
    operator: &Operator,
    request: &ReportRequest,
    pairs: &[(String, String)],
) -> Result<ReportContext> {
    let is_whole = one_of(pairs, "tax_ids", &["true", "false"])? == Some("true");
    let with_names = one_of(pairs, "names", &["true", "false"])? == Some("true");
    if is_whole {
        note_tax_ids(desk, operator, request).await?;
    }
    if !is_whole && !with_names {
        return Ok(ReportContext::default());
    }
    let of = Arc::clone(desk);
    Ok(ReportContext {
        owners: Some(Box::new(move |ledger| owner_of(&of, ledger, is_whole))),
        company: desk.company.clone(),
        issued_on: Some(day_of(desk.engine.now().0)),
        rows: None,
        labels: None,
    })
}

/// The owner of a ledger; the merchant of a part of the platform's books is named without tax id.
fn owner_of(desk: &Desk, ledger: &str, is_whole: bool) -> ReportOwner {
    let ledger = match ledger {
        PLATFORM => LedgerId::System,
        known => find(desk, known).unwrap_or(LedgerId::System),
    };
    let (name, tax_id) = owner(&desk.engine, ledger);
    match ledger {
        LedgerId::Platform(group) => {
            ReportOwner { name: format!("Plataforma · {}", merchant_profile(&desk.engine, group).name), tax_id }
        }
        LedgerId::System => ReportOwner { name: "Plataforma".to_owned(), tax_id },
        LedgerId::Merchant(_) | LedgerId::Recipient(..) if is_whole || tax_id.is_empty() => {
            ReportOwner { name, tax_id }
        }
        LedgerId::Merchant(_) | LedgerId::Recipient(..) => ReportOwner { name, tax_id: mask::document(&tax_id) },
    }
}

/// Refuses who has no right to tax ids, and notes that they are read.
async fn note_tax_ids(desk: &Arc<Desk>, operator: &Operator, request: &ReportRequest) -> Result<()> {
    if !desk.ops_tokens.read().reads_tax_ids(&operator.name) {
        let detail = format!("This needs the right tax-ids, which {} does not have.", operator.name);
        return Err(Problem::new(Code::RoleNotAllowed).detail(detail));
    }
    let days = [request.from, request.to].map(|day| day.map_or_else(|| "…".to_owned(), |day| day.to_string()));
    let what = format!("{} {} {}", request.report.name(), days[0], days[1]);
    let permit = desk.engine.permit(what.len())?;
    desk.engine.note_tax_ids_read(what, operator.context(permit)).await?;
    Ok(())
}

/// Characters of an account's name at most.
const ACCOUNT_LEN_MAX: usize = 200;

fn refusal(wrong: WrongReport) -> (&'static str, &'static str, String) {
    match wrong {
        WrongReport::NoDays => ("to", "before_from", "to não pode ser anterior a from".to_owned()),
        WrongReport::NoLedger(report) => {
            ("ledger", "not_taken", format!("{} é sempre de todos os razões", report.title()))
        }
        WrongReport::OneLedger(report) => {
            ("ledger", "one_ledger", format!("{} é de um lojista ou recebedor", report.title()))
        }
        WrongReport::OneMerchant(report) => {
            ("ledger", "one_merchant", format!("{} é de um lojista, ou de todos", report.title()))
        }
        WrongReport::NoFrom(report) => ("from", "not_taken", format!("{} é do fim de um dia: use to", report.title())),
        WrongReport::NoEffect(report) => ("by", "not_taken", format!("{} é pela data do registro", report.title())),
        WrongReport::NoAccount(report) => ("account", "not_taken", format!("{} não escolhe contas", report.title())),
    }
}

/// Makes a report in a temporary file of the system.
fn make(
    desk: &Arc<Desk>,
    of: (&ReportRequest, ReportFormat, ReportContext),
    cut: &Cut,
) -> Result<(File, ReportSummary)> {
    let mut file = tempfile::tempfile().map_err(|error| unmade(&error))?;
    let written = write(desk, of, cut, &mut file);
    let made = written.map_err(|error| unmade(&error))?;
    file.rewind().map_err(|error| unmade(&error))?;
    Ok((file, made))
}

pub(super) fn write(
    desk: &Arc<Desk>,
    (request, format, context): (&ReportRequest, ReportFormat, ReportContext),
    cut: &Cut,
    file: &mut dyn Write,
) -> Result<ReportSummary, BoxError> {
    let mut out = BufWriter::new(file);
    let mut maker = ReportMaker::with_context(request.clone(), format, context, &mut out)?;
    let mut from = Cut::default();
    if let Some(before) = request.begins_before() {
        let as_of = desk.engine.balances_before(Timestamp(before), cut, request.begins_with_receivables())?;
        from = as_of.through();
        maker.begin_at(as_of)?;
    }
    maker.read_through(cut);
    let mut pace = ReadPace::new(&desk.engine);
    for block in desk.engine.blocks(&from) {
        if !maker.post_block(&block?, cut)? {
            break;
        }
        pace.step();
    }
    let made = maker.finish()?;
    out.flush()?;
    Ok(made)
}

fn unmade(error: &dyn std::fmt::Display) -> Problem {
    tracing::error!(%error, "a report could not be made");
    Problem::new(Code::Internal)
}
