//! What pages of the console claim: that a proof covers what was read, that a list says where it
//! was cut, that a form did what the next page says, that sums include every account. And what the
//! sign-in warns of, and refuses, before a token is sent or looked at.

use reqwest::Method;
use serde_json::json;

use crate::console::{ANA, Browser, RUI, world_of_three};
use crate::world::*;

#[tokio::test]
async fn an_amount_is_taken_as_it_is_written_or_not_at_all() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("1000.00")).await["txid"]);
    let mut browser = Browser::signed_in(&world, RUI).await;
    for (language, text, centavos) in [
        ("en", "12.34", Some("1234")),
        ("en", "12,34", Some("1234")),
        ("pt-BR", "1.000", Some("100000")),
        ("en", "1.000", None),
        ("pt-BR", "0,005", None),
        ("en", "0.123", None),
        ("pt-BR", "12,5", None),
    ] {
        browser.language = language;
        let page = browser.get(&format!("/console/charges/{txid}/dispute?amount={text}&kind=med")).await;
        match centavos {
            Some(centavos) => assert_eq!(page.hidden("amount"), centavos, "{text}"),
            None => {
                assert_eq!(page.status, 400, "{text}: {}", page.html);
                page.has(&[if language == "en" { "with two decimals or none" } else { "duas casas decimais" }]);
            }
        }
    }
}

#[tokio::test]
async fn the_sign_in_warns_before_a_token_is_sent_in_clear() {
    let world = World::sandbox().await;
    let browser = Browser::new(&world);
    for (headers, warns) in [
        (vec![("host", "ops.example")], true),
        (vec![("host", "ops.example"), ("x-forwarded-proto", "http")], true),
        (vec![("host", "ops.example"), ("x-forwarded-proto", "https")], false),
        (vec![("host", "localhost:8081")], false),
    ] {
        let page = browser.send(Method::GET, "/console/sign-in", &headers, String::new()).await;
        assert_eq!((page.status, page.html.contains("needs https")), (200, warns), "{headers:?}: {}", page.html);
        page.has(&["type=\"password\""]);
    }
    let body = format!("token={OPS_TOKEN}&next=/console&lang=en");
    let form = ("content-type", "application/x-www-form-urlencoded");
    for (origin, scheme, status) in [
        ("http://ops.example", "https", 403),
        ("https://ops.example", "http", 403),
        ("http://ops.example", "http", 400),
        ("https://ops.example", "https", 303),
    ] {
        let headers = [form, ("host", "ops.example"), ("origin", origin), ("x-forwarded-proto", scheme)];
        let page = browser.send(Method::POST, "/console/sign-in", &headers, body.clone()).await;
        assert_eq!((page.status, page.headers.contains_key("set-cookie")), (status, status == 303), "{headers:?}");
    }
}

#[tokio::test]
async fn a_list_that_was_looked_through_in_part_says_so() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let open = async |number: u32| {
        let body = json!({"name": format!("Loja {number}"), "document": cnpj(1_000 + number)});
        world.ops_post("/ops/merchants", &body).await.expect(201)
    };
    for number in 0..2_000 {
        open(number).await;
    }
    browser.page("/console/merchants?named=nowhere").await.has(&["Nothing here."]);
    open(2_000).await;
    let page = browser.page("/console/merchants?named=nowhere").await;
    page.has(&["Nothing in the 2,000 Records that were read", "named=nowhere&amp;before=", "rel=\"next\""]);
    browser.page("/console/merchants?named=loja%202000").await.has(&["Loja 2000"]);
}

#[tokio::test]
async fn a_charge_of_many_records_says_that_there_are_more() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let about = async || {
        let charge = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
        charge["records"].as_array().unwrap().len()
    };
    let (more, path) = ("There are more Records about this charge", format!("/console/charges/{txid}"));
    while about().await < 100 {
        let body = json!({"payment_id": txid, "amount": 1});
        let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
        if about().await < 100 {
            let reason = json!({"notes": "Não"});
            world.ops_post(&format!("/ops/refunds/{refund}/reject"), &reason).await.expect(200);
        }
    }
    assert!(!browser.page(&path).await.html.contains(more));
    merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 1})).await.expect(201);
    browser.page(&path).await.has(&[more]);
}

#[tokio::test]
async fn what_a_form_did_is_said_once() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let browser = Browser::signed_in(&world, ANA).await;
    let id = &merchant.id;
    for (path, said) in [
        ("/console/queue?decided=1".to_owned(), "Decided."),
        (format!("/console/merchants/{id}?changed=1"), "Changed."),
        (format!("/console/merchants/{id}/events?sent=1"), "sent again"),
        (format!("/console/keys/{}?sent=1&set=1", merchant.key_id), "role=\"status\""),
        ("/console/sandbox?moved=1".to_owned(), "The clock has moved"),
        ("/console/sandbox?paid=x".to_owned(), "is paid"),
        ("/console/house?asked=1".to_owned(), "The entry waits for another operator"),
    ] {
        let page = browser.get(&path).await;
        assert_eq!(page.status, 400, "{path}");
        assert!(!page.html.contains(said), "{path} claims what nobody did: {}", page.html);
    }
    let draft = merchant.draft("Bia", 1).await;
    let approve = [("kind", "recipient"), ("decision", "approve"), ("key", "a")];
    let decided = browser.post(&format!("/console/queue/{draft}"), &approve).await;
    assert_eq!(decided.header("location"), "/console/queue", "{}", decided.html);
    let other = Browser::signed_in(&world, RUI).await;
    assert!(!other.page("/console/queue").await.html.contains("Decided."), "of another session");
    browser.page("/console/queue").await.has(&["<p class=\"card\" role=\"status\">Decided.</p>"]);
    assert!(!browser.page("/console/queue").await.html.contains("Decided."), "once");
}

/// The sum that the overview has below a heading, centavos.
pub(crate) fn figure(html: &str, heading: &str) -> i64 {
    let shown = html.split(&format!("<dt>{heading}</dt><dd>")).nth(1).unwrap().split('<').next().unwrap();
    let digits: i64 = shown.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap();
    if shown.starts_with('−') { -digits } else { digits }
}

#[tokio::test]
async fn the_overview_sums_every_account_of_the_platform() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    let browser = Browser::signed_in(&world, ANA).await;
    let figures = async || {
        let page = browser.page("/console").await;
        ["Assets", "Liabilities", "Equity", "Income", "Expenses"].map(|heading| figure(&page.html, heading))
    };
    let before = figures().await;
    for (debit, credit, amount) in [
        ("Expenses:Bank:Fees", "Assets:Bank:Own", 700),
        ("Assets:Bank:Own", "Liabilities:Suspense", 90),
        ("Assets:Bank:Own", "Equity:Capital", 5_000),
    ] {
        let body = json!({"debit": debit, "credit": credit, "amount": amount, "reason": "x", "reference": credit});
        let id = text(&world.ops_post("/ops/entries", &body).await.expect(201)["id"]);
        let rui = [("authorization", bearer(RUI)), ("content-type", "application/json".to_owned())];
        let rui = rui.each_ref().map(|(name, value)| (*name, value.as_str()));
        world.send(Method::POST, &format!("/ops/entries/{id}/approve"), &rui, "{}").await.expect(200);
    }
    let after = figures().await;
    let moved: Vec<_> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(moved, [4_390, 90, 5_000, 0, 700]);
    let [holds, owes, equity, earned, spent] = after;
    assert_eq!(holds + spent, owes + equity + earned, "{after:?}");
}

#[tokio::test]
async fn balances_of_a_merchant_are_chosen_by_account_and_not_by_name() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana :Platform: Lima", 1).await;
    let body = with_splits(json!({"valor": "10.00", "nome": "Maria", "cpf": "12345678909"}), &[(&recipient, 500)]);
    let txid = text(&merchant.paid_pix(&body).await["txid"]);
    // The recipient has withdrawn what the refund takes back, and owes it.
    let withdrawal = text(&merchant.withdraw(&recipient).await.expect(201)["withdrawal_id"]);
    world.approve(&withdrawal).await.expect(200);
    world.advance(0).await;
    let body = with_splits(json!({"payment_id": txid, "amount": 500}), &[(&recipient, 500)]);
    let refund = text(&merchant.post("/api/refunds", &body).await.expect(201)["id"]);
    world.ops_post(&format!("/ops/refunds/{refund}/approve"), &json!({})).await.expect(200);
    let owed = format!("Assets:Receivable:Recipients:R-{recipient}");
    assert_eq!(world.accounts().await[&(merchant.ledger(), owed)], 500);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/merchants/{}", merchant.id)).await;
    let balances = page.html.split("id=\"balances\"").nth(1).unwrap().split("</section>").next().unwrap();
    assert!(balances.contains("Assets:<wbr>Platform:<wbr>Available"), "{balances}");
    assert!(!balances.contains("Receivable") && !balances.contains("Lima"), "{balances}");
    let ledger = browser.page(&format!("/console/ledgers/{}", merchant.ledger())).await;
    ledger.has(&["<h1><bdi>"]);
    let record = browser.page(&format!("/console/charges/{txid}")).await;
    record.has(&["R-<bdi>Ana :Platform: Lima</bdi>"]);
}

#[tokio::test]
async fn a_language_that_a_browser_does_not_accept_is_not_chosen() {
    let world = World::sandbox().await;
    let mut browser = Browser::new(&world);
    for (accepted, tag) in [("en;q=0", "pt-BR"), ("pt;q=0.4, en;q=0.6", "en"), ("en", "en")] {
        browser.language = accepted;
        browser.page("/console/sign-in").await.has(&[&format!("<html lang=\"{tag}\">")]);
    }
}
