//! Texts of a report for people: cells as they are read in Brazil, the heading, the footer.

use wire::cut_text::cut_name;
use wire::reais::reais;

use crate::reports::table::{Cell, TableFooter};

/// A cell as it is read in Brazil: reais with a decimal comma, DD/MM/AAAA.
pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => text.clone(),
        Cell::Word(_, ptbr) => ptbr.clone().into_owned(),
        Cell::Centavos(centavos) => reais(*centavos),
        Cell::Day(day) => day.format("%d/%m/%Y").to_string(),
        Cell::Count(count) => count.to_string(),
        Cell::Rate(rate) => rate.as_percent().to_string().replace('.', ","),
    }
}

/// The totals as a row; empty where a sum has no meaning.
pub(super) fn totals(heading_kinds: &[bool], closing: &TableFooter) -> Vec<String> {
    let cells = heading_kinds.iter().zip(&closing.totals).map(|(is_count, total)| match total {
        None => String::new(),
        Some(total) if *is_count => total.to_string(),
        Some(total) => reais(*total),
    });
    let mut cells: Vec<_> = cells.collect();
    if let Some(first) = cells.first_mut().filter(|first| first.is_empty()) {
        first.push_str("Total");
    }
    cells
}

/// The cut of a report, and the hash of the journal there.
pub(super) fn cut(closing: &TableFooter) -> String {
    format!("Registros até a sequência {}; bloco {}", cut_name(&closing.cut), closing.head)
}
