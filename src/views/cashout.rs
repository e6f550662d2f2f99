//! Cashout as JSON (interface 2.6, 3.2): read from the Records that created and ended it.

use actors::engine::Engine;
use actors::store::Sequence;
use ledger::event::{CashoutFailure, Event};
use ledger::id::{GroupNumber, ObjectId};
use ledger::money::Centavos;
use ledger::personal::{PixDestination, PixKeyKind};
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::http::problem::{Code, Problem};
use crate::http::timestamp::with_microseconds;

/// A cashout, as created and as listed.
#[derive(Debug, Serialize, ToSchema)]
pub struct CashoutItem {
    /// Always `cashout`.
    #[schema(pattern = "^(cashout)$")]
    object: &'static str,
    /// The cashout's id.
    #[schema(format = "uuid")]
    id: String,
    /// The caller's id of the transfer, or the one that was made.
    #[schema(format = "uuid")]
    merchant_transaction_id: String,
    /// Net centavos that the receiver gets: gross minus fee.
    #[schema(example = 2900)]
    amount: i64,
    /// `in_processing`, `processed` or `failed`.
    #[schema(pattern = "^(in_processing|processed|failed)$")]
    status: &'static str,
    /// When it was created, with microseconds.
    #[schema(format = "date-time", example = "2026-07-01T12:00:00.250000+00:00")]
    date_created: String,
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
    #[schema(example = "ana@example.com")]
    pix_key: String,
    /// `cpf`, `cnpj`, `email`, `phone` or `evp`.
    #[schema(pattern = "^(cpf|cnpj|email|phone|evp)$")]
    pix_key_type: &'static str,
    /// The PIX end-to-end id; null until it was processed.
    #[schema(required, example = "E00000000202607011200abcdef01234")]
    end_to_end_id: Option<String>,
    /// When it last changed, with microseconds.
    #[schema(format = "date-time", example = "2026-07-01T12:00:00.250000+00:00")]
    date_updated: String,
}

/// Where a cashout stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CashoutFate {
    /// The transfer is under way.
    InProcessing,
    /// The institution has sent the money.
    Processed {
        /// The transfer's id at the institution.
        transfer_id: String,
        /// The PIX end-to-end id.
        end_to_end_id: String,
    },
    /// No money was sent.
    Failed(CashoutFailure),
}

impl CashoutFate {
    /// The cashout's status (interface 3.2).
    pub fn status(&self) -> &'static str {
        match self {
            Self::InProcessing => "in_processing",
            Self::Processed { .. } => "processed",
            Self::Failed(_) => "failed",
        }
    }
}

/// A cashout, from its Records.
pub struct Cashout {
    /// Its id.
    pub id: ObjectId,
    transaction: Uuid,
    net: Centavos,
    destination: PixDestination,
    /// Where it stands.
    pub fate: CashoutFate,
    updated_at: Timestamp,
}

impl Cashout {
    /// Finds an account's cashout; none when there is none of this id.
    pub fn find(engine: &Engine, group: GroupNumber, id: ObjectId) -> Result<Option<Self>, Problem> {
        Self::find_through(engine, group, id, Sequence(u64::MAX))
    }

    /// Finds an account's cashout as it was once the Record of this sequence had taken effect.
    pub fn find_through(
        engine: &Engine,
        group: GroupNumber,
        id: ObjectId,
        through: Sequence,
    ) -> Result<Option<Self>, Problem> {
        if engine.ids().group(id) != group {
            return Ok(None);
        }
        let mut about = engine.read_model().about(id)?;
        about.retain(|sequence| *sequence <= through);
        for (place, sequence) in about.iter().enumerate() {
            let created = Self::created_by(engine, &engine.record(*sequence)?);
            if let Some(mut cashout) = created.filter(|cashout| cashout.id == id) {
                cashout.follow(engine, &about[place + 1..])?;
                return Ok(Some(cashout));
            }
        }
        Ok(None)
    }

    /// The cashout that a Record creates, as it stands then.
    pub fn created_by(engine: &Engine, record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::CashoutCreated { id, transaction, amount, fee, .. } => {
                let destination = engine.keyring().open_personal(record);
                Some(Self {
                    id: *id,
                    transaction: Uuid::from_bytes(*transaction),
                    net: *amount - *fee,
                    destination: destination.unwrap_or_default(),
                    fate: CashoutFate::InProcessing,
                    updated_at: id.created_at(),
                })
            }
            _ => None,
        })
    }

    /// The cashout that the Record of this sequence created, as it stands now.
    pub fn created_at(engine: &Engine, sequence: Sequence) -> Result<Self, Problem> {
        let created = Self::created_by(engine, &engine.record(sequence)?);
        let mut cashout = created.ok_or_else(|| Problem::new(Code::Internal))?;
        let about = engine.read_model().about(cashout.id)?;
        cashout.follow(engine, &about)?;
        Ok(cashout)
    }

    /// Takes in what the Records about it say of its end.
    fn follow(&mut self, engine: &Engine, about: &[Sequence]) -> Result<(), Problem> {
        for sequence in about {
            let record = engine.record(*sequence)?;
            for event in &record.events {
                self.fate = match event {
                    Event::CashoutProcessed { id, transfer_id, end_to_end_id, .. } if *id == self.id => {
                        let (transfer_id, end_to_end_id) = (transfer_id.clone(), end_to_end_id.clone());
                        CashoutFate::Processed { transfer_id, end_to_end_id }
                    }
                    Event::CashoutFailed { id, failure, .. } if *id == self.id => CashoutFate::Failed(*failure),
                    _ => continue,
                };
                self.updated_at = record.effective_at;
            }
        }
        Ok(())
    }

    /// The cashout as `GET /api/cashout/:id` shows it.
    pub fn view(&self) -> CashoutView {
        let (picpay_transfer_id, end_to_end_id) = match &self.fate {
            CashoutFate::Processed { transfer_id, end_to_end_id } => {
                (Some(transfer_id.clone()), Some(end_to_end_id.clone()))
            }
            _ => (None, None),
        };
        CashoutView {
            item: self.item(self.fate.status()),
            picpay_transfer_id,
            pix_key: self.destination.key.clone(),
            pix_key_type: kind_name(self.destination.kind),
            end_to_end_id,
            date_updated: with_microseconds(self.updated_at.0),
        }
    }

    /// The cashout as its creation answered it, and as lists show it.
    pub fn item(&self, status: &'static str) -> CashoutItem {
        CashoutItem::of(self.id, self.transaction, self.net, status)
    }
}

impl CashoutItem {
    /// A cashout with this status.
    pub fn of(id: ObjectId, transaction: Uuid, net: Centavos, status: &'static str) -> Self {
        Self {
            object: "cashout",
            id: id.uuid().to_string(),
            merchant_transaction_id: transaction.hyphenated().to_string(),
            amount: net.0,
            status,
            date_created: with_microseconds(id.created_at().0),
        }
    }
}

/// The wire name of a kind of PIX key.
pub fn kind_name(kind: PixKeyKind) -> &'static str {
    match kind {
        PixKeyKind::Cpf => "cpf",
        PixKeyKind::Cnpj => "cnpj",
        PixKeyKind::Email => "email",
        PixKeyKind::Phone => "phone",
        PixKeyKind::Evp => "evp",
    }
}
