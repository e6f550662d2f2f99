//! Manual of this version, as HTML pages under `/docs`. The Markdown of the repository's `docs`
//! is part of the program: the pages need no network and always fit the program that serves them.
//! The auditors' script, to which pages link, is there as it stands.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Extension;
use axum::body::Bytes;
use axum::http::Uri;
use axum::response::Response;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};

use super::outgoing::OneCopy;
use super::problem::{Code, Problem};
use super::reference::{self, STYLE_PATH};

/// Path of the list of the pages; the path of each begins with it.
pub const INDEX_PATH: &str = "/docs";

/// A page: its path from `docs` without `.md`, and its Markdown.
type ManualPage = (&'static str, &'static str);

macro_rules! manual {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../docs/", $name, ".md")))),*] };
}

/// The pages, by reader.
const MANUAL: [(&str, &[ManualPage]); 5] = [
    (
        "Integrate",
        manual!["guide/first-charge" "guide/clients" "guide/webhooks" "guide/local-webhooks" "guide/errors" "guide/retries" "guide/refunds" "guide/lists" "guide/rate-limits" "guide/sandbox" "interface" "decisions" "limits"],
    ),
    ("Operate", manual!["operating" "runbook" "postgresql" "deploy/README" "../SECURITY" "../CHANGELOG"]),
    ("Account", manual!["books" "accounting" "exports" "reports"]),
    ("Em português", manual!["pt-br/inicio" "pt-br/livros"]),
    (
        "Understand",
        manual![
            "architecture" "performance" "testing" "internals/journal" "internals/disk-formats" "internals/index"
            "internals/balance-files" "internals/snapshots" "internals/postgres" "internals/partitions"
            "compatibility" "releasing" "changes/README"
        ],
    ),
];

/// Programs for auditors: the path below `docs`, and the text.
const SCRIPTS: [(&str, &str); 2] = [
    ("audit/verify_backup.py", include_str!("../../docs/audit/verify_backup.py")),
    ("audit/verify_exports.py", include_str!("../../docs/audit/verify_exports.py")),
];

/// The pages by their paths. They are rendered at the first request.
static PAGES: LazyLock<HashMap<String, Bytes>> = LazyLock::new(|| {
    let index = format!("<h1>Documents</h1><p>Of Centavo {}, which serves them.</p>", env!("CARGO_PKG_VERSION"));
    let mut pages = HashMap::from([(INDEX_PATH.to_owned(), page("Documents", None, &index))]);
    for (name, text) in MANUAL.iter().flat_map(|(_, manual)| *manual) {
        pages.insert(path_of(name), page(title(text), Some(name), &rendered(name, text)));
    }
    pages
});

/// `GET /docs` and the paths below it.
pub async fn manual_page(uri: Uri) -> Result<(Extension<OneCopy>, Response), Problem> {
    if let Some((_, text)) = SCRIPTS.iter().find(|(name, _)| uri.path() == path_of(name)) {
        return Ok((Extension(OneCopy), reference::script(text)));
    }
    let page = PAGES.get(uri.path()).ok_or_else(|| Problem::new(Code::NotFound))?;
    Ok((Extension(OneCopy), reference::page(page.clone())))
}

/// The path of a page. Those from above `docs` have it beside the others.
fn path_of(name: &str) -> String {
    format!("{INDEX_PATH}/{}", name.trim_start_matches(ABOVE))
}

const ABOVE: &str = "../";

/// The text of the first heading.
fn title(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

fn links(manual: &[ManualPage], shown: Option<&str>) -> String {
    let link = |(name, text): &ManualPage| {
        let current = if shown == Some(name) { " aria-current=page" } else { "" };
        format!("<li><a href=\"{}\"{current}>{}</a>", path_of(name), title(text))
    };
    manual.iter().map(link).collect()
}

/// A page around its content.
fn page(title: &str, shown: Option<&str>, content: &str) -> Bytes {
    let manual: String =
        MANUAL.iter().map(|(reader, manual)| format!("<li>{reader}<ul>{}</ul>", links(manual, shown))).collect();
    let language = if shown.is_some_and(|name| name.starts_with("pt-br/")) { "pt-BR" } else { "en" };
    let page = format!(
        "<!doctype html><html lang={language}><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title} – Centavo</title><link rel=stylesheet href=\"{STYLE_PATH}\"></head><body><nav aria-label=Pages>\
         <p class=home><a href=\"{INDEX_PATH}\">Documents</a></p><ul>{manual}<li><a href=\"/reference\">Reference</a></ul>\
         </nav><main>{content}</main></body></html>"
    );
    page.into()
}

/// A page as HTML. Headings get ids, and links to other pages lead there.
fn rendered(name: &str, text: &str) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    for at in 0..events.len() {
        if let Event::Start(Tag::Heading { .. }) = &events[at] {
            let words = events[at..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
            let words: String = words.map(written).collect();
            if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
                *id = Some(anchor(&words).into());
            }
        }
    }
    let mut open_links = Vec::new();
    let events = events.into_iter().filter_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let target = target(name, &dest_url);
            open_links.push(target.is_some());
            target.map(|target| Event::Start(Tag::Link { link_type, dest_url: target.into(), title, id }))
        }
        Event::End(TagEnd::Link) => open_links.pop().unwrap_or_default().then_some(Event::End(TagEnd::Link)),
        // The Markdown has no HTML of its own.
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        event => Some(event),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    // What can be scrolled must be reached by a keyboard.
    let table = "<div class=scroll tabindex=0 role=group aria-label=Table><table>";
    let page = page.replace("<table>", table).replace("</table>", "</table></div>");
    // A heading without a text is none.
    page.replace("<pre>", "<pre tabindex=0>").replace("<th></th>", "<td></td>").replace("<th>", "<th scope=col>")
}

fn written<'a>(event: &'a Event<'_>) -> &'a str {
    match event {
        Event::Text(text) | Event::Code(text) => text,
        _ => "",
    }
}

/// The id of a heading, as hosts of repositories make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
}

/// Where a link of a page leads. None for files of the repository that are no page.
fn target(from: &str, link: &str) -> Option<String> {
    if link.starts_with('#') || link.contains("://") {
        return Some(link.to_owned());
    }
    let (path, anchor) =
        link.split_once('#').map_or((link, String::new()), |(path, anchor)| (path, format!("#{anchor}")));
    let mut place: Vec<&str> = from.split('/').collect();
    place.pop();
    for part in path.split('/').filter(|part| *part != ".") {
        match part {
            ".." if place.iter().all(|above| *above == "..") => place.push(".."),
            ".." => drop(place.pop()),
            part => place.push(part),
        }
    }
    let place = place.join("/");
    // From a page above it leads back into it.
    let place = place.strip_prefix("../docs/").unwrap_or(&place);
    if SCRIPTS.iter().any(|(name, _)| *name == place) {
        return Some(path_of(place));
    }
    let place = place.strip_suffix(".md").unwrap_or(place);
    let mut manual = MANUAL.iter().flat_map(|(_, manual)| *manual);
    let (name, _) =
        manual.find(|(name, _)| *name == place || name.strip_suffix("/README") == Some(place.trim_end_matches('/')))?;
    Some(format!("{}{anchor}", path_of(name)))
}
