//! Sub-recipient as JSON (interface 2.7): its registration, status and money.

use actors::engine::{Engine, MerchantRow, RecipientRow};
use ledger::merchant::BankReview;
use ledger::{Account, Balances, Event, LedgerId, ObjectId, RecipientProfile, RecipientStatus, Record, Sealed};
use serde::Serialize;
use utoipa::ToSchema;
use wire::mask;

use crate::views::labels::LabelsView;
use crate::views::registration;
use crate::{Problem, broken, time};

/// A recipient, in the list and after a decision.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RecipientSummary)]
pub struct RecipientView {
    /// Used in splits and in paths.
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    #[schema(pattern = "^(draft|pending|active|rejected)$")]
    status: &'static str,
    /// `CPF` or `CNPJ`.
    #[schema(pattern = "^(CPF|CNPJ)$")]
    document_type: &'static str,
    /// CPF or CNPJ, masked.
    document: String,
    /// Full or legal name.
    name: String,
    /// Contact e-mail.
    #[schema(required, example = "ana@example.com")]
    email: Option<String>,
    /// When it was registered.
    created_at: String,
    /// `pending` while a changed bank account waits for its review, `rejected` when it was refused;
    /// null otherwise. Splits go on; nothing can be withdrawn until an account is approved.
    #[schema(required, pattern = "^(pending|rejected)$", example = json!(null))]
    bank_account_review: Option<&'static str>,
    /// True while operators have frozen it: splits go on, and withdrawals and anticipations are 403
    /// `recipient_frozen`.
    #[schema(example = false)]
    frozen: bool,
    /// Its money.
    balance: RecipientBalance,
    #[serde(flatten)]
    labels: LabelsView,
}

/// A recipient's money, centavos.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct RecipientBalance {
    /// Can be withdrawn.
    pub available: i64,
    /// Falls due later.
    pub pending: i64,
    /// Withdrawn money, centavos.
    pub paid: i64,
    /// Under a pending withdrawal.
    pub reserved: i64,
    /// Owed to the merchant for splits that were taken back; later money pays it first.
    pub debt: i64,
}

impl RecipientBalance {
    /// The figures of the accounts of a recipient's ledger.
    pub fn of(accounts: &Balances) -> Self {
        let of_account = |account: Account| accounts.get(&account).copied().unwrap_or_default().net();
        let net = |account| i64::try_from(of_account(account)).unwrap_or(i64::MAX);
        Self {
            available: net(Account::Available),
            pending: net(Account::Pending),
            paid: net(Account::TransitWithdrawal),
            reserved: net(Account::ReservedWithdrawal),
            debt: i64::try_from(-of_account(Account::Clawback)).unwrap_or(i64::MAX),
        }
    }
}

/// A recipient by its id, whoever's it is.
pub fn find_recipient(engine: &Engine, id: ObjectId) -> Option<(LedgerId, RecipientRow)> {
    let (group, number) = (engine.ids().group(id), engine.ids().recipient_number(id));
    let find = |merchant: &MerchantRow| {
        merchant.recipients.get((number.0 as usize).checked_sub(1)?).filter(|row| row.id == id).cloned()
    };
    let row = engine.merchant(group, find).flatten()?;
    Some((LedgerId::Recipient(group, number), row))
}

/// Recipient with an id from the books: an actor, a queue or a Record.
pub fn known_recipient(engine: &Engine, id: ObjectId) -> Result<(LedgerId, RecipientRow), Problem> {
    find_recipient(engine, id).ok_or_else(broken)
}

/// A recipient as lists and decisions show it, with the money of its published books.
pub fn view(engine: &Engine, ledger: LedgerId, row: &RecipientRow) -> RecipientView {
    view_with(engine, row, &engine.published_accounts(ledger))
}

/// A recipient with the money of these accounts.
pub fn view_with(engine: &Engine, row: &RecipientRow, accounts: &Balances) -> RecipientView {
    let profile = open(engine, row, row.profiles.current());
    RecipientView::new(row, row.status, profile, RecipientBalance::of(accounts))
}

/// A recipient as the decision that a Record keeps showed it, with the money that it has now: one
/// whose registration is being decided on has had none yet.
pub fn view_at_decision(engine: &Engine, ledger: LedgerId, row: &RecipientRow, record: &Record) -> RecipientView {
    let has = |is_it: fn(&Event) -> bool| record.events.iter().any(is_it);
    let is_rejected = has(|event| matches!(event, Event::RecipientRejected { .. }));
    let is_refused = has(|event| matches!(event, Event::BankAccountRejected { .. }));
    let is_bank = is_refused || has(|event| matches!(event, Event::BankAccountApproved { .. }));
    let status = if is_rejected { RecipientStatus::Rejected } else { RecipientStatus::Active };
    let accounts = if is_bank { engine.published_accounts(ledger) } else { Balances::default() };
    let mut row = row.clone();
    row.bank_review = is_refused.then_some((BankReview::Rejected, record.effective_at));
    RecipientView::new(
        &row,
        status,
        open(engine, &row, row.profiles.at(record.ordinal)),
        RecipientBalance::of(&accounts),
    )
}

impl RecipientView {
    /// The same with the e-mail masked, for operators.
    #[must_use]
    pub fn without_contacts(self) -> Self {
        Self { email: self.email.as_deref().map(mask::email), ..self }
    }

    /// What is shown of a recipient.
    pub fn new(
        row: &RecipientRow,
        status: RecipientStatus,
        profile: RecipientProfile,
        balance: RecipientBalance,
    ) -> Self {
        Self {
            id: row.id.uuid().to_string(),
            status: status_name(status),
            document_type: document_type(&profile.document),
            document: mask::document(&profile.document),
            name: profile.name,
            email: profile.email,
            created_at: time(row.created_at),
            bank_account_review: row.bank_review.map(|(review, _)| review.into()),
            frozen: row.frozen,
            balance,
            labels: profile.labels.into(),
        }
    }
}

/// A registration; an empty one when the personal data was erased.
pub fn open(engine: &Engine, row: &RecipientRow, profile: Option<&Sealed>) -> RecipientProfile {
    profile.and_then(|sealed| engine.keyring().open_value(row.sealed_for(), sealed)).unwrap_or_default()
}

/// Name of a status on the wire.
pub fn status_name(status: RecipientStatus) -> &'static str {
    status.into()
}

/// `CPF` or `CNPJ`.
pub fn document_type(document: &str) -> &'static str {
    if registration::is_corporation(document) { "CNPJ" } else { "CPF" }
}

/// The id of a recipient's ledger.
pub fn recipient_id(engine: &Engine, ledger: LedgerId) -> Option<ObjectId> {
    let LedgerId::Recipient(group, number) = ledger else { return None };
    let find = |row: &MerchantRow| row.recipients.get(number.0 as usize - 1).map(|row| row.id);
    engine.glance(group, find).flatten()
}
