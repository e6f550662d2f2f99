//! The table: its rows are gathered in any order and printed in that of their numbers.

use crate::load::Measured;
use crate::machine::CpuTime;

/// The rows as they are numbered, in their order.
pub(crate) const ROWS: [&str; 13] = ["1", "1b", "2", "3", "4", "5", "6", "11", "12", "13", "14", "15", "16"];

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

/// All lines.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Adds a line.
    pub(crate) fn add(&mut self, row: Row) {
        eprintln!("measured row {}: {}, {}", row.number, row.what, row.load);
        self.rows.push(row);
    }

    /// Prints the lines of the rows that are wanted.
    pub(crate) fn print(&self, wanted: impl Fn(&str) -> bool) {
        let head = ["row", "what", "load", "figure", "CPU µs", "target", "met"].map(str::to_owned);
        let mut lines = vec![head];
        for number in ROWS.into_iter().filter(|number| wanted(number)).chain([CEILING]) {
            lines.extend(self.rows.iter().filter(|row| row.number == number).map(Row::cells));
        }
        let widths: [usize; 7] = std::array::from_fn(|column| {
            lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default()
        });
        for line in lines {
            let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            println!("{}", cells.join("  ").trim_end());
        }
    }
}

impl Row {
    fn cells(&self) -> [String; 7] {
        let cpu =
            self.cpu.map_or_else(String::new, |cpu| match [cpu.process, cpu.generator].map(|time| time.as_micros()) {
                [process, 0] => process.to_string(),
                [process, generator] => format!("{process} ({generator})"),
            });
        let (target, met) = self.target.map_or(("", ""), |(target, met)| (target, if met { "yes" } else { "no" }));
        let [number, what, target, met] = [self.number, self.what, target, met].map(str::to_owned);
        [number, what, self.load.clone(), self.figure.clone(), cpu, target, met]
    }
}

/// A rate with its latencies, as a figure; with the number of refusals, if there are any.
pub(crate) fn rate_and_latency(measured: &Measured) -> String {
    let refused = match measured.refused.len() {
        0 => String::new(),
        count => format!(", {} refused", thousands(count as f64)),
    };
    format!("{}/s, {}{refused}", thousands(measured.rate()), latency(measured))
}

/// Latencies, as a figure.
pub(crate) fn latency(measured: &Measured) -> String {
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
