//! Rows 3, 13 and 14: charges that come at a fixed rate, whatever the server does.

use crate::load::{Measured, open_loads};
use crate::report::{Report, Row, latency, median, percent, rate_and_latency, thousands};
use crate::server::Shopfront;
use crate::{Plan, ROUNDS};

/// Connections of a load that the server can bear.
const CONNECTIONS: usize = 256;
/// Connections of one that it cannot: nearly all that a listener takes, so that it is the server that has to refuse.
const CONNECTIONS_OVERLOADED: usize = 4_000;

/// Measures what is wanted of these rows, where `maximum` is the rate of row 1.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront, maximum: f64) {
    if plan.wants(&["3"]) {
        at_seventy_percent(plan, report, front, maximum);
    }
    if plan.wants(&["13"]) {
        beside_a_loud_merchant(plan, report, front, maximum);
    }
    if plan.wants(&["14"]) {
        at_twice_the_maximum(plan, report, front, maximum);
    }
}

fn p99(measured: &Measured) -> f64 {
    measured.ms_at(0.99)
}

fn at_seventy_percent(plan: &Plan, report: &mut Report, front: &Shopfront, maximum: f64) {
    let (requests, rate) = (front.charges(0..front.shops.len(), false), 0.7 * maximum);
    let run = || open_loads(front.address(), &[(&requests, rate, CONNECTIONS)], plan.lasting()).swap_remove(0);
    let middle = median((0..ROUNDS).map(|_| run()).collect(), p99);
    report.add(Row {
        number: "3",
        what: "latency at 70 % of row 1's rate, open loop",
        load: format!("{}/s, 100 merchants", thousands(rate)),
        figure: format!(
            "{}, p99.9 {:.2} ms, {}/s done",
            latency(&middle),
            middle.ms_at(0.999),
            thousands(middle.rate())
        ),
        cpu: Some(middle.cpu_each()),
        target: Some(("p99 ≤ 10 ms", p99(&middle) <= 10.0)),
    });
}

/// The others send a twentieth of the maximum, with and without one merchant that sends nine times that.
fn beside_a_loud_merchant(plan: &Plan, report: &mut Report, front: &Shopfront, maximum: f64) {
    let (others, loud) = (front.charges(1..front.shops.len(), false), front.charges(0..1, false));
    let (of_others, of_loud) = (0.05 * maximum, 0.45 * maximum);
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let quiet = (&others, of_others, CONNECTIONS);
        without.push(open_loads(front.address(), &[quiet], plan.lasting()).swap_remove(0));
        let beside = [quiet, (&loud, of_loud, CONNECTIONS)];
        with.push(open_loads(front.address(), &beside, plan.lasting()).swap_remove(0));
    }
    let (without, with) = (median(without, p99), median(with, p99));
    let times = p99(&with) / p99(&without);
    report.add(Row {
        number: "13",
        what: "everybody else's p99 while one merchant takes 90 % of the load",
        load: format!("99 merchants {}/s, one {}/s", thousands(of_others), thousands(of_loud)),
        figure: format!("{times:.2} ×: p99 {:.2} ms without it, {:.2} with", p99(&without), p99(&with)),
        cpu: None,
        target: Some(("≤ 1.5 ×", times <= 1.5)),
    });
}

fn at_twice_the_maximum(plan: &Plan, report: &mut Report, front: &Shopfront, maximum: f64) {
    let (requests, rate) = (front.charges(0..front.shops.len(), false), 2.0 * maximum);
    let load = (&requests, rate, CONNECTIONS_OVERLOADED);
    let run = || open_loads(front.address(), &[load], plan.lasting()).swap_remove(0);
    let middle = median((0..ROUNDS).map(|_| run()).collect(), Measured::rate);
    let answered = (middle.times.len() + middle.refused.len()) as f64;
    let refused_ms = |quantile| middle.refused.value_at_quantile(quantile) as f64 / 1_000.0;
    let line = |what, figure, target| Row {
        number: "14",
        what,
        load: format!("{}/s, {CONNECTIONS_OVERLOADED} connections", thousands(rate)),
        figure,
        cpu: Some(middle.cpu_each()),
        target,
    };
    report.add(line(
        "twice row 1's rate, open loop: goodput, of row 1's rate",
        format!("{}: {}", percent(middle.rate(), maximum), rate_and_latency(&middle)),
        Some(("≥ 60 %", middle.rate() >= 0.6 * maximum)),
    ));
    report.add(line(
        "… p99 of what is accepted",
        format!("{:.2} ms", p99(&middle)),
        Some(("≤ 50 ms", p99(&middle) <= 50.0)),
    ));
    let refused = percent(middle.refused.len() as f64, answered);
    let (p50, p99) = (refused_ms(0.5), refused_ms(0.99));
    report.add(line(
        "… answered 503; never sent, as no connection was free",
        format!("{refused}, p50 {p50:.2}, p99 {p99:.2} ms; {}", thousands(middle.unsent as f64)),
        None,
    ));
}
