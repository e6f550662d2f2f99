//! Reports as one JSON object. Amounts are centavos, days are `AAAA-MM-DD`, rates are decimal
//! strings in percent.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::http::cut::by_partition;
use crate::reports::table::{Cell, Closing, Column, Heading, Kind, Renderer};

/// A report that is being written.
pub(super) struct JsonTable<'a> {
    columns: &'static [Column],
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
        Ok(Self { columns: heading.columns, out, has_rows: false })
    }
}

impl Renderer for JsonTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let mut row = Map::new();
        for (column, cell) in self.columns.iter().zip(cells) {
            row.insert(column.name.to_owned(), value(cell));
        }
        self.out.write_all(if self.has_rows { b",\n" } else { b"\n" })?;
        self.has_rows = true;
        serde_json::to_writer(&mut *self.out, &row)?;
        Ok(())
    }

    fn finish(self: Box<Self>, closing: &Closing) -> io::Result<()> {
        let sums = self.columns.iter().zip(&closing.totals);
        let totals: Map<String, Value> =
            sums.filter_map(|(column, total)| Some((column.name.to_owned(), number((*total)?)))).collect();
        let end =
            json!({"totals": totals, "count": closing.rows, "cut": by_partition(&closing.cut), "head": closing.head});
        let end = end.to_string();
        self.out.write_all(b"],")?;
        self.out.write_all(end.strip_prefix('{').unwrap_or(&end).as_bytes())?;
        self.out.write_all(b"\n")
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "text",
        Kind::Centavos => "centavos",
        Kind::Day => "date",
        Kind::Count => "count",
        Kind::Rate => "percent",
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Empty => Value::Null,
        Cell::Text(text) => json!(text),
        Cell::Centavos(centavos) => number(*centavos),
        Cell::Day(day) => json!(day.to_string()),
        Cell::Count(count) => json!(count),
        Cell::Rate(rate) => json!(rate.as_percent().to_string()),
    }
}

/// A sum as a number. One that no 64 bits hold, which no journal reaches, is written as a string.
fn number(sum: i128) -> Value {
    i64::try_from(sum).map_or_else(|_| json!(sum.to_string()), |sum| json!(sum))
}
