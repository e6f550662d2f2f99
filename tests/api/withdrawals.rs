//! Withdrawals: asked for by the merchant, decided by an administrator, carried out by the
//! institution that sends money out.

use std::collections::VecDeque;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actors::rails::{Call, Destination, PayoutAnswer, PayoutRail, RailError, SendPayout};
use ledger::event::PayoutBank;
use ledger::record::RailStamp;
use ledger::time::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

fn path(recipient: &str) -> String {
    format!("/api/dashboard/sub-recipients/{recipient}/withdraw")
}

fn statuses(statement: &Value) -> Vec<&str> {
    items(statement).iter().map(|item| item["status"].as_str().unwrap()).collect()
}

/// Shows: 2.9.id, 2.9.amount_cents, 2.9.status, 2.9.created_at, 2.9.approved_at, 3.3.paid,
/// 3.5.requested, 3.5.approved, 3.5.one-pending, 4.POST./withdraw, 4.GET./withdraw,
/// 8.pending-withdrawals.
#[tokio::test]
async fn a_withdrawal_takes_all_that_is_available_and_is_paid_once_approved() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.withdraw(&ana).await.refused(422, "nothing_available");
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000), (&ana, 200)])).await;
    merchant.post("/api/card", &with_splits(card(10_000, APPROVED), &[(&ana, 2_000)])).await.expect(201);

    let withdrawal = merchant.withdraw(&ana).await.expect(201);
    has_exactly(&withdrawal, &["success", "withdrawal_id", "amount_cents", "status"]);
    assert_eq!(
        [&withdrawal["success"], &withdrawal["amount_cents"], &withdrawal["status"]],
        [&json!(true), &json!(1_200), &json!("pending")]
    );
    let id = text(&withdrawal["withdrawal_id"]);
    assert_eq!(merchant.recipient_money(&ana).await, [0, 2_000, 1_200, 0]);
    let statement = merchant.statement(&ana).await;
    assert_eq!(statuses(&statement), ["pending", "available", "available"], "{statement}");
    merchant.withdraw(&ana).await.refused(409, "withdrawal_pending");
    // What comes now is not in it.
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 50)])).await;
    merchant.withdraw(&ana).await.refused(409, "withdrawal_pending");
    let listed = merchant.withdrawals(&ana).await;
    assert_eq!(listed.len(), 1);
    has_exactly(
        &listed[0],
        &["id", "amount_cents", "status", "created_at", "approved_at", "notes", "rejected_by", "destination"],
    );
    time(&listed[0]["created_at"]);
    let pending = json!({"id": id, "amount_cents": 1_200, "status": "pending", "approved_at": null, "notes": null, "rejected_by": null,
        "destination": account_shown("***89")});
    assert_eq!(without(&listed[0], "/created_at"), pending);

    let approved = world.approve(&id).await.expect(200);
    let names = ["id", "amount_cents", "status", "created_at", "approved_at", "notes", "rejected_by", "destination"];
    let of_review = ["recipient_id", "settlements", "api_key_id", "bank_account_review"];
    has_exactly(&approved, &[&names[..], &of_review].concat());
    assert_eq!([&approved["destination"], &approved["api_key_id"]], [&account_shown("***89"), &json!(merchant.key_id)]);
    assert_eq!([&approved["status"], &approved["recipient_id"]], ["approved", &ana]);
    assert_eq!((&approved["settlements"], &approved["notes"]), (&json!([]), &Value::Null));
    assert_eq!(merchant.recipient_money(&ana).await, [50, 2_000, 0, 1_200]);
    let statement = merchant.statement(&ana).await;
    assert_eq!(statuses(&statement), ["available", "pending", "paid", "paid"]);
    let paid_at: Vec<_> = items(&statement).iter().map(|item| item["paid_at"].clone()).collect();
    assert_eq!(paid_at[..2], [Value::Null, Value::Null]);
    assert!(time(&paid_at[2]) >= time(&approved["approved_at"]) && paid_at[2] == paid_at[3], "{paid_at:?}");
    let shown = &merchant.withdrawals(&ana).await[0];
    assert_eq!([&shown["status"], &shown["approved_at"]], [&approved["status"], &approved["approved_at"]]);
    let recipients = merchant.get("/api/dashboard/sub-recipients").await.expect(200);
    let balance = &items(&recipients)[0]["balance"];
    assert_eq!(balance, &json!({"available": 50, "pending": 2_000, "paid": 1_200, "reserved": 0, "debt": 0}));

    // The next one has what came since.
    let next = merchant.withdraw(&ana).await.expect(201);
    assert_eq!(next["amount_cents"], 50);
    world.approve(&text(&next["withdrawal_id"])).await.expect(200);
    let statement = merchant.statement(&ana).await;
    assert_eq!(statuses(&statement), ["paid", "pending", "paid", "paid"]);
    assert!(time(&items(&statement)[0]["paid_at"]) > time(&paid_at[2]), "by the withdrawal that it is in");
    assert_eq!(merchant.withdrawals(&ana).await.len(), 2);
    world.check_books().await;
}

/// The account of Ana, as money is sent to it.
fn account_shown(conta: &str) -> Value {
    json!({"bank_code": "341", "ispb": null, "agencia": "1234", "conta": conta, "type": "conta_corrente",
        "legal_name": "Ana",
        "document_number": format!("***.{}.{}-**", &cpf(1)[3..6], &cpf(1)[6..9])})
}

/// A key that was stolen changes the account while a withdrawal waits: the money goes where it was
/// meant to go.
#[tokio::test]
async fn money_goes_to_the_account_that_was_approved_when_it_was_asked_for() {
    let institution = Institution::of(&[taken(), taken()], &[]);
    let world = World::with_payouts(institution.clone()).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    let recipient = format!("/api/sub-recipients/{ana}");
    let review = format!("/ops/sub-recipients/{ana}");
    let queued = async || items(&world.ops_get("/ops/queue").await.expect(200)).clone();
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let first = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let changed = merchant.patch(&recipient, &json!({"bank_account": {"conta": "66666"}})).await.expect(200);
    assert_eq!([&changed["status"], &changed["bank_account_review"]], ["active", "pending"]);
    // Whoever decides sees where each goes: the withdrawal to the old account, and the new one as
    // an item of its own.
    let waiting = queued().await;
    let [account, withdrawal] = &waiting[..] else { panic!("{waiting:?}") };
    let (account, withdrawal) =
        if account["kind"] == "recipient" { (account, withdrawal) } else { (withdrawal, account) };
    assert_eq!([&withdrawal["kind"], &withdrawal["id"]], ["withdrawal", &*first]);
    assert_eq!(
        [&withdrawal["destination"], &account["destination"]],
        [&account_shown("***89"), &account_shown("***66")]
    );
    assert_eq!([&account["id"], &account["status"], &account["review"]], [&*ana, "pending", "bank_account"]);
    assert_eq!(account["former_destination"], account_shown("***89"), "the account before it: {account}");
    assert!(withdrawal.get("former_destination").is_none(), "{withdrawal}");
    let browser = crate::console::Browser::signed_in(&world, OPS_TOKEN).await;
    browser.page(&format!("/console/queue/{ana}")).await.has(&["Account before", "***89", "***66"]);
    let approved = world.approve(&first).await.expect(200);
    assert_eq!([&approved["status"], &approved["bank_account_review"]], ["approved", "pending"]);
    assert_eq!(approved["destination"], account_shown("***89"));

    // Sales go on; nothing else is paid out until the account is approved.
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 500)])).await;
    let refused = merchant.withdraw(&ana).await.refused(409, "bank_account_in_review");
    assert_eq!(refused["message"], "Conta bancária em análise");
    let rejected = world.ops_post(&format!("{review}/reject"), &json!({"notes": "de outra pessoa"})).await.expect(200);
    assert_eq!([&rejected["status"], &rejected["bank_account_review"]], ["active", "rejected"]);
    merchant.withdraw(&ana).await.refused(409, "bank_account_in_review");
    world.ops_post(&format!("{review}/approve"), &json!({})).await.refused(409, "already_decided");
    assert_eq!(queued().await, [] as [Value; 0]);
    merchant.patch(&recipient, &json!({"bank_account": {"conta": "77777"}})).await.expect(200);
    merchant.withdraw(&ana).await.refused(409, "bank_account_in_review");
    let accepted = world.ops_post(&format!("{review}/approve"), &json!({})).await.expect(200);
    assert_eq!([&accepted["status"], &accepted["bank_account_review"]], [&json!("active"), &Value::Null]);
    // What changes no account is reviewed by nobody.
    let same = json!({"bank_account": {"conta": "77777"}, "register_information": {"name": "Ana Lima"}});
    assert_eq!(merchant.patch(&recipient, &same).await.expect(200)["bank_account_review"], Value::Null);
    let second = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.approve(&second).await.expect(200);
    let sent = institution.0.lock().unwrap().sent.clone();
    let accounts: Vec<_> = sent
        .iter()
        .map(|call| match &call.to {
            Destination::Account(account) => account.conta.as_str(),
            Destination::PixKey(_) => panic!("{call:?} goes to no account"),
        })
        .collect();
    assert_eq!(accounts, ["56789", "77777"]);
    let events = merchant.get("/api/events").await.expect(200);
    let kinds: Vec<_> = items(&events).iter().filter_map(|event| event["event"].as_str()).collect();
    let of_accounts =
        ["changed", "rejected", "changed", "approved"].map(|what| format!("recipient.bank_account_{what}"));
    let found = kinds.iter().rev().filter(|name| name.contains("bank_account")).collect::<Vec<_>>();
    assert_eq!(found, of_accounts.iter().collect::<Vec<_>>(), "{kinds:?}");
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let row = |item: &Value| json!([item["action"], item["kind"], item["operator"], item["api_key_id"], item["id"]]);
    let rows: Vec<_> = items(&audit).iter().rev().filter(|item| item["kind"] == "bank_account").map(row).collect();
    let expected = [
        json!(["change", "bank_account", null, merchant.key_id, ana]),
        json!(["reject", "bank_account", "operator", null, ana]),
        json!(["change", "bank_account", null, merchant.key_id, ana]),
        json!(["approve", "bank_account", "operator", null, ana]),
    ];
    assert_eq!(rows, expected);
    merchant.patch(&recipient, &json!({"bank_account": {"conta": "88888"}})).await.expect(200);
    let (waiting, names) = (queued().await, merchant.names);
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(items(&world.ops_get("/ops/queue").await.expect(200)), &waiting, "the review outlives the process");
    merchant.withdraw(&ana).await.refused(409, "bank_account_in_review");
    world.check_books().await;
}

/// Shows: 2.9.status, 2.9.notes, 3.5.rejected.
#[tokio::test]
async fn a_rejected_withdrawal_gives_the_money_and_the_splits_back() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.ops_post(&format!("/ops/withdrawals/{id}/reject"), &json!({})).await.refused(400, "validation_failed");
    world.reject(&id, "").await.refused(400, "validation_failed");
    let rejected = world.reject(&id, "conta de outra pessoa").await.expect(200);
    assert_eq!([&rejected["status"], &rejected["notes"]], ["rejected", "conta de outra pessoa"]);
    assert_eq!([&rejected["rejected_by"], &rejected["approved_at"]], [&json!("operator"), &Value::Null]);
    assert_eq!(rejected["approved_at"], Value::Null);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(statuses(&merchant.statement(&ana).await), ["available"]);
    world.reject(&id, "again").await.refused(409, "already_decided");
    world.approve(&id).await.refused(409, "already_decided");

    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 5)])).await;
    let again = merchant.withdraw(&ana).await.expect(201);
    assert_eq!(again["amount_cents"], 1_005);
    world.approve(&text(&again["withdrawal_id"])).await.expect(200);
    let statement = merchant.statement(&ana).await;
    assert_eq!(statuses(&statement), ["paid", "paid"]);
    for item in items(&statement) {
        assert!(time(&item["paid_at"]) >= time(&item["created_at"]), "by the withdrawal that was approved: {item}");
    }
    let listed = merchant.withdrawals(&ana).await;
    let found: Vec<_> = listed.iter().map(|one| (&one["status"], &one["notes"])).collect();
    assert_eq!(found, [(&json!("approved"), &Value::Null), (&json!("rejected"), &json!("conta de outra pessoa"))]);
    world.check_books().await;
}

#[tokio::test]
async fn what_may_not_be_is_refused_in_order() {
    let world = World::sandbox().await;
    let (merchant, other) = (world.merchant().await, world.merchant().await);
    let plain = world
        .open(json!({"name": "Loja Verde", "document": cnpj(2), "split_enabled": false, "cashout_enabled": true}))
        .await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let before = world.trace(&[&merchant, &other]).await;
    merchant.post_raw(&path(&ana), &[], "{").await.refused(400, "invalid_json");
    plain.withdraw(&ana).await.refused(422, "split_not_enabled");
    other.withdraw(&ana).await.refused(404, "not_found");
    other.get(&path(&ana)).await.refused(404, "not_found");
    merchant.withdraw("nobody").await.refused(404, "not_found");
    merchant.withdraw(&merchant.id).await.refused(404, "not_found");
    for id in [ana.as_str(), "nobody"] {
        world.approve(id).await.refused(404, "not_found");
        world.reject(id, "why").await.refused(404, "not_found");
    }
    assert_eq!(world.trace(&[&merchant, &other]).await, before);
    // An empty object is as good as no body.
    merchant.post_raw(&path(&ana), &[], "{}").await.expect(201);
}

#[tokio::test]
async fn of_a_hundred_requests_one_withdraws() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let answers = futures_of(100, |_| merchant.withdraw(&ana)).await;
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 201);
    assert_eq!(taken.len(), 1);
    refused.into_iter().for_each(|answer| drop(answer.refused(409, "withdrawal_pending")));
    let id = text(&taken[0].body["withdrawal_id"]);
    // Approvals against rejections: one of all of them decides.
    let answers = futures_of(100, |index| {
        let (world, id) = (&world, &id);
        async move { if index % 2 == 0 { world.approve(id).await } else { world.reject(id, "why").await } }
    })
    .await;
    let (decided, late): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!(decided.len(), 1);
    late.into_iter().for_each(|answer| drop(answer.refused(409, "already_decided")));
    let paid = decided[0].body["status"] == "approved";
    assert_eq!(merchant.recipient_money(&ana).await, if paid { [0, 0, 0, 1_000] } else { [1_000, 0, 0, 0] });
    world.check_books().await;
}

#[tokio::test]
async fn a_key_makes_one_withdrawal_and_one_decision() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let key = [("idempotency-key", "saque-1")];
    let withdraw = path(&ana);
    let answers = futures_of(20, |_| merchant.post_raw(&withdraw, &key, "")).await;
    let done: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    let first = done.iter().filter(|answer| !answer.headers.contains_key("idempotent-replayed")).count();
    assert!(first == 1 && done.iter().all(|answer| answer.body == done[0].body), "{done:?}");
    merchant.post_raw(&path(&ana), &key, "{}").await.refused(422, "idempotency_key_reused");
    let id = text(&done[0].body["withdrawal_id"]);
    let approve = format!("/ops/withdrawals/{id}/approve");
    let approved = world.ops_send(Method::POST, &approve, &key, String::new()).await.expect(200);
    let again = world.ops_send(Method::POST, &approve, &key, String::new()).await;
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.expect(200), approved);
    world.approve(&id).await.refused(409, "already_decided");
    // The answer is stored, whatever became of the withdrawal.
    let replayed = merchant.post_raw(&path(&ana), &key, "").await;
    assert_eq!(replayed.headers["idempotent-replayed"], "true");
    assert_eq!(replayed.expect(201), done[0].body);
}

#[tokio::test]
async fn a_long_list_of_withdrawals_is_whole() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    assert!(merchant.withdrawals(&ana).await.is_empty());
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let mut ids = Vec::new();
    for _ in 0..205 {
        let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
        world.reject(&id, "why").await.expect(200);
        ids.push(id);
    }
    ids.reverse();
    let listed: Vec<_> = merchant.withdrawals(&ana).await.iter().map(|one| text(&one["id"])).collect();
    assert_eq!(listed, ids);
}

/// An institution that says what the test has laid ready, and is silent when nothing is left; it
/// keeps what it was asked.
#[derive(Clone, Default)]
struct Institution(Arc<Mutex<Desk>>);

#[derive(Default)]
struct Desk {
    sends: VecDeque<PayoutAnswer>,
    finds: VecDeque<PayoutAnswer>,
    sent: Vec<SendPayout>,
    inquiries: usize,
}

impl Institution {
    fn of(sends: &[PayoutAnswer], finds: &[PayoutAnswer]) -> Self {
        let desk = Desk { sends: sends.to_vec().into(), finds: finds.to_vec().into(), ..Desk::default() };
        Self(Arc::new(Mutex::new(desk)))
    }
}

impl PayoutRail for Institution {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        let mut desk = self.0.lock().unwrap();
        desk.sent.push(call);
        match desk.sends.pop_front() {
            Some(answer) => Box::pin(ready(Ok(answer))),
            None => Box::pin(std::future::pending()),
        }
    }

    fn find(&self, _order: SendPayout, _now: Timestamp) -> Call<'_, PayoutAnswer> {
        let mut desk = self.0.lock().unwrap();
        desk.inquiries += 1;
        Box::pin(ready(desk.finds.pop_front().ok_or(RailError::NoAnswer)))
    }

    fn horizon(&self) -> Duration {
        Duration::from_secs(60)
    }
}

fn taken() -> PayoutAnswer {
    PayoutAnswer::Taken { transfer_id: "t-1".to_owned(), at: Timestamp(1_000), from: PayoutBank::Settlement }
}

#[tokio::test]
async fn a_silent_institution_is_asked_again_by_the_same_id() {
    let institution = Institution::of(&[], &[PayoutAnswer::NotTaken, PayoutAnswer::NotTaken, taken()]);
    let world = World::with_payouts(institution.clone()).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let approved = world.approve(&id).await.expect(200);
    assert_eq!([&approved["status"], &approved["approved_at"]], [&json!("pending"), &Value::Null]);
    world.approve(&id).await.refused(409, "already_decided");
    world.reject(&id, "why").await.refused(409, "already_decided");
    merchant.withdraw(&ana).await.refused(409, "withdrawal_pending");
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 1_000, 0]);
    // That it does not have the transfer counts for nothing within its horizon.
    world.advance(12).await;
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 1_000, 0]);
    assert_eq!(institution.0.lock().unwrap().sent.len(), 1);
    world.advance(600).await;
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000]);
    assert_eq!(merchant.withdrawals(&ana).await[0]["status"], "approved");
    let desk = institution.0.lock().unwrap();
    assert!(desk.inquiries >= 3, "{}", desk.inquiries);
    for call in &desk.sent {
        assert_eq!((call.id.uuid().to_string(), call.amount.0), (id.clone(), 1_000));
        let Destination::Account(account) = &call.to else { panic!("{call:?} goes to no account") };
        assert_eq!(account.bank_code.as_deref(), Some("341"));
    }
}

#[tokio::test]
async fn a_transfer_that_got_lost_is_sent_again_after_the_horizon() {
    let finds = vec![PayoutAnswer::NotTaken; 40];
    let institution = Institution::of(&[], &finds);
    let world = World::with_payouts(institution.clone()).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    assert_eq!(world.approve(&id).await.expect(200)["status"], "pending");
    world.advance(50).await;
    assert_eq!(institution.0.lock().unwrap().sent.len(), 1);
    institution.0.lock().unwrap().sends.push_back(taken());
    world.advance(30).await;
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000]);
    let desk = institution.0.lock().unwrap();
    assert_eq!(desk.sent.len(), 2);
    assert_eq!(desk.sent[0].id, desk.sent[1].id);
}

#[tokio::test]
async fn what_the_institution_refuses_is_rejected_with_its_reason() {
    let failed = PayoutAnswer::Failed { reason: "conta encerrada".to_owned() };
    let institution = Institution::of(&[PayoutAnswer::NotTaken, failed], &[]);
    let world = World::with_payouts(institution).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    for notes in ["A instituição de pagamento não aceitou a transferência", "conta encerrada"] {
        let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
        let rejected = world.approve(&id).await.expect(200);
        assert_eq!([&rejected["status"], &rejected["notes"]], ["rejected", notes]);
        assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    }
    world.check_books().await;
}

#[tokio::test]
async fn a_restart_loses_no_withdrawal() {
    let world = World::with_payouts(Institution::default()).await;
    let (names, ana, id) = {
        let merchant = world.merchant().await;
        let ana = merchant.recipient("Ana", 1).await;
        merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
        let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
        assert_eq!(world.approve(&id).await.expect(200)["status"], "pending", "the institution is silent");
        (merchant.names, ana, id)
    };
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(merchant.recipient_money(&ana).await[0], 0);
    world.reject(&id, "why").await.refused(409, "already_decided");
    world.advance(60).await;
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000], "the schedule finished it");
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000]);
    assert_eq!(statuses(&merchant.statement(&ana).await), ["paid"]);
    world.check_books().await;
}

/// A recipient with an account of this number, and with 1,000 centavos that can be withdrawn.
async fn recipient_with_account(merchant: &Merchant<'_>, number: u32, conta: &str) -> String {
    let body = with(&individual("Ana", &cpf(number)), "/bank_account/conta", json!(conta));
    let id = text(&merchant.post("/api/sub-recipients", &body).await.expect(201)["id"]);
    merchant.world.ops_post(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await.expect(200);
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&id, 1_000)])).await;
    id
}

async fn event_names_of(merchant: &Merchant<'_>, withdrawal: &str) -> Vec<String> {
    let events = merchant.get("/api/events?per_page=100").await.expect(200);
    let of_it = items(&events).iter().filter(|event| event["withdrawal"]["id"] == withdrawal);
    of_it.map(|event| text(&event["event"])).collect()
}

#[tokio::test]
async fn in_the_sandbox_a_bank_refuses_account_99990() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = recipient_with_account(&merchant, 1, "99990").await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let decided = world.approve(&id).await.expect(200);
    let notes = "O banco recusou a transferência: conta encerrada";
    assert_eq!([&decided["status"], &decided["notes"]], ["rejected", notes]);
    assert_eq!([&decided["rejected_by"], &decided["approved_at"]], [&json!("bank"), &Value::Null]);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(statuses(&merchant.statement(&ana).await), ["available"]);
    assert_eq!(event_names_of(&merchant, &id).await, ["withdrawal.rejected"]);
    world.check_books().await;
}

#[tokio::test]
async fn in_the_sandbox_a_transfer_to_account_99991_comes_back_a_day_after_it_was_paid() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let (ana, bia) =
        (recipient_with_account(&merchant, 1, "99991").await, recipient_with_account(&merchant, 2, "99992").await);
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let bias = text(&merchant.withdraw(&bia).await.expect(201)["withdrawal_id"]);
    // That it was asked for long before is nothing to the bank.
    world.advance(2 * DAY).await;
    for id in [&id, &bias] {
        assert_eq!(world.approve(id).await.expect(200)["status"], "approved");
    }
    world.advance(DAY - 60).await;
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000]);
    // What came in between can be withdrawn beside it.
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 30)])).await;

    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    let moved = world.advance(60).await;
    assert_eq!(merchant.recipient_money(&ana).await, [1_030, 0, 0, 0]);
    let listed = &merchant.withdrawals(&ana).await[0];
    let notes = "O banco devolveu a transferência: conta inexistente";
    assert_eq!([&listed["status"], &listed["notes"]], ["rejected", notes]);
    assert_eq!(listed["rejected_by"], "returned");
    assert!(listed["approved_at"].is_string(), "{listed}");
    let statement = merchant.statement(&ana).await;
    assert_eq!(statuses(&statement), ["available", "available"]);
    assert!(items(&statement).iter().all(|item| item["paid_at"].is_null()), "{statement}");
    assert_eq!(event_names_of(&merchant, &id).await, ["withdrawal.rejected", "withdrawal.approved"]);
    world.check_books().await;

    // It comes back once, and never from another account.
    let again = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    world.reject(&again, "why").await.expect(200);
    let names = merchant.names;
    let world = world.restarted().await;
    let merchant = Merchant { world: &world, names };
    assert!(world.advance(40 * DAY).await > moved);
    assert_eq!(merchant.recipient_money(&ana).await, [1_030, 0, 0, 0]);
    assert_eq!(merchant.recipient_money(&bia).await, [0, 0, 0, 1_000]);
    assert_eq!(event_names_of(&merchant, &id).await, ["withdrawal.rejected", "withdrawal.approved"]);
    world.check_books().await;
}

/// Answers `Err` once all that was laid ready is used up, so a question that is not expected shows.
#[tokio::test]
async fn an_institution_is_asked_seven_times_whether_a_transfer_came_back() {
    let stamp = RailStamp::new("r-1".to_owned(), Timestamp(2_000));
    let returned = PayoutAnswer::Returned { reason: "conta inexistente".to_owned(), stamp, to: PayoutBank::Settlement };
    let institution = Institution::of(&[taken(), taken()], &[]);
    let world = World::with_payouts(institution.clone()).await;
    let merchant = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    assert_eq!(world.approve(&id).await.expect(200)["status"], "approved");
    institution.0.lock().unwrap().finds = vec![taken(); 6].into();
    for (passed, inquiries) in [(660, 1), (3_000, 2), (15 * DAY - 3_660, 6)] {
        world.advance(passed).await;
        let after = "10 minutes, an hour, and 1, 2, 4 and 8 days after it was paid";
        assert_eq!(institution.0.lock().unwrap().inquiries, inquiries, "{after}");
    }
    // It says nothing at first, and is asked again an hour later.
    world.advance(DAY + 60).await;
    assert_eq!(institution.0.lock().unwrap().inquiries, 7);
    assert_eq!(merchant.recipient_money(&ana).await, [0, 0, 0, 1_000]);
    institution.0.lock().unwrap().finds.push_back(returned);
    world.advance(3_600).await;
    assert_eq!(institution.0.lock().unwrap().inquiries, 8);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(merchant.withdrawals(&ana).await[0]["notes"], "conta inexistente");
    world.advance(40 * DAY).await;
    assert_eq!(institution.0.lock().unwrap().inquiries, 8);
    world.check_books().await;
}

/// The settlement account of a platform without card sales holds nothing: the institution pays from
/// the PIX account, the preview says so, and a return comes back there.
#[tokio::test]
async fn a_withdrawal_is_booked_on_the_account_that_the_institution_says() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let ana = recipient_with_account(&merchant, 1, "99991").await;
    let shard = format!("P-{}", merchant.id);
    let banks = async || {
        let accounts = world.accounts().await;
        ["Pix", "Settlement"].map(|bank| accounts.get(&(shard.clone(), format!("Assets:Bank:{bank}"))).copied())
    };
    let [Some(before), None] = banks().await else { panic!("money came by PIX only") };
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let preview = world.ops_get(&format!("/ops/queue/{id}/preview")).await.expect(200);
    let transfer = preview["steps"][1]["entries"].to_string();
    assert!(transfer.contains("Assets:Bank:Pix") && !transfer.contains("Assets:Bank:Settlement"), "{transfer}");
    assert_eq!(world.approve(&id).await.expect(200)["status"], "approved");
    assert_eq!(banks().await, [Some(before - 1_000), None]);
    world.advance(DAY).await;
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0]);
    assert_eq!(banks().await, [Some(before), None]);
    world.check_books().await;
}

/// A merchant takes a withdrawal back as long as nobody has approved it. The actor decides which of
/// both came first.
#[tokio::test]
async fn a_merchant_takes_a_waiting_withdrawal_back() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let other = world.merchant().await;
    let ana = merchant.recipient("Ana", 1).await;
    merchant.paid_pix(&with_splits(pix("80.00"), &[(&ana, 1_000)])).await;
    let id = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let path = format!("/api/dashboard/withdraw/{id}/cancel");
    let none = json!({});
    other.post(&path, &none).await.refused(404, "not_found");
    merchant.post(&path.replace(&id, &ana), &none).await.refused(404, "not_found");
    let cancelled = merchant.post(&path, &none).await.expect(200);
    assert_eq!([&cancelled["status"], &cancelled["rejected_by"]], ["rejected", "merchant"]);
    assert_eq!([&cancelled["notes"], &cancelled["approved_at"]], [&json!("Cancelado pelo lojista"), &Value::Null]);
    assert_eq!(cancelled, merchant.withdrawals(&ana).await[0]);
    assert_eq!(merchant.recipient_money(&ana).await, [1_000, 0, 0, 0], "the money is back");
    assert_eq!(items(&world.ops_get("/ops/queue").await.expect(200)).len(), 0);
    merchant.post(&path, &none).await.refused(409, "already_decided");
    world.approve(&id).await.refused(409, "already_decided");
    let events = merchant.get("/api/events").await.expect(200);
    let event = &items(&events)[0];
    let event = merchant.get(&format!("/api/events/{}", text(&event["id"]))).await.expect(200);
    let told = &event["withdrawal"];
    assert_eq!([&told["id"], &told["rejected_by"]], [&*id, "merchant"], "{event}");
    let audit = world.ops_get("/ops/audit").await.expect(200);
    let row = &items(&audit)[0];
    assert_eq!([&row["action"], &row["kind"], &row["id"]], ["cancel", "withdrawal", &*id]);
    assert_eq!((&row["operator"], &row["api_key_id"]), (&Value::Null, &json!(merchant.key_id)));

    let next = text(&merchant.withdraw(&ana).await.expect(201)["withdrawal_id"]);
    let cancel = format!("/api/dashboard/withdraw/{next}/cancel");
    let (approved, taken_back) = tokio::join!(world.approve(&next), merchant.post(&cancel, &none));
    let mut statuses = [approved.status, taken_back.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409], "one of both came first: {} {}", approved.text, taken_back.text);
    let money = merchant.recipient_money(&ana).await;
    let expected = if approved.status == 200 { [0, 0, 0, 1_000] } else { [1_000, 0, 0, 0] };
    assert_eq!(money, expected);
    world.check_books().await;
}
