//! Thread of the journal: it orders Records, makes them durable in blocks (group commit), and lets
//! no reply leave before its Records are durable.
//!
//! **Architecture Invariant:** one thread writes the store's journal, and this is it. If making a
//! block durable fails, nothing of the block is acknowledged, nothing more is written, and the
//! process ends: a failed flush is never tried again.

mod admission;
mod machine;

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
use crate::store::{Monitor, Part, Sequence, StoreError, WaitFor};

pub use admission::{Admission, AdmissionLimits, Permit, Sender};
pub use machine::{BLOCK_BYTES_MAX, Input, Machine, Output, Submission};

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

/// A handle to the journal's thread.
#[derive(Clone)]
pub struct Journal {
    sender: mpsc::Sender<Option<JournalInput>>,
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
    /// Store in which blocks become durable.
    pub store: Part,
    /// The time of booking.
    pub clock: Arc<Clock>,
    /// Read model; every durable block is folded into it.
    pub read_model: Arc<ReadModel>,
    /// Metrics of the engine.
    pub metrics: Arc<Metrics>,
    /// Runtime on which the replies of a block are released together: a caller wakes at a lower
    /// cost when one of the runtime's own threads wakes it.
    pub runtime: Handle,
}

impl Journal {
    /// Starts the thread that continues the store's journal. After [`Journal::end`], or once the
    /// last handle is dropped, it finishes what was queued and ends.
    pub(crate) fn start(parts: JournalParts) -> Result<(Self, thread::JoinHandle<()>), StoreError> {
        let machine = Machine::new(parts.store.head()?);
        let (sender, receiver) = mpsc::channel();
        let failure = Arc::new(Failure::default());
        let journal = Self { sender, failure: Arc::clone(&failure) };
        let run = move || {
            priority::run_first();
            let tell = TellUnlessEnded(failure);
            match run(machine, &receiver, &parts) {
                Ok(()) => tell.ended(),
                Err(error) => {
                    tracing::error!(%error, "a block could not be made durable: nothing of it was acknowledged");
                }
            }
        };
        let thread = thread::Builder::new().name("journal".to_owned()).spawn(run).expect("a thread can be started");
        Ok((journal, thread))
    }

    /// Hands a message over. After a failure the message is dropped: its reply is never released,
    /// so the caller does not know the outcome.
    pub fn send(&self, input: JournalInput) {
        let _gone_after_failure = self.sender.send(Some(input));
    }

    /// Ends the thread, after all that was queued.
    pub fn end(&self) {
        let _gone_after_failure = self.sender.send(None);
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
    mut machine: Machine<Reply, Arc<dyn Inbox>>,
    receiver: &mpsc::Receiver<Option<JournalInput>>,
    parts: &JournalParts,
) -> Result<(), LoadError> {
    let snapshots = snapshots::SnapshotWriter::start(parts.store.clone());
    let monitor = parts.store.monitor();
    let mut outputs = Vec::new();
    let mut replies: Vec<Reply> = Vec::new();
    let mut ending = false;
    loop {
        if machine.is_idle() {
            if ending {
                return Ok(());
            }
            match receiver.recv() {
                Ok(Some(input)) => machine.step(input, &mut outputs),
                Ok(None) | Err(mpsc::RecvError) => ending = true,
            }
        }
        while let Ok(input) = receiver.try_recv() {
            match input {
                Some(input) => machine.step(input, &mut outputs),
                None => ending = true,
            }
        }
        machine.gather(parts.clock.now(), &mut outputs);
        while !outputs.is_empty() {
            for output in std::mem::take(&mut outputs) {
                match output {
                    Output::Release(reply) => replies.push(reply),
                    output => perform(output, parts, &monitor, &snapshots, &mut machine, &mut outputs)?,
                }
            }
        }
        if !replies.is_empty() {
            let replies = std::mem::take(&mut replies);
            parts.runtime.spawn(async move { replies.into_iter().for_each(|reply| reply()) });
        }
    }
}

fn perform(
    output: Output<Reply, Arc<dyn Inbox>>,
    parts: &JournalParts,
    monitor: &Arc<Monitor>,
    snapshots: &snapshots::SnapshotWriter,
    machine: &mut Machine<Reply, Arc<dyn Inbox>>,
    outputs: &mut Vec<Output<Reply, Arc<dyn Inbox>>>,
) -> Result<(), LoadError> {
    match output {
        Output::Write(block) => {
            let begun = Instant::now();
            let hash = {
                let _waiting = monitor.begin(WaitFor::Commit);
                parts.store.append(&block)?
            };
            parts.metrics.block_written(&block, begun.elapsed());
            machine.step(Input::Written(hash), outputs);
        }
        Output::Publish(records) => {
            let begun = Instant::now();
            {
                let _waiting = monitor.begin(WaitFor::Publish);
                parts.read_model.publish(&records)?;
            }
            parts.metrics.publish_seconds.observe(begun.elapsed().as_secs_f64());
        }
        Output::Deliver { inbox, records } => inbox.deliver(records),
        Output::Durable { inbox, ordinal } => inbox.durable(ordinal),
        Output::Release(reply) => reply(),
        Output::Opened { inbox, through } => inbox.opened(through),
        Output::Keep { snapshot, own_through } => snapshots.keep(*snapshot, own_through),
    }
    Ok(())
}
