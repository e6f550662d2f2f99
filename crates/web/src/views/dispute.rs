//! Dispute as JSON.

use actors::engine::Engine;
use ledger::dispute::DisputeDecision;
use ledger::{Dispute, DisputeKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time;
use crate::views::refund::reason_text;

/// A dispute, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct DisputeView {
    /// The dispute's id.
    pub id: String,
    /// The charge: its txid.
    payment_id: String,
    /// `chargeback` or `med`.
    #[schema(pattern = "^(chargeback|med)$")]
    kind: &'static str,
    /// What is disputed, centavos.
    pub amount: i64,
    /// True when it passes what refunds and other disputes had left of the charge: to be contested.
    exceeds_charge: bool,
    /// The part that passes it, centavos; where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    exceeding_amount: Option<i64>,
    /// The part that was accepted, centavos, where it was; the rest was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_amount: Option<i64>,
    /// `open`, `accepted` (the money went back to the payer), `released` (the seller keeps it) or
    /// `reversed` (it was accepted and won later: the seller has the money again).
    #[schema(pattern = "^(open|accepted|released|reversed)$")]
    pub status: &'static str,
    /// Why, as the payer's bank says; null when the personal data was erased.
    #[schema(required, example = "Compra não reconhecida")]
    pub reason: Option<String>,
    /// The rail's id of the case; absent from a dispute that an operator opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    case_id: Option<String>,
    /// Until when the rail has to be answered, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_at: Option<String>,
    /// When it was opened.
    pub created_at: String,
    /// When it was decided last.
    #[schema(required)]
    decided_at: Option<String>,
}

/// The status of a dispute, as the wire says it.
pub fn dispute_status(decision: &DisputeDecision) -> &'static str {
    decision.into()
}

impl DisputeView {
    /// What is shown of a dispute.
    pub fn of(engine: &Engine, dispute: &Dispute) -> Self {
        Self {
            id: dispute.id.uuid().to_string(),
            payment_id: dispute.charge.txid(),
            kind: match dispute.kind {
                DisputeKind::Chargeback => "chargeback",
                DisputeKind::Med => "med",
            },
            amount: dispute.amount.0,
            exceeds_charge: dispute.exceeds.is_some(),
            exceeding_amount: dispute.exceeds.map(|amount| amount.0),
            accepted_amount: match dispute.decision {
                DisputeDecision::Accepted { amount, .. } | DisputeDecision::Reversed { amount, .. } => Some(amount.0),
                DisputeDecision::Open | DisputeDecision::Released { .. } => None,
            },
            status: dispute_status(&dispute.decision),
            reason: reason_text(engine, dispute.id, dispute.reason.as_ref()),
            case_id: dispute.case.as_ref().map(|case| case.id.clone()),
            due_at: dispute.case.as_ref().and_then(|case| case.due_at).map(time),
            created_at: time(dispute.id.created_at()),
            decided_at: dispute.decision.at().map(time),
        }
    }
}
