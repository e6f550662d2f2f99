//! Model test of the index: it agrees with a plain list of everything, for any sequence of Records,
//! over runs, merges, restarts, losses and damage.

use std::collections::HashMap;

use ledger::event::SellerPart;
use ledger::fees::Commission;
use ledger::recipient::credits;
use ledger::{
    CardBrand, CardFace, CardRefusal, Centavos, Decision, Event, Idempotency, ObjectId, Payer, PaymentMethod,
    RecipientNumber, SealedFor, Split, Terms,
};
use proptest::prelude::*;

use super::key::{mix, occurrences};
use super::*;
use crate::personal_index::PersonalValue;
use crate::seal::Keyring;
use store::testkit::MemoryStore;
use store::{Block, BlockHash, Partition};

const OPTIONS: IndexOptions = IndexOptions { records_per_run: 40, runs_merged: 3 };

/// One step of a script: the owner, the command, and the number of an open charge.
type Step = (bool, u8, u16);

/// Records as they would come, and every list as it should be.
#[derive(Default)]
struct Script {
    store: MemoryStore,
    records: Vec<(Sequence, Arc<Record>)>,
    ordinals: HashMap<LedgerId, u64>,
    open: Vec<(GroupNumber, ObjectId, Terms, u64)>,
    lists: HashMap<IndexKey, Vec<u64>>,
    balances: HashMap<GroupNumber, Vec<(u64, Balances)>>,
    changed: HashMap<LedgerId, Vec<(Sequence, Option<Credit>)>>,
}

impl Script {
    fn step(&mut self, (other_group, what, which): Step) {
        let group = GroupNumber(1 + u32::from(other_group));
        let merchant = LedgerId::Merchant(group);
        let ordinal = self.ordinals.get(&merchant).copied().unwrap_or_default() + 1;
        let charge = ObjectId((1_u128 << 100) * (self.records.len() as u128 + 1) + u128::from(which));
        let splits = (0..which % 3).map(|number| Split {
            recipient: RecipientNumber(1 + u32::from(number * which % 2)),
            amount: Centavos(10 + i64::from(number)),
        });
        let terms = Terms {
            amount: Centavos(10_000),
            method: [PaymentMethod::Pix, PaymentMethod::CreditCard, PaymentMethod::DebitCard][usize::from(what % 3)],
            installments: 1,
            splits: splits.collect(),
            commission: Commission::default(),
            settlement_days: 30,
            initial_fee: None,
        };
        let is_opening = what % 2 == 0 || self.open.is_empty();
        let (group, event) = if is_opening {
            self.open.push((group, charge, terms.clone(), ordinal));
            let expires_at = (terms.method == PaymentMethod::Pix).then_some(Timestamp(9_000_000));
            (group, Event::ChargeOpened { charge, terms, card: None, expires_at, rail: None })
        } else {
            let (group, charge, terms, opened) = self.open.swap_remove(usize::from(which) % self.open.len());
            let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
            let recipients = terms.splits.iter().map(|split| split.recipient).collect();
            let is_paid = what < 200;
            let event = match (terms.method, is_paid) {
                (PaymentMethod::Pix, true) => {
                    Event::PixPaid { charge, terms, seller, end_to_end_id: String::new(), opened }
                }
                (PaymentMethod::Pix, false) => Event::PixCancelled { charge, recipients, opened },
                (method, false) => Event::CardRefused { charge, refusal: CardRefusal::Failed, opened, method },
                (_, true) => {
                    let due = Timestamp(77_000_000).minute();
                    let acquirer_mdr = Centavos(1);
                    Event::CardCaptured {
                        charge,
                        terms,
                        acquirer_mdr,
                        seller,
                        seller_due: due,
                        splits_due: due,
                        opened,
                        brand: None,
                    }
                }
            };
            (group, event)
        };
        let merchant = LedgerId::Merchant(group);
        let ordinal = self.ordinals.entry(merchant).or_default();
        *ordinal += 1;
        let sequence = self.records.len() as u64 + 1;
        let mut record = Decision::of(event).into_record(merchant, *ordinal, Timestamp(1_000 * sequence as i64));
        if let Some((_, _, _, opened)) = self.open.last_mut().filter(|_| is_opening) {
            *opened = record.ordinal;
        }
        if which % 4 == 0 {
            let key = ledger::id::Fingerprint(u128::from(which).to_be_bytes());
            record.idempotency = Some(Idempotency { key, body: key });
        }
        self.append(record);
    }

    fn append(&mut self, record: Record) {
        let sequence = self.records.len() as u64 + 1;
        self.count(sequence, &record);
        let head = self.store.part().head().unwrap();
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        let previous = if sequence == 1 { BlockHash::ZERO } else { head.hash };
        let block = Block {
            partition: Partition(0),
            first: Sequence(sequence),
            booked_at_ms: sequence as i64,
            previous,
            records: vec![bytes],
        };
        self.store.part().append(&block).unwrap();
        self.records.push((Sequence(sequence), Arc::new(record)));
    }

    /// The plain list of everything.
    fn count(&mut self, sequence: u64, record: &Record) {
        let lists = &mut self.lists;
        occurrences(sequence, record, |key, number| lists.entry(key).or_default().push(number));
        for (ledger, credit) in credits::changed(record) {
            self.lists.entry(IndexKey::of(LedgerList::Changed, ledger)).or_default().push(sequence);
            self.changed.entry(ledger).or_default().push((Sequence(sequence), credit));
        }
        let group = record.owner.group().unwrap();
        if record.entries_of(record.owner).next().is_some() {
            let before = self.balances.entry(group).or_default();
            let mut balances = before.last().map_or(Balances::default(), |(_, balances)| *balances);
            record.entries_of(record.owner).for_each(|entry| balances.post(entry));
            before.push((sequence, balances));
            self.lists.entry(IndexKey::entries(record.owner)).or_default().push(sequence);
        }
    }

    fn open_index(&self) -> Index {
        self.open_index_with(None)
    }

    fn open_index_with(&self, personal: Option<PersonalIndex>) -> Index {
        let index = Index::open(self.store.part(), OPTIONS, personal).unwrap();
        let sealed = index.indexed_through();
        let tail: Vec<_> = self.records.iter().filter(|(sequence, _)| *sequence > sealed).cloned().collect();
        for block in tail.chunks(7) {
            let first = block[0].0;
            index.count(block, |group| Ok(index.balances_before(group, &[first])?[0])).unwrap();
        }
        index
    }

    /// What a page should be.
    fn page(
        &self,
        plus: &[IndexKey],
        minus: &[IndexKey],
        range: &Range<u64>,
        skip: u64,
        count: usize,
    ) -> (u64, Vec<ListedNumber>) {
        let all = |keys: &[IndexKey]| {
            let numbers = keys.iter().filter_map(|key| self.lists.get(key)).flatten().copied();
            let mut numbers: Vec<u64> = numbers.filter(|number| range.contains(number)).collect();
            numbers.sort_unstable();
            numbers
        };
        let mut left = all(plus);
        for removed in all(minus) {
            left.remove(left.iter().position(|number| *number == removed).unwrap());
        }
        let mut listed: Vec<ListedNumber> = Vec::new();
        for number in left {
            let index = listed.iter().filter(|listed| listed.number == number).count() as u32;
            listed.push(ListedNumber { number, index });
        }
        let total = listed.len() as u64;
        (total, listed.into_iter().rev().skip(skip as usize).take(count).collect())
    }

    /// How many runs equal what the journal makes of them, and how many do not.
    fn check_runs(&self) -> (u64, u64) {
        let part = self.store.part();
        let mut check = RunCheck::new(&part).unwrap();
        for (sequence, record) in &self.records {
            assert!(check.count(sequence.0, record).unwrap().is_none());
        }
        check.finish()
    }

    fn check(&self, index: &Index) -> Result<(), TestCaseError> {
        let merchants = [1, 2].map(|group| LedgerId::Merchant(GroupNumber(group)));
        let lists = self.lists.keys();
        let mut sets: Vec<(Vec<IndexKey>, Vec<IndexKey>)> = lists.map(|key| (vec![*key], vec![])).collect();
        for group in [1, 2].map(GroupNumber) {
            for number in [1, 2].map(RecipientNumber) {
                let recipient = LedgerId::Recipient(group, number);
                sets.push((
                    vec![IndexKey::of(LedgerList::SplitsListed, recipient)],
                    vec![IndexKey::of(LedgerList::SplitsRemoved, recipient)],
                ));
            }
            let methods = [PaymentMethod::Pix, PaymentMethod::CreditCard, PaymentMethod::DebitCard];
            let of = |list| methods.map(|method| IndexKey::charges(group, method, list)).to_vec();
            let closed = [of(ChargeList::Paid), of(ChargeList::Refused), of(ChargeList::Cancelled)].concat();
            sets.push((of(ChargeList::Opened), closed));
        }
        let end = self.records.len() as u64 + 2;
        for (plus, minus) in sets {
            for (range, skip, count) in
                [(0..u64::MAX, 0, 5), (0..u64::MAX, 3, 1_000), (end / 3..end / 2, 0, 4), (0..end / 2, end / 5, 3)]
            {
                let found = index.page(&plus, &minus, Slice::new(range.clone(), skip, count)).unwrap();
                let expected = self.page(&plus, &minus, &range, skip, count);
                prop_assert_eq!(found, expected, "{:?} less {:?} in {:?} after {}", plus, minus, range, skip);
            }
        }
        for merchant in merchants {
            let own = self.lists.get(&IndexKey::of(LedgerList::Own, merchant)).cloned().unwrap_or_default();
            let ordinals: Vec<u64> = (1..=own.len() as u64).rev().collect();
            let expected: Vec<_> = own.iter().rev().copied().map(Sequence).collect();
            prop_assert_eq!(index.own(merchant, &ordinals).unwrap(), expected);
            for absent in [0, own.len() as u64 + 1] {
                prop_assert!(index.own(merchant, &[absent]).is_err());
            }
            let own: Vec<_> = own.into_iter().map(Sequence).collect();
            for range in [0..u64::MAX, end / 3..end / 2] {
                let mut expected = own.clone();
                expected.retain(|sequence| range.contains(&sequence.0));
                prop_assert_eq!(index.sequences(IndexKey::of(LedgerList::Own, merchant), range).unwrap(), expected);
            }
            let group = merchant.group().unwrap();
            let events = self.lists.get(&IndexKey::webhook_events(group)).cloned().unwrap_or_default();
            let from = events.len() / 2;
            let places = from as u64..events.len() as u64 + 3;
            prop_assert_eq!(index.places(IndexKey::webhook_events(group), places).unwrap(), &events[from..]);
            let balances = self.balances.get(&group).cloned().unwrap_or_default();
            let sequences: Vec<_> = (1..end).step_by(5).map(Sequence).collect();
            let expected: Vec<_> = sequences
                .iter()
                .map(|sequence| {
                    let last = balances.iter().rev().find(|(at, _)| *at < sequence.0);
                    last.map_or(Balances::default(), |(_, balances)| *balances)
                })
                .collect();
            prop_assert_eq!(index.balances_before(group, &sequences).unwrap(), expected);
        }
        for key in self.records.iter().flat_map(|(_, record)| record.keys()) {
            let mut expected: Vec<_> = self.lists[&IndexKey::key(key)].iter().copied().map(Sequence).collect();
            expected.dedup();
            prop_assert_eq!(index.with_key(key, Timestamp(i64::MIN)).unwrap(), expected);
        }
        for (ledger, changed) in &self.changed {
            for range in [0..u64::MAX, end / 3..end / 2] {
                let mut expected = changed.clone();
                expected.retain(|(sequence, _)| range.contains(&sequence.0));
                prop_assert_eq!(index.changed(*ledger, range).unwrap(), expected);
            }
        }
        Ok(())
    }
}

fn script(steps: &[Step]) -> Script {
    let mut script = Script::default();
    steps.iter().for_each(|step| script.step(*step));
    script
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    proptest::collection::vec((any::<bool>(), any::<u8>(), 0..600_u16), 0..420)
}

fn runs(store: &Part) -> Vec<String> {
    store.files().unwrap().into_iter().map(|(name, _)| name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn every_page_of_every_list_is_right(steps in steps()) {
        let script = script(&steps);
        let index = script.open_index();
        script.check(&index)?;
        index.settle();
        script.check(&index)?;
        drop(index);
        prop_assert_eq!(script.check_runs(), (runs(&script.store.part()).len() as u64, 0));
        script.check(&script.open_index())?;
    }

    #[test]
    fn what_is_lost_or_damaged_is_written_again_as_it_was(
        steps in proptest::collection::vec((any::<bool>(), any::<u8>(), 0..600_u16), 200..420),
        at: prop::sample::Index,
        which: prop::sample::Index,
        is_lost: bool,
    ) {
        let script = script(&steps);
        let index = script.open_index();
        index.settle();
        let names = runs(&script.store.part());
        prop_assert!(!names.is_empty());
        let name = which.get(&names);
        let bytes = script.store.part().file_part(name, 0, usize::MAX).unwrap().unwrap();
        let mut damaged = bytes.clone();
        damaged[at.index(bytes.len())] ^= 4;
        script.store.part().put_file(name, &damaged).unwrap();
        prop_assert_eq!(script.check_runs(), (names.len() as u64 - 1, 1));
        // While it is open, and when it is opened.
        script.check(&index)?;
        drop(index);
        if is_lost {
            script.store.part().remove_file(name).unwrap();
        } else {
            script.store.part().put_file(name, &damaged).unwrap();
        }
        let index = script.open_index();
        script.check(&index)?;
        // The last run is written from what is in memory.
        index.settle();
        prop_assert_eq!(script.store.part().file_part(name, 0, usize::MAX).unwrap(), Some(bytes));
    }
}

#[test]
fn full_ranges_become_runs_and_runs_are_merged() {
    let steps: Vec<Step> = (0..400_u16).map(|n| (n % 5 == 0, n as u8, n)).collect();
    let script = script(&steps);
    let index = script.open_index();
    index.settle();
    let lengths: Vec<u64> = index.shared.runs.read().iter().map(|run| run.cover.last + 1 - run.cover.first).collect();
    assert_eq!(
        lengths,
        [378],
        "nine runs of at least 40 Records, in blocks of 7, three by three, and these three once more"
    );
    assert_eq!(runs(&script.store.part()).len(), 1, "what was merged is removed");
    assert_eq!(index.indexed_through(), Sequence(378));
}

/// However many Records there are, a look-up asks few runs, and each takes little memory.
#[test]
fn the_number_of_runs_grows_as_the_logarithm_of_the_records() {
    let options = IndexOptions { records_per_run: 10, runs_merged: 4 };
    let index = Index::open(MemoryStore::new().part(), options, None).unwrap();
    for sequence in 1..=10 * 4_u64.pow(5) {
        let record =
            Decision::of(Event::ClockMoved { offset_ms: 1 }).into_record(LedgerId::System, sequence, Timestamp(1));
        index.count(&[(Sequence(sequence), Arc::new(record))], |_| Ok(Balances::default())).unwrap();
        index.settle();
        assert!(index.runs().0 <= 3 * 6, "{} runs after {sequence} Records", index.runs().0);
    }
    assert_eq!(index.runs().0, 1, "10,240 Records are 4 to the fifth runs");
    let own = index.own(LedgerId::System, &[1, 5_000, 10_240]).unwrap();
    assert_eq!(own, [1, 5_000, 10_240].map(Sequence));
}

/// Files that cannot be written for a while, as where none can be opened: counting goes on, and the
/// runs are written later.
#[test]
fn runs_that_cannot_be_written_are_written_later() {
    let steps: Vec<Step> = (0..600_u16).map(|n| (n % 5 == 0, n as u8, n)).collect();
    let script = script(&steps);
    script.store.fail_files(true);
    let index = script.open_index();
    script.check(&index).unwrap();
    assert_eq!(runs(&script.store.part()), Vec::<String>::new());
    script.store.fail_files(false);
    let is_written = || {
        let work = index.shared.work.lock();
        work.waiting == 0 && !work.is_failing
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_written() {
        assert!(Instant::now() < deadline, "it is not tried again");
        thread::sleep(Duration::from_millis(5));
    }
    script.check(&index).unwrap();
    assert_eq!(index.indexed_through(), Sequence(588), "fourteen runs of 42 Records");
    assert!(script.store.part().store().monitor().derived_failures() > 0);
}

/// A damaged run can be merged while it is written again: a merge does not read its filter.
#[test]
fn a_run_that_was_merged_while_it_was_mended_is_not_taken_up() {
    let steps: Vec<Step> = (0..130_u16).map(|n| (n % 5 == 0, n as u8, n)).collect();
    let script = script(&steps);
    let index = script.open_index();
    index.settle();
    let before = runs(&script.store.part());
    assert_eq!(before.len(), 1, "three were merged");
    index.shared.write_again(1, 42).unwrap();
    assert_eq!(runs(&script.store.part()), before);
    script.check(&index).unwrap();
}

#[test]
fn an_index_ahead_of_its_journal_tells_that_the_journal_is_short() {
    let steps: Vec<Step> = (0..100_u16).map(|n| (false, n as u8, n)).collect();
    let full = script(&steps);
    full.open_index().settle();
    let short = script(&steps[..30]);
    for (name, _) in full.store.part().files().unwrap() {
        short
            .store
            .part()
            .put_file(&name, &full.store.part().file_part(&name, 0, usize::MAX).unwrap().unwrap())
            .unwrap();
    }
    let refused = Index::open(short.store.part(), OPTIONS, None).map(|_| ()).unwrap_err();
    assert!(refused.to_string().contains("the journal ends before"), "{refused}");
}

#[test]
fn a_run_that_says_something_else_than_the_journal_is_found() {
    let steps: Vec<Step> = (0..100_u16).map(|n| (false, n as u8, n)).collect();
    let script = script(&steps);
    script.open_index().settle();
    let (name, _) = script.store.part().files().unwrap().remove(0);
    let (first, last) = Cover::of_file_name(&name).unwrap();
    let mut forged = Recent::default();
    for (sequence, record) in &script.records[first as usize - 1..last as usize] {
        let record = Record { idempotency: None, ..Record::clone(record) };
        forged.count(sequence.0, &record, &[], &mut IdMap::default(), |_| ());
    }
    script.store.part().put_file(&name, &forged.to_run().unwrap().1).unwrap();
    let part = script.store.part();
    let mut check = RunCheck::new(&part).unwrap();
    let found = script.records.iter().find_map(|(sequence, record)| check.count(sequence.0, record).unwrap());
    assert_eq!(found.unwrap().name, name);
}

#[test]
fn what_no_run_has_is_looked_up_without_reading_a_file() {
    let steps: Vec<Step> = (0..400_u16).map(|n| (false, n as u8, n)).collect();
    let script = script(&steps);
    let index = script.open_index();
    index.settle();
    let runs = runs(&script.store.part()).len() as u64;
    let before = script.store.file_parts_read();
    for absent in 0..1_000_u128 {
        let key = Fingerprint((absent << 64 | 1 << 127).to_be_bytes());
        assert_eq!(index.with_key(key, Timestamp(i64::MIN)).unwrap(), []);
    }
    let read = script.store.file_parts_read() - before;
    assert!(read < 100 * runs, "{read} parts of files are read: a filter says of some that it may hold one");
}

#[test]
fn a_new_key_is_looked_up_while_a_block_is_counted() {
    let steps: Vec<Step> = (0..100_u16).map(|n| (false, n as u8, n)).collect();
    let script = script(&steps);
    let index = Arc::new(script.open_index());
    index.settle();
    let _counting = index.shared.state.write();
    let (sender, found) = std::sync::mpsc::channel();
    let reader = Arc::clone(&index);
    thread::spawn(move || {
        let new = (0..100_u128).map(|number| Fingerprint(((u128::from(u64::MAX) - number) << 64).to_be_bytes()));
        new.for_each(|key| sender.send(reader.with_key(key, Timestamp(i64::MIN)).unwrap()).unwrap());
    });
    for _ in 0..100 {
        let sequences = found.recv_timeout(std::time::Duration::from_secs(60)).expect("nobody waits");
        assert!(sequences.is_empty());
    }
}

/// Ranges fill up, are written and merged meanwhile, and filters of keys are let go.
#[test]
fn a_key_is_found_at_every_moment() {
    let steps: Vec<Step> = (0..1_500_u16).map(|n| (false, n as u8, n)).collect();
    let script = script(&steps);
    let index = Index::open(script.store.part(), OPTIONS, None).unwrap();
    let key = |sequence: u64| Fingerprint((u128::from(sequence) << 64).to_be_bytes());
    let counted = std::sync::atomic::AtomicU64::new(0);
    let last = script.records.len() as u64;
    thread::scope(|scope| {
        scope.spawn(|| {
            while counted.load(Ordering::Acquire) < last {
                let through = counted.load(Ordering::Acquire);
                for sequence in
                    (1..=through).step_by(37).chain(through.saturating_sub(100)..=through).filter(|one| *one > 0)
                {
                    let found = index.with_key(key(sequence), Timestamp(i64::MIN)).unwrap();
                    assert_eq!(found, [Sequence(sequence)], "{through} are counted");
                }
            }
        });
        for block in script.records.chunks(7) {
            let keyed = block.iter().map(|(sequence, record)| {
                let idempotency = Some(Idempotency { key: key(sequence.0), body: key(sequence.0) });
                (*sequence, Arc::new(Record { idempotency, ..Record::clone(record) }))
            });
            let (first, keyed) = (block[0].0, keyed.collect::<Vec<_>>());
            index.count(&keyed, |group| Ok(index.balances_before(group, &[first])?[0])).unwrap();
            counted.store(block.last().unwrap().0.0, Ordering::Release);
        }
    });
    assert!(index.runs().0 > 1, "ranges were written");
}

/// A card charge with a payer; `number` is the ordinal of its opening.
fn charge_with_payer(keyring: &Keyring, number: u64) -> Record {
    let scattered = mix(number);
    let now = Timestamp(1_795_000_000_000 + number as i64);
    let charge = ObjectId(((now.0 as u128) << 80) | (8 << 76) | u128::from(scattered));
    let payer = Payer {
        name: format!("Maria{} Silva{} de Souza{}", number % 50, scattered % 900, scattered % 700),
        document: format!("{:011}", scattered % 100_000_000_000),
        email: Some(format!("p{scattered}@example.com")),
        ..Payer::default()
    };
    let terms = Terms {
        amount: Centavos((scattered % 30_000) as i64),
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        commission: Commission::default(),
        settlement_days: 30,
        initial_fee: None,
    };
    let face = CardFace { bin: 411_111, last4: (scattered % 10_000) as u16, brand: CardBrand::Visa };
    let event = Event::ChargeOpened { charge, terms, card: Some(face), expires_at: None, rail: None };
    let mut record = Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(1)), number, now);
    record.personal = Some(keyring.seal_value(SealedFor::payer(charge), now, &payer).unwrap());
    record
}

/// A card charge has two Records, so every second sequence is that of an opening.
#[test]
fn values_to_search_by_cost_at_most_80_bytes_a_charge() {
    const CHARGES: u64 = 8_192;
    let keyring = Arc::new(Keyring::open([7; 32], Arc::new(MemoryStore::new())).unwrap());
    let personal = PersonalIndex::new(Arc::clone(&keyring), str::to_lowercase);
    let mut counted = Recent::default();
    for number in 1..=CHARGES {
        let record = charge_with_payer(&keyring, number);
        let keys = personal.of_record(&record).unwrap();
        assert_eq!(keys.len(), 5, "three words, a document and an e-mail");
        counted.count(number * 2, &record, &keys, &mut IdMap::default(), |_| ());
    }
    counted.lists.retain(|key, _| key.is_value());
    let (_, bytes) = counted.to_run().unwrap();
    let each = bytes.len() as u64 / CHARGES;
    assert!((40..=80).contains(&each), "{each} bytes a charge");
}

#[test]
fn values_are_found_in_merged_runs_and_in_runs_that_were_written_again() {
    const CHARGES: u64 = 200;
    let keyring = Arc::new(Keyring::open([7; 32], Arc::new(MemoryStore::new())).unwrap());
    let personal = PersonalIndex::new(Arc::clone(&keyring), str::to_lowercase);
    let mut script = Script::default();
    for number in 1..=CHARGES {
        script.append(charge_with_payer(&keyring, number));
    }
    let document = |number| PersonalValue::Document(format!("{:011}", mix(number) % 100_000_000_000));
    let check = |script: &Script| {
        let index = script.open_index_with(Some(personal.clone()));
        index.settle();
        for number in 1..=CHARGES {
            let amount = PlainValue::Amount(Centavos((mix(number) % 30_000) as i64));
            let sealed = personal.search_keys(&[document(number)]).unwrap().concat();
            for key in sealed.into_iter().chain([SearchKey::plain(amount)]) {
                let found = index.with_value(key, 0..u64::MAX).unwrap();
                assert!(found.contains(&(Sequence(number), FoundKind::Charge)), "{number}: {found:?}");
            }
        }
        let absent = personal.search_keys(&[document(CHARGES + 1)]).unwrap().concat();
        assert!(absent.into_iter().all(|key| index.with_value(key, 0..u64::MAX).unwrap().is_empty()));
    };
    check(&script);
    let part = script.store.part();
    let (first, ..) = part.files().unwrap().remove(0);
    part.remove_file(&first).unwrap();
    drop(part);
    check(&script);
    let (whole, others) = script.check_runs();
    assert!(whole > 0 && others == 0, "{whole} runs are whole, {others} are not");
}
