//! Store in PostgreSQL: the journal outlives a machine, and another process takes over.
//!
//! All calls of [`Store`] are synchronous; the connections live on a runtime of their own. One
//! connection commits blocks, one writes values, one writes files, one beats, some read. The one
//! that commits is driven by the thread that waits for the commit: a runtime's thread between the
//! two would be woken twice, and a lone commit takes that much longer.
//!
//! - `address.rs`, `link.rs`: addresses; connections, what a session is set to, which errors are
//!   tried again.
//! - `seen.rs`: what a process has seen of the database, for its next start.
//! - `schema.rs`: the tables.
//! - `commit.rs`: the commit of a block, and the change of a partition's owner.
//! - `lease.rs`: how a process knows that it still owns its partitions.
//! - `nodes.rs`: the processes and partitions of a database, as seen at once.
//! - `journal_reads.rs`, `recent_blocks.rs`: Records and blocks; the last blocks of this process,
//!   in memory.
//! - `state_area.rs`, `files.rs`: values and files beside the journal.
//!
//! **Architecture Invariant:** only this folder names the database's library.

mod address;
mod commit;
mod database_seen;
mod files;
mod hosts;
mod journal_reads;
mod lease;
mod link;
mod nodes;
mod recent_blocks;
mod schema;
mod state_area;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::block_in_place;

use self::commit::CommitTroubles;
use self::database_seen::SeenFile;
use self::journal_reads::Blocks;
use self::lease::Lease;
use self::link::{Connector, Line, Link, NO_ANSWER, QueryResult};
use self::recent_blocks::RecentBlocks;
use self::state_area::{Area, StateWrites};
use super::{
    AppendOutcome, Block, Durability, Epoch, Head, KeyAndValue, Monitor, Partition, Result, Sequence, Store,
    StoreError, StoredRecord, Tenure, WriteBytes, admit_common_key, admit_file_name, admit_state_key,
};

pub use self::address::PostgresAddress;
pub use self::lease::{OwnerWatch, PostgresDemands, now_ms};
pub use self::nodes::{NodeSeen, PartitionSeen, Picture};

/// Connections that read.
const READERS: usize = 3;

/// How long one answer may take, unless the takeover time is longer: then the connection is given
/// up. A beat has the takeover time.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The takeover time where none is set.
pub const TAKEOVER: Duration = Duration::from_secs(10);

/// How the store is opened.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Where the database is.
    pub address: PostgresAddress,
    /// How long an owner's beat stands still until it is taken to be gone. Of two processes that
    /// differ, the longer time counts.
    pub takeover: Duration,
    /// Conditions on which the database keeps what it has acknowledged.
    pub demands: PostgresDemands,
    /// Description of this process in the table of processes, such as its release and machine.
    pub about: String,
    /// Data folder in which the process keeps what it has seen of the database. None for a command
    /// that has no data folder.
    pub seen_in: Option<PathBuf>,
    /// The last Record of each partition that an operator counts on. Later Records may be missing
    /// from a database that is behind.
    pub accept_loss_after: Option<BTreeMap<Partition, Sequence>>,
    /// The address at which other nodes reach this process, `host:port`. None if it is no node: it
    /// has all partitions, or waits for them.
    pub node: Option<String>,
}

impl PostgresOptions {
    /// The options where nothing is set but the address.
    pub fn at(address: PostgresAddress) -> Self {
        let (demands, about) = (PostgresDemands::default(), String::new());
        Self { address, takeover: TAKEOVER, demands, about, seen_in: None, accept_loss_after: None, node: None }
    }
}

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    parts: Arc<StoreParts>,
    readers: Vec<Line>,
    next_reader: AtomicUsize,
    write_behind: Option<JoinHandle<()>>,
    /// Its thread ends when the sender is dropped.
    beating: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    /// None once it is dropped.
    runtime: Option<Runtime>,
}

/// Parts that the store shares with its threads.
struct StoreParts {
    runtime: Handle,
    /// Drives the connection that commits, on the thread that waits for it. None once it is
    /// dropped.
    committing: Option<Runtime>,
    lease: Arc<Lease>,
    troubles: CommitTroubles,
    commits: Line,
    writes: Line,
    files: Line,
    beats: Line,
    /// Held while a file is written.
    filing: Mutex<()>,
    waiting: StateWrites,
    recent: Mutex<RecentBlocks>,
    monitor: Arc<Monitor>,
    seen: Option<SeenFile>,
    /// How long work is tried that need not succeed.
    patience: Duration,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PostgresStore").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Connects to a database, makes the tables where there are none, and begins to beat.
    pub fn open(options: &PostgresOptions) -> Result<Self> {
        let mut store = Self::connected(options, false)?;
        let parts = Arc::clone(&store.parts);
        let accepted = options.accept_loss_after.as_ref();
        parts.wait(async {
            let link = parts.writes.connected().await?;
            if let Some(seen) = &parts.seen {
                seen.admit(&parts.writes, &link, accepted).await?;
            }
            Line::admit_sessions(&[&parts.writes, &parts.beats, &store.readers[0]]).await?;
            schema::migrate(&parts.writes).await?;
            parts.beat(&parts.writes).await?;
            parts.lease.forget_old(&parts.writes).await
        })?;
        store.write_behind = Some(parts.start_write_behind()?);
        let (stop, stopped) = mpsc::channel::<()>();
        store.beating = Some((stop, parts.start_beating(stopped)?));
        Ok(store)
    }

    /// Connects to a database, to read it as it is now. Nothing is made or written.
    pub fn open_snapshot(options: &PostgresOptions) -> Result<Self> {
        let store = Self::connected(options, true)?;
        store.parts.wait(schema::require(&store.readers[0]))?;
        Ok(store)
    }

    fn connected(options: &PostgresOptions, is_snapshot: bool) -> Result<Self> {
        let threads = Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build();
        let runtime = threads.map_err(|source| StoreError::Machine { folder: "postgres".into(), source })?;
        let random = getrandom::u64().map_err(|error| StoreError::Machine {
            folder: "postgres".into(),
            source: std::io::Error::other(error.to_string()),
        })?;
        let process = format!("centavo-{random:016x}");
        let takeover = options.takeover;
        let patience = takeover.max(ANSWER_MAX);
        let committing = Builder::new_current_thread().enable_all().build();
        let committing = committing.map_err(|source| StoreError::Machine { folder: "postgres".into(), source })?;
        let connector = Connector::new(&options.address, &process, runtime.handle().clone(), patience);
        let commits = Arc::new(connector.on(committing.handle().clone()));
        let (beats, connector) = (Arc::new(connector.with_patience(takeover)), Arc::new(connector));
        let line = || Line::new(&connector);
        let readers = match is_snapshot {
            true => vec![Line::of_snapshot(&connector)],
            false => (0..READERS).map(|_| line()).collect(),
        };
        let parts = StoreParts {
            runtime: runtime.handle().clone(),
            committing: Some(committing),
            lease: Arc::new(Lease::new(process, options)),
            troubles: CommitTroubles::default(),
            commits: Line::new(&commits),
            writes: line(),
            files: line(),
            beats: Line::new(&beats),
            filing: Mutex::default(),
            waiting: StateWrites::default(),
            recent: Mutex::default(),
            monitor: Arc::new(Monitor::of_server()),
            seen: options.seen_in.as_deref().filter(|_| !is_snapshot).map(SeenFile::open).transpose()?,
            patience,
        };
        let next_reader = AtomicUsize::new(0);
        Ok(Self {
            parts: Arc::new(parts),
            readers,
            next_reader,
            write_behind: None,
            beating: None,
            runtime: Some(runtime),
        })
    }

    /// Host, port and database.
    pub fn place(&self) -> &str {
        self.parts.commits.place()
    }

    /// Looks once whether a partition can be taken: nobody has it, or its owner is gone. Gives the
    /// epoch to take it from. To be called several times in a takeover time.
    pub fn look(&self, watch: &mut OwnerWatch, partition: Partition) -> Result<Option<Epoch>> {
        self.parts.wait(watch.look(&self.parts.writes, &self.parts.lease, partition))
    }

    /// Takes a partition whose epoch is still `seen`. If its owner is gone, `gone` is the beat that
    /// stood still ([`OwnerWatch::gone`], [`NodeSeen::beat`]), and nothing is taken when it has
    /// moved since. None if nothing was taken. After an error it is not known; what may have been
    /// taken is given up then.
    pub fn take_from(&self, partition: Partition, seen: Epoch, gone: Option<i64>) -> Result<Option<Tenure>> {
        let StoreParts { commits, lease, patience, .. } = &*self.parts;
        let tenure = Tenure { partition, epoch: Epoch(seen.0 + 1) };
        self.parts.wait_for_commit(commit::take(commits, lease, tenure, gone, *patience))
    }

    /// Shows the others the address of this process, if it is a node: they count on it from now
    /// on. After an error each beat shows it.
    pub fn join(&self) -> Result<()> {
        self.parts.lease.join();
        self.parts.wait(self.parts.beat(&self.parts.beats))
    }

    /// Announces durably that this process hands its partitions over. After an error each beat
    /// announces it again.
    pub fn leave(&self) -> Result<()> {
        self.parts.lease.leave();
        self.parts.wait(self.parts.beat(&self.parts.beats))
    }

    /// Since the start: blocks that were fenced, and blocks that were handed in again because no
    /// answer had come.
    pub fn commit_troubles(&self) -> (u64, u64) {
        let CommitTroubles { fenced, unknown } = &self.parts.troubles;
        (fenced.load(Ordering::Relaxed), unknown.load(Ordering::Relaxed))
    }

    /// Server from which a snapshot is read, and what the other ones of the address said.
    pub fn read_from(&self) -> Result<String> {
        let link = self.parts.wait(self.readers[0].connected())?;
        let others = self.readers[0].hosts().failures();
        let others = if others.is_empty() { others } else { format!("; {others}") };
        Ok(format!("{} on timeline {}{others}", link.host(), link.timeline()))
    }

    /// The name of this process in the database.
    pub fn process(&self) -> &str {
        self.parts.lease.process()
    }

    /// Time between two looks.
    pub fn pace(&self) -> Duration {
        self.parts.lease.pace()
    }

    fn read<T>(&self, work: impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T> {
        let reader = self.next_reader.fetch_add(1, Ordering::Relaxed) % self.readers.len();
        // The journal's thread reads too, and its failure would end the process. A request that
        // waits here gets its answer elsewhere (`is_current`).
        self.parts.wait(self.readers[reader].until(None, work))
    }
}

impl StoreParts {
    /// Waits for work on a connection, on any thread. The work is not part of the task that may run
    /// on the thread, and not bound to that task's share of time.
    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        let _timers_and_sockets = self.runtime.enter();
        futures_executor::block_on(tokio::task::unconstrained(work))
    }

    /// Waits for work on the connection that commits, and drives it meanwhile. On a worker of a
    /// runtime, another thread becomes the worker.
    fn wait_for_commit<T>(&self, work: impl Future<Output = T>) -> T {
        let committing = self.committing.as_ref().expect("it is dropped last");
        let has_workers = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
        let wait = || committing.block_on(tokio::task::unconstrained(work));
        if Handle::try_current().is_ok_and(has_workers) { block_in_place(wait) } else { wait() }
    }

    fn start_beating(self: &Arc<Self>, stopped: mpsc::Receiver<()>) -> Result<JoinHandle<()>> {
        let parts = Arc::clone(self);
        let beat = move || {
            while stopped.recv_timeout(parts.lease.pace()) == Err(mpsc::RecvTimeoutError::Timeout) {
                if let Err(error) = parts.wait(parts.beat(&parts.beats)) {
                    let hint = parts.hint(&error);
                    tracing::warn!(%error, hint, "a beat failed: without one this process soon answers nothing");
                }
            }
        };
        let thread = std::thread::Builder::new().name("beat".to_owned()).spawn(beat);
        thread.map_err(|source| StoreError::Machine { folder: "beat".into(), source })
    }

    /// One beat; what it sees of the database is noted for the next start.
    async fn beat(&self, line: &Line) -> Result<()> {
        let beaten = self.lease.beat(line).await?;
        if let (Some(seen), Some(beaten)) = (&self.seen, beaten) {
            seen.note(beaten.system, beaten.timeline, beaten.heads);
        }
        Ok(())
    }

    /// What may keep a beat from an answer although the database runs: only where it was reached.
    fn hint(&self, error: &StoreError) -> Option<&'static str> {
        let is_silent = matches!(error, StoreError::Unavailable { detail, .. } if detail.starts_with(NO_ANSWER));
        self.lease.hint().filter(|_| is_silent)
    }

    fn write<T>(&self, work: impl AsyncFn(&Link) -> QueryResult<T>) -> Result<T> {
        self.wait(self.writes.until(Some(self.patience), work))
    }

    /// Refuses a tenure that this process does not have, or has no more.
    fn admit(&self, tenure: Tenure) -> Result<()> {
        if self.lease.is_superseded() {
            return Err(StoreError::Fenced { partition: tenure.partition });
        }
        tenure.admit(self.lease.epoch(tenure.partition).unwrap_or_default())
    }

    /// A tenure as this process has it: one that it gave up has no epoch.
    fn held(&self, tenure: Tenure) -> Tenure {
        match self.lease.is_given_up(tenure) {
            true => Tenure { epoch: Epoch::NONE, ..tenure },
            false => tenure,
        }
    }

    /// Notes that the database refused a write for its tenure.
    fn fenced(&self, tenure: Tenure) {
        if self.lease.epoch(tenure.partition) == Some(tenure.epoch) {
            self.lease.set_superseded();
        }
    }
}

impl Drop for StoreParts {
    fn drop(&mut self) {
        // On a worker of another runtime it may not wait.
        if let Some(committing) = self.committing.take() {
            committing.shutdown_background();
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.parts.end_write_behind();
        if self.write_behind.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of the state area panicked");
        }
        if let Some((stop, thread)) = self.beating.take() {
            drop(stop);
            if thread.join().is_err() {
                tracing::error!("the thread that beats panicked");
            }
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

const INSERT_COMMON: &str = "INSERT INTO common (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const COMMON: &str = "SELECT value FROM common WHERE key = $1";
const REMOVE_COMMON: &str = "DELETE FROM common WHERE key = $1";
const COMMONS: &str = "SELECT key, value FROM common ORDER BY key";
const SIZE: &str = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'centavo' AND c.relkind = 'r'";

impl Store for PostgresStore {
    fn epoch(&self, partition: Partition) -> Result<Epoch> {
        self.read(async |link| commit::epoch(link, partition).await)
    }

    fn take(&self, partition: Partition, seen: Epoch) -> Result<Option<Tenure>> {
        self.take_from(partition, seen, None)
    }

    fn release(&self, tenure: Tenure) -> Result<()> {
        let flushed = self.parts.flush();
        self.parts.lease.left(tenure);
        // If the database does not answer, it learns of it with the next picture.
        flushed.and(self.parts.wait_for_commit(commit::release(&self.parts.commits, tenure)))
    }

    fn is_current(&self) -> bool {
        self.parts.lease.is_current()
    }

    fn is_superseded(&self) -> bool {
        self.parts.lease.is_superseded()
    }

    fn is_followed(&self) -> bool {
        self.parts.lease.is_node()
    }

    fn watch_use(&self) -> Box<dyn Fn() -> bool + Send> {
        let lease = Arc::clone(&self.parts.lease);
        Box::new(move || lease.is_current())
    }

    fn trouble(&self) -> Option<String> {
        Some(self.parts.writes.hosts().failures()).filter(|text| !text.is_empty())
    }

    fn has_former(&self) -> bool {
        self.parts.writes.hosts().has_former()
    }

    fn heads(&self, partitions: &[Partition]) -> Result<Vec<Head>> {
        let ids: Vec<i32> = partitions.iter().map(|partition| i32::from(partition.0)).collect();
        self.read(async |link| commit::heads(link, &ids).await)
    }

    fn ahead_ms(&self) -> i64 {
        self.parts.lease.ahead_ms()
    }

    fn append(&self, blocks: &[(Tenure, &Block)]) -> Result<Vec<AppendOutcome>> {
        let StoreParts { commits, troubles, .. } = &*self.parts;
        // A partition that this process gave up is not written by it, even while it has no owner.
        let admitted: Vec<_> = blocks.iter().map(|(tenure, block)| (self.parts.held(*tenure), *block)).collect();
        let landed = self.parts.wait_for_commit(commit::append(commits, troubles, &admitted))?;
        for ((tenure, block), landed) in blocks.iter().zip(&landed) {
            match landed {
                AppendOutcome::Durable(_) => self.parts.recent.lock().note(block),
                AppendOutcome::Fenced => {
                    troubles.fenced.fetch_add(1, Ordering::Relaxed);
                    self.parts.fenced(*tenure);
                }
                AppendOutcome::Unknown => {}
            }
        }
        Ok(landed)
    }

    fn head(&self, partition: Partition) -> Result<Head> {
        self.read_head(partition)
    }

    fn records(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        self.read_records(partition, sequences)
    }

    fn blocks(&self, partition: Partition, from: Sequence) -> Box<dyn Iterator<Item = Result<Block>> + Send + '_> {
        match self.read_head(partition) {
            Ok(head) => Box::new(Blocks::new(self, partition, from.max(Sequence::FIRST), head)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn put_state(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>, how: Durability) -> Result<()> {
        admit_state_key(key)?;
        self.parts.put(tenure, Area::State, key, value, how == Durability::Durable)
    }

    fn states(&self, partition: Partition, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.values(partition, Area::State, keys)
    }

    fn state_keys(&self, partition: Partition, prefix: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.keys(partition, Area::State, prefix)
    }

    fn insert_common(&self, key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        admit_common_key(key)?;
        // In two statements: one alone does not see the row of a winner that it waited for.
        let row = self.parts.write(async |link| {
            link.rows(INSERT_COMMON, &[&key, &value]).await?;
            link.row(COMMON, &[&key]).await
        })?;
        Ok(row.map_or_else(|| value.to_vec(), |row| row.get(0)))
    }

    fn common(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.read(async |link| link.row(COMMON, &[&key]).await)?.map(|row| row.get(0)))
    }

    fn remove_common(&self, key: &[u8]) -> Result<()> {
        self.parts.write(async |link| link.rows(REMOVE_COMMON, &[&key]).await).map(drop)
    }

    fn commons(&self) -> Result<Vec<KeyAndValue>> {
        let rows = self.read(async |link| link.rows(COMMONS, &[]).await)?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn put_cursor(&self, tenure: Tenure, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        admit_state_key(key)?;
        self.parts.put(tenure, Area::Cursors, key, value, false)
    }

    fn cursor(&self, partition: Partition, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.values(partition, Area::Cursors, &[key])?.pop().flatten())
    }

    fn cursor_keys(&self, partition: Partition) -> Result<Vec<Vec<u8>>> {
        self.keys(partition, Area::Cursors, b"")
    }

    fn put_file_in_parts(&self, tenure: Tenure, name: &str, write: WriteBytes<'_>) -> Result<u64> {
        admit_file_name(name)?;
        self.parts.replace_file(tenure, name, Some(write))
    }

    fn file_part(&self, partition: Partition, name: &str, offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        admit_file_name(name)?;
        self.part_of_file(partition, name, offset, length)
    }

    fn files(&self, partition: Partition) -> Result<Vec<(String, u64)>> {
        self.list_files(partition)
    }

    fn remove_file(&self, tenure: Tenure, name: &str) -> Result<()> {
        admit_file_name(name)?;
        self.parts.replace_file(tenure, name, None).map(drop)
    }

    fn size_bytes(&self) -> Result<u64> {
        Ok(self.read(async |link| link.row(SIZE, &[]).await)?.map_or(0, |row| row.get::<_, i64>(0) as u64))
    }

    fn monitor(&self) -> Arc<Monitor> {
        Arc::clone(&self.parts.monitor)
    }
}
