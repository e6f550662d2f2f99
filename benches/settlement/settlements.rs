//! Rows 4 and 5: settlements through the actors alone. PIX charges with 3 splits are created first,
//! untimed; then their payments are timed, one durable Record each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actors::engine::Engine;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::MerchantCommand;
use testkit::shop::{CHARGED, Shop, create_pix_charges, open_shops, record};

use crate::charges::add_hot;
use crate::load::LoadFigures;
use crate::machine::CpuTime;
use crate::report::{Report, Row, median, rate_and_latency};
use crate::server::Shopfront;
use crate::{Plan, ROUNDS};

/// Charges of one round of one load.
const CHARGES: usize = 100_000;
/// A round ends after this long at the latest.
const LASTING_MAX: Duration = Duration::from_secs(10);

/// A server, and what each round of each load showed.
struct Actors {
    front: Shopfront,
    one: Arc<Vec<Shop>>,
    rounds: [Vec<LoadFigures>; 4],
}

/// Whether a load is of 100 merchants or of one, and how many payments are in flight.
const LOADS: [(bool, usize); 4] = [(true, 4_096), (false, 4_096), (true, 256), (false, 256)];

/// Measures what is wanted of these rows.
pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let mut stores: Vec<_> = plan.open(100).into_iter().map(Actors::new).collect();
    for _ in 0..ROUNDS {
        for load in 0..LOADS.len() {
            stores.iter_mut().for_each(|actors| actors.round(load, plan));
        }
    }
    stores.into_iter().for_each(|actors| actors.end(report));
}

impl Actors {
    fn new(front: Shopfront) -> Self {
        let one = Arc::new(front.runtime.block_on(open_shops(front.engine(), 1)));
        Self { front, one, rounds: Default::default() }
    }

    fn round(&mut self, load: usize, plan: &Plan) {
        let (is_of_many, in_flight) = LOADS[load];
        let (engine, shops) = (self.front.engine(), if is_of_many { &self.front.shops } else { &self.one });
        let measured = self.front.runtime.block_on(async {
            let charges = create_pix_charges(engine, shops, plan.count(CHARGES)).await;
            settle(engine, charges, in_flight, LASTING_MAX).await
        });
        self.rounds[load].push(measured);
    }

    /// Adds the lines, and ends the server.
    fn end(self, report: &mut Report) {
        let record_bytes = self.front.bytes_of_last_record();
        let mut lines = report.of(&self.front.store);
        let [many_4096, one_4096, many_256, one_256] = self.rounds.map(|rounds| median(rounds, LoadFigures::rate));
        let met = many_4096.rate() >= 100_000.0;
        for (load, measured, target) in [
            ("4,096 in flight, 100 merchants", &many_4096, Some(("≥ 100,000/s", met))),
            ("4,096 in flight, 1 merchant", &one_4096, None),
            ("256 in flight, 100 merchants", &many_256, None),
            ("256 in flight, 1 merchant", &one_256, None),
        ] {
            lines.add(Row {
                number: "4",
                what: "a PIX charge with 3 splits is paid, actors alone",
                load: load.to_owned(),
                figure: rate_and_latency(measured),
                cpu: Some(measured.cpu_each()),
                target,
            });
        }
        lines.add(Row {
            number: "4",
            what: "… bytes of its Record",
            load: String::new(),
            figure: format!("{record_bytes} bytes"),
            cpu: None,
            target: Some(("≤ 300 bytes", record_bytes <= 300)),
        });
        add_hot(&mut lines, "actors alone, 4,096 in flight", &many_4096, &one_4096);
        self.front.stop();
    }
}

/// Pays all charges, this number at a time, or as many as it can in this time.
pub(crate) async fn settle(
    engine: &Arc<Engine>,
    charges: Vec<(GroupNumber, ObjectId)>,
    in_flight: usize,
    lasting_max: Duration,
) -> LoadFigures {
    let (charges, next) = (Arc::new(charges), Arc::new(AtomicUsize::new(0)));
    let (cpu, begun) = (CpuTime::now(), Instant::now());
    let ends = begun + lasting_max;
    let workers = (0..in_flight).map(|_| {
        let (engine, charges, next) = (Arc::clone(engine), Arc::clone(&charges), Arc::clone(&next));
        tokio::spawn(async move {
            let mut micros: Vec<u64> = Vec::new();
            while let Some((group, charge)) = charges.get(next.fetch_add(1, Ordering::Relaxed)) {
                let sent = Instant::now();
                if sent >= ends {
                    break;
                }
                let end_to_end_id = "E0000000020260701120012345678901".to_owned();
                record(
                    &engine,
                    *group,
                    MerchantCommand::ConfirmPix { charge: *charge, amount: CHARGED, end_to_end_id },
                )
                .await;
                micros.push(sent.elapsed().as_micros() as u64);
            }
            micros
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut micros = Vec::with_capacity(in_flight);
    for worker in workers {
        micros.push(worker.await.expect("a worker"));
    }
    let mut measured = LoadFigures { lasted: begun.elapsed(), cpu: CpuTime::since(cpu), ..LoadFigures::default() };
    micros.into_iter().flatten().for_each(|micros| measured.times.saturating_record(micros));
    measured.in_time = measured.times.len();
    measured
}
