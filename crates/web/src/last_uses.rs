//! Last uses of API keys, by minute, in memory.
//!
//! Memory is fixed: 1 MiB for at most 131,072 keys, in sets of four. A new key of a full set takes
//! the place of the least recently used. A request reads the places of its key's set, and
//! writes one at most once a minute. There is no lock, and nothing survives a restart.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::{Minute, ObjectId, Timestamp};

/// Sets of places. The marks of two keys in one set differ.
const SETS: usize = 32_768;
/// Places of a set.
const PLACES: usize = 4;
/// Low bits of a place: the minute of the last use, 0 where there was none. They last until 2480.
const MINUTE_MASK: u64 = (1 << 28) - 1;

/// The last uses of API keys since the process began.
pub struct LastUses {
    hasher: RandomState,
    /// A place: the mark of its key, 36 bits of the key's hash, above the minute.
    sets: Box<[[AtomicU64; PLACES]]>,
}

impl Default for LastUses {
    fn default() -> Self {
        let sets = (0..SETS).map(|_| [const { AtomicU64::new(0) }; PLACES]).collect();
        Self { hasher: RandomState::new(), sets }
    }
}

impl LastUses {
    /// Notes that a key opened a request.
    pub fn note(&self, key: ObjectId, now: Timestamp) {
        let (set, mark) = self.set_of(key);
        let used = mark | minute(now);
        let mut oldest: Option<(u64, &AtomicU64)> = None;
        for place in set {
            let noted = place.load(Ordering::Relaxed);
            if noted & !MINUTE_MASK == mark {
                if noted < used {
                    place.store(used, Ordering::Relaxed);
                }
                return;
            }
            let at = noted & MINUTE_MASK;
            if oldest.is_none_or(|(before, _)| at < before) {
                oldest = Some((at, place));
            }
        }
        if let Some((_, place)) = oldest {
            place.store(used, Ordering::Relaxed);
        }
    }

    /// The begin of the minute in which a key was last used. `None` if unused since the process
    /// began, or evicted by other keys.
    pub fn of(&self, key: ObjectId) -> Option<Timestamp> {
        let (set, mark) = self.set_of(key);
        let noted = set.iter().map(|place| place.load(Ordering::Relaxed));
        // Two first uses at once may have taken two places.
        let last = noted.filter(|noted| noted & !MINUTE_MASK == mark).max()? & MINUTE_MASK;
        u32::try_from(last).ok().filter(|last| *last > 0).map(|last| Minute(last).start())
    }

    fn set_of(&self, key: ObjectId) -> (&[AtomicU64; PLACES], u64) {
        let hash = self.hasher.hash_one(key);
        (&self.sets[hash as usize % SETS], hash & !MINUTE_MASK)
    }
}

fn minute(now: Timestamp) -> u64 {
    u64::from(now.minute().0).min(MINUTE_MASK)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(1_795_300_000_250);

    #[test]
    fn a_use_is_known_by_its_minute_and_never_goes_back() {
        let (uses, key) = (LastUses::default(), ObjectId(7));
        assert_eq!(uses.of(key), None);
        uses.note(key, AT);
        assert_eq!(uses.of(key), Some(AT.minute().start()));
        uses.note(key, AT.plus_ms(60_000));
        uses.note(key, AT);
        assert_eq!(uses.of(key), Some(AT.plus_ms(60_000).minute().start()));
        assert_eq!(uses.of(ObjectId(8)), None, "of another key");
    }

    #[test]
    fn a_place_is_written_once_a_minute() {
        let (uses, key) = (LastUses::default(), ObjectId(7));
        uses.note(key, AT);
        let (set, mark) = uses.set_of(key);
        let place = set.iter().find(|place| place.load(Ordering::Relaxed) & !MINUTE_MASK == mark).unwrap();
        // What is later than the minute shows that a use within it wrote nothing.
        let later = mark | minute(AT.plus_ms(120_000));
        place.store(later, Ordering::Relaxed);
        uses.note(key, AT.plus_ms(20_000));
        assert_eq!(place.load(Ordering::Relaxed), later);
        assert_eq!(set.iter().filter(|place| place.load(Ordering::Relaxed) != 0).count(), 1);
    }

    #[test]
    fn a_full_set_forgets_the_key_that_was_used_longest_ago() {
        let uses = LastUses::default();
        let first = ObjectId(1);
        let set = uses.set_of(first).0.as_ptr();
        let others = (2..).map(ObjectId).filter(|key| uses.set_of(*key).0.as_ptr() == set);
        let keys: Vec<_> = [first].into_iter().chain(others.take(PLACES)).collect();
        for (number, key) in keys.iter().enumerate() {
            uses.note(*key, AT.plus_ms(number as i64 * 60_000));
        }
        let known: Vec<_> = keys.iter().map(|key| uses.of(*key).is_some()).collect();
        assert_eq!(known, [false, true, true, true, true]);
    }

    /// Of 65,536 keys nearly all are known, each by its own minute.
    #[test]
    fn no_key_has_the_use_of_another() {
        let uses = LastUses::default();
        let at = |number: u128| AT.plus_ms(number as i64 % 1_000 * 60_000);
        for number in 0..65_536 {
            uses.note(ObjectId(number), at(number));
        }
        let known = (0..65_536).filter_map(|number| Some((number, uses.of(ObjectId(number))?)));
        let mut count = 0;
        for (number, used) in known {
            assert_eq!(used, at(number).minute().start());
            count += 1;
        }
        assert!(count > 60_000, "{count}");
    }
}
