//! Histories as Elle reads them: one map of EDN a line, in the format of its list-append checker.
//!
//! Each operation is two lines, `:invoke` and one of `:ok`, `:fail` (it did not happen) and `:info`
//! (nobody knows). A read of a page becomes a read of the whole list up to its length: Elle knows
//! nothing else, and places that the page does not show are filled in from other reads. Reads of
//! one element are left out. A list is named by its number, a process has one operation at a time,
//! and none after an `:info`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::checker::elements_by_place;
use super::{Element, History, NEVER, Nanos, Operation, Outcome, ReadResult, What};

/// Writes a history.
pub(super) fn written(history: &History) -> String {
    let mut text = String::new();
    for (number, list) in history.lists.iter().enumerate() {
        let _never_fails = writeln!(text, "; list {number}: {}", list.name);
    }
    for (index, line) in lines(history).into_iter().enumerate() {
        let Line { at, process, kind, value } = line;
        let time = if at == NEVER { String::new() } else { format!(", :time {at}") };
        let _never_fails =
            writeln!(text, "{{:index {index}, :type {kind}, :f :txn, :value {value}, :process {process}{time}}}");
    }
    text
}

struct Line {
    at: Nanos,
    process: usize,
    kind: &'static str,
    value: String,
}

fn lines(history: &History) -> Vec<Line> {
    let lists = 0..history.lists.len();
    let orders: Vec<_> = lists.map(|list| elements_by_place(&history.of_list(list).collect::<Vec<_>>())).collect();
    let mut operations: Vec<&Operation> = history.operations.iter().collect();
    operations.sort_by_key(|operation| operation.invoked);
    let (mut lines, mut free, mut last) = (Vec::new(), BTreeMap::new(), 0);
    for operation in operations {
        let list = operation.list;
        let Some((invoked, kind, completed)) = values(operation, &orders[list]) else { continue };
        // A process whose last operation had ended.
        let idle = free.iter().find(|(_, until)| **until < operation.invoked).map(|(process, _)| *process);
        let process = idle.unwrap_or_else(|| {
            last += 1;
            last - 1
        });
        free.insert(process, if kind == ":info" { NEVER } else { operation.completed });
        lines.push(Line { at: operation.invoked, process, kind: ":invoke", value: invoked });
        lines.push(Line { at: operation.completed, process, kind, value: completed });
    }
    lines.sort_by_key(|line| line.at);
    lines
}

/// The value of an invocation, the type of a completion, and its value; `None` for a read without a
/// list.
fn values(operation: &Operation, places: &BTreeMap<u64, Element>) -> Option<(String, &'static str, String)> {
    let list = operation.list;
    let read = format!("[[:r {list} nil]]");
    let read_of = |length: u64, element: &dyn Fn(u64) -> Element| {
        let elements: Vec<String> = (0..length).map(|place| element(place).to_string()).collect();
        Some((read.clone(), ":ok", format!("[[:r {list} [{}]]]", elements.join(" "))))
    };
    // What no read shows is 0, which nobody appended.
    let known = |place: u64| places.get(&place).copied().unwrap_or_default();
    match &operation.what {
        What::Append(element, outcome) => {
            let value = format!("[[:append {list} {element}]]");
            let kind = match outcome {
                Outcome::Acknowledged => ":ok",
                Outcome::Refused => ":fail",
                Outcome::Unknown => ":info",
            };
            Some((value.clone(), kind, value))
        }
        What::Read(ReadResult::Page { first, elements, length }) => read_of(*length, &|place| {
            let shown = place.checked_sub(*first).and_then(|place| elements.get(usize::try_from(place).ok()?));
            shown.copied().unwrap_or_else(|| known(place))
        }),
        What::Read(ReadResult::Length(length)) => read_of(*length, &known),
        What::Read(ReadResult::Nothing) => Some((read.clone(), ":fail", read.clone())),
        What::Read(ReadResult::Sum(_) | ReadResult::Has(..)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lies::history;
    use super::*;

    #[test]
    fn a_history_is_written_in_the_documented_form() {
        let mut expected_history = history(
            "1-4 append 7 ok; 2-3 read; 5- append 8 unknown; 6-7 append 9 refused; 8-9 page 8 from 1 of 2
             10-11 nothing; 12-13 has 7; 14-15 read 7 8; 14-16 length 1",
        );
        expected_history.lists[0].name = "charges of M".to_owned();
        let expected = "; list 0: charges of M
{:index 0, :type :invoke, :f :txn, :value [[:append 0 7]], :process 0, :time 1}
{:index 1, :type :invoke, :f :txn, :value [[:r 0 nil]], :process 1, :time 2}
{:index 2, :type :ok, :f :txn, :value [[:r 0 []]], :process 1, :time 3}
{:index 3, :type :ok, :f :txn, :value [[:append 0 7]], :process 0, :time 4}
{:index 4, :type :invoke, :f :txn, :value [[:append 0 8]], :process 0, :time 5}
{:index 5, :type :invoke, :f :txn, :value [[:append 0 9]], :process 1, :time 6}
{:index 6, :type :fail, :f :txn, :value [[:append 0 9]], :process 1, :time 7}
{:index 7, :type :invoke, :f :txn, :value [[:r 0 nil]], :process 1, :time 8}
{:index 8, :type :ok, :f :txn, :value [[:r 0 [7 8]]], :process 1, :time 9}
{:index 9, :type :invoke, :f :txn, :value [[:r 0 nil]], :process 1, :time 10}
{:index 10, :type :fail, :f :txn, :value [[:r 0 nil]], :process 1, :time 11}
{:index 11, :type :invoke, :f :txn, :value [[:r 0 nil]], :process 1, :time 14}
{:index 12, :type :invoke, :f :txn, :value [[:r 0 nil]], :process 2, :time 14}
{:index 13, :type :ok, :f :txn, :value [[:r 0 [7 8]]], :process 1, :time 15}
{:index 14, :type :ok, :f :txn, :value [[:r 0 [7]]], :process 2, :time 16}
{:index 15, :type :info, :f :txn, :value [[:append 0 8]], :process 0}
";
        assert_eq!(written(&expected_history), expected);
    }
}
