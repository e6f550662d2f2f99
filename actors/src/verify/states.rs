//! Verification of every owner's state, one at a time: it is built by replay and compared with its
//! snapshot and with the balances of the journal's entries.

use std::collections::BTreeSet;
use std::sync::Arc;

use ledger::{Account, Balance, Balances, LedgerId, MerchantState, RecipientState};

use super::summary::{JournalSummary, OwnerRecords};
use super::{Promise, VerifyProgress, VerifyResult, broken};
use crate::load::LargeRecords;
use crate::resident::{Books, Resident};
use derived::snapshots::{self, StoredSnapshot};
use store::{Head, Part, Sequence};

/// Counts of checked states.
#[derive(Default)]
pub(super) struct States {
    pub(super) ledgers: u64,
    pub(super) snapshots: u64,
    pub(super) snapshots_unusable: u64,
}

/// Checks the state of every owner that the journal, its entries or a snapshot names.
pub(super) fn check(
    store: &Part,
    journal: &JournalSummary,
    head: Head,
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<States> {
    let posted = journal.books.values().flat_map(|books| books.ledgers().keys().copied());
    let with_snapshot: BTreeSet<LedgerId> = snapshots::ledgers(store)?.into_iter().collect();
    let owners = journal.concerning.keys().copied().filter(|owner| *owner != LedgerId::System);
    let mut ledgers: BTreeSet<LedgerId> = owners.chain(posted).collect();
    let mut replays = Replays {
        store,
        journal,
        head,
        large: LargeRecords::default(),
        states: States { ledgers: ledgers.len() as u64, ..States::default() },
        steps: journal.concerning.values().map(|records| (records.own.len() + records.foreign.len()) as u64).sum(),
        done: 0,
        progress,
    };
    ledgers.extend(&with_snapshot);
    for ledger in ledgers {
        let has_snapshot = with_snapshot.contains(&ledger);
        match ledger {
            LedgerId::Merchant(_) => replays.check::<MerchantState>(ledger, has_snapshot)?,
            LedgerId::Recipient(..) => replays.check::<RecipientState>(ledger, has_snapshot)?,
            LedgerId::Platform(_) | LedgerId::System => {}
        }
    }
    Ok(replays.states)
}

struct Replays<'a> {
    store: &'a Part,
    journal: &'a JournalSummary,
    head: Head,
    large: LargeRecords,
    states: States,
    steps: u64,
    done: u64,
    progress: &'a mut dyn FnMut(VerifyProgress),
}

impl Replays<'_> {
    fn check<B: Books>(&mut self, ledger: LedgerId, has_snapshot: bool) -> VerifyResult<()> {
        let nothing = OwnerRecords::default();
        let records = self.journal.concerning.get(&ledger).unwrap_or(&nothing);
        let mut resident = Resident::<B>::new(ledger, ledger.group().unwrap_or_default(), Arc::default());
        let (mut own_from, mut foreign_from) = (0, 0);
        if has_snapshot {
            match self.snapshot::<B>(ledger)? {
                None => self.states.snapshots_unusable += 1,
                Some((snapshot, books)) => {
                    own_from = records.own.partition_point(|at| *at <= snapshot.own_through.0);
                    foreign_from = records.foreign.partition_point(|at| *at <= snapshot.position.foreign);
                    self.replay(&mut resident, &records.own[..own_from], &records.foreign[..foreign_from])?;
                    self.compare(&resident, &snapshot, &books)?;
                    self.states.snapshots += 1;
                }
            }
        }
        self.replay(&mut resident, &records.own[own_from..], &records.foreign[foreign_from..])?;
        self.compare_with_books(&resident)
    }

    /// The snapshot and the state in it; `None` if it is not usable. Error: it is ahead of the
    /// journal.
    fn snapshot<B: Books>(&self, ledger: LedgerId) -> VerifyResult<Option<(StoredSnapshot, B)>> {
        let Some(stored) = snapshots::load(self.store, ledger)? else { return Ok(None) };
        let last = self.head.next.0 - 1;
        let position = stored.own_through.0.max(stored.position.foreign);
        if position > last {
            let expected = format!("positions through sequence {last}, the journal's last");
            let found = format!("sequence {position}");
            return Err(broken(Promise::Snapshot, None, self.journal.names.of(ledger), expected, found));
        }
        let books = B::from_sections(&stored.head, stored.sections()).ok();
        Ok(books.map(|books| (stored, books)))
    }

    /// Replays own Records and those of others that concern the owner, in the order of the journal.
    fn replay<B: Books>(&mut self, resident: &mut Resident<B>, own: &[u64], foreign: &[u64]) -> VerifyResult<()> {
        let mut sequences = [own, foreign].concat();
        sequences.sort_unstable();
        for sequence in sequences {
            let sequence = Sequence(sequence);
            let record = self.large.read(self.store, sequence)?;
            resident.replay(sequence, &record);
            self.done += 1;
            (self.progress)(VerifyProgress::States(self.done, self.steps));
        }
        Ok(())
    }

    fn compare<B: Books>(&self, resident: &Resident<B>, snapshot: &StoredSnapshot, books: &B) -> VerifyResult<()> {
        let ledger = resident.ledger();
        let differs = |expected: String, found: String| {
            let at = snapshot.own_through.0.max(snapshot.position.foreign);
            Err(broken(Promise::Snapshot, Some(Sequence(at)), self.journal.names.of(ledger), expected, found))
        };
        if resident.own() != snapshot.position.own {
            return differs(
                format!("its Records through {}", resident.own()),
                format!("through {}", snapshot.position.own),
            );
        }
        if let Some((account, replayed, snapshot)) = first_difference(&resident.books().accounts(), &books.accounts()) {
            return differs(format!("{} of {replayed} centavos", self.journal.account(ledger, account)), snapshot);
        }
        if resident.books() != books {
            return differs("the replayed state".to_owned(), "another one with the same balances".to_owned());
        }
        Ok(())
    }

    /// The accounts of the state equal the sums of the journal's entries, and the rest of the state
    /// agrees with its accounts.
    fn compare_with_books<B: Books>(&self, resident: &Resident<B>) -> VerifyResult<()> {
        let (ledger, state) = (resident.ledger(), resident.books());
        let posted = self.journal.books.get(&ledger.group()).and_then(|books| books.ledgers().get(&ledger));
        let nothing = Balances::new();
        let differs =
            |expected, found| Err(broken(Promise::State, None, self.journal.names.of(ledger), expected, found));
        if let Some((account, expected, found)) = first_difference(posted.unwrap_or(&nothing), &state.accounts()) {
            return differs(format!("{} of {expected} centavos", self.journal.account(ledger, account)), found);
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
