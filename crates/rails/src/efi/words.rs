//! Words of Efí's pay-outs that decide about money. What is not here says nothing.

use crate::client::{Word, problem};

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferStatus {
    /// Not decided yet.
    UnderWay,
    /// The money is with the receiver.
    Done,
    /// No money has moved, and none will.
    Refused,
}

const STATUSES: [(&str, TransferStatus); 3] = [
    ("EM_PROCESSAMENTO", TransferStatus::UnderWay),
    ("REALIZADO", TransferStatus::Done),
    ("NAO_REALIZADO", TransferStatus::Refused),
];

pub(super) fn transfer_status(word: &str) -> Option<TransferStatus> {
    STATUSES.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)
}

/// The word of a return whose money is back. Its other words say that it is not, or not yet.
pub(super) const RETURNED: &str = "DEVOLVIDO";

/// The answer for an id under which there is no transfer.
pub(super) const NO_TRANSFER: &[Word] = &[problem(404, "PixEnviadoNaoEncontrado")];

/// Refusals of a transfer: of its receiver, its amount, or by Efí's analysis. Those of our own
/// account (`chave_invalida`, `documento_bloqueado`, a balance that is too small) are not among
/// them: they end with their cause, and the transfer is then ordered again.
pub(super) const REFUSALS: &[Word] = &[
    refusal(400, "valor_invalido"),
    refusal(400, "chave_nao_pertence_ao_documento"),
    refusal(404, "chave_favorecido_nao_encontrada"),
    refusal(422, "pagamento_negado"),
];

const fn refusal(status: u16, word: &'static str) -> Word {
    Word { status, member: "nome", word }
}
