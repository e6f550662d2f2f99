//! How the sources are shaped: imports between files and rooms, lengths, names, words, comments.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{code_of, empty_comments, long_functions, names, types_named_twice, wide_comments, words};
use crate::imports::{arrows, circles, imports};
use crate::{pages, sources, unwrapped};

/// The crates, by the folder of their sources.
const CRATES: [&str; 3] = ["ledger/src", "actors/src", "src"];

/// All folders of Rust sources.
const FOLDERS: [&str; 10] = [
    "ledger/src",
    "actors/src",
    "src",
    "tests",
    "benches",
    "examples",
    "ledger/tests",
    "ledger/examples",
    "actors/tests",
    "actors/benches",
];

#[test]
fn no_files_of_a_crate_import_each_other_in_a_circle() {
    let found = CRATES.iter().flat_map(|folder| circles(&between_modules(imports(folder, &sources(folder)))));
    let found: Vec<_> = found.collect();
    assert!(found.is_empty(), "files that import each other in a circle: {found:#?}");
}

/// Imports without those from a file to the root of its own folder (`merchant/card.rs` takes the
/// state that `merchant/mod.rs` declares): a root and its files are one module.
fn between_modules(mut imports: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    for (place, others) in &mut imports {
        if let Some((folder, _)) = place.rsplit_once('/') {
            others.retain(|other| *other != format!("{folder}/mod.rs") && *other != format!("{folder}.rs"));
        }
    }
    imports
}

/// Rooms, and the rooms that they must not import.
const NO_ARROWS: [(&str, &[&str]); 12] = [
    ("actors/src/store/", &["actors/src/engine", "actors/src/index/", "actors/src/journal/", "actors/src/read_model/"]),
    ("actors/src/index/", &["actors/src/engine", "actors/src/journal/", "actors/src/read_model/"]),
    ("actors/src/read_model/", &["actors/src/engine", "actors/src/journal/", "actors/src/actor.rs"]),
    ("actors/src/journal/", &["actors/src/engine", "actors/src/directory.rs", "actors/src/actor.rs"]),
    ("src/http/", &["src/api/", "src/ops/", "src/views/", "src/console/"]),
    ("src/ops/", &["src/console/"]),
    ("src/console/", &["src/export/", "src/rails/", "src/store.rs"]),
    ("src/views/", &["src/api/", "src/ops/"]),
    ("src/api/", &["src/ops/"]),
    ("src/webhooks/", &["src/api/", "src/ops/"]),
    ("src/export/", &["src/api/", "src/ops/"]),
    ("src/rails/", &["src/api/", "src/ops/", "src/http/", "src/views/"]),
];

#[test]
fn rooms_import_only_what_they_may() {
    let mut all = imports("src", &sources("src"));
    all.extend(imports("actors/src", &sources("actors/src")));
    for (from, rooms) in NO_ARROWS {
        let wrong: Vec<String> = rooms.iter().flat_map(|to| arrows(&all, from, to)).collect();
        assert_eq!(wrong, [""; 0], "{from} must not import {rooms:?}");
    }
}

/// The inside of the engine, which `src` does not name: it asks `actors::engine::Engine`.
const INSIDE: [&str; 2] = ["read_model()", "actors::read_model"];

#[test]
fn the_product_asks_the_facade_of_the_engine() {
    let names_inside = |text: &str| INSIDE.iter().any(|name| code_of(text).contains(name));
    let found = sources("src").into_iter().filter(|(_, text)| names_inside(text)).map(|(place, _)| place);
    let found: Vec<_> = found.collect();
    assert_eq!(found, [""; 0], "these files name {INSIDE:?}");
    assert!(names_inside("let balances = engine.read_model().balances(ledger);"));
}

/// What the console does not name: it decides nothing, and has no way to the journal but the
/// engine's. It calls what the handlers of `src/ops` call.
const NOT_OF_THE_CONSOLE: [&str; 7] =
    ["MerchantCommand", "RecipientCommand", "HouseCommand", "actors::journal", "Commission::", ".command(", ".permit("];

#[test]
fn the_console_decides_nothing() {
    let names = |text: &str| {
        let code = code_of(text);
        NOT_OF_THE_CONSOLE.into_iter().filter(|name| code.contains(name)).collect::<Vec<_>>()
    };
    let found = sources("src/console").into_iter().map(|(place, text)| (place, names(&text)));
    let found: Vec<_> = found.filter(|(_, names)| !names.is_empty()).collect();
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(names("engine.command(group, MerchantCommand::X)"), ["MerchantCommand", ".command("]);
    assert_eq!(names("HouseCommand::Approve { id }.decide(state)"), ["HouseCommand"]);
}

/// The columns of a line that is a comment.
const COMMENT_COLUMNS_MAX: usize = 100;

#[test]
fn comments_are_narrow() {
    let wide = lines_of(all_sources(), |text| wide_comments(text, COMMENT_COLUMNS_MAX));
    assert!(wide.is_empty(), "comments of more than {COMMENT_COLUMNS_MAX} columns: {wide:#?}");
}

const FUNCTION_LINES_MAX: usize = 70;

/// Functions that may be longer: each is one table, or one match that only dispatches.
const LONG_FUNCTIONS: [(&str, &str); 4] = [
    ("ledger/src/facts/mod.rs", "say"),
    ("ledger/src/merchant/mod.rs", "apply"),
    ("src/http/problem.rs", "row"),
    ("src/console/words.rs", "fact"),
];

#[test]
fn functions_fit_a_screen() {
    let mut long = BTreeSet::new();
    let sources = CRATES.iter().flat_map(|folder| sources(folder));
    for (place, text) in sources.filter(|(place, _)| !place.ends_with("/tests.rs")) {
        long.extend(
            long_functions(&text, FUNCTION_LINES_MAX).into_iter().map(|(name, lines)| (place.clone(), name, lines)),
        );
    }
    let is_allowed = |(place, name, _): &&(String, String, usize)| LONG_FUNCTIONS.contains(&(place, name));
    let found: Vec<_> = long.iter().filter(|function| !is_allowed(function)).collect();
    assert!(found.is_empty(), "functions of more than {FUNCTION_LINES_MAX} lines: {found:#?}");
    for allowed in LONG_FUNCTIONS {
        assert!(long.iter().any(|(place, name, _)| (place.as_str(), name.as_str()) == allowed), "{allowed:?} is short");
    }
}

#[test]
fn no_public_type_of_a_crate_has_the_name_of_another() {
    let twice = CRATES.iter().flat_map(|folder| types_named_twice(&sources(folder)));
    let twice: Vec<_> = twice.collect();
    assert!(twice.is_empty(), "types of a crate that are named twice: {twice:#?}");
}

#[test]
fn no_doc_comment_is_a_single_word() {
    let empty = lines_of(all_sources(), empty_comments);
    assert!(empty.is_empty(), "doc comments that say nothing: {empty:#?}");
}

/// Words of names that mean something else here, or nothing: each with the word to use.
const NAMES_BANNED: [(&str, &str); 5] = [
    ("projector", "read model"),
    ("notice", "webhook event"),
    ("notices", "webhook events"),
    ("unstoppable", "detached handler"),
    ("pressure", "load shedding"),
];

/// Turns that nobody understands at first reading.
const PROSE_BANNED: [&str; 5] = ["that of which", "of which it", "is told", "are told", "nobody's"];

/// The lines that a search finds in sources, each as `place:line`.
fn lines_of(sources: impl Iterator<Item = (String, String)>, find: impl Fn(&str) -> Vec<usize>) -> Vec<String> {
    let found = sources.map(|(place, text)| (find(&text), place));
    found.flat_map(|(lines, place)| lines.into_iter().map(move |line| format!("{place}:{line}"))).collect()
}

fn all_sources() -> impl Iterator<Item = (String, String)> {
    FOLDERS.iter().flat_map(|folder| sources(folder))
}

/// Names that libraries gave.
const NAMES_OF_LIBRARIES: [&str; 1] = ["AsyncMessage::Notice"];

/// The banned words in the names of a source.
fn banned_names(text: &str) -> BTreeSet<&'static str> {
    let code = NAMES_OF_LIBRARIES.iter().fold(code_of(text), |code, name| code.replace(name, ""));
    let used: BTreeSet<String> = names(&code).flat_map(|(_, name)| words(name)).collect();
    NAMES_BANNED.iter().filter(|(banned, _)| used.contains(*banned)).map(|(banned, _)| *banned).collect()
}

/// The banned turns of a text, also over the ends of lines.
fn banned_prose(text: &str) -> Vec<&'static str> {
    let text = unwrapped(text).to_lowercase();
    PROSE_BANNED.iter().filter(|banned| text.contains(**banned)).copied().collect()
}

#[test]
fn no_banned_word_is_used() {
    // The folder of this file names them.
    let sources = all_sources().filter(|(place, _)| !place.starts_with("tests/tidy/"));
    let mut found = Vec::new();
    for (place, text) in sources.chain(pages()) {
        let banned = if place.ends_with(".rs") { banned_names(&text) } else { BTreeSet::new() };
        let banned: Vec<&str> = banned.into_iter().chain(banned_prose(&text)).collect();
        if !banned.is_empty() {
            found.push(format!("{place}: {banned:?}"));
        }
    }
    assert!(found.is_empty(), "for names, say instead {NAMES_BANNED:?}: {found:#?}");
}

#[test]
fn a_banned_word_is_found() {
    assert_eq!(banned_names("fn read_noticed() {} // a Notice\n"), BTreeSet::new());
    assert_eq!(banned_names("fn f() -> TheNotice {}"), BTreeSet::from(["notice"]));
    assert_eq!(banned_prose("//! Who it\n//! is told to."), ["is told"]);
}
