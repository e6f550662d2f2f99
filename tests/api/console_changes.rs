//! Changes that operators make in the console: a merchant's settings, a key's address and secret,
//! events that were given up, entries of the house ledger, and PIX charges of the sandbox.

use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{ANA, Browser, EVA, Page, RUI, world_of_three};
use crate::world::*;

/// The names and values of the fields of the form that a page posts to an address, as a browser
/// would send them untouched.
fn fields_of(page: &Page, action: &str) -> Vec<(String, String)> {
    let begin =
        page.html.find(&format!("action=\"{action}\"")).unwrap_or_else(|| panic!("no {action} in {}", page.html));
    let form = page.html[begin..].split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let value = tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?;
        Some(value.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    };
    let mut fields = Vec::new();
    let mut select = String::new();
    for tag in form.split('<').skip(1) {
        let (tag, behind) = tag.split_once('>').unwrap();
        let tag = format!("{tag} ");
        if tag.starts_with("input ") {
            let is_off = tag.contains("type=\"checkbox\"") && !tag.contains(" checked ");
            let name = attribute(&tag, "name").filter(|_| !is_off);
            fields.extend(name.map(|name| (name, attribute(&tag, "value").unwrap_or_default())));
        } else if tag.starts_with("select ") {
            select = attribute(&tag, "name").unwrap();
        } else if tag.starts_with("option ") && (tag.contains(" selected ") || !has(&fields, &select)) {
            fields.retain(|(name, _)| *name != select);
            let value = attribute(&tag, "value").unwrap_or_else(|| behind.trim().to_owned());
            fields.push((select.clone(), value));
        }
    }
    fields
}

fn has(fields: &[(String, String)], name: &str) -> bool {
    fields.iter().any(|(known, _)| known == name)
}

/// Sends a form as the page has it, with some fields changed.
pub(crate) async fn send(browser: &Browser, page: &Page, action: &str, changes: &[(&str, &str)]) -> Page {
    let mut fields = fields_of(page, action);
    for (name, value) in changes {
        fields.retain(|(known, _)| known != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.post_as(Some(&format!("http://{}", browser.host)), action, &fields).await
}

#[tokio::test]
async fn a_merchant_is_changed_as_the_form_says() {
    let world = world_of_three().await;
    let merchant = world.open(json!({"name": "Loja \"A\" & <b>", "document": cnpj(95), "city": "Niterói"})).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let path = format!("/ops/merchants/{}", merchant.id);
    let before = world.ops_get(&path).await.expect(200);
    let place = format!("/console/merchants/{}/change", merchant.id);
    browser.page(&format!("/console/merchants/{}", merchant.id)).await.has(&[&place]);
    let page = browser.page(&place).await;
    let sent = send(&browser, &page, &place, &[]).await;
    assert_eq!(sent.header("location"), format!("/console/merchants/{}", merchant.id), "{}", sent.html);
    assert_eq!(world.ops_get(&path).await.expect(200), before, "what is not touched stays");

    let changes = [
        ("name", "Loja Verde"),
        ("city", ""),
        ("split_enabled", "on"),
        ("pix", "0,79"),
        ("antifraud", "1,50"),
        ("cashout", "2"),
        ("d7", "1.25"),
        ("split_guard", "net"),
        ("mdr_base", "seller_gross"),
        ("refund_commission", "on"),
        ("card_settlement_days", "14"),
        ("limit_card", "7"),
    ];
    let page = browser.page(&place).await;
    assert_eq!(send(&browser, &page, &place, &changes).await.status, 303);
    let after = world.ops_get(&path).await.expect(200);
    let expected = json!({
        "name": "Loja Verde", "city": null, "split_enabled": true, "rate_limits": {"card": 7, "other": null},
        "options": {"split_guard": "net", "mdr_base": "seller_gross", "refund_commission": true, "card_settlement_days": 14, "own_keys": true},
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&after[name], value, "{name}");
    }
    let fees = [("pix", json!("0.79")), ("antifraud_cents", json!(150)), ("cashout_cents", json!(200))];
    for (name, value) in fees {
        assert_eq!(after["fees"][name], value, "{name}");
    }
    assert_eq!(
        (&after["fees"]["anticipation"]["d7"], &after["fees"]["mdr_1x"]),
        (&json!("1.25"), &before["fees"]["mdr_1x"])
    );
    for wrong in [("pix", "x"), ("antifraud", "x"), ("card_settlement_days", "400"), ("name", ""), ("limit_card", "0")]
    {
        let page = browser.page(&place).await;
        assert_eq!(send(&browser, &page, &place, &[wrong]).await.status, 400, "{wrong:?}");
    }
    assert_eq!(world.ops_get(&path).await.expect(200), after, "nothing half done");
    let decider = Browser::signed_in(&world, RUI).await;
    assert_eq!(decider.get(&place).await.status, 403);
    assert_eq!(decider.post(&place, &[("name", "x")]).await.status, 403);
}

#[tokio::test]
async fn the_address_and_the_secret_of_a_key_are_changed() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;
    let place = format!("/console/keys/{}", merchant.key_id);
    let address = format!("{place}/address");
    let page = browser.page(&place).await;
    let set = send(&browser, &page, &address, &[("webhook_url", "http://127.0.0.1:9/hook")]).await;
    assert_eq!(set.header("location"), place, "{}", set.html);
    let page = browser.page(&place).await;
    page.has(&["http://127.0.0.1:9/hook", "Last tries"]);
    assert_eq!(send(&browser, &page, &address, &[("webhook_url", "http://10.0.0.1/")]).await.status, 400);

    let rotate = format!("{place}/rotate");
    let rotated = send(&browser, &page, &rotate, &[]).await;
    assert_eq!(rotated.status, 200, "{}", rotated.html);
    let secret = rotated.html.split("<code class=\"hash\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert!(secret.starts_with("whsec_") && !browser.page(&place).await.html.contains(&secret), "shown once");
    let again = send(&browser, &page, &rotate, &[]).await;
    assert!(again.html.contains(&secret), "the same form is the same rotation");

    let page = browser.page(&place).await;
    assert_eq!(send(&browser, &page, &address, &[("webhook_url", "")]).await.status, 303);
    let key = world.ops_send(Method::PATCH, &format!("/ops/api-keys/{}", merchant.key_id), &[], "{}".to_owned()).await;
    assert_eq!(key.expect(200)["webhook_url"], Value::Null);
    for token in [EVA, RUI] {
        let small = Browser::signed_in(&world, token).await;
        let page = small.page(&place).await;
        assert!(!page.html.contains(&rotate) && !page.html.contains(&address), "no form");
        for action in [&rotate, &address] {
            assert_eq!(small.post(action, &[("webhook_url", "")]).await.status, 403);
        }
    }
    let reader = Browser::signed_in(&world, EVA).await;
    assert_eq!(reader.post(&format!("{place}/redeliver"), &[]).await.status, 403);
    let sent = Browser::signed_in(&world, RUI).await.post(&format!("{place}/redeliver"), &[]).await;
    assert_eq!(sent.header("location"), place);
    let test = format!("{place}/test");
    assert!(!browser.page(&place).await.html.contains(&test), "a key without an address has nothing to test");
    let url = [("webhook_url", "http://127.0.0.1:9/hooks")];
    assert_eq!(send(&browser, &browser.page(&place).await, &address, &url).await.status, 303);
    assert!(browser.page(&place).await.html.contains(&test));
    let tested = send(&browser, &browser.page(&place).await, &test, &[]).await;
    assert_eq!(tested.status, 200);
    tested.has(&["role=\"status\"", "nobody listens"]);
    assert_eq!(reader.post(&test, &[]).await.status, 403);
    assert_eq!(browser.get("/console/keys/x").await.status, 404);
}

#[tokio::test]
async fn an_entry_of_the_house_is_asked_for_by_one_and_approved_by_another() {
    let world = world_of_three().await;
    let (ana, rui) = (Browser::signed_in(&world, ANA).await, Browser::signed_in(&world, RUI).await);
    let page = rui.page("/console/house").await;
    let fields = [
        ("debit", "Expenses:Bank:Fees"),
        ("credit", "Assets:Bank:Own"),
        ("amount", "12,34"),
        ("reason", "Tarifa <b>"),
        ("reference", "EXTRATO-7"),
    ];
    let response = send(&rui, &page, "/console/house", &fields).await;
    assert_eq!(response.header("location"), "/console/house", "{}", response.html);
    send(&rui, &page, "/console/house", &fields).await;
    let queue = world.ops_get("/ops/queue?kind=entry").await.expect(200);
    assert_eq!(queue["total"], 1, "twice sent, once asked");
    let id = text(&items(&queue)[0]["id"]);
    let item = format!("/console/queue/{id}");
    rui.page("/console/house").await.has(&["The entry waits for another operator"]);
    ana.page("/console/house").await.has(&["12.34", "Tarifa &lt;b&gt;", &item]);
    let approve = [("decision", "approve"), ("kind", "entry")];
    let own = rui.page(&item).await;
    own.has(&["Another operator approves"]);
    assert!(!own.html.contains("value=\"approve\""), "no form");
    let by_self = rui.post(&item, &approve).await;
    assert_eq!(by_self.status, 409, "the one who asked does not approve");
    let page = ana.page(&item).await;
    page.has(&["Tarifa &lt;b&gt;", "EXTRATO-7", "rui"]);
    assert_eq!(ana.post(&item, &approve).await.header("location"), "/console/queue");
    ana.page("/console/house").await.has(&["Expenses:<wbr>Bank:<wbr>Fees", "12.34"]);
    ana.page("/console/audit").await.has(&["rui", "ana", "approve"]);
    for wrong in [
        ("amount", "x"),
        ("amount", "0"),
        ("reason", ""),
        ("credit", "Expenses:Bank:Fees"),
        ("debit", "Assets:Acquirer"),
    ] {
        let page = rui.page("/console/house").await;
        let mut fields = fields.to_vec();
        fields.retain(|(name, _)| *name != wrong.0);
        fields.push(wrong);
        assert_eq!(send(&rui, &page, "/console/house", &fields).await.status, 400, "{wrong:?}");
    }
    let reader = Browser::signed_in(&world, EVA).await;
    assert!(!reader.page("/console/house").await.html.contains("name=\"reference\""), "no form");
    assert_eq!(reader.post("/console/house", &fields).await.status, 403);
    world.check_books().await;
}

/// Redelivery commits no Record. A form of it that is sent twice is one request nevertheless.
#[tokio::test]
async fn a_redelivery_that_is_sent_twice_is_one() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("10.00")).await;
    let event = text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"]);
    for (path, is_of_merchant) in [
        (format!("/ops/webhooks/{event}/redeliver"), false),
        (format!("/ops/endpoints/{}/redeliver", merchant.key_id), false),
        (format!("/api/events/{event}/redeliver"), true),
    ] {
        let send = async |key: &'static str, body: &'static str| {
            let headers = [("idempotency-key", key), ("content-type", "application/json"), ("token", &*merchant.key)];
            if is_of_merchant {
                return world.send(Method::POST, &path, &headers, body).await;
            }
            world.ops_send(Method::POST, &path, &headers[..2], body.to_owned()).await
        };
        let first = send("again-1", "{}").await;
        assert_eq!((first.status, first.header("idempotent-replayed")), (200, None), "{path}: {}", first.text);
        let second = send("again-1", "{}").await;
        assert_eq!((second.status, second.header("idempotent-replayed")), (200, Some("true")), "{path}");
        assert_eq!(second.body, first.body, "{path}");
        let with_blank = send("again-1", "{ }").await;
        assert_eq!(with_blank.header("idempotent-replayed"), Some("true"), "{path}: the values are the same");
        assert_eq!(send("again-2", "{}").await.header("idempotent-replayed"), None, "another key is another request");
        let other = send("again 1", "{}").await;
        assert_eq!(other.status, 200, "{path}: {}", other.text);
    }
    for number in 0..1_024 {
        let headers = [("idempotency-key", format!("many-{number}")), ("content-type", "application/json".to_owned())];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let path = format!("/ops/endpoints/{}/redeliver", merchant.key_id);
        world.ops_send(Method::POST, &path, &headers, "{}".to_owned()).await.expect(200);
    }
    let headers = [("idempotency-key", "again-1"), ("content-type", "application/json")];
    let forgotten =
        world.ops_send(Method::POST, &format!("/ops/webhooks/{event}/redeliver"), &headers, "{}".to_owned()).await;
    assert_eq!(forgotten.header("idempotent-replayed"), None, "of many, the last are remembered");
}

/// The events that wait at an endpoint, or were given up, are listed on its page, in parts.
#[tokio::test]
async fn an_endpoint_lists_what_waits_and_leads_on() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let keys = format!("/ops/merchants/{}/api-keys", merchant.id);
    let key = world.ops_post(&keys, &json!({"webhook_url": "http://127.0.0.1:9/hooks"})).await.expect(201);
    for _ in 0..22 {
        merchant.paid_pix(&pix("1.00")).await;
    }
    let browser = Browser::signed_in(&world, ANA).await;
    let place = format!("/console/keys/{}", text(&key["id"]));
    let listed = items(&merchant.get("/api/events?per_page=100").await.expect(200)).to_vec();
    let waiting = async |part: u32| {
        let page = browser.page(&format!("{place}?waiting={part}")).await;
        let section = page.html.split("id=\"waiting\"").nth(1).unwrap().split("</section>").next().unwrap().to_owned();
        let links = section.split("href=\"/console/webhooks/").skip(1);
        links.map(|link| link.split('"').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = format!("Waiting ({})", listed.len());
    while !browser.page(&place).await.html.contains(&all) {}
    let (first, second) = (waiting(1).await, waiting(2).await);
    assert_eq!((first.len(), second.len()), (20, listed.len() - 20), "{first:?} {second:?}");
    let mut shown = [first, second].concat();
    let mut expected: Vec<_> = listed.iter().map(|event| text(&event["id"])).collect();
    shown.sort();
    expected.sort();
    assert_eq!(shown, expected);
    let page = browser.page(&format!("/console/webhooks/{}", shown[0])).await;
    page.has(&[&place, "Waiting", "http://127.0.0.1:9/hooks", "Send again"]);
    let sent = send(&browser, &page, &format!("/console/webhooks/{}/redeliver", shown[0]), &[]).await;
    assert_eq!(sent.header("location"), format!("/console/merchants/{}/events", merchant.id), "{}", sent.html);
}

/// Every endpoint that is behind is on one of the parts.
#[tokio::test]
async fn endpoints_that_are_behind_are_in_parts() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let keys = format!("/ops/merchants/{}/api-keys", merchant.id);
    let mut made = std::collections::BTreeSet::new();
    for _ in 0..61 {
        let key = world.ops_post(&keys, &json!({"webhook_url": "http://127.0.0.1:9/hooks"})).await.expect(201);
        made.insert(text(&key["id"]));
    }
    merchant.paid_pix(&pix("1.00")).await;
    let browser = Browser::signed_in(&world, ANA).await;
    while !browser.page("/console/webhooks").await.html.contains("61 addresses with events") {}
    let mut shown = std::collections::BTreeSet::new();
    for part in 1..=2 {
        let page = browser.page(&format!("/console/webhooks?page={part}")).await;
        let links = page.html.split("href=\"/console/keys/").skip(1);
        shown.extend(links.map(|link| link.split('"').next().unwrap().to_owned()));
    }
    assert_eq!(shown, made);
}

#[tokio::test]
async fn a_pix_charge_of_the_sandbox_is_paid() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    let browser = Browser::signed_in(&world, ANA).await;
    let page = browser.page("/console/sandbox").await;
    let paid = send(&browser, &page, "/console/sandbox/pix", &[("txid", &txid)]).await;
    assert_eq!(paid.header("location"), "/console/sandbox", "{}", paid.html);
    browser.page("/console/sandbox").await.has(&["The PIX charge is paid.", &format!("/console/charges/{txid}")]);
    assert_eq!(merchant.get(&format!("/api/charges/{txid}")).await.expect(200)["status"], "CONCLUIDA");
    let again = send(&browser, &page, "/console/sandbox/pix", &[("txid", &txid)]).await;
    assert_eq!(again.status, 303, "the same form is the same payment");
    let other = browser.page("/console/sandbox").await;
    assert_eq!(send(&browser, &other, "/console/sandbox/pix", &[("txid", &txid)]).await.status, 409, "it is paid");
    assert_eq!(send(&browser, &other, "/console/sandbox/pix", &[("txid", "x")]).await.status, 404);
    let card = text(&merchant.post("/api/card", &card(1_000, SILENT)).await.body["txid"]);
    world.ops_post(&format!("/ops/sandbox/pix/{card}/pay"), &json!({})).await.refused(404, "charge_not_found");
    let late = text(&merchant.post("/api/pix", &pix("10.00")).await.expect(201)["txid"]);
    merchant.post(&format!("/api/charges/{late}/cancel"), &json!({})).await.expect(200);
    world.ops_post(&format!("/ops/sandbox/pix/{late}/pay"), &json!({})).await.refused(409, "charge_not_pending");
    let decider = Browser::signed_in(&world, RUI).await;
    assert_eq!(decider.post("/console/sandbox/pix", &[("txid", &txid)]).await.status, 403);
    world.check_books().await;
}

#[tokio::test]
async fn a_form_that_is_sent_twice_changes_once() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let draft = merchant.draft("Bia", 1).await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    // The draft is submitted before, so that nothing is booked beside the forms.
    world.advance(0).await;
    let (item, charge) = (format!("/console/queue/{draft}"), format!("/console/charges/{txid}/dispute"));
    let browser = Browser::signed_in(&world, ANA).await;
    let (of_merchant, of_key) =
        (format!("/console/merchants/{}", merchant.id), format!("/console/keys/{}", merchant.key_id));
    for (place, action, changes) in [
        (format!("{of_merchant}/change"), format!("{of_merchant}/change"), [("name", "Loja Verde")]),
        (of_key.clone(), format!("{of_key}/address"), [("webhook_url", "http://127.0.0.1:9/hook")]),
        (of_key.clone(), format!("{of_key}/revoke"), [("sure", "on")]),
        (item.clone(), item, [("notes", "")]),
        (format!("{charge}?amount=1,00&kind=med"), charge, [("reason", "Golpe")]),
        ("/console/sandbox".to_owned(), "/console/sandbox".to_owned(), [("hours", "24")]),
    ] {
        let page = browser.page(&place).await;
        let before = world.cut().await;
        assert_eq!(send(&browser, &page, &action, &changes).await.status, 303, "{action}");
        let once = world.cut().await;
        assert_ne!(once, before, "{action}");
        let again = send(&browser, &page, &action, &changes).await;
        assert_eq!(world.cut().await, once, "{action} sent again: {} {}", again.status, again.html);
        assert!(again.status == 303 || action.ends_with("/revoke"), "{action}: {}", again.html);
    }
}

#[tokio::test]
async fn a_refund_is_started_on_the_page_of_its_charge() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let (place, path) = (format!("/console/charges/{txid}"), format!("/console/charges/{txid}/refunds"));
    assert!(
        !Browser::signed_in(&world, EVA).await.page(&place).await.html.contains(&path),
        "who only reads starts none"
    );
    let browser = Browser::signed_in(&world, RUI).await;
    let page = browser.page(&place).await;
    let refused = send(&browser, &page, &path, &[("amount", "12.3"), ("reason", "Golpe & outros")]).await;
    assert_eq!(refused.status, 400);
    refused.has(&["value=\"12.3\"", "Golpe &amp; outros</textarea>"]);
    let sent = send(&browser, &page, &path, &[("amount", "12.34"), ("reason", "Golpe")]).await;
    assert_eq!((sent.status, sent.header("location")), (303, &*place), "{}", sent.html);
    browser.page(&place).await.has(&["The refund waits in the queue", "R$12.34"]);
    let queue = world.ops_get("/ops/queue?kind=refund").await.expect(200);
    assert_eq!((&items(&queue)[0]["amount"], &items(&queue)[0]["reason"]), (&json!(1_234), &json!("Golpe")));
}
