//! Results as they are stored: whole and sealed under the SHA-256 of the file, and without their
//! lines in the order in which they were made.

use std::sync::Arc;

use actors::engine::Engine;
use axum::response::Response;
use ledger::SealedFor;

use super::Reconciliation;
use crate::Desk;
use web::streamed_body::{in_turn, turn};
use web::{Result, failed, not_found, ok};

/// Largest number of stored results; the oldest go.
const KEPT_MAX: usize = 1_000;
/// Names of stored results: `reconciliation/<sha256>`, whole.
const RESULTS: &str = "reconciliation/";
/// Names under which they are listed: `reconciled/<time, milliseconds>-<sha256>`, without findings.
const SUMMARIES: &str = "reconciled/";

impl Reconciliation {
    /// The stored results that nobody has dismissed, without their findings.
    pub fn all(engine: &Engine) -> Result<Vec<Self>> {
        let mut all = Self::listed(engine)?;
        all.retain(|result| result.dismissed.is_none());
        Ok(all)
    }

    /// The stored results, oldest first, without their findings.
    pub(super) fn listed(engine: &Engine) -> Result<Vec<Self>> {
        let mut stored = Vec::new();
        for name in engine.side_value_names(SUMMARIES)? {
            let Some(bytes) = engine.side_value(&name)? else { continue };
            match serde_json::from_slice::<Self>(&bytes) {
                Ok(result) => stored.push(result.with_statuses(engine)),
                Err(error) => {
                    tracing::warn!(name, %error, "a stored reconciliation does not count; compare its file again")
                }
            }
        }
        Ok(stored)
    }
}

/// The stored result of a file. Error: 404.
pub(super) fn stored(engine: &Engine, id: &str) -> Result<Reconciliation> {
    let found = if is_digest(id) { result_json(engine, id)? } else { None };
    let found = found.ok_or_else(not_found)?;
    serde_json::from_slice(&found).map_err(failed)
}

/// The JSON of a stored result. It is sealed, since the words of a bank name people; results of
/// before that are plain.
pub(super) fn result_json(engine: &Engine, id: &str) -> Result<Option<Vec<u8>>> {
    let stored = engine.side_value(&result_name(id))?;
    Ok(stored.map(|bytes| engine.keyring().open_secret(sealed_for(id), &bytes).unwrap_or(bytes)))
}

fn keep_whole(engine: &Engine, id: &str, whole: &[u8]) -> Result<()> {
    let sealed = engine.keyring().seal_secret(sealed_for(id), whole).map_err(failed)?;
    Ok(engine.keep(&result_name(id), &sealed)?)
}

fn sealed_for(id: &str) -> SealedFor {
    let mut owner = [0; 16];
    owner.iter_mut().zip(id.bytes()).for_each(|(own, byte)| *own = byte);
    SealedFor::field("reconciliation", owner)
}

/// Changes the stored result of a file, and answers with it. Errors: 404, and those of the change.
pub(crate) async fn change(
    desk: &Arc<Desk>,
    id: String,
    how: impl FnOnce(&Engine, &mut Reconciliation) -> Result<()> + Send + 'static,
) -> Result<Response> {
    let one_at_a_time = turn(&desk.reconciling, "Another file is being compared.").await?;
    let desk = Arc::clone(desk);
    let changed = in_turn(one_at_a_time, move || {
        let mut result = stored(&desk.engine, &id)?;
        how(&desk.engine, &mut result)?;
        keep_changed(&desk.engine, &mut result)?;
        Ok(ok(result.shown(&desk)?))
    });
    changed.await
}

fn result_name(sha256: &str) -> String {
    format!("{RESULTS}{sha256}")
}

fn is_digest(id: &str) -> bool {
    id.len() == 64 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Keeps a result, in place of the one of the same file, as the newest. The summary comes last:
/// what is listed is there.
pub(super) fn keep(engine: &Engine, result: &mut Reconciliation) -> Result<()> {
    let [whole, summary] = whole_and_summary(result)?;
    keep_whole(engine, &result.sha256, &whole)?;
    let names = engine.side_value_names(SUMMARIES)?;
    let (own, others): (Vec<_>, Vec<_>) = names.iter().partition(|name| name.ends_with(&result.sha256));
    own.into_iter().try_for_each(|name| engine.forget(name))?;
    for name in others.iter().take((others.len() + 1).saturating_sub(KEPT_MAX)) {
        engine.forget(name)?;
        engine.forget(&result_name(name.rsplit('-').next().unwrap_or_default()))?;
    }
    Ok(engine.keep(&format!("{SUMMARIES}{:015}-{}", engine.now().0.max(0), result.sha256), &summary)?)
}

/// Keeps a result that was changed, at its place in the list. The whole one comes last: until then
/// it can be changed again.
pub(super) fn keep_changed(engine: &Engine, result: &mut Reconciliation) -> Result<()> {
    let [whole, summary] = whole_and_summary(result)?;
    let names = engine.side_value_names(SUMMARIES)?;
    let mut own = names.iter().filter(|name| name.ends_with(&result.sha256));
    own.try_for_each(|name| engine.keep(name, &summary))?;
    keep_whole(engine, &result.sha256, &whole)
}

/// A result as JSON, with and without its findings.
fn whole_and_summary(result: &mut Reconciliation) -> Result<[Vec<u8>; 2]> {
    let whole = serde_json::to_vec(&result).map_err(failed)?;
    let lines = [&mut result.findings, &mut result.matched_lines, &mut result.undecided_lines].map(Option::take);
    let of_bank = (result.balances.take(), result.accounts.take());
    let summary = serde_json::to_vec(&result).map_err(failed);
    [result.findings, result.matched_lines, result.undecided_lines] = lines;
    (result.balances, result.accounts) = of_bank;
    Ok([whole, summary?])
}
