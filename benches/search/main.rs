//! Search by values.
//!
//! `cargo bench --bench search -- --charges 1000000`: the index alone; what it costs to add values,
//! their bytes, and look-ups. The index is filled twice, without and with personal data. Payers are
//! sealed beforehand.
//!
//! `cargo bench --bench search -- --served 1000000 --requests 200`: answers of `/ops/search` and
//! filtered lists of a server with so many charges, at rest and beside 1,000 charges a second.
//!
//! Each charge has a payer of its own, with a name of three words, a document and an e-mail. Each
//! word is one of 1,000, and so has a beginning of three letters that several words have.

mod served;

use std::sync::Arc;
use std::time::Instant;

use derived::index::{Balances, Index, IndexOptions};
use derived::personal_index::{PersonalIndex, PersonalValue};
use derived::seal::Keyring;
use ledger::event::{CardBrand, CardFace, Event, Terms};
use ledger::fees::{Commission, PaymentMethod};
use ledger::id::{GroupNumber, LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::personal::{Payer, SealedFor};
use ledger::record::{Decision, Record};
use ledger::tax_id;
use ledger::time::Timestamp;
use store::Sequence;
use store::testkit::MemoryStore;
use tokio::runtime::Runtime;

const NOW: i64 = 1_795_000_000_000;
const MERCHANTS: u64 = 1_000;
const BLOCK: usize = 64;
const LOOK_UPS: u64 = 1_000;
/// Charges that are made at a time, so that little of them is in memory.
const MADE_AT_ONCE: u64 = 65_536;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)?.replace('_', "").parse().ok())
    };
    if let Some(served) = number("--served") {
        let measured = served::measure(served, number("--requests").unwrap_or(200));
        return Runtime::new().expect("a runtime").block_on(measured);
    }
    let charges = number("--charges").unwrap_or(400_000);
    for with_personal in [false, true] {
        let store = MemoryStore::new();
        let keyring = Arc::new(Keyring::open([7; 32], Arc::new(store.clone())).expect("keys"));
        let personal = PersonalIndex::new(Arc::clone(&keyring), str::to_lowercase);
        let part = with_personal.then(|| personal.clone());
        let index = Index::open(store.part(), IndexOptions::default(), part).expect("an index");
        let added_us = fill(&index, &keyring, charges);
        index.settle();
        let in_runs = index.indexed_through().0.max(1);
        let files = store.part().files().expect("files");
        let bytes = files.iter().map(|(_, bytes)| *bytes).sum::<u64>() as f64 / in_runs as f64;
        println!("personal data {with_personal}: {added_us:.2} us to add a charge, {bytes:.1} bytes of it in runs");
        if with_personal {
            look_up(&index, &personal, "one charge", |number| PersonalValue::Document(document(number % charges + 1)));
            look_up(&index, &personal, "a thousandth", |number| PersonalValue::NameBeginning(word(number)));
            look_up(&index, &personal, "words that begin so", |number| {
                PersonalValue::NameBeginning(word(number)[..3].to_owned())
            });
        }
    }
}

/// Adds the charges; microseconds for each.
fn fill(index: &Index, keyring: &Keyring, charges: u64) -> f64 {
    let mut seconds = 0.0;
    for first in (1..=charges).step_by(MADE_AT_ONCE as usize) {
        let last = (first + MADE_AT_ONCE - 1).min(charges);
        let made: Vec<_> = (first..=last).map(|number| (Sequence(number), Arc::new(charge(keyring, number)))).collect();
        let begun = Instant::now();
        made.chunks(BLOCK).for_each(|block| index.count(block, |_| Ok(Balances::default())).expect("it is counted"));
        seconds += begun.elapsed().as_secs_f64();
    }
    seconds * 1e6 / charges as f64
}

fn look_up(index: &Index, personal: &PersonalIndex, name: &str, value: impl Fn(u64) -> PersonalValue) {
    let mut times: Vec<f64> = (0..LOOK_UPS)
        .map(|number| {
            let begun = Instant::now();
            let keys = personal.search_keys(&[value(scattered(number))]).expect("keys").concat();
            let found = keys.into_iter().map(|key| index.with_value(key, 0..u64::MAX).expect("it can be read").len());
            assert!(found.sum::<usize>() > 0, "what was added is found");
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[(times.len() as f64 * share) as usize];
    println!("  look-up of a value of {name}: p50 {:.0} us, p95 {:.0} us", at(0.50), at(0.95));
}

fn charge(keyring: &Keyring, number: u64) -> Record {
    let (random, now) = (scattered(number), Timestamp(NOW + number as i64));
    let charge = ObjectId(((now.0 as u128) << 80) | (8 << 76) | u128::from(random));
    let terms = Terms {
        amount: Centavos((random % 50_000) as i64),
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: Vec::new(),
        commission: Commission::default(),
        settlement_days: 30,
        initial_fee: None,
    };
    let face = CardFace { bin: 411_111, last4: (random % 10_000) as u16, brand: CardBrand::Visa };
    let event = Event::ChargeOpened { charge, terms, card: Some(face), expires_at: None, rail: None };
    let owner = LedgerId::Merchant(GroupNumber((number % MERCHANTS) as u32));
    let mut record = Decision::of(event).into_record(owner, number, now);
    record.personal = Some(keyring.seal_value(SealedFor::payer(charge), now, &payer(number)).expect("it is sealed"));
    record
}

/// The payer of a charge.
fn payer(number: u64) -> Payer {
    let random = scattered(number);
    Payer {
        name: [random, random >> 16, random >> 32].map(word).join(" "),
        document: document(number),
        email: Some(format!("p{random}@example.com")),
        ..Payer::default()
    }
}

/// One of a thousand words of three syllables.
fn word(number: u64) -> String {
    const SYLLABLES: [&str; 10] = ["ma", "ri", "jo", "sil", "va", "an", "dre", "lu", "ca", "to"];
    [number, number / 10, number / 100].map(|place| SYLLABLES[(place % 10) as usize]).concat()
}

/// A CPF with right check digits: a search knows documents by them.
fn document(number: u64) -> String {
    let digits = scattered(number) % 1_000_000_000;
    let mut whole = (0..100).map(|check| format!("{digits:09}{check:02}"));
    whole.find(|document| tax_id::is_cpf(document)).unwrap_or_else(|| document(number + 1))
}

fn scattered(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}
