//! Cashout as JSON (interface 2.6, 3.2).

use actors::engine::Engine;
use ledger::cashout::CashoutStage;
use ledger::{Cashout, Centavos, ObjectId, PixDestination, SealedFor};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::views::labels::LabelsView;
use wire::timestamp::with_microseconds;

/// A cashout, as created and as listed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CashoutSummary)]
pub struct CashoutItem {
    /// Always `cashout`.
    #[schema(pattern = "^(cashout)$")]
    object: &'static str,
    /// The cashout's id.
    pub id: String,
    /// The caller's id of the transfer, or the one that was made.
    merchant_transaction_id: String,
    /// Net centavos that the receiver gets: gross minus fee.
    amount: i64,
    /// `in_processing`, `processed` or `failed`; `failed` too once the bank has sent the money of a
    /// processed one back.
    #[schema(pattern = "^(in_processing|processed|failed)$")]
    status: &'static str,
    /// When it was created, with microseconds.
    #[schema(format = "date-time", example = "2026-07-01T12:00:00.250000+00:00")]
    date_created: String,
    #[serde(flatten)]
    labels: LabelsView,
}

/// A cashout, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct CashoutView {
    #[serde(flatten)]
    item: CashoutItem,
    /// The transfer's id at the institution; null until it was processed.
    #[schema(required, example = "019b8c4e5f5d8a3e9c1d2f3a4b5c6d7e")]
    picpay_transfer_id: Option<String>,
    /// The receiver's PIX key; telephone numbers with `+55`.
    pix_key: String,
    /// `cpf`, `cnpj`, `email`, `phone` or `evp`.
    #[schema(pattern = "^(cpf|cnpj|email|phone|evp)$")]
    pix_key_type: &'static str,
    /// The PIX end-to-end id; null until it was processed.
    #[schema(required, example = "E00000000202607011200abcdef01234")]
    end_to_end_id: Option<String>,
    /// Why it failed, in the words of the institution or of the operations team; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "O banco recusou a transferência: conta encerrada")]
    notes: Option<String>,
    /// Who failed it: the `bank`, which did not carry it out, or the bank, which `returned` the
    /// money; absent unless it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(bank|returned)$")]
    rejected_by: Option<&'static str>,
    /// When it last changed, with microseconds.
    #[schema(format = "date-time", example = "2026-07-01T12:00:00.250000+00:00")]
    date_updated: String,
}

/// The status of a cashout (interface 3.2).
pub fn cashout_status(stage: &CashoutStage) -> &'static str {
    match stage {
        CashoutStage::InProcessing => "in_processing",
        CashoutStage::Processed { .. } => "processed",
        CashoutStage::Failed { .. } | CashoutStage::Returned { .. } => "failed",
    }
}

/// The receiver of a cashout, and the labels as they are now; empty when the personal data was
/// erased.
pub fn destination(engine: &Engine, cashout: &Cashout) -> PixDestination {
    let open = |sealed| engine.keyring().open_value(SealedFor::pix_destination(cashout.id), sealed);
    let first: PixDestination = cashout.destination.as_ref().and_then(open).unwrap_or_default();
    PixDestination { labels: engine.labels_now(cashout.id, first.labels, cashout.metadata.as_ref()), ..first }
}

impl CashoutView {
    /// The cashout as `GET /api/cashout/{id}` shows it.
    pub fn of(engine: &Engine, cashout: &Cashout) -> Self {
        let (picpay_transfer_id, end_to_end_id) = match &cashout.stage {
            CashoutStage::Processed { transfer_id, end_to_end_id }
            | CashoutStage::Returned { transfer_id, end_to_end_id, .. } => {
                (Some(transfer_id.clone()), Some(end_to_end_id.clone()))
            }
            _ => (None, None),
        };
        let destination = destination(engine, cashout);
        let (rejected_by, notes) = cashout.rejection().unzip();
        Self {
            item: CashoutItem::of(
                cashout.id,
                cashout.transaction,
                cashout.net(),
                &cashout.stage,
                destination.labels.into(),
            ),
            picpay_transfer_id,
            pix_key: destination.key,
            pix_key_type: destination.kind.name(),
            end_to_end_id,
            notes: notes.flatten().map(str::to_owned),
            rejected_by: rejected_by.map(Into::into),
            date_updated: with_microseconds(cashout.updated_at.0),
        }
    }
}

impl CashoutItem {
    /// The cashout as its creation is answered, and as lists show it.
    pub fn of(id: ObjectId, transaction: [u8; 16], net: Centavos, stage: &CashoutStage, labels: LabelsView) -> Self {
        Self {
            object: "cashout",
            id: id.uuid().to_string(),
            merchant_transaction_id: Uuid::from_bytes(transaction).hyphenated().to_string(),
            amount: net.0,
            status: cashout_status(stage),
            date_created: with_microseconds(id.created_at().0),
            labels,
        }
    }
}
