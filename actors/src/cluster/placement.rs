//! Placement of partitions on nodes: after each look at all of them, a node takes some partitions
//! and hands over others. A machine without I/O.
//!
//! - **Takeover time** is the longest of those that the processes of the picture are set to. So
//!   nobody takes from one that counts on a longer time, and all come to the same placement.
//! - **Live** is a node whose beat was seen to move, until it has stood still for the takeover time
//!   between looks without gaps, in which this node's own beat moved. From then on it is *gone*.
//!   A node that was just seen first is neither: nothing is handed to it, and nothing that should
//!   be its is taken by others, until it has moved or is gone. Nobody waits for one whose last beat
//!   was a takeover time ago by the database's clock, so a node that starts beside rows of the dead
//!   places partitions as the others do.
//! - **Candidates** for a partition are the nodes that are not gone and not leaving. Rendezvous
//!   hashing says which of them should have it. An address at which processes start and end, and
//!   none ever lives, is no candidate after a takeover time.
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

use super::rendezvous::placed;
use store::{Epoch, NodeSeen, Partition, PartitionSeen, Picture};

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
/// use store::{Epoch, NodeSeen, Partition, Picture};
///
/// let mut picture = Picture::default().with_all([Partition(0)].into_iter());
/// picture.nodes.push(NodeSeen {
///     process: "one".into(),
///     address: Some("10.0.0.1:8081".into()),
///     beat: 1,
///     is_leaving: false,
///     about: String::new(),
///     silent_ms: 0,
///     takeover_ms: 10_000,
/// });
/// let mut placement = Placement::new("one".into(), Duration::from_secs(10));
/// let moves = placement.step(&picture, 0, true);
/// assert_eq!(moves, [Move::Take { partition: Partition(0), seen: Epoch::NONE, gone: None }]);
/// ```
#[derive(Debug, Default)]
pub struct Placement {
    me: String,
    own_takeover_ms: i64,
    /// The longest one of the last picture.
    takeover_ms: i64,
    looked_ms: Option<i64>,
    /// This node's own beat, and when it was seen first.
    own: Option<(i64, i64)>,
    /// Processes and when their beats last changed.
    seen: BTreeMap<String, Beats>,
    /// Addresses at which nobody is known to live, and since when.
    silent: BTreeMap<String, i64>,
    /// The last picture.
    picture: Picture,
    /// The address that should have each partition, by the last picture.
    placed: BTreeMap<Partition, String>,
    /// Partitions of this node at the last look, with their epochs. One that it gave up stays until
    /// another node has it.
    had: BTreeMap<Partition, Epoch>,
    /// Partitions still held whose handover was requested.
    handovers: BTreeSet<Partition>,
}

/// The beats of a process, as seen from here.
#[derive(Debug)]
struct Beats {
    beat: Option<i64>,
    /// When this beat was seen first, or when looks without gaps began.
    since_ms: i64,
    life: Life,
}

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Its beat has not moved since it was seen first.
    Unknown,
    Live,
    Gone,
}

impl Placement {
    /// The machine of the process `me`, before its first look.
    pub fn new(me: String, takeover: Duration) -> Self {
        let takeover_ms = i64::try_from(takeover.as_millis()).unwrap_or(i64::MAX);
        Self { me, own_takeover_ms: takeover_ms, takeover_ms, ..Self::default() }
    }

    /// One look. `now_ms` is the time at which the picture had arrived, on a clock that never goes
    /// back and counts on while the machine is suspended, in milliseconds
    /// ([`store::now_ms`]). `is_current` says that this node's own beats succeed
    /// ([`store::Store::is_current`]); while they do not, it can neither take nor give, and
    /// silence of others proves nothing.
    pub fn step(&mut self, picture: &Picture, now_ms: i64, is_current: bool) -> Vec<Move> {
        self.picture = picture.clone();
        let longest = picture.nodes.iter().map(|node| node.takeover_ms).max();
        self.takeover_ms = longest.unwrap_or_default().max(self.own_takeover_ms);
        let is_proof = self.is_proof(now_ms);
        self.look_at_beats(now_ms, is_proof);
        self.look_at_addresses(now_ms, is_proof);
        self.look_at_partitions();
        self.place();
        if !is_current || !self.is_shown() {
            return Vec::new();
        }
        let mut moves = self.takes();
        moves.extend(self.hand_overs());
        moves
    }

    /// Whether this node had joined the others at the last look: its address was there.
    pub fn is_shown(&self) -> bool {
        self.node(&self.me).is_some_and(|node| node.address.is_some())
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
        self.placed.get(&partition).map(String::as_str)
    }

    /// How many partitions had no owner at the last look, or one that is gone. Nobody answers for
    /// them.
    pub fn unserved(&self) -> usize {
        let is_served = |seen: &&PartitionSeen| seen.owner.as_ref().is_some_and(|owner| !self.is_gone(owner));
        self.picture.partitions.len() - self.picture.partitions.iter().filter(is_served).count()
    }

    /// A process that is no node, while nobody else serves: it had a partition at the last look,
    /// and no node had one.
    pub fn lone(&self) -> Option<&str> {
        let owners = self.picture.partitions.iter().filter_map(|seen| seen.owner.as_deref());
        let mut living = owners.filter(|owner| !self.is_gone(owner));
        let is_node = |owner: &str| self.node(owner).is_some_and(|node| node.address.is_some());
        let first = living.next()?;
        (!is_node(first) && !living.any(is_node)).then_some(first)
    }

    /// A process with a longer takeover time than this one, as of the last look; of several, one
    /// with the longest, which counts for all.
    pub fn longest(&self) -> Option<&NodeSeen> {
        let longest = self.picture.nodes.iter().max_by_key(|node| node.takeover_ms);
        longest.filter(|node| node.takeover_ms > self.own_takeover_ms)
    }

    fn place(&mut self) {
        let candidates = self.picture.nodes.iter().filter(|node| self.is_candidate(node));
        let addresses: BTreeSet<&str> = candidates.filter_map(|node| node.address.as_deref()).collect();
        let addresses: Vec<&str> = addresses.into_iter().collect();
        let placed = placed(&addresses, self.picture.partitions.iter().map(|seen| seen.partition));
        self.placed = placed.into_iter().map(|(partition, address)| (partition, address.to_owned())).collect();
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
        let partitions = &self.picture.partitions;
        let place = partitions.binary_search_by_key(&partition, |seen| seen.partition).ok()?;
        partitions.get(place)
    }

    fn is_candidate(&self, node: &NodeSeen) -> bool {
        let is_awaited = || {
            let silent_ms = node.address.as_ref().and_then(|address| self.silent.get(address));
            silent_ms.zip(self.looked_ms).is_none_or(|(since_ms, now_ms)| now_ms - since_ms < self.takeover_ms)
        };
        let is_there = match self.life(&node.process) {
            _ if node.process == self.me => true,
            Life::Live => true,
            Life::Unknown => node.silent_ms < self.takeover_ms && is_awaited(),
            Life::Gone => false,
        };
        is_there && !node.is_leaving
    }

    fn is_gone(&self, process: &str) -> bool {
        process != self.me && self.life(process) == Life::Gone
    }

    fn life(&self, process: &str) -> Life {
        self.seen.get(process).map_or(Life::Unknown, |beats| beats.life)
    }

    /// Whether a node at this address is certain to take what is its.
    fn is_live(&self, address: &str) -> bool {
        let at_it = |node: &&NodeSeen| node.address.as_deref() == Some(address) && !node.is_leaving;
        self.picture.nodes.iter().filter(at_it).any(|node| self.life(&node.process) == Life::Live)
    }

    /// Whether the silence of others proves anything since the last look. It does not while nobody
    /// looked, or while this node could not beat itself: the database may be away for all, or write
    /// nothing.
    fn is_proof(&mut self, now_ms: i64) -> bool {
        let is_lately = |since_ms: i64| now_ms - since_ms < self.takeover_ms / 2;
        let is_gapless = self.looked_ms.is_some_and(is_lately);
        let beat = self.node(&self.me).map(|node| node.beat);
        let own = self.own.filter(|(before, _)| Some(*before) == beat).or(beat.map(|beat| (beat, now_ms)));
        let is_beating = own.is_some_and(|(_, since_ms)| is_lately(since_ms));
        (self.looked_ms, self.own) = (Some(now_ms), own);
        is_gapless && is_beating
    }

    /// Looks at the beats of all processes, also of an owner without a row of its own.
    fn look_at_beats(&mut self, now_ms: i64, is_proof: bool) {
        let owners = self.picture.partitions.iter().filter_map(|seen| Some((seen.owner.clone()?, None)));
        let beats = self.picture.nodes.iter().map(|node| (node.process.clone(), Some(node.beat)));
        let found: BTreeMap<String, Option<i64>> = owners.chain(beats).collect();
        self.seen.retain(|process, _| found.contains_key(process));
        for (process, beat) in found {
            let Some(beats) = self.seen.get_mut(&process) else {
                self.seen.insert(process, Beats { beat, since_ms: now_ms, life: Life::Unknown });
                continue;
            };
            if beats.beat != beat {
                let life = if beat > beats.beat { Life::Live } else { Life::Unknown };
                *beats = Beats { beat, since_ms: now_ms, life };
            } else if !is_proof {
                beats.since_ms = now_ms;
            } else if now_ms - beats.since_ms >= self.takeover_ms {
                beats.life = Life::Gone;
            }
        }
    }

    /// Notes how long it is that nobody is known to live at an address.
    fn look_at_addresses(&mut self, now_ms: i64, is_proof: bool) {
        let addresses: BTreeSet<String> = self.picture.nodes.iter().filter_map(|node| node.address.clone()).collect();
        self.silent.retain(|address, _| addresses.contains(address));
        for address in addresses {
            if self.is_live(&address) {
                self.silent.remove(&address);
                continue;
            }
            let since_ms = self.silent.entry(address).or_insert(now_ms);
            if !is_proof {
                *since_ms = now_ms;
            }
        }
    }

    /// Notes the partitions of this node, and those that other nodes have taken from it.
    fn look_at_partitions(&mut self) {
        let Self { picture, had, handovers, me, .. } = self;
        for PartitionSeen { partition, epoch, owner, .. } in &picture.partitions {
            let is_own = owner.as_ref() == Some(me);
            if is_own && had.insert(*partition, *epoch) != Some(*epoch) {
                // Taken anew: what was handed over before is done.
                handovers.remove(partition);
            }
            if !is_own && had.get(partition).is_some_and(|had| owner.is_some() || had != epoch) {
                had.remove(partition);
            }
            if !is_own {
                handovers.remove(partition);
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
        let mut room = HAND_OVERS_MAX.saturating_sub(given_up + self.handovers.len());
        let mut moves = Vec::new();
        for partition in own {
            let is_due = !self.is_mine(partition) && self.desired(partition).is_some_and(|to| self.is_live(to));
            if !is_due {
                continue;
            }
            if !self.handovers.contains(&partition) {
                if room == 0 {
                    continue;
                }
                room -= 1;
                self.handovers.insert(partition);
            }
            moves.push(Move::HandOver { partition });
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::super::rendezvous::weight;
    use super::*;
    use store::Sequence;

    const T: Duration = Duration::from_secs(10);

    /// Where the node `me` is; where the others are.
    const HERE: &str = "10.0.0.1:8081";
    const THERE: &str = "10.0.0.2:8081";

    fn node(process: &str, address: Option<&str>, beat: i64) -> NodeSeen {
        let (process, address) = (process.to_owned(), address.map(str::to_owned));
        NodeSeen { process, address, beat, is_leaving: false, about: String::new(), silent_ms: 0, takeover_ms: 10_000 }
    }

    fn seen(partition: Partition, owner: Option<&str>) -> PartitionSeen {
        PartitionSeen { partition, epoch: Epoch(3), owner: owner.map(str::to_owned), next: Sequence::FIRST }
    }

    /// Partitions that should be here rather than there, or there.
    fn partitions_of(address: &str) -> impl Iterator<Item = Partition> {
        let other = if address == HERE { THERE } else { HERE };
        (0..).map(Partition).filter(move |one| weight(address, *one) > weight(other, *one))
    }

    fn take(partition: Partition, gone: Option<i64>) -> Move {
        Move::Take { partition, seen: Epoch(3), gone }
    }

    #[test]
    fn a_free_partition_is_taken_by_its_node_alone() {
        let (mine, others) = (partitions_of(HERE).next().unwrap(), partitions_of(THERE).next().unwrap());
        let mut placement = Placement::new("me".into(), T);
        let mut look = |now_ms, is_current| {
            let nodes = vec![node("me", Some(HERE), now_ms), node("other", Some(THERE), 1)];
            let picture = Picture { nodes, partitions: vec![seen(mine, None), seen(others, None)] };
            let moves = placement.step(&picture, now_ms, is_current);
            (moves, placement.desired(others).map(str::to_owned))
        };
        for now_ms in (0..10_000).step_by(2_000) {
            assert_eq!(look(now_ms, true), (vec![take(mine, None)], Some(THERE.to_owned())), "it may take it");
        }
        assert_eq!(look(10_000, true), (vec![take(mine, None), take(others, None)], Some(HERE.to_owned())));
        assert_eq!(look(12_000, false).0, [], "its own beats fail");
    }

    /// Else it would take what a third node is about to be given.
    #[test]
    fn a_node_that_starts_does_not_wait_for_one_that_is_silent_for_long() {
        let others = partitions_of(THERE).next().unwrap();
        for (silent_ms, desired) in [(9_999, THERE), (10_000, HERE)] {
            let mut placement = Placement::new("me".into(), T);
            let mut nodes = vec![node("me", Some(HERE), 1), node("other", Some(THERE), 1)];
            nodes[1].silent_ms = silent_ms;
            placement.step(&Picture { nodes, partitions: vec![seen(others, None)] }, 0, true);
            assert_eq!(placement.desired(others), Some(desired), "{silent_ms}");
        }
    }

    #[test]
    fn an_owner_is_gone_after_a_takeover_time_in_which_this_node_looked_and_beat() {
        let mine = partitions_of(HERE).next().unwrap();
        // The owner's address; when this node does not look for 5 s, or does not beat for 6 s.
        let cases =
            [(Some(THERE), None, None), (None, None, None), (None, Some(9_000), None), (None, None, Some(4_000))];
        for (address, gap_at, silent_at) in cases {
            let mut placement = Placement::new("me".into(), T);
            let mut look = |now_ms: i64, beat: i64| {
                let own = silent_at.filter(|at| (*at..at + 6_000).contains(&now_ms)).unwrap_or(now_ms);
                let nodes = vec![node("me", Some(HERE), own), node("other", address, beat)];
                let picture = Picture { nodes, partitions: vec![seen(mine, Some("other"))] };
                (placement.step(&picture, now_ms, true), placement.owner(mine))
            };
            let mut now_ms = 0;
            while look(now_ms, 7).0.is_empty() {
                now_ms += if Some(now_ms) == gap_at { 5_000 } else { 1_000 };
            }
            let began = gap_at.map(|at| at + 5_000).or(silent_at.map(|at| at + 5_000)).unwrap_or_default();
            assert_eq!(now_ms, began + 10_000, "{address:?}");
            assert_eq!(look(now_ms + 1, 7).0, [take(mine, Some(7))]);
            let owner = PartitionOwner { process: "other".into(), address: address.map(str::to_owned) };
            assert_eq!(look(now_ms + 2, 8), (vec![], Some(owner)), "it woke up");
        }
    }

    #[test]
    fn a_partition_without_an_owner_that_lives_is_unserved() {
        let (free, others, own) = (Partition(0), Partition(1), Partition(2));
        let mut placement = Placement::new("me".into(), T);
        let mut look = |now_ms: i64, beat: i64, first: Option<&str>| {
            let nodes = vec![node("me", Some(HERE), now_ms), node("other", Some(THERE), beat)];
            let partitions = vec![seen(free, first), seen(others, Some("other")), seen(own, Some("me"))];
            placement.step(&Picture { nodes, partitions }, now_ms, true);
            placement.unserved()
        };
        assert_eq!(look(0, 7, None), 1, "nobody has one");
        assert_eq!(look(1_000, 7, Some("me")), 0);
        for now_ms in (2_000..10_000).step_by(1_000) {
            assert_eq!(look(now_ms, 7, Some("other")), 0, "it may live");
        }
        assert_eq!(look(10_000, 7, Some("other")), 2, "it is gone");
        assert_eq!(look(11_000, 8, Some("other")), 0, "it woke up");
    }

    #[test]
    fn a_process_that_is_no_node_is_known_until_it_is_gone_or_has_nothing() {
        let mut placement = Placement::new("me".into(), T);
        let mut look = |now_ms: i64, owner: Option<&str>, address: Option<&str>| {
            let nodes = vec![node("me", Some(HERE), now_ms), node("other", address, 7)];
            let partitions = vec![seen(Partition(0), owner), seen(Partition(1), None)];
            placement.step(&Picture { nodes, partitions }, now_ms, true);
            placement.lone().map(str::to_owned)
        };
        assert_eq!(look(0, Some("other"), Some(THERE)), None, "a node");
        assert_eq!(look(1_000, Some("other"), None).as_deref(), Some("other"));
        assert_eq!(look(2_000, None, None), None, "it waits");
        for now_ms in (3_000..10_000).step_by(1_000) {
            assert_eq!(look(now_ms, Some("other"), None).as_deref(), Some("other"));
        }
        assert_eq!(look(10_000, Some("other"), None), None, "it is gone");
        let nodes = vec![node("me", Some(HERE), 1), node("other", None, 7)];
        let partitions = vec![seen(Partition(0), Some("other")), seen(Partition(1), Some("me"))];
        let mut placement = Placement::new("me".into(), T);
        placement.step(&Picture { nodes, partitions }, 0, true);
        assert_eq!(placement.lone(), None, "it waits for the rest");
    }

    /// Nobody takes from one that counts on a longer time.
    #[test]
    fn the_longest_takeover_time_counts() {
        let mine = partitions_of(HERE).next().unwrap();
        let mut placement = Placement::new("me".into(), T);
        let mut look = |now_ms: i64| {
            let mut nodes = vec![node("me", Some(HERE), now_ms), node("other", Some(THERE), 7)];
            nodes[1].takeover_ms = 30_000;
            placement.step(&Picture { nodes, partitions: vec![seen(mine, Some("other"))] }, now_ms, true)
        };
        for now_ms in (0..30_000).step_by(1_000) {
            assert_eq!(look(now_ms), [], "{now_ms}");
        }
        assert_eq!(look(30_000), [take(mine, Some(7))]);
        assert_eq!(placement.longest().map(|node| &*node.process), Some("other"));
        placement.step(&Picture { nodes: vec![node("me", Some(HERE), 1)], partitions: Vec::new() }, 31_000, true);
        assert_eq!(placement.longest(), None);
    }

    #[test]
    fn two_partitions_at_a_time_go_to_a_node_that_is_known_to_live() {
        let partitions: Vec<_> = partitions_of(THERE).take(4).collect();
        let mut placement = Placement::new("me".into(), T);
        let mut look = |beat: i64, owners: [&str; 4]| {
            let owned = partitions
                .iter()
                .zip(owners)
                .map(|(partition, owner)| seen(*partition, Some(owner).filter(|owner| !owner.is_empty())));
            let own = partitions_of(HERE).take(4).map(|partition| seen(partition, Some("me")));
            let mut all: Vec<_> = owned.chain(own).collect();
            all.sort_by_key(|seen| seen.partition);
            let nodes = vec![node("me", Some(HERE), beat), node("other", Some(THERE), beat)];
            let moves = placement.step(&Picture { nodes, partitions: all }, beat * 1_000, true);
            let place = |one: &Move| match one {
                Move::HandOver { partition } => partitions.iter().position(|at| at == partition).unwrap(),
                Move::Take { .. } => panic!("{moves:?}"),
            };
            moves.iter().map(place).collect::<Vec<_>>()
        };
        assert_eq!(look(1, ["me"; 4]), [] as [usize; 0], "it may have ended");
        assert_eq!(look(2, ["me"; 4]), [0, 1]);
        assert_eq!(look(3, ["me"; 4]), [0, 1], "repeated until it is done");
        assert_eq!(look(4, ["", "me", "me", "me"]), [1]);
        assert_eq!(look(5, ["other", "me", "me", "me"]), [1, 2]);
        assert_eq!(look(6, ["other", "", "", "me"]), [] as [usize; 0]);
        assert_eq!(look(7, ["other", "other", "other", "me"]), [3]);
    }

    /// A process that was started anew at the same address while the former one still hands over.
    #[test]
    fn who_leaves_hands_over_to_its_successor_and_takes_nothing() {
        let mine: Vec<_> = partitions_of(HERE).take(2).collect();
        let mut placement = Placement::new("me".into(), T);
        let mut look = |beat: i64, has_successor: bool| {
            let mut nodes = vec![node("me", Some(HERE), beat)];
            nodes[0].is_leaving = true;
            nodes.extend(has_successor.then(|| node("other", Some(HERE), beat)));
            let partitions = vec![seen(mine[0], Some("me")), seen(mine[1], None)];
            placement.step(&Picture { nodes, partitions }, beat * 1_000, true)
        };
        assert_eq!(look(1, false), [], "nobody is there");
        assert_eq!(look(2, true), []);
        assert_eq!(look(3, true), [Move::HandOver { partition: mine[0] }]);
    }
}
