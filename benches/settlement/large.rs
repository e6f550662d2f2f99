//! Row 12: one charge with 10,000 splits, which is one Record over many chunks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::Engine;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::money::Centavos;
use ledger::personal::{RecipientProfile, SealedFor};
use testkit::shop::record;
use tokio::task::JoinSet;

use crate::load::{Connection, LoadFigures, generator};
use crate::machine::CpuTime;
use crate::report::{Report, Row};
use crate::server::{Shopfront, charge};
use crate::stores::Store;

const SPLITS: u32 = 10_000;
/// Charges that are made, one after the other.
const CHARGES: usize = 21;
/// Recipients that are registered or approved together.
const TOGETHER: u32 = 500;

/// Measures the row.
pub(crate) fn measure(report: &mut Report, store: &Store) {
    let front = Shopfront::open(store, 1);
    let recipients = front.runtime.block_on(register(front.engine(), front.shops[0].group));
    let splits: Vec<(ObjectId, Centavos)> = recipients.into_iter().map(|id| (id, Centavos(100))).collect();
    let request = charge(&front.keys[0], Centavos(200 * i64::from(SPLITS)), &splits, false);
    let measured = generator().block_on(async {
        let mut connection = Connection::open(front.address()).await;
        let mut measured = LoadFigures::default();
        let cpu = CpuTime::now();
        for _ in 0..CHARGES {
            let sent = Instant::now();
            let status = connection.call(request.as_bytes()).await;
            assert_eq!(status, 201, "a charge that should be made");
            measured.note(status, sent, sent + Duration::from_secs(60));
        }
        LoadFigures { cpu: CpuTime::since(cpu), ..measured }
    });
    report.of(store).add(Row {
        number: "12",
        what: "POST /api/card with 10,000 splits",
        load: "1 connection".to_owned(),
        figure: format!("p50 {:.1}, at most {:.1} ms", measured.ms_at(0.5), measured.ms_at(1.0)),
        cpu: Some(measured.cpu_each()),
        target: Some(("p50 ≤ 30 ms", measured.ms_at(0.5) <= 30.0)),
    });
    front.stop();
}

/// Registers and approves as many recipients of a merchant.
async fn register(engine: &Arc<Engine>, group: GroupNumber) -> Vec<ObjectId> {
    let ids = || engine.merchant(group, |row| row.recipients.iter().map(|row| row.id).collect::<Vec<_>>());
    let before = ids().expect("a merchant").len();
    let now = engine.now();
    for first in (0..SPLITS).step_by(TOGETHER as usize) {
        let commands = (first..first + TOGETHER).map(|number| {
            let document = engine.keyring().fingerprint("document", &[b"recipient", &number.to_be_bytes()]);
            let sealed_for = SealedFor::recipient(document);
            let profile = engine.keyring().seal_value(sealed_for, now, &RecipientProfile::default()).expect("sealing");
            MerchantCommand::RegisterRecipient { random: 7, document, profile }
        });
        all(engine, group, commands).await;
    }
    let registered = ids().expect("a merchant").split_off(before);
    for page in registered.chunks(TOGETHER as usize) {
        all(engine, group, page.iter().map(|id| MerchantCommand::ApproveRecipient { id: *id })).await;
    }
    registered
}

async fn all(engine: &Arc<Engine>, group: GroupNumber, commands: impl Iterator<Item = MerchantCommand>) {
    let mut sent = JoinSet::new();
    for command in commands {
        let engine = Arc::clone(engine);
        sent.spawn(async move { record(&engine, group, command).await });
    }
    sent.join_all().await;
}
