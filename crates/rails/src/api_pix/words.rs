//! Words of the Central Bank's document that decide about money. What is not here says nothing: a
//! new word of an enumeration is no error, and no answer either.

use crate::client::{Word, problem};

/// What a charge's record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChargeStatus {
    /// It may be paid.
    Active,
    /// It was paid.
    Paid,
    /// It was removed: it cannot be paid.
    Removed,
}

/// The word that removes a charge.
pub(super) const REMOVED_BY_RECEIVER: &str = "REMOVIDA_PELO_USUARIO_RECEBEDOR";

const CHARGE_STATUSES: [(&str, ChargeStatus); 4] = [
    ("ATIVA", ChargeStatus::Active),
    ("CONCLUIDA", ChargeStatus::Paid),
    (REMOVED_BY_RECEIVER, ChargeStatus::Removed),
    ("REMOVIDA_PELO_PSP", ChargeStatus::Removed),
];

/// How far a return is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReturnStatus {
    /// The money is with the payer.
    Done,
    /// Not decided yet.
    UnderWay,
    /// No money has moved, and none will.
    Refused,
}

const RETURN_STATUSES: [(&str, ReturnStatus); 3] = [
    ("DEVOLVIDO", ReturnStatus::Done),
    ("EM_PROCESSAMENTO", ReturnStatus::UnderWay),
    ("NAO_REALIZADO", ReturnStatus::Refused),
];

/// Begin of the words for returns that the payer's institution asked for (MED).
const DISPUTE: &str = "MED_";

pub(super) fn charge_status(word: &str) -> Option<ChargeStatus> {
    CHARGE_STATUSES.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)
}

pub(super) fn return_status(word: &str) -> Option<ReturnStatus> {
    RETURN_STATUSES.iter().find(|(known, _)| *known == word).map(|(_, status)| *status)
}

/// True for the `natureza` of a return that we did not order.
pub(super) fn is_of_dispute(natureza: &str) -> bool {
    natureza.starts_with(DISPUTE)
}

/// Refusals of a charge that is registered.
pub(super) const CHARGE_REFUSALS: &[Word] = &[
    problem(400, "CobOperacaoInvalida"),
    problem(422, "CobOperacaoInvalida"),
    problem(400, "RequisicaoInvalida"),
    problem(422, "RequisicaoInvalida"),
    problem(403, "AcessoNegado"),
];

/// Refusals of a return. A general one is not among them: it may end with the cause, such as a
/// scope or a balance that is too small.
pub(super) const RETURN_REFUSALS: &[Word] =
    &[problem(400, "PixDevolucaoInvalida"), problem(422, "PixDevolucaoInvalida")];
