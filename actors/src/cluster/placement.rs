//! Placement: what a node takes and what it hands over, after each look at all nodes and
//! partitions. A machine without I/O.
//!
//! - **Live** is a node whose beat was seen to move, until it has stood still for the takeover time
//!   between looks without gaps, while this node's own beats succeeded. From then on it is *gone*.
//!   A node that was just seen first is neither: nothing is handed to it, and nothing that should
//!   be its is taken by others, until it has moved or is gone.
//! - **Candidates** for a partition are the nodes that are not gone and not leaving. Rendezvous
//!   hashing says which of them should have it.
//! - **Take**: the partition has no owner, or one that is gone, and this node should have it. A
//!   process without an address is an owner like any other, and never a candidate: as long as it
//!   lives, nobody takes what it has.
//! - **Hand over**: this node has the partition, and another one that is live should have it. Two
//!   at a time, so that most partitions are served while some move.
//!
//! Two nodes may see others differently for a while, and both want a partition. The store gives it
//! to one of them, and the other one sees that at its next look.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::rendezvous::heaviest;
use crate::store::{Epoch, NodeSeen, Partition, PartitionSeen, Picture};

/// Partitions that one step takes: each one is loaded, and those that came first should serve
/// soon.
const TAKES_A_STEP: usize = 8;

/// Partitions of this node that it gave up, or is about to, and that nobody has taken yet.
const HAND_OVERS_MAX: usize = 2;

/// What the node is to do. A move is given again after each look until it is done, so one that is
/// under way when it comes again is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Take a partition and serve it.
    Take {
        /// The partition.
        partition: Partition,
        /// Its epoch, from which it is taken.
        seen: Epoch,
        /// The beat of an owner that is gone, which must not have moved when the partition is
        /// taken.
        gone: Option<i64>,
    },
    /// Stop serving a partition and give it up.
    HandOver {
        /// The partition.
        partition: Partition,
    },
}

/// The process that has a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionOwner {
    /// Its name in the database.
    pub process: String,
    /// Where other nodes reach it, if it is a node.
    pub address: Option<String>,
}

/// The machine of one node.
///
/// ```
/// use std::time::Duration;
///
/// use actors::cluster::{Move, Placement};
/// use actors::store::{Epoch, NodeSeen, Partition, Picture};
///
/// let mut picture = Picture::default().with_all([Partition(0)].into_iter());
/// picture.nodes.push(NodeSeen {
///     process: "one".into(),
///     address: Some("10.0.0.1:8081".into()),
///     beat: 1,
///     is_leaving: false,
///     about: String::new(),
/// });
/// let mut placement = Placement::new("one".into(), Duration::from_secs(10));
/// let moves = placement.step(&picture, 0, true);
/// assert_eq!(moves, [Move::Take { partition: Partition(0), seen: Epoch::NONE, gone: None }]);
/// ```
#[derive(Debug)]
pub struct Placement {
    me: String,
    takeover_ms: i64,
    looked_ms: Option<i64>,
    /// Processes and when their beats last changed.
    seen: BTreeMap<String, Beats>,
    /// The last picture.
    picture: Picture,
    /// What this node had at the last look, with its epoch; what it gave up since, until somebody
    /// has it.
    had: BTreeMap<Partition, Epoch>,
    /// Partitions that this node was told to hand over and has still.
    asked: BTreeSet<Partition>,
}

/// The beats of a process, as seen from here.
#[derive(Debug)]
struct Beats {
    beat: Option<i64>,
    /// When this beat was seen first, or when looks without gaps began.
    since_ms: i64,
    is_moving: bool,
    is_gone: bool,
}

impl Placement {
    /// The machine of the process `me`, before its first look.
    pub fn new(me: String, takeover: Duration) -> Self {
        Self {
            me,
            takeover_ms: i64::try_from(takeover.as_millis()).unwrap_or(i64::MAX),
            looked_ms: None,
            seen: BTreeMap::new(),
            picture: Picture::default(),
            had: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// One look. `now_ms` is the time at which the picture had arrived, on a clock that never goes
    /// back and counts on while the machine is suspended, in milliseconds
    /// ([`crate::store::now_ms`]). `is_current` says that this node's own beats succeed
    /// ([`crate::store::Store::is_current`]); while they do not, it can neither take nor give, and
    /// silence of others proves nothing.
    pub fn step(&mut self, picture: &Picture, now_ms: i64, is_current: bool) -> Vec<Move> {
        let is_gapless = self.looked_ms.is_some_and(|looked_ms| now_ms - looked_ms < self.takeover_ms / 2);
        self.looked_ms = Some(now_ms);
        self.picture = picture.clone();
        self.look_at_beats(now_ms, is_gapless && is_current);
        self.look_at_partitions();
        if !is_current || self.node(&self.me).is_none_or(|node| node.address.is_none()) {
            return Vec::new();
        }
        let mut moves = self.takes();
        moves.extend(self.hand_overs());
        moves
    }

    /// Who has a partition, as of the last look.
    pub fn owner(&self, partition: Partition) -> Option<PartitionOwner> {
        let process = self.partition(partition)?.owner.clone()?;
        let address = self.node(&process).and_then(|node| node.address.clone());
        Some(PartitionOwner { process, address })
    }

    /// The address of the node that should have a partition, as of the last look. It may be one
    /// that is not known to live yet. None if no node may have it.
    pub fn desired(&self, partition: Partition) -> Option<&str> {
        let candidates = self.picture.nodes.iter().filter(|node| self.is_candidate(node));
        heaviest(candidates.filter_map(|node| node.address.as_deref()), partition)
    }

    /// Whether this node should have a partition.
    fn is_mine(&self, partition: Partition) -> bool {
        let own = self.node(&self.me).filter(|node| !node.is_leaving).and_then(|node| node.address.as_deref());
        own.is_some() && self.desired(partition) == own
    }

    fn node(&self, process: &str) -> Option<&NodeSeen> {
        self.picture.nodes.iter().find(|node| node.process == process)
    }

    fn partition(&self, partition: Partition) -> Option<&PartitionSeen> {
        self.picture.partitions.iter().find(|seen| seen.partition == partition)
    }

    fn is_candidate(&self, node: &NodeSeen) -> bool {
        !node.is_leaving && !self.is_gone(&node.process)
    }

    fn is_gone(&self, process: &str) -> bool {
        process != self.me && self.seen.get(process).is_some_and(|beats| beats.is_gone)
    }

    /// Whether a node at this address is certain to take what is its.
    fn is_live(&self, address: &str) -> bool {
        let at_it = |node: &&NodeSeen| node.address.as_deref() == Some(address) && self.is_candidate(node);
        let is_moving = |node: &NodeSeen| self.seen.get(&node.process).is_some_and(|beats| beats.is_moving);
        self.picture.nodes.iter().filter(at_it).any(is_moving)
    }

    /// Looks at the beats of all processes, also of an owner without a row of its own.
    fn look_at_beats(&mut self, now_ms: i64, is_proof: bool) {
        let owners = self.picture.partitions.iter().filter_map(|seen| Some((seen.owner.clone()?, None)));
        let beats = self.picture.nodes.iter().map(|node| (node.process.clone(), Some(node.beat)));
        let found: BTreeMap<String, Option<i64>> = owners.chain(beats).collect();
        self.seen.retain(|process, _| found.contains_key(process));
        for (process, beat) in found {
            let Some(beats) = self.seen.get_mut(&process) else {
                self.seen.insert(process, Beats { beat, since_ms: now_ms, is_moving: false, is_gone: false });
                continue;
            };
            if beats.beat != beat {
                *beats = Beats { beat, since_ms: now_ms, is_moving: beat > beats.beat, is_gone: false };
            } else if !is_proof {
                beats.since_ms = now_ms;
            } else if now_ms - beats.since_ms >= self.takeover_ms {
                (beats.is_moving, beats.is_gone) = (false, true);
            }
        }
    }

    /// Notes what this node has, what it gave up, and what of it others have taken since.
    fn look_at_partitions(&mut self) {
        let Self { picture, had, asked, me, .. } = self;
        for PartitionSeen { partition, epoch, owner, .. } in &picture.partitions {
            let is_own = owner.as_ref() == Some(me);
            if is_own && had.insert(*partition, *epoch) != Some(*epoch) {
                // Taken anew: what was handed over before is done.
                asked.remove(partition);
            }
            if !is_own && had.get(partition).is_some_and(|had| owner.is_some() || had != epoch) {
                had.remove(partition);
            }
            if !is_own {
                asked.remove(partition);
            }
        }
    }

    fn takes(&self) -> Vec<Move> {
        let takes = self.picture.partitions.iter().filter_map(|seen| {
            let gone = match &seen.owner {
                None => None,
                Some(owner) if self.is_gone(owner) => self.seen.get(owner).and_then(|beats| beats.beat),
                Some(_) => return None,
            };
            let is_mine = self.is_mine(seen.partition);
            is_mine.then_some(Move::Take { partition: seen.partition, seen: seen.epoch, gone })
        });
        takes.take(TAKES_A_STEP).collect()
    }

    fn hand_overs(&mut self) -> Vec<Move> {
        let is_own = |seen: &&PartitionSeen| seen.owner.as_ref() == Some(&self.me);
        let own: Vec<Partition> = self.picture.partitions.iter().filter(is_own).map(|seen| seen.partition).collect();
        let given_up = self.had.len() - own.len();
        let mut room = HAND_OVERS_MAX.saturating_sub(given_up + self.asked.len());
        let mut moves = Vec::new();
        for partition in own {
            let is_due = !self.is_mine(partition) && self.desired(partition).is_some_and(|to| self.is_live(to));
            if !is_due {
                continue;
            }
            if !self.asked.contains(&partition) {
                if room == 0 {
                    continue;
                }
                room -= 1;
                self.asked.insert(partition);
            }
            moves.push(Move::HandOver { partition });
        }
        moves
    }
}
