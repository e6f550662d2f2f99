//! Monitor of a store: current waits for the disk, since when each lasts, and how often a derived
//! file failed.
//!
//! A wait that was long is a line of the log. An endless wait shows a watchdog that the
//! store has stopped. A store on PostgreSQL is not watched so: the database may be restarted or
//! moved, and this process goes on when it is back.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A wait that takes longer than this is logged.
const LONG: Duration = Duration::from_millis(100);

/// Reasons to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// A block of the journal becomes durable.
    Commit,
    /// The write-ahead log is written and synced; where both of its files are full, the database is
    /// flushed first.
    Sync,
    /// The journal's database is flushed in the background.
    Settle,
    /// The journal goes on in another segment.
    SegmentRoll,
    /// A database takes a change, after the changes of others, and after a flush where one is due.
    Change,
    /// A database is flushed.
    Flush,
    /// The file of the cursors is written and synced.
    Cursors,
    /// A durable block is published to readers, which may wait for the writer of the index.
    Publish,
}

impl WaitFor {
    /// True where a wait without an end stops the journal or the state area. Publishing may wait
    /// for the index, which takes long on a slow machine.
    fn is_critical(self) -> bool {
        self != WaitFor::Publish
    }
}

/// The longest critical wait that goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestWait {
    /// Its reason.
    pub what: WaitFor,
    /// How long it has lasted so far.
    pub took: Duration,
}

/// Current waits of a store's threads, a count of failed writes of derived files, and the damaged
/// files that the store set aside.
#[derive(Debug, Default)]
pub struct Monitor {
    is_of_server: bool,
    waits: Mutex<Waits>,
    derived_failures: AtomicU64,
    set_aside: Mutex<Vec<PathBuf>>,
}

#[derive(Debug, Default)]
struct Waits {
    next: u64,
    since: BTreeMap<u64, (WaitFor, Instant)>,
}

/// A wait; it ends when this is dropped.
#[derive(Debug)]
pub struct Wait {
    monitor: Arc<Monitor>,
    number: u64,
}

impl Monitor {
    /// The monitor of a store on a server.
    pub(super) fn of_server() -> Monitor {
        Monitor { is_of_server: true, ..Monitor::default() }
    }

    /// Notes that somebody begins to wait.
    pub fn begin(self: &Arc<Self>, what: WaitFor) -> Wait {
        self.begin_since(what, Instant::now())
    }

    /// Notes that somebody has waited since `since`.
    pub fn begin_since(self: &Arc<Self>, what: WaitFor, since: Instant) -> Wait {
        let mut waits = self.waits.lock();
        let number = waits.next;
        waits.next += 1;
        waits.since.insert(number, (what, since));
        Wait { monitor: Arc::clone(self), number }
    }

    /// The longest of the current waits that stop the journal or the state area.
    pub fn longest_wait(&self) -> Option<LongestWait> {
        let waits = self.waits.lock();
        let critical = waits.since.values().filter(|(what, _)| what.is_critical());
        let first = critical.min_by_key(|(_, since)| *since);
        first.map(|(what, since)| LongestWait { what: *what, took: since.elapsed() })
    }

    /// The longest wait that another process on this machine could end: none for a store on a
    /// server.
    pub fn longest_stop(&self) -> Option<LongestWait> {
        self.longest_wait().filter(|_| !self.is_of_server)
    }

    /// How often something derived could not be written, since the store was opened.
    pub fn derived_failures(&self) -> u64 {
        self.derived_failures.load(Ordering::Relaxed)
    }

    /// Files that were damaged, could be rebuilt, and were moved to these names.
    pub fn files_set_aside(&self) -> Vec<PathBuf> {
        self.set_aside.lock().clone()
    }

    pub(super) fn set_aside(&self, file: PathBuf) {
        self.set_aside.lock().push(file);
    }

    /// Counts one more write of derived data that failed.
    pub fn derived_failed(&self) {
        self.derived_failures.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let ended = self.monitor.waits.lock().since.remove(&self.number);
        let Some((what, took)) = ended.map(|(what, since)| (what, since.elapsed())) else { return };
        if took >= LONG {
            tracing::warn!(?what, ms = took.as_millis() as u64, "the store waited long");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_is_known_until_it_ends() {
        let monitor = Arc::new(Monitor::default());
        let longest = || monitor.longest_wait().map(|waiting| waiting.what);
        let publishing = monitor.begin(WaitFor::Publish);
        assert_eq!(longest(), None, "readers may be late");
        let committing = monitor.begin(WaitFor::Commit);
        let syncing = monitor.begin(WaitFor::Sync);
        assert_eq!(longest(), Some(WaitFor::Commit));
        drop(committing);
        assert_eq!(longest(), Some(WaitFor::Sync));
        drop((syncing, publishing));
        assert_eq!(longest(), None);
    }

    #[test]
    fn a_wait_for_a_server_is_no_reason_to_end_the_process() {
        for (monitor, ends) in [(Monitor::default(), true), (Monitor::of_server(), false)] {
            let monitor = Arc::new(monitor);
            let _waiting = monitor.begin(WaitFor::Commit);
            assert_eq!((monitor.longest_wait().is_some(), monitor.longest_stop().is_some()), (true, ends));
        }
    }
}
