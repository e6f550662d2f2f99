//! Shards of a node: what it has of each partition at this moment. A node owns some partitions,
//! and takes up others and gives them up while it serves. On one machine it owns them all.
//!
//! A request that reads or changes a partition holds it ([`Hold`]): the partition is not given up
//! before its holds have ended, and an answer counts only if its hold still stands.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::shard::Shard;
use store::Partition;

/// What a node is to a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// It has nothing of it.
    Absent,
    /// It reads what another one writes in it.
    Follower,
    /// It serves it.
    Owner,
    /// It gives it up: requests under way are answered, no new one begins.
    Leaving,
}

/// Guard of a request on the partition that it is about.
#[derive(Clone, Debug)]
pub struct Hold(Arc<TenureState>);

impl Hold {
    /// Whether the node had the partition all the time since the hold began.
    pub fn stands(&self) -> bool {
        self.0.stands.load(Ordering::Acquire)
    }
}

/// Whether one tenure of a partition lasts. Holds are its copies.
#[derive(Debug)]
struct TenureState {
    stands: AtomicBool,
}

impl TenureState {
    fn new() -> Arc<Self> {
        Arc::new(Self { stands: AtomicBool::new(true) })
    }
}

/// How often holds are counted while they are waited for.
const COUNTED_EVERY: Duration = Duration::from_millis(5);

/// The shards of all partitions, each at the place of its partition's number.
pub(super) struct Shards {
    slots: Vec<RwLock<Slot>>,
    /// Stands while no partition is lost from sight.
    all: RwLock<Arc<TenureState>>,
}

struct Slot {
    role: Role,
    shard: Arc<Shard>,
    standing: Arc<TenureState>,
}

impl Shards {
    /// Slots of partitions that the node does not have.
    pub(super) fn absent(shards: Vec<Arc<Shard>>) -> Self {
        let slot = |shard| RwLock::new(Slot { role: Role::Absent, shard, standing: TenureState::new() });
        Self { slots: shards.into_iter().map(slot).collect(), all: RwLock::new(TenureState::new()) }
    }

    fn slot(&self, partition: Partition) -> &RwLock<Slot> {
        &self.slots[usize::from(partition.0)]
    }

    /// How many partitions there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The shard of a partition, whatever the node is to it.
    pub(super) fn at(&self, partition: Partition) -> Arc<Shard> {
        Arc::clone(&self.slot(partition).read().shard)
    }

    /// The shard of a partition whose actors are in this process; `None` if they are another
    /// process's.
    pub(super) fn serving(&self, partition: Partition) -> Option<Arc<Shard>> {
        let slot = self.slot(partition).read();
        matches!(slot.role, Role::Owner | Role::Leaving).then(|| Arc::clone(&slot.shard))
    }

    /// The shard of a partition, whatever the node is to it; `None` if there is no such
    /// partition.
    pub(super) fn get(&self, partition: Partition) -> Option<Arc<Shard>> {
        Some(Arc::clone(&self.slots.get(usize::from(partition.0))?.read().shard))
    }

    /// The shards of all partitions, in their order.
    pub(super) fn all(&self) -> Vec<Arc<Shard>> {
        self.slots.iter().map(|slot| Arc::clone(&slot.read().shard)).collect()
    }

    /// The partitions to which the node is this, in their order.
    pub(super) fn with_role(&self, role: Role) -> Vec<Partition> {
        let all = (0..self.slots.len()).map(|place| Partition(place as u16));
        all.filter(|partition| self.role(*partition) == role).collect()
    }

    /// The shards that the node serves, in the order of their partitions.
    pub(super) fn owned(&self) -> Vec<Arc<Shard>> {
        let owned = |slot: &RwLock<Slot>| {
            let slot = slot.read();
            (slot.role == Role::Owner).then(|| Arc::clone(&slot.shard))
        };
        self.slots.iter().filter_map(owned).collect()
    }

    /// What the node is to a partition; absent where there is no such partition.
    pub(super) fn role(&self, partition: Partition) -> Role {
        self.slots.get(usize::from(partition.0)).map_or(Role::Absent, |slot| slot.read().role)
    }

    /// Replaces a shard. Holds of the one before do not stand
    /// any more.
    pub(super) fn put(&self, partition: Partition, role: Role, shard: Arc<Shard>) {
        let mut slot = self.slot(partition).write();
        slot.standing.stands.store(false, Ordering::Release);
        self.replace(&mut slot, role, shard);
    }

    /// The same, unless the node serves the partition by now.
    pub(super) fn put_unless_owned(&self, partition: Partition, role: Role, shard: Arc<Shard>) {
        let mut slot = self.slot(partition).write();
        if matches!(slot.role, Role::Absent | Role::Follower) {
            self.replace(&mut slot, role, shard);
        }
    }

    fn replace(&self, slot: &mut Slot, role: Role, shard: Arc<Shard>) {
        if role == Role::Absent {
            // Before anybody can read that nothing is there.
            let before = std::mem::replace(&mut *self.all.write(), TenureState::new());
            before.stands.store(false, Ordering::Release);
        }
        *slot = Slot { role, shard, standing: TenureState::new() };
    }

    /// A hold on all partitions; none while the node neither serves nor follows one of them. It
    /// stands until that comes to pass, and keeps no partition.
    pub(super) fn hold_all(&self) -> Option<Hold> {
        let hold = Hold(Arc::clone(&self.all.read()));
        self.with_role(Role::Absent).is_empty().then_some(hold)
    }

    /// A hold on a partition that the node serves.
    pub(super) fn hold(&self, partition: Partition) -> Option<Hold> {
        let slot = self.slots.get(usize::from(partition.0))?.read();
        (slot.role == Role::Owner).then(|| Hold(Arc::clone(&slot.standing)))
    }

    /// Begins to give a partition up, if the node serves it: from now on there are no new holds.
    pub(super) fn leave(&self, partition: Partition) -> Option<Arc<Shard>> {
        let mut slot = self.slot(partition).write();
        if slot.role != Role::Owner {
            return None;
        }
        slot.role = Role::Leaving;
        Some(Arc::clone(&slot.shard))
    }

    /// Waits until no request holds a partition, so long at most.
    pub(super) async fn wait_for_holds(&self, partition: Partition, most: Duration) {
        let until = Instant::now() + most;
        while Arc::strong_count(&self.slot(partition).read().standing) > 1 && Instant::now() < until {
            tokio::time::sleep(COUNTED_EVERY).await;
        }
    }
}
