//! Webhook endpoints with a backlog: waiting events, events that were given up, and the outcome of
//! the last tries. An endpoint's id is the id of its API key.

use actors::engine::Engine;
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::id::{GroupNumber, ObjectId};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use wire::mask;

use crate::other_nodes::backlogs;
use crate::{DeciderCall, Desk, DeskState, Operator, merchants};
use web::reply::All;
use web::views::delivery::AnswerView;
use web::views::fiscal::without_cpf;
use web::{Code, PathId, Problem, Result, failed, not_found, ok, parse_unread_exact, query, single, time};
use webhooks::body::WebhookBody;
use webhooks::event::OutboxEvent;
use webhooks::{DeliveryTry, EndpointBehind, Webhooks};

/// Items of one answer; `total` counts all.
const ITEMS_MAX: usize = 1_000;

/// An endpoint at which events wait or were given up.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookBacklogView {
    /// The API key whose address it is.
    pub api_key_id: String,
    /// Whose key it is.
    pub merchant_id: String,
    /// The address.
    pub webhook_url: String,
    /// How many events wait here, 1,000 at most: more of them wait in the journal.
    #[schema(maximum = 1000)]
    pub waiting: usize,
    /// When the oldest of them happened.
    pub oldest_at: Option<String>,
    /// How many of the last 1,000 events that were given up were not asked for again.
    #[schema(maximum = 1000)]
    pub given_up: usize,
    /// How many tries are under way now.
    pub under_way: usize,
    /// How the last try ended, of whatever event.
    pub last_answer: Option<AnswerView>,
}

/// The webhook endpoints at which events wait or were given up, those that have waited longest
/// first, 1,000 at most.
#[utoipa::path(get, path = "/ops/webhooks", operation_id = "list_webhook_backlogs",
    params(("merchant_id" = Option<String>, Query, format = "uuid", description = "Only of this merchant.")),
    responses((status = 200, body = All<WebhookBacklogView>), (status = 404)))]
pub async fn list(State(desk): DeskState, _: Operator, parts: Parts) -> Result<Response> {
    let pairs = query(&parts)?;
    let group = single(&pairs, "merchant_id")?.map(|id| merchants::find(&desk, id)).transpose()?;
    let (total, backlogs) = backlogs(&desk, group, ITEMS_MAX).await?;
    let items = backlogs.into_iter().map(|behind| view(&desk, behind)).collect::<Result<_>>()?;
    Ok(ok(All { items, total: total as u64, next: None }))
}

/// An event that is delivered again.
#[derive(Debug, Serialize, ToSchema)]
pub struct RedeliveredEventView {
    /// The event's id.
    id: String,
    /// Its kind, as it is delivered.
    #[schema(example = "charge.paid")]
    kind: &'static str,
}

/// Delivers an event of any merchant again, to every address of its account that has room; 429 when
/// 1,000 events wait at each.
#[utoipa::path(post, path = "/ops/webhooks/{id}/redeliver", operation_id = "redeliver_webhook",
    responses((status = 200, body = RedeliveredEventView)))]
pub async fn redeliver(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let key = call.key(id)?;
    let (group, id, event) = known_event(desk, id)?;
    key.once(&desk.redelivered, async {
        if !desk.webhooks.deliver_again(group, &event, desk.engine.now()) {
            let detail = "1,000 events wait at each address of the account.";
            return Err(Problem::new(Code::RateLimited).detail(detail).retry_after(60));
        }
        tracing::info!(operator = operator.name, event = %id.uuid(), "an operator delivers an event again");
        Ok(RedeliveredEventView { id: id.uuid().to_string(), kind: event.content.kind.into() })
    })
    .await
}

/// A webhook event of any merchant: its body, and its stored tries.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookEventDetailsView {
    /// The event's id: `webhook-id` of every try.
    id: String,
    /// The merchant.
    merchant_id: String,
    /// The body of its webhooks as it is sent, with PIX keys, e-mail addresses and telephone
    /// numbers masked.
    #[schema(value_type = Object)]
    payload: Value,
    /// Its tries among those that are stored, newest first, at endpoints that the account has now.
    tries: Vec<EventTry>,
}

/// A try to deliver one event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEventTry)]
pub struct EventTry {
    /// The API key whose address it is.
    pub api_key_id: String,
    /// How the try ended.
    #[serde(flatten)]
    pub answer: AnswerView,
    /// The first KiB of the answer's body, as text; empty when there was no answer, and where newer
    /// ones took its room.
    pub response: String,
}

/// The webhook event of an id, and the group of its merchant. Error: 404 when there is none.
fn known_event(desk: &Desk, id: &str) -> Result<(GroupNumber, ObjectId, OutboxEvent)> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let group = desk.engine.ids().group(id);
    let event = OutboxEvent::find(&desk.engine, group, id)?.ok_or_else(not_found)?;
    Ok((group, id, event))
}

/// A webhook event of any merchant: the body that is sent, and the outcome of each try with the
/// answer of the endpoint, among the stored tries: of an endpoint the last 1,000 that failed and
/// the last 50 that it accepted.
#[utoipa::path(get, path = "/ops/webhooks/{id}", operation_id = "get_webhook_event",
    responses((status = 200, body = WebhookEventDetailsView), (status = 400), (status = 404)))]
pub async fn event(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let (group, id, event) = known_event(&desk, &id)?;
    Ok(ok(WebhookEventDetailsView {
        id: id.uuid().to_string(),
        merchant_id: desk.engine.merchant_id(group)?.uuid().to_string(),
        payload: payload(&desk, &event)?,
        tries: event_tries(&desk.webhooks, group, &event),
    }))
}

/// The body of an event's webhooks, with PIX keys, e-mail addresses, telephone numbers and the CPFs
/// of issuers of fiscal documents masked.
pub fn payload(desk: &Desk, event: &OutboxEvent) -> Result<Value> {
    let mut body = serde_json::to_value(WebhookBody::of(&desk.engine, event)?).map_err(failed)?;
    mask_contacts(&mut body);
    Ok(body)
}

/// The answer with a view whose customer's e-mail and phone are masked.
pub(crate) fn without_contacts(view: &impl Serialize) -> Result<Response> {
    let mut body = serde_json::to_value(view).map_err(failed)?;
    mask_contacts(&mut body);
    Ok(ok(body))
}

fn mask_contacts(value: &mut Value) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::String(text) if ["pix_key", "email", "phone"].contains(&name.as_str()) => {
                *text = if text.contains('@') { mask::email(text) } else { mask::account(text) };
            }
            Value::String(text) if name == "key" => *text = without_cpf(text),
            member => mask_contacts(member),
        }),
        Value::Array(items) => items.iter_mut().for_each(mask_contacts),
        _ => {}
    }
}

/// The stored tries of an event, newest first.
pub fn event_tries(webhooks: &Webhooks, group: GroupNumber, event: &OutboxEvent) -> Vec<EventTry> {
    let view = |(key, DeliveryTry { answer, response, .. }): (ObjectId, DeliveryTry)| EventTry {
        api_key_id: key.uuid().to_string(),
        answer: AnswerView::of(answer),
        response: response.into(),
    };
    webhooks.tries_of_event(group, event.number()).into_iter().map(view).collect()
}

/// Outcome of a test event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestedEndpoint)]
pub struct TestView {
    /// The id of the test event: its `webhook-id`.
    id: String,
    /// How the try ended.
    #[serde(flatten)]
    pub answer: AnswerView,
    /// The first KiB of the answer's body, as text; empty when there was no answer.
    pub response: String,
}

/// Sends a test event to an endpoint once, and waits for the answer, 15 seconds at most. The body
/// is `{event: "webhook.test", timestamp}`, signed as every event is. It is no event of the
/// account: it has no `sequence` and is not tried again. 409 for a key without an address, 503
/// while there is no room for it.
#[utoipa::path(post, path = "/ops/endpoints/{id}/test", operation_id = "test_endpoint",
    responses((status = 200, body = TestView), (status = 409, description = "`state_conflict`: the key has no address.")))]
pub async fn test(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let once = call.key(id)?;
    let (group, key) = endpoint(desk, id)?;
    require_address(&desk.engine, key)?;
    once.once(&desk.redelivered, async {
        let tested = send_test(&desk.engine, &desk.webhooks, (group, key)).await?;
        tracing::info!(operator = operator.name, ?key, status = tested.answer.status, "an operator tests an endpoint");
        Ok(tested)
    })
    .await
}

/// Refuses an API key without an address: 409 `state_conflict`.
pub fn require_address(engine: &Engine, key: ObjectId) -> Result<()> {
    let has_address = engine.api_key(key).is_some_and(|row| row.webhook.url.is_some());
    has_address.then_some(()).ok_or_else(|| Problem::new(Code::StateConflict).detail("The key has no address."))
}

/// Sends a test event to an endpoint once, and waits for the answer.
pub async fn send_test(engine: &Engine, webhooks: &Webhooks, endpoint: (GroupNumber, ObjectId)) -> Result<TestView> {
    let id = engine.new_id(endpoint.0)?.uuid().to_string();
    let body = json!({"event": "webhook.test", "timestamp": time(engine.now())}).to_string();
    let ended = webhooks.send_once(engine, endpoint, (&id, body.into_bytes())).await;
    let (answer, response) = ended.ok_or_else(|| Problem::new(Code::Overloaded).retry_after(5))?;
    Ok(TestView { id, answer: AnswerView::of(answer), response })
}

/// A try to deliver an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct WebhookTryView {
    /// The event's id.
    pub event_id: String,
    /// Its kind, as it is delivered.
    #[schema(example = "charge.paid")]
    pub kind: &'static str,
    /// How the try ended.
    #[serde(flatten)]
    pub answer: AnswerView,
    /// The first KiB of the answer's body, as text; empty when there was no answer.
    pub response: String,
}

/// The last tries at an endpoint, newest first: 1,000 that failed and 50 that it accepted, at most.
/// Their answers have 16 KiB together of either kind: of older ones the text is empty.
#[utoipa::path(get, path = "/ops/endpoints/{id}/tries", operation_id = "list_webhook_tries",
    responses((status = 200, body = All<WebhookTryView>), (status = 400)))]
pub async fn tries(State(desk): DeskState, _: Operator, PathId(id): PathId) -> Result<Response> {
    let (group, key) = endpoint(&desk, &id)?;
    Ok(ok(All::of(try_views(&desk, group, desk.webhooks.tries(group, key))?)))
}

/// Tries at an endpoint of a group as they are shown.
pub fn try_views(desk: &Desk, group: GroupNumber, tries: Vec<DeliveryTry>) -> Result<Vec<WebhookTryView>> {
    let view = |DeliveryTry { number, answer, response }| {
        let event = OutboxEvent::numbered(&desk.engine, group, number)?;
        let (event_id, kind) = (event.id.uuid().to_string(), event.content.kind.into());
        Ok(WebhookTryView { event_id, kind, answer: AnswerView::of(answer), response: response.into() })
    };
    tries.into_iter().map(view).collect()
}

/// Events that are delivered again.
#[derive(Debug, Serialize, ToSchema)]
pub struct RedeliveredEventsView {
    /// Events that the endpoint took, to be tried at once.
    redelivered: usize,
    /// Events that waited for a later try, which is made now, as if none had failed before. They do
    /// not count as redelivered.
    hastened: usize,
    /// Events that stay given up, since 1,000 wait at the endpoint.
    left: usize,
}

/// Delivers all events again that were given up at an endpoint, as far as it has room: 1,000 wait
/// there at most. Events that wait there for a later try are tried now too: one at a time, then
/// faster while the endpoint takes them.
#[utoipa::path(post, path = "/ops/endpoints/{id}/redeliver", operation_id = "redeliver_given_up",
    responses((status = 200, body = RedeliveredEventsView)))]
pub async fn redeliver_given_up(call: DeciderCall) -> Result<Response> {
    let DeciderCall { desk, operator, id, sent, .. } = &call;
    parse_unread_exact(sent.bytes())?;
    let once = call.key(id)?;
    let (group, key) = endpoint(desk, id)?;
    once.once(&desk.redelivered, async {
        let given_up = desk.webhooks.given_up(group, key).into_iter();
        let events = given_up.map(|number| OutboxEvent::numbered(&desk.engine, group, number));
        let events = events.collect::<Result<Vec<_>, _>>()?;
        let (redelivered, hastened) = desk.webhooks.deliver_again_to(group, key, &events, desk.engine.now());
        let operator = &operator.name;
        tracing::info!(operator, ?key, redelivered, hastened, "an operator delivers again what waits at an endpoint");
        Ok(RedeliveredEventsView { redelivered, hastened, left: events.len() - redelivered })
    })
    .await
}

/// The group and the key of an endpoint.
pub fn endpoint(desk: &Desk, id: &str) -> Result<(GroupNumber, ObjectId)> {
    let id = ObjectId::parse(id).ok_or_else(not_found)?;
    let row = desk.engine.api_key(id).filter(|row| !row.revoked).ok_or_else(not_found)?;
    Ok((row.group, id))
}

/// An endpoint as it is shown.
pub fn view(desk: &Desk, EndpointBehind { group, key, backlog }: EndpointBehind) -> Result<WebhookBacklogView> {
    let merchant = desk.engine.merchant_id(group)?;
    Ok(WebhookBacklogView {
        api_key_id: key.uuid().to_string(),
        merchant_id: merchant.uuid().to_string(),
        webhook_url: desk.engine.api_key(key).and_then(|row| row.webhook.url).unwrap_or_default(),
        waiting: backlog.waiting,
        oldest_at: backlog.oldest_at.map(time),
        given_up: backlog.given_up,
        under_way: backlog.under_way,
        last_answer: backlog.last_answer.map(AnswerView::of),
    })
}
