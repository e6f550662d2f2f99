//! Operators' reads across merchants: the newest charges, one charge, one recipient, one block, the
//! movements by minute.

use serde_json::{Value, json};
use store::Sequence;
use store::cut::Position;

use crate::world::*;

/// The txids of a page of the newest charges, and where it goes on.
async fn newest(world: &World, query: &str) -> (Vec<String>, Option<String>) {
    let page = world.ops_get(&format!("/ops/lists/charges{query}")).await.expect(200);
    (items(&page).iter().map(|charge| text(&charge["id"])).collect(), next_before(&page))
}

/// Where a page goes on: a Record where there is one partition, and otherwise one of each.
fn next_before(page: &Value) -> Option<String> {
    let next = page.get("next_before")?;
    Some(next.as_u64().map_or_else(|| text(next), |next| next.to_string()))
}

#[tokio::test]
async fn the_newest_charges_of_all_merchants_are_read_back_from_the_end() {
    let world = World::sandbox().await;
    assert_eq!(newest(&world, "").await, (vec![], None), "an empty journal");
    let one = world.merchant().await;
    let other = world.open(json!({"name": "Padaria", "document": cnpj(90)})).await;
    let mut txids = Vec::new();
    for number in 0..5 {
        let merchant = if number % 2 == 0 { &one } else { &other };
        txids.insert(0, text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]));
    }
    one.pay(&txids[0]).await.expect(200);
    let (all, end) = newest(&world, "").await;
    assert_eq!((&all, end), (&txids, None));
    let page = world.ops_get("/ops/lists/charges?per_page=2").await.expect(200);
    let [first, second] = [0, 1].map(|place| &items(&page)[place]);
    assert_eq!((&first["merchant_id"], &first["status"]), (&json!(one.id), &json!("CONCLUIDA")));
    assert_eq!((&second["merchant_id"], &second["status"]), (&json!(other.id), &json!("pending")));

    let (mut found, mut query) = (Vec::new(), "?per_page=2".to_owned());
    loop {
        let (page, go_on) = newest(&world, &query).await;
        assert!(page.len() <= 2);
        found.extend(page);
        let Some(before) = go_on else { break };
        query = format!("?per_page=2&before={before}");
    }
    assert_eq!(found, txids, "page by page, none twice and none left out");
    for wrong in ["?before=0", "?before=x", "?per_page=101", "?page=2"] {
        world.ops_get(&format!("/ops/lists/charges{wrong}")).await.refused(400, "validation_failed");
    }
}

/// One look reads 2,000 Records; where these hold no charge, the answer says where to go on.
#[tokio::test]
async fn a_look_for_charges_ends_after_so_many_records() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    world.fill(2_010).await;
    let (none, before) = newest(&world, "").await;
    assert_eq!(none, [""; 0]);
    let (found, end) = newest(&world, &format!("?before={}", before.unwrap())).await;
    assert_eq!((found, end), (vec![txid], None));
}

#[tokio::test]
async fn a_charge_a_recipient_and_a_block_are_read_by_their_ids() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("João Araújo", 1).await;
    let charged = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&recipient, 3_000)])).await;
    let txid = text(&charged.expect(201)["txid"]);
    let charge = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
    let own = merchant.get(&format!("/api/charges/{txid}")).await.expect(200);
    for (name, value) in own.as_object().unwrap() {
        assert_eq!(&charge[name], value, "{name}");
    }
    assert_eq!(charge["merchant_id"], merchant.id);
    let records: Vec<u64> =
        charge["records"].as_array().unwrap().iter().map(|record| record.as_u64().unwrap()).collect();
    assert_eq!(records.len(), 2, "opened and captured");
    let mut previous = "0".repeat(64);
    let last = world.last().await;
    let mut next = Position { sequence: Sequence::FIRST, ..last };
    while next <= last {
        let block = world.ops_get(&read_at("/ops/journal", next)).await.expect(200);
        assert_eq!((&block["first"], &block["previous"]), (&json!(next.sequence.0), &json!(previous)));
        previous = text(&block["hash"]);
        next.sequence = Sequence(block["last"].as_u64().unwrap() + 1);
    }
    let checkpoint = world.ops_get(&format!("/ops/checkpoint?partition={}", last.partition.0)).await.expect(200);
    assert_eq!(checkpoint["head"], previous, "the chain ends at the head that is signed");

    let shown = world.ops_get(&format!("/ops/recipients/{recipient}")).await.expect(200);
    assert_eq!((&shown["merchant_id"], &shown["name"]), (&json!(merchant.id), &json!("João Araújo")));
    assert_eq!(shown["balance"]["pending"], 3_000);
    world.advance(40 * 86_400).await;
    let shown = world.ops_get(&format!("/ops/recipients/{recipient}")).await.expect(200);
    assert_eq!(shown["balance"]["available"], 3_000, "what is due is booked first");
    for (path, code) in [
        ("/ops/charges/x", "charge_not_found"),
        ("/ops/recipients/x", "not_found"),
        ("/ops/journal/0", "not_found"),
        ("/ops/journal/999999", "not_found"),
    ] {
        world.ops_get(path).await.refused(404, code);
    }
    for path in [format!("/ops/charges/{txid}"), format!("/ops/recipients/{recipient}"), "/ops/journal/1".to_owned()] {
        world.ops_get(&format!("{path}?x=1")).await.refused(400, "validation_failed");
    }
}

/// The newest Records, page by page to the first one, each once, as they are read one by one.
#[tokio::test]
async fn the_newest_records_are_listed_back_to_the_first() {
    let world = World::sandbox().await;
    let list = async |query: &str| world.ops_get(&format!("/ops/records{query}")).await.expect(200);
    assert_eq!(list("").await, json!({"items": []}), "an empty journal");
    let merchant = world.merchant().await;
    for _ in 0..70 {
        merchant.paid_pix(&pix("1.00")).await;
    }
    let head = world.cut().await;
    assert!(head.records() > 128, "more than one answer has: {head}");
    for _ in 0..2 {
        let (mut found, mut query) = (Vec::new(), "?per_page=100".to_owned());
        loop {
            let page = list(&query).await;
            assert!(items(&page).len() <= 100);
            found.extend(items(&page).clone());
            let Some(before) = next_before(&page) else { break };
            query = format!("?per_page=100&before={before}");
        }
        let places: Vec<_> = found.iter().rev().map(place_in).collect();
        assert_eq!(places, world.since(&head.begin()).await, "all are in the partition of the merchant");
        for record in [&found[0], &found[1], found.last().unwrap()] {
            let one = world.ops_get(&read_at("/ops/records", place_in(record))).await.expect(200);
            for name in ["booked_at", "effective_at", "owner"] {
                assert_eq!(record[name], one[name], "{name}");
            }
        }
        assert_eq!((&found[0]["events"], &found[1]["events"]), (&json!(["pix_paid"]), &json!(["charge_opened"])));
        assert_eq!(found[1]["api_key_id"], merchant.key_id);
        assert_eq!(found.last().unwrap()["events"], json!(["merchant_opened"]));
    }
    merchant.paid_pix(&pix("1.00")).await;
    assert_eq!(world.since(&head).await.last(), Some(&world.last().await), "the newest is there at once");
    assert_eq!(items(&list("").await).len(), 20);
    for wrong in ["?before=0", "?before=x", "?per_page=101", "?page=2"] {
        world.ops_get(&format!("/ops/records{wrong}")).await.refused(400, "validation_failed");
    }
}
