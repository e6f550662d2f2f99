//! Explanations of the differences between a file and the books: the entry that books what is
//! missing, once two operators agree, or a reason. They are stored with the result of the file.

use actors::engine::Engine;
use axum::response::Response;
use ledger::id::ObjectId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operator::DeciderCall;
use crate::reconciliations::{FINDINGS_MAX, FindingView, Reconciliation, change};
use web::idempotency::KeyScope;
use web::json::{Checker, Raw, parse_exact};
use web::problem::{Code, Problem};
use web::reply::time;
use web::views::house_entry::{HouseEntryView, OperatorEntry};

/// What explains a difference.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
#[schema(as = FindingExplanation)]
pub struct Explanation {
    /// Number of the difference: its place in `findings`, from 0.
    #[schema(example = 0)]
    pub finding: usize,
    /// `explained`; `waiting` while its entry waits for the second operator; `rejected` when that
    /// one rejected the entry.
    #[serde(default)]
    #[schema(pattern = "^(explained|waiting|rejected)$")]
    pub status: String,
    /// The operator who explained it.
    #[schema(example = "ana")]
    pub by: String,
    /// When it was explained.
    #[schema(format = "date-time")]
    pub at: String,
    /// Why, in the operator's words.
    #[schema(example = "Tarifa retida pela instituição")]
    pub reason: String,
    /// The entry that books it; absent where a reason is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
}

/// What explains a difference of a result.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(as = FindingExplanationRequest, example = json!({"finding": 0, "reason": "Chega no arquivo de amanhã"}))]
pub struct ExplanationRequest<'a> {
    /// Number of the difference: its place in `findings`, from 0.
    #[schema(value_type = i64, minimum = 0, maximum = 999)]
    finding: Raw<'a>,
    /// Why, at most 500 characters.
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    reason: Raw<'a>,
    /// The entry that books it, from `POST /ops/entries`; absent or null where a reason is enough.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = "uuid")]
    entry_id: Raw<'a>,
}

/// Explains a difference of a result: with a reason, or with an entry that was asked for. One with
/// an entry is explained when the second operator has approved it, and waits until then. What is
/// explained counts no longer in the closing of a month. A reason may be replaced; a difference
/// whose entry waits or is booked is 409 `already_decided`. Nothing is booked here.
#[utoipa::path(post, path = "/ops/reconciliations/{id}/explain", operation_id = "explain_difference",
    params(("id" = String, Path, description = "SHA-256 of the file, hexadecimal.")),
    request_body = ExplanationRequest,
    responses((status = 200, body = Reconciliation), (status = 409)))]
pub async fn explain(call: DeciderCall) -> Result<Response, Problem> {
    let DeciderCall { desk, operator, id, sent, .. } = call;
    let wire: ExplanationRequest<'_> = parse_exact(sent.bytes())?;
    // As of a dismissal: no Record, so the key is checked and not stored.
    sent.key(&desk.engine, KeyScope::Operators, Some(&id))?;
    let mut check = Checker::new();
    let finding = check.integer("finding", wire.finding, 0..=FINDINGS_MAX as i64 - 1);
    let reason = check.prose("reason", wire.reason, 1..=500);
    let entry = check.optional(wire.entry_id, |check, raw| check.uuid("entry_id", raw));
    let (finding, reason) = check.finish_with(finding.zip(reason))?;
    let (finding, reason, by) = (finding as usize, reason.into_owned(), operator.name);
    change(&desk, id, move |engine, result| {
        let mut check = Checker::new();
        let found = result.findings.iter().flatten().nth(finding);
        // What is in suspense is booked: an entry moves it from there.
        if found.is_none_or(|found| found.finding == "in_suspense") {
            check.refuse::<()>("finding", "unknown", "finding não é uma diferença deste resultado");
        }
        let entry_id = entry.map(|id| id.to_string());
        if entry_id.as_deref().is_some_and(|id| status_of_entry(engine, id) == Some("rejected")) {
            check.refuse::<()>("entry_id", "unknown", "entry_id não é um lançamento que espera ou vale");
        }
        check.finish()?;
        let before = result.explanations.iter().find(|explanation| explanation.finding == finding);
        if before.is_some_and(|before| before.entry_id != entry_id && before.is_with_entry(engine)) {
            return Err(Problem::new(Code::AlreadyDecided).detail("The difference has an entry that explains it."));
        }
        result.explanations.retain(|explanation| explanation.finding != finding);
        let (status, at) = (String::new(), time(engine.now()));
        result.explanations.push(Explanation { finding, status, by, at, reason, entry_id });
        Ok(())
    })
    .await
}

/// Status of an operator's entry as that of an explanation. `None` where another process has the
/// entry; what is no entry explains as little as a rejected one.
fn status_of_entry(engine: &Engine, id: &str) -> Option<&'static str> {
    let found = ObjectId::parse(id).map(|id| OperatorEntry::find(engine, id)).transpose().ok()?;
    Some(match found.flatten().map(|entry| HouseEntryView::of_any(engine, entry).status) {
        Some("approved") => "explained",
        Some("pending") => "waiting",
        _ => "rejected",
    })
}

impl Explanation {
    /// Sets the status as the books have it now.
    pub(crate) fn set_status(&mut self, engine: &Engine) {
        let of_entry = |id: &str| status_of_entry(engine, id).unwrap_or("waiting");
        self.status = self.entry_id.as_deref().map_or("explained", of_entry).to_owned();
    }

    fn is_with_entry(&self, engine: &Engine) -> bool {
        self.entry_id.as_deref().is_some_and(|id| status_of_entry(engine, id) != Some("rejected"))
    }
}

/// The explanations of an earlier result of the same file that hold for new findings: of those that
/// are found again, and of the entries that explained one, which the file lacks.
pub(crate) fn carried_over(before: &Reconciliation, findings: &[FindingView]) -> Vec<Explanation> {
    let old: Vec<_> = before.findings.iter().flatten().collect();
    let explained = |finding: &FindingView| {
        before.explanations.iter().find(|explanation| {
            let is_same = old.get(explanation.finding).is_some_and(|old| *old == finding);
            is_same || finding.kind == "entry" && explanation.entry_id.as_ref() == Some(&finding.id)
        })
    };
    let found = findings.iter().enumerate();
    found.filter_map(|(place, finding)| Some(Explanation { finding: place, ..explained(finding)?.clone() })).collect()
}
