//! `POST /api/charges/batch`: up to a thousand card and PIX charges in one request. Each charge is
//! carried out as if it had come alone, with its own `idempotency_key`, so a repeat of the whole
//! batch makes nothing twice. Charges succeed or fail alone: the batch is no transaction.

use std::collections::BTreeMap;

use axum::body::to_bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Serialize;
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
use web::json::{Element, elements};
use web::keyed;
use web::trace::RequestContext;
use web::{Caller, Checker, KeyScope, Problem, Result, SentKey, failed, ok};

/// Most charges of a batch.
const CHARGES_MAX: usize = 1_000;
/// Most bytes of the answer of one charge.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Charges of one batch that are carried out at once.
const AT_ONCE: usize = 32;

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
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// One for each charge.
    items: Vec<BatchItem>,
}

/// The answer to one charge of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchItem {
    /// The status with which the charge would have been answered alone.
    #[schema(example = 201)]
    status: u16,
    /// The body with which it would have been answered alone: the charge, or a problem.
    #[schema(value_type = Object)]
    body: Box<RawValue>,
}

/// A batch as it was sent: one JSON array, or JSON lines.
pub struct SentBatch {
    sent: keyed::KeyedCharge,
    is_lines: bool,
}

impl<S: Sync> FromRequest<S> for SentBatch {
    type Rejection = Problem;

    async fn from_request(mut request: Request, state: &S) -> Result<Self> {
        let is_lines = declared_as_lines(request.headers_mut());
        Ok(Self { sent: keyed::KeyedCharge::from_request(request, state).await?, is_lines })
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
    let charges: Vec<_> =
        elements(sent.bytes(), is_lines, 1..=CHARGES_MAX)?.into_iter().map(ChargeOfBatch::read).collect();
    let app = &*app;
    let carried_out = charges.into_iter().map(|charge| async move {
        let answer = match charge {
            Ok(charge) => charge.carry_out(app, caller).await,
            Err(problem) => Err(problem),
        };
        item(answer.unwrap_or_else(IntoResponse::into_response)).await
    });
    let mut carried_out = stream::iter(carried_out).buffered(AT_ONCE);
    let mut items = Vec::new();
    while let Some(item) = carried_out.next().await {
        items.push(item?);
    }
    Ok(ok(BatchAnswer { items }))
}

/// The answer of one charge, as it stands in that of the batch.
async fn item(mut answer: Response) -> Result<BatchItem> {
    let status = answer.status().as_u16();
    let body = match answer.extensions_mut().remove::<Problem>() {
        Some(problem) => {
            let request = RequestContext::own();
            problem.render("/api/charges/batch", request.as_ref().map_or("", RequestContext::id))
        }
        None => to_bytes(answer.into_body(), ANSWER_BYTES_MAX).await.map_err(failed)?.to_vec(),
    };
    let body = String::from_utf8(body).map_err(failed)?;
    Ok(BatchItem { status, body: RawValue::from_string(body).map_err(failed)? })
}

/// One charge of a batch: its key, and the body without it.
struct ChargeOfBatch {
    key: String,
    /// Overwritten when it is dropped: it may have a card's number.
    body: Zeroizing<Vec<u8>>,
    is_pix: bool,
}

/// Name of the member that has the key.
const KEY: &str = "idempotency_key";

impl ChargeOfBatch {
    fn read(charge: Element<'_>) -> Result<Self> {
        let charge = charge?;
        let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(charge.get()).map_err(failed)?;
        let mut check = Checker::new();
        let key = check.text(KEY, members.remove(KEY), 1..=255);
        let key = check.finish_with(key)?.into_owned();
        let is_pix = members.get("valor").is_some_and(|value| value.get() != "null");
        let mut body = Zeroizing::new(Vec::with_capacity(charge.get().len()));
        serde_json::to_writer(&mut *body, &members).map_err(failed)?;
        Ok(Self { key, body, is_pix })
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
            Box::pin(pix::create_once(app, caller, &key, &self.body)).await
        } else {
            Box::pin(card::charge_once(app, caller, &key, &self.body)).await
        }
    }
}
