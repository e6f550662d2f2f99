//! Sub-recipients: registration, the list, the full record and its change (interface 2.7, 4).

use std::sync::Arc;

use actors::read_model::RecipientRow;
use actors::resident::Outcome;
use axum::extract::State;
use axum::response::Response;
use ledger::account::Account;
use ledger::event::Event;
use ledger::id::{Fingerprint, GroupNumber, LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{BankReview, MerchantCommand, RecipientStatus};
use ledger::personal::{RecipientProfile, Sealed, SealedFor};
use ledger::recipient::coverage::RecipientStanding;
use ledger::record::Record;
use ledger::rejection::Rejection;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, Caller, PathId, Settled, settled};
use super::body::JsonBody;
use super::idempotency::{Key, Keyed, LOOK_UPS_MAX, SentKey, replayed};
use super::json::parse;
use super::problem::{Code, Problem};
use super::registration::{self, ChangeRequest, Registration, RegistrationRequest};
use super::reply::{List, PageQuery, created, ok, time};
use super::splits::require_split;
use crate::folding::search_key;
use crate::mask;

/// A recipient, as registration answers (interface 2.7).
#[derive(Debug, Serialize, ToSchema)]
pub struct RegistrationResponse {
    /// Used in splits and in paths.
    #[schema(format = "uuid")]
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    #[schema(pattern = "^(draft|pending|active|rejected)$")]
    status: &'static str,
    /// `CPF` or `CNPJ`.
    #[schema(pattern = "^(CPF|CNPJ)$")]
    document_type: &'static str,
    /// Masked.
    #[schema(example = "***.456.789-**")]
    document: String,
    /// Full or legal name.
    #[schema(example = "Ana Prado")]
    name: String,
    /// When it was registered.
    created_at: String,
    /// True when the document was registered before.
    already_exists: bool,
}

/// A recipient, in the list and after a decision.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientView {
    /// Used in splits and in paths.
    #[schema(format = "uuid")]
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    #[schema(pattern = "^(draft|pending|active|rejected)$")]
    status: &'static str,
    /// `CPF` or `CNPJ`.
    #[schema(pattern = "^(CPF|CNPJ)$")]
    document_type: &'static str,
    /// Masked.
    #[schema(example = "***.456.789-**")]
    document: String,
    /// Full or legal name.
    #[schema(example = "Ana Prado")]
    name: String,
    /// Contact e-mail.
    #[schema(required, example = "ana@example.com")]
    email: Option<String>,
    /// When it was registered.
    created_at: String,
    /// `pending` while a changed bank account waits for its review, `rejected` when it was refused; null otherwise. Splits go on;
    /// nothing can be withdrawn until an account is approved.
    #[schema(required, pattern = "^(pending|rejected)$", example = json!(null))]
    bank_account_review: Option<&'static str>,
    /// Its money.
    balance: RecipientBalance,
}

/// A recipient's full record.
#[derive(Debug, Serialize, ToSchema)]
pub struct RecipientRecord {
    /// As in the list.
    #[serde(flatten)]
    recipient: RecipientView,
    /// What was registered, documents masked.
    #[serde(flatten)]
    registration: Registration,
}

/// A recipient's money, centavos.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct RecipientBalance {
    /// Can be withdrawn.
    #[schema(example = 2000)]
    pub available: i64,
    /// Falls due later.
    pub pending: i64,
    /// Withdrawn.
    pub paid: i64,
    /// Under a pending withdrawal.
    pub reserved: i64,
}

impl RecipientBalance {
    /// The balance as the recipient's own state has it.
    pub fn of(standing: &RecipientStanding) -> Self {
        let RecipientStanding { available, pending, paid, reserved, .. } = standing;
        Self { available: available.0, pending: pending.0, paid: paid.0, reserved: reserved.0 }
    }

    /// The balance as the books have it.
    pub fn of_books(app: &App, ledger: LedgerId) -> Self {
        let read_model = app.engine.read_model();
        let net = |account| i64::try_from(read_model.balance(ledger, account)).unwrap_or(i64::MAX);
        Self {
            available: net(Account::Available),
            pending: net(Account::Pending),
            paid: net(Account::TransitWithdrawal),
            reserved: net(Account::ReservedWithdrawal),
        }
    }
}

/// Registers a sub-recipient; idempotent on its document.
#[utoipa::path(post, path = "/api/sub-recipients", operation_id = "register_recipient", request_body = RegistrationRequest,
    responses((status = 201, body = RegistrationResponse, description = "A new recipient."),
        (status = 200, body = RegistrationResponse, description = "Its document was registered before.")))]
pub async fn register(
    State(app): State<Arc<App>>,
    caller: Caller,
    sent_key: SentKey,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: RegistrationRequest<'_> = parse(&body)?;
    let key = Key::of(&app, &sent_key, &caller.group.0.to_string(), "POST /api/sub-recipients", &body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(&app, caller.ledger())? {
            Keyed::Replay(record, _) => return answer(&app, caller, &record).map(replayed),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        require_split(&app, caller)?;
        let profile = registration::check(&wire, app.engine.now())?;
        let document = document_digest(&app, caller.group, &profile.document);
        let command = MerchantCommand::RegisterRecipient {
            random: app.random()? as u16,
            document,
            profile: app.engine.keyring().seal_value(SealedFor::recipient(document), app.engine.now(), &profile)?,
        };
        let outcome = app.engine.command(caller.group, command, lookup, caller.requester(), permit).await?;
        match settled(outcome)? {
            Settled::Recorded(record) => return answer(&app, caller, &record),
            Settled::KeyTaken => {}
            Settled::Unchanged => {
                let find = move |books: &ledger::merchant::MerchantState, _| {
                    books.recipient_by_document(document).map(|recipient| recipient.id)
                };
                let id = app.engine.read_merchant(caller.group, find).await?;
                let row = id.and_then(|id| find_recipient(&app, id)).map(|(_, row)| row);
                let row = row.ok_or_else(|| Problem::new(Code::Internal))?;
                let profile = open(&app, &row, row.profiles.current());
                return Ok(ok(RegistrationResponse::new(&row, row.status, profile, true)));
            }
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}

/// The account's recipients, newest first; `search` looks in names, without regard to case and accents.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients", operation_id = "list_recipients",
    params(("search" = Option<String>, Query, description = "Part of a name; case and accents do not matter"), ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<RecipientView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, search }: PageQuery,
) -> Result<Response, Problem> {
    let (wanted, read_model) = (search_key(&search), app.engine.read_model());
    let find = |merchant: &actors::read_model::MerchantRow| {
        let numbered = merchant.recipients.iter().enumerate().rev();
        let found: Vec<_> = numbered.filter(|(_, row)| read_model.search_key(row).contains(&wanted)).collect();
        let rows = found.iter().skip(usize::try_from(page.skip()).unwrap_or(usize::MAX)).take(page.count());
        (
            found.len() as u64,
            rows.map(|(number, row)| (RecipientNumber(*number as u32 + 1), (*row).clone())).collect::<Vec<_>>(),
        )
    };
    let (total, rows) = app.engine.read_model().merchant(caller.group, find).unwrap_or_default();
    let items = rows.iter().map(|(number, row)| view(&app, LedgerId::Recipient(caller.group, *number), row));
    Ok(ok(List::new(items.collect(), total, page)))
}

/// A recipient's full record.
#[utoipa::path(get, path = "/api/sub-recipients/{id}", operation_id = "get_recipient", params(("id" = String, Path)),
    responses((status = 200, body = RecipientRecord)))]
pub async fn get(State(app): State<Arc<App>>, caller: Caller, PathId(id): PathId) -> Result<Response, Problem> {
    let (ledger, row) = find_own(&app, caller, &id)?;
    let profile = open(&app, &row, row.profiles.current());
    Ok(ok(RecipientRecord::new(&app, ledger, &row, profile)))
}

/// Changes what is sent of a registration and leaves the rest; the status stays. Another bank account is reviewed before anything is
/// withdrawn. A rejected recipient registers again instead.
#[utoipa::path(patch, path = "/api/sub-recipients/{id}", operation_id = "change_recipient", params(("id" = String, Path)),
    request_body = ChangeRequest,
    responses((status = 200, body = RecipientRecord), (status = 409)))]
pub async fn change(
    State(app): State<Arc<App>>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: ChangeRequest<'_> = parse(&body)?;
    for _ in 0..LOOK_UPS_MAX {
        let (ledger, row) = find_own(&app, caller, &id)?;
        let standing = row.profiles.current().ok_or_else(|| Problem::new(Code::Internal))?;
        let permit = app.engine.permit(body.len() + standing.bytes.len())?;
        let Some(profile) = app.engine.keyring().open_value::<RecipientProfile>(row.sealed_for(), standing) else {
            return Err(Problem::new(Code::StateConflict).detail("The recipient's personal data was erased."));
        };
        let bank = profile.bank.clone();
        let sealed_for = SealedFor::recipient(document_digest(&app, caller.group, &profile.document));
        let profile = registration::merged(&wire, profile, app.engine.now())?;
        let command = MerchantCommand::ChangeRecipient {
            id: row.id,
            standing: standing.clone(),
            profile: app.engine.keyring().seal_value(sealed_for, app.engine.now(), &profile)?,
            bank_account_changed: profile.bank != bank,
        };
        match app.engine.command(caller.group, command, None, caller.requester(), permit).await? {
            // Another change came between: this one is merged into what that one left.
            Outcome::Refused(Rejection::RecipientChangedMeanwhile) => {}
            outcome => {
                settled(outcome)?;
                let (_, row) = find_own(&app, caller, &id)?;
                return Ok(ok(RecipientRecord::new(&app, ledger, &row, profile)));
            }
        }
    }
    Err(Problem::new(Code::StateConflict).detail("The recipient is being changed by others.").retry_after(1))
}

/// The keyed digest by which a document is found again in its account.
fn document_digest(app: &App, group: GroupNumber, document: &str) -> Fingerprint {
    app.engine.keyring().fingerprint("document", &[&group.0.to_le_bytes(), document.as_bytes()])
}

/// A recipient of the caller's by its id.
pub fn find_own(app: &App, caller: Caller, id: &str) -> Result<(LedgerId, RecipientRow), Problem> {
    let found = ObjectId::parse(id).and_then(|id| find_recipient(app, id));
    let own = found.filter(|(ledger, _)| ledger.group() == Some(caller.group));
    own.ok_or_else(|| Problem::new(Code::NotFound))
}

/// A recipient by its id, whoever's it is.
pub fn find_recipient(app: &App, id: ObjectId) -> Option<(LedgerId, RecipientRow)> {
    let (group, number) = (app.engine.ids().group(id), app.engine.ids().recipient_number(id));
    let find = |merchant: &actors::read_model::MerchantRow| {
        merchant.recipients.get((number.0 as usize).checked_sub(1)?).filter(|row| row.id == id).cloned()
    };
    let row = app.engine.read_model().merchant(group, find).flatten()?;
    Some((LedgerId::Recipient(group, number), row))
}

/// A recipient as lists and decisions show it.
pub fn view(app: &App, ledger: LedgerId, row: &RecipientRow) -> RecipientView {
    let profile = open(app, row, row.profiles.current());
    RecipientView::new(row, row.status, profile, RecipientBalance::of_books(app, ledger))
}

/// A recipient as the decision that a Record keeps showed it, with the money that it has now: one whose registration is being decided on
/// has had none yet.
pub fn view_at_decision(app: &App, ledger: LedgerId, row: &RecipientRow, record: &Record) -> RecipientView {
    let has = |is_it: fn(&Event) -> bool| record.events.iter().any(is_it);
    let is_rejected = has(|event| matches!(event, Event::RecipientRejected { .. }));
    let is_refused = has(|event| matches!(event, Event::BankAccountRejected { .. }));
    let is_bank = is_refused || has(|event| matches!(event, Event::BankAccountApproved { .. }));
    let status = if is_rejected { RecipientStatus::Rejected } else { RecipientStatus::Active };
    let balance = if is_bank { RecipientBalance::of_books(app, ledger) } else { RecipientBalance::default() };
    let mut row = row.clone();
    row.bank_review = is_refused.then_some((BankReview::Rejected, record.effective_at));
    RecipientView::new(&row, status, open(app, &row, row.profiles.at(record.ordinal)), balance)
}

impl RecipientView {
    fn new(row: &RecipientRow, status: RecipientStatus, profile: RecipientProfile, balance: RecipientBalance) -> Self {
        Self {
            id: row.id.uuid().to_string(),
            status: status_name(status),
            document_type: document_type(&profile.document),
            document: mask::document(&profile.document),
            name: profile.name,
            email: profile.email,
            created_at: time(row.created_at),
            bank_account_review: row.bank_review.map(|(review, _)| review_name(review)),
            balance,
        }
    }
}

impl RecipientRecord {
    fn new(app: &App, ledger: LedgerId, row: &RecipientRow, profile: RecipientProfile) -> Self {
        let balance = RecipientBalance::of_books(app, ledger);
        let recipient = RecipientView::new(row, row.status, profile.clone(), balance);
        Self { recipient, registration: Registration::of(profile, mask::document) }
    }
}

/// The answer of the request that a Record carried out: 201 for a new recipient, 200 for one that was rejected before.
fn answer(app: &App, caller: Caller, record: &Record) -> Result<Response, Problem> {
    let (number, again) = record
        .events
        .iter()
        .find_map(|event| match event {
            Event::RecipientRegistered { number, .. } => Some((*number, false)),
            Event::RecipientRegisteredAgain { number, .. } => Some((*number, true)),
            _ => None,
        })
        .ok_or_else(|| Problem::new(Code::Internal))?;
    let find = |merchant: &actors::read_model::MerchantRow| merchant.recipients.get(number.0 as usize - 1).cloned();
    let row = app.engine.read_model().merchant(caller.group, find).flatten();
    let row = row.ok_or_else(|| Problem::new(Code::Internal))?;
    let profile = open(app, &row, record.personal.as_ref());
    let body = RegistrationResponse::new(&row, RecipientStatus::Draft, profile, again);
    Ok(if again { ok(body) } else { created(body) })
}

impl RegistrationResponse {
    fn new(row: &RecipientRow, status: RecipientStatus, profile: RecipientProfile, already_exists: bool) -> Self {
        Self {
            id: row.id.uuid().to_string(),
            status: status_name(status),
            document_type: document_type(&profile.document),
            document: mask::document(&profile.document),
            name: profile.name,
            created_at: time(row.created_at),
            already_exists,
        }
    }
}

/// A registration; an empty one when the personal data was erased.
pub fn open(app: &App, row: &RecipientRow, profile: Option<&Sealed>) -> RecipientProfile {
    profile.and_then(|sealed| app.engine.keyring().open_value(row.sealed_for(), sealed)).unwrap_or_default()
}

/// A status, as told.
pub fn status_name(status: RecipientStatus) -> &'static str {
    match status {
        RecipientStatus::Draft => "draft",
        RecipientStatus::Pending => "pending",
        RecipientStatus::Active => "active",
        RecipientStatus::Rejected => "rejected",
    }
}

/// Where the review of a bank account stands, as told.
pub fn review_name(review: BankReview) -> &'static str {
    match review {
        BankReview::Pending => "pending",
        BankReview::Rejected => "rejected",
    }
}

/// `CPF` or `CNPJ`.
pub fn document_type(document: &str) -> &'static str {
    if registration::is_corporation(document) { "CNPJ" } else { "CPF" }
}
