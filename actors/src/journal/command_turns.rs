//! Turns: how many commands of callers are under way at once. The others wait for their turn in the
//! order in which they came, up to a deadline.
//!
//! A command has its turn until its decision is durable and its reply leaves. Calls that wait for
//! an acquirer have none. So a command that has its turn is quick also under overload, and the time
//! that callers wait passes here, where it has an end.
//!
//! While all turns are taken, a merchant with less than its fair share of them is let in at once,
//! out of as many turns again: one hot merchant cannot starve the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicUsize, Ordering};

use ledger::id::GroupNumber;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many places merchants are counted in. Two that share a place are counted together.
const PLACES: usize = 4_096;

/// The turns, and who has them.
#[derive(Debug)]
pub(super) struct Turns {
    most: usize,
    free: Arc<Semaphore>,
    /// For merchants below their share while no other turn is free.
    of_share: Arc<Semaphore>,
    /// Turns taken, by merchant.
    places: Box<[AtomicU32]>,
    /// Places that have any.
    merchants: AtomicUsize,
    waiting: AtomicI64,
}

/// The turn of a command, or of several that are carried out together; it is given back when it is
/// dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    place: Option<usize>,
    held: OwnedSemaphorePermit,
}

impl Turns {
    /// So many turns, all free.
    pub(super) fn new(most: usize) -> Arc<Self> {
        let [free, of_share] = [(); 2].map(|()| Arc::new(Semaphore::new(most)));
        let places = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        let (merchants, waiting) = Default::default();
        Arc::new(Self { most, free, of_share, places, merchants, waiting })
    }

    /// Waits for the turn of commands of a merchant.
    pub(super) async fn take(self: &Arc<Self>, group: Option<GroupNumber>, commands: u32) -> Turn {
        let (place, commands) = (group.map(place), commands.min(self.most as u32));
        if let Some(held) = self.try_take(place, commands) {
            return self.begun(place, held);
        }
        let _waiting = WaitingTurn::of(self, commands);
        let held = Arc::clone(&self.free).acquire_many_owned(commands).await.expect("turns are never closed");
        self.begun(place, held)
    }

    /// All of them where so many are free, or what is left of a merchant's fair share.
    fn try_take(&self, place: Option<usize>, commands: u32) -> Option<OwnedSemaphorePermit> {
        if let Ok(held) = Arc::clone(&self.free).try_acquire_many_owned(commands) {
            return Some(held);
        }
        let own = self.places[place?].load(Ordering::Relaxed) as usize;
        let merchants = self.merchants.load(Ordering::Relaxed) + usize::from(own == 0);
        let left = (self.most / merchants.max(1)).saturating_sub(own);
        let commands = commands.min(left as u32);
        Arc::clone(&self.of_share).try_acquire_many_owned(commands).ok().filter(|_| commands > 0)
    }

    fn begun(self: &Arc<Self>, place: Option<usize>, held: OwnedSemaphorePermit) -> Turn {
        if let Some(place) = place
            && self.places[place].fetch_add(held.num_permits() as u32, Ordering::Relaxed) == 0
        {
            self.merchants.fetch_add(1, Ordering::Relaxed);
        }
        Turn { turns: Arc::clone(self), place, held }
    }

    /// Commands that wait for their turn.
    pub(super) fn waiting(&self) -> i64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let commands = self.held.num_permits() as u32;
        if let Some(place) = self.place
            && self.turns.places[place].fetch_sub(commands, Ordering::Relaxed) == commands
        {
            self.turns.merchants.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Guard of commands that wait.
struct WaitingTurn<'a>(&'a Turns, i64);

impl<'a> WaitingTurn<'a> {
    fn of(turns: &'a Turns, commands: u32) -> Self {
        turns.waiting.fetch_add(commands.into(), Ordering::Relaxed);
        Self(turns, commands.into())
    }
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(self.1, Ordering::Relaxed);
    }
}

fn place(group: GroupNumber) -> usize {
    // Groups are numbered in order: neighbors do not share a place.
    group.0 as usize % PLACES
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const HOT: GroupNumber = GroupNumber(1);

    /// Takes turns of a merchant until one would wait.
    fn take_all(turns: &Arc<Turns>, group: GroupNumber, taken: &mut Vec<Turn>) -> usize {
        let before = taken.len();
        taken.extend(std::iter::from_fn(|| turns.take(Some(group), 1).now_or_never()));
        taken.len() - before
    }

    #[test]
    fn one_hot_merchant_does_not_starve_the_others() {
        let (turns, mut taken) = (Turns::new(240), Vec::new());
        let counts = [1, 1, 2, 3, 4].map(|group| take_all(&turns, GroupNumber(group), &mut taken));
        assert_eq!(counts, [240, 0, 120, 80, 40], "half, a third, and what is left of as many again");
        assert!(turns.take(None, 1).now_or_never().is_none(), "a request without a merchant has no share");
        taken.clear();
        assert_eq!((turns.merchants.load(Ordering::Relaxed), turns.waiting()), (0, 0));
        assert!(turns.take(None, 1).now_or_never().is_some());
    }

    #[test]
    fn commands_that_are_carried_out_together_count_each() {
        let turns = Turns::new(8);
        let take = |group, commands| turns.take(Some(GroupNumber(group)), commands).now_or_never();
        let count = |turn: &Option<Turn>| turn.as_ref().map(|turn| turn.held.num_permits());
        let taken = [(1, 6), (1, 3), (1, 3), (2, 4), (3, 3), (4, 64)].map(|(group, commands)| take(group, commands));
        let counts = [Some(6), Some(2), None, Some(4), Some(2), None];
        assert_eq!(taken.each_ref().map(count), counts, "what is free, and then what is left of a fair share");
        assert_eq!(turns.waiting(), 0);
        drop(taken);
        assert_eq!(count(&turns.take(None, 100).now_or_never()), Some(8), "more than there are have all of them");
        assert_eq!(turns.merchants.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn the_first_to_wait_is_the_first_to_have_its_turn() {
        let (turns, mut taken) = (Turns::new(1), Vec::new());
        assert_eq!(take_all(&turns, HOT, &mut taken), 1);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(turns.take(Some(HOT), 1))).collect();
        assert!(waiting.iter_mut().all(|turn| turn.now_or_never().is_none()));
        assert_eq!(turns.waiting(), 3);
        drop(waiting.remove(1));
        taken.clear();
        assert!((&mut waiting[1]).now_or_never().is_none());
        let first = (&mut waiting[0]).await;
        assert_eq!(turns.waiting(), 1, "one gave up, one has its turn");
        drop(first);
        waiting.pop().expect("the last").await;
    }
}
