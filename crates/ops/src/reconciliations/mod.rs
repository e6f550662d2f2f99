//! Reconciliations: files of the acquirer, the PIX institution and the bank, compared with the
//! books, and the results, which are stored under the SHA-256 of the file.

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::engine::Engine;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::reconcile::booked_movements::{self, BankAccount};
use books::reconcile::finding::{Comparison, FileError, Finding, FindingKind};
use books::reconcile::{acquirer, pix};
use chrono::NaiveDate;
use derived::checkpoint::hex;
use ledger::Month;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use wire::mask;
use wire::timestamp::{day, day_of};

mod account_number;
mod bank_statement;
pub mod coverage;
pub(crate) mod finding_view;
pub(crate) mod stored_results;

use crate::batches::name_lines;
use crate::booked_records::EngineRecords;
use crate::explanations::{FindingExplanationView, carried_over};
use crate::list_file::requested_format;
use crate::{Decider, DeciderCall, Desk, DeskState, Operator};
use account_number::{KeptNumber, StatementAccountView, recognized};
use bank_statement::{
    ArrivedMovementView, StatementBalanceView, StatementClosingView, compare_statement, complete_later,
};
use coverage::Coverage;
use finding_view::ReconciliationFindingView;
use stored_results::{change, keep, result_json, stored};
use web::body::{FileFormat, InstitutionFile};
use web::reply::list_of;
use web::streamed_body::{in_turn, turn};
use web::{
    Code, KeyScope, List, Page, PathId, Problem, Raw, Result, SentKey, checked, failed, ok, one_of, parse_exact, query,
    refused, single, time,
};

/// Findings of one answer; the counts count all.
pub(crate) const FINDINGS_MAX: usize = 1_000;

/// Result of a reconciliation. Nothing is booked, and of the file only this is stored.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
pub struct Reconciliation {
    /// SHA-256 of the file, hexadecimal, under which the result is stored.
    pub(crate) sha256: String,
    /// Whose file it is: `acquirer`, `pix` or `bank`.
    #[schema(pattern = "^(acquirer|pix|bank)$")]
    pub(crate) kind: String,
    /// The account of a bank statement, `settlement`, `pix` or `own`; absent for the others.
    #[schema(pattern = "^(settlement|pix|own)$")]
    account: Option<String>,
    /// When it was compared.
    made_at: String,
    /// When the file was compared first; absent where that is `made_at`. Of a day that several
    /// files have, the one counts whose first comparison is the latest.
    first_made_at: Option<String>,
    /// The operator who sent it.
    made_by: String,
    /// The last Record that counted.
    #[schema(minimum = 0, example = 42)]
    sequence: u64,
    /// The account's number at the bank, as the statement has it; absent for other files.
    acctid: Option<String>,
    /// First day of the period; of a file of the acquirer, the day of its first payment. Absent for
    /// one without lines.
    from: Option<String>,
    /// Last day of the period; of a file of the acquirer, the day of its last payment. Absent for
    /// one without lines.
    to: Option<String>,
    /// The days that count as compared: the file has all of each. Absent where it has no whole day.
    compared: Option<ComparedDays>,
    /// Lines of the file: of a PIX list, its payments and returns; of a statement, its movements.
    lines: usize,
    /// Batches that the file of an acquirer names; 0 for others.
    batches: usize,
    /// Lines on which file and books agree. The bank may have posted one on a later day, up to the
    /// next one on which banks settle.
    matched: usize,
    /// What only the books have, and the file could not tell: payments that were begun before the
    /// period of a PIX list; movements of the last day of a statement that may have ended before
    /// them. A file of a longer period decides.
    undecided: usize,
    /// Lines with another amount, fee, day or charge than in the books.
    differs: usize,
    /// What only the books have.
    only_ours: usize,
    /// Lines that only the file has.
    only_theirs: usize,
    /// Lines that the file repeats.
    twice: usize,
    /// Lines that are booked in suspense, since they name no captured charge.
    #[schema(example = 0)]
    in_suspense: usize,
    /// How many of the differences are explained: by a reason, or by an entry that is booked.
    #[serde(default)]
    explained: usize,
    /// Who dismissed it, once an operator did: its differences and its days do not count.
    pub(crate) dismissed: Option<ReconciliationDismissalView>,
    /// The first 1,000 rows of a statement that state a balance and move no money; absent in lists
    /// and for other files.
    balances: Option<Vec<StatementBalanceView>>,
    /// True where the signs of the amounts of a statement come from `TRNTYPE`; else absent.
    signs_by_type: Option<bool>,
    /// The closing balance of a statement beside that of the books; absent where the file has none.
    closing: Option<StatementClosingView>,
    /// What was booked before the day of its line in this statement; absent where there is none. It
    /// counts no longer as a difference of an earlier statement, and a later one looks for it too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    arrived: Vec<ArrivedMovementView>,
    /// The accounts in the file of a bank; absent in lists and for other files.
    accounts: Option<Vec<StatementAccountView>>,
    /// The first 1,000 differences; absent in lists.
    pub(crate) findings: Option<Vec<ReconciliationFindingView>>,
    /// What explains differences; absent in lists and where nothing is explained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) explanations: Vec<FindingExplanationView>,
    /// The first 1,000 lines on which file and books agree; absent in lists.
    matched_lines: Option<Vec<ReconciliationFindingView>>,
    /// The first 1,000 of what is undecided; absent in lists.
    undecided_lines: Option<Vec<ReconciliationFindingView>>,
}

/// Days of which a file has all lines.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ComparedDays {
    /// The first one.
    from: String,
    /// The last one.
    to: String,
}

/// Dismissal of a reconciliation.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct ReconciliationDismissalView {
    /// The operator who dismissed it.
    by: String,
    /// When it was dismissed.
    at: String,
    /// Why, in the operator's words.
    reason: String,
}

/// Why a reconciliation is dismissed.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({"reason": "Arquivo de outro estabelecimento"}))]
pub struct DismissalRequest<'a> {
    /// Why, at most 500 characters.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
}

/// A file of another institution, as it came: bytes, for those who make clients.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is there to be described")]
pub(crate) struct ReconciliationFile(Vec<u8>);

/// Compares a file of another institution with the books, and keeps the result. The format is
/// declared: `text/csv` or `application/csv` for the acquirer's batches, `application/json` or
/// `application/x-ndjson` for the list of the Central Bank's API Pix, `application/x-ofx`,
/// `application/ofx`, `text/ofx` or `application/vnd.intu.qfx` for a bank statement (OFX or CNAB
/// 240). Of a file that is declared as `application/octet-stream`, `text/plain`, `application/xml`,
/// `text/xml`, `application/vnd.ms-excel`, `application/x-www-form-urlencoded`, or not at all, the
/// content tells. Nothing is booked. A file that was compared before is 409 `already_reconciled`;
/// with `again=true` it is compared with the books of now, and the new result takes the place of
/// the stored one. The statement of another account than earlier ones is 409 `other_bank_account`.
/// One with a number that no account has is 400 with the field `account`, unless the caller names
/// it.
#[utoipa::path(post, path = "/ops/reconciliations", operation_id = "reconcile",
    params(("account" = Option<String>, Query, pattern = "^(settlement|pix|own)$", description = "The account of a bank statement: `settlement`, `pix` or `own`. When absent, the one whose earlier statements had the number in the file (`ACCTID`); for a number that is new it must be named."),
        ("acctid" = Option<String>, Query, max_length = 64, description = "The account's number at the bank: which one of a file of several; the account has this number from then on."),
        ("again" = Option<bool>, Query, description = "True to compare a file again.")),
    request_body(content(
        (ReconciliationFile = "text/csv", example = "batch,paid_on,charge,kind,id,gross,fee,net\nLOTE-20785,2026-11-27,019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e,installment,1,10000,299,9701\n"),
        (serde_json::Value = "application/json", example = json!({"parametros": {"inicio": "2026-11-27T03:00:00.000Z", "fim": "2026-11-28T02:59:59.999Z",
            "paginacao": {"paginaAtual": 0, "itensPorPagina": 100, "quantidadeDePaginas": 1, "quantidadeTotalDeItens": 0}}, "pix": []})),
        (ReconciliationFile = "application/x-ofx"),
        (ReconciliationFile = "application/octet-stream"))),
    responses((status = 200, body = Reconciliation), (status = 409)))]
pub async fn reconcile(
    State(desk): DeskState,
    Decider(operator): Decider,
    sent_key: SentKey,
    parts: Parts,
    file: InstitutionFile,
) -> Result<Response> {
    let pairs = query(&parts)?;
    // The file itself says whether it was compared before: a key is only checked.
    sent_key.read(&desk.engine, KeyScope::Operators, None, b"")?;
    let named = one_of(&pairs, "account", &BankAccount::ALL.map(BankAccount::name))?;
    let named = named.and_then(|name| BankAccount::ALL.into_iter().find(|account| account.name() == name));
    let acctid = single(&pairs, "acctid")?.map(str::to_owned);
    let is_named = acctid.is_some();
    let is_again = one_of(&pairs, "again", &["true", "false"])? == Some("true");
    let one_at_a_time = turn(&desk.reconciling, "Another file is being compared.").await?;
    let compared = in_turn(one_at_a_time, move || {
        let sha256 = hex(&Sha256::digest(&file.bytes));
        let before = result_json(&desk.engine, &sha256)?;
        let refused =
            |detail: &'static str| Problem::new(Code::AlreadyReconciled).detail(detail).member("id", sha256.clone());
        if !is_again && before.is_some() {
            return Err(refused("This file was compared before: GET /ops/reconciliations/{id} has the result."));
        }
        let account = match file.format {
            FileFormat::Ofx if named.is_none() => Some(recognized(&desk.engine, &file.bytes, acctid.as_deref())?),
            _ => named,
        };
        let before = before.and_then(|bytes| serde_json::from_slice::<Reconciliation>(&bytes).ok());
        let before = before.filter(|before| before.dismissed.is_none());
        if before.as_ref().and_then(|before| before.account()).is_some_and(|of| account != Some(of)) {
            return Err(refused("This file was compared as another account's: dismiss that result first."));
        }
        let (sequence, made_at) = (desk.engine.records_published(), time(desk.engine.now()));
        let compared = compare(&desk.engine, &file, (account, acctid.as_deref()))?;
        let mut result = Reconciliation { sha256, made_at, made_by: operator.name, sequence, ..compared };
        if let Some(before) = before {
            result.explanations = carried_over(&before, result.findings.as_deref().unwrap_or_default());
            result.first_made_at = before.first_made_at.or(Some(before.made_at));
        }
        keep(&desk.engine, &mut result)?;
        if let Some((account, acctid)) = result.account().zip(result.acctid.clone()) {
            let sha256 = result.sha256.clone();
            KeptNumber { acctid, sha256 }.keep(&desk.engine, account, is_named)?;
            complete_later(&desk.engine, account, &result)?;
        }
        Ok(ok(result.shown(&desk)?))
    });
    compared.await
}

/// The stored results, newest first, without their findings. With `open=true` those with open
/// differences alone, each with the open ones of its first 1,000 in `findings`, and with what was
/// written about them: a difference is open until a reason or a booked entry explains it, or a
/// newer file of the bank or the PIX institution has its day.
#[utoipa::path(get, path = "/ops/reconciliations", operation_id = "list_reconciliations",
    params(("open" = Option<bool>, Query, description = "True: only those with open differences."),
        ("kind" = Option<String>, Query, pattern = "^(acquirer|pix|bank)$", description = "Only of this kind of file."),
        ("period" = Option<String>, Query, pattern = "^[0-9]{4}-[0-9]{2}$", example = "2026-01", description = "Only those with a day of this month."),
        ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<Reconciliation>)))]
pub async fn list(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let page = Page::read(&pairs, 20)?;
    let kind = one_of(&pairs, "kind", &["acquirer", "pix", "bank"])?;
    let is_open = one_of(&pairs, "open", &["true", "false"])? == Some("true");
    let month = single(&pairs, "period")?.map(named_month).transpose()?;
    let days = month.map(|month| [month.begin().0, month.next().begin().0 - 1].map(day_of));
    let mut all = Reconciliation::listed(&desk.engine)?;
    let coverage = Coverage::of(&all);
    let mut found = Vec::new();
    for (place, result) in all.iter().enumerate() {
        let is_wanted =
            kind.is_none_or(|kind| result.kind == kind) && days.is_none_or(|[from, to]| result.meets(from, to));
        let is_counted = || match result.dismissed {
            None => Ok(result.differences(&desk.engine, &coverage)? > 0),
            Some(_) => Ok::<_, Problem>(false),
        };
        if is_wanted && (!is_open || is_counted()?) {
            found.push(place);
        }
    }
    let total = found.len() as u64;
    let skip = usize::try_from(page.skip()).unwrap_or(usize::MAX);
    let shown: Vec<_> = found.into_iter().rev().skip(skip).take(page.count()).collect();
    let items = shown.into_iter().map(move |place| match is_open {
        true => Ok(stored(&desk.engine, &all[place].sha256)?.with_open_alone(&desk, &coverage)),
        false => Ok(Reconciliation { explanations: Vec::new(), ..std::mem::take(&mut all[place]) }),
    });
    list_of(total, page, items)
}

/// The month of a parameter. Error: 400.
fn named_month(period: &str) -> Result<Month> {
    Month::parse(period).ok_or_else(|| refused("period", "invalid", "period deve ter a forma 2026-11"))
}

impl Reconciliation {
    /// As it is answered: with its explanations as the books have them now, numbers of differences,
    /// names, and what other results have in the place of its differences.
    fn shown(self, desk: &Desk) -> Result<Self> {
        let mut shown = self.numbered(&desk.engine).with_names(desk);
        if shown.dismissed.is_none() && shown.kind != "acquirer" {
            let coverage = Coverage::of(&Reconciliation::listed(&desk.engine)?);
            let mut findings = shown.findings.take();
            for found in findings.iter_mut().flatten() {
                found.replaced_by = coverage.in_place_of(&shown, found).map(str::to_owned);
            }
            shown.findings = findings;
        }
        Ok(shown)
    }

    /// Whether its file is of any of some days.
    pub fn meets(&self, from: NaiveDate, to: NaiveDate) -> bool {
        let limits = self.from.as_deref().and_then(day).zip(self.to.as_deref().and_then(day));
        limits.is_some_and(|(first, last)| first <= to && last >= from)
    }

    fn numbered(self, engine: &Engine) -> Self {
        let mut shown = self.with_statuses(engine);
        shown.findings.iter_mut().flatten().zip(0..).for_each(|(finding, number)| finding.number = Some(number));
        shown
    }

    /// With the names of its lines, if their objects can be read now. CPFs in the words of a
    /// bank are masked.
    fn with_names(mut self, desk: &Desk) -> Self {
        let lines = [&mut self.findings, &mut self.matched_lines, &mut self.undecided_lines];
        for line in lines.into_iter().flatten().flatten() {
            line.name = line.name_of(desk).unwrap_or_default();
            line.text = line.text.as_deref().map(mask::cpfs_in);
        }
        self
    }

    /// With its explanations as the books have them now.
    fn with_statuses(mut self, engine: &Engine) -> Self {
        self.explanations.iter_mut().for_each(|explanation| explanation.set_status(engine));
        let explained = self.explanations.iter().filter(|explanation| explanation.status == "explained").count();
        Self { explained, ..self }
    }

    /// The name of the bank account on which its lines move money.
    pub(crate) fn bank(&self) -> String {
        let of_kind = if self.kind == "pix" { BankAccount::Pix } else { BankAccount::Settlement };
        self.account().unwrap_or(of_kind).house().account().kind_name()
    }

    /// The account of a bank statement; `None` of other files.
    fn account(&self) -> Option<BankAccount> {
        BankAccount::ALL.into_iter().find(|account| self.account.as_deref() == Some(account.name()))
    }
}

/// The result of a file, by its SHA-256; or its first 1,000 differences as a file.
#[utoipa::path(get, path = "/ops/reconciliations/{id}", operation_id = "get_reconciliation",
    params(("id" = String, Path, description = "SHA-256 of the file, hexadecimal."),
        ("format" = Option<String>, Query, pattern = "^(json|csv|csv-ptbr|xlsx)$", description = "`json` when absent.")),
    responses((status = 200, content((Reconciliation = "application/json"), (String = "text/csv"), (String = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")))))]
pub async fn get(State(desk): DeskState, _: Operator, PathId(id): PathId, parts: Parts) -> Result<Response> {
    let format = requested_format(&query(&parts)?)?;
    let shown = stored(&desk.engine, &id)?.shown(&desk)?;
    match format {
        Some(format) => shown.file(&desk, format).await,
        None => Ok(ok(shown)),
    }
}

/// Dismisses the result of a file that should not have been compared: the result stays, and its
/// differences and days count no longer in the closing of a month. One that was dismissed before is
/// 409 `already_decided`. Comparing the file again (`again=true`) makes a result that counts.
#[utoipa::path(post, path = "/ops/reconciliations/{id}/dismiss", operation_id = "dismiss_reconciliation",
    params(("id" = String, Path, description = "SHA-256 of the file, hexadecimal.")),
    request_body = DismissalRequest,
    responses((status = 200, body = Reconciliation), (status = 409)))]
pub async fn dismiss(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = call;
    let wire: DismissalRequest<'_> = parse_exact(sent.bytes())?;
    // It commits no Record, so there is no answer to store: a key is checked and not stored.
    sent.key(&desk.engine, KeyScope::Operators, Some(&id))?;
    let reason = checked(|check| check.prose("reason", wire.reason, 1..=500))?.into_owned();
    let by = operator.name;
    change(&desk, id, move |engine, result| {
        if let Some(ReconciliationDismissalView { by, .. }) = &result.dismissed {
            let detail = format!("The reconciliation was dismissed before, by {by}.");
            return Err(Problem::new(Code::AlreadyDecided).detail(detail));
        }
        tracing::info!(operator = by, file = result.sha256, "an operator dismisses a reconciliation");
        result.dismissed = Some(ReconciliationDismissalView { by, at: time(engine.now()), reason });
        result.account().map_or(Ok(()), |account| KeptNumber::forget_of(engine, account, &result.sha256))
    })
    .await
}

/// Reads a file and compares it with the books. Errors: the first wrong line of the file.
fn compare(
    engine: &Arc<Engine>,
    file: &InstitutionFile,
    (account, acctid): (Option<BankAccount>, Option<&str>),
) -> Result<Reconciliation> {
    let records = EngineRecords::new(engine);
    match file.format {
        FileFormat::Csv => {
            let mut sent = acquirer::read(&file.bytes).map_err(unreadable)?;
            name_lines(engine, &mut sent.lines)?;
            let mut named = BTreeMap::new();
            for line in &sent.lines {
                if !named.contains_key(&line.batch) {
                    named.insert(line.batch.clone(), booked_movements::batch(&records, &line.batch)?);
                }
            }
            let paid = sent.days.map(|(from, to)| booked_movements::batches(&records, from, to)).transpose()?;
            let reconciled = acquirer::compare(&sent, &named, &paid.unwrap_or_default());
            let (lines, batches, days) = (sent.lines.len(), named.len(), sent.days);
            Ok(Reconciliation { lines, batches, ..Reconciliation::of("acquirer", [days, days], &reconciled) })
        }
        FileFormat::Json => {
            let list = pix::read(&file.bytes).map_err(unreadable)?;
            let reconciled = pix::compare(&list, &booked_movements::payments(&records, &list)?);
            let lines = list.payments.iter().map(|payment| 1 + payment.returns.len()).sum();
            let compared = list.compared();
            let days = compared.or(Some((day_of(list.from_ms), day_of(list.to_ms))));
            Ok(Reconciliation { lines, ..Reconciliation::of("pix", [days, compared], &reconciled) })
        }
        FileFormat::Ofx => {
            let account = account.ok_or_else(|| failed("a statement without its account"))?;
            compare_statement(engine, &file.bytes, (account, acctid))
        }
    }
}

/// The refusal of a file with a wrong line.
pub(crate) fn unreadable(FileError { line, defect }: FileError) -> Problem {
    let message = format!("Linha {line}: {defect}");
    let problem = Problem::new(Code::ValidationFailed).message(message).detail("The file has a wrong line.");
    problem.field(format!("line {line}"), "invalid", defect)
}

impl Reconciliation {
    /// What a comparison of a kind of file found. `days` are the first and the last day of the
    /// file, if it has any, and the first and the last whole day.
    fn of(kind: &str, days: [Option<(NaiveDate, NaiveDate)>; 2], found: &Comparison) -> Self {
        let count = |kind| found.findings.iter().filter(|finding| finding.kind == kind).count();
        let first =
            |lines: &[Finding]| Some(lines.iter().take(FINDINGS_MAX).map(ReconciliationFindingView::of).collect());
        let [days, compared] = days.map(|days| days.map(|(from, to)| (from.to_string(), to.to_string())));
        let (from, to) = days.unzip();
        Self {
            kind: kind.to_owned(),
            from,
            to,
            compared: compared.map(|(from, to)| ComparedDays { from, to }),
            matched: found.matched.len(),
            undecided: found.undecided.len(),
            differs: count(FindingKind::Differs),
            only_ours: count(FindingKind::OnlyOurs),
            only_theirs: count(FindingKind::OnlyTheirs),
            twice: count(FindingKind::Twice),
            in_suspense: count(FindingKind::InSuspense),
            findings: first(&found.findings),
            matched_lines: first(&found.matched),
            undecided_lines: first(&found.undecided),
            ..Self::default()
        }
    }
}
