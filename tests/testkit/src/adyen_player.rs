//! Player of Adyen, as its Checkout API of version 72 has cards: it keeps records of its own,
//! answers a key that it knows as before, and refuses whatever the document does not allow. Its
//! records are the proof of a test, not what a client says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::played_http::{Odd, Oddity, Reply, Request, Stage, serve};

/// What a client shows.
pub const API_KEY: &str = "AQEyhmfxK-of-tests";
/// What notifications are signed with.
pub const HMAC_KEY: &str = "5C1DE2A07F3B4E6D9A8C0B1F2E3D4C5B6A7988776655443322110FEEDDCCBBAA";
/// The merchant account.
pub const ACCOUNT: &str = "LojaAzulECOM";
/// A card that the issuer refuses (code 2).
pub const REFUSED: &str = "4000000000000002";
/// A card without balance (code 12).
pub const NO_BALANCE: &str = "4000000000009995";
/// A card that was stolen: blocked, and never to be tried again (code 5).
pub const BLOCKED: &str = "4000000000000119";
/// A card whose payer has to be asked.
pub const CHALLENGED: &str = "4000000000003220";
/// A card of which the issuer authorizes a part.
pub const PARTIAL: &str = "4000000000003006";

/// A payment in the player's records.
#[derive(Clone, Debug)]
pub struct PlayedPayment {
    pub psp_reference: String,
    /// As it was ordered.
    pub body: Value,
    pub result_code: &'static str,
    /// Sums that were captured and refunded, centavos.
    pub captured: i64,
    pub refunded: i64,
    /// What it has taken again: of a capture that failed, or of a case.
    pub taken: i64,
    pub is_cancelled: bool,
}

/// The player's records.
#[derive(Default)]
pub struct Records {
    /// By reference, in the order of their making.
    pub payments: Vec<PlayedPayment>,
    /// Captures, refunds and cancellations that were carried out, by path, as they were answered.
    pub modifications: Vec<(String, Value)>,
    /// Notifications that are to be sent.
    pub notifications: Vec<Value>,
    /// Stored cards by their ids.
    pub stored: BTreeMap<String, Value>,
    /// Requests that the document does not allow, with why.
    pub violations: Vec<String>,
    /// What a key was answered with, and the request that it came with.
    keys: BTreeMap<String, (String, Value, Reply)>,
    references: u64,
}

impl Records {
    /// Adds a notification that is to be sent; `of` are the reference and the original reference.
    pub fn notify(&mut self, event: &str, success: bool, psp_reference: &str, of: [&str; 2], value: i64) {
        self.notifications.push(notification(event, if success { "true" } else { "false" }, psp_reference, of, value));
    }
}

/// The player; it ends when it is dropped.
pub struct AdyenPlayer {
    pub address: SocketAddr,
    stage: Arc<Mutex<Stage>>,
    records: Arc<Mutex<Records>>,
    task: JoinHandle<()>,
}

impl Drop for AdyenPlayer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl AdyenPlayer {
    /// Listens on loopback.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stage, records) = (Arc::default(), Arc::new(Mutex::new(Records::default())));
        let shared = Arc::clone(&records);
        let handler = Arc::new(move |request: &Request| answer(&mut shared.lock(), request));
        let task = tokio::spawn(serve(listener, None, Arc::clone(&stage), handler));
        Self { address, stage, records, task }
    }

    /// Settings of a client, as JSON, with its keys in files of a folder.
    pub fn settings(&self, folder: &Path) -> Value {
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, format!("{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
            path
        };
        json!({
            "url": format!("http://{}/v72", self.address),
            "merchant_account": ACCOUNT,
            "api_key_file": file("adyen-key", API_KEY),
            "hmac_key_file": file("adyen-hmac-key", HMAC_KEY),
            "return_url": "https://loja.example/volta",
        })
    }

    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }

    pub fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock()
    }

    /// Misbehaves for a number of requests.
    pub fn is_odd(&self, path: &'static str, times: usize, oddity: Oddity) {
        self.stage().odd.push(Odd { method: "POST", path, times, oddity });
    }

    /// Requests whose path ends so.
    pub fn count(&self, path: &str) -> usize {
        self.stage().requests.iter().filter(|seen| seen.path.ends_with(path)).count()
    }

    /// The last id that it gave.
    pub fn last_reference(&self) -> String {
        format!("QFQTPCQ8{:08}", self.records().references)
    }

    /// The payment of a reference.
    pub fn payment(&self, reference: &str) -> Option<PlayedPayment> {
        self.records().payments.iter().find(|payment| payment.body["reference"] == reference).cloned()
    }
}

/// A notification of one item, signed. `of` are the reference and the original reference; `success`
/// is a text.
pub fn notification(event: &str, success: &str, psp_reference: &str, of: [&str; 2], value: i64) -> Value {
    let mut item = json!({
        "amount": { "currency": "BRL", "value": value },
        "eventCode": event,
        "eventDate": "2026-11-28T12:00:00-03:00",
        "merchantAccountCode": ACCOUNT,
        "merchantReference": of[0],
        "paymentMethod": "visa",
        "pspReference": psp_reference,
        "reason": "a reason that nobody signs",
        "success": success,
    });
    if !of[1].is_empty() {
        item["originalReference"] = json!(of[1]);
    }
    let signed = [psp_reference, of[1], ACCOUNT, of[0], &value.to_string(), "BRL", event, success].join(":");
    let key: Vec<u8> = (0..HMAC_KEY.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&HMAC_KEY[at..at + 2], 16).expect("hexadecimal digits"))
        .collect();
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&key).unwrap().chain_update(signed).finalize();
    item["additionalData"] = json!({ "hmacSignature": BASE64_STANDARD.encode(mac.into_bytes()) });
    json!({ "live": "false", "notificationItems": [{ "NotificationRequestItem": item }] })
}

type Outcome = Result<Reply, (u16, &'static str, String)>;

fn refuse<T>(status: u16, code: &'static str, why: impl Into<String>) -> Result<T, (u16, &'static str, String)> {
    Err((status, code, why.into()))
}

fn error(status: u16, code: &str, why: &str) -> Reply {
    let kind = if status == 422 { "validation" } else { "security" };
    Reply::json(status, &json!({ "status": status, "errorCode": code, "message": why, "errorType": kind }))
}

/// A key that is known is answered as before; with another request it is refused.
fn answer(records: &mut Records, request: &Request) -> Reply {
    if request.header("x-api-key") != Some(API_KEY) {
        return error(401, "000", "HTTP Status Response - Unauthorized");
    }
    if request.method == "DELETE" {
        return forget(records, request);
    }
    let (body, key) = (request.json(), request.header("idempotency-key").map(str::to_owned));
    if let Some((path, known, reply)) = key.as_ref().and_then(|key| records.keys.get(key)) {
        if *path == request.path && *known == body {
            return reply.clone();
        }
        records.violations.push(format!("{}: a key of another request", request.path));
        return error(422, "704", "request already processed or in progress");
    }
    let reply = match routed(records, request, &body) {
        Ok(reply) => reply,
        Err((status, code, why)) => {
            records.violations.push(format!("{}: {why}", request.path));
            error(status, code, &why)
        }
    };
    match key {
        Some(key) if key.len() <= 64 => drop(records.keys.insert(key, (request.path.clone(), body, reply.clone()))),
        _ => records.violations.push(format!("{}: an order without a key", request.path)),
    }
    reply
}

fn routed(records: &mut Records, request: &Request, body: &Value) -> Outcome {
    let path = request.path.strip_prefix("/v72/").unwrap_or_default();
    if request.method != "POST" || request.header("content-type") != Some("application/json") {
        return refuse(400, "702", "no JSON that is posted");
    }
    if body["merchantAccount"] != ACCOUNT {
        return refuse(403, "901", "another merchant account");
    }
    match *path.split('/').collect::<Vec<_>>() {
        ["payments"] => pay(records, body),
        ["payments", payment, kind @ ("captures" | "refunds")] => modify(records, path, (payment, kind), body),
        ["cancels"] => cancel(records, body),
        ["storedPaymentMethods"] => store(records, body),
        _ => refuse(404, "000", "no such path"),
    }
}

/// Ids of 16 capital letters and digits.
fn psp_reference(records: &mut Records) -> String {
    records.references += 1;
    format!("QFQTPCQ8{:08}", records.references)
}

fn has_only(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|members| members.keys().all(|name| names.contains(&name.as_str())))
}

fn is_text(value: &Value, lengths: std::ops::RangeInclusive<usize>) -> bool {
    value.as_str().is_some_and(|text| lengths.contains(&text.chars().count()))
}

fn absent_or(value: &Value, holds: impl FnOnce(&Value) -> bool) -> bool {
    value.is_null() || holds(value)
}

fn reais(amount: &Value) -> Option<i64> {
    let is_sound = has_only(amount, &["currency", "value"]) && amount["currency"] == "BRL";
    amount["value"].as_i64().filter(|value| is_sound && *value > 0)
}

/// The members of a payment, and of its parts, each with its shape.
fn defect_of_payment(body: &Value) -> Option<&'static str> {
    let members = [
        "amount",
        "merchantAccount",
        "reference",
        "returnUrl",
        "paymentMethod",
        "additionalData",
        "installments",
        "shopperInteraction",
        "recurringProcessingModel",
        "shopperReference",
        "shopperStatement",
        "shopperEmail",
        "socialSecurityNumber",
        "subMerchants",
    ];
    let is_stored = body["paymentMethod"]["storedPaymentMethodId"].is_string();
    let interaction = if is_stored { "ContAuth" } else { "Ecommerce" };
    let is_merchant = |merchants: &Value| {
        merchants.as_array().is_some_and(|all| all.len() == 1 && defect_of_sub_merchant(&all[0]).is_none())
    };
    let is_model = |model: &Value| model == "Subscription" || model == "CardOnFile";
    let checks = [
        (has_only(body, &members), "members"),
        (reais(&body["amount"]).is_some(), "amount"),
        (is_text(&body["reference"], 1..=80), "reference"),
        (body["returnUrl"].as_str().is_some_and(|url| url.starts_with("https://")), "returnUrl"),
        (body["additionalData"] == json!({ "manualCapture": "true" }), "additionalData.manualCapture"),
        (
            absent_or(&body["installments"], |value| {
                has_only(value, &["value"]) && value["value"].as_i64().is_some_and(|count| (2..=12).contains(&count))
            }),
            "installments",
        ),
        (body["shopperInteraction"] == interaction, "shopperInteraction"),
        (is_stored == body["shopperReference"].is_string(), "shopperReference"),
        (is_stored == is_model(&body["recurringProcessingModel"]), "recurringProcessingModel"),
        (absent_or(&body["shopperStatement"], |text| is_text(text, 1..=22)), "shopperStatement"),
        (absent_or(&body["shopperEmail"], |text| is_text(text, 3..=256)), "shopperEmail"),
        (absent_or(&body["socialSecurityNumber"], |text| is_text(text, 11..=14)), "socialSecurityNumber"),
        (absent_or(&body["subMerchants"], is_merchant), "subMerchants"),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, name)| name)
}

/// The nine things that the schemes demand; the lengths stand in the document's prose alone.
fn defect_of_sub_merchant(merchant: &Value) -> Option<&'static str> {
    let address = &merchant["address"];
    let lines = ["street", "houseNumberOrName", "city"];
    let is_address = lines.iter().all(|line| is_text(&address[*line], 1..=3_000))
        && is_text(&address["stateOrProvince"], 2..=3)
        && is_text(&address["postalCode"], 1..=10)
        && address["country"] == "BR";
    let is_id = |value: &Value| {
        is_text(value, 1..=15) && value.as_str().is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    let names = ["id", "name", "mcc", "taxId", "address", "amount", "email", "phoneNumber", "url"];
    let checks = [
        (has_only(merchant, &names), "members"),
        (is_id(&merchant["id"]), "id"),
        (is_text(&merchant["name"], 1..=22), "name"),
        (is_text(&merchant["mcc"], 4..=4), "mcc"),
        (is_text(&merchant["taxId"], 11..=14), "taxId"),
        (is_address, "address"),
        (reais(&merchant["amount"]).is_some(), "amount"),
        (is_text(&merchant["email"], 3..=320), "email"),
        (is_text(&merchant["phoneNumber"], 8..=20), "phoneNumber"),
        (is_text(&merchant["url"], 8..=320), "url"),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, name)| name)
}

/// The number of a card that was given whole, or is stored.
fn number_of(records: &Records, body: &Value) -> Option<String> {
    let card = &body["paymentMethod"];
    let members = ["type", "number", "holderName", "expiryMonth", "expiryYear", "cvc", "fundingSource"];
    if let Some(id) = card["storedPaymentMethodId"].as_str() {
        let stored = records.stored.get(id).filter(|stored| stored["shopperReference"] == body["shopperReference"])?;
        return stored["paymentMethod"]["number"].as_str().map(str::to_owned);
    }
    let is_sound = has_only(card, &members)
        && card["type"] == "scheme"
        && is_text(&card["holderName"], 1..=100)
        && is_text(&card["expiryMonth"], 2..=2)
        && is_text(&card["expiryYear"], 4..=4)
        && is_text(&card["cvc"], 3..=4)
        && absent_or(&card["fundingSource"], |source| source == "debit");
    card["number"].as_str().filter(|_| is_sound).map(str::to_owned)
}

fn pay(records: &mut Records, body: &Value) -> Outcome {
    if let Some(defect) = defect_of_payment(body) {
        return refuse(422, "702", defect);
    }
    let Some(number) = number_of(records, body) else { return refuse(422, "803", "PaymentDetail not found") };
    if !(13..=19).contains(&number.len()) {
        return Ok(error(422, "101", "Invalid card number"));
    }
    let (result_code, refusal) = match number.as_str() {
        REFUSED => ("Refused", Some(("2", "Refused", None))),
        NO_BALANCE => ("Refused", Some(("12", "Not enough balance", Some("51 : Insufficient funds")))),
        BLOCKED => ("Refused", Some(("5", "Blocked Card", Some("43 : Stolen card")))),
        CHALLENGED => ("ChallengeShopper", None),
        PARTIAL => ("PartiallyAuthorised", None),
        _ => ("Authorised", None),
    };
    let psp_reference = psp_reference(records);
    let mut details = Map::new();
    let mut answered = json!({
        "pspReference": psp_reference,
        "resultCode": result_code,
        "merchantReference": body["reference"],
        "amount": body["amount"],
    });
    match refusal {
        Some((code, reason, raw)) => {
            answered["refusalReasonCode"] = json!(code);
            answered["refusalReason"] = json!(reason);
            raw.into_iter().for_each(|raw| drop(details.insert("refusalReasonRaw".to_owned(), json!(raw))));
        }
        None => {
            answered["paymentMethod"] = json!({ "brand": "elo", "type": "scheme" });
            details.insert("authCode".to_owned(), json!("065696"));
        }
    }
    answered["additionalData"] = Value::Object(details);
    let mut stored = body.clone();
    // Whether a code came is known; the code is not.
    if let Some(code) = stored["paymentMethod"].get_mut("cvc") {
        *code = json!("***");
    }
    if matches!(result_code, "Authorised" | "Refused") {
        let (reference, value) = (body["reference"].as_str().unwrap_or_default(), body["amount"]["value"].as_i64());
        let is_authorized = result_code == "Authorised";
        records.notify("AUTHORISATION", is_authorized, &psp_reference, [reference, ""], value.unwrap_or_default());
    }
    records.payments.push(PlayedPayment {
        psp_reference,
        body: stored,
        result_code,
        captured: 0,
        refunded: 0,
        taken: 0,
        is_cancelled: false,
    });
    Ok(Reply::json(200, &answered))
}

fn modify(records: &mut Records, path: &str, (payment, kind): (&str, &str), body: &Value) -> Outcome {
    let is_sound = has_only(body, &["amount", "merchantAccount", "reference"]) && is_text(&body["reference"], 1..=80);
    let Some(amount) = reais(&body["amount"]).filter(|_| is_sound) else {
        return refuse(422, "137", "amount or reference");
    };
    let found = records.payments.iter_mut().find(|known| known.psp_reference == payment);
    let Some(found) = found.filter(|found| found.result_code == "Authorised") else {
        return refuse(422, "167", "Original pspReference required for this operation");
    };
    let total = reais(&found.body["amount"]).unwrap_or_default();
    let (event, sum, most) = match kind {
        "captures" => ("CAPTURE", &mut found.captured, if found.is_cancelled { 0 } else { total }),
        _ => ("REFUND", &mut found.refunded, found.captured - found.taken),
    };
    let is_done = *sum + amount <= most;
    *sum += if is_done { amount } else { 0 };
    let own = psp_reference(records);
    let mut answered = body.clone();
    answered["paymentPspReference"] = json!(payment);
    answered["pspReference"] = json!(own);
    answered["status"] = json!("received");
    if is_done {
        records.modifications.push((path.to_owned(), answered.clone()));
    }
    records.notify(event, is_done, &own, [body["reference"].as_str().unwrap_or_default(), payment], amount);
    Ok(Reply::json(201, &answered))
}

fn cancel(records: &mut Records, body: &Value) -> Outcome {
    let members = ["merchantAccount", "reference", "paymentReference"];
    if !has_only(body, &members) || !is_text(&body["paymentReference"], 1..=80) {
        return refuse(422, "702", "paymentReference");
    }
    let own = records.payments.iter_mut().find(|known| known.body["reference"] == body["paymentReference"]);
    let cancelled = own.filter(|payment| payment.captured == 0);
    let original = cancelled.map(|payment| {
        payment.is_cancelled = true;
        (payment.psp_reference.clone(), payment.body["amount"]["value"].as_i64().unwrap_or_default())
    });
    let own = psp_reference(records);
    let mut answered = body.clone();
    answered["pspReference"] = json!(own);
    answered["status"] = json!("received");
    if original.is_some() {
        records.modifications.push(("cancels".to_owned(), answered.clone()));
    }
    let (is_done, (original, amount)) = (original.is_some(), original.unwrap_or_default());
    let reference = body["paymentReference"].as_str().unwrap_or_default();
    records.notify("TECHNICAL_CANCEL", is_done, &own, [reference, &original], amount);
    Ok(Reply::json(201, &answered))
}

/// Deletes a stored card of a shopper; needs no key.
fn forget(records: &mut Records, request: &Request) -> Reply {
    let id = request.path.strip_prefix("/v72/storedPaymentMethods/").unwrap_or_default();
    let shopper = records.stored.get(id).and_then(|stored| stored["shopperReference"].as_str()).unwrap_or_default();
    let named = [("merchantAccount", ACCOUNT), ("shopperReference", shopper)];
    if request.query != named.map(|(name, value)| (name.to_owned(), value.to_owned())) {
        records.violations.push(format!("{}: no card of this shopper", request.path));
        return error(422, "800", "no such stored card");
    }
    records.stored.remove(id);
    Reply { status: 204, media_type: "application/json", body: String::new() }
}

fn store(records: &mut Records, body: &Value) -> Outcome {
    let members = ["merchantAccount", "paymentMethod", "recurringProcessingModel", "shopperReference"];
    let is_sound = has_only(body, &members)
        && body["recurringProcessingModel"] == "Subscription"
        && is_text(&body["shopperReference"], 3..=256);
    if !is_sound || number_of(records, body).is_none() {
        return refuse(422, "702", "a card that is stored");
    }
    let id = psp_reference(records);
    records.stored.insert(id.clone(), body.clone());
    Ok(Reply::json(201, &json!({ "id": id, "shopperReference": body["shopperReference"], "type": "scheme" })))
}
