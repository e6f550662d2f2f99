//! Invariants that hold at every Record of the journal, as pure checks over one group's books.
//! Tests, `verify` and debug assertions use them.

use std::collections::BTreeMap;

use crate::{Account, Balances, Entry, LedgerId, Record};

/// The books of one account group: the fold of its Records in order.
///
/// ```
/// use ledger::account::Account;
/// use ledger::event::Event;
/// use ledger::id::{GroupNumber, LedgerId};
/// use ledger::invariants::{GroupBooks, Violation};
/// use ledger::money::Centavos;
/// use ledger::record::Decision;
/// use ledger::time::Timestamp;
///
/// // A debt is paid back from what is available, but nothing is.
/// let owner = LedgerId::Merchant(GroupNumber(1));
/// let recovered = Decision::of(Event::DeficitRecovered { amount: Centavos(250) });
/// let record = recovered.into_record(owner, 1, Timestamp(1_795_000_000_000));
/// let account = Account::Available;
/// let overdrawn = Violation::Negative { ledger: owner, account, balance: -250 };
/// assert_eq!(GroupBooks::default().post(&record), Err(overdrawn));
/// ```
#[derive(Clone, Debug, Default)]
pub struct GroupBooks {
    ledgers: BTreeMap<LedgerId, Balances>,
    ordinals: BTreeMap<LedgerId, u64>,
    split_clearing: i128,
    fee_clearing: i128,
}

/// A promise that a Record breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The owner's Records are not counted 1, 2, 3, …
    #[error("{owner}: Record {found} where {expected} was expected")]
    Ordinal {
        /// The owner that decided.
        owner: LedgerId,
        /// The next number.
        expected: u64,
        /// The number found.
        found: u64,
    },
    /// A claim and the liability that mirrors it differ.
    #[error("{ledger} {account:?} and its mirror sum to {sum}")]
    Mirror {
        /// Whose books.
        ledger: LedgerId,
        /// Which account.
        account: Account,
        /// The difference from zero, centavos.
        sum: i128,
    },
    /// A claim on the platform fell below zero.
    #[error("{ledger} {account:?} stands at {balance}")]
    Negative {
        /// Whose books.
        ledger: LedgerId,
        /// Which account.
        account: Account,
        /// Its balance, centavos.
        balance: i128,
    },
    /// The merchant gave away another sum than its recipients got.
    #[error("splits given and received differ by {0}")]
    Splits(i128),
    /// Fees paid are not the platform's income.
    #[error("fees paid and earned differ by {0}")]
    Fees(i128),
    /// An entry of another group.
    #[error("an entry of {0}, outside the group of its Record")]
    Foreign(LedgerId),
}

impl GroupBooks {
    /// Folds a Record of this group and checks every promise that it could break.
    pub fn post(&mut self, record: &Record) -> Result<(), Violation> {
        self.count(record)?;
        for entry in &record.entries {
            if entry.ledger().group() != record.owner.group() {
                return Err(Violation::Foreign(entry.ledger()));
            }
            self.add(entry);
        }
        for entry in &record.entries {
            self.check(entry)?;
        }
        match (self.split_clearing, self.fee_clearing) {
            (0, 0) => Ok(()),
            (0, fees) => Err(Violation::Fees(fees)),
            (splits, _) => Err(Violation::Splits(splits)),
        }
    }

    /// Debits minus credits of an account, centavos.
    pub fn balance(&self, ledger: LedgerId, account: Account) -> i128 {
        self.ledgers.get(&ledger).and_then(|balances| balances.get(&account)).map_or(0, |balance| balance.net())
    }

    /// The balances of every ledger of the group.
    pub fn ledgers(&self) -> &BTreeMap<LedgerId, Balances> {
        &self.ledgers
    }

    fn count(&mut self, record: &Record) -> Result<(), Violation> {
        let ordinal = self.ordinals.entry(record.owner).or_default();
        let expected = *ordinal + 1;
        if record.ordinal != expected {
            return Err(Violation::Ordinal { owner: record.owner, expected, found: record.ordinal });
        }
        *ordinal = expected;
        Ok(())
    }

    fn add(&mut self, entry: &Entry) {
        let balances = self.ledgers.entry(entry.ledger()).or_default();
        for posting in entry.postings() {
            balances.entry(posting.account).or_default().post(posting);
            if posting.account.is_split_clearing() {
                self.split_clearing += posting.sums().net();
            }
            if posting.account.is_fee_clearing() {
                self.fee_clearing += posting.sums().net();
            }
        }
    }

    fn check(&self, entry: &Entry) -> Result<(), Violation> {
        let ledger = entry.ledger();
        for posting in entry.postings() {
            let account = posting.account;
            let balance = self.balance(ledger, account);
            if account.is_claim_on_platform() && balance < 0 {
                return Err(Violation::Negative { ledger, account, balance });
            }
            if let Some((other, mirror)) = account.mirror(ledger) {
                let sum = balance + self.balance(other, mirror);
                if sum != 0 {
                    return Err(Violation::Mirror { ledger, account, sum });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Posting, Side};
    use crate::id::{GroupNumber, RecipientNumber};
    use crate::money::Centavos;
    use crate::record::Decision;
    use crate::time::Timestamp;

    const GROUP: GroupNumber = GroupNumber(1);
    const MERCHANT: LedgerId = LedgerId::Merchant(GROUP);
    const PLATFORM: LedgerId = LedgerId::Platform(GROUP);
    const RECIPIENT: LedgerId = LedgerId::Recipient(GROUP, RecipientNumber(1));

    /// An entry of 5 centavos from one account to another.
    fn entry(ledger: LedgerId, debit: Account, credit: Account) -> Entry {
        let line = |account, side| Posting { account, side, amount: Centavos(5) };
        Entry::try_new(ledger, vec![line(debit, Side::Debit), line(credit, Side::Credit)]).unwrap()
    }

    fn record(ordinal: u64, entries: Vec<Entry>) -> Record {
        Record { entries, ..Decision::default().into_record(MERCHANT, ordinal, Timestamp(0)) }
    }

    #[test]
    fn every_broken_promise_is_named() {
        use Account::*;
        let sale = entry(MERCHANT, Pending, SalesCard);
        let owed = entry(PLATFORM, AcquirerReceivable, MerchantPending);
        let elsewhere = LedgerId::Merchant(GroupNumber(2));
        let mirror = |ledger, account, sum| Err(Violation::Mirror { ledger, account, sum });
        let negative = |ledger, account, balance| Err(Violation::Negative { ledger, account, balance });
        for (entries, expected) in [
            (vec![sale.clone(), owed.clone()], Ok(())),
            (vec![sale], mirror(MERCHANT, Pending, 5)),
            (vec![owed], mirror(PLATFORM, MerchantPending, -5)),
            (vec![entry(MERCHANT, OtherIncome, Deficit)], mirror(MERCHANT, Deficit, -5)),
            (vec![entry(RECIPIENT, SplitReversals, Clawback)], mirror(RECIPIENT, Clawback, -5)),
            (vec![entry(RECIPIENT, SplitsPix, Available)], negative(RECIPIENT, Available, -5)),
            (vec![entry(MERCHANT, OtherIncome, ReservedCashout)], negative(MERCHANT, ReservedCashout, -5)),
            (vec![entry(MERCHANT, ContraSplits, SalesPix)], Err(Violation::Splits(5))),
            (vec![entry(PLATFORM, BankPix, CommissionPix)], Err(Violation::Fees(-5))),
            (vec![entry(elsewhere, OtherIncome, SalesPix)], Err(Violation::Foreign(elsewhere))),
        ] {
            assert_eq!(GroupBooks::default().post(&record(1, entries.clone())), expected, "{entries:?}");
        }
    }

    #[test]
    fn a_lost_or_repeated_record_is_noticed() {
        for (ordinals, expected) in [
            (&[1, 2, 3][..], Ok(())),
            (&[2], Err((1, 2))),
            (&[1, 3], Err((2, 3))),
            (&[1, 1], Err((2, 1))),
            (&[0], Err((1, 0))),
        ] {
            let mut books = GroupBooks::default();
            let posted = ordinals.iter().try_for_each(|ordinal| books.post(&record(*ordinal, Vec::new())));
            let expected =
                expected.map_err(|(expected, found)| Violation::Ordinal { owner: MERCHANT, expected, found });
            assert_eq!(posted, expected, "{ordinals:?}");
        }
    }
}
