//! Entry of an operator as JSON: one of the house ledger, the write-off of a debt, a credit to a
//! merchant or a recipient, the reversal of a dispute, or the return of a withdrawal.

use actors::engine::Engine;
use ledger::adjustment::{Adjustment, AdjustmentTerms};
use ledger::asked_entry::{AskedEntry, EntryDecision};
use ledger::house::{HouseEntry, HouseEntryTerms};
use ledger::withdrawal_return::{ReturnTerms, WithdrawalReturn};
use ledger::write_off::{WriteOff, WriteOffTerms};
use ledger::{Account, AdjustmentTarget, Dispute, DisputeKind, HOUSE_GROUP, LedgerId, ObjectId, RecipientNumber};
use serde::Serialize;
use utoipa::ToSchema;
use wire::timestamp::date;

use crate::views::ledger::ledger_name;
use crate::{Problem, broken, time};

/// An entry of an operator, as it stands.
pub enum OperatorEntry {
    /// Of the house ledger.
    House(HouseEntry),
    /// The write-off of a debt.
    WriteOff(WriteOff),
    /// A credit to a merchant or a recipient, or the reversal of a dispute.
    Adjustment(Adjustment),
    /// The return of a withdrawal.
    Return(WithdrawalReturn),
}

impl OperatorEntry {
    /// The recipient to whom the house gives money; `None` of all other entries.
    pub fn credited_recipient(&self) -> Option<LedgerId> {
        match self {
            Self::Adjustment(Adjustment {
                owner: LedgerId::Merchant(group),
                terms: AdjustmentTerms { target: Some(AdjustmentTarget::Recipient(number)), .. },
                ..
            }) => Some(LedgerId::Recipient(*group, *number)),
            _ => None,
        }
    }

    /// The entry of an id; `None` if it is no entry's.
    pub fn find(engine: &Engine, id: ObjectId) -> Result<Option<Self>, Problem> {
        if engine.ids().group(id) == HOUSE_GROUP {
            return Ok(engine.object(id)?.map(Self::House));
        }
        if let Some(write_off) = engine.object(id)? {
            return Ok(Some(Self::WriteOff(write_off)));
        }
        match engine.object(id)? {
            Some(adjustment) => Ok(Some(Self::Adjustment(adjustment))),
            None => Ok(engine.object(id)?.map(Self::Return)),
        }
    }

    /// The entry with an id from the books.
    pub fn known(engine: &Engine, id: ObjectId) -> Result<Self, Problem> {
        Self::find(engine, id)?.ok_or_else(broken)
    }

    /// The id under which operators decide on it.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::House(entry) => entry.id,
            Self::WriteOff(write_off) => write_off.id,
            Self::Adjustment(adjustment) => adjustment.id,
            Self::Return(found) => found.id,
        }
    }

    /// The ledger that decides it.
    pub fn owner(&self) -> LedgerId {
        match self {
            Self::House(_) => LedgerId::System,
            Self::WriteOff(write_off) => write_off.owner,
            Self::Adjustment(adjustment) => adjustment.owner,
            Self::Return(found) => found.owner,
        }
    }
}

/// An entry of an operator, as read.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct HouseEntryView {
    /// Its id.
    pub id: String,
    /// `pending`, `approved` or `rejected`. An approved one is booked.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    pub status: &'static str,
    /// The account that is debited.
    pub debit: String,
    /// The account that is credited.
    pub credit: String,
    /// Amount of the entry, centavos.
    pub amount: i64,
    /// Why, as the operator who asked for it said.
    pub reason: String,
    /// Reference of the document that proves it.
    pub reference: String,
    /// The day on which it takes effect; absent where it is the day of its booking.
    pub effective_date: Option<String>,
    /// The withdrawal that came back; absent from other entries.
    #[schema(format = "uuid")]
    pub withdrawal: Option<String>,
    /// The dispute that was won after it had been accepted; absent from other entries.
    #[schema(format = "uuid")]
    pub dispute: Option<String>,
    /// The operator who asked for it.
    pub requested_by: String,
    /// When it was asked for.
    created_at: String,
    /// The operator who approved or rejected it; absent while it is pending.
    pub decided_by: Option<String>,
    /// Why it was rejected; rejected ones only.
    pub notes: Option<String>,
}

impl HouseEntryView {
    /// What is shown of an entry of the house ledger.
    pub fn of(entry: HouseEntry) -> Self {
        let asked = Self::asked(&entry);
        let HouseEntryTerms { debit, credit, amount, reference, effective_day } = entry.terms;
        Self {
            debit: debit.account().kind_name(),
            credit: credit.account().kind_name(),
            amount: amount.0,
            reference,
            effective_date: effective_day.map(date),
            ..asked
        }
    }

    /// What is shown of a write-off.
    pub fn of_write_off(engine: &Engine, entry: WriteOff) -> Self {
        let (debit, credit) = debt_accounts(engine, entry.owner).unwrap_or_default();
        let asked = Self::asked(&entry);
        let WriteOffTerms { amount, reference } = entry.terms;
        Self { debit, credit, amount: amount.0, reference, ..asked }
    }

    /// What is shown of a credit to a merchant or a recipient, or of the reversal of a dispute.
    pub fn of_adjustment(engine: &Engine, entry: Adjustment) -> Self {
        let asked = Self::asked(&entry);
        let AdjustmentTerms { amount, reference, target } = entry.terms;
        let accounts = match (target, entry.owner) {
            (Some(AdjustmentTarget::Dispute(id)), _) => reversal_accounts(engine, id),
            (Some(AdjustmentTarget::Recipient(number)), LedgerId::Merchant(group)) => {
                goodwill_accounts(engine, LedgerId::Recipient(group, number))
            }
            (_, owner) => goodwill_accounts(engine, owner),
        };
        let (debit, credit) = accounts.unwrap_or_default();
        let dispute = match target {
            Some(AdjustmentTarget::Dispute(id)) => Some(id.uuid().to_string()),
            Some(AdjustmentTarget::Recipient(_)) | None => None,
        };
        Self { debit, credit, amount: amount.0, reference, dispute, ..asked }
    }

    /// What is shown of the return of a withdrawal: the entry in the books of the platform.
    pub fn of_return(engine: &Engine, entry: WithdrawalReturn) -> Self {
        let number = match entry.owner {
            LedgerId::Recipient(_, number) => number,
            _ => RecipientNumber::default(),
        };
        let asked = Self::asked(&entry);
        let ReturnTerms { withdrawal, amount, bank, reference, effective_day } = entry.terms;
        Self {
            debit: bank.account().kind_name(),
            credit: name_in(engine, entry.owner, Account::RecipientAvailable(number)),
            amount: amount.0,
            reference,
            effective_date: effective_day.map(date),
            withdrawal: Some(withdrawal.uuid().to_string()),
            ..asked
        }
    }

    /// What is shown of any of them.
    pub fn of_any(engine: &Engine, entry: OperatorEntry) -> Self {
        match entry {
            OperatorEntry::House(entry) => Self::of(entry),
            OperatorEntry::WriteOff(write_off) => Self::of_write_off(engine, write_off),
            OperatorEntry::Adjustment(adjustment) => Self::of_adjustment(engine, adjustment),
            OperatorEntry::Return(found) => Self::of_return(engine, found),
        }
    }

    /// What all entries have.
    fn asked<T>(entry: &AskedEntry<T>) -> Self {
        let (status, decided_by, notes) = match entry.decision.clone() {
            EntryDecision::Pending => ("pending", None, None),
            EntryDecision::Approved { by } => ("approved", Some(by), None),
            EntryDecision::Rejected { by, notes } => ("rejected", Some(by), Some(notes)),
        };
        let (id, created_at) = (entry.id.uuid().to_string(), time(entry.id.created_at()));
        let (reason, requested_by) = (entry.reason.clone(), entry.requested_by.clone());
        Self { id, status, reason, requested_by, created_at, decided_by, notes, ..Self::default() }
    }
}

/// The names of the two accounts that the write-off of a debtor's debt moves: the loss, which is
/// debited, and the claim, which is credited. Both are in the books of the ledger that bears it.
/// None for the ledgers of the platform.
pub fn debt_accounts(engine: &Engine, debtor: LedgerId) -> Option<(String, String)> {
    let (loss, claim) = match debtor {
        LedgerId::Merchant(_) => (Account::Losses, Account::MerchantDeficit),
        LedgerId::Recipient(_, number) => (Account::LossClawback, Account::ReceivableRecipient(number)),
        LedgerId::Platform(_) | LedgerId::System => return None,
    };
    Some((name_in(engine, debtor, loss), name_in(engine, debtor, claim)))
}

/// The names of the two accounts that a credit of the house moves: its loss, which is debited, and
/// what it owes to the merchant or recipient. None for the ledgers of the platform.
pub fn goodwill_accounts(engine: &Engine, owner: LedgerId) -> Option<(String, String)> {
    let owed = match owner {
        LedgerId::Merchant(_) => Account::MerchantAvailable,
        LedgerId::Recipient(_, number) => Account::RecipientAvailable(number),
        LedgerId::Platform(_) | LedgerId::System => return None,
    };
    Some((name_in(engine, owner, Account::Losses), name_in(engine, owner, owed)))
}

/// The names of the accounts that the reversal of a dispute moves in the platform's books: where
/// the rail gives the money back, and what is owed to the merchant.
fn reversal_accounts(engine: &Engine, dispute: ObjectId) -> Option<(String, String)> {
    let dispute: Dispute = engine.object(dispute).ok().flatten()?;
    let given_by = match dispute.kind {
        DisputeKind::Chargeback => Account::AcquirerReceivable,
        DisputeKind::Med => Account::BankPix,
    };
    Some((name_in(engine, dispute.merchant, given_by), name_in(engine, dispute.merchant, Account::MerchantAvailable)))
}

/// The name of an account in the books of a ledger's group.
fn name_in(engine: &Engine, ledger: LedgerId, account: Account) -> String {
    account.name(ledger.group().unwrap_or_default(), |ledger| ledger_name(engine, ledger))
}
