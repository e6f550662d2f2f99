//! `POST /api/card`: a card charge, processed at once (interface 2.1, 2.2).
//!
//! The intent becomes durable before the acquirer is called; the charge and its outcome are two Records. Once sent, the command
//! runs to its end: a caller that hangs up cancels nothing ([`super::middleware`]).

use std::borrow::Cow;
use std::sync::Arc;

use actors::engine::{CardCharged, FirstAnswer, NewCardCharge, Outcome};
use actors::rails::CardSecrets;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use ledger::event::{CardBrand, CardFace};
use ledger::fees::PaymentMethod;
use ledger::merchant::SplitRequest;
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::personal::Payer;
use ledger::record::Record;
use ledger::tax_id::is_cpf;
use ledger::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, OneOf, Schema, Type};

use super::app::{App, Caller};
use super::body::ChargeBody;
use super::charges::{Breakdown, refusal_name};
use super::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use super::json::{Checker, Raw, parse};
use super::problem::{Code, Problem};
use super::reply::created;
use super::splits;
use super::subscriptions::first_charge_was_paid;

/// A card charge, as sent.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({
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
    #[serde(borrow)]
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// Who pays.
    #[serde(borrow)]
    #[schema(value_type = CustomerRequest)]
    customer: Raw<'a>,
    /// The card; either this or `card`.
    #[serde(borrow)]
    #[schema(value_type = Option<CardData>)]
    credit_card: Raw<'a>,
    /// The card; either this or `credit_card`.
    #[serde(borrow)]
    #[schema(value_type = Option<CardData>)]
    card: Raw<'a>,
    /// 1 to 12; 1 when absent.
    #[serde(borrow)]
    #[schema(value_type = Option<u8>, minimum = 1, maximum = 12)]
    installments: Raw<'a>,
    /// `credit` (default) or `debit`; debit takes no installments.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, pattern = "^(credit|debit)$")]
    payment_type: Raw<'a>,
    /// At most 120 characters.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, max_length = 120)]
    description: Raw<'a>,
    /// The recipients' parts.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<splits::SplitItem>>)]
    splits: Raw<'a>,
}

/// Who pays by card.
#[derive(Deserialize, ToSchema)]
pub struct CustomerRequest<'a> {
    /// Full name.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    name: Raw<'a>,
    /// E-mail.
    #[serde(borrow)]
    #[schema(value_type = String, format = "email", min_length = 3, max_length = 254)]
    email: Raw<'a>,
    /// CPF, digits only.
    #[serde(borrow)]
    #[schema(value_type = String, pattern = "^[0-9]{11}$")]
    document: Raw<'a>,
    /// Digits only.
    #[serde(borrow)]
    #[schema(value_type = Option<String>, pattern = "^[0-9]{8,13}$")]
    phone: Raw<'a>,
}

/// A card, as sent; never kept.
#[derive(Deserialize, ToSchema)]
pub struct CardData<'a> {
    /// Digits only, with its check digit.
    #[serde(borrow)]
    #[schema(value_type = String, pattern = "^[0-9]{13,19}$")]
    number: Raw<'a>,
    /// Name on the card.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 100)]
    holder_name: Raw<'a>,
    /// 1 to 12, as an integer or a string.
    #[serde(borrow)]
    #[schema(schema_with = month)]
    exp_month: Raw<'a>,
    /// Four digits, as an integer or a string.
    #[serde(borrow)]
    #[schema(schema_with = year)]
    exp_year: Raw<'a>,
    /// Three or four digits.
    #[serde(borrow)]
    #[schema(value_type = String, pattern = "^[0-9]{3,4}$")]
    cvv: Raw<'a>,
}

fn month() -> RefOr<Schema> {
    integer_or_string(1, 12, "^0*([1-9]|1[0-2])$")
}

fn year() -> RefOr<Schema> {
    integer_or_string(2000, 9999, "^0*[2-9][0-9]{3}$")
}

/// An integer, or a string of its digits (interface 2.1: both appear).
fn integer_or_string(minimum: i64, maximum: i64, pattern: &str) -> RefOr<Schema> {
    let integer = Object::builder().schema_type(Type::Integer).minimum(Some(minimum)).maximum(Some(maximum));
    let string = Object::builder().schema_type(Type::String).pattern(Some(pattern));
    OneOf::builder().item(integer).item(string).into()
}

/// A card charge's answer (interface 2.2).
#[derive(Debug, Serialize, ToSchema)]
pub struct CardResponse {
    /// True.
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
    #[schema(nullable = false)]
    breakdown: Option<Breakdown>,
}

/// A checked request.
struct Checked {
    amount: Centavos,
    method: PaymentMethod,
    installments: u8,
    splits: Vec<SplitRequest>,
    payer: Payer,
    card: CardSecrets,
}

/// Charges a card.
#[utoipa::path(post, path = "/api/card", operation_id = "charge_card", request_body = CardRequest,
    responses((status = 201, body = CardResponse), (status = 402)))]
pub async fn charge(
    State(app): State<Arc<App>>,
    caller: Caller,
    sent_key: SentKey,
    ChargeBody { bytes: body, .. }: ChargeBody,
) -> Result<Response, Problem> {
    let wire: CardRequest<'_> = parse(&body)?;
    let secret = sent_key.is_given().then(|| security_code(wire.credit_card, wire.card)).flatten();
    let key = Key::of(&app, &sent_key, &caller.group.0.to_string(), "POST /api/card", &body, secret)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(&app, caller.ledger())? {
            Keyed::Replay(record, _) => return replay(&app, &record),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        splits::admit(&app, caller, wire.splits)?;
        let Checked { amount, method, installments, splits, payer, card } = check(&wire, app.engine.now())?;
        if app.engine.rails().is_none() {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        let limited = app
            .rate_limits
            .as_ref()
            .map(|limits| (limits, app.engine.keyring().fingerprint("card-number", &[card.number.as_bytes()])));
        if let Some((limits, number)) = limited {
            limits.admit_card(number, caller.key, |id| first_charge_was_paid(&app, caller, id))?;
        }
        let order = NewCardCharge { amount, method, installments, splits, face: face(&card.number), payer, card };
        match app.engine.charge_card(caller.group, order, caller.context(lookup, permit)).await? {
            Outcome::Recorded(charged) => {
                if let (Some((limits, number)), FirstAnswer::Refused(_)) = (limited, charged.answer) {
                    limits.count_refused_card(number, caller.key);
                }
                return answer(&charged);
            }
            Outcome::KeyTaken => {}
            Outcome::Refused(rejection) => return Err(rejection.into()),
            Outcome::Unchanged => return Err(Problem::new(Code::Internal)),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}

/// The answer to a charge with this first answer of the acquirer: 201, or 402 as a problem.
fn answer(charged: &CardCharged) -> Result<Response, Problem> {
    let txid = charged.charge.txid();
    let (status, card_status) = match charged.answer {
        FirstAnswer::Captured => ("CONCLUIDA", "captured"),
        FirstAnswer::Silent => ("pending", "processing"),
        FirstAnswer::Refused(refusal) => {
            let declined = Problem::new(Code::CardDeclined).detail("The acquirer refused the card.");
            return Err(declined
                .member("txid", txid)
                .member("status", "RECUSADA")
                .member("cardStatus", refusal_name(refusal)));
        }
    };
    Ok(created(CardResponse { success: true, txid, status, card_status, breakdown: Breakdown::of(&charged.terms) }))
}

fn replay(app: &App, record: &Record) -> Result<Response, Problem> {
    let charged = app.engine.card_charged(record)?;
    let charged = charged.ok_or_else(|| Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))?;
    Ok(replayed(answer(&charged).unwrap_or_else(IntoResponse::into_response)))
}

/// The part of a body that must not be kept. What is no security code is a part like others: a body that has it is not the same body, and
/// is refused, so nothing of it is kept either.
pub fn security_code<'a>(credit_card: Raw<'a>, card: Raw<'a>) -> Raw<'a> {
    let card = credit_card.or(card)?;
    let code = serde_json::from_str::<CardData<'a>>(card.get()).ok()?.cvv;
    code.filter(|code| read_code(&mut Checker::new(), Some(code)).is_some())
}

fn read_code<'a>(check: &mut Checker, code: Raw<'a>) -> Option<Cow<'a, str>> {
    check.digits("cvv", code, 3..=4)
}

fn check(wire: &CardRequest<'_>, now: Timestamp) -> Result<Checked, Problem> {
    let mut check = Checker::new();
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let payer = read_customer(&mut check, wire.customer);
    let card = read_card(&mut check, wire.credit_card, wire.card, now);
    let installments = match wire.installments {
        None => Some(1),
        raw => check.integer("installments", raw, 1..=12),
    };
    let method = read_method(&mut check, wire.payment_type, installments);
    let description = check.optional_text("description", wire.description, 0..=120);
    let splits = splits::read(&mut check, wire.splits);
    let checked = (|| {
        Some(Checked {
            amount: Centavos(amount?),
            method: method?,
            installments: u8::try_from(installments?).ok()?,
            splits: splits?,
            payer: Payer { description: description.map(Cow::into_owned), ..payer? },
            card: card?,
        })
    })();
    check.finish_with(checked)
}

/// Who pays: name, e-mail and CPF.
pub fn read_customer(check: &mut Checker, raw: Raw<'_>) -> Option<Payer> {
    check.object("customer", raw, |check, customer: CustomerRequest<'_>| {
        let name = check.text("name", customer.name, 1..=140);
        let email = email(check, "email", customer.email);
        let document = check.digits("document", customer.document, 11..=11);
        let document = document.filter(|document| {
            is_cpf(document) || {
                check.refuse::<()>("document", "invalid_document", "customer.document deve ser um CPF válido");
                false
            }
        });
        let phone = check.optional(customer.phone, |check, raw| check.digits("phone", raw, 8..=13));
        Some(Payer {
            name: name?.into_owned(),
            document: document?.into_owned(),
            email: Some(email?),
            phone: phone.map(Cow::into_owned),
            description: None,
        })
    })
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

/// The card, under either of its names. What is wrong with it is reported as invalid card data.
pub fn read_card(check: &mut Checker, credit_card: Raw<'_>, card: Raw<'_>, now: Timestamp) -> Option<CardSecrets> {
    check.reporting(Code::InvalidCardData, |check| read_either_card(check, credit_card, card, now))
}

fn read_either_card(check: &mut Checker, credit_card: Raw<'_>, card: Raw<'_>, now: Timestamp) -> Option<CardSecrets> {
    let (name, raw) = match (credit_card, card) {
        (Some(_), Some(_)) => {
            return check.refuse("card", "ambiguous", "envie credit_card ou card, não os dois");
        }
        (None, Some(card)) => ("card", Some(card)),
        (credit_card, None) => ("credit_card", credit_card),
    };
    check.object(name, raw, |check, card: CardData<'_>| {
        let number = check.digits("number", card.number, 13..=19).filter(|number| {
            passes_luhn(number) || {
                check.refuse::<()>("number", "invalid_number", "número do cartão inválido");
                false
            }
        });
        let holder_name = check.text("holder_name", card.holder_name, 1..=100);
        let month = check.integer_or_string("exp_month", card.exp_month, 1..=12);
        let year = check.integer_or_string("exp_year", card.exp_year, 2000..=9999);
        let cvv = read_code(check, card.cvv);
        let (month, year) = (u8::try_from(month?).ok()?, u16::try_from(year?).ok()?);
        if is_expired(month, year, now) {
            return check.refuse("exp_year", "expired", "cartão vencido");
        }
        Some(CardSecrets {
            number: number?.into_owned(),
            holder_name: holder_name?.into_owned(),
            exp_month: month,
            exp_year: year,
            cvv: cvv?.into_owned(),
        })
    })
}

/// An e-mail address of at most 254 characters.
pub fn email(check: &mut Checker, name: &'static str, raw: Raw<'_>) -> Option<String> {
    let text = check.text(name, raw, 3..=254)?;
    if is_email(&text) {
        Some(text.into_owned())
    } else {
        check.refuse(name, "invalid_email", format!("{name} deve ser um e-mail válido"))
    }
}

/// True for one `@` with something before it and a domain with a dot after it.
pub fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(local, domain)| {
        let labels = domain.split('.').all(|label| !label.is_empty());
        !local.is_empty()
            && !domain.contains('@')
            && domain.contains('.')
            && labels
            && !text.contains(char::is_whitespace)
    })
}

/// A card is good through the last day of its month, in São Paulo (UTC−3).
fn is_expired(month: u8, year: u16, now: Timestamp) -> bool {
    use chrono::{DateTime, Datelike, TimeDelta};
    let today = DateTime::from_timestamp_millis(now.0).unwrap_or_default() - TimeDelta::hours(3);
    (i32::from(year), u32::from(month)) < (today.year(), today.month())
}

/// Luhn's check digit (ISO/IEC 7812-1).
fn passes_luhn(number: &str) -> bool {
    let sum: u32 = number
        .bytes()
        .rev()
        .zip(0..)
        .map(|(digit, place)| {
            let value = u32::from(digit - b'0') * (1 + place % 2);
            value / 10 + value % 10
        })
        .sum();
    sum.is_multiple_of(10)
}

/// What may be kept of a card's number.
pub fn face(number: &str) -> CardFace {
    let digits = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok()).unwrap_or_default();
    CardFace {
        bin: digits(number.get(..6)),
        last4: u16::try_from(digits(number.get(number.len() - 4..))).unwrap_or_default(),
        brand: brand(number),
    }
}

fn brand(number: &str) -> CardBrand {
    let prefix = |length: usize| number.get(..length).and_then(|part| part.parse::<u32>().ok()).unwrap_or_default();
    match (prefix(2), prefix(4), prefix(6)) {
        (_, 4011 | 4312 | 4389 | 5041 | 5066 | 5067 | 6362 | 6363 | 6500..=6504 | 6516 | 6550, _) => CardBrand::Elo,
        (_, _, 606_282 | 384_100 | 384_140 | 384_160) => CardBrand::Hipercard,
        (34 | 37, ..) => CardBrand::Amex,
        (51..=55, ..) | (_, 2221..=2720, _) => CardBrand::Mastercard,
        (40..=49, ..) => CardBrand::Visa,
        _ => CardBrand::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_by_luhn_and_schemes_by_their_prefix() {
        for (number, valid, expected) in [
            ("4000000000000002", true, CardBrand::Visa),
            ("4000000000009995", true, CardBrand::Visa),
            ("4000000000000119", true, CardBrand::Visa),
            ("4111111111111111", true, CardBrand::Visa),
            ("4111111111111112", false, CardBrand::Visa),
            ("5555555555554444", true, CardBrand::Mastercard),
            ("378282246310005", true, CardBrand::Amex),
            ("6062826786276634", true, CardBrand::Hipercard),
            ("6362970000457013", true, CardBrand::Elo),
        ] {
            assert_eq!((passes_luhn(number), brand(number)), (valid, expected), "{number}");
        }
    }

    #[test]
    fn a_card_is_good_through_its_month() {
        let new_year = Timestamp(1_798_772_400_000); // 2027-01-01T03:00Z: midnight in São Paulo
        for (month, year, at, expected) in
            [(12, 2026, new_year.plus_ms(-1), false), (12, 2026, new_year, true), (1, 2027, new_year, false)]
        {
            assert_eq!(is_expired(month, year, at), expected);
        }
    }
}
