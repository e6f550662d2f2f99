//! Reports as a page that prints: A4, with the heads on every sheet. It needs no script and loads
//! nothing.

use std::io::{self, Write};

use maud::{DOCTYPE, PreEscaped, html};

use super::words::{cut, totals};
use crate::reports::table::{Cell, Column, Heading, Kind, OnPage, Renderer, TableFooter};

const STYLE: &str = "@page{size:A4 landscape;margin:12mm;@bottom-right{content:counter(page) \" de \" counter(pages)}}\
body{font:13px/1.4 system-ui,sans-serif;margin:2em;color:#111;background:#fff}\
h1{font-size:1.4em;margin:0}p{margin:.2em 0}table{border-collapse:collapse;margin:1em 0;width:100%}\
th,td{padding:.2em .5em;border-bottom:1px solid #ccc;text-align:left;vertical-align:top;overflow-wrap:anywhere}\
.amount{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}thead{display:table-header-group}\
small{display:block;color:#555;font-weight:normal}tr{break-inside:avoid}tfoot{display:table-row-group;font-weight:bold}footer{font-size:.8em;overflow-wrap:anywhere}\
@media print{body{margin:0;font-size:8pt}}";

/// A report that is being written.
pub(super) struct HtmlTable<'a> {
    columns: Vec<Column>,
    out: &'a mut dyn Write,
}

impl<'a> HtmlTable<'a> {
    pub(super) fn new(heading: &Heading<'_>, out: &'a mut dyn Write) -> io::Result<Self> {
        let title = heading.request.report.title();
        let head = html! {
            (DOCTYPE)
            html lang="pt-BR" {
                head { meta charset="utf-8"; title { (title) } style { (PreEscaped(STYLE)) } }
                body {
                    h1 { (title) }
                    @for line in heading.lines { p { (line) } }
                    table {
                        thead { tr {
                            @for cell in on_page(heading.columns) {
                                th scope="col" class=[class(heading.columns[cell.main].kind)] {
                                    (heading.columns[cell.main].label)
                                    @for below in &cell.below { small { (heading.columns[*below].label) } }
                                }
                            }
                        } }
                        tbody { (PreEscaped(ROWS)) }
                    }
                }
            }
        };
        let head = head.into_string();
        let before = head.split(ROWS).next().unwrap_or_default();
        out.write_all(before.as_bytes())?;
        Ok(Self { columns: heading.columns.to_vec(), out })
    }

    fn line(&self, cells: &[String]) -> String {
        let line = html! {
            tr {
                @for PageCell { main, below } in on_page(&self.columns) {
                    @let column = self.columns[main];
                    @let label = class(column.kind).map(|_| column.label);
                    td class=[class(column.kind)] data-label=[label] {
                        (cells[main])
                        @for text in below.iter().map(|place| &cells[*place]).filter(|text| !text.is_empty()) {
                            small { (text) }
                        }
                    }
                }
            }
        };
        line.into_string()
    }
}

/// Columns that share a cell of the page, by their places.
struct PageCell {
    main: usize,
    below: Vec<usize>,
}

/// The cells of each line of the page.
fn on_page(columns: &[Column]) -> Vec<PageCell> {
    let mut cells: Vec<PageCell> = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        match (cells.last_mut(), column.on_page) {
            (Some(cell), OnPage::Below) => cell.below.push(place),
            (_, OnPage::Absent) => {}
            (Some(cell), OnPage::Above) => cell.below.insert(0, std::mem::replace(&mut cell.main, place)),
            _ => cells.push(PageCell { main: place, below: Vec::new() }),
        }
    }
    cells
}

/// Place of the rows in the page.
const ROWS: &str = "<!--rows-->";

/// The class of a column of numbers.
fn class(kind: Kind) -> Option<&'static str> {
    matches!(kind, Kind::Amount | Kind::Count | Kind::Rate).then_some("amount")
}

impl Renderer for HtmlTable<'_> {
    fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        let line = self.line(&cells.iter().map(Cell::shown).collect::<Vec<_>>());
        self.out.write_all(line.as_bytes())?;
        self.out.write_all(b"\n")
    }

    fn finish(self: Box<Self>, closing: &TableFooter) -> io::Result<()> {
        let counts: Vec<_> = self.columns.iter().map(|column| column.kind == Kind::Count).collect();
        let has_totals = closing.totals.iter().any(Option::is_some);
        let foot = if has_totals { self.line(&totals(&counts, closing)) } else { String::new() };
        let cut = html! { footer { (cut(closing)) } }.into_string();
        writeln!(self.out, "</tbody><tfoot>{foot}</tfoot></table>{cut}</body></html>")
    }
}
