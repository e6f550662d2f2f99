//! Keys of the index, and the numbers that one Record adds to their lists.

use ledger::fees::SPLIT_SETTLEMENT_DAYS;
use ledger::object;
use ledger::statement::each_statement_line;
use ledger::webhook_events::each_webhook_event;
use ledger::{
    Account, Centavos, Credit, Entry, Event, Fingerprint, GroupNumber, LedgerId, Minute, ObjectId, PaymentMethod,
    RecipientNumber, Record, Side,
};

/// A list of numbers: a kind and whose it is. The order of keys is their order in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey {
    pub(super) kind: u8,
    pub(super) whose: u64,
}

/// Lists of a merchant's charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeList {
    /// All that were opened.
    Opened,
    /// Paid or captured charges.
    Paid,
    /// Charges that the acquirer refused.
    Refused,
    /// PIX charges that expired or were cancelled.
    Cancelled,
}

/// Lists of what operators see of all merchants, or of one: by the Records that made the things.
/// Their numbers are part of the runs' format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectList {
    /// Merchants of the platform.
    Merchants = 1,
    /// Recipients of splits.
    Recipients,
    /// Refunds of charges.
    Refunds,
    /// Disputes of charges.
    Disputes,
    /// Withdrawals of recipients.
    Withdrawals,
    /// Cashouts of merchants.
    Cashouts,
    /// Subscriptions to plans.
    Subscriptions,
    /// Stored cards.
    Cards,
    /// Anticipations of recipients.
    Anticipations,
}

impl ObjectList {
    /// The list and the thing that an event adds to it; `None` if it makes no such thing.
    pub fn made_by(event: &Event) -> Option<(Self, ObjectId)> {
        Some(match event {
            Event::MerchantOpened { id, .. } => (Self::Merchants, *id),
            Event::RecipientRegistered { id, .. } => (Self::Recipients, *id),
            Event::RefundRequested { id, .. } => (Self::Refunds, *id),
            Event::DisputeOpened { id, .. } => (Self::Disputes, *id),
            Event::WithdrawalRequested { id, .. } => (Self::Withdrawals, *id),
            Event::CashoutCreated { id, .. } => (Self::Cashouts, *id),
            Event::SubscriptionCreated { id, .. } => (Self::Subscriptions, *id),
            Event::CardStored { id, .. } => (Self::Cards, *id),
            Event::SplitsAnticipated { id, .. } => (Self::Anticipations, *id),
            _ => return None,
        })
    }
}

/// Lists of one ledger. The numbers are kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LedgerList {
    /// Sequences of the Records that its owner decided; the n-th is its Record of ordinal n.
    Own = 0,
    /// Ordinals of the merchant's Records that put splits on a recipient's statement, once for each
    /// split.
    SplitsListed = 5,
    /// The same for splits that were taken off the statement again.
    SplitsRemoved = 6,
    /// Sequences of the Records with lines of a merchant's statement, once for each line.
    StatementLines = 7,
    /// Sequences of the Records that created a merchant's cashouts.
    Cashouts = 10,
    /// Sequences of the Records that asked for a merchant's refunds.
    Refunds = 11,
    /// Sequences of the Records that opened disputes on a merchant's charges.
    Disputes = 12,
    /// Sequences of the Records that asked for a recipient's withdrawals.
    Withdrawals = 13,
    /// Sequences of the Records that began a merchant's subscriptions.
    Subscriptions = 16,
    /// Sequences of the Records of others that change the ledger's state. One that only credits the
    /// ledger comes with the [`Credit`].
    Changed = 18,
    /// Sequences of the Records about a recipient's registration and bank account.
    Registration = 31,
}

/// The kinds are part of the runs' format: a number is never given to another kind.
const ENTRIES: u8 = 2;
const OBJECT: u8 = 3;
const KEY: u8 = 4;
const BALANCES: u8 = 8;
const AUDIT: u8 = 9;
const CHARGES: u8 = 32;
const WEBHOOK_EVENTS: u8 = 14;
const BATCHES: u8 = 15;
const SUBSCRIPTION_CHARGES: u8 = 17;
const CHANGED: u8 = LedgerList::Changed as u8;
const LATE_SPLITS: u8 = 19;
/// Values to search by: see [`super::search_key`].
pub(super) const SEALED: u8 = 20;
pub(super) const VALUES: u8 = 21;
pub(super) const TXIDS: u8 = 22;
const OBJECTS: u8 = 23;
const REGISTRATION: u8 = LedgerList::Registration as u8;

impl IndexKey {
    /// A list of a ledger.
    pub fn of(list: LedgerList, ledger: LedgerId) -> Self {
        Self::of_ledger(list as u8, ledger)
    }

    /// Sequences of the Records with an entry of a ledger. A merchant's come with its balances
    /// after each (see [`Balances`]).
    pub fn entries(ledger: LedgerId) -> Self {
        match ledger {
            LedgerId::Merchant(_) => Self::of_ledger(BALANCES, ledger),
            _ => Self::of_ledger(ENTRIES, ledger),
        }
    }

    /// Sequences of the Records about an object. Records of another object may be among them, by
    /// chance or because somebody chose an id on purpose: the Record itself names its object.
    pub fn object(id: ObjectId) -> Self {
        Self { kind: OBJECT, whose: scattered(id) }
    }

    /// Sequences of the Records with a key (see [`Record::keys`]). Very rarely a Record of another
    /// key is among them.
    pub fn key(key: Fingerprint) -> Self {
        let (first, _) = key.0.split_first_chunk().expect("a fingerprint has 16 bytes");
        Self { kind: KEY, whose: u64::from_be_bytes(*first) }
    }

    /// Sequences of the Records that end the acquirer's batches.
    pub fn batches() -> Self {
        Self::of_ledger(BATCHES, LedgerId::System)
    }

    /// Sequences of the audited Records (see [`Record::is_audited`]): of all groups, or of one.
    pub fn audit(group: Option<GroupNumber>) -> Self {
        Self { kind: AUDIT, whose: group.map_or(0, |group| u64::from(group.0) + 1) }
    }

    /// Sequences of the Records that booked captures in a later minute than they happened, by the
    /// minute in which a recipient's splits of them fall due. Very rarely a Record of another
    /// recipient or minute is among them.
    pub fn late_splits(recipient: LedgerId, due: Minute) -> Self {
        let Self { whose, .. } = Self::of_ledger(LATE_SPLITS, recipient);
        Self { kind: LATE_SPLITS, whose: mix(whose ^ mix(due.0.into())) }
    }

    /// Sequences of the Records that opened a subscription's charges. The id must be known to be a
    /// subscription's, as for an object.
    pub fn subscription_charges(id: ObjectId) -> Self {
        Self { kind: SUBSCRIPTION_CHARGES, whose: scattered(id) }
    }

    /// Sequences of the Records that made the things of a list: those of one group, or of all.
    pub fn objects(list: ObjectList, group: Option<GroupNumber>) -> Self {
        Self { kind: OBJECTS, whose: (group.map_or(0, |group| u64::from(group.0) + 1) << 8) | list as u64 }
    }

    /// Sequences of a group's Records with webhook events, once for each event: the n-th is event
    /// number n.
    pub fn webhook_events(group: GroupNumber) -> Self {
        Self::of_ledger(WEBHOOK_EVENTS, LedgerId::Merchant(group))
    }

    /// Ordinals of the merchant's Records that opened its charges.
    pub fn charges(group: GroupNumber, method: PaymentMethod, list: ChargeList) -> Self {
        let method = match method {
            PaymentMethod::Pix => 0,
            PaymentMethod::CreditCard => 1,
            PaymentMethod::DebitCard => 2,
        };
        let list = match list {
            ChargeList::Opened => 0,
            ChargeList::Paid => 1,
            ChargeList::Refused => 2,
            ChargeList::Cancelled => 3,
        };
        Self { kind: CHARGES + method * 4 + list, whose: u64::from(group.0) }
    }

    /// The first key in the order of keys.
    pub(super) fn least() -> Self {
        Self { kind: 0, whose: 0 }
    }

    /// Numbers of one occurrence: the number that it is ordered by, and what comes with it.
    pub(super) fn width(self) -> usize {
        match self.kind {
            BALANCES => 4,
            CHANGED => 3,
            _ if self.is_value() => 2,
            _ => 1,
        }
    }

    /// True for keys that few Records have, which are looked up in every run and stand in the Bloom
    /// filters.
    pub(super) fn is_rare(self) -> bool {
        matches!(self.kind, OBJECT | KEY | SUBSCRIPTION_CHARGES | LATE_SPLITS | REGISTRATION)
    }

    /// True for values to search by.
    pub(super) fn is_value(self) -> bool {
        matches!(self.kind, SEALED | VALUES | TXIDS)
    }

    /// True for values that were sealed, which do not follow from the Records alone.
    pub(super) fn is_sealed(self) -> bool {
        self.kind == SEALED
    }

    /// True for keys of Records ([`Record::keys`]).
    pub(super) fn is_of_record(self) -> bool {
        self.kind == KEY
    }

    fn of_ledger(kind: u8, ledger: LedgerId) -> Self {
        let (group, owner) = match ledger {
            LedgerId::Merchant(group) => (group.0, 0),
            LedgerId::Platform(group) => (group.0, 1),
            LedgerId::Recipient(group, number) => (group.0, number.0 + 1),
            LedgerId::System => (u32::MAX, u32::MAX),
        };
        Self { kind, whose: (u64::from(group) << 32) | u64::from(owner) }
    }
}

/// A merchant's money after a Record, centavos: pending, available, reserved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balances(pub [i64; 3]);

impl Balances {
    /// The place in [`Balances`] that an account counts into.
    fn place(account: Account) -> Option<usize> {
        match account {
            Account::Pending => Some(0),
            Account::Available => Some(1),
            Account::ReservedCashout | Account::ReservedDispute => Some(2),
            _ => None,
        }
    }

    /// The balances from the net amounts of a merchant's accounts.
    pub fn of(net: impl Fn(Account) -> i128) -> Self {
        let net = |account| i64::try_from(net(account)).unwrap_or(i64::MAX);
        let reserved = net(Account::ReservedCashout) + net(Account::ReservedDispute);
        Self([net(Account::Pending), net(Account::Available), reserved])
    }

    pub(super) fn post(&mut self, entry: &Entry) {
        for occurrence in entry.postings() {
            if let Some(place) = Self::place(occurrence.account) {
                self.0[place] += match occurrence.side {
                    Side::Debit => occurrence.amount.0,
                    Side::Credit => -occurrence.amount.0,
                };
            }
        }
    }
}

/// The two words that come with a Record in [`LedgerList::Changed`]: the minute at which its credit
/// falls due + 1, or 0 when at once; and the centavos, or 0 for a Record that is more than a credit
/// and must be read.
pub(super) fn words_of(credit: Option<Credit>) -> [u64; 2] {
    let amount = credit.and_then(|credit| u64::try_from(credit.amount.0).ok()).unwrap_or_default();
    let due = credit.filter(|_| amount > 0).and_then(|credit| credit.due);
    [due.map_or(0, |minute| u64::from(minute.0) + 1), amount]
}

/// The opposite of [`words_of`].
pub(super) fn credit_of(words: [u64; 2]) -> Option<Credit> {
    let [due, amount] = words;
    let due = due.checked_sub(1).map(|minute| Minute(u32::try_from(minute).unwrap_or(u32::MAX)));
    let amount = i64::try_from(amount).ok().filter(|amount| *amount > 0)?;
    Some(Credit { due, amount: Centavos(amount) })
}

/// Calls `post` for every list that a Record is added to, with the number to add. Lists whose
/// numbers come with more words are not among them.
pub(super) fn occurrences(sequence: u64, record: &Record, mut post: impl FnMut(IndexKey, u64)) {
    post(IndexKey::of(LedgerList::Own, record.owner), sequence);
    record.keys().for_each(|key| post(IndexKey::key(key), sequence));
    if record.is_audited() {
        post(IndexKey::audit(None), sequence);
        record.owner.group().into_iter().for_each(|group| post(IndexKey::audit(Some(group)), sequence));
    }
    let Some(group) = record.owner.group() else { return occurrences_of_house(sequence, record, post) };
    let mut with_entries: Vec<LedgerId> = record.entries.iter().map(|entry| entry.ledger()).collect();
    with_entries.sort_unstable();
    with_entries.dedup();
    with_entries.retain(|ledger| !matches!(ledger, LedgerId::Merchant(_)));
    with_entries.into_iter().for_each(|ledger| post(IndexKey::entries(ledger), sequence));
    each_statement_line(record, |_| {
        post(IndexKey::of(LedgerList::StatementLines, LedgerId::Merchant(group)), sequence)
    });
    each_webhook_event(record, |_| post(IndexKey::webhook_events(group), sequence));
    for event in &record.events {
        object::each_in(event, |id| post(IndexKey::object(id), sequence));
        if let Some((list, _)) = ObjectList::made_by(event) {
            [None, Some(group)].into_iter().for_each(|group| post(IndexKey::objects(list, group), sequence));
        }
        match event {
            Event::CashoutCreated { .. } => post(IndexKey::of(LedgerList::Cashouts, record.owner), sequence),
            Event::RefundRequested { .. } => post(IndexKey::of(LedgerList::Refunds, record.owner), sequence),
            Event::DisputeOpened { .. } => post(IndexKey::of(LedgerList::Disputes, record.owner), sequence),
            Event::WithdrawalRequested { .. } => post(IndexKey::of(LedgerList::Withdrawals, record.owner), sequence),
            Event::SubscriptionCreated { .. } => post(IndexKey::of(LedgerList::Subscriptions, record.owner), sequence),
            Event::SubscriptionBilled { id, .. } => post(IndexKey::subscription_charges(*id), sequence),
            _ => {}
        }
        if let Some(number) = registered(event) {
            post(IndexKey::of(LedgerList::Registration, LedgerId::Recipient(group, number)), sequence);
        }
        let (list, ordinal, method) = match event {
            Event::ChargeOpened { terms, .. } => (ChargeList::Opened, record.ordinal, terms.method),
            Event::CardCaptured { terms, opened, .. } | Event::PixPaid { terms, opened, .. } => {
                (ChargeList::Paid, *opened, terms.method)
            }
            Event::CardRefused { opened, method, .. } => (ChargeList::Refused, *opened, *method),
            Event::PixCancelled { opened, .. } => (ChargeList::Cancelled, *opened, PaymentMethod::Pix),
            _ => continue,
        };
        post(IndexKey::charges(group, method, list), ordinal);
        let recipient = |number| LedgerId::Recipient(group, number);
        match event {
            Event::ChargeOpened { terms, expires_at: Some(_), .. } | Event::CardCaptured { terms, .. } => {
                for split in &terms.splits {
                    post(IndexKey::of(LedgerList::SplitsListed, recipient(split.recipient)), record.ordinal);
                }
                late_splits(record, event, |number, due| {
                    post(IndexKey::late_splits(recipient(number), due), sequence);
                });
            }
            Event::PixCancelled { recipients, .. } => {
                recipients
                    .iter()
                    .for_each(|number| post(IndexKey::of(LedgerList::SplitsRemoved, recipient(*number)), ordinal));
            }
            _ => {}
        }
    }
}

/// [`occurrences`] of a Record of the house alone.
fn occurrences_of_house(sequence: u64, record: &Record, mut post: impl FnMut(IndexKey, u64)) {
    if !record.entries.is_empty() {
        post(IndexKey::entries(LedgerId::System), sequence);
    }
    for event in &record.events {
        object::each_in(event, |id| post(IndexKey::object(id), sequence));
        if let Event::AcquirerBatchBooked { .. } = event {
            post(IndexKey::batches(), sequence);
        }
    }
}

/// The recipient whose registration or bank account an event is about.
pub(crate) fn registered(event: &Event) -> Option<RecipientNumber> {
    match event {
        Event::RecipientRegistered { number, .. }
        | Event::RecipientRegisteredAgain { number, .. }
        | Event::RecipientChanged { number, .. }
        | Event::RecipientSubmitted { number }
        | Event::RecipientApproved { number }
        | Event::RecipientRejected { number, .. }
        | Event::BankAccountChanged { number, .. }
        | Event::BankAccountApproved { number }
        | Event::BankAccountRejected { number, .. }
        | Event::RecipientFrozen { number, .. }
        | Event::RecipientUnfrozen { number, .. } => Some(*number),
        _ => None,
    }
}

/// Calls `post` once for each recipient of a capture whose splits fall due in another minute than
/// the time of its booking says.
fn late_splits(record: &Record, event: &Event, mut post: impl FnMut(RecipientNumber, Minute)) {
    let Event::CardCaptured { terms, splits_due, .. } = event else { return };
    if *splits_due == record.effective_at.plus_days(SPLIT_SETTLEMENT_DAYS).minute() {
        return;
    }
    let mut numbers: Vec<_> = terms.splits.iter().map(|split| split.recipient).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into_iter().for_each(|number| post(number, *splits_due));
}

/// An id as one word.
fn scattered(id: ObjectId) -> u64 {
    mix((id.0 >> 64) as u64 ^ mix(id.0 as u64))
}

/// Scatters a word (the finalizer of SplitMix64).
pub(super) fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
