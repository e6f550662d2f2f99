//! Proof of the chain from a block to the head, as one page. It tells how far it has come while it
//! reads, as every slow page does, and claims nothing about blocks before its first one.

use std::sync::Arc;

use actors::cut::Position;
use actors::store::Sequence;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use maud::{Markup, html};

use crate::app::App;
use crate::chain_proof::ChainProof;
use crate::console::page::{Screen, Section, Visit};
use crate::console::records::record_link;
use crate::console::show;
use crate::console::words::{self, Word};
use crate::http::cut::requested_partition;
use crate::http::language::Language;
use crate::http::problem::Problem;
use crate::http::reply::{number, query};

/// Page that recomputes the hash chain from a block to the head.
pub async fn prove(State(app): State<Arc<App>>, visit: Visit, parts: Parts) -> Response {
    let made = screen(&app, &visit, &parts).await;
    visit.answer(made)
}

async fn screen(app: &App, visit: &Visit, parts: &Parts) -> Result<Screen, Problem> {
    visit.whole()?;
    let head = app.engine.published();
    let pairs = query(parts)?;
    let partition = requested_partition(&pairs)?;
    let from = Sequence(number(&pairs, "from", 1..=head.of(partition).0.max(1))?.unwrap_or(1));
    let proof = app.proofs.prove(&app.engine, Position { partition, sequence: from }).await?;
    let body = html! {
        section.card aria-label=(visit.say(words::PROOF)) { (outcome(visit.language, &proof)) }
        @if head.partitions() > 1 {
            p.actions {
                @for at in head.iter() {
                    a.button href={"/console/journal/prove?partition=" (at.partition.0)} {
                        (visit.say(words::PARTITION)) " " (at.partition.0)
                    }
                }
            }
        }
        p { a href="/console/journal" { "← " (visit.say(words::JOURNAL)) } }
    };
    Ok(Screen { section: Section::Journal, title: visit.say(words::PROOF).to_owned(), body })
}

/// What was proved: from which Record through which, and how many blocks that are.
fn outcome(language: Language, proof: &ChainProof) -> Markup {
    let say = |word: Word| word.text(language);
    html! {
        @if let Some(cause) = &proof.broken {
            p.warning role="alert" { strong { (say(words::CHAIN_BROKEN)) } " " span lang="en" { (cause) } }
        }
        @match &proof.stretch {
            None => @if proof.broken.is_none() { p.dim { (say(words::NOTHING)) } },
            Some((first, last)) => {
                @let end = last.next().0 - 1;
                @let link = |sequence| record_link(language, Position { partition: last.partition, sequence });
                @if proof.broken.is_none() {
                    p {
                        span.badge.good { (say(words::CHAIN_HOLDS)) }
                        " " (link(*first)) " – " (link(Sequence(end)))
                    }
                }
                @if first.0 > 1 { p.dim { (say(words::NOT_FROM_BEGIN)) } }
                (show::facts(vec![
                    (say(words::BLOCKS_PROVED), html! { (show::count(language, proof.blocks)) }),
                    (say(words::RECORDS_PROVED), html! { (show::count(language, end + 1 - first.0)) }),
                    (say(words::BLOCK_HASH), html! { code.hash { (format!("{:?}", last.hash())) } }),
                ]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use actors::records::LoadError;
    use actors::store::{Block, BlockHash, Partition};

    use super::*;
    use crate::chain_proof::proof_of;

    fn shown(blocks: Vec<Result<Block, LoadError>>, head: u64) -> String {
        let proof = proof_of(
            blocks.into_iter(),
            (Position { partition: Partition(0), sequence: Sequence::FIRST }, Sequence(head)),
            |_| true,
        );
        outcome(Language::English, &proof.expect("it goes on")).into_string()
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
