//! A recipient's withdrawals (interface 2.9, 3.5): asking for one takes all that is available. A withdrawal is read from its Records.

use std::collections::VecDeque;
use std::sync::Arc;

use actors::store::Sequence;
use axum::extract::State;
use axum::response::Response;
use ledger::event::{Event, Settlement, Span};
use ledger::id::{LedgerId, ObjectId};
use ledger::money::Centavos;
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
use super::reply::{created, items_of, time};
use super::splits::require_split;
use super::sub_recipients::find_own;
use super::timestamp::date;

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
        for sequence in app.engine.projector().about(id)?.into_iter().filter(|sequence| *sequence <= through) {
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
        for sequence in app.engine.projector().about(withdrawal.id)? {
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
    pub fn view(&self) -> WithdrawalView {
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
        }
    }

    /// As whoever decides on it sees it.
    pub fn review(&self, app: &App) -> ReviewedWithdrawal {
        let settlements = self
            .settlements
            .iter()
            .map(|part| SettlementView { settlement_date: date(part.day), amount_cents: part.amount.0 });
        ReviewedWithdrawal {
            withdrawal: self.view(),
            recipient_id: recipient_id(app, self.recipient).unwrap_or_default().uuid().to_string(),
            settlements: settlements.collect(),
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
    let Ok((recipient, row)) = find_own(&app, caller, &id) else {
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
        let command = RecipientCommand::Withdraw { id: app.new_id(caller.group)? };
        match settled(app.engine.command_recipient(recipient, command, lookup, None, permit).await?)? {
            Settled::KeyTaken => {}
            Settled::Recorded(record) => return answer(&record),
            Settled::Unchanged => return Err(Problem::new(Code::Internal)),
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
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
            let page = self.app.engine.projector().withdrawals_page(self.recipient, self.before, 0, READ_AT_ONCE);
            match page {
                Ok((_, page)) => {
                    self.before = page.last().copied().unwrap_or(self.before);
                    self.read = page.into();
                }
                Err(error) => return Some(Err(error.into())),
            }
        }
        let sequence = self.read.pop_front()?;
        Some(Withdrawal::requested_at(&self.app, sequence).map(|withdrawal| withdrawal.view()))
    }
}
