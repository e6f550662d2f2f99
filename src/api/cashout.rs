//! Cashouts (interface 2.6, 3.2, 7): a transfer from the merchant's balance to any PIX key.

use std::ops::Range;
use std::sync::Arc;

use actors::engine::{
    CashoutOrdered, LedgerList, Listed, NewCashout, ReferenceLookup, ReferenceOf, Slice, TransactionLookup,
};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use ledger::cashout::CashoutStage;
use ledger::personal::PixKeyKind;
use ledger::tax_id::{is_cnpj, is_cpf};
use ledger::{AMOUNT_MAX, Cashout, Centavos, Labels, ObjectId, PixDestination, Record, Rejection, Settings};
use serde::Deserialize;
use strum::VariantArray;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::labels::{self, MetadataRequest, change_metadata};
use crate::api::payer::is_email;
use crate::api::places::{is_area_code, is_mobile};
use crate::api::{App, AppState};
use web::idempotency::{body_digest, in_progress};
use web::reply::{Filter, PeriodParams};
use web::views::cashout::{CashoutItem, CashoutView, cashout_status, destination};
use web::{
    Caller, Code, CursorParams, Cursors, JsonBody, KeyScope, KeyedBody, LabelParams, List, Page, PathId, Problem, Raw,
    Result, checked, created, not_found, ok, parse, query, recorded, refused, single,
};

/// A cashout, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "amount": 3000, "pix_key": "ana@example.com", "pix_key_type": "email", "info": "Fornecedor",
    "merchant_transaction_id": "5f0c2a9d-8e7b-461f-9a3c-0d1e2f3a4b5c",
}))]
pub struct CashoutRequest<'a> {
    /// Gross centavos, debited from the balance; at least the account's cashout fee and one
    /// centavo.
    #[schema(value_type = i64, minimum = 1, maximum = 1000000000000_i64)]
    amount: Raw<'a>,
    /// The receiver's PIX key, in the form of its type.
    #[schema(value_type = String, min_length = 1, max_length = 77)]
    pix_key: Raw<'a>,
    /// `cpf`, `cnpj`, `email`, `phone` or `evp`.
    #[schema(value_type = String, pattern = "^(cpf|cnpj|email|phone|evp)$")]
    pix_key_type: Raw<'a>,
    /// Description of the transfer, at most 140 characters.
    #[schema(value_type = Option<String>, max_length = 140)]
    info: Raw<'a>,
    /// A UUID that the account has not used before; made when absent.
    #[schema(value_type = Option<String>, format = "uuid")]
    merchant_transaction_id: Raw<'a>,
    /// Your reference, 1 to 64 characters.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    reference: Raw<'a>,
    /// True to refuse it when another cashout of the account was made with this and the same
    /// `reference`, ever.
    #[schema(value_type = Option<bool>)]
    reference_unique: Raw<'a>,
    /// Values of yours by key: at most 20, of 500 characters.
    #[schema(value_type = Option<HashMap<String, String>>)]
    metadata: Raw<'a>,
}

/// How many cashouts are listed when nobody asks for a number (interface 8).
const LISTED: u64 = 50;

/// A checked request.
struct CheckedCashout {
    amount: Centavos,
    destination: PixDestination,
    /// `None` if the caller gave none.
    transaction: Option<Uuid>,
}

/// Creates a cashout: the gross amount is debited at once, and the transfer is ordered.
#[utoipa::path(post, path = "/api/cashout", operation_id = "create_cashout", request_body = CashoutRequest,
    responses((status = 201, body = CashoutItem), (status = 403), (status = 502)))]
pub async fn create(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: CashoutRequest<'_> = parse(sent.bytes())?;
    let key = sent.key(&app.engine, KeyScope::Merchant(caller.group), None)?;
    let checked = check(&wire);
    let given = checked.as_ref().ok().and_then(|checked| checked.transaction);
    let unique = labels::unique_reference(wire.reference, wire.reference_unique);
    let (app, checked) = (&app, &checked);
    let execute = |(transaction, reference): (TransactionLookup, Option<ReferenceLookup>), admitted| async move {
        let settings = require_cashout(app, caller)?;
        let checked = checked.as_ref().map_err(Clone::clone)?;
        if app.engine.rails().payout.current().is_none() {
            return Err(Problem::new(Code::RailNotConfigured));
        }
        let minimum = settings.cashout_minimum();
        if checked.amount < minimum {
            return Err(Rejection::CashoutBelowMinimum { minimum }.into());
        }
        if let Some((id, _)) = transaction.used_by {
            return Err(Problem::new(Code::DuplicateTransaction).member("id", id.uuid().to_string()));
        }
        labels::require_new(ReferenceOf::Cashout, reference.as_ref())?;
        let (amount, destination) = (checked.amount, checked.destination.clone());
        let wanted = NewCashout { amount, destination, transaction, reference };
        recorded(app.engine.cash_out(caller.group, wanted, caller.context(admitted)).await?)
    };
    // A request that sees a transaction used up by another one with the same key finds that key
    // too: a replay is no duplicate.
    let digest = || body_digest(&app.engine, sent.bytes(), None);
    let look_up = || {
        let reference = labels::look_up(app, caller, (ReferenceOf::Cashout, unique.as_deref()), digest)?;
        Ok((app.engine.look_up_transaction(caller.group, given.map(Uuid::into_bytes))?, reference))
    };
    let replay = |record: Arc<Record>| app.engine.cashout_ordered(&record)?.ok_or_else(in_progress);
    let ordered = key.run_after(caller.ledger(), look_up, replay, execute).await?;
    let labels = checked.as_ref().ok().and_then(|checked| checked.destination.labels.clone());
    ordered.answer(|ordered| Ok(answer(&ordered, labels).unwrap_or_else(IntoResponse::into_response)))
}

/// The answer to the request for a cashout: 201, or 502 as a problem.
fn answer(ordered: &CashoutOrdered, labels: Option<Labels>) -> Result<Response> {
    if !ordered.is_taken {
        let problem = Problem::new(Code::RailUnavailable);
        let problem = problem.detail("The institution did not take the transfer; the whole amount is available again.");
        return Err(problem.member("id", ordered.id.uuid().to_string()));
    }
    let CashoutOrdered { id, transaction, net, .. } = *ordered;
    Ok(created(CashoutItem::of(id, transaction, net, &CashoutStage::InProcessing, labels.into())))
}

/// One cashout of the account.
#[utoipa::path(get, path = "/api/cashout/{id}", operation_id = "get_cashout",
    responses((status = 200, body = CashoutView), (status = 403)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(id): PathId) -> Result<Response> {
    require_cashout(&app, caller)?;
    Ok(ok(CashoutView::of(&app.engine, &named(&app, caller, &id)?)))
}

/// Changes the metadata of a cashout, 1,000 times at most (then 409 `state_conflict`). Nothing else
/// of it changes, and no webhook is sent.
#[utoipa::path(patch, path = "/api/cashout/{id}", operation_id = "change_cashout",
    request_body = MetadataRequest, responses((status = 200, body = CashoutView), (status = 403), (status = 409)))]
pub async fn change(State(app): AppState, caller: Caller, PathId(id): PathId, body: JsonBody) -> Result<Response> {
    require_cashout(&app, caller)?;
    let view = |cashout: &Cashout| Ok(ok(CashoutView::of(&app.engine, cashout)));
    change_metadata(&app, caller, &body.bytes, || named(&app, caller, &id), view).await
}

/// The account's cashout of this id.
fn named(app: &App, caller: Caller, id: &str) -> Result<Cashout> {
    app.engine.object_of(caller.group, ObjectId::parse(id).ok_or_else(not_found)?)?.ok_or_else(not_found)
}

/// Values of [`cashout_status`].
const STATUSES: [&str; 3] = ["in_processing", "processed", "failed"];

/// The account's cashouts, newest first; the last 50 when nothing else is asked for. With a status
/// or a label, the period may hold 2,000 cashouts.
#[utoipa::path(get, path = "/api/cashout", operation_id = "list_cashouts",
    params(("status" = Option<String>, Query, pattern = "^(in_processing|processed|failed)$", description = "`in_processing`, `processed` or `failed`"),
        ("merchant_transaction_id" = Option<String>, Query, format = "uuid", description = "With this `merchant_transaction_id`: one at most"),
        PeriodParams, LabelParams,
        ("page" = Option<u64>, Query), ("per_page" = Option<u64>, Query, minimum = 1, maximum = 100, description = "50 when absent."),
        CursorParams), responses((status = 200, body = List<CashoutItem>), (status = 403)))]
pub async fn list(State(app): AppState, caller: Caller, parts: Parts) -> Result<Response> {
    require_cashout(&app, caller)?;
    let pairs = query(&parts)?;
    let (page, filter) = (Page::read(&pairs, LISTED)?, Filter::read(&pairs, "status", &STATUSES)?);
    let cursors = Cursors::read(&parts)?;
    let range = filter.range(&app.engine, LedgerList::Cashouts, caller.ledger())?;
    let between = cursors.range(&app.engine, caller.ledger())?;
    let of_transaction = match single(&pairs, "merchant_transaction_id")? {
        None => 0..u64::MAX,
        Some(text) => place_of_transaction(&app, caller, text)?,
    };
    let start = range.start.max(between.start).max(of_transaction.start);
    let range = start..range.end.min(between.end).min(of_transaction.end);
    let (skip, count) = filter.to_read(page);
    let Listed { total, items: found } = app.engine.cashouts(caller.ledger(), Slice::new(range, skip, count))?;
    filter.check("status", total)?;
    let mut items = Vec::with_capacity(page.count());
    for cashout in found {
        let cashout = cashout?;
        let labels = destination(&app.engine, &cashout).labels;
        let is_in_status = filter.word.is_none_or(|word| word == cashout_status(&cashout.stage));
        if is_in_status && filter.labels.admits_some(labels.as_ref()) {
            let (id, net) = (cashout.id, cashout.net());
            items.push(CashoutItem::of(id, cashout.transaction, net, &cashout.stage, labels.into()));
        }
    }
    let list = List::filtered(&filter, items, total, page);
    let last = list.items.last().map(|item| item.id.clone());
    Ok(list.on(&cursors, last))
}

/// The part of the account's list that has the cashout of this `merchant_transaction_id`; an empty
/// one where no cashout has it.
fn place_of_transaction(app: &App, caller: Caller, text: &str) -> Result<Range<u64>> {
    let message = "merchant_transaction_id deve ser um UUID";
    let id = Uuid::try_parse(text).map_err(|_| refused("merchant_transaction_id", "not_a_uuid", message))?;
    let found = app.engine.look_up_transaction(caller.group, Some(id.into_bytes()))?;
    Ok(found.used_by.map_or(0..0, |(_, sequence)| sequence.0..sequence.0 + 1))
}

/// Refuses an account that is not enabled for cashout (interface 5.3).
fn require_cashout(app: &App, caller: Caller) -> Result<Settings> {
    let settings = app.engine.merchant(caller.group, |row| row.settings);
    settings.filter(|settings| settings.cashout_enabled).ok_or_else(|| Problem::new(Code::CashoutNotEnabled))
}

fn check(wire: &CashoutRequest<'_>) -> Result<CheckedCashout> {
    checked(|check| {
        let amount = check.centavos("amount", wire.amount, 0..=AMOUNT_MAX.0);
        let kind = check.text("pix_key_type", wire.pix_key_type, 1..=20);
        let kind = kind.and_then(|name| {
            let known = PixKeyKind::VARIANTS.iter().copied().find(|kind| kind.name() == name);
            let message = "pix_key_type deve ser cpf, cnpj, email, phone ou evp";
            known.or_else(|| check.refuse("pix_key_type", "unknown", message))
        });
        let key = check.text("pix_key", wire.pix_key, 1..=140);
        let key = key.zip(kind).and_then(|(text, kind)| {
            let message = || format!("pix_key não é uma chave do tipo {}", kind.name());
            pix_key(kind, &text).or_else(|| check.refuse("pix_key", "invalid_pix_key", message()))
        });
        let info = check.optional_prose("info", wire.info, 0..=140).map(std::borrow::Cow::into_owned);
        let transaction =
            check.optional(wire.merchant_transaction_id, |check, raw| check.uuid("merchant_transaction_id", raw));
        let labels = labels::read(check, wire.reference, wire.reference_unique, wire.metadata);
        let destination = PixDestination { kind: kind?, key: key?, info, labels };
        Some(CheckedCashout { amount: Centavos(amount?), destination, transaction })
    })
}

/// The characters that a key may have when it is an e-mail address.
const EMAIL_KEY_LEN_MAX: usize = 77;

/// A key of a kind as it is stored; `None` when the directory of keys (DICT) cannot hold the text
/// as a key of that kind. The kind is never guessed.
fn pix_key(kind: PixKeyKind, text: &str) -> Option<String> {
    match kind {
        PixKeyKind::Cpf => is_cpf(text).then(|| text.to_owned()),
        PixKeyKind::Cnpj => Some(text.to_ascii_uppercase()).filter(|key| is_cnpj(key)),
        PixKeyKind::Email => {
            let key = text.to_ascii_lowercase();
            (is_email(&key) && key.len() <= EMAIL_KEY_LEN_MAX && is_in_directory(&key)).then_some(key)
        }
        PixKeyKind::Phone => phone(text),
        PixKeyKind::Evp => {
            let is_hyphenated = text.len() == 36;
            Uuid::try_parse(text).ok().filter(|_| is_hyphenated).map(|key| key.hyphenated().to_string())
        }
    }
}

/// True for an e-mail address in small letters that has the form of the directory's pattern
/// (DICT API, *Key*): its characters before the `@`, then labels of letters, digits and inner
/// hyphens.
fn is_in_directory(key: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let ends = label.bytes().next().zip(label.bytes().next_back());
        label.len() <= 63
            && ends.is_some_and(|(first, last)| is_plain(first) && is_plain(last))
            && label.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    key.split_once('@').is_some_and(|(local, domain)| {
        let is_local = |byte: u8| is_plain(byte) || b".!#$&'*+/=?^_`{|}~-".contains(&byte);
        !local.is_empty() && local.bytes().all(is_local) && domain.split('.').all(is_label)
    })
}

/// A mobile number with `+55`. 11 digits are an area code and a number, 13 begin with the country's
/// code. Keys are mobile numbers ("telefone celular") in the Central Bank's rules of PIX.
fn phone(text: &str) -> Option<String> {
    let (has_plus, digits) = text.strip_prefix('+').map_or((false, text), |digits| (true, digits));
    let national = match digits.len() {
        11 if !has_plus => digits,
        13 => digits.strip_prefix("55")?,
        _ => return None,
    };
    let (area_code, number) = national.split_at_checked(2)?;
    (is_area_code(area_code) && is_mobile(number)).then(|| format!("+55{national}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stored_in_one_form_or_refused() {
        use PixKeyKind::*;
        let longest = format!("{}@loja.com.br", "a".repeat(EMAIL_KEY_LEN_MAX - 12));
        let too_long = format!("a{longest}");
        for (kind, text, expected) in [
            (Cpf, "12345678909", Some("12345678909")),
            (Cpf, "123.456.789-09", None),
            (Cpf, "12345678900", None),
            (Cpf, "11111111111", None),
            (Cpf, "1234567890", None),
            (Cpf, "11222333000181", None),
            (Cnpj, "11222333000181", Some("11222333000181")),
            (Cnpj, "12ABC34501DE35", Some("12ABC34501DE35")),
            (Cnpj, "12abc34501de35", Some("12ABC34501DE35")),
            (Cnpj, "11.222.333/0001-81", None),
            (Cnpj, "11222333000182", None),
            (Cnpj, "12345678909", None),
            (Email, "Ana@Loja.com.br", Some("ana@loja.com.br")),
            (Email, &longest, Some(&longest)),
            (Email, &too_long, None),
            (Email, "ana@loja", None),
            (Email, "ana.loja.com.br", None),
            (Email, "analoja.com.br", None),
            (Email, "ana maria@loja.com.br", None),
            (Email, "ana+1.b_c@loja-2.com.br", Some("ana+1.b_c@loja-2.com.br")),
            (Email, "100%@loja.com.br", None),
            (Email, "josé@loja.com.br", None),
            (Email, "ana@lojã.com.br", None),
            (Email, "ana,b@loja.com.br", None),
            (Email, "ana@-loja.com.br", None),
            (Email, "ana@loja_azul.com.br", None),
            (Email, "\"ana\"@loja.com.br", None),
            (Phone, "11987654321", Some("+5511987654321")),
            (Phone, "1133334444", None),
            (Phone, "5511987654321", Some("+5511987654321")),
            (Phone, "551133334444", None),
            (Phone, "+5511987654321", Some("+5511987654321")),
            (Phone, "+551133334444", None),
            (Phone, "55987654321", Some("+5555987654321")),
            (Phone, "5533334444", None),
            (Phone, "10987654321", None),
            (Phone, "20987654321", None),
            (Phone, "5523987654321", None),
            (Phone, "11887654321", None),
            (Phone, "1198765432", None),
            (Phone, "+11987654321", None),
            (Phone, "+55987654321", None),
            (Phone, "4411987654321", None),
            (Phone, "441133334444", None),
            (Phone, "01133334444", None),
            (Phone, "+5501133334444", None),
            (Phone, "987654321", None),
            (Phone, "55119876543210", None),
            (Phone, "(11) 98765-4321", None),
            (Phone, "++551133334444", None),
            (Phone, "1198765432a", None),
            (Evp, "123e4567-E89B-12d3-a456-426614174000", Some("123e4567-e89b-12d3-a456-426614174000")),
            (Evp, "123e4567e89b12d3a456426614174000", None),
            (Evp, "{123e4567-e89b-12d3-a456-426614174000}", None),
            (Evp, "123e4567-e89b-12d3-a456-42661417400", None),
            (Evp, "12345678909", None),
        ] {
            assert_eq!(pix_key(kind, text).as_deref(), expected, "{kind:?} {text}");
        }
    }
}
