//! Metrics of the requests that other processes answered.

use std::time::Duration;

use actors::metrics::{add, histogram};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Metrics of the requests that were sent to other processes.
#[derive(Clone, Debug)]
pub struct PeerMeasures {
    seconds: Histogram,
    tries: Family<[(&'static str, &'static str); 1], Counter>,
}

/// What may come of a request to another process.
const OUTCOMES: [&str; 7] = ["2xx", "3xx", "4xx", "5xx", "misdirected", "not_sent", "lost"];

impl Default for PeerMeasures {
    /// Metrics in a registry that nobody reads.
    fn default() -> Self {
        Self::new(&mut Registry::default())
    }
}

impl PeerMeasures {
    /// Metrics in a registry, under the prefix `centavo_`.
    pub fn new(registry: &mut Registry) -> Self {
        let to = registry.sub_registry_with_prefix("centavo");
        let help = "Requests that were sent to the process that owns their partition, by what came of it";
        let tries = add(to, "peer_requests", help, Family::<[(&'static str, &'static str); 1], Counter>::default());
        OUTCOMES.iter().for_each(|outcome| drop(tries.get_or_create(&[("outcome", *outcome)])));
        let help = "Time until the head of an answer of another process";
        Self { seconds: histogram(to, "peer_request_seconds", help, 0.000_1, 16), tries }
    }

    /// One try has ended.
    pub(super) fn tried(&self, outcome: &'static str, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        self.tries.get_or_create(&[("outcome", outcome)]).inc();
    }

    /// How many tries have had an outcome.
    #[cfg(test)]
    pub(super) fn tries(&self, outcome: &'static str) -> u64 {
        self.tries.get_or_create(&[("outcome", outcome)]).get()
    }
}
