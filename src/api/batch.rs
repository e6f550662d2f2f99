//! `POST /api/charges/batch`: up to a thousand card and PIX charges in one request. Each charge is
//! carried out as if it had come alone, with its own `idempotency_key`, so a repeat of the whole
//! batch makes nothing twice. Charges succeed or fail alone: the batch is no transaction.

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AllOf, AnyOf, Object, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};
use zeroize::Zeroizing;

use crate::api::card::{self, CardRequest};
use crate::api::pix::{self, PixRequest};
use crate::api::{App, AppState};
use web::body::declared_as_lines;
use web::guards::rate_limit::Policy;
use web::json::{Element, Raw, elements, parse_element};
use web::keyed_request;
use web::request_context::RequestContext;
use web::{Caller, KeyScope, Problem, Result, SentKey, checked, failed};

/// Most charges of a batch.
const CHARGES_MAX: usize = 1_000;
/// Most bytes of the answer of one charge.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Charges of one batch that are carried out [together](actors::engine::Engine::together): so many
/// calls to an acquirer are under way at once.
const TOGETHER: usize = 64;
/// Parts of a batch that are carried out at once in a sandbox, whose acquirer answers at once.
const IN_SANDBOX: usize = 4;

/// One charge of a batch, in the description: the body of `POST /api/card` or of `POST /api/pix`,
/// with its key.
pub struct BatchCharge;

/// The two kinds of charges of a batch: their names in the description, what they are made of, and
/// what a charge needs beside its key where that is also the body of a look-up.
const KINDS: [(&str, &str, &[&str]); 2] =
    [("BatchCardCharge", "CardChargeRequest", &[]), ("BatchPixCharge", "PixRequest", &["valor", "nome"])];

impl PartialSchema for BatchCharge {
    fn schema() -> RefOr<Schema> {
        KINDS.iter().fold(AnyOf::builder(), |any, (name, ..)| any.item(Ref::from_schema_name(*name))).into()
    }
}

impl ToSchema for BatchCharge {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        for (name, charge, needed) in KINDS {
            let key = Object::builder().schema_type(Type::String).min_length(Some(1)).max_length(Some(255));
            let key = key.description(Some("The charge's own key: as the header `Idempotency-Key` of its route."));
            let keyed = Object::builder().property("idempotency_key", key).required("idempotency_key");
            let keyed = needed.iter().fold(keyed, |keyed, name| keyed.required(*name));
            let whole = AllOf::builder().item(Ref::from_schema_name(charge)).item(keyed);
            schemas.push((name.to_owned(), whole.into()));
        }
        schemas.push(("CardChargeRequest".to_owned(), CardRequest::schema()));
        schemas.push(("PixRequest".to_owned(), PixRequest::schema()));
        CardRequest::schemas(schemas);
        PixRequest::schemas(schemas);
    }
}

/// The answers to a batch, in the order of its charges.
#[derive(Debug, ToSchema)]
pub struct BatchAnswer {
    /// One for each charge.
    items: Vec<BatchItem>,
}

/// The answer to one charge of a batch.
#[derive(Debug, ToSchema)]
pub struct BatchItem {
    /// The status with which the charge would have been answered alone.
    #[schema(example = 201)]
    status: u16,
    /// The body with which it would have been answered alone: the charge, or a problem.
    #[schema(value_type = Object)]
    body: Vec<u8>,
}

impl IntoResponse for BatchAnswer {
    /// The bodies of the charges, which are JSON, stand in it as they are.
    fn into_response(self) -> Response {
        let mut body = br#"{"items":["#.to_vec();
        for (at, item) in self.items.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            body.extend_from_slice(format!(r#"{comma}{{"status":{},"body":"#, item.status).as_bytes());
            body.extend_from_slice(&item.body);
            body.push(b'}');
        }
        body.extend_from_slice(b"]}");
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
    }
}

/// A batch as it was sent: one JSON array, or JSON lines.
pub struct SentBatch {
    sent: keyed_request::KeyedCharge,
    is_lines: bool,
}

impl<S: Sync> FromRequest<S> for SentBatch {
    type Rejection = Problem;

    async fn from_request(mut request: Request, state: &S) -> Result<Self> {
        let is_lines = declared_as_lines(request.headers_mut());
        Ok(Self { sent: keyed_request::KeyedCharge::from_request(request, state).await?, is_lines })
    }
}

/// Carries out up to 1,000 charges of card or PIX, each with its own `idempotency_key`, and answers
/// 200 with what came of each, in their order. A charge with `valor` is a PIX. They succeed or fail
/// alone, also where one is no object, and each counts towards the rate limit of its route. Sending
/// the batch again makes nothing twice, and neither does sending one of its charges alone with the
/// same key; an `Idempotency-Key` of the batch is not stored. As `application/x-ndjson` (`ndjson`,
/// `jsonl`, `x-jsonlines`) the body has one charge a line; the answer is the same.
#[utoipa::path(post, path = "/api/charges/batch", operation_id = "charge_batch",
    request_body(content = Vec<BatchCharge>, example = json!([
        {"idempotency_key": "pedido-1042", "valor": "80.00", "nome": "Maria das Dores", "cpf": "12345678909"},
        {"idempotency_key": "pedido-1043", "amount": 10000,
            "customer": {"name": "João Ávila", "email": "joao@example.com", "document": "12345678909"},
            "credit_card": {"number": "4111111111111111", "holder_name": "JOAO AVILA", "exp_month": 12, "exp_year": 2039, "cvv": "737"}},
    ])),
    responses((status = 200, body = BatchAnswer)))]
pub async fn charge(State(app): AppState, caller: Caller, SentBatch { sent, is_lines }: SentBatch) -> Result<Response> {
    let _each_has_its_own = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let (mut charges, mut parts) = (elements(sent.bytes(), is_lines, 1..=CHARGES_MAX)?, Vec::new());
    while !charges.is_empty() {
        let rest = charges.split_off(charges.len().min(TOGETHER));
        parts.push(together(&app, caller, std::mem::replace(&mut charges, rest)));
    }
    let at_once = if app.institutions.is_some() { IN_SANDBOX } else { 1 };
    let mut carried_out = stream::iter(parts).buffered(at_once);
    let mut items = Vec::new();
    while let Some(some) = carried_out.next().await {
        items.extend(some.into_iter().collect::<Result<Vec<_>>>()?);
    }
    Ok(BatchAnswer { items }.into_response())
}

/// Carries out some of the charges.
async fn together(app: &App, caller: Caller, charges: Vec<Element<'_>>) -> Vec<Result<BatchItem>> {
    let bytes = charges.iter().flatten().map(|charge| charge.len()).sum();
    let room = (charges.len() as u32, bytes);
    let requests = charges.into_iter().map(|charge| item(app, caller, charge));
    app.engine.together(caller.group, room, join_all(requests)).await
}

/// Carries out one charge. Gives its answer, as it stands in that of the batch.
async fn item(app: &App, caller: Caller, charge: Element<'_>) -> Result<BatchItem> {
    let answer = match charge.and_then(ChargeOfBatch::read) {
        Ok(charge) => charge.carry_out(app, caller).await,
        Err(problem) => Err(problem),
    };
    let mut answer = answer.unwrap_or_else(IntoResponse::into_response);
    let status = answer.status().as_u16();
    let body = match answer.extensions_mut().remove::<Problem>() {
        Some(problem) => {
            let request = RequestContext::own();
            problem.render("/api/charges/batch", request.as_ref().map_or("", RequestContext::id))
        }
        None => to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await.map_err(failed)?.to_vec(),
    };
    Ok(BatchItem { status, body })
}

/// One charge of a batch: its key, and the body without it.
struct ChargeOfBatch {
    key: String,
    /// Overwritten when it is dropped: it may have a card's number.
    body: Zeroizing<String>,
    is_pix: bool,
}

/// What a batch looks at in a charge.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Members<'a> {
    #[serde(default, deserialize_with = "also_null")]
    idempotency_key: Raw<'a>,
    valor: Raw<'a>,
}

fn also_null<'de, D: Deserializer<'de>>(value: D) -> Result<Raw<'de>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// An object without the member that has this value. No quote is part of the member's name.
fn without(object: &str, value: &RawValue) -> String {
    let (value, at) = (value.get(), value.get().as_ptr().addr() - object.as_ptr().addr());
    let (before, after) = (&object[..at], object[at + value.len()..].trim_ascii_start());
    let name_ends = before.trim_ascii_end().trim_end_matches(':').trim_ascii_end().trim_end_matches('"');
    let before = name_ends.rfind('"').map_or("", |begin| name_ends[..begin].trim_ascii_end());
    match after.strip_prefix(',') {
        Some(after) => [before, after].concat(),
        None => [before.trim_end_matches(','), after].concat(),
    }
}

impl ChargeOfBatch {
    fn read(charge: &str) -> Result<Self> {
        let Members { idempotency_key, valor } = serde_json::from_str(charge).map_err(failed)?;
        let key = checked(|check| check.text("idempotency_key", idempotency_key, 1..=255))?.into_owned();
        let body = idempotency_key.map_or_else(String::new, |key| without(charge, key));
        Ok(Self { key, body: Zeroizing::new(body), is_pix: valor.is_some() })
    }

    /// Carries the charge out, as its own route does. One that was carried out before counts
    /// towards no limit, so that a repeat of the batch goes on where the first was limited.
    async fn carry_out(self, app: &App, caller: Caller) -> Result<Response> {
        let (route, policy) = if self.is_pix { ("/api/pix", Policy::Default) } else { ("/api/card", Policy::Card) };
        let key = SentKey::of_form(&self.key, route);
        if let (Some(limits), Some(id)) = (&app.rate_limits, caller.key)
            && !key.is_used(&app.engine, KeyScope::Merchant(caller.group), caller.ledger())?
        {
            let account = app.engine.merchant(caller.group, |row| row.settings).unwrap_or_default();
            let (is_admitted, standing) = limits.admit(policy, id, &account);
            if !is_admitted {
                return Err(standing.refusal());
            }
        }
        // Boxed: the futures of many charges would make that of the batch large.
        if self.is_pix {
            Box::pin(pix::create_once(app, caller, &key, self.body.as_bytes(), parse_element(&self.body)?)).await
        } else {
            Box::pin(card::charge_once(app, caller, &key, self.body.as_bytes(), parse_element(&self.body)?)).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_its_object_without_the_key() {
        for (charge, key, body, is_pix) in [
            (r#"{"idempotency_key":"a","amount":1}"#, Some("a"), r#"{"amount":1}"#, false),
            (
                r#"{"valor":"1.00" , "idempotency_key" : "a\"b" , "nome":"A"}"#,
                Some("a\"b"),
                r#"{"valor":"1.00" , "nome":"A"}"#,
                true,
            ),
            (r#"{"valor":null,"idempotency\u005fkey":"a" }"#, Some("a"), r#"{"valor":null}"#, false),
            (r#"{ "idempotency_key":"idempotency_key" }"#, Some("idempotency_key"), "{}", false),
            (
                r#"{"a":{"idempotency_key":"b"},"idempotency_key":"c"}"#,
                Some("c"),
                r#"{"a":{"idempotency_key":"b"}}"#,
                false,
            ),
            (r#"{"idempotency_key":null}"#, None, "", false),
            (r#"{"amount":1}"#, None, "", false),
        ] {
            let read = ChargeOfBatch::read(charge).ok();
            let read = read.as_ref().map(|read| (read.key.as_str(), read.body.as_str(), read.is_pix));
            assert_eq!(read, key.map(|key| (key, body, is_pix)), "{charge}");
        }
    }
}
