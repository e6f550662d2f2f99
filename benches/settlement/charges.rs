//! Rows 1, 1b, 2 and 5: card charges over HTTP, each client with one request in flight.

use std::rc::Rc;

use crate::load::{LoadFigures, Requests, closed};
use crate::peer::{COMPARISONS, Peer};
use crate::report::{Lines, Report, Row, latency, median, percent, rate_and_latency, thousands};
use crate::server::Shopfront;
use crate::stores::Store;
use crate::{Plan, ROUNDS};

/// A closed load, and what each round of it showed.
struct ClosedLoad<'a> {
    front: &'a Shopfront,
    rows: &'static [&'static str],
    requests: Rc<Requests>,
    connections: usize,
    rounds: Vec<LoadFigures>,
}

/// What charges at each peer showed, or why they did not run.
type Peers = [Vec<Result<Peer, String>>; COMPARISONS.len()];

/// Loads of a store, in the order of [`Loads::of`].
struct Loads<'a> {
    store: &'a Store,
    all: [Option<ClosedLoad<'a>>; 6],
}

/// Measures what is wanted of these rows: at servers without rate limits and, for rows 1 and 1b, in
/// turn with them at servers with them, if there are any. Both are in the order of the stores.
pub(crate) fn measure(plan: &Plan, report: &mut Report, fronts: &[Shopfront], served: &[Shopfront]) {
    let with_limits = |place| served.get(place);
    let mut stores: Vec<_> =
        fronts.iter().enumerate().map(|(place, front)| Loads::of(front, with_limits(place))).collect();
    let mut peers = Peers::default();
    for _ in 0..ROUNDS {
        for place in 0..6 {
            let of_stores = stores.iter_mut().filter_map(|loads| loads.all[place].as_mut());
            of_stores.filter(|load| plan.wants(load.rows)).for_each(|load| load.run(plan));
        }
        if plan.wants(&["2"]) {
            for (comparison, rounds) in COMPARISONS.iter().zip(&mut peers) {
                if comparison.is_hot || plan.is_thorough() {
                    rounds.push(comparison.measure(plan));
                }
            }
        }
    }
    for loads in stores {
        loads.add(plan, report, &peers);
    }
}

impl<'a> Loads<'a> {
    fn of(front: &'a Shopfront, served: Option<&'a Shopfront>) -> Self {
        let merchants = front.shops.len();
        let (all, hot) = (Rc::new(front.charges(0..merchants, false)), Rc::new(front.charges(0..1, false)));
        let load = |rows, requests: &Rc<Requests>, connections| {
            let requests = Rc::clone(requests);
            ClosedLoad { front, rows, requests, connections, rounds: Vec::new() }
        };
        let limited = |rows, connections| {
            let front = served?;
            Some(ClosedLoad { front, ..load(rows, &Rc::new(front.charges(0..merchants, false)), connections) })
        };
        // What is compared comes one after the other.
        let all = [
            Some(load(&["1", "2", "5"], &all, 64)),
            limited(&["1"], 64),
            Some(load(&["2", "5"], &hot, 64)),
            Some(load(&["1b", "5"], &all, 256)),
            limited(&["1b"], 256),
            Some(load(&["5"], &hot, 256)),
        ];
        Self { store: &front.store, all }
    }

    /// Adds the lines.
    fn add(self, plan: &Plan, report: &mut Report, peers: &Peers) {
        let report = &mut report.of(self.store);
        let medians = self.all.map(|load| load.and_then(ClosedLoad::median));
        let [all_64, limited_64, hot_64, all_256, limited_256, hot_256] = medians;
        if let Some(all) = &all_64 {
            add_rate(report, "1", "64 connections, 100 merchants", all, ("≥ 20,000/s", 20_000.0));
        }
        if let Some(all) = &all_256 {
            add_rate(report, "1b", "256 connections, 100 merchants", all, ("≥ 28,000/s", 28_000.0));
        }
        for (number, load, limited, without) in [
            ("1", "64 connections, rate limits on", &limited_64, &all_64),
            ("1b", "256 connections, rate limits on", &limited_256, &all_256),
        ] {
            if let (Some(limited), Some(without)) = (limited, without) {
                add_limited(report, number, load, (limited, without));
            }
        }
        if let (Some(all), Some(hot)) = (&all_64, &hot_64) {
            if plan.wants(&["2"]) {
                add_peers(report, all, hot, peers.clone());
            }
            add_hot(report, "HTTP, 64 connections", all, hot);
        }
        if let (Some(all), Some(hot)) = (&all_256, &hot_256) {
            add_hot(report, "HTTP, 256 connections", all, hot);
        }
    }
}

impl ClosedLoad<'_> {
    fn run(&mut self, plan: &Plan) {
        let before = self.front.records();
        let measured = closed(self.front.address(), &self.requests, self.connections, plan.lasting());
        let after = self.front.records();
        assert!(after >= before + 2 * measured.times.len(), "each charge is two Records of its own");
        self.rounds.push(measured);
    }

    /// The round of the median rate, if there was any.
    fn median(self) -> Option<LoadFigures> {
        (!self.rounds.is_empty()).then(|| median(self.rounds, LoadFigures::rate))
    }
}

fn add_rate(
    report: &mut Lines,
    number: &'static str,
    load: &str,
    measured: &LoadFigures,
    (target, least): (&'static str, f64),
) {
    report.add(Row {
        number,
        what: "POST /api/card, 3 splits",
        load: load.to_owned(),
        figure: rate_and_latency(measured),
        cpu: Some(measured.cpu_each()),
        target: Some((target, measured.rate() >= least)),
    });
}

/// Rows 1 and 1b as `serve` runs, beside the same without rate limits.
fn add_limited(report: &mut Lines, number: &'static str, load: &str, (limited, without): (&LoadFigures, &LoadFigures)) {
    report.add(Row {
        number,
        what: "the same as it is served, of it without limits",
        load: load.to_owned(),
        figure: format!("{}: {}", percent(limited.rate(), without.rate()), rate_and_latency(limited)),
        cpu: Some(limited.cpu_each()),
        target: None,
    });
}

/// Row 5.
pub(crate) fn add_hot(report: &mut Lines, load: &str, all: &LoadFigures, hot: &LoadFigures) {
    report.add(Row {
        number: "5",
        what: "one hot merchant, of the rate of 100",
        load: load.to_owned(),
        figure: format!("{}: {}/s, {}", percent(hot.rate(), all.rate()), thousands(hot.rate()), latency(hot)),
        cpu: Some(hot.cpu_each()),
        target: Some(("≥ 90 %", hot.rate() >= 0.9 * all.rate())),
    });
}

fn add_peers(report: &mut Lines, all: &LoadFigures, hot: &LoadFigures, peers: Peers) {
    for (comparison, rounds) in COMPARISONS.iter().zip(peers) {
        let (merchants, ours) = if comparison.is_hot { ("one merchant", hot) } else { ("100 merchants", all) };
        let (figure, times) = match rounds.into_iter().collect::<Result<Vec<Peer>, String>>() {
            Ok(rounds) if rounds.is_empty() => continue,
            Ok(rounds) => {
                let peer = median(rounds, |peer| peer.rate);
                let times = ours.rate() / peer.rate;
                let rates = format!("{} against {}/s", thousands(ours.rate()), thousands(peer.rate));
                (format!("{times:.2} ×: {rates}, p50 {:.2}, p99 {:.2} ms", peer.p50_ms, peer.p99_ms), Some(times))
            }
            Err(missing) => (missing, None),
        };
        report.add(Row {
            number: "2",
            what: comparison.what,
            load: format!("64 clients, {merchants}"),
            figure,
            cpu: Some(ours.cpu_each()),
            target: times.zip(comparison.target).map(|(times, (text, least))| (text, times >= least)),
        });
    }
}
