//! OpenAPI description (3.1) of a listener, as its `GET /openapi.json` serves it.
//!
//! The handlers describe their own part. Rules in this file add the parts that all routes share, so
//! that a new route has them too: credentials, the problems that any request can meet, the headers
//! of answers, `Idempotency-Key`, the shape of ids and pages, and examples, which are put together
//! from those of the fields.

use std::collections::{HashMap, HashSet};

use axum::http::Method;
use serde_json::{Map, Value, json};
use utoipa::openapi::OpenApi;

use super::json::CENTAVOS_MAX;
use super::problem::{self, Code};
use super::reply::QueryNames;

mod choices;
mod events;
mod fields;

/// The complete description of a listener, from its handlers' own parts.
pub fn complete(collected: OpenApi, of: Listener) -> Value {
    let mut document = serde_json::to_value(collected).expect("a description has only string keys and plain values");
    let (title, introduction) = match of {
        Listener::Merchants => ("Centavo", FOR_MERCHANTS),
        Listener::Operators => ("Centavo operations", FOR_OPERATORS),
    };
    document["info"] = json!({
        "title": title,
        "version": env!("CARGO_PKG_VERSION"),
        "description": format!("{introduction}\n\n{FOR_ALL}"),
        "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        "contact": {"name": "The operator of this server"},
    });
    document["servers"] = json!([{"url": "/", "description": "The server that serves this description."}]);
    // A thing has the name that clients have of it: `ChargeView` is `Charge`.
    rename(&mut document, |name| name.strip_suffix("View").map(str::to_owned));
    let requested = requested(&document);
    for (name, schema) in document["components"]["schemas"].as_object_mut().into_iter().flatten() {
        let is_answer = !requested.contains(name);
        if is_answer && name != NULL_OR_ABSENT {
            deny_nulls(schema);
        }
        complete_schema("", schema, is_answer);
    }
    write_whole(&mut document["components"]["schemas"]);
    name_lists(&mut document);
    name_enumerations(&mut document);
    choices::write_choices(&mut document);
    document["components"]["headers"] = headers();
    for (name, schema) in problem_schemas() {
        document["components"]["schemas"][name] = schema;
    }
    document["components"]["securitySchemes"] = match of {
        Listener::Merchants => json!({
            "bearer": {"type": "http", "scheme": "bearer", "description": "A merchant's API key."},
            "token": {"type": "apiKey", "in": "header", "name": "token", "description": "A merchant's API key."},
        }),
        Listener::Operators => json!({
            "operator": {"type": "http", "scheme": "bearer", "description": "An operator's token."},
        }),
    };
    if of == Listener::Merchants {
        events::write(&mut document);
    }
    let schemas = document["components"]["schemas"].clone();
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in paths {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method) {
                complete_operation(path, method, operation, &schemas);
            }
        }
    }
    // Those of problems, events and operations, which were not there before.
    name_enumerations(&mut document);
    link(&mut document);
    drop_unused(&mut document);
    document
}

/// The parameters that each described operation takes in its query.
pub fn query_names(document: &Value) -> QueryNames {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| METHODS.map(|method| (path, method, &item[method])));
    let described = operations.filter(|(.., operation)| operation.is_object());
    let names = described.map(|(path, method, operation)| {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let in_query = parameters.filter(|parameter| parameter["in"] == "query");
        let name = |parameter: &Value| {
            let keys = if parameter["style"] == "deepObject" { "[]" } else { "" };
            parameter["name"].as_str().map(|name| format!("{name}{keys}"))
        };
        let names = in_query.filter_map(name).collect();
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap_or_default();
        ((method, path.clone()), names)
    });
    names.collect()
}

/// Whose listener a description is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// The merchants' listener: `/api`.
    Merchants,
    /// The operators' listener: `/ops`, health and metrics.
    Operators,
}

/// Gives the schemas of lists names that are good names of classes: `List_Charge` becomes
/// `ChargePage`, a list that is answered whole `RefundList`.
fn name_lists(document: &mut Value) {
    rename(document, |name| {
        let (list, item) = name.split_once('_')?;
        Some(format!("{item}{}", if list == "List" { "Page" } else { "List" }))
    });
}

fn rename(document: &mut Value, new_name: impl Fn(&str) -> Option<String>) {
    let mut renamed = HashMap::new();
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for name in schemas.keys().cloned().collect::<Vec<_>>() {
            let Some(new_name) = new_name(&name) else { continue };
            let schema = schemas.remove(&name).unwrap_or_default();
            renamed.insert(reference(&name)["$ref"].clone(), reference(&new_name)["$ref"].clone());
            schemas.insert(new_name, schema);
        }
    }
    each_reference(document, &mut |reference| {
        if let Some(new) = renamed.get(reference) {
            *reference = new.clone();
        }
    });
}

/// Gives each enumeration a schema of its own, named after the object and the property
/// (`ChargeStatus`), or the operation and the parameter (`ListChargesStatus`). Generators of
/// clients then need no names of their making (`Status7`). One that may be null is a choice of this
/// schema and null, since some generators take every member of an enumeration for a text.
fn name_enumerations(document: &mut Value) {
    let mut schemas = document["components"]["schemas"].take();
    let Some(all) = schemas.as_object_mut() else { return };
    // Names of schemas are taken before.
    let mut named: Map<_, _> = all.keys().map(|name| (name.clone(), Value::Null)).collect();
    for (name, schema) in all.iter_mut() {
        name_enumerations_in(name, schema, &mut named);
    }
    for operation in members_mut(&mut document["paths"]).flat_map(members_mut) {
        name_enumerations_of(operation, &mut named);
    }
    all.extend(named.into_iter().filter(|(_, enumeration)| !enumeration.is_null()));
    document["components"]["schemas"] = schemas;
}

/// Those of an operation's parameters, and of the bodies that it describes itself.
fn name_enumerations_of(operation: &mut Value, named: &mut Map<String, Value>) {
    let name = class_name(operation["operationId"].as_str().unwrap_or_default());
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = format!("{name}{}", class_name(parameter["name"].as_str().unwrap_or_default()));
        name_enumeration(&name, &mut parameter["schema"], named);
    }
    if let Some(content) = operation.pointer_mut("/requestBody/content") {
        members_mut(content).for_each(|media| name_enumerations_in(&name, &mut media["schema"], named));
    }
}

/// `charge_status` as the name of a class, `ChargeStatus`.
fn class_name(words: &str) -> String {
    words.split('_').map(capitalized).collect()
}

fn name_enumerations_in(name: &str, schema: &mut Value, named: &mut Map<String, Value>) {
    for (property, schema) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        name_enumeration(&format!("{name}{}", class_name(property)), schema, named);
    }
    for part in ["oneOf", "allOf", "anyOf"] {
        for schema in schema.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten() {
            name_enumerations_in(name, schema, named);
        }
    }
}

fn name_enumeration(name: &str, schema: &mut Value, named: &mut Map<String, Value>) {
    if let Some(items) = schema.get_mut("items") {
        name_enumeration(name, items, named);
    }
    name_enumerations_in(name, schema, named);
    let values: Vec<_> =
        schema["enum"].as_array().into_iter().flatten().filter(|one| !one.is_null()).cloned().collect();
    if values.is_empty() {
        return;
    }
    let (kind, is_nullable) = match &schema["type"] {
        Value::Array(kinds) => (kinds.iter().find(|kind| **kind != "null").cloned(), true),
        kind => (Some(kind.clone()), false),
    };
    // An example may be null.
    let [description, example] = ["description", "example"].map(|name| schema.get(name).cloned());
    let mut enumeration = std::mem::replace(schema, json!({}));
    enumeration["type"] = kind.unwrap_or_default();
    enumeration["enum"] = values.into();
    enumeration.as_object_mut().map(|enumeration| enumeration.remove("example"));
    let name = if named.contains_key(name) { format!("{name}Choice") } else { name.to_owned() };
    named.insert(name.clone(), enumeration);
    *schema = if is_nullable { json!({"oneOf": [reference(&name), {"type": "null"}]}) } else { reference(&name) };
    for (name, own) in [("description", description), ("example", example)] {
        if let Some(own) = own {
            schema[name] = own;
        }
    }
}

/// Calls `visit` with the value of each `$ref`.
fn each_reference(value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match name.as_str() {
            "$ref" => visit(member),
            _ => each_reference(member, visit),
        }),
        Value::Array(elements) => elements.iter_mut().for_each(|element| each_reference(element, visit)),
        _ => {}
    }
}

/// Drops the schemas and headers that nothing refers to.
fn drop_unused(document: &mut Value) {
    loop {
        let mut used = HashSet::new();
        each_reference(document, &mut |reference| {
            used.extend(
                reference.as_str().and_then(|reference| reference.strip_prefix("#/components/")).map(str::to_owned),
            );
        });
        let mut dropped = false;
        for kind in ["schemas", "headers"] {
            let components = document["components"][kind].as_object_mut();
            components.into_iter().for_each(|components| {
                components.retain(|name, _| {
                    let is_used = used.contains(&format!("{kind}/{name}"));
                    dropped |= !is_used;
                    is_used
                });
            });
        }
        if !dropped {
            return;
        }
    }
}

/// Writes every composed schema as one object, and makes lists refer to the schema of their items.
/// Generated clients then have one class for a thing.
fn write_whole(schemas: &mut Value) {
    let parts = schemas.clone();
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        *schema = whole(schema, &parts);
        if let Some((_, item)) = name.split_once('_').filter(|(_, item)| parts.get(item).is_some()) {
            schema["properties"]["items"]["items"] = reference(item);
        }
    }
}

fn whole(schema: &Value, schemas: &Value) -> Value {
    let Some(parts) = schema["allOf"].as_array() else { return schema.clone() };
    let mut whole = json!({"type": "object", "required": [], "properties": {}});
    for name in ["description", "example"] {
        if let Some(own) = schema.get(name) {
            whole[name] = own.clone();
        }
    }
    for part in parts.iter().map(|part| self::whole(resolved(part, schemas), schemas)) {
        let names = part["required"].as_array().cloned().unwrap_or_default();
        whole["required"].as_array_mut().into_iter().for_each(|required| required.extend(names.iter().cloned()));
        for (name, property) in part["properties"].as_object().into_iter().flatten() {
            whole["properties"][name] = property.clone();
        }
    }
    whole
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn capitalized(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_uppercase() + rest
}

/// Links the answer that creates something to the operations that name it in their path: by its
/// `txid`, or by its `id` where the segment before it is the last of the path that created it.
fn link(document: &mut Value) {
    let listener_of = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
    let mut targets = Vec::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        let Some((before, after)) = path.split_once("/{") else { continue };
        let parameter = after.split('}').next().unwrap_or_default().to_owned();
        let kind = before.rsplit('/').next().unwrap_or_default().to_owned();
        let ids = METHODS.iter().filter_map(|method| item[method]["operationId"].as_str());
        targets.extend(ids.map(|id| (listener_of(path), kind.clone(), parameter.clone(), id.to_owned())));
    }
    let schemas = document["components"]["schemas"].clone();
    for (path, item) in document["paths"].as_object_mut().into_iter().flatten() {
        let Some(created) = item.get_mut("post").and_then(|post| post["responses"].get_mut("201")) else { continue };
        let schema = resolved(&created["content"]["application/json"]["schema"], &schemas);
        let shows = |name: &str| schema["properties"].get(name).is_some();
        let last = path.rsplit('/').next().unwrap_or_default();
        let mut links = Map::new();
        for (listener, kind, parameter, id) in &targets {
            if *listener == listener_of(path) && (parameter == "txid" || kind == last) && shows(parameter) {
                let value = format!("$response.body#/{parameter}");
                links.insert(id.clone(), json!({"operationId": id, "parameters": {parameter: value}}));
            }
        }
        if !links.is_empty() {
            created["links"] = Value::Object(links);
        }
    }
}

const METHODS: [&str; 5] = ["get", "post", "patch", "put", "delete"];

const FOR_MERCHANTS: &str = "\
Merchant payments over a double-entry ledger: charges by card and PIX, splits, sub-recipients, withdrawals, refunds and \
subscriptions. Each request needs a merchant's API key. A field whose name is near that of a known one, or is the name that another \
payments API gives to it, is refused; other fields that are not known are ignored, and listed in `Centavo-Ignored-Fields`.";

const FOR_OPERATORS: &str = "\
Operations of a payments service: merchants and their API keys, decisions that wait for an operator, the books, exports and health. \
Each request under `/ops` needs an operator's token. Fields that are not known are refused.";

const FOR_ALL: &str = "\
Amounts are integer centavos unless a field says otherwise. A field that is null or an empty text is as good as absent. Whatever is refused is answered with `application/problem+json` (RFC 9457), whose `code` is stable and whose `message` is for \
people. A caller's `X-Request-Id` of 1 to 128 visible ASCII characters is kept.\n\n\
Questions go to the operator of this server. How to report a vulnerability: `SECURITY.md` of its sources and packages.";

/// The schema itself, or the schema that it refers to.
pub(crate) fn resolved<'a>(schema: &'a Value, schemas: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        Some(name) => &schemas[name],
        None => schema,
    }
}

/// The headers of streams and reports that say which Records count.
const CUT_HEADERS: [(&str, &[&str]); 3] = [
    ("/ops/export", &["X-Cut"]),
    ("/api/reports/ledger", &["X-Cut"]),
    ("/ops/reports/{name}", &["Report-Cut", "Report-Head"]),
];

/// The parameters of an operation. Ids in its path are left out where it is described.
fn parameters_of(path: &str, operation: &Value) -> Vec<Value> {
    let described = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let ids = names.filter(|name| !described.iter().any(|one| one["in"] == "path" && one["name"] == *name));
    let ids = ids.map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let mut parameters: Vec<_> = ids.chain(described.iter().cloned()).collect();
    parameters.iter_mut().for_each(complete_parameter);
    parameters
}

/// Adds the parts of an operation that follow from its path and method.
fn complete_operation(path: &str, method: &str, operation: &mut Value, schemas: &Value) {
    let of_merchants = path.starts_with("/api/");
    let needs_credential = of_merchants || path.starts_with("/ops/");
    name_operation(operation);
    let takes_body = matches!(method, "post" | "patch" | "put");
    operation["security"] = match (of_merchants, needs_credential) {
        (true, _) => json!([{"bearer": []}, {"token": []}]),
        (false, true) => json!([{"operator": []}]),
        (false, false) => json!([]),
    };
    let mut parameters = parameters_of(path, operation);
    let named = |place: &str| parameters.iter().any(|parameter| parameter["in"] == place);
    let mut problems = vec![431, 500, 503];
    if needs_credential {
        problems.extend([400, 401, 429]);
    }
    if of_merchants || path.starts_with("/ops/") && (method != "get" || path == "/ops/backup") {
        problems.push(403);
    }
    if named("path") {
        problems.push(404);
    }
    if takes_body {
        problems.extend([408, 413, 415]);
    }
    if method == "post" {
        problems.extend([409, 422]);
        parameters.push(idempotency_key());
    }
    for status in problems {
        operation["responses"][status.to_string()]["description"] = json!("");
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    for media in members_mut(&mut operation["requestBody"]["content"]) {
        // A body that may be left out is not null.
        let choices = media["schema"]["oneOf"].as_array();
        if let Some([whole, null]) = choices.map(Vec::as_slice)
            && null["type"] == "null"
        {
            media["schema"] = whole.clone();
        }
        // Fields that a PATCH leaves out stay unchanged.
        if method == "patch" {
            let whole = resolved(&media["schema"], schemas).clone();
            media["schema"] = whole;
            media["schema"].as_object_mut().map(|schema| schema.remove("example"));
            let required = media["schema"].as_object_mut().and_then(|schema| schema.remove("required"));
            for name in required.iter().flat_map(|names| names.as_array().into_iter().flatten()) {
                let kind = &mut media["schema"]["properties"][name.as_str().unwrap_or_default()]["type"];
                if kind.is_string() {
                    *kind = json!([kind.clone(), "null"]);
                }
            }
        }
        give_example(media, schemas, Direction::Request);
    }
    if operation["requestBody"]["content"].is_null() {
        operation.as_object_mut().map(|operation| operation.remove("requestBody"));
    }
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        let number = status.parse().unwrap_or_default();
        complete_response(number, response, of_merchants, method, schemas);
    }
    name_cut(path, operation);
}

/// Adds the headers that say which Records count.
fn name_cut(path: &str, operation: &mut Value) {
    for (_, names) in CUT_HEADERS.iter().filter(|(of, _)| *of == path) {
        refer(&mut operation["responses"]["200"], names.iter().copied());
    }
}

/// Gives an operation its name in words as its summary, and all that its handler says as its
/// description.
fn name_operation(operation: &mut Value) {
    let paragraphs = [&operation["summary"], &operation["description"]].map(|text| text.as_str().unwrap_or_default());
    let description = paragraphs.join("\n\n").trim().to_owned();
    let words: Vec<_> = operation["operationId"].as_str().unwrap_or_default().split('_').map(word).collect();
    operation["summary"] = json!(capitalized(&words.join(" ")));
    operation["description"] = json!(description);
}

fn word(word: &str) -> &str {
    match word {
        "pix" => "PIX",
        "api" => "API",
        word => word,
    }
}

fn complete_response(status: u16, response: &mut Value, of_merchants: bool, method: &str, schemas: &Value) {
    if status >= 400 {
        let schema = reference(&problem_name(status));
        response["content"] = json!({problem::MEDIA_TYPE: {"schema": schema}});
    }
    if response["description"].as_str().unwrap_or_default().is_empty() {
        let meaning = axum::http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        response["description"] = json!(meaning.unwrap_or_default());
    }
    for (media_type, media) in response["content"].as_object_mut().into_iter().flatten() {
        if media_type.ends_with("json") {
            give_example(media, schemas, Direction::Response);
        }
    }
    if response["content"].is_null() {
        response.as_object_mut().map(|response| response.remove("content"));
    }
    let mut names = vec!["X-Request-Id", "Api-Version", "X-Sandbox"];
    if matches!(status, 200..300 | 402 | 502) {
        names.extend(["Centavo-Sequence", "Centavo-Partition"].iter().filter(|_| method != "get"));
        names.extend((method == "post").then_some("Idempotent-Replayed"));
    }
    names.extend((of_merchants && matches!(method, "post" | "patch")).then_some("Centavo-Ignored-Fields"));
    if of_merchants && status != 401 {
        names.extend(["RateLimit", "RateLimit-Policy"]);
    }
    match status {
        401 => names.push("WWW-Authenticate"),
        409 | 429 | 503 => names.push("Retry-After"),
        202 if method == "get" => names.push("Retry-After"),
        _ => {}
    }
    refer(response, names);
}

/// Names the headers of a response.
fn refer(response: &mut Value, names: impl IntoIterator<Item = &'static str>) {
    for name in names {
        response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
    }
}

/// A request's parameter is there or it is not: it is never null. Ids and pages look alike
/// everywhere.
fn complete_parameter(parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let in_path = parameter["in"] == "path";
    let is_described = parameter.get("description").is_some();
    let schema = &mut parameter["schema"];
    if let Some(kind) = schema["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| **kind != "null")).cloned()
    {
        schema["type"] = kind;
    }
    if schema["type"] == "integer" {
        schema.as_object_mut().map(|schema| schema.remove("format"));
    }
    enumerate(schema);
    let is_shaped = schema.get("pattern").or(schema.get("format")).or(schema.get("enum")).is_some();
    match name.as_str() {
        "page" => *schema = json!({"type": "integer", "minimum": 1, "default": 1}),
        // Whose pages are not as everywhere says so.
        "per_page" if schema.get("maximum").is_none() => {
            *schema = json!({"type": "integer", "minimum": 1, "maximum": 100, "default": 20});
        }
        "limit" => *schema = json!({"type": "integer", "minimum": 1, "maximum": 100}),
        "before" | "after" if !is_described => *schema = json!({"type": "string", "pattern": AN_ID}),
        "txid" if !is_shaped => *schema = json!({"type": "string", "pattern": TXID}),
        _ if in_path && !is_shaped => *schema = json!({"type": "string", "format": "uuid"}),
        _ => {}
    }
    let description = match name.as_str() {
        "page" => "Which page, from 1; one past the end is empty.",
        "per_page" => "Items a page.",
        "limit" => "Items of an answer that has the address of what follows, in `next` and `Link`.",
        "before" => "Only what is older than the item with this id.",
        "after" => "Only what is newer than the item with this id.",
        "txid" => "The charge's id.",
        "id" => "The id of what the path names.",
        _ => "",
    };
    if parameter.get("description").is_none() && !description.is_empty() {
        parameter["description"] = json!(description);
    }
    if in_path && parameter.get("example").is_none() {
        parameter["example"] = json!(if parameter["schema"]["pattern"] == TXID { A_TXID } else { A_UUID });
    }
}

/// An id as a txid or as a UUID.
const AN_ID: &str = "^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
const TXID: &str = "^[0-9a-f]{32}$";
pub(crate) const A_TXID: &str = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e";
pub(crate) const A_UUID: &str = "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e";
const A_TIME: &str = "2026-07-01T12:00:00.250Z";

fn idempotency_key() -> Value {
    json!({
        "name": "Idempotency-Key", "in": "header", "required": false,
        "description": "The same key with the same body within 24 hours is carried out once, and answered as the first time.",
        "schema": {"type": "string", "pattern": "^[ -~]{1,255}$"},
        "example": "pedido-1042",
    })
}

fn headers() -> Value {
    let text = |description: &str| json!({"description": description, "schema": {"type": "string"}});
    let always =
        |description: &str| json!({"description": description, "required": true, "schema": {"type": "string"}});
    let seconds = |description: &str| json!({"description": description, "schema": {"type": "integer", "minimum": 0}});
    json!({
        "X-Request-Id": always("The request's id: the caller's, or one made here."),
        "Api-Version": always("The version of the interface: the day since which no change has broken a caller."),
        "X-Sandbox": text("`true` in the sandbox, where money is fake."),
        "Idempotent-Replayed": text("`true` when the request was carried out before, and is answered as then."),
        "Centavo-Sequence": json!({
            "description": "The sequence of the journal's Record that carried the request out, also in a replay. \
                Absent where nothing was written.",
            "schema": {"type": "integer", "minimum": 1},
        }),
        "Centavo-Partition": json!({
            "description": "The partition of that Record; absent where it is 0.",
            "schema": {"type": "integer", "minimum": 1},
        }),
        "Centavo-Ignored-Fields": text("The fields of the body that are not known and were ignored, by their paths, with commas between."),
        "RateLimit": text("What is left of the limit, and when it is full again."),
        "RateLimit-Policy": text("The limit: how many requests in how many seconds."),
        "X-Cut": always("The last Record that counts, by partition of the journal: `0=42`, with commas between partitions."),
        "Report-Cut": always("The last Record that counts, by partition of the journal: `0=42`, with commas between partitions."),
        "Report-Head": always("SHA-256 of the block that has this Record, hexadecimal; of several partitions the SHA-256 of these hashes."),
        "Retry-After": seconds("When to try again, in seconds."),
        "WWW-Authenticate": always("`Bearer`."),
    })
}

/// Adds the rules that follow from the name or the pattern of a property, at every depth.
fn complete_schema(name: &str, schema: &mut Value, is_answer: bool) {
    enumerate(schema);
    let is_text = is_of(schema, "string");
    if is_amount(schema) {
        let prose = schema["description"].as_str().unwrap_or_default();
        schema["description"] = json!(format!("{prose} {AMOUNT_NOTATION}").trim_start());
    }
    if is_text && is_time(name) && schema.get("format").is_none() {
        schema["format"] = json!("date-time");
    }
    if is_answer {
        fields::shape(name, schema);
    }
    let is_unshaped = ["format", "pattern", "minLength", "example"].iter().all(|shape| schema.get(*shape).is_none());
    if is_text && (name == "id" || name.ends_with("_id")) && name != "payment_id" && is_unshaped {
        schema["format"] = json!("uuid");
    }
    if is_text && matches!(name, "txid" | "payment_id") && schema.get("pattern").or(schema.get("minLength")).is_none() {
        schema["pattern"] = json!(TXID);
    }
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        complete_schema(name, property, is_answer);
    }
    for part in ["oneOf", "allOf", "anyOf"] {
        for schema in schema.get_mut(part).and_then(Value::as_array_mut).into_iter().flatten() {
            complete_schema(name, schema, is_answer);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        complete_schema("", items, is_answer);
    }
}

fn is_of(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!(kind)))
}

fn is_time(name: &str) -> bool {
    ["_at", "_since", "_until"].iter().any(|end| name.ends_with(end))
        || matches!(name, "at" | "now" | "timestamp" | "until" | "wall_clock")
}

/// The schemas that bodies of requests have.
fn requested(document: &Value) -> HashSet<String> {
    let mut names = HashSet::new();
    let operations = document["paths"].as_object().into_iter().flatten().flat_map(|(_, item)| item.as_object());
    let bodies = operations.flatten().map(|(_, operation)| operation["requestBody"].clone());
    let mut bodies: Vec<Value> = bodies.collect();
    while let Some(mut body) = bodies.pop() {
        each_reference(&mut body, &mut |reference| {
            let name = reference.as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            if names.insert(name.to_owned()) {
                bodies.push(document["components"]["schemas"][name].clone());
            }
        });
    }
    names
}

/// The schema whose fields are absent for a method of payment, and null where a value is not known.
const NULL_OR_ABSENT: &str = "Fiscal";

/// A field of an answer that may be absent is not null: one that is always there says `required`.
fn deny_nulls(schema: &mut Value) {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        if required.contains(&json!(name)) {
            continue;
        }
        if let Some(kinds) = property.get("type").and_then(Value::as_array) {
            let kinds: Vec<_> = kinds.iter().filter(|kind| **kind != "null").cloned().collect();
            property["type"] = if let [kind] = kinds.as_slice() { kind.clone() } else { kinds.into() };
        }
        if let Some(choices) = property.get("oneOf").and_then(Value::as_array) {
            let choices: Vec<_> = choices.iter().filter(|choice| choice["type"] != "null").cloned().collect();
            property["oneOf"] = choices.into();
            let only = property["oneOf"].as_array().filter(|choices| choices.len() == 1).map(|only| only[0].clone());
            if let (Some(Value::Object(only)), Some(property)) = (only, property.as_object_mut()) {
                property.remove("oneOf");
                property.extend(only);
            }
        }
    }
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        deny_nulls(part);
    }
}

/// How an amount must be written. JSON Schema cannot say it: 800.0 is an integer there.
const AMOUNT_NOTATION: &str = "In digits alone: `800`, and neither `800.0` nor `8e2`.";

/// True for an amount of a request: an integer with a largest value that only amounts have.
fn is_amount(schema: &Value) -> bool {
    is_of(schema, "integer")
        && schema["maximum"].as_i64().is_some_and(|most| most == CENTAVOS_MAX || most == FEE_CENTAVOS_MAX)
}

/// Largest fixed fee of a merchant, in centavos.
const FEE_CENTAVOS_MAX: i64 = 100_000_000;

/// Writes a pattern that is a list of names, such as `^(pix|credit_card)$`, as the enumeration that
/// it is.
fn enumerate(schema: &mut Value) {
    let pattern = schema["pattern"].as_str().and_then(|pattern| pattern.strip_prefix("^(")?.strip_suffix(")$"));
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    let Some(names) = pattern.map(|names| names.split('|').map(str::to_owned).collect::<Vec<_>>()) else { return };
    if names.iter().all(|name| is_name(name)) {
        let is_nullable = schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
        let null = is_nullable.then_some(Value::Null);
        schema["enum"] = names.into_iter().map(Value::from).chain(null).collect();
        schema.as_object_mut().map(|schema| schema.remove("pattern"));
    }
}

fn problem_name(status: u16) -> String {
    format!("Problem{status}")
}

/// The problems of each status, each written whole: generators of clients drop a schema that is put
/// together from others which say different things of one member.
fn problem_schemas() -> Vec<(String, Value)> {
    let text = |description: &str| json!({"type": "string", "description": description});
    let field = json!({
        "type": "object",
        "description": "What is wrong with one field.",
        "required": ["field", "code", "message"],
        "properties": {
            "field": text("The field's path, such as `customer.document` or `splits[2].amount`."),
            "code": text("What is wrong, as a stable name."),
            "message": text("What is wrong, in Portuguese."),
        },
    });
    let mut schemas = vec![("FieldError".to_owned(), field)];
    let mut statuses: Vec<_> = Code::ALL.iter().map(|code| code.row().status.as_u16()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    schemas.extend(statuses.into_iter().map(|status| (problem_name(status), problem_schema(status))));
    schemas
}

/// The problems of a status. The interface has the charge's status in that of a declined card
/// (sections 2.2 and 7).
fn problem_schema(status: u16) -> Value {
    let rows: Vec<_> = Code::ALL.iter().map(|code| code.row()).filter(|row| row.status.as_u16() == status).collect();
    let codes: Vec<_> = rows.iter().map(|row| row.code).collect();
    let described: String =
        rows.iter().map(|row| format!("\n- `{}`: {}. {}.", row.code, row.title, row.message)).collect();
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut schema = json!({
        "type": "object",
        "description": format!(
            "Why a request was not carried out (RFC 9457), with status {status}. A problem may have members beside these. \
             The codes:{described}"
        ),
        "required": ["type", "title", "status", "detail", "instance", "code", "message", "success", "request_id", "errors"],
        "properties": {
            "type": text("The kind of problem: the address of its page on the same listener."),
            "title": text("The kind of problem, in English."),
            "status": {"type": "integer", "const": status, "description": "The response's status."},
            "detail": text("What is wrong this time, for developers."),
            "instance": text("The request's path."),
            "code": {"type": "string", "enum": codes, "description": "The kind of problem, as a stable name."},
            "message": text("What to tell a person, in Portuguese."),
            "success": {"type": "boolean", "const": false, "description": "False."},
            "request_id": text("The request's id."),
            "errors": {
                "type": "array", "items": {"$ref": "#/components/schemas/FieldError"},
                "description": "The fields that are wrong.",
            },
        },
    });
    let row = rows[0];
    let mut example = json!({
        "type": format!("/problems/{}", row.code), "title": row.title, "status": status, "detail": row.title,
        "instance": "/api/balance", "code": row.code, "message": row.message, "success": false,
        "request_id": "5f0c2a9d8e7b461f0000000000000001", "errors": [],
    });
    if status == 402 {
        schema["required"]
            .as_array_mut()
            .into_iter()
            .for_each(|names| names.extend([json!("txid"), json!("cardStatus")]));
        let properties = &mut schema["properties"];
        properties["status"] = json!({"type": "string", "const": "RECUSADA", "description": "The charge's status."});
        properties["txid"] = json!({"type": "string", "pattern": TXID, "description": "The charge's id."});
        properties["cardStatus"] = text("The acquirer's status.");
        properties["reference"] = text("The caller's reference, where the request had one.");
        let metadata = "The caller's values by key, where the request had some.";
        properties["metadata"] =
            json!({"type": "object", "additionalProperties": {"type": "string"}, "description": metadata});
        example["status"] = json!("RECUSADA");
        example["txid"] = json!(A_TXID);
        example["cardStatus"] = json!("not_authorized");
    }
    schema["example"] = example;
    schema
}

/// Whether a body comes or goes.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Request,
    Response,
}

/// Gives a body an example, unless it has one.
fn give_example(media: &mut Value, schemas: &Value, direction: Direction) {
    let is_given = media.get("example").or(media.get("examples")).is_some();
    if !is_given && let Some(schema) = media.get("schema") {
        media["example"] = example(schema, schemas, direction);
    }
}

/// An example put together from those of the fields. A request's optional field is in it only where
/// it has an example of its own.
fn example(schema: &Value, schemas: &Value, direction: Direction) -> Value {
    if let Some(own) = schema.get("example").or(schema.get("const")).or(schema.get("default")) {
        return own.clone();
    }
    if schema.get("$ref").is_some() {
        return example(resolved(schema, schemas), schemas, direction);
    }
    if let Some(first) = schema["enum"].as_array().and_then(|names| names.first()) {
        return first.clone();
    }
    if let Some(choice) =
        schema["oneOf"].as_array().and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"))
    {
        return example(choice, schemas, direction);
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let parts = parts.iter().filter_map(|part| example(part, schemas, direction).as_object().cloned());
        return parts.flatten().collect::<Map<_, _>>().into();
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| **kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    };
    match kind.as_str() {
        Some("object") => {
            let required =
                |name: &String| schema["required"].as_array().is_some_and(|names| names.contains(&json!(name)));
            let properties = schema["properties"].as_object().into_iter().flatten();
            let shown = properties.filter(|(name, property)| {
                direction == Direction::Response || required(name) || property.get("example").is_some()
            });
            let mut members: Map<_, _> =
                shown.map(|(name, property)| (name.clone(), example(property, schemas, direction))).collect();
            if members.contains_key("per_page") {
                let only_page = [("total", 1), ("page", 1), ("pages", 1), ("per_page", 20)];
                members.extend(only_page.map(|(name, number)| (name.to_owned(), json!(number))));
            }
            members.into()
        }
        Some("array") => json!([example(&schema["items"], schemas, direction)]),
        Some("string") => match (schema["format"].as_str(), schema["pattern"].as_str()) {
            (Some("uuid"), _) => json!(A_UUID),
            (Some("date-time"), _) => json!(A_TIME),
            (_, Some(TXID)) => json!(A_TXID),
            _ => json!("texto"),
        },
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        _ => Value::Null,
    }
}

fn members_mut(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(|members| members.values_mut())
}
