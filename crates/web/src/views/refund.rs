//! Refund as JSON (interface 2.11, 3.6).

use actors::engine::Engine;
use ledger::refund::RefundDecision;
use ledger::{FreeText, Labels, ObjectId, Refund, Sealed, SealedFor};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time;
use crate::views::charge::{FeeView, SplitView};
use crate::views::labels::LabelsView;

/// A refund, as read.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct RefundView {
    /// The refund's id.
    pub id: String,
    /// The charge: its txid.
    payment_id: String,
    /// Amount of the refund, centavos.
    pub amount: i64,
    /// `pending`, `approved`, `rejected` or `failed`: approved, and refused by the rail.
    #[schema(pattern = "^(pending|approved|rejected|failed)$")]
    pub status: &'static str,
    /// When it was asked for.
    pub created_at: String,
    /// Why, as the merchant said; where it said so.
    pub reason: Option<String>,
    /// What it takes back of recipients' splits; where it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<SplitView>,
    /// The fees of the charge that came back with it; where some did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fees: Vec<FeeView>,
    /// Why it was rejected, or failed; absent otherwise.
    notes: Option<String>,
    #[serde(flatten)]
    labels: LabelsView,
}

/// What a decision makes of a refund, as the wire says it.
pub fn refund_status(decision: &RefundDecision) -> &'static str {
    decision.into()
}

/// The reason of a refund or dispute; `None` if none was given, or its data was erased.
pub fn reason_text(engine: &Engine, id: ObjectId, sealed: Option<&Sealed>) -> Option<String> {
    free_text(engine, id, sealed)
        .filter(|given| !given.text.is_empty() || given.labels.is_none())
        .map(|given| given.text)
}

/// The labels of a refund; `None` if it has none, or they were erased.
pub fn refund_labels(engine: &Engine, refund: &Refund) -> Option<Labels> {
    let first = free_text(engine, refund.id, refund.reason.as_ref()).and_then(|text| text.labels);
    engine.labels_now(refund.id, first, refund.metadata.as_ref())
}

/// The reason of a refund or dispute with the first labels of a refund; `None` if there are none,
/// or they were erased.
fn free_text(engine: &Engine, id: ObjectId, sealed: Option<&Sealed>) -> Option<FreeText> {
    sealed.and_then(|sealed| engine.keyring().open_value(SealedFor::reason(id), sealed))
}

impl RefundView {
    /// What is shown of a refund.
    pub fn of(engine: &Engine, refund: &Refund) -> Self {
        let group = engine.ids().group(refund.id);
        Self {
            id: refund.id.uuid().to_string(),
            payment_id: refund.charge.txid(),
            amount: refund.amount.0,
            status: refund_status(&refund.decision),
            created_at: time(refund.id.created_at()),
            reason: reason_text(engine, refund.id, refund.reason.as_ref()),
            splits: refund.take_back.iter().map(|part| SplitView::of(engine, group, part)).collect(),
            fees: FeeView::of(&refund.commission),
            notes: refund.decision.notes().map(str::to_owned),
            labels: refund_labels(engine, refund).into(),
        }
    }
}
