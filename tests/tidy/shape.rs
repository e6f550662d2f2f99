//! How the sources are shaped: imports between files and rooms, lengths, names, words, comments.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{
    code_of, empty_comments, long_functions, names, repeating_comments, types_named_twice, wide_comments, words,
};
use crate::imports::{circles, imports};
use crate::{pages, sources, unwrapped};

/// The crates, by the folder of their sources.
const CRATES: [&str; 8] = [
    "ledger/src",
    "crates/store/src",
    "crates/derived/src",
    "crates/wire/src",
    "crates/books/src",
    "actors/src",
    "crates/rails/src",
    "src",
];

/// All folders of Rust sources.
const FOLDERS: [&str; 14] = [
    "ledger/src",
    "crates/store/src",
    "crates/derived/src",
    "crates/wire/src",
    "crates/books/src",
    "actors/src",
    "crates/rails/src",
    "src",
    "tests",
    "benches",
    "examples",
    "ledger/tests",
    "ledger/examples",
    "actors/tests",
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
            let roots = ["/mod.rs", "/lib.rs", ".rs"].map(|root| format!("{folder}{root}"));
            others.retain(|other| !roots.contains(other));
        }
    }
    imports
}

/// The rooms of a crate, and the rooms that each imports. A room is a folder, with the file of its
/// name. Files beside the folders are rooms of their own; those of `src` import what they like, and
/// are left out.
fn rooms(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let sources = sources(folder);
    let room = |place: &str| {
        let rest = place.strip_prefix(folder).unwrap_or(place).trim_start_matches('/');
        rest.split('/').next().unwrap_or(rest).trim_end_matches(".rs").to_owned()
    };
    let is_folder = |room: &String| sources.iter().any(|(place, _)| place.starts_with(&format!("{folder}/{room}/")));
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (place, others) in imports(folder, &sources) {
        let from = room(&place);
        if folder == "actors/src" || folder == "crates/derived/src" || is_folder(&from) {
            let others = others.iter().map(|other| room(other)).filter(|other| *other != from && other != "lib");
            found.entry(from.clone()).or_default().extend(others.filter(|to| folder != "ledger/src" || is_folder(to)));
        }
    }
    found
}

/// The rooms in the table below a heading: in each row a room, then those that it imports.
fn rooms_drawn(page: &str, heading: &str) -> BTreeMap<String, BTreeSet<String>> {
    let section = page.split(&format!("\n{heading}\n")).nth(1).unwrap_or_default();
    let section = section.split("\n#").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| `")).map(|line| {
        let mut names = line.split('`').skip(1).step_by(2).map(str::to_owned);
        (names.next().unwrap_or_default(), names.collect())
    });
    rows.collect()
}

/// Arrows that only one of two maps has.
fn arrows_of_one(one: &BTreeMap<String, BTreeSet<String>>, other: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let is_known = |from: &String, to: &String| other.get(from).is_some_and(|others| others.contains(to));
    let all = one.iter().flat_map(|(from, others)| others.iter().map(move |to| (from, to)));
    let new_rooms = one.keys().filter(|room| !other.contains_key(*room)).cloned();
    new_rooms.chain(all.filter(|(from, to)| !is_known(from, to)).map(|(from, to)| format!("{from} → {to}"))).collect()
}

/// The page of the architecture is the list of the arrows that may be.
#[test]
fn rooms_import_only_what_the_architecture_draws() {
    let page = std::fs::read_to_string(crate::root().join("docs/architecture.md")).unwrap();
    let (mut new, mut gone) = (Vec::new(), Vec::new());
    for folder in CRATES {
        let (found, drawn) = (rooms(folder), rooms_drawn(&page, &format!("#### Arrows in {folder}")));
        new.extend(arrows_of_one(&found, &drawn));
        gone.extend(arrows_of_one(&drawn, &found));
    }
    assert!(new.is_empty(), "arrows that docs/architecture.md does not draw: {new:#?}");
    assert!(gone.is_empty(), "arrows that docs/architecture.md draws and nothing has: {gone:#?}");
}

#[test]
fn an_arrow_that_is_not_drawn_is_found() {
    let page = "\n#### Arrows in x\n\n| `a` | `b` `c` |\n| `b` | – |\n\n#### Arrows in y\n\n| `d` | `a` |\n";
    let drawn = rooms_drawn(page, "#### Arrows in x");
    let map = |from: &str, to: &[&str]| (from.to_owned(), to.iter().map(|to| (*to).to_owned()).collect());
    assert_eq!(drawn, BTreeMap::from([map("a", &["b", "c"]), map("b", &[])]));
    let found = BTreeMap::from([map("a", &["b"]), map("b", &["a"]), map("e", &[])]);
    assert_eq!(arrows_of_one(&found, &drawn), ["e", "b → a"]);
    assert_eq!(arrows_of_one(&drawn, &found), ["a → c"]);
}

/// Modules of the engine that `src` does not name: it asks `actors::engine`, which exports what the
/// façade takes and gives.
const INSIDE: [&str; 7] = ["balance_files", "index", "journal", "load", "read_model", "resident", "snapshots"];

/// The names of the inside in a source of `src`.
fn names_of_the_inside(text: &str) -> Vec<&'static str> {
    let code = code_of(text);
    let is_named = |module: &&str| {
        let grouped = code.split("actors::{").skip(1).filter_map(|behind| behind.split(';').next());
        code.contains(&format!("actors::{module}"))
            || code.contains(&format!("derived::{module}"))
            || (*module == "read_model" && code.contains(".read_model()"))
            || grouped.into_iter().any(|group| names(group).any(|(_, name)| name == *module))
    };
    INSIDE.into_iter().filter(is_named).collect()
}

#[test]
fn the_product_asks_the_facade_of_the_engine() {
    let found = sources("src").into_iter().map(|(place, text)| (place, names_of_the_inside(&text)));
    let found: Vec<_> = found.filter(|(_, names)| !names.is_empty()).collect();
    assert!(found.is_empty(), "these files name the inside of the engine: {found:#?}");
    assert_eq!(names_of_the_inside("let sums = engine.read_model().balances(ledger);"), ["read_model"]);
    assert_eq!(names_of_the_inside("use actors::{engine::Engine, journal::Permit};"), ["journal"]);
    assert_eq!(names_of_the_inside("use actors::resident::Outcome; // actors::load"), ["resident"]);
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
const LONG_FUNCTIONS: [(&str, &str); 5] = [
    ("ledger/src/facts/mod.rs", "say"),
    ("ledger/src/merchant/mod.rs", "apply"),
    ("ledger/src/merchant/mod.rs", "decide"),
    ("src/http/problem.rs", "row"),
    ("ledger/src/facts/mod.rs", "in_words"),
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
fn no_type_that_other_files_see_has_the_name_of_another() {
    let twice = CRATES.iter().flat_map(|folder| types_named_twice(&sources(folder)));
    let twice: Vec<_> = twice.collect();
    assert!(twice.is_empty(), "types of a crate that are named twice: {twice:#?}");
}

#[test]
fn no_doc_comment_is_a_single_word() {
    let empty = lines_of(all_sources(), empty_comments);
    assert!(empty.is_empty(), "doc comments that say nothing: {empty:#?}");
}

#[test]
fn no_doc_comment_only_repeats_a_name() {
    let repeating = lines_of(all_sources(), repeating_comments);
    assert!(repeating.is_empty(), "doc comments that only repeat the name: {repeating:#?}");
    let text = "/// Takes the form that opens a merchant.\npub async fn open_merchant() {}\n/// Why it moved.\nenum LineKind {\n    /// Its id.\n    \
                id: Id,\n}\n/// A bank account.\n#[derive(Clone, ToSchema)]\npub struct BankAccount;\n";
    assert_eq!(repeating_comments(text), [] as [usize; 0]);
    let text = "/// Entries of a book.\n/// Of each book.\n#[derive(Clone)]\npub struct BookEntry;\nfn a() {}\n\
                /// One line.\nconst LINES: u8 = 1;\n";
    assert_eq!(repeating_comments(text), [1, 6]);
}

/// The lines that give something the name of a sequence: `order` of a type that is none.
fn orders_that_are_none(text: &str) -> Vec<usize> {
    let is_none = |line: &str| {
        let behind = line.split("order: ").skip(1).filter(|_| line.contains("(order: ") || line.contains(" order: "));
        let of_type = |behind: &str| behind.trim_start_matches('&').chars().next().is_some_and(char::is_uppercase);
        let is_sequence = |behind: &str| behind.starts_with("Vec") || behind.starts_with("Ordering");
        behind.into_iter().any(|behind| of_type(behind) && !is_sequence(behind))
    };
    let code = code_of(text);
    (1..).zip(code.lines()).filter(|(_, line)| is_none(line)).map(|(number, _)| number).collect()
}

#[test]
fn an_order_is_a_sequence() {
    let found = lines_of(all_sources(), orders_that_are_none);
    assert!(found.is_empty(), "an order is a sequence; these are commands or requests: {found:#?}");
    assert_eq!(orders_that_are_none("fn send(&self, order: SendPayout) {}\nlet order: Vec<u8> = x;\n"), [1]);
    assert_eq!(orders_that_are_none("struct A {\n    order: &Repay,\n    in_order: Map,\n}\n"), [2]);
}

/// Words of names that mean something else here, or nothing: each with the word to use.
const NAMES_BANNED: [(&str, &str); 8] = [
    ("unsealed", "open, or what is meant; only personal data is sealed"),
    ("projector", "read model"),
    ("notice", "webhook event"),
    ("notices", "webhook events"),
    ("unstoppable", "detached handler"),
    ("pressure", "load shedding"),
    ("news", "webhook events"),
    ("term", "key of the index"),
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
