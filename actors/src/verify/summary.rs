//! Check of the journal, Record by Record; its summary is the input of the check of the states.
//!
//! What concerns one Record alone is computed by [`CheckedRecord::of`], on any thread. [`Checker`]
//! takes the Records in their order, and judges.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ledger::invariants::{GroupBooks, Violation};
use ledger::postings;
use ledger::receivable_sums::{ReceivableSums, WrongReceivables};
use ledger::receivables::ReceivablesDiffer;
use ledger::record::{DecodeError, IDEMPOTENCY_KEPT_MS};
use ledger::{
    Account, Balance, Entry, Event, Fingerprint, GroupNumber, LedgerId, Record, Sealed, SealedFor, Side, Timestamp,
};

use super::checkpoints::CheckpointCheck;
use super::derived_data::{DerivedCheck, DerivedParts};
use super::{Promise, SealedParts, VerifyError, VerifyResult, broken};
use derived::extents::Extents;
use derived::names::Names;
use derived::seal::{Keyring, SealError, SealedState};
use store::{Block, Head, Part, Partition, Sequence};

/// Summary of the journal for the check of the states.
#[derive(Default)]
pub(super) struct JournalSummary {
    pub(super) blocks: u64,
    pub(super) debits: i128,
    pub(super) credits: i128,
    pub(super) idempotency_keys: u64,
    pub(super) sealed: SealedParts,
    pub(super) names: Names,
    pub(super) derived: DerivedParts,
    pub(super) books: HashMap<Option<GroupNumber>, GroupBooks>,
}

/// A Record, and what its checks found that need no other Record.
pub(super) struct CheckedRecord {
    record: Record,
    entries: EntriesFound,
    /// The state of each sealed part, if there is a key ring, and its words.
    sealed: Vec<(Result<Option<SealedState>, SealError>, &'static str)>,
}

/// Comparison of the stored entries with those that the events make.
enum EntriesFound {
    Equal,
    /// Amounts of the events that do not add up.
    Overflow,
    /// The first that differ: the expected and the stored one.
    Differ(Option<Entry>, Option<Entry>),
}

impl CheckedRecord {
    /// Decodes a Record and checks it.
    pub(super) fn of(bytes: &[u8], keyring: Option<&Keyring>) -> Result<Self, DecodeError> {
        let record = Record::decode(bytes)?;
        let (entries, sealed) = (entries(&record), sealed(&record, keyring));
        Ok(Self { record, entries, sealed })
    }
}

/// Compares the stored entries with those that the events make. Amounts that do not add up make
/// [`ledger::postings`] panic, since they are a defect within the program; here the panic is
/// caught, since they are what is looked for.
fn entries(record: &Record) -> EntriesFound {
    let made = catch_unwind(AssertUnwindSafe(|| postings::entries(record.owner, &record.events)));
    let Ok(made) = made else { return EntriesFound::Overflow };
    let places = made.len().max(record.entries.len());
    match (0..places).find(|place| made.get(*place) != record.entries.get(*place)) {
        None => EntriesFound::Equal,
        Some(place) => EntriesFound::Differ(made.get(place).cloned(), record.entries.get(place).cloned()),
    }
}

/// Opens every sealed part.
fn sealed(record: &Record, keyring: Option<&Keyring>) -> Vec<(Result<Option<SealedState>, SealError>, &'static str)> {
    let mut found = Vec::new();
    if let Some(sealed) = &record.personal {
        let state = keyring.map(|keyring| keyring.inspect(record.personal_for(), sealed)).transpose();
        found.push((state, "personal data"));
    }
    for event in &record.events {
        let (secret, what, sealed_for) = match event {
            Event::ApiKeyCreated { id, webhook_secret, .. }
            | Event::WebhookSecretRotated { id, webhook_secret, .. } => {
                (webhook_secret, "a webhook secret", SealedFor::webhook_secret(*id))
            }
            Event::CardStored { id, token, .. } => (token, "a card's token", SealedFor::card_token(*id)),
            _ => continue,
        };
        let opens = keyring.map(|keyring| keyring.open_secret(sealed_for, secret).is_some());
        found.push((Ok(opens.map(|opens| if opens { SealedState::Opens } else { SealedState::Damaged })), what));
    }
    found
}

/// Checks the Records of a partition in their order.
pub(super) struct Checker<'a> {
    /// The partition, among those of the extents.
    of: (&'a Extents, Partition),
    journal: JournalSummary,
    against: CheckpointCheck,
    derived: DerivedCheck<'a>,
    keys: KeysOfLastDay,
    receivables: ReceivableSums,
    /// The version of each profile.
    profiles: HashMap<SealedFor, u32>,
    booked_at_ms: Option<i64>,
}

impl<'a> Checker<'a> {
    /// Nothing is checked yet. `is_opening`: the sealed parts are opened.
    pub(super) fn new(
        store: &'a Part,
        extents: &'a Extents,
        is_opening: bool,
        against: CheckpointCheck,
    ) -> VerifyResult<Self> {
        let (mut journal, keys) = (JournalSummary::default(), KeysOfLastDay::default());
        journal.sealed.opened = is_opening.then_some(0);
        let (derived, receivables, profiles) = (DerivedCheck::new(store)?, ReceivableSums::default(), HashMap::new());
        let of = (extents, store.partition());
        Ok(Self { of, journal, against, derived, keys, receivables, profiles, booked_at_ms: None })
    }

    /// Checks the next block and gives its Records.
    pub(super) fn block(
        &mut self,
        block: &Block,
        records: Vec<Result<CheckedRecord, DecodeError>>,
    ) -> VerifyResult<Vec<(Sequence, Record)>> {
        if let Some(before) = self.booked_at_ms.filter(|before| block.booked_at_ms < *before) {
            let expected = format!("a block booked at {before} ms or later");
            return Err(broken(Promise::BookingTime, Some(block.first), "the journal", expected, block.booked_at_ms));
        }
        self.booked_at_ms = Some(block.booked_at_ms);
        self.journal.blocks += 1;
        self.against.begin_block(block);
        let numbered = (block.first.0..).map(Sequence).zip(records);
        let checked = numbered.map(|(at, record)| Ok((at, self.record(at, record)?))).collect::<VerifyResult<_>>()?;
        self.against.end_of_block(block)?;
        Ok(checked)
    }

    /// The summary of the whole journal.
    pub(super) fn finish(self, head: Head) -> VerifyResult<JournalSummary> {
        self.against.finish(head)?;
        Ok(JournalSummary { derived: self.derived.finish(), ..self.journal })
    }

    fn record(&mut self, at: Sequence, checked: Result<CheckedRecord, DecodeError>) -> VerifyResult<Record> {
        let CheckedRecord { record, entries, sealed } = checked.map_err(|error| {
            broken(Promise::Readable, Some(at), "the journal", "a Record of this release or before", error)
        })?;
        self.journal.names.learn(&record);
        self.partition(at, &record)?;
        self.books(at, &record)?;
        self.against.count(&record);
        self.against.periods(at, &record)?;
        self.entries(at, &record, entries)?;
        self.receivables(at, &record)?;
        self.idempotency(at, &record)?;
        self.versions(at, &record)?;
        sealed.into_iter().try_for_each(|(state, what)| self.count_sealed(at, &record, state?, what))?;
        let booked_at = Timestamp(self.booked_at_ms.unwrap_or_default());
        self.derived.count((at, booked_at), &record, &self.journal.books, &self.journal.names)?;
        Ok(record)
    }

    /// Checks that a Record is where its group is looked for. Each partition has a house ledger.
    fn partition(&self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let (extents, here) = self.of;
        let Some(expected) = record.owner.group().map(|group| extents.partition_of(group)) else { return Ok(()) };
        if expected == here {
            return Ok(());
        }
        let (whose, in_words) = (self.journal.names.of(record.owner), |of: Partition| format!("partition {}", of.0));
        Err(broken(Promise::Partition, Some(at), whose, in_words(expected), in_words(here)))
    }

    /// Checks every invariant of the books after this Record.
    fn books(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let books = self.journal.books.entry(record.owner.group()).or_default();
        books.post(record).map_err(|violation| self.journal.violated(at, record.owner, violation))?;
        for posting in record.entries.iter().flat_map(Entry::postings) {
            let Balance { debits, credits } = posting.sums();
            self.journal.debits += debits;
            self.journal.credits += credits;
        }
        Ok(())
    }

    /// Refuses entries that are not those of the events.
    fn entries(&self, at: Sequence, record: &Record, found: EntriesFound) -> VerifyResult<()> {
        let (ledger, expected, found) = match found {
            EntriesFound::Equal => return Ok(()),
            EntriesFound::Overflow => {
                let (expected, found) = ("amounts that add up", "events whose amounts do not");
                (record.owner, expected.to_owned(), found.to_owned())
            }
            EntriesFound::Differ(expected, found) => {
                let ledger = expected.as_ref().or(found.as_ref()).map_or(record.owner, Entry::ledger);
                (ledger, self.journal.lines(expected.as_ref()), self.journal.lines(found.as_ref()))
            }
        };
        Err(broken(Promise::Entries, Some(at), self.journal.names.of(ledger), expected, found))
    }

    /// Compares what is due to whom, folded from the events, with the accounts of the entries.
    fn receivables(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        self.receivables.post(record);
        let Some(books) = self.journal.books.get(&record.owner.group()) else { return Ok(()) };
        let checked = self.receivables.check(record, books);
        checked.map_err(|wrong| match wrong {
            WrongReceivables::Differ(ReceivablesDiffer { ledger, account, balance, sum }) => {
                let expected = format!("{} of {sum} centavos", self.journal.account(ledger, account));
                let found = format!("{balance} centavos");
                broken(Promise::Receivables, Some(at), self.journal.names.of(ledger), expected, found)
            }
            WrongReceivables::Overdrawn { ledger, due, sum } => {
                let expected = format!("0 or more to be due at {} ms", due.start().0);
                let found = format!("{sum} centavos");
                broken(Promise::Receivables, Some(at), self.journal.names.of(ledger), expected, found)
            }
        })
    }

    fn idempotency(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let Some(idempotency) = record.idempotency else { return Ok(()) };
        self.journal.idempotency_keys += 1;
        match self.keys.use_once(idempotency.key, at, record.effective_at) {
            None => Ok(()),
            Some(earlier) => {
                let found = format!("the key {:?} again, first used at sequence {}", idempotency.key, earlier.0);
                let whose = self.journal.names.of(record.owner);
                Err(broken(Promise::IdempotencyKey, Some(at), whose, "a key not used within 24 hours", found))
            }
        }
    }

    /// Checks that a profile is the next version of what it replaces.
    fn versions(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let profile = record.personal_for().filter(SealedFor::is_versioned);
        let Some((profile, sealed)) = profile.zip(record.personal.as_ref()) else { return Ok(()) };
        let version = self.profiles.insert(profile, sealed.version).unwrap_or_default();
        if sealed.follows(&Sealed { version, ..Sealed::default() }) {
            return Ok(());
        }
        let (whose, expected) = (self.journal.names.of(record.owner), format!("version {} of a profile", version + 1));
        Err(broken(Promise::Sealed, Some(at), whose, expected, format!("version {}", sealed.version)))
    }

    fn count_sealed(
        &mut self,
        at: Sequence,
        record: &Record,
        state: Option<SealedState>,
        what: &str,
    ) -> VerifyResult<()> {
        let sealed = &mut self.journal.sealed;
        sealed.found += 1;
        match state {
            None => Ok(()),
            Some(SealedState::Opens) => {
                sealed.opened = sealed.opened.map(|opened| opened + 1);
                Ok(())
            }
            Some(SealedState::Erased) => {
                sealed.erased += 1;
                Ok(())
            }
            Some(SealedState::Damaged) => {
                let (whose, expected) = (self.journal.names.of(record.owner), format!("{what} that opens"));
                Err(broken(Promise::Sealed, Some(at), whose, expected, "bytes that its key refuses"))
            }
        }
    }
}

impl JournalSummary {
    /// The full name of an account, with the outside names of ledgers.
    pub(super) fn account(&self, ledger: LedgerId, account: Account) -> String {
        account.name(ledger.group().unwrap_or_default(), |ledger| self.names.of(ledger))
    }

    fn violated(&self, at: Sequence, owner: LedgerId, violation: Violation) -> VerifyError {
        let broken = |promise, ledger, expected: String, found: String| {
            broken(promise, Some(at), self.names.of(ledger), expected, found)
        };
        match violation {
            Violation::Ordinal { owner, expected, found } => {
                broken(Promise::Ordinal, owner, format!("its Record {expected}"), format!("its Record {found}"))
            }
            Violation::Mirror { ledger, account, sum } => {
                let expected = format!("{} and its mirror to sum to 0", self.account(ledger, account));
                broken(Promise::Mirror, ledger, expected, format!("{sum} centavos"))
            }
            Violation::Negative { ledger, account, balance } => {
                let expected = format!("{} of 0 or more", self.account(ledger, account));
                broken(Promise::NotNegative, ledger, expected, format!("{balance} centavos"))
            }
            Violation::Splits(sum) => broken(Promise::Splits, owner, "0".to_owned(), format!("{sum} centavos")),
            Violation::Fees(sum) => broken(Promise::Fees, owner, "0".to_owned(), format!("{sum} centavos")),
            Violation::Foreign(ledger) => {
                broken(Promise::Group, owner, "entries of its group".to_owned(), format!("one of {ledger:?}"))
            }
        }
    }

    /// An entry on one line.
    fn lines(&self, entry: Option<&Entry>) -> String {
        let Some(entry) = entry else { return "no entry".to_owned() };
        let line = |posting: &ledger::entry::Posting| {
            let sign = if posting.side == Side::Debit { '+' } else { '−' };
            format!("{} {sign}{}", self.account(entry.ledger(), posting.account), posting.amount)
        };
        let lines: Vec<_> = entry.postings().iter().map(line).collect();
        format!("[{}]", lines.join(", "))
    }
}

/// Idempotency keys that have not expired.
#[derive(Default)]
struct KeysOfLastDay {
    used: HashMap<Fingerprint, (Sequence, Timestamp)>,
    in_order: VecDeque<(Timestamp, Fingerprint)>,
}

impl KeysOfLastDay {
    /// Uses a key; gives the Record that used it before, if that one still keeps it.
    fn use_once(&mut self, key: Fingerprint, at: Sequence, now: Timestamp) -> Option<Sequence> {
        let is_over = |since: Timestamp| since.plus_ms(IDEMPOTENCY_KEPT_MS) <= now;
        while let Some((since, old)) = self.in_order.front().copied().filter(|(since, _)| is_over(*since)) {
            if self.used.get(&old).is_some_and(|(_, used_at)| *used_at == since) {
                self.used.remove(&old);
            }
            self.in_order.pop_front();
        }
        self.in_order.push_back((now, key));
        let earlier = self.used.insert(key, (at, now));
        earlier.filter(|(_, since)| !is_over(*since)).map(|(sequence, _)| sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::BlockHash;
    use store::testkit::MemoryStore;

    /// No store takes such a block, so it is shown to the checker alone.
    #[test]
    fn a_block_booked_before_the_one_that_it_follows_is_found() {
        let store = MemoryStore::new().part();
        let extents = Extents::default();
        let mut checker = Checker::new(&store, &extents, false, CheckpointCheck::default()).unwrap();
        for (booked_at_ms, is_sound) in [(5, true), (5, true), (6, true), (5, false)] {
            let (partition, first, previous) = (Partition(0), Sequence(1), BlockHash::ZERO);
            let block = Block { partition, first, booked_at_ms, previous, records: Vec::new() };
            match checker.block(&block, Vec::new()) {
                Ok(_) => assert!(is_sound, "{booked_at_ms}"),
                Err(error) => {
                    assert!(!is_sound && error.to_string().contains("booking times never go back"), "{error}")
                }
            }
        }
    }
}
