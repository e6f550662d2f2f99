//! Files beside the databases, written whole or not at all: the runs of the index, which are too
//! large for the state area, and the small files of the journal.
//!
//! Each file is written under another name, synced, and then renamed. This module also has the
//! functions that make folders private and durable.

use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Result, StoreError, WriteBytes};

/// The folder of the files.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// Files that were read last stay open, the last one in front.
    open: Mutex<VecDeque<(String, Arc<File>)>>,
}

/// Number of files that stay open: the bound on descriptors for reading.
const OPEN_MAX: usize = 64;

/// Bytes of a file that are written at once.
const WRITTEN_AT_ONCE: usize = 1 << 20;
/// The ending of a file or folder that is being written.
pub const UNFINISHED: &str = "~";

impl Files {
    /// Opens the folder, which exists, and removes files that were being written when the last
    /// process ended.
    pub(super) fn open(folder: PathBuf) -> Result<Self> {
        let files = Self { folder, open: Mutex::default() };
        for (name, _) in files.entries()? {
            if name.ends_with(UNFINISHED) {
                files.remove(&name)?;
            }
        }
        Ok(files)
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_in_parts(name, &mut |out| out.write_all(bytes)).map(drop)
    }

    pub(super) fn put_in_parts(&self, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        let path = self.folder.join(name);
        let written = write_whole(&path, write);
        self.close(name);
        written.map_err(|source| machine(&path, source))
    }

    pub(super) fn part(&self, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.file(name)? else { return Ok(None) };
        read_part(&file, offset, length).map(Some).map_err(|source| machine(&self.folder.join(name), source))
    }

    pub(super) fn list(&self) -> Result<Vec<(String, u64)>> {
        let mut files = self.entries()?;
        files.retain(|(name, _)| !name.ends_with(UNFINISHED));
        files.sort_unstable();
        Ok(files)
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        let path = self.folder.join(name);
        let removed = std::fs::remove_file(&path);
        self.close(name);
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(machine(&path, error)),
            _ => Ok(()),
        }
    }

    /// A file to read from, if it is there. It is opened under the lock, so that a thread that
    /// replaces or removes the file also closes it.
    pub(super) fn file(&self, name: &str) -> Result<Option<Arc<File>>> {
        let mut open = self.open.lock();
        let known = open.iter().position(|(known, _)| known == name);
        let file = match known.and_then(|at| open.remove(at)) {
            Some((_, file)) => file,
            None => match File::open(self.folder.join(name)) {
                Ok(file) => Arc::new(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(machine(&self.folder.join(name), source)),
            },
        };
        open.push_front((name.to_owned(), Arc::clone(&file)));
        open.truncate(OPEN_MAX);
        Ok(Some(file))
    }

    /// Another file has the name from now on, or none.
    fn close(&self, name: &str) {
        self.open.lock().retain(|(known, _)| known != name);
    }

    /// The files with their lengths. One that another thread removes or renames meanwhile may be
    /// left out.
    fn entries(&self) -> Result<Vec<(String, u64)>> {
        let list = || {
            let mut files = Vec::new();
            for entry in std::fs::read_dir(&self.folder)? {
                let entry = entry?;
                let bytes = match entry.metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    found => found?.len(),
                };
                files.push((entry.file_name().to_string_lossy().into_owned(), bytes));
            }
            Ok(files)
        };
        list().map_err(|source| machine(&self.folder, source))
    }
}

/// Up to `length` bytes of a file; fewer at its end.
pub(super) fn read_part(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut part = vec![0; length];
    let mut read = 0;
    while read < length {
        match file.read_at(&mut part[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(source),
        }
    }
    part.truncate(read);
    Ok(part)
}

/// The path of a file or folder that is being written.
pub fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// Gives a file or folder another name, durably. After an error it may have either.
pub fn rename_durably(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Writes a private file durably, and whole or not at all; gives its bytes. Until then it is
/// [`unfinished`]. A power cut or an error leaves the file that was there, or the new one.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<u64> {
    let unfinished = unfinished(path);
    let put = || {
        let file = private_file().write(true).create(true).truncate(true).open(&unfinished)?;
        let mut out = BufWriter::with_capacity(WRITTEN_AT_ONCE, file);
        write(&mut out)?;
        let file = out.into_inner()?;
        file.sync_all()?;
        rename_durably(&unfinished, path)?;
        Ok(file.metadata()?.len())
    };
    put().inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
}

/// Options that make new files readable by this user only.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Takes the rights of everybody else from a folder that was there before. A folder that belongs to
/// somebody else stays as it is.
pub fn make_private(folder: &Path) {
    let tighten = || {
        let mode = folder.metadata()?.permissions().mode();
        if mode & 0o077 == 0 { Ok(()) } else { std::fs::set_permissions(folder, Permissions::from_mode(0o700)) }
    };
    if let Err(error) = tighten() {
        tracing::warn!(folder = %folder.display(), %error, "others may enter this folder, and that can't be changed");
    }
}

/// Makes a folder that nobody else may enter, with those above it.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Like [`create_private_folder`], and makes the names durable. Returns the absolute path.
pub(super) fn create_folder(path: &Path) -> Result<PathBuf> {
    let failed = |source| machine(path, source);
    let path = std::path::absolute(path).map_err(failed)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    create_private_folder(&path).map_err(failed)?;
    for parent in missing.iter().filter_map(|folder| folder.parent()) {
        File::open(parent).and_then(|folder| folder.sync_all()).map_err(failed)?;
    }
    Ok(path)
}

/// Makes the files of a folder and their names durable; sled leaves that to chance when it makes
/// them.
pub(super) fn sync_folder(path: &Path) -> Result<()> {
    let sync = || {
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                File::open(entry.path())?.sync_all()?;
            }
        }
        File::open(path)?.sync_all()
    };
    sync().map_err(|source| machine(path, source))
}

pub(super) fn remove_folder(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(machine(path, error)),
        _ => Ok(()),
    }
}

pub(super) fn machine(folder: &Path, source: io::Error) -> StoreError {
    StoreError::machine(folder, source)
}

/// The error for damage in a folder.
pub(crate) fn damaged(folder: &Path, detail: &str) -> StoreError {
    StoreError::Damaged { folder: folder.to_path_buf(), sequence: None, detail: detail.to_owned() }
}

/// The bytes of all files below a folder. Files that vanish meanwhile count zero.
pub(super) fn bytes_below(folder: &Path) -> Result<u64> {
    count_below(folder).map_err(|source| machine(folder, source))
}

fn count_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let entries = match std::fs::read_dir(folder) {
        Err(error) if absent(&error) => return Ok(0),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        bytes += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => count_below(&entry.path())?,
            Ok(metadata) => metadata.len(),
            Err(error) if absent(&error) => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_file_that_was_read_stays_open_until_it_is_replaced_or_removed_and_few_do() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::open(folder.path().to_path_buf()).unwrap();
        files.put("run", b"first").unwrap();
        assert_eq!(files.part("run", 0, 5).unwrap().unwrap(), b"first");
        std::fs::remove_file(folder.path().join("run")).unwrap();
        assert_eq!(files.part("run", 1, 2).unwrap().unwrap(), b"ir", "read without opening it again");
        files.put("run", b"other").unwrap();
        assert_eq!(files.part("run", 0, 5).unwrap().unwrap(), b"other");
        for number in 0..OPEN_MAX + 9 {
            let name = format!("more-{number}");
            files.put(&name, b"x").unwrap();
            assert_eq!(files.part(&name, 0, 1).unwrap().unwrap(), b"x");
        }
        assert_eq!(files.open.lock().len(), OPEN_MAX);
        files.remove("run").unwrap();
        assert_eq!(files.part("run", 0, 5).unwrap(), None);
    }

    #[test]
    fn files_are_listed_while_others_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let files = Files::open(folder.path().to_owned()).unwrap();
        std::fs::write(folder.path().join("stays"), b"123").unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20_000 {
                    let path = folder.path().join(format!("goes-{}", number % 7));
                    std::fs::write(&path, b"1").unwrap();
                    std::fs::remove_file(&path).unwrap();
                }
                is_over.store(true, Ordering::Release);
            });
            while !is_over.load(Ordering::Acquire) {
                assert!(files.list().unwrap().contains(&("stays".to_owned(), 3)));
            }
        });
    }
}
