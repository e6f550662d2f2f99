//! Rows 3, 13 and 14: charges that come at a fixed rate, whatever the server does.

use std::time::Duration;

use crate::load::{Measured, closed, open_loads};
use crate::machine::open_files_max;
use crate::report::{Report, Row, latency, median, percent, rate_and_latency, thousands};
use crate::server::Shopfront;
use crate::{Plan, ROUNDS};

/// Connections of a load that the server can bear.
const CONNECTIONS: usize = 256;
/// Connections of one that it cannot: nearly all that a listener takes, so that it is the server
/// that has to refuse.
const CONNECTIONS_OVERLOADED: usize = 4_000;
/// Files that are open beside connections, at most.
const OTHER_FILES: usize = 300;

/// How long a turn of row 13 lasts.
const TURN: Duration = Duration::from_secs(1);
/// How often the three loads of row 13 take turns; a quarter of it in a quick run.
const TURNS: usize = 24;
/// Their orders: each load comes as often after each other one.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]];

/// A load at a fixed rate, and what closed loads could do just before it, charges a second.
struct Round {
    maximum: f64,
    measured: Measured,
}

/// Measures what is wanted of these rows.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if plan.wants(&["3"]) {
        at_seventy_percent(plan, report, front);
    }
    if plan.wants(&["13"]) {
        beside_a_loud_merchant(plan, report, front);
    }
    if plan.wants(&["14"]) {
        at_twice_the_maximum(plan, report, front);
    }
}

fn p99(measured: &Measured) -> f64 {
    measured.ms_at(0.99)
}

/// The rate of row 1 at this moment.
fn maximum(plan: &Plan, front: &Shopfront) -> f64 {
    closed(front.address(), &front.charges(0..front.shops.len(), false), 64, plan.lasting() / 2).rate()
}

/// A part of the maximum, or more than that, by all merchants.
fn rounds(plan: &Plan, front: &Shopfront, part: f64, connections: usize) -> Vec<Round> {
    let requests = front.charges(0..front.shops.len(), false);
    let round = |_| {
        let maximum = maximum(plan, front);
        let load = (&requests, part * maximum, connections);
        Round { maximum, measured: open_loads(front.address(), &[load], plan.lasting()).swap_remove(0) }
    };
    (0..ROUNDS).map(round).collect()
}

fn at_seventy_percent(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let rounds = rounds(plan, front, 0.7, CONNECTIONS);
    let Round { maximum, measured } = median(rounds, |round| p99(&round.measured));
    let (done, p99_9) = (thousands(measured.rate()), measured.ms_at(0.999));
    report.of(&front.store).add(Row {
        number: "3",
        what: "at 70 % of row 1, open loop",
        load: format!("{}/s, 100 merchants", thousands(0.7 * maximum)),
        figure: format!("{done}/s, {}, p99.9 {p99_9:.2} ms", latency(&measured)),
        cpu: Some(measured.cpu_each()),
        target: Some(("p99 ≤ 10 ms", p99(&measured) <= 10.0)),
    });
}

/// The others send a twentieth of the maximum: alone, beside one merchant that sends nine times
/// that, and beside the same load by all merchants. The last tells what the load does, and so what
/// the one merchant does. The three take turns of a second, each in each place.
fn beside_a_loud_merchant(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let (others, loud) = (front.charges(1..front.shops.len(), false), front.charges(0..1, false));
    let all = front.charges(0..front.shops.len(), false);
    let maximum = maximum(plan, front);
    let (of_others, of_loud) = (0.05 * maximum, 0.45 * maximum);
    let quiet = (&others, of_others, CONNECTIONS);
    let beside: [&[_]; 3] = [&[], &[(&loud, of_loud, CONNECTIONS)], &[(&all, of_loud, CONNECTIONS)]];
    let turn = |loads: &[_]| p99(&open_loads(front.address(), &[&[quiet], loads].concat(), TURN)[0]);
    let mut times = [const { Vec::new() }; 3];
    for order in ORDERS.iter().cycle().take(plan.count(TURNS).max(ORDERS.len())) {
        for which in order {
            times[*which].push(turn(beside[*which]));
        }
    }
    let [without, with, spread] = times;
    let mut lines = report.of(&front.store);
    let line = |what, load, times: &[f64], target: Option<(&'static str, f64)>| {
        let ratios = times.iter().zip(&without).map(|(with, without)| with / without);
        let [low, ratio, high] = quartiles(ratios.collect());
        let [[_, without, _], [_, with, _]] = [&without, times].map(|times| quartiles(times.to_vec()));
        Row {
            number: "13",
            what,
            load,
            figure: format!("{ratio:.2} × ({low:.2} to {high:.2}): {without:.2} ms without it, {with:.2} with"),
            cpu: None,
            target: target.map(|(text, most)| (text, ratio <= most)),
        }
    };
    let (few, many) = (thousands(of_others), thousands(of_loud));
    lines.add(line(
        "the others' p99 beside one with 90 % of the load",
        format!("99 merchants {few}/s, one {many}/s"),
        &with,
        Some(("≤ 1.5 ×", 1.5)),
    ));
    lines.add(line("… beside the same load by all", format!("99 merchants {few}/s, all {many}/s"), &spread, None));
}

/// The quartiles: a quarter is below the first, half below the second, three quarters below the
/// last.
fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[quarter * (values.len() - 1) / 4])
}

fn at_twice_the_maximum(plan: &Plan, report: &mut Report, front: &Shopfront) {
    // Both ends of each are here.
    let connections = CONNECTIONS_OVERLOADED.min(open_files_max().saturating_sub(OTHER_FILES) / 2);
    let rounds = rounds(plan, front, 2.0, connections);
    let Round { maximum, measured } = median(rounds, |round| round.measured.rate() / round.maximum);
    let mut lines = report.of(&front.store);
    let line = |what, figure, target| Row {
        number: "14",
        what,
        load: format!("{}/s, {} connections", thousands(2.0 * maximum), thousands(connections as f64)),
        figure,
        cpu: Some(measured.cpu_each()),
        target,
    };
    lines.add(line(
        "at twice row 1, open loop: goodput, of row 1",
        format!("{}: {}", percent(measured.rate(), maximum), rate_and_latency(&measured)),
        Some(("≥ 60 %", measured.rate() >= 0.6 * maximum)),
    ));
    lines.add(line(
        "… what is accepted",
        format!("p99 {:.2} ms", p99(&measured)),
        Some(("p99 ≤ 50 ms", p99(&measured) <= 50.0)),
    ));
    let refused_ms = |quantile| measured.refused.value_at_quantile(quantile) as f64 / 1_000.0;
    let (share, p50, p99) =
        (percent(measured.refused.len() as f64, measured.answers() as f64), refused_ms(0.5), refused_ms(0.99));
    lines.add(line("… answered 503", format!("{share} of all answers, p50 {p50:.2}, p99 {p99:.2} ms"), None));
    lines.add(line(
        "… never sent, as no connection was free",
        format!("{} requests", thousands(measured.unsent as f64)),
        None,
    ));
}
