//! Entries: balanced postings of one ledger. An entry whose debits and credits differ cannot be
//! built.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Account, Centavos, GroupNumber, LedgerId, RecipientNumber};

/// The side of an account. There is no signed amount anywhere in the books.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Raises assets and expenses.
    Debit,
    /// Raises liabilities, income and equity.
    Credit,
}

/// One line of an entry; the amount is above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// The line of the chart that it changes.
    pub account: Account,
    /// Which side.
    pub side: Side,
    /// How much, in centavos, above zero.
    pub amount: Centavos,
}

/// Balanced postings of one ledger.
///
/// ```
/// use ledger::account::Account;
/// use ledger::entry::{Entry, EntryError, Posting, Side};
/// use ledger::id::{GroupNumber, LedgerId};
/// use ledger::money::Centavos;
///
/// let merchant = LedgerId::Merchant(GroupNumber(1));
/// let line = |account, side, amount| Posting { account, side, amount: Centavos(amount) };
/// let debit = line(Account::Available, Side::Debit, 5_938);
/// let due = vec![debit, line(Account::Pending, Side::Credit, 5_938)];
/// let paid = Entry::try_new(merchant, due).unwrap();
/// assert_eq!(
///     paid.to_string(),
///     "M-1
///   Assets:Platform:Available                             5938
///   Assets:Platform:Pending                                         5938"
/// );
///
/// let wrong = vec![debit, line(Account::Pending, Side::Credit, 5_937)];
/// let unbalanced = EntryError::Unbalanced { debits: 5_938, credits: 5_937 };
/// assert_eq!(Entry::try_new(merchant, wrong), Err(unbalanced));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    ledger: LedgerId,
    postings: Vec<Posting>,
}

/// Why an entry cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The sides differ.
    #[error("debits of {debits} against credits of {credits}")]
    Unbalanced {
        /// Sum of the debit side, centavos.
        debits: i128,
        /// Sum of the credit side, centavos.
        credits: i128,
    },
    /// A posting of nothing, or of less.
    #[error("a posting's amount must be above zero")]
    NotPositive,
    /// An entry without postings.
    #[error("an entry has at least two postings")]
    Empty,
}

impl Entry {
    /// Checks that the postings balance.
    pub fn try_new(ledger: LedgerId, postings: Vec<Posting>) -> Result<Self, EntryError> {
        let mut sums = Balance::default();
        for posting in &postings {
            if !posting.amount.is_positive() {
                return Err(EntryError::NotPositive);
            }
            sums.post(posting);
        }
        if postings.is_empty() {
            return Err(EntryError::Empty);
        }
        if sums.net() != 0 {
            return Err(EntryError::Unbalanced { debits: sums.debits, credits: sums.credits });
        }
        Ok(Self { ledger, postings })
    }

    /// Whose books.
    pub fn ledger(&self) -> LedgerId {
        self.ledger
    }

    /// The lines, in the order in which they were written.
    pub fn postings(&self) -> &[Posting] {
        &self.postings
    }
}

/// The ledger, and a line for each posting, in centavos: debits in the first column, credits in the
/// second one.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ledger)?;
        for Posting { account, side, amount } in &self.postings {
            let name = account.name(self.ledger.group().unwrap_or_default(), |ledger| ledger.to_string());
            let width = if *side == Side::Debit { 10 } else { 20 };
            write!(f, "\n  {name:<48}{:>width$}", amount.0)?;
        }
        Ok(())
    }
}

/// Collects the postings of one entry; amounts of zero are left out.
pub(crate) struct Draft {
    ledger: LedgerId,
    postings: Vec<Posting>,
}

impl Draft {
    pub(crate) fn of(ledger: LedgerId, postings_max: usize) -> Self {
        Self { ledger, postings: Vec::with_capacity(postings_max) }
    }

    pub(crate) fn debit(&mut self, account: Account, amount: Centavos) -> &mut Self {
        self.line(account, Side::Debit, amount)
    }

    pub(crate) fn credit(&mut self, account: Account, amount: Centavos) -> &mut Self {
        self.line(account, Side::Credit, amount)
    }

    /// A debit or, when the amount is below zero, a credit of its opposite.
    pub(crate) fn debit_or_credit(&mut self, account: Account, amount: Centavos) -> &mut Self {
        if amount < Centavos::ZERO { self.credit(account, -amount) } else { self.debit(account, amount) }
    }

    /// The entry, or `None` if nothing moves.
    pub(crate) fn finish(self) -> Option<Entry> {
        if self.postings.is_empty() {
            return None;
        }
        Some(Entry::try_new(self.ledger, self.postings).expect("postings derive from amounts that add up"))
    }

    fn line(&mut self, account: Account, side: Side, amount: Centavos) -> &mut Self {
        if !amount.is_zero() {
            self.postings.push(Posting { account, side, amount });
        }
        self
    }
}

impl Posting {
    /// What it adds to its account.
    pub fn sums(&self) -> Balance {
        let amount = i128::from(self.amount.0);
        match self.side {
            Side::Debit => Balance { debits: amount, credits: 0 },
            Side::Credit => Balance { debits: 0, credits: amount },
        }
    }
}

/// Sums of an account's two sides, in centavos; sums over many ledgers stay exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Sum of the debit side.
    pub debits: i128,
    /// Sum of the credit side.
    pub credits: i128,
}

impl Balance {
    /// Debits minus credits.
    pub fn net(self) -> i128 {
        self.debits - self.credits
    }

    /// Adds a posting.
    pub fn post(&mut self, posting: &Posting) {
        self.add(posting.sums());
    }

    /// Adds what stands on another account.
    pub fn add(&mut self, other: Self) {
        self.debits += other.debits;
        self.credits += other.credits;
    }
}

/// The balances of one ledger, by account.
pub type Balances = BTreeMap<Account, Balance>;

/// Reading and writing within a Record. An entry is encoded flat: its ledger within the group of
/// the Record's owner (0 the merchant's, or the house's, 1 the platform's shard, n + 1 recipient
/// n's), then for each posting a code (twice the account's code, plus one for a credit), the
/// recipient's number where the account has one, and the amount.
impl Entry {
    pub(crate) fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        let numbers = self.postings.iter().filter(|posting| posting.account.code().1.is_some()).count();
        e.array((1 + 2 * self.postings.len() + numbers) as u64)?;
        e.u64(match self.ledger {
            LedgerId::Merchant(_) | LedgerId::System => 0,
            LedgerId::Platform(_) => 1,
            LedgerId::Recipient(_, number) => u64::from(number.0) + 1,
        })?;
        for posting in &self.postings {
            let (code, recipient) = posting.account.code();
            e.u16(code * 2 + u16::from(posting.side == Side::Credit))?;
            if let Some(number) = recipient {
                e.u32(number.0)?;
            }
            e.i64(posting.amount.0)?;
        }
        Ok(())
    }

    pub(crate) fn decode(
        d: &mut minicbor::Decoder<'_>,
        group: Option<GroupNumber>,
    ) -> Result<Self, minicbor::decode::Error> {
        let malformed = |what: &'static str| minicbor::decode::Error::message(what);
        let mut items = d.array()?.ok_or_else(|| malformed("an entry is an array of known length"))?;
        let ledger = match (d.u64()?, group) {
            (0, None) => LedgerId::System,
            (_, None) => return Err(malformed("an entry of a group in a Record of the house")),
            (0, Some(group)) => LedgerId::Merchant(group),
            (1, Some(group)) => LedgerId::Platform(group),
            (n, Some(group)) => {
                let number = u32::try_from(n - 1).map_err(|_| malformed("a recipient's number has 32 bits"))?;
                LedgerId::Recipient(group, RecipientNumber(number))
            }
        };
        items = items.saturating_sub(1);
        let mut postings = Vec::with_capacity((items / 2).min(64) as usize);
        while items > 0 {
            let code = d.u16()?;
            let mut used = 2;
            let account = match Account::from_code(code / 2, None) {
                Some(account) => account,
                None => {
                    used = 3;
                    let number = RecipientNumber(d.u32()?);
                    Account::from_code(code / 2, Some(number))
                        .ok_or_else(|| malformed("an account of a later release"))?
                }
            };
            let side = if code % 2 == 0 { Side::Debit } else { Side::Credit };
            postings.push(Posting { account, side, amount: Centavos(d.i64()?) });
            items = items.checked_sub(used).ok_or_else(|| malformed("an entry ends within a posting"))?;
        }
        Self::try_new(ledger, postings).map_err(|_| malformed("an entry that does not balance"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_balanced_entry_can_be_built() {
        let ledger = LedgerId::Merchant(GroupNumber(1));
        let line = |account, side, amount| Posting { account, side, amount: Centavos(amount) };
        let debit = |amount| line(Account::Available, Side::Debit, amount);
        let credit = |amount| line(Account::SalesPix, Side::Credit, amount);
        for (postings, expected) in [
            (vec![debit(5), credit(5)], Ok(())),
            (vec![debit(5), credit(4)], Err(EntryError::Unbalanced { debits: 5, credits: 4 })),
            (vec![debit(5)], Err(EntryError::Unbalanced { debits: 5, credits: 0 })),
            (vec![debit(0), credit(0)], Err(EntryError::NotPositive)),
            (vec![debit(-5), credit(-5)], Err(EntryError::NotPositive)),
            (vec![], Err(EntryError::Empty)),
        ] {
            assert_eq!(Entry::try_new(ledger, postings).map(|_| ()), expected);
        }
    }
}
