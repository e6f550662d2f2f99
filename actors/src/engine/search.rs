//! Search over all merchants: the Records with a value that somebody has in hand, by the index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ledger::charge::Charge;
use ledger::object::{self, Object};
use ledger::{Event, GroupNumber, LedgerId, ObjectId, RecipientNumber, Record, Timestamp};

use super::Engine;
use super::reads::LOOKED_UP_AT_ONCE;
use super::shard::Shard;
use derived::index::{FoundKind, IndexKey, LedgerList, ObjectList, SearchKey, Slice};
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
    /// All of these personal values, of one Record or person.
    Personal(Vec<PersonalValue>),
    /// Of each of these parts one of its values.
    All(Vec<Vec<SoughtValue>>),
}

/// Place in which values are looked for.
#[derive(Debug, Default)]
pub struct ValueSource<'a> {
    /// The Record, if it is one.
    record: Option<&'a Record>,
    /// Its personal data, or those of a person.
    personal: Vec<PersonalValue>,
    /// A value that is not sealed.
    plain: Option<SearchKey>,
}

/// Records that are listed, newest first.
#[derive(Clone, Copy, Debug)]
pub enum RecordList<'a> {
    /// Those that made things of a list.
    Of(ObjectList),
    /// Those that have one of these values, and make what is of these kinds.
    With(&'a [SoughtValue], &'a [FoundKind]),
    /// Those that made things of a list, of which some may have one of these values by another
    /// Record, of these kinds: by that of their charge, recipient or merchant. Where 500 Records or
    /// more have a value, all of the list. [`Engine::have`] says which do.
    Near(ObjectList, &'a [SoughtValue], &'a [FoundKind]),
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

/// Records by whose objects and owners the things of a list are looked up, at most.
const NEAR_MAX: usize = 500;

/// Things of owners that are looked through for a value of their owners, at most.
const OF_OWNERS_MAX: usize = 10_000;

impl Engine {
    /// The published Records with one of these values, by what they make, and the newest of each
    /// kind: `most` of it. Only the newest are opened, to leave out those whose hashes are alike.
    pub fn search(
        &self,
        values: &[SoughtValue],
        most: impl Fn(FoundKind) -> usize,
    ) -> Result<BTreeMap<FoundKind, FoundRecords>> {
        may_wait(|| {
            let mut found: BTreeMap<FoundKind, FoundRecords> = BTreeMap::new();
            let mut newest: BTreeMap<FoundKind, Vec<(Timestamp, Position, Record)>> = BTreeMap::new();
            for shard in self.shards.all() {
                let (all, is_more) = self.found(&shard, values, &FoundKind::ALL, Sequence(u64::MAX))?;
                let mut by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
                all.into_iter().for_each(|(sequence, kind)| by_kind.entry(kind).or_default().push(sequence));
                for (kind, sequences) in by_kind {
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
                let (found, _) = may_wait(|| self.found(shard, values, kinds, last))?;
                found.into_iter().map(|(sequence, _)| sequence).collect()
            }
            RecordList::Near(list, values, kinds) => match may_wait(|| self.near(shard, list, values, kinds))? {
                Some(near) => near.into_iter().filter(|sequence| *sequence <= last).collect(),
                None => return self.page_of(RecordList::Of(list), shard, group, last),
            },
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
            RecordList::Of(_) | RecordList::Near(..) | RecordList::Opening(_) => Ok(true),
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
    /// earlier: newest registrations first, `most` of them. The newest 300 Records with the value
    /// are looked at: a small town has one CEP, and many houses without a number.
    pub fn recipients_sharing(&self, value: &PersonalValue, than: ObjectId, most: usize) -> Result<Vec<ObjectId>> {
        // A recipient whose registration changed often has many Records.
        const READ_MAX: usize = 300;
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
        self.recipient_row(record.owner.group()?, registered(record)?).ok().map(|row| row.id)
    }

    /// Beginnings of the words of a name, as a search finds them.
    pub fn name_beginnings(&self, name: &str) -> Vec<PersonalValue> {
        let words = self.house_shard().read_model().personal().name_words(name).into_iter();
        words.map(PersonalValue::NameBeginning).collect()
    }

    /// The keys that a Record with a value has: one set, or one of each month, newest first.
    fn keys_of(&self, value: &SoughtValue) -> Result<Vec<Vec<SearchKey>>> {
        Ok(match value {
            SoughtValue::Plain(key) => vec![vec![*key]],
            SoughtValue::Txid(digits) => SearchKey::txid_prefix(digits).map(|key| vec![key]).into_iter().collect(),
            SoughtValue::Personal(values) => self.house_shard().read_model().personal().search_keys(values)?,
            SoughtValue::All(_) => Vec::new(),
        })
    }

    /// The Records of a partition through `last` that may have one of these values and make
    /// something of these kinds, lowest first; and whether older months were left out. Of several
    /// parts, those of the part that the fewest have.
    fn found(
        &self,
        shard: &Shard,
        values: &[SoughtValue],
        kinds: &[FoundKind],
        last: Sequence,
    ) -> Result<(Vec<(Sequence, FoundKind)>, bool)> {
        let (mut all, mut is_more) = (Vec::new(), false);
        for value in values {
            if let SoughtValue::All(parts) = value {
                let found = parts.iter().map(|part| self.found(shard, part, kinds, last));
                let found = found.collect::<Result<Vec<_>>>()?.into_iter();
                if let Some((found, is_cut)) = found.min_by_key(|(found, is_cut)| (*is_cut, found.len())) {
                    all.extend(found);
                    is_more |= is_cut;
                }
            } else {
                is_more |= with_all(shard, &self.keys_of(value)?, kinds, last, &mut all)?;
            }
        }
        all.sort_unstable();
        all.dedup();
        Ok((all, is_more))
    }

    /// The Records about the objects, or of the owners, whose Records have one of these values:
    /// those that made things of a list are among them. `None` where it would be too many.
    fn near(
        &self,
        shard: &Shard,
        list: ObjectList,
        values: &[SoughtValue],
        kinds: &[FoundKind],
    ) -> Result<Option<Vec<Sequence>>> {
        let (found, is_more) = self.found(shard, values, kinds, Sequence(u64::MAX))?;
        if is_more || found.len() >= NEAR_MAX {
            return Ok(None);
        }
        let (mut near, mut owners) = (Vec::new(), BTreeSet::new());
        for (sequence, kind) in found {
            let record = shard.record(sequence)?;
            let of_owner = match kind {
                FoundKind::Merchant => Some(IndexKey::objects(list, record.owner.group())),
                FoundKind::Recipient => record.owner.group().map(|group| match registered(&record) {
                    Some(number) if list == ObjectList::Withdrawals => {
                        IndexKey::of(LedgerList::Withdrawals, LedgerId::Recipient(group, number))
                    }
                    _ => IndexKey::objects(list, Some(group)),
                }),
                _ => None,
            };
            if let Some(list) = of_owner {
                owners.insert(list);
            } else {
                let mut ids = BTreeSet::new();
                record.events.iter().for_each(|event| object::each_in(event, |id| _ = ids.insert(id)));
                for id in ids {
                    near.extend(shard.read_model().about(id)?);
                }
            }
        }
        for list in owners {
            let (total, sequences) = shard.read_model().page(list, Slice::of_all(0, OF_OWNERS_MAX))?;
            near.extend(sequences);
            if total.max(near.len() as u64) > OF_OWNERS_MAX as u64 {
                return Ok(None);
            }
        }
        Ok(Some(near))
    }

    /// A Record as a place in which values are looked for. Its sealed part is opened.
    pub fn source<'a>(&self, record: &'a Record) -> Result<ValueSource<'a>> {
        let personal = self.house_shard().read_model().personal().opened(record)?;
        Ok(ValueSource { record: Some(record), personal, plain: None })
    }

    /// A person as a place in which values are looked for.
    pub fn person(&self, name: &str, document: String, email: Option<String>) -> ValueSource<'static> {
        let personal = self.house_shard().read_model().personal().person(name, document, email);
        ValueSource { personal, ..ValueSource::default() }
    }

    /// Whether one of these values stands in one of the places, each part of it perhaps in another.
    pub fn have(&self, sources: &[ValueSource<'_>], values: &[SoughtValue]) -> bool {
        let personal = self.house_shard().read_model().personal();
        let is_in = |source: &ValueSource<'_>, value: &SoughtValue| match value {
            SoughtValue::Plain(key) => {
                source.plain == Some(*key) || source.record.is_some_and(|record| key.is_of(record))
            }
            SoughtValue::Txid(digits) => {
                let opened = source.record.and_then(Charge::made_by);
                opened.is_some_and(|charge| charge.id.txid().starts_with(digits))
            }
            SoughtValue::Personal(values) => personal.has_each(&source.personal, values),
            SoughtValue::All(_) => false,
        };
        values.iter().any(|value| match value {
            SoughtValue::All(parts) => parts.iter().all(|part| self.have(sources, part)),
            value => sources.iter().any(|source| is_in(source, value)),
        })
    }

    /// Whether a Record has one of these values.
    fn has_any(&self, record: &Record, values: &[SoughtValue]) -> Result<bool> {
        Ok(self.have(&[self.source(record)?], values))
    }
}

impl ValueSource<'_> {
    /// A value that is not sealed.
    pub fn plain(key: SearchKey) -> Self {
        Self { plain: Some(key), ..Self::default() }
    }
}

/// The number of the recipient whose registration a Record has.
fn registered(record: &Record) -> Option<RecipientNumber> {
    record.events.iter().find_map(|event| match event {
        Event::RecipientRegistered { number, .. }
        | Event::RecipientRegisteredAgain { number, .. }
        | Event::RecipientChanged { number, .. } => Some(*number),
        _ => None,
    })
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
