//! Table of a page: its columns as data, each with its head and what it shows of a row.

use maud::{Markup, Render, html};

use crate::show::scrolled;
use crate::{Word, words};
use web::Language;

/// A table. On a narrow screen its rows stand below each other, and each cell says its head.
pub(crate) struct Table<'a, T> {
    language: Language,
    label: &'static str,
    is_list: bool,
    rows: Vec<T>,
    columns: Vec<Column<'a, T>>,
    sums: Vec<String>,
}

struct Column<'a, T> {
    head: Word,
    /// Class of its head and its cells; empty for texts.
    class: &'static str,
    sorting: Option<Sorting>,
    cell: Box<dyn Fn(T) -> Markup + 'a>,
}

/// How a head sorts its list.
pub(crate) struct Sorting {
    /// `ascending` or `descending`, where the list is sorted by this column.
    pub direction: Option<&'static str>,
    /// Address of the list in the order to which the head leads.
    pub link: String,
}

impl<'a, T: Copy + 'a> Table<'a, T> {
    /// A table of these rows, without columns. `label` names it.
    pub(crate) fn of(language: Language, label: Word, rows: impl IntoIterator<Item = T>) -> Self {
        let (label, rows) = (label.text(language), rows.into_iter().collect());
        Self { language, label, is_list: false, rows, columns: Vec::new(), sums: Vec::new() }
    }

    /// A table whose rows have two lines on a narrow screen: `name` and `amount`, then `when` and
    /// `status`; what is `more` is for wide screens. These are the classes of its columns.
    pub(crate) fn list(language: Language, label: Word, rows: impl IntoIterator<Item = T>) -> Self {
        Self { is_list: true, ..Self::of(language, label, rows) }
    }

    /// Adds a column of texts.
    pub(crate) fn text<R: Render>(self, head: Word, cell: impl Fn(T) -> R + 'a) -> Self {
        self.column("", head, cell)
    }

    /// Adds a column of amounts or counts, which stand at the right.
    pub(crate) fn amount<R: Render>(self, head: Word, cell: impl Fn(T) -> R + 'a) -> Self {
        self.column("amount", head, cell)
    }

    /// Adds a column of a class.
    pub(crate) fn column<R: Render>(mut self, class: &'static str, head: Word, cell: impl Fn(T) -> R + 'a) -> Self {
        let cell = Box::new(move |row| cell(row).render());
        self.columns.push(Column { head, class, sorting: None, cell });
        self
    }

    /// Makes the head of the last column a link that sorts the list.
    pub(crate) fn sorted(mut self, sorting: Option<Sorting>) -> Self {
        if let Some(last) = self.columns.last_mut() {
            last.sorting = sorting;
        }
        self
    }

    /// Adds a foot with the sums of the columns after the first.
    pub(crate) fn sums(self, sums: impl IntoIterator<Item = String>) -> Self {
        Self { sums: sums.into_iter().collect(), ..self }
    }

    /// The table; a sentence where it has no rows.
    pub(crate) fn shown(self) -> Markup {
        if self.rows.is_empty() {
            return html! { p.dim { (words::NOTHING.text(self.language)) } };
        }
        let columns = || self.columns.iter().enumerate();
        let class = |column: &Column<'_, T>| Some(column.class).filter(|class| !class.is_empty());
        let head = |column: &Column<'_, T>| column.head.text(self.language);
        // The first cell of a row is its name.
        let label = |place: usize, column: &Column<'_, T>| (place > 0 && !self.is_list).then(|| head(column));
        let table = html! {
            table class=[self.is_list.then_some("list")] {
                thead { tr { @for column in &self.columns {
                    th class=[class(column)] scope="col" aria-sort=[column.sorting.as_ref().and_then(|sorting| sorting.direction)] {
                        @match &column.sorting { Some(sorting) => a href=(sorting.link) { (head(column)) }, None => (head(column)) }
                    }
                } } }
                tbody { @for row in &self.rows { tr {
                    @for (place, column) in columns() {
                        td data-label=[label(place, column)] class=[class(column)] { ((column.cell)(*row)) }
                    }
                } } }
                @if !self.sums.is_empty() {
                    tfoot { tr {
                        th scope="row" { (words::SUM.text(self.language)) }
                        @for ((place, column), sum) in columns().skip(1).zip(&self.sums) {
                            td data-label=[label(place, column)] class=[class(column)] { (sum) }
                        }
                    } }
                }
            }
        };
        scrolled(self.label, table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_after_the_first_has_the_name_of_its_column() {
        let rows = [("x", 1), ("<y>", 2)];
        let table = |table: Table<'_, (&'static str, i32)>| {
            let table = table.text(words::NAME, |(name, _)| name).amount(words::AMOUNT, |(_, amount)| amount);
            table.sums(["3".to_owned()]).shown().into_string()
        };
        let plain = table(Table::of(Language::English, words::RESULTS, rows));
        for part in [
            "aria-label=\"Results\"><table><thead><tr><th scope=\"col\">Name</th><th class=\"amount\" scope=\"col\">Amount</th>",
            "<tr><td>&lt;y&gt;</td><td data-label=\"Amount\" class=\"amount\">2</td></tr>",
            "<th scope=\"row\">Sum</th><td data-label=\"Amount\" class=\"amount\">3</td>",
        ] {
            assert!(plain.contains(part), "{part} in {plain}");
        }
        let list = table(Table::list(Language::English, words::RESULTS, rows));
        assert!(list.contains("<table class=\"list\">") && !list.contains("data-label"), "{list}");
        assert_eq!(table(Table::of(Language::English, words::RESULTS, [])), "<p class=\"dim\">Nothing here.</p>");
    }
}
