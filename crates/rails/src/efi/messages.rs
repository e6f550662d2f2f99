//! Messages of Efí's pay-outs, as far as they are read and written here.

use actors::rails::{Destination, PayoutAnswer, ReturnedPayout, SendPayout, UnpayableAccount};
use ledger::personal::AccountKind;
use ledger::{BankAccount, Centavos, ObjectId, PayoutBank, RailStamp, Timestamp};
use serde::Deserialize;
use serde_json::{Value, json};

use super::words::{RETURNED, TransferStatus, transfer_status};
use crate::client::Answer;
use crate::client::values::{REASON_LEN_MAX, amount, amount_text, instant, is_message_id, reason_of, shortened};
use crate::participant_lists::ParticipantLists;

/// Characters of a text to the receiver; Efí wants fewer than 140.
const TEXT_LEN_MAX: usize = 139;
/// Characters of a name; Efí wants fewer than 200.
const NAME_LEN_MAX: usize = 199;
/// Digits of a branch.
const BRANCH_LEN_MAX: usize = 4;
/// Digits of an account, with its check digit.
const ACCOUNT_LEN_MAX: usize = 20;

/// The body of an order; where it would have a defect, the reason that nothing is ordered.
pub(super) fn order(call: &SendPayout, key: &str, lists: &ParticipantLists) -> Result<Value, String> {
    let amount = amount_text(call.amount).ok_or("O valor não tem de 1 a 10 dígitos antes dos centavos")?;
    let (receiver, text) = match &call.to {
        Destination::PixKey(to) => (json!({ "chave": to.key }), to.info.as_deref()),
        Destination::Account(account) => {
            let account = receiving_account(account, lists).map_err(|unpayable| unpayable.reason.to_owned())?;
            (json!({ "contaBanco": account }), None)
        }
    };
    let mut body = json!({ "valor": amount, "pagador": { "chave": key }, "favorecido": receiver });
    if let Some(text) = text.map(|text| shortened(text, TEXT_LEN_MAX)).filter(|text| !text.is_empty()) {
        body["pagador"]["infoPagador"] = text.into();
    }
    Ok(body)
}

fn lacks(field: &'static str, reason: &'static str) -> UnpayableAccount {
    UnpayableAccount { field, reason }
}

/// Holds the institution of an account against the lists. An account that was taken before a list
/// changed is not held to it any more: Efí says what it can pay to.
pub(super) fn check_institution(account: &BankAccount, lists: &ParticipantLists) -> Result<(), UnpayableAccount> {
    let Some(ispb) = account.ispb.as_deref() else { return Ok(()) };
    if !lists.has(ispb) {
        return Err(lacks("ispb", "Nenhuma instituição das listas do Banco Central tem este ISPB"));
    }
    let of_code = account.bank_code.as_deref().and_then(|code| lists.ispb_of(code));
    if of_code.is_some_and(|of_code| of_code != ispb) {
        return Err(lacks("bank_code", "O código e o ISPB são de instituições diferentes"));
    }
    Ok(())
}

/// A bank account as Efí wants it. The ISPB is that of the code where none was given and a list has
/// the code.
pub(super) fn receiving_account(account: &BankAccount, lists: &ParticipantLists) -> Result<Value, UnpayableAccount> {
    let of_code = || lists.ispb_of(account.bank_code.as_deref()?);
    let ispb = account
        .ispb
        .as_deref()
        .or_else(of_code)
        .ok_or(lacks("ispb", "A instituição que paga precisa do ISPB do banco"))?;
    let branch = account.agencia.as_deref().map(without_zeros).filter(|branch| branch.len() <= BRANCH_LEN_MAX);
    let branch = branch.ok_or(lacks("agencia", "A instituição que paga precisa da agência, de até 4 dígitos"))?;
    let number = format!("{}{}", account.conta, digits_of(account.conta_dv.as_deref().unwrap_or_default()));
    if number.len() > ACCOUNT_LEN_MAX {
        return Err(lacks("conta", "A instituição que paga aceita até 20 dígitos de conta e dígito verificador"));
    }
    let name = account.legal_name.as_deref().map(|name| shortened(name, NAME_LEN_MAX)).filter(|name| !name.is_empty());
    let name = name.ok_or(lacks("legal_name", "A instituição que paga precisa do nome do titular"))?;
    let document = if account.document.len() == 14 { "cnpj" } else { "cpf" };
    Ok(json!({
        "nome": name,
        document: account.document,
        "codigoBanco": ispb,
        "agencia": branch,
        "conta": number,
        "tipoConta": match account.kind {
            AccountKind::ContaCorrente => "cacc",
            AccountKind::ContaPoupanca => "svgs",
            AccountKind::ContaPagamento => "tran",
        },
    }))
}

/// A branch of more than four digits has zeros before its number.
fn without_zeros(branch: &str) -> &str {
    let mut branch = branch;
    while branch.len() > BRANCH_LEN_MAX {
        match branch.strip_prefix('0') {
            Some(rest) => branch = rest,
            None => break,
        }
    }
    branch
}

/// A check digit as the payment system has it: a letter is 0.
fn digits_of(check_digit: &str) -> String {
    check_digit.chars().map(|digit| if digit.is_ascii_digit() { digit } else { '0' }).collect()
}

/// A transfer, as Efí has it. An order's answer and a look-up name the end-to-end id differently.
#[derive(Deserialize)]
struct Transfer {
    #[serde(rename = "idEnvio")]
    id: String,
    #[serde(rename = "e2eId")]
    of_order: Option<String>,
    #[serde(rename = "endToEndId")]
    of_look_up: Option<String>,
    valor: String,
    status: String,
    horario: Option<Times>,
    motivo: Option<String>,
    devolucoes: Option<Vec<Return>>,
}

impl Transfer {
    fn end_to_end_id(&self) -> Result<&str, String> {
        let ids = [&self.of_order, &self.of_look_up].map(Option::as_deref);
        let id = match ids {
            [Some(one), Some(other)] if one != other => return Err("it has two end-to-end ids".to_owned()),
            [one, other] => one.or(other),
        };
        id.filter(|id| is_message_id(id)).ok_or("its end-to-end id has not 32 letters and digits".to_owned())
    }
}

/// Money of a transfer that came back.
#[derive(Deserialize)]
struct Return {
    #[serde(rename = "rtrId")]
    return_id: Option<String>,
    valor: String,
    /// Absent where all that is listed is back.
    status: Option<String>,
    motivo: Option<String>,
    horario: Option<ReturnTime>,
}

/// When money came back: one instant, or the times of a transfer.
#[derive(Deserialize)]
#[serde(untagged)]
enum ReturnTime {
    At(String),
    Times(Times),
}

impl ReturnTime {
    fn at(&self) -> Option<Timestamp> {
        match self {
            Self::At(text) => instant(text),
            Self::Times(times) => times.settled_at(),
        }
    }
}

#[derive(Deserialize)]
struct Times {
    solicitacao: Option<String>,
    liquidacao: Option<String>,
}

impl Times {
    fn ordered_at(&self) -> Option<Timestamp> {
        instant(self.solicitacao.as_deref()?)
    }

    /// When the money moved or, where that is not said, when it was ordered.
    fn settled_at(&self) -> Option<Timestamp> {
        instant(self.liquidacao.as_deref().or(self.solicitacao.as_deref())?)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    nome: Option<String>,
    mensagem: Option<String>,
}

/// The word of a refusal, for the log: an operator mends what it names. Its message may name a
/// person.
pub(super) fn word(answer: &Answer) -> String {
    let is_word =
        |word: &String| word.len() <= 64 && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let word = answer.read::<Refusal>().unwrap_or_default().nome.filter(is_word);
    word.map(|word| format!(" ({word})")).unwrap_or_default()
}

/// Why a request was refused, of at most 300 characters: Efí's message, or its word.
pub(super) fn reason(answer: &Answer) -> String {
    let Refusal { nome, mensagem } = answer.read().unwrap_or_default();
    let said = [mensagem, nome].into_iter().flatten().map(|text| shortened(&text, REASON_LEN_MAX));
    said.into_iter().find(|text| !text.is_empty()).unwrap_or_else(|| answer.status.as_str().to_owned())
}

/// The outcome of a transfer of ours, as an answer has it. Errors: the defect of the answer.
pub(super) fn outcome(answer: &Answer, call: &SendPayout, from: PayoutBank) -> Result<PayoutAnswer, String> {
    let transfer: Transfer = answer.read()?;
    if transfer.id != call.id.txid() {
        return Err("idEnvio is another one".to_owned());
    }
    if amount(&transfer.valor) != Some(call.amount) {
        return Err("valor is not the amount".to_owned());
    }
    let status = transfer_status(&transfer.status).ok_or("status is a word that is not known")?;
    if status == TransferStatus::Refused {
        return Ok(PayoutAnswer::Failed { reason: reason_of(transfer.motivo.as_deref(), &transfer.status) });
    }
    let end_to_end_id = transfer.end_to_end_id()?.to_owned();
    let times = transfer.horario.as_ref().ok_or("horario is absent")?;
    if status == TransferStatus::UnderWay {
        let at = times.ordered_at().ok_or("horario.solicitacao is no instant with a zone")?;
        return Ok(PayoutAnswer::Taken { transfer_id: end_to_end_id, at, from });
    }
    if let Some((reason, stamp)) = returned(&transfer, call.amount)? {
        return Ok(PayoutAnswer::Returned { reason, stamp, to: from });
    }
    let at = times.settled_at().ok_or("horario has no instant with a zone")?;
    Ok(PayoutAnswer::Processed { transfer_id: end_to_end_id.clone(), end_to_end_id, at, from })
}

/// The return of a transfer whose money is back whole, in one piece or in several. It is that of
/// the last piece. A part of the money is no return.
fn returned(transfer: &Transfer, sent: Centavos) -> Result<Option<(String, RailStamp)>, String> {
    let mut sum = Centavos(0);
    let mut last: Option<(Timestamp, &str, &Return)> = None;
    let is_back = |piece: &&Return| piece.status.as_deref().is_none_or(|status| status == RETURNED);
    for piece in transfer.devolucoes.iter().flatten().filter(is_back) {
        let piece_amount = amount(&piece.valor).ok_or("devolucoes.valor is no amount")?;
        let at = piece.horario.as_ref().and_then(ReturnTime::at);
        let at = at.ok_or("devolucoes.horario has no instant with a zone")?;
        let id = piece.return_id.as_deref().filter(|id| is_message_id(id));
        let id = id.ok_or("devolucoes.rtrId has not 32 letters and digits")?;
        sum = Centavos(sum.0.saturating_add(piece_amount.0));
        if last.is_none_or(|(last_at, last_id, _)| (last_at, last_id) < (at, id)) {
            last = Some((at, id, piece));
        }
    }
    match last {
        Some(_) if sum > sent => Err("more came back than was sent".to_owned()),
        Some((at, id, piece)) if sum == sent => {
            Ok(Some((reason_of(piece.motivo.as_deref(), RETURNED), RailStamp::new(id.to_owned(), at))))
        }
        _ => Ok(None),
    }
}

/// The return of a transfer in Efí's list; `None` if the transfer is not ours, or its money did not
/// come back whole.
pub(super) fn returned_payout(text: &str, to: PayoutBank) -> Result<Option<ReturnedPayout>, String> {
    #[derive(Deserialize)]
    struct Id {
        #[serde(rename = "idEnvio")]
        id: Option<String>,
    }
    let wrong = |_| "a field is absent or wrong".to_owned();
    let id = serde_json::from_str::<Id>(text).map_err(wrong)?.id.unwrap_or_default();
    let Some(id) = ObjectId::parse(&id).filter(|ours| ours.txid() == id) else { return Ok(None) };
    let transfer: Transfer = serde_json::from_str(text).map_err(wrong)?;
    if transfer_status(&transfer.status) != Some(TransferStatus::Done) {
        return Ok(None);
    }
    let amount = amount(&transfer.valor).ok_or("valor is no amount")?;
    let returned = returned(&transfer, amount)?;
    Ok(returned.map(|(reason, stamp)| ReturnedPayout { id, amount, reason, stamp, to }))
}
