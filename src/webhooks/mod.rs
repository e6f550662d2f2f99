//! Webhooks (interface section 6): every notice of the journal goes to every live API key of its
//! account that has an address, at least once, in order for each thing that notices are about.
//!
//! The journal is the outbox: nothing is written for a webhook but how far each endpoint has come.
//! One task keeps the endpoints and starts tries; a try reads its notice from the journal, so that
//! it says the same every time. Concurrency is bounded at each endpoint ([`endpoint`]) and in all
//! ([`slots`]), so that no endpoint keeps another waiting.

mod body;
mod endpoint;
mod guard;
mod post;
mod signature;
mod slots;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actors::engine::Engine;
use actors::outbox::{Answer, Cause, Progress, subject_digest};
use actors::read_model::WebhookRow;
use actors::store::Sequence;
use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use axum::http::{HeaderName, Request, StatusCode};
use endpoint::Endpoint;
use guard::{Addresses, Guard, Target};
use http_body_util::Full;
use ipnet::IpNet;
use ledger::id::{GroupNumber, ObjectId};
use ledger::personal::SealedFor;
use ledger::time::Timestamp;
use post::Poster;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use signature::{service_signature, standard_signature};
use slots::{BodyRoom, Pool, Slots};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};

use crate::http::problem::{Code, Problem};

pub use body::{Told, WebhookBody};
pub use endpoint::{Backlog, Standing};
pub use guard::Refusal;
pub use signature::new_secret;
pub use slots::CONNECTIONS_MAX;

/// How long one try may take: look-up, connection, request and answer.
const TRY_MAX: Duration = Duration::from_secs(15);
/// How often progress is kept, and the clock looked at while something waits for its time.
const TICK: Duration = Duration::from_secs(1);
/// After how long a try comes again for whose body there was no room.
const ROOM_AFTER_MS: i64 = 1_000;
/// How long tries that are under way may take when the program ends.
const ENDING_MAX: Duration = Duration::from_secs(5);

const SERVICE_SIGNATURE: HeaderName = HeaderName::from_static("x-service-signature");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The endpoints, as the deliverer and the handlers share them.
pub struct Webhooks {
    connections_max: usize,
    guard: Guard,
    poster: Poster,
    endpoints: Mutex<BTreeMap<(GroupNumber, ObjectId), Endpoint>>,
    /// Endpoints to which something was added from outside of the deliverer.
    asked: Mutex<BTreeSet<(GroupNumber, ObjectId)>>,
    woken: Notify,
    body_room: BodyRoom<EndpointId>,
    deliveries: Family<[(&'static str, &'static str); 1], Counter>,
    waiting: Gauge,
    oldest_seconds: Gauge,
}

/// A key's endpoint in its group.
type EndpointId = (GroupNumber, ObjectId);

impl Webhooks {
    /// Nothing is delivered until [`run`] runs. `allowed` are the networks that may be private and
    /// plain http; `connections_max` is how many file descriptors tries may take together.
    pub fn new(
        allowed: Vec<IpNet>,
        connections_max: usize,
        registry: &mut Registry,
    ) -> Result<Self, tokio_rustls::rustls::Error> {
        let webhooks = Self {
            connections_max,
            guard: Guard::new(allowed),
            poster: Poster::new()?,
            endpoints: Mutex::default(),
            asked: Mutex::default(),
            woken: Notify::new(),
            body_room: BodyRoom::default(),
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

    /// The endpoints at which something waits or was given up, of one group or of all: how many
    /// there are, and those that have waited longest, at most so many.
    pub fn backlogs(&self, group: Option<GroupNumber>, most: usize) -> (usize, Vec<(GroupNumber, ObjectId, Backlog)>) {
        let mut backlogs: Vec<_> = {
            let endpoints = self.endpoints();
            let first = (group.unwrap_or(GroupNumber(0)), ObjectId(0));
            let is_wanted = |wanted: GroupNumber| group.is_none_or(|group| group == wanted);
            let of_group = endpoints.range(first..).take_while(|((group, _), _)| is_wanted(*group));
            of_group.filter_map(|((group, key), endpoint)| Some((*group, *key, endpoint.backlog()?))).collect()
        };
        let total = backlogs.len();
        backlogs.sort_by_key(|(_, _, backlog)| (backlog.oldest_at.is_none(), backlog.oldest_at));
        backlogs.truncate(most);
        (total, backlogs)
    }

    /// Delivers a notice again, at once, to every endpoint of its group that has room. False when
    /// there are endpoints, and none has.
    pub fn deliver_again(&self, group: GroupNumber, told: &Told, now: Timestamp) -> bool {
        let mut endpoints = self.endpoints();
        let of_group = endpoints.range_mut((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        let (mut asked, mut is_refused) = (Vec::new(), false);
        for (id, endpoint) in of_group {
            match endpoint.add_again(told.listed.number, subject_digest(told.notice.subject), told.at(), now) {
                true => asked.push(*id),
                false => is_refused = true,
            }
        }
        drop(endpoints);
        let is_taken = !asked.is_empty() || !is_refused;
        lock(&self.asked).extend(asked);
        self.woken.notify_one();
        is_taken
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
pub async fn run(engine: Arc<Engine>, webhooks: Arc<Webhooks>, mut told: watch::Receiver<bool>) {
    let mut deliverer = Deliverer::new(Arc::clone(&engine), Arc::clone(&webhooks));
    webhooks.endpoints().clear();
    for group in engine.read_model().groups() {
        deliverer.refresh(group);
    }
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        deliverer.start_tries();
        tokio::select! {
            () = engine.read_model().outbox().came() => {
                for group in engine.read_model().outbox().take() {
                    deliverer.refresh(group);
                }
            }
            () = webhooks.woken.notified() => {}
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
    engine: Arc<Engine>,
    webhooks: Arc<Webhooks>,
    tries: JoinSet<Option<Answer>>,
    under_way: HashMap<Id, (EndpointId, u64, Pool)>,
    slots: Slots<EndpointId>,
    /// The addresses of each endpoint that was called.
    addresses: HashMap<EndpointId, Arc<Addresses>>,
    /// Endpoints that may have something whose turn it is.
    ready: BTreeSet<EndpointId>,
    /// When each other endpoint has something to try again.
    later: BTreeSet<(Timestamp, EndpointId)>,
}

impl Deliverer {
    fn new(engine: Arc<Engine>, webhooks: Arc<Webhooks>) -> Self {
        let slots = Slots::new(webhooks.connections_max);
        Self {
            engine,
            webhooks,
            tries: JoinSet::new(),
            under_way: HashMap::new(),
            slots,
            addresses: HashMap::new(),
            ready: BTreeSet::new(),
            later: BTreeSet::new(),
        }
    }

    /// Takes up the endpoints of a group as its keys now say.
    fn refresh(&mut self, group: GroupNumber) {
        let keys = self.engine.read_model().live_keys(group);
        let wanted: BTreeMap<ObjectId, WebhookRow> = keys
            .into_iter()
            .filter(|(_, row)| row.webhook.url.is_some())
            .map(|(key, row)| (key, row.webhook))
            .collect();
        let gone: Vec<EndpointId> = {
            let mut endpoints = self.webhooks.endpoints();
            let known = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
            let is_gone = |(id, endpoint): &(&EndpointId, &Endpoint)| {
                wanted.get(&id.1).is_none_or(|row| row.since != endpoint.since())
            };
            let gone: Vec<_> = known.filter(is_gone).map(|(id, _)| *id).collect();
            gone.iter().for_each(|id| drop(endpoints.remove(id)));
            gone
        };
        for (group, key) in gone {
            self.addresses.remove(&(group, key));
            if let Err(error) = self.engine.outbox().forget(group, key) {
                tracing::warn!(%error, "the progress of webhooks that go nowhere any more could not be removed");
            }
        }
        for (key, row) in wanted {
            let id = (group, key);
            let known = self.webhooks.endpoints().get_mut(&id).map(Endpoint::has_events);
            if known.is_none() {
                match self.open(id, &row) {
                    Ok(endpoint) => drop(self.webhooks.endpoints().insert(id, endpoint)),
                    Err(_logged) => continue,
                }
            }
            self.ready.insert(id);
        }
    }

    /// An endpoint where it left off.
    fn open(&self, (group, key): EndpointId, row: &WebhookRow) -> Result<Endpoint, Problem> {
        let read_model = self.engine.read_model();
        let before = read_model.webhook_event_count(group, Sequence(row.since))?;
        let count = read_model.webhook_event_count(group, Sequence(u64::MAX))?;
        let kept = self.engine.outbox().progress(group, key).unwrap_or_else(|error| {
            tracing::error!(%error, "how far webhooks were delivered can't be read: they are delivered again");
            None
        });
        let kept = kept.filter(|progress| progress.since == row.since);
        let begins = || Progress { since: row.since, through: before, ..Progress::default() };
        Ok(Endpoint::new(kept.unwrap_or_else(begins), before + 1, count))
    }

    /// Starts the tries whose turn it is, as far as there are slots.
    fn start_tries(&mut self) {
        let now = self.engine.now();
        self.ready.append(&mut lock(&self.webhooks.asked));
        while let Some((at, id)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, id));
            self.ready.insert(id);
        }
        for id in std::mem::take(&mut self.ready) {
            match self.take_from_journal(id, now) {
                Ok(()) => self.ask(id, now),
                Err(_logged) => drop(self.later.insert((now.plus_ms(1_000), id))),
            }
        }
        while let Some((id, pool)) = self.slots.grant() {
            self.start(id, pool, now);
            self.ask(id, now);
        }
    }

    /// Asks for a slot for an endpoint that has something to try, or notes when it will.
    fn ask(&mut self, id: EndpointId, now: Timestamp) {
        let endpoints = self.webhooks.endpoints();
        match endpoints.get(&id) {
            Some(endpoint) if endpoint.is_ready(now) => {
                self.slots.ask(id, endpoint.pool(), endpoint.under_way_count());
            }
            endpoint => {
                self.slots.withdraw(id);
                let next_at = endpoint.and_then(Endpoint::next_at);
                self.later.extend(next_at.filter(|at| *at > now).map(|at| (at, id)));
            }
        }
    }

    /// Starts the next try of an endpoint that has a slot.
    fn start(&mut self, id: EndpointId, pool: Pool, now: Timestamp) {
        let begun = self.webhooks.endpoints().get_mut(&id).and_then(|endpoint| endpoint.begin(now));
        let Some(number) = begun else { return self.slots.release(pool) };
        let (engine, webhooks) = (Arc::clone(&self.engine), Arc::clone(&self.webhooks));
        let addresses = Arc::clone(self.addresses.entry(id).or_default());
        let one = self.tries.spawn(async move { deliver(&engine, &webhooks, id, number, &addresses).await });
        self.under_way.insert(one.id(), (id, number, pool));
    }

    /// Fills an endpoint with what the journal has for it.
    fn take_from_journal(&self, id: EndpointId, now: Timestamp) -> Result<(), Problem> {
        loop {
            let wanted = self.webhooks.endpoints().get_mut(&id).and_then(Endpoint::wanted);
            let Some((next, most)) = wanted else { return Ok(()) };
            let listed = self.engine.read_model().webhook_events(id.0, next..next + most as u64)?;
            let has_all = listed.len() < most;
            for listed in listed {
                let told = Told::read(&self.engine, id.0, listed)?;
                let mut endpoints = self.webhooks.endpoints();
                let Some(endpoint) = endpoints.get_mut(&id) else { return Ok(()) };
                endpoint.add(listed.number, subject_digest(told.notice.subject), told.at(), now);
            }
            if has_all {
                self.webhooks.endpoints().get_mut(&id).map(Endpoint::has_all);
            }
        }
    }

    /// Takes in how a try ended.
    fn settle(&mut self, ended: Result<(Id, Option<Answer>), tokio::task::JoinError>) {
        let now = self.engine.now();
        let (task, answer) = match ended {
            Ok(ended) => ended,
            Err(panicked) => {
                let answer = Answer { status: None, cause: Some(Cause::Internal), at: now, duration_ms: 0 };
                (panicked.id(), Some(answer))
            }
        };
        let Some((id, number, pool)) = self.under_way.remove(&task) else { return };
        self.slots.release(pool);
        self.ready.insert(id);
        let Some(answer) = answer else {
            let later = now.plus_ms(ROOM_AFTER_MS);
            if let Some(endpoint) = self.webhooks.endpoints().get_mut(&id) {
                endpoint.postpone(number, later);
            }
            return;
        };
        let result = if answer.cause.is_none() { "ok" } else { "failed" };
        self.webhooks.deliveries.get_or_create(&[("result", result)]).inc();
        if let Some(endpoint) = self.webhooks.endpoints().get_mut(&id) {
            if answer.cause.is_none() {
                endpoint.delivered(number, answer);
            } else if endpoint.failed(number, answer, now) {
                let key = id.1;
                tracing::warn!(?key, number, "a webhook was given up after its last try");
            }
        }
    }

    /// Keeps how far the endpoints have come, and measures what waits.
    fn keep(&mut self) {
        let now = self.engine.now();
        // What is not kept for want of space is kept later; after a crash before that it is delivered again.
        let is_storage_full = self.engine.is_storage_full();
        let (mut waiting, mut oldest, mut changed) = (0, None::<Timestamp>, Vec::new());
        for (id, endpoint) in self.webhooks.endpoints().iter_mut() {
            waiting += endpoint.waiting_count();
            oldest = oldest.into_iter().chain(endpoint.oldest()).min();
            if !is_storage_full && endpoint.take_changed() {
                changed.push((*id, endpoint.progress()));
            }
        }
        self.webhooks.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.webhooks.oldest_seconds.set(oldest.map_or(0, |at| (now.0 - at.0).max(0) / 1000));
        let outbox = self.engine.outbox();
        for ((group, key), progress) in changed {
            if let Err(error) = outbox.keep(group, key, &progress) {
                tracing::warn!(%error, "how far webhooks were delivered could not be kept");
                return;
            }
        }
    }
}

/// One try; none when there was no room for its body.
async fn deliver(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    number: u64,
    addresses: &Addresses,
) -> Option<Answer> {
    let (begun, key) = (Instant::now(), id.1);
    let tried = tokio::time::timeout(TRY_MAX, attempt(engine, webhooks, id, number, addresses)).await;
    let (status, cause) = match tried.unwrap_or(Err(Failure::Late)) {
        Ok(status) => (Some(status), None),
        Err(Failure::NoRoom) => return None,
        Err(why) => {
            tracing::info!(?key, number, %why, "a webhook was not delivered");
            (why.status(), Some(why.cause()))
        }
    };
    let duration_ms = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
    Some(Answer { status, cause, at: engine.now(), duration_ms })
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
    Status(StatusCode),
    #[error("there was no answer in time")]
    Late,
    #[error("it could not be written: {0}")]
    Unwritten(&'static str),
    #[error("there is no room for its body now")]
    NoRoom,
}

impl Failure {
    fn status(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status.as_u16()),
            _ => None,
        }
    }

    fn cause(&self) -> Cause {
        match self {
            Self::Refused(Refusal::Unknown) => Cause::Dns,
            Self::Refused(_) => Cause::NotPublic,
            Self::Post(error) => error.cause(),
            Self::Status(status) if status.is_redirection() => Cause::Redirect,
            Self::Status(_) => Cause::Status,
            Self::Late => Cause::Timeout,
            Self::NoAddress | Self::Unwritten(_) | Self::NoRoom => Cause::Internal,
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Unwritten(problem.code().row().code)
    }
}

async fn attempt(
    engine: &Engine,
    webhooks: &Webhooks,
    id: EndpointId,
    number: u64,
    addresses: &Addresses,
) -> Result<u16, Failure> {
    let (group, key) = id;
    let row = engine.read_model().api_key(key).filter(|row| !row.revoked).ok_or(Failure::NoAddress)?.webhook;
    let target = Target::parse(row.url.as_deref().ok_or(Failure::NoAddress)?)?;
    let listed = engine.read_model().webhook_events(group, number..number + 1).map_err(Problem::from)?;
    let told = Told::read(engine, group, *listed.first().ok_or(Failure::Unwritten("missing"))?)?;
    let body = serde_json::to_vec(&told.body(engine)?).map_err(|_| Failure::Unwritten("unwritable"))?;
    let _until_it_has_ended = webhooks.body_room.take(id, body.len()).ok_or(Failure::NoRoom)?;
    let request = request(&target, &secrets(engine, key, &row)?, &told.id.uuid().to_string(), wall_seconds(), body)?;
    let addresses = webhooks.guard.look_up_once(&target, addresses).await?;
    let status = webhooks.poster.send(&target, &addresses, request).await?;
    if status.is_success() { Ok(status.as_u16()) } else { Err(Failure::Status(status)) }
}

/// The secrets that sign now, the newest first.
fn secrets(engine: &Engine, key: ObjectId, row: &WebhookRow) -> Result<Vec<String>, Failure> {
    let now = engine.now();
    let previous = row.previous.as_ref().filter(|previous| now < previous.until).map(|previous| &previous.sealed);
    let open = |sealed: &Vec<u8>| {
        let opened = engine.keyring().open_secret(SealedFor::webhook_secret(key), sealed);
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
    let newest = secrets.first().ok_or(Failure::Unwritten("secretless"))?;
    let request = Request::post(&target.path)
        .header(HOST, &target.authority)
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("centavo/", env!("CARGO_PKG_VERSION")))
        .header(WEBHOOK_ID, id)
        .header(WEBHOOK_TIMESTAMP, timestamp)
        .header(WEBHOOK_SIGNATURE, standard.join(" "))
        .header(SERVICE_SIGNATURE, service_signature(newest, &body));
    request.body(Full::new(body.into())).map_err(|_| Failure::Unwritten("unsendable"))
}

/// Seconds since 1970, on the wall's clock.
fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
