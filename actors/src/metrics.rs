//! Metrics of the engine. Names follow the conventions of Prometheus, with the unit in the name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use ledger::{RailName, Timestamp};
use store::Block;

/// The engine's metrics, and the registry that the door adds its own to.
pub struct Metrics {
    records: Counter,
    blocks: Counter,
    block_records: Histogram,
    block_bytes: Histogram,
    commit_seconds: Histogram,
    wake_seconds: Histogram,
    /// How long callers waited for the turn of a command, seconds.
    pub turn_seconds: Histogram,
    /// Commands of callers that wait for their turn.
    pub turns_waiting: Gauge,
    /// How long a command took from being sent to its durable reply, seconds.
    pub gate_seconds: Histogram,
    actors_awake: Family<[(&'static str, &'static str); 1], Gauge>,
    permits_free: Family<[(&'static str, &'static str); 1], Gauge>,
    /// How long a durable block took to be published to readers, seconds.
    pub publish_seconds: Histogram,
    /// How long a delivery waited in its actor's mailbox, seconds.
    pub delivery_seconds: Histogram,
    /// Commands that were refused because their turn did not come in time.
    pub shed: Counter,
    /// Bytes that are free where the store writes.
    pub storage_free_bytes: Gauge,
    derived_failures: Counter<u64, AtomicU64>,
    /// How far the wall clock is ahead of the trusted time, seconds.
    pub clock_ahead_seconds: Gauge,
    /// How long the oldest due thing has waited, seconds.
    pub due_lag_seconds: Gauge,
    /// Age of the oldest rail call whose outcome is unknown, of all rails, seconds.
    pub oldest_unknown_seconds: Gauge,
    oldest_unknown_by_rail: Family<[(&'static str, String); 1], Gauge>,
    /// When the list of payments of a PIX institution was last read whole, seconds since 1970.
    pix_read_at: Family<[(&'static str, String); 1], Gauge>,
    /// Sequence of the last published Record.
    pub published: Gauge<i64>,
}

fn histogram(start: f64, factor: f64, length: u16) -> Histogram {
    Histogram::new(exponential_buckets(start, factor, length))
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            records: Counter::default(),
            blocks: Counter::default(),
            block_records: histogram(1.0, 2.0, 14),
            block_bytes: histogram(256.0, 2.0, 14),
            commit_seconds: histogram(0.000_05, 2.0, 16),
            wake_seconds: histogram(0.000_05, 2.0, 16),
            turn_seconds: histogram(0.000_05, 2.0, 16),
            turns_waiting: Gauge::default(),
            gate_seconds: histogram(0.000_05, 2.0, 16),
            actors_awake: Family::default(),
            permits_free: Family::default(),
            publish_seconds: histogram(0.000_005, 2.0, 16),
            delivery_seconds: histogram(0.000_005, 2.0, 18),
            shed: Counter::default(),
            storage_free_bytes: Gauge::default(),
            derived_failures: Counter::default(),
            clock_ahead_seconds: Gauge::default(),
            due_lag_seconds: Gauge::default(),
            oldest_unknown_seconds: Gauge::default(),
            oldest_unknown_by_rail: Family::default(),
            pix_read_at: Family::default(),
            published: Gauge::default(),
        }
    }
}

impl Metrics {
    /// Registers everything under the prefix `centavo_`.
    /// The free space is there only where the store knows it.
    pub fn register(&self, registry: &mut Registry, knows_space: bool) {
        let registry = registry.sub_registry_with_prefix("centavo");
        registry.register("journal_records", "Records made durable", self.records.clone());
        registry.register("journal_blocks", "Blocks made durable", self.blocks.clone());
        registry.register("journal_block_records", "Records of a block", self.block_records.clone());
        registry.register("journal_block_bytes", "Bytes of a block", self.block_bytes.clone());
        registry.register("journal_commit_seconds", "Time to make a block durable", self.commit_seconds.clone());
        registry.register("journal_published_sequence", "Last published Record", self.published.clone());
        registry.register(
            "gate_wait_seconds",
            "Time from sending a command to its durable reply",
            self.gate_seconds.clone(),
        );
        registry.register("turn_wait_seconds", "Time that callers waited for their turn", self.turn_seconds.clone());
        registry.register("turns_waiting", "Commands that wait for their turn", self.turns_waiting.clone());
        registry.register("permits_free", "Commands that could still be sent, by who sends", self.permits_free.clone());
        registry.register("read_model_lag_seconds", "Time to publish a durable block", self.publish_seconds.clone());
        registry.register("delivery_lag_seconds", "Time of a delivery in a mailbox", self.delivery_seconds.clone());
        registry.register("shed", "Commands refused for want of room", self.shed.clone());
        registry.register("actors_awake", "Actors, by what they own", self.actors_awake.clone());
        registry.register("actor_wake_seconds", "Time to open an actor", self.wake_seconds.clone());
        if knows_space {
            let free = self.storage_free_bytes.clone();
            registry.register("storage_free_bytes", "Free space where the store writes", free);
        }
        registry.register(
            "store_derived_failures",
            "Writes of something derived that failed and are made again",
            self.derived_failures.clone(),
        );
        let ahead = self.clock_ahead_seconds.clone();
        registry.register("clock_ahead_seconds", "Wall clock minus the trusted time", ahead);
        registry.register("due_lag_seconds", "Wait of the oldest due thing", self.due_lag_seconds.clone());
        registry.register(
            "rail_oldest_unknown_seconds",
            "Age of the oldest rail call without an outcome, by rail",
            self.oldest_unknown_by_rail.clone(),
        );
        registry.register(
            "pix_read_timestamp_seconds",
            "Last time that an institution's list of PIX payments was read whole",
            self.pix_read_at.clone(),
        );
    }

    /// Blocks were made durable together.
    pub(crate) fn committed(&self, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
    }

    /// A block became durable.
    pub(crate) fn block_written(&self, block: &Block) {
        self.blocks.inc();
        self.records.inc_by(block.records.len() as u64);
        self.block_records.observe(block.records.len() as f64);
        self.block_bytes.observe(block.records.iter().map(Vec::len).sum::<usize>() as f64);
    }

    /// An actor was opened.
    pub(crate) fn actor_woken(&self, took: Duration) {
        self.wake_seconds.observe(took.as_secs_f64());
    }

    /// How many commands could still be sent, by callers at the door and by the engine's own
    /// senders.
    pub(crate) fn set_permits_free(&self, door: i64, inside: i64) {
        for (class, free) in [("door", door), ("inside", inside)] {
            self.permits_free.get_or_create(&[("class", class)]).set(free);
        }
    }

    /// How often something derived could not be written.
    pub(crate) fn set_derived_failures(&self, failures: u64) {
        self.derived_failures.inner().fetch_max(failures, Ordering::Relaxed);
    }

    /// How long the oldest call of each rail has had no outcome, seconds. A sandbox's has no name.
    pub(crate) fn set_oldest_unknown(&self, ages: &BTreeMap<Option<RailName>, i64>) {
        self.oldest_unknown_seconds.set(ages.values().copied().max().unwrap_or_default());
        for (rail, age) in ages {
            let rail = rail.as_ref().map_or("sandbox", RailName::as_str).to_owned();
            self.oldest_unknown_by_rail.get_or_create(&[("rail", rail)]).set(*age);
        }
    }

    /// The list of payments of an institution was read whole.
    pub(crate) fn pix_read(&self, rail: &RailName, at: Timestamp) {
        self.pix_read_at.get_or_create(&[("rail", rail.to_string())]).set(at.0 / 1_000);
    }

    /// The list was read by an earlier process, or never: so an alert finds an institution that is
    /// away from the start on.
    pub(crate) fn pix_read_before(&self, rail: &RailName, at: Timestamp) {
        if self.pix_read_at.get(&[("rail", rail.to_string())]).is_none() {
            self.pix_read(rail, at);
        }
    }

    /// The number of actors of a kind has changed by this.
    pub(crate) fn count_actors(&self, kind: &'static str, change: i64) {
        self.actors_awake.get_or_create(&[("kind", kind)]).inc_by(change);
    }
}
