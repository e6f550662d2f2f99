//! Coverage: the days and the late lines that stored results have. By it a difference that several
//! files show counts once.

use std::collections::{BTreeMap, BTreeSet};

use actors::engine::Engine;
use chrono::NaiveDate;
use ledger::Month;
use wire::timestamp::{day, day_of};

use super::Reconciliation;
use super::bank_statement::MovementKey;
use super::finding_view::ReconciliationFindingView;
use super::stored_results::stored;
use crate::Desk;
use crate::explanations::FindingExplanationView;
use web::Result;

/// What the results that nobody has dismissed cover, by kind of file and bank account.
pub struct Coverage(BTreeMap<String, FileCoverage>);

#[derive(Default)]
struct FileCoverage {
    /// The newest result of each day: when its file was compared first, and its SHA-256.
    days: BTreeMap<NaiveDate, (String, String)>,
    /// SHA-256 of the result with the late line of a movement.
    arrived: BTreeMap<MovementKey, String>,
}

impl Coverage {
    /// The coverage of these results.
    pub fn of(results: &[Reconciliation]) -> Self {
        let mut files: BTreeMap<String, FileCoverage> = BTreeMap::new();
        for result in results.iter().filter(|result| result.dismissed.is_none()) {
            let file = files.entry(file_name(&result.kind, result.account.as_deref())).or_default();
            let limits = result.compared.as_ref().and_then(|of| day(&of.from).zip(day(&of.to)));
            for day in limits.into_iter().flat_map(|(from, to)| from.iter_days().take_while(move |day| *day <= to)) {
                let newest = file.days.entry(day).or_default();
                if newest.0.as_str() < result.first_made_at() {
                    *newest = (result.first_made_at().to_owned(), result.sha256.clone());
                }
            }
            let arrived = result.arrived.iter().filter_map(|of| of.key());
            file.arrived.extend(arrived.map(|key| (key, result.sha256.clone())));
        }
        Self(files)
    }

    /// Whether a file of a kind, and of this account where it is a bank's, has every line of a day.
    pub fn covers(&self, kind: &str, account: Option<&str>, day: NaiveDate) -> bool {
        self.0.get(&file_name(kind, account)).is_some_and(|file| file.days.contains_key(&day))
    }

    /// The days of a month, each with whether a file covers it.
    pub fn of_month(&self, kind: &str, account: Option<&str>, month: Month) -> Vec<(NaiveDate, bool)> {
        let [first, next] = [month, month.next()].map(|month| day_of(month.begin().0));
        let days = first.iter_days().take_while(|day| *day < next);
        days.map(|day| (day, self.covers(kind, account, day))).collect()
    }

    /// SHA-256 of the result that has a difference of another one in its place: it has the line
    /// that the other one lacked, or is newer and covers the day. A file of the acquirer does not
    /// state its days: another one of the same day may have other batches.
    pub(super) fn in_place_of(&self, result: &Reconciliation, found: &ReconciliationFindingView) -> Option<&str> {
        let file = self.0.get(&file_name(&result.kind, result.account.as_deref()))?;
        let arrived = found.key().and_then(|key| file.arrived.get(&key)).filter(|_| found.theirs.is_none());
        let newest = found.day().and_then(|day| file.days.get(&day));
        let newest = newest.filter(|(made_at, _)| made_at.as_str() > result.first_made_at()).map(|(_, sha256)| sha256);
        arrived.or(newest).filter(|_| result.kind != "acquirer").map(String::as_str)
    }
}

fn file_name(kind: &str, account: Option<&str>) -> String {
    format!("{kind}/{}", account.unwrap_or_default())
}

impl Reconciliation {
    /// How many of its differences count: nothing explains them, and no other result has them in
    /// its place. Of more than 1,000 the others count in any case.
    pub fn differences(&self, engine: &Engine, coverage: &Coverage) -> Result<u64> {
        let found = self.differs + self.only_ours + self.only_theirs + self.twice;
        let count = found.saturating_sub(self.explained);
        if count == 0 || self.kind == "acquirer" {
            return Ok(count as u64);
        }
        let whole = stored(engine, &self.sha256)?.numbered(engine);
        let replaced = whole.open().filter(|found| coverage.in_place_of(&whole, found).is_some()).count();
        Ok(count.saturating_sub(replaced) as u64)
    }

    /// As it is answered, with the differences alone that count beside all results.
    pub(super) fn with_open_alone(self, desk: &Desk, coverage: &Coverage) -> Self {
        let mut shown = self.numbered(&desk.engine);
        let counts = |found: &&ReconciliationFindingView| coverage.in_place_of(&shown, found).is_none();
        let open: BTreeSet<_> = shown.open().filter(counts).map(|found| found.number).collect();
        shown.findings.iter_mut().for_each(|all| all.retain(|found| open.contains(&found.number)));
        let (matched_lines, undecided_lines) = (None, None);
        Self { matched_lines, undecided_lines, balances: None, accounts: None, ..shown }.with_names(desk)
    }

    /// The differences that nothing explains. They have their numbers.
    fn open(&self) -> impl Iterator<Item = &ReconciliationFindingView> {
        let is_done = |known: &&FindingExplanationView| known.status == "explained";
        let done: BTreeSet<_> = self.explanations.iter().filter(is_done).map(|known| Some(known.finding)).collect();
        let all = self.findings.iter().flatten();
        all.filter(move |found| found.finding != "in_suspense" && !done.contains(&found.number))
    }

    /// When its file was compared first: a file that is compared again is no newer one.
    fn first_made_at(&self) -> &str {
        self.first_made_at.as_deref().unwrap_or(&self.made_at)
    }
}
