//! Row 18: card charges in batches of a thousand (`POST /api/charges/batch`), each with a key of
//! its own, in turns with single charges.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ledger::money::Centavos;
use tokio::task::LocalSet;

use crate::load::{Connection, LoadFigures, closed, generator};
use crate::machine::CpuTime;
use crate::report::{Report, Row, median, thousands};
use crate::server::{Shopfront, charge_body};
use crate::{Plan, ROUNDS};

/// Connections, each with one batch in flight.
const CONNECTIONS: [usize; 2] = [1, 8];
/// Charges of a batch.
const CHARGES: usize = 1_000;
/// Digits of a key, which are written over with a number never used before.
const KEY: &str = "0000000000000000";
/// What a charge that was made says in the answer.
const MADE: &str = r#""status":201"#;

static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// Charges made in batches, until a load ended, and what it took.
struct BatchFigures {
    made: u64,
    refused: u64,
    cpu: CpuTime,
    lasted: Duration,
    longest: Duration,
}

impl BatchFigures {
    fn rate(&self) -> f64 {
        self.made as f64 / self.lasted.as_secs_f64()
    }
}

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if !plan.wants(&["18"]) {
        return;
    }
    let single = front.charges(0..front.shops.len(), true);
    let (mut alone, mut rounds): (Vec<LoadFigures>, [Vec<BatchFigures>; CONNECTIONS.len()]) = Default::default();
    for _ in 0..ROUNDS {
        alone.push(closed(front.address(), &single, 64, plan.lasting()));
        for (connections, rounds) in CONNECTIONS.into_iter().zip(&mut rounds) {
            rounds.push(batches(front, connections, plan.lasting()));
        }
    }
    let alone = median(alone, LoadFigures::rate).rate();
    for (connections, rounds) in CONNECTIONS.into_iter().zip(rounds) {
        let measured = median(rounds, BatchFigures::rate);
        report.of(&front.store).add(Row {
            number: "18",
            what: "batches of 1,000 card charges",
            load: format!("{connections} connections, a merchant each"),
            figure: format!(
                "{}/s, {:.2} of single ones with keys (64 connections); a batch at most {:.0} ms; {} refused",
                thousands(measured.rate()),
                measured.rate() / alone,
                measured.longest.as_secs_f64() * 1e3,
                measured.refused,
            ),
            cpu: Some(measured.cpu.each(measured.made + measured.refused)),
            target: Some(("≥ 80,000/s", measured.rate() >= 80_000.0)),
        });
    }
}

/// One batch in flight on each connection; each has a merchant of its own.
fn batches(front: &Shopfront, connections: usize, lasting: Duration) -> BatchFigures {
    LocalSet::new().block_on(&generator(), async {
        let [made, refused] = [(); 2].map(|()| Rc::new(Cell::new(0)));
        let longest = Rc::new(Cell::new(Duration::ZERO));
        let mut opened = Vec::new();
        for number in 0..connections {
            opened.push((Connection::open(front.address()).await, batch(front, number)));
        }
        let (cpu, begun) = (CpuTime::now(), Instant::now());
        let clients = opened.into_iter().map(|(mut connection, (mut text, keys))| {
            let (made, refused, longest) = (Rc::clone(&made), Rc::clone(&refused), Rc::clone(&longest));
            tokio::task::spawn_local(async move {
                while begun.elapsed() < lasting {
                    for key in &keys {
                        let number = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
                        text[*key..*key + KEY.len()].copy_from_slice(format!("{number:016}").as_bytes());
                    }
                    let sent = Instant::now();
                    assert_eq!(connection.call(&text).await, 200, "a batch is answered");
                    longest.set(longest.get().max(sent.elapsed()));
                    let answer = std::str::from_utf8(connection.body()).expect("JSON");
                    let count = answer.matches(MADE).count();
                    refused.set(refused.get() + (CHARGES - count) as u64);
                    made.set(made.get() + count as u64);
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("a client");
        }
        // To the last answer: batches are long beside the load.
        let (made, refused, longest) = (made.get(), refused.get(), longest.get());
        BatchFigures { made, refused, cpu: CpuTime::since(cpu), lasted: begun.elapsed(), longest }
    })
}

/// The request for a batch of a merchant, and where the digits of its keys are.
fn batch(front: &Shopfront, number: usize) -> (Vec<u8>, Vec<usize>) {
    let splits: Vec<_> = front.shops[number].splits().iter().map(|split| (split.recipient, split.amount)).collect();
    let charge = charge_body(Centavos(10_000), &splits);
    let charge = charge.replacen('{', &format!(r#"{{"idempotency_key":"{KEY}","#), 1);
    let body = format!("[{}]", vec![charge; CHARGES].join(","));
    let text = format!(
        "POST /api/charges/batch HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        front.keys[number],
        body.len(),
    );
    let keys = text.match_indices(KEY).map(|(at, _)| at).collect();
    (text.into_bytes(), keys)
}
