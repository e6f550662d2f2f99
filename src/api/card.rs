//! `POST /api/card`: a card charge, processed at once (interface 2.1, 2.2).
//!
//! The intent becomes durable before the acquirer is called; the charge and its outcome are two
//! Records. Once sent, the command runs to its end: a caller that hangs up cancels nothing
//! ([`web::middleware`]).

use std::borrow::Cow;
use std::sync::Arc;

use actors::engine::{CardCharged, FirstAnswer, NewCardCharge};
use actors::rails::CardSecrets;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use ledger::fees::PaymentMethod;
use ledger::merchant::SplitRequest;
use ledger::money::{AMOUNT_MAX, Centavos};
use ledger::personal::Payer;
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::app::App;
use crate::api::card_data::{CardData, face, read_card, security_code};
use crate::api::payer::{CustomerRequest, read_customer};
use crate::api::splits;
use crate::api::subscriptions::first_charge_was_paid;
use web::caller::Caller;
use web::idempotency::{KeyScope, in_progress, recorded};
use web::json::{Checker, Raw, parse};
use web::keyed::KeyedCharge;
use web::problem::{Code, Problem};
use web::reply::created;
use web::views::charge::Breakdown;

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
    /// Who pays.
    #[schema(value_type = CustomerRequest)]
    customer: Raw<'a>,
    /// The card; either this or `card`.
    #[schema(value_type = Option<CardData>)]
    credit_card: Raw<'a>,
    /// The card; either this or `credit_card`.
    #[schema(value_type = Option<CardData>)]
    card: Raw<'a>,
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
    #[schema(nullable = false)]
    breakdown: Option<Breakdown>,
}

/// A checked request.
struct CheckedCard {
    amount: Centavos,
    method: PaymentMethod,
    installments: u8,
    splits: Vec<SplitRequest>,
    payer: Payer,
    card: CardSecrets,
}

/// Charges a card.
#[utoipa::path(post, path = "/api/card", operation_id = "charge_card", request_body = CardRequest,
    responses((status = 201, body = CardResponse), (status = 402), (status = 403)))]
pub async fn charge(State(app): State<Arc<App>>, caller: Caller, sent: KeyedCharge) -> Result<Response, Problem> {
    let wire: CardRequest<'_> = parse(sent.bytes())?;
    let secret = sent.has_key().then(|| security_code(wire.credit_card, wire.card)).flatten();
    let key = sent.key_without(&app.engine, KeyScope::Merchant(caller.group), secret)?;
    let (app, wire) = (&app, &wire);
    let execute = |admitted| async move {
        splits::admit(app, caller, wire.splits)?;
        let CheckedCard { amount, method, installments, splits, payer, card } = check(wire, app.engine.now())?;
        if app.engine.rails().card.current().is_none() {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        let limited = app
            .rate_limits
            .as_ref()
            .map(|limits| (limits, app.engine.keyring().fingerprint("card-number", &[card.number.as_bytes()])));
        if let Some((limits, number)) = limited {
            limits.admit_card(number, caller.key, |id| first_charge_was_paid(app, caller, id))?;
        }
        let wanted = NewCardCharge { amount, method, installments, splits, face: face(&card.number), payer, card };
        let charged = recorded(app.engine.charge_card(caller.group, wanted, caller.context(admitted)).await?)?;
        if let (Some((limits, number)), Some(FirstAnswer::Refused(_))) =
            (limited, charged.as_ref().map(|charged| charged.answer))
        {
            limits.count_refused_card(number, caller.key);
        }
        Ok(charged)
    };
    let replay = |record: Arc<Record>| app.engine.card_charged(&record)?.ok_or_else(in_progress);
    let charged = key.run(caller.ledger(), replay, execute).await?;
    charged.answer(|charged| Ok(answer(&charged).unwrap_or_else(IntoResponse::into_response)))
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
                .member("cardStatus", refusal.to_string()));
        }
    };
    Ok(created(CardResponse { success: true, txid, status, card_status, breakdown: Breakdown::of(&charged.terms) }))
}

fn check(wire: &CardRequest<'_>, now: Timestamp) -> Result<CheckedCard, Problem> {
    let mut check = Checker::new();
    let amount = check.centavos("amount", wire.amount, 1..=AMOUNT_MAX.0);
    let payer = read_customer(&mut check, wire.customer);
    let card = read_card(&mut check, wire.credit_card, wire.card, now);
    let installments = match wire.installments {
        None => Some(1),
        raw => check.integer("installments", raw, 1..=12),
    };
    let method = read_method(&mut check, wire.payment_type, installments);
    let description = check.optional_prose("description", wire.description, 0..=120);
    let splits = splits::read(&mut check, wire.splits);
    let checked = (|| {
        Some(CheckedCard {
            amount: Centavos(amount?),
            method: method?,
            installments: u8::try_from(installments?).ok()?,
            splits: splits::of_total(splits?, Centavos(amount?)),
            payer: Payer { description: description.map(Cow::into_owned), ..payer? },
            card: card?,
        })
    })();
    check.finish_with(checked)
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
