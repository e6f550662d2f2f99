//! A recipient's registration, field by field (interface 2.7): accepted and refused values, the
//! shown form, changes.

use serde_json::{Value, json};

use crate::world::*;

const PATH: &str = "/api/sub-recipients";

/// A registration with every field of an individual.
fn whole_individual() -> Value {
    let mut body = individual("José Álvares", "123.456.789-09");
    body["register_information"]["email"] = json!("jose@example.com");
    body["register_information"]["monthly_income"] = json!(500_000);
    body["bank_account"] = json!({"bank_code": "341", "agencia": "1234", "agencia_dv": "5", "conta": "56789",
        "conta_dv": "7", "type": "conta_poupanca", "legal_name": "José Álvares", "document_number": "11222333000181"});
    body
}

/// A body with several values put in their places.
fn with_all(body: &Value, changes: &[(&str, Value)]) -> Value {
    changes.iter().fold(body.clone(), |body, (pointer, value)| with(&body, pointer, value.clone()))
}

/// Shows: 2.7.email, 2.7.monthly_income, 2.7.annual_revenue, 2.7.conta_dv, 2.7.agencia_dv,
/// 2.7.bank-type, 2.7.legal_name, 2.7.bank-document.
#[tokio::test]
async fn the_full_record_shows_what_was_registered() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (person, plain) = (whole_individual(), individual("Ana", &cpf(1)));
    let company = corporation("Padaria Sol", "12.345.678/0001-95");
    let partner_document = "/register_information/managing_partners/0/document_number";
    let zip = "/register_information/address/zip_code";
    let cases = [
        (
            &person,
            vec![
                (zip, json!("01002000")),
                ("/register_information/document_number", json!("***.456.789-**")),
                ("/bank_account/document_number", json!("**.222.333/0001-**")),
                ("/bank_account/ispb", Value::Null),
            ],
        ),
        (
            &plain,
            vec![
                (zip, json!("01002000")),
                ("/register_information/document_number", json!(format!("***.{}.{}-**", &cpf(1)[3..6], &cpf(1)[6..9]))),
                ("/register_information/email", Value::Null),
                ("/bank_account/agencia_dv", Value::Null),
                ("/bank_account/type", json!("conta_corrente")),
                ("/bank_account/legal_name", Value::Null),
                ("/bank_account/ispb", Value::Null),
                ("/bank_account/document_number", json!(format!("***.{}.{}-**", &cpf(1)[3..6], &cpf(1)[6..9]))),
            ],
        ),
        (
            &company,
            vec![
                (zip, json!("01002000")),
                ("/register_information/document_number", json!("**.345.678/0001-**")),
                (partner_document, json!("***.456.789-**")),
                ("/bank_account/document_number", json!("**.345.678/0001-**")),
                ("/bank_account/conta_dv", Value::Null),
                ("/bank_account/ispb", Value::Null),
            ],
        ),
    ];
    for (body, shown) in cases {
        let registered = merchant.post(PATH, body).await.expect(201);
        let path = format!("{PATH}/{}", text(&registered["id"]));
        let record = merchant.get(&path).await.expect(200);
        let expected = with_all(body, &shown);
        assert_eq!(record["register_information"], expected["register_information"]);
        assert_eq!(record["bank_account"], expected["bank_account"]);
        let listed = merchant.get("/api/dashboard/sub-recipients").await.expect(200);
        for (name, value) in items(&listed)[0].as_object().unwrap() {
            assert_eq!(&record[name], value, "as in the list: {name}");
        }
        assert_eq!(record.as_object().unwrap().len(), items(&listed)[0].as_object().unwrap().len() + 2);
        other.get(&path).await.refused(404, "not_found");
        other.patch(&path, &json!({})).await.refused(404, "not_found");
    }
}

/// Shows: 2.7.address, 2.7.managing_partners.
#[tokio::test]
async fn either_spelling_of_an_address_will_do() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let company = corporation("Sol", &cnpj(1));
    let ours = "/register_information/address";
    let partners = "/register_information/managing_partners/0/address";
    let respelled = |body: &Value, at: &str, [from, to]: [&str; 2]| {
        let value = body.pointer(&format!("{at}/{from}")).unwrap().clone();
        with(&without(body, &format!("{at}/{from}")), &format!("{at}/{to}"), value)
    };
    let mut body = company.clone();
    for (at, spellings) in [
        (ours, ["number", "street_number"]),
        (ours, ["zip_code", "zipcode"]),
        (partners, ["street_number", "number"]),
        (partners, ["zipcode", "zip_code"]),
    ] {
        body = respelled(&body, at, spellings);
    }
    let id = text(&merchant.post(PATH, &body).await.expect(201)["id"]);
    let record = merchant.get(&format!("{PATH}/{id}")).await.expect(200);
    // Each is shown as its place spells it.
    for (pointer, expected) in [
        (format!("{ours}/number"), "10"),
        (format!("{ours}/zip_code"), "01002000"),
        (format!("{partners}/street_number"), "10"),
        (format!("{partners}/zipcode"), "01002000"),
    ] {
        assert_eq!(record.pointer(&pointer), Some(&json!(expected)), "{pointer}");
    }
    // Where both are sent, the one of the place counts.
    let both = with(&individual("Ana", &cpf(1)), &format!("{ours}/street_number"), json!("99"));
    let id = text(&merchant.post(PATH, &both).await.expect(201)["id"]);
    let record = merchant.get(&format!("{PATH}/{id}")).await.expect(200);
    assert_eq!(record["register_information"]["address"]["number"], "10");
    for (at, name) in [(ours, "number"), (ours, "zip_code"), (partners, "street_number"), (partners, "zipcode")] {
        let field = format!("{at}/{name}").replace("/0", "[0]").replacen('/', "", 1).replace('/', ".");
        let refused = merchant.post(PATH, &without(&company, &format!("{at}/{name}"))).await;
        assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], field);
    }
}

/// Shows: 2.7.managing_partners.
#[tokio::test]
async fn a_managing_partner_may_have_no_email() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let email = "/register_information/managing_partners/0/email";
    for (number, email_sent) in [(1, None), (2, Some(Value::Null))] {
        let company = corporation("Sol", &cnpj(number));
        let body = match email_sent {
            None => without(&company, email),
            Some(null) => with(&company, email, null),
        };
        let id = text(&merchant.post(PATH, &body).await.expect(201)["id"]);
        let record = merchant.get(&format!("{PATH}/{id}")).await.expect(200);
        assert_eq!(record.pointer(email), Some(&Value::Null), "{record}");
    }
    let wrong = with(&corporation("Sol", &cnpj(3)), email, json!("sol"));
    let refused = merchant.post(PATH, &wrong).await.refused(400, "validation_failed");
    assert_eq!(refused["errors"][0]["field"], "register_information.managing_partners[0].email");
}

#[tokio::test]
async fn every_text_has_a_length_and_the_description_says_so() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (person, company) = (whole_individual(), corporation("Sol", &cnpj(1)));
    let document = merchant.get("/openapi.json").await.expect(200);
    let (information, partner) = ("/register_information", "/register_information/managing_partners/0");
    let cases = [
        (&person, information, "name", "RegisterInformation", 140),
        (&person, information, "mother_name", "RegisterInformation", 140),
        (&person, information, "email", "RegisterInformation", 254),
        (&person, "/register_information/address", "street", "AddressRequest", 140),
        (&person, "/register_information/address", "number", "AddressRequest", 20),
        (&person, "/register_information/address", "neighborhood", "AddressRequest", 140),
        (&person, "/register_information/address", "city", "AddressRequest", 140),
        (&person, "/bank_account", "legal_name", "BankAccountRequest", 140),
        (&company, information, "company_name", "RegisterInformation", 140),
        (&company, partner, "name", "PartnerRequest", 140),
        (&company, partner, "mother_name", "PartnerRequest", 140),
        (&company, partner, "email", "PartnerRequest", 254),
    ];
    for (body, at, name, schema, most) in cases {
        let of_length = |length: usize| {
            let text =
                if name == "email" { format!("{}@example.com", "é".repeat(length - 12)) } else { "é".repeat(length) };
            with(body, &format!("{at}/{name}"), json!(text))
        };
        let longest = merchant.post(PATH, &of_length(most)).await;
        assert!([200, 201].contains(&longest.status), "{at}/{name}: {}", longest.text);
        let refused = merchant.post(PATH, &of_length(most + 1)).await.refused(400, "validation_failed");
        let field = format!("{at}/{name}").replace("/0", "[0]").replacen('/', "", 1).replace('/', ".");
        assert_eq!(
            [&refused["errors"][0]["field"], &refused["errors"][0]["code"]],
            [field.as_str(), "wrong_length"],
            "{refused}"
        );
        let described = &document["components"]["schemas"][schema]["properties"][name];
        assert_eq!(described["maxLength"], most, "{schema}.{name}: {described}");
    }
    // Every described text has a length, a pattern or a list of its values.
    for schema in ["RegisterInformation", "PartnerRequest", "AddressRequest", "PhoneRequest", "BankAccountRequest"] {
        for (name, described) in document["components"]["schemas"][schema]["properties"].as_object().unwrap() {
            let kind = described["type"].to_string();
            let is_limited = described["maxLength"].is_u64()
                || described["pattern"].is_string()
                || described["enum"].is_array()
                || described["$ref"].is_string();
            assert!(!kind.contains("string") || is_limited, "{schema}.{name}: {described}");
        }
    }
}

/// Shows: 2.7.birthdate, 2.7.monthly_income, 2.7.annual_revenue, 2.7.bank_code, 2.7.bank-type,
/// 2.7.bank-document.
#[tokio::test]
async fn formats_are_as_the_interface_says() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let person = whole_individual();
    let company = corporation("Sol", &cnpj(1));
    let information = "/register_information";
    // Field, accepted values, refused values.
    let cases: &[(&Value, &str, &[Value], &[Value])] = &[
        (
            &person,
            "/register_information/birthdate",
            &[json!("01/01/1900"), json!("29/02/2024"), json!("31/12/1999")],
            &[
                json!("31/12/1899"),
                json!("29/02/2023"),
                json!("31/04/2000"),
                json!("00/01/2000"),
                json!("01/13/2000"),
                json!("1/2/2000"),
                json!("01/ 2/2000"),
                json!("1/2/+02000"),
                json!("2000-01-31"),
                json!("01-02-2000"),
                json!("01/01/9999"),
                json!(1_012_000),
                json!(""),
            ],
        ),
        (
            &person,
            "/register_information/monthly_income",
            &[json!(0), json!(1_000_000_000_000_i64), Value::Null],
            &[json!(-1), json!(1_000_000_000_001_i64), json!("1"), json!(1.5), json!(true)],
        ),
        (
            &company,
            "/register_information/annual_revenue",
            &[json!(0), json!(1_000_000_000_000_i64), Value::Null],
            &[json!(-1), json!(1_000_000_000_001_i64), json!("1"), json!(1.5)],
        ),
        (
            &person,
            "/register_information/address/state",
            &[json!("RJ"), json!("rj")],
            &[json!("R"), json!("RJX"), json!("12"), json!("ÃÃ")],
        ),
        (
            &person,
            "/register_information/address/zip_code",
            &[json!("01002-000"), json!("01002000")],
            &[json!("0100200"), json!("010020001"), json!("0100200a"), json!("01.002000"), json!(1_002_000)],
        ),
        (
            &person,
            "/register_information/phone_numbers",
            &[
                json!([{"ddd": "11", "number": "33334444"}, {"ddd": "21", "number": "987654321"}]),
                json!([{"ddd": "011", "number": "98765-4321"}, {"ddd": "(21)", "number": "3333.4444"}]),
            ],
            &[
                json!([]),
                json!({}),
                json!([{"ddd": "11"}]),
                json!([{"ddd": "00", "number": "33334444"}]),
                json!([{"ddd": "10", "number": "33334444"}]),
                json!([{"ddd": "111", "number": "33334444"}]),
                json!([{"ddd": "11", "number": "3333444"}]),
                json!([{"ddd": "11", "number": "9876543210"}]),
                json!([{"ddd": 11, "number": "33334444"}]),
                json!(["1133334444"]),
            ],
        ),
        (
            &person,
            "/bank_account/bank_code",
            &[json!("001"), json!("998")],
            &[json!("1"), json!("0001"), json!("34A"), json!(341), json!("000"), json!("999"), Value::Null],
        ),
        (
            &person,
            "/bank_account/ispb",
            &[json!("00000208"), json!("60701190"), json!("AB12CD34"), Value::Null],
            &[json!("208"), json!(208), json!("0000020"), json!("000000208"), json!("ab12cd34"), json!("0000-208")],
        ),
        (
            &person,
            "/bank_account/type",
            &[json!("conta_corrente"), json!("conta_poupanca"), json!("conta_pagamento")],
            &[json!("pagamento"), json!("CONTA_PAGAMENTO"), json!(1)],
        ),
        (
            &person,
            "/bank_account/conta_dv",
            &[json!("0"), json!("X"), json!("10")],
            &[json!("-1"), json!("é"), json!("123"), json!(0)],
        ),
        (
            &person,
            "/bank_account/agencia",
            &[json!("1234"), json!("1234-5"), json!("1.234-5")],
            &[json!("1234-"), json!("12a4"), json!("1234-123"), json!("1-2-3"), json!(1234)],
        ),
        (
            &person,
            "/bank_account/conta",
            &[json!("56789"), json!("56789-7"), json!("56.789-7"), json!("1234567890123456789")],
            &[json!("56789-1"), json!("-0"), json!("5678A"), json!(""), json!("12345678901234567890")],
        ),
        (
            &person,
            "/bank_account/type",
            &[json!("conta_corrente"), json!("conta_poupanca"), Value::Null],
            &[json!("corrente"), json!("CONTA_CORRENTE"), json!(" ")],
        ),
        (
            &person,
            "/bank_account/document_number",
            &[json!("123.456.789-09"), json!("12ABC34501DE35"), json!("11.222.333/0001-81"), Value::Null],
            &[json!("12345678900"), json!("1"), json!(12_345_678_909_i64)],
        ),
        (
            &company,
            "/register_information/document_number",
            &[json!("11222333000181"), json!("12.abc.345/01de-35")],
            &[json!("123.456.789-09"), json!("11222333000182"), json!("00000000000000")],
        ),
    ];
    for (body, pointer, accepted, refused) in cases {
        for value in *accepted {
            let answer = merchant.post(PATH, &with(body, pointer, value.clone())).await;
            assert!([200, 201].contains(&answer.status), "{pointer} {value}: {}", answer.text);
        }
        for value in *refused {
            let answer = merchant.post(PATH, &with(body, pointer, value.clone())).await;
            let field = text(&answer.refused(400, "validation_failed")["errors"][0]["field"]);
            assert!(field.starts_with(&pointer[1..].replace('/', ".")), "{pointer} {value}: {field}");
        }
    }
    // Fields of the other kind are not used, whatever stands in them.
    let foreign = with_all(
        &person,
        &[
            (&format!("{information}/company_name"), json!(7)),
            (&format!("{information}/annual_revenue"), json!("x")),
            (&format!("{information}/managing_partners"), json!([])),
        ],
    );
    let answer = merchant.post(PATH, &foreign).await;
    assert!([200, 201].contains(&answer.status), "{}", answer.text);
}

#[tokio::test]
async fn a_change_replaces_what_is_sent_and_nothing_else() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = text(&merchant.post(PATH, &whole_individual()).await.expect(201)["id"]);
    // It is submitted before, so that only the changes change it.
    world.advance(0).await;
    let path = format!("{PATH}/{id}");
    let mut expected = merchant.get(&path).await.expect(200);
    assert_eq!(merchant.patch(&path, &json!({})).await.expect(200), expected);
    let information = |fields: Value| json!({"register_information": fields});
    let bank = |fields: Value| json!({"bank_account": fields});
    let phones = json!([{"ddd": "81", "number": "33334444"}]);
    let cases: Vec<(Value, Vec<(&str, Value)>)> = vec![
        (
            information(json!({"name": "José da Silva"})),
            vec![("/name", json!("José da Silva")), ("/register_information/name", json!("José da Silva"))],
        ),
        (
            information(json!({"email": "novo@example.com"})),
            vec![("/email", json!("novo@example.com")), ("/register_information/email", json!("novo@example.com"))],
        ),
        (
            information(json!({"email": null})),
            vec![("/email", Value::Null), ("/register_information/email", Value::Null)],
        ),
        (
            information(json!({"birthdate": "01/02/1980", "mother_name": "Rita"})),
            vec![
                ("/register_information/birthdate", json!("01/02/1980")),
                ("/register_information/mother_name", json!("Rita")),
            ],
        ),
        (
            information(json!({"address": {"city": "Olinda"}})),
            vec![("/register_information/address/city", json!("Olinda"))],
        ),
        (information(json!({"phone_numbers": phones})), vec![("/register_information/phone_numbers", phones.clone())]),
        (information(json!({"monthly_income": 7})), vec![("/register_information/monthly_income", json!(7))]),
        (
            bank(json!({"conta": "1", "conta_dv": null})),
            vec![("/bank_account/conta", json!("1")), ("/bank_account/conta_dv", Value::Null)],
        ),
        (
            bank(json!({"type": "conta_corrente", "document_number": "123.456.789-09"})),
            vec![
                ("/bank_account/type", json!("conta_corrente")),
                ("/bank_account/document_number", json!("***.456.789-**")),
            ],
        ),
        (
            json!({"register_information": {"mother_name": "Ana", "address": {"number": "11"}}, "bank_account": {"agencia": "2"}}),
            vec![
                ("/register_information/mother_name", json!("Ana")),
                ("/register_information/address/number", json!("11")),
                ("/bank_account/agencia", json!("2")),
            ],
        ),
    ];
    for (change, shown) in cases {
        expected = with_all(&expected, &shown);
        assert_eq!(merchant.patch(&path, &change).await.expect(200), expected, "{change}");
        assert_eq!(merchant.get(&path).await.expect(200), expected);
    }
    let found = merchant.get("/api/dashboard/sub-recipients?search=silva").await.expect(200);
    assert_eq!((&found["total"], &items(&found)[0]["id"]), (&json!(1), &json!(id)), "it is found by its new name");
    assert_eq!(merchant.get("/api/dashboard/sub-recipients?search=alvares").await.expect(200)["total"], 0);
    let (names, world) = (merchant.names, world.restarted().await);
    let merchant = Merchant { world: &world, names };
    // Its submission may have come between.
    let stored = merchant.get(&path).await.expect(200);
    assert_eq!(with(&stored, "/status", json!("")), with(&expected, "/status", json!("")), "it outlives the process");
}

#[tokio::test]
async fn a_change_is_checked_as_a_whole() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = text(&merchant.post(PATH, &whole_individual()).await.expect(201)["id"]);
    let company = text(&merchant.post(PATH, &corporation("Sol", &cnpj(1))).await.expect(201)["id"]);
    let before = [
        merchant.get(&format!("{PATH}/{id}")).await.expect(200),
        merchant.get(&format!("{PATH}/{company}")).await.expect(200),
    ];
    let cut = world.cut().await;
    let cases = [
        (&id, json!({"register_information": {"type": "corporation"}}), "register_information.type"),
        (&id, json!({"register_information": {"type": "individual"}}), "register_information.type"),
        (
            &id,
            json!({"register_information": {"document_number": "12345678909"}}),
            "register_information.document_number",
        ),
        (&id, json!({"register_information": {"name": null}}), "register_information.name"),
        (&id, json!({"register_information": {"name": ""}}), "register_information.name"),
        (&id, json!({"register_information": {"name": 7}}), "register_information.name"),
        (&id, json!({"register_information": {"birthdate": "31/02/2000"}}), "register_information.birthdate"),
        (&id, json!({"register_information": {"address": null}}), "register_information.address"),
        (&id, json!({"register_information": {"address": "x"}}), "register_information.address"),
        (&id, json!({"register_information": {"address": {"zip_code": "1"}}}), "register_information.address.zip_code"),
        (&id, json!({"register_information": {"phone_numbers": []}}), "register_information.phone_numbers"),
        (&id, json!({"register_information": {"monthly_income": 1.0}}), "register_information.monthly_income"),
        (&id, json!({"register_information": "x"}), "register_information"),
        (&id, json!({"bank_account": []}), "bank_account"),
        (&id, json!({"bank_account": {"bank_code": "1"}}), "bank_account.bank_code"),
        (&id, json!({"bank_account": {"type": "x"}}), "bank_account.type"),
        (&id, json!({"bank_account": {"document_number": "1"}}), "bank_account.document_number"),
        (
            &company,
            json!({"register_information": {"managing_partners": []}}),
            "register_information.managing_partners",
        ),
        (
            &company,
            json!({"register_information": {"managing_partners": [{"name": "Ana"}]}}),
            "register_information.managing_partners[0].document_number",
        ),
    ];
    for (id, change, field) in cases {
        let refused = merchant.patch(&format!("{PATH}/{id}"), &change).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{change}: {refused}");
    }
    for (body, code) in [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        (r#"{"bank_account":{"conta":"1","conta":"2"}}"#, "duplicate_key"),
    ] {
        let headers = [("token", merchant.key.as_str()), ("content-type", "application/json")];
        let answer = world.send(reqwest::Method::PATCH, &format!("{PATH}/{id}"), &headers, body).await;
        answer.refused(400, code);
    }
    let after = [
        merchant.get(&format!("{PATH}/{id}")).await.expect(200),
        merchant.get(&format!("{PATH}/{company}")).await.expect(200),
    ];
    // Submission may have come between; nothing else has.
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(with(before, "/status", json!("")), with(after, "/status", json!("")));
    }
    assert!(world.since(&cut).await.len() <= 2, "no Record but the submissions");
}

#[tokio::test]
async fn a_change_leaves_the_status_and_a_rejected_recipient_registers_again() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = merchant.draft("Ana", 1).await;
    let path = format!("{PATH}/{id}");
    world.advance(0).await;
    let change = json!({"register_information": {"name": "Ana Prado"}});
    assert_eq!(merchant.patch(&path, &change).await.expect(200)["status"], "pending");
    let reject = format!("/ops/sub-recipients/{id}/reject");
    let rejected = world.ops_post(&reject, &json!({"notes": "Documento ilegível"})).await.expect(200);
    assert_eq!([&rejected["status"], &rejected["name"]], ["rejected", "Ana Prado"]);
    merchant.patch(&path, &change).await.refused(409, "state_conflict");
    // What is wrong with the change comes before where the recipient stands.
    let wrong = json!({"register_information": {"name": ""}});
    merchant.patch(&path, &wrong).await.refused(400, "validation_failed");
    merchant.post(PATH, &individual("Ana", &cpf(1))).await.expect(200);
    assert_eq!(merchant.patch(&path, &change).await.expect(200)["name"], "Ana Prado");
    world.ops_post(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await.expect(200);
    let changed = merchant.patch(&path, &json!({"bank_account": {"conta": "7"}})).await.expect(200);
    assert_eq!((&changed["status"], &changed["bank_account"]["conta"]), (&json!("active"), &json!("7")));
    let charge = with_splits(card(10_000, APPROVED), &[(&id, 1_000)]);
    merchant.post("/api/card", &charge).await.expect(201);
}

#[tokio::test]
async fn of_several_changes_at_once_none_is_lost() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = text(&merchant.post(PATH, &whole_individual()).await.expect(201)["id"]);
    let path = format!("{PATH}/{id}");
    let changes = [
        ("/register_information/name", json!("Novo")),
        ("/register_information/email", json!("novo@example.com")),
        ("/register_information/mother_name", json!("Nova")),
        ("/register_information/monthly_income", json!(1)),
        ("/bank_account/conta", json!("1")),
        ("/bank_account/agencia", json!("2")),
    ];
    let bodies: Vec<Value> = changes
        .iter()
        .map(|(pointer, value)| {
            let (section, name) = pointer[1..].split_once('/').unwrap();
            json!({section: {name: value}})
        })
        .collect();
    for round in 0..5 {
        let answers = futures_of(changes.len(), |index| merchant.patch(&path, &bodies[index])).await;
        for (answer, (pointer, value)) in answers.into_iter().zip(&changes) {
            assert_eq!(answer.expect(200).pointer(pointer), Some(value), "round {round}: it is in its own answer");
        }
        let record = merchant.get(&path).await.expect(200);
        for (pointer, value) in &changes {
            assert_eq!(record.pointer(pointer), Some(value), "round {round}: {pointer} of {record}");
        }
        let others = json!({"register_information": {"name": "X", "email": null, "mother_name": "X", "monthly_income": null},
            "bank_account": {"conta": "0", "agencia": "0"}});
        merchant.patch(&path, &others).await.expect(200);
    }
}

#[tokio::test]
async fn a_decision_that_is_told_again_shows_the_registration_of_its_time() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = merchant.draft("Ana", 1).await;
    let approve = format!("/ops/sub-recipients/{id}/approve");
    let key: Headers<'_> = &[("idempotency-key", "decision-1")];
    let first = world.ops_send(reqwest::Method::POST, &approve, key, "{}".to_owned()).await.expect(200);
    for change in 0..5 {
        let name = json!({"register_information": {"name": format!("Ana {change}")}});
        merchant.patch(&format!("{PATH}/{id}"), &name).await.expect(200);
    }
    let again = world.ops_send(reqwest::Method::POST, &approve, key, "{}".to_owned()).await;
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.expect(200), first);
}

/// Examples are copied: the bank accounts of the descriptions, the guides and the clients have
/// their check digits.
#[tokio::test]
async fn bank_accounts_of_examples_have_their_check_digits() {
    let world = World::sandbox().await;
    let mut accounts = Vec::new();
    accounts_in(&world.description.document, &mut accounts);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let mut folders = vec![format!("{root}docs"), format!("{root}examples"), format!("{root}tests/conformance")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match std::fs::read_to_string(&path) {
                Ok(text) => accounts.extend(text.split("bank_code").skip(1).filter_map(account_of_text)),
                Err(_) if path.is_dir() => folders.push(path.to_str().unwrap().to_owned()),
                Err(_) => {}
            }
        }
    }
    accounts.push(["001", "1234", "98765", &ops::invented_parties::account_digit("98765")].map(str::to_owned));
    assert!(accounts.len() >= 6, "{accounts:?}");
    for account in accounts {
        let [bank, branch, number, digit] = account.each_ref().map(String::as_str);
        let expected = match bank {
            "001" => modulo_11(number),
            "341" => modulo_10(&format!("{branch}{number}")),
            other => panic!("{other}: the rule of this bank is not here"),
        };
        assert_eq!(digit, expected, "{account:?}");
    }
}

/// The accounts with a digit that examples of a description have: bank, branch, number, digit. One
/// without a bank is of the bank of the others.
fn accounts_in(value: &Value, found: &mut Vec<[String; 4]>) {
    if value["conta_dv"].is_string() && value["conta"].is_string() {
        let of = |name: &str, absent: &str| value[name].as_str().unwrap_or(absent).to_owned();
        found.push([of("bank_code", "341"), of("agencia", "1234"), of("conta", ""), of("conta_dv", "")]);
    }
    let members = value.as_object().into_iter().flat_map(|members| members.values());
    members.chain(value.as_array().into_iter().flatten()).for_each(|inner| accounts_in(inner, found));
}

/// The account whose bank's code a text has just named.
fn account_of_text(behind: &str) -> Option<[String; 4]> {
    let end = behind.find('}')?;
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: Vec<_> = behind[..end].split(|letter| !is_of_word(letter)).filter(|word| !word.is_empty()).collect();
    let of = |name: &str| words.iter().position(|word| *word == name).and_then(|at| words.get(at + 1));
    let found = [words.first(), of("agencia"), of("conta"), of("conta_dv")];
    let is_code = words.first()?.len() == 3 && words.first()?.bytes().all(|byte| byte.is_ascii_digit());
    let [Some(bank), Some(branch), Some(number), Some(digit)] = found.map(|word| word.filter(|_| is_code)) else {
        return None;
    };
    Some([bank, branch, number, digit].map(|word| (*word).to_owned()))
}

/// Banco do Brasil: weights 2 to 9 from the right; 11 less the rest, 0 for 11 and X for 10.
fn modulo_11(number: &str) -> String {
    let digits = number.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 = digits.zip((2..=9).cycle()).map(|(digit, weight)| digit * weight).sum();
    match 11 - sum % 11 {
        11 => "0".to_owned(),
        10 => "X".to_owned(),
        digit => digit.to_string(),
    }
}

/// Itaú: branch and number, weights 2 and 1 from the right, sums of digits; 10 less the rest.
fn modulo_10(number: &str) -> String {
    let digits = number.bytes().rev().map(|digit| u32::from(digit - b'0'));
    let sum: u32 =
        digits.zip([2, 1].into_iter().cycle()).map(|(digit, weight)| digit * weight / 10 + digit * weight % 10).sum();
    ((10 - sum % 10) % 10).to_string()
}

/// An institution without a code of three digits is named by its ISPB; then it needs no branch.
#[tokio::test]
async fn an_account_is_named_by_an_ispb_beside_or_instead_of_a_code() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let with_account = |number, account: Value| with(&individual("Ana", &cpf(number)), "/bank_account", account);
    let register = async |body: &Value| merchant.post(PATH, body).await;
    let account = json!({"ispb": "18236120", "conta": "56789", "type": "conta_pagamento"});
    let id = text(&register(&with_account(1, account)).await.expect(201)["id"]);
    let shown = merchant.get(&format!("{PATH}/{id}")).await.expect(200)["bank_account"].clone();
    let values = ["bank_code", "agencia", "ispb", "type"].map(|name| shown[name].clone());
    assert_eq!(values, [Value::Null, Value::Null, json!("18236120"), json!("conta_pagamento")]);
    // A change adds to what stands, and takes the ISPB away only where a code takes its place.
    let patch = async |account: Value| merchant.patch(&format!("{PATH}/{id}"), &json!({"bank_account": account})).await;
    let refused = patch(json!({"ispb": null})).await.refused(400, "validation_failed");
    let fields: Vec<_> = items_of(&refused["errors"], "field");
    assert_eq!(fields, ["bank_account.bank_code", "bank_account.agencia"]);
    let both = patch(json!({"bank_code": "260", "agencia": "1"})).await.expect(200)["bank_account"].clone();
    assert_eq!((&both["bank_code"], &both["ispb"]), (&json!("260"), &json!("18236120")));
    let code = patch(json!({"ispb": null})).await.expect(200)["bank_account"].clone();
    assert_eq!((&code["bank_code"], &code["ispb"], &code["type"]), (&json!("260"), &Value::Null, &shown["type"]));
    let cases = [
        (json!({"ispb": "208", "conta": "1"}), "bank_account.ispb", "zeros_missing"),
        (json!({"ispb": "18.236.120", "conta": "1"}), "bank_account.ispb", "invalid_ispb"),
        (json!({"ispb": "18236120", "agencia_dv": "1", "conta": "1"}), "bank_account.agencia", "required"),
        (json!({"bank_code": "999", "ispb": "18236120", "conta": "1"}), "bank_account.bank_code", "invalid_bank_code"),
        (json!({"ispb": "18236120", "conta": "1".repeat(20), "conta_dv": "1"}), "bank_account.conta", "too_long"),
    ];
    for (account, field, code) in cases {
        let refused = register(&with_account(2, account)).await.refused(400, "validation_failed");
        let error = &refused["errors"][0];
        assert_eq!((&error["field"], &error["code"]), (&json!(field), &json!(code)), "{refused}");
    }
}

fn items_of(list: &Value, name: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| text(&item[name])).collect()
}
