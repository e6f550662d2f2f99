//! Metrics of the engine, each made and registered at once, with the functions for both. Names
//! follow the conventions of Prometheus, with the unit in the name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use ledger::{RailName, Timestamp};
use store::Block;

/// The engine's metrics.
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

/// Adds a metric to a registry, and gives it.
pub fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

/// Adds a histogram of this many buckets, each twice as large as the one before, and gives it.
pub fn histogram(registry: &mut Registry, name: &str, help: &str, first: f64, buckets: u16) -> Histogram {
    add(registry, name, help, Histogram::new(exponential_buckets(first, 2.0, buckets)))
}

impl Default for Metrics {
    /// Metrics in a registry that nobody reads.
    fn default() -> Self {
        Self::new(&mut Registry::default(), true)
    }
}

impl Metrics {
    /// Metrics in a registry, under the prefix `centavo_`. The free space is there only where the
    /// store knows it.
    pub fn new(registry: &mut Registry, knows_space: bool) -> Self {
        let to = registry.sub_registry_with_prefix("centavo");
        let (gate, free) = ("Time from sending a command to its durable reply", "Free space where the store writes");
        let derived = "Writes of something derived that failed and are made again";
        let unknown = "Age of the oldest rail call without an outcome, by rail";
        let pix_read = "Last time that an institution's list of PIX payments was read whole";
        Self {
            records: add(to, "journal_records", "Records made durable", Counter::default()),
            blocks: add(to, "journal_blocks", "Blocks made durable", Counter::default()),
            block_records: histogram(to, "journal_block_records", "Records of a block", 1.0, 14),
            block_bytes: histogram(to, "journal_block_bytes", "Bytes of a block", 256.0, 14),
            commit_seconds: histogram(to, "journal_commit_seconds", "Time to make a block durable", 0.000_05, 16),
            published: add(to, "journal_published_sequence", "Last published Record", Gauge::default()),
            gate_seconds: histogram(to, "gate_wait_seconds", gate, 0.000_05, 16),
            turn_seconds: histogram(to, "turn_wait_seconds", "Time that callers waited for their turn", 0.000_05, 16),
            turns_waiting: add(to, "turns_waiting", "Commands that wait for their turn", Gauge::default()),
            permits_free: add(to, "permits_free", "Commands that could still be sent, by who sends", Family::default()),
            publish_seconds: histogram(to, "read_model_lag_seconds", "Time to publish a durable block", 0.000_005, 16),
            delivery_seconds: histogram(to, "delivery_lag_seconds", "Time of a delivery in a mailbox", 0.000_005, 18),
            shed: add(to, "shed", "Commands refused for want of room", Counter::default()),
            actors_awake: add(to, "actors_awake", "Actors, by what they own", Family::default()),
            wake_seconds: histogram(to, "actor_wake_seconds", "Time to open an actor", 0.000_05, 16),
            storage_free_bytes: match knows_space {
                true => add(to, "storage_free_bytes", free, Gauge::default()),
                false => Gauge::default(),
            },
            derived_failures: add(to, "store_derived_failures", derived, Counter::default()),
            clock_ahead_seconds: add(to, "clock_ahead_seconds", "Wall clock minus the trusted time", Gauge::default()),
            due_lag_seconds: add(to, "due_lag_seconds", "Wait of the oldest due thing", Gauge::default()),
            oldest_unknown_by_rail: add(to, "rail_oldest_unknown_seconds", unknown, Family::default()),
            oldest_unknown_seconds: Gauge::default(),
            pix_read_at: add(to, "pix_read_timestamp_seconds", pix_read, Family::default()),
        }
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
