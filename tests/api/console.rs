//! Operators' console over HTTP, without a browser: sign-in, sessions, roles, forms that are not
//! ours, and what pages show. What only a browser can say is in `tests/browser`.

use std::collections::BTreeSet;

use centavo::settings::secrets::SecretSource;
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::world::*;

/// Three operators of three roles.
const TOKENS: &str = "ana:admin-of-thirty-two-characters-or-more,rui:decider-of-thirty-two-characters-or-more,eva:reader-of-thirty-two-characters-or-more";
const ROLES: &str = "operator=admin,ana=admin,rui=decide,eva=read";
pub(crate) const ANA: &str = "admin-of-thirty-two-characters-or-more";
pub(crate) const RUI: &str = "decider-of-thirty-two-characters-or-more";
pub(crate) const EVA: &str = "reader-of-thirty-two-characters-or-more";

/// A browser without JavaScript: one cookie, and no redirect that is not asked for.
pub(crate) struct Browser {
    pub(crate) client: Client,
    pub(crate) host: String,
    pub(crate) cookie: Option<String>,
    pub(crate) language: &'static str,
}

/// A page, or where a redirect leads.
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) html: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The form token of the page.
    pub(crate) fn form_token(&self) -> String {
        self.hidden("form_token")
    }

    /// The value of a hidden field.
    pub(crate) fn hidden(&self, name: &str) -> String {
        let field = format!("name=\"{name}\" value=\"");
        let value = self.html.split(&field).nth(1).unwrap_or_else(|| panic!("no {name} in {}", self.html));
        value.split('"').next().unwrap().to_owned()
    }

    #[track_caller]
    pub(crate) fn has(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.html.contains(text), "{text:?} is missing in {}", self.html);
        }
    }
}

impl Browser {
    pub(crate) fn new(world: &World) -> Self {
        let client = Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
        Self { client, host: world.address_of("/console").to_string(), cookie: None, language: "en" }
    }

    pub(crate) async fn signed_in(world: &World, token: &str) -> Self {
        let mut browser = Self::new(world);
        let page = browser.sign_in(token).await;
        assert_eq!((page.status, page.header("location")), (303, "/console"), "{}", page.html);
        browser
    }

    pub(crate) async fn sign_in(&mut self, token: &str) -> Page {
        let origin = format!("http://{}", self.host);
        let fields = [("token", token), ("next", "/console")];
        let page = self.post_as(Some(&origin), "/console/sign-in", &fields).await;
        if let Some(cookie) = page.headers.get("set-cookie") {
            self.cookie = Some(cookie.to_str().unwrap().split(';').next().unwrap().to_owned());
        }
        page
    }

    pub(crate) async fn send(&self, method: Method, path: &str, headers: Headers<'_>, body: String) -> Page {
        let mut request = self.client.request(method, format!("http://{}{path}", self.host)).body(body);
        request = request.header("accept-language", self.language);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Page { status, headers, html: response.text().await.unwrap() }
    }

    pub(crate) async fn get(&self, path: &str) -> Page {
        self.send(Method::GET, path, &[], String::new()).await
    }

    pub(crate) async fn page(&self, path: &str) -> Page {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.html);
        page
    }

    pub(crate) async fn post_as(&self, origin: Option<&str>, path: &str, fields: &[(&str, &str)]) -> Page {
        let body: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut headers = vec![("content-type", "application/x-www-form-urlencoded")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        self.send(Method::POST, path, &headers, body).await
    }

    /// Sends a form with the session's token.
    pub(crate) async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let token = self.page("/console").await.form_token();
        let fields: Vec<_> = fields.iter().copied().chain([("form_token", token.as_str())]).collect();
        self.post_as(Some(&format!("http://{}", self.host)), path, &fields).await
    }
}

pub(crate) async fn world_of_three() -> World {
    World::with_settings(|settings| {
        settings.ops_token = SecretSource::Text(format!("operator:{OPS_TOKEN},{TOKENS}").into());
        settings.ops_roles = ROLES.parse().unwrap();
    })
    .await
}

#[tokio::test]
async fn an_operator_signs_in_and_out() {
    let world = world_of_three().await;
    let mut browser = Browser::new(&world);
    let away = browser.get("/console/charges/1?x=y").await;
    assert_eq!(away.status, 303);
    assert_eq!(away.header("location"), "/console/sign-in?next=%2Fconsole%2Fcharges%2F1%3Fx%3Dy");
    assert_eq!(browser.get("/").await.header("location"), "/console");
    let form = browser.page("/console/sign-in?next=%2Fconsole%2Fcharges%2F1").await;
    assert_eq!(form.hidden("next"), "/console/charges/1");
    form.has(&["type=\"password\"", "autocomplete=\"current-password\""]);

    let wrong = browser.sign_in("wrong-of-thirty-two-characters-or-more").await;
    assert_eq!((wrong.status, wrong.headers.get("set-cookie")), (401, None));
    assert!(!wrong.html.contains("wrong-of-thirty-two-characters-or-more"), "no credential is repeated");
    let right = browser.sign_in(ANA).await;
    let cookie = right.header("set-cookie").to_owned();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Secure; HttpOnly; SameSite=Strict; Path=/");
    assert_eq!(pair.strip_prefix("__Host-centavo=").unwrap().len(), 43);

    let home = browser.page("/console").await;
    home.has(&["ana · admin", "Overview", "Sandbox"]);
    assert_eq!(home.header("cache-control"), "no-store");
    assert_eq!(home.header("x-content-type-options"), "nosniff");
    assert_eq!(home.header("referrer-policy"), "same-origin");
    let policy = home.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!home.html.contains(ANA) && !home.html.contains("style=\""));
    let scripts: Vec<_> =
        home.html.split("<script").skip(1).map(|script| script.split("</script>").next().unwrap()).collect();
    assert!(
        matches!(scripts[..], [one] if one.starts_with(" src=\"/console/assets/console-") && one.ends_with("defer>"))
    );
    let script = browser.get(scripts[0].split('"').nth(1).unwrap()).await;
    assert_eq!((script.status, script.header("content-type")), (200, "text/javascript; charset=utf-8"));
    let style = home.html.split("href=\"").find(|part| part.ends_with(".css\">") || part.contains(".css\"")).unwrap();
    let style = browser.get(style.split('"').next().unwrap()).await;
    assert_eq!((style.status, style.header("content-type")), (200, "text/css; charset=utf-8"));
    assert!(style.header("cache-control").contains("immutable"));

    let stolen = browser.cookie.clone();
    assert_eq!(browser.post("/console/sign-out", &[]).await.header("location"), "/console/sign-in");
    browser.cookie = stolen;
    assert_eq!(browser.get("/console").await.status, 303, "an old cookie opens nothing");
    browser.cookie = Some("__Host-centavo=guessed".to_owned());
    assert_eq!(browser.get("/console").await.status, 303);
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let world = world_of_three().await;
    let browser = Browser::signed_in(&world, ANA).await;
    browser.page("/console").await;
    world.set_operators(&format!("ana:other-of-thirty-two-characters-or-more,operator:{OPS_TOKEN}"));
    assert_eq!(browser.get("/console").await.status, 303, "the token is gone");
    world.set_operators(&format!("ana:{ANA},operator:{OPS_TOKEN}"));
    assert_eq!(browser.get("/console").await.status, 303, "and so is the session");
}

#[tokio::test]
async fn a_cookie_that_no_browser_would_keep_is_not_given() {
    let world = World::sandbox().await;
    let browser = Browser::new(&world);
    let body = format!("token={OPS_TOKEN}&next=/console&lang=en");
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("host", "ops.example"),
        ("origin", "http://ops.example"),
    ];
    let refused = browser.send(Method::POST, "/console/sign-in", &headers, body.clone()).await;
    assert_eq!((refused.status, refused.headers.get("set-cookie")), (400, None));
    refused.has(&["needs https"]);
    let headers = [headers[0], headers[1], ("origin", "https://ops.example")];
    let opened = browser.send(Method::POST, "/console/sign-in", &headers, body).await;
    assert_eq!(opened.status, 303, "through a proxy that speaks TLS");
}

#[tokio::test]
async fn ten_wrong_tokens_a_minute_are_too_many() {
    let world = World::sandbox().await;
    let mut browser = Browser::new(&world);
    let mut statuses = Vec::new();
    for number in 0..12 {
        statuses.push(browser.sign_in(&format!("wrong-of-thirty-two-characters-or-more-{number}")).await.status);
    }
    assert_eq!(statuses, [[401; 10].as_slice(), &[429; 2]].concat());
    let right = browser.sign_in(OPS_TOKEN).await;
    assert_eq!((right.status, right.headers.get("set-cookie")), (429, None), "whoever guesses learns nothing");
    let wait: u32 = right.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
}

#[tokio::test]
async fn a_form_that_is_not_ours_is_refused() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let token = browser.page("/console").await.form_token();
    let own = format!("http://{}", browser.host);
    for (origin, form_token) in [
        (Some("http://evil.example"), token.as_str()),
        (Some("null"), &token),
        (None, &token),
        (Some("http://127.0.0.1:1"), &token),
        (Some(own.as_str()), ""),
        (Some(&own), "forged"),
    ] {
        let refused = browser.post_as(origin, "/console/sign-out", &[("form_token", form_token)]).await;
        assert_eq!(refused.status, 403, "{origin:?} {form_token}");
        refused.has(&["form_refused"]);
        browser.page("/console").await;
    }
    let foreign = browser.post_as(Some("http://evil.example"), "/console/sign-in", &[("token", OPS_TOKEN)]).await;
    assert_eq!((foreign.status, foreign.headers.get("set-cookie")), (403, None), "nor is somebody signed in");
    assert_eq!(browser.post_as(Some(&own), "/console/sign-out", &[("form_token", &token)]).await.status, 303);
}

/// What an operator who decides does to a merchant.
const HOLDS: [&str; 6] = ["/suspend", "/resume", "/hold-payouts", "/release-payouts", "/close", "/reopen"];

/// Every route that changes something refuses an operator who may only read, and every route of
/// merchants, keys and the clock one who may decide.
#[tokio::test]
async fn roles_are_for_all_routes_of_operators() {
    let world = world_of_three().await;
    let id = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e";
    let mut refused = BTreeSet::new();
    let mut count = 0;
    for operation in world.description.operations().iter().filter(|operation| operation.path.starts_with("/ops/")) {
        let path = operation.path.replace("{id}", id).replace("{txid}", id).replace("{kind}", "refund");
        let method: Method = operation.method.parse().unwrap();
        let answer = async |token: &str| {
            let headers = [("authorization", bearer(token)), ("content-type", "application/json".to_owned())];
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            world.send(method.clone(), &path, &headers, "{}").await
        };
        let of_admins =
            ["merchants", "api-keys", "sandbox", "backup", "erasures"].iter().any(|part| path.contains(part));
        let of_admins = of_admins && !HOLDS.iter().any(|end| path.ends_with(end));
        let is_read = method == Method::GET && !path.ends_with("/backup");
        let needs_right = ["/reveal", "/people"].iter().any(|end| path.ends_with(end));
        for (token, may) in [(EVA, is_read), (RUI, is_read || !of_admins), (ANA, true)] {
            let may = may && !needs_right;
            let answer = answer(token).await;
            assert_eq!(answer.status != 403, may, "{token}: {method} {path}: {}", answer.text);
            count += 1;
            if !may {
                answer.refused(403, "role_not_allowed");
                refused.insert(path.clone());
            }
        }
    }
    assert!(count > 60 && refused.len() > 12, "{count} {refused:?}");
}

/// The amounts of a table of entries: each row's account with its debit or credit.
fn shown_amounts(html: &str) -> Vec<String> {
    html.split("<td class=\"amount\">").skip(1).map(|cell| cell.split('<').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_charge_is_shown_with_its_entries_and_its_block() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("João Araújo", 1).await;
    let charged = merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&recipient, 3_000)])).await;
    let txid = text(&charged.expect(201)["txid"]);
    let mut browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/charges/{txid}")).await;
    page.has(&[
        "Charge of R$100.00",
        ">paid<",
        &txid,
        "Loja Azul",
        "João Araújo",
        "411111",
        "R$30.00",
        "João Ávila",
        "Where the money went",
        "Webhooks of this charge",
        "charge paid",
        "***.456.789-**",
        "Assets:<wbr>Platform:<wbr>Pending",
        "Captured",
        "Timeline",
    ]);
    assert!(!page.html.contains(APPROVED) && !page.html.contains("12345678909"), "documents and cards stay masked");

    // What is shown of the capture is what the books have of it.
    let last = world.last().await;
    page.has(&[&page_of(last)]);
    let entries = world.ops_get(&format!("/ops/ledgers/{}/entries", merchant.ledger())).await.expect(200);
    let shown = shown_amounts(&page.html);
    for posting in items(&entries)[0]["postings"].as_array().unwrap() {
        let amount = posting["amount"].as_i64().unwrap();
        assert!(shown.contains(&format!("{}.{:02}", amount / 100, amount % 100)), "{posting} in {shown:?}");
    }
    let record = browser.page(&page_of(last)).await;
    let hash = record.html.split("<code class=\"hash\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    assert_eq!(hash.len(), 64);
    page.has(&[&hash]);

    for (name, place) in [
        (txid.clone(), format!("/console/charges/{txid}")),
        (record_name(last), page_of(last)),
        (merchant.ledger(), format!("/console/ledgers/{}", merchant.ledger())),
        (merchant.id.clone(), format!("/console/merchants/{}", merchant.id)),
        (recipient.clone(), format!("/console/recipients/{recipient}")),
    ] {
        assert_eq!(browser.get(&format!("/console/find?q={name}")).await.header("location"), place);
    }
    for nothing in ["x", "999999", "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e", ""] {
        assert_eq!(browser.get(&format!("/console/find?q={nothing}")).await.status, 404, "{nothing}");
    }
    browser
        .page(&format!("/console/ledgers/{}", merchant.ledger()))
        .await
        .has(&["Income:<wbr>Sales:<wbr>Card", "100.00"]);
    let shown = browser.page(&format!("/console/recipients/{recipient}")).await;
    shown.has(&["João Araújo", "active", "R$30.00", "Falls due later"]);
    assert_eq!(browser.get("/console/recipients/x").await.status, 404);
    assert_eq!(browser.get("/console/charges/019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e").await.status, 404);
    assert_eq!(browser.get("/console/nowhere").await.status, 404);
    browser.language = "de, pt;q=0.5";
    let portuguese = browser.page(&format!("/console/charges/{txid}")).await;
    portuguese.has(&["Cobrança de R$ 100,00", "lang=\"pt-BR\"", "Linha do tempo"]);
    browser.page(&format!("/console/charges/{txid}?lang=en")).await.has(&["Charge of"]);
    browser.page("/console").await.has(&["lang=\"en\"", "Overview"]);
}

#[tokio::test]
async fn a_refund_and_a_dispute_stand_with_their_charge() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201)["txid"]);
    let refund = merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 1_200})).await.expect(201);
    world.ops_post(&format!("/ops/refunds/{}/approve", text(&refund["id"])), &json!({})).await.expect(200);
    let dispute = json!({"amount": 2_000, "kind": "chargeback", "reason": "x"});
    let dispute = world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let page = browser.page(&format!("/console/charges/{txid}")).await;
    page.has(&[
        "Refund asked for",
        "Refund approved",
        "Dispute opened, money held",
        "R$12.00",
        "R$20.00",
        &text(&refund["id"]),
        &text(&dispute["id"]),
        "operator",
    ]);
}

/// Texts that break pages which do not escape.
fn hostile() -> [String; 4] {
    [
        "<script>alert(1)</script>".to_owned(),
        "\"><img src=x onerror=alert(1)>'`{{7*7}}".to_owned(),
        "\u{202e}moc.live \u{2066}x\u{2069}".to_owned(),
        "</title></textarea></style><svg onload=alert(1)>".to_owned(),
    ]
}

fn is_escaped(page: &Page, text: &str) {
    assert!(!page.html.contains(text) || !text.contains('<'), "{text} is not escaped");
    for tag in ["<script>", "<img", "onload=alert(1)>", "</textarea></style>"] {
        assert!(!page.html.contains(tag), "{tag} in {}", page.html);
    }
}

#[tokio::test]
async fn hostile_texts_are_only_text() {
    let world = World::sandbox().await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for (number, text_of) in hostile().into_iter().enumerate() {
        let body = json!({"name": text_of, "document": cnpj(100 + number as u32), "split_enabled": true});
        let merchant = world.open(body).await;
        let charge = with(&pix("10.00"), "/descricao", Value::from(text_of.as_str()));
        let charge = with(&charge, "/nome", Value::from(text_of.as_str()));
        let txid = text(&merchant.post("/api/pix", &charge).await.expect(201)["txid"]);
        for path in [format!("/console/charges/{txid}"), format!("/console/ledgers/{}", merchant.ledger())] {
            is_escaped(&browser.page(&path).await, &text_of);
        }
        let query: String = form_urlencoded::byte_serialize(text_of.as_bytes()).collect();
        is_escaped(&browser.get(&format!("/console/find?q={query}")).await, &text_of);
        is_escaped(&browser.get(&format!("/console/sign-in?next={query}")).await, &text_of);
    }
}

/// The postings of the entries that a page shows below a heading: account and amounts in order.
pub(crate) fn entries_below(html: &str, id: &str) -> Vec<String> {
    let section =
        html.split(&format!("aria-labelledby=\"{id}\"")).nth(1).unwrap_or_else(|| panic!("no {id} in {html}"));
    let section = section.split("</section>").next().unwrap();
    let tables = section.split("<table class=\"entry\">").skip(1);
    let tables = tables.map(|table| table.split("</table>").next().unwrap());
    let rows = tables
        .flat_map(|table| table.split("<tbody>").skip(1))
        .flat_map(|body| body.split("</tbody>").next().unwrap().split("<tr>").skip(1));
    rows.map(|row| {
        let mut text = String::new();
        let mut is_tag = false;
        for letter in row.replace("</td>", "|").chars() {
            match letter {
                '<' => is_tag = true,
                '>' => is_tag = false,
                letter if !is_tag => text.push(letter),
                _ => {}
            }
        }
        text
    })
    .collect()
}

/// What the page says that a decision will book, and `GET /ops/queue/{id}/preview` too, is what the
/// decision books; and the preview stores nothing.
#[tokio::test]
async fn the_preview_is_what_is_booked() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let recipient = merchant.recipient("Ana", 1).await;
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    for (number, (kind, decision)) in ["refund", "dispute", "withdrawal"]
        .into_iter()
        .flat_map(|kind| [(kind, "approve"), (kind, "reject")])
        .enumerate()
    {
        let id = waiting(&merchant, &recipient, kind).await;
        let (before, requested) = (world.cut().await, world.requested().await);
        let preview = world.ops_get(&format!("/ops/queue/{id}/preview?decision={decision}")).await.expect(200);
        let page = browser.page(&format!("/console/queue/{id}")).await;
        assert_eq!(world.requested().await, requested, "a preview writes nothing");
        let shown = entries_below(&page.html, decision);
        assert_eq!(shown.len(), preview["steps"].as_array().unwrap().iter().flat_map(postings_of).count());

        let key = format!("{number}");
        let fields = [("kind", kind), ("decision", decision), ("notes", "Sem comprovante"), ("key", &*key)];
        for sent in 0..2 {
            let decided = browser.post(&format!("/console/queue/{id}"), &fields).await;
            assert_eq!(
                (decided.status, decided.header("location")),
                (303, "/console/queue"),
                "{sent}: {}",
                decided.html
            );
        }
        let mut booked = Vec::new();
        for at in world.since(&before).await {
            for ledger in [merchant.ledger(), format!("P-{}", merchant.id), format!("R-{recipient}")] {
                let entries = world.ops_get(&format!("/ops/ledgers/{ledger}/entries?per_page=20")).await.expect(200);
                let of_record = items(&entries).iter().filter(|entry| place_in(entry) == at);
                booked.extend(of_record.flat_map(|entry| entry["postings"].as_array().unwrap().clone()));
            }
        }
        let expected: Vec<Value> = preview["steps"].as_array().unwrap().iter().flat_map(postings_of).collect();
        let sorted = |mut postings: Vec<Value>| {
            postings.sort_by_key(Value::to_string);
            postings
        };
        // A repayment that the rail confirms at once, and what falls due, come on top.
        let (booked, expected) = (sorted(booked), sorted(expected));
        assert!(
            expected.iter().all(|posting| booked.contains(posting)),
            "{kind} {decision}: {expected:#?} {booked:#?}"
        );
        assert_eq!(expected.is_empty(), (kind, decision) == ("refund", "reject"), "{kind} {decision}");
        world.ops_get(&format!("/ops/queue/{id}/preview?decision={decision}")).await.refused(404, "not_found");
        let decided = browser.page(&format!("/console/queue/{id}")).await;
        decided.has(&["This does not wait any more", "operator"]);
        assert!(!decided.html.contains("name=\"decision\""), "it waits no more");
        let audit = world.ops_get("/ops/audit?per_page=1").await.expect(200);
        assert_eq!(
            (&audit["items"][0]["operator"], &audit["items"][0]["id"]),
            (&json!("operator"), &json!(id)),
            "{kind}"
        );
    }
    world.check_books().await;
}

fn postings_of(step: &Value) -> Vec<Value> {
    let entries = step["entries"].as_array().unwrap();
    entries.iter().flat_map(|entry| entry["postings"].as_array().unwrap().clone()).collect()
}

/// Something of a kind that waits for a decision.
async fn waiting(merchant: &Merchant<'_>, recipient: &str, kind: &str) -> String {
    let charge = with_splits(pix("100.00"), &[(recipient, 3_000)]);
    let txid = text(&merchant.paid_pix(&charge).await["txid"]);
    let made = match kind {
        "refund" => merchant.post("/api/refunds", &json!({"payment_id": txid, "amount": 1_200})).await.expect(201),
        "dispute" => {
            let dispute = json!({"amount": 2_000, "kind": "med", "reason": "x"});
            merchant.world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201)
        }
        _ => {
            merchant.withdraw(recipient).await.expect(201);
            merchant.withdrawals(recipient).await[0].clone()
        }
    };
    text(&made["id"])
}

#[tokio::test]
async fn a_role_sees_only_the_forms_that_it_may_send() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let draft = merchant.draft("Ana", 1).await;
    let item = format!("/console/queue/{draft}");
    let fields = [("kind", "recipient"), ("decision", "approve"), ("key", "k")];
    let reader = Browser::signed_in(&world, EVA).await;
    let page = reader.page(&item).await;
    page.has(&["Ana", "Approve", "eva · read"]);
    assert!(!page.html.contains("value=\"approve\""), "no form");
    let refused = reader.post(&item, &fields).await;
    assert_eq!(refused.status, 403);
    refused.has(&["role_not_allowed"]);
    assert_eq!(reader.post("/console/sandbox", &[("hours", "1")]).await.status, 403);

    let decider = Browser::signed_in(&world, RUI).await;
    assert_eq!(decider.post("/console/sandbox", &[("hours", "1")]).await.status, 403);
    decider.page(&item).await.has(&["value=\"approve\""]);
    assert_eq!(decider.post(&item, &fields).await.header("location"), "/console/queue");
    let again = decider.post(&item, &[("kind", "recipient"), ("decision", "approve"), ("key", "other")]).await;
    assert_eq!(again.status, 409, "another form decides nothing again");
    decider.page("/console/audit").await.has(&["rui", "approve recipient"]);

    let admin = Browser::signed_in(&world, ANA).await;
    let before = world.advance(0).await;
    assert_eq!(
        admin.post("/console/sandbox", &[("hours", "24"), ("key", "c")]).await.header("location"),
        "/console/sandbox"
    );
    assert!((world.advance(0).await - before).num_hours() >= 24);
    let notes = admin
        .post(
            &format!("/console/queue/{}", merchant.draft("Bia", 2).await),
            &[("kind", "recipient"), ("decision", "reject"), ("notes", "")],
        )
        .await;
    assert_eq!(notes.status, 400, "a refusal needs its reason");
}

#[tokio::test]
async fn every_section_shows_what_the_books_have() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.draft("João Araújo", 1).await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let id = &merchant.id;
    for (path, texts) in [
        ("/console".to_owned(), vec!["Debits equal credits.", "Recipient", "What waits for a decision"]),
        ("/console/merchants?named=AZUL".to_owned(), vec!["Loja Azul", id]),
        ("/console/merchants?named=nowhere".to_owned(), vec!["Nothing here."]),
        (format!("/console/merchants/{id}"), vec!["Loja Azul", "João Araújo", "2.99 %", &merchant.key_id]),
        (
            format!("/console/charges?merchant_id={id}&status=CONCLUIDA&payment_method=&from=&to="),
            vec![&txid, "R$100.00"],
        ),
        (format!("/console/charges?merchant_id={id}&status=pending"), vec!["Nothing here."]),
        (format!("/console/merchants/{id}/events"), vec!["charge paid"]),
        ("/console/queue".to_owned(), vec!["João Araújo", "1 waiting"]),
        ("/console/queue?kind=refund".to_owned(), vec!["0 waiting"]),
        ("/console/trial-balance".to_owned(), vec!["Income:<wbr>Commission:<wbr>Pix", "100.00"]),
        ("/console/trial-balance?by=ledger".to_owned(), vec!["Loja Azul", "Income:<wbr>Sales:<wbr>Pix"]),
        ("/console/journal".to_owned(), vec!["Hash of the block before it"]),
        ("/console/webhooks".to_owned(), vec!["0 addresses"]),
        ("/console/health".to_owned(), vec!["ready", "never"]),
        (
            "/console/exports".to_owned(),
            vec!["beancount", "<optgroup label=\"For programmers\"><option value=\"jsonl\">"],
        ),
        ("/console/exports?sample=NetSuite".to_owned(), vec!["External ID"]),
        ("/console/audit".to_owned(), vec!["create merchant", "operator"]),
        ("/console/sandbox".to_owned(), vec!["4111 1111 1111 1111"]),
    ] {
        browser.page(&path).await.has(&texts);
    }
    assert!(!browser.page("/console/merchants").await.html.contains(&merchant.key), "no key is shown");
    let file = browser.page("/console/exports/file?ledger=&format=csv&from=&to=").await;
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8; header=present");
    assert!(file.header("content-disposition").starts_with("attachment"), "{:?}", file.headers);
    assert!(file.html.contains("Income:Sales:Pix"));
    let begin = world.cut().await.begin();
    let first = browser.page(&format!("/console/journal?before={}", begin.next().next().name())).await;
    first.has(&[&"0".repeat(64), &page_of(world.since(&begin).await[0])]);
    for wrong in ["/console/journal?before=0", "/console/merchants?page=x", "/console/exports/file?format=pdf"] {
        assert_eq!(browser.get(wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn an_operator_delivers_an_event_again() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("10.00")).await;
    let event = text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"]);
    let again = world.ops_post(&format!("/ops/webhooks/{event}/redeliver"), &json!({})).await.expect(200);
    assert_eq!(again, json!({"id": event, "kind": "charge.paid"}));
    world.ops_post("/ops/webhooks/x/redeliver", &json!({})).await.refused(404, "not_found");
    let browser = Browser::signed_in(&world, OPS_TOKEN).await;
    let sent = browser.post(&format!("/console/webhooks/{event}/redeliver"), &[("merchant", &merchant.id)]).await;
    assert_eq!(sent.header("location"), format!("/console/merchants/{}/events", merchant.id));
}

#[tokio::test]
async fn merchants_are_listed_newest_first() {
    let world = World::sandbox().await;
    let mut ids = Vec::new();
    for (number, name) in ["Padaria Pão", "Loja Azul", "Ação"].into_iter().enumerate() {
        ids.insert(0, world.open(json!({"name": name, "document": cnpj(50 + number as u32)})).await.names.id);
    }
    let listed = world.ops_get("/ops/merchants").await.expect(200);
    let found: Vec<_> = items(&listed).iter().map(|item| text(&item["id"])).collect();
    assert_eq!((found, &listed["total"]), (ids.clone(), &json!(3)));
    for (query, expected) in [("?per_page=1&page=2", &ids[1..2]), ("?page=2", &ids[..0])] {
        let listed = world.ops_get(&format!("/ops/merchants{query}")).await.expect(200);
        let found: Vec<_> = items(&listed).iter().map(|item| text(&item["id"])).collect();
        assert_eq!(found, expected, "{query}");
    }
    for (query, expected) in [("pao", &ids[2..]), ("A%C3%87", &ids[..1]), ("x", &ids[..0])] {
        let listed = world.ops_get(&format!("/ops/lists/merchants?named={query}")).await.expect(200);
        let found: Vec<_> = items(&listed).iter().map(|item| text(&item["id"])).collect();
        assert_eq!(found, expected, "{query}");
    }
}

#[tokio::test]
async fn a_dispute_is_opened_as_it_was_shown() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let browser = Browser::signed_in(&world, RUI).await;
    browser.page(&format!("/console/charges/{txid}")).await.has(&["Open a dispute"]);
    let before = world.cut().await;
    let path = format!("/console/charges/{txid}/dispute");
    let page = browser.page(&format!("{path}?amount=20,50&kind=med")).await;
    page.has(&["20.50", "Reserved:<wbr>Dispute"]);
    assert_eq!((page.hidden("amount").as_str(), world.cut().await), ("2050", before), "nothing is stored");
    let shown = entries_below(&page.html, "booked");
    for wrong in ["amount=x&kind=med", "amount=0&kind=med", "amount=1&kind=robot"] {
        assert_eq!(browser.get(&format!("{path}?{wrong}")).await.status, 400, "{wrong}");
    }
    assert_eq!(browser.get(&format!("{path}?amount=101&kind=med")).await.status, 409, "more than was paid");
    let fields = [("amount", "2050"), ("kind", "med"), ("reason", "Golpe"), ("key", "k")];
    let opened = browser.post(&path, &fields).await;
    assert_eq!(opened.header("location"), format!("/console/find?q={txid}"), "{}", opened.html);
    let charge = browser.page(&format!("/console/charges/{txid}")).await;
    let booked = entries_below(&charge.html, &format!("entries-{}", record_name(world.last().await)));
    assert_eq!(booked, shown);
    let reader = Browser::signed_in(&world, EVA).await;
    assert_eq!(reader.get(&format!("{path}?amount=1&kind=med")).await.status, 403);
    assert_eq!(reader.post(&path, &fields).await.status, 403);
}

#[tokio::test]
async fn a_merchant_is_ended_and_its_recipient_paid_from_their_pages() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("100.00"), &[(&ana, 1_000)])).await;
    let browser = Browser::signed_in(&world, RUI).await;
    let (page, recipient) = (format!("/console/merchants/{}", merchant.id), format!("/console/recipients/{ana}"));
    let open = format!("{page}/open-items");
    browser.page(&page).await.has(&["Open items"]);
    browser.page(&open).await.has(&["Open items (2)", "10.00", "89.11", "End the account"]);
    let fields = [("key", "k"), ("reason", "Fim do contrato"), ("change", "close")];
    let reader = Browser::signed_in(&world, EVA).await;
    assert!(!reader.page(&open).await.html.contains("End the account"), "it may only read");
    assert_eq!(reader.post(&open, &fields).await.status, 403);
    assert_eq!(browser.post(&open, &fields).await.header("location"), open);
    browser.page(&page).await.has(&["Closing"]);
    browser.page(&recipient).await.has(&["Withdraw for the recipient"]);
    let fields = [("key", "w"), ("reason", "Fim do contrato"), ("change", "withdraw")];
    assert_eq!(reader.post(&format!("{recipient}/withdraw"), &fields).await.status, 403);
    assert_eq!(browser.post(&format!("{recipient}/withdraw"), &fields).await.header("location"), recipient);
    let item = items(&world.ops_get("/ops/queue?kind=withdrawal").await.expect(200))[0].clone();
    assert_eq!((&item["status"], &item["requested_by"]), (&json!("waiting_second"), &json!("rui")));
    world.check_books().await;
}

#[tokio::test]
async fn a_dispute_is_reversed_from_its_page() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("100.00")).await["txid"]);
    let dispute = json!({"amount": 2_050, "kind": "med", "reason": "x"});
    let dispute = world.ops_post(&format!("/ops/charges/{txid}/disputes"), &dispute).await.expect(201);
    let page = format!("/console/queue/{}", text(&dispute["id"]));
    let browser = Browser::signed_in(&world, RUI).await;
    assert!(!browser.page(&page).await.html.contains("Reverse the dispute"), "it is not lost");
    world.ops_post(&format!("/ops/disputes/{}/accept", text(&dispute["id"])), &json!({})).await.expect(200);
    browser.page(&page).await.has(&["Reverse the dispute", "accepted"]);
    let (reverse, fields) = (format!("{page}/reverse"), [("key", "k"), ("reason", "Ganha"), ("reference", "")]);
    assert_eq!(Browser::signed_in(&world, EVA).await.post(&reverse, &fields).await.status, 403);
    assert_eq!(browser.post(&reverse, &fields).await.header("location"), page);
    let entry = text(&items(&world.ops_get("/ops/queue?kind=entry").await.expect(200))[0]["id"]);
    let item = Browser::signed_in(&world, ANA).await.page(&format!("/console/queue/{entry}")).await;
    item.has(&["Ganha", &text(&dispute["id"]), "Contra:<wbr>Chargebacks"]);
    world.ops_post(&format!("/ops/entries/{entry}/approve"), &json!({})).await.expect(200);
    let decided = browser.page(&page).await;
    assert!(!decided.html.contains("Reverse the dispute"), "it is won");
    world.check_books().await;
}

#[tokio::test]
async fn merchants_and_keys_are_made_by_admins() {
    let world = world_of_three().await;
    let admin = Browser::signed_in(&world, ANA).await;
    admin.page("/console/merchants/new").await.has(&["New merchant"]);
    let document = cnpj(77);
    let fields = [("name", "Loja Nova"), ("document", &*document), ("split_enabled", "on"), ("key", "m")];
    let decider = Browser::signed_in(&world, RUI).await;
    assert_eq!(decider.post("/console/merchants", &fields).await.status, 403);
    let wrong = [("name", "Loja Nova"), ("document", "1"), ("key", "w")];
    let refused = admin.post("/console/merchants", &wrong).await;
    assert_eq!(refused.status, 400);
    refused.has(&["document"]);
    let place = admin.post("/console/merchants", &fields).await.header("location").to_owned();
    assert_eq!(admin.post("/console/merchants", &fields).await.header("location"), place, "twice sent, once done");
    assert_eq!(world.ops_get("/ops/merchants").await.expect(200)["total"], 1);
    let id = place.rsplit('/').next().unwrap().to_owned();
    let merchant = world.ops_get(&format!("/ops/merchants/{id}")).await.expect(200);
    assert_eq!((&merchant["split_enabled"], &merchant["cashout_enabled"]), (&json!(true), &json!(false)));

    let fields = [("webhook_url", ""), ("key", "k")];
    assert_eq!(decider.post(&format!("{place}/keys"), &fields).await.status, 403);
    let made = admin.post(&format!("{place}/keys"), &fields).await;
    assert_eq!(made.status, 200, "{}", made.html);
    let key = made.html.split("<code class=\"hash\">").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let balance = async || world.send(Method::GET, "/api/balance", &[("token", &key)], "").await.status;
    assert_eq!(balance().await, 200, "the key opens");
    assert!(!admin.page(&place).await.html.contains(&key), "it is shown once");
    let again = admin.post(&format!("{place}/keys"), &fields).await;
    assert!(!again.html.contains(&key), "also when the form is sent again");
    let key_id = made.html.split("<code>").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let revoke = format!("/console/keys/{key_id}/revoke");
    assert_eq!(admin.post(&revoke, &[("merchant", &id)]).await.status, 400, "the box is not ticked");
    assert_eq!(decider.post(&revoke, &[("merchant", &id), ("sure", "on")]).await.status, 403);
    assert_eq!(admin.post(&revoke, &[("merchant", &id), ("sure", "on")]).await.header("location"), place);
    assert_eq!(balance().await, 401);
}

/// Two tabs show one item: the second decision is answered by who decided before, when and why.
#[tokio::test]
async fn a_decision_that_comes_too_late_is_answered_by_the_one_before() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let txid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
    let refund = json!({"payment_id": txid, "amount": 200});
    let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
    let recipient = merchant.draft("Ana", 1).await;
    let (rui, ana) = (Browser::signed_in(&world, RUI).await, Browser::signed_in(&world, ANA).await);
    for (kind, id) in [("refund", &refund), ("recipient", &recipient)] {
        let path = format!("/console/queue/{id}");
        let reject = [("kind", kind), ("decision", "reject"), ("notes", "Sem comprovante"), ("key", "r")];
        assert_eq!(rui.post(&path, &reject).await.status, 303);
        let shown = ana.page(&path).await;
        let late = ana.post(&path, &[("kind", kind), ("decision", "approve"), ("key", "a")]).await;
        assert_eq!(late.status, 409, "{}", late.html);
        late.has(&["already_decided", "reject: <bdi>rui</bdi>", "Sem comprovante", "datetime="]);
        shown.has(&["reject: <bdi>rui</bdi>"]);
        let item = format!("{kind}/{id}");
        let many = [("decision", "approve"), ("item", &*item), ("key", "m")];
        let many = ana.post("/console/queue/many", &many).await;
        many.has(&["already_decided", "reject: <bdi>rui</bdi>", &format!("href=\"{path}\"")]);
    }
    let path = format!("/ops/refunds/{refund}/approve");
    let late = world.ops_post(&path, &json!({})).await.refused(409, "already_decided");
    let decision = ["action", "operator", "notes"].map(|name| late["decision"][name].clone());
    assert_eq!(decision, [json!("reject"), json!("rui"), json!("Sem comprovante")]);
    time(&late["decision"]["at"]);
}

#[tokio::test]
async fn many_are_decided_on_one_page() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let mut ids = Vec::new();
    for number in 1..=3 {
        ids.push(merchant.draft(&format!("Ana {number}"), number).await);
    }
    let browser = Browser::signed_in(&world, RUI).await;
    let all: Vec<_> = ids.iter().map(|id| format!("id={id}")).collect();
    browser.page(&format!("/console/queue/many?decision=approve&{}", all.join("&"))).await.has(&[
        "Ana 1",
        "Ana 3",
        "Approve (3)",
    ]);
    for wrong in ["decision=approve", "decision=x&id=1", &format!("id={}", ids[0])] {
        let page = browser.get(&format!("/console/queue/many?{wrong}")).await;
        assert_eq!(page.status, 400, "{wrong}");
        page.has(&[if wrong == "decision=approve" { "Choose 1 to 20" } else { "(decision)" }]);
    }
    // The drafts are submitted before, so that nothing is booked beside the forms.
    world.advance(0).await;
    let chosen: Vec<_> = ids.iter().map(|id| format!("recipient/{id}")).collect();
    let fields = [("decision", "approve"), ("item", &*chosen[0]), ("item", &chosen[1]), ("key", "k")];
    let decided = browser.post("/console/queue/many", &fields).await;
    assert_eq!((decided.status, decided.html.matches(": Decided.").count()), (200, 2), "{}", decided.html);
    let before = world.cut().await;
    let again = browser.post("/console/queue/many", &fields).await;
    assert_eq!(again.html.matches(": Decided.").count(), 2, "the same form says what it did: {}", again.html);
    assert_eq!(world.cut().await, before, "once");
    let other = [("decision", "approve"), ("item", &*chosen[0]), ("key", "another")];
    browser.post("/console/queue/many", &other).await.has(&["already_decided"]);
    browser.post("/console/queue/many", &other[1..]).await.has(&["approve or reject (decision)"]);
    for wrong in [vec![], vec![("item", "recipient/x")], vec![("item", "x")]] {
        let fields: Vec<_> = wrong.into_iter().chain([("decision", "approve"), ("key", "w")]).collect();
        let page = browser.post("/console/queue/many", &fields).await;
        assert!([200, 400].contains(&page.status) && !page.html.contains(": Decided."), "{}", page.html);
    }
    let rejected = browser
        .post("/console/queue/many", &[("decision", "reject"), ("item", &chosen[2]), ("notes", ""), ("key", "r")])
        .await;
    rejected.has(&["validation_failed"]);
    assert_eq!(world.ops_get("/ops/queue").await.expect(200)["total"], 1, "a rejection needs its reason");
    let reader = Browser::signed_in(&world, EVA).await;
    assert_eq!(reader.post("/console/queue/many", &fields).await.status, 403);
    assert!(!reader.page("/console/queue").await.html.contains("type=\"checkbox\" name=\"id\""));
}

/// The console sends the version that its page showed. What changed meanwhile is shown again, with
/// a warning, and nothing is decided; alone and among many.
#[tokio::test]
async fn the_console_decides_on_what_it_showed() {
    let world = world_of_three().await;
    let merchant = world.merchant().await;
    let (ana, bia) = (merchant.draft("Ana", 1).await, merchant.draft("Bia", 2).await);
    world.advance(0).await;
    let browser = Browser::signed_in(&world, RUI).await;
    let page = browser.page(&format!("/console/queue/{ana}")).await;
    let many = browser.page(&format!("/console/queue/many?decision=approve&id={ana}&id={bia}")).await;
    let account = json!({"bank_account": {"conta": "1", "conta_dv": null}});
    merchant.patch(&format!("/api/sub-recipients/{ana}"), &account).await.expect(200);
    let version = page.hidden("version");
    let fields = [("kind", "recipient"), ("decision", "approve"), ("version", &*version), ("key", "k")];
    let refused = browser.post(&format!("/console/queue/{ana}"), &fields).await;
    assert_eq!(refused.status, 409, "{}", refused.html);
    refused.has(&["nothing was decided", "name=\"version\" value=\"2\""]);
    let shown: Vec<_> = many.html.split("name=\"item\" value=\"").skip(1).collect();
    let shown: Vec<_> = shown.iter().map(|item| item.split('"').next().unwrap()).collect();
    let fields = [("decision", "approve"), ("item", shown[0]), ("item", shown[1]), ("key", "m")];
    let decided = browser.post("/console/queue/many", &fields).await;
    assert_eq!(decided.html.matches(": Decided.").count(), 1, "{}", decided.html);
    decided.has(&["item_changed"]);
    let waiting = world.ops_get("/ops/queue").await.expect(200);
    assert_eq!((&waiting["total"], &waiting["items"][0]["id"]), (&json!(1), &json!(ana)));
    let again = browser.page(&format!("/console/queue/{ana}")).await.hidden("version");
    let fields = [("kind", "recipient"), ("decision", "approve"), ("version", &*again), ("key", "n")];
    assert_eq!(browser.post(&format!("/console/queue/{ana}"), &fields).await.status, 303);
}
