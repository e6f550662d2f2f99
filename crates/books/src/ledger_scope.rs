//! Ledgers that a report or an export is of: all, one, or the platform as one.

use derived::names::{HOUSE, Names};
use ledger::{Account, GroupNumber, LedgerId, ObjectId};

use crate::export::PLATFORM;

/// Ledgers that a report or an export is of.
#[derive(Clone, Debug, Default)]
pub(crate) struct LedgerScope {
    /// The outside name that was asked for.
    name: Option<String>,
    /// The ledger of that name, once a Record has named it; that of the house for the platform as
    /// one.
    pub(crate) found: Option<LedgerId>,
}

impl LedgerScope {
    pub(crate) fn new(name: Option<&str>) -> Self {
        let is_known = matches!(name, Some(HOUSE | PLATFORM));
        Self { name: name.map(str::to_owned), found: is_known.then_some(LedgerId::System) }
    }

    /// Looks whether a ledger that was opened with an id is the one.
    pub(crate) fn learn(&mut self, opened: LedgerId, id: ObjectId) {
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
    pub(crate) fn missing(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.found.is_none())
    }

    /// The one ledger that is asked for.
    pub(crate) fn one(&self) -> Option<LedgerId> {
        self.found.filter(|_| !self.is_platform())
    }

    /// Whether a ledger belongs to it.
    pub(crate) fn takes(&self, ledger: LedgerId) -> bool {
        match ledger {
            LedgerId::Platform(_) | LedgerId::System if self.is_platform() => true,
            ledger => self.name.is_none() || self.found == Some(ledger),
        }
    }

    /// The ledger under which an entry is shown: the platform may be shown as one.
    pub(crate) fn shown_ledger(&self, ledger: LedgerId) -> LedgerId {
        if self.is_platform() { LedgerId::System } else { ledger }
    }

    /// The account under which an account is shown: the platform as one has one of each kind.
    pub(crate) fn shown_account(&self, account: Account) -> Account {
        let kind = self.is_platform().then(|| Account::of_kind(account.code().0)).flatten();
        kind.unwrap_or(account)
    }

    /// The ledger and account under which an account is shown.
    pub(crate) fn shown(&self, ledger: LedgerId, account: Account) -> (LedgerId, Account) {
        (self.shown_ledger(ledger), self.shown_account(account))
    }

    /// Outside name of a ledger as it is shown.
    pub(crate) fn ledger_name(&self, ledger: LedgerId, names: &Names) -> String {
        if self.is_platform() { PLATFORM.to_owned() } else { names.of(ledger) }
    }

    /// Outside name of an account as it is shown.
    pub(crate) fn account_name(&self, (ledger, account): (LedgerId, Account), names: &Names) -> String {
        let group = ledger.group().unwrap_or(GroupNumber(0));
        if self.is_platform() { account.kind_name() } else { account.name(group, |ledger| names.of(ledger)) }
    }

    /// Both names.
    pub(crate) fn names(&self, of: (LedgerId, Account), names: &Names) -> (String, String) {
        (self.ledger_name(of.0, names), self.account_name(of, names))
    }

    fn is_platform(&self) -> bool {
        self.name.as_deref() == Some(PLATFORM)
    }
}
