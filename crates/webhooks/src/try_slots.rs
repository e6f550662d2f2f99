//! Connection slots and memory for bodies, which the tries at all endpoints share.
//!
//! Slots are shared by max-min fairness. There are two pools, so that endpoints that fail or are
//! slow take nothing from those that answer. In each pool, a free slot goes to the endpoint with
//! the fewest tries under way; among equals, to the longest waiting. An endpoint gets
//! no slot while it has as many tries under way as there are free slots (the dynamic threshold of
//! shared-memory switches). One endpoint alone therefore gets half of a pool. `n` endpoints that
//! keep all slots they get leave one part in `n + 1` free: another endpoint does not wait for them.
//!
//! Pure: it does not wait, call or read a clock.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

/// Most connections to receivers at once: the file descriptors that webhooks may take. A quarter of
/// them is for endpoints that fail or are slow. By estimate, one takes 40 KB with TLS.
pub const CONNECTIONS_MAX: usize = 2_666;
/// Most tries that one endpoint can have under way: half of the pool for endpoints that answer,
/// and about as many as events wait at it.
pub(super) const AT_ONCE_MAX: usize = 1_000;

/// Most bytes that the bodies of the tries under way take together.
const BODY_BYTES_MAX: usize = 64 << 20;

/// The pool whose slots an endpoint's tries take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pool {
    /// For endpoints whose last try was answered soon, and for those that were not tried yet.
    #[default]
    Answering,
    /// For endpoints whose last try failed or was answered late.
    Troubled,
}

/// Free slots of both pools, and the endpoints that ask for one.
#[derive(Debug)]
pub(super) struct Slots<E> {
    answering: Share<E>,
    troubled: Share<E>,
    asking: BTreeMap<E, (Pool, Place)>,
    asked_count: u64,
}

/// Place in a pool's queue: tries under way, then the turn in which the endpoint began to ask.
type Place = (usize, u64);

#[derive(Debug)]
struct Share<E> {
    free: usize,
    queue: BTreeSet<(Place, E)>,
}

impl<E: Copy + Ord> Slots<E> {
    /// `count` slots in both pools together.
    pub(super) fn new(count: usize) -> Self {
        Self::of(count - count / 4, count / 4)
    }

    fn of(answering: usize, troubled: usize) -> Self {
        let share = |free| Share { free, queue: BTreeSet::new() };
        Self { answering: share(answering), troubled: share(troubled), asking: BTreeMap::new(), asked_count: 0 }
    }

    /// Asks for a slot of a pool, for an endpoint with this number of tries under way. An endpoint
    /// that asks already keeps its turn.
    pub(super) fn ask(&mut self, endpoint: E, pool: Pool, under_way: usize) {
        let turn = match self.withdraw(endpoint) {
            Some((_, turn)) => turn,
            None => {
                self.asked_count += 1;
                self.asked_count
            }
        };
        let place = (under_way, turn);
        self.asking.insert(endpoint, (pool, place));
        self.share(pool).queue.insert((place, endpoint));
    }

    /// Withdraws an endpoint's request for a slot.
    pub(super) fn withdraw(&mut self, endpoint: E) -> Option<Place> {
        let (pool, place) = self.asking.remove(&endpoint)?;
        self.share(pool).queue.remove(&(place, endpoint));
        Some(place)
    }

    /// Grants the next free slot: gives the endpoint and the pool. It must ask again for another.
    pub(super) fn grant(&mut self) -> Option<(E, Pool)> {
        let pool = [Pool::Answering, Pool::Troubled].into_iter().find(|pool| self.share(*pool).can_grant())?;
        let share = self.share(pool);
        let (_, endpoint) = share.queue.pop_first()?;
        share.free -= 1;
        self.asking.remove(&endpoint);
        Some((endpoint, pool))
    }

    /// Frees a slot of this pool, after a try has ended.
    pub(super) fn release(&mut self, pool: Pool) {
        self.share(pool).free += 1;
    }

    fn share(&mut self, pool: Pool) -> &mut Share<E> {
        match pool {
            Pool::Answering => &mut self.answering,
            Pool::Troubled => &mut self.troubled,
        }
    }
}

impl<E: Ord> Share<E> {
    fn can_grant(&self) -> bool {
        self.queue.first().is_some_and(|((under_way, _), _)| *under_way < self.free)
    }
}

/// Bound on the bytes of all bodies of tries under way. An endpoint gets no more while its own
/// bodies take as much as is free, so that one with large bodies leaves some for the others.
#[derive(Debug)]
pub(super) struct BodyRoom<E: Copy + Ord>(Mutex<Bodies<E>>);

#[derive(Debug)]
struct Bodies<E> {
    free: usize,
    held: BTreeMap<E, usize>,
}

/// Permit for the bytes of one body, until it is dropped.
#[derive(Debug)]
pub(super) struct BodyPermit<'a, E: Copy + Ord> {
    room: &'a BodyRoom<E>,
    endpoint: E,
    bytes: usize,
}

impl<E: Copy + Ord> Default for BodyRoom<E> {
    fn default() -> Self {
        Self(Mutex::new(Bodies { free: BODY_BYTES_MAX, held: BTreeMap::new() }))
    }
}

impl<E: Copy + Ord> BodyRoom<E> {
    /// A permit for one body; `None` if there is not enough left for this endpoint.
    pub(super) fn take(&self, endpoint: E, bytes: usize) -> Option<BodyPermit<'_, E>> {
        let mut bodies = self.0.lock();
        let held = bodies.held.get(&endpoint).copied().unwrap_or_default();
        if held >= bodies.free || bytes > bodies.free {
            return None;
        }
        bodies.free -= bytes;
        bodies.held.insert(endpoint, held + bytes);
        Some(BodyPermit { room: self, endpoint, bytes })
    }
}

impl<E: Copy + Ord> Drop for BodyPermit<'_, E> {
    fn drop(&mut self) {
        let mut bodies = self.room.0.lock();
        bodies.free += self.bytes;
        let Some(held) = bodies.held.get_mut(&self.endpoint) else { return };
        *held -= self.bytes;
        if *held == 0 {
            bodies.held.remove(&self.endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Endpoints that always want one more, and end nothing by themselves.
    struct Hogs {
        slots: Slots<u32>,
        under_way: BTreeMap<u32, usize>,
    }

    impl Hogs {
        fn new(answering: usize, troubled: usize) -> Self {
            Self { slots: Slots::of(answering, troubled), under_way: BTreeMap::new() }
        }

        fn ask(&mut self, endpoint: u32, pool: Pool) {
            let under_way = *self.under_way.entry(endpoint).or_default();
            self.slots.ask(endpoint, pool, under_way);
        }

        /// Grants what can be granted; everyone asks again at once. Gives who got a slot, in order.
        fn grant_all(&mut self) -> Vec<u32> {
            let mut granted = Vec::new();
            while let Some((endpoint, pool)) = self.slots.grant() {
                *self.under_way.get_mut(&endpoint).unwrap() += 1;
                granted.push(endpoint);
                self.ask(endpoint, pool);
            }
            granted
        }

        /// As many slots as a server has.
        fn served() -> Self {
            Self { slots: Slots::new(CONNECTIONS_MAX), under_way: BTreeMap::new() }
        }

        fn end_one(&mut self, endpoint: u32, pool: Pool) {
            *self.under_way.get_mut(&endpoint).unwrap() -= 1;
            self.slots.release(pool);
        }
    }

    #[test]
    fn the_pools_take_the_descriptors_that_webhooks_may_take() {
        let mut hogs = Hogs::served();
        (0..6_000).for_each(|hog| hogs.ask(hog, [Pool::Answering, Pool::Troubled][hog as usize % 2]));
        assert_eq!(hogs.grant_all().len(), CONNECTIONS_MAX);
    }

    #[test]
    fn large_bodies_take_no_more_than_their_room_and_leave_some_for_others() {
        const LARGE: usize = 4 << 20;
        let room = BodyRoom::default();
        let one: Vec<_> = std::iter::from_fn(|| room.take(1, LARGE)).collect();
        assert_eq!(one.len() * LARGE, BODY_BYTES_MAX / 2, "one endpoint alone gets half");
        let others: Vec<_> = (2..100).map_while(|endpoint| room.take(endpoint, LARGE)).collect();
        assert_eq!((one.len() + others.len()) * LARGE, BODY_BYTES_MAX);
        drop(others);
        let others: Vec<_> = std::iter::from_fn(|| room.take(2, LARGE)).collect();
        assert_eq!(others.len() * LARGE, BODY_BYTES_MAX / 4);
        assert!(room.take(3, 1_000).is_some(), "another one needs not wait");
        drop((one, others));
        let bodies = room.0.lock();
        assert_eq!((bodies.free, bodies.held.len()), (BODY_BYTES_MAX, 0));
    }

    #[test]
    fn one_endpoint_alone_gets_half_of_a_pool() {
        let mut hogs = Hogs::served();
        hogs.ask(1, Pool::Answering);
        hogs.grant_all();
        assert_eq!(hogs.under_way[&1], AT_ONCE_MAX);
    }

    #[test]
    fn however_many_hold_what_they_get_another_needs_not_wait() {
        for count in [1, 2, 60, 192, 383, 767, 1_999] {
            let mut hogs = Hogs::served();
            (0..count).for_each(|hog| hogs.ask(hog, Pool::Answering));
            hogs.grant_all();
            let [least, most] = [hogs.under_way.values().min().unwrap(), hogs.under_way.values().max().unwrap()];
            assert!(*least > 0 && most - least <= 1, "{count} hogs hold {least} to {most} each");
            hogs.ask(9_999, Pool::Answering);
            assert_eq!(hogs.slots.grant(), Some((9_999, Pool::Answering)), "beside {count} hogs");
        }
    }

    #[test]
    fn those_that_fail_take_nothing_from_those_that_answer() {
        let mut hogs = Hogs::new(4, 3);
        (0..10).for_each(|hog| hogs.ask(hog, Pool::Troubled));
        assert_eq!(hogs.grant_all(), [0, 1, 2]);
        hogs.ask(20, Pool::Answering);
        assert_eq!(hogs.grant_all(), [20, 20]);
    }

    #[test]
    fn when_there_are_more_endpoints_than_slots_each_has_its_turn() {
        let mut hogs = Hogs::new(2, 0);
        (0..5).for_each(|hog| hogs.ask(hog, Pool::Answering));
        let mut served = hogs.grant_all();
        assert_eq!(served, [0, 1]);
        for ended in [1, 0, 2, 3, 4, 1] {
            hogs.end_one(ended, Pool::Answering);
            hogs.ask(ended, Pool::Answering);
            served.extend(hogs.grant_all());
        }
        assert_eq!(served, [0, 1, 2, 3, 4, 0, 1, 2], "in the order in which they asked");
    }

    #[test]
    fn who_has_more_under_way_comes_after_who_has_less() {
        let mut slots = Slots::of(16, 0);
        slots.ask('a', Pool::Answering, 3);
        slots.ask('b', Pool::Answering, 1);
        slots.ask('c', Pool::Answering, 1);
        slots.ask('d', Pool::Answering, 0);
        slots.ask('d', Pool::Answering, 2);
        let order: Vec<_> = std::iter::from_fn(|| slots.grant()).map(|(endpoint, _)| endpoint).collect();
        assert_eq!(order, ['b', 'c', 'd', 'a']);
    }

    #[test]
    fn who_withdraws_gets_nothing_and_what_ends_is_free_again() {
        let mut slots = Slots::of(1, 1);
        slots.ask('a', Pool::Answering, 0);
        slots.ask('a', Pool::Troubled, 0);
        assert_eq!(slots.grant(), Some(('a', Pool::Troubled)), "it asks once");
        slots.ask('b', Pool::Troubled, 0);
        assert_eq!(slots.grant(), None);
        slots.ask('c', Pool::Troubled, 0);
        slots.withdraw('b');
        slots.release(Pool::Troubled);
        assert_eq!((slots.grant(), slots.grant()), (Some(('c', Pool::Troubled)), None));
    }
}
