//! Row 6: one client with one request in flight, against what the disk could do at best in the same seconds: as many writes of a Record's
//! size, one after the other, each synced.

use std::time::{Duration, Instant};

use crate::load::{Connection, Measured, generator};
use crate::machine::{SyncRates, cpu_time, sync_rates};
use crate::report::{Report, Row, latency, median, percent, thousands};
use crate::server::Shopfront;
use crate::shop::create_pix_charges;
use crate::{Plan, ROUNDS};

/// About what the journal writes for a Record with three splits, bytes.
const WRITE: usize = 512;
/// Confirmations that are ready for each second.
const PER_SECOND_MAX: usize = 5_000;

/// A rate, and the disk's before and after it.
struct Round {
    measured: Measured,
    disk: SyncRates,
}

impl Round {
    /// The part of the disk's own rate.
    fn part(&self) -> f64 {
        self.measured.rate() / self.disk.growing
    }
}

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let front = Shopfront::open(1);
    let lasting = plan.lasting().min(Duration::from_secs(3));
    let count = ROUNDS * PER_SECOND_MAX * lasting.as_secs() as usize;
    let charges = front.runtime.block_on(create_pix_charges(front.engine(), &front.shops, count));
    let confirmations: Vec<Vec<u8>> = charges.iter().map(|(_, id)| confirmation(&front.keys[0], &id.txid())).collect();
    let cards = front.charges(0..1, false);
    let (mut pix, mut card) = (Vec::new(), Vec::new());
    for confirmations in confirmations.chunks(confirmations.len().div_ceil(ROUNDS)) {
        let before = sync_rates(WRITE, Duration::from_millis(300));
        let measured = one_by_one(&front, confirmations.iter(), lasting);
        let between = sync_rates(WRITE, Duration::from_millis(300));
        pix.push(Round { measured, disk: mean(&before, &between) });
        let measured = one_by_one(&front, cards.texts.iter().cycle(), lasting);
        card.push(Round { measured, disk: mean(&between, &sync_rates(WRITE, Duration::from_millis(300))) });
    }
    let mut add = |what, rounds, target, least| {
        let Round { measured, disk } = median(rounds, Round::part);
        let (rate, of_growing) = (measured.rate(), percent(measured.rate(), disk.growing));
        let disks = format!("{} of {} syncs/s", of_growing, thousands(disk.growing));
        report.add(Row {
            number: "6",
            what,
            load: "1 connection, 1 merchant".to_owned(),
            figure: format!("{disks}: {}/s, {}", thousands(rate), latency(&measured)),
            cpu: Some(measured.cpu_each()),
            target: Some((target, rate >= least * disk.growing)),
        });
        report.add(Row {
            number: "6",
            what: "… of the disk's rate over what was written before",
            load: String::new(),
            figure: format!("{} of {} syncs/s", percent(rate, disk.written), thousands(disk.written)),
            cpu: None,
            target: None,
        });
    };
    add("one in flight: PIX confirmation, of the disk's own sync rate", pix, "≥ 40 %", 0.4);
    add("one in flight: card charge, of the disk's own sync rate", card, "≥ 22 %", 0.22);
    front.stop();
}

fn mean(before: &SyncRates, after: &SyncRates) -> SyncRates {
    SyncRates {
        growing: f64::midpoint(before.growing, after.growing),
        written: f64::midpoint(before.written, after.written),
    }
}

/// The request by which the sandbox's payer pays a charge.
fn confirmation(key: &str, txid: &str) -> Vec<u8> {
    let head = format!("POST /api/sandbox/pix/{txid}/pay HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n");
    format!("{head}content-length: 0\r\n\r\n").into_bytes()
}

/// One request after the other on one connection.
fn one_by_one<'a>(front: &Shopfront, requests: impl Iterator<Item = &'a Vec<u8>>, lasting: Duration) -> Measured {
    generator().block_on(async {
        let mut connection = Connection::open(front.address()).await;
        let mut measured = Measured::default();
        let (cpu, begun) = (cpu_time(), Instant::now());
        for request in requests.take_while(|_| begun.elapsed() < lasting) {
            let sent = Instant::now();
            let status = connection.call(request).await;
            assert!(status < 300, "a charge that should be made: {status}");
            measured.note(status, sent, begun + 2 * lasting);
        }
        Measured { lasted: begun.elapsed(), cpu: cpu_time().saturating_sub(cpu), ..measured }
    })
}
