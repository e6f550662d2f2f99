//! Stored card as JSON.

use actors::engine::{CardRow, Engine};
use ledger::{CardFace, ObjectId, Payer, SealedFor};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time;
use crate::views::charge::CardView;
use crate::views::subscription::CustomerView;

/// A card that the acquirer keeps.
#[derive(Debug, Serialize, ToSchema)]
pub struct StoredCardView {
    /// By this charges and subscriptions name the card.
    #[schema(format = "uuid")]
    card_token: String,
    /// What may be shown of it.
    #[serde(flatten)]
    face: CardView,
}

impl StoredCardView {
    /// What is shown of a card with a token.
    pub fn of(id: ObjectId, face: &CardFace) -> Self {
        Self { card_token: id.uuid().to_string(), face: CardView::of(face) }
    }
}

/// A stored card, read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoredCardDetails)]
pub struct CardDetails {
    /// The token, and what may be shown of the card.
    #[serde(flatten)]
    card: StoredCardView,
    /// Whose it is.
    customer: CustomerView,
    /// When it was stored.
    created_at: String,
    /// True once it was deleted: nothing is charged to it.
    pub deleted: bool,
}

impl CardDetails {
    /// What is shown of a stored card.
    pub fn of(engine: &Engine, row: &CardRow) -> Self {
        let card = StoredCardView::of(row.id, &row.face);
        let customer = CustomerView::of(customer_of(engine, row).unwrap_or_default());
        Self { card, customer, created_at: time(row.id.created_at()), deleted: row.is_deleted }
    }
}

/// Who stored a card; `None` when the personal data was erased.
pub fn customer_of(engine: &Engine, row: &CardRow) -> Option<Payer> {
    engine.keyring().open_value(SealedFor::customer(row.id), &row.customer)
}
