//! Folder of a backup: read and checked from its first block to its last, and continued by a run.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{BackupError, DurableValue, Frame, FrameReader, extents_among, write_magic};
use derived::extents::{ExtentError, Extents};
use derived::heads::{Heads, named};
use store::{
    Block, Head, Partition, Position, Sequence, StoreError, UNFINISHED, create_private_folder, make_private,
    private_file, unfinished, write_whole,
};

/// The largest file of blocks, unless one block is larger.
const FILE_BYTES_MAX: u64 = 256 << 20;
pub(super) const KEYS: &str = "keys";
pub(super) const LOCK: &str = "lock";
const BLOCKS: &str = ".blocks";

/// A backup as it stands in its folder.
#[derive(Debug)]
pub struct BackupFolder {
    path: PathBuf,
    heads: Heads,
    values: Vec<DurableValue>,
    /// Whether no run has happened yet.
    is_new: bool,
}

impl BackupFolder {
    /// Opens a backup; reads its keys and its end, and no block yet.
    pub fn open(path: &Path) -> Result<Self, BackupError> {
        let folder = Self::open_or_begin(path)?;
        if folder.is_new { Err(BackupError::NoBackup { folder: folder.path }) } else { Ok(folder) }
    }

    /// True when a folder is, or was, one of a backup.
    pub fn is_one(path: &Path) -> bool {
        path.join(KEYS).is_file() || path.join(name_of(1)).is_file()
    }

    fn open_or_begin(path: &Path) -> Result<Self, BackupError> {
        let keys = path.join(KEYS);
        let mut folder = Self { path: path.to_path_buf(), heads: Heads::default(), values: Vec::new(), is_new: true };
        let file = match File::open(&keys) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return match names(path)?.iter().find(|name| name.as_str() != LOCK) {
                    None => Ok(folder),
                    Some(name) if number_of(name).is_some() => {
                        Err(BackupError::Damaged { file: keys, detail: "missing beside the blocks".to_owned() })
                    }
                    Some(name) => Err(BackupError::NotEmpty { file: path.join(name) }),
                };
            }
            file => file.map_err(|source| machine(&keys, source))?,
        };
        let mut reader = FrameReader::new(BufReader::new(file), keys)?;
        folder.heads = loop {
            match reader.next_frame()? {
                Frame::Value(value) => folder.values.push(value),
                Frame::End(heads) => break heads,
                Frame::Block(_) => return Err(reader.damaged("a block stands among the keys")),
            }
        };
        reader.finish()?;
        folder.is_new = false;
        Ok(folder)
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The ends of the journals through which it goes.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The durable values beside the journal.
    pub(crate) fn values(&self) -> &[DurableValue] {
        &self.values
    }

    /// The extents of the store that was copied.
    pub fn extents(&self) -> Result<Extents, ExtentError> {
        extents_among(&self.values)
    }

    /// Its blocks, from the first. Everything is checked: every frame, the chain of each partition,
    /// and that they reach the end that `keys` names. The iterator ends after its first error.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Result<Block, BackupError>> + '_ {
        BlockFiles::of(self)
    }
}

/// Reads one file of blocks after the other.
struct BlockFiles<'a> {
    folder: &'a BackupFolder,
    heads: Heads,
    number: u32,
    reader: Option<FrameReader<BufReader<File>>>,
    is_over: bool,
}

impl Iterator for BlockFiles<'_> {
    type Item = Result<Block, BackupError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let block = self.next_block().transpose();
        self.is_over = !matches!(block, Some(Ok(_)));
        block
    }
}

impl<'a> BlockFiles<'a> {
    fn of(folder: &'a BackupFolder) -> Self {
        BlockFiles { folder, heads: Heads::default(), number: 0, reader: None, is_over: false }
    }

    fn next_block(&mut self) -> Result<Option<Block>, BackupError> {
        loop {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None if self.heads == self.folder.heads => return Ok(None),
                None => {
                    let reader = self.next_file()?;
                    self.reader.insert(reader)
                }
            };
            match reader.next_frame()? {
                Frame::Block(block) => {
                    if self.heads.pass(&block).is_err() {
                        return Err(reader.damaged("a block does not continue the chain"));
                    }
                    return Ok(Some(block));
                }
                Frame::End(end) if end == self.heads => {
                    self.reader.take().map_or(Ok(()), FrameReader::finish)?;
                }
                Frame::End(_) => return Err(reader.damaged("its end is not that of its blocks")),
                Frame::Value(_) => return Err(reader.damaged("a key stands among the blocks")),
            }
        }
    }

    fn next_file(&mut self) -> Result<FrameReader<BufReader<File>>, BackupError> {
        self.number += 1;
        let path = self.folder.path.join(name_of(self.number));
        match File::open(&path) {
            Ok(file) => FrameReader::new(BufReader::with_capacity(READ_BYTES, file), path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let through = self.folder.heads.cut();
                let detail = format!("missing: the backup goes through sequence {}", through.name());
                Err(BackupError::Damaged { file: path, detail })
            }
            Err(source) => Err(machine(&path, source)),
        }
    }
}

pub(super) const READ_BYTES: usize = 1 << 18;

/// Result of a run: what it added, and the size of the backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupResult {
    /// Records that are new.
    pub records: u64,
    /// Bytes that are new.
    pub bytes: u64,
    /// Bytes of the whole backup.
    pub bytes_in_all: u64,
    /// The end of the backup.
    pub heads: Heads,
}

/// A run of a backup, which holds the lock of its folder.
#[derive(Debug)]
pub struct BackupRun {
    folder: BackupFolder,
    /// How many files of blocks count.
    pub(super) files: u32,
    pub(super) file_bytes_max: u64,
    _lock: File,
}

impl BackupRun {
    /// Begins a run: makes the folder where there is none, removes leftovers of an interrupted run,
    /// and reads and checks the whole backup. Calls `progress` with the number of Records checked
    /// and their total.
    pub fn begin(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, BackupError> {
        let path = std::path::absolute(path).map_err(|source| machine(path, source))?;
        create_private_folder(&path).map_err(|source| machine(&path, source))?;
        make_private(&path);
        path.parent().map_or(Ok(()), sync_folder)?;
        let lock = lock(&path)?;
        remove_unfinished(&path)?;
        let folder = BackupFolder::open_or_begin(&path)?;
        let total = folder.heads.records();
        let (mut blocks, mut read) = (BlockFiles::of(&folder), 0);
        for block in blocks.by_ref() {
            read += block?.records.len() as u64;
            progress(read, total);
        }
        let files = blocks.number;
        Ok(Self { folder, files, file_bytes_max: FILE_BYTES_MAX, _lock: lock })
    }

    /// The ends of the journals through which the backup goes.
    pub fn heads(&self) -> &Heads {
        &self.folder.heads
    }

    /// Adds what [`super::frames`] gives from there on. An error leaves the backup as it was.
    /// Calls `progress` with the number of Records and their total. A run may take more than once.
    pub fn take(
        &mut self,
        frames: impl Iterator<Item = Result<Frame, BackupError>>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupResult, BackupError> {
        let taken = self.copy(frames, progress);
        match &taken {
            Ok((taken, files)) => {
                (self.folder.heads, self.folder.is_new, self.files) = (taken.heads.clone(), false, *files);
            }
            Err(_) => {
                let _the_next_run_tries_again = remove_unfinished(&self.folder.path);
            }
        }
        taken.map(|(taken, _)| taken)
    }

    /// The folder of the backup.
    pub(super) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// Copies the frames; gives how many files count then.
    fn copy(
        &self,
        mut frames: impl Iterator<Item = Result<Frame, BackupError>>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(BackupResult, u32), BackupError> {
        let mut next_frame = || frames.next().unwrap_or(Err(BackupError::Source("it breaks off")));
        let mut values = Vec::new();
        let through = loop {
            match next_frame()? {
                Frame::Value(value) => values.push(value),
                Frame::End(heads) => break heads,
                Frame::Block(_) => return Err(BackupError::Source("a block stands among the keys")),
            }
        };
        self.admit_longer(&through)?;
        let begin = &self.folder.heads;
        let (mut copied, records) = (0, through.records() - begin.records());
        let mut writer = BlockFileWriter { run: self, open: None, finished: Vec::new(), bytes: 0 };
        let mut heads = begin.clone();
        loop {
            match next_frame()? {
                Frame::Block(block) => {
                    let partition = block.partition;
                    if heads.of(partition).admit(&block).is_err() {
                        return Err(self.parts(partition, &heads, "a block does not continue the chain"));
                    }
                    let (after, count) = (Head::after(&block, block.hash()), block.records.len() as u64);
                    writer.write(block, &heads)?;
                    heads.set(partition, after);
                    copied += count;
                    progress(copied, records);
                }
                Frame::End(end) => {
                    let differs = heads.first_difference(&end).or_else(|| heads.first_difference(&through));
                    let Some((partition, ..)) = differs else { break };
                    return Err(self.parts(partition, &heads, "its end is not that of its blocks"));
                }
                Frame::Value(_) => return Err(BackupError::Source("a key stands among the blocks")),
            }
        }
        let (finished, bytes) = writer.finish(&through)?;
        let (files, bytes_in_all) = self.complete(&values, &through, &finished)?;
        Ok((BackupResult { records, bytes, bytes_in_all, heads: through }, files))
    }

    /// Makes the new files count, which are on the disk under names that do not; gives how many
    /// files count then, and the size of the backup.
    fn complete(&self, values: &[DurableValue], through: &Heads, finished: &[u32]) -> Result<(u32, u64), BackupError> {
        if self.folder.is_new {
            self.put_keys(values, &Heads::default())?;
        }
        self.remove_uncounted()?;
        for number in finished {
            let path = self.folder.path.join(name_of(*number));
            std::fs::rename(unfinished(&path), &path).map_err(|source| machine(&path, source))?;
        }
        sync_folder(&self.folder.path)?;
        // With this the run has happened.
        let keys_bytes = self.put_keys(values, through)?;
        let files = self.files + finished.len() as u32;
        let sizes = (1..=files).map(|number| {
            let path = self.folder.path.join(name_of(number));
            std::fs::metadata(&path).map(|metadata| metadata.len()).map_err(|source| machine(&path, source))
        });
        Ok((files, sizes.sum::<Result<u64, _>>()? + keys_bytes))
    }

    /// The error where a partition does not continue as it should: the journal is another one if
    /// nothing of it has continued the backup, else its source is broken.
    fn parts(&self, partition: Partition, heads: &Heads, broken: &'static str) -> BackupError {
        let begin = self.folder.heads.of(partition);
        if heads.of(partition) != begin {
            return BackupError::Source(broken);
        }
        self.other_journal(format!("it has another block at {}", named(last(partition, begin))))
    }

    fn other_journal(&self, detail: String) -> BackupError {
        BackupError::OtherJournal { folder: self.folder.path.clone(), detail }
    }

    /// Refuses journals of which one ends before the backup does.
    fn admit_longer(&self, through: &Heads) -> Result<(), BackupError> {
        let shorter = self.folder.heads.iter().find(|(partition, head)| through.of(*partition).next < head.next);
        let Some((partition, head)) = shorter else { return Ok(()) };
        let (ours, ends_at) = (named(last(partition, head)), through.of(partition).next.0 - 1);
        Err(self.other_journal(format!("the backup goes through {ours}, and the journal ends at {ends_at}")))
    }

    /// Replaces the keys and the end of the backup; gives the size of the file.
    fn put_keys(&self, values: &[DurableValue], heads: &Heads) -> Result<u64, BackupError> {
        let path = self.folder.path.join(KEYS);
        let write = |mut out: &mut dyn Write| {
            write_magic(&mut out)?;
            for value in values {
                out.write_all(&Frame::Value(value.clone()).to_bytes()?)?;
            }
            out.write_all(&Frame::End(heads.clone()).to_bytes()?)
        };
        write_whole(&path, write).map_err(|source| machine(&path, source))
    }

    /// Removes the files of a run that was cut before it had happened.
    fn remove_uncounted(&self) -> Result<(), BackupError> {
        for name in names(&self.folder.path)? {
            if number_of(&name).is_some_and(|number| number > self.files) {
                remove(&self.folder.path.join(name))?;
            }
        }
        Ok(())
    }
}

/// The last Record before a head.
fn last(partition: Partition, head: Head) -> Position {
    Position { partition, sequence: Sequence(head.next.0 - 1) }
}

/// Writes blocks to files that have no name yet.
struct BlockFileWriter<'a> {
    run: &'a BackupRun,
    open: Option<OpenFile>,
    finished: Vec<u32>,
    bytes: u64,
}

pub(super) struct OpenFile {
    number: u32,
    path: PathBuf,
    to: BufWriter<File>,
    bytes: u64,
}

impl BlockFileWriter<'_> {
    /// Writes a block that continues `before`, in the file that is open if there is room.
    fn write(&mut self, block: Block, before: &Heads) -> Result<(), BackupError> {
        let frame = Frame::Block(block).to_bytes();
        let frame = frame.map_err(|source| machine(&self.run.folder.path, source))?;
        let is_full = |file: &OpenFile| file.bytes + frame.len() as u64 > self.run.file_bytes_max;
        if self.open.as_ref().is_some_and(is_full) {
            self.close(before)?;
        }
        let file = match &mut self.open {
            Some(file) => file,
            None => {
                let file = OpenFile::create(self.run, self.run.files + self.finished.len() as u32 + 1)?;
                self.open.insert(file)
            }
        };
        file.write(&frame)
    }

    fn close(&mut self, heads: &Heads) -> Result<(), BackupError> {
        let Some(mut file) = self.open.take() else { return Ok(()) };
        let end = Frame::End(heads.clone()).to_bytes().map_err(|source| machine(&file.path, source))?;
        file.write(&end)?;
        let (number, bytes) = (file.number, file.bytes);
        file.finish()?;
        self.finished.push(number);
        self.bytes += bytes;
        Ok(())
    }

    fn finish(mut self, heads: &Heads) -> Result<(Vec<u32>, u64), BackupError> {
        self.close(heads)?;
        Ok((self.finished, self.bytes))
    }
}

impl OpenFile {
    pub(super) fn create(run: &BackupRun, number: u32) -> Result<Self, BackupError> {
        let path = unfinished(&run.folder.path.join(name_of(number)));
        let mut begin = Vec::new();
        let file = write_magic(&mut begin).and_then(|()| create(&path));
        let to = BufWriter::with_capacity(READ_BYTES, file.map_err(|source| machine(&path, source))?);
        let mut file = Self { number, path, to, bytes: 0 };
        file.write(&begin)?;
        Ok(file)
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(|source| machine(&self.path, source))
    }

    /// Waits until it is on the disk, still without its name.
    pub(super) fn finish(mut self) -> Result<(), BackupError> {
        let written = self.to.flush().and_then(|()| self.to.get_ref().sync_all());
        written.map_err(|source| machine(&self.path, source))
    }
}

/// A new file that only this user can read.
fn create(path: &Path) -> io::Result<File> {
    private_file().create(true).truncate(true).write(true).open(path)
}

pub(super) fn name_of(number: u32) -> String {
    format!("{number:06}{BLOCKS}")
}

pub(super) fn number_of(name: &str) -> Option<u32> {
    name.strip_suffix(BLOCKS)?.parse().ok()
}

/// File names of a folder, sorted; empty if there is no folder.
pub(super) fn names(path: &Path) -> Result<Vec<String>, BackupError> {
    let list = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    };
    match list() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        names => names.map_err(|source| machine(path, source)),
    }
}

fn remove_unfinished(path: &Path) -> Result<(), BackupError> {
    let is_ours = |name: &&str| *name == KEYS || number_of(name).is_some();
    for name in names(path)? {
        if name.strip_suffix(UNFINISHED).as_ref().is_some_and(is_ours) {
            remove(&path.join(name))?;
        }
    }
    Ok(())
}

pub(super) fn remove(path: &Path) -> Result<(), BackupError> {
    std::fs::remove_file(path).map_err(|source| machine(path, source))
}

fn lock(path: &Path) -> Result<File, BackupError> {
    let lock = path.join(LOCK);
    let file = private_file().create(true).truncate(false).write(true).open(&lock);
    let file = file.map_err(|source| machine(&lock, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::InUse { folder: path.to_path_buf() }),
        Err(TryLockError::Error(source)) => Err(machine(&lock, source)),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> Result<(), BackupError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(|source| machine(path, source))
}

pub(super) fn machine(path: &Path, source: io::Error) -> BackupError {
    StoreError::machine(path, source).into()
}
