//! Entry of the house ledger as JSON.

use ledger::house::{HouseEntry, HouseEntryDecision};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::reply::time;
use crate::http::timestamp::date;

/// An entry of the house ledger, as read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HouseEntry)]
pub struct HouseEntryView {
    /// Its id.
    #[schema(format = "uuid")]
    id: String,
    /// `pending`, `approved` or `rejected`. An approved one is booked.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    status: &'static str,
    /// The account that is debited.
    #[schema(example = "Assets:Bank:Own")]
    debit: String,
    /// The account that is credited.
    #[schema(example = "Assets:Bank:Settlement")]
    credit: String,
    /// Amount of the entry, centavos.
    #[schema(example = 250_000)]
    amount: i64,
    /// Why, as the operator who asked for it said.
    #[schema(example = "Comissão de novembro")]
    reason: String,
    /// Reference of the document that proves it.
    #[schema(example = "EXTRATO-2026-11-30-17")]
    reference: String,
    /// The day on which it takes effect; absent where it is the day of its booking.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = Date, example = "2026-11-30")]
    effective_date: Option<String>,
    /// The operator who asked for it.
    #[schema(example = "ana")]
    requested_by: String,
    /// When it was asked for.
    #[schema(format = "date-time")]
    created_at: String,
    /// The operator who approved or rejected it; absent while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "rui")]
    decided_by: Option<String>,
    /// Why it was rejected; rejected ones only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = "Valor diferente do extrato")]
    notes: Option<String>,
}

impl HouseEntryView {
    /// What is shown of an entry.
    pub fn of(entry: HouseEntry) -> Self {
        let (status, decided_by, notes) = match entry.decision {
            HouseEntryDecision::Pending => ("pending", None, None),
            HouseEntryDecision::Approved { by } => ("approved", Some(by), None),
            HouseEntryDecision::Rejected { by, notes } => ("rejected", Some(by), Some(notes)),
        };
        Self {
            id: entry.id.uuid().to_string(),
            status,
            debit: entry.terms.debit.account().kind_name(),
            credit: entry.terms.credit.account().kind_name(),
            amount: entry.terms.amount.0,
            reason: entry.reason,
            reference: entry.terms.reference,
            effective_date: entry.terms.effective_day.map(date),
            requested_by: entry.requested_by,
            created_at: time(entry.id.created_at()),
            decided_by,
            notes,
        }
    }
}
