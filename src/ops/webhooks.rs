//! Webhook endpoints with a backlog: waiting events, events that were given up, and the outcome of
//! the last try.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::id::{GroupNumber, ObjectId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::problem::{Problem, broken};
use crate::http::reply::{ok, time};
use crate::ops::audit::OfMerchant;
use crate::ops::operator::Operator;
use crate::views::delivery::AnswerView;
use crate::webhooks::EndpointBacklog;

/// Items of one answer; `total` counts all.
const ITEMS_MAX: usize = 1_000;

/// The endpoints that are behind.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookBacklogs {
    /// Those whose events have waited longest, 1,000 at most.
    items: Vec<BacklogView>,
    /// How many there are.
    total: usize,
}

/// An endpoint at which events wait or were given up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookBacklog)]
pub struct BacklogView {
    /// The API key whose address it is.
    #[schema(format = "uuid")]
    api_key_id: String,
    /// Whose key it is.
    #[schema(format = "uuid")]
    merchant_id: String,
    /// The address.
    #[schema(example = "https://loja.example.com/webhooks")]
    webhook_url: String,
    /// How many events wait here, 1,000 at most: more of them wait in the journal.
    #[schema(maximum = 1000)]
    waiting: usize,
    /// When the oldest of them happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    oldest_at: Option<String>,
    /// How many of the last 1,000 events that were given up were not asked for again.
    #[schema(maximum = 1000)]
    given_up: usize,
    /// How many tries are under way now.
    under_way: usize,
    /// How the last try ended, of whatever event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_answer: Option<AnswerView>,
}

/// The webhook endpoints at which events wait or were given up, those that have waited longest
/// first.
#[utoipa::path(get, path = "/ops/webhooks", operation_id = "list_webhook_backlogs",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only of this merchant.")),
    responses((status = 200, body = WebhookBacklogs), (status = 404)))]
pub async fn list(
    State(app): State<Arc<App>>,
    _: Operator,
    OfMerchant(group): OfMerchant,
) -> Result<Response, Problem> {
    let (total, backlogs) = app.webhooks.backlogs(group, ITEMS_MAX);
    let views = backlogs.into_iter().map(|(group, key, backlog)| view(&app, group, key, backlog));
    Ok(ok(WebhookBacklogs { items: views.collect::<Result<_, _>>()?, total }))
}

fn view(app: &App, group: GroupNumber, key: ObjectId, backlog: EndpointBacklog) -> Result<BacklogView, Problem> {
    let merchant = app.engine.merchant(group, |row| row.id).ok_or_else(broken)?;
    Ok(BacklogView {
        api_key_id: key.uuid().to_string(),
        merchant_id: merchant.uuid().to_string(),
        webhook_url: app.engine.api_key(key).and_then(|row| row.webhook.url).unwrap_or_default(),
        waiting: backlog.waiting,
        oldest_at: backlog.oldest_at.map(time),
        given_up: backlog.given_up,
        under_way: backlog.under_way,
        last_answer: backlog.last_answer.map(AnswerView::of),
    })
}
