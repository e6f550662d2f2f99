//! Guards of the code and the documents themselves: crates and what they import; widths, lengths
//! and words; the code map of docs/architecture.md; citations ("interface 2.8") and links.
//!
//! What looks for errors is a function of texts, and is itself given errors that it must find.

#![allow(clippy::unwrap_used)]

mod code;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use web::problem::Code;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found.sort();
    found
}

fn dependencies(manifest: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(manifest)).unwrap();
    let section = text.split("[dependencies]").nth(1).unwrap().split("\n[").next().unwrap();
    let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| !name.is_empty() && !name.starts_with('#')).map(str::to_owned).collect()
}

fn naming<'a>(sources: &'a [(String, String)], word: &str) -> Vec<&'a str> {
    let uses = |text: &str| {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.into_iter().any(|line| line.contains(word))
    };
    sources.iter().filter(|(_, text)| uses(text)).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn the_law_depends_on_nothing_that_waits_or_looks_around() {
    assert_eq!(dependencies("ledger/Cargo.toml"), ["minicbor", "rust_decimal", "strum", "thiserror", "uuid"]);
    let ledger = sources("ledger/src");
    for word in ["async ", "std::fs", "std::env", "std::net", "std::thread", "SystemTime", " f64", " f32"] {
        assert_eq!(naming(&ledger, word), [""; 0], "the law must not know {word}");
    }
    assert_eq!(
        naming(&ledger, "HashMap"),
        ["ledger/src/id.rs"],
        "maps by id: their hasher has no seed, so their order no chance"
    );
}

#[test]
fn no_crate_below_web_knows_http_and_few_know_json() {
    let json = ["serde", "serde_json", "clap"];
    let http = ["axum", "hyper", "hyper-util", "reqwest", "utoipa"];
    let unknown: [(&str, &[&[&str]]); 4] = [
        ("actors", &[&http, &json]),
        ("crates/wire", &[&http, &json]),
        ("crates/books", &[&http]),
        // Adapters are clients of HTTP.
        ("crates/rails", &[&["axum", "reqwest", "utoipa"]]),
    ];
    for (folder, unknown) in unknown {
        let known = dependencies(&format!("{folder}/Cargo.toml"));
        for dependency in unknown.concat() {
            assert!(!known.iter().any(|name| name == dependency), "{folder} must not depend on {dependency}");
        }
    }
}

/// Each crate of the product, and those of ours that it may import. No arrow points up.
const MAY_IMPORT: [(&str, &[&str]); 13] = [
    ("ledger", &[]),
    ("centavo-store", &[]),
    ("centavo-derived", &["centavo-store", "ledger"]),
    ("centavo-wire", &["centavo-store"]),
    ("centavo-books", &["centavo-derived", "centavo-store", "centavo-wire", "ledger"]),
    ("actors", &["centavo-derived", "centavo-store", "ledger"]),
    ("centavo-rails", &["actors", "centavo-wire", "ledger"]),
    ("centavo-web", &["actors", "centavo-books", "centavo-derived", "centavo-store", "centavo-wire", "ledger"]),
    ("centavo-webhooks", &["actors", "centavo-derived", "centavo-store", "centavo-web", "ledger"]),
    ("centavo-nodes", &["actors", "centavo-derived", "centavo-store", "centavo-web", "ledger"]),
    (
        "centavo-ops",
        &[
            "actors",
            "centavo-books",
            "centavo-derived",
            "centavo-nodes",
            "centavo-rails",
            "centavo-store",
            "centavo-web",
            "centavo-webhooks",
            "centavo-wire",
            "ledger",
        ],
    ),
    (
        "centavo-console",
        &[
            "actors",
            "centavo-books",
            "centavo-derived",
            "centavo-ops",
            "centavo-store",
            "centavo-web",
            "centavo-webhooks",
            "centavo-wire",
            "ledger",
        ],
    ),
    (
        "centavo",
        &[
            "actors",
            "centavo-books",
            "centavo-console",
            "centavo-derived",
            "centavo-nodes",
            "centavo-ops",
            "centavo-rails",
            "centavo-store",
            "centavo-web",
            "centavo-webhooks",
            "centavo-wire",
            "ledger",
        ],
    ),
];

#[test]
fn crates_import_what_the_architecture_lets_them() {
    let mut command = std::process::Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).current_dir(root());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let is_product = |package: &serde_json::Value| package["name"] != "testkit";
    let packages: Vec<_> =
        metadata["packages"].as_array().unwrap().iter().filter(|package| is_product(package)).collect();
    assert_eq!(packages.len(), MAY_IMPORT.len(), "each crate has its line");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours = dependencies.filter(|dependency| dependency["kind"].is_null() && !dependency["path"].is_null());
        let ours: BTreeSet<_> = ours.map(|dependency| dependency["name"].as_str().unwrap()).collect();
        let (_, may) = MAY_IMPORT.iter().find(|(of, _)| *of == name).unwrap();
        assert_eq!(ours, may.iter().copied().collect(), "{name}");
    }
}

/// The folders of sources of the product: of each member of the workspace but the tests' own, and
/// of the program.
fn product() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    let members = members.split('"').skip(1).step_by(2).filter(|member| !member.starts_with("tests/"));
    members.map(|member| format!("{member}/src")).chain(["src".to_owned()]).collect()
}

#[test]
fn one_file_names_sled_one_folder_postgresql_and_one_file_holds_the_unsafe_code() {
    let all: Vec<_> = product().iter().flat_map(|folder| sources(folder)).collect();
    assert_eq!(naming(&all, " ::sled::"), ["crates/store/src/sled.rs"]);
    // Behind `::` it is our module of that name.
    for bare in [" sled::", "(sled::", "<sled::", "&sled::"] {
        assert_eq!(naming(&all, bare), [""; 0], "the crate is named by ::sled:: alone");
    }
    let outside =
        naming(&all, "tokio_postgres").into_iter().filter(|file| !file.starts_with("crates/store/src/postgres/"));
    assert_eq!(outside.collect::<Vec<_>>(), [""; 0], "one folder names the library of PostgreSQL");
    assert_eq!(naming(&all, "unsafe "), ["crates/store/src/durable_sync.rs"]);
}

/// They panic when nobody reads what they print.
#[test]
fn nothing_is_printed_by_macros_that_panic() {
    let all: Vec<_> = product().iter().flat_map(|folder| sources(folder)).collect();
    let product: Vec<_> = all.into_iter().filter(|(name, _)| !name.contains("/testkit/")).collect();
    for print in ["println!(", "print!("] {
        assert_eq!(naming(&product, print), [""; 0], "terminal::say and logging::complain take a closed output");
    }
}

/// The paths that stand in the line of a call, or in the line after it.
fn paths_of_calls(text: &str, call: &str) -> BTreeSet<String> {
    let found = text.split(call).skip(1).filter_map(|behind| {
        let lines = behind.match_indices('\n').nth(1).map_or(behind, |(end, _)| &behind[..end]);
        let path = lines.split_once("\"/ops/")?.1.split('"').next()?;
        Some(format!("/ops/{path}"))
    });
    found.collect()
}

/// The paths of the POSTs that a source describes.
fn posts_of(text: &str) -> BTreeSet<String> {
    paths_of_calls(text, "utoipa::path(post, ")
}

#[test]
fn forms_of_the_console_have_the_keys_of_routes_that_there_are() {
    let posts: BTreeSet<String> = sources("crates/ops/src").iter().flat_map(|(_, text)| posts_of(text)).collect();
    // Decisions of its forms are handed on there.
    let of_nodes = sources("crates/ops/src").into_iter().filter(|(place, _)| place.ends_with("other_nodes.rs"));
    let console: Vec<_> = sources("crates/console/src").into_iter().chain(of_nodes).collect();
    let all = |calls: &[&str]| -> BTreeSet<String> {
        let found = console.iter().flat_map(|(_, text)| calls.iter().flat_map(move |call| paths_of_calls(text, call)));
        found.collect()
    };
    let keys = all(&["of_form(", "call(", "call_about(", "request("]);
    assert!(keys.len() > 40, "{keys:?}");
    // A PATCH or a DELETE takes no key: the keys of its form must be those of no POST.
    let alone = ["/ops/api-keys/{id}", "/ops/api-keys/{id}/address", "/ops/cards/{id}", "/ops/merchants/{id}"];
    assert_eq!(keys.difference(&posts).collect::<Vec<_>>(), alone, "other forms have the key of a POST");
    let described =
        "#[utoipa::path(post, path = \"/ops/a/{id}\", x = \"/ops/b\")]\n#[utoipa::path(get, path = \"/ops/c\")]";
    assert_eq!(posts_of(described), BTreeSet::from(["/ops/a/{id}".to_owned()]));
}

/// The folders of the code map, as its rows name them.
fn rooms_named(page: &str) -> Vec<String> {
    let map = page.split("\n### Rooms\n").nth(1).unwrap().split("\n### ").next().unwrap();
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_owned).collect()
}

#[test]
fn the_code_map_names_every_folder_once_and_no_other() {
    let files = product().into_iter().flat_map(|folder| sources(&folder));
    let folders: BTreeSet<String> = files.map(|(name, _)| name.rsplit_once('/').unwrap().0.to_owned()).collect();
    let named = rooms_named(&fs::read_to_string(root().join("docs/architecture.md")).unwrap());
    assert_eq!(named.iter().cloned().collect::<BTreeSet<_>>(), folders, "the map; the folders of the product");
    assert_eq!(named.len(), folders.len(), "each once");
    assert_eq!(rooms_named("\n### Rooms\n\n| `a/src` | x `b.rs` |\n\n### More\n| `c` | |\n"), ["a/src"]);
}

/// The longest line of a paragraph.
const COLUMNS_MAX: usize = 100;
const README_LINES_MAX: usize = 150;

/// Every file below the root with one of these endings, by its path from the root.
fn files_below_root(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                let place = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push((place, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<(String, String)> {
    files_below_root(&[".md"])
}

/// The lines of a page that are no code: neither fenced nor indented by four.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_fenced = false;
    (1..).zip(page.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence && !line.starts_with("    ")
    })
}

fn headings(page: &str) -> Vec<String> {
    let headings = prose(page).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|line| line.trim_start_matches('#').trim().to_owned()).collect()
}

/// The section numbers of a page: `2.8` of `### 2.8 Split record`, `6` of `## 6. Events`.
fn section_numbers(page: &str) -> BTreeSet<String> {
    let first = |heading: &String| heading.split(' ').next().map(|word| word.trim_end_matches('.').to_owned());
    let is_number = |word: &String| word.starts_with(|letter: char| letter.is_ascii_digit());
    headings(page).iter().filter_map(first).filter(is_number).collect()
}

/// The number at the begin of a text, such as `2.8`, and the rest.
fn number(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    number.starts_with(|letter: char| letter.is_ascii_digit()).then(|| (number, &text[number.len()..]))
}

/// A text without line breaks and the marks of comments, so that a citation may go over the end of
/// a line.
fn unwrapped(text: &str) -> String {
    let marks = |letter: char| matches!(letter, '/' | '!' | '#' | '*') || letter.is_whitespace();
    text.lines().map(|line| line.trim_start_matches(marks).trim_end()).collect::<Vec<_>>().join(" ")
}

/// The sections of the interface that a text cites: `interface 2.8, 2.13 rule 4`, `interface
/// section 6`, `sections 2.2 and 7`. Section 0 is one of an actor's state, and a section of an RFC
/// is none of ours.
fn sections_cited(text: &str) -> Vec<String> {
    let text = unwrapped(text);
    let lower = text.to_ascii_lowercase();
    let mut cited = Vec::new();
    for word in ["interface ", "interface, ", "section ", "sections "] {
        for (at, _) in lower.match_indices(word) {
            let before = &lower[..at];
            let is_of_rfc = before
                .trim_end_matches([',', ' '])
                .rsplit("rfc ")
                .next()
                .is_some_and(|rest| before.contains("rfc ") && rest.chars().all(|letter| letter.is_ascii_digit()));
            if is_of_rfc || before.ends_with(|letter: char| letter.is_alphanumeric()) {
                continue;
            }
            let mut rest = &text[at + word.len()..];
            while let Some((number, behind)) = number(rest) {
                if number != "0" {
                    cited.push(number.to_owned());
                }
                let Some(next) = [", ", " and ", " to "].iter().find_map(|with| behind.strip_prefix(with)) else {
                    break;
                };
                rest = next;
            }
        }
    }
    cited
}

/// What stands behind each `decisions, ` of a text, if it begins like a heading.
fn decisions_cited(text: &str) -> Vec<String> {
    let text = unwrapped(text);
    let cited = text.match_indices("decisions, ").map(|(at, word)| &text[at + word.len()..]);
    let cited = cited.filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase()));
    cited.map(|rest| rest.chars().take(60).collect()).collect()
}

/// The citations of a text that lead to no heading.
fn dangling(text: &str, numbers: &BTreeSet<String>, decisions: &[String]) -> Vec<String> {
    let sections = sections_cited(text).into_iter().filter(|number| !numbers.contains(number));
    let is_heading = |rest: &String| decisions.iter().any(|heading| rest.starts_with(heading.as_str()));
    let decided = decisions_cited(text).into_iter().filter(|rest| !is_heading(rest));
    sections
        .map(|number| format!("interface {number}"))
        .chain(decided.map(|rest| format!("decisions, {rest}")))
        .collect()
}

#[test]
fn every_citation_leads_to_a_heading() {
    let interface = fs::read_to_string(root().join("docs/interface.md")).unwrap();
    let decisions = fs::read_to_string(root().join("docs/decisions.md")).unwrap();
    let (numbers, decisions) = (section_numbers(&interface), headings(&decisions));
    let mut count = 0;
    for (place, text) in files_below_root(&[".rs", ".md", ".txt"]) {
        // This file cites what is nowhere, on purpose.
        if !place.starts_with("tests/tidy/") {
            count += sections_cited(&text).len() + decisions_cited(&text).len();
            assert_eq!(dangling(&text, &numbers, &decisions), [""; 0], "{place} cites what docs/ does not have");
        }
    }
    assert!(count > 100, "only {count} citations were found");
    let rows = fs::read_to_string(root().join("tests/interface/rows.txt")).unwrap();
    for row in rows.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (number, _) = number(row).unwrap();
        // The name of a row may go on with digits, where the section has no sections of its own:
        // `2.13.1`, `7.400-amount`.
        let is_undivided = |outer: &str| !numbers.iter().any(|known| known.starts_with(&format!("{outer}.")));
        let is_within = |(outer, _): (&str, &str)| numbers.contains(outer) && is_undivided(outer);
        let known = numbers.contains(number) || number.rsplit_once('.').is_some_and(is_within);
        assert!(known, "rows.txt has a row of section {number}, which docs/interface.md does not have");
    }
}

#[test]
fn a_citation_that_leads_nowhere_is_found() {
    let numbers = section_numbers("# Page\n## 6. Events\n### 2.8 Split record\n");
    let decisions = headings("# Decisions\n## Fees\n");
    let found = |text: &str| dangling(text, &numbers, &decisions);
    for sound in [
        "/// (interface 2.8, 6).",
        "//! of section 6 of the\n//! interface; decisions, Fees",
        "/// section 0; RFC 4648, section 4; decisions, or not",
        "/// Sections 2.8 and 6. subsection 4",
    ] {
        assert_eq!(found(sound), [""; 0], "{sound}");
    }
    for (wrong, cited) in [
        ("/// (interface 2.9)", "interface 2.9"),
        ("/// the interface\n    /// 7 says", "interface 7"),
        ("//! sections 2.8 and 3.1", "interface 3.1"),
        ("/// interface section 9", "interface 9"),
        ("# (decisions, Charges)", "decisions, Charges)"),
    ] {
        assert!(found(wrong).iter().any(|found| found == cited), "{wrong}: {:?}", found(wrong));
    }
}

/// Sources with texts in Portuguese, each the first literal of a pair, or all of a page.
const PORTUGUESE: [&str; 6] = [
    "crates/console/src/words.rs",
    "crates/console/src/wire_words.rs",
    "ledger/src/facts/mod.rs",
    "ledger/src/account.rs",
    "crates/books/src/export/columns.rs",
    "crates/books/src/reports/request.rs",
];

/// The words that the list of `docs/pt-br/palavras.md` has others for.
fn words_not_used(list: &str) -> Vec<String> {
    let rows = list.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.filter_map(|row| row.split('|').nth(3));
    cells.flat_map(|cell| cell.split(',')).map(|word| word.trim().to_lowercase()).collect()
}

/// The words of a text that are among some.
fn among(text: &str, words: &[String]) -> Vec<String> {
    let text = text.to_lowercase();
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let has = |word: &String| {
        text.match_indices(word.as_str()).any(|(at, _)| {
            let rest = text[at + word.len()..].trim_start_matches('s');
            !is_letter(text[..at].chars().next_back()) && !is_letter(rest.chars().next())
        })
    };
    words.iter().filter(|word| has(word)).cloned().collect()
}

/// The literals of a source that are in Portuguese: of `"…", "…"` the first one, and those alone.
fn portuguese(source: &str) -> impl Iterator<Item = &str> {
    let mut parts = source.split('"').skip(1).step_by(2).zip(source.split('"').skip(2).step_by(2));
    let mut is_second = false;
    std::iter::from_fn(move || parts.next())
        .filter(move |(_, between)| !std::mem::replace(&mut is_second, between.trim() == ","))
        .map(|(text, _)| text)
}

#[test]
fn one_word_for_each_idea_in_portuguese() {
    let list = std::fs::read_to_string(root().join("docs/pt-br/palavras.md")).unwrap();
    let words = words_not_used(&list);
    assert!(words.len() > 15 && words.contains(&"estorno".to_owned()), "{words:?}");
    assert_eq!(among("O Estorno, e splits de disputantes", &words), ["estorno", "split"]);
    let found: Vec<_> = portuguese("A = \"um\", \"one\"; \"dois\" => [\"três\", \"three\"]").collect();
    assert_eq!(found, ["um", "dois", "três"]);
    let mut wrong = Vec::new();
    for path in PORTUGUESE {
        let source = std::fs::read_to_string(root().join(path)).unwrap();
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let texts = portuguese(&code).filter(|text| text.contains(' ') || !text.contains(':'));
        wrong.extend(texts.filter(|text| !among(text, &words).is_empty()).map(|text| format!("{path}: {text}")));
    }
    for (path, page) in
        pages().into_iter().filter(|(path, _)| path.starts_with("docs/pt-br/") && !path.ends_with("palavras.md"))
    {
        let lines = prose(&page).filter(|(_, line)| !line.contains('`'));
        wrong.extend(
            lines.filter(|(_, line)| !among(line, &words).is_empty()).map(|(at, line)| format!("{path}:{at}: {line}")),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// How GitHub names a heading in an address.
fn anchor(heading: &str) -> String {
    let slug = heading.to_lowercase().replace(' ', "-");
    slug.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_')).collect()
}

/// The targets of a page's links: `[text](target)`. Code holds none.
fn links(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (_, line) in prose(page) {
        let without_code: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = without_code.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.filter(|target| !target.contains("://")).map(str::to_owned));
    }
    found
}

/// The page and the heading that a link of the page `from` means.
fn resolved(from: &str, link: &str) -> (String, Option<String>) {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    if path.is_empty() {
        return (from.to_owned(), anchor);
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    (parts.join("/"), anchor)
}

/// The links of a page that lead to no file, or to no heading of it.
fn broken(place: &str, page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let is_broken = |link: &String| {
        let (file, heading) = resolved(place, link);
        let Some(target) = read(&file) else { return true };
        heading.is_some_and(|heading| !headings(&target).iter().any(|known| anchor(known) == heading))
    };
    links(page).into_iter().filter(is_broken).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    // A picture is no text.
    let read = |file: &str| fs::read(root().join(file)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    for (place, page) in pages() {
        assert_eq!(broken(&place, &page, read), [""; 0], "{place} has links that lead nowhere");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let read = |file: &str| match file {
        "docs/a.md" => Some("## 2.8 Split record, and more\n".to_owned()),
        "README.md" => Some("# Centavo\n".to_owned()),
        _ => None,
    };
    let page = "[a](a.md) [b](a.md#28-split-record-and-more) [c](../README.md#centavo) [d](https://x.y/z)\n`[e](e.md)`\n    [f](f.md)\n";
    assert_eq!(broken("docs/b.md", page, read), [""; 0]);
    for wrong in ["b.md", "a.md#29", "../docs/c.md", "#here", "README.md"] {
        assert_eq!(broken("docs/b.md", &format!("text [x]({wrong})\n"), read), [wrong]);
    }
}

/// The paths of this repository that a page names between backticks. One with a blank, `*` or `<`
/// stands for several.
fn paths_named(page: &str) -> Vec<&str> {
    const FOLDERS: [&str; 9] =
        ["src/", "crates/", "actors/", "ledger/", "tests/", "benches/", "docs/", "examples/", ".ci/"];
    let words = page.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| FOLDERS.iter().any(|folder| word.starts_with(folder));
    words.filter(is_path).filter(|word| !word.contains([' ', '*', '<', '…'])).collect()
}

#[test]
fn every_path_that_a_page_names_is_there() {
    for (place, page) in pages() {
        let gone: Vec<&str> = paths_named(&page).into_iter().filter(|path| !root().join(path).exists()).collect();
        assert_eq!(gone, [""; 0], "{place} names files that are not there");
    }
    assert_eq!(paths_named("`src/a.rs` src/b.rs `c.rs` `src/<name>.rs` `tests/d`"), ["src/a.rs", "tests/d"]);
}

#[test]
fn every_page_is_found_from_the_readme() {
    let pages: BTreeMap<String, String> = pages().into_iter().collect();
    let (mut found, mut left) = (BTreeSet::new(), vec!["README.md".to_owned()]);
    while let Some(place) = left.pop() {
        let Some(page) = pages.get(&place).filter(|_| found.insert(place.clone())) else { continue };
        left.extend(links(page).iter().map(|link| resolved(&place, link).0));
    }
    // A folder of changes grows by a file a change, which its page does not list.
    let lost: Vec<_> =
        pages.keys().filter(|place| !found.contains(*place) && !place.starts_with("docs/changes/")).collect();
    assert!(lost.is_empty(), "no link from README.md leads to {lost:?}");
}

/// The lines of a page that are too long to read: paragraphs and lists, not tables and code.
fn wide(page: &str) -> Vec<usize> {
    let is_exempt = |line: &str| line.trim_start().starts_with('|') || line.starts_with('#');
    let is_wide = |line: &str| line.chars().count() > COLUMNS_MAX && !is_exempt(line);
    prose(page).filter(|(_, line)| is_wide(line)).map(|(number, _)| number).collect()
}

#[test]
fn pages_are_narrow_and_the_readme_is_short() {
    for (place, page) in pages() {
        assert_eq!(wide(&page), [0; 0], "{place} has lines of more than {COLUMNS_MAX} columns");
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(
        lines <= README_LINES_MAX,
        "README.md has {lines} lines; what is more than {README_LINES_MAX} belongs into docs/"
    );
    let long = "é".repeat(COLUMNS_MAX + 1);
    let page = format!(
        "{}\n{long}\n    {long}\n| {long}\n  | {long}\n  ```\n  {long}\n  ```\n- {long}\n",
        "é".repeat(COLUMNS_MAX)
    );
    assert_eq!(wide(&page), [2, 9]);
}

#[test]
fn every_problem_code_is_in_the_decisions_and_no_other() {
    let made: BTreeSet<&str> = Code::ALL.iter().map(|code| code.row().code).collect();
    let page = fs::read_to_string(root().join("docs/decisions.md")).unwrap();
    let errors = page.split("### Errors").nth(1).unwrap().split("\n### ").next().unwrap();
    let rows = errors.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let listed: BTreeSet<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    assert_eq!(
        listed, made,
        "docs/decisions.md, Errors, on the left; the codes of crates/web/src/problem.rs on the right"
    );
    assert!(listed.len() > 40, "{listed:?}");
}

/// The names of a folder's cargo targets: `name.rs`, or a folder with a `main.rs`.
fn targets(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let is_target = |path: &PathBuf| path.join("main.rs").is_file() || path.extension().is_some_and(|end| end == "rs");
    let name = |path: PathBuf| format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
    entries.filter(is_target).map(name).collect()
}

#[test]
fn every_harness_and_every_benchmark_is_described() {
    let testing = fs::read_to_string(root().join("docs/testing.md")).unwrap();
    let performance = fs::read_to_string(root().join("docs/performance.md")).unwrap();
    for harness in targets("tests").iter().chain(&targets("actors/tests")).chain(&targets("ledger/tests")) {
        assert!(testing.contains(&format!("`{harness}")), "docs/testing.md does not say what {harness} proves");
    }
    for benchmark in &targets("benches") {
        let name = benchmark.trim_start_matches("actors/").trim_start_matches("benches/").trim_end_matches(".rs");
        assert!(performance.contains(&format!("--bench {name}")), "docs/performance.md does not say how to run {name}");
    }
}
