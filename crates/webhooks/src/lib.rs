//! Delivery of webhooks (interface section 6): every webhook event goes to every live API key of
//! its account that has an address, at least once. Events about one thing come in their order.
//!
//! The journal is the outbox: only the progress of each endpoint is stored beside it. One task, the
//! [`deliverer`], keeps the endpoints and starts tries. A try reads its event from the journal, so
//! every try of an event sends the same body. The number of tries at once is bounded for each
//! endpoint ([`endpoint`]) and for all together ([`try_slots`]): no endpoint keeps another waiting.

mod attempt;
pub mod body;
pub mod deliverer;
mod endpoint;
pub mod event;
pub mod forward;
mod guard;
mod last_tries;
mod post;
mod signature;
mod try_slots;

use std::collections::{BTreeMap, BTreeSet};

use actors::engine::Engine;
use actors::metrics::add;
use derived::outbox::{Answer, subject_digest};
use ipnet::IpNet;
use ledger::{GroupNumber, ObjectId, Timestamp};
use minicbor::{Decode, Encode};
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::sync::Notify;

use endpoint::Endpoint;
use event::OutboxEvent;
use guard::Guard;
use post::Poster;
use try_slots::BodyRoom;

pub use endpoint::{DeliveryStatus, EndpointBacklog};
pub use guard::Refusal;
pub use last_tries::DeliveryTry;
pub use signature::new_secret;
pub use try_slots::CONNECTIONS_MAX;

/// State of webhook delivery that the deliverer and the HTTP handlers share.
pub struct Webhooks {
    connections_max: usize,
    guard: Guard,
    poster: Poster,
    endpoints: Mutex<BTreeMap<(GroupNumber, ObjectId), Endpoint>>,
    /// Endpoints to which a handler has added an event.
    asked: Mutex<BTreeSet<(GroupNumber, ObjectId)>>,
    woken: Notify,
    body_room: BodyRoom<EndpointId>,
    deliveries: Family<[(&'static str, &'static str); 1], Counter>,
    waiting: Gauge,
    oldest_seconds: Gauge,
}

/// Identity of an endpoint: the merchant's group and the API key.
type EndpointId = (GroupNumber, ObjectId);

/// An endpoint at which events wait or were given up.
#[derive(Clone, Debug, Encode, Decode)]
pub struct EndpointBehind {
    /// The merchant's group.
    #[n(0)]
    pub group: GroupNumber,
    /// The API key.
    #[n(1)]
    pub key: ObjectId,
    /// What waits.
    #[n(2)]
    pub backlog: EndpointBacklog,
}

/// Leaves at most `most` endpoints, those that have waited longest first.
pub fn sort_behind(behind: &mut Vec<EndpointBehind>, most: usize) {
    behind.sort_by_key(|EndpointBehind { group, key, backlog }| {
        (backlog.oldest_at.is_none(), backlog.oldest_at, *group, *key)
    });
    behind.truncate(most);
}

impl Webhooks {
    /// `allowed` are the networks that may be private and plain http. `connections_max` bounds the
    /// file descriptors of all tries together. Nothing is delivered until [`deliverer::run`] runs.
    pub fn new(
        allowed: Vec<IpNet>,
        connections_max: usize,
        registry: &mut Registry,
    ) -> Result<Self, tokio_rustls::rustls::Error> {
        let to = registry.sub_registry_with_prefix("centavo_webhook");
        Ok(Self {
            connections_max,
            guard: Guard::new(allowed),
            poster: Poster::new()?,
            endpoints: Mutex::default(),
            asked: Mutex::default(),
            woken: Notify::new(),
            body_room: BodyRoom::default(),
            deliveries: add(to, "deliveries", "Tries to deliver a webhook, by result", Family::default()),
            waiting: add(to, "waiting", "Webhooks that wait at their endpoints", Gauge::default()),
            oldest_seconds: add(to, "oldest_seconds", "Age of the oldest webhook that waits", Gauge::default()),
        })
    }

    /// Checks an address that a merchant sets.
    pub async fn check(&self, url: &str) -> Result<(), Refusal> {
        self.guard.check(url).await
    }

    /// Delivery of an event to each endpoint of its group.
    pub fn delivery_statuses(&self, group: GroupNumber, event: &OutboxEvent) -> Vec<(ObjectId, DeliveryStatus)> {
        let endpoints = self.endpoints();
        let of_group = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        let status = |endpoint: &Endpoint| match endpoint.wants(event.content.kind, event.listed.sequence) {
            true => endpoint.status(event.number()),
            false => DeliveryStatus::NotSent,
        };
        of_group.map(|((_, key), endpoint)| (*key, status(endpoint))).collect()
    }

    /// Endpoints of one group, or of all, at which events wait or were given up: their number, and
    /// at most `most` of them, those that have waited longest first.
    pub fn backlogs(&self, group: Option<GroupNumber>, most: usize) -> (usize, Vec<EndpointBehind>) {
        let mut backlogs: Vec<_> = {
            let endpoints = self.endpoints();
            let first = (group.unwrap_or(GroupNumber(0)), ObjectId(0));
            let is_wanted = |wanted: GroupNumber| group.is_none_or(|group| group == wanted);
            let of_group = endpoints.range(first..).take_while(|((group, _), _)| is_wanted(*group));
            let behind = |((group, key), endpoint): (&EndpointId, &Endpoint)| {
                Some(EndpointBehind { group: *group, key: *key, backlog: endpoint.backlog()? })
            };
            of_group.filter_map(behind).collect()
        };
        let total = backlogs.len();
        sort_behind(&mut backlogs, most);
        (total, backlogs)
    }

    /// Delivers an event again, at once, to every endpoint of its group that had chosen its kind
    /// and has room. False when there are such endpoints and none of them has room.
    pub fn deliver_again(&self, group: GroupNumber, event: &OutboxEvent, now: Timestamp) -> bool {
        let mut endpoints = self.endpoints();
        let of_group = endpoints.range_mut((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        let (mut asked, mut is_refused) = (Vec::new(), false);
        let is_wanted = |endpoint: &Endpoint| endpoint.wants(event.content.kind, event.listed.sequence);
        for (id, endpoint) in of_group.filter(|(_, endpoint)| is_wanted(endpoint)) {
            match endpoint.add_again(event.number(), subject_digest(event.content.subject()), event.at(), now) {
                true => asked.push(*id),
                false => is_refused = true,
            }
        }
        drop(endpoints);
        let is_taken = !asked.is_empty() || !is_refused;
        self.asked.lock().extend(asked);
        self.woken.notify_one();
        is_taken
    }

    /// The last tries at an endpoint, newest first: 1,000 that failed and 50 that it accepted, at
    /// most.
    pub fn tries(&self, group: GroupNumber, key: ObjectId) -> Vec<DeliveryTry> {
        self.endpoints()
            .get(&(group, key))
            .map(|endpoint| endpoint.try_log().newest_first(|_| true))
            .unwrap_or_default()
    }

    /// Sends a body to an endpoint once, signed as an event of this id, whatever waits there. Gives
    /// how it ended, and the first KiB of the answer's body; `None` if there is no room for it now.
    pub async fn send_once(
        &self,
        engine: &Engine,
        (group, key): (GroupNumber, ObjectId),
        event: (&str, Vec<u8>),
    ) -> Option<(Answer, String)> {
        attempt::attempt_once(engine, self, (group, key), event).await
    }

    /// The stored tries to deliver an event of a group, newest first, each with its endpoint.
    pub fn tries_of_event(&self, group: GroupNumber, number: u64) -> Vec<(ObjectId, DeliveryTry)> {
        let endpoints = self.endpoints();
        let of_group = endpoints.range((group, ObjectId(0))..=(group, ObjectId(u128::MAX)));
        let of_event = |at: &Endpoint| at.try_log().newest_first(|tried| tried.number == number);
        let of_key = of_group.flat_map(|((_, key), at)| of_event(at).into_iter().map(|tried| (*key, tried)));
        let mut tries: Vec<_> = of_key.collect();
        tries.sort_by_key(|(_, tried)| std::cmp::Reverse(tried.answer.at));
        tries
    }

    /// Numbers of the events that wait at an endpoint, oldest first, 1,000 at most: more of them
    /// wait in the journal.
    pub fn waiting(&self, group: GroupNumber, key: ObjectId) -> Vec<u64> {
        self.endpoints().get(&(group, key)).map(|endpoint| endpoint.waiting().collect()).unwrap_or_default()
    }

    /// Numbers of the events that were given up at an endpoint and not asked for again, oldest
    /// first, 1,000 at most.
    pub fn given_up(&self, group: GroupNumber, key: ObjectId) -> Vec<u64> {
        self.endpoints().get(&(group, key)).map(|endpoint| endpoint.given_up().to_vec()).unwrap_or_default()
    }

    /// Delivers events again to one endpoint, as far as it has room, and those that wait there for
    /// a later try. Gives how many it took, and how many waited.
    pub fn deliver_again_to(
        &self,
        group: GroupNumber,
        key: ObjectId,
        events: &[OutboxEvent],
        now: Timestamp,
    ) -> (usize, usize) {
        let mut endpoints = self.endpoints();
        let Some(endpoint) = endpoints.get_mut(&(group, key)) else { return (0, 0) };
        let hastened = endpoint.hasten(now);
        let add = |event: &&OutboxEvent| {
            endpoint.add_again(event.number(), subject_digest(event.content.subject()), event.at(), now)
        };
        let taken = events.iter().filter(add).count();
        drop(endpoints);
        self.asked.lock().insert((group, key));
        self.woken.notify_one();
        (taken, hastened)
    }

    fn endpoints(&self) -> MutexGuard<'_, BTreeMap<EndpointId, Endpoint>> {
        self.endpoints.lock()
    }
}
