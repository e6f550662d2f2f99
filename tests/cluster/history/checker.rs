//! Checker of histories: is each list linearizable?
//!
//! Elements are unique and reads say places, so the reads of a list give one order, or contradict
//! each other. In this order, every operation has a range of *slots*: the append at place `p` has
//! the slot `2p + 1`, a read of the first `n` elements has `2n`, and a read that knows less has all
//! slots that agree with it. The list is linearizable exactly when no operation began after another
//! one had ended that must come later: for no two is `X.highest < Y.lowest` and `X.invoked >
//! Y.completed`. One pass over the sorted slots finds out.
//!
//! Why that is enough: give each operation the latest begin of itself and of all that must come
//! before it as its moment. The condition says that this moment is not after its end, and
//! operations whose slots exclude each other have moments in the order of their slots.
//!
//! So a history is judged in the time that sorting takes. The rules have names by which operations
//! contradict each other, and a failure gives both of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use super::{Element, History, List, NEVER, Nanos, Operation, Outcome, ReadResult, THE_END, What};

/// What a list must not show. A name says what was done to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    /// Two reads show different elements at one place.
    TwoOrders,
    /// An element is at two places.
    Twice,
    /// No read shows what is at a place, though some read knows of a longer list.
    Gap,
    /// An element that nobody appended.
    FromNowhere,
    /// An element whose append was refused.
    RefusedIsThere,
    /// A read, after an append was acknowledged, without its element; later reads have it.
    Stale,
    /// The same, and no read has it.
    Lost,
    /// A read shows less than a read that had ended before it began.
    WentBack,
    /// A read ended before an append began, and shows its element.
    FromTheFuture,
    /// An element stands before another one that was acknowledged before its own append began.
    AppendsReordered,
    /// A sum that the list had at no length.
    WrongSum,
    /// An element has two names or two places in the journal, or another one has its name.
    TwoAnswers,
    /// Places in the journal do not rise along the list.
    Sequence,
    /// The outcome of an append is still unknown.
    Unsettled,
}

/// A rule that a list breaks, and by what.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) rule: Rule,
    list: String,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}: {}: {}", self.rule, self.list, self.text)
    }
}

/// All faults of a history: empty if each list is linearizable and each element has one name.
pub(crate) fn faults(history: &History) -> Vec<Fault> {
    let lists = history.lists.iter().enumerate();
    lists.flat_map(|(place, list)| ListCheck::of(list, history.of_list(place).collect()).faults).collect()
}

/// The appends whose outcome is still unknown: at the end of a run there must be none.
pub(crate) fn unsettled(history: &History) -> Vec<Fault> {
    let unknown =
        history.operations.iter().filter(|operation| matches!(operation.what, What::Append(_, Outcome::Unknown)));
    let fault = |operation: &Operation| Fault {
        rule: Rule::Unsettled,
        list: history.lists[operation.list].name.clone(),
        text: operation.to_string(),
    };
    unknown.map(fault).collect()
}

/// The elements of a list by place, as the first read of each place shows them.
pub(super) fn elements_by_place(operations: &[&Operation]) -> BTreeMap<u64, Element> {
    let mut found: BTreeMap<u64, Element> = BTreeMap::new();
    for operation in operations {
        if let What::Read(ReadResult::Page { first, elements, .. }) = &operation.what {
            for (place, element) in (*first..).zip(elements) {
                found.entry(place).or_insert(*element);
            }
        }
    }
    found
}

struct ListCheck<'a> {
    list: &'a List,
    operations: Vec<&'a Operation>,
    /// The elements from the first place up to a gap.
    elements: Vec<Element>,
    places: HashMap<Element, u64>,
    /// The sum of the first elements, by their number; empty where values are not known.
    sums: Vec<i64>,
    faults: Vec<Fault>,
}

/// Operation with the range of slots that it may take in the list.
struct OperationSlots<'a> {
    operation: &'a Operation,
    lowest: u64,
    highest: u64,
}

impl<'a> ListCheck<'a> {
    fn of(list: &'a List, operations: Vec<&'a Operation>) -> Self {
        let mut check = Self {
            list,
            operations,
            elements: Vec::new(),
            places: HashMap::new(),
            sums: Vec::new(),
            faults: Vec::new(),
        };
        check.find_order();
        check.find_elements_that_must_not_be();
        check.sum();
        check.compare_answers();
        // Without one order there are no slots.
        if check.faults.is_empty() {
            check.compare_times();
        }
        check
    }

    fn fault(&mut self, rule: Rule, text: impl fmt::Display) {
        self.faults.push(Fault { rule, list: self.list.name.clone(), text: text.to_string() });
    }

    /// Every place has one element, every element one place, and none is left out.
    fn find_order(&mut self) {
        let order = elements_by_place(&self.operations);
        let elements: HashSet<Element> = order.values().copied().collect();
        let mut longest = 0;
        for operation in self.operations.clone() {
            match &operation.what {
                What::Read(ReadResult::Page { first, elements, length }) => {
                    longest = longest.max(*length).max(first + elements.len() as u64);
                    let other = (*first..).zip(elements).find(|(place, element)| order[place] != **element);
                    if let Some((place, element)) = other {
                        let known = order[&place];
                        self.fault(Rule::TwoOrders, format!("{operation} has {element} at {place}, not {known}"));
                    }
                    if first + elements.len() as u64 > *length {
                        self.fault(Rule::Gap, format!("{operation} shows more than it counts"));
                    }
                }
                What::Read(ReadResult::Length(length)) => longest = longest.max(*length),
                What::Read(ReadResult::Has(element, true)) if !elements.contains(element) => {
                    self.fault(Rule::Gap, format!("no read shows the place of what is there: {operation}"));
                }
                _ => {}
            }
        }
        for (place, element) in &order {
            if let Some(first) = self.places.insert(*element, *place) {
                self.fault(Rule::Twice, format!("{element} is at {first} and at {place}"));
            }
        }
        self.elements = (0..).map_while(|place| order.get(&place).copied()).collect();
        if (self.elements.len() as u64) < longest {
            self.fault(Rule::Gap, format!("nothing is known of place {} of {longest}", self.elements.len()));
        }
    }

    fn find_elements_that_must_not_be(&mut self) {
        let appends = self.operations.iter().filter_map(|operation| match operation.what {
            What::Append(element, outcome) => Some((element, (*operation, outcome))),
            What::Read(_) => None,
        });
        let appends: HashMap<Element, (&Operation, Outcome)> = appends.collect();
        for (place, element) in self.elements.clone().into_iter().enumerate() {
            match appends.get(&element) {
                None => self.fault(Rule::FromNowhere, format!("{element} is at {place}")),
                Some((append, Outcome::Refused)) => {
                    self.fault(Rule::RefusedIsThere, format!("at {place}: {append}"));
                }
                Some(_) => {}
            }
        }
    }

    fn sum(&mut self) {
        let mut sum = 0;
        self.sums.push(sum);
        for element in &self.elements {
            let Some(value) = self.list.values.get(element) else { break };
            sum += value;
            self.sums.push(sum);
        }
    }

    /// Every element has one name of its own and one place in the journal, and these rise.
    fn compare_answers(&mut self) {
        let mut by_name: HashMap<&str, Element> = HashMap::new();
        for (element, names) in &self.list.names {
            let other = names.iter().find_map(|name| by_name.insert(name, *element));
            if names.len() != 1 || other.is_some() {
                let text = format!("{element} has the names {names:?}; another one of this name: {other:?}");
                self.fault(Rule::TwoAnswers, text);
            }
        }
        for (element, sequences) in &self.list.sequences {
            if sequences.len() != 1 {
                self.fault(Rule::TwoAnswers, format!("{element} has the places {sequences:?} in the journal"));
            }
        }
        let known = |element: &Element| Some((*element, *self.list.sequences.get(element)?.first()?));
        let sequences: Vec<(Element, u64)> = self.elements.iter().filter_map(known).collect();
        for pair in sequences.windows(2).filter(|pair| pair[0].1 >= pair[1].1) {
            let [(before, first), (after, second)] = [pair[0], pair[1]];
            let text = format!("{before} stands before {after}, and in the journal they have {first} and {second}");
            self.fault(Rule::Sequence, text);
        }
    }

    /// No operation began after another one had ended that must come later.
    fn compare_times(&mut self) {
        let mut by_highest: Vec<OperationSlots<'a>> = Vec::new();
        for operation in self.operations.clone() {
            match self.slots(operation) {
                Ok(Some((lowest, highest))) => by_highest.push(OperationSlots { operation, lowest, highest }),
                Ok(None) => {}
                Err(sum) => self.fault(Rule::WrongSum, format!("{operation} says {sum}")),
            }
        }
        by_highest.sort_by_key(|slotted| slotted.highest);
        let mut by_lowest: Vec<&OperationSlots<'a>> = by_highest.iter().collect();
        by_lowest.sort_by_key(|slotted| slotted.lowest);
        let (mut earlier, mut latest): (_, Option<&OperationSlots<'a>>) = (by_highest.iter().peekable(), None);
        let mut found = Vec::new();
        for later in by_lowest {
            while let Some(next) = earlier.next_if(|earlier| earlier.highest < later.lowest) {
                if latest.is_none_or(|latest| latest.operation.invoked < next.operation.invoked) {
                    latest = Some(next);
                }
            }
            if let Some(latest) = latest.filter(|latest| latest.operation.invoked > later.operation.completed) {
                found.push((self.rule_between(latest.operation, later.operation), latest.operation, later.operation));
            }
        }
        for (rule, began, ended) in found {
            self.fault(rule, format!("after {ended} there was {began}"));
        }
    }

    /// The lowest and the highest slot of an operation; `None` if it says nothing of the list, the
    /// sum where no length has it.
    fn slots(&self, operation: &Operation) -> Result<Option<(u64, u64)>, i64> {
        let length = self.elements.len() as u64;
        let exactly = |slot: u64| Ok(Some((slot, slot)));
        match &operation.what {
            What::Append(element, outcome) => match (self.places.get(element), outcome) {
                (Some(place), _) => exactly(2 * place + 1),
                // No read has it: it comes after all that reads have.
                (None, Outcome::Acknowledged) => Ok(Some((2 * length + 1, u64::MAX))),
                (None, Outcome::Refused | Outcome::Unknown) => Ok(None),
            },
            What::Read(ReadResult::Page { length, .. } | ReadResult::Length(length)) => exactly(2 * length),
            What::Read(ReadResult::Sum(sum)) => {
                let length = self.sums.binary_search(sum).map_err(|_| *sum)?;
                exactly(2 * length as u64)
            }
            What::Read(ReadResult::Has(element, is_there)) => match (self.places.get(element), is_there) {
                (Some(place), true) => Ok(Some((2 * place + 2, u64::MAX))),
                (Some(place), false) => Ok(Some((0, 2 * place))),
                // What has no place is found as a gap, or is in the list at no time.
                (None, _) => Ok(None),
            },
            What::Read(ReadResult::Nothing) => Ok(None),
        }
    }

    /// The rule that is broken when one operation began after another one had ended that must come
    /// later.
    fn rule_between(&self, began: &Operation, ended: &Operation) -> Rule {
        match (&began.what, &ended.what) {
            (What::Append(..), What::Append(..)) => Rule::AppendsReordered,
            (What::Append(..), What::Read(_)) => Rule::FromTheFuture,
            (What::Read(_), What::Append(element, _)) if !self.places.contains_key(element) => Rule::Lost,
            (What::Read(_), What::Append(..)) => Rule::Stale,
            (What::Read(_), What::Read(_)) => Rule::WentBack,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |at: Nanos| at as f64 / 1e9;
        match self.client {
            THE_END => formatter.write_str("[at the end, ")?,
            client => write!(formatter, "[client {client}, ")?,
        }
        write!(formatter, "{:.6} to ", seconds(self.invoked))?;
        match self.completed {
            NEVER => formatter.write_str("never: ")?,
            completed => write!(formatter, "{:.6}: ", seconds(completed))?,
        }
        match &self.what {
            What::Append(element, outcome) => write!(formatter, "append {element} {outcome:?}]"),
            What::Read(ReadResult::Page { first, elements, length }) => {
                let shown = elements.iter().rev().take(3).rev().collect::<Vec<_>>();
                write!(formatter, "page of {length} from {first}, which ends with {shown:?}]")
            }
            What::Read(result) => write!(formatter, "read {result:?}]"),
        }
    }
}
