//! The engine as the door sees it: commands and reads by id, the flows that cross a rail, what falls due, opening and stopping.

mod cashouts;
mod new_ids;
mod refunds;
mod subscriptions;
mod withdrawals;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use ledger::event::Event;
use ledger::id::{GroupNumber, IdKey, LedgerId, ObjectId};
use ledger::merchant::{MerchantCommand, MerchantState, OpenCharge, RECONCILE_AFTER_MS};
use ledger::recipient::{RecipientCommand, RecipientState};
use ledger::record::{Decision, Idempotency, Record, Requester};
use ledger::time::Timestamp;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef};
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::actor::{Message, Shared};
use crate::backup::{self, BackupError, Frame};
use crate::clock::Clock;
use crate::directory::{Directory, Life, Silence, Supervisor};
use crate::index::IndexOptions;
use crate::journal::{Admission, AdmissionLimits, Input, Journal, JournalParts, Permit, Sender, Submission};
use crate::load::{self, LoadError};
use crate::load_shedding::LoadShedder;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::rails::{CardAnswer, CardFate, ChargeCard, PixFate, RailError, Rails};
use crate::read_model::ReadModel;
use crate::resident::{Books, Envelope, KeyLookup, Outcome};
use crate::seal::{Keyring, SealError, stocked_random_bytes};
use crate::snapshots;
use crate::store::{Monitor, Partition, Sequence, SledOptions, SledStore, Store, StoreError, Waiting};

use cashouts::CashoutsUnderWay;
use new_ids::NewIds;
use withdrawals::ReturnsAsked;

pub use cashouts::CreateCashout;

/// How the engine is set up.
pub struct EngineOptions {
    /// Fake money and a movable clock; a store is made for one mode and refuses the other.
    pub sandbox: bool,
    /// The key that seals all others.
    pub master_key: [u8; 32],
    /// Admission in the journal.
    pub admission: AdmissionLimits,
    /// An actor that was not used for this long goes to sleep.
    pub idle: Duration,
    /// The outside; none where charges are not possible.
    pub rails: Option<Rails>,
    /// Prepares names for search.
    pub fold_name: fn(&str) -> String,
    /// How the index is cut.
    pub index: IndexOptions,
}

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

/// Why a command has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The journal has no room: nothing was sent.
    #[error("the journal is full")]
    JournalFull,
    /// The disk is short of space: nothing was sent.
    #[error("the disk is short of space")]
    StorageFull,
    /// The actor or the journal went away: the command may have been decided or not.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// No rail is configured: nothing was sent.
    #[error("no rail is configured")]
    NoRail,
}

/// The engine of one installation: actors, journal, index and read model on a store.
///
/// A command needs a permit, and its outcome leaves when it is durable.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use actors::engine::{Engine, EngineOptions};
/// use actors::index::IndexOptions;
/// use actors::journal::AdmissionLimits;
/// use actors::resident::Outcome;
/// use actors::store::MemoryStore;
/// use ledger::fees::Settings;
/// use ledger::merchant::MerchantCommand;
/// use ledger::personal::{MerchantProfile, SealedFor};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = EngineOptions {
///     sandbox: true,
///     master_key: [7; 32],
///     admission: AdmissionLimits::default(),
///     idle: Duration::from_secs(60),
///     rails: None,
///     fold_name: str::to_lowercase,
///     index: IndexOptions::default(),
/// };
/// let engine = Engine::open_store(Arc::new(MemoryStore::new()), options, |_, _| {}).await?;
/// let (group, now) = (engine.new_group(), engine.now());
/// let sealed_for = SealedFor::merchant(group);
/// let profile = engine.keyring().seal_value(sealed_for, now, &MerchantProfile::default())?;
/// let id = engine.ids().object(group, now, 1);
/// let command = MerchantCommand::Open { id, settings: Settings::default(), profile };
/// let outcome = engine.command(group, command, None, None, engine.permit(1_024)?).await?;
/// assert!(matches!(outcome, Outcome::Recorded(_)));
/// assert_eq!(engine.read_merchant(group, |merchant, _| merchant.id()).await?, Some(id));
/// engine.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    shared: Arc<Shared>,
    admission: Arc<Admission>,
    load_shedder: LoadShedder,
    keyring: Arc<Keyring>,
    merchants: Arc<Directory<MerchantState>>,
    recipients: Arc<Directory<RecipientState>>,
    supervisor: ActorRef<Silence>,
    rails: Option<Rails>,
    cashouts: CashoutsUnderWay,
    returns_asked: ReturnsAsked,
    new_ids: NewIds,
    next_group: Mutex<u32>,
    system_ordinal: Mutex<u64>,
    /// One at a time: what falls due is booked in order, also while the sandbox clock is stepped.
    falling_due: AsyncMutex<()>,
    journal_thread: Mutex<Option<thread::JoinHandle<()>>>,
    idle: Duration,
    /// When the disk's space was last looked at, milliseconds since `opened_at`.
    space_seen_ms: AtomicU64,
    opened_at: Instant,
}

/// Who has waited this long for the store makes the service not ready. A slow disk answers within a few seconds.
pub const NOT_READY_AFTER: Duration = Duration::from_secs(10);

/// How often the disk's space is looked at, milliseconds. In that time a disk takes less than the reserve.
const SPACE_SEEN_EVERY_MS: u64 = 100;
/// How long the acquirer may take before the caller is told `pending`.
const CARD_ANSWER_MAX: Duration = Duration::from_millis(1_500);
/// How long after its id was made a charge may be taken to the acquirer, milliseconds: well before the reconciliation closes it. Who comes
/// later was held up, and leaves the charge to that.
const CALL_STARTS_WITHIN_MS: i64 = RECONCILE_AFTER_MS / 2;
/// How long a rail may take when it is asked again.
const RAIL_ANSWER_MAX: Duration = Duration::from_secs(10);
/// Something that stays due (a rail that does not answer) is tried again after this long.
const TRY_AGAIN_AFTER_MS: i64 = 5_000;
/// How many ledgers are asked at once for what is due.
const DUE_AT_ONCE: usize = 64;
/// How many waiting charges of one merchant are asked for before the others have their turn.
const RECONCILED_AT_ONCE: usize = 64;
/// How many drafts are submitted in one go.
const DRAFTS_AT_ONCE: usize = 256;
/// Bytes that an inside sender reserves.
const INSIDE_BYTES: usize = 4_096;

impl Engine {
    /// Opens the data folder and reads the journal. `progress` is told how many Records of how many have been read.
    pub async fn open(
        data: &Path,
        store: &SledOptions,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let (data, store) = (data.to_owned(), store.clone());
        // It may take seconds. The thread goes on to read the pages, into the memory that opening has left.
        let opened = tokio::task::spawn_blocking(move || SledStore::open(&data, &store)).await;
        Self::open_store(Arc::new(opened.expect("opening does not panic")?), options, progress).await
    }

    /// Opens on a store.
    pub async fn open_store(
        store: Arc<dyn Store>,
        options: EngineOptions,
        progress: impl Fn(u64, u64) + Send + 'static,
    ) -> Result<Arc<Self>, OpenError> {
        let journal = Arc::clone(&store);
        let EngineOptions { sandbox, master_key, fold_name, index, .. } = options;
        let opened = tokio::task::spawn_blocking(move || -> Result<_, OpenError> {
            check_mode(&*journal, sandbox)?;
            let keyring = Arc::new(Keyring::open(master_key, Arc::clone(&journal))?);
            let read_model = ReadModel::open(journal, Arc::clone(&keyring), fold_name, index, progress)?;
            Ok((keyring, Arc::new(read_model)))
        });
        let (keyring, read_model) = opened.await.expect("opening does not panic")?;
        let head = store.head(Partition(0))?;
        let clock = Arc::new(Clock::new(read_model.clock_offset_ms(), Timestamp(head.booked_at_ms.max(0))));
        if options.sandbox {
            // A crash while the clock was being moved leaves Records ahead of its last recorded offset: it goes on from them.
            clock.advance_to(Timestamp(head.booked_at_ms.max(0)));
        }
        let metrics = Arc::new(Metrics::default());
        let parts = JournalParts {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            read_model: Arc::clone(&read_model),
            metrics: Arc::clone(&metrics),
            runtime: Handle::current(),
        };
        let (journal, thread) = Journal::start(parts)?;
        let next_group = read_model.groups().into_iter().map(|group| group.0 + 1).max().unwrap_or(1);
        let ids = keyring.id_key();
        let system_ordinal = read_model.system_ordinal();
        let shared = Arc::new(Shared { journal, store, read_model, clock, ids, metrics });
        let engine: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let told = Arc::clone(&engine);
        let on_life = Box::new(move |actor, life| {
            let Some(engine) = told.get().and_then(Weak::upgrade) else { return };
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
            new_ids: NewIds::after(Timestamp(head.booked_at_ms.max(0))),
            next_group: Mutex::new(next_group),
            system_ordinal: Mutex::new(system_ordinal),
            falling_due: AsyncMutex::new(()),
            journal_thread: Mutex::new(Some(thread)),
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

    /// Takes room at the door for one command and all that it causes; none when the journal is full.
    pub fn permit(&self, bytes: usize) -> Result<Arc<Permit>, Unavailable> {
        self.look_at_space();
        self.admission.try_take(Sender::Door, bytes).ok_or_else(|| self.refusal())
    }

    /// Whether one more command is let in at the door; see [`crate::load_shedding`]. `group` names whose it is.
    pub fn admits(&self, group: impl FnOnce() -> Option<GroupNumber>) -> bool {
        let admits = self.load_shedder.admits(group);
        if !admits {
            self.shared.metrics.shed.inc();
        }
        admits
    }

    /// True while the disk is short of space: nothing is written, reads go on.
    pub fn is_storage_full(&self) -> bool {
        self.look_at_space();
        self.admission.is_closed()
    }

    /// Admission for a read, which needs some to book what is due.
    fn read_permit(&self) -> Result<Arc<Permit>, Unavailable> {
        self.look_at_space();
        self.admission.try_read(Sender::Door, INSIDE_BYTES).ok_or_else(|| self.refusal())
    }

    fn refusal(&self) -> Unavailable {
        self.shared.metrics.shed.inc();
        if self.admission.is_closed() { Unavailable::StorageFull } else { Unavailable::JournalFull }
    }

    /// Closes the room while the space on the disk, less what is under way, is below the reserve. Looks every now and then.
    fn look_at_space(&self) {
        let now = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let seen = self.space_seen_ms.load(Ordering::Acquire);
        let is_time = now >= seen + SPACE_SEEN_EVERY_MS;
        if is_time && self.space_seen_ms.compare_exchange(seen, now, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.see_space();
        }
    }

    fn see_space(&self) {
        let free = match self.shared.store.free_bytes() {
            Ok(Some(free)) => free,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "the space on the disk cannot be told");
                return;
            }
        };
        self.shared.metrics.storage_free_bytes.set(i64::try_from(free).unwrap_or(i64::MAX));
        let under_way = u64::try_from(self.admission.bytes()).unwrap_or_default();
        let is_full = free < self.shared.store.reserve_bytes() + under_way;
        if is_full != self.admission.is_closed() {
            if is_full {
                tracing::error!(
                    free,
                    "the disk is short of space: nothing is written until there is more; reads go on"
                );
            } else {
                tracing::info!(free, "there is space on the disk again");
            }
            self.admission.set_closed(is_full);
        }
    }

    /// Sends a command to a merchant's actor and waits for its outcome, which leaves once it is durable.
    pub async fn command(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        key: Option<KeyLookup>,
        requester: Option<Requester>,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let order = Envelope { command, key, unique: None, requester, permit };
        self.order(&self.merchants, LedgerId::Merchant(group), order).await
    }

    /// Sends a command to a recipient's actor and waits for its outcome, which leaves once it is durable.
    pub async fn command_recipient(
        &self,
        recipient: LedgerId,
        command: RecipientCommand,
        key: Option<KeyLookup>,
        requester: Option<Requester>,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let order = Envelope { command, key, unique: None, requester, permit };
        self.order(&self.recipients, recipient, order).await
    }

    async fn order<B: Books>(
        &self,
        directory: &Directory<B>,
        ledger: LedgerId,
        order: Envelope<B::Command>,
    ) -> Result<Outcome, Unavailable> {
        let (sender, outcome) = oneshot::channel();
        let begun = Instant::now();
        let under_way = self.load_shedder.enter(ledger.group());
        directory.send(ledger, Message::Command(order, sender));
        let outcome = outcome.await.map_err(|_| Unavailable::OutcomeUnknown);
        let waited = begun.elapsed();
        self.load_shedder.note(waited, self.shared.metrics.commit_median.get());
        drop(under_way);
        self.shared.metrics.gate_seconds.observe(waited.as_secs_f64());
        outcome
    }

    /// Reads a merchant's state, after booking what is due.
    pub async fn read_merchant<T: Send + 'static>(
        &self,
        group: GroupNumber,
        look: impl FnOnce(&MerchantState, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let permit = self.read_permit()?;
        let _under_way = self.load_shedder.enter(Some(group));
        read(&self.merchants, LedgerId::Merchant(group), look, permit).await
    }

    /// Reads a recipient's state, after booking what is due.
    pub async fn read_recipient<T: Send + 'static>(
        &self,
        recipient: LedgerId,
        look: impl FnOnce(&RecipientState, Timestamp) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let permit = self.read_permit()?;
        let _under_way = self.load_shedder.enter(recipient.group());
        read(&self.recipients, recipient, look, permit).await
    }

    /// Calls the acquirer for a charge whose intent is durable, and records its answer. A silent acquirer leaves the charge
    /// pending; a reconciliation asks again. So it does with a charge that comes too late to be taken to the acquirer.
    pub async fn charge_card(
        &self,
        group: GroupNumber,
        order: ChargeCard,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let charge = order.charge;
        let rails = self.rails.as_ref().ok_or(Unavailable::NoRail)?;
        let is_late = charge.created_at().plus_ms(CALL_STARTS_WITHIN_MS) <= self.now();
        let answer = match is_late {
            true => Err(RailError::NoAnswer),
            false => tokio::time::timeout(CARD_ANSWER_MAX, rails.card.charge(order))
                .await
                .unwrap_or(Err(RailError::NoAnswer)),
        };
        let command = match answer {
            Ok(answer) => card_outcome(charge, answer),
            Err(RailError::NoAnswer) => MerchantCommand::LeaveUnanswered { charge },
        };
        self.command(group, command, None, None, permit).await
    }

    /// Cancels a pending PIX charge: the institution is told and asked first, and a payment that was faster is booked. Only the
    /// Record of a cancellation carries the caller's key.
    pub async fn cancel_pix(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        key: Option<KeyLookup>,
        requester: Option<Requester>,
        permit: Arc<Permit>,
    ) -> Result<Outcome, Unavailable> {
        let command = self.end_pix(charge).await?;
        let key = key.filter(|_| matches!(command, MerchantCommand::CancelPix { .. }));
        self.command(group, command, key, requester, permit).await
    }

    /// Has the institution end a code, and gives the command that its answer calls for.
    async fn end_pix(&self, charge: ObjectId) -> Result<MerchantCommand, Unavailable> {
        let rails = self.rails.as_ref().ok_or(Unavailable::NoRail)?;
        let fate = tokio::time::timeout(RAIL_ANSWER_MAX, rails.pix.cancel(charge)).await;
        match fate.unwrap_or(Err(RailError::NoAnswer)) {
            Ok(PixFate::Cancelled) => Ok(MerchantCommand::CancelPix { charge }),
            Ok(PixFate::Paid { end_to_end_id }) => Ok(MerchantCommand::ConfirmPix { charge, end_to_end_id }),
            Err(RailError::NoAnswer) => Err(Unavailable::OutcomeUnknown),
        }
    }

    /// One Record of the journal.
    pub fn record(&self, sequence: Sequence) -> Result<Record, LoadError> {
        load::record(&*self.shared.store, sequence)
    }

    /// One Record of the journal, and when it was booked.
    pub fn booked_record(&self, sequence: Sequence) -> Result<(Timestamp, Record), LoadError> {
        load::booked_record(&*self.shared.store, sequence)
    }

    /// What a backup lacks that has all before `from`; see [`backup::frames`]. For a thread that may wait.
    pub fn backup(&self, from: Sequence) -> Result<impl Iterator<Item = Result<Frame, BackupError>> + '_, BackupError> {
        backup::frames(&*self.shared.store, from)
    }

    /// The number of a new account group. Each is given once, also across restarts, as the group is opened by a Record.
    pub fn new_group(&self) -> GroupNumber {
        let mut next = self.next_group.lock();
        let group = GroupNumber(*next);
        *next += 1;
        group
    }

    /// True while commands are under way: what nobody waits for leaves the cores to them.
    pub fn has_commands(&self) -> bool {
        self.admission.commands() > 0
    }

    /// The readers' view.
    pub fn read_model(&self) -> &ReadModel {
        &self.shared.read_model
    }

    /// How far the notices of the journal were delivered.
    pub fn outbox(&self) -> Outbox {
        Outbox::new(Arc::clone(&self.shared.store))
    }

    /// The keys.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// Makes and reads ids.
    pub fn ids(&self) -> &IdKey {
        &self.shared.ids
    }

    /// A new id of a group; none is given twice.
    pub fn new_id(&self, group: GroupNumber) -> Result<ObjectId, SealError> {
        let random = || stocked_random_bytes().map(u64::from_le_bytes);
        self.new_ids.draw(&self.shared.ids, group, || self.now(), random)
    }

    /// The rails, where there are any.
    pub fn rails(&self) -> Option<&Rails> {
        self.rails.as_ref()
    }

    /// What is measured.
    pub fn metrics(&self) -> &Metrics {
        let (door, inside) = (self.admission.free(Sender::Door), self.admission.free(Sender::Inside));
        self.shared.metrics.set_permits_free(door, inside);
        self.shared.metrics.published.set(i64::try_from(self.shared.read_model.published().0).unwrap_or(i64::MAX));
        self.shared.metrics.set_derived_failures(self.monitor().derived_failures());
        &self.shared.metrics
    }

    /// Now, on the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The room that the data takes, bytes.
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        self.shared.store.size_bytes()
    }

    /// What the store waits for.
    pub fn monitor(&self) -> Arc<Monitor> {
        self.shared.store.monitor()
    }

    /// The wait because of which nothing can be promised any more, if the store has made no progress for [`NOT_READY_AFTER`].
    pub fn stalled(&self) -> Option<Waiting> {
        self.monitor().longest_wait().filter(|waiting| waiting.took >= NOT_READY_AFTER)
    }

    /// Waits until making a block durable has failed; the process must then end.
    pub async fn failed(&self) {
        self.shared.journal.failed().await;
    }

    /// True once making a block durable has failed.
    pub fn has_failed(&self) -> bool {
        self.shared.journal.has_failed()
    }

    /// Wakes, one after the other, the actors whose snapshots this release cannot read: each builds its state from the journal and keeps
    /// it again, before somebody has to wait for that.
    pub async fn renew_snapshots(&self) {
        let store = Arc::clone(&self.shared.store);
        let last = GroupNumber(*self.next_group.lock());
        let unusable = match tokio::task::spawn_blocking(move || snapshots::unusable(&*store, last)).await {
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

    /// Looks every second at the space on the disk, so that who waits for it goes on also when nobody calls. Runs until it is dropped.
    pub async fn watch_space(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.look_at_space();
        }
    }

    /// Looks every second for what is due, submits drafts, and puts idle actors to sleep. Runs until it is dropped.
    pub async fn run_schedule(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !self.is_storage_full() {
                self.prepare_keys(self.now()).await;
                let _one_at_a_time = self.falling_due.lock().await;
                self.fall_due(self.now()).await;
            }
            self.sleep_idle(self.idle);
            self.shared.read_model.rest();
            if !self.admission.is_closed() && self.shared.read_model.wants_keeping() {
                self.keep_readers().await;
            }
        }
    }

    /// Makes the keys with which is sealed at `at`, on a thread that may wait for the disk.
    async fn prepare_keys(&self, at: Timestamp) {
        if self.keyring.is_prepared(at) {
            return;
        }
        let keyring = Arc::clone(&self.keyring);
        let prepared = tokio::task::spawn_blocking(move || keyring.prepare(at)).await;
        if let Ok(Err(error)) = prepared {
            tracing::warn!(%error, "the next key of personal data was not made; it is made when it is needed");
        }
    }

    /// Keeps the readers' view, so that the next start reads less of the journal.
    async fn keep_readers(&self) {
        let read_model = Arc::clone(&self.shared.read_model);
        let kept = tokio::task::spawn_blocking(move || read_model.keep()).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!(%error, "the readers' view was not kept; the next start reads more of the journal");
        }
    }

    /// Puts actors to sleep that were not used for `idle`.
    pub fn sleep_idle(&self, idle: Duration) {
        self.merchants.sleep_idle(idle);
        self.recipients.sleep_idle(idle);
    }

    /// Moves the sandbox clock forward. What falls due on the way happens one after the other, each at its own time, before this
    /// returns. Gives the time that the move was recorded at; `idempotency` binds the request to that Record.
    pub async fn advance_clock(
        &self,
        by: Duration,
        idempotency: Option<Idempotency>,
        operator: Option<String>,
    ) -> Result<Timestamp, Unavailable> {
        let _one_at_a_time = self.falling_due.lock().await;
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let target = self.now().plus_ms(by_ms);
        if self.is_storage_full() {
            return Err(Unavailable::StorageFull);
        }
        self.submit_drafts().await;
        loop {
            let next = self.shared.read_model.dues().lock().first();
            let Some(due) = next.filter(|due| *due <= target) else { break };
            self.prepare_keys(due).await;
            self.shared.clock.advance_to(due);
            self.fall_due(self.now()).await;
        }
        self.prepare_keys(target).await;
        self.shared.clock.advance_to(target);
        self.record_clock(idempotency, operator).await
    }

    /// Puts every actor to sleep, with its snapshot, and ends the journal after all that was queued.
    pub async fn stop(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
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
            let _panicked = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        if !self.has_failed() {
            self.keep_readers().await;
        }
    }

    async fn fall_due(&self, now: Timestamp) {
        self.submit_drafts().await;
        let first = self.shared.read_model.dues().lock().first();
        let lag_ms = first.map_or(0, |first| (now.0 - first.0).max(0));
        self.shared.metrics.due_lag_seconds.set(lag_ms / 1000);
        loop {
            let due = self.shared.read_model.dues().lock().take_due(now, DUE_AT_ONCE);
            if due.is_empty() {
                return;
            }
            join_all(due.into_iter().map(|ledger| self.attend(ledger, now))).await;
        }
    }

    /// Lets one ledger's owner book what is due, asks the rails of its charges and cashouts that have waited too long, charges its
    /// subscriptions, and notes when to look again.
    async fn attend(&self, ledger: LedgerId, now: Timestamp) {
        let permit = self.admission.take(INSIDE_BYTES).await;
        let mut has_more = false;
        let next_due = match ledger {
            LedgerId::Recipient(..) => self.attend_recipient(ledger, now, permit).await,
            LedgerId::Merchant(group) => {
                let look = move |books: &MerchantState, now: Timestamp| {
                    let waiting = books.needing_attention(now).take(RECONCILED_AT_ONCE);
                    let waiting = waiting.map(|(id, charge)| (id, charge.clone()));
                    let repayments = books.repayments(now).take(RECONCILED_AT_ONCE);
                    (waiting.collect::<Vec<_>>(), repayments.collect::<Vec<_>>())
                };
                match read(&self.merchants, ledger, look, permit).await {
                    Ok((waiting, repayments)) => {
                        let repaid = self.repay_all(group, &repayments).await;
                        let asked = waiting.iter().map(|(charge, open)| self.reconcile(group, *charge, open));
                        let settled = join_all(asked).await.into_iter().filter(|settled| *settled).count();
                        has_more = settled == RECONCILED_AT_ONCE || repaid == RECONCILED_AT_ONCE;
                        has_more |= self.ask_about_cashouts(group, now).await;
                        let billed = self.bill_due(group).await;
                        has_more |= billed.is_ok_and(|(_, has_billed)| has_billed);
                        self.note_oldest_unknown(&waiting, now);
                        billed.map(|(next_due, _)| next_due)
                    }
                    Err(unavailable) => Err(unavailable),
                }
            }
            LedgerId::Platform(_) | LedgerId::System => Ok(None),
        };
        // Whoever has more that can be settled is next in line again; whoever's rail is silent is asked later.
        let again = if has_more { now } else { now.plus_ms(TRY_AGAIN_AFTER_MS) };
        let next_due = match next_due {
            Ok(next_due) => next_due.map(|at| if at <= now { again } else { at }),
            Err(_) => Some(again),
        };
        self.shared.read_model.dues().lock().answered(ledger, next_due);
    }

    /// Asks the rail of one charge, by our id, what became of it; true when that is settled. No answer changes nothing.
    async fn reconcile(&self, group: GroupNumber, charge: ObjectId, open: &OpenCharge) -> bool {
        let found =
            if open.terms.method.is_card() { self.end_card(charge, open).await } else { self.end_pix(charge).await };
        let Ok(command) = found else { return false };
        let permit = self.admission.take(INSIDE_BYTES).await;
        self.command(group, command, None, None, permit).await.is_ok()
    }

    /// Has the acquirer say what became of a charge, or close it, and gives the command that its answer calls for.
    async fn end_card(&self, charge: ObjectId, open: &OpenCharge) -> Result<MerchantCommand, Unavailable> {
        let rails = self.rails.as_ref().ok_or(Unavailable::NoRail)?;
        let found = tokio::time::timeout(RAIL_ANSWER_MAX, rails.card.close(charge, open)).await;
        match found.unwrap_or(Err(RailError::NoAnswer)) {
            Ok(CardFate::Answered(answer)) => Ok(card_outcome(charge, answer)),
            Ok(CardFate::Closed) => {
                Ok(MerchantCommand::RefuseCard { charge, refusal: ledger::event::CardRefusal::Failed })
            }
            Err(RailError::NoAnswer) => Err(Unavailable::OutcomeUnknown),
        }
    }

    /// Sends drafts to the acquirer for analysis: with a rail, they become pending.
    async fn submit_drafts(&self) {
        if self.rails.is_none() {
            return;
        }
        for (group, id) in self.shared.read_model.drafts(DRAFTS_AT_ONCE) {
            let permit = self.admission.take(INSIDE_BYTES).await;
            let _tried_again_next_time =
                self.command(group, MerchantCommand::SubmitRecipient { id }, None, None, permit).await;
        }
    }

    fn note_oldest_unknown(&self, waiting: &[(ObjectId, OpenCharge)], now: Timestamp) {
        let cards = waiting.iter().filter(|(_, open)| open.terms.method.is_card()).map(|(id, _)| id.created_at());
        let oldest = cards.chain(self.cashouts.oldest_unknown()).min();
        let age_ms = oldest.map_or(0, |oldest| (now.0 - oldest.0).max(0));
        self.shared.metrics.oldest_unknown_seconds.set(age_ms / 1000);
    }

    /// Keeps the sandbox clock's offset.
    async fn record_clock(
        &self,
        idempotency: Option<Idempotency>,
        operator: Option<String>,
    ) -> Result<Timestamp, Unavailable> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        let now = self.now();
        let (sender, durable) = oneshot::channel();
        {
            let mut ordinal = self.system_ordinal.lock();
            *ordinal += 1;
            let decision = Decision::of(Event::ClockMoved { offset_ms: self.shared.clock.offset_ms() });
            let mut record = decision.into_record(LedgerId::System, *ordinal, now);
            record.idempotency = idempotency;
            record.operator = operator;
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.shared.journal.send(Input::Submit(Submission { record: Arc::new(record), bytes, permit }));
            self.shared.journal.send(Input::Answer(Box::new(move || sender.send(()).unwrap_or_default())));
        }
        durable.await.map(|()| now).map_err(|_| Unavailable::OutcomeUnknown)
    }
}

async fn read<B: Books, T: Send + 'static>(
    directory: &Directory<B>,
    ledger: LedgerId,
    look: impl FnOnce(&B, Timestamp) -> T + Send + 'static,
    permit: Arc<Permit>,
) -> Result<T, Unavailable> {
    let (sender, answer) = oneshot::channel();
    let read = move |books: &B, now: Timestamp| -> crate::journal::Reply {
        let seen = look(books, now);
        Box::new(move || drop(sender.send(seen)))
    };
    directory.send(ledger, Message::Read(Box::new(read), permit));
    answer.await.map_err(|_| Unavailable::OutcomeUnknown)
}

fn card_outcome(charge: ObjectId, answer: CardAnswer) -> MerchantCommand {
    match answer {
        CardAnswer::Captured { acquirer_mdr } => MerchantCommand::CaptureCard { charge, acquirer_mdr },
        CardAnswer::Refused(refusal) => MerchantCommand::RefuseCard { charge, refusal },
    }
}

/// A store in which something was booked stays in its mode: nobody mints money by mistake. Until then it takes that of whoever opens it.
fn check_mode(store: &dyn Store, sandbox: bool) -> Result<(), OpenError> {
    const STAMP: &[u8] = b"stamp/mode";
    let asked = if sandbox { "sandbox" } else { "live" };
    match store.state(STAMP)? {
        Some(made) if made == asked.as_bytes() => Ok(()),
        Some(made) if store.head(Partition(0))?.next > Sequence::FIRST => {
            Err(OpenError::WrongMode { made: String::from_utf8_lossy(&made).into_owned(), asked })
        }
        _ => Ok(store.put_state(STAMP, asked.as_bytes())?),
    }
}
