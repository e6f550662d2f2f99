//! Random histories: those of a model are linearizable, and are found so; with one change they are
//! not, and are found out. On small ones that are only noise, the checker says what the independent
//! one of [`super::second_judge`] says.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::checker::{Rule, faults};
use super::edn::written;
use super::second_judge::{last_read, read_of_all, value, wing_gong_accepts};
use super::{Element, History, List, NEVER, Nanos, Operation, Outcome, ReadResult, What};

/// One operation of a client of the model.
#[derive(Clone, Debug)]
struct Step {
    client: usize,
    kind: Kind,
    /// Time until it begins, from its begin to its effect, and from there to its end.
    times: [u64; 3],
    /// Which page is read, and whether an append without an answer happens.
    chance: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Append(Outcome),
    Page,
    Length,
    Sum,
    Has,
}

const CLIENTS: usize = 5;

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        6 => Just(Kind::Append(Outcome::Acknowledged)),
        1 => Just(Kind::Append(Outcome::Refused)),
        1 => Just(Kind::Append(Outcome::Unknown)),
        4 => Just(Kind::Page),
        1 => Just(Kind::Length),
        1 => Just(Kind::Sum),
        1 => Just(Kind::Has),
    ];
    let times = [0..4_u64, 1..6_u64, 1..6_u64];
    (0..CLIENTS, kind, times, any::<u64>()).prop_map(|(client, kind, times, chance)| Step {
        client,
        kind,
        times,
        chance,
    })
}

/// Runs the steps against one list without faults. Every moment is another one. At the end the
/// whole list is read.
fn run(steps: &[Step]) -> History {
    let mut clocks = [0; CLIENTS];
    let mut operations: Vec<(Nanos, Operation, Step)> = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let [wait, before, after] = step.times;
        let moment = |clock: u64| clock * 10_000 + number as u64;
        let begin = clocks[step.client] + wait;
        clocks[step.client] = begin + before + after + 1;
        let (invoked, effect, completed) =
            (moment(begin), moment(begin + before) + 3_000, moment(begin + before + after) + 6_000);
        let what = What::Read(ReadResult::Nothing);
        operations.push((effect, Operation { client: step.client, list: 0, invoked, completed, what }, step.clone()));
    }
    operations.sort_by_key(|(effect, ..)| *effect);
    let (mut list, mut history): (Vec<Element>, _) = (Vec::new(), History::default());
    history.add_list("list");
    for (number, (_, mut operation, step)) in operations.into_iter().enumerate() {
        let element = number as u64 + 1;
        let length = list.len() as u64;
        operation.what = match step.kind {
            Kind::Append(outcome) => {
                if outcome == Outcome::Acknowledged || outcome == Outcome::Unknown && step.chance % 2 == 0 {
                    list.push(element);
                }
                if outcome == Outcome::Unknown {
                    operation.completed = NEVER;
                }
                What::Append(element, outcome)
            }
            Kind::Page => {
                let first = if step.chance % 3 == 0 { step.chance / 3 % (length + 1) } else { 0 };
                What::Read(ReadResult::Page { first, elements: list[first as usize..].to_vec(), length })
            }
            Kind::Length => What::Read(ReadResult::Length(length)),
            Kind::Sum => What::Read(ReadResult::Sum(list.iter().copied().map(value).sum())),
            Kind::Has => {
                let element = step.chance % element + 1;
                What::Read(ReadResult::Has(element, list.contains(&element)))
            }
        };
        history.operations.push(operation);
    }
    let end = clocks.iter().max().unwrap() * 10_000 + 20_000;
    history.operations.push(read_of_all(end, &list));
    values(&mut history.lists[0], &list);
    history
}

fn values(list: &mut List, elements: &[Element]) {
    list.values = elements.iter().map(|element| (*element, value(*element))).collect();
}

/// One change to a history that makes it another one than any server without faults could give;
/// `None` if there is nothing that it could be done to.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// An acknowledged append is in no read.
    Lose,
    /// An element is in the last read once more.
    Double,
    /// An append that is there was refused.
    Refuse,
    /// A read that began after an append was acknowledged lacks it.
    Forget,
    /// Two neighbors of which one was acknowledged before the other began change places everywhere.
    Reorder,
    /// Two elements change places in one read.
    Swap,
    /// A sum is a centavo off.
    Miscount,
    /// A read happened before the last append that it shows.
    Foresee,
}

const LIES: [Lie; 8] =
    [Lie::Lose, Lie::Double, Lie::Refuse, Lie::Forget, Lie::Reorder, Lie::Swap, Lie::Miscount, Lie::Foresee];

fn with_last_read(history: &mut History, list: &[Element]) {
    let at = history.operations.pop().unwrap().invoked;
    history.operations.push(read_of_all(at, list));
}

fn append_of(history: &History, element: Element) -> &Operation {
    let is_its = |operation: &&Operation| matches!(operation.what, What::Append(found, _) if found == element);
    history.operations.iter().find(is_its).unwrap()
}

/// Applies a lie to a history. The second part is the rules that must detect it.
fn apply_lie(history: &History, lie: Lie, chance: usize) -> Option<(History, &'static [Rule])> {
    let (mut lied, mut list) = (history.clone(), last_read(history));
    let place = chance.checked_rem(list.len())?;
    let acknowledged = |element: &Element| append_of(history, *element).completed != NEVER;
    match lie {
        Lie::Lose => {
            let place = (0..list.len()).find(|place| acknowledged(&list[*place]))?;
            let lost = list.remove(place);
            for operation in &mut lied.operations {
                if let What::Read(result) = &mut operation.what {
                    *result = without(result, place as u64, lost);
                }
            }
            Some((lied, &[Rule::Lost]))
        }
        Lie::Double => {
            list.push(list[place]);
            with_last_read(&mut lied, &list);
            Some((lied, &[Rule::Twice]))
        }
        Lie::Refuse => {
            let is_its =
                |operation: &&mut Operation| matches!(operation.what, What::Append(found, _) if found == list[place]);
            let append = lied.operations.iter_mut().find(is_its)?;
            append.what = What::Append(list[place], Outcome::Refused);
            Some((lied, &[Rule::RefusedIsThere]))
        }
        Lie::Forget => {
            let element = *list.iter().find(|element| acknowledged(element))?;
            let end = append_of(history, element).completed;
            let place = list.iter().position(|found| *found == element)?;
            let result = ReadResult::Page { first: 0, elements: list[..place].to_vec(), length: place as u64 };
            let read = Operation { invoked: end + 1, completed: end + 2, ..read_of_all(0, &[]) };
            lied.operations.insert(0, Operation { what: What::Read(result), ..read });
            Some((lied, &[Rule::Stale]))
        }
        Lie::Reorder => {
            let follows =
                |pair: &[Element]| append_of(history, pair[0]).completed < append_of(history, pair[1]).invoked;
            let place = list.windows(2).position(follows)?;
            let (first, second) = (list[place], list[place + 1]);
            for operation in &mut lied.operations {
                if let What::Read(ReadResult::Page { elements, .. }) = &mut operation.what {
                    for element in elements {
                        *element = match *element {
                            found if found == first => second,
                            found if found == second => first,
                            other => other,
                        };
                    }
                }
            }
            // Other reads contradict it too.
            Some((lied, &[Rule::AppendsReordered, Rule::FromTheFuture, Rule::Stale, Rule::WentBack, Rule::WrongSum]))
        }
        Lie::Swap => {
            let other = (place + 1) % list.len();
            list.swap(place, other);
            let changed = (list.len() > 1).then(|| read_of_all(lied.operations.last().unwrap().invoked + 10, &list))?;
            lied.operations.push(changed);
            Some((lied, &[Rule::TwoOrders]))
        }
        Lie::Miscount => {
            let sum: i64 = list.iter().copied().map(value).sum();
            let at = lied.operations.last()?.invoked + 10;
            lied.operations.insert(0, Operation { what: What::Read(ReadResult::Sum(sum + 1)), ..read_of_all(at, &[]) });
            Some((lied, &[Rule::WrongSum]))
        }
        Lie::Foresee => {
            let begin = append_of(history, list[place]).invoked.checked_sub(10)?;
            let result = ReadResult::Page { first: 0, elements: list[..=place].to_vec(), length: place as u64 + 1 };
            let read = Operation { invoked: begin, completed: begin + 5, ..read_of_all(0, &[]) };
            lied.operations.insert(0, Operation { what: What::Read(result), ..read });
            // The read that began last of those that show less is named.
            Some((lied, &[Rule::FromTheFuture, Rule::WentBack]))
        }
    }
}

/// What a read would say if the element at a place had never been.
fn without(result: &ReadResult, place: u64, lost: Element) -> ReadResult {
    match result.clone() {
        ReadResult::Page { first, elements, length } if length > place => ReadResult::Page {
            first: first - u64::from(first > place),
            elements: elements.into_iter().filter(|element| *element != lost).collect(),
            length: length - 1,
        },
        ReadResult::Length(length) if length > place => ReadResult::Length(length - 1),
        ReadResult::Sum(_) | ReadResult::Has(..) => ReadResult::Nothing,
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histories_of_a_model_pass(steps in prop::collection::vec(step(), 1..120)) {
        let found = faults(&run(&steps));
        prop_assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn one_lie_in_a_history_of_a_model_is_found(steps in prop::collection::vec(step(), 1..60), chance: usize) {
        let history = run(&steps);
        for lie in LIES {
            if let Some((lied, rules)) = apply_lie(&history, lie, chance) {
                let found = faults(&lied);
                let is_named = found.iter().any(|fault| rules.contains(&fault.rule));
                prop_assert!(is_named, "{lie:?}: {found:#?}");
                // It tries all orders before it says no.
                if steps.len() < 14 {
                    prop_assert!(!wing_gong_accepts(&lied), "{lie:?}");
                }
            }
        }
    }

    #[test]
    fn a_history_for_elle_reads_back(steps in prop::collection::vec(step(), 1..60)) {
        let history = run(&steps);
        let (mut under_way, mut ended) = (BTreeMap::new(), BTreeSet::new());
        let mut reads: Vec<Vec<Element>> = Vec::new();
        for (index, line) in written(&history).lines().filter(|line| !line.starts_with(';')).enumerate() {
            let field = |name: &str| line.split_once(name).unwrap().1.split([',', '}']).next().unwrap().trim().to_owned();
            prop_assert_eq!(field(":index"), index.to_string());
            let (kind, value, process) = (field(":type"), field(":value"), field(":process"));
            if kind == ":invoke" {
                prop_assert!(!ended.contains(&process), "it does not know what its last one came to: {line}");
                prop_assert_eq!(under_way.insert(process, value), None);
                continue;
            }
            let invocation = under_way.remove(&process).unwrap();
            match value.strip_prefix("[[:r 0 [") {
                Some(lines_read) => {
                    prop_assert_eq!((invocation.as_str(), kind.as_str()), ("[[:r 0 nil]]", ":ok"));
                    reads.push(lines_read.trim_end_matches(']').split_whitespace().map(|word| word.parse().unwrap()).collect());
                }
                None => prop_assert_eq!(invocation, value),
            }
            if kind == ":info" {
                ended.insert(process);
            }
        }
        prop_assert!(under_way.is_empty());
        // The list in the order of the reads' ends, as far as each read shows it.
        let list = last_read(&history);
        let mut by_completion: Vec<&Operation> = history.operations.iter().collect();
        by_completion.sort_by_key(|operation| operation.completed);
        let lengths = by_completion.iter().filter_map(|operation| match operation.what {
            What::Read(ReadResult::Page { length, .. } | ReadResult::Length(length)) => Some(length as usize),
            _ => None,
        });
        let expected: Vec<Vec<Element>> = lengths.map(|length| list[..length].to_vec()).collect();
        prop_assert_eq!(reads, expected);
    }

    #[test]
    fn noise_is_judged_as_by_a_checker_that_tries_all_orders(history in noise()) {
        let found = faults(&history);
        prop_assert_eq!(found.is_empty(), wing_gong_accepts(&history), "{:#?}", found);
    }
}

/// Small histories at random: reads that show some list of a few elements, operations at random
/// moments. Many of them are linearizable by luck.
fn noise() -> impl Strategy<Value = History> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Acknowledged),
        1 => Just(Outcome::Refused),
        2 => Just(Outcome::Unknown),
    ];
    let appends = prop::collection::vec((outcome, 0..20_u64, 1..12_u64), 1..5);
    let reads = prop::collection::vec((0..5_u8, any::<prop::sample::Index>(), 0..24_u64, 1..8_u64), 0..6);
    (appends, reads, any::<u64>()).prop_map(|(appends, reads, chance)| {
        let mut history = History::default();
        history.add_list("list");
        let mut push = |what, begin: u64, takes: u64| {
            let number = history.operations.len() as u64;
            let completed = match what {
                What::Append(_, Outcome::Unknown) => NEVER,
                _ => (begin + takes) * 1_000 + 500 + number,
            };
            let operation = Operation { client: 0, list: 0, invoked: begin * 1_000 + number, completed, what };
            history.operations.push(operation);
        };
        let mut list = Vec::new();
        for (number, (outcome, begin, takes)) in appends.iter().enumerate() {
            push(What::Append(number as u64 + 1, *outcome), *begin, *takes);
            let is_there =
                *outcome == Outcome::Acknowledged || *outcome == Outcome::Unknown && chance >> number & 1 == 0;
            if is_there || chance % 50 == 0 {
                list.insert((chance >> 8 >> number) as usize % (list.len() + 1), number as u64 + 1);
            }
        }
        for (kind, index, begin, takes) in reads {
            let length = index.index(list.len() + 1);
            let elements = list[..length].to_vec();
            let result = match kind {
                0 => ReadResult::Length(length as u64),
                1 => ReadResult::Has(index.index(appends.len()) as u64 + 1, true),
                2 => ReadResult::Has(index.index(appends.len()) as u64 + 1, false),
                3 => ReadResult::Sum(elements.iter().copied().map(value).sum()),
                _ => ReadResult::Page { first: 0, elements, length: length as u64 },
            };
            push(What::Read(result), begin, takes);
        }
        history.operations.push(read_of_all(40_000, &list));
        values(&mut history.lists[0], &list);
        history
    })
}
