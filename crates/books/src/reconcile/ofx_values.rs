//! Values of a bank statement, in the forms in which banks write them: moments and amounts.

use chrono::{DateTime, NaiveDate, TimeDelta, Timelike};
use ledger::money::{AMOUNT_MAX, Centavos};

const DAY_SECONDS: i64 = 24 * 60 * 60;
/// Seconds that Sao Paulo is behind UTC.
const BEHIND_UTC_SECONDS: i64 = 3 * 60 * 60;

/// A moment in Sao Paulo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// The day.
    pub(super) day: NaiveDate,
    /// Seconds since midnight; `None` of a day without a time.
    pub(super) second: Option<i64>,
}

/// The moment of `20261130`, `20261130120000.000[-3:BRT]` and the forms between, or of RFC 3339.
/// Without a zone the day is the bank's own. So it is at midnight, whatever the zone: that is how
/// banks write a day without a time.
pub(super) fn moment_of(text: &str) -> Option<Moment> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        let (local, zone) = (at.naive_local(), i64::from(at.offset().local_minus_utc()));
        return in_sao_paulo(local.date(), i64::from(local.time().num_seconds_from_midnight()), Some(zone));
    }
    let (moment, zone) = text.split_once('[').map_or((text, None), |(moment, zone)| (moment, Some(zone)));
    let moment = moment.trim_end();
    let (digits, part) = moment.split_once('.').map_or((moment, None), |(digits, part)| (digits, Some(part)));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let zone = match zone {
        None => None,
        Some(zone) => Some(zone_seconds(zone)?),
    };
    let is_part = part.is_none_or(|part| part.len() == 3 && all_digits(part));
    if !matches!(digits.len(), 8 | 12 | 14) || !all_digits(digits) || !is_part {
        return None;
    }
    let of_day = |at: usize, end: i64| match digits.get(at..at + 2) {
        None => Some(0),
        Some(text) => text.parse::<i64>().ok().filter(|number| *number < end),
    };
    let (hour, minute, second) = (of_day(8, 24)?, of_day(10, 60)?, of_day(12, 61)?);
    let day = NaiveDate::parse_from_str(digits.get(..8)?, "%Y%m%d").ok()?;
    let seconds = hour * 3_600 + minute * 60 + second;
    if digits.len() == 8 {
        return Some(Moment { day, second: None });
    }
    in_sao_paulo(day, seconds, zone)
}

/// The moment in Sao Paulo of a day and its seconds at a bank, `zone` seconds ahead of UTC.
fn in_sao_paulo(day: NaiveDate, seconds: i64, zone: Option<i64>) -> Option<Moment> {
    let Some(zone) = zone.filter(|_| seconds > 0) else { return Some(Moment { day, second: Some(seconds) }) };
    let local = seconds - zone - BEHIND_UTC_SECONDS;
    let day = day.checked_add_signed(TimeDelta::days(local.div_euclid(DAY_SECONDS)))?;
    Some(Moment { day, second: Some(local.rem_euclid(DAY_SECONDS)) })
}

/// Seconds ahead of UTC of `-3:BRT]`, `-3]`, `+5.5:IST]`, `-0300]`, `GMT]` or `BRT]`.
fn zone_seconds(text: &str) -> Option<i64> {
    let zone = text.trim_end().strip_suffix(']').filter(|zone| zone.len() <= 16)?.trim();
    match zone {
        "GMT" | "UTC" | "Z" => return Some(0),
        "BRT" => return Some(-BEHIND_UTC_SECONDS),
        _ => {}
    }
    let hours = zone.split_once(':').map_or(zone, |(hours, _)| hours);
    let (sign, hours) = match hours.strip_prefix('-') {
        Some(hours) => (-1, hours),
        None => (1, hours.strip_prefix('+').unwrap_or(hours)),
    };
    let (whole, part) = hours.split_once('.').unwrap_or((hours, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(part) || part.len() > 2 {
        return None;
    }
    let part = part.parse::<i64>().ok()? * if part.len() == 1 { 360 } else { 36 };
    let whole = match whole.len() {
        1 | 2 => whole.parse::<i64>().ok()? * 3_600,
        4 => whole[..2].parse::<i64>().ok()? * 3_600 + whole[2..].parse::<i64>().ok()? * 60,
        _ => return None,
    };
    Some(sign * (whole + part)).filter(|seconds| seconds.abs() <= 14 * 3_600)
}

/// An amount with a sign, in reais; gives centavos, and the decimal mark if there is one. The mark
/// is a point or a comma. The other one of them may stand between groups of three digits. Digits
/// below a centavo must be 0. `1.234` could be either amount, and is refused.
pub(super) fn amount_of(text: &str) -> Option<(Centavos, Option<char>)> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start();
    let mark = digits.chars().rev().find(|character| matches!(character, '.' | ','));
    let (whole, part) = mark.and_then(|mark| digits.rsplit_once(mark)).unwrap_or((digits, ""));
    let group_mark = if mark == Some(',') { '.' } else { ',' };
    let mut groups = whole.split(group_mark);
    let first = groups.next().unwrap_or_default();
    let is_grouped = first.len() < whole.len();
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if is_grouped && (!(1..=3).contains(&first.len()) || groups.any(|group| group.len() != 3)) {
        return None;
    }
    let whole = whole.replace(group_mark, "");
    let could_be_group = part.len() == 3 && !is_grouped && matches!(whole.len(), 1..=3) && !whole.starts_with('0');
    if !all_digits(&whole) || !all_digits(part) || whole.len() > 12 || part.len() > 8 || could_be_group {
        return None;
    }
    if mark.is_some() && part.is_empty() || mark.is_none() && whole.is_empty() {
        return None;
    }
    let (cents, below) = part.split_at(part.len().min(2));
    if below.bytes().any(|byte| byte != b'0') {
        return None;
    }
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let amount = sign * (whole * 100 + format!("{cents:0<2}").parse::<i64>().ok()?);
    (-AMOUNT_MAX.0..=AMOUNT_MAX.0).contains(&amount).then_some((Centavos(amount), mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, day).unwrap()
    }

    #[test]
    fn a_day_is_that_of_sao_paulo_where_there_is_a_zone() {
        for (text, expected) in [
            ("20261130", Some(30)),
            ("202611300130", Some(30)),
            ("20261130013000.000", Some(30)),
            ("20261130013000[-3:BRT]", Some(30)),
            ("20261130013000 [-03:EST]", Some(30)),
            ("20261130013000[-0300:BRT]", Some(30)),
            ("20261130013000[BRT]", Some(30)),
            ("20261130013000[GMT]", Some(29)),
            ("20261130013000.000[+0:UTC]", Some(29)),
            ("20261130030000[0:GMT]", Some(30)),
            ("20261130000000[0:GMT]", Some(30)),
            ("20261130000000.000[-3]", Some(30)),
            ("20261129230000[-5:EST]", Some(30)),
            ("20261129233000[-3.5]", Some(30)),
            ("20261129233000[-3.00:BRT]", Some(29)),
            ("2026-11-30T00:00:00Z", Some(30)),
            ("2026-11-30T01:30:00.585Z", Some(29)),
            ("2026-11-30T01:30:00-03:00", Some(30)),
            ("20261130[-3:BRT", None),
            ("20261130[x:BRT]", None),
            ("20261130[15:X]", None),
            ("2026113", None),
            ("20261130999999", None),
            ("20261130120000.0", None),
            ("00000000", None),
            ("2026-11-30", None),
        ] {
            assert_eq!(moment_of(text).map(|moment| moment.day), expected.map(day), "{text}");
        }
        for (text, second) in [
            ("20261130", None),
            ("20261130000000[-3:BRT]", Some(0)),
            ("202611300000", Some(0)),
            ("20261130030000[0:GMT]", Some(0)),
            ("20261130235959[-3:BRT]", Some(86_399)),
        ] {
            assert_eq!(moment_of(text).unwrap().second, second, "{text}");
        }
    }

    #[test]
    fn amounts_are_read_in_every_form_that_has_one_meaning() {
        for (text, expected) in [
            ("50", Some(5_000)),
            ("50.0000", Some(5_000)),
            ("50,0", Some(5_000)),
            ("-,50", Some(-50)),
            ("-.50", Some(-50)),
            ("+.5", Some(50)),
            ("-1.234,56", Some(-123_456)),
            ("-1,234.56", Some(-123_456)),
            ("1.234.567,8", Some(123_456_780)),
            ("1,234.500", Some(123_450)),
            ("1234.500", Some(123_450)),
            ("0.500", Some(50)),
            (" - 10,00 ", Some(-1_000)),
            ("+ 10.00", Some(1_000)),
            ("0,00", Some(0)),
            ("1.234", None),
            ("-1,234", None),
            ("12.345", None),
            ("1.097.01", None),
            ("1.234.567", None),
            ("1.23,45", None),
            (",234.56", None),
            ("1,2345.00", None),
            ("50.005", None),
            ("50.0050", None),
            ("50.", None),
            (".", None),
            ("", None),
            ("-", None),
            ("--5", None),
            ("1 000,00", None),
            ("1e3", None),
            ("R$ 97,01", None),
            ("9999999999999", None),
        ] {
            assert_eq!(amount_of(text).map(|(amount, _)| amount.0), expected, "{text}");
        }
        assert_eq!(amount_of("1.234,56").unwrap().1, Some(','));
        assert_eq!(amount_of("7").unwrap().1, None);
    }
}
