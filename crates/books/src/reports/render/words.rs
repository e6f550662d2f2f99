//! Texts of a report for people: cells as they are read in Brazil, the heading, the footer.

use wire::cut_text::cut_name;
use wire::reais::reais;

use crate::reports::table::{Cell, Heading, TableFooter};

/// A cell as it is read in Brazil: reais with a decimal comma, DD/MM/AAAA.
pub(super) fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Empty => String::new(),
        Cell::Text(text) => text.clone(),
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

/// The ledger, the account and the days of a report.
pub(super) fn subject(heading: &Heading<'_>) -> String {
    let request = heading.request;
    let day = |day: chrono::NaiveDate| day.format("%d/%m/%Y").to_string();
    let days = match (request.from, request.to) {
        (Some(from), Some(to)) => Some(format!("de {} a {}", day(from), day(to))),
        (Some(from), None) => Some(format!("desde {}", day(from))),
        (None, Some(to)) => Some(format!("até {}", day(to))),
        (None, None) => None,
    };
    let parts = [request.ledger.clone(), request.account.clone(), days];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The cut of a report, and the hash of the journal there.
pub(super) fn cut(closing: &TableFooter) -> String {
    format!("Registros até a sequência {}; bloco {}", cut_name(&closing.cut), closing.head)
}
