//! Pages of lists: charges, refunds, disputes, withdrawals and others, of all merchants or of one.
//! One page shows all of them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::request::Parts;
use axum::response::Response;
use ledger::fees::PaymentMethod;
use maud::{Markup, html};
use wire::cut_text::cut_name;

use crate::list_filter::{self, Field, RECIPIENT_FIELD, as_sent, file_links, merchant_field};
use crate::list_table::{self, ItemTable, with_amount};
use crate::paging::address;
use crate::queue::merchant_link;
use crate::recurrence::card_in_list;
use crate::wire_words::{METHOD_NAMES, heading, status_word};
use crate::{Screen, Section, Visit, pager_named, show, wire_words, words};
use ops::found_item::FoundItem;
use ops::list_file::requested_format;
use ops::lists::{self, LISTS, List, ListFilter, ListPart};
use ops::wire_words::FLAGS;
use ops::{Desk, DeskState, ItemKind};
use web::{PathId, Result, Role, query};

/// Things on a page.
const A_PAGE: u64 = 50;

const METHODS: [PaymentMethod; 3] = [PaymentMethod::Pix, PaymentMethod::CreditCard, PaymentMethod::DebitCard];

/// Page of the charges of all merchants, or of one.
pub(crate) async fn charges(desk: State<Arc<Desk>>, visit: Visit, parts: Parts) -> Response {
    show(desk, visit, PathId(ItemKind::Charges.name().to_owned()), parts).await
}

/// The page of a list, by what a filter asks for; or all of it as a file.
pub(crate) async fn show(State(desk): DeskState, visit: Visit, PathId(name): PathId, parts: Parts) -> Response {
    let shown = async {
        let given = as_sent(&visit, &parts)?;
        let filter = ListFilter::read(&desk, lists::named(&name)?, &given)?;
        match requested_format(&given)? {
            Some(format) => filter.file(&desk, format).await,
            None => Ok(visit.answer(screen(&desk, &visit, &parts, &filter).await)),
        }
    };
    visit.answer_with(shown.await)
}

async fn screen(desk: &Desk, visit: &Visit, parts: &Parts, filter: &ListFilter) -> Result<Screen> {
    let given = as_sent(visit, parts)?;
    let ListPart { items, rest, page, more: is_cut } = filter.part(desk, &given, A_PAGE).await?;
    let (list, name) = (filter.list, visit.say(heading(filter.list.kind)));
    let before = (!rest.is_empty()).then(|| cut_name(&rest.next()));
    let by_amount = list.filters.contains(&"amount_from");
    let head = if list.kind == ItemKind::Charges { words::PAYER } else { words::NAME };
    let sorted = Some((parts, filter.order));
    let shown = (head, !list.statuses.is_empty());
    let table = with_more(list_table::table((desk, visit), list.kind, &items, shown, sorted), desk, visit, list.kind);
    let table = match by_amount || list.kind == ItemKind::Subscriptions {
        true => with_amount(table, visit, sorted, if by_amount { &["largest", "smallest"] } else { &[] }),
        false => table,
    };
    let body = html! {
        (others(visit, list))
        @if list.kind == ItemKind::Merchants && visit.may(Role::Admin) {
            p.actions { a.button href="/console/merchants/new" { (visit.say(words::NEW_MERCHANT)) } }
        }
        (list_filter::form(desk, visit, &query(parts)?, &fields(visit, list)))
        section.card aria-label=(name) {
            @if is_cut { p.warning { (visit.say(words::SORTED_NEWEST)) } }
            @if items.is_empty() && before.is_some() { p.dim { (visit.say(words::NONE_READ)) } } @else { (table.shown()) }
            @match page {
                Some((page, total)) => (pager_named(visit, parts, "page", page, total)),
                None => (older(visit, parts, before.as_deref())),
            }
            (file_links(visit, parts, is_cut))
        }
    };
    let section = match list.kind {
        ItemKind::Charges => Section::Charges,
        ItemKind::Merchants => Section::Merchants,
        _ => Section::Lists,
    };
    Ok(Screen { section, title: name.to_owned(), body })
}

/// Links to the other lists, in the same scope.
fn others(visit: &Visit, shown: List) -> Markup {
    html! {
        nav.lists aria-label=(visit.say(words::LISTS)) {
            ul {
                @for list in LISTS {
                    li {
                        a href=(visit.scope.of_path(&path_of(list))) aria-current=[(list == shown).then_some("page")] { (visit.say(heading(list.kind))) }
                    }
                }
            }
        }
    }
}

fn path_of(list: List) -> String {
    match list.kind {
        kind @ (ItemKind::Charges | ItemKind::Merchants) => format!("/console/{}", kind.name()),
        kind => format!("/console/lists/{}", kind.name()),
    }
}

/// The fields of a list's filter.
fn fields(visit: &Visit, list: List) -> Vec<Field<'static>> {
    let field = |name: &'static str| {
        Some(match name {
            "merchant" => return merchant_field(visit).filter(|_| list.kind != ItemKind::Merchants),
            "recipient" => RECIPIENT_FIELD,
            "status" => {
                let statuses = list.statuses.iter().map(|status| (*status, status_word(list.kind, status)));
                Field::Choice("status", words::STATUS, statuses.collect())
            }
            "payment_method" => {
                let methods = METHODS.map(|method| (method.name(), wire_words::method(method)));
                Field::Choice("payment_method", words::METHOD, methods.into())
            }
            "flag" => Field::Choice("flag", words::FLAGS, FLAGS.0.into()),
            "q" => Field::Text("q", words::FIND),
            "named" => Field::Text("named", words::NAME),
            "amount_from" => Field::Amount("amount_from", words::LEAST),
            "amount_to" => Field::Amount("amount_to", words::MOST),
            "from" => Field::Day("from", words::FROM),
            "to" => Field::Day("to", words::TO),
            "recipient_id" => return None,
            name => Field::Hidden(name),
        })
    };
    let names = ["q"].into_iter().chain(list.filters.iter().copied()).chain(["from", "to", "merchant", "order"]);
    names.filter_map(field).collect()
}

/// Adds the columns that only some lists have.
fn with_more<'a>(table: ItemTable<'a>, desk: &'a Desk, visit: &'a Visit, kind: ItemKind) -> ItemTable<'a> {
    let merchant = move |item: &FoundItem| merchant_link(desk, visit, item.merchant_id.as_deref());
    let reason = |item: &FoundItem| html! { bdi { (item.reason.as_deref().unwrap_or_default()) } };
    let moment = move |at: &Option<String>| show::optional_moment(visit.language, at.as_deref());
    let method = move |item: &FoundItem| item.payment_method.map_or("", |name| visit.say(METHOD_NAMES.of(name)));
    let fee = move |item: &FoundItem| item.fee.map(|fee| visit.money(fee)).unwrap_or_default();
    let card = move |item: &FoundItem| card_in_list(visit, item.card.as_ref());
    let table = if kind == ItemKind::Merchants { table } else { table.column("more", words::MERCHANT, merchant) };
    let table = match kind {
        ItemKind::Charges => table.column("more", words::METHOD, method),
        ItemKind::Refunds => table.column("more", words::NOTES, reason),
        ItemKind::Disputes => {
            table
                .column("more", words::NOTES, reason)
                .column("more", words::ANSWER_UNTIL, move |item| moment(&item.due_at))
        }
        ItemKind::Anticipations => table.column("more", words::FEE, fee),
        ItemKind::Cashouts => table.column("more", words::FEE, fee).column("more", words::NOTES, reason),
        ItemKind::Subscriptions => table
            .column("more", words::PLAN, |item| html! { bdi { (item.plan.as_deref().unwrap_or_default()) } })
            .column("more", words::NEXT_CHARGE, move |item| moment(&item.next_charge_at))
            .column("more", words::CARD, card),
        ItemKind::Cards => table.column("more", words::CARD, card),
        _ => table,
    };
    let id = if kind == ItemKind::Charges { words::TXID } else { words::ID };
    table.column("more", id, |item| html! { code { (item.id) } })
}

/// Links to the newest things of a list and to the next, older ones.
fn older(visit: &Visit, parts: &Parts, before: Option<&str>) -> Markup {
    let link = |before: Option<&str>| address(&parts.uri, &["before"], before);
    let is_later = parts.uri.query().is_some_and(|query| query.split('&').any(|pair| pair.starts_with("before=")));
    html! {
        p.pager {
            @if is_later { a href=(link(None)) { "← " (visit.say(words::NEWEST)) } }
            " "
            @if let Some(before) = before {
                @let before: String = form_urlencoded::byte_serialize(before.as_bytes()).collect();
                a href=(link(Some(&format!("before={before}")))) rel="next" { (visit.say(words::OLDER)) " →" }
            }
        }
    }
}
