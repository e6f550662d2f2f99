//! Benchmark of books as of the past: how long the balance files take to make, and the trial
//! balance of all ledgers and the accounts of one ledger as of random Records. It prints figures
//! and judges nothing.
//!
//! `cargo bench --bench past` writes a million Records of 10,000 merchants; `-- --records 10000000
//! --merchants 1000000` more of both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::engine::AdmissionLimits;
use actors::engine::BalanceFileOptions;
use actors::engine::IndexOptions;
use actors::engine::{Engine, EngineOptions};
use derived::extents::Extents;
use ledger::event::{Event, SellerPart, Split, Terms};
use ledger::fees::{Commission, PaymentMethod};
use ledger::id::{GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::money::Centavos;
use ledger::record::Decision;
use ledger::time::Timestamp;
use store::cut::Cut;
use store::{Block, Part, Partition, Sequence, SledOptions, SledStore};
use tokio::runtime::Runtime;

/// Records of a block.
const BLOCK: u64 = 512;
/// Milliseconds between two blocks: a million Records are some three months.
const STEP_MS: i64 = 4_000_000;
/// Books that are asked for.
const CUTS: u64 = 40;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, otherwise: u64| {
        let at = arguments.iter().position(|argument| argument == name);
        at.and_then(|at| arguments.get(at + 1)).and_then(|number| number.parse().ok()).unwrap_or(otherwise)
    };
    let (records, merchants) = (number("--records", 1_000_000), number("--merchants", 10_000));
    let folder = tempfile::tempdir().expect("a folder");
    let store = SledStore::open(folder.path(), &SledOptions::default()).expect("a store");
    let part = Part::take(Arc::new(store), Partition(0)).expect("its partition");
    timed("written", || write(&part, records, merchants));
    let runtime = Runtime::new().expect("a runtime");
    let options = EngineOptions {
        sandbox: true,
        master_key: [7; 32],
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        rails: None,
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        balance_files: BalanceFileOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
    };
    let opened = timed("opened, with the index", || {
        runtime.block_on(Engine::open_parts(vec![part.clone()], Extents::default(), options, |_, _| {}))
    });
    let engine = opened.expect("an engine");
    timed("balance files made", || engine.settle_balance_files().expect("files"));
    let files = part.files().expect("a list").into_iter().filter(|(name, _)| name.starts_with("balances1-"));
    let (count, bytes) = files.fold((0, 0), |(count, sum), (_, bytes)| (count + 1, sum + bytes));
    println!("{count} files of {} KiB in all; resident {} KiB", bytes / 1_024, resident());
    let before = resident();
    let mut all = Vec::new();
    let mut one = Vec::new();
    for number in 0..CUTS {
        let cut = &Cut::new(vec![Sequence(1 + spread(number) % records)]);
        let begun = Instant::now();
        let sums = engine.sums_as_of(cut, |_, _| ()).expect("balances");
        all.push(begun.elapsed());
        assert!(!sums.kinds.is_empty());
        let ledger = LedgerId::Merchant(GroupNumber(1 + (spread(number + 7) % merchants) as u32));
        let begun = Instant::now();
        let _accounts = engine.ledger_as_of(ledger, cut).expect("balances");
        one.push(begun.elapsed());
    }
    for (what, mut times) in [("all ledgers", all), ("one ledger", one)] {
        times.sort_unstable();
        let ms = |at: usize| format!("{:.1} ms", times[at].as_secs_f64() * 1_000.0);
        println!("{what} as of {CUTS} Records: p50 {}, longest {}", ms(times.len() / 2), ms(times.len() - 1));
    }
    println!("resident before {before} KiB, after {} KiB", resident());
    runtime.block_on(engine.stop());
}

/// Writes PIX charges of a split each, in blocks.
fn write(part: &Part, records: u64, merchants: u64) {
    let mut ordinals = vec![0_u64; merchants as usize + 1];
    let mut written = 0;
    while written < records {
        let head = part.head().expect("a head");
        let count = BLOCK.min(records - written);
        let block = (0..count).map(|at| {
            let number = written + at;
            let group = 1 + spread(number) % merchants;
            let ordinal = &mut ordinals[group as usize];
            *ordinal += 1;
            let splits = vec![Split { recipient: RecipientNumber(1), amount: Centavos(3_500) }];
            let terms = Terms {
                amount: Centavos(10_000 + (number % 977) as i64),
                method: PaymentMethod::Pix,
                installments: 1,
                splits,
                commission: Commission::default(),
                settlement_days: 0,
                initial_fee: None,
            };
            let charge = ObjectId(u128::from(number) + 1);
            let seller = SellerPart { raised: terms.seller_net(), ..SellerPart::default() };
            let event = Event::PixPaid { charge, terms, seller, end_to_end_id: "E".repeat(32), opened: *ordinal };
            let owner = LedgerId::Merchant(GroupNumber(group as u32));
            let mut bytes = Vec::new();
            Decision::of(event).into_record(owner, *ordinal, Timestamp(head.booked_at_ms.max(0))).encode(&mut bytes);
            bytes
        });
        let records = block.collect();
        let booked_at_ms = head.booked_at_ms.max(0) + STEP_MS;
        let block = Block { partition: Partition(0), first: head.next, booked_at_ms, previous: head.hash, records };
        part.append(&block).expect("a durable block");
        written += count;
    }
}

/// A number that looks like any other.
fn spread(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 31)
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let made = work();
    println!("{what}: {:.1} s", begun.elapsed().as_secs_f64());
    made
}

/// Resident memory of this process, KiB.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.unwrap_or_default().trim().trim_end_matches(" kB").to_owned()
}
