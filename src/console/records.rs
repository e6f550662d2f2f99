//! Records on a page of the console: their facts in words, links to them, and their blocks.

use actors::records::LoadError;
use actors::store::{Block, Sequence};
use ledger::record::Record;
use ledger::time::Timestamp;
use maud::{Markup, html};

use crate::app::App;
use crate::console::page::Visit;
use crate::console::show;
use crate::console::words;
use crate::http::language::Language;
use crate::http::problem::Problem;

/// Records of a block that are shown in words.
const RECORDS_OF_BLOCK_MAX: usize = 12;

/// The facts of a Record in words, each once.
pub fn facts_of(language: Language, record: &Record) -> String {
    let mut facts: Vec<&str> = Vec::new();
    for fact in record.events.iter().map(|event| words::fact(event).text(language)) {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts.join(", ")
}

/// A link to the page of a Record.
pub fn record_link(language: Language, sequence: Sequence) -> Markup {
    html! { a href={"/console/records/" (sequence.0)} { (words::RECORD.text(language)) " " (sequence.0) } }
}

/// The Records of a block in words, the first ones, and the way to prove the chain from there.
pub fn block_records(app: &App, visit: &Visit, block: &Block) -> Result<Markup, Problem> {
    let mut rows = Vec::new();
    for (sequence, bytes) in (block.first.0..).zip(&block.records).take(RECORDS_OF_BLOCK_MAX) {
        let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
        let owner = show::owner_name(&app.engine, visit.language, record.owner);
        rows.push((sequence, facts_of(visit.language, &record), owner));
    }
    Ok(html! {
        ol.timeline {
            @for (sequence, facts, owner) in &rows {
                li { (record_link(visit.language, Sequence(*sequence))) " · " strong { (facts) } " · " bdi { (owner) } }
            }
        }
        @if block.records.len() > RECORDS_OF_BLOCK_MAX { p.dim { (visit.say(words::MORE_OF_BLOCK)) } }
        p.actions {
            a.button href={"/console/journal/prove?from=" (block.first.0)} {
                (visit.say(words::PROVE_FROM)) " " span.dim { "(" (block.first.0) ")" }
            }
        }
    })
}

/// A block with its place in the chain, and what stands below it.
pub fn block_card(visit: &Visit, block: &Block, below: &Markup) -> Markup {
    let last = block.first.0 + block.records.len() as u64 - 1;
    let facts = show::facts(vec![
        (visit.say(words::BOOKED), show::moment(visit.language, Timestamp(block.booked_at_ms))),
        (
            visit.say(words::BLOCK_RECORDS),
            html! {
                (record_link(visit.language, block.first))
                @if last > block.first.0 { " – " (record_link(visit.language, Sequence(last))) }
            },
        ),
        (visit.say(words::BLOCK_HASH), html! { code.hash { (format!("{:?}", block.hash())) } }),
        (visit.say(words::BLOCK_BEFORE), html! { code.hash { (format!("{:?}", block.previous)) } }),
    ]);
    let id = format!("block-{}", block.first.0);
    let heading = format!("{} {}–{last}", visit.say(words::BLOCK_HEADING), block.first.0);
    html! { section.card aria-labelledby=(id) { h2 id=(id) { (heading) } (facts) (below) } }
}
