//! Dates of cycles, as a table (`cases/dates.txt`), and properties that hold for every anchor.

use ledger::recurrence::{BillingCycle, CYCLES_MAX};
use ledger::time::Timestamp;
use proptest::prelude::*;

const CYCLES: [(&str, BillingCycle); 6] = [
    ("DAILY", BillingCycle::Daily),
    ("WEEKLY", BillingCycle::Weekly),
    ("MONTHLY", BillingCycle::Monthly),
    ("QUARTERLY", BillingCycle::Quarterly),
    ("BIANNUAL", BillingCycle::Biannual),
    ("ANNUAL", BillingCycle::Annual),
];

const HOUR_MS: i64 = 60 * 60 * 1000;

#[test]
fn dates_are_counted_from_the_anchor() {
    let lines = include_str!("cases/dates.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut dates = 0;
    for line in lines {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, anchor, expected] = columns[..] else { panic!("a line is cycle | anchor | dates: {line}") };
        let cycle = CYCLES.iter().find(|(known, _)| *known == name).expect("the cycle is known").1;
        let (anchor_day, time) = anchor.split_once(' ').expect("an anchor has a time");
        let anchor = instant(anchor_day, time);
        for date in expected.split_whitespace() {
            let (count, day) = date.split_once('=').expect("a date reads count=day");
            let found = cycle.date(anchor, count.parse().expect("a count is a number"));
            assert_eq!(found, instant(day, time), "{line}: {date}");
            dates += 1;
        }
    }
    assert!(dates > 50, "{dates} dates prove little");
}

proptest! {
    #[test]
    fn dates_go_on_and_keep_their_time_of_day(
        (_, cycle) in prop::sample::select(CYCLES.as_slice()),
        anchor in 0_i64..4_102_444_800_000,
        count in 0..2 * CYCLES_MAX,
    ) {
        let anchor = Timestamp(anchor);
        let (date, next) = (cycle.date(anchor, count), cycle.date(anchor, count + 1));
        prop_assert!(date < next);
        prop_assert_eq!((date.0 - anchor.0) % (24 * HOUR_MS), 0);
        prop_assert_eq!(cycle.date(anchor, 0), anchor);
    }
}

/// A time in Sao Paulo. Days are counted one by one, so that the tested code is not used to test
/// itself.
fn instant(day: &str, time: &str) -> Timestamp {
    let numbers = |text: &str, separators: [char; 2]| -> Vec<i64> {
        text.split(separators).map(|part| part.parse().expect("a date and a time are numbers")).collect()
    };
    let [year, month, day] = numbers(day, ['-', '-'])[..] else { panic!("{day} is no date") };
    let [hour, minute, seconds, milliseconds] = numbers(&time.replace('.', ":"), [':', ':'])[..] else {
        panic!("{time} is no time")
    };
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = |year| [31, if is_leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years: i64 = (1970..year).map(|year| lengths(year).iter().sum::<i64>()).sum();
    let months: i64 = lengths(year)[..month as usize - 1].iter().sum();
    let hours = (years + months + day - 1) * 24 + hour + 3;
    Timestamp(hours * HOUR_MS + minute * 60_000 + seconds * 1_000 + milliseconds)
}
