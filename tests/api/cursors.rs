//! Cursors of lists: what is made between two answers moves nothing.

use serde_json::{Value, json};

use crate::plans::PLANS;
use crate::world::*;

/// The id of an item of a list.
fn id_of(item: &Value) -> String {
    text(["id", "txid", "card_token"].iter().find_map(|name| item.get(name)).unwrap())
}

fn ids(list: &Value) -> Vec<String> {
    let items = list.get("items").or(list.get("plans")).and_then(Value::as_array);
    items.unwrap_or_else(|| panic!("a list: {list}")).iter().map(id_of).collect()
}

impl Merchant<'_> {
    /// One more of everything that is listed at these paths.
    async fn make_another(&self, number: u32, plan: &str, recipient: &str) {
        let twice = [(recipient, 100), (recipient, 200)];
        self.post("/api/card", &with_splits(card(10_000, APPROVED), &twice)).await.expect(201);
        let paid = self.paid_pix(&with_splits(pix("30.00"), &twice)).await;
        let body = json!({"payment_id": paid["txid"], "amount": 10});
        self.post("/api/refunds", &body).await.expect(201);
        let withdrawal = text(&self.withdraw(recipient).await.expect(201)["withdrawal_id"]);
        self.world.ops_post(&format!("/ops/withdrawals/{withdrawal}/approve"), &json!({})).await.expect(200);
        let another =
            json!({"tag": format!("plano {number}"), "amount": 1, "billingCycle": "ANNUAL", "totalBillingCycles": 1});
        self.post(PLANS, &another).await.expect(201);
        let stored = without(&card(1, APPROVED), "/amount");
        self.post("/api/cards", &stored).await.expect(201);
        let body = json!({"amount": 500, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
        self.post("/api/cashout", &body).await.expect(201);
        let body = json!({"plan_id": plan, "payment_method": "pix", "customer": card(1, APPROVED)["customer"]});
        self.post("/api/recurrency/subscriptions", &body).await.expect(201);
        self.recipient(&format!("Ana {number}"), number).await;
        let paid = items(&self.get("/api/charges?status=CONCLUIDA&payment_method=pix").await.expect(200))[0].clone();
        let path = format!("/ops/charges/{}/disputes", text(&paid["txid"]));
        let body = json!({"amount": 100, "kind": "med", "reason": "Golpe"});
        self.world.ops_post(&path, &body).await.expect(201);
    }
}

/// What has the items of one page.
const PAGE: &[&str] = &["items", "total", "page", "pages", "per_page"];

/// The lists, and what an answer has without cursors. Those that soon have more than a page of 100
/// come first.
fn lists(recipient: &str) -> Vec<(String, &'static [&'static str])> {
    let statement: &[&str] = &["items", "total", "page", "pages", "per_page", "balance", "fiscal"];
    let of_recipient = |list: &str| format!("/api/dashboard/sub-recipients/{recipient}/{list}");
    let others = ["/api/charges", "/api/charges?status=CONCLUIDA", "/api/cards", "/api/cashout", "/api/disputes"];
    let others = others.into_iter().chain(["/api/recurrency/subscriptions", "/api/dashboard/sub-recipients"]);
    [
        ("/api/balance/operations".to_owned(), PAGE),
        ("/api/balance/operations?type=split".to_owned(), PAGE),
        (of_recipient("splits"), statement),
        (of_recipient("splits?status=pending"), statement),
        (of_recipient("withdraw"), &["items"]),
        (of_recipient("anticipate"), &["items", "rates"]),
        (PLANS.to_owned(), &["plans"]),
        ("/api/refunds".to_owned(), &["items", "total"]),
        ("/api/refunds?status=pending".to_owned(), &["items", "total"]),
    ]
    .into_iter()
    .chain(others.map(|list| (list.to_owned(), PAGE)))
    .collect()
}

/// The address of a list with a query, where it may have one already.
fn asking(list: &str, query: &str) -> String {
    format!("{list}{}{query}", if list.contains('?') { '&' } else { '?' })
}

/// Follows `next` from an address on; before each further answer, one more of everything is made.
#[tokio::test]
async fn what_is_made_between_two_answers_moves_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let plan = json!({"tag": "ouro", "amount": 1, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
        "initialGraceCycles": 1});
    let plan = text(&merchant.post(PLANS, &plan).await.expect(201)["id"]);
    for number in 2..6 {
        merchant.make_another(number, &plan, &recipient).await;
    }
    let mut number = 6;
    for (list, members) in lists(&recipient) {
        let whole = merchant.get(&list).await;
        assert_eq!(whole.header("link"), None, "{list}: a request without cursors is answered as before");
        has_exactly(&whole.expect(200), members);
        let has_pages = members.contains(&"per_page");
        let all = if has_pages { asking(&list, "per_page=100") } else { list.clone() };
        let expected = ids(&merchant.get(&all).await.expect(200));
        assert!(expected.len() >= 4, "{list}: {expected:?}");
        let limit = expected.len() / 3 + 1;
        let mut address = Some(asking(&list, &format!("limit={limit}")));
        let mut seen = Vec::new();
        while let Some(path) = address {
            let answer = merchant.get(&path).await;
            let link = answer.header("link").map(str::to_owned);
            let page = answer.expect(200);
            assert!(ids(&page).len() <= limit && (!has_pages || page["per_page"] == limit), "{page}");
            seen.extend(ids(&page));
            assert!(seen.len() <= expected.len(), "{path}: the same again");
            address = page.get("next").map(text);
            assert_eq!(link, address.as_ref().map(|next| format!("<{next}>; rel=\"next\"")), "{path}");
            merchant.make_another(number, &plan, &recipient).await;
            number += 1;
        }
        assert_eq!(seen, expected, "{list}");
        let newer = asking(&list, &format!("after={}&limit=100", expected[0]));
        let newer = merchant.get(&newer).await.expect(200);
        assert!(newer.get("next").is_none() && !ids(&newer).is_empty(), "{newer}");
        let all = merchant.get(&all).await.expect(200);
        assert_eq!([ids(&newer), expected.clone()].concat(), ids(&all), "{list}: what came since, and what was there");
        let between = asking(&list, &format!("after={}&before={}", expected[3], expected[0]));
        assert_eq!(ids(&merchant.get(&between).await.expect(200)), expected[1..3], "{list}");
    }
}

/// Follows `next` from an address on: the named field of each item, and how many answers there
/// were.
async fn followed(merchant: &Merchant<'_>, address: &str, field: &str) -> (Vec<Value>, usize) {
    let (mut seen, mut address, mut answers) = (Vec::new(), Some(address.to_owned()), 0);
    while let Some(path) = address {
        let page = merchant.get(&path).await.expect(200);
        seen.extend(items(&page).iter().map(|item| item[field].clone()));
        answers += 1;
        assert!(answers < 20, "{path}: it does not end");
        address = page.get("next").map(text);
    }
    (seen, answers)
}

/// Events go on by their `sequence`, in either order, and keys by their ids.
#[tokio::test]
async fn events_and_keys_go_on_by_next() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for _ in 0..5 {
        merchant.paid_pix(&pix("1.00")).await;
        merchant.post("/api/keys", &json!({"scopes": ["read"]})).await.expect(201);
    }
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let mut newest: Vec<Value> = items(&events).iter().map(|event| event["sequence"].clone()).collect();
    assert!(newest.len() >= 5 && events.get("next").is_none(), "{events}");
    let pages = newest.len().div_ceil(2);
    let before = newest[1].as_u64().unwrap();
    assert_eq!(followed(&merchant, "/api/events?limit=2", "sequence").await, (newest.clone(), pages));
    let page = merchant.get("/api/events?per_page=2&page=1").await.expect(200);
    assert!(page.get("next").is_none(), "a request without cursors is answered as before: {page}");
    let older = followed(&merchant, &format!("/api/events?limit=2&before={before}"), "sequence").await.0;
    assert_eq!(older, newest[2..]);
    newest.reverse();
    assert_eq!(followed(&merchant, "/api/events?limit=2&after=0&wait=0", "sequence").await, (newest.clone(), pages));
    let between = followed(&merchant, &format!("/api/events?limit=1&after=1&before={before}"), "sequence").await.0;
    assert_eq!(between, newest[1..newest.len() - 2]);
    let answer = merchant.get(&format!("/api/events?after=1&before={before}")).await.expect(200);
    assert_eq!(answer["total"], newest.len() - 3);
    for empty in ["after=999", "before=0", "before=1", "after=999&before=5", "page=9"] {
        let answer = merchant.get(&format!("/api/events?{empty}")).await.expect(200);
        assert!(items(&answer).is_empty() && answer.get("next").is_none(), "{empty}: {answer}");
    }
    let keys = merchant.get("/api/keys").await.expect(200);
    has_exactly(&keys, &["items", "total"]);
    let mut newest: Vec<Value> = items(&keys).iter().map(|key| key["id"].clone()).collect();
    newest.reverse();
    let pages = newest.len().div_ceil(2);
    for two in ["/api/keys?limit=2", "/api/keys?per_page=2", "/api/keys?limit=2&per_page=20"] {
        assert_eq!(followed(&merchant, two, "id").await, (newest.clone(), pages), "{two}");
    }
    let newer = merchant.get(&format!("/api/keys?after={}", text(&newest[2]))).await.expect(200);
    assert_eq!((ids(&newer), &newer["total"]), (newest[..2].iter().map(text).collect(), &json!(2)));
    merchant.get("/api/keys?before=x").await.refused(400, "validation_failed");
}

/// Several items of one Record, one an answer: operations of a sale, and splits of one charge.
#[tokio::test]
async fn an_answer_may_end_between_the_items_of_one_record() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let parts = [(&*recipient, 100), (&*recipient, 200), (&*recipient, 300)];
    let paid = text(&merchant.paid_pix(&with_splits(pix("30.00"), &parts)).await["txid"]);
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &parts)).await.expect(201);
    let pending = text(&merchant.post("/api/pix", &with_splits(pix("9.00"), &parts)).await.expect(201)["txid"]);
    let splits = format!("/api/dashboard/sub-recipients/{recipient}/splits");
    let operations = "/api/balance/operations".to_owned();
    let lists = [operations.clone(), format!("{operations}?charge={paid}"), splits.clone()];
    for list in lists {
        let expected = ids(&merchant.get(&asking(&list, "per_page=100")).await.expect(200));
        let (mut seen, mut address) = (Vec::new(), Some(asking(&list, "limit=1")));
        while let Some(path) = address {
            let page = merchant.get(&path).await.expect(200);
            assert_eq!(page["total"], expected.len() - seen.len(), "{path}");
            seen.extend(ids(&page));
            address = page.get("next").map(text);
        }
        assert_eq!(seen, expected, "{list}");
        for (newer, older) in (0..expected.len()).zip(2..expected.len()) {
            let between = asking(&list, &format!("before={}&after={}", expected[newer], expected[older]));
            assert_eq!(ids(&merchant.get(&between).await.expect(200)), expected[newer + 1..older], "{between}");
        }
    }
    // The splits of a charge that is cancelled are gone, and a cursor among them still has its
    // place.
    let rest = ids(&merchant.get(&format!("{splits}?per_page=100")).await.expect(200)).split_off(3);
    merchant.post(&format!("/api/charges/{pending}/cancel"), &json!({})).await.expect(200);
    for index in 0..3 {
        let path = format!("{splits}?before={pending}-{index}");
        assert_eq!(ids(&merchant.get(&path).await.expect(200)), rest, "{path}");
    }
    let other = merchant.recipient("Bia", 2).await;
    let path = format!("/api/dashboard/sub-recipients/{other}/splits?before={paid}-0");
    merchant.get(&path).await.refused(400, "validation_failed");
}

#[tokio::test]
async fn a_cursor_names_an_item_of_the_account() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let foreign = text(&other.post("/api/pix", &pix("1.00")).await.expect(201)["txid"]);
    let ana = other.recipient("Ana", 1).await;
    let own = merchant.recipient("Bia", 2).await;
    let of_recipient = ["splits", "withdraw"].map(|list| format!("/api/dashboard/sub-recipients/{own}/{list}"));
    let lists = ["/api/charges", "/api/dashboard/sub-recipients", "/api/disputes", "/api/refunds", PLANS];
    let lists = lists.into_iter().chain(["/api/balance/operations"]).chain(of_recipient.iter().map(String::as_str));
    for list in lists {
        for wrong in [&*foreign, &*format!("{foreign}-0"), &*ana, "x", "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e"] {
            for name in ["before", "after"] {
                let refused = merchant.get(&format!("{list}?{name}={wrong}")).await.refused(400, "validation_failed");
                assert_eq!(refused["errors"][0]["field"], name, "{refused}");
            }
        }
        merchant.get(&format!("{list}?limit=0")).await.refused(400, "validation_failed");
        merchant.get(&format!("{list}?limit=101")).await.refused(400, "validation_failed");
    }
    // An id is known in each of its forms.
    for id in [own.replace('-', ""), own.to_uppercase()] {
        let list = merchant.get(&format!("/api/dashboard/sub-recipients?before={id}")).await.expect(200);
        assert!(ids(&list).is_empty(), "{list}");
    }
    let labelled = json!({"loja": "azul"});
    let mut made = Vec::new();
    for _ in 0..3 {
        let body = with(&card(1_000, APPROVED), "/metadata", labelled.clone());
        made.insert(0, text(&merchant.post("/api/card", &body).await.expect(201)["txid"]));
    }
    let first = merchant.get("/api/charges?metadata[loja]=azul&limit=2").await.expect(200);
    assert_eq!(ids(&first), made[..2]);
    let rest = merchant.get(&text(&first["next"])).await.expect(200);
    assert_eq!((ids(&rest), rest.get("next")), (made[2..].to_vec(), None));
    // Also where what was read has another label by then.
    let change = format!("/api/charges/{}", made[1]);
    merchant.patch(&change, &json!({"metadata": {"loja": "verde"}})).await.expect(200);
    assert_eq!(ids(&merchant.get(&text(&first["next"])).await.expect(200)), made[2..]);
    // Generated clients send the default of `per_page` too.
    let both = merchant.get("/api/charges?limit=2&per_page=20&page=1").await.expect(200);
    assert_eq!((&both["per_page"], both["next"].is_string()), (&json!(2), true), "{both}");
}
