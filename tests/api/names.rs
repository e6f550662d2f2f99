//! Names of fields and parameters, and the forms of a body and of an id that mean the same: a
//! misspelt name moves no money, and what strangers' libraries send is read as it is meant.

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

const IGNORED: &str = "centavo-ignored-fields";

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// The codes of the wrong fields of an answer, and their messages.
fn wrong_fields(answer: Answer) -> Vec<(String, String, String)> {
    let body = answer.refused(400, "validation_failed");
    let errors = body["errors"].as_array().unwrap().iter();
    errors.map(|error| (text(&error["field"]), text(&error["code"]), text(&error["message"]))).collect()
}

#[tokio::test]
async fn a_misspelt_field_moves_no_money() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("90.00"), &[(&recipient, 4_000)])).await;
    let parts = json!([{"sub_recipient_id": recipient, "amount": 4_000}]);
    let withdraw = format!("/api/dashboard/sub-recipients/{recipient}/withdraw");
    let before = world.trace(&[&merchant]).await;
    for (path, body, field, right) in [
        ("/api/card", with(card(10_000, APPROVED), "split", parts.clone()), "split", "splits"),
        ("/api/card", with(card(10_000, APPROVED), "split_rules", parts.clone()), "split_rules", "splits"),
        ("/api/card", with(card(10_000, APPROVED), "Splits", parts.clone()), "Splits", "splits"),
        ("/api/card", with(card(10_000, APPROVED), "installment", json!(3)), "installment", "installments"),
        ("/api/pix", with(pix("90.00"), "spilts", parts.clone()), "spilts", "splits"),
        ("/api/pix", with(pix("90.00"), "amount", json!(100)), "amount", "valor"),
        ("/api/card", with(card(10_000, APPROVED), "order_id", json!("1042")), "order_id", "reference"),
        ("/api/pix", with(pix("90.00"), "metdata", json!({"loja": "azul"})), "metdata", "metadata"),
        ("/api/pix", with(pix("90.00"), "referencia", json!("1042")), "referencia", "reference"),
        ("/api/card", with(card(10_000, APPROVED), "capture", json!(false)), "capture", "capturada"),
        ("/api/card", with(card(10_000, APPROVED), "currency", json!("USD")), "currency", "BRL"),
        ("/api/pix", with(pix("90.00"), "confirm", json!(false)), "confirm", "na hora"),
        ("/api/refunds", json!({"payment_id": "x", "amount": 1, "value": 2}), "value", "amount"),
        (&*withdraw, json!({"amount": 100}), "amount", ""),
    ] {
        let wrong = wrong_fields(merchant.post(path, &body).await);
        assert_eq!((&*wrong[0].0, &*wrong[0].1), (field, "unknown_field"), "{path} {field}");
        assert!(wrong[0].2.contains(right), "{wrong:?}");
    }
    for (name, value) in [("operation_type", json!("auth_only")), ("installments", json!(3))] {
        let mut charge = card(10_000, APPROVED);
        charge["credit_card"][name] = value;
        let wrong = &merchant.post("/api/card", &charge).await.refused(400, "invalid_card_data")["errors"][0];
        assert_eq!((&wrong["field"], &wrong["code"]), (&json!(format!("credit_card.{name}")), &json!("unknown_field")));
    }
    let nested = with_splits(pix("90.00"), &[(&recipient, 4_000)]);
    let nested = nested.to_string().replace("sub_recipient_id", "recipient_id");
    let wrong = merchant.post_raw("/api/pix", &[], nested).await;
    assert!(wrong_fields(wrong).iter().any(|one| one.0 == "splits[0].recipient_id" && one.1 == "unknown_field"));
    assert_eq!(world.trace(&[&merchant]).await, before);
    let paid = text(&items(&merchant.get("/api/charges").await.expect(200))[0]["txid"]);
    let wrong = merchant.patch(&format!("/api/charges/{paid}"), &json!({"metadatas": {"loja": "azul"}})).await;
    assert_eq!(wrong_fields(wrong)[0].0, "metadatas");
}

#[tokio::test]
async fn other_unknown_fields_are_ignored_and_listed_and_operators_have_none() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charge = with(card(10_000, APPROVED), "extra", json!({"amount": 1}));
    let charge = with(charge, "4111111111111111", json!(1));
    let charge = with(with(charge, "capture", json!(true)), "currency", json!("BRL"));
    let mut charge = with(charge, "order", json!(1043));
    charge["customer"]["birthday"] = json!("1990-01-01");
    let answer = merchant.post("/api/card", &charge).await;
    let listed: Vec<_> = answer.header(IGNORED).unwrap().split(", ").map(str::to_owned).collect();
    for name in ["extra", "order", "customer.birthday", "?", "capture", "currency"] {
        assert!(listed.iter().any(|one| one == name), "{listed:?}");
    }
    assert_eq!(listed.len(), 6);
    answer.expect(201);
    let answer = merchant.post("/api/card", &card(10_000, APPROVED)).await;
    assert_eq!((answer.status, answer.header(IGNORED)), (201, None));
    let path = format!("/ops/merchants/{}", merchant.id);
    for (body, field) in [
        (json!({"metadata": 1}), "metadata"),
        (json!({"fees": {"pix": "1.00", "boleto": "1.00"}}), "fees.boleto"),
        (json!({"options": {"split_gaurd": "net"}}), "options.split_gaurd"),
        (json!({"fees": {"anticipation": {"d30": "1.00"}}}), "fees.anticipation.d30"),
        (json!({"rate_limits": {"pix": 1}}), "rate_limits.pix"),
    ] {
        let wrong = wrong_fields(world.ops_patch(&path, &body).await);
        assert_eq!((&*wrong[0].0, &*wrong[0].1, wrong.len()), (field, "unknown_field", 1));
    }
    let ana = format!("/api/sub-recipients/{}", merchant.recipient("Ana", 1).await);
    let refused = merchant.patch(&ana, &json!({"email": "ana@example.com"})).await.refused(400, "validation_failed");
    assert_eq!(refused["message"], "email não existe; o nome certo é register_information.email");
    let changed = world.ops_patch(&path, &json!({"fees": {"pix": "1.50"}, "name": ""})).await.expect(200);
    assert_eq!(changed["fees"]["pix"], "1.5");
}

#[tokio::test]
async fn a_parameter_that_is_not_known_is_refused_on_every_route() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (key, of_operators) = (bearer(&merchant.key), bearer(OPS_TOKEN));
    for operation in world.description.operations() {
        if !operation.path.starts_with("/api") && !operation.path.starts_with("/ops") {
            continue;
        }
        let credential = if operation.is_of_operators() { &of_operators } else { &key };
        let path = operation.path_of("019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e");
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{sign}pge=2");
        let method: Method = operation.method.parse().unwrap();
        let answer = world.send(method.clone(), &path, &[("authorization", credential)], "").await;
        let wrong = wrong_fields(answer);
        assert_eq!((&*wrong[0].0, &*wrong[0].1), ("pge", "unknown_parameter"), "{method} {path}");
        let unauthorized = world.send(method, &path, &[], "").await;
        unauthorized.refused(401, "unauthorized");
    }
}

#[tokio::test]
async fn an_id_in_capitals_is_the_same_id() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let paid = merchant.paid_pix(&with_splits(pix("90.00"), &[(&recipient, 4_000)])).await;
    let txid = text(&paid["txid"]);
    let charge = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    assert_eq!(merchant.get(&format!("/api/charges/{}", txid.to_uppercase())).await.expect(200), charge);
    let looked_up = merchant.post("/api/pix", &json!({"txid": txid.to_uppercase()})).await.expect(200);
    assert_eq!(looked_up["txid"], txid);
    let in_capitals = recipient.to_uppercase();
    let split = with_splits(pix("90.00"), &[(&in_capitals, 4_000)]);
    let made = merchant.post("/api/pix", &split).await.expect(201);
    let made = merchant.get(&format!("/api/charges/{}", text(&made["txid"]))).await.expect(200);
    assert_eq!(made["splits"][0]["sub_recipient_id"], recipient);
    let statement = format!("/api/dashboard/sub-recipients/{in_capitals}/splits");
    assert_eq!(merchant.get(&statement).await.expect(200), merchant.statement(&recipient).await);
    let refund = json!({"payment_id": txid.to_uppercase(), "amount": 100});
    assert_eq!(merchant.post("/api/refunds", &refund).await.expect(201)["payment_id"], txid);
    let entries = format!("/ops/queue?merchant_id={}", merchant.id.to_uppercase());
    assert_eq!(world.ops_get(&entries).await.expect(200)["total"], 1);
}

#[tokio::test]
async fn bodies_are_read_as_libraries_write_them() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let json = [];
    // Optional fields that are empty texts, and a byte order mark.
    let empty = with(with(with(pix("90.00"), "descricao", json!("")), "splits", json!("")), "cnpj", json!(""));
    let empty = with(with(empty, "txid", json!("")), "expires_in", json!(""));
    let opened = merchant.post_raw("/api/pix", &json, format!("\u{feff}{empty}")).await.expect(201);
    merchant.pay(&text(&opened["txid"])).await.expect(200);
    // Integers that are no amounts, in any notation; amounts in digits alone.
    let lasting = pix("90.00").to_string().replacen('{', "{\"expires_in\": 3.6e3, ", 1);
    merchant.post_raw("/api/pix", &json, lasting).await.expect(201);
    let amount = card(0, APPROVED).to_string().replace("\"amount\":0", "\"amount\":800.0");
    merchant.post_raw("/api/card", &json, amount).await.refused(400, "validation_failed");
    // The body of a POST that has none.
    let withdraw = format!("/api/dashboard/sub-recipients/{recipient}/withdraw");
    for body in ["[]", "null", "{}", "", "{\"notes\": 1}"] {
        merchant.post_raw(&withdraw, &json, body).await.refused(422, "nothing_available");
    }
    // A compressed body.
    let gzip = [("content-encoding", "gzip")];
    let answer = merchant.post_raw("/api/pix", &gzip, pix("90.00").to_string()).await;
    assert_eq!(answer.header("accept-encoding"), Some("identity"));
    answer.refused(415, "unsupported_media_type");
    let identity = [("content-encoding", "Identity")];
    merchant.post_raw("/api/pix", &identity, pix("90.00").to_string()).await.expect(201);
    let key = bearer(&merchant.key);
    let plain: Headers<'_> = &[("authorization", &key), ("content-type", "text/plain")];
    let answer = world.send(Method::POST, "/api/pix", plain, pix("90.00").to_string()).await;
    assert_eq!(answer.header("accept-encoding"), None, "its type is wrong, not its coding");
    answer.refused(415, "unsupported_media_type");
    // An offset whose plus is not escaped.
    let list = merchant.get("/api/charges?from=2020-01-01T00:00:00+02:00").await.expect(200);
    assert_eq!(list["total"], 3);
}

#[tokio::test]
async fn bodies_with_a_key_are_compared_by_their_values() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let json = [("idempotency-key", "order-1043")];
    let body = json!({"tag": "ouro", "amount": 100, "billingCycle": "ANNUAL", "totalBillingCycles": 1}).to_string();
    let plans = "/api/recurrency/plans";
    let made = merchant.post_raw(plans, &json, body.clone()).await.expect(201);
    let turned = r#"{"totalBillingCycles": 1, "billingCycle": "ANNUAL", "t\u0061g": "ouro" , "amount":100}"#;
    assert_eq!(merchant.post_raw(plans, &json, turned).await.expect(201), made);
    let other = body.replace("100", "101");
    let refused = merchant.post_raw(plans, &json, other).await.refused(422, "idempotency_key_reused");
    assert!(text(&refused["detail"]).contains("JSON values"), "{refused}");
}

#[tokio::test]
async fn no_answer_is_kept_by_who_passes_it_on() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let key = bearer(&merchant.key);
    let operator = bearer(OPS_TOKEN);
    for (path, credential) in [
        ("/api/balance", &key),
        ("/api/charges", &key),
        ("/api/nothing", &key),
        ("/ops/merchants", &operator),
        ("/ops/export", &operator),
        ("/ops/queue", &key),
    ] {
        let answer = world.send(Method::GET, path, &[("authorization", credential)], "").await;
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
}

#[tokio::test]
async fn texts_that_people_write_keep_their_lines() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (sent, stored) = ("Linha um\r\nlinha dois\t\"fim\"; =1+1\r", "Linha um\nlinha dois\t\"fim\"; =1+1");
    let paid = merchant.paid_pix(&with(pix("90.00"), "descricao", json!(sent))).await;
    let txid = text(&paid["txid"]);
    assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["description"], stored);
    let code = text(
        &merchant.post("/api/pix", &with(pix("1.00"), "descricao", json!(sent))).await.expect(201)["pixCopiaECola"],
    );
    assert!(code.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{code}");
    let charged =
        merchant.post("/api/card", &with(card(10_000, APPROVED), "description", json!(sent))).await.expect(201);
    let charge = merchant.get(&format!("/api/charges/{}", text(&charged["txid"]))).await.expect(200);
    assert_eq!(charge["description"], stored);
    let plan = json!({"tag": sent, "amount": 100, "billingCycle": "MONTHLY", "totalBillingCycles": 2});
    assert_eq!(merchant.post("/api/recurrency/plans", &plan).await.expect(201)["tag"], stored);
    let cashout = json!({"amount": 1_000, "pix_key": "ana@example.com", "pix_key_type": "email", "info": sent});
    merchant.post("/api/cashout", &cashout).await.expect(201);
    let refund = json!({"payment_id": txid, "amount": 100, "reason": sent});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    let rejected = world.ops_post(&format!("/ops/refunds/{refund}/reject"), &json!({"notes": sent})).await;
    assert_eq!(rejected.expect(200)["status"], "rejected");
    // A file of the audit trail, and the books, are read as before.
    world.check_books().await;
    let books = world.ops_get("/ops/export?format=hledger&ledger=all").await;
    assert!(!books.text.contains("Linha um"), "no text of people is in the books");
    for control in ["a\u{0}b", "a\u{1b}b", "a\u{7f}b", "a\u{85}b"] {
        let body = with(card(10_000, APPROVED), "description", json!(control));
        let wrong = wrong_fields(merchant.post("/api/card", &body).await);
        assert_eq!((&*wrong[0].0, &*wrong[0].1), ("description", "control_character"));
    }
}
