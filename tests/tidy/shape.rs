//! Shape of the sources: imports between rooms, and words.

use std::collections::BTreeSet;

use crate::code::{code_of, names, words};
use crate::imports::{arrows, imports};
use crate::{sources, unwrapped};

/// Rooms, and the rooms that they must not import.
const NO_ARROWS: [(&str, &[&str]); 10] = [
    ("actors/src/store/", &["actors/src/engine", "actors/src/index/", "actors/src/journal/", "actors/src/read_model/"]),
    ("actors/src/index/", &["actors/src/engine", "actors/src/journal/", "actors/src/read_model/"]),
    ("actors/src/read_model/", &["actors/src/engine", "actors/src/journal/", "actors/src/actor.rs"]),
    ("actors/src/journal/", &["actors/src/engine", "actors/src/directory.rs", "actors/src/actor.rs"]),
    ("src/http/", &["src/api/", "src/ops/", "src/views/"]),
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
