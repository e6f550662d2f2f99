//! Parties of the demonstration, and the requests that they send. All are invented; their tax ids
//! only have valid check digits.

use serde_json::{Value, json};

/// The merchant's name.
pub(super) const MERCHANT: &str = "Loja Demonstração";
/// The merchant's CNPJ, by which a second start finds the merchant.
pub(super) const MERCHANT_DOCUMENT: &str = "11222333000181";

/// A sub-recipient.
pub(super) struct Recipient {
    /// Full name.
    pub(super) name: &'static str,
    /// The CPF, digits only.
    pub(super) document: &'static str,
    /// Share of every charge, percent.
    pub(super) percent: i64,
}

/// The sub-recipients.
pub(super) const RECIPIENTS: [Recipient; 3] = [
    Recipient { name: "Recebedor Um", document: "52998224725", percent: 20 },
    Recipient { name: "Recebedor Dois", document: "11144477735", percent: 15 },
    Recipient { name: "Recebedor Três", document: "39053344705", percent: 10 },
];

const PAYER_DOCUMENT: &str = "12345678909";

/// The request that opens the merchant's account.
pub(super) fn merchant() -> Value {
    json!({ "name": MERCHANT, "document": MERCHANT_DOCUMENT, "city": "São Paulo", "split_enabled": true,
        "cashout_enabled": true })
}

/// The request that registers a sub-recipient.
pub(super) fn registration(recipient: &Recipient) -> Value {
    json!({
        "register_information": {
            "type": "individual",
            "document_number": recipient.document,
            "name": recipient.name,
            "birthdate": "15/03/1990",
            "mother_name": "Mãe Exemplo",
            "address": { "street": "Rua Augusta", "number": "100", "neighborhood": "Consolação", "city": "São Paulo",
                "state": "SP", "zip_code": "01305000" },
            "phone_numbers": [{ "ddd": "11", "number": "987654321" }],
        },
        "bank_account": { "bank_code": "001", "agencia": "1234", "conta": "56789", "conta_dv": "0" },
    })
}

/// The request for a card charge of `amount` centavos, with a split for each of `recipients` (ids).
pub(super) fn card(number: u64, amount: i64, recipients: &[String], year: i32) -> Value {
    json!({
        "amount": amount,
        "customer": { "name": payer(number), "email": "pagador@example.com", "document": PAYER_DOCUMENT },
        "credit_card": { "number": "4111111111111111", "holder_name": "PAGADOR TESTE", "exp_month": 12, "exp_year": year,
            "cvv": "123" },
        "splits": splits(amount, recipients),
    })
}

/// The request for a PIX charge of `amount` centavos, with the same splits.
pub(super) fn pix(amount: i64, recipients: &[String]) -> Value {
    let valor = format!("{}.{:02}", amount / 100, amount % 100);
    json!({ "valor": valor, "nome": payer(0), "cpf": PAYER_DOCUMENT, "splits": splits(amount, recipients) })
}

/// Total of a numbered charge, centavos: about 50 to 200 reais.
pub(super) fn amount(number: u64) -> i64 {
    5_000 + i64::try_from(number % 101).unwrap_or_default() * 150 - i64::try_from(number % 7).unwrap_or_default()
}

fn payer(number: u64) -> String {
    format!("Pagador {}", number + 1)
}

fn splits(amount: i64, recipients: &[String]) -> Vec<Value> {
    let part = |(recipient, id): (&Recipient, &String)| json!({ "sub_recipient_id": id, "amount": amount * recipient.percent / 100 });
    RECIPIENTS.iter().zip(recipients).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_stay_between_50_and_200_reais() {
        let amounts: Vec<i64> = (0..1_000).map(amount).collect();
        assert!(amounts.iter().all(|amount| (4_990..=20_000).contains(amount)), "{amounts:?}");
    }

    #[test]
    fn documents_have_valid_check_digits() {
        for recipient in &RECIPIENTS {
            assert!(ledger::tax_id::is_cpf(recipient.document), "{}", recipient.name);
        }
        assert!(ledger::tax_id::is_cpf(PAYER_DOCUMENT));
        assert!(ledger::tax_id::kind(MERCHANT_DOCUMENT).is_some());
    }
}
