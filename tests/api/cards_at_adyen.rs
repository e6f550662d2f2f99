//! A live server whose cards go through Adyen, seen from both sides.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use centavo::server::named_rails::settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};
use ledger::rail_name::RailName;
use serde_json::json;
use testkit::adyen_player::{API_KEY, AdyenPlayer, BLOCKED, CHALLENGED, NO_BALANCE};
use testkit::played_http::Oddity;

use crate::world::*;

fn rails(folder: &Path, player: &AdyenPlayer) -> Option<NamedRailSettings> {
    let key = folder.join("adyen-key");
    std::fs::write(&key, API_KEY).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let adapter = AdapterSettings::Adyen(serde_json::from_value(player.settings(&key)).unwrap());
    let adyen = RailName::parse("adyen").unwrap();
    let current = CurrentRails { card: Some(adyen.clone()), ..CurrentRails::default() };
    let by_name = [(adyen, NamedRail { line: 2, callback_url: None, adapter })].into();
    Some(NamedRailSettings { file: folder.join("centavo.toml"), line: 1, current, by_name })
}

async fn live(player: &AdyenPlayer, folder: tempfile::TempDir) -> World {
    let rails = rails(folder.path(), player);
    World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_at_adyen_is_captured_refused_and_refunded() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let paid = merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    assert_eq!((&paid["status"], &paid["cardStatus"]), (&json!("CONCLUIDA"), &json!("captured")));
    let txid = text(&paid["txid"]);
    let shown = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!((&shown["authorization"], &shown["card"]["brand"]), (&json!("065696"), &json!("elo")));
    let payment = player.payment(&txid).unwrap();
    assert_eq!((payment.captured, payment.refunded), (10_000, 0));
    assert_eq!(payment.body["shopperEmail"], card(10_000, APPROVED)["customer"]["email"]);

    for (number, status) in [(NO_BALANCE, "refused_12"), (BLOCKED, "refused_5")] {
        let refused = merchant.post("/api/card", &card(10_000, number)).await.refused(402, "card_declined");
        assert_eq!(refused["cardStatus"], status);
        let shown = merchant.get(&format!("/api/charges/{}", text(&refused["txid"]))).await.expect(200);
        assert_eq!((&shown["status"], &shown["cardStatus"]), (&json!("RECUSADA"), &json!(status)));
    }

    // The answer is lost twice; the same key finds the payment.
    player.is_odd("/payments", 2, Oddity::CutsAnswerAt(0));
    let again = merchant.post("/api/card", &card(2_000, APPROVED)).await.expect(201);
    assert_eq!(again["status"], "CONCLUIDA");
    let of_charge = |txid: &str| player.records().payments.iter().filter(|one| one.body["reference"] == *txid).count();
    assert_eq!((of_charge(&text(&again["txid"])), player.count("/payments")), (1, 6));

    for (amount, sum) in [(2_500, 2_500), (1_000, 3_500)] {
        let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": amount})).await.expect(201);
        world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
        assert_eq!(player.payment(&txid).unwrap().refunded, sum);
    }
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}

/// A payment whose payer would have to be asked ends by an order to cancel it; the charge waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_that_needs_its_payer_is_pending() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let waits = merchant.post("/api/card", &card(10_000, CHALLENGED)).await.expect(201);
    assert_eq!((&waits["status"], &waits["cardStatus"]), (&json!("pending"), &json!("processing")));
    assert_eq!(player.count("/captures"), 0);
    world.check_books().await;
}

/// The capture is not answered before the server stops. The one that starts later orders it under
/// the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_was_lost_is_ordered_again_under_its_key() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    player.is_odd("/captures", 3, Oddity::CutsAnswerAt(0));
    let waits = merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    assert_eq!(waits["status"], "pending");
    let (names, txid) = (merchant.names.clone(), text(&waits["txid"]));
    assert_eq!(player.payment(&txid).unwrap().captured, 10_000, "it was carried out");
    drop(merchant);
    let world = live(&player, world.stopped().await).await;
    let merchant = Merchant { world: &world, names };
    let charge = format!("/api/charges/{txid}");
    until("it is captured", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
    let carried_out = player.records().modifications.len();
    assert_eq!((carried_out, player.payment(&txid).unwrap().captured), (1, 10_000));
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}
