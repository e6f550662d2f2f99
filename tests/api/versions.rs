//! Versions of the merchants' API: what the last released description promises still holds, or a
//! change names the break. `tests/api/interface_promises.txt` has the promises and demands of that
//! description, a line each; `UPDATE_SNAPSHOTS=1` writes it anew, at a release.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::*;

const RELEASED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/interface_promises.txt");
const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/recorded_answers.txt");
const CHANGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/changes");

/// What a description promises to its callers and demands of them, a line each. A description that
/// lacks a promise of an older one breaks callers, and so does one with a further demand.
#[derive(Default)]
struct Contract {
    promises: BTreeSet<String>,
    demands: BTreeSet<String>,
}

/// Which way a value goes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    ToServer,
    ToCaller,
}

impl Contract {
    fn of(document: &Value) -> Self {
        let mut contract = Self::default();
        for (path, item) in members(&document["paths"]).filter(|(path, _)| path.starts_with("/api/")) {
            for (method, operation) in members(item) {
                contract.add(document, &format!("{} {path}", method.to_uppercase()), operation);
            }
        }
        contract
    }

    fn add(&mut self, document: &Value, at: &str, operation: &Value) {
        self.promises.insert(at.to_owned());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = format!("{at} {} {}", text(&parameter["in"]), text(&parameter["name"]));
            if parameter["required"] == true {
                self.demands.insert(name.clone());
            }
            self.add_value(document, &name, &parameter["schema"], Way::ToServer, &mut Vec::new());
        }
        for media in operation["requestBody"]["content"].as_object().into_iter().flatten() {
            self.add_value(document, &format!("{at} body"), &media.1["schema"], Way::ToServer, &mut Vec::new());
        }
        for (status, response) in members(&operation["responses"]).filter(|(status, _)| status.starts_with('2')) {
            for media in response["content"].as_object().into_iter().flatten() {
                let name = format!("{at} {status}");
                self.add_value(document, &name, &media.1["schema"], Way::ToCaller, &mut Vec::new());
            }
        }
    }

    /// What is taken as a value and given as one: its types and members, at every depth.
    fn add_value<'a>(&mut self, document: &'a Value, at: &str, schema: &'a Value, way: Way, within: &mut Vec<&'a str>) {
        if let Some(reference) = schema["$ref"].as_str() {
            if !within.contains(&reference) {
                within.push(reference);
                let schema = document.pointer(&reference[1..]).unwrap_or(&Value::Null);
                self.add_value(document, at, schema, way, within);
                within.pop();
            }
            return;
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        for kind in kinds.iter().filter_map(Value::as_str) {
            // An answer may become more exact, and a request more free.
            match way {
                Way::ToServer => drop(self.promises.insert(format!("{at} takes {kind}"))),
                Way::ToCaller => drop(self.demands.insert(format!("{at} may be {kind}"))),
            }
        }
        if way == Way::ToServer {
            let values = schema["enum"].as_array().into_iter().flatten();
            self.promises.extend(values.map(|value| format!("{at} takes {value}")));
        }
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, member) in members(&schema["properties"]) {
            let at = format!("{at}.{name}");
            match (way, required.contains(&name.as_str())) {
                (Way::ToServer, true) => drop(self.demands.insert(at.clone())),
                (Way::ToServer, false) => drop(self.promises.insert(at.clone())),
                (Way::ToCaller, true) => drop(self.promises.insert(at.clone())),
                (Way::ToCaller, false) => {}
            }
            self.add_value(document, &at, member, way, within);
        }
        self.add_value_parts(document, at, schema, way, within);
    }

    fn add_value_parts<'a>(
        &mut self,
        document: &'a Value,
        at: &str,
        schema: &'a Value,
        way: Way,
        within: &mut Vec<&'a str>,
    ) {
        if let Some(items) = schema.get("items") {
            self.add_value(document, &format!("{at}[]"), items, way, within);
        }
        for part in ["oneOf", "anyOf", "allOf"] {
            for schema in schema[part].as_array().into_iter().flatten() {
                self.add_value(document, at, schema, way, within);
            }
        }
    }

    /// The breaks from an older contract to this one: promises that are gone, and demands that are
    /// new where the older one had the operation, and the parent of the member.
    fn breaks_since(&self, older: &Self) -> Vec<String> {
        let gone = older.promises.difference(&self.promises).map(|line| format!("gone: {line}"));
        let was_there = |line: &&String| {
            let operation = line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ");
            older.promises.contains(&operation)
        };
        // What one choice of a body can leave out, nobody has to send.
        let new = self.demands.difference(&older.demands).filter(|line| !self.promises.contains(*line));
        let new = new.filter(was_there);
        let known = |line: &&String| match line.split_once(" may be ") {
            Some((member, _)) => older.demands.iter().any(|old| old.starts_with(&format!("{member} may be "))),
            None => match line.rsplit_once('.') {
                Some((parent, _)) if parent.contains(" body.") => {
                    let parent = parent.trim_end_matches("[]");
                    older.promises.contains(parent) || older.demands.contains(parent)
                }
                _ => true,
            },
        };
        gone.chain(new.filter(known).map(|line| format!("new: {line}"))).collect()
    }

    fn read(text: &str) -> Self {
        let lines = |mark: &str| {
            text.lines().filter_map(|line| line.strip_prefix(mark)).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        Self { promises: lines("promises "), demands: lines("demands ") }
    }

    fn written(&self) -> String {
        let promises = self.promises.iter().map(|line| format!("promises {line}\n"));
        promises.chain(self.demands.iter().map(|line| format!("demands {line}\n"))).collect()
    }
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

#[tokio::test]
async fn a_change_that_breaks_callers_is_named_among_the_changes() {
    let world = World::sandbox().await;
    let now = Contract::of(&world.description.document);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(RELEASED, now.written()).unwrap();
    }
    let released = Contract::read(&std::fs::read_to_string(RELEASED).unwrap());
    assert!(released.promises.len() > 500 && released.demands.len() > 300, "the file has the whole interface");
    let changes: String = std::fs::read_dir(CHANGES)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let mut unnamed = now.breaks_since(&released);
    unnamed.retain(|line| !changes.contains(&format!("`{line}`")));
    assert_eq!(unnamed, [""; 0], "name each of these in a file of docs/changes, in backquotes");
}

/// A text in the place of one that is another each time.
fn normalized(value: &str) -> Option<&'static str> {
    let digits = value.split('-').next().unwrap_or_default();
    match value {
        _ if uuid::Uuid::try_parse(value).is_ok() && value.len() == 36 => Some("UUID"),
        _ if digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => Some("TXID"),
        _ if chrono::DateTime::parse_from_rfc3339(value).is_ok() => {
            Some(if value.ends_with('Z') { "TIME" } else { "TIME+00:00" })
        }
        _ if chrono::NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok() => Some("DATE"),
        _ if value.starts_with("000201") => Some("CODE"),
        _ if value.starts_with("sandbox-") => Some("TRANSFER"),
        _ if value.len() == 6 && value.bytes().all(|digit| digit.is_ascii_digit()) => Some("AUTHORIZATION"),
        _ if value.starts_with('E') && value.len() == 32 => Some("END-TO-END"),
        _ => None,
    }
}

/// The texts of a value.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(elements) => elements.iter().for_each(|element| texts(element, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

/// Requests of the contract, which have none of the fields that came later, are answered byte for
/// byte as they were. `UPDATE_SNAPSHOTS=1` writes the file anew.
#[tokio::test]
async fn requests_without_newer_fields_are_answered_as_recorded() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let mut record = String::new();
    let mut note = |request: String, answer: Answer| {
        let mut written = answer.text.clone();
        let mut found = Vec::new();
        texts(&answer.body, &mut found);
        for (value, name) in found.into_iter().filter_map(|value| Some((value, normalized(value)?))) {
            written = written.replace(value, name);
        }
        record.push_str(&format!("{request} {}\n{written}\n", answer.status));
        answer.body
    };
    let mut post = async |path: &str, body: Value| {
        let answer = merchant.post(path, &body).await;
        let name: Vec<_> = path.split('/').map(|part| normalized(part).unwrap_or(part)).collect();
        note(format!("POST {}", name.join("/")), answer)
    };
    let ana = text(&post("/api/sub-recipients", individual("Ana Prado", &cpf(1))).await["id"]);
    post("/api/sub-recipients", individual("Ana Prado", &cpf(1))).await;
    world.ops_post(&format!("/ops/sub-recipients/{ana}/approve"), &json!({})).await.expect(200);
    let charge = post("/api/card", with_splits(card(10_000, APPROVED), &[(&ana, 3_500)])).await;
    post("/api/card", card(10_000, APPROVED)).await;
    post("/api/card", card(10_000, REFUSED)).await;
    let txid = text(&post("/api/pix", with_splits(pix("80.00"), &[(&ana, 2_000)])).await["txid"]);
    post("/api/pix", json!({"txid": txid})).await;
    merchant.pay(&txid).await.expect(200);
    post("/api/pix", json!({"txid": txid})).await;
    post("/api/pix", json!({"valor": "0", "nome": "Maria"})).await;
    let of_ana = format!("/api/dashboard/sub-recipients/{ana}");
    let split = json!({"split_ids": [format!("{}-0", text(&charge["txid"]))], "target_days": 7});
    post(&format!("{of_ana}/anticipate"), split).await;
    post(&format!("{of_ana}/withdraw"), json!({})).await;
    post("/api/refunds", json!({"payment_id": txid, "amount": 3_000})).await;
    let cashout = json!({"amount": 3_000, "pix_key": "ana@example.com", "pix_key_type": "email"});
    let cashout = text(&post("/api/cashout", cashout).await["id"]);
    let plan = json!({"tag": "mensal", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 12});
    let plan = text(&post("/api/recurrency/plans", plan).await["id"]);
    world.advance(0).await;
    for path in [
        "/api/dashboard/sub-recipients",
        &format!("{of_ana}/splits"),
        &format!("{of_ana}/anticipate"),
        &format!("{of_ana}/withdraw"),
        "/api/refunds",
        "/api/cashout",
        &format!("/api/cashout/{cashout}"),
        "/api/recurrency/plans",
        &format!("/api/recurrency/plans/{plan}"),
        "/api/nothing",
    ] {
        let name: Vec<_> = path.split('/').map(|part| normalized(part).unwrap_or(part)).collect();
        let request = format!("GET {}", name.join("/"));
        note(request, merchant.get(path).await);
    }
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(RECORDED, &record).unwrap();
    }
    let recorded = std::fs::read_to_string(RECORDED).unwrap();
    for (now, before) in record.lines().zip(recorded.lines()) {
        assert_eq!(now, before);
    }
    assert_eq!(record.lines().count(), recorded.lines().count());
}

/// Each kind of break is found, and what is only added is none.
#[test]
fn breaks_and_additions_are_told_apart() {
    let document = |change: &dyn Fn(&mut Value)| {
        let mut document = json!({"paths": {"/api/x": {"post": {
            "parameters": [{"in": "query", "name": "page", "schema": {"type": "integer"}}],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
            "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}}},
        }}}, "components": {"schemas": {
            "In": {"type": "object", "required": ["amount"], "properties": {
                "amount": {"type": "integer"}, "note": {"type": ["string", "null"]}, "kind": {"type": "string", "enum": ["a", "b"]},
            }},
            "Out": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "note": {"type": "string"}}},
        }}});
        change(&mut document);
        Contract::of(&document)
    };
    let before = document(&|_| {});
    let at = |pointer: &'static str, value: Value| {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        let name = name.replace("~1", "/");
        let after = document(&|document| document.pointer_mut(parent).unwrap()[&name] = value.clone());
        after.breaks_since(&before)
    };
    let member = |kind: &str| json!({"type": [kind, "null"]});
    let choice = |required: &str| {
        json!({"type": "object", "required": ["amount", required], "properties": {
        "amount": {"type": "integer"}, "note": member("string"), "kind": {"type": "string", "enum": ["a", "b"]}}})
    };
    let cases: [(Vec<String>, &[&str]); 11] = [
        (at("/components/schemas/In", json!({"oneOf": [choice("note"), choice("kind")]})), &[]),
        (at("/paths/~1api~1x/get", json!({"responses": {}})), &[]),
        (at("/components/schemas/In/properties/new", json!({"type": "string"})), &[]),
        (at("/components/schemas/Out/properties/new", json!({"type": "string"})), &[]),
        (at("/components/schemas/In/properties/new", json!({"required": ["x"], "properties": {"x": {}}})), &[]),
        (at("/components/schemas/Out/required", json!(["id", "note"])), &[]),
        (
            at("/components/schemas/In/required", json!(["amount", "note"])),
            &["gone: POST /api/x body.note", "new: POST /api/x body.note"],
        ),
        (
            at("/components/schemas/In/properties/note/type", json!("string")),
            &["gone: POST /api/x body.note takes null"],
        ),
        (at("/components/schemas/In/properties/kind/enum", json!(["a"])), &["gone: POST /api/x body.kind takes \"b\""]),
        (at("/components/schemas/Out/required", json!([])), &["gone: POST /api/x 200.id"]),
        (
            at("/components/schemas/Out/properties/id/type", json!(["string", "null"])),
            &["new: POST /api/x 200.id may be null"],
        ),
    ];
    for (found, expected) in cases {
        assert_eq!(found, expected);
    }
    let removed = at("/paths/~1api~1x", json!({}));
    assert!(removed.contains(&"gone: POST /api/x".to_owned()) && removed.len() > 3, "{removed:?}");
}
