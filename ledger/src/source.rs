//! Source of an entry, for exports and reports: the name of its fact, and the outside ids of the
//! objects that it is about. No decision depends on it.

use crate::facts::{self, Facets};
use crate::postings;
use crate::{Event, RailStamp, Record};

/// Source of an entry. It has ids, and the reference that an operator gave: no name of a person, no
/// tax id, no personal data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The fact's name: [`Event::name`].
    pub event: &'static str,
    /// The fact in words, in Portuguese.
    pub event_ptbr: &'static str,
    /// Objects of the fact by their outside names: `txid`, `end_to_end_id`, …, each with its id.
    pub objects: Vec<(&'static str, String)>,
    /// Place of the fact in its Record, from 0; 0 where it is not known.
    pub place: usize,
}

impl Source {
    /// The name of an entry whose fact is not known.
    pub const UNNAMED: &'static str = "other";

    /// Names of all objects, in the order of the columns of an export.
    pub const OBJECTS: [&'static str; 15] = [
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
        "authorization",
        "nsu",
    ];

    fn of(event: &Event, place: usize, rail: Option<&RailStamp>) -> Self {
        let mut named = NameCollector::default();
        facts::say(event, &mut named);
        let mut objects = named.objects;
        if let Some((rail, name)) = rail.zip(named.act) {
            objects.push((name, rail.id.clone()));
            let more = [("authorization", &rail.authorization), ("nsu", &rail.nsu)];
            objects.extend(more.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        }
        Self { event: event.name(), event_ptbr: event.in_words()[0], objects, place }
    }
}

/// Takes the outside names of a fact.
#[derive(Default)]
struct NameCollector {
    objects: Vec<(&'static str, String)>,
    act: Option<&'static str>,
}

impl Facets for NameCollector {
    fn objects(&mut self, ids: impl FnOnce() -> Vec<(&'static str, String)>) {
        self.objects = ids();
    }

    fn act(&mut self, name: &'static str) {
        self.act = Some(name);
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
        sources.extend(std::iter::repeat_n(Source::of(event, place, record.rail.as_ref()), made));
    }
    let unnamed = Source { event: Source::UNNAMED, event_ptbr: "Outro", objects: Vec::new(), place: 0 };
    sources.resize(record.entries.len(), unnamed);
    sources
}
