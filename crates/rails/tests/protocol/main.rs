//! The adapter for the rail protocol against a player of a bridge, whose records are the proof:
//! outcomes, repeats of each promise, answers that say nothing, cuts after each byte.

#![allow(clippy::unwrap_used)]

mod check;
mod hostile;
mod lists;
mod orders;

use std::os::unix::fs::PermissionsExt;
use std::time::{SystemTime, UNIX_EPOCH};

use actors::rails::{
    CardAnswer, CardRail, CardSecrets, ChargeCard, ChargedCard, Destination, OpenPix, PixOpening, PixRail, RailError,
    RailResult, Repay, SendPayout,
};
use centavo_rails::protocol::{self, Protocol, ProtocolSettings};
use ledger::fees::Commission;
use ledger::personal::PixKeyKind;
use ledger::{Centavos, MerchantProfile, ObjectId, OpenCharge, Payer, PaymentMethod, PixDestination, Terms, Timestamp};
use serde_json::json;
use testkit::rail_player::{RailPlayer, SECRET};

/// A player, and the adapter as its client.
struct World {
    player: RailPlayer,
    rail: Protocol,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(repeats: &'static str) -> Self {
        let (player, folder) = (RailPlayer::start(repeats).await, tempfile::tempdir().unwrap());
        let secret = folder.path().join("secret");
        std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
        let rail = rail_at(&player.url(), folder.path());
        Self { player, rail, folder }
    }

    /// The same as a client that knows no capabilities.
    fn fresh_rail_at(&self, url: &str) -> Protocol {
        rail_at(url, self.folder.path())
    }

    /// A charge that was captured; gives the acquirer's id of it.
    async fn captured(&self, number: u64) -> String {
        match self.rail.charge(charge(id(number))).await.unwrap() {
            CardAnswer::Captured { stamp, .. } => stamp.id,
            refused => panic!("{refused:?}"),
        }
    }

    /// A PIX charge that was paid; gives the payment's end-to-end id.
    async fn paid(&self, number: u64) -> String {
        let opened = PixRail::open(&self.rail, open_pix(id(number))).await.unwrap();
        assert!(matches!(opened, PixOpening::Registered { .. }), "{opened:?}");
        self.player.pay(Some(&id(number).txid()), 1_050)
    }
}

fn rail_at(url: &str, folder: &std::path::Path) -> Protocol {
    let settings = json!({ "url": url, "secret_file": folder.join("secret"), "serves": ["card", "pix", "payout"] });
    let settings: ProtocolSettings = serde_json::from_value(settings).unwrap();
    protocol::open(&settings).unwrap()
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

/// Ids of this test run.
fn id(number: u64) -> ObjectId {
    static BORN_AT: std::sync::OnceLock<Timestamp> = std::sync::OnceLock::new();
    id_at(*BORN_AT.get_or_init(now), number)
}

fn id_at(born_at: Timestamp, number: u64) -> ObjectId {
    ObjectId(((born_at.0 as u128) << 80) | (0x8 << 76) | (0b10 << 62) | u128::from(number))
}

/// A card charge of 10.50.
fn charge(charge: ObjectId) -> ChargeCard {
    charge_of(charge, "4111111111111111")
}

fn charge_of(charge: ObjectId, number: &str) -> ChargeCard {
    let card = CardSecrets {
        number: number.to_owned(),
        holder_name: "FULANO DE TAL".to_owned(),
        exp_month: 12,
        exp_year: 2031,
        cvv: "123".to_owned(),
    };
    ChargeCard {
        charge,
        amount: Centavos(1_050),
        installments: 3,
        method: PaymentMethod::CreditCard,
        card: ChargedCard::Given(card),
        merchant: MerchantProfile::default(),
        payer: Default::default(),
        not_after: Timestamp(i64::MAX),
    }
}

/// The same charge as it waits.
fn open_card() -> OpenCharge {
    let terms = Terms {
        amount: Centavos(1_050),
        method: PaymentMethod::CreditCard,
        installments: 3,
        splits: Vec::new(),
        commission: Commission::default(),
        settlement_days: 30,
        initial_fee: None,
    };
    OpenCharge {
        terms,
        attention_at: now(),
        card: None,
        opened: 1,
        rail: None,
        registers_until: None,
        authorized: None,
        tried_at: None,
    }
}

/// A PIX charge of 10.50 that expires in an hour.
fn open_pix(charge: ObjectId) -> OpenPix {
    OpenPix {
        charge,
        amount: Centavos(1_050),
        expires_at: now().plus_ms(3_600_000),
        payer: Payer {
            name: "Fulano de Tal".to_owned(),
            document: "52998224725".to_owned(),
            description: Some("Pedido 1".to_owned()),
            ..Payer::default()
        },
        is_repeat: false,
    }
}

/// A transfer of 10.50 to a key.
fn payout(number: u64, key: &str) -> SendPayout {
    let to = PixDestination { kind: PixKeyKind::Email, key: key.to_owned(), info: None, labels: None };
    SendPayout { id: id(number), amount: Centavos(1_050), to: Destination::PixKey(to), ordered_at: now() }
}

/// A return of a payment's 10.50, ordered for the first time.
fn repay(number: u64, charge: ObjectId, payment: &str) -> Repay {
    Repay {
        id: id(number),
        decided_at: now(),
        charge,
        payment: payment.to_owned(),
        amount: Centavos(1_050),
        before: Centavos::ZERO,
        is_repeat: false,
    }
}

/// As the engine does: an order that the bridge has not is sent again.
async fn ordered<T>(order: impl AsyncFn() -> RailResult<T>) -> RailResult<T> {
    match order().await {
        Err(RailError::HasNone) => order().await,
        answer => answer,
    }
}
