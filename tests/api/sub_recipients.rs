//! Registration of sub-recipients, their review, and the list.

use serde_json::{Value, json};

use crate::world::*;

const PATH: &str = "/api/sub-recipients";
/// Of an item of the list.
const FIELDS: [&str; 10] = [
    "id",
    "status",
    "document_type",
    "document",
    "name",
    "email",
    "created_at",
    "bank_account_review",
    "frozen",
    "balance",
];
const LIST: &str = "/api/dashboard/sub-recipients";

/// Shows: 2.7.response.id, 2.7.response.status, 2.7.response.document_type, 2.7.response.document,
/// 2.7.response.name, 2.7.response.created_at, 2.7.response.already_exists, 3.4.draft,
/// 4.POST./api/sub-recipients.
#[tokio::test]
async fn a_registration_answers_as_the_interface_says() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let cases = [
        (individual("José Álvares", "123.456.789-09"), "CPF", "***.456.789-**", "José Álvares"),
        (corporation("Padaria Sol", "12.345.678/0001-95"), "CNPJ", "**.345.678/0001-**", "Padaria Sol"),
        (corporation("Novo CNPJ", "12ABC34501DE35"), "CNPJ", "**.ABC.345/01DE-**", "Novo CNPJ"),
    ];
    for (body, document_type, document, name) in cases {
        let answer = merchant.post(PATH, &body).await.expect(201);
        let fields = ["id", "status", "document_type", "document", "name", "created_at", "already_exists"];
        has_exactly(&answer, &fields);
        is_uuid(&answer["id"]);
        time(&answer["created_at"]);
        let said = ["status", "document_type", "document", "name"].map(|field| &answer[field]);
        assert_eq!(said, ["draft", document_type, document, name]);
        assert_eq!(answer["already_exists"], false);

        let again = merchant.post(PATH, &body).await.expect(200);
        assert_eq!((&again["id"], &again["already_exists"]), (&answer["id"], &json!(true)));
        assert_eq!([&again["created_at"], &again["document"]], [&answer["created_at"], &answer["document"]]);
    }
    assert_eq!(merchant.get(LIST).await.expect(200)["total"], 3);
}

#[tokio::test]
async fn a_known_document_names_what_was_ignored() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = individual("Ana", &cpf(1));
    merchant.post(PATH, &first).await.expect(201);
    let another = |path: &str, value: &str| with(&first, path, json!(value));
    let email = another("/register_information/email", "outra@example.com");
    for (body, ignored) in [
        (another("/bank_account/conta", "98765"), json!(["bank_account"])),
        (email.clone(), json!(["register_information.email"])),
        (with(&email, "/bank_account/agencia", json!("4321")), json!(["bank_account", "register_information.email"])),
        (first.clone(), Value::Null),
    ] {
        let again = merchant.post(PATH, &body).await.expect(200);
        assert_eq!((&again["already_exists"], &again["ignored"]), (&json!(true), &ignored), "{body}");
    }
}

/// Shows: 2.7.response.already_exists.
#[tokio::test]
async fn one_document_is_one_recipient_of_each_account() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let first = merchant.draft("Ana", 1).await;
    let punctuated = format!("{}.{}.{}-{}", &cpf(1)[..3], &cpf(1)[3..6], &cpf(1)[6..9], &cpf(1)[9..]);
    let again = merchant.post(PATH, &individual("Outra", &punctuated)).await.expect(200);
    assert_eq!((&again["id"], &again["name"]), (&json!(first), &json!("Ana")), "the existing record is returned");
    assert_ne!(other.draft("Ana", 1).await, first);
    let answers = futures_of(8, |_| merchant.post_raw(PATH, &[], individual("Rui", &cpf(2)).to_string())).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 200, 201]);
    assert!(answers.iter().all(|answer| answer.body["id"] == answers[0].body["id"]));
}

/// Shows: 3.4.pending, 3.4.active, 3.4.rejected.
#[tokio::test]
async fn a_recipient_goes_through_its_review() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let id = merchant.draft("Ana", 1).await;
    world.advance(0).await;
    assert_eq!(
        items(&merchant.get(LIST).await.expect(200))[0]["status"],
        "pending",
        "submitted before the clock answers"
    );
    let approve = format!("/ops/sub-recipients/{id}/approve");
    let reject = format!("/ops/sub-recipients/{id}/reject");
    for body in [json!({}), json!({"notes": ""}), json!({"notes": 7}), json!({"notes": "x".repeat(501)})] {
        world.ops_post(&reject, &body).await.refused(400, "validation_failed");
    }
    let rejected = world.ops_post(&reject, &json!({"notes": "Documento ilegível"})).await.expect(200);
    has_exactly(&rejected, &FIELDS);
    assert_eq!((&rejected["id"], &rejected["status"]), (&json!(id), &json!("rejected")));
    for (path, body) in [(&approve, json!({})), (&reject, json!({"notes": "De novo"}))] {
        world.ops_post(path, &body).await.refused(409, "already_decided");
    }
    let corrected =
        with(&individual("Ana Corrigida", &cpf(1)), "/register_information/email", json!("ana@example.com"));
    let again = merchant.post(PATH, &corrected).await.expect(200);
    let said = (&again["id"], &again["status"], &again["name"], &again["already_exists"]);
    assert_eq!(said, (&json!(id), &json!("draft"), &json!("Ana Corrigida"), &json!(true)));
    let approved = world.ops_post(&approve, &json!({})).await.expect(200);
    assert_eq!([&approved["status"], &approved["email"]], ["active", "ana@example.com"]);
    assert_eq!(approved["balance"], json!({"available": 0, "pending": 0, "paid": 0, "reserved": 0, "debt": 0}));
    world.ops_post(&reject, &json!({"notes": "Tarde"})).await.refused(409, "already_decided");
    assert_eq!(items(&merchant.get(LIST).await.expect(200))[0], approved);
}

/// Shows: 4.GET./api/dashboard/sub-recipients.
#[tokio::test]
async fn the_list_is_searched_without_case_and_accents_and_paged() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    other.draft("José de Outra Conta", 1).await;
    for (number, name) in [(1, "José Álvares"), (2, "MARIA JOSÉ"), (3, "Conceição  Lima"), (4, "Rui")] {
        merchant.draft(name, number).await;
    }
    let names = async |query: &str| -> Vec<String> {
        let list = merchant.get(&format!("{LIST}?{query}")).await.expect(200);
        items(&list).iter().map(|item| text(&item["name"])).collect()
    };
    for (search, expected) in [
        ("search=jose", &["MARIA JOSÉ", "José Álvares"][..]),
        ("search=JOS%C3%89", &["MARIA JOSÉ", "José Álvares"]),
        ("search=alvares", &["José Álvares"]),
        ("search=conceicao+lima", &["Conceição  Lima"]),
        ("search=%C3%A7", &["Conceição  Lima"]),
        ("search=ninguem", &[]),
        ("search=.*", &[]),
        ("search=", &["Rui", "Conceição  Lima", "MARIA JOSÉ", "José Álvares"]),
        ("per_page=3", &["Rui", "Conceição  Lima", "MARIA JOSÉ"]),
        ("per_page=3&page=2", &["José Álvares"]),
        ("per_page=3&page=3", &[]),
        ("search=jose&per_page=1&page=2", &["José Álvares"]),
    ] {
        assert_eq!(names(search).await, expected, "{search}");
    }
    let list = merchant.get(&format!("{LIST}?per_page=3&page=2")).await.expect(200);
    has_exactly(&list, &["items", "total", "page", "pages", "per_page"]);
    let numbers = ["total", "page", "pages", "per_page"].map(|name| list[name].as_u64().unwrap());
    assert_eq!(numbers, [4, 2, 2, 3]);
    let item = &items(&list)[0];
    has_exactly(item, &FIELDS);
    assert_eq!((&item["document_type"], &item["email"]), (&json!("CPF"), &Value::Null));
    assert!(text(&item["document"]).starts_with("***."));
    let unpaged = merchant.get(LIST).await.expect(200);
    assert_eq!((&unpaged["page"], &unpaged["per_page"]), (&json!(1), &json!(20)));
}

/// Shows: 2.7.type, 2.7.document_number, 2.7.name, 2.7.birthdate, 2.7.mother_name,
/// 2.7.company_name, 2.7.address, 2.7.phone_numbers, 2.7.managing_partners, 2.7.bank_code,
/// 2.7.agencia, 2.7.conta.
#[tokio::test]
async fn a_registration_is_checked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (person, company) = (individual("Ana", &cpf(1)), corporation("Sol", &cnpj(1)));
    let partner = "/register_information/managing_partners/0";
    let cases = [
        (&person, "/register_information", Value::Null, "register_information"),
        (&person, "/bank_account", Value::Null, "bank_account"),
        (&person, "/register_information/type", json!("robot"), "register_information.type"),
        (&person, "/register_information/type", Value::Null, "register_information.type"),
        (&person, "/register_information/document_number", json!(cnpj(1)), "register_information.document_number"),
        (
            &person,
            "/register_information/document_number",
            json!("12345678900"),
            "register_information.document_number",
        ),
        (&person, "/register_information/name", Value::Null, "register_information.name"),
        (&person, "/register_information/birthdate", json!("2000-02-29"), "register_information.birthdate"),
        (&person, "/register_information/birthdate", json!("29/02/2001"), "register_information.birthdate"),
        (&person, "/register_information/birthdate", json!("01/01/2999"), "register_information.birthdate"),
        (&person, "/register_information/mother_name", Value::Null, "register_information.mother_name"),
        (&person, "/register_information/address", Value::Null, "register_information.address"),
        (&person, "/register_information/address/zip_code", json!("123"), "register_information.address.zip_code"),
        (&person, "/register_information/address/state", json!("São"), "register_information.address.state"),
        (&person, "/register_information/address/state", json!("XX"), "register_information.address.state"),
        (&person, "/register_information/phone_numbers", json!([]), "register_information.phone_numbers"),
        (&person, "/register_information/phone_numbers/0/ddd", json!("1"), "register_information.phone_numbers[0].ddd"),
        (&person, "/register_information/email", json!("ana"), "register_information.email"),
        (&person, "/register_information/monthly_income", json!("1"), "register_information.monthly_income"),
        (&person, "/bank_account/bank_code", json!("34"), "bank_account.bank_code"),
        (&person, "/bank_account/agencia", Value::Null, "bank_account.agencia"),
        (&person, "/bank_account/conta", Value::Null, "bank_account.conta"),
        (&person, "/bank_account/type", json!("poupanca"), "bank_account.type"),
        (&person, "/bank_account/document_number", json!("1"), "bank_account.document_number"),
        (&company, "/register_information/company_name", Value::Null, "register_information.company_name"),
        (&company, "/register_information/document_number", json!(cpf(1)), "register_information.document_number"),
        (&company, "/register_information/managing_partners", json!([]), "register_information.managing_partners"),
        (&company, &format!("{partner}/email"), json!("sol"), "register_information.managing_partners[0].email"),
        (
            &company,
            &format!("{partner}/address/zipcode"),
            Value::Null,
            "register_information.managing_partners[0].address.zipcode",
        ),
        (
            &company,
            &format!("{partner}/address/street_number"),
            Value::Null,
            "register_information.managing_partners[0].address.street_number",
        ),
    ];
    let before = world.trace(&[&merchant]).await;
    for (valid, pointer, value, field) in cases {
        let refused = merchant.post(PATH, &with(valid, pointer, value)).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{refused}");
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
}

/// Shows: 5.4, 7.422-split.
#[tokio::test]
async fn an_account_without_split_is_told_so_and_may_get_it() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja", "document": cnpj(1), "split_enabled": false, "cashout_enabled": false}))
        .await;
    let before = world.trace(&[&merchant]).await;
    let refused = merchant.post(PATH, &individual("Ana", &cpf(1))).await.refused(422, "split_not_enabled");
    assert_eq!(refused["message"], "Conta não configurada para split");
    let unknown = "00000000-0000-8000-8000-000000000000";
    for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("10.00"))] {
        let charge = with_splits(charge, &[(unknown, 100)]);
        merchant.post(path, &charge).await.refused(422, "split_not_enabled");
    }
    assert_eq!(world.trace(&[&merchant]).await, before);
    assert_eq!(merchant.get(LIST).await.expect(200)["total"], 0);
    merchant.post("/api/card", &with(&card(10_000, APPROVED), "/splits", json!([]))).await.expect(201);
    let path = format!("/ops/merchants/{}", merchant.id);
    let changed = world.ops_send(reqwest::Method::PATCH, &path, &[], json!({"split_enabled": true}).to_string()).await;
    assert_eq!(changed.expect(200)["split_enabled"], true);
    merchant.draft("Ana", 1).await;
}

/// Money that fell due a moment ago is in the balance, before the schedule has looked.
#[tokio::test]
async fn one_recipient_shows_what_is_due_as_its_actor_has_it() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipients = [merchant.recipient("Ana", 1).await, merchant.recipient("Rui", 2).await];
    let splits = [(recipients[0].as_str(), 3_000), (recipients[1].as_str(), 2_000)];
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &splits)).await.expect(201);
    let statement = merchant.get(&format!("{LIST}/{}/splits", recipients[0])).await.expect(200);
    let due = time(&items(&statement)[0]["payment"]["balance_available_at"]);
    // Half a second before that minute: the schedule looks once a second.
    let before = (due - world.advance(0).await).num_milliseconds() - 500;
    world.advance(before / 1_000).await;
    while world.engine().now().0 < due.timestamp_millis() {
        tokio::task::yield_now().await;
    }
    let shown = merchant.get(&format!("{PATH}/{}", recipients[0])).await.expect(200);
    let change = json!({"register_information": {"email": "rui@example.com"}});
    let changed = merchant.patch(&format!("{PATH}/{}", recipients[1]), &change).await;
    let balance = |available| json!({"available": available, "pending": 0, "paid": 0, "reserved": 0, "debt": 0});
    assert_eq!([&shown["balance"], &changed.expect(200)["balance"]], [&balance(3_000), &balance(2_000)]);
}
