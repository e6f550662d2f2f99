//! The table: its rows are gathered in any order and printed in that of their numbers.

use crate::load::LoadFigures;
use crate::machine::CpuTime;
use crate::stores::Store;

/// The rows as they are numbered, in their order.
pub(crate) const ROWS: [&str; 15] =
    ["1", "1b", "2", "3", "4", "5", "6", "11", "12", "13", "14", "15", "16", "17", "18"];

/// In place of a number: the load generator's own ceiling, which is shown with any row of HTTP.
pub(crate) const CEILING: &str = "–";

/// One line of the table.
pub(crate) struct Row {
    /// Its number in the list of targets.
    pub(crate) number: &'static str,
    /// What is measured.
    pub(crate) what: &'static str,
    /// Under which load.
    pub(crate) load: String,
    /// What came out.
    pub(crate) figure: String,
    /// CPU time for one answer.
    pub(crate) cpu: Option<CpuTime>,
    /// What it should be, and whether it is; nothing where a line is there for comparison only.
    pub(crate) target: Option<(&'static str, bool)>,
}

/// From this part of the machine on that others take meanwhile, a line is marked as disturbed.
const DISTURBED: f64 = 0.05;

/// All lines, each with its store.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<(Option<Store>, Row)>,
}

/// The lines of a store.
pub(crate) struct Lines<'a> {
    report: &'a mut Report,
    store: &'a Store,
}

impl Report {
    /// The lines of a store.
    pub(crate) fn of<'a>(&'a mut self, store: &'a Store) -> Lines<'a> {
        Lines { report: self, store }
    }

    /// Adds a line that is about no store.
    pub(crate) fn add(&mut self, row: Row) {
        self.add_of(None, row);
    }

    fn add_of(&mut self, store: Option<Store>, row: Row) {
        let name = store.as_ref().map_or("", |store| &store.name);
        eprintln!("measured row {}: {}, {} {name}", row.number, row.what, row.load);
        self.rows.push((store, row));
    }

    /// Prints the lines of the rows that are wanted.
    pub(crate) fn print(&self, wanted: impl Fn(&str) -> bool) {
        let head = ["row", "what", "load", "store", "figure", "CPU µs", "others", "target", "met"].map(str::to_owned);
        let mut lines = vec![head];
        for number in ROWS.into_iter().filter(|number| wanted(number)).chain([CEILING]) {
            let of_number = self.rows.iter().filter(|(_, row)| row.number == number);
            lines.extend(of_number.map(|(store, row)| row.cells(store.as_ref())));
        }
        let widths: [usize; 9] = std::array::from_fn(|column| {
            lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
        });
        for line in lines {
            let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("{}", cells.join("  ").trim_end());
        }
    }
}

impl Lines<'_> {
    /// Adds a line.
    pub(crate) fn add(&mut self, row: Row) {
        self.report.add_of(Some(self.store.clone()), row);
    }
}

impl Row {
    fn cells(&self, store: Option<&Store>) -> [String; 9] {
        let is_postgres = store.is_some_and(Store::is_postgres);
        let cpu = self.cpu.map_or_else(String::new, |cpu| cpu.text(is_postgres));
        let others = self.cpu.map(CpuTime::of_others).map_or_else(String::new, |part| {
            let mark = if part > DISTURBED { " disturbed" } else { "" };
            format!("{:.0} %{mark}", 100.0 * part)
        });
        let target = self.target.filter(|_| !is_postgres);
        let (target, met) = target.map_or(("", ""), |(target, met)| (target, if met { "yes" } else { "no" }));
        let store = store.map_or("", |store| &store.name);
        let [number, what, store, target, met] = [self.number, self.what, store, target, met].map(str::to_owned);
        [number, what, self.load.clone(), store, self.figure.clone(), cpu, others, target, met]
    }
}

impl CpuTime {
    /// Whole microseconds; with those of PostgreSQL, if that keeps the journal.
    fn text(&self, is_postgres: bool) -> String {
        let [process, generator, postgres] =
            [self.process, self.generator, self.postgres].map(|time| time.as_micros().to_string());
        let generator = if generator == "0" { String::new() } else { format!(" ({generator})") };
        let postgres = if is_postgres { format!(" + {postgres}") } else { String::new() };
        format!("{process}{generator}{postgres}")
    }
}

/// A rate with its latencies, as a figure; with the number of refusals, if there are any.
pub(crate) fn rate_and_latency(measured: &LoadFigures) -> String {
    let refused = match measured.refused.len() {
        0 => String::new(),
        count => format!(", {} refused", thousands(count as f64)),
    };
    format!("{}/s, {}{refused}", thousands(measured.rate()), latency(measured))
}

/// Latencies, as a figure.
pub(crate) fn latency(measured: &LoadFigures) -> String {
    format!("p50 {:.2}, p99 {:.2} ms", measured.ms_at(0.5), measured.ms_at(0.99))
}

/// A whole number with a comma between thousands.
pub(crate) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// One number as a part of another, as a figure.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    format!("{:.1} %", 100.0 * part / whole)
}

/// Of several runs, that with the median of a figure.
pub(crate) fn median<T>(mut runs: Vec<T>, figure: impl Fn(&T) -> f64) -> T {
    runs.sort_by(|a, b| figure(a).total_cmp(&figure(b)));
    let middle = runs.len() / 2;
    runs.swap_remove(middle)
}
