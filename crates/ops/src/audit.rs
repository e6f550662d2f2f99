//! Audit trail: the Records that operators requested, and the changes of bank accounts and the
//! cancelled withdrawals that API keys requested. A row is part of its Record, so neither exists
//! without the other.

use std::sync::Arc;

use actors::engine::Listed;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use ledger::audit::{AuditSubject, AuditedFact};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::record::Record;
use serde::Serialize;
use store::cut::Position;
use store::{Partition, Sequence};
use utoipa::ToSchema;

use crate::audited_changes::{FieldChange, changes};
use crate::desk::Desk;
use crate::merchants;
use crate::operator::Operator;
use web::problem::Problem;
use web::reply::{List, PageQuery, list_of, query, single, time};
use web::views::recipient::recipient_id;

/// One thing that an operator did, a change of where money goes, or a withdrawal taken back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditRow {
    /// When it took effect.
    #[schema(format = "date-time")]
    pub at: String,
    /// The operator's name, as configured with the token; null when a merchant's API key did it.
    #[schema(required, example = "ana")]
    pub operator: Option<String>,
    /// The API key, when one did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub api_key_id: Option<String>,
    /// What was done.
    #[schema(
        pattern = "^(create|change|revoke|rotate_secret|approve|reject|open|accept|release|advance|request|settle|close|read|pay|freeze|unfreeze|cancel)$"
    )]
    pub action: &'static str,
    /// The merchant that it concerns; null when it concerns none.
    #[schema(required, format = "uuid")]
    pub merchant_id: Option<String>,
    /// To what it was done.
    #[schema(
        pattern = "^(merchant|api_key|recipient|bank_account|withdrawal|refund|dispute|clock|entry|period|tax_ids|charge|rail_item|batch)$"
    )]
    pub kind: &'static str,
    /// Of what it was done to; null for the clock, a month, tax ids and batches.
    #[schema(required, format = "uuid")]
    pub id: Option<String>,
    /// The reason, where one was given; the month, for `period`; the first references, for `batch`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Sem comprovante")]
    pub notes: Option<String>,
    /// The fields that it changed: settings of a merchant, a bank account (masked), the address of
    /// webhooks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// The Record's place in the journal of its partition.
    #[schema(minimum = 1, example = 42)]
    pub sequence: u64,
    /// The partition.
    pub partition: u16,
}

impl AuditRow {
    /// The Record's place.
    pub fn at(&self) -> Position {
        Position { partition: Partition(self.partition), sequence: Sequence(self.sequence) }
    }
}

/// The merchant whose part of a list is asked for, if one is.
#[derive(Clone, Copy, Debug)]
pub struct OfMerchant(pub Option<GroupNumber>);

impl FromRequestParts<Arc<Desk>> for OfMerchant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, desk: &Arc<Desk>) -> Result<Self, Problem> {
        let pairs = query(parts)?;
        let id = single(&pairs, "merchant_id")?;
        id.map(|id| merchants::find(desk, id)).transpose().map(Self)
    }
}

/// What operators did, newest first.
#[utoipa::path(get, path = "/ops/audit", operation_id = "list_audit",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only what concerns this merchant."),
        ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<AuditRow>), (status = 404)))]
pub async fn list(
    State(desk): State<Arc<Desk>>,
    _: Operator,
    OfMerchant(group): OfMerchant,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let Listed { total, items } = desk.engine.audit(group, page.skip(), page.count())?;
    list_of(total, page, items.map(move |found| Ok(row(&desk, found?))))
}

/// A row as it is shown.
pub fn row(desk: &Desk, (at, record, audited): (Position, Record, AuditedFact)) -> AuditRow {
    let merchant = record.owner.group().and_then(|group| desk.engine.merchant(group, |row| row.id));
    let AuditedFact { action, kind, subject, notes } = audited;
    let id = subject_id(desk, &record, subject);
    let changes = changes(desk, &record);
    AuditRow {
        at: time(record.effective_at),
        operator: record.operator,
        api_key_id: record.api_key.map(|key| key.uuid().to_string()),
        action,
        merchant_id: merchant.map(|id| id.uuid().to_string()),
        kind,
        id: id.map(|id| id.uuid().to_string()),
        notes,
        changes,
        sequence: at.sequence.0,
        partition: at.partition.0,
    }
}

/// The id of the thing to which something was done; none for the clock and a report.
fn subject_id(desk: &Desk, record: &Record, subject: AuditSubject) -> Option<ObjectId> {
    let group = record.owner.group();
    match subject {
        AuditSubject::Object(id) => Some(id),
        AuditSubject::Merchant => desk.engine.merchant(group?, |row| row.id),
        AuditSubject::Recipient(number) => recipient_id(&desk.engine, LedgerId::Recipient(group?, number)),
        AuditSubject::Clock | AuditSubject::Period | AuditSubject::Report | AuditSubject::File => None,
    }
}
