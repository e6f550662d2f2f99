//! Row 11: bytes on the disk for a charge, all in: journal, index, snapshots and read model, when
//! it is settled and the server has stopped.

use std::time::Duration;

use testkit::shop::create_pix_charges;

use crate::Plan;
use crate::load::closed;
use crate::report::{Report, Row, thousands};
use crate::server::Shopfront;
use crate::settlements::settle;
use crate::stores::Store;

/// Charges of each kind: enough that a server's fixed bytes do not count.
const CHARGES: usize = 200_000;
/// Time limit for the charges of a kind, seconds.
const SECONDS_MAX: u64 = 20;

/// Measures the row.
pub(crate) fn measure(plan: &Plan, report: &mut Report, store: &Store) {
    let mut add = |what, before: [u64; 3], after: [u64; 3], charges: u64, target, most| {
        let each: [f64; 3] = std::array::from_fn(|part| (after[part] - before[part]) as f64 / charges as f64);
        let (whole, [journal, index, state]) = (each.iter().sum::<f64>(), each);
        report.of(store).add(Row {
            number: "11",
            what,
            load: format!("{} charges, 100 merchants", thousands(charges as f64)),
            figure: format!("{whole:.0} bytes: journal {journal:.0}, index {index:.0}, state {state:.0}"),
            cpu: None,
            target: Some((target, whole <= most)),
        });
    };
    let front = Shopfront::open(store, 100);
    let before = front.bytes();
    let paid = front.runtime.block_on(async {
        let charges = create_pix_charges(front.engine(), &front.shops, plan.count(CHARGES)).await;
        settle(front.engine(), charges, 1_024, Duration::from_secs(SECONDS_MAX)).await.times.len()
    });
    add("disk for a PIX charge with 3 splits, paid", before, front.stop(), paid, "≤ 600 bytes", 600.0);
    let front = Shopfront::open(store, 100);
    let before = front.bytes();
    let requests = front.charges(0..100, false);
    let (mut charged, least) = (0, plan.count(CHARGES) as u64);
    for _ in 0..SECONDS_MAX {
        if charged < least {
            charged += closed(front.address(), &requests, 256, Duration::from_secs(1)).times.len();
        }
    }
    add("disk for a card charge with 3 splits", before, front.stop(), charged, "≤ 900 bytes", 900.0);
}
