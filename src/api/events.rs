//! `GET /api/events`, `GET /api/events/{id}` and `POST /api/events/{id}/redeliver`: the webhook
//! events of an account (interface section 6), also of an account without a webhook address.

use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::response::Response;
use ledger::id::ObjectId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::body::JsonBody;
use crate::http::caller::{Caller, PathId};
use crate::http::idempotency::{KeyScope, SentKey};
use crate::http::json::parse_unread;
use crate::http::problem::{Code, Problem};
use crate::http::reply::{List, PageQuery, list_of, ok, time};
use crate::views::delivery::AnswerView;
use crate::webhooks::DeliveryStatus;
use crate::webhooks::body::WebhookBody;
use crate::webhooks::event::OutboxEvent;

/// An event: what its webhooks say, and how far they have come.
#[derive(Debug, Serialize, ToSchema)]
pub struct EventView {
    /// The event's id: `webhook-id` of every try.
    #[schema(format = "uuid")]
    id: String,
    /// The body of its webhooks, member by member.
    #[serde(flatten)]
    body: WebhookBody,
    /// When it happened.
    created_at: String,
    /// Its delivery to each API key that has an address now.
    deliveries: Vec<DeliveryView>,
}

/// One endpoint's delivery.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeliveryView {
    /// The API key whose address it is.
    #[schema(format = "uuid")]
    api_key_id: String,
    /// `pending`, `delivered`, or `failed` after the last try.
    #[schema(pattern = "^(pending|delivered|failed)$")]
    status: &'static str,
    /// Tries in vain, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    failed_tries: Option<u32>,
    /// When it is tried next, on the service's clock; absent while it waits for an earlier event
    /// about the same thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_try_at: Option<String>,
    /// How its last try ended; absent before the first, and once it is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last_answer: Option<AnswerView>,
}

impl EventView {
    fn of(app: &App, caller: Caller, event: &OutboxEvent) -> Result<Self, Problem> {
        let statuses = app.webhooks.delivery_statuses(caller.group, event.number()).into_iter();
        Ok(Self {
            id: event.id.uuid().to_string(),
            body: WebhookBody::of(&app.engine, event)?,
            created_at: time(event.at()),
            deliveries: statuses.filter_map(|(key, status)| DeliveryView::of(key, status)).collect(),
        })
    }
}

impl DeliveryView {
    /// None of an endpoint that was set after the event.
    fn of(key: ObjectId, status: DeliveryStatus) -> Option<Self> {
        let (status, failed_tries, next_try_at, last_answer) = match status {
            DeliveryStatus::Before => return None,
            DeliveryStatus::Pending { tries, next_at, last_answer } => {
                ("pending", Some(tries), next_at.map(time), last_answer)
            }
            DeliveryStatus::Delivered => ("delivered", None, None, None),
            DeliveryStatus::GivenUp { last_answer } => ("failed", None, None, last_answer),
        };
        let last_answer = last_answer.map(AnswerView::of);
        Some(Self { api_key_id: key.uuid().to_string(), status, failed_tries, next_try_at, last_answer })
    }
}

/// The account's events, newest first.
#[utoipa::path(get, path = "/api/events", operation_id = "list_events",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<EventView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, .. }: PageQuery,
) -> Result<Response, Problem> {
    let total = app.engine.webhook_event_count(caller.group, Sequence(u64::MAX))?;
    let last = total.saturating_sub(page.skip());
    let first = last.saturating_sub(page.per_page) + 1;
    let listed = app.engine.webhook_events(caller.group, first..last + 1)?;
    let view = move |listed| EventView::of(&app, caller, &OutboxEvent::read(&app.engine, caller.group, listed)?);
    list_of(total, page, listed.into_iter().rev().map(view))
}

/// One event of the account.
#[utoipa::path(get, path = "/api/events/{id}", operation_id = "get_event", params(("id" = String, Path)),
    responses((status = 200, body = EventView)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(id): PathId) -> Result<Response, Problem> {
    Ok(ok(EventView::of(&app, caller, &find(&app, caller, &id)?)?))
}

/// Sends an event once more, at once, to every API key of the account that has an address. Its id
/// and body are the same. An address where 1,000 events wait already takes no more; 429 when that
/// holds for all of them.
#[utoipa::path(post, path = "/api/events/{id}/redeliver", operation_id = "redeliver_event", params(("id" = String, Path)),
    responses((status = 200, body = EventView)))]
pub async fn redeliver(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    parse_unread(&body)?;
    // It commits no Record, so there is no answer to keep: a key is checked and not kept.
    sent_key.read(&app.engine, KeyScope::Merchant(caller.group), Some(&id), &body)?;
    let event = find(&app, caller, &id)?;
    if !app.webhooks.deliver_again(caller.group, &event, app.engine.now()) {
        let detail = "1,000 events wait at each address of the account.";
        return Err(Problem::new(Code::RateLimited).detail(detail).retry_after(60));
    }
    Ok(ok(EventView::of(&app, caller, &event)?))
}

fn find(app: &App, caller: Caller, id: &str) -> Result<OutboxEvent, Problem> {
    let found = match ObjectId::parse(id) {
        Some(id) => OutboxEvent::find(&app.engine, caller.group, id)?,
        None => None,
    };
    found.ok_or_else(|| Problem::new(Code::NotFound))
}
