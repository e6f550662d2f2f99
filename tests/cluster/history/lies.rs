//! Seeded lies: for each rule of the checker a history that breaks it, and one that only looks so.

use std::collections::BTreeMap;

use super::checker::{Rule, faults, unsettled};
use super::{History, NEVER, Operation, Outcome, ReadResult, What};

/// A history of one list as text: an operation a line, `begin-end append 1 ok`,
/// `begin-end read 1 2`, `page 2 from 1 of 2`, `length 2`, `sum 30`, `has 1`, `lacks 1`,
/// `nothing`. Without an end it never completed.
pub(super) fn history(text: &str) -> History {
    let mut history = History::default();
    history.add_list("list");
    let lines = text.split([';', '\n']).map(str::trim).filter(|line| !line.is_empty());
    history.operations = lines.enumerate().map(|(client, line)| operation(client, line)).collect();
    history
}

fn operation(client: usize, line: &str) -> Operation {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or_else(|_| panic!("{word} in {line}"));
    let (invoked, completed) = words[0].split_once('-').unwrap();
    let rest = || words[2..].iter().map(|word| number(word)).collect::<Vec<_>>();
    let what = match words[1] {
        "append" => {
            let outcomes =
                [("ok", Outcome::Acknowledged), ("refused", Outcome::Refused), ("unknown", Outcome::Unknown)];
            What::Append(number(words[2]), BTreeMap::from(outcomes)[words[3]])
        }
        "read" => What::Read(ReadResult::Page { first: 0, length: rest().len() as u64, elements: rest() }),
        "page" => {
            let from = words.iter().position(|word| *word == "from").unwrap();
            let elements = words[2..from].iter().map(|word| number(word)).collect();
            let (first, length) = (number(words[from + 1]), number(words[from + 3]));
            What::Read(ReadResult::Page { first, elements, length })
        }
        "length" => What::Read(ReadResult::Length(number(words[2]))),
        "sum" => What::Read(ReadResult::Sum(words[2].parse().unwrap())),
        "has" => What::Read(ReadResult::Has(number(words[2]), true)),
        "lacks" => What::Read(ReadResult::Has(number(words[2]), false)),
        "nothing" => What::Read(ReadResult::Nothing),
        other => panic!("{other}"),
    };
    let completed = if completed.is_empty() { NEVER } else { number(completed) };
    Operation { client, list: 0, invoked: number(invoked), completed, what }
}

fn rules(history: &History) -> Vec<Rule> {
    let mut rules: Vec<Rule> = faults(history).iter().map(|fault| fault.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn each_lie_is_found_by_its_rule() {
    use Rule::*;
    let lies = [
        (Lost, "1-2 append 1 ok; 3-4 append 2 ok; 5-6 read 1"),
        (Lost, "1-2 append 1 ok; 3-4 read"),
        (Stale, "1-2 append 1 ok; 3-4 read; 5-6 read 1"),
        (Stale, "1-2 append 1 ok; 3-4 length 0; 5-6 read 1"),
        (Stale, "1-2 append 1 ok; 3-4 lacks 1; 5-6 read 1"),
        (WentBack, "1-20 append 1 ok; 2-3 read 1; 4-5 read; 21-22 read 1"),
        (WentBack, "1- append 1 unknown; 2-3 has 1; 4-5 length 0; 21-22 read 1"),
        (WentBack, "1- append 1 unknown; 2-3 length 1; 4-5 lacks 1; 21-22 read 1"),
        (Twice, "1-2 append 1 ok; 3-4 read 1 1"),
        (Twice, "1-2 append 1 ok; 3-4 append 2 ok; 5-6 page 1 from 0 of 3; 7-8 page 2 1 from 1 of 3"),
        (RefusedIsThere, "1-2 append 1 refused; 3-4 read 1"),
        (FromNowhere, "3-4 read 1"),
        (FromTheFuture, "1-2 read 1; 3-4 append 1 ok"),
        (FromTheFuture, "1-2 has 1; 3-4 append 1 ok; 5-6 read 1"),
        (TwoOrders, "1-9 append 1 ok; 1-9 append 2 ok; 3-4 read 1 2; 5-6 read 2 1"),
        (TwoOrders, "1-9 append 1 ok; 1-9 append 2 ok; 3-4 read 1; 5-6 read 2"),
        (TwoOrders, "1-9 append 1 ok; 1-9 append 2 ok; 3-4 read 1 2; 5-6 page 1 from 1 of 2"),
        (AppendsReordered, "1-2 append 1 ok; 3-4 append 2 ok; 5-6 read 2 1"),
        (Gap, "1-2 append 1 ok; 1-2 append 2 ok; 3-4 page 2 from 1 of 2"),
        (Gap, "1-2 append 1 ok; 3-4 read 1; 5-6 length 2"),
        (Gap, "1-2 append 1 ok; 3-4 page 1 from 0 of 0"),
        (Gap, "1-2 append 1 ok; 3-4 has 1"),
    ];
    for (rule, text) in lies {
        assert_eq!(rules(&history(text)), [rule], "{text}");
    }
}

#[test]
fn what_only_looks_like_a_lie_is_none() {
    let truths = [
        "",
        "1-2 append 1 ok; 3-4 append 2 ok; 5-6 read 1 2",
        // Appends at the same time stand in any order, and are seen before their answers.
        "1-9 append 1 ok; 1-9 append 2 ok; 3-4 read 2; 5-6 read 2 1",
        // Reads at the same time may differ.
        "1-9 append 1 ok; 2-5 read 1; 3-6 read; 10-11 read 1",
        // An unknown one may come late, or never.
        "1- append 1 unknown; 3-4 read; 5-6 read 1",
        "1- append 1 unknown; 3-4 read; 5-6 read; 5-6 lacks 1",
        "1-9 append 1 ok; 2-3 nothing; 4-5 lacks 1; 6-7 has 1; 10-11 read 1",
        "1-2 append 1 refused; 3-4 read; 5-6 lacks 1; 7-8 length 0; 9-10 sum 0",
        // A page shows a place of another page.
        "1-2 append 1 ok; 3-4 append 2 ok; 5-6 page 2 from 1 of 2; 5-6 page 1 from 0 of 2",
    ];
    for text in truths {
        assert_eq!(rules(&history(text)), [], "{text}");
    }
}

#[test]
fn sums_are_lengths() {
    let broken_rules = |text: &str| {
        let mut history = history(&format!("1-2 append 1 ok; 3-4 append 2 ok; {text}; 90-91 read 1 2"));
        history.lists[0].values = BTreeMap::from([(1, 100), (2, 30)]);
        rules(&history)
    };
    assert_eq!(broken_rules("5-6 sum 130"), []);
    assert_eq!(broken_rules("3-4 sum 100"), []);
    assert_eq!(broken_rules("5-6 sum 100"), [Rule::Stale]);
    assert_eq!(broken_rules("5-6 sum 0"), [Rule::Stale]);
    assert_eq!(broken_rules("5-6 sum 30"), [Rule::WrongSum], "the second without the first");
    assert_eq!(broken_rules("5-6 sum 260"), [Rule::WrongSum], "each twice");
    assert_eq!(broken_rules("1-6 sum 131"), [Rule::WrongSum]);
}

#[test]
fn answers_name_each_element_once() {
    let broken_rules = |names: &[(u64, &str)], sequences: &[(u64, u64)]| {
        let mut history = history("1-9 append 1 ok; 1-9 append 2 ok; 10-11 read 2 1");
        let list = &mut history.lists[0];
        for (element, name) in names {
            list.names.entry(*element).or_default().insert((*name).to_owned());
        }
        for (element, sequence) in sequences {
            list.sequences.entry(*element).or_default().insert(*sequence);
        }
        rules(&history)
    };
    assert_eq!(broken_rules(&[(1, "a"), (1, "a"), (2, "b")], &[(1, 7), (1, 7), (2, 6)]), []);
    assert_eq!(broken_rules(&[(1, "a")], &[(1, 7)]), []);
    assert_eq!(
        broken_rules(&[(1, "a"), (1, "c"), (2, "b")], &[]),
        [Rule::TwoAnswers],
        "a replay that made another one"
    );
    assert_eq!(broken_rules(&[(1, "a"), (2, "a")], &[]), [Rule::TwoAnswers], "the answer to another request");
    assert_eq!(broken_rules(&[], &[(1, 7), (1, 8)]), [Rule::TwoAnswers]);
    assert_eq!(broken_rules(&[], &[(1, 6), (2, 7)]), [Rule::Sequence]);
    assert_eq!(broken_rules(&[], &[(1, 6), (2, 6)]), [Rule::Sequence]);
}

#[test]
fn an_append_that_is_still_unknown_is_named() {
    let found = unsettled(&history("1-2 append 1 ok; 3- append 2 unknown; 4-5 append 3 refused"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "Unsettled: list: [client 1, 0.000000 to never: append 2 Unknown]");
}

#[test]
fn a_lie_in_one_list_leaves_the_others_alone() {
    let mut both = history("1-2 append 1 ok; 3-4 read 1");
    let second = both.add_list("second");
    let lie = history("1-2 append 1 ok; 3-4 read; 5-6 read 1").operations;
    both.operations.extend(lie.into_iter().map(|operation| Operation { list: second, ..operation }));
    let found: Vec<String> = faults(&both).iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("Stale: second: after [client 0"), "{found:?}");
}
