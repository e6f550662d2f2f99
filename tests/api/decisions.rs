//! What an operator sees before a decision and after it: reasons, balances, flags, the item for
//! ever; registrations unmasked; approvals that take two operators.

use ledger::money::Centavos;
use serde_json::{Value, json};

use crate::console::Browser;
use crate::console_changes::send;
use crate::second_node;
use crate::world::*;

async fn details(world: &World, id: &str) -> Value {
    world.ops_get(&format!("/ops/queue/{id}")).await.expect(200)
}

async fn item(world: &World, id: &str) -> Value {
    let queue = world.ops_get("/ops/queue").await.expect(200);
    items(&queue).iter().find(|item| item["id"] == id).cloned().unwrap()
}

fn flags(item: &Value) -> Vec<String> {
    item["flags"].as_array().into_iter().flatten().map(text).collect()
}

async fn refund(merchant: &Merchant<'_>, txid: &str, amount: i64, reason: &str) -> String {
    let body = json!({"payment_id": txid, "amount": amount, "reason": reason});
    text(&merchant.post("/api/refunds", &body).await.expect(201)["id"])
}

/// The reason of the merchant, the charge and its other refunds, the balances after the decision;
/// and afterwards who decided, for ever.
#[tokio::test]
async fn a_refund_is_decided_with_its_reason_and_its_charge() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja Azul", "document": cnpj(1), "split_enabled": true, "cashout_enabled": false,
            "options": {"refund_commission": true}}))
        .await;
    let ana = merchant.recipient("Ana", 1).await;
    let txid = text(&merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 3_000)])).await["txid"]);
    let earlier = refund(&merchant, &txid, 500, "Frete").await;
    world.ops_post(&format!("/ops/refunds/{earlier}/approve"), &json!({})).await.expect(200);
    world.advance(60).await;
    let id = refund(&merchant, &txid, 2_000, "Produto com defeito").await;
    let waiting = item(&world, &id).await;
    assert_eq!((&waiting["reason"], &waiting["merchant_name"]), (&json!("Produto com defeito"), &json!("Loja Azul")));
    let shown = details(&world, &id).await;
    assert_eq!((&shown["kind"], &shown["item"]), (&json!("refund"), &waiting));
    assert_eq!((&shown["charge"]["txid"], &shown["charge"]["amount"]), (&json!(txid), &json!(10_000)));
    assert_eq!(shown["charge"]["splits"][0]["sub_recipient_id"], ana);
    let refunds: Vec<_> = shown["refunds"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    assert_eq!(refunds, [earlier, id.clone()]);
    assert_eq!(shown["decisions"], json!([]));

    let preview = world.ops_get(&format!("/ops/queue/{id}/preview")).await.expect(200);
    let own: Vec<_> =
        preview["balances"].as_array().unwrap().iter().filter(|row| row["owner"] == "Loja Azul").collect();
    let available = own.iter().find(|row| text(&row["account"]).ends_with("Platform:Available")).unwrap();
    assert_eq!(available["before"], merchant.balance().await[0]);
    let of_ana = &preview["balances"].as_array().unwrap().iter().find(|row| row["owner"] == "Ana").unwrap();
    assert_eq!((&of_ana["before"], &of_ana["after"]), (&json!(3_000), &json!(3_000)), "she keeps her split");
    for name in ["balances", "commission_returned"] {
        assert_eq!(shown[name], preview[name], "{name}");
    }
    assert_eq!((&waiting["name"], &waiting["document"]), (&json!("Maria das Dores"), &json!("***.456.789-**")));
    let before = merchant.balance().await;
    world.ops_post(&format!("/ops/refunds/{id}/approve"), &json!({})).await.expect(200);
    assert_eq!(available["after"], merchant.balance().await[0], "as it was shown");
    let commission = preview["commission_returned"].as_i64().unwrap();
    assert!(commission > 0 && merchant.balance().await[0] == before[0] - 2_000 + commission, "{preview}");

    let decided = details(&world, &id).await;
    assert!(decided["item"].is_null());
    let last = decided["decisions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["action"], &last["operator"]), (&json!("approve"), &json!("operator")));
    assert!(!last["entries"].as_array().unwrap().is_empty());
    let rejected = refund(&merchant, &txid, 100, "x").await;
    let notes = json!({"notes": "Sem comprovante\nda loja"});
    world.ops_post(&format!("/ops/refunds/{rejected}/reject"), &notes).await.expect(200);
    let world = world.restarted().await;
    let decided = details(&world, &rejected).await;
    assert_eq!(decided["decisions"][0]["notes"], notes["notes"], "it outlives the process");
    let audited = world.ops_get(&format!("/ops/audit?id={rejected}")).await.expect(200);
    assert_eq!(items(&audited)[0]["name"], "Maria das Dores");
    let object = &decided["object"];
    assert_eq!(
        (&object["amount"], &object["status"], &object["reason"]),
        (&json!(100), &json!("rejected"), &json!("x"))
    );
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let page = browser.page(&format!("/console/queue/{rejected}")).await;
    page.has(&["Reembolso · R$ 1,00", "Motivo do lojista</dt><dd><bdi>x", "Loja Azul", "Sem comprovante"]);
    for unknown in ["x", "01890000-0000-8000-8000-000000000000", &txid[..31]] {
        world.ops_get(&format!("/ops/queue/{unknown}")).await.refused(404, "not_found");
    }
    world.check_books().await;
}

/// A holder who is not the recipient, and what was rejected before; the registration unmasked is
/// for the right `reveal`, and each look is a row of the audit trail.
#[tokio::test]
async fn a_recipient_is_decided_with_its_registration() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let own = merchant.draft("Ana", 1).await;
    let foreign = with(&individual("Bia", &cpf(2)), "/bank_account/document_number", json!(cpf(3)));
    let foreign = text(&merchant.post("/api/sub-recipients", &foreign).await.expect(201)["id"]);
    let shared = ["shared_account", "shared_phone", "shared_address"];
    assert_eq!(flags(&item(&world, &own).await), shared);
    assert_eq!(flags(&item(&world, &foreign).await), [&["foreign_account"], &shared[..]].concat());
    // Both have the phone and the address of the example; the account is that of the holder's bank.
    let sharing: Vec<_> = details(&world, &foreign).await["sharing"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (text(&one["value"]), text(&one["recipient_id"]), text(&one["name"])))
        .collect();
    let expected = ["bank_account", "phone", "address"].map(|value| (value.to_owned(), own.clone(), "Ana".to_owned()));
    assert_eq!(sharing, expected);
    let path = |verb: &str| format!("/ops/sub-recipients/{own}/{verb}");
    world.ops_post(&path("reject"), &json!({"notes": "Foto ilegível"})).await.expect(200);
    let with_email = with(&individual("Ana", &cpf(1)), "/register_information/email", json!("ana@example.com"));
    merchant.post("/api/sub-recipients", &with_email).await.expect(200);
    let again = details(&world, &own).await;
    assert_eq!(flags(&again["item"]), [&["rejected_before"], &shared[..]].concat());
    assert_eq!(again["decisions"][0]["notes"], "Foto ilegível");
    // Who may not reveal it decides with the registration masked.
    let registration = &again["registration"]["register_information"];
    let masked = ["birthdate", "mother_name", "document_number"].map(|name| text(&registration[name]));
    assert_eq!(masked, ["**/**/2000", "A** P****", &format!("***.{}.{}-**", &cpf(1)[3..6], &cpf(1)[6..9])]);
    assert_eq!(registration["phone_numbers"], json!([{"ddd": "11", "number": "*****4321"}]));
    assert_eq!([&again["recipient"]["email"], &registration["email"]], ["a***@example.com"; 2]);
    assert_eq!([&registration["address"]["street"], &registration["address"]["zip_code"]], ["R** D******", "01002***"]);
    assert_eq!(again["registration"]["bank_account"]["conta"], "***89");
    let page = browser.page(&format!("/console/queue/{own}")).await;
    page.has(&["A** P****", "**/**/2000", "(11) *****4321", "R** D******"]);
    assert!(!page.html.contains("29/02/2000") && !page.html.contains("Rua Direita"));
    // Revealed, it stands beside the decision and what speaks against it.
    let whole = send(&browser, &page, &format!("/console/recipients/{own}/reveal"), &[]).await;
    whole.has(&["29/02/2000", "Rua Direita", "value=\"approve\"", "conta de outros cadastros"]);
    let reveal = format!("/ops/recipients/{own}/reveal");
    let before = world.ops_get("/ops/audit").await.expect(200)["total"].clone();
    world.second_ops_post(&reveal, &[], &json!({})).await.refused(403, "role_not_allowed");
    assert_eq!(world.ops_get("/ops/audit").await.expect(200)["total"], before);
    let shown = world.ops_post(&reveal, &json!({})).await.expect(200);
    assert_eq!(shown["register_information"]["document_number"], cpf(1));
    assert_eq!(shown["bank_account"]["document_number"], cpf(1));
    let audit = world.ops_get(&format!("/ops/audit?merchant_id={}", merchant.id)).await.expect(200);
    let row = &items(&audit)[0];
    let read = ["operator", "action", "kind", "id"].map(|name| row[name].clone());
    assert_eq!(read, [json!("operator"), json!("read"), json!("recipient"), json!(own)]);
    world.ops_post("/ops/recipients/x/reveal", &json!({})).await.refused(404, "not_found");
}

/// What speaks against a registration is in the queue and on the page of many decisions, also where
/// another merchant has it.
#[tokio::test]
async fn the_queue_says_what_other_registrations_share() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let own_account = |name: &str, number: u32, conta: &str| {
        let body = with(&individual(name, &cpf(number)), "/bank_account/conta", json!(conta));
        let phones = json!([{"ddd": "11", "number": format!("987{conta}")}]);
        with(&body, "/register_information/phone_numbers", phones)
    };
    let draft =
        async |of: &Merchant<'_>, body: Value| text(&of.post("/api/sub-recipients", &body).await.expect(201)["id"]);
    let at = |body: &Value, street: &str, number: &str| {
        let street = with(body, "/register_information/address/street", json!(street));
        with(&street, "/register_information/address/number", json!(number))
    };
    let own_account =
        |name: &str, number: u32, conta: &str| at(&own_account(name, number, conta), &format!("Rua {conta}"), "10");
    let ana = draft(&merchant, own_account("Ana", 1, "100001")).await;
    assert!(flags(&item(&world, &ana).await).is_empty());
    let again = draft(&other, own_account("Ana", 1, "100002")).await;
    assert_eq!(flags(&item(&world, &again).await), ["shared_document"]);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/reject"), &json!({"notes": "x"})).await.expect(200);
    assert_eq!(flags(&item(&world, &again).await), ["rejected_elsewhere", "shared_document"]);
    let bia = draft(&other, own_account("Bia", 2, "100001")).await;
    assert_eq!(flags(&item(&world, &bia).await), ["shared_account", "shared_phone", "shared_address"]);
    // With one postal code: the street and the number count, however the street is written.
    for (number, street, house, expected) in [
        (3, "Rua 100009", "10", vec![]),
        (4, "R. 100002", "10", vec!["shared_address"]),
        (5, "RUA de 100002", "11", vec![]),
    ] {
        let body = own_account("Eva", number, &format!("20000{number}"));
        let eva = draft(&merchant, at(&body, street, house)).await;
        assert_eq!(flags(&item(&world, &eva).await), expected, "{street} {house}");
        assert_eq!(details(&world, &eva).await.get("sharing").is_some(), !expected.is_empty(), "{street} {house}");
    }
    let queue = world.ops_get("/ops/queue?flag=rejected_elsewhere").await.expect(200);
    assert_eq!((items(&queue).len(), &items(&queue)[0]["id"]), (1, &json!(again)));
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let many = browser.page(&format!("/console/queue/many?decision=approve&id={again}&id={bia}")).await;
    many.has(&["outro cadastro do documento foi recusado", "conta de outros cadastros"]);
}

/// The review of a changed account waits since the change, and not since the registration.
#[tokio::test]
async fn a_changed_account_waits_in_the_place_of_its_change() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    world.advance(60).await;
    let bia = merchant.draft("Bia", 2).await;
    world.advance(60).await;
    merchant.patch(&format!("/api/sub-recipients/{ana}"), &json!({"bank_account": {"conta": "9"}})).await.expect(200);
    let queue = world.ops_get("/ops/queue").await.expect(200);
    assert_eq!(items(&queue).iter().map(|item| text(&item["id"])).collect::<Vec<_>>(), [bia, ana]);
    assert!(items(&queue).is_sorted_by_key(|item| time(&item["created_at"])), "{queue}");
    let world = world.restarted().await;
    assert_eq!(world.ops_get("/ops/queue").await.expect(200), queue, "it outlives the process");
}

/// Where the money of a withdrawal goes, since when that is the account, and what came before.
#[tokio::test]
async fn a_withdrawal_is_decided_with_the_history_of_its_account() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let ana = merchant.recipient("Ana", 1).await;
    let withdraw = async || {
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
        world.advance(60).await;
        text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"])
    };
    let change = async |conta: &str| {
        let body = json!({"bank_account": {"conta": conta, "conta_dv": null}});
        merchant.patch(&format!("/api/sub-recipients/{ana}"), &body).await.expect(200);
        world.ops_post(&format!("/ops/sub-recipients/{ana}/approve"), &json!({})).await.expect(200);
    };
    // Nothing was paid yet, and the account is not the first one: the plainest fraud.
    change("776").await;
    let unpaid = withdraw().await;
    assert_eq!(flags(&item(&world, &unpaid).await), ["first_to_account"]);
    world.approve(&unpaid).await.expect(200);
    let first = withdraw().await;
    let shown = details(&world, &first).await;
    assert!(flags(&shown["item"]).is_empty(), "{shown}");
    assert_eq!((&shown["item"]["name"], &shown["recipient"]["id"]), (&json!("Ana"), &json!(ana)));
    let since = time(&shown["account_since"]);
    world.approve(&first).await.expect(200);
    world.advance(3_600).await;
    change("777").await;
    let second = withdraw().await;
    let shown = details(&world, &second).await;
    assert_eq!(flags(&shown["item"]), ["first_to_account"]);
    assert!(time(&shown["account_since"]) >= since + chrono::Duration::hours(1));
    assert!(shown.get("account_until").is_none());
    assert_eq!(shown["item"]["bank_name"], "Itaú");
    let splits = shown["splits"].as_array().unwrap();
    assert_eq!((splits.len(), &splits[0]["amount_cents"]), (1, &json!(1_000)), "those of this withdrawal alone");
    browser.page(&format!("/console/queue/{second}")).await.has(&[
        "Itaú · 341",
        "Repasses neste saque",
        &text(&splits[0]["payment_id"]),
    ]);
    assert_eq!(shown["other_withdrawals"][0]["id"], first);
    change("778").await;
    let shown = details(&world, &second).await;
    assert_eq!(flags(&shown["item"]), ["account_replaced", "first_to_account"]);
    assert!(time(&shown["account_since"]) < time(&shown["account_until"]), "known also once it was replaced");
    world.approve(&second).await.expect(200);
    let decided = details(&world, &second).await;
    assert_eq!((&decided["kind"], &decided["decisions"][0]["operator"]), (&json!("withdrawal"), &json!("operator")));
}

/// Who took a withdrawal back, and when; what an entry was; and the page of a month.
#[tokio::test]
async fn a_decided_item_says_what_it_was() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    merchant.post(&format!("/api/dashboard/withdraw/{id}/cancel"), &json!({})).await.expect(200);
    let decided = details(&world, &id).await;
    let taken = &decided["decisions"][0];
    assert_eq!((&taken["action"], &taken["operator"]), (&json!("cancel"), &Value::Null), "{decided}");
    assert_eq!(taken["api_key_id"], merchant.key_id);
    assert_eq!((&decided["object"]["amount"], &decided["object"]["name"]), (&json!(1_000), &json!("Ana")));
    let page = browser.page(&format!("/console/queue/{id}")).await;
    page.has(&["Saque · R$ 10,00", "cancelar: <bdi>o lojista, por chave de API", "Recusado por</dt><dd>Lojista"]);
    let entry = json!({"debit": "Assets:Bank:Own", "credit": "Equity:Capital", "amount": 4_200, "reason": "Aporte",
        "reference": "TED-1"});
    let id = text(&world.ops_post("/ops/entries", &entry).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/reject"), &[], &json!({"notes": "x"})).await.expect(200);
    let page = browser.page(&format!("/console/queue/{id}")).await;
    page.has(&["R$ 42,00", "Equity:<wbr>Capital", "Aporte", "TED-1"]);
    browser.page("/console/queue/2020-01").await.has(&["2020"]);
}

/// Filters, the sum of what they leave, what expires first, and months that wait.
#[tokio::test]
async fn the_queue_is_filtered_summed_and_ordered() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    merchant.draft("Ana", 1).await;
    let small = refund(&merchant, &txid, 100, "x").await;
    world.advance(86 * 24 * 3_600).await;
    let other = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let (large, soon) = (refund(&merchant, &other, 5_000, "x").await, refund(&merchant, &txid, 200, "x").await);
    let ids = async |query: &str| {
        let queue = world.ops_get(&format!("/ops/queue?{query}")).await.expect(200);
        let ids: Vec<_> = items(&queue).iter().map(|item| text(&item["id"])).collect();
        (ids, queue["amount"].as_i64().unwrap())
    };
    assert_eq!(ids("kind=refund").await, (vec![small.clone(), large.clone(), soon.clone()], 5_300));
    assert_eq!(ids("kind=refund&order=deadline").await.0, [small.clone(), soon.clone(), large.clone()]);
    assert_eq!(flags(&item(&world, &soon).await), ["expires_soon"]);
    assert_eq!(ids("flag=expires_soon").await, (vec![small.clone(), soon.clone()], 300));
    assert_eq!(ids("flag=expires_soon&amount_from=101").await, (vec![soon.clone()], 200));
    assert_eq!(ids("flag=frozen").await, (vec![], 0));
    world.ops_get("/ops/queue?flag=x").await.refused(400, "validation_failed");
    assert_eq!(ids("amount_from=101&amount_to=4999").await, (vec![soon.clone()], 200));
    assert_eq!(ids("amount_from=0").await.0.len(), 3, "a recipient has no amount");
    let today = wire::timestamp::day_of(world.engine().now().0);
    assert_eq!(ids(&format!("kind=refund&from={today}")).await.0, [large, soon]);
    let before = today.pred_opt().unwrap();
    assert_eq!(ids(&format!("kind=refund&to={before}")).await.0, [small]);
    for (query, field) in [
        ("amount_from=x", "amount_from"),
        ("amount_from=-1", "amount_from"),
        ("amount_from=2&amount_to=1", "amount_to"),
        ("from=x", "from"),
        ("order=name", "order"),
        ("sort=age", "sort"),
    ] {
        let refused = world.ops_get(&format!("/ops/queue?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{query}");
    }
    let month = "2026-01";
    world.ops_post(&format!("/ops/periods/{month}/close"), &json!({})).await.expect(200);
    let queue = world.ops_get("/ops/queue?kind=period").await.expect(200);
    let waits = ["id", "status", "requested_by"].map(|name| items(&queue)[0][name].clone());
    assert_eq!(waits, [json!(month), json!("waiting_second"), json!("operator")]);
    let world = world.restarted().await;
    assert_eq!(world.ops_get("/ops/queue?kind=period").await.expect(200), queue);
    world.second_ops_post(&format!("/ops/periods/{month}/close"), &[], &json!({})).await.expect(200);
    assert_eq!(world.ops_get("/ops/queue?kind=period").await.expect(200)["total"], 0);
}

/// Above the limit the first approval moves nothing, and the same operator is not two.
#[tokio::test]
async fn much_money_takes_two_operators() {
    let world = World::with_settings(|settings| settings.second_operator_above = Some(Centavos(1_000))).await;
    let merchant = world.merchant().await;
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.language = "pt-BR";
    let ana = merchant.recipient("Ana", 1).await;
    let txid = text(&merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_001)])).await["txid"]);
    let small = refund(&merchant, &txid, 1_000, "x").await;
    world.ops_post(&format!("/ops/refunds/{small}/approve"), &json!({})).await.expect(200);
    let large = refund(&merchant, &txid, 1_001, "x").await;
    world.advance(60).await;
    let withdrawal = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    for (path, id) in [("refunds", &large), ("withdrawals", &withdrawal)] {
        let before = (merchant.balance().await, merchant.recipient_money(&ana).await);
        assert_eq!(item(&world, id).await["second_operator_needed"], true, "said before the click");
        browser.page(&format!("/console/queue/{id}")).await.has(&["outro operador precisa aprovar também"]);
        let approve = format!("/ops/{path}/{id}/approve");
        let headers = [("idempotency-key", &**id)];
        let first = world.ops_send(reqwest::Method::POST, &approve, &headers, "{}".to_owned()).await.expect(202);
        assert_eq!(first["status"], "pending", "{first}");
        assert_eq!((merchant.balance().await, merchant.recipient_money(&ana).await), before);
        let waiting = item(&world, id).await;
        assert_eq!((&waiting["status"], &waiting["requested_by"]), (&json!("waiting_second"), &json!("operator")));
        assert!(waiting.get("second_operator_needed").is_none(), "one is enough from here on");
        world.ops_post(&approve, &json!({})).await.refused(409, "second_operator_needed");
        world.ops_send(reqwest::Method::POST, &approve, &headers, "{}".to_owned()).await.expect(202);
        world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
        browser.page(&format!("/console/queue/{id}")).await.has(&["aprovar (primeiro de dois): "]);
        let actions: Vec<_> = details(&world, id).await["decisions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|taken| (text(&taken["action"]), text(&taken["operator"])))
            .collect();
        let pairs = [("request", "operator"), ("approve", "second")];
        assert_eq!(actions, pairs.map(|(action, operator)| (action.to_owned(), operator.to_owned())), "{path}");
        world.second_ops_post(&approve, &[], &json!({})).await.refused(409, "already_decided");
    }
    // One is enough to refuse.
    let refused = refund(&merchant, &txid, 1_002, "x").await;
    world.ops_post(&format!("/ops/refunds/{refused}/approve"), &json!({})).await.expect(202);
    world.ops_post(&format!("/ops/refunds/{refused}/reject"), &json!({"notes": "x"})).await.expect(200);
    world.check_books().await;
}

/// It enters the queue like a merchant's, and whoever starts it is the first of two above the
/// limit.
#[tokio::test]
async fn an_operator_starts_a_refund() {
    let world = World::with_settings(|settings| settings.second_operator_above = Some(Centavos(5_000))).await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let path = format!("/ops/charges/{txid}/refunds");
    let start = async |body: Value| world.ops_post(&path, &body).await;
    let small = start(json!({"amount": 3_000, "reason": "Pagou duas vezes"})).await.expect(201);
    let shown = merchant.get(&format!("/api/refunds/{}", text(&small["id"]))).await.expect(200);
    assert_eq!((&shown["amount"], &shown["status"]), (&json!(3_000), &json!("pending")));
    let waiting = item(&world, &text(&small["id"])).await;
    let said = (&waiting["kind"], &waiting["status"], &waiting["reason"]);
    assert_eq!(said, (&json!("refund"), &json!("pending"), &json!("Pagou duas vezes")), "{waiting}");
    let audit = world.ops_get(&format!("/ops/audit?id={}", text(&small["id"]))).await.expect(200);
    let row = &items(&audit)[0];
    let said = ["action", "kind", "operator", "notes"].map(|name| text(&row[name]));
    assert_eq!(said, ["request", "refund", "operator", "Pagou duas vezes"]);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&small["id"])), &json!({})).await.expect(200);

    // Without an amount it is all the rest, and needs another operator.
    let rest = start(json!({"reason": "Golpe"})).await.expect(201);
    assert_eq!(rest["amount"], 7_000);
    let id = text(&rest["id"]);
    let waiting = item(&world, &id).await;
    assert_eq!((&waiting["status"], &waiting["requested_by"]), (&json!("waiting_second"), &json!("operator")));
    let approve = format!("/ops/refunds/{id}/approve");
    world.ops_post(&approve, &json!({})).await.refused(409, "second_operator_needed");
    start(json!({"reason": "Golpe"})).await.refused(409, "refund_exceeds_available");
    world.second_ops_post(&approve, &[], &json!({})).await.expect(200);
    start(json!({"reason": "Golpe"})).await.refused(422, "charge_not_refundable");
    for (body, field) in [
        (json!({}), "reason"),
        (json!({"reason": ""}), "reason"),
        (json!({"reason": "x", "amount": 0}), "amount"),
        (json!({"reason": "x", "splits": []}), "splits"),
    ] {
        let refused = start(body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    let unpaid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let body = json!({"reason": "x"});
    world.ops_post(&format!("/ops/charges/{unpaid}/refunds"), &body).await.refused(422, "charge_not_refundable");
    world.ops_post("/ops/charges/x/refunds", &body).await.refused(404, "charge_not_found");
    world.check_books().await;
}

/// The sum of an account over all ledgers is a metric, for an alert rule.
#[tokio::test]
async fn sums_of_accounts_are_metrics() {
    let world = World::sandbox().await;
    let body = json!({"debit": "Assets:Bank:Pix", "credit": "Liabilities:Suspense", "amount": 700,
        "reason": "Depósito", "reference": "EXTRATO-1"});
    let id = text(&world.ops_post("/ops/entries", &body).await.expect(201)["id"]);
    world.second_ops_post(&format!("/ops/entries/{id}/approve"), &[], &json!({})).await.expect(200);
    let metrics = world.ops_get("/metrics").await.text;
    let mut sums = metrics.lines().filter(|line| line.starts_with("centavo_balance_centavos"));
    // A node has no sums over all ledgers, and nobody without a credential sees those of banks.
    let expected = r#"centavo_balance_centavos{account="Liabilities:Suspense"} -700"#;
    assert!(second_node::are_nodes() || sums.clone().any(|line| line == expected), "{metrics}");
    assert!(sums.all(|line| [":Suspense\"}", ":Deficit\"}"].iter().any(|end| line.contains(end))), "{metrics}");
}

/// A charge with many splits has many balances: the first 100 are shown, and the others counted.
#[tokio::test]
async fn balances_of_a_decision_are_a_hundred_at_most() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut splits = Vec::new();
    for number in 1..=101 {
        splits.push((merchant.recipient("Ana", number).await, 10));
    }
    let splits: Vec<_> = splits.iter().map(|(id, amount)| (id.as_str(), *amount)).collect();
    let txid = text(&merchant.paid_pix(&with_splits(pix("100.00"), &splits)).await["txid"]);
    let id = refund(&merchant, &txid, 2_000, "x").await;
    let shown = details(&world, &id).await;
    let preview = world.ops_get(&format!("/ops/queue/{id}/preview")).await.expect(200);
    let left_out = shown["balances_left_out"].as_u64().unwrap();
    assert_eq!((shown["balances"].as_array().unwrap().len(), &preview["balances_left_out"]), (100, &json!(left_out)));
    assert!(left_out >= 2, "101 recipients and the merchant: {left_out}");
    let page = Browser::signed_in(&world, OPS_TOKEN).await.page(&format!("/console/queue/{id}")).await;
    page.has(&[&format!("+ {left_out}</p>")]);
}
