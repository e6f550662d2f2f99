//! Table of a list: a row has the name of a thing, when it was made, where it stands and its
//! amount, and more. On a narrow screen these four stand in two lines, and the rest is on the page
//! of the thing. Heads of columns in which a list can be sorted are links.

use axum::http::request::Parts;
use maud::html;
use ops::found_item::FoundItem;
use ops::{Desk, ItemKind};

use crate::find::page_of;
use crate::paging::address;
use crate::show;
use crate::table::{Sorting, Table};
use crate::wire_words::{heading, status_word};
use crate::{Visit, Word, words};

/// Table of things, to which the columns that only some lists have are added before
/// [`with_amount`].
pub(crate) type ItemTable<'a> = Table<'a, &'a FoundItem>;

/// The request and the order of a list that can be sorted.
pub(crate) type Sorted<'a> = Option<(&'a Parts, &'static str)>;

/// A table of things of one kind, with name and time, and with where they stand.
pub(crate) fn table<'a>(
    (desk, visit): (&'a Desk, &'a Visit),
    kind: ItemKind,
    items: &'a [FoundItem],
    (name, has_status): (Word, bool),
    sorted: Sorted<'a>,
) -> ItemTable<'a> {
    let table = Table::list(visit.language, heading(kind), items)
        .column("name", name, move |item| {
            let name = item.name.as_ref().or(item.merchant_name.as_ref()).unwrap_or(&item.id);
            html! {
                a href=(page_of(desk, kind, item)) { bdi { (name) } }
                @if let Some(document) = &item.document { " " span.dim { (document) } }
            }
        })
        .sorted(sorting(sorted, &["name"]))
        .column("when", words::WHEN, move |item| show::optional_moment(visit.language, item.created_at.as_deref()))
        .sorted(sorting(sorted, &["newest", "oldest"]));
    if !has_status {
        return table;
    }
    let status = move |item: &FoundItem| item.status.map_or("", |status| visit.say(status_word(kind, status)));
    table.column("status", words::STATUS, status).sorted(sorting(sorted, &["status"]))
}

/// Adds the amounts; `orders` are those by amount, where the list has them.
pub(crate) fn with_amount<'a>(
    table: ItemTable<'a>,
    visit: &'a Visit,
    sorted: Sorted<'_>,
    orders: &[&'static str],
) -> ItemTable<'a> {
    let amount = move |item: &FoundItem| item.amount.map(|amount| visit.money(amount)).unwrap_or_default();
    table.column("amount", words::AMOUNT, amount).sorted(sorting(sorted, orders))
}

/// How a column sorts that has these orders: by the first, or by the other one where the list is
/// sorted so already.
fn sorting(sorted: Sorted<'_>, orders: &[&'static str]) -> Option<Sorting> {
    let (parts, order) = sorted.filter(|_| !orders.is_empty())?;
    let place = orders.iter().position(|own| *own == order);
    let direction = place.map(|place| if place == 0 && orders.len() > 1 { "descending" } else { "ascending" });
    let next = orders[place.map_or(0, |place| (place + 1) % orders.len())];
    let link = address(&parts.uri, &["order", "page", "before"], Some(&format!("order={next}")));
    Some(Sorting { direction, link })
}
