//! Metrics of the partitions of this process, as they are when they are read.

use std::fmt;
use std::sync::Arc;

use actors::engine::{Engine, Role};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;

use crate::node::Node;

/// How many partitions this process has, and how many nobody has.
pub struct PartitionMeasures {
    engine: Arc<Engine>,
    /// `None` if this process has all partitions.
    node: Option<Arc<Node>>,
}

impl PartitionMeasures {
    /// The metrics of a process.
    pub fn of(engine: Arc<Engine>, node: Option<Arc<Node>>) -> Self {
        Self { engine, node }
    }
}

impl fmt::Debug for PartitionMeasures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PartitionMeasures").finish_non_exhaustive()
    }
}

impl Collector for PartitionMeasures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let roles = self.engine.partitions_here().into_iter().map(|here| here.role);
        let owned = roles.filter(|role| matches!(role, Role::Owner | Role::Leaving)).count();
        let unserved = self.node.as_ref().map_or(0, |node| node.unserved());
        let former = usize::from(self.engine.has_former_primary());
        for (name, help, count) in [
            ("centavo_partitions_owned", "Partitions that this process serves", owned),
            ("centavo_partitions_unserved", "Partitions without a living owner, as this process sees them", unserved),
            ("centavo_former_primary", "1 while a server takes writes although another one replaced it", former),
        ] {
            let gauge = ConstGauge::new(count as u64);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
