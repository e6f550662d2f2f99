//! Webhook events in the OpenAPI description: the bodies, a schema for each kind of object, and the
//! requests that receivers get, a `webhooks` entry for each event.

use ledger::webhook_events::WebhookEventKind;
use serde_json::{Map, Value, json};
use strum::{EnumMessage as _, VariantArray as _};

use super::{Direction, capitalized, example, reference, word};

/// Writes the bodies of events, and the section `webhooks`.
pub(super) fn write(document: &mut Value) {
    type_events(&mut document["components"]["schemas"]);
    let schemas = &document["components"]["schemas"];
    let mapping = &schemas[WEBHOOK]["discriminator"]["mapping"];
    let any = webhook("receive_event", "Any event", ANY_EVENT, body_of(&reference(WEBHOOK), schemas, None));
    let mut webhooks = Map::from_iter([("event".to_owned(), any)]);
    for kind in WebhookEventKind::VARIANTS {
        let name = kind.name();
        let words: Vec<_> = name.split(['.', '_']).map(word).collect();
        let id = format!("receive_{}", name.replace('.', "_"));
        let body = body_of(&json!({"$ref": mapping[name]}), schemas, Some(name));
        let sentence = kind.get_documentation().unwrap_or_default();
        webhooks.insert(name.to_owned(), webhook(&id, &capitalized(&words.join(" ")), sentence, body));
    }
    document["webhooks"] = Value::Object(webhooks);
}

const WEBHOOK: &str = "WebhookBody";

const ANY_EVENT: &str = "Every event of the account is sent to the address of every live API key that has one.";

const VERIFY: &str = "\
Verify the signature over the raw bytes of the body before reading them, with either header: `X-Service-Signature` is the HMAC-SHA256 in \
hexadecimal digits, keyed with the whole text of the API key's webhook secret; `webhook-signature` is that of the Standard Webhooks \
specification. Delivery is at least once: `webhook-id` is the same on every try.";

/// The body of a webhook: its schema, and an example that has the name of its event.
fn body_of(schema: &Value, schemas: &Value, event: Option<&str>) -> Value {
    let mut example = example(schema, schemas, Direction::Response);
    if let Some(event) = event {
        example["event"] = json!(event);
    }
    json!({"schema": schema, "example": example})
}

/// The request with an event.
fn webhook(id: &str, summary: &str, sentence: &str, body: Value) -> Value {
    let header = |name: &str, description: &str, example: &str| {
        json!({
            "name": name, "in": "header", "required": true, "description": description, "example": example,
            "schema": {"type": "string"},
        })
    };
    json!({"post": {
        "operationId": id,
        "summary": summary,
        "description": format!("{sentence}\n\n{VERIFY}"),
        "security": [],
        "parameters": [
            header("X-Service-Signature", "HMAC-SHA256 of the raw body, in lower-case hexadecimal digits.",
                "9e3fcbc2bb2b1a4ac1d1ad5fb2ea9d8dd3f5ea3b9e6e4f6e9b7a6e0c1d2f3a4b"),
            header("webhook-id", "The event's id.", super::A_UUID),
            header("webhook-timestamp", "When the try was made, in seconds since 1970.", "1782907200"),
            header("webhook-signature", "One or more of `v1,` and a base64 HMAC-SHA256, with spaces between; two for 24 hours after a new secret.",
                "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ],
        "requestBody": {"required": true, "content": {"application/json": body}},
        "responses": {"2XX": {"description": "It was received; anything else is tried again, at most ten times."}},
    }})
}

/// Writes the bodies of events as a choice by its name: `ChargeEvent`, `RefundEvent`, … The
/// event's name begins with the name of the member that has the thing.
fn type_events(schemas: &mut Value) {
    let things = schemas.as_object_mut().and_then(|schemas| schemas.remove("Things")).unwrap_or_default();
    for (name, suffix) in [(WEBHOOK, "Webhook"), ("Event", "Event")] {
        let body = schemas[name].take();
        let mut choices: Vec<(String, Value)> = Vec::new();
        let mut mapping = Map::new();
        for kind in WebhookEventKind::VARIANTS {
            let named = kind.name();
            let event = json!(named);
            let (thing, what) = named.split_once('.').unwrap_or_default();
            let beside = beside(thing, what);
            let kind = format!("{}{}{suffix}", capitalized(thing), capitalized(beside.unwrap_or_default()));
            mapping.insert(named.to_owned(), reference(&kind)["$ref"].clone());
            match choices.iter_mut().find(|(name, _)| *name == kind) {
                Some((_, choice)) => {
                    choice["properties"]["event"]["enum"]
                        .as_array_mut()
                        .into_iter()
                        .for_each(|all| all.push(event.clone()));
                }
                None => {
                    let members: Vec<_> = std::iter::once(thing).chain(beside).collect();
                    choices.push((kind, event_schema(&body, &things, &event, &members)));
                }
            }
        }
        let references: Vec<_> = choices.iter().map(|(kind, _)| reference(kind)).collect();
        schemas[name] = json!({
            "description": body["description"], "oneOf": references,
            "discriminator": {"propertyName": "event", "mapping": mapping},
        });
        for (kind, choice) in choices {
            schemas[kind] = choice;
        }
    }
}

/// What an event carries beside its thing: the charge that was created or that has a lower
/// `refunded_amount` again, or the debt.
fn beside(thing: &str, what: &str) -> Option<&'static str> {
    match (thing, what) {
        ("subscription", "charge_created") | ("refund", "failed") => Some("charge"),
        ("recipient", "debt_opened" | "debt_paid") => Some("debt"),
        _ => None,
    }
}

/// The body of one event: the fields of every event, and the objects that this one can carry.
fn event_schema(body: &Value, things: &Value, event: &Value, members: &[&str]) -> Value {
    let mut schema = body.clone();
    schema.as_object_mut().map(|schema| schema.remove("example"));
    for (thing, _) in things["properties"].as_object().into_iter().flatten() {
        if !members.contains(&thing.as_str()) {
            schema["properties"].as_object_mut().map(|properties| properties.remove(thing));
        }
    }
    let own = members.iter().map(|member| json!(member));
    schema["required"].as_array_mut().into_iter().for_each(|required| required.extend(own.clone()));
    schema["properties"]["event"]["enum"] = json!([event]);
    schema["properties"]["event"]["example"] = event.clone();
    schema
}
