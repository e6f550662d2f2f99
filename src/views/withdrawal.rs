//! Withdrawal as JSON, for its merchant and for the operators who decide it: read from its Records.

use actors::engine::Engine;
use actors::store::Sequence;
use ledger::event::{Event, Settlement, Span};
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
use ledger::personal::{BankAccount, Sealed, SealedFor};
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::problem::{Code, Problem};
use crate::http::reply::time;
use crate::http::timestamp::date;
use crate::mask;
use crate::views::recipient::{find_recipient, recipient_id, review_name};
use crate::views::registration::account_type;

/// A withdrawal, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalView {
    /// The withdrawal's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// Amount of the withdrawal, centavos.
    #[schema(example = 1200)]
    pub amount_cents: i64,
    /// `pending`, `approved` or `rejected`.
    #[schema(pattern = "^(pending|approved|rejected)$")]
    pub status: &'static str,
    /// When it was asked for.
    pub created_at: String,
    /// When an administrator approved it; null until the money is sent.
    #[schema(required)]
    pub approved_at: Option<String>,
    /// Why it was rejected.
    #[schema(required, example = json!(null))]
    pub notes: Option<String>,
    /// Where the money goes: the account that was registered when it was asked for. Null when that
    /// is not known any more.
    #[schema(required)]
    pub destination: Option<DestinationView>,
}

/// A bank account, masked.
#[derive(Debug, Serialize, ToSchema)]
pub struct DestinationView {
    /// 3 digits.
    #[schema(example = "341")]
    bank_code: String,
    /// Number of the branch.
    #[schema(example = "1234")]
    agencia: String,
    /// Account: its last digits, at most four and at most half of it.
    #[schema(example = "***89")]
    conta: String,
    /// `conta_corrente` or `conta_poupanca`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(conta_corrente|conta_poupanca)$")]
    kind: &'static str,
    /// Holder's name.
    #[schema(required, example = "Ana Prado")]
    legal_name: Option<String>,
    /// Holder's CPF or CNPJ, masked.
    #[schema(example = "***.456.789-**")]
    document_number: String,
}

impl DestinationView {
    /// What is shown of an account.
    pub fn of(account: BankAccount) -> Self {
        Self {
            conta: mask::account(&account.conta),
            kind: account_type(account.savings),
            document_number: mask::document(&account.document),
            bank_code: account.bank_code,
            agencia: account.agencia,
            legal_name: account.legal_name,
        }
    }

    /// What is shown of the sealed account of a withdrawal; none when its data was erased.
    pub fn open(engine: &Engine, withdrawal: ObjectId, sealed: &Sealed) -> Option<Self> {
        engine.keyring().open_value(SealedFor::account(withdrawal), sealed).map(Self::of)
    }
}

/// A withdrawal, as whoever decides on it sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewedWithdrawal {
    #[serde(flatten)]
    withdrawal: WithdrawalView,
    /// The recipient whose money it is.
    #[schema(format = "uuid")]
    recipient_id: String,
    /// What of it was anticipated, and when that can be sent.
    settlements: Vec<SettlementView>,
    /// The API key that asked for it; null when an older release was asked.
    #[schema(required, format = "uuid")]
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
    #[schema(format = "date", example = "2026-07-08")]
    settlement_date: String,
    /// After the fee, centavos.
    #[schema(example = 1952)]
    amount_cents: i64,
}

/// A withdrawal, from its Records.
#[derive(Clone)]
pub struct Withdrawal {
    /// Its id.
    pub id: ObjectId,
    /// The recipient whose money it is.
    pub recipient: LedgerId,
    /// How much.
    pub amount: Centavos,
    /// The splits in it.
    pub spans: Vec<Span>,
    /// What these had lost to debts.
    pub consumed: Centavos,
    /// What of them was anticipated.
    settlements: Vec<Settlement>,
    approved_at: Option<Timestamp>,
    /// The account that it goes to, sealed; none for one that an older release was asked for.
    pub destination: Option<Sealed>,
    api_key: Option<ObjectId>,
    /// When the institution had taken the money; none when it came back.
    pub paid_at: Option<Timestamp>,
    notes: Option<String>,
}

impl Withdrawal {
    /// Finds a withdrawal by its id, whoever's it is.
    pub fn find(engine: &Engine, id: ObjectId) -> Result<Option<Self>, Problem> {
        Self::find_through(engine, id, Sequence(u64::MAX))
    }

    /// Finds a withdrawal as it was once the Record of this sequence had taken effect.
    pub fn find_through(engine: &Engine, id: ObjectId, through: Sequence) -> Result<Option<Self>, Problem> {
        let mut found = None;
        for sequence in engine.read_model().about(id)?.into_iter().filter(|sequence| *sequence <= through) {
            let record = engine.record(sequence)?;
            match &mut found {
                None => found = Self::requested_by(&record).filter(|withdrawal| withdrawal.id == id),
                Some(withdrawal) => withdrawal.follow(&record),
            }
        }
        Ok(found)
    }

    /// The withdrawal that the Record of this sequence asked for, as it stands now.
    pub fn requested_at(engine: &Engine, sequence: Sequence) -> Result<Self, Problem> {
        let requested = Self::requested_by(&engine.record(sequence)?);
        let mut withdrawal = requested.ok_or_else(|| Problem::new(Code::Internal))?;
        for sequence in engine.read_model().about(withdrawal.id)? {
            withdrawal.follow(&engine.record(sequence)?);
        }
        Ok(withdrawal)
    }

    /// The withdrawal that a Record asks for, as it stands then.
    pub fn requested_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::WithdrawalRequested { id, amount, spans, consumed, settlements } => Some(Self {
                id: *id,
                recipient: record.owner,
                amount: *amount,
                spans: spans.clone(),
                consumed: *consumed,
                settlements: settlements.clone(),
                destination: record.personal.clone(),
                api_key: record.api_key,
                approved_at: None,
                paid_at: None,
                notes: None,
            }),
            _ => None,
        })
    }

    /// Takes in what a Record about it says. Another object's Record may be among them.
    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::WithdrawalApproved { id } if *id == self.id => self.approved_at = Some(record.effective_at),
                Event::WithdrawalPaid { id, .. } if *id == self.id => self.paid_at = Some(record.effective_at),
                Event::WithdrawalRejected { id, notes, .. } | Event::WithdrawalReturned { id, notes, .. }
                    if *id == self.id =>
                {
                    self.paid_at = None;
                    self.notes = Some(notes.clone());
                }
                _ => {}
            }
        }
    }

    /// As lists show it. It reads `pending` until the institution has taken the money.
    pub fn view(&self, engine: &Engine) -> WithdrawalView {
        WithdrawalView {
            id: self.id.uuid().to_string(),
            amount_cents: self.amount.0,
            status: match (self.paid_at, &self.notes) {
                (Some(_), _) => "approved",
                (None, Some(_)) => "rejected",
                (None, None) => "pending",
            },
            created_at: time(self.id.created_at()),
            approved_at: self.approved_at.filter(|_| self.paid_at.is_some()).map(time),
            notes: self.notes.clone(),
            destination: self.destination.as_ref().and_then(|sealed| DestinationView::open(engine, self.id, sealed)),
        }
    }

    /// As whoever decides on it sees it.
    pub fn review(&self, engine: &Engine) -> ReviewedWithdrawal {
        let settlements = self
            .settlements
            .iter()
            .map(|part| SettlementView { settlement_date: date(part.day), amount_cents: part.amount.0 });
        let recipient = recipient_id(engine, self.recipient).and_then(|id| find_recipient(engine, id));
        ReviewedWithdrawal {
            withdrawal: self.view(engine),
            recipient_id: recipient_id(engine, self.recipient).unwrap_or_default().uuid().to_string(),
            settlements: settlements.collect(),
            api_key_id: self.api_key.map(|key| key.uuid().to_string()),
            bank_account_review: recipient.and_then(|(_, row)| row.bank_review).map(|(review, _)| review_name(review)),
        }
    }
}
