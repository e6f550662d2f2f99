//! Imports between the files of a crate: for each file, the files whose names it uses.
//!
//! Paths count wherever they stand in the code, so that `crate::a::b()` is an import too. A
//! re-export (`pub use`) is no import of its own: a file that uses the name imports the file that
//! declares it. Code that only tests compile does not count, and neither does `mod`.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{code_of, names, without_tests};

type Module = Vec<String>;

/// Imported files of each file, by their places below the crate's folder of sources.
pub(crate) fn imports(folder: &str, sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let sources = sources.iter().filter(|(place, _)| !place.ends_with("main.rs"));
    let files: Vec<(Module, &String, String)> =
        sources.map(|(place, text)| (module(folder, place), place, code_of(text))).collect();
    let tests = files.iter().flat_map(|(module, _, code)| modules_of_tests(module, code)).collect::<Vec<_>>();
    let is_of_tests = |module: &Module| tests.iter().any(|tests| module.starts_with(tests));
    let files: Vec<_> = files.into_iter().filter(|(module, ..)| !is_of_tests(module)).collect();
    let places: BTreeMap<&Module, &String> = files.iter().map(|(module, place, _)| (module, *place)).collect();
    let mut exports: BTreeMap<Module, Module> = BTreeMap::new();
    let mut used: Vec<(&Module, Module)> = Vec::new();
    for (module, _, code) in &files {
        let code = without_tests(code);
        let is_exported = |at: usize| {
            let before = code[..at].rfind([';', '{', '}']).map_or(&code[..at], |end| &code[end..at]);
            let before = before.trim_start_matches([';', '{', '}']).trim();
            before.contains("pub") && before.ends_with("use")
        };
        for (at, path) in paths(&code) {
            let Some(path) = absolute(module, &path, &places) else { continue };
            match path.last() {
                Some(name) if is_exported(at) => {
                    drop(exports.insert([&module[..], std::slice::from_ref(name)].concat(), path))
                }
                _ => used.push((module, path)),
            }
        }
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, path) in used {
        let Some(place) = place(path, &exports, &places) else { continue };
        let own = places[module];
        if place != own {
            found.entry(own.clone()).or_default().insert(place.clone());
        }
    }
    found
}

/// The module of a file: `src/http/mod.rs` is `http`, `src/lib.rs` the root.
fn module(folder: &str, place: &str) -> Module {
    let place = place.strip_prefix(folder).unwrap_or(place).trim_matches('/');
    let place = place.strip_suffix(".rs").unwrap_or(place);
    let place = place.strip_suffix("mod").unwrap_or(place).trim_end_matches('/');
    place.split('/').filter(|part| !part.is_empty() && *part != "lib").map(str::to_owned).collect()
}

/// The modules that a file declares for tests alone.
fn modules_of_tests(module: &[String], code: &str) -> Vec<Module> {
    let declared = code.split("#[cfg(test)]").skip(1).filter_map(|behind| {
        let item = behind.split(['{', ';']).next()?;
        let mut words = names(item).map(|(_, word)| word).skip_while(|word| *word != "mod").skip(1);
        words.next().map(str::to_owned)
    });
    declared.map(|name| [module, &[name]].concat()).collect()
}

/// The paths of a code, each with its place: braces are several paths.
fn paths(code: &str) -> Vec<(usize, Module)> {
    let mut found = Vec::new();
    for (at, name) in names(code) {
        let is_first = !code[..at].trim_end().ends_with("::");
        let behind = &code[at + name.len()..];
        if is_first && behind.starts_with("::") {
            follow(behind, vec![name.to_owned()], &mut |path| found.push((at, path)));
        }
    }
    found
}

/// What follows a path: further parts, or several paths in braces. Gives what follows these.
fn follow<'a>(mut rest: &'a str, mut path: Module, found: &mut impl FnMut(Module)) -> &'a str {
    while let Some(behind) = rest.strip_prefix("::") {
        if let Some(mut inner) = behind.strip_prefix('{') {
            while !inner.starts_with('}') && !inner.is_empty() {
                match names(inner).next() {
                    Some((0, "as")) => {
                        let renamed = inner[2..].trim_start();
                        inner = renamed.trim_start_matches(|letter: char| letter.is_alphanumeric() || letter == '_');
                    }
                    Some((0, name)) => {
                        let path = [&path[..], &[name.to_owned()]].concat();
                        inner = follow(&inner[name.len()..], path, found);
                    }
                    _ => inner = &inner[inner.chars().next().map_or(0, char::len_utf8)..],
                }
            }
            return inner.strip_prefix('}').unwrap_or_default();
        }
        let Some((0, name)) = names(behind).next() else { break };
        path.push(name.to_owned());
        rest = &behind[name.len()..];
    }
    found(path.into_iter().filter(|part| part != "self").collect());
    rest
}

/// A path from the crate's root, if it leads into the crate.
fn absolute(module: &[String], path: &[String], places: &BTreeMap<&Module, &String>) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    let supers = rest.iter().take_while(|part| *part == "super").count();
    let rest = &rest[supers..];
    let (base, rest) = match first.as_str() {
        "crate" => (&module[..0], rest),
        "super" => (module.get(..module.len().checked_sub(1 + supers)?)?, rest),
        first if places.contains_key(&[module, &[first.to_owned()]].concat()) => (module, path),
        _ => return None,
    };
    Some([base, rest].concat())
}

/// The file that a path means.
fn place<'a>(
    mut path: Module,
    exports: &BTreeMap<Module, Module>,
    places: &BTreeMap<&Module, &'a String>,
) -> Option<&'a String> {
    let mut left = 10;
    while let Some(end) = (1..=path.len()).find(|end| exports.contains_key(&path[..*end])) {
        path = [&exports[&path[..end]][..], &path[end..]].concat();
        left -= 1;
        if left == 0 {
            break;
        }
    }
    (0..=path.len()).rev().find_map(|end| places.get(&path[..end].to_vec()).copied())
}

/// The files that import each other, directly or through others: each set once.
pub(crate) fn circles(imports: &BTreeMap<String, BTreeSet<String>>) -> Vec<BTreeSet<String>> {
    let reached = |from: &String| {
        let (mut found, mut left) = (BTreeSet::new(), vec![from]);
        while let Some(place) = left.pop() {
            for next in imports.get(place).into_iter().flatten() {
                if found.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        found
    };
    let all: BTreeMap<&String, BTreeSet<String>> = imports.keys().map(|place| (place, reached(place))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (place, reached) in &all {
        if reached.contains(*place) && !found.iter().any(|circle| circle.contains(*place)) {
            let is_back = |other: &&String| all.get(*other).is_some_and(|back| back.contains(*place));
            found.push(reached.iter().filter(is_back).cloned().collect());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let files: Vec<_> = files.iter().map(|(place, text)| ((*place).to_owned(), (*text).to_owned())).collect();
        imports("x/src", &files)
    }

    #[test]
    fn imports_are_found_wherever_they_stand() {
        let found = of(&[
            ("x/src/lib.rs", "mod a;\npub mod b;\nmod c;\n"),
            (
                "x/src/a.rs",
                "use crate::b::{deep::{self, Deep}, Shown as Seen};\n#[cfg(test)]\nmod tests { use crate::c::C; }\n",
            ),
            (
                "x/src/b/mod.rs",
                "mod deep;\nmod shown;\npub use self::shown::Shown;\nfn f() { deep::g(\"crate::c::C\") }\n",
            ),
            ("x/src/b/deep.rs", "// crate::a::A\nfn g() -> super::super::c::C {}\n"),
            ("x/src/b/shown.rs", "use super::Inner;\n"),
            ("x/src/c.rs", "use std::fmt;\n"),
        ]);
        let found: Vec<String> = found.iter().map(|(from, to)| format!("{from}: {to:?}")).collect();
        assert_eq!(
            found,
            [
                r#"x/src/a.rs: {"x/src/b/deep.rs", "x/src/b/shown.rs"}"#,
                r#"x/src/b/deep.rs: {"x/src/c.rs"}"#,
                r#"x/src/b/mod.rs: {"x/src/b/deep.rs"}"#,
                r#"x/src/b/shown.rs: {"x/src/b/mod.rs"}"#,
            ]
        );
    }

    #[test]
    fn a_circle_of_imports_is_found() {
        let circle = of(&[
            ("x/src/a.rs", "use crate::b::B;"),
            ("x/src/b/mod.rs", "pub(super) use self::inner::B;"),
            ("x/src/b/inner.rs", "fn f() { crate::c::C }"),
            ("x/src/c.rs", "use crate::{a, d};"),
            ("x/src/d.rs", ""),
        ]);
        let found: Vec<Vec<String>> = circles(&circle).into_iter().map(|circle| circle.into_iter().collect()).collect();
        assert_eq!(found, [["x/src/a.rs", "x/src/b/inner.rs", "x/src/c.rs"]]);
        assert!(circles(&of(&[("x/src/a.rs", "use crate::b::B;"), ("x/src/b.rs", "")])).is_empty());
    }
}
