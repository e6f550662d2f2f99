//! Rows of a balance file: what a row is about, and how a Record changes them.
//!
//! Beside the accounts a file carries what a report or an export that begins after it cannot read
//! from later Records: ids of ledgers, pending charges, settings of merchants, discounts of
//! anticipations that are not over, and closed months.

use std::collections::BTreeMap;

use ledger::{
    Account, Balance, CardBrand, Event, GroupNumber, LedgerId, Month, ObjectId, RecipientNumber, Record, Settings,
    Timestamp,
};
use strum::VariantArray;

use crate::names::Names;
use store::Sequence;

/// Bytes that each row begins with, by which the rows are sorted.
pub(super) const KEY_BYTES: usize = 16;

const HOUSE: u8 = 1;
const PENDING: u8 = 2;
const SETTINGS: u8 = 3;
const ANTICIPATED: u8 = 4;
const CLOSED: u8 = 5;

/// Place of a row in a file: the ledgers, group by group, each with its merchant, the platform's
/// shard and its recipients, and the house last; then the other rows, kind by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowKey(pub(super) [u8; KEY_BYTES]);

impl RowKey {
    /// The place before all rows.
    pub(super) const FIRST: Self = Self([0; KEY_BYTES]);

    /// The place of an account.
    pub(super) fn of(ledger: LedgerId, account: Account) -> Self {
        let mut key = Self::first_of(ledger);
        let (code, recipient) = account.code();
        key.0[10..12].copy_from_slice(&code.to_be_bytes());
        key.0[12..].copy_from_slice(&recipient.map_or(0, |number| number.0).to_be_bytes());
        key
    }

    /// The place of a ledger's id, before all its accounts.
    pub(super) fn first_of(ledger: LedgerId) -> Self {
        let (house, kind, number) = match ledger {
            LedgerId::Merchant(_) => (0, 0, 0),
            LedgerId::Platform(_) => (0, 1, 0),
            LedgerId::Recipient(_, number) => (0, 2, number.0),
            LedgerId::System => (HOUSE, 0, 0),
        };
        let mut key = [0; KEY_BYTES];
        key[0] = house;
        key[1..5].copy_from_slice(&ledger.group().unwrap_or_default().0.to_be_bytes());
        key[5] = kind;
        key[6..10].copy_from_slice(&number.to_be_bytes());
        Self(key)
    }

    /// The places of one kind of row, or of the rows of one group of that kind.
    pub(super) fn all_of(kind: Kind, group: Option<GroupNumber>) -> (Self, Self) {
        let (first, last) = match (kind, group) {
            (Kind::Ledgers, Some(_)) => (0, 0),
            (Kind::Ledgers, None) => (0, HOUSE),
            (Kind::Pending, _) => (PENDING, PENDING),
            (Kind::Settings, _) => (SETTINGS, SETTINGS),
            (Kind::Anticipated, _) => (ANTICIPATED, ANTICIPATED),
            (Kind::Closed, _) => (CLOSED, CLOSED),
        };
        let (mut begin, mut end) = ([0; KEY_BYTES], [0xFF; KEY_BYTES]);
        (begin[0], end[0]) = (first, last);
        if let Some(group) = group {
            begin[1..5].copy_from_slice(&group.0.to_be_bytes());
            end[1..5].copy_from_slice(&group.0.to_be_bytes());
        }
        (Self(begin), Self(end))
    }

    /// Whether it is that of an account.
    pub(super) fn is_account(self) -> bool {
        self.0[0] <= HOUSE && self.word16(10) != 0
    }

    /// Whether it is that of an anticipation that was due before a day.
    pub(super) fn is_over(self, day: u32) -> bool {
        self.0[0] == ANTICIPATED && self.word(1) < day
    }

    /// Fact in the row with this key; `None` if this release does not know its kind.
    pub(super) fn fact(self, Balance { debits, credits }: Balance) -> Option<CarriedFact> {
        let group = GroupNumber(self.word(1));
        Some(match self.0[0] {
            0 | HOUSE if self.word16(10) == 0 => {
                CarriedFact::Ledger(self.ledger()?, ObjectId((debits as u128) << 64 | credits as u128))
            }
            0 | HOUSE => {
                let number = Some(RecipientNumber(self.word(12))).filter(|number| number.0 != 0);
                let account = Account::from_code(self.word16(10), number)?;
                CarriedFact::Account(self.ledger()?, account, Balance { debits, credits })
            }
            PENDING => {
                let brand = credits.checked_sub(1).and_then(|code| u32::try_from(code).ok());
                let brand = brand.and_then(brand_of);
                CarriedFact::Pending { group, ordinal: self.word64(5), opened: sequence(debits), brand }
            }
            SETTINGS => {
                let mut bytes = [0; SETTINGS_PART];
                for (half, number) in bytes.chunks_exact_mut(SETTINGS_PART / 2).zip([debits, credits]) {
                    half.copy_from_slice(&number.to_be_bytes()[1..]);
                }
                CarriedFact::Settings(group, Sequence(self.word64(5)), SettingsPart { place: self.0[13], bytes })
            }
            ANTICIPATED => {
                let (on, group) = (self.word(5), GroupNumber(self.word(9)));
                let of = AnticipatedOn { due: self.word(1), on, group };
                match self.0[13] {
                    0 => CarriedFact::Anticipated(of, AnticipatedSums { amount: debits, discount: credits, count: 0 }),
                    _ => CarriedFact::Anticipated(of, AnticipatedSums { amount: 0, discount: 0, count: debits as u64 }),
                }
            }
            CLOSED => CarriedFact::Closed(Month(self.word(1)), sequence(debits)),
            _ => return None,
        })
    }

    fn ledger(self) -> Option<LedgerId> {
        let group = GroupNumber(self.word(1));
        Some(match (self.0[0], self.0[5]) {
            (HOUSE, 0) => LedgerId::System,
            (0, 0) => LedgerId::Merchant(group),
            (0, 1) => LedgerId::Platform(group),
            (0, 2) => LedgerId::Recipient(group, RecipientNumber(self.word(6))),
            _ => return None,
        })
    }

    fn numbered(kind: u8, group: GroupNumber, number: u64) -> Self {
        let mut key = [0; KEY_BYTES];
        key[0] = kind;
        key[1..5].copy_from_slice(&group.0.to_be_bytes());
        key[5..13].copy_from_slice(&number.to_be_bytes());
        Self(key)
    }

    /// The place of a pending charge, by the ordinal of the Record that opened it.
    pub(super) fn pending(group: GroupNumber, ordinal: u64) -> Self {
        Self::numbered(PENDING, group, ordinal)
    }

    /// The place of a part of the settings that a Record set.
    pub(super) fn settings(group: GroupNumber, by: Sequence, part: u8) -> Self {
        let mut key = Self::numbered(SETTINGS, group, by.0);
        key.0[13] = part;
        key
    }

    fn anticipated(AnticipatedOn { due, on, group }: AnticipatedOn, part: u8) -> Self {
        let mut key = [0; KEY_BYTES];
        key[0] = ANTICIPATED;
        key[1..5].copy_from_slice(&due.to_be_bytes());
        key[5..9].copy_from_slice(&on.to_be_bytes());
        key[9..13].copy_from_slice(&group.0.to_be_bytes());
        key[13] = part;
        Self(key)
    }

    fn closed(month: Month) -> Self {
        let mut key = [0; KEY_BYTES];
        key[0] = CLOSED;
        key[1..5].copy_from_slice(&month.0.to_be_bytes());
        Self(key)
    }

    fn word(self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    fn word16(self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    fn word64(self, at: usize) -> u64 {
        u64::from(self.word(at)) << 32 | u64::from(self.word(at + 4))
    }
}

/// Kinds of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Ledgers,
    Pending,
    Settings,
    Anticipated,
    Closed,
}

/// Fact in one row of a balance file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedFact {
    /// The id of a merchant or a recipient.
    Ledger(LedgerId, ObjectId),
    /// The sums of an account.
    Account(LedgerId, Account, Balance),
    /// A charge that was opened and is not paid, refused or cancelled.
    Pending {
        /// Its group.
        group: GroupNumber,
        /// The ordinal of the merchant's Record that opened it.
        ordinal: u64,
        /// That Record.
        opened: Sequence,
        /// Brand of its card; none for PIX.
        brand: Option<CardBrand>,
    },
    /// A part of the settings of a merchant, and the Record that set them.
    Settings(GroupNumber, Sequence, SettingsPart),
    /// A part of the sums of splits that were anticipated: the amounts, or their number.
    Anticipated(AnticipatedOn, AnticipatedSums),
    /// A month that was closed, and the Record that closed it.
    Closed(Month, Sequence),
}

/// Bytes of settings in one row.
const SETTINGS_PART: usize = 30;

/// A part of a merchant's settings: what a row has of their length (two bytes) and encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingsPart {
    place: u8,
    bytes: [u8; SETTINGS_PART],
}

impl SettingsPart {
    /// The rows of settings, each by its two numbers.
    fn rows(settings: &Settings) -> Vec<(i128, i128)> {
        let encoded = minicbor::to_vec(settings).expect("writing into memory cannot fail");
        let mut bytes = (encoded.len() as u16).to_be_bytes().to_vec();
        bytes.extend(encoded);
        bytes.resize(bytes.len().next_multiple_of(SETTINGS_PART), 0);
        let number = |half: &[u8]| half.iter().fold(0, |number, byte| number << 8 | i128::from(*byte));
        let halves = bytes.chunks_exact(SETTINGS_PART).map(|part| part.split_at(SETTINGS_PART / 2));
        halves.map(|(one, other)| (number(one), number(other))).collect()
    }

    /// Adds its bytes to those of the parts before it, which are none for the first one.
    pub(super) fn add_to(&self, bytes: &mut Vec<u8>) {
        if self.place == 0 {
            bytes.clear();
        }
        bytes.extend(self.bytes);
    }

    /// The settings, once all parts are there.
    pub(super) fn read(bytes: &[u8]) -> Option<Settings> {
        let (length, rest) = bytes.split_first_chunk::<2>()?;
        minicbor::decode(rest.get(..u16::from_be_bytes(*length).into())?).ok()
    }
}

/// Splits that were anticipated on one day, of one group and due day. Days are those of the booking
/// in America/Sao_Paulo, counted from 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AnticipatedOn {
    /// The day on which they would have been due.
    pub due: u32,
    /// The day on which they were anticipated.
    pub on: u32,
    /// Their group.
    pub group: GroupNumber,
}

/// Sums of splits that were anticipated, centavos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnticipatedSums {
    /// Before the fee.
    pub amount: i128,
    /// The fee.
    pub discount: i128,
    /// How many.
    pub count: u64,
}

fn sequence(number: i128) -> Sequence {
    Sequence(u64::try_from(number).unwrap_or_default())
}

fn brand_of(code: u32) -> Option<CardBrand> {
    CardBrand::VARIANTS.get(code as usize).copied()
}

/// Change of a row by the Records after a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// These sums are added.
    Add(Balance),
    /// The row has these numbers.
    Put(Balance),
    /// There is no such row any more.
    Gone,
}

/// Changes of rows, by place.
#[derive(Debug, Default)]
pub(super) struct Changes(pub(super) BTreeMap<RowKey, Change>);

impl Changes {
    /// The changes by a Record.
    pub(super) fn post(&mut self, sequence: Sequence, booked_at: Timestamp, record: &Record) {
        for entry in &record.entries {
            for posting in entry.postings() {
                if let Change::Add(sums) = self.added(RowKey::of(entry.ledger(), posting.account)) {
                    sums.post(posting);
                }
            }
        }
        self.carry(sequence, booked_at, record);
    }

    /// The same without its postings.
    pub(super) fn carry(&mut self, sequence: Sequence, booked_at: Timestamp, record: &Record) {
        for (ledger, id) in Names::opened_by(record) {
            let (high, low) = ((id.0 >> 64) as u64, id.0 as u64);
            self.put(RowKey::first_of(ledger), (high.into(), low.into()));
        }
        let number = i128::from(sequence.0);
        for event in &record.events {
            if let Event::PeriodClosed { month, .. } = event {
                self.put(RowKey::closed(*month), (number, 0));
            }
            let Some(group) = record.owner.group() else { continue };
            match event {
                Event::MerchantOpened { settings, .. } | Event::MerchantChanged { settings, .. } => {
                    for (part, numbers) in (0..).zip(SettingsPart::rows(settings)) {
                        self.put(RowKey::settings(group, sequence, part), numbers);
                    }
                }
                Event::ChargeOpened { card, .. } => {
                    let brand = card.as_ref().map(|card| card.brand);
                    let place = CardBrand::VARIANTS.iter().position(|known| Some(*known) == brand);
                    let code = place.map_or(0, |place| place as i128 + 1);
                    self.put(RowKey::pending(group, record.ordinal), (number, code));
                }
                Event::CardCaptured { opened, .. }
                | Event::CardRefused { opened, .. }
                | Event::PixPaid { opened, .. }
                | Event::PixCancelled { opened, .. } => self.end(RowKey::pending(group, *opened)),
                Event::SplitsAnticipated { splits, .. } => {
                    for split in splits {
                        let on = AnticipatedOn { due: split.due.start().day(), on: booked_at.day(), group };
                        self.add(RowKey::anticipated(on, 0), (split.amount.0.into(), split.fee.0.into()));
                        self.add(RowKey::anticipated(on, 1), (1, 0));
                    }
                }
                _ => {}
            }
        }
    }

    fn put(&mut self, key: RowKey, (debits, credits): (i128, i128)) {
        self.0.insert(key, Change::Put(Balance { debits, credits }));
    }

    fn add(&mut self, key: RowKey, (debits, credits): (i128, i128)) {
        if let Change::Add(sums) = self.added(key) {
            sums.add(Balance { debits, credits });
        }
    }

    fn added(&mut self, key: RowKey) -> &mut Change {
        self.0.entry(key).or_insert(Change::Add(Balance::default()))
    }

    /// A row goes. One that is younger than the file leaves nothing behind.
    fn end(&mut self, key: RowKey) {
        match self.0.get(&key) {
            Some(Change::Put(_)) => drop(self.0.remove(&key)),
            _ => drop(self.0.insert(key, Change::Gone)),
        }
    }
}
