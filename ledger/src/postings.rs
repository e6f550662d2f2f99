//! Postings: turns events into balanced entries, in the columns of the accounting manual: the
//! merchant's ledger, each recipient's, the platform's shard. The amounts of an event are in the
//! file of its noun in `facts/`.

use crate::facts::{self, Books, Facets};
use crate::{Entry, Event, LedgerId};

/// The entries of a Record's events, in order. `owner` decided them; every entry stays in its
/// group, and those of the house in its ledger.
pub fn entries(owner: LedgerId, events: &[Event]) -> Vec<Entry> {
    // The facts of the house post to no group.
    let group = owner.group().unwrap_or_default();
    let mut posted = EntryCollector(Books { owner, group, entries: Vec::new() });
    events.iter().for_each(|event| facts::say(event, &mut posted));
    posted.0.entries
}

/// Takes the entries of facts.
struct EntryCollector(Books);

impl Facets for EntryCollector {
    fn entries(&mut self, post: impl FnOnce(&mut Books)) {
        post(&mut self.0);
    }
}
