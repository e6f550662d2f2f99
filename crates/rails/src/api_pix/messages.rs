//! Messages of API Pix, as far as they are read and written here. Amounts are texts with two
//! decimals and are read exactly; a message with anything else in their place cannot be read.

use ledger::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Answer;
use crate::client::values::{REASON_LEN_MAX, instant, shortened, whole};

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
    /// When the code expires; `None` if the message does not say.
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

/// A payment with its returns, as a list has it.
#[derive(Deserialize)]
pub(super) struct ReturnedPayment {
    pub(super) txid: Option<String>,
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
