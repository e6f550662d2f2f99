//! Route table, on one page. The same lines define the served routes and the OpenAPI description.
//!
//! To add a route, give its handler a `#[utoipa::path(method, path = "…", operation_id = "…", …)]`
//! and add one line `.routes(routes!(module::handler))` to the group it belongs to. Method and path
//! stand only at the handler. [`web::openapi`] adds the parts that all routes share:
//! credentials, headers, the problems that any request can meet.

use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Extension, Router};
use serde_json::Value;
use utoipa::openapi::PathItem;
use utoipa::openapi::tag::TagBuilder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::app::App;
use crate::api::authenticate::authenticate;
use crate::api::{
    anticipation, balance, batch, card, cashout, charges, disputes, events, fiscal_documents, keys, pix, plans,
    qr_code, quote, refunds, reports, scopes, stored_cards, sub_recipients, subscriptions, withdrawals,
};
use console::Console;
use nodes::work_requests;
use ops::desk::Desk;
use ops::{
    api_keys, audit, backup, batches, blocks, books, cards, charges as all_charges, chart, checkpoint, clock, closing,
    cluster, disputes as disputes_review, entries, erasures, explanations, export_jobs, export_stream, health, holds,
    item_details, lists, merchants, notes, other_nodes, overview, people, periods, preview, queue, rail_items,
    recipients as all_recipients, reconciliations, records, refunds as refunds_review, reports as made_reports,
    sandbox, search, sub_recipients as review, subscriptions as all_subscriptions, webhooks, withdrawals as outflow,
};
use web::blocking_reads::on_waiting_thread;
use web::guards::rate_limit::Policy;
use web::openapi::{self, Listener};
use web::outgoing::OneCopy;
use web::reference;
use web::reply::QueryNames;

type Routes = OpenApiRouter<Arc<App>>;
type OperatorRoutes = OpenApiRouter<Arc<Desk>>;

/// The routes that take a card's number, which have a limit of their own.
fn cards() -> Routes {
    Routes::new()
        .merge(tagged("Charges", "Card and PIX charges.", Routes::new().routes(routes!(card::charge))))
        .merge(tagged(RECURRENCY.0, RECURRENCY.1, Routes::new().routes(routes!(stored_cards::store))))
}

/// Heading of plans and subscriptions, and its text.
const RECURRENCY: (&str, &str) = ("Plans and subscriptions", "Plans, subscriptions and stored cards.");

/// Plans, subscriptions and stored cards, without the route that takes a card's number.
fn recurrency() -> Routes {
    Routes::new()
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(subscriptions::get, subscriptions::change))
        .routes(routes!(subscriptions::charges))
        .routes(routes!(stored_cards::list))
        .routes(routes!(stored_cards::get, stored_cards::delete))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(plans::create, plans::list))
        .routes(routes!(plans::get, plans::disable))
        .routes(routes!(subscriptions::cancel))
        .routes(routes!(subscriptions::pause))
        .routes(routes!(subscriptions::resume))
}

/// The other routes of merchants.
fn for_merchants(in_sandbox: bool) -> Routes {
    let charges = Routes::new()
        .routes(routes!(charges::list))
        .routes(routes!(charges::get))
        .routes(routes!(qr_code::get))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(charges::change))
        .routes(routes!(fiscal_documents::link))
        .routes(routes!(fiscal_documents::unlink))
        .routes(routes!(pix::create_or_look_up))
        .routes(routes!(batch::charge))
        .routes(routes!(quote::quote))
        .routes(routes!(charges::cancel));
    let recipients = Routes::new()
        .routes(routes!(sub_recipients::splits))
        .routes(routes!(withdrawals::withdraw, withdrawals::list))
        .routes(routes!(withdrawals::cancel))
        .routes(routes!(anticipation::list, anticipation::anticipate))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(sub_recipients::register))
        .routes(routes!(sub_recipients::get, sub_recipients::change))
        .routes(routes!(sub_recipients::list))
        .routes(routes!(anticipation::simulate));
    let cashouts = Routes::new()
        .routes(routes!(cashout::create, cashout::list))
        .routes(routes!(cashout::get, cashout::change))
        .route_layer(from_fn(on_waiting_thread));
    let refunds = Routes::new()
        .routes(routes!(refunds::request, refunds::list))
        .routes(routes!(refunds::get, refunds::change))
        .routes(routes!(disputes::list))
        .route_layer(from_fn(on_waiting_thread));
    let events = Routes::new()
        .routes(routes!(events::list))
        .routes(routes!(events::get))
        .routes(routes!(events::tries))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(events::test))
        .routes(routes!(events::redeliver));
    let keys = Routes::new()
        .routes(routes!(keys::list, keys::create))
        .routes(routes!(keys::revoke, keys::change))
        .routes(routes!(keys::rotate_secret));
    let balance = Routes::new()
        .routes(routes!(balance::list_operations))
        .routes(routes!(reports::ledger_report))
        .routes(routes!(reports::get))
        .routes(routes!(reports::download_file))
        .routes(routes!(reports::get_manifest))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(reports::create))
        .routes(routes!(balance::get));
    let sandbox = Routes::new().routes(routes!(pix::sandbox_pay));

    let table = Routes::new()
        .merge(tagged("Charges", "Card and PIX charges.", charges))
        .merge(tagged(
            "Sub-recipients",
            "Recipients of splits, their statements, withdrawals and anticipations.",
            recipients,
        ))
        .merge(tagged("Cashouts", "Transfers of a merchant's balance to a PIX key.", cashouts))
        .merge(tagged("Refunds", "Refunds and disputes.", refunds))
        .merge(tagged("Events", "Webhook events and their delivery.", events))
        .merge(tagged("API keys", "The account's own API keys, with what each may do.", keys))
        .merge(tagged(RECURRENCY.0, RECURRENCY.1, recurrency()))
        .merge(tagged("Balance", "The account's balance and the lines of its statement.", balance));
    if in_sandbox { table.merge(tagged("Sandbox", "What only a sandbox serves.", sandbox)) } else { table }
}

/// The books, as operators read and close them.
fn books_of_operators() -> OperatorRoutes {
    OperatorRoutes::new()
        .routes(routes!(overview::get))
        .routes(routes!(books::trial_balance))
        .routes(routes!(books::accounts))
        .routes(routes!(books::entries))
        .routes(routes!(checkpoint::get))
        .routes(routes!(periods::list))
        .routes(routes!(periods::get))
        .routes(routes!(periods::close))
        .routes(routes!(batches::list, batches::book))
        .routes(routes!(batches::reject))
        .routes(routes!(reconciliations::reconcile, reconciliations::list))
        .routes(routes!(reconciliations::get))
        .routes(routes!(reconciliations::dismiss))
        .routes(routes!(explanations::explain))
        .routes(routes!(records::list))
        .routes(routes!(records::record))
        .routes(routes!(blocks::get))
        .routes(routes!(export_stream::export))
        .routes(routes!(chart::get, chart::set))
        .routes(routes!(export_jobs::create, export_jobs::list))
        .routes(routes!(export_jobs::get))
        .routes(routes!(export_jobs::file))
        .routes(routes!(export_jobs::get_manifest))
        .routes(routes!(made_reports::report))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::last))
        .route_layer(from_fn(on_waiting_thread))
}

/// Routes of the queue, of decisions and of the audit trail.
fn decisions_of_operators() -> OperatorRoutes {
    OperatorRoutes::new()
        .routes(routes!(queue::get))
        .routes(routes!(item_details::get))
        .routes(routes!(preview::preview))
        .routes(routes!(preview::preview_dispute))
        .routes(routes!(audit::list))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(review::approve))
        .routes(routes!(review::reject))
        .routes(routes!(holds::freeze))
        .routes(routes!(holds::unfreeze))
        .routes(routes!(outflow::ask))
        .routes(routes!(outflow::approve))
        .routes(routes!(outflow::reject))
        .routes(routes!(refunds_review::approve))
        .routes(routes!(refunds_review::reject))
        .routes(routes!(refunds_review::start))
        .routes(routes!(disputes_review::open))
        .routes(routes!(disputes_review::accept))
        .routes(routes!(disputes_review::release))
        .routes(routes!(disputes_review::reverse))
        .routes(routes!(rail_items::settle))
        .routes(routes!(entries::request))
        .routes(routes!(entries::get))
        .routes(routes!(entries::approve))
        .routes(routes!(entries::reject))
}

/// Routes of operators.
fn for_operators(in_sandbox: bool) -> OperatorRoutes {
    let merchants = OperatorRoutes::new()
        .routes(routes!(merchants::create, merchants::list))
        .routes(routes!(merchants::get, merchants::change))
        .routes(routes!(holds::suspend))
        .routes(routes!(holds::resume))
        .routes(routes!(holds::hold_payouts))
        .routes(routes!(holds::release_payouts))
        .routes(routes!(closing::close))
        .routes(routes!(holds::reopen))
        .routes(routes!(closing::list))
        .routes(routes!(api_keys::create, api_keys::list))
        .routes(routes!(api_keys::revoke, api_keys::change))
        .routes(routes!(api_keys::rotate_secret));
    let decisions = decisions_of_operators();
    let books = books_of_operators();
    let health = OperatorRoutes::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(cluster::get))
        .routes(routes!(clock::get))
        .routes(routes!(clock::confirm));
    let webhooks = OperatorRoutes::new()
        .routes(routes!(webhooks::list))
        .routes(routes!(webhooks::tries))
        .routes(routes!(webhooks::event))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(webhooks::test))
        .routes(routes!(webhooks::redeliver))
        .routes(routes!(webhooks::redeliver_given_up));
    let money = OperatorRoutes::new()
        .routes(routes!(all_charges::get))
        .routes(routes!(all_recipients::get))
        .routes(routes!(all_subscriptions::get))
        .routes(routes!(cards::get, cards::delete))
        .routes(routes!(lists::get))
        .routes(routes!(search::get))
        .routes(routes!(notes::write, notes::list))
        .routes(routes!(erasures::list, erasures::erase))
        .routes(routes!(erasures::cancel))
        .route_layer(from_fn(on_waiting_thread))
        .routes(routes!(all_recipients::reveal))
        .routes(routes!(people::look_up));
    let sandbox = OperatorRoutes::new().routes(routes!(sandbox::advance_clock)).routes(routes!(sandbox::pay_pix));

    let table = OperatorRoutes::new()
        .merge(tagged("Merchants", "Merchants and their API keys.", merchants))
        .merge(tagged(
            "Decisions",
            "The queue of what waits for an operator, decisions, and the audit trail.",
            decisions,
        ))
        .merge(tagged("Charges and recipients", "Charges and recipients of all merchants.", money))
        .merge(tagged("Books", "Ledgers, trial balance, exports and backups.", books))
        .merge(tagged("Webhooks", "Endpoints with events that wait or were given up, and their tries.", webhooks))
        .merge(tagged("Health", "Health, metrics and nodes; health and metrics need no credential.", health));
    if in_sandbox { table.merge(tagged("Sandbox", "What only a sandbox serves.", sandbox)) } else { table }
}

/// The names in the queries of a listener, and the routes that serve its description.
type Described = (Arc<QueryNames>, Router);

/// Of a live server, and of a sandbox. It takes most of a start: servers of one process share it.
type Kinds = [OnceLock<Described>; 2];

/// The merchants' listener: their routes, and their description for programs and for people.
pub fn public(app: &Arc<App>) -> Router {
    static DESCRIBED: Kinds = [const { OnceLock::new() }; 2];
    let limited = |routes: Routes, policy| {
        Router::from(routes).route_layer(from_fn_with_state((Arc::clone(app), policy), authenticate))
    };
    let (names, description) = DESCRIBED[usize::from(app.sandbox)].get_or_init(|| {
        let mut collected = cards().into_openapi();
        collected.merge(for_merchants(app.sandbox).into_openapi());
        let mut document = openapi::complete(collected, Listener::Merchants);
        scopes::describe(&mut document);
        (Arc::new(openapi::query_names(&document)), described(&document))
    });
    limited(cards(), Policy::Card)
        .merge(limited(for_merchants(app.sandbox), Policy::Default))
        .with_state(Arc::clone(app))
        .layer(Extension(Arc::clone(names)))
        .merge(description.clone())
        .route("/", get(|| async { reference::index() }))
}

/// The operators' listener: their routes, their description, and the console.
pub fn operations(console: &Console) -> Router {
    static DESCRIBED: Kinds = [const { OnceLock::new() }; 2];
    let desk = &console.desk;
    let (names, description) = DESCRIBED[usize::from(desk.sandbox)].get_or_init(|| {
        let document = openapi::complete(for_operators(desk.sandbox).into_openapi(), Listener::Operators);
        let mut names = openapi::query_names(&document);
        // Each list takes some of them, and refuses the others by itself.
        names.remove(&(Method::GET, "/ops/lists/{name}".to_owned()));
        (Arc::new(names), described(&document))
    });
    Router::from(for_operators(desk.sandbox))
        .with_state(Arc::clone(desk))
        .layer(Extension(Arc::clone(names)))
        .merge(console::routes::all(console))
        .merge(description.clone())
}

/// What only the other nodes ask, beside the routes of both listeners.
pub fn peers(desk: &Arc<Desk>) -> Router {
    work_requests::routes(Arc::clone(&desk.engine)).merge(other_nodes::routes(desk))
}

/// The routes that describe a listener.
fn described(document: &Value) -> Router {
    let mut routes = Router::new()
        .route("/problems/{code}", get(reference::problem))
        .route(reference::STYLE_PATH, get(|| async { reference::style() }))
        .route(reference::SCRIPT_PATH, get(|| async { reference::script() }));
    for (path, page) in reference::pages(document) {
        let page = Bytes::from(page);
        routes = routes.route(&path, get(move || async { (Extension(OneCopy), reference::page(page)) }));
    }
    let for_programs = Bytes::from(document.to_string());
    routes.route(
        "/openapi.json",
        get(move || async { (Extension(OneCopy), [(CONTENT_TYPE, "application/json")], for_programs) }),
    )
}

/// These routes under one heading of the description.
fn tagged<S: Clone + Send + Sync + 'static>(
    heading: &str,
    description: &str,
    mut routes: OpenApiRouter<S>,
) -> OpenApiRouter<S> {
    let tag = TagBuilder::new().name(heading).description(Some(description)).build();
    routes.get_openapi_mut().tags = Some(vec![tag]);
    for item in routes.get_openapi_mut().paths.paths.values_mut() {
        let PathItem { get, put, post, delete, patch, .. } = item;
        for operation in [get, put, post, delete, patch].into_iter().flatten() {
            operation.tags = Some(vec![heading.to_owned()]);
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use ledger::scope::Scope;
    use nodes::request_partition::{OF_GROUPS, OF_THE_HOUSE, before_name};

    /// A new route of merchants that changes something needs a scope, or a key that reads could use
    /// it.
    #[test]
    fn every_change_of_a_merchant_has_its_scope() {
        let mut described = cards().into_openapi();
        described.merge(for_merchants(true).into_openapi());
        let of_path = |(path, item): (&String, &PathItem)| {
            let PathItem { put, post, delete, patch, .. } = item;
            let changes = [("PUT", put), ("POST", post), ("DELETE", delete), ("PATCH", patch)];
            changes.map(|(method, operation)| operation.as_ref().map(|_| format!("{method} {path}")))
        };
        let served: BTreeSet<_> = described.paths.paths.iter().flat_map(of_path).flatten().collect();
        let listed: BTreeSet<_> = scopes::CHANGES.iter().map(|(route, _)| (*route).to_owned()).collect();
        assert_eq!(listed, served);
        assert_eq!(listed.len(), scopes::CHANGES.len(), "each once");
        // Both pages about keys list the routes of each scope.
        for page in [include_str!("../../docs/guide/keys.md"), include_str!("../../docs/pt-br/guia/chaves.md")] {
            for (route, scope) in scopes::CHANGES.iter().filter(|(route, _)| !route.contains("/sandbox/")) {
                let of_scope = |line: &&str| line.starts_with(&format!("| `{}` |", scope.map_or("", Scope::name)));
                let has_it = page.lines().find(of_scope).is_some_and(|line| line.contains(&format!("`{route}`")));
                assert_eq!(has_it, scope.is_some(), "{route}");
            }
        }
    }

    /// What a route of operators names must be of a group or of the house, so that the right
    /// process answers where there are several.
    #[test]
    fn every_route_of_operators_has_an_owner() {
        let described = for_operators(true).into_openapi();
        let in_console = include_str!("../../crates/console/src/routes.rs").split(".route(\"").skip(1);
        let in_console = in_console.filter_map(|text| text.split('"').next()).map(str::to_owned);
        let all: BTreeSet<String> = described.paths.paths.keys().cloned().chain(in_console).collect();
        assert!(all.len() > 80, "{all:?}");
        let named: BTreeSet<_> = all.iter().filter_map(|route| before_name(route)).collect();
        let known = OF_GROUPS.into_iter().chain(OF_THE_HOUSE).chain(["assets"]);
        assert_eq!(known.collect::<BTreeSet<_>>(), named);
        assert!(OF_GROUPS.iter().all(|segment| !OF_THE_HOUSE.contains(segment)), "each once");
    }
}
