//! Overview: assets, debts and income of the platform, and the length of the queue.

use actors::engine::Totals;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::daily_chart::{Series, bars};
use crate::queue::kind_word;
use crate::records::cut_link;
use crate::scope::Scope;
use crate::table::Table;
use crate::{Screen, Section, Visit, Word, show, wire_words, words};
use ops::health::readiness;
use ops::overview::{Overview, OverviewDay, overview};
use ops::queue;
use ops::queue_item::kind_name;
use ops::{Desk, DeskState};
use web::language::Language;

/// The overview. That of one merchant is the merchant's page.
pub(crate) async fn show(State(desk): DeskState, visit: Visit) -> Response {
    if let Scope::Merchant(_, id) = visit.scope {
        return Redirect::to(&visit.scope.of_path(&format!("/console/merchants/{}", id.uuid()))).into_response();
    }
    let body = figures(&desk, visit.language);
    visit.answer(Ok(Screen { section: Section::Overview, title: visit.say(words::OVERVIEW).to_owned(), body }))
}

/// Types of the platform's accounts by the beginning of their names. `true` where credits are the
/// sign of the type.
const TYPES: [(Word, &str, bool); 5] = [
    (words::HOLDS, "Assets:", false),
    (words::OWES, "Liabilities:", true),
    (words::EQUITY, "Equity:", true),
    (words::EARNED, "Income:", true),
    (words::SPENT, "Expenses:", false),
];

/// The books, and what waits.
fn figures(desk: &Desk, language: Language) -> Markup {
    let say = |word: Word| word.text(language);
    let Totals { through, is_balanced, kinds: totals } = desk.engine.totals();
    let sums = TYPES.map(|(heading, name, is_credit)| {
        let of = totals.iter().filter(|(account, _)| account.is_of_platform());
        let of_type = of.filter(|(account, _)| account.kind_name().starts_with(name));
        let net: i128 = of_type.map(|(_, balance)| balance.net()).sum();
        (heading, if is_credit { -net } else { net })
    });
    let now = desk.engine.now();
    let counts = desk.engine.queue_counts(|item| queue::is_shown(item, now).then(|| kind_name(item)));
    let total: usize = counts.values().sum();
    let waiting = queue::KINDS.map(|kind| (kind, counts.get(kind).copied().unwrap_or_default()));
    let readiness = readiness(desk);
    html! {
        section.card aria-labelledby="books" {
            h2 id="books" { (say(words::BOOKS)) }
            dl.figures {
                @for (heading, sum) in sums {
                    div { dt { (say(heading)) } dd { (show::money(language, sum)) } }
                }
            }
            p {
                @if is_balanced { (say(words::BALANCED)) } @else { strong { (say(words::UNBALANCED)) } }
                @if !through.is_empty() { " (" (say(words::THROUGH_RECORD)) " " (cut_link(language, &through)) ")" }
            }
            p {
                a href="/console/health" { (say(words::HEALTH)) } ": "
                @match &readiness {
                    Ok(()) => span.badge.good { (say(words::READY)) },
                    Err(problem) => { span.badge.bad { (say(words::NOT_READY)) } " " (show::problem(language, problem)) }
                }
            }
        }
        (last_days(language, &overview(desk)))
        section.card aria-labelledby="waits" {
            h2 id="waits" { (say(words::WAITS)) }
            @if total == 0 { p.dim { (say(words::NOTHING)) } }
            dl.figures {
                @for (kind, count) in waiting {
                    div { dt { a href={"/console/queue?kind=" (kind)} { (say(kind_word(kind))) } } dd { (count) } }
                }
            }
        }
    }
}

/// Sales, cards approved, and money in and out of the last days, drawn and as a table.
fn last_days(language: Language, of: &Overview) -> Markup {
    let say = |word: Word| word.text(language);
    let series = |heading, class, amount: fn(&OverviewDay) -> u64| Series {
        heading,
        class,
        amounts: of.days.iter().map(amount).collect(),
    };
    let sales = [
        series(words::SALES_BY_CARD, "seller", |day| day.card_amount),
        series(words::FEE_PIX, "platform", |day| day.pix_amount),
    ];
    let banks = [
        series(words::MONEY_IN, "seller", |day| day.money_in),
        series(words::MONEY_OUT, "platform", |day| day.money_out),
    ];
    let [first, last] = [of.days.first(), of.days.last()].map(|day| day.map_or("", |day| &day.date));
    let dates = [first, last].map(|date| show::day(language, date));
    let dates = [&*dates[0], &*dates[1]];
    let [captured, refused] = [
        of.days.iter().map(|day| day.card_count).sum::<u64>(),
        of.days.iter().map(|day| day.refused_count).sum::<u64>(),
    ];
    html! {
        section.card aria-labelledby="last-days" {
            h2 id="last-days" { (say(words::LAST_DAYS)) }
            h3 { (say(words::SALES_BY_DAY)) }
            (bars(language, ("sales", words::SALES_BY_DAY, false), dates, [&sales[0], &sales[1]]))
            h3 { (say(words::BANKS_BY_DAY)) }
            (bars(language, ("banks", words::BANKS_BY_DAY, true), dates, [&banks[0], &banks[1]]))
            @if captured + refused > 0 {
                dl.figures {
                    div { dt { (say(words::APPROVED)) } dd { (share(language, captured, captured + refused)) } }
                    div { dt { (say(words::CARDS_REFUSED)) } dd { (show::count(language, refused)) } }
                }
            }
            @if !of.refusals.is_empty() {
                h3 { (say(words::REFUSAL_REASONS)) }
                ul {
                    @for refusal in &of.refusals {
                        li { (say(wire_words::refusal(refusal.reason))) " (" code { (refusal.card_status) } "): " (show::count(language, refusal.count)) }
                    }
                }
            }
            details {
                summary { (say(words::FIGURES_BY_DAY)) }
                (by_day(language, &of.days))
            }
        }
    }
}

/// The days on which something happened, newest first.
fn by_day(language: Language, days: &[OverviewDay]) -> Markup {
    let moved = |day: &&OverviewDay| {
        day.card_count + day.pix_count + day.refused_count > 0 || day.money_in > 0 || day.money_out > 0
    };
    let amount = |amount: u64| show::money(language, amount.into());
    Table::of(language, words::LAST_DAYS, days.iter().rev().filter(moved))
        .text(words::DAY, |day| show::day(language, &day.date))
        .amount(words::SALES_BY_CARD, |day| amount(day.card_amount))
        .amount(words::FEE_PIX, |day| amount(day.pix_amount))
        .amount(words::APPROVED, |day| share(language, day.card_count, day.card_count + day.refused_count))
        .amount(words::MONEY_IN, |day| amount(day.money_in))
        .amount(words::MONEY_OUT, |day| amount(day.money_out))
        .shown()
}

/// A share of a count in percent, with one decimal; empty where there is nothing to share.
fn share(language: Language, part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let tenths = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
    let comma = if language == Language::Portuguese { ',' } else { '.' };
    format!("{}{comma}{}%", tenths / 10, tenths % 10)
}
