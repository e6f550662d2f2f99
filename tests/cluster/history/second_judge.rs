//! An independent checker of linearizability, which tries all orders: `todc-utils`, after Wing,
//! Gong and Lowe. It judges small histories, and samples of large ones.

use std::collections::HashMap;

use todc_utils::linearizability::WGLChecker;
use todc_utils::linearizability::history::Action;
use todc_utils::specifications::Specification;

use super::checker::elements_by_place;
use super::{Element, History, NEVER, Nanos, Operation, Outcome, ReadResult, What};

/// Operations of a sample.
const SAMPLE: usize = 400;

/// The list as the other checker knows it.
struct Appends;

#[derive(Clone, Debug)]
enum Deed {
    /// With the place that it must take, where that is known.
    Append(Element, Option<usize>),
    Read(ReadResult),
}

impl Specification for Appends {
    type State = Vec<Element>;
    type Operation = Deed;

    fn init() -> Vec<Element> {
        Vec::new()
    }

    fn apply(deed: &Deed, list: &Vec<Element>) -> (bool, Vec<Element>) {
        let length = list.len() as u64;
        let is_true = match deed {
            Deed::Append(element, place) => {
                let longer = list.iter().copied().chain([*element]).collect();
                return (place.is_none_or(|place| place == list.len()), longer);
            }
            Deed::Read(ReadResult::Page { first, elements, length: total }) => {
                let shown = list.iter().skip(*first as usize).take(elements.len());
                *total == length && shown.eq(elements)
            }
            Deed::Read(ReadResult::Length(total)) => *total == length,
            Deed::Read(ReadResult::Sum(total)) => *total == list.iter().copied().map(value).sum::<i64>(),
            Deed::Read(ReadResult::Has(element, is_there)) => list.contains(element) == *is_there,
            Deed::Read(ReadResult::Nothing) => true,
        };
        (is_true, list.clone())
    }
}

/// What an element adds to the sum, in generated histories.
pub(super) fn value(element: Element) -> i64 {
    100 + element as i64
}

/// A read of a whole list.
pub(super) fn read_of_all(at: Nanos, list: &[Element]) -> Operation {
    let result = ReadResult::Page { first: 0, elements: list.to_vec(), length: list.len() as u64 };
    Operation { client: 0, list: 0, invoked: at, completed: at + 5, what: What::Read(result) }
}

/// What the last operation read.
pub(super) fn last_read(history: &History) -> Vec<Element> {
    match history.operations.last().map(|operation| &operation.what) {
        Some(What::Read(ReadResult::Page { elements, .. })) => elements.clone(),
        other => panic!("{other:?} is no read"),
    }
}

/// The verdict on a history of one list, at the end of which the whole list was read.
pub(super) fn wing_gong_accepts(history: &History) -> bool {
    accepts(&history.operations, &last_read(history), |_| None)
}

/// The verdict on the first operations of each list. Appends are tried only at the places at which
/// the reads show them, without which there would be too many orders.
pub(crate) fn samples_are_accepted(history: &History) -> bool {
    (0..history.lists.len()).all(|list| {
        let (operations, elements) = sample(history.of_list(list).cloned().collect());
        let places: HashMap<Element, usize> =
            elements.iter().enumerate().map(|(place, element)| (*element, place)).collect();
        accepts(&operations, &elements, |element| places.get(&element).copied())
    })
}

/// The operations of a list that began up to some time, at which the whole list is read, and the
/// elements of that read.
fn sample(mut operations: Vec<Operation>) -> (Vec<Operation>, Vec<Element>) {
    let all: Vec<Element> = elements_by_place(&operations.iter().collect::<Vec<_>>()).into_values().collect();
    operations.sort_by_key(|operation| operation.invoked);
    operations.truncate(SAMPLE);
    let end = operations.last().map_or(0, |last| last.invoked + 1);
    let begun: HashMap<Element, bool> = operations
        .iter()
        .filter_map(|operation| match operation.what {
            What::Append(element, _) => Some((element, true)),
            What::Read(_) => None,
        })
        .collect();
    let elements: Vec<Element> = all.into_iter().take_while(|element| begun.contains_key(element)).collect();
    operations.retain_mut(|operation| {
        let is_done = operation.completed < end;
        match &mut operation.what {
            What::Append(_, outcome) if !is_done && *outcome == Outcome::Acknowledged => {
                (*outcome, operation.completed) = (Outcome::Unknown, NEVER);
                true
            }
            What::Append(..) => true,
            // The sums of real charges are another judge's.
            What::Read(result) => is_done && !matches!(result, ReadResult::Sum(_)),
        }
    });
    operations.push(read_of_all(end, &elements));
    (operations, elements)
}

/// The other checker knows no appends of unknown outcome: those that are not there are left out,
/// the others end at the end.
fn accepts(operations: &[Operation], there: &[Element], place: impl Fn(Element) -> Option<usize>) -> bool {
    let mut moments = Vec::new();
    for (process, operation) in operations.iter().enumerate() {
        let deed = match &operation.what {
            What::Append(element, Outcome::Acknowledged) => Deed::Append(*element, place(*element)),
            What::Append(element, Outcome::Unknown) if there.contains(element) => {
                Deed::Append(*element, place(*element))
            }
            What::Append(..) => continue,
            What::Read(result) => Deed::Read(result.clone()),
        };
        moments.push((operation.invoked, process, Action::Call(deed.clone())));
        moments.push((operation.completed, process, Action::Response(deed)));
    }
    moments.sort_by_key(|(at, ..)| *at);
    let actions = moments.into_iter().map(|(_, process, action)| (process, action)).collect();
    WGLChecker::<Appends>::is_linearizable(todc_utils::linearizability::history::History::from_actions(actions))
}

#[cfg(test)]
mod tests {
    use super::super::lies::history;
    use super::*;

    #[test]
    fn a_lie_is_found_in_a_sample() {
        let accepted = |text: &str| samples_are_accepted(&history(text));
        assert!(accepted(
            "1-2 append 1 ok; 3-9 append 2 ok; 3-5 read 1; 6-7 read 1 2; 10- append 3 unknown; 12-13 read 1 2 3"
        ));
        assert!(!accepted("1-2 append 1 ok; 3-9 append 2 ok; 3-5 read 1 2; 6-7 read 1; 12-13 read 1 2"));
        assert!(!accepted("1-2 append 1 ok; 3-4 append 2 ok; 6-7 read 2; 12-13 length 1"));
        assert!(!accepted("1-2 append 1 ok; 3-4 append 2 refused; 6-7 read 1 2"));
    }
}
