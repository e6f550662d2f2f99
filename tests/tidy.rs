//! A test that guards the code itself: which room may know what, and that the README's code map is true.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

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
    assert_eq!(dependencies("ledger/Cargo.toml"), ["minicbor", "rust_decimal", "thiserror", "uuid"]);
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
fn the_engine_knows_no_http_and_no_json() {
    let engine = dependencies("actors/Cargo.toml");
    for dependency in ["axum", "hyper", "hyper-util", "reqwest", "serde", "serde_json", "utoipa", "clap"] {
        assert!(!engine.iter().any(|name| name == dependency), "the engine must not depend on {dependency}");
    }
}

#[test]
fn one_file_names_sled_and_one_holds_the_unsafe_code() {
    let mut all = sources("actors/src");
    all.extend(sources("ledger/src"));
    all.extend(sources("src"));
    assert_eq!(naming(&all, " ::sled::"), ["actors/src/store/sled.rs"]);
    assert_eq!(naming(&all, "sled::"), ["actors/src/store/mod.rs", "actors/src/store/sled.rs"], "mod.rs: its module");
    assert_eq!(naming(&all, "unsafe "), ["actors/src/store/durable_sync.rs"]);
}

#[test]
fn the_code_map_names_every_file_and_no_other() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let map = readme.split("## Code map").nth(1).unwrap().split("## Follow").next().unwrap();
    let rooms = [("ledger/src", "**`ledger/`"), ("actors/src", "**`actors/`"), ("src", "**`src/`")];
    for (folder, heading) in rooms {
        let section = map.split(heading).nth(1).unwrap().split("\n**").next().unwrap();
        let files: Vec<String> = sources(folder).into_iter().map(|(name, _)| name).collect();
        for file in &files {
            let name = Path::new(file).file_name().unwrap().to_string_lossy().into_owned();
            let known = section.contains(&name) || matches!(name.as_str(), "lib.rs" | "mod.rs");
            assert!(known, "{file} is not in the code map");
        }
        let words = section.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"));
        for word in words.filter(|word| !word.starts_with("src/") && !word.starts_with("ledger/")) {
            let exists = files.iter().any(|file| file.ends_with(&format!("/{word}")));
            assert!(exists, "the code map names {word}, which {folder} does not have");
        }
    }
}
