//! Picture of one charge: payer, acquirer or institution, and the parts of seller, recipients and
//! platform, with widths by amount; and the same figures as a table.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, html};
use strum::IntoStaticStr;

use crate::show;
use crate::table::Table;
use crate::{Word, words};
use web::language::Language;

/// An amount of a charge and who gets it.
pub(crate) struct ChargePart {
    /// Who gets it.
    pub name: String,
    /// Where the name leads, if anywhere.
    pub link: Option<String>,
    /// More about it: fees, or when it falls due.
    pub detail: Option<Markup>,
    /// Centavos; below zero when fees exceed the seller's part.
    pub amount: i64,
    /// Whose part it is.
    pub of: PartOf,
}

/// Whose part it is; each has a color.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum PartOf {
    /// The merchant.
    Seller,
    /// A recipient of a split.
    Recipient,
    /// The platform.
    Platform,
}

impl PartOf {
    fn class(self) -> &'static str {
        self.into()
    }
}

/// The charge that is drawn.
pub(crate) struct Flow<'a> {
    /// The heading, which names the picture.
    pub heading: Word,
    /// Who took the money from the payer; `None` where nobody did, and only the table is shown.
    pub rail: Option<Word>,
    /// The total, centavos.
    pub total: i64,
    /// The parts, whose sum is the total.
    pub parts: &'a [ChargePart],
}

/// Units of the picture: 640 wide; its height follows from the number of parts.
const WIDTH: i64 = 640;
const BAR: i64 = 12;
const MIDDLE: i64 = 260;
const ENDS: i64 = 460;
const TOP: i64 = 40;
/// Height of the whole amount.
const FULL: i64 = 200;
const GAP: i64 = 34;
/// Parts that the picture shows by themselves.
const PARTS_MAX: usize = 7;
/// Parts that the table shows by themselves; the others are one row.
const ROWS_MAX: usize = 20;
/// Characters of a name in the description of the picture.
const TOLD_MAX: usize = 40;

/// The picture and its table.
pub(crate) fn drawn(language: Language, flow: &Flow<'_>) -> Markup {
    let say = |word: Word| word.text(language);
    html! {
        section.card aria-labelledby="flow" {
            h2 id="flow" { (say(flow.heading)) }
            @if let Some(rail) = flow.rail { (picture(language, flow, rail)) }
            (table(language, flow))
        }
    }
}

fn table(language: Language, flow: &Flow<'_>) -> Markup {
    let (rows, others) = rows_and_others(flow.parts);
    let count = show::count(language, others.len() as u64);
    let others = (!others.is_empty()).then(|| ChargePart {
        name: format!("{} ({count})", words::OTHER_PARTS.text(language)),
        link: None,
        detail: None,
        amount: others.iter().map(|part| part.amount).sum(),
        of: PartOf::Recipient,
    });
    Table::of(language, flow.heading, rows.into_iter().chain(&others))
        .text(words::SHARE, |part| {
            html! {
                span.chip.(part.of.class()) {} " "
                @if let Some(link) = &part.link { a href=(link) { bdi { (part.name) } } } @else { bdi { (part.name) } }
                @if let Some(detail) = &part.detail { " " span.dim { (detail) } }
            }
        })
        .amount(words::AMOUNT, |part| show::money(language, part.amount.into()))
        .sums([show::money(language, flow.total.into())])
        .shown()
}

/// The parts that the table shows by themselves: those of the seller and the platform and the first
/// recipients; and the others.
fn rows_and_others(parts: &[ChargePart]) -> (Vec<&ChargePart>, Vec<&ChargePart>) {
    let mut recipients = 0;
    parts.iter().partition(|part| {
        recipients += usize::from(part.of == PartOf::Recipient);
        part.of != PartOf::Recipient || recipients <= ROWS_MAX
    })
}

/// What the picture shows: the largest parts, and the rest of them as one.
fn shown(language: Language, parts: &[ChargePart]) -> Vec<(String, i64, &'static str)> {
    let mut rows: Vec<_> = parts.iter().filter(|part| part.amount > 0).collect();
    let mut rest = 0;
    while rows.len() > PARTS_MAX {
        let recipients = rows.iter().enumerate().filter(|(_, part)| part.of == PartOf::Recipient);
        let Some((place, _)) = recipients.min_by_key(|(_, part)| part.amount) else { break };
        rest += rows.remove(place).amount;
    }
    let mut shown: Vec<_> = rows.iter().map(|part| (part.name.clone(), part.amount, part.of.class())).collect();
    if rest > 0 {
        shown.push((words::OTHER_RECIPIENTS.text(language).to_owned(), rest, PartOf::Recipient.class()));
    }
    shown
}

fn picture(language: Language, flow: &Flow<'_>, rail: Word) -> Markup {
    let say = |word: Word| word.text(language);
    let parts = shown(language, flow.parts);
    let whole = parts.iter().map(|(_, amount, _)| amount).sum::<i64>().max(1);
    let height = TOP + FULL + GAP * parts.len().max(1) as i64;
    let amount = show::money(language, flow.total.into());
    let sentences: Vec<_> = parts
        .iter()
        .map(|(name, amount, _)| format!("{}: {}", shortened(name, TOLD_MAX), show::money(language, (*amount).into())))
        .collect();
    html! {
        svg.flow viewBox={"0 0 " (WIDTH) " " (height)} role="img" aria-labelledby="flow-title flow-told" {
            title id="flow-title" { (say(flow.heading)) }
            desc id="flow-told" { (say(words::PAYER)) ", " (say(rail)) ": " (amount) ". " (sentences.join("; ")) }
            (rectangle("band", BAR, TOP, MIDDLE - BAR, FULL))
            (rectangle("bar", 0, TOP, BAR, FULL))
            (rectangle("bar", MIDDLE, TOP, BAR, FULL))
            text x="0" y=(TOP - 12) { (say(words::PAYER)) }
            text x=(MIDDLE) y=(TOP - 12) text-anchor="middle" { (say(rail)) }
            text x="0" y=(TOP + FULL + 22) { (amount) }
            (branches(language, &parts, whole))
        }
    }
}

fn branches(language: Language, parts: &[(String, i64, &'static str)], whole: i64) -> Markup {
    let mut drawn = String::new();
    let (mut from, mut to) = (TOP, TOP);
    for (name, amount, class) in parts {
        let tall = i64::try_from(i128::from(*amount) * i128::from(FULL) / i128::from(whole)).unwrap_or(FULL).max(1);
        let (left, bend) = (MIDDLE + BAR, (MIDDLE + BAR + ENDS) / 2);
        let path = format!(
            "M{left} {from}C{bend} {from} {bend} {to} {ENDS} {to}V{}C{bend} {} {bend} {} {left} {}Z",
            to + tall,
            to + tall,
            from + tall,
            from + tall
        );
        let label = ENDS + BAR + 8;
        let middle = to + tall / 2;
        let short = shortened(name, 20);
        let amount = show::money(language, (*amount).into());
        let branch = html! {
            path class={"band " (class)} d=(path) {}
            (rectangle(&format!("bar {class}"), ENDS, to, BAR, tall))
            text x=(label) y=(middle) { (short) }
            text.dim x=(label) y=(middle + 16) { (amount) }
        };
        let _written = write!(drawn, "{}", branch.into_string());
        from += tall;
        to += tall + GAP;
    }
    PreEscaped(drawn)
}

/// A text of at most so many characters.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() > most { text.chars().take(most - 1).chain(['…']).collect() } else { text.to_owned() }
}

fn rectangle(class: &str, x: i64, y: i64, width: i64, height: i64) -> Markup {
    html! { rect class=(class) x=(x) y=(y) width=(width) height=(height) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, amount: i64, of: PartOf) -> ChargePart {
        ChargePart { name: name.to_owned(), link: None, detail: None, amount, of }
    }

    #[test]
    fn small_recipients_are_drawn_as_one_and_listed_by_themselves() {
        let mut parts = vec![part("Loja", 5_000, PartOf::Seller)];
        parts.extend((1..=20).map(|number| part(&format!("R{number}"), number, PartOf::Recipient)));
        parts.push(part("Comissão", 90, PartOf::Platform));
        let shown = shown(Language::English, &parts);
        assert_eq!(shown.len(), PARTS_MAX + 1);
        assert_eq!(shown.iter().map(|(_, amount, _)| amount).sum::<i64>(), 5_000 + 210 + 90);
        assert_eq!(shown.last().unwrap().0, "Other recipients");
        let flow = Flow { heading: words::FLOW, rail: Some(words::ACQUIRER), total: 5_300, parts: &parts };
        let page = drawn(Language::English, &flow).into_string();
        assert!(page.contains("</span> <bdi>R1</bdi>") && page.contains("R$0.01"), "{page}");
    }

    #[test]
    fn a_hostile_name_is_text() {
        let parts = [part("<script>alert('x')</script>\"&", 1, PartOf::Seller)];
        let flow = Flow { heading: words::FLOW, rail: Some(words::ACQUIRER), total: 1, parts: &parts };
        let page = drawn(Language::Portuguese, &flow).into_string();
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    }
}
