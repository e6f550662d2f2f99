//! Parts of lists on a page, and the bounds that keep a page at 100 KiB: rows of a table, postings,
//! and the length of texts that people wrote.

use std::ops::Range;

use axum::http::request::Parts;
use maud::{Markup, html};

use crate::console::page::Visit;
use crate::console::show;
use crate::console::words::{self, Word};
use crate::http::problem::Problem;
use crate::http::reply::{Page, number};

/// Bytes of the body of a page above which its long texts are cut: 100 KiB without the frame.
const BODY_MAX: usize = 88 * 1024;
/// Characters of a text that are left where it is cut.
const TEXT_MAX: usize = 40;

/// The part of a list that an address asks for: `rows` rows, or fewer where it asks for fewer.
pub fn part(pairs: &[(String, String)], rows: u64) -> Result<Page, Problem> {
    let page = Page::read(pairs, rows)?;
    Ok(Page { per_page: page.per_page.min(rows), ..page })
}

/// The part of a second list of a page, whose number is another parameter.
pub fn part_named(pairs: &[(String, String)], name: &'static str, rows: u64) -> Result<Page, Problem> {
    Ok(Page { page: number(pairs, name, 1..=u64::from(u32::MAX))?.unwrap_or(1), per_page: rows })
}

/// Links to the parts before and after this one of a list whose newest come first, with the other
/// parameters as they are. An empty list says so.
pub fn pager(visit: &Visit, parts: &Parts, page: Page, total: u64) -> Markup {
    html! {
        @if total == 0 { p.dim { (visit.say(words::NOTHING)) } }
        (links(visit, parts, "page", page, total, [words::NEWER, words::OLDER]))
    }
}

/// The same for a list whose part is the parameter `name`, in any order.
pub fn pager_named(visit: &Visit, parts: &Parts, name: &str, page: Page, total: u64) -> Markup {
    links(visit, parts, name, page, total, [words::EARLIER, words::FOLLOWING])
}

fn links(visit: &Visit, parts: &Parts, name: &str, page: Page, total: u64, [before, after]: [Word; 2]) -> Markup {
    let pages = page.pages(total);
    let own = format!("{name}=");
    let kept: Vec<_> = parts.uri.query().unwrap_or_default().split('&').collect();
    let kept = kept.into_iter().filter(|pair| !pair.is_empty() && !pair.starts_with(&own)).collect::<Vec<_>>();
    let link = |number: u64| {
        let number = format!("{own}{number}");
        let pairs: Vec<_> = kept.iter().copied().chain([number.as_str()]).collect();
        format!("{}?{}", parts.uri.path(), pairs.join("&"))
    };
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

/// The places of a part of a list of some length.
pub fn range(length: usize, page: Page) -> Range<usize> {
    let from = usize::try_from(page.skip()).unwrap_or(usize::MAX).min(length);
    from..from.saturating_add(page.count()).min(length)
}

/// The items of a part of a list that is in memory.
pub fn items<T>(list: &[T], page: Page) -> &[T] {
    &list[range(list.len(), page)]
}

/// The body of a page, and whether its texts were cut: what people wrote stands in `bdi` elements,
/// and only a page that would be too long has it cut.
pub fn fitting(body: &str) -> (String, bool) {
    if body.len() <= BODY_MAX {
        return (body.to_owned(), false);
    }
    const BEGIN: &str = "<bdi>";
    let mut fitting = String::with_capacity(BODY_MAX);
    for (place, part) in body.split(BEGIN).enumerate() {
        match part.split_once("</bdi>").filter(|(text, _)| place > 0 && !text.contains('<')) {
            Some((text, behind)) => {
                fitting.push_str(BEGIN);
                cut(text, &mut fitting);
                fitting.push_str("</bdi>");
                fitting.push_str(behind);
            }
            None => {
                fitting.push_str(if place > 0 { BEGIN } else { "" });
                fitting.push_str(part);
            }
        }
    }
    (fitting, true)
}

/// Appends the first characters of an escaped text. An entity is one character.
fn cut(text: &str, to: &mut String) {
    let (mut characters, mut is_entity) = (0, false);
    for letter in text.chars() {
        if !is_entity {
            if characters == TEXT_MAX {
                to.push('…');
                return;
            }
            characters += 1;
        }
        is_entity = (is_entity || letter == '&') && letter != ';';
        to.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_only_where_the_page_is_too_long() {
        let text = html! { (("\"&".repeat(100))) }.into_string();
        let row = format!("<p title=\"x\"><bdi>{text}</bdi></p><bdi>kept</bdi><bdi><b>{text}</b></bdi>");
        assert_eq!(fitting(&row), (row.clone(), false));
        let (cut, is_cut) = fitting(&row.repeat(1 + BODY_MAX / row.len()));
        let first = format!("<bdi>{}…</bdi></p><bdi>kept</bdi><bdi><b>{text}</b></bdi>", "&quot;&amp;".repeat(20));
        assert!(is_cut && cut.starts_with(&format!("<p title=\"x\">{first}")), "{cut}");
    }

    #[test]
    fn a_part_of_a_list_ends_with_the_list() {
        let list: Vec<_> = (0..25).collect();
        let of = |page| items(&list, Page { page, per_page: 10 });
        assert_eq!((of(1)[0], of(3), of(4)), (0, &list[20..], &[][..]));
    }
}
