//! What one process asks of another in work on all merchants: requests of their own at the peers'
//! listener. Each may be sent again.
//!
//! ```text
//! POST /peers/months/{month}/close/{partition}   a month is closed in a partition
//! POST /peers/batches/{group}                    a merchant books lines of a batch (CBOR)
//! POST /peers/pix/{charge}                       a merchant books a PIX payment (CBOR)
//! POST /peers/payout-returns                     the owner of a transfer books its return (CBOR)
//! POST /peers/cases                              a merchant books a case of a payer's bank (CBOR)
//! POST /peers/card-notifications                 a merchant books a notification of cards (CBOR)
//! POST /peers/clock/{milliseconds}               the sandbox clock is moved forward
//! ```
//!
//! What handlers ask has its routes in `ops::other_nodes`.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use actors::engine::{AskedElsewhere, Engine, Others, Result, Unavailable};
use actors::rails::{CardNotification, PixReceipt, RailCase, ReturnedPayout};
use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Path, State};
use axum::http::{Method, Request, StatusCode};
use axum::routing::post;
use ledger::merchant::BookBatch;
use ledger::{GroupNumber, Month, ObjectId, Timestamp};
use store::Partition;
use tokio::time::{Instant, sleep};

use super::door::{PATIENCE, PAUSE};
use super::forward::{ForwardOutcome, Hop, PeerClient, Sendable};
use super::{Owner, Owners};
use web::openapi::Listener;

/// Most bytes of an answer.
const ANSWER_MAX: usize = 8 * 1024 * 1024;

/// The other processes, asked over their peers' listeners.
pub struct OthersOverHttp {
    owners: Weak<dyn Owners>,
    client: Arc<PeerClient>,
}

impl OthersOverHttp {
    /// Asks the owners that are known when it is asked.
    pub fn new(owners: Weak<dyn Owners>, client: Arc<PeerClient>) -> Self {
        Self { owners, client }
    }

    fn owners(&self) -> Result<Arc<dyn Owners>> {
        self.owners.upgrade().ok_or(Unavailable::StoreUnavailable)
    }

    /// Asks the owner of a partition.
    async fn ask_owner(&self, partition: Partition, path: String, body: Vec<u8>) -> Result<()> {
        match self.owners()?.owner(partition) {
            Owner::At(address) => self.ask(&address, partition, &path, body).await,
            // It moves: whoever asked asks again.
            Owner::Here | Owner::Nobody => Err(Unavailable::StoreUnavailable),
        }
    }

    /// Asks the owner of a group's partition.
    fn ask_group(&self, group: GroupNumber, path: String, body: Vec<u8>) -> AskedElsewhere<'_> {
        Box::pin(async move { self.ask_owner(self.owners()?.partition_of(group), path, body).await })
    }

    /// Asks the owner of a partition, which may change meanwhile, for an answer. A request that
    /// was not carried out is tried again for a while.
    pub async fn ask_for(&self, partition: Partition, path: &str, body: &[u8]) -> Result<(StatusCode, Bytes)> {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Owner::At(address) = self.owners()?.owner(partition) {
                match self.answer(&address, partition, path, body.to_vec()).await {
                    Ok((StatusCode::MISDIRECTED_REQUEST, _)) | Err(Unavailable::StoreUnavailable) => {}
                    answered => return answered,
                }
            }
            if Instant::now() + PAUSE >= until {
                return Err(Unavailable::StoreUnavailable);
            }
            sleep(PAUSE).await;
        }
    }

    /// Asks every other process that has partitions, and gives their answers.
    pub async fn ask_each(&self, path: &str, body: &[u8]) -> Result<Vec<Bytes>> {
        let mut answers = Vec::new();
        for (address, partition) in self.each()? {
            match self.answer(&address, partition, path, body.to_vec()).await? {
                (StatusCode::OK, answer) => answers.push(answer),
                _ => return Err(Unavailable::StoreUnavailable),
            }
        }
        Ok(answers)
    }

    /// The other processes, each with a partition that it has.
    fn each(&self) -> Result<BTreeMap<String, Partition>> {
        let (mut each, owners) = (BTreeMap::new(), self.owners()?);
        for partition in owners.all() {
            match owners.owner(partition) {
                Owner::Here => {}
                Owner::At(address) => drop(each.insert(address, partition)),
                Owner::Nobody => return Err(Unavailable::StoreUnavailable),
            }
        }
        Ok(each)
    }

    async fn ask(&self, address: &str, partition: Partition, path: &str, body: Vec<u8>) -> Result<()> {
        match self.answer(address, partition, path, body).await? {
            (StatusCode::NO_CONTENT, _) => Ok(()),
            _ => Err(Unavailable::StoreUnavailable),
        }
    }

    async fn answer(
        &self,
        address: &str,
        partition: Partition,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes)> {
        let request = Request::builder().method(Method::POST).uri(path).body(());
        let (parts, ()) = request.map_err(|_| Unavailable::Unreadable)?.into_parts();
        let hop = Hop { listener: Listener::Operators, partition, caller: None, over_tls: false, session: None };
        let request = Sendable { parts: &parts, body: body.into(), hop };
        // The answer comes, or the connection ends with the other process.
        match self.client.send(address, request, Instant::now() + PATIENCE, std::future::pending()).await {
            ForwardOutcome::Answered(answer) => {
                let (status, body) = (answer.status(), answer.into_body());
                Ok((status, to_bytes(body, ANSWER_MAX).await.map_err(|_| Unavailable::OutcomeUnknown)?))
            }
            ForwardOutcome::Lost => Err(Unavailable::OutcomeUnknown),
            ForwardOutcome::Not => Err(Unavailable::StoreUnavailable),
        }
    }
}

impl Others for OthersOverHttp {
    fn close_month(&self, partition: Partition, month: Month) -> AskedElsewhere<'_> {
        Box::pin(self.ask_owner(partition, format!("/peers/months/{month}/close/{}", partition.0), Vec::new()))
    }

    fn book_lines(&self, group: GroupNumber, lines: BookBatch) -> AskedElsewhere<'_> {
        self.ask_group(group, format!("/peers/batches/{}", group.0), lines.to_bytes())
    }

    fn book_pix(&self, group: GroupNumber, charge: ObjectId, payment: PixReceipt) -> AskedElsewhere<'_> {
        self.ask_group(group, format!("/peers/pix/{}", charge.txid()), in_bytes(&payment))
    }

    fn take_back(&self, group: GroupNumber, transfer: ReturnedPayout) -> AskedElsewhere<'_> {
        self.ask_group(group, "/peers/payout-returns".to_owned(), in_bytes(&transfer))
    }

    fn book_case(&self, group: GroupNumber, case: RailCase) -> AskedElsewhere<'_> {
        self.ask_group(group, "/peers/cases".to_owned(), in_bytes(&case))
    }

    fn book_card_notification(&self, group: GroupNumber, notification: CardNotification) -> AskedElsewhere<'_> {
        self.ask_group(group, "/peers/card-notifications".to_owned(), in_bytes(&notification))
    }

    fn step_clock(&self, target: Timestamp) -> AskedElsewhere<'_> {
        Box::pin(async move {
            for (address, partition) in self.each()? {
                self.ask(&address, partition, &format!("/peers/clock/{}", target.0), Vec::new()).await?;
            }
            Ok(())
        })
    }
}

fn in_bytes(sent: &impl minicbor::Encode<()>) -> Vec<u8> {
    minicbor::to_vec(sent).expect("writing into memory cannot fail")
}

/// The routes of the peers' listener that only other processes use.
pub fn routes(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/peers/months/{month}/close/{partition}", post(close_month))
        .route("/peers/batches/{group}", post(book_lines))
        .route("/peers/pix/{charge}", post(book_pix))
        .route("/peers/payout-returns", post(take_back))
        .route("/peers/cases", post(book_case))
        .route("/peers/card-notifications", post(book_card_notification))
        .route("/peers/clock/{milliseconds}", post(step_clock))
        .with_state(engine)
}

async fn close_month(State(engine): State<Arc<Engine>>, Path((month, partition)): Path<(String, u16)>) -> StatusCode {
    let Some(month) = Month::parse(&month) else { return StatusCode::BAD_REQUEST };
    answered(engine.close_in(Partition(partition), month).await)
}

async fn book_lines(State(engine): State<Arc<Engine>>, Path(group): Path<u32>, body: Bytes) -> StatusCode {
    let Some(lines) = BookBatch::of_bytes(&body) else { return StatusCode::BAD_REQUEST };
    let group = GroupNumber(group);
    // It would be sent on from here otherwise.
    if !engine.serves(group) {
        return StatusCode::MISDIRECTED_REQUEST;
    }
    answered(engine.book_lines(group, lines).await)
}

async fn book_pix(State(engine): State<Arc<Engine>>, Path(charge): Path<String>, body: Bytes) -> StatusCode {
    let asked = ObjectId::parse(&charge).zip(minicbor::decode(&body).ok());
    let Some((charge, payment)) = asked else { return StatusCode::BAD_REQUEST };
    if !engine.serves(engine.ids().group(charge)) {
        return StatusCode::MISDIRECTED_REQUEST;
    }
    answered(engine.book_pix(charge, payment).await)
}

async fn take_back(State(engine): State<Arc<Engine>>, body: Bytes) -> StatusCode {
    let Ok(transfer) = minicbor::decode::<ReturnedPayout>(&body) else { return StatusCode::BAD_REQUEST };
    if !engine.serves(engine.ids().group(transfer.id)) {
        return StatusCode::MISDIRECTED_REQUEST;
    }
    answered(engine.take_back(transfer).await)
}

async fn book_case(State(engine): State<Arc<Engine>>, body: Bytes) -> StatusCode {
    let Ok(case) = minicbor::decode::<RailCase>(&body) else { return StatusCode::BAD_REQUEST };
    if !engine.serves(engine.ids().group(case.charge)) {
        return StatusCode::MISDIRECTED_REQUEST;
    }
    answered(engine.book_case(case).await)
}

async fn book_card_notification(State(engine): State<Arc<Engine>>, body: Bytes) -> StatusCode {
    let Ok(notification) = minicbor::decode::<CardNotification>(&body) else { return StatusCode::BAD_REQUEST };
    if !engine.serves(engine.ids().group(notification.object)) {
        return StatusCode::MISDIRECTED_REQUEST;
    }
    answered(engine.book_card_notification(notification).await)
}

async fn step_clock(State(engine): State<Arc<Engine>>, Path(milliseconds): Path<i64>) -> StatusCode {
    answered(engine.step_clock(Timestamp(milliseconds)).await)
}

fn answered(outcome: Result<()>) -> StatusCode {
    match outcome {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(Unavailable::Elsewhere(_)) => StatusCode::MISDIRECTED_REQUEST,
        Err(error) => {
            tracing::warn!(%error, "another process asked for what could not be done");
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}
