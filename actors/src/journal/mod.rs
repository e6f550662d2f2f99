//! Thread of the journal: it orders Records, makes them durable in blocks (group commit), and lets
//! no reply leave before its Records are durable. It does so for all partitions of the process; the
//! blocks of several partitions become durable in one call of the store.
//!
//! **Architecture Invariant:** one thread writes the store's journal, and this is it. If making a
//! block durable fails, nothing of the block is acknowledged, nothing more is written, and the
//! process ends: a failed flush is never tried again. A partition that was taken by another owner
//! ends alone.

mod admission;
mod command_turns;
mod machine;
mod partition_machines;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use ledger::record::Record;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

use crate::clock::Clock;
use crate::metrics::Metrics;
use derived::read_model::ReadModel;
use derived::records::LoadError;
use derived::snapshots;
use store::priority;
use store::{
    AppendOutcome, Block, Epoch, Head, Monitor, Part, Partition, Sequence, Store, StoreError, Tenure, WaitFor,
};

pub use admission::{Admission, AdmissionLimits, ClosedBy, Permit, Sender};
pub use machine::{BLOCK_BYTES_MAX, COMMIT_BYTES_MAX, Input, Machine, Output, Submission};
pub use partition_machines::Machines;

/// A reply on its way out.
pub type Reply = Box<dyn FnOnce() + Send>;

/// An actor, as the journal sees it.
pub trait Inbox: Send + Sync {
    /// Hands over foreign Records, in order.
    fn deliver(&self, records: Vec<(Sequence, Arc<Record>)>);
    /// The owner's Records through this ordinal are durable.
    fn durable(&self, ordinal: u64);
    /// The actor is registered and loads through this sequence.
    fn opened(&self, through: Sequence);
}

type JournalInput = Input<Reply, Arc<dyn Inbox>>;

/// A message to the thread.
enum Message {
    /// For the machine of a partition, while it is the one of this tenure.
    Input(Tenure, JournalInput),
    /// A partition was taken: its journal is continued.
    Begin(Box<Seat>),
    /// A partition is released; the sender fires once none of its writes is under way.
    Leave(Tenure, oneshot::Sender<()>),
    /// End, after all that was queued.
    End,
}

/// A partition that this process writes.
struct Seat {
    part: Part,
    /// Its durable blocks are folded into this.
    read_model: Arc<ReadModel>,
    head: Head,
}

/// A handle to the journal of one partition in one tenure, which all partitions' thread keeps.
#[derive(Clone)]
pub struct Journal {
    tenure: Tenure,
    sender: mpsc::Sender<Message>,
    failure: Arc<Failure>,
}

#[derive(Default)]
struct Failure {
    happened: AtomicBool,
    changed: Notify,
}

/// Guard that reports a failure when the thread ends in any other way than in good order, also by a
/// panic.
struct TellUnlessEnded(Arc<Failure>);

impl TellUnlessEnded {
    fn ended(self) {
        std::mem::forget(self);
    }
}

impl Drop for TellUnlessEnded {
    fn drop(&mut self) {
        self.0.happened.store(true, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

/// Parts that the journal's thread works on.
pub(crate) struct JournalParts {
    /// The store, in which blocks become durable.
    pub store: Arc<dyn Store>,
    /// How many partitions the store has.
    pub partitions: usize,
    /// The time of booking.
    pub clock: Arc<Clock>,
    /// Metrics of the engine.
    pub metrics: Arc<Metrics>,
    /// Runtime on which the replies of a block are released together: a caller wakes at a lower
    /// cost when one of the runtime's own threads wakes it.
    pub runtime: Handle,
}

impl Journal {
    /// Starts the thread that keeps the journals of all partitions that this process has; none of
    /// them yet. Gives a handle that writes nothing. After [`Journal::end`], or once the last
    /// handle is dropped, the thread finishes what was queued and ends.
    pub(crate) fn start(parts: JournalParts) -> (Self, thread::JoinHandle<()>) {
        let (sender, receiver) = mpsc::channel();
        let failure = Arc::new(Failure::default());
        let tenure = Tenure { partition: Partition::default(), epoch: Epoch::NONE };
        let journal = Self { tenure, sender, failure: Arc::clone(&failure) };
        let run = move || {
            priority::run_first();
            let guard = TellUnlessEnded(failure);
            match run(&receiver, &parts) {
                Ok(()) => guard.ended(),
                Err(error) => {
                    tracing::error!(%error, "a block could not be made durable: nothing of it was acknowledged");
                }
            }
        };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(run).expect("a thread can be started");
        (journal, thread)
    }

    /// A handle to the journal of a partition in a tenure. It writes nothing unless that tenure has
    /// begun with [`Journal::begin`], and after it has ended.
    pub(crate) fn of(&self, tenure: Tenure) -> Self {
        Self { tenure, ..self.clone() }
    }

    /// Continues the journal of a partition that was taken, from its head. Its durable blocks are
    /// folded into the read model.
    pub(crate) fn begin(&self, part: Part, read_model: Arc<ReadModel>, head: Head) -> Self {
        let journal = self.of(part.tenure());
        let _gone_after_failure = self.sender.send(Message::Begin(Box::new(Seat { part, read_model, head })));
        journal
    }

    /// Ends the writing of this partition, after all that was queued for it. What still comes is
    /// dropped. Returns once nothing is written any more.
    pub(crate) async fn leave(&self) {
        let (sender, left) = oneshot::channel();
        let _gone_after_failure = self.sender.send(Message::Leave(self.tenure, sender));
        let _ended_thread = left.await;
    }

    /// Hands a message over. After a failure, or once the partition has another owner, the message
    /// is dropped: its reply is never released, so the caller does not know the outcome.
    pub fn send(&self, input: JournalInput) {
        let _gone_after_failure = self.sender.send(Message::Input(self.tenure, input));
    }

    /// Ends the thread, after all that was queued for any partition.
    pub fn end(&self) {
        let _gone_after_failure = self.sender.send(Message::End);
    }

    /// True once making a block durable has failed.
    pub fn has_failed(&self) -> bool {
        self.failure.happened.load(Ordering::Acquire)
    }

    /// Waits until making a block durable has failed.
    pub async fn failed(&self) {
        loop {
            let reply = self.failure.changed.notified();
            if self.has_failed() {
                return;
            }
            reply.await;
        }
    }
}

/// State of the thread.
struct Keeper<'a> {
    parts: &'a JournalParts,
    machines: Machines<Reply, Arc<dyn Inbox>>,
    /// At the places of the machines.
    seats: Vec<Option<Seat>>,
    /// The partitions that are given up once nothing is being written.
    leaving: Vec<(Tenure, oneshot::Sender<()>)>,
    ending: bool,
}

impl Keeper<'_> {
    fn take(&mut self, message: Message) {
        match message {
            Message::Input(tenure, input) => {
                let place = usize::from(tenure.partition.0);
                if self.seats[place].as_ref().is_some_and(|seat| seat.part.tenure() == tenure) {
                    self.machines.step(place, input);
                }
            }
            Message::Begin(seat) => {
                let partition = seat.part.partition();
                let place = usize::from(partition.0);
                self.machines.begin(place, Machine::new(partition, seat.head));
                self.seats[place] = Some(*seat);
            }
            Message::Leave(tenure, reply) => self.leaving.push((tenure, reply)),
            Message::End => self.ending = true,
        }
    }

    /// Gives up the partitions of which nothing waits any more.
    fn leave(&mut self) {
        for (tenure, reply) in std::mem::take(&mut self.leaving) {
            let place = usize::from(tenure.partition.0);
            let is_writing = self.seats[place].as_ref().is_some_and(|seat| seat.part.tenure() == tenure);
            if is_writing && !self.machines.is_idle_at(place) {
                self.leaving.push((tenure, reply));
                continue;
            }
            if is_writing {
                self.machines.end(place);
                self.seats[place] = None;
            }
            let _waits_no_more = reply.send(());
        }
    }
}

fn run(receiver: &mpsc::Receiver<Message>, parts: &JournalParts) -> Result<(), LoadError> {
    let snapshots = snapshots::SnapshotWriter::start();
    let monitor = parts.store.monitor();
    let mut replies: Vec<Reply> = Vec::new();
    let mut handed_out: Vec<(usize, Block)> = Vec::new();
    let mut keeper = Keeper {
        parts,
        machines: Machines::new(parts.partitions),
        seats: (0..parts.partitions).map(|_| None).collect(),
        leaving: Vec::new(),
        ending: false,
    };
    loop {
        keeper.leave();
        if keeper.machines.is_idle() {
            if keeper.ending {
                return Ok(());
            }
            keeper.take(receiver.recv().unwrap_or(Message::End));
        }
        while let Ok(message) = receiver.try_recv() {
            keeper.take(message);
        }
        keeper.machines.gather(parts.clock.now());
        while !keeper.machines.is_quiet() {
            for (place, seat) in keeper.seats.iter().enumerate() {
                let Some(seat) = seat else { continue };
                for output in keeper.machines.take(place) {
                    match output {
                        Output::Write(block) => handed_out.push((place, block)),
                        Output::Release(reply) => replies.push(reply),
                        output => perform(output, seat, parts, &monitor, &snapshots)?,
                    }
                }
            }
            if !handed_out.is_empty() {
                commit(&mut handed_out, &mut keeper, &monitor)?;
            }
        }
        if !replies.is_empty() {
            let replies = std::mem::take(&mut replies);
            parts.runtime.spawn(async move { replies.into_iter().for_each(|reply| reply()) });
        }
    }
}

/// Makes the blocks that were handed out durable, in one call. A partition that another owner has
/// taken ends; an error when none is left.
fn commit(
    handed_out: &mut Vec<(usize, Block)>,
    keeper: &mut Keeper<'_>,
    monitor: &Arc<Monitor>,
) -> Result<(), StoreError> {
    let (begun, parts) = (Instant::now(), keeper.parts);
    let landed = {
        let _waiting = monitor.begin(WaitFor::Commit);
        let tenure_of = |place: usize| keeper.seats[place].as_ref().expect("a block is of a seat").part.tenure();
        let blocks: Vec<(Tenure, &Block)> =
            handed_out.iter().map(|(place, block)| (tenure_of(*place), block)).collect();
        parts.store.append(&blocks)?
    };
    let took = begun.elapsed();
    parts.metrics.committed(took);
    for ((place, block), landed) in handed_out.drain(..).zip(landed) {
        let partition = block.partition;
        match landed {
            AppendOutcome::Durable(hash) => {
                parts.metrics.block_written(&block);
                keeper.machines.written(place, hash);
            }
            AppendOutcome::Fenced => end(keeper, place, StoreError::Fenced { partition })?,
            AppendOutcome::Unknown => end(keeper, place, StoreError::Unknown { partition })?,
        }
    }
    Ok(())
}

/// Ends the journal of a partition that another owner has taken.
fn end(keeper: &mut Keeper<'_>, place: usize, error: StoreError) -> Result<(), StoreError> {
    keeper.machines.end(place);
    keeper.seats[place] = None;
    if keeper.machines.have_ended() {
        return Err(error);
    }
    tracing::error!(%error, "nothing of a block was acknowledged; the other partitions go on");
    Ok(())
}

fn perform(
    output: Output<Reply, Arc<dyn Inbox>>,
    Seat { part, read_model, .. }: &Seat,
    parts: &JournalParts,
    monitor: &Arc<Monitor>,
    snapshots: &snapshots::SnapshotWriter,
) -> Result<(), LoadError> {
    match output {
        Output::Write(_) => unreachable!("blocks are made durable together"),
        Output::Publish(records) => {
            let begun = Instant::now();
            {
                let _waiting = monitor.begin(WaitFor::Publish);
                read_model.publish(&records)?;
            }
            parts.metrics.publish_seconds.observe(begun.elapsed().as_secs_f64());
        }
        Output::Deliver { inbox, records } => inbox.deliver(records),
        Output::Durable { inbox, ordinal } => inbox.durable(ordinal),
        Output::Release(reply) => reply(),
        Output::Opened { inbox, through } => inbox.opened(through),
        Output::Keep { snapshot, own_through } => snapshots.keep(part, *snapshot, own_through),
    }
    Ok(())
}
