//! Actor of one ledger: the ractor shell around a [`Resident`]. It opens through the journal, loads
//! its state, and then handles one message after the other without awaiting in between. While
//! Records of the actor are not durable yet, its replies leave through the journal.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use ledger::{IdKey, LedgerId, Record, Timestamp};
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::{Semaphore, oneshot};

use crate::clock::Clock;
use crate::journal::{Inbox, Input, Journal, Permit, Reply};
use crate::load::{self, LargeRecords};
use crate::metrics::Metrics;
use crate::resident::{Effects, Envelope, Outcome, OwnerMachine, Resident};
use derived::read_model::ReadModel;
use store::{Part, Sequence};

/// Reads an actor's state at a time and prepares the reply.
pub(crate) type Read<B> = Box<dyn FnOnce(&B, Timestamp) -> Reply + Send>;

/// A message to an actor.
pub(crate) enum Message<B: OwnerMachine> {
    /// A command, and where its outcome goes.
    Command(Envelope<B::Command>, oneshot::Sender<Outcome>),
    /// Commands that are decided one after the other; their outcomes leave together.
    Commands(Vec<(Envelope<B::Command>, oneshot::Sender<Outcome>)>),
    /// A read; what is due is booked first, under this permit.
    Read(Read<B>, Arc<Permit>),
    /// Foreign Records from the journal, and when they were sent.
    Deliver(Vec<(Sequence, Arc<Record>)>, Instant),
}

/// States that are loaded at once in this process. Each takes a thread, and what a thread has
/// allocated for actors that sleep again stays with it.
static LOADS: Semaphore = Semaphore::const_new(32);

/// Shared state of all actors.
pub(crate) struct ActorContext {
    /// The journal, which takes the Records.
    pub(crate) journal: Journal,
    /// The store, from which states are loaded.
    pub(crate) store: Part,
    /// Which Records concern a ledger.
    pub(crate) read_model: Arc<ReadModel>,
    /// The time of commands and reads.
    pub(crate) clock: Arc<Clock>,
    /// Makes recipients' ids.
    pub(crate) ids: IdKey,
    /// Metrics of the engine.
    pub(crate) metrics: Arc<Metrics>,
}

/// The actor of one ledger.
pub(crate) struct OwnerActor<B>(PhantomData<fn() -> B>);

impl<B> Default for OwnerActor<B> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

/// An actor's state, once it is open.
pub(crate) struct OwnerState<B: OwnerMachine> {
    shared: Arc<ActorContext>,
    large: Arc<LargeRecords>,
    ledger: LedgerId,
    resident: Option<Resident<B>>,
}

struct OwnerInbox<B: OwnerMachine> {
    actor: ActorRef<Message<B>>,
    durable: Arc<AtomicU64>,
    opened: Mutex<Option<oneshot::Sender<Sequence>>>,
}

impl<B: OwnerMachine> Inbox for OwnerInbox<B> {
    fn deliver(&self, records: Vec<(Sequence, Arc<Record>)>) {
        // An actor that is going to sleep takes no more; it finds them in the journal when it
        // wakes.
        let _asleep = self.actor.cast(Message::Deliver(records, Instant::now()));
    }

    fn durable(&self, ordinal: u64) {
        self.durable.fetch_max(ordinal, Ordering::AcqRel);
    }

    fn opened(&self, through: Sequence) {
        if let Some(opened) = self.opened.lock().take() {
            let _gone = opened.send(through);
        }
    }
}

impl<B: OwnerMachine> Actor for OwnerActor<B> {
    type Msg = Message<B>;
    type State = OwnerState<B>;
    type Arguments = (LedgerId, Arc<ActorContext>, Arc<LargeRecords>);

    async fn pre_start(
        &self,
        _myself: ActorRef<Message<B>>,
        (ledger, shared, large): Self::Arguments,
    ) -> Result<OwnerState<B>, ActorProcessingErr> {
        Ok(OwnerState { shared, large, ledger, resident: None })
    }

    /// Registers with the journal, then loads the state through the sequence that the journal
    /// names. Messages wait meanwhile.
    async fn post_start(
        &self,
        myself: ActorRef<Message<B>>,
        state: &mut OwnerState<B>,
    ) -> Result<(), ActorProcessingErr> {
        let begun = Instant::now();
        let durable = Arc::new(AtomicU64::new(0));
        let (sender, opened) = oneshot::channel();
        let inbox = OwnerInbox { actor: myself, durable: Arc::clone(&durable), opened: Mutex::new(Some(sender)) };
        state.shared.journal.send(Input::Open { ledger: state.ledger, inbox: Arc::new(inbox) });
        let through = opened.await?;
        let (ledger, shared, large) = (state.ledger, Arc::clone(&state.shared), Arc::clone(&state.large));
        let load = move || load::resident(&shared.store, &shared.read_model, &large, ledger, through, durable);
        let turn = LOADS.acquire().await?;
        let resident = state.resident.insert(tokio::task::spawn_blocking(load).await??);
        drop(turn);
        state.shared.metrics.actor_woken(begun.elapsed());
        if let Some(snapshot) = resident.due_snapshot() {
            state.shared.journal.send(Input::Keep(Box::new(snapshot)));
        }
        Ok(())
    }

    async fn handle(
        &self,
        _myself: ActorRef<Message<B>>,
        message: Message<B>,
        state: &mut OwnerState<B>,
    ) -> Result<(), ActorProcessingErr> {
        let resident = state.resident.as_mut().ok_or("messages wait until the actor is open")?;
        match message {
            Message::Command(envelope, to) => {
                let mut effects = Effects::default();
                let outcome = resident.command(envelope, state.shared.clock.now(), &state.shared.ids, &mut effects);
                say(&state.shared, resident, effects, Box::new(move || drop(to.send(outcome))));
            }
            Message::Commands(commands) => {
                let (mut effects, now, ids) = (Effects::default(), state.shared.clock.now(), &state.shared.ids);
                let mut decide = |envelope| resident.command(envelope, now, ids, &mut effects);
                let outcomes: Vec<_> = commands.into_iter().map(|(envelope, to)| (to, decide(envelope))).collect();
                let reply = move || outcomes.into_iter().for_each(|(to, outcome)| drop(to.send(outcome)));
                say(&state.shared, resident, effects, Box::new(reply));
            }
            Message::Read(read, permit) => {
                let mut effects = Effects::default();
                let now = state.shared.clock.now();
                resident.mature(now, &permit, &mut effects);
                let reply = read(resident.books(), now);
                say(&state.shared, resident, effects, reply);
            }
            Message::Deliver(records, since) => {
                resident.deliver(&records);
                state.shared.metrics.delivery_seconds.observe(since.elapsed().as_secs_f64());
            }
        }
        if let Some(snapshot) = resident.due_snapshot() {
            state.shared.journal.send(Input::Keep(Box::new(snapshot)));
        }
        Ok(())
    }

    /// Goes to sleep: its decisions are on their way to the journal; the state is stored after
    /// them.
    async fn post_stop(
        &self,
        _myself: ActorRef<Message<B>>,
        state: &mut OwnerState<B>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(resident) = &mut state.resident {
            if resident.has_changed() {
                state.shared.journal.send(Input::Keep(Box::new(resident.snapshot())));
            }
            state.shared.journal.send(Input::Close { ledger: state.ledger });
        }
        Ok(())
    }
}

/// Hands Records on, then releases the reply: at once when nothing is in flight, through the
/// journal otherwise.
fn say<B: OwnerMachine>(shared: &ActorContext, resident: &Resident<B>, effects: Effects, reply: Reply) {
    if !effects.submissions.is_empty() {
        shared.journal.send(Input::Submit(effects.submissions));
    }
    if resident.is_settled() {
        reply();
    } else {
        shared.journal.send(Input::Answer(reply));
    }
}
