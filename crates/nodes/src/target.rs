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
use web::idempotency::OPENING_ROUTES;
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

/// Routes of operators whose path names an object, or a ledger, of one group. The ids of periods,
/// batches, reconciliations and exports name no group; Records and blocks have positions, which
/// the owner of the house reads too.
pub const OF_GROUPS: &[&str] = &[
    "/console/cards/{id}",
    "/console/cards/{id}/delete",
    "/console/charges/{txid}",
    "/console/charges/{txid}/dispute",
    "/console/charges/{txid}/refunds",
    "/console/keys/{id}",
    "/console/keys/{id}/address",
    "/console/keys/{id}/redeliver",
    "/console/keys/{id}/revoke",
    "/console/keys/{id}/rotate",
    "/console/keys/{id}/test",
    "/console/ledgers/{name}",
    "/console/merchants/{id}",
    "/console/merchants/{id}/change",
    "/console/merchants/{id}/events",
    "/console/merchants/{id}/holds",
    "/console/merchants/{id}/keys",
    "/console/merchants/{id}/open-items",
    "/console/queue/{id}",
    "/console/queue/{id}/reverse",
    "/console/queue/{id}/settle",
    "/console/notes/{id}",
    "/console/recipients/{id}",
    "/console/recipients/{id}/freeze",
    "/console/recipients/{id}/reveal",
    "/console/recipients/{id}/withdraw",
    "/console/subscriptions/{id}",
    "/console/webhooks/{id}",
    "/console/webhooks/{id}/redeliver",
    "/ops/api-keys/{id}",
    "/ops/api-keys/{id}/rotate-secret",
    "/ops/cards/{id}",
    "/ops/charges/{txid}",
    "/ops/charges/{txid}/disputes",
    "/ops/charges/{txid}/disputes/preview",
    "/ops/charges/{txid}/refunds",
    "/ops/disputes/{id}/accept",
    "/ops/disputes/{id}/release",
    "/ops/disputes/{id}/reverse",
    "/ops/endpoints/{id}/redeliver",
    "/ops/endpoints/{id}/test",
    "/ops/endpoints/{id}/tries",
    "/ops/entries/{id}",
    "/ops/entries/{id}/approve",
    "/ops/entries/{id}/reject",
    "/ops/ledgers/{id}/accounts",
    "/ops/ledgers/{id}/entries",
    "/ops/merchants/{id}",
    "/ops/merchants/{id}/api-keys",
    "/ops/merchants/{id}/close",
    "/ops/merchants/{id}/reopen",
    "/ops/merchants/{id}/hold-payouts",
    "/ops/merchants/{id}/open-items",
    "/ops/merchants/{id}/release-payouts",
    "/ops/merchants/{id}/resume",
    "/ops/merchants/{id}/suspend",
    "/ops/queue/{id}",
    "/ops/queue/{id}/preview",
    "/ops/rail-items/{id}/settle",
    "/ops/notes/{id}",
    "/ops/recipients/{id}",
    "/ops/recipients/{id}/reveal",
    "/ops/refunds/{id}/approve",
    "/ops/refunds/{id}/reject",
    "/ops/sandbox/pix/{txid}/pay",
    "/ops/sub-recipients/{id}/approve",
    "/ops/sub-recipients/{id}/freeze",
    "/ops/sub-recipients/{id}/reject",
    "/ops/sub-recipients/{id}/unfreeze",
    "/ops/sub-recipients/{id}/withdraw",
    "/ops/subscriptions/{id}",
    "/ops/webhooks/{id}",
    "/ops/webhooks/{id}/redeliver",
    "/ops/withdrawals/{id}/approve",
    "/ops/withdrawals/{id}/reject",
];

/// Routes of operators whose answer is about all merchants, or about the house. What names a
/// merchant in the query or the body is among them.
pub const OF_THE_HOUSE: &[&str] = &[
    "/console",
    "/console/audit",
    "/console/charges",
    "/console/exports",
    "/console/exports/chart",
    "/console/exports/file",
    "/console/exports/{id}/file",
    "/console/find",
    "/console/health",
    "/console/house",
    "/console/house/batches",
    "/console/house/batches/{id}/reject",
    "/console/journal",
    "/console/lists/{name}",
    "/console/merchants",
    "/console/merchants/new",
    "/console/people",
    "/console/people/erase",
    "/console/people/person",
    "/console/periods",
    "/console/periods/{period}",
    "/console/queue",
    "/console/queue/many",
    "/console/reconciliations",
    "/console/reconciliations/{id}",
    "/console/reconciliations/{id}/dismiss",
    "/console/reconciliations/{id}/explain",
    "/console/records/{sequence}",
    "/console/reports",
    "/console/reports/file",
    "/console/sandbox",
    "/console/sandbox/data",
    "/console/sandbox/pix",
    "/console/sign-in",
    "/console/sign-out",
    "/console/trial-balance",
    "/console/webhooks",
    "/console/{*unknown}",
    "/ops/audit",
    "/ops/backup",
    "/ops/backups/last",
    "/ops/batches",
    "/ops/batches/{id}/reject",
    "/ops/charges",
    "/ops/chart",
    "/ops/checkpoint",
    "/ops/entries",
    "/ops/erasures",
    "/ops/erasures/{through}/cancel",
    "/ops/export",
    "/ops/exports",
    "/ops/exports/{id}",
    "/ops/exports/{id}/file",
    "/ops/exports/{id}/manifest",
    "/ops/journal/{sequence}",
    "/ops/lists/{name}",
    "/ops/merchants",
    "/ops/overview",
    "/ops/people",
    "/ops/periods",
    "/ops/periods/{period}",
    "/ops/periods/{period}/close",
    "/ops/queue",
    "/ops/reconciliations",
    "/ops/reconciliations/{id}",
    "/ops/reconciliations/{id}/dismiss",
    "/ops/reconciliations/{id}/explain",
    "/ops/records",
    "/ops/records/{sequence}",
    "/ops/reports/{name}",
    "/ops/sandbox/clock",
    "/ops/sandbox/data",
    "/ops/search",
    "/ops/trial-balance",
    "/ops/webhooks",
];

/// Routes of operators about the process that is asked.
pub const OF_THE_PROCESS: &[&str] = &["/ops/clock", "/ops/clock/confirm", "/ops/cluster"];

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
    if OF_GROUPS.contains(&route) {
        // What names nothing is answered as such by the owner of the house.
        let named = named.and_then(|named| ObjectId::parse(without_kind(named)));
        return named.map_or(Destination::House, |id| Destination::Group(ids.group(id)));
    }
    if *method == Method::POST && OPENING_ROUTES.contains(&route) {
        return Destination::NewAccount;
    }
    if OF_THE_PROCESS.contains(&route) {
        return Destination::Any;
    }
    let is_about_all = route.starts_with("/ops/") || OF_THE_HOUSE.contains(&route);
    if is_about_all { Destination::House } else { Destination::Any }
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
        assert_eq!(of_route("/ops/merchants", &Method::GET, None, &ids), Destination::House);
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
