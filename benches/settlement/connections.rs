//! Rows 16 and 17: how the number of connections, busy or idle, is felt.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::sleep;

use crate::load::{Connection, LoadFigures, Requests, closed, generator};
use crate::machine::open_files_max;
use crate::report::{Report, Row, median, rate_and_latency, thousands};
use crate::server::Shopfront;
use crate::{Plan, ROUNDS};

/// The closed loads of row 16: below, at and above the commands that have their turn at once (512).
const BUSY: [usize; 6] = [64, 128, 256, 512, 1_024, 2_048];
/// The idle connections of row 17, where the process may have so many files open.
const IDLE: usize = 20_000;
/// Files that are open beside them: the server's ends of connections, and its data.
const OTHER_FILES: usize = 6_000;
/// The address that the idle connections come from.
const IDLE_CALLER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Charges of the good client, each over a new connection.
const GOOD_CALLS: usize = 500;

/// Measures what is wanted of these rows.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    let requests = front.charges(0..front.shops.len(), false);
    if plan.wants(&["16"]) {
        busy(plan, report, front, &requests);
    }
    if plan.wants(&["17"]) {
        beside_idle_connections(report, front, &requests);
    }
}

/// Row 16. The numbers of connections take turns; of each, the round of the median rate is shown.
fn busy(plan: &Plan, report: &mut Report, front: &Shopfront, requests: &Requests) {
    let mut rounds: [Vec<LoadFigures>; BUSY.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (connections, rounds) in BUSY.into_iter().zip(&mut rounds) {
            rounds.push(closed(front.address(), requests, connections, plan.lasting()));
        }
    }
    for (connections, rounds) in BUSY.into_iter().zip(rounds) {
        let measured = median(rounds, LoadFigures::rate);
        report.of(&front.store).add(Row {
            number: "16",
            what: "the overload gate: closed load",
            load: format!("{} connections", thousands(connections as f64)),
            figure: rate_and_latency(&measured),
            cpu: Some(measured.cpu_each()),
            target: None,
        });
    }
}

/// Row 17: one address opens connections and sends nothing; another charges a card over a new
/// connection each time. The time counts from before the connection is opened.
fn beside_idle_connections(report: &mut Report, front: &Shopfront, requests: &Requests) {
    let address = front.address();
    let count = IDLE.min(open_files_max().saturating_sub(OTHER_FILES));
    let (without, _) = generator().block_on(good_calls(address, requests, 0));
    let (beside, still_open) = generator().block_on(good_calls(address, requests, count));
    let [p50, most] = beside;
    report.of(&front.store).add(Row {
        number: "17",
        what: "a good client's charge, connection included",
        load: format!("beside {} idle connections of another address", thousands(count as f64)),
        figure: format!(
            "p50 {p50:.2}, at most {most:.2} ms; without them {:.2}, {:.2}; {} of them left at the end",
            without[0],
            without[1],
            thousands(still_open as f64)
        ),
        cpu: None,
        target: Some(("≤ 100 ms", most <= 100.0)),
    });
}

/// The median and the longest time of the good client's charges, milliseconds, beside so many idle
/// connections; and how many of those the server has not closed at the end.
async fn good_calls(address: SocketAddr, requests: &Requests, idle: usize) -> ([f64; 2], usize) {
    let mut opened = Vec::with_capacity(idle);
    for number in 1..=idle {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((IDLE_CALLER, 0).into()).expect("an address of this machine");
        // One that the server's queue does not take is one connection less.
        if let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(1), socket.connect(address)).await {
            opened.push(stream);
        }
        if number.is_multiple_of(128) {
            sleep(Duration::from_millis(4)).await;
        }
    }
    let mut times = Vec::with_capacity(GOOD_CALLS);
    for text in requests.texts.iter().cycle().take(GOOD_CALLS) {
        let begun = Instant::now();
        let status = Connection::open(address).await.call(text.as_bytes()).await;
        assert_eq!(status, 201, "the good client is served");
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
    }
    times.sort_by(f64::total_cmp);
    let is_open = |stream: &&TcpStream| {
        let read = stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    ([times[GOOD_CALLS / 2], times[GOOD_CALLS - 1]], opened.iter().filter(is_open).count())
}
