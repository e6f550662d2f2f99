//! Rows as Parquet: typed columns, compressed with zstd, in row groups of a fixed number of rows.
//! One row group is in memory at a time.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use chrono::NaiveDate;
use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::columns::{RowCell, RowColumn, SCHEMA, columns};
use super::destination::{Out, Part};
use super::ledger_books::{LedgerBooks, LedgerMovement};
use super::rows::ExportedRow;
use super::writer::{Ledgers, Writer};
use crate::cells::Kind;
use crate::error::BooksError;

/// So many rows are in memory at once, and written together.
const GROUP_ROWS: usize = 32_768;
/// Level of the compression: a fixed one, so that the bytes are the same.
const ZSTD_LEVEL: i32 = 3;

/// A file that is being written.
pub(super) struct ParquetRows {
    writer: SerializedFileWriter<Vec<u8>>,
    of_rows: &'static [RowColumn],
    columns: Vec<Values>,
    /// Rows of the current group.
    rows: usize,
}

/// Values of one column in the current group.
struct Values {
    numbers: Vec<i64>,
    texts: Vec<u8>,
    /// Where each text ends.
    ends: Vec<u32>,
    /// 1 where there is a value, 0 where there is none.
    levels: Vec<i16>,
}

impl ParquetRows {
    pub(super) fn new(has_labels: bool) -> io::Result<Self> {
        let of_rows = columns(has_labels);
        let schema = parse_message_type(&schema(of_rows)).map_err(failed)?;
        let level = ZstdLevel::try_new(ZSTD_LEVEL).map_err(failed)?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by("centavo".to_owned())
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_key_value_metadata(Some(vec![KeyValue::new("schema".to_owned(), SCHEMA.to_string())]))
            .build();
        let writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties)).map_err(failed)?;
        Ok(Self { writer, of_rows, columns: of_rows.iter().map(|_| Values::new()).collect(), rows: 0 })
    }

    fn end_group(&mut self, out: &mut dyn Out) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for (column, values) in self.of_rows.iter().zip(&mut self.columns) {
            write_column(&mut group, column, values).map_err(failed)?;
        }
        group.close().map_err(failed)?;
        self.writer.flush()?;
        out.write(Part::Rows, self.writer.inner())?;
        self.writer.inner_mut().clear();
        self.rows = 0;
        Ok(())
    }
}

impl Writer for ParquetRows {
    fn post(&mut self, books: &mut LedgerBooks, movement: &LedgerMovement<'_>, out: &mut dyn Out) -> io::Result<()> {
        for row in ExportedRow::all(books, movement) {
            let cells = row.cells();
            self.columns.iter_mut().zip(&cells).for_each(|(values, cell)| values.push(cell));
            self.rows += 1;
            if self.rows == GROUP_ROWS {
                self.end_group(out)?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, _: &mut Ledgers, _: (NaiveDate, i64), out: &mut dyn Out) -> Result<(), BooksError> {
        if self.rows > 0 {
            self.end_group(out)?;
        }
        Ok(out.write(Part::Rows, &self.writer.into_inner().map_err(failed)?)?)
    }
}

impl Values {
    fn new() -> Self {
        Self { numbers: Vec::new(), texts: Vec::new(), ends: Vec::new(), levels: Vec::new() }
    }

    fn push(&mut self, cell: &RowCell<'_>) {
        self.levels.push(i16::from(!matches!(cell, RowCell::Empty)));
        match cell {
            RowCell::Empty => {}
            RowCell::Number(number) => self.numbers.push(i64::try_from(*number).unwrap_or(i64::MAX)),
            RowCell::Amount(centavos) => self.numbers.push(*centavos),
            RowCell::Instant(at, _) => self.numbers.push(*at),
            RowCell::Day(day, _) => self.numbers.push(day.to_epoch_days().into()),
            RowCell::Text(text) => {
                self.texts.extend_from_slice(text.as_bytes());
                self.ends.push(self.texts.len() as u32);
            }
        }
    }
}

/// The columns that a column of a row has in the file: an amount has two, in centavos and in reais.
fn fields(column: &RowColumn) -> Vec<String> {
    let RowColumn { name, .. } = column;
    let need = if column.is_always_there { "required" } else { "optional" };
    match column.kind {
        Kind::Count => vec![format!("{need} int64 {name}")],
        Kind::Amount => vec![format!("{need} int64 {name}"), format!("{need} int64 {name}_brl (DECIMAL(18,2))")],
        Kind::Day => vec![format!("{need} int32 {name} (DATE)")],
        Kind::Instant => vec![format!("{need} int64 {name} (TIMESTAMP(MILLIS,true))")],
        _ => vec![format!("{need} binary {name} (STRING)")],
    }
}

/// The schema of the file.
fn schema(columns: &[RowColumn]) -> String {
    let fields: Vec<_> = columns.iter().flat_map(fields).map(|field| format!("  {field};\n")).collect();
    format!("message row {{\n{}}}", fields.concat())
}

/// Writes the values of a column, and empties them.
fn write_column(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &RowColumn,
    values: &mut Values,
) -> Result<(), ParquetError> {
    let all = Bytes::from(std::mem::take(&mut values.texts));
    let mut begin = 0;
    let ends = values.ends.drain(..).map(|end| end as usize);
    let texts: Vec<_> = ends.map(|end| all.slice(std::mem::replace(&mut begin, end)..end).into()).collect();
    let levels = (!column.is_always_there).then_some(values.levels.as_slice());
    for _ in fields(column) {
        let Some(mut writer) = group.next_column()? else {
            return Err(ParquetError::General("the file has fewer columns than a row".to_owned()));
        };
        match writer.untyped() {
            ColumnWriter::Int64ColumnWriter(typed) => drop(typed.write_batch(&values.numbers, levels, None)?),
            ColumnWriter::Int32ColumnWriter(typed) => {
                let days: Vec<_> = values.numbers.iter().map(|day| i32::try_from(*day).unwrap_or(i32::MAX)).collect();
                typed.write_batch(&days, levels, None)?;
            }
            ColumnWriter::ByteArrayColumnWriter(typed) => drop(typed.write_batch(&texts, levels, None)?),
            _ => return Err(ParquetError::General("the file has a column of another type".to_owned())),
        }
        writer.close()?;
    }
    values.numbers.clear();
    values.levels.clear();
    drop::<Vec<ByteArray>>(texts);
    // The next group is about as large: nothing is freed and allocated anew.
    values.texts = all.into();
    values.texts.clear();
    Ok(())
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}
