//! Shape of the sources: imports between rooms, and words.

use std::collections::BTreeSet;

use crate::code::{code_of, names, words};
use crate::imports::{arrows, imports};
use crate::{sources, unwrapped};

/// Rooms, and the rooms that they must not import.
const NO_ARROWS: [(&str, &str); 4] =
    [("src/http/", "src/api/"), ("src/http/", "src/ops/"), ("src/views/", "src/api/"), ("src/views/", "src/ops/")];

#[test]
fn rooms_import_only_what_they_may() {
    let imports = imports("src", &sources("src"));
    for (from, to) in NO_ARROWS {
        assert_eq!(arrows(&imports, from, to), [""; 0], "{from} must not import {to}");
    }
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

/// The banned words in the names of a source.
fn banned_names(text: &str) -> BTreeSet<&'static str> {
    let code = code_of(text);
    let used: BTreeSet<String> = names(&code).flat_map(|(_, name)| words(name)).collect();
    NAMES_BANNED.iter().filter(|(banned, _)| used.contains(*banned)).map(|(banned, _)| *banned).collect()
}

/// The banned turns of a text, also over the ends of lines.
fn banned_prose(text: &str) -> Vec<&'static str> {
    let text = unwrapped(text).to_lowercase();
    PROSE_BANNED.iter().filter(|banned| text.contains(**banned)).copied().collect()
}

#[test]
fn a_banned_word_is_found() {
    assert_eq!(banned_names("fn read_noticed() {} // a Notice\n"), BTreeSet::new());
    assert_eq!(banned_names("fn f() -> TheNotice {}"), BTreeSet::from(["notice"]));
    assert_eq!(banned_prose("//! Who it\n//! is told to."), ["is told"]);
}
