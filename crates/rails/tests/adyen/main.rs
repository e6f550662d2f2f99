//! The adapter for Adyen against a player of it, whose records are the proof: outcomes, lost
//! answers, words that are no authorization, answers that say nothing.

#![allow(clippy::unwrap_used)]

mod hostile;
mod notifications;
mod orders;

use std::time::{SystemTime, UNIX_EPOCH};

use actors::rails::{CaptureCard, CardAnswer, CardRail, CardSecrets, ChargeCard, ChargedCard, Repay};
use centavo_rails::adyen::{self, Adyen, AdyenSettings};
use ledger::fees::Commission;
use ledger::merchant::Authorization;
use ledger::{Centavos, MerchantProfile, ObjectId, OpenCharge, Payer, PaymentMethod, Terms, Timestamp};
use testkit::adyen_player::AdyenPlayer;

/// A player, and the adapter as its client.
struct World {
    player: AdyenPlayer,
    rail: Adyen,
    _folder: tempfile::TempDir,
}

const AMOUNT: Centavos = Centavos(1_050);
const GOOD: &str = "4111111111111111";

impl World {
    async fn new() -> Self {
        let (player, folder) = (AdyenPlayer::start().await, tempfile::tempdir().unwrap());
        let settings: AdyenSettings = serde_json::from_value(player.settings(folder.path())).unwrap();
        let rail = adyen::open(&settings).unwrap();
        Self { player, rail, _folder: folder }
    }

    async fn authorized(&self, number: u64) -> Authorization {
        match self.rail.charge(charge(id(number))).await.unwrap() {
            CardAnswer::Authorized(authorized) => authorized,
            other => panic!("{other:?}"),
        }
    }

    /// A charge that was captured; gives Adyen's id of the payment.
    async fn captured(&self, number: u64) -> String {
        let call = CaptureCard { charge: id(number), amount: AMOUNT, authorized: self.authorized(number).await };
        match self.rail.capture(call).await.unwrap() {
            CardAnswer::Captured { stamp, .. } => stamp.id,
            other => panic!("{other:?}"),
        }
    }
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

/// Ids of this test run.
fn id(number: u64) -> ObjectId {
    static BORN_AT: std::sync::OnceLock<Timestamp> = std::sync::OnceLock::new();
    let born_at = *BORN_AT.get_or_init(now);
    ObjectId(((born_at.0 as u128) << 80) | (0x8 << 76) | (0b10 << 62) | u128::from(number))
}

/// A card charge of 10.50.
fn charge(charge: ObjectId) -> ChargeCard {
    charge_of(charge, GOOD)
}

fn card(number: &str) -> CardSecrets {
    CardSecrets {
        number: number.to_owned(),
        holder_name: "FULANO DE TAL".to_owned(),
        exp_month: 3,
        exp_year: 2031,
        cvv: "123".to_owned(),
    }
}

fn charge_of(charge: ObjectId, number: &str) -> ChargeCard {
    ChargeCard {
        charge,
        amount: AMOUNT,
        installments: 1,
        method: PaymentMethod::CreditCard,
        card: ChargedCard::Given(card(number)),
        merchant: MerchantProfile::default(),
        payer: Payer { email: Some("ana@example.com".to_owned()), ..Payer::default() },
        not_after: now().plus_ms(30_000),
    }
}

fn open_card() -> OpenCharge {
    let commission = Commission::default();
    let terms = Terms {
        amount: AMOUNT,
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        commission,
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

fn repay(number: u64, charge: ObjectId, payment: &str, amount: i64) -> Repay {
    Repay {
        id: id(number),
        decided_at: now(),
        charge,
        payment: payment.to_owned(),
        amount: Centavos(amount),
        before: Centavos::ZERO,
        is_repeat: false,
    }
}
