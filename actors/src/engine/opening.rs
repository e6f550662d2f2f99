//! Opening and stopping of the engine: from a store to actors that answer, and back to a store that
//! holds everything.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ledger::{LedgerId, MerchantState, RecipientState, Timestamp};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::spawn_blocking;

use super::acquirer::AcquirerBatches;
use super::late_answers::LateAnswers;
use super::new_ids::NewIds;
use super::pix_intake::Bells;
use super::rail_line::Breakers;
use super::rail_queue::RailQueue;
use super::shard::{Shard, ShardOptions, give_up, put_to_sleep};
use super::shards::Shards;
use super::{Engine, EngineOptions, INSIDE_BYTES, read};
use crate::clock::{Clock, StartCheck};
use crate::journal::{Admission, Journal, JournalParts};
use derived::extents::{ExtentError, Extents};
use derived::records::LoadError;
use derived::seal::{Keyring, SealError};
use derived::snapshots;
use store::place_stamps::admit_serving;
use store::{Part, Partition, Sequence, SledOptions, SledStore, Store, StoreError};

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
    /// Partitions were added after this process had read how many there are.
    #[error("partitions were added to this store; start again to serve with them")]
    Grown,
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
        let opened = Self::open_node(store, extents, options).await?;
        let heads = spawn_blocking(move || -> Result<Vec<_>, StoreError> {
            parts.into_iter().map(|part| Ok((part.head()?, part))).collect()
        });
        let heads = heads.await.expect("reading a head does not panic")?;
        let total: u64 = heads.iter().map(|(head, _)| head.next.0 - 1).sum();
        let (mut before, progress) = (0, Arc::new(Mutex::new(progress)));
        for (head, part) in heads {
            let progress = Arc::clone(&progress);
            opened.take_up(part, move |read, _| progress.lock()(before + read, total)).await?;
            before += head.next.0 - 1;
        }
        opened.prepare_keys(opened.now()).await;
        Ok(opened)
    }

    /// Opens the engine of a node that has no partition of the store yet: see [`Engine::take_up`].
    pub async fn open_node(
        store: Arc<dyn Store>,
        extents: Extents,
        options: EngineOptions,
    ) -> Result<Arc<Self>, OpenError> {
        let (sandbox, master_key, checked) = (options.sandbox, options.master_key, Arc::clone(&store));
        let partitions: Vec<Partition> = extents.all().collect();
        let all = partitions.clone();
        let keyring = spawn_blocking(move || -> Result<_, OpenError> {
            admit_serving(&*checked)?;
            check_mode(&*checked, &all, sandbox)?;
            Ok(Keyring::open(master_key, checked)?)
        });
        let keyring = Arc::new(keyring.await.expect("opening the keys does not panic")?);
        let start = start_check(&store, &partitions, options.start_gap_max).await?;
        let live = start.filter(|_| !sandbox);
        // The store's clock counts before anybody asks for the time: it never goes back.
        let clock = Arc::new(Clock::new(store.ahead_ms(), live));
        let metrics = options.metrics;
        let (journal, journal_thread) = Journal::start(JournalParts {
            store: Arc::clone(&store),
            partitions: partitions.len(),
            clock: Arc::clone(&clock),
            metrics: Arc::clone(&metrics),
            runtime: Handle::current(),
        });
        let extents = Arc::new(extents);
        let shard_options = ShardOptions { fold_name: options.fold_name, index: options.index, is_sandbox: sandbox };
        let mut opened = Self {
            reading: extents.reading(&store),
            store,
            extents,
            shards: Shards::absent(Vec::new()),
            shard_options,
            others: OnceLock::new(),
            following: AsyncMutex::default(),
            journal,
            journal_thread: Mutex::new(Some(journal_thread)),
            outbox_signal: Arc::default(),
            admission: Admission::new(options.admission),
            clock,
            metrics,
            ids: keyring.id_key(),
            keyring,
            new_ids: NewIds::default(),
            bells: Bells::of(&options.rails.pix),
            breakers: Breakers::of(&options.rails, sandbox),
            rail_queue: RailQueue::default(),
            late_answers: LateAnswers::default(),
            oldest_unknown: Mutex::default(),
            rails: options.rails,
            falling_due: AsyncMutex::default(),
            batches: AsyncMutex::new(AcquirerBatches::booked_through(0)),
            idle: options.idle,
            awake_max: options.awake_max,
            clock_asked: Mutex::default(),
            sandbox_start: Mutex::new(start.filter(|_| sandbox)),
            space_seen_ms: AtomicU64::new(0),
            opened_at: Instant::now(),
        };
        let mut absent = Vec::with_capacity(partitions.len());
        for partition in partitions {
            absent.push(opened.absent(partition).await?);
        }
        opened.shards = Shards::absent(absent);
        let opened = Arc::new(opened);
        opened.see_space();
        opened.look_at_clock();
        Ok(opened)
    }

    /// Puts every actor to sleep, with its snapshot, and ends the journal after all that was
    /// queued.
    pub async fn stop(&self) {
        let shards = self.shards.owned();
        put_to_sleep(&shards).await;
        for shard in &shards {
            shard.end();
            shard.settle().await;
        }
        self.journal.end();
        let thread = self.journal_thread.lock().take();
        if let Some(thread) = thread {
            let _panicked = spawn_blocking(move || thread.join()).await;
        }
        if !self.has_failed() {
            for shard in &shards {
                shard.keep_read_model().await;
            }
        }
        for shard in &shards {
            give_up(shard).await;
        }
    }

    /// Wakes, one after the other, the actors whose snapshots this release cannot read. Each builds
    /// its state from the journal and keeps it again, before a request has to wait for that.
    pub async fn renew_snapshots(&self) {
        for shard in self.shards.owned() {
            self.renew_snapshots_of(&shard).await;
        }
    }

    pub(super) async fn renew_snapshots_of(&self, shard: &Shard) {
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

/// The last Record of a store, with which the wall clock is compared; `None` if there is none.
async fn start_check(
    store: &Arc<dyn Store>,
    partitions: &[Partition],
    gap_max: Duration,
) -> Result<Option<StartCheck>, StoreError> {
    let (store, partitions) = (Arc::clone(store), partitions.to_vec());
    let heads = spawn_blocking(move || store.heads(&partitions)).await.expect("reading heads does not panic")?;
    let last = heads.iter().filter(|head| head.next > Sequence::FIRST).map(|head| head.booked_at_ms).max();
    Ok(last.map(|last| StartCheck { last_record: Timestamp(last), gap_max }))
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

/// Refuses a store in which something was booked in the other mode, so that sandbox money never
/// becomes live money. An empty store takes the mode that it is opened in.
fn check_mode(store: &dyn Store, partitions: &[Partition], sandbox: bool) -> Result<(), OpenError> {
    const STAMP: &[u8] = MODE_STAMP;
    let asked = mode(sandbox);
    let made = store.insert_common(STAMP, asked.as_bytes())?;
    if made == asked.as_bytes() {
        return Ok(());
    }
    for partition in partitions {
        if store.head(*partition)?.next > Sequence::FIRST {
            return Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked });
        }
    }
    store.remove_common(STAMP)?;
    store.insert_common(STAMP, asked.as_bytes())?;
    Ok(())
}
