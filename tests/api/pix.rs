//! `POST /api/pix`, in both its meanings, the sandbox's payer, and the money of PIX charges.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::world::*;

/// Shows: 2.3.splits, 2.3.response, 2.3.breakdown, 2.5.lookup, 2.13.rule-1, 2.13.rule-4,
/// 3.1.CONCLUIDA, 3.3.pix, 4.POST./api/pix.payer, 4.POST./api/pix.txid.
#[tokio::test]
async fn a_pix_charge_is_created_looked_up_and_paid() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let created = merchant.post("/api/pix", &with_splits(pix("80.0"), &[(&ana, 1_000)])).await.expect(201);
    let fields =
        ["success", "txid", "pixCopiaECola", "status", "valor", "amount", "expires_at", "created_at", "breakdown"];
    has_exactly(&created, &fields);
    let txid = is_txid(&created["txid"]);
    assert_eq!(
        [&created["success"], &created["status"], &created["valor"]],
        [&json!(true), &json!("pending"), &json!("80.00")]
    );
    assert_eq!(created["amount"], 8_000);
    assert_eq!(
        created["breakdown"],
        json!({"amount": 8_000, "sellerAmount": 6_931, "commission": 69, "feePercent": 0.99})
    );
    assert_eq!(time(&created["expires_at"]) - time(&created["created_at"]), TimeDelta::seconds(86_400));
    is_br_code(&text(&created["pixCopiaECola"]), "80.00");
    assert_eq!(merchant.balance().await, [0; 4]);

    let found = merchant.post("/api/pix", &json!({"txid": txid})).await.expect(200);
    assert_eq!(found, json!({"success": true, "txid": txid, "status": "pending"}));

    let paid = merchant.pay(&txid).await.expect(200);
    has_exactly(
        &paid,
        &[
            "txid",
            "status",
            "payment_method",
            "amount",
            "installments",
            "description",
            "pixCopiaECola",
            "expires_at",
            "paid_at",
            "end_to_end_id",
            "created_at",
            "refunded_amount",
            "payer",
            "splits",
            "breakdown",
            "fees",
            "net",
            "settles_at",
            "fiscal",
        ],
    );
    let found = merchant.post("/api/pix", &json!({"txid": txid})).await.expect(200);
    let expected = json!({"success": true, "txid": txid, "status": "CONCLUIDA", "paid_at": paid["paid_at"],
        "end_to_end_id": paid["end_to_end_id"]});
    assert_eq!(found, expected);
    assert!(time(&paid["paid_at"]) >= time(&created["created_at"]));
    let end_to_end_id = text(&paid["end_to_end_id"]);
    assert!(end_to_end_id.len() == 32 && end_to_end_id.starts_with('E'), "{end_to_end_id}");
    assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200), paid);
    for (name, value) in [
        ("txid", json!(txid)),
        ("status", json!("CONCLUIDA")),
        (
            "fiscal",
            json!({"means": "17", "txid": txid, "end_to_end_id": end_to_end_id, "receiver_document": null, "psp_ispb": null}),
        ),
        ("payment_method", json!("pix")),
        ("amount", json!(8_000)),
        ("installments", json!(1)),
        ("description", json!("Pedido 7")),
        ("pixCopiaECola", created["pixCopiaECola"].clone()),
        ("expires_at", created["expires_at"].clone()),
        ("created_at", created["created_at"].clone()),
        ("refunded_amount", json!(0)),
        ("payer", json!({"name": "Maria das Dores", "document": "***.456.789-**"})),
        ("splits", json!([{"sub_recipient_id": ana, "amount": 1_000}])),
        ("breakdown", created["breakdown"].clone()),
    ] {
        assert_eq!(paid[name], value, "{name}");
    }
    assert_eq!(merchant.balance().await, [6_931, 0, 0, 0], "PIX is available at once");
    assert_eq!(merchant.recipient_balance(&ana).await, [1_000, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn a_pix_charge_is_paid_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    merchant.pay(&txid).await.expect(200);
    let before = world.trace(&[&merchant]).await;
    merchant.pay(&txid).await.refused(409, "charge_not_pending");
    assert_eq!(world.trace(&[&merchant]).await, before);
    assert_eq!(merchant.balance().await, [990, 0, 0, 0]);
    let captured = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    merchant.pay(&captured).await.refused(404, "charge_not_found");
    merchant.pay(&"0".repeat(32)).await.refused(404, "charge_not_found");
}

#[tokio::test]
async fn concurrent_payments_of_one_code_pay_it_once() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let answers = futures_of(8, |_| merchant.pay(&txid)).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(merchant.balance().await, [990, 0, 0, 0]);
    world.check_books().await;
}

/// Shows: 3.1.cancelled, 3.1.pending, 2.5.lookup.
#[tokio::test]
async fn an_expired_code_is_cancelled_and_leaves_the_statement() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let body = with(&with_splits(pix("80.00"), &[(&ana, 1_000)]), "/expires_in", json!(3_600));
    let created = merchant.post("/api/pix", &body).await.expect(201);
    let (txid, expires_at) = (text(&created["txid"]), time(&created["expires_at"]));
    assert_eq!(expires_at - time(&created["created_at"]), TimeDelta::seconds(3_600));
    let statement = merchant.statement(&ana).await;
    assert_eq!(items(&statement)[0]["status"], "pending");
    assert_eq!(items(&statement)[0]["payment"]["balance_available_at"], Value::Null);
    assert_eq!(statement["balance"]["pending"], 0, "no money yet");

    world.advance_to(expires_at - TimeDelta::seconds(20)).await;
    let status = async || merchant.post("/api/pix", &json!({"txid": txid})).await.expect(200)["status"].clone();
    assert_eq!(status().await, "pending");
    world.advance_to(expires_at).await;
    assert_eq!(status().await, "cancelled");
    assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["status"], "cancelled");
    let statement = merchant.statement(&ana).await;
    assert_eq!((items(&statement).len(), &statement["total"], &statement["pages"]), (0, &json!(0), &json!(0)));
    merchant.pay(&txid).await.refused(409, "charge_not_pending");
    assert_eq!(merchant.balance().await, [0; 4]);
    // Only the platform's bank saw the money, and gave it back.
    assert!(world.accounts().await.values().all(|balance| *balance == 0));

    // Nothing is unknown any more: the alert on the age of the oldest order stays silent.
    world.advance(DAY).await;
    let metrics = world.ops_get("/metrics").await.text;
    let age =
        metrics.lines().find_map(|line| line.strip_prefix("centavo_rail_oldest_unknown_seconds{rail=\"sandbox\"} "));
    assert_eq!(age, Some("0"));
}

#[tokio::test]
async fn a_look_up_is_alone_and_stays_within_the_account() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let captured = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let before = world.trace(&[&merchant, &other]).await;
    let found = merchant.post("/api/pix", &json!({"txid": captured})).await.expect(200);
    assert_eq!((&found["txid"], &found["status"]), (&json!(captured), &json!("CONCLUIDA")));
    time(&found["paid_at"]);
    for field in ["valor", "nome", "cpf", "descricao"] {
        let body = with(&json!({"txid": txid}), &format!("/{field}"), pix("10.00")[field].clone());
        merchant.post("/api/pix", &body).await.refused(400, "validation_failed");
    }
    merchant.post("/api/pix", &json!({"txid": txid, "splits": []})).await.refused(400, "validation_failed");
    merchant.post("/api/pix", &json!({"txid": 7})).await.refused(400, "validation_failed");
    for unknown in ["0".repeat(32), "não".to_owned(), "f".repeat(32), txid.replace(|_: char| true, "a")] {
        let refused = merchant.post("/api/pix", &json!({"txid": unknown})).await.refused(404, "charge_not_found");
        assert_eq!(refused["message"], "Pagamento não encontrado");
    }
    other.post("/api/pix", &json!({"txid": txid})).await.refused(404, "charge_not_found");
    other.get(&format!("/api/charges/{txid}")).await.refused(404, "charge_not_found");
    other.pay(&txid).await.refused(404, "charge_not_found");
    assert_eq!(world.trace(&[&merchant, &other]).await, before);
}

/// Shows: 2.3.valor, 2.3.nome, 2.3.cpf, 2.3.descricao.
#[tokio::test]
async fn what_a_pix_charge_says_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let cases = [
        ("valor", json!(80), "valor"),
        ("valor", json!("80,00"), "valor"),
        ("valor", json!("80.001"), "valor"),
        ("valor", json!("0.00"), "valor"),
        ("valor", json!("-1.00"), "valor"),
        ("valor", json!("1e3"), "valor"),
        ("valor", json!("5."), "valor"),
        ("valor", json!(".5"), "valor"),
        ("valor", json!("1__0"), "valor"),
        ("valor", json!("1_0.00"), "valor"),
        ("valor", json!("+5.00"), "valor"),
        ("valor", json!("10000000000.00"), "valor"),
        ("valor", json!("٣.00"), "valor"),
        ("valor", Value::Null, "valor"),
        ("nome", Value::Null, "nome"),
        ("nome", json!("   "), "nome"),
        ("cpf", Value::Null, "cpf"),
        ("cpf", json!("12345678900"), "cpf"),
        ("cpf", json!("00000000000"), "cpf"),
        ("cpf", json!(cnpj(1)), "cpf"),
        ("cnpj", json!(cnpj(1)), "cnpj"),
        ("descricao", json!("x".repeat(141)), "descricao"),
        ("expires_in", json!(0), "expires_in"),
        ("expires_in", json!(-5), "expires_in"),
        ("expires_in", json!("60"), "expires_in"),
        ("expires_in", json!(60.5), "expires_in"),
    ];
    let before = world.trace(&[&merchant]).await;
    for (name, value, field) in cases {
        let body = with(&pix("80.00"), &format!("/{name}"), value);
        let refused = merchant.post("/api/pix", &body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    merchant.post("/api/pix", &json!({})).await.refused(400, "validation_failed");
    assert_eq!(world.trace(&[&merchant]).await, before);
}

#[tokio::test]
async fn companies_pay_by_pix_too() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for (document, masked) in [("12.345.678/0001-95", "**.345.678/0001-**"), ("12ABC34501DE35", "**.ABC.345/01DE-**")] {
        let body = with(&without(&pix("9999999999.99"), "/cpf"), "/cnpj", json!(document));
        let created = merchant.post("/api/pix", &body).await.expect(201);
        assert_eq!((&created["valor"], &created["amount"]), (&json!("9999999999.99"), &json!(999_999_999_999_i64)));
        let read = merchant.get(&format!("/api/charges/{}", text(&created["txid"]))).await.expect(200);
        assert_eq!(read["payer"]["document"], masked);
    }
}

#[tokio::test]
async fn the_code_carries_any_name_of_a_merchant() {
    let world = World::sandbox().await;
    for (name, city, shown) in [
        ("Açaí & Cia", "São José dos Campos", ["5910Acai & Cia", "6015Sao Jose dos Ca"]),
        ("Ação", "Belém", ["5904Acao", "6005Belem"]),
        ("日本商店", "東京", ["5907CENTAVO", "6009SAO PAULO"]),
        ("Um nome de loja muito comprido", "X", ["5925Um nome de loja muito com", "6001X"]),
    ] {
        let settings =
            json!({"name": name, "city": city, "document": cnpj(1), "split_enabled": false, "cashout_enabled": false});
        let merchant = world.open(settings).await;
        let code = text(&merchant.post("/api/pix", &pix("1.00")).await.expect(201)["pixCopiaECola"]);
        is_br_code(&code, "1.00");
        for field in shown {
            assert!(code.contains(field), "{field} in {code}");
        }
    }
}

/// An EMV code: its fields follow each other to the end, and its checksum is right.
fn is_br_code(code: &str, amount: &str) {
    assert!(code.is_ascii() && code.starts_with("000201"), "{code}");
    let (covered, checksum) = code.split_at(code.len() - 4);
    let mut register: u16 = 0xFFFF;
    for byte in covered.bytes() {
        register ^= u16::from(byte) << 8;
        for _ in 0..8 {
            register = if register & 0x8000 == 0 { register << 1 } else { register << 1 ^ 0x1021 };
        }
    }
    assert_eq!(checksum, format!("{register:04X}"));
    let (mut fields, mut rest) = (std::collections::BTreeMap::new(), code);
    while !rest.is_empty() {
        let length: usize = rest[2..4].parse().unwrap();
        fields.insert(&rest[..2], &rest[4..4 + length]);
        rest = &rest[4 + length..];
    }
    assert_eq!((fields["53"], fields["54"], fields["58"], fields["62"]), ("986", amount, "BR", "0503***"));
    assert!(fields["26"].starts_with("0014br.gov.bcb.pix25"), "{code}");
}

/// Shows the QR code while the charge waits for its payer, and only then.
#[tokio::test]
async fn a_pending_pix_charge_has_an_image_to_scan() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]).to_owned();
    let image = merchant.get(&format!("/api/charges/{txid}/qr.svg")).await;
    assert_eq!((image.status, image.header("content-type")), (200, Some("image/svg+xml")));
    assert_eq!(image.header("content-security-policy"), Some("default-src 'none'"));
    assert!(image.text.contains("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{}", image.text);
    merchant.pay(&txid).await.expect(200);
    let card = text(&merchant.post("/api/card", &card(1_000, "4111111111111111")).await.expect(201)["txid"]).to_owned();
    for (txid, status, code) in
        [(&*txid, 409, "charge_not_pending"), (&*card, 409, "charge_not_pending"), ("x", 404, "charge_not_found")]
    {
        merchant.get(&format!("/api/charges/{txid}/qr.svg")).await.refused(status, code);
    }
    let other = world.merchant().await;
    other.get(&format!("/api/charges/{txid}/qr.svg")).await.refused(404, "charge_not_found");
}

#[tokio::test]
async fn the_root_of_the_merchants_listener_says_where_the_documents_are() {
    let world = World::sandbox().await;
    let listener = world.address_of("/api");
    let read = async |path: &str| reqwest::get(format!("http://{listener}{path}")).await.unwrap();
    let index: Value = read("/").await.json().await.unwrap();
    assert_eq!((&index["name"], &index["version"]), (&json!("Centavo"), &json!(env!("CARGO_PKG_VERSION"))));
    for name in ["reference", "openapi"] {
        assert_eq!(read(index[name].as_str().unwrap()).await.status(), 200, "{name}");
    }
    let folders = [&index["clients"], &index["guides"]["en"], &index["guides"]["pt-BR"]];
    for folder in folders.map(|folder| folder.as_str().unwrap()) {
        assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).is_dir(), "{folder}");
    }
}
