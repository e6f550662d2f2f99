//! Stored cards: stores a card at the acquirer (tokenization), so that charges and subscriptions
//! can name it; lists, reads and deletes cards. The server keeps neither the number nor the
//! security code, only the token of the acquirer, sealed. A card is of one customer.

use std::sync::Arc;

use actors::engine::{CardRow, Slice};
use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::tax_id;
use ledger::{Fingerprint, MerchantCommand, ObjectId, Payer, Rejection, SealedFor, StoredCard};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::api::card_data::{CardData, face, read_card, security_code};
use crate::api::payer::{CustomerRequest, read_customer};
use crate::api::subscriptions::first_charge_was_paid;
use crate::api::{App, AppState};
use web::idempotency::naming;
use web::reply::{self, FILTERED_MAX};
use web::views::stored_card::{CardDetails, StoredCardView, customer_of};
use web::{
    Caller, Checker, CursorParams, KeyScope, KeyedBody, List, PageParams, PageQuery, PathId, Raw, Result, checked,
    created, decided, not_found, ok, one_of, parse, refused, single,
};

/// A card to be stored, as sent.
#[derive(Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'a"))]
#[schema(example = json!({
    "credit_card": {
        "number": "4111111111111111", "holder_name": "JOAO AVILA", "exp_month": 12, "exp_year": 2039, "cvv": "737",
    },
    "customer": {"name": "João Ávila", "email": "joao@example.com", "document": "12345678909"},
}))]
pub struct StoreCardRequest<'a> {
    /// The card; either this or `card`.
    #[schema(value_type = Option<CardData>)]
    credit_card: Raw<'a>,
    /// The card; either this or `credit_card`.
    #[schema(value_type = Option<CardData>)]
    card: Raw<'a>,
    /// Whose it is.
    #[schema(value_type = CustomerRequest)]
    customer: Raw<'a>,
}

/// Stores a card. One that was refused too often is not stored.
#[utoipa::path(post, path = "/api/cards", operation_id = "store_card", request_body = StoreCardRequest,
    responses((status = 201, body = StoredCardView)))]
pub async fn store(State(app): AppState, caller: Caller, sent: KeyedBody) -> Result<Response> {
    let wire: StoreCardRequest<'_> = parse(sent.bytes())?;
    let secret = sent.has_key().then(|| security_code(wire.credit_card, wire.card, None)).flatten();
    let key = sent.key_without(&app.engine, KeyScope::Merchant(caller.group), secret)?;
    let (app, wire) = (&app, &wire);
    let execute = |admitted| async move {
        let now = app.engine.now();
        let mut check = Checker::new();
        let customer = read_customer(&mut check, wire.customer);
        let card = read_card(&mut check, wire.credit_card, wire.card, now);
        let (customer, card) = check.finish_with(customer.zip(card))?;
        if let Some(limits) = &app.rate_limits {
            let number = app.engine.keyring().fingerprint("card-number", &[card.number.as_bytes()]);
            limits.admit_card(number, caller.group, |id| first_charge_was_paid(app, caller, id))?;
        }
        let face = face(&card.number);
        let id = app.engine.new_id(caller.group)?;
        let (token, rail) = app.engine.tokenize(id, card).await?;
        let command = MerchantCommand::StoreCard {
            id,
            face,
            token,
            customer: app.engine.keyring().seal_value(SealedFor::customer(id), now, &customer)?,
            rail,
        };
        Ok(app.engine.command(caller.group, command, caller.context(admitted)).await?)
    };
    let stored = key.run_recorded(caller.ledger(), StoredCard::stored_by, execute).await?;
    stored.answer(|StoredCard { id, face }| Ok(created(StoredCardView::of(id, &face))))
}

/// The account's stored cards, newest first; deleted ones are among them, unless `deleted` says
/// otherwise. With `deleted` alone, the account may have 2,000 cards.
#[utoipa::path(get, path = "/api/cards", operation_id = "list_cards",
    params(("document" = Option<String>, Query, max_length = 18, example = "12345678909", description = "Of the customer with this CPF, with or without punctuation"),
        ("deleted" = Option<bool>, Query, description = "`true` for the deleted ones alone, `false` for the others"),
        PageParams, CursorParams),
    responses((status = 200, body = List<CardDetails>)))]
pub async fn list(State(app): AppState, caller: Caller, query: PageQuery, parts: Parts) -> Result<Response> {
    let (pairs, merchant) = (reply::query(&parts)?, caller.ledger());
    let document = single(&pairs, "document")?;
    let document = document.map(tax_id::normalize);
    if document.as_deref().is_some_and(|document| tax_id::kind(document).is_none()) {
        return Err(refused("document", "invalid_document", "document deve ser um CPF ou CNPJ válido"));
    }
    let deleted = one_of(&pairs, "deleted", &["true", "false"])?.map(|text| text == "true");
    let filter = document.as_ref().map(|_| "document").or(deleted.map(|_| "deleted"));
    let found = if let Some(document) = document {
        let ids = app.engine.cards_of_document(caller.group, &document, FILTERED_MAX)?;
        let ids = query.cursors.of_filtered(&app.engine, merchant, ids)?;
        let rows: Result<Vec<_>, _> = ids.into_iter().map(|id| app.engine.card(merchant, id)).collect();
        (0, rows?.into_iter().flatten().collect())
    } else {
        let (skip, count) = query.to_read(filter.is_some());
        app.engine.cards(merchant, Slice::new(query.cursors.range(&app.engine, merchant)?, skip, count))?
    };
    let is_wanted = |row: &CardRow| deleted.is_none_or(|deleted| row.is_deleted == deleted);
    let (total, rows) = query.page_of(filter, found, is_wanted)?;
    let last = rows.last().map(|row| row.id.uuid().to_string());
    query.answer(total, last, rows.into_iter().map(move |row| Ok(CardDetails::of(&app.engine, &row))))
}

/// One stored card of the account, deleted or not.
#[utoipa::path(get, path = "/api/cards/{token}", operation_id = "get_card", params(("token" = String, Path, description = "The `card_token`.")),
    responses((status = 200, body = CardDetails)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(token): PathId) -> Result<Response> {
    Ok(ok(CardDetails::of(&app.engine, &named(&app, caller, &token)?)))
}

/// Deletes a stored card: nothing is charged to it from here on. 409 `state_conflict` while a
/// subscription that goes on is charged to it: that one gets another card first, or is cancelled.
/// Deleting it again changes nothing. The acquirer is asked once to delete its own token.
#[utoipa::path(delete, path = "/api/cards/{token}", operation_id = "delete_stored_card", params(("token" = String, Path, description = "The `card_token`.")),
    responses((status = 200, body = CardDetails), (status = 409)))]
pub async fn delete(State(app): AppState, caller: Caller, PathId(token): PathId) -> Result<Response> {
    let row = named(&app, caller, &token)?;
    let mut deleted = CardDetails::of(&app.engine, &row);
    deleted.deleted = true;
    if row.is_deleted {
        return Ok(ok(deleted));
    }
    let permit = app.engine.permit_in_turn(Some(caller.group), 0).await?;
    let context = caller.context(Arc::clone(&permit));
    decided(app.engine.command(caller.group, MerchantCommand::DeleteCard { id: row.id }, context).await?)?;
    // Once no charge can name it. What the acquirer leaves is left to it.
    let _is_deleted_there = app.engine.delete_token(&row).await;
    Ok(naming(permit.requested_record(), ok(deleted)))
}

/// The account's card of this token, deleted or not.
fn named(app: &App, caller: Caller, token: &str) -> Result<CardRow> {
    let id = ObjectId::parse(token).ok_or_else(not_found)?;
    app.engine.card(caller.ledger(), id)?.ok_or_else(not_found)
}

/// The account's card that a `card_token` of a body names.
pub fn stored_card(app: &App, caller: Caller, token: &str) -> Result<CardRow> {
    let stored = match ObjectId::parse(token) {
        Some(id) => app.engine.stored_card(caller.ledger(), id)?,
        None => None,
    };
    stored.ok_or_else(|| Rejection::CardNotStored.into())
}

/// Digest of a stored card, for its rate limit.
pub fn stored_fingerprint(app: &App, id: ObjectId) -> Fingerprint {
    app.engine.keyring().fingerprint("stored-card", &[&id.0.to_be_bytes()])
}

/// The payer of a charge to a stored card: who stored it, or as the request says. Another customer
/// is refused, and a card whose customer was erased takes the one of the request.
pub fn payer_of(app: &App, row: &CardRow, sent: Option<Payer>) -> Result<Payer> {
    let stored = customer_of(&app.engine, row);
    checked(|check| match (stored, sent) {
        (Some(stored), Some(sent)) if stored.document != sent.document => {
            check.within("customer", |check| check.refuse("document", "other_customer", "o cartão é de outro cliente"))
        }
        (_, Some(sent)) => Some(sent),
        (Some(stored), None) => Some(stored),
        (None, None) => {
            check.refuse("customer", "required", "customer é obrigatório: os dados do cartão foram apagados")
        }
    })
}
