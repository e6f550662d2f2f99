//! Months in the console: those that are over, what is open in one, and its closing by two
//! operators; and what Records and the queue say of the entries of operators.

use chrono::Duration;
use serde_json::json;

use crate::closed_periods::{local, next_month};
use crate::console::{ANA, Browser, EVA, RUI, world_of_three};
use crate::console_changes::send;
use crate::console_reads::shown_cut;
use crate::world::*;

#[tokio::test]
async fn a_month_is_closed_on_its_page_by_two_operators() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let entry = json!({"debit": "Assets:Bank:Pix", "credit": "Liabilities:Suspense", "amount": 700,
        "reason": "Depósito", "reference": "EXTRATO-9"});
    world.ops_post("/ops/entries", &entry).await.expect(201);
    let now = world.advance(0).await;
    let cut = world.cut().await;
    let month = local(now).format("%Y-%m").to_string();
    let (place, route) = (format!("/console/periods/{month}"), format!("/ops/periods/{month}"));
    let mut ana = Browser::signed_in(&world, ANA).await;
    let early = ana.page(&place).await;
    early.has(&["The month is not over yet.", &shown_cut(&cut)]);
    assert!(!early.html.contains(&format!("action=\"{place}\"")), "no form before its end");
    world.advance_to(next_month(now) + Duration::days(1)).await;
    for page in ["/console/house", "/console/trial-balance"] {
        ana.page(page).await.has(&["href=\"/console/periods\""]);
    }
    ana.page("/console/periods").await.has(&[&place, ">open<"]);
    let open = ana.page(&place).await;
    let listed = world.ops_get(&route).await.expect(200);
    assert!(!listed["open"].as_array().unwrap().is_empty(), "{listed}");
    open.has(&["Decisions that wait", "Entry of an operator", "Ask for the closing"]);
    ana.language = "pt-BR";
    ana.page(&place).await.has(&["Decisões pendentes", "Pedir o fechamento"]);
    ana.language = "en";

    let before = world.cut().await;
    let response = send(&ana, &open, &place, &[]).await;
    assert_eq!((response.status, response.header("location")), (303, place.as_str()), "{}", response.html);
    ana.page(&place).await.has(&["The closing waits for another operator.", "closing asked for", ">ana<"]);
    assert_eq!(send(&ana, &open, &place, &[]).await.status, 303, "the same form is the same request");
    assert_eq!(world.cut().await.records(), before.records() + 1, "once");
    let own = ana.page(&place).await;
    assert!(!own.html.contains(&format!("action=\"{place}\"")), "nobody closes what they asked for");
    assert_eq!(ana.post(&place, &[("key", "another-key-of-ana")]).await.status, 409);

    let eva = Browser::signed_in(&world, EVA).await;
    assert!(!eva.page(&place).await.html.contains(&format!("action=\"{place}\"")));
    assert_eq!(eva.post(&place, &[("key", "a-key-of-eva")]).await.status, 403);
    let rui = Browser::signed_in(&world, RUI).await;
    let pending = rui.page(&place).await;
    pending.has(&["Close the month"]);
    assert_eq!(send(&rui, &pending, &place, &[]).await.status, 303);
    let closed = world.ops_get(&route).await.expect(200);
    assert_eq!([&closed["status"], &closed["requested_by"], &closed["closed_by"]], ["closed", "ana", "rui"]);
    assert_eq!(send(&rui, &pending, &place, &[]).await.status, 303, "the same form is the same request");
    let page = rui.page(&place).await;
    page.has(&["The month is closed.", ">ana<", ">rui<", &text(&closed["head"]), &text(&closed["totals"])]);
    page.has(&[&shown_cut(&cut_in(&closed))]);
    assert!(!page.html.contains(&format!("action=\"{place}\"")));
    rui.page("/console/periods").await.has(&[">closed<"]);
    rui.page("/console/periods/2020-01").await.has(&[">closed<", "Closed together with"]);
    assert_eq!(rui.get("/console/periods/2026-13").await.status, 404);
    let scope = format!("/console/periods?merchant_id={}", merchant.id);
    assert_eq!(rui.get(&scope).await.status, 404, "one merchant has no months");
}

/// An account that is open at a month's end leads to its balances at the end of the month's last
/// day: what is booked later does not count there.
#[tokio::test]
async fn an_open_account_leads_to_the_books_of_the_months_last_day() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let unexplained = async |amount: i64, reference: &str| {
        let entry = json!({"debit": "Assets:Bank:Pix", "credit": "Liabilities:Suspense", "amount": amount,
            "reason": "Depósito", "reference": reference});
        let response = world.ops_post("/ops/entries", &entry).await.expect(201);
        let path = format!("/ops/entries/{}/approve", text(&response["id"]));
        world.second_ops_post(&path, &[], &json!({})).await.expect(200);
    };
    unexplained(70_000, "EXTRATO-1").await;
    let now = world.advance(0).await;
    let end = next_month(now);
    world.advance_to(end + Duration::days(1)).await;
    unexplained(1_100, "EXTRATO-2").await;
    let last_day = local(end - Duration::seconds(1)).format("%Y-%m-%d");
    let link = format!("/console/trial-balance?account=Liabilities:Suspense&date={last_day}");
    let month = browser.page(&format!("/console/periods/{}", local(now).format("%Y-%m"))).await;
    month.has(&[&format!("href=\"{}\"", link.replace('&', "&amp;"))]);
    let then = browser.page(&link).await;
    then.has(&["700.00"]);
    assert!(!then.html.contains("711.00"), "{}", then.html);
}

#[tokio::test]
async fn an_entry_of_an_operator_says_who_asked_who_approved_and_why() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let charge = with_splits(card(10_000, APPROVED), &[(&recipient, 9_999)]);
    merchant.post("/api/card", &charge).await.expect(201);
    let house = json!({"debit": "Assets:Bank:Own", "credit": "Assets:Bank:Settlement", "amount": 700,
        "reason": "Comissão de maio", "reference": "EXTRATO-9"});
    let write_off = json!({"debit": "Expenses:Losses:Other", "amount": 300, "reason": "Encerrou as atividades",
        "credit": format!("Assets:Merchants:M-{}:Deficit", merchant.id), "reference": "PARECER-17"});
    let browser = Browser::signed_in(&world, RUI).await;
    for (body, heading, other) in
        [(house, "Entry of the house", "Write-off of a debt"), (write_off, "Write-off of a debt", "Entry of the house")]
    {
        let entry = world.ops_post("/ops/entries", &body).await.expect(201);
        let request = world.last().await;
        let item = items(&world.ops_get("/ops/queue?kind=entry").await.expect(200))[0].clone();
        assert_eq!(item["requested_by"], "operator");
        for name in ["debit", "credit", "reason", "reference"] {
            assert_eq!(item[name], body[name], "{name}");
        }
        let said = [&text(&body["reason"]), &text(&body["reference"]), "operator"];
        let item_page = format!("/console/queue/{}", text(&entry["id"]));
        let many = format!("/console/queue/many?decision=approve&id={}", text(&entry["id"]));
        for path in ["/console/queue", &item_page, &many] {
            let page = browser.page(path).await;
            page.has(&said);
            page.has(&[heading, "Asked for by"]);
            let main = page.html.split("<main").nth(1).unwrap();
            assert!(!main.contains(other), "{path} says {other}");
        }
        let asking = browser.page(&page_of(request)).await;
        asking.has(&said);
        assert!(!asking.html.contains("Approved by"), "nobody has");
        let item = browser.page(&item_page).await;
        assert_eq!(send(&browser, &item, &item_page, &[]).await.status, 303);
        let page = browser.page(&page_of(world.last().await)).await;
        page.has(&said);
        let by = |word: &str| {
            let value = page.html.split(&format!("<dt>{word}</dt>")).nth(1).unwrap_or_else(|| panic!("no {word}"));
            value.split("<bdi>").nth(1).unwrap().split('<').next().unwrap().to_owned()
        };
        assert_eq!([by("Asked for by"), by("Approved by")], ["operator", "rui"]);
    }
}
