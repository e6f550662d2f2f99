//! Parts of the lists on a page, and the links between them.

use std::ops::Range;

use axum::http::Uri;
use axum::http::request::Parts;
use maud::{Markup, html};

use crate::{Visit, Word, show, words};
use web::{Page, Result, number};

/// The part of a list that an address asks for: `rows` rows, or fewer where it asks for fewer.
pub(crate) fn part(pairs: &[(String, String)], rows: u64) -> Result<Page> {
    let page = Page::read(pairs, rows)?;
    Ok(Page { per_page: page.per_page.min(rows), ..page })
}

/// The part of a second list of a page, whose number is another parameter.
pub(crate) fn part_named(pairs: &[(String, String)], name: &'static str, rows: u64) -> Result<Page> {
    Ok(Page { page: number(pairs, name, 1..=u64::from(u32::MAX))?.unwrap_or(1), per_page: rows })
}

/// Links to the parts before and after this one of a list whose newest come first, with the other
/// parameters as they are.
pub(crate) fn pager(visit: &Visit, parts: &Parts, page: Page, total: u64) -> Markup {
    links(visit, parts, "page", page, total, [words::NEWER, words::OLDER])
}

/// The same for a list whose part is the parameter `name`, in any order.
pub(crate) fn pager_named(visit: &Visit, parts: &Parts, name: &str, page: Page, total: u64) -> Markup {
    links(visit, parts, name, page, total, [words::EARLIER, words::FOLLOWING])
}

fn links(visit: &Visit, parts: &Parts, name: &str, page: Page, total: u64, [before, after]: [Word; 2]) -> Markup {
    let pages = page.pages(total);
    let link = |number: u64| address(&parts.uri, &[name], Some(&format!("{name}={number}")));
    html! {
        @if pages > 1 {
            p.pager {
                @if page.page > 1 { a href=(link(page.page - 1)) rel="prev" { "← " (visit.say(before)) } }
                " " (visit.say(words::PAGE)) " " (show::count(visit.language, page.page)) " " (visit.say(words::OF)) " "
                (show::count(visit.language, pages)) " "
                @if page.page < pages { a href=(link(page.page + 1)) rel="next" { (visit.say(after)) " →" } }
            }
        }
    }
}

/// The address of a page with another parameter, or without it: those of the names in `dropped` go,
/// the others stay as they are, and `added` stands behind them.
pub(crate) fn address(page: &Uri, dropped: &[&str], added: Option<&str>) -> String {
    let pairs = page.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let stays = |pair: &&str| pair.split_once('=').is_none_or(|(name, _)| !dropped.contains(&name));
    let pairs: Vec<_> = pairs.filter(stays).chain(added).collect();
    format!("{}?{}", page.path(), pairs.join("&"))
}

/// The places of a part of a list of some length.
pub(crate) fn range(length: usize, page: Page) -> Range<usize> {
    let from = usize::try_from(page.skip()).unwrap_or(usize::MAX).min(length);
    from..from.saturating_add(page.count()).min(length)
}

/// The items of a part of a list that is in memory.
pub(crate) fn items<T>(list: &[T], page: Page) -> &[T] {
    &list[range(list.len(), page)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_other_parameters_as_they_are() {
        let page: Uri = "/console/queue?pages=3&&page=2&kind=a%20b&page".parse().unwrap();
        assert_eq!(address(&page, &["page"], Some("page=4")), "/console/queue?pages=3&kind=a%20b&page&page=4");
        assert_eq!(address(&page, &["page", "kind"], None), "/console/queue?pages=3&page");
    }

    #[test]
    fn a_part_of_a_list_ends_with_the_list() {
        let list: Vec<_> = (0..25).collect();
        let of = |page| items(&list, Page { page, per_page: 10 });
        assert_eq!((of(1)[0], of(3), of(4)), (0, &list[20..], &[][..]));
    }
}
