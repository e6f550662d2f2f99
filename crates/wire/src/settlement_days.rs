//! Settlement days: the days on which banks and acquirers in Brazil settle, Monday to Friday
//! without national bank holidays. Holidays of states and cities settle, and so do Ash Wednesday,
//! 24 and 31 December.
//!
//! Nothing is a table that ends: the moving holidays follow Easter. The calendar is that of the
//! law as it stands; 20 November is a holiday since 2024.

use chrono::{Datelike, Days, NaiveDate, Weekday};

/// Month and day of the holidays with a date.
const FIXED: [(u32, u32); 8] = [(1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (12, 25)];
/// The day of Zumbi and black consciousness: month and day, and its first year as a holiday of all.
const BLACK_CONSCIOUSNESS: ((u32, u32), i32) = ((11, 20), 2024);
/// Days to the next settlement day at most: from the Friday before Carnival to Ash Wednesday, say.
pub const NEXT_DAYS_MAX: u64 = 5;
/// Days from Easter to Monday and Tuesday of Carnival, Good Friday and Corpus Christi.
const FROM_EASTER: [i64; 4] = [-48, -47, -2, 60];

/// Whether banks settle on a day, in days since 1970-01-01.
pub fn is_settlement_day(day: u32) -> bool {
    NaiveDate::default().checked_add_days(Days::new(day.into())).is_some_and(settles)
}

/// The first day after one on which banks settle. At most [`NEXT_DAYS_MAX`] days later.
pub fn next_settlement_day(after: NaiveDate) -> NaiveDate {
    after.iter_days().skip(1).find(|date| settles(*date)).unwrap_or(after)
}

fn settles(date: NaiveDate) -> bool {
    !matches!(date.weekday(), Weekday::Sat | Weekday::Sun) && !is_holiday(date)
}

fn is_holiday(date: NaiveDate) -> bool {
    let of_year = (date.month(), date.day());
    let (black_consciousness, since) = BLACK_CONSCIOUSNESS;
    let is_new = of_year == black_consciousness && date.year() >= since;
    let easter = easter(date.year()).map(|easter| date.signed_duration_since(easter).num_days());
    is_new || FIXED.contains(&of_year) || easter.is_some_and(|days| FROM_EASTER.contains(&days))
}

/// Easter Sunday of a year in the Gregorian calendar: Butcher's computation, in the letters in
/// which it is published (J. Meeus, Astronomical Algorithms, chapter 8).
#[allow(clippy::many_single_char_names)]
fn easter(year: i32) -> Option<NaiveDate> {
    let (a, b, c) = (year % 19, year / 100, year % 100);
    let (d, e) = (b / 4, b % 4);
    let g = (b - (b + 8) / 25 + 1) / 3;
    let h = (19 * a + b - d - g + 15) % 30;
    let (i, k) = (c / 4, c % 4);
    let l = (32 + 2 * e + 2 * i - h - k) % 7;
    let m = (a + 11 * h + 22 * l) / 451;
    let n = h + l - 7 * m + 114;
    NaiveDate::from_ymd_opt(year, u32::try_from(n / 31).ok()?, u32::try_from(n % 31 + 1).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The weekdays from 2001 to 2078 without settlement, one a line, by three calendars: ANBIMA's
    /// of bizdays 1.0.19, BVMF of holidays 0.108 and Settlement of QuantLib 1.44.
    /// They agree on every day of it.
    const WITHOUT_SETTLEMENT: &str = include_str!("settlement_days.txt");

    #[test]
    fn the_days_are_those_of_the_calendars_of_the_field() {
        let first = NaiveDate::from_ymd_opt(2001, 1, 1).unwrap();
        let last = NaiveDate::from_ymd_opt(2078, 12, 31).unwrap();
        let weekday = |date: &NaiveDate| !matches!(date.weekday(), Weekday::Sat | Weekday::Sun);
        let ours: Vec<_> = first
            .iter_days()
            .take_while(|date| *date <= last)
            .filter(weekday)
            .filter(|date| !settles(*date))
            .map(|date| date.to_string())
            .collect();
        let theirs: Vec<_> = WITHOUT_SETTLEMENT.lines().collect();
        assert_eq!(ours, theirs);
        let between = |date: &&String| ("2024".."2031").contains(&&date[..4]);
        assert_eq!(ours.iter().filter(between).count(), 73);
        let farthest = first.iter_days().take_while(|date| *date <= last);
        let farthest = farthest.map(|date| (next_settlement_day(date) - date).num_days()).max();
        assert_eq!(farthest, i64::try_from(NEXT_DAYS_MAX).ok());
    }

    #[test]
    fn local_holidays_and_the_ends_of_the_year_settle() {
        for (date, expected) in [
            ("2026-02-16", false),
            ("2026-02-17", false),
            ("2026-02-18", true),
            ("2026-04-03", false),
            ("2026-06-04", false),
            ("2026-07-09", true),
            ("2026-12-24", true),
            ("2026-12-31", true),
            ("2023-11-20", true),
            ("2024-11-20", false),
            ("2026-11-21", false),
        ] {
            let date: NaiveDate = date.parse().unwrap();
            assert_eq!(settles(date), expected, "{date}");
            let day = u32::try_from((date - NaiveDate::default()).num_days()).unwrap();
            assert_eq!(is_settlement_day(day), expected, "{date}");
        }
    }
}
