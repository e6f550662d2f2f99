//! Row 18: card charges in batches of a thousand (`POST /api/charges/batch`), each with a key of
//! its own, in turns with single charges.

use ledger::money::Centavos;

use crate::load::{KEY, LoadFigures, Requests, closed};
use crate::report::{Report, Row, median, thousands};
use crate::server::{Shopfront, charge_body, post};
use crate::{Plan, ROUNDS};

/// Connections, each with one batch in flight.
const CONNECTIONS: [usize; 2] = [1, 8];
/// Charges of a batch.
const CHARGES: usize = 1_000;

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if !plan.wants(&["18"]) {
        return;
    }
    let single = front.charges(0..front.shops.len(), true);
    let mut alone = Vec::new();
    let mut rounds = CONNECTIONS.map(|connections| (connections, batches(front, connections), Vec::new()));
    for _ in 0..ROUNDS {
        alone.push(closed(front.address(), &single, 64, plan.lasting()));
        for (connections, requests, measured) in &mut rounds {
            measured.push(closed(front.address(), requests, *connections, plan.lasting()));
        }
    }
    let alone = median(alone, LoadFigures::rate).rate();
    for (connections, _, measured) in rounds {
        let measured = median(measured, LoadFigures::rate);
        let charges = measured.answers() * CHARGES as u64;
        report.of(&front.store).add(Row {
            number: "18",
            what: "batches of 1,000 card charges",
            load: format!("{connections} connections, a merchant each"),
            figure: format!(
                "{}/s, {:.2} of single ones with keys (64 connections); a batch at most {:.0} ms; {} not made",
                thousands(measured.rate()),
                measured.rate() / alone,
                measured.ms_at(1.0),
                charges - measured.in_time,
            ),
            cpu: Some(measured.cpu.each(charges)),
            target: Some(("≥ 80,000/s", measured.rate() >= 80_000.0)),
        });
    }
}

/// A batch of each of so many merchants.
fn batches(front: &Shopfront, merchants: usize) -> Requests {
    let texts = (0..merchants).map(|number| {
        let splits: Vec<_> = front.shops[number].splits().iter().map(|split| (split.recipient, split.amount)).collect();
        let charge = charge_body(Centavos(10_000), &splits);
        let charge = charge.replacen('{', &format!(r#"{{"idempotency_key":"{KEY}","#), 1);
        let body = format!("[{}]", vec![charge; CHARGES].join(","));
        post("/api/charges/batch", &front.keys[number], "", &body)
    });
    Requests { texts: texts.collect(), charges: CHARGES }
}
