//! Proof of the chain: blocks are read from the journal, their hashes are computed again, and each
//! must name the hash of the block before it. A page proves a stretch, says which, and leads on to
//! the next. It claims nothing about blocks that other pages read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::records::LoadError;
use actors::store::{Block, Sequence};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use maud::{Markup, html};

use crate::app::App;
use crate::console::page::{Screen, Section, Visit};
use crate::console::records::record_link;
use crate::console::show;
use crate::console::words::{self, Word};
use crate::http::language::Language;
use crate::http::problem::Problem;
use crate::http::reply::{number, query};

/// How long one page reads.
const READS_FOR: Duration = Duration::from_secs(1);

/// What one page has proved.
struct Proved {
    blocks: u64,
    /// The first Record that was read, and the last block; none when none was read.
    stretch: Option<(Sequence, Block)>,
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
    let head = app.engine.published();
    let from = Sequence(number(&query(parts)?, "from", 1..=head.0.max(1))?.unwrap_or(1));
    let proved = stretch(app.engine.blocks(from), || app.engine.published());
    let body = html! {
        section.card aria-label=(visit.say(words::PROOF)) { (outcome(visit.language, &proved, head)) }
        p { a href="/console/journal" { "← " (visit.say(words::JOURNAL)) } }
    };
    Ok(Screen { section: Section::Journal, title: visit.say(words::PROOF).to_owned(), body })
}

/// What was proved: from which Record through which, and how many blocks that are.
fn outcome(language: Language, proved: &Proved, head: Sequence) -> Markup {
    let say = |word: Word| word.text(language);
    let link = |sequence| record_link(language, sequence);
    html! {
        @if let Some(cause) = &proved.broken {
            p.warning role="alert" { strong { (say(words::CHAIN_BROKEN)) } " " span lang="en" { (cause) } }
        }
        @match &proved.stretch {
            None => @if proved.broken.is_none() { p.dim { (say(words::NOTHING)) } },
            Some((first, last)) => {
                @let end = last.next().0 - 1;
                @if proved.broken.is_none() {
                    p {
                        span.badge.good { (say(if proved.is_at_head { words::CHAIN_HOLDS } else { words::CHAIN_SO_FAR })) }
                        " " (link(*first)) " – " (link(Sequence(end)))
                    }
                }
                @if first.0 > 1 { p.dim { (say(words::NOT_FROM_BEGIN)) } }
                @if proved.broken.is_none() && !proved.is_at_head {
                    progress max=(head.0) value=(end.min(head.0)) aria-label=(say(words::PROOF)) {}
                    p.actions { a.button href={"/console/journal/prove?from=" (end + 1)} { (say(words::GO_ON)) } }
                }
                (show::facts(vec![
                    (say(words::BLOCKS_PROVED), html! { (show::count(language, proved.blocks)) }),
                    (say(words::RECORDS_PROVED), html! { (show::count(language, end + 1 - first.0)) }),
                    (say(words::HEAD), link(head)),
                    (say(words::BLOCK_HASH), html! { code.hash { (format!("{:?}", last.hash())) } }),
                ]))
            }
        }
    }
}

/// Proves blocks until the time is up, the journal ends, or one of them is broken.
fn stretch(blocks: impl Iterator<Item = Result<Block, LoadError>>, published: impl Fn() -> Sequence) -> Proved {
    let begun = Instant::now();
    let mut proved = Proved { blocks: 0, stretch: None, broken: None, is_at_head: true };
    for block in blocks {
        match block {
            Ok(block) => {
                proved.blocks += 1;
                let first = proved.stretch.map_or(block.first, |(first, _)| first);
                proved.stretch = Some((first, block));
            }
            Err(error) => {
                proved.broken = Some(error.to_string());
                break;
            }
        }
        if begun.elapsed() > READS_FOR {
            proved.is_at_head = proved.stretch.as_ref().is_some_and(|(_, last)| last.next() > published());
            break;
        }
    }
    proved
}

#[cfg(test)]
mod tests {
    use actors::store::{BlockHash, Partition};

    use super::*;

    fn shown(blocks: Vec<Result<Block, LoadError>>, head: u64) -> String {
        let proved = stretch(blocks.into_iter(), || Sequence(head));
        outcome(Language::English, &proved, Sequence(head)).into_string()
    }

    fn block(first: u64) -> Block {
        let records = vec![b"one".to_vec(), b"two".to_vec()];
        Block {
            partition: Partition(0),
            first: Sequence(first),
            booked_at_ms: 1,
            previous: BlockHash([7; 32]),
            records,
        }
    }

    #[test]
    fn a_chain_holds_where_it_was_read_whole_and_is_broken_where_a_block_is() {
        let holds = "The chain holds through its end";
        let whole = shown(vec![Ok(block(1)), Ok(block(3))], 4);
        assert!(whole.contains(holds) && whole.contains("/console/records/4"), "{whole}");
        assert!(!whole.contains("read no earlier block"));
        let part = shown(vec![Ok(block(3))], 4);
        assert!(part.contains(holds) && part.contains("read no earlier block"), "{part}");
        for blocks in [vec![Err(LoadError::Missing(1))], vec![Ok(block(1)), Err(LoadError::Missing(3))]] {
            let broken = shown(blocks, 4);
            assert!(broken.contains("The chain is broken.") && broken.contains("is missing"), "{broken}");
            assert!(!broken.contains("The chain holds"), "{broken}");
        }
        let nothing = shown(Vec::new(), 0);
        assert!(!nothing.contains("The chain") && nothing.contains("Nothing here."), "{nothing}");
    }
}
