//! Sub-recipients: registration and the list (interface 2.7, 4).

use std::sync::Arc;

use actors::projector::RecipientRow;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use ledger::account::Account;
use ledger::document::DocumentKind;
use ledger::event::Event;
use ledger::id::{LedgerId, ObjectId, RecipientNumber};
use ledger::merchant::{MerchantCommand, RecipientStatus};
use ledger::money::AMOUNT_MAX;
use ledger::personal::{Address, BankAccount, Phone, RecipientProfile, Sealed};
use ledger::record::Record;
use ledger::time::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::app::{App, Caller, Settled, settled};
use super::body::JsonBody;
use super::card::email;
use super::idempotency::{Key, Keyed, LOOK_UPS_MAX, replayed};
use super::json::{Checker, ITSELF, Raw, parse};
use super::pix::read_document;
use super::problem::{Code, Problem};
use super::reply::{List, PageQuery, created, ok, time};
use super::splits::require_split;
use crate::folding::search_key;
use crate::mask;

/// A registration, as sent.
#[derive(Deserialize, ToSchema)]
pub struct RegistrationRequest<'a> {
    /// Who.
    #[serde(borrow)]
    #[schema(value_type = RegisterInformation)]
    register_information: Raw<'a>,
    /// Where withdrawals go.
    #[serde(borrow)]
    #[schema(value_type = BankAccountRequest)]
    bank_account: Raw<'a>,
}

/// Who is registered.
#[derive(Deserialize, ToSchema)]
pub struct RegisterInformation<'a> {
    /// `individual` or `corporation`.
    #[serde(borrow, rename = "type")]
    #[schema(value_type = String)]
    kind: Raw<'a>,
    /// CPF or CNPJ, with or without punctuation.
    #[serde(borrow)]
    #[schema(value_type = String)]
    document_number: Raw<'a>,
    /// Full name; individuals.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    name: Raw<'a>,
    /// DD/MM/YYYY; individuals.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    birthdate: Raw<'a>,
    /// Individuals.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    mother_name: Raw<'a>,
    /// Legal name; corporations.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    company_name: Raw<'a>,
    /// Where they live or trade.
    #[serde(borrow)]
    #[schema(value_type = AddressRequest)]
    address: Raw<'a>,
    /// At least one.
    #[serde(borrow)]
    #[schema(value_type = Vec<PhoneRequest>)]
    phone_numbers: Raw<'a>,
    /// At least one; corporations.
    #[serde(borrow)]
    #[schema(value_type = Option<Vec<PartnerRequest>>)]
    managing_partners: Raw<'a>,
    /// Contact e-mail.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    email: Raw<'a>,
    /// Centavos; individuals.
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    monthly_income: Raw<'a>,
    /// Centavos; corporations.
    #[serde(borrow)]
    #[schema(value_type = Option<i64>)]
    annual_revenue: Raw<'a>,
}

/// A managing partner.
#[derive(Deserialize, ToSchema)]
pub struct PartnerRequest<'a> {
    /// Full name.
    #[serde(borrow)]
    #[schema(value_type = String)]
    name: Raw<'a>,
    /// CPF, with or without punctuation.
    #[serde(borrow)]
    #[schema(value_type = String)]
    document_number: Raw<'a>,
    /// DD/MM/YYYY.
    #[serde(borrow)]
    #[schema(value_type = String)]
    birthdate: Raw<'a>,
    /// Mother's name.
    #[serde(borrow)]
    #[schema(value_type = String)]
    mother_name: Raw<'a>,
    /// E-mail.
    #[serde(borrow)]
    #[schema(value_type = String)]
    email: Raw<'a>,
    /// At least one.
    #[serde(borrow)]
    #[schema(value_type = Vec<PhoneRequest>)]
    phone_numbers: Raw<'a>,
    /// Here with `street_number` and `zipcode`.
    #[serde(borrow)]
    #[schema(value_type = AddressRequest)]
    address: Raw<'a>,
}

/// A postal address. A partner's has `street_number` and `zipcode` in place of `number` and `zip_code`.
#[derive(Deserialize, ToSchema)]
pub struct AddressRequest<'a> {
    /// Street.
    #[serde(borrow)]
    #[schema(value_type = String)]
    street: Raw<'a>,
    /// House number.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    number: Raw<'a>,
    /// House number, in a partner's address.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    street_number: Raw<'a>,
    /// Neighborhood.
    #[serde(borrow)]
    #[schema(value_type = String)]
    neighborhood: Raw<'a>,
    /// City.
    #[serde(borrow)]
    #[schema(value_type = String)]
    city: Raw<'a>,
    /// Two letters.
    #[serde(borrow)]
    #[schema(value_type = String)]
    state: Raw<'a>,
    /// CEP.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    zip_code: Raw<'a>,
    /// CEP, in a partner's address.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    zipcode: Raw<'a>,
}

/// A telephone number.
#[derive(Deserialize, ToSchema)]
pub struct PhoneRequest<'a> {
    /// Area code.
    #[serde(borrow)]
    #[schema(value_type = String)]
    ddd: Raw<'a>,
    /// Number without area code.
    #[serde(borrow)]
    #[schema(value_type = String)]
    number: Raw<'a>,
}

/// A bank account.
#[derive(Deserialize, ToSchema)]
pub struct BankAccountRequest<'a> {
    /// 3 digits.
    #[serde(borrow)]
    #[schema(value_type = String)]
    bank_code: Raw<'a>,
    /// Branch.
    #[serde(borrow)]
    #[schema(value_type = String)]
    agencia: Raw<'a>,
    /// Branch check digit.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    agencia_dv: Raw<'a>,
    /// Account.
    #[serde(borrow)]
    #[schema(value_type = String)]
    conta: Raw<'a>,
    /// Account check digit.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    conta_dv: Raw<'a>,
    /// `conta_corrente` (default) or `conta_poupanca`.
    #[serde(borrow, rename = "type")]
    #[schema(value_type = Option<String>)]
    kind: Raw<'a>,
    /// Holder's name.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    legal_name: Raw<'a>,
    /// Holder's CPF or CNPJ; that of `register_information` when absent.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    document_number: Raw<'a>,
}

/// A recipient, as registration answers (interface 2.7).
#[derive(Debug, Serialize, ToSchema)]
pub struct RegistrationResponse {
    /// Used in splits and in paths.
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    status: &'static str,
    /// `CPF` or `CNPJ`.
    document_type: &'static str,
    /// Masked.
    document: String,
    /// Full or legal name.
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
    id: String,
    /// `draft`, `pending`, `active` or `rejected`.
    status: &'static str,
    /// `CPF` or `CNPJ`.
    document_type: &'static str,
    /// Masked.
    document: String,
    /// Full or legal name.
    name: String,
    /// Contact e-mail.
    email: Option<String>,
    /// When it was registered.
    created_at: String,
    /// Its money.
    balance: RecipientBalance,
}

/// A recipient's money, centavos.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct RecipientBalance {
    /// Can be withdrawn.
    pub available: i64,
    /// Falls due later.
    pub pending: i64,
    /// Withdrawn.
    pub paid: i64,
    /// Under a pending withdrawal.
    pub reserved: i64,
}

impl RecipientBalance {
    /// The balance as the books have it.
    pub fn of_books(app: &App, ledger: LedgerId) -> Self {
        let projector = app.engine.projector();
        let net = |account| i64::try_from(projector.balance(ledger, account)).unwrap_or(i64::MAX);
        Self {
            available: net(Account::Available),
            pending: net(Account::Pending),
            paid: net(Account::TransitWithdrawal),
            reserved: net(Account::ReservedWithdrawal),
        }
    }
}

/// Registers a sub-recipient; idempotent on its document.
#[utoipa::path(post, path = "/api/sub-recipients", request_body = RegistrationRequest,
    responses((status = 201, body = RegistrationResponse), (status = 200, body = RegistrationResponse), (status = 400),
        (status = 401), (status = 422)))]
pub async fn register(
    State(app): State<Arc<App>>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody { bytes: body, .. }: JsonBody,
) -> Result<Response, Problem> {
    let wire: RegistrationRequest<'_> = parse(&body)?;
    let key = Key::of(&app, &headers, &caller.group.0.to_string(), "POST /api/sub-recipients", &body, None)?;
    for _ in 0..LOOK_UPS_MAX {
        let lookup = match key.look_up(&app, caller.ledger())? {
            Keyed::Replay(record, _) => return answer(&app, caller, &record).map(replayed),
            Keyed::Fresh(lookup) => lookup,
        };
        let permit = app.engine.permit(body.len())?;
        require_split(&app, caller)?;
        let profile = check(&wire, app.engine.now())?;
        let document =
            app.engine.keyring().fingerprint("document", &[&caller.group.0.to_le_bytes(), profile.document.as_bytes()]);
        let command = MerchantCommand::RegisterRecipient {
            random: app.random()? as u16,
            document,
            profile: app.engine.keyring().seal_value(app.engine.now(), &profile)?,
        };
        let outcome = app.engine.command(caller.group, command, lookup, None, permit).await?;
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
                let profile = open(&app, row.profiles.current());
                return Ok(ok(RegistrationResponse::new(&row, row.status, profile, true)));
            }
        }
    }
    Err(Problem::new(Code::IdempotencyKeyInProgress).retry_after(1))
}

/// The account's recipients, newest first; `search` looks in names, without regard to case and accents.
#[utoipa::path(get, path = "/api/dashboard/sub-recipients",
    params(("search" = Option<String>, Query), ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query)),
    responses((status = 200, body = List<RecipientView>)))]
pub async fn list(
    State(app): State<Arc<App>>,
    caller: Caller,
    PageQuery { page, search }: PageQuery,
) -> Result<Response, Problem> {
    let (wanted, projector) = (search_key(&search), app.engine.projector());
    let find = |merchant: &actors::projector::MerchantRow| {
        let numbered = merchant.recipients.iter().enumerate().rev();
        let found: Vec<_> = numbered.filter(|(_, row)| projector.search_key(row).contains(&wanted)).collect();
        let rows = found.iter().skip(usize::try_from(page.skip()).unwrap_or(usize::MAX)).take(page.count());
        (
            found.len() as u64,
            rows.map(|(number, row)| (RecipientNumber(*number as u32 + 1), (*row).clone())).collect::<Vec<_>>(),
        )
    };
    let (total, rows) = app.engine.projector().merchant(caller.group, find).unwrap_or_default();
    let items = rows.iter().map(|(number, row)| view(&app, LedgerId::Recipient(caller.group, *number), row));
    Ok(ok(List::new(items.collect(), total, page)))
}

/// A recipient by its id, whoever's it is.
pub fn find_recipient(app: &App, id: ObjectId) -> Option<(LedgerId, RecipientRow)> {
    let (group, number) = (app.engine.ids().group(id), app.engine.ids().recipient_number(id));
    let find = |merchant: &actors::projector::MerchantRow| {
        merchant.recipients.get((number.0 as usize).checked_sub(1)?).filter(|row| row.id == id).cloned()
    };
    let row = app.engine.projector().merchant(group, find).flatten()?;
    Some((LedgerId::Recipient(group, number), row))
}

/// A recipient as lists and decisions show it.
pub fn view(app: &App, ledger: LedgerId, row: &RecipientRow) -> RecipientView {
    let profile = open(app, row.profiles.current());
    RecipientView::new(row, row.status, profile, RecipientBalance::of_books(app, ledger))
}

/// A recipient as the decision that a Record keeps showed it. One that is being decided on has had no money yet.
pub fn view_at_decision(app: &App, row: &RecipientRow, record: &Record) -> RecipientView {
    let approved = record.events.iter().any(|event| matches!(event, Event::RecipientApproved { .. }));
    let status = if approved { RecipientStatus::Active } else { RecipientStatus::Rejected };
    RecipientView::new(row, status, open(app, row.profiles.at(record.ordinal)), RecipientBalance::default())
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
            balance,
        }
    }
}

/// The answer of the request that a Record carried out: 201 for a new recipient, 200 for one that was rejected before.
fn answer(app: &App, caller: Caller, record: &Record) -> Result<Response, Problem> {
    let (number, again) = record
        .events
        .iter()
        .find_map(|event| match event {
            Event::RecipientRegistered { number, .. } => Some((*number, false)),
            Event::RecipientRegisteredAgain { number } => Some((*number, true)),
            _ => None,
        })
        .ok_or_else(|| Problem::new(Code::Internal))?;
    let find = |merchant: &actors::projector::MerchantRow| merchant.recipients.get(number.0 as usize - 1).cloned();
    let row = app.engine.projector().merchant(caller.group, find).flatten();
    let row = row.ok_or_else(|| Problem::new(Code::Internal))?;
    let profile = open(app, record.personal.as_ref());
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
fn open(app: &App, profile: Option<&Sealed>) -> RecipientProfile {
    profile.and_then(|sealed| app.engine.keyring().open_value(sealed)).unwrap_or_default()
}

fn status_name(status: RecipientStatus) -> &'static str {
    match status {
        RecipientStatus::Draft => "draft",
        RecipientStatus::Pending => "pending",
        RecipientStatus::Active => "active",
        RecipientStatus::Rejected => "rejected",
    }
}

/// `CPF` or `CNPJ`.
pub fn document_type(document: &str) -> &'static str {
    if document.len() == 14 { "CNPJ" } else { "CPF" }
}

fn check(wire: &RegistrationRequest<'_>, now: Timestamp) -> Result<RecipientProfile, Problem> {
    let mut check = Checker::new();
    let profile =
        check.object("register_information", wire.register_information, |check, info: RegisterInformation<'_>| {
            match check.text("type", info.kind, 1..=20)?.as_ref() {
                "individual" => read_individual(check, &info, now),
                "corporation" => read_corporation(check, &info, now),
                _ => check.refuse("type", "unknown_value", "type deve ser individual ou corporation"),
            }
        });
    let bank = check.object("bank_account", wire.bank_account, |check, bank: BankAccountRequest<'_>| {
        read_bank(check, &bank, profile.as_ref().map(|profile| profile.document.as_str()).unwrap_or_default())
    });
    let checked = profile.zip(bank).map(|(profile, bank)| RecipientProfile { bank: Some(bank), ..profile });
    check.finish_with(checked)
}

fn read_individual(check: &mut Checker, info: &RegisterInformation<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("name", info.name, 1..=140);
    let document = read_document(check, "document_number", info.document_number, DocumentKind::Cpf);
    let birthdate = read_birthdate(check, info.birthdate, now);
    let mother_name = check.text("mother_name", info.mother_name, 1..=140);
    let address = check.object("address", info.address, |check, address| read_address(check, &address, false));
    let phones = read_phones(check, info.phone_numbers);
    let email_address = check.optional(info.email, |check, raw| email(check, "email", raw));
    let income =
        check.optional(info.monthly_income, |check, raw| check.centavos("monthly_income", raw, 0..=AMOUNT_MAX.0));
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: email_address,
        birthdate: Some(birthdate?),
        mother_name: Some(mother_name?.into_owned()),
        address: Some(address?),
        phones: phones?,
        income_cents: income,
        ..RecipientProfile::default()
    })
}

fn read_corporation(check: &mut Checker, info: &RegisterInformation<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("company_name", info.company_name, 1..=140);
    let document = read_document(check, "document_number", info.document_number, DocumentKind::Cnpj);
    let address = check.object("address", info.address, |check, address| read_address(check, &address, false));
    let phones = read_phones(check, info.phone_numbers);
    let email_address = check.optional(info.email, |check, raw| email(check, "email", raw));
    let revenue =
        check.optional(info.annual_revenue, |check, raw| check.centavos("annual_revenue", raw, 0..=AMOUNT_MAX.0));
    let partners = check.array("managing_partners", info.managing_partners, 1..=50, |check, element| {
        check.object(ITSELF, element, |check, partner: PartnerRequest<'_>| read_partner(check, &partner, now))
    });
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: email_address,
        address: Some(address?),
        phones: phones?,
        income_cents: revenue,
        partners: partners?,
        ..RecipientProfile::default()
    })
}

fn read_partner(check: &mut Checker, partner: &PartnerRequest<'_>, now: Timestamp) -> Option<RecipientProfile> {
    let name = check.text("name", partner.name, 1..=140);
    let document = read_document(check, "document_number", partner.document_number, DocumentKind::Cpf);
    let birthdate = read_birthdate(check, partner.birthdate, now);
    let mother_name = check.text("mother_name", partner.mother_name, 1..=140);
    let email_address = email(check, "email", partner.email);
    let phones = read_phones(check, partner.phone_numbers);
    let address = check.object("address", partner.address, |check, address| read_address(check, &address, true));
    Some(RecipientProfile {
        name: name?.into_owned(),
        document: document?,
        email: Some(email_address?),
        birthdate: Some(birthdate?),
        mother_name: Some(mother_name?.into_owned()),
        address: Some(address?),
        phones: phones?,
        ..RecipientProfile::default()
    })
}

fn read_address(check: &mut Checker, address: &AddressRequest<'_>, of_partner: bool) -> Option<Address> {
    let street = check.text("street", address.street, 1..=140);
    let number = if of_partner {
        check.text("street_number", address.street_number, 1..=20)
    } else {
        check.text("number", address.number, 1..=20)
    };
    let neighborhood = check.text("neighborhood", address.neighborhood, 1..=140);
    let city = check.text("city", address.city, 1..=140);
    let state = check.text("state", address.state, 2..=2);
    let (zip_name, zip) = if of_partner { ("zipcode", address.zipcode) } else { ("zip_code", address.zip_code) };
    let zip_code = check.text(zip_name, zip, 8..=9).map(|text| text.replace('-', ""));
    let zip_code = zip_code.filter(|digits| {
        let fits = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if !fits {
            check.refuse::<()>(zip_name, "invalid_zip_code", "CEP deve ter 8 dígitos");
        }
        fits
    });
    Some(Address {
        street: street?.into_owned(),
        number: number?.into_owned(),
        neighborhood: neighborhood?.into_owned(),
        city: city?.into_owned(),
        state: state?.to_ascii_uppercase(),
        zip_code: zip_code?,
    })
}

fn read_phones(check: &mut Checker, raw: Raw<'_>) -> Option<Vec<Phone>> {
    check.array("phone_numbers", raw, 1..=20, |check, element| {
        check.object(ITSELF, element, |check, phone: PhoneRequest<'_>| {
            let ddd = check.digits("ddd", phone.ddd, 2..=2);
            let number = check.digits("number", phone.number, 8..=9);
            Some(Phone { ddd: ddd?.into_owned(), number: number?.into_owned() })
        })
    })
}

fn read_bank(check: &mut Checker, bank: &BankAccountRequest<'_>, holder: &str) -> Option<BankAccount> {
    let bank_code = check.digits("bank_code", bank.bank_code, 3..=3);
    let agencia = check.digits("agencia", bank.agencia, 1..=10);
    let agencia_dv = check.optional_text("agencia_dv", bank.agencia_dv, 1..=2);
    let conta = check.digits("conta", bank.conta, 1..=20);
    let conta_dv = check.optional_text("conta_dv", bank.conta_dv, 1..=2);
    let savings = match check.optional_text("type", bank.kind, 1..=20).as_deref() {
        None | Some("conta_corrente") => Some(false),
        Some("conta_poupanca") => Some(true),
        Some(_) => check.refuse("type", "unknown_value", "type deve ser conta_corrente ou conta_poupanca"),
    };
    let legal_name = check.optional_text("legal_name", bank.legal_name, 1..=140);
    let document = check.optional(bank.document_number, |check, raw| {
        let text = check.text("document_number", raw, 11..=18)?;
        let normalized = ledger::document::normalize(&text);
        match ledger::document::kind(&normalized) {
            Some(_) => Some(normalized),
            None => check.refuse("document_number", "invalid_document", "document_number inválido"),
        }
    });
    Some(BankAccount {
        bank_code: bank_code?.into_owned(),
        agencia: agencia?.into_owned(),
        agencia_dv: agencia_dv.map(std::borrow::Cow::into_owned),
        conta: conta?.into_owned(),
        conta_dv: conta_dv.map(std::borrow::Cow::into_owned),
        savings: savings?,
        legal_name: legal_name.map(std::borrow::Cow::into_owned),
        document: document.unwrap_or_else(|| holder.to_owned()),
    })
}

/// DD/MM/YYYY, a day that exists, from 1900 until today.
fn read_birthdate(check: &mut Checker, raw: Raw<'_>, now: Timestamp) -> Option<String> {
    use chrono::{DateTime, Datelike, NaiveDate};
    let text = check.text("birthdate", raw, 10..=10)?;
    let today = DateTime::from_timestamp_millis(now.0).unwrap_or_default().date_naive();
    match NaiveDate::parse_from_str(&text, "%d/%m/%Y") {
        Ok(date) if date.year() >= 1900 && date <= today => Some(text.into_owned()),
        _ => check.refuse("birthdate", "invalid_date", "birthdate deve ser uma data DD/MM/AAAA"),
    }
}
