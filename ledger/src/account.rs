//! Chart of accounts: the name, code, owner and mirror of every account. It is one file on purpose,
//! for accountants and auditors.
//!
//! Each ledger is written from its owner's viewpoint. The platform holds the money; merchants and
//! recipients hold claims on it, and every claim is mirrored by a liability in the platform's shard
//! of the same group ([`Account::mirror`]).
//!
//! The codes are part of the journal's format: a code is never given to another account.

use strum::EnumDiscriminants;

use crate::id::{GroupNumber, LedgerId, RecipientNumber};

/// One account of one ledger. Variants that carry a [`RecipientNumber`] exist once per recipient of
/// the group.
///
/// ```
/// use ledger::account::Account;
/// use ledger::id::{GroupNumber, LedgerId};
///
/// let (group, name_of) = (GroupNumber(1), |ledger: LedgerId| ledger.to_string());
/// assert_eq!(Account::Pending.name(group, name_of), "Assets:Platform:Pending");
///
/// // The claim of a merchant is a liability of the platform.
/// let (shard, liability) = Account::Pending.mirror(LedgerId::Merchant(group)).unwrap();
/// assert_eq!(shard, LedgerId::Platform(group));
/// assert_eq!(liability.name(group, name_of), "Liabilities:Merchants:M-1:Pending");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EnumDiscriminants)]
#[strum_discriminants(name(AccountCode), vis(pub(crate)))]
#[repr(u16)]
pub enum Account {
    // Of merchants and recipients alike: claims on the platform.
    /// Money that falls due later.
    Pending = 1,
    /// Money that can be paid out.
    Available = 2,
    // Of the merchant.
    /// Held for a cashout under way.
    ReservedCashout = 3,
    /// Held for a dispute.
    ReservedDispute = 4,
    /// Cashouts that the rail took.
    TransitCashout = 5,
    /// Debt of a recipient after a take-back.
    ReceivableRecipient(RecipientNumber) = 6,
    /// Debt of the merchant to the platform.
    Deficit = 7,
    /// Card sales.
    SalesCard = 8,
    /// PIX sales.
    SalesPix = 9,
    /// Initial fees of subscriptions.
    SalesInitialFee = 10,
    /// The part of the sales that belongs to recipients.
    ContraSplits = 11,
    /// Sales given back.
    ContraRefunds = 12,
    /// Sales lost to chargebacks.
    ContraChargebacks = 13,
    /// Income of any other kind.
    OtherIncome = 14,
    /// Acquirer's merchant discount rate, as the merchant pays it.
    FeeMdr = 15,
    /// Antifraud fee.
    FeeAntifraud = 16,
    /// The platform's margin.
    FeeMargin = 17,
    /// PIX commission.
    FeePix = 18,
    /// Cashout fee.
    FeeCashout = 19,
    /// Take-backs that will not be paid back.
    LossClawback = 20,
    // Of the recipient.
    /// Held for a withdrawal under way.
    ReservedWithdrawal = 21,
    /// Withdrawals that the rail took.
    TransitWithdrawal = 22,
    /// Splits of card charges.
    SplitsCard = 23,
    /// Splits of PIX charges.
    SplitsPix = 24,
    /// Splits taken back.
    SplitReversals = 25,
    /// Fee of an anticipation.
    FeeAnticipation = 26,
    /// Debt of the recipient to its merchant.
    Clawback = 27,
    // Of the platform's shard.
    /// What the card acquirer owes.
    AcquirerReceivable = 28,
    /// The settlement account at the bank.
    BankSettlement = 29,
    /// The PIX account at the bank.
    BankPix = 30,
    /// Debt of the merchant: the mirror of [`Account::Deficit`].
    MerchantDeficit = 31,
    /// Owed to the merchant, falling due later.
    MerchantPending = 32,
    /// Owed to the merchant.
    MerchantAvailable = 33,
    /// Owed to the merchant, held for a cashout.
    MerchantReservedCashout = 34,
    /// Owed to the merchant, held for a dispute.
    MerchantReservedDispute = 35,
    /// Owed to a recipient, falling due later.
    RecipientPending(RecipientNumber) = 36,
    /// Owed to a recipient.
    RecipientAvailable(RecipientNumber) = 37,
    /// Owed to a recipient, held for a withdrawal.
    RecipientReservedWithdrawal(RecipientNumber) = 38,
    /// Refunds to payers that are decided and not yet sent.
    PayersRefunds = 39,
    /// Commission: MDR charged.
    CommissionMdr = 40,
    /// Commission: antifraud fee charged.
    CommissionAntifraud = 41,
    /// Commission: margin.
    CommissionMargin = 42,
    /// Commission on PIX.
    CommissionPix = 43,
    /// Cashout fees charged.
    IncomeCashout = 44,
    /// Anticipation fees charged.
    IncomeAnticipation = 45,
    /// Fee that the acquirer keeps (MDR).
    AcquirerMdr = 46,
    /// Receivables and fees that are lost to the platform.
    Losses = 47,
    /// Capital of the platform's owners.
    Capital = 48,
    // Of the house ledger only.
    /// The platform's own money at the bank.
    BankOwn = 49,
    /// Money at a bank that nobody has explained yet.
    Suspense = 50,
    /// Fees of the banks.
    BankFees = 51,
    /// Fees of the acquirer that belong to no charge.
    AcquirerFees = 52,
}

use Account::*;

/// Every account that carries no recipient, in the order of codes, with its English and its
/// Portuguese name.
const PLAIN: &[(Account, &str, &str)] = &[
    (Pending, "Assets:Platform:Pending", "Saldo a vencer"),
    (Available, "Assets:Platform:Available", "Saldo disponível"),
    (ReservedCashout, "Assets:Platform:Reserved:Cashout", "Saldo reservado para cashout"),
    (ReservedDispute, "Assets:Platform:Reserved:Dispute", "Saldo reservado para contestação"),
    (TransitCashout, "Assets:Transit:Cashout", "Cashouts em trânsito"),
    (Deficit, "Liabilities:Platform:Deficit", "Déficit com a plataforma"),
    (SalesCard, "Income:Sales:Card", "Vendas no cartão"),
    (SalesPix, "Income:Sales:Pix", "Vendas no PIX"),
    (SalesInitialFee, "Income:Sales:InitialFee", "Taxas de adesão"),
    (ContraSplits, "Income:Contra:Splits", "Repasses a recebedores"),
    (ContraRefunds, "Income:Contra:Refunds", "Reembolsos"),
    (ContraChargebacks, "Income:Contra:Chargebacks", "Contestações perdidas"),
    (OtherIncome, "Income:Other", "Outras receitas"),
    (FeeMdr, "Expenses:Fees:Mdr", "Tarifa de MDR"),
    (FeeAntifraud, "Expenses:Fees:Antifraud", "Tarifa de antifraude"),
    (FeeMargin, "Expenses:Fees:Margin", "Tarifa da plataforma"),
    (FeePix, "Expenses:Fees:Pix", "Tarifa de PIX"),
    (FeeCashout, "Expenses:Fees:Cashout", "Tarifa de cashout"),
    (LossClawback, "Expenses:Losses:Clawback", "Perdas com recebedores"),
    (ReservedWithdrawal, "Assets:Platform:Reserved:Withdrawal", "Saldo em saque"),
    (TransitWithdrawal, "Assets:Transit:Withdrawal", "Saques em trânsito"),
    (SplitsCard, "Income:Splits:Card", "Repasses recebidos no cartão"),
    (SplitsPix, "Income:Splits:Pix", "Repasses recebidos no PIX"),
    (SplitReversals, "Income:Contra:SplitReversals", "Repasses desfeitos"),
    (FeeAnticipation, "Expenses:Fees:Anticipation", "Deságio de antecipação"),
    (Clawback, "Liabilities:Clawback:{merchant}", "Repasses a devolver ao lojista"),
    (AcquirerReceivable, "Assets:Acquirer:Receivable", "A receber da adquirente"),
    (BankSettlement, "Assets:Bank:Settlement", "Banco conta liquidação"),
    (BankPix, "Assets:Bank:Pix", "Banco conta PIX"),
    (MerchantDeficit, "Assets:Merchants:{merchant}:Deficit", "Déficit de lojistas"),
    (MerchantPending, "Liabilities:Merchants:{merchant}:Pending", "Lojistas a vencer"),
    (MerchantAvailable, "Liabilities:Merchants:{merchant}:Available", "Lojistas disponível"),
    (MerchantReservedCashout, "Liabilities:Merchants:{merchant}:Reserved:Cashout", "Lojistas reservado para cashout"),
    (
        MerchantReservedDispute,
        "Liabilities:Merchants:{merchant}:Reserved:Dispute",
        "Lojistas reservado para contestação",
    ),
    (PayersRefunds, "Liabilities:Payers:Refunds", "Reembolsos a pagar"),
    (CommissionMdr, "Income:Commission:Mdr", "Receita de MDR"),
    (CommissionAntifraud, "Income:Commission:Antifraud", "Receita de antifraude"),
    (CommissionMargin, "Income:Commission:Margin", "Receita da plataforma"),
    (CommissionPix, "Income:Commission:Pix", "Receita de PIX"),
    (IncomeCashout, "Income:Fees:Cashout", "Receita de cashout"),
    (IncomeAnticipation, "Income:Fees:Anticipation", "Receita de antecipação"),
    (AcquirerMdr, "Expenses:Acquirer:Mdr", "Custo de MDR da adquirente"),
    (Losses, "Expenses:Losses:Other", "Perdas"),
    (Capital, "Equity:Capital", "Capital social"),
    (BankOwn, "Assets:Bank:Own", "Banco conta própria"),
    (Suspense, "Liabilities:Suspense", "Valores a identificar"),
    (BankFees, "Expenses:Bank:Fees", "Tarifas bancárias"),
    (AcquirerFees, "Expenses:Acquirer:Fees", "Tarifas da adquirente"),
];

type OfRecipient = fn(RecipientNumber) -> Account;

/// Every account that exists once per recipient, with the same.
const OF_RECIPIENTS: &[(OfRecipient, &str, &str)] = &[
    (ReceivableRecipient, "Assets:Receivable:Recipients:{recipient}", "A receber de recebedores"),
    (RecipientPending, "Liabilities:Recipients:{recipient}:Pending", "Recebedores a vencer"),
    (RecipientAvailable, "Liabilities:Recipients:{recipient}:Available", "Recebedores disponível"),
    (RecipientReservedWithdrawal, "Liabilities:Recipients:{recipient}:Reserved:Withdrawal", "Recebedores em saque"),
];

/// The row of a code.
fn plain(code: u16) -> Option<&'static (Account, &'static str, &'static str)> {
    PLAIN.binary_search_by_key(&code, |(account, ..)| account.code().0).ok().map(|at| &PLAIN[at])
}

impl Account {
    /// The account's stable number, and the recipient that it belongs to.
    pub fn code(self) -> (u16, Option<RecipientNumber>) {
        let recipient = match self {
            ReceivableRecipient(number)
            | RecipientPending(number)
            | RecipientAvailable(number)
            | RecipientReservedWithdrawal(number) => Some(number),
            _ => None,
        };
        (AccountCode::from(self) as u16, recipient)
    }

    /// The account of a code; `None` if this release does not know it.
    pub fn from_code(code: u16, recipient: Option<RecipientNumber>) -> Option<Self> {
        match recipient {
            None => plain(code).map(|(account, ..)| *account),
            Some(number) => {
                let mut accounts = OF_RECIPIENTS.iter().map(|(account, ..)| account(number));
                accounts.find(|account| account.code().0 == code)
            }
        }
    }

    /// The account of a code, or any of those that exist once per recipient; `None` if this release
    /// does not know it.
    pub fn of_kind(code: u16) -> Option<Self> {
        Self::from_code(code, None).or_else(|| Self::from_code(code, Some(RecipientNumber(1))))
    }

    /// The name of all accounts of this kind: the full name without the owner's id.
    pub fn kind_name(self) -> String {
        self.names().0.replace(":{merchant}", "").replace(":{recipient}", "")
    }

    /// The name, with a place for an id, and the name in Portuguese.
    fn names(self) -> (&'static str, &'static str) {
        let (code, recipient) = self.code();
        let names = match recipient {
            None => plain(code).map(|(_, name, portuguese)| (*name, *portuguese)),
            Some(number) => {
                let row = OF_RECIPIENTS.iter().find(|(account, ..)| account(number) == self);
                row.map(|(_, name, portuguese)| (*name, *portuguese))
            }
        };
        names.expect("the tables hold every account")
    }

    /// The account as a Brazilian accountant names it; its ids stand in [`Account::name`] only.
    pub fn name_ptbr(self) -> &'static str {
        self.names().1
    }

    /// The account of a full name, or of the name of its kind; of those that exist once per
    /// recipient any one. `None` if it is no account's name.
    pub fn named(name: &str) -> Option<Self> {
        let without_id = |part: &&str| !["M-", "R-", "{"].iter().any(|begin| part.starts_with(begin));
        let is_named = |of: &str| of.split(':').filter(without_id).eq(name.split(':').filter(without_id));
        let plain = PLAIN.iter().find(|(_, of, _)| is_named(of)).map(|(account, ..)| *account);
        let of_recipients = || OF_RECIPIENTS.iter().find(|(_, of, _)| is_named(of));
        plain.or_else(|| of_recipients().map(|(account, ..)| account(RecipientNumber(1))))
    }

    /// The account's full name. Components begin with an upper-case letter, as the plain-text
    /// accounting tools demand; ids carry a prefix (`M-…`, `R-…`). `name_of` gives the outside name
    /// of a ledger.
    pub fn name(self, group: GroupNumber, name_of: impl Fn(LedgerId) -> String) -> String {
        let (name, _) = self.names();
        match self.code().1 {
            None if name.contains("{merchant}") => name.replace("{merchant}", &name_of(LedgerId::Merchant(group))),
            None => name.to_owned(),
            Some(number) => name.replace("{recipient}", &name_of(LedgerId::Recipient(group, number))),
        }
    }

    /// True for `Assets:Platform:*`, which is never negative: a shortfall goes to `Deficit` or
    /// `Clawback`.
    pub fn is_claim_on_platform(self) -> bool {
        matches!(self, Pending | Available | ReservedCashout | ReservedDispute | ReservedWithdrawal)
    }

    /// The account in another ledger of the group that must always show the same amount on the
    /// other side.
    pub fn mirror(self, ledger: LedgerId) -> Option<(LedgerId, Self)> {
        let group = ledger.group()?;
        let (platform, merchant) = (LedgerId::Platform(group), LedgerId::Merchant(group));
        let recipient = |number| LedgerId::Recipient(group, number);
        match (ledger, self) {
            (LedgerId::Merchant(_), Pending) => Some((platform, MerchantPending)),
            (LedgerId::Merchant(_), Available) => Some((platform, MerchantAvailable)),
            (LedgerId::Merchant(_), ReservedCashout) => Some((platform, MerchantReservedCashout)),
            (LedgerId::Merchant(_), ReservedDispute) => Some((platform, MerchantReservedDispute)),
            (LedgerId::Merchant(_), Deficit) => Some((platform, MerchantDeficit)),
            (LedgerId::Merchant(_), ReceivableRecipient(number)) => Some((recipient(number), Clawback)),
            (LedgerId::Recipient(_, number), Pending) => Some((platform, RecipientPending(number))),
            (LedgerId::Recipient(_, number), Available) => Some((platform, RecipientAvailable(number))),
            (LedgerId::Recipient(_, number), ReservedWithdrawal) => {
                Some((platform, RecipientReservedWithdrawal(number)))
            }
            (LedgerId::Recipient(_, number), Clawback) => Some((merchant, ReceivableRecipient(number))),
            (LedgerId::Platform(_), MerchantPending) => Some((merchant, Pending)),
            (LedgerId::Platform(_), MerchantAvailable) => Some((merchant, Available)),
            (LedgerId::Platform(_), MerchantReservedCashout) => Some((merchant, ReservedCashout)),
            (LedgerId::Platform(_), MerchantReservedDispute) => Some((merchant, ReservedDispute)),
            (LedgerId::Platform(_), MerchantDeficit) => Some((merchant, Deficit)),
            (LedgerId::Platform(_), RecipientPending(number)) => Some((recipient(number), Pending)),
            (LedgerId::Platform(_), RecipientAvailable(number)) => Some((recipient(number), Available)),
            (LedgerId::Platform(_), RecipientReservedWithdrawal(number)) => {
                Some((recipient(number), ReservedWithdrawal))
            }
            _ => None,
        }
    }

    /// True for the accounts of the platform's shards and of the house. Those of merchants and
    /// recipients have the codes before.
    pub fn is_of_platform(self) -> bool {
        self.code().0 >= AccountCode::AcquirerReceivable as u16
    }

    /// True for the accounts that must sum to zero over a group: splits given and splits received.
    pub fn is_split_clearing(self) -> bool {
        matches!(self, ContraSplits | SplitsCard | SplitsPix | SplitReversals)
    }

    /// True for the accounts that must sum to zero over a group: fees paid are the platform's
    /// commission and fee income.
    pub fn is_fee_clearing(self) -> bool {
        matches!(
            self,
            FeeMdr
                | FeeAntifraud
                | FeeMargin
                | FeePix
                | FeeCashout
                | FeeAnticipation
                | CommissionMdr
                | CommissionAntifraud
                | CommissionMargin
                | CommissionPix
                | IncomeCashout
                | IncomeAnticipation
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_account() -> impl Iterator<Item = Account> {
        let number = RecipientNumber(7);
        PLAIN.iter().map(|row| row.0).chain(OF_RECIPIENTS.iter().map(move |row| row.0(number)))
    }

    #[test]
    fn codes_are_sorted_and_lead_back_to_their_account() {
        assert!(PLAIN.is_sorted_by_key(|row| row.0.code()));
        for account in every_account() {
            let (code, recipient) = account.code();
            assert_eq!(Account::from_code(code, recipient), Some(account));
        }
        assert_eq!(every_account().count(), 52, "codes 1 to 52 are taken");
        assert_eq!(Account::from_code(6, None), None);
        assert_eq!(Account::from_code(1, Some(RecipientNumber(1))), None);
    }

    #[test]
    fn a_kind_has_a_name_of_its_own_without_ids() {
        let names: std::collections::BTreeSet<String> = every_account().map(Account::kind_name).collect();
        assert_eq!(names.len(), 52);
        assert!(names.iter().all(|name| !name.contains('{')), "{names:?}");
        assert!(names.contains("Liabilities:Recipients:Pending") && names.contains("Liabilities:Clawback"));
        assert!((1..=52).all(|code| Account::of_kind(code).is_some_and(|account| account.code().0 == code)));
        assert_eq!(Account::of_kind(53), None);
    }

    #[test]
    fn a_mirror_mirrors_back() {
        let group = GroupNumber(3);
        let ledgers =
            [LedgerId::Merchant(group), LedgerId::Recipient(group, RecipientNumber(7)), LedgerId::Platform(group)];
        let mut pairs = 0;
        for ledger in ledgers {
            for account in every_account() {
                if let Some((other, mirrored)) = account.mirror(ledger) {
                    assert_eq!(mirrored.mirror(other), Some((ledger, account)));
                    pairs += 1;
                }
            }
        }
        assert_eq!(pairs, 2 * 9);
    }

    #[test]
    fn names_obey_the_plain_text_tools() {
        let name_of =
            |ledger| if matches!(ledger, LedgerId::Merchant(_)) { "M-1".to_owned() } else { "R-1".to_owned() };
        for account in every_account() {
            let name = account.name(GroupNumber(1), name_of);
            assert!(name.split(':').all(|part| part.starts_with(|first: char| first.is_ascii_uppercase())), "{name}");
        }
    }
}
