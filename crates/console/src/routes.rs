//! Route table of the console, on one page, and the headers that all its answers have.
//!
//! Everything but the sign-in and the assets needs a session. Handlers that show take a
//! [`Visit`](super::page::Visit). Handlers that change something take a
//! [`PostedForm`](super::sent_form::PostedForm), which also checks where the form came from.

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};

use crate::page::screen;
use crate::refused_form::show_again;
use crate::{
    Console, assets, audit, books, charge, dispute, endpoint, exports, find, health, holds, house, item, keys, lists,
    many_decisions, merchants, notes, overview, page, people, periods, queue, recipients, reconciliations, recurrence,
    refund, registration, reports, sandbox, settings, sign_in, trial_balance, webhooks,
};
use web::blocking_reads::on_waiting_thread;

/// Routes of personal data, of notes, and of what is rejected or deleted.
fn of_personal_data() -> Router<Console> {
    Router::new()
        .route("/console/people", get(people::show))
        .route("/console/people/person", post(people::look_up))
        .route("/console/people/erase", post(people::erase))
        .route("/console/house/batches/{id}/reject", post(house::reject_batches))
        .route("/console/notes/{id}", post(notes::write))
        .route("/console/cards/{id}", screen(recurrence::card))
        .route("/console/cards/{id}/delete", post(people::delete_card))
        .route("/console/subscriptions/{id}", screen(recurrence::subscription))
}

/// Refunds, disputes and payments that operators ask for.
fn of_money() -> Router<Console> {
    Router::new()
        .route("/console/charges/{txid}/refunds", post(refund::start))
        .route("/console/charges/{txid}/dispute", screen(dispute::confirm).post(dispute::open))
        .route("/console/queue/{id}/reverse", post(dispute::reverse))
        .route("/console/recipients/{id}/withdraw", post(holds::withdraw))
        .route("/console/merchants/{id}/open-items", screen(holds::open_items).post(holds::close_merchant))
}

/// The console's routes.
pub fn all(console: &Console) -> Router {
    let screens = of_personal_data()
        .merge(of_money())
        .route("/console", get(overview::show))
        .route("/console/find", get(find::find))
        .route("/console/charges", get(lists::charges))
        .route("/console/charges/{txid}", screen(charge::show))
        .route("/console/records/{sequence}", screen(books::record))
        .route("/console/ledgers/{name}", screen(books::ledger))
        .route("/console/trial-balance", get(trial_balance::show))
        .route("/console/periods", screen(periods::list))
        .route("/console/periods/{period}", screen(periods::one).post(periods::close))
        .route("/console/house", screen(house::show).post(house::ask))
        .route("/console/house/batches", post(house::book_batches))
        .route("/console/journal", screen(books::journal))
        .route("/console/merchants", get(merchants::list).post(keys::open_merchant))
        .route("/console/merchants/new", get(keys::new_merchant))
        .route("/console/merchants/{id}/keys", post(keys::create))
        .route("/console/merchants/{id}/change", screen(settings::form).post(settings::change))
        .route("/console/keys/{id}", screen(endpoint::show))
        .route("/console/keys/{id}/address", post(endpoint::set_address))
        .route("/console/keys/{id}/rotate", post(endpoint::rotate))
        .route("/console/keys/{id}/test", post(endpoint::test))
        .route("/console/keys/{id}/redeliver", post(endpoint::send_all_again))
        .route("/console/keys/{id}/revoke", post(keys::revoke))
        .route("/console/merchants/{id}", screen(merchants::one))
        .route("/console/merchants/{id}/holds", post(holds::change_merchant))
        .route("/console/merchants/{id}/events", screen(webhooks::events))
        .route("/console/recipients/{id}", screen(recipients::show))
        .route("/console/recipients/{id}/freeze", post(holds::change_recipient))
        .route("/console/recipients/{id}/reveal", post(registration::reveal))
        .route("/console/queue", screen(queue::list))
        .route("/console/queue/many", screen(many_decisions::confirm).post(many_decisions::decide))
        .route("/console/queue/{id}", screen(item::show).post(queue::decide))
        .route("/console/queue/{id}/settle", post(queue::settle))
        .route("/console/webhooks", screen(webhooks::list))
        .route("/console/webhooks/{id}", screen(webhooks::event))
        .route("/console/webhooks/{id}/redeliver", post(webhooks::send_again))
        .route("/console/health", screen(health::show))
        .route("/console/reconciliations", screen(reconciliations::list).post(reconciliations::compare))
        .route("/console/reconciliations/{id}", get(reconciliations::one))
        .route("/console/reconciliations/{id}/dismiss", post(reconciliations::dismiss))
        .route("/console/reconciliations/{id}/explain", post(reconciliations::explain))
        .route("/console/reports", screen(reports::show))
        .route("/console/reports/file", get(reports::file))
        .route("/console/exports", get(exports::show).post(exports::ask))
        .route("/console/exports/{id}/file", get(exports::job_file))
        .route("/console/exports/chart", post(exports::set_chart))
        .route("/console/exports/file", get(exports::file))
        .route("/console/lists/{name}", get(lists::show))
        .route("/console/audit", get(audit::list))
        .route("/console/sandbox", screen(sandbox::form).post(sandbox::advance))
        .route("/console/sandbox/pix", post(sandbox::pay))
        .route_layer(from_fn(on_waiting_thread));
    let pages = screens.clone().with_state(console.clone());
    let screens = screens.route_layer(from_fn_with_state(pages, show_again));
    let sessions = Router::new()
        .route("/console/sign-in", get(sign_in::form).post(sign_in::sign_in))
        .route("/console/sign-out", post(sign_in::sign_out))
        .route("/console/assets/{name}", get(assets::asset))
        .route("/console/{*unknown}", get(page::unknown));
    screens
        .merge(sessions)
        .route("/", get(|| async { Redirect::to("/console") }))
        .route_layer(from_fn(guarded))
        .with_state(console.clone())
}

/// Nothing but our own style, script and pictures is loaded, nothing else runs, no other site
/// frames a page or gets a form. The referrer goes to this site only: without one, browsers send a
/// form's origin as `null`, which is refused.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

async fn guarded(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in
        [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "same-origin"), (OPENER_POLICY, "same-origin")]
    {
        // A report to print has a policy of its own.
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}
