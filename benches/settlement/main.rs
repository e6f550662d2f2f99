//! Settlement benchmark: how fast split charges become durable. One table, a row for each measure
//! of this project with its target, and the machine that it was measured on. It prints, and judges
//! nothing by its exit code.
//!
//! `cargo bench --bench settlement` takes about five minutes; `-- --quick` about two; `-- --only
//! 14` measures one row, `-- --only 3,14` two.
//!
//! Where two things are compared they take turns within one run, three times, and the run of the
//! median rate is shown. The load generator ([`load`]) shares process and cores with the server, so
//! every figure is of both; its own ceiling is printed too.
//!
//! The log is on, as `serve` writes it. Rows 1 and 1b are measured without rate limits and with
//! them; all other rows are without, since one API key sends what many would.

mod ceiling;
mod charges;
mod disk;
mod large;
mod load;
mod machine;
mod open_loop;
mod peer;
mod report;
mod server;
mod settlements;
mod single;
mod watchers;

use std::time::Duration;

use centavo::config::LogFormat;
use centavo::logging::{self, SERVE_FILTER};
use report::{ROWS, Report};
use server::Shopfront;

/// How often each thing is measured; the median counts.
const ROUNDS: usize = 3;

const USAGE: &str = "\
How fast split charges become durable: a table, a row for each thing that is measured, with its target.

Usage: cargo bench --bench settlement [-- OPTIONS]

  --quick        about two minutes instead of five
  --only ROWS    only these rows, as in 14 or 3,14
  --help         this
";

/// What to measure, and how long.
pub(crate) struct Plan {
    quick: bool,
    only: Vec<String>,
}

impl Plan {
    fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            println!("{}\nThe rows are {}.", USAGE, ROWS.join(", "));
            std::process::exit(0);
        }
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let only = arguments.iter().position(|argument| argument == "--only");
        let only = only.and_then(|at| arguments.get(at + 1)).map_or("", String::as_str);
        let only: Vec<String> = only.split(',').filter(|row| !row.is_empty()).map(str::to_owned).collect();
        if let Some(unknown) = only.iter().find(|row| !ROWS.contains(&row.as_str())) {
            eprintln!("there is no row {unknown}; the rows are {}", ROWS.join(", "));
            std::process::exit(2);
        }
        Self { quick, only }
    }

    /// How long one load lasts.
    pub(crate) fn lasting(&self) -> Duration {
        Duration::from_millis(if self.quick { 1_000 } else { 5_000 })
    }

    /// The full number, or a sixth of it in a quick run.
    pub(crate) fn count(&self, full: usize) -> usize {
        if self.quick { full / 6 } else { full }
    }

    /// True when there is time for what has no target.
    pub(crate) fn is_thorough(&self) -> bool {
        !self.quick
    }

    /// True when one of these rows is asked for.
    pub(crate) fn wants(&self, rows: &[&str]) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| rows.contains(&only.as_str()))
    }
}

fn main() {
    let plan = Plan::from_arguments();
    logging::start(LogFormat::Text, SERVE_FILTER);
    let mut report = Report::default();
    let facts = machine::facts();
    if plan.wants(&["1", "1b", "2", "3", "5", "13", "14", "15", "16"]) {
        let front = Shopfront::open(100);
        let served = plan.wants(&["1", "1b"]).then(|| Shopfront::as_served(100));
        charges::measure(&plan, &mut report, &front, served.as_ref());
        if let Some(served) = served {
            served.stop();
        }
        open_loop::measure(&plan, &mut report, &front);
        watchers::measure(&plan, &mut report, &front);
        ceiling::measure(&plan, &mut report, &front);
        front.stop();
    }
    if plan.wants(&["4", "5"]) {
        settlements::measure(&plan, &mut report);
    }
    if plan.wants(&["6"]) {
        single::measure(&plan, &mut report);
    }
    if plan.wants(&["11"]) {
        disk::measure(&plan, &mut report);
    }
    if plan.wants(&["12"]) {
        large::measure(&mut report);
    }
    report.print(|row| plan.wants(&[row]));
    println!("{facts}");
}
