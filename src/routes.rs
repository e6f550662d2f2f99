//! Route table, on one page. The same lines define the served routes and the OpenAPI description.
//!
//! To add a route, give its handler a `#[utoipa::path(method, path = "…", operation_id = "…", …)]`
//! and add one line `.routes(routes!(module::handler))` to the group it belongs to. Method and path
//! stand only at the handler. [`crate::http::openapi`] adds the parts that all routes share:
//! credentials, headers, the problems that any request can meet.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn;
use axum::routing::get;
use axum::{Extension, Router};
use utoipa::openapi::{OpenApi, PathItem};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::admission::Admission;
use crate::api::{
    anticipation, balance, card, cards, cashout, charges, disputes, events, pix, plans, refunds, reports, statement,
    sub_recipients, subscriptions, withdrawals,
};
use crate::app::App;
use crate::http::outgoing::OneCopy;
use crate::http::rate_limits::Policy;
use crate::http::reading::on_waiting_thread;
use crate::http::{openapi, reference};
use crate::ops::{
    api_keys, audit, backup, books, disputes as disputes_review, export, health, merchants, queue,
    refunds as refunds_review, sandbox, sub_recipients as review, webhooks, withdrawals as outflow,
};

type Routes = OpenApiRouter<Arc<App>>;

/// The card charges, which have a limit of their own.
fn cards() -> Routes {
    tagged("Charges", Routes::new().routes(routes!(card::charge)))
}

/// The other routes of merchants.
fn for_merchants(in_sandbox: bool) -> Routes {
    let charges = Routes::new()
        .routes(routes!(charges::list))
        .routes(routes!(charges::get))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(pix::create_or_look_up))
        .routes(routes!(charges::cancel));
    let recipients = Routes::new()
        .routes(routes!(statement::splits))
        .routes(routes!(withdrawals::withdraw, withdrawals::list))
        .routes(routes!(anticipation::list, anticipation::anticipate))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(sub_recipients::register))
        .routes(routes!(sub_recipients::get, sub_recipients::change))
        .routes(routes!(sub_recipients::list))
        .routes(routes!(anticipation::simulate));
    let cashouts = Routes::new()
        .routes(routes!(cashout::create, cashout::list))
        .routes(routes!(cashout::get))
        .route_layer(from_fn(on_waiting_thread));
    let refunds = Routes::new()
        .routes(routes!(refunds::request, refunds::list))
        .routes(routes!(refunds::get))
        .routes(routes!(disputes::list))
        .route_layer(from_fn(on_waiting_thread));
    let recurrency = Routes::new()
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(subscriptions::get))
        .routes(routes!(subscriptions::charges))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(cards::store))
        .routes(routes!(plans::create, plans::list))
        .routes(routes!(plans::get, plans::disable))
        .routes(routes!(subscriptions::cancel))
        .routes(routes!(subscriptions::pause))
        .routes(routes!(subscriptions::resume));
    let events = Routes::new()
        .routes(routes!(events::list))
        .routes(routes!(events::get))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(events::redeliver));
    let balance = Routes::new()
        .routes(routes!(balance::list_operations))
        .routes(routes!(reports::ledger_report))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(balance::get));
    let sandbox = Routes::new().routes(routes!(pix::sandbox_pay));

    let table = Routes::new()
        .merge(tagged("Charges", charges))
        .merge(tagged("Sub-recipients", recipients))
        .merge(tagged("Cashouts", cashouts))
        .merge(tagged("Refunds", refunds))
        .merge(tagged("Events", events))
        .merge(tagged("Plans and subscriptions", recurrency))
        .merge(tagged("Balance", balance));
    if in_sandbox { table.merge(tagged("Sandbox", sandbox)) } else { table }
}

/// Routes of operators.
fn for_operators(in_sandbox: bool) -> Routes {
    let merchants = Routes::new()
        .routes(routes!(merchants::create))
        .routes(routes!(merchants::get, merchants::change))
        .routes(routes!(api_keys::create))
        .routes(routes!(api_keys::revoke, api_keys::change))
        .routes(routes!(api_keys::rotate_secret));
    let decisions = Routes::new()
        .routes(routes!(queue::get))
        .routes(routes!(audit::list))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(review::approve))
        .routes(routes!(review::reject))
        .routes(routes!(outflow::approve))
        .routes(routes!(outflow::reject))
        .routes(routes!(refunds_review::approve))
        .routes(routes!(refunds_review::reject))
        .routes(routes!(disputes_review::open))
        .routes(routes!(disputes_review::accept))
        .routes(routes!(disputes_review::release));
    let books = Routes::new()
        .routes(routes!(books::trial_balance))
        .routes(routes!(books::accounts))
        .routes(routes!(books::entries))
        .routes(routes!(export::export))
        .routes(routes!(backup::backup))
        .route_layer(from_fn(on_waiting_thread));
    let health =
        Routes::new().routes(routes!(health::healthz)).routes(routes!(health::readyz)).routes(routes!(health::metrics));
    let webhooks = Routes::new().routes(routes!(webhooks::list));
    let sandbox = Routes::new().routes(routes!(sandbox::advance_clock));

    let table = Routes::new()
        .merge(tagged("Merchants", merchants))
        .merge(tagged("Decisions", decisions))
        .merge(tagged("Books", books))
        .merge(tagged("Webhooks", webhooks))
        .merge(tagged("Health", health));
    if in_sandbox { table.merge(tagged("Sandbox", sandbox)) } else { table }
}

/// The merchants' listener: their routes, and the description of both listeners for programs and
/// for people.
pub fn public(app: &Arc<App>) -> Router {
    let document = openapi::complete(collected(app.sandbox));
    let for_people = Bytes::from(reference::html(&document));
    let for_programs = Bytes::from(document.to_string());
    let limited = |routes: Routes, policy| Router::from(routes).route_layer(Admission { app: Arc::clone(app), policy });
    limited(cards(), Policy::Card)
        .merge(limited(for_merchants(app.sandbox), Policy::Default))
        .with_state(Arc::clone(app))
        .route(
            "/openapi.json",
            get(move || async { (Extension(OneCopy), [(CONTENT_TYPE, "application/json")], for_programs) }),
        )
        .route("/reference", get(move || async { (Extension(OneCopy), reference::page(for_people)) }))
        .route("/problems/{code}", get(reference::problem))
        .route(reference::STYLE_PATH, get(|| async { reference::style() }))
}

/// The operators' listener.
pub fn operations(app: &Arc<App>) -> Router {
    Router::from(for_operators(app.sandbox)).with_state(Arc::clone(app))
}

/// The handlers' own parts of the description, for both listeners.
fn collected(in_sandbox: bool) -> OpenApi {
    let mut collected = cards().into_openapi();
    collected.merge(for_merchants(in_sandbox).into_openapi());
    collected.merge(for_operators(in_sandbox).into_openapi());
    collected
}

/// These routes under one heading of the description.
fn tagged(heading: &str, mut routes: Routes) -> Routes {
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        let PathItem { get, put, post, delete, patch, .. } = item;
        for operation in [get, put, post, delete, patch].into_iter().flatten() {
            operation.tags = Some(vec![heading.to_owned()]);
        }
    }
    routes
}
