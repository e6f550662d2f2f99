//! Verification of every owner's state: it is replayed while the journal is read, and compared with
//! its snapshot and with the balances of the journal's entries.
//!
//! At most so many owners as the caller says are replayed in one pass over the journal. The others
//! are replayed in further passes.

use std::collections::BTreeSet;
use std::sync::Arc;

use ledger::{Account, Balance, Balances, IdMap, LedgerId, MerchantState, RecipientState, Record};

use super::summary::JournalSummary;
use super::{Promise, VerifyResult, broken};
use crate::resident::{OwnerMachine, Resident};
use derived::records::record;
use derived::snapshots::{self, StoredSnapshot};
use store::{Head, Part, Sequence};

/// Counts of checked states.
#[derive(Default)]
pub(super) struct States {
    pub(super) ledgers: u64,
    pub(super) snapshots: u64,
    pub(super) snapshots_unusable: u64,
}

/// The states of the owners that the journal, its entries or a snapshot names, in passes over the
/// journal.
pub(super) struct Replays<'a> {
    reading: Reading<'a>,
    with_snapshot: BTreeSet<LedgerId>,
    owners_max: usize,
    is_first_pass: bool,
    /// The owners of this pass; ledgers of the platform and of the house have no state.
    owners: IdMap<LedgerId, Option<Box<dyn Replay>>>,
    /// The owners of later passes.
    left: BTreeSet<LedgerId>,
}

/// What a replay reads besides the Records, and counts.
struct Reading<'a> {
    store: &'a Part,
    head: Head,
    states: States,
}

impl<'a> Replays<'a> {
    /// Nothing is replayed yet; the first pass begins.
    pub(super) fn new(store: &'a Part, head: Head, owners_max: usize) -> VerifyResult<Self> {
        let with_snapshot = snapshots::ledgers(store)?.into_iter().collect();
        let reading = Reading { store, head, states: States::default() };
        let (owners, left) = Default::default();
        Ok(Self { reading, with_snapshot, owners_max, is_first_pass: true, owners, left })
    }

    /// Takes the next Record of the journal in this pass.
    pub(super) fn take(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let ledgers = std::iter::once(record.owner).chain(record.other_ledgers());
        for ledger in ledgers.filter(|ledger| *ledger != LedgerId::System) {
            if self.is_first_pass {
                self.add(ledger)?;
            }
            if let Some(Some(owner)) = self.owners.get_mut(&ledger) {
                owner.take(&mut self.reading, at, record)?;
            }
        }
        Ok(())
    }

    /// Compares the states of this pass at the head, and begins the next pass; false if none is
    /// needed.
    pub(super) fn end_pass(&mut self, journal: &JournalSummary) -> VerifyResult<bool> {
        if std::mem::take(&mut self.is_first_pass) {
            let posted = journal.books.values().flat_map(|books| books.ledgers().keys());
            posted.copied().try_for_each(|ledger| self.add(ledger))?;
            self.reading.states.ledgers = (self.owners.len() + self.left.len()) as u64;
            let with_snapshot: Vec<LedgerId> = self.with_snapshot.iter().copied().collect();
            with_snapshot.into_iter().try_for_each(|ledger| self.add(ledger))?;
        }
        let mut ledgers: Vec<LedgerId> = self.owners.keys().copied().collect();
        ledgers.sort_unstable();
        for ledger in ledgers {
            if let Some(mut owner) = self.owners.remove(&ledger).flatten() {
                owner.finish(&mut self.reading, journal)?;
            }
        }
        for ledger in std::mem::take(&mut self.left) {
            self.add(ledger)?;
        }
        Ok(!self.owners.is_empty())
    }

    /// The counts, when no pass is left.
    pub(super) fn finish(self) -> States {
        self.reading.states
    }
}

impl Replays<'_> {
    /// Adds an owner to this pass, or to a later one if this one is full.
    fn add(&mut self, ledger: LedgerId) -> VerifyResult<()> {
        if self.owners.contains_key(&ledger) {
            return Ok(());
        }
        if self.owners.len() >= self.owners_max {
            self.left.insert(ledger);
            return Ok(());
        }
        let has_snapshot = self.with_snapshot.contains(&ledger);
        let owner: Option<Box<dyn Replay>> = match ledger {
            LedgerId::Merchant(_) => Some(self.reading.begin::<MerchantState>(ledger, has_snapshot)?),
            LedgerId::Recipient(..) => Some(self.reading.begin::<RecipientState>(ledger, has_snapshot)?),
            LedgerId::Platform(_) | LedgerId::System => None,
        };
        self.owners.insert(ledger, owner);
        Ok(())
    }
}

impl Reading<'_> {
    /// An owner of whom nothing is replayed yet.
    fn begin<B: OwnerMachine>(&mut self, ledger: LedgerId, has_snapshot: bool) -> VerifyResult<Box<dyn Replay>> {
        let resident = Resident::<B>::new(ledger, ledger.group().unwrap_or_default(), Arc::default());
        let mut begun = OwnerReplay { resident, snapshot: None, held: Vec::new(), differs: None };
        if has_snapshot {
            begun.snapshot = snapshots::load(self.store, ledger)?;
            self.states.snapshots_unusable += u64::from(begun.snapshot.is_none());
        }
        let last = self.head.next.0 - 1;
        if let Some(ahead) = begun.snapshot.take_if(|snapshot| through(snapshot) > last) {
            let expected = format!("positions through sequence {last}, the journal's last");
            begun.differs = Some((None, None, expected, format!("sequence {}", through(&ahead))));
        }
        Ok(Box::new(begun))
    }
}

/// The last position of a snapshot.
fn through(snapshot: &StoredSnapshot) -> u64 {
    snapshot.own_through.0.max(snapshot.position.foreign)
}

/// Replay of one owner.
trait Replay: Send {
    /// Takes the next Record that concerns the owner.
    fn take(&mut self, reading: &mut Reading<'_>, at: Sequence, record: &Record) -> VerifyResult<()>;

    /// Compares the state at the head with the books; error also if the snapshot differed.
    fn finish(&mut self, reading: &mut Reading<'_>, journal: &JournalSummary) -> VerifyResult<()>;
}

struct OwnerReplay<B> {
    resident: Resident<B>,
    /// The snapshot, until all its Records are replayed and it is compared.
    snapshot: Option<StoredSnapshot>,
    /// Records that are not in the snapshot, and come before others that are.
    held: Vec<Sequence>,
    /// Where the snapshot differs: after which Record, in which account, what was expected, found.
    differs: Option<(Option<Sequence>, Option<Account>, String, String)>,
}

impl<B: OwnerMachine> Replay for OwnerReplay<B> {
    fn take(&mut self, reading: &mut Reading<'_>, at: Sequence, record: &Record) -> VerifyResult<()> {
        if let Some(snapshot) = &self.snapshot {
            let is_own = record.owner == self.resident.ledger();
            let in_snapshot = if is_own { snapshot.own_through.0 } else { snapshot.position.foreign };
            if at.0 > through(snapshot) {
                self.compare_snapshot(reading)?;
            } else if at.0 > in_snapshot {
                self.held.push(at);
                return Ok(());
            }
        }
        self.resident.replay(at, record);
        Ok(())
    }

    fn finish(&mut self, reading: &mut Reading<'_>, journal: &JournalSummary) -> VerifyResult<()> {
        self.compare_snapshot(reading)?;
        let ledger = self.resident.ledger();
        let Some((at, account, expected, found)) = self.differs.take() else { return self.compare_books(journal) };
        let expected = match account {
            Some(account) => format!("{} of {expected} centavos", journal.account(ledger, account)),
            None => expected,
        };
        Err(broken(Promise::Snapshot, at, journal.names.of(ledger), expected, found))
    }
}

impl<B: OwnerMachine> OwnerReplay<B> {
    /// Compares the snapshot, whose Records are replayed, and replays those that were held.
    fn compare_snapshot(&mut self, reading: &mut Reading<'_>) -> VerifyResult<()> {
        let Some(snapshot) = self.snapshot.take() else { return Ok(()) };
        match B::from_sections(&snapshot.head, snapshot.sections()) {
            Err(_) => reading.states.snapshots_unusable += 1,
            Ok(books) => {
                reading.states.snapshots += 1;
                let at = Some(Sequence(through(&snapshot)));
                self.differs =
                    self.difference(&snapshot, &books).map(|(account, expected, found)| (at, account, expected, found));
            }
        }
        for at in std::mem::take(&mut self.held) {
            self.resident.replay(at, &record(reading.store, at)?);
        }
        Ok(())
    }

    /// The first difference between the replayed state and that of the snapshot.
    fn difference(&self, snapshot: &StoredSnapshot, books: &B) -> Option<(Option<Account>, String, String)> {
        let (replayed, own) = (self.resident.books(), self.resident.own());
        if own != snapshot.position.own {
            return Some((None, format!("its Records through {own}"), format!("through {}", snapshot.position.own)));
        }
        if let Some((account, expected, found)) = first_difference(&replayed.accounts(), &books.accounts()) {
            return Some((Some(account), expected, found));
        }
        let another = || (None, "the replayed state".to_owned(), "another one with the same balances".to_owned());
        (replayed != books).then(another)
    }

    /// The accounts of the state equal the sums of the journal's entries, and the rest of the state
    /// agrees with its accounts.
    fn compare_books(&self, journal: &JournalSummary) -> VerifyResult<()> {
        let (ledger, state) = (self.resident.ledger(), self.resident.books());
        let posted = journal.books.get(&ledger.group()).and_then(|books| books.ledgers().get(&ledger));
        let nothing = Balances::new();
        let differs = |expected, found| Err(broken(Promise::State, None, journal.names.of(ledger), expected, found));
        if let Some((account, expected, found)) = first_difference(posted.unwrap_or(&nothing), &state.accounts()) {
            return differs(format!("{} of {expected} centavos", journal.account(ledger, account)), found);
        }
        if !state.is_sound() {
            return differs("parts that sum to the accounts".to_owned(), "others".to_owned());
        }
        Ok(())
    }
}

/// The first account in which two ledgers differ, with the values of each: the balance, or both
/// sides where the balances are equal.
fn first_difference(expected: &Balances, found: &Balances) -> Option<(Account, String, String)> {
    let accounts: BTreeSet<Account> = expected.keys().chain(found.keys()).copied().collect();
    accounts.into_iter().find_map(|account| {
        let of = |balances: &Balances| balances.get(&account).copied().unwrap_or_default();
        let (expected, found) = (of(expected), of(found));
        let net_or_sums = |balance: Balance| match expected.net() == found.net() {
            true => format!("{} - {}", balance.debits, balance.credits),
            false => balance.net().to_string(),
        };
        (expected != found).then(|| (account, net_or_sums(expected), net_or_sums(found)))
    })
}
