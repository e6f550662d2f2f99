//! Memory and look-ups of the index alone, as Records are added: `cargo bench --bench index --
//! --records 100000000`.
//!
//! The Records are card charges of a thousand merchants, each an intent and a capture with two
//! splits. They are made on the way and are in no journal. Every time their number has doubled,
//! merges are waited for, and ids from all of the past are looked up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use derived::index::{Balances, Index, IndexKey, IndexOptions};
use ledger::event::{Event, SellerPart, Split, Terms};
use ledger::fees::{Commission, PaymentMethod};
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::{Decision, Idempotency, Record};
use ledger::time::Timestamp;
use store::{Part, Partition, Sequence, SledOptions, SledStore};

const MERCHANTS: u64 = 1_000;
const BLOCK: u64 = 64;
const LOOK_UPS: u64 = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let records = arguments.iter().position(|argument| argument == "--records");
    let records = records.and_then(|at| arguments.get(at + 1)?.replace('_', "").parse().ok()).unwrap_or(1_000_000);
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(SledStore::open(folder.path(), &SledOptions::default()).expect("a store"));
    let index = Index::open(Part::take(store, Partition(0)).expect("it is free"), IndexOptions::default(), None)
        .expect("an index");
    println!(
        "{:>12} {:>5} {:>11} {:>9} {:>11} {:>11} {:>9}",
        "Records", "runs", "in memory", "RSS", "known id", "no such id", "added in"
    );
    let (mut added, mut next, mut adding) = (0, 1 << 17, Duration::ZERO);
    while added < records {
        let block: Vec<_> =
            (added + 1..=added + BLOCK).map(|sequence| (Sequence(sequence), Arc::new(record(sequence)))).collect();
        let begun = Instant::now();
        index.count(&block, |_| Ok(Balances::default())).expect("it is counted");
        adding += begun.elapsed();
        added += BLOCK;
        if added >= next || added >= records {
            next *= 2;
            report(&index, added, adding);
        }
    }
}

fn report(index: &Index, added: u64, adding: Duration) {
    index.settle();
    let look_up = |shift: u64| {
        let begun = Instant::now();
        let found = (0..LOOK_UPS).filter(|number| {
            let charge = scattered(*number) % (added / 2) + shift;
            !index.since(IndexKey::object(id(charge)), Timestamp(0)).expect("it can be read").is_empty()
        });
        let found = found.count();
        (found, begun.elapsed().as_secs_f64() * 1e6 / LOOK_UPS as f64)
    };
    let ((known, known_us), (absent, absent_us)) = (look_up(0), look_up(1 << 40));
    assert_eq!((known, absent), (LOOK_UPS as usize, 0), "what was added is found, and nothing else");
    let (runs, bytes) = index.runs();
    println!(
        "{added:>12} {runs:>5} {:>8.1} kB {:>6} MB {known_us:>8.1} us {absent_us:>8.1} us {:>7.0} s",
        bytes as f64 / 1e3,
        rss_kilobytes() / 1_000,
        adding.as_secs_f64()
    );
}

/// The intents and captures of charges in turn.
fn record(sequence: u64) -> Record {
    let (number, is_capture) = ((sequence - 1) / 2, sequence.is_multiple_of(2));
    let group = GroupNumber((number % MERCHANTS) as u32);
    let ordinal = number / MERCHANTS * 2 + 1;
    let split = |number| Split { recipient: RecipientNumber(number), amount: Centavos(1_000) };
    let terms = Terms {
        amount: Centavos(10_000),
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: vec![split(1), split(2)],
        commission: Commission::default(),
        settlement_days: 30,
        initial_fee: None,
    };
    let (charge, due) = (id(number), Timestamp(2_592_000_000).minute());
    let event = if is_capture {
        let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
        Event::CardCaptured {
            charge,
            terms,
            acquirer_mdr: Centavos(1),
            seller,
            seller_due: due,
            splits_due: due,
            opened: ordinal,
            brand: None,
        }
    } else {
        Event::ChargeOpened { charge, terms, card: None, expires_at: None, rail: None }
    };
    let merchant = LedgerId::Merchant(group);
    let mut record =
        Decision::of(event).into_record(merchant, ordinal + u64::from(is_capture), Timestamp(number as i64));
    if !is_capture {
        let key = Fingerprint((u128::from(scattered(number)) << 64).to_be_bytes());
        record.idempotency = Some(Idempotency { key, body: key });
    }
    record
}

fn id(charge: u64) -> ObjectId {
    ObjectId(u128::from(charge) << 64 | u128::from(scattered(charge)))
}

fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

fn rss_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}
