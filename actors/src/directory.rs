//! Who is awake. The directory starts an actor when it is asked for, puts idle ones to sleep, and notices the end of each. Messages
//! for one that is going to sleep wait until it has ended: its successor's open must pass the journal behind its last Record.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::id::LedgerId;
use parking_lot::Mutex;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};

use crate::actor::{Message, OwnerActor, Shared};
use crate::resident::Books;

/// The actors of one kind: merchants or recipients.
pub struct Directory<B: Books> {
    shared: Arc<Shared>,
    supervisor: ActorCell,
    slots: Mutex<Slots<B>>,
}

struct Slots<B: Books> {
    by_ledger: HashMap<LedgerId, Slot<B>>,
    by_actor: HashMap<ActorId, LedgerId>,
}

enum Slot<B: Books> {
    Awake {
        actor: ActorRef<Message<B>>,
        used_at: Instant,
    },
    /// Going to sleep; what came since waits for the next one.
    Ending {
        waiting: Vec<Message<B>>,
    },
}

impl<B: Books> Directory<B> {
    /// An empty directory whose actors are linked to `supervisor`.
    pub fn new(shared: Arc<Shared>, supervisor: ActorCell) -> Arc<Self> {
        let slots = Slots { by_ledger: HashMap::new(), by_actor: HashMap::new() };
        Arc::new(Self { shared, supervisor, slots: Mutex::new(slots) })
    }

    /// Sends a message to a ledger's actor, and starts the actor if it is asleep. Sending happens under the lock, so that nothing
    /// reaches an actor after it was told to end.
    pub fn send(&self, ledger: LedgerId, message: Message<B>) {
        let mut slots = self.slots.lock();
        match slots.by_ledger.get_mut(&ledger) {
            Some(Slot::Awake { actor, used_at }) => {
                *used_at = Instant::now();
                // A dead actor drops the message: its caller is told that the outcome is unknown.
                let _dead = actor.cast(message);
            }
            Some(Slot::Ending { waiting }) => waiting.push(message),
            None => self.start(&mut slots, ledger, vec![message]),
        }
    }

    /// Puts actors to sleep that were not used for `idle`.
    pub fn sleep_idle(&self, idle: Duration) {
        let mut slots = self.slots.lock();
        for slot in slots.by_ledger.values_mut() {
            if let Slot::Awake { actor, used_at } = slot
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

    /// An actor has ended; if somebody waits for it, its successor starts.
    pub fn ended(&self, actor: ActorId) {
        let mut slots = self.slots.lock();
        let Some(ledger) = slots.by_actor.remove(&actor) else { return };
        if let Some(Slot::Ending { waiting }) = slots.by_ledger.remove(&ledger)
            && !waiting.is_empty()
        {
            self.start(&mut slots, ledger, waiting);
        }
        self.shared.metrics.set_actors_awake::<B>(slots.by_ledger.len());
    }

    fn start(&self, slots: &mut Slots<B>, ledger: LedgerId, messages: Vec<Message<B>>) {
        let arguments = (ledger, Arc::clone(&self.shared));
        let spawned =
            ActorRuntime::spawn_linked_instant(None, OwnerActor::default(), arguments, self.supervisor.clone());
        let (actor, _started) = spawned.expect("an actor without a name can always be spawned");
        for message in messages {
            let _dead = actor.cast(message);
        }
        slots.by_actor.insert(actor.get_id(), ledger);
        slots.by_ledger.insert(ledger, Slot::Awake { actor, used_at: Instant::now() });
        self.shared.metrics.set_actors_awake::<B>(slots.by_ledger.len());
    }
}

/// Hears of the end of every actor.
pub struct Supervisor;

/// Told of the end of an actor.
pub type OnEnd = Box<dyn Fn(ActorId) + Send + Sync>;

/// Nobody talks to the supervisor.
pub enum Silence {}

impl Actor for Supervisor {
    type Msg = Silence;
    type State = OnEnd;
    type Arguments = OnEnd;

    async fn pre_start(&self, _myself: ActorRef<Silence>, on_end: OnEnd) -> Result<OnEnd, ActorProcessingErr> {
        Ok(on_end)
    }

    async fn handle_supervisor_evt(
        &self,
        _myself: ActorRef<Silence>,
        event: SupervisionEvent,
        on_end: &mut OnEnd,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(actor, error) => {
                tracing::error!(%error, "an actor failed; it starts again from the journal when it is asked for");
                on_end(actor.get_id());
            }
            SupervisionEvent::ActorTerminated(actor, ..) => on_end(actor.get_id()),
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}
