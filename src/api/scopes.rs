//! Scopes of the merchants' routes: which rights an API key needs for each. Every GET needs `read`;
//! the routes that change or send something are in one table. No scope includes another.

use axum::extract::{MatchedPath, Request};
use axum::http::Method;
use ledger::Scopes;
use ledger::scope::Scope::{self, Charges, Payouts, Read, Recipients};
use serde_json::Value;
use strum::VariantArray;

use web::{Code, Problem, Result};

/// The routes beside GET, each with its scope; `None` where every key may ask and the merchant's
/// actor decides.
pub const CHANGES: &[(&str, Option<Scope>)] = &[
    ("POST /api/card", Some(Charges)),
    ("POST /api/cards", Some(Charges)),
    ("DELETE /api/cards/{token}", Some(Charges)),
    ("POST /api/pix", Some(Charges)),
    ("POST /api/charges/batch", Some(Charges)),
    ("POST /api/charges/quote", Some(Charges)),
    ("PATCH /api/charges/{txid}", Some(Charges)),
    ("POST /api/charges/{txid}/cancel", Some(Charges)),
    ("POST /api/charges/{txid}/fiscal-documents", Some(Charges)),
    ("DELETE /api/charges/{txid}/fiscal-documents/{key}", Some(Charges)),
    ("POST /api/refunds", Some(Charges)),
    ("PATCH /api/refunds/{id}", Some(Charges)),
    ("POST /api/sandbox/pix/{txid}/pay", Some(Charges)),
    ("POST /api/recurrency/plans", Some(Charges)),
    ("DELETE /api/recurrency/plans/{id}", Some(Charges)),
    ("POST /api/recurrency/subscriptions", Some(Charges)),
    ("PATCH /api/recurrency/subscriptions/{id}", Some(Charges)),
    ("POST /api/recurrency/subscriptions/{id}/cancel", Some(Charges)),
    ("POST /api/recurrency/subscriptions/{id}/pause", Some(Charges)),
    ("POST /api/recurrency/subscriptions/{id}/resume", Some(Charges)),
    ("POST /api/cashout", Some(Payouts)),
    ("PATCH /api/cashout/{id}", Some(Payouts)),
    ("POST /api/dashboard/sub-recipients/{id}/withdraw", Some(Payouts)),
    ("POST /api/dashboard/withdraw/{id}/cancel", Some(Payouts)),
    ("POST /api/dashboard/sub-recipients/{id}/anticipate", Some(Payouts)),
    ("POST /api/dashboard/sub-recipients/{id}/anticipate/simulate", Some(Payouts)),
    ("POST /api/sub-recipients", Some(Recipients)),
    ("PATCH /api/sub-recipients/{id}", Some(Recipients)),
    ("POST /api/events/{id}/redeliver", Some(Read)),
    ("POST /api/reports", Some(Read)),
    ("POST /api/webhooks/test", Some(Read)),
    ("PATCH /api/keys/{id}", Some(Read)),
    ("POST /api/keys/{id}/rotate-secret", Some(Read)),
    ("POST /api/keys", None),
    ("DELETE /api/keys/{id}", None),
];

/// Refuses a request whose key lacks the scope of its route: 403 `insufficient_scope` with the
/// `scope` that it needs. Only keys with less than all scopes look the route up.
pub fn require(scopes: Scopes, request: &Request) -> Result<()> {
    if scopes.are_all() {
        return Ok(());
    }
    let path = request.extensions().get().map_or("", MatchedPath::as_str);
    let missing = needed(request.method(), path).iter().find(|scope| !scopes.has(**scope));
    missing.map_or(Ok(()), |scope| Err(lacking(*scope)))
}

/// The scopes that a route needs: all of them where the table does not name it.
fn needed(method: &Method, path: &str) -> &'static [Scope] {
    if matches!(*method, Method::GET | Method::HEAD) {
        return &[Read];
    }
    let route = format!("{method} {path}");
    let row = CHANGES.iter().find(|(known, _)| *known == route);
    row.map_or(Scope::VARIANTS, |(_, scope)| scope.as_slice())
}

/// Names in the description of the interface the scope that each operation needs.
pub fn describe(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in paths.filter(|(path, _)| path.starts_with("/api/")) {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap_or_default();
            if let [scope] = needed(&method, path) {
                operation["x-required-scope"] = scope.name().into();
            }
        }
    }
}

/// 403 `insufficient_scope`, which names the scope.
pub fn lacking(scope: Scope) -> Problem {
    let detail = format!("The API key needs the scope {}.", scope.name());
    Problem::new(Code::InsufficientScope).detail(detail).member("scope", scope.name())
}
