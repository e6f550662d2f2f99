//! Columns of a row, in their order, and the value of one cell. All formats that write rows have
//! the same columns.

use std::borrow::Cow;

use chrono::NaiveDate;
use ledger::source::Source;

use crate::cells::Kind;
use crate::labels::LABEL_COLUMNS;

/// Version of the columns, for readers of the files.
pub const SCHEMA: u32 = 4;

/// Name and kind of what each row has in one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowColumn {
    /// Its name.
    pub(super) name: &'static str,
    /// Its head in files for Brazilian spreadsheets.
    pub(super) head_ptbr: &'static str,
    pub(super) kind: Kind,
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
    column("sequence", "Sequência", Kind::Count),
    column("booked_at", "Registrado em", Kind::Instant),
    column("effective_at", "Efetivo em", Kind::Instant),
    column("date", "Data", Kind::Day),
    column("effective_date", "Data de competência", Kind::Day),
    optional("late", "Em atraso", Kind::Word),
    optional("due_date", "Vencimento", Kind::Day),
    column("ledger", "Razão", Kind::Text),
    column("entry", "Lançamento", Kind::Count),
    column("line", "Linha", Kind::Count),
    column("account", "Conta", Kind::Text),
    column("debit", "Débito", Kind::Amount),
    column("credit", "Crédito", Kind::Amount),
    column("owner", "Titular", Kind::Text),
    column("event", "Evento", Kind::Text),
    optional("method", "Meio de pagamento", Kind::Word),
    optional("brand", "Bandeira", Kind::Word),
    optional("installments", "Parcelas", Kind::Count),
    optional(Source::OBJECTS[0], "TXID", Kind::Text),
    optional(Source::OBJECTS[1], "ID fim a fim", Kind::Text),
    optional(Source::OBJECTS[2], "Reembolso", Kind::Text),
    optional(Source::OBJECTS[3], "Saque", Kind::Text),
    optional(Source::OBJECTS[4], "Transferência Pix", Kind::Text),
    optional(Source::OBJECTS[5], "Contestação", Kind::Text),
    optional(Source::OBJECTS[6], "Antecipação", Kind::Text),
    optional(Source::OBJECTS[7], "Transferência", Kind::Text),
    optional(Source::OBJECTS[8], "Lote", Kind::Text),
    optional(Source::OBJECTS[9], "Devolução", Kind::Text),
    optional(Source::OBJECTS[10], "Captura (NSU)", Kind::Text),
    optional(Source::OBJECTS[11], "Lançamento da casa", Kind::Text),
    optional(Source::OBJECTS[12], "Referência", Kind::Text),
    optional(Source::OBJECTS[13], "Autorização", Kind::Text),
    optional(Source::OBJECTS[14], "NSU", Kind::Text),
    optional("operator", "Operador", Kind::Text),
    column("partition", "Partição", Kind::Count),
    label(0),
    label(1),
    label(2),
];

const fn label(place: usize) -> RowColumn {
    optional(LABEL_COLUMNS[place].0, LABEL_COLUMNS[place].1, Kind::Text)
}

const fn column(name: &'static str, head_ptbr: &'static str, kind: Kind) -> RowColumn {
    RowColumn { name, head_ptbr, kind, is_always_there: true }
}

const fn optional(name: &'static str, head_ptbr: &'static str, kind: Kind) -> RowColumn {
    RowColumn { is_always_there: false, ..column(name, head_ptbr, kind) }
}

impl RowColumn {
    /// Name of the type of the values, in a manifest.
    pub(super) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Count | Kind::Amount => "integer",
            Kind::Day => "date",
            Kind::Instant => "timestamp",
            _ => "string",
        }
    }

    fn of_duckdb(&self) -> &'static str {
        match self.kind {
            Kind::Count | Kind::Amount => "BIGINT",
            Kind::Day => "DATE",
            Kind::Instant => "TIMESTAMPTZ",
            _ => "VARCHAR",
        }
    }
}

/// The head of a column in Portuguese, by its name; the name itself where there is no such column.
pub(crate) fn head_ptbr(name: &'static str) -> &'static str {
    COLUMNS.iter().find(|column| column.name == name).map_or(name, |column| column.head_ptbr)
}

/// Query of DuckDB that reads a file of JSON lines with the type of each column.
pub fn read_by_duckdb(file: &str, has_labels: bool) -> String {
    let typed = |column: &RowColumn| format!("  \"{}\": '{}'", column.name, column.of_duckdb());
    let columns = columns(has_labels).iter().map(typed).collect::<Vec<_>>().join(",\n");
    format!("SELECT * FROM read_json('{file}', format = 'newline_delimited', columns = {{\n{columns}\n}});\n")
}

impl<'a> RowCell<'a> {
    /// A text; no value where there is none.
    pub(super) fn text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.into()))
    }
}
