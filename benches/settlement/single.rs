//! Row 6: one client with one request in flight, against what the disk could do at best in the same
//! seconds: as many writes of a Record's size, one after the other, each synced.

use std::time::{Duration, Instant};

use testkit::shop::create_pix_charges;

use crate::load::{Connection, LoadFigures, Requests, generator};
use crate::machine::{CpuTime, Disk};
use crate::report::{Report, Row, latency, median, percent, thousands};
use crate::server::Shopfront;
use crate::{Plan, ROUNDS};

/// About what the journal writes for a Record with three splits, bytes.
const WRITE: usize = 512;
/// Disk and server take turns so often in a round, as the disk of a shared machine is another one
/// from second to second.
const TURNS: u32 = 10;
/// Confirmations that are ready for each second.
const PER_SECOND_MAX: usize = 5_000;

/// A load, and what the disk could do in the same seconds.
struct Round {
    measured: LoadFigures,
    disk: Disk,
}

impl Round {
    /// Lets the disk and a load take turns.
    fn of<'a>(front: &Shopfront, mut requests: impl Iterator<Item = &'a String>, lasting: Duration) -> Self {
        let (mut measured, mut disk) = (LoadFigures::default(), Disk::new(WRITE));
        for _ in 0..TURNS {
            disk.sync_for(lasting / TURNS / 2);
            measured.add(&one_by_one(front, &mut requests, lasting / TURNS));
        }
        Self { measured, disk }
    }

    /// The part of the disk's own rate.
    fn part(&self) -> f64 {
        self.measured.rate() / self.disk.growing.rate()
    }
}

/// A server, what is sent to it, and what each round showed.
struct Lone {
    front: Shopfront,
    confirmations: Vec<String>,
    cards: Requests,
    rounds: [Vec<Round>; 2],
}

impl Lone {
    fn new(front: Shopfront, lasting: Duration) -> Self {
        let count = ROUNDS * PER_SECOND_MAX * lasting.as_secs() as usize;
        let charges = front.runtime.block_on(create_pix_charges(front.engine(), &front.shops, count));
        let confirmations = charges.iter().map(|(_, id)| confirmation(&front.keys[0], &id.txid())).collect();
        Self { confirmations, cards: front.charges(0..1, false), front, rounds: Default::default() }
    }

    fn round(&mut self, number: usize, lasting: Duration) {
        let part = self.confirmations.len().div_ceil(ROUNDS);
        let confirmations = self.confirmations.iter().skip(number * part).take(part);
        self.rounds[0].push(Round::of(&self.front, confirmations, lasting));
        self.rounds[1].push(Round::of(&self.front, self.cards.texts.iter().cycle(), lasting));
    }

    /// Adds the lines, and ends the server.
    fn end(self, report: &mut Report) {
        let mut lines = report.of(&self.front.store);
        let [pix, card] = self.rounds;
        for (what, rounds, target, least) in [
            ("PIX confirmation, of the disk's own rate", pix, "≥ 40 %", 0.4),
            ("POST /api/card, of the disk's own rate", card, "≥ 22 %", 0.22),
        ] {
            let round = median(rounds, Round::part);
            let Round { measured, disk } = &round;
            let of = |syncs: f64| format!("{} of {}", percent(measured.rate(), syncs), thousands(syncs));
            let disks = format!("{} syncs/s ({} rewriting)", of(disk.growing.rate()), of(disk.again.rate()));
            lines.add(Row {
                number: "6",
                what,
                load: "1 connection".to_owned(),
                figure: format!("{disks}: {}/s, {}", thousands(measured.rate()), latency(measured)),
                cpu: Some(measured.cpu_each()),
                target: Some((target, round.part() >= least)),
            });
        }
        self.front.stop();
    }
}

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let lasting = plan.lasting().min(Duration::from_secs(3));
    let mut stores: Vec<_> = plan.open(1).into_iter().map(|front| Lone::new(front, lasting)).collect();
    for number in 0..ROUNDS {
        stores.iter_mut().for_each(|lone| lone.round(number, lasting));
    }
    stores.into_iter().for_each(|lone| lone.end(report));
}

/// The request by which the sandbox's payer pays a charge.
fn confirmation(key: &str, txid: &str) -> String {
    let head = format!("POST /api/sandbox/pix/{txid}/pay HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n");
    format!("{head}content-length: 0\r\n\r\n")
}

/// One request after the other on one connection, for this long or as many as there are.
fn one_by_one<'a>(
    front: &Shopfront,
    requests: &mut impl Iterator<Item = &'a String>,
    lasting: Duration,
) -> LoadFigures {
    generator().block_on(async {
        let mut connection = Connection::open(front.address()).await;
        let mut measured = LoadFigures::default();
        let (cpu, begun) = (CpuTime::now(), Instant::now());
        while begun.elapsed() < lasting {
            let Some(request) = requests.next() else { break };
            let sent = Instant::now();
            let status = connection.call(request.as_bytes()).await;
            assert!(status < 300, "a charge that should be made: {status}");
            measured.note(status, sent, begun + 2 * lasting);
        }
        LoadFigures { lasted: begun.elapsed(), cpu: CpuTime::since(cpu), ..measured }
    })
}
