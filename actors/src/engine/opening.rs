//! Opening and stopping of the engine: from a store to actors that answer, and back to a store that
//! holds everything.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::id::LedgerId;
use ledger::merchant::MerchantState;
use ledger::recipient::RecipientState;
use ledger::time::Timestamp;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;

use super::acquirer::AcquirerBatches;
use super::new_ids::NewIds;
use super::shard::Shard;
use super::{Engine, EngineOptions, INSIDE_BYTES, read};
use crate::actor::ActorContext;
use crate::clock::Clock;
use crate::extents::{ExtentError, Extents, HOUSE};
use crate::journal::{Admission, Journal, JournalParts};
use crate::load_shedding::LoadShedder;
use crate::metrics::Metrics;
use crate::outbox::OutboxSignal;
use crate::read_model::ReadModel;
use crate::records::LoadError;
use crate::seal::{Keyring, SealError};
use crate::snapshots;
use crate::store::place::admit_serving;
use crate::store::{Part, Sequence, SledOptions, SledStore, Store, StoreError};

/// How long stopping waits for the actors to go to sleep.
const SLEEP_MAX: Duration = Duration::from_secs(20);

/// Why the engine does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The keys do not fit.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// A Record cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No socket can be opened that shows how long requests wait.
    #[error("no socket could be opened: {0}")]
    Lag(io::Error),
    /// The store was made for the other mode.
    #[error("this data was made in {made} mode and does not open in {asked} mode")]
    WrongMode {
        /// `sandbox` or `live`.
        made: String,
        /// `sandbox` or `live`.
        asked: &'static str,
    },
    /// The extents do not fit.
    #[error(transparent)]
    Extents(#[from] ExtentError),
    /// There are groups in partitions that this process has not taken.
    #[error("not all partitions of this store were taken")]
    PartitionsMissing,
}

/// Everything that is read from the store before the first actor runs.
struct Opened {
    /// Of each partition, in their order.
    contexts: Vec<ActorContext>,
    keyring: Arc<Keyring>,
    clock: Arc<Clock>,
    metrics: Arc<Metrics>,
    journal_thread: JoinHandle<()>,
    /// When the last block of all partitions was booked.
    last_booked_at: Timestamp,
    outbox_signal: Arc<OutboxSignal>,
}

impl Engine {
    /// Opens the data folder and reads the journal. `progress` receives how many Records of how
    /// many have been read.
    pub async fn open(
        data: &Path,
        store: &SledOptions,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let (data, store) = (data.to_owned(), store.clone());
        // Opening may take seconds. Its thread also reads the read model, into the memory that
        // opening has freed.
        let opened = spawn_blocking(move || SledStore::open(&data, &store)).await;
        Self::open_store(Arc::new(opened.expect("opening does not panic")?), options, progress).await
    }

    /// Opens the engine on a store, and takes all its partitions; see [`Engine::open`].
    pub async fn open_store(
        store: Arc<dyn Store>,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let new = options.partitions;
        let take = move || -> Result<_, OpenError> {
            let extents = Extents::made(&*store, new)?;
            let parts = extents.all().map(|partition| Part::take(Arc::clone(&store), partition));
            Ok((parts.collect::<Result<Vec<_>, _>>()?, extents))
        };
        let (parts, extents) = spawn_blocking(take).await.expect("taking does not panic")?;
        Self::open_parts(parts, extents, options, progress).await
    }

    /// Opens the engine on all partitions of a store, which were taken, in their order.
    pub async fn open_parts(
        parts: Vec<Part>,
        extents: Extents,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let store = match parts.first() {
            Some(first) if parts.iter().map(|part| u32::from(part.partition().0)).eq(0..extents.partitions()) => {
                Arc::clone(first.store())
            }
            _ => return Err(OpenError::PartitionsMissing),
        };
        let extents = Arc::new(extents);
        let opened = read_store(parts, &extents, &options, progress).await?;
        let Opened { contexts, keyring, clock, metrics, journal_thread, last_booked_at, outbox_signal } = opened;
        let journal = contexts[0].journal.clone();
        let mut shards = Vec::with_capacity(contexts.len());
        for context in contexts {
            shards.push(Shard::open(Arc::new(context), &extents, options.balance_files).await?);
        }
        let booked_batch = shards[usize::from(extents.partition_of(HOUSE).0)].read_model().booked_batch();
        let ids = keyring.id_key();
        let opened = Arc::new(Self {
            store,
            extents,
            shards,
            journal,
            journal_thread: Mutex::new(Some(journal_thread)),
            outbox_signal,
            admission: Admission::new(options.admission),
            load_shedder: LoadShedder::watching_the_runtime().map_err(OpenError::Lag)?,
            clock,
            metrics,
            keyring,
            ids,
            new_ids: NewIds::after(last_booked_at),
            rails: options.rails,
            falling_due: AsyncMutex::new(AcquirerBatches::booked_through(booked_batch)),
            idle: options.idle,
            space_seen_ms: AtomicU64::new(0),
            opened_at: Instant::now(),
        });
        opened.see_space();
        opened.prepare_keys(opened.now()).await;
        Ok(opened)
    }

    /// Puts every actor to sleep, with its snapshot, and ends the journal after all that was
    /// queued.
    pub async fn stop(&self) {
        let deadline = Instant::now() + SLEEP_MAX;
        while !self.shards.iter().all(|shard| shard.is_asleep()) && Instant::now() < deadline {
            self.sleep_idle(Duration::ZERO);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for shard in &self.shards {
            shard.end();
            shard.settle().await;
        }
        self.journal.end();
        let thread = self.journal_thread.lock().take();
        if let Some(thread) = thread {
            let _panicked = spawn_blocking(move || thread.join()).await;
        }
        if !self.has_failed() {
            for shard in &self.shards {
                shard.keep_read_model().await;
            }
        }
        for shard in &self.shards {
            let part = shard.part().clone();
            if let Ok(Err(error)) = spawn_blocking(move || part.release()).await {
                tracing::warn!(%error, "the store was not given up; the next process waits until this one is known to be gone");
            }
        }
    }

    /// Wakes, one after the other, the actors whose snapshots this release cannot read. Each builds
    /// its state from the journal and keeps it again, before a request has to wait for that.
    pub async fn renew_snapshots(&self) {
        for shard in &self.shards {
            self.renew_snapshots_of(shard).await;
        }
    }

    async fn renew_snapshots_of(&self, shard: &Shard) {
        let store = shard.part().clone();
        let last = shard.next_group(&self.extents);
        let unusable = match spawn_blocking(move || snapshots::unusable(&store, last)).await {
            Ok(Ok(unusable)) => unusable,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the snapshots could not be looked through");
                return;
            }
            Err(_panicked) => return,
        };
        if !unusable.is_empty() {
            tracing::info!(count = unusable.len(), "snapshots are made again in the background");
        }
        for ledger in unusable {
            let permit = self.admission.take(INSIDE_BYTES).await;
            let woken = match ledger {
                LedgerId::Merchant(_) => read(&shard.merchants, ledger, |_: &MerchantState, _| (), permit).await,
                _ => read(&shard.recipients, ledger, |_: &RecipientState, _| (), permit).await,
            };
            if woken.is_err() {
                tracing::warn!(?ledger, "a snapshot could not be made again");
            }
        }
    }
}

/// Refuses a store that was made in the other mode or with another master key, that is not whole,
/// or that was moved away. It writes nothing, so it is for a process that does not have the store
/// yet.
pub fn check_store(store: Arc<dyn Store>, sandbox: bool, master_key: [u8; 32]) -> Result<(), OpenError> {
    admit_serving(&*store)?;
    let asked = mode(sandbox);
    let made = store.common(MODE_STAMP)?.filter(|made| made != asked.as_bytes());
    if let Some(made) = made {
        for partition in Extents::of(&*store)?.all() {
            if store.head(partition)?.next > Sequence::FIRST {
                return Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked });
            }
        }
    }
    Keyring::open_unchanged(master_key, store)?;
    Ok(())
}

fn mode(sandbox: bool) -> &'static str {
    if sandbox { "sandbox" } else { "live" }
}

const MODE_STAMP: &[u8] = b"stamp/mode";

/// Opens the keyring and the read models, sets the clock, and starts the journal's thread.
async fn read_store(
    parts: Vec<Part>,
    extents: &Arc<Extents>,
    options: &EngineOptions,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<Opened, OpenError> {
    let (sandbox, master_key) = (options.sandbox, options.master_key);
    let (fold_name, index, extents) = (options.fold_name, options.index, Arc::clone(extents));
    let outbox_signal = Arc::new(OutboxSignal::default());
    let outbox = Arc::clone(&outbox_signal);
    let opened = spawn_blocking(move || -> Result<_, OpenError> {
        let store = Arc::clone(parts[0].store());
        admit_serving(&*store)?;
        check_mode(&parts, sandbox)?;
        let keyring = Arc::new(Keyring::open(master_key, Arc::clone(&store))?);
        let heads = parts.iter().map(Part::head).collect::<Result<Vec<_>, _>>()?;
        let total: u64 = heads.iter().map(|head| head.next.0 - 1).sum();
        let mut before = 0;
        let mut partitions = Vec::with_capacity(parts.len());
        for (part, head) in parts.into_iter().zip(&heads) {
            let told = |read, _| progress(before + read, total);
            let (extents, outbox) = (Arc::clone(&extents), Arc::clone(&outbox));
            let read_model =
                ReadModel::open(part.clone(), extents, Arc::clone(&keyring), fold_name, index, outbox, told)?;
            before += head.next.0 - 1;
            partitions.push((part, Arc::new(read_model)));
        }
        let last_booked_at = heads.iter().map(|head| head.booked_at_ms.max(0)).max().unwrap_or_default();
        Ok((store, keyring, partitions, Timestamp(last_booked_at)))
    });
    let (store, keyring, partitions, last_booked_at) = opened.await.expect("opening does not panic")?;
    let offset_ms = partitions.iter().map(|(_, read_model)| read_model.clock_offset_ms()).max().unwrap_or_default();
    let clock = Arc::new(Clock::new(offset_ms, last_booked_at));
    if sandbox {
        // A crash while the clock was being moved leaves Records ahead of its last recorded offset:
        // it goes on from them.
        clock.advance_to(last_booked_at);
    }
    let metrics = Arc::new(Metrics::default());
    let (of_journal, runtime) = (partitions.clone(), Handle::current());
    let (clock_of_journal, metrics_of_journal) = (Arc::clone(&clock), Arc::clone(&metrics));
    let (journals, journal_thread) = Journal::start(JournalParts {
        store,
        partitions: of_journal,
        clock: clock_of_journal,
        metrics: metrics_of_journal,
        runtime,
    })?;
    let contexts = journals.into_iter().zip(partitions).map(|(journal, (store, read_model))| ActorContext {
        journal,
        store,
        read_model,
        clock: Arc::clone(&clock),
        ids: keyring.id_key(),
        metrics: Arc::clone(&metrics),
    });
    Ok(Opened { contexts: contexts.collect(), keyring, clock, metrics, journal_thread, last_booked_at, outbox_signal })
}

/// Refuses a store in which something was booked in the other mode, so that sandbox money never
/// becomes live money. An empty store takes the mode that it is opened in.
fn check_mode(parts: &[Part], sandbox: bool) -> Result<(), OpenError> {
    const STAMP: &[u8] = MODE_STAMP;
    let asked = mode(sandbox);
    let store = parts[0].store();
    let made = store.insert_common(STAMP, asked.as_bytes())?;
    if made == asked.as_bytes() {
        return Ok(());
    }
    for part in parts {
        if part.head()?.next > Sequence::FIRST {
            return Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked });
        }
    }
    store.remove_common(STAMP)?;
    store.insert_common(STAMP, asked.as_bytes())?;
    Ok(())
}
