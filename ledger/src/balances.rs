//! Ledger of one owner: the balances of the owner's accounts, with debits and credits apart. Only
//! postings change it, so it always equals the sum of the owner's entries.
//!
//! Most accounts stand in the head of the owner's state. A merchant has one account for the debt of
//! each recipient; these may be many, and stand in sections.

use minicbor::decode::Error;
use minicbor::{Decode, Decoder, Encode, Encoder};

use crate::section::{Section, TouchedSections};
use crate::{Account, Balance, Balances, Centavos, Posting, RecipientNumber};

/// A recipient's account takes about 12 bytes.
const RECIPIENTS_PER_SECTION: u32 = 256;

/// The balances of one owner's own chart of accounts. An account is here once something was posted
/// to it, and stays.
///
/// ```
/// use ledger::account::Account;
/// use ledger::balances::Ledger;
/// use ledger::entry::{Posting, Side};
/// use ledger::money::Centavos;
///
/// let mut ledger = Ledger::default();
/// for (debit, credit, amount) in [
///     (Account::Available, Account::SplitsPix, Centavos(800)),
///     (Account::ReservedWithdrawal, Account::Available, Centavos(300)),
/// ] {
///     let line = |account, side| Posting { account, side, amount };
///     ledger.post(&[line(debit, Side::Debit), line(credit, Side::Credit)]);
/// }
/// assert_eq!(ledger.holds(Account::Available), Centavos(500));
/// assert_eq!(ledger.balances()[&Account::Available].debits, 800);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The accounts without a recipient, in the order of the chart: few, and in every charge.
    plain: Vec<(Account, Balance)>,
    /// Debts of recipients to their merchant.
    receivables: Balances,
    touched: TouchedSections,
}

impl Ledger {
    /// Adds the lines of an entry.
    pub fn post(&mut self, postings: &[Posting]) {
        for posting in postings {
            if let Account::ReceivableRecipient(number) = posting.account {
                self.touched.touch(u64::from(number.0 / RECIPIENTS_PER_SECTION));
                self.receivables.entry(posting.account).or_default().post(posting);
                continue;
            }
            let place = self.find(posting.account).unwrap_or_else(|place| {
                self.plain.insert(place, (posting.account, Balance::default()));
                place
            });
            self.plain[place].1.post(posting);
        }
    }

    /// Every account to which something was posted, in the order of the chart.
    pub fn balances(&self) -> Balances {
        self.all().collect()
    }

    /// Debit balance of an account without a recipient: debits minus credits, centavos.
    pub fn holds(&self, account: Account) -> Centavos {
        let net = self.find(account).map_or(0, |place| self.plain[place].1.net());
        Centavos(i64::try_from(net).expect("amounts are bounded at the door, so balances fit"))
    }

    /// Credit balance of an account without a recipient: credits minus debits, centavos.
    pub fn owes(&self, account: Account) -> Centavos {
        -self.holds(account)
    }

    /// True when no claim on the platform is below zero.
    pub fn claims_are_covered(&self) -> bool {
        self.all().all(|(account, balance)| !account.is_claim_on_platform() || balance.net() >= 0)
    }

    pub(crate) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The accounts without a recipient, as a state's head keeps them.
    pub(crate) fn plain(&self) -> Vec<StoredBalance> {
        self.plain.iter().map(|(account, balance)| StoredBalance(*account, *balance)).collect()
    }

    /// A ledger of the accounts that a state's head keeps; its sections follow.
    pub(crate) fn of_plain(plain: Vec<StoredBalance>) -> Self {
        let plain = plain.into_iter().map(|StoredBalance(account, balance)| (account, balance)).collect();
        Self { plain, ..Self::default() }
    }

    /// The encoding of the accounts of 256 recipients; `None` if there are none.
    pub(crate) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let first = u32::try_from(number).ok()?.checked_mul(RECIPIENTS_PER_SECTION)?;
        let last = first.saturating_add(RECIPIENTS_PER_SECTION - 1);
        let account = |number| Account::ReceivableRecipient(RecipientNumber(number));
        let here = self.receivables.range(account(first)..=account(last));
        let balances: Vec<_> = here.map(|(account, balance)| StoredBalance(*account, *balance)).collect();
        (!balances.is_empty()).then(|| minicbor::to_vec(balances).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(crate) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let balances: Vec<StoredBalance> = minicbor::decode(bytes)?;
        self.receivables.extend(balances.into_iter().map(|StoredBalance(account, balance)| (account, balance)));
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = (Account, Balance)> {
        let receivables = self.receivables.iter().map(|(account, balance)| (*account, *balance));
        self.plain.iter().copied().chain(receivables)
    }

    /// The place of a plain account, or the place where it would be.
    fn find(&self, account: Account) -> Result<usize, usize> {
        self.plain.binary_search_by(|(known, _)| known.cmp(&account))
    }
}

/// An account and its balance as a state keeps them: `[code, recipient or 0, debits, credits]`. The
/// two sums are big-endian bytes without the leading zeros.
#[derive(Debug)]
pub(crate) struct StoredBalance(Account, Balance);

impl<C> Encode<C> for StoredBalance {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        let Self(account, Balance { debits, credits }) = self;
        let (code, number) = account.code();
        e.array(4)?.u16(code)?.u32(number.map_or(0, |number| number.0))?;
        for sum in [debits, credits] {
            let zeros = sum.leading_zeros() as usize / 8;
            e.bytes(&sum.to_be_bytes()[zeros..])?;
        }
        Ok(())
    }
}

impl<'b, C> Decode<'b, C> for StoredBalance {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, Error> {
        if d.array()? != Some(4) {
            return Err(Error::message("a stored balance has four items"));
        }
        let (code, number) = (d.u16()?, d.u32()?);
        let account = Account::from_code(code, (number > 0).then_some(RecipientNumber(number)));
        let account = account.ok_or_else(|| Error::message("an account of a later release"))?;
        let mut sum = || -> Result<i128, Error> {
            let (mut word, bytes) = ([0; 16], d.bytes()?);
            let from = word.len().checked_sub(bytes.len()).ok_or_else(|| Error::message("a sum has 16 bytes"))?;
            word[from..].copy_from_slice(bytes);
            Ok(i128::from_be_bytes(word))
        };
        Ok(Self(account, Balance { debits: sum()?, credits: sum()? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Side;

    #[test]
    fn a_ledger_is_what_its_head_and_sections_say() {
        let mut ledger = Ledger::default();
        let lines = [
            (Account::Available, Side::Debit, 1),
            (Account::Available, Side::Credit, i64::MAX),
            (Account::Deficit, Side::Credit, 255),
            (Account::Deficit, Side::Credit, 256),
            (Account::ReceivableRecipient(RecipientNumber(1)), Side::Debit, 5),
            (Account::ReceivableRecipient(RecipientNumber(255)), Side::Credit, 6),
            (Account::ReceivableRecipient(RecipientNumber(256)), Side::Debit, 7),
        ];
        ledger.post(&lines.map(|(account, side, amount)| Posting { account, side, amount: Centavos(amount) }));
        let numbers: Vec<_> = ledger.take_touched(9).map(|section| section.number).collect();
        assert_eq!(numbers, [0, 1]);
        let head = minicbor::to_vec(ledger.plain()).unwrap();
        let mut read = Ledger::of_plain(minicbor::decode(&head).unwrap());
        for number in numbers {
            read.read_section(&ledger.section(number).unwrap()).unwrap();
        }
        assert_eq!((&read, ledger.section(2)), (&ledger, None));
        assert_eq!(read.owes(Account::Deficit), Centavos(511));
        assert!(!ledger.claims_are_covered() && Ledger::default().claims_are_covered());
    }
}
