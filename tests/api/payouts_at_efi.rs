//! A live server whose transfers go through Efí, seen from both sides: what merchants and operators
//! are answered, and what Efí has in its records.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use actors::rails::RailParties;
use centavo::server::named_rails::settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};
use ledger::rail_name::RailName;
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_ID, CLIENT_SECRET, KEY, Player};
use testkit::efi_player::{PlayedPayout, UNKNOWN_KEY};
use testkit::played_http::Oddity;

use crate::world::*;

/// Efí's API Pix as `efi`, and its pay-outs as `envios`, as a settings file would have them.
fn rails(folder: &Path, player: &Player) -> Option<NamedRailSettings> {
    let secret = folder.join("secret");
    std::fs::write(&secret, CLIENT_SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let [pix, payout] = ["efi", "envios"].map(|name| RailName::parse(name).unwrap());
    let payouts = json!({ "url": format!("http://{}", player.address), "client_id": CLIENT_ID, "key": KEY,
        "client_secret_file": secret });
    let named = |line, adapter| NamedRail { line, callback_url: None, parties: RailParties::default(), adapter };
    let by_name = [
        (pix.clone(), named(2, AdapterSettings::ApiPix(serde_json::from_value(player.settings(&secret)).unwrap()))),
        (payout.clone(), named(9, AdapterSettings::Efi(serde_json::from_value(payouts).unwrap()))),
    ];
    Some(NamedRailSettings {
        file: folder.join("centavo.toml"),
        line: 1,
        current: CurrentRails { pix: Some(pix), payout: Some(payout), card: None },
        by_name: by_name.into(),
    })
}

async fn live(player: &Player) -> World {
    live_on(tempfile::tempdir().unwrap(), player).await
}

async fn live_on(folder: tempfile::TempDir, player: &Player) -> World {
    let rails = rails(folder.path(), player);
    World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await
}

/// A charge of 80.00 that was paid, with this part of a recipient.
async fn paid(merchant: &Merchant<'_>, player: &Player, splits: &[(&str, i64)]) {
    let txid = text(&merchant.post("/api/pix", &with_splits(pix("80.00"), splits)).await.expect(201)["txid"]);
    player.pay(Some(&txid), "80.00");
    let charge = format!("/api/charges/{txid}");
    until("the charge is paid", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
}

/// What the books have at the bank, centavos.
async fn at_the_bank(world: &World) -> i64 {
    let accounts = world.accounts().await;
    accounts.iter().filter(|((_, account), _)| account == "Assets:Bank:Pix").map(|(_, sum)| sum).sum()
}

fn cashout(key: &str) -> Value {
    json!({ "amount": 1_050, "pix_key": key, "pix_key_type": "email" })
}

/// The transfer that Efí has under an id of ours.
fn transfer(player: &Player, id: &Value) -> PlayedPayout {
    player.records().payouts.by_id[&text(id).replace('-', "")].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cashout_is_sent_once_and_followed_to_its_end() {
    let player = Player::start("efi").await;
    let world = live(&player).await;
    let merchant = world.merchant().await;
    paid(&merchant, &player, &[]).await;
    let status = async |id: &Value| {
        let view = merchant.get(&format!("/api/cashout/{}", text(id))).await.expect(200);
        (text(&view["status"]), view["end_to_end_id"].clone())
    };
    // The answer to the order is lost; Efí has the transfer.
    player.is_odd("PUT", "/v3/gn/pix/", 1, Oddity::CarriesOutAndSays(Vec::new()));
    let sent = merchant.post("/api/cashout", &cashout("maria@example.com")).await.expect(201)["id"].clone();
    assert_eq!(status(&sent).await.0, "in_processing");
    let failed = merchant.post("/api/cashout", &cashout("joana@example.com")).await.expect(201)["id"].clone();
    let refused = merchant.post("/api/cashout", &cashout(UNKNOWN_KEY)).await.expect(201)["id"].clone();
    assert_eq!(status(&refused).await.0, "failed");
    {
        let payouts = &mut player.records().payouts;
        payouts.end(&text(&sent).replace('-', ""), "REALIZADO");
        payouts.end(&text(&failed).replace('-', ""), "NAO_REALIZADO");
    }
    until("it is carried out", async || status(&sent).await.0 == "processed").await;
    until("it has failed", async || status(&failed).await.0 == "failed").await;
    let known = transfer(&player, &sent);
    assert_eq!(status(&sent).await.1, known.end_to_end_id);
    assert_eq!((known.orders, &known.body["valor"]), (1, &json!("9.50")));
    assert_eq!(known.body["favorecido"], json!({ "chave": "maria@example.com" }));
    assert_eq!(at_the_bank(&world).await, 8_000 - i64::try_from(player.records().payouts.sum()).unwrap());
    world.check_books().await;

    // The receiver's bank sends the money back, in two pieces; the start reads Efí's list.
    for amount in ["4.00", "5.50"] {
        player.records().payouts.come_back(&text(&sent).replace('-', ""), amount, None);
    }
    let names = merchant.names;
    let world = live_on(world.stopped().await, &player).await;
    let merchant = Merchant { world: &world, names };
    let view = format!("/api/cashout/{}", text(&sent));
    until("it came back", async || merchant.get(&view).await.expect(200)["status"] == "failed").await;
    assert_eq!(at_the_bank(&world).await, 8_000, "all of it is there again");
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawal_goes_to_the_account_with_its_ispb_and_no_other_is_registered() {
    let player = Player::start("efi").await;
    let world = live(&player).await;
    let merchant = world.merchant().await;
    let refused = merchant.post("/api/sub-recipients", &individual("Ana", &cpf(1))).await;
    let refused = refused.refused(400, "validation_failed");
    let error = &refused["errors"][0];
    assert_eq!((&error["field"], &error["code"]), (&json!("bank_account.ispb"), &json!("unpayable")));
    let account = json!({ "ispb": "18236120", "agencia": "0001", "conta": "56789-X", "type": "conta_pagamento" });
    let body = with(&individual("Ana", &cpf(1)), "/bank_account", account);
    let ana = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/approve"), &json!({})).await.expect(200);
    let change = json!({ "bank_account": { "agencia": "12345" } });
    let refused = merchant.patch(&format!("/api/sub-recipients/{ana}"), &change).await;
    assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], "bank_account.agencia");
    // What is not of the account is changed all the same.
    let change = json!({ "register_information": { "email": "ana@example.com" } });
    merchant.patch(&format!("/api/sub-recipients/{ana}"), &change).await.expect(200);

    paid(&merchant, &player, &[(&ana, 1_000)]).await;
    let withdrawal = merchant.withdraw(&ana).await.expect(201)["withdrawal_id"].clone();
    let approved = world.approve(&text(&withdrawal)).await.expect(200);
    assert_eq!(approved["destination"]["legal_name"], "Ana", "the registered name goes along");
    assert_eq!(
        (&approved["destination"]["ispb"], &approved["destination"]["bank_code"]),
        (&json!("18236120"), &json!(null))
    );
    until("Efí has it", async || merchant.withdrawals(&ana).await[0]["status"] == "approved").await;
    let known = transfer(&player, &withdrawal);
    assert_eq!(
        known.body["favorecido"]["contaBanco"],
        json!({ "nome": "Ana", "cpf": cpf(1), "codigoBanco": "18236120", "agencia": "0001", "conta": "567890",
            "tipoConta": "tran" })
    );
    assert_eq!((known.orders, &known.body["valor"]), (1, &json!("10.00")));
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}
