//! `POST /api/card`: a card charge, processed at once (interface 2.1, 2.2).
//!
//! The intent becomes durable before the acquirer is called; the charge and its outcome are two
//! Records. Once sent, the command runs to its end: a caller that hangs up cancels nothing
//! ([`web::middleware`]).

use std::borrow::Cow;
use std::sync::Arc;

use actors::engine::{CardCharged, FirstAnswer, NewCardCharge, NewChargeCard, ReferenceLookup, ReferenceOf};
use actors::rails::{CardSecrets, SecurityCode};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use ledger::{AMOUNT_MAX, CardRefusal, Centavos, Fingerprint, Payer, PaymentMethod, Record, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::api::card_data::{CardData, face, read_card, read_code, security_code};
use crate::api::labels::{self, ChargeEcho};
use crate::api::payer::{CustomerRequest, read_customer};
use crate::api::splits;
use crate::api::stored_cards::{payer_of, stored_card, stored_fingerprint};
use crate::api::subscriptions::first_charge_was_paid;
use crate::api::{App, AppState};
use web::idempotency::{body_digest, in_progress};
use web::keyed_request::KeyedCharge;
use web::views::charge::Breakdown;
use web::{Caller, Checker, Code, KeyScope, Problem, Raw, Result, SentKey, broken, created, parse, recorded};

/// A card charge, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = CardChargeRequest, example = json!({
    "amount": 10000,
    "customer": {"name": "João Ávila", "email": "joao@example.com", "document": "12345678909"},
    "credit_card": {
        "number": "4111111111111111", "holder_name": "JOAO AVILA", "exp_month": 12, "exp_year": 2039, "cvv": "737",
    },
    "installments": 3,
    "description": "Pedido 1042",
    "splits": [{"sub_recipient_id": "019b8c4e-5f5d-8a3e-9c1d-2f3a4b5c6d7e", "amount": 2000}],
}))]
pub struct CardRequest<'a> {
    /// Total, integer centavos.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Who pays. With `card_token` it may be left out: the customer who stored the card.
    #[schema(value_type = Option<CustomerRequest>)]
    customer: Raw<'a>,
    /// The card; either this or `card`.
    #[schema(value_type = Option<CardData>)]
    credit_card: Raw<'a>,
    /// The card; either this or `credit_card`.
    #[schema(value_type = Option<CardData>)]
    card: Raw<'a>,
    /// A stored card, in place of the card.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    card_token: Raw<'a>,
    /// Security code of the stored card, where its payer was asked for it again; never stored.
    #[schema(value_type = Option<String>, pattern = "^[0-9]{3,4}$")]
    cvv: Raw<'a>,
    /// 1 to 12; 1 when absent.
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 12)]
    installments: Raw<'a>,
    /// `credit` (default) or `debit`; debit takes no installments.
    #[schema(value_type = Option<String>, pattern = "^(credit|debit)$")]
    payment_type: Raw<'a>,
    /// At most 120 characters.
    #[schema(value_type = Option<String>, max_length = 120)]
    description: Raw<'a>,
    /// The recipients' parts.
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
    /// The caller's own id of the order, 1 to 64 characters. Several charges may have the same.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    reference: Raw<'a>,
    /// True to refuse the charge when another one of the account was created with this and the same
    /// `reference`, ever.
    #[schema(value_type = Option<bool>)]
    reference_unique: Raw<'a>,
    /// The caller's own values: texts of at most 500 characters by at most 20 keys of 40, 8 KiB in
    /// all.
    #[schema(value_type = Option<std::collections::HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// A card charge's answer (interface 2.2).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CardChargeResponse)]
pub struct CardResponse {
    /// Always true.
    success: bool,
    /// The charge's id.
    txid: String,
    /// `CONCLUIDA` or `pending`.
    #[schema(pattern = "^(CONCLUIDA|pending)$")]
    status: &'static str,
    /// The acquirer's status; more may come.
    #[serde(rename = "cardStatus")]
    #[schema(example = "captured")]
    card_status: &'static str,
    /// Only with splits.
    #[serde(skip_serializing_if = "Option::is_none")]
    breakdown: Option<Breakdown>,
    #[serde(flatten)]
    echo: ChargeEcho,
}

/// Charges a card.
#[utoipa::path(post, path = "/api/card", operation_id = "charge_card", request_body = CardRequest,
    responses((status = 201, body = CardResponse), (status = 402), (status = 403), (status = 502)))]
pub async fn charge(State(app): AppState, caller: Caller, sent: KeyedCharge) -> Result<Response> {
    charge_once(&app, caller, sent.sent_key(), sent.bytes(), parse(sent.bytes())?).await
}

/// Charges a card as a body asks for it, which was read; with the same key, once.
pub async fn charge_once(
    app: &App,
    caller: Caller,
    sent: &SentKey,
    body: &[u8],
    wire: CardRequest<'_>,
) -> Result<Response> {
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let is_digested = sent.is_given() || unique.is_some();
    let secret = is_digested.then(|| security_code(wire.credit_card, wire.card, wire.cvv)).flatten();
    let key = sent.read_without(&app.engine, KeyScope::Merchant(caller.group), None, body, secret)?;
    let wire = &wire;
    let digest = || body_digest(&app.engine, body, secret);
    let look_up = || labels::look_up(app, caller, (ReferenceOf::Charge, unique.as_deref()), digest);
    let execute = |reference: Option<ReferenceLookup>, admitted| async move {
        splits::admit(app, caller, wire.splits)?;
        let (wanted, fingerprint) = check(app, caller, wire)?;
        labels::require_new(ReferenceOf::Charge, reference.as_ref())?;
        if app.engine.rails().card.current().is_none() {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        if let Some(limits) = &app.rate_limits {
            limits.admit_card(fingerprint, caller.group, |id| first_charge_was_paid(app, caller, id))?;
        }
        let wanted = NewCardCharge { reference, ..wanted };
        // A large future, which would be moved with each of those around it.
        let charging = Box::pin(app.engine.charge_card(caller.group, wanted, caller.context(admitted)));
        let charged = recorded(charging.await?)?;
        if let (Some(limits), Some(FirstAnswer::Refused(refusal))) =
            (&app.rate_limits, charged.as_ref().map(|charged| charged.answer))
            && refusal != CardRefusal::Failed
        {
            limits.count_refused_card(fingerprint, caller.group);
        }
        Ok(charged.map(Some))
    };
    let mut before = None;
    let replay = |record: Arc<Record>| {
        before = Some(record);
        Ok(None)
    };
    let charged = key.run_after(caller.ledger(), look_up, replay, execute).await?;
    let known = match before {
        Some(record) => Some(app.engine.card_charged(&record).await?.ok_or_else(in_progress)?),
        None => None,
    };
    let sent = labels::read(&mut Checker::new(), wire.reference, wire.reference_unique, wire.metadata);
    charged.answer(|charged| {
        let charged = charged.or(known).ok_or_else(broken)?;
        let echo = ChargeEcho::of(app, caller, wire.splits, sent, &charged.terms);
        Ok(answer(&charged, echo).unwrap_or_else(IntoResponse::into_response))
    })
}

/// The answer to a charge with this first answer of the acquirer: 201, 402 as a problem, or 502
/// where the acquirer surely did not take the charge.
fn answer(charged: &CardCharged, echo: ChargeEcho) -> Result<Response> {
    let txid = charged.charge.txid();
    let (status, card_status) = match charged.answer {
        FirstAnswer::Captured => ("CONCLUIDA", "captured"),
        FirstAnswer::Silent => ("pending", "processing"),
        FirstAnswer::Refused(refusal) => {
            let declined = match refusal {
                CardRefusal::Failed => Problem::new(Code::RailUnavailable)
                    .detail("The acquirer did not take the charge, which is RECUSADA; no money was taken.")
                    .member("txid", txid),
                _ => Problem::new(Code::CardDeclined)
                    .detail("The acquirer refused the card.")
                    .member("txid", txid)
                    .member("status", "RECUSADA"),
            };
            let declined = declined.member("cardStatus", refusal.to_string());
            let labels = [("reference", json!(echo.labels.reference)), ("metadata", json!(echo.labels.metadata))];
            let labels = labels.into_iter().filter(|(_, value)| !value.is_null());
            return Err(labels.fold(declined, |declined, (name, value)| declined.member(name, value)));
        }
    };
    let breakdown = Breakdown::of(&charged.terms);
    Ok(created(CardResponse { success: true, txid, status, card_status, breakdown, echo }))
}

/// What the request names as its card.
enum NamedCard {
    Given(CardSecrets),
    Stored { token: String, cvv: Option<SecurityCode> },
}

fn check(app: &App, caller: Caller, wire: &CardRequest<'_>) -> Result<(NewCardCharge, Fingerprint)> {
    let mut check = Checker::new();
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let customer = match (wire.card_token, wire.customer) {
        (Some(_), None) => None,
        (_, customer) => read_customer(&mut check, customer),
    };
    let card = read_named_card(&mut check, wire, app.engine.now());
    let installments = check.given_or(1, wire.installments, |check, raw| check.integer("installments", raw, 1..=12));
    let method = read_method(&mut check, wire.payment_type, installments);
    let description = check.optional_prose("description", wire.description, 0..=120);
    let splits = splits::read(&mut check, wire.splits);
    let labels = labels::read(&mut check, wire.reference, wire.reference_unique, wire.metadata);
    let checked = (|| Some((Centavos(amount?), method?, u8::try_from(installments?).ok()?, splits?, card?)))();
    let (amount, method, installments, splits, card) = check.finish_with(checked)?;
    let keyring = app.engine.keyring();
    let (card, face, customer, fingerprint) = match card {
        NamedCard::Given(card) => {
            let fingerprint = keyring.fingerprint("card-number", &[card.number.as_bytes()]);
            let face = face(&card.number);
            (NewChargeCard::Given(card), face, customer, fingerprint)
        }
        NamedCard::Stored { token, cvv } => {
            let card = stored_card(app, caller, &token)?;
            let (face, fingerprint) = (card.face.clone(), stored_fingerprint(app, card.id));
            let customer = payer_of(app, &card, customer)?;
            (NewChargeCard::Stored { card, cvv }, face, Some(customer), fingerprint)
        }
    };
    let payer = Payer { description: description.map(Cow::into_owned), labels, ..customer.ok_or_else(broken)? };
    let (splits, reference) = (splits::of_total(splits, amount), None);
    Ok((NewCardCharge { amount, method, installments, splits, face, payer, card, reference }, fingerprint))
}

/// Reads the card itself, or the token of a stored one with its security code.
fn read_named_card(check: &mut Checker, wire: &CardRequest<'_>, now: Timestamp) -> Option<NamedCard> {
    let has_card = wire.credit_card.is_some() || wire.card.is_some();
    match wire.card_token {
        Some(_) if has_card => check.refuse("card_token", "ambiguous", "envie card_token ou o cartão, não os dois"),
        None => read_card(check, wire.credit_card, wire.card, now).map(NamedCard::Given),
        Some(token) => {
            let token = check.text("card_token", Some(token), 1..=64);
            let code = |check: &mut Checker, cvv| Some(Some(SecurityCode(read_code(check, cvv)?.into_owned())));
            let cvv = check.given_or(None, wire.cvv, code);
            Some(NamedCard::Stored { token: token?.into_owned(), cvv: cvv? })
        }
    }
}

fn read_method(check: &mut Checker, raw: Raw<'_>, installments: Option<i64>) -> Option<PaymentMethod> {
    let name = check.optional_text("payment_type", raw, 0..=20);
    match name.as_deref() {
        None if raw.is_some() => None,
        None | Some("credit") => Some(PaymentMethod::CreditCard),
        Some("debit") if installments.is_some_and(|count| count > 1) => {
            check.refuse("installments", "out_of_range", "débito não pode ser parcelado")
        }
        Some("debit") => Some(PaymentMethod::DebitCard),
        Some(_) => check.refuse("payment_type", "unknown_value", "payment_type deve ser credit ou debit"),
    }
}
