//! Every state machine of the interface as a matrix: for every state and every command, the
//! documented answer. The cells come from the cross product of states and commands; a cell that the
//! table lacks fails, and so does a refusal that leaves a trace.

use reqwest::Method;
use serde_json::{Value, json};

use crate::second_node;
use crate::world::*;

/// The answers, one machine after the other: the first line names the states, each further one a
/// command and its answer in each state.
const MATRIX: &str = "
card          | pending | CONCLUIDA | RECUSADA
get           | 200     | 200       | 200
look up       | 200     | 200       | 200
cancel        | 409     | 409       | 409
pay           | 404     | 404       | 404
refund        | 422     | 201       | 422
dispute       | 422     | 201       | 422

pix           | pending | CONCLUIDA | cancelled
get           | 200     | 200       | 200
look up       | 200     | 200       | 200
cancel        | 200     | 409       | 409
pay           | 200     | 409       | late
refund        | 422     | 201       | 422
dispute       | 422     | 201       | 422

split         | announced | pending pix paid | pending card | available card | anticipated | pinned | paid
anticipate    | 409       | 409              | 200          | 409            | 409         | 409    | 409
simulate      | 409       | 409              | 200          | 409            | 409         | 409    | 409

recipient     | draft | pending | active | rejected
get           | 200   | 200     | 200    | 200
patch         | 200   | 200     | 200    | 409
register      | 200   | 200     | 200    | 200
split         | 400   | 400     | 201    | 400
withdraw      | 422   | 422     | 422    | 422
approve       | 200   | 200     | 409    | 409
reject        | 200   | 200     | 409    | 409

withdrawal    | pending | approved | rejected
withdraw      | 409     | 422      | 201
approve       | 200     | 409      | 409
reject        | 200     | 409      | 409

cashout       | in_processing | processed | failed | refused by the institution
get           | 200           | 200       | 200    | 200
again         | 409           | 409       | 409    | 409

refund        | pending | approved | rejected
get           | 200     | 200      | 200
approve       | 200     | 409      | 409
reject        | 200     | 409      | 409

dispute       | open | accepted | released
accept        | 200  | 409      | 409
release       | 200  | 409      | 409

subscription  | pending | active | past due | paused | cancelled | completed
get           | 200     | 200    | 200      | 200    | 200       | 200
pause         | 200     | 200    | 200      | 200    | 409       | 409
resume        | 200     | 200    | 200      | 200    | 409       | 409
cancel        | 200     | 200    | 200      | 200    | 200       | 409

plan          | enabled | disabled
get           | 200     | 200
delete        | 200     | 200
subscribe     | 201     | 409
create        | 409     | 409

key           | live | revoked
call          | 200  | 401
revoke        | 200  | 200
";

/// The answer to a payment that came too late.
const LATE: u16 = 0;

/// A machine of the table: its name, its states, and its commands with their answers.
struct Machine {
    name: &'static str,
    states: Vec<&'static str>,
    commands: Vec<(&'static str, Vec<u16>)>,
}

fn machines() -> Vec<Machine> {
    let cells = |line: &'static str| -> Vec<&'static str> { line.split('|').map(str::trim).collect() };
    let tables = MATRIX.trim().split("\n\n").map(|table| {
        let mut lines = table.lines().map(cells);
        let mut head = lines.next().unwrap();
        let name = head.remove(0);
        let commands = lines.map(|mut row| {
            let command = row.remove(0);
            assert_eq!(row.len(), head.len(), "{name}, {command}: a cell is missing");
            // A payment that comes too late is refused as well, but leaves a trace in the
            // platform's books: the money goes back.
            (command, row.into_iter().map(|cell| if cell == "late" { LATE } else { cell.parse().unwrap() }).collect())
        });
        let commands = commands.collect();
        Machine { name, states: head, commands }
    });
    tables.collect()
}

/// The ids and bodies that a command needs on a thing in a state.
struct Thing<'w> {
    merchant: &'w Merchant<'w>,
    recipient: String,
    id: String,
    body: Value,
}

async fn paid_with_split(merchant: &Merchant<'_>, recipient: &str) -> String {
    text(&merchant.paid_pix(&with_splits(pix("100.00"), &[(recipient, 1_000)])).await["txid"])
}

fn refund_of(txid: &str) -> Value {
    json!({"payment_id": txid, "amount": 100})
}

async fn decide(world: &World, path: String, verb: &str) -> Answer {
    let body = if verb == "reject" { json!({"notes": "Dados divergentes"}) } else { json!({}) };
    world.ops_post(&format!("{path}/{verb}"), &body).await
}

/// Makes a thing of a machine, in a state.
async fn make<'w>(world: &'w World, merchant: &'w Merchant<'w>, machine: &str, state: &str) -> Thing<'w> {
    let recipient = merchant.recipient("Ana", 1).await;
    let mut thing = Thing { merchant, recipient: recipient.clone(), id: String::new(), body: Value::Null };
    match machine {
        "card" => {
            let number = match state {
                "pending" => SILENT,
                "CONCLUIDA" => APPROVED,
                _ => REFUSED,
            };
            thing.id = text(&merchant.post("/api/card", &card(10_000, number)).await.body["txid"]);
        }
        "pix" => {
            thing.id = text(&merchant.post("/api/pix", &pix("100.00")).await.expect(201)["txid"]);
            match state {
                "CONCLUIDA" => drop(merchant.pay(&thing.id).await.expect(200)),
                "cancelled" => {
                    drop(merchant.post(&format!("/api/charges/{}/cancel", thing.id), &json!({})).await.expect(200))
                }
                _ => {}
            }
        }
        "split" => {
            let txid = match state {
                "announced" => {
                    let body = with_splits(pix("100.00"), &[(&recipient, 1_000)]);
                    text(&merchant.post("/api/pix", &body).await.expect(201)["txid"])
                }
                "pending pix paid" | "pinned" | "paid" => paid_with_split(merchant, &recipient).await,
                _ => {
                    let body = with_splits(card(10_000, APPROVED), &[(&recipient, 1_000)]);
                    text(&merchant.post("/api/card", &body).await.expect(201)["txid"])
                }
            };
            thing.id = format!("{txid}-0");
            let body = json!({"split_ids": [thing.id], "target_days": 2});
            match state {
                "available card" => drop(world.advance(31 * DAY).await),
                "anticipated" => {
                    let path = format!("/api/dashboard/sub-recipients/{recipient}/anticipate");
                    merchant.post(&path, &body).await.expect(200);
                }
                "pinned" | "paid" => {
                    let withdrawal = withdraw(merchant, &recipient).await.expect(201);
                    if state == "paid" {
                        let path = format!("/ops/withdrawals/{}", text(&withdrawal["withdrawal_id"]));
                        decide(world, path, "approve").await.expect(200);
                    }
                }
                _ => {}
            }
            thing.body = body;
        }
        "recipient" => {
            thing.body = individual("Rui", &cpf(2));
            thing.id = merchant.draft("Rui", 2).await;
            match state {
                "draft" => {}
                "pending" => drop(world.advance(0).await),
                "active" => {
                    drop(decide(world, format!("/ops/sub-recipients/{}", thing.id), "approve").await.expect(200))
                }
                _ => drop(decide(world, format!("/ops/sub-recipients/{}", thing.id), "reject").await.expect(200)),
            }
        }
        "withdrawal" => {
            paid_with_split(merchant, &recipient).await;
            thing.id = text(&withdraw(merchant, &recipient).await.expect(201)["withdrawal_id"]);
            let path = format!("/ops/withdrawals/{}", thing.id);
            match state {
                "approved" => drop(decide(world, path, "approve").await.expect(200)),
                "rejected" => drop(decide(world, path, "reject").await.expect(200)),
                _ => {}
            }
        }
        "cashout" => {
            merchant.paid_pix(&pix("100.00")).await;
            let key = match state {
                "in_processing" => "timeout@example.com",
                "processed" => "ok@example.com",
                "failed" => "fail@example.com",
                _ => "down@example.com",
            };
            let transaction = uuid::Uuid::from_u128(0xC0FFEE).to_string();
            thing.body = json!({"amount": 1_000, "pix_key": key, "pix_key_type": "email",
                "merchant_transaction_id": transaction});
            thing.id = text(&merchant.post("/api/cashout", &thing.body).await.body["id"]);
            world.advance(0).await;
        }
        "refund" => {
            let txid = paid_with_split(merchant, &recipient).await;
            thing.id = text(&merchant.post("/api/refunds", &refund_of(&txid)).await.expect(201)["id"]);
            let path = format!("/ops/refunds/{}", thing.id);
            match state {
                "approved" => drop(decide(world, path, "approve").await.expect(200)),
                "rejected" => drop(decide(world, path, "reject").await.expect(200)),
                _ => {}
            }
        }
        "dispute" => {
            let txid = paid_with_split(merchant, &recipient).await;
            let body = json!({"amount": 100, "kind": "med", "reason": "Não reconhecida"});
            let dispute = world.ops_post(&format!("/ops/charges/{txid}/disputes"), &body).await.expect(201);
            thing.id = text(&dispute["id"]);
            let path = format!("/ops/disputes/{}", thing.id);
            match state {
                "accepted" => drop(decide(world, path, "accept").await.expect(200)),
                "released" => drop(decide(world, path, "release").await.expect(200)),
                _ => {}
            }
        }
        "subscription" => {
            let total = if state == "completed" { 1 } else { 12 };
            let grace = u8::from(state == "pending");
            let plan = json!({"tag": "mensal", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": total,
                "initialGraceCycles": grace});
            let plan = text(&merchant.post("/api/recurrency/plans", &plan).await.expect(201)["id"]);
            let mut body = json!({"plan_id": plan, "customer": card(1, APPROVED)["customer"], "payment_method": "pix"});
            if state != "past due" {
                let stored = merchant.post("/api/cards", &without(&card(1, APPROVED), "/amount")).await.expect(201);
                body["payment_method"] = json!("credit_card");
                body["card_token"] = stored["card_token"].clone();
            }
            thing.id = text(&merchant.post("/api/recurrency/subscriptions", &body).await.expect(201)["id"]);
            world.advance(if state == "past due" { 32 * DAY } else { 0 }).await;
            let path = format!("/api/recurrency/subscriptions/{}", thing.id);
            match state {
                "paused" => drop(merchant.post(&format!("{path}/pause"), &json!({})).await.expect(200)),
                "cancelled" => drop(merchant.post(&format!("{path}/cancel"), &json!({})).await.expect(200)),
                _ => {}
            }
            let status = merchant.get(&path).await.expect(200)["status"].clone();
            assert_eq!(status, state.replace(' ', "_"), "the state that was to be made");
        }
        "plan" => {
            thing.body = json!({"tag": "mensal", "amount": 4_990, "billingCycle": "MONTHLY", "totalBillingCycles": 12});
            thing.id = text(&merchant.post("/api/recurrency/plans", &thing.body).await.expect(201)["id"]);
            if state == "disabled" {
                send(merchant, Method::DELETE, &format!("/api/recurrency/plans/{}", thing.id)).await.expect(200);
            }
        }
        "key" => {
            let path = format!("/ops/merchants/{}/api-keys", merchant.id);
            let key = world.ops_post(&path, &json!({})).await.expect(201);
            thing.id = text(&key["id"]);
            thing.body = key["api_key"].clone();
            if state == "revoked" {
                revoke(world, &thing.id).await.expect(200);
            }
        }
        other => panic!("nothing makes a {other}"),
    }
    thing
}

async fn send(merchant: &Merchant<'_>, method: Method, path: &str) -> Answer {
    merchant.world.send(method, path, &[("token", &merchant.key)], "").await
}

async fn revoke(world: &World, id: &str) -> Answer {
    world.ops_send(Method::DELETE, &format!("/ops/api-keys/{id}"), &[], String::new()).await
}

async fn withdraw(merchant: &Merchant<'_>, recipient: &str) -> Answer {
    merchant.post(&format!("/api/dashboard/sub-recipients/{recipient}/withdraw"), &json!({})).await
}

/// Gives a thing a command.
async fn send_command(world: &World, machine: &str, command: &str, thing: &Thing<'_>) -> Answer {
    let Thing { merchant, recipient, id, body } = thing;
    match (machine, command) {
        ("card" | "pix", "get") => merchant.get(&format!("/api/charges/{id}")).await,
        ("card" | "pix", "look up") => merchant.post("/api/pix", &json!({"txid": id})).await,
        ("card" | "pix", "cancel") => merchant.post(&format!("/api/charges/{id}/cancel"), &json!({})).await,
        ("card" | "pix", "pay") => merchant.pay(id).await,
        ("card" | "pix", "refund") => merchant.post("/api/refunds", &refund_of(id)).await,
        ("card" | "pix", "dispute") => {
            let kind = if machine == "card" { "chargeback" } else { "med" };
            let body = json!({"amount": 100, "kind": kind, "reason": "Não reconhecida"});
            world.ops_post(&format!("/ops/charges/{id}/disputes"), &body).await
        }
        ("split", "anticipate") => {
            merchant.post(&format!("/api/dashboard/sub-recipients/{recipient}/anticipate"), body).await
        }
        ("split", "simulate") => {
            merchant.post(&format!("/api/dashboard/sub-recipients/{recipient}/anticipate/simulate"), body).await
        }
        ("recipient", "get") => merchant.get(&format!("/api/sub-recipients/{id}")).await,
        ("recipient", "patch") => {
            let body = json!({"register_information": {"email": "rui@example.com"}}).to_string();
            let headers = [("token", merchant.key.as_str()), ("content-type", "application/json")];
            world.send(Method::PATCH, &format!("/api/sub-recipients/{id}"), &headers, body).await
        }
        ("recipient", "register") => merchant.post("/api/sub-recipients", body).await,
        ("recipient", "split") => merchant.post("/api/pix", &with_splits(pix("100.00"), &[(id, 1_000)])).await,
        ("recipient", "withdraw") => withdraw(merchant, id).await,
        ("withdrawal", "withdraw") => withdraw(merchant, recipient).await,
        ("recipient", verb) => decide(world, format!("/ops/sub-recipients/{id}"), verb).await,
        ("withdrawal", verb) => decide(world, format!("/ops/withdrawals/{id}"), verb).await,
        ("cashout", "get") => merchant.get(&format!("/api/cashout/{id}")).await,
        ("cashout", "again") => merchant.post("/api/cashout", body).await,
        ("refund", "get") => merchant.get(&format!("/api/refunds/{id}")).await,
        ("refund", verb) => decide(world, format!("/ops/refunds/{id}"), verb).await,
        ("dispute", verb) => decide(world, format!("/ops/disputes/{id}"), verb).await,
        ("subscription", "get") => merchant.get(&format!("/api/recurrency/subscriptions/{id}")).await,
        ("subscription", verb) => {
            merchant.post(&format!("/api/recurrency/subscriptions/{id}/{verb}"), &json!({})).await
        }
        ("plan", "get") => merchant.get(&format!("/api/recurrency/plans/{id}")).await,
        ("plan", "delete") => send(merchant, Method::DELETE, &format!("/api/recurrency/plans/{id}")).await,
        ("plan", "subscribe") => {
            let customer = json!({"name": "João", "email": "joao@example.com", "document": "12345678909"});
            let body = json!({"plan_id": id, "customer": customer, "payment_method": "pix"});
            merchant.post("/api/recurrency/subscriptions", &body).await
        }
        ("plan", "create") => merchant.post("/api/recurrency/plans", body).await,
        ("key", "call") => world.send(Method::GET, "/api/balance", &[("token", &text(body))], "").await,
        ("key", "revoke") => revoke(world, id).await,
        other => panic!("nobody knows {other:?}"),
    }
}

/// Shows: 3.1.pending, 3.1.CONCLUIDA, 3.1.RECUSADA, 3.1.cancelled, 3.2.created, 3.2.processed,
/// 3.2.failed, 3.4.draft, 3.4.pending, 3.4.active, 3.4.rejected, 3.5.requested, 3.5.approved,
/// 3.5.rejected, 3.5.one-pending, 3.6.requested, 3.6.approved, 3.6.rejected, 3.7.created,
/// 3.7.disabled, 8.pending-withdrawals.
#[tokio::test]
async fn every_state_answers_every_command_as_documented() {
    // Each cell has a server of its own. Nodes are shared by the cells of a machine, each of which
    // has a merchant of its own, so that they are at both.
    for machine in machines() {
        let mut nodes = None;
        for (place, state) in machine.states.iter().enumerate() {
            for (command, answers) in &machine.commands {
                let world = match nodes.take() {
                    Some(nodes) => nodes,
                    None => World::sandbox().await,
                };
                holds(&world, machine.name, state, command, answers[place]).await;
                nodes = second_node::are_nodes().then_some(world);
            }
        }
    }
}

/// A command has its documented answer in a state.
async fn holds(world: &World, machine: &str, state: &str, command: &str, documented: u16) {
    let merchant = world.merchant().await;
    let thing = make(world, &merchant, machine, state).await;
    let (before, balance) = (world.trace(&[&merchant]).await, merchant.balance().await);
    let answer = send_command(world, machine, command, &thing).await;
    let where_ = format!("{machine} in {state}, {command}: {}", answer.text);
    let expected = if documented == LATE { 409 } else { documented };
    assert_eq!(answer.status, expected, "{where_}");
    if answer.status >= 400 {
        assert_eq!(merchant.balance().await, balance, "{where_}");
    }
    if answer.status >= 400 && documented != LATE {
        assert_eq!(world.trace(&[&merchant]).await, before, "{where_}");
    }
    if answer.status >= 400 {
        assert_eq!(answer.headers["content-type"], "application/problem+json", "{where_}");
    }
    world.check_books().await;
}
