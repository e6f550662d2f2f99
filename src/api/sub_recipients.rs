//! Sub-recipients: registration, the list, the full record and its change (interface 2.7, 4).

use std::sync::Arc;

use actors::engine::{MerchantRow, Outcome, RecipientRow, ReferenceLookup, ReferenceOf};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use derived::seal::stocked_random_u64;
use ledger::merchant::RegistrationResult;
use ledger::{
    Balances, Fingerprint, GroupNumber, LedgerId, MerchantCommand, MerchantState, ObjectId, RecipientNumber,
    RecipientProfile, RecipientStatus, Record, Rejection, Sealed, SealedFor,
};
use serde::Serialize;
use utoipa::ToSchema;
use wire::case_folding::search_key;
use wire::mask;

use crate::api::registration::{ChangeRequest, RegistrationRequest};
use crate::api::splits::require_split;
use crate::api::{App, AppState, labels, registration};
use web::idempotency::{Key, body_digest};
use web::reply::{PeriodParams, linked};
use web::views::labels::LabelsView;
use web::views::recipient::{
    RecipientBalance, RecipientView, document_type, find_recipient, known_recipient, open, status_name, view,
};
use web::views::registration::{Registration, differing};
use web::views::statement::{Statement, statement};
use web::{
    Caller, Code, CursorParams, Cursors, JsonBody, KeyScope, KeyedBody, LabelParams, List, Page, PageParams, PageQuery,
    PathId, Problem, Result, broken, decided, not_found, ok, parse, parse_exact, query, recorded, time,
};

/// A recipient, as registration answers (interface 2.7).
#[derive(Debug, Serialize, ToSchema)]
pub struct RegistrationResponse {
    /// Used in splits and in paths.
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    #[schema(pattern = "^(draft|pending|active|rejected)$")]
    status: &'static str,
    /// `CPF` or `CNPJ`.
    #[schema(pattern = "^(CPF|CNPJ)$")]
    document_type: &'static str,
    /// CPF or CNPJ, masked.
    #[schema(example = "***.456.789-**")]
    document: String,
    /// Full or legal name.
    #[schema(example = "Ana Prado")]
    name: String,
    /// When it was registered.
    created_at: String,
    /// True when the document was registered before.
    already_exists: bool,
    /// Fields that were sent and not taken, since another value is registered: `PATCH` changes
    /// them. Absent when there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["bank_account"]))]
    ignored: Vec<String>,
    #[serde(flatten)]
    labels: LabelsView,
}

/// A recipient's full record.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Recipient)]
pub struct RecipientRecord {
    /// As in the list.
    #[serde(flatten)]
    recipient: RecipientView,
    /// What was registered, documents masked.
    #[serde(flatten)]
    registration: Registration,
}

/// Registers a sub-recipient; idempotent on its document.
#[utoipa::path(post, path = "/api/sub-recipients", operation_id = "register_recipient", request_body = RegistrationRequest,
    responses((status = 201, body = RegistrationResponse, description = "A new recipient."),
        (status = 200, body = RegistrationResponse, description = "Its document was registered before.")))]
pub async fn register(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: RegistrationRequest<'_> = parse(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let (app, wire) = (&app, &wire);
    let digest = || body_digest(&app.engine, sent.bytes(), None);
    let look_up = || labels::look_up(app, caller, (ReferenceOf::Recipient, unique.as_deref()), digest);
    let execute = |reference: Option<ReferenceLookup>, admitted| async move {
        require_split(app, caller)?;
        let profile = registration::check(wire, app.engine.now())?;
        registration::check_payable(&app.engine, &profile)?;
        let document = document_digest(app, caller.group, &profile.document);
        let standing = move |books: &MerchantState, _| {
            books.recipient_by_document(document).map(|recipient| (recipient.id, recipient.profile.clone()))
        };
        let (before, standing) = app.engine.read_merchant(caller.group, standing).await?.unzip();
        // A document that was registered is registered again, whatever its reference.
        let reference = reference.filter(|one| one.used_by.is_none_or(|(id, _)| Some(id) != before));
        labels::require_new(ReferenceOf::Recipient, reference.as_ref())?;
        let (sealed_for, now) = (SealedFor::recipient(document), app.engine.now());
        let command = MerchantCommand::RegisterRecipient {
            random: stocked_random_u64()? as u16,
            document,
            profile: app.engine.keyring().seal_profile(sealed_for, standing.as_ref(), now, &profile)?,
        };
        let (id, context) = (before.unwrap_or_default(), caller.context(admitted));
        match app.engine.command_reserving(caller.group, id, command, reference, context).await? {
            // None was registered yet when the books were read: they are read again.
            Outcome::Unchanged => Ok(before.map(|id| RegistrationDone::Before(id, Box::new(profile)))),
            // It was registered and rejected meanwhile.
            Outcome::Refused(Rejection::RecipientChangedMeanwhile) => {
                Err(Problem::new(Code::Overloaded).retry_after(1))
            }
            outcome => recorded(outcome.typed(RegistrationDone::in_record)?),
        }
    };
    let replay = |record: Arc<Record>| RegistrationDone::in_record(&record).ok_or_else(broken);
    let done = key.run_after(caller.ledger(), look_up, replay, execute).await?;
    done.answer(|done| {
        let (status, body) = done.answer(app, caller)?;
        Ok((status, Json(body)).into_response())
    })
}

/// What a registration came to.
enum RegistrationDone {
    /// A draft, with the profile that was sent.
    Draft(RegistrationResult, Option<Sealed>),
    /// The recipient of this id had the document already, and stays as it is, whatever was sent.
    Before(ObjectId, Box<RecipientProfile>),
}

impl RegistrationDone {
    /// The registration that a Record made; `None` if it made none.
    fn in_record(record: &Record) -> Option<Self> {
        RegistrationResult::by(record).map(|done| Self::Draft(done, record.personal.clone()))
    }

    /// 201 for a new recipient, 200 for one that was registered before.
    fn answer(self, app: &App, caller: Caller) -> Result<(StatusCode, RegistrationResponse)> {
        match self {
            Self::Draft(RegistrationResult { number, again }, profile) => {
                let row = app.engine.recipient_row(caller.group, number)?;
                let profile = open(&app.engine, &row, profile.as_ref());
                let body = RegistrationResponse::new(&row, RecipientStatus::Draft, profile, again, Vec::new());
                Ok((if again { StatusCode::OK } else { StatusCode::CREATED }, body))
            }
            Self::Before(id, sent) => {
                let (_, row) = known_recipient(&app.engine, id)?;
                let profile = open(&app.engine, &row, row.profiles.current());
                let ignored = differing(*sent, profile.clone())?;
                Ok((StatusCode::OK, RegistrationResponse::new(&row, row.status, profile, true, ignored)))
            }
        }
    }
}

/// The account's recipients, newest first; `search` looks in names, without regard to case and
/// accents. With a label, the account may have 2,000 recipients of this name.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients", operation_id = "list_recipients",
    params(("search" = Option<String>, Query, description = "Part of a name; case and accents do not matter"),
        LabelParams, PageParams, CursorParams), responses((status = 200, body = List<RecipientView>)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery) -> Result<Response> {
    let (labels, wanted) = (&query.labels, search_key(&query.search));
    let (skip, count) = query.to_read(!labels.is_empty());
    let find = |merchant: &MerchantRow| {
        let numbered =
            query.cursors.between(merchant.recipients.iter().enumerate().rev().collect(), |(_, row)| row.id)?;
        let found = numbered.into_iter().filter(|(_, row)| app.engine.search_key(row).contains(&wanted));
        let found: Vec<_> = found.collect();
        let rows = found.iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).take(count);
        Ok::<_, Problem>((
            found.len() as u64,
            rows.map(|(number, row)| (RecipientNumber(*number as u32 + 1), (*row).clone())).collect::<Vec<_>>(),
        ))
    };
    let found = app.engine.merchant(caller.group, find).transpose()?.unwrap_or_default();
    let (total, rows) = query.page_of(labels.parameter(), found, |(_, row)| {
        labels.admits_some(open(&app.engine, row, row.profiles.current()).labels.as_ref())
    })?;
    let last = rows.last().map(|(_, row)| row.id.uuid().to_string());
    let items = rows.iter().map(|(number, row)| view(&app.engine, LedgerId::Recipient(caller.group, *number), row));
    Ok(List::new(items.collect(), total, query.page).on(&query.cursors, last))
}

/// A recipient's full record, after booking what is due.
#[utoipa::path(get, path = "/api/sub-recipients/{id}", operation_id = "get_recipient",
    responses((status = 200, body = RecipientRecord)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    let (ledger, row) = find_own(&app, caller, &id)?;
    let accounts = app.engine.accounts(ledger).await?;
    let profile = open(&app.engine, &row, row.profiles.current());
    Ok(ok(RecipientRecord::new(&row, profile, &accounts)))
}

/// Changes what is sent of a registration and leaves the rest; the status stays. Another bank
/// account is reviewed before anything is withdrawn. A rejected recipient registers again instead.
#[utoipa::path(patch, path = "/api/sub-recipients/{id}", operation_id = "change_recipient",
    request_body = ChangeRequest, responses((status = 200, body = RecipientRecord), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    let wire: ChangeRequest<'_> = parse_exact(&body.bytes)?;
    let (app, wire) = (&app, &wire);
    let read = || {
        let (ledger, row) = find_own(app, caller, &id)?;
        let erased = || Problem::new(Code::StateConflict).detail("The recipient's personal data was erased.");
        let standing = row.profiles.current().ok_or_else(erased)?.clone();
        let profile = app.engine.keyring().open_value::<RecipientProfile>(row.sealed_for(), &standing);
        Ok((ledger, row, standing, profile.ok_or_else(erased)?))
    };
    let execute = |(ledger, row, standing, profile): (_, RecipientRow, Sealed, RecipientProfile), admitted| async move {
        // What is due is booked first; the change itself moves no money.
        let accounts = app.engine.accounts(ledger).await?;
        let bank = profile.bank.clone();
        let sealed_for = SealedFor::recipient(document_digest(app, caller.group, &profile.document));
        let profile = registration::merged(wire, profile, app.engine.now())?;
        let bank_account_changed = profile.bank != bank;
        if bank_account_changed {
            registration::check_payable(&app.engine, &profile)?;
        }
        let sealed = app.engine.keyring().seal_profile(sealed_for, Some(&standing), app.engine.now(), &profile)?;
        let command = MerchantCommand::ChangeRecipient { id: row.id, standing, profile: sealed, bank_account_changed };
        match app.engine.command(caller.group, command, caller.context(admitted)).await? {
            // Another change came between: this one is merged into what that one left.
            Outcome::Refused(Rejection::RecipientChangedMeanwhile) => Ok(None),
            outcome => Ok(decided(outcome)?.map(|()| (profile, accounts))),
        }
    };
    let room =
        body.bytes.len() + find_own(app, caller, &id)?.1.profiles.current().map_or(0, |sealed| sealed.bytes.len());
    let key = Key::none(&app.engine, caller.group, room);
    let changed = key.run_after(caller.ledger(), read, |_| Err(broken()), execute).await?;
    changed.answer(|(profile, accounts)| {
        let (_, row) = find_own(app, caller, &id)?;
        Ok(ok(RecipientRecord::new(&row, profile, &accounts)))
    })
}

/// The keyed digest by which a document is found again in its account.
fn document_digest(app: &App, group: GroupNumber, document: &str) -> Fingerprint {
    app.engine.keyring().fingerprint("document", &[&group.0.to_le_bytes(), document.as_bytes()])
}

/// A recipient's splits and balance. With a status, the period may hold 2,000 splits.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients/{id}/splits", operation_id = "list_splits",
    params(("status" = Option<String>, Query, pattern = "^(pending|available|paid)$", description = "`pending`, `available` or `paid`"),
        PeriodParams, PageParams, ("limit" = Option<u64>, Query),
        ("before" = Option<String>, Query, pattern = "^[0-9a-f]{32}-[0-9]{1,5}$", description = "Only what is older than the split with this id."),
        ("after" = Option<String>, Query, pattern = "^[0-9a-f]{32}-[0-9]{1,5}$", description = "Only what is newer than the split with this id.")),
    responses((status = 200, body = Statement)))]
pub async fn splits(State(app): AppState, caller: Caller, PathId(id): PathId, parts: Parts) -> Result<Response> {
    let (recipient, _) = find_own(&app, caller, &id)?;
    let (pairs, cursors) = (query(&parts)?, Cursors::read(&parts)?);
    let statement = statement(&app.engine, recipient, &pairs, Page::read(&pairs, 20)?, &cursors).await?;
    Ok(statement.next.clone().iter().fold(ok(statement), |answer, next| linked(answer, next)))
}

/// A recipient of the caller's by its id.
pub fn find_own(app: &App, caller: Caller, id: &str) -> Result<(LedgerId, RecipientRow)> {
    let found = ObjectId::parse(id).and_then(|id| find_recipient(&app.engine, id));
    let own = found.filter(|(ledger, _)| ledger.group() == Some(caller.group));
    own.ok_or_else(not_found)
}

impl RecipientRecord {
    fn new(row: &RecipientRow, profile: RecipientProfile, accounts: &Balances) -> Self {
        let recipient = RecipientView::new(row, row.status, profile.clone(), RecipientBalance::of(accounts));
        Self { recipient, registration: Registration::of(profile, mask::document) }
    }
}

impl RegistrationResponse {
    fn new(
        row: &RecipientRow,
        status: RecipientStatus,
        profile: RecipientProfile,
        already_exists: bool,
        ignored: Vec<String>,
    ) -> Self {
        Self {
            id: row.id.uuid().to_string(),
            status: status_name(status),
            document_type: document_type(&profile.document),
            document: mask::document(&profile.document),
            name: profile.name,
            created_at: time(row.created_at),
            already_exists,
            ignored,
            labels: profile.labels.into(),
        }
    }
}
