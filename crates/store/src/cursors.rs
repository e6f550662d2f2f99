//! Cursors: small values that change every second, such as how far each webhook endpoint has come,
//! in an append-only log.
//!
//! ```text
//! <data>/cursors    "centavo-cursors-1" and its CRC32C, then a frame for each change
//! ```
//!
//! A change is in memory at once, and in the file after [`Cursors::sync`]. Changes of one key
//! between two syncs are one frame. A crash leaves each key with some value that it had since the
//! last sync, or with the value of that sync. Opening replays the frames and cuts off what follows
//! the last whole one. When more than half of the file is out of date, it is written anew.
//!
//! After a failed write or sync nothing is known of the end of the file, so the next sync writes it
//! anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::chunk::{CHECKSUM_BYTES, checksum_of, covered};
use super::files::{machine, private_file, write_whole};
use super::{Result, StoreError};

/// The log of a store, and its values.
#[derive(Debug)]
pub(super) struct Cursors {
    path: PathBuf,
    values: Mutex<Values>,
    /// Held while the file is written.
    log: Mutex<Log>,
}

#[derive(Debug, Default)]
struct Values {
    all: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The keys that changed since the file was synced.
    changed: BTreeSet<Vec<u8>>,
}

impl Values {
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) {
        match value {
            Some(value) => self.all.insert(key.to_vec(), value.to_vec()),
            None => self.all.remove(key),
        };
    }
}

#[derive(Debug)]
struct Log {
    file: File,
    /// Place of the next frame; `None` if the end of the file is unknown.
    end: Option<u64>,
}

impl Cursors {
    /// Opens the file in the folder `data`, which is made if it is not there.
    pub(super) fn open(data: &Path) -> Result<Cursors> {
        let path = data.join(FILE);
        if !path.exists() {
            write(&path, &header(NAME))?;
        }
        let bytes = std::fs::read(&path).map_err(|source| machine(&path, source))?;
        let mut values = Values::default();
        let end = replay(&bytes, &mut values).map_err(|found| StoreError::NewerFormat {
            folder: path.clone(),
            found,
            known: FORMAT,
        })?;
        let file = private_file().write(true).open(&path).map_err(|source| machine(&path, source))?;
        if (1..bytes.len()).contains(&end) {
            tracing::info!(file = %path.display(), bytes = bytes.len() - end, "an unfinished change at the end is cut off");
            file.set_len(end as u64).map_err(|source| machine(&path, source))?;
        }
        // A file whose header is damaged is written anew.
        let end = Some(end as u64).filter(|end| *end > 0);
        Ok(Cursors { path, values: Mutex::new(values), log: Mutex::new(Log { file, end }) })
    }

    pub(super) fn put(&self, key: &[u8], value: Option<&[u8]>) {
        let mut values = self.values.lock();
        if values.all.get(key).map(Vec::as_slice) != value {
            values.set(key, value);
            values.changed.insert(key.to_vec());
        }
    }

    pub(super) fn value(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.values.lock().all.get(key).cloned()
    }

    /// The keys, in the order of their bytes.
    pub(super) fn keys(&self) -> Vec<Vec<u8>> {
        self.values.lock().all.keys().cloned().collect()
    }

    /// Makes all changes durable.
    pub(super) fn sync(&self) -> Result<()> {
        let mut log = self.log.lock();
        let (changes, live_bytes, changed) = {
            let mut values = self.values.lock();
            let changed = std::mem::take(&mut values.changed);
            let mut changes = Vec::new();
            changed.iter().for_each(|key| encode(key, values.all.get(key).map(Vec::as_slice), &mut changes));
            let live = values.all.iter().map(|(key, value)| FRAME_BYTES + key.len() + value.len());
            (changes, HEADER_BYTES + live.sum::<usize>(), changed)
        };
        if changed.is_empty() && log.end.is_some() {
            return Ok(());
        }
        let synced = match log.end.filter(|end| *end < REWRITTEN_FROM || *end < 2 * live_bytes as u64) {
            Some(end) => self.append(&mut log, end, &changes),
            None => self.rewrite(&mut log),
        };
        if synced.is_err() {
            log.end = None;
            self.values.lock().changed.extend(changed);
        }
        synced
    }

    fn append(&self, log: &mut Log, end: u64, changes: &[u8]) -> Result<()> {
        let written = log.file.write_all_at(changes, end).and_then(|()| log.file.sync_data());
        written.map_err(|source| machine(&self.path, source))?;
        log.end = Some(end + changes.len() as u64);
        Ok(())
    }

    fn rewrite(&self, log: &mut Log) -> Result<()> {
        let mut bytes = header(NAME);
        self.values.lock().all.iter().for_each(|(key, value)| encode(key, Some(value), &mut bytes));
        write(&self.path, &bytes)?;
        log.file = private_file().write(true).open(&self.path).map_err(|source| machine(&self.path, source))?;
        log.end = Some(bytes.len() as u64);
        Ok(())
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_whole(path, |out| out.write_all(bytes)).map(drop).map_err(|source| machine(path, source))
}

/// A frame: how many bytes follow the length, a byte that distinguishes a value from a removal, the
/// key's length, key, value, and the CRC32C of all before it.
fn encode(key: &[u8], value: Option<&[u8]>, bytes: &mut Vec<u8>) {
    let begin = bytes.len();
    let body = FRAME_BYTES - LENGTH_BYTES + key.len() + value.map_or(0, <[u8]>::len);
    bytes.extend_from_slice(&(body as u32).to_be_bytes());
    bytes.push(u8::from(value.is_some()));
    bytes.push(key.len() as u8);
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value.unwrap_or_default());
    let checksum = checksum_of(b"", &bytes[begin..]);
    bytes.extend_from_slice(&checksum);
}

/// Takes in the frames that are whole, up to the first that is not, and returns where they end: 0
/// where the header is damaged. Or, as an error, the newer format of the file.
fn replay(bytes: &[u8], values: &mut Values) -> Result<usize, u8> {
    let header = bytes.first_chunk::<HEADER_BYTES>();
    let format = header.and_then(|header| covered(b"", header)?.last());
    if let Some(newer) = format.map(|format| format.saturating_sub(b'0')).filter(|format| *format > FORMAT) {
        return Err(newer);
    }
    let mut end = HEADER_BYTES.min(bytes.len());
    while let Some(frame) = CursorFrame::decode(&bytes[end..]) {
        values.set(frame.key, frame.value);
        end += frame.bytes;
    }
    Ok(if format.is_some() { end } else { 0 })
}

/// First bytes of the file: a name whose last byte is the format's number, and its CRC32C.
fn header(name: &[u8]) -> Vec<u8> {
    [name, &checksum_of(b"", name)].concat()
}

/// A frame as it was read.
struct CursorFrame<'a> {
    key: &'a [u8],
    /// `None` if the key was removed.
    value: Option<&'a [u8]>,
    /// How long it is.
    bytes: usize,
}

impl<'a> CursorFrame<'a> {
    fn decode(bytes: &'a [u8]) -> Option<Self> {
        let length = LENGTH_BYTES + u32::from_be_bytes(*bytes.first_chunk()?) as usize;
        let body = covered(b"", bytes.get(..length)?)?.get(LENGTH_BYTES..)?;
        let (&[is_value, key_bytes], rest) = body.split_first_chunk()?;
        let (key, value) = rest.split_at_checked(usize::from(key_bytes))?;
        Some(CursorFrame { key, value: (is_value == 1).then_some(value), bytes: length })
    }
}

const FILE: &str = "cursors";
const NAME: &[u8] = b"centavo-cursors-1";
const HEADER_BYTES: usize = NAME.len() + CHECKSUM_BYTES;
const FORMAT: u8 = 1;
const LENGTH_BYTES: usize = 4;
/// Bytes of a frame beside key and value.
const FRAME_BYTES: usize = LENGTH_BYTES + 2 + CHECKSUM_BYTES;
/// A smaller file is not written anew.
const REWRITTEN_FROM: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn all(cursors: &Cursors) -> Vec<(Vec<u8>, Vec<u8>)> {
        cursors.keys().into_iter().map(|key| (key.clone(), cursors.value(&key).unwrap())).collect()
    }

    #[test]
    fn what_was_synced_is_there_and_a_torn_end_is_cut_off() {
        let data = TempDir::new().unwrap();
        let cursors = Cursors::open(data.path()).unwrap();
        cursors.put(b"a", Some(b"1"));
        cursors.put(b"b", Some(b"2"));
        cursors.sync().unwrap();
        let first = all(&cursors);
        cursors.put(b"a", Some(b"one"));
        cursors.put(b"b", None);
        cursors.sync().unwrap();
        let second = all(&cursors);
        assert_eq!(second, [(b"a".to_vec(), b"one".to_vec())]);
        cursors.put(b"c", Some(b"lost"));
        drop(cursors);
        let path = data.path().join(FILE);
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(all(&Cursors::open(data.path()).unwrap()), second, "what was not synced is not there");
        let frames = 2 * (FRAME_BYTES + 2);
        for length in 0..=whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            let cursors = Cursors::open(data.path()).unwrap();
            let found = all(&cursors);
            let keys = match length {
                _ if length == whole.len() => second.clone(),
                _ if length >= HEADER_BYTES + frames + FRAME_BYTES + 4 => vec![second[0].clone(), first[1].clone()],
                _ if length >= HEADER_BYTES + frames => first.clone(),
                _ if length >= HEADER_BYTES + frames / 2 => first[..1].to_vec(),
                _ => vec![],
            };
            assert_eq!(found, keys, "{length} bytes");
            cursors.put(b"d", Some(b"after"));
            cursors.sync().unwrap();
            let expected = [keys, vec![(b"d".to_vec(), b"after".to_vec())]].concat();
            assert_eq!(all(&Cursors::open(data.path()).unwrap()), expected, "{length} bytes");
        }
    }

    #[test]
    fn a_flipped_bit_hides_what_follows_and_nothing_else() {
        let data = TempDir::new().unwrap();
        let cursors = Cursors::open(data.path()).unwrap();
        for key in [b"a", b"b", b"c"] {
            cursors.put(key, Some(&[7; 50]));
            cursors.sync().unwrap();
        }
        let path = data.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[HEADER_BYTES + FRAME_BYTES + 51 + 20] ^= 4;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Cursors::open(data.path()).unwrap().keys(), [b"a".to_vec()]);
    }

    #[test]
    fn a_damaged_header_loses_nothing() {
        for at in 0..HEADER_BYTES {
            let data = TempDir::new().unwrap();
            let cursors = Cursors::open(data.path()).unwrap();
            cursors.put(b"a", Some(b"1"));
            cursors.sync().unwrap();
            let path = data.path().join(FILE);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] ^= 2;
            std::fs::write(&path, bytes).unwrap();
            for key in [b"b", b"c"] {
                let cursors = Cursors::open(data.path()).unwrap();
                cursors.put(key, Some(b"2"));
                cursors.sync().unwrap();
            }
            let keys = Cursors::open(data.path()).unwrap().keys();
            assert_eq!(keys, [b"a".to_vec(), b"b".to_vec(), b"c".to_vec()], "byte {at}");
        }
    }

    #[test]
    fn the_file_stays_about_as_large_as_what_is_in_it() {
        let data = TempDir::new().unwrap();
        let cursors = Cursors::open(data.path()).unwrap();
        for round in 0..2_000_u64 {
            cursors.put(&(round % 7).to_be_bytes(), Some(&[round as u8; 1_000]));
            cursors.sync().unwrap();
        }
        let written = all(&cursors);
        let bytes = std::fs::metadata(data.path().join(FILE)).unwrap().len();
        assert!(bytes < REWRITTEN_FROM + 2_000, "{bytes}");
        assert_eq!(all(&Cursors::open(data.path()).unwrap()), written);
    }

    /// A failed sync leaves an end that nobody knows: the next one writes the file anew, with all
    /// that is in memory.
    #[test]
    fn a_failed_sync_is_made_good_by_the_next() {
        let data = TempDir::new().unwrap();
        let cursors = Cursors::open(data.path()).unwrap();
        cursors.put(b"a", Some(b"1"));
        cursors.log.lock().file = File::open(data.path().join(FILE)).unwrap();
        assert!(cursors.sync().is_err(), "it was opened for reading only");
        cursors.put(b"b", Some(b"2"));
        cursors.sync().unwrap();
        assert_eq!(Cursors::open(data.path()).unwrap().keys(), [b"a".to_vec(), b"b".to_vec()]);
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_the_file_stay_as_they_are() {
        let mut bytes = header(NAME);
        encode(b"key", Some(b"value"), &mut bytes);
        encode(b"key", None, &mut bytes);
        assert_eq!((bytes.len(), crc32c::crc32c(&bytes)), (52, 2_195_858_142));
        let data = TempDir::new().unwrap();
        std::fs::write(data.path().join(FILE), header(b"centavo-cursors-2")).unwrap();
        assert!(matches!(Cursors::open(data.path()), Err(StoreError::NewerFormat { found: 2, known: 1, .. })));
    }
}
