//! Coverage of a simulation: counts of each situation, so that a simulation that has gone blind is
//! noticed.

use std::collections::BTreeMap;

/// What must happen somewhere in a whole run.
pub(crate) const EXPECTED: &[&str] = &[
    "anchor made anew",
    "anchor synced beside the writer",
    "answer left at once",
    "answer that came after the charge had ended",
    "answer lost on its way",
    "answer waited for the gate",
    "authorized, and captured by an order of its own",
    "append failed and left its block",
    "append failed and left nothing",
    "block closed by its size",
    "block of one owner's several Records",
    "caller gave up",
    "card authorized",
    "card left unanswered",
    "charge cancelled",
    "charge closed at the acquirer",
    "charge refused by the acquirer",
    "clock of the journal went back",
    "closing line made anew",
    "command refused",
    "command refused while the disk was full",
    "crash between an order and its answer",
    "crash between the outputs of a landing",
    "crash on a full disk",
    "crash when the closing line was written",
    "crash when the next segment was made",
    "crash while the anchor was written",
    "crash with a block in flight that survived",
    "crash with a block in flight that was lost",
    "crash with nothing in flight",
    "crash with the anchor one block behind",
    "crash with the anchor some blocks behind",
    "crash with the anchor up to date",
    "deficit",
    "deficit recovered",
    "delivery refused by an actor that sleeps",
    "delivery to an actor that is awake",
    "delivery to an actor that is gone",
    "delivery to an actor that loads",
    "disk full",
    "disk full with commands under way",
    "folder of the journal closed",
    "inside sender waited for room",
    "inside sender waited for space",
    "inside sender went on",
    "key answered by replay",
    "key taken",
    "key used again after its life",
    "loss of a segment noticed",
    "loss of blocks of a journal without any",
    "loss of the empty next segment",
    "loss of the last blocks noticed",
    "loss of the last segment noticed",
    "loss of blocks that were not anchored",
    "matured before a decision",
    "matured in a read",
    "matured in the sweep",
    "money captured",
    "money paid by PIX",
    "next segment made ahead of time",
    "no room at the door",
    "nothing to change",
    "opened behind a block in flight",
    "opened from a snapshot that is behind the journal",
    "opened from an older snapshot",
    "opened from nothing",
    "order sent again after its Record",
    "order that came after the close",
    "panic of an actor that has spoken half",
    "panic of an actor that opens",
    "panic of an actor with requests queued",
    "read by its writer right after the answer",
    "read on a full disk that left what was due",
    "read while the disk was full",
    "readers opened after a crash",
    "readers opened with a part of what was being stored",
    "readers opened with an index that was behind",
    "readers got a block between their pages",
    "readers' pages stored",
    "request waited for a sleeper to end",
    "slot of the anchor lost",
    "snapshot behind Records in flight",
    "snapshot dropped",
    "snapshot lost in a crash",
    "snapshot that continues another",
    "snapshot that survived a crash",
    "space again",
    "time jumped 30 days",
    "what was under way came to rest on a full disk",
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
