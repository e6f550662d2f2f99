//! Rows 3, 13 and 14: charges that come at a fixed rate, whatever the server does.

use std::time::Duration;

use crate::Plan;
use crate::load::{Load, LoadFigures, Requests, closed, loads};
use crate::machine::open_files_max;
use crate::report::{Report, Row, median, percent, thousands};
use crate::server::Shopfront;

/// Connections of a load that the server can bear.
const CONNECTIONS: usize = 256;
/// Connections of one that it cannot: nearly all that a listener takes, so that it is the server
/// that has to refuse.
const CONNECTIONS_OVERLOADED: usize = 4_000;
/// The load of row 14, of the maximum.
const OVERLOAD: f64 = 2.0;
/// Files that are open beside connections, at most.
const OTHER_FILES: usize = 300;

/// How long a turn lasts in rows 3 and 14; the maximum before it lasts half of that.
const TURN: Duration = Duration::from_secs(2);
/// How often rows 3 and 14 compare a load with the maximum; a sixth of it in a quick run.
const COMPARISONS: usize = 18;
/// How long a turn of row 13 lasts.
const SHORT_TURN: Duration = Duration::from_secs(1);
/// How often the three loads of row 13 take turns; a quarter of it in a quick run.
const SHORT_TURNS: usize = 24;
/// Their orders: each load comes as often after each other one.
const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [1, 0, 2], [2, 1, 0], [0, 2, 1], [1, 2, 0], [2, 0, 1]];

/// What loads at a fixed rate showed, each just after the maximum.
#[derive(Default)]
struct OpenTurns {
    /// The rate of row 1 before each turn.
    maxima: Vec<f64>,
    /// Goodput of each turn, as a part of that.
    parts: Vec<f64>,
    /// The p99 of each turn, milliseconds.
    p99s: Vec<f64>,
    /// All turns together.
    all: LoadFigures,
}

impl OpenTurns {
    /// A turn: the maximum, then this multiple of it, by all merchants. The maximum is measured
    /// anew before each turn, so that a slow stretch of the machine falls on both alike.
    fn take_turn(&mut self, front: &Shopfront, requests: &Requests, part: f64, connections: usize) {
        let maximum = maximum(front, requests, TURN / 2);
        let load = Load { requests, rate: Some(part * maximum), connections };
        let measured = loads(front.address(), vec![load], TURN).swap_remove(0);
        self.maxima.push(maximum);
        self.parts.push(measured.rate() / maximum);
        self.p99s.push(p99(&measured));
        self.all.add(&measured);
    }
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

fn p99(measured: &LoadFigures) -> f64 {
    measured.ms_at(0.99)
}

/// The rate of row 1 at this moment.
fn maximum(front: &Shopfront, requests: &Requests, lasting: Duration) -> f64 {
    closed(front.address(), requests, 64, lasting).rate()
}

fn at_seventy_percent(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let (requests, mut turns) = (front.charges(0..front.shops.len(), false), OpenTurns::default());
    for _ in 0..plan.count(COMPARISONS) {
        turns.take_turn(front, &requests, 0.7, CONNECTIONS);
    }
    let OpenTurns { maxima, p99s, all, .. } = turns;
    let maximum = median(maxima, |rate| *rate);
    let [low, p99, high] = quartiles(&p99s);
    let [p50, p99_of_all, p99_9] = [0.5, 0.99, 0.999].map(|quantile| all.ms_at(quantile));
    let rate = thousands(all.rate());
    report.of(&front.store).add(Row {
        number: "3",
        what: "at 70 % of row 1, open loop",
        load: format!("{}/s, 100 merchants", thousands(0.7 * maximum)),
        figure: format!(
            "{rate}/s, p99 {p99:.2} ({low:.2} to {high:.2}); all turns: p50 {p50:.2}, p99 {p99_of_all:.2}, p99.9 \
             {p99_9:.2} ms"
        ),
        cpu: Some(all.cpu_each()),
        target: Some(("p99 ≤ 10 ms", p99 <= 10.0)),
    });
}

/// The others send a twentieth of the maximum: alone, beside one merchant that sends nine times
/// that, and beside the same load by all merchants. The last shows the effect of the load, and so
/// what the one merchant does. The three take turns of a second, each in each place.
fn beside_a_loud_merchant(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let (others, loud) = (front.charges(1..front.shops.len(), false), front.charges(0..1, false));
    let all = front.charges(0..front.shops.len(), false);
    let maximum = maximum(front, &all, plan.lasting() / 2);
    let (of_others, of_loud) = (0.05 * maximum, 0.45 * maximum);
    let load = |requests, rate| Load { requests, rate: Some(rate), connections: CONNECTIONS };
    let beside = [None, Some((&loud, of_loud)), Some((&all, of_loud))];
    let turn = |beside: Option<(_, _)>| {
        let mut both = vec![load(&others, of_others)];
        both.extend(beside.map(|(requests, rate)| load(requests, rate)));
        p99(&loads(front.address(), both, SHORT_TURN)[0])
    };
    let mut times = [const { Vec::new() }; 3];
    for order in ORDERS.iter().cycle().take(plan.count(SHORT_TURNS).max(ORDERS.len())) {
        for which in order {
            times[*which].push(turn(beside[*which]));
        }
    }
    let [without, with, spread] = times;
    let mut lines = report.of(&front.store);
    let line = |what, load, times: &[f64], target: Option<(&'static str, f64)>| {
        let ratios = times.iter().zip(&without).map(|(with, without)| with / without);
        let [low, ratio, high] = quartiles(&ratios.collect::<Vec<_>>());
        let [[_, without, _], [_, with, _]] = [without.as_slice(), times].map(quartiles);
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
fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[quarter * values.len() / 4])
}

fn at_twice_the_maximum(plan: &Plan, report: &mut Report, front: &Shopfront) {
    // Both ends of each are here.
    let connections = CONNECTIONS_OVERLOADED.min(open_files_max().saturating_sub(OTHER_FILES) / 2);
    let (requests, mut turns) = (front.charges(0..front.shops.len(), false), OpenTurns::default());
    for _ in 0..plan.count(COMPARISONS) {
        turns.take_turn(front, &requests, OVERLOAD, connections);
    }
    let OpenTurns { maxima, parts, p99s, all } = turns;
    let maximum = median(maxima, |rate| *rate);
    let mut lines = report.of(&front.store);
    let line = |what, figure, target| Row {
        number: "14",
        what,
        load: format!("{}/s, {} connections", thousands(OVERLOAD * maximum), thousands(connections as f64)),
        figure,
        cpu: Some(all.cpu_each()),
        target,
    };
    let goodput = quartiles(&parts);
    let [low, middle, high] = goodput.map(|part| percent(part, 1.0));
    lines.add(line(
        "at twice row 1, open loop: goodput, of row 1",
        format!("{middle} ({low} to {high}): {}/s", thousands(all.rate())),
        Some(("≥ 60 %", goodput[1] >= 0.6)),
    ));
    let [low, p99, high] = quartiles(&p99s);
    let [p50_of_all, p99_of_all] = [0.5, 0.99].map(|quantile| all.ms_at(quantile));
    lines.add(line(
        "… what is accepted",
        format!("p99 {p99:.2} ({low:.2} to {high:.2}); all turns: p50 {p50_of_all:.2}, p99 {p99_of_all:.2} ms"),
        Some(("p99 ≤ 50 ms", p99 <= 50.0)),
    ));
    let refused_ms = |quantile| all.refused.value_at_quantile(quantile) as f64 / 1_000.0;
    let share = percent(all.refused.len() as f64, all.answers() as f64);
    let (p50, p99) = (refused_ms(0.5), refused_ms(0.99));
    lines.add(line("… answered 503", format!("{share} of all answers, p50 {p50:.2}, p99 {p99:.2} ms"), None));
    lines.add(line(
        "… never sent, as no connection was free",
        format!("{} requests", thousands(all.unsent as f64)),
        None,
    ));
}
