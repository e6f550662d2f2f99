//! Equipment that the benchmarks share: an engine, merchants with three recipients each, and their
//! charges.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use actors::engine::AdmissionLimits;
use actors::engine::IndexOptions;
use actors::engine::Outcome;
use actors::engine::{Engine, EngineOptions};
use actors::rails::Rails;
use ledger::fees::Settings as AccountSettings;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::{MerchantCommand, SplitRequest};
use ledger::money::Centavos;
use ledger::personal::{MerchantProfile, Payer, RecipientProfile, SealedFor};
use store::SledOptions;

/// Total of each charge, centavos.
pub const CHARGED: Centavos = Centavos(10_000);

/// An engine on a folder, in the sandbox, with these rails and this folding of names.
pub async fn open_engine(folder: &Path, rails: Rails, fold_name: fn(&str) -> String) -> Arc<Engine> {
    open_engine_as(true, folder, rails, fold_name).await
}

/// An engine on a folder, in the sandbox or live.
pub async fn open_engine_as(sandbox: bool, folder: &Path, rails: Rails, fold_name: fn(&str) -> String) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 100_000,
        rails,
        fold_name,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    };
    Engine::open(folder, &SledOptions::default(), options, |_, _| {}).await.expect("an engine")
}

/// A merchant with three active recipients.
pub struct Shop {
    /// Its group.
    pub group: GroupNumber,
    /// Its recipients.
    pub recipients: Vec<ObjectId>,
}

impl Shop {
    async fn open(engine: &Engine) -> Self {
        let group = engine.new_group(None);
        open_merchant(engine, group).await;
        Self::staff(engine, group).await
    }

    /// Gives a merchant its recipients.
    pub async fn staff(engine: &Engine, group: GroupNumber) -> Self {
        let mut recipients = Vec::new();
        for document in ["12345678909", "98765432100", "11144477735"] {
            register_recipient(engine, group, document).await;
            let newest = engine.merchant(group, |row| row.recipients.last().map(|row| row.id));
            let id = newest.flatten().expect("a registered recipient");
            record(engine, group, MerchantCommand::ApproveRecipient { id }).await;
            recipients.push(id);
        }
        Self { group, recipients }
    }

    /// A split for each recipient.
    pub fn splits(&self) -> Vec<SplitRequest> {
        let parts = self.recipients.iter().zip([1_000, 2_000, 500]);
        parts.map(|(id, amount)| SplitRequest { recipient: *id, amount: Centavos(amount) }).collect()
    }
}

/// Opens a merchant, without recipients.
pub async fn open_merchant(engine: &Engine, group: GroupNumber) {
    let profile = MerchantProfile {
        name: "Loja".into(),
        document: "11222333000181".into(),
        city: "Recife".into(),
        storefront: None,
    };
    let command = MerchantCommand::Open {
        id: new_id(engine, group),
        settings: AccountSettings { split_enabled: true, ..AccountSettings::default() },
        profile: engine.keyring().seal_value(SealedFor::merchant(group), engine.now(), &profile).expect("sealing"),
    };
    record(engine, group, command).await;
}

/// Registers a recipient of a merchant, which then waits for approval.
pub async fn register_recipient(engine: &Engine, group: GroupNumber, document: &str) {
    let profile = RecipientProfile { name: "Maria".into(), document: document.into(), ..RecipientProfile::default() };
    let document = engine.keyring().fingerprint("document", &[document.as_bytes()]);
    let sealed = engine.keyring().seal_value(SealedFor::recipient(document), engine.now(), &profile);
    let command = MerchantCommand::RegisterRecipient { random: 7, document, profile: sealed.expect("sealing") };
    record(engine, group, command).await;
}

/// This number of merchants with recipients.
pub async fn open_shops(engine: &Engine, count: usize) -> Vec<Shop> {
    let mut shops = Vec::with_capacity(count);
    for _ in 0..count {
        shops.push(Shop::open(engine).await);
    }
    shops
}

/// A new id of a group.
pub fn new_id(engine: &Engine, group: GroupNumber) -> ObjectId {
    engine.ids().object(group, engine.now(), getrandom::u64().expect("random bits"))
}

/// Sends a command and waits for its durable outcome.
pub async fn record(engine: &Engine, group: GroupNumber, command: MerchantCommand) {
    let permit = engine.permit(1_024).expect("room");
    let outcome = engine.command(group, command, permit).await.expect("an outcome");
    assert!(matches!(outcome, Outcome::Recorded(_) | Outcome::Unchanged), "{outcome:?}");
}

/// Creates a PIX charge with a split for each recipient.
pub async fn create_pix_charge(engine: &Engine, shop: &Shop) -> ObjectId {
    let payer = Payer { name: "Pedro da Silva".into(), document: "12345678909".into(), ..Payer::default() };
    let (now, charge) = (engine.now(), new_id(engine, shop.group));
    let command = MerchantCommand::OpenPix {
        rail: None,
        charge,
        amount: CHARGED,
        splits: shop.splits(),
        expires_at: now.plus_days(1),
        payer: engine.keyring().seal_value(SealedFor::payer(charge), now, &payer).expect("sealing"),
    };
    record(engine, shop.group, command).await;
    charge
}

/// Creates PIX charges, the shops in turn.
pub async fn create_pix_charges(
    engine: &Arc<Engine>,
    shops: &Arc<Vec<Shop>>,
    count: usize,
) -> Vec<(GroupNumber, ObjectId)> {
    const CREATORS: usize = 1_024;
    let creators = (0..CREATORS).map(|creator| {
        let (engine, shops) = (Arc::clone(engine), Arc::clone(shops));
        tokio::spawn(async move {
            let mut made = Vec::new();
            for i in 0..count / CREATORS {
                let shop = &shops[(creator + i) % shops.len()];
                made.push((shop.group, create_pix_charge(&engine, shop).await));
            }
            made
        })
    });
    let mut charges = Vec::with_capacity(count);
    for creator in creators.collect::<Vec<_>>() {
        charges.extend(creator.await.expect("a creator"));
    }
    charges
}
