//! How the sources are shaped: lengths, names, words, comments.

use std::collections::BTreeSet;

use crate::code::{
    code_of, empty_comments, long_functions, names, repeating_comments, types_named_twice, wide_comments, words,
};
use crate::{pages, product, sources, unwrapped};

/// All folders of Rust sources.
fn folders() -> Vec<String> {
    let others = ["tests", "benches", "examples", "ledger/tests", "ledger/examples", "actors/tests"];
    product().into_iter().chain(others.map(str::to_owned)).collect()
}

/// Modules of the engine that no crate above it names: they ask `actors::engine`, which exports
/// what the façade takes and gives.
const INSIDE: [&str; 7] = ["balance_files", "index", "journal", "load", "read_model", "resident", "snapshots"];

/// The names of the inside in a source.
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
    let above =
        ["src", "crates/console/src", "crates/nodes/src", "crates/ops/src", "crates/web/src", "crates/webhooks/src"];
    let found = above.into_iter().flat_map(sources).map(|(place, text)| (place, names_of_the_inside(&text)));
    let found: Vec<_> = found.filter(|(_, names)| !names.is_empty()).collect();
    assert!(found.is_empty(), "these files name the inside of the engine: {found:#?}");
    assert_eq!(names_of_the_inside("let sums = engine.read_model().balances(ledger);"), ["read_model"]);
    assert_eq!(names_of_the_inside("use actors::{engine::Engine, journal::Permit};"), ["journal"]);
    assert_eq!(names_of_the_inside("use actors::resident::Outcome; // actors::load"), ["resident"]);
}

/// What the console does not name: it decides nothing, and has no way to the journal but the
/// engine's. It calls what the handlers of `crates/ops` call.
const NOT_OF_THE_CONSOLE: [&str; 7] =
    ["MerchantCommand", "RecipientCommand", "HouseCommand", "actors::journal", "Commission::", ".command(", ".permit("];

#[test]
fn the_console_decides_nothing() {
    let names = |text: &str| {
        let code = code_of(text);
        NOT_OF_THE_CONSOLE.into_iter().filter(|name| code.contains(name)).collect::<Vec<_>>()
    };
    let found = sources("crates/console/src").into_iter().map(|(place, text)| (place, names(&text)));
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
    ("ledger/src/merchant/mod.rs", "decide"),
    ("ledger/src/facts/mod.rs", "in_words"),
];

#[test]
fn functions_fit_a_screen() {
    let mut long = BTreeSet::new();
    let sources = product().into_iter().flat_map(|folder| sources(&folder));
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
    let twice = product().into_iter().flat_map(|folder| types_named_twice(&sources(&folder)));
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
    folders().into_iter().flat_map(|folder| sources(&folder))
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

/// Words of a dialect, each with the most places that may have it: texts of the wire, and scripts.
const RARE: [(&[&str], usize); 4] =
    [(&["told", "tell", "tells"], 50), (&["kept"], 60), (&["none when", "none where"], 8), (&["the one that"], 10)];

/// The places of a phrase in a text, in words of their own.
fn places_of(text: &str, phrase: &str) -> usize {
    let text = unwrapped(text).to_lowercase();
    let ends = |side: Option<char>| side.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
    let is_alone = |at: usize| ends(text[..at].chars().next_back()) && ends(text[at + phrase.len()..].chars().next());
    text.match_indices(phrase).filter(|(at, _)| is_alone(*at)).count()
}

#[test]
fn words_of_a_dialect_are_rare() {
    let sources = all_sources().filter(|(place, _)| !place.starts_with("tests/tidy/")).chain(pages());
    let texts: Vec<String> = sources.map(|(_, text)| text).collect();
    for (phrases, most) in RARE {
        let found: usize = phrases.iter().flat_map(|phrase| texts.iter().map(|text| places_of(text, phrase))).sum();
        assert!(found <= most, "{phrases:?}: {found} places, and at most {most} may have them");
    }
    assert_eq!(places_of("Kept, as it was kept;\n// un_kept keptness", "kept"), 2);
}

#[test]
fn a_banned_word_is_found() {
    assert_eq!(banned_names("fn read_noticed() {} // a Notice\n"), BTreeSet::new());
    assert_eq!(banned_names("fn f() -> TheNotice {}"), BTreeSet::from(["notice"]));
    assert_eq!(banned_prose("//! Who it\n//! is told to."), ["is told"]);
}
