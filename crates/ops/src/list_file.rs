//! Answer to a list as a file: all rows of a filter, as CSV or as a workbook.

use std::io::{self, BufWriter, Seek, Write};

use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use books::cells::Cell;
use books::table_file::{ListFile, TableColumn, TableFormat};
use futures_util::future::{self, BoxFuture, FutureExt};

use crate::desk::Desk;
use web::streamed_body::{ReadPace, streamed, turn};
use web::{Code, Problem, Result, failed, refused, single};

/// Rows of a file at most; a filter with more is 400 `too_many_items`.
const ROWS_MAX: usize = 100_000;
/// Things that are read at once for a file.
pub const READ_AT_ONCE: usize = 500;

/// The format that a query asks for; `None` for JSON.
pub fn requested_format(pairs: &[(String, String)]) -> Result<Option<TableFormat>> {
    let Some(name) = single(pairs, "format")?.filter(|name| *name != "json") else { return Ok(None) };
    let names = || TableFormat::ALL.map(TableFormat::name).join(", ");
    let found = TableFormat::ALL.into_iter().find(|format| format.name() == name).map(Some);
    found.ok_or_else(|| refused("format", "unknown", format!("format deve ser um destes: json, {}", names())))
}

/// The next rows of a file, some of them; none at its end.
pub type NextRows<'a> = BoxFuture<'a, Result<Vec<Vec<Cell>>>>;

/// Gives rows some at a time.
pub fn in_parts<'a>(mut rows: impl Iterator<Item = Result<Vec<Cell>>>) -> impl FnMut() -> NextRows<'a> {
    move || future::ready(rows.by_ref().take(READ_AT_ONCE).collect()).boxed()
}

/// A file with these rows. It is made whole before the answer begins, so that rows that cannot be
/// read are a problem, and no broken file. One at a time, exports and reports counted.
pub async fn list_file<'a>(
    desk: &std::sync::Arc<Desk>,
    (format, name, title): (TableFormat, &str, (&'static str, String)),
    columns: &[TableColumn],
    mut next_rows: impl FnMut() -> NextRows<'a>,
) -> Result<Response> {
    let _one_at_a_time = turn(&desk.exporting, "Another export or report is under way.").await?;
    let mut file = tempfile::tempfile().map_err(failed)?;
    let mut out = BufWriter::new(&mut file);
    let mut list = ListFile::new(format, title, columns, &mut out).map_err(failed)?;
    let mut pace = ReadPace::new(&desk.engine);
    let mut count = 0;
    loop {
        let rows = next_rows().await?;
        if rows.is_empty() {
            break;
        }
        count += rows.len();
        if count > ROWS_MAX {
            return Err(too_many("format", format!("um arquivo tem até {ROWS_MAX} linhas: escolha um filtro menor")));
        }
        for row in &rows {
            list.row(row).map_err(failed)?;
            pace.step();
        }
    }
    list.finish(desk.engine.now().0).map_err(failed)?;
    out.flush().map_err(failed)?;
    drop(out);
    file.rewind().map_err(failed)?;
    let body = streamed("a list", move |out| Ok(io::copy(&mut io::BufReader::new(file), out).map(drop)?));
    let disposition = format!("attachment; filename=\"{name}.{}\"", format.ending());
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(format.media_type())),
        (CONTENT_DISPOSITION, HeaderValue::from_str(&disposition).map_err(failed)?),
    ];
    Ok((headers, body).into_response())
}

/// 400: what a parameter asks for is more than is looked through at once.
pub(crate) fn too_many(name: &'static str, message: String) -> Problem {
    let problem = Problem::new(Code::ValidationFailed).message(message.clone());
    problem.detail(format!("Too many items: {name}.")).field(name, "too_many_items", message)
}
