//! Disputes, as merchants read them. The operations team opens and decides them ([`super::ops::disputes`]).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::event::{DisputeKind, Event};
use ledger::id::{GroupNumber, ObjectId};
use ledger::money::Centavos;
use ledger::personal::FreeText;
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Caller};
use super::problem::{Code, Problem};
use super::reply::{List, PageQuery, list_of, time};

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
    /// Whose.
    pub group: GroupNumber,
    kind: DisputeKind,
    amount: Centavos,
    reason: Option<String>,
    status: &'static str,
    decided_at: Option<Timestamp>,
}

impl Dispute {
    /// Finds a dispute, whosever it is.
    pub fn find(app: &App, id: ObjectId) -> Result<Option<Self>, Problem> {
        for sequence in app.engine.read_model().about(id)? {
            let opened = Self::opened_by(app, &app.engine.record(sequence)?);
            if let Some(dispute) = opened.filter(|dispute| dispute.id == id) {
                return Ok(Some(dispute.followed(app)?));
            }
        }
        Ok(None)
    }

    /// The dispute that a Record opens.
    pub fn opened_by(app: &App, record: &Record) -> Option<Self> {
        let group = record.owner.group()?;
        let reason = app.engine.keyring().open_personal::<FreeText>(record);
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
    fn followed(mut self, app: &App) -> Result<Self, Problem> {
        for sequence in app.engine.read_model().about(self.id)? {
            let record = app.engine.record(sequence)?;
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

/// The disputes of the account's charges, newest first.
#[utoipa::path(get, path = "/api/disputes", operation_id = "list_disputes",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<DisputeView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let read_model = app.engine.read_model();
    let (total, opened) = read_model.disputes_page(caller.ledger(), page.skip(), page.count())?;
    let items = opened.into_iter().map(move |sequence| {
        let dispute = Dispute::opened_by(&app, &app.engine.record(sequence)?);
        Ok(dispute.ok_or_else(|| Problem::new(Code::Internal))?.followed(&app)?.view())
    });
    list_of(total, page, items)
}
