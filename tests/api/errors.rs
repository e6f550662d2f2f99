//! Refusals of bad input, wrong credentials and unknown paths: all have one shape and one order of
//! checks, and none leaves a trace.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

/// What a caller may call, with a body that would pass as JSON where one is taken. `{M}`, `{K}`,
/// `{R}`, `{T}`, `{F}`, `{D}`, `{P}` and `{S}` stand for ids.
const ENDPOINTS: &[(&str, &str, bool)] = &[
    ("POST", "/api/card", true),
    ("POST", "/api/pix", true),
    ("GET", "/api/charges", false),
    ("GET", "/api/charges/{T}", false),
    ("PATCH", "/api/charges/{T}", true),
    ("POST", "/api/sub-recipients", true),
    ("GET", "/api/sub-recipients/{R}", false),
    ("PATCH", "/api/sub-recipients/{R}", true),
    ("GET", "/api/dashboard/sub-recipients", false),
    ("GET", "/api/dashboard/sub-recipients/{R}/splits", false),
    ("GET", "/api/balance", false),
    ("GET", "/api/balance/operations", false),
    ("GET", "/api/events", false),
    ("GET", "/api/events/{E}", false),
    ("POST", "/api/events/{E}/redeliver", true),
    ("POST", "/api/sandbox/pix/{T}/pay", true),
    ("POST", "/api/charges/{T}/cancel", true),
    ("POST", "/api/refunds", true),
    ("GET", "/api/refunds", false),
    ("GET", "/api/refunds/{F}", false),
    ("PATCH", "/api/refunds/{F}", true),
    ("GET", "/api/disputes", false),
    ("POST", "/ops/refunds/{F}/approve", true),
    ("POST", "/ops/refunds/{F}/reject", true),
    ("POST", "/ops/charges/{T}/disputes", true),
    ("POST", "/ops/charges/{T}/refunds", true),
    ("POST", "/ops/disputes/{D}/accept", true),
    ("POST", "/ops/disputes/{D}/release", true),
    ("POST", "/api/cards", true),
    ("GET", "/api/cards", false),
    ("POST", "/api/recurrency/plans", true),
    ("GET", "/api/recurrency/plans", false),
    ("GET", "/api/recurrency/plans/{P}", false),
    ("DELETE", "/api/recurrency/plans/{P}", false),
    ("POST", "/api/recurrency/subscriptions", true),
    ("GET", "/api/recurrency/subscriptions", false),
    ("GET", "/api/recurrency/subscriptions/{S}", false),
    ("GET", "/api/recurrency/subscriptions/{S}/charges", false),
    ("PATCH", "/api/recurrency/subscriptions/{S}", true),
    ("POST", "/api/recurrency/subscriptions/{S}/pause", true),
    ("POST", "/api/recurrency/subscriptions/{S}/resume", true),
    ("POST", "/api/recurrency/subscriptions/{S}/cancel", true),
    ("GET", "/api/keys", false),
    ("POST", "/api/keys", true),
    ("POST", "/ops/merchants", true),
    ("GET", "/ops/merchants", false),
    ("GET", "/ops/merchants/{M}", false),
    ("PATCH", "/ops/merchants/{M}", true),
    ("POST", "/ops/merchants/{M}/api-keys", true),
    ("GET", "/ops/merchants/{M}/api-keys", false),
    ("DELETE", "/ops/api-keys/{K}", false),
    ("PATCH", "/ops/api-keys/{K}", true),
    ("POST", "/ops/api-keys/{K}/rotate-secret", true),
    ("POST", "/ops/sub-recipients/{R}/approve", true),
    ("POST", "/ops/sub-recipients/{R}/reject", true),
    ("GET", "/ops/queue", false),
    ("POST", "/ops/webhooks/{E}/redeliver", true),
    ("GET", "/ops/webhooks/{E}", false),
    ("POST", "/ops/endpoints/{K}/test", true),
    ("GET", "/ops/audit", false),
    ("POST", "/ops/notes/{T}", true),
    ("GET", "/ops/notes/{T}", false),
    ("GET", "/ops/trial-balance", false),
    ("GET", "/ops/ledgers/M-{M}/accounts", false),
    ("GET", "/ops/ledgers/M-{M}/entries", false),
    ("GET", "/ops/records", false),
    ("GET", "/ops/records/{N}", false),
    ("POST", "/ops/sandbox/clock", true),
];

/// A server with a merchant, an active recipient, a pending charge, of a paid one a refund and a
/// dispute that wait, a plan and a subscription that is not due: something for every path to name.
struct Fixture<'w> {
    merchant: Merchant<'w>,
    recipient: String,
    txid: String,
    refund: String,
    dispute: String,
    plan: String,
    subscription: String,
    event: String,
    /// A Record, as an address has it.
    record: String,
}

impl<'w> Fixture<'w> {
    async fn on(world: &'w World) -> Self {
        let merchant = world.merchant().await;
        let recipient = merchant.recipient("Ana", 1).await;
        let txid = text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"]);
        let paid = text(&merchant.paid_pix(&pix("10.00")).await["txid"]);
        let refund = json!({"payment_id": paid, "amount": 100});
        let refund = text(&merchant.post("/api/refunds", &refund).await.expect(201)["id"]);
        let dispute = json!({"amount": 100, "kind": "med", "reason": "x"});
        let dispute = world.ops_post(&format!("/ops/charges/{paid}/disputes"), &dispute).await.expect(201);
        let plan = json!({"tag": "ouro", "amount": 1, "billingCycle": "ANNUAL", "totalBillingCycles": 1,
            "initialGraceCycles": 1});
        let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
        let subscription = json!({"plan_id": plan, "payment_method": "pix", "customer": card(1, APPROVED)["customer"]});
        let subscription = merchant.post("/api/recurrency/subscriptions", &subscription).await.expect(201);
        let event = text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"]);
        Self {
            merchant,
            recipient,
            txid,
            refund,
            dispute: text(&dispute["id"]),
            plan,
            event,
            record: record_in_path(world.last().await),
            subscription: text(&subscription["id"]),
        }
    }

    fn path(&self, template: &str) -> String {
        let ids = [
            ("{M}", &self.merchant.id),
            ("{K}", &self.merchant.key_id),
            ("{R}", &self.recipient),
            ("{T}", &self.txid),
            ("{F}", &self.refund),
            ("{D}", &self.dispute),
            ("{P}", &self.plan),
            ("{S}", &self.subscription),
            ("{E}", &self.event),
            ("{N}", &self.record),
        ];
        ids.iter().fold(template.to_owned(), |path, (name, id)| path.replace(name, id))
    }

    /// The credential that opens a path.
    fn credential(&self, path: &str) -> &str {
        if path.starts_with("/api") { &self.merchant.key } else { OPS_TOKEN }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let authorization = bearer(self.credential(path));
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend(content_type.map(|content_type| ("content-type", content_type)));
        self.merchant.world.send(method.parse().unwrap(), path, &headers, body).await
    }
}

/// Shows: 2.1.amount, 2.4.split-amount, 7.400-amount.
#[tokio::test]
async fn amounts_are_integers_in_centavos() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let before = world.trace(&[&merchant]).await;
    let mistyped = ["\"10000\"", "\"100.00\"", "100.5", "100.0", "1e4", "1E4", "true", "[]", "{}"];
    let other = ["null", "0", "-0", "-1", "1000000000001", "99999999999999999999999"];
    let cases = mistyped.map(|raw| (raw, true)).into_iter().chain(other.map(|raw| (raw, false)));
    for (raw, is_mistyped) in cases {
        let body = card(77_777, APPROVED).to_string().replace("77777", raw);
        let refused = merchant.post_raw("/api/card", &[], body).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], "amount", "{raw}");
        assert_eq!(refused["message"] == "amount deve ser inteiro em centavos", is_mistyped, "{raw}: {refused}");
        let charge = with_splits(card(10_000, APPROVED), &[(&ana, 77_777)]).to_string().replace("77777", raw);
        let refused = merchant.post_raw("/api/card", &[], charge).await.refused(400, "validation_failed");
        assert_eq!(refused["errors"][0]["field"], "splits[0].amount", "{raw}");
    }
    let missing = without(&card(10_000, APPROVED), "/amount");
    let refused = merchant.post("/api/card", &missing).await.refused(400, "validation_failed");
    assert_eq!(refused["message"], "amount é obrigatório");
    assert_eq!(world.trace(&[&merchant]).await, before);
    let largest = merchant.post("/api/card", &card(1_000_000_000_000, APPROVED)).await;
    largest.expect(201);
    world.check_books().await;
}

/// Shows: 2.4.rule-1, 2.4.rule-2, 7.400-recipient-unknown, 7.400-recipient-inactive,
/// 7.400-splits-sum, 8.split-sum.
#[tokio::test]
async fn splits_that_cannot_be_are_refused() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let (ana, foreign) = (merchant.recipient("Ana", 1).await, other.recipient("Rui", 1).await);
    let draft = merchant.draft("Draft", 2).await;
    for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("100.00"))] {
        merchant.post(path, &with_splits(charge, &[(&draft, 1)])).await.refused(400, "recipient_not_active");
    }
    let rejected = merchant.draft("Rejected", 3).await;
    let notes = json!({"notes": "Documento ilegível"});
    world.ops_post(&format!("/ops/sub-recipients/{rejected}/reject"), &notes).await.expect(200);
    world.advance(0).await;
    let unknown = "01890000-0000-8000-8000-000000000000";
    type Case<'a> = (&'a [(&'a str, i64)], &'a str, Option<&'a str>);
    let cases: &[Case<'_>] = &[
        (&[(&ana, 10_000)], "splits_reach_total", None),
        (&[(&ana, 10_001)], "splits_reach_total", None),
        (&[(&ana, 5_000), (&ana, 5_000)], "splits_reach_total", None),
        (&[(&ana, 1_000_000_000_000), (&ana, 1_000_000_000_000)], "splits_reach_total", None),
        (&[(&ana, 1), (unknown, 1)], "recipient_not_found", Some("splits[1].sub_recipient_id")),
        (&[(&foreign, 1)], "recipient_not_found", Some("splits[0].sub_recipient_id")),
        (&[(&merchant.id, 1)], "recipient_not_found", Some("splits[0].sub_recipient_id")),
        (&[(&draft, 1)], "recipient_not_active", Some("splits[0].sub_recipient_id")),
        (&[(&ana, 1), (&rejected, 1)], "recipient_not_active", Some("splits[1].sub_recipient_id")),
        (&[("ana", 1)], "validation_failed", Some("splits[0].sub_recipient_id")),
        (&[(&ana, 0)], "validation_failed", Some("splits[0].amount")),
        (&[(&ana, 1), (&ana, -1)], "validation_failed", Some("splits[1].amount")),
    ];
    let before = world.trace(&[&merchant, &other]).await;
    for (splits, code, field) in cases {
        for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("100.00"))] {
            let refused = merchant.post(path, &with_splits(charge, splits)).await.refused(400, code);
            if let Some(field) = field {
                assert_eq!(refused["errors"][0]["field"], *field, "{refused}");
            }
        }
    }
    for splits in [json!("all"), json!({}), json!([1]), json!([null]), json!([[]]), json!([{}]), json!([{"amount": 1}])]
    {
        for (path, charge) in [("/api/card", card(10_000, APPROVED)), ("/api/pix", pix("100.00"))] {
            merchant.post(path, &with(&charge, "/splits", splits.clone())).await.refused(400, "validation_failed");
        }
    }
    assert_eq!(world.trace(&[&merchant, &other]).await, before);
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 9_999)])).await.expect(201);
    world.check_books().await;
}

#[tokio::test]
async fn json_is_read_strictly_on_every_endpoint() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let too_deep = format!("{{\"x\":{}{}}}", "[".repeat(200_000 / 8), "]".repeat(200_000 / 8));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"[1]".to_vec(), "invalid_json"),
        (b"true".to_vec(), "invalid_json"),
        (b"\"a\"".to_vec(), "invalid_json"),
        (b"{".to_vec(), "invalid_json"),
        (b"{} {}".to_vec(), "invalid_json"),
        (b"{\"a\":1,}".to_vec(), "invalid_json"),
        (b"{'a':1}".to_vec(), "invalid_json"),
        (b"{\"a\":01}".to_vec(), "invalid_json"),
        (b"{\"a\":NaN}".to_vec(), "invalid_json"),
        (b"{\"a\":\"\\ud800\"}".to_vec(), "invalid_json"),
        ("\u{feff}\u{feff}{}".as_bytes().to_vec(), "invalid_json"),
        (too_deep.into_bytes(), "invalid_json"),
        (b"{\"amount\":1,\"amount\":1}".to_vec(), "duplicate_key"),
        (b"{\"amount\":1,\"\\u0061mount\":2}".to_vec(), "duplicate_key"),
        (b"{\"customer\":{\"name\":\"a\",\"name\":\"b\"}}".to_vec(), "duplicate_key"),
        (b"{\"unknown\":[{\"x\":{\"y\":1,\"y\":1}}]}".to_vec(), "duplicate_key"),
        (b"{\"name\":\"\xff\"}".to_vec(), "invalid_utf8"),
        (b"{\"name\":\"\xc3\"}".to_vec(), "invalid_utf8"),
    ];
    let before = world.trace(&[&furnished.merchant]).await;
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.2) {
        let path = furnished.path(template);
        for (body, code) in &cases {
            furnished.send(method, &path, Some("application/json"), body.clone()).await.refused(400, code);
        }
    }
    assert_eq!(world.trace(&[&furnished.merchant]).await, before);
}

#[tokio::test]
async fn a_body_may_be_left_out_where_nothing_is_asked_in_it() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.2) {
        let path = furnished.path(template);
        for content_type in [None, Some("application/json")] {
            let answer = furnished.send(method, &path, content_type, "").await;
            let status = match path.rsplit('/').next().unwrap() {
                "api-keys" | "keys" => 201,
                "redeliver" | "rotate-secret" => 200,
                "pause" | "resume" => 200,
                "cancel" if path.contains("/subscriptions/") => 200,
                "approve" if path.contains("/sub-recipients/") => 409,
                "cancel" | "release" | "test" => 409,
                "pay" | "approve" | "accept" => {
                    if content_type.is_none() {
                        200
                    } else {
                        409
                    }
                }
                _ => 400,
            };
            assert_eq!(answer.status, status, "{path}: {}", answer.text);
        }
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored_everywhere_and_unknown_parameters_nowhere() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let extra = json!({"deep": [1.5e300, {"amount": "x"}], "null": null});
    let charge = with_splits(card(10_000, APPROVED), &[(&ana, 1)]);
    let charge = ["/extra", "/customer/extra", "/credit_card/extra", "/splits/0/extra"]
        .iter()
        .fold(charge, |charge, pointer| with(&charge, pointer, extra.clone()));
    merchant.post("/api/card", &charge).await.expect(201);
    merchant.post("/api/pix", &with(&pix("1.00"), "/extra", extra.clone())).await.expect(201);
    let person = individual("Rui", &cpf(2));
    let person = ["/extra", "/bank_account/extra", "/register_information/address/extra"]
        .iter()
        .fold(person, |person, pointer| with(&person, pointer, extra.clone()));
    merchant.post("/api/sub-recipients", &person).await.expect(201);
    let refused = merchant.get("/api/balance?extra=1&extra=2").await.refused(400, "validation_failed");
    assert_eq!(refused["message"], "parâmetro desconhecido: extra; conhecidos: nenhum");
    let refused = merchant.get("/api/charges?page=0").await.refused(400, "validation_failed");
    assert_eq!(refused["message"], "page deve ser um número a partir de 1");
    merchant.get("/api/dashboard/sub-recipients?extra=1&extra=2").await.refused(400, "validation_failed");
}

#[tokio::test]
async fn bodies_have_a_type_and_a_size() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let before = world.trace(&[&furnished.merchant]).await;
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.2) {
        let path = furnished.path(template);
        for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("text/json")] {
            let refused = furnished.send(method, &path, content_type, "{}").await;
            refused.refused(415, "unsupported_media_type");
        }
        let of_charges = ["/api/card", "/api/pix"].contains(&path.as_str());
        let limit = if of_charges { 4 * 1024 * 1024 } else { 256 * 1024 };
        let fitting = format!("[{}]", " ".repeat(limit - 2));
        furnished.send(method, &path, Some("application/json"), fitting).await.refused(400, "invalid_json");
        for head in [format!("content-length: {}", limit + 1), "transfer-encoding: chunked".to_owned()] {
            let answer = oversized(&furnished, method, &path, &head, limit + 1).await;
            assert!(answer.starts_with("HTTP/1.1 413"), "{path} {head}: {answer}");
            assert!(answer.contains("payload_too_large") && answer.contains("application/problem+json"), "{answer}");
        }
    }
    assert_eq!(world.trace(&[&furnished.merchant]).await, before);
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.0 == "GET") {
        furnished.send(method, &furnished.path(template), Some("text/plain"), "").await.expect(200);
    }
}

/// Sends a body that is too large: where its length is declared, none of it, else all of it in one
/// chunk. Gives what is answered.
async fn oversized(furnished: &Fixture<'_>, method: &str, path: &str, head: &str, bytes: usize) -> String {
    let address = furnished.merchant.world.address_of(path);
    let credential = furnished.credential(path);
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {credential}\r\ncontent-type: application/json\r\n\
         connection: close\r\n{head}\r\n\r\n"
    );
    let chunk = head.contains("chunked").then(|| format!("{bytes:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(bytes)));
    let exchange = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        // The server may stop reading once it has seen enough.
        let _cut_short = chunk.map(|chunk| stream.write_all(chunk.as_bytes()));
        let mut answer = Vec::new();
        let mut part = [0; 4_096];
        while !answer.ends_with(b"}") {
            match stream.read(&mut part) {
                Ok(count) if count > 0 => answer.extend_from_slice(&part[..count]),
                _ => break,
            }
        }
        String::from_utf8(answer).unwrap()
    };
    tokio::task::spawn_blocking(exchange).await.unwrap()
}

/// Shows: 5.1, 5.2, 9.paths.
#[tokio::test]
async fn credentials_come_in_two_forms_and_agree() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let other = world.merchant().await;
    let key = furnished.merchant.key.clone();
    let shortened = &key[..key.len() - 1];
    let altered = format!("{shortened}{}", if key.ends_with('0') { '1' } else { '0' });
    let (good, wrong, foreign, of_ops) = (bearer(&key), bearer(&altered), bearer(&other.key), bearer(OPS_TOKEN));
    let basic = format!("Basic {key}");
    let accepted: &[Headers<'_>] =
        &[&[("authorization", &good)], &[("token", &key)], &[("authorization", &good), ("token", &key)]];
    let refused: &[Headers<'_>] = &[
        &[],
        &[("token", "")],
        &[("token", &altered)],
        &[("token", shortened)],
        &[("token", OPS_TOKEN)],
        &[("authorization", &wrong)],
        &[("authorization", &of_ops)],
        &[("authorization", &key)],
        &[("authorization", &basic)],
        &[("authorization", "Bearer")],
        &[("authorization", &good), ("token", &altered)],
        &[("authorization", &wrong), ("token", &key)],
        &[("authorization", &good), ("token", &other.key)],
        &[("authorization", &foreign), ("token", &key)],
    ];
    let before = world.trace(&[&furnished.merchant, &other]).await;
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.1.starts_with("/api")) {
        let path = furnished.path(template);
        for headers in refused {
            let answer = world.send(method.parse().unwrap(), &path, headers, "").await;
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path} {headers:?}");
            let body = answer.refused(401, "unauthorized");
            assert!(!body.to_string().contains(shortened), "a key is repeated");
        }
    }
    assert_eq!(world.trace(&[&furnished.merchant, &other]).await, before);
    for (method, template, takes_body) in ENDPOINTS.iter().filter(|endpoint| endpoint.1.starts_with("/api")) {
        let path = furnished.path(template);
        for headers in accepted {
            let headers = [headers, &[("content-type", "application/json")][..]].concat();
            let body = if *takes_body { "[1]" } else { "" };
            let answer = world.send(method.parse().unwrap(), &path, &headers, body).await;
            assert_eq!(answer.status, if *takes_body { 400 } else { 200 }, "{path} {headers:?} {}", answer.text);
        }
    }
}

#[tokio::test]
async fn operations_have_a_credential_of_their_own() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let (of_merchant, wrong) = (bearer(&furnished.merchant.key), bearer("operations-of-the-tes"));
    let refused: &[Headers<'_>] = &[
        &[],
        &[("authorization", &of_merchant)],
        &[("token", &furnished.merchant.key)],
        &[("token", OPS_TOKEN)],
        &[("authorization", &wrong)],
        &[("authorization", OPS_TOKEN)],
    ];
    let before = world.trace(&[&furnished.merchant]).await;
    for (method, template, _) in ENDPOINTS.iter().filter(|endpoint| endpoint.1.starts_with("/ops")) {
        let path = furnished.path(template);
        for headers in refused {
            let answer = world.send(method.parse().unwrap(), &path, headers, "").await;
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path} {headers:?}");
            answer.refused(401, "unauthorized");
        }
    }
    assert_eq!(world.trace(&[&furnished.merchant]).await, before);
}

#[tokio::test]
async fn a_revoked_key_opens_nothing_more() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let second = world.ops_post(&format!("/ops/merchants/{}/api-keys", merchant.id), &json!({})).await.expect(201);
    let path = format!("/ops/api-keys/{}", merchant.key_id);
    let revoked = world.ops_send(Method::DELETE, &path, &[], String::new()).await.expect(200);
    assert_eq!(revoked, json!({"id": merchant.key_id, "revoked": true}));
    merchant.get("/api/balance").await.refused(401, "unauthorized");
    merchant.post("/api/card", &card(10_000, APPROVED)).await.refused(401, "unauthorized");
    let other_key = text(&second["api_key"]);
    world.send(Method::GET, "/api/balance", &[("token", &other_key)], "").await.expect(200);
    assert_eq!(
        world.ops_send(Method::DELETE, &path, &[], String::new()).await.expect(200),
        revoked,
        "once more is no error"
    );
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let before = world.trace(&[&furnished.merchant]).await;
    for path in
        ["/api", "/api/", "/api/cards2", "/api/card/", "/api/balance/x", "/ops", "/ops/merchants/", "/x", "/apix"]
    {
        let problem = furnished.send("GET", path, None, "").await.refused(404, "not_found");
        let is_hinted = problem["message"] == "Endereço com barra a mais";
        assert_eq!(is_hinted, path.ends_with('/') || path.contains("//"), "{path}: {problem}");
        furnished.send("POST", path, Some("application/json"), "{}").await.refused(404, "not_found");
    }
    // Each listener serves its own paths only.
    let (public, operations) = (world.address_of("/api"), world.address_of("/ops"));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for (address, path) in
        [(public, "/ops/trial-balance"), (public, "/metrics"), (public, "/console"), (operations, "/api/balance")]
    {
        let answer = client.get(format!("http://{address}{path}")).send().await.unwrap();
        assert_eq!(answer.status(), 404, "{path}");
    }
    for (method, template, _) in ENDPOINTS {
        let path = furnished.path(template);
        let known: Vec<&str> = ENDPOINTS.iter().filter(|other| other.1 == *template).map(|other| other.0).collect();
        for wrong in ["PUT", "DELETE", "PATCH", "GET", "POST", "OPTIONS"] {
            if known.contains(&wrong) {
                continue;
            }
            let answer = furnished.send(wrong, &path, Some("application/json"), "{}").await;
            let allow = answer.header("allow").unwrap_or_default().to_owned();
            answer.refused(405, "method_not_allowed");
            assert!(allow.split(',').any(|allowed| allowed.trim() == *method), "{path}: {allow}");
        }
    }
    assert_eq!(world.trace(&[&furnished.merchant]).await, before);
}

#[tokio::test]
async fn ids_that_name_nothing_are_not_found() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let other = world.merchant().await;
    let others = Fixture {
        recipient: other.recipient("Rui", 1).await,
        txid: String::new(),
        refund: String::new(),
        dispute: String::new(),
        plan: String::new(),
        subscription: String::new(),
        event: String::new(),
        record: String::new(),
        merchant: other,
    };
    let unknown = "01890000-0000-8000-8000-000000000000";
    let long = "a".repeat(4_000);
    let garbage = [
        "1",
        "x",
        "%00",
        "%FF",
        "%C3%28",
        "%2F",
        "%2e%2e%2f",
        "a%20b",
        "%F0%9F%92%B8",
        "not-a-uuid",
        unknown,
        long.as_str(),
        "00000000-0000-0000-0000-000000000000",
        "01890000-0000-4000-8000-000000000000",
        "ffffffffffffffffffffffffffffffff",
    ];
    let before = world.trace(&[&furnished.merchant, &others.merchant]).await;
    // A Record has a number, and every number is one.
    let of_ids = |template: &str| template.contains('{') && !template.contains("{N}");
    for (method, template, takes_body) in ENDPOINTS.iter().filter(|endpoint| of_ids(endpoint.1)) {
        let (from, to) = (template.find('{').unwrap(), template.find('}').unwrap() + 1);
        let body = match *takes_body {
            true if template.ends_with("/reject") => r#"{"notes":"x"}"#,
            true if *method == "PATCH" && template.contains("/charges/") => r#"{"metadata":{"k":"v"}}"#,
            true => "{}",
            false => "",
        };
        // An id of another kind is as unknown as any, but for notes, which are on all kinds.
        let of_other_kinds = ["{M}", "{K}", "{R}", "{T}", "{F}", "{D}", "{P}", "{S}", "{E}"]
            .into_iter()
            .filter(|name| !template.contains(name) && !template.starts_with("/ops/notes/"));
        let of_other_kinds: Vec<String> = of_other_kinds.map(|name| furnished.path(name)).collect();
        for id in garbage.into_iter().chain(of_other_kinds.iter().map(String::as_str)) {
            let path = format!("{}{id}{}", &template[..from], &template[to..]);
            let answer = furnished.send(method, &path, Some("application/json"), body).await;
            let code = text(&answer.body["code"]);
            assert!(["not_found", "charge_not_found"].contains(&code.as_str()), "{path}: {}", answer.text);
            answer.refused(404, &code);
        }
    }
    for ledger in ["M", "M-", "R-x", "X-1", "system", "%FF", &format!("R-{}", furnished.merchant.id)] {
        world.ops_get(&format!("/ops/ledgers/{ledger}/accounts")).await.refused(404, "not_found");
        world.ops_get(&format!("/ops/ledgers/{ledger}/entries")).await.refused(404, "not_found");
    }
    let foreign = format!("/api/dashboard/sub-recipients/{}/splits", others.recipient);
    furnished.merchant.get(&foreign).await.refused(404, "not_found");
    assert_eq!(world.trace(&[&furnished.merchant, &others.merchant]).await, before);
}

#[tokio::test]
async fn queries_are_checked() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let lists = [
        "/api/charges".to_owned(),
        "/api/balance/operations".to_owned(),
        "/api/events".to_owned(),
        "/api/dashboard/sub-recipients".to_owned(),
        "/ops/audit".to_owned(),
        furnished.path("/api/dashboard/sub-recipients/{R}/splits"),
        furnished.path("/ops/ledgers/M-{M}/entries"),
        "/api/recurrency/subscriptions".to_owned(),
        furnished.path("/api/recurrency/subscriptions/{S}/charges"),
    ];
    let cases = [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=x", "page"),
        ("page=", "page"),
        ("page=1.5", "page"),
        ("page=99999999999999999999", "page"),
        ("page=%FF", "page"),
        ("per_page=0", "per_page"),
        ("per_page=101", "per_page"),
        ("per_page=x", "per_page"),
        ("page=1&page=2", "page"),
        ("per_page=5&per_page=5", "per_page"),
    ];
    for path in &lists {
        for (query, field) in cases {
            let refused =
                furnished.send("GET", &format!("{path}?{query}"), None, "").await.refused(400, "validation_failed");
            assert_eq!(refused["errors"][0]["field"], field, "{query}: {refused}");
            assert_eq!(refused["instance"], **path);
        }
        for query in ["", "page=1", "per_page=100"] {
            furnished.send("GET", &format!("{path}?{query}"), None, "").await.expect(200);
        }
        let unknown = furnished.send("GET", &format!("{path}?unknown=%FF"), None, "").await;
        assert_eq!(unknown.refused(400, "validation_failed")["errors"][0]["code"], "unknown_parameter");
        for page in [1_000, u64::MAX / 100, u64::MAX] {
            let query = format!("{path}?page={page}&per_page=100");
            let list = furnished.send("GET", &query, None, "").await.expect(200);
            assert_eq!((items(&list).len(), list["page"].as_u64()), (0, Some(page)), "{path}");
        }
    }
}

#[tokio::test]
async fn of_two_mistakes_the_first_in_order_is_told() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let unsplit = world
        .open(json!({"name": "Loja", "document": cnpj(2), "split_enabled": false, "cashout_enabled": false}))
        .await;
    let ana = merchant.recipient("Ana", 1).await;
    let unknown = "01890000-0000-8000-8000-000000000000";
    let before = world.trace(&[&merchant, &unsplit]).await;
    let json_type = ("content-type", "application/json");
    let no_amount = |splits: &[(&str, i64)]| without(&with_splits(card(1, APPROVED), splits), "/amount").to_string();

    // 401 stands before everything.
    world.send(Method::POST, "/api/card", &[json_type], "{").await.refused(401, "unauthorized");
    world.send(Method::POST, "/api/card", &[], "{}").await.refused(401, "unauthorized");
    world.send(Method::GET, "/api/charges/x", &[], "").await.refused(401, "unauthorized");
    world.send(Method::GET, "/api/dashboard/sub-recipients?page=0", &[], "").await.refused(401, "unauthorized");
    // The media type, then the syntax.
    let authorization = bearer(&merchant.key);
    let plain: Headers<'_> = &[("authorization", &authorization), ("content-type", "text/plain")];
    world.send(Method::POST, "/api/card", plain, "{").await.refused(415, "unsupported_media_type");
    // Syntax before capability, capability before meaning.
    unsplit.post_raw("/api/card", &[], r#"{"splits":[{}]"#).await.refused(400, "invalid_json");
    unsplit.post_raw("/api/card", &[], no_amount(&[(unknown, 1)])).await.refused(422, "split_not_enabled");
    unsplit.post("/api/card", &with(&card(1, "1"), "/splits", json!("x"))).await.refused(422, "split_not_enabled");
    unsplit.post("/api/pix", &json!({"splits": [{}]})).await.refused(422, "split_not_enabled");
    unsplit.post("/api/sub-recipients", &json!({})).await.refused(422, "split_not_enabled");
    // Meaning before state: who the recipient is comes last.
    let refused = merchant.post_raw("/api/card", &[], no_amount(&[(unknown, 1)])).await;
    assert_eq!(refused.refused(400, "validation_failed")["errors"][0]["field"], "amount");
    // The fields of the document come in its order, the card's mistakes under their own code.
    let wrong_twice = with(&with(&card(10_000, "4111111111111112"), "/installments", json!(0)), "/amount", json!("1"));
    let refused = merchant.post("/api/card", &wrong_twice).await.refused(400, "validation_failed");
    let fields: Vec<String> = refused["errors"].as_array().unwrap().iter().map(|error| text(&error["field"])).collect();
    assert_eq!(fields, ["amount", "credit_card.number", "installments"]);
    let card_first = with(&card(10_000, "4111111111111112"), "/installments", json!(0));
    merchant.post("/api/card", &card_first).await.refused(400, "invalid_card_data");
    // Which recipient, then how much.
    let both = with_splits(card(10, APPROVED), &[(unknown, 10), (&ana, 10)]);
    merchant.post("/api/card", &both).await.refused(400, "recipient_not_found");
    // Order of checks of a review: the object, the body, then whether it is still open.
    world.ops_post(&format!("/ops/sub-recipients/{unknown}/reject"), &json!({})).await.refused(404, "not_found");
    world.ops_post(&format!("/ops/sub-recipients/{ana}/reject"), &json!({})).await.refused(400, "validation_failed");
    world
        .ops_post(&format!("/ops/sub-recipients/{ana}/reject"), &json!({"notes": "x"}))
        .await
        .refused(409, "already_decided");
    assert_eq!(world.trace(&[&merchant, &unsplit]).await, before);
}

#[tokio::test]
async fn every_answer_has_its_headers() {
    let world = World::sandbox().await;
    let furnished = Fixture::on(&world).await;
    let own_id = ("x-request-id", "caller-7");
    for (path, status) in [
        ("/api/balance", 200),
        ("/api/nothing", 404),
        ("/api/charges/x", 404),
        ("/healthz", 200),
        ("/openapi.json", 200),
    ] {
        let authorization = bearer(furnished.credential(path));
        let answer = world.send(Method::GET, path, &[("authorization", &authorization), own_id], "").await;
        assert_eq!((answer.status, answer.header("x-request-id")), (status, Some("caller-7")), "{path}");
        assert_eq!([answer.header("api-version"), answer.header("x-sandbox")], [Some("2026-11-29"), Some("true")]);
        let made = world.send(Method::GET, path, &[("authorization", &authorization)], "").await;
        assert!(made.header("x-request-id").is_some_and(|id| id.len() == 32), "{path}");
    }
    let refused = furnished.send("POST", "/api/card", Some("application/json"), "{}").await;
    let body = refused.refused(400, "validation_failed");
    assert_eq!((&body["type"], &body["instance"]), (&json!("/problems/validation_failed"), &json!("/api/card")));
    let fields =
        ["type", "title", "status", "detail", "instance", "code", "message", "success", "request_id", "errors"];
    has_exactly(&body, &fields);
    assert_ne!(body["errors"], Value::Array(Vec::new()));
}
