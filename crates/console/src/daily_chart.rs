//! Charts of figures by day, drawn as SVG: bars upwards and downwards from a line, or a line of
//! shares. The table below a chart has the same figures.

use maud::{Markup, html};

use crate::{Word, show};
use web::language::Language;

/// Units of the picture a day.
const DAY: usize = 8;
/// Height of the bars, and room for words above and below.
const FULL: u64 = 110;
const TOP: u64 = 20;

/// A series of amounts by day.
pub(crate) struct Series {
    pub(crate) heading: Word,
    /// Class of its color.
    pub(crate) class: &'static str,
    /// Centavos, the oldest day first.
    pub(crate) amounts: Vec<u64>,
}

/// Bars of two series: the second stands on the first one, or hangs below the line where
/// `is_downwards`. `dates` names the first and the last day.
pub(crate) fn bars(
    language: Language,
    (id, title, is_downwards): (&str, Word, bool),
    dates: [&str; 2],
    [one, other]: [&Series; 2],
) -> Markup {
    let days = one.amounts.iter().zip(&other.amounts);
    let tallest = |sum: fn((&u64, &u64)) -> u64| days.clone().map(sum).max().unwrap_or_default().max(1);
    let largest =
        if is_downwards { tallest(|(one, other)| *one.max(other)) } else { tallest(|(one, other)| one + other) };
    let room = if is_downwards { FULL / 2 } else { FULL };
    let tall = |amount: u64| u64::try_from(u128::from(amount) * u128::from(room) / u128::from(largest)).unwrap_or(room);
    let line = TOP + room;
    let sums = [one, other].map(|of| show::money(language, of.amounts.iter().map(|amount| i128::from(*amount)).sum()));
    let width = one.amounts.len().max(1) * DAY;
    html! {
        svg.daily viewBox={"0 0 " (width) " " (TOP + FULL + 20)} role="img" aria-labelledby={(id) "-title " (id) "-sums"} {
            title id={(id) "-title"} { (title.text(language)) }
            desc id={(id) "-sums"} {
                @for (of, sum) in [one, other].iter().zip(&sums) { (of.heading.text(language)) ": " (sum) ". " }
            }
            text x="0" y="12" { (show::money(language, largest.into())) }
            @for (place, (first, second)) in days.enumerate() {
                @let (x, [first, second]) = (place * DAY, [tall(*first), tall(*second)]);
                rect class=(one.class) x=(x) y=(line - first) width=(DAY - 1) height=(first) {}
                @let top = if is_downwards { line } else { line - first - second.min(line - first) };
                rect class=(other.class) x=(x) y=(top) width=(DAY - 1) height=(second) {}
            }
            path.axis d={"M0 " (line) "H" (width)} {}
            text x="0" y=(TOP + FULL + 16) { (dates[0]) }
            text x=(width) y=(TOP + FULL + 16) text-anchor="end" { (dates[1]) }
        }
        p.legend {
            @for (of, sum) in [one, other].iter().zip(&sums) {
                span { span class={"chip " (of.class)} aria-hidden="true" {} " " (of.heading.text(language)) ": " (sum) }
            }
        }
    }
}
