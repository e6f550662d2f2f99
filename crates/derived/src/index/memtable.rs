//! Memtable of the index: for each key the last Records that have it, in memory, until they are
//! written to a file as a sorted run.

use ledger::recipient::credits;
use ledger::{GroupNumber, IdMap, LedgerId, Record};

use super::key::{Balances, IndexKey, LedgerList, occurrences, words_of};
use super::numbers::Numbers;
use super::run::{Builder, Cover, zigzag};
use super::search_key::{FoundKind, SearchKey, plain_values};

/// The lists of a range of Records, in memory.
#[derive(Debug, Default)]
pub(super) struct Recent {
    pub(super) cover: Option<Cover>,
    pub(super) occurrences: usize,
    pub(super) lists: IdMap<IndexKey, Numbers>,
}

impl Recent {
    pub(super) fn records(&self) -> u64 {
        self.cover.map_or(0, |cover| cover.last - cover.first + 1)
    }

    /// Adds a Record to the lists, with the keys of its personal data, and gives its own keys
    /// ([`Record::keys`]) to `keep`.
    pub(super) fn count(
        &mut self,
        sequence: u64,
        record: &Record,
        personal: &[(SearchKey, FoundKind)],
        balances: &mut IdMap<GroupNumber, Balances>,
        mut keep: impl FnMut(IndexKey),
    ) {
        let at_ms = record.effective_at.0;
        let cover = self.cover.get_or_insert(Cover { first: sequence, last: sequence, latest_ms: at_ms });
        (cover.last, cover.latest_ms) = (sequence, cover.latest_ms.max(at_ms));
        each_occurrence(sequence, record, balances, |key, occurrence| {
            self.occurrences += 1;
            if key.is_of_record() {
                keep(key);
            }
            match occurrence {
                [number] => {
                    let number = *number;
                    let lists = self.lists.entry(key);
                    lists.and_modify(|list| list.add(number)).or_insert(Numbers::One(number));
                }
                occurrence => self.add_with(key, occurrence),
            }
        });
        self.occurrences += personal.len();
        personal.iter().for_each(|(key, found)| self.add_with(key.list, &[sequence, key.word(*found)]));
    }

    /// Adds an occurrence of several words at the end of a list.
    fn add_with(&mut self, key: IndexKey, occurrence: &[u64]) {
        let list = self.lists.entry(key).or_insert_with(|| Numbers::Many(Vec::new())).many();
        list.extend(occurrence);
    }

    /// The run of these lists, as bytes; none without Records.
    pub(super) fn to_run(&self) -> Option<(Cover, Vec<u8>)> {
        let cover = self.cover?;
        let mut builder = Builder::new(cover.first, Vec::new());
        let mut lists: Vec<_> = self.lists.iter().map(|(key, list)| (*key, list.as_slice())).collect();
        lists.sort_unstable();
        let write = move || {
            for (key, list) in lists {
                list.chunks(key.width()).try_for_each(|occurrence| builder.push(key, occurrence))?;
            }
            builder.finish(cover)
        };
        Some((cover, write().expect("writing into memory cannot fail")))
    }
}

/// Calls `post` for every occurrence of a Record that follows from it alone: the key of its list,
/// and its words. Updates the merchant's balances.
pub(super) fn each_occurrence(
    sequence: u64,
    record: &Record,
    balances: &mut IdMap<GroupNumber, Balances>,
    mut post: impl FnMut(IndexKey, &[u64]),
) {
    occurrences(sequence, record, |key, number| post(key, &[number]));
    for (ledger, credit) in credits::changed(record) {
        let [due, amount] = words_of(credit);
        post(IndexKey::of(LedgerList::Changed, ledger), &[sequence, due, amount]);
    }
    plain_values(record, |key, found| post(key.list, &[sequence, key.word(found)]));
    if let Some(group) = moves_money_of(record) {
        let merchant = LedgerId::Merchant(group);
        let balances = balances.entry(group).or_default();
        record.entries_of(merchant).for_each(|entry| balances.post(entry));
        let [pending, available, reserved] = balances.0.map(zigzag);
        post(IndexKey::entries(merchant), &[sequence, pending, available, reserved]);
    }
}

/// The group of the merchant whose ledger a Record has an entry of.
pub(super) fn moves_money_of(record: &Record) -> Option<GroupNumber> {
    let group = record.owner.group()?;
    record.entries_of(LedgerId::Merchant(group)).next().map(|_| group)
}
