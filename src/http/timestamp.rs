//! Instants as the interface writes them: RFC 3339 in UTC.
//!
//! Cashouts are written with microseconds and a numeric offset (interface section 2.6), everything else with
//! milliseconds and `Z`. Instants come in as milliseconds since the Unix epoch.

use chrono::{DateTime, SecondsFormat, Utc};

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

fn instant(epoch_milliseconds: i64) -> DateTime<Utc> {
    let nearest = if epoch_milliseconds < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC };
    DateTime::from_timestamp_millis(epoch_milliseconds).unwrap_or(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn instants_beyond_the_calendar_do_not_panic() {
        assert!(with_milliseconds(i64::MAX).starts_with("+262142-12-31"));
        assert!(with_microseconds(i64::MIN).starts_with("-262143-01-01"));
    }
}
