//! New ids, each given once: an object opened under an id that is in use would take the place of
//! the other.
//!
//! An id holds the millisecond of its making and 42 random bits, which collide about once a year at
//! full speed. Ids of different milliseconds differ, the clock never goes back, and after a start
//! ids are of later milliseconds than the whole journal. So it is enough to remember the random
//! bits of the current millisecond.

use std::collections::HashSet;

use ledger::{GroupNumber, IdKey, ObjectId, Timestamp};
use parking_lot::Mutex;

/// The bits of a number that are in an id.
const RANDOM_BITS: u64 = (1 << 42) - 1;

/// Makes ids and remembers those of the current millisecond.
#[derive(Default)]
pub(super) struct NewIds {
    given: Mutex<GivenIds>,
}

#[derive(Default)]
struct GivenIds {
    at: Timestamp,
    random: HashSet<u64>,
}

impl NewIds {
    /// From now on ids are of later milliseconds than `before`, when the last block of a journal
    /// was booked. A clock that stands there until wall time has caught up gives ids of the next
    /// millisecond.
    pub(super) fn begin_after(&self, before: Timestamp) {
        let (mut given, begin) = (self.given.lock(), before.plus_ms(1));
        if given.at < begin {
            *given = GivenIds { at: begin, random: HashSet::new() };
        }
    }

    /// An id of a group. `now` is the engine's clock, and `random` gives random bits until there
    /// are some that are new.
    pub(super) fn draw<E>(
        &self,
        ids: &IdKey,
        group: GroupNumber,
        now: impl FnOnce() -> Timestamp,
        mut random: impl FnMut() -> Result<u64, E>,
    ) -> Result<ObjectId, E> {
        let mut given = self.given.lock();
        // Within the lock: a time that was read earlier might belong to a forgotten millisecond.
        let now = now();
        if given.at < now {
            *given = GivenIds { at: now, random: HashSet::new() };
        }
        loop {
            let bits = random()? & RANDOM_BITS;
            if given.random.insert(bits) {
                return Ok(ids.object(group, given.at, bits));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn no_id_is_given_twice() {
        let first = Timestamp(1_790_000_000_000);
        let (new_ids, ids) = (NewIds::default(), IdKey::new([3; 16]));
        new_ids.begin_after(first);
        // Random values that repeat; bits above those of an id make no difference.
        let mut chance = [7, 7, 7 | 1 << 42, 8, 7, 8].into_iter();
        let mut draw = |now: Timestamp| {
            let drawn = new_ids.draw(&ids, GroupNumber(1), || now, || Ok::<_, Infallible>(chance.next().unwrap_or(9)));
            drawn.unwrap()
        };
        let (held, later) = (first.plus_ms(1), first.plus_ms(2));
        let given = [draw(first), draw(held), draw(later), draw(later), draw(later)];
        assert_eq!(given.map(ObjectId::created_at), [held, held, later, later, later]);
        let numbers = given.map(|id| ids.object_number(id));
        assert_eq!(numbers, [7, 8, 7, 8, 9]);
        assert_eq!(HashSet::from(given).len(), given.len());
    }
}
