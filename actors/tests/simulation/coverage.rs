//! How often each interesting thing happened, so that a simulation that has gone blind is noticed.

use std::collections::BTreeMap;

/// What must happen somewhere in a whole run.
pub(crate) const EXPECTED: &[&str] = &[
    "answer left at once",
    "answer lost on its way",
    "answer waited for the gate",
    "block closed by its size",
    "block of one owner's several Records",
    "caller gave up",
    "card left unanswered",
    "charge cancelled",
    "charge refused by the acquirer",
    "clock of the journal went back",
    "command refused",
    "crash between the outputs of a landing",
    "crash with a block in flight that survived",
    "crash with a block in flight that was lost",
    "crash with nothing in flight",
    "deficit",
    "deficit recovered",
    "delivery to an actor that loads",
    "delivery refused by an actor that sleeps",
    "delivery to an actor that is awake",
    "delivery to an actor that is gone",
    "key answered by replay",
    "key taken",
    "key used again after its life",
    "matured in a read",
    "matured in the sweep",
    "matured before a decision",
    "money captured",
    "money paid by PIX",
    "no room at the door",
    "nothing to change",
    "opened behind a block in flight",
    "opened from a snapshot that is behind the journal",
    "opened from an older snapshot",
    "opened from nothing",
    "panic of an actor that has spoken half",
    "panic of an actor that opens",
    "panic of an actor with requests queued",
    "read by its writer right after the answer",
    "request waited for a sleeper to end",
    "snapshot behind Records in flight",
    "snapshot dropped",
    "snapshot lost in a crash",
    "snapshot that continues another",
    "snapshot that survived a crash",
    "time jumped 30 days",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    counts: BTreeMap<&'static str, u64>,
    pub(crate) steps: u64,
    pub(crate) records: u64,
}

impl Coverage {
    pub(crate) fn saw(&mut self, what: &'static str) {
        debug_assert!(EXPECTED.contains(&what), "{what} is not in the table");
        *self.counts.entry(what).or_default() += 1;
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        for (what, count) in &other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.steps += other.steps;
        self.records += other.records;
    }

    pub(crate) fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn missing(&self) -> Vec<&'static str> {
        EXPECTED.iter().copied().filter(|what| self.count(what) == 0).collect()
    }
}
