//! Where a report or an export begins that does not read the journal from its first Record: the
//! nearest balance file before its first day. What follows is read from the journal.

use std::collections::BTreeMap;
use std::error::Error;

use actors::balance_files::{AnticipatedOn, AnticipatedSums, AsOf, Told};
use actors::store::Sequence;
use ledger::event::{CardBrand, Event};
use ledger::fees::Settings;
use ledger::id::GroupNumber;
use ledger::record::Record;
use ledger::time::Month;

/// Error of the books before a report or an export.
pub type BeforeError = Box<dyn Error + Send + Sync>;

/// Reads one Record.
pub type ReadRecord<'a> = Box<dyn Fn(Sequence) -> Result<Record, BeforeError> + 'a>;

/// Brands of the cards of pending charges, by group and by the ordinal of the Record that opened
/// each.
pub type PendingCards = BTreeMap<(GroupNumber, u64), CardBrand>;

/// Books after a Record before the first day.
pub struct Before<'a> {
    as_of: AsOf,
    read: ReadRecord<'a>,
}

impl<'a> Before<'a> {
    /// The books of a balance file; single Records before it are read with `read`.
    pub fn new(as_of: AsOf, read: ReadRecord<'a>) -> Self {
        Self { as_of, read }
    }

    /// The last Record that counts.
    pub fn through(&self) -> Sequence {
        self.as_of.through()
    }

    /// When it was booked, milliseconds since 1970 (UTC).
    pub fn booked_at_ms(&self) -> i64 {
        self.as_of.booked_at_ms()
    }

    /// Takes every ledger and account, as [`AsOf::ledgers`] gives them.
    pub fn each_ledger(&self, mut take: impl FnMut(Told)) -> Result<(), BeforeError> {
        for told in self.as_of.ledgers(None) {
            take(told?);
        }
        Ok(())
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
        let Some(last) = changes.into_iter().take_while(|by| *by <= at).last() else { return Ok(None) };
        let found = (self.read)(last)?.events.into_iter().rev().find_map(|event| match event {
            Event::MerchantOpened { settings, .. } | Event::MerchantChanged { settings } => Some(settings),
            _ => None,
        });
        Ok(found)
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
