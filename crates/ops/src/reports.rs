//! Reports while the server runs.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use books::export::PLATFORM;
use books::opening_books::OpeningBooks;
use books::reports::{Report, ReportFormat, ReportMaker, ReportRequest, ReportSummary, TaxIds, WrongReport};
use ledger::time::Timestamp;
use serde::Serialize;
use serde_json::Value;
use store::cut::Cut;
use utoipa::ToSchema;
use wire::cut_text::CutView;
use wire::timestamp::day;

use crate::books::find;
use crate::desk::Desk;
use crate::merchants::tax_id;
use crate::operator::Operator;
use web::caller::PathId;
use web::cut::{self, as_header};
use web::gzip::Encoding;
use web::json::Checker;
use web::problem::{Code, Problem, failed};
use web::reply::{only, query, single};
use web::streamed::{BoxError, ReadPace, streamed, turn};
use web::views::ledger::ledger_name;

/// A report as JSON: its rows, their sums, and the part of the journal that it is of.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Report)]
pub struct ReportBody {
    /// Its name.
    #[schema(example = "trial-balance")]
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
    #[schema(pattern = "^[0-9a-f]{64}$", example = "5df6e0e2761359d30a8275058e299fcc0381534545f55cf43e41983f5d4c9456")]
    head: String,
}

/// One column of a report.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReportColumn {
    /// Its name in each row.
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
    params(("name" = String, Path, pattern = "^(trial-balance|general-ledger|daily-close|receivables|settlement-calendar|fees|anticipation-income|monthly-totals|late-entries|statement)$", example = "trial-balance", description = "The report's name."),
        ("ledger" = Option<String>, Query, pattern = "^(all|P-all|P-house|[MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})$", description = "One ledger, or `P-all`; `all` when absent. For trial-balance, general-ledger, receivables and late-entries; statement wants `M-…` or `R-…`."),
        ("account" = Option<String>, Query, pattern = "^[A-Z][A-Za-z0-9:-]{0,199}$", description = "Of general-ledger: an account, with those below it."),
        ("format" = Option<String>, Query, pattern = "^(json|csv|csv-ptbr|xlsx|html)$", description = "`json` when absent."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; receivables and settlement-calendar, which are of the end of one day, take none."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent."),
        ("at" = Option<String>, Query, description = "The last Records that count, `0=42` with commas between partitions, or `42` where there is one; the last of all when absent.", example = "0=42"),
        ("tax_ids" = Option<bool>, Query, description = "Of monthly-totals: `true` adds the CPF or CNPJ of each merchant. It needs the right `tax-ids`, which no role includes, and stands in the audit trail.")),
    responses((status = 200, content((ReportBody = "application/json"), (String = "text/csv"), (String = "text/html"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"))), (status = 400), (status = 403), (status = 404)))]
pub async fn report(
    State(desk): State<Arc<Desk>>,
    operator: Operator,
    PathId(name): PathId,
    parts: Parts,
) -> Result<Response, Problem> {
    let report = Report::named(&name).ok_or_else(|| Problem::new(Code::NotFound))?;
    let pairs = query(&parts)?;
    only(&pairs, &["ledger", "account", "format", "from", "to", "at", "tax_ids"])?;
    let (request, format) = asked(&desk, report, &pairs)?;
    let tax_ids = if with_tax_ids(report, &pairs)? { Some(tax_ids(&desk, &operator, &request).await?) } else { None };
    let published = desk.engine.published();
    let cut = cut::requested(&pairs, "at", &published)?.unwrap_or(published);
    let one_at_a_time = turn(&desk.exporting, "Another export or report is under way.").await?;
    // The handler has a thread that may wait. The answer begins when the report is whole, so that
    // a report that cannot be made is a problem, and no broken file.
    let made = make(&desk, (&request, format, tax_ids), &cut);
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
        (HeaderName::from_static("report-head"), HeaderValue::from_str(&made.head).map_err(failed)?),
    ];
    Ok((headers, encoding.headers(), body).into_response())
}

/// What the query asks for.
pub(super) fn asked(
    desk: &Desk,
    report: Report,
    pairs: &[(String, String)],
) -> Result<(ReportRequest, ReportFormat), Problem> {
    let mut check = Checker::new();
    let format = match single(pairs, "format")? {
        None => Some(ReportFormat::Json),
        Some(name) => ReportFormat::served(name).or_else(|| {
            let served = ReportFormat::SERVED.map(ReportFormat::name).join(", ");
            check.refuse("format", "unknown", format!("format deve ser um destes: {served}"))
        }),
    };
    let mut named = |name| {
        let text = single(pairs, name)?;
        Ok::<_, Problem>(text.and_then(|text| {
            day(text).or_else(|| check.refuse(name, "invalid_date", format!("{name} deve ser uma data (AAAA-MM-DD)")))
        }))
    };
    let (from, to) = (named("from")?, named("to")?);
    let ledger = single(pairs, "ledger")?.filter(|ledger| *ledger != "all").map(str::to_owned);
    let account = single(pairs, "account")?.map(str::to_owned);
    let is_name = |name: &String| {
        name.len() <= ACCOUNT_LEN_MAX
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ":-".contains(letter))
    };
    if account.as_ref().is_some_and(|name| name.is_empty() || !is_name(name)) {
        check.refuse::<()>("account", "invalid", "account deve ser o nome de uma conta");
    }
    let mut request = ReportRequest { report, ledger, account, from, to };
    if let Err(wrong) = request.check() {
        let (field, code, message) = refusal(wrong);
        check.refuse::<()>(field, code, message);
    }
    let format = check.finish_with(format)?;
    let named = |name: String| match name.as_str() {
        PLATFORM => Ok(name),
        known => find(desk, known).map(|ledger| ledger_name(&desk.engine, ledger)),
    };
    request.ledger = request.ledger.map(named).transpose()?;
    Ok((request, format))
}

/// Whether tax ids are asked for, of the report that can have them.
fn with_tax_ids(report: Report, pairs: &[(String, String)]) -> Result<bool, Problem> {
    let mut check = Checker::new();
    let wanted = match single(pairs, "tax_ids")? {
        None | Some("false") => Some(false),
        Some("true") if report == Report::MonthlyTotals => Some(true),
        Some("true") => check.refuse("tax_ids", "not_taken", format!("{} não tem documentos", report.name())),
        Some(_) => check.refuse("tax_ids", "unknown", "tax_ids deve ser true ou false"),
    };
    check.finish_with(wanted)
}

/// The tax ids of merchants, for an operator who has the right. That they are read is in the audit
/// trail before anybody reads one.
async fn tax_ids(desk: &Arc<Desk>, operator: &Operator, request: &ReportRequest) -> Result<TaxIds, Problem> {
    if !desk.ops_tokens.read().reads_tax_ids(&operator.name) {
        let detail = format!("This needs the right tax-ids, which {} does not have.", operator.name);
        return Err(Problem::new(Code::RoleNotAllowed).detail(detail));
    }
    let days = [request.from, request.to].map(|day| day.map_or_else(|| "…".to_owned(), |day| day.to_string()));
    let what = format!("{} {} {}", request.report.name(), days[0], days[1]);
    let permit = desk.engine.permit(what.len())?;
    desk.engine.note_tax_ids_read(what, operator.context(permit)).await?;
    let desk = Arc::clone(desk);
    Ok(Box::new(move |group| tax_id(&desk, group)))
}

/// Characters of an account's name at most.
const ACCOUNT_LEN_MAX: usize = 200;

fn refusal(wrong: WrongReport) -> (&'static str, &'static str, String) {
    match wrong {
        WrongReport::NoDays => ("to", "before_from", "to não pode ser anterior a from".to_owned()),
        WrongReport::NoLedger(report) => {
            ("ledger", "not_taken", format!("{} é sempre de todos os razões", report.name()))
        }
        WrongReport::OneLedger(report) => ("ledger", "one_ledger", format!("{} quer M-… ou R-…", report.name())),
        WrongReport::NoFrom(report) => ("from", "not_taken", format!("{} é do fim de um dia: use to", report.name())),
        WrongReport::NoAccount(report) => ("account", "not_taken", format!("{} não escolhe contas", report.name())),
    }
}

/// Makes a report in a temporary file of the system.
fn make(
    desk: &Arc<Desk>,
    of: (&ReportRequest, ReportFormat, Option<TaxIds>),
    cut: &Cut,
) -> Result<(File, ReportSummary), Problem> {
    let mut file = tempfile::tempfile().map_err(|error| unmade(&error))?;
    let written = write(desk, of, cut, &mut file);
    let made = written.map_err(|error| unmade(&error))?;
    file.rewind().map_err(|error| unmade(&error))?;
    Ok((file, made))
}

pub(super) fn write(
    desk: &Arc<Desk>,
    (request, format, tax_ids): (&ReportRequest, ReportFormat, Option<TaxIds>),
    cut: &Cut,
    file: &mut dyn Write,
) -> Result<ReportSummary, BoxError> {
    let mut out = BufWriter::new(file);
    let mut maker = ReportMaker::with_tax_ids(request.clone(), format, tax_ids, &mut out)?;
    let mut from = Cut::default();
    if let Some(before) = request.begins_before() {
        let as_of = match request.begins_with_receivables() {
            true => desk.engine.receivables_before(Timestamp(before), cut)?,
            false => desk.engine.balances_before(Timestamp(before), cut)?,
        };
        from = as_of.through();
        maker.begin_at(OpeningBooks::new(as_of))?;
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
