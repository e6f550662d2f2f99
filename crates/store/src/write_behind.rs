//! Write-behind: one thread makes lazily put values durable about a second later, and cursors
//! sooner, however often they were put.
//!
//! Lazily put values wait while the disk has less than the reserve: sled takes no write any more
//! after one that found no room.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::cursors::Cursors;
use super::monitor::{Monitor, WaitFor};
use super::space::free_bytes;
use super::state_area::StateArea;
use super::{StoreError, files::machine};

/// Time after which lazily put values are made durable.
pub(super) const AFTER: Duration = Duration::from_secs(1);
/// The same for cursors. What puts them every half second is then within a second on the disk.
pub(super) const CURSORS_AFTER: Duration = Duration::from_millis(400);

/// The thread that makes lazily put values durable.
#[derive(Debug)]
pub(super) struct WriteBehind {
    shared: Arc<WriteBehindShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct WriteBehindShared {
    state: Arc<StateArea>,
    cursors: Arc<Cursors>,
    monitor: Arc<Monitor>,
    /// The data directory, and the free bytes of its disk below which lazily put values wait.
    room: (PathBuf, u64),
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    /// When pending values are to be written; none while there are none.
    state_due: Option<Instant>,
    /// The same for cursors.
    cursors_due: Option<Instant>,
    is_over: bool,
}

/// What is to be written.
#[derive(Clone, Copy, Debug)]
struct DueWrites {
    state: bool,
    cursors: bool,
}

impl WriteBehind {
    pub(super) fn start(
        state: Arc<StateArea>,
        cursors: Arc<Cursors>,
        monitor: Arc<Monitor>,
        room: (PathBuf, u64),
    ) -> Result<WriteBehind, StoreError> {
        let (pending, changed) = Default::default();
        let shared = Arc::new(WriteBehindShared { state, cursors, monitor, room, pending, changed });
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("state".to_owned()).spawn(move || writing.run());
        let thread = thread.map_err(|source| machine("state".as_ref(), source))?;
        Ok(WriteBehind { shared, thread: Some(thread) })
    }

    /// Notes that a value was put.
    pub(super) fn note(&self) {
        self.shared.note(DueWrites { state: true, cursors: false });
    }

    /// Notes that a cursor was put.
    pub(super) fn note_cursor(&self) {
        self.shared.note(DueWrites { state: false, cursors: true });
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        self.shared.pending.lock().is_over = true;
        self.shared.changed.notify_all();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the state area panicked");
        }
    }
}

impl WriteBehindShared {
    fn run(&self) {
        loop {
            let (mut due, is_over) = self.wait();
            if due.state && !is_over && self.is_short() {
                self.note(DueWrites { state: true, cursors: false });
                due.state = false;
            }
            if let Err(error) = self.write(due) {
                self.monitor.derived_failed();
                tracing::error!(%error, "what was put lazily is not durable; it is tried again");
                if !is_over {
                    self.note(due);
                }
            }
            if is_over {
                return;
            }
        }
    }

    /// Whether the disk has too little room for lazily put values. Unknown room is enough room.
    fn is_short(&self) -> bool {
        let (folder, reserve) = &self.room;
        free_bytes(folder).is_ok_and(|free| free < *reserve)
    }

    /// Waits until something is due, and gives it. At the end all is.
    fn wait(&self) -> (DueWrites, bool) {
        let mut pending = self.pending.lock();
        loop {
            if pending.is_over {
                return (DueWrites { state: true, cursors: true }, true);
            }
            let Some(first) = pending.state_due.into_iter().chain(pending.cursors_due).min() else {
                self.changed.wait(&mut pending);
                continue;
            };
            let now = Instant::now();
            if now < first {
                self.changed.wait_until(&mut pending, first);
                continue;
            }
            let state = pending.state_due.take_if(|due| *due <= now).is_some();
            let cursors = pending.cursors_due.take_if(|due| *due <= now).is_some();
            return (DueWrites { state, cursors }, false);
        }
    }

    fn note(&self, due: DueWrites) {
        let (mut pending, now) = (self.pending.lock(), Instant::now());
        if due.state && pending.state_due.is_none() {
            pending.state_due = Some(now + AFTER);
            self.changed.notify_all();
        }
        if due.cursors && pending.cursors_due.is_none() {
            pending.cursors_due = Some(now + CURSORS_AFTER);
            self.changed.notify_all();
        }
    }

    /// Tries both, also when one fails.
    fn write(&self, due: DueWrites) -> Result<(), StoreError> {
        let synced = match due.cursors {
            true => {
                let _waiting = self.monitor.begin(WaitFor::Cursors);
                self.cursors.sync()
            }
            false => Ok(()),
        };
        let flushed = if due.state { self.state.flush() } else { Ok(()) };
        flushed.and(synced)
    }
}
