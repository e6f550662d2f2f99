//! Reconciliations: files of the acquirer, the PIX institution and the bank, compared with the
//! books, and the results, which are stored under the SHA-256 of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actors::engine::Engine;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use books::cells::{Cell, Kind};
use books::reconcile::booked_movements::{self, BankAccount};
use books::reconcile::finding::{Comparison, FileError, Finding, FindingKind, SettledAmount};
use books::reconcile::statement::{self, Movement};
use books::reconcile::{acquirer, ofx, pix};
use books::table_file::{TableColumn, TableFormat, days_ptbr};
use chrono::{Days, NaiveDate};
use derived::checkpoint::hex;
use ledger::{Month, ObjectId, SealedFor};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use wire::mask;
use wire::settlement_days::NEXT_DAYS_MAX;
use wire::timestamp::{day, day_of};

use crate::batches::name_lines;
use crate::booked_records::EngineRecords;
use crate::explanations::{FindingExplanationView, carried_over};
use crate::found_item::item_of_kind;
use crate::list_file::{in_parts, list_file, requested_format};
use crate::wire_words::{COMPARED_OBJECTS, EXPLANATION_STATUSES, FINDINGS, in_file};
use crate::{Decider, DeciderCall, Desk, DeskState, ItemKind, Operator};
use web::body::{FileFormat, InstitutionFile};
use web::language::Word;
use web::reply::list_of;
use web::streamed_body::{in_turn, turn};
use web::{
    Code, KeyScope, List, Page, PathId, Problem, Raw, Result, SentKey, checked, failed, not_found, ok, one_of,
    parse_exact, query, refused, single, time,
};

/// Findings of one answer; the counts count all.
pub(crate) const FINDINGS_MAX: usize = 1_000;
/// Largest number of stored results; the oldest go.
const KEPT_MAX: usize = 1_000;

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

/// A row of a statement that states a balance.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct StatementBalanceView {
    /// Number of the line in the file.
    line: u64,
    /// The day; absent where the row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The amount, centavos; absent where the row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amount: Option<i64>,
    /// Its text, at most 200 characters.
    #[schema(example = "SALDO DO DIA")]
    text: String,
}

/// The balance that a statement ends with (`LEDGERBAL`), and that of the books. The difference is
/// none of the result: many banks write 0.00, or the balance at the time of the download.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct StatementClosingView {
    /// What the bank states, centavos.
    theirs: i64,
    /// The day that the bank states (`DTASOF`); absent where it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theirs_on: Option<String>,
    /// The account's balance in the books at the end of `ours_on`, centavos, by the days on which
    /// Records take effect, as they were booked when the file was compared.
    ours: i64,
    /// The bank's day, where it is in the statement's period or later; else the period's last one.
    /// At most the day on which the file was compared.
    ours_on: String,
    /// How much more the bank states, centavos.
    difference: i64,
}

/// A movement of the books that the bank posted on a later day.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ArrivedMovementView {
    /// The kind of object, as in findings.
    #[schema(example = "withdrawal")]
    kind: String,
    /// Its id, as in findings.
    id: String,
    /// The day on which it was booked.
    paid_on: String,
    /// The day of the bank's line.
    posted_on: String,
}

/// An account in a file of a bank.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct StatementAccountView {
    /// Its number at the bank.
    acctid: String,
    /// `bank`, or `card`, whose statements are not compared.
    #[schema(pattern = "^(bank|card)$", example = "bank")]
    kind: String,
    /// How many movements it has there.
    lines: usize,
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

/// A line of a file, or what the books have in its place.
#[serde_with::skip_serializing_none]
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub struct ReconciliationFindingView {
    /// Number of the difference, from 0, by which it is explained; absent of other lines.
    pub(crate) number: Option<usize>,
    /// `differs`, `only_ours`, `only_theirs`, `twice` or `in_suspense`; of lines that are no
    /// differences `matched` or `undecided`.
    #[schema(pattern = "^(differs|only_ours|only_theirs|twice|in_suspense|matched|undecided)$")]
    pub(crate) finding: String,
    /// Number of the line in the file; absent for what only the books have.
    line: Option<u64>,
    /// Reference of the acquirer's batch, if it is about one.
    batch: Option<String>,
    /// The charge's txid, if it is about one.
    payment_id: Option<String>,
    /// `installment`, `refund` or `dispute` of the acquirer; `pix`, `return`, `cashout`,
    /// `cashout_return`, `batch`, `withdrawal`, `withdrawal_return`, `entry`, or `statement_line`,
    /// a line of the bank that is nothing of these. A `batch` of a file of the acquirer is left out
    /// there whole: `ours` has its net as `gross`.
    #[schema(example = "installment")]
    pub(crate) kind: String,
    /// Number of the installment; end-to-end id, reference or id of the others.
    #[schema(example = "1")]
    pub(crate) id: String,
    /// Name of the payer, the recipient or the merchant, of what the books have; absent where there
    /// is none, and when it was erased.
    name: Option<String>,
    /// Words of the line in the institution's file, at most 200 characters. Absent where the line
    /// has none, for objects of the books alone, and in older results.
    #[schema(example = "TARIFA PACOTE DE SERVICOS")]
    text: Option<String>,
    /// What the books say; absent where only the file has it.
    ours: Option<SettledLineView>,
    /// What the file says; absent where only the books have it.
    theirs: Option<SettledLineView>,
}

/// Amounts and day of a line.
#[derive(Debug, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct SettledLineView {
    /// The day of the payment.
    paid_on: String,
    /// Before the fee, centavos.
    gross: i64,
    /// The fee, centavos.
    fee: i64,
    /// The amount that was paid, centavos.
    net: i64,
}

/// A file of another institution, as it came: bytes, for those who make clients.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "it is there to be described")]
pub(crate) struct ReconciliationFile(Vec<u8>);

/// Compares a file of another institution with the books, and keeps the result. The format is
/// declared: `text/csv` or `application/csv` for the acquirer's batches, `application/json` or
/// `application/x-ndjson` for the list of the Central Bank's API Pix, `application/x-ofx`,
/// `application/ofx`, `text/ofx` or `application/vnd.intu.qfx` for a bank statement. Of a file
/// that is declared as `application/octet-stream`, `text/plain`, `application/xml`, `text/xml`,
/// `application/vnd.ms-excel`, `application/x-www-form-urlencoded`, or not at all, the content
/// tells. Nothing is booked. A file that was compared before is 409 `already_reconciled`; with
/// `again=true` it is compared with the books of now, and the new result takes the place of the
/// stored one. The statement of another account than earlier ones is 409 `other_bank_account`. One
/// with a number that no account has is 400 with the field `account`, unless the caller names it.
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
        let found = result.findings.as_deref().unwrap_or_default();
        result.explanations = before.map(|before| carried_over(&before, found)).unwrap_or_default();
        keep(&desk.engine, &mut result)?;
        if let Some((account, acctid)) = result.account().zip(result.acctid.clone()) {
            let sha256 = result.sha256.clone();
            KeptNumber { acctid, sha256 }.keep(&desk.engine, account, is_named)?;
        }
        Ok(ok(result.shown(&desk)))
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
    let mut found = Vec::new();
    for (place, result) in all.iter().enumerate() {
        let is_wanted =
            kind.is_none_or(|kind| result.kind == kind) && days.is_none_or(|[from, to]| result.meets(from, to));
        let is_counted = || match result.dismissed {
            None => Ok(result.differences(&desk.engine, &all)? > 0),
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
        true => Ok(stored(&desk.engine, &all[place].sha256)?.with_open_alone(&desk, &all)),
        false => Ok(Reconciliation { explanations: Vec::new(), ..std::mem::take(&mut all[place]) }),
    });
    list_of(total, page, items)
}

/// The month of a parameter. Error: 400.
fn named_month(period: &str) -> Result<Month> {
    Month::parse(period).ok_or_else(|| refused("period", "invalid", "period deve ter a forma 2026-11"))
}

impl Reconciliation {
    /// The days of a month that the results of one kind of file cover, of one account where it is a
    /// bank's.
    pub fn days_covered(results: &[Self], kind: &str, account: Option<&str>, month: Month) -> Vec<(NaiveDate, bool)> {
        let [first, next] = [month, month.next()].map(|month| day_of(month.begin().0));
        let of_kind = results.iter().filter(|of| of.is_of(kind, account));
        let days = first.iter_days().take_while(|day| *day < next);
        days.map(|day| (day, of_kind.clone().any(|of| of.covers(day)))).collect()
    }

    /// Whether it is of a kind of file, and of this account where that is a bank's.
    pub fn is_of(&self, kind: &str, account: Option<&str>) -> bool {
        self.kind == kind && self.account.as_deref() == account
    }

    /// The stored results that nobody has dismissed, without their findings.
    pub fn all(engine: &Engine) -> Result<Vec<Self>> {
        let mut all = Self::listed(engine)?;
        all.retain(|result| result.dismissed.is_none());
        Ok(all)
    }

    /// The stored results, oldest first, without their findings.
    fn listed(engine: &Engine) -> Result<Vec<Self>> {
        let mut stored = Vec::new();
        for name in engine.side_value_names(SUMMARIES)? {
            let Some(bytes) = engine.side_value(&name)? else { continue };
            match serde_json::from_slice::<Self>(&bytes) {
                Ok(result) => stored.push(result.with_statuses(engine)),
                Err(error) => {
                    tracing::warn!(name, %error, "a stored reconciliation does not count; compare its file again")
                }
            }
        }
        Ok(stored)
    }

    /// Whether its file has every line of a day.
    pub fn covers(&self, of: NaiveDate) -> bool {
        let limits = self.compared.as_ref().and_then(|compared| day(&compared.from).zip(day(&compared.to)));
        limits.is_some_and(|(from, to)| (from..=to).contains(&of))
    }

    /// Whether its file is of any of some days.
    pub fn meets(&self, from: NaiveDate, to: NaiveDate) -> bool {
        let limits = self.from.as_deref().and_then(day).zip(self.to.as_deref().and_then(day));
        limits.is_some_and(|(first, last)| first <= to && last >= from)
    }

    /// How many of its differences count: nothing explains them, and no newer result has them in
    /// its place. Of more than 1,000 the others count in any case.
    pub fn differences(&self, engine: &Engine, all: &[Self]) -> Result<u64> {
        let found = self.differs + self.only_ours + self.only_theirs + self.twice;
        let count = found.saturating_sub(self.explained);
        if count == 0 || !all.iter().any(|of| of.is_beside(self)) {
            return Ok(count as u64);
        }
        let whole = stored(engine, &self.sha256)?.numbered(engine);
        let replaced = whole.open().filter(|found| whole.is_replaced(all, found)).count();
        Ok(count.saturating_sub(replaced) as u64)
    }

    /// The differences that nothing explains. They have their numbers.
    fn open(&self) -> impl Iterator<Item = &ReconciliationFindingView> {
        let is_done = |known: &&FindingExplanationView| known.status == "explained";
        let done: BTreeSet<_> = self.explanations.iter().filter(is_done).map(|known| Some(known.finding)).collect();
        let all = self.findings.iter().flatten();
        all.filter(move |found| found.finding != "in_suspense" && !done.contains(&found.number))
    }

    /// Whether it may have lines in the place of another result. A file of the acquirer does not
    /// state its days: another one of the same day may have other batches.
    fn is_beside(&self, other: &Self) -> bool {
        let is_of_days = self.dismissed.is_none() && self.kind != "acquirer" && self.sha256 != other.sha256;
        is_of_days && self.is_of(&other.kind, other.account.as_deref())
    }

    /// Whether one of all results has a difference of this one in its place: it is newer and covers
    /// the day, or has the line that this one lacked.
    fn is_replaced(&self, all: &[Self], found: &ReconciliationFindingView) -> bool {
        let covers = |of: &Self| of.made_at > self.made_at && found.day().is_some_and(|day| of.covers(day));
        all.iter().any(|of| of.is_beside(self) && (covers(of) || of.arrived.iter().any(|of| of.is(found))))
    }

    /// As it is answered: with its explanations as the books have them now, numbers of differences,
    /// and names.
    fn shown(self, desk: &Desk) -> Self {
        self.numbered(&desk.engine).with_names(desk)
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

    /// As it is answered, with the differences alone that count beside all results.
    fn with_open_alone(self, desk: &Desk, all: &[Self]) -> Self {
        let mut shown = self.numbered(&desk.engine);
        let counts = |found: &&ReconciliationFindingView| !shown.is_replaced(all, found);
        let open: BTreeSet<_> = shown.open().filter(counts).map(|found| found.number).collect();
        shown.findings.iter_mut().for_each(|all| all.retain(|found| open.contains(&found.number)));
        let (matched_lines, undecided_lines) = (None, None);
        Self { matched_lines, undecided_lines, balances: None, accounts: None, ..shown }.with_names(desk)
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
    let shown = stored(&desk.engine, &id)?.shown(&desk);
    match format {
        Some(format) => shown.file(&desk, format).await,
        None => Ok(ok(shown)),
    }
}

/// Columns of the differences of a result as a file.
const COLUMNS: [TableColumn; 20] = [
    ("number", "Número", Kind::Count),
    ("finding", "Diferença", Kind::Text),
    ("line", "Linha", Kind::Count),
    ("kind", "Objeto", Kind::Text),
    ("id", "ID", Kind::Text),
    ("name", "Nome", Kind::Text),
    ("text", "Texto da instituição", Kind::Text),
    ("batch", "Lote", Kind::Text),
    ("payment_id", "Cobrança", Kind::Text),
    ("ours_paid_on", "Dia nos livros", Kind::Day),
    ("ours_gross", "Bruto nos livros", Kind::Amount),
    ("ours_fee", "Tarifa nos livros", Kind::Amount),
    ("ours_net", "Líquido nos livros", Kind::Amount),
    ("theirs_paid_on", "Dia no arquivo", Kind::Day),
    ("theirs_gross", "Bruto no arquivo", Kind::Amount),
    ("theirs_fee", "Tarifa no arquivo", Kind::Amount),
    ("theirs_net", "Líquido no arquivo", Kind::Amount),
    ("difference", "A mais no arquivo", Kind::Amount),
    ("status", "Situação", Kind::Text),
    ("reason", "Motivo", Kind::Text),
];

impl Reconciliation {
    /// Its differences as a file, in their order, each with what explains it.
    async fn file(self, desk: &Arc<Desk>, format: TableFormat) -> Result<Response> {
        let days = [&self.from, &self.to].map(|of| of.as_deref().and_then(day));
        let subject = days_ptbr(days[0], days[1]);
        let name = format!("{}-{}", self.kind, self.from.as_deref().unwrap_or_default());
        let explanation = |found: &ReconciliationFindingView| {
            self.explanations.iter().rfind(|known| Some(known.finding) == found.number)
        };
        let row = |found: &ReconciliationFindingView| Ok(found.cells(explanation(found), format != TableFormat::Csv));
        let rows = in_parts(self.findings.iter().flatten().map(row));
        list_file(desk, (format, &name, ("Diferenças da conciliação", subject)), &COLUMNS, rows).await
    }
}

/// The stored result of a file. Error: 404.
fn stored(engine: &Engine, id: &str) -> Result<Reconciliation> {
    let found = if is_digest(id) { result_json(engine, id)? } else { None };
    let found = found.ok_or_else(not_found)?;
    serde_json::from_slice(&found).map_err(failed)
}

/// The JSON of a stored result. It is sealed, since the words of a bank name people; results of
/// before that are plain.
fn result_json(engine: &Engine, id: &str) -> Result<Option<Vec<u8>>> {
    let stored = engine.side_value(&result_name(id))?;
    Ok(stored.map(|bytes| engine.keyring().open_secret(sealed_for(id), &bytes).unwrap_or(bytes)))
}

fn keep_whole(engine: &Engine, id: &str, whole: &[u8]) -> Result<()> {
    let sealed = engine.keyring().seal_secret(sealed_for(id), whole).map_err(failed)?;
    Ok(engine.keep(&result_name(id), &sealed)?)
}

fn sealed_for(id: &str) -> SealedFor {
    let mut owner = [0; 16];
    owner.iter_mut().zip(id.bytes()).for_each(|(own, byte)| *own = byte);
    SealedFor::field("reconciliation", owner)
}

/// Changes the stored result of a file, and answers with it. Errors: 404, and those of the change.
pub(crate) async fn change(
    desk: &Arc<Desk>,
    id: String,
    how: impl FnOnce(&Engine, &mut Reconciliation) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let one_at_a_time = turn(&desk.reconciling, "Another file is being compared.").await?;
    let desk = Arc::clone(desk);
    let changed = in_turn(one_at_a_time, move || {
        let mut result = stored(&desk.engine, &id)?;
        how(&desk.engine, &mut result)?;
        keep_changed(&desk.engine, &mut result)?;
        Ok(ok(result.shown(&desk)))
    });
    changed.await
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

/// Number of a bank account at the bank, and the file that it is from. It is stored when the first
/// statement of the account was compared, under `bank-account/<account>`.
#[derive(Deserialize, Serialize)]
struct KeptNumber {
    acctid: String,
    sha256: String,
}

impl KeptNumber {
    fn name(account: BankAccount) -> String {
        format!("bank-account/{}", account.name())
    }

    fn of(engine: &Engine, account: BankAccount) -> Result<Option<Self>> {
        let stored = engine.side_value(&Self::name(account))?;
        stored.map(|bytes| serde_json::from_slice(&bytes).map_err(failed)).transpose()
    }

    /// Stores it if there is none, or in place of another number that the caller has named.
    fn keep(&self, engine: &Engine, account: BankAccount, is_named: bool) -> Result<()> {
        let before = Self::of(engine, account)?;
        let is_same = before.as_ref().is_some_and(|before| ofx::is_same_account(&before.acctid, &self.acctid));
        if before.is_none() || is_named && !is_same {
            engine.keep(&Self::name(account), &serde_json::to_vec(self).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Forgets the number of an account when the file that it is from was a wrong one.
    fn forget_of(engine: &Engine, account: BankAccount, sha256: &str) -> Result<()> {
        if Self::of(engine, account)?.is_some_and(|stored| stored.sha256 == sha256) {
            engine.forget(&Self::name(account))?;
        }
        Ok(())
    }
}

/// Names of stored results: `reconciliation/<sha256>`, whole.
const RESULTS: &str = "reconciliation/";
/// Names under which they are listed: `reconciled/<time, milliseconds>-<sha256>`, without findings.
const SUMMARIES: &str = "reconciled/";

fn result_name(sha256: &str) -> String {
    format!("{RESULTS}{sha256}")
}

fn is_digest(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Keeps a result, in place of the one of the same file, as the newest. The summary comes last:
/// what is listed is there.
fn keep(engine: &Engine, result: &mut Reconciliation) -> Result<()> {
    let [whole, summary] = whole_and_summary(result)?;
    keep_whole(engine, &result.sha256, &whole)?;
    let names = engine.side_value_names(SUMMARIES)?;
    let (own, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.ends_with(&result.sha256));
    own.into_iter().try_for_each(|name| engine.forget(name))?;
    for name in others.iter().take((others.len() + 1).saturating_sub(KEPT_MAX)) {
        engine.forget(name)?;
        engine.forget(&result_name(name.rsplit('-').next().unwrap_or_default()))?;
    }
    Ok(engine.keep(&format!("{SUMMARIES}{:015}-{}", engine.now().0.max(0), result.sha256), &summary)?)
}

/// Keeps a result that was changed, at its place in the list. The whole one comes last: until then
/// it can be changed again.
fn keep_changed(engine: &Engine, result: &mut Reconciliation) -> Result<()> {
    let [whole, summary] = whole_and_summary(result)?;
    let names = engine.side_value_names(SUMMARIES)?;
    let mut own = names.iter().filter(|name| name.ends_with(&result.sha256));
    own.try_for_each(|name| engine.keep(name, &summary))?;
    keep_whole(engine, &result.sha256, &whole)
}

/// A result as JSON, with and without its findings.
fn whole_and_summary(result: &mut Reconciliation) -> Result<[Vec<u8>; 2]> {
    let whole = serde_json::to_vec(&result).map_err(failed)?;
    let lines = [&mut result.findings, &mut result.matched_lines, &mut result.undecided_lines].map(Option::take);
    let of_bank = (result.balances.take(), result.accounts.take());
    let summary = serde_json::to_vec(&result).map_err(failed);
    [result.findings, result.matched_lines, result.undecided_lines] = lines;
    (result.balances, result.accounts) = of_bank;
    Ok([whole, summary?])
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

/// Reads a bank statement and compares it with the books. `acctid` is the account's number at the
/// bank, where the caller has named it.
fn compare_statement(
    engine: &Arc<Engine>,
    file: &[u8],
    (account, acctid): (BankAccount, Option<&str>),
) -> Result<Reconciliation> {
    let found = ofx::read(file).map_err(unreadable)?;
    let accounts: Vec<_> = found.iter().map(StatementAccountView::of).collect();
    let own = KeptNumber::of(engine, account)?.map(|stored| stored.acctid);
    let chosen = chosen(&found, acctid, own.as_deref()).map_err(|problem| with_accounts(problem, &accounts))?;
    let number = found[chosen].number.clone();
    let statement = found.into_iter().nth(chosen).ok_or_else(|| failed("no such account"))?.statement;
    let statement = statement.map_err(unreadable)?;
    if let Some(own) = own.filter(|own| acctid.is_none() && !ofx::is_same_account(own, &number)) {
        return Err(with_accounts(of_another_account(account, &own, &number), &accounts));
    }
    if acctid.is_none() {
        check_number(engine, account, &number)?;
    }
    let (from, to) = statement.span();
    let before = from.checked_sub_days(Days::new(NEXT_DAYS_MAX)).unwrap_or(from);
    let mut movements = booked_movements::movements(&EngineRecords::new(engine), account, (before, to))?;
    let in_transit = in_transit(engine, account, before, (from, to))?;
    let is_known = |of: &Movement| in_transit.contains(&(of.object.to_owned(), of.id.clone(), of.day));
    movements.retain(|movement| movement.day >= from || is_known(movement));
    let (reconciled, balances) = statement::compare(&statement, &movements);
    let found = reconciled.matched.iter().chain(&reconciled.findings);
    let arrived = found.filter_map(ArrivedMovementView::of).filter(|of| of.posted_on > of.paid_on);
    let compared = statement.compared();
    let days = compared.or(Some((statement.from, statement.to)));
    Ok(Reconciliation {
        account: Some(account.name().to_owned()),
        acctid: Some(number),
        lines: statement.lines.len(),
        balances: Some(balances.iter().take(FINDINGS_MAX).map(StatementBalanceView::of).collect()),
        closing: StatementClosingView::of(engine, account, &statement)?,
        arrived: arrived.collect(),
        accounts: Some(accounts),
        ..Reconciliation::of("bank", [days, compared], &reconciled)
    })
}

/// Kind and id of a movement, and the day on which it was booked.
type MovementKey = (String, String, NaiveDate);

/// What the bank may have posted in a statement although it was booked in the days before, from
/// `begin` on: what only the books have by the newest statements of its account, and what another
/// statement has on a day of this one. What an entry explains is settled, and so is what another
/// statement has on other days.
fn in_transit(
    engine: &Engine,
    account: BankAccount,
    begin: NaiveDate,
    (from, to): (NaiveDate, NaiveDate),
) -> Result<BTreeSet<MovementKey>> {
    let (mut all, mut known) = (Reconciliation::all(engine)?, BTreeSet::new());
    all.retain(|result| result.account() == Some(account));
    let is_here = |of: &mut ArrivedMovementView| day(&of.posted_on).is_some_and(|day| (from..=to).contains(&day));
    for result in &mut all {
        let here = result.arrived.extract_if(.., is_here);
        known.extend(here.filter_map(|of| Some((of.kind, of.id, day(&of.paid_on)?))));
    }
    for result in &all {
        if result.only_ours + result.undecided == 0 || !result.meets(begin, from) {
            continue;
        }
        let mut whole = stored(engine, &result.sha256)?.numbered(engine);
        let undecided = whole.undecided_lines.take().unwrap_or_default();
        let findings = whole.findings.take().unwrap_or_default();
        for found in findings.into_iter().chain(undecided).filter(|found| found.theirs.is_none()) {
            let of_entry =
                |known: &FindingExplanationView| Some(known.finding) == found.number && known.is_of_live_entry();
            let is_settled = whole.explanations.iter().any(of_entry) || whole.is_replaced(&all, &found);
            if let Some(day) = found.day().filter(|_| !is_settled) {
                known.insert((found.kind, found.id, day));
            }
        }
    }
    Ok(known)
}

/// The account whose earlier statements had a number that a statement has: `acctid`, where the
/// caller has named it. Errors: a wrong line; 400 with the field `account` where there is none, or
/// more than one.
fn recognized(engine: &Engine, file: &[u8], acctid: Option<&str>) -> Result<BankAccount> {
    let found = ofx::read(file).map_err(unreadable)?;
    let banks = found.iter().filter(|account| !account.is_card);
    let numbers: Vec<_> = match acctid {
        Some(number) => vec![number],
        None => banks.map(|account| account.number.as_str()).collect(),
    };
    if let (true, Some(card)) = (numbers.is_empty(), found.first()) {
        return Err(of_card(card));
    }
    let mut known = Vec::new();
    for account in BankAccount::ALL {
        let stored = KeptNumber::of(engine, account)?;
        let has = |stored: &KeptNumber| numbers.iter().any(|number| ofx::is_same_account(number, &stored.acctid));
        known.extend(stored.filter(has).map(|_| account));
    }
    if let [only] = known[..] {
        return Ok(only);
    }
    let message = format!("account: não se sabe de qual conta é o extrato de número {}: escolha", numbers.join(", "));
    let detail = "No account has this number yet: name the account of the statement (`account`).";
    let problem = Problem::new(Code::ValidationFailed).message(message.clone()).detail(detail);
    let problem = problem.field("account", "required", message);
    Err(with_accounts(problem, &found.iter().map(StatementAccountView::of).collect::<Vec<_>>()))
}

/// The refusal of a statement of a card.
fn of_card(account: &ofx::Account) -> Problem {
    unreadable(FileError { line: account.line, defect: "extratos de cartão não são aceitos".to_owned() })
}

/// Refuses a statement whose number is that of another account, unless the caller has named it.
fn check_number(engine: &Engine, account: BankAccount, number: &str) -> Result<()> {
    for other in BankAccount::ALL.into_iter().filter(|other| *other != account) {
        let stored = KeptNumber::of(engine, other)?;
        if let Some(stored) = stored.filter(|stored| ofx::is_same_account(&stored.acctid, number)) {
            return Err(of_other_name(account, other, number).member("expected", stored.acctid));
        }
    }
    Ok(())
}

/// Which account of a file is meant: the account that the caller named, or the only one, or the one
/// of earlier statements.
fn chosen(found: &[ofx::Account], acctid: Option<&str>, own: Option<&str>) -> Result<usize> {
    let wrong = |code: &'static str, message: String| {
        Problem::new(Code::ValidationFailed).message(message.clone()).field("acctid", code, message)
    };
    let banks: Vec<usize> = (0..found.len()).filter(|place| !found[*place].is_card).collect();
    let with_number = |number: &str| (0..found.len()).find(|place| ofx::is_same_account(&found[*place].number, number));
    let place = match (acctid, banks.as_slice()) {
        (Some(number), _) => {
            with_number(number).ok_or_else(|| wrong("unknown", "acctid não é uma conta do arquivo".to_owned()))?
        }
        (None, []) => 0,
        (None, [only]) => *only,
        (None, several) => own.and_then(with_number).ok_or_else(|| {
            wrong("required", format!("o arquivo tem {} contas: escolha uma com ?acctid=", several.len()))
        })?,
    };
    if found[place].is_card { Err(of_card(&found[place])) } else { Ok(place) }
}

/// The refusal of a statement of another account than those before.
fn of_another_account(account: BankAccount, own: &str, number: &str) -> Problem {
    let name = account.name();
    let message = format!(
        "O extrato é da conta {number}, e os anteriores de {name} são da conta {own}. Se for de outra conta, \
         envie com ?account=; se {name} mudou de número, envie com ?acctid={number}"
    );
    let detail = format!(
        "Earlier statements of `{name}` were of {own}. For another account name it (`account=`); if the number of \
         `{name}` has changed, send the file with `acctid={number}`; if an earlier file was wrong, dismiss its result."
    );
    Problem::new(Code::OtherBankAccount)
        .message(message)
        .detail(detail)
        .member("acctid", number)
        .member("expected", own)
}

/// The refusal of a statement that is named as one account's and has the number of another.
fn of_other_name(account: BankAccount, other: BankAccount, number: &str) -> Problem {
    let [name, other] = [account, other].map(BankAccount::name);
    let message = format!("O extrato é da conta {number}, que é a de {other}, e foi enviado como de {name}");
    let detail = format!(
        "Earlier statements of `{other}` had the number of this one. Leave `account` out; if the number is now that \
         of `{name}`, send the file with `acctid={number}`."
    );
    Problem::new(Code::OtherBankAccount).message(message).detail(detail).member("acctid", number)
}

fn with_accounts(problem: Problem, accounts: &[StatementAccountView]) -> Problem {
    match serde_json::to_value(accounts) {
        Ok(accounts) => problem.member("accounts", accounts),
        Err(_) => problem,
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

impl StatementClosingView {
    /// The closing balance of a statement, and that of the books on its day.
    fn of(engine: &Arc<Engine>, account: BankAccount, of: &ofx::BankStatement) -> Result<Option<Self>> {
        let Some(ofx::ClosingBalance { amount, day }) = of.closing else { return Ok(None) };
        let on = day.filter(|day| *day >= of.from).unwrap_or(of.to).min(day_of(engine.now().0));
        let through = engine.published();
        let own = engine.sums_as_of(&through)?.kinds.into_iter().find(|of| of.account == account.house().account());
        let moved = booked_movements::moved_after(&EngineRecords::new(engine), account, on, &through)?;
        let ours = i64::try_from(own.map_or(0, |own| own.balance.net()) - moved).map_err(failed)?;
        let (theirs, theirs_on) = (amount.0, day.map(|day| day.to_string()));
        Ok(Some(Self { theirs, theirs_on, ours, ours_on: on.to_string(), difference: theirs - ours }))
    }
}

impl ArrivedMovementView {
    /// The movement and the line of a finding that has both.
    fn of(found: &Finding) -> Option<Self> {
        let [paid_on, posted_on] = [found.ours?, found.theirs?].map(|side| side.paid_on.to_string());
        Some(Self { kind: found.object.to_owned(), id: found.id.clone(), paid_on, posted_on })
    }

    /// Whether a finding is about this movement.
    fn is(&self, found: &ReconciliationFindingView) -> bool {
        let booked = found.ours.as_ref().map(|ours| &ours.paid_on);
        (&self.kind, &self.id, Some(&self.paid_on)) == (&found.kind, &found.id, booked)
    }
}

impl ReconciliationFindingView {
    /// The day of the line, or, of what only the books have, the day on which it was booked.
    fn day(&self) -> Option<NaiveDate> {
        let side = self.theirs.as_ref().or(self.ours.as_ref());
        side.and_then(|side| day(&side.paid_on))
    }

    /// Its row in a file, for people or for programs.
    fn cells(&self, known: Option<&FindingExplanationView>, for_people: bool) -> Vec<Cell> {
        let of_word = |name: &str, word: Word| Cell::Text(in_file(for_people, name, word).to_owned());
        let count = |number: Option<u64>| number.map_or(Cell::Empty, Cell::Count);
        let side = |side: &Option<SettledLineView>| {
            let of = |get: fn(&SettledLineView) -> i64| Cell::amount(side.as_ref().map(get));
            let on = side.as_ref().and_then(|side| day(&side.paid_on)).map_or(Cell::Empty, Cell::Day);
            [on, of(|side| side.gross), of(|side| side.fee), of(|side| side.net)]
        };
        let [ours, theirs] = [&self.ours, &self.theirs].map(side);
        let begin = [
            count(self.number.map(|number| number as u64)),
            of_word(&self.finding, FINDINGS.of(&self.finding)),
            count(self.line),
            of_word(&self.kind, COMPARED_OBJECTS.of(&self.kind)),
            Cell::Text(self.id.clone()),
            Cell::optional(self.name.as_deref()),
            Cell::optional(self.text.as_deref()),
            Cell::optional(self.batch.as_deref()),
            Cell::optional(self.payment_id.as_deref()),
        ];
        let status = known.map_or(Cell::Empty, |known| of_word(&known.status, EXPLANATION_STATUSES.of(&known.status)));
        let end = [
            Cell::amount(Some(self.more_at_the_bank())),
            status,
            Cell::optional(known.map(|known| known.reason.as_str())),
        ];
        begin.into_iter().chain(ours).chain(theirs).chain(end).collect()
    }

    /// How much more the bank has than the books, centavos. What stands in a file twice agrees with
    /// the books once.
    pub(crate) fn more_at_the_bank(&self) -> i64 {
        let net = |side: &Option<SettledLineView>| side.as_ref().map_or(0, |side| side.net);
        net(&self.theirs) - if self.finding == "twice" { 0 } else { net(&self.ours) }
    }

    /// Whether it is of the same line, as earlier results of the file have it.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let line = |of: &Self| (of.line, of.batch.clone(), of.payment_id.clone(), of.kind.clone(), of.id.clone());
        self.finding == other.finding
            && line(self) == line(other)
            && [&self.ours, &self.theirs] == [&other.ours, &other.theirs]
    }

    /// Whose it is, of what the books have.
    fn name_of(&self, desk: &Desk) -> Result<Option<String>> {
        let (kind, id) = match self.kind.as_str() {
            "withdrawal" | "withdrawal_return" => (ItemKind::Withdrawals, Some(&self.id)),
            "cashout" | "cashout_return" => (ItemKind::Cashouts, Some(&self.id)),
            _ => (ItemKind::Charges, self.payment_id.as_ref()),
        };
        let id = id.and_then(|id| ObjectId::parse(id));
        let item = id.map(|id| item_of_kind(desk, kind, id)).transpose()?.flatten();
        Ok(item.and_then(|item| item.name.or(item.merchant_name)).filter(|name| !name.is_empty()))
    }

    fn of(finding: &Finding) -> Self {
        let text = finding.text.as_deref().map(words_of).filter(|text| !text.is_empty());
        Self {
            number: None,
            finding: finding.kind.name().to_owned(),
            line: finding.line,
            batch: finding.batch.clone(),
            payment_id: finding.charge.map(|charge| charge.txid()),
            kind: finding.object.to_owned(),
            id: finding.id.clone(),
            name: None,
            text,
            ours: finding.ours.map(SettledLineView::of),
            theirs: finding.theirs.map(SettledLineView::of),
        }
    }
}

/// What an institution wrote, with single blanks, at most 200 characters.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

impl StatementBalanceView {
    fn of(row: &ofx::BalanceRow) -> Self {
        Self {
            line: row.line,
            day: row.day.map(|day| day.to_string()),
            amount: row.amount.map(|amount| amount.0),
            text: words_of(&row.text),
        }
    }
}

impl StatementAccountView {
    fn of(account: &ofx::Account) -> Self {
        let kind = if account.is_card { "card" } else { "bank" };
        Self { acctid: account.number.clone(), kind: kind.to_owned(), lines: account.lines }
    }
}

impl SettledLineView {
    fn of(settled: SettledAmount) -> Self {
        let (net, SettledAmount { paid_on, gross, fee }) = (settled.net(), settled);
        Self { paid_on: paid_on.to_string(), gross: gross.0, fee: fee.0, net: net.0 }
    }
}
