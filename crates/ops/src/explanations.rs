//! Explanations of the differences between a file and the books: the entry that books what is
//! missing, once two operators agree, or a reason. They are stored with the result of the file.

use actors::engine::Engine;
use axum::response::Response;
use ledger::id::ObjectId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::DeciderCall;
use crate::reconciliations::finding_view::ReconciliationFindingView;
use crate::reconciliations::stored_results::change;
use crate::reconciliations::{FINDINGS_MAX, Reconciliation};
use web::views::house_entry::{HouseEntryView, OperatorEntry};
use web::{Checker, Code, KeyScope, Problem, Raw, Result, checked, parse_exact, time};

/// What explains a difference.
#[derive(Clone, Debug, Deserialize, Serialize, ToSchema)]
pub struct FindingExplanationView {
    /// Number of the difference: its place in `findings`, from 0.
    pub finding: usize,
    /// `explained`; `waiting` while its entry waits for the second operator; `rejected` when that
    /// one rejected the entry; `replaced` when another explanation took its place.
    #[serde(default)]
    #[schema(pattern = "^(explained|waiting|rejected|replaced)$")]
    pub status: String,
    /// The operator who explained it.
    pub by: String,
    /// When it was explained.
    pub at: String,
    /// Why, in the operator's words.
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
    #[schema(value_type = Option<String>, format = "uuid")]
    entry_id: Raw<'a>,
}

/// Explains a difference of a result: with a reason, or with an entry that was asked for. One with
/// an entry is explained when the second operator has approved it, and waits until then. The entry
/// moves the bank account of the file by the difference, and by the others of the file that have
/// the same entry, or by more. What is explained counts no longer in the closing of a month. A
/// reason may be replaced, up to 9 times; what it was stays. A difference whose entry waits or is
/// booked, and one of a dismissed result, is 409 `already_decided`. Nothing is booked here.
#[utoipa::path(post, path = "/ops/reconciliations/{id}/explain", operation_id = "explain_difference",
    params(("id" = String, Path, description = "SHA-256 of the file, hexadecimal.")),
    request_body = ExplanationRequest,
    responses((status = 200, body = Reconciliation), (status = 409)))]
pub async fn explain(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = call;
    let wire: ExplanationRequest<'_> = parse_exact(sent.bytes())?;
    // As of a dismissal: no Record, so the key is checked and not stored.
    sent.key(&desk.engine, KeyScope::Operators, Some(&id))?;
    let (finding, reason, entry) = checked(|check| {
        let finding = check.integer("finding", wire.finding, 0..=FINDINGS_MAX as i64 - 1);
        let reason = check.prose("reason", wire.reason, 1..=500);
        let entry = check.optional(wire.entry_id, |check, raw| check.uuid("entry_id", raw));
        Some((finding?, reason?, entry))
    })?;
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
        } else if let (Some(id), Some(found)) = (&entry_id, found)
            && !removes(engine, id, result, (finding, found))
        {
            let message = "entry_id deve mover a conta do banco pela soma das diferenças que explica, ou por mais";
            check.refuse::<()>("entry_id", "not_the_difference", message);
        }
        check.finish()?;
        let same: Vec<_> = result.explanations.iter_mut().filter(|before| before.finding == finding).collect();
        let is_again =
            |of: &&mut FindingExplanationView| (&of.by, &of.reason, &of.entry_id) == (&by, &reason, &entry_id);
        if result.dismissed.is_none() && same.last().is_some_and(is_again) {
            return Ok(());
        }
        let is_decided = same.last().is_some_and(|before| before.is_with_entry(engine));
        if result.dismissed.is_some() || is_decided || same.len() >= EXPLANATIONS_MAX {
            let detail = "The difference has an entry that explains it, or the result was dismissed.";
            return Err(Problem::new(Code::AlreadyDecided).detail(detail));
        }
        tracing::info!(operator = by, file = result.sha256, finding, "an operator explains a difference");
        same.into_iter().for_each(|before| before.status = REPLACED.to_owned());
        let (status, at) = (String::new(), time(engine.now()));
        result.explanations.push(FindingExplanationView { finding, status, by, at, reason, entry_id });
        Ok(())
    })
    .await
}

/// Status of an explanation in whose place another one came.
pub(crate) const REPLACED: &str = "replaced";
/// Explanations of a difference at most, with those that were replaced.
const EXPLANATIONS_MAX: usize = 10;

/// Whether an entry moves the bank account of a file by a difference and by the others that it
/// explains there, or by more. Of an acquirer it may move what is in suspense: a line that stands
/// twice in a batch is there. One of another process is believed, and waits.
fn removes(
    engine: &Engine,
    id: &str,
    result: &Reconciliation,
    (place, found): (usize, &ReconciliationFindingView),
) -> bool {
    let Some(Some(entry)) = entry_of(engine, id) else { return true };
    let more = found.more_at_the_bank();
    let side = if more < 0 { &entry.credit } else { &entry.debit };
    let is_moved = *side == result.bank() || result.kind == "acquirer" && side.ends_with("Suspense");
    let has_it = |known: &&FindingExplanationView| {
        known.finding != place && known.status != REPLACED && known.entry_id.as_deref() == Some(id)
    };
    let others = result.explanations.iter().filter(has_it);
    let others = others.filter_map(|known| result.findings.as_ref()?.get(known.finding));
    let others: i64 = others.map(|other| other.more_at_the_bank().abs()).sum();
    more == 0 || is_moved && entry.amount >= more.abs().saturating_add(others)
}

/// The entry of an id, if it is one; `None` where another process has it.
fn entry_of(engine: &Engine, id: &str) -> Option<Option<HouseEntryView>> {
    let found = ObjectId::parse(id).map(|id| OperatorEntry::find(engine, id)).transpose().ok()?;
    Some(found.flatten().map(|entry| HouseEntryView::of_any(engine, entry)))
}

/// Status of an operator's entry as that of an explanation. `None` where another process has the
/// entry; what is no entry explains as little as a rejected one.
fn status_of_entry(engine: &Engine, id: &str) -> Option<&'static str> {
    Some(match entry_of(engine, id)?.map(|entry| entry.status) {
        Some("approved") => "explained",
        Some("pending") => "waiting",
        _ => "rejected",
    })
}

impl FindingExplanationView {
    /// Sets the status as the books have it now.
    pub(crate) fn set_status(&mut self, engine: &Engine) {
        if self.status == REPLACED {
            return;
        }
        let of_entry = |id: &str| status_of_entry(engine, id).unwrap_or("waiting");
        self.status = self.entry_id.as_deref().map_or("explained", of_entry).to_owned();
    }

    /// Whether an entry explains it, or will: by the status that was set.
    pub(crate) fn is_of_live_entry(&self) -> bool {
        self.entry_id.is_some() && matches!(self.status.as_str(), "explained" | "waiting")
    }

    fn is_with_entry(&self, engine: &Engine) -> bool {
        self.entry_id.as_deref().is_some_and(|id| status_of_entry(engine, id) != Some("rejected"))
    }
}

/// The explanations of an earlier result of the same file that hold for new findings: of those that
/// are found again, and of the entries that explained one and that the file lacks. A line that
/// differs from such an entry is not explained by it.
pub(crate) fn carried_over(
    before: &Reconciliation,
    findings: &[ReconciliationFindingView],
) -> Vec<FindingExplanationView> {
    let mut old: Vec<_> = before.findings.iter().flatten().enumerate().collect();
    let mut carried = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        let same = old.iter().position(|(_, known)| known.is_same(finding)).map(|at| old.swap_remove(at).0);
        let mut own: Vec<_> = before.explanations.iter().filter(|known| Some(known.finding) == same).collect();
        if own.is_empty() && finding.finding == "only_ours" && finding.kind == "entry" {
            let is_of_it = |known: &&FindingExplanationView| known.entry_id.as_ref() == Some(&finding.id);
            own.extend(before.explanations.iter().filter(|known| known.status != REPLACED).find(is_of_it));
        }
        carried.extend(
            own.into_iter().map(|explanation| FindingExplanationView { finding: place, ..explanation.clone() }),
        );
    }
    carried
}
