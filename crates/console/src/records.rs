//! Records on a page of the console: their facts in words, links to them, and their blocks.

use derived::records::LoadError;
use ledger::{Record, Timestamp};
use maud::{Markup, html};
use store::cut::{Cut, Position, positions};
use store::{Block, Sequence};
use wire::cut_text::record_name;

use crate::{Visit, show, words};
use ops::desk::Desk;
use web::{Language, Result};

/// Records of a block that are shown in words.
const RECORDS_OF_BLOCK_MAX: usize = 12;

/// The facts of a Record in words, each once.
pub(crate) fn facts_of(language: Language, record: &Record) -> String {
    let mut facts: Vec<&str> = Vec::new();
    for fact in record.events.iter().map(|event| words::fact(event).text(language)) {
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
    facts.join(", ")
}

/// A link to the page of a Record.
pub(crate) fn record_link(language: Language, at: Position) -> Markup {
    let name = record_name(at);
    html! { a href={"/console/records/" (name)} { (words::RECORD.text(language)) " " (name) } }
}

/// A cut: a link to its last Record, or how many Records count where there are several partitions.
pub(crate) fn cut_link(language: Language, cut: &Cut) -> Markup {
    match cut.iter().next() {
        Some(only) if cut.partitions() == 1 => record_link(language, only),
        _ => html! { span title=(cut) { (show::count(language, cut.records())) " " (words::RECORDS.text(language)) } },
    }
}

/// The Records of a block in words, the first ones, and the way to prove the chain from there.
pub(crate) fn block_records(desk: &Desk, visit: &Visit, block: &Block) -> Result<Markup> {
    let mut rows = Vec::new();
    for (at, bytes) in positions(block).take(RECORDS_OF_BLOCK_MAX) {
        let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence: at.sequence.0, error })?;
        let owner = show::owner_name(&desk.engine, visit.language, record.owner);
        rows.push((at, facts_of(visit.language, &record), owner));
    }
    Ok(html! {
        ol.timeline {
            @for (at, facts, owner) in &rows {
                li { (record_link(visit.language, *at)) " · " strong { (facts) } " · " bdi { (owner) } }
            }
        }
        @if block.records.len() > RECORDS_OF_BLOCK_MAX { p.dim { (visit.say(words::MORE_OF_BLOCK)) } }
    })
}

/// A block with its place in the chain, and what stands below it.
pub(crate) fn block_card(visit: &Visit, block: &Block, below: &Markup) -> Markup {
    let last = block.first.0 + block.records.len() as u64 - 1;
    let link =
        |sequence| record_link(visit.language, Position { partition: block.partition, sequence: Sequence(sequence) });
    let facts = show::facts(vec![
        (visit.say(words::BOOKED), show::moment(visit.language, Timestamp(block.booked_at_ms))),
        (
            visit.say(words::BLOCK_RECORDS),
            html! {
                (link(block.first.0))
                @if last > block.first.0 { " – " (link(last)) }
            },
        ),
        (visit.say(words::BLOCK_HASH), html! { code.hash { (format!("{:?}", block.hash())) } }),
        (visit.say(words::BLOCK_BEFORE), html! { code.hash { (format!("{:?}", block.previous)) } }),
    ]);
    let id = match block.partition.0 {
        0 => format!("block-{}", block.first.0),
        partition => format!("block-{partition}-{}", block.first.0),
    };
    let heading = format!("{} {}–{last}", visit.say(words::BLOCK_HEADING), block.first.0);
    html! { section.card aria-labelledby=(id) { h2 id=(id) { (heading) } (facts) (below) } }
}
