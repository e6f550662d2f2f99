//! Hostile requests: bodies, addresses, ids of another merchant, wrong credentials. They come from
//! tables and generators, on every route that the description lists. Each must be refused in the
//! documented shape; nothing is booked, and no answer holds what belongs to someone else.

use std::net::SocketAddr;
use std::time::Duration;

use axum::http::Uri;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::description::Operation;
use crate::makers::{make, make_card_split, store_card};
use crate::world::*;

/// An id that nothing has.
const UNKNOWN: &str = "01890000-0000-8000-8000-000000000000";
/// A text of hostile values, which no answer may repeat.
const NEEDLE: &str = "needle-in-a-body";

#[tokio::test]
async fn hostile_bodies_are_refused_and_book_nothing() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (key, of_operators) = (bearer(&merchant.key), bearer(OPS_TOKEN));
    let mut sent = 0;
    // Each charge of a batch is refused alone (`tests/api/batch.rs`).
    let takes_body =
        |at: &&Operation| ["POST", "PATCH"].contains(&at.method.as_str()) && at.path != "/api/charges/batch";
    for operation in world.description.operations().iter().filter(takes_body) {
        let method: Method = operation.method.parse().unwrap();
        let id = if operation.kind().is_some() { make(&merchant, operation).await } else { String::new() };
        let path = operation.path_of(&id);
        let credential = if operation.is_of_operators() { &of_operators } else { &key };
        let bodies = hostile_bodies(&world, operation, operation.body_for(&merchant, &id).await);
        let before = world.trace(&[&merchant]).await;
        for (media_type, body) in bodies {
            let headers = [("authorization", credential.as_str()), ("content-type", media_type)];
            let shown = String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned();
            // The pages of a PIX list come as an array too.
            if path == "/ops/reconciliations" && shown.starts_with("[{") {
                continue;
            }
            let answer = world.send(method.clone(), &path, &headers, body).await;
            let refused = (400..500).contains(&answer.status) && answer.status != 402;
            assert!(refused, "{method} {path} {shown}: {} {}", answer.status, answer.text);
            assert!(!answer.text.contains(NEEDLE), "{method} {path} {shown}: {}", answer.text);
            let (status, code) = (answer.status, text(&answer.body["code"]));
            answer.refused(status, &code);
            sent += 1;
        }
        assert_eq!(world.trace(&[&merchant]).await, before, "{method} {path}");
    }
    println!("{sent} bodies");
    assert!(sent >= 3_000, "{sent} bodies were sent");
    world.check_books().await;
}

/// Bodies that an operation must refuse, each with its media type: what is no JSON object, and its
/// example with one value that its schema does not allow.
fn hostile_bodies(world: &World, operation: &Operation, example: Option<Value>) -> Vec<(&'static str, Vec<u8>)> {
    let mut bodies: Vec<(&str, Vec<u8>)> =
        unreadable().into_iter().map(|body| ("application/json", body)).chain(of_other_types()).collect();
    if operation.described["requestBody"]["required"] == true {
        bodies.extend(["[]", "null"].map(|body| ("application/json", body.as_bytes().to_vec())));
    }
    let Some(example) = example else { return bodies };
    let whole = example.to_string();
    let half = (0..=whole.len() / 2).rev().find(|at| whole.is_char_boundary(*at)).unwrap();
    bodies.push(("application/json", whole.as_bytes()[..half].to_vec()));
    bodies.push(("application/json", format!("[{whole}]").into_bytes()));
    bodies.push(("application/json", format!("{whole}{whole}").into_bytes()));
    let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
    let mut pointers = Vec::new();
    pointers_of(&example, "", &mut pointers);
    for pointer in pointers {
        let is_object = example.pointer(&pointer).unwrap().is_object();
        // An unknown field of an object is passed over.
        for value in hostile_values().into_iter().filter(|value| !(is_object && value.is_object())) {
            let mut changed = example.clone();
            *changed.pointer_mut(&pointer).unwrap() = value;
            // An optional field may be null or an empty text, and a text any text.
            let may_be_null = || {
                let mut without = example.clone();
                *without.pointer_mut(&pointer).unwrap() = Value::Null;
                world.description.wrong_in(schema, &without).is_empty()
            };
            if changed.pointer(&pointer).unwrap() == "" && may_be_null() {
                continue;
            }
            if !world.description.wrong_in(schema, &changed).is_empty() {
                bodies.push(("application/json", changed.to_string().into_bytes()));
            }
        }
    }
    bodies
}

/// Texts that are no JSON object. A POST without a body takes `[]` and `null`.
const UNREADABLE: &str = r#"
    [1] true 1 "a" [{}] { } {}x {}{} {"a"} {"a":} {"a":1,} {,} {'a':1} {a:1} {"a":01} {"a":+1}
    {"a":.5} {"a":0x1} {"a":1e} {"a":NaN} {"a":-} {"a":" {"a":"\x"} {"a":"\u12"} {"a":"\ud800"}
    {"\udc00":1} /**/{} {"a":1,"a":1} {"a":1,"\u0061":2} {"b":{"":0,"":0}} <a/> a=b
"#;

fn unreadable() -> Vec<Vec<u8>> {
    let others = [" ", "{} {}", "{\"a\":\"\u{0}\"}", "{\"a\":\"\n\"}", "\u{0}", "{}\u{0}", "\u{feff}\u{feff}{}"];
    let texts = UNREADABLE.split_whitespace().chain(others);
    let mut bodies: Vec<Vec<u8>> = texts.map(|text| text.as_bytes().to_vec()).collect();
    bodies.extend(
        [&b"{\"a\":\"\xff\"}"[..], b"{\"a\":\"\xc0\xaf\"}", b"{\"a\":\"\xed\xa0\x80\"}", b"\xff\xfe{\0}\0"]
            .map(<[u8]>::to_vec),
    );
    for (opening, closing) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = [opening.repeat(20_000), "1".to_owned(), closing.repeat(20_000)].concat();
        bodies.push(format!("{{\"a\":{deep}}}").into_bytes());
        bodies.push(format!("{{\"a\":{}", opening.repeat(20_000)).into_bytes());
    }
    bodies
}

/// A body that would be read if it were declared as JSON.
fn of_other_types() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let types = "text/plain text/json application/xml application/x-www-form-urlencoded */* \
        application/octet-stream application/jsonp json";
    let types = types.split(' ').chain(["", "multipart/form-data; boundary=x"]);
    types.map(|media_type| (media_type, b"{}".to_vec()))
}

fn hostile_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!(format!("\u{0}{NEEDLE}")),
        json!(NEEDLE.repeat(5_000)),
        json!([]),
        json!([[NEEDLE]]),
        json!({}),
        json!({NEEDLE: {"a": null}}),
    ]
}

/// Where the values of a body are, as JSON pointers.
fn pointers_of(value: &Value, at: &str, pointers: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, inner)| (format!("{at}/{name}"), inner)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().map(|(index, inner)| (format!("{at}/{index}"), inner)).collect()
        }
        _ => Vec::new(),
    };
    for (pointer, inner) in inner {
        pointers_of(inner, &pointer, pointers);
        pointers.push(pointer);
    }
}

#[tokio::test]
async fn hostile_addresses_are_refused() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    make_something(&world, &merchant).await;
    let before = world.trace(&[&merchant]).await;
    let operations = world.description.operations();
    let mut sent = 0;
    for (start, credential) in [("/api", merchant.key.as_str()), ("/ops", OPS_TOKEN)] {
        let mut wire = Wire::new(world.address_of(start));
        let credential = format!("authorization: Bearer {credential}\r\n");
        let (own, foreign): (Vec<&Operation>, Vec<&Operation>) =
            operations.iter().partition(|at| world.address_of(&at.path) == wire.address);
        let mut addresses: Vec<(String, Vec<u8>)> = own.iter().flat_map(|at| hostile_paths(at)).collect();
        addresses.extend(own.iter().flat_map(|at| wrong_methods(at, &operations)));
        addresses.extend(own.iter().filter(|at| at.method == "GET").flat_map(|at| wrong_pages(at)));
        addresses.extend(foreign.iter().map(|at| (at.method.clone(), at.path_of(UNKNOWN).into_bytes())));
        addresses
            .extend(other_forms().flat_map(|form| ["GET", "POST", "DELETE"].map(|by| (by.to_owned(), form.clone()))));
        for (method, target) in &addresses {
            let reply = wire.ask(method, target, credential.as_bytes()).await;
            let at = format!("{method} {}: {reply:?}", String::from_utf8_lossy(&target[..target.len().min(200)]));
            // The root of a listener says where the documents are, or leads to the console.
            let is_index = start == "/api" && reply.status == 200 && reply.body.contains("\"openapi\"");
            if is_index || start == "/ops" && reply.status == 303 && reply.head.contains("location: /console\r\n") {
                continue;
            }
            assert!((400..500).contains(&reply.status) && reply.status != 401, "{at}");
            // What hyper can't read as a target it refuses by itself, without a body.
            let is_read = Uri::try_from(target.as_slice()).is_ok();
            if is_read && method != "HEAD" {
                reply.assert_problem(&at);
            }
        }
        for (method, target) in own.iter().filter(|at| at.method == "GET").flat_map(|at| hostile_queries(at)) {
            let reply = wire.ask(&method, &target, credential.as_bytes()).await;
            assert!(reply.status < 500, "{method} {}: {reply:?}", String::from_utf8_lossy(&target));
            sent += 1;
        }
        sent += addresses.len();
    }
    println!("{sent} addresses");
    assert!(sent >= 15_000, "{sent} addresses were sent");
    assert_eq!(world.trace(&[&merchant]).await, before);
    world.check_books().await;
}

/// Something that would be found if an address led to it.
async fn make_something(world: &World, merchant: &Merchant<'_>) {
    let recipient = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&recipient, 1_000)])).await;
    world.advance(0).await;
}

/// Texts in the place of an id, after a path, and in a query.
const SEGMENTS: &str = r#"
    . .. ... %2e %2e%2e %2E%2E%2F %252e%252e ..%2f..%2fetc%2fpasswd ..%5c.. %2F %5C %00 a%00b %0a
    %0d%0aset-cookie:%20a=b %09 %20 %7f %80 %ff %c0%ae %c3%28 %ed%a0%80 %f0%9f%92%b8 %EF%BB%BF % %%
    %1 %zz %u0041 %25 ~ * - _ ! $ & ' ( + , ; ;a=b = : @ a@b | ^ ` {id} [0] <a> " \ '%20or%201=1
    $(id) -1 0 1 1e9 0x10 null undefined true NaN 18446744073709551616 id M- R-x M-x
    01890000-0000-8000-8000-000000000000 00000000-0000-0000-0000-000000000000
    {01890000-0000-8000-8000-000000000000} urn:uuid:01890000-0000-8000-8000-000000000000
    0189000000008000800000000000000 ffffffffffffffffffffffffffffffff
    fffffffffffffffffffffffffffffffff 0189000000008000800000000000000g
    M-01890000-0000-8000-8000-000000000000 R-01890000-0000-8000-8000-000000000000
    ffffffffffffffffffffffffffffffff-0 ffffffffffffffffffffffffffffffff-99999999999
"#;

fn hostile_paths(operation: &Operation) -> Vec<(String, Vec<u8>)> {
    let mut targets: Vec<Vec<u8>> = Vec::new();
    let path = operation.path_of(UNKNOWN);
    if operation.kind().is_some() {
        // A Record has a number.
        let is_good =
            |segment: &&str| matches!(operation.kind(), Some("records" | "journal")) && segment.parse::<u64>().is_ok();
        let texts = SEGMENTS.split_whitespace().filter(|segment| !is_good(segment)).chain([""]);
        targets.extend(texts.map(|segment| operation.path_of(segment).into_bytes()));
        targets.extend([1_000, 20_000].map(|length| operation.path_of(&"a".repeat(length)).into_bytes()));
        targets.extend(["é", "\u{202e}", "💸"].map(|segment| operation.path_of(segment).into_bytes()));
        let (before, after) =
            operation.path_of("\u{0}").split_once('\u{0}').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        targets.extend(
            [&b"\xff"[..], b"\xc0\xae", b"\x7f", b"\x01", b"a b", b"\t"]
                .map(|raw| [before.as_bytes(), raw, after.as_bytes()].concat()),
        );
    }
    for segment in SEGMENTS.split_whitespace() {
        targets.push(format!("{path}/{segment}/").into_bytes());
    }
    targets.extend(
        ["/", "//", "/.", "/..", "/../", ";", "%00", "%20", "%2f", "%3fpage=1", "%23", ".json"]
            .map(|end| format!("{path}{end}").into_bytes()),
    );
    targets.extend(
        ["/", "/.", "/..", "/%2e", "/%00", "/x/..", "/api", "/ops", "\\"]
            .map(|start| format!("{start}{path}").into_bytes()),
    );
    targets.push(path.to_uppercase().into_bytes());
    targets.push(path.replacen('/', "%2f", 2).into_bytes());
    targets.push(path.replace('/', "\\").into_bytes());
    targets.into_iter().map(|target| (operation.method.clone(), target)).collect()
}

/// The methods that a path does not have.
fn wrong_methods(operation: &Operation, operations: &[Operation]) -> Vec<(String, Vec<u8>)> {
    let has = |method: &str| operations.iter().any(|other| other.path == operation.path && other.method == method);
    "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE BREW PROPFIND get Post"
        .split(' ')
        .filter(|method| !has(if *method == "HEAD" { "GET" } else { method }))
        .map(|method| (method.to_owned(), operation.path_of(UNKNOWN).into_bytes()))
        .collect()
}

/// The names of an operation's parameters in the query.
fn in_query(operation: &Operation) -> Vec<&str> {
    let parameters = operation.described["parameters"].as_array().into_iter().flatten();
    parameters.filter(|one| one["in"] == "query").filter_map(|one| one["name"].as_str()).collect()
}

/// Pages that are none.
fn wrong_pages(operation: &Operation) -> Vec<(String, Vec<u8>)> {
    let path = operation.path_of(UNKNOWN);
    let names = in_query(operation).into_iter().filter(|name| name.ends_with("page"));
    let values =
        ["", "0", "-1", "x", "1.5", "1e3", "%00", "%ff", "%", "18446744073709551616", "1%20", "%2B", "null", "[1]"];
    names
        .flat_map(|name| values.map(|value| format!("{path}?{name}={value}")))
        .map(|target| ("GET".to_owned(), target.into_bytes()))
        .collect()
}

/// Queries that an operation may pass over or refuse.
fn hostile_queries(operation: &Operation) -> Vec<(String, Vec<u8>)> {
    let path = operation.path_of(UNKNOWN);
    let names = in_query(operation);
    let mut targets: Vec<Vec<u8>> =
        ["", "&", "=", "&&==", "?", "%", "%ff=%ff", "a[]=1", "a=1;b=2", "%00", "\u{e9}=\u{e9}"]
            .map(|query| format!("{path}?{query}").into_bytes())
            .to_vec();
    targets.push([path.as_bytes(), b"?\xff=\xff"].concat());
    targets.push(format!("{path}?{}", "a=b&".repeat(4_000)).into_bytes());
    for name in &names {
        targets.extend(SEGMENTS.split_whitespace().map(|value| format!("{path}?{name}={value}").into_bytes()));
        targets.push(format!("{path}?{name}=1&{name}=2").into_bytes());
        targets.push(format!("{path}?{name}[]=1").into_bytes());
        targets.push(format!("{path}?{name}={}", "9".repeat(8_000)).into_bytes());
    }
    targets.into_iter().map(|target| ("GET".to_owned(), target)).collect()
}

/// Request targets that are no path of the interface.
const OTHER_FORMS: &str = r#"
    / * ? # api/balance //evil.example/api/balance http:// http:///api/balance http://evil.example
    http://evil.example/ http://evil.example/etc/passwd http://a:b@127.0.0.1/x http://[::1/x
    http://evil.example:99999/x https://evil.example/../api/balance file:///etc/passwd
    ftp://evil.example/x evil.example:443 127.0.0.1 /\evil.example /.git/config /.env /etc/passwd
    /cgi-bin/a /wp-login.php /server-status /debug/pprof /api /ops /problems /problems/ /problems/x
    /problems/..%2f /openapi /openapi.json/ /reference/
"#;

fn other_forms() -> impl Iterator<Item = Vec<u8>> {
    let long = [format!("/{}", "a/".repeat(8_000)), format!("/{}", "../".repeat(2_000))];
    OTHER_FORMS.split_whitespace().map(str::to_owned).chain(long).map(String::into_bytes)
}

#[tokio::test]
async fn what_is_of_another_merchant_is_not_there() {
    let world = World::sandbox().await;
    let owner = world
        .open(json!({"name": "Loja Secreta", "document": cnpj(7), "split_enabled": true, "cashout_enabled": true}))
        .await;
    let other = world.merchant().await;
    let operations = world.description.operations();
    let foreign = one_of_each(&owner, &operations).await;
    let before = seen_by(&owner, &foreign, &operations).await;
    let mut sent = 0;
    for operation in &operations {
        let method: Method = operation.method.parse().unwrap();
        let id = match operation.kind() {
            Some(_) if !operation.is_of_operators() => make(&other, operation).await,
            _ => String::new(),
        };
        let body = if operation.is_of_operators() { None } else { operation.body_for(&other, &id).await };
        let at_rest = world.trace(&[&other]).await;
        for ask in asks_for(operation, &id, body.as_ref(), &foreign) {
            let headers = [("token", other.key.as_str()), ("content-type", "application/json")];
            let answer = world.send(method.clone(), &ask.path, &headers, ask.body.clone()).await;
            let allowed: &[u16] = match (operation.is_of_operators(), ask.names_in_body) {
                (true, _) => &[401],
                (false, false) => &[404],
                (false, true) => &[400, 404],
            };
            assert!(allowed.contains(&answer.status), "{method} {} {}: {}", ask.path, ask.body, answer.text);
            let body = answer.text.replace(&ask.id, "");
            let leaked = foreign.iter().find(|(_, id)| body.contains(id)).map(|(kind, _)| kind.as_str());
            assert_eq!(leaked, None, "{method} {}: {body}", ask.path);
            assert!(!body.contains("Prado") && !body.contains("Secreta"), "{method} {}: {body}", ask.path);
            let (status, code) = (answer.status, text(&answer.body["code"]));
            answer.refused(status, &code);
            sent += 1;
        }
        assert_eq!(world.trace(&[&other]).await, at_rest, "{method} {}", operation.path);
        // Lists are of the caller's own.
        if operation.kind().is_none() && operation.method == "GET" && operation.path.starts_with("/api/") {
            let list = other.get(&operation.path).await.text;
            assert!(foreign.iter().all(|(_, id)| !list.contains(id)), "{}: {list}", operation.path);
        }
    }
    println!("{sent} foreign ids");
    assert!(sent >= 700, "{sent} foreign ids were sent");
    assert_eq!(seen_by(&owner, &foreign, &operations).await, before);
    world.check_books().await;
}

/// The id of one object of each kind that a path or a body can name.
async fn one_of_each(owner: &Merchant<'_>, operations: &[Operation]) -> Vec<(String, String)> {
    let mut ids: Vec<(String, String)> = Vec::new();
    for operation in operations {
        // The number of a Record is no secret of a merchant.
        let Some(kind) = operation.kind().filter(|kind| !matches!(*kind, "records" | "journal")) else {
            continue;
        };
        if ids.iter().all(|(known, _)| known != kind) {
            ids.push((kind.to_owned(), make(owner, operation).await));
        }
    }
    let recipient = owner.recipient("Ana Prado", 77).await;
    ids.push(("active".to_owned(), recipient.clone()));
    ids.push(("split".to_owned(), make_card_split(owner, &recipient).await));
    ids.push(("card".to_owned(), store_card(owner).await));
    owner.world.advance(0).await;
    ids
}

/// What the owner reads of each object, and in each list.
async fn seen_by(owner: &Merchant<'_>, ids: &[(String, String)], operations: &[Operation]) -> Vec<String> {
    let mut seen = Vec::new();
    // The tries of an event go on by the clock.
    let is_read =
        |at: &&Operation| at.method == "GET" && at.path.starts_with("/api/") && !at.path.starts_with("/api/events");
    for operation in operations.iter().filter(is_read) {
        let named = ids.iter().filter(|(kind, _)| operation.kind() == Some(kind)).map(|(_, id)| operation.path_of(id));
        let list = operation.kind().is_none().then(|| operation.path.clone());
        for path in named.chain(list) {
            let mut answer = owner.get(&path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            // The minute of a key's last use goes on by the clock, too.
            let keys = answer.body["items"].as_array_mut().filter(|_| path == "/api/keys");
            for key in keys.into_iter().flatten() {
                key.as_object_mut().unwrap().remove("last_used_at");
            }
            seen.push(if path == "/api/keys" { answer.body.to_string() } else { answer.text });
        }
    }
    seen
}

/// A request that names an object of another merchant.
struct Ask {
    path: String,
    body: String,
    id: String,
    names_in_body: bool,
}

fn asks_for(operation: &Operation, own_id: &str, body: Option<&Value>, foreign: &[(String, String)]) -> Vec<Ask> {
    let mut asks = Vec::new();
    let mut pointers = Vec::new();
    if let Some(body) = body {
        pointers_of(body, "", &mut pointers);
    }
    let names = ["sub_recipient_id", "txid", "payment_id", "plan_id", "card_token", "split_ids/0"];
    pointers.retain(|pointer| names.iter().any(|name| pointer.ends_with(&format!("/{name}"))));
    for (_, id) in foreign {
        if operation.kind().is_some() {
            let body = body.map(Value::to_string).unwrap_or_default();
            asks.push(Ask { path: operation.path_of(id), body, id: id.clone(), names_in_body: false });
        }
        for pointer in &pointers {
            let mut named = body.unwrap().clone();
            *named.pointer_mut(pointer).unwrap() = json!(id);
            asks.push(Ask {
                path: operation.path_of(own_id),
                body: named.to_string(),
                id: id.clone(),
                names_in_body: true,
            });
        }
        if operation.method == "POST" && operation.path == "/api/pix" {
            let body = json!({"txid": id}).to_string();
            asks.push(Ask { path: operation.path.clone(), body, id: id.clone(), names_in_body: true });
        }
    }
    asks
}

#[tokio::test]
async fn wrong_credentials_open_nothing_and_are_told_alike() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let revoked = world.ops_post(&format!("/ops/merchants/{}/api-keys", merchant.id), &json!({})).await.expect(201);
    let path = format!("/ops/api-keys/{}", text(&revoked["id"]));
    world.ops_send(Method::DELETE, &path, &[], String::new()).await.expect(200);
    let revoked = text(&revoked["api_key"]);
    let before = world.trace(&[&merchant, &other]).await;
    let mut of_merchants = wrong_credentials(&merchant.key, &other.key, &[OPS_TOKEN, &revoked]);
    // Only merchants have a header of their own, with which the other must agree.
    for (first, second) in [(&merchant.key, &other.key), (&other.key, &merchant.key), (&merchant.key, &revoked)] {
        of_merchants.push(format!("authorization: Bearer {first}\r\ntoken: {second}\r\n").into_bytes());
        of_merchants.push(format!("token: {first}\r\ntoken: {second}\r\n").into_bytes());
    }
    let mut of_operators = wrong_credentials(OPS_TOKEN, &other.key, &[&merchant.key, &revoked]);
    of_operators.push(format!("token: {OPS_TOKEN}\r\n").into_bytes());
    let mut first_body: Option<Value> = None;
    let mut sent = 0;
    let mut wires = [Wire::new(world.address_of("/api")), Wire::new(world.address_of("/ops"))];
    for operation in world.description.operations().iter().filter(|operation| operation.needs_credential()) {
        let wire = &mut wires[usize::from(operation.is_of_operators())];
        let credentials = if operation.is_of_operators() { &of_operators } else { &of_merchants };
        for credential in credentials {
            let path = operation.path_of(UNKNOWN);
            let reply = wire.ask(&operation.method, path.as_bytes(), credential).await;
            let at = format!("{} {path} {:?}: {reply:?}", operation.method, String::from_utf8_lossy(credential));
            assert_eq!(reply.status, 401, "{at}");
            assert!(reply.head.contains("\r\nwww-authenticate: Bearer\r\n"), "{at}");
            let mut body = reply.assert_problem(&at);
            for name in ["instance", "request_id"] {
                body.as_object_mut().unwrap().remove(name);
            }
            // The answer does not say why the credential opens nothing.
            assert_eq!(first_body.get_or_insert(body.clone()), &body, "{at}");
            sent += 1;
        }
    }
    println!("{sent} credentials");
    assert!(sent >= 4_000, "{sent} credentials were sent");
    let good = format!("token: {}\r\n", merchant.key);
    assert_eq!(wires[0].ask("GET", b"/api/balance", good.as_bytes()).await.status, 200);
    let good = format!("authorization: Bearer {OPS_TOKEN}\r\n");
    assert_eq!(wires[1].ask("GET", b"/ops/trial-balance", good.as_bytes()).await.status, 200);
    assert_eq!(world.trace(&[&merchant, &other]).await, before);
}

/// Header lines that open nothing where `good` would.
fn wrong_credentials(good: &str, other: &str, closed: &[&str]) -> Vec<Vec<u8>> {
    let shorter = &good[..good.len() - 1];
    let last = if good.ends_with('0') { '1' } else { '0' };
    let altered = format!("{shorter}{last}");
    let swapped: String =
        good.chars().map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }).collect();
    let mut values: Vec<String> =
        [shorter, &altered, &swapped, &good[..8], "", "0", "null", "undefined", "*", "%"].map(str::to_owned).to_vec();
    values.extend([
        format!("{good}0"),
        format!("{good}{good}"),
        format!("\"{good}\""),
        format!("{good},{good}"),
        format!("{good} {good}"),
        format!("{good}%00"),
        good.repeat(50),
    ]);
    values.extend(closed.iter().map(|closed| (*closed).to_owned()));
    let mut lines = vec![String::new()];
    for value in &values {
        lines.push(format!("authorization: Bearer {value}\r\n"));
        lines.push(format!("token: {value}\r\n"));
    }
    for scheme in ["", "Basic ", "Digest ", "Token ", "Bearer:", "Bearer", "Bearer Bearer ", "Bearer="] {
        lines.push(format!("authorization: {scheme}{good}\r\n"));
    }
    for name in ["bearer", "x-api-key", "api-key", "proxy-authorization", "cookie", "x-token"] {
        lines.push(format!("{name}: Bearer {good}\r\n"));
    }
    for (first, second) in [(good, altered.as_str()), (&altered, good), (good, other), (other, good), (good, "")] {
        lines.push(format!("authorization: Bearer {first}\r\nauthorization: Bearer {second}\r\n"));
    }
    let mut lines: Vec<Vec<u8>> = lines.into_iter().map(String::into_bytes).collect();
    for name in ["authorization: Bearer ", "token: "] {
        lines.push([name.as_bytes(), b"\xff", good.as_bytes(), b"\r\n"].concat());
        lines.push([name.as_bytes(), good.as_bytes(), b"\xc3\xa9\r\n"].concat());
    }
    lines
}

/// A connection that sends a request's target and headers as they are. It is opened again when the
/// server closed it.
struct Wire {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

/// What came back on a [`Wire`].
#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: String,
    closes: bool,
}

impl Wire {
    fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    async fn ask(&mut self, method: &str, target: &[u8], headers: &[u8]) -> Reply {
        let request = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\nhost: a\r\n", headers, b"\r\n"].concat();
        let shown = String::from_utf8_lossy(&request);
        let (stream, reply) = loop {
            let open = self.stream.take();
            let is_reused = open.is_some();
            let mut stream = match open {
                Some(stream) => stream,
                None => BufReader::new(TcpStream::connect(self.address).await.unwrap()),
            };
            let answered = async {
                stream.write_all(&request).await?;
                reply(&mut stream, method).await
            };
            let answered = tokio::time::timeout(Duration::from_secs(60), answered).await;
            match answered.unwrap_or_else(|_| panic!("no answer: {shown}")) {
                Ok(reply) => break (stream, reply),
                // The server closes a connection that rested.
                Err(_) if is_reused => {}
                Err(error) => panic!("{error}: {shown}"),
            }
        };
        self.stream = (!reply.closes).then_some(stream);
        reply
    }
}

/// Reads an answer, whose body has a length or comes in chunks.
async fn reply(stream: &mut BufReader<TcpStream>, method: &str) -> std::io::Result<Reply> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Err(std::io::Error::other(format!("the connection ended after {head:?}")));
        }
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut body = vec![0; if method == "HEAD" { 0 } else { length.unwrap_or_default() }];
    stream.read_exact(&mut body).await?;
    if head.contains("transfer-encoding: chunked") {
        read_chunks(stream, &mut body).await?;
    }
    let closes = head.contains("connection: close");
    Ok(Reply { status, head, body: String::from_utf8_lossy(&body).into_owned(), closes })
}

async fn read_chunks(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut size = String::new();
        stream.read_line(&mut size).await?;
        let size = usize::from_str_radix(size.trim_end(), 16).map_err(std::io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await?;
        if size == 0 {
            return Ok(());
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

impl Reply {
    /// The body, which must be a problem.
    fn assert_problem(&self, at: &str) -> Value {
        assert!(self.head.contains("content-type: application/problem+json\r\n"), "{at}");
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {at}"));
        for name in ["type", "title", "detail", "code", "message", "request_id"] {
            assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{name}: {at}");
        }
        // A target without a path, such as `a:443`, has an empty one.
        assert!(body["instance"].is_string(), "instance: {at}");
        assert_eq!((&body["status"], &body["success"]), (&json!(self.status), &json!(false)), "{at}");
        body
    }
}
