//! The readers' view of the durable journal: it folds every block before the block's replies leave, so that whoever was answered
//! finds what it was told. It decides nothing, and everything in it can be built again from the journal.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ledger::account::Account;
use ledger::entry::{Balance, Balances};
use ledger::event::Event;
use ledger::fees::{PaymentMethod, Settings};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::RecipientStatus;
use ledger::money::Centavos;
use ledger::operations::{OperationAccount, operations};
use ledger::personal::{RecipientProfile, Sealed};
use ledger::record::{IDEMPOTENCY_KEPT_MS, Record};
use ledger::time::Timestamp;
use parking_lot::{Mutex, RwLock};

use crate::dues::Dues;
use crate::seal::Keyring;
use crate::store::{Sequence, StoreError};

/// A merchant, as published.
#[derive(Clone, Debug)]
pub struct MerchantRow {
    /// Its id.
    pub id: ObjectId,
    /// What the operator configured.
    pub settings: Settings,
    /// Its profile, in every version.
    pub profiles: Versions,
    /// Its recipients; number n stands at n − 1.
    pub recipients: Vec<RecipientRow>,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// Sealed data that changes: each version with the ordinal of the owner's Record that brought it, oldest first. An answer that
/// is given again is written from the version of its time.
#[derive(Clone, Debug, Default)]
pub struct Versions(Vec<(u64, Sealed)>);

impl Versions {
    /// The version in force.
    pub fn current(&self) -> Option<&Sealed> {
        self.0.last().map(|(_, sealed)| sealed)
    }

    /// The version that was in force once the owner's Record of this ordinal had taken effect.
    pub fn at(&self, ordinal: u64) -> Option<&Sealed> {
        let known = self.0.partition_point(|(since, _)| *since <= ordinal);
        self.0[..known].last().map(|(_, sealed)| sealed)
    }

    fn count(&mut self, record: &Record) {
        self.0.extend(record.personal.clone().map(|sealed| (record.ordinal, sealed)));
    }

    fn of(record: &Record) -> Self {
        let mut versions = Self::default();
        versions.count(record);
        versions
    }
}

/// A recipient, as published.
#[derive(Clone, Debug)]
pub struct RecipientRow {
    /// Its id.
    pub id: ObjectId,
    /// Where its registration stands.
    pub status: RecipientStatus,
    /// Its registration, in every version.
    pub profiles: Versions,
    /// Its name, folded for search.
    pub search_key: String,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// An API key, as published.
#[derive(Clone, Debug)]
pub struct ApiKeyRow {
    /// Whose.
    pub group: GroupNumber,
    /// SHA-256 of the key.
    pub digest: [u8; 32],
    /// True once revoked.
    pub revoked: bool,
}

/// One split in a recipient's statement: where the charge's Record is, and which of its splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedSplit {
    /// The Record that made it: the opening of a PIX charge or the capture of a card charge.
    pub sequence: Sequence,
    /// Position in the charge's splits, from 0.
    pub index: u32,
}

/// Where a charge stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeStatus {
    /// No outcome yet.
    Pending,
    /// Paid or captured.
    Paid,
    /// The card was refused.
    Refused,
    /// The PIX code expired or was cancelled.
    Cancelled,
}

/// Which of a merchant's charges are listed: those that meet all that is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeFilter {
    /// Where they stand.
    pub status: Option<ChargeStatus>,
    /// How they are paid.
    pub method: Option<PaymentMethod>,
    /// Created at this time or later; the time of creation is the one in the id.
    pub from: Option<Timestamp>,
    /// Created before this time.
    pub to: Option<Timestamp>,
}

/// One line of a merchant's account statement: where its Record is, and which of the Record's [`operations`] it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedOperation {
    /// The Record.
    pub sequence: Sequence,
    /// Position in the Record's operations, from 0.
    pub index: u32,
    /// What stands on the operation's account after it.
    pub balance_after: Centavos,
}

/// An idempotency key, looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFound {
    /// The newest Record with this key.
    pub sequence: Option<Sequence>,
    /// The merchant's Records through this ordinal were seen.
    pub looked_up_through: u64,
}

/// See the module.
pub struct Projector {
    keyring: Arc<Keyring>,
    fold_name: fn(&str) -> String,
    accounts: RwLock<Accounts>,
    index: RwLock<Index>,
    books: RwLock<Books>,
    dues: Mutex<Dues>,
    published: AtomicU64,
}

#[derive(Default)]
struct Accounts {
    merchants: HashMap<GroupNumber, MerchantRow>,
    keys: HashMap<ObjectId, ApiKeyRow>,
    drafts: BTreeSet<(GroupNumber, ObjectId)>,
    clock_offset_ms: i64,
}

/// Every account of every ledger, at one cut.
#[derive(Default)]
struct Books {
    through: Option<Sequence>,
    ledgers: HashMap<LedgerId, Balances>,
}

#[derive(Default)]
struct Index {
    ordinals: HashMap<LedgerId, u64>,
    by_object: HashMap<ObjectId, Vec<Sequence>>,
    by_key: HashMap<Fingerprint, Sequence>,
    keys_in_order: VecDeque<(Timestamp, Fingerprint, Sequence)>,
    by_ledger: HashMap<LedgerId, Concerning>,
    splits: HashMap<LedgerId, Vec<ListedSplit>>,
    charges: HashMap<GroupNumber, Vec<ListedCharge>>,
    operations: HashMap<LedgerId, AccountStatement>,
}

/// One charge, in the order of the opening Records.
struct ListedCharge {
    sequence: Sequence,
    created_at: Timestamp,
    method: PaymentMethod,
    status: ChargeStatus,
}

/// A merchant's operations, oldest first, and what stands on its accounts after them.
#[derive(Default)]
struct AccountStatement {
    lines: Vec<ListedOperation>,
    balances: HashMap<OperationAccount, Centavos>,
}

/// The Records that concern a ledger, each list in order.
#[derive(Default)]
struct Concerning {
    own: Vec<Sequence>,
    told: Vec<Sequence>,
    with_entries: Vec<Sequence>,
}

impl Projector {
    /// An empty view. `fold_name` prepares names for search.
    pub fn new(keyring: Arc<Keyring>, fold_name: fn(&str) -> String) -> Self {
        Self {
            keyring,
            fold_name,
            accounts: RwLock::default(),
            index: RwLock::default(),
            books: RwLock::default(),
            dues: Mutex::default(),
            published: AtomicU64::new(0),
        }
    }

    /// Folds durable Records, in order.
    pub fn publish(&self, records: &[(Sequence, Arc<Record>)]) {
        {
            let mut index = self.index.write();
            records.iter().for_each(|(sequence, record)| index.count(*sequence, record));
        }
        {
            let mut books = self.books.write();
            for entry in records.iter().flat_map(|(_, record)| &record.entries) {
                let balances = books.ledgers.entry(entry.ledger()).or_default();
                for posting in entry.postings() {
                    balances.entry(posting.account).or_default().post(posting);
                }
            }
            books.through = records.last().map(|(last, _)| *last).or(books.through);
        }
        for (_, record) in records.iter().filter(|(_, record)| record.events.iter().any(is_about_accounts)) {
            self.count_accounts(record);
        }
        {
            let mut dues = self.dues.lock();
            records.iter().for_each(|(sequence, record)| dues.count(*sequence, record));
        }
        if let Some((last, _)) = records.last() {
            self.published.store(last.0, Ordering::Release);
        }
    }

    /// Sequence of the last published Record.
    pub fn published(&self) -> Sequence {
        Sequence(self.published.load(Ordering::Acquire))
    }

    /// Looks at a merchant.
    pub fn merchant<T>(&self, group: GroupNumber, look: impl FnOnce(&MerchantRow) -> T) -> Option<T> {
        self.accounts.read().merchants.get(&group).map(look)
    }

    /// The groups, in no order.
    pub fn groups(&self) -> Vec<GroupNumber> {
        self.accounts.read().merchants.keys().copied().collect()
    }

    /// An API key by its id.
    pub fn api_key(&self, id: ObjectId) -> Option<ApiKeyRow> {
        self.accounts.read().keys.get(&id).cloned()
    }

    /// Some of the drafts that are to be submitted; they are off the list once they have been.
    pub fn drafts(&self, most: usize) -> Vec<(GroupNumber, ObjectId)> {
        self.accounts.read().drafts.iter().take(most).copied().collect()
    }

    /// The sandbox clock's offset.
    pub fn clock_offset_ms(&self) -> i64 {
        self.accounts.read().clock_offset_ms
    }

    /// An idempotency key of a merchant.
    pub fn find_key(&self, merchant: LedgerId, key: Fingerprint) -> Result<KeyFound, StoreError> {
        let index = self.index.read();
        Ok(KeyFound {
            sequence: index.by_key.get(&key).copied(),
            looked_up_through: index.ordinals.get(&merchant).copied().unwrap_or_default(),
        })
    }

    /// The Records about an object, oldest first.
    pub fn about(&self, id: ObjectId) -> Result<Vec<Sequence>, StoreError> {
        Ok(self.index.read().by_object.get(&id).cloned().unwrap_or_default())
    }

    /// The Records that make a ledger's state: its own after `own_after`, those that it was told of after `foreign_after`, in
    /// order, through `through`.
    pub fn concerning(
        &self,
        ledger: LedgerId,
        own_after: Sequence,
        foreign_after: Sequence,
        through: Sequence,
    ) -> Vec<Sequence> {
        let index = self.index.read();
        let Some(lists) = index.by_ledger.get(&ledger) else { return Vec::new() };
        let part = |list: &[Sequence], after: Sequence| {
            let (from, to) = (list.partition_point(|at| *at <= after), list.partition_point(|at| *at <= through));
            list[from.min(to)..to].to_vec()
        };
        let mut sequences = part(&lists.own, own_after);
        sequences.extend(part(&lists.told, foreign_after));
        sequences.sort_unstable();
        sequences
    }

    /// How many Records have an entry of a ledger, and the page of them that begins `skip` from the newest.
    pub fn entries_page(&self, ledger: LedgerId, skip: u64, count: usize) -> Result<(u64, Vec<Sequence>), StoreError> {
        let index = self.index.read();
        let lists = index.by_ledger.get(&ledger);
        Ok(lists.map_or((0, Vec::new()), |lists| newest_page(&lists.with_entries, skip, count)))
    }

    /// How many splits a recipient's statement has, and the page of them that begins `skip` from the newest.
    pub fn splits_page(
        &self,
        recipient: LedgerId,
        skip: u64,
        count: usize,
    ) -> Result<(u64, Vec<ListedSplit>), StoreError> {
        let index = self.index.read();
        let splits = index.splits.get(&recipient);
        Ok(splits.map_or((0, Vec::new()), |splits| newest_page(splits, skip, count)))
    }

    /// How many charges of a merchant meet the filter, and the Records that opened those on the page that begins `skip` from the
    /// newest.
    pub fn charges_page(
        &self,
        group: GroupNumber,
        filter: &ChargeFilter,
        skip: u64,
        count: usize,
    ) -> Result<(u64, Vec<Sequence>), StoreError> {
        let index = self.index.read();
        let (mut total, mut page) = (0, Vec::new());
        for charge in index.charges.get(&group).into_iter().flatten().rev().filter(|charge| filter.admits(charge)) {
            if total >= skip && page.len() < count {
                page.push(charge.sequence);
            }
            total += 1;
        }
        Ok((total, page))
    }

    /// How many lines a merchant's account statement has, and the page of them that begins `skip` from the newest.
    pub fn operations_page(
        &self,
        ledger: LedgerId,
        skip: u64,
        count: usize,
    ) -> Result<(u64, Vec<ListedOperation>), StoreError> {
        let index = self.index.read();
        let statement = index.operations.get(&ledger);
        Ok(statement.map_or((0, Vec::new()), |statement| newest_page(&statement.lines, skip, count)))
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

    /// Every account of every ledger in order, and the sequence through which they are folded: one consistent cut.
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

    /// The list of who needs attention when.
    pub fn dues(&self) -> &Mutex<Dues> {
        &self.dues
    }

    fn count_accounts(&self, record: &Record) {
        let mut accounts = self.accounts.write();
        let accounts = &mut *accounts;
        for event in &record.events {
            if let Event::ClockMoved { offset_ms } = event {
                accounts.clock_offset_ms = *offset_ms;
            }
            let Some(group) = record.owner.group() else { continue };
            match event {
                Event::MerchantOpened { id, settings } => {
                    let row = MerchantRow {
                        id: *id,
                        settings: *settings,
                        profiles: Versions::of(record),
                        recipients: Vec::new(),
                        created_at: record.effective_at,
                    };
                    accounts.merchants.insert(group, row);
                }
                Event::ApiKeyCreated { id, digest, .. } => {
                    accounts.keys.insert(*id, ApiKeyRow { group, digest: *digest, revoked: false });
                }
                Event::ApiKeyRevoked { id } => {
                    if let Some(key) = accounts.keys.get_mut(id) {
                        key.revoked = true;
                    }
                }
                event => {
                    let Some(merchant) = accounts.merchants.get_mut(&group) else { continue };
                    let Some(recipient) = self.count_merchant(merchant, event, record) else { continue };
                    if recipient.status == RecipientStatus::Draft {
                        accounts.drafts.insert((group, recipient.id));
                    } else {
                        accounts.drafts.remove(&(group, recipient.id));
                    }
                }
            }
        }
    }

    /// Counts an event about a merchant that is open; gives the recipient that it is about.
    fn count_merchant<'a>(
        &self,
        merchant: &'a mut MerchantRow,
        event: &Event,
        record: &Record,
    ) -> Option<&'a RecipientRow> {
        let (number, status) = match event {
            Event::MerchantChanged { settings } => {
                merchant.settings = *settings;
                merchant.profiles.count(record);
                return None;
            }
            Event::RecipientRegistered { id, .. } => {
                let (search_key, profiles) = (self.search_key(record), Versions::of(record));
                let (status, created_at) = (RecipientStatus::Draft, record.effective_at);
                merchant.recipients.push(RecipientRow { id: *id, status, profiles, search_key, created_at });
                return merchant.recipients.last();
            }
            Event::RecipientRegisteredAgain { number } => {
                let recipient = recipient_row(merchant, *number)?;
                recipient.profiles.count(record);
                recipient.search_key = self.search_key(record);
                (number, RecipientStatus::Draft)
            }
            Event::RecipientSubmitted { number } => (number, RecipientStatus::Pending),
            Event::RecipientApproved { number } => (number, RecipientStatus::Active),
            Event::RecipientRejected { number, .. } => (number, RecipientStatus::Rejected),
            _ => return None,
        };
        let recipient = recipient_row(merchant, *number)?;
        recipient.status = status;
        Some(recipient)
    }

    fn search_key(&self, registration: &Record) -> String {
        let profile: Option<RecipientProfile> =
            registration.personal.as_ref().and_then(|sealed| self.keyring.open_value(sealed));
        profile.map(|profile| (self.fold_name)(&profile.name)).unwrap_or_default()
    }
}

impl Index {
    fn count(&mut self, sequence: Sequence, record: &Record) {
        self.ordinals.insert(record.owner, record.ordinal);
        if let Some(idempotency) = record.idempotency {
            self.by_key.insert(idempotency.key, sequence);
            self.keys_in_order.push_back((record.effective_at, idempotency.key, sequence));
            self.forget_keys(record.effective_at);
        }
        self.by_ledger.entry(record.owner).or_default().own.push(sequence);
        let mut with_entries: Vec<LedgerId> = record.entries.iter().map(|entry| entry.ledger()).collect();
        with_entries.sort_unstable();
        with_entries.dedup();
        for ledger in with_entries {
            self.by_ledger.entry(ledger).or_default().with_entries.push(sequence);
        }
        let Some(group) = record.owner.group() else { return };
        for number in record.recipients_told() {
            self.by_ledger.entry(LedgerId::Recipient(group, number)).or_default().told.push(sequence);
        }
        for event in &record.events {
            self.count_charge(sequence, group, event);
        }
        self.count_operations(sequence, LedgerId::Merchant(group), record);
    }

    fn count_operations(&mut self, sequence: Sequence, merchant: LedgerId, record: &Record) {
        let statement = self.operations.entry(merchant).or_default();
        for (index, operation) in (0..).zip(operations(record)) {
            let balance = statement.balances.entry(operation.account).or_default();
            *balance += operation.amount;
            statement.lines.push(ListedOperation { sequence, index, balance_after: *balance });
        }
    }

    /// Forgets the keys that have had their time.
    fn forget_keys(&mut self, now: Timestamp) {
        while let Some((at, key, sequence)) = self.keys_in_order.front().copied() {
            if at.plus_ms(IDEMPOTENCY_KEPT_MS) > now {
                return;
            }
            self.keys_in_order.pop_front();
            if self.by_key.get(&key) == Some(&sequence) {
                self.by_key.remove(&key);
            }
        }
    }

    fn count_charge(&mut self, sequence: Sequence, group: GroupNumber, event: &Event) {
        let charge = match event {
            Event::ChargeOpened { charge, terms, expires_at, .. } => {
                self.charges.entry(group).or_default().push(ListedCharge {
                    sequence,
                    created_at: charge.created_at(),
                    method: terms.method,
                    status: ChargeStatus::Pending,
                });
                if expires_at.is_some() {
                    self.list_splits(sequence, group, terms.splits.iter().map(|split| split.recipient));
                }
                charge
            }
            Event::CardCaptured { charge, terms, .. } => {
                self.list_splits(sequence, group, terms.splits.iter().map(|split| split.recipient));
                self.set_status(group, *charge, ChargeStatus::Paid);
                charge
            }
            Event::PixCancelled { charge, recipients, .. } => {
                self.set_status(group, *charge, ChargeStatus::Cancelled);
                let opened = self.by_object.get(charge).and_then(|about| about.first()).copied();
                for number in recipients {
                    if let (Some(opened), Some(splits)) =
                        (opened, self.splits.get_mut(&LedgerId::Recipient(group, *number)))
                    {
                        let from = splits.partition_point(|split| split.sequence < opened);
                        let to = splits.partition_point(|split| split.sequence <= opened);
                        splits.drain(from..to);
                    }
                }
                charge
            }
            Event::CardRefused { charge, .. } => {
                self.set_status(group, *charge, ChargeStatus::Refused);
                charge
            }
            Event::PixPaid { charge, .. } => {
                self.set_status(group, *charge, ChargeStatus::Paid);
                charge
            }
            Event::CardUnanswered { charge } => charge,
            _ => return,
        };
        self.by_object.entry(*charge).or_default().push(sequence);
    }

    fn set_status(&mut self, group: GroupNumber, charge: ObjectId, status: ChargeStatus) {
        let opened = self.by_object.get(&charge).and_then(|about| about.first());
        let (Some(opened), Some(charges)) = (opened, self.charges.get_mut(&group)) else { return };
        if let Ok(place) = charges.binary_search_by_key(opened, |charge| charge.sequence) {
            charges[place].status = status;
        }
    }

    fn list_splits(
        &mut self,
        sequence: Sequence,
        group: GroupNumber,
        recipients: impl Iterator<Item = RecipientNumber>,
    ) {
        for (index, number) in (0..).zip(recipients) {
            self.splits.entry(LedgerId::Recipient(group, number)).or_default().push(ListedSplit { sequence, index });
        }
    }
}

impl ChargeFilter {
    fn admits(&self, charge: &ListedCharge) -> bool {
        self.status.is_none_or(|status| status == charge.status)
            && self.method.is_none_or(|method| method == charge.method)
            && self.from.is_none_or(|from| from <= charge.created_at)
            && self.to.is_none_or(|to| charge.created_at < to)
    }
}

fn recipient_row(merchant: &mut MerchantRow, number: RecipientNumber) -> Option<&mut RecipientRow> {
    merchant.recipients.get_mut((number.0 as usize).checked_sub(1)?)
}

fn is_about_accounts(event: &Event) -> bool {
    matches!(
        event,
        Event::MerchantOpened { .. }
            | Event::MerchantChanged { .. }
            | Event::ApiKeyCreated { .. }
            | Event::ApiKeyRevoked { .. }
            | Event::RecipientRegistered { .. }
            | Event::RecipientRegisteredAgain { .. }
            | Event::RecipientSubmitted { .. }
            | Event::RecipientApproved { .. }
            | Event::RecipientRejected { .. }
            | Event::ClockMoved { .. }
    )
}

/// The whole length of a list that is oldest first, and a page of it, newest first.
fn newest_page<T: Copy>(oldest_first: &[T], skip: u64, count: usize) -> (u64, Vec<T>) {
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    (oldest_first.len() as u64, oldest_first.iter().rev().skip(skip).take(count).copied().collect())
}
