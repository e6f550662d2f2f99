//! Registration of a sub-recipient as JSON (interface 2.7), documents masked.

use ledger::personal::{Address, BankAccount, Phone, RecipientProfile};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use wire::mask;

use crate::problem::{Problem, failed};

/// A registration, as read: the fields that were sent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Registration {
    /// Who is registered.
    register_information: RegisteredInformationView,
    /// Where withdrawals go; null when the personal data was erased.
    #[schema(required)]
    bank_account: Option<BankAccountView>,
}

/// Who is registered, as read.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct RegisteredInformationView {
    /// `individual` or `corporation`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(individual|corporation)$")]
    kind: &'static str,
    /// CPF or CNPJ, masked.
    document_number: String,
    /// Full name; individuals.
    name: Option<String>,
    /// Legal name; corporations.
    #[schema(example = "Padaria Sol")]
    company_name: Option<String>,
    /// DD/MM/YYYY; individuals.
    #[schema(example = "29/02/2000")]
    birthdate: Option<String>,
    /// Only for individuals.
    mother_name: Option<String>,
    /// Where they live or trade.
    #[schema(required)]
    #[serialize_always]
    address: Option<AddressView>,
    /// At least one.
    phone_numbers: Vec<PhoneNumberView>,
    /// Only for corporations.
    managing_partners: Option<Vec<ManagingPartnerView>>,
    /// Contact e-mail.
    #[schema(required, example = "ana@example.com")]
    #[serialize_always]
    email: Option<String>,
    /// Centavos; individuals.
    monthly_income: Option<i64>,
    /// Centavos; corporations.
    annual_revenue: Option<i64>,
}

/// A managing partner, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct ManagingPartnerView {
    /// Full name.
    name: String,
    /// CPF, masked.
    document_number: String,
    /// Birth date as DD/MM/YYYY.
    #[schema(required, example = "29/02/2000")]
    birthdate: Option<String>,
    /// Mother's name.
    #[schema(required, example = "Rita Prado")]
    mother_name: Option<String>,
    /// Contact e-mail address.
    #[schema(required, example = "ana@example.com")]
    email: Option<String>,
    /// At least one.
    phone_numbers: Vec<PhoneNumberView>,
    /// Here with `street_number` and `zipcode`.
    #[schema(required)]
    address: Option<AddressView>,
}

/// A postal address, as read. A partner's has `street_number` and `zipcode` in place of `number`
/// and `zip_code`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct AddressView {
    /// Street of the address.
    street: String,
    /// House number.
    number: Option<String>,
    /// House number, in a partner's address.
    street_number: Option<String>,
    /// Neighborhood of the address.
    #[schema(example = "Sé")]
    neighborhood: String,
    /// City of the address.
    city: String,
    /// Two letters.
    state: String,
    /// CEP, 8 digits.
    zip_code: Option<String>,
    /// CEP, 8 digits, in a partner's address.
    zipcode: Option<String>,
}

/// A telephone number, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct PhoneNumberView {
    /// Area code.
    #[schema(example = "11")]
    ddd: String,
    /// Number without area code.
    #[schema(example = "987654321")]
    number: String,
}

/// A bank account, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct BankAccountView {
    /// 3 digits; null when the institution is named by its ISPB alone.
    #[schema(required, example = "341")]
    bank_code: Option<String>,
    /// ISPB of the institution.
    #[schema(required, example = "60701190")]
    ispb: Option<String>,
    /// Number of the branch; null of an account without branch.
    #[schema(required, example = "1234")]
    agencia: Option<String>,
    /// Branch check digit.
    #[schema(required, example = "X")]
    agencia_dv: Option<String>,
    /// Number of the account.
    #[schema(example = "56789")]
    conta: String,
    /// Account check digit.
    #[schema(required, example = "7")]
    conta_dv: Option<String>,
    /// `conta_corrente`, `conta_poupanca` or `conta_pagamento`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(conta_corrente|conta_poupanca|conta_pagamento)$")]
    kind: &'static str,
    /// Holder's name.
    #[schema(required, example = "Ana Prado")]
    legal_name: Option<String>,
    /// Holder's CPF or CNPJ, masked.
    document_number: String,
}

impl Registration {
    /// Writes a profile in the fields of its registration; `document` says how documents are shown.
    pub fn of(profile: RecipientProfile, document: fn(&str) -> String) -> Self {
        let is_corporation = is_corporation(&profile.document);
        let (name, company_name) = if is_corporation { (None, Some(profile.name)) } else { (Some(profile.name), None) };
        let income = profile.income_cents;
        let (monthly_income, annual_revenue) = if is_corporation { (None, income) } else { (income, None) };
        let partners = profile.partners.into_iter().map(|partner| ManagingPartnerView {
            name: partner.name,
            document_number: document(&partner.document),
            birthdate: partner.birthdate,
            mother_name: partner.mother_name,
            email: partner.email,
            phone_numbers: phones(partner.phones),
            address: partner.address.map(AddressView::of_partner),
        });
        let partners: Vec<_> = partners.collect();
        Self {
            register_information: RegisteredInformationView {
                kind: if is_corporation { "corporation" } else { "individual" },
                document_number: document(&profile.document),
                name,
                company_name,
                birthdate: profile.birthdate,
                mother_name: profile.mother_name,
                address: profile.address.map(AddressView::of),
                phone_numbers: phones(profile.phones),
                managing_partners: is_corporation.then_some(partners),
                email: profile.email,
                monthly_income,
                annual_revenue,
            },
            bank_account: profile.bank.map(|bank| BankAccountView {
                bank_code: bank.bank_code,
                ispb: bank.ispb,
                agencia: bank.agencia,
                agencia_dv: bank.agencia_dv,
                conta: bank.conta,
                conta_dv: bank.conta_dv,
                kind: bank.kind.name(),
                legal_name: bank.legal_name,
                document_number: document(&bank.document),
            }),
        }
    }
}

/// A registration for those who may not see it whole: names, city and state are shown, and of
/// everything else a part. Documents stay as they are.
pub fn covered(profile: RecipientProfile) -> RecipientProfile {
    let address = |address: Address| Address {
        street: mask::words(&address.street),
        number: "*".repeat(address.number.chars().count()),
        neighborhood: mask::words(&address.neighborhood),
        zip_code: address
            .zip_code
            .chars()
            .enumerate()
            .map(|(place, digit)| if place < 5 { digit } else { '*' })
            .collect(),
        ..address
    };
    let phone = |phone: Phone| Phone { number: mask::account(&phone.number), ..phone };
    let bank = |bank: BankAccount| BankAccount {
        conta: mask::account(&bank.conta),
        conta_dv: bank.conta_dv.map(|_| "*".to_owned()),
        ..bank
    };
    RecipientProfile {
        email: profile.email.as_deref().map(mask::email),
        birthdate: profile.birthdate.as_deref().map(mask::birth_date),
        mother_name: profile.mother_name.as_deref().map(mask::words),
        address: profile.address.map(address),
        phones: profile.phones.into_iter().map(phone).collect(),
        income_cents: None,
        partners: profile.partners.into_iter().map(covered).collect(),
        bank: profile.bank.map(bank),
        ..profile
    }
}

/// The fields of a registration that were sent and are not what stands: `bank_account`, and those
/// of `register_information` with their full names.
pub fn differing(sent: RecipientProfile, standing: RecipientProfile) -> Result<Vec<String>, Problem> {
    let (sent_labels, labels) = (sent.labels.clone().unwrap_or_default(), standing.labels.clone().unwrap_or_default());
    let other_reference = sent_labels.reference.is_some() && sent_labels.reference != labels.reference;
    let other_metadata = !sent_labels.metadata.is_empty() && sent_labels.metadata != labels.metadata;
    let whole = |profile| serde_json::to_value(Registration::of(profile, str::to_owned)).map_err(failed);
    let (sent, standing) = (whole(sent)?, whole(standing)?);
    let is_other = |sent: &Value, standing: &Value| !sent.is_null() && sent != standing;
    let of_person = sent["register_information"].as_object().into_iter().flatten();
    let of_person = of_person.filter(|(name, value)| is_other(value, &standing["register_information"][name.as_str()]));
    let names = of_person.map(|(name, _)| format!("register_information.{name}"));
    let bank = is_other(&sent["bank_account"], &standing["bank_account"]).then(|| "bank_account".to_owned());
    let labels = [("reference", other_reference), ("metadata", other_metadata)];
    let labels = labels.into_iter().filter(|(_, is_other)| *is_other).map(|(name, _)| name.to_owned());
    Ok(bank.into_iter().chain(names).chain(labels).collect())
}

impl AddressView {
    fn of(address: Address) -> Self {
        let Address { street, number, neighborhood, city, state, zip_code } = address;
        let (number, zip_code) = (Some(number), Some(zip_code));
        Self { street, number, street_number: None, neighborhood, city, state, zip_code, zipcode: None }
    }

    fn of_partner(address: Address) -> Self {
        let Self { number, zip_code, .. } = Self::of(address.clone());
        Self { number: None, street_number: number, zip_code: None, zipcode: zip_code, ..Self::of(address) }
    }
}

fn phones(phones: Vec<Phone>) -> Vec<PhoneNumberView> {
    phones.into_iter().map(|phone| PhoneNumberView { ddd: phone.ddd, number: phone.number }).collect()
}

/// True for a CNPJ.
pub fn is_corporation(document: &str) -> bool {
    document.len() == 14
}
