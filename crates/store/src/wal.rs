//! Write-ahead log of the journal: its last blocks, durable in two files before the database has
//! them on the disk.
//!
//! ```text
//! journal/wal-0, journal/wal-1    frames: a block each, at the begin of a page
//! ```
//!
//! A flush of the database costs more than the sync itself: a thread of its own writes, seven
//! threads are woken for it, and its file grows, which the file system has to note each time. So
//! the journal's thread writes each block over an older part of a file and syncs it once. The log
//! saves that cost; it adds no durability beyond what one `fdatasync` gives. The database has the
//! block in memory, and a background thread flushes it. When one file is full, the other one is
//! begun anew. The full file is left alone until the database has made its blocks durable.
//!
//! At opening, the store inserts into the database what the database lacks. That works for two
//! reasons: sled recovers its log up to a gap, so it has every chunk up to some point and none
//! after it; and a file is only begun anew when the database has everything that was in it.
//!
//! No write touches a page of an acknowledged frame. Reading looks at every page, so a damaged
//! frame hides no frame behind it, and the gap that it leaves is noticed. Only the very last frame
//! looks like one that was never finished.
//!
//! A file begins small and doubles each time it is begun anew, up to a limit. A block that is
//! larger than the limit still goes into one file, which grows to hold it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::{Condvar, Mutex};

use super::chunk::{CHECKSUM_BYTES, Chunk, KEY_BYTES, Key, add_checksum, covered};
use super::files::{machine, private_file, sync_folder};
use super::{BlockHash, Partition, Result, Sequence, StoreError};

/// The two files.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    files: [WalFile; 2],
    /// Bytes of a file that are filled, and its largest size unless one block is larger.
    bytes_max: usize,
    writing: Mutex<Writing>,
    settling: Mutex<SettlingFile>,
    settled: Condvar,
}

#[derive(Debug)]
struct WalFile {
    path: PathBuf,
    file: File,
}

/// Where the next frame goes.
#[derive(Debug)]
struct Writing {
    active: usize,
    at: usize,
    sizes: [usize; 2],
    counter: u64,
    frame: Vec<u8>,
}

/// Whether the file that is not written now has blocks that the database may not have on the disk.
#[derive(Debug, Default)]
struct SettlingFile {
    is_needed: bool,
    has_failed: bool,
}

/// A block, as it was read from a file: its chunks, and where it belongs.
#[derive(Debug)]
pub(super) struct WalFrame {
    pub(super) partition: Partition,
    pub(super) first: Sequence,
    pub(super) previous: BlockHash,
    pub(super) chunks: Vec<(Key, Vec<u8>)>,
    counter: u64,
}

impl WriteAheadLog {
    /// Opens the files in the journal's folder and reads the whole frames: those of one partition
    /// in the order of their blocks, and of two with the same place the newer one first. The files
    /// grow up to `bytes_max`.
    pub(super) fn open(journal: &Path, bytes_max: usize) -> Result<(WriteAheadLog, Vec<WalFrame>)> {
        let open = |name| {
            let path: PathBuf = journal.join(name);
            let file = private_file().create(true).truncate(false).read(true).write(true).open(&path);
            file.map(|file| WalFile { file, path: path.clone() }).map_err(|source| machine(&path, source))
        };
        let files = [open("wal-0")?, open("wal-1")?];
        sync_folder(journal)?;
        let (frames, sizes) = frames_of(&files)?;
        let counter = frames.iter().map(|frame| frame.counter + 1).max().unwrap_or_default();
        let writing = Writing { active: 0, at: 0, sizes, counter, frame: Vec::new() };
        let wal = WriteAheadLog {
            files,
            bytes_max,
            writing: Mutex::new(writing),
            settling: Mutex::default(),
            settled: Condvar::new(),
        };
        Ok((wal, frames))
    }

    /// Makes a block durable. There is one writer at a time. When it writes a block, the database
    /// has all earlier blocks in memory.
    pub(super) fn append(&self, chunks: &[(Key, Vec<u8>)]) -> Result<AppendResult> {
        let mut writing = self.writing.lock();
        let Writing { active, at, sizes, counter, frame } = &mut *writing;
        encode(*counter, chunks, frame);
        if u32::try_from(frame.len()).is_err() {
            return Err(StoreError::Unstorable("a block takes less than 4 GiB"));
        }
        let mut has_filled = false;
        if *at + frame.len() > sizes[*active].min(self.bytes_max) {
            has_filled = *at > 0;
            if has_filled {
                self.leave()?;
                *active = 1 - *active;
            }
            *at = 0;
            let wanted = (2 * sizes[*active]).max(FILE_BYTES_MIN).min(self.bytes_max);
            let wanted = wanted.max(frame.len().next_power_of_two());
            if wanted > sizes[*active] {
                self.files[*active].enlarge(sizes[*active], wanted)?;
                sizes[*active] = wanted;
            }
        }
        let WalFile { path, file } = &self.files[*active];
        let written = file.write_all_at(frame, *at as u64).and_then(|()| file.sync_data());
        written.map_err(|source| machine(path, source))?;
        *at += frame.len();
        *counter += 1;
        Ok(if has_filled { AppendResult::AndFilled } else { AppendResult::Durably })
    }

    /// Waits until the other file may be begun anew, and notes that this one, which is full, is
    /// needed.
    fn leave(&self) -> Result<()> {
        let mut settling = self.settling.lock();
        self.settled.wait_while(&mut settling, |settling| settling.is_needed && !settling.has_failed);
        if settling.has_failed {
            return Err(StoreError::Poisoned);
        }
        settling.is_needed = true;
        Ok(())
    }

    /// Notes whether the database has made durable the blocks of the full file.
    pub(super) fn settled(&self, is_durable: bool) {
        let mut settling = self.settling.lock();
        settling.is_needed = !is_durable;
        settling.has_failed |= !is_durable;
        self.settled.notify_all();
    }
}

/// The whole frames of the files below a journal's folder, as [`WriteAheadLog::open`] gives them.
/// Makes no file where there is none.
pub(super) fn frames_below(journal: &Path) -> Result<Vec<WalFrame>> {
    let mut files = Vec::new();
    for path in ["wal-0", "wal-1"].map(|name| journal.join(name)) {
        match File::open(&path) {
            Ok(file) => files.push(WalFile { file, path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(machine(&path, source)),
        }
    }
    Ok(frames_of(&files)?.0)
}

/// The whole frames of files in their order, and the size of each file in whole pages.
fn frames_of(files: &[WalFile]) -> Result<(Vec<WalFrame>, [usize; 2])> {
    let (mut frames, mut sizes) = (Vec::new(), [0; 2]);
    for (wal, size) in files.iter().zip(&mut sizes) {
        let bytes = wal.read()?;
        *size = bytes.len() / PAGE * PAGE;
        let newer = |found| StoreError::NewerFormat { folder: wal.path.clone(), found, known: FORMAT };
        frames_in(&bytes, &mut frames).map_err(newer)?;
    }
    frames.sort_by_key(|frame| (frame.partition, frame.first, u64::MAX - frame.counter));
    Ok((frames, sizes))
}

/// Outcome of writing one batch of frames to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppendResult {
    /// It is durable.
    Durably,
    /// It is durable, and is the first in its file: the other one is full, and the database must be
    /// flushed.
    AndFilled,
}

impl WalFile {
    fn read(&self) -> Result<Vec<u8>> {
        let read = || {
            let mut bytes = vec![0; self.file.metadata()?.len() as usize];
            self.file.read_exact_at(&mut bytes, 0)?;
            io::Result::Ok(bytes)
        };
        read().map_err(|source| machine(&self.path, source))
    }

    /// Writes zeros: what was only reserved would have to be noted by the file system when it is
    /// written.
    fn enlarge(&self, from: usize, to: usize) -> Result<()> {
        let zeros = vec![0; to - from];
        let written = self.file.write_all_at(&zeros, from as u64).and_then(|()| self.file.sync_all());
        written.map_err(|source| machine(&self.path, source))
    }
}

/// A frame: how many bytes follow, a byte for the format, its counter, and each chunk with its key
/// and length before it. The last four bytes are, in this format and every later one, the CRC32C of
/// all before them. Zeros fill the page.
fn encode(counter: u64, chunks: &[(Key, Vec<u8>)], frame: &mut Vec<u8>) {
    frame.clear();
    frame.extend_from_slice(&[0; LENGTH_BYTES]);
    frame.push(FORMAT);
    frame.extend_from_slice(&counter.to_be_bytes());
    for (key, value) in chunks {
        frame.extend_from_slice(&key.to_bytes());
        frame.extend_from_slice(&(value.len() as u32).to_be_bytes());
        frame.extend_from_slice(value);
    }
    let length = (frame.len() - LENGTH_BYTES + CHECKSUM_BYTES) as u32;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    add_checksum(b"", frame);
    frame.resize(frame.len().next_multiple_of(PAGE), 0);
}

/// Adds the frames of a file that are whole; or, as an error, returns the newer format in which one
/// is written.
fn frames_in(bytes: &[u8], frames: &mut Vec<WalFrame>) -> Result<(), u8> {
    let mut page = 0;
    while page < bytes.len() {
        let read = decode(&bytes[page..]);
        page += match read {
            Ok((frame, length)) => {
                frames.push(frame);
                length.next_multiple_of(PAGE)
            }
            Err(Some(found)) => return Err(found),
            Err(None) => PAGE,
        };
    }
    Ok(())
}

/// The frame that begins here and its length; or, as an error, the newer format in which it is
/// written, if it is not damaged.
fn decode(bytes: &[u8]) -> Result<(WalFrame, usize), Option<u8>> {
    let length = bytes.first_chunk::<LENGTH_BYTES>().ok_or(None)?;
    let length = LENGTH_BYTES + u32::from_be_bytes(*length) as usize;
    let body = bytes.get(..length).and_then(|frame| covered(b"", frame)?.get(LENGTH_BYTES..));
    let (format, rest) = body.and_then(<[u8]>::split_first).ok_or(None)?;
    if *format != FORMAT {
        return Err(Some(*format));
    }
    let frame = parse(rest).ok_or(None)?;
    Ok((frame, length))
}

fn parse(bytes: &[u8]) -> Option<WalFrame> {
    let (counter, mut rest) = bytes.split_first_chunk()?;
    let mut chunks = Vec::new();
    let mut begin = None;
    while let Some((key, behind)) = rest.split_first_chunk::<KEY_BYTES>() {
        let (length, behind) = behind.split_first_chunk()?;
        let (value, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let chunk = Chunk::parse(key, value).ok()?;
        begin = begin.or(chunk.link.map(|link| (chunk.key.partition, chunk.first, link.previous)));
        chunks.push((chunk.key, value.to_vec()));
        rest = behind;
    }
    let (partition, first, previous) = begin?;
    Some(WalFrame { partition, first, previous, chunks, counter: u64::from_be_bytes(*counter) })
}

const FORMAT: u8 = 1;
const LENGTH_BYTES: usize = 4;
/// What a disk and the system write at once, at least.
const PAGE: usize = 4096;
/// The size of a file when it is first written.
const FILE_BYTES_MIN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::super::chunk::cut;
    use super::super::{Block, Head};
    use super::*;
    use crate::chunk::checksum_of;
    use crate::testkit::conformance::{block_after, bytes};

    const BYTES_MAX: usize = 1 << 20;

    /// A chain of blocks, with a Record each of this many bytes.
    fn blocks(sizes: impl Iterator<Item = usize>) -> Vec<Block> {
        let mut head = Head::EMPTY;
        let chain = (0..).zip(sizes).map(|(number, size)| {
            let block = block_after(head, vec![bytes(number, size)]);
            head = Head::after(&block, block.hash());
            block
        });
        chain.collect()
    }

    fn append(wal: &WriteAheadLog, block: &Block) -> AppendResult {
        wal.append(&cut(block, block.hash())).unwrap()
    }

    /// The first Records of the blocks that are found.
    fn found(journal: &Path) -> Vec<u64> {
        WriteAheadLog::open(journal, BYTES_MAX).unwrap().1.iter().map(|frame| frame.first.0).collect()
    }

    #[test]
    fn what_was_appended_is_found_until_the_database_is_durable() {
        let journal = TempDir::new().unwrap();
        let (wal, _) = WriteAheadLog::open(journal.path(), BYTES_MAX).unwrap();
        let (mut filled, mut begin) = (0, 1);
        let blocks = blocks((0..2_000).map(|number| number * 37 % 20_000));
        for (block, number) in blocks.iter().zip(1..) {
            let appended = append(&wal, block);
            let is_filled = appended == AppendResult::AndFilled;
            if is_filled || number % 50 == 0 {
                let found = found(journal.path());
                assert!((begin..=number).all(|number| found.contains(&number)), "{begin} to {number}: {found:?}");
            }
            if is_filled {
                (filled, begin) = (filled + 1, number);
                wal.settled(true);
            }
        }
        assert!(filled > 10, "{filled}");
        let sizes = ["wal-0", "wal-1"].map(|name| std::fs::metadata(journal.path().join(name)).unwrap().len());
        assert_eq!(sizes, [BYTES_MAX as u64; 2]);
    }

    #[test]
    fn a_full_file_is_left_alone_until_the_database_is_durable() {
        let journal = TempDir::new().unwrap();
        let (wal, _) = WriteAheadLog::open(journal.path(), BYTES_MAX).unwrap();
        let blocks = blocks(std::iter::repeat_n(30_000, 40));
        let filled = blocks.iter().position(|block| append(&wal, block) == AppendResult::AndFilled).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                blocks[filled + 1..].iter().filter(|block| append(&wal, block) == AppendResult::AndFilled).count()
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert!(!writer.is_finished());
            assert_eq!(found(journal.path())[0], 1, "nothing of the full file was overwritten");
            while !writer.is_finished() {
                wal.settled(true);
                std::thread::yield_now();
            }
            assert!(writer.join().unwrap() > 0);
        });
        wal.settled(false);
        let refused = blocks.iter().find_map(|block| wal.append(&cut(block, block.hash())).err());
        assert!(matches!(refused, Some(StoreError::Poisoned)), "{refused:?}");
    }

    #[test]
    fn a_damaged_frame_hides_none_behind_it() {
        let journal = TempDir::new().unwrap();
        let (wal, _) = WriteAheadLog::open(journal.path(), BYTES_MAX).unwrap();
        blocks([300, 9_000, 300].into_iter())
            .iter()
            .for_each(|block| assert_eq!(append(&wal, block), AppendResult::Durably));
        let path = journal.path().join("wal-0");
        let sound = std::fs::read(&path).unwrap();
        for (byte, left) in
            [(10, vec![2, 3]), (PAGE + 5_000, vec![1, 3]), (4 * PAGE + 2, vec![1, 2]), (1_000, vec![1, 2, 3])]
        {
            let mut damaged = sound.clone();
            damaged[byte] ^= 1;
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(found(journal.path()), left, "byte {byte}");
        }
    }

    #[test]
    fn a_block_that_is_larger_than_a_file_makes_it_grow() {
        let journal = TempDir::new().unwrap();
        let (wal, _) = WriteAheadLog::open(journal.path(), BYTES_MAX).unwrap();
        let blocks = blocks([300, 3 * BYTES_MAX, 300, 300].into_iter());
        let appended = blocks.iter().map(|block| {
            let appended = append(&wal, block);
            if appended == AppendResult::AndFilled {
                wal.settled(true);
            }
            appended
        });
        let appended: Vec<_> = appended.collect();
        assert_eq!(
            appended,
            [AppendResult::Durably, AppendResult::AndFilled, AppendResult::AndFilled, AppendResult::Durably]
        );
        assert_eq!(found(journal.path()), [2, 3, 4]);
    }

    /// Written down so that a change of the format does not pass unnoticed.
    #[test]
    fn the_bytes_of_a_frame_stay_as_they_are() {
        let block = &blocks([100].into_iter())[0];
        let mut frame = Vec::new();
        encode(7, &cut(block, block.hash()), &mut frame);
        assert_eq!((frame.len(), crc32c::crc32c(&frame)), (PAGE, 2_274_502_363));
        let (read, length) = decode(&frame).unwrap();
        assert_eq!((read.first, read.counter, length), (Sequence(1), 7, 246));
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let journal = TempDir::new().unwrap();
        let block = &blocks([100].into_iter())[0];
        let mut frame = Vec::new();
        encode(0, &cut(block, block.hash()), &mut frame);
        let length = LENGTH_BYTES + u32::from_be_bytes(*frame.first_chunk().unwrap()) as usize;
        frame[LENGTH_BYTES] = 2;
        let checksum = checksum_of(b"", &frame[..length - CHECKSUM_BYTES]);
        frame[length - CHECKSUM_BYTES..length].copy_from_slice(&checksum);
        std::fs::write(journal.path().join("wal-1"), frame).unwrap();
        let refused = WriteAheadLog::open(journal.path(), BYTES_MAX).unwrap_err();
        assert!(matches!(refused, StoreError::NewerFormat { found: 2, known: 1, .. }), "{refused}");
    }
}
