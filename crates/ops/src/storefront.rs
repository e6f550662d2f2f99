//! Storefront of a merchant: what a card acquirer has to know of the shop that sells. Optional, and
//! passed with each card charge.

use ledger::personal::{StoreAddress, Storefront};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use web::json::{Checker, Raw};

/// What a card acquirer has to know of a merchant, as sent. It takes the place of the one before.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct StorefrontRequest<'a> {
    /// Name on the payer's card bill, at most 22 ASCII characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 22)]
    soft_descriptor: Raw<'a>,
    /// Merchant category code, four digits.
    #[schema(value_type = Option<String>, pattern = "^[0-9]{4}$")]
    mcc: Raw<'a>,
    /// Where the shop is.
    #[schema(value_type = Option<StoreAddressRequest>)]
    address: Raw<'a>,
    /// Telephone with country and area code, digits alone.
    #[schema(value_type = Option<String>, pattern = "^[0-9]{10,15}$")]
    phone: Raw<'a>,
    /// E-mail address for payers.
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254)]
    email: Raw<'a>,
    /// Address of the shop in the web, `https` alone.
    #[schema(value_type = Option<String>, min_length = 12, max_length = 200)]
    url: Raw<'a>,
    /// Id of the merchant at the acquirer, at most 15 letters and digits.
    #[schema(value_type = Option<String>, pattern = "^[0-9A-Za-z]{1,15}$")]
    acquirer_id: Raw<'a>,
}

/// Address of a shop, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct StoreAddressRequest<'a> {
    /// Street of the shop.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    street: Raw<'a>,
    /// Number in the street; `S/N` where there is none.
    #[schema(value_type = String, min_length = 1, max_length = 20)]
    number: Raw<'a>,
    /// City of the shop.
    #[schema(value_type = String, min_length = 1, max_length = 60)]
    city: Raw<'a>,
    /// State, two capital letters.
    #[schema(value_type = String, pattern = "^[A-Z]{2}$")]
    state: Raw<'a>,
    /// Postal code (CEP), 8 digits.
    #[schema(value_type = String, pattern = "^[0-9]{8}$")]
    zip_code: Raw<'a>,
}

/// What a card acquirer has to know of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub struct StorefrontView {
    /// Name on the payer's card bill.
    #[schema(required, example = "LOJA AZUL")]
    soft_descriptor: Option<String>,
    /// Merchant category code.
    #[schema(required, example = "5651")]
    mcc: Option<String>,
    /// Where the shop is.
    #[schema(required)]
    address: Option<StoreAddressView>,
    /// Telephone with country and area code.
    #[schema(required, example = "5511988887777")]
    phone: Option<String>,
    /// E-mail address for payers.
    #[schema(required, example = "contato@loja.example")]
    email: Option<String>,
    /// Address of the shop in the web.
    #[schema(required, example = "https://loja.example")]
    url: Option<String>,
    /// Id of the merchant at the acquirer.
    #[schema(required, example = "LOJAAZUL1")]
    acquirer_id: Option<String>,
}

/// Address of a shop.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoreAddressView {
    /// Street of the shop.
    street: String,
    /// Number in the street.
    number: String,
    /// City of the shop.
    city: String,
    /// State, two capital letters.
    state: String,
    /// Postal code (CEP).
    zip_code: String,
}

impl StorefrontView {
    /// What is shown of a storefront.
    pub fn of(storefront: Storefront) -> Self {
        let Storefront { soft_descriptor, mcc, address, phone, email, url, acquirer_id } = storefront;
        let address = address.map(|address| {
            let StoreAddress { street, number, city, state, zip_code } = address;
            StoreAddressView { street, number, city, state, zip_code }
        });
        Self { soft_descriptor, mcc, address, phone, email, url, acquirer_id }
    }
}

/// Reads a storefront; `None` if null was sent, which takes it away.
pub fn read(check: &mut Checker, raw: Raw<'_>) -> Option<Storefront> {
    raw?;
    check.object("storefront", raw, |check, wire: StorefrontRequest<'_>| {
        Some(Storefront {
            soft_descriptor: optional(check, ("soft_descriptor", 22), wire.soft_descriptor, is_printable),
            mcc: optional(check, ("mcc", 4), wire.mcc, |text| is_digits(text, 4..=4)),
            address: check.optional(wire.address, |check, raw| check.object("address", raw, address)),
            phone: optional(check, ("phone", 15), wire.phone, |text| is_digits(text, 10..=15)),
            email: optional(check, ("email", 254), wire.email, is_email),
            url: optional(check, ("url", 200), wire.url, is_url),
            acquirer_id: optional(check, ("acquirer_id", 15), wire.acquirer_id, |text| {
                text.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }),
        })
    })
}

fn address(check: &mut Checker, wire: StoreAddressRequest<'_>) -> Option<StoreAddress> {
    let street = check.text("street", wire.street, 1..=140);
    let number = check.text("number", wire.number, 1..=20);
    let city = check.text("city", wire.city, 1..=60);
    let state = formed(check, ("state", 2), wire.state, |text| {
        text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase())
    });
    let zip_code = formed(check, ("zip_code", 8), wire.zip_code, |text| is_digits(text, 8..=8));
    Some(StoreAddress {
        street: street?.into_owned(),
        number: number?.into_owned(),
        city: city?.into_owned(),
        state: state?,
        zip_code: zip_code?,
    })
}

fn optional(
    check: &mut Checker,
    name: (&'static str, usize),
    raw: Raw<'_>,
    is_sound: impl Fn(&str) -> bool,
) -> Option<String> {
    check.optional(raw, |check, raw| formed(check, name, raw, is_sound))
}

/// A text of at most so many characters and of a form.
fn formed(
    check: &mut Checker,
    (name, most): (&'static str, usize),
    raw: Raw<'_>,
    is_sound: impl Fn(&str) -> bool,
) -> Option<String> {
    let text = check.text(name, raw, 1..=most)?;
    if is_sound(&text) { Some(text.into_owned()) } else { check.refuse(name, "invalid", format!("{name} inválido")) }
}

fn is_printable(text: &str) -> bool {
    text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) && text.trim() == text
}

fn is_digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    is_printable(text)
        && !text.contains(' ')
        && parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

fn is_url(text: &str) -> bool {
    let host = text.strip_prefix("https://").and_then(|rest| rest.split('/').next());
    is_printable(text) && !text.contains(' ') && host.is_some_and(|host| host.len() >= 4 && host.contains('.'))
}
