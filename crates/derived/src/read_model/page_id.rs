//! Page ids of the read model: which page holds the data of a ledger.

use ledger::{Event, GroupNumber, LedgerId, RecipientNumber, Record};

use crate::index;

const RECIPIENTS_A_PAGE: u32 = 32;

/// Prefix of the keys of pages, in the store's state area.
pub(super) const PREFIX: &[u8] = b"readers/";

/// A page: of a merchant with the platform's shard (0), or of recipients (n).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PageId {
    pub(super) group: GroupNumber,
    pub(super) page: u32,
}

impl PageId {
    /// The page of a ledger; none for the house, whose part is in the summary.
    pub(super) fn of(ledger: LedgerId) -> Option<Self> {
        match ledger {
            LedgerId::Merchant(group) | LedgerId::Platform(group) => Some(Self { group, page: 0 }),
            LedgerId::Recipient(group, number) => {
                Some(Self { group, page: 1 + number.0.saturating_sub(1) / RECIPIENTS_A_PAGE })
            }
            LedgerId::System => None,
        }
    }

    pub(super) fn ledgers(self) -> Vec<LedgerId> {
        match self.page.checked_sub(1) {
            None => vec![LedgerId::Merchant(self.group), LedgerId::Platform(self.group)],
            Some(page) => {
                let first = page * RECIPIENTS_A_PAGE + 1;
                let numbers = first..first + RECIPIENTS_A_PAGE;
                numbers.map(|number| LedgerId::Recipient(self.group, RecipientNumber(number))).collect()
            }
        }
    }

    pub(super) fn key(self) -> Vec<u8> {
        [PREFIX, &self.group.0.to_be_bytes(), &self.page.to_be_bytes()].concat()
    }

    pub(super) fn parse(key: &[u8]) -> Option<Self> {
        let (group, page) = key.strip_prefix(PREFIX)?.split_first_chunk()?;
        let page = u32::from_be_bytes(page.try_into().ok()?);
        Some(Self { group: GroupNumber(u32::from_be_bytes(*group)), page })
    }
}

/// True of the recipient with whom a page begins.
pub(super) fn begins_with(number: RecipientNumber) -> bool {
    number.0 % RECIPIENTS_A_PAGE == 1
}

/// The recipient whose registration an event is about.
pub(super) fn registered_by(record: &Record, event: &Event) -> Option<LedgerId> {
    Some(LedgerId::Recipient(record.owner.group()?, index::registered(event)?))
}

/// The pages of the recipients whose registration a Record is about.
pub(super) fn registered(record: &Record) -> impl Iterator<Item = PageId> {
    record.events.iter().filter_map(|event| registered_by(record, event)).filter_map(PageId::of)
}
