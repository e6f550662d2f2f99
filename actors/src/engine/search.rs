//! Search over all merchants: the Records with a value that somebody has in hand, by the index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ledger::charge::Charge;
use ledger::object::Object;
use ledger::{Event, GroupNumber, ObjectId, Record, Timestamp};

use super::Engine;
use super::reads::LOOKED_UP_AT_ONCE;
use super::shard::Shard;
use derived::index::{FoundKind, IndexKey, ObjectList, SearchKey, Slice};
use derived::personal_index::PersonalValue;
use derived::records::{Result, booked_records, may_wait};
use store::{Position, Sequence};

/// Records of one partition that are counted before older months are left out.
const COUNTED_MAX: usize = 10_000;

/// A value that is searched for.
#[derive(Clone, Debug)]
pub enum SoughtValue {
    /// A value that is not sealed.
    Plain(SearchKey),
    /// The beginning of a txid: 8 hexadecimal digits or more, in small letters.
    Txid(String),
    /// All of these personal values, of one Record.
    Personal(Vec<PersonalValue>),
}

/// Records that are listed, newest first.
#[derive(Clone, Copy, Debug)]
pub enum RecordList<'a> {
    /// Those that made things of a list.
    Of(ObjectList),
    /// Those that have one of these values, and make what is of these kinds.
    With(&'a [SoughtValue], &'a [FoundKind]),
    /// Those that opened these charges.
    Opening(&'a BTreeSet<ObjectId>),
}

/// Records with a value that make things of one kind.
#[derive(Debug, Default)]
pub struct FoundRecords {
    /// How many there are.
    pub total: usize,
    /// True when there are more, of older months that were not looked at.
    pub is_more: bool,
    /// The newest of them, newest first, with their places.
    pub newest: Vec<(Position, Record)>,
}

/// The Records of a list in one partition, newest first, from a place on.
pub(super) type ListPage = Box<dyn Fn(&Shard, u64) -> Result<Vec<Sequence>>>;

/// Sequences of one partition's Records by kind, lowest first.
type Sequences = BTreeMap<FoundKind, Vec<Sequence>>;

impl Engine {
    /// The published Records with one of these values, by what they make, and the newest of each
    /// kind: `most` of it. Only the newest are opened, to leave out those whose hashes are alike.
    pub fn search(
        &self,
        values: &[SoughtValue],
        most: impl Fn(FoundKind) -> usize,
    ) -> Result<BTreeMap<FoundKind, FoundRecords>> {
        may_wait(|| {
            let keys = self.keys_of(values)?;
            let mut found: BTreeMap<FoundKind, FoundRecords> = BTreeMap::new();
            let mut newest: BTreeMap<FoundKind, Vec<(Timestamp, Position, Record)>> = BTreeMap::new();
            for shard in self.shards.all() {
                let (sequences, is_more) = with_any(&shard, &keys, &FoundKind::ALL, Sequence(u64::MAX))?;
                for (kind, sequences) in sequences {
                    let of_kind = found.entry(kind).or_default();
                    of_kind.total += sequences.len();
                    of_kind.is_more |= is_more;
                    let last: Vec<_> = sequences.into_iter().rev().take(most(kind)).collect();
                    for (sequence, at, record) in booked_records(shard.part(), &last)? {
                        if self.has_any(&record, values)? {
                            newest.entry(kind).or_default().push((at, shard.position(sequence), record));
                        } else {
                            of_kind.total -= 1;
                        }
                    }
                }
            }
            for (kind, mut records) in newest {
                records.sort_by_key(|(at, position, _)| std::cmp::Reverse((*at, *position)));
                records.truncate(most(kind));
                let records = records.into_iter().map(|(_, position, record)| (position, record));
                found.entry(kind).or_default().newest = records.collect();
            }
            Ok(found)
        })
    }

    /// Gives the Records of a list in one partition through `last`, newest first, some at a time
    /// from a place on.
    pub(super) fn page_of(
        &self,
        list: RecordList<'_>,
        shard: &Shard,
        group: Option<GroupNumber>,
        last: Sequence,
    ) -> Result<ListPage> {
        let mut sequences: Vec<_> = match list {
            RecordList::Of(list) => {
                let (list, range) = (IndexKey::objects(list, group), 0..last.0.saturating_add(1));
                let page = move |shard: &Shard, passed| {
                    Ok(shard.read_model().page(list, Slice::new(range.clone(), passed, LOOKED_UP_AT_ONCE))?.1)
                };
                return Ok(Box::new(page));
            }
            RecordList::With(values, kinds) => {
                let (found, _) = may_wait(|| with_any(shard, &self.keys_of(values)?, kinds, last))?;
                found.into_values().flatten().collect()
            }
            RecordList::Opening(charges) => {
                let partition = shard.part().partition();
                let own = charges.iter().filter(|id| self.shard_with(**id).part().partition() == partition);
                let opened = own.map(|id| Ok(shard.read_model().about(*id)?.first().copied()));
                let opened = opened.collect::<Result<Vec<_>>>()?.into_iter().flatten();
                opened.filter(|sequence| *sequence <= last).collect()
            }
        };
        sequences.sort_unstable();
        sequences.dedup();
        Ok(Box::new(move |_, passed| {
            let later = sequences.iter().rev().skip(usize::try_from(passed).unwrap_or(usize::MAX));
            Ok(later.take(LOOKED_UP_AT_ONCE).copied().collect())
        }))
    }

    /// Whether a Record is one of a list: very rarely the index names one of another value.
    pub(super) fn is_listed(&self, list: RecordList<'_>, record: &Record) -> Result<bool> {
        match list {
            RecordList::With(values, _) => self.has_any(record, values),
            RecordList::Of(_) | RecordList::Opening(_) => Ok(true),
        }
    }

    /// How many charges were created in a span, as their txids say.
    pub fn charges_created(&self, from: Timestamp, to: Timestamp) -> Result<usize> {
        may_wait(|| {
            let (after, through) = (self.last_booked_before(from)?, self.last_booked_later(to)?);
            let of = |shard: Arc<Shard>| {
                let partition = shard.part().partition();
                shard.read_model().charges_created(from..to, after.of(partition).0 + 1..through.of(partition).0 + 1)
            };
            self.shards.all().into_iter().map(of).sum()
        })
    }

    /// Recipients of all merchants, but `than`, with a personal value in their registration, now or
    /// earlier: newest registrations first, `most` of them. The newest 2,000 Records with the value
    /// are looked at.
    pub fn recipients_sharing(&self, value: &PersonalValue, than: ObjectId, most: usize) -> Result<Vec<ObjectId>> {
        // A recipient whose registration changed often has many Records.
        const READ_MAX: usize = 2_000;
        let mut read = most * 5;
        loop {
            let mut found = self.search(&[SoughtValue::Personal(vec![value.clone()])], |_| read)?;
            let found = found.remove(&FoundKind::Recipient).unwrap_or_default();
            let mut ids = Vec::new();
            for (_, record) in &found.newest {
                ids.extend(self.recipient_of(record).filter(|id| *id != than && !ids.contains(id)));
            }
            if ids.len() >= most || found.total <= read || read >= READ_MAX {
                ids.truncate(most);
                return Ok(ids);
            }
            read = (read * 8).min(READ_MAX);
        }
    }

    /// The id of the recipient whose registration a Record has.
    pub fn recipient_of(&self, record: &Record) -> Option<ObjectId> {
        let group = record.owner.group()?;
        record.events.iter().find_map(|event| match event {
            Event::RecipientRegistered { id, .. } => Some(*id),
            Event::RecipientRegisteredAgain { number, .. } | Event::RecipientChanged { number, .. } => {
                self.recipient_row(group, *number).ok().map(|row| row.id)
            }
            _ => None,
        })
    }

    /// Beginnings of the words of a name, as a search finds them.
    pub fn name_beginnings(&self, name: &str) -> Vec<PersonalValue> {
        let words = self.house_shard().read_model().personal().name_words(name).into_iter();
        words.map(PersonalValue::NameBeginning).collect()
    }

    /// For each value, the keys that a Record has all of: one set, or one of each month, newest
    /// first.
    fn keys_of(&self, values: &[SoughtValue]) -> Result<Vec<Vec<Vec<SearchKey>>>> {
        let personal = self.house_shard().read_model().personal();
        let keys = |value: &SoughtValue| match value {
            SoughtValue::Plain(key) => Ok(vec![vec![*key]]),
            SoughtValue::Txid(digits) => Ok(SearchKey::txid_prefix(digits).map(|key| vec![key]).into_iter().collect()),
            SoughtValue::Personal(values) => personal.search_keys(values),
        };
        Ok(values.iter().map(keys).collect::<Result<_, _>>()?)
    }

    /// Whether a Record has one of these values. Its sealed part may be opened.
    fn has_any(&self, record: &Record, values: &[SoughtValue]) -> Result<bool> {
        let personal = self.house_shard().read_model().personal();
        for value in values {
            let has = match value {
                SoughtValue::Plain(key) => key.is_of(record),
                SoughtValue::Txid(digits) => {
                    Charge::made_by(record).is_some_and(|charge| charge.id.txid().starts_with(digits))
                }
                SoughtValue::Personal(values) => personal.has_all(record, values)?,
            };
            if has {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The Records of a partition through `last` that have all keys of one of the sets of one of the
/// values and make something of these kinds, by kind; and whether sets were left out.
fn with_any(
    shard: &Shard,
    values: &[Vec<Vec<SearchKey>>],
    kinds: &[FoundKind],
    last: Sequence,
) -> Result<(Sequences, bool)> {
    let (mut all, mut is_more) = (Vec::new(), false);
    for sets in values {
        is_more |= with_all(shard, sets, kinds, last, &mut all)?;
    }
    all.sort_unstable();
    all.dedup();
    let mut by_kind = Sequences::new();
    all.into_iter().for_each(|(sequence, kind)| by_kind.entry(kind).or_default().push(sequence));
    Ok((by_kind, is_more))
}

/// Adds the Records of a partition through `last` that have all keys of one of the sets and make
/// something of these kinds; true if sets were left out.
pub(super) fn with_all(
    shard: &Shard,
    sets: &[Vec<SearchKey>],
    kinds: &[FoundKind],
    last: Sequence,
    all: &mut Vec<(Sequence, FoundKind)>,
) -> Result<bool> {
    let before = all.len();
    for keys in sets {
        if all.len() - before >= COUNTED_MAX {
            return Ok(true);
        }
        let mut common: Option<BTreeSet<(Sequence, FoundKind)>> = None;
        for key in keys {
            let found = shard.read_model().with_value(*key, last)?.into_iter();
            let found = found.filter(|(_, kind)| kinds.contains(kind));
            common = Some(match common {
                None => found.collect(),
                Some(common) => found.filter(|one| common.contains(one)).collect(),
            });
        }
        all.extend(common.unwrap_or_default());
    }
    Ok(false)
}
