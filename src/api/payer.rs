//! Payer of a charge as sent: name, e-mail, CPF; and the checks of e-mails and documents that other
//! forms share.

use ledger::Payer;
use ledger::tax_id::{self, DocumentKind, is_cpf};
use serde::Deserialize;
use utoipa::ToSchema;

use web::json::{Checker, Raw};

/// Who pays by card.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
pub struct CustomerRequest<'a> {
    /// Full name.
    #[schema(value_type = String, min_length = 1, max_length = 140)]
    name: Raw<'a>,
    /// E-mail address of the payer.
    #[schema(value_type = String, format = "email", min_length = 3, max_length = 254)]
    email: Raw<'a>,
    /// CPF, with or without punctuation.
    #[schema(value_type = String, pattern = r"^[ ./-]*([0-9][ ./-]*){11}$")]
    document: Raw<'a>,
    /// 8 to 13 digits, with or without punctuation.
    #[schema(value_type = Option<String>, pattern = r"^[ +().-]*([0-9][ ().-]*){8,13}$")]
    phone: Raw<'a>,
}

/// Who pays: name, e-mail and CPF.
pub fn read_customer(check: &mut Checker, raw: Raw<'_>) -> Option<Payer> {
    check.object("customer", raw, |check, customer: CustomerRequest<'_>| {
        let name = check.text("name", customer.name, 1..=140);
        let email = email(check, "email", customer.email);
        let document = check.punctuated_digits("document", customer.document, 11..=11);
        let message = "document deve ser um CPF válido";
        let document = check.fitting(document, |text| is_cpf(text), "document", "invalid_document", message);
        let phone = check.optional(customer.phone, |check, raw| check.punctuated_digits("phone", raw, 8..=13));
        Some(Payer { name: name?.into_owned(), document: document?, email: Some(email?), phone, ..Payer::default() })
    })
}

/// An e-mail address of at most 254 characters.
pub fn email(check: &mut Checker, name: &'static str, raw: Raw<'_>) -> Option<String> {
    let (text, message) = (check.text(name, raw, 3..=254), format!("{name} deve ser um e-mail válido"));
    Some(check.fitting(text, |text| is_email(text), name, "invalid_email", message)?.into_owned())
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

/// A document of one kind, with or without punctuation; gives it normalized.
pub fn read_document(check: &mut Checker, name: &'static str, raw: Raw<'_>, kind: DocumentKind) -> Option<String> {
    let normalized = check.text(name, raw, 11..=18).map(|text| tax_id::normalize(&text));
    let is_right = |text: &String| tax_id::kind(text) == Some(kind);
    check.fitting(normalized, is_right, name, "invalid_document", format!("{name} inválido"))
}
