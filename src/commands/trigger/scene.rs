//! Requests that make each webhook event happen.

use std::cell::Cell;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use chrono::{Datelike, Utc};
use ledger::webhook_events::WebhookEventKind;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::commands::Failure;
use crate::commands::remote::{Remote, RemoteError};
use crate::commands::terminal::say;
use ops::invented_parties;
use web::credential::Secret;

type TriggerResult<T> = Result<T, Failure>;

/// Total of a charge, centavos.
const AMOUNT: i64 = 8_000;
/// The recipient's part of it, centavos.
const PART: i64 = 2_000;
/// A refund of this amount is refused by the sandbox's institutions, centavos.
const REFUSED_REFUND: i64 = 1_357;
const DAY_SECONDS: u64 = 86_400;
const SUBSCRIPTIONS: &str = "/api/recurrency/subscriptions";

/// An account of a sandbox and its operator.
pub(super) struct Scene {
    merchant: Remote,
    operator: Remote,
    /// Another one, where its token was given too.
    second: Option<Remote>,
    /// True once a page of events was asked for; the next one waits a little.
    has_looked: Cell<bool>,
}

/// How a subscription is paid.
enum Payment {
    Pix,
    Card(&'static str),
}

/// Opens an account that may split and cash out; gives its API key.
pub(super) async fn open_account(operator: &Remote) -> TriggerResult<Secret> {
    let body = json!({ "name": invented_parties::MERCHANT, "document": invented_parties::MERCHANT_DOCUMENT, "city": "São Paulo",
        "split_enabled": true, "cashout_enabled": true });
    let id = text(&post(operator, "/ops/merchants", &body).await?, "/ops/merchants", "id")?;
    let path = format!("/ops/merchants/{id}/api-keys");
    Ok(Secret::from(text(&post(operator, &path, &json!({})).await?, &path, "api_key")?))
}

impl Scene {
    /// Sends its requests with these credentials.
    pub(super) fn of(merchant: Remote, operator: Remote, second: Option<Remote>) -> Self {
        Self { merchant, operator, second, has_looked: Cell::new(false) }
    }

    /// Number of the account's last event.
    pub(super) async fn last_event(&self) -> TriggerResult<u64> {
        let list = self.get("/api/events?per_page=1").await?;
        Ok(list["total"].as_u64().unwrap_or_default())
    }

    /// Sequence and id of the first event with this name after a number, if there is one by now.
    pub(super) async fn event_after(&self, after: u64, name: &str) -> TriggerResult<Option<(u64, String)>> {
        if self.has_looked.replace(true) {
            sleep(Duration::from_millis(250)).await;
        }
        let mut after = after;
        loop {
            let path = format!("/api/events?after={after}&per_page=100");
            let list = self.get(&path).await?;
            let Some(items) = list["items"].as_array().filter(|items| !items.is_empty()) else { return Ok(None) };
            if let Some(found) = items.iter().find(|item| item["event"] == name) {
                let sequence = found["sequence"].as_u64().unwrap_or_default();
                return Ok(Some((sequence, text(found, &path, "id")?)));
            }
            after += items.len() as u64;
        }
    }

    /// Does everything that makes the event happen.
    pub(super) async fn make(&self, kind: WebhookEventKind) -> TriggerResult<()> {
        use WebhookEventKind as Kind;
        match kind {
            Kind::ChargePaid => self.charge_card(&[]).await.map(drop),
            Kind::ChargeRefused => self.charge_refused_card().await,
            Kind::ChargeCancelled => self.cancel_pix().await,
            Kind::ChargeRefunded | Kind::RefundApproved => self.refund("approve").await,
            Kind::RefundRejected => self.refund("reject").await,
            Kind::RefundFailed => self.refund_of(REFUSED_REFUND, "approve").await,
            Kind::RecipientApproved => self.recipient("approve").await.map(drop),
            Kind::RecipientRejected => self.recipient("reject").await.map(drop),
            Kind::BankAccountChanged => self.change_bank_account(None).await,
            Kind::BankAccountApproved => self.change_bank_account(Some("approve")).await,
            Kind::BankAccountRejected => self.change_bank_account(Some("reject")).await,
            Kind::WithdrawalApproved => self.withdraw("approve").await,
            Kind::WithdrawalRejected => self.withdraw("reject").await,
            Kind::CashoutProcessed => self.cash_out("ana@example.com").await,
            Kind::CashoutFailed => self.cash_out("fail@example.com").await,
            Kind::CashoutReturned => self.returned_cashout().await,
            Kind::SplitAvailable => {
                let recipient = self.recipient("approve").await?;
                self.pay_pix(&[recipient]).await.map(drop)
            }
            Kind::DebtOpened | Kind::DebtPaid => self.take_back().await,
            Kind::AnticipationCompleted => self.anticipate().await,
            Kind::DisputeOpened => self.dispute().await.map(drop),
            Kind::DisputeAccepted => self.decide_dispute("accept").await,
            Kind::DisputeReleased => self.decide_dispute("release").await,
            Kind::DisputeReversed => self.reverse_dispute().await,
            Kind::AdjustmentCreated => self.adjust().await,
            Kind::SubscriptionCreated => self.subscribe(Payment::Pix, 2).await.map(drop),
            Kind::SubscriptionChargeCreated => self.subscription_with_code(2).await.map(drop),
            Kind::SubscriptionRenewed => self.pay_subscription(2).await,
            Kind::SubscriptionCompleted => self.pay_subscription(1).await,
            Kind::SubscriptionChargeFailed => self.subscription_of_a_refused_card(0).await,
            Kind::SubscriptionPastDue => self.subscription_of_a_refused_card(6 * DAY_SECONDS).await,
            Kind::SubscriptionPaused => self.change_subscription(&["pause"]).await,
            Kind::SubscriptionResumed => self.change_subscription(&["pause", "resume"]).await,
            Kind::SubscriptionCancelled => self.change_subscription(&["cancel"]).await,
        }
    }

    async fn charge_card(&self, recipients: &[String]) -> TriggerResult<String> {
        self.ask("/api/card", &with_part(invented_parties::card(0, AMOUNT, &[], expiry_year()), recipients), "txid")
            .await
    }

    async fn charge_refused_card(&self) -> TriggerResult<()> {
        let mut body = invented_parties::card(0, AMOUNT, &[], expiry_year());
        body["credit_card"] = invented_parties::credit_card(invented_parties::REFUSED_CARD, expiry_year());
        match said(&self.merchant, Method::POST, "/api/card", Some(&body)).await {
            Err(error) if is_refused_with(StatusCode::PAYMENT_REQUIRED, &error) => Ok(()),
            other => other.map(drop),
        }
    }

    async fn open_pix(&self, recipients: &[String]) -> TriggerResult<String> {
        self.ask("/api/pix", &with_part(invented_parties::pix(AMOUNT, &[]), recipients), "txid").await
    }

    async fn pay_pix(&self, recipients: &[String]) -> TriggerResult<String> {
        let txid = self.open_pix(recipients).await?;
        self.ask(&format!("/api/sandbox/pix/{txid}/pay"), &json!({}), "txid").await
    }

    async fn cancel_pix(&self) -> TriggerResult<()> {
        let txid = self.open_pix(&[]).await?;
        self.ask(&format!("/api/charges/{txid}/cancel"), &json!({}), "txid").await.map(drop)
    }

    async fn refund(&self, verb: &str) -> TriggerResult<()> {
        self.refund_of(PART, verb).await
    }

    async fn refund_of(&self, amount: i64, verb: &str) -> TriggerResult<()> {
        let txid = self.pay_pix(&[]).await?;
        let body = json!({ "payment_id": txid, "amount": amount, "reason": "Produto devolvido" });
        let id = self.ask("/api/refunds", &body, "id").await?;
        self.decide(&format!("/ops/refunds/{id}"), verb).await
    }

    /// Refunds a charge and takes a recipient's part back, which pays it at once.
    async fn take_back(&self) -> TriggerResult<()> {
        let recipient = self.recipient("approve").await?;
        let txid = self.pay_pix(std::slice::from_ref(&recipient)).await?;
        let body = with_part(json!({ "payment_id": txid, "amount": PART }), &[recipient]);
        let id = self.ask("/api/refunds", &body, "id").await?;
        self.decide(&format!("/ops/refunds/{id}"), "approve").await
    }

    /// Registers a person as a recipient, and decides on the registration.
    async fn recipient(&self, verb: &str) -> TriggerResult<String> {
        let document = invented_parties::cpf(getrandom::u32()?);
        let id =
            self.ask("/api/sub-recipients", &invented_parties::registration("Ana Exemplo", &document), "id").await?;
        self.decide(&format!("/ops/sub-recipients/{id}"), verb).await?;
        Ok(id)
    }

    async fn change_bank_account(&self, verb: Option<&str>) -> TriggerResult<()> {
        let id = self.recipient("approve").await?;
        let (path, body) =
            (format!("/api/sub-recipients/{id}"), json!({ "bank_account": invented_parties::bank_account("98765") }));
        said(&self.merchant, Method::PATCH, &path, Some(&body)).await?;
        match verb {
            Some(verb) => self.decide(&format!("/ops/sub-recipients/{id}"), verb).await,
            None => Ok(()),
        }
    }

    async fn withdraw(&self, verb: &str) -> TriggerResult<()> {
        let recipient = self.recipient("approve").await?;
        self.pay_pix(std::slice::from_ref(&recipient)).await?;
        let path = format!("/api/dashboard/sub-recipients/{recipient}/withdraw");
        let id = self.ask(&path, &json!({}), "withdrawal_id").await?;
        self.decide(&format!("/ops/withdrawals/{id}"), verb).await
    }

    async fn cash_out(&self, pix_key: &str) -> TriggerResult<()> {
        self.pay_pix(&[]).await?;
        let body = json!({ "amount": PART, "pix_key": pix_key, "pix_key_type": "email" });
        self.ask("/api/cashout", &body, "id").await.map(drop)
    }

    /// The cashout is carried out by a clock call, and comes back within a second one.
    async fn returned_cashout(&self) -> TriggerResult<()> {
        self.cash_out("return@example.com").await?;
        self.advance(0).await?;
        self.advance(DAY_SECONDS).await
    }

    async fn anticipate(&self) -> TriggerResult<()> {
        let recipient = self.recipient("approve").await?;
        let txid = self.charge_card(std::slice::from_ref(&recipient)).await?;
        let body = json!({ "split_ids": [format!("{txid}-0")], "target_days": 2 });
        let path = format!("/api/dashboard/sub-recipients/{recipient}/anticipate");
        said(&self.merchant, Method::POST, &path, Some(&body)).await.map(drop)
    }

    async fn dispute(&self) -> TriggerResult<String> {
        let txid = self.charge_card(&[]).await?;
        let path = format!("/ops/charges/{txid}/disputes");
        let body = json!({ "amount": AMOUNT, "kind": "chargeback", "reason": "Compra não reconhecida" });
        text(&post(&self.operator, &path, &body).await?, &path, "id")
    }

    async fn decide_dispute(&self, verb: &str) -> TriggerResult<()> {
        let id = self.dispute().await?;
        self.decide(&format!("/ops/disputes/{id}"), verb).await
    }

    /// A dispute is accepted and won later: one operator says so, and another one approves it.
    async fn reverse_dispute(&self) -> TriggerResult<()> {
        let second = self.second_for(WebhookEventKind::DisputeReversed)?;
        let id = self.dispute().await?;
        self.decide(&format!("/ops/disputes/{id}"), "accept").await?;
        let body = json!({ "reason": "Ganha na segunda instância", "reference": "CHAMADO-18" });
        self.approved_by(second, &format!("/ops/disputes/{id}/reverse"), &body).await
    }

    /// The second operator, whom this event takes.
    fn second_for(&self, kind: WebhookEventKind) -> TriggerResult<&Remote> {
        let needed = "takes two operators: CENTAVO_OPS_TOKEN (or --ops-token) must have the tokens of both";
        self.second.as_ref().ok_or_else(|| format!("{} {needed}", kind.name()).into())
    }

    /// One operator asks for an entry, another one approves it.
    async fn approved_by(&self, second: &Remote, path: &str, body: &Value) -> TriggerResult<()> {
        let id = text(&post(&self.operator, path, body).await?, path, "id")?;
        post(second, &format!("/ops/entries/{id}/approve"), &json!({})).await.map(drop)
    }

    /// One operator asks for a credit of the house, another one approves it.
    async fn adjust(&self) -> TriggerResult<()> {
        let second = self.second_for(WebhookEventKind::AdjustmentCreated)?;
        // The charge's id leads to the merchant's.
        let path = format!("/ops/charges/{}", self.open_pix(&[]).await?);
        let charge = said(&self.operator, Method::GET, &path, None).await?;
        let body = json!({ "debit": "Expenses:Losses:Other", "amount": AMOUNT,
            "credit": format!("Liabilities:Merchants:M-{}:Available", text(&charge, &path, "merchant_id")?),
            "reason": "Indisponibilidade de sábado", "reference": "CHAMADO-17", "reference_repeats": true });
        self.approved_by(second, "/ops/entries", &body).await
    }

    /// Begins a subscription of this number of monthly cycles.
    async fn subscribe(&self, payment: Payment, cycles: u32) -> TriggerResult<String> {
        let tag = format!("Mensal {:08x}", getrandom::u32()?);
        let plan = json!({ "tag": tag, "amount": AMOUNT, "billingCycle": "MONTHLY", "totalBillingCycles": cycles });
        let plan = self.ask("/api/recurrency/plans", &plan, "id").await?;
        let mut body = json!({ "plan_id": plan, "customer": invented_parties::customer(0), "payment_method": "pix" });
        if let Payment::Card(number) = payment {
            let card = json!({ "credit_card": invented_parties::credit_card(number, expiry_year()), "customer": invented_parties::customer(0) });
            body["payment_method"] = json!("credit_card");
            body["card_token"] = json!(self.ask("/api/cards", &card, "card_token").await?);
        }
        self.ask(SUBSCRIPTIONS, &body, "id").await
    }

    /// Begins a subscription and lets the schedule make its first PIX code.
    async fn subscription_with_code(&self, cycles: u32) -> TriggerResult<String> {
        let id = self.subscribe(Payment::Pix, cycles).await?;
        self.advance(0).await?;
        Ok(id)
    }

    async fn pay_subscription(&self, cycles: u32) -> TriggerResult<()> {
        let id = self.subscription_with_code(cycles).await?;
        let path = format!("{SUBSCRIPTIONS}/{id}/charges");
        let txid = text(&self.get(&path).await?["items"][0], &path, "txid")?;
        self.ask(&format!("/api/sandbox/pix/{txid}/pay"), &json!({}), "txid").await.map(drop)
    }

    async fn subscription_of_a_refused_card(&self, seconds: u64) -> TriggerResult<()> {
        self.subscribe(Payment::Card(invented_parties::REFUSED_CARD), 2).await?;
        self.advance(seconds).await
    }

    async fn change_subscription(&self, verbs: &[&str]) -> TriggerResult<()> {
        let id = self.subscribe(Payment::Pix, 2).await?;
        for verb in verbs {
            self.ask(&format!("{SUBSCRIPTIONS}/{id}/{verb}"), &json!({}), "id").await?;
        }
        Ok(())
    }

    /// Moves the clock of the sandbox. What falls due on the way has happened when it answers.
    async fn advance(&self, seconds: u64) -> TriggerResult<()> {
        post(&self.operator, "/ops/sandbox/clock", &json!({ "advance_seconds": seconds })).await.map(drop)
    }

    /// Decides as an operator: `verb` is the last part of the path.
    async fn decide(&self, path: &str, verb: &str) -> TriggerResult<()> {
        let notes = json!({ "notes": "Documento ilegível" });
        let body = if verb == "reject" { notes } else { json!({}) };
        post(&self.operator, &format!("{path}/{verb}"), &body).await.map(drop)
    }

    async fn get(&self, path: &str) -> TriggerResult<Value> {
        let answer = self.merchant.expect(Method::GET, path, None).await?;
        Ok(serde_json::from_slice(&answer).unwrap_or_default())
    }

    /// Sends a request of the merchant; gives one text of its answer.
    async fn ask(&self, path: &str, body: &Value, member: &'static str) -> TriggerResult<String> {
        text(&post(&self.merchant, path, body).await?, path, member)
    }
}

/// A charge with a part for each recipient.
fn with_part(mut charge: Value, recipients: &[String]) -> Value {
    let part = |id: &String| json!({ "sub_recipient_id": id, "amount": PART });
    charge["splits"] = recipients.iter().map(part).collect();
    charge
}

/// A year in which a card is valid, also after the clock of the sandbox was moved by years.
fn expiry_year() -> i32 {
    Utc::now().year() + 15
}

async fn post(remote: &Remote, path: &str, body: &Value) -> TriggerResult<Value> {
    said(remote, Method::POST, path, Some(body)).await
}

/// Sends a request that must succeed, and prints it.
async fn said(remote: &Remote, method: Method, path: &str, body: Option<&Value>) -> TriggerResult<Value> {
    let answer = remote.expect(method.clone(), path, body).await;
    let status = match &answer {
        Ok(_) => "done".to_owned(),
        Err(RemoteError::Refused { status, .. }) => status.as_u16().to_string(),
        Err(_) => "no answer".to_owned(),
    };
    say(&format!("  {method} {}{path}: {status}", remote.url()));
    Ok(serde_json::from_slice(&answer?).unwrap_or_default())
}

fn is_refused_with(expected: StatusCode, error: &Failure) -> bool {
    matches!(error.downcast_ref(), Some(RemoteError::Refused { status, .. }) if *status == expected)
}

fn text(answer: &Value, path: &str, member: &'static str) -> TriggerResult<String> {
    let found = answer[member].as_str().map(str::to_owned);
    found.ok_or_else(|| format!("the answer to {path} has no `{member}`").into())
}
