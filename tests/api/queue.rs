//! Operators' queue: registrations, changed bank accounts, withdrawals and refunds that wait for a
//! decision.

use serde_json::{Value, json};

use crate::world::*;

async fn queue(world: &World, query: &str) -> Value {
    let queue = world.ops_get(&format!("/ops/queue{query}")).await.expect(200);
    has_exactly(&queue, &["items", "total"]);
    assert!(items(&queue).is_sorted_by_key(|item| time(&item["created_at"])), "oldest first: {queue}");
    queue
}

fn ids(queue: &Value) -> Vec<String> {
    items(queue).iter().map(|item| text(&item["id"])).collect()
}

#[tokio::test]
async fn recipients_wait_until_they_are_decided_on() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    assert_eq!(queue(&world, "").await, json!({"items": [], "total": 0}));
    let ana = merchant.draft("Ana", 1).await;
    world.advance(1).await;
    let sol = text(&other.post("/api/sub-recipients", &corporation("Sol", &cnpj(2))).await.expect(201)["id"]);
    world.advance(1).await;
    let bia = merchant.draft("Bia", 3).await;
    world.advance(1).await;
    let eva = merchant.draft("Eva", 4).await;
    assert_eq!(ids(&queue(&world, "").await), [&*ana, &sol, &bia, &eva]);
    let all = queue(&world, "").await;
    let item = &items(&all)[1];
    let company = cnpj(2);
    let expected = json!({
        "kind": "recipient", "id": sol, "merchant_id": other.id, "created_at": item["created_at"], "status": "pending",
        "name": "Sol", "document": format!("**.{}.{}/{}-**", &company[2..5], &company[5..8], &company[8..12]),
        "review": "registration", "destination": item["destination"],
    });
    assert_eq!(item["destination"]["conta"], "*");
    assert_eq!(*item, expected);
    let (kind, unknown) = ("?kind=recipient", "01890000-0000-8000-8000-000000000000");
    for (query, expected) in [
        (format!("?merchant_id={}", merchant.id), vec![&ana, &bia, &eva]),
        (format!("?merchant_id={}", other.id), vec![&sol]),
        (kind.to_owned(), vec![&ana, &sol, &bia, &eva]),
        (format!("{kind}&merchant_id={}", other.id), vec![&sol]),
    ] {
        let found = queue(&world, &query).await;
        assert_eq!(
            (ids(&found).iter().collect::<Vec<_>>(), &found["total"]),
            (expected.clone(), &json!(expected.len())),
            "{query}"
        );
    }
    for (query, field) in [("kind=robot", "kind"), ("kind=", "kind"), ("kind=recipient&kind=recipient", "kind")] {
        let refused = world.ops_get(&format!("/ops/queue?{query}")).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], field, "{query}");
    }
    for unknown in [unknown, "x", ana.as_str()] {
        world.ops_get(&format!("/ops/queue?merchant_id={unknown}")).await.refused(404, "not_found");
    }

    world.ops_post(&format!("/ops/sub-recipients/{sol}/approve"), &json!({})).await.expect(200);
    world.ops_post(&format!("/ops/sub-recipients/{ana}/reject"), &json!({"notes": "x"})).await.expect(200);
    assert_eq!(ids(&queue(&world, "").await), [&*bia, &eva]);
    merchant
        .patch(&format!("/api/sub-recipients/{bia}"), &json!({"register_information": {"name": "Bia Lima"}}))
        .await
        .expect(200);
    // Registered again, it waits again, in the place of its first registration.
    merchant.post("/api/sub-recipients", &individual("Ana Prado", &cpf(1))).await.expect(200);
    world.advance(0).await;
    let before = queue(&world, "").await;
    assert_eq!(ids(&before), [&*ana, &bia, &eva]);
    let names: Vec<_> = items(&before).iter().map(|item| text(&item["name"])).collect();
    assert_eq!(names, ["Ana Prado", "Bia Lima", "Eva"]);
    let world = world.restarted().await;
    assert_eq!(queue(&world, "").await, before, "it outlives the process");
}

#[tokio::test]
async fn a_long_queue_shows_its_oldest_and_counts_all() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let first = merchant.draft("First", 0).await;
    world.advance(1).await;
    // Fewer at once than are never refused, however slow the machine is.
    for batch in 0..21 {
        let answers = futures_of(50, |index| {
            let number = 1 + batch * 50 + index as u32;
            merchant.post_raw("/api/sub-recipients", &[], individual("Ana", &cpf(number)).to_string())
        })
        .await;
        answers.into_iter().for_each(|answer| drop(answer.expect(201)));
    }
    world.advance(1).await;
    let last = merchant.draft("Last", 2_000).await;
    let long = queue(&world, "").await;
    assert_eq!((items(&long).len(), &long["total"]), (1_000, &json!(1_052)));
    assert_eq!(ids(&long)[0], first);
    assert!(!ids(&long).contains(&last));
}
