//! Makers: one object of each kind that a path or a body can name. A route with a new kind needs a
//! new maker: the tests that go through all routes fail without it.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::description::Operation;
use crate::world::*;

impl Operation {
    /// What its path names: the segment before the parameter. `None` if it names nothing.
    pub(crate) fn kind(&self) -> Option<&str> {
        let (before, _) = self.path.split_once("/{")?;
        before.rsplit('/').next()
    }

    /// Its path, naming an object. A second parameter is that of its example.
    pub(crate) fn path_of(&self, id: &str) -> String {
        let Some((before, rest)) = self.path.split_once('{') else { return self.path.clone() };
        let (_, after) = rest.split_once('}').unwrap();
        let in_path = self.described["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "path");
        let after = in_path.fold(after.to_owned(), |after, one| {
            let name = format!("{{{}}}", one["name"].as_str().unwrap());
            after.replace(&name, one["example"].as_str().unwrap_or_default())
        });
        format!("{before}{id}{after}")
    }

    /// The query with the examples of the parameters that it demands.
    pub(crate) fn demanded_query(&self) -> String {
        let parameters = self.described["parameters"].as_array().into_iter().flatten();
        let demanded = parameters.filter(|one| one["in"] == "query" && one["required"] == true);
        let pairs: Vec<_> = demanded
            .map(|one| {
                let example = one["example"].as_str().map_or_else(|| one["example"].to_string(), str::to_owned);
                format!("{}={example}", one["name"].as_str().unwrap())
            })
            .collect();
        if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
    }

    pub(crate) fn is_of_operators(&self) -> bool {
        self.path.starts_with("/ops/")
    }

    pub(crate) fn needs_credential(&self) -> bool {
        self.described["security"].as_array().is_some_and(|ways| !ways.is_empty())
    }

    /// The example of the CSV file that it takes; `None` if it takes none.
    pub(crate) fn example_file(&self) -> Option<String> {
        self.described["requestBody"]["content"]["text/csv"].get("example").map(text)
    }

    /// The example of its body, with the ids of objects that exist; `None` if it takes none.
    /// `named` is what the path names.
    pub(crate) async fn body_for(&self, merchant: &Merchant<'_>, named: &str) -> Option<Value> {
        let mut example = self.described["requestBody"]["content"]["application/json"].get("example")?.clone();
        // In a registration the document of the example is a new one each time.
        if let Some(document) = example.pointer_mut("/register_information/document_number") {
            *document = json!(cpf(next()));
        }
        name_objects(merchant, named, &mut example).await;
        Some(example)
    }
}

/// Makes an object that an operation's path can name, in a state in which the operation can be
/// carried out; gives its id.
pub(crate) async fn make(merchant: &Merchant<'_>, operation: &Operation) -> String {
    let path = operation.path.as_str();
    let id = match operation.kind().unwrap() {
        "cards" => store_card(merchant).await,
        "notes" => paid_pix(merchant).await,
        "charges" if path.ends_with("/{key}") => {
            let txid = make_pix(merchant).await;
            let linked = format!("/api/charges/{txid}/fiscal-documents");
            let document = json!({"key": operation.path_of("").rsplit('/').next()});
            merchant.post(&linked, &document).await.expect(201);
            txid
        }
        "charges" if operation.is_of_operators() => paid_pix(merchant).await,
        "charges" | "pix" => make_pix(merchant).await,
        "sub-recipients" if path.ends_with("/withdraw") => with_money(merchant).await,
        "sub-recipients" if path.contains("/anticipate") => merchant.recipient("Ana Prado", next()).await,
        "sub-recipients" => merchant.draft("Ana Prado", next()).await,
        "cashout" => {
            paid_pix(merchant).await;
            let body = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
            text(&merchant.post("/api/cashout", &body).await.expect(201)["id"])
        }
        "rail-items" => {
            paid_pix(merchant).await;
            let body = json!({"amount": 3_000, "pix_key": "ana.prado@example.com", "pix_key_type": "email"});
            let id = text(&merchant.post("/api/cashout", &body).await.expect(201)["id"]);
            merchant.world.advance(0).await;
            id
        }
        "withdrawals" | "withdraw" => {
            let recipient = with_money(merchant).await;
            text(&merchant.withdraw(&recipient).await.expect(201)["withdrawal_id"])
        }
        "refunds" | "queue" => {
            let body = json!({"payment_id": paid_pix(merchant).await, "amount": 3_000});
            text(&merchant.post("/api/refunds", &body).await.expect(201)["id"])
        }
        "disputes" => {
            let path = format!("/ops/charges/{}/disputes", paid_pix(merchant).await);
            let body = json!({"amount": 3_000, "kind": "med", "reason": "Golpe"});
            let id = text(&merchant.world.ops_post(&path, &body).await.expect(201)["id"]);
            if operation.path.ends_with("/reverse") {
                merchant.world.ops_post(&format!("/ops/disputes/{id}/accept"), &json!({})).await.expect(200);
            }
            id
        }
        // The first operator may approve what the second one asks for.
        "entries" => {
            let body = json!({"debit": "Assets:Bank:Own", "credit": "Assets:Bank:Pix", "amount": 100,
                "reason": "Tarifa", "reference": "EXTRATO-1", "reference_repeats": true});
            text(&merchant.world.second_ops_post("/ops/entries", &[], &body).await.expect(201)["id"])
        }
        // A request of the second operator, for a month before all that is sealed.
        "erasures" => {
            let body = json!({"through": format!("{}-{:02}", 1971 + next() % 40, 1 + next() % 12)});
            text(&merchant.world.second_ops_post("/ops/erasures", &[], &body).await.expect(202)["through"])
        }
        "periods" => format!("{}-{:02}", 1971 + next() % 50, 1 + next() % 12),
        "reconciliations" => {
            let file = format!(
                "batch,paid_on,charge,kind,id,gross,fee,net\nLOTE-{},2026-11-27,{},installment,1,1,0,1\n",
                next(),
                make_pix(merchant).await
            );
            text(&merchant.world.reconcile("text/csv", "", file).await.expect(200)["sha256"])
        }
        // A file that waits for another operator.
        "batches" => {
            let charge = paid_pix(merchant).await;
            let head = "batch,paid_on,charge,kind,id,gross,fee,net";
            let file = format!("{head}\nLOTE-{},2026-11-27,{charge},installment,1,1,0,1\n", next());
            let headers = [("authorization", bearer(SECOND_OPS_TOKEN)), ("content-type", "text/csv".to_owned())];
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            let sent = merchant.world.send(reqwest::Method::POST, "/ops/batches", &headers, file).await;
            text(&sent.expect(202)["digest"])
        }
        "exports" => {
            let made = merchant.world.ops_post("/ops/exports", &json!({"format": "csv"})).await.expect(202);
            merchant.world.finished("/ops/exports", &text(&made["id"]), OPS_TOKEN).await
        }
        "reports" if operation.is_of_operators() => "trial-balance".to_owned(),
        "lists" => "anticipations".to_owned(),
        "reports" => {
            let made = merchant.post("/api/reports", &json!({"format": "csv"})).await.expect(202);
            merchant.world.finished("/api/reports", &text(&made["id"]), &merchant.key).await
        }
        "plans" => make_plan(merchant).await,
        "subscriptions" => {
            let customer = card(1, APPROVED)["customer"].clone();
            let mut body = json!({"plan_id": make_plan(merchant).await, "customer": customer, "payment_method": "pix"});
            if operation.method == "PATCH" {
                body["payment_method"] = json!("credit_card");
                body["card_token"] = json!(store_card(merchant).await);
            }
            text(&merchant.post("/api/recurrency/subscriptions", &body).await.expect(201)["id"])
        }
        "events" | "webhooks" => {
            paid_pix(merchant).await;
            text(&items(&merchant.get("/api/events").await.expect(200))[0]["id"])
        }
        "merchants" => merchant.id.clone(),
        "recipients" => merchant.recipient("Ana Prado", next()).await,
        "endpoints" => {
            let path = format!("/ops/merchants/{}/api-keys", merchant.id);
            let body = json!({"webhook_url": "http://127.0.0.1:9/"});
            text(&merchant.world.ops_post(&path, &body).await.expect(201)["id"])
        }
        "api-keys" => merchant.key_id.clone(),
        "keys" => text(&merchant.post("/api/keys", &json!({})).await.expect(201)["id"]),
        "ledgers" => merchant.ledger(),
        "records" | "journal" => {
            paid_pix(merchant).await;
            record_in_path(merchant.world.last().await)
        }
        kind => panic!("{} {path}: add a maker of {kind} here", operation.method),
    };
    // What follows of it by itself has followed.
    merchant.world.advance(0).await;
    id
}

async fn make_pix(merchant: &Merchant<'_>) -> String {
    text(&merchant.post("/api/pix", &pix("80.00")).await.expect(201)["txid"])
}

async fn paid_pix(merchant: &Merchant<'_>) -> String {
    text(&merchant.paid_pix(&pix("80.00")).await["txid"])
}

/// A recipient who can withdraw something.
async fn with_money(merchant: &Merchant<'_>) -> String {
    let recipient = merchant.recipient("Ana Prado", next()).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&recipient, 1_000)])).await;
    recipient
}

/// A plan whose first charge is a month away.
async fn make_plan(merchant: &Merchant<'_>) -> String {
    let body = json!({"tag": format!("Plano {}", next()), "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 12,
        "initialGraceCycles": 1});
    text(&merchant.post("/api/recurrency/plans", &body).await.expect(201)["id"])
}

/// The id of a card split of a recipient that waits.
pub(crate) async fn make_card_split(merchant: &Merchant<'_>, recipient: &str) -> String {
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(recipient, 2_000)])).await.expect(201);
    text(&items(&merchant.statement(recipient).await)[0]["id"])
}

pub(crate) async fn store_card(merchant: &Merchant<'_>) -> String {
    let body = without(&card(1, APPROVED), "/amount");
    text(&merchant.post("/api/cards", &body).await.expect(201)["card_token"])
}

/// Puts ids of objects that exist where an example names some, and has money there for what it
/// sends away.
async fn name_objects(merchant: &Merchant<'_>, named: &str, example: &mut Value) {
    match example {
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "sub_recipient_id" => *value = json!(merchant.recipient("Rui Prado", next()).await),
                    "txid" => *value = json!(make_pix(merchant).await),
                    "payment_id" => *value = json!(paid_pix(merchant).await),
                    "plan_id" => *value = json!(make_plan(merchant).await),
                    "card_token" => *value = json!(store_card(merchant).await),
                    "split_ids" => *value = json!([make_card_split(merchant, named).await]),
                    "pix_key" => drop(paid_pix(merchant).await),
                    // The caller's own: the first of the account.
                    "merchant_transaction_id" => {}
                    name => {
                        let names_another = name.ends_with("_id") || name.ends_with("_ids") || name.ends_with("_token");
                        assert!(!names_another, "add a maker for {name} of a body here");
                        Box::pin(name_objects(merchant, named, value)).await;
                    }
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                Box::pin(name_objects(merchant, named, element)).await;
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
