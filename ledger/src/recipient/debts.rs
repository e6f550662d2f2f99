//! Debts of a recipient for splits that its merchant took back (the Clawback), oldest first. The
//! merchant raises a debt; only the recipient lowers it: from what is still pending of that split,
//! then from Available, then from every later rise of Available. Money under a withdrawal, or paid
//! out, is not touched. Operators may write off what will not be paid back.

use std::collections::BTreeMap;

use minicbor::decode::Error;
use minicbor::{Decode, Encode};

use crate::event::{DebtPart, PaidBack, SplitKey, TakeBack};
use crate::section::{Section, TouchedSections};
use crate::{Centavos, Minute, ObjectId};

/// A debt takes up to 80 bytes.
const DEBTS_PER_SECTION: u64 = 64;

/// The unpaid rest of one debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub(super) struct Debt {
    /// The refund that took back.
    #[n(0)]
    pub(super) refund: ObjectId,
    /// The split.
    #[n(1)]
    pub(super) split: SplitKey,
    /// When the split falls due; none for PIX.
    #[n(2)]
    pub(super) due: Option<Minute>,
    /// The part that goes to the merchant's Available; it is paid before the other part.
    #[n(3)]
    pub(super) to_available: Centavos,
    /// The part that goes to the merchant's Pending.
    #[n(4)]
    pub(super) to_pending: Centavos,
    /// When the charge's own money falls due; none for PIX.
    #[n(5)]
    pub(super) seller_due: Option<Minute>,
}

impl Debt {
    pub(super) fn left(&self) -> Centavos {
        self.to_available + self.to_pending
    }
}

/// The open debts of a recipient.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Debts {
    /// By number, in the order in which they were raised.
    open: BTreeMap<u64, Debt>,
    raised: u64,
    touched: TouchedSections,
}

impl Debts {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Debt> {
        self.open.values()
    }

    pub(super) fn are_positive(&self) -> bool {
        let zero = Centavos::ZERO;
        self.iter().all(|debt| debt.left().is_positive() && debt.to_available >= zero && debt.to_pending >= zero)
    }

    /// Rest of all debts, centavos.
    pub(super) fn left(&self) -> Centavos {
        self.iter().map(Debt::left).sum()
    }

    /// Number of debts that were ever raised: the number of the next one.
    pub(super) fn raised(&self) -> u64 {
        self.raised
    }

    /// Adds the debt for a part of a split that the merchant took back.
    pub(super) fn raise(&mut self, refund: ObjectId, charge: ObjectId, part: &TakeBack, seller_due: Option<Minute>) {
        let split = SplitKey { charge, index: part.index };
        let (due, to_available, to_pending) = (part.due, part.to_available, part.to_pending);
        self.open.insert(self.raised, Debt { refund, split, due, to_available, to_pending, seller_due });
        self.touched.touch(self.raised / DEBTS_PER_SECTION);
        self.raised += 1;
    }

    /// Repayments that this much of Available allows; `pending` gives the pending rest of each
    /// debt's own split.
    pub(super) fn repaid(&self, available: Centavos, pending: impl Fn(&Debt) -> Centavos) -> Vec<PaidBack> {
        let mut available = available;
        let mut repaid = Vec::new();
        for debt in self.iter() {
            let from_pending = pending(debt);
            let from_available = available.min(debt.left() - from_pending);
            available -= from_available;
            let paid = from_pending + from_available;
            if paid.is_positive() {
                let to_available = paid.min(debt.to_available);
                repaid.push(PaidBack {
                    split: debt.split,
                    refund: debt.refund,
                    from_pending,
                    due: debt.due,
                    from_available,
                    to_available,
                    to_pending: paid - to_available,
                    seller_due: debt.seller_due,
                });
            }
        }
        repaid
    }

    /// The oldest parts of the debts that sum to an amount, or to all that there is.
    pub(super) fn oldest(&self, amount: Centavos) -> Vec<DebtPart> {
        let mut left = amount;
        let parts = self.iter().map(|debt| {
            let part = left.min(debt.left());
            left -= part;
            let to_available = part.min(debt.to_available);
            DebtPart { split: debt.split, refund: debt.refund, to_available, to_pending: part - to_available }
        });
        parts.take_while(|part| part.total().is_positive()).collect()
    }

    /// Lowers debts that were paid back or written off, wholly or in part; they come in the order
    /// of the debts.
    pub(super) fn lower(&mut self, parts: impl Iterator<Item = DebtPart>) {
        let mut from = 0;
        for part in parts {
            let is_of = |debt: &Debt| debt.refund == part.refund && debt.split == part.split;
            let Some((number, debt)) = self.open.range_mut(from..).find(|(_, debt)| is_of(debt)) else { continue };
            let number = *number;
            debt.to_available -= part.to_available;
            debt.to_pending -= part.to_pending;
            if debt.left().is_zero() {
                self.open.remove(&number);
            }
            self.touched.touch(number / DEBTS_PER_SECTION);
            from = number;
        }
    }

    pub(super) fn take_touched(&mut self, kind: u8) -> impl Iterator<Item = Section> + use<> {
        self.touched.take(kind)
    }

    /// The encoding of one section, `[[number, debt], …]`; `None` if there is nothing in it.
    pub(super) fn section(&self, number: u64) -> Option<Vec<u8>> {
        let first = number.checked_mul(DEBTS_PER_SECTION)?;
        let there: Vec<_> = self.open.range(first..first.saturating_add(DEBTS_PER_SECTION)).collect();
        (!there.is_empty()).then(|| minicbor::to_vec(there).expect("writing into memory cannot fail"))
    }

    /// Adds what the encoding of one section says.
    pub(super) fn read_section(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let there: Vec<(u64, Debt)> = minicbor::decode(bytes)?;
        self.open.extend(there);
        Ok(())
    }

    /// Sets the number of the next debt.
    pub(super) fn set_raised(&mut self, raised: u64) {
        self.raised = raised;
    }
}
