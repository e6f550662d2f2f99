//! History of what clients did and were answered, and its checker.
//!
//! A charge appends to two lists of its merchant: *charges* when its order is booked, and *sales*
//! when the acquirer captured it. Lists, statements, balances and single charges read them. The
//! [checker] decides whether one server without faults could have given all these answers: whether
//! each list is linearizable. It shares no code with the product.
//!
//! [recorder] makes histories, over HTTP. [edn] writes them for Elle. That the checker finds what
//! it looks for is shown in [lies] and [generated]; [second_judge] is a checker by others.

pub(crate) mod checker;
mod edn;
mod generated;
mod lies;
pub(crate) mod recorder;
pub(crate) mod second_judge;

use std::collections::{BTreeMap, BTreeSet};

/// What is appended: unique in its list.
pub(crate) type Element = u64;

/// Nanoseconds since the history began.
pub(crate) type Nanos = u64;

/// The completion of what never completed.
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// The client of the reads at the end of a run.
pub(crate) const THE_END: usize = usize::MAX;

/// What clients did to some lists, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) lists: Vec<List>,
    pub(crate) operations: Vec<Operation>,
}

/// A list that clients append to, and what is known of its elements besides.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) name: String,
    /// What each element adds to the sum of the list, where there is one: centavos.
    pub(crate) values: BTreeMap<Element, i64>,
    /// The names that answers gave each element; one, unless something is wrong.
    pub(crate) names: BTreeMap<Element, BTreeSet<String>>,
    /// The places in the journal that answers gave each element.
    pub(crate) sequences: BTreeMap<Element, BTreeSet<u64>>,
}

/// One request of a client, as far as it concerns one list.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: usize,
    /// Place in [`History::lists`].
    pub(crate) list: usize,
    /// Before its first byte was sent.
    pub(crate) invoked: Nanos,
    /// After its last byte was received; [`NEVER`] while nothing is known.
    pub(crate) completed: Nanos,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Append(Element, Outcome),
    Read(ReadResult),
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It happened.
    Acknowledged,
    /// It did not happen and never will.
    Refused,
    /// There was no answer, or one that says so.
    Unknown,
}

/// What a read said of a list. Places count from 0, the oldest element.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReadResult {
    /// Elements from a place on, and the length of the whole list.
    Page {
        first: u64,
        elements: Vec<Element>,
        length: u64,
    },
    Length(u64),
    /// The sum of the values of all elements.
    Sum(i64),
    /// Whether an element is in the list.
    Has(Element, bool),
    /// It was refused, or got no answer.
    Nothing,
}

impl History {
    /// Adds an empty list, and gives its place.
    pub(crate) fn add_list(&mut self, name: impl Into<String>) -> usize {
        self.lists.push(List { name: name.into(), ..List::default() });
        self.lists.len() - 1
    }

    /// The operations of a list.
    fn of_list(&self, list: usize) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(move |operation| operation.list == list)
    }
}
