//! Chart of accounts: the name, code, owner and mirror of every account. It is one file on purpose,
//! for accountants and auditors.
//!
//! Each ledger is written from its owner's viewpoint. The platform holds the money; merchants and
//! recipients hold claims on it, and every claim is mirrored by a liability in the platform's shard
//! of the same group ([`Account::mirror`]).
//!
//! The codes are part of the journal's format: a code is never given to another account.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    // Of merchants and recipients alike: claims on the platform.
    /// Money that falls due later.
    Pending,
    /// Money that can be paid out.
    Available,
    // Of the merchant.
    /// Held for a cashout under way.
    ReservedCashout,
    /// Held for a dispute.
    ReservedDispute,
    /// Cashouts that the rail took.
    TransitCashout,
    /// Debt of a recipient after a take-back.
    ReceivableRecipient(RecipientNumber),
    /// Debt of the merchant to the platform.
    Deficit,
    /// Card sales.
    SalesCard,
    /// PIX sales.
    SalesPix,
    /// Initial fees of subscriptions.
    SalesInitialFee,
    /// The part of the sales that belongs to recipients.
    ContraSplits,
    /// Sales given back.
    ContraRefunds,
    /// Sales lost to chargebacks.
    ContraChargebacks,
    /// Income of any other kind.
    OtherIncome,
    /// Acquirer's merchant discount rate, as the merchant pays it.
    FeeMdr,
    /// Antifraud fee.
    FeeAntifraud,
    /// The platform's margin.
    FeeMargin,
    /// PIX commission.
    FeePix,
    /// Cashout fee.
    FeeCashout,
    /// Take-backs that will not be paid back.
    LossClawback,
    // Of the recipient.
    /// Held for a withdrawal under way.
    ReservedWithdrawal,
    /// Withdrawals that the rail took.
    TransitWithdrawal,
    /// Splits of card charges.
    SplitsCard,
    /// Splits of PIX charges.
    SplitsPix,
    /// Splits taken back.
    SplitReversals,
    /// Fee of an anticipation.
    FeeAnticipation,
    /// Debt of the recipient to its merchant.
    Clawback,
    // Of the platform's shard.
    /// What the card acquirer owes.
    AcquirerReceivable,
    /// The settlement account at the bank.
    BankSettlement,
    /// The PIX account at the bank.
    BankPix,
    /// Debt of the merchant: the mirror of [`Account::Deficit`].
    MerchantDeficit,
    /// Owed to the merchant, falling due later.
    MerchantPending,
    /// Owed to the merchant.
    MerchantAvailable,
    /// Owed to the merchant, held for a cashout.
    MerchantReservedCashout,
    /// Owed to the merchant, held for a dispute.
    MerchantReservedDispute,
    /// Owed to a recipient, falling due later.
    RecipientPending(RecipientNumber),
    /// Owed to a recipient.
    RecipientAvailable(RecipientNumber),
    /// Owed to a recipient, held for a withdrawal.
    RecipientReservedWithdrawal(RecipientNumber),
    /// Refunds to payers that are decided and not yet sent.
    PayersRefunds,
    /// Commission: MDR charged.
    CommissionMdr,
    /// Commission: antifraud fee charged.
    CommissionAntifraud,
    /// Commission: margin.
    CommissionMargin,
    /// Commission on PIX.
    CommissionPix,
    /// Cashout fees charged.
    IncomeCashout,
    /// Anticipation fees charged.
    IncomeAnticipation,
    /// Fee that the acquirer keeps (MDR).
    AcquirerMdr,
    /// Receivables and fees that are lost to the platform.
    Losses,
    /// Capital of the platform's owners.
    Capital,
    // Of the house ledger only.
    /// The platform's own money at the bank.
    BankOwn,
    /// Money at a bank that nobody has explained yet.
    Suspense,
    /// Fees of the banks.
    BankFees,
    /// Fees of the acquirer that belong to no charge.
    AcquirerFees,
}

use Account::*;

/// Every account that carries no recipient, with its code and its name.
const PLAIN: &[(u16, Account, &str)] = &[
    (1, Pending, "Assets:Platform:Pending"),
    (2, Available, "Assets:Platform:Available"),
    (3, ReservedCashout, "Assets:Platform:Reserved:Cashout"),
    (4, ReservedDispute, "Assets:Platform:Reserved:Dispute"),
    (5, TransitCashout, "Assets:Transit:Cashout"),
    (7, Deficit, "Liabilities:Platform:Deficit"),
    (8, SalesCard, "Income:Sales:Card"),
    (9, SalesPix, "Income:Sales:Pix"),
    (10, SalesInitialFee, "Income:Sales:InitialFee"),
    (11, ContraSplits, "Income:Contra:Splits"),
    (12, ContraRefunds, "Income:Contra:Refunds"),
    (13, ContraChargebacks, "Income:Contra:Chargebacks"),
    (14, OtherIncome, "Income:Other"),
    (15, FeeMdr, "Expenses:Fees:Mdr"),
    (16, FeeAntifraud, "Expenses:Fees:Antifraud"),
    (17, FeeMargin, "Expenses:Fees:Margin"),
    (18, FeePix, "Expenses:Fees:Pix"),
    (19, FeeCashout, "Expenses:Fees:Cashout"),
    (20, LossClawback, "Expenses:Losses:Clawback"),
    (21, ReservedWithdrawal, "Assets:Platform:Reserved:Withdrawal"),
    (22, TransitWithdrawal, "Assets:Transit:Withdrawal"),
    (23, SplitsCard, "Income:Splits:Card"),
    (24, SplitsPix, "Income:Splits:Pix"),
    (25, SplitReversals, "Income:Contra:SplitReversals"),
    (26, FeeAnticipation, "Expenses:Fees:Anticipation"),
    (27, Clawback, "Liabilities:Clawback:{merchant}"),
    (28, AcquirerReceivable, "Assets:Acquirer:Receivable"),
    (29, BankSettlement, "Assets:Bank:Settlement"),
    (30, BankPix, "Assets:Bank:Pix"),
    (31, MerchantDeficit, "Assets:Merchants:{merchant}:Deficit"),
    (32, MerchantPending, "Liabilities:Merchants:{merchant}:Pending"),
    (33, MerchantAvailable, "Liabilities:Merchants:{merchant}:Available"),
    (34, MerchantReservedCashout, "Liabilities:Merchants:{merchant}:Reserved:Cashout"),
    (35, MerchantReservedDispute, "Liabilities:Merchants:{merchant}:Reserved:Dispute"),
    (39, PayersRefunds, "Liabilities:Payers:Refunds"),
    (40, CommissionMdr, "Income:Commission:Mdr"),
    (41, CommissionAntifraud, "Income:Commission:Antifraud"),
    (42, CommissionMargin, "Income:Commission:Margin"),
    (43, CommissionPix, "Income:Commission:Pix"),
    (44, IncomeCashout, "Income:Fees:Cashout"),
    (45, IncomeAnticipation, "Income:Fees:Anticipation"),
    (46, AcquirerMdr, "Expenses:Acquirer:Mdr"),
    (47, Losses, "Expenses:Losses:Other"),
    (48, Capital, "Equity:Capital"),
    (49, BankOwn, "Assets:Bank:Own"),
    (50, Suspense, "Liabilities:Suspense"),
    (51, BankFees, "Expenses:Bank:Fees"),
    (52, AcquirerFees, "Expenses:Acquirer:Fees"),
];

type OfRecipient = fn(RecipientNumber) -> Account;

/// Every account that exists once per recipient, with its code and its name.
const OF_RECIPIENTS: &[(u16, OfRecipient, &str)] = &[
    (6, ReceivableRecipient, "Assets:Receivable:Recipients:{recipient}"),
    (36, RecipientPending, "Liabilities:Recipients:{recipient}:Pending"),
    (37, RecipientAvailable, "Liabilities:Recipients:{recipient}:Available"),
    (38, RecipientReservedWithdrawal, "Liabilities:Recipients:{recipient}:Reserved:Withdrawal"),
];

impl Account {
    /// The account's stable number, and the recipient that it belongs to.
    pub fn code(self) -> (u16, Option<RecipientNumber>) {
        match self {
            ReceivableRecipient(number) => (6, Some(number)),
            RecipientPending(number) => (36, Some(number)),
            RecipientAvailable(number) => (37, Some(number)),
            RecipientReservedWithdrawal(number) => (38, Some(number)),
            plain => (plain.plain_code(), None),
        }
    }

    /// The account of a code; `None` if this release does not know it.
    pub fn from_code(code: u16, recipient: Option<RecipientNumber>) -> Option<Self> {
        match recipient {
            None => {
                let at = PLAIN.binary_search_by_key(&code, |(code, ..)| *code).ok()?;
                Some(PLAIN[at].1)
            }
            Some(number) => {
                OF_RECIPIENTS.iter().find(|(known, ..)| *known == code).map(|(_, account, _)| account(number))
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
        let (code, _) = self.code();
        let plain = PLAIN.iter().map(|(code, _, name)| (code, name));
        let mut all = plain.chain(OF_RECIPIENTS.iter().map(|(code, _, name)| (code, name)));
        let (_, name) = all.find(|(known, _)| **known == code).expect("the tables hold every account");
        name.replace(":{merchant}", "").replace(":{recipient}", "")
    }

    /// The account as a Brazilian accountant names it; its ids stand in [`Account::name`] only.
    pub fn name_ptbr(self) -> &'static str {
        match self {
            Pending => "Saldo a vencer",
            Available => "Saldo disponível",
            ReservedCashout => "Saldo reservado para cashout",
            ReservedDispute => "Saldo reservado para contestação",
            TransitCashout => "Cashouts em trânsito",
            ReceivableRecipient(_) => "A receber de recebedores",
            Deficit => "Déficit com a plataforma",
            SalesCard => "Vendas no cartão",
            SalesPix => "Vendas no PIX",
            SalesInitialFee => "Taxas de adesão",
            ContraSplits => "Repasses a recebedores",
            ContraRefunds => "Reembolsos",
            ContraChargebacks => "Contestações perdidas",
            OtherIncome => "Outras receitas",
            FeeMdr => "Tarifa de MDR",
            FeeAntifraud => "Tarifa de antifraude",
            FeeMargin => "Tarifa da plataforma",
            FeePix => "Tarifa de PIX",
            FeeCashout => "Tarifa de cashout",
            LossClawback => "Perdas com recebedores",
            ReservedWithdrawal => "Saldo em saque",
            TransitWithdrawal => "Saques em trânsito",
            SplitsCard => "Repasses recebidos no cartão",
            SplitsPix => "Repasses recebidos no PIX",
            SplitReversals => "Repasses desfeitos",
            FeeAnticipation => "Deságio de antecipação",
            Clawback => "Repasses a devolver ao lojista",
            AcquirerReceivable => "A receber da adquirente",
            BankSettlement => "Banco conta liquidação",
            BankPix => "Banco conta PIX",
            MerchantDeficit => "Déficit de lojistas",
            MerchantPending => "Lojistas a vencer",
            MerchantAvailable => "Lojistas disponível",
            MerchantReservedCashout => "Lojistas reservado para cashout",
            MerchantReservedDispute => "Lojistas reservado para contestação",
            RecipientPending(_) => "Recebedores a vencer",
            RecipientAvailable(_) => "Recebedores disponível",
            RecipientReservedWithdrawal(_) => "Recebedores em saque",
            PayersRefunds => "Reembolsos a pagar",
            CommissionMdr => "Receita de MDR",
            CommissionAntifraud => "Receita de antifraude",
            CommissionMargin => "Receita da plataforma",
            CommissionPix => "Receita de PIX",
            IncomeCashout => "Receita de cashout",
            IncomeAnticipation => "Receita de antecipação",
            AcquirerMdr => "Custo de MDR da adquirente",
            Losses => "Perdas",
            Capital => "Capital social",
            BankOwn => "Banco conta própria",
            Suspense => "Valores a identificar",
            BankFees => "Tarifas bancárias",
            AcquirerFees => "Tarifas da adquirente",
        }
    }

    /// The account of a full name, or of the name of its kind; of those that exist once per
    /// recipient any one. `None` if it is no account's name.
    pub fn named(name: &str) -> Option<Self> {
        let without_id = |part: &&str| !["M-", "R-", "{"].iter().any(|begin| part.starts_with(begin));
        let is_named = |of: &str| of.split(':').filter(without_id).eq(name.split(':').filter(without_id));
        let plain = PLAIN.iter().find(|(_, _, of)| is_named(of)).map(|(_, account, _)| *account);
        let of_recipients = || OF_RECIPIENTS.iter().find(|(_, _, of)| is_named(of));
        plain.or_else(|| of_recipients().map(|(_, account, _)| account(RecipientNumber(1))))
    }

    /// The account's full name. Components begin with an upper-case letter, as the plain-text
    /// accounting tools demand; ids carry a prefix (`M-…`, `R-…`). `name_of` gives the outside name
    /// of a ledger.
    pub fn name(self, group: GroupNumber, name_of: impl Fn(LedgerId) -> String) -> String {
        let (code, recipient) = self.code();
        match recipient {
            None => {
                let at =
                    PLAIN.binary_search_by_key(&code, |(code, ..)| *code).expect("the table holds every plain account");
                let template = PLAIN[at].2;
                if template.contains("{merchant}") {
                    template.replace("{merchant}", &name_of(LedgerId::Merchant(group)))
                } else {
                    template.to_owned()
                }
            }
            Some(number) => {
                let row =
                    OF_RECIPIENTS.iter().find(|(known, ..)| *known == code).expect("the table holds every account");
                row.2.replace("{recipient}", &name_of(LedgerId::Recipient(group, number)))
            }
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

    fn plain_code(self) -> u16 {
        match self {
            Pending => 1,
            Available => 2,
            ReservedCashout => 3,
            ReservedDispute => 4,
            TransitCashout => 5,
            ReceivableRecipient(_) => 6,
            Deficit => 7,
            SalesCard => 8,
            SalesPix => 9,
            SalesInitialFee => 10,
            ContraSplits => 11,
            ContraRefunds => 12,
            ContraChargebacks => 13,
            OtherIncome => 14,
            FeeMdr => 15,
            FeeAntifraud => 16,
            FeeMargin => 17,
            FeePix => 18,
            FeeCashout => 19,
            LossClawback => 20,
            ReservedWithdrawal => 21,
            TransitWithdrawal => 22,
            SplitsCard => 23,
            SplitsPix => 24,
            SplitReversals => 25,
            FeeAnticipation => 26,
            Clawback => 27,
            AcquirerReceivable => 28,
            BankSettlement => 29,
            BankPix => 30,
            MerchantDeficit => 31,
            MerchantPending => 32,
            MerchantAvailable => 33,
            MerchantReservedCashout => 34,
            MerchantReservedDispute => 35,
            RecipientPending(_) => 36,
            RecipientAvailable(_) => 37,
            RecipientReservedWithdrawal(_) => 38,
            PayersRefunds => 39,
            CommissionMdr => 40,
            CommissionAntifraud => 41,
            CommissionMargin => 42,
            CommissionPix => 43,
            IncomeCashout => 44,
            IncomeAnticipation => 45,
            AcquirerMdr => 46,
            Losses => 47,
            Capital => 48,
            BankOwn => 49,
            Suspense => 50,
            BankFees => 51,
            AcquirerFees => 52,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_account() -> impl Iterator<Item = Account> {
        let number = RecipientNumber(7);
        PLAIN.iter().map(|row| row.1).chain(OF_RECIPIENTS.iter().map(move |row| row.1(number)))
    }

    #[test]
    fn codes_are_sorted_and_lead_back_to_their_account() {
        assert!(PLAIN.is_sorted_by_key(|row| row.0));
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
