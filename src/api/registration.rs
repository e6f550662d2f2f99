//! A recipient's registration as JSON (interface 2.7): read, checked, written again, and merged
//! with a change.

use std::borrow::Cow;

use actors::engine::Engine;
use actors::rails::UnpayableAccount;
use chrono::{DateTime, Datelike, Days, NaiveDate};
use ledger::personal::{AccountKind, Address, Phone};
use ledger::tax_id::{self, DocumentKind, is_ispb};
use ledger::{AMOUNT_MAX, BankAccount, RecipientProfile, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::labels;
use crate::api::payer::{email, read_document};
use crate::api::places::{is_area_code, is_state};
use web::json::{ITSELF, present};
use web::views::registration::Registration;
use web::{Checker, Raw, Result, failed, parse};

/// A registration, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "register_information": {
        "type": "individual", "document_number": "123.456.789-09", "name": "Ana Prado", "birthdate": "29/02/2000",
        "mother_name": "Rita Prado", "email": "ana@example.com",
        "address": {
            "street": "Rua Direita", "number": "10", "neighborhood": "Sé", "city": "São Paulo", "state": "SP",
            "zip_code": "01002-000",
        },
        "phone_numbers": [{"ddd": "11", "number": "987654321"}],
    },
    "bank_account": {"bank_code": "341", "agencia": "1234", "conta": "56789", "conta_dv": "7", "type": "conta_corrente"},
}))]
pub struct RegistrationRequest<'a> {
    /// The person or company to register.
    #[schema(value_type = RegisterInformation)]
    register_information: Raw<'a>,
    /// Where withdrawals go.
    #[schema(value_type = BankAccountRequest)]
    bank_account: Raw<'a>,
    /// Your reference, 1 to 64 characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    pub reference: Raw<'a>,
    /// True to refuse it when another recipient of the account was registered with this and the
    /// same `reference`, ever.
    #[schema(value_type = Option<bool>)]
    pub reference_unique: Raw<'a>,
    /// Values of yours by key: at most 20, of 500 characters.
    #[schema(value_type = Option<HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// Who is registered.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct RegisterInformation<'a> {
    /// `individual` or `corporation`.
    #[serde(rename = "type")]
    #[schema(value_type = String, pattern = "^(individual|corporation)$")]
    kind: Raw<'a>,
    /// CPF or CNPJ, with or without punctuation.
    #[schema(value_type = String, min_length = 11, max_length = 18)]
    document_number: Raw<'a>,
    /// Full name; individuals.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 140)]
    name: Raw<'a>,
    /// DD/MM/YYYY; individuals.
    #[schema(value_type = Option<String>, pattern = "^\\d{2}/\\d{2}/\\d{4}$")]
    birthdate: Raw<'a>,
    /// Only for individuals.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 140)]
    mother_name: Raw<'a>,
    /// Legal name; corporations.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 140)]
    company_name: Raw<'a>,
    /// Where they live or trade.
    #[schema(value_type = AddressRequest)]
    address: Raw<'a>,
    /// At least one.
    #[schema(value_type = Vec<PhoneRequest>, min_items = 1, max_items = 20)]
    phone_numbers: Raw<'a>,
    /// At least one; corporations.
    #[schema(value_type = Option<Vec<PartnerRequest>>, min_items = 1, max_items = 50)]
    managing_partners: Raw<'a>,
    /// Contact e-mail.
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254)]
    email: Raw<'a>,
    /// Centavos; individuals.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1000000000000i64)]
    monthly_income: Raw<'a>,
    /// Centavos; corporations.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1000000000000i64)]
    annual_revenue: Raw<'a>,
}

/// A managing partner.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct PartnerRequest<'a> {
    /// Full name.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    name: Raw<'a>,
    /// CPF, with or without punctuation.
    #[schema(value_type = String, min_length = 11, max_length = 18)]
    document_number: Raw<'a>,
    /// Birth date as DD/MM/YYYY.
    #[schema(value_type = String, pattern = "^\\d{2}/\\d{2}/\\d{4}$")]
    birthdate: Raw<'a>,
    /// Mother's name.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    mother_name: Raw<'a>,
    /// Contact e-mail address.
    #[schema(value_type = Option<String>, min_length = 3, max_length = 254)]
    email: Raw<'a>,
    /// At least one.
    #[schema(value_type = Vec<PhoneRequest>, min_items = 1, max_items = 20)]
    phone_numbers: Raw<'a>,
    /// Here with `street_number` and `zipcode`.
    #[schema(value_type = AddressRequest)]
    address: Raw<'a>,
}

/// A postal address. A partner's has `street_number` and `zipcode` in place of `number` and
/// `zip_code`; both spellings are read anywhere.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct AddressRequest<'a> {
    /// Street of the address.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    street: Raw<'a>,
    /// House number.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 20)]
    number: Raw<'a>,
    /// House number, as a partner's address spells it; either will do.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 20)]
    street_number: Raw<'a>,
    /// Neighborhood of the address.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    neighborhood: Raw<'a>,
    /// City of the address.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    city: Raw<'a>,
    /// The two letters of a state.
    #[schema(value_type = String, pattern = "^[A-Za-z]{2}$")]
    state: Raw<'a>,
    /// CEP: 8 digits, a hyphen allowed.
    #[schema(value_type = Option<String>, pattern = "^\\d{5}-?\\d{3}$")]
    zip_code: Raw<'a>,
    /// CEP, as a partner's address spells it; either will do.
    #[schema(value_type = Option<String>, pattern = "^\\d{5}-?\\d{3}$")]
    zipcode: Raw<'a>,
}

/// A telephone number.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct PhoneRequest<'a> {
    /// Area code (DDD), with or without the 0 before it.
    #[schema(value_type = String, pattern = "^[ +().-]*0?\\d{2}[ ().-]*$")]
    ddd: Raw<'a>,
    /// Number without area code: 8 or 9 digits, with or without punctuation.
    #[schema(value_type = String, pattern = "^[ .-]*(\\d[ .-]*){8,9}$")]
    number: Raw<'a>,
}

/// A bank account.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct BankAccountRequest<'a> {
    /// 3 digits, neither `000` nor `999`; required without `ispb`.
    #[schema(value_type = Option<String>, pattern = "^\\d{3}$")]
    bank_code: Raw<'a>,
    /// ISPB of the institution, with its zeros: 8 digits and capital letters; required without
    /// `bank_code`.
    #[schema(value_type = Option<String>, pattern = "^[0-9A-Z]{8}$")]
    ispb: Raw<'a>,
    /// Number of the branch; its check digit may stand behind a hyphen. Required without `ispb`.
    #[schema(value_type = Option<String>, pattern = "^\\d{1,10}(-[0-9A-Za-z]{1,2})?$")]
    agencia: Raw<'a>,
    /// Branch check digit.
    #[schema(value_type = Option<String>, pattern = "^[0-9A-Za-z]{1,2}$")]
    agencia_dv: Raw<'a>,
    /// Number of the account; its check digit may stand behind a hyphen.
    #[schema(value_type = String, pattern = "^\\d{1,20}(-[0-9A-Za-z]{1,2})?$")]
    conta: Raw<'a>,
    /// Account check digit. Account and check digit have at most 20 characters together.
    #[schema(value_type = Option<String>, pattern = "^[0-9A-Za-z]{1,2}$")]
    conta_dv: Raw<'a>,
    /// `conta_corrente` (default), `conta_poupanca` or `conta_pagamento`.
    #[serde(rename = "type")]
    #[schema(value_type = Option<String>, pattern = "^conta_(corrente|poupanca|pagamento)$")]
    kind: Raw<'a>,
    /// Holder's name.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 140)]
    legal_name: Raw<'a>,
    /// Holder's CPF or CNPJ; that of `register_information` when absent.
    #[schema(value_type = Option<String>, min_length = 11, max_length = 18)]
    document_number: Raw<'a>,
}

/// What is changed of a registration. The rest stays as it is; null takes an optional field away
/// (RFC 7396).
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = RegistrationChange, example = json!({"register_information": {"email": "ana@example.com"}, "bank_account": {"conta": "56789", "conta_dv": "7"}}))]
pub struct ChangeRequest<'a> {
    /// Any fields of `RegisterInformation` but `type` and `document_number`. A list, such as
    /// `managing_partners`, is replaced whole.
    #[schema(value_type = Option<Object>)]
    register_information: Raw<'a>,
    /// Any fields of `BankAccountRequest`.
    #[schema(value_type = Option<Object>)]
    bank_account: Raw<'a>,
    /// Your reference; null or an empty text takes it away.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, max_length = 64)]
    reference: Option<Raw<'a>>,
    /// Values by key: a text replaces the value of its key, null or an empty text takes the key
    /// away, and other keys stay.
    #[schema(value_type = Option<HashMap<String, Option<String>>>)]
    metadata: Raw<'a>,
}

/// The profile after a change, checked as a whole: as if it were
/// registered now.
pub fn merged(change: &ChangeRequest<'_>, standing: RecipientProfile, now: Timestamp) -> Result<RecipientProfile> {
    let mut checker = Checker::new();
    checker.optional(change.register_information, |checker, raw| {
        checker.object("register_information", raw, |checker, fixed: RegisterInformation<'_>| {
            for (name, raw) in [("type", fixed.kind), ("document_number", fixed.document_number)] {
                if raw.is_some() {
                    checker.refuse::<()>(name, "immutable", format!("{name} não pode ser alterado"));
                }
            }
            Some(())
        })
    });
    let labels = labels::changed(&mut checker, standing.labels.clone(), change.reference, change.metadata);
    checker.finish()?;
    let mut whole = serde_json::to_value(Registration::of(standing, str::to_owned)).map_err(failed)?;
    for (name, raw) in [("register_information", change.register_information), ("bank_account", change.bank_account)] {
        if let Some(raw) = raw {
            merge(&mut whole[name], serde_json::from_str(raw.get()).map_err(failed)?);
        }
    }
    let whole = serde_json::to_vec(&whole).map_err(failed)?;
    Ok(RecipientProfile { labels, ..check(&parse(&whole)?, now)? })
}

/// A merge patch (RFC 7396), in which an empty text is as good as null.
fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() || value == "" {
            fields.remove(&name);
        } else {
            merge(fields.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Checks a registration.
pub fn check(wire: &RegistrationRequest<'_>, now: Timestamp) -> Result<RecipientProfile> {
    let mut check = Checker::new();
    let profile =
        check.object("register_information", wire.register_information, |check, info: RegisterInformation<'_>| {
            match check.text("type", info.kind, 1..=20)?.as_ref() {
                "individual" => read_individual(check, &info, now),
                "corporation" => read_corporation(check, &info, now),
                _ => check.refuse("type", "unknown_value", "type deve ser individual ou corporation"),
            }
        });
    let bank = check.object("bank_account", wire.bank_account, |check, bank: BankAccountRequest<'_>| {
        read_bank(check, &bank, profile.as_ref().map(|profile| profile.document.as_str()).unwrap_or_default())
    });
    let labels = labels::read(&mut check, wire.reference, wire.reference_unique, wire.metadata);
    let checked = profile.zip(bank).map(|(profile, bank)| RecipientProfile { bank: Some(bank), labels, ..profile });
    check.finish_with(checked)
}

/// Refuses a bank account that the rail of transfers cannot pay to.
pub fn check_payable(engine: &Engine, profile: &RecipientProfile) -> Result<()> {
    let rail = engine.rails().payout.current();
    let Some((account, (_, rail))) = profile.receiving_account().zip(rail) else { return Ok(()) };
    let mut check = Checker::new();
    if let Err(UnpayableAccount { field, reason }) = rail.can_pay(&account) {
        check.within("bank_account", |check| check.refuse::<()>(field, "unpayable", reason));
    }
    check.finish()
}

fn read_individual(check: &mut Checker, info: &RegisterInformation<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("name", info.name, 1..=140);
    let document = read_document(check, "document_number", info.document_number, DocumentKind::Cpf);
    let birthdate = read_birthdate(check, info.birthdate, now);
    let mother_name = check.text("mother_name", info.mother_name, 1..=140);
    let address = check.object("address", info.address, |check, address| read_address(check, &address, false));
    let phones = read_phones(check, info.phone_numbers);
    let email_address = check.optional(info.email, |check, raw| email(check, "email", raw));
    let income =
        check.optional(info.monthly_income, |check, raw| check.centavos("monthly_income", raw, 0..=AMOUNT_MAX.0));
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: email_address,
        birthdate: Some(birthdate?),
        mother_name: Some(mother_name?.into_owned()),
        address: Some(address?),
        phones: phones?,
        income_cents: income,
        ..RecipientProfile::default()
    })
}

fn read_corporation(check: &mut Checker, info: &RegisterInformation<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("company_name", info.company_name, 1..=140);
    let document = read_document(check, "document_number", info.document_number, DocumentKind::Cnpj);
    let address = check.object("address", info.address, |check, address| read_address(check, &address, false));
    let phones = read_phones(check, info.phone_numbers);
    let email_address = check.optional(info.email, |check, raw| email(check, "email", raw));
    let revenue =
        check.optional(info.annual_revenue, |check, raw| check.centavos("annual_revenue", raw, 0..=AMOUNT_MAX.0));
    let partners = check.array("managing_partners", info.managing_partners, 1..=50, |check, element| {
        check.object(ITSELF, element, |check, partner: PartnerRequest<'_>| read_partner(check, &partner, now))
    });
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: email_address,
        address: Some(address?),
        phones: phones?,
        income_cents: revenue,
        partners: partners?,
        ..RecipientProfile::default()
    })
}

fn read_partner(check: &mut Checker, partner: &PartnerRequest<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("name", partner.name, 1..=140);
    let document = read_document(check, "document_number", partner.document_number, DocumentKind::Cpf);
    let birthdate = read_birthdate(check, partner.birthdate, now);
    let mother_name = check.text("mother_name", partner.mother_name, 1..=140);
    let email_address = check.optional(partner.email, |check, raw| email(check, "email", raw));
    let phones = read_phones(check, partner.phone_numbers);
    let address = check.object("address", partner.address, |check, address| read_address(check, &address, true));
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: email_address,
        birthdate: Some(birthdate?),
        mother_name: Some(mother_name?.into_owned()),
        address: Some(address?),
        phones: phones?,
        ..RecipientProfile::default()
    })
}

/// Either spelling will do; an error about an address that has neither names the spelling of its
/// place.
fn read_address(check: &mut Checker, address: &AddressRequest<'_>, of_partner: bool) -> Option<Address> {
    let (number_name, zip_name) = if of_partner { ("street_number", "zipcode") } else { ("number", "zip_code") };
    let street = check.text("street", address.street, 1..=140);
    let number = spelled(("number", address.number), ("street_number", address.street_number), number_name);
    let number = check.text(number.0, number.1, 1..=20);
    let neighborhood = check.text("neighborhood", address.neighborhood, 1..=140);
    let city = check.text("city", address.city, 1..=140);
    let state = check.text("state", address.state, 2..=2).map(|state| state.to_ascii_uppercase());
    let message = "state deve ser a sigla de um estado, como SP";
    let state = check.fitting(state, |state| is_state(state), "state", "invalid_state", message);
    let (zip_name, zip) = spelled(("zip_code", address.zip_code), ("zipcode", address.zipcode), zip_name);
    let zip_code = check.text(zip_name, zip, 8..=9).map(|text| text.replace('-', ""));
    let is_right = |digits: &String| digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let message = format!("{zip_name} deve ter 8 dígitos");
    let zip_code = check.fitting(zip_code, is_right, zip_name, "invalid_zip_code", message);
    Some(Address {
        street: street?.into_owned(),
        number: number?.into_owned(),
        neighborhood: neighborhood?.into_owned(),
        city: city?.into_owned(),
        state: state?,
        zip_code: zip_code?,
    })
}

type Field<'a> = (&'static str, Raw<'a>);

/// The field that was sent; of two that were not, the one of this name.
fn spelled<'a>(one: Field<'a>, other: Field<'a>, name: &str) -> Field<'a> {
    match (one.1, other.1) {
        (Some(_), None) => one,
        (None, Some(_)) => other,
        _ if one.0 == name => one,
        _ => other,
    }
}

fn read_phones(check: &mut Checker, raw: Raw<'_>) -> Option<Vec<Phone>> {
    check.array("phone_numbers", raw, 1..=20, |check, element| {
        check.object(ITSELF, element, |check, phone: PhoneRequest<'_>| {
            let ddd = check.punctuated_digits("ddd", phone.ddd, 2..=3);
            let ddd = ddd.and_then(|digits| {
                // Long-distance calls begin with 0.
                let code = if digits.len() == 3 { digits.strip_prefix('0') } else { Some(digits.as_str()) };
                code.filter(|code| is_area_code(code)).map(str::to_owned).or_else(|| {
                    check.refuse("ddd", "invalid_area_code", "ddd deve ser um código de área do Brasil, como 11")
                })
            });
            let number = check.punctuated_digits("number", phone.number, 8..=9);
            Some(Phone { ddd: ddd?, number: number? })
        })
    })
}

/// A number of a branch or an account, and its check digit, which may stand behind a hyphen
/// (`56789-0`) or in a field of its own. Both at once must agree.
fn read_numbered(
    check: &mut Checker,
    (name, raw): Field<'_>,
    (digit_name, digit): Field<'_>,
    digits_max: usize,
) -> Option<(String, Option<String>)> {
    let digit = check.optional_text(digit_name, digit, 1..=2);
    if digit.as_ref().is_some_and(|digit| !digit.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        return check.refuse(digit_name, "invalid_check_digit", format!("{digit_name} deve ter dígitos ou letras"));
    }
    let text = check.text(name, raw, 1..=digits_max + 8)?.replace([' ', '.'], "");
    let (number, behind) =
        text.split_once('-').map_or((text.as_str(), None), |(number, behind)| (number, Some(behind)));
    let is_number = (1..=digits_max).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_digit =
        |behind: &str| (1..=2).contains(&behind.len()) && behind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_number || !behind.is_none_or(is_digit) {
        let form = format!("{name} deve ter de 1 a {digits_max} dígitos, e o verificador depois de um hífen");
        return check.refuse(name, "not_digits", form);
    }
    match (behind, digit) {
        (Some(behind), Some(digit)) if !behind.eq_ignore_ascii_case(&digit) => {
            check.refuse(digit_name, "ambiguous", format!("{digit_name} não é o dígito que {name} traz"))
        }
        (behind, digit) => {
            Some((number.to_owned(), digit.map(std::borrow::Cow::into_owned).or(behind.map(str::to_owned))))
        }
    }
}

/// Characters of an account with its check digit.
const ACCOUNT_LEN_MAX: usize = 20;

/// The institution of an account: its code, its ISPB or both.
fn read_institution(check: &mut Checker, bank: &BankAccountRequest<'_>) -> (Option<String>, Option<String>) {
    let ispb = check.optional(bank.ispb, |check, raw| {
        let text = check.text("ispb", raw, 1..=20)?;
        if is_ispb(&text) {
            return Some(text.into_owned());
        }
        if text.len() < 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            let form = "ispb deve ter 8 caracteres, com os zeros à esquerda: 208 escreve-se 00000208";
            return check.refuse("ispb", "zeros_missing", form);
        }
        check.refuse("ispb", "invalid_ispb", "ispb deve ter 8 caracteres, dígitos ou letras maiúsculas")
    });
    if bank.bank_code.is_none() && bank.ispb.is_some() {
        return (None, ispb);
    }
    let bank_code = check.digits("bank_code", bank.bank_code, 3..=3);
    let names_a_bank = |code: &Cow<'_, str>| !matches!(code.as_ref(), "000" | "999");
    let message = "bank_code não pode ser 000 nem 999";
    let bank_code = check.fitting(bank_code, names_a_bank, "bank_code", "invalid_bank_code", message);
    (bank_code.map(std::borrow::Cow::into_owned), ispb)
}

fn read_bank(check: &mut Checker, bank: &BankAccountRequest<'_>, holder: &str) -> Option<BankAccount> {
    let (bank_code, ispb) = read_institution(check, bank);
    let agencia = ("agencia", bank.agencia);
    let branch = match bank.agencia.or(bank.agencia_dv) {
        None if bank.ispb.is_some() => Some((None, None)),
        _ => read_numbered(check, agencia, ("agencia_dv", bank.agencia_dv), 10).map(|(number, dv)| (Some(number), dv)),
    };
    let account = read_numbered(check, ("conta", bank.conta), ("conta_dv", bank.conta_dv), ACCOUNT_LEN_MAX);
    let fits =
        |(conta, dv): &(String, Option<String>)| conta.len() + dv.as_ref().map_or(0, String::len) <= ACCOUNT_LEN_MAX;
    let message = "conta e conta_dv devem ter juntos até 20 caracteres";
    let account = check.fitting(account, fits, "conta", "too_long", message);
    let kind = match check.optional_text("type", bank.kind, 1..=20).as_deref() {
        None => Some(AccountKind::default()),
        Some(name) => AccountKind::named(name).or_else(|| {
            let words = "type deve ser conta_corrente, conta_poupanca ou conta_pagamento";
            check.refuse("type", "unknown_value", words)
        }),
    };
    let legal_name = check.optional_text("legal_name", bank.legal_name, 1..=140);
    let document = check.optional(bank.document_number, |check, raw| {
        let text = check.text("document_number", raw, 11..=18).map(|text| tax_id::normalize(&text));
        let is_right = |text: &String| tax_id::kind(text).is_some();
        check.fitting(text, is_right, "document_number", "invalid_document", "document_number inválido")
    });
    let ((agencia, agencia_dv), (conta, conta_dv)) = (branch?, account?);
    Some(BankAccount {
        bank_code,
        ispb,
        agencia,
        agencia_dv,
        conta,
        conta_dv,
        kind: kind?,
        legal_name: legal_name.map(std::borrow::Cow::into_owned),
        document: document.unwrap_or_else(|| holder.to_owned()),
    })
}

/// DD/MM/YYYY, a day that exists, from 1900 until today in Sao Paulo.
fn read_birthdate(check: &mut Checker, raw: Raw<'_>, now: Timestamp) -> Option<String> {
    let text = check.text("birthdate", raw, 10..=10)?;
    let today = DateTime::UNIX_EPOCH.date_naive() + Days::new(now.day().into());
    match NaiveDate::parse_from_str(&text, "%d/%m/%Y") {
        Ok(date) if date.year() >= 1900 && date <= today && date.format("%d/%m/%Y").to_string() == *text => {
            Some(text.into_owned())
        }
        _ => check.refuse("birthdate", "invalid_date", "birthdate deve ser uma data DD/MM/AAAA"),
    }
}
