//! Parts that many pages of the console share, over HTTP: the scope of one merchant,
//! the newest charges.

use serde_json::json;

use crate::console::{ANA, Browser, world_of_three};
use crate::world::*;

/// All that a page loads is at most 60 KiB, even before it is compressed.
#[tokio::test]
async fn what_a_page_loads_is_small() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console").await;
    let assets: Vec<_> = page.html.split('"').filter(|part| part.starts_with("/console/assets/")).collect();
    assert_eq!(assets.len(), 3, "style, icon and script: {assets:?}");
    let mut bytes = 0;
    for asset in assets {
        bytes += browser.page(asset).await.html.len();
    }
    assert!(bytes <= 60 * 1024, "{bytes}");
}

/// A page in the scope of one merchant shows nothing of another, and pages of the platform are not
/// there.
#[tokio::test]
async fn a_scope_shows_one_merchant_alone() {
    let world = world_of_three().await;
    let own = world.merchant().await;
    let other = world.open(json!({"name": "Padaria Alheia", "document": cnpj(92), "split_enabled": true})).await;
    let recipient = other.recipient("Zé Alheio", 7).await;
    let theirs = text(&other.paid_pix(&with_splits(pix("77.77"), &[(&recipient, 100)])).await["txid"]);
    let record = page_of(world.last().await);
    let draft = other.draft("Rita Alheia", 8).await;
    let ours = text(&own.paid_pix(&pix("10.00")).await["txid"]);
    own.draft("Bia", 9).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let scoped = |path: &str| {
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}merchant_id={}", own.id)
    };
    for (path, place) in [
        ("/console", format!("/console/merchants/{}", own.id)),
        ("/console/merchants", format!("/console/merchants/{}", own.id)),
        ("/console/trial-balance", format!("/console/ledgers/M-{}", own.id)),
    ] {
        assert_eq!(browser.get(&scoped(path)).await.header("location"), scoped(&place), "{path}");
    }
    for path in [
        format!("/console/merchants/{}", own.id),
        format!("/console/ledgers/M-{}", own.id),
        "/console/queue".to_owned(),
        "/console/webhooks".to_owned(),
        "/console/audit".to_owned(),
        "/console/charges".to_owned(),
        "/console/lists/merchants".to_owned(),
        format!("/console/charges/{ours}"),
    ] {
        let page = browser.page(&scoped(&path)).await;
        page.has(&["Only of", "Loja Azul"]);
        assert!(!page.html.contains("Alhei") && !page.html.contains("/console/health"), "{path}: {}", page.html);
    }
    browser.page(&scoped("/console/queue")).await.has(&["1 waiting", "Bia", "name=\"merchant_id\""]);
    for path in [
        format!("/console/merchants/{}", other.id),
        format!("/console/merchants/{}/events", other.id),
        format!("/console/charges/{theirs}"),
        format!("/console/charges/{theirs}/dispute?amount=1&kind=med"),
        format!("/console/recipients/{recipient}"),
        format!("/console/ledgers/{}", other.ledger()),
        format!("/console/ledgers/R-{recipient}"),
        record,
        format!("/console/queue/{draft}"),
        "/console/ledgers/P-house".to_owned(),
        "/console/journal".to_owned(),
        "/console/people".to_owned(),
        "/console/periods".to_owned(),
        "/console/periods/2020-01".to_owned(),
        "/console/health".to_owned(),
        "/console/exports".to_owned(),
        "/console/exports/file?format=csv".to_owned(),
        "/console/sandbox".to_owned(),
    ] {
        assert_eq!(browser.get(&scoped(&path)).await.status, 404, "{path}");
        // Without the scope it is there.
        assert_eq!(browser.get(&path).await.status, 200, "{path}");
    }
    let event = text(&items(&other.get("/api/events").await.expect(200))[0]["id"]);
    assert_eq!(browser.get(&scoped(&format!("/console/webhooks/{event}"))).await.status, 404);
    // What fell due is booked before, so that nothing is booked beside the forms.
    world.advance(0).await;
    assert_eq!(browser.post(&scoped("/console/periods/2020-01"), &[("key", "p")]).await.status, 404);
    for (path, fields) in [
        (format!("/console/charges/{theirs}/dispute"), vec![("amount", "1"), ("kind", "med"), ("reason", "x")]),
        (format!("/console/webhooks/{event}/redeliver"), vec![]),
        (format!("/console/merchants/{}/keys", other.id), vec![]),
        (format!("/console/merchants/{}/change", other.id), vec![("name", "x")]),
        (format!("/console/keys/{}/revoke", other.key_id), vec![("sure", "on")]),
        (format!("/console/keys/{}/rotate", other.key_id), vec![]),
        (format!("/console/keys/{}/address", other.key_id), vec![]),
        (format!("/console/keys/{}/redeliver", other.key_id), vec![]),
        (format!("/console/keys/{}/test", other.key_id), vec![]),
        ("/console/merchants".to_owned(), vec![("name", "x"), ("document", "11222333000181")]),
        ("/console/house".to_owned(), vec![]),
        ("/console/sandbox/pix".to_owned(), vec![("txid", theirs.as_str())]),
    ] {
        let before = world.cut().await;
        assert_eq!(browser.post(&scoped(&path), &fields).await.status, 404, "{path}");
        assert_eq!(world.cut().await, before, "{path} booked something");
    }
    let fields = [("kind", "recipient"), ("decision", "approve"), ("key", "k")];
    assert_eq!(browser.post(&scoped(&format!("/console/queue/{draft}")), &fields).await.status, 404);
    assert_eq!(browser.get("/console/queue?merchant_id=x").await.status, 404);
}

#[tokio::test]
async fn the_newest_charges_lead_on_to_the_older_ones() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut txids = Vec::new();
    for _ in 0..52 {
        txids.insert(0, text(&merchant.post("/api/pix", &pix("1.00")).await.expect(201)["txid"]));
    }
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page("/console/charges").await;
    assert!(page.html.contains(&txids[0]) && page.html.contains(&txids[49]) && !page.html.contains(&txids[50]));
    let next =
        page.html.split("href=\"").find(|part| part.contains("rel=\"next\"")).unwrap().split('"').next().unwrap();
    let page = browser.page(next).await;
    page.has(&[&txids[50], &txids[51]]);
    assert!(!page.html.contains(&txids[49]));
}
