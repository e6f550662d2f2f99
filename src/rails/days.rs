//! Days in Sao Paulo, three hours behind UTC all year, and instants as institutions write them.

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, TimeDelta};

/// How much later midnight comes in Sao Paulo.
const BEHIND_UTC: TimeDelta = TimeDelta::hours(3);

/// The day of an instant, which is in milliseconds since 1970 (UTC).
pub(super) fn day_of(at_ms: i64) -> NaiveDate {
    let at = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    at.checked_sub_signed(BEHIND_UTC).unwrap_or(at).date_naive()
}

/// The first instant of a day, in milliseconds since 1970 (UTC).
pub(super) fn begin_ms(day: NaiveDate) -> i64 {
    let begin = day.and_time(NaiveTime::MIN).and_utc();
    begin.checked_add_signed(BEHIND_UTC).unwrap_or(begin).timestamp_millis()
}

/// An instant in RFC 3339 with milliseconds; it is given in milliseconds since 1970 (UTC).
pub(super) fn instant(at_ms: i64) -> String {
    DateTime::from_timestamp_millis(at_ms).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}
