//! Invented parties of the demonstration and of `centavo trigger`, and the requests that they send.
//! Their tax ids only have valid check digits.

use serde_json::{Value, json};

/// The merchant's name.
pub const MERCHANT: &str = "Loja Demonstração";
/// The merchant's CNPJ, by which a second start finds the merchant.
pub const MERCHANT_DOCUMENT: &str = "11222333000181";

/// A sub-recipient.
pub struct Recipient {
    /// Full name.
    pub name: &'static str,
    /// The CPF, digits only.
    pub document: &'static str,
    /// Share of every charge, percent.
    pub percent: i64,
}

/// The sub-recipients.
pub const RECIPIENTS: [Recipient; 3] = [
    Recipient { name: "Recebedor Um", document: "52998224725", percent: 20 },
    Recipient { name: "Recebedor Dois", document: "11144477735", percent: 15 },
    Recipient { name: "Recebedor Três", document: "39053344705", percent: 10 },
];

const PAYER_DOCUMENT: &str = "12345678909";

/// Number of a card that the sandbox approves.
pub const APPROVED_CARD: &str = "4111111111111111";
/// Number of a card that the sandbox refuses.
pub const REFUSED_CARD: &str = "4000000000000002";

/// The request that opens the merchant's account.
pub fn merchant() -> Value {
    json!({ "name": MERCHANT, "document": MERCHANT_DOCUMENT, "city": "São Paulo", "split_enabled": true,
        "cashout_enabled": true })
}

/// The request that registers a sub-recipient, a person.
pub fn registration(name: &str, document: &str) -> Value {
    json!({
        "register_information": {
            "type": "individual",
            "document_number": document,
            "name": name,
            "birthdate": "15/03/1990",
            "mother_name": "Mãe Exemplo",
            "address": { "street": "Rua Augusta", "number": "100", "neighborhood": "Consolação", "city": "São Paulo",
                "state": "SP", "zip_code": "01305000" },
            "phone_numbers": [{ "ddd": "11", "number": "987654321" }],
        },
        "bank_account": bank_account("56789"),
    })
}

/// A bank account with this number.
pub fn bank_account(number: &str) -> Value {
    json!({ "bank_code": BANK, "agencia": BRANCH, "conta": number, "conta_dv": account_digit(number) })
}

/// Code of the bank of every account: Banco do Brasil.
pub const BANK: &str = "001";
/// The branch of every account, without its check digit.
pub const BRANCH: &str = "1234";

/// The check digit of an account of Banco do Brasil: weights 9, 8, … from the right, modulo 11,
/// with X for ten.
pub fn account_digit(number: &str) -> String {
    let digits = number.chars().rev().filter_map(|digit| digit.to_digit(10));
    let sum: u32 = digits.zip((2..=9).rev().cycle()).map(|(digit, weight)| digit * weight).sum();
    if sum % 11 == 10 { "X".to_owned() } else { (sum % 11).to_string() }
}

/// A person's tax id with valid check digits, from nine digits.
pub fn cpf(number: u32) -> String {
    let mut digits: Vec<u32> =
        format!("{:09}", number % 1_000_000_000).chars().filter_map(|c| c.to_digit(10)).collect();
    for _ in 0..2 {
        let sum: u32 = digits.iter().rev().zip(2..).map(|(digit, weight)| digit * weight).sum();
        digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
    }
    digits.iter().map(u32::to_string).collect()
}

/// The request for a card charge of `amount` centavos, with a split for each of `recipients` (ids).
pub fn card(number: u64, amount: i64, recipients: &[String], year: i32) -> Value {
    json!({
        "amount": amount,
        "customer": customer(number),
        "credit_card": credit_card(APPROVED_CARD, year),
        "splits": splits(amount, recipients),
    })
}

/// A numbered payer.
pub fn customer(number: u64) -> Value {
    json!({ "name": payer(number), "email": "pagador@example.com", "document": PAYER_DOCUMENT })
}

/// A card, as a payer types it.
pub fn credit_card(number: &str, year: i32) -> Value {
    json!({ "number": number, "holder_name": "PAGADOR TESTE", "exp_month": 12, "exp_year": year, "cvv": "123" })
}

/// The request for a PIX charge of `amount` centavos, with the same splits.
pub fn pix(amount: i64, recipients: &[String]) -> Value {
    let valor = format!("{}.{:02}", amount / 100, amount % 100);
    json!({ "valor": valor, "nome": payer(0), "cpf": PAYER_DOCUMENT, "splits": splits(amount, recipients) })
}

/// Total of a numbered charge, centavos: about 50 to 200 reais.
pub fn amount(number: u64) -> i64 {
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
        for number in [0, 1, 123_456_789, 999_999_998, 4_000_000_000] {
            // Digits that are all the same are no tax id.
            assert_eq!(ledger::tax_id::is_cpf(&cpf(number)), number % 1_000_000_000 > 0, "{number}");
        }
    }
}
