//! Row 16: card charges while browsers watch the console's overview, against none. The two take
//! short turns, in the order of the Thue-Morse sequence (without, with, with, without, with, …): a
//! slow stretch of the machine, work that comes back at intervals, and what a longer journal costs
//! fall on both alike.

use std::rc::Rc;

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Plan;
use crate::load::{Measured, closed};
use crate::report::{Report, Row, percent, rate_and_latency};
use crate::server::Shopfront;

/// Overviews that are open at once.
const WATCHERS: usize = 20;
/// How often the two are compared, each time in four turns; a sixth of it in a quick run.
const QUADS: usize = 24;

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if !plan.wants(&["16"]) {
        return;
    }
    let requests = front.charges(0..front.shops.len(), false);
    // At least two pictures are drawn in a turn.
    let load = || closed(front.address(), &Rc::clone(&requests), 64, Duration::from_secs(2));
    let (mut alone, mut watched) = (Measured::default(), Measured::default());
    let mut ratios = Vec::new();
    // What only the first load does, such as waking the merchants, is not measured.
    drop(load());
    for quad_number in 0..plan.count(QUADS) {
        let mut quad = [Measured::default(), Measured::default()];
        for turn in 4 * quad_number..4 * quad_number + 4 {
            let is_watched = turn.count_ones() % 2 == 1;
            let watching = is_watched.then(|| front.runtime.block_on(watch(front)));
            quad[usize::from(is_watched)].add(&load());
            drop(watching);
        }
        ratios.push(quad[1].rate() / quad[0].rate());
        alone.add(&quad[0]);
        watched.add(&quad[1]);
    }
    let micros = |load: &Measured| load.cpu_each().process.as_secs_f64() * 1e6;
    report.of(&front.store).add(Row {
        number: "16",
        what: "with overviews open, of the rate without",
        load: format!("64 connections, {WATCHERS} overviews"),
        figure: format!(
            "{} ± {:.1}: {}; CPU {:.1} against {:.1} µs",
            percent(watched.rate(), alone.rate()),
            100.0 * standard_error(&ratios),
            rate_and_latency(&watched),
            micros(&watched),
            micros(&alone)
        ),
        cpu: Some(watched.cpu_each()),
        target: Some(("≥ 98 %", watched.rate() >= 0.98 * alone.rate())),
    });
}

/// The standard error of a mean.
fn standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / (count - 1.0) / count).sqrt()
}

/// Opens the overviews; they are read until this is dropped.
async fn watch(front: &Shopfront) -> JoinSet<()> {
    let cookie = sign_in(front).await;
    let mut watching = JoinSet::new();
    for _ in 0..WATCHERS {
        let mut stream = TcpStream::connect(front.operations()).await.expect("a connection");
        let request = format!("GET /console/live HTTP/1.1\r\nhost: {}\r\ncookie: {cookie}\r\n\r\n", front.operations());
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut read = vec![0; 64 * 1024];
        let count = stream.read(&mut read).await.expect("an answer");
        assert!(read[..count].starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&read[..count]));
        watching.spawn(async move { while stream.read(&mut read).await.is_ok_and(|count| count > 0) {} });
    }
    watching
}

/// The cookie of a new session.
async fn sign_in(front: &Shopfront) -> String {
    let (address, body) = (front.operations(), format!("token={}&next=/console", front.token()));
    let head = format!("POST /console/sign-in HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n");
    let kind = "content-type: application/x-www-form-urlencoded\r\nconnection: close\r\n";
    let request = format!("{head}{kind}content-length: {}\r\n\r\n{body}", body.len());
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let cookie = answer.split("set-cookie: ").nth(1).unwrap_or_else(|| panic!("no session: {answer}"));
    cookie.split(';').next().unwrap_or_default().to_owned()
}
