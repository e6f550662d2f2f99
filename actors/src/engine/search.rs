//! Search over all merchants: the Records with a value that somebody has in hand, by the index.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Event, ObjectId, Record, Timestamp};

use super::Engine;
use super::shard::Shard;
use derived::index::{FoundKind, SearchKey};
use derived::personal_index::PersonalValue;
use derived::records::{LoadError, booked_records, may_wait};
use store::Sequence;
use store::cut::Position;

/// Records of one partition that are counted before older months are left out.
const COUNTED_MAX: usize = 10_000;

/// A value that is searched for.
#[derive(Clone, Debug)]
pub enum SoughtValue {
    /// A value that is not sealed.
    Plain(SearchKey),
    /// All of these personal values, of one Record.
    Personal(Vec<PersonalValue>),
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

/// Sequences of one partition's Records by kind, lowest first.
type Sequences = BTreeMap<FoundKind, Vec<Sequence>>;

impl Engine {
    /// The published Records with a value, by what they make, and the newest of each kind: `most`
    /// of it. Of personal values only the newest are opened, to leave out those whose hashes are
    /// alike; of others, very rarely a Record of another value is among them.
    pub fn search(
        &self,
        value: &SoughtValue,
        most: impl Fn(FoundKind) -> usize,
    ) -> Result<BTreeMap<FoundKind, FoundRecords>, LoadError> {
        may_wait(|| {
            let keys = self.keys_of(value)?;
            let mut found: BTreeMap<FoundKind, FoundRecords> = BTreeMap::new();
            let mut newest: BTreeMap<FoundKind, Vec<(Timestamp, Position, Record)>> = BTreeMap::new();
            for shard in self.shards.all() {
                let (sequences, is_more) = with_all(&shard, &keys)?;
                for (kind, sequences) in sequences {
                    let of_kind = found.entry(kind).or_default();
                    of_kind.total += sequences.len();
                    of_kind.is_more |= is_more;
                    let last: Vec<_> = sequences.into_iter().rev().take(most(kind)).collect();
                    let mut records = booked_records(shard.part(), &last)?;
                    let read = records.len();
                    if let SoughtValue::Personal(values) = value {
                        let personal = shard.read_model().personal().clone();
                        let mut right = Vec::with_capacity(read);
                        for found in records {
                            if personal.has_all(&found.2, values)? {
                                right.push(found);
                            }
                        }
                        records = right;
                    }
                    of_kind.total -= read - records.len();
                    let records = records.into_iter();
                    let placed = records.map(|(sequence, at, record)| (at, shard.position(sequence), record));
                    newest.entry(kind).or_default().extend(placed);
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

    /// Recipients of all merchants, but `than`, with a personal value in their registration, now or
    /// earlier: newest registrations first, `most` of them. The newest 2,000 Records with the value
    /// are looked at.
    pub fn recipients_sharing(
        &self,
        value: &PersonalValue,
        than: ObjectId,
        most: usize,
    ) -> Result<Vec<ObjectId>, LoadError> {
        // A recipient whose registration changed often has many Records.
        const READ_MAX: usize = 2_000;
        let mut read = most * 5;
        loop {
            let mut found = self.search(&SoughtValue::Personal(vec![value.clone()]), |_| read)?;
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

    /// The keys that a Record has all of: one set, or one of each month, newest first.
    fn keys_of(&self, value: &SoughtValue) -> Result<Vec<Vec<SearchKey>>, LoadError> {
        let values = match value {
            SoughtValue::Plain(key) => return Ok(vec![vec![*key]]),
            SoughtValue::Personal(values) => values,
        };
        Ok(self.house_shard().read_model().personal().search_keys(values)?)
    }
}

/// The Records of a partition that have all keys of one of the sets, by kind; and whether sets were
/// left out.
pub(super) fn with_all(shard: &Shard, sets: &[Vec<SearchKey>]) -> Result<(Sequences, bool), LoadError> {
    let mut all: Vec<(Sequence, FoundKind)> = Vec::new();
    for keys in sets {
        if all.len() >= COUNTED_MAX {
            return Ok((by_kind(all), true));
        }
        let mut common: Option<BTreeSet<(Sequence, FoundKind)>> = None;
        for key in keys {
            let found = shard.read_model().with_value(*key)?.into_iter();
            common = Some(match common {
                None => found.collect(),
                Some(common) => found.filter(|one| common.contains(one)).collect(),
            });
        }
        all.extend(common.unwrap_or_default());
    }
    Ok((by_kind(all), false))
}

fn by_kind(mut found: Vec<(Sequence, FoundKind)>) -> Sequences {
    found.sort_unstable();
    let mut kinds = Sequences::new();
    found.into_iter().for_each(|(sequence, kind)| kinds.entry(kind).or_default().push(sequence));
    kinds
}
