//! Statements of the bank accounts against the books, and what the statements before and after one
//! have of the same movements.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::engine::Engine;
use books::reconcile::booked_movements::{self, BankAccount};
use books::reconcile::finding::{Comparison, Finding, FindingKind};
use books::reconcile::ofx::{self, BankStatement};
use books::reconcile::statement::{self, Movement};
use chrono::{Days, NaiveDate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::settlement_days::NEXT_DAYS_MAX;
use wire::timestamp::{day, day_of};

use super::account_number::{
    KeptNumber, StatementAccountView, check_number, chosen, of_another_account, with_accounts,
};
use super::coverage::Coverage;
use super::finding_view::{ReconciliationFindingView, words_of};
use super::stored_results::{keep_changed, stored};
use super::{FINDINGS_MAX, Reconciliation, unreadable};
use crate::booked_records::EngineRecords;
use crate::explanations::{FindingExplanationView, carried_over};
use web::{Result, failed};

/// A row of a statement that states a balance.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct StatementBalanceView {
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
pub(super) struct StatementClosingView {
    /// What the bank states, centavos.
    theirs: i64,
    /// The day that the bank states (`DTASOF`); absent where it states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    theirs_on: Option<String>,
    /// The account's balance in the books at the end of `ours_on`, centavos, by the days on which
    /// Records take effect, as they were booked when the file was compared, at most 62 days later.
    ours: i64,
    /// The bank's day, where it is in the statement's period or later; else the period's last one.
    /// At most the day on which the file was compared.
    ours_on: String,
    /// How much more the bank states, centavos.
    difference: i64,
}

/// A movement of the books that the bank posted on a later day.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
pub(super) struct ArrivedMovementView {
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

/// Reads a bank statement and compares it with the books. `acctid` is the account's number at the
/// bank, where the caller has named it.
pub(super) fn compare_statement(
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
    let days = statement.span();
    let in_transit = in_transit(engine, account, days)?;
    let movements = movements(engine, account, days, |of| of.day >= days.0 || in_transit.contains(&key_of(of)))?;
    let (reconciled, balances) = statement::compare(&statement, &movements);
    let compared = statement.compared();
    let days = compared.or(Some((statement.from, statement.to)));
    Ok(Reconciliation {
        account: Some(account.name().to_owned()),
        acctid: Some(number),
        lines: statement.lines.len(),
        balances: Some(balances.iter().take(FINDINGS_MAX).map(StatementBalanceView::of).collect()),
        signs_by_type: statement.signs_by_type.then_some(true),
        closing: StatementClosingView::of(engine, account, &statement)?,
        arrived: ArrivedMovementView::all_of(&reconciled),
        accounts: Some(accounts),
        ..Reconciliation::of("bank", [days, compared], &reconciled)
    })
}

/// Kind and id of a movement, and the day on which it was booked.
pub(super) type MovementKey = (String, String, NaiveDate);

fn key_of(movement: &Movement) -> MovementKey {
    (movement.object.to_owned(), movement.id.clone(), movement.day)
}

/// What is booked on an account from some days before a statement, in which the bank may have been
/// late, to its last day.
fn movements(
    engine: &Arc<Engine>,
    account: BankAccount,
    (from, to): (NaiveDate, NaiveDate),
    is_wanted: impl Fn(&Movement) -> bool,
) -> Result<Vec<Movement>> {
    let mut found = booked_movements::movements(&EngineRecords::new(engine), account, (days_before(from), to))?;
    found.retain(is_wanted);
    Ok(found)
}

/// The first day whose movements the bank may post on a day.
fn days_before(day: NaiveDate) -> NaiveDate {
    day.checked_sub_days(Days::new(NEXT_DAYS_MAX)).unwrap_or(day)
}

/// Movements booked before these days that a statement of these days may have: those that the
/// newest statements of the account lack, and those with a late line on one of these days in
/// another statement. Left out are movements with an explaining entry, or with a late line on
/// another day.
fn in_transit(
    engine: &Engine,
    account: BankAccount,
    (from, to): (NaiveDate, NaiveDate),
) -> Result<BTreeSet<MovementKey>> {
    let (mut all, mut known) = (Reconciliation::all_of(engine, account)?, BTreeSet::new());
    let is_here = |of: &mut ArrivedMovementView| day(&of.posted_on).is_some_and(|day| (from..=to).contains(&day));
    for result in &mut all {
        known.extend(result.arrived.extract_if(.., is_here).filter_map(|of| of.key()));
    }
    let coverage = Coverage::of(&all);
    for result in &all {
        if result.only_ours + result.undecided == 0 || !result.meets(days_before(from), from) {
            continue;
        }
        let whole = stored(engine, &result.sha256)?.numbered(engine);
        let lacking = whole.findings.iter().chain(&whole.undecided_lines).flatten();
        let lacking = lacking.filter(|found| found.theirs.is_none() && !whole.is_settled(found));
        let lacking = lacking.filter(|found| coverage.in_place_of(&whole, found).is_none());
        known.extend(lacking.filter_map(ReconciliationFindingView::key));
    }
    Ok(known)
}

/// Completes the results of later statements that were compared before this one: what only they
/// have may be lines of what was booked in its days.
pub(super) fn complete_later(engine: &Arc<Engine>, account: BankAccount, earlier: &Reconciliation) -> Result<()> {
    let Some(end) = earlier.to.as_deref().and_then(day) else { return Ok(()) };
    // The last day of a statement may not count as compared.
    let last = end.checked_add_days(Days::new(NEXT_DAYS_MAX + 1)).unwrap_or(end);
    for later in Reconciliation::all_of(engine, account)? {
        if later.only_theirs > 0 && later.from > earlier.from && later.meets(end, last) {
            let whole = stored(engine, &later.sha256)?.numbered(engine);
            whole.completed(engine, account)?.map_or(Ok(()), |mut whole| keep_changed(engine, &mut whole))?;
        }
    }
    Ok(())
}

impl Reconciliation {
    /// The results of an account that nobody has dismissed, without their findings.
    fn all_of(engine: &Engine, account: BankAccount) -> Result<Vec<Self>> {
        let mut all = Self::all(engine)?;
        all.retain(|result| result.account() == Some(account));
        Ok(all)
    }

    /// Whether an entry explains a difference, or will.
    fn is_settled(&self, found: &ReconciliationFindingView) -> bool {
        let is_of_it = |known: &FindingExplanationView| Some(known.finding) == found.number && known.is_of_live_entry();
        self.explanations.iter().any(is_of_it)
    }

    /// This result, where lines that only it has belong to movements that other statements lack.
    /// `None` where there are none. The file is not needed: the lines are among the differences.
    fn completed(self, engine: &Arc<Engine>, account: BankAccount) -> Result<Option<Self>> {
        let limits = self.from.as_deref().and_then(day).zip(self.to.as_deref().and_then(day));
        let Some(days) = limits else { return Ok(None) };
        let open = || self.findings.iter().flatten().filter(|found| !self.is_settled(found));
        let lines = open().filter_map(ReconciliationFindingView::statement_line).collect();
        let statement = BankStatement { from: days.0, to: days.1, lines, ..BankStatement::default() };
        let mut known = in_transit(engine, account, days)?;
        let arrived: BTreeSet<_> = self.arrived.iter().filter_map(ArrivedMovementView::key).collect();
        known.retain(|movement| movement.2 < days.0 && !arrived.contains(movement));
        known.extend(open().filter(|found| found.theirs.is_none()).filter_map(ReconciliationFindingView::key));
        let movements = movements(engine, account, days, |of| known.contains(&key_of(of)))?;
        let (mut found, _) = statement::compare(&statement, &movements);
        found.findings.retain(|found| found.kind == FindingKind::Differs);
        let pairs = found.matched.iter().chain(&found.findings).map(ReconciliationFindingView::of);
        let pairs: Vec<_> = pairs.collect();
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut completed = stored(engine, &self.sha256)?;
        let mut findings = completed.findings.take().unwrap_or_default();
        for pair in &pairs {
            // Several rows of a file may stand on one line.
            let is_line = |of: &ReconciliationFindingView| {
                of.finding == "only_theirs" && (of.line, &of.theirs, &of.text) == (pair.line, &pair.theirs, &pair.text)
            };
            let is_movement = |of: &ReconciliationFindingView| of.theirs.is_none() && of.key() == pair.key();
            let line = findings.iter().position(is_line).map(|at| findings.remove(at));
            let movement = findings.iter().position(is_movement).map(|at| findings.remove(at));
            completed.only_theirs -= usize::from(line.is_some());
            completed.only_ours -= usize::from(movement.is_some());
        }
        completed.matched += found.matched.len();
        completed.differs += found.findings.len();
        completed.arrived.extend(ArrivedMovementView::all_of(&found));
        let mut matched = completed.matched_lines.take().unwrap_or_default();
        for pair in pairs {
            if pair.finding == "differs" { findings.push(pair) } else { matched.push(pair) }
        }
        for lines in [&mut findings, &mut matched] {
            lines.sort_by_key(|found| found.line.unwrap_or(u64::MAX));
        }
        matched.truncate(FINDINGS_MAX);
        completed.explanations = carried_over(&self, &findings);
        (completed.findings, completed.matched_lines) = (Some(findings), Some(matched));
        Ok(Some(completed))
    }
}

impl StatementClosingView {
    /// The closing balance of a statement, and that of the books on its day.
    fn of(engine: &Arc<Engine>, account: BankAccount, of: &BankStatement) -> Result<Option<Self>> {
        let Some(ofx::ClosingBalance { amount, day }) = of.closing else { return Ok(None) };
        let on = day.filter(|day| *day >= of.from).unwrap_or(of.to).min(day_of(engine.now().0));
        let through = engine.last_booked_before(booked_movements::late_until(on))?;
        let own = engine.sums_as_of(&through)?.kinds.into_iter().find(|of| of.account == account.house().account());
        let moved = booked_movements::moved_after(&EngineRecords::new(engine), account, on, &through)?;
        let ours = i64::try_from(own.map_or(0, |own| own.balance.net()) - moved).map_err(failed)?;
        let (theirs, theirs_on) = (amount.0, day.map(|day| day.to_string()));
        Ok(Some(Self { theirs, theirs_on, ours, ours_on: on.to_string(), difference: theirs - ours }))
    }
}

impl ArrivedMovementView {
    /// The movements of a comparison whose lines are of later days, without repeated lines.
    fn all_of(compared: &Comparison) -> Vec<Self> {
        let found = compared.matched.iter().chain(&compared.findings);
        let found = found.filter(|found| found.kind != FindingKind::Twice).filter_map(Self::of);
        found.filter(|of| of.posted_on > of.paid_on).collect()
    }

    /// The movement and the line of a finding that has both.
    fn of(found: &Finding) -> Option<Self> {
        let [paid_on, posted_on] = [found.ours?, found.theirs?].map(|side| side.paid_on.to_string());
        Some(Self { kind: found.object.to_owned(), id: found.id.clone(), paid_on, posted_on })
    }

    pub(super) fn key(&self) -> Option<MovementKey> {
        Some((self.kind.clone(), self.id.clone(), day(&self.paid_on)?))
    }
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
