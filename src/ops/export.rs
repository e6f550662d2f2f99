//! Export of the books while the server runs.

use std::sync::Arc;

use actors::backup::Frame;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;

use crate::app::App;
use crate::export::{Exporter, Stream};
use crate::http::problem::Problem;
use crate::http::reply::{number, only, query, single};
use crate::http::streamed::{ReadPace, streamed, turn};
use crate::ops::books::find;
use crate::ops::operator::Operator;
use crate::views::export_file::{file, request};
use crate::views::ledger::ledger_name;

/// A ledger, or the rows of all, from one day to another, both included, through the Record `at`.
/// Days are days in America/Sao_Paulo. One at a time; it reads the journal from its beginning.
#[utoipa::path(get, path = "/ops/export",
    params(("ledger" = Option<String>, Query, pattern = "^(all|[MRP]-[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12})$", description = "`M-…`, `R-…` or `P-…`; `all` when absent."),
        ("format" = Option<String>, Query, pattern = "^(jsonl|csv|beancount|hledger|ledger)$", description = "`jsonl` when absent; `csv`; of one ledger the text of `beancount`, `hledger` or `ledger`."),
        ("from" = Option<String>, Query, format = Date, example = "2026-01-01", description = "The first day; the first of the books when absent."),
        ("to" = Option<String>, Query, format = Date, example = "2099-12-31", description = "The last day; the last of the books when absent."),
        ("at" = Option<u64>, Query, minimum = 1, description = "The last Record that counts; the last of all when absent.")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"))), (status = 404)))]
pub async fn export(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let pairs = query(&parts)?;
    only(&pairs, &["ledger", "format", "from", "to", "at"])?;
    let ledger = single(&pairs, "ledger")?.filter(|ledger| *ledger != "all");
    let ledger = ledger.map(|name| find(&app, name).map(|ledger| ledger_name(&app.engine, ledger))).transpose()?;
    let request = request(&pairs, ledger)?;
    let last = app.engine.published().0;
    let cut = Sequence(number(&pairs, "at", 1..=last)?.unwrap_or(last));
    let one_at_a_time = turn(&app.exporting, "Another export is under way.").await?;
    let asked = request.clone();
    let body = streamed("an export", move |out| {
        let _until_it_ends = one_at_a_time;
        let (mut out, mut exporter) = (Stream(out), Exporter::new(asked));
        let mut pace = ReadPace::new(&app.engine);
        for frame in app.engine.backup(Sequence::FIRST)? {
            let Frame::Block(block) = frame? else { continue };
            if !exporter.post_block(&block, cut, &mut out)? {
                break;
            }
            pace.step();
        }
        exporter.finish(&mut out)?;
        Ok(())
    });
    Ok(file(&request, body))
}
