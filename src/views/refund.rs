//! Refund as JSON (interface 2.11, 3.6): read from the Records that asked for it and decided it.

use actors::engine::Engine;
use actors::store::Sequence;
use ledger::event::{Event, Split};
use ledger::id::{GroupNumber, ObjectId};
use ledger::money::Centavos;
use ledger::personal::FreeText;
use ledger::record::Record;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::{Code, Problem};
use crate::http::reply::time;
use crate::views::charge::SplitView;

/// A refund, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct RefundView {
    /// The refund's id.
    #[schema(format = "uuid")]
    id: String,
    /// The charge: its txid.
    payment_id: String,
    /// Amount of the refund, centavos.
    #[schema(example = 3000)]
    amount: i64,
    /// `pending`, `approved` or `rejected`.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    status: &'static str,
    /// When it was asked for.
    created_at: String,
    /// Why, as the merchant said; where it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Produto devolvido")]
    reason: Option<String>,
    /// What it takes back of recipients' splits; where it does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    splits: Vec<SplitView>,
    /// Why it was rejected; rejected ones only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Sem comprovante")]
    notes: Option<String>,
}

/// Where a refund stands.
pub enum RefundFate {
    /// Nobody has decided it.
    Pending,
    /// The money went back.
    Approved,
    /// It was rejected, for this reason.
    Rejected(String),
}

impl RefundFate {
    /// The refund's status.
    pub fn status(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected(_) => "rejected",
        }
    }
}

/// A refund, from its Records.
pub struct Refund {
    /// Its id.
    pub id: ObjectId,
    /// Of which charge.
    pub charge: ObjectId,
    /// Account group of the merchant.
    pub group: GroupNumber,
    amount: Centavos,
    take_back: Vec<Split>,
    reason: Option<String>,
    /// Where it stands.
    pub fate: RefundFate,
}

impl Refund {
    /// Finds a refund, whosever it is.
    pub fn find(engine: &Engine, id: ObjectId) -> Result<Option<Self>, Problem> {
        for sequence in engine.read_model().about(id)? {
            let asked = Self::asked_by(engine, &engine.record(sequence)?);
            if let Some(refund) = asked.filter(|refund| refund.id == id) {
                return Ok(Some(refund.followed(engine)?));
            }
        }
        Ok(None)
    }

    /// The refund that a Record asks for.
    pub fn asked_by(engine: &Engine, record: &Record) -> Option<Self> {
        let group = record.owner.group()?;
        let reason = engine.keyring().open_personal::<FreeText>(record);
        record.events.iter().find_map(|event| match event {
            Event::RefundRequested { id, charge, amount, take_back, .. } => Some(Self {
                id: *id,
                charge: *charge,
                group,
                amount: *amount,
                take_back: take_back.clone(),
                reason: reason.as_ref().map(|reason| reason.text.clone()),
                fate: RefundFate::Pending,
            }),
            _ => None,
        })
    }

    /// The refund that the Record of this sequence asked for, as it stands now.
    pub fn asked_at(engine: &Engine, sequence: Sequence) -> Result<Self, Problem> {
        let asked = Self::asked_by(engine, &engine.record(sequence)?);
        asked.ok_or_else(|| Problem::new(Code::Internal))?.followed(engine)
    }

    /// Takes in what the Records about it say of its decision.
    fn followed(mut self, engine: &Engine) -> Result<Self, Problem> {
        for sequence in engine.read_model().about(self.id)? {
            for event in engine.record(sequence)?.events {
                match event {
                    Event::RefundApproved { id, .. } if id == self.id => self.fate = RefundFate::Approved,
                    Event::RefundRejected { id, notes, .. } if id == self.id => self.fate = RefundFate::Rejected(notes),
                    _ => {}
                }
            }
        }
        Ok(self)
    }

    /// The refund as it is shown.
    pub fn view(&self, engine: &Engine) -> RefundView {
        let notes = match &self.fate {
            RefundFate::Rejected(notes) => Some(notes.clone()),
            RefundFate::Pending | RefundFate::Approved => None,
        };
        RefundView {
            id: self.id.uuid().to_string(),
            payment_id: self.charge.txid(),
            amount: self.amount.0,
            status: self.fate.status(),
            created_at: time(self.id.created_at()),
            reason: self.reason.clone(),
            splits: self.take_back.iter().map(|part| SplitView::of(engine, self.group, part)).collect(),
            notes,
        }
    }
}
