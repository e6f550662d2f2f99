//! Layout of journal entries: the columns that another program reads, from the file of the chart.
//!
//! A column has a head, and a value with places in braces: `{document}`. A place that does not
//! exist is refused when the file is read.

use std::str::FromStr;

use serde::Deserialize;
use strum::EnumString;

use super::chart::ChartError;

/// Columns of a file of journal entries, and their notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) separator: char,
    /// Between reais and centavos.
    pub(super) decimal: char,
    /// Text of the side that a line does not have.
    pub(super) zero: String,
    /// Whether the first line has the heads.
    pub(super) has_heads: bool,
    pub(super) columns: Vec<LayoutColumn>,
}

/// Head and value of a cell in each line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayoutColumn {
    pub(super) head: String,
    pub(super) value: Vec<ValuePart>,
}

/// Part of a column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValuePart {
    Text(String),
    Place(LayoutPlace),
}

/// A place in a value, which each line fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(super) enum LayoutPlace {
    /// The day, AAAA-MM-DD.
    Date,
    /// The day, DD/MM/AAAA.
    DateBr,
    /// The day of the effect, AAAA-MM-DD; of a document of a day that day.
    EffectiveDate,
    /// The Record, or the day.
    Document,
    /// The line's number in the document, from 1.
    Line,
    Ledger,
    Code,
    /// The code of a line of that side; else nothing.
    DebitCode,
    CreditCode,
    /// The amount of a line of that side; else the text of no amount.
    Debit,
    Credit,
    /// The amount of either side.
    Amount,
    /// `D` or `C`.
    Side,
    History,
    CostCenter,
    Reference,
}

/// A layout, as the file of a chart has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutFile {
    separator: Option<char>,
    decimal: Option<char>,
    #[serde(default)]
    zero: String,
    #[serde(default = "yes")]
    heads: bool,
    column: Vec<ColumnFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile {
    head: String,
    value: String,
}

fn yes() -> bool {
    true
}

/// Columns where a chart has no layout of its own.
const DEFAULT: [(&str, &str); 10] = [
    ("posting_date", "{date}"),
    ("effective_date", "{effective_date}"),
    ("document", "{document}"),
    ("line", "{line}"),
    ("account_code", "{code}"),
    ("debit", "{debit}"),
    ("credit", "{credit}"),
    ("history", "{history}"),
    ("cost_center", "{cost_center}"),
    ("reference", "{reference}"),
];

impl Default for Layout {
    fn default() -> Self {
        let column = |(head, value): (&str, &str)| LayoutColumn {
            head: head.to_owned(),
            value: parts(value).expect("its places are known"),
        };
        let columns = DEFAULT.into_iter().map(column).collect();
        Self { separator: ',', decimal: '.', zero: "0.00".to_owned(), has_heads: true, columns }
    }
}

impl LayoutFile {
    /// Checks the layout; the error says what is wrong with it.
    pub(super) fn layout(self) -> Result<Layout, ChartError> {
        let Self { separator, decimal, zero, heads: has_heads, column: columns } = self;
        let (separator, decimal) = (separator.unwrap_or(','), decimal.unwrap_or('.'));
        if !matches!(separator, ',' | ';' | '|' | '\t') || !matches!(decimal, ',' | '.') {
            return Err(ChartError::Marks);
        }
        if columns.is_empty() {
            return Err(ChartError::NoColumn);
        }
        let column = |of: ColumnFile| match of.head.chars().chain(of.value.chars()).any(char::is_control) {
            true => Err(ChartError::Column(of.head)),
            false => Ok(LayoutColumn { value: parts(&of.value)?, head: of.head }),
        };
        let columns = columns.into_iter().map(column).collect::<Result<_, ChartError>>()?;
        Ok(Layout { separator, decimal, zero, has_heads, columns })
    }
}

/// The parts of a value: text, and places in braces.
fn parts(value: &str) -> Result<Vec<ValuePart>, ChartError> {
    let (mut parts, mut rest) = (Vec::new(), value);
    while let Some((text, after)) = rest.split_once('{') {
        let unknown = || ChartError::Place(value.to_owned());
        let (name, after) = after.split_once('}').ok_or_else(unknown)?;
        parts.push(ValuePart::Text(text.to_owned()));
        parts.push(ValuePart::Place(LayoutPlace::from_str(name).map_err(|_| unknown())?));
        rest = after;
    }
    parts.push(ValuePart::Text(rest.to_owned()));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_text_and_places() {
        let text = |of: &str| ValuePart::Text(of.to_owned());
        let place = ValuePart::Place(LayoutPlace::DateBr);
        assert_eq!(parts("a {date_br} b").unwrap(), [text("a "), place, text(" b")]);
        for wrong in ["{day}", "{date", "a {}"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }
}
