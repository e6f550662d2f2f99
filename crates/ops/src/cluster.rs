//! The nodes of the store, and who has which partition.

use std::sync::Arc;

use actors::engine::{PartitionHere, Role};
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use store::Picture;
use utoipa::ToSchema;

use crate::{DeskState, Operator};
use web::request_context::spawn_blocking;
use web::{Result, ok};

/// The nodes of the store and its partitions, as the process that is asked sees them now.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterView {
    /// The processes: nodes, and one that waits until it is needed.
    nodes: Vec<ClusterNodeView>,
    /// The partitions, in their order.
    partitions: Vec<ClusterPartitionView>,
    /// Commits of this process that did not go as usual, since it started.
    commits: ClusterCommitsView,
}

/// A process.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterNodeView {
    /// Its name, which no other process has, before or after.
    #[schema(example = "centavo-2f0c1a9b7d3e4f50")]
    node: String,
    /// Where other nodes reach it; null for a process that is no node.
    #[schema(required, example = "10.0.0.1:8082")]
    address: Option<String>,
    /// Its release, machine and process number.
    about: String,
    /// It hands its partitions over, to end.
    leaving: bool,
    /// How long ago it gave its last sign of life, milliseconds. One that ended or died is shown
    /// for an hour, and as long as it has partitions.
    silent_ms: i64,
    /// How many partitions it has.
    partitions: usize,
    /// It is the process that answers.
    this: bool,
}

/// A partition.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterPartitionView {
    /// Its number.
    partition: u16,
    /// How often it was taken; 0 before the first time.
    epoch: u64,
    /// The process that has it; null while it moves, or nobody wants it.
    #[schema(required, example = "centavo-2f0c1a9b7d3e4f50")]
    owner: Option<String>,
    /// How many Records its journal has.
    records: u64,
    /// What the process that answers is to it: `owner`, `leaving` while it hands it over,
    /// `follower` where it reads what the owner writes, or `absent`.
    #[schema(pattern = "^(owner|leaving|follower|absent)$")]
    here: &'static str,
    /// How many Records that process lacks; null where it is absent.
    #[schema(required)]
    lag: Option<u64>,
}

/// Commits that did not go as usual.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterCommitsView {
    /// Blocks that were refused, since another process had taken the partition.
    fenced: u64,
    /// Blocks that were handed in again, since no answer had come.
    unknown: u64,
}

/// The nodes, who has which partition, and how far each journal is. Each process answers what it
/// sees itself.
#[utoipa::path(get, path = "/ops/cluster", operation_id = "get_cluster",
    responses((status = 200, body = ClusterView), (status = 400)))]
pub async fn get(State(desk): DeskState, _: Operator) -> Result<Response> {
    let here = desk.engine.partitions_here();
    let view = match &desk.node {
        Some(node) => {
            let looking = Arc::clone(node);
            let (picture, commits) =
                spawn_blocking(move || looking.picture()).await.map_err(web::problem::failed)??;
            ClusterView::of(&picture, &here, node.process(), commits)
        }
        None => ClusterView::alone(&here),
    };
    Ok(ok(view))
}

impl ClusterView {
    fn of(picture: &Picture, here: &[PartitionHere], this: &str, (fenced, unknown): (u64, u64)) -> Self {
        let has =
            |process: &str| picture.partitions.iter().filter(|seen| seen.owner.as_deref() == Some(process)).count();
        let nodes = picture.nodes.iter().map(|node| ClusterNodeView {
            node: node.process.clone(),
            address: node.address.clone(),
            about: node.about.clone(),
            leaving: node.is_leaving,
            silent_ms: node.silent_ms,
            partitions: has(&node.process),
            this: node.process == this,
        });
        let partitions = picture.partitions.iter().zip(here).map(|(seen, here)| {
            let records = seen.next.0 - 1;
            ClusterPartitionView {
                partition: seen.partition.0,
                epoch: seen.epoch.0,
                owner: seen.owner.clone(),
                records,
                here: here.role.into(),
                lag: (here.role != Role::Absent).then(|| records.saturating_sub(here.published.0)),
            }
        });
        Self {
            nodes: nodes.collect(),
            partitions: partitions.collect(),
            commits: ClusterCommitsView { fenced, unknown },
        }
    }

    /// One process has all partitions.
    fn alone(here: &[PartitionHere]) -> Self {
        let this = "this";
        let node = ClusterNodeView {
            node: this.to_owned(),
            address: None,
            about: format!("{}, process {}", env!("CARGO_PKG_VERSION"), std::process::id()),
            leaving: false,
            silent_ms: 0,
            partitions: here.len(),
            this: true,
        };
        let partitions = here.iter().map(|here| ClusterPartitionView {
            partition: here.partition.0,
            epoch: here.epoch.0,
            owner: Some(this.to_owned()),
            records: here.published.0,
            here: here.role.into(),
            lag: Some(0),
        });
        Self {
            nodes: vec![node],
            partitions: partitions.collect(),
            commits: ClusterCommitsView { fenced: 0, unknown: 0 },
        }
    }
}
