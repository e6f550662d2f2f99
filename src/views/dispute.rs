//! Dispute as JSON: read from the Records that opened and decided it.

use actors::engine::Engine;
use ledger::event::{DisputeKind, Event};
use ledger::id::{GroupNumber, ObjectId};
use ledger::money::Centavos;
use ledger::personal::FreeText;
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::Problem;
use crate::http::reply::time;

/// A dispute, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct DisputeView {
    /// The dispute's id.
    #[schema(format = "uuid")]
    id: String,
    /// The charge: its txid.
    payment_id: String,
    /// `chargeback` or `med`.
    #[schema(pattern = "^(chargeback|med)$")]
    kind: &'static str,
    /// What is disputed, centavos.
    #[schema(example = 3000)]
    amount: i64,
    /// `open`, `accepted` (the money went back to the payer) or `released` (the seller keeps it).
    #[schema(pattern = "^(open|accepted|released)$")]
    status: &'static str,
    /// Why, as the payer's bank says; null when the personal data was erased.
    #[schema(required, example = "Compra não reconhecida")]
    reason: Option<String>,
    /// When it was opened.
    created_at: String,
    /// When it was accepted or released.
    #[schema(required)]
    decided_at: Option<String>,
}

/// A dispute, from its Records.
pub struct Dispute {
    /// Its id.
    pub id: ObjectId,
    /// Of which charge.
    pub charge: ObjectId,
    /// Account group of the merchant.
    pub group: GroupNumber,
    kind: DisputeKind,
    amount: Centavos,
    reason: Option<String>,
    status: &'static str,
    decided_at: Option<Timestamp>,
}

impl Dispute {
    /// Finds a dispute, whosever it is.
    pub fn find(engine: &Engine, id: ObjectId) -> Result<Option<Self>, Problem> {
        for sequence in engine.read_model().about(id)? {
            let opened = Self::opened_by(engine, &engine.record(sequence)?);
            if let Some(dispute) = opened.filter(|dispute| dispute.id == id) {
                return Ok(Some(dispute.followed(engine)?));
            }
        }
        Ok(None)
    }

    /// The dispute that a Record opens.
    pub fn opened_by(engine: &Engine, record: &Record) -> Option<Self> {
        let group = record.owner.group()?;
        let reason = engine.keyring().open_personal::<FreeText>(record);
        record.events.iter().find_map(|event| match event {
            Event::DisputeOpened { id, charge, kind, amount, .. } => Some(Self {
                id: *id,
                charge: *charge,
                group,
                kind: *kind,
                amount: *amount,
                reason: reason.as_ref().map(|reason| reason.text.clone()),
                status: "open",
                decided_at: None,
            }),
            _ => None,
        })
    }

    /// Takes in what the Records about it say of its decision.
    pub fn followed(mut self, engine: &Engine) -> Result<Self, Problem> {
        for sequence in engine.read_model().about(self.id)? {
            let record = engine.record(sequence)?;
            let status = record.events.iter().find_map(|event| match event {
                Event::DisputeAccepted { id, .. } if *id == self.id => Some("accepted"),
                Event::DisputeReleased { id, .. } if *id == self.id => Some("released"),
                _ => None,
            });
            if let Some(status) = status {
                (self.status, self.decided_at) = (status, Some(record.effective_at));
            }
        }
        Ok(self)
    }

    /// The dispute as it is shown by a Record that says so: what came after it is not told.
    pub fn view_as(mut self, status: &'static str, decided_at: Option<Timestamp>) -> DisputeView {
        (self.status, self.decided_at) = (status, decided_at);
        self.view()
    }

    /// The dispute as it is shown.
    pub fn view(&self) -> DisputeView {
        DisputeView {
            id: self.id.uuid().to_string(),
            payment_id: self.charge.txid(),
            kind: match self.kind {
                DisputeKind::Chargeback => "chargeback",
                DisputeKind::Med => "med",
            },
            amount: self.amount.0,
            status: self.status,
            reason: self.reason.clone(),
            created_at: time(self.id.created_at()),
            decided_at: self.decided_at.map(time),
        }
    }
}
