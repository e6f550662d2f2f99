//! Output of the commands on a terminal: counts, tables, progress bars.

use std::io::Write as _;

use indicatif::{ProgressBar, ProgressStyle};
use wire::reais::grouped;

/// Writes a line to standard output. A closed output is no error.
pub fn say(line: &str) {
    let _closed = writeln!(std::io::stdout(), "{line}");
}

/// Writes a line to standard error. A closed one is no error.
pub fn note(line: &str) {
    let _closed = writeln!(std::io::stderr(), "{line}");
}

/// A count with commas between thousands: `12,345`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string(), ',')
}

/// A size in the largest unit that it reaches: `1.5 MiB`.
pub fn bytes(size: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| size >= *unit) {
        Some((unit, name)) => {
            let tenths = u128::from(size) * 10 / u128::from(*unit);
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{size} bytes"),
    }
}

/// Lines of a table: the first `left` columns are aligned to the left, the others to the right.
pub fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]], left: usize) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let cell = |column: usize, text: &str| match column < left {
        true => format!("{text:<width$}", width = widths[column]),
        false => format!("{text:>width$}", width = widths[column]),
    };
    let line = |row: &[String; COLUMNS]| {
        let cells: Vec<_> = row.iter().enumerate().map(|(column, text)| cell(column, text)).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A progress bar on standard error; invisible where that is no terminal.
pub fn bar(label: &str, unit: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = format!("{label} {{bar:40}} {{human_pos}}/{{human_len}} {unit}");
    bar.set_style(ProgressStyle::with_template(&template).expect("the template is valid for words as labels"));
    bar
}

/// Shows progress on a bar: `done` of `total`.
pub fn advance(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

/// Does work that says how much of all is done, and shows that in a bar meanwhile.
pub fn with_bar<T>(label: &str, unit: &str, work: impl FnOnce(&mut dyn FnMut(u64, u64)) -> T) -> T {
    let bar = bar(label, unit);
    let done = work(&mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    done
}

/// Says what was done, in `seconds`, and rows of a name and a value below it.
pub fn say_done(what: &str, seconds: f64, rows: &[[String; 2]]) {
    say(&format!("{what} ({seconds:.1} s)"));
    aligned(rows, 2).iter().for_each(|row| say(&format!("  {row}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_are_readable() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(count(number), expected);
        }
        for (size, expected) in
            [(1_023, "1023 bytes"), (1_024, "1.0 KiB"), (1_600_000, "1.5 MiB"), (u64::MAX, "17179869183.9 GiB")]
        {
            assert_eq!(bytes(size), expected);
        }
    }

    #[test]
    fn columns_are_aligned_by_characters() {
        let rows = [["João", "1,00", ""], ["Ana", "-10,00", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows, 1), ["João    1,00", "Ana   -10,00  x"]);
    }
}
