//! Choices of fields in bodies: of some fields exactly one is sent, such as `credit_card`, `card`
//! and `card_token`, or `amount` and `percent` of a split. Such a body is a choice of schemas, each
//! of which requires one of the fields and takes the others as null alone. Types of generated
//! clients then refuse a charge without a card, with two cards, and a split without a share.

use serde_json::{Value, json};

use super::reference;

/// A field of a choice.
#[derive(PartialEq)]
struct Choice {
    field: &'static str,
    /// End of the name of its schema, and what the description says of it.
    end: &'static str,
    said: &'static str,
    /// A field that it requires beside it.
    beside: Option<&'static str>,
    /// A field that only it takes.
    own: Option<&'static str>,
}

/// A stored card may leave the customer out, and takes the code of the card beside it.
const CARDS: [Choice; 3] = [
    Choice { field: "credit_card", end: "", said: "", beside: Some("customer"), own: None },
    Choice { field: "card", end: "WithCard", said: "With the card as `card`.", beside: Some("customer"), own: None },
    Choice { field: "card_token", end: "WithToken", said: "With a stored card.", beside: None, own: Some("cvv") },
];

const SHARES: [Choice; 2] = [
    Choice { field: "amount", end: "", said: "", beside: None, own: None },
    Choice { field: "percent", end: "WithPercent", said: "With a percent.", beside: None, own: None },
];

/// Writes each body that has a choice as one; the first schema keeps the name of the whole.
pub(super) fn write_choices(document: &mut Value) {
    for (name, schema) in document["components"]["schemas"].as_object().cloned().unwrap_or_default() {
        let has = |field: &str| schema["properties"].get(field).is_some();
        let choices = match &*name {
            "SplitRequest" => &SHARES[..],
            _ if has("credit_card") && has("card") => &CARDS,
            _ => continue,
        };
        let mut variants = Vec::new();
        for choice in choices.iter().filter(|choice| has(choice.field)) {
            let name = format!("{name}{}", choice.end);
            document["components"]["schemas"][&name] = variant(&schema, choices, choice);
            variants.push(reference(&name));
        }
        refer_to_each(document, &reference(&name), &variants);
    }
}

/// Writes the variants in the place of the whole, in all that refers to it.
fn refer_to_each(value: &mut Value, whole: &Value, variants: &[Value]) {
    let any = value.get_mut("anyOf").and_then(Value::as_array_mut);
    if let Some(any) = any.filter(|any| any.contains(whole)) {
        any.retain(|choice| choice != whole);
        any.extend_from_slice(variants);
    }
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| refer_to_each(element, whole, variants)),
        Value::Object(members) => {
            for member in members.values_mut() {
                if member == whole {
                    *member = json!({"oneOf": variants});
                } else {
                    refer_to_each(member, whole, variants);
                }
            }
        }
        _ => {}
    }
}

/// The schema with this field required, and those of the other choices null.
fn variant(whole: &Value, choices: &[Choice], chosen: &Choice) -> Value {
    let mut schema = whole.clone();
    let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    for name in [chosen.field].into_iter().chain(chosen.beside) {
        schema["properties"][name] = not_null(&schema["properties"][name]);
        required.push(name.into());
    }
    required.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
    required.dedup();
    // True anyway. Redocly takes two variants for one, unless the schema has a constraint too.
    schema["minProperties"] = required.len().into();
    schema["required"] = required.into();
    let others = choices.iter().filter(|choice| *choice != chosen);
    for name in others.flat_map(|choice| [choice.field].into_iter().chain(choice.own)) {
        if let Some(field) = schema["properties"].get_mut(name) {
            *field = json!({"type": "null", "description": format!("Not with `{}`.", chosen.field)});
        }
    }
    if !chosen.said.is_empty() {
        let described = schema["description"].as_str().unwrap_or_default();
        schema["description"] = format!("{described} {}", chosen.said).trim_start().into();
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
