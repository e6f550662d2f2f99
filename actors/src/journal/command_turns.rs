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

/// The turn of a command; it is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    place: Option<usize>,
    _held: OwnedSemaphorePermit,
}

impl Turns {
    /// So many turns, all free.
    pub(super) fn new(most: usize) -> Arc<Self> {
        let [free, of_share] = [(); 2].map(|()| Arc::new(Semaphore::new(most)));
        let places = (0..PLACES).map(|_| AtomicU32::new(0)).collect();
        let (merchants, waiting) = Default::default();
        Arc::new(Self { most, free, of_share, places, merchants, waiting })
    }

    /// Waits for the turn of a command of a merchant.
    pub(super) async fn take(self: &Arc<Self>, group: Option<GroupNumber>) -> Turn {
        let place = group.map(place);
        if let Some(held) = self.try_take(place) {
            return self.begun(place, held);
        }
        let _waiting = WaitingTurn::one_of(self);
        let held = Arc::clone(&self.free).acquire_owned().await.expect("turns are never closed");
        self.begun(place, held)
    }

    fn try_take(&self, place: Option<usize>) -> Option<OwnedSemaphorePermit> {
        if let Ok(held) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(held);
        }
        let own = self.places[place?].load(Ordering::Relaxed) as usize;
        let merchants = self.merchants.load(Ordering::Relaxed) + usize::from(own == 0);
        let is_below_share = own < self.most / merchants.max(1);
        Arc::clone(&self.of_share).try_acquire_owned().ok().filter(|_| is_below_share)
    }

    fn begun(self: &Arc<Self>, place: Option<usize>, held: OwnedSemaphorePermit) -> Turn {
        if let Some(place) = place
            && self.places[place].fetch_add(1, Ordering::Relaxed) == 0
        {
            self.merchants.fetch_add(1, Ordering::Relaxed);
        }
        Turn { turns: Arc::clone(self), place, _held: held }
    }

    /// Commands that wait for their turn.
    pub(super) fn waiting(&self) -> i64 {
        self.waiting.load(Ordering::Relaxed)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(place) = self.place
            && self.turns.places[place].fetch_sub(1, Ordering::Relaxed) == 1
        {
            self.turns.merchants.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Guard of a command that waits.
struct WaitingTurn<'a>(&'a Turns);

impl<'a> WaitingTurn<'a> {
    fn one_of(turns: &'a Turns) -> Self {
        turns.waiting.fetch_add(1, Ordering::Relaxed);
        Self(turns)
    }
}

impl Drop for WaitingTurn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
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
        taken.extend(std::iter::from_fn(|| turns.take(Some(group)).now_or_never()));
        taken.len() - before
    }

    #[test]
    fn one_hot_merchant_does_not_starve_the_others() {
        let (turns, mut taken) = (Turns::new(240), Vec::new());
        let counts = [1, 1, 2, 3, 4].map(|group| take_all(&turns, GroupNumber(group), &mut taken));
        assert_eq!(counts, [240, 0, 120, 80, 40], "half, a third, and what is left of as many again");
        assert!(turns.take(None).now_or_never().is_none(), "a request without a merchant has no share");
        taken.clear();
        assert_eq!((turns.merchants.load(Ordering::Relaxed), turns.waiting()), (0, 0));
        assert!(turns.take(None).now_or_never().is_some());
    }

    #[tokio::test]
    async fn the_first_to_wait_is_the_first_to_have_its_turn() {
        let (turns, mut taken) = (Turns::new(1), Vec::new());
        assert_eq!(take_all(&turns, HOT, &mut taken), 1);
        let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(turns.take(Some(HOT)))).collect();
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
