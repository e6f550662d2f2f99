//! Columns of a row, in their order, and the value of one cell. All formats that write rows have
//! the same columns.

use std::borrow::Cow;

use chrono::NaiveDate;
use ledger::source::Source;

use crate::labels::LABEL_COLUMNS;

/// Version of the columns, for readers of the files.
pub const SCHEMA: u32 = 4;

/// RowKind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A count or a place.
    Number,
    /// An amount of money.
    Amount,
    /// An id, a name, a word.
    Text,
    /// A day in America/Sao_Paulo.
    Day,
    /// An instant.
    Instant,
}

/// Name and kind of what each row has in one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowColumn {
    /// Its name.
    pub(super) name: &'static str,
    /// Its head in files for Brazilian spreadsheets.
    pub(super) head_ptbr: &'static str,
    pub(super) kind: RowKind,
    /// Whether every row has a value.
    pub(super) is_always_there: bool,
}

/// Value of one column in one row. Days and instants come with their text in the interface's form.
#[derive(Clone, Debug)]
pub(super) enum RowCell<'a> {
    /// No value.
    Empty,
    Number(u64),
    /// An amount in centavos.
    Amount(i64),
    Text(Cow<'a, str>),
    Day(NaiveDate, &'a str),
    /// Milliseconds since the Unix epoch.
    Instant(i64, &'a str),
}

/// How many columns there are.
pub(super) const WIDTH: usize = 20 + Source::OBJECTS.len() + LABEL_COLUMNS.len();

/// The columns of an export, of which the last ones are there for labels.
pub(super) fn columns(has_labels: bool) -> &'static [RowColumn] {
    if has_labels { &COLUMNS } else { &COLUMNS[..WIDTH - LABEL_COLUMNS.len()] }
}

/// All columns.
const COLUMNS: [RowColumn; WIDTH] = [
    column("sequence", "Sequência", RowKind::Number),
    column("booked_at", "Registrado em", RowKind::Instant),
    column("effective_at", "Efetivo em", RowKind::Instant),
    column("date", "Data", RowKind::Day),
    column("effective_date", "Data de competência", RowKind::Day),
    optional("late", "Em atraso", RowKind::Text),
    optional("due_date", "Vencimento", RowKind::Day),
    column("ledger", "Razão", RowKind::Text),
    column("entry", "Lançamento", RowKind::Number),
    column("line", "Linha", RowKind::Number),
    column("account", "Conta", RowKind::Text),
    column("debit", "Débito", RowKind::Amount),
    column("credit", "Crédito", RowKind::Amount),
    column("owner", "Titular", RowKind::Text),
    column("event", "Evento", RowKind::Text),
    optional("method", "Meio de pagamento", RowKind::Text),
    optional("brand", "Bandeira", RowKind::Text),
    optional("installments", "Parcelas", RowKind::Number),
    optional(Source::OBJECTS[0], "TXID", RowKind::Text),
    optional(Source::OBJECTS[1], "ID fim a fim", RowKind::Text),
    optional(Source::OBJECTS[2], "Reembolso", RowKind::Text),
    optional(Source::OBJECTS[3], "Saque", RowKind::Text),
    optional(Source::OBJECTS[4], "Transferência Pix", RowKind::Text),
    optional(Source::OBJECTS[5], "Contestação", RowKind::Text),
    optional(Source::OBJECTS[6], "Antecipação", RowKind::Text),
    optional(Source::OBJECTS[7], "Transferência", RowKind::Text),
    optional(Source::OBJECTS[8], "Lote", RowKind::Text),
    optional(Source::OBJECTS[9], "Devolução", RowKind::Text),
    optional(Source::OBJECTS[10], "Captura (NSU)", RowKind::Text),
    optional(Source::OBJECTS[11], "Lançamento da casa", RowKind::Text),
    optional(Source::OBJECTS[12], "Referência", RowKind::Text),
    optional(Source::OBJECTS[13], "Autorização", RowKind::Text),
    optional(Source::OBJECTS[14], "NSU", RowKind::Text),
    optional("operator", "Operador", RowKind::Text),
    column("partition", "Partição", RowKind::Number),
    label(0),
    label(1),
    label(2),
];

const fn label(place: usize) -> RowColumn {
    optional(LABEL_COLUMNS[place].0, LABEL_COLUMNS[place].1, RowKind::Text)
}

const fn column(name: &'static str, head_ptbr: &'static str, kind: RowKind) -> RowColumn {
    RowColumn { name, head_ptbr, kind, is_always_there: true }
}

const fn optional(name: &'static str, head_ptbr: &'static str, kind: RowKind) -> RowColumn {
    RowColumn { is_always_there: false, ..column(name, head_ptbr, kind) }
}

impl RowKind {
    /// Name of the type of the values, in a manifest.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Number | Self::Amount => "integer",
            Self::Text => "string",
            Self::Day => "date",
            Self::Instant => "timestamp",
        }
    }

    fn of_duckdb(self) -> &'static str {
        match self {
            Self::Number | Self::Amount => "BIGINT",
            Self::Text => "VARCHAR",
            Self::Day => "DATE",
            Self::Instant => "TIMESTAMPTZ",
        }
    }
}

/// The head of a column in Portuguese, by its name; the name itself where there is no such column.
pub(crate) fn head_ptbr(name: &'static str) -> &'static str {
    COLUMNS.iter().find(|column| column.name == name).map_or(name, |column| column.head_ptbr)
}

/// Query of DuckDB that reads a file of JSON lines with the type of each column.
pub fn read_by_duckdb(file: &str, has_labels: bool) -> String {
    let typed = |column: &RowColumn| format!("  \"{}\": '{}'", column.name, column.kind.of_duckdb());
    let columns = columns(has_labels).iter().map(typed).collect::<Vec<_>>().join(",\n");
    format!("SELECT * FROM read_json('{file}', format = 'newline_delimited', columns = {{\n{columns}\n}});\n")
}

impl<'a> RowCell<'a> {
    /// A text; no value where there is none.
    pub(super) fn text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.into()))
    }
}
