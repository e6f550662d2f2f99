//! Ownership of partitions: an engine takes up a partition that was taken in the store, and hands
//! it over, while it serves others.

use std::sync::Arc;
use std::time::Duration;

use ledger::time::Timestamp;
use tokio::task::spawn_blocking;

use super::acquirer::AcquirerBatches;
use super::shard::{Shard, ShardOptions, give_up, put_to_sleep};
use super::shards::{Hold, Role};
use super::{Engine, OpenError};
use crate::actor::ActorContext;
use crate::journal::Journal;
use derived::extents::{Extents, HOUSE};
use derived::read_model::ReadModel;
use store::{Epoch, Part, Partition, Sequence, StoreError};

/// How long a partition that is given up waits for the requests that hold it.
const HOLDS_MAX: Duration = Duration::from_secs(10);

/// What a process has of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionHere {
    /// The partition.
    pub partition: Partition,
    /// What the process is to it.
    pub role: Role,
    /// The epoch in which the process took it; 0 if it does not serve it.
    pub epoch: Epoch,
    /// The last Record that it has read.
    pub published: Sequence,
}

impl Engine {
    /// Serves a partition that was taken: reads its journal and continues it. `progress` receives
    /// how many of its Records of how many were read.
    pub async fn take_up(&self, part: Part, progress: impl Fn(u64, u64) + Send + 'static) -> Result<(), OpenError> {
        let partition = part.partition();
        let (taken, unread, known) = (part.clone(), self.unread(&part), self.extents.partitions());
        let opened = spawn_blocking(move || -> Result<_, OpenError> {
            // Partitions are only added by a process that has all of them: after that one, whoever
            // takes a partition sees it here.
            if Extents::of(&**taken.store())?.partitions() > known {
                return Err(OpenError::Grown);
            }
            Ok((taken.head()?, unread.opened(progress)?))
        });
        let (head, read_model) = opened.await.expect("opening does not panic")?;
        let last_booked_at = Timestamp(head.booked_at_ms.max(0));
        self.clock.follow(self.store.ahead_ms());
        self.clock.begin(read_model.house(|house| house.clock_offset_ms), last_booked_at);
        if self.shard_options.is_sandbox {
            self.clock.begin(self.kept_clock()?, last_booked_at);
            self.tell_of_sandbox_gap();
            // A crash while the clock was being moved leaves Records ahead of its last recorded
            // offset: it goes on from them.
            self.clock.advance_to(last_booked_at);
        }
        self.new_ids.begin_after(last_booked_at);
        if partition == self.extents.partition_of(HOUSE) {
            *self.batches.lock().await = AcquirerBatches::booked_through(read_model.house(|house| house.booked_batch));
        }
        let read_model = Arc::new(read_model);
        let journal = self.journal.begin(part.clone(), Arc::clone(&read_model), head);
        let groups = read_model.groups();
        let context = self.context(journal, part, read_model);
        let shard = Shard::open(context, &self.extents).await?;
        self.shards.put(partition, Role::Owner, shard);
        self.outbox_signal.note_groups(groups);
        Ok(())
    }

    /// Gives a partition up in good order: no new request begins in it, those under way are
    /// answered, its actors go to sleep, and the data that a start reads is stored. Does nothing
    /// when the process does not serve it.
    pub async fn hand_over(&self, partition: Partition) -> Result<(), OpenError> {
        let Some(shard) = self.shards.leave(partition) else { return Ok(()) };
        // Deliveries end, and what falls due is not begun any more.
        self.outbox_signal.note_groups(shard.read_model().groups());
        drop((self.falling_due.lock().await, self.batches.lock().await));
        self.shards.wait_for_holds(partition, HOLDS_MAX).await;
        put_to_sleep(&[Arc::clone(&shard)]).await;
        shard.end();
        shard.leave().await;
        shard.keep_read_model().await;
        self.shards.put(partition, Role::Absent, self.absent(partition).await?);
        give_up(&shard).await;
        Ok(())
    }

    /// Makes the snapshots of a partition again that this release cannot read; see
    /// [`Engine::renew_snapshots`].
    pub async fn renew_snapshots_in(&self, partition: Partition) {
        if let Some(shard) = self.shards.serving(partition) {
            self.renew_snapshots_of(&shard).await;
        }
    }

    /// What the process has of each partition, in their order.
    pub fn partitions_here(&self) -> Vec<PartitionHere> {
        let of = |partition| {
            let shard = self.shards.at(partition);
            let (role, epoch) = (self.shards.role(partition), shard.part().tenure().epoch);
            PartitionHere { partition, role, epoch, published: shard.published() }
        };
        self.extents.all().map(of).collect()
    }

    /// What the process is to a partition.
    pub fn role(&self, partition: Partition) -> Role {
        self.shards.role(partition)
    }

    /// A hold on a partition; `None` if the process does not serve it. See [`Hold`].
    pub fn hold(&self, partition: Partition) -> Option<Hold> {
        self.shards.hold(partition)
    }

    /// A hold on all partitions, for an answer about all merchants; none while the process neither
    /// serves nor follows one of them.
    pub fn hold_all(&self) -> Option<Hold> {
        self.shards.hold_all()
    }

    /// The read model of a partition, of which nothing was read yet.
    pub(super) fn unread(&self, part: &Part) -> ReadModel {
        let ShardOptions { fold_name, index, .. } = self.shard_options;
        let (extents, keyring) = (Arc::clone(&self.extents), Arc::clone(&self.keyring));
        ReadModel::unread(part.clone(), extents, keyring, fold_name, index, Arc::clone(&self.outbox_signal))
    }

    /// The shard of a partition that the process does not have: it knows nothing, and what is sent
    /// to it has no outcome.
    pub(super) async fn absent(&self, partition: Partition) -> Result<Arc<Shard>, StoreError> {
        let part = Part::reading(Arc::clone(&self.store), partition);
        let (read_model, journal) = (Arc::new(self.unread(&part)), self.journal.of(part.tenure()));
        Shard::open(self.context(journal, part, read_model), &self.extents).await
    }

    pub(super) fn context(&self, journal: Journal, store: Part, read_model: Arc<ReadModel>) -> Arc<ActorContext> {
        Arc::new(ActorContext {
            journal,
            store,
            read_model,
            clock: Arc::clone(&self.clock),
            ids: self.keyring.id_key(),
            metrics: Arc::clone(&self.metrics),
        })
    }
}
