//! Batches of charges, and quotes: `POST /api/charges/batch` and `POST /api/charges/quote`.

use serde_json::{Value, json};

use crate::world::*;

const BATCH: &str = "/api/charges/batch";
const QUOTE: &str = "/api/charges/quote";

fn keyed(key: &str, charge: &Value) -> Value {
    let mut charge = charge.clone();
    charge["idempotency_key"] = json!(key);
    charge
}

/// The same value, otherwise written: members backwards, blanks, and escapes.
fn otherwise(value: &Value) -> String {
    let escaped = |text: &str| {
        let plain = json!(text).to_string();
        let letters = plain.chars().map(|letter| match u32::from(letter) {
            code @ 0x80.. => format!("\\u{code:04x}"),
            _ => letter.to_string(),
        });
        letters.collect::<String>()
    };
    match value {
        Value::Object(members) => {
            let members =
                members.iter().rev().map(|(name, value)| format!("{} :\t{}", escaped(name), otherwise(value)));
            format!(" {{ {} \n}} ", members.collect::<Vec<_>>().join(" ,\r\n"))
        }
        Value::Array(elements) => format!("[ {} ]", elements.iter().map(otherwise).collect::<Vec<_>>().join(" , ")),
        Value::String(text) => escaped(text),
        other => other.to_string(),
    }
}

fn statuses(answer: &Value) -> Vec<i64> {
    items(answer).iter().map(|item| item["status"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn the_charges_of_a_batch_succeed_or_fail_alone() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let batch = json!([
        keyed("a", &with_splits(card(10_000, APPROVED), &[(&ana, 2_000)])),
        keyed("b", &card(10_000, REFUSED)),
        keyed("c", &with_splits(pix("80.00"), &[(&ana, 1_000)])),
        keyed("d", &with(&pix("80.00"), "/cpf", json!("1"))),
        card(10_000, APPROVED),
        keyed("e", &with_splits(card(10_000, APPROVED), &[(&ana, 10_000)])),
        keyed("a", &with_splits(card(10_000, APPROVED), &[(&ana, 2_001)])),
        keyed("f", &with(&card(10_000, APPROVED), "/split", json!([]))),
    ]);
    let answer = merchant.post(BATCH, &batch).await;
    assert_eq!(answer.header("centavo-ignored-fields"), None, "the key is no field of a charge");
    let answer = answer.expect(200);
    has_exactly(&answer, &["items"]);
    assert_eq!(statuses(&answer), [201, 402, 201, 400, 400, 400, 422, 400]);
    let bodies: Vec<&Value> = items(&answer).iter().map(|item| &item["body"]).collect();
    has_exactly(bodies[0], &["success", "txid", "status", "cardStatus", "breakdown"]);
    assert_eq!([&bodies[1]["code"], &bodies[1]["status"]], ["card_declined", "RECUSADA"]);
    assert!(bodies[2]["pixCopiaECola"].is_string());
    for (at, code, field) in [
        (3, "validation_failed", "cpf"),
        (4, "validation_failed", "idempotency_key"),
        (7, "validation_failed", "split"),
    ] {
        assert_eq!([&bodies[at]["code"], &bodies[at]["errors"][0]["field"]], [code, field], "{at}: {}", bodies[at]);
        assert_eq!(bodies[at]["request_id"].as_str().unwrap().len(), 32);
    }
    assert_eq!([&bodies[5]["code"], &bodies[6]["code"]], ["splits_reach_total", "idempotency_key_reused"]);
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 3);

    // A repeat of all makes nothing twice, also where the security code is another one.
    let before = world.trace(&[&merchant]).await;
    let again = merchant.post(BATCH, &with(&batch, "/0/credit_card/cvv", json!("111"))).await.expect(200);
    for at in [0, 1, 2] {
        let txid = |of: &Value| items(of)[at]["body"]["txid"].clone();
        assert_eq!(txid(&again), txid(&answer), "{at}");
    }
    assert_eq!(statuses(&again), statuses(&answer));
    assert_eq!(world.trace(&[&merchant]).await, before);
    // One key is one charge, whichever route it comes by.
    let alone = merchant.post_keyed("/api/card", "a", &card(10_000, APPROVED)).await;
    alone.refused(422, "idempotency_key_reused");
    world.check_books().await;
}

/// The key of a charge in a batch is that of its own route: the charge is made once, in whichever
/// order the two come, and however the JSON is written.
#[tokio::test]
async fn a_charge_of_a_batch_is_the_one_that_was_made_alone() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let labelled = |charge| with(&charge, "/metadata", json!({"loja": "sé", "cor": "azul"}));
    let card = labelled(with_splits(card(10_000, APPROVED), &[(&ana, 2_000)]));
    let pix = labelled(with_splits(pix("80.00"), &[(&ana, 100)]));
    let txid = |answer: Value| answer["txid"].clone();
    let routes = [("/api/card", &card), ("/api/pix", &pix)];
    for (at, (path, charge)) in routes.into_iter().enumerate() {
        let compact = charge.to_string();
        let backwards = otherwise(charge);
        let other =
            if at == 0 { with(charge, "/credit_card/cvv", json!("111")).to_string() } else { format!("{charge:#}") };
        let bodies = [compact, backwards, other];
        let headers = |key| [("idempotency-key", key)];
        let first = txid(merchant.post_raw(path, &headers("alone"), bodies[1].clone()).await.expect(201));
        for body in &bodies {
            let again = merchant.post_raw(path, &headers("alone"), body.clone()).await;
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path} {body}");
            assert_eq!(txid(again.expect(201)), first, "{path}");
        }
        let both = json!([keyed("alone", charge), keyed("batch", charge)]);
        let answer = merchant.post(BATCH, &both).await.expect(200);
        let bodies_of =
            |answer: &Value| items(answer).iter().map(|item| txid(item["body"].clone())).collect::<Vec<_>>();
        let both = bodies_of(&answer);
        assert!(both[0] == first && both[1] != first, "{path}: {answer}");
        for body in &bodies {
            assert_eq!(txid(merchant.post_raw(path, &headers("batch"), body.clone()).await.expect(201)), both[1]);
        }
        let more =
            if at == 0 { with(charge, "/amount", json!(10_001)) } else { with(charge, "/valor", json!("80.01")) };
        merchant.post_keyed(path, "batch", &more).await.refused(422, "idempotency_key_reused");
        // Blanks within a text count.
        let text = charge.to_string().replace("João Ávila", "João  Ávila").replace("Maria das", "Maria  das");
        let text = merchant.post_raw(path, &headers("alone"), text).await;
        text.refused(422, "idempotency_key_reused");
        // A reference that is used up says that it is the same charge, whatever the way.
        let unique = with(&with(charge, "/reference", json!(path)), "/reference_unique", json!(true));
        let first = txid(merchant.post(path, &unique).await.expect(201));
        let again = merchant.post(BATCH, &json!([keyed("later", &unique)])).await.expect(200);
        let again = &items(&again)[0]["body"];
        assert_eq!((&again["code"], &again["txid"]), (&json!("duplicate_reference"), &first), "{path}");
        merchant.post_raw(path, &[], otherwise(&unique)).await.refused(409, "duplicate_reference");
        // The key of a charge alone is the header: one in the body would be lost.
        let refused = merchant.post(path, &keyed("alone", charge)).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["code"], "unknown_field", "{refused}");
        assert!(refused["message"].as_str().unwrap().contains("Idempotency-Key"), "{refused}");
    }
    let refused = merchant.post(BATCH, &json!([keyed("pedido nº 1", &pix)])).await.expect(200);
    assert_eq!(items(&refused)[0]["body"]["errors"][0]["field"], "Idempotency-Key", "{refused}");
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 6);
}

#[tokio::test]
async fn a_batch_may_have_a_charge_a_line() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let charges = [keyed("a", &card(10_000, APPROVED)), keyed("b", &pix("80.00")), keyed("c", &card(1_000, REFUSED))];
    let answer = merchant.post(BATCH, &json!(charges)).await.expect(200);
    let typed = async |content_type: &str, body: Vec<u8>| {
        let headers = [("token", merchant.key.as_str()), ("content-type", content_type)];
        world.send(reqwest::Method::POST, BATCH, &headers, body).await
    };
    let lines = async |body: Vec<u8>| typed("application/x-ndjson; charset=utf-8", body).await;
    let body = format!("{}\r\n\n{}\n  {}  ", charges[0], charges[1], charges[2]);
    let txids = |of: &Value| items(of).iter().map(|item| item["body"]["txid"].clone()).collect::<Vec<_>>();
    for name in ["x-ndjson", "NDJSON", "jsonl", "x-jsonlines; charset=utf-8"] {
        let again = typed(&format!("application/{name}"), body.clone().into()).await.expect(200);
        assert_eq!((statuses(&again), txids(&again)), (statuses(&answer), txids(&answer)), "the same charges");
    }
    typed("text/jsonl", body.into()).await.refused(415, "unsupported_media_type");
    for (body, code) in [
        ("\n \n".to_owned(), "validation_failed"),
        (vec![charges[1].to_string(); 1_001].join("\n"), "validation_failed"),
    ] {
        lines(body.into()).await.refused(400, code);
    }
    // A line that is no object is an error of its own.
    let wrong = [
        (json!(charges).to_string(), "invalid_json"),
        ("{".to_owned(), "invalid_json"),
        (format!("{}{}", charges[0], charges[1]), "invalid_json"),
        ("7".to_owned(), "invalid_json"),
        ("{\"a\": 1, \"a\": 2}".to_owned(), "duplicate_key"),
        ("{\"a\": \"\\ud800\"}".to_owned(), "invalid_json"),
    ];
    for (line, code) in &wrong {
        let answer = lines(format!("{}\n{line}\n{}", charges[0], charges[1]).into()).await.expect(200);
        assert_eq!(statuses(&answer), [201, 400, 201], "{line}");
        let problem = &items(&answer)[1]["body"];
        assert_eq!(problem["code"], *code, "{line}");
        assert!(problem["detail"].as_str().unwrap().starts_with("Line 2 "), "{problem}");
        let array = format!("[{}, {line}, {}]", charges[0], charges[1]);
        if serde_json::from_str::<Vec<&serde_json::value::RawValue>>(&array).is_ok() {
            let answer = merchant.post_raw(BATCH, &[], array).await.expect(200);
            assert_eq!(statuses(&answer), [201, 400, 201], "{line}");
            assert_eq!(items(&answer)[1]["body"]["code"], *code, "{line}");
        }
    }
    let [first, second] = [&charges[0], &charges[1]].map(Value::to_string);
    let in_latin1 = [first.as_bytes(), b"\n{\"nome\": \"Jo\xe3o\"}\n", second.as_bytes()];
    let answer = lines(in_latin1.concat()).await.expect(200);
    assert_eq!((statuses(&answer), &items(&answer)[1]["body"]["code"]), (vec![201, 400, 201], &json!("invalid_utf8")));
    let headers = [("token", merchant.key.as_str()), ("content-type", "application/x-ndjson")];
    let alone = world.send(reqwest::Method::POST, "/api/pix", &headers, pix("80.00").to_string()).await;
    alone.refused(415, "unsupported_media_type");
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 3);
}

#[tokio::test]
async fn a_batch_is_answered_in_its_order_and_bounded() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    // Together they are larger than the bodies of other routes.
    let pix = |valor: &str| with(&pix(valor), "/descricao", json!("Pedido ".repeat(20)));
    let charges =
        |count: u32| (1..=count).map(|n| keyed(&format!("k{n}"), &pix(&format!("{n}.00")))).collect::<Value>();
    let answer = merchant.post(BATCH, &charges(1_000)).await.expect(200);
    let amounts: Vec<i64> = items(&answer).iter().map(|item| item["body"]["amount"].as_i64().unwrap()).collect();
    assert_eq!(amounts, (1..=1_000).map(|n| n * 100).collect::<Vec<_>>());
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 1_000);
    for (body, code) in
        [(charges(1_001), "validation_failed"), (json!([]), "validation_failed"), (json!({}), "invalid_json")]
    {
        merchant.post(BATCH, &body).await.refused(400, code);
    }
    merchant.post_raw(BATCH, &[], "[{]").await.refused(400, "invalid_json");
    assert_eq!(merchant.get("/api/charges").await.expect(200)["total"], 1_000);
}

#[tokio::test]
async fn a_quote_says_what_the_charge_says_and_writes_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, dora) = (merchant.recipient("Ana", 1).await, merchant.draft("Dora", 2).await);
    // The draft is submitted before, so that nothing is booked beside the quotes.
    world.advance(0).await;
    let before = world.cut().await;
    let splits = json!([{"sub_recipient_id": ana, "percent": "12.5"}]);
    let wanted = json!({"payment_method": "credit_card", "amount": 10_000, "installments": 3, "splits": splits});
    let quote = merchant.post(QUOTE, &wanted).await.expect(200);
    let breakdown = json!({"amount": 10_000, "sellerAmount": 8_115, "commission": 635, "feePercent": 7.26});
    let expected = json!({
        "payment_method": "credit_card", "amount": 10_000, "installments": 3,
        "splits": [{"sub_recipient_id": ana, "amount": 1_250}],
        "fees": [{"kind": "mdr", "amount": 349}, {"kind": "antifraud", "amount": 198}, {"kind": "margin", "amount": 88}],
        "net": 8_115, "settlement_days": 30, "breakdown": breakdown,
    });
    assert_eq!(quote, expected);
    let pix_quote = merchant.post(QUOTE, &json!({"payment_method": "pix", "amount": 8_000})).await.expect(200);
    let expected = json!({"payment_method": "pix", "amount": 8_000, "installments": 1, "splits": [],
        "fees": [{"kind": "pix", "amount": 79}], "net": 7_921, "settlement_days": 0});
    assert_eq!(pix_quote, expected);
    for (pointer, value, code) in [
        ("/payment_method", json!("boleto"), "validation_failed"),
        ("/payment_method", json!("pix"), "validation_failed"),
        ("/amount", json!("1"), "validation_failed"),
        ("/installments", json!(13), "validation_failed"),
        ("/splits/0/sub_recipient_id", json!(dora), "recipient_not_active"),
        ("/splits/0/percent", json!("100"), "splits_reach_total"),
    ] {
        merchant.post(QUOTE, &with(&wanted, pointer, value)).await.refused(400, code);
    }
    assert_eq!(world.cut().await, before, "nothing is written");
    let charge = with(&with(&card(10_000, APPROVED), "/installments", json!(3)), "/splits", splits);
    let charged = merchant.post("/api/card", &charge).await.expect(201);
    assert_eq!(charged["breakdown"], breakdown);
}
