//! Source of an entry, for exports and reports: the name of its fact, and the outside ids of the
//! objects that it is about. No decision depends on it.

use crate::event::Event;
use crate::facts::{self, Facets};
use crate::postings;
use crate::record::Record;

/// Source of an entry. Ids, and the
/// reference that an operator gave: no name, no document, no personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The fact's name, in snake case. It never changes once it was given.
    pub event: &'static str,
    /// Objects of the fact by their outside names: `txid`, `end_to_end_id`, …, each with its id.
    pub objects: Vec<(&'static str, String)>,
    /// Place of the fact in its Record, from 0; 0 where it is not known.
    pub place: usize,
}

impl Source {
    /// The name of a fact that posts no entries; a test asks for the name of every one that does.
    pub const UNNAMED: &'static str = "other";

    /// Names of all objects, in the order of the columns of an export.
    pub const OBJECTS: [&'static str; 13] = [
        "txid",
        "end_to_end_id",
        "refund",
        "withdrawal",
        "cashout",
        "dispute",
        "anticipation",
        "transfer",
        "batch",
        "return",
        "capture",
        "house_entry",
        "reference",
    ];

    /// The source that an event gives to its entries; its place is 0.
    pub fn of(event: &Event) -> Self {
        let mut source = Self { event: Self::UNNAMED, objects: Vec::new(), place: 0 };
        facts::say(event, &mut source);
        source
    }
}

impl Facets for Source {
    fn source(&mut self, name: &'static str, objects: impl FnOnce() -> Vec<(&'static str, String)>) {
        *self = Self { event: name, objects: objects(), place: self.place };
    }
}

/// Name of the institution's own id of the act behind an event. None where the event has the id: a
/// payment, a cashout, a withdrawal.
fn name_of_act(event: &Event) -> Option<&'static str> {
    match event {
        Event::CardCaptured { .. } => Some("capture"),
        Event::PayerRepaid { .. } | Event::WithdrawalReturned { .. } => Some("return"),
        _ => None,
    }
}

/// The source of each entry of a Record, in the order of its entries.
pub fn of_entries(record: &Record) -> Vec<Source> {
    let mut sources = Vec::with_capacity(record.entries.len());
    for (place, event) in record.events.iter().enumerate() {
        let made = match record.events.len() {
            1 => record.entries.len(),
            _ => postings::entries(record.owner, std::slice::from_ref(event)).len(),
        };
        let mut source = Source { place, ..Source::of(event) };
        let by_rail = record.rail.as_ref().zip(name_of_act(event)).map(|(rail, name)| (name, rail.id.clone()));
        source.objects.extend(by_rail);
        sources.extend(std::iter::repeat_n(source, made));
    }
    sources.resize(record.entries.len(), Source { event: Source::UNNAMED, objects: Vec::new(), place: 0 });
    sources
}
