//! Where a report or an export begins that does not read the journal from its first Record: the
//! nearest balance file before its first day. What follows is read from the journal.

use std::collections::BTreeMap;
use std::error::Error;

use derived::balance_files::{AnticipatedOn, AnticipatedSums, BooksAsOf, CarriedFact};
use ledger::event::CardBrand;
use ledger::fees::Settings;
use ledger::id::GroupNumber;
use ledger::receivables::Receivables;
use ledger::time::Month;
use store::cut::{Cut, Position};

/// Error of the books before a report or an export.
pub type OpeningBooksError = Box<dyn Error + Send + Sync>;

/// Brands of the cards of pending charges, by group and by the ordinal of the Record that opened
/// each.
pub type PendingCards = BTreeMap<(GroupNumber, u64), CardBrand>;

/// Books after a Record before the first day.
pub struct OpeningBooks {
    as_of: BooksAsOf,
}

impl OpeningBooks {
    /// The books of a balance file.
    pub fn new(as_of: BooksAsOf) -> Self {
        Self { as_of }
    }

    /// What is due to whom, if it was asked for.
    pub fn take_receivables(&mut self) -> Receivables {
        self.as_of.take_receivables()
    }

    /// The last Records that count.
    pub fn through(&self) -> Cut {
        self.as_of.through()
    }

    /// When the last of them was booked, milliseconds since 1970 (UTC).
    pub fn booked_at_ms(&self) -> i64 {
        self.as_of.booked_at_ms()
    }

    /// Every ledger and account, as [`BooksAsOf::ledgers`] gives them.
    pub fn ledgers(&self) -> impl Iterator<Item = Result<CarriedFact, OpeningBooksError>> + '_ {
        self.as_of.ledgers().map(|fact| Ok(fact?))
    }

    /// The settings of a merchant; none before it was opened.
    pub fn settings(&self, group: GroupNumber) -> Result<Option<Settings>, OpeningBooksError> {
        Ok(self.as_of.settings(group)?.pop().map(|(_, settings)| settings))
    }

    /// The settings of a merchant when it opened a pending charge, by the ordinal of that Record;
    /// `None` if the charge is not pending.
    pub fn settings_of_pending(&self, group: GroupNumber, ordinal: u64) -> Result<Option<Settings>, OpeningBooksError> {
        let Some(opened) = self.as_of.opened(group, ordinal)? else { return Ok(None) };
        let changes = self.as_of.settings(group)?.into_iter();
        let at_opening = changes.take_while(|(by, _)| *by <= opened).last();
        Ok(Some(at_opening.map(|(_, settings)| settings).unwrap_or_default()))
    }

    /// Brands of the cards of pending charges.
    pub fn pending_cards(&self) -> Result<PendingCards, OpeningBooksError> {
        let mut found = PendingCards::new();
        for fact in self.as_of.pending() {
            if let CarriedFact::Pending { group, ordinal, brand: Some(brand), .. } = fact? {
                found.insert((group, ordinal), brand);
            }
        }
        Ok(found)
    }

    /// See [`BooksAsOf::anticipated`].
    pub fn anticipated(&self) -> Result<Vec<(AnticipatedOn, AnticipatedSums)>, OpeningBooksError> {
        Ok(self.as_of.anticipated()?.into_iter().collect())
    }

    /// The months that were closed, each with the Record that closed it in its partition.
    pub fn closed(&self) -> Result<Vec<(Month, Position)>, OpeningBooksError> {
        Ok(self.as_of.closed()?)
    }
}
