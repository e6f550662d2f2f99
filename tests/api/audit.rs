//! The audit trail: every Record that an operator asked for, every change of where money goes, and
//! nothing else.

use centavo::settings::secrets::SecretSource;
use reqwest::Method;
use serde_json::{Value, json};
use store::Sequence;
use store::cut::Position;

use crate::console::{ANA, Browser, EVA, world_of_three};
use crate::makers::store_card;
use crate::world::*;

/// The rows without what changes from run to run, newest first.
fn shown(list: &Value) -> Vec<Value> {
    let rows = items(list).iter().map(|row| {
        time(&row["at"]);
        assert!(place_in(row).sequence >= Sequence::FIRST, "{row}");
        without(&without(&without(row, "/at"), "/sequence"), "/partition")
    });
    rows.collect()
}

#[tokio::test]
async fn what_operators_do_is_listed_newest_first() {
    let world = World::with_settings(|settings| {
        settings.ops_token =
            SecretSource::Text(format!("ana:{OPS_TOKEN},rui:token-of-operator-rui-with-32-characters").into());
        settings.ops_roles = "ana=admin,rui=admin".parse().unwrap();
    })
    .await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (first, second) = (merchant.draft("Ana", 1).await, merchant.draft("Bia", 2).await);
    let body = json!({"city": "Recife"});
    world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &body).await.expect(200);
    world.ops_post(&format!("/ops/sub-recipients/{first}/approve"), &json!({})).await.expect(200);
    let rui = bearer("token-of-operator-rui-with-32-characters");
    let by_rui = async |method: Method, path: &str, body: &Value| {
        let headers = [("authorization", rui.as_str()), ("content-type", "application/json")];
        world.send(method, path, &headers, body.to_string()).await
    };
    let notes = json!({"notes": "Documento ilegível"});
    by_rui(Method::POST, &format!("/ops/sub-recipients/{second}/reject"), &notes).await.expect(200);
    by_rui(Method::DELETE, &format!("/ops/api-keys/{}", other.key_id), &json!({})).await.expect(200);
    by_rui(Method::POST, "/ops/sandbox/clock", &json!({"advance_seconds": 60})).await.expect(200);
    // What was refused, changed nothing, was only read, or was asked for by a merchant is not
    // there, but for another bank account.
    by_rui(Method::DELETE, &format!("/ops/api-keys/{}", other.key_id), &json!({})).await.expect(200);
    world.ops_post(&format!("/ops/sub-recipients/{first}/approve"), &json!({})).await.refused(409, "already_decided");
    world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await.expect(200);
    merchant.patch(&format!("/api/sub-recipients/{first}"), &json!({"bank_account": {"conta": "1"}})).await.expect(200);
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);

    let row = |operator: &str, action: &str, kind: &str, id: &str, merchant: &Names| {
        let name = [(&first, "Ana"), (&second, "Bia")].into_iter().find(|(own, _)| *own == id);
        let name = name.map_or("Loja Azul", |(_, name)| name);
        json!({"operator": operator, "action": action, "kind": kind, "id": id, "name": name, "merchant_id": merchant.id})
    };
    let clock = json!({"operator": "rui", "action": "advance", "kind": "clock", "id": null, "merchant_id": null});
    let changes = items(&world.ops_get("/ops/audit").await.expect(200))[0]["changes"].clone();
    assert_eq!((&changes[0]["field"], changes.as_array().unwrap().len()), (&json!("bank_account"), 1));
    assert_eq!((&changes[0]["old"]["conta"], &changes[0]["new"]["conta"]), (&json!("***89"), &json!("*")));
    let account = json!({"changes": changes, "operator": null, "api_key_id": merchant.key_id, "action": "change", "kind": "bank_account", "id": first, "name": "Ana", "merchant_id": merchant.id});
    // A draft is sent for analysis meanwhile.
    let list = world.ops_get("/ops/audit").await.expect(200);
    let [of_second, of_first] = [3, 4].map(|place| items(&list)[place]["changes"][0]["old"].clone());
    assert!([&of_second, &of_first].iter().all(|old| **old == "draft" || **old == "pending"), "{list}");
    let expected = [
        account,
        clock,
        row("rui", "revoke", "api_key", &other.key_id, &other),
        with(
            &with(&row("rui", "reject", "recipient", &second, &merchant), "/notes", notes["notes"].clone()),
            "/changes",
            json!([{"field": "status", "old": of_second, "new": "rejected"}]),
        ),
        with(
            &row("ana", "approve", "recipient", &first, &merchant),
            "/changes",
            json!([{"field": "status", "old": of_first, "new": "active"}]),
        ),
        with(
            &row("ana", "change", "merchant", &merchant.id, &merchant),
            "/changes",
            json!([{"field": "city", "old": null, "new": null}]),
        ),
        row("ana", "create", "api_key", &other.key_id, &other),
        row("ana", "create", "merchant", &other.id, &other),
        row("ana", "create", "api_key", &merchant.key_id, &merchant),
        row("ana", "create", "merchant", &merchant.id, &merchant),
    ];
    has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
    assert_eq!(shown(&list), expected);
    assert_eq!([&list["total"], &list["per_page"]], [10, 20]);
    let places: Vec<_> = items(&list).iter().map(|row| (place_in(row), text(&row["at"]))).collect();
    let is_newer = |(newer, at): &(Position, String), (older, before): &(Position, String)| {
        if newer.partition == older.partition { newer > older } else { at >= before }
    };
    assert!(places.is_sorted_by(is_newer), "{places:?}");
    for (query, range) in
        [("per_page=4", 0..4), ("per_page=4&page=2", 4..8), ("per_page=4&page=3", 8..10), ("page=2", 10..10)]
    {
        let page = world.ops_get(&format!("/ops/audit?{query}")).await.expect(200);
        assert_eq!((shown(&page).as_slice(), &page["total"]), (&expected[range], &json!(10)), "{query}");
    }
    for names in [&*merchant, &*other] {
        let page = world.ops_get(&format!("/ops/audit?merchant_id={}", names.id)).await.expect(200);
        let of_merchant: Vec<_> = expected.iter().filter(|row| row["merchant_id"] == names.id).cloned().collect();
        assert_eq!((shown(&page), &page["total"]), (of_merchant.clone(), &json!(of_merchant.len())));
    }
    for unknown in ["x", "01890000-0000-8000-8000-000000000000", first.as_str()] {
        world.ops_get(&format!("/ops/audit?merchant_id={unknown}")).await.refused(404, "not_found");
    }
    let world = world.restarted().await;
    assert_eq!(world.ops_get("/ops/audit").await.expect(200), list, "it outlives the process");
}

#[tokio::test]
async fn who_plays_a_payer_in_a_sandbox_is_named() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = merchant.post("/api/pix", &pix("10.00")).await.expect(201);
    world.ops_post(&format!("/ops/sandbox/pix/{}/pay", text(&charge["txid"])), &json!({})).await.expect(200);
    let audit = world.ops_get("/ops/audit?per_page=100").await.expect(200);
    let rows: std::collections::BTreeSet<_> =
        items(&audit).iter().map(|row| (text(&row["action"]), text(&row["kind"]))).collect();
    let expected = [("create", "api_key"), ("create", "merchant"), ("pay", "charge")];
    assert_eq!(rows, expected.map(|(action, kind)| (action.to_owned(), kind.to_owned())).into());
}

/// Entries are audited with amount and accounts, deleted cards with brand and last four digits.
#[tokio::test]
async fn the_audit_says_what_an_entry_moves_and_which_card_was_deleted() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let (debit, credit) = ("Assets:Bank:Pix", "Liabilities:Suspense");
    let body = json!({"debit": debit, "credit": credit, "amount": 12_345, "reason": "Depósito", "reference": "E-1"});
    let entry = text(&world.ops_post("/ops/entries", &body).await.expect(201)["id"]);
    let notes = json!({"notes": "Valor errado"});
    world.ops_post(&format!("/ops/entries/{entry}/reject"), &notes).await.expect(200);
    let card = store_card(&merchant).await;
    world.ops_send(Method::DELETE, &format!("/ops/cards/{card}"), &[], String::new()).await.expect(200);
    let rows = world.ops_get("/ops/audit?kind=entry").await.expect(200);
    assert_eq!(items(&rows).len(), 2, "asked for and rejected");
    for row in items(&rows) {
        let said = ["id", "amount", "debit", "credit"].map(|name| row[name].clone());
        assert_eq!(said, [json!(entry), json!(12_345), json!(debit), json!(credit)]);
    }
    let rows = world.ops_get("/ops/audit?kind=card").await.expect(200);
    let row = &items(&rows)[0];
    assert_eq!((&row["action"], &row["id"], &row["name"]), (&json!("delete"), &json!(card), &json!("João Ávila")));
    assert_eq!((&row["card"]["brand"], &row["card"]["last4"]), (&json!("visa"), &json!("1111")));
    let csv = world.ops_get("/ops/audit?format=csv").await.text;
    assert!(csv.contains(&format!(",12345,{debit},{credit},,")) && csv.contains(",visa 1111,"), "{csv}");
    let page = Browser::signed_in(&world, ANA).await.page("/console/audit").await;
    page.has(&["R$123.45", "Suspense", "••••1111"]);
}

/// Each filter alone and all together, the same rows in a file, and what is refused.
#[tokio::test]
async fn the_audit_is_searched_by_person_action_object_and_span() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (first, second) = (merchant.draft("Ana", 1).await, merchant.draft("Bia", 2).await);
    world.ops_post(&format!("/ops/sub-recipients/{first}/approve"), &json!({})).await.expect(200);
    world.advance(86_400).await;
    let notes = json!({"notes": "Documento; ilegível"});
    world.second_ops_post(&format!("/ops/sub-recipients/{second}/reject"), &[], &notes).await.expect(200);
    for address in [json!("http://127.0.0.1:9/a"), json!("http://127.0.0.1:9/b"), Value::Null] {
        let body = json!({"webhook_url": address});
        world.ops_patch(&format!("/ops/api-keys/{}", merchant.key_id), &body).await.expect(200);
    }
    let all = world.ops_get("/ops/audit?per_page=100").await.expect(200);
    let (all, today) = (items(&all).clone(), day_of(&items(&all)[0]["at"]));
    let changed: Vec<_> = all[..3].iter().map(|row| [&row["changes"][0]["old"], &row["changes"][0]["new"]]).collect();
    let (a, b) = (json!("http://127.0.0.1:9/a"), json!("http://127.0.0.1:9/b"));
    assert_eq!(changed, [[&b, &Value::Null], [&a, &b], [&Value::Null, &a]], "the address before is said too");

    type Meets = fn(&Value, &str, &str) -> bool;
    let filters: [(String, Meets); 7] = [
        ("operator=second".to_owned(), |row, _, _| row["operator"] == "second"),
        ("action=approve".to_owned(), |row, _, _| row["action"] == "approve"),
        ("kind=api_key".to_owned(), |row, _, _| row["kind"] == "api_key"),
        (format!("id={first}"), |row, first, _| row["id"] == first),
        (format!("from={today}"), |row, _, today| day_of(&row["at"]).as_str() >= today),
        (format!("to={}", text(&all[4]["at"])), |row, _, _| row["kind"] != "api_key" || row["action"] == "create"),
        (format!("merchant_id={}", merchant.id), |row, _, _| !row["merchant_id"].is_null()),
    ];
    for (query, meets) in &filters {
        let expected: Vec<_> = all.iter().filter(|row| meets(row, &first, &today)).collect();
        let list = world.ops_get(&format!("/ops/audit?{query}&per_page=100")).await.expect(200);
        if !query.starts_with("to=") {
            assert_eq!(items(&list).iter().collect::<Vec<_>>(), expected, "{query}");
            assert_eq!(list["total"], expected.len(), "{query}");
        }
        assert!(!items(&list).is_empty() && items(&list).iter().all(|row| meets(row, &first, &today)), "{query}");
    }
    let two = "operator=operator&kind=api_key&action=change";
    let second_page = world.ops_get(&format!("/ops/audit?{two}&per_page=2&page=2")).await.expect(200);
    assert_eq!((items(&second_page), &second_page["total"]), (&vec![all[2].clone()], &json!(3)));

    let csv = world.ops_get("/ops/audit?action=reject&format=csv").await;
    assert!(csv.header("content-disposition").unwrap().contains("audit.csv"));
    let lines: Vec<_> = csv.text.lines().collect();
    assert!(lines[0].starts_with("at,operator,api_key_id,action,kind,name,id,merchant_id,merchant,notes,changes,"));
    assert_eq!(lines.len(), 2, "{}", csv.text);
    let number = lines[1].rsplit(',').next().unwrap();
    assert!(number.parse::<u64>().is_ok(), "places are numbers, not guarded texts: {number}");
    assert!(
        lines[1].contains(&format!(",second,,reject,recipient,Bia,{second},{},Loja Azul,Documento; ", merchant.id))
    );
    let brazilian = world.ops_get("/ops/audit?action=reject&format=csv-ptbr").await;
    assert!(
        brazilian.text.starts_with("\u{feff}Quando;Operador;") && brazilian.text.contains(";\"Documento; ilegível\";")
    );
    let said = format!(";recusar;recebedor;Bia;{second};");
    assert!(brazilian.text.contains(&said) && brazilian.text.contains(" → recusado;"), "{}", brazilian.text);

    for (query, code) in [
        ("action=x", "unknown"),
        ("kind=x", "unknown"),
        ("id=x", "invalid"),
        ("from=x", "invalid_time"),
        ("format=x", "unknown"),
        ("who=x", "unknown_parameter"),
        ("operator=a&operator=b", "ambiguous"),
    ] {
        let refused = world.ops_get(&format!("/ops/audit?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["code"], code, "{query}: {refused}");
    }
}

/// Notes are written on whatever is a merchant's, shown newest first, and audited; a merchant sees
/// none.
#[tokio::test]
async fn notes_are_written_on_anything_of_a_merchant() {
    let world = world_of_three().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let recipient = merchant.draft("Ana", 1).await;
    let txid = text(&merchant.paid_pix(&pix("80.00")).await["txid"]);
    let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 100})).await.expect(201);
    let objects = [
        txid.clone(),
        text(&refund["id"]),
        recipient.clone(),
        merchant.id.clone(),
        merchant.key_id.clone(),
        store_card(&merchant).await,
    ];
    for id in &objects {
        let path = format!("/ops/notes/{id}");
        assert_eq!(world.ops_get(&path).await.expect(200), json!({"items": [], "total": 0}), "{path}");
        for said in ["Ligou", "Confirmou\na entrega"] {
            let written = world.ops_post(&path, &json!({"text": said})).await.expect(201);
            has_exactly(&written, &["object", "text", "operator", "at"]);
            assert_eq!((&written["text"], &written["operator"]), (&json!(said), &json!("operator")));
        }
        let listed = world.ops_get(&path).await.expect(200);
        let texts: Vec<_> = items(&listed).iter().map(|note| text(&note["text"])).collect();
        assert_eq!((texts, &listed["total"]), (vec!["Confirmou\na entrega".to_owned(), "Ligou".to_owned()], &json!(2)));
        let audited = world.ops_get(&format!("/ops/audit?kind=note&merchant_id={}", merchant.id)).await.expect(200);
        let row = &items(&audited)[0];
        assert_eq!(
            (&row["action"], &row["notes"], &row["operator"]),
            (&json!("create"), &json!("Confirmou\na entrega"), &json!("operator"))
        );
    }
    let months = "/ops/notes/2026-11";
    assert_eq!(world.ops_get(months).await.expect(200)["total"], 0);
    let headers = [("idempotency-key", "note-of-month"), ("content-type", "application/json")];
    for _ in 0..2 {
        let body = json!({"text": "Falta o extrato"}).to_string();
        let written = world.ops_send(Method::POST, months, &headers, body).await.expect(201);
        assert_eq!((&written["object"], &written["text"]), (&json!("2026-11"), &json!("Falta o extrato")));
    }
    assert_eq!(world.ops_get(months).await.expect(200)["total"], 1, "the same request is one note");
    assert_eq!(world.ops_get("/ops/notes/2026-10").await.expect(200)["total"], 0);
    let row = items(&world.ops_get("/ops/audit?kind=note").await.expect(200))[0].clone();
    assert_eq!(
        (&row["notes"], &row["id"], &row["merchant_id"]),
        (&json!("2026-11: Falta o extrato"), &Value::Null, &Value::Null)
    );
    let charge = format!("/ops/notes/{txid}");
    world.ops_post(&charge, &json!({"text": "x".repeat(1_001)})).await.refused(400, "validation_failed");
    world.ops_post(&charge, &json!({"text": ""})).await.refused(400, "validation_failed");
    world.ops_post("/ops/notes/x", &json!({"text": "x"})).await.refused(404, "not_found");
    let nothing = format!("/ops/notes/{}", recipient.replace(|digit: char| digit.is_ascii_digit(), "0"));
    world.ops_post(&nothing, &json!({"text": "x"})).await.refused(404, "not_found");
    world.ops_get(&format!("{charge}?x=1")).await.refused(400, "validation_failed");

    let browser = Browser::signed_in(&world, ANA).await;
    for (kind, id) in ["charges", "queue", "recipients", "merchants"].iter().zip(&objects) {
        let page = format!("/console/{kind}/{id}");
        browser.page(&page).await.has(&["Ligou", "/console/notes/"]);
        let sent = browser.post(&format!("/console/notes/{id}"), &[("text", "Da página"), ("page", &page)]).await;
        assert_eq!((sent.status, sent.header("location")), (303, page.as_str()));
        browser.page(&page).await.has(&["Da página", "<bdi>ana</bdi>"]);
    }
    let page = "/console/periods/2026-11";
    browser.page(page).await.has(&["Falta o extrato", "/console/notes/2026-11"]);
    let sent = browser.post("/console/notes/2026-11", &[("text", "Chegou"), ("page", page)]).await;
    assert_eq!((sent.status, sent.header("location")), (303, page));
    browser.page(page).await.has(&["Chegou", "<bdi>ana</bdi>"]);
    let reader = Browser::signed_in(&world, EVA).await;
    let page = reader.page(&format!("/console/charges/{txid}")).await;
    page.has(&["Ligou"]);
    assert!(!page.html.contains("/console/notes/"), "a reader has no form");
    assert_eq!(reader.post(&format!("/console/notes/{txid}"), &[("text", "x")]).await.status, 403);
    assert_eq!(
        browser.post(&format!("/console/notes/{txid}?merchant_id={}", other.id), &[("text", "x")]).await.status,
        404
    );
    world.check_books().await;
}

/// Old and new values stand in the Record, on its page and on that of the audit trail: by their
/// labels, and with the decimal sign of the reader's language.
#[tokio::test]
async fn a_record_says_what_it_changed() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let before = world.ops_get(&format!("/ops/merchants/{}", merchant.id)).await.expect(200);
    let rate = text(&before["fees"]["mdr_1x"]);
    let body = json!({"fees": {"mdr_1x": "3.1"}, "cashout_enabled": false});
    world.ops_patch(&format!("/ops/merchants/{}", merchant.id), &body).await.expect(200);
    let account = json!({"bank_account": {"bank_code": "237", "conta": "123456"}});
    merchant.patch(&format!("/api/sub-recipients/{ana}"), &account).await.expect(200);
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let [of_account, of_fees] = [0, 1].map(|place| items(&audit)[place].clone());
    let path = format!("/ops/merchants/{}", merchant.id);
    // What holds already is no change.
    let same = json!({"name": "Loja Azul", "city": null, "storefront": null, "fees": {"mdr_1x": "3.1", "pix": null}});
    for nothing in [json!({}), json!({"name": null, "fees": null}), same] {
        let answer = world.ops_patch(&path, &nothing).await;
        assert_eq!((answer.status, answer.header("centavo-sequence")), (200, None), "{nothing}");
    }
    let changed = async |body: Value| {
        world.ops_patch(&path, &body).await.expect(200);
        items(&world.ops_get("/ops/audit").await.expect(200))[0]["changes"].clone()
    };
    let hidden = |field: &str| json!({"field": field, "old": null, "new": null});
    assert_eq!(changed(json!({"storefront": {"mcc": "5411"}})).await, json!([hidden("storefront")]));
    let moved = json!({"name": "Loja Azul", "city": "Recife", "cashout_enabled": true});
    let enabled = json!({"field": "cashout_enabled", "old": false, "new": true});
    assert_eq!(changed(moved).await, json!([enabled, hidden("city")]));
    for row in [&of_account, &of_fees] {
        let path = format!("/ops/records/{}?partition={}", row["sequence"], row["partition"]);
        assert_eq!(world.ops_get(&path).await.expect(200)["changes"], row["changes"], "{path}");
    }
    let [old, new] = [&rate, "3.1"].map(|rate| rate.replace('.', ","));
    let fees = format!("Taxa à vista (MDR): <bdi>{old} %</bdi> → <bdi>{new} %</bdi>");
    let mut browser = Browser::signed_in(&world, ANA).await;
    browser.language = "pt-BR";
    let record = page_of(place_in(&of_fees));
    for path in ["/console/audit".to_owned(), record.clone()] {
        browser.page(&path).await.has(&[&fees, "Cashouts: <bdi>sim</bdi> → <bdi>não</bdi>"]);
    }
    let path = page_of(place_in(&of_account));
    browser.page(&path).await.has(&["Conta bancária: <bdi>341 · 1234 · ***89", "→ <bdi>237 · 1234 · ***456"]);
    browser.language = "en";
    browser.page(&record).await.has(&[&format!("MDR 1×: <bdi>{rate} %</bdi> → <bdi>3.1 %</bdi>")]);
}
