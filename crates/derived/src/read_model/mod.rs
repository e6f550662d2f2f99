//! Read model of the durable journal. It folds every block before the block's replies leave, so
//! that a caller finds what its reply said. It decides nothing, and all of it can be built again
//! from the journal.
//!
//! Data per merchant and recipient (rows, balances, due times) is in memory. Merchants that are not
//! asked for are packed (`merchants.rs`). Pages on the disk keep all of it, so that a start reads
//! only the end of the journal (`pages.rs`). Data that grows with history is in the index
//! ([`crate::index`]) and read a page at a time (`listings.rs`).

mod daily_figures;
mod listings;
mod merchants;
mod operator_queue;
mod page_id;
mod pages;
mod registry;
mod rows;
mod subscriptions;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ledger::{
    Account, Balance, Balances, Entry, GroupNumber, IdKey, IdMap, IdSet, LedgerId, Month, ObjectId, RecipientNumber,
    RecipientProfile, Record, Sealed, Timestamp,
};
use parking_lot::{Mutex, RwLock};

use crate::checkpoint;
use crate::dues::Dues;
use crate::extents::{Extents, Places};
use crate::index::{self, FoundKind, Index, IndexOptions, SearchKey};
use crate::outbox::OutboxSignal;
use crate::personal_index::PersonalIndex;
use crate::records::{LoadError, Result};
use crate::seal::Keyring;
use store::{Block, Head, Part, Sequence};

use daily_figures::DailyFigures;
use page_id::PageId;
use registry::{Registry, concerns_registry};

pub use crate::index::FOLLOWED_MAX;
pub use daily_figures::{DAYS_MAX, DayFigures, Volume};
pub use listings::{ChargeFilter, ChargeStatus, KeyFound, ListedSplit, ListedStatementLine, ListedWebhookEvent};
pub use operator_queue::{WaitingItem, WaitingKind, WaitingPage};
pub use pages::{StoredPage, stored_pages};
pub use registry::{FileBatches, HouseFacts};
pub use rows::{ApiKeyRow, KeyCreator, MerchantRow, PastChoices, RecipientRow, Versions, WebhookRow};
pub use subscriptions::{CardRow, SubscriptionRow};

/// How many merchants are looked at, and packed, before readers get the lock.
const RESTING_AT_ONCE: usize = 256;
const PACKED_AT_ONCE: usize = 8;
/// How many Records of a block are folded before readers get the locks.
const RECORDS_AT_ONCE: usize = 64;

/// Prepares a name for search.
pub type FoldName = fn(&str) -> String;

/// The read model: rows, balances and due times in memory, and the index.
pub struct ReadModel {
    store: Part,
    places: Places,
    /// How many read models share the process's memory, and the Records that a start reads again.
    share: u64,
    keyring: Arc<Keyring>,
    ids: IdKey,
    fold_name: FoldName,
    options: IndexOptions,
    /// Replaced while the partition of another process is followed.
    index: RwLock<Arc<Index>>,
    /// Held while a block is folded and while a page is taken, so that a page is of one moment.
    folding: Mutex<Folding>,
    /// Held while pages are written.
    keeping: Mutex<()>,
    registry: RwLock<Registry>,
    books: RwLock<BalanceTable>,
    /// Apart from the balances, since every request with a key asks for one.
    ordinals: RwLock<Ordinals>,
    dues: Mutex<Dues>,
    daily: Mutex<DailyFigures>,
    outbox: Arc<OutboxSignal>,
    published: AtomicU64,
    /// The latest time at which a published Record took effect, milliseconds.
    latest_ms: AtomicI64,
}

/// Changes since the pages were written.
#[derive(Default)]
struct Folding {
    changed: IdSet<PageId>,
    kept_through: u64,
    /// While the end of the journal is read again: the last Record of each page that is ahead of
    /// the summary.
    loaded: IdMap<PageId, u64>,
}

impl Folding {
    /// True when a ledger's page does not have this Record yet.
    fn is_new(&self, ledger: LedgerId, sequence: Sequence) -> bool {
        self.loaded.is_empty()
            || PageId::of(ledger).and_then(|page| self.loaded.get(&page)).is_none_or(|through| sequence.0 > *through)
    }
}

/// Every account of every ledger, at one cut.
#[derive(Default)]
struct BalanceTable {
    through: Option<Sequence>,
    ledgers: IdMap<LedgerId, Balances>,
    /// How many accounts all ledgers have.
    rows: u64,
    /// The last recipient with an account, at the place of each group.
    recipients: Vec<u32>,
    places: Places,
    /// The sums of all accounts of a kind, at the place of its code.
    totals: Vec<Balance>,
    /// Debits minus credits of the ledgers in which they differ.
    unbalanced: IdMap<LedgerId, i128>,
}

impl BalanceTable {
    fn new(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    fn post(&mut self, entry: &Entry) {
        self.add(entry.ledger(), entry.postings().iter().map(|posting| (posting.account, posting.sums())));
    }

    /// Adds to accounts of a ledger, and to whatever sums them up.
    fn add(&mut self, ledger: LedgerId, moved: impl Iterator<Item = (Account, Balance)>) {
        let balances = self.ledgers.entry(ledger).or_default();
        let known = balances.len();
        let mut net = 0;
        for (account, moved) in moved {
            balances.entry(account).or_default().add(moved);
            at_place(&mut self.totals, usize::from(account.code().0)).add(moved);
            net += moved.net();
        }
        if balances.len() > known {
            self.rows += (balances.len() - known) as u64;
            if let LedgerId::Recipient(group, number) = ledger {
                let last = at_place(&mut self.recipients, self.places.of(group));
                *last = number.0.max(*last);
            }
        }
        if net != 0 {
            let unbalanced = self.unbalanced.entry(ledger).or_default();
            *unbalanced += net;
            if *unbalanced == 0 {
                self.unbalanced.remove(&ledger);
            }
        }
    }
}

fn at_place<T: Clone + Default>(all: &mut Vec<T>, place: usize) -> &mut T {
    if all.len() <= place {
        all.resize(place + 1, T::default());
    }
    &mut all[place]
}

/// How many ledgers of a trial balance are passed over before publishing gets the lock.
const LEDGERS_AT_ONCE: u32 = 256;

fn last_recipient(books: &BalanceTable, place: u32) -> u32 {
    books.recipients.get(place as usize).copied().unwrap_or_default()
}

/// The ledgers with accounts of the group at a place, in order.
fn ledgers_of(books: &BalanceTable, place: u32) -> impl Iterator<Item = (LedgerId, &Balances)> {
    let recipients = 1..=last_recipient(books, place);
    let ledgers = books.places.group(place as usize).into_iter().flat_map(move |group| {
        let recipients = recipients.clone().map(move |number| LedgerId::Recipient(group, RecipientNumber(number)));
        [LedgerId::Merchant(group), LedgerId::Platform(group)].into_iter().chain(recipients)
    });
    ledgers.filter_map(|ledger| Some((ledger, books.ledgers.get(&ledger)?)))
}

/// A page of the trial balance of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialBalancePage {
    /// The Records of the partition through this one are folded.
    pub through: Sequence,
    /// True when debits equal credits in every ledger.
    pub is_balanced: bool,
    /// Accounts of all ledgers.
    pub total: u64,
    /// The accounts of this part, ledger by ledger.
    pub rows: Vec<(LedgerId, Account, Balance)>,
}

/// The ordinals of the last published Records.
#[derive(Default)]
struct Ordinals {
    /// Ordinals of merchants, at the place of their group.
    merchants: Vec<u64>,
    system: u64,
    places: Places,
}

impl Ordinals {
    fn new(places: Places) -> Self {
        Self { places, ..Self::default() }
    }

    /// Ordinal of a merchant or of the house.
    fn of(&self, owner: LedgerId) -> u64 {
        match owner.group() {
            Some(group) => self.merchants.get(self.places.of(group)).copied().unwrap_or_default(),
            None => self.system,
        }
    }

    fn set(&mut self, owner: LedgerId, ordinal: u64) {
        let Some(place) = owner.group().map(|group| self.places.of(group)) else {
            self.system = ordinal;
            return;
        };
        *at_place(&mut self.merchants, place) = ordinal;
    }
}

impl ReadModel {
    /// The read model of a partition that this process does not have: nothing is in it, and nothing
    /// was read. `fold_name` prepares names for search; `outbox` hears of new webhook events.
    pub fn unread(
        store: Part,
        extents: Arc<Extents>,
        keyring: Arc<Keyring>,
        fold_name: FoldName,
        options: IndexOptions,
        outbox: Arc<OutboxSignal>,
    ) -> Self {
        let share = u64::from(extents.partitions());
        let places = Places::new(extents, store.partition());
        let options = options.shared_by(share);
        Self {
            options,
            index: RwLock::new(Arc::new(Index::unread(store.clone(), options))),
            store,
            ids: keyring.id_key(),
            keyring,
            fold_name,
            folding: Mutex::default(),
            keeping: Mutex::default(),
            registry: RwLock::new(Registry::new(places.clone())),
            books: RwLock::new(BalanceTable::new(places.clone())),
            ordinals: RwLock::new(Ordinals::new(places.clone())),
            places,
            share,
            dues: Mutex::default(),
            daily: Mutex::default(),
            outbox,
            published: AtomicU64::new(0),
            latest_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// The same once its pages were read, and the Records after them, for the process that writes
    /// the partition. `progress` receives how many Records of how many were read again.
    pub fn opened(self, progress: impl Fn(u64, u64)) -> Result<Self> {
        let index = Index::open(self.store.clone(), self.options, Some(self.personal()))?;
        self.read_with(index, progress)
    }

    /// The same as of now, for a process that reads what another one writes: see
    /// [`ReadModel::follow`].
    pub fn followed(self) -> Result<Self> {
        let index = Index::following(self.store.clone(), self.options, Some(self.personal()))?;
        self.read_with(index, |_, _| ())
    }

    fn read_with(self, index: Index, progress: impl Fn(u64, u64)) -> Result<Self> {
        *self.index.write() = Arc::new(index);
        self.load_pages()?;
        self.catch_up(progress)?;
        Ok(self)
    }

    /// Folds what another process has written since, through its head.
    pub fn follow(&self, head: Head) -> Result<()> {
        let from = self.published().plus(1);
        if from >= head.next {
            return Ok(());
        }
        for block in self.store.blocks(from) {
            self.publish(&decoded(&block?)?)?;
        }
        Ok(())
    }

    /// Takes up the runs of the index that another process has written since, in place of those
    /// that it merged.
    pub fn follow_index(&self) -> Result<()> {
        let index = Index::following(self.store.clone(), self.options, Some(self.personal()))?;
        // Read after the runs, so that all of these are folded.
        self.follow(self.store.head()?)?;
        let folding = self.folding.lock();
        let published = self.published();
        let from = index.indexed_through().plus(1);
        if from <= published {
            for block in self.store.blocks(from) {
                let mut records = decoded(&block?)?;
                records.retain(|(sequence, _)| (from..=published).contains(sequence));
                let Some((first, _)) = records.first() else { break };
                index.count(&records, |group| Ok(index.balances_before(group, &[*first])?[0]))?;
            }
        }
        *self.index.write() = Arc::new(index);
        drop(folding);
        Ok(())
    }

    /// The blind index of personal data, under this installation's keys.
    pub fn personal(&self) -> PersonalIndex {
        PersonalIndex::new(Arc::clone(&self.keyring), self.fold_name)
    }

    /// The published Records with a value through `last`, lowest first, each with what it makes;
    /// see [`Index::with_value`].
    pub fn with_value(&self, value: SearchKey, last: Sequence) -> Result<Vec<(Sequence, FoundKind)>> {
        self.index().with_value(value, 0..last.min(self.published()).0 + 1)
    }

    /// How many charges the Records of these sequences opened that were created in a span.
    pub fn charges_created(&self, span: Range<Timestamp>, sequences: Range<u64>) -> Result<usize> {
        self.index().charges_created(span, sequences)
    }

    fn index(&self) -> Arc<Index> {
        Arc::clone(&self.index.read())
    }

    /// Folds the Records that became durable, in order. A large block is folded in parts, and
    /// readers get the locks between them; its replies wait until all of it is folded.
    pub fn publish(&self, records: &[(Sequence, Arc<Record>)]) -> Result<()> {
        let mut folding = self.folding.lock();
        for part in records.chunks(RECORDS_AT_ONCE) {
            self.index().count(part, |group| {
                let books = self.books.read();
                let accounts = books.ledgers.get(&LedgerId::Merchant(group));
                let net =
                    |account| accounts.and_then(|accounts| accounts.get(&account)).map_or(0, |balance| balance.net());
                Ok(index::Balances::of(net))
            })?;
            self.fold(&mut folding, part);
        }
        let registry = self.registry.read();
        let is_live = |(_, key): &(ObjectId, ApiKeyRow)| !key.revoked && key.webhook.url.is_some();
        self.outbox.note(records, |group| {
            registry.merchants.glance(group).is_some_and(|merchant| merchant.keys.iter().any(is_live))
        });
        Ok(())
    }

    fn fold(&self, folding: &mut Folding, records: &[(Sequence, Arc<Record>)]) {
        for (_, record) in records {
            folding.changed.extend(PageId::of(record.owner));
            folding.changed.extend(record.entries.iter().filter_map(|entry| PageId::of(entry.ledger())));
            folding.changed.extend(page_id::registered(record));
        }
        {
            let mut books = self.books.write();
            for (sequence, record) in records {
                for entry in record.entries.iter().filter(|entry| folding.is_new(entry.ledger(), *sequence)) {
                    books.post(entry);
                }
            }
            books.through = records.last().map(|(last, _)| *last).or(books.through);
        }
        {
            let mut ordinals = self.ordinals.write();
            let of_others = records.iter().filter(|(_, record)| !matches!(record.owner, LedgerId::Recipient(..)));
            of_others.for_each(|(_, record)| ordinals.set(record.owner, record.ordinal));
        }
        for (sequence, record) in records {
            for event in record.events.iter().filter(|event| concerns_registry(event)) {
                let about = page_id::registered_by(record, event).unwrap_or(record.owner);
                if folding.is_new(about, *sequence) {
                    self.registry.write().count(event, about, record, *sequence);
                }
            }
        }
        {
            let books = self.books.read();
            let owes = |ledger| {
                let debt = books.ledgers.get(&ledger).and_then(|balances| balances.get(&Account::Clawback));
                debt.is_some_and(|debt| debt.net() != 0)
            };
            let mut dues = self.dues.lock();
            for (sequence, record) in records {
                dues.count(*sequence, record, |ledger| folding.is_new(ledger, *sequence), owes);
            }
        }
        {
            let mut daily = self.daily.lock();
            records.iter().for_each(|(_, record)| daily.count(record));
        }
        let latest_ms = records.iter().map(|(_, record)| record.effective_at.0).max();
        self.latest_ms.fetch_max(latest_ms.unwrap_or(i64::MIN), Ordering::AcqRel);
        if let Some((last, _)) = records.last() {
            self.published.store(last.0, Ordering::Release);
        }
    }

    /// Reads the end of the journal: what the pages and the index do not have yet.
    fn catch_up(&self, progress: impl Fn(u64, u64)) -> Result<()> {
        let mut folding = self.folding.lock();
        // Another process may write meanwhile: what is folded counts.
        let mut through = self.store.head()?.next.0 - 1;
        let total = through;
        let index = self.index();
        let indexed = index.indexed_through();
        let from = Sequence(folding.kept_through.min(indexed.0) + 1);
        for block in self.store.blocks(from) {
            let block = block?;
            let records = decoded(&block)?;
            let first_in_memory = records.partition_point(|(sequence, _)| *sequence <= indexed);
            let in_memory = &records[first_in_memory..];
            let before = |group| {
                // The balances in memory may be ahead of this Record: the index has those before
                // it.
                Ok(self.index().balances_before(group, &[in_memory[0].0])?[0])
            };
            self.index().count(in_memory, before)?;
            let first_unkept = records.partition_point(|(sequence, _)| sequence.0 <= folding.kept_through);
            self.fold(&mut folding, &records[first_unkept..]);
            let mut registry = self.registry.write();
            let groups = records[first_unkept..].iter().filter_map(|(_, record)| record.owner.group());
            groups.for_each(|group| registry.merchants.pack(group));
            through = through.max(block.next().0 - 1);
            progress(block.next().0 - 1, total);
        }
        folding.loaded = IdMap::default();
        self.published.store(through, Ordering::Release);
        self.books.write().through = (through > 0).then_some(Sequence(through));
        Ok(())
    }

    /// Waits until the index has written what is full, so that a test finds the same files every
    /// time.
    pub fn settle(&self) {
        self.index().settle();
    }

    /// Sequence of the last published Record.
    pub fn published(&self) -> Sequence {
        Sequence(self.published.load(Ordering::Acquire))
    }

    /// Looks at a merchant.
    pub fn merchant<T>(&self, group: GroupNumber, look: impl FnOnce(&MerchantRow) -> T) -> Option<T> {
        self.registry.read().merchants.get(group).map(look)
    }

    /// Looks at a merchant, which stays packed if it is.
    pub fn glance<T>(&self, group: GroupNumber, look: impl FnOnce(&MerchantRow) -> T) -> Option<T> {
        self.registry.read().merchants.glance(group).map(|row| look(&row))
    }

    /// The groups, in order.
    pub fn groups(&self) -> Vec<GroupNumber> {
        self.registry.read().merchants.groups().collect()
    }

    /// Groups from the newest one on, and how many there are in all.
    pub fn newest_groups(&self, skip: usize, most: usize) -> (usize, Vec<GroupNumber>) {
        let merchants = &self.registry.read().merchants;
        (merchants.count(), merchants.groups().rev().skip(skip).take(most).collect())
    }

    /// Packs some of the merchants that were not asked for since about a minute; to be called every
    /// second.
    pub fn rest(&self) {
        let mut left = self.registry.read().merchants.part();
        while left > 0 {
            let seen = self.registry.write().merchants.rest(left.min(RESTING_AT_ONCE), PACKED_AT_ONCE);
            left = left.saturating_sub(seen.max(1));
        }
    }

    /// An API key by its id.
    pub fn api_key(&self, id: ObjectId) -> Option<ApiKeyRow> {
        let (group, registry) = (self.ids.group(id), self.registry.read());
        // An id that is made up names some group too.
        let found = registry.merchants.glance(group)?.key(id).cloned()?;
        let _stays_unpacked = registry.merchants.get(group);
        Some(found)
    }

    /// The API keys of a group that are not revoked, oldest first.
    pub fn live_keys(&self, group: GroupNumber) -> Vec<(ObjectId, ApiKeyRow)> {
        let registry = self.registry.read();
        let merchant = registry.merchants.glance(group);
        let keys = merchant.iter().flat_map(|merchant| &merchant.keys);
        keys.filter(|(_, row)| !row.revoked).cloned().collect()
    }

    /// Some of the drafts that are to be submitted; they are off the list once they have been.
    pub fn drafts(&self, most: usize) -> Vec<(GroupNumber, ObjectId)> {
        self.registry.read().drafts.iter().take(most).copied().collect()
    }

    /// The first `most` of those things that wait for an operator and are wanted, by rank and then
    /// by age.
    pub fn waiting<R: Ord>(
        &self,
        is_wanted: impl Fn(&WaitingItem) -> bool,
        rank: impl Fn(&WaitingItem) -> R,
        most: usize,
    ) -> WaitingPage {
        self.registry.read().waiting.page(is_wanted, rank, most)
    }

    /// The thing of an id that waits for an operator.
    pub fn waiting_item(&self, id: ObjectId) -> Option<WaitingItem> {
        self.registry.read().waiting.find(id)
    }

    /// How many of the things that wait for an operator are of each kind; none for what does not
    /// count.
    pub fn waiting_by<K: Ord>(&self, kind: impl Fn(&WaitingItem) -> Option<K>) -> BTreeMap<K, usize> {
        let mut counts = BTreeMap::new();
        for kind in self.registry.read().waiting.iter().filter_map(|item| kind(&item)) {
            *counts.entry(kind).or_default() += 1;
        }
        counts
    }

    /// Looks at what the house's Records said.
    pub fn house<T>(&self, look: impl FnOnce(&HouseFacts) -> T) -> T {
        look(&self.registry.read().house)
    }

    /// The month that was closed last.
    pub fn last_closed(&self) -> Option<Month> {
        self.house(|house| house.closed.last().map(|(month, _)| *month))
    }

    /// The ordinal of the house's last Record.
    pub fn system_ordinal(&self) -> u64 {
        self.ordinals.read().of(LedgerId::System)
    }

    /// The balances of a ledger's accounts.
    pub fn balances(&self, ledger: LedgerId) -> Balances {
        self.books.read().ledgers.get(&ledger).cloned().unwrap_or_default()
    }

    /// Debits minus credits of one account, centavos.
    pub fn balance(&self, ledger: LedgerId, account: Account) -> i128 {
        let books = self.books.read();
        books.ledgers.get(&ledger).and_then(|balances| balances.get(&account)).map_or(0, |balance| balance.net())
    }

    /// Every account of every ledger in order, and the sequence through which they are folded: one
    /// consistent cut.
    pub fn trial_balance(&self) -> (Sequence, Vec<(LedgerId, Account, Balance)>) {
        let books = self.books.read();
        let mut rows = Vec::new();
        for (ledger, balances) in &books.ledgers {
            rows.extend(balances.iter().map(|(account, balance)| (*ledger, *account, *balance)));
        }
        let through = books.through.unwrap_or(Sequence(0));
        drop(books);
        rows.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
        (through, rows)
    }

    /// The accounts of all ledgers, group by group: up to `most` of them from the one at place
    /// `skip`, at one cut. The accounts before them are passed over a few ledgers at a time, so
    /// that publishing does not wait for all of them.
    pub fn trial_balance_page(&self, mut skip: u64, most: usize) -> TrialBalancePage {
        let mut place = 0;
        loop {
            let books = self.books.read();
            let places = self.ordinals.read().merchants.len().max(books.recipients.len()) as u32;
            let mut passed = 0;
            while place < places && passed < LEDGERS_AT_ONCE {
                let rows: u64 = ledgers_of(&books, place).map(|(_, balances)| balances.len() as u64).sum();
                if rows > skip {
                    break;
                }
                (place, passed, skip) = (place + 1, passed + 2 + last_recipient(&books, place), skip - rows);
            }
            if place < places && passed >= LEDGERS_AT_ONCE {
                continue;
            }
            let here = (place..places).flat_map(|place| ledgers_of(&books, place));
            let house = books.ledgers.get(&LedgerId::System).map(|balances| (LedgerId::System, balances));
            let rows = here.chain(house).flat_map(|(ledger, balances)| {
                balances.iter().map(move |(account, balance)| (ledger, *account, *balance))
            });
            return TrialBalancePage {
                through: books.through.unwrap_or(Sequence(0)),
                is_balanced: books.unbalanced.is_empty(),
                total: books.rows,
                rows: rows.skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(most).collect(),
            };
        }
    }

    /// The figures of the last [`DAYS_MAX`] days, oldest first; a day without Records is absent.
    pub fn daily_figures(&self) -> Vec<DayFigures> {
        self.daily.lock().days().cloned().collect()
    }

    /// The sums of the accounts of all ledgers by kind, each at the place of its code in the chart.
    pub fn totals(&self) -> (Sequence, bool, Vec<Balance>) {
        let books = self.books.read();
        (books.through.unwrap_or(Sequence(0)), books.unbalanced.is_empty(), books.totals.clone())
    }

    /// The published sums for a checkpoint: through which Record, and the digest of the sums.
    pub fn digest_of_totals(&self) -> (Sequence, [u8; 32]) {
        let books = self.books.read();
        (books.through.unwrap_or(Sequence(0)), checkpoint::digest_of(&books.totals))
    }

    /// The due times of all ledgers.
    pub fn dues(&self) -> &Mutex<Dues> {
        &self.dues
    }

    /// A recipient's name, folded for search.
    pub fn search_key<'a>(&self, recipient: &'a RecipientRow) -> &'a str {
        recipient.search_key(|sealed: &Sealed| {
            let profile: Option<RecipientProfile> = self.keyring.open_value(recipient.sealed_for(), sealed);
            profile.map(|profile| (self.fold_name)(&profile.name)).unwrap_or_default()
        })
    }

    /// The latest time at which a published Record took effect.
    pub fn clock_at(&self) -> Timestamp {
        Timestamp(self.latest_ms.load(Ordering::Acquire).max(0))
    }
}

/// The Records of a block, each with its place.
fn decoded(block: &Block) -> Result<Vec<(Sequence, Arc<Record>)>> {
    let records = (block.first.0..).zip(&block.records).map(|(sequence, bytes)| {
        let record = Record::decode(bytes).map_err(|error| LoadError::Decode { sequence, error })?;
        Ok((Sequence(sequence), Arc::new(record)))
    });
    records.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::{Duration, Instant};

    use ledger::event::Event;
    use ledger::id::Fingerprint;
    use ledger::record::{Decision, Idempotency};

    use super::*;
    use store::testkit::{MemoryStore, conformance};

    fn read_model() -> Arc<ReadModel> {
        let store = MemoryStore::new().part();
        let keyring = Arc::new(Keyring::open([7; 32], Arc::clone(store.store())).unwrap());
        let options = IndexOptions::default();
        let opened =
            ReadModel::unread(store, Arc::default(), keyring, str::to_owned, options, Arc::default()).opened(|_, _| {});
        Arc::new(opened.unwrap())
    }

    #[test]
    fn readers_have_their_turn_within_a_large_block() {
        const BLOCK: u64 = 100 * RECORDS_AT_ONCE as u64;
        let read_model = read_model();
        let is_seen = Arc::new(AtomicBool::new(false));
        let (reader, seen) = (Arc::clone(&read_model), Arc::clone(&is_seen));
        let reading = thread::spawn(move || {
            let begun = Instant::now();
            let mut within = None;
            while within.is_none() && begun.elapsed() < Duration::from_secs(60) {
                let through = reader.trial_balance_page(0, 0).through.0;
                assert_eq!(through % RECORDS_AT_ONCE as u64, 0, "a part is folded whole");
                within = Some(through).filter(|through| through % BLOCK != 0);
            }
            seen.store(true, Ordering::Release);
            within
        });
        let mut last = 0;
        while !is_seen.load(Ordering::Acquire) {
            let block: Vec<_> = (last + 1..=last + BLOCK)
                .map(|sequence| {
                    let decision = Decision::of(Event::ClockMoved { offset_ms: 1 });
                    (Sequence(sequence), Arc::new(decision.into_record(LedgerId::System, sequence, Timestamp(1))))
                })
                .collect();
            read_model.publish(&block).unwrap();
            last += BLOCK;
        }
        assert!(reading.join().unwrap().is_some(), "nothing was read within a block, of those through {last}");
    }

    #[test]
    fn a_key_is_looked_up_while_the_books_are_written() {
        let read_model = read_model();
        let (sender, found) = channel();
        let reader = Arc::clone(&read_model);
        let _writing = read_model.books.write();
        thread::spawn(move || {
            let owner = LedgerId::Merchant(GroupNumber(1));
            sender.send(reader.find_key(owner, Fingerprint([9; 16])).unwrap()).unwrap();
        });
        let found = found.recv_timeout(Duration::from_secs(60)).expect("nobody waits");
        assert_eq!((found.sequence, found.looked_up_through), (None, 0));
    }

    #[test]
    fn a_key_is_found_when_its_record_is_in_all_that_is_read() {
        let read_model = read_model();
        let key = Fingerprint([9; 16]);
        let decision = Decision::of(Event::ClockMoved { offset_ms: 1 });
        let mut record = decision.into_record(LedgerId::System, 1, Timestamp(1));
        record.idempotency = Some(Idempotency { key, body: key });
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        conformance::append(&read_model.store, vec![bytes]);

        let writing = read_model.books.write();
        let publisher = Arc::clone(&read_model);
        let publishing = thread::spawn(move || publisher.publish(&[(Sequence(1), Arc::new(record))]).unwrap());
        while read_model.index().with_key(key, Timestamp(0)).unwrap().is_empty() {
            thread::yield_now();
        }
        let reader = Arc::clone(&read_model);
        let reading = thread::spawn(move || {
            assert_eq!(reader.find_key(LedgerId::System, key).unwrap().sequence, Some(Sequence(1)));
            assert_eq!(reader.published(), Sequence(1), "the key is found, and its effect is not");
        });
        thread::sleep(Duration::from_millis(50));
        drop(writing);
        publishing.join().unwrap();
        reading.join().unwrap();
    }

    #[test]
    fn pages_of_the_trial_balance_are_all_of_it_and_totals_its_sums() {
        let read_model = read_model();
        let groups = [0, 1, 2, 300, 301];
        for (at, group) in groups.into_iter().enumerate() {
            let group = GroupNumber(group);
            let mut ledgers = vec![LedgerId::Merchant(group), LedgerId::Platform(group)];
            ledgers.extend((1..=at as u32).map(|number| LedgerId::Recipient(group, RecipientNumber(number * 2))));
            for ledger in ledgers {
                let amount = i128::from(group.0) + 1;
                let of = |account, debits, credits| (account, Balance { debits, credits });
                let moved = [of(Account::Pending, amount, 0), of(Account::SalesCard, 0, amount)];
                read_model.books.write().add(ledger, moved.into_iter());
            }
        }
        let all = read_model.trial_balance().1;
        for size in [1, 3, 7, 1_000] {
            let (mut pages, mut skip) = (Vec::new(), 0);
            loop {
                let page = read_model.trial_balance_page(skip, size);
                assert!(page.is_balanced && page.rows.len() <= size);
                assert_eq!(page.total, all.len() as u64);
                if page.rows.is_empty() {
                    break;
                }
                skip += page.rows.len() as u64;
                pages.extend(page.rows);
            }
            assert!(pages.is_sorted_by_key(|(ledger, ..)| ledger.group()), "group by group");
            pages.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
            assert_eq!(pages, all, "{size} a page");
        }
        let sum = all.iter().map(|(_, _, balance)| balance.debits).sum::<i128>();
        let (_, is_balanced, totals) = read_model.totals();
        let mut expected = BTreeMap::from([
            (Account::Pending.code().0, Balance { debits: sum, credits: 0 }),
            (Account::SalesCard.code().0, Balance { debits: 0, credits: sum }),
        ]);
        for (code, total) in (0..).zip(totals) {
            assert_eq!(total, expected.remove(&code).unwrap_or_default(), "{code}");
        }
        assert!(is_balanced && expected.is_empty(), "{expected:?}");
        let one = Balance { debits: 1, credits: 0 };
        read_model.books.write().add(LedgerId::Merchant(GroupNumber(2)), [(Account::Pending, one)].into_iter());
        assert!(!read_model.totals().1 && !read_model.trial_balance_page(0, 1).is_balanced);
    }
}
