//! Income statement, cash flow and balance sheet of a span, of one ledger and of all: hledger,
//! ledger, bean-query and fava show the sums that the report `trial-balance` has.

use std::path::Path;

use books::export::{Format, Request};
use chrono::{Days, Months, NaiveDate};
use serde_json::Value;

use super::month;
use super::tools::{Balances, Selection, python, tools, without_zeros};
use super::{day, rows_of, run, whole};
use crate::world::{World, text};

/// The three statements of a ledger, debits minus credits by account.
#[derive(Debug, PartialEq, Eq)]
struct Statements {
    income: Balances,
    cash: Balances,
    sheet: Balances,
}

impl Statements {
    /// Of what moved in the span, and of the balances at its end.
    fn of(moved: &Balances, closing: &Balances) -> Self {
        let of = |sums: &Balances, roots: &[&str]| {
            let is_wanted = |account: &str| roots.iter().any(|root| account.starts_with(root));
            without_zeros(
                sums.iter().filter(|(account, _)| is_wanted(account)).map(|(name, sum)| (name.as_str(), *sum)),
            )
        };
        Self {
            income: of(moved, &["Income:", "Expenses:"]),
            cash: of(moved, &["Assets:Bank:"]),
            sheet: of(closing, &["Assets:", "Liabilities:"]),
        }
    }

    /// Of the rows of a trial balance that a ledger has.
    fn of_report(report: &Value, ledger: &str) -> Self {
        let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["ledger"] == ledger);
        let sums = |of: fn(&Value) -> i64| {
            let rows: Vec<_> = rows.clone().map(|row| (text(&row["account"]), i128::from(of(row)))).collect();
            without_zeros(rows.iter().map(|(account, sum)| (account.as_str(), *sum)))
        };
        let moved = sums(|row| row["debits"].as_i64().unwrap() - row["credits"].as_i64().unwrap());
        Self::of(&moved, &sums(|row| row["closing"].as_i64().unwrap()))
    }

    /// As the screens of fava show them; `None` if it is not installed.
    fn of_fava(main: &Path, (from, to): (NaiveDate, NaiveDate)) -> Option<Self> {
        let mut command = python("fava")?;
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/books/statements.py")).arg(main);
        let output = command.args([from, to].map(|day| day.to_string())).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        let of = |name: &str| {
            let sums = summary[name].as_object().unwrap().iter();
            without_zeros(sums.map(|(account, sum)| (account.as_str(), i128::from(sum.as_i64().unwrap()))))
        };
        Some(Self { income: of("income"), cash: of("cash"), sheet: of("sheet") })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_show_the_statements_of_our_reports() {
    let world = World::sandbox().await;
    let merchant = month::play_wide(&world).await;
    let rows = rows_of(&world.ops_get("/ops/export").await.text);
    let first = day(&text(&rows[0]["date"])).unwrap();
    let first = first - Days::new(u64::from(chrono::Datelike::day0(&first)));
    let month_after = |begin: NaiveDate, months| begin + Months::new(months) - Days::new(1);
    let second = first + Months::new(1);
    let spans = [(first, month_after(first, 1)), (second, month_after(second, 1)), (first, month_after(first, 4))];
    for (from, to) in spans {
        for ledger in [None, Some("P-all".to_owned()), Some(merchant.ledger())] {
            let query = ledger.as_ref().map(|ledger| format!("&ledger={ledger}")).unwrap_or_default();
            let report = format!("/ops/reports/trial-balance?from={from}&to={to}{query}");
            let report = world.ops_get(&report).await.expect(200);
            for tool in tools() {
                let request = Request { ledger: ledger.clone(), from: Some(from), to: Some(to), ..whole(tool.format) };
                let out = tempfile::tempdir().unwrap();
                run(&world.folder(), out.path(), request.clone(), Some(&world)).await.unwrap();
                for name in ledgers_of(&report) {
                    let main = out.path().join(request.dated(&name)).join(format!("main.{}", tool.format.name()));
                    let ours = Statements::of_report(&report, &name);
                    let [moved, closing] =
                        [Selection::MovedSince(from), Selection::All].map(|selection| tool.sums(&main, selection));
                    if let Some((moved, closing)) = moved.zip(closing) {
                        assert_eq!(Statements::of(&moved, &closing), ours, "{tool:?}, {name}, {from} to {to}");
                    }
                    let fava = Some(&main).filter(|_| tool.format == Format::Beancount);
                    if let Some(shown) = fava.and_then(|main| Statements::of_fava(main, (from, to))) {
                        assert_eq!(shown, ours, "fava, {name}, {from} to {to}");
                    }
                }
            }
        }
    }
}

/// The ledgers that a trial balance has rows of, whose files an export has.
fn ledgers_of(report: &Value) -> Vec<String> {
    let mut ledgers: Vec<_> = report["rows"].as_array().unwrap().iter().map(|row| text(&row["ledger"])).collect();
    ledgers.dedup();
    assert!(!ledgers.is_empty(), "{report}");
    ledgers
}
