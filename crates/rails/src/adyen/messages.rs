//! Messages of the Checkout API. Amounts are whole centavos of BRL, and anything else in their
//! place makes a message unreadable. Words that are not known here say nothing.

use actors::rails::{CardSecrets, CardToken, ChargeCard, ChargedCard, SecurityCode};
use ledger::personal::{StoreAddress, Storefront};
use ledger::{Centavos, MerchantProfile, PaymentMethod};
use serde::{Deserialize, Serialize};

use crate::client::Answer;

const CURRENCY: &str = "BRL";
const COUNTRY: &str = "BR";
/// Characters of a sub-merchant's name, by the schemes' rules.
const SUB_MERCHANT_NAME_LEN_MAX: usize = 22;

/// An amount of money.
#[derive(Serialize, Deserialize)]
pub(super) struct Amount {
    currency: String,
    value: i64,
}

impl Amount {
    pub(super) fn of(amount: Centavos) -> Self {
        Self { currency: CURRENCY.to_owned(), value: amount.0 }
    }

    pub(super) fn is(&self, amount: Centavos) -> bool {
        self.currency == CURRENCY && self.value == amount.0
    }
}

/// Order of a payment.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewPayment<'a> {
    amount: Amount,
    merchant_account: &'a str,
    reference: &'a str,
    return_url: &'a str,
    payment_method: Card<'a>,
    additional_data: AdditionalData,
    #[serde(skip_serializing_if = "Option::is_none")]
    installments: Option<Installments>,
    shopper_interaction: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    recurring_processing_model: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shopper_reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shopper_statement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shopper_email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    social_security_number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_merchants: Option<[SubMerchant<'a>; 1]>,
}

/// Members are texts, whatever they say.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdditionalData {
    manual_capture: &'static str,
}

#[derive(Serialize)]
struct Installments {
    value: u8,
}

/// A card as the payer gave it, or one that Adyen keeps.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Card<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry_month: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expiry_year: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cvc: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_payment_method_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    funding_source: Option<&'static str>,
}

impl<'a> Card<'a> {
    pub(super) fn given(card: &'a CardSecrets) -> Self {
        let CardSecrets { number, holder_name, exp_month, exp_year, cvv } = card;
        Self {
            r#type: "scheme",
            number: Some(number),
            holder_name: Some(holder_name),
            expiry_month: Some(format!("{exp_month:02}")),
            expiry_year: Some(exp_year.to_string()),
            cvc: Some(cvv),
            stored_payment_method_id: None,
            funding_source: None,
        }
    }

    fn stored(id: &'a str, cvv: Option<&'a SecurityCode>) -> Self {
        Self {
            r#type: "scheme",
            number: None,
            holder_name: None,
            expiry_month: None,
            expiry_year: None,
            cvc: cvv.map(|code| code.0.as_str()),
            stored_payment_method_id: Some(id),
            funding_source: None,
        }
    }
}

/// The merchant who sells, as the schemes demand of who takes payments for others.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubMerchant<'a> {
    amount: Amount,
    mcc: &'a str,
    name: String,
    tax_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phone_number: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Address<'a> {
    street: &'a str,
    house_number_or_name: &'a str,
    city: &'a str,
    state_or_province: &'a str,
    postal_code: &'a str,
    country: &'static str,
}

impl<'a> SubMerchant<'a> {
    /// `None` without a category (MCC).
    fn of(merchant: &'a MerchantProfile, amount: Centavos) -> Option<Self> {
        let Storefront { mcc, address, phone, email, url, acquirer_id, soft_descriptor: _ } =
            merchant.storefront.as_ref()?;
        let address = address.as_ref().map(|StoreAddress { street, number, city, state, zip_code }| Address {
            street,
            house_number_or_name: number,
            city,
            state_or_province: state,
            postal_code: zip_code,
            country: COUNTRY,
        });
        Some(Self {
            amount: Amount::of(amount),
            mcc: mcc.as_deref()?,
            name: merchant.name.chars().take(SUB_MERCHANT_NAME_LEN_MAX).collect(),
            tax_id: &merchant.document,
            id: acquirer_id.as_deref(),
            address,
            email: email.as_deref(),
            phone_number: phone.as_deref(),
            url: url.as_deref(),
        })
    }
}

impl<'a> NewPayment<'a> {
    /// The order of a charge; `None` where its stored card is none of Adyen's.
    pub(super) fn of(
        call: &'a ChargeCard,
        reference: &'a str,
        merchant_account: &'a str,
        return_url: &'a str,
    ) -> Option<Self> {
        let (mut payment_method, shopper_reference, recurring_processing_model) = match &call.card {
            ChargedCard::Given(card) => (Card::given(card), None, None),
            ChargedCard::Token(CardToken(token)) => {
                let (shopper, stored) = token.split_once(TOKEN_SEPARATOR)?;
                (Card::stored(stored, None), Some(shopper), Some("Subscription"))
            }
            ChargedCard::Stored { token: CardToken(token), cvv } => {
                let (shopper, stored) = token.split_once(TOKEN_SEPARATOR)?;
                (Card::stored(stored, cvv.as_ref()), Some(shopper), Some("CardOnFile"))
            }
        };
        payment_method.funding_source = (call.method == PaymentMethod::DebitCard).then_some("debit");
        let is_stored = shopper_reference.is_some();
        let storefront = call.merchant.storefront.as_ref();
        Some(Self {
            amount: Amount::of(call.amount),
            merchant_account,
            reference,
            return_url,
            payment_method,
            additional_data: AdditionalData { manual_capture: "true" },
            installments: (call.installments > 1).then_some(Installments { value: call.installments }),
            shopper_interaction: if is_stored { "ContAuth" } else { "Ecommerce" },
            recurring_processing_model,
            shopper_reference,
            shopper_statement: storefront.and_then(|storefront| storefront.soft_descriptor.as_deref()),
            shopper_email: call.payer.email.as_deref(),
            social_security_number: Some(call.payer.document.as_str()).filter(|document| !document.is_empty()),
            sub_merchants: SubMerchant::of(&call.merchant, call.amount).map(|one| [one]),
        })
    }
}

/// Between the two parts of a token: who stored the card, and Adyen's id of it.
pub(super) const TOKEN_SEPARATOR: char = ':';

/// Answer to the order of a payment.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentAnswer {
    pub(super) psp_reference: String,
    pub(super) result_code: String,
    pub(super) merchant_reference: String,
    pub(super) amount: Option<Amount>,
    pub(super) refusal_reason_code: Option<String>,
    pub(super) payment_method: Option<PaidWith>,
    #[serde(default)]
    pub(super) additional_data: PaymentDetails,
}

/// What was paid with.
#[derive(Deserialize)]
pub(super) struct PaidWith {
    pub(super) brand: Option<String>,
}

/// What Adyen tells beside the outcome.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PaymentDetails {
    pub(super) auth_code: Option<String>,
    pub(super) refusal_reason_raw: Option<String>,
    pub(super) merchant_advice_code: Option<String>,
}

/// Order of a capture, refund or cancellation. The reference is ours.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewModification<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) amount: Option<Amount>,
    pub(super) merchant_account: &'a str,
    pub(super) reference: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payment_reference: Option<&'a str>,
}

/// Answer to such an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Modification {
    pub(super) psp_reference: String,
    pub(super) status: String,
    pub(super) payment_psp_reference: Option<String>,
    pub(super) payment_reference: Option<String>,
    pub(super) amount: Option<Amount>,
}

/// Order to store a card.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewStoredCard<'a> {
    pub(super) merchant_account: &'a str,
    pub(super) payment_method: Card<'a>,
    pub(super) recurring_processing_model: &'static str,
    pub(super) shopper_reference: &'a str,
}

/// A card that Adyen keeps.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredCard {
    pub(super) id: String,
    pub(super) shopper_reference: Option<String>,
}

/// What Adyen answers in place of an outcome.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceError {
    error_code: String,
}

/// The code of an error with status 422, which the status line says; a `status` in the body counts
/// for nothing.
pub(super) fn error_code(answer: &Answer) -> Option<u16> {
    let error = (answer.status.as_u16() == 422).then(|| answer.read::<ServiceError>().ok()).flatten()?;
    error.error_code.parse().ok()
}
