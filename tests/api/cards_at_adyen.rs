//! A live server whose cards go through Adyen, seen from both sides.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use actors::rails::RailParties;
use centavo::server;
use centavo::server::named_rails::settings::{
    AdapterSettings, BellSettings, CurrentRails, NamedRail, NamedRailSettings,
};
use centavo::settings::checked::Settings;
use ledger::rail_name::RailName;
use serde_json::{Value, json};
use testkit::adyen_player::{AdyenPlayer, BLOCKED, CHALLENGED, NO_BALANCE, notification};
use testkit::played_http::Oddity;

use crate::acquirer::{FILE_HEAD, platform, send_file};
use crate::world::*;

fn rails(folder: &Path, player: &AdyenPlayer) -> Option<NamedRailSettings> {
    let adapter = AdapterSettings::Adyen(serde_json::from_value(player.settings(folder)).unwrap());
    let adyen = RailName::parse("adyen").unwrap();
    let current = CurrentRails { card: Some(adyen.clone()), ..CurrentRails::default() };
    let by_name = [(adyen, NamedRail { line: 2, callback_url: None, parties: RailParties::default(), adapter })].into();
    Some(NamedRailSettings { file: folder.join("centavo.toml"), line: 1, current, by_name })
}

const SECRET: &str = "the-secret-of-the-paths-with-32-characters";

async fn live(player: &AdyenPlayer, folder: tempfile::TempDir) -> World {
    let rails = rails(folder.path(), player);
    let secret = folder.path().join("path-secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (listen, path_secret) = ("127.0.0.1:0".parse().unwrap(), Some(secret));
    let bells = Some(BellSettings { listen, tls: None, client_authority: None, path_secret });
    World::live_on(folder, |settings| {
        settings.rails.clone_from(&rails);
        settings.bells.clone_from(&bells);
    })
    .await
}

/// Sends a notification twice, as Adyen may.
async fn notify(world: &World, body: &Value) {
    for _ in 0..2 {
        assert_eq!(world.ring(&format!("/{SECRET}/adyen/notifications"), body).await, 200, "{body}");
    }
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

    // The answer is lost: the order is not sent again, and the charge waits for its end.
    player.is_odd("/payments", 1, Oddity::CutsAnswerAt(0));
    let lost = merchant.post("/api/card", &card(2_000, APPROVED)).await.expect(201);
    assert_eq!(lost["status"], "pending");
    assert_eq!((player.payment(&text(&lost["txid"])).unwrap().captured, player.count("/payments")), (0, 4));

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
    let psp = player.payment(&txid).unwrap();
    assert_eq!(psp.captured, 10_000, "it was carried out");
    let taken = notification("CHARGEBACK", "true", "DISPUTE1", [&txid, &psp.psp_reference], 4_000);
    let path = format!("/{SECRET}/adyen/notifications");
    assert_eq!(world.ring(&path, &taken).await, 503, "before the charge is paid here: it is sent again");
    drop(merchant);
    let world = live(&player, world.stopped().await).await;
    let merchant = Merchant { world: &world, names };
    let charge = format!("/api/charges/{txid}");
    until("it is captured", async || merchant.get(&charge).await.expect(200)["status"] == "CONCLUIDA").await;
    let carried_out = player.records().modifications.len();
    assert_eq!((carried_out, player.payment(&txid).unwrap().captured), (1, 10_000));
    notify(&world, &taken).await;
    assert_eq!(dispute(&merchant, &txid, "accepted").await["amount"], 4_000);
    // A refund whose order was not answered has no id of Adyen's yet.
    player.is_odd("/refunds", usize::MAX, Oddity::CutsAnswerAt(0));
    let asked = json!({"payment_id": txid, "amount": 2_500});
    let id = text(&merchant.post("/api/refunds", &asked).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    let failed = |id: &str| notification("REFUND_FAILED", "true", id, [&txid, &psp.psp_reference], 2_500);
    assert_eq!(world.ring(&path, &failed("UNKNOWN")).await, 503);
    player.stage().odd.clear();
    until("it is repaid", async || world.ring(&path, &failed("UNKNOWN")).await == 200).await;
    notify(&world, &failed(&player.last_reference())).await;
    let shown = merchant.get(&format!("/api/refunds/{id}")).await.expect(200);
    assert_eq!(shown["status"], "failed");
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}

/// The dispute of a charge with this status.
async fn dispute(merchant: &Merchant<'_>, charge: &str, status: &str) -> Value {
    let disputes = merchant.get("/api/disputes").await.expect(200);
    let found = items(&disputes).iter().find(|one| one["payment_id"] == *charge && one["status"] == *status);
    found.unwrap_or_else(|| panic!("{status} of {charge} in {disputes}")).clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_adyen_has_undone_is_booked_once() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let charged = async || text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let [refunded, lost, uncaptured] = [charged().await, charged().await, charged().await];
    let psp = |txid: &str| player.payment(txid).unwrap().psp_reference;
    let pending = async || merchant.get("/api/balance").await.expect(200)["pending"].as_i64().unwrap();
    let whole = pending().await;

    // The refund names itself, or the acquirer's id of it alone.
    for names_itself in [true, false] {
        let asked = json!({"payment_id": refunded, "amount": 2_500});
        let id = text(&merchant.post("/api/refunds", &asked).await.expect(201)["id"]);
        world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
        assert_eq!(pending().await, whole - 2_500);
        let own = id.replace('-', "");
        let last = player.records().modifications.last().unwrap().clone();
        assert_eq!(last.1["reference"], *own);
        let reference = if names_itself { own.as_str() } else { refunded.as_str() };
        let of_refund = if names_itself { "UNKNOWN".to_owned() } else { player.last_reference() };
        let failed = notification("REFUND_FAILED", "true", &of_refund, [reference, &psp(&refunded)], 2_500);
        notify(&world, &failed).await;
        let shown = merchant.get(&format!("/api/refunds/{id}")).await.expect(200);
        assert_eq!((&shown["status"], pending().await), (&json!("failed"), whole), "{shown}");
    }

    let opened = notification("NOTIFICATION_OF_CHARGEBACK", "true", "DISPUTE1", [&lost, &psp(&lost)], 10_000);
    notify(&world, &opened).await;
    assert_eq!(dispute(&merchant, &lost, "open").await["case_id"], "DISPUTE1");
    notify(&world, &notification("CHARGEBACK", "true", "DISPUTE1", [&lost, &psp(&lost)], 10_000)).await;
    dispute(&merchant, &lost, "accepted").await;
    // It is won, lost again and won again; each is said twice.
    let says = |event, id| notification(event, "true", id, [&lost, &psp(&lost)], 10_000);
    let taken = pending().await;
    for id in ["DISPUTE1", "DISPUTE2"] {
        notify(&world, &says("CHARGEBACK_REVERSED", id)).await;
        notify(&world, &says("CHARGEBACK_REVERSED", id)).await;
        dispute(&merchant, &lost, "reversed").await;
        assert_ne!(pending().await, taken, "the money is back");
        notify(&world, &says("CHARGEBACK", "DISPUTE1")).await;
        if id == "DISPUTE1" {
            notify(&world, &says("SECOND_CHARGEBACK", id)).await;
            notify(&world, &says("SECOND_CHARGEBACK", id)).await;
            dispute(&merchant, &lost, "accepted").await;
            assert_eq!(pending().await, taken);
        }
    }
    let failed = notification("CAPTURE_FAILED", "true", "CAPTURE1", [&uncaptured, &psp(&uncaptured)], 10_000);
    notify(&world, &failed).await;
    dispute(&merchant, &uncaptured, "accepted").await;
    let disputes = merchant.get("/api/disputes").await.expect(200);
    assert_eq!(items(&disputes).len(), 3, "{disputes}");
    assert_eq!(player.records().violations, [""; 0]);
    world.check_books().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_of_unknown_fate_ends_by_a_notification_that_is_signed() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let charged = async || text(&merchant.post("/api/card", &card(10_000, CHALLENGED)).await.expect(201)["txid"]);
    let [cancelled, refused] = [charged().await, charged().await];
    let status = async |txid: &str| {
        let shown = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
        (text(&shown["status"]), text(&shown["cardStatus"]))
    };
    let says = |event, success, txid| notification(event, success, "CANCEL1", [txid, ""], 10_000);
    // Adyen had nothing to cancel: that says nothing. Neither does an authorization.
    notify(&world, &says("TECHNICAL_CANCEL", "false", &cancelled)).await;
    notify(&world, &says("AUTHORISATION", "true", &cancelled)).await;
    let path = format!("/{SECRET}/adyen/notifications");
    let mut forged = says("TECHNICAL_CANCEL", "true", &cancelled);
    forged["notificationItems"][0]["NotificationRequestItem"]["amount"]["value"] = json!(10_001);
    assert_eq!(world.ring(&path, &forged).await, 401);
    let good = says("TECHNICAL_CANCEL", "true", &cancelled);
    for path in ["/adyen/notifications", &format!("/{SECRET}/other/notifications"), &format!("/{SECRET}/adyen/pix")] {
        assert_eq!(world.ring(path, &good).await, 404, "{path}");
    }
    assert_eq!(status(&cancelled).await.0, "pending");
    notify(&world, &good).await;
    assert_eq!(status(&cancelled).await, ("RECUSADA".to_owned(), "failed".to_owned()));
    notify(&world, &says("AUTHORISATION", "false", &refused)).await;
    assert_eq!(status(&refused).await, ("RECUSADA".to_owned(), "not_authorized".to_owned()));
    // A charge that is paid stays so.
    let paid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    for (event, success) in [("AUTHORISATION", "false"), ("TECHNICAL_CANCEL", "true"), ("EXPIRE", "true")] {
        notify(&world, &says(event, success, &paid)).await;
    }
    assert_eq!(status(&paid).await.0, "CONCLUIDA");
    world.check_books().await;
}

/// Notifications of one charge of 10,000, in the order in which Adyen makes them, and what the
/// books come to in whatever order they arrive: what Adyen owes, centavos, and the statuses of
/// disputes. A story with a refund begins with one of 2,500. An event may have another amount.
const STORIES: [(&str, &str, i64, &str); 12] = [
    (CHALLENGED, "AUTHORISATION/false, EXPIRE, TECHNICAL_CANCEL", 0, ""),
    (APPROVED, "AUTHORISATION, CAPTURE", 10_000, ""),
    (APPROVED, "CAPTURE, CAPTURE_FAILED", 0, "accepted"),
    (APPROVED, "REFUND, REFUND_FAILED, REFUNDED_REVERSED", 10_000, ""),
    (APPROVED, "REFUND/false, REFUND_FAILED/false", 10_000, ""),
    (APPROVED, "REFUND, NOTIFICATION_OF_CHARGEBACK D1, CHARGEBACK D1", -2_500, "accepted"),
    (APPROVED, "REFUND_FAILED, CAPTURE_FAILED", 0, "accepted"),
    (APPROVED, "REFUND_FAILED, CHARGEBACK D1, CHARGEBACK_REVERSED D1", 10_000, "reversed"),
    (
        APPROVED,
        "NOTIFICATION_OF_CHARGEBACK D1, CHARGEBACK D1, CHARGEBACK_REVERSED D1, SECOND_CHARGEBACK D1",
        0,
        "accepted reversed",
    ),
    (
        APPROVED,
        "CHARGEBACK D1, CHARGEBACK_REVERSED D1, SECOND_CHARGEBACK D1, CHARGEBACK_REVERSED D2",
        10_000,
        "reversed reversed",
    ),
    (
        APPROVED,
        "CHARGEBACK D1 4000, CHARGEBACK_REVERSED D1 4000, CHARGEBACK D2 6000, CHARGEBACK/false D3 1",
        4_000,
        "accepted reversed",
    ),
    (
        APPROVED,
        "CHARGEBACK D1 5000, CHARGEBACK_REVERSED D1 5000, CHARGEBACK D2 5000, CHARGEBACK_REVERSED D2 5000",
        10_000,
        "reversed reversed",
    ),
];

/// All orders of some steps.
fn orders<'a>(steps: &[&'a str]) -> Vec<Vec<&'a str>> {
    let Some((first, rest)) = steps.split_first() else { return vec![Vec::new()] };
    let places = orders(rest).into_iter().flat_map(|order| (0..=order.len()).map(move |place| (order.clone(), place)));
    places
        .map(|(mut order, place)| {
            order.insert(place, first);
            order
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_come_to_the_same_in_every_order() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    // What is taken from one charge is drawn from this one too.
    merchant.post("/api/card", &card(1_000_000, APPROVED)).await.expect(201);
    for (number, story, expected, disputes) in STORIES {
        for order in orders(&story.split(", ").collect::<Vec<_>>()) {
            let before = platform(&merchant).await[0];
            let txid = text(&merchant.post("/api/card", &card(10_000, number)).await.expect(201)["txid"]);
            let psp = player.payment(&txid).unwrap().psp_reference;
            let mut refund = None;
            if story.contains("REFUND") {
                let asked = json!({"payment_id": txid, "amount": 2_500});
                let id = text(&merchant.post("/api/refunds", &asked).await.expect(201)["id"]);
                world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
                refund = Some(id);
            }
            for step in &order {
                let mut words = step.split(' ');
                let (event, success) = words.next().map(|word| word.split_once('/').unwrap_or((word, "true"))).unwrap();
                let is_refund = event.starts_with("REFUND");
                let own = refund.as_ref().filter(|_| is_refund).map_or(txid.clone(), |id| id.replace('-', ""));
                let id = words.next().map_or("MODIFICATION".to_owned(), |case| format!("{psp}{case}"));
                let amount = if is_refund { 2_500 } else { 10_000 };
                let amount = words.next().map_or(amount, |amount| amount.parse().unwrap());
                notify(&world, &notification(event, success, &id, [&own, &psp], amount)).await;
            }
            assert_eq!(platform(&merchant).await[0] - before, expected, "{order:?}");
            let found = merchant.get("/api/disputes?per_page=100").await.expect(200);
            let own = items(&found).iter().filter(|one| one["payment_id"] == *txid).map(|one| text(&one["status"]));
            let mut own: Vec<_> = own.collect();
            own.sort();
            assert_eq!(own.join(" "), disputes, "{order:?}");
            if let Some(id) = refund {
                let status = &merchant.get(&format!("/api/refunds/{id}")).await.expect(200)["status"];
                let is_undone = story.contains("REFUND_FAILED,") || story.contains("REFUND/false");
                assert_eq!(*status, if is_undone { "failed" } else { "approved" }, "{order:?}");
            }
            if number == CHALLENGED {
                let shown = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
                assert_eq!(shown["status"], "RECUSADA", "{order:?}");
            }
        }
    }
    // What waits is written once, however often it is said.
    let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    notify(&world, &notification("CHARGEBACK_REVERSED", "true", "DISPUTE9", [&txid, ""], 10_000)).await;
    let newest = world.ops_get("/ops/records?per_page=2").await.expect(200);
    let events: Vec<_> = items(&newest).iter().map(|record| record["events"].clone()).collect();
    assert_eq!(events, [json!(["case_deferred"]), json!(["card_captured"])]);
    world.check_books().await;
}

/// What waits for operators, of the kind `rail`.
async fn waiting(world: &World) -> Vec<Value> {
    items(&world.ops_get("/ops/queue?kind=rail").await.expect(200)).to_vec()
}

/// What waits is in the queue, with what it waits for. Two operators drop it, or it is booked once
/// they have made it fit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_notification_that_waits_is_dropped_by_operators_or_booked() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let mut charges = Vec::new();
    for case in ["DISPUTE1", "DISPUTE2"] {
        let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
        notify(&world, &notification("CHARGEBACK_REVERSED", "true", case, [&txid, ""], 10_000)).await;
        charges.push(txid);
    }
    let shown = waiting(&world).await;
    let of = |item: &Value| ["payment_id", "case_id", "waits_for"].map(|name| text(&item[name]));
    let expected = |number: usize, case: &str| [&charges[number], case, "acceptance"].map(str::to_owned);
    assert_eq!(shown.iter().map(of).collect::<Vec<_>>(), [expected(0, "DISPUTE1"), expected(1, "DISPUTE2")]);
    let settle = format!("/ops/rail-items/{}/settle", text(&shown[0]["id"]));
    let word = |outcome: &str| json!({"outcome": outcome, "reference": "P-1", "reason": "De outra loja"});
    world.ops_post(&settle, &word("happened")).await.refused(409, "outcome_not_unknown");
    world.ops_post(&settle, &word("did_not_happen")).await.expect(202);
    world.ops_post(&settle, &word("did_not_happen")).await.refused(409, "second_operator_needed");
    let waits_still = of(&waiting(&world).await[0]);
    assert_eq!(waits_still, expected(0, "DISPUTE1"));
    world.second_ops_post(&settle, &[], &word("did_not_happen")).await.expect(200);
    world.second_ops_post(&settle, &[], &word("did_not_happen")).await.refused(409, "outcome_not_unknown");
    // It is dropped for good.
    notify(&world, &notification("CHARGEBACK_REVERSED", "true", "DISPUTE1", [&charges[0], ""], 10_000)).await;
    assert_eq!(waiting(&world).await.iter().map(of).collect::<Vec<_>>(), [expected(1, "DISPUTE2")]);
    let by_hand = json!({"amount": 10_000, "kind": "chargeback", "reason": "Golpe"});
    for txid in &charges {
        let opened = world.ops_post(&format!("/ops/charges/{txid}/disputes"), &by_hand).await.expect(201);
        world.ops_post(&format!("/ops/disputes/{}/accept", text(&opened["id"])), &json!({})).await.expect(200);
    }
    let names = merchant.names.clone();
    drop(merchant);
    // A server looks when it starts, and then once a minute.
    let world = live(&player, world.stopped().await).await;
    let merchant = Merchant { world: &world, names };
    until("it is booked", async || waiting(&world).await.is_empty()).await;
    // Also when it would fit now.
    notify(&world, &notification("CHARGEBACK_REVERSED", "true", "DISPUTE1", [&charges[0], ""], 10_000)).await;
    dispute(&merchant, &charges[0], "accepted").await;
    dispute(&merchant, &charges[1], "reversed").await;
    world.check_books().await;
}

/// Operators reverse a dispute before Adyen says so, and the case is lost again. A word under its
/// id is that of the first win once more, or of a second one: it is not booked, and not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_win_of_a_case_that_operators_reversed_is_theirs_to_decide() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let says = async |event| notify(&world, &notification(event, "true", "DISPUTE1", [&txid, ""], 10_000)).await;
    let reverse = async || {
        let lost = text(&dispute(&merchant, &txid, "accepted").await["id"]);
        let asked = world.ops_post(&format!("/ops/disputes/{lost}/reverse"), &json!({"reason": "Ganha"})).await;
        let approve = format!("/ops/entries/{}/approve", text(&asked.expect(201)["id"]));
        world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    };
    says("CHARGEBACK").await;
    reverse().await;
    says("CHARGEBACK_REVERSED").await;
    assert_eq!((waiting(&world).await.len(), platform(&merchant).await[0]), (0, 10_000));
    says("SECOND_CHARGEBACK").await;
    for _ in 0..2 {
        says("CHARGEBACK_REVERSED").await;
        let waits = waiting(&world).await;
        assert_eq!((waits.len(), &waits[0]["waits_for"]), (1, &json!("decision")), "{waits:?}");
        assert_eq!(platform(&merchant).await[0], 0);
    }
    reverse().await;
    says("CHARGEBACK_REVERSED").await;
    assert_eq!((waiting(&world).await.len(), platform(&merchant).await[0]), (0, 10_000));
    world.check_books().await;
}

/// Operators accept a chargeback, and its win is said before its debit: that debit is the one of
/// the accepted dispute, and opens no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_case_that_is_won_before_its_debit_is_booked_is_debited_once() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let says = async |event| notify(&world, &notification(event, "true", "DISPUTE1", [&txid, ""], 10_000)).await;
    says("NOTIFICATION_OF_CHARGEBACK").await;
    let opened = text(&dispute(&merchant, &txid, "open").await["id"]);
    world.ops_post(&format!("/ops/disputes/{opened}/accept"), &json!({})).await.expect(200);
    says("CHARGEBACK_REVERSED").await;
    says("CHARGEBACK").await;
    let disputes = merchant.get("/api/disputes").await.expect(200);
    assert_eq!(items(&disputes).len(), 1, "{disputes}");
    dispute(&merchant, &txid, "reversed").await;
    assert_eq!((waiting(&world).await.len(), platform(&merchant).await[0]), (0, 10_000));
    world.check_books().await;
}

/// A line of a settlement details report: its batch, type, charge, modification, and the amounts in
/// reais, gross and net.
fn report_line(batch: u8, kind: &str, [charge, modification]: [&str; 2], gross: &str, net: &str) -> String {
    let columns = |amount: &str| match amount.strip_prefix('-') {
        Some(amount) => format!("{amount},"),
        None => format!(",{amount}"),
    };
    let (gross, net) = (columns(gross), columns(net));
    format!("Loja,PSP{batch},{charge},2026-11-2{batch} 03:12:45,{kind},{modification},BRL,{gross},BRL,{net},,{batch}\n")
}

const REPORT_HEAD: &str = "Merchant Account,Psp Reference,Merchant Reference,Creation Date,Type,\
                           Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),Net Currency,\
                           Net Debit (NC),Net Credit (NC),Modification Merchant Reference,Batch Number\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_settles_each_installment_and_chargebacks() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let in_three = with(&card(9_000, APPROVED), "/installments", json!(3));
    let three = text(&merchant.post("/api/card", &in_three).await.expect(201)["txid"]);
    let lost = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let psp = player.payment(&lost).unwrap().psp_reference;
    for event in ["CHARGEBACK", "CHARGEBACK_REVERSED", "SECOND_CHARGEBACK"] {
        notify(&world, &notification(event, "true", "DISPUTE1", [&lost, &psp], 10_000)).await;
    }
    assert_eq!(platform(&merchant).await, [9_000, 0, 0]);
    let (third, case) = ([three.as_str(), ""], [lost.as_str(), "DISPUTE1"]);
    let reports = [
        [
            report_line(1, "Settled", third, "30.00", "29.10"),
            report_line(1, "Settled", [&lost, ""], "100.00", "97.00"),
            report_line(1, "Chargeback", case, "-100.00", "-100.00"),
        ],
        [
            report_line(2, "Settled", third, "30.00", "29.10"),
            report_line(2, "ChargebackReversed", case, "100.00", "100.00"),
            report_line(2, "Chargeback", [&three, "ANOTHER"], "-1.00", "-1.00"),
        ],
        [
            report_line(3, "SecondChargeback", case, "-100.00", "-100.00"),
            report_line(3, "Settled", third, "30.00", "29.10"),
            report_line(3, "Settled", third, "30.00", "29.10"),
        ],
    ]
    .map(|lines| REPORT_HEAD.to_owned() + &lines.concat());
    // One operator sends all of them before another one sends the first.
    for report in &reports {
        send_file(&world, OPS_TOKEN, "", report).await.expect(202);
    }
    for (number, report) in reports.iter().enumerate() {
        send_file(&world, SECOND_OPS_TOKEN, "", report).await.expect(200);
        // What comes later gives the lines of an approved file no other names.
        if number == 1 {
            notify(&world, &notification("NOTIFICATION_OF_CHARGEBACK", "true", "ANOTHER", [&three, ""], 100)).await;
            dispute(&merchant, &three, "open").await;
        }
    }
    let net = 3 * 2_910 + 9_700 - 10_000;
    // What no charge has is in suspense: a chargeback of another case, and a fourth installment.
    assert_eq!(platform(&merchant).await, [0, net, 3 * 90 + 300]);
    for (report, in_suspense) in reports.iter().zip([0, 1, 1]) {
        let found = world.reconcile("text/csv", "", report.clone()).await.expect(200);
        assert_eq!((&found["matched"], found["lines"].as_i64()), (&json!(3 - in_suspense), Some(3)), "{found}");
    }
    world.check_books().await;
}

/// Each merchant account counts its own batches. What was booked before references named the
/// account is known by its former one.
#[tokio::test]
async fn batches_of_two_merchant_accounts_are_two() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut charges = Vec::new();
    for _ in 0..6 {
        let debit = with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
        charges.push(text(&merchant.post("/api/card", &debit).await.expect(201)["txid"]));
    }
    let line = |batch, number: usize| report_line(batch, "Settled", [&charges[number], ""], "100.00", "97.01");
    let of_other = |line: String| line.replace("Loja,", "Outra_Loja-2,");
    let book = async |file: &str| {
        send_file(&world, OPS_TOKEN, "", file).await.expect(202);
        send_file(&world, SECOND_OPS_TOKEN, "", file).await.expect(200);
    };
    let both = [REPORT_HEAD, &line(1, 0), &of_other(line(1, 1))].concat();
    book(&both).await;
    let former = |batch: &str, number: usize| {
        format!("{batch},2026-11-2{},{},installment,1,10000,299,9701\n", &batch[batch.len() - 1..], charges[number])
    };
    book(&[FILE_HEAD, &former("ADYEN-2", 2), &former("LOTE-2", 5)].concat()).await;
    let own = [REPORT_HEAD, &line(2, 2)].concat();
    let refused = send_file(&world, OPS_TOKEN, "", &own).await.refused(409, "batch_already_booked");
    assert_eq!(refused["batch"], "ADYEN-2");
    book(&[REPORT_HEAD, &of_other(line(2, 3))].concat()).await;
    // A file that was sent under the former reference goes on under it.
    send_file(&world, OPS_TOKEN, "", &[FILE_HEAD, &former("ADYEN-3", 4)].concat()).await.expect(202);
    let own_third = [REPORT_HEAD, &line(3, 4)].concat();
    assert_eq!(send_file(&world, SECOND_OPS_TOKEN, "", &own_third).await.expect(200)["status"], "booked");
    let listed = world.ops_get("/ops/batches").await.expect(200);
    let listed: Vec<_> = items(&listed).iter().map(|batch| text(&batch["batch"])).collect();
    let expected = ["ADYEN-3", "ADYEN-Outra_Loja-2-2", "LOTE-2", "ADYEN-2", "ADYEN-Outra_Loja-2-1", "ADYEN-Loja-1"];
    assert_eq!(listed, expected);
    for (file, lines) in [(&both, 2), (&own, 1), (&own_third, 1)] {
        let found = world.reconcile("text/csv", "", file.clone()).await.expect(200);
        assert_eq!([&found["matched"], &found["lines"]], [lines, lines], "{found}");
    }
    assert_eq!(platform(&merchant).await, [0, 6 * 9_701, 6 * 299]);
    world.check_books().await;
}

/// Adyen's keys hold in one region: a charge is asked about where it was ordered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_region_is_another_rail() {
    let player = AdyenPlayer::start().await;
    let world = live(&player, tempfile::tempdir().unwrap()).await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let names = merchant.names.clone();
    drop(merchant);
    let folder = world.stopped().await;
    let mut moved = rails(folder.path(), &player).unwrap();
    let adyen = moved.current.card.clone().unwrap();
    let before = moved.by_name[&adyen].clone();
    let AdapterSettings::Adyen(of_adyen) = &mut moved.by_name.get_mut(&adyen).unwrap().adapter else { unreachable!() };
    of_adyen.url = of_adyen.url.replace("127.0.0.1", "localhost");
    let start = |rails: &NamedRailSettings| Settings { rails: Some(rails.clone()), ..settings(folder.path(), false) };
    let refused = server::start(start(&moved), |_, _| {}).await.err().unwrap().to_string();
    assert!(refused.contains("rail.adyen at 127.0.0.1"), "{refused}");
    // Under a name of its own it takes new charges, and the earlier ones stay where they are.
    let other = RailName::parse("adyen_us").unwrap();
    let new = moved.by_name.insert(adyen, before).unwrap();
    moved.by_name.insert(other.clone(), new);
    moved.current.card = Some(other);
    let world = World::live_on(folder, |settings| settings.rails = Some(moved.clone())).await;
    let merchant = Merchant { world: &world, names };
    let asked = json!({"payment_id": txid, "amount": 2_500});
    let id = text(&merchant.post("/api/refunds", &asked).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    assert_eq!(player.payment(&txid).unwrap().refunded, 2_500);
    let shown = async |txid: &str| merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    let next = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    assert_eq!(shown(&next).await["status"], "CONCLUIDA");
    let hosts = player.stage().requests.iter().map(|request| text(&json!(request.header("host")))).collect::<Vec<_>>();
    let at_new = hosts.iter().filter(|host| host.starts_with("localhost")).count();
    assert_eq!(at_new, 2, "the new charge and its capture: {hosts:?}");
    world.check_books().await;
}
