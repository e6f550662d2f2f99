//! Batches of the acquirer: money is at the bank when the acquirer has paid it, installment by
//! installment; refunds and disputes are taken from a later batch.

use serde_json::{Value, json};

use crate::world::*;

const DAY: i64 = 24 * 60 * 60;

/// The platform's shard of the merchant's group: what the acquirer owes, what is at the bank, and
/// the acquirer's fees.
async fn platform(merchant: &Merchant<'_>) -> [i64; 3] {
    let accounts = merchant.world.accounts().await;
    ["Assets:Acquirer:Receivable", "Assets:Bank:Settlement", "Expenses:Acquirer:Mdr"]
        .map(|account| accounts.get(&(format!("P-{}", merchant.id), account.to_owned())).copied().unwrap_or_default())
}

async fn charged(merchant: &Merchant<'_>, body: &Value) -> String {
    text(&merchant.post("/api/card", body).await.expect(201)["txid"])
}

async fn post(world: &World, path: &str) {
    world.ops_send(reqwest::Method::POST, path, &[], String::new()).await.expect(200);
}

#[tokio::test]
async fn the_acquirer_pays_in_batches_and_takes_back_from_later_ones() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = charged(&merchant, &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await;
    let [debit_net, _, debit_fee] = platform(&merchant).await;
    assert_eq!([debit_net, debit_fee], [9_701, 299]);
    let credit = charged(&merchant, &with(&card(10_000, APPROVED), "/installments", json!(3))).await;
    let [owed, _, fees] = platform(&merchant).await;
    let credit_net = owed - debit_net;
    assert_eq!(credit_net + fees - debit_fee, 10_000);

    world.advance(4 * DAY).await;
    assert_eq!(platform(&merchant).await, [credit_net, debit_net, fees], "a business day after its capture");
    let world_at = world.engine().now();
    world.advance(30 * DAY).await;
    let [owed, bank, _] = platform(&merchant).await;
    assert_eq!(owed + bank, credit_net + debit_net);
    let paid = bank - debit_net;
    assert!((paid - credit_net / 3).abs() <= 1, "the first of three installments, not {paid} of {credit_net}");
    assert!(world.engine().now() > world_at);

    let body = json!({"payment_id": debit, "amount": 4_000});
    let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    post(&world, &format!("/ops/refunds/{refund}/approve")).await;
    let body = json!({"amount": 1_000, "kind": "chargeback", "reason": "Compra não reconhecida"});
    let dispute = world.ops_post(&format!("/ops/charges/{credit}/disputes"), &body).await.expect(201);
    post(&world, &format!("/ops/disputes/{}/accept", text(&dispute["id"]))).await;
    assert_eq!(platform(&merchant).await, [owed - 5_000, bank, fees], "not yet taken");

    world.advance(4 * DAY).await;
    assert_eq!(platform(&merchant).await, [owed, bank - 4_000 + 120 - 1_000, fees - 120], "with the refund's fee");
    world.advance(62 * DAY).await;
    assert_eq!(platform(&merchant).await, [0, credit_net + debit_net - 5_000 + 120, fees - 120], "all is paid");
    world.check_books().await;
}

#[tokio::test]
async fn a_batch_is_booked_once_also_after_a_restart() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (id, key) = (merchant.id.clone(), charged(&merchant, &card(10_000, APPROVED)).await);
    world.advance(33 * DAY).await;
    assert_eq!(platform(&merchant).await, [0, 9_701, 299]);
    let before = world.cut().await;
    drop(merchant);
    let world = world.restarted().await;
    world.advance(10 * DAY).await;
    let accounts = world.accounts().await;
    assert_eq!(accounts.get(&(format!("P-{id}"), "Assets:Bank:Settlement".to_owned())), Some(&9_701), "{key}");
    assert_eq!(world.cut().await.records(), before.records() + 1, "the clock's Record only");
}

#[tokio::test]
async fn the_files_of_the_acquirer_agree_with_the_books_and_differences_are_named() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = charged(&merchant, &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await;
    charged(&merchant, &with(&card(9_000, APPROVED), "/installments", json!(3))).await;
    world.advance(4 * DAY).await;
    let body = json!({"payment_id": debit, "amount": 4_000});
    let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    post(&world, &format!("/ops/refunds/{refund}/approve")).await;
    world.advance(94 * DAY).await;

    let batches = world.ops_get("/ops/batches").await.expect(200);
    assert_eq!((items(&batches).len(), &batches["total"]), (5, &json!(5)));
    let nets: Vec<_> = items(&batches).iter().map(|batch| batch["net"].as_i64().unwrap()).collect();
    assert_eq!(nets.iter().sum::<i64>(), platform(&merchant).await[1], "what came is at the bank");
    let mut file = "batch,paid_on,charge,kind,id,gross,fee,net\n".to_owned();
    for batch in items(&batches) {
        let name = format!("sandbox/acquirer/{}.csv", text(&batch["batch"]));
        let sent = std::fs::read_to_string(world.folder().join(name)).unwrap();
        file.extend(sent.lines().skip(1).map(|line| format!("{line}\n")));
    }
    let agreed = world.reconcile("text/csv", "", file.clone()).await.expect(200);
    assert_eq!([&agreed["lines"], &agreed["matched"], &agreed["batches"]], [5, 5, 5]);
    assert_eq!(agreed["findings"], json!([]));

    // The refund's fee is another one, the debit is missing, one line is of nobody.
    let refunded = format!(",refund,{refund},-4000,-120,-3880");
    assert!(file.contains(&refunded), "{file}");
    let mut lines: Vec<String> =
        file.replace(&refunded, &format!(",refund,{refund},-4000,-110,-3890")).lines().map(str::to_owned).collect();
    let missing = lines.iter().position(|line| line.contains(&format!("{debit},installment,1"))).unwrap();
    let of_nobody = lines.remove(missing).replace("installment,1", "installment,2");
    lines.push(of_nobody);
    let differs = world.reconcile("text/csv", "", lines.join("\n")).await.expect(200);
    let counts = ["matched", "differs", "only_ours", "only_theirs", "twice", "in_suspense"].map(|name| &differs[name]);
    assert_eq!(counts, [3, 1, 1, 1, 0, 0]);
    let found = differs["findings"].as_array().unwrap();
    let finding = found.iter().find(|finding| finding["finding"] == "differs").unwrap();
    assert_eq!([&finding["ours"]["fee"], &finding["theirs"]["fee"]], [-120, -110]);
    let finding = found.iter().find(|finding| finding["finding"] == "only_ours").unwrap();
    assert_eq!([&finding["payment_id"], &finding["kind"], &finding["id"]], [&debit, "installment", "1"]);

    // A batch of the file's days is left out whole: the first and the last line keep the days.
    let lines: Vec<&str> = file.lines().collect();
    let left_out = lines[3].split(',').next().unwrap();
    let without = lines.iter().filter(|line| !line.starts_with(left_out)).map(|line| format!("{line}\n"));
    let found = world.reconcile("text/csv", "", without.collect()).await.expect(200);
    assert_eq!(["matched", "only_ours", "batches"].map(|name| &found[name]), [4, 1, 4], "{found}");
    let finding = &found["findings"][0];
    assert_eq!([&finding["finding"], &finding["kind"], &finding["id"]], ["only_ours", "batch", left_out]);
    let booked = items(&batches).iter().find(|batch| batch["batch"] == left_out).unwrap();
    assert_eq!([&finding["ours"]["net"], &finding["ours"]["paid_on"]], [&booked["net"], &booked["paid_on"]]);
    let head = format!("{}\n", lines[0]);
    // A batch file with a head alone is a batch without lines.
    assert_eq!(world.reconcile("text/csv", "", head).await.expect(200)["lines"], 0);

    let wrong = file.replacen("installment", "parcela", 1);
    let refused = world.reconcile("text/csv", "", wrong).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["field"], "line 2");
    world.reconcile("image/png", "", file).await.refused(415, "unsupported_media_type");
}
