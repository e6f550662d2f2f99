//! Webhooks (interface section 6): every notice of the journal goes to every live API key of its account that has an address, at least
//! once, in order for each thing that notices are about.
//!
//! The journal is the outbox: nothing is written for a webhook but how far each endpoint has come. One task keeps the endpoints and
//! starts tries; a try reads its notice from the journal, so that it says the same every time. Endpoints that fail share connections
//! of their own, so that they take none from those that answer.

mod body;
mod endpoint;
mod guard;
mod post;
mod signature;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::outbox::{Progress, subject_digest};
use actors::projector::WebhookRow;
use actors::store::Sequence;
use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{HeaderName, Request};
use http_body_util::Full;
use ledger::id::{GroupNumber, ObjectId};
use ledger::personal::SealedFor;
use ledger::time::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{Id, JoinSet};

use crate::http::app::App;
use crate::http::problem::{Code, Problem};
use crate::network::Network;

use endpoint::Endpoint;
use guard::{Guard, Target};
use post::Poster;
use signature::{service_signature, standard_signature};

pub use body::{Told, WebhookBody};
pub use endpoint::Standing;
pub use guard::Refusal;
pub use signature::new_secret;

/// How long one try may take: look-up, connection, request and answer.
const TRY_MAX: Duration = Duration::from_secs(15);
/// How many tries are under way at once at endpoints that answer.
const ANSWERING_AT_ONCE: usize = 192;
/// How many at endpoints whose last try failed.
const FAILING_AT_ONCE: usize = 64;
/// How many notices of one endpoint are taken from the journal in one go.
const TAKEN_AT_ONCE: usize = 64;
/// How often progress is kept, and the clock looked at while something waits for its time.
const TICK: Duration = Duration::from_secs(1);
/// How long tries that are under way may take when the program ends.
const ENDING_MAX: Duration = Duration::from_secs(5);

const SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The endpoints, as the deliverer and the handlers share them.
pub struct Webhooks {
    guard: Guard,
    poster: Poster,
    endpoints: Mutex<BTreeMap<(GroupNumber, ObjectId), Endpoint>>,
    /// Endpoints to which something was added from outside of the deliverer.
    asked: Mutex<BTreeSet<(GroupNumber, ObjectId)>>,
    woken: Notify,
    answering: Arc<Semaphore>,
    failing: Arc<Semaphore>,
    deliveries: Family<[(&'static str, &'static str); 1], Counter>,
    waiting: Gauge,
    oldest_seconds: Gauge,
}

/// A key's endpoint in its group.
type EndpointId = (GroupNumber, ObjectId);

impl Webhooks {
    /// Nothing is delivered until [`run`] runs. `allowed` are the networks that may be private and plain http.
    pub fn new(allowed: Vec<Network>, registry: &mut Registry) -> Result<Self, tokio_rustls::rustls::Error> {
        let webhooks = Self {
            guard: Guard::new(allowed),
            poster: Poster::new()?,
            endpoints: Mutex::default(),
            asked: Mutex::default(),
            woken: Notify::new(),
            answering: Arc::new(Semaphore::new(ANSWERING_AT_ONCE)),
            failing: Arc::new(Semaphore::new(FAILING_AT_ONCE)),
            deliveries: Family::default(),
            waiting: Gauge::default(),
            oldest_seconds: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("centavo_webhook");
        registry.register("deliveries", "Tries to deliver a webhook, by result", webhooks.deliveries.clone());
        registry.register("waiting", "Webhooks that wait at their endpoints", webhooks.waiting.clone());
        registry.register("oldest_seconds", "Age of the oldest webhook that waits", webhooks.oldest_seconds.clone());
        Ok(webhooks)
    }

    /// Checks an address that is being set.
    pub async fn check(&self, url: &str) -> Result<(), Refusal> {
        self.guard.check(url).await
    }

    /// What became of a notice at each endpoint of its group.
    pub fn standings(&self, group: GroupNumber, number: u64) -> Vec<(ObjectId, Standing)> {
        let endpoints = self.endpoints();
        let of_group = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        of_group.map(|((_, key), endpoint)| (*key, endpoint.standing(number))).collect()
    }

    /// Delivers a notice again to every endpoint of its group, at once.
    pub fn deliver_again(&self, group: GroupNumber, told: &Told, now: Timestamp) {
        let mut endpoints = self.endpoints();
        let of_group = endpoints.range_mut((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        for (id, endpoint) in of_group {
            endpoint.add_again(told.listed.number, subject_digest(told.notice.subject), told.at(), now);
            lock(&self.asked).insert(*id);
        }
        drop(endpoints);
        self.woken.notify_one();
    }

    fn endpoints(&self) -> MutexGuard<'_, BTreeMap<EndpointId, Endpoint>> {
        lock(&self.endpoints)
    }
}

/// What it guards is whole between any two statements, so a panic elsewhere spoils nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Delivers webhooks until `told` says that the program ends; then waits a little for what is under way, and keeps how far it came.
pub async fn run(app: Arc<App>, mut told: watch::Receiver<bool>) {
    let mut deliverer = Deliverer::new(app);
    let app = Arc::clone(&deliverer.app);
    app.webhooks.endpoints().clear();
    for group in app.engine.projector().groups() {
        deliverer.refresh(group);
    }
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        deliverer.start_tries();
        tokio::select! {
            () = app.engine.projector().news().came() => {
                for group in app.engine.projector().news().take() {
                    deliverer.refresh(group);
                }
            }
            () = app.webhooks.woken.notified() => {}
            Some(ended) = deliverer.tries.join_next_with_id() => deliverer.settle(ended),
            _ = tick.tick() => deliverer.keep(),
            _ = told.changed() => break,
        }
    }
    let under_way = async {
        while let Some(ended) = deliverer.tries.join_next_with_id().await {
            deliverer.settle(ended);
        }
    };
    let _those_left_are_tried_again = tokio::time::timeout(ENDING_MAX, under_way).await;
    deliverer.keep();
}

/// The task that keeps the endpoints.
struct Deliverer {
    app: Arc<App>,
    tries: JoinSet<bool>,
    under_way: HashMap<Id, (EndpointId, u64)>,
    /// Endpoints that may have something whose turn it is.
    ready: BTreeSet<EndpointId>,
    /// When each other endpoint has something to try again.
    later: BTreeSet<(Timestamp, EndpointId)>,
}

impl Deliverer {
    fn new(app: Arc<App>) -> Self {
        Self { app, tries: JoinSet::new(), under_way: HashMap::new(), ready: BTreeSet::new(), later: BTreeSet::new() }
    }

    /// Takes up the endpoints of a group as its keys now say.
    fn refresh(&mut self, group: GroupNumber) {
        let keys = self.app.engine.projector().live_keys(group);
        let wanted: BTreeMap<ObjectId, WebhookRow> = keys
            .into_iter()
            .filter(|(_, row)| row.webhook.url.is_some())
            .map(|(key, row)| (key, row.webhook))
            .collect();
        let gone: Vec<EndpointId> = {
            let mut endpoints = self.app.webhooks.endpoints();
            let known = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
            let is_gone = |(id, endpoint): &(&EndpointId, &Endpoint)| {
                wanted.get(&id.1).is_none_or(|row| row.since != endpoint.progress().since)
            };
            let gone: Vec<_> = known.filter(is_gone).map(|(id, _)| *id).collect();
            gone.iter().for_each(|id| drop(endpoints.remove(id)));
            gone
        };
        for (group, key) in gone {
            if let Err(error) = self.app.engine.outbox().forget(group, key) {
                tracing::warn!(%error, "the progress of webhooks that go nowhere any more could not be removed");
            }
        }
        for (key, row) in wanted {
            let id = (group, key);
            if !self.app.webhooks.endpoints().contains_key(&id) {
                match self.open(id, &row) {
                    Ok(endpoint) => drop(self.app.webhooks.endpoints().insert(id, endpoint)),
                    Err(_logged) => continue,
                }
            }
            self.ready.insert(id);
        }
    }

    /// An endpoint where it left off.
    fn open(&self, (group, key): EndpointId, row: &WebhookRow) -> Result<Endpoint, Problem> {
        let projector = self.app.engine.projector();
        let before = projector.notices_count(group, Sequence(row.since))?;
        let count = projector.notices_count(group, Sequence(u64::MAX))?;
        let kept = self.app.engine.outbox().progress(group, key).unwrap_or_else(|error| {
            tracing::error!(%error, "how far webhooks were delivered can't be read: they are delivered again");
            None
        });
        let kept = kept.filter(|progress| progress.since == row.since);
        let begins = || Progress { since: row.since, through: before, ..Progress::default() };
        Ok(Endpoint::new(kept.unwrap_or_else(begins), before + 1, count))
    }

    /// Starts the tries whose turn it is, as far as there is room.
    fn start_tries(&mut self) {
        let now = self.app.engine.now();
        self.ready.append(&mut lock(&self.app.webhooks.asked));
        while let Some((at, id)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, id));
            self.ready.insert(id);
        }
        for id in std::mem::take(&mut self.ready) {
            if let Err(_logged) = self.take_from_journal(id, now) {
                self.later.insert((now.plus_ms(1_000), id));
                continue;
            }
            let mut without_room = false;
            while let Some((number, permit)) = self.begin(id, now, &mut without_room) {
                let app = Arc::clone(&self.app);
                let one = self.tries.spawn(async move {
                    let delivered = deliver(&app, id, number).await;
                    drop(permit);
                    delivered
                });
                self.under_way.insert(one.id(), (id, number));
            }
            if without_room {
                self.ready.insert(id);
                continue;
            }
            let next_at = self.app.webhooks.endpoints().get(&id).and_then(Endpoint::next_at);
            self.later.extend(next_at.filter(|at| *at > now).map(|at| (at, id)));
        }
    }

    /// Fills an endpoint with what the journal has for it.
    fn take_from_journal(&self, id: EndpointId, now: Timestamp) -> Result<(), Problem> {
        loop {
            let Some((next, room)) = self.app.webhooks.endpoints().get(&id).map(Endpoint::wanted) else {
                return Ok(());
            };
            let room = room.min(TAKEN_AT_ONCE) as u64;
            let listed = self.app.engine.projector().notices(id.0, next..next + room)?;
            if listed.is_empty() {
                return Ok(());
            }
            for listed in listed {
                let told = Told::read(&self.app, id.0, listed)?;
                let mut endpoints = self.app.webhooks.endpoints();
                let Some(endpoint) = endpoints.get_mut(&id) else { return Ok(()) };
                endpoint.add(listed.number, subject_digest(told.notice.subject), told.at(), now);
            }
        }
    }

    /// The next notice of an endpoint, and the room to try it in.
    fn begin(&self, id: EndpointId, now: Timestamp, without_room: &mut bool) -> Option<(u64, OwnedSemaphorePermit)> {
        let webhooks = &self.app.webhooks;
        let mut endpoints = webhooks.endpoints();
        let endpoint = endpoints.get_mut(&id)?;
        let number = endpoint.begin(now)?;
        let room = if endpoint.is_failing() { &webhooks.failing } else { &webhooks.answering };
        match Arc::clone(room).try_acquire_owned() {
            Ok(permit) => Some((number, permit)),
            Err(_none_left) => {
                endpoint.put_back(number);
                *without_room = true;
                None
            }
        }
    }

    /// Takes in how a try ended.
    fn settle(&mut self, ended: Result<(Id, bool), tokio::task::JoinError>) {
        let (task, delivered) = match ended {
            Ok(ended) => ended,
            Err(panicked) => (panicked.id(), false),
        };
        let Some((id, number)) = self.under_way.remove(&task) else { return };
        let result = if delivered { "ok" } else { "failed" };
        self.app.webhooks.deliveries.get_or_create(&[("result", result)]).inc();
        let now = self.app.engine.now();
        if let Some(endpoint) = self.app.webhooks.endpoints().get_mut(&id) {
            if delivered {
                endpoint.delivered(number);
            } else if endpoint.failed(number, now) {
                let key = id.1;
                tracing::warn!(?key, number, "a webhook was given up after its last try");
            }
            self.ready.insert(id);
        }
    }

    /// Keeps how far the endpoints have come, and measures what waits.
    fn keep(&mut self) {
        let now = self.app.engine.now();
        // What is not kept for want of space is kept later; after a crash before that it is delivered again.
        let is_storage_full = self.app.engine.is_storage_full();
        let (mut waiting, mut oldest, mut changed) = (0, None::<Timestamp>, Vec::new());
        for (id, endpoint) in self.app.webhooks.endpoints().iter_mut() {
            waiting += endpoint.progress().waiting.len();
            oldest = oldest.into_iter().chain(endpoint.oldest()).min();
            if !is_storage_full && endpoint.take_changed() {
                changed.push((*id, endpoint.progress().clone()));
            }
        }
        self.app.webhooks.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.app.webhooks.oldest_seconds.set(oldest.map_or(0, |at| (now.0 - at.0).max(0) / 1000));
        let outbox = self.app.engine.outbox();
        for ((group, key), progress) in changed {
            if let Err(error) = outbox.keep(group, key, &progress) {
                tracing::warn!(%error, "how far webhooks were delivered could not be kept");
                return;
            }
        }
    }
}

/// One try; true when the endpoint took the notice.
async fn deliver(app: &App, (group, key): EndpointId, number: u64) -> bool {
    match tokio::time::timeout(TRY_MAX, attempt(app, group, key, number)).await {
        Ok(Ok(())) => true,
        Ok(Err(why)) => {
            tracing::info!(?key, number, %why, "a webhook was not delivered");
            false
        }
        Err(_) => {
            tracing::info!(?key, number, "a webhook was not answered in time");
            false
        }
    }
}

/// Why a try failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the key has no address any more")]
    NoAddress,
    #[error("the address is refused: {0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Post(#[from] post::PostError),
    #[error("the answer was {0}")]
    Status(u16),
    #[error("it could not be written: {0}")]
    Unwritten(&'static str),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Unwritten(problem.code().row().code)
    }
}

async fn attempt(app: &App, group: GroupNumber, key: ObjectId, number: u64) -> Result<(), Failure> {
    let row = app.engine.projector().api_key(key).filter(|row| !row.revoked).ok_or(Failure::NoAddress)?.webhook;
    let target = Target::parse(row.url.as_deref().ok_or(Failure::NoAddress)?)?;
    let listed = app.engine.projector().notices(group, number..number + 1).map_err(Problem::from)?;
    let told = Told::read(app, group, *listed.first().ok_or(Failure::Unwritten("missing"))?)?;
    let body = serde_json::to_vec(&told.body(app)?).map_err(|_| Failure::Unwritten("unwritable"))?;
    let request = request(&target, &secrets(app, key, &row)?, &told.id.uuid().to_string(), wall_seconds(), body)?;
    let addresses = app.webhooks.guard.look_up(&target).await?;
    let status = app.webhooks.poster.send(&target, &addresses, request).await?;
    if status.is_success() { Ok(()) } else { Err(Failure::Status(status.as_u16())) }
}

/// The secrets that sign now, the newest first.
fn secrets(app: &App, key: ObjectId, row: &WebhookRow) -> Result<Vec<String>, Failure> {
    let now = app.engine.now();
    let previous = row.previous.as_ref().filter(|previous| now < previous.until).map(|previous| &previous.sealed);
    let open = |sealed: &Vec<u8>| {
        let opened = app.engine.keyring().open_secret(SealedFor::webhook_secret(key), sealed);
        let opened = opened.and_then(|secret| String::from_utf8(secret).ok());
        opened.ok_or(Failure::Unwritten(Code::Internal.row().code))
    };
    [&row.secret].into_iter().chain(previous).map(open).collect()
}

fn request(
    target: &Target,
    secrets: &[String],
    id: &str,
    timestamp: i64,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, Failure> {
    let standard: Vec<String> = secrets.iter().map(|secret| standard_signature(secret, id, timestamp, &body)).collect();
    let mut request = Request::post(&target.path)
        .header(HOST, &target.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("centavo/", env!("CARGO_PKG_VERSION")))
        .header(WEBHOOK_ID, id)
        .header(WEBHOOK_TIMESTAMP, timestamp)
        .header(WEBHOOK_SIGNATURE, standard.join(" "));
    for secret in secrets {
        request = request.header(SERVICE_SIGNATURE, service_signature(secret, &body));
    }
    request.body(Full::new(body.into())).map_err(|_| Failure::Unwritten("unsendable"))
}

/// Seconds since 1970, on the wall's clock.
fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
