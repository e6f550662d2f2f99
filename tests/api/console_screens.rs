//! Every page of the console, in both languages, with as much on it as there can be: its size, the
//! token in its forms, hostile texts in it, and that it says nothing in names of the interface.

use std::collections::BTreeSet;

use ledger::webhook_events::WebhookEventKind;
use reqwest::Method;
use serde_json::{Value, json};
use store::cut::Position;
use strum::VariantArray;

use crate::console::{ANA, Browser, EVA, Page, world_of_three};
use crate::world::*;

/// The second Record of a charge: of a card its capture.
async fn second_record(world: &World, txid: &str) -> Position {
    let charge = world.ops_get(&format!("/ops/charges/{txid}")).await.expect(200);
    place_in(&json!({"sequence": charge["records"][1], "partition": charge["partition"]}))
}

/// Bytes of a page at most.
const PAGE_MAX: usize = 100 * 1024;

/// A text that breaks a page which does not escape it, and whose letters are entities.
const HOSTILE: &str = "\"><script>document.title='hurt'</script>&\"\"\"&&&\"";

/// A hostile text of this many characters.
fn hostile(characters: usize) -> String {
    HOSTILE.chars().cycle().take(characters).collect()
}

/// Pages that are read, as the route table has them.
fn templates() -> BTreeSet<String> {
    const NO_PAGES: [&str; 7] = [
        "/console/find",
        "/console/exports/file",
        "/console/exports/{id}/file",
        "/console/reports/file",
        "/console/assets/{name}",
        "/console/{*unknown}",
        "/console/sign-in",
    ];
    routes()
        .into_iter()
        .filter(|(path, methods)| {
            (methods.contains("get(") || methods.contains("screen(")) && !NO_PAGES.contains(&&**path)
        })
        .map(|(path, _)| path)
        .collect()
}

/// Paths of the route table, and what stands behind each.
fn routes() -> Vec<(String, String)> {
    let table = include_str!("../../crates/console/src/routes.rs");
    let routes = table.split(".route(\"").skip(1).map(|route| {
        let (path, behind) = route.split_once("\", ").unwrap();
        (path.to_owned(), behind.split('\n').next().unwrap().to_owned())
    });
    routes.filter(|(path, _)| path.starts_with("/console")).collect()
}

fn fits(template: &str, path: &str) -> bool {
    let path = path.split('?').next().unwrap();
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    let same = |(part, of): (&&str, &&str)| part == of || part.starts_with('{');
    template.len() == path.len() && template.iter().zip(&path).all(same)
}

/// What is wrong with a page.
fn defects(html: &str, language: &str) -> Vec<String> {
    let mut defects = Vec::new();
    if html.len() > PAGE_MAX {
        defects.push(format!("{} bytes", html.len()));
    }
    for form in html.split("<form").skip(1).map(|form| form.split("</form>").next().unwrap()) {
        if form.split('>').next().unwrap().contains("method=\"post\"") && !form.contains("name=\"form_token\" value=\"")
        {
            defects.push(format!("a form without its token:{}", form.split('>').next().unwrap()));
        }
        let needs_key = form.contains("method=\"post\"") && !form.contains("/sign-out\"");
        if needs_key && !form.contains("name=\"key\" value=\"") || form.contains("name=\"key\" value=\"\"") {
            defects.push(format!("a form without a key:{}", form.split('>').next().unwrap()));
        }
    }
    if html.contains("<script>") {
        defects.push("a text that is not escaped".to_owned());
    }
    let names = names_of_the_interface(language);
    let said: BTreeSet<_> = words_of(html).into_iter().filter(|word| names.contains(word.as_str())).collect();
    defects.extend(said.into_iter().map(|word| format!("the name {word}")));
    let other = words_of_the_other(language);
    let said: BTreeSet<_> = words_of(html).into_iter().map(|word| word.to_lowercase()).collect();
    defects.extend(said.iter().filter(|word| other.contains(word.as_str())).map(|word| format!("the word {word}")));
    defects
}

/// Names of statuses, methods, events, causes and of what the audit trail has, which no page says.
fn names_of_the_interface(language: &str) -> BTreeSet<&'static str> {
    let everywhere = [
        "CONCLUIDA",
        "RECUSADA",
        "in_processing",
        "pix",
        "credit_card",
        "debit_card",
        "not_public",
        "too_large",
        "not_http",
        "dns",
        "tls",
        "rotate_secret",
        "api_key",
        "bank_account",
        "tax_ids",
        "chart_of_accounts",
        "split_guard",
        "mdr_base",
        "seller_gross",
        "visa",
        "mastercard",
        "chargeback",
        "med",
        "d2",
        "d7",
        "d15",
        "door",
        "inside",
    ];
    // The words of the English pages are the same.
    let in_english = [
        "pending",
        "draft",
        "active",
        "approved",
        "rejected",
        "open",
        "accepted",
        "released",
        "cancelled",
        "refused",
        "redirect",
        "unreachable",
        "timeout",
        "closed",
        "internal",
        "create",
        "change",
        "revoke",
        "approve",
        "reject",
        "accept",
        "release",
        "advance",
        "request",
        "close",
        "read",
        "pay",
        "merchant",
        "recipient",
        "withdrawal",
        "refund",
        "dispute",
        "clock",
        "entry",
        "period",
        "charge",
        "decide",
        "net",
        "none",
        "other",
    ];
    let events = WebhookEventKind::VARIANTS.iter().map(|kind| kind.name());
    events.chain(everywhere).chain(in_english.into_iter().filter(|_| language != "en")).collect()
}

/// Words that stand in the sentences of one language and in none of the other.
fn words_of_the_other(language: &str) -> BTreeSet<&'static str> {
    let english = "the is was are were of and not with has have this that these be been by from which must may can";
    let portuguese = "de da das dos não é um uma para com por que foi deve os ao à está e ou se já há";
    let other = if language == "en" { portuguese } else { english };
    other.split(' ').collect()
}

/// The words that a page shows, without those that people wrote, codes, and names of accounts.
fn words_of(html: &str) -> Vec<String> {
    let mut shown = html.split("<body>").nth(1).unwrap_or(html).to_owned();
    for (begin, end) in [
        ("<bdi>", "</bdi>"),
        ("<code", "</code>"),
        ("<desc", "</desc>"),
        ("<textarea", "</textarea>"),
        ("<span class=\"account\">", "</span>"),
        // Reports are in Portuguese.
        ("<article", "</article>"),
        ("<a href=\"/console\" lang=\"en\"", "</a>"),
    ] {
        let parts: Vec<_> = shown.split(begin).map(str::to_owned).collect();
        let rest = parts[1..].iter().map(|part| part.split_once(end).unwrap_or_else(|| panic!("{begin} in {html}")).1);
        shown = parts[0].clone() + " " + &rest.collect::<Vec<_>>().join(" ");
    }
    let mut text = String::new();
    for part in shown.split('<') {
        text.push(' ');
        text.push_str(part.split_once('>').map_or(part, |(_, behind)| behind));
    }
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    text.split(|letter| !is_of_word(letter)).map(|word| word.trim_matches('.').to_owned()).collect()
}

/// What is looked at must be able to be wrong.
#[test]
fn a_page_with_defects_is_found_out() {
    let form = "<form method=\"post\" action=\"/console/house\"><button>x</button></form>";
    let token = form.replace("<button>", "<input type=\"hidden\" name=\"form_token\" value=\"t\"><button>");
    let good = token.replace("<button>", "<input type=\"hidden\" name=\"key\" value=\"k\"><button>");
    let of = |body: &str, language: &str| defects(&format!("<html><body>{body}</body></html>"), language);
    assert_eq!(of(&good, "en"), [""; 0]);
    assert_eq!(of(form, "en").len(), 2);
    assert_eq!(of(&token, "en").len(), 1);
    assert_eq!(of(&good.replace("\"k\"", "\"\""), "en").len(), 1);
    assert_eq!(of(&format!("{good}{form}"), "en").len(), 2);
    assert_eq!(of("<p><script>document.title='hurt'</script></p>", "en").len(), 1);
    assert_eq!(of(&"x".repeat(PAGE_MAX), "en").len(), 1);
    assert_eq!(of("<td>charge.paid</td><td>CONCLUIDA, credit_card.</td>", "en").len(), 3);
    assert_eq!(of("<td>charge.paid pending</td>", "pt-BR").len(), 2);
    assert_eq!(of("<p lang=\"en\">The file has not come.</p>", "pt-BR").len(), 3);
    assert_eq!(of("<p>nome não deve ser vazio</p>", "en").len(), 2);
    assert_eq!(of("<bdi>charge.paid</bdi><code>CONCLUIDA</code><td title=\"pending\">pago</td>", "pt-BR"), [""; 0]);
}

/// A world with as much as there can be on each page.
struct Full {
    world: World,
    screens: Vec<String>,
}

/// Recipients that are active, and those on whom nobody has decided.
const RECIPIENTS: u32 = 45;
/// Merchants, each with an address that does not answer.
const MERCHANTS: u32 = 62;

impl Full {
    async fn new() -> Self {
        let world = world_of_three().await;
        let mut full = Self { world, screens: Vec::new() };
        full.fill().await;
        full
    }

    async fn fill(&mut self) {
        let world = &self.world;
        let url = format!("http://127.0.0.1:9/hooks?{}", "a&".repeat(1_000));
        for number in 0..MERCHANTS - 1 {
            let other = world.open(json!({"name": hostile(140), "document": cnpj(500 + number)})).await;
            let keys = format!("/ops/merchants/{}/api-keys", other.id);
            world.ops_post(&keys, &json!({"webhook_url": url})).await.expect(201);
            other.paid_pix(&pix("1.00")).await;
        }
        let shop = json!({"name": hostile(140), "city": hostile(60), "document": cnpj(1), "split_enabled": true,
            "cashout_enabled": true});
        let shop = world.open(shop).await;
        let keys = format!("/ops/merchants/{}/api-keys", shop.id);
        let mut key = String::new();
        for _ in 0..22 {
            key = text(&world.ops_post(&keys, &json!({"webhook_url": url})).await.expect(201)["id"]);
        }
        let (mut active, mut drafts) = (Vec::new(), Vec::new());
        for number in 0..RECIPIENTS {
            active.push(shop.recipient(&hostile(140), number).await);
            drafts.push(shop.draft(&hostile(140), RECIPIENTS + number).await);
        }
        let splits: Vec<_> = active.iter().map(|id| (id.as_str(), 100)).collect();
        let paid = text(&shop.paid_pix(&with_splits(payer(pix("1000.00")), &splits)).await["txid"]);
        let carded = with_splits(payer(card(100_000, APPROVED)), &splits);
        let carded = text(&shop.post("/api/card", &carded).await.expect(201)["txid"]);
        let (stored, subscription) = recurring(&shop).await;
        let (refund, dispute) = decisions(world, &shop, &paid).await;
        let withdrawal = withdrawals(world, &shop, &active[0]).await;
        anticipations(&shop, &active[1]).await;
        for number in 0..42 {
            let entry = json!({"debit": "Expenses:Bank:Fees", "credit": "Assets:Bank:Pix", "amount": 1_234,
                "reason": hostile(500), "reference": format!("{number}{}", hostile(90))});
            world.ops_post("/ops/entries", &entry).await.expect(201);
        }
        let largest = page_of(second_record(world, &carded).await);
        let chosen: Vec<_> = drafts[..18].iter().chain([&withdrawal, &refund]).map(|id| format!("&id={id}")).collect();
        let chosen = chosen.concat();
        let id = &shop.id;
        let waiting = world.ops_get("/ops/queue?kind=entry").await.expect(200);
        let entry = text(&items(&waiting)[0]["id"]);
        let fees = "<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS><BANKACCTFROM><ACCTID>777-7</BANKACCTFROM><BANKTRANLIST>\
            <DTSTART>20200131<DTEND>20200131<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20200131<TRNAMT>-12.34<FITID>T-1\
            <MEMO>TARIFA</STMTTRN></BANKTRANLIST></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>";
        let compared = world.reconcile("application/x-ofx", "?account=own", fees.to_owned()).await.expect(200);
        let compared = text(&compared["sha256"]);
        let mut screens = vec![
            format!("/console/merchants/{id}"),
            format!("/console/merchants/{id}?recipients=2&keys=2"),
            format!("/console/merchants/{id}/change"),
            format!("/console/merchants/{id}/open-items"),
            format!("/console/merchants/{id}/events"),
            format!("/console/keys/{key}"),
            format!("/console/charges/{carded}"),
            format!("/console/cards/{stored}"),
            format!("/console/subscriptions/{subscription}"),
            "/console/lists/subscriptions".to_owned(),
            format!("/console/charges/{paid}"),
            format!("/console/charges/{paid}?records=2&splits=3"),
            format!("/console/charges/{paid}/dispute?amount=1,00&kind=med"),
            format!("/console/recipients/{}", active[0]),
            format!("/console/recipients/{}", active[1]),
            format!("/console/recipients/{}?splits=2", active[1]),
            format!("{largest}?postings=2"),
            largest,
            format!("/console/ledgers/M-{id}"),
            format!("/console/ledgers/P-{id}"),
            format!("/console/ledgers/P-{id}?accounts=2&page=2"),
            format!("/console/ledgers/R-{}", active[0]),
            format!("/console/queue/many?decision=approve{chosen}"),
            format!("/console/queue/many?decision=reject{chosen}"),
            "/console/webhooks?page=2".to_owned(),
            format!("/console/webhooks/{}", text(&items(&shop.get("/api/events").await.expect(200))[0]["id"])),
            "/console/people".to_owned(),
            "/console/periods".to_owned(),
            "/console/periods/2020-01".to_owned(),
            format!("/console/periods/{}", crate::closed_periods::local(world.advance(0).await).format("%Y-%m")),
            format!("/console/reconciliations/{compared}?finding=0"),
            format!("/console/reports?report=statement&ledger=R-{}", active[0]),
            "/console/reports?report=general-ledger&ledger=P-all&page=2".to_owned(),
            format!("/console/queue?merchant_id={id}"),
            format!("/console/audit?merchant_id={id}"),
            "/console/lists/refunds".to_owned(),
            "/console/lists/recipients?order=name".to_owned(),
        ];
        let ids = [&drafts[0], &withdrawal, &refund, &dispute, &entry];
        screens.extend(ids.map(|id| format!("/console/queue/{id}")));
        let listed = ["", "/charges", "/merchants", "/merchants/new", "/queue", "/queue?page=2", "/trial-balance"];
        let others =
            ["/trial-balance?by=ledger", "/house", "/journal", "/webhooks", "/health", "/reports", "/reconciliations"];
        let last = ["/exports", "/audit", "/sandbox", "/trial-balance?account=Liabilities:Recipients:Available"];
        screens.extend(listed.iter().chain(&others).chain(&last).map(|path| format!("/console{path}")));
        self.screens = screens;
    }
}

/// A stored card, and a subscription that is charged to it.
async fn recurring(shop: &Merchant<'_>) -> (String, String) {
    let stored = shop.post("/api/cards", &without(&payer(card(1, APPROVED)), "/amount")).await.expect(201);
    let plan = json!({"tag": hostile(100), "amount": 100, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
        "initialGraceCycles": 1});
    let plan = shop.post("/api/recurrency/plans", &plan).await.expect(201);
    let subscription = json!({"plan_id": plan["id"], "payment_method": "credit_card", "card_token": stored["card_token"],
        "customer": payer(card(1, APPROVED))["customer"]});
    let subscription = shop.post("/api/recurrency/subscriptions", &subscription).await.expect(201);
    (text(&stored["card_token"]), text(&subscription["id"]))
}

/// What forms answer with: pages that no address has.
impl Full {
    async fn answers_of_forms(&self) -> Vec<(&'static str, String, Page)> {
        let shop = self.world.open(json!({"name": hostile(140), "document": cnpj(900), "split_enabled": true})).await;
        let drafts = [shop.draft(&hostile(140), 901).await, shop.draft(&hostile(140), 902).await];
        let mut browser = Browser::signed_in(&self.world, ANA).await;
        let mut answers = Vec::new();
        for (language, draft) in ["pt-BR", "en"].into_iter().zip(drafts) {
            browser.language = language;
            let item = format!("recipient/{draft}");
            let nobody = format!("recipient/{}", shop.id);
            let keys = format!("/console/merchants/{}/keys", shop.id);
            let rotate = format!("/console/keys/{}/rotate", shop.key_id);
            for (path, status, fields) in [
                (&*keys, 200, vec![("webhook_url", "")]),
                (&keys, 400, vec![("webhook_url", "x")]),
                (&rotate, 200, vec![]),
                ("/console/queue/many", 200, vec![("decision", "approve"), ("item", &item), ("item", &nobody)]),
                ("/console/queue/many", 400, vec![("decision", "approve")]),
                ("/console/merchants", 400, vec![("name", ""), ("document", "1")]),
                ("/console/house", 400, vec![("amount", "x")]),
                ("/console/house", 400, vec![("amount", "1"), ("debtor", "M-x")]),
                ("/console/periods/2026-13", 404, vec![]),
                ("/console/sandbox/pix", 404, vec![("txid", "x")]),
            ] {
                let key = format!("{language}-{}", answers.len());
                let fields: Vec<_> = fields.into_iter().chain([("key", key.as_str())]).collect();
                let page = browser.post(path, &fields).await;
                assert_eq!(page.status, status, "{path}: {}", page.html);
                assert!(page.html.contains(&format!("<html lang=\"{language}\">")), "{path}");
                answers.push((language, path.to_owned(), page));
            }
            let forged = browser.post_as(Some("http://evil.example"), "/console/sign-in", &[("token", "x")]).await;
            let foreign = browser.post_as(Some("http://evil.example"), "/console/house", &[]).await;
            for page in [forged, foreign] {
                let said =
                    ["O formulário não veio de uma página", "was not sent by a page"][usize::from(language == "en")];
                page.has(&[said, &format!("<html lang=\"{language}\">")]);
                assert!(!page.html.contains("lang=\"en\">O form"), "{}", page.html);
                answers.push((language, "/console/sign-in".to_owned(), page));
            }
            answers.push((language, "/console/nowhere".to_owned(), browser.get("/console/nowhere").await));
            answers.push((language, "/console/find".to_owned(), browser.get("/console/find?q=nothing").await));
        }
        answers
    }
}

/// Texts of 10 KB in every field of every form and in the searches: refused or cut, and never run.
#[tokio::test]
async fn ten_kilobytes_of_a_hostile_text_break_nothing() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let draft = merchant.draft("Bia", 1).await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let browser = Browser::signed_in(&world, ANA).await;
    let long = hostile(10_000);
    let names = [
        "name",
        "document",
        "city",
        "webhook_url",
        "debit",
        "credit",
        "amount",
        "reason",
        "reference",
        "notes",
        "debtor",
        "key",
        "txid",
        "hours",
        "kind",
        "decision",
        "item",
        "merchant",
        "sure",
        "pix",
        "limit_card",
    ];
    let mut count = 0;
    for (template, _) in
        routes().into_iter().filter(|(path, methods)| methods.contains("post(") && path != "/console/sign-out")
    {
        let path = template.replace("/merchants/{id}", &format!("/merchants/{}", merchant.id));
        let path = path.replace("/keys/{id}", &format!("/keys/{}", merchant.key_id)).replace("{txid}", &txid);
        let path = path.replace("{id}", &draft).replace("{period}", "2026-01");
        for long_one in names {
            let usual = [("decision", "reject"), ("kind", "recipient"), ("amount", "1"), ("key", "k"), ("sure", "off")];
            let usual = usual.into_iter().filter(|(name, _)| *name != long_one);
            let fields: Vec<_> = usual.chain([(long_one, long.as_str())]).collect();
            let page = browser.post(&path, &fields).await;
            assert!(page.status < 500, "{path} {long_one}: {} {}", page.status, page.html);
            assert!(!page.html.contains("<script>"), "{path} {long_one}: {}", page.html);
            count += 1;
        }
    }
    assert!(count > 300, "{count}");
    let query: String = form_urlencoded::byte_serialize(long.as_bytes()).collect();
    for path in ["/console/find?q=", "/console/merchants?named=", "/console/queue?kind=", "/console/house?x="] {
        let page = browser.get(&format!("{path}{query}")).await;
        assert!(page.status < 500 && !page.html.contains("<script>"), "{path}: {} {}", page.status, page.html);
    }
    browser.page("/console").await;
    world.check_books().await;
}

/// A charge with a hostile payer.
fn payer(charge: Value) -> Value {
    if charge["customer"].is_object() {
        return with(&charge, "/customer/name", json!(hostile(140)));
    }
    with(&with(&charge, "/nome", json!(hostile(140))), "/descricao", json!(hostile(140)))
}

/// Refunds of a charge, all but one rejected, and a dispute that is open.
async fn decisions(world: &World, shop: &Merchant<'_>, txid: &str) -> (String, String) {
    let mut refund = String::new();
    for number in 0..14 {
        let body = json!({"payment_id": txid, "amount": 1, "reason": hostile(140)});
        refund = text(&shop.post("/api/refunds", &body).await.expect(201)["id"]);
        if number < 13 {
            let notes = json!({"notes": hostile(500)});
            world.ops_post(&format!("/ops/refunds/{refund}/reject"), &notes).await.expect(200);
        }
    }
    let dispute = json!({"amount": 1_000, "kind": "med", "reason": hostile(500)});
    let dispute = world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201);
    (refund, text(&dispute["id"]))
}

/// Withdrawals of a recipient, all but the last rejected; gives that one.
async fn withdrawals(world: &World, shop: &Merchant<'_>, recipient: &str) -> String {
    for _ in 0..24 {
        let withdrawal = text(&shop.withdraw(recipient).await.expect(201)["withdrawal_id"]);
        world.reject(&withdrawal, &hostile(500)).await.expect(200);
    }
    text(&shop.withdraw(recipient).await.expect(201)["withdrawal_id"])
}

/// Card splits of a recipient, each anticipated by itself.
async fn anticipations(shop: &Merchant<'_>, recipient: &str) {
    for _ in 0..44 {
        let charge = with_splits(card(10_000, APPROVED), &[(recipient, 3_000)]);
        shop.post("/api/card", &charge).await.expect(201);
        let list = format!("/api/dashboard/sub-recipients/{recipient}/splits");
        let split = text(&items(&shop.get(&list).await.expect(200))[0]["id"]);
        let body = json!({"split_ids": [split], "target_days": 2});
        shop.post(&format!("/api/dashboard/sub-recipients/{recipient}/anticipate"), &body).await.expect(200);
    }
}

#[tokio::test]
async fn every_page_is_small_and_safe_and_speaks_its_language() {
    let full = Full::new().await;
    for template in templates() {
        assert!(full.screens.iter().any(|path| fits(&template, path)), "{template} is in no test");
    }
    let mut browser = Browser::signed_in(&full.world, ANA).await;
    let (mut found, mut largest) = (Vec::new(), (0, String::new()));
    for language in ["pt-BR", "en"] {
        browser.language = language;
        for path in &full.screens {
            let page = browser.page(path).await;
            assert!(page.html.contains(&format!("<html lang=\"{language}\">")), "{path}");
            largest = largest.max((page.html.len(), path.clone()));
            found
                .extend(defects(&page.html, language).into_iter().map(|defect| format!("{language} {path}: {defect}")));
        }
    }
    for (language, path, page) in full.answers_of_forms().await {
        found.extend(defects(&page.html, language).into_iter().map(|defect| format!("{language} {path}: {defect}")));
        largest = largest.max((page.html.len(), path));
    }
    eprintln!("the largest page: {largest:?}");
    assert!(found.is_empty(), "{} defects: {found:#?}", found.len());
    assert!(largest.0 > 30 * 1024, "the pages are not full: {largest:?}");
}

/// Every form is refused without the token of its session, and changes nothing.
#[tokio::test]
async fn every_form_needs_the_token_of_its_session() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let draft = merchant.draft("Bia", 1).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let stranger = Browser::signed_in(&world, EVA).await.page("/console").await.form_token();
    let origin = format!("http://{}", browser.host);
    // The draft is submitted before, so that nothing is booked beside the forms.
    world.advance(0).await;
    let before = world.cut().await;
    let forms: Vec<_> = routes().into_iter().filter(|(_, methods)| methods.contains("post(")).collect();
    let mut refused = 0;
    for (template, _) in forms.iter().filter(|(path, _)| path != "/console/sign-in") {
        let id = match template.split('/').nth(2).unwrap() {
            "merchants" => &merchant.id,
            "keys" => &merchant.key_id,
            "charges" => &txid,
            _ => &draft,
        };
        let path = template.replace("{id}", id).replace("{txid}", id);
        for token in [None, Some(""), Some("forged"), Some(stranger.as_str())] {
            let fields: Vec<_> = token.map(|token| ("form_token", token)).into_iter().collect();
            let page = browser.post_as(Some(&origin), &path, &fields).await;
            assert_eq!(page.status, 403, "{path} {token:?}: {}", page.html);
            page.has(&["form_refused"]);
            refused += 1;
        }
        let put = browser.send(Method::PUT, &path, &[], String::new()).await;
        assert!([404, 405].contains(&put.status), "{path}: {}", put.status);
    }
    assert!(refused >= 60, "{refused}");
    assert_eq!(world.cut().await, before, "nothing was booked");
}

/// The links of a page to what stands below a path, each once.
fn links(html: &str, path: &str) -> BTreeSet<String> {
    let begin = format!("href=\"{path}");
    let links = html.split(&begin).skip(1).map(|link| link.split('"').next().unwrap().to_owned());
    links.filter(|link| !link.contains(['?', '/'])).collect()
}

/// What the parts of a list link to, which must have each once, through the last one.
async fn of_all_parts(browser: &Browser, address: &str, name: &str, path: &str) -> Vec<String> {
    let joint = if address.contains('?') { '&' } else { '?' };
    let (mut found, mut part) = (Vec::new(), 1);
    loop {
        let page = browser.page(&format!("{address}{joint}{name}={part}")).await;
        found.extend(links(&page.html, path));
        part += 1;
        if !page.html.contains(&format!("{name}={part}\" rel=\"next\"")) {
            return found;
        }
    }
}

#[tokio::test]
async fn parts_of_a_list_have_each_item_once() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let (mut recipients, mut drafts) = (Vec::new(), Vec::new());
    for number in 0..70 {
        recipients.push(merchant.recipient("Ana", number).await);
        drafts.push(merchant.draft("Bia", 70 + number).await);
    }
    let keys = format!("/ops/merchants/{}/api-keys", merchant.id);
    let mut made = vec![merchant.key_id.clone()];
    for _ in 0..45 {
        made.push(text(&world.ops_post(&keys, &json!({})).await.expect(201)["id"]));
    }
    let splits: Vec<_> = recipients.iter().map(|id| (id.as_str(), 100)).collect();
    let charge = with_splits(card(100_000, APPROVED), &splits);
    let txid = text(&merchant.post("/api/card", &charge).await.expect(201)["txid"]);
    let captured = second_record(&world, &txid).await;
    let browser = Browser::signed_in(&world, ANA).await;
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    let page = format!("/console/merchants/{}", merchant.id);
    let all: Vec<_> = recipients.iter().chain(&drafts).cloned().collect();
    assert_eq!(sorted(of_all_parts(&browser, &page, "recipients", "/console/recipients/").await), sorted(all));
    assert_eq!(sorted(of_all_parts(&browser, &page, "keys", "/console/keys/").await), sorted(made));
    let waiting = of_all_parts(&browser, "/console/queue", "page", "/console/queue/").await;
    assert_eq!(sorted(waiting), sorted(drafts));
    let page = format!("/console/charges/{txid}");
    let shown = of_all_parts(&browser, &page, "splits", "/console/recipients/").await;
    assert!(recipients.iter().all(|id| shown.contains(id)), "every split is on one of the parts");

    let mut postings = 0;
    for part in 1..=9 {
        let page = browser.page(&format!("{}?postings={part}", page_of(captured))).await;
        postings += page.html.matches("<span class=\"account\">").count();
    }
    let record = world.engine().record(captured).unwrap();
    assert_eq!(postings, record.entries.iter().map(|entry| entry.postings().len()).sum::<usize>());
    let accounts = |ledger: &str| format!("/console/ledgers/{ledger}-{}", merchant.id);
    let mut seen = BTreeSet::new();
    for part in 1..=9 {
        let page = browser.page(&format!("{}?accounts={part}", accounts("P"))).await;
        let table = page.html.split("id=\"accounts\"").nth(1).unwrap().split("</section>").next().unwrap().to_owned();
        let names = table.split("<span class=\"account\">").skip(1).map(|name| name.split("</span>").next().unwrap());
        seen.extend(names.map(|name| name.replace("<wbr>", "")));
    }
    let shard = format!("P-{}", merchant.id);
    let booked = world.ops_get(&format!("/ops/ledgers/{shard}/accounts")).await.expect(200);
    let booked: BTreeSet<_> = items(&booked).iter().map(|row| text(&row["account"])).collect();
    assert!(booked.len() > 70, "{}", booked.len());
    assert_eq!(seen, booked);
}
