//! Choice of a card in bodies: a card is given as `credit_card`, as `card`, or by the token of a
//! stored one, so a body is a choice of schemas that each require one of them. Types of generated
//! clients then refuse a charge without a card.

use serde_json::{Value, json};

use super::{members_mut, reference};

/// The fields that name a card, and the ends of the names of their schemas. `card_token` may leave
/// the customer out, and takes the code of the stored card beside it.
const CARDS: [(&str, &str); 3] = [("credit_card", ""), ("card", "WithCard"), ("card_token", "WithToken")];

/// Writes each body that takes a card as a choice; the first one keeps the name of the whole.
pub(super) fn write_choices(document: &mut Value) {
    for (name, schema) in document["components"]["schemas"].as_object().cloned().unwrap_or_default() {
        let fields = &schema["properties"];
        if fields.get("credit_card").is_none() || fields.get("card").is_none() {
            continue;
        }
        let mut variants = Vec::new();
        for (card, end) in CARDS.iter().filter(|(card, _)| fields.get(card).is_some()) {
            let name = format!("{name}{end}");
            document["components"]["schemas"][&name] = variant(&schema, card);
            variants.push(reference(&name));
        }
        refer_to_each(document, &reference(&name), &variants);
    }
}

/// Writes the variants in the place of the whole: in bodies of operations, and in other choices.
fn refer_to_each(document: &mut Value, whole: &Value, variants: &[Value]) {
    for operation in members_mut(&mut document["paths"]).flat_map(members_mut) {
        let Some(content) = operation.pointer_mut("/requestBody/content") else { continue };
        for media in members_mut(content).filter(|media| media["schema"] == *whole) {
            media["schema"] = json!({"oneOf": variants});
        }
    }
    for schema in members_mut(&mut document["components"]["schemas"]) {
        let any = schema.get_mut("anyOf").and_then(Value::as_array_mut);
        if let Some(any) = any.filter(|any| any.contains(whole)) {
            any.retain(|choice| choice != whole);
            any.extend_from_slice(variants);
        }
    }
}

/// The schema with this field in the place of the other cards, required.
fn variant(whole: &Value, card: &str) -> Value {
    let mut schema = whole.clone();
    let others = CARDS.iter().map(|(other, _)| *other).filter(|other| *other != card);
    let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    let (demanded, dropped) = match card {
        "card_token" => (vec![card], others.collect::<Vec<_>>()),
        _ => (vec![card, "customer"], others.chain(["cvv"]).collect()),
    };
    for name in demanded {
        schema["properties"][name] = not_null(&schema["properties"][name]);
        required.push(name.into());
    }
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.retain(|name, _| !dropped.contains(&name.as_str()));
    }
    required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    required.dedup();
    schema["required"] = required.into();
    if card != "credit_card" {
        let described = schema["description"].as_str().unwrap_or_default();
        let card = match card {
            "card" => "With the card as `card`.",
            _ => "With a stored card.",
        };
        schema["description"] = format!("{described} {card}").trim_start().into();
        schema.as_object_mut().map(|schema| schema.remove("example"));
    }
    schema
}

/// A field that may be null, as one that may not.
fn not_null(field: &Value) -> Value {
    let choice = field["oneOf"].as_array().and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"));
    let mut field = choice.unwrap_or(field).clone();
    if let Some(kind) = field["type"].as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned() {
        field["type"] = kind;
    }
    field
}
