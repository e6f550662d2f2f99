//! A recipient's withdrawals (interface 2.9, 3.5): asking for one takes all that is available. A withdrawal is read from its Records.

use std::collections::VecDeque;
use std::sync::Arc;

use actors::read_model::RecipientRow;
use actors::store::Sequence;
use axum::extract::State;
use axum::response::Response;
use ledger::event::{Event, Settlement, Span};
use ledger::id::{LedgerId, ObjectId};
use ledger::merchant::BankReview;
use ledger::money::Centavos;
use ledger::personal::{BankAccount, RecipientProfile, Sealed, SealedFor};
use ledger::recipient::RecipientCommand;
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Caller, PathId, Settled, settled};
use super::body::JsonBody;
use super::charges::recipient_id;
use super::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use super::json::parse;
use super::problem::{Code, Problem};
use super::registration::account_type;
use super::reply::{created, items_of, time};
use super::splits::require_split;
use super::sub_recipients::{find_own, find_recipient, review_name};
use super::timestamp::date;
use crate::mask;

/// A withdrawal that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalRequested {
    /// Always true.
    success: bool,
    /// The withdrawal's id.
    #[schema(format = "uuid")]
    withdrawal_id: String,
    /// All that was available, centavos.
    #[schema(example = 1200)]
    amount_cents: i64,
    /// `pending`.
    #[schema(pattern = "^(pending)$")]
    status: &'static str,
}

/// A withdrawal, as read.
#[derive(Debug, Serialize, ToSchema)]
pub struct WithdrawalView {
    /// The withdrawal's id.
    #[schema(format = "uuid")]
    pub id: String,
    /// Centavos.
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
    /// Where the money goes: the account that was registered when it was asked for. Null when that is not known any more.
    #[schema(required)]
    pub destination: Option<DestinationView>,
}

/// A bank account, masked.
#[derive(Debug, Serialize, ToSchema)]
pub struct DestinationView {
    /// 3 digits.
    #[schema(example = "341")]
    bank_code: String,
    /// Branch.
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
    pub fn open(app: &App, withdrawal: ObjectId, sealed: &Sealed) -> Option<Self> {
        app.engine.keyring().open_value(SealedFor::account(withdrawal), sealed).map(Self::of)
    }
}

/// A list of withdrawals, whole.
#[derive(Debug, Serialize, ToSchema)]
pub struct Withdrawals {
    /// Newest first.
    items: Vec<WithdrawalView>,
}

/// A withdrawal, as whoever decides on it sees it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReviewedWithdrawal {
    #[serde(flatten)]
    withdrawal: WithdrawalView,
    /// Whose.
    #[schema(format = "uuid")]
    recipient_id: String,
    /// What of it was anticipated, and when that can be sent.
    settlements: Vec<SettlementView>,
    /// The API key that asked for it; null when an older release was asked.
    #[schema(required, format = "uuid")]
    api_key_id: Option<String>,
    /// Where the review of a bank account stands that was registered since, and that the money does not go to; null when there is none.
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
    /// Whose.
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
    pub fn find(app: &App, id: ObjectId) -> Result<Option<Self>, Problem> {
        Self::find_through(app, id, Sequence(u64::MAX))
    }

    /// Finds a withdrawal as it was once the Record of this sequence had taken effect.
    pub fn find_through(app: &App, id: ObjectId, through: Sequence) -> Result<Option<Self>, Problem> {
        let mut found = None;
        for sequence in app.engine.read_model().about(id)?.into_iter().filter(|sequence| *sequence <= through) {
            let record = app.engine.record(sequence)?;
            match &mut found {
                None => found = Self::requested_by(&record).filter(|withdrawal| withdrawal.id == id),
                Some(withdrawal) => withdrawal.follow(&record),
            }
        }
        Ok(found)
    }

    /// The withdrawal that the Record of this sequence asked for, as it stands now.
    pub fn requested_at(app: &App, sequence: Sequence) -> Result<Self, Problem> {
        let requested = Self::requested_by(&app.engine.record(sequence)?);
        let mut withdrawal = requested.ok_or_else(|| Problem::new(Code::Internal))?;
        for sequence in app.engine.read_model().about(withdrawal.id)? {
            withdrawal.follow(&app.engine.record(sequence)?);
        }
        Ok(withdrawal)
    }

    fn requested_by(record: &Record) -> Option<Self> {
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
    pub fn view(&self, app: &App) -> WithdrawalView {
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
            destination: self.destination.as_ref().and_then(|sealed| DestinationView::open(app, self.id, sealed)),
        }
    }

    /// As whoever decides on it sees it.
    pub fn review(&self, app: &App) -> ReviewedWithdrawal {
        let settlements = self
            .settlements
            .iter()
            .map(|part| SettlementView { settlement_date: date(part.day), amount_cents: part.amount.0 });
        let recipient = recipient_id(app, self.recipient).and_then(|id| find_recipient(app, id));
        ReviewedWithdrawal {
            withdrawal: self.view(app),
            recipient_id: recipient_id(app, self.recipient).unwrap_or_default().uuid().to_string(),
            settlements: settlements.collect(),
            api_key_id: self.api_key.map(|key| key.uuid().to_string()),
            bank_account_review: recipient.and_then(|(_, row)| row.bank_review).map(|(review, _)| review_name(review)),
        }
    }
}

/// Asks for a withdrawal of all that is available.
#[utoipa::path(post, path = "/api/dashboard/sub-recipients/{id}/withdraw", operation_id = "withdraw",
    params(("id" = String, Path)),
    responses((status = 201, body = WithdrawalRequested)))]
pub async fn withdraw(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(id): PathId,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    if !body.is_empty() {
        parse::<serde::de::IgnoredAny>(&body)?;
    }
    let Ok((recipient, mut row)) = find_own(&app, caller, &id) else {
        require_split(&app, caller)?;
        return Err(Problem::new(Code::NotFound));
    };
    let route = format!("POST /api/dashboard/sub-recipients/{}/withdraw", row.id.txid());
    let key = Key::of(&app, &sent_key, &caller.group.0.to_string(), &route, &body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(&app, recipient)? {
            Keyed::Replay(record, _) => return answer(&record).map(replayed),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        require_split(&app, caller)?;
        let withdrawal = app.new_id(caller.group)?;
        let destination = destination(&app, &row, withdrawal)?;
        let command = RecipientCommand::Withdraw { id: withdrawal, destination };
        match settled(app.engine.command_recipient(recipient, command, lookup, caller.requester(), permit).await?)? {
            Settled::KeyTaken => (_, row) = find_own(&app, caller, &id)?,
            Settled::Recorded(record) => return answer(&record),
            Settled::Unchanged => return Err(Problem::new(Code::Internal)),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}

/// The account that a withdrawal goes to, sealed for its Record. The account and its review are of one look at the registration, so that
/// what is pinned was approved.
fn destination(app: &App, row: &RecipientRow, withdrawal: ObjectId) -> Result<Sealed, Problem> {
    approved_account(row)?;
    let profile: Option<RecipientProfile> =
        row.profiles.current().and_then(|sealed| app.engine.keyring().open_value(row.sealed_for(), sealed));
    let erased = || Problem::new(Code::StateConflict).detail("The recipient's personal data was erased.");
    let account = profile.and_then(|profile| profile.bank).ok_or_else(erased)?;
    Ok(app.engine.keyring().seal_value(SealedFor::account(withdrawal), app.engine.now(), &account)?)
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

/// The answer of the request that a Record carried out.
fn answer(record: &Record) -> Result<Response, Problem> {
    let withdrawal = Withdrawal::requested_by(record).ok_or_else(|| Problem::new(Code::Internal))?;
    Ok(created(WithdrawalRequested {
        success: true,
        withdrawal_id: withdrawal.id.uuid().to_string(),
        amount_cents: withdrawal.amount.0,
        status: "pending",
    }))
}

/// All withdrawals of a recipient, newest first.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients/{id}/withdraw", operation_id = "list_withdrawals",
    params(("id" = String, Path)), responses((status = 200, body = Withdrawals)))]
pub async fn list(State(app): State<Arc<App>>, caller: Caller, PathId(id): PathId) -> Result<Response, Problem> {
    let (recipient, _) = find_own(&app, caller, &id)?;
    let walk = Walk { app, recipient, before: Sequence(u64::MAX), read: VecDeque::new() };
    items_of(walk, &serde_json::Map::new())
}

/// Withdrawals that are read at once.
const READ_AT_ONCE: usize = 100;

/// All withdrawals of a recipient, of which a few are in memory.
struct Walk {
    app: Arc<App>,
    recipient: LedgerId,
    before: Sequence,
    read: VecDeque<Sequence>,
}

impl Iterator for Walk {
    type Item = Result<WithdrawalView, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() {
            let page = self.app.engine.read_model().withdrawals_page(self.recipient, self.before, 0, READ_AT_ONCE);
            match page {
                Ok((_, page)) => {
                    self.before = page.last().copied().unwrap_or(self.before);
                    self.read = page.into();
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
        let sequence = self.read.pop_front()?;
        Some(Withdrawal::requested_at(&self.app, sequence).map(|withdrawal| withdrawal.view(&self.app)))
    }
}
