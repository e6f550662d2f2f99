//! Shard: all that a process has of one partition. Its actors, read model, index, due times,
//! balance files and numbers to give out are its own; no Record and no entry crosses partitions.
//!
//! What a process has once is in the [`Engine`](super::Engine): the journal's thread, admission,
//! clock, keys, rails, new ids and metrics. It finds the shard of a call by the call's group.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use ledger::object;
use ledger::{Decision, GroupNumber, LedgerId, MerchantState, Object, ObjectId, RecipientState, Record, Timestamp};
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::spawn_blocking;

use super::inquiry_times::{FirstTries, Inquiries, ReturnsAsked};
use super::outcome::CommandContext;
use super::{IndexOptions, Unavailable};
use crate::actor::ActorContext;
use crate::directory::{Directory, EndWhenAlone, Life, OnLife, Supervisor};
use crate::journal::{Input, Submission};
use derived::balance_files::BalanceFiles;
use derived::extents::Extents;
use derived::read_model::ReadModel;
use derived::records::{self, Result, may_wait};
use store::{Epoch, Part, Position, Sequence, StoreError};

/// How long a shard that is given up waits for its actors to go to sleep.
const SLEEP_MAX: Duration = Duration::from_secs(20);

/// How a shard is opened.
pub(super) struct ShardOptions {
    pub(super) fold_name: fn(&str) -> String,
    pub(super) index: IndexOptions,
    pub(super) is_sandbox: bool,
}

/// What a process has of one partition.
pub(super) struct Shard {
    context: Arc<ActorContext>,
    pub(super) merchants: Arc<Directory<MerchantState>>,
    pub(super) recipients: Arc<Directory<RecipientState>>,
    supervisor: ActorRef<EndWhenAlone>,
    pub(super) balance_files: BalanceFiles,
    pub(super) first_tries: FirstTries,
    pub(super) returns_asked: ReturnsAsked,
    pub(super) inquiries: Inquiries,
    /// The next place that a new group takes among those of this partition.
    next_place: Mutex<u32>,
    system_ordinal: Mutex<u64>,
    /// Held while a command on the partition's house ledger is decided and made durable.
    pub(super) house: AsyncMutex<()>,
}

impl Shard {
    /// The shard of a partition that was taken, with every actor asleep.
    pub(super) async fn open(context: Arc<ActorContext>, extents: &Extents) -> Result<Arc<Self>, StoreError> {
        let store = context.store.clone();
        let is_owned = store.tenure().epoch != Epoch::NONE;
        let balance_files = if is_owned { BalanceFiles::open(store) } else { BalanceFiles::reading(store) }?;
        let groups = context.read_model.groups().into_iter();
        // Group 0 is the house's.
        let first_place = u32::from(extents.place_of(GroupNumber(0)).0 == context.store.partition());
        let next_place = groups.map(|group| extents.place_of(group).1 + 1).max().unwrap_or(first_place);
        let system_ordinal = context.read_model.system_ordinal();
        let shard: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let supervisor = supervise(Arc::clone(&shard)).await;
        let opened = Arc::new(Self {
            merchants: Directory::new(Arc::clone(&context), supervisor.get_cell()),
            recipients: Directory::new(Arc::clone(&context), supervisor.get_cell()),
            supervisor,
            balance_files,
            first_tries: FirstTries::default(),
            returns_asked: ReturnsAsked::default(),
            inquiries: Inquiries::default(),
            next_place: Mutex::new(next_place),
            system_ordinal: Mutex::new(system_ordinal),
            house: AsyncMutex::default(),
            context,
        });
        let _set_once = shard.set(Arc::downgrade(&opened));
        Ok(opened)
    }

    /// The read model of its Records.
    pub(super) fn read_model(&self) -> &ReadModel {
        &self.context.read_model
    }

    /// Its partition of the store, with the right to write it.
    pub(super) fn part(&self) -> &Part {
        &self.context.store
    }

    /// The place of one of its Records.
    pub(super) fn position(&self, sequence: Sequence) -> Position {
        Position { partition: self.part().partition(), sequence }
    }

    /// The last published Record that was booked before a time; 0 when there is none. For a thread
    /// that may wait.
    pub(super) fn last_booked_before(&self, time: Timestamp) -> Result<Sequence> {
        self.balance_files.last_booked_before(time, self.published())
    }

    /// Sequence of its last published Record.
    pub(super) fn published(&self) -> Sequence {
        self.read_model().published()
    }

    /// The number of a new group of this partition. Each is given once, also across restarts, as
    /// the group is opened by a Record. `None` if the partition has no more.
    pub(super) fn new_group(&self, extents: &Extents) -> Option<GroupNumber> {
        let mut next = self.next_place.lock();
        let group = extents.group_at(self.part().partition(), *next)?;
        *next += 1;
        Some(group)
    }

    /// The next group that it gives a number; the last one of all where it has no more.
    pub(super) fn next_group(&self, extents: &Extents) -> GroupNumber {
        extents.group_at(self.part().partition(), *self.next_place.lock()).unwrap_or(GroupNumber(u32::MAX))
    }

    /// One Record of the partition's journal.
    pub(super) fn record(&self, sequence: Sequence) -> Result<Record> {
        records::record(self.part(), sequence)
    }

    /// An object as it was once the Record of this sequence had taken effect; `None` if there is
    /// none of this id.
    pub(super) fn object_through<T: Object>(&self, id: ObjectId, through: Sequence) -> Result<Option<T>> {
        may_wait(|| {
            let about = self.read_model().about(id)?;
            let about = about.into_iter().take_while(|sequence| *sequence <= through);
            object::read(id, about.map(|sequence| self.record(sequence)))
        })
    }

    /// An object as it stands.
    pub(super) fn object<T: Object>(&self, id: ObjectId) -> Result<Option<T>> {
        self.object_through(id, Sequence(u64::MAX))
    }

    /// The object that a Record makes, as it stands now; an error when the Record makes none.
    pub(super) fn made_by<T: Object>(&self, record: &Record) -> Result<T, Unavailable> {
        let found = T::made_by(record).map(|made| self.object(made.id())).transpose()?.flatten();
        found.ok_or_else(|| Unavailable::contradicting("an object of a list"))
    }

    /// Books a Record of the partition's house ledger, which no actor owns.
    pub(super) async fn record_of_system(
        &self,
        decide: impl FnOnce() -> Decision,
        now: Timestamp,
        context: CommandContext,
    ) -> Result<Arc<Record>, Unavailable> {
        let CommandContext { key, requester, permit } = context;
        let (sender, durable) = oneshot::channel();
        let record = {
            let mut ordinal = self.system_ordinal.lock();
            *ordinal += 1;
            let mut record = decide().into_record(LedgerId::System, *ordinal, now);
            record.idempotency = key.map(|key| key.idempotency);
            record.requested_by(requester);
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let record = Arc::new(record);
            let journal = &self.context.journal;
            journal.send(Input::Submit(vec![Submission { record: Arc::clone(&record), bytes, permit }]));
            journal.send(Input::Answer(Box::new(move || sender.send(()).unwrap_or_default())));
            record
        };
        durable.await.map(|()| record).map_err(|_| Unavailable::OutcomeUnknown)
    }

    /// Waits until everything that was queued for its journal is durable.
    pub(super) async fn settle(&self) {
        let (sender, queued) = oneshot::channel();
        self.context.journal.send(Input::Answer(Box::new(move || sender.send(()).unwrap_or_default())));
        let _failed_journal = queued.await;
    }

    /// Ends the writing of its journal, after all that was queued for it.
    pub(super) async fn leave(&self) {
        self.context.journal.leave().await;
    }

    /// Puts actors to sleep that were not used after `limit`.
    pub(super) fn sleep_unused(&self, limit: Instant) {
        self.merchants.sleep_unused(limit);
        self.recipients.sleep_unused(limit);
    }

    /// How many actors there are, awake or going to sleep.
    pub(super) fn actors(&self) -> usize {
        self.merchants.len() + self.recipients.len()
    }

    /// Adds when each actor that is awake was last used.
    pub(super) fn add_uses(&self, uses: &mut Vec<Instant>) {
        self.merchants.add_uses(uses);
        self.recipients.add_uses(uses);
    }

    /// True when every actor sleeps.
    pub(super) fn is_asleep(&self) -> bool {
        self.actors() == 0
    }

    /// Ends the supervisor of its actors, after the last of them has ended.
    pub(super) fn end(&self) {
        let _has_ended = self.supervisor.cast(EndWhenAlone);
    }

    /// Keeps the read model's pages, so that the next start reads less of the journal.
    pub(super) async fn keep_read_model(&self) {
        let read_model = Arc::clone(&self.context.read_model);
        let result = spawn_blocking(move || read_model.keep()).await;
        if let Ok(Err(error)) = result {
            tracing::warn!(%error, "the read model was not stored; the next start reads more of the journal");
        }
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts the supervisor, which reports every actor's life to both directories.
async fn supervise(shard: Arc<OnceLock<Weak<Shard>>>) -> ActorRef<EndWhenAlone> {
    let on_life: OnLife = Box::new(move |actor, life| {
        let Some(shard) = shard.get().and_then(Weak::upgrade) else { return };
        match life {
            Life::Opened => {
                shard.merchants.opened(actor);
                shard.recipients.opened(actor);
            }
            Life::Ended => {
                shard.merchants.ended(actor);
                shard.recipients.ended(actor);
            }
        }
    });
    let (supervisor, _ends_with_the_shard) =
        Supervisor::spawn(None, Supervisor, on_life).await.expect("the supervisor starts without conditions");
    supervisor
}

/// Puts all actors of shards to sleep.
pub(super) async fn put_to_sleep(shards: &[Arc<Shard>]) {
    let deadline = Instant::now() + SLEEP_MAX;
    while !shards.iter().all(|shard| shard.is_asleep()) && Instant::now() < deadline {
        shards.iter().for_each(|shard| shard.sleep_unused(Instant::now()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Gives a partition up in the store.
pub(super) async fn give_up(shard: &Shard) {
    let part = shard.part().clone();
    if let Ok(Err(error)) = spawn_blocking(move || part.release()).await {
        tracing::warn!(%error, "a partition was not given up; its next owner waits until this process is known to be gone");
    }
}
