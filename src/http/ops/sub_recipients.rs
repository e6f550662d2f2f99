//! The review of sub-recipients (interface 3.4).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::record::Requester;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::app::{App, Operator, PathId, Settled, settled};
use crate::http::body::JsonBody;
use crate::http::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use crate::http::json::{Checker, Raw, parse};
use crate::http::problem::{Code, Problem};
use crate::http::reply::ok;
use crate::http::sub_recipients::{RecipientView, find_recipient, view, view_at_decision};

/// Why something is refused.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"notes": "O documento não confere com o nome"}))]
pub struct Notes<'a> {
    /// The reason, at most 500 characters.
    #[serde(borrow)]
    #[schema(value_type = String, min_length = 1, max_length = 500)]
    notes: Raw<'a>,
}

impl Notes<'_> {
    /// The reason.
    pub fn check(&self) -> Result<String, Problem> {
        let mut check = Checker::new();
        let notes = check.text("notes", self.notes, 1..=500);
        Ok(check.finish_with(notes)?.into_owned())
    }
}

/// Approves a draft or pending recipient, which is active at once; or an active recipient's changed bank account.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/approve", operation_id = "approve_recipient", params(("id" = String, Path)),
    responses((status = 200, body = RecipientView)))]
pub async fn approve(
    State(app): State<Arc<App>>,
    operator: Operator,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    if !body.is_empty() {
        parse::<serde::de::IgnoredAny>(&body)?;
    }
    decide(&app, operator, &id, &sent_key, &body, "approve", |id| Ok(MerchantCommand::ApproveRecipient { id })).await
}

/// Refuses a draft or pending recipient; or an active recipient's changed bank account, and leaves the recipient active.
#[utoipa::path(post, path = "/ops/sub-recipients/{id}/reject", operation_id = "reject_recipient", params(("id" = String, Path)), request_body = Notes,
    responses((status = 200, body = RecipientView)))]
pub async fn reject(
    State(app): State<Arc<App>>,
    operator: Operator,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: Notes<'_> = parse(&body)?;
    let command = |id| Ok(MerchantCommand::RejectRecipient { id, notes: wire.check()? });
    decide(&app, operator, &id, &sent_key, &body, "reject", command).await
}

async fn decide(
    app: &App,
    Operator(operator): Operator,
    id: &str,
    sent_key: &SentKey,
    body: &[u8],
    verb: &str,
    command: impl Fn(ObjectId) -> Result<MerchantCommand, Problem>,
) -> Result<Response, Problem> {
    let found = ObjectId::parse(id).and_then(|id| find_recipient(app, id));
    let (ledger, row) = found.ok_or_else(|| Problem::new(Code::NotFound))?;
    let group = ledger.group().ok_or_else(|| Problem::new(Code::Internal))?;
    let route = format!("POST /ops/sub-recipients/{}/{verb}", row.id.txid());
    let key = Key::of(app, sent_key, "operations", &route, body, None)?;
    let shown = |app: &App| find_recipient(app, row.id).map(|(ledger, row)| ok(view(app, ledger, &row)));
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(app, LedgerId::Merchant(group))? {
            Keyed::Replay(record, _) => return Ok(replayed(ok(view_at_decision(app, ledger, &row, &record)))),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        let command = command(row.id)?;
        let outcome =
            app.engine.command(group, command, lookup, Some(Requester::Operator(operator.clone())), permit).await?;
        match settled(outcome)? {
            Settled::KeyTaken => {}
            Settled::Recorded(_) | Settled::Unchanged => return shown(app).ok_or_else(|| Problem::new(Code::Internal)),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}
