//! Anticipation of card splits: the splits offered, their prices, and the booking.

use serde_json::{Value, json};

use crate::world::*;

fn path(recipient: &str) -> String {
    format!("/api/dashboard/sub-recipients/{recipient}/anticipate")
}

async fn anticipable(merchant: &Merchant<'_>, recipient: &str) -> Vec<Value> {
    items(&merchant.get(&path(recipient)).await.expect(200)).clone()
}

/// The ids of the splits in a recipient's statement, newest first.
async fn split_ids(merchant: &Merchant<'_>, recipient: &str) -> Vec<String> {
    let statement = merchant.get(&format!("/api/dashboard/sub-recipients/{recipient}/splits?per_page=100")).await;
    items(&statement.expect(200)).iter().map(|item| text(&item["id"])).collect()
}

async fn anticipate(merchant: &Merchant<'_>, recipient: &str, ids: &[&str], target_days: u8) -> Answer {
    merchant.post(&path(recipient), &json!({"split_ids": ids, "target_days": target_days})).await
}

async fn charge(merchant: &Merchant<'_>, amount: i64, splits: &[(&str, i64)]) {
    merchant.post("/api/card", &with_splits(card(amount, APPROVED), splits)).await.expect(201);
}

/// Shows: 2.10.item, 2.10.fees, 2.10.rates, 2.10.result, 2.13.rule-5, 3.3.anticipated,
/// 4.GET./anticipate, 4.POST./anticipate.
#[tokio::test]
async fn a_card_split_is_had_at_once_for_a_fee() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    charge(&merchant, 10_000, &[(&ana, 2_000), (&bia, 700), (&ana, 21)]).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;

    let listed = merchant.get(&path(&ana)).await.expect(200);
    has_exactly(&listed, &["items", "rates"]);
    assert_eq!(listed["rates"], json!({"d2": 2.38, "d7": 2, "d15": 1.5}));
    let statement = merchant.statement(&ana).await;
    let found: Vec<_> = items(&listed).iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(found, [21, 2_000], "card splits that are hers, newest first");
    let item = &items(&listed)[1];
    let names = ["id", "amount_cents", "payment_method", "balance_available_at", "payment_nome", "fees"];
    has_exactly(item, &names);
    let quote = |days: u8, rate: f64, fee: i64| json!({"target_days": days, "rate_percent": rate, "fee_cents": fee, "net_cents": 2_000 - fee});
    let mut fees = json!({"d2": quote(2, 2.38, 48), "d7": quote(7, 2.0, 40), "d15": quote(15, 1.5, 30)});
    fees["d7"]["rate_percent"] = json!(2);
    assert_eq!(item["fees"], fees);
    assert_eq!([&item["payment_method"], &item["payment_nome"]], ["credit_card", "João Ávila"]);
    let same = items(&statement).iter().find(|split| split["id"] == item["id"]).unwrap();
    assert_eq!(item["balance_available_at"], same["payment"]["balance_available_at"]);

    let ids: Vec<String> = items(&listed).iter().map(|item| text(&item["id"])).collect();
    let before = world.trace(&[&merchant]).await;
    let body = json!({"split_ids": ids, "target_days": 2});
    let simulated = merchant.post(&format!("{}/simulate", path(&ana)), &body).await.expect(200);
    assert_eq!(world.trace(&[&merchant]).await, before, "a simulation keeps nothing");
    let done = merchant.post(&path(&ana), &body).await.expect(200);
    assert_eq!(simulated, done);
    let expected = json!({"success": true, "anticipated_count": 2, "original_cents": 2_021, "fee_cents": 48,
        "net_cents": 1_973, "target_days": 2, "rate_percent": 2.38});
    assert_eq!(done, expected, "21 at 2.38 % is less than half a centavo");
    assert_eq!(merchant.recipient_money(&ana).await, [2_973, 0, 0, 0]);
    let statement = merchant.statement(&ana).await;
    let found: Vec<_> =
        items(&statement).iter().map(|item| (item["amount_cents"].as_i64().unwrap(), text(&item["status"]))).collect();
    assert_eq!(found, [(1_000, "available".to_owned()), (21, "available".to_owned()), (1_952, "available".to_owned())]);
    assert!(anticipable(&merchant, &ana).await.is_empty());
    assert_eq!(anticipable(&merchant, &bia).await.len(), 1);

    // When the minute comes, it falls due for the others only.
    world.advance(31 * DAY).await;
    assert_eq!(merchant.recipient_money(&ana).await, [2_973, 0, 0, 0]);
    assert_eq!(merchant.recipient_money(&bia).await, [700, 0, 0, 0]);
    assert!(anticipable(&merchant, &bia).await.is_empty());
    world.check_books().await;
}

#[tokio::test]
async fn whoever_approves_sees_when_anticipated_money_can_be_sent() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    charge(&merchant, 10_000, &[(&ana, 2_000), (&ana, 1_000)]).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 5)])).await;
    let ids = split_ids(&merchant, &ana).await;
    let today = world.advance(0).await - chrono::TimeDelta::hours(3);
    anticipate(&merchant, &ana, &[&ids[1]], 7).await.expect(200);
    anticipate(&merchant, &ana, &[&ids[2]], 2).await.expect(200);
    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    assert_eq!(withdrawal["amount_cents"], 980 + 1_952 + 5);
    let day = |days| (today + chrono::TimeDelta::days(days)).format("%Y-%m-%d").to_string();
    let expected =
        json!([{"settlement_date": day(2), "amount_cents": 1_952}, {"settlement_date": day(7), "amount_cents": 980}]);
    let rejected = world.reject(&text(&withdrawal["withdrawal_id"]), "too early").await.expect(200);
    assert_eq!(rejected["settlements"], expected);
    let again = merchant.withdraw(&ana).await.expect(201);
    let approved = world.approve(&text(&again["withdrawal_id"])).await.expect(200);
    assert_eq!(approved["settlements"], expected);
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 2_937]);
    let statement = merchant.statement(&ana).await;
    assert!(items(&statement).iter().all(|item| item["status"] == "paid"), "{statement}");
    world.check_books().await;
}

#[tokio::test]
async fn an_anticipation_is_never_later_than_none_and_costs_what_was_seen() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    charge(&merchant, 10_000, &[(&ana, 2_000)]).await;
    world.advance(20 * DAY).await;
    charge(&merchant, 10_000, &[(&ana, 1_000)]).await;
    let offered = |items: &[Value]| -> Vec<Vec<bool>> {
        items.iter().map(|item| ["d2", "d7", "d15"].map(|days| item["fees"][days].is_object()).to_vec()).collect()
    };
    let listed = anticipable(&merchant, &ana).await;
    assert_eq!(offered(&listed), [[true, true, true], [true, true, false]]);
    let ids: Vec<String> = listed.iter().map(|item| text(&item["id"])).collect();
    let simulate = format!("{}/simulate", path(&ana));
    let before = world.trace(&[&merchant]).await;
    for at in [&path(&ana), &simulate] {
        let late = json!({"split_ids": ids, "target_days": 15});
        let refused = merchant.post(at, &late).await.refused(409, "anticipation_after_due");
        assert_eq!(refused["errors"][0]["field"], "split_ids[1]");
        let dear = json!({"split_ids": ids, "target_days": 2, "fee_cents": 71});
        let refused = merchant.post(at, &dear).await.refused(409, "fee_changed");
        assert_eq!((&refused["fee_cents"], &refused["errors"][0]["field"]), (&json!(72), &json!("fee_cents")));
        let wrong = json!({"split_ids": ids, "target_days": 2, "fee_cents": "72"});
        merchant.post(at, &wrong).await.refused(400, "validation_failed");
    }
    assert_eq!(world.trace(&[&merchant]).await, before);

    world.advance(9 * DAY).await;
    let listed = anticipable(&merchant, &ana).await;
    assert_eq!(offered(&listed), [[true, true, true], [true, false, false]]);
    let due = chrono::DateTime::parse_from_rfc3339(&text(&listed[1]["balance_available_at"])).unwrap();
    let today = world.advance(0).await - chrono::TimeDelta::hours(3);
    let seen = json!({"split_ids": ids, "target_days": 2, "fee_cents": 72});
    assert_eq!(merchant.post(&path(&ana), &seen).await.expect(200)["fee_cents"], 72);
    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    let rejected = world.reject(&text(&withdrawal["withdrawal_id"]), "Conta divergente").await.expect(200);
    let on = |day: String, amount: i64| json!({"settlement_date": day, "amount_cents": amount});
    let due_day = (due - chrono::TimeDelta::hours(3)).format("%Y-%m-%d").to_string();
    let later = (today + chrono::TimeDelta::days(2)).format("%Y-%m-%d").to_string();
    assert_eq!(rejected["settlements"], json!([on(due_day, 1_952), on(later, 976)]));
    world.check_books().await;
}

/// Shows: 8.target_days.
#[tokio::test]
async fn all_or_nothing_and_every_refusal_in_its_place() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (ana, bia) = (merchant.recipient("Ana", 1).await, merchant.recipient("Bia", 2).await);
    let theirs = other.recipient("Rui", 3).await;
    charge(&merchant, 10_000, &[(&ana, 2_000), (&bia, 700)]).await;
    charge(&merchant, 10_000, &[(&ana, 300)]).await;
    charge(&other, 10_000, &[(&theirs, 300)]).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    merchant.post("/api/pix", &with_splits(pix("80.00"), &[(&ana, 1_000)])).await.expect(201);
    let ids = split_ids(&merchant, &ana).await;
    let [unpaid, pix, card, other_card] = &ids[..] else { panic!("{ids:?}") };
    let (of_bia, foreign) = (&split_ids(&merchant, &bia).await[0], &split_ids(&other, &theirs).await[0]);
    let last = |id: &str, end: &str| format!("{}{end}", id.rsplit_once('-').unwrap().0);
    let (missing, not_canonical) = (last(card, "-7"), last(card, "-00"));

    let before = world.trace(&[&merchant, &other]).await;
    let simulate = format!("{}/simulate", path(&ana));
    for (body, status, code) in [
        (json!({"target_days": 2}), 400, "validation_failed"),
        (json!({"split_ids": [card]}), 400, "validation_failed"),
        (json!({"split_ids": [], "target_days": 2}), 400, "validation_failed"),
        (json!({"split_ids": [card, card], "target_days": 2}), 400, "validation_failed"),
        (json!({"split_ids": card, "target_days": 2}), 400, "validation_failed"),
        (json!({"split_ids": [7], "target_days": 2}), 400, "validation_failed"),
        (json!({"split_ids": [card], "target_days": 3}), 400, "validation_failed"),
        (json!({"split_ids": [card], "target_days": "2"}), 400, "validation_failed"),
        (json!({"split_ids": [card], "target_days": 30}), 400, "validation_failed"),
        (json!({"split_ids": [card, "nothing"], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [card, missing], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [card, not_canonical], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [card, of_bia], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [card, foreign], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [pix, of_bia], "target_days": 2}), 404, "not_found"),
        (json!({"split_ids": [card, pix], "target_days": 2}), 409, "split_not_anticipable"),
        (json!({"split_ids": [card, unpaid], "target_days": 2}), 409, "split_not_anticipable"),
    ] {
        for at in [path(&ana), simulate.clone()] {
            let refused = merchant.post(&at, &body).await.refused(status, code);
            if code == "split_not_anticipable" {
                assert_eq!(refused["errors"][0]["field"], "split_ids[1]");
            }
        }
    }
    let body = json!({"split_ids": [card], "target_days": 2});
    other.post(&path(&ana), &body).await.refused(404, "not_found");
    other.post(&simulate, &body).await.refused(404, "not_found");
    other.get(&path(&ana)).await.refused(404, "not_found");
    assert_eq!(world.trace(&[&merchant, &other]).await, before);

    anticipate(&merchant, &ana, &[card], 15).await.expect(200);
    anticipate(&merchant, &ana, &[other_card, card], 2).await.refused(409, "split_not_anticipable");
    merchant.post(&simulate, &body).await.refused(409, "split_not_anticipable");
    assert_eq!(merchant.recipient_money(&ana).await, [1_295, 2_000, 0, 0]);
    // A withdrawal pins what is in it, also an anticipated split.
    merchant.withdraw(&ana).await.expect(201);
    anticipate(&merchant, &ana, &[card], 2).await.refused(409, "split_not_anticipable");
    world.advance(30 * DAY).await;
    anticipate(&merchant, &ana, &[other_card], 2).await.refused(409, "split_not_anticipable");
    let off = json!({"split_enabled": false});
    world
        .ops_send(reqwest::Method::PATCH, &format!("/ops/merchants/{}", merchant.id), &[], off.to_string())
        .await
        .expect(200);
    anticipate(&merchant, &ana, &[], 1).await.refused(422, "split_not_enabled");
    merchant.post(&simulate, &body).await.refused(422, "split_not_enabled");
    merchant.withdraw(&ana).await.refused(422, "split_not_enabled");
    merchant.get(&path(&ana)).await.expect(200);
    world.check_books().await;
}

#[tokio::test]
async fn of_a_hundred_requests_one_anticipates() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    charge(&merchant, 10_000, &[(&ana, 2_000), (&ana, 500)]).await;
    let ids = split_ids(&merchant, &ana).await;
    let answers = futures_of(100, |index| {
        // Some ask for both: whoever comes second gets nothing of it.
        let ids: Vec<&str> = ids.iter().take(1 + index % 2).map(String::as_str).collect();
        let (merchant, ana) = (&merchant, &ana);
        async move { anticipate(merchant, ana, &ids, 2).await }
    })
    .await;
    let (done, late): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!(done.len(), 1);
    late.into_iter().for_each(|answer| drop(answer.refused(409, "split_not_anticipable")));
    let (net, original) =
        (done[0].body["net_cents"].as_i64().unwrap(), done[0].body["original_cents"].as_i64().unwrap());
    assert_eq!(merchant.recipient_money(&ana).await, [net, 2_500 - original, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn withdrawals_and_anticipations_at_once_lose_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let splits: Vec<(&str, i64)> = (0..50).map(|_| (ana.as_str(), 100)).collect();
    charge(&merchant, 10_000, &splits).await;
    let ids = split_ids(&merchant, &ana).await;
    assert_eq!(ids.len(), 50);
    let answers = futures_of(100, |index| {
        let (merchant, ana, ids) = (&merchant, &ana, &ids);
        async move {
            if index % 2 == 0 {
                anticipate(merchant, ana, &[&ids[index / 2]], 15).await
            } else {
                merchant.withdraw(ana).await
            }
        }
    })
    .await;
    let anticipated = answers.iter().step_by(2);
    assert!(anticipated.clone().all(|answer| answer.status == 200), "{answers:?}");
    let accepted: Vec<_> = answers.iter().skip(1).step_by(2).filter(|answer| answer.status == 201).collect();
    assert!(accepted.len() <= 1, "one withdrawal at a time");
    let [available, pending, reserved, paid] = merchant.recipient_money(&ana).await;
    assert_eq!((available + reserved, pending, paid), (50 * 98, 0, 0), "1.5 of 100 is a fee of 2");
    assert_eq!(accepted.iter().map(|answer| answer.body["amount_cents"].as_i64().unwrap()).sum::<i64>(), reserved);
    // Every split is in the withdrawal or is not, and nothing is paid twice.
    if let Some(accepted) = accepted.first() {
        world.approve(&text(&accepted.body["withdrawal_id"])).await.expect(200);
    }
    let statement = merchant.get(&format!("/api/dashboard/sub-recipients/{ana}/splits?per_page=100")).await.expect(200);
    let sum = |status: &str| -> i64 {
        let of_status = items(&statement).iter().filter(|item| item["status"] == status);
        of_status.map(|item| item["amount_cents"].as_i64().unwrap()).sum()
    };
    assert_eq!((sum("paid"), sum("available")), (reserved, available));
    world.check_books().await;
}

/// Shows: 2.13.rule-5, 8.target_days.
#[tokio::test]
async fn an_account_has_its_own_rates() {
    let world = World::sandbox().await;
    let merchant = world
        .open(json!({"name": "Loja Azul", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true,
            "fees": {"anticipation": {"d2": "10", "d7": "0", "d15": "100"}}}))
        .await;
    let ana = merchant.recipient("Ana", 1).await;
    charge(&merchant, 10_000, &[(&ana, 100), (&ana, 100), (&ana, 100)]).await;
    let ids = split_ids(&merchant, &ana).await;
    assert_eq!(merchant.get(&path(&ana)).await.expect(200)["rates"], json!({"d2": 10, "d7": 0, "d15": 100}));
    for (id, days, net) in [(&ids[0], 2, 90), (&ids[1], 7, 100), (&ids[2], 15, 0)] {
        assert_eq!(anticipate(&merchant, &ana, &[id], days).await.expect(200)["net_cents"], net);
    }
    assert_eq!(merchant.recipient_money(&ana).await, [190, 0, 0, 0]);
    world.check_books().await;
}

#[tokio::test]
async fn a_key_anticipates_once_and_a_restart_forgets_nothing() {
    let world = World::sandbox().await;
    let (names, ana, body, done) = {
        let merchant = world.merchant().await;
        let ana = merchant.recipient("Ana", 1).await;
        charge(&merchant, 10_000, &[(&ana, 2_000), (&ana, 300)]).await;
        let ids = split_ids(&merchant, &ana).await;
        let body = json!({"split_ids": [ids[1]], "target_days": 7});
        let done = merchant.post_keyed(&path(&ana), "a-1", &body).await.expect(200);
        let other = json!({"split_ids": [ids[0]], "target_days": 7});
        merchant.post_keyed(&path(&ana), "a-1", &other).await.refused(422, "idempotency_key_reused");
        (merchant.names, ana, body, done)
    };
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let again = merchant.post_keyed(&path(&ana), "a-1", &body).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), done);
    merchant.post(&path(&ana), &body).await.refused(409, "split_not_anticipable");
    assert_eq!(merchant.recipient_money(&ana).await, [1_960, 300, 0, 0]);
    assert_eq!(anticipable(&merchant, &ana).await.len(), 1);
    world.check_books().await;
}

#[tokio::test]
async fn a_long_list_of_anticipable_splits_is_whole() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    for round in 0..3 {
        let splits: Vec<(&str, i64)> = (0..200).map(|place| (ana.as_str(), 1 + round * 200 + place)).collect();
        charge(&merchant, 1_000_000, &splits).await;
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1)])).await;
    }
    let listed = anticipable(&merchant, &ana).await;
    let amounts: Vec<i64> = listed.iter().map(|item| item["amount_cents"].as_i64().unwrap()).collect();
    assert_eq!(amounts, (1..=600).rev().collect::<Vec<_>>());
    let ids: Vec<&str> = listed.iter().map(|item| item["id"].as_str().unwrap()).collect();
    assert_eq!(anticipate(&merchant, &ana, &ids, 2).await.expect(200)["anticipated_count"], 600);
    assert_eq!(merchant.recipient_money(&ana).await[1], 0);
    world.check_books().await;
}
