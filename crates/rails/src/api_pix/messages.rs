//! Messages of API Pix, as far as they are read and written here. Amounts are texts with two
//! decimals and are read exactly; a message with anything else in their place cannot be read.

use chrono::DateTime;
use ledger::money::Centavos;
use ledger::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::Answer;

/// A charge, as the institution has it.
#[derive(Deserialize)]
pub(super) struct Charge {
    pub(super) txid: String,
    pub(super) status: String,
    pub(super) calendario: Calendar,
    pub(super) valor: ChargeAmount,
    #[serde(rename = "pixCopiaECola")]
    pub(super) code: Option<String>,
    pub(super) pix: Option<Vec<Payment>>,
}

#[derive(Deserialize)]
pub(super) struct Calendar {
    criacao: Option<String>,
    expiracao: Option<Value>,
}

impl Calendar {
    /// When the code expires; none where the message does not say.
    pub(super) fn expires_at(&self) -> Option<Timestamp> {
        let created_at = instant(self.criacao.as_deref()?)?;
        let seconds = i64::try_from(whole(self.expiracao.as_ref()?)?).ok()?;
        Some(created_at.plus_ms(seconds.checked_mul(1000)?))
    }
}

#[derive(Deserialize)]
pub(super) struct ChargeAmount {
    pub(super) original: String,
}

/// A payment that was received.
#[derive(Deserialize)]
pub(super) struct Payment {
    #[serde(rename = "endToEndId")]
    pub(super) end_to_end_id: String,
    pub(super) txid: Option<String>,
    pub(super) valor: String,
    pub(super) horario: String,
}

/// What has gone back of a payment.
#[derive(Deserialize)]
pub(super) struct ReturnsOfPayment {
    #[serde(rename = "endToEndId")]
    pub(super) end_to_end_id: String,
    pub(super) devolucoes: Option<Vec<Return>>,
}

/// Money of a payment that goes back.
#[derive(Deserialize)]
pub(super) struct Return {
    pub(super) id: String,
    #[serde(rename = "rtrId")]
    pub(super) return_id: Option<String>,
    pub(super) valor: String,
    pub(super) natureza: Option<String>,
    pub(super) horario: Option<ReturnTimes>,
    pub(super) status: String,
    pub(super) motivo: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ReturnTimes {
    solicitacao: Option<String>,
    liquidacao: Option<String>,
}

impl ReturnTimes {
    /// When the money went back or, where that is not said, when it was ordered.
    pub(super) fn at(&self) -> Option<Timestamp> {
        instant(self.liquidacao.as_deref().or(self.solicitacao.as_deref())?)
    }
}

/// A page of payments, each as its text.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    pub(super) parametros: PageParameters,
    #[serde(borrow)]
    pub(super) pix: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct PageParameters {
    pub(super) paginacao: Pagination,
}

#[derive(Deserialize)]
pub(super) struct Pagination {
    #[serde(rename = "paginaAtual")]
    pub(super) page: Option<Value>,
    #[serde(rename = "quantidadeDePaginas")]
    pub(super) pages: Value,
    #[serde(rename = "quantidadeTotalDeItens")]
    pub(super) items: Option<Value>,
}

/// Why a request was refused.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    title: Option<String>,
    detail: Option<String>,
    violacoes: Option<Vec<Violation>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Violation {
    razao: Option<String>,
    propriedade: Option<String>,
}

/// Characters of a reason.
const REASON_LEN_MAX: usize = 300;

/// The reason in a problem document, of at most 300 characters: title, detail and violations.
pub(super) fn reason(answer: &Answer) -> String {
    let problem: Problem = answer.read().unwrap_or_default();
    let violations = problem.violacoes.unwrap_or_default().into_iter().map(|violation| {
        let Violation { razao, propriedade } = violation;
        [propriedade, razao].into_iter().flatten().collect::<Vec<_>>().join(": ")
    });
    let parts = [problem.title, problem.detail].into_iter().flatten().chain(violations);
    let reason = shortened(&parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; "), REASON_LEN_MAX);
    if reason.is_empty() { answer.status.as_str().to_owned() } else { reason }
}

/// The begin of a text, with blanks for control characters.
pub(super) fn shortened(text: &str, len_max: usize) -> String {
    let plain = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(len_max).collect()
}

/// The largest amount that has ten digits before its decimals, centavos.
const AMOUNT_MAX: i64 = 999_999_999_999;

/// An amount as text: `10.50`; none when it is not positive or has too many digits.
pub(super) fn amount_text(amount: Centavos) -> Option<String> {
    (1..=AMOUNT_MAX).contains(&amount.0).then(|| format!("{}.{:02}", amount.0 / 100, amount.0 % 100))
}

/// The amount in a text of 1 to 10 digits, a point and 2 digits.
pub(super) fn amount(text: &str) -> Option<Centavos> {
    let (reais, centavos) = text.split_once('.')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_sound = (1..=10).contains(&reais.len()) && centavos.len() == 2 && is_digits(reais) && is_digits(centavos);
    let value = || Some(Centavos(reais.parse::<i64>().ok()? * 100 + centavos.parse::<i64>().ok()?));
    is_sound.then(value).flatten()
}

/// The instant in a text of RFC 3339, to the millisecond.
pub(super) fn instant(text: &str) -> Option<Timestamp> {
    DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp(at.timestamp_millis()))
}

/// A whole number, written as one or as a text of digits.
pub(super) fn whole(value: &Value) -> Option<u64> {
    let of_text = || value.as_str().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok();
    value.as_u64().or_else(of_text)
}

/// True for the shape of an end-to-end id, and of a return's.
pub(super) fn is_message_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// True for the shape of a payment's txid.
pub(super) fn is_txid(text: &str) -> bool {
    (1..=35).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        let cases =
            [("0.01", 1), ("10.50", 1_050), ("0000000010.50", 1_050), ("9999999999.99", AMOUNT_MAX), ("0.00", 0)];
        for (text, centavos) in cases {
            let expected = Some(Centavos(centavos)).filter(|centavos| centavos.0 >= 0);
            assert_eq!(amount(text), expected, "{text}");
        }
        for text in [
            "",
            "1",
            "1.5",
            "1.505",
            "00000000010.50",
            "10,50",
            "1e3",
            ".50",
            "1.",
            "-1.00",
            "+1.00",
            " 1.00",
            "1.00 ",
            "١.00",
        ] {
            assert_eq!(amount(text), None, "{text}");
        }
        assert_eq!(amount_text(Centavos(1)).as_deref(), Some("0.01"));
        assert_eq!(amount_text(Centavos(AMOUNT_MAX)).as_deref(), Some("9999999999.99"));
        assert_eq!([0, -1, AMOUNT_MAX + 1].map(|centavos| amount_text(Centavos(centavos))), [None, None, None]);
    }

    #[test]
    fn a_number_may_be_a_text_of_digits() {
        let cases = [("300", Some(300)), ("\"300\"", Some(300)), ("0", Some(0))];
        let wrong = ["-1", "1.5", "\"\"", "\"3e2\"", "\"+3\"", "null", "[]"].map(|text| (text, None));
        for (text, expected) in cases.into_iter().chain(wrong) {
            assert_eq!(whole(&serde_json::from_str(text).unwrap()), expected, "{text}");
        }
    }
}
