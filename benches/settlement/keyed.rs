//! Row 15: card charges with an Idempotency-Key each, against those without, in turns.

use std::time::Duration;

use crate::Plan;
use crate::load::closed;
use crate::report::{Report, Row};
use crate::server::Shopfront;
use crate::turns::InTurns;

/// How long a turn lasts.
const TURN: Duration = Duration::from_millis(500);

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, front: &Shopfront) {
    if !plan.wants(&["15"]) {
        return;
    }
    let requests = [false, true].map(|keyed| front.charges(0..front.shops.len(), keyed));
    let keyed = InTurns::measure(plan, |is_keyed| closed(front.address(), &requests[usize::from(is_keyed)], 64, TURN));
    report.of(&front.store).add(Row {
        number: "15",
        what: "with an Idempotency-Key, of the rate without",
        load: "64 connections, 100 merchants".to_owned(),
        figure: keyed.figure(),
        cpu: Some(keyed.with.cpu_each()),
        target: Some(("≥ 90 %", keyed.part() >= 0.9)),
    });
}
