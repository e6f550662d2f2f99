//! Card charges: ordered once, found, closed; cards that the bridge keeps.

use actors::rails::{CardAnswer, CardFate, CardSecrets, CardToken, ChargeCard, ChargedCard, RailResult};
use hyper::Method;
use ledger::personal::{StoreAddress, Storefront};
use ledger::{CardBrand, CardRefusal, Centavos, MerchantProfile, ObjectId, PaymentMethod, Timestamp};
use serde::{Deserialize, Serialize};

use super::calls::BridgeCalls;
use super::capabilities::Capabilities;
use super::messages::{Object, Outcome, Refusal, body};
use super::settings::RailKind;
use crate::client::ANSWER_MAX;

pub(super) const LIST: &str = "/cards";
/// How long after its id was made the engine may still begin to order a charge, milliseconds.
const ORDERED_WITHIN_MS: i64 = 30_000;
/// Characters of a token.
const TOKEN_LEN_MAX: usize = 500;

#[derive(Serialize)]
struct NewCharge<'a> {
    amount: i64,
    installments: u8,
    method: &'static str,
    card: Card<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant: Option<Seller<'a>>,
}

/// The merchant who sells, where operators have said what an acquirer has to know.
#[derive(Serialize)]
struct Seller<'a> {
    name: &'a str,
    document: &'a str,
    soft_descriptor: Option<&'a str>,
    mcc: Option<&'a str>,
    address: Option<SellerAddress<'a>>,
    phone: Option<&'a str>,
    email: Option<&'a str>,
    url: Option<&'a str>,
    acquirer_id: Option<&'a str>,
}

#[derive(Serialize)]
struct SellerAddress<'a> {
    street: &'a str,
    number: &'a str,
    city: &'a str,
    state: &'a str,
    zip_code: &'a str,
}

impl<'a> Seller<'a> {
    /// `None` without a storefront.
    fn of(merchant: &'a MerchantProfile) -> Option<Self> {
        let MerchantProfile { name, document, storefront, .. } = merchant;
        let Storefront { soft_descriptor, mcc, address, phone, email, url, acquirer_id } = storefront.as_ref()?;
        let address = address.as_ref().map(|address| {
            let StoreAddress { street, number, city, state, zip_code } = address;
            SellerAddress { street, number, city, state, zip_code }
        });
        Some(Self {
            name,
            document,
            soft_descriptor: soft_descriptor.as_deref(),
            mcc: mcc.as_deref(),
            address,
            phone: phone.as_deref(),
            email: email.as_deref(),
            url: url.as_deref(),
            acquirer_id: acquirer_id.as_deref(),
        })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Card<'a> {
    Given {
        number: &'a str,
        holder_name: &'a str,
        exp_month: u8,
        exp_year: u16,
        cvv: &'a str,
    },
    Token {
        token: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cvv: Option<&'a str>,
    },
}

impl<'a> Card<'a> {
    fn given(card: &'a CardSecrets) -> Self {
        let CardSecrets { number, holder_name, exp_month, exp_year, cvv } = card;
        Self::Given { number, holder_name, exp_month: *exp_month, exp_year: *exp_year, cvv }
    }
}

/// Orders a charge, once.
pub(super) async fn charge(calls: &BridgeCalls, call: &ChargeCard) -> RailResult<CardAnswer> {
    calls.serving(RailKind::Card).await?;
    let card = match &call.card {
        ChargedCard::Given(card) => Card::given(card),
        ChargedCard::Token(CardToken(token)) => Card::Token { token, cvv: None },
        ChargedCard::Stored { token: CardToken(token), cvv } => {
            Card::Token { token, cvv: cvv.as_ref().map(|code| code.0.as_str()) }
        }
    };
    let method = if call.method == PaymentMethod::DebitCard { "debit" } else { "credit" };
    let merchant = Seller::of(&call.merchant);
    let message = NewCharge { amount: call.amount.0, installments: call.installments, method, card, merchant };
    let id = call.charge.txid();
    match calls.order(LIST, &id, body(&message)).await? {
        Outcome::It(object) if object.status == "closed" => Ok(CardAnswer::Refused(CardRefusal::Failed)),
        outcome => answer(calls, outcome, call.charge, call.amount),
    }
}

/// Ends a charge.
pub(super) async fn close(calls: &BridgeCalls, charge: ObjectId, amount: Centavos) -> RailResult<CardFate> {
    let of = calls.serving(RailKind::Card).await?;
    match calls.close(&of, LIST, &charge.txid(), sure_at(&of, charge)).await? {
        Outcome::None => Ok(CardFate::Closed),
        Outcome::It(object) if object.status == "closed" => Ok(CardFate::Closed),
        outcome => answer(calls, outcome, charge, amount).map(CardFate::Answered),
    }
}

/// From when on no order under an id can turn up any more.
pub(super) fn sure_at(of: &Capabilities, id: ObjectId) -> Timestamp {
    let after = of.horizon().saturating_add(ANSWER_MAX);
    let after = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
    Timestamp(id.created_at().0.saturating_add(ORDERED_WITHIN_MS).saturating_add(after))
}

/// The answer for a charge of ours, to the last field.
fn answer(calls: &BridgeCalls, outcome: Outcome, charge: ObjectId, amount: Centavos) -> RailResult<CardAnswer> {
    let unknown = |defect: &str| calls.unknown(&format!("{LIST}/{}", charge.txid()), defect);
    match outcome {
        Outcome::Refused(refusal) => Ok(CardAnswer::Refused(refused(&refusal))),
        Outcome::It(object) => captured(&object, amount).map_err(unknown),
        Outcome::None => Err(unknown("it has none")),
    }
}

/// A charge of this amount that was captured, to the last field, or is under way.
pub(super) fn captured(object: &Object, amount: Centavos) -> Result<CardAnswer, &'static str> {
    if !object.has_amount(amount) {
        return Err("amount is not that of the order");
    }
    match object.status.as_str() {
        "captured" => {}
        "under_way" => return Ok(CardAnswer::UnderWay),
        _ => return Err("status says no outcome"),
    }
    let fee = object.fee.map(Centavos::from).filter(|fee| (0..=amount.0).contains(&fee.0));
    let acquirer_mdr = fee.ok_or("fee is not between 0 and the amount")?;
    let brand = object.brand.as_deref().map(brand);
    Ok(CardAnswer::Captured { acquirer_mdr, brand, stamp: object.capture()? })
}

/// A scheme of another name is one that has none here.
fn brand(name: &str) -> CardBrand {
    let known = [
        CardBrand::Visa,
        CardBrand::Mastercard,
        CardBrand::Amex,
        CardBrand::Elo,
        CardBrand::Hipercard,
        CardBrand::Diners,
        CardBrand::Discover,
        CardBrand::Jcb,
    ];
    known.into_iter().find(|brand| brand.name() == name).unwrap_or(CardBrand::Other)
}

fn refused(refusal: &Refusal) -> CardRefusal {
    match refusal.code.as_str() {
        "insufficient_funds" => CardRefusal::InsufficientFunds,
        _ => CardRefusal::NotAuthorized,
    }
}

#[derive(Serialize)]
struct NewToken<'a> {
    card: Card<'a>,
}

#[derive(Serialize, Deserialize)]
struct Token {
    token: String,
}

/// Has the bridge store a card.
pub(super) async fn tokenize(calls: &BridgeCalls, card: &CardSecrets) -> RailResult<CardToken> {
    calls.serving(RailKind::Card).await?;
    let path = "/tokens";
    let message = body(&NewToken { card: Card::given(card) });
    let answer = calls.call(Method::POST, path, Some(message), ANSWER_MAX).await?;
    let token = match answer.status.as_u16() {
        200 | 201 => answer.read::<Token>().map(|answer| answer.token),
        status => Err(format!("its answer {status} gives no token")),
    };
    match token {
        Ok(token) if (1..=TOKEN_LEN_MAX).contains(&token.len()) => Ok(CardToken(token)),
        Ok(_) => Err(calls.unknown(path, "its token has not 1 to 500 bytes")),
        Err(defect) => Err(calls.unknown(path, &defect)),
    }
}

/// Has the bridge delete a card that it stores; false where it refuses to. Nothing is sent to one
/// that cannot.
pub(super) async fn delete_token(calls: &BridgeCalls, CardToken(token): CardToken) -> RailResult<bool> {
    if !calls.serving(RailKind::Card).await?.deletes_tokens {
        return Ok(false);
    }
    let path = "/tokens/delete";
    let answer = calls.call(Method::POST, path, Some(body(&Token { token })), ANSWER_MAX).await?;
    match answer.status.as_u16() {
        200 | 204 => Ok(true),
        400 | 404 | 422 => Ok(false),
        status => Err(calls.unknown(path, &format!("its answer {status} deletes no token"))),
    }
}
