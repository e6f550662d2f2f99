//! Player of an institution that receives PIX payments: it speaks the Central Bank's API Pix in the
//! dialects of five, keeps records of its own, and refuses whatever the document does not allow.
//! Its records are the proof of a test, not what a client says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;
use wire::brcode::BrCode;

use crate::efi_player::{self, PlayedPayouts};
use crate::played_http::{Odd, Oddity, Reply, Request, Stage, serve};

/// The client's id at the player.
pub const CLIENT_ID: &str = "Client_Id_of_tests";
/// The client's secret at the player.
pub const CLIENT_SECRET: &str = "s3cret-of:tests";
/// The receiver's key.
pub const KEY: &str = "7d9f0335-8dcc-4054-9bf9-0dbd61d36906";
/// The receiver's account, where a dialect names it.
pub const ACCOUNT: &str = "1234567";

/// What the institution wants, written apart from the adapter's table.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub dialect: &'static str,
    pub token_path: &'static str,
    /// The fields of a login; a secret is in them or in the header.
    pub login: &'static [&'static str],
    pub login_is_json: bool,
    pub login_is_basic: bool,
    /// Path that the settings' address has.
    pub base: &'static str,
    pub cob: &'static str,
    pub pix: &'static str,
    pub webhook: &'static str,
    /// A header of every call, with its value.
    pub header: Option<(&'static str, &'static str)>,
}

/// The document, and the five that speak it.
pub const RULES: [Rules; 6] = [
    Rules {
        dialect: "bacen",
        token_path: "/oauth/token",
        login: &["grant_type", "scope"],
        login_is_json: false,
        login_is_basic: true,
        base: "/api/v2",
        cob: "/api/v2/cob",
        pix: "/api/v2/pix",
        webhook: "/api/v2/webhook",
        header: None,
    },
    Rules {
        dialect: "bb",
        token_path: "/oauth/token",
        login: &["grant_type", "client_id", "scope"],
        login_is_json: false,
        login_is_basic: false,
        base: "/pix/v2",
        cob: "/pix/v2/cob",
        pix: "/pix/v2/pix",
        webhook: "/pix/v2/webhook",
        header: None,
    },
    Rules {
        dialect: "inter",
        token_path: "/oauth/v2/token",
        login: &["grant_type", "client_id", "client_secret", "scope"],
        login_is_json: false,
        login_is_basic: false,
        base: "/pix/v2",
        cob: "/pix/v2/cob",
        pix: "/pix/v2/pix",
        webhook: "/pix/v2/webhook",
        header: Some(("x-conta-corrente", ACCOUNT)),
    },
    Rules {
        dialect: "sicoob",
        token_path: "/auth/realms/cooperado/protocol/openid-connect/token",
        login: &["grant_type", "client_id", "scope"],
        login_is_json: false,
        login_is_basic: false,
        base: "/pix/api/v2",
        cob: "/pix/api/v2/cob",
        pix: "/pix/api/v2/pix",
        webhook: "/pix/api/v2/webhook",
        header: Some(("client_id", CLIENT_ID)),
    },
    Rules {
        dialect: "sicredi",
        token_path: "/oauth/token",
        login: &["grant_type", "scope"],
        login_is_json: false,
        login_is_basic: true,
        base: "/api",
        cob: "/api/v3/cob",
        pix: "/api/v2/pix",
        webhook: "/api/v2/webhook",
        header: None,
    },
    Rules {
        dialect: "efi",
        token_path: "/oauth/token",
        login: &["grant_type"],
        login_is_json: true,
        login_is_basic: true,
        base: "",
        cob: "/v2/cob",
        pix: "/v2/pix",
        webhook: "/v2/webhook",
        header: None,
    },
];

/// The rules of a dialect.
pub fn rules(dialect: &str) -> Rules {
    *RULES.iter().find(|rules| rules.dialect == dialect).expect("a dialect that there is")
}

/// A charge in the player's records.
#[derive(Clone, Debug)]
pub struct PlayedCharge {
    /// As it was ordered.
    pub body: Value,
    pub status: &'static str,
    pub created_at: DateTime<Utc>,
    /// How often it was ordered.
    pub orders: usize,
}

/// A payment in the player's records.
#[derive(Clone, Debug)]
pub struct PlayedPayment {
    pub end_to_end_id: String,
    pub txid: Option<String>,
    pub amount: String,
    pub at: DateTime<Utc>,
    /// Its returns, as they are answered, in their order.
    pub returns: Vec<Value>,
}

/// The player's records, and how it behaves.
pub struct Records {
    pub charges: BTreeMap<String, PlayedCharge>,
    pub payments: Vec<PlayedPayment>,
    /// Transfers out, of the dialect that has them.
    pub payouts: PlayedPayouts,
    /// Infractions, as they are answered, of the dialect that has them.
    pub infractions: Vec<Value>,
    /// Answers to infractions, by the id of the infraction.
    pub defenses: Vec<(String, Value)>,
    /// Callback addresses by key.
    pub webhooks: BTreeMap<String, String>,
    /// A charge or return that is ordered again is refused, not answered the same.
    pub refuses_repeats: bool,
    /// The status of a return when it is ordered.
    pub return_status: &'static str,
    /// Payments of a page at most.
    pub page_items: usize,
    /// `expires_in` of a token.
    pub token_life: Value,
    /// Requests that the document does not allow, with why.
    pub violations: Vec<String>,
    /// How far its clock is ahead of the machine's.
    pub ahead: TimeDelta,
    /// Tokens that were given out.
    pub logins: usize,
    tokens: BTreeMap<String, Instant>,
}

impl Records {
    /// The tokens of today are refused from now on.
    pub fn end_tokens(&mut self) {
        self.tokens.clear();
    }

    /// The time by its clock.
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + self.ahead
    }
}

/// The player; it ends when it is dropped.
pub struct Player {
    pub address: SocketAddr,
    pub rules: Rules,
    stage: Arc<Mutex<Stage>>,
    records: Arc<Mutex<Records>>,
    task: JoinHandle<()>,
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Player {
    /// Listens on loopback, without TLS.
    pub async fn start(dialect: &str) -> Self {
        Self::start_with(dialect, None).await
    }

    /// Listens on loopback.
    pub async fn start_with(dialect: &str, tls: Option<Arc<ServerConfig>>) -> Self {
        let rules = rules(dialect);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let records = Records {
            charges: BTreeMap::new(),
            payments: Vec::new(),
            payouts: PlayedPayouts::default(),
            infractions: Vec::new(),
            defenses: Vec::new(),
            webhooks: BTreeMap::new(),
            refuses_repeats: false,
            return_status: "DEVOLVIDO",
            page_items: 1_000,
            token_life: json!(3600),
            violations: Vec::new(),
            ahead: TimeDelta::zero(),
            logins: 0,
            tokens: BTreeMap::new(),
        };
        let (stage, records) = (Arc::default(), Arc::new(Mutex::new(records)));
        let shared = Arc::clone(&records);
        let handler = Arc::new(move |request: &Request| answer(rules, &mut shared.lock(), request));
        let task = tokio::spawn(serve(listener, tls, Arc::clone(&stage), handler));
        Self { address, rules, stage, records, task }
    }

    /// Settings of a client, as JSON; the secret's file is the caller's.
    pub fn settings(&self, secret_file: &std::path::Path) -> Value {
        let url = format!("http://{}", self.address);
        json!({
            "dialect": self.rules.dialect,
            "url": format!("{url}{}", self.rules.base),
            "token_url": format!("{url}{}", self.rules.token_path),
            "client_id": CLIENT_ID,
            "client_secret_file": secret_file,
            "key": KEY,
            "account": ACCOUNT,
        })
    }

    pub fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock()
    }

    pub fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock()
    }

    /// Misbehaves for a number of requests.
    pub fn is_odd(&self, method: &'static str, path: &'static str, times: usize, oddity: Oddity) {
        self.stage().odd.push(Odd { method, path, times, oddity });
    }

    /// The requests of a method whose path has a part.
    pub fn requests(&self, method: &str, path: &str) -> Vec<Request> {
        let stage = self.stage();
        let of = stage.requests.iter().filter(|seen| seen.method == method && seen.path.contains(path));
        of.cloned().collect()
    }

    /// A payer pays a charge, or to the key alone; gives the payment's end-to-end id.
    pub fn pay(&self, txid: Option<&str>, amount: &str) -> String {
        let mut records = self.records();
        let (at, end_to_end_id) = (records.now(), format!("E12345678202611281200{:011}", records.payments.len()));
        records.payments.push(PlayedPayment {
            end_to_end_id: end_to_end_id.clone(),
            txid: txid.map(str::to_owned),
            amount: amount.to_owned(),
            at,
            returns: Vec::new(),
        });
        if let Some(charge) = txid.and_then(|txid| records.charges.get_mut(txid)) {
            charge.status = "CONCLUIDA";
        }
        end_to_end_id
    }

    /// The institution returns money of a payment by itself.
    pub fn dispute(&self, end_to_end_id: &str, natureza: &str, amount: &str, status: &str) {
        let mut records = self.records();
        let now = records.now();
        let payment = records.payments.iter_mut().find(|payment| payment.end_to_end_id == end_to_end_id);
        let payment = payment.expect("a payment that there is");
        let number = payment.returns.len();
        let made = returned(&format!("med{number}"), end_to_end_id, amount, natureza, status, (number, now));
        payment.returns.push(made);
    }

    /// A return that was under way ends.
    pub fn end_return(&self, id: &str, status: &str) {
        let mut records = self.records();
        let mut all = records.payments.iter_mut().flat_map(|payment| &mut payment.returns);
        all.find(|made| made["id"] == id).expect("a return that there is")["status"] = json!(status);
    }

    /// All returns that moved money.
    pub fn returns_done(&self) -> Vec<Value> {
        let records = self.records();
        let all = records.payments.iter().flat_map(|payment| &payment.returns);
        all.filter(|made| made["status"] == "DEVOLVIDO").cloned().collect()
    }
}

/// Why a request is not carried out.
pub(crate) struct Refusal {
    status: u16,
    word: &'static str,
    why: String,
}

pub(crate) type Outcome = Result<Reply, Refusal>;

pub(crate) fn refuse<T>(status: u16, word: &'static str, why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { status, word, why: why.into() })
}

fn answer(rules: Rules, records: &mut Records, request: &Request) -> Reply {
    let outcome = if request.path == rules.token_path {
        log_in(rules, records, request)
    } else {
        check_call(rules, records, request).and_then(|()| route(rules, records, request))
    };
    outcome.unwrap_or_else(|Refusal { status, word, why }| {
        if matches!(status, 400 | 415) && !why.starts_with("business: ") {
            records.violations.push(format!("{} {}: {why}", request.method, request.path));
        }
        let (status, body) = match (rules.dialect, status, word) {
            ("efi", 404, "CobNaoEncontrado") => (400, json!({ "nome": "cobranca_nao_encontrada", "mensagem": why })),
            ("efi", 404, "PixDevolucaoNaoEncontrada") => {
                (400, json!({ "nome": "devolucao_nao_encontrada", "mensagem": why }))
            }
            // The words of its own part of the API are no problem documents.
            ("efi", _, word) if word.contains('_') => (status, json!({ "nome": word, "mensagem": why })),
            _ => {
                let kind = format!("https://pix.bcb.gov.br/api/v2/error/{word}");
                let violations = json!([{ "razao": why, "propriedade": "pedido" }]);
                (
                    status,
                    json!({ "type": kind, "title": word, "status": status, "detail": why, "violacoes": violations }),
                )
            }
        };
        Reply { status, media_type: "application/problem+json", body: body.to_string() }
    })
}

/// A request for a token must show the client in the dialect's way, and in no other.
fn log_in(rules: Rules, records: &mut Records, request: &Request) -> Outcome {
    let basic = format!("Basic {}", BASE64_STANDARD.encode(format!("{CLIENT_ID}:{CLIENT_SECRET}")));
    let expected = rules.login_is_basic.then_some(basic.as_str());
    if request.method != "POST" || request.header("authorization") != expected {
        return refuse(400, "invalid_client", "another way to show the client");
    }
    let media_type = request.header("content-type").unwrap_or_default();
    let fields: BTreeMap<String, String> = match (rules.login_is_json, media_type) {
        (true, "application/json") => serde_json::from_slice(&request.body).unwrap_or_default(),
        (false, "application/x-www-form-urlencoded") => form_urlencoded::parse(&request.body).into_owned().collect(),
        _ => return refuse(415, "invalid_request", format!("a login as {media_type}")),
    };
    let mut expected: Vec<_> = rules.login.to_vec();
    expected.sort_unstable();
    if fields.keys().map(String::as_str).collect::<Vec<_>>() != expected {
        return refuse(400, "invalid_request", format!("a login with {:?}", fields.keys()));
    }
    let has = |name: &str, value: &str| fields.get(name).is_none_or(|known| known == value);
    if !has("grant_type", "client_credentials") || !has("client_id", CLIENT_ID) || !has("client_secret", CLIENT_SECRET)
    {
        return refuse(400, "invalid_client", "another client");
    }
    records.logins += 1;
    let token = format!("token-{}", records.logins);
    let seconds = records.token_life.as_u64().or_else(|| records.token_life.as_str()?.parse().ok()).unwrap_or(3600);
    records.tokens.insert(token.clone(), Instant::now() + Duration::from_secs(seconds));
    Ok(Reply::json(200, &json!({ "access_token": token, "token_type": "Bearer", "expires_in": records.token_life })))
}

fn check_call(rules: Rules, records: &Records, request: &Request) -> Result<(), Refusal> {
    let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let end = token.and_then(|token| records.tokens.get(token));
    if end.is_none_or(|end| *end <= Instant::now()) {
        return refuse(401, "NaoAutorizado", "no token, or one that has ended");
    }
    if let Some((name, value)) = rules.header
        && request.header(name) != Some(value)
    {
        return refuse(400, "RequisicaoInvalida", format!("no header {name}"));
    }
    if !request.body.is_empty() && request.header("content-type") != Some("application/json") {
        return refuse(415, "RequisicaoInvalida", "a body that is not JSON");
    }
    Ok(())
}

fn route(rules: Rules, records: &mut Records, request: &Request) -> Outcome {
    let under = |resource: &str| request.path.strip_prefix(resource).and_then(|rest| rest.strip_prefix('/'));
    let method = request.method.as_str();
    if let Some(txid) = under(rules.cob) {
        return match method {
            "PUT" => put_charge(records, txid, &request.json()),
            "PATCH" => patch_charge(records, txid, &request.json()),
            "GET" => get_charge(records, txid),
            _ => refuse(405, "RequisicaoInvalida", "no such method"),
        };
    }
    if let Some(key) = under(rules.webhook).filter(|_| method == "PUT") {
        return put_webhook(records, key, &request.json());
    }
    if request.path == rules.pix && method == "GET" {
        return list_payments(records, request);
    }
    if rules.dialect == "efi"
        && let Some(rest) = request.path.strip_prefix("/v2/gn/infracoes")
    {
        return infraction(records, request, rest);
    }
    if rules.dialect == "efi"
        && let Some(outcome) = efi_player::route(records, request)
    {
        return outcome;
    }
    let parts: Vec<_> = under(rules.pix).map(|rest| rest.split('/').collect()).unwrap_or_default();
    match (method, parts.as_slice()) {
        ("GET", [payment]) => get_payment(records, payment),
        ("PUT", [payment, "devolucao", id]) => put_return(records, payment, id, &request.json()),
        ("GET", [payment, "devolucao", id]) => get_return(records, payment, id),
        // A gateway's page, not the institution's document.
        _ => Ok(Reply { status: 404, media_type: "text/html", body: "<h1>Not Found</h1>".to_owned() }),
    }
}

/// The list of infractions, or an answer to one, which is taken once.
fn infraction(records: &mut Records, request: &Request, rest: &str) -> Outcome {
    let id = rest.strip_prefix('/').and_then(|rest| rest.strip_suffix("/defesa"));
    match (request.method.as_str(), id) {
        ("GET", None) if request.parameter("inicio").is_some() && request.parameter("fim").is_some() => {
            Ok(Reply::json(200, &json!({ "infracoes": records.infractions })))
        }
        ("POST", Some(id)) => {
            let body = request.json();
            let is_sound = has_only(&body, &["analise", "justificativa"])
                && ["aceito", "rejeitado"].contains(&body["analise"].as_str().unwrap_or_default())
                && is_text(&body["justificativa"], 500);
            let is_known = records.infractions.iter().any(|known| known["idInfracao"] == id);
            if !is_sound || !is_known || records.defenses.iter().any(|(known, _)| known == id) {
                return refuse(400, "RequisicaoInvalida", "no answer to an infraction");
            }
            records.defenses.push((id.to_owned(), body));
            Ok(Reply::json(201, &json!({})))
        }
        _ => refuse(400, "RequisicaoInvalida", "no list of infractions"),
    }
}

pub(crate) fn is_id(text: &str, lengths: std::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Centavos of an amount as the document writes it.
pub(crate) fn centavos(value: &Value) -> Option<u64> {
    let (reais, centavos) = value.as_str()?.split_once('.')?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_sound = reais.len() <= 10 && centavos.len() == 2 && is_digits(reais) && is_digits(centavos);
    is_sound.then(|| format!("{reais}{centavos}").parse().ok()).flatten()
}

pub(crate) fn has_only(value: &Value, names: &[&str]) -> bool {
    value.as_object().is_some_and(|members| members.keys().all(|name| names.contains(&name.as_str())))
}

pub(crate) fn is_text(value: &Value, len_max: usize) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.chars().count() <= len_max)
}

/// Why a charge is not one that the document allows.
fn defect_of_charge(txid: &str, body: &Value) -> Option<&'static str> {
    let debtor = &body["devedor"];
    let is_digits = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_person = debtor["cpf"].as_str().is_some_and(|cpf| is_digits(cpf, 11)) && debtor["cnpj"].is_null();
    let is_company = debtor["cnpj"].as_str().is_some_and(|cnpj| is_id(cnpj, 14..=14)) && debtor["cpf"].is_null();
    let is_named = debtor["nome"].as_str().is_some_and(|name| (1..=200).contains(&name.chars().count()));
    let is_debtor = debtor.is_null() || ((is_person || is_company) && is_named);
    let checks = [
        (is_id(txid, 26..=35), "txid"),
        (
            has_only(body, &["calendario", "valor", "chave", "devedor", "solicitacaoPagador", "infoAdicionais"]),
            "members",
        ),
        (
            body["calendario"]["expiracao"]
                .as_i64()
                .is_some_and(|seconds| (1..=i64::from(i32::MAX)).contains(&seconds)),
            "expiracao",
        ),
        (centavos(&body["valor"]["original"]).is_some_and(|centavos| centavos > 0), "valor.original"),
        (body["chave"] == KEY, "chave"),
        (is_text(&body["solicitacaoPagador"], 140), "solicitacaoPagador"),
        (is_debtor, "devedor"),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, name)| name)
}

fn put_charge(records: &mut Records, txid: &str, body: &Value) -> Outcome {
    if let Some(defect) = defect_of_charge(txid, body) {
        return refuse(400, "CobOperacaoInvalida", defect);
    }
    let (refuses_repeats, created_at) = (records.refuses_repeats, records.now());
    let is_known = records.charges.contains_key(txid);
    let charge = records.charges.entry(txid.to_owned()).or_insert_with(|| PlayedCharge {
        body: body.clone(),
        status: "ATIVA",
        created_at,
        orders: 0,
    });
    charge.orders += 1;
    if is_known && (refuses_repeats || charge.status != "ATIVA") {
        return refuse(400, "CobOperacaoInvalida", "business: a charge that there is");
    }
    Ok(Reply::json(201, &written(records, txid)))
}

fn patch_charge(records: &mut Records, txid: &str, body: &Value) -> Outcome {
    if *body != json!({ "status": "REMOVIDA_PELO_USUARIO_RECEBEDOR" }) {
        return refuse(400, "CobOperacaoInvalida", "another change than a removal");
    }
    let Some(charge) = records.charges.get_mut(txid) else {
        return refuse(404, "CobNaoEncontrado", "no such charge");
    };
    if charge.status != "ATIVA" {
        return refuse(400, "CobOperacaoInvalida", "business: it is not ATIVA");
    }
    charge.status = "REMOVIDA_PELO_USUARIO_RECEBEDOR";
    Ok(Reply::json(200, &written(records, txid)))
}

fn get_charge(records: &Records, txid: &str) -> Outcome {
    if !records.charges.contains_key(txid) {
        return refuse(404, "CobNaoEncontrado", "no such charge");
    }
    Ok(Reply::json(200, &written(records, txid)))
}

pub(crate) fn instant_text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A charge as it is answered.
fn written(records: &Records, txid: &str) -> Value {
    let charge = &records.charges[txid];
    let location = format!("pix.example.com/qr/v2/{txid}");
    let amount_centavos = centavos(&charge.body["valor"]["original"]).unwrap_or_default() as i64;
    let code = BrCode { location: &location, amount_centavos, merchant_name: "Loja", merchant_city: "Sao Paulo" };
    let mut body = charge.body.clone();
    body["calendario"]["criacao"] = json!(instant_text(charge.created_at));
    body["txid"] = json!(txid);
    body["revisao"] = json!(0);
    body["status"] = json!(charge.status);
    body["location"] = json!(location);
    body["loc"] = json!({ "id": 1, "location": location, "tipoCob": "cob", "criacao": instant_text(charge.created_at), "txid": txid });
    body["pixCopiaECola"] = json!(code.payload().unwrap());
    let paid: Vec<_> =
        records.payments.iter().filter(|of| of.txid.as_deref() == Some(txid)).map(payment_text).collect();
    if !paid.is_empty() {
        body["pix"] = json!(paid);
    }
    body
}

fn payment_text(payment: &PlayedPayment) -> Value {
    let mut body = json!({
        "endToEndId": payment.end_to_end_id,
        "valor": payment.amount,
        "horario": instant_text(payment.at),
        "infoPagador": "a text",
    });
    if let Some(txid) = &payment.txid {
        body["txid"] = json!(txid);
    }
    if !payment.returns.is_empty() {
        body["devolucoes"] = json!(payment.returns);
    }
    body
}

fn list_payments(records: &Records, request: &Request) -> Outcome {
    let wrong = |why: &str| refuse(400, "PixConsultaInvalida", why);
    let instant = |name: &str| request.parameter(name).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let (Some(from), Some(until)) = (instant("inicio"), instant("fim")) else {
        return wrong("inicio or fim is no instant with a zone");
    };
    let number = |name: &str, absent: usize| match request.parameter(name) {
        None => Some(absent),
        Some(text) => text.parse::<usize>().ok(),
    };
    let (page, items) = (number("paginacao.paginaAtual", 0), number("paginacao.itensPorPagina", 100));
    let (Some(page), Some(items @ 1..)) = (page, items) else { return wrong("a page that is none") };
    let items = items.min(records.page_items);
    let within = |payment: &&PlayedPayment| payment.at >= from && payment.at <= until;
    let found: Vec<_> = records.payments.iter().filter(within).collect();
    let of_page: Vec<_> = found.iter().skip(page * items).take(items).map(|payment| payment_text(payment)).collect();
    let pages = found.len().div_ceil(items).max(1);
    Ok(Reply::json(
        200,
        &json!({
            "parametros": {
                "inicio": request.parameter("inicio"),
                "fim": request.parameter("fim"),
                "paginacao": {
                    "paginaAtual": page,
                    "itensPorPagina": items,
                    "quantidadeDePaginas": pages,
                    "quantidadeTotalDeItens": found.len(),
                },
            },
            "pix": of_page,
        }),
    ))
}

fn payment_of<'a>(records: &'a mut Records, id: &str) -> Result<&'a mut PlayedPayment, Refusal> {
    let found = records.payments.iter_mut().find(|payment| payment.end_to_end_id == id);
    found.map_or_else(|| refuse(404, "PixNaoEncontrado", "no such payment"), Ok)
}

fn get_payment(records: &mut Records, id: &str) -> Outcome {
    Ok(Reply::json(200, &payment_text(payment_of(records, id)?)))
}

/// A return as it is answered.
fn returned(
    id: &str,
    payment: &str,
    amount: &str,
    natureza: &str,
    status: &str,
    (number, now): (usize, DateTime<Utc>),
) -> Value {
    // A look reads the returns of the last day.
    let now = instant_text(now);
    json!({
        "id": id,
        "rtrId": format!("D{}{:03}", &payment[1..29], number),
        "valor": amount,
        "natureza": natureza,
        "horario": { "solicitacao": now, "liquidacao": now },
        "status": status,
    })
}

fn put_return(records: &mut Records, payment: &str, id: &str, body: &Value) -> Outcome {
    let amount = centavos(&body["valor"]).filter(|centavos| *centavos > 0);
    let Some(amount) = amount.filter(|_| is_id(id, 1..=35) && has_only(body, &["valor", "natureza", "descricao"]))
    else {
        return refuse(400, "PixDevolucaoInvalida", "its id or valor");
    };
    let (refuses_repeats, status, now) = (records.refuses_repeats, records.return_status, records.now());
    let payment = payment_of(records, payment)?;
    if let Some(made) = payment.returns.iter().find(|made| made["id"] == id) {
        if refuses_repeats {
            return refuse(400, "PixDevolucaoInvalida", "business: an id that there is");
        }
        return Ok(Reply::json(201, made));
    }
    let counts = |made: &&Value| made["status"] != "NAO_REALIZADO";
    let sum: u64 = payment.returns.iter().filter(counts).filter_map(|made| centavos(&made["valor"])).sum();
    if sum + amount > centavos(&json!(payment.amount)).unwrap_or_default() {
        return refuse(400, "PixDevolucaoInvalida", "business: more than was paid");
    }
    let mut made = returned(
        id,
        &payment.end_to_end_id,
        body["valor"].as_str().unwrap_or_default(),
        "ORIGINAL",
        status,
        (payment.returns.len(), now),
    );
    if status == "NAO_REALIZADO" {
        made["motivo"] = json!("conta encerrada");
    }
    payment.returns.push(made.clone());
    Ok(Reply::json(201, &made))
}

fn get_return(records: &mut Records, payment: &str, id: &str) -> Outcome {
    let payment = payment_of(records, payment)?;
    match payment.returns.iter().find(|made| made["id"] == id) {
        Some(made) => Ok(Reply::json(200, made)),
        None => refuse(404, "PixDevolucaoNaoEncontrada", "no such return"),
    }
}

fn put_webhook(records: &mut Records, key: &str, body: &Value) -> Outcome {
    let address = body["webhookUrl"].as_str().filter(|address| address.starts_with("https://"));
    let Some(address) = address.filter(|_| has_only(body, &["webhookUrl"]) && key == KEY) else {
        return refuse(400, "WebhookOperacaoInvalida", "webhookUrl or chave");
    };
    records.webhooks.insert(key.to_owned(), address.to_owned());
    Ok(Reply { status: 200, media_type: "text/plain", body: String::new() })
}
