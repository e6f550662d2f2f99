//! Player of a bridge that speaks the rail protocol (`docs/rails/rail.yaml`): it keeps records of
//! its own, refuses whatever the document does not allow, and can have one fault. What it carried
//! out is the proof of a test, not what a client says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use wire::brcode::BrCode;

use crate::played_http::{Odd, Oddity, Reply, Request, Stage, serve};

/// The secret of a client.
pub const SECRET: &str = "s3cret-of-tests";
/// A card that the issuer declines.
pub const DECLINED: &str = "4000000000000002";
/// A PIX key that nobody has.
pub const NOBODY: &str = "nobody@example.com";

/// A fault of the bridge, one for each rule that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Any secret opens it.
    AcceptsAnySecret,
    /// It says that it has none without a problem document.
    BareNotFound,
    /// Amounts of its answers are texts.
    WritesAmountsAsTexts,
    /// It cannot find what it has just taken.
    LosesOrders,
    /// It promises `same`, and carries a repeat out again.
    RepeatsOrders,
    /// Another order under an id is answered as if it were the first one.
    TakesAnotherOrder,
    /// A fraction of a centavo is cut off.
    CutsFractions,
    /// It closes an id that it never had, and takes the order that comes late.
    ForgetsClosedIds,
    /// The end of a charge that it carried out is answered with `closed`.
    ClosesWhatItCharged,
    /// It gives more back than was paid.
    RepaysTooMuch,
    /// Its batches change when they are read again.
    ChangesBatches,
    /// Two transfers have one short id.
    SharesShortIds,
    /// Every page of its lists is the first one, and has another one behind it.
    RepeatsPages,
    /// A PIX code asks for a real more than the order.
    CodesAnotherAmount,
}

/// What the player has under an id.
#[derive(Clone, Debug)]
pub struct PlayedObject {
    /// As it was ordered; null where only its end was ordered.
    pub body: Value,
    pub status: &'static str,
    /// Why it was refused.
    pub refusal: Option<&'static str>,
    pub reference: String,
    pub at: DateTime<Utc>,
}

/// A payment of a PIX charge, or of none.
#[derive(Clone, Debug)]
pub struct PlayedPayment {
    pub charge: Option<String>,
    pub end_to_end_id: String,
    pub amount: i64,
    pub at: DateTime<Utc>,
}

/// The player's records, and how it behaves.
pub struct RailRecords {
    pub capabilities: Value,
    /// By path: `/cards/ID`.
    pub objects: BTreeMap<String, PlayedObject>,
    /// The path of the transfer that has a short id.
    pub short_ids: BTreeMap<String, String>,
    /// The institution keeps short ids, whatever the capabilities declare.
    pub keeps_short_ids: bool,
    /// The path of each order that moved money, once for each time.
    pub carried_out: Vec<String>,
    /// Cards that were deleted.
    pub deleted_tokens: Vec<String>,
    pub payments: Vec<PlayedPayment>,
    /// Cases of payers' banks, as they are answered.
    pub cases: Vec<Value>,
    /// Batches of the acquirer, as they are answered, without `is_last`.
    pub batches: Vec<Value>,
    /// Entries of a page at most.
    pub page_items: usize,
    /// The status of a transfer or repayment when it is ordered.
    pub status: &'static str,
    /// Requests that the document does not allow, with why.
    pub violations: Vec<String>,
    pub fault: Option<Fault>,
    /// How far its clock is ahead of the machine's.
    pub ahead: TimeDelta,
    reads: usize,
}

impl RailRecords {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.ahead
    }
}

/// The player; it ends when it is dropped.
pub struct RailPlayer {
    pub address: SocketAddr,
    stage: Arc<Mutex<Stage>>,
    records: Arc<Mutex<RailRecords>>,
    task: JoinHandle<()>,
}

impl Drop for RailPlayer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl RailPlayer {
    /// Listens on loopback; a repeat is answered the same, refused, or carried out again.
    pub async fn start(repeats: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let records = RailRecords {
            capabilities: json!({
                "test": true, "serves": ["card", "pix", "payout"], "repeats": repeats, "remembers_s": 86_400,
                "horizon_s": 600, "closes": true, "answers_within_ms": 15_000, "disputes": true,
                "deletes_tokens": true,
            }),
            objects: BTreeMap::new(),
            short_ids: BTreeMap::new(),
            keeps_short_ids: false,
            carried_out: Vec::new(),
            deleted_tokens: Vec::new(),
            payments: Vec::new(),
            cases: Vec::new(),
            batches: Vec::new(),
            page_items: 1_000,
            status: "done",
            violations: Vec::new(),
            fault: None,
            ahead: TimeDelta::zero(),
            reads: 0,
        };
        let (stage, records) = (Arc::default(), Arc::new(Mutex::new(records)));
        let shared = Arc::clone(&records);
        let handler = Arc::new(move |request: &Request| answer(&mut shared.lock(), request));
        let task = tokio::spawn(serve(listener, None, Arc::clone(&stage), handler));
        Self { address, stage, records, task }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn records(&self) -> MutexGuard<'_, RailRecords> {
        self.records.lock()
    }

    pub fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock()
    }

    /// Misbehaves for a number of requests.
    pub fn is_odd(&self, method: &'static str, path: &'static str, times: usize, oddity: Oddity) {
        self.stage().odd.push(Odd { method, path, times, oddity });
    }

    /// How many requests of a method came whose path has a part.
    pub fn count(&self, method: &str, path: &str) -> usize {
        let stage = self.stage();
        stage.requests.iter().filter(|seen| seen.method == method && seen.path.contains(path)).count()
    }

    /// How often an order was carried out.
    pub fn carried_out(&self, path: &str) -> usize {
        self.records().carried_out.iter().filter(|known| *known == path).count()
    }

    /// A payer pays a PIX charge, or to the key alone; gives the payment's end-to-end id.
    pub fn pay(&self, charge: Option<&str>, amount: i64) -> String {
        let mut records = self.records();
        let end_to_end_id = format!("E12345678202611281200{:011}", records.payments.len());
        let (charge_id, id, at) = (charge.map(str::to_owned), end_to_end_id.clone(), records.now());
        records.payments.push(PlayedPayment { charge: charge_id, end_to_end_id: id, amount, at });
        if let Some(object) = charge.and_then(|id| records.objects.get_mut(&format!("/pix/{id}"))) {
            object.status = "paid";
        }
        end_to_end_id
    }

    /// A payer's bank wants money of a charge back, or what became of that.
    pub fn dispute(&self, case: &str, charge: &str, amount: i64, status: &str) {
        let mut records = self.records();
        records.cases.retain(|known| known["case"] != case);
        let mut found = json!({
            "case": case, "charge": charge, "amount": amount, "reason": "Compra não reconhecida",
            "due_at": instant(Utc::now() + chrono::Duration::days(7)), "status": status, "at": instant(Utc::now()),
        });
        if status == "debited" {
            found["reference"] = json!(format!("debit-{case}"));
        }
        records.cases.push(found);
    }

    /// A batch pays a line for each of these charges, given with its amount.
    pub fn settle(&self, charges: &[(String, i64)]) {
        let mut records = self.records();
        let number = records.batches.len() + 1;
        let lines: Vec<_> = charges
            .iter()
            .map(|(charge, gross)| {
                json!({ "charge": charge, "kind": "installment", "number": 1, "gross": gross, "fee": fee(*gross) })
            })
            .collect();
        let batch = json!({
            "number": number, "reference": format!("LOTE-{number}"), "paid_on": "2026-11-30", "lines": lines,
        });
        records.batches.push(batch);
    }
}

fn problem(status: u16, code: &str, id: Option<&str>) -> Reply {
    let body = json!({ "type": "about:blank", "title": code, "status": status, "code": code, "id": id });
    Reply { status, media_type: "application/problem+json", body: body.to_string() }
}

fn page_of_a_gateway() -> Reply {
    Reply { status: 404, media_type: "text/html", body: "<h1>Not Found</h1>".to_owned() }
}

fn answer(records: &mut RailRecords, request: &Request) -> Reply {
    let has_secret = request.header("authorization") == Some(&format!("Bearer {SECRET}"));
    if !has_secret && records.fault != Some(Fault::AcceptsAnySecret) {
        return problem(401, "unauthorized", None);
    }
    let path: Vec<_> = request.path.split('/').skip(1).collect();
    match (request.method.as_str(), path.as_slice()) {
        ("GET", ["capabilities"]) => Reply::json(200, &records.capabilities),
        ("GET", ["changes"]) => changes(records, request),
        ("GET", ["settlements"]) => settlements(records, request),
        ("POST", ["tokens"]) => match defect_of_card(&request.json()["card"]) {
            None => Reply::json(201, &json!({ "token": "tok_of_a_card" })),
            Some(defect) => invalid(records, request, defect),
        },
        ("POST", ["tokens", "delete"]) if records.capabilities["deletes_tokens"] == true => {
            let body = request.json();
            let Some(token) = body["token"].as_str() else { return invalid(records, request, "it names no token") };
            records.deleted_tokens.push(token.to_owned());
            Reply { status: 204, media_type: "application/json", body: String::new() }
        }
        ("PUT", [list @ ("cards" | "pix"), id, "close"]) if records.capabilities["closes"] == true => {
            close(records, list, id)
        }
        ("PUT", [list @ ("cards" | "pix" | "payouts" | "repayments"), id]) => order(records, request, list, id),
        ("GET", [list @ ("cards" | "pix" | "payouts" | "repayments"), id]) => get(records, request, list, id),
        _ => page_of_a_gateway(),
    }
}

fn invalid(records: &mut RailRecords, request: &Request, defect: &str) -> Reply {
    records.violations.push(format!("{} {}: {defect}", request.method, request.path));
    problem(400, "invalid", None)
}

fn order(records: &mut RailRecords, request: &Request, list: &str, id: &str) -> Reply {
    let mut body = request.json();
    if records.fault == Some(Fault::CutsFractions)
        && let Some(amount) = body["amount"].as_f64()
    {
        body["amount"] = json!(amount as i64);
    }
    if let Some(defect) = defect_of_order(list, id, &body) {
        return invalid(records, request, defect);
    }
    let path = format!("/{list}/{id}");
    if let Some(short_id) = short_id(records, request, list) {
        if short_id.len() != 20 || !short_id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) {
            return invalid(records, request, "short_id");
        }
        let own = records.short_ids.entry(short_id).or_insert_with(|| path.clone());
        if *own != path && records.fault != Some(Fault::SharesShortIds) {
            return problem(409, "other_order", Some(id));
        }
    }
    let known = records.objects.get(&path).cloned();
    let repeats = records.capabilities["repeats"].as_str().unwrap_or_default().to_owned();
    if let Some(known) = known {
        let is_same = known.body == body;
        let carries_out_again = repeats == "again" || (is_same && records.fault == Some(Fault::RepeatsOrders));
        match (known.status, repeats.as_str()) {
            ("closed", _) => return shown(records, list, id, 200),
            _ if carries_out_again => {}
            (_, "refused") => return problem(409, "already_exists", Some(id)),
            _ if is_same || records.fault == Some(Fault::TakesAnotherOrder) => return shown(records, list, id, 200),
            _ => return problem(409, "other_order", Some(id)),
        }
    }
    let refusal = refusal(records, list, &body);
    let number = records.carried_out.len() + records.objects.len() + 1;
    let status = match (list, refusal) {
        (_, Some(_)) => "refused",
        ("cards", None) => "captured",
        ("pix", None) => "open",
        _ => records.status,
    };
    if refusal.is_none() && list != "pix" {
        records.carried_out.push(path.clone());
    }
    let (reference, at) = (format!("ref-{number}"), records.now());
    records.objects.insert(path, PlayedObject { body, status, refusal, reference, at });
    shown(records, list, id, 201)
}

/// Why an order is not carried out, now or ever.
fn refusal(records: &RailRecords, list: &str, body: &Value) -> Option<&'static str> {
    match list {
        "cards" if body["card"]["number"] == DECLINED => Some("declined"),
        "payouts" if body["to"]["pix_key"]["key"] == NOBODY => Some("invalid_receiver"),
        "repayments" => {
            let (payment, charge) = (&body["payment"], body["charge"].as_str().unwrap_or_default());
            let card = records.objects.get(&format!("/cards/{charge}"));
            let of_card = card.filter(|card| card.status == "captured" && *payment == card.reference);
            let of_pix = records.payments.iter().find(|known| *payment == known.end_to_end_id);
            let paid = of_card.and_then(|card| card.body["amount"].as_i64()).or(of_pix.map(|known| known.amount));
            let Some(paid) = paid else { return Some("unknown_payment") };
            let given_back = records.objects.iter().filter(|(path, known)| {
                path.starts_with("/repayments/") && known.refusal.is_none() && known.body["payment"] == *payment
            });
            let given_back: i64 = given_back.filter_map(|(_, known)| known.body["amount"].as_i64()).sum();
            let is_too_much = given_back + body["amount"].as_i64().unwrap_or_default() > paid;
            (is_too_much && records.fault != Some(Fault::RepaysTooMuch)).then_some("amount_exceeds_payment")
        }
        _ => None,
    }
}

/// The short id of a transfer, where the institution keeps no other one; empty where it is absent.
fn short_id(records: &RailRecords, request: &Request, list: &str) -> Option<String> {
    let keeps_them = records.keeps_short_ids || records.capabilities["id_length"].is_u64();
    let wants_one = list == "payouts" && keeps_them;
    wants_one.then(|| request.parameter("short_id").unwrap_or_default().to_owned())
}

fn get(records: &mut RailRecords, request: &Request, list: &str, id: &str) -> Reply {
    // An institution that keeps short ids finds by nothing else.
    let path = short_id(records, request, list).map(|short_id| records.short_ids.get(&short_id).cloned());
    if path.is_some_and(|path| path != Some(format!("/{list}/{id}"))) {
        return problem(404, "not_found", Some(id));
    }
    if records.objects.contains_key(&format!("/{list}/{id}")) && records.fault != Some(Fault::LosesOrders) {
        return shown(records, list, id, 200);
    }
    match records.fault {
        Some(Fault::BareNotFound) => Reply::json(404, &json!({ "message": "not found" })),
        _ => problem(404, "not_found", Some(id)),
    }
}

fn close(records: &mut RailRecords, list: &str, id: &str) -> Reply {
    let path = format!("/{list}/{id}");
    let at = records.now();
    let closed = PlayedObject { body: Value::Null, status: "closed", refusal: None, reference: String::new(), at };
    match (records.objects.get_mut(&path), records.fault) {
        (None, Some(Fault::ForgetsClosedIds)) => return Reply::json(200, &json!({ "id": id, "status": "closed" })),
        (Some(_), Some(Fault::ClosesWhatItCharged)) if list == "cards" => {
            return Reply::json(200, &json!({ "id": id, "status": "closed" }));
        }
        (None, _) => {
            records.objects.insert(path, closed);
        }
        (Some(known), _) if known.status == "open" => known.status = "closed",
        (Some(_), _) => {}
    }
    shown(records, list, id, 200)
}

/// The object as it is answered.
fn shown(records: &RailRecords, list: &str, id: &str, status: u16) -> Reply {
    let known = &records.objects[&format!("/{list}/{id}")];
    if let Some(code) = known.refusal {
        return problem(422, code, Some(id));
    }
    let mut body = json!({ "id": id, "status": known.status });
    if let Some(amount) = known.body["amount"].as_i64() {
        let as_text = records.fault == Some(Fault::WritesAmountsAsTexts);
        body["amount"] = if as_text { json!(format!("{}.{:02}", amount / 100, amount % 100)) } else { json!(amount) };
        if list == "cards" {
            (body["fee"], body["brand"]) = (json!(fee(amount)), json!("visa"));
            (body["authorization"], body["nsu"]) = (json!("A1B2C3"), json!("000000000017"));
        }
    }
    if !known.reference.is_empty() {
        (body["reference"], body["at"]) = (json!(known.reference), json!(instant(known.at)));
    }
    let payment = records.payments.iter().find(|payment| payment.charge.as_deref() == Some(id));
    match (list, known.status) {
        ("pix", "open") => {
            let more = if records.fault == Some(Fault::CodesAnotherAmount) { 100 } else { 0 };
            body["code"] = json!(code(id, &known.body, more));
        }
        ("pix", "paid") => body["payment"] = payment.map(payment_text).unwrap_or_default(),
        ("payouts", "done") => body["end_to_end_id"] = json!(format!("E87654321{}", &id[9..])),
        ("payouts", "returned") => {
            body["returned"] = returned(known);
        }
        _ => {}
    }
    // Members that have these names in other answers.
    match list {
        "repayments" => body["payment"] = known.body["payment"].clone(),
        "payouts" => (body["code"], body["fee"]) = (json!(7), json!("0.00")),
        _ => {}
    }
    Reply::json(status, &body)
}

fn fee(amount: i64) -> i64 {
    amount * 3 / 100
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

fn code(id: &str, body: &Value, more: i64) -> String {
    let location = format!("pix.example.com/v2/{id}");
    let amount_centavos = body["amount"].as_i64().unwrap_or_default() + more;
    let code = BrCode { location: &location, amount_centavos, merchant_name: "Loja", merchant_city: "Sao Paulo" };
    code.payload().unwrap()
}

fn payment_text(payment: &PlayedPayment) -> Value {
    let PlayedPayment { charge, end_to_end_id, amount, at } = payment;
    json!({ "charge": charge, "end_to_end_id": end_to_end_id, "amount": amount, "at": instant(*at) })
}

/// A transfer whose money came back.
fn returned_text(path: &str, object: &PlayedObject) -> Option<(DateTime<Utc>, Value)> {
    let id = path.strip_prefix("/payouts/").filter(|_| object.status == "returned")?;
    let mut change = returned(object);
    (change["id"], change["amount"]) = (json!(id), object.body["amount"].clone());
    Some((object.at, change))
}

fn returned(object: &PlayedObject) -> Value {
    json!({ "reference": format!("back-{}", object.reference), "at": instant(object.at), "reason": "account closed" })
}

fn case_at(case: &Value) -> DateTime<Utc> {
    case["at"].as_str().and_then(|at| at.parse().ok()).expect("a case has its time")
}

fn changes(records: &mut RailRecords, request: &Request) -> Reply {
    let kind = request.parameter("kind").filter(|kind| matches!(*kind, "payment" | "returned_payout" | "dispute"));
    let at = |name: &str| DateTime::parse_from_rfc3339(request.parameter(name)?).ok();
    let page = request.parameter("page").and_then(|page| page.parse::<usize>().ok());
    let is_repeated = records.fault == Some(Fault::RepeatsPages);
    let (Some(kind), Some(from), Some(until), Some(page)) = (kind, at("from"), at("until"), page) else {
        return invalid(records, request, "a list of changes without kind, from, until and page");
    };
    let all: Vec<(DateTime<Utc>, Value)> = match kind {
        "dispute" => records.cases.iter().map(|case| (case_at(case), case.clone())).collect(),
        "payment" => records.payments.iter().map(|payment| (payment.at, payment_text(payment))).collect(),
        _ => records.objects.iter().filter_map(|(path, object)| returned_text(path, object)).collect(),
    };
    let within: Vec<_> =
        all.into_iter().filter(|(at, _)| from <= *at && *at <= until).map(|(_, change)| change).collect();
    let page = if is_repeated { 0 } else { page };
    let has_more = (is_repeated && !within.is_empty()) || within.len() > (page + 1) * records.page_items;
    let changes: Vec<_> = within.into_iter().skip(page * records.page_items).take(records.page_items).collect();
    Reply::json(200, &json!({ "changes": changes, "has_more": has_more }))
}

fn settlements(records: &mut RailRecords, request: &Request) -> Reply {
    let number = |name: &str| request.parameter(name)?.parse::<u64>().ok();
    let (Some(after), Some(line)) = (number("after"), number("line")) else {
        return invalid(records, request, "a list of batches without after and line");
    };
    records.reads += 1;
    let next = records.batches.iter().find(|batch| batch["number"].as_u64().is_some_and(|number| number > after));
    let Some(mut batch) = next.cloned() else { return Reply::json(200, &json!({ "batch": null })) };
    let lines = batch["lines"].as_array().cloned().unwrap_or_default();
    let behind: Vec<_> = lines.into_iter().skip(usize::try_from(line).unwrap_or(usize::MAX)).collect();
    batch["is_last"] = json!(behind.len() <= records.page_items);
    batch["lines"] = behind.into_iter().take(records.page_items).collect();
    if records.fault == Some(Fault::ChangesBatches) {
        batch["lines"][0]["fee"] = json!(records.reads);
    }
    Reply::json(200, &json!({ "batch": batch }))
}

fn has_only(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|members| members.keys().all(|name| names.contains(&name.as_str())))
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn defect_of_card(card: &Value) -> Option<&'static str> {
    let is_code = card.get("cvv").is_none_or(is_text);
    let is_kept = has_only(card, &["token", "cvv"]) && is_text(&card["token"]) && is_code;
    let is_given = has_only(card, &["number", "holder_name", "exp_month", "exp_year", "cvv"])
        && card["number"].as_str().is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        && is_text(&card["holder_name"])
        && card["exp_month"].as_u64().is_some_and(|month| (1..=12).contains(&month))
        && card["exp_year"].as_u64().is_some_and(|year| (2_000..=9_999).contains(&year))
        && is_text(&card["cvv"]);
    (!is_kept && !is_given).then_some("card")
}

/// Why an order is not one that the document allows.
fn defect_of_order(list: &str, id: &str, body: &Value) -> Option<&'static str> {
    let is_id = |text: &str| {
        text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    if !is_id(id) {
        return Some("id");
    }
    if body["amount"].as_i64().is_none_or(|amount| amount < 1) {
        return Some("amount");
    }
    match list {
        "cards" => {
            let is_sound = has_only(body, &["amount", "installments", "method", "card", "merchant"])
                && body["installments"].as_u64().is_some_and(|count| (1..=12).contains(&count))
                && matches!(body["method"].as_str(), Some("credit" | "debit"));
            defect_of_card(&body["card"]).or((!is_sound).then_some("a card charge"))
        }
        "pix" => {
            let expires_at = body["expires_at"].as_str().unwrap_or_default();
            let is_sound = has_only(body, &["amount", "expires_at", "payer", "description"])
                && expires_at.ends_with('Z')
                && DateTime::parse_from_rfc3339(expires_at).is_ok()
                && has_only(&body["payer"], &["name", "document"]);
            (!is_sound).then_some("a PIX charge")
        }
        "payouts" => {
            let (key, account) = (&body["to"]["pix_key"], &body["to"]["account"]);
            let is_sound = has_only(body, &["amount", "to"]) && (is_text(&key["key"]) != is_text(&account["conta"]));
            (!is_sound).then_some("a transfer")
        }
        _ => {
            let is_sound = has_only(body, &["amount", "kind", "charge", "payment", "before"])
                && matches!(body["kind"].as_str(), Some("refund" | "dispute"))
                && body["charge"].as_str().is_some_and(is_id)
                && is_text(&body["payment"]);
            (!is_sound).then_some("a repayment")
        }
    }
}
