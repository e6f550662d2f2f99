//! The description of the interface: it is complete, and its examples are accepted.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::makers::make;
use crate::world::*;

#[tokio::test]
async fn the_description_is_whole() {
    let world = World::sandbox().await;
    let document = &world.description.document;
    assert!(text(&document["openapi"]).starts_with("3.1"));
    let mut ids = BTreeSet::new();
    for operation in world.description.operations() {
        let at = format!("{} {}", operation.method, operation.path);
        let described = &operation.described;
        assert!(ids.insert(text(&described["operationId"])), "{at}: its operation_id is that of another");
        let summary = text(&described["summary"]);
        assert!((1..=40).contains(&summary.chars().count()), "{at} has a name that fits into a list: {summary}");
        assert!(!text(&described["description"]).is_empty(), "{at} says what it does");
        assert!(described["tags"].as_array().is_some_and(|tags| tags.len() == 1), "{at} has a heading");
        let parameters = described["parameters"].as_array().cloned().unwrap_or_default();
        for parameter in &parameters {
            assert!(parameter["description"].is_string(), "{at}: parameter {} is described", parameter["name"]);
        }
        let in_path = parameters.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, operation.path.matches('{').count(), "{at}: parameters of the path");
        let responses = described["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{at} can succeed");
        for (status, response) in responses {
            let media = response["content"].as_object().unwrap_or_else(|| panic!("{at} {status} has a body"));
            for media in media.values() {
                assert!(media["schema"].is_object(), "{at} {status} has a schema");
            }
        }
        let is_keyed = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        assert_eq!(is_keyed, operation.method == "POST", "{at}");
    }
    for operation in world.description.operations() {
        for link in operation.described["responses"]["201"]["links"].as_object().into_iter().flatten() {
            assert!(ids.contains(&text(&link.1["operationId"])), "{link:?} leads nowhere");
        }
    }
    let mut references = BTreeSet::new();
    references_in(document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap_or_else(|| panic!("{reference} leads outside"));
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

/// Traps for generators of clients: a composed schema, and an event without a description.
#[tokio::test]
async fn every_schema_is_whole_and_every_event_has_its_thing() {
    let world = World::sandbox().await;
    let schemas = &world.description.document["components"]["schemas"];
    for (name, schema) in schemas.as_object().unwrap() {
        assert!(schema.get("allOf").is_none(), "{name} is put together from others");
    }
    let problems = schemas.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("Problem"));
    for (name, members) in problems.filter_map(|(name, schema)| Some((name, schema["properties"].as_object()?))) {
        let members = members.values();
        let kinds: Vec<_> = members.map(|member| world.description.resolved(member)["type"].as_str()).collect();
        assert!(kinds.len() >= 10 && kinds.iter().all(Option::is_some), "{name}: {kinds:?}");
    }
    for (body, events) in [("WebhookBody", 35), ("Event", 35)] {
        let mapping = schemas[body]["discriminator"]["mapping"].as_object().unwrap();
        assert_eq!(mapping.len(), events, "{body}");
        for (event, reference) in mapping {
            let choice = world.description.document.pointer(&text(reference)[1..]).unwrap();
            let events = &world.description.resolved(&choice["properties"]["event"])["enum"];
            assert!(events.as_array().unwrap().contains(&event.as_str().into()));
            let thing = event.split('.').next().unwrap();
            assert!(choice["required"].as_array().unwrap().contains(&thing.into()), "{event} has its {thing}");
            let described = text(&choice["properties"][thing]["$ref"]);
            let fields = world.description.document.pointer(&described[1..]).unwrap()["properties"].as_object();
            assert!(fields.is_some_and(|fields| fields.len() >= 4), "{event} says what its {thing} is");
        }
    }
}

/// A tagged choice of closed schemas can be one that no body satisfies: every variant takes its
/// example, and the choice takes it as that variant alone.
#[tokio::test]
async fn every_variant_of_a_tagged_choice_takes_a_body() {
    let world = World::sandbox().await;
    let document = &world.description.document;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let choices = schemas.iter().filter(|(_, schema)| schema.get("discriminator").is_some());
    let names: Vec<_> = choices.map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Event", "WebhookBody"], "each needs bodies for its variants");
    let validator = |reference: &str| {
        let schema = json!({"$ref": reference, "components": document["components"]});
        jsonschema::validator_for(&schema).unwrap()
    };
    let any = validator("#/components/schemas/WebhookBody");
    let mapping = schemas["WebhookBody"]["discriminator"]["mapping"].as_object().unwrap();
    for (event, reference) in mapping {
        let example = &document["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]["example"];
        assert_eq!(example["event"], **event);
        if let Err(error) = validator(&text(reference)).validate(example) {
            panic!("{event}: {error} of {example}");
        }
        assert!(any.is_valid(example), "{event}: none or several variants take {example}");
    }
}

/// Generators of clients name an enumeration that has no name (`Status7`), and take a null among
/// its values for a text.
#[tokio::test]
async fn every_enumeration_has_a_name_and_no_null() {
    let world = World::sandbox().await;
    for operators in [false, true] {
        let document = read(&world, operators, "/openapi.json").await.body;
        let mut named = Vec::new();
        enumerations_in(&document, "", &mut |at, values| {
            let name = at.strip_prefix("/components/schemas/").filter(|name| !name.contains('/'));
            named.push(name.unwrap_or_else(|| panic!("{at} has no name")).to_owned());
            assert!(!values.is_empty() && !values.contains(&Value::Null), "{at}: {values:?}");
        });
        let is_numbered = |name: &&String| name.ends_with(|last: char| last.is_ascii_digit());
        assert_eq!(named.iter().find(is_numbered), None);
        assert!(named.len() > 50, "{named:?}");
    }
}

fn enumerations_in(value: &Value, at: &str, visit: &mut impl FnMut(&str, &[Value])) {
    if let Value::Array(elements) = value {
        elements
            .iter()
            .enumerate()
            .for_each(|(place, element)| enumerations_in(element, &format!("{at}/{place}"), visit));
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        match member.as_array().filter(|_| name == "enum") {
            Some(values) => visit(at, values),
            None => enumerations_in(member, &format!("{at}/{name}"), visit),
        }
    }
}

#[tokio::test]
async fn the_type_of_a_problem_leads_to_its_page() {
    let world = World::sandbox().await;
    let codes = world.description.document["components"]["schemas"].as_object().unwrap().iter();
    let codes = codes.filter(|(name, _)| name.starts_with("Problem"));
    let codes = codes.filter_map(|(_, schema)| schema["properties"].get("code"));
    let codes = codes.flat_map(|code| world.description.resolved(code)["enum"].as_array().unwrap());
    let mut pages = 0;
    for code in codes.map(text) {
        let page = world.send(Method::GET, &format!("/problems/{code}"), &[], "").await;
        assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{code}");
        assert!(page.text.contains(&format!("<code>{code}</code>")), "{code}: {}", page.text);
        pages += 1;
    }
    assert!(pages > 40, "{pages}");
    let refused = world.send(Method::GET, "/api/balance", &[], "").await;
    let page = world.send(Method::GET, &text(&refused.body["type"]), &[], "").await;
    assert!(page.text.contains("<title>Unauthorized</title>"), "{}", page.text);
    world.send(Method::GET, "/problems/nothing", &[], "").await.refused(404, "not_found");
}

/// The guide says what to do at every status that a merchant may get.
#[tokio::test]
async fn the_page_of_errors_has_every_status() {
    let world = World::sandbox().await;
    let page = include_str!("../../docs/guide/errors.md").lines();
    let rows: String = page.filter_map(|line| line.strip_prefix("| ")?.split(" |").next()).collect();
    let mut seen = BTreeSet::new();
    for operation in world.description.operations().iter().filter(|operation| !operation.is_of_operators()) {
        let statuses = operation.described["responses"].as_object().unwrap().keys();
        seen.extend(statuses.filter(|status| status.as_str() >= "400").cloned());
    }
    let missing: Vec<_> = seen.iter().filter(|status| !rows.contains(status.as_str())).collect();
    assert!(seen.len() >= 10 && missing.is_empty(), "{missing:?} of {seen:?}");
}

fn references_in(value: &Value, references: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            references.extend(members.get("$ref").map(text));
            members.values().for_each(|member| references_in(member, references));
        }
        Value::Array(elements) => elements.iter().for_each(|element| references_in(element, references)),
        _ => {}
    }
}

#[tokio::test]
async fn what_is_described_is_served_to_whom_it_says() {
    let world = World::sandbox().await;
    for operation in world.description.operations() {
        let method: Method = operation.method.parse().unwrap();
        let answer = world.send(method, &operation.path_of("1"), &[], "").await;
        assert_eq!(
            answer.status,
            if operation.needs_credential() { 401 } else { 200 },
            "{}: {}",
            operation.path,
            answer.text
        );
    }
}

#[tokio::test]
async fn a_live_server_neither_serves_nor_describes_the_sandbox() {
    let (live, sandbox) = (World::live().await, World::sandbox().await);
    let of = |world: &World| {
        world.description.operations().into_iter().map(|at| (at.method, at.path)).collect::<BTreeSet<_>>()
    };
    let (of_live, of_sandbox) = (of(&live), of(&sandbox));
    let only_sandbox: Vec<_> = of_sandbox.difference(&of_live).collect();
    assert!(
        only_sandbox.len() >= 2 && only_sandbox.iter().all(|(_, path)| path.contains("/sandbox/")),
        "{only_sandbox:?}"
    );
    assert!(of_live.is_subset(&of_sandbox) && of_live.iter().all(|(_, path)| !path.contains("/sandbox/")));
    for (method, path) in only_sandbox {
        live.send(method.parse().unwrap(), path, &[], "").await.refused(404, "not_found");
    }
    assert!(!read(&live, false, "/reference/charges").await.text.contains("<script"), "nothing is tried with money");
}

#[tokio::test]
async fn every_example_of_a_request_is_accepted() {
    let world = World::sandbox().await;
    let mut sent = 0;
    for operation in world.description.operations() {
        let at = format!("{} {}", operation.method, operation.path);
        let owner = world.merchant().await;
        let id = if operation.kind().is_some() { make(&owner, &operation).await } else { String::new() };
        if operation.path == "/api/webhooks/test" {
            owner.has_address().await;
        }
        let body = operation.body_for(&owner, &id).await;
        let credential = bearer(if operation.is_of_operators() { OPS_TOKEN } else { &owner.key });
        let mut headers = vec![("authorization", credential.as_str())];
        let file = operation.example_file();
        if body.is_some() || file.is_some() {
            sent += 1;
            headers.push(("content-type", if file.is_some() { "text/csv" } else { "application/json" }));
        }
        let mut query = String::new();
        for parameter in operation.described["parameters"].as_array().into_iter().flatten() {
            let example = parameter.get("example").and_then(Value::as_str);
            let number = parameter.get("example").filter(|_| parameter["required"] == true).and_then(Value::as_i64);
            if let Some(number) = number {
                query.push_str(&format!("&{}={number}", text(&parameter["name"])));
            }
            match (parameter["in"].as_str(), example) {
                (Some("query"), Some(example)) => query.push_str(&format!("&{}={example}", text(&parameter["name"]))),
                (Some("header"), Some(example)) => headers.push(("idempotency-key", example)),
                _ => {}
            }
        }
        // Examples of a Record and of a cut are of one partition.
        if world.cut().await.partitions() > 1 {
            query = query
                .split('&')
                .filter(|pair| !pair.starts_with("before=") && !pair.starts_with("at="))
                .collect::<Vec<_>>()
                .join("&");
        }
        let path = operation.path_of(&id);
        let path = if path.contains('?') { format!("{path}{query}") } else { format!("{path}?{query}") };
        let body = file.or_else(|| body.map(|body| body.to_string())).unwrap_or_default();
        let answer = world.send(operation.method.parse().unwrap(), &path, &headers, body.clone()).await;
        assert!((200..300).contains(&answer.status), "{at}: {body}\n{}", answer.text);
    }
    assert!(sent >= 8, "{sent} examples");
}

/// By JSON Schema 800.0 is an integer. Amounts are refused in that notation, and say so.
#[tokio::test]
async fn the_description_says_which_integers_are_written_in_digits_alone() {
    let world = World::sandbox().await;
    let mut tried = [0, 0];
    for operation in world.description.operations() {
        let owner = world.merchant().await;
        let id = if operation.kind().is_some() { make(&owner, &operation).await } else { String::new() };
        let Some(body) = operation.body_for(&owner, &id).await else { continue };
        let credential = bearer(if operation.is_of_operators() { OPS_TOKEN } else { &owner.key });
        let headers = [("authorization", credential.as_str()), ("content-type", "application/json")];
        let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        let mut integers = Vec::new();
        integers_in(&world, schema, String::new(), &mut integers);
        for (pointer, is_in_digits_alone) in integers {
            let mut changed = body.clone();
            if pointer.ends_with("annual_revenue") {
                changed["register_information"]["type"] = json!("corporation");
            }
            *made_at(&mut changed, &pointer) = json!("a number");
            let changed = changed.to_string().replace("\"a number\"", "800.0");
            let method = operation.method.parse().unwrap();
            let answer = world.send(method, &operation.path_of(&id), &headers, changed.clone()).await;
            let errors = answer.body["errors"].as_array().cloned().unwrap_or_default();
            let is_refused = errors.iter().any(|error| error["code"] == "not_an_integer");
            assert_eq!(is_refused, is_in_digits_alone, "{} {}: {changed}: {}", operation.method, pointer, answer.text);
            tried[usize::from(is_refused)] += 1;
        }
    }
    assert!(tried.iter().all(|fields| *fields >= 8), "{tried:?}");
}

/// The integers of a body by their pointers, and whether they are described as digits alone.
fn integers_in(world: &World, schema: &Value, at: String, found: &mut Vec<(String, bool)>) {
    let schema = world.description.resolved(schema);
    for choice in schema["oneOf"].as_array().into_iter().flatten() {
        integers_in(world, choice, at.clone(), found);
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        integers_in(world, property, format!("{at}/{name}"), found);
    }
    if schema["items"].is_object() {
        integers_in(world, &schema["items"], format!("{at}/0"), found);
    }
    let kinds = [&schema["type"], &schema["type"][0], &schema["type"][1]];
    if kinds.contains(&&json!("integer")) {
        let description = schema["description"].as_str().unwrap_or_default();
        found.push((at, description.contains("neither `800.0` nor `8e2`")));
    }
}

/// What a pointer points to, made where it is not there.
fn made_at<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(value, |value, name| match name.parse::<usize>() {
        Ok(_) if value.as_array().is_some_and(|elements| !elements.is_empty()) => &mut value[0],
        Ok(_) => {
            *value = json!([null]);
            &mut value[0]
        }
        Err(_) if value.is_object() => &mut value[name],
        Err(_) => {
            *value = json!({ name: null });
            &mut value[name]
        }
    })
}

#[tokio::test]
async fn every_example_is_what_its_schema_says() {
    let world = World::sandbox().await;
    let (mut checked, mut lists) = (0, 0);
    for operation in world.description.operations() {
        let at = format!("{} {}", operation.method, operation.path);
        let responses = operation.described["responses"].as_object().unwrap().values();
        for media in
            responses.chain([&operation.described["requestBody"]]).filter_map(|body| body["content"].as_object())
        {
            for (media_type, media) in media.iter().filter(|(media_type, _)| media_type.ends_with("json")) {
                let example = media.get("example").unwrap_or_else(|| panic!("{at} has no example of {media_type}"));
                let wrong = world.description.wrong_in(&media["schema"], example);
                assert!(wrong.is_empty(), "{at}: {example}\n{wrong:#?}");
                // A list shows one item: it is the only one of the only page.
                if example.get("per_page").is_some() {
                    let of_page = ["total", "page", "pages", "per_page"].map(|name| example[name].as_i64());
                    assert_eq!(of_page, [Some(1), Some(1), Some(1), Some(20)], "{at}: {example}");
                    lists += 1;
                }
                checked += 1;
            }
        }
    }
    assert!(checked > 100 && lists >= 15, "{checked} examples, {lists} of lists");
    let merchants = read(&world, false, "/openapi.json").await.body;
    let mut events = 0;
    for (name, webhook) in merchants["webhooks"].as_object().unwrap() {
        let media = &webhook["post"]["requestBody"]["content"]["application/json"];
        let example = media.get("example").unwrap_or_else(|| panic!("{name} has no example"));
        let wrong = world.description.wrong_in(&media["schema"], example);
        assert!(wrong.is_empty(), "{name}: {example}\n{wrong:#?}");
        // Any event is described as well: its example is one of them.
        assert!(name == "event" || example["event"] == **name, "{name}: {example}");
        events += 1;
    }
    assert_eq!(events, 36);
}

/// What a listener answers to a GET without a credential.
async fn read(world: &World, operators: bool, path: &str) -> Answer {
    let address = if operators { world.address_of("/ops") } else { world.address_of("/api") };
    let answer = reqwest::get(format!("http://{address}{path}")).await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or_default();
    Answer { status, headers, text, body }
}

#[tokio::test]
async fn each_listener_describes_what_it_serves_and_nothing_else() {
    let world = World::sandbox().await;
    for operators in [false, true] {
        let document = read(&world, operators, "/openapi.json").await.body;
        let is_own = |path: &str| path.starts_with("/api/") != operators;
        assert!(document["paths"].as_object().unwrap().keys().all(|path| is_own(path)));
        let (whole, schemas) = (document.to_string(), document["components"]["schemas"].as_object().unwrap());
        for name in schemas.keys() {
            assert!(whole.contains(&format!("\"#/components/schemas/{name}\"")), "nothing refers to {name}");
            let is_class = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            let is_ours = ["View", "Wire", "Told", "Row", "Body"].iter().any(|end| name.ends_with(end));
            assert!(name == "WebhookBody" || (is_class && !is_ours), "{name} is no good name of a class");
        }
        let tags: BTreeSet<_> = document["tags"].as_array().unwrap().iter().map(|tag| text_of(tag, "name")).collect();
        for operation in document["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap()) {
            assert!(tags.contains(&text(&operation.1["tags"][0])), "{operation:?}");
        }
        assert_eq!(document["webhooks"].is_object(), !operators);
        assert!(document["info"]["license"]["identifier"].is_string());
        assert!(document["info"]["contact"]["name"].is_string());
        // The contact has no address: the description says where it is said how to report.
        assert!(text(&document["info"]["description"]).contains("`SECURITY.md`"));
    }
    let document = read(&world, false, "/openapi.json").await.body;
    assert_eq!(document["webhooks"].as_object().unwrap().len(), 36, "each event, and any event");
    for (name, webhook) in document["webhooks"].as_object().unwrap() {
        let post = &webhook["post"];
        assert!(text(&post["description"]).contains("Verify the signature"), "{name}");
        let headers: Vec<_> = post["parameters"].as_array().unwrap().iter().map(|header| &header["name"]).collect();
        assert_eq!(headers, ["X-Service-Signature", "webhook-id", "webhook-timestamp", "webhook-signature"], "{name}");
    }
}

fn text_of(value: &Value, member: &str) -> String {
    text(&value[member])
}

#[tokio::test]
async fn the_reference_shows_every_operation_and_loads_nothing() {
    let world = World::sandbox().await;
    for operators in [false, true] {
        let document = read(&world, operators, "/openapi.json").await.body;
        let index = read(&world, operators, "/reference").await;
        let policy = index.header("content-security-policy").unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
        assert_eq!(index.header("content-type"), Some("text/html; charset=utf-8"));
        for (path, item) in document["paths"].as_object().unwrap() {
            for operation in item.as_object().unwrap().values().filter(|member| member["operationId"].is_string()) {
                let (id, tag) = (text_of(operation, "operationId"), text(&operation["tags"][0]));
                let resource = format!("/reference/{}", tag.to_lowercase().replace(' ', "-"));
                assert!(index.text.contains(&format!("href=\"{resource}#{id}\"")), "{id} in the index");
                let page = read(&world, operators, &resource).await;
                let shown = [format!("<section id=\"{id}\">"), format!("href=\"#{id}\""), path.clone()];
                assert!(shown.iter().all(|part| page.text.contains(part)), "{id} in {resource}");
                // That of "try it" alone, which calls this listener: in a sandbox, for merchants.
                let text = page.text.replacen("<script src=\"/reference.js\" defer></script>", "", 1);
                assert_eq!(text == page.text, operators, "{resource}");
                loads_nothing(&text);
            }
        }
        loads_nothing(&index.text);
        let style = read(&world, operators, "/reference.css").await;
        assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
        assert!(!style.text.contains("url(") && !style.text.contains("@import"));
    }
}

fn loads_nothing(page: &str) {
    for loading in ["<script", "<img", "<iframe", "style=", "url(", "@import"] {
        assert!(!page.contains(loading), "{loading}");
    }
    let loaded: Vec<&str> = page.split("<link ").skip(1).collect();
    assert!(loaded.len() == 1 && loaded[0].starts_with("rel=\"stylesheet\" href=\"/reference.css\""), "{loaded:?}");
}
