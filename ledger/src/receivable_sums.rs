//! Sums of receivables, by ledger and due minute, and the sum that the acquirer owes each group.
//!
//! A fold over Records for whoever reads a whole journal. [`crate::receivables::Receivables`] keeps
//! every single claim; this fold keeps one sum for each ledger and minute in which something is
//! due, so its memory does not grow with the number of charges of one minute. It reads the facts
//! alone, never the entries. At every Record the sums are the balances of `Pending` and of
//! `Acquirer:Receivable`, and no minute is below zero: nothing matures, is anticipated or is taken
//! back that was not due then.

use crate::invariants::GroupBooks;
use crate::receivables::{self, ClaimKey, ReceivableAmounts, ReceivableChanges, ReceivablesDiffer, each_change};
use crate::{Centavos, GroupNumber, IdMap, LedgerId, Minute, ObjectId, PaymentMethod, Record, SettledObject};

/// Sums of receivables, folded from all Records in order.
#[derive(Clone, Debug, Default)]
pub struct ReceivableSums {
    /// What is due to a merchant or a recipient in a minute, centavos; none for 0.
    due: IdMap<(LedgerId, Minute), i64>,
    /// What is due to a ledger, centavos. For the platform's shard the acquirer owes it.
    sums: IdMap<LedgerId, i128>,
    /// What the last Record changed.
    touched: Vec<(LedgerId, Minute)>,
}

/// Sums of receivables that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongReceivables {
    /// The books say something else.
    #[error(transparent)]
    Differ(ReceivablesDiffer),
    /// More was taken from a minute than was due in it.
    #[error("{sum} centavos are due to {ledger} at {due:?}")]
    Overdrawn {
        /// Whose money.
        ledger: LedgerId,
        /// When it falls due.
        due: Minute,
        /// The sum that is due then, centavos, below zero.
        sum: i64,
    },
}

impl ReceivableSums {
    /// Folds the next Record.
    pub fn post(&mut self, record: &Record) {
        self.touched.clear();
        each_change(record, self);
    }

    /// Checks what the last Record changed, against itself and against the books of its group,
    /// which have the same Records.
    pub fn check(&self, record: &Record, books: &GroupBooks) -> Result<(), WrongReceivables> {
        for (ledger, due) in &self.touched {
            if let Some(sum) = self.due.get(&(*ledger, *due)).copied().filter(|sum| *sum < 0) {
                return Err(WrongReceivables::Overdrawn { ledger: *ledger, due: *due, sum });
            }
        }
        receivables::compare(record, books, |ledger| self.sum(ledger)).map_err(WrongReceivables::Differ)
    }

    /// What is due to a ledger, centavos.
    pub fn sum(&self, ledger: LedgerId) -> i128 {
        self.sums.get(&ledger).copied().unwrap_or_default()
    }

    /// How many minutes of ledgers have something due: memory grows with this number.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether nothing is due to any merchant or recipient.
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    fn add(&mut self, ledger: LedgerId, due: Minute, amount: Centavos) {
        if amount.is_zero() {
            return;
        }
        let sum = self.due.entry((ledger, due)).or_default();
        // No sound journal has so much in a minute; a forged one must not make the check panic.
        *sum = sum.saturating_add(amount.0);
        if *sum == 0 {
            self.due.remove(&(ledger, due));
        }
        self.touched.push((ledger, due));
        *self.sums.entry(ledger).or_default() += i128::from(amount.0);
    }
}

impl ReceivableChanges for ReceivableSums {
    fn change(&mut self, (holder, due, _): ClaimKey, by: ReceivableAmounts) {
        self.add(holder, due, by.net);
    }

    fn mature(&mut self, holder: LedgerId, minute: Minute, amount: Centavos) {
        self.add(holder, minute, -amount);
    }

    fn owe(
        &mut self,
        group: GroupNumber,
        _: (ObjectId, SettledObject),
        _: (Option<PaymentMethod>, Minute),
        (gross, mdr): (Centavos, Centavos),
    ) {
        *self.sums.entry(LedgerId::Platform(group)).or_default() += i128::from((gross - mdr).0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Event;
    use crate::event::{Due, SellerPart, Split, Terms};
    use crate::fees::{Commission, PaymentMethod};
    use crate::id::{ObjectId, RecipientNumber};
    use crate::record::Decision;
    use crate::time::Timestamp;

    const GROUP: GroupNumber = GroupNumber(1);
    const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
    const RECIPIENT: LedgerId = LedgerId::Recipient(GROUP, RecipientNumber(1));

    fn captured() -> Event {
        let terms = Terms {
            amount: Centavos(10_000),
            method: PaymentMethod::CreditCard,
            installments: 1,
            splits: vec![Split { recipient: RecipientNumber(1), amount: Centavos(3_500) }],
            commission: Commission::default(),
            settlement_days: 30,
            initial_fee: None,
        };
        Event::CardCaptured {
            charge: ObjectId(1),
            acquirer_mdr: Centavos(0),
            seller: SellerPart { raised: Centavos(6_500), ..SellerPart::default() },
            terms,
            seller_due: Minute(30),
            splits_due: Minute(40),
            opened: 1,
            brand: None,
        }
    }

    fn matured(minute: u32, amount: i64) -> Event {
        let dues = vec![Due { minute: Minute(minute), amount: Centavos(amount) }];
        Event::Matured { dues, foreign_through: 0, next_due: None }
    }

    /// Posts one fact of the merchant for each, and gives the first check that fails.
    fn checked(events: Vec<Event>) -> Result<ReceivableSums, WrongReceivables> {
        let (mut sums, mut books) = (ReceivableSums::default(), GroupBooks::default());
        for (ordinal, event) in (1..).zip(events) {
            let record = Decision::of(event).into_record(MERCHANT, ordinal, Timestamp(0));
            books.post(&record).expect("the books are right");
            sums.post(&record);
            sums.check(&record, &books)?;
        }
        Ok(sums)
    }

    #[test]
    fn what_is_due_is_kept_by_minute_until_it_matures() {
        let sums = checked(vec![captured(), captured()]).unwrap();
        assert_eq!((sums.sum(MERCHANT), sums.sum(RECIPIENT)), (13_000, 7_000));
        assert_eq!((sums.sum(LedgerId::Platform(GROUP)), sums.len()), (20_000, 2));
        let sums = checked(vec![captured(), captured(), matured(30, 13_000)]).unwrap();
        assert_eq!((sums.sum(MERCHANT), sums.len(), sums.is_empty()), (0, 1, false));
    }

    #[test]
    fn money_that_matures_in_another_minute_is_found() {
        let wrong = checked(vec![captured(), captured(), matured(31, 6_500)]).unwrap_err();
        assert_eq!(wrong, WrongReceivables::Overdrawn { ledger: MERCHANT, due: Minute(31), sum: -6_500 });
    }

    #[test]
    fn books_that_say_something_else_are_found() {
        let record = Decision::of(captured()).into_record(MERCHANT, 1, Timestamp(0));
        let (mut sums, mut books) = (ReceivableSums::default(), GroupBooks::default());
        let without_recipient = Record { events: vec![matured(30, 0)], ..record.clone() };
        books.post(&record).unwrap();
        sums.post(&without_recipient);
        let wrong = sums.check(&record, &books).unwrap_err();
        assert!(
            matches!(wrong, WrongReceivables::Differ(differ) if differ.balance == 6_500 && differ.sum == 0),
            "{wrong}"
        );
    }
}
