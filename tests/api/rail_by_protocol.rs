//! A live server whose cards, PIX and transfers go through one bridge that speaks the rail
//! protocol, seen from both sides.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use centavo::server::named_rails::settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};
use ledger::rail_name::RailName;
use serde_json::json;
use testkit::rail_player::{DECLINED, RailPlayer, SECRET};

use crate::world::*;

fn rails(folder: &Path, player: &RailPlayer) -> Option<NamedRailSettings> {
    let secret = folder.join("secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let settings = json!({ "url": player.url(), "secret_file": secret, "serves": ["card", "pix", "payout"] });
    let adapter = AdapterSettings::Http(serde_json::from_value(settings).unwrap());
    let bridge = RailName::parse("bridge").unwrap();
    let current = CurrentRails { card: Some(bridge.clone()), pix: Some(bridge.clone()), payout: Some(bridge.clone()) };
    let by_name = [(bridge, NamedRail { line: 2, callback_url: None, adapter })].into();
    Some(NamedRailSettings { file: folder.join("centavo.toml"), line: 1, current, by_name })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cards_pix_and_transfers_go_through_a_bridge() {
    let (player, folder) = (RailPlayer::start("same").await, tempfile::tempdir().unwrap());
    let rails = rails(folder.path(), &player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    let merchant = world.merchant().await;
    let paid = merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    let txid = text(&paid["txid"]);
    assert_eq!(paid["status"], "CONCLUIDA");
    merchant.post("/api/card", &card(10_000, DECLINED)).await.refused(402, "card_declined");
    assert_eq!(player.count("PUT", "/cards/"), 2, "an order each");

    // A part goes back: asked for by the merchant, approved by an operator.
    let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 2_500})).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    let order = format!("/repayments/{}", text(&refund["id"]).replace('-', ""));
    assert_eq!(player.carried_out(&order), 1);
    assert_eq!(player.records().objects[&order].body["amount"], 2_500);

    let opened = merchant.post("/api/pix", &pix("80.00")).await.expect(201);
    let charge = format!("/api/charges/{}", text(&opened["txid"]));
    let end_to_end_id = player.pay(Some(&text(&opened["txid"])), 8_000);
    until("the payment is booked", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
    assert_eq!(merchant.get(&charge).await.expect(200)["end_to_end_id"], end_to_end_id);

    let body = json!({"amount": 1_050, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let view = format!("/api/cashout/{cashout}");
    until("it is carried out", async || merchant.get(&view).await.expect(200)["status"] == "processed").await;
    let order = format!("/payouts/{}", cashout.replace('-', ""));
    assert_eq!((player.carried_out(&order), player.records().objects[&order].body["amount"].as_i64()), (1, Some(950)));

    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}
