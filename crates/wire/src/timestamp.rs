//! Instants as the interface writes them: RFC 3339 in UTC.
//!
//! Cashouts are written with microseconds and a numeric offset (interface section 2.6), everything
//! else with milliseconds and `Z`. Instants come in as milliseconds since the Unix epoch. Callers
//! name them in RFC 3339 with any offset, or as a day: a business date is a date in
//! America/Sao_Paulo, three hours behind UTC all year.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeDelta, Utc};

/// An instant with milliseconds and `Z`, such as `2026-07-01T12:00:00.250Z`.
///
/// An instant beyond what the calendar can express is written as the nearest one that it can.
pub fn with_milliseconds(epoch_milliseconds: i64) -> String {
    instant(epoch_milliseconds).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// An instant with microseconds and a numeric offset, such as `2026-07-01T12:00:00.250000+00:00`.
///
/// An instant beyond what the calendar can express is written as the nearest one that it can.
pub fn with_microseconds(epoch_milliseconds: i64) -> String {
    instant(epoch_milliseconds).to_rfc3339_opts(SecondsFormat::Micros, false)
}

/// The day of an instant in Sao Paulo, in days since 1970-01-01.
pub fn business_day(epoch_milliseconds: i64) -> u32 {
    let day = (epoch_milliseconds - BEHIND_UTC.num_milliseconds()).div_euclid(DAY_MILLISECONDS);
    u32::try_from(day).unwrap_or_default()
}

/// A day counted from 1970-01-01, such as `2026-07-01`.
pub fn date(day: u32) -> String {
    let date = NaiveDate::default().checked_add_days(Days::new(u64::from(day))).unwrap_or(NaiveDate::MAX);
    date.format("%Y-%m-%d").to_string()
}

/// Limit of a period as a caller names it, an instant or a day, in milliseconds since the Unix
/// epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodLimit {
    /// An instant, rounded up to the millisecond, or the first millisecond of a day.
    pub begin: i64,
    /// The same instant, or the first millisecond of the next day.
    pub end: i64,
}

impl PeriodLimit {
    /// Reads `2026-07-01T12:00:00.250Z` or `2026-07-01`; `None` if it is neither.
    pub fn parse(text: &str) -> Option<Self> {
        if let Ok(instant) = DateTime::parse_from_rfc3339(text) {
            let part = i64::from(instant.timestamp_subsec_nanos() % 1_000_000 != 0);
            let at = instant.timestamp_millis() + part;
            return Some(Self { begin: at, end: at });
        }
        let begin = begin_of(day(text)?);
        Some(Self { begin, end: begin + DAY_MILLISECONDS })
    }
}

/// The day in Sao Paulo that an instant lies in. One beyond the calendar lies in the nearest day
/// that it can express.
pub fn day_of(epoch_milliseconds: i64) -> NaiveDate {
    local(epoch_milliseconds).date()
}

/// An instant as a clock in Sao Paulo shows it, without a zone: `2026-07-01T09:00:00.250`.
pub fn local(epoch_milliseconds: i64) -> NaiveDateTime {
    let at = instant(epoch_milliseconds);
    at.checked_sub_signed(BEHIND_UTC).unwrap_or(at).naive_utc()
}

/// The first millisecond of a day in Sao Paulo.
pub fn begin_of(day: NaiveDate) -> i64 {
    let midnight = day.and_time(NaiveTime::MIN);
    midnight.checked_add_signed(BEHIND_UTC).unwrap_or(midnight).and_utc().timestamp_millis()
}

/// Reads a day, such as `2026-07-01`.
pub fn day(text: &str) -> Option<NaiveDate> {
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().filter(|_| is_date)
}

/// How much later midnight comes in Sao Paulo.
const BEHIND_UTC: TimeDelta = TimeDelta::hours(3);
const DAY_MILLISECONDS: i64 = 24 * 60 * 60 * 1000;

fn instant(epoch_milliseconds: i64) -> DateTime<Utc> {
    let nearest = if epoch_milliseconds < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    DateTime::from_timestamp_millis(epoch_milliseconds).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_business_day_begins_at_three_in_utc() {
        for (instant, expected) in [
            ("2026-07-01T02:59:59.999Z", "2026-06-30"),
            ("2026-07-01T03:00:00.000Z", "2026-07-01"),
            ("2026-07-02T02:59:59.999Z", "2026-07-01"),
        ] {
            let at = PeriodLimit::parse(instant).unwrap().begin;
            assert_eq!(date(business_day(at)), expected, "{instant}");
        }
    }

    #[test]
    fn instants_are_written_in_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z", "1970-01-01T00:00:00.000000+00:00"),
            (1_782_907_200_250, "2026-07-01T12:00:00.250Z", "2026-07-01T12:00:00.250000+00:00"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z", "2000-02-28T23:59:59.999000+00:00"),
            (-1, "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999000+00:00"),
        ];
        for (epoch_milliseconds, milliseconds, microseconds) in cases {
            assert_eq!(with_milliseconds(epoch_milliseconds), milliseconds);
            assert_eq!(with_microseconds(epoch_milliseconds), microseconds);
        }
    }

    #[test]
    fn a_caller_names_an_instant_or_a_day() {
        let instant = |at| Some(PeriodLimit { begin: at, end: at });
        let day = |begin| Some(PeriodLimit { begin, end: begin + DAY_MILLISECONDS });
        for (text, expected) in [
            ("2026-07-01T12:00:00.250Z", instant(1_782_907_200_250)),
            ("2026-07-01T09:00:00.250-03:00", instant(1_782_907_200_250)),
            ("2026-07-01T12:00:00.250000001Z", instant(1_782_907_200_251)),
            ("1970-01-01", day(3 * 60 * 60 * 1000)),
            ("2028-02-29", day(1_835_406_000_000)),
            ("2026-02-29", None),
            ("2026-7-1", None),
            ("+2026-7-01", None),
            (" 2026-7-01", None),
            ("2026-07-01T12:00:00", None),
            ("1782907200250", None),
            ("", None),
        ] {
            assert_eq!(PeriodLimit::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_day_begins_at_midnight_in_sao_paulo() {
        for text in ["2026-07-01", "2028-02-29", "1970-01-01"] {
            let PeriodLimit { begin, end } = PeriodLimit::parse(text).unwrap();
            let day = day(text).unwrap();
            assert_eq!([begin, end - 1].map(day_of), [day; 2], "{text}");
            assert_eq!([begin - 1, end].map(day_of), [day.pred_opt().unwrap(), day.succ_opt().unwrap()], "{text}");
        }
        assert!(day_of(i64::MIN) < day_of(0) && day_of(0) < day_of(i64::MAX));
    }

    #[test]
    fn instants_beyond_the_calendar_do_not_panic() {
        assert!(with_milliseconds(i64::MAX).starts_with("+262142-12-31"));
        assert!(with_microseconds(i64::MIN).starts_with("-262143-01-01"));
    }
}
