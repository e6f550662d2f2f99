//! Rows 4 and 5: settlements through the actors alone. PIX charges with 3 splits are created first,
//! untimed; then their payments are timed, one durable Record each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use actors::engine::Engine;
use centavo::folding::search_key;
use centavo::rails::sandbox;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::MerchantCommand;
use testkit::shop::{create_pix_charges, open_engine, open_shops, record};
use tokio::runtime::Runtime;

use crate::charges::add_hot;
use crate::load::Measured;
use crate::machine::CpuTime;
use crate::report::{Report, Row, median, rate_and_latency};
use crate::{Plan, ROUNDS};

/// Charges of one round of one load.
const CHARGES: usize = 100_000;
/// A round ends after this long at the latest.
const LASTING_MAX: Duration = Duration::from_secs(10);

/// Measures what is wanted of these rows.
pub(crate) fn measure(plan: &Plan, report: &mut Report) {
    let folder = tempfile::tempdir().expect("a folder");
    Runtime::new().expect("a runtime").block_on(async {
        let engine = open_engine(folder.path(), sandbox::rails(&folder.path().join("sandbox")), search_key).await;
        let keeping = Arc::clone(&engine);
        let schedule = tokio::spawn(async move { keeping.run_schedule().await });
        let many = Arc::new(open_shops(&engine, 100).await);
        let one = Arc::new(open_shops(&engine, 1).await);
        let mut loads = [(&many, 4_096), (&one, 4_096), (&many, 256), (&one, 256)].map(|load| (load, Vec::new()));
        for _ in 0..ROUNDS {
            for ((shops, in_flight), rounds) in &mut loads {
                let charges = create_pix_charges(&engine, shops, plan.count(CHARGES)).await;
                rounds.push(settle(&engine, charges, *in_flight, LASTING_MAX).await);
            }
        }
        let record_bytes = {
            let mut encoded = Vec::new();
            let last = engine.published().iter().next().expect("a partition");
            engine.record(last).expect("the last Record").encode(&mut encoded);
            encoded.len()
        };
        schedule.abort();
        engine.stop().await;
        let [many_4096, one_4096, many_256, one_256] = loads.map(|(_, rounds)| median(rounds, Measured::rate));
        let add = |report: &mut Report, load: &str, measured: &Measured, target| {
            report.add(Row {
                number: "4",
                what: "a PIX charge with 3 splits is paid, actors alone",
                load: load.to_owned(),
                figure: rate_and_latency(measured),
                cpu: Some(measured.cpu_each()),
                target,
            });
        };
        let met = many_4096.rate() >= 100_000.0;
        add(report, "4,096 in flight, 100 merchants", &many_4096, Some(("≥ 100,000/s", met)));
        add(report, "4,096 in flight, 1 merchant", &one_4096, None);
        add(report, "256 in flight, 100 merchants", &many_256, None);
        add(report, "256 in flight, 1 merchant", &one_256, None);
        report.add(Row {
            number: "4",
            what: "… bytes of its Record",
            load: String::new(),
            figure: format!("{record_bytes} bytes"),
            cpu: None,
            target: Some(("≤ 300 bytes", record_bytes <= 300)),
        });
        add_hot(report, "actors alone, 4,096 in flight", &many_4096, &one_4096);
    });
}

/// Pays all charges, this number at a time, or as many as it can in this time.
pub(crate) async fn settle(
    engine: &Arc<Engine>,
    charges: Vec<(GroupNumber, ObjectId)>,
    in_flight: usize,
    lasting_max: Duration,
) -> Measured {
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
                record(&engine, *group, MerchantCommand::ConfirmPix { charge: *charge, end_to_end_id }).await;
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
    let mut measured = Measured { lasted: begun.elapsed(), cpu: CpuTime::since(cpu), ..Measured::default() };
    micros.into_iter().flatten().for_each(|micros| measured.times.saturating_record(micros));
    measured.in_time = measured.times.len();
    measured
}
