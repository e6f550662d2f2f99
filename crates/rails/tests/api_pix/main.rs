//! The adapter for API Pix against a player of the institution, whose records are the proof:
//! dialects, outcomes, answers that say nothing, cuts after each byte, redirects, certificates.

#![allow(clippy::unwrap_used)]

mod dialects;
mod efi_payouts;
mod hostile;
mod orders;
mod receipts;
mod returns;
mod third_party_client;
mod tls;
mod tokens;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use actors::rails::{OpenPix, PixOpening, PixRail, RailError, RailResult, Repay};
use centavo_rails::api_pix::{self, ApiPix, ApiPixSettings};
use ledger::{Centavos, ObjectId, Payer, Timestamp};
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_SECRET, Player};
use testkit::played_http::{Edit, Oddity};
use testkit::useless_answers::answer;

/// A player, and the adapter as its client.
struct World {
    player: Player,
    rail: ApiPix,
    folder: tempfile::TempDir,
}

impl World {
    async fn new(dialect: &str) -> Self {
        let player = Player::start(dialect).await;
        let folder = tempfile::tempdir().unwrap();
        let settings = player.settings(&secret_file(folder.path()));
        Self { rail: rail(settings), player, folder }
    }

    /// The adapter with another address of the API.
    fn rail_at(&self, url: &str) -> ApiPix {
        let mut settings = self.player.settings(&self.folder.path().join("secret"));
        settings["url"] = json!(format!("{url}{}", self.player.rules.base));
        rail(settings)
    }

    /// Opens a charge, which must go well; gives its txid.
    async fn opened(&self, number: u64) -> String {
        let answer = self.rail.open(charge(number)).await.unwrap();
        assert!(matches!(answer, PixOpening::Registered { .. }), "{answer:?}");
        id(number).txid()
    }

    /// A charge that was paid; gives the payment's end-to-end id.
    async fn paid(&self, number: u64) -> String {
        let txid = self.opened(number).await;
        self.player.pay(Some(&txid), "10.50")
    }
}

fn rail(settings: Value) -> ApiPix {
    let settings: ApiPixSettings = serde_json::from_value(settings).unwrap();
    api_pix::open(&settings).unwrap()
}

fn secret_file(folder: &Path) -> std::path::PathBuf {
    write_private(&folder.join("secret"), &format!("{CLIENT_SECRET}\n"))
}

fn write_private(path: &Path, text: &str) -> std::path::PathBuf {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.to_owned()
}

fn now() -> Timestamp {
    Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
}

fn id(number: u64) -> ObjectId {
    ObjectId::parse(&format!("0198f3a2-7c41-8d0e-8000-{number:012x}")).unwrap()
}

/// A charge of 10.50 that expires in an hour.
fn charge(number: u64) -> OpenPix {
    OpenPix {
        charge: id(number),
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

/// A return of a payment's 10.50.
fn repay(number: u64, payment: &str) -> Repay {
    Repay {
        id: id(number),
        decided_at: now(),
        charge: id(number),
        payment: payment.to_owned(),
        amount: Centavos(1_050),
        before: Centavos::ZERO,
        is_repeat: false,
    }
}

fn edits(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Oddity {
    let edit: Edit = Arc::new(edit);
    Oddity::Edits(edit)
}

/// As the engine does: an order that the institution has not is sent again.
async fn ordered<T>(order: impl AsyncFn() -> RailResult<T>) -> RailResult<T> {
    match order().await {
        Err(RailError::HasNone) => order().await,
        answer => answer,
    }
}
