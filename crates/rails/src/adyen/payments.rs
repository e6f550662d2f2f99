//! Payments: authorized, never captured; and cards that Adyen keeps.

use actors::rails::{CardAnswer, CardSecrets, CardToken, ChargeCard, RailError, RailResult};
use ledger::merchant::Authorization;
use ledger::{CardRefusal, RailStamp};

use super::calls::{AdyenCalls, KeyedRequest};
use super::messages::{
    Card, NewPayment, NewStoredCard, PaymentAnswer, PaymentDetails, StoredCard, TOKEN_SEPARATOR, error_code,
};
use super::words::{self, CARD_ERRORS, Verdict};
use crate::client::values::is_reference;
use crate::client::{Answer, json_body, now};

const PATH: &str = "/payments";
const STORED_PATH: &str = "/storedPaymentMethods";
/// Bytes of a random reference of who stored a card.
const SHOPPER_BYTES: usize = 16;

/// Orders that a charge be authorized. Its idempotency key is its id.
pub(super) async fn authorize(calls: &AdyenCalls, call: &ChargeCard) -> RailResult<CardAnswer> {
    let txid = call.charge.txid();
    let Some(message) = NewPayment::of(call, &txid, &calls.merchant_account, &calls.return_url) else {
        calls.complain(PATH, "the stored card is none of Adyen's");
        return Ok(CardAnswer::Refused(CardRefusal::NotAuthorized));
    };
    if call.not_after <= now() {
        return Err(RailError::NotSent);
    }
    let request = KeyedRequest { path: PATH, key: &txid, body: json_body(&message) };
    calls.order(request, |answer| outcome(answer, call, &txid)).await
}

/// The outcome of an order, or why the answer says none.
fn outcome(answer: &Answer, call: &ChargeCard, txid: &str) -> Result<CardAnswer, String> {
    if answer.status.as_u16() != 200 {
        let code = error_code(answer).filter(|code| CARD_ERRORS.contains(code));
        let code = code.ok_or_else(|| format!("its answer {} is no outcome", answer.status.as_u16()))?;
        return Ok(CardAnswer::Refused(CardRefusal::Coded { code, is_final: false }));
    }
    let payment: PaymentAnswer = answer.read()?;
    let defect = match words::verdict(&payment.result_code) {
        _ if payment.merchant_reference != txid || !is_reference(&payment.psp_reference) => {
            "merchantReference or pspReference is another one"
        }
        Some(Verdict::Refused) => return Ok(CardAnswer::Refused(refusal(&payment))),
        Some(Verdict::Authorized) if payment.amount.as_ref().is_some_and(|amount| amount.is(call.amount)) => {
            return Ok(CardAnswer::Authorized(authorization(payment)));
        }
        Some(Verdict::Authorized) => "amount is not that of the order",
        Some(Verdict::Unfinished) => "resultCode says no end",
        None => "resultCode is a word that is not known",
    };
    Err(defect.to_owned())
}

/// Adyen's answer has no time of its own.
fn authorization(payment: PaymentAnswer) -> Authorization {
    let PaymentAnswer { psp_reference, payment_method, additional_data, .. } = payment;
    let authorization = additional_data.auth_code.filter(|code| is_reference(code));
    let brand = payment_method.and_then(|with| words::brand(with.brand?.as_str()));
    Authorization { stamp: RailStamp { authorization, ..RailStamp::new(psp_reference, now()) }, brand }
}

fn refusal(payment: &PaymentAnswer) -> CardRefusal {
    let PaymentDetails { refusal_reason_raw: raw, merchant_advice_code: advice, .. } = &payment.additional_data;
    match payment.refusal_reason_code.as_ref().and_then(|code| code.parse().ok()) {
        Some(code) => CardRefusal::Coded { code, is_final: words::is_final(code, raw.as_deref(), advice.as_deref()) },
        None => CardRefusal::NotAuthorized,
    }
}

/// Has Adyen store a card, for a shopper of its own.
pub(super) async fn tokenize(calls: &AdyenCalls, card: &CardSecrets) -> RailResult<CardToken> {
    let mut random = [0; SHOPPER_BYTES];
    getrandom::fill(&mut random).map_err(|_| RailError::NotSent)?;
    let shopper: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let message = NewStoredCard {
        merchant_account: &calls.merchant_account,
        payment_method: Card::given(card),
        recurring_processing_model: "Subscription",
        shopper_reference: &shopper,
    };
    let request = KeyedRequest { path: STORED_PATH, key: &shopper, body: json_body(&message) };
    let read = |answer: &Answer| match answer.status.as_u16() {
        200 | 201 => match answer.read::<StoredCard>()? {
            StoredCard { id, shopper_reference }
                if is_reference(&id) && shopper_reference.as_ref().is_none_or(|reference| *reference == shopper) =>
            {
                Ok(CardToken(format!("{shopper}{TOKEN_SEPARATOR}{id}")))
            }
            _ => Err("id or shopperReference is another one".to_owned()),
        },
        status => Err(format!("its answer {status} gives no token")),
    };
    calls.order(request, read).await
}

/// Has Adyen delete a stored card; false where it refuses to, such as of one that it does not have.
pub(super) async fn delete_token(calls: &AdyenCalls, CardToken(token): &CardToken) -> RailResult<bool> {
    let Some((shopper, id)) = token.split_once(TOKEN_SEPARATOR) else { return Ok(false) };
    let query = [("merchantAccount", calls.merchant_account.as_str()), ("shopperReference", shopper)];
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let answer = calls.delete(&format!("{STORED_PATH}/{id}?{query}")).await?;
    match answer.status.as_u16() {
        200 | 204 => Ok(true),
        400 | 404 | 422 => Ok(false),
        status => {
            calls.complain(STORED_PATH, &format!("its answer {status} deletes no token"));
            Err(RailError::NoAnswer)
        }
    }
}
