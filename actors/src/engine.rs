//! Façade of the crate: commands to the actors, reads of their states, and the clock, keys and
//! schedule of one installation. Each flow across a rail, the schedule, and the queries have a file
//! of their own.

mod acquirer;
mod balances;
mod card;
mod card_notifications;
mod cashout;
mod closing;
mod debts;
mod doubt;
mod house;
mod inquiry_times;
mod labels;
mod late_answers;
mod new_ids;
mod opening;
mod other_processes;
mod outcome;
mod ownership;
mod payout_returns;
mod pix;
mod pix_intake;
mod preview;
mod rail_cases;
mod rail_line;
mod rail_queue;
mod rail_word;
mod reads;
mod refund;
mod remote_partitions;
mod schedule;
mod search;
mod settlement_file;
mod shard;
mod shards;
mod side_values;
mod space;
mod subscription;
mod together;
mod used_rails;
mod withdrawal;

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use ledger::{
    Balances, Fingerprint, GroupNumber, IdKey, LedgerId, MerchantCommand, MerchantState, ObjectId, RailName,
    RecipientCommand, RecipientState, Record, Timestamp,
};
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::actor::Message;
use crate::backup::{self, BackupError, Frame};
use crate::clock::{Clock, StartCheck};
use crate::directory::Directory;
use crate::journal::{Admission, ClosedBy, Journal, Sender};
use crate::metrics::Metrics;
use crate::rails::{CardRail, PayoutRail, PixRail, Rails};
use crate::resident::{Envelope, OwnerMachine, UniqueLookup};
use derived::extents::{Extents, HOUSE};
use derived::merged;
use derived::outbox::{Outbox, OutboxSignal};
use derived::records::{self, LoadError, may_wait};
use derived::seal::{Keyring, SealError, stocked_random_bytes};
use store::{Block, Cut, LongestWait, Monitor, Part, Partition, Position, Sequence, Store, StoreError};

use acquirer::AcquirerBatches;
use doubt::AskedFirst;
use late_answers::LateAnswers;
use new_ids::NewIds;
use pix_intake::Bells;
use rail_line::{Breakers, RailLine};
use rail_queue::RailQueue;
use remote_partitions::Following;

use shard::{Shard, ShardOptions};
use shards::Shards;
use together::Together;

pub use crate::clock::{ClockReading, Doubt};
pub use crate::journal::{AdmissionLimits, Permit};
pub use crate::resident::{KeyLookup, Outcome};
pub use balances::{Totals, TrialBalance};
pub use card::{CardCharged, FirstAnswer, NewCardCharge, NewChargeCard};
pub use cashout::{CashoutOrdered, NewCashout, TransactionLookup};
pub use derived::balance_files::{
    AnticipatedOn, AnticipatedSums, AsOf, BalanceFiles, BooksAsOf, CarriedFact, SumOfKind, SumsAsOf,
};
pub use derived::index::{
    FoundKind, IndexOptions, LedgerList, ObjectList, PlainValue, SearchKey, Slice, TXID_PREFIX_MIN,
};
pub use derived::personal_index::PersonalValue;
pub use derived::read_model::{
    ApiKeyRow, CardRow, ChargeFilter, ChargeStatus, DAYS_MAX, DayFigures, ListedSplit, ListedWebhookEvent, MerchantRow,
    PastChoices, RecipientRow, SubscriptionRow, Volume, WaitingItem, WaitingKind, WaitingPage, WebhookRow,
};
pub use doubt::SecondOperatorNeeded;
pub use labels::{NewChargeChange, ReferenceLookup, ReferenceOf};
pub use opening::{OpenError, check_store};
pub use other_processes::{AskedElsewhere, Others};
pub use outcome::CommandContext;
pub use ownership::PartitionHere;
pub use pix::{NewPixCharge, PixEnded, PixOpened, PixPayment};
pub use rail_cases::CaseNeed;
pub use reads::{ChargeQuery, Listed, NewestCharges, Objects, Records, RecordsWith};
pub use search::{FoundRecords, RecordList, SoughtValue, ValueSource};
pub use settlement_file::{FileBatch, FilePreview, FileRefusal, SettlementFile};
pub use shards::{Hold, Role};
pub(crate) use side_values::PREFIX as KEPT_PREFIX;

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
    /// Actors that may be awake; of more, those that were used least recently sleep.
    pub awake_max: usize,
    /// The rails; `None` if charges are not possible.
    pub rails: Rails,
    /// Prepares names for search.
    pub fold_name: fn(&str) -> String,
    /// How the index is cut into runs.
    pub index: IndexOptions,
    /// How many partitions a store gets that has none yet.
    pub partitions: NonZeroU16,
    /// How long after the last Record a live start needs no word of operators.
    pub start_gap_max: Duration,
    /// What is measured.
    pub metrics: Arc<Metrics>,
}

/// Digests of the `Idempotency-Key` of a request that opens an account.
#[derive(Debug, Clone, Copy)]
pub struct OpeningKey {
    /// Of the key alone: it says in which partition the account is, before the request is read.
    pub alone: Fingerprint,
    /// As the Record of the account has it.
    pub recorded: Fingerprint,
}

/// Outcome of a command or a read, or why there is none.
pub type Result<T, E = Unavailable> = std::result::Result<T, E>;

/// Why a command or a read has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The journal gives no permit: nothing was sent.
    #[error("the journal is full")]
    JournalFull,
    /// The disk is short of space: nothing was sent.
    #[error("the disk is short of space")]
    StorageFull,
    /// The wall clock is in doubt: nothing was sent.
    #[error("the wall clock is in doubt")]
    ClockInDoubt,
    /// The actor or the journal went away: the command may have been decided or not.
    #[error("the outcome is unknown")]
    OutcomeUnknown,
    /// No rail is configured: nothing was sent.
    #[error("no rail is configured")]
    NoRail,
    /// Nothing could be sent to the rail. The same request may be made again.
    #[error("the rail can't be reached")]
    RailUnavailable,
    /// The journal or a key could not be read; the log holds the cause.
    #[error("the journal or a key could not be read")]
    Unreadable,
    /// The database does not answer.
    #[error("the database does not answer")]
    StoreUnavailable,
    /// Another process has the partition: nothing was sent.
    #[error("another process has partition {}", .0.0)]
    Elsewhere(Partition),
}

impl Unavailable {
    /// The error for a Record that does not say what its command decides.
    fn contradicting(command: &str) -> Self {
        tracing::error!(command, "a Record does not say what its command decided");
        Self::Unreadable
    }
}

impl From<LoadError> for Unavailable {
    fn from(error: LoadError) -> Self {
        if let LoadError::Store(StoreError::Unavailable { .. }) = &error {
            tracing::warn!(%error, "the journal could not be read");
            return Self::StoreUnavailable;
        }
        match &error {
            LoadError::DamagedBalances => tracing::warn!(%error, "books of the past could not be read"),
            _ => tracing::error!(%error, "the journal could not be read"),
        }
        Self::Unreadable
    }
}

impl From<SealError> for Unavailable {
    fn from(error: SealError) -> Self {
        tracing::error!(%error, "personal data could not be sealed");
        Self::Unreadable
    }
}

/// The engine of one installation: actors, journal, index and read model on a store.
///
/// A command needs a permit, and its outcome leaves when it is durable.
///
/// ```
/// use std::num::NonZeroU16;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use actors::engine::{AdmissionLimits, Engine, EngineOptions};
/// use actors::engine::{IndexOptions, Outcome};
/// use store::testkit::MemoryStore;
/// use ledger::fees::Settings;
/// use ledger::merchant::MerchantCommand;
/// use ledger::personal::{MerchantProfile, SealedFor};
/// use actors::rails::Rails;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = EngineOptions {
///     sandbox: true,
///     master_key: [7; 32],
///     admission: AdmissionLimits::default(),
///     idle: Duration::from_secs(60),
///     awake_max: 100_000,
///     rails: Rails::default(),
///     fold_name: str::to_lowercase,
///     index: IndexOptions::default(),
///     partitions: NonZeroU16::MIN,
///     start_gap_max: Duration::from_secs(7 * 86_400),
///     metrics: Arc::default(),
/// };
/// let engine = Engine::open_store(Arc::new(MemoryStore::new()), options, |_, _| {}).await?;
/// let (group, now) = (engine.new_group(None), engine.now());
/// let sealed_for = SealedFor::merchant(group);
/// let profile = engine.keyring().seal_value(sealed_for, now, &MerchantProfile::default())?;
/// let id = engine.ids().object(group, now, 1);
/// let command = MerchantCommand::Open { id, settings: Settings::default(), profile };
/// let outcome = engine.command(group, command, engine.permit(1_024)?).await?;
/// assert!(matches!(outcome, Outcome::Recorded(_)));
/// assert_eq!(engine.read_merchant(group, |merchant, _| merchant.id()).await?, Some(id));
/// engine.stop().await;
/// # Ok(())
/// # }
/// ```
pub struct Engine {
    store: Arc<dyn Store>,
    extents: Arc<Extents>,
    shards: Shards,
    /// All partitions in their order, to be read only.
    reading: Vec<Part>,
    shard_options: ShardOptions,
    /// The processes with the other partitions, once there may be some.
    others: OnceLock<Arc<dyn Others>>,
    /// Held while partitions of other processes are followed.
    following: AsyncMutex<Following>,
    journal: Journal,
    journal_thread: Mutex<Option<thread::JoinHandle<()>>>,
    outbox_signal: Arc<OutboxSignal>,
    admission: Arc<Admission>,
    clock: Arc<Clock>,
    metrics: Arc<Metrics>,
    keyring: Arc<Keyring>,
    ids: IdKey,
    new_ids: NewIds,
    rails: Rails,
    bells: Bells,
    breakers: Breakers,
    rail_queue: RailQueue,
    late_answers: LateAnswers,
    /// Since when the oldest charge at each rail waits for its answer, of merchants that have one.
    oldest_unknown: Mutex<BTreeMap<GroupNumber, inquiry_times::OldestUnknown>>,
    /// Held while due things are booked: they are booked in order, also while the sandbox clock is
    /// stepped.
    falling_due: AsyncMutex<()>,
    batches: AsyncMutex<AcquirerBatches>,
    idle: Duration,
    awake_max: usize,
    /// The operator who asked first to go by the wall clock.
    clock_asked: Mutex<Option<AskedFirst>>,
    /// The last Record before the start of a sandbox, until its clock is known.
    sandbox_start: Mutex<Option<StartCheck>>,
    /// When the space on the disk was last looked at, milliseconds since `opened_at`.
    space_seen_ms: AtomicU64,
    opened_at: Instant,
}

/// A wait for the store of this length makes the service not ready. A slow disk answers within a
/// few seconds.
pub const NOT_READY_AFTER: Duration = Duration::from_secs(10);

/// How long it may take until an idle process ends whose store was taken by another one.
const SUPERSEDED_SEEN_AFTER: Duration = Duration::from_millis(200);

/// How long a rail may take when it is asked again.
const RAIL_ANSWER_MAX: Duration = Duration::from_secs(10);
/// Something that stays due (a rail that does not answer) is tried again after this long.
const TRY_AGAIN_AFTER_MS: i64 = 5_000;
/// How many waiting charges of one merchant are asked for before the others have their turn.
const RECONCILED_AT_ONCE: usize = 64;
/// Bytes that a permit of the engine's own senders reserves.
const INSIDE_BYTES: usize = 4_096;

/// Which shard a call is for.
impl Engine {
    /// The shard of a group.
    fn shard(&self, group: GroupNumber) -> Arc<Shard> {
        self.shards.at(self.extents.partition_of(group))
    }

    /// The same, for what only its actors know or do. Error: another process has them.
    fn serving_shard(&self, group: GroupNumber) -> Result<Arc<Shard>> {
        let partition = self.extents.partition_of(group);
        self.shards.serving(partition).ok_or(Unavailable::Elsewhere(partition))
    }

    fn serving_shard_of(&self, ledger: LedgerId) -> Result<Arc<Shard>> {
        self.serving_shard(ledger.group().unwrap_or(HOUSE))
    }

    /// The shard of a ledger's group; that of the whole installation's house ledger for the house.
    fn shard_of(&self, ledger: LedgerId) -> Arc<Shard> {
        self.shard(ledger.group().unwrap_or(HOUSE))
    }

    /// The shard in which an object is, if there is one of this id. Not for the ids of batches and
    /// periods, which name no group.
    fn shard_with(&self, id: ObjectId) -> Arc<Shard> {
        self.shard(self.ids.group(id))
    }

    /// Whether this process serves the partition of a group.
    pub fn serves(&self, group: GroupNumber) -> bool {
        self.shards.role(self.extents.partition_of(group)) == Role::Owner
    }

    /// Whether this process serves what is about the whole installation.
    pub fn serves_house(&self) -> bool {
        self.serves(HOUSE)
    }

    /// Says how other processes are asked.
    pub fn set_others(&self, others: Arc<dyn Others>) {
        let _set_once = self.others.set(others);
    }

    fn others_than(&self, partition: Partition) -> Result<&dyn Others> {
        self.others.get().map(|others| &**others).ok_or(Unavailable::Elsewhere(partition))
    }

    /// Which partition each group is in.
    pub fn extents(&self) -> &Extents {
        &self.extents
    }

    /// The shard of what is booked for the whole installation.
    fn house_shard(&self) -> Arc<Shard> {
        self.shard(HOUSE)
    }

    /// The shard with a Record, if there is such a Record yet.
    fn shard_at(&self, at: Position) -> Option<Arc<Shard>> {
        let shard = self.shards.get(at.partition)?;
        (Sequence::FIRST..=shard.published()).contains(&at.sequence).then_some(shard)
    }

    /// The partitions, in their order, to be read only.
    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.reading.iter()
    }
}

impl Engine {
    /// Takes a permit for a command and all that it causes, out of turn: for operators, who are
    /// few, and are needed most when there is much to do. An error when the journal is full.
    pub fn permit(&self, bytes: usize) -> Result<Arc<Permit>> {
        self.look_before_writing();
        self.admission.try_take(Sender::Door, bytes).ok_or_else(|| self.refusal())
    }

    /// Waits for the turn of a merchant's command, and takes a permit for it; an error when the
    /// wait is longer than [`AdmissionLimits::wait_max`]. Requests that are carried out
    /// [together](Engine::together) share one.
    pub async fn permit_in_turn(&self, group: Option<GroupNumber>, bytes: usize) -> Result<Arc<Permit>> {
        match group.and_then(Together::of) {
            Some(together) => together.permit(self).await,
            None => self.permit_of(group, (1, bytes)).await,
        }
    }

    async fn permit_of(&self, group: Option<GroupNumber>, room: (u32, usize)) -> Result<Arc<Permit>> {
        self.look_before_writing();
        let begun = Instant::now();
        let permit = self.admission.take_in_turn(group, room).await;
        self.metrics.turn_seconds.observe(begun.elapsed().as_secs_f64());
        permit.ok_or_else(|| self.refusal())
    }

    /// Takes a permit for a read, since a read may book what is due.
    fn read_permit(&self) -> Result<Arc<Permit>> {
        self.look_before_writing();
        self.admission.try_read(Sender::Door, INSIDE_BYTES).ok_or_else(|| self.refusal())
    }

    fn refusal(&self) -> Unavailable {
        self.metrics.shed.inc();
        match () {
            () if self.admission.is_closed_by(ClosedBy::Clock) => Unavailable::ClockInDoubt,
            () if self.admission.is_closed() => Unavailable::StorageFull,
            () => Unavailable::JournalFull,
        }
    }

    /// Sends a command to a merchant's actor and waits for its outcome, which leaves once it is
    /// durable, and once the recipients that owe have paid what they can by it.
    pub async fn command(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome> {
        self.command_with(group, command, None, context.into()).await
    }

    /// As [`Engine::command`], for a command whose Record uses up a key that was looked up.
    /// `KeyTaken` where another Record used it up since.
    async fn command_with(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        unique: Option<UniqueLookup>,
        CommandContext { key, requester, permit }: CommandContext,
    ) -> Result<Outcome> {
        let envelope = Envelope { command, key, unique: [unique, None], requester, permit: Arc::clone(&permit) };
        let shard = self.serving_shard(group)?;
        let outcome = match Together::of(group) {
            Some(together) => self.outcome(envelope, |command| together.gather(command)).await?,
            None => self.send(&shard.merchants, LedgerId::Merchant(group), envelope).await?,
        };
        if let Outcome::Recorded(record) = &outcome {
            self.collect_debts(group, record, &permit).await;
        }
        Ok(outcome)
    }

    /// Sends a command to a recipient's actor and waits for its outcome, which leaves once it is
    /// durable.
    pub async fn command_recipient(
        &self,
        recipient: LedgerId,
        command: RecipientCommand,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome> {
        let CommandContext { key, requester, permit } = context.into();
        let envelope = Envelope { command, key, unique: [None; 2], requester, permit };
        self.send(&self.serving_shard_of(recipient)?.recipients, recipient, envelope).await
    }

    async fn send<B: OwnerMachine>(
        &self,
        directory: &Directory<B>,
        ledger: LedgerId,
        envelope: Envelope<B::Command>,
    ) -> Result<Outcome> {
        let send = |(envelope, outcome)| directory.send(ledger, Message::Command(envelope, outcome));
        self.outcome(envelope, send).await
    }

    /// Sends a command, and waits for its outcome.
    async fn outcome<C>(
        &self,
        envelope: Envelope<C>,
        send: impl FnOnce((Envelope<C>, oneshot::Sender<Outcome>)),
    ) -> Result<Outcome> {
        let (sender, outcome) = oneshot::channel();
        let begun = Instant::now();
        let turn = envelope.permit.begin_turn();
        send((envelope, sender));
        let outcome = outcome.await.map_err(|_| Unavailable::OutcomeUnknown);
        let waited = begun.elapsed();
        drop(turn);
        self.metrics.gate_seconds.observe(waited.as_secs_f64());
        outcome
    }

    /// Reads a merchant's state, after booking what is due.
    pub async fn read_merchant<T: Send + 'static>(
        &self,
        group: GroupNumber,
        look: impl FnOnce(&MerchantState, Timestamp) -> T + Send + 'static,
    ) -> Result<T> {
        let permit = self.read_permit()?;
        read(&self.serving_shard(group)?.merchants, LedgerId::Merchant(group), look, permit).await
    }

    /// Reads a recipient's state, after booking what is due.
    pub async fn read_recipient<T: Send + 'static>(
        &self,
        recipient: LedgerId,
        look: impl FnOnce(&RecipientState, Timestamp) -> T + Send + 'static,
    ) -> Result<T> {
        let permit = self.read_permit()?;
        read(&self.serving_shard_of(recipient)?.recipients, recipient, look, permit).await
    }

    /// The balances of a ledger's accounts, after booking what is due: those of a merchant or
    /// recipient as its actor has them, those of the platform's shard of a group as published.
    pub async fn accounts(&self, ledger: LedgerId) -> Result<Balances> {
        match ledger {
            LedgerId::Merchant(group) => self.read_merchant(group, |books, _| books.ledger().balances()).await,
            LedgerId::Recipient(..) => self.read_recipient(ledger, |books, _| books.ledger().balances()).await,
            LedgerId::Platform(_) | LedgerId::System => Ok(self.published_accounts(ledger)),
        }
    }

    /// Whether a Record is published.
    pub fn has_record(&self, at: Position) -> bool {
        self.shard_at(at).is_some()
    }

    /// One Record of the journal.
    pub fn record(&self, at: Position) -> Result<Record, LoadError> {
        self.booked_record(at).map(|(_, record)| record)
    }

    /// One Record of the journal, and when it was booked.
    pub fn booked_record(&self, at: Position) -> Result<(Timestamp, Record), LoadError> {
        let shard = self.shard_at(at).ok_or(LoadError::Missing(at.sequence.0))?;
        records::booked_record(shard.part(), at.sequence)
    }

    /// The block of the journal that holds a Record, whole and checked; `None` if there is none
    /// yet.
    pub fn block(&self, at: Position) -> Result<Option<Block>, LoadError> {
        let Some(shard) = self.shard_at(at) else { return Ok(None) };
        Ok(may_wait(|| shard.part().blocks(at.sequence).next()).transpose()?)
    }

    /// The blocks from the ones on that hold these Records, one of each partition, in the order of
    /// booking, for a thread that may wait; see [`merged::blocks`]. Each is whole, its hash
    /// computed again, and its place in the chain checked.
    pub fn blocks(&self, from: &Cut) -> impl Iterator<Item = Result<Block, LoadError>> + use<'_> {
        merged::blocks(self.parts(), from).map(|block| block.map_err(LoadError::from))
    }

    /// The frames that a backup with everything before these Records lacks; see
    /// [`backup::frames`]. For a thread that may wait.
    pub fn backup(&self, from: &Cut) -> Result<impl Iterator<Item = Result<Frame, BackupError>> + '_, BackupError> {
        backup::frames(self.parts(), from)
    }

    /// The number of a new account group, for a request with this idempotency key. Each is given
    /// once, also across restarts, as the group is opened by a Record.
    pub fn new_group(&self, key: Option<OpeningKey>) -> GroupNumber {
        self.opening_shard(key).new_group(&self.extents).expect("there are fewer groups than numbers")
    }

    /// The group that [`Engine::new_group`] gives next. Its partition has the Record of an earlier
    /// request with the same key, if there was one.
    pub fn next_group(&self, key: Option<OpeningKey>) -> GroupNumber {
        self.opening_shard(key).next_group(&self.extents)
    }

    /// The partition of a new group: by the key, so that a retry meets its first, also one that was
    /// answered before partitions were added; without a key that with the fewest groups among those
    /// that this process has.
    pub fn opening_partition(&self, key: Option<OpeningKey>) -> Partition {
        let growing = self.extents.growing();
        let partition = |place: u16| Partition(growing.first.0 + place);
        if let Some(OpeningKey { alone: Fingerprint(bytes), recorded }) = key {
            let before = self.extents.opened_before(&[recorded], self.now());
            return before.unwrap_or(partition((u128::from_be_bytes(bytes) % u128::from(growing.count)) as u16));
        }
        let places = (0..growing.count).filter(|place| self.shards.role(partition(*place)) == Role::Owner);
        partition(places.min_by_key(|place| self.shards.at(partition(*place)).next_group(&self.extents)).unwrap_or(0))
    }

    fn opening_shard(&self, key: Option<OpeningKey>) -> Arc<Shard> {
        self.shards.at(self.opening_partition(key))
    }

    /// True while commands are under way: background work leaves the cores to them.
    pub fn has_commands(&self) -> bool {
        self.admission.commands() > 0
    }

    /// How far the webhook events of a group were delivered.
    pub fn outbox(&self, group: GroupNumber) -> Outbox {
        Outbox::new(self.shard(group).part().clone())
    }

    /// Signal that a group has new webhook events.
    pub fn webhook_signal(&self) -> &OutboxSignal {
        &self.outbox_signal
    }

    /// The keys.
    pub fn keyring(&self) -> &Keyring {
        &self.keyring
    }

    /// The keys, for a thread that outlives a request.
    pub fn shared_keyring(&self) -> Arc<Keyring> {
        Arc::clone(&self.keyring)
    }

    /// Makes and reads ids.
    pub fn ids(&self) -> &IdKey {
        &self.ids
    }

    /// A new id of a group; none is given twice.
    pub fn new_id(&self, group: GroupNumber) -> Result<ObjectId, SealError> {
        let random = || stocked_random_bytes().map(u64::from_le_bytes);
        self.new_ids.draw(&self.ids, group, || self.now(), random)
    }

    /// The acquirer of new card charges, with its name; an error where there is none.
    fn current_card_rail(&self) -> Result<(Option<RailName>, RailLine<'_, dyn CardRail>)> {
        let (name, _) = self.rails.card.current().ok_or(Unavailable::NoRail)?;
        Ok((name.cloned(), self.card_rail(name)?))
    }

    /// The same for transfers out.
    fn current_payout_rail(&self) -> Result<(Option<RailName>, RailLine<'_, dyn PayoutRail>)> {
        let (name, _) = self.rails.payout.current().ok_or(Unavailable::NoRail)?;
        Ok((name.cloned(), self.payout_rail(name)?))
    }

    /// What of the outside world is configured.
    pub fn rails(&self) -> &Rails {
        &self.rails
    }

    /// The card acquirer of this name, which a sandbox's has not; an error where it is not
    /// configured.
    fn card_rail(&self, name: Option<&RailName>) -> Result<RailLine<'_, dyn CardRail>> {
        self.breakers.card.line(&self.rails.card, name)
    }

    /// The same of an institution that sends money out.
    fn payout_rail(&self, name: Option<&RailName>) -> Result<RailLine<'_, dyn PayoutRail>> {
        self.breakers.payout.line(&self.rails.payout, name)
    }

    /// The same of a PIX institution.
    fn pix_rail(&self, name: Option<&RailName>) -> Result<RailLine<'_, dyn PixRail>> {
        self.breakers.pix.line(&self.rails.pix, name)
    }

    /// Metrics of the engine.
    pub fn metrics(&self) -> &Metrics {
        let (door, inside) = (self.admission.free(Sender::Door), self.admission.free(Sender::Inside));
        self.metrics.set_permits_free(door, inside);
        self.metrics.turns_waiting.set(self.admission.waiting());
        self.metrics.published.set(i64::try_from(self.records_published()).unwrap_or(i64::MAX));
        self.metrics.set_derived_failures(self.monitor().derived_failures());
        &self.metrics
    }

    /// Now, on the engine's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The size of the data on the disk, bytes.
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        self.store.size_bytes()
    }

    /// Monitor of the store's waits.
    pub fn monitor(&self) -> Arc<Monitor> {
        self.store.monitor()
    }

    /// The longest wait for the store, when it is [`NOT_READY_AFTER`] or longer: no reply can be
    /// promised then.
    pub fn stalled(&self) -> Option<LongestWait> {
        self.monitor().longest_wait().filter(|waiting| waiting.took >= NOT_READY_AFTER)
    }

    /// Waits until making a block durable has failed, or another process has taken the store; the
    /// process must then end.
    pub async fn failed(&self) {
        let superseded = async {
            while !self.is_superseded() {
                tokio::time::sleep(SUPERSEDED_SEEN_AFTER).await;
            }
        };
        tokio::select! {
            () = self.journal.failed() => {}
            () = superseded => {}
        }
    }

    /// Whether this process may answer: no other one can have taken the store. See
    /// [`store::Store::is_current`].
    pub fn is_current(&self) -> bool {
        self.store.is_current()
    }

    /// A look whether the store can be used, also while the engine ends.
    pub fn watch_use(&self) -> Box<dyn Fn() -> bool + Send> {
        self.store.watch_use()
    }

    /// What the servers of the store said that do not work. See [`store::Store::trouble`].
    pub fn store_trouble(&self) -> Option<String> {
        self.store.trouble()
    }

    /// Whether a server of the store takes writes although another one replaced it.
    pub fn has_former_primary(&self) -> bool {
        self.store.has_former()
    }

    /// Whether another process has taken the store.
    pub fn is_superseded(&self) -> bool {
        self.store.is_superseded()
    }

    /// True once making a block durable has failed.
    pub fn has_failed(&self) -> bool {
        self.journal.has_failed()
    }
}

async fn read<B: OwnerMachine, T: Send + 'static>(
    directory: &Directory<B>,
    ledger: LedgerId,
    look: impl FnOnce(&B, Timestamp) -> T + Send + 'static,
    permit: Arc<Permit>,
) -> Result<T> {
    let (sender, answer) = oneshot::channel();
    let read = move |books: &B, now: Timestamp| -> crate::journal::Reply {
        let seen = look(books, now);
        Box::new(move || drop(sender.send(seen)))
    };
    directory.send(ledger, Message::Read(Box::new(read), permit));
    answer.await.map_err(|_| Unavailable::OutcomeUnknown)
}
