//! Lock of a folder in which an institution of the sandbox keeps its records. Where several
//! processes use the folder, each decision is made in a *turn*: under the lock, after this process
//! has seen what the others wrote. A process that has the folder for itself takes no lock and reads
//! nothing twice.
//!
//! The lock is a file of its own. It holds a number, which a process raises before it changes
//! anything but the end of a file that only grows ([`FolderTurn::announce`]). Whoever finds another
//! number than in its last turn forgets what it knows, and reads the folder anew. So a process that
//! was killed in the middle of a change leaves nobody with a wrong picture. The operating system
//! gives the lock of a killed process back.

use std::fs::{File, OpenOptions, TryLockError, create_dir_all};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use actors::rails::{Call, RailError};
use parking_lot::Mutex;

/// How long a call waits at most for another process that has the lock.
#[derive(Clone, Copy)]
pub(super) struct Patience(Duration);

impl Patience {
    /// For a thread that others need: not at all.
    pub(super) const NONE: Self = Self(Duration::ZERO);
    /// For a preview, whose answer has a default.
    pub(super) const SHORT: Self = Self(Duration::from_millis(20));
    /// For a thread that may wait.
    pub(super) const LONG: Self = Self(Duration::from_secs(2));
}

/// Time between two tries to get the lock.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(1);

/// A folder with its lock, and what this process knows of it.
pub(super) struct FolderLock<S> {
    folder: PathBuf,
    name: &'static str,
    is_shared: bool,
    inner: Mutex<Inner<S>>,
}

struct Inner<S> {
    /// Open since the first turn, where the folder is shared.
    lock: Option<LockFile>,
    known: Option<S>,
}

struct LockFile {
    file: File,
    /// The number that it had in the last turn.
    number: u64,
}

/// A decision under the lock.
pub(super) struct FolderTurn<'a, S> {
    /// What is known of the folder.
    pub(super) known: &'a mut S,
    lock: Option<&'a mut LockFile>,
}

/// Records of an institution in one folder.
pub(super) trait FolderRecords {
    /// What is known of the folder.
    type Contents;

    /// The lock of the folder.
    fn lock(&self) -> &FolderLock<Self::Contents>;

    /// Reads the folder, which exists, when nothing is known of it.
    fn read(&self) -> io::Result<Self::Contents>;

    /// Makes a decision. An error makes known things unknown. It is of the kind `WouldBlock` when
    /// another process has the lock for longer than this one waits.
    fn turn<T>(
        &self,
        patience: Patience,
        decide: impl FnOnce(&mut FolderTurn<'_, Self::Contents>) -> io::Result<T>,
    ) -> io::Result<T> {
        self.lock().turn(patience, || self.read(), decide)
    }

    /// Takes turns as long as `decide` says that it did something, and lets others in between.
    /// Where the folder is shared, a thread that must not wait takes one turn, and then gets the
    /// error `WouldBlock`.
    fn turns(
        &self,
        patience: Patience,
        decide: impl Fn(&mut FolderTurn<'_, Self::Contents>) -> io::Result<bool>,
    ) -> io::Result<()> {
        while self.turn(patience, &decide)? {
            match (self.lock().is_shared, patience.0.is_zero()) {
                (false, _) => {}
                (true, true) => return Err(io::ErrorKind::WouldBlock.into()),
                // Those that wait try again each millisecond.
                (true, false) => sleep(2 * TRY_AGAIN_AFTER),
            }
        }
        Ok(())
    }
}

impl<S> FolderLock<S> {
    /// The lock of this name in a folder. `is_shared`: other processes use the folder too.
    pub(super) fn new(folder: PathBuf, name: &'static str, is_shared: bool) -> Self {
        Self { folder, name, is_shared, inner: Mutex::new(Inner { lock: None, known: None }) }
    }

    fn turn<T>(
        &self,
        patience: Patience,
        read: impl FnOnce() -> io::Result<S>,
        decide: impl FnOnce(&mut FolderTurn<'_, S>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut inner = match self.is_shared {
            true => self.inner.try_lock_for(patience.0.max(TRY_AGAIN_AFTER)).ok_or(io::ErrorKind::WouldBlock)?,
            false => self.inner.lock(),
        };
        let Inner { lock, known } = &mut *inner;
        if lock.is_none() && known.is_none() {
            create_dir_all(&self.folder)?;
        }
        if self.is_shared && lock.is_none() {
            *lock = Some(LockFile::open(self.folder.join(self.name))?);
        }
        let mut held = lock.as_mut().map(|lock| HeldLock::get(lock, patience)).transpose()?;
        if let Some(held) = &mut held
            && held.was_announced()?
        {
            *known = None;
        }
        let mut taken = known.take().map_or_else(read, Ok)?;
        let mut turn = FolderTurn { known: &mut taken, lock: held.as_mut().map(|held| &mut *held.0) };
        let decided = decide(&mut turn);
        if !decided.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
            *known = Some(taken);
        }
        decided
    }
}

impl<S> FolderTurn<'_, S> {
    /// Has the other processes read the folder anew in their next turn. To be called before each
    /// change but those at the end of a file that only grows.
    pub(super) fn announce(&mut self) -> io::Result<()> {
        let Some(lock) = &mut self.lock else { return Ok(()) };
        lock.number += 1;
        lock.file.write_all_at(&lock.number.to_le_bytes(), 0)
    }
}

impl LockFile {
    fn open(path: PathBuf) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let number = number(&file)?;
        Ok(Self { file, number })
    }
}

/// The number in a lock's file; 0 in a new one.
fn number(file: &File) -> io::Result<u64> {
    let mut bytes = [0; 8];
    let _ends_early = file.read_at(&mut bytes, 0)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The lock, until it is dropped.
struct HeldLock<'a>(&'a mut LockFile);

impl<'a> HeldLock<'a> {
    fn get(lock: &'a mut LockFile, patience: Patience) -> io::Result<Self> {
        let begun = Instant::now();
        loop {
            match lock.file.try_lock() {
                Ok(()) => return Ok(Self(lock)),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if begun.elapsed() < patience.0 => sleep(TRY_AGAIN_AFTER),
                Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            }
        }
    }

    /// Whether another process has announced a change since the last turn.
    fn was_announced(&mut self) -> io::Result<bool> {
        let known = std::mem::replace(&mut self.0.number, number(&self.0.file)?);
        Ok(self.0.number != known)
    }
}

impl Drop for HeldLock<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.file.unlock() {
            tracing::error!(%error, "the lock of a sandbox's institution cannot be given back");
        }
    }
}

/// Asks an institution: here and now or, where another process has its lock, on a thread that may
/// wait. `work` is called twice then: what it does before its first error must be harmless twice.
/// No answer comes where the records of `name` cannot be read or written.
pub(super) fn ask<B: Send + Sync + 'static, T: Send + 'static>(
    books: &Arc<B>,
    name: &'static str,
    work: impl Fn(&B, Patience) -> io::Result<T> + Send + 'static,
) -> Call<'static, T> {
    let unanswered = move |error: io::Error| {
        tracing::error!(%error, "the records of the sandbox's {name} cannot be read or written");
        RailError::NoAnswer
    };
    match work(books, Patience::NONE) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            let books = Arc::clone(books);
            Box::pin(async move {
                let done = tokio::task::spawn_blocking(move || work(&books, Patience::LONG)).await;
                done.unwrap_or_else(|ended| Err(io::Error::other(ended))).map_err(unanswered)
            })
        }
        done => Box::pin(std::future::ready(done.map_err(unanswered))),
    }
}
