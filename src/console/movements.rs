//! Money per minute by kind: a small picture for each kind, of the last hour, and the same figures
//! as a table.

use std::fmt::Write as _;
use std::iter;

use actors::engine::{MinuteSums, MovementKind, MovementSum};
use ledger::time::{Minute, Timestamp};
use maud::{Markup, PreEscaped, html};

use crate::console::show;
use crate::console::show::Head::{Amount, Text};
use crate::console::words::{self, Word};
use crate::http::language::Language;

/// Minutes that a picture shows.
const SHOWN: u32 = 60;
/// Units of a picture: five for each minute, and its height.
const BAR: u32 = 5;
const HEIGHT: i128 = 40;

/// The pictures and the table of the minutes through `now`.
pub fn drawn(language: Language, now: Timestamp, minutes: &[MinuteSums]) -> Markup {
    let say = |word: Word| word.text(language);
    let last = Minute(u32::try_from(now.0.max(0) / 60_000).unwrap_or(u32::MAX));
    let first = Minute(last.0.saturating_sub(SHOWN - 1));
    let of_hour: Vec<_> = minutes.iter().filter(|sums| sums.minute >= first).copied().collect();
    html! {
        section.card aria-labelledby="movements" {
            h2 id="movements" { (say(words::MONEY_BY_MINUTE)) }
            div.movements {
                @for kind in MovementKind::ALL { (of_kind(language, kind, first, &of_hour)) }
            }
            (sums_table(language, last, minutes))
            details id="minutes" {
                summary { (say(words::MINUTE_BY_MINUTE)) }
                @if of_hour.is_empty() { p.dim { (say(words::NOTHING)) } } @else {
                    (show::scrolled(say(words::MINUTE_BY_MINUTE), minutes_table(language, &of_hour)))
                }
            }
        }
    }
}

/// A kind in words.
fn word(kind: MovementKind) -> Word {
    match kind {
        MovementKind::CardCaptured => words::MOVED_CARD,
        MovementKind::PixPaid => words::MOVED_PIX,
        MovementKind::CardRefused => words::MOVED_REFUSED,
        MovementKind::Refunded => words::MOVED_REFUNDED,
        MovementKind::CashedOut => words::MOVED_CASHOUT,
        MovementKind::Withdrawn => words::MOVED_WITHDRAWN,
    }
}

/// The bar of a sum stands for its money, and for their number where no money moves.
fn height(kind: MovementKind, sum: MovementSum) -> i128 {
    if kind == MovementKind::CardRefused { sum.count.into() } else { sum.centavos }
}

fn sum_of<'a>(kind: MovementKind, minutes: impl Iterator<Item = &'a MinuteSums>) -> MovementSum {
    let mut sum = MovementSum::default();
    minutes.for_each(|sums| sum.add(sums.of(kind)));
    sum
}

/// A sum as text: its money and its number.
fn amount(language: Language, kind: MovementKind, sum: MovementSum) -> String {
    let count = show::count(language, sum.count);
    if kind == MovementKind::CardRefused { count } else { format!("{} ({count})", show::money(language, sum.centavos)) }
}

fn of_kind(language: Language, kind: MovementKind, first: Minute, minutes: &[MinuteSums]) -> Markup {
    let (name, sum) = (word(kind).text(language), sum_of(kind, minutes.iter()));
    let highest = minutes.iter().map(|sums| height(kind, sums.of(kind))).max().unwrap_or_default().max(1);
    let mut bars = String::new();
    for sums in minutes {
        let high = (height(kind, sums.of(kind)) * HEIGHT + highest - 1) / highest;
        if high > 0 {
            let x = (sums.minute.0 - first.0) * BAR;
            let _written = write!(bars, "<rect x=\"{x}\" y=\"{}\" width=\"4\" height=\"{high}\"/>", HEIGHT - high);
        }
    }
    let (title, description) = (format!("moved-{}", kind as u8), format!("moved-{}-what", kind as u8));
    let described = format!("{}: {}", words::LAST_HOUR.text(language), amount(language, kind, sum));
    html! {
        div {
            p { (name) ": " strong { (amount(language, kind, sum)) } }
            svg.bars viewBox={"0 0 " (SHOWN * BAR) " " (HEIGHT)} preserveAspectRatio="none" role="img" aria-labelledby=(title) aria-describedby=(description) {
                title id=(title) { (name) }
                desc id=(description) { (described) }
                (PreEscaped(bars))
            }
        }
    }
}

/// The sums of the last minute, ten minutes, hour and three hours.
fn sums_table(language: Language, last: Minute, minutes: &[MinuteSums]) -> Markup {
    let say = |word: Word| word.text(language);
    let spans = [(words::LAST_MINUTE, 1), (words::LAST_TEN, 10), (words::LAST_HOUR, 60), (words::LAST_THREE, 180)];
    let within = |length: u32| minutes.iter().filter(move |sums| sums.minute.0 + length > last.0);
    let heads: Vec<_> = iter::once(Text(words::KIND)).chain(spans.map(|(span, _)| Amount(span))).collect();
    let rows = html! {
        @for kind in MovementKind::ALL {
            tr {
                th scope="row" { (say(word(kind))) }
                @for (_, length) in spans { td.amount { (amount(language, kind, sum_of(kind, within(length)))) } }
            }
        }
    };
    show::scrolled(say(words::MONEY_BY_MINUTE), show::table(language, &heads, rows))
}

/// Every minute of the last hour that had movements, newest first.
fn minutes_table(language: Language, minutes: &[MinuteSums]) -> Markup {
    let kinds = MovementKind::ALL.into_iter().map(|kind| Amount(word(kind)));
    let heads: Vec<_> = iter::once(Text(words::WHEN)).chain(kinds).collect();
    let rows = html! {
        @for sums in minutes.iter().rev() {
            tr {
                td { (show::short_moment(language, sums.minute.start())) }
                @for kind in MovementKind::ALL {
                    @let sum = sums.of(kind);
                    td.amount { @if sum.count > 0 { (amount(language, kind, sum)) } }
                }
            }
        }
    };
    show::table(language, &heads, rows)
}
