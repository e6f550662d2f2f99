//! Check of the journal, Record by Record; its summary is the input of the check of the states.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ledger::invariants::{GroupBooks, Violation};
use ledger::postings;
use ledger::receivable_sums::{ReceivableSums, WrongReceivables};
use ledger::receivables::ReceivablesDiffer;
use ledger::record::IDEMPOTENCY_KEPT_MS;
use ledger::{Account, Entry, Event, Fingerprint, GroupNumber, LedgerId, Record, Sealed, SealedFor, Side, Timestamp};

use super::checkpoints::CheckpointCheck;
use super::derived_data::{DerivedCheck, DerivedParts};
use super::{Promise, SealedParts, VerifyError, VerifyProgress, VerifyResult, broken};
use derived::extents::Extents;
use derived::names::Names;
use derived::seal::{Keyring, SealedState};
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
    /// The Records that change each owner's state.
    pub(super) concerning: BTreeMap<LedgerId, OwnerRecords>,
}

/// The Records that change one owner's state, each list in order.
#[derive(Default)]
pub(super) struct OwnerRecords {
    /// The sequences of its own Records.
    pub(super) own: Vec<u64>,
    /// The sequences of Records of others that concern it.
    pub(super) foreign: Vec<u64>,
}

/// Checks the whole journal.
pub(super) fn check(
    store: &Part,
    extents: &Extents,
    keyring: Option<&Keyring>,
    against: CheckpointCheck,
    head: Head,
    progress: &mut dyn FnMut(VerifyProgress),
) -> VerifyResult<JournalSummary> {
    let derived = DerivedCheck::new(store)?;
    let (journal, keys) = (JournalSummary::default(), KeysOfLastDay::default());
    let receivables = ReceivableSums::default();
    let profiles = HashMap::new();
    let of = (extents, store.partition());
    let mut checker =
        Checker { of, keyring, journal, against, derived, keys, receivables, profiles, booked_at_ms: None };
    checker.journal.sealed.opened = keyring.map(|_| 0);
    for block in store.blocks(Sequence::FIRST) {
        let block = block?;
        checker.block(&block)?;
        progress(VerifyProgress::Journal(block.next().0 - 1, head.next.0 - 1));
    }
    checker.against.finish(head)?;
    Ok(JournalSummary { derived: checker.derived.finish(), ..checker.journal })
}

struct Checker<'a> {
    /// The partition, among those of the extents.
    of: (&'a Extents, Partition),
    keyring: Option<&'a Keyring>,
    journal: JournalSummary,
    against: CheckpointCheck,
    derived: DerivedCheck<'a>,
    keys: KeysOfLastDay,
    receivables: ReceivableSums,
    /// The version of each profile.
    profiles: HashMap<SealedFor, u32>,
    booked_at_ms: Option<i64>,
}

impl Checker<'_> {
    fn block(&mut self, block: &Block) -> VerifyResult<()> {
        if let Some(before) = self.booked_at_ms.filter(|before| block.booked_at_ms < *before) {
            let expected = format!("a block booked at {before} ms or later");
            let whose = "the journal".to_owned();
            return Err(broken(Promise::BookingTime, Some(block.first), whose, expected, block.booked_at_ms));
        }
        self.booked_at_ms = Some(block.booked_at_ms);
        self.journal.blocks += 1;
        self.against.begin_block(block);
        for (sequence, bytes) in (block.first.0..).zip(&block.records) {
            self.record(Sequence(sequence), bytes)?;
        }
        self.against.end_of_block(block)
    }

    fn record(&mut self, at: Sequence, bytes: &[u8]) -> VerifyResult<()> {
        let record = Record::decode(bytes).map_err(|error| {
            broken(Promise::Readable, Some(at), "the journal".to_owned(), "a Record of this release or before", error)
        })?;
        self.journal.names.learn(&record);
        self.partition(at, &record)?;
        self.books(at, &record)?;
        self.against.count(&record);
        self.against.periods(at, &record)?;
        self.entries(at, &record)?;
        self.receivables(at, &record)?;
        self.idempotency(at, &record)?;
        self.sealed(at, &record)?;
        self.journal.concern(at, &record);
        let booked_at = Timestamp(self.booked_at_ms.unwrap_or_default());
        self.derived.count((at, booked_at), &record, &self.journal.books, &self.journal.names)
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
            match posting.side {
                Side::Debit => self.journal.debits += i128::from(posting.amount.0),
                Side::Credit => self.journal.credits += i128::from(posting.amount.0),
            }
        }
        Ok(())
    }

    /// Compares the stored entries with those that the events make. Amounts that do not add up make
    /// [`ledger::postings`] panic, since they are a defect within the program; here the panic is
    /// caught, since they are what is looked for.
    fn entries(&self, at: Sequence, record: &Record) -> VerifyResult<()> {
        let made = catch_unwind(AssertUnwindSafe(|| postings::entries(record.owner, &record.events)));
        let Ok(made) = made else {
            let whose = self.journal.names.of(record.owner);
            return Err(broken(
                Promise::Entries,
                Some(at),
                whose,
                "amounts that add up",
                "events whose amounts do not",
            ));
        };
        let places = made.len().max(record.entries.len());
        let Some(place) = (0..places).find(|place| made.get(*place) != record.entries.get(*place)) else {
            return Ok(());
        };
        let (expected, found) = (made.get(place), record.entries.get(place));
        let ledger = expected.or(found).map_or(record.owner, Entry::ledger);
        let (expected, found) = (self.journal.lines(expected), self.journal.lines(found));
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

    fn sealed(&mut self, at: Sequence, record: &Record) -> VerifyResult<()> {
        if let Some(sealed) = &record.personal {
            self.versions(at, record, sealed)?;
            let state = self.keyring.map(|keyring| keyring.inspect(record.personal_for(), sealed)).transpose()?;
            self.count_sealed(at, record, state, "personal data")?;
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
            let opens = self.keyring.map(|keyring| keyring.open_secret(sealed_for, secret).is_some());
            let state = opens.map(|opens| if opens { SealedState::Opens } else { SealedState::Damaged });
            self.count_sealed(at, record, state, what)?;
        }
        Ok(())
    }

    /// Checks that a profile is the next version of what it replaces.
    fn versions(&mut self, at: Sequence, record: &Record, sealed: &Sealed) -> VerifyResult<()> {
        let Some(profile) = record.personal_for().filter(SealedFor::is_versioned) else { return Ok(()) };
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
                let whose = self.journal.names.of(record.owner);
                Err(broken(
                    Promise::Sealed,
                    Some(at),
                    whose,
                    format!("{what} that opens"),
                    "bytes that its key refuses",
                ))
            }
        }
    }
}

impl JournalSummary {
    /// The full name of an account, with the outside names of ledgers.
    pub(super) fn account(&self, ledger: LedgerId, account: Account) -> String {
        account.name(ledger.group().unwrap_or_default(), |ledger| self.names.of(ledger))
    }

    fn concern(&mut self, at: Sequence, record: &Record) {
        self.concerning.entry(record.owner).or_default().own.push(at.0);
        for ledger in record.other_ledgers() {
            self.concerning.entry(ledger).or_default().foreign.push(at.0);
        }
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
        let derived = DerivedCheck::new(&store).unwrap();
        let (journal, keys) = (JournalSummary::default(), KeysOfLastDay::default());
        let (against, receivables) = (CheckpointCheck::default(), ReceivableSums::default());
        let profiles = HashMap::new();
        let (extents, keyring) = (Extents::default(), None);
        let of = (&extents, Partition(0));
        let mut checker =
            Checker { of, keyring, journal, against, derived, keys, receivables, profiles, booked_at_ms: None };
        for (booked_at_ms, is_sound) in [(5, true), (5, true), (6, true), (5, false)] {
            let (partition, first, previous) = (Partition(0), Sequence(1), BlockHash::ZERO);
            let checked = checker.block(&Block { partition, first, booked_at_ms, previous, records: Vec::new() });
            match checked {
                Ok(()) => assert!(is_sound, "{booked_at_ms}"),
                Err(error) => {
                    assert!(!is_sound && error.to_string().contains("booking times never go back"), "{error}")
                }
            }
        }
    }
}
