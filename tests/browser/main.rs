//! Operators' console and the references in a real browser: every screen in both languages, both
//! color schemes and two widths; the day of an operator, with and without JavaScript; hostile
//! texts; a sample that is sent from the reference; the marketplace of the examples.

#![allow(clippy::unwrap_used, reason = "a test that finds nothing to unwrap has failed, and says where")]

mod chromium;
mod finance_days;
mod marketplace;
mod operator_days;
mod pictures;
mod sample_server;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::chromium::{Browser, DOWN, ENTER, VIEWS, View};
use crate::sample_server::SampleServer;

/// Route templates that no address shows: forms' targets, redirects and files. The pages that forms
/// answer with are judged where they are sent.
const NO_PAGES: [&str; 31] = [
    "/console/exports/chart",
    "/console/charges/{txid}/refunds",
    "/console/house/batches",
    "/console/house/batches/{id}/reject",
    "/console/merchants/{id}/holds",
    "/console/recipients/{id}/freeze",
    "/console/recipients/{id}/reveal",
    "/console/recipients/{id}/withdraw",
    "/console/queue/{id}/reverse",
    "/console/cards/{id}/delete",
    "/console/notes/{id}",
    "/console/people/erase",
    "/console/people/person",
    "/console/queue/{id}/settle",
    "/console/sandbox/pix",
    "/console/keys/{id}/address",
    "/console/keys/{id}/rotate",
    "/console/keys/{id}/redeliver",
    "/console/keys/{id}/test",
    "/console/merchants/{id}/keys",
    "/console/keys/{id}/revoke",
    "/console/find",
    "/console/sign-out",
    "/console/exports/file",
    "/console/exports/{id}/file",
    "/console/reports/file",
    "/console/reconciliations/{id}/dismiss",
    "/console/reconciliations/{id}/explain",
    "/console/webhooks/{id}/redeliver",
    "/console/assets/{name}",
    "/console/{*unknown}",
];

/// The route templates of the console, as its route table has them.
fn templates() -> BTreeSet<String> {
    let table = include_str!("../../crates/console/src/routes.rs");
    let routes = table.split(".route(\"").skip(1).map(|route| route.split('"').next().unwrap().to_owned());
    routes.filter(|path| path.starts_with("/console") && !NO_PAGES.contains(&path.as_str())).collect()
}

/// Whether a path is one of a template.
fn fits(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(part, of): (&&str, &&str)| part == of || part.starts_with('{');
    template.len() == path.len() && template.iter().zip(&path).all(same)
}

/// Forms that change something and lack the session's token or a key, and pages of more than 100
/// KiB.
const OF_THE_PAGE: &str = "const forms = [...document.querySelectorAll('form[method=post]')]\
     .filter(form => !form.action.endsWith('/sign-in') && (!form.querySelector('input[name=form_token]') ||\
       !(form.action.endsWith('/sign-out') || form.querySelector('input[name=key]'))));\
     const size = new Blob([document.documentElement.outerHTML]).size;\
     return forms.map(form => 'a form without its token or key: ' + form.action)\
       .concat(size > 102400 ? ['a page of ' + size + ' bytes'] : [])";

/// Ids that more than one part of a page has. A script and a label find the first one only.
const IDS_TWICE: &str = "const ids = [...document.querySelectorAll('[id]')].map(part => part.id);\
     return [...new Set(ids.filter((id, place) => ids.indexOf(id) !== place))]";

/// What the reference breaks over lines: the word "required", and names in its list of operations
/// of more than two lines.
const BROKEN_WORDS: &str = "const lines = (part) => { const range = document.createRange(); range.selectNodeContents(part);\
     return new Set([...range.getClientRects()].map(line => Math.round(line.top))).size };\
     return [...document.querySelectorAll('td.need')].filter(cell => lines(cell) > 1).map(() => 'a word in two')\
       .concat([...document.querySelectorAll('nav a')].filter(name => lines(name) > 2).map(name => 'a long name: ' + name.text))";

/// Cells of tables that are outside of the screen, or whose text is.
const CELLS_OUTSIDE: &str = "const range = document.createRange(), end = document.documentElement.clientWidth + 1;\
     const right = cell => { range.selectNodeContents(cell);\
       return Math.max(cell.getBoundingClientRect().right, range.getBoundingClientRect().right) };\
     const isShown = cell => cell.checkVisibility() && getComputedStyle(cell.closest('thead') ?? cell).clipPath === 'none';\
     return [...document.querySelectorAll('td, th')].filter(cell => isShown(cell) && right(cell) > end)\
       .map(cell => 'a cell ends at ' + Math.round(right(cell)) + ': ' + cell.textContent.slice(0, 60)).slice(0, 5)";

/// The ids of the page that are there more than once.
async fn ids_twice(browser: &Browser) -> Vec<String> {
    let found = browser.run(IDS_TWICE).await;
    found.as_array().unwrap().iter().map(|id| format!("the id {id} more than once")).collect()
}

/// Judges a page in every view.
async fn judge(browser: &Browser, address: &str, name: &str, defects: &mut Vec<String>) {
    browser.open(address).await;
    judge_shown(browser, address, name, defects).await;
}

/// Judges the page that is shown, as a form's answer is, in every view.
async fn judge_shown(browser: &Browser, address: &str, name: &str, defects: &mut Vec<String>) {
    if address.contains("/console") {
        let found = browser.run(OF_THE_PAGE).await;
        defects.extend(found.as_array().unwrap().iter().map(|defect| format!("{address}: {defect}")));
    }
    defects.extend(ids_twice(browser).await.into_iter().map(|defect| format!("{address}: {defect}")));
    for view in VIEWS {
        browser.view(view).await;
        let at = format!("{address} ({} {})", view.scheme, view.width);
        defects.extend(browser.defects().await.into_iter().map(|defect| format!("{at}: {defect}")));
        if address.contains("/reference") {
            let broken = browser.run(BROKEN_WORDS).await;
            defects.extend(broken.as_array().unwrap().iter().map(|defect| format!("{at}: {defect}")));
        }
        browser.keep_picture(&format!("{name}-{}-{}", view.scheme, view.width)).await;
    }
    browser.view(View { scheme: "light", width: 320 }).await;
    let wide = browser.run("return document.documentElement.scrollWidth").await;
    if wide.as_u64() > Some(320) {
        defects.push(format!("{address}: {wide} wide where 320 are"));
    }
    if address.contains("/console") {
        for width in [390, 320] {
            browser.view(View { scheme: "light", width }).await;
            let outside = browser.run(CELLS_OUTSIDE).await;
            let outside = outside.as_array().unwrap().iter().filter(|_| width == 390);
            defects.extend(outside.map(|cell| format!("{address} ({width}): {cell}")));
            defects.extend(focus_hidden(browser).await.into_iter().map(|part| format!("{address} ({width}): {part}")));
        }
    }
    defects.extend(browser.said().await.into_iter().map(|line| format!("{address}: {line}")));
}

/// What can have the focus and is hidden, or has no outline, while it has it.
async fn focus_hidden(browser: &Browser) -> Vec<String> {
    // A window that was just made narrower has the focus a moment later, and its style with it:
    // what is hidden stays so.
    let mut found = Value::Null;
    for pause_ms in [0, 200, 1_000, 3_000, 10_000] {
        tokio::time::sleep(Duration::from_millis(pause_ms)).await;
        browser.press("\t").await;
        found = browser.run(&FOCUS_HIDDEN.replace("FOCUSED", FOCUSED)).await;
        if found.as_array().unwrap().is_empty() {
            break;
        }
    }
    found.as_array().unwrap().iter().map(|name| format!("the focus is hidden: {name}")).collect()
}

const FOCUS_HIDDEN: &str = "const focused = () => { FOCUSED };\
     const able = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex=\"0\"]';\
     const parts = [...document.querySelectorAll(able)]\
       .filter(part => part.tabIndex >= 0 && !part.disabled && part.checkVisibility({visibilityProperty: true}));\
     const found = parts.map(part => { part.focus(); return focused(); });\
     parts[0].focus();\
     return found.filter(part => part.hidden).map(part => part.name)";

#[tokio::test]
async fn every_screen_is_without_defects_in_every_view() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    let mut defects = Vec::new();
    for language in ["pt-BR", "en"] {
        let address = format!("{}/console/sign-in?lang={language}", shop.operations());
        judge(&browser, &address, &format!("sign-in-{language}"), &mut defects).await;
    }
    shop.sign_in(&browser).await;
    let screens = shop.screens();
    for template in templates().iter().filter(|template| *template != "/console/sign-in") {
        assert!(screens.iter().any(|(_, path)| fits(template, path)), "{template} is in no test");
    }
    for (name, path) in &screens {
        for language in ["pt-BR", "en"] {
            let joint = if path.contains('?') { '&' } else { '?' };
            let address = format!("{}{path}{joint}lang={language}", shop.operations());
            judge(&browser, &address, &format!("{name}-{language}"), &mut defects).await;
            let shown =
                browser.run("return document.documentElement.lang + document.querySelectorAll('h1').length").await;
            assert_eq!(shown, json!(format!("{language}1")), "{address}");
        }
    }
    browser.close().await;
    shop.stop();
    assert!(defects.is_empty(), "{} defects: {defects:#?}", defects.len());
}

/// The pages that forms answer with, those of problems, and those of an operator who may only read.
#[tokio::test]
async fn what_forms_answer_is_without_defects_in_every_view() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    let mut defects = Vec::new();
    let target = shop.operations();
    let form = format!("<form method=post action='{target}/console/sign-in'><button>x</button></form>");
    let other = other_site(format!("<html lang=en><title>x</title>{form}</html>")).await;
    browser.open(&other).await;
    browser.click("button").await;
    browser.has("form_refused").await;
    let _refused = browser.said().await;
    judge_shown(&browser, "/console/sign-in (another site)", "answer-refused", &mut defects).await;
    browser.open(&format!("{target}/console/sign-in?lang=en")).await;
    browser.type_into("#token", &format!("wrong-of-thirty-two-characters-or-more{ENTER}")).await;
    browser.has("opens nothing").await;
    let _unauthorized = browser.said().await;
    judge_shown(&browser, "/console/sign-in (wrong token)", "answer-wrong-token", &mut defects).await;
    shop.sign_in(&browser).await;
    for language in ["pt-BR", "en"] {
        let draft = shop.draft("Bia Lima").await;
        let is_english = usize::from(language == "en");
        for (name, page, form, said) in [
            ("key", shop.merchant_page(), "form[action$='/keys']", ["não aparecem de novo", "not shown again"]),
            ("secret", shop.key_page(), "form[action$='/rotate']", ["não aparecem de novo", "not shown again"]),
            (
                "many",
                format!("/console/queue/many?decision=approve&id={draft}"),
                "main form",
                [": Decidido.", ": Decided."],
            ),
        ] {
            let joint = if page.contains('?') { '&' } else { '?' };
            browser.open(&format!("{target}{page}{joint}lang={language}")).await;
            browser.enter(&format!("{form} button[type=submit]")).await;
            browser.has(said[is_english]).await;
            judge_shown(&browser, &format!("{page} answers"), &format!("answer-{name}-{language}"), &mut defects).await;
        }
        browser.open(&format!("{target}/console/nowhere?lang={language}")).await;
        let _not_found = browser.said().await;
        judge_shown(&browser, "/console/nowhere", &format!("answer-nowhere-{language}"), &mut defects).await;
        browser.open(&format!("{target}/console/sandbox?lang={language}")).await;
        browser.write("#txid", "x").await;
        browser.enter("form[action='/console/sandbox/pix'] button").await;
        browser.has("not_found").await;
        let _not_found = browser.said().await;
        judge_shown(&browser, "/console/sandbox/pix answers", &format!("answer-problem-{language}"), &mut defects)
            .await;
    }
    browser.enter("header form[method=post] button").await;
    shop.sign_in_as(&browser, sample_server::EVA).await;
    for (name, path) in
        shop.screens().into_iter().filter(|(name, _)| sample_server::OF_READERS.contains(&name.as_str()))
    {
        judge(&browser, &format!("{target}{path}"), &format!("read-{name}"), &mut defects).await;
    }
    browser.close().await;
    shop.stop();
    assert!(defects.is_empty(), "{} defects: {defects:#?}", defects.len());
}

/// The sign-in of who comes without https, and of who was wrong too often.
#[tokio::test]
async fn a_sign_in_that_is_not_tried_is_without_defects() {
    let Some(browser) = Browser::start().await else { return };
    let empty = sample_server::Empty::start().await;
    let mut defects = Vec::new();
    let elsewhere = empty.operations().replace("127.0.0.1", "ops.example");
    for (language, https, later) in
        [("pt-BR", "precisa de https", "Muitos tokens errados"), ("en", "needs https", "Too many wrong tokens")]
    {
        let address = format!("{elsewhere}/console/sign-in?lang={language}");
        browser.open(&address).await;
        browser.has(https).await;
        let _opener_policy_needs_https = browser.said().await;
        judge_shown(&browser, &address, &format!("sign-in-https-{language}"), &mut defects).await;
        browser.type_into("#token", &format!("{}{ENTER}", sample_server::ANA)).await;
        browser.has(https).await;
        let _bad_request = browser.said().await;
        judge_shown(&browser, "/console/sign-in (no https)", &format!("answer-https-{language}"), &mut defects).await;

        let address = format!("{}/console/sign-in?lang={language}", empty.operations());
        browser.open(&address).await;
        while !browser.text().await.contains(later) {
            browser.type_into("#token", &format!("wrong-of-thirty-two-characters-or-more{ENTER}")).await;
        }
        let _too_many = browser.said().await;
        judge_shown(&browser, "/console/sign-in (too often)", &format!("answer-later-{language}"), &mut defects).await;
    }
    browser.close().await;
    empty.stop();
    assert!(defects.is_empty(), "{} defects: {defects:#?}", defects.len());
}

/// The sections of a server on which nothing has happened.
#[tokio::test]
async fn empty_pages_are_without_defects() {
    let Some(browser) = Browser::start().await else { return };
    let empty = sample_server::Empty::start().await;
    empty.sign_in(&browser).await;
    let links = "return [...document.querySelectorAll('nav a')].map(link => link.getAttribute('href'))";
    let sections = browser.run(links).await;
    let mut defects = Vec::new();
    assert!(sections.as_array().unwrap().len() > 10, "{sections}");
    let others = ["/console/periods", "/console/trial-balance?by=ledger"];
    let all = sections.as_array().unwrap().iter().map(|path| path.as_str().unwrap()).chain(others);
    for path in all {
        let address = format!("{}{path}", empty.operations());
        judge(&browser, &address, &format!("empty-{}", path.rsplit('/').next().unwrap()), &mut defects).await;
    }
    browser.close().await;
    empty.stop();
    assert!(defects.is_empty(), "{} defects: {defects:#?}", defects.len());
}

#[tokio::test]
async fn the_references_are_without_defects() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    let mut defects = Vec::new();
    // Both listeners have a reference.
    for (listener, start, shown) in
        [(shop.public(), "/reference", "reference"), (shop.operations(), "/reference", "reference-of-operators")]
    {
        let index = format!("{listener}{start}");
        judge(&browser, &index, shown, &mut defects).await;
        let links = "return [...document.querySelectorAll('a[href]')].map(link => link.href.split('#')[0])";
        let links = browser.run(links).await;
        let of_kind = |link: &&str| link.starts_with(&format!("{index}/"));
        let pages: BTreeSet<&str> =
            links.as_array().unwrap().iter().filter_map(|link| link.as_str()).filter(of_kind).collect();
        assert!(pages.len() > 3, "{start}: {pages:?}");
        for page in pages {
            let name = page.rsplit('/').next().unwrap();
            judge(&browser, page, &format!("{shown}-{name}"), &mut defects).await;
        }
    }
    judge(&browser, &format!("{}/problems/unauthorized", shop.public()), "problem", &mut defects).await;
    browser.close().await;
    shop.stop();
    assert!(defects.is_empty(), "{} defects: {defects:#?}", defects.len());
}

/// The samples of a page are sent from it, with a key of a sandbox alone; what one makes, the next
/// one names.
#[tokio::test]
async fn a_charge_is_made_and_read_in_the_reference() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    browser.open(&format!("{}/reference/charges", shop.public())).await;
    let send = async |operation: &str, expected: &str| {
        let form = format!("document.querySelector('#{operation} .try')");
        browser.run(&format!("{form}.open = true; {form}.querySelector('button').click()")).await;
        for _ in 0..100 {
            let shown = browser.run(&format!("return {form}.querySelector('output').textContent")).await;
            if shown.as_str().is_some_and(|shown| shown.starts_with(expected)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{operation}: {}", browser.run(&format!("return {form}.querySelector('output').textContent")).await);
    };
    let with_key = async |key: &str| {
        browser.run("document.querySelector('#values [name=KEY]').value = ''").await;
        browser.type_into("#values [name=KEY]", key).await;
    };
    with_key("live_0123").await;
    send("create_or_look_up_pix", "A key of a sandbox is needed").await;
    with_key(shop.key()).await;
    send("create_or_look_up_pix", "201\n").await;
    send("get_charge", "200\n").await;
    send("get_charge_qr_code", "200\n<?xml").await;
    send("cancel_charge", "200\n").await;
    send("get_charge_qr_code", "409\n").await;
    browser.close().await;
    shop.stop();
}

/// What is judged must be able to be wrong.
#[tokio::test]
async fn a_page_with_defects_is_found_out() {
    let Some(browser) = Browser::start().await else { return };
    let pale = "<html><body style='background:%23fff'><p style='color:%23aaa'>pale text</p><div style='width:2000px'>y</div>\
         <svg><text fill='%23bbb'>z</text></svg><img src='x'><b id=a></b><b id=a></b>\
         <button>good</button><button style='outline:none'>bare</button><p style='position:relative'><button>under</button>\
         <i style='position:absolute;inset:0;background:%23fff'></i></p><script>console.error('said')</script></body></html>";
    browser.open(&format!("data:text/html,{pale}")).await;
    browser.view(VIEWS[0]).await;
    assert_eq!(focus_hidden(&browser).await.len(), 2, "what lies under another part, and what has no outline");
    let (defects, said) = (browser.defects().await, browser.said().await);
    assert_eq!(ids_twice(&browser).await, ["the id \"a\" more than once"]);
    for expected in ["color-contrast", "image-alt", "html-has-lang", "sideways scroll", "picture: \"z\""] {
        assert!(defects.iter().any(|defect| defect.starts_with(expected)), "{expected}: {defects:#?}");
    }
    assert!(said.iter().any(|line| line.contains("said")), "{said:?}");
    let narrow = "<html><nav style='width:5rem'><a>Charges of a recipient's plan</a></nav>\
         <table style='width:1px;overflow-wrap:anywhere'><tr><td class=need>required</table>";
    browser.open(&format!("data:text/html,{narrow}")).await;
    let broken = browser.run(BROKEN_WORDS).await;
    assert_eq!(broken, json!(["a word in two", "a long name: Charges of a recipient's plan"]));
    let list = "<div class=scroll style='overflow:auto;width:5rem'><table class=list style='width:300px'>\
         <tr style='display:grid'><td>a<td>b<td>c</table></div>";
    browser.open(&format!("data:text/html,{list}")).await;
    browser.view(VIEWS[3]).await;
    let defects = browser.defects().await;
    for expected in ["a row of a list in 3 lines: abc", "a list is cut off: 300 in 80"] {
        assert!(defects.iter().any(|defect| defect.starts_with(expected)), "{expected}: {defects:#?}");
    }
    let form = "<form method=post action='/console/house'><button>x</button></form>";
    let token =
        "<form method=post action='/console/house'><input name=form_token value=t><input name=key value=k></form>";
    for (body, expected) in [
        (form, "a form without its token or key"),
        (token, ""),
        (&*format!("{token}{}", "y".repeat(102_400)), "a page of"),
    ] {
        browser.open(&format!("data:text/html,<html lang=en>{body}</html>")).await;
        let found = browser.run(OF_THE_PAGE).await;
        let found: Vec<_> = found.as_array().unwrap().iter().map(|defect| defect.as_str().unwrap()).collect();
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{found:?}");
        assert!(found.iter().all(|defect| defect.starts_with(expected)), "{found:?}");
    }
    browser.close().await;
}

/// The day of an operator, by keyboard alone: with JavaScript, and without.
#[tokio::test]
async fn an_operator_decides_for_a_day() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    for (is_on, recipient) in [(true, "Bia Lima"), (false, "Eva Prado")] {
        browser.javascript(is_on).await;
        browser.open(&format!("{}/console/queue?lang=en", shop.operations())).await;
        browser.write("#token", &format!("wrong-of-thirty-two-characters-or-more{ENTER}")).await;
        browser.has("opens nothing").await;
        browser.write("#token", &format!("{}{ENTER}", sample_server::ANA)).await;
        assert_eq!(browser.place().await, "/console/queue?lang=en");

        let draft = shop.draft(recipient).await;
        browser.enter("nav a[href='/console/queue']").await;
        browser.enter(&format!("a[href='/console/queue/{draft}']")).await;
        browser.has(recipient).await;
        browser.enter("section[aria-labelledby=approve] button").await;
        browser.has("Decided.").await;
        if is_on {
            assert_eq!(browser.defects().await, [""; 0], "what was done is said without defects too");
        }
        assert_eq!(shop.status_of(&draft).await, "active");

        let paid = shop.paid_pix().await;
        browser.enter("nav a[href='/console/charges']").await;
        browser.enter(&format!("a[href='/console/charges/{paid}']")).await;
        browser.has("Charge of R$100.00").await;

        let withdrawal = shop.withdrawal(is_on).await;
        browser.write("input[name=q]", &format!("{paid}{ENTER}")).await;
        browser.enter("nav a[href='/console/queue']").await;
        browser.enter(&format!("a[href='/console/queue/{withdrawal}']")).await;
        let shown = browser.text().await;
        assert!(shown.contains("Booked with the decision") && shown.contains("Reserved:Withdrawal"), "{shown}");
        browser.write("#notes-reject", "Sem comprovante").await;
        browser.enter("section[aria-labelledby=reject] button").await;
        assert_eq!(browser.place().await, "/console/queue");

        browser.enter("nav a[href='/console/webhooks']").await;
        browser.enter("main a[href$='/events']").await;
        browser.enter("main form button").await;
        browser.has("sent again").await;
        browser.enter("nav a[href='/console/sandbox']").await;
        browser.enter("form[action='/console/sandbox'] button").await;
        browser.has("The clock has moved").await;
        browser.enter("nav a[href='/console/trial-balance']").await;
        browser.has("Debits equal credits.").await;
        browser.enter("nav a[href='/console/audit']").await;
        let audit = browser.text().await;
        for row in ["approve recipient", "reject withdrawal", "Sem comprovante", "advance clock", "ana"] {
            assert!(audit.contains(row), "{row}: {audit}");
        }
        browser.enter("header form[method=post] button").await;
        assert_eq!(browser.place().await, "/console/sign-in");
        browser.open(&format!("{}/console/audit", shop.operations())).await;
        assert!(browser.place().await.starts_with("/console/sign-in"), "signed out");
        assert_eq!(browser.said().await.into_iter().filter(|line| !line.contains("401")).collect::<Vec<_>>(), [""; 0]);
    }
    browser.close().await;
    shop.stop();
}

/// A dispute, the proof of the chain, many decisions at once, a recipient, and an entry of the
/// house, by keyboard alone: with JavaScript, and without.
#[tokio::test]
async fn an_operator_disputes_and_decides_on_many() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.sign_in(&browser).await;
    browser.open(&format!("{}/console?lang=en", shop.operations())).await;
    for is_on in [true, false] {
        browser.javascript(is_on).await;
        let paid = shop.paid_pix().await;
        browser.enter("nav a[href='/console/merchants']").await;
        browser.write("input[name=q]", &format!("{paid}{ENTER}")).await;
        assert_eq!(browser.place().await, format!("/console/charges/{paid}"));
        browser.write("#amount", "12,34").await;
        browser.enter("section[aria-labelledby=dispute] button").await;
        browser.has("Booked with the decision").await;
        browser.write("#reason", "Golpe").await;
        browser.enter("section[aria-labelledby=booked] button").await;
        browser.has("Dispute opened, money held").await;

        let drafts = [shop.draft("Ana Um").await, shop.draft("Ana Dois").await];
        browser.enter("nav a[href='/console/queue']").await;
        if is_on {
            browser.tab_to("input[data-amount='1234']").await;
            browser.press(" ").await;
            browser.has("1 · R$12.34").await;
            browser.press(" ").await;
            assert!(!browser.text().await.contains("1 · R$12.34"), "nothing is chosen");
        }
        for draft in &drafts {
            browser.tab_to(&format!("input[value='{draft}']")).await;
            browser.press(" ").await;
        }
        browser.enter("button[name=decision][value=approve]").await;
        browser.has("Approve (2)").await;
        browser.enter("main form button").await;
        assert_eq!(browser.text().await.matches(": Decided.").count(), 2);
        for draft in &drafts {
            assert_eq!(shop.status_of(draft).await, "active");
        }
        browser.write("input[name=q]", &format!("{}{ENTER}", drafts[0])).await;
        assert_eq!(browser.place().await, format!("/console/recipients/{}", drafts[0]));
        browser.has("Ana Um").await;

        browser.enter("nav a[href='/console/house']").await;
        browser.tab_to("#credit").await;
        browser.press(DOWN).await;
        browser.write("#amount", "0,05").await;
        browser.write("#reason", "Tarifa").await;
        browser.write("#reference", "EXTRATO-9").await;
        browser.tab_to("input[name=reference_repeats]").await;
        browser.press(" ").await;
        browser.enter("section[aria-labelledby=ask] button").await;
        browser.has("waits for another operator").await;
        assert_eq!(browser.said().await, [""; 0]);
    }
    browser.close().await;
    shop.stop();
}

/// Keys lead through rows; single letters can be switched off, and stay so.
#[tokio::test]
async fn keys_of_a_single_letter_can_be_switched_off() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.sign_in(&browser).await;
    browser.open(&format!("{}/console/queue?lang=en", shop.operations())).await;
    let focused = "return document.activeElement.getAttribute('href') || document.activeElement.tagName";
    browser.press("j").await;
    let first = browser.run(focused).await;
    assert!(first.as_str().unwrap().starts_with("/console/queue/"), "{first}");
    browser.press("j").await;
    assert_ne!(browser.run(focused).await, first);
    browser.press("k").await;
    assert_eq!(browser.run(focused).await, first);
    let chosen = "return document.querySelectorAll('main input[name=id]:checked').length";
    browser.press("x").await;
    assert_eq!(browser.run(chosen).await, json!(1));
    browser.press("x").await;
    assert_eq!(browser.run(chosen).await, json!(0));
    browser.press("/").await;
    assert_eq!(browser.run("return document.activeElement.name").await, "q");
    browser.press("j").await;
    assert_eq!(browser.run("return document.activeElement.value").await, "j", "a text is a text");

    for path in [shop.merchant_page().as_str(), "/console/queue"] {
        browser.open(&format!("{}{path}", shop.operations())).await;
        browser.press("?").await;
        assert_eq!(browser.run("return document.getElementById('keys').open").await, true, "{path}");
    }
    let mut defects = Vec::new();
    for view in VIEWS {
        browser.view(view).await;
        defects.extend(browser.defects().await);
    }
    assert_eq!(defects, [""; 0], "the list of keys");
    browser.tab_to("#letters").await;
    browser.press(" ").await;
    browser.tab_to("dialog button").await;
    browser.press(&ENTER.to_string()).await;
    for _ in 0..2 {
        assert_eq!(browser.run("return document.getElementById('keys').open").await, false);
        browser.run("document.activeElement.blur()").await;
        browser.press("j").await;
        assert_eq!(browser.run(focused).await, "BODY", "letters do nothing");
        browser.open(&format!("{}/console/queue", shop.operations())).await;
    }
    browser.tab_to("#keys-open").await;
    browser.press(&ENTER.to_string()).await;
    assert_eq!(browser.run("return document.getElementById('keys').open").await, true, "the button opens it anyway");
    assert_eq!(browser.said().await, [""; 0]);
    browser.close().await;
    shop.stop();
}

#[tokio::test]
async fn the_focus_is_seen_and_the_first_key_leads_to_the_content() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.sign_in(&browser).await;
    browser.view(VIEWS[0]).await;
    browser.open(&format!("{}/console/queue?lang=en", shop.operations())).await;
    browser.press("\t").await;
    assert_eq!(browser.run("return document.activeElement.className").await, "skip");
    let mut seen = BTreeSet::new();
    for _ in 0..25 {
        let focused = browser.run(FOCUSED).await;
        assert_eq!(focused["hidden"], false, "{focused}");
        seen.insert(focused["name"].to_string());
        browser.press("\t").await;
    }
    assert!(seen.len() > 15, "{seen:?}");
    browser.close().await;
    shop.stop();
}

/// What has the focus, and whether it is hidden or its outline is.
const FOCUSED: &str = "const at = document.activeElement, box = at.getClientRects()[0];\
     let [left, top, right, bottom] = [Math.max(box.left, 0), Math.max(box.top, 0), \
       Math.min(box.right, innerWidth), Math.min(box.bottom, innerHeight)];\
     for (let up = at.parentElement; up && up !== document.body; up = up.parentElement) {\
       if (getComputedStyle(up).overflowX === 'visible') continue;\
       const frame = up.getBoundingClientRect();\
       [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];\
       [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];\
     }\
     const middle = document.elementFromPoint((left + right) / 2, top + Math.min((bottom - top) / 2, 20));\
     const outline = getComputedStyle(at);\
     return {name: at.tagName + at.textContent.slice(0, 20) + (at.name || ''), \
       hidden: at !== document.body && (!(at === middle || at.contains(middle) || (middle && middle.contains(at))) || \
         outline.outlineStyle === 'none')}";

/// The address of another site, which answers everything with one page.
async fn other_site(page: String) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n", page.len());
            let answer = format!("{head}connection: close\r\n\r\n{page}");
            let mut buffer = [0; 4_096];
            let _read = stream.read(&mut buffer).await;
            let _written = stream.write_all(answer.as_bytes()).await;
        }
    });
    format!("http://localhost:{port}/")
}

/// A page that another site shows: its form does not come through, and it frames nothing of ours.
#[tokio::test]
async fn another_site_can_neither_send_a_form_nor_frame_a_page() {
    let Some(browser) = Browser::start().await else { return };
    let shop = SampleServer::start().await;
    shop.sign_in(&browser).await;
    let target = shop.operations();
    let form = format!("<form method=post action='{target}/console/sign-out'><button>x</button></form>");
    let frame = format!("<iframe src='{target}/console/sign-in'></iframe>");
    let other = other_site(format!("<html lang=en><title>x</title>{form}{frame}</html>")).await;
    browser.open(&other).await;
    let mut said = String::new();
    for _ in 0..50 {
        said += &browser.said().await.join("\n");
        if said.contains("frame-ancestors") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(said.contains("frame-ancestors"), "{said}");
    browser.click("button").await;
    // Another site's form carries no cookie, and would be refused with one.
    assert!(browser.place().await.starts_with("/console/sign-in"), "{}", browser.text().await);
    browser.open(&format!("{target}/console")).await;
    assert_eq!(browser.place().await, "/console", "the session is still there");
    browser.close().await;
    shop.stop();
}
