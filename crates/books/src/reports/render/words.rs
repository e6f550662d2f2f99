//! Texts of a report for people: the totals, the footer.

use wire::cut_text::cut_name;
use wire::reais::reais;

use crate::reports::table::TableFooter;

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
