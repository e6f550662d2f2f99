//! Points in time. The ledger reads no clock: `now` is always an argument.

use std::fmt;

use minicbor::{Decode, Encode};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// use ledger::time::{Month, Timestamp};
///
/// // 2026-12-01T01:00:00Z: in Sao Paulo it is still November.
/// let now = Timestamp(1_796_086_800_000);
/// assert_eq!(now.month().to_string(), "2026-11");
/// assert_eq!(now.plus_days(1).month(), Month::parse("2026-12").unwrap());
/// assert_eq!(now.plus_ms(59_999).minute(), now.minute(), "money falls due by the minute");
/// ```
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Timestamp(#[n(0)] pub i64);

impl Timestamp {
    /// This point moved by `milliseconds`.
    pub fn plus_ms(self, milliseconds: i64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }

    /// This point moved by whole days of 24 hours.
    pub fn plus_days(self, days: u16) -> Self {
        self.plus_ms(i64::from(days) * 24 * 60 * 60 * 1000)
    }

    /// The month that this point lies in, in Sao Paulo.
    pub fn month(self) -> Month {
        let (year, month, _) = civil((self.0 - BEHIND_UTC_MS).div_euclid(DAY_MS));
        Month(u32::try_from((year - 1970) * 12 + month - 1).unwrap_or(0))
    }

    /// The day that this point lies in, in Sao Paulo: days since 1970-01-01.
    pub fn day(self) -> u32 {
        u32::try_from((self.0 - BEHIND_UTC_MS).div_euclid(DAY_MS)).unwrap_or(0)
    }

    /// The last millisecond of a day in Sao Paulo, counted in days since 1970-01-01.
    pub fn end_of_day(day: u32) -> Self {
        Self((i64::from(day) + 1) * DAY_MS + BEHIND_UTC_MS - 1)
    }

    /// The minute that this point lies in.
    pub fn minute(self) -> Minute {
        Minute(u32::try_from(self.0.div_euclid(60_000)).unwrap_or(if self.0 < 0 { 0 } else { u32::MAX }))
    }
}

/// A whole minute since 1970-01-01T00:00Z. Money falls due by the minute: capture + days × 24 h,
/// rounded down.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Minute(#[n(0)] pub u32);

impl Minute {
    /// The instant at which the minute begins: what falls due in it is due from here on.
    pub fn start(self) -> Timestamp {
        Timestamp(i64::from(self.0) * 60_000)
    }

    /// The last millisecond of the minute.
    pub fn end(self) -> Timestamp {
        Timestamp(i64::from(self.0) * 60_000 + 59_999)
    }

    /// True when the minute has begun at `now`.
    pub fn is_due(self, now: Timestamp) -> bool {
        self.start() <= now
    }
}

/// A month in Sao Paulo, counted from January 1970. Its text is `2026-12`.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct Month(#[n(0)] pub u32);

impl Month {
    /// The first instant of the month.
    pub fn begin(self) -> Timestamp {
        let (year, month) = (1970 + i64::from(self.0 / 12), i64::from(self.0 % 12) + 1);
        Timestamp(day_of(year, month) * DAY_MS + BEHIND_UTC_MS)
    }

    /// The month after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Reads `2026-12`, from 1970 to 9999; `None` if it is no month.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let number = |text: &str, digits: usize| {
            let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u32>().ok().filter(|_| is_number)
        };
        let (years, month) = (number(year, 4)?.checked_sub(1970)?, number(month, 2)?);
        (1..=12).contains(&month).then(|| Self(years * 12 + month - 1))
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", 1970 + self.0 / 12, self.0 % 12 + 1)
    }
}

/// Milliseconds of a day.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// How much later midnight comes in Sao Paulo than in UTC, milliseconds: all year since 2019.
pub(crate) const BEHIND_UTC_MS: i64 = 3 * 60 * 60 * 1000;

/// Year, month from 1, and day of the month from 1 of a day since 1970-01-01. Years are counted by
/// eras of 400 (146,097 days) that begin on 1 March.
pub fn civil(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = day.div_euclid(146_097) * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_month)
}

/// The first day of a month, counted from 1970-01-01.
pub(crate) fn day_of(year: i64, month: i64) -> i64 {
    let (year, month_from_march) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    year.div_euclid(400) * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_civil_dates() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_819, (2027, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(civil(day), date, "{day}");
            assert_eq!(day_of(date.0, date.1) + date.2 - 1, day, "{date:?}");
        }
    }

    #[test]
    fn a_month_begins_at_midnight_in_sao_paulo() {
        let midnight = Timestamp(day_of(2026, 12) * DAY_MS + BEHIND_UTC_MS);
        let months = [midnight.plus_ms(-1), midnight].map(Timestamp::month);
        assert_eq!(months.map(|month| month.to_string()), ["2026-11", "2026-12"]);
        assert_eq!([months[1].begin(), months[0].next().begin()], [midnight; 2]);
        assert_eq!(Timestamp::end_of_day(midnight.plus_ms(-1).day()), midnight.plus_ms(-1));
    }

    #[test]
    fn a_month_is_read_as_it_is_written() {
        for text in ["1970-01", "2026-12", "9999-12"] {
            assert_eq!(Month::parse(text).unwrap().to_string(), text);
        }
        for text in ["1969-12", "2026-13", "2026-00", "2026-1", "26-12", "2026-12-01", "+026-12", "2026", ""] {
            assert_eq!(Month::parse(text), None, "{text}");
        }
    }
}
