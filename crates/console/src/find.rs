//! The find box: an only hit of the search leads to its page, several are listed by kind.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use ledger::id::ObjectId;
use maud::{Markup, html};

use crate::list_table::{self, with_amount};
use crate::queue::merchant_link;
use crate::scope::Scope;
use crate::{Screen, Section, Visit, show, wire_words, words};
use ops::found_item::FoundItem;
use ops::queue;
use ops::search::{FoundGroup, SearchResult, requested_text, search};
use ops::{Desk, DeskState, ItemKind};
use web::{not_found, query};

/// Leads to the page of what is found, or lists it.
pub(crate) async fn find(State(desk): DeskState, visit: Visit, parts: Parts) -> Response {
    let nothing = || not_found().says(visit.say(words::FOUND_NOTHING));
    let text = query(&parts).and_then(|pairs| requested_text(&pairs).map_err(|_| nothing()));
    let found = match text {
        Ok(text) => search(&desk, &text).await.map(|found| (text, seen(found, visit.scope))),
        Err(problem) => Err(problem),
    };
    match found {
        Err(problem) => visit.answer(Err(problem)),
        Ok((text, SearchResult { groups })) if groups.is_empty() => {
            let body = visit.alert(&nothing());
            visit.page(StatusCode::NOT_FOUND, &Screen { section: Section::Found, title: title(&visit, &text), body })
        }
        Ok((text, found)) => match only_page(&desk, &found) {
            Some(path) => Redirect::to(&path).into_response(),
            None => visit.answer(Ok(screen(&desk, &visit, &text, &found))),
        },
    }
}

/// What of it the scope of the visit has.
fn seen(mut found: SearchResult, scope: Scope) -> SearchResult {
    if let Scope::Merchant(_, id) = scope {
        let own = id.uuid().to_string();
        for group in &mut found.groups {
            group.items.retain(|item| item.merchant_id.as_ref() == Some(&own));
            (group.total, group.at_least) = (group.items.len(), group.more);
        }
        found.groups.retain(|group| !group.items.is_empty() || group.list.is_some());
    }
    found
}

/// The page of the only thing that was found.
fn only_page(desk: &Desk, found: &SearchResult) -> Option<String> {
    let [FoundGroup { kind, more: false, items, .. }] = found.groups.as_slice() else { return None };
    let [item] = items.as_slice() else { return None };
    Some(page_of(desk, *kind, item))
}

/// The page on which a thing is shown.
pub(crate) fn page_of(desk: &Desk, kind: ItemKind, item: &FoundItem) -> String {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let waits = || ObjectId::parse(&item.id).is_some_and(|id| queue::waiting(desk, id).is_some());
    let place = match kind {
        ItemKind::Charges | ItemKind::Subscriptions | ItemKind::Cards => format!("{}/{}", kind.name(), item.id),
        ItemKind::Merchants => format!("merchants/{}", item.id),
        ItemKind::Recipients => format!("recipients/{}", item.id),
        ItemKind::Refunds | ItemKind::Disputes | ItemKind::Withdrawals => format!("queue/{}", item.id),
        ItemKind::Entries if waits() => format!("queue/{}", item.id),
        ItemKind::ApiKeys if item.status != Some("revoked") => format!("keys/{}", item.id),
        ItemKind::ApiKeys | ItemKind::Plans => format!("merchants/{}", part(&item.merchant_id)),
        ItemKind::WebhookEvents => format!("webhooks/{}", item.id),
        ItemKind::Records => format!("records/{}", item.id),
        ItemKind::Ledgers => format!("ledgers/{}", item.id),
        ItemKind::Entries | ItemKind::Cashouts | ItemKind::Anticipations => {
            format!("records/{}", part(&item.record))
        }
    };
    format!("/console/{place}")
}

fn screen(desk: &Desk, visit: &Visit, text: &str, found: &SearchResult) -> Screen {
    let body = html! { @for group in &found.groups { (section(desk, visit, group)) } };
    Screen { section: Section::Found, title: title(visit, text), body }
}

fn title(visit: &Visit, text: &str) -> String {
    format!("{}: {text}", visit.say(words::FIND))
}

fn section(desk: &Desk, visit: &Visit, group: &FoundGroup) -> Markup {
    let heading = visit.say(wire_words::heading(group.kind));
    let table = list_table::table((desk, visit), group.kind, &group.items, (words::NAME, true), None)
        .column("more", words::MERCHANT, |item| merchant_link(desk, visit, item.merchant_id.as_deref()))
        .column("more", words::ID, |item| html! { code { (item.id) } });
    let table = with_amount(table, visit, None, &[]);
    let id = group.kind.name();
    html! {
        section.card aria-labelledby=(id) {
            h2 id=(id) { (heading) " (" (show::count(visit.language, group.total as u64)) @if group.at_least { "+" } ")" }
            (table.shown())
            @if group.more {
                p {
                    span.dim { (visit.say(words::FOUND_NEWEST)) } " "
                    @if let Some(list) = &group.list {
                        a href=(visit.scope.of_path(&list.replacen("/ops", "/console", 1))) { (visit.say(words::FOUND_ALL)) ": " (heading) }
                    }
                }
            }
        }
    }
}
