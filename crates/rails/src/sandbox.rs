//! Institutions of the sandbox: simulated card acquirer, PIX institution, payout institution and
//! bank. Each answers every question about a charge or transfer in the same way, also after a
//! crash. Each keeps records of its own and writes the files from which the books can be
//! reconciled.

use std::io;
use std::path::Path;
use std::sync::Arc;

use actors::rails::{NamedRails, Rails};
use ledger::time::Timestamp;
use wire::timestamp::day_of;

use super::acquirer::SandboxAcquirer;
use super::bank_books::BankBooks;
use super::folder_lock::Patience;
use super::payouts::SandboxPayouts;
use super::pix_books::{PixBooks, SandboxPix};

/// The records of a sandbox's institutions, beside its rails.
pub struct Institutions {
    /// The PIX institution.
    pub pix: Arc<PixBooks>,
    settlement: Arc<BankBooks>,
    pix_account: Arc<BankBooks>,
}

impl Institutions {
    /// Institutions that keep their files in `folder`, and the rails that lead to them.
    /// `is_shared`: other processes use the folder too, with their own rails to the same
    /// institutions.
    pub fn open(folder: &Path, is_shared: bool) -> (Self, Rails) {
        let account = |name, number| Arc::new(BankBooks::new(folder.join(name), number, is_shared));
        let settlement = account("bank-settlement", "SANDBOX-SETTLEMENT");
        let pix_account = account("bank-pix", "SANDBOX-PIX");
        let pix = PixBooks::new(folder.join("pix"), Arc::clone(&pix_account), is_shared);
        let pix = Arc::new(pix);
        let rails = Rails {
            card: NamedRails::sandbox(Arc::new(SandboxAcquirer::new(folder, Arc::clone(&settlement), is_shared))),
            pix: NamedRails::sandbox(Arc::new(SandboxPix(Arc::clone(&pix)))),
            payout: NamedRails::sandbox(Arc::new(SandboxPayouts::new(
                folder,
                Arc::clone(&settlement),
                Arc::clone(&pix_account),
                is_shared,
            ))),
            ..Rails::default()
        };
        (Self { pix, settlement, pix_account }, rails)
    }

    /// Writes the files of the days that have ended at `now`, as far as they are not written. It
    /// waits for the disk.
    pub fn close_days(&self, now: Timestamp) -> io::Result<()> {
        let today = day_of(now.0);
        self.pix.close_days_before(Patience::LONG, today)?;
        self.settlement.close_days_before(Patience::LONG, today)?;
        self.pix_account.close_days_before(Patience::LONG, today)
    }
}

/// The rails of a sandbox. Its institutions keep their own files in `folder`, which no other
/// process uses.
pub fn rails(folder: &Path) -> Rails {
    Institutions::open(folder, false).1
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::{OpenOptions, read_dir, read_to_string};
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::path::PathBuf;
    use std::sync::Barrier;
    use std::task::Poll;
    use std::thread::scope;

    use actors::rails::{
        Call, CardAnswer, CardFate, CardSecrets, ChargeCard, ChargedCard, Destination, PayoutAnswer, PixFate, Repay,
        SendPayout, SettlementCursor,
    };
    use ledger::event::{CardBrand, CardFace, SettledObject, Terms};
    use ledger::fees::{Commission, PaymentMethod};
    use ledger::id::ObjectId;
    use ledger::merchant::OpenCharge;
    use ledger::money::Centavos;
    use ledger::personal::{BankAccount, PixDestination};
    use tempfile::TempDir;
    use tokio::runtime::{Builder, Runtime};

    use super::super::end_to_end_id;
    use super::*;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// 2026-11-23, a Monday, in days since 1970-01-01.
    const MONDAY: i64 = 20_780;
    /// Races of one test.
    const ROUNDS: u64 = 100;

    /// Noon in Sao Paulo of a day after [`MONDAY`].
    fn noon(day: i64) -> Timestamp {
        Timestamp((MONDAY + day) * DAY_MS + 15 * 60 * 60 * 1000)
    }

    /// An id made at noon of a day after [`MONDAY`].
    fn id(day: i64, number: u64) -> ObjectId {
        ObjectId((noon(day).0 as u128) << 80 | 8 << 76 | 2 << 62 | u128::from(number))
    }

    /// Two processes at the institutions of one folder.
    struct Two {
        folder: TempDir,
        processes: [(Institutions, Rails); 2],
    }

    impl Two {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let processes = [(); 2].map(|()| Institutions::open(folder.path(), true));
            Self { folder, processes }
        }

        /// Both do something at the same time, in so many rounds. Gives what came of it.
        fn race<T: Send>(&self, rounds: u64, work: impl Fn(u64, usize, &Rails, &Runtime) -> T + Sync) -> [Vec<T>; 2] {
            let barrier = Barrier::new(2);
            let run = |which: usize| {
                let runtime = Builder::new_current_thread().build().unwrap();
                // One that panics must not leave the other one waiting.
                let round = |number| {
                    barrier.wait();
                    catch_unwind(AssertUnwindSafe(|| work(number, which, &self.processes[which].1, &runtime)))
                };
                let done: Vec<_> = (0..rounds).map(round).collect();
                done.into_iter().map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect()
            };
            scope(|threads| [0, 1].map(|which| threads.spawn(move || run(which))).map(|thread| thread.join().unwrap()))
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn lines(&self, name: &str) -> Vec<String> {
            read_to_string(self.path(name)).unwrap().lines().map(str::to_owned).collect()
        }

        /// The files of a folder whose names begin so, one after the other.
        fn all(&self, folder: &str, prefix: &str) -> String {
            let mut names: Vec<_> = read_dir(self.path(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
            names.retain(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix));
            names.sort();
            names.iter().map(|path| read_to_string(path).unwrap()).collect()
        }

        /// How often each object is in the batches through a moment, and the batches that a
        /// process sees.
        fn settled(&self, which: usize, through: Timestamp) -> BTreeMap<(ObjectId, SettledObject), u32> {
            let runtime = Builder::new_current_thread().build().unwrap();
            let (mut after, mut found) = (SettlementCursor::default(), BTreeMap::new());
            let card = self.processes[which].1.card.get(None).unwrap();
            while let Some(page) = runtime.block_on(card.settlements(after, through)).unwrap() {
                after.lines += page.lines.len() as u64;
                if page.is_last {
                    after = SettlementCursor { batch: page.batch.number, lines: 0 };
                }
                for line in page.lines {
                    *found.entry((line.charge, line.object)).or_default() += 1;
                }
            }
            found
        }
    }

    fn charge(charge: ObjectId) -> ChargeCard {
        let card = CardSecrets {
            number: "4111111111111111".to_owned(),
            holder_name: String::new(),
            exp_month: 12,
            exp_year: 2039,
            cvv: String::new(),
        };
        let (amount, method) = (Centavos(10_000), PaymentMethod::DebitCard);
        ChargeCard {
            charge,
            amount,
            installments: 1,
            method,
            card: ChargedCard::Given(card),
            merchant: Default::default(),
            payer: Default::default(),
            not_after: Timestamp(i64::MAX),
        }
    }

    fn open() -> OpenCharge {
        let terms = Terms {
            amount: Centavos(10_000),
            method: PaymentMethod::DebitCard,
            installments: 1,
            splits: Vec::new(),
            commission: Commission::default(),
            settlement_days: 30,
            initial_fee: None,
        };
        let card = Some(CardFace { bin: 411_111, last4: 1111, brand: CardBrand::Other });
        OpenCharge {
            terms,
            attention_at: Timestamp(0),
            card,
            opened: 1,
            rail: None,
            registers_until: None,
            authorized: None,
            tried_at: None,
        }
    }

    fn transfer(id: ObjectId, to: Destination) -> SendPayout {
        SendPayout { id, amount: Centavos(500), to, ordered_at: id.created_at() }
    }

    fn once<K: Ord>(found: &BTreeMap<K, u32>) -> bool {
        found.values().all(|times| *times == 1)
    }

    /// Pages through all batches of the first process while the second one charges: a charge that
    /// comes when its batch is made is in a later one.
    #[test]
    fn a_capture_beside_the_making_of_batches_is_paid_once() {
        let two = Two::new();
        two.race(ROUNDS, |number, which, rails, runtime| {
            if which == 0 {
                let after = SettlementCursor { batch: u64::MAX, lines: 0 };
                runtime.block_on(rails.card.get(None).unwrap().settlements(after, noon(number as i64))).unwrap();
            } else {
                for more in 0..5 {
                    runtime
                        .block_on(
                            rails.card.get(None).unwrap().charge(charge(id(number as i64 - 1, number * 5 + more))),
                        )
                        .unwrap();
                }
            }
        });
        for which in [0, 1] {
            let settled = two.settled(which, noon(200));
            assert_eq!(settled.len() as u64, ROUNDS * 5);
            assert!(once(&settled));
        }
    }

    #[test]
    fn a_charge_that_one_process_makes_and_another_closes_has_one_outcome() {
        let two = Two::new();
        let open = open();
        // Both know of no batch; the first one makes some.
        for which in [0, 1] {
            let first = two.processes[which].1.card.get(None).unwrap().charge(charge(id(0, 1_000_000 + which as u64)));
            Builder::new_current_thread().build().unwrap().block_on(first).unwrap();
        }
        two.settled(0, noon(2));
        let answers = two.race(ROUNDS, |number, which, rails, runtime| {
            // In turns, as either may be the later one.
            let result = if (which as u64 + number).is_multiple_of(2) {
                runtime.block_on(rails.card.get(None).unwrap().charge(charge(id(0, number)))).unwrap()
            } else {
                let CardFate::Answered(answer) =
                    runtime.block_on(rails.card.get(None).unwrap().close(id(0, number), &open)).unwrap()
                else {
                    panic!("the sandbox closes nothing")
                };
                answer
            };
            if number == ROUNDS / 2 && which == 0 {
                two.settled(0, noon(4));
            }
            result
        });
        assert_eq!(answers[0], answers[1]);
        assert!(answers[0].iter().all(|answer| matches!(answer, CardAnswer::Captured { .. })));
        // A third time each, when what is on record is paid.
        two.settled(1, noon(7));
        for number in 0..ROUNDS {
            let late = two.processes[number as usize % 2].1.card.get(None).unwrap().charge(charge(id(0, number)));
            assert!(Builder::new_current_thread().build().unwrap().block_on(late).is_ok());
        }
        for which in [0, 1] {
            let settled = two.settled(which, noon(20));
            assert_eq!(settled.len() as u64, ROUNDS + 2);
            assert!(once(&settled));
        }
    }

    #[test]
    fn a_transfer_that_two_processes_order_is_carried_out_once() {
        let two = Two::new();
        let key = || Destination::PixKey(PixDestination { key: "ana@example.com".to_owned(), ..Default::default() });
        let [one, other] = two.race(ROUNDS, |number, _, rails, runtime| {
            let account = transfer(id(0, 2 * number), Destination::Account(BankAccount::default()));
            let pix = transfer(id(0, 2 * number + 1), key());
            let account = runtime.block_on(rails.payout.get(None).unwrap().send(account)).unwrap();
            [account, runtime.block_on(rails.payout.get(None).unwrap().find(pix, noon(0))).unwrap()]
        });
        assert_eq!(one, other);
        assert!(one.iter().flatten().all(|answer| matches!(answer, PayoutAnswer::Processed { .. })));
        let lines = two.lines("payouts");
        let ids: BTreeSet<_> = lines.iter().map(|line| line.split(' ').next()).collect();
        assert_eq!((lines.len() as u64, ids.len() as u64), (2 * ROUNDS, 2 * ROUNDS));
        let banks = two.all("bank-settlement", "lines-") + &two.all("bank-pix", "lines-");
        let moved: BTreeSet<_> = banks.lines().collect();
        assert_eq!((banks.lines().count() as u64, moved.len() as u64), (2 * ROUNDS, 2 * ROUNDS));
        let holds = two.processes.each_ref().map(|(process, _)| {
            [&process.settlement, &process.pix_account].map(|bank| bank.holds(Patience::LONG).unwrap())
        });
        assert_eq!(holds, [[Centavos(-500 * ROUNDS as i64); 2]; 2], "both know what the accounts hold");
    }

    /// The process that ends after a transfer was given back leaves it to another one, a day later.
    #[test]
    fn a_transfer_comes_back_once() {
        let two = Two::new();
        let to = || Destination::Account(BankAccount { conta: "99991".to_owned(), ..BankAccount::default() });
        for day in [1, 2, 3] {
            two.race(ROUNDS / 10, |number, _, rails, runtime| {
                let answer = runtime
                    .block_on(rails.payout.get(None).unwrap().find(transfer(id(0, number), to()), noon(day)))
                    .unwrap();
                assert!(matches!(answer, PayoutAnswer::Returned { .. }));
            });
            two.processes[day as usize % 2].0.close_days(noon(day)).unwrap();
        }
        let lines = two.all("bank-settlement", "lines-");
        let moved: BTreeSet<_> = lines.lines().collect();
        assert_eq!((lines.lines().count() as u64, moved.len() as u64), (ROUNDS / 5, ROUNDS / 5));
    }

    #[test]
    fn what_two_processes_give_back_is_given_back_once() {
        let two = Two::new();
        let repay = |number, day| Repay {
            id: id(0, 2 * number),
            decided_at: noon(day),
            charge: id(0, 2 * number + 1),
            payment: String::new(),
            amount: Centavos(100),
            before: Centavos::ZERO,
            is_repeat: true,
        };
        let ordered = |rails: &Rails, runtime: &Runtime, number| {
            runtime.block_on(rails.card.get(None).unwrap().repay(repay(number, 0))).unwrap();
            runtime.block_on(rails.pix.get(None).unwrap().repay(repay(number, 0))).unwrap();
        };
        two.race(ROUNDS, |number, _, rails, runtime| ordered(rails, runtime, number));
        let through = two.settled(0, noon(2));
        assert_eq!(through.len() as u64, ROUNDS);
        // Once more, after they are in a batch, by both.
        two.race(ROUNDS, |number, _, rails, runtime| ordered(rails, runtime, number));
        for which in [0, 1] {
            let settled = two.settled(which, noon(9));
            assert!(settled.len() as u64 == ROUNDS && once(&settled));
        }
        assert_eq!(two.lines("pix/returns").len() as u64, ROUNDS);
        assert_eq!(two.all("acquirer", "returns-").lines().count() as u64, ROUNDS);
        assert_eq!(two.all("bank-pix", "lines-").lines().count() as u64, ROUNDS);
    }

    /// A process that is killed between the institution's line and the booking loses no payment.
    #[test]
    fn a_payment_that_nobody_booked_is_found_by_who_asks_again() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Builder::new_current_thread().build().unwrap();
        let pay = |process: &(Institutions, Rails), number, end_to_end_id: &str| {
            let paid = process.0.pix.paid(id(0, number), end_to_end_id.to_owned(), Centavos(100), noon(0));
            runtime.block_on(paid).unwrap()
        };
        let fate = |process: &(Institutions, Rails), number| match runtime
            .block_on(process.1.pix.get(None).unwrap().cancel(id(0, number)))
            .unwrap()
        {
            PixFate::Paid(paid) => Some((paid.end_to_end_id, paid.paid_at)),
            PixFate::Cancelled => None,
        };
        let killed = Institutions::open(folder.path(), false);
        assert_eq!(pay(&killed, 1, "E1"), "E1");
        let next = Institutions::open(folder.path(), false);
        assert_eq!((pay(&next, 1, "E2"), pay(&next, 2, "E3")), ("E1".to_owned(), "E3".to_owned()));
        assert_eq!((fate(&next, 1), fate(&next, 4)), (Some(("E1".to_owned(), noon(0))), None));
        let lines = |name: &str| read_to_string(folder.path().join(name)).unwrap().lines().count();
        assert_eq!([lines("pix/payments-2026-11-23"), lines("bank-pix/lines-2026-11-23")], [2, 2]);
    }

    /// Payments go on while both write the files of the days, a day a round.
    #[test]
    fn a_day_that_two_processes_close_has_one_file_with_all_its_lines() {
        let two = Two::new();
        two.race(ROUNDS / 2, |number, which, _, runtime| {
            let (process, day) = (&two.processes[which].0, number as i64);
            for more in 0..4 {
                let number = number * 8 + which as u64 * 4 + more;
                let end_to_end_id = end_to_end_id(noon(day), number);
                let paid = process.pix.paid(id(day, number), end_to_end_id, Centavos(100), noon(day));
                runtime.block_on(paid).unwrap();
                if more == 1 {
                    process.close_days(noon(day + 1)).unwrap();
                }
            }
        });
        two.processes[0].0.close_days(noon(200)).unwrap();
        let paid = ROUNDS / 2 * 8;
        let payments = two.all("pix", "payments-");
        let listed = two.all("pix", "SANDBOX-PIX-");
        let listed: BTreeSet<_> = listed.lines().filter(|line| line.starts_with("{\"endToEndId")).collect();
        assert_eq!((payments.lines().count() as u64, listed.len() as u64), (paid, paid));
        let statements = two.all("bank-pix", "SANDBOX-PIX-");
        assert_eq!(statements.matches("<STMTTRN>").count() as u64, paid);
        let balance = format!("<BALAMT>{}.00\r\n", paid);
        assert_eq!(statements.matches(&balance).count(), 1, "the last statement has all");
    }

    /// A process is killed in the middle of a line.
    #[test]
    fn a_line_that_another_process_left_unfinished_spoils_no_other() {
        let two = Two::new();
        let runtime = Builder::new_current_thread().build().unwrap();
        let send = |which: usize, number| {
            let call = transfer(id(0, number), Destination::Account(BankAccount::default()));
            runtime.block_on(two.processes[which].1.payout.get(None).unwrap().send(call)).unwrap();
        };
        let capture = |which: usize, number| {
            runtime.block_on(two.processes[which].1.card.get(None).unwrap().charge(charge(id(0, number)))).unwrap();
        };
        for which in [0, 1] {
            send(which, which as u64);
            capture(which, which as u64);
        }
        let captures = "acquirer/captures-2026-11-23";
        let whole = ["payouts", "bank-settlement/lines-2026-11-23", captures].map(|name| (name, two.lines(name)));
        for (name, lines) in &whole {
            let mut file = OpenOptions::new().append(true).open(two.path(name)).unwrap();
            file.write_all(&lines[0].as_bytes()[..lines[0].len() - 1]).unwrap();
        }
        for number in [2, 3] {
            send(number % 2, number as u64);
            capture(number % 2, number as u64);
        }
        for (name, lines) in whole {
            let found = two.lines(name);
            assert_eq!((found.len(), &found[..2]), (4, &lines[..]), "{name}");
            assert!(found.iter().all(|line| line.len() == lines[0].len()), "{name}: {found:?}");
        }
    }

    /// A thread that others need does not wait for another process.
    #[tokio::test]
    async fn a_call_waits_for_the_lock_elsewhere() {
        let two = Two::new();
        let card = two.processes[0].1.card.get(None).unwrap();
        card.charge(charge(id(0, 1))).await.unwrap();
        let lock = OpenOptions::new().write(true).open(two.path("acquirer/lock")).unwrap();
        lock.lock().unwrap();
        let mut waiting: Call<'_, CardAnswer> = card.charge(charge(id(0, 2)));
        let polled = poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending())).await;
        assert!(polled, "another process has the lock");
        lock.unlock().unwrap();
        assert!(matches!(waiting.await, Ok(CardAnswer::Captured { .. })));
        assert_eq!(two.lines("acquirer/captures-2026-11-23").len(), 2);
    }
}
