//! Write-behind: one thread makes lazily put values and cursors durable about a second later,
//! however often they were put.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::cursors::Cursors;
use super::monitor::{Monitor, WaitFor};
use super::state_area::StateArea;
use super::{StoreError, files::machine};

/// Time after which lazily put values are made durable.
pub(super) const AFTER: Duration = Duration::from_secs(1);

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
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Pending {
    /// When the first of the pending values was put.
    since: Option<Instant>,
    is_over: bool,
}

impl WriteBehind {
    pub(super) fn start(
        state: Arc<StateArea>,
        cursors: Arc<Cursors>,
        monitor: Arc<Monitor>,
    ) -> Result<WriteBehind, StoreError> {
        let shared = WriteBehindShared { state, cursors, monitor, pending: Mutex::default(), changed: Condvar::new() };
        let shared = Arc::new(shared);
        let writing = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("state".to_owned()).spawn(move || writing.run());
        let thread = thread.map_err(|source| machine("state".as_ref(), source))?;
        Ok(WriteBehind { shared, thread: Some(thread) })
    }

    /// Notes that something was put.
    pub(super) fn note(&self) {
        let mut pending = self.shared.pending.lock();
        if pending.since.is_none() {
            pending.since = Some(Instant::now());
            self.shared.changed.notify_all();
        }
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
            let is_over = {
                let mut pending = self.pending.lock();
                while !pending.is_over {
                    match pending.since.map(|since| since + AFTER) {
                        None => self.changed.wait(&mut pending),
                        Some(due) if Instant::now() < due => drop(self.changed.wait_until(&mut pending, due)),
                        Some(_) => break,
                    }
                }
                pending.since = None;
                pending.is_over
            };
            if let Err(error) = self.write() {
                self.monitor.derived_failed();
                tracing::error!(%error, "what was put lazily is not durable; it is tried again");
                self.note_again(is_over);
            }
            if is_over {
                return;
            }
        }
    }

    /// Tries both, also when one fails.
    fn write(&self) -> Result<(), StoreError> {
        let synced = {
            let _waiting = self.monitor.begin(WaitFor::Cursors);
            self.cursors.sync()
        };
        self.state.flush().and(synced)
    }

    fn note_again(&self, is_over: bool) {
        if !is_over {
            self.pending.lock().since.get_or_insert_with(Instant::now);
        }
    }
}
