//! Directory of the actors that are awake. It starts an actor for the first message to it, puts
//! idle actors to sleep, and notices the end of each. Messages for an actor that is going to sleep
//! wait until it has ended: the open of its successor must pass the journal behind its last Record.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use ledger::id::{IdMap, LedgerId};
use parking_lot::Mutex;
use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};

use crate::actor::{ActorContext, Message, OwnerActor};
use crate::load::LargeRecords;
use crate::resident::OwnerMachine;

/// The actors of one kind: merchants or recipients.
pub(crate) struct Directory<B: OwnerMachine> {
    shared: Arc<ActorContext>,
    large: Arc<LargeRecords>,
    supervisor: ActorCell,
    slots: Mutex<Slots<B>>,
}

struct Slots<B: OwnerMachine> {
    by_ledger: IdMap<LedgerId, Slot<B>>,
    /// The same ledgers in order, to go through them in parts.
    in_order: BTreeSet<LedgerId>,
    by_actor: HashMap<ActorId, LedgerId>,
}

/// How many slots are looked at before senders get the lock.
const LOOKED_AT_ONCE: usize = 128;

enum Slot<B: OwnerMachine> {
    Awake {
        /// A sender holds it too while it sends.
        actor: Arc<ActorRef<Message<B>>>,
        used_at: Instant,
        is_open: bool,
    },
    /// Going to sleep; what came since waits for the next one.
    Ending { waiting: Vec<Message<B>> },
}

impl<B: OwnerMachine> Directory<B> {
    /// An empty directory whose actors are linked to `supervisor`.
    pub(crate) fn new(shared: Arc<ActorContext>, supervisor: ActorCell) -> Arc<Self> {
        let slots = Slots { by_ledger: IdMap::default(), in_order: BTreeSet::new(), by_actor: HashMap::new() };
        Arc::new(Self { shared, large: Arc::default(), supervisor, slots: Mutex::new(slots) })
    }

    /// Sends a message to a ledger's actor, and starts the actor if it is asleep. The actor is
    /// found under the lock, and the message is sent without it. An actor to which a message is
    /// being sent is not put to sleep, so that no message reaches it after its end.
    pub(crate) fn send(&self, ledger: LedgerId, message: Message<B>) {
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
        // A dead actor drops the message, and the caller gets `OutcomeUnknown`.
        let _dead = actor.cast(message);
    }

    /// Puts actors to sleep that were not used after `limit`.
    pub(crate) fn sleep_unused(&self, limit: Instant) {
        self.look_at_all(|slot| slot.sleep_unused(limit));
    }

    /// Adds when each actor that is awake was last used.
    pub(crate) fn add_uses(&self, uses: &mut Vec<Instant>) {
        self.look_at_all(|slot| {
            if let Slot::Awake { used_at, .. } = slot {
                uses.push(*used_at);
            }
        });
    }

    /// Looks at all slots, a few at a time, so that senders do not wait for all of them.
    fn look_at_all(&self, mut look: impl FnMut(&mut Slot<B>)) {
        let mut after = Bound::Unbounded;
        while let Some(last) = self.slots.lock().look_at(after, LOOKED_AT_ONCE, &mut look) {
            after = Bound::Excluded(last);
        }
    }

    /// How many actors there are, awake or going to sleep.
    pub(crate) fn len(&self) -> usize {
        self.slots.lock().by_ledger.len()
    }

    /// An actor has opened and takes messages.
    pub(crate) fn opened(&self, actor: ActorId) {
        let mut slots = self.slots.lock();
        let Some(ledger) = slots.by_actor.get(&actor).copied() else { return };
        if let Some(Slot::Awake { is_open, .. }) = slots.by_ledger.get_mut(&ledger) {
            *is_open = true;
        }
    }

    /// An actor has ended; if messages wait for it, its successor starts.
    pub(crate) fn ended(&self, actor: ActorId) {
        let mut slots = self.slots.lock();
        let Some(ledger) = slots.by_actor.remove(&actor) else { return };
        slots.in_order.remove(&ledger);
        if let Some(Slot::Ending { waiting }) = slots.by_ledger.remove(&ledger)
            && !waiting.is_empty()
        {
            self.start(&mut slots, ledger, waiting);
        }
        self.shared.metrics.count_actors(B::KIND, -1);
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
        self.shared.metrics.count_actors(B::KIND, 1);
    }
}

impl<B: OwnerMachine> Slot<B> {
    /// Puts an actor to sleep that was not used after `limit`. An actor that is still opening is
    /// left alone: an actor that is drained before it has started is never linked to its
    /// supervisor, which would miss its end.
    fn sleep_unused(&mut self, limit: Instant) {
        if let Slot::Awake { actor, used_at, is_open: true } = self
            && *used_at <= limit
            && Arc::get_mut(actor).is_some_and(|actor| actor.drain().is_ok())
        {
            *self = Slot::Ending { waiting: Vec::new() };
        }
    }
}

impl<B: OwnerMachine> Slots<B> {
    /// Looks at the next `most` slots. Gives the last ledger that it looked at; none at the end.
    fn look_at(
        &mut self,
        after: Bound<LedgerId>,
        most: usize,
        look: &mut impl FnMut(&mut Slot<B>),
    ) -> Option<LedgerId> {
        let mut last = None;
        for ledger in self.in_order.range((after, Bound::Unbounded)).take(most) {
            last = Some(*ledger);
            self.by_ledger.get_mut(ledger).into_iter().for_each(&mut *look);
        }
        last
    }
}

/// The supervisor of all actors, which reports every one that has opened or ended.
///
/// A supervisor of ractor that is stopped or drained kills the actors below it in the middle of
/// what they do. So this one takes [`EndWhenAlone`], and ends after the last of them has.
pub(crate) struct Supervisor;

/// An event in an actor's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It takes messages.
    Opened,
    /// It is gone.
    Ended,
}

/// Callback of the supervisor, for every event of an actor's life.
pub(crate) type OnLife = Box<dyn Fn(ActorId, Life) + Send + Sync>;

/// Message to a supervisor: no more actors come.
pub(crate) struct EndWhenAlone;

/// State of a supervisor.
pub(crate) struct Supervision {
    on_life: OnLife,
    /// Actors that have opened and not ended.
    open: HashSet<ActorId>,
    is_ending: bool,
}

impl Actor for Supervisor {
    type Msg = EndWhenAlone;
    type State = Supervision;
    type Arguments = OnLife;

    async fn pre_start(
        &self,
        _myself: ActorRef<EndWhenAlone>,
        on_life: OnLife,
    ) -> Result<Supervision, ActorProcessingErr> {
        Ok(Supervision { on_life, open: HashSet::new(), is_ending: false })
    }

    async fn handle(
        &self,
        myself: ActorRef<EndWhenAlone>,
        EndWhenAlone: EndWhenAlone,
        state: &mut Supervision,
    ) -> Result<(), ActorProcessingErr> {
        state.is_ending = true;
        state.end_if_alone(&myself);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<EndWhenAlone>,
        event: SupervisionEvent,
        state: &mut Supervision,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorStarted(actor) => {
                state.open.insert(actor.get_id());
                (state.on_life)(actor.get_id(), Life::Opened);
            }
            SupervisionEvent::ActorTerminated(actor, ..) => state.ended(actor.get_id(), &myself),
            SupervisionEvent::ActorFailed(actor, error) => {
                tracing::error!(%error, "an actor failed; it starts again from the journal when it is asked for");
                state.ended(actor.get_id(), &myself);
            }
            SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl Supervision {
    fn ended(&mut self, actor: ActorId, myself: &ActorRef<EndWhenAlone>) {
        self.open.remove(&actor);
        (self.on_life)(actor, Life::Ended);
        self.end_if_alone(myself);
    }

    fn end_if_alone(&self, myself: &ActorRef<EndWhenAlone>) {
        if self.is_ending && self.open.is_empty() {
            myself.stop(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use ledger::id::GroupNumber;
    use ledger::merchant::MerchantState;
    use tokio::sync::Notify;

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
        while let Some(last) = slots.look_at(after, LOOKED_AT_ONCE, &mut |_| ()) {
            seen.push(last.group().map(|group| group.0));
            after = Bound::Excluded(last);
        }
        assert_eq!(seen, [Some(127), Some(255), Some(299)]);
    }

    /// An actor in the middle of a handler until it is released.
    struct Slow {
        entered: Arc<Notify>,
        release: Arc<Notify>,
        done: Arc<AtomicU64>,
    }

    impl Actor for Slow {
        type Msg = ();
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _myself: ActorRef<()>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }

        async fn handle(&self, _myself: ActorRef<()>, (): (), (): &mut ()) -> Result<(), ActorProcessingErr> {
            self.entered.notify_one();
            self.release.notified().await;
            self.done.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        async fn post_stop(&self, _myself: ActorRef<()>, (): &mut ()) -> Result<(), ActorProcessingErr> {
            self.done.fetch_add(100, Ordering::SeqCst);
            Ok(())
        }
    }

    #[tokio::test]
    async fn an_orderly_end_cuts_no_actor_in_the_middle_of_a_handler() {
        let (lives, mut lives_seen) = tokio::sync::mpsc::unbounded_channel();
        let on_life: OnLife = Box::new(move |_, life| lives.send(life).unwrap_or_default());
        let (supervisor, ends) = Supervisor::spawn(None, Supervisor, on_life).await.unwrap();
        let [entered, release] = [(); 2].map(|()| Arc::new(Notify::new()));
        let done = Arc::new(AtomicU64::new(0));
        let slow = Slow { entered: Arc::clone(&entered), release: Arc::clone(&release), done: Arc::clone(&done) };
        let (actor, actor_ends) = Actor::spawn_linked(None, slow, (), supervisor.get_cell()).await.unwrap();
        assert_eq!(lives_seen.recv().await, Some(Life::Opened));
        actor.cast(()).unwrap();
        actor.cast(()).unwrap();
        entered.notified().await;
        supervisor.cast(EndWhenAlone).unwrap();
        actor.drain().unwrap();
        // The supervisor has taken its message by now, and the actor is still at its first.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!ends.is_finished() && !actor_ends.is_finished());
        release.notify_one();
        entered.notified().await;
        release.notify_one();
        actor_ends.await.unwrap();
        ends.await.unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 102, "both messages were handled to their end, then it went to sleep");
        assert_eq!(lives_seen.recv().await, Some(Life::Ended));
    }

    #[tokio::test]
    async fn an_actor_that_somebody_is_sending_to_is_not_told_to_end() {
        let (actor, ends) = Actor::spawn(None, Idle, ()).await.unwrap();
        let (mut slots, ledger) = (slots(), LedgerId::Merchant(GroupNumber(1)));
        let actor = Arc::new(actor);
        let sending = Arc::clone(&actor);
        slots.by_ledger.insert(ledger, Slot::Awake { actor, used_at: Instant::now(), is_open: true });
        slots.in_order.insert(ledger);
        slots.look_at(Bound::Unbounded, LOOKED_AT_ONCE, &mut |slot| slot.sleep_unused(Instant::now()));
        assert!(matches!(slots.by_ledger[&ledger], Slot::Awake { .. }));
        drop(sending);
        slots.look_at(Bound::Unbounded, LOOKED_AT_ONCE, &mut |slot| slot.sleep_unused(Instant::now()));
        assert!(matches!(slots.by_ledger[&ledger], Slot::Ending { .. }));
        ends.await.unwrap();
    }
}
