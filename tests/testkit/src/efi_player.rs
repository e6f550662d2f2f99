//! Player of Efí's pay-outs, beside the charges of its API Pix: it keeps records of its own, and
//! refuses whatever Efí's document does not allow. Its records are the proof of a test.

use std::collections::BTreeMap;

use chrono::{DateTime, Duration, Utc};
use serde_json::{Value, json};

use crate::api_pix_player::{KEY, Outcome, Records, centavos, has_only, instant_text, is_id, is_text, refuse};
use crate::played_http::{Reply, Request};

/// A receiver's key that no directory has.
pub const UNKNOWN_KEY: &str = "ninguem@example.com";

/// What a second order of an id gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repeats {
    /// It is refused, as Efí documents.
    #[default]
    Refused,
    /// The same answer.
    Same,
    /// The transfer is carried out again.
    Again,
}

/// A transfer in the player's records.
#[derive(Clone, Debug)]
pub struct PlayedPayout {
    /// As it was ordered.
    pub body: Value,
    pub status: &'static str,
    pub at: DateTime<Utc>,
    pub end_to_end_id: String,
    /// Money that came back, as it is answered.
    pub returns: Vec<Value>,
    /// How often it was ordered.
    pub orders: usize,
    /// How often it was carried out.
    pub carried_out: usize,
}

/// The transfers, and how orders are answered.
#[derive(Default)]
pub struct PlayedPayouts {
    pub by_id: BTreeMap<String, PlayedPayout>,
    pub repeats: Repeats,
    /// The status of a transfer when it is ordered; under way without one.
    pub first_status: Option<&'static str>,
    /// Transfers of a page at most.
    pub page_items: Option<usize>,
}

impl PlayedPayouts {
    /// A transfer goes on: it is carried out, or was not.
    pub fn end(&mut self, id: &str, status: &'static str) {
        self.by_id.get_mut(id).expect("a transfer that there is").status = status;
    }

    /// The receiver's bank sends money of a transfer back, a second after its order; without a
    /// status it is back.
    pub fn come_back(&mut self, id: &str, amount: &str, status: Option<&str>) {
        let transfer = self.by_id.get_mut(id).expect("a transfer that there is");
        let number = transfer.returns.len();
        let return_id = format!("D{}{number:03}", &transfer.end_to_end_id[1..29]);
        let at = instant_text(transfer.at + Duration::milliseconds(1_000 + number as i64));
        transfer.returns.push(match status {
            None => json!({ "rtrId": return_id, "valor": amount, "horario": at }),
            Some(status) => json!({
                "rtrId": return_id,
                "valor": amount,
                "horario": { "solicitacao": instant_text(transfer.at), "liquidacao": at },
                "status": status,
            }),
        });
    }

    /// Sum of the transfers that were carried out or are under way, centavos.
    pub fn sum(&self) -> u64 {
        let counted = self.by_id.values().filter(|transfer| transfer.status != "NAO_REALIZADO");
        counted.map(|of| centavos(&of.body["valor"]).unwrap_or_default() * of.carried_out as u64).sum()
    }
}

/// The answer to a request for a transfer; none for all others.
pub(crate) fn route(records: &mut Records, request: &Request) -> Option<Outcome> {
    let (now, payouts) = (records.now(), &mut records.payouts);
    let under = |resource: &str| request.path.strip_prefix(resource).map(str::to_owned);
    if let Some(id) = under("/v3/gn/pix/").filter(|_| request.method == "PUT") {
        return Some(order(payouts, &id, &request.json(), now));
    }
    if let Some(id) = under("/v2/gn/pix/enviados/id-envio/").filter(|_| request.method == "GET") {
        return Some(look_up(payouts, &id));
    }
    (request.path == "/v2/gn/pix/enviados" && request.method == "GET").then(|| list(payouts, request))
}

fn is_digits(value: &Value, lengths: std::ops::RangeInclusive<usize>) -> bool {
    let is_sound = |text: &str| lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    value.as_str().is_some_and(is_sound)
}

/// True for CPF or CNPJ, and not both.
fn is_documented(of: &Value) -> bool {
    match (of["cpf"].is_null(), of["cnpj"].is_null()) {
        (false, true) => is_digits(&of["cpf"], 11..=11),
        (true, false) => of["cnpj"].as_str().is_some_and(|cnpj| is_id(cnpj, 14..=14)),
        _ => false,
    }
}

fn is_account(account: &Value) -> bool {
    has_only(account, &["nome", "cpf", "cnpj", "codigoBanco", "agencia", "conta", "tipoConta"])
        && account["nome"].as_str().is_some_and(|name| (1..200).contains(&name.chars().count()))
        && is_documented(account)
        && account["codigoBanco"].as_str().is_some_and(|ispb| is_id(ispb, 8..=8))
        && is_digits(&account["agencia"], 1..=4)
        && is_digits(&account["conta"], 1..=20)
        && ["cacc", "svgs", "tran"].map(Value::from).contains(&account["tipoConta"])
}

/// Why an order is not one that the document allows.
fn defect(id: &str, body: &Value) -> Option<&'static str> {
    let (payer, receiver) = (&body["pagador"], &body["favorecido"]);
    let is_key = |key: &Value| key.as_str().is_some_and(|key| (1..=77).contains(&key.len()));
    let is_receiver = match (receiver["chave"].is_null(), receiver["contaBanco"].is_null()) {
        (false, true) => is_key(&receiver["chave"]) && has_only(receiver, &["chave", "cpf", "cnpj"]),
        (true, false) => is_account(&receiver["contaBanco"]) && has_only(receiver, &["contaBanco"]),
        _ => false,
    };
    let checks = [
        (is_id(id, 1..=35), "idEnvio"),
        (has_only(body, &["valor", "pagador", "favorecido"]), "members"),
        (centavos(&body["valor"]).is_some_and(|centavos| centavos > 0), "valor"),
        (payer["chave"] == KEY && has_only(payer, &["chave", "infoPagador"]), "pagador"),
        (is_text(&payer["infoPagador"], 139), "infoPagador"),
        (is_receiver, "favorecido"),
    ];
    checks.into_iter().find(|(holds, _)| !holds).map(|(_, name)| name)
}

fn order(payouts: &mut PlayedPayouts, id: &str, body: &Value, at: DateTime<Utc>) -> Outcome {
    if let Some(defect) = defect(id, body) {
        return refuse(400, "valor_invalido", defect);
    }
    let (repeats, number) = (payouts.repeats, payouts.by_id.len());
    if let Some(known) = payouts.by_id.get_mut(id) {
        known.orders += 1;
        return match repeats {
            Repeats::Refused => refuse(409, "id_envio_duplicado", "an id that there is"),
            Repeats::Same => Ok(Reply::json(201, &ordered(id, known))),
            Repeats::Again => {
                known.carried_out += 1;
                Ok(Reply::json(201, &ordered(id, known)))
            }
        };
    }
    if body["favorecido"]["chave"] == UNKNOWN_KEY {
        return refuse(404, "chave_favorecido_nao_encontrada", "no such key");
    }
    let transfer = PlayedPayout {
        body: body.clone(),
        status: payouts.first_status.unwrap_or("EM_PROCESSAMENTO"),
        at,
        end_to_end_id: format!("E09089356202611281200API{number:08}"),
        returns: Vec::new(),
        orders: 1,
        carried_out: 1,
    };
    let answer = ordered(id, &transfer);
    payouts.by_id.insert(id.to_owned(), transfer);
    Ok(Reply::json(201, &answer))
}

/// A transfer as an order is answered.
fn ordered(id: &str, transfer: &PlayedPayout) -> Value {
    json!({
        "idEnvio": id,
        "e2eId": transfer.end_to_end_id,
        "valor": transfer.body["valor"],
        "horario": { "solicitacao": instant_text(transfer.at) },
        "status": transfer.status,
    })
}

fn look_up(payouts: &PlayedPayouts, id: &str) -> Outcome {
    match payouts.by_id.get(id) {
        Some(transfer) => Ok(Reply::json(200, &looked_up(id, transfer))),
        None => refuse(404, "PixEnviadoNaoEncontrado", "no such transfer"),
    }
}

/// A transfer as a look-up is answered, and as it stands in the list.
fn looked_up(id: &str, transfer: &PlayedPayout) -> Value {
    let mut body = json!({
        "endToEndId": transfer.end_to_end_id,
        "idEnvio": id,
        "valor": transfer.body["valor"],
        "chave": transfer.body["pagador"]["chave"],
        "status": transfer.status,
        "horario": { "solicitacao": instant_text(transfer.at) },
        "favorecido": { "identificacao": { "nome": "Fulano de Tal", "cpf": "***.456.789-**" } },
    });
    if transfer.status == "REALIZADO" {
        body["horario"]["liquidacao"] = json!(instant_text(transfer.at + Duration::seconds(1)));
    }
    if !transfer.returns.is_empty() {
        body["devolucoes"] = json!(transfer.returns);
    }
    body
}

/// Transfers of a span of time, by the time of their order.
fn list(payouts: &PlayedPayouts, request: &Request) -> Outcome {
    let wrong = |why: &str| refuse(400, "PixConsultaInvalida", why);
    let instant = |name: &str| request.parameter(name).and_then(|text| DateTime::parse_from_rfc3339(text).ok());
    let number = |name: &str| request.parameter(name).map_or(Some(None), |text| text.parse::<usize>().ok().map(Some));
    let (Some(from), Some(until)) = (instant("inicio"), instant("fim")) else {
        return wrong("inicio or fim is no instant with a zone");
    };
    let (Some(page), Some(items)) = (number("paginacao.paginaAtual"), number("paginacao.itensPorPagina")) else {
        return wrong("a page that is none");
    };
    let (page, items) = (page.unwrap_or(0), items.unwrap_or(100).min(payouts.page_items.unwrap_or(1_000)));
    let with_returns = request.parameter("devolucaoPresente") == Some("true");
    let found = payouts.by_id.iter().filter(|(_, of)| of.at >= from && of.at <= until);
    let found: Vec<_> = found.filter(|(_, of)| !with_returns || !of.returns.is_empty()).collect();
    let of_page = found.iter().skip(page * items).take(items).map(|(id, of)| looked_up(id, of));
    Ok(Reply::json(
        200,
        &json!({
            "parametros": {
                "inicio": request.parameter("inicio"),
                "fim": request.parameter("fim"),
                "paginacao": {
                    "paginaAtual": page,
                    "itensPorPagina": items,
                    "quantidadeDePaginas": found.len().div_ceil(items).max(1),
                    "quantidadeTotalDeItens": found.len(),
                },
            },
            "pix": of_page.collect::<Vec<_>>(),
        }),
    ))
}
