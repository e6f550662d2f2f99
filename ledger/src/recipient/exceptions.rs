//! Exceptions among pending card splits: a split that was anticipated, or partly taken back,
//! differs from the others of its minute. It stays until the minute is over.

use std::collections::BTreeMap;

use minicbor::decode::Error;

use crate::event::SplitKey;
use crate::section::{Section, TouchedSections};
use crate::{Centavos, Minute, ObjectId};

/// The splits of one charge fall due together: an hour of a busy shop is a few kilobytes.
const MINUTES_PER_SECTION: u32 = 60;

/// How a split differs from the others of its minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exception {
    /// Taken back from it while it was pending.
    pub(super) taken: Centavos,
    /// True when it is not pending any more.
    pub(super) anticipated: bool,
}

/// The exceptions of a recipient, by due minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Exceptions {
    by_due: BTreeMap<(Minute, SplitKey), Exception>,
    touched: TouchedSections,
}

impl Exceptions {
    pub(super) fn get(&self, due: Minute, split: SplitKey) -> Exception {
        self.by_due.get(&(due, split)).copied().unwrap_or_default()
    }

    pub(super) fn change(&mut self, due: Minute, split: SplitKey, change: impl FnOnce(&mut Exception)) {
        change(self.by_due.entry((due, split)).or_default());
        self.touched.touch(section_of(due));
    }

    /// Lowers what was taken of a split. One that is forgotten stays so, in whatever order the
    /// Records came.
    pub(super) fn give_back(&mut self, due: Minute, split: SplitKey, amount: Centavos) {
        if let Some(exception) = self.by_due.get_mut(&(due, split)) {
            exception.taken -= amount;
            self.touched.touch(section_of(due));
        }
    }

    /// Forgets the splits of this minute and of earlier ones.
    pub(super) fn forget_through(&mut self, minute: Minute) {
        while let Some(first) = self.by_due.first_entry().filter(|first| first.key().0 <= minute) {
            self.touched.touch(section_of(first.key().0));
            first.remove();
        }
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[due, split, taken, anticipated], …]`; `None` if there is
    /// nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let first = u32::try_from(number).ok()?.checked_mul(MINUTES_PER_SECTION)?;
        let last = first.saturating_add(MINUTES_PER_SECTION - 1);
        let key = |minute, charge, index| (Minute(minute), SplitKey { charge: ObjectId(charge), index });
        let there = self.by_due.range(key(first, 0, 0)..=key(last, u128::MAX, u32::MAX));
        let there: Vec<_> =
            there.map(|((due, split), exception)| (due, split, exception.taken, exception.anticipated)).collect();
        (!there.is_empty()).then(|| minicbor::to_vec(there).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let there: Vec<(Minute, SplitKey, Centavos, bool)> = minicbor::decode(bytes)?;
        let there =
            there.into_iter().map(|(due, split, taken, anticipated)| ((due, split), Exception { taken, anticipated }));
        self.by_due.extend(there);
        Ok(())
    }
}

fn section_of(minute: Minute) -> u64 {
    u64::from(minute.0 / MINUTES_PER_SECTION)
}
