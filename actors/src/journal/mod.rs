//! Thread of the journal: it orders Records, makes them durable in blocks (group commit), and lets
//! no reply leave before its Records are durable. It does so for all partitions of the process; the
//! blocks of several partitions become durable in one call of the store.
//!
//! **Architecture Invariant:** one thread writes the store's journal, and this is it. If making a
//! block durable fails, nothing of the block is acknowledged, nothing more is written, and the
//! process ends: a failed flush is never tried again. A partition that was taken by another owner
//! ends alone.

mod admission;
mod machine;
mod machines;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use ledger::record::Record;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::priority;
use crate::read_model::ReadModel;
use crate::records::LoadError;
use crate::snapshots;
use crate::store::{Block, Landed, Monitor, Part, Sequence, Store, StoreError, Tenure, WaitFor};

pub use admission::{Admission, AdmissionLimits, Permit, Sender};
pub use machine::{BLOCK_BYTES_MAX, COMMIT_BYTES_MAX, Input, Machine, Output, Submission};
pub use machines::Machines;

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
    /// For the machine of the partition at this place.
    Input(usize, JournalInput),
    /// End, after all that was queued.
    End,
}

/// A handle to the journal of one partition, which all partitions' thread keeps.
#[derive(Clone)]
pub struct Journal {
    place: usize,
    sender: mpsc::Sender<Message>,
    failure: Arc<Failure>,
}

#[derive(Default)]
struct Failure {
    happened: AtomicBool,
    told: Notify,
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
        self.0.told.notify_waiters();
    }
}

/// Parts that the journal's thread works on.
pub(crate) struct JournalParts {
    /// The store, in which blocks become durable.
    pub store: Arc<dyn Store>,
    /// The partitions that this process writes, each with the read model into which its durable
    /// blocks are folded.
    pub partitions: Vec<(Part, Arc<ReadModel>)>,
    /// The time of booking.
    pub clock: Arc<Clock>,
    /// Metrics of the engine.
    pub metrics: Arc<Metrics>,
    /// Runtime on which the replies of a block are released together: a caller wakes at a lower
    /// cost when one of the runtime's own threads wakes it.
    pub runtime: Handle,
}

impl Journal {
    /// Starts the thread that continues the journals of all partitions, and gives a handle for
    /// each, in their order. After [`Journal::end`], or once the last handle is dropped, it
    /// finishes what was queued and ends.
    pub(crate) fn start(parts: JournalParts) -> Result<(Vec<Self>, thread::JoinHandle<()>), StoreError> {
        let machines = parts.partitions.iter().map(|(part, _)| Ok(Machine::new(part.partition(), part.head()?)));
        let machines = Machines::new(machines.collect::<Result<Vec<_>, StoreError>>()?);
        let (sender, receiver) = mpsc::channel();
        let failure = Arc::new(Failure::default());
        let journal = |place| Self { place, sender: sender.clone(), failure: Arc::clone(&failure) };
        let journals = (0..machines.places()).map(journal).collect();
        let run = move || {
            priority::run_first();
            let tell = TellUnlessEnded(failure);
            match run(machines, &receiver, &parts) {
                Ok(()) => tell.ended(),
                Err(error) => {
                    tracing::error!(%error, "a block could not be made durable: nothing of it was acknowledged");
                }
            }
        };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(run).expect("a thread can be started");
        Ok((journals, thread))
    }

    /// Hands a message over. After a failure, or once the partition has another owner, the message
    /// is dropped: its reply is never released, so the caller does not know the outcome.
    pub fn send(&self, input: JournalInput) {
        let _gone_after_failure = self.sender.send(Message::Input(self.place, input));
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
            let told = self.failure.told.notified();
            if self.has_failed() {
                return;
            }
            told.await;
        }
    }
}

fn run(
    mut machines: Machines<Reply, Arc<dyn Inbox>>,
    receiver: &mpsc::Receiver<Message>,
    parts: &JournalParts,
) -> Result<(), LoadError> {
    let snapshots = snapshots::SnapshotWriter::start();
    let monitor = parts.store.monitor();
    let mut replies: Vec<Reply> = Vec::new();
    let mut handed_out: Vec<(usize, Block)> = Vec::new();
    let mut ending = false;
    loop {
        if machines.is_idle() {
            if ending {
                return Ok(());
            }
            match receiver.recv() {
                Ok(Message::Input(place, input)) => machines.step(place, input),
                Ok(Message::End) | Err(mpsc::RecvError) => ending = true,
            }
        }
        while let Ok(message) = receiver.try_recv() {
            match message {
                Message::Input(place, input) => machines.step(place, input),
                Message::End => ending = true,
            }
        }
        machines.gather(parts.clock.now());
        while !machines.is_quiet() {
            for (place, (part, read_model)) in parts.partitions.iter().enumerate() {
                for output in machines.take(place) {
                    match output {
                        Output::Write(block) => handed_out.push((place, block)),
                        Output::Release(reply) => replies.push(reply),
                        output => perform(output, part, read_model, parts, &monitor, &snapshots)?,
                    }
                }
            }
            if !handed_out.is_empty() {
                commit(&mut handed_out, &mut machines, parts, &monitor)?;
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
    machines: &mut Machines<Reply, Arc<dyn Inbox>>,
    parts: &JournalParts,
    monitor: &Arc<Monitor>,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let landed = {
        let _waiting = monitor.begin(WaitFor::Commit);
        let tenure_of = |place: usize| parts.partitions[place].0.tenure();
        let blocks: Vec<(Tenure, &Block)> =
            handed_out.iter().map(|(place, block)| (tenure_of(*place), block)).collect();
        parts.store.append(&blocks)?
    };
    let took = begun.elapsed();
    parts.metrics.committed(took);
    for ((place, block), landed) in handed_out.drain(..).zip(landed) {
        let partition = block.partition;
        match landed {
            Landed::Durable(hash) => {
                parts.metrics.block_written(&block);
                machines.written(place, hash);
            }
            Landed::Fenced => end(machines, place, StoreError::Fenced { partition })?,
            Landed::Unknown => end(machines, place, StoreError::Unknown { partition })?,
        }
    }
    Ok(())
}

/// Ends the journal of a partition that another owner has taken.
fn end(machines: &mut Machines<Reply, Arc<dyn Inbox>>, place: usize, error: StoreError) -> Result<(), StoreError> {
    machines.end(place);
    if machines.have_ended() {
        return Err(error);
    }
    tracing::error!(%error, "nothing of a block was acknowledged; the other partitions go on");
    Ok(())
}

fn perform(
    output: Output<Reply, Arc<dyn Inbox>>,
    part: &Part,
    read_model: &ReadModel,
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
