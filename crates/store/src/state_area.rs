//! State area: keys and values beside the journal, in a sled database of their own.
//!
//! A short value is part of its key's manifest. A longer one is stored in chunks under a generation
//! of its own, which the manifest names. A note names each generation that a crash may have left
//! without a manifest; opening removes those.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::chunk::{add_checksum, covered, in_format};
use super::durable_sync::durable_syncs;
use super::{Database, Epoch, Partition, Result, StoreError};

/// The state area's database, and who writes to it.
#[derive(Debug)]
pub(super) struct StateArea {
    database: Database,
    /// The generation of the next long value. Held while a value is written: there is one writer at
    /// a time.
    next_generation: Mutex<u64>,
}

impl StateArea {
    pub(super) fn open(database: Database) -> Result<StateArea> {
        let area = StateArea { database, next_generation: Mutex::new(1) };
        area.finish_notes()?;
        let last = area.database.range([CHUNK]..[CHUNK + 1]).next_back().transpose()?;
        if let Some((key, _)) = last {
            let generation = key.get(1..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
            *area.next_generation.lock() = generation.ok_or_else(|| area.damaged(&key))? + 1;
        }
        Ok(area)
    }

    /// Replaces a value and makes it durable.
    pub(super) fn put_durably(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let syncs = durable_syncs();
        let changed = self.put(key, value, true)?;
        self.database.flush(changed.then_some(syncs))
    }

    /// Removes a value for good.
    pub(super) fn delete_durably(&self, key: &[u8]) -> Result<()> {
        let syncs = durable_syncs();
        let changed = self.delete(key)?;
        self.database.flush(changed.then_some(syncs))
    }

    /// Replaces a value. Returns whether anything was written: the database writes nothing when the
    /// value stays the same.
    pub(super) fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<bool> {
        let mut next_generation = self.next_generation.lock();
        let old = self.replaceable_generation(key)?;
        let mut manifest = ValueManifest { durable, bytes: value.len() as u64, body: Body::Inline(value.to_vec()) };
        let generation = *next_generation;
        let is_long = value.len() > INLINE_BYTES_MAX;
        if is_long {
            *next_generation += 1;
            self.note(generation, key)?;
            self.put_chunks(generation, value)?;
            manifest.body = Body::Chunks { generation, checksum: crc32c::crc32c(value) };
        }
        if let Some(old) = old {
            self.note(old, key)?;
        }
        let manifest_key = manifest_key(key);
        let encoded = manifest.to_bytes(&manifest_key);
        // From here on the key has its new value; before, it had the old one.
        let before = self.database.insert(&manifest_key, &encoded)?;
        if is_long {
            self.remove_note(generation)?;
        }
        if let Some(old) = old {
            self.remove_generation(old)?;
        }
        Ok(before.is_none_or(|before| before != encoded))
    }

    /// Removes a value. Returns whether there was one.
    pub(super) fn delete(&self, key: &[u8]) -> Result<bool> {
        let _writing = self.next_generation.lock();
        let old = self.replaceable_generation(key)?;
        if let Some(old) = old {
            self.note(old, key)?;
        }
        let removed = self.database.remove(&manifest_key(key))?;
        if let Some(old) = old {
            self.remove_generation(old)?;
        }
        Ok(removed.is_some())
    }

    /// Makes durable what was put lazily.
    pub(super) fn flush(&self) -> Result<()> {
        if self.database.unflushed_bytes() == 0 { Ok(()) } else { self.database.flush(None) }
    }

    pub(super) fn value(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if let Ok(value) = self.read(key) {
            return Ok(value);
        }
        // Either the value is damaged, or it was replaced while it was read: nobody writes now.
        let _nobody_writes = self.next_generation.lock();
        match self.read(key) {
            Err(Unreadable::Lazy) => Ok(None),
            Err(Unreadable::Durable(error)) => Err(error),
            Ok(value) => Ok(value),
        }
    }

    /// Makes the epoch of a partition durable.
    pub(super) fn put_epoch(&self, partition: Partition, epoch: Epoch) -> Result<()> {
        let syncs = durable_syncs();
        let mut value = epoch.0.to_be_bytes().to_vec();
        let key = epoch_key(partition);
        add_checksum(&key, &mut value);
        self.database.insert(&key, &value)?;
        self.database.flush(Some(syncs))
    }

    /// The epochs of the partitions that were taken.
    pub(super) fn epochs(&self) -> Result<BTreeMap<Partition, Epoch>> {
        let parse = |key: &[u8], value: &[u8]| {
            let partition = Partition(u16::from_be_bytes(key.get(1..)?.try_into().ok()?));
            Some((partition, Epoch(u64::from_be_bytes(covered(key, value)?.try_into().ok()?))))
        };
        let pairs = self.database.with_prefix(&[EPOCH]);
        pairs.map(|pair| pair.and_then(|(key, value)| parse(&key, &value).ok_or_else(|| self.damaged(&key)))).collect()
    }

    fn read(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Unreadable> {
        let Some(manifest) = self.manifest(key).map_err(Unreadable::Durable)? else { return Ok(None) };
        let (generation, checksum) = match manifest.body {
            Body::Inline(value) => return Ok(Some(value)),
            Body::Chunks { generation, checksum } => (generation, checksum),
        };
        let mut value = Vec::with_capacity(usize::try_from(manifest.bytes).unwrap_or(0).min(64 << 20));
        let mut chunks = self.database.with_prefix(&generation_prefix(generation));
        let collected = chunks.try_for_each(|chunk| chunk.map(|(_, bytes)| value.extend_from_slice(&bytes)));
        let is_whole = value.len() as u64 == manifest.bytes && crc32c::crc32c(&value) == checksum;
        match collected {
            Ok(()) if is_whole => Ok(Some(value)),
            Err(StoreError::Machine { folder, source }) => Err(StoreError::Machine { folder, source }.into()),
            _ if !manifest.durable => Err(Unreadable::Lazy),
            Err(error) => Err(error.into()),
            Ok(()) => Err(self.damaged(key).into()),
        }
    }

    pub(super) fn keys(&self, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.database.with_prefix(&manifest_key(prefix)).map(|pair| pair.map(|(key, _)| key[1..].to_vec())).collect()
    }

    /// Removes what a crash left between the steps of a put or a delete.
    fn finish_notes(&self) -> Result<()> {
        let notes: Vec<_> = self.database.with_prefix(&[NOTE]).collect::<Result<_, _>>()?;
        for (note, key) in notes {
            let generation = note.get(1..).and_then(<[u8]>::first_chunk).copied().map(u64::from_be_bytes);
            let generation = generation.ok_or_else(|| self.damaged(&key))?;
            let is_in_use = self.manifest(&key)?.is_some_and(|manifest| manifest.generation() == Some(generation));
            match is_in_use {
                true => self.remove_note(generation)?,
                false => self.remove_generation(generation)?,
            }
        }
        Ok(())
    }

    fn manifest(&self, key: &[u8]) -> Result<Option<ValueManifest>> {
        let manifest_key = manifest_key(key);
        let Some(bytes) = self.database.get(&manifest_key)? else { return Ok(None) };
        let folder = self.database.path().to_path_buf();
        match ValueManifest::parse(&manifest_key, &bytes) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Some(found)) => Err(StoreError::NewerFormat { folder, found, known: STATE_FORMAT }),
            Err(None) => Err(self.damaged(key)),
        }
    }

    /// The generation of the long value that a new value of this key replaces. A damaged manifest
    /// is replaced too; of it only chunks remain that nothing names.
    fn replaceable_generation(&self, key: &[u8]) -> Result<Option<u64>> {
        match self.manifest(key) {
            Err(StoreError::Damaged { .. }) => Ok(None),
            manifest => Ok(manifest?.and_then(|manifest| manifest.generation())),
        }
    }

    fn put_chunks(&self, generation: u64, value: &[u8]) -> Result<()> {
        for (index, bytes) in value.chunks(INLINE_BYTES_MAX).enumerate() {
            let mut key = generation_prefix(generation).to_vec();
            key.extend_from_slice(&(index as u64).to_be_bytes());
            self.database.insert(&key, bytes)?;
        }
        Ok(())
    }

    fn remove_generation(&self, generation: u64) -> Result<()> {
        for chunk in self.database.with_prefix(&generation_prefix(generation)) {
            self.database.remove(&chunk?.0)?;
        }
        self.remove_note(generation)
    }

    fn note(&self, generation: u64, key: &[u8]) -> Result<()> {
        self.database.insert(&note_key(generation), key).map(drop)
    }

    fn remove_note(&self, generation: u64) -> Result<()> {
        self.database.remove(&note_key(generation)).map(drop)
    }

    fn damaged(&self, key: &[u8]) -> StoreError {
        let detail = format!("the value of the key {} does not match its checksum", key.escape_ascii());
        StoreError::Damaged { folder: self.database.path().to_path_buf(), sequence: None, detail }
    }
}

/// Unreadable values: lazy ones count as absent.
enum Unreadable {
    Lazy,
    Durable(StoreError),
}

impl From<StoreError> for Unreadable {
    fn from(error: StoreError) -> Unreadable {
        Unreadable::Durable(error)
    }
}

/// Manifest: what the database has under a key of the state area.
struct ValueManifest {
    durable: bool,
    bytes: u64,
    body: Body,
}

enum Body {
    Inline(Vec<u8>),
    Chunks { generation: u64, checksum: u32 },
}

impl ValueManifest {
    fn generation(&self) -> Option<u64> {
        match self.body {
            Body::Inline(_) => None,
            Body::Chunks { generation, .. } => Some(generation),
        }
    }

    fn to_bytes(&self, key: &[u8]) -> Vec<u8> {
        let mut bytes = vec![STATE_FORMAT, u8::from(self.durable)];
        bytes.extend_from_slice(&self.bytes.to_be_bytes());
        match &self.body {
            Body::Inline(value) => {
                bytes.push(INLINE);
                bytes.extend_from_slice(value);
            }
            Body::Chunks { generation, checksum } => {
                bytes.push(CHUNKED);
                bytes.extend_from_slice(&generation.to_be_bytes());
                bytes.extend_from_slice(&checksum.to_be_bytes());
            }
        }
        add_checksum(key, &mut bytes);
        bytes
    }

    /// The manifest; or, as an error, the newer format in which it is written, if it is not
    /// damaged.
    fn parse(key: &[u8], bytes: &[u8]) -> Result<ValueManifest, Option<u8>> {
        let (durable, rest) = in_format(STATE_FORMAT, key, bytes)?.split_first().ok_or(None)?;
        let (length, rest) = rest.split_first_chunk().ok_or(None)?;
        let (kind, rest) = rest.split_first().ok_or(None)?;
        let body = match *kind {
            INLINE => Body::Inline(rest.to_vec()),
            _ => {
                let (generation, rest) = rest.split_first_chunk().ok_or(None)?;
                let checksum = rest.first_chunk().ok_or(None)?;
                Body::Chunks { generation: u64::from_be_bytes(*generation), checksum: u32::from_be_bytes(*checksum) }
            }
        };
        Ok(ValueManifest { durable: *durable != 0, bytes: u64::from_be_bytes(*length), body })
    }
}

const STATE_FORMAT: u8 = 1;
const INLINE: u8 = 0;
const CHUNKED: u8 = 1;
/// What fits beside a manifest's other fields into a value of the size of a journal's chunk.
pub(super) const INLINE_BYTES_MAX: usize = 6_900;
/// The first bytes of the keys of the state area: chunks of long values, epochs of partitions,
/// notes, manifests.
const CHUNK: u8 = b'c';
const EPOCH: u8 = b'e';
const NOTE: u8 = b'n';
const MANIFEST: u8 = b'v';

fn manifest_key(key: &[u8]) -> Vec<u8> {
    [&[MANIFEST], key].concat()
}

fn epoch_key(partition: Partition) -> [u8; 3] {
    let [high, low] = partition.0.to_be_bytes();
    [EPOCH, high, low]
}

fn note_key(generation: u64) -> [u8; 9] {
    let mut key = [NOTE; 9];
    key[1..].copy_from_slice(&generation.to_be_bytes());
    key
}

fn generation_prefix(generation: u64) -> [u8; 9] {
    let mut prefix = [CHUNK; 9];
    prefix[1..].copy_from_slice(&generation.to_be_bytes());
    prefix
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::sled::{DatabaseOptions, UNFLUSHED_BYTES_MAX_OF_STATE};
    use crate::testkit::conformance::bytes;

    #[test]
    fn a_torn_value_is_absent_if_it_was_lazy_and_damage_if_it_was_not() {
        let data = TempDir::new().unwrap();
        let area = open(data.path());
        area.put(b"snapshot", &bytes(1, 20_000), false).unwrap();
        area.put_durably(b"sealed key", &bytes(2, 20_000)).unwrap();
        for generation in [1, 2] {
            let mut key = generation_prefix(generation).to_vec();
            key.extend_from_slice(&1u64.to_be_bytes());
            area.database.remove(&key).unwrap().unwrap();
        }
        assert_eq!(area.value(b"snapshot").unwrap(), None);
        assert!(matches!(area.value(b"sealed key"), Err(StoreError::Damaged { .. })));
        // Either can be put again.
        area.put_durably(b"snapshot", b"anew").unwrap();
        area.put_durably(b"sealed key", b"anew").unwrap();
        assert_eq!(area.value(b"snapshot").unwrap(), Some(b"anew".to_vec()));
        assert_eq!(area.value(b"sealed key").unwrap(), Some(b"anew".to_vec()));
    }

    #[test]
    fn a_flipped_bit_of_a_value_is_damage() {
        let data = TempDir::new().unwrap();
        let area = open(data.path());
        area.put_durably(b"long", &bytes(1, 20_000)).unwrap();
        area.put_durably(b"short", b"short value").unwrap();
        let mut chunk = generation_prefix(1).to_vec();
        chunk.extend_from_slice(&1u64.to_be_bytes());
        for (key, stored) in [(b"long".as_slice(), chunk), (b"short".as_slice(), manifest_key(b"short"))] {
            let whole = area.database.get(&stored).unwrap().unwrap();
            for bit in [0, whole.len() * 4 + 3, whole.len() * 8 - 1] {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                area.database.insert(&stored, &flipped).unwrap();
                assert!(matches!(area.value(key), Err(StoreError::Damaged { .. })), "bit {bit}");
            }
        }
    }

    /// A crash can come between any two steps of a put; each leaves the old value or the new one,
    /// and nothing besides.
    #[test]
    fn a_put_that_was_cut_short_leaves_nothing_behind() {
        let (old, new) = (bytes(1, 20_000), bytes(2, 30_000));
        for steps in 0..4 {
            let data = TempDir::new().unwrap();
            let area = open(data.path());
            area.put_durably(b"key", &old).unwrap();
            if steps > 0 {
                area.note(2, b"key").unwrap();
            }
            if steps > 1 {
                area.put_chunks(2, &new).unwrap();
            }
            if steps > 2 {
                area.note(1, b"key").unwrap();
                let body = Body::Chunks { generation: 2, checksum: crc32c::crc32c(&new) };
                let manifest = ValueManifest { durable: true, bytes: new.len() as u64, body };
                let key = manifest_key(b"key");
                area.database.insert(&key, &manifest.to_bytes(&key)).unwrap();
            }
            drop(area);
            let area = open(data.path());
            let expected = if steps > 2 { &new } else { &old };
            assert_eq!(area.value(b"key").unwrap().as_ref(), Some(expected), "{steps} steps");
            let entries = 1 + expected.len().div_ceil(INLINE_BYTES_MAX);
            assert_eq!(area.database.with_prefix(b"").count(), entries, "{steps} steps");
            area.put_durably(b"key", b"short").unwrap();
            assert_eq!(area.database.with_prefix(b"").count(), 1, "{steps} steps");
            area.delete_durably(b"key").unwrap();
            assert_eq!(area.database.with_prefix(b"").count(), 0);
        }
    }

    fn open(data: &Path) -> StateArea {
        let (unflushed_bytes_max, lock_wait) = (UNFLUSHED_BYTES_MAX_OF_STATE, Duration::from_secs(10));
        let opening = DatabaseOptions { cache_bytes: 4 << 20, unflushed_bytes_max, lock_wait, monitor: Arc::default() };
        StateArea::open(Database::open(data, &opening).unwrap()).unwrap()
    }
}
