//! Table of a list: a row has the name of a thing, when it was made, where it stands and its
//! amount, and more. On a narrow screen these four stand in two lines, and the rest is on the page
//! of the thing. Heads of columns in which a list can be sorted are links.

use axum::http::request::Parts;
use maud::{Markup, html};
use ops::found_item::FoundItem;
use ops::{Desk, ItemKind};

use crate::find::page_of;
use crate::show::{self, Head};
use crate::wire_words::status_word;
use crate::{Visit, Word, words};

/// Columns of a list. Each row has a name and a time.
pub(crate) struct Columns<'a> {
    /// Head of the names.
    pub name: Word,
    /// True where rows have a status.
    pub has_status: bool,
    /// True where rows have an amount.
    pub has_amount: bool,
    /// Orders by amount, where the list has them.
    pub amount_orders: &'a [&'static str],
    /// What only a wide screen shows.
    pub more: &'a [Head],
    /// The request and the order of a list that can be sorted.
    pub sorted: Option<(&'a Parts, &'static str)>,
}

/// A table of things of one kind; `more` gives the cells of a row for the columns of that name.
pub(crate) fn table(
    desk: &Desk,
    visit: &Visit,
    kind: ItemKind,
    columns: &Columns<'_>,
    items: &[FoundItem],
    more: impl Fn(&FoundItem) -> Vec<Markup>,
) -> Markup {
    html! {
        table.list {
            (heads(visit, columns))
            tbody {
                @for item in items {
                    tr {
                        td.name {
                            a href=(page_of(desk, kind, item)) { bdi { (item.name.as_ref().or(item.merchant_name.as_ref()).unwrap_or(&item.id)) } }
                            @if let Some(document) = &item.document { " " span.dim { (document) } }
                        }
                        td.when { @if let Some(at) = &item.created_at { (show::text_moment(visit.language, at)) } }
                        @if columns.has_status {
                            td.status { @if let Some(status) = item.status { (visit.say(status_word(kind, status))) } }
                        }
                        @for cell in more(item) { td.more { (cell) } }
                        @if columns.has_amount { td.amount { @if let Some(amount) = item.amount { (visit.money(amount)) } } }
                    }
                }
            }
        }
    }
}

fn heads(visit: &Visit, columns: &Columns<'_>) -> Markup {
    let more = columns.more.iter().map(|head| match head {
        Head::Text(word) | Head::Amount(word) => html! { th.more scope="col" { (visit.say(*word)) } },
    });
    html! {
        thead {
            tr {
                (head(visit, columns, "name", columns.name, &["name"]))
                (head(visit, columns, "when", words::WHEN, &["newest", "oldest"]))
                @if columns.has_status { (head(visit, columns, "status", words::STATUS, &["status"])) }
                @for head in more { (head) }
                @if columns.has_amount { (head(visit, columns, "amount", words::AMOUNT, columns.amount_orders)) }
            }
        }
    }
}

/// The head of a column with the orders in which it sorts: a link to the first, or to the other one
/// where it is sorted so already.
fn head(visit: &Visit, columns: &Columns<'_>, class: &str, word: Word, orders: &[&'static str]) -> Markup {
    let Some((parts, order)) = columns.sorted.filter(|_| !orders.is_empty()) else {
        return html! { th class=(class) scope="col" { (visit.say(word)) } };
    };
    let place = orders.iter().position(|own| *own == order);
    let direction = place.map(|place| if place == 0 && orders.len() > 1 { "descending" } else { "ascending" });
    let next = orders[place.map_or(0, |place| (place + 1) % orders.len())];
    html! {
        th class=(class) scope="col" aria-sort=[direction] {
            a href=(in_order(parts, next)) { (visit.say(word)) }
        }
    }
}

/// The address of a list in another order, from its begin.
fn in_order(parts: &Parts, order: &str) -> String {
    let own = ["order=", "page=", "before=", "csv="];
    let pairs = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let order = format!("order={order}");
    let pairs: Vec<_> =
        pairs.filter(|pair| !own.iter().any(|own| pair.starts_with(own))).chain([order.as_str()]).collect();
    format!("{}?{}", parts.uri.path(), pairs.join("&"))
}
