//! Row 16: card charges while browsers watch the console's overview, against none, in turns.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Plan;
use crate::load::closed;
use crate::report::{Report, Row};
use crate::server::Shopfront;
use crate::turns::InTurns;

/// Overviews that are open at once.
const WATCHERS: usize = 20;
/// How long a turn lasts: at least two pictures are drawn in it.
const TURN: Duration = Duration::from_secs(2);

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if !plan.wants(&["16"]) {
        return;
    }
    let requests = front.charges(0..front.shops.len(), false);
    let watched = InTurns::measure(plan, |is_watched| {
        let _watching = is_watched.then(|| front.runtime.block_on(watch(front)));
        closed(front.address(), &requests, 64, TURN)
    });
    report.of(&front.store).add(Row {
        number: "16",
        what: "with overviews open, of the rate without",
        load: format!("64 connections, {WATCHERS} overviews"),
        figure: watched.figure(),
        cpu: Some(watched.with.cpu_each()),
        target: Some(("≥ 98 %", watched.part() >= 0.98)),
    });
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
