//! Withdrawal as JSON, for its merchant and for the operators who decide it.

use actors::engine::{Engine, RecipientRow};
use ledger::merchant::BankReview;
use ledger::withdrawal::RejectedBy;
use ledger::{BankAccount, ObjectId, RecipientProfile, Sealed, SealedFor, Withdrawal};
use serde::Serialize;
use utoipa::ToSchema;
use wire::bank_names::bank_name;
use wire::mask;
use wire::timestamp::date;

use crate::views::recipient::{find_recipient, recipient_id};
use crate::{Code, Problem, time};

/// A withdrawal, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalView {
    /// The withdrawal's id.
    pub id: String,
    /// Amount of the withdrawal, centavos.
    pub amount_cents: i64,
    /// `pending`, `approved` or `rejected`.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    pub status: &'static str,
    /// When it was asked for.
    pub created_at: String,
    /// When an administrator approved it; null until the money is sent. It stays when the money
    /// came back.
    #[schema(required)]
    pub approved_at: Option<String>,
    /// Why it was rejected.
    #[schema(required, example = json!(null))]
    pub notes: Option<String>,
    /// Who rejected it: an `operator`, the `bank` that did not pay it, the bank that `returned`
    /// the money, or the `merchant` that cancelled it; null unless it was rejected.
    #[schema(required, pattern = "^(operator|bank|returned|merchant)$", example = json!(null))]
    pub rejected_by: Option<&'static str>,
    /// Where the money goes: the account that was registered when it was asked for. Null when that
    /// is not known any more.
    #[schema(required)]
    pub destination: Option<WithdrawalDestinationView>,
}

/// A bank account, masked.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalDestinationView {
    /// 3 digits; null when the institution is named by its ISPB alone.
    #[schema(required, example = "341")]
    pub bank_code: Option<String>,
    /// ISPB of the institution.
    #[schema(required, example = "60701190")]
    pub ispb: Option<String>,
    /// Number of the branch; null of an account without branch.
    #[schema(required, example = "1234")]
    pub agencia: Option<String>,
    /// Account: its last digits, at most four and at most half of it.
    #[schema(example = "***89")]
    pub conta: String,
    /// `conta_corrente`, `conta_poupanca` or `conta_pagamento`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(conta_corrente|conta_poupanca|conta_pagamento)$")]
    pub kind: &'static str,
    /// Holder's name.
    #[schema(required, example = "Ana Prado")]
    pub legal_name: Option<String>,
    /// Holder's CPF or CNPJ, masked.
    pub document_number: String,
}

impl WithdrawalDestinationView {
    /// What is shown of an account.
    pub fn of(account: BankAccount) -> Self {
        Self {
            conta: mask::account(&account.conta),
            kind: account.kind.name(),
            document_number: mask::document(&account.document),
            bank_code: account.bank_code,
            ispb: account.ispb,
            agencia: account.agencia,
            legal_name: account.legal_name,
        }
    }

    /// The name of its bank, if it is known.
    pub fn bank_name(&self) -> Option<&'static str> {
        bank_name(self.bank_code.as_deref(), self.ispb.as_deref())
    }

    /// What is shown of the sealed account of a withdrawal; `None` if its data was erased.
    pub fn open(engine: &Engine, withdrawal: ObjectId, sealed: &Sealed) -> Option<Self> {
        engine.keyring().open_value(SealedFor::account(withdrawal), sealed).map(Self::of)
    }
}

/// A withdrawal, as whoever decides on it sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewedWithdrawal {
    #[serde(flatten)]
    /// As its merchant reads it.
    pub withdrawal: WithdrawalView,
    /// The recipient whose money it is.
    recipient_id: String,
    /// What of it was anticipated, and when that can be sent.
    pub settlements: Vec<SettlementView>,
    /// The API key that asked for it; null where none did.
    #[schema(required)]
    api_key_id: Option<String>,
    /// Where the review of a bank account stands that was registered since, and that the money does
    /// not go to; null when there is none.
    #[schema(required, pattern = "^(pending|rejected)$", example = json!(null))]
    bank_account_review: Option<&'static str>,
}

/// Anticipated money.
#[derive(Debug, Serialize, ToSchema)]
pub struct SettlementView {
    /// Day on which it can be sent (`YYYY-MM-DD`, Sao Paulo).
    pub settlement_date: String,
    /// After the fee, centavos.
    pub amount_cents: i64,
}

impl WithdrawalView {
    /// A withdrawal as lists show it: `pending` until the institution has taken the money.
    pub fn of(engine: &Engine, withdrawal: &Withdrawal) -> Self {
        let Withdrawal { id, paid_at, notes, rejected_by, destination, .. } = withdrawal;
        let was_sent = paid_at.is_some() || *rejected_by == Some(RejectedBy::Returned);
        Self {
            id: id.uuid().to_string(),
            amount_cents: withdrawal.amount.0,
            status: match (paid_at, notes) {
                (Some(_), _) => "approved",
                (None, Some(_)) => "rejected",
                (None, None) => "pending",
            },
            created_at: time(id.created_at()),
            approved_at: withdrawal.approved_at.filter(|_| was_sent).map(time),
            notes: notes.clone(),
            rejected_by: rejected_by.map(Into::into),
            destination: WithdrawalDestinationView::open(engine, *id, destination),
        }
    }
}

impl ReviewedWithdrawal {
    /// A withdrawal as whoever decides on it sees it.
    pub fn of(engine: &Engine, withdrawal: &Withdrawal) -> Self {
        let settlements = withdrawal
            .settlements
            .iter()
            .map(|part| SettlementView { settlement_date: date(part.day), amount_cents: part.amount.0 });
        let recipient = recipient_id(engine, withdrawal.recipient);
        let row = recipient.and_then(|id| find_recipient(engine, id)).map(|(_, row)| row);
        Self {
            withdrawal: WithdrawalView::of(engine, withdrawal),
            recipient_id: recipient.unwrap_or_default().uuid().to_string(),
            settlements: settlements.collect(),
            api_key_id: withdrawal.api_key.map(|key| key.uuid().to_string()),
            bank_account_review: row.and_then(|row| row.bank_review).map(|(review, _)| review.into()),
        }
    }
}

/// The account that a withdrawal goes to, sealed for its Record. The account and its review are of
/// one look at the registration, so that what is pinned was approved.
pub fn destination(engine: &Engine, row: &RecipientRow, withdrawal: ObjectId) -> Result<Sealed, Problem> {
    approved_account(row)?;
    let profile: Option<RecipientProfile> =
        row.profiles.current().and_then(|sealed| engine.keyring().open_value(row.sealed_for(), sealed));
    let erased = || Problem::new(Code::StateConflict).detail("The recipient's personal data was erased.");
    let account = profile.and_then(|profile| profile.receiving_account()).ok_or_else(erased)?;
    Ok(engine.keyring().seal_value(SealedFor::account(withdrawal), engine.now(), &account)?)
}

/// Refuses a recipient whose registered bank account is not approved.
pub fn approved_account(row: &RecipientRow) -> Result<(), Problem> {
    let detail = match row.bank_review {
        None => return Ok(()),
        Some((BankReview::Pending, _)) => "The bank account was changed and waits for its review.",
        Some((BankReview::Rejected, _)) => "The changed bank account was refused: change it again.",
    };
    Err(Problem::new(Code::BankAccountInReview).detail(detail))
}
