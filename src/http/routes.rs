//! The route table, on one page.

use std::sync::{Arc, LazyLock};

use axum::routing::{delete, get, post};
use axum::{Json, Router};
use utoipa::OpenApi;

use super::app::App;
use super::ops::{api_keys, backup, books, health, merchants, sandbox, sub_recipients as review};
use super::{balance, card, cards, charges, pix, plans, statement, sub_recipients, subscriptions};

static DOCUMENT: LazyLock<utoipa::openapi::OpenApi> = LazyLock::new(Document::openapi);

/// What merchants call.
pub fn public(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/api/card", post(card::charge))
        .route("/api/pix", post(pix::create_or_look_up))
        .route("/api/charges", get(charges::list))
        .route("/api/charges/{txid}", get(charges::get))
        .route("/api/charges/{txid}/cancel", post(charges::cancel))
        .route("/api/sub-recipients", post(sub_recipients::register))
        .route("/api/dashboard/sub-recipients", get(sub_recipients::list))
        .route("/api/dashboard/sub-recipients/{id}/splits", get(statement::splits))
        .route("/api/cards", post(cards::store))
        .route("/api/recurrency/plans", post(plans::create).get(plans::list))
        .route("/api/recurrency/plans/{id}", get(plans::get).delete(plans::disable))
        .route("/api/recurrency/subscriptions", post(subscriptions::create).get(subscriptions::list))
        .route("/api/recurrency/subscriptions/{id}", get(subscriptions::get))
        .route("/api/recurrency/subscriptions/{id}/cancel", post(subscriptions::cancel))
        .route("/api/recurrency/subscriptions/{id}/pause", post(subscriptions::pause))
        .route("/api/recurrency/subscriptions/{id}/resume", post(subscriptions::resume))
        .route("/api/recurrency/subscriptions/{id}/charges", get(subscriptions::charges))
        .route("/api/balance", get(balance::get))
        .route("/api/balance/operations", get(balance::list_operations))
        .route("/openapi.json", get(|| async { Json(&*DOCUMENT) }));
    if app.sandbox {
        router = router.route("/api/sandbox/pix/{txid}/pay", post(pix::sandbox_pay));
    }
    router.with_state(Arc::clone(app))
}

/// What operators call.
pub fn operations(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/ops/merchants", post(merchants::create))
        .route("/ops/merchants/{id}", get(merchants::get).patch(merchants::change))
        .route("/ops/merchants/{id}/api-keys", post(api_keys::create))
        .route("/ops/api-keys/{id}", delete(api_keys::revoke))
        .route("/ops/sub-recipients/{id}/approve", post(review::approve))
        .route("/ops/sub-recipients/{id}/reject", post(review::reject))
        .route("/ops/trial-balance", get(books::trial_balance))
        .route("/ops/ledgers/{id}/accounts", get(books::accounts))
        .route("/ops/ledgers/{id}/entries", get(books::entries))
        .route("/ops/backup", get(backup::backup))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics));
    if app.sandbox {
        router = router.route("/ops/sandbox/clock", post(sandbox::advance_clock));
    }
    router.with_state(Arc::clone(app))
}

/// The description of both listeners (OpenAPI 3.1).
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Centavo",
        description = "Merchant payments over a double-entry ledger. Amounts are integer centavos."
    ),
    paths(
        card::charge,
        pix::create_or_look_up,
        pix::sandbox_pay,
        charges::get,
        charges::list,
        charges::cancel,
        sub_recipients::register,
        sub_recipients::list,
        statement::splits,
        cards::store,
        plans::create,
        plans::list,
        plans::get,
        plans::disable,
        subscriptions::create,
        subscriptions::list,
        subscriptions::get,
        subscriptions::cancel,
        subscriptions::pause,
        subscriptions::resume,
        subscriptions::charges,
        balance::get,
        balance::list_operations,
        merchants::create,
        merchants::get,
        merchants::change,
        api_keys::create,
        api_keys::revoke,
        review::approve,
        review::reject,
        books::trial_balance,
        books::accounts,
        books::entries,
        backup::backup,
        sandbox::advance_clock,
        health::healthz,
        health::readyz,
        health::metrics,
    )
)]
pub struct Document;
