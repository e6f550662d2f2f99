//! Infractions (`infracoes`) of Efí: open cases of special returns (MED), and our answers to them.
//!
//! The list is no part of the Central Bank's document, and clients of Efí read it in two forms. An
//! infraction without a deadline in the future is no open case.

use actors::rails::{CaseAnswer, CaseStage, PixSpan, RailCase, RailError, RailResult};
use hyper::Method;
use ledger::id::ObjectId;
use serde::Deserialize;
use serde_json::json;

use crate::client::values::{REASON_LEN_MAX, amount, instant, is_message_id, shortened};

use super::calls::Calls;
use super::messages::ReturnedPayment;
use wire::timestamp::with_milliseconds;

/// Path of the list; `/{idInfracao}/defesa` follows for an answer.
const LIST: &str = "/v2/gn/infracoes";
/// How long an infraction can be open, milliseconds: 30 days.
const OPEN_WITHIN_MS: i64 = 30 * 24 * 60 * 60 * 1000;
/// Characters of an id.
const ID_LEN_MAX: usize = 64;
/// The reason of an answer for which the operator gave none.
const NO_REASON: &str = "Sem observações";

#[derive(Deserialize)]
#[serde(untagged)]
enum InfractionList {
    Whole { infracoes: Vec<Infraction> },
    Bare(Vec<Infraction>),
}

#[derive(Deserialize)]
struct Infraction {
    #[serde(rename = "idInfracao")]
    id: String,
    #[serde(rename = "endToEndId")]
    end_to_end_id: String,
    valor: serde_json::Value,
    razao: Option<String>,
    #[serde(rename = "dadosAnalise")]
    analysis: Option<Deadline>,
    #[serde(rename = "prazoFinalizacao")]
    deadline: Option<String>,
}

#[derive(Deserialize)]
struct Deadline {
    #[serde(rename = "prazoFinalizacao")]
    deadline: Option<String>,
}

/// The infractions that are open at the end of a span. One that cannot be read is left out, which
/// the log says.
pub(super) async fn open(calls: &Calls, span: PixSpan) -> RailResult<Vec<RailCase>> {
    let query =
        [("inicio", with_milliseconds(span.from.plus_ms(-OPEN_WITHIN_MS).0)), ("fim", with_milliseconds(span.until.0))];
    let answer = calls.get(LIST, &query).await?;
    let list = match answer.status.as_u16() {
        200 => answer.read::<InfractionList>(),
        status => Err(format!("its answer {status} is none that is known")),
    };
    let infractions = match list {
        Ok(InfractionList::Whole { infracoes } | InfractionList::Bare(infracoes)) => infracoes,
        Err(defect) => {
            calls.complain(LIST, &defect);
            return Err(RailError::NoAnswer);
        }
    };
    let mut cases = Vec::new();
    for infraction in infractions {
        match read(calls, &infraction, span).await? {
            Ok(case) => cases.extend(case),
            Err(defect) => calls.complain(LIST, defect),
        }
    }
    Ok(cases)
}

/// The case of an infraction; `None` of one that is over. The inner error names the field that
/// cannot be read.
async fn read(
    calls: &Calls,
    infraction: &Infraction,
    span: PixSpan,
) -> RailResult<Result<Option<RailCase>, &'static str>> {
    let Infraction { id, end_to_end_id, valor, razao, analysis, deadline } = infraction;
    let deadline = analysis.as_ref().and_then(|analysis| analysis.deadline.as_ref()).or(deadline.as_ref());
    let Some(due_at) = deadline.and_then(|text| instant(text)).filter(|due_at| *due_at > span.until) else {
        return Ok(Ok(None));
    };
    if !is_id(id) {
        return Ok(Err("idInfracao has not 1 to 64 letters, digits and hyphens"));
    }
    if !is_message_id(end_to_end_id) {
        return Ok(Err("endToEndId has not 32 letters and digits"));
    }
    // A number may be reais or centavos.
    let Some(amount) = valor.as_str().and_then(amount).filter(|amount| amount.is_positive()) else {
        return Ok(Err("valor is no amount"));
    };
    let path = format!("{}/{end_to_end_id}", calls.institution.pix);
    let answer = calls.get(&path, &[]).await?;
    let payment = if answer.status.as_u16() == 200 { answer.read::<ReturnedPayment>().ok() } else { None };
    let txid = payment.and_then(|payment| payment.txid);
    let Some(charge) = txid.as_deref().and_then(ObjectId::parse) else {
        return Ok(Err("endToEndId is of no charge of ours"));
    };
    let reason = shortened(razao.as_deref().unwrap_or_default(), REASON_LEN_MAX);
    let (id, due_at) = (id.clone(), Some(due_at));
    let stage = CaseStage::Open;
    Ok(Ok(Some(RailCase { id, charge, amount, reason, due_at, stage, is_debit_alone: false })))
}

fn is_id(id: &str) -> bool {
    (1..=ID_LEN_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Answers an infraction.
pub(super) async fn answer(calls: &Calls, answer: &CaseAnswer) -> RailResult<()> {
    // A special return names no infraction.
    if !is_id(&answer.id) {
        return Err(RailError::NotSent);
    }
    let path = format!("{LIST}/{}/defesa", answer.id);
    let analysis = if answer.accepts { "aceito" } else { "rejeitado" };
    let reason = answer.reason.as_deref().unwrap_or(NO_REASON);
    let body = json!({ "analise": analysis, "justificativa": reason });
    let answered = calls.order(Method::POST, &path, &body).await?;
    if answered.status.is_success() {
        return Ok(());
    }
    calls.complain(&path, &format!("it answers {}: {}", answered.status.as_u16(), super::messages::reason(&answered)));
    Err(RailError::NoAnswer)
}
