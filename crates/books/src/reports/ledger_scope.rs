//! Ledgers that a report is of: all, one, or the platform as one.

use derived::names::{HOUSE, Names};
use ledger::{Account, GroupNumber, LedgerId, ObjectId};

use crate::export::PLATFORM;

/// Ledgers that a report is of.
#[derive(Clone, Debug)]
pub(super) struct LedgerScope {
    /// The outside name that was asked for.
    name: Option<String>,
    /// The ledger of that name, once a Record has named it.
    found: Option<LedgerId>,
}

impl LedgerScope {
    pub(super) fn new(name: Option<&str>) -> Self {
        let is_known = matches!(name, Some(HOUSE | PLATFORM));
        Self { name: name.map(str::to_owned), found: is_known.then_some(LedgerId::System) }
    }

    /// Looks whether a ledger that was opened with an id is the one.
    pub(super) fn learn(&mut self, opened: LedgerId, id: ObjectId) {
        let Some(name) = self.name.as_deref().filter(|_| self.found.is_none()) else { return };
        let mut names = Names::default();
        names.insert(opened, id);
        let shard = match opened {
            LedgerId::Merchant(group) => Some(LedgerId::Platform(group)),
            _ => None,
        };
        self.found = [Some(opened), shard].into_iter().flatten().find(|ledger| names.of(*ledger) == name);
    }

    /// The name that no Record has named.
    pub(super) fn missing(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.found.is_none())
    }

    /// The one ledger that is asked for.
    pub(super) fn one(&self) -> Option<LedgerId> {
        self.found.filter(|_| !self.is_platform())
    }

    /// Whether a ledger belongs to it.
    pub(super) fn takes(&self, ledger: LedgerId) -> bool {
        match ledger {
            LedgerId::Platform(_) | LedgerId::System if self.is_platform() => true,
            ledger => self.name.is_none() || self.found == Some(ledger),
        }
    }

    /// The ledger and account under which an account is shown: the platform as one has one account
    /// of each kind.
    pub(super) fn shown(&self, ledger: LedgerId, account: Account) -> (LedgerId, Account) {
        match self.is_platform() {
            true => (LedgerId::System, Account::of_kind(account.code().0).unwrap_or(account)),
            false => (ledger, account),
        }
    }

    /// Outside names of a ledger and account as they are shown.
    pub(super) fn names(&self, (ledger, account): (LedgerId, Account), names: &Names) -> (String, String) {
        match self.is_platform() {
            true => (PLATFORM.to_owned(), account.kind_name()),
            false => {
                let group = ledger.group().unwrap_or(GroupNumber(0));
                (names.of(ledger), account.name(group, |ledger| names.of(ledger)))
            }
        }
    }

    fn is_platform(&self) -> bool {
        self.name.as_deref() == Some(PLATFORM)
    }
}
