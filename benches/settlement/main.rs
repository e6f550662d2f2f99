//! Settlement benchmark: how fast split charges become durable. One table, a row for each measure
//! of this project with its target, and the machine that it was measured on. It prints, and judges
//! nothing by its exit code.
//!
//! `cargo bench --bench settlement` takes a quarter of an hour; `-- --quick` about two minutes.
//! `--only 14` measures one row, `--only 3,14` two; `--stores sled,postgres` measures two stores
//! beside each other ([`stores`]).
//!
//! Where two things are compared they take turns within one run, three times, and the run of the
//! median rate is shown; rows 3, 13 and 14 ([`open_loop`]) and 15 ([`turns`]) take many short
//! turns. The load generator ([`load`]) is a process of its own on the same cores; its ceiling is
//! printed too.
//!
//! The log is on, as `serve` writes it. Rows 1 and 1b are measured without rate limits and with
//! them; all other rows are without, since one API key sends what many would.

mod batches;
mod ceiling;
mod charges;
mod connections;
mod disk;
mod keyed;
mod large;
mod load;
mod machine;
mod open_loop;
mod peer;
mod report;
mod server;
mod settlements;
mod single;
mod stores;
mod turns;

use std::time::Duration;

use centavo::server::logging::{self, SERVE_FILTER};
use centavo::settings::args::LogFormat;
use report::{ROWS, Report};
use server::Shopfront;
use stores::Store;

/// How often each thing is measured; the median counts.
const ROUNDS: usize = 3;

const USAGE: &str = "\
How fast split charges become durable: a table, a row for each thing that is measured, with its target.

Usage: cargo bench --bench settlement [-- OPTIONS]

  --quick           about two minutes instead of a quarter of an hour
  --only ROWS       only these rows, as in 14 or 3,14
  --stores STORES   which stores, as in sled,postgres:16,standby [default: sled, and the database that CENTAVO_STORE
                    names]. Each adds its time
  --help            this

The stores, each with a number of partitions after a colon (without one CENTAVO_PARTITIONS counts):
  sled      in a folder
  postgres  the server of PostgreSQL that CENTAVO_STORE names: it is only asked for new databases, which are dropped at
            the end. Without CENTAVO_STORE one of Debian's, with its defaults, which is started for the run
  standby   two of Debian's: every commit waits for the second

Stores take turns in rows 1, 1b, 2, 4, 5 and 6; the other rows are measured with one store after the other. Row 11
is measured with sled alone, and targets are those of sled. CPU is that of the server, in brackets the load
generator's, and after + that of PostgreSQL where it runs on this machine (with its standby). `others` is the part
of all cores that other programs and other guests of the host took meanwhile; lines with more than 5 % are marked as
disturbed: measure them again.
";

/// What to measure, and how long.
pub(crate) struct Plan {
    quick: bool,
    only: Vec<String>,
    stores: Vec<Store>,
}

impl Plan {
    fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
            println!("{}\nThe rows are {}.", USAGE, ROWS.join(", "));
            std::process::exit(0);
        }
        let quick = arguments.iter().any(|argument| argument == "--quick");
        let value_of = |flag: &str| {
            let at = arguments.iter().position(|argument| argument == flag)?;
            arguments.get(at + 1).map(String::as_str)
        };
        let only = value_of("--only").unwrap_or_default();
        let only: Vec<String> = only.split(',').filter(|row| !row.is_empty()).map(str::to_owned).collect();
        if let Some(unknown) = only.iter().find(|row| !ROWS.contains(&row.as_str())) {
            eprintln!("there is no row {unknown}; the rows are {}", ROWS.join(", "));
            std::process::exit(2);
        }
        let stores = stores::named(value_of("--stores")).unwrap_or_else(|wrong| {
            eprintln!("{wrong}");
            std::process::exit(2)
        });
        Self { quick, only, stores }
    }

    /// How long one load lasts.
    pub(crate) fn lasting(&self) -> Duration {
        Duration::from_millis(if self.quick { 1_000 } else { 5_000 })
    }

    /// The full number, or a sixth of it in a quick run.
    pub(crate) fn count(&self, full: usize) -> usize {
        if self.quick { full / 6 } else { full }
    }

    /// A server with this number of merchants on each store.
    pub(crate) fn open(&self, merchants: usize) -> Vec<Shopfront> {
        self.stores.iter().map(|store| Shopfront::open(store, merchants)).collect()
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
    if std::env::args().any(|argument| argument == load::ARGUMENT) {
        return load::generate();
    }
    let plan = Plan::from_arguments();
    logging::start(LogFormat::Text, SERVE_FILTER).expect("a thread for the log");
    let mut report = Report::default();
    let facts = machine::facts(&plan.stores) + &machine::memory("before");
    if plan.wants(&["1", "1b", "2", "3", "5", "13", "14", "15", "16", "17", "18"]) {
        let fronts = plan.open(100);
        let served = plan.wants(&["1", "1b"]);
        let served: Vec<_> =
            plan.stores.iter().filter(|_| served).map(|store| Shopfront::as_served(store, 100)).collect();
        charges::measure(&plan, &mut report, &fronts, &served);
        stop(served);
        for front in &fronts {
            open_loop::measure(&plan, &mut report, front);
            keyed::measure(&plan, &mut report, front);
            connections::measure(&plan, &mut report, front);
            batches::measure(&plan, &mut report, front);
        }
        ceiling::measure(&plan, &mut report, &fronts[0]);
        stop(fronts);
    }
    if plan.wants(&["4", "5"]) {
        settlements::measure(&plan, &mut report);
    }
    if plan.wants(&["6"]) {
        single::measure(&plan, &mut report);
    }
    for store in &plan.stores {
        if plan.wants(&["11"]) && !store.is_postgres() {
            disk::measure(&plan, &mut report, store);
        }
        if plan.wants(&["12"]) {
            large::measure(&mut report, store);
        }
    }
    report.print(|row| plan.wants(&[row]));
    print!("{facts}{}", machine::memory("after"));
}

/// Ends servers in good order.
pub(crate) fn stop(fronts: Vec<Shopfront>) {
    for front in fronts {
        front.stop();
    }
}
