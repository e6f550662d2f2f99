//! The route table, on one page.

use std::sync::{Arc, LazyLock};

use axum::routing::{delete, get, post};
use axum::{Json, Router};
use utoipa::OpenApi;

use super::app::App;
use super::ops::{api_keys, backup, books, health, merchants, sandbox, sub_recipients as review};
use super::{balance, card, charges, events, pix, statement, sub_recipients};

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
        .route("/api/balance", get(balance::get))
        .route("/api/balance/operations", get(balance::list_operations))
        .route("/api/events", get(events::list))
        .route("/api/events/{id}", get(events::get))
        .route("/api/events/{id}/redeliver", post(events::redeliver))
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
        .route("/ops/api-keys/{id}", delete(api_keys::revoke).patch(api_keys::change))
        .route("/ops/api-keys/{id}/rotate-secret", post(api_keys::rotate_secret))
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
        balance::get,
        balance::list_operations,
        events::list,
        events::get,
        events::redeliver,
        merchants::create,
        merchants::get,
        merchants::change,
        api_keys::create,
        api_keys::revoke,
        api_keys::change,
        api_keys::rotate_secret,
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
