//! Where a report or an export begins that does not read the journal from its first Record: the
//! nearest balance file before its first day. What follows is read from the journal.

use std::collections::BTreeMap;
use std::error::Error;

use actors::engine::{AnticipatedOn, AnticipatedSums, AsOf, Told};
use actors::store::Sequence;
use ledger::event::CardBrand;
use ledger::fees::Settings;
use ledger::id::GroupNumber;
use ledger::receivables::Receivables;
use ledger::time::Month;

/// Error of the books before a report or an export.
pub type BeforeError = Box<dyn Error + Send + Sync>;

/// Brands of the cards of pending charges, by group and by the ordinal of the Record that opened
/// each.
pub type PendingCards = BTreeMap<(GroupNumber, u64), CardBrand>;

/// Books after a Record before the first day.
pub struct Before {
    as_of: AsOf,
}

impl Before {
    /// The books of a balance file.
    pub fn new(as_of: AsOf) -> Self {
        Self { as_of }
    }

    /// What is due to whom, if it was asked for.
    pub fn take_receivables(&mut self) -> Receivables {
        self.as_of.take_receivables()
    }

    /// The last Record that counts.
    pub fn through(&self) -> Sequence {
        self.as_of.through()
    }

    /// When it was booked, milliseconds since 1970 (UTC).
    pub fn booked_at_ms(&self) -> i64 {
        self.as_of.booked_at_ms()
    }

    /// Every ledger and account, as [`AsOf::ledgers`] gives them.
    pub fn ledgers(&self) -> impl Iterator<Item = Result<Told, BeforeError>> + '_ {
        self.as_of.ledgers(None).map(|told| Ok(told?))
    }

    /// The settings of a merchant; none before it was opened.
    pub fn settings(&self, group: GroupNumber) -> Result<Option<Settings>, BeforeError> {
        self.settings_at(group, self.through())
    }

    /// The settings of a merchant when it opened a pending charge, by the ordinal of that Record;
    /// none when the charge is not pending.
    pub fn settings_of_pending(&self, group: GroupNumber, ordinal: u64) -> Result<Option<Settings>, BeforeError> {
        let Some(opened) = self.as_of.opened(group, ordinal)? else { return Ok(None) };
        Ok(Some(self.settings_at(group, opened)?.unwrap_or_default()))
    }

    fn settings_at(&self, group: GroupNumber, at: Sequence) -> Result<Option<Settings>, BeforeError> {
        let changes = self.as_of.settings(group)?;
        Ok(changes.into_iter().take_while(|(by, _)| *by <= at).last().map(|(_, settings)| settings))
    }

    /// Brands of the cards of pending charges.
    pub fn pending_cards(&self) -> Result<PendingCards, BeforeError> {
        let mut found = PendingCards::new();
        for told in self.as_of.pending(None) {
            if let Told::Pending { group, ordinal, brand: Some(brand), .. } = told? {
                found.insert((group, ordinal), brand);
            }
        }
        Ok(found)
    }

    /// See [`AsOf::anticipated`].
    pub fn anticipated(&self) -> Result<Vec<(AnticipatedOn, AnticipatedSums)>, BeforeError> {
        Ok(self.as_of.anticipated()?.into_iter().collect())
    }

    /// The months that were closed, each with the Record that closed it.
    pub fn closed(&self) -> Result<Vec<(Month, Sequence)>, BeforeError> {
        Ok(self.as_of.closed()?)
    }
}
