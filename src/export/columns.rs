//! Columns of a row, in their order, and the value of one cell. All formats that write rows have
//! the same columns.

use std::borrow::Cow;

use chrono::NaiveDate;
use ledger::source::Source;

/// Version of the columns, for readers of the files.
pub const SCHEMA: u32 = 2;

/// Kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
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

/// One column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
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
pub(super) enum Cell<'a> {
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
pub(super) const WIDTH: usize = 19 + Source::OBJECTS.len();

/// All columns.
pub(super) const COLUMNS: [Column; WIDTH] = [
    column("sequence", "Sequência", Kind::Number),
    column("booked_at", "Registrado em", Kind::Instant),
    column("effective_at", "Efetivo em", Kind::Instant),
    column("date", "Data", Kind::Day),
    column("effective_date", "Data efetiva", Kind::Day),
    optional("late", "Em atraso", Kind::Text),
    optional("due_date", "Vencimento", Kind::Day),
    column("ledger", "Razão", Kind::Text),
    column("entry", "Lançamento", Kind::Number),
    column("line", "Linha", Kind::Number),
    column("account", "Conta", Kind::Text),
    column("debit", "Débito", Kind::Amount),
    column("credit", "Crédito", Kind::Amount),
    column("owner", "Titular", Kind::Text),
    column("event", "Evento", Kind::Text),
    optional("method", "Meio de pagamento", Kind::Text),
    optional("brand", "Bandeira", Kind::Text),
    optional("installments", "Parcelas", Kind::Number),
    optional(Source::OBJECTS[0], "TXID", Kind::Text),
    optional(Source::OBJECTS[1], "ID fim a fim", Kind::Text),
    optional(Source::OBJECTS[2], "Reembolso", Kind::Text),
    optional(Source::OBJECTS[3], "Saque", Kind::Text),
    optional(Source::OBJECTS[4], "Transferência Pix", Kind::Text),
    optional(Source::OBJECTS[5], "Disputa", Kind::Text),
    optional(Source::OBJECTS[6], "Antecipação", Kind::Text),
    optional(Source::OBJECTS[7], "Transferência", Kind::Text),
    optional(Source::OBJECTS[8], "Lote", Kind::Text),
    optional(Source::OBJECTS[9], "Devolução", Kind::Text),
    optional(Source::OBJECTS[10], "Captura (NSU)", Kind::Text),
    optional(Source::OBJECTS[11], "Lançamento da casa", Kind::Text),
    optional(Source::OBJECTS[12], "Referência", Kind::Text),
    optional("operator", "Operador", Kind::Text),
];

const fn column(name: &'static str, head_ptbr: &'static str, kind: Kind) -> Column {
    Column { name, head_ptbr, kind, is_always_there: true }
}

const fn optional(name: &'static str, head_ptbr: &'static str, kind: Kind) -> Column {
    Column { is_always_there: false, ..column(name, head_ptbr, kind) }
}

impl<'a> Cell<'a> {
    /// A text; no value where there is none.
    pub(super) fn text(text: Option<impl Into<Cow<'a, str>>>) -> Self {
        text.map_or(Self::Empty, |text| Self::Text(text.into()))
    }
}
