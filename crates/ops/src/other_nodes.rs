//! What a handler of all merchants asks of the nodes that have them: the decision on an item, the
//! entries that it would book, the webhook endpoints that are behind, and plans.
//!
//! ```text
//! POST /peers/decisions/{group}   a decision is taken (JSON; 204, or a problem)
//! POST /peers/previews/{group}    the Records that it would write (JSON; CBOR, or a problem)
//! POST /peers/backlogs            the endpoints that are behind (JSON; CBOR)
//! POST /peers/plans/{group}       the plans of a merchant (CBOR, or a problem)
//! ```

use std::sync::Arc;

use actors::engine::Unavailable;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use ledger::merchant::Plan;
use ledger::{GroupNumber, ObjectId, Record};
use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::preview::{self, Follows, Steps, Verdict};
use crate::{DeciderCall, Desk, DeskState, Operator, disputes, entries, queue, refunds, sub_recipients, withdrawals};
use web::{Code, KeyedBody, Problem, Result, Role, failed, not_found};
use webhooks::{EndpointBehind, sort_behind};

/// A decision that an operator takes on an item of the queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Decision {
    /// Who takes it.
    pub operator: String,
    /// The kind of the item, as the queue names it.
    pub kind: String,
    /// The item's id.
    pub id: String,
    /// What is decided.
    pub verdict: Verdict,
    /// The version of the item that the operator saw.
    #[serde(default)]
    pub version: Option<u32>,
    /// The reason; of a rejection.
    pub notes: String,
    /// The idempotency key.
    pub key: String,
}

/// An item whose decision is previewed.
#[derive(Debug, Serialize, Deserialize)]
struct PreviewedItem {
    id: String,
    verdict: Verdict,
}

/// A problem of another node, as it is sent.
#[derive(Serialize, Deserialize)]
struct SentProblem {
    code: String,
    message: String,
    detail: String,
}

/// A Record of a preview, as it is sent.
#[derive(Encode, Decode)]
struct SentStep {
    #[n(0)]
    is_transfer: bool,
    #[n(1)]
    record: ByteVec,
}

/// Endpoints of which merchant are asked for, and how many.
#[derive(Serialize, Deserialize)]
struct BacklogsWanted {
    group: Option<u32>,
    most: u64,
}

/// Some of the endpoints that are behind.
#[derive(Encode, Decode)]
struct SentBacklogs {
    #[n(0)]
    total: u64,
    #[n(1)]
    behind: Vec<EndpointBehind>,
}

/// The routes of the peers' listener.
pub fn routes(desk: &Arc<Desk>) -> Router {
    Router::new()
        .route("/peers/decisions/{group}", post(decided_here))
        .route("/peers/previews/{group}", post(previewed_here))
        .route("/peers/backlogs", post(backlogs_here))
        .route("/peers/plans/{group}", post(plans_here))
        .with_state(Arc::clone(desk))
}

/// Takes a decision where the item's merchant is. One that was surely not taken is 503
/// `store_unavailable`.
pub async fn decide(desk: &Arc<Desk>, decision: Decision) -> Result<()> {
    let group = ObjectId::parse(&decision.id).map(|id| desk.engine.ids().group(id));
    let (Some(group), Some(others)) = (group.filter(|group| !desk.engine.serves(*group)), &desk.others) else {
        return take(desk, decision).await.map_err(moved);
    };
    let body = serde_json::to_vec(&decision).map_err(failed)?;
    let partition = desk.engine.extents().partition_of(group);
    match others.ask_for(partition, &format!("/peers/decisions/{}", group.0), &body).await? {
        (StatusCode::NO_CONTENT, _) => Ok(()),
        (_, said) => Err(refused(&said)),
    }
}

/// The Records that a decision would write, from the node that has the item's merchant.
pub async fn steps(desk: &Arc<Desk>, id: ObjectId, verdict: Verdict) -> Result<Steps> {
    let group = desk.engine.ids().group(id);
    let Some(others) = desk.others.as_ref().filter(|_| !desk.engine.serves(group)) else {
        return steps_here(desk, id, verdict).await.map_err(moved);
    };
    let body = serde_json::to_vec(&PreviewedItem { id: id.uuid().to_string(), verdict }).map_err(failed)?;
    let partition = desk.engine.extents().partition_of(group);
    let (status, said) = others.ask_for(partition, &format!("/peers/previews/{}", group.0), &body).await?;
    if status != StatusCode::OK {
        return Err(refused(&said));
    }
    let sent: Vec<SentStep> = minicbor::decode(&said).map_err(failed)?;
    let read = |SentStep { is_transfer, record }| {
        let follows = if is_transfer { Follows::Transfer } else { Follows::Decision };
        Ok((follows, Record::decode(&record).map_err(failed)?))
    };
    sent.into_iter().map(read).collect()
}

/// Endpoints of one merchant or of all, of all nodes, at which events wait or were given up: their
/// number, and at most `most` of them, those that have waited longest first.
pub async fn backlogs(desk: &Desk, group: Option<GroupNumber>, most: usize) -> Result<(usize, Vec<EndpointBehind>)> {
    let (mut total, mut all) = desk.webhooks.backlogs(group, most);
    let wanted = BacklogsWanted { group: group.map(|group| group.0), most: most as u64 };
    let wanted = serde_json::to_vec(&wanted).map_err(failed)?;
    let answers = match &desk.others {
        Some(others) => others.ask_each("/peers/backlogs", &wanted).await?,
        None => Vec::new(),
    };
    for answer in answers {
        let SentBacklogs { total: elsewhere, behind } = minicbor::decode(&answer).map_err(failed)?;
        total += usize::try_from(elsewhere).unwrap_or_default();
        all.extend(behind);
    }
    sort_behind(&mut all, most);
    Ok((total, all))
}

/// The plans of a merchant, from the node that has it.
pub async fn plans(desk: &Desk, group: GroupNumber) -> Result<Vec<Plan>> {
    let Some(others) = desk.others.as_ref().filter(|_| !desk.engine.serves(group)) else {
        return plans_of(desk, group).await.map_err(moved);
    };
    let partition = desk.engine.extents().partition_of(group);
    let (status, said) = others.ask_for(partition, &format!("/peers/plans/{}", group.0), b"").await?;
    if status == StatusCode::OK { minicbor::decode(&said).map_err(failed) } else { Err(refused(&said)) }
}

async fn plans_of(desk: &Desk, group: GroupNumber) -> Result<Vec<Plan>> {
    Ok(desk.engine.read_merchant(group, |books, _| books.plans().to_vec()).await?)
}

/// Hands a decision to the handler that takes it.
async fn take(desk: &Arc<Desk>, decision: Decision) -> Result<()> {
    let Decision { operator, kind, id, verdict, version, notes, key } = decision;
    let mut body: Map<_, _> = version.map(|version| ("version".to_owned(), version.into())).into_iter().collect();
    if verdict == Verdict::Reject && kind != "dispute" {
        body.insert("notes".to_owned(), notes.into());
    }
    let operator = Operator { name: operator, role: Role::Decide };
    let call = |path| {
        let sent = KeyedBody::of_form(&key, path, Value::from(body).to_string());
        DeciderCall::of_form(desk, &operator, &id, sent)
    };
    let taken = match (kind.as_str(), verdict) {
        ("recipient", Verdict::Approve) => sub_recipients::approve(call("/ops/sub-recipients/{id}/approve")?).await,
        ("recipient", Verdict::Reject) => sub_recipients::reject(call("/ops/sub-recipients/{id}/reject")?).await,
        ("withdrawal", Verdict::Approve) => withdrawals::approve(call("/ops/withdrawals/{id}/approve")?).await,
        ("withdrawal", Verdict::Reject) => withdrawals::reject(call("/ops/withdrawals/{id}/reject")?).await,
        ("refund", Verdict::Approve) => refunds::approve(call("/ops/refunds/{id}/approve")?).await,
        ("refund", Verdict::Reject) => refunds::reject(call("/ops/refunds/{id}/reject")?).await,
        ("entry", Verdict::Approve) => entries::approve(call("/ops/entries/{id}/approve")?).await,
        ("entry", Verdict::Reject) => entries::reject(call("/ops/entries/{id}/reject")?).await,
        ("dispute", Verdict::Approve) => disputes::accept(call("/ops/disputes/{id}/accept")?).await,
        ("dispute", Verdict::Reject) => disputes::release(call("/ops/disputes/{id}/release")?).await,
        _ => Err(Problem::new(Code::ValidationFailed)),
    };
    taken.map(drop)
}

async fn steps_here(desk: &Desk, id: ObjectId, verdict: Verdict) -> Result<Steps> {
    let item = queue::waiting(desk, id).ok_or_else(not_found)?;
    preview::steps(desk, &item, verdict).await
}

/// The partition moved away while the request was under way, and nothing was done.
fn moved(problem: Problem) -> Problem {
    match problem.needed_partition() {
        Some(_) => Unavailable::StoreUnavailable.into(),
        None => problem,
    }
}

/// The problem that another node met.
fn refused(said: &[u8]) -> Problem {
    let Ok(SentProblem { code, message, detail }) = serde_json::from_slice(said) else {
        return failed("another node answered nothing that can be read");
    };
    Problem::new(Code::named(&code).unwrap_or(Code::Internal)).message(message).detail(detail)
}

/// Answers while holding the group's partition; 421 if another node owns it.
async fn held<T>(
    desk: &Desk,
    group: u32,
    work: impl Future<Output = Result<T>>,
    answer: impl FnOnce(T) -> Response,
) -> Response {
    let Some(hold) = desk.engine.hold(desk.engine.extents().partition_of(GroupNumber(group))) else {
        return StatusCode::MISDIRECTED_REQUEST.into_response();
    };
    let done = work.await;
    let done = if hold.stands() { done } else { Err(Unavailable::OutcomeUnknown.into()) };
    match done {
        Ok(found) => answer(found),
        Err(problem) if problem.needed_partition().is_some() => StatusCode::MISDIRECTED_REQUEST.into_response(),
        Err(problem) => {
            let said = json!({
                "code": problem.code().row().code,
                "message": problem.message_shown(),
                "detail": problem.explanation(),
            });
            (problem.status(), said.to_string()).into_response()
        }
    }
}

async fn decided_here(State(desk): DeskState, Path(group): Path<u32>, body: Bytes) -> Response {
    let Ok(decision) = serde_json::from_slice(&body) else { return StatusCode::BAD_REQUEST.into_response() };
    held(&desk, group, take(&desk, decision), |()| StatusCode::NO_CONTENT.into_response()).await
}

async fn previewed_here(State(desk): DeskState, Path(group): Path<u32>, body: Bytes) -> Response {
    let Ok(PreviewedItem { id, verdict }) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(id) = ObjectId::parse(&id) else { return StatusCode::BAD_REQUEST.into_response() };
    let sent = |(follows, record): (Follows, Record)| {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        SentStep { is_transfer: follows == Follows::Transfer, record: bytes.into() }
    };
    held(&desk, group, steps_here(&desk, id, verdict), |steps| {
        let steps: Vec<SentStep> = steps.into_iter().map(sent).collect();
        minicbor::to_vec(&steps).expect("writing into memory cannot fail").into_response()
    })
    .await
}

async fn backlogs_here(State(desk): DeskState, body: Bytes) -> Response {
    let Ok(BacklogsWanted { group, most }) = serde_json::from_slice(&body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let (total, behind) = desk.webhooks.backlogs(group.map(GroupNumber), usize::try_from(most).unwrap_or(usize::MAX));
    let sent = SentBacklogs { total: total as u64, behind };
    minicbor::to_vec(&sent).expect("writing into memory cannot fail").into_response()
}

async fn plans_here(State(desk): DeskState, Path(group): Path<u32>) -> Response {
    held(&desk, group, plans_of(&desk, GroupNumber(group)), |plans| {
        minicbor::to_vec(&plans).expect("writing into memory cannot fail").into_response()
    })
    .await
}
