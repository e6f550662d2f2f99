//! Model test of the balance files: as of any Record they tell what a fold from the first Record
//! tells, whichever files there are, lost or damaged.

use std::cell::Cell;
use std::collections::BTreeMap;

use ledger::account::Account;
use ledger::entry::Balance;
use ledger::event::{Event, SellerPart, Split, Terms};
use ledger::fees::{Commission, PaymentMethod};
use ledger::id::{GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::{Decision, Record};
use proptest::prelude::*;

use super::*;
use crate::store::{Block, Head, Partition};
use crate::testkit::MemoryStore;

/// Milliseconds between two blocks: some 12 of them are a month.
const STEP_MS: i64 = 60 * 60 * 60 * 1000;

fn paid(group: u32, number: u64, recipients: u32) -> Record {
    let splits = (1..=recipients).map(|number| Split { recipient: RecipientNumber(number), amount: Centavos(7) });
    let terms = Terms {
        amount: Centavos(10_000 + number as i64),
        method: PaymentMethod::Pix,
        installments: 1,
        splits: splits.collect(),
        commission: Commission::default(),
        settlement_days: 0,
        initial_fee: None,
    };
    let charge = ObjectId(u128::from(number) << 64 | u128::from(group));
    let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
    let event = Event::PixPaid { charge, terms, seller, end_to_end_id: String::new(), opened: number };
    Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(group)), number, Timestamp(number as i64))
}

/// A journal of blocks, each of some Records: the group and the recipients of each.
fn journal(blocks: &[Vec<(u32, u32)>]) -> MemoryStore {
    let store = MemoryStore::new();
    let part = store.part();
    let mut ordinals = BTreeMap::new();
    for (at, records) in (1..).zip(blocks) {
        let Head { next: first, hash: previous, .. } = part.head().unwrap();
        let records = records.iter().map(|(group, recipients)| {
            let ordinal = ordinals.entry(*group).and_modify(|ordinal| *ordinal += 1).or_insert(1);
            let mut bytes = Vec::new();
            paid(*group, *ordinal, *recipients).encode(&mut bytes);
            bytes
        });
        let records = records.collect();
        part.append(&Block { partition: Partition(0), first, booked_at_ms: at * STEP_MS, previous, records }).unwrap();
    }
    store
}

/// The balances after a Record, folded from the first one.
fn folded(store: &Part, through: u64) -> Vec<(LedgerId, Account, Balance)> {
    let mut balances: BTreeMap<(LedgerId, Account), Balance> = BTreeMap::new();
    for sequence in 1..=through {
        let record = crate::records::record(store, Sequence(sequence)).unwrap();
        for entry in &record.entries {
            for posting in entry.postings() {
                balances.entry((entry.ledger(), posting.account)).or_default().post(posting);
            }
        }
    }
    balances.into_iter().map(|((ledger, account), balance)| (ledger, account, balance)).collect()
}

fn sorted(as_of: &AsOf) -> Vec<(LedgerId, Account, Balance)> {
    let mut rows: Vec<_> = as_of.rows().map(Result::unwrap).collect();
    rows.sort_unstable_by_key(|(ledger, account, _)| (*ledger, *account));
    rows
}

/// Everything that the files tell as of every Record.
fn check_all(files: &BalanceFiles, store: &Part, last: u64) {
    for through in 0..=last {
        let (as_of, expected) = (files.as_of(Sequence(through)).unwrap(), folded(store, through));
        assert_eq!(as_of.through(), Sequence(through));
        assert_eq!(sorted(&as_of), expected, "as of {through}");
        let group = |ledger: LedgerId| ledger.group().unwrap_or_default();
        assert!(as_of.rows().map(Result::unwrap).is_sorted_by_key(|(ledger, ..)| group(ledger)), "group by group");
        for ledger in expected.iter().map(|(ledger, ..)| *ledger) {
            let own =
                expected.iter().filter(|(of, ..)| *of == ledger).map(|(_, account, balance)| (*account, *balance));
            assert_eq!(as_of.ledger(ledger).unwrap(), own.collect(), "{ledger:?} as of {through}");
        }
        let (told, of) = (Cell::new(0), Cell::new(0));
        let sums = files.sums_as_of(Sequence(through), |read, most| {
            assert!(read >= told.replace(read) && most >= of.replace(most) && read <= most, "{read} of {most}");
        });
        let sums = sums.unwrap();
        assert_eq!((sums.through, sums.is_balanced), (Sequence(through), true), "as of {through}");
        let debits: i128 = sums.kinds.iter().map(|kind| kind.balance.debits).sum();
        assert_eq!(debits, expected.iter().map(|(.., balance)| balance.debits).sum::<i128>());
        assert_eq!(sums.kinds.iter().map(|kind| kind.count).sum::<u64>(), expected.len() as u64);
    }
}

fn names(store: &Part) -> Vec<String> {
    store.files().unwrap().into_iter().map(|(name, _)| name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn balances_as_of_any_record_are_those_of_a_fold(
        blocks in prop::collection::vec(prop::collection::vec((1..4_u32, 0..3_u32), 1..4), 1..30),
        records in 1..40_u64,
        accounts in 1..30_usize,
        made in 0..30_usize,
        damaged in any::<prop::sample::Index>(),
    ) {
        let store = journal(&blocks).part();
        let last = store.head().unwrap().next.0 - 1;
        let files = BalanceFiles::open(store.clone(), BalanceFileOptions { records, accounts }).unwrap();
        let count = |blocks: &[Vec<(u32, u32)>]| blocks.iter().map(|block| block.len() as u64).sum::<u64>();
        files.settle(Sequence(count(&blocks[..made.min(blocks.len())]))).unwrap();
        check_all(&files, &store, last);
        files.settle(Sequence(last)).unwrap();
        let all = names(&store);
        files.settle(Sequence(last)).unwrap();
        prop_assert_eq!(&names(&store), &all, "nothing is made twice");
        check_all(&files, &store, last);
        if !all.is_empty() {
            let name = &all[damaged.index(all.len())];
            let mut bytes = store.file_part(name, 0, 1 << 20).unwrap().unwrap();
            let place = damaged.index(bytes.len());
            bytes[place] ^= 1;
            store.put_file(name, &bytes).unwrap();
            let again = BalanceFiles::open(store.clone(), BalanceFileOptions { records, accounts }).unwrap();
            for through in 0..=last {
                if let Ok(as_of) = again.as_of(Sequence(through)) {
                    let rows: Result<Vec<_>, _> = as_of.rows().collect();
                    prop_assert!(rows.is_err() || sorted(&as_of) == folded(&store, through), "never a wrong balance");
                }
            }
        }
    }
}

#[test]
fn a_file_stands_at_each_months_end_and_a_damaged_one_is_made_again() {
    let store = journal(&vec![vec![(1, 1), (2, 0)]; 40]).part();
    let last = Sequence(80);
    let options = BalanceFileOptions { records: 1_000, accounts: 1_000 };
    let files = BalanceFiles::open(store.clone(), options).unwrap();
    files.settle(last).unwrap();
    let cuts: Vec<_> = names(&store).iter().map(|name| Cut::of_file_name(name).unwrap()).collect();
    let ends = (1..40).filter(|at| month(at * STEP_MS) != month((at + 1) * STEP_MS));
    let ends: Vec<_> = ends.map(|at| Cut { through: Sequence(2 * at as u64), booked_at_ms: at * STEP_MS }).collect();
    assert_eq!(cuts, ends);
    assert!(ends.len() == 3, "a test of some months");
    for at in 0..42 {
        let around = files.around(Timestamp(at * STEP_MS), last);
        let first = 1 + 2 * (at - 1).max(0) as u64;
        assert!(around.start <= first && first <= around.end, "{around:?} at {first}");
    }

    let before = names(&store);
    let bytes = |name: &str| store.file_part(name, 0, 1 << 20).unwrap().unwrap();
    let whole: Vec<_> = before.iter().map(|name| bytes(name)).collect();
    for (name, place) in [(&before[0], 0), (&before[2], whole[2].len() - 1)] {
        let mut damaged = bytes(name);
        damaged[place] ^= 0x40;
        store.put_file(name, &damaged).unwrap();
    }
    let files = BalanceFiles::open(store.clone(), options).unwrap();
    let first = files.as_of(Sequence(cuts[0].through.0)).unwrap();
    assert!(first.rows().any(|row| row.is_err()), "its page is damaged");
    assert_eq!(sorted(&files.as_of(cuts[0].through).unwrap()), folded(&store, cuts[0].through.0), "not twice");
    assert_eq!(sorted(&files.as_of(last).unwrap()), folded(&store, 80), "the end of the last one is damaged");
    files.settle(last).unwrap();
    assert_eq!(names(&store), before);
    assert_eq!(before.iter().map(|name| bytes(name)).collect::<Vec<_>>(), whole, "the same bytes");
}

#[test]
fn verification_names_a_file_that_differs_and_counts_a_damaged_one() {
    let store = journal(&vec![vec![(1, 1)]; 40]).part();
    let files = BalanceFiles::open(store.clone(), BalanceFileOptions { records: 7, accounts: 1_000 }).unwrap();
    files.settle(Sequence(40)).unwrap();
    let name = names(&store).remove(1);
    let cut = Cut::of_file_name(&name).unwrap();
    let check = |store: &Part| {
        let mut check = BalanceFileCheck::new(store).unwrap();
        let mut found = Vec::new();
        for at in 1..=40 {
            while check.is_due(Sequence(at)) {
                found.extend(check.compare(Sequence(at), folded(store, at).into_iter()).unwrap());
            }
        }
        (found, check.finish())
    };
    let all = names(&store).len() as u64;
    assert_eq!(check(&store), (Vec::new(), (all, 0)));
    let mut forged = files.as_of(Sequence(cut.through.0 - 1)).unwrap();
    (forged.through, forged.booked_at_ms) = (cut.through, cut.booked_at_ms);
    let mut bytes = Vec::new();
    file::write(cut, forged.sorted_rows(), &mut bytes).unwrap().unwrap();
    store.put_file(&name, &bytes).unwrap();
    assert_eq!(check(&store), (vec![name.clone()], (all, 0)));
    bytes[40] ^= 1;
    store.put_file(&name, &bytes).unwrap();
    assert_eq!(check(&store), (Vec::new(), (all - 1, 1)));
}
