//! The rules as text tables: `given | when | then`, one line a case. Steps are separated by `;`
//! (see [`crate::world`]). After `then` stands `refused` with the rejection, `nothing` when no fact
//! came of it, or what must be seen afterwards as `key=value`.

use crate::world::{START, World, milliseconds, status_name};
use ledger::event::Event;
use ledger::money::percent_of;
use ledger::rail_word::AskedRailWord;
use ledger::rejection::Rejection;
use ledger::section::Sectioned;

#[test]
fn fees_are_what_the_price_list_says() {
    check(include_str!("cases/fees.txt"));
}

#[test]
fn splits_are_accepted_and_refused_in_order() {
    check(include_str!("cases/splits.txt"));
}

/// Rule 3 of interface 2.4: the number of splits is not limited.
#[test]
fn ten_thousand_splits_are_one_record() {
    let mut world = World::new();
    let splits: String = (0..5_000).map(|amount| format!(" ana={} bia=1", amount + 1)).collect();
    for step in [format!("open-card c 20000000 1x{splits}"), "capture c".to_owned()] {
        let before = world.journal.len();
        world.step(&step).unwrap();
        assert_eq!(world.journal.len(), before + 1);
    }
    assert_eq!(world.last_terms().splits.len(), 10_000);
    assert_eq!((world.recipient("ana").pending().0, world.recipient("bia").pending().0), (12_502_500, 5_000));
}

#[test]
fn a_charge_ends_once() {
    check(include_str!("cases/charges.txt"));
}

#[test]
fn money_falls_due_by_the_minute() {
    check(include_str!("cases/settlement.txt"));
}

#[test]
fn a_recipient_withdraws_all_that_is_available() {
    check(include_str!("cases/withdrawals.txt"));
}

#[test]
fn card_splits_are_anticipated_for_a_fee() {
    check(include_str!("cases/anticipation.txt"));
}

#[test]
fn a_recipient_pays_back_what_was_taken_back() {
    check(include_str!("cases/debts.txt"));
}

/// The state does not grow with history.
#[test]
fn nothing_is_kept_of_splits_that_are_over() {
    let mut world = World::new();
    let steps = [
        "open-card c 10000 1x ana=2000 ana=300",
        "capture c",
        "anticipate ana d2 c.0",
        "take-back c 1=0+100",
        "mature ana",
        "wait 31d",
        "withdraw ana w",
    ];
    steps.iter().for_each(|step| drop(world.step(step).unwrap()));
    let mut state = world.recipient("ana");
    let sections = state.take_touched();
    assert!(sections.len() > 2, "{sections:?}");
    let left: Vec<_> = sections.into_iter().filter(|section| state.section(*section).is_some()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_recipient_is_registered_and_reviewed() {
    check(include_str!("cases/recipients.txt"));
}

#[test]
fn refunds_are_borne_by_the_seller() {
    check(include_str!("cases/refunds.txt"));
}

#[test]
fn disputes_hold_what_they_claim() {
    check(include_str!("cases/disputes.txt"));
}

#[test]
fn a_group_is_opened_once() {
    check(include_str!("cases/merchant.txt"));
}

#[test]
fn a_cashout_holds_its_gross_and_ends_once() {
    check(include_str!("cases/cashout.txt"));
}

/// An order that is on its way is not ended by two operators.
#[test]
fn operators_end_what_a_rail_leaves_unknown() {
    check(include_str!("cases/rail_words.txt"));
}

/// A first word knows of the sendings of its own order, and lapses after a day without a second
/// one.
#[test]
fn a_first_word_waits_for_a_day() {
    let mut world = World::new();
    let steps = [
        "open-pix p 8000",
        "pay p",
        "refund r p 3000",
        "approve-refund r p",
        "refund s p 1000",
        "approve-refund s p",
        "wait 1h",
        "try r",
        "wait 1m",
        "word r no p",
        "wait 1m",
        "try s",
    ];
    steps.iter().for_each(|step| drop(world.step(step).unwrap()));
    let at = |mark: &str| world.journal.iter().find(|record| record.events[0].name() == mark).unwrap().effective_at;
    let (said_at, sent_at) = (at("rail_word_asked"), at("rail_tried"));
    let open_at = |now| AskedRailWord::in_records(&world.journal, world.id("r"), now);
    let last = said_at.plus_ms(24 * 60 * 60 * 1000 - 1);
    assert_eq!(open_at(last).map(|asked| (asked.at, asked.tried_at)), Some((said_at, Some(sent_at))));
    assert_eq!(open_at(last.plus_ms(1)), None);
}

#[test]
fn subscriptions_are_charged_on_their_dates() {
    check(include_str!("cases/plans.txt"));
}

fn check(table: &str) {
    let cases = table.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let cases: Vec<_> = cases.map(|(index, line)| (index + 1, line, failures_of(line))).collect();
    assert!(!cases.is_empty(), "a table without cases proves nothing");
    let failed = cases.iter().filter(|(.., failures)| !failures.is_empty());
    let report: Vec<_> = failed
        .map(|(number, line, failures)| format!("line {number}: {line}\n    {}", failures.join("\n    ")))
        .collect();
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

fn failures_of(line: &str) -> Vec<String> {
    let columns: Vec<&str> = line.split('|').map(str::trim).collect();
    let [given, when, then] = columns[..] else { return vec!["a case is given | when | then".to_owned()] };
    let mut world = if given == "unopened" { World::unopened() } else { World::new() };
    for step in steps(given).filter(|step| *step != "unopened") {
        if let Err(refusal) = world.step(step) {
            return vec![format!("given {step}: refused {refusal:?}")];
        }
    }
    let mut outcome = Ok(Vec::new());
    for step in steps(when) {
        outcome = world.step(step);
    }
    surprises(&then.split_whitespace().collect::<Vec<_>>(), &world, &outcome)
}

fn steps(column: &str) -> impl Iterator<Item = &str> {
    column.split(';').map(str::trim).filter(|step| !step.is_empty())
}

fn surprises(then: &[&str], world: &World, outcome: &Result<Vec<Event>, Rejection>) -> Vec<String> {
    match (then, outcome) {
        ([], _) => vec!["nothing is expected".to_owned()],
        (["refused", expected @ ..], Err(refusal)) => {
            let (expected, found) = (expected.join(" "), format!("{refusal:?}"));
            if expected == found { Vec::new() } else { vec![format!("refused {found}, not {expected}")] }
        }
        (_, Err(refusal)) => vec![format!("refused {refusal:?}")],
        (["refused", ..], Ok(events)) => vec![format!("accepted: {events:?}")],
        (["nothing"], Ok(events)) if events.is_empty() => Vec::new(),
        (["nothing"], Ok(events)) => vec![format!("{events:?}")],
        (facts, Ok(events)) => facts.iter().filter_map(|fact| difference(fact, world, events)).collect(),
    }
}

fn difference(fact: &str, world: &World, events: &[Event]) -> Option<String> {
    let Some((key, expected)) = fact.split_once('=') else { return Some(format!("{fact} is no key=value")) };
    let found = seen(key, world, events);
    (found != expected).then(|| format!("{key} is {found}, not {expected}"))
}

fn seen(key: &str, world: &World, events: &[Event]) -> String {
    let since_start = |due: Option<ledger::time::Timestamp>| match due {
        Some(ledger::time::Timestamp(0)) => "at-once".to_owned(),
        Some(due) => readable(due.0 - START.0),
        None => "never".to_owned(),
    };
    match key.split_once('.') {
        None if key == "events" => events.iter().map(event_name).collect::<Vec<_>>().join(","),
        None if key == "open" => world.merchant.open_charges().len().to_string(),
        None if key == "plans" => {
            let enabled = world.merchant.plans().iter().filter(|plan| plan.enabled).count();
            format!("{enabled}/{}", world.merchant.plans().len())
        }
        None if key == "expires" => since_start(events.iter().find_map(|event| match event {
            Event::ChargeOpened { expires_at, .. } => *expires_at,
            _ => None,
        })),
        None if key == "asked" => world.merchant.needing_attention(world.now).count().to_string(),
        None if key == "cashouts" => world.merchant.cashouts_needing_attention(world.now).count().to_string(),
        None => figure_of(key, world),
        Some(("merchant", "pending")) => world.merchant.pending().to_string(),
        Some(("merchant", "available")) => world.merchant.available().to_string(),
        Some(("merchant", "reserved")) => world.merchant.reserved_cashout().to_string(),
        Some(("merchant", "deficit")) => world.merchant.deficit().to_string(),
        Some(("merchant", "held")) => world.merchant.reserved_for_disputes().to_string(),
        Some(("merchant", "unsent")) => world.merchant.repayments(world.now).count().to_string(),
        Some(("acquirer", "owes")) => {
            world.books.balance(world.ledger("platform"), ledger::account::Account::AcquirerReceivable).to_string()
        }
        Some(("bank", "settled")) => {
            world.books.balance(world.ledger("platform"), ledger::account::Account::BankSettlement).to_string()
        }
        Some(("acquirer", "kept")) => {
            world.books.balance(world.ledger("platform"), ledger::account::Account::AcquirerMdr).to_string()
        }
        Some(("drawn", part)) => adjusted(part, events),
        Some(("merchant", "next")) => since_start(world.merchant.next_due()),
        Some(("merchant", "profile")) => text(&world.merchant.profile().bytes),
        Some(("merchant", "keys")) => {
            let live = world.merchant.api_keys().values().filter(|key| !key.revoked).count();
            format!("{live}/{}", world.merchant.api_keys().len())
        }
        Some((name, "cycle")) => world.standing(name).map_or("none".to_owned(), |standing| standing.cycle.to_string()),
        Some((name, "next")) if world.is_subscription(name) => {
            since_start(world.standing(name).and_then(|standing| standing.next_charge_at()))
        }
        Some((name, "status")) if world.is_subscription(name) => match world.standing(name) {
            None => "ended".to_owned(),
            Some(standing) if standing.is_paused => "paused".to_owned(),
            Some(standing) => format!("{:?}", standing.status).to_lowercase(),
        },
        Some((name, "cycles")) => world.last_standing(name).map_or("none".to_owned(), |last| {
            let reason = last.unpaid_reason().map_or("", <&str>::from);
            let status = format!("{:?}", last.status).to_lowercase();
            format!("{status}:{}/{}:{reason}", last.paid_cycles(), last.unpaid_cycles())
        }),
        Some((name, "pending")) => world.recipient(name).pending().to_string(),
        Some((name, "available")) => world.recipient(name).available().to_string(),
        Some((name, "next")) => since_start(world.recipient(name).next_due()),
        Some((name, "reserved")) => world.recipient(name).reserved().to_string(),
        Some((name, "paid")) => world.recipient(name).paid().to_string(),
        Some((name, "owed")) => world.recipient(name).owed().to_string(),
        Some((name, "sends")) => world.recipient(name).to_send(world.now).is_some().to_string(),
        Some((name, "settles")) => {
            let withdrawal = world.recipient(name).standing().withdrawal.expect("a withdrawal is pending");
            let today = (world.now.0 / milliseconds("1d")) as u32;
            let days = withdrawal.settlements.iter().map(|part| format!("{}:{}", part.day - today, part.amount));
            days.collect::<Vec<_>>().join(",")
        }
        Some((name, "status")) => status_name(world.registration(name).status),
        Some((name, "review")) => match world.registration(name).bank_review {
            None => "none".to_owned(),
            Some(review) => format!("{review:?}").to_lowercase(),
        },
        Some((name, "data")) => text(&world.registration(name).profile.bytes),
        Some((name, "count")) => {
            let documents =
                world.merchant.recipients().iter().filter(|one| one.document == world.registration(name).document);
            documents.count().to_string()
        }
        Some((owner, what)) => panic!("nothing to see: {owner}.{what}"),
    }
}

/// What a refund or a dispute did: where its money came from or went to, the commission that came
/// back, what is taken back as `index:to_available+to_pending`.
fn adjusted(part: &str, events: &[Event]) -> String {
    let first = events.iter().find_map(|event| match (event, part) {
        (Event::RefundApproved { drawn, .. } | Event::DisputeOpened { drawn, .. }, "from") => {
            Some(format!("{}+{}+{}", drawn.from_pending, drawn.from_available, drawn.to_deficit))
        }
        (Event::DisputeOpened { exceeds, .. }, "exceeds") => Some(exceeds.unwrap_or_default().to_string()),
        (
            Event::DisputeReleased { to_pending, to_available, .. }
            | Event::DisputeReversed { to_pending, to_available, .. },
            "to",
        ) => Some(format!("{to_pending}+{to_available}")),
        (Event::RefundApproved { commission: c, .. }, "commission") => {
            Some(format!("{}+{}+{}+{}", c.mdr, c.antifraud, c.margin, c.pix))
        }
        (Event::RefundApproved { take_backs, .. }, "back") => {
            let debts =
                take_backs.iter().map(|debt| format!("{}:{}+{}", debt.index, debt.to_available, debt.to_pending));
            Some(debts.collect::<Vec<_>>().join(","))
        }
        _ => None,
    });
    first.unwrap_or_else(|| panic!("nothing to see: {part} of {events:?}"))
}

fn figure_of(key: &str, world: &World) -> String {
    let terms = world.last_terms();
    let amount = match key {
        "gross" => terms.seller_gross(),
        "mdr" => terms.commission.mdr,
        "antifraud" => terms.commission.antifraud,
        "margin" => terms.commission.margin,
        "pix" => terms.commission.pix,
        "commission" => terms.commission.total(),
        "seller" => terms.seller_net(),
        "total" => terms.amount,
        "initial" => terms.initial_fee.unwrap_or_default(),
        "percent" => return percent_of(terms.commission.total(), terms.seller_gross()).to_string(),
        "splits" => return terms.splits.iter().map(|split| split.amount.to_string()).collect::<Vec<_>>().join(","),
        _ => panic!("nothing to see: {key}"),
    };
    amount.to_string()
}

/// A variant's name.
pub(crate) fn event_name(event: &Event) -> String {
    let debug = format!("{event:?}");
    debug.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Milliseconds as the tables write them: a sum of parts, largest first; a moment before the start
/// has a minus.
fn readable(milliseconds: i64) -> String {
    let mut rest = milliseconds.abs();
    let mut parts = Vec::new();
    for unit in ["d", "h", "m", "s", "ms"] {
        let size = crate::world::milliseconds(&format!("1{unit}"));
        if rest >= size {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    let sign = if milliseconds < 0 { "-" } else { "" };
    format!("{sign}{}", if parts.is_empty() { "0ms".to_owned() } else { parts.join("+") })
}

#[test]
fn durations_are_read_as_they_are_written() {
    for text in ["30d", "29d+23h+59m+29s+499ms", "1ms"] {
        assert_eq!(readable(milliseconds(text)), text);
    }
}
