//! Lists of the things of all merchants: what is on them, their filters, their orders, their files,
//! and their pages.

use serde_json::{Value, json};

use crate::console::Browser;
use crate::world::*;

/// Two merchants; the first has one or more of everything that is listed.
struct Shops<'w> {
    one: Merchant<'w>,
    other: Merchant<'w>,
    ana: String,
    /// Ids by the names of their lists, oldest first.
    made: Vec<(&'static str, Vec<String>)>,
}

async fn id_of(answer: Answer, field: &str) -> String {
    text(&answer.expect(201)[field])
}

impl<'w> Shops<'w> {
    async fn on(world: &'w World) -> Self {
        let one = world.merchant().await;
        let other =
            world.open(json!({"name": "Padaria São João", "document": cnpj(90), "cashout_enabled": true})).await;
        let ana = one.recipient("Ana Araújo", 1).await;
        let bia = one.draft("Bia", 2).await;
        let pix_paid = text(&one.paid_pix(&with_splits(pix("100.00"), &[(&ana, 4_000)])).await["txid"]);
        let card_paid = one.post("/api/card", &with_splits(card(8_253, APPROVED), &[(&ana, 3_000)])).await;
        let card_paid = id_of(card_paid, "txid").await;
        let open = id_of(other.post("/api/pix", &pix("20.00")).await, "txid").await;
        let refund = |amount: i64| json!({"payment_id": pix_paid, "amount": amount, "reason": "Produto devolvido"});
        let refunds = [
            id_of(one.post("/api/refunds", &refund(300)).await, "id").await,
            id_of(one.post("/api/refunds", &refund(200)).await, "id").await,
        ];
        world.ops_post(&format!("/ops/refunds/{}/approve", refunds[0]), &json!({})).await.expect(200);
        let dispute = json!({"amount": 1_000, "kind": "med", "reason": "Não reconhece"});
        let dispute = world.ops_post(&format!("/ops/charges/{pix_paid}/disputes"), &dispute).await;
        let splits = one.statement(&ana).await;
        let split = items(&splits).iter().find(|split| split["payment"]["payment_method"] == "credit_card");
        let anticipated = json!({"split_ids": [split.unwrap()["id"]], "target_days": 2});
        one.post(&format!("/api/dashboard/sub-recipients/{ana}/anticipate"), &anticipated).await.expect(200);
        let withdrawal = text(&one.withdraw(&ana).await.expect(201)["withdrawal_id"]);
        let cashout = json!({"amount": 1_500, "pix_key": "maria@example.com", "pix_key_type": "email"});
        other.paid_pix(&pix("50.00")).await;
        let cashout = id_of(other.post("/api/cashout", &cashout).await, "id").await;
        let stored =
            json!({"credit_card": card(1, APPROVED)["credit_card"], "customer": card(1, APPROVED)["customer"]});
        let stored = id_of(one.post("/api/cards", &stored).await, "card_token").await;
        let plan = json!({"tag": "ouro", "amount": 1, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
            "initialGraceCycles": 1});
        let plan = id_of(one.post("/api/recurrency/plans", &plan).await, "id").await;
        let subscription = json!({"plan_id": plan, "payment_method": "pix", "customer": card(1, APPROVED)["customer"]});
        let subscription = id_of(one.post("/api/recurrency/subscriptions", &subscription).await, "id").await;
        let made = vec![
            ("charges", vec![pix_paid, card_paid, open]),
            ("refunds", refunds.to_vec()),
            ("disputes", vec![id_of(dispute, "id").await]),
            ("withdrawals", vec![withdrawal]),
            ("cashouts", vec![cashout]),
            ("subscriptions", vec![subscription]),
            ("cards", vec![stored]),
            ("recipients", vec![ana.clone(), bia]),
            ("merchants", vec![one.id.clone(), other.id.clone()]),
        ];
        Self { one, other, ana, made }
    }

    fn made(&self, list: &str) -> &[String] {
        &self.made.iter().find(|(name, _)| *name == list).unwrap().1
    }
}

/// All things of a list, two at a time.
async fn listed(world: &World, list: &str, query: &str) -> Vec<Value> {
    let (mut all, mut before) = (Vec::new(), String::new());
    loop {
        let page = world.ops_get(&format!("/ops/lists/{list}?per_page=2{query}{before}")).await.expect(200);
        assert!(items(&page).len() <= 2 && page.get("total").is_none(), "{page}");
        all.extend(items(&page).clone());
        let Some(next) = page.get("next_before") else { return all };
        before = format!("&before={}", next.as_u64().map_or_else(|| text(next), |next| next.to_string()));
    }
}

fn ids(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| text(&item["id"])).collect()
}

#[tokio::test]
async fn each_list_has_its_things_newest_first_with_names() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    for (list, made) in &shops.made {
        let found = listed(&world, list, "").await;
        let mut own = ids(&found);
        own.retain(|id| made.contains(id));
        assert_eq!(own.iter().rev().collect::<Vec<_>>(), made.iter().collect::<Vec<_>>(), "{list}");
        for item in &found {
            assert!(item["merchant_name"].is_string() && item["record"].is_string(), "{list}: {item}");
            let is_named = *list == "cashouts" || item["name"].is_string();
            assert!(is_named && item["created_at"].is_string(), "{list}: {item}");
        }
    }
    let one = async |list: &str| listed(&world, list, "").await.remove(0);
    let refund = one("refunds").await;
    assert_eq!((&refund["amount"], &refund["status"]), (&json!(200), &json!("pending")));
    assert_eq!((&refund["reason"], &refund["charge"]), (&json!("Produto devolvido"), &json!(shops.made("charges")[0])));
    let dispute = one("disputes").await;
    assert_eq!((&dispute["reason"], &dispute["status"]), (&json!("Não reconhece"), &json!("open")));
    let withdrawal = one("withdrawals").await;
    assert_eq!((&withdrawal["name"], &withdrawal["recipient_id"]), (&json!("Ana Araújo"), &json!(shops.ana)));
    let anticipation = one("anticipations").await;
    assert_eq!((&anticipation["name"], &anticipation["amount"]), (&json!("Ana Araújo"), &json!(3_000)));
    assert_eq!(anticipation["fee"], 71, "2.38 % of 30.00");
    let cashout = one("cashouts").await;
    assert_eq!((&cashout["amount"], &cashout["merchant_name"]), (&json!(1_500), &json!("Padaria São João")));
    let stored = one("cards").await;
    assert_eq!((&stored["document"], &stored["card"]["brand"]), (&json!("***.456.789-**"), &json!("visa")));
    let subscription = one("subscriptions").await;
    assert_eq!((&subscription["plan"], &subscription["amount"]), (&json!("ouro"), &json!(1)));
    assert!(subscription["next_charge_at"].is_string() && subscription.get("card").is_none(), "{subscription}");
}

/// `q` of a list finds what its rows show: their own id, payer, recipient, merchant, charge, card.
/// Several terms are all met, and a search for them finds the same.
#[tokio::test]
async fn a_list_finds_what_its_rows_show() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    let first = |list: &str| shops.made(list)[0].clone();
    let day = day_of(&listed(&world, "charges", "").await.remove(2)["created_at"]);
    let [pix_paid, card_paid, _] = shops.made("charges") else { panic!() };
    let by_card = json!({"plan_id": listed(&world, "subscriptions", "").await[0]["plan_id"], "card_token": first("cards"),
        "payment_method": "credit_card", "customer": card(1, APPROVED)["customer"]});
    let by_card = id_of(shops.one.post("/api/recurrency/subscriptions", &by_card).await, "id").await;
    let [later, earlier] = [&shops.made("refunds")[1], &shops.made("refunds")[0]];
    let (of_pix, of_card) = (&first("disputes"), &first("cards"));
    let payer = json!({"name": "Mônica Gonçalves", "document": "52998224725", "email": "monica@example.com"});
    let monica = with(
        &with(&card(9_900, APPROVED), "/customer/name", payer["name"].clone()),
        "/customer/document",
        payer["document"].clone(),
    );
    let monica = with(&monica, "/customer/email", payer["email"].clone());
    let charge = id_of(shops.other.post("/api/card", &monica).await, "txid").await;
    let own = json!({"payment_id": charge, "amount": 5_000});
    let own = id_of(shops.other.post("/api/refunds", &own).await, "id").await;
    let anticipation = text(&listed(&world, "anticipations", "").await[0]["id"]);
    let refunds = vec![later, earlier];
    for (list, sought, expected) in [
        ("refunds", "monica".to_owned(), vec![&own]),
        ("refunds", "goncalves monica".to_owned(), vec![&own]),
        ("refunds", "529.982.247-25".to_owned(), vec![&own]),
        ("refunds", "monica@example.com".to_owned(), vec![&own]),
        ("refunds", charge.clone(), vec![&own]),
        ("refunds", charge[..20].to_owned(), vec![&own]),
        ("refunds", "padaria".to_owned(), vec![&own]),
        ("refunds", "monica 50,00".to_owned(), vec![&own]),
        ("refunds", "monica 49,00".to_owned(), vec![]),
        ("refunds", format!("padaria monica@example.com {day}"), vec![&own]),
        ("refunds", "padaria dores".to_owned(), vec![]),
        ("refunds", "529 982 247 25".to_owned(), vec![&own]),
        ("refunds", "monica 1111".to_owned(), vec![&own]),
        ("refunds", "1111".to_owned(), vec![&own]),
        ("refunds", "50".to_owned(), vec![&own]),
        ("refunds", "monica 50".to_owned(), vec![]),
        ("refunds", "loja".to_owned(), refunds.clone()),
        ("refunds", pix_paid.clone(), refunds.clone()),
        ("refunds", format!("maria {day} R$ 3,00"), vec![earlier]),
        ("refunds", "maria 2001-01-01".to_owned(), vec![]),
        ("refunds", card_paid.clone(), vec![]),
        ("refunds", earlier.to_uppercase(), vec![earlier]),
        ("refunds", of_pix.clone(), vec![]),
        ("disputes", "maria".to_owned(), vec![of_pix]),
        ("disputes", of_pix.clone(), vec![of_pix]),
        ("disputes", "monica".to_owned(), vec![]),
        ("withdrawals", "araujo ana".to_owned(), vec![&first("withdrawals")]),
        ("withdrawals", "bia".to_owned(), vec![]),
        ("withdrawals", "loja".to_owned(), vec![&first("withdrawals")]),
        ("anticipations", "araujo".to_owned(), vec![&anticipation]),
        ("anticipations", anticipation.clone(), vec![&anticipation]),
        ("anticipations", "araujo 30,00".to_owned(), vec![&anticipation]),
        ("anticipations", "araujo 30,01".to_owned(), vec![]),
        ("cashouts", "padaria 15,00".to_owned(), vec![&first("cashouts")]),
        ("cashouts", first("cashouts"), vec![&first("cashouts")]),
        ("cards", "1111".to_owned(), vec![of_card]),
        ("cards", "•••• 1111 joao".to_owned(), vec![of_card]),
        ("cards", "1112".to_owned(), vec![]),
        ("cards", of_card.clone(), vec![of_card]),
        ("subscriptions", "1111".to_owned(), vec![&by_card]),
        ("subscriptions", "joao".to_owned(), vec![&by_card, &first("subscriptions")]),
        ("subscriptions", "joao 1111".to_owned(), vec![&by_card]),
        ("subscriptions", by_card.clone(), vec![&by_card]),
        ("recipients", shops.ana.clone(), vec![&shops.ana]),
        ("recipients", shops.one.id.clone(), vec![]),
        ("merchants", shops.other.id.clone(), vec![&shops.other.id]),
        ("merchants", "padaria joao".to_owned(), vec![&shops.other.id]),
        ("charges", "1111 99,00".to_owned(), vec![&charge]),
        ("charges", format!("1111 {day}"), vec![&charge, card_paid]),
        ("charges", "1111 2001-01-01".to_owned(), vec![]),
        ("charges", "monica 82,53".to_owned(), vec![]),
        ("charges", format!("82,53 {day} avila"), vec![card_paid]),
    ] {
        let query: String = form_urlencoded::byte_serialize(sought.as_bytes()).collect();
        let found = ids(&listed(&world, list, &format!("&q={query}")).await);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{list}: {sought}");
        // What several terms find, and an id, is what a search has of this kind.
        let are_several = sought.contains(' ') && sought.contains(char::is_numeric) && !sought.starts_with("529");
        if are_several || sought.len() == 36 {
            let answer = world.ops_get(&format!("/ops/search?q={query}")).await.expect(200);
            let group = answer["groups"].as_array().unwrap().iter().find(|group| group["kind"] == list);
            let searched = group.map_or_else(Vec::new, |group| ids(items(group)));
            assert_eq!(searched.iter().collect::<Vec<_>>(), expected, "search for {list}: {sought}");
        }
    }
    let answer = world.ops_get("/ops/search?q=1111").await.expect(200);
    let groups = answer["groups"].as_array().unwrap().iter();
    let groups: Vec<_> = groups.map(|group| (text(&group["kind"]), group["total"].as_u64().unwrap())).collect();
    let expected = [("charges", 2), ("subscriptions", 1), ("cards", 1)];
    assert_eq!(groups, expected.map(|(kind, count)| (kind.to_owned(), count)));
    let none = format!("&merchant_id={}", shops.one.id);
    assert!(listed(&world, "refunds", &format!("&q=monica{none}")).await.is_empty());
    assert!(listed(&world, "refunds", &format!("&q={own}{none}")).await.is_empty());

    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page("/console/lists/refunds?q=monica").await.has(&["Mônica Gonçalves", &own]);
    let nothing = browser.get("/console/find?q=monica+82,53").await;
    assert_eq!(nothing.status, 404);
    nothing.has(&["name=\"q\" value=\"monica 82,53\"", "Find: monica 82,53", "has all of this"]);
}

/// A subscription is found by the card that it has now, and by its first card.
#[tokio::test]
async fn a_subscription_is_found_by_its_new_card() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let stored = async |number: &str| {
        let card = without(&card(1, number), "/amount");
        text(&merchant.post("/api/cards", &card).await.expect(201)["card_token"])
    };
    let plan = json!({"tag": "ouro", "amount": 100, "billingCycle": "MONTHLY", "totalBillingCycles": 12});
    let plan = id_of(merchant.post("/api/recurrency/plans", &plan).await, "id").await;
    let begun = json!({"plan_id": plan, "payment_method": "credit_card", "card_token": stored(APPROVED).await,
        "customer": card(1, APPROVED)["customer"]});
    let ana = merchant.recipient("Ana Araújo", 1).await;
    let begun = with_splits(begun, &[(&ana, 30)]);
    let subscription = id_of(merchant.post("/api/recurrency/subscriptions", &begun).await, "id").await;
    let read = world.ops_get(&format!("/ops/subscriptions/{subscription}")).await.expect(200);
    assert_eq!(read["splits"], json!([{"sub_recipient_id": ana, "amount": 30}]));
    assert_eq!(read["recipients"], json!([{"id": ana, "name": "Ana Araújo"}]));
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/subscriptions/{subscription}")).await;
    page.has(&[&format!("/console/recipients/{ana}"), "Ana Araújo", "R$0.30"]);
    let other = json!({"card_token": stored("5555555555554444").await});
    merchant.patch(&format!("/api/recurrency/subscriptions/{subscription}"), &other).await.expect(200);
    for (last_four, is_found) in [("1111", true), ("4444", true), ("0002", false)] {
        let found = ids(&listed(&world, "subscriptions", &format!("&q={last_four}")).await);
        assert_eq!(found == [subscription.as_str()], is_found, "{last_four}");
    }
}

/// A subscription and a stored card are read one by one, and have a page.
#[tokio::test]
async fn a_subscription_and_a_stored_card_are_read_by_operators() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    let by_card = json!({"plan_id": world.ops_get("/ops/lists/subscriptions").await.expect(200)["items"][0]["plan_id"],
        "payment_method": "credit_card", "card_token": shops.made("cards")[0], "customer": card(1, APPROVED)["customer"]});
    let subscription = id_of(shops.one.post("/api/recurrency/subscriptions", &by_card).await, "id").await;
    let mut own = shops.one.get(&format!("/api/recurrency/subscriptions/{subscription}")).await.expect(200);
    own["customer"]["email"] = json!("j***@example.com");
    let read = world.ops_get(&format!("/ops/subscriptions/{subscription}")).await.expect(200);
    for (member, value) in own.as_object().unwrap() {
        assert_eq!(&read[member], value, "{member}");
    }
    let added = [&read["merchant_id"], &read["plan"], &read["amount"], &read["card"]["brand"]];
    assert_eq!(added, [&json!(shops.one.id), &json!("ouro"), &json!(1), &json!("visa")]);
    let token = &shops.made("cards")[0];
    let mut own = shops.one.get(&format!("/api/cards/{token}")).await.expect(200);
    own["customer"]["email"] = json!("j***@example.com");
    let stored = world.ops_get(&format!("/ops/cards/{token}")).await.expect(200);
    assert_eq!(stored["merchant_id"], json!(shops.one.id));
    assert!(own.as_object().unwrap().iter().all(|(member, value)| stored[member] == *value), "{stored}");
    for path in ["subscriptions/x".to_owned(), format!("subscriptions/{token}"), format!("cards/{subscription}")] {
        world.ops_get(&format!("/ops/{path}")).await.refused(404, "not_found");
    }

    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let last4 = text(&stored["last4"]);
    let face = format!("Visa •••• {last4}");
    let (of_subscription, of_card) =
        (format!("/console/subscriptions/{subscription}"), format!("/console/cards/{token}"));
    let listed = browser.page("/console/lists/subscriptions").await;
    listed.has(&[&of_subscription, "ouro", "R$0.01", &face]);
    browser.page(&of_subscription).await.has(&["ouro", "R$0.01", &of_card, &face, "Subscription created"]);
    browser.page("/console/lists/cards").await.has(&[&of_card, &face]);
    browser.page(&of_card).await.has(&[&face, &format!("{of_card}/delete"), "João Ávila"]);
    assert_eq!(browser.get(&format!("/console/cards/{subscription}")).await.status, 404);
    let file = world.ops_get("/ops/lists/subscriptions?format=csv-ptbr").await;
    assert!(file.text.lines().next().unwrap().ends_with(";Plano;Próxima cobrança;Cartão"), "{}", file.text);
    assert!(file.text.contains(&format!(";visa {last4}")) && file.text.contains(";0,01;"), "{}", file.text);
}

#[tokio::test]
async fn a_filter_leaves_what_meets_all_of_it() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    let (one, other) = (&shops.one.id, &shops.other.id);
    let [paid, carded, open] = shops.made("charges") else { panic!() };
    let [large, small] = shops.made("refunds") else { panic!() };
    let today = day_of(&listed(&world, "refunds", "").await[0]["created_at"]);
    for (list, query, expected) in [
        ("charges", "status=pending".to_owned(), vec![open]),
        ("charges", "payment_method=credit_card".to_owned(), vec![carded]),
        ("charges", format!("recipient_id={}&amount_from=9000", shops.ana), vec![paid]),
        ("refunds", "status=approved".to_owned(), vec![large]),
        ("refunds", "status=pending&amount_to=200".to_owned(), vec![small]),
        ("refunds", "amount_from=201".to_owned(), vec![large]),
        ("refunds", format!("merchant_id={other}"), vec![]),
        ("refunds", format!("merchant_id={one}&from={today}&to={today}"), vec![small, large]),
        ("refunds", "from=2000-01-01&to=2000-01-02".to_owned(), vec![]),
        ("refunds", "from=2100-01-01".to_owned(), vec![]),
        ("withdrawals", format!("recipient_id={}", shops.ana), shops.made("withdrawals").iter().collect()),
        ("charges", "recipient=ARAUJO&amount_from=9000".to_owned(), vec![paid]),
        ("withdrawals", format!("recipient={}", shops.ana), shops.made("withdrawals").iter().collect()),
        ("withdrawals", "recipient=Bia".to_owned(), vec![]),
        ("cashouts", format!("merchant_id={one}"), vec![]),
        ("cashouts", "merchant=padaria".to_owned(), shops.made("cashouts").iter().collect()),
        ("refunds", format!("merchant=M-{one}"), vec![small, large]),
        ("recipients", "merchant=S%C3%A3o%20Jo%C3%A3o".to_owned(), vec![]),
        ("recipients", "status=active".to_owned(), vec![&shops.ana]),
        ("recipients", "named=ARAUJ".to_owned(), vec![&shops.ana]),
        ("merchants", "named=sao".to_owned(), vec![other]),
        ("merchants", format!("merchant_id={one}"), vec![one]),
        ("merchants", "status=suspended".to_owned(), vec![]),
    ] {
        let found = ids(&listed(&world, list, &format!("&{query}")).await);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{list}?{query}");
    }
    for (path, code) in [
        ("refunds?status=x", "unknown"),
        ("refunds?payment_method=pix", "unknown_parameter"),
        ("cards?status=x", "unknown_parameter"),
        ("charges?named=x", "unknown_parameter"),
        ("refunds?from=x", "invalid_time"),
        ("refunds?order=x", "unknown"),
        ("refunds?page=1", "unknown_parameter"),
        ("refunds?order=oldest&before=7", "unknown_parameter"),
        ("refunds?format=pdf", "unknown"),
        ("refunds?merchant=Ana", "unknown"),
        ("charges?recipient=Padaria", "unknown"),
        ("refunds?recipient=Ana", "unknown_parameter"),
        (&format!("charges?recipient=Ana&recipient_id={}", shops.ana), "twice"),
        (&format!("charges?merchant=Padaria&merchant_id={one}"), "twice"),
    ] {
        let refused = world.ops_get(&format!("/ops/lists/{path}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["code"], code, "{path}: {refused}");
    }
    let unknown = "refunds?merchant_id=019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e";
    for path in ["x", "plans", unknown, &format!("charges?merchant={}", shops.ana)] {
        world.ops_get(&format!("/ops/lists/{path}")).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_list_is_sorted_and_given_as_a_file() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    let refunds = shops.made("refunds");
    for (order, expected) in [("oldest", [0, 1]), ("largest", [0, 1]), ("smallest", [1, 0])] {
        let page = world.ops_get(&format!("/ops/lists/refunds?order={order}")).await.expect(200);
        let expected = expected.map(|place: usize| refunds[place].clone());
        assert_eq!((ids(items(&page)), &page["total"]), (expected.to_vec(), &json!(2)), "{order}");
    }
    let second = world.ops_get("/ops/lists/refunds?order=smallest&per_page=1&page=2").await.expect(200);
    assert_eq!((ids(items(&second)), &second["total"]), (vec![refunds[0].clone()], &json!(2)));
    let named = world.ops_get("/ops/lists/recipients?order=name").await.expect(200);
    assert_eq!((&items(&named)[0]["name"], &items(&named)[1]["name"]), (&json!("Ana Araújo"), &json!("Bia")));

    let charges = world.ops_get("/ops/lists/charges?order=status").await.expect(200);
    let statuses: Vec<_> = items(&charges).iter().map(|item| text(&item["status"])).collect();
    let place =
        |status: &String| ["pending", "CONCLUIDA", "RECUSADA", "cancelled"].iter().position(|own| own == status);
    assert!(statuses.is_sorted_by_key(place) && statuses.first() != statuses.last(), "{statuses:?}");

    let csv = world.ops_get("/ops/lists/refunds?format=csv&order=smallest").await;
    assert!(csv.header("content-disposition").unwrap().contains("refunds.csv"));
    let lines: Vec<_> = csv.text.lines().collect();
    assert!(
        lines[0].starts_with("created_at,name,document,status,payment_method,amount,fee,merchant,reason,due_at,id,")
    );
    assert!(lines.len() == 3 && lines[1].contains(&refunds[1]) && lines[2].contains(&refunds[0]), "{}", csv.text);
    assert!(lines[1].contains(",pending,,200,,Loja Azul,Produto devolvido,,"), "{}", lines[1]);
    let brazilian = world.ops_get("/ops/lists/charges?format=csv-ptbr&payment_method=credit_card").await;
    let heads = "Criado em;Nome;Documento;Situação;Meio de pagamento;Valor;Lojista;ID;ID do lojista";
    assert_eq!(
        brazilian.text.lines().next().unwrap(),
        format!("\u{feff}{heads}"),
        "what a charge cannot have is left out"
    );
    assert!(brazilian.text.contains(";paga;cartão de crédito;82,53;"), "{}", brazilian.text);
    let brazilian = world.ops_get("/ops/lists/refunds?format=csv-ptbr&order=smallest").await;
    assert!(
        brazilian.text.lines().next().unwrap().contains(";Situação;Valor;Lojista;Motivo;ID;"),
        "{}",
        brazilian.text
    );
    assert!(brazilian.text.contains(";pendente;2,00;"), "{}", brazilian.text);
    for (list, made) in &shops.made {
        let csv = world.ops_get(&format!("/ops/lists/{list}?format=csv")).await;
        assert!(made.iter().all(|id| csv.text.contains(id)), "{list}: {}", csv.text);
    }
}

#[tokio::test]
async fn what_takes_too_long_to_sort_is_sorted_in_part_and_says_so() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.post("/api/pix", &pix("10.00")).await.expect(201);
    world.fill(20_010).await;
    let sorted = world.ops_get("/ops/lists/charges?order=largest").await.expect(200);
    assert_eq!(sorted, json!({"items": [], "total": 0, "more": true}), "20,000 Records were read");
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console/lists/charges?order=largest").await;
    page.has(&["only the newest 2,000 of this filter are in order", "/console/lists/charges?format=csv\""]);
    let file = world.ops_get("/ops/lists/charges?order=largest&format=csv").await.refused(400, "validation_failed");
    assert_eq!((&file["errors"][0]["field"], &file["errors"][0]["code"]), (&json!("order"), &json!("too_many_items")));
    let of_one = world.ops_get(&format!("/ops/lists/charges?order=largest&merchant_id={}", merchant.id)).await;
    let of_one = of_one.expect(200);
    assert_eq!((&of_one["total"], of_one.get("more")), (&json!(1), None), "a smaller filter");
}

#[tokio::test]
async fn the_pages_of_lists_have_filters_orders_and_files() {
    let world = World::sandbox().await;
    let shops = Shops::on(&world).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for (list, made) in &shops.made {
        let page = browser.page(&format!("/console/lists/{list}")).await;
        page.has(&["class=\"list\"", &made[0], "format=xlsx", "order=oldest", "aria-sort=\"descending\""]);
        assert_eq!(page.html.matches(">CSV</a>").count(), 1, "one file has the name");
        assert!(page.html.contains("/console/lists/withdrawals"), "a way to the other lists");
    }
    let page = browser.page("/console/lists/refunds?status=pending&amount_from=&amount_to=2.00&order=smallest").await;
    page.has(&[
        "Maria das Dores",
        "Produto devolvido",
        "aria-sort=\"ascending\"",
        "<option value=\"pending\" selected",
    ]);
    let is_there = |refund: &String| page.html.contains(&format!("/console/queue/{refund}"));
    assert_eq!(shops.made("refunds").iter().map(is_there).collect::<Vec<_>>(), [false, true]);
    page.has(&["status=pending&amp;amount_from=&amp;amount_to=2.00&amp;order=largest"]);
    let file = browser.get("/console/lists/refunds?status=pending&amount_to=2.00&format=csv").await;
    assert!(file.html.contains(",200,") && !file.html.contains(",300,"), "{}", file.html);
    let scoped = browser.page(&format!("/console/lists/refunds?merchant_id={}", shops.other.id)).await;
    scoped.has(&["Only of", "Padaria São João", "Nothing here."]);
    let named = browser.page("/console/lists/cashouts?merchant=Padaria+S%C3%A3o+Jo%C3%A3o&order=oldest").await;
    named.has(&["name=\"merchant\"", "value=\"Padaria São João\"", &shops.made("cashouts")[0]]);
    let of_ana = browser.page(&format!("/console/lists/charges?recipient_id={}", shops.ana)).await;
    of_ana.has(&["name=\"recipient\"", &format!("value=\"{}\"", shops.ana), &shops.made("charges")[0]]);
    assert!(!of_ana.html.contains(&shops.made("charges")[2]), "{}", of_ana.html);
    assert!(!scoped.html.contains("name=\"merchant\""), "the scope is the merchant");
    browser.page("/console/lists/refunds?flag=disputed").await.has(&[&shops.made("refunds")[1]]);
    let wrong = browser.get("/console/lists/cashouts?merchant=Ninguem").await;
    assert_eq!(wrong.status, 400);
    wrong.has(&["aria-invalid=\"true\"", "value=\"Ninguem\""]);
    for wrong in ["refunds?status=x", "refunds?flag=1", "cards?amount_from=1"] {
        assert_eq!(browser.get(&format!("/console/lists/{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(browser.get("/console/lists/x").await.status, 404);
}
