//! An export of the books while the server runs.

use std::sync::Arc;

use actors::backup::Frame;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;

use super::books::{find, ledger_name};
use crate::export::{Exporter, Stream};
use crate::http::app::{App, Operator};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{number, query, single};
use crate::http::reports::{file, request};
use crate::http::streamed::streamed;

/// A ledger, or the rows of all, from one day to another, both included, through the Record `at`. Days are days in
/// America/Sao_Paulo. One at a time; it reads the journal from its beginning.
#[utoipa::path(get, path = "/ops/export",
    params(("ledger" = Option<String>, Query, description = "`M-…`, `R-…` or `P-…`; `all` when absent"),
        ("format" = Option<String>, Query, description = "`jsonl` when absent; `csv`; of one ledger `beancount`, `hledger`, `ledger`"),
        ("from" = Option<String>, Query, description = "The first day"), ("to" = Option<String>, Query, description = "The last day"),
        ("at" = Option<u64>, Query, description = "The last Record that counts")),
    responses((status = 200, content((String = "application/jsonl"), (String = "text/csv"), (String = "text/plain"))), (status = 400), (status = 404), (status = 503)))]
pub async fn export(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let pairs = query(&parts)?;
    let ledger = single(&pairs, "ledger")?.filter(|ledger| *ledger != "all");
    let ledger = ledger.map(|name| find(&app, name).map(|ledger| ledger_name(&app, ledger))).transpose()?;
    let request = request(&pairs, ledger)?;
    let last = app.engine.projector().published().0;
    let cut = Sequence(number(&pairs, "at", last, last)?);
    let one_at_a_time = Arc::clone(&app.exporting).try_acquire_owned();
    let under_way = |_| Problem::new(Code::Overloaded).retry_after(5).detail("Another export is under way.");
    let one_at_a_time = one_at_a_time.map_err(under_way)?;
    let asked = request.clone();
    let body = streamed("an export", move |out| {
        let _until_it_ends = one_at_a_time;
        let (mut out, mut exporter) = (Stream(out), Exporter::new(asked));
        for frame in app.engine.backup(Sequence::FIRST)? {
            let Frame::Block(block) = frame? else { continue };
            if !exporter.post_block(&block, cut, &mut out)? {
                break;
            }
        }
        exporter.finish(&mut out)?;
        Ok(())
    });
    Ok(file(&request, body))
}
