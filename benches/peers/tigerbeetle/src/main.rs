//! Split charges at a TigerBeetle server: each is four linked transfers, the gross to the merchant
//! and a part of it to each of three recipients. The client merges what is in flight into batches.
//!
//!     tigerbeetle-charges ADDRESS SECONDS IN_FLIGHT hot|uniform [durable-intent]
//!
//! `hot` charges one merchant, `uniform` 100 at random. With `durable-intent` a charge is two
//! requests, as a card charge is two Records: the gross as a pending transfer, then its posting
//! with the splits. Prints `tps=… p50_ms=… p99_ms=…` of all but the first second, and fails if the
//! accounts do not hold just what was charged.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::executor::LocalPool;
use futures::task::LocalSpawnExt;
use tigerbeetle::{Account, Client, CreateAccountStatus, CreateTransferStatus, Transfer, TransferFlags, id};

const MERCHANTS: u64 = 100;
/// What a charge takes, centavos.
const GROSS: u128 = 10_000;
/// What each recipient gets of it.
const SPLITS: [u128; 3] = [2_000, 1_500, 500];
/// The time in which connections and caches get warm; it is not counted.
const WARM_UP: Duration = Duration::from_secs(1);

/// A merchant and its recipients.
struct Shop {
    merchant: u128,
    recipients: [u128; 3],
}

struct Load {
    client: Client,
    clearing: u128,
    shops: Vec<Shop>,
    is_two_requests: bool,
    begun: Instant,
    ends: Instant,
    /// Charges of each merchant so far.
    charged: RefCell<Vec<u128>>,
    /// Microseconds of each charge that is counted.
    times: RefCell<Vec<u64>>,
}

impl Load {
    async fn submit(&self, transfers: &[Transfer]) {
        let results = self.client.create_transfers(transfers).await.expect("an answer");
        for result in results {
            assert_eq!(result.status, CreateTransferStatus::Created);
        }
    }

    async fn charge(&self, shop: &Shop) {
        let transfer = |from, to, amount, flags| Transfer {
            id: id(),
            debit_account_id: from,
            credit_account_id: to,
            amount,
            flags,
            ledger: 1,
            code: 1,
            ..Default::default()
        };
        let gross = |flags| transfer(self.clearing, shop.merchant, GROSS, flags);
        let mut first = gross(TransferFlags::Linked);
        if self.is_two_requests {
            let pending = gross(TransferFlags::Pending);
            self.submit(&[pending]).await;
            first.pending_id = pending.id;
            first.flags = TransferFlags::Linked | TransferFlags::PostPendingTransfer;
        }
        let split = |number: usize, flags| transfer(shop.merchant, shop.recipients[number], SPLITS[number], flags);
        let linked = TransferFlags::Linked;
        self.submit(&[first, split(0, linked), split(1, linked), split(2, TransferFlags::empty())]).await;
    }

    /// Charges one after the other until the load ends.
    async fn run(&self, seed: u64, merchants: u64) {
        let mut random = seed;
        loop {
            let sent = Instant::now();
            if sent >= self.ends {
                return;
            }
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = ((random >> 33) % merchants) as usize;
            self.charge(&self.shops[number]).await;
            self.charged.borrow_mut()[number] += 1;
            let now = Instant::now();
            if sent >= self.begun + WARM_UP && now <= self.ends {
                self.times.borrow_mut().push((now - sent).as_micros() as u64);
            }
        }
    }

    /// Compares each account with what was charged.
    async fn check(&self) {
        let mut due = vec![(self.clearing, 0, self.charged.borrow().iter().sum::<u128>() * GROSS)];
        for (shop, charged) in self.shops.iter().zip(&*self.charged.borrow()) {
            due.push((shop.merchant, charged * GROSS, charged * SPLITS.iter().sum::<u128>()));
            let recipients = shop.recipients.iter().zip(SPLITS);
            due.extend(recipients.map(|(recipient, split)| (*recipient, charged * split, 0)));
        }
        let ids: Vec<u128> = due.iter().map(|(id, ..)| *id).collect();
        let found = self.client.lookup_accounts(&ids).await.expect("accounts");
        let found: Vec<_> =
            found.iter().map(|account| (account.id, account.credits_posted, account.debits_posted)).collect();
        assert_eq!(found, due, "the accounts hold just what was charged");
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [address, seconds, in_flight, load, mode @ ..] = arguments.as_slice() else {
        panic!("ADDRESS SECONDS IN_FLIGHT hot|uniform [durable-intent]")
    };
    let seconds: u64 = seconds.parse().expect("seconds");
    let in_flight: u64 = in_flight.parse().expect("a number of charges in flight");
    let merchants = if *load == "hot" { 1 } else { MERCHANTS };
    let mut pool = LocalPool::new();
    let client = Client::new(0, address).expect("a client");
    let shop = || Shop { merchant: id(), recipients: std::array::from_fn(|_| id()) };
    let shops: Vec<Shop> = (0..MERCHANTS).map(|_| shop()).collect();
    let clearing = id();
    let ids = shops.iter().flat_map(|shop| [&[shop.merchant], shop.recipients.as_slice()].concat());
    let account = |id| Account { id, ledger: 1, code: 1, ..Default::default() };
    let accounts: Vec<Account> = std::iter::once(clearing).chain(ids).map(account).collect();
    let made = pool.run_until(client.create_accounts(&accounts)).expect("accounts");
    assert!(made.iter().all(|result| result.status == CreateAccountStatus::Created));

    let begun = Instant::now();
    let load = Rc::new(Load {
        client,
        clearing,
        shops,
        is_two_requests: mode.contains(&"durable-intent"),
        begun,
        ends: begun + WARM_UP + Duration::from_secs(seconds),
        charged: RefCell::new(vec![0; MERCHANTS as usize]),
        times: RefCell::default(),
    });
    for seed in 0..in_flight {
        let load = Rc::clone(&load);
        pool.spawner().spawn_local(async move { load.run(seed, merchants).await }).expect("a task");
    }
    pool.run();
    let mut times = load.times.take();
    times.sort_unstable();
    let ms = |percent: usize| times[(times.len() - 1) * percent / 100] as f64 / 1_000.0;
    pool.run_until(load.check());
    println!("tps={} p50_ms={:.2} p99_ms={:.2}", times.len() as u64 / seconds, ms(50), ms(99));
}
