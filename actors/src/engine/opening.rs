//! Opening and stopping of the engine: from a store to actors that answer, and back to a store that
//! holds everything.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ledger::id::{GroupNumber, LedgerId};
use ledger::merchant::MerchantState;
use ledger::recipient::RecipientState;
use ledger::time::Timestamp;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::spawn_blocking;

use super::acquirer::AcquirerBatches;
use super::asked::{CashoutsUnderWay, ReturnsAsked};
use super::new_ids::NewIds;
use super::{Engine, EngineOptions, INSIDE_BYTES, read};
use crate::actor::ActorContext;
use crate::balance_files::BalanceFiles;
use crate::clock::Clock;
use crate::directory::{Directory, Life, OnLife, Silence, Supervisor};
use crate::journal::{Admission, Input, Journal, JournalParts};
use crate::load_shedding::LoadShedder;
use crate::metrics::Metrics;
use crate::read_model::ReadModel;
use crate::records::LoadError;
use crate::seal::{Keyring, SealError};
use crate::snapshots;
use crate::store::place::admit_serving;
use crate::store::{Part, Partition, Sequence, SledOptions, SledStore, Store, StoreError};

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
    /// The store was made for the other mode.
    #[error("this data was made in {made} mode and does not open in {asked} mode")]
    WrongMode {
        /// `sandbox` or `live`.
        made: String,
        /// `sandbox` or `live`.
        asked: &'static str,
    },
}

/// Everything that is read from the store before the first actor runs.
struct Opened {
    shared: Arc<ActorContext>,
    keyring: Arc<Keyring>,
    journal_thread: JoinHandle<()>,
    /// When the journal's last block was booked.
    last_booked_at: Timestamp,
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

    /// Opens the engine on a store; see [`Engine::open`].
    pub async fn open_store(
        store: Arc<dyn Store>,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let taken = spawn_blocking(move || Part::take(store, Partition(0))).await;
        Self::open_part(taken.expect("taking does not panic")?, options, progress).await
    }

    /// Opens the engine on a partition that was taken; see [`Engine::open`].
    pub async fn open_part(
        part: Part,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let Opened { shared, keyring, journal_thread, last_booked_at } = read_store(part, &options, progress).await?;
        let balance_files = BalanceFiles::open(shared.store.clone(), options.balance_files)?;
        let next_group = shared.read_model.groups().into_iter().map(|group| group.0 + 1).max().unwrap_or(1);
        let system_ordinal = shared.read_model.system_ordinal();
        let booked_batch = shared.read_model.booked_batch();
        let engine: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let supervisor = supervise(Arc::clone(&engine)).await;
        let opened = Arc::new(Self {
            merchants: Directory::new(Arc::clone(&shared), supervisor.get_cell()),
            recipients: Directory::new(Arc::clone(&shared), supervisor.get_cell()),
            admission: Admission::new(options.admission),
            load_shedder: LoadShedder::default(),
            keyring,
            supervisor,
            rails: options.rails,
            cashouts: CashoutsUnderWay::default(),
            returns_asked: ReturnsAsked::default(),
            new_ids: NewIds::after(last_booked_at),
            next_group: Mutex::new(next_group),
            system_ordinal: Mutex::new(system_ordinal),
            house: AsyncMutex::default(),
            falling_due: AsyncMutex::new(AcquirerBatches::booked_through(booked_batch)),
            balance_files,
            journal_thread: Mutex::new(Some(journal_thread)),
            idle: options.idle,
            space_seen_ms: AtomicU64::new(0),
            opened_at: Instant::now(),
            shared,
        });
        let _set_once = engine.set(Arc::downgrade(&opened));
        opened.see_space();
        opened.prepare_keys(opened.now()).await;
        Ok(opened)
    }

    /// Puts every actor to sleep, with its snapshot, and ends the journal after all that was
    /// queued.
    pub async fn stop(&self) {
        let deadline = Instant::now() + SLEEP_MAX;
        while !(self.merchants.is_empty() && self.recipients.is_empty()) && Instant::now() < deadline {
            self.sleep_idle(Duration::ZERO);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.supervisor.stop(None);
        let (sender, queued) = oneshot::channel();
        self.shared.journal.send(Input::Answer(Box::new(move || sender.send(()).unwrap_or_default())));
        let _failed_journal = queued.await;
        self.shared.journal.end();
        let thread = self.journal_thread.lock().take();
        if let Some(thread) = thread {
            let _panicked = spawn_blocking(move || thread.join()).await;
        }
        if !self.has_failed() {
            self.keep_read_model().await;
        }
        let store = self.shared.store.clone();
        if let Ok(Err(error)) = spawn_blocking(move || store.release()).await {
            tracing::warn!(%error, "the store was not given up; the next process waits until this one is known to be gone");
        }
    }

    /// Wakes, one after the other, the actors whose snapshots this release cannot read. Each builds
    /// its state from the journal and keeps it again, before a request has to wait for that.
    pub async fn renew_snapshots(&self) {
        let store = self.shared.store.clone();
        let last = GroupNumber(*self.next_group.lock());
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
                LedgerId::Merchant(_) => read(&self.merchants, ledger, |_: &MerchantState, _| (), permit).await,
                _ => read(&self.recipients, ledger, |_: &RecipientState, _| (), permit).await,
            };
            if woken.is_err() {
                tracing::warn!(?ledger, "a snapshot could not be made again");
            }
        }
    }

    /// Keeps the read model's pages, so that the next start reads less of the journal.
    pub(super) async fn keep_read_model(&self) {
        let read_model = Arc::clone(&self.shared.read_model);
        let kept = spawn_blocking(move || read_model.keep()).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "the read model was not kept; the next start reads more of the journal");
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
    if let Some(made) = made
        && store.head(Partition(0))?.next > Sequence::FIRST
    {
        return Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked });
    }
    Keyring::open_unchanged(master_key, store)?;
    Ok(())
}

fn mode(sandbox: bool) -> &'static str {
    if sandbox { "sandbox" } else { "live" }
}

const MODE_STAMP: &[u8] = b"stamp/mode";

/// Opens the keyring and the read model, sets the clock, and starts the journal's thread.
async fn read_store(
    store: Part,
    options: &EngineOptions,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<Opened, OpenError> {
    let (sandbox, master_key) = (options.sandbox, options.master_key);
    let (fold_name, index) = (options.fold_name, options.index);
    let to_read = store.clone();
    let opened = spawn_blocking(move || -> Result<_, OpenError> {
        admit_serving(&**to_read.store())?;
        check_mode(&to_read, sandbox)?;
        let keyring = Arc::new(Keyring::open(master_key, Arc::clone(to_read.store()))?);
        let read_model = ReadModel::open(to_read, Arc::clone(&keyring), fold_name, index, progress)?;
        Ok((keyring, Arc::new(read_model)))
    });
    let (keyring, read_model) = opened.await.expect("opening does not panic")?;
    let last_booked_at = Timestamp(store.head()?.booked_at_ms.max(0));
    let clock = Arc::new(Clock::new(read_model.clock_offset_ms(), last_booked_at));
    if sandbox {
        // A crash while the clock was being moved leaves Records ahead of its last recorded offset:
        // it goes on from them.
        clock.advance_to(last_booked_at);
    }
    let metrics = Arc::new(Metrics::default());
    let parts = JournalParts {
        store: store.clone(),
        clock: Arc::clone(&clock),
        read_model: Arc::clone(&read_model),
        metrics: Arc::clone(&metrics),
        runtime: Handle::current(),
    };
    let (journal, journal_thread) = Journal::start(parts)?;
    let ids = keyring.id_key();
    let shared = Arc::new(ActorContext { journal, store, read_model, clock, ids, metrics });
    Ok(Opened { shared, keyring, journal_thread, last_booked_at })
}

/// Starts the supervisor, which reports every actor's life to both directories.
async fn supervise(engine: Arc<OnceLock<Weak<Engine>>>) -> ActorRef<Silence> {
    let on_life: OnLife = Box::new(move |actor, life| {
        let Some(engine) = engine.get().and_then(Weak::upgrade) else { return };
        match life {
            Life::Opened => {
                engine.merchants.opened(actor);
                engine.recipients.opened(actor);
            }
            Life::Ended => {
                engine.merchants.ended(actor);
                engine.recipients.ended(actor);
            }
        }
    });
    let (supervisor, _ends_with_the_engine) =
        Supervisor::spawn(None, Supervisor, on_life).await.expect("the supervisor starts without conditions");
    supervisor
}

/// Refuses a store in which something was booked in the other mode, so that sandbox money never
/// becomes live money. An empty store takes the mode that it is opened in.
fn check_mode(part: &Part, sandbox: bool) -> Result<(), OpenError> {
    const STAMP: &[u8] = MODE_STAMP;
    let asked = mode(sandbox);
    let store = part.store();
    let made = store.insert_common(STAMP, asked.as_bytes())?;
    if made == asked.as_bytes() {
        return Ok(());
    }
    if part.head()?.next > Sequence::FIRST {
        return Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked });
    }
    store.remove_common(STAMP)?;
    store.insert_common(STAMP, asked.as_bytes())?;
    Ok(())
}
