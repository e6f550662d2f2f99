//! `GET /api/events`, `GET /api/events/{id}`, its tries, and `POST /api/events/{id}/redeliver`: the
//! webhook events of an account (interface section 6), also of an account without a webhook
//! address. `POST /api/webhooks/test`: a test of an address.

use std::time::Duration;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::ObjectId;
use ops::webhooks::{EventTry, TestView, event_tries, require_address, send_test};
use serde::Serialize;
use store::Sequence;
use tokio::time::{Instant, timeout};
use utoipa::ToSchema;

use crate::api::app::{App, AppState};
use web::json::parse_unread;
use web::reply::{All, first_of, list_on};
use web::views::delivery::AnswerView;
use web::{
    Caller, Code, Cursors, KeyScope, KeyedBody, List, Page, PageQuery, PathId, Problem, Result, broken, not_found,
    number, ok, query, time,
};
use webhooks::DeliveryStatus;
use webhooks::body::WebhookBody;
use webhooks::event::OutboxEvent;

/// An event: what its webhooks say, and how far they have come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub struct EventView {
    /// The event's id: `webhook-id` of every try.
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
#[schema(as = WebhookDelivery)]
pub struct DeliveryView {
    /// The API key whose address it is.
    api_key_id: String,
    /// `pending`, `delivered`, or `failed` after the last try.
    #[schema(pattern = "^(pending|delivered|failed)$")]
    status: &'static str,
    /// Tries in vain, while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_tries: Option<u32>,
    /// When it is tried next, on the service's clock; absent while it waits for an earlier event
    /// about the same thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_try_at: Option<String>,
    /// How its last try ended; absent before the first, and once it is delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_answer: Option<AnswerView>,
}

impl EventView {
    fn of(app: &App, caller: Caller, event: &OutboxEvent) -> Result<Self> {
        let statuses = app.webhooks.delivery_statuses(caller.group, event).into_iter();
        Ok(Self {
            id: event.id.uuid().to_string(),
            body: WebhookBody::of(&app.engine, event)?,
            created_at: time(event.at()),
            deliveries: statuses.filter_map(|(key, status)| DeliveryView::of(key, status)).collect(),
        })
    }
}

impl DeliveryView {
    /// None of an endpoint that the event is not for.
    fn of(key: ObjectId, status: DeliveryStatus) -> Option<Self> {
        let (status, failed_tries, next_try_at, last_answer) = match status {
            DeliveryStatus::NotSent => return None,
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

/// Query of the events: a page of them, or those after or before a number.
#[derive(Debug)]
pub struct EventQuery {
    page: Page,
    /// Number of the last event that the caller knows.
    after: Option<u64>,
    /// Number of the first event that is not asked for.
    before: Option<u64>,
    cursors: Cursors,
    /// How long to wait for an event when there is none after that number.
    wait: Duration,
}

/// The longest wait for an event, seconds.
const WAIT_MAX: u64 = 20;
/// How often a waiting request looks for new Records.
const LOOKS_EVERY: Duration = Duration::from_millis(250);

impl<S: Sync> FromRequestParts<S> for EventQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let pairs = query(parts)?;
        let wait = number(&pairs, "wait", 0..=WAIT_MAX)?.unwrap_or_default();
        let after = number(&pairs, "after", 0..=u64::MAX >> 1)?;
        Ok(Self {
            page: Page::read(&pairs, 20)?,
            after,
            before: number(&pairs, "before", 0..=u64::MAX >> 1)?,
            cursors: Cursors::going_on(parts, if after.is_some() { "after" } else { "before" })?,
            wait: Duration::from_secs(wait),
        })
    }
}

/// The account's events, newest first. With `after`, the `sequence` of an event, those that came
/// later, oldest first: a program that cannot receive webhooks reads on from the last event that it
/// knows, beginning with 0. When that is the last event, the answer waits for the next one, at most
/// `wait` seconds. `next` goes on in the same order.
#[utoipa::path(get, path = "/api/events", operation_id = "list_events",
    params(("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query), ("limit" = Option<u64>, Query),
        ("before" = Option<u64>, Query, minimum = 0, description = "Only events with a `sequence` below this one."),
        ("after" = Option<u64>, Query, minimum = 0, description = "The `sequence` of the last event that the caller knows.", example = 0),
        ("wait" = Option<u64>, Query, minimum = 0, maximum = 20, description = "Seconds to wait for the next event.", example = 5)),
    responses((status = 200, body = List<EventView>)))]
pub async fn list(
    State(app): AppState,
    caller: Caller,
    EventQuery { page, after, before, cursors, wait }: EventQuery,
) -> Result<Response> {
    let count = count(&app, caller, after, wait).await?;
    let newest = before.map_or(count, |before| count.min(before.saturating_sub(1)));
    let total = newest.saturating_sub(after.unwrap_or_default());
    let numbers = match after {
        Some(after) => {
            let first = after.saturating_add(page.skip()).saturating_add(1);
            first..first.saturating_add(page.per_page).min(newest + 1).max(first)
        }
        None => {
            let last = newest.saturating_sub(page.skip());
            last.saturating_sub(page.per_page) + 1..last + 1
        }
    };
    let last = if after.is_some() { numbers.end.saturating_sub(1) } else { numbers.start };
    let mut listed = app.engine.webhook_events(caller.group, numbers)?;
    if after.is_none() {
        listed.reverse();
    }
    let view = move |listed| EventView::of(&app, caller, &OutboxEvent::read(&app.engine, caller.group, listed)?);
    let next = cursors.next(total, page, Some(last.to_string()));
    list_on(total, page, next, listed.into_iter().map(view))
}

/// Number of the account's events. Waits for one after `after`, until the server stops at the
/// latest. No request waits while too many others do.
async fn count(app: &App, caller: Caller, after: Option<u64>, wait: Duration) -> Result<u64> {
    let waits = app.event_waits.try_acquire().ok().filter(|_| after.is_some());
    let (deadline, mut ending) = (Instant::now() + wait, app.ending.clone());
    loop {
        let through = app.engine.published();
        let count = app.engine.webhook_event_count(caller.group, Sequence(u64::MAX))?;
        if waits.is_none() || after != Some(count) {
            return Ok(count);
        }
        while app.engine.published() == through {
            // A merchant who moves to another process asks again there.
            let is_over = Instant::now() >= deadline || !app.engine.serves(caller.group);
            if is_over || timeout(LOOKS_EVERY, ending.wait_for(|ends| *ends)).await.is_ok() {
                return Ok(count);
            }
        }
    }
}

/// One event of the account.
#[utoipa::path(get, path = "/api/events/{id}", operation_id = "get_event",
    responses((status = 200, body = EventView)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    Ok(ok(EventView::of(&app, caller, &find(&app, caller, &id)?)?))
}

/// Sends an event once more, at once, to every API key of the account that has an address and
/// receives events of its kind. Its id and body are the same. An address where 1,000 events wait
/// already takes no more; 429 when that holds for all of them.
#[utoipa::path(post, path = "/api/events/{id}/redeliver", operation_id = "redeliver_event",
    responses((status = 200, body = EventView)))]
pub async fn redeliver(State(app): AppState, caller: Caller, PathId(id): PathId, sent: KeyedBody) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), Some(&id))?;
    let event = find(&app, caller, &id)?;
    key.once(&app.redelivered, async {
        if !app.webhooks.deliver_again(caller.group, &event, app.engine.now()) {
            let detail = "1,000 events wait at each address of the account.";
            return Err(Problem::new(Code::RateLimited).detail(detail).retry_after(60));
        }
        EventView::of(&app, caller, &event)
    })
    .await
}

/// The tries to deliver an event to the addresses that the account has now, each with what the
/// address answered, newest first. The body of each is that of the event. Stored are the last 1,000
/// tries of an address that failed and the last 50 that it accepted.
#[utoipa::path(get, path = "/api/events/{id}/tries", operation_id = "list_event_tries",
    params(("limit" = Option<u64>, Query),
        ("before" = Option<u64>, Query, minimum = 1, description = "Only what is older than the try of this number, which `next` has; the oldest is 1.")),
    responses((status = 200, body = All<EventTry>)))]
pub async fn tries(State(app): AppState, caller: Caller, PathId(id): PathId, query: PageQuery) -> Result<Response> {
    let tries = event_tries(&app.webhooks, caller.group, &find(&app, caller, &id)?);
    let count = tries.len();
    let [_, before] =
        query.cursors.places(|text| Ok(text.parse().ok().filter(|number| (1..=count).contains(number))))?;
    let total = before.map_or(count, |before| before - 1);
    let numbered = (1..=total).rev().zip(tries.into_iter().skip(count - total));
    let (items, next) = query.cursors.first(numbered.map(Ok::<_, Problem>), |(number, _)| number.to_string())?;
    first_of(Some(total as u64), next, items.map(|numbered| Ok(numbered?.1)))
}

/// Sends a test event to the address of the API key that asks for it, once, and waits for the
/// answer, 15 seconds at most. The body is `{event: "webhook.test", timestamp}`, signed as every
/// event is. It is no event of the account: it has no `sequence` and is not tried again. 409 for a
/// key without an address, 503 while there is no room for it.
#[utoipa::path(post, path = "/api/webhooks/test", operation_id = "test_webhook",
    responses((status = 200, body = TestView), (status = 409, description = "`state_conflict`: the key has no address.")))]
pub async fn test(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    parse_unread(sent.bytes())?;
    let once = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let key = caller.key.ok_or_else(broken)?;
    require_address(&app.engine, key)?;
    once.once(&app.redelivered, send_test(&app.engine, &app.webhooks, (caller.group, key))).await
}

fn find(app: &App, caller: Caller, id: &str) -> Result<OutboxEvent> {
    let found = match ObjectId::parse(id) {
        Some(id) => OutboxEvent::find(&app.engine, caller.group, id)?,
        None => None,
    };
    found.ok_or_else(not_found)
}
