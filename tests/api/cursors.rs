//! Cursors of lists: what is made between two answers moves nothing.

use serde_json::{Value, json};

use crate::plans::PLANS;
use crate::world::*;

/// The id of an item of a list.
fn id_of(item: &Value) -> String {
    text(["id", "txid", "card_token"].iter().find_map(|name| item.get(name)).unwrap())
}

fn ids(list: &Value) -> Vec<String> {
    items(list).iter().map(id_of).collect()
}

impl Merchant<'_> {
    /// One more of everything that is listed at these paths.
    async fn make_another(&self, number: u32, plan: &str, recipient: &str) {
        self.post("/api/card", &with_splits(card(10_000, APPROVED), &[(recipient, 100)])).await.expect(201);
        self.paid_pix(&pix("30.00")).await;
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

const LISTS: [&str; 7] = [
    "/api/charges",
    "/api/charges?status=CONCLUIDA",
    "/api/cards",
    "/api/cashout",
    "/api/recurrency/subscriptions",
    "/api/dashboard/sub-recipients",
    "/api/disputes",
];

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
    for list in LISTS {
        let whole = merchant.get(list).await;
        assert_eq!(whole.header("link"), None, "{list}: a request without cursors is answered as before");
        has_exactly(&whole.expect(200), &["items", "total", "page", "pages", "per_page"]);
        let mark = if list.contains('?') { '&' } else { '?' };
        let expected = ids(&merchant.get(&format!("{list}{mark}per_page=100")).await.expect(200));
        assert!(expected.len() >= 4, "{list}: {expected:?}");
        let limit = expected.len() / 3 + 1;
        let mut address = Some(format!("{list}{mark}limit={limit}"));
        let mut seen = Vec::new();
        while let Some(path) = address {
            let answer = merchant.get(&path).await;
            let link = answer.header("link").map(str::to_owned);
            let page = answer.expect(200);
            assert!(items(&page).len() <= limit && page["per_page"] == limit, "{page}");
            seen.extend(ids(&page));
            address = page.get("next").map(text);
            assert_eq!(link, address.as_ref().map(|next| format!("<{next}>; rel=\"next\"")), "{path}");
            merchant.make_another(number, &plan, &recipient).await;
            number += 1;
        }
        assert_eq!(seen, expected, "{list}");
        let newer = merchant.get(&format!("{list}{mark}after={}&limit=100", expected[0])).await.expect(200);
        assert!(newer.get("next").is_none() && !ids(&newer).is_empty(), "{newer}");
        let all = merchant.get(&format!("{list}{mark}per_page=100")).await.expect(200);
        assert_eq!([ids(&newer), expected.clone()].concat(), ids(&all), "{list}: what came since, and what was there");
        let between = format!("{list}{mark}after={}&before={}", expected[3], expected[0]);
        assert_eq!(ids(&merchant.get(&between).await.expect(200)), expected[1..3], "{list}");
    }
    world.check_books().await;
}

#[tokio::test]
async fn a_cursor_names_an_item_of_the_account() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let foreign = text(&other.post("/api/pix", &pix("1.00")).await.expect(201)["txid"]);
    for list in ["/api/charges", "/api/dashboard/sub-recipients", "/api/disputes"] {
        for wrong in [foreign.as_str(), "x", "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e"] {
            for name in ["before", "after"] {
                let refused = merchant.get(&format!("{list}?{name}={wrong}")).await.refused(400, "validation_failed");
                assert_eq!(refused["errors"][0]["field"], name, "{refused}");
            }
        }
        merchant.get(&format!("{list}?limit=0")).await.refused(400, "validation_failed");
        merchant.get(&format!("{list}?limit=101")).await.refused(400, "validation_failed");
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
    merchant.get("/api/charges?limit=2&per_page=3").await.refused(400, "validation_failed");
}
