//! Which partition a request needs, by its route: found before the request is authenticated, so it
//! is a supposition that only leads to the process that checks it.

use axum::extract::{FromRequestParts, MatchedPath, RawPathParams};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use ledger::id::{GroupNumber, IdKey, ObjectId};
use store::Partition;

use super::Owners;
use web::api_key::ApiKeyText;
use web::credential::api_key;
use web::idempotency::OPENING_ROUTE;
use web::openapi::Listener;

/// What a request needs to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// No partition: any process answers.
    Any,
    /// The partition of a group.
    Group(GroupNumber),
    /// The partition of the house, whose owner answers what is about all merchants.
    House,
    /// The partition of the account that is opened.
    NewAccount,
}

/// Segments of operators' routes that are followed by an object, or a ledger, of one group.
pub const OF_GROUPS: [&str; 19] = [
    "api-keys",
    "cards",
    "charges",
    "disputes",
    "endpoints",
    "entries",
    "keys",
    "ledgers",
    "merchants",
    "notes",
    "pix",
    "queue",
    "rail-items",
    "recipients",
    "refunds",
    "sub-recipients",
    "subscriptions",
    "webhooks",
    "withdrawals",
];

/// Segments that are followed by something of the house, or of all merchants. Records and blocks
/// have positions, which the owner of the house reads too.
pub const OF_THE_HOUSE: [&str; 10] = [
    "batches",
    "console",
    "erasures",
    "exports",
    "journal",
    "lists",
    "periods",
    "reconciliations",
    "records",
    "reports",
];

/// Routes of operators about the process that is asked.
const OF_THE_PROCESS: [&str; 3] = ["/ops/clock", "/ops/clock/confirm", "/ops/cluster"];

/// Files of the console, which every process has.
const ASSETS: &str = "/console/assets/";

/// Finds the target of a request.
pub async fn target(listener: Listener, parts: &mut Parts, ids: &IdKey, sandbox: bool) -> Destination {
    let Some(route) = parts.extensions.get::<MatchedPath>().cloned() else { return Destination::Any };
    match listener {
        Listener::Merchants if route.as_str().starts_with("/api/") => of_key(&parts.headers, ids, sandbox),
        Listener::Merchants => Destination::Any,
        Listener::Operators => {
            let found = RawPathParams::from_request_parts(parts, &()).await.ok();
            let named = found.as_ref().and_then(|found| found.iter().next()).map(|(_, named)| named);
            of_route(route.as_str(), &parts.method, named, ids)
        }
    }
}

/// The merchant whose API key the headers seem to have. A request without one is refused anywhere.
fn of_key(headers: &HeaderMap, ids: &IdKey, sandbox: bool) -> Destination {
    let key = api_key(headers).ok().and_then(|text| ApiKeyText::id(sandbox, text));
    key.map_or(Destination::Any, |key| Destination::Group(ids.group(key)))
}

/// By a route of operators, and what its path names first.
fn of_route(route: &str, method: &Method, named: Option<&str>, ids: &IdKey) -> Destination {
    if before_name(route).is_some_and(|segment| OF_GROUPS.contains(&segment)) {
        // What names nothing is answered as such by the owner of the house.
        let named = named.and_then(|named| ObjectId::parse(without_kind(named)));
        return named.map_or(Destination::House, |id| Destination::Group(ids.group(id)));
    }
    if *method == Method::POST && route == OPENING_ROUTE {
        return Destination::NewAccount;
    }
    // What names a merchant in the query or the body is about all of them.
    let is_of_operators = route == "/console" || route.starts_with("/console/") || route.starts_with("/ops/");
    let is_anywhere = OF_THE_PROCESS.contains(&route) || route.starts_with(ASSETS);
    if is_of_operators && !is_anywhere { Destination::House } else { Destination::Any }
}

/// The segment of a route before the first name in it.
pub fn before_name(route: &str) -> Option<&str> {
    route.split_once("/{").and_then(|(before, _)| before.rsplit('/').next())
}

/// The id in the name of a ledger, such as `M-` and the merchant's id.
fn without_kind(named: &str) -> &str {
    ["M-", "R-", "P-"].iter().find_map(|kind| named.strip_prefix(kind)).unwrap_or(named)
}

impl Destination {
    /// The partition; `None` if any process answers.
    pub fn partition(self, owners: &dyn Owners, headers: &HeaderMap) -> Option<Partition> {
        match self {
            Destination::Any => None,
            Destination::Group(group) => Some(owners.partition_of(group)),
            Destination::House => Some(owners.house()),
            Destination::NewAccount => {
                let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
                Some(owners.partition_for_new(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use ledger::time::Timestamp;

    use super::*;

    #[test]
    fn an_id_or_a_ledger_in_the_path_names_its_group() {
        let ids = IdKey::new([7; 16]);
        let id = ids.object(GroupNumber(41), Timestamp(1_795_000_000_000), 3);
        let group = Destination::Group(GroupNumber(41));
        for (route, named, target) in [
            ("/ops/charges/{txid}", id.txid(), group),
            ("/ops/merchants/{id}", id.uuid().to_string(), group),
            ("/ops/ledgers/{id}/entries", format!("P-{}", id.uuid()), group),
            ("/ops/ledgers/{id}/entries", "P-house".to_owned(), Destination::House),
            ("/ops/merchants/{id}", "nothing".to_owned(), Destination::House),
            ("/ops/exports/{id}", id.uuid().to_string(), Destination::House),
            ("/ops/reconciliations/{id}", id.uuid().to_string(), Destination::House),
            ("/console/periods/{period}", "2026-07".to_owned(), Destination::House),
            ("/console/assets/{name}", "console.css".to_owned(), Destination::Any),
        ] {
            assert_eq!(of_route(route, &Method::GET, Some(&named), &ids), target, "{route} {named}");
        }
        assert_eq!(of_route("/ops/merchants", &Method::POST, None, &ids), Destination::NewAccount);
        for (route, target) in [
            ("/ops/merchants", Destination::House),
            ("/console", Destination::House),
            ("/console/{*unknown}", Destination::House),
            ("/ops/clock/confirm", Destination::Any),
            ("/healthz", Destination::Any),
        ] {
            assert_eq!(of_route(route, &Method::GET, None, &ids), target, "{route}");
        }
    }

    #[test]
    fn a_key_names_the_group_of_its_merchant_and_what_is_none_is_answered_anywhere() {
        let ids = IdKey::new([7; 16]);
        let id = ids.object(GroupNumber(41), Timestamp(1_795_000_000_000), 3);
        for (text, target) in [
            (ApiKeyText::of(true, id, [9; 24]), Destination::Group(GroupNumber(41))),
            (ApiKeyText::of(false, id, [9; 24]), Destination::Any),
            ("test_nothing".to_owned(), Destination::Any),
        ] {
            let headers = HeaderMap::from_iter([(
                axum::http::header::AUTHORIZATION,
                HeaderValue::from_str(&format!("Bearer {text}")).unwrap(),
            )]);
            assert_eq!(of_key(&headers, &ids, true), target, "{text}");
        }
        assert_eq!(of_key(&HeaderMap::new(), &ids, true), Destination::Any);
    }
}
