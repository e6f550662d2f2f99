//! Nodes: the processes of a database and what they have, as seen at once.

use std::time::Duration;

use super::commit;
use super::{PostgresStore, StoreParts};
use crate::{Epoch, Partition, Sequence, StoreError, Tenure};

/// The processes and partitions of a database at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Processes that own a partition, or gave a sign of life lately.
    pub nodes: Vec<NodeSeen>,
    /// Partitions that were ever taken, in their order ([`Picture::with_all`]).
    pub partitions: Vec<PartitionSeen>,
}

impl Picture {
    /// The picture with those of `partitions` that nobody has ever taken.
    #[must_use]
    pub fn with_all(mut self, partitions: impl Iterator<Item = Partition>) -> Self {
        for partition in partitions {
            if let Err(place) = self.partitions.binary_search_by_key(&partition, |seen| seen.partition) {
                let never = PartitionSeen { partition, epoch: Epoch::NONE, owner: None, next: Sequence::FIRST };
                self.partitions.insert(place, never);
            }
        }
        self
    }
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its name, which no other process has, before or after.
    pub process: String,
    /// Where other nodes reach it. None for a process that is no node: it has all partitions, or
    /// waits for them.
    pub address: Option<String>,
    /// The number that it counts up while it lives.
    pub beat: i64,
    /// It hands its partitions over, to end.
    pub is_leaving: bool,
    /// Its release and machine.
    pub about: String,
    /// The takeover time that it counts on, milliseconds.
    pub takeover_ms: i64,
    /// How long ago it gave its last sign of life, milliseconds, by the clock of the database.
    pub silent_ms: i64,
}

/// A partition and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionSeen {
    /// Its number.
    pub partition: Partition,
    /// How often it was taken.
    pub epoch: Epoch,
    /// The process that has it; none if it was given up.
    pub owner: Option<String>,
    /// The sequence number of its next Record.
    pub next: Sequence,
}

/// Processes and partitions in one statement, so that they belong together. `$1` is the takeover
/// time of this process, milliseconds, `$2` for how many seconds all processes are remembered.
pub(super) const PICTURE: &str = "
    SELECT NULL::int, NULL::bigint, n.id, NULL::bigint, n.address, n.beat, n.leaving, n.about,
        (extract(epoch FROM now() - n.beaten_at) * 1000)::bigint,
        n.takeover_ms FROM node n
        WHERE n.beaten_at > now() - make_interval(secs => greatest(greatest(n.takeover_ms, $1)::float8 * 0.0015, $2))
            OR n.id IN (SELECT owner FROM partition)
    UNION ALL
    SELECT p.id, p.epoch, p.owner,
        (SELECT b.next FROM block b WHERE b.partition = p.id ORDER BY b.first DESC LIMIT 1),
        NULL, NULL, NULL, NULL, NULL, NULL
        FROM partition p
    ORDER BY 1, 3";

impl PostgresStore {
    /// What all processes have that gave a sign of life within one and a half takeover times, in
    /// one round trip on the connection that beats. A partition that this process gave up has no
    /// owner here; if the database does not know that yet, it learns it now.
    pub fn picture(&self) -> Result<Picture, StoreError> {
        self.picture_since(Duration::ZERO)
    }

    /// The same, with all processes that gave a sign of life in this time.
    pub fn picture_since(&self, remembered: Duration) -> Result<Picture, StoreError> {
        let parts = &self.parts;
        let (takeover_ms, seconds) = (parts.lease.takeover_ms(), remembered.as_secs_f64());
        let rows =
            parts.wait(parts.beats.try_once(async |link| link.rows(PICTURE, &[&takeover_ms, &seconds]).await))?;
        let mut picture = Picture::default();
        for row in rows {
            match row.get::<_, Option<i32>>(0) {
                Some(id) => picture.partitions.push(PartitionSeen {
                    partition: Partition(id as u16),
                    epoch: Epoch(row.get::<_, i64>(1) as u64),
                    owner: row.get(2),
                    next: Sequence(row.get::<_, Option<i64>>(3).unwrap_or(1) as u64),
                }),
                None => picture.nodes.push(NodeSeen {
                    process: row.get(2),
                    address: row.get(4),
                    beat: row.get(5),
                    is_leaving: row.get(6),
                    about: row.get(7),
                    silent_ms: row.get(8),
                    takeover_ms: row.get(9),
                }),
            }
        }
        picture.partitions.iter_mut().for_each(|seen| parts.disown(seen));
        Ok(picture)
    }
}

impl StoreParts {
    /// Repeats to the database that this process released a partition, which it may not know.
    fn disown(&self, seen: &mut PartitionSeen) {
        let tenure = Tenure { partition: seen.partition, epoch: seen.epoch };
        let is_own = seen.owner.as_deref() == Some(self.lease.process());
        if !is_own || !self.lease.is_to_be_released(tenure) {
            return;
        }
        if let Err(error) = self.wait(commit::release(&self.writes, tenure)) {
            tracing::warn!(%error, partition = tenure.partition.0, "a partition is not given up yet; it is tried again");
        }
        seen.owner = None;
    }
}
