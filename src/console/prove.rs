//! Proof of the chain: blocks are read from the journal, their hashes are computed again, and each
//! must name the hash of the block before it. A page proves a stretch and leads on to the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::store::{Block, Sequence};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use maud::html;

use crate::app::App;
use crate::console::page::{Screen, Section, Visit};
use crate::console::records::record_link;
use crate::console::show;
use crate::console::words;
use crate::http::problem::Problem;
use crate::http::reply::{number, query};

/// How long one page reads.
const READS_FOR: Duration = Duration::from_secs(1);

/// What one page has proved.
struct Proved {
    blocks: u64,
    records: u64,
    last: Option<Block>,
    /// Why a block is not what it was.
    broken: Option<String>,
    is_at_head: bool,
}

/// Page that recomputes the hash chain from a block on.
pub async fn prove(State(app): State<Arc<App>>, visit: Visit, parts: Parts) -> Response {
    visit.answer(screen(&app, &visit, &parts))
}

fn screen(app: &App, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    visit.whole()?;
    let pairs = query(parts)?;
    let from = Sequence(number(&pairs, "from", 1..=u64::MAX)?.unwrap_or(1));
    let blocks_before = number(&pairs, "blocks", 0..=u64::MAX)?.unwrap_or_default();
    let proved = stretch(app, from);
    let head = app.engine.published();
    let next = proved.last.as_ref().map_or(from, Block::next);
    let body = html! {
        section.card aria-label=(visit.say(words::PROOF)) {
            @if let Some(cause) = &proved.broken {
                p.warning role="alert" { strong { (visit.say(words::CHAIN_BROKEN)) } " " span lang="en" { (cause) } }
            } @else if proved.is_at_head {
                p { span.badge.good { (visit.say(words::CHAIN_HOLDS)) } }
            } @else {
                p { (visit.say(words::CHAIN_SO_FAR)) }
                progress max=(head.0) value=(next.0.min(head.0)) aria-label=(visit.say(words::PROOF)) {}
                p.actions {
                    a.button href={"/console/journal/prove?from=" (next.0) "&blocks=" (blocks_before.saturating_add(proved.blocks))} { (visit.say(words::GO_ON)) }
                }
            }
            (show::facts(vec![
                (visit.say(words::BLOCKS_PROVED), html! { (show::count(visit.language, blocks_before.saturating_add(proved.blocks))) }),
                (visit.say(words::RECORDS_PROVED), html! { (show::count(visit.language, proved.records)) }),
                (visit.say(words::HEAD), html! { @if head.0 > 0 { (record_link(visit.language, head)) } @else { "0" } }),
            ]))
            @if let Some(last) = &proved.last {
                p { (visit.say(words::BLOCK_HASH)) ": " code.hash { (format!("{:?}", last.hash())) } }
            }
        }
        p { a href="/console/journal" { "← " (visit.say(words::JOURNAL)) } }
    };
    Ok(Screen { section: Section::Journal, title: visit.say(words::PROOF).to_owned(), body })
}

/// Proves blocks until the time is up, the journal ends, or one of them is broken.
fn stretch(app: &App, from: Sequence) -> Proved {
    let begun = Instant::now();
    let mut proved = Proved { blocks: 0, records: 0, last: None, broken: None, is_at_head: true };
    for block in app.engine.blocks(from) {
        match block {
            Ok(block) => {
                proved.blocks += 1;
                proved.records += block.records.len() as u64;
                proved.last = Some(block);
            }
            Err(error) => {
                proved.broken = Some(error.to_string());
                break;
            }
        }
        if begun.elapsed() > READS_FOR {
            proved.is_at_head = proved.last.as_ref().is_some_and(|last| last.next() > app.engine.published());
            break;
        }
    }
    proved
}
