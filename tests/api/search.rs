//! Search over all merchants: what people have in hand, prefixes, months without a key; and the
//! filters of the list of all charges.

use serde_json::{Value, json};
use store::{SledOptions, SledStore, Store};

use crate::console::Browser;
use crate::world::*;

/// What a search finds: kind, ids, and how many.
async fn found(world: &World, text_sought: &str) -> Vec<(String, Vec<String>, u64)> {
    let query: String = form_urlencoded::byte_serialize(text_sought.as_bytes()).collect();
    let answer = world.ops_get(&format!("/ops/search?q={query}")).await.expect(200);
    let groups = answer["groups"].as_array().unwrap().iter();
    let ids = |group: &Value| items(group).iter().map(|item| text(&item["id"])).collect();
    groups.map(|group| (text(&group["kind"]), ids(group), group["total"].as_u64().unwrap())).collect()
}

/// The ids of one kind that a search finds.
async fn ids(world: &World, kind: &str, text_sought: &str) -> Vec<String> {
    let groups = found(world, text_sought).await;
    groups.into_iter().find(|(known, ..)| known == kind).map(|(_, ids, _)| ids).unwrap_or_default()
}

#[tokio::test]
async fn a_charge_is_found_by_what_people_have_in_hand() {
    let world = World::sandbox().await;
    let (one, other) = (world.merchant().await, world.open(json!({"name": "Padaria Pão", "document": cnpj(90)})).await);
    let charge = text(&one.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let pix = text(&other.paid_pix(&pix("1082.53")).await["txid"]);
    let end_to_end = text(&world.ops_get(&format!("/ops/charges/{pix}")).await.expect(200)["end_to_end_id"]);
    let card = world.ops_get(&format!("/ops/charges/{charge}")).await.expect(200)["card"].clone();
    let day = text(&world.ops_get(&format!("/ops/charges/{pix}")).await.expect(200)["created_at"]);
    let day = wire::timestamp::day_of(day.parse::<chrono::DateTime<chrono::Utc>>().unwrap().timestamp_millis());
    for (sought, of_card, of_pix) in [
        (charge.clone(), true, false),
        (charge.to_uppercase(), true, false),
        (charge[..31].to_owned(), true, false),
        (pix[..20].to_uppercase(), false, true),
        ("R$ 82,53".to_owned(), true, false),
        ("82.53".to_owned(), true, false),
        ("1.082,53".to_owned(), false, true),
        ("R$ 1082,53".to_owned(), false, true),
        (text(&card["last4"]), true, false),
        (format!("**** {}", text(&card["last4"])), true, false),
        (end_to_end.clone(), false, true),
        (end_to_end.to_lowercase(), false, true),
        ("12345678909".to_owned(), true, true),
        ("123.456.789-09".to_owned(), true, true),
        ("JOAO@example.com".to_owned(), true, false),
        ("avila".to_owned(), true, false),
        ("Ávila joão".to_owned(), true, false),
        ("dores MARIA".to_owned(), false, true),
        (day.format("%d/%m/%Y").to_string(), true, true),
        (day.to_string(), true, true),
    ] {
        let ids = ids(&world, "charges", &sought).await;
        assert_eq!((ids.contains(&charge), ids.contains(&pix)), (of_card, of_pix), "{sought}");
    }
    for nothing in [
        "82,54",
        "joão dores",
        "joa mar",
        "vil",
        "oão",
        "av",
        "avilas",
        "joao@example.org",
        "98765432100",
        "1999-01-01",
        "9998",
        "E000",
        "x",
        "-",
        "zz",
        "019b8c4e5f5d",
        "ffffffff",
    ] {
        assert_eq!(found(&world, nothing).await, [], "{nothing}");
    }
    let changed = if charge.ends_with('0') { "1" } else { "0" };
    assert_eq!(ids(&world, "charges", &format!("{}{changed}", &charge[..31])).await, [""; 0]);
    for wrong in ["", "?q=", "?q=%20", "?x=1&q=a", "?q=a&q=b"] {
        world.ops_get(&format!("/ops/search{wrong}")).await.refused(400, "validation_failed");
    }
    world.ops_get(&format!("/ops/search?q={}", "x".repeat(201))).await.refused(400, "validation_failed");
}

#[tokio::test]
async fn what_is_found_has_its_name_and_its_document_masked() {
    let world = World::sandbox().await;
    let merchant = world.open(json!({"name": "Padaria São João", "document": cnpj(90), "split_enabled": true})).await;
    let recipient = merchant.recipient("João Araújo", 1).await;
    merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201);
    let groups = found(&world, "joao").await;
    let kinds: Vec<_> = groups.iter().map(|(kind, _, total)| (kind.as_str(), *total)).collect();
    assert_eq!(kinds, [("charges", 1), ("merchants", 1), ("recipients", 1)]);
    assert_eq!((&groups[1].1, &groups[2].1), (&vec![merchant.id.clone()], &vec![recipient.clone()]));
    let answer = world.ops_get("/ops/search?q=joao").await.expect(200);
    let charge = &items(&answer["groups"][0])[0];
    assert_eq!((&charge["name"], &charge["document"]), (&json!("João Ávila"), &json!("***.456.789-**")));
    assert_eq!((&charge["amount"], &charge["merchant_id"]), (&json!(8_253), &json!(merchant.id)));
    assert!(!answer.to_string().contains("12345678909"));
    assert_eq!(ids(&world, "merchants", &cnpj(90)).await, std::slice::from_ref(&merchant.id));
    assert_eq!(ids(&world, "recipients", &recipient).await, std::slice::from_ref(&recipient));
}

/// The ids of a list, page after page.
async fn listed(world: &World, list: &str) -> Vec<String> {
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let page = world.ops_get(&format!("{list}&per_page=7{before}")).await.expect(200);
        all.extend(items(&page).iter().map(|item| text(&item["id"])));
        let Some(next) = page.get("next_before") else { return all };
        before = format!("&before={}", next.as_u64().map_or_else(|| text(next), |next| next.to_string()));
    }
}

#[tokio::test]
async fn a_search_shows_twenty_says_how_many_there_are_and_leads_to_all_of_them() {
    let world = World::sandbox().await;
    let (one, other) = (world.merchant().await, world.open(json!({"name": "Padaria", "document": cnpj(90)})).await);
    let mut txids = Vec::new();
    for number in 0..23 {
        let merchant = if number % 3 == 0 { &other } else { &one };
        txids.insert(0, text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]));
    }
    let of_other: Vec<_> = txids.iter().rev().step_by(3).rev().cloned().collect();
    let day = wire::timestamp::day_of(world.engine().now().0).to_string();
    let begin = &txids[0][..8].to_uppercase();
    let of_begin: Vec<_> = txids.iter().filter(|txid| txid[..8] == begin.to_lowercase()).cloned().collect();
    for sought in ["82,53", "joao avila", "1111", "12345678909", "joao@example.com", &day] {
        let query: String = form_urlencoded::byte_serialize(sought.as_bytes()).collect();
        let answer = world.ops_get(&format!("/ops/search?q={query}")).await.expect(200);
        let group = answer["groups"].as_array().unwrap().iter().find(|group| group["kind"] == "charges").unwrap();
        let said = ["total", "at_least", "more"].map(|name| group[name].clone());
        assert_eq!(said, [json!(23), json!(false), json!(true)], "{sought}");
        assert_eq!(items(group).iter().map(|item| text(&item["id"])).collect::<Vec<_>>(), txids[..20], "{sought}");
        let list = text(&group["list"]);
        assert_eq!(listed(&world, &list).await, txids, "{sought}");
        let of_merchant = format!("{list}&merchant_id={}", other.id);
        assert_eq!(listed(&world, &of_merchant).await, of_other, "{sought}");
        let (span, none) = (format!("{list}&from={day}&to={day}"), format!("{list}&to=2001-01-01"));
        assert_eq!(listed(&world, &span).await, txids, "{sought}");
        assert!(listed(&world, &none).await.is_empty(), "{sought}");
        assert!(listed(&world, &format!("{list}&amount_to=8252")).await.is_empty(), "{sought}");
        assert!(listed(&world, &format!("{list}&payment_method=pix")).await.is_empty(), "{sought}");
        assert!(listed(&world, &format!("{list}&status=pending")).await.is_empty(), "{sought}");
        let sorted = world.ops_get(&format!("{list}&order=oldest&per_page=100")).await.expect(200);
        let oldest: Vec<_> = items(&sorted).iter().rev().map(|item| text(&item["id"])).collect();
        assert_eq!(oldest, txids, "{sought}");
        assert_eq!(world.ops_get(&format!("{list}&format=csv")).await.text.lines().count(), 24, "{sought}");
    }
    assert_eq!(listed(&world, &format!("/ops/lists/charges?q={begin}")).await, of_begin);
    for (list, nothing) in [("charges", "joao maria"), ("charges", "82,54"), ("cards", "joao"), ("refunds", "82,53")] {
        assert!(listed(&world, &format!("/ops/lists/{list}?q={}", nothing.replace(' ', "%20"))).await.is_empty());
    }
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let found = browser.page("/console/find?q=1111").await;
    found.has(&["Charges (23)", "href=\"/console/lists/charges?q=1111\""]);
    let list = browser.page("/console/lists/charges?q=1111").await;
    list.has(&["name=\"q\" value=\"1111\"", &txids[0], &txids[22]]);
    let scoped = browser.page(&format!("/console/find?q=1111&merchant_id={}", other.id)).await;
    scoped.has(&[&format!("/console/lists/charges?q=1111&amp;merchant_id={}", other.id)]);
    for wrong in ["charges?q=", "charges?q=%20", "charges?q=a&q=b"] {
        world.ops_get(&format!("/ops/lists/{wrong}")).await.refused(400, "validation_failed");
    }
}

/// The charges of a day are counted, however many Records there are since.
#[tokio::test]
async fn the_charges_of_a_day_are_counted() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let day = |world: &World| wire::timestamp::day_of(world.engine().now().0).to_string();
    // From noon in Sao Paulo, no Record of a day falls on the next one.
    let now = world.engine().now().0;
    world.advance((43_200 + 10_800 - now / 1_000).rem_euclid(86_400).max(1)).await;
    let first = day(&world);
    for _ in 0..3 {
        merchant.post("/api/pix", &pix("7.77")).await.expect(201);
    }
    world.advance(86_400).await;
    merchant.post("/api/pix", &pix("7.77")).await.expect(201);
    let second = day(&world);
    world.advance(86_400).await;
    world.fill(2_010).await;
    for (day, total) in [(first, 3), (second, 1), (day(&world), 0)] {
        let groups = found(&world, &day).await;
        let charges = groups.into_iter().find(|(kind, ..)| kind == "charges");
        assert_eq!(charges.map_or(0, |(_, _, total)| total), total, "{day}");
        assert_eq!(listed(&world, &format!("/ops/lists/charges?q={day}")).await.len() as u64, total, "{day}");
    }
}

/// Who registered anew is listed once, by what is registered now.
#[tokio::test]
async fn the_lists_of_owners_and_cashouts_have_what_a_search_finds() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana Prado", 1).await;
    let bia = merchant.recipient("Bia Prado", 2).await;
    for name in ["Ana Souza", "Ana Lima"] {
        let change = json!({"register_information": {"name": name}});
        merchant.patch(&format!("/api/sub-recipients/{ana}"), &change).await.expect(200);
    }
    merchant.paid_pix(&pix("100.00")).await;
    let cashout = json!({"amount": 4_321, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    let cashout = text(&merchant.post("/api/cashout", &cashout).await.expect(201)["id"]);
    for (list, expected) in [
        ("recipients?q=prado", vec![&bia]),
        ("recipients?q=souza", vec![]),
        ("recipients?q=lima", vec![&ana]),
        ("recipients?q=ana", vec![&ana]),
        ("recipients?q=ana&status=draft", vec![]),
        ("merchants?q=loja", vec![&merchant.id]),
        ("merchants?q=prado", vec![]),
        ("cashouts?q=ana.prado@example.com", vec![&cashout]),
        ("cashouts?q=43,21", vec![&cashout]),
        ("cashouts?q=43,22", vec![]),
    ] {
        let found = listed(&world, &format!("/ops/lists/{list}")).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{list}");
    }
}

/// The index is written again without the values of a month whose key was dropped, and finds none.
#[tokio::test]
async fn a_month_without_a_key_is_not_found() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let old = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    world.advance(40 * 86_400).await;
    let new = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    assert_eq!(ids(&world, "charges", "avila").await, [new.clone(), old.clone()]);
    let folder = world.stopped().await;
    {
        let store = SledStore::open_existing(folder.path(), &SledOptions::default()).unwrap();
        let months = store.commons().unwrap().into_iter().map(|(key, _)| key);
        let mut months: Vec<_> = months.filter(|key| key.starts_with(b"keys/month/")).collect();
        months.sort();
        months.pop();
        months.iter().for_each(|key| store.remove_common(key).unwrap());
    }
    let world = World::on(folder).await;
    for sought in ["avila", "12345678909", "joao@example.com"] {
        assert_eq!(ids(&world, "charges", sought).await, std::slice::from_ref(&new), "{sought}");
    }
    assert_eq!(ids(&world, "charges", "82,53").await, [new.clone(), old.clone()], "an amount is not personal");
}

#[tokio::test]
async fn the_list_of_all_charges_has_filters() {
    let world = World::sandbox().await;
    let one = world.merchant().await;
    let other = world.open(json!({"name": "Padaria", "document": cnpj(90)})).await;
    let recipient = one.recipient("Ana", 1).await;
    let split = with_splits(card(10_000, APPROVED), &[(&recipient, 3_000)]);
    let split = text(&one.post("/api/card", &split).await.expect(201)["txid"]);
    let refused = text(&one.post("/api/card", &card(500, REFUSED)).await.body["txid"]);
    let open = text(&other.post("/api/pix", &pix("20.00")).await.expect(201)["txid"]);
    let today = world.ops_get(&format!("/ops/charges/{open}")).await.expect(200)["created_at"].clone();
    world.advance(3 * 86_400).await;
    let later = text(&other.post("/api/pix", &pix("30.00")).await.expect(201)["txid"]);
    let now = text(&today);
    let (one, other) = (&one.id, &other.id);
    for (query, expected) in [
        ("status=CONCLUIDA".to_owned(), vec![&split]),
        ("status=RECUSADA".to_owned(), vec![&refused]),
        ("status=pending".to_owned(), vec![&later]),
        ("payment_method=pix".to_owned(), vec![&later, &open]),
        (format!("merchant_id={one}"), vec![&refused, &split]),
        (format!("merchant_id={other}&payment_method=credit_card"), vec![]),
        (format!("recipient_id={recipient}"), vec![&split]),
        (format!("recipient_id={recipient}&merchant_id={other}"), vec![]),
        ("amount_from=2000&amount_to=3000".to_owned(), vec![&later, &open]),
        ("amount_from=2001".to_owned(), vec![&later, &split]),
        ("amount_to=500".to_owned(), vec![&refused]),
        (format!("to={now}"), vec![&refused, &split]),
        (format!("from={now}"), vec![&later, &open]),
        (format!("from={0}&to={0}", day_of(&today)), vec![&open, &refused, &split]),
    ] {
        let (mut all, mut before) = (Vec::new(), String::new());
        loop {
            let page = world.ops_get(&format!("/ops/lists/charges?per_page=2&{query}{before}")).await.expect(200);
            all.extend(items(&page).iter().map(|charge| text(&charge["id"])));
            let Some(next) = page.get("next_before") else { break };
            before = format!("&before={}", next.as_u64().map_or_else(|| text(next), |next| next.to_string()));
        }
        assert_eq!(all.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    for wrong in ["status=x", "payment_method=x", "amount_from=x", "from=x", "to=2026-13-01", "flag=1", "amount_to=-1"]
    {
        world.ops_get(&format!("/ops/lists/charges?{wrong}")).await.refused(400, "validation_failed");
    }
    for unknown in ["merchant_id", "recipient_id"] {
        let path = format!("/ops/lists/charges?{unknown}=019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e");
        world.ops_get(&path).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn the_console_leads_to_one_hit_and_lists_several() {
    let world = World::sandbox().await;
    let merchant = world.open(json!({"name": "Padaria São João", "document": cnpj(90)})).await;
    let charge = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for sought in ["82,53", "joao%20avila", &charge[..31], "12345678909"] {
        let found = browser.get(&format!("/console/find?q={sought}")).await;
        assert_eq!(found.header("location"), format!("/console/charges/{charge}"), "{sought}");
    }
    let list = browser.page("/console/find?q=joao").await;
    list.has(&["Charges (1)", "Merchants (1)", "João Ávila", "Padaria São João", &charge, "R$82.53"]);
    assert!(!list.html.contains("12345678909"));
    let scoped = browser.get(&format!("/console/find?q=joao&merchant_id={}", merchant.id)).await;
    scoped.has(&["Padaria São João"]);
}

#[tokio::test]
async fn the_page_of_all_charges_has_filters_in_its_address() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = text(&merchant.post("/api/card", &card(8_253, APPROVED)).await.expect(201)["txid"]);
    for _ in 0..51 {
        merchant.post("/api/pix", &pix("7.77")).await.expect(201);
    }
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console/charges?status=&payment_method=credit_card&amount_from=82.53&amount_to=").await;
    page.has(&[&charge, "value=\"82.53\"", "<option value=\"credit_card\" selected"]);
    assert_eq!(page.html.matches("R$7.77").count(), 0);
    let older = browser.page("/console/charges?payment_method=pix&amount_to=7.77").await;
    older.has(&["payment_method=pix&amp;amount_to=7.77&amp;before="]);
    let file = browser.get("/console/charges?payment_method=credit_card&format=csv").await;
    assert!(file.html.contains(&charge) && file.html.lines().count() == 2, "{}", file.html);
    for wrong in ["amount_from=x", "status=x", "flag=1"] {
        assert_eq!(browser.get(&format!("/console/charges?{wrong}")).await.status, 400, "{wrong}");
    }
}

/// An amount or a day finds what is not a charge too; a flag of the queue narrows a list.
#[tokio::test]
async fn refunds_withdrawals_and_cashouts_are_found_by_amount_and_day() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = text(&merchant.paid_pix(&with_splits(pix("500.00"), &[(&ana, 1_952)])).await["txid"]);
    world.advance(60).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let refund = json!({"payment_id": txid, "amount": 3_000});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    let cashout = json!({"amount": 4_321, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    assert_eq!(ids(&world, "withdrawals", "19,52").await, [&*withdrawal]);
    assert_eq!(ids(&world, "refunds", "R$ 30,00").await, [&*refund]);
    assert!(ids(&world, "refunds", "30,01").await.is_empty());
    let today = wire::timestamp::day_of(world.engine().now().0).to_string();
    for kind in ["refunds", "withdrawals", "cashouts"] {
        assert_eq!(ids(&world, kind, &today).await.len(), 1, "{kind}");
    }
    assert_eq!(ids(&world, "cashouts", "43.21").await, ids(&world, "cashouts", &today).await);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let shown = browser.page(&format!("/console/find?q={today}")).await;
    shown.has(&[&format!("/console/merchants/{}", merchant.id)]);

    let bia = merchant.draft("Bia", 2).await;
    let listed = async |query: &str| {
        let list = world.ops_get(&format!("/ops/lists/{query}")).await.expect(200);
        items(&list).iter().map(|item| text(&item["id"])).collect::<Vec<_>>()
    };
    assert_eq!(listed("recipients?flag=shared_account").await, [bia], "Ana waits no more");
    assert!(listed("refunds?flag=disputed").await.is_empty());
    assert!(listed("charges?flag=disputed").await.is_empty());
    let dispute = json!({"amount": 1_000, "kind": "med", "reason": "Compra não reconhecida"});
    world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201);
    assert_eq!(listed("refunds?flag=disputed").await, [refund]);
    let disputed = ["", "&q=500,00", "&status=CONCLUIDA"];
    for more in disputed {
        assert_eq!(listed(&format!("charges?flag=disputed{more}")).await, [&*txid], "{more}");
    }
    for none in ["exceeds_charge", "disputed&status=pending", "disputed&q=500,01", "disputed&payment_method=debit_card"]
    {
        assert!(listed(&format!("charges?flag={none}")).await.is_empty(), "{none}");
    }
    for query in ["cashouts?flag=disputed", "charges?flag=x", "refunds?flag=x"] {
        world.ops_get(&format!("/ops/lists/{query}")).await.refused(400, "validation_failed");
    }
}
