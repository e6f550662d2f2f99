//! Reconciliation of PIX payments and of bank accounts: the files that the sandbox's institutions
//! write from records of their own agree with the books, false lines are found, and results are
//! stored.

use std::collections::BTreeSet;

use chrono::Datelike as _;
use serde_json::{Value, json};
use web::body::file_types;

use crate::console::Browser;
use crate::world::*;

/// The files of an institution of the sandbox with an ending, in the order of their days.
pub(crate) fn files(world: &World, institution: &str, ending: &str) -> Vec<String> {
    let folder = world.folder().join("sandbox").join(institution);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == ending));
    paths.sort();
    paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

const PIX: &str = "application/json";
const OFX: &str = "application/x-ofx";
const COUNTS: [&str; 6] = ["matched", "undecided", "differs", "only_ours", "only_theirs", "twice"];

fn counts(result: &Value) -> [u64; 6] {
    COUNTS.map(|name| result[name].as_u64().unwrap())
}

/// A list of the PIX institution whose first payment is false.
fn falsified(list: &str, how: &str) -> String {
    let mut list: Value = serde_json::from_str(list).unwrap();
    let payments = list["pix"].as_array_mut().unwrap();
    let first = payments[0].clone();
    match how {
        "amount" => payments[0]["valor"] = json!("80.01"),
        "missing" => drop(payments.remove(0)),
        "added" => {
            let id = text(&first["endToEndId"]);
            payments.push(first);
            payments.last_mut().unwrap()["endToEndId"] = json!(format!("{}zzzzzzzzzzz", &id[..21]));
        }
        _ => payments.push(first),
    }
    let count = payments.len();
    list["parametros"]["paginacao"]["quantidadeTotalDeItens"] = json!(count);
    list.to_string()
}

/// Payments, returns, a dispute, a late payment and a cashout.
async fn a_day_of_pix(merchant: &Merchant<'_>) {
    let world = merchant.world;
    let paid = [merchant.paid_pix(&pix("80.00")).await, merchant.paid_pix(&pix("55.10")).await];
    let by_operator = text(&merchant.post("/api/pix", &pix("20.00")).await.expect(201)["txid"]);
    world.ops_post(&format!("/ops/sandbox/pix/{by_operator}/pay"), &json!({})).await.expect(200);
    let body = json!({"payment_id": paid[0]["txid"], "amount": 3_000});
    let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    let post = async |path: &str| world.ops_post(path, &json!({})).await.expect(200);
    post(&format!("/ops/refunds/{refund}/approve")).await;
    let body = json!({"amount": 1_000, "kind": "med", "reason": "Golpe"});
    let dispute = world.ops_post(&format!("/ops/charges/{}/disputes", text(&paid[1]["txid"])), &body).await.expect(201);
    post(&format!("/ops/disputes/{}/accept", text(&dispute["id"]))).await;
    let late = text(&merchant.post("/api/pix", &pix("9.90")).await.expect(201)["txid"]);
    merchant.post(&format!("/api/charges/{late}/cancel"), &json!({})).await.expect(200);
    merchant.post(&format!("/api/sandbox/pix/{late}/pay"), &json!({})).await.refused(409, "charge_not_pending");
    let body = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &body).await.expect(201);
    world.advance(DAY).await;
}

/// Generators of clients know few media types, so the description lists four of them as bodies, and
/// names all.
#[tokio::test]
async fn every_media_type_that_is_taken_is_described() {
    let world = World::sandbox().await;
    let operation = &world.description.document["paths"]["/ops/reconciliations"]["post"];
    let description = text(&operation["description"]);
    let is_type = |word: &&str| word.contains('/') && !word.contains([' ', '{']);
    let named: BTreeSet<_> = description.split('`').skip(1).step_by(2).filter(is_type).collect();
    assert_eq!(named, file_types().collect());
    let bodies = operation["requestBody"]["content"].as_object().unwrap();
    assert!(bodies.len() == 4 && bodies.keys().all(|name| named.contains(name.as_str())), "{bodies:?}");
    for (place, media_type) in named.iter().enumerate() {
        let file = format!("batch,paid_on,charge,kind,id,gross,fee,net{}", "\n".repeat(place + 1));
        let status = world.reconcile(media_type, "", file).await.status;
        assert_ne!(status, 415, "{media_type}");
    }
    world.reconcile("image/png", "", "batch".to_owned()).await.refused(415, "unsupported_media_type");
}

/// A statement of fixed columns is known by its first characters, and its account by its number.
#[tokio::test]
async fn a_statement_of_cnab_240_is_read_as_one_of_ofx() {
    let world = World::sandbox().await;
    let file = include_str!("../statements/cnab240.ret");
    let refused = world.reconcile("text/csv", "", file.to_owned()).await.refused(400, "validation_failed");
    assert!(text(&refused["message"]).contains("CNAB 240"), "{refused}");
    let found = world.reconcile("text/plain", "?account=own", file.to_owned()).await.expect(200);
    let named = ["kind", "acctid", "from", "to", "signs_by_type"].map(|name| found[name].as_str());
    assert_eq!(named, [Some("bank"), Some("0000001234567"), Some("2026-11-27"), Some("2026-11-30"), None]);
    let counted = ["lines", "only_theirs", "twice"].map(|name| found[name].as_u64().unwrap());
    assert_eq!((counted, &found["closing"]["theirs"]), ([5, 5, 0], &json!(2_557_340)));
    let debit = "<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20201201<TRNAMT>1.00<FITID>1<MEMO>TARIFA</STMTTRN>";
    let next = format!("<OFX><STMTRS><ACCTID>123456-7<DTSTART>20201201<DTEND>20201201{debit}</STMTRS></OFX>");
    let found = world.reconcile(OFX, "", next).await.expect(200);
    let line = &found["findings"][0]["theirs"]["net"];
    assert_eq!((&found["account"], &found["signs_by_type"], line), (&json!("own"), &json!(true), &json!(-100)));
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/reconciliations/{}", text(&found["sha256"]))).await;
    page.has(&["by the type of each line: debits came without a sign"]);
}

#[tokio::test]
async fn the_lists_of_the_pix_institution_agree_with_the_books() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    a_day_of_pix(&merchant).await;
    let [list] = files(&world, "pix", "json").try_into().unwrap();
    let agreed = world.reconcile(PIX, "", list.clone()).await.expect(200);
    // Four payments, a refund, a dispute, and the late payment, which was sent back.
    assert_eq!((counts(&agreed), &agreed["lines"]), ([7, 0, 0, 0, 0, 0], &json!(7)), "{agreed}");
    assert_eq!((&agreed["kind"], &agreed["findings"]), (&json!("pix"), &json!([])));
    let matched = agreed["matched_lines"].as_array().unwrap();
    let agrees =
        |line: &&Value| line["finding"] == "matched" && line["line"].is_u64() && line["ours"] == line["theirs"];
    assert_eq!(matched.iter().filter(agrees).count(), 7, "{agreed}");
    let [statement] = files(&world, "bank-pix", "ofx").try_into().unwrap();
    let agreed = world.reconcile(OFX, "?account=pix", statement.clone()).await.expect(200);
    assert_eq!((counts(&agreed), &agreed["lines"]), ([8, 0, 0, 0, 0, 0], &json!(8)), "with the cashout: {agreed}");
    let dismiss = format!("/ops/reconciliations/{}/dismiss", text(&agreed["sha256"]));
    world.ops_post(&dismiss, &json!({"reason": "De outra conta"})).await.expect(200);
    let other = world.reconcile(OFX, "?account=settlement&again=true", statement).await.expect(200);
    assert_eq!(counts(&other), [0, 0, 0, 0, 8, 0], "the other account has none of it");

    for (how, expected) in [
        ("amount", [6, 0, 1, 0, 0, 0]),
        ("missing", [5, 0, 0, 1, 0, 0]),
        ("added", [7, 0, 0, 0, 2, 0]),
        ("twice", [7, 0, 0, 0, 0, 1]),
    ] {
        let found = world.reconcile(PIX, "", falsified(&list, how)).await.expect(200);
        assert_eq!(counts(&found), expected, "{how}: {found}");
    }
    world.check_books().await;
}

/// A difference is explained by a reason at once, and by an entry when the second operator approves
/// it. The file is not sent again; when it is, what is found again stays explained.
#[tokio::test]
async fn differences_are_explained_by_reasons_and_by_entries() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    let [list] = files(&world, "pix", "json").try_into().unwrap();
    let wrong = falsified(&falsified(&list, "amount"), "added");
    let found = world.reconcile(PIX, "", wrong.clone()).await.expect(200);
    assert_eq!((counts(&found), &found["explained"]), ([0, 0, 1, 0, 1, 0], &json!(0)), "{found}");
    let path = format!("/ops/reconciliations/{}", text(&found["sha256"]));
    let explain = async |finding: u64, entry: Option<&str>| {
        let body = json!({"finding": finding, "reason": "Tarifa retida", "entry_id": entry});
        world.ops_post(&format!("{path}/explain"), &body).await
    };
    let entry = json!({"debit": "Assets:Bank:Pix", "credit": "Liabilities:Suspense", "amount": 1,
        "reason": "Tarifa retida", "reference": "differs-1"});
    let asked = async || text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    let decide = async |id: &str, verdict: &str| {
        let body = if verdict == "reject" { json!({"notes": "Valor errado"}) } else { json!({}) };
        world.second_ops_post(&format!("/ops/entries/{id}/{verdict}"), &[], &body).await.expect(200);
    };
    let month = text(&found["from"])[..7].to_owned();
    let open = async || {
        let period = world.ops_get(&format!("/ops/periods/{month}")).await.expect(200);
        let items = period["open"].as_array().unwrap();
        items.iter().find(|item| item["kind"] == "unreconciled").map_or(0, |item| item["count"].as_u64().unwrap())
    };
    assert_eq!(open().await, 2);

    let first = asked().await;
    let waits = explain(0, Some(&first)).await.expect(200);
    let explanation = &waits["explanations"][0];
    assert_eq!([&explanation["status"], &explanation["by"]], ["waiting", "operator"], "{waits}");
    assert_eq!((open().await, &waits["explained"]), (2, &json!(0)), "until it is booked");
    explain(0, None).await.refused(409, "already_decided");
    decide(&first, "reject").await;
    assert_eq!(world.ops_get(&path).await.expect(200)["explanations"][0]["status"], "rejected");
    explain(0, Some(&first)).await.refused(400, "validation_failed");
    let second = asked().await;
    explain(0, Some(&second)).await.expect(200);
    decide(&second, "approve").await;
    let booked = world.ops_get(&path).await.expect(200);
    let statuses = |result: &Value| {
        let all = result["explanations"].as_array().unwrap();
        all.iter().map(|of| text(&of["status"])).collect::<Vec<_>>()
    };
    assert_eq!((statuses(&booked), &booked["explained"]), (vec!["replaced".into(), "explained".into()], &json!(1)));
    explain(0, None).await.refused(409, "already_decided");
    explain(0, Some(&second)).await.expect(200);
    let by_another = json!({"finding": 0, "reason": "Outra", "entry_id": second});
    world.second_ops_post(&format!("{path}/explain"), &[], &by_another).await.refused(409, "already_decided");
    assert_eq!(open().await, 1);
    // A reason is enough, and gives way to an entry.
    explain(1, None).await.expect(200);
    let reasoned = explain(1, None).await.expect(200);
    assert_eq!((&reasoned["explained"], open().await), (&json!(2), 0), "{reasoned}");
    let other = json!({"finding": 1, "reason": "Outra razão"});
    let reasoned = world.second_ops_post(&format!("{path}/explain"), &[], &other).await.expect(200);
    assert_eq!(statuses(&reasoned)[2..], ["replaced", "explained"], "who said what stays: {reasoned}");
    assert_eq!(reasoned["explained"], 2);
    let listed = world.ops_get("/ops/reconciliations").await.expect(200);
    assert_eq!((&items(&listed)[0]["explained"], items(&listed)[0].get("explanations")), (&json!(2), None));

    for body in [
        json!({"finding": 2, "reason": "x"}),
        json!({"finding": -1, "reason": "x"}),
        json!({"finding": 0}),
        json!({"finding": 0, "reason": "x", "entry_id": "x"}),
        json!({"finding": 1, "reason": "x", "entry_id": merchant.id}),
    ] {
        world.ops_post(&format!("{path}/explain"), &body).await.refused(400, "validation_failed");
    }
    world
        .ops_post(&format!("/ops/reconciliations/{}/explain", "0".repeat(64)), &json!({"finding": 0, "reason": "x"}))
        .await
        .refused(404, "not_found");

    let again = world.reconcile(PIX, "?again=true", wrong.clone()).await.expect(200);
    assert_eq!((&again["explained"], &again["explanations"]), (&json!(2), &reasoned["explanations"]));
    world.ops_post(&format!("{path}/dismiss"), &json!({"reason": "Arquivo errado"})).await.expect(200);
    explain(1, None).await.refused(409, "already_decided");
    let anew = world.reconcile(PIX, "?again=true", wrong).await.expect(200);
    assert_eq!((&anew["explained"], anew.get("explanations")), (&json!(0), None), "of a wrong file nothing stays");
    world.check_books().await;
}

/// An entry explains a line of a statement that it removes: neither one of less, nor one that
/// differs when the file is compared again.
#[tokio::test]
async fn an_entry_of_another_amount_does_not_explain_a_line() {
    let world = World::sandbox().await;
    let day = wire::timestamp::day_of(world.engine().now().0).format("%Y%m%d");
    let statement = format!(
        "<OFX><STMTTRNRS><STMTRS><BANKACCTFROM><ACCTID>777-7</BANKACCTFROM><BANKTRANLIST><DTSTART>{day}<DTEND>{day}\
         <STMTTRN><DTPOSTED>{day}<TRNAMT>-100.00<FITID>TAR-1<MEMO>TARIFA</STMTTRN></BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
    );
    let found = world.reconcile(OFX, "?account=own", statement.clone()).await.expect(200);
    let path = format!("/ops/reconciliations/{}/explain", text(&found["sha256"]));
    for (debit, credit, amount, expected) in [
        ("Expenses:Bank:Fees", "Assets:Bank:Own", 1_000, 400),
        ("Expenses:Bank:Fees", "Assets:Bank:Pix", 10_000, 400),
        ("Assets:Bank:Own", "Expenses:Bank:Fees", 10_000, 400),
        ("Expenses:Bank:Fees", "Assets:Bank:Own", 15_000, 200),
    ] {
        let entry = json!({"debit": debit, "credit": credit, "amount": amount, "reason": "Tarifas", "reference": "TAR-1",
            "reference_repeats": true});
        let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
        let body = json!({"finding": 0, "reason": "Tarifas", "entry_id": id});
        world.ops_post(&path, &body).await.expect(expected);
        let verdict = if expected == 200 { "approve" } else { "reject" };
        let notes = if expected == 200 { json!({}) } else { json!({"notes": "Valor errado"}) };
        world.second_ops_post(&format!("/ops/entries/{id}/{verdict}"), &[], &notes).await.expect(200);
    }
    let of = path.trim_end_matches("/explain");
    assert_eq!(world.ops_get(of).await.expect(200)["explained"], 1, "several lines may have one entry");
    // The entry has the reference of the line, and another amount.
    let again = world.reconcile(OFX, "?account=own&again=true", statement).await.expect(200);
    assert_eq!((&again["differs"], &again["explained"]), (&json!(1), &json!(0)), "{again}");
    let reasoned = json!({"finding": 0, "reason": "As outras tarifas são de amanhã"});
    assert_eq!(world.ops_post(&path, &reasoned).await.expect(200)["explained"], 1);
}

/// Two lines that one entry explains, and one that nothing explains: a difference is explained
/// once, however often the file is compared.
#[tokio::test]
async fn an_explanation_counts_once_however_often_a_file_is_compared() {
    let world = World::sandbox().await;
    let day = wire::timestamp::day_of(world.engine().now().0).format("%Y%m%d");
    let line = |id: &str| format!("<STMTTRN><DTPOSTED>{day}<TRNAMT>-10.00<FITID>{id}<MEMO>TARIFA</STMTTRN>");
    let statement = format!(
        "<OFX><STMTTRNRS><STMTRS><BANKACCTFROM><ACCTID>777-7</BANKACCTFROM><BANKTRANLIST><DTSTART>{day}<DTEND>{day}\
         {}{}{}</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>",
        line("TAR-1"),
        line("TAR-2"),
        line("TAR-3")
    );
    let found = world.reconcile(OFX, "?account=own", statement.clone()).await.expect(200);
    assert_eq!(found["only_theirs"], 3);
    let entry = json!({"debit": "Expenses:Bank:Fees", "credit": "Assets:Bank:Own", "amount": 2_000,
        "reason": "Tarifas", "reference": "TARIFAS-1"});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    let path = format!("/ops/reconciliations/{}/explain", text(&found["sha256"]));
    for finding in [0, 1] {
        let body = json!({"finding": finding, "reason": "Tarifas", "entry_id": id});
        world.ops_post(&path, &body).await.expect(200);
    }
    let third = json!({"finding": 2, "reason": "Tarifas", "entry_id": id});
    world.ops_post(&path, &third).await.refused(400, "validation_failed");
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    for _ in 0..3 {
        let again = world.reconcile(OFX, "?account=own&again=true", statement.clone()).await.expect(200);
        let counts = [&again["only_theirs"], &again["only_ours"], &again["explained"]];
        assert_eq!(counts, [&json!(3), &json!(1), &json!(3)], "{again}");
    }
}

#[tokio::test]
async fn the_statements_of_the_bank_agree_with_the_books() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana Prado", 1).await;
    let debit = with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
    let day = async || {
        for _ in 0..2 {
            merchant.post("/api/card", &debit).await.expect(201);
        }
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&recipient, 1_000)])).await;
        let withdrawal = text(&merchant.withdraw(&recipient).await.expect(201)["withdrawal_id"]);
        world.ops_post(&format!("/ops/withdrawals/{withdrawal}/approve"), &json!({})).await.expect(200);
        world.advance(8 * DAY).await;
    };
    day().await;
    let statements = files(&world, "bank-settlement", "ofx");
    let [batch] = &statements[..] else { panic!("two charges in one line of a batch: {statements:?}") };
    let agreed = world.reconcile(OFX, "?account=settlement", batch.clone()).await.expect(200);
    assert_eq!((counts(&agreed), &agreed["kind"]), ([1, 0, 0, 0, 0, 0], &json!("bank")), "{agreed}\n{batch}");
    // The settlement account held nothing yet: the withdrawal was paid from the PIX account.
    let [of_pix] = files(&world, "bank-pix", "ofx").try_into().unwrap();
    let agreed = world.reconcile(OFX, "?account=pix", of_pix.clone()).await.expect(200);
    assert_eq!(counts(&agreed), [2, 0, 0, 0, 0, 0], "{agreed}\n{of_pix}");
    let closing = agreed["closing"].clone();
    let day_of = &agreed["to"];
    let expected = json!({"theirs": 7_000, "theirs_on": day_of, "ours": 7_000, "ours_on": day_of, "difference": 0});
    assert_eq!(closing, expected, "{of_pix}");
    day().await;
    // The balance of that day stays what it was, whatever was booked since.
    let again = world.reconcile(OFX, "?account=pix&again=true", of_pix.clone()).await.expect(200);
    assert_eq!(again["closing"], expected);
    let balance = format!("/ops/reports/trial-balance?by=effect&to={}", text(day_of));
    let rows = world.ops_get(&balance).await.expect(200)["rows"].clone();
    let of_bank = rows.as_array().unwrap().iter().filter(|row| row["account"] == "Assets:Bank:Pix");
    assert_eq!(of_bank.map(|row| row["closing"].as_i64().unwrap()).sum::<i64>(), 7_000, "{rows}");
    let of_now = of_pix.replace("<BALAMT>70.00", "<BALAMT>0,00").replace("<DTASOF>", "<DTASOF>00000000<X>");
    let closing = world.reconcile(OFX, "?account=pix", of_now).await.expect(200)["closing"].clone();
    let expected = json!({"theirs": 0, "ours": 7_000, "ours_on": day_of, "difference": -7_000});
    assert_eq!(closing, expected, "the difference is none of the result");
    let console = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = console.page(&format!("/console/reconciliations/{}", text(&again["sha256"]))).await;
    page.has(&["Closing balance of the statement", text(day_of).as_str()]);
    let statements = files(&world, "bank-settlement", "ofx");
    let other_amount = statements[1].replacen("<TRNAMT>-10.00", "<TRNAMT>-9.99", 1);
    let found = world.reconcile(OFX, "", other_amount).await.expect(200);
    assert_eq!(counts(&found), [0, 0, 1, 0, 0, 0], "{found}");
    let finding = &found["findings"][0];
    assert_eq!([&finding["ours"]["net"], &finding["theirs"]["net"]], [-1_000, -999]);
    let batch = files(&world, "acquirer", "csv").pop().unwrap();
    let other_fee = batch.replacen(",299,9701", ",300,9700", 1);
    assert_eq!(counts(&world.reconcile("text/csv", "", other_fee).await.expect(200)), [1, 0, 1, 0, 0, 0]);
    let head = batch.lines().next().unwrap().to_owned();
    let empty = world.reconcile("text/csv", "", head).await.expect(200);
    assert_eq!((&empty["lines"], empty.get("compared")), (&json!(0), None), "{empty}");
    let local = |row: &str| row.replace(',', ";");
    let spreadsheet: Vec<_> = batch.lines().map(local).collect();
    let agreed = world.reconcile("application/vnd.ms-excel", "", spreadsheet.join("\r\n")).await.expect(200);
    assert_eq!((counts(&agreed), &agreed["kind"]), ([2, 0, 0, 0, 0, 0], &json!("acquirer")));
    world.check_books().await;
}

/// A fee of the bank that was booked days later, under its own day, belongs to the statement of
/// that day, and to no later one.
#[tokio::test]
async fn an_entry_that_is_dated_back_belongs_to_its_day() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let debit = with(&card(10_000, APPROVED), "/payment_type", json!("debit"));
    merchant.post("/api/card", &debit).await.expect(201);
    world.advance(8 * DAY).await;
    let [statement] = files(&world, "bank-settlement", "ofx").try_into().unwrap();
    let line_at = statement.find("<STMTTRN>").unwrap();
    let line = &statement[line_at..statement.find("</STMTTRN>").unwrap() + "</STMTTRN>".len()];
    let fee = line.replace("97.01", "-2.50").replace("<FITID>", "<FITID>FEE-").replace("LOTE-", "TARIFA-");
    let with_fee = format!("{}{fee}{}", &statement[..line_at], &statement[line_at..]);
    let found = world.reconcile(OFX, "?account=settlement", with_fee.clone()).await.expect(200);
    assert_eq!(counts(&found), [1, 0, 0, 0, 1, 0], "{found}\n{with_fee}");
    let day = text(&found["findings"][0]["theirs"]["paid_on"]);
    let entry = json!({"debit": "Expenses:Bank:Fees", "credit": "Assets:Bank:Settlement", "amount": 250,
        "reason": "Tarifa", "reference": "EXTRATO-1", "effective_date": day});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    let agreed = world.reconcile(OFX, "?again=true", with_fee.clone()).await.expect(200);
    assert_eq!(counts(&agreed), [2, 0, 0, 0, 0, 0], "{agreed}");
    merchant.post("/api/card", &debit).await.expect(201);
    world.advance(8 * DAY).await;
    let later = files(&world, "bank-settlement", "ofx").pop().unwrap();
    assert_eq!(counts(&world.reconcile(OFX, "", later).await.expect(200)), [1, 0, 0, 0, 0, 0]);
    world.check_books().await;
}

/// The platform's own account has entries of the house alone.
#[tokio::test]
async fn a_statement_of_the_platforms_own_account_is_compared_with_the_houses_entries() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await.expect(201);
    world.advance(8 * DAY).await;
    let [statement] = files(&world, "bank-settlement", "ofx").try_into().unwrap();
    let day = wire::timestamp::day_of(world.engine().now().0).pred_opt().unwrap().to_string();
    let entry = json!({"debit": "Assets:Bank:Own", "credit": "Assets:Bank:Settlement", "amount": 2_000,
        "reason": "Comissão", "reference": "TED-7", "effective_date": day});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    // The statement of the other account, with another line in the place of the batch.
    let batch = statement.split("<MEMO>").nth(1).and_then(|rest| rest.split('<').next()).unwrap().to_owned();
    let own = statement.replace("97.01", "20.00").replace(&batch, "TED-7").replace("LOTE-", "OUTRO-");
    let own = own.replace("SANDBOX-SETTLEMENT", "PROPRIA-1");
    let dated = |text: &str, from: &str| text.replace(&from.replace('-', ""), &day.replace('-', ""));
    let found = world.reconcile(OFX, "?account=own", own.clone()).await.expect(200);
    let own = dated(&own, &text(&found["from"]));
    let agreed = world.reconcile(OFX, "?account=own&again=true", own).await.expect(200);
    assert_eq!((counts(&agreed), &agreed["account"]), ([1, 0, 0, 0, 0, 0], &json!("own")), "{agreed}\n{statement}");
    world.reconcile(OFX, "?account=other", statement.clone()).await.refused(400, "validation_failed");
    // The result of one account is not replaced by a comparison with another one, unless it is
    // dismissed.
    let first = world.reconcile(OFX, "?account=settlement", statement.clone()).await.expect(200);
    world.reconcile(OFX, "?account=pix&again=true", statement.clone()).await.refused(409, "already_reconciled");
    let path = format!("/ops/reconciliations/{}", text(&first["sha256"]));
    assert_eq!(world.ops_get(&path).await.expect(200), first);
    world.ops_post(&format!("{path}/dismiss"), &json!({"reason": "Outra conta"})).await.expect(200);
    let other = world.reconcile(OFX, "?account=pix&again=true", statement).await.expect(200);
    assert_eq!(other["account"], "pix");
    let effective = &world.ops_get("/ops/ledgers/P-house/entries").await.expect(200)["items"][0]["effective_at"];
    let effective = text(effective).parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp_millis();
    assert_eq!(wire::timestamp::day_of(effective).to_string(), day);
}

/// The same file again is 409, also after a restart; the result is stored until a new comparison
/// replaces it.
#[tokio::test]
async fn results_are_kept_under_the_digest_of_the_file() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    let list = files(&world, "pix", "json").pop().unwrap();
    let first = world.reconcile(PIX, "", list.clone()).await.expect(200);
    let id = text(&first["sha256"]);
    let refused = world.reconcile(PIX, "", list.clone()).await.refused(409, "already_reconciled");
    assert_eq!(refused["id"], json!(id));
    world.reconcile(PIX, "?again=yes", list.clone()).await.refused(400, "validation_failed");
    world.reconcile(PIX, "?agian=true", list.clone()).await.refused(400, "validation_failed");
    let missing = list.replacen("8000", "80.00", 1).replacen("80.00", "80.01", 1);
    let second = world.reconcile(PIX, "", missing).await.expect(200);
    assert_eq!(second["differs"], 1);
    // The list of the day before has it: the payment is found by its txid, and its day differs.
    let day = |days: i64| wire::timestamp::day_of(world.engine().now().0 - days * DAY * 1000).to_string();
    let earlier = list.replace(&day(1), &day(2)).replace(&day(0), &day(1));
    let third = world.reconcile(PIX, "", earlier).await.expect(200);
    assert_eq!(counts(&third), [0, 0, 1, 0, 0, 0], "{third}");
    drop(merchant);
    let world = world.restarted().await;
    world.reconcile(PIX, "", list.clone()).await.refused(409, "already_reconciled");
    assert_eq!(world.ops_get(&format!("/ops/reconciliations/{id}")).await.expect(200), first);
    let listed = world.ops_get("/ops/reconciliations").await.expect(200);
    let digests: Vec<_> = items(&listed).iter().map(|item| item["sha256"].clone()).collect();
    assert_eq!(
        (digests, &listed["total"]),
        (vec![third["sha256"].clone(), second["sha256"].clone(), json!(id)], &json!(3))
    );
    assert!(items(&listed).iter().all(|item| item.get("findings").is_none()));
    world.advance(60).await;
    world.reconcile(PIX, "?again=true", list).await.expect(200);
    let listed = world.ops_get("/ops/reconciliations?per_page=1").await.expect(200);
    assert_eq!((&items(&listed)[0]["sha256"], &listed["total"]), (&json!(id), &json!(3)), "it is the newest now");
    for unknown in ["0".repeat(64), "x".to_owned(), id.to_uppercase()] {
        world.ops_get(&format!("/ops/reconciliations/{unknown}")).await.refused(404, "not_found");
    }
}

/// A line has the words of the bank, and what the books have the name of whose it is. On the disk
/// the words are sealed. A result of before they were stored is read, and explained as before.
#[tokio::test]
async fn lines_have_the_words_of_the_bank_and_the_names_of_people() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    let body = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &body).await.expect(201);
    world.advance(DAY).await;
    let statement = files(&world, "bank-pix", "ofx").pop().unwrap();
    let day = statement.split("<DTPOSTED>").nth(1).unwrap()[..8].to_owned();
    let fee =
        format!("<STMTTRN><DTPOSTED>{day}<TRNAMT>-9.90<FITID>FEE1<NAME>TARIFA<MEMO>PACOTE  DE 12345678909</STMTTRN>");
    let statement = statement.replacen("<STMTTRN>", &format!("{fee}<STMTTRN>"), 1);
    let compared = world.reconcile(OFX, "?account=pix", statement.clone()).await.expect(200);
    let path = format!("/ops/reconciliations/{}", text(&compared["sha256"]));
    let read = world.ops_get(&path).await.expect(200);
    assert_eq!(read, compared);
    let fee = &read["findings"][0];
    assert_eq!(
        (&fee["number"], &fee["text"], fee.get("name")),
        (&json!(0), &json!("TARIFA PACOTE DE ***456789**"), None)
    );
    let named = |kind: &str| {
        let line = read["matched_lines"].as_array().unwrap().iter().find(|line| line["kind"] == kind);
        line.unwrap_or_else(|| panic!("{kind}: {read}"))["name"].clone()
    };
    assert_eq!(named("pix"), "Maria das Dores");
    let shown = world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await.expect(200);
    assert_eq!(named("cashout"), shown["name"]);
    let console = Browser::signed_in(&world, OPS_TOKEN).await;
    let address = path.replace("/ops", "/console");
    console.page(&format!("{address}?finding=0")).await.has(&["TARIFA PACOTE DE ***456789**", "Maria das Dores"]);

    let name = path.trim_start_matches("/ops/").replace("reconciliations", "reconciliation");
    let stored = world.engine().side_value(&name).unwrap().unwrap();
    assert!(!String::from_utf8_lossy(&stored).contains("TARIFA"), "it is sealed");
    let mut older = read.clone();
    for list in ["findings", "matched_lines"] {
        for line in older[list].as_array_mut().unwrap() {
            let line = line.as_object_mut().unwrap();
            line.retain(|member, _| !["number", "name", "text"].contains(&member.as_str()));
        }
    }
    world.engine().keep(&name, older.to_string().as_bytes()).unwrap();
    let old = world.ops_get(&path).await.expect(200);
    assert_eq!((&old["findings"][0]["id"], old["findings"][0].get("text")), (&json!("FEE1"), None));
    let reason = json!({"finding": 0, "reason": "Tarifa do pacote"});
    world.ops_post(&format!("{path}/explain"), &reason).await.expect(200);
    let again = world.reconcile(OFX, "?account=pix&again=true", statement).await.expect(200);
    assert_eq!((&again["explained"], &again["findings"][0]["text"]), (&json!(1), &fee["text"]), "{again}");
    world.check_books().await;
}

/// The differences of a result are a file, as lists are; the console links to it.
#[tokio::test]
async fn differences_are_a_file() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    let [list] = files(&world, "pix", "json").try_into().unwrap();
    let found = world.reconcile(PIX, "", falsified(&list, "amount")).await.expect(200);
    let path = format!("/ops/reconciliations/{}", text(&found["sha256"]));
    let reason = json!({"finding": 0, "reason": "=Tarifa; retida"});
    world.ops_post(&format!("{path}/explain"), &reason).await.expect(200);
    let finding = &found["findings"][0];
    let (id, txid, day) = (text(&finding["id"]), text(&finding["payment_id"]), text(&finding["ours"]["paid_on"]));
    let file = world.ops_get(&format!("{path}?format=csv")).await;
    assert!(file.header("content-disposition").unwrap().contains(&format!("\"pix-{}.csv\"", text(&found["from"]))));
    let line = finding["line"].as_u64().unwrap();
    let [head, row] = file.text.lines().collect::<Vec<_>>()[..] else { panic!("{}", file.text) };
    assert!(
        head.starts_with("number,finding,line,kind,id,name,text,batch,payment_id,ours_paid_on,ours_gross,"),
        "{head}"
    );
    let expected = format!(
        "0,differs,{line},pix,{id},Maria das Dores,{},,{txid},{day},8000,0,8000,{day},8001,0,8001,1,explained,'=Tarifa; retida",
        finding["text"].as_str().unwrap_or_default()
    );
    assert_eq!(row, expected);
    let file = world.ops_get(&format!("{path}?format=csv-ptbr")).await;
    let row = file.text.lines().nth(1).unwrap();
    assert!(row.starts_with("0;Diverge;") && row.ends_with(";0,01;explicada;\"'=Tarifa; retida\""), "{}", file.text);
    assert_eq!(world.ops_get(&format!("{path}?format=xlsx")).await.status, 200);
    world.ops_get(&format!("{path}?format=pdf")).await.refused(400, "validation_failed");

    let console = Browser::signed_in(&world, OPS_TOKEN).await;
    let address = path.replace("/ops", "/console");
    console.page(&address).await.has(&[&format!("{address}?format=csv\""), &format!("{address}?format=xlsx\"")]);
    let file = console.get(&format!("{address}?format=csv")).await;
    assert!(file.html.starts_with("number,finding,"), "{}", file.html);
}

/// Open differences are one list: those that nothing explains, of a month and of a kind of file.
#[tokio::test]
async fn open_differences_are_a_list() {
    let world = World::sandbox().await;
    let begin = wire::timestamp::day_of(world.engine().now().0).with_day(1).unwrap();
    let of = |name: &str, count: usize| {
        let day = begin.with_day(u32::from(name.as_bytes()[0] - b'A') + 1).unwrap().format("%Y%m%d");
        let line = |number: usize| {
            format!("<STMTTRN><DTPOSTED>{day}<TRNAMT>-10.00<FITID>{name}-{number}<MEMO>TARIFA {name}</STMTTRN>")
        };
        let lines = (0..count).map(line).collect::<String>();
        format!(
            "<OFX><STMTTRNRS><STMTRS><BANKACCTFROM><ACCTID>777-7</BANKACCTFROM><BANKTRANLIST><DTSTART>{day}<DTEND>{day}\
            {lines}</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
        )
    };
    let results = [of("A", 3), of("B", 1), of("C", 1)].map(|file| world.reconcile(OFX, "?account=own", file));
    let [first, second, third] = results;
    let ids = [first.await, second.await, third.await].map(|result| text(&result.expect(200)["sha256"]));
    let explain = async |id: &str, finding: u64| {
        let body = json!({"finding": finding, "reason": "Tarifa"});
        world.ops_post(&format!("/ops/reconciliations/{id}/explain"), &body).await.expect(200);
    };
    explain(&ids[0], 1).await;
    explain(&ids[1], 0).await;
    let dismissed = json!({"reason": "De outra conta"});
    world.ops_post(&format!("/ops/reconciliations/{}/dismiss", ids[2]), &dismissed).await.expect(200);
    let month = begin.format("%Y-%m").to_string();
    let open = async |more: &str| world.ops_get(&format!("/ops/reconciliations?open=true{more}")).await.expect(200);
    let listed = open(&format!("&period={month}&kind=bank")).await;
    assert_eq!((&listed["total"], &items(&listed)[0]["sha256"]), (&json!(1), &json!(ids[0])));
    let findings = items(&listed)[0]["findings"].as_array().unwrap().clone();
    let numbers: Vec<_> = findings.iter().map(|finding| (&finding["number"], &finding["id"])).collect();
    assert_eq!(numbers, [(&json!(0), &json!("A-0")), (&json!(2), &json!("A-2"))]);
    for more in ["&kind=pix", "&period=2020-01"] {
        assert_eq!(open(more).await["total"], 0, "{more}");
    }
    for refused in ["open=yes", "kind=own", "opne=true"] {
        world.ops_get(&format!("/ops/reconciliations?{refused}")).await.refused(400, "validation_failed");
    }
    assert_eq!(world.ops_get("/ops/reconciliations").await.expect(200)["total"], 3);

    let console = Browser::signed_in(&world, OPS_TOKEN).await;
    let link = format!("/console/reconciliations?open=true&amp;month={month}&amp;kind=bank");
    console.page(&format!("/console/periods/{month}")).await.has(&[&link]);
    let shown = console.page(&link.replace("&amp;", "&")).await;
    let explain = |number: u64| format!("/console/reconciliations/{}?finding={number}#explain", ids[0]);
    shown.has(&["TARIFA A", &explain(0), &explain(2)]);
    assert!(!shown.html.contains(&explain(1)), "it is explained: {}", shown.html);
}

/// A statement with rows of balances, the line of another day, and a period that ends at midnight,
/// declared as browsers do.
#[tokio::test]
async fn a_statement_is_compared_on_the_days_that_it_covers() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    merchant.paid_pix(&pix("55.10")).await;
    world.advance(DAY).await;
    let [first, second] = files(&world, "bank-pix", "ofx").try_into().unwrap();
    let day_of = |statement: &str| statement.split("<DTSTART>").nth(1).unwrap()[..8].to_owned();
    let (one, two) = (day_of(&first), day_of(&second));
    let dated = |day: &str| format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]);
    let balance = "<STMTTRN>\r\n<DTPOSTED>00000000\r\n<TRNAMT> . \r\n<MEMO>SALDO ANTERIOR\r\n</STMTTRN>\r\n<STMTTRN>";
    let of_second =
        first.replacen("<STMTTRN>", balance, 1).replace(&format!("<DTSTART>{one}"), &format!("<DTSTART>{two}"));
    let of_second = of_second.replace(&format!("<DTEND>{one}"), &format!("<DTEND>{two}"));
    let found = world.reconcile("application/octet-stream", "?account=pix", of_second.clone()).await.expect(200);
    assert_eq!(counts(&found), [1, 0, 0, 1, 0, 0], "the line of the day before is read: {found}");
    assert_eq!(found["compared"], json!({"from": dated(&two), "to": dated(&two)}));
    assert_eq!(found["balances"][0]["text"], "SALDO ANTERIOR");
    assert_eq!(found["accounts"], json!([{"acctid": "SANDBOX-PIX", "kind": "bank", "lines": 1}]));
    let at_midnight = of_second.replace(&format!("<DTEND>{two}"), &format!("<DTEND>{two}000000[-3:BRT]"));
    let found = world.reconcile("text/plain", "?account=pix", at_midnight).await.expect(200);
    assert_eq!((counts(&found), found.get("compared")), ([1, 1, 0, 0, 0, 0], None), "{found}");
    world.check_books().await;
}

/// The number of an account is that of its first statement, until a caller names another one.
#[tokio::test]
async fn the_statement_of_another_account_is_refused() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    let [statement] = files(&world, "bank-pix", "ofx").try_into().unwrap();
    let of = |number: &str| statement.replace("<ACCTID>SANDBOX-PIX", &format!("<ACCTID>{number}"));
    let first = world.reconcile(OFX, "?account=pix", of("12.345-6")).await.expect(200);
    assert_eq!(first["acctid"], "12.345-6");
    world.reconcile(OFX, "?account=pix", of("0123456")).await.expect(200);
    let refused = world.reconcile(OFX, "?account=pix", of("99999-9")).await.refused(409, "other_bank_account");
    assert_eq!([&refused["acctid"], &refused["expected"]], ["99999-9", "12.345-6"]);
    assert!(text(&refused["detail"]).contains("acctid=99999-9"), "{refused}");
    world.reconcile(OFX, "?account=settlement", of("99999-9")).await.expect(200);
    world.reconcile(OFX, "?account=pix&acctid=99999-9", of("99999-9")).await.refused(409, "already_reconciled");
    let moved = of("99999-9") + "\r\n";
    world.reconcile(OFX, "?account=pix&acctid=99999-9", moved).await.expect(200);
    world.reconcile(OFX, "?account=pix", of("12345-6")).await.refused(409, "other_bank_account");
    // A wrong first file binds nobody once its result is dismissed.
    let path = format!(
        "/ops/reconciliations/{}/dismiss",
        text(&world.ops_get("/ops/reconciliations").await.expect(200)["items"][0]["sha256"])
    );
    world.ops_post(&path, &json!({"reason": "Outra conta"})).await.expect(200);
    world.reconcile(OFX, "?account=pix", of("12345-6")).await.expect(200);
    // Who names no account has the one of the number; who names another one is refused.
    for (number, account) in [("12345-6", "pix"), ("99999-9", "settlement")] {
        let recognized = world.reconcile(OFX, "", of(number) + "\r\n\r\n").await.expect(200);
        assert_eq!(recognized["account"], account, "{number}");
    }
    let refused = world.reconcile(OFX, "?account=own", of("12345-6") + " \r\n").await;
    assert_eq!(refused.refused(409, "other_bank_account")["expected"], "12345-6");

    let [begin, end] = [statement.find("<STMTRS>").unwrap(), statement.find("</STMTRS>").unwrap()];
    let other = statement[begin..end].replace("SANDBOX-PIX", "777");
    let both = format!("{}{}</STMTRS>{}", &statement[..begin], other, &statement[begin..]);
    let accounts =
        json!([{"acctid": "777", "kind": "bank", "lines": 1}, {"acctid": "SANDBOX-PIX", "kind": "bank", "lines": 1}]);
    let refused = world.reconcile(OFX, "?account=own", both.clone()).await.refused(400, "validation_failed");
    assert_eq!((&refused["errors"][0]["field"], &refused["accounts"]), (&json!("acctid"), &accounts));
    world.reconcile(OFX, "?account=own&acctid=1", both.clone()).await.refused(400, "validation_failed");
    let chosen = world.reconcile(OFX, "?account=own&acctid=sandbox-pix", both.clone()).await.expect(200);
    assert_eq!((&chosen["acctid"], &chosen["accounts"]), (&json!("SANDBOX-PIX"), &accounts));
    world.reconcile(OFX, "?account=own", both + "\r\n").await.expect(200);
}

/// A statement whose number no account has asks which account it is of. Until that is said nothing
/// is compared, and no account has the number.
#[tokio::test]
async fn a_statement_of_an_unknown_number_asks_whose_it_is() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(DAY).await;
    let [statement] = files(&world, "bank-pix", "ofx").try_into().unwrap();
    let of = |number: &str| statement.replace("<ACCTID>SANDBOX-PIX", &format!("<ACCTID>{number}"));
    for query in ["", "?again=true", "?acctid=SANDBOX-PIX"] {
        let asked = world.reconcile(OFX, query, statement.clone()).await.refused(400, "validation_failed");
        let error = &asked["errors"][0];
        assert_eq!([&error["field"], &error["code"]], ["account", "required"], "{query}: {asked}");
        assert!(text(&error["message"]).contains("SANDBOX-PIX"), "{asked}");
        assert_eq!(asked["accounts"], json!([{"acctid": "SANDBOX-PIX", "kind": "bank", "lines": 1}]), "{query}");
    }
    assert_eq!(world.ops_get("/ops/reconciliations").await.expect(200)["total"], 0);
    let named = world.reconcile(OFX, "?account=pix", statement.clone()).await.expect(200);
    assert_eq!((&named["account"], &named["matched"]), (&json!("pix"), &json!(1)));
    // The number is that of the account from here on, and another number still asks.
    let known = world.reconcile(OFX, "", statement.clone() + "\r\n").await.expect(200);
    assert_eq!(known["account"], "pix");
    world.reconcile(OFX, "", of("99887-1")).await.refused(400, "validation_failed");
    assert_eq!(world.reconcile(OFX, "?account=settlement", of("99887-1")).await.expect(200)["account"], "settlement");
}

#[tokio::test]
async fn a_hostile_file_is_refused_by_its_line_and_nothing_is_kept() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &with(&card(10_000, APPROVED), "/payment_type", json!("debit"))).await.expect(201);
    merchant.paid_pix(&pix("80.00")).await;
    world.advance(8 * DAY).await;
    let list = files(&world, "pix", "json").pop().unwrap();
    let statement = files(&world, "bank-settlement", "ofx").pop().unwrap();
    let of = |text: &str, part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
    let bomb = statement.replacen("<OFX>", "<!DOCTYPE OFX [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>\n<OFX>", 1);
    for (media_type, file, line) in [
        (PIX, list.replacen("80.00", "80,00", 1), of(&list, "80.00")),
        (PIX, list.replacen("80.00", "80.001", 1), of(&list, "80.00")),
        (PIX, list.replacen("\"quantidadeTotalDeItens\":1", "\"quantidadeTotalDeItens\":2", 1), 1),
        (PIX, list.replacen("\"quantidadeDePaginas\":1", "\"quantidadeDePaginas\":2", 1), 1),
        (PIX, list[..list.len() - 4].to_owned(), list.lines().count() - 1),
        (OFX, bomb, of(&statement, "<OFX>")),
        (OFX, statement.replacen("LOTE", "&lote;", 1), of(&statement, "LOTE")),
        (OFX, statement.replacen("97.01", "1.097.01", 1), of(&statement, "97.01")),
        (OFX, statement.replacen("<CURDEF>BRL", "<CURDEF>USD", 1), statement.lines().count()),
        (OFX, statement.replacen("<STMTTRN>", "<X>".repeat(40).as_str(), 1), of(&statement, "<STMTTRN>")),
    ] {
        let refused = world.reconcile(media_type, "?account=settlement", file).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], format!("line {line}"), "{refused}");
    }
    world.reconcile(OFX, "", "<OFX>".repeat(4 << 20)).await.refused(413, "payload_too_large");
    assert_eq!(world.ops_get("/ops/reconciliations").await.expect(200)["total"], 0);
    world.check_books().await;
}
