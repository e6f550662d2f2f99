//! Who is awake. The directory starts an actor when it is asked for, puts idle ones to sleep, and notices the end of each. Messages
//! for one that is going to sleep wait until it has ended: its successor's open must pass the journal behind its last Record.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::id::{IdMap, LedgerId};
use parking_lot::Mutex;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};

use crate::actor::{Message, OwnerActor, Shared};
use crate::load::LargeRecords;
use crate::resident::Books;

/// The actors of one kind: merchants or recipients.
pub struct Directory<B: Books> {
    shared: Arc<Shared>,
    large: Arc<LargeRecords>,
    supervisor: ActorCell,
    slots: Mutex<Slots<B>>,
}

struct Slots<B: Books> {
    by_ledger: IdMap<LedgerId, Slot<B>>,
    by_actor: HashMap<ActorId, LedgerId>,
}

enum Slot<B: Books> {
    Awake {
        actor: ActorRef<Message<B>>,
        used_at: Instant,
        is_open: bool,
    },
    /// Going to sleep; what came since waits for the next one.
    Ending {
        waiting: Vec<Message<B>>,
    },
}

impl<B: Books> Directory<B> {
    /// An empty directory whose actors are linked to `supervisor`.
    pub fn new(shared: Arc<Shared>, supervisor: ActorCell) -> Arc<Self> {
        let slots = Slots { by_ledger: IdMap::default(), by_actor: HashMap::new() };
        Arc::new(Self { shared, large: Arc::default(), supervisor, slots: Mutex::new(slots) })
    }

    /// Sends a message to a ledger's actor, and starts the actor if it is asleep. Sending happens under the lock, so that nothing
    /// reaches an actor after it was told to end.
    pub fn send(&self, ledger: LedgerId, message: Message<B>) {
        let mut slots = self.slots.lock();
        match slots.by_ledger.get_mut(&ledger) {
            Some(Slot::Awake { actor, used_at, .. }) => {
                *used_at = Instant::now();
                // A dead actor drops the message: its caller is told that the outcome is unknown.
                let _dead = actor.cast(message);
            }
            Some(Slot::Ending { waiting }) => waiting.push(message),
            None => self.start(&mut slots, ledger, vec![message]),
        }
    }

    /// Puts actors to sleep that were not used for `idle`. One that is still opening is left to: an actor that is told to end before
    /// it has started is never linked to its supervisor, and its end would not be heard of.
    pub fn sleep_idle(&self, idle: Duration) {
        let mut slots = self.slots.lock();
        for slot in slots.by_ledger.values_mut() {
            if let Slot::Awake { actor, used_at, is_open: true } = slot
                && used_at.elapsed() >= idle
                && actor.drain().is_ok()
            {
                *slot = Slot::Ending { waiting: Vec::new() };
            }
        }
    }

    /// How many actors there are, awake or going to sleep.
    pub fn len(&self) -> usize {
        self.slots.lock().by_ledger.len()
    }

    /// True when every actor sleeps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An actor has opened and takes messages.
    pub fn opened(&self, actor: ActorId) {
        let mut slots = self.slots.lock();
        let Some(ledger) = slots.by_actor.get(&actor).copied() else { return };
        if let Some(Slot::Awake { is_open, .. }) = slots.by_ledger.get_mut(&ledger) {
            *is_open = true;
        }
    }

    /// An actor has ended; if somebody waits for it, its successor starts.
    pub fn ended(&self, actor: ActorId) {
        let mut slots = self.slots.lock();
        let Some(ledger) = slots.by_actor.remove(&actor) else { return };
        if let Some(Slot::Ending { waiting }) = slots.by_ledger.remove(&ledger)
            && !waiting.is_empty()
        {
            self.start(&mut slots, ledger, waiting);
        }
        self.shared.metrics.set_actors_awake(B::KIND, slots.by_ledger.len());
    }

    fn start(&self, slots: &mut Slots<B>, ledger: LedgerId, messages: Vec<Message<B>>) {
        let arguments = (ledger, Arc::clone(&self.shared), Arc::clone(&self.large));
        let spawned =
            ActorRuntime::spawn_linked_instant(None, OwnerActor::default(), arguments, self.supervisor.clone());
        let (actor, _started) = spawned.expect("an actor without a name can always be spawned");
        for message in messages {
            let _dead = actor.cast(message);
        }
        slots.by_actor.insert(actor.get_id(), ledger);
        slots.by_ledger.insert(ledger, Slot::Awake { actor, used_at: Instant::now(), is_open: false });
        self.shared.metrics.set_actors_awake(B::KIND, slots.by_ledger.len());
    }
}

/// Hears of every actor that has opened or ended.
pub struct Supervisor;

/// What the supervisor hears of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It takes messages.
    Opened,
    /// It is gone.
    Ended,
}

/// Told of an actor's life.
pub type OnLife = Box<dyn Fn(ActorId, Life) + Send + Sync>;

/// Nobody talks to the supervisor.
pub enum Silence {}

impl Actor for Supervisor {
    type Msg = Silence;
    type State = OnLife;
    type Arguments = OnLife;

    async fn pre_start(&self, _myself: ActorRef<Silence>, on_life: OnLife) -> Result<OnLife, ActorProcessingErr> {
        Ok(on_life)
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Silence>,
        event: SupervisionEvent,
        on_life: &mut OnLife,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(actor) => on_life(actor.get_id(), Life::Opened),
            SupervisionEvent::ActorTerminated(actor, ..) => on_life(actor.get_id(), Life::Ended),
            SupervisionEvent::ActorFailed(actor, error) => {
                tracing::error!(%error, "an actor failed; it starts again from the journal when it is asked for");
                on_life(actor.get_id(), Life::Ended);
            }
            SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}
