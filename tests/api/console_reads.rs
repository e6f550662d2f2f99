//! What the console reads for an operator, and the routes of `/ops` that have the same: books of a
//! day, splits and anticipations, API keys, previews, health, what the find box leads to.

use reqwest::Method;
use serde_json::{Value, json};
use store::Partition;
use store::cut::Cut;

use crate::closed_periods::local;
use crate::console::{ANA, Browser, EVA, RUI, world_of_three};
use crate::plans::{PLANS, plan};
use crate::world::*;

/// Amounts of centavos as the English page has them in a column.
pub(crate) fn column(centavos: &Value) -> String {
    let centavos = centavos.as_i64().unwrap();
    if centavos == 0 {
        return String::new();
    }
    let (sign, shown) = (if centavos < 0 { "−" } else { "" }, centavos.abs());
    let reais = (shown / 100).to_string();
    let groups: Vec<_> = reais.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    format!("{sign}{}.{:02}", groups.join(","), shown % 100)
}

/// What a page shows of a cut: a link to the last Record where there is one partition.
pub(crate) fn shown_cut(cut: &Cut) -> String {
    match cut.partitions() {
        1 => format!("/console/records/{}", cut.name()),
        _ => format!("title=\"{cut}\""),
    }
}

/// The texts of the cells of the first table of a page, row by row.
pub(crate) async fn rows(browser: &Browser, path: &str) -> Vec<Vec<String>> {
    let page = browser.page(path).await.html;
    let table = page.split("<table").nth(1).unwrap_or_else(|| panic!("no table in {page}"));
    let table = table.split("</table>").next().unwrap().replace("</th>", "</td>");
    let text = |cell: &str| {
        let parts = cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
        parts.collect::<String>().replace("&amp;", "&").trim().to_owned()
    };
    let cells = |row: &str| row.split("</td>").map(text).collect::<Vec<_>>();
    let rows = table.split("<tr").skip(1).map(|row| cells(row.split("</tr>").next().unwrap()));
    // Nothing follows the last cell of a row.
    rows.map(|mut row| row.drain(..row.len() - 1).collect()).collect()
}

/// A day in São Paulo, as the parameter `date` has it.
fn day_of(at: chrono::DateTime<chrono::Utc>) -> String {
    local(at).format("%Y-%m-%d").to_string()
}

#[tokio::test]
async fn the_trial_balance_of_the_console_is_that_of_the_route_now_and_of_a_day() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("1234.56")).await;
    let (past, cut) = (day_of(world.advance(0).await), world.cut().await);
    world.advance(86_400).await;
    merchant.paid_pix(&pix("10.00")).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for day in [String::new(), format!("&date={past}")] {
        let route = world.ops_get(&format!("/ops/trial-balance?by=account{day}")).await.expect(200);
        let page = rows(&browser, &format!("/console/trial-balance?by=account{day}")).await;
        let expected: Vec<Vec<String>> = route["accounts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let amounts = ["debits", "credits", "balance"].map(|name| column(&row[name]));
                [vec![text(&row["account"])], amounts.to_vec()].concat()
            })
            .collect();
        assert!(expected.len() > 5, "{expected:?}");
        assert_eq!(page[1..=expected.len()], expected, "{day}");
    }
    let shown = browser.page(&format!("/console/trial-balance?date={past}")).await;
    shown.has(&[&shown_cut(&cut), "1,234.56", &format!("&amp;date={past}"), &format!("value=\"{past}\"")]);
    assert!(!shown.html.contains("1,244.56"), "what came after does not count");
    browser.page("/console/trial-balance?by=ledger&date=").await.has(&["Loja Azul"]);
    for wrong in ["at=1", "date=x", "account=Nothing"] {
        assert_eq!(browser.get(&format!("/console/trial-balance?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_ledger_is_shown_as_it_was() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("1234.56")).await;
    let (past, cut) = (day_of(world.advance(0).await), world.cut().await);
    world.advance(86_400).await;
    merchant.paid_pix(&pix("10.00")).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let path = format!("/console/ledgers/{}", merchant.ledger());
    browser.page(&path).await.has(&["1,244.56", "10.00"]);
    let then = browser.page(&format!("{path}?date={past}")).await;
    then.has(&["1,234.56", &format!("value=\"{past}\"")]);
    // Of several partitions, that of the ledger counts: its node may not have read the others.
    let entries = world.ops_get(&format!("/ops/ledgers/{}/entries", merchant.ledger())).await.expect(200);
    let Partition(own) = place_in(&items(&entries)[0]).partition;
    let through = format!("{own}={}", cut.of(Partition(own)).0);
    let mut titles = then.html.split("<span title=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let is_shown = then.html.contains(&shown_cut(&cut)) || titles.any(|cut| cut.split(',').any(|last| last == through));
    assert!(is_shown, "{through}: {}", then.html);
    assert!(!then.html.contains("1,244.56") && !then.html.contains(">10.00<"), "{}", then.html);
    let route = world.ops_get(&format!("/ops/trial-balance?ledger={}&date={past}", merchant.ledger())).await;
    let shown = rows(&browser, &format!("{path}?date={past}")).await;
    for (row, expected) in shown[1..].iter().zip(route.expect(200)["accounts"].as_array().unwrap()) {
        let amounts = ["debits", "credits", "balance"].map(|name| column(&expected[name]));
        assert_eq!(*row, [vec![text(&expected["account"])], amounts.to_vec()].concat());
    }
    let link = format!("/console/ledgers/{}?date={past}#entries", merchant.ledger());
    browser.page(&format!("/console/trial-balance?by=ledger&date={past}")).await.has(&[&format!("href=\"{link}\"")]);
    assert_eq!(browser.get(&format!("{path}?at=1")).await.status, 400);
}

#[tokio::test]
async fn an_account_leads_to_its_ledgers_and_a_ledger_to_its_postings() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let other = world.open(json!({"name": "Loja Verde", "document": cnpj(2)})).await;
    merchant.paid_pix(&pix("10.00")).await;
    let past = day_of(world.advance(0).await);
    world.advance(86_400).await;
    other.paid_pix(&pix("20.00")).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let account = "Income:Sales:Pix";
    let link = format!("/console/trial-balance?account={account}");
    browser.page("/console/trial-balance").await.has(&[&format!("href=\"{link}\"")]);
    let page = browser.page(&link).await;
    let postings = format!("/console/ledgers/{}#entries", merchant.ledger());
    page.has(&["Loja Azul", "Loja Verde", &postings]);
    assert!(!page.html.contains("/console/ledgers/P-"), "{}", page.html);
    let then = browser.page(&format!("{link}&date={past}")).await;
    assert!(then.html.contains("Loja Azul") && !then.html.contains("Loja Verde"), "{}", then.html);
    browser.page(postings.split('#').next().unwrap()).await.has(&["id=\"entries\"", "Income:<wbr>Sales:<wbr>Pix"]);

    let listed = world.ops_get(&format!("/ops/trial-balance?account={account}&per_page=1")).await.expect(200);
    assert_eq!((&listed["total"], listed["accounts"].as_array().unwrap().len()), (&json!(2), 1), "{listed}");
    for wrong in ["account=Income", "account=Income:Sales:Pix&by=account", "account=Income:Sales:Pix&format=csv"] {
        world.ops_get(&format!("/ops/trial-balance?{wrong}")).await.refused(400, "validation_failed");
    }
}

#[tokio::test]
async fn splits_say_when_they_fall_due_and_what_was_anticipated() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 3_000), (&bia, 2_000)]);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let splits = async || {
        let page = browser.page(&format!("/console/charges/{txid}")).await;
        page.html.split("id=\"splits\"").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
    };
    let before = splits().await;
    assert_eq!(before.matches("falls due").count(), 2, "{before}");
    let list = format!("/api/dashboard/sub-recipients/{ana}/splits");
    let split = text(&items(&merchant.get(&list).await.expect(200))[0]["id"]);
    let body = json!({"split_ids": [split], "target_days": 2});
    merchant.post(&format!("/api/dashboard/sub-recipients/{ana}/anticipate"), &body).await.expect(200);
    let after = splits().await;
    assert_eq!([after.matches("falls due").count(), after.matches("anticipated").count()], [1, 1], "{after}");
    let page = browser.page(&format!("/console/recipients/{ana}")).await;
    page.has(&["id=\"anticipations\"", "R$30.00", "D+2", "Debt to the merchant"]);
    assert!(!browser.page(&format!("/console/recipients/{bia}")).await.html.contains("id=\"anticipations\""));
}

/// The statement on a recipient's page is that of the interface, on all its parts.
#[tokio::test]
async fn a_recipient_has_its_statement() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    for number in 0..21 {
        let charge = if number % 2 == 0 { card(10_000, APPROVED) } else { pix("100.00") };
        let path = if number % 2 == 0 { "/api/card" } else { "/api/pix" };
        merchant.post(path, &with_splits(charge, &[(&ana, 100 + number)])).await.expect(201);
    }
    let paid = text(&merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 4_000)])).await["txid"]);
    merchant.withdraw(&ana).await.expect(201);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let mut shown = Vec::new();
    for part in 1..=2 {
        let page = browser.page(&format!("/console/recipients/{ana}?splits={part}")).await;
        page.has(&["Statement", "splits="]);
        let table = page.html.split("id=\"statement\"").nth(1).unwrap().split("</table>").next().unwrap().to_owned();
        shown.extend(table.split("<tr>").skip(2).map(str::to_owned));
    }
    let path = format!("/api/dashboard/sub-recipients/{ana}/splits?per_page=100");
    let statement = merchant.get(&path).await.expect(200);
    assert_eq!((shown.len(), &statement["total"]), (22, &json!(22)));
    for (row, split) in shown.iter().zip(items(&statement)) {
        let state = match split["status"].as_str().unwrap() {
            "pending" if split["payment"]["balance_available_at"].is_null() => "charge not paid yet",
            "pending" => "falls due",
            "available" => "under a withdrawal",
            _ => "paid to the recipient",
        };
        let amount = format!("R${}", column(&split["amount_cents"]));
        for part in [&text(&split["payment_id"]), state, &amount] {
            assert!(row.contains(part), "{part} in {row}");
        }
    }
    assert!(shown[0].contains(&paid), "newest first");
}

#[tokio::test]
async fn keys_of_a_merchant_are_listed_with_the_revoked_ones_and_never_their_text() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let path = format!("/ops/merchants/{}/api-keys", merchant.id);
    let second = world.ops_post(&path, &json!({"webhook_url": null})).await.expect(201);
    world
        .ops_send(Method::DELETE, &format!("/ops/api-keys/{}", text(&second["id"])), &[], String::new())
        .await
        .expect(200);
    let listed = world.ops_get(&path).await.expect(200);
    let rows: Vec<_> = items(&listed).iter().map(|key| (text(&key["id"]), key["revoked"].clone())).collect();
    assert_eq!(rows, [(merchant.key_id.clone(), json!(false)), (text(&second["id"]), json!(true))]);
    has_exactly(
        &items(&listed)[0],
        &["id", "created_at", "created_by", "webhook_url", "scopes", "revoked", "last_used_at"],
    );
    time(&items(&listed)[0]["created_at"]);
    assert_eq!(listed["total"], 2);
    world.ops_get("/ops/merchants/x/api-keys").await.refused(404, "not_found");
    world.ops_get(&format!("{path}?x=1")).await.refused(400, "validation_failed");
    let page = Browser::signed_in(&world, EVA).await.page(&format!("/console/merchants/{}", merchant.id)).await;
    page.has(&[
        &merchant.key_id,
        &text(&second["id"]),
        "revoked",
        "Splits that leave the seller below zero",
        "that of the server",
    ]);
    for key in [&merchant.key, &text(&second["api_key"])] {
        assert!(!page.html.contains(key) && !listed.to_string().contains(key), "no key is shown");
    }
}

/// The last use of a key is the minute of its last request, in the list and on the pages. A text
/// with the key's id and another secret, a revoked key and a restart are no uses.
#[tokio::test]
async fn the_last_use_of_a_key_is_shown() {
    let world = world_of_three().await;
    let names = world.merchant().await.names;
    let path = format!("/ops/merchants/{}/api-keys", names.id);
    let used = async |world: &World| items(&world.ops_get(&path).await.expect(200))[0]["last_used_at"].clone();
    let ask = async |key: &str| {
        let headers = [("token", key)];
        world.send(Method::GET, "/api/balance", &headers, "").await.status
    };
    assert_eq!(used(&world).await, Value::Null);
    let other = format!("{}{}", &names.key[..names.key.len() - 8], "0".repeat(8));
    assert_eq!((ask(&other).await, used(&world).await), (401, Value::Null), "of a guess nothing is noted");
    let mut browser = Browser::signed_in(&world, EVA).await;
    let merchant = format!("/console/merchants/{}", names.id);
    let key = format!("/console/keys/{}", names.key_id);
    for _ in 0..2 {
        let before = world.advance(3_600).await.timestamp() / 60;
        assert_eq!(ask(&names.key).await, 200);
        let after = world.advance(0).await.timestamp() / 60;
        let shown = used(&world).await;
        let at = time(&shown).timestamp();
        assert!(at % 60 == 0 && (before..=after).contains(&(at / 60)), "{shown}");
        for (language, heading) in [("en", "Last used"), ("pt-BR", "Último uso")] {
            browser.language = language;
            for page in [&merchant, &key] {
                browser.page(page).await.has(&[heading, &format!("<time datetime=\"{}\" ", text(&shown))]);
            }
        }
    }
    let last = used(&world).await;
    world.advance(3_600).await;
    world.ops_send(Method::DELETE, &format!("/ops/api-keys/{}", names.key_id), &[], String::new()).await.expect(200);
    assert_eq!((ask(&names.key).await, used(&world).await), (401, last), "a revoked key opens nothing");
    let world = world.restarted().await;
    assert_eq!(used(&world).await, Value::Null, "a restart forgets it");
}

#[tokio::test]
async fn a_dispute_is_previewed_as_it_is_booked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let before = world.cut().await;
    let path = format!("/ops/charges/{txid}/disputes");
    let preview = world.ops_get(&format!("{path}/preview?amount=2050&kind=med")).await.expect(200);
    assert_eq!((&preview["txid"], &preview["kind"], &preview["amount"]), (&json!(txid), &json!("med"), &json!(2_050)));
    assert_eq!(world.cut().await, before, "nothing is stored");
    for (query, status, code) in [
        ("kind=med", 400, "validation_failed"),
        ("amount=0&kind=med", 400, "validation_failed"),
        ("amount=1&kind=robot", 400, "validation_failed"),
        ("amount=1", 400, "validation_failed"),
        ("amount=1&kind=med&x=1", 400, "validation_failed"),
        ("amount=10001&kind=med", 409, "dispute_exceeds_available"),
    ] {
        world.ops_get(&format!("{path}/preview?{query}")).await.refused(status, code);
    }
    world.ops_get("/ops/charges/x/disputes/preview?amount=1&kind=med").await.refused(404, "charge_not_found");
    world.ops_post(&path, &json!({"amount": 2_050, "kind": "med", "reason": "Golpe"})).await.expect(201);
    for entry in preview["entries"].as_array().unwrap() {
        let ledger = text(&entry["ledger"]);
        let booked = world.ops_get(&format!("/ops/ledgers/{ledger}/entries?per_page=1")).await.expect(200);
        assert_eq!(items(&booked)[0]["postings"], entry["postings"], "{ledger}");
    }
}

#[tokio::test]
async fn health_has_what_the_process_measures_and_through_where_the_backup_is() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("10.00")).await;
    // Its page names the process that has the house.
    world.advance(0).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page("/console/health").await.has(&[
        "Last backup, through</dt><dd>—",
        "never",
        " ms · ",
        "from the API",
        "MiB",
    ]);
    let through = world.cut().await;
    let bearer = [("authorization", bearer(OPS_TOKEN))];
    world.bytes("/ops/backup", &[("authorization", bearer[0].1.as_str())]).await;
    merchant.paid_pix(&pix("10.00")).await;
    let shown = match through.partitions() {
        1 => format!("<a href=\"/console/records/{}\">", through.name()),
        _ => through.records().to_string(),
    };
    let shown = format!("Last backup, through</dt><dd>{shown}");
    browser.page("/console/health").await.has(&[&shown, "Last backup</dt><dd><time"]);
}

#[tokio::test]
async fn the_journal_tells_its_records_in_words() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("10.00")).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console/journal").await;
    page.has(&["PIX paid", "Loja Azul"]);
}

#[tokio::test]
async fn the_find_box_leads_to_keys_entries_subscriptions_and_withdrawals() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&recipient, 500)])).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let found = async |name: &str| browser.get(&format!("/console/find?q={name}")).await.header("location").to_owned();
    assert_eq!(found(&merchant.key_id).await, format!("/console/keys/{}", merchant.key_id));
    let withdrawal = text(&merchant.withdraw(&recipient).await.expect(201)["withdrawal_id"]);
    assert_eq!(found(&withdrawal).await, format!("/console/queue/{withdrawal}"));
    world.reject(&withdrawal, "Não").await.expect(200);
    assert_eq!(found(&withdrawal).await, format!("/console/queue/{withdrawal}"), "decided, it has its page");
    let body = json!({"debit": "Expenses:Bank:Fees", "credit": "Assets:Bank:Own", "amount": 7, "reason": "x", "reference": "y"});
    let entry = text(&world.ops_post("/ops/entries", &body).await.expect(201)["id"]);
    assert_eq!(found(&entry).await, format!("/console/queue/{entry}"));
    let rui = [("authorization", bearer(RUI)), ("content-type", "application/json".to_owned())];
    let rui = rui.each_ref().map(|(name, value)| (*name, value.as_str()));
    world.send(Method::POST, &format!("/ops/entries/{entry}/approve"), &rui, "{}").await.expect(200);
    assert!(found(&entry).await.starts_with("/console/records/"), "{}", found(&entry).await);
    let plan = text(&merchant.post(PLANS, &plan("mensal", 5_000, 12)).await.expect(201)["id"]);
    let body = json!({"plan_id": plan, "customer": card(1, APPROVED)["customer"], "payment_method": "pix"});
    let subscription = text(&merchant.post("/api/recurrency/subscriptions", &body).await.expect(201)["id"]);
    let place = found(&subscription).await;
    browser.page(&place).await.has(&["Subscription created"]);
    assert_eq!(found(&plan).await, format!("/console/merchants/{}", merchant.id));
    let txid = text(&merchant.paid_pix(&with_splits(pix("10.00"), &[(&recipient, 500)])).await["txid"]);
    let list = format!("/api/dashboard/sub-recipients/{recipient}/splits");
    let split = text(&items(&merchant.get(&list).await.expect(200))[0]["id"]);
    assert_eq!(found(&split).await, format!("/console/charges/{txid}"));
    for nothing in [format!("{txid}-1"), format!("{txid}-x"), "x-0".to_owned()] {
        assert_eq!(found(&nothing).await, "", "{nothing}");
    }
    let event = items(&merchant.get("/api/events").await.expect(200))[0].clone();
    let place = found(&text(&event["id"])).await;
    assert_eq!(place, format!("/console/webhooks/{}", text(&event["id"])));
    browser.page(&place).await.has(&["Event: ", "Loja Azul", "/console/records/", &text(&event["id"])]);
    assert_eq!(browser.get(&format!("/console/webhooks/{txid}")).await.status, 404);
    world.ops_send(Method::DELETE, &format!("/ops/api-keys/{}", merchant.key_id), &[], String::new()).await.expect(200);
    assert_eq!(found(&merchant.key_id).await, format!("/console/merchants/{}", merchant.id));
}

#[tokio::test]
async fn a_decision_on_many_says_whose_they_are_and_what_follows() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("10.00"), &[(&recipient, 500)])).await;
    let withdrawal = text(&merchant.withdraw(&recipient).await.expect(201)["withdrawal_id"]);
    let browser = Browser::signed_in(&world, RUI).await;
    let page = browser.page(&format!("/console/queue/many?decision=approve&id={withdrawal}")).await;
    page.has(&["Loja Azul", "Bank account", "Booked with the decision", "Booked when the institution has taken"]);
}

/// A statement of a thousand fees: its result has pages, each of them a short one.
#[tokio::test]
async fn a_result_with_many_differences_has_pages() {
    let world = World::sandbox().await;
    let fee =
        |number: u32| format!("<STMTTRN><DTPOSTED>20200131<TRNAMT>-1.00<FITID>TAR-{number}<MEMO>TARIFA</STMTTRN>");
    let fees: String = (0..1_000).map(fee).collect();
    let statement = format!(
        "<OFX><STMTTRNRS><STMTRS><BANKACCTFROM><ACCTID>777-7</BANKACCTFROM><BANKTRANLIST><DTSTART>20200131\
         <DTEND>20200131{fees}</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
    );
    let found = world.reconcile("application/x-ofx", "?account=own", statement).await.expect(200);
    let path = format!("/console/reconciliations/{}", text(&found["sha256"]));
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for (query, shown) in [("", "TAR-49<"), ("?differences=20", "TAR-999<"), ("?differences=2&finding=51", "TAR-51\"")]
    {
        let page = browser.page(&format!("{path}{query}")).await;
        page.has(&[shown]);
        assert_eq!(page.html.contains("TAR-1<"), query.is_empty(), "{query}");
        assert!(page.html.len() < 100 << 10, "{query}: {}", page.html.len());
    }
    let explained = [("finding", "51"), ("reason", "Tarifa do ano passado")];
    let answer = browser.post(&format!("{path}/explain"), &explained).await;
    assert_eq!((answer.status, answer.header("location")), (303, path.as_str()));
    browser.page(&format!("{path}?differences=2")).await.has(&["explained", "Tarifa do ano passado"]);
}
