//! Parameters that the pages take in their addresses, by path; others are refused.

use axum::extract::MatchedPath;
use axum::http::request::Parts;

use web::{Result, only, query};

/// Parameters that every page takes: language and scope.
const OF_ALL_PAGES: [&str; 2] = ["lang", "merchant_id"];
/// Parts of a list.
const PAGED: [&str; 2] = ["page", "per_page"];

/// The other parameters that pages take, by path.
const QUERIES: &[(&str, &[&str])] = &[
    ("/console", &[]),
    ("/console/find", &["q"]),
    ("/console/charges/{txid}", &["records", "splits"]),
    ("/console/subscriptions/{id}", &[]),
    ("/console/cards/{id}", &[]),
    ("/console/charges/{txid}/dispute", &["amount", "kind"]),
    ("/console/records/{sequence}", &["postings"]),
    ("/console/ledgers/{name}", &["page", "per_page", "accounts", "date"]),
    ("/console/trial-balance", &["page", "per_page", "account", "by", "date"]),
    ("/console/periods", &PAGED),
    ("/console/periods/{period}", &[]),
    ("/console/house", &[]),
    ("/console/journal", &["before"]),
    ("/console/merchants/new", &[]),
    ("/console/merchants/{id}/change", &[]),
    ("/console/keys/{id}", &["waiting", "given-up", "tries"]),
    ("/console/merchants/{id}", &["recipients", "keys"]),
    ("/console/merchants/{id}/events", &PAGED),
    ("/console/merchants/{id}/open-items", &[]),
    ("/console/recipients/{id}", &["splits", "page", "per_page"]),
    (
        "/console/queue",
        &["merchant", "recipient", "kind", "flag", "amount_from", "amount_to", "from", "to", "page", "per_page"],
    ),
    ("/console/queue/many", &["decision", "id"]),
    ("/console/queue/{id}", &[]),
    ("/console/webhooks", &PAGED),
    ("/console/webhooks/{id}", &["deliveries"]),
    ("/console/health", &[]),
    ("/console/reconciliations", &["page", "per_page", "month", "open", "kind"]),
    ("/console/reconciliations/{id}", &["finding", "differences", "matched", "undecided", "format"]),
    ("/console/people", &[]),
    ("/console/reports", &["report", "ledger", "account", "by", "from", "to", "tax_ids", "page", "per_page"]),
    ("/console/reports/file", &["report", "ledger", "account", "by", "from", "to", "tax_ids", "format"]),
    ("/console/exports", &["sample"]),
    ("/console/exports/{id}/file", &[]),
    ("/console/exports/file", &["ledger", "format", "from", "to", "at"]),
    ("/console/audit", &["operator", "action", "kind", "id", "from", "to", "format", "page", "per_page"]),
    ("/console/sandbox", &[]),
];

/// Refuses parameters that a page does not take: a misspelt one would show something else than was
/// asked for. Lists are not among the pages: each refuses by itself what it does not take.
pub(crate) fn known_query(parts: &Parts) -> Result<()> {
    let path = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let of_page = QUERIES.iter().find(|(known, _)| *known == path);
    of_page.map_or(Ok(()), |(_, names)| only(&query(parts)?, &[names, &OF_ALL_PAGES[..]].concat()))
}

#[cfg(test)]
mod tests {
    use super::QUERIES;

    /// A page without a line here would take any parameter.
    #[test]
    fn every_page_has_its_line() {
        let without_session = ["/console/sign-in", "/console/assets/{name}", "/console/{*unknown}"];
        let lists = ["/console/charges", "/console/lists/{name}", "/console/merchants"];
        let routes = include_str!("routes.rs")
            .split(".route(\"")
            .skip(1)
            .filter_map(|route| route.split_once("\", get(").or_else(|| route.split_once("\", screen(")));
        let pages: Vec<_> = routes.map(|(path, _)| path).filter(|path| path.starts_with("/console")).collect();
        assert!(pages.len() > 25, "{pages:?}");
        let missing = pages.iter().filter(|page| !QUERIES.iter().any(|(path, _)| path == *page));
        let missing: Vec<_> =
            missing.filter(|page| !without_session.contains(*page) && !lists.contains(*page)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
