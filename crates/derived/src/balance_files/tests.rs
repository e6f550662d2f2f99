//! Model test of the balance files: as of any Record they equal a fold from the first Record,
//! whichever files exist, are lost or damaged.

use std::collections::BTreeMap;

use ledger::event::{AnticipatedSplit, Due, SellerPart, SettledLine, SplitKey};
use ledger::fees::Commission;
use ledger::{
    Account, Balance, Batch, CardBrand, CardFace, CardRefusal, Centavos, Decision, Event, Fingerprint, GroupNumber,
    LedgerId, ObjectId, PaymentMethod, Rate, RecipientNumber, Record, Settings, SettledObject, Split, Terms,
};
use proptest::prelude::*;

use super::carried_facts::{Change, RowKey};
use super::*;
use store::testkit::MemoryStore;
use store::{Block, Head, Partition};

/// Milliseconds between two blocks, where nothing else is said: some 12 of them are a month.
const STEP_MS: i64 = 60 * HOUR_MS;
const HOUR_MS: i64 = 60 * 60 * 1000;

fn terms(number: u64, recipients: u32) -> Terms {
    let splits = (1..=recipients).map(|number| Split { recipient: RecipientNumber(number), amount: Centavos(7) });
    Terms {
        amount: Centavos(10_000 + number as i64),
        method: PaymentMethod::Pix,
        installments: 1,
        splits: splits.collect(),
        commission: Commission::default(),
        settlement_days: 0,
        initial_fee: None,
    }
}

fn charge(group: u32, number: u64) -> ObjectId {
    ObjectId(u128::from(number) << 64 | u128::from(group))
}

fn paid(group: u32, number: u64, recipients: u32) -> Record {
    let (terms, charge) = (terms(number, recipients), charge(group, number));
    let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
    let event = Event::PixPaid { charge, terms, seller, end_to_end_id: String::new(), opened: number };
    Decision::of(event).into_record(LedgerId::Merchant(GroupNumber(group)), number, Timestamp(number as i64))
}

/// A journal of blocks, each of some Records: the group and the recipients of each.
fn journal(blocks: &[Vec<(u32, u32)>], step_ms: i64) -> MemoryStore {
    journal_of(
        blocks,
        step_ms,
        |(group, _)| *group,
        |(group, recipients), ordinal, _| paid(*group, ordinal, *recipients),
    )
}

/// A journal of blocks, each of some Records: whose each is, and how its ordinal and the time of
/// its booking make it.
fn journal_of<T>(
    blocks: &[Vec<T>],
    step_ms: i64,
    whose: impl Fn(&T) -> u32,
    mut made: impl FnMut(&T, u64, Timestamp) -> Record,
) -> MemoryStore {
    let store = MemoryStore::new();
    let part = store.part();
    let mut ordinals = BTreeMap::new();
    for (at, records) in (1..).zip(blocks) {
        let Head { next: first, hash: previous, .. } = part.head().unwrap();
        let records = records.iter().map(|of| {
            let ordinal = ordinals.entry(whose(of)).and_modify(|ordinal| *ordinal += 1).or_insert(1);
            let mut bytes = Vec::new();
            made(of, *ordinal, Timestamp(at * step_ms)).encode(&mut bytes);
            bytes
        });
        let records = records.collect();
        part.append(&Block { partition: Partition(0), first, booked_at_ms: at * step_ms, previous, records }).unwrap();
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

/// Everything in the files as of every Record.
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
        let sums = files.sums_as_of(Sequence(through)).unwrap();
        assert!(sums.is_balanced, "as of {through}");
        let debits: i128 = sums.kinds.iter().map(|kind| kind.balance.debits).sum();
        assert_eq!(debits, expected.iter().map(|(.., balance)| balance.debits).sum::<i128>());
        assert_eq!(sums.kinds.iter().map(|kind| kind.count).sum::<u64>(), expected.len() as u64);
    }
}

/// The cuts of the balance files.
fn cuts(store: &Part) -> Vec<FileCut> {
    names(store).iter().filter_map(|name| FileCut::of_file_name(name)).collect()
}

fn names(store: &Part) -> Vec<String> {
    store.files().unwrap().into_iter().map(|(name, _)| name).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn balances_as_of_any_record_are_those_of_a_fold(
        blocks in prop::collection::vec(prop::collection::vec((1..4_u32, 0..3_u32), 1..4), 1..30),
        step_hours in 10..400_i64,
        made in 0..30_usize,
        damaged in any::<prop::sample::Index>(),
    ) {
        let store = journal(&blocks, step_hours * HOUR_MS).part();
        let last = store.head().unwrap().next.0 - 1;
        let files = BalanceFiles::open(store.clone()).unwrap();
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
            let again = BalanceFiles::open(store.clone()).unwrap();
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
    let store = journal(&vec![vec![(1, 1), (2, 0)]; 40], STEP_MS).part();
    let last = Sequence(80);
    let files = BalanceFiles::open(store.clone()).unwrap();
    files.settle(last).unwrap();
    let (cuts, beside) = (cuts(&store), receivables::cuts(&store).unwrap());
    assert_eq!(cuts, beside, "what is due stands beside each");
    let ends = (1..40).filter(|at| month(at * STEP_MS) != month((at + 1) * STEP_MS));
    let ends: Vec<_> =
        ends.map(|at| FileCut { through: Sequence(2 * at as u64), booked_at_ms: at * STEP_MS }).collect();
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
    let files = BalanceFiles::open(store.clone()).unwrap();
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
    let kinds: Vec<_> = (0..40).map(|at| vec![at % 8]).collect();
    let store = journal_of(&kinds, STEP_MS, |_| 1, |kind, ordinal, at| carried(1, ordinal, *kind, at)).part();
    let files = BalanceFiles::open(store.clone()).unwrap();
    files.settle(Sequence(40)).unwrap();
    let name = names(&store).remove(1);
    let cut = FileCut::of_file_name(&name).unwrap();
    let check = |store: &Part| {
        let mut check = BalanceFileCheck::new(store).unwrap();
        let mut found = Vec::new();
        for at in 1..=40 {
            let (booked_at, record) = booked_record(store, Sequence(at)).unwrap();
            check.post(Sequence(at), booked_at, &record);
            found.extend(check.compare_receivables(Sequence(at)).unwrap());
            while check.is_due(Sequence(at)) {
                found.extend(check.compare(Sequence(at), folded(store, at).into_iter()).unwrap());
            }
        }
        (found, check.finish())
    };
    let all = names(&store).len() as u64;
    assert_eq!(check(&store), (Vec::new(), (all, 0)));
    let mut bytes = Vec::new();
    let (ledger, available) = (LedgerId::Merchant(GroupNumber(1)), Account::Available);
    let one_more = Change::Add(Balance { debits: 1, credits: 0 });
    for (key, change) in [
        (RowKey::of(ledger, available), one_more),
        (RowKey::first_of(ledger), Change::Gone),
        (RowKey::pending(GroupNumber(1), 77), Change::Put(Balance::default())),
        (RowKey::settings(GroupNumber(1), Sequence(1), 0), Change::Gone),
        (RowKey::settings(GroupNumber(1), Sequence(1), 1), Change::Put(Balance::default())),
    ] {
        let mut forged = files.as_of(cut.through).unwrap();
        forged.moved.0.insert(key, change);
        bytes.clear();
        forged.write(&mut bytes).unwrap();
        store.put_file(&name, &bytes).unwrap();
        assert_eq!(check(&store), (vec![name.clone()], (all, 0)), "{change:?} at {key:?}");
    }
    bytes[40] ^= 1;
    store.put_file(&name, &bytes).unwrap();
    assert_eq!(check(&store), (Vec::new(), (all - 1, 1)));
}

/// A Record of what a file has besides accounts, by a number for its kind. The group's first one
/// opens its merchant.
fn carried(group: u32, ordinal: u64, kind: u8, at: Timestamp) -> Record {
    let (charge, opened) = (charge(group, 1 + ordinal / 2), 1 + ordinal / 2);
    let (mut settings, terms) = (Settings::default(), terms(ordinal, 0));
    settings.fees.cashout = Centavos(1 << (ordinal % 50));
    settings.options.card_settlement_days = ordinal as u16;
    let card = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
    let due = |days: u16| at.plus_days(days).minute();
    let splits = [3, 40, 41].map(|days| AnticipatedSplit {
        split: SplitKey { charge, index: 0 },
        due: due(days),
        amount: Centavos(1_000 + i64::from(days)),
        fee: Centavos(9),
    });
    let owner = LedgerId::Merchant(GroupNumber(group));
    let number = RecipientNumber(ordinal as u32);
    let anticipated = || Event::SplitsAnticipated {
        id: ObjectId(1),
        splits: splits.to_vec(),
        target_days: 2,
        rate: Rate::default(),
        settlement_day: 0,
    };
    let (owner, event) = match kind {
        _ if ordinal == 1 => (owner, Event::MerchantOpened { id: ObjectId(u128::MAX - u128::from(group)), settings }),
        0 => (owner, Event::MerchantChanged { settings, before: None, reason: None }),
        1 => (
            owner,
            Event::RecipientRegistered {
                number,
                id: ObjectId(u128::from(ordinal) << 100),
                document: Fingerprint::default(),
            },
        ),
        2 => (owner, Event::ChargeOpened { charge, terms, card: Some(card), expires_at: None, rail: None }),
        3 => (owner, Event::ChargeOpened { charge, terms, card: None, expires_at: Some(at), rail: None }),
        4 => (owner, Event::PixCancelled { charge, recipients: Vec::new(), opened }),
        5 => (owner, Event::CardRefused { charge, refusal: CardRefusal::Failed, opened, method: terms.method }),
        6 => return paid(group, opened, 1),
        _ => (LedgerId::Recipient(GroupNumber(group), RecipientNumber(1)), anticipated()),
    };
    Decision::of(event).into_record(owner, ordinal, at)
}

/// Facts in the rows of a file, and the settings of all merchants.
type Carried = (Vec<CarriedFact>, Vec<(Sequence, Settings)>);

/// What the Records through one carry, read in the plainest way.
fn expected(store: &Part, through: u64) -> Carried {
    let (mut ids, mut pending, mut settings) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut splits: BTreeMap<AnticipatedOn, AnticipatedSums> = BTreeMap::new();
    let mut today = 0;
    for sequence in 1..=through {
        let (booked_at, record) = booked_record(store, Sequence(sequence)).unwrap();
        today = booked_at.day();
        let group = record.owner.group().unwrap();
        let merchant = LedgerId::Merchant(group);
        match &record.events[0] {
            Event::MerchantOpened { id, settings: of } => {
                ids.insert(merchant, *id);
                settings.insert((group, sequence), (Sequence(sequence), *of));
            }
            Event::MerchantChanged { settings: of, .. } => {
                settings.insert((group, sequence), (Sequence(sequence), *of));
            }
            Event::RecipientRegistered { number, id, .. } => {
                ids.insert(LedgerId::Recipient(group, *number), *id);
            }
            Event::ChargeOpened { card, .. } => {
                let (ordinal, brand) = (record.ordinal, card.as_ref().map(|card| card.brand));
                let fact = CarriedFact::Pending { group, ordinal, opened: Sequence(sequence), brand };
                pending.insert((group, ordinal), fact);
            }
            Event::PixCancelled { opened, .. } | Event::CardRefused { opened, .. } | Event::PixPaid { opened, .. } => {
                pending.remove(&(group, *opened));
            }
            Event::SplitsAnticipated { splits: of, .. } => {
                for split in of {
                    let on = AnticipatedOn { due: split.due.start().day(), on: today, group };
                    let sums = splits.entry(on).or_default();
                    sums.amount += i128::from(split.amount.0);
                    sums.discount += i128::from(split.fee.0);
                    sums.count += 1;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    let mut all: Vec<_> = ids.into_iter().map(|(ledger, id)| CarriedFact::Ledger(ledger, id)).collect();
    all.extend(pending.into_values());
    all.extend(
        splits.into_iter().filter(|(on, _)| on.due >= today).map(|(on, sums)| CarriedFact::Anticipated(on, sums)),
    );
    (all, settings.into_values().collect())
}

/// The same as a reader reads it.
fn carried_by(as_of: &AsOf) -> Carried {
    let mut ids: Vec<_> = as_of.ids().map(Result::unwrap).collect();
    ids.sort_unstable_by_key(|(ledger, _)| *ledger);
    let mut all: Vec<_> = ids.into_iter().map(|(ledger, id)| CarriedFact::Ledger(ledger, id)).collect();
    all.extend(as_of.pending(None).map(Result::unwrap));
    all.extend(as_of.anticipated().unwrap().into_iter().map(|(on, sums)| CarriedFact::Anticipated(on, sums)));
    let settings = (1..5).flat_map(|group| as_of.settings(GroupNumber(group)).unwrap());
    (all, settings.collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_a_file_carries_is_what_a_fold_from_the_first_record_finds(
        blocks in prop::collection::vec(prop::collection::vec((1..4_u32, 0..8_u8), 1..4), 1..40),
        step_hours in 10..400_i64,
        made in 0..40_usize,
    ) {
        let store = journal_of(&blocks, step_hours * HOUR_MS, |(group, _)| *group, |(group, kind), ordinal, at| carried(*group, ordinal, *kind, at));
        let store = store.part();
        let last = store.head().unwrap().next.0 - 1;
        let files = BalanceFiles::open(store.clone()).unwrap();
        let first: usize = blocks[..made.min(blocks.len())].iter().map(Vec::len).sum();
        files.settle(Sequence(first as u64)).unwrap();
        files.settle(Sequence(last)).unwrap();
        for through in 0..=last {
            let as_of = files.as_of(Sequence(through)).unwrap();
            prop_assert_eq!(carried_by(&as_of), expected(&store, through), "as of {}", through);
            let mut alone = tempfile::tempfile().unwrap();
            as_of.write(&mut alone).unwrap();
            let alone = AsOf::of_file(alone).unwrap();
            prop_assert_eq!((alone.through(), carried_by(&alone)), (as_of.through(), carried_by(&as_of)));
            prop_assert_eq!(sorted(&alone), folded(&store, through));
        }
    }
}

/// A Record of what is due, by a number for its kind: a card charge is opened and captured,
/// anticipated, taken back, paid by the acquirer, and falls due.
fn due(group: u32, ordinal: u64, kind: u8, at: Timestamp) -> Record {
    let (charge, at_charge) = (charge(group, ordinal / 4), Timestamp((ordinal as i64 / 4) * STEP_MS));
    let (merchant, number) = (LedgerId::Merchant(GroupNumber(group)), RecipientNumber(1));
    let recipient = LedgerId::Recipient(GroupNumber(group), number);
    let method = PaymentMethod::CreditCard;
    let terms = Terms { method, installments: 1 + (ordinal % 3) as u8, settlement_days: 5, ..terms(ordinal, 1) };
    let face = CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa };
    let minute = |days: u16| at_charge.plus_days(days).minute();
    let (seller_due, split) = (minute(5), SplitKey { charge, index: 0 });
    let (owner, event) = match kind {
        0 => (merchant, Event::ChargeOpened { charge, terms, card: Some(face), expires_at: None, rail: None }),
        1..=3 => {
            let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
            let (acquirer_mdr, splits_due) = (Centavos(29), minute(30));
            let (opened, brand) = (ordinal, None);
            let event =
                Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, opened, brand };
            (merchant, event)
        }
        4 => {
            let amount = Centavos(1 + ordinal as i64 % 2 * 10_000);
            let dues = vec![Due { minute: seller_due, amount }];
            (merchant, Event::Matured { dues, foreign_through: 0, next_due: None })
        }
        5 => {
            let part = AnticipatedSplit { split, due: minute(30), amount: Centavos(7), fee: Centavos(1) };
            let (id, rate) = (ObjectId(1), Rate::default());
            let splits = vec![part];
            (recipient, Event::SplitsAnticipated { id, splits, target_days: 2, rate, settlement_day: 0 })
        }
        6 => {
            let (object, gross) = (SettledObject::Installment(1), Centavos(5_000));
            let line = SettledLine { charge, object, gross, fee: Centavos(14), booked_fee: Centavos(14) };
            let batch = Batch { number: ordinal, reference: "B1".to_owned(), paid_on: 0, of_file: false };
            (merchant, Event::AcquirerSettled { batch, lines: vec![line] })
        }
        _ => {
            let (id, amount) = (ObjectId(ordinal.into()), Centavos(300));
            (merchant, Event::PayerRepaid { id, charge, method, amount, is_unordered: false })
        }
    };
    Decision::of(event).into_record(owner, ordinal, at)
}

/// What is due after a Record, folded from the first one.
fn due_through(store: &Part, through: u64) -> Receivables {
    let mut due = Receivables::default();
    (1..=through).for_each(|at| due.post(&crate::records::record(store, Sequence(at)).unwrap()));
    due
}

fn items(due: &Receivables) -> Vec<ledger::receivables::StoredReceivable> {
    due.items().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_due_after_a_file_is_what_a_fold_from_the_first_record_finds(
        blocks in prop::collection::vec(prop::collection::vec((1..3_u32, 0..8_u8), 1..4), 1..60),
        // In all less than the days after which a charge is forgotten: these charges are captured
        // again and again, which those of a journal never are.
        step_hours in 10..=60_i64,
        made in 0..60_usize,
        damaged in any::<prop::sample::Index>(),
    ) {
        let store = journal_of(&blocks, step_hours * HOUR_MS, |(group, _)| *group, |(group, kind), ordinal, at| due(*group, ordinal, *kind, at));
        let store = store.part();
        let last = store.head().unwrap().next.0 - 1;
        let files = BalanceFiles::open(store.clone()).unwrap();
        let first: usize = blocks[..made.min(blocks.len())].iter().map(Vec::len).sum();
        files.settle(Sequence(first as u64)).unwrap();
        files.settle(Sequence(last)).unwrap();
        prop_assert_eq!(receivables::cuts(&store).unwrap(), cuts(&store));
        let begun = files.nearest_before(Timestamp(i64::MAX), Sequence(last), true).unwrap().through();
        prop_assert_eq!(Some(begun), cuts(&store).last().map(|cut| cut.through).or(Some(Sequence(0))));
        let check = |files: &BalanceFiles| {
            for through in 0..=last {
                let mut as_of = files.nearest_before(Timestamp(i64::MAX), Sequence(through), true).unwrap();
                let (mut due, begun) = (as_of.take_receivables(), as_of.through());
                (begun.0 + 1..=through).for_each(|at| due.post(&crate::records::record(&store, Sequence(at)).unwrap()));
                assert_eq!(items(&due), items(&due_through(&store, through)), "as of {through} from {begun:?}");
            }
        };
        check(&files);
        let Some(cut) = cuts(&store).first().copied() else { return Ok(()) };
        // The first file leads to the same end as all of them.
        let mut due = receivables::read(&receivables::stored(&store, cut), cut).unwrap();
        (cut.through.0 + 1..=last).for_each(|at| due.post(&crate::records::record(&store, Sequence(at)).unwrap()));
        prop_assert_eq!(items(&due), items(&due_through(&store, last)));

        let (name, before) = (receivables::file_name(cut), names(&store));
        let whole = store.file_part(&name, 0, 1 << 20).unwrap().unwrap();
        let mut bytes = whole.clone();
        let place = damaged.index(bytes.len());
        bytes[place] ^= 1;
        store.put_file(&name, &bytes).unwrap();
        let again = BalanceFiles::open(store.clone()).unwrap();
        check(&again);
        again.settle(Sequence(last)).unwrap();
        prop_assert_eq!(names(&store), before);
        prop_assert_eq!(store.file_part(&name, 0, 1 << 20).unwrap().unwrap(), whole, "the same bytes");
    }
}

#[test]
fn verification_names_a_file_whose_receivables_differ() {
    let kinds: Vec<_> = (0..100).map(|at| vec![at % 7]).collect();
    let store = journal_of(&kinds, STEP_MS, |_| 1, |kind, ordinal, at| due(1, ordinal, *kind, at)).part();
    BalanceFiles::open(store.clone()).unwrap().settle(Sequence(100)).unwrap();
    let check = || {
        let mut check = BalanceFileCheck::new(&store).unwrap();
        let mut found = Vec::new();
        for at in 1..=100 {
            let (booked_at, record) = booked_record(&store, Sequence(at)).unwrap();
            check.post(Sequence(at), booked_at, &record);
            found.extend(check.compare_receivables(Sequence(at)).unwrap());
        }
        (found, check.finish().0)
    };
    let cuts = receivables::cuts(&store).unwrap();
    assert!(cuts.len() > 5, "{cuts:?}");
    assert_eq!(check(), (Vec::new(), cuts.len() as u64));
    let (cut, name) = (cuts[3], receivables::file_name(cuts[3]));
    for through in [cut.through.0 - 1, cut.through.0 + 1] {
        let mut bytes = Vec::new();
        receivables::write(cut, &due_through(&store, through), &mut bytes).unwrap();
        store.put_file(&name, &bytes).unwrap();
        assert_eq!(check(), (vec![name.clone()], cuts.len() as u64), "what was due after {through}");
    }
    store.put_file(&name, b"not whole").unwrap();
    assert_eq!(check(), (Vec::new(), cuts.len() as u64 - 1), "it is made again");
}

/// Who follows what is due stops at a bound, and tries no more; balance files are made as before.
#[test]
fn what_is_due_is_followed_up_to_a_bound() {
    let blocks = vec![vec![1_u8]; 60];
    let store = journal_of(&blocks, STEP_MS, |_| 1, |kind, ordinal, at| due(1, 4 * ordinal, *kind, at)).part();
    let files = BalanceFiles::of(store.clone(), 100, false).unwrap();
    files.settle(Sequence(60)).unwrap();
    let (all, followed) = (cuts(&store), receivables::cuts(&store).unwrap());
    assert!(
        !followed.is_empty() && followed.len() < all.len() && all.starts_with(&followed),
        "{followed:?} of {all:?}"
    );
    let now = Timestamp(60 * STEP_MS);
    files.shared.known.lock().looked_at = Some(now.month());
    assert!(!files.shared.wants_file(Sequence(60), now), "it is not tried all the time");
    assert_eq!(files.shared.known.lock().lacking_receivables().next(), None, "nor with the next balance file");
    let mut as_of = files.nearest_before(Timestamp(i64::MAX), Sequence(60), true).unwrap();
    assert_eq!(as_of.through(), followed.last().unwrap().through);
    assert_eq!(items(&as_of.take_receivables()), items(&due_through(&store, as_of.through().0)));
}

/// Format 1 as a release stores it: names and bytes, in hexadecimal, a line each.
#[test]
fn golden_files_are_read_and_written_alike() {
    let kinds: Vec<_> = (0..24).map(|at| vec![(1, at % 8), (2, at % 8)]).collect();
    let both = |(group, kind): &(u32, u8), ordinal, at| match group {
        1 => carried(1, ordinal, *kind, at),
        _ => due(2, ordinal, *kind, at),
    };
    let store = journal_of(&kinds, STEP_MS, |(group, _)| *group, both).part();
    let last = Sequence(48);
    let files = BalanceFiles::open(store.clone()).unwrap();
    files.settle(last).unwrap();
    let line = |name: &String| {
        let bytes = store.file_part(name, 0, 1 << 20).unwrap().unwrap();
        format!("{name} {}\n", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    };
    let written: String = names(&store).iter().map(line).collect();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/balances-1.txt");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() && !std::path::Path::new(golden).exists() {
        std::fs::write(golden, &written).unwrap();
    }
    let golden = std::fs::read_to_string(golden).unwrap();
    assert_eq!(written, golden, "written alike");
    for (name, hex) in golden.lines().map(|line| line.split_once(' ').unwrap()) {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        store.put_file(name, &(0..hex.len()).step_by(2).map(byte).collect::<Vec<_>>()).unwrap();
    }
    let again = BalanceFiles::open(store.clone()).unwrap();
    check_all(&again, &store, last.0);
    for cut in cuts(&store) {
        assert_eq!(
            items(&receivables::read(&receivables::stored(&store, cut), cut).unwrap()),
            items(&due_through(&store, cut.through.0))
        );
    }
}
