//! Batches of the acquirer: money is at the bank when the acquirer has paid it, installment by
//! installment; refunds and disputes are taken from a later batch.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::world::*;

const DAY: i64 = 24 * 60 * 60;

/// The platform's shard of the merchant's group: what the acquirer owes, what is at the bank, and
/// the acquirer's fees.
pub(crate) async fn platform(merchant: &Merchant<'_>) -> [i64; 3] {
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

/// Sends a settlement file, by the operator of a token.
pub(crate) async fn send_file(world: &World, token: &str, query: &str, file: &str) -> Answer {
    let authorization = bearer(token);
    let headers = [("authorization", authorization.as_str()), ("content-type", "text/csv")];
    world.send(reqwest::Method::POST, &format!("/ops/batches{query}"), &headers, file.to_owned()).await
}

pub(crate) const FILE_HEAD: &str = "batch,paid_on,charge,kind,id,gross,fee,net\n";

/// The line of the only installment of a debit of 100 reais, with its fee.
fn debit_line(batch: &str, charge: &str, fee: i64) -> String {
    format!("{batch},2026-11-27,{charge},installment,1,10000,{fee},{}\n", 10_000 - fee)
}

/// A file that waits stands in the queue, and leaves it when it is rejected or booked.
#[tokio::test]
async fn a_settlement_file_that_waits_is_in_the_queue_and_can_be_rejected() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let file = format!("{FILE_HEAD}{}", debit_line("LOTE-9", &charge, 299));
    let waiting = async || items(&world.ops_get("/ops/queue?kind=batch").await.expect(200)).to_vec();
    let sent = send_file(&world, OPS_TOKEN, "", &file).await.expect(202);
    let item = waiting().await.remove(0);
    let shown = ["kind", "id", "status", "requested_by", "reference"].map(|name| text(&item[name]));
    assert_eq!(shown, ["batch", sent["digest"].as_str().unwrap(), "waiting_second", "operator", "LOTE-9"]);
    assert_eq!(item["amount"], 9_701);
    let reject = format!("/ops/batches/{}/reject", text(&sent["digest"]));
    world.ops_post(&reject, &json!({})).await.refused(400, "validation_failed");
    let operator = Browser::signed_in(&world, OPS_TOKEN).await;
    operator.page("/console/queue").await.has(&["LOTE-9"]);
    let form = reject.replace("/ops/batches", "/console/house/batches");
    operator.page("/console/house").await.has(&["LOTE-9", &form]);
    assert_eq!(operator.post(&form, &[("notes", "Arquivo de outro dia")]).await.status, 303);
    assert_eq!((waiting().await.len(), items(&world.ops_get("/ops/batches").await.expect(200)).len()), (0, 0));
    world.ops_post(&reject, &json!({"notes": "x"})).await.refused(404, "not_found");
    let row = items(&world.ops_get("/ops/audit?kind=batch").await.expect(200))[0].clone();
    assert_eq!((&row["action"], &row["notes"]), (&json!("reject"), &json!("Arquivo de outro dia")));
    // It can be sent again, and waits for another operator anew.
    assert_eq!(send_file(&world, SECOND_OPS_TOKEN, "", &file).await.status, 202);
    assert_eq!(waiting().await[0]["requested_by"], "second");
    assert_eq!(send_file(&world, OPS_TOKEN, "", &file).await.status, 200);
    assert_eq!(waiting().await.len(), 0);
    world.ops_post(&reject, &json!({"notes": "x"})).await.refused(409, "already_decided");
    world.ops_post("/ops/batches/x/reject", &json!({"notes": "x"})).await.refused(404, "not_found");
    world.check_books().await;
}

/// What the acquirer took for a dispute and gives back once it is reversed are two lines; a third
/// one explains nothing.
#[tokio::test]
async fn a_dispute_that_was_reversed_is_settled_twice() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = charged(&merchant, &card(10_000, APPROVED)).await;
    let body = json!({"amount": 3_000, "kind": "chargeback", "reason": "Golpe"});
    let path = format!("/ops/charges/{charge}/disputes");
    let dispute = text(&world.ops_post(&path, &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/disputes/{dispute}/accept"), &json!({})).await.expect(200);
    let settle = async |batch: &str, amount: i64| {
        let file = format!("{FILE_HEAD}{batch},2026-11-27,{charge},dispute,{dispute},{amount},0,{amount}\n");
        send_file(&world, OPS_TOKEN, "", &file).await.expect(202);
        let booked = send_file(&world, SECOND_OPS_TOKEN, "", &file).await.expect(200);
        booked["batches"][0]["unexplained_lines"].clone()
    };
    assert_eq!(settle("LOTE-1", -3_000).await, 0);
    let reverse = format!("/ops/disputes/{dispute}/reverse");
    let entry = text(&world.ops_post(&reverse, &json!({"reason": "Ganha"})).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{entry}/approve"), &[], &json!({})).await.expect(200);
    assert_eq!(settle("LOTE-2", 3_000).await, 0);
    assert_eq!(settle("LOTE-3", 3_000).await, 1);
    world.check_books().await;
}

#[tokio::test]
async fn two_operators_book_a_settlement_file_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = || with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
    let [first, second] = [charged(&merchant, &debit()).await, charged(&merchant, &debit()).await];
    let of_nobody = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e";
    let file = [
        FILE_HEAD,
        &debit_line("LOTE-1", &first, 320),
        &debit_line("LOTE-1", of_nobody, 100),
        &debit_line("LOTE-2", &second, 299),
        &debit_line("LOTE-2", &second, 299),
    ]
    .concat();
    let before = world.cut().await;
    let preview = send_file(&world, OPS_TOKEN, "?preview=true", &file).await.expect(200);
    assert_eq!(preview["status"], "preview");
    assert_eq!(world.cut().await, before, "a preview changes nothing");

    let asked = send_file(&world, OPS_TOKEN, "", &file).await.expect(202);
    assert_eq!([&asked["status"], &asked["requested_by"]], ["waiting_second", "operator"]);
    assert_eq!([&asked["batches"], &asked["entries"]], [&preview["batches"], &preview["entries"]]);
    let sums =
        |of: &Value| ["lines", "net", "unexplained_lines", "unexplained_net"].map(|name| of[name].as_i64().unwrap());
    assert_eq!(
        asked["batches"].as_array().unwrap().iter().map(sums).collect::<Vec<_>>(),
        [[2, 9_680 + 9_900, 1, 9_900], [2, 2 * 9_701, 1, 9_701]]
    );
    assert_eq!(platform(&merchant).await, [2 * 9_701, 0, 2 * 299], "nothing is booked yet");
    send_file(&world, OPS_TOKEN, "", &file).await.refused(409, "second_operator_needed");

    let world = world.restarted().await;
    // The same lines as a spreadsheet saves them are the same file.
    let booked =
        send_file(&world, SECOND_OPS_TOKEN, "", &file.replace(',', ";").replace('\n', "\r\n")).await.expect(200);
    assert_eq!([&booked["status"], &booked["requested_by"], &booked["approved_by"]], ["booked", "operator", "second"]);
    assert_eq!([&booked["batches"], &booked["entries"]], [&asked["batches"], &asked["entries"]]);
    let accounts = world.accounts().await;
    let of = |ledger: &str, account: &str| {
        accounts.get(&(ledger.to_owned(), account.to_owned())).copied().unwrap_or_default()
    };
    assert_eq!(of("P-house", "Liabilities:Suspense"), -9_900 - 9_701);
    let listed = world.ops_get("/ops/batches").await.expect(200);
    let listed: Vec<_> = items(&listed).iter().map(|batch| [text(&batch["batch"]), text(&batch["paid_on"])]).collect();
    assert_eq!(listed, [["LOTE-2", "2026-11-27"], ["LOTE-1", "2026-11-27"]]);
    let agreed = world.reconcile("text/csv", "", file.clone()).await.expect(200);
    assert_eq!(["matched", "in_suspense", "twice", "differs"].map(|name| agreed[name].clone()), [2, 1, 1, 0]);

    for token in [OPS_TOKEN, SECOND_OPS_TOKEN] {
        send_file(&world, token, "", &file).await.refused(409, "batch_already_booked");
    }
    let other = [FILE_HEAD, &debit_line("LOTE-3", &first, 299), &debit_line("LOTE-2", &first, 299)].concat();
    let refused = send_file(&world, OPS_TOKEN, "", &other).await.refused(409, "batch_already_booked");
    assert_eq!(refused["batch"], "LOTE-2");
    // The rail's batches go on with numbers of their own; what the file has settled is not settled
    // again.
    world.advance(4 * DAY).await;
    let accounts = world.accounts().await;
    let of = |account: &str| accounts.get(&("P-house".to_owned(), account.to_owned())).copied().unwrap_or_default();
    assert_eq!(of("Liabilities:Suspense"), -9_900 - 3 * 9_701);
    world.check_books().await;

    let audit = world.ops_get("/ops/audit").await.expect(200);
    let rows = items(&audit).iter().filter(|row| row["kind"] == "batch");
    let rows: Vec<_> = rows.map(|row| ["action", "operator", "notes"].map(|name| text(&row[name]))).collect();
    assert_eq!(rows, [["approve", "second", "LOTE-1, LOTE-2"], ["request", "operator", "LOTE-1, LOTE-2"]]);
}

#[tokio::test]
async fn a_settlement_file_is_booked_whole_or_not_at_all() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = charged(&merchant, &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await;
    let good = debit_line("LOTE-1", &debit, 299);
    let many: String = (1..=1_001).map(|number| debit_line(&format!("L{number}"), &debit, 299)).collect();
    let before = world.cut().await;
    for (lines, line, defect) in [
        (format!("{good}{}", good.replace(",9701", ",9700")), 3, "net"),
        (format!("{good}LOTE-1,2026-11-27\n"), 3, "colunas"),
        (format!("{good}{}", good.replace("10000", "100.00")), 3, "gross"),
        (format!("{good}{}", good.replace("2026-11-27", "2026-11-28")), 3, "paid_on"),
        (good.replace("2026-11-27", "1969-12-31"), 2, "paid_on"),
        (String::new(), 1, "linhas"),
        (many, 1_002, "lotes"),
    ] {
        for query in ["", "?preview=true"] {
            let refused = send_file(&world, OPS_TOKEN, query, &format!("{FILE_HEAD}{lines}")).await;
            let refused = refused.refused(400, "validation_failed");
            assert_eq!(refused["errors"][0]["field"], format!("line {line}"), "{refused}");
            assert!(text(&refused["errors"][0]["message"]).contains(defect), "{refused}");
        }
    }
    let silent = merchant.post("/api/card", &card(10_000, SILENT)).await;
    let pending = text(&silent.expect(201)["txid"]);
    let file = format!("{FILE_HEAD}{good}{}", debit_line("LOTE-2", &pending, 299));
    let refused = send_file(&world, OPS_TOKEN, "", &file).await.refused(409, "state_conflict");
    assert_eq!(refused["payment_id"], *pending);
    let authorization = bearer(OPS_TOKEN);
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/x-ofx")];
    let file = format!("{FILE_HEAD}{good}");
    world.send(reqwest::Method::POST, "/ops/batches", &headers, file).await.refused(415, "unsupported_media_type");
    assert!(items(&world.ops_get("/ops/batches").await.expect(200)).is_empty());
    assert!(before <= world.cut().await);
}

#[tokio::test]
async fn the_console_shows_and_books_a_settlement_file() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = charged(&merchant, &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await;
    let file = format!("{FILE_HEAD}{}", debit_line("LOTE-1", &debit, 299)).replace('\n', "\r\n");
    let place = "/console/house/batches";
    let first = Browser::signed_in(&world, OPS_TOKEN).await;
    let shown = first.post(place, &[("lines", &file), ("preview", "on")]).await;
    assert_eq!(shown.status, 200, "{}", shown.html);
    shown.has(&["LOTE-1", "Only show what would be booked"]);
    first.post(place, &[("lines", &file)]).await.has(&["Another operator has to send the same lines"]);
    assert_eq!(first.post(place, &[("lines", &file)]).await.status, 409);
    let refused = first.post(place, &[("lines", "LOTE-1")]).await;
    assert_eq!(refused.status, 400, "{}", refused.html);
    let second = Browser::signed_in(&world, SECOND_OPS_TOKEN).await;
    second.post(place, &[("lines", &file)]).await.has(&["The batches are booked"]);
    assert_eq!(items(&world.ops_get("/ops/batches").await.expect(200))[0]["batch"], "LOTE-1");
    world.check_books().await;
}
