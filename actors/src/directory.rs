//! Who is awake. The directory starts an actor when it is asked for, puts idle ones to sleep, and notices the end of each. Messages
//! for one that is going to sleep wait until it has ended: its successor's open must pass the journal behind its last Record.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
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
    /// The same ledgers in order, to go through them in parts.
    in_order: BTreeSet<LedgerId>,
    by_actor: HashMap<ActorId, LedgerId>,
}

/// So many slots are looked at before others may send.
const LOOKED_AT_ONCE: usize = 128;

enum Slot<B: Books> {
    Awake {
        /// Whoever is sending to it holds it too.
        actor: Arc<ActorRef<Message<B>>>,
        used_at: Instant,
        is_open: bool,
    },
    /// Going to sleep; what came since waits for the next one.
    Ending { waiting: Vec<Message<B>> },
}

impl<B: Books> Directory<B> {
    /// An empty directory whose actors are linked to `supervisor`.
    pub fn new(shared: Arc<Shared>, supervisor: ActorCell) -> Arc<Self> {
        let slots = Slots { by_ledger: IdMap::default(), in_order: BTreeSet::new(), by_actor: HashMap::new() };
        Arc::new(Self { shared, large: Arc::default(), supervisor, slots: Mutex::new(slots) })
    }

    /// Sends a message to a ledger's actor, and starts the actor if it is asleep. An actor that somebody is sending to is not told to
    /// end, so that nothing reaches it after that; whom to send to is found under the lock, and sending happens without it.
    pub fn send(&self, ledger: LedgerId, message: Message<B>) {
        let now = Instant::now();
        let actor = {
            let mut slots = self.slots.lock();
            match slots.by_ledger.get_mut(&ledger) {
                Some(Slot::Awake { actor, used_at, .. }) => {
                    *used_at = now;
                    Arc::clone(actor)
                }
                Some(Slot::Ending { waiting }) => return waiting.push(message),
                None => return self.start(&mut slots, ledger, vec![message]),
            }
        };
        // A dead actor drops the message: its caller is told that the outcome is unknown.
        let _dead = actor.cast(message);
    }

    /// Puts actors to sleep that were not used for `idle`, a few at a time, so that those who send need not wait for all to be looked at.
    pub fn sleep_idle(&self, idle: Duration) {
        let mut after = Bound::Unbounded;
        while let Some(last) = self.slots.lock().sleep_idle(idle, after, LOOKED_AT_ONCE) {
            after = Bound::Excluded(last);
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
        slots.in_order.remove(&ledger);
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
        let slot = Slot::Awake { actor: Arc::new(actor), used_at: Instant::now(), is_open: false };
        slots.by_ledger.insert(ledger, slot);
        slots.in_order.insert(ledger);
        self.shared.metrics.set_actors_awake(B::KIND, slots.by_ledger.len());
    }
}

impl<B: Books> Slots<B> {
    /// Looks at the next `most` slots and puts to sleep those that were not used for `idle`; gives the last of them, none behind the last
    /// of all. An actor that is still opening is left to: one that is told to end before it has started is never linked to its
    /// supervisor, and its end would not be heard of.
    fn sleep_idle(&mut self, idle: Duration, after: Bound<LedgerId>, most: usize) -> Option<LedgerId> {
        let mut last = None;
        for ledger in self.in_order.range((after, Bound::Unbounded)).take(most) {
            last = Some(*ledger);
            if let Some(slot) = self.by_ledger.get_mut(ledger)
                && let Slot::Awake { actor, used_at, is_open: true } = slot
                && used_at.elapsed() >= idle
                && Arc::get_mut(actor).is_some_and(|actor| actor.drain().is_ok())
            {
                *slot = Slot::Ending { waiting: Vec::new() };
            }
        }
        last
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

#[cfg(test)]
mod tests {
    use ledger::id::GroupNumber;
    use ledger::merchant::MerchantState;

    use super::*;

    struct Idle;

    impl Actor for Idle {
        type Msg = Message<MerchantState>;
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _myself: ActorRef<Self::Msg>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }
    }

    fn slots() -> Slots<MerchantState> {
        Slots { by_ledger: IdMap::default(), in_order: BTreeSet::new(), by_actor: HashMap::new() }
    }

    #[test]
    fn few_slots_are_looked_at_under_the_lock_and_all_in_the_end() {
        let mut slots = slots();
        for ledger in (0..300).map(|group| LedgerId::Merchant(GroupNumber(group))) {
            slots.by_ledger.insert(ledger, Slot::Ending { waiting: Vec::new() });
            slots.in_order.insert(ledger);
        }
        let (mut after, mut seen) = (Bound::Unbounded, Vec::new());
        while let Some(last) = slots.sleep_idle(Duration::ZERO, after, LOOKED_AT_ONCE) {
            seen.push(last.group().map(|group| group.0));
            after = Bound::Excluded(last);
        }
        assert_eq!(seen, [Some(127), Some(255), Some(299)]);
    }

    #[tokio::test]
    async fn an_actor_that_somebody_is_sending_to_is_not_told_to_end() {
        let (actor, ends) = Actor::spawn(None, Idle, ()).await.unwrap();
        let (mut slots, ledger) = (slots(), LedgerId::Merchant(GroupNumber(1)));
        let actor = Arc::new(actor);
        let sending = Arc::clone(&actor);
        slots.by_ledger.insert(ledger, Slot::Awake { actor, used_at: Instant::now(), is_open: true });
        slots.in_order.insert(ledger);
        slots.sleep_idle(Duration::ZERO, Bound::Unbounded, LOOKED_AT_ONCE);
        assert!(matches!(slots.by_ledger[&ledger], Slot::Awake { .. }));
        drop(sending);
        slots.sleep_idle(Duration::ZERO, Bound::Unbounded, LOOKED_AT_ONCE);
        assert!(matches!(slots.by_ledger[&ledger], Slot::Ending { .. }));
        ends.await.unwrap();
    }
}
