//! One object of each kind that a path or a body can name. Whoever adds a route whose kind is not here adds a maker: the tests that
//! go through all routes can't do without.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::description::Operation;
use crate::world::*;

impl Operation {
    /// What its path names: the segment before the parameter. None when it names nothing.
    pub(crate) fn kind(&self) -> Option<&str> {
        let (before, _) = self.path.split_once("/{")?;
        before.rsplit('/').next()
    }

    /// Its path, naming an object.
    pub(crate) fn path_of(&self, id: &str) -> String {
        match (self.path.find('{'), self.path.find('}')) {
            (Some(from), Some(to)) => format!("{}{id}{}", &self.path[..from], &self.path[to + 1..]),
            _ => self.path.clone(),
        }
    }

    pub(crate) fn is_of_operators(&self) -> bool {
        self.path.starts_with("/ops/")
    }

    pub(crate) fn needs_credential(&self) -> bool {
        self.described["security"].as_array().is_some_and(|ways| !ways.is_empty())
    }

    /// The example of its body, with the ids of objects that exist; none when it takes none.
    pub(crate) async fn body_for(&self, merchant: &Merchant<'_>) -> Option<Value> {
        let mut example = self.described["requestBody"]["content"]["application/json"].get("example")?.clone();
        // In a registration the document of the example is a new one each time.
        if let Some(document) = example.pointer_mut("/register_information/document_number") {
            *document = json!(cpf(next()));
        }
        name_objects(merchant, &mut example).await;
        Some(example)
    }
}

/// Makes an object that an operation's path can name, in a state in which the operation can be carried out; gives its id.
pub(crate) async fn make(merchant: &Merchant<'_>, operation: &Operation) -> String {
    let kind = operation.kind().unwrap();
    match kind {
        "charges" | "pix" => make_pix(merchant).await,
        "sub-recipients" => merchant.draft("Ana Prado", next()).await,
        "merchants" => merchant.id.clone(),
        "api-keys" => merchant.key_id.clone(),
        "ledgers" => merchant.ledger(),
        _ => panic!("{} {}: add a maker of {kind} here", operation.method, operation.path),
    }
}

async fn make_pix(merchant: &Merchant<'_>) -> String {
    text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"])
}

/// Puts ids of objects that exist where an example names some.
async fn name_objects(merchant: &Merchant<'_>, example: &mut Value) {
    match example {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "sub_recipient_id" => *value = json!(merchant.recipient("Rui Prado", next()).await),
                    "txid" | "payment_id" => *value = json!(make_pix(merchant).await),
                    name => {
                        let names_another = name.ends_with("_id") || name.ends_with("_ids") || name.ends_with("_token");
                        assert!(!names_another, "add a maker for {name} of a body here");
                        Box::pin(name_objects(merchant, value)).await;
                    }
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                Box::pin(name_objects(merchant, element)).await;
            }
        }
        _ => {}
    }
}

/// A number that no other object was made with.
fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(500_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
