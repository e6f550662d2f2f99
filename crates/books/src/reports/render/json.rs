//! Reports as one JSON object. Amounts are centavos, days are `AAAA-MM-DD`, rates are decimal
//! strings in percent.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};
use wire::cut_text::{CutView, by_partition};
use wire::timestamp::with_milliseconds;

use crate::reports::table::{Cell, Column, Heading, Kind, Renderer, TableFooter};

/// A report that is being written.
pub(super) struct JsonTable<'a> {
    columns: Vec<Column>,
    out: &'a mut dyn Write,
    has_rows: bool,
}

impl<'a> JsonTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> io::Result<Self> {
        let request = heading.request;
        let head = json!({
            "report": request.report.name(),
            "ledger": request.ledger,
            "account": request.account,
            "from": request.from.map(|day| day.to_string()),
            "to": request.to.map(|day| day.to_string()),
            "columns": heading.columns.iter().map(|column| {
                json!({"name": column.name, "label": column.label, "kind": kind_name(column.kind)})
            }).collect::<Vec<_>>(),
        });
        let head = head.to_string();
        out.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
        out.write_all(b",\"rows\":[")?;
        Ok(Self { columns: heading.columns.to_vec(), out, has_rows: false })
    }
}

impl Renderer for JsonTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let mut row = Map::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            row.insert(column.name.to_owned(), value(column.kind, cell));
        }
        self.out.write_all(if self.has_rows { b",\n" } else { b"\n" })?;
        self.has_rows = true;
        serde_json::to_writer(&mut *self.out, &row)?;
        Ok(())
    }

    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        let sums = self.columns.iter().zip(&closing.totals);
        let totals: Map<String, Value> =
            sums.filter_map(|(column, total)| Some((column.name.to_owned(), number((*total)?)))).collect();
        let cut = by_partition(&closing.cut);
        let end = serde_json::to_string(&End { count: closing.rows, cut, head: &closing.head, totals })?;
        self.out.write_all(b"],")?;
        self.out.write_all(end.strip_prefix('{').unwrap_or(&end).as_bytes())?;
        self.out.write_all(b"\n")
    }
}

/// What stands after the rows. A cut has the order of its partitions only outside a `Value`.
#[derive(Serialize)]
struct End<'a> {
    count: u64,
    cut: CutView,
    head: &'a str,
    totals: Map<String, Value>,
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Word | Kind::Owner => "text",
        Kind::Amount => "centavos",
        Kind::Day => "date",
        Kind::Count => "count",
        Kind::Rate => "percent",
        Kind::Instant => "instant",
    }
}

/// The value of a cell. The number of an installment stands among words, and is text as they are.
fn value(kind: Kind, cell: &Cell) -> Value {
    match cell {
        Cell::Count(count) if kind == Kind::Word => json!(count.to_string()),
        Cell::Empty => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Word(name, _) => json!(name),
        Cell::Amount(centavos) => number(*centavos),
        Cell::Day(day) => json!(day.to_string()),
        Cell::Count(count) => json!(count),
        Cell::Rate(rate) => json!(rate.as_percent().to_string()),
        Cell::Instant(at) => json!(with_milliseconds(*at)),
    }
}

/// A sum as a number. One that no 64 bits hold, which no journal reaches, is written as a string.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), |sum| json!(sum))
}

#[cfg(test)]
mod tests {
    use store::Sequence;
    use store::cut::Cut;

    use super::*;

    #[test]
    fn a_number_in_a_column_of_words_is_text() {
        assert_eq!(value(Kind::Word, &Cell::Count(12)), json!("12"));
        assert_eq!(value(Kind::Count, &Cell::Count(12)), json!(12));
    }

    #[test]
    fn a_cut_has_the_order_of_its_partitions() {
        let cut = Cut::new((1..=12).map(Sequence).collect());
        let closing = TableFooter { cut, head: String::new(), booked_at_ms: 0, rows: 0, totals: Vec::new() };
        let mut out = Vec::new();
        Box::new(JsonTable { columns: Vec::new(), out: &mut out, has_rows: false }).finish(&closing).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""1":2,"2":3,"#) && text.contains(r#""9":10,"10":11,"11":12}"#), "{text}");
    }
}
