//! `POST /api/cards`: stores a card at the acquirer (tokenization), so that a subscription can
//! charge it. The server keeps neither the number nor the security code, only the token of the
//! acquirer, sealed.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use ledger::merchant::MerchantCommand;
use ledger::personal::SealedFor;
use ledger::recurrence::StoredCard;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::app::App;
use crate::api::card_data::{CardData, face, read_card, security_code};
use crate::api::payer::{CustomerRequest, read_customer};
use crate::api::subscriptions::first_charge_was_paid;
use web::caller::Caller;
use web::idempotency::KeyScope;
use web::json::{Checker, Raw, parse};
use web::keyed::KeyedBody;
use web::problem::Problem;
use web::reply::created;
use web::views::charge::CardView;

/// A card to be kept, as sent.
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

/// A card that the acquirer keeps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredCard)]
pub struct StoredCardView {
    /// By this a subscription names the card.
    #[schema(format = "uuid")]
    card_token: String,
    /// What may be shown of it.
    #[serde(flatten)]
    face: CardView,
}

/// Keeps a card. One that was refused too often is not kept.
#[utoipa::path(post, path = "/api/cards", operation_id = "store_card", request_body = StoreCardRequest,
    responses((status = 201, body = StoredCardView)))]
pub async fn store(State(app): State<Arc<App>>, caller: Caller, sent: KeyedBody) -> Result<Response, Problem> {
    let wire: StoreCardRequest<'_> = parse(sent.bytes())?;
    let secret = sent.has_key().then(|| security_code(wire.credit_card, wire.card)).flatten();
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
            limits.admit_card(number, caller.key, |id| first_charge_was_paid(app, caller, id))?;
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
    stored.answer(|StoredCard { id, face }| {
        Ok(created(StoredCardView { card_token: id.uuid().to_string(), face: CardView::of(&face) }))
    })
}
