//! End of a merchant: while it is closing it takes no new charges, and what is open goes on. It is
//! closed once nothing of it is open and its ledger holds and owes nothing. While money or a debt
//! has come back later (a returned transfer, a chargeback, a late capture), readers show it as
//! closing again.

use strum::IntoStaticStr;

use super::MerchantState;
use super::adjustments::Open;
use crate::{Account, Centavos, ObjectId, Rejection, Result};

/// Kind of something that is open of a merchant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum OpenKind {
    /// A card charge without an outcome, or a PIX code that can be paid.
    Charge,
    /// A subscription that goes on.
    Subscription,
    /// A cashout in processing.
    Cashout,
    /// A refund that waits for its decision.
    Refund,
    /// A dispute that waits for its decision.
    Dispute,
    /// Money on its way back to a payer.
    Repayment,
    /// An entry that waits for a second operator.
    Entry,
}

/// Something that is open of a merchant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenItem {
    /// Its kind.
    pub kind: OpenKind,
    /// Its id.
    pub id: ObjectId,
    /// Its amount, centavos; none of a subscription.
    pub amount: Option<Centavos>,
}

impl MerchantState {
    /// Refuses a new charge of a merchant that operators suspended, or that is closing.
    pub(super) fn takes_charges(&self) -> Result<()> {
        match self.settings {
            settings if settings.suspended => Err(Rejection::MerchantSuspended),
            settings if settings.closing => Err(Rejection::MerchantIsClosing),
            _ => Ok(()),
        }
    }

    /// All that is open, by kind and then oldest id first.
    pub fn open_items(&self) -> Vec<OpenItem> {
        let charges = self.open_charges().iter().map(|(id, charge)| (OpenKind::Charge, *id, Some(charge.terms.amount)));
        let subscriptions = self.subscriptions().keys().map(|id| (OpenKind::Subscription, *id, None));
        let cashouts = self.cashouts.by_id().iter();
        let cashouts = cashouts.map(|(id, cashout)| (OpenKind::Cashout, *id, Some(cashout.amount)));
        let entries = self.write_off.iter().chain(&self.goodwill);
        let entries = entries.map(|entry| (OpenKind::Entry, entry.id, Some(entry.amount)));
        let adjustments = self.adjustments.all_open().map(|(id, open)| match open {
            Open::Refund { amount, .. } => (OpenKind::Refund, id, Some(*amount)),
            Open::Dispute { amount, .. } => (OpenKind::Dispute, id, Some(*amount)),
            Open::Repayment(repayment) => (OpenKind::Repayment, id, Some(repayment.amount)),
        });
        let all = charges.chain(subscriptions).chain(cashouts).chain(entries).chain(adjustments);
        let mut items: Vec<_> = all.map(|(kind, id, amount)| OpenItem { kind, id, amount }).collect();
        items.sort_by_key(|item| (item.kind, item.id));
        items
    }

    /// The merchant's money and debts, and what its recipients owe to it: the accounts that are not
    /// zero, centavos.
    pub fn open_balances(&self) -> Vec<(Account, Centavos)> {
        open_balances(self.ledger.balances().into_iter().map(|(account, balance)| (account, balance.net())))
    }

    /// Refuses to close a merchant of which something is open.
    pub(super) fn check_closable(&self) -> Result<()> {
        match self.open_items().is_empty() && self.open_balances().is_empty() {
            true => Ok(()),
            false => Err(Rejection::MerchantNotEmpty),
        }
    }
}

/// Balances of a merchant's or recipient's money and debts that are not zero, centavos. What was
/// earned, spent and sent is none of them.
pub fn open_balances(balances: impl Iterator<Item = (Account, i128)>) -> Vec<(Account, Centavos)> {
    let open = balances.filter(|(account, net)| *net != 0 && is_open(*account));
    open.map(|(account, net)| (account, Centavos(i64::try_from(net.abs()).unwrap_or(i64::MAX)))).collect()
}

/// Whether an account is money or a debt of a merchant or recipient.
fn is_open(account: Account) -> bool {
    let is_debt = matches!(account, Account::Deficit | Account::Clawback | Account::ReceivableRecipient(_));
    is_debt || account.is_claim_on_platform()
}
