//! A live server whose cards, PIX and transfers go through one bridge that speaks the rail
//! protocol, seen from both sides.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use actors::rails::RailParties;
use centavo::server::named_rails::settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};
use ledger::rail_name::RailName;
use serde_json::json;
use testkit::played_http::Request;
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
    let parties = RailParties {
        receiver_document: Some("11222333000181".to_owned()),
        psp_ispb: Some("00000208".to_owned()),
        acquirer_document: Some("12ABC34501DE35".to_owned()),
    };
    let by_name = [(bridge, NamedRail { line: 2, callback_url: None, parties, adapter })].into();
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
    let shown = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!([&shown["authorization"], &shown["nsu"]], ["A1B2C3", "000000000017"]);
    let fiscal =
        json!({"means": "03", "brand": "01", "authorization": "A1B2C3", "acquirer_document": "12ABC34501DE35"});
    assert_eq!(shown["fiscal"], fiscal);
    let exported = world.ops_get("/ops/export?format=jsonl").await.text;
    let captured = exported.lines().find(|line| line.contains("card_captured")).expect("a capture");
    assert!(
        captured.contains("\"authorization\":\"A1B2C3\"") && captured.contains("\"nsu\":\"000000000017\""),
        "{captured}"
    );
    merchant.post("/api/card", &card(10_000, DECLINED)).await.refused(402, "card_declined");
    assert_eq!(player.count("PUT", "/cards/"), 2, "an order each");

    // A part goes back: asked for by the merchant, approved by an operator.
    let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 2_500})).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    let order = format!("/repayments/{}", text(&refund["id"]).replace('-', ""));
    assert_eq!(player.carried_out(&order), 1);
    assert_eq!(player.records().objects[&order].body["amount"], 2_500);
    let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 1_000})).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    let second = format!("/repayments/{}", text(&refund["id"]).replace('-', ""));
    let before = [&order, &second].map(|order| player.records().objects[order].body["before"].as_i64());
    assert_eq!(before, [Some(0), Some(2_500)], "what was given back before");

    let opened = merchant.post("/api/pix", &pix("80.00")).await.expect(201);
    let charge = format!("/api/charges/{}", text(&opened["txid"]));
    let end_to_end_id = player.pay(Some(&text(&opened["txid"])), 8_000);
    until("the payment is booked", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
    let shown = merchant.get(&charge).await.expect(200);
    assert_eq!(shown["end_to_end_id"], end_to_end_id);
    let fiscal = json!({"means": "17", "txid": shown["txid"], "end_to_end_id": end_to_end_id,
        "receiver_document": "11222333000181", "psp_ispb": "00000208"});
    assert_eq!(shown["fiscal"], fiscal);

    let body = json!({"amount": 1_050, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
    let view = format!("/api/cashout/{cashout}");
    until("it is carried out", async || merchant.get(&view).await.expect(200)["status"] == "processed").await;
    let order = format!("/payouts/{}", cashout.replace('-', ""));
    assert_eq!((player.carried_out(&order), player.records().objects[&order].body["amount"].as_i64()), (1, Some(950)));

    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}

/// How often the list of cases was read.
fn looks(player: &RailPlayer) -> usize {
    player.stage().requests.iter().filter(|seen| seen.parameter("kind") == Some("dispute")).count()
}

/// The first dispute of a charge, once there is one with this status.
async fn dispute(merchant: &Merchant<'_>, charge: &str, status: &str) -> serde_json::Value {
    let found = async || {
        let disputes = merchant.get("/api/disputes").await.expect(200);
        items(&disputes).iter().find(|one| one["payment_id"] == *charge && one["status"] == *status).cloned()
    };
    until("the dispute is as the rail says", async || found().await.is_some()).await;
    found().await.expect("it was there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cases_of_a_bridge_open_and_end_disputes() {
    let (player, folder) = (RailPlayer::start("same").await, tempfile::tempdir().unwrap());
    let rails = rails(folder.path(), &player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    let (names, [lost, won, unseen], pix_paid) = {
        let merchant = world.merchant().await;
        let charged = async || text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
        let cards = [charged().await, charged().await, charged().await];
        let pix_paid = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
        player.pay(Some(&pix_paid), 8_000);
        let charge = format!("/api/charges/{pix_paid}");
        until("the payment is booked", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
        (merchant.names, cards, pix_paid)
    };
    player.dispute("CB-1", &lost, 10_000, "open");
    player.dispute("CB-2", &won, 4_000, "open");
    player.dispute("CB-3", &unseen, 10_000, "debited");
    player.dispute("MED-1", &pix_paid, 8_000, "open");
    player.dispute("CB-4", "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e", 8_000, "open");
    // The next start reads the cases.
    let world = World::live_on(world.stopped().await, |settings| settings.rails.clone_from(&rails)).await;
    {
        let merchant = Merchant { world: &world, names: names.clone() };
        let opened = dispute(&merchant, &lost, "open").await;
        assert_eq!(
            [&opened["case_id"], &opened["kind"], &opened["amount"]],
            [&json!("CB-1"), &json!("chargeback"), &json!(10_000)]
        );
        assert_eq!(opened["reason"], "Compra não reconhecida");
        assert!(text(&opened["due_at"]).ends_with('Z'), "{opened}");
        dispute(&merchant, &won, "open").await;
        assert_eq!(dispute(&merchant, &unseen, "accepted").await["case_id"], "CB-3");
        assert_eq!(dispute(&merchant, &pix_paid, "open").await["kind"], "med");
        let queue = world.ops_get("/ops/queue?kind=dispute").await.expect(200);
        assert_eq!(items(&queue).len(), 3, "{queue}");
        assert!(items(&queue).iter().all(|item| item["case_id"].is_string() && item["due_at"].is_string()), "{queue}");
    }
    player.dispute("CB-1", &lost, 10_000, "debited");
    player.dispute("CB-2", &won, 4_000, "released");
    player.dispute("MED-1", &pix_paid, 5_000, "debited");
    let world = World::live_on(world.stopped().await, |settings| settings.rails.clone_from(&rails)).await;
    let merchant = Merchant { world: &world, names: names.clone() };
    dispute(&merchant, &lost, "accepted").await;
    dispute(&merchant, &won, "released").await;
    assert_eq!(dispute(&merchant, &pix_paid, "accepted").await["accepted_amount"], 5_000);
    let before = world.cut().await;
    let folder = world.stopped().await;
    let looked = looks(&player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    until("the cases are read again", async || looks(&player) > looked).await;
    assert_eq!(world.cut().await, before, "what was booked changes nothing");
    assert_eq!(player.records().violations, [""; 0]);
    assert_eq!(player.count("PUT", "/repayments/"), 0, "the rail took the money itself");
    // A bridge for cards and PIX has one list of cases: the first look of all reads 30 days, and
    // there is one.
    let at = |seen: &Request, name: &str| {
        chrono::DateTime::parse_from_rfc3339(seen.parameter(name).unwrap_or_default()).unwrap()
    };
    let is_first = |seen: &&Request| {
        seen.parameter("kind") == Some("dispute") && at(seen, "until") - at(seen, "from") == chrono::TimeDelta::days(30)
    };
    assert_eq!(player.stage().requests.iter().filter(is_first).count(), 1);
    world.check_books().await;
}

/// Money that a rail takes and that no dispute explains is not only a line of the log: it waits for
/// operators, once, until they drop it. For no charge at all, they are asked for an entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_debit_that_no_dispute_explains_is_an_operators() {
    let (player, folder) = (RailPlayer::start("same").await, tempfile::tempdir().unwrap());
    let rails = rails(folder.path(), &player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    let (names, charges) = {
        let merchant = world.merchant().await;
        let charged = async || text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
        let charges = [charged().await, charged().await];
        (merchant.names, charges)
    };
    let [confirmed, other_amount] = &charges;
    for (case, charge) in [("CB-1", confirmed), ("CB-2", other_amount)] {
        player.dispute(case, charge, 6_000, "open");
    }
    let world = World::live_on(world.stopped().await, |settings| settings.rails.clone_from(&rails)).await;
    {
        let merchant = Merchant { world: &world, names: names.clone() };
        // The rail confirms the acceptance, under a reference of its own.
        let id = text(&dispute(&merchant, confirmed, "open").await["id"]);
        world.ops_post(&format!("/ops/disputes/{id}/accept"), &json!({})).await.expect(200);
        assert_eq!(player.carried_out(&format!("/repayments/{}", id.replace('-', ""))), 1);
        dispute(&merchant, other_amount, "open").await;
    }
    // A debit of it under another one; one above what is disputed; and one of no charge of ours.
    player.dispute("CB-1", confirmed, 6_000, "debited");
    player.dispute("CB-2", other_amount, 7_000, "debited");
    player.dispute("MED-3", "somebody-elses-charge", 900, "debited");
    let world = World::live_on(world.stopped().await, |settings| settings.rails.clone_from(&rails)).await;
    let waiting =
        async |kind: &str| items(&world.ops_get(&format!("/ops/queue?kind={kind}")).await.expect(200)).to_vec();
    until("all wait", async || (waiting("rail").await.len(), waiting("entry").await.len()) == (2, 1)).await;
    let of = |item: &serde_json::Value| {
        let [charge, case, need] = ["payment_id", "case_id", "waits_for"].map(|name| text(&item[name]));
        (charge, case, need, item["amount"].as_i64().unwrap())
    };
    let mut shown: Vec<_> = waiting("rail").await.iter().map(of).collect();
    shown.sort_by_key(|(_, case, ..)| case.clone());
    let expected =
        |at: usize, case: &str, amount| (charges[at].clone(), case.to_owned(), "reversal".to_owned(), amount);
    assert_eq!(shown, [expected(0, "CB-1", 6_000), expected(1, "CB-2", 7_000)]);
    let named = |item: &serde_json::Value| item["rail"] == "bridge" && item["ordered"].is_null();
    assert!(waiting("rail").await.iter().all(named), "a notification is no order");
    let entry = waiting("entry").await.remove(0);
    assert_eq!(
        [&entry["debit"], &entry["credit"], &entry["reference"], &entry["amount"]],
        [&json!("Liabilities:Suspense"), &json!("Assets:Bank:Pix"), &json!("debit-MED-3"), &json!(900)]
    );
    let reject = json!({"notes": "Não é nosso"});
    world.ops_post(&format!("/ops/entries/{}/reject", text(&entry["id"])), &reject).await.expect(200);
    let word = json!({"outcome": "did_not_happen", "reference": "P-1", "reason": "Estornado pelo banco"});
    for item in waiting("rail").await {
        let settle = format!("/ops/rail-items/{}/settle", text(&item["id"]));
        world.ops_post(&settle, &word).await.expect(202);
        world.second_ops_post(&settle, &[], &word).await.expect(200);
    }
    // They are listed again, and are dropped for good.
    let (before, looked) = (world.cut().await, looks(&player));
    let world = World::live_on(world.stopped().await, |settings| settings.rails.clone_from(&rails)).await;
    until("the cases are read again", async || looks(&player) > looked).await;
    let queue = world.ops_get("/ops/queue").await.expect(200);
    assert!(items(&queue).iter().all(|item| item["kind"] == "dispute"), "{queue}");
    assert_eq!(world.cut().await, before, "nothing more is asked for");
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_acquirer_is_given_the_storefront_of_the_merchant() {
    let (player, folder) = (RailPlayer::start("same").await, tempfile::tempdir().unwrap());
    let rails = rails(folder.path(), &player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    let merchant = world.merchant().await;
    let sold = async || {
        let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
        player.records().objects[&format!("/cards/{txid}")].body["merchant"].clone()
    };
    assert_eq!(sold().await, serde_json::Value::Null, "nothing is registered");
    let address =
        json!({"street": "Rua Direita", "number": "10", "city": "São Paulo", "state": "SP", "zip_code": "01002000"});
    let storefront = json!({
        "soft_descriptor": "LOJA AZUL", "mcc": "5651", "address": address, "phone": "5511988887777",
        "email": "contato@loja.example", "url": "https://loja.example", "acquirer_id": "LOJAAZUL1",
    });
    let path = format!("/ops/merchants/{}", merchant.id);
    for (pointer, value) in [
        ("/soft_descriptor", "A NAME OF TWENTY-THREE C"),
        ("/soft_descriptor", "AÇAÍ"),
        ("/mcc", "565"),
        ("/address/number", ""),
        ("/address/state", "sp"),
        ("/address/zip_code", "01002-000"),
        ("/phone", "+5511988887777"),
        ("/email", "contato"),
        ("/url", "http://loja.example"),
        ("/acquirer_id", "LOJA-AZUL"),
        ("/acquirer_id", "LOJAAZUL12345678"),
    ] {
        let wrong = json!({"storefront": with(&storefront, pointer, json!(value))});
        let refused = world.ops_patch(&path, &wrong).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], format!("storefront{}", pointer.replace('/', ".")), "{refused}");
    }
    let changed = world.ops_patch(&path, &json!({"storefront": storefront})).await.expect(200);
    assert_eq!(changed["storefront"], storefront);
    let seller = sold().await;
    assert_eq!(
        [&seller["soft_descriptor"], &seller["mcc"], &seller["acquirer_id"]],
        ["LOJA AZUL", "5651", "LOJAAZUL1"]
    );
    assert_eq!((&seller["address"], &seller["name"]), (&address, &changed["name"]));
    assert!(text(&seller["document"]).bytes().all(|byte| byte.is_ascii_alphanumeric()), "{seller}");
    // What is not sent stays; null takes it away.
    let renamed = world.ops_patch(&path, &json!({"name": "Loja Verde"})).await.expect(200);
    assert_eq!(renamed["storefront"], storefront);
    let part = json!({"storefront": {"mcc": "5999"}});
    assert_eq!(world.ops_patch(&path, &part).await.expect(200)["storefront"]["phone"], serde_json::Value::Null);
    world.ops_patch(&path, &json!({"storefront": null})).await.expect(200);
    assert_eq!(sold().await, serde_json::Value::Null);
    assert_eq!(player.records().violations, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_card_charge_of_which_nothing_was_sent_has_ended() {
    let (player, folder) = (RailPlayer::start("same").await, tempfile::tempdir().unwrap());
    let rails = rails(folder.path(), &player);
    let world = World::live_on(folder, |settings| settings.rails.clone_from(&rails)).await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    drop(player);
    for _ in 0..2 {
        let answer = merchant.post_keyed("/api/card", "gone-1", &card(7_000, APPROVED)).await;
        let problem = answer.refused(502, "rail_unavailable");
        assert_eq!(problem["cardStatus"], "failed");
        let charge = merchant.get(&format!("/api/charges/{}", text(&problem["txid"]))).await.expect(200);
        assert_eq!(charge["status"], "RECUSADA");
    }
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 2, "a repeat makes no other charge");
    world.check_books().await;
}
