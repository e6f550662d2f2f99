//! Deliverer of webhooks: the one task that keeps the endpoints, fills their queues from the
//! journal, and starts the tries in turn.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use actors::engine::{Engine, Hold, WebhookRow};
use derived::outbox::{Answer, Cause, Progress, subject_digest};
use ledger::{GroupNumber, ObjectId, SealedFor, Timestamp};
use store::{Sequence, StoreError};
use tokio::sync::watch;
use tokio::task::{Id, JoinSet};

use super::attempt::{EndedTry, attempt};
use super::endpoint::Endpoint;
use super::event::OutboxEvent;
use super::guard::Addresses;
use super::last_tries::TryLog;
use super::try_slots::{Pool, Slots};
use super::{DeliveryTry, EndpointId, Webhooks};
use web::problem::Problem;

/// How often progress is stored, and how often the clock is read while an event waits for its time.
/// The store has it on the disk 0.4 s later, so that a crash repeats the last second at most.
const TICK: Duration = Duration::from_millis(500);
/// How often the last tries are stored: after a crash those of this time are missing. Much beside
/// the progress of an endpoint, and nothing is delivered by them.
const TRIES_EVERY_TICKS: u32 = 60;
/// Age in milliseconds at which a start forgets a try, 90 days: an answer may name people.
const TRIES_STORED_MS: i64 = 90 * 86_400_000;
/// After how long a try comes again whose body found no room.
const ROOM_AFTER_MS: i64 = 1_000;
/// How long tries under way may take when the program ends.
const ENDING_MAX: Duration = Duration::from_secs(5);

/// Delivers webhooks until `ending` says that the program ends. Then waits at most 5 seconds for
/// the tries under way, and stores the progress.
pub async fn run(engine: Arc<Engine>, webhooks: Arc<Webhooks>, mut ending: watch::Receiver<bool>) {
    let mut deliverer = Deliverer::new(Arc::clone(&engine), Arc::clone(&webhooks));
    webhooks.endpoints().clear();
    for group in engine.groups() {
        deliverer.refresh(group);
    }
    let (mut tick, mut ticks) = (tokio::time::interval(TICK), 0_u32);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        deliverer.start_tries();
        tokio::select! {
            () = engine.webhook_signal().came() => {
                for group in engine.webhook_signal().take() {
                    deliverer.refresh(group);
                }
            }
            () = webhooks.woken.notified() => {}
            Some(ended) = deliverer.tries.join_next_with_id() => deliverer.settle(ended),
            _ = tick.tick() => {
                ticks = ticks.wrapping_add(1);
                deliverer.keep(ticks.is_multiple_of(TRIES_EVERY_TICKS));
            }
            () = tokio::task::yield_now(), if deliverer.reads_on => {}
            _ = ending.changed() => break,
        }
    }
    let under_way = async {
        while let Some(ended) = deliverer.tries.join_next_with_id().await {
            deliverer.settle(ended);
        }
    };
    let _those_left_are_tried_again = tokio::time::timeout(ENDING_MAX, under_way).await;
    deliverer.keep(true);
}

/// State of the task that keeps the endpoints.
struct Deliverer {
    engine: Arc<Engine>,
    webhooks: Arc<Webhooks>,
    tries: JoinSet<Option<EndedTry>>,
    under_way: HashMap<Id, (EndpointId, u64, Pool)>,
    slots: Slots<EndpointId>,
    /// Holds that keep the partition of each endpoint here until its progress is stored.
    holds: HashMap<EndpointId, Hold>,
    /// Addresses of the endpoints that were called, as they were looked up.
    addresses: HashMap<EndpointId, Arc<Addresses>>,
    /// Endpoints that may have an event whose turn it is.
    ready: BTreeSet<EndpointId>,
    /// Whether one of them stopped reading where it passed over many events.
    reads_on: bool,
    /// When each other endpoint has an event to try again.
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
            holds: HashMap::new(),
            addresses: HashMap::new(),
            ready: BTreeSet::new(),
            reads_on: false,
            later: BTreeSet::new(),
        }
    }

    /// Opens and closes endpoints of a group, as its API keys now say.
    fn refresh(&mut self, group: GroupNumber) {
        if !self.engine.serves(group) {
            return self.leave(group);
        }
        let keys = self.engine.live_keys(group);
        let wanted: BTreeMap<ObjectId, WebhookRow> = keys
            .into_iter()
            .filter(|(_, row)| row.webhook.url.is_some())
            .map(|(key, row)| (key, row.webhook))
            .collect();
        let mut gone: BTreeMap<EndpointId, TryLog> = {
            let mut endpoints = self.webhooks.endpoints();
            let known = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
            let is_gone = |(id, endpoint): &(&EndpointId, &Endpoint)| {
                wanted.get(&id.1).is_none_or(|row| row.since != endpoint.since())
            };
            let gone: BTreeMap<_, _> = known.filter(is_gone).map(|(id, at)| (*id, at.try_log().clone())).collect();
            gone.keys().for_each(|id| drop(endpoints.remove(id)));
            gone
        };
        for (group, key) in gone.keys() {
            self.addresses.remove(&(*group, *key));
            self.holds.remove(&(*group, *key));
            if let Err(error) = self.engine.outbox(*group).forget(*group, *key) {
                tracing::warn!(%error, "the progress of webhooks that go nowhere any more could not be removed");
            }
        }
        for (key, row) in wanted {
            let id = (group, key);
            let known = self.webhooks.endpoints().get_mut(&id).map(|endpoint| {
                endpoint.choose(&row);
                endpoint.has_events();
            });
            if known.is_none() {
                // `None` if the partition is given up at this moment.
                let Some(hold) = self.engine.hold(self.engine.extents().partition_of(group)) else { continue };
                self.holds.insert(id, hold);
                match self.open(id, &row) {
                    Ok(mut endpoint) => {
                        // The key has another address now.
                        gone.remove(&id).into_iter().for_each(|tries| endpoint.go_on_with(tries));
                        self.webhooks.endpoints().insert(id, endpoint);
                    }
                    Err(_logged) => {
                        self.holds.remove(&id);
                        continue;
                    }
                }
            }
            self.ready.insert(id);
        }
    }

    /// Keeps the progress of a group's endpoints for the process that delivers from now on. Tries
    /// under way may come again from there.
    fn leave(&mut self, group: GroupNumber) {
        let ids: Vec<EndpointId> = {
            let endpoints = self.webhooks.endpoints();
            endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX))).map(|(id, _)| *id).collect()
        };
        for (group, key) in ids {
            self.addresses.remove(&(group, key));
            let Some(endpoint) = self.webhooks.endpoints().remove(&(group, key)) else { continue };
            let kept = self.engine.outbox(group).keep(group, key, &endpoint.progress());
            if let Err(error) = kept.and_then(|()| self.keep_tries((group, key), endpoint.try_log())) {
                tracing::warn!(%error, "how far webhooks were delivered could not be kept: some are delivered again");
            }
            self.holds.remove(&(group, key));
        }
    }

    /// An endpoint that goes on from its stored progress.
    fn open(&self, (group, key): EndpointId, row: &WebhookRow) -> Result<Endpoint, Problem> {
        let before = self.engine.webhook_event_count(group, Sequence(row.since))?;
        let count = self.engine.webhook_event_count(group, Sequence(u64::MAX))?;
        let stored = self.engine.outbox(group).progress(group, key).unwrap_or_else(|error| {
            tracing::error!(%error, "how far webhooks were delivered can't be read: they are delivered again");
            None
        });
        let tries = self.engine.outbox(group).sealed_tries(group, key).ok().flatten();
        let tries = tries.and_then(|tries| self.engine.keyring().open_secret(SealedFor::webhook_tries(key), &tries));
        let mut tries: TryLog = tries.and_then(|tries| minicbor::decode(&tries).ok()).unwrap_or_default();
        tries.forget(count, self.engine.now().plus_ms(-TRIES_STORED_MS));
        let stored = stored.filter(|progress| progress.since == row.since);
        let begins = || Progress { since: row.since, through: before, ..Progress::default() };
        let mut endpoint = Endpoint::new(stored.unwrap_or_else(begins), before + 1, count);
        endpoint.choose(row);
        endpoint.restore(tries);
        Ok(endpoint)
    }

    /// Stores the last tries at an endpoint: sealed, since an answer may repeat what was sent.
    fn keep_tries(&self, (group, key): EndpointId, tries: &TryLog) -> Result<(), StoreError> {
        let tries = minicbor::to_vec(tries).expect("writing into memory cannot fail");
        match self.engine.keyring().seal_secret(SealedFor::webhook_tries(key), &tries) {
            Ok(sealed) => self.engine.outbox(group).keep_tries(group, key, &sealed),
            Err(error) => {
                tracing::warn!(%error, key = %key.uuid(), "tries of webhooks could not be sealed");
                Ok(())
            }
        }
    }

    /// Starts the tries whose turn it is, while there are free slots.
    fn start_tries(&mut self) {
        self.reads_on = false;
        // Another process may deliver them by now, in their order.
        if !self.engine.is_current() {
            return;
        }
        let now = self.engine.now();
        self.ready.append(&mut self.webhooks.asked.lock());
        while let Some((at, id)) = self.later.first().copied().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, id));
            self.ready.insert(id);
        }
        for id in std::mem::take(&mut self.ready) {
            match self.take_from_journal(id, now) {
                Ok(()) => {
                    if self.webhooks.endpoints().get_mut(&id).is_some_and(Endpoint::end_round) {
                        self.reads_on = self.ready.insert(id);
                    }
                    self.ask(id, now);
                }
                Err(_logged) => drop(self.later.insert((now.plus_ms(1_000), id))),
            }
        }
        while let Some((id, pool)) = self.slots.grant() {
            self.start(id, pool, now);
            self.ask(id, now);
        }
    }

    /// Asks for a slot for an endpoint that has an event to try now; notes when the next one's time
    /// is.
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

    /// Starts the next try of an endpoint that has been granted a slot.
    fn start(&mut self, id: EndpointId, pool: Pool, now: Timestamp) {
        let begun = self.webhooks.endpoints().get_mut(&id).and_then(|endpoint| endpoint.begin(now));
        let Some(number) = begun else { return self.slots.release(pool) };
        let (engine, webhooks) = (Arc::clone(&self.engine), Arc::clone(&self.webhooks));
        let addresses = Arc::clone(self.addresses.entry(id).or_default());
        let one = self.tries.spawn(async move { attempt(&engine, &webhooks, id, number, &addresses).await });
        self.under_way.insert(one.id(), (id, number, pool));
    }

    /// Adds the next events of the journal to an endpoint, as far as it has room.
    fn take_from_journal(&self, id: EndpointId, now: Timestamp) -> Result<(), Problem> {
        loop {
            let wanted = self.webhooks.endpoints().get_mut(&id).and_then(Endpoint::wanted);
            let Some((next, most)) = wanted else { return Ok(()) };
            // An event is listed before it is published: a choice before it may not be known yet.
            let published = self.engine.published_of(id.0);
            let Some(key) = self.engine.api_key(id.1) else { return Ok(()) };
            let mut listed = self.engine.webhook_events(id.0, next..next + most as u64)?;
            listed.retain(|listed| listed.sequence <= published);
            let has_all = listed.len() < most;
            match self.webhooks.endpoints().get_mut(&id) {
                Some(endpoint) if endpoint.since() == key.webhook.since => endpoint.choose(&key.webhook),
                _ => return Ok(()),
            }
            for listed in listed {
                let event = OutboxEvent::read(&self.engine, id.0, listed)?;
                let mut endpoints = self.webhooks.endpoints();
                let Some(endpoint) = endpoints.get_mut(&id) else { return Ok(()) };
                match endpoint.wants(event.content.kind, listed.sequence) {
                    true => endpoint.add(listed.number, subject_digest(event.content.subject()), event.at(), now),
                    false => endpoint.pass(listed.number),
                }
            }
            if has_all {
                self.webhooks.endpoints().get_mut(&id).map(Endpoint::has_all);
            }
        }
    }

    /// Takes the result of a try that has ended: frees its slot, and notes the answer at its
    /// endpoint.
    fn settle(&mut self, ended: Result<(Id, Option<EndedTry>), tokio::task::JoinError>) {
        let now = self.engine.now();
        let (task, answer) = match ended {
            Ok(ended) => ended,
            Err(panicked) => {
                let answer = Answer { status: None, cause: Some(Cause::Internal), at: now, duration_ms: 0 };
                (panicked.id(), Some((answer, String::new())))
            }
        };
        let Some((id, number, pool)) = self.under_way.remove(&task) else { return };
        self.slots.release(pool);
        self.ready.insert(id);
        let Some((answer, response)) = answer else {
            let later = now.plus_ms(ROOM_AFTER_MS);
            if let Some(endpoint) = self.webhooks.endpoints().get_mut(&id) {
                endpoint.postpone(number, later);
            }
            return;
        };
        let result = if answer.cause.is_none() { "ok" } else { "failed" };
        self.webhooks.deliveries.get_or_create(&[("result", result)]).inc();
        if let Some(endpoint) = self.webhooks.endpoints().get_mut(&id) {
            endpoint.note(DeliveryTry { number, answer, response: response.into() });
            if answer.cause.is_none() {
                endpoint.delivered(number, answer);
            } else if endpoint.failed(number, answer, now) {
                let key = id.1;
                tracing::warn!(?key, number, "a webhook was given up after its last try");
            }
        }
    }

    /// Stores the progress of the endpoints, where it is time their last tries too, and sets the
    /// gauges of waiting events.
    fn keep(&mut self, with_tries: bool) {
        let now = self.engine.now();
        // Progress that finds no space is stored later; after a crash before that, events are
        // delivered again.
        let is_storage_full = self.engine.is_storage_full();
        let (mut waiting, mut oldest, mut changed, mut tried) = (0, None::<Timestamp>, Vec::new(), Vec::new());
        for (id, endpoint) in self.webhooks.endpoints().iter_mut() {
            waiting += endpoint.waiting_count();
            oldest = oldest.into_iter().chain(endpoint.oldest()).min();
            if !is_storage_full && endpoint.take_changed() {
                changed.push((*id, endpoint.progress()));
            }
            if with_tries && !is_storage_full && endpoint.take_tries_changed() {
                tried.push((*id, endpoint.try_log().clone()));
            }
        }
        self.webhooks.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        self.webhooks.oldest_seconds.set(oldest.map_or(0, |at| (now.0 - at.0).max(0) / 1000));
        let progress =
            changed.into_iter().map(|((group, key), progress)| self.engine.outbox(group).keep(group, key, &progress));
        for kept in progress.chain(tried.iter().map(|(id, tries)| self.keep_tries(*id, tries))) {
            if let Err(error) = kept {
                tracing::warn!(%error, "how far webhooks were delivered could not be kept");
                return;
            }
        }
    }
}
