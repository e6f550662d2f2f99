//! Rust sources as text: comments, code without comments and strings, functions, names of types.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

/// The code of a source: comments and the contents of strings and characters are blanks. Lines
/// stay where they are.
pub(crate) fn code_of(text: &str) -> String {
    let mut letters = text.chars().peekable();
    let mut code = String::with_capacity(text.len());
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('/', Some('/')) => blank_until(&mut letters, &mut code, |rest| rest == Some(&'\n')),
            ('/', Some('*')) => blank_block(&mut letters, &mut code),
            ('r', Some('"' | '#')) if !is_of_name(before) => blank_raw(&mut letters, &mut code),
            ('"', _) => {
                code.push('"');
                blank_quoted(&mut letters, &mut code);
            }
            ('\'', Some(_)) => blank_character(&mut letters, &mut code),
            _ => code.push(letter),
        }
        before = letter;
    }
    code
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn blank(letter: char, code: &mut String) {
    code.push(if letter == '\n' { '\n' } else { ' ' });
}

fn blank_until(letters: &mut Peekable<Chars<'_>>, code: &mut String, is_end: impl Fn(Option<&char>) -> bool) {
    while !is_end(letters.peek()) {
        let Some(letter) = letters.next() else { return };
        blank(letter, code);
    }
}

/// A comment between `/*` and `*/`, without another inside.
fn blank_block(letters: &mut Peekable<Chars<'_>>, code: &mut String) {
    let mut before = ' ';
    for letter in letters.by_ref() {
        blank(letter, code);
        if (before, letter) == ('*', '/') {
            return;
        }
        before = letter;
    }
}

/// The rest of a string in quotes.
fn blank_quoted(letters: &mut Peekable<Chars<'_>>, code: &mut String) {
    while let Some(letter) = letters.next() {
        match letter {
            '"' => return code.push('"'),
            '\\' => {
                blank(letter, code);
                letters.next().into_iter().for_each(|letter| blank(letter, code));
            }
            letter => blank(letter, code),
        }
    }
}

/// A raw string, or a raw name: `r#type`.
fn blank_raw(letters: &mut Peekable<Chars<'_>>, code: &mut String) {
    let mut hashes = 0;
    while letters.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    if letters.next_if_eq(&'"').is_none() {
        return;
    }
    code.push('"');
    let mut seen = None;
    while seen != Some(hashes) {
        let Some(letter) = letters.next() else { return };
        seen = match (letter, seen) {
            ('"', _) => Some(0),
            ('#', Some(seen)) => Some(seen + 1),
            _ => None,
        };
        blank(letter, code);
    }
    code.push('"');
}

/// A character in quotes. A lifetime has no second quote, and stays.
fn blank_character(letters: &mut Peekable<Chars<'_>>, code: &mut String) {
    let ahead: Vec<char> = letters.clone().take(2).collect();
    let is_character = ahead[0] == '\\' || ahead.get(1) == Some(&'\'');
    if !is_character {
        return code.push('\'');
    }
    code.push(' ');
    let is_escaped = letters.next() == Some('\\');
    if is_escaped {
        letters.next();
    }
    letters.by_ref().find(|letter| *letter == '\'');
}

/// The same code without what only tests compile: modules after `#[cfg(test)]`.
pub(crate) fn without_tests(code: &str) -> String {
    let mut result = String::new();
    let mut rest = code;
    while let Some((before, behind)) = rest.split_once("#[cfg(test)]") {
        result.push_str(before);
        let item = behind.find(['{', ';']).map_or("", |at| &behind[..at]);
        let end = match behind[item.len()..].chars().next() {
            Some('{') => item.len() + block(&behind[item.len()..]),
            _ => item.len() + 1,
        };
        rest = behind.get(end..).unwrap_or_default();
    }
    result + rest
}

/// The bytes of a block that begins with its brace.
fn block(code: &str) -> usize {
    let mut depth = 0;
    for (at, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// The names of a code, each with its place.
pub(crate) fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = code.char_indices().filter(|(at, letter)| {
        let before = code[..*at].chars().next_back().unwrap_or(' ');
        is_of_name(*letter) && !letter.is_ascii_digit() && !is_of_name(before)
    });
    starts.map(|(at, _)| {
        let end = code[at..].find(|letter| !is_of_name(letter)).unwrap_or(code.len() - at);
        (at, &code[at..at + end])
    })
}

/// The functions of a source with more lines than these, from `fn` to the closing brace, tests
/// apart.
pub(crate) fn long_functions(text: &str, lines_max: usize) -> Vec<(String, usize)> {
    let code = without_tests(&code_of(text));
    let mut found = Vec::new();
    for (at, _) in names(&code).filter(|(_, word)| *word == "fn") {
        let Some((_, name)) = names(&code[at + 2..]).next() else { continue };
        // The body begins at the first brace outside of brackets; a declaration ends before it.
        let mut depth = 0;
        let end = code[at..].char_indices().find(|(_, letter)| {
            match letter {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                _ => {}
            }
            depth == 0 && matches!(letter, '{' | ';')
        });
        let Some((body, '{')) = end else { continue };
        let function = &code[at..at + body + block(&code[at + body..])];
        let lines = function.lines().count();
        if lines > lines_max {
            found.push((name.to_owned(), lines));
        }
    }
    found
}

/// The names that more than one type has which other files can see, with their places. A type that
/// its file keeps to itself may have any name.
pub(crate) fn types_named_twice(sources: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (place, text) in sources {
        let code = without_tests(&code_of(text));
        for line in code.lines() {
            let Some(behind) = line.strip_prefix("pub") else { continue };
            let declared = match behind.strip_prefix('(') {
                Some(reach) => reach.split_once(')').map_or("", |(_, declared)| declared),
                None => behind,
            };
            let mut words = names(declared).map(|(_, word)| word);
            let kind = words.next().unwrap_or_default();
            if declared.starts_with(' ') && matches!(kind, "struct" | "enum" | "trait" | "type" | "union") {
                places.entry(words.next().unwrap_or_default().to_owned()).or_default().push(place.clone());
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}

/// The lines that are comments and longer than these columns.
pub(crate) fn wide_comments(text: &str, columns_max: usize) -> Vec<usize> {
    let is_wide = |line: &str| line.trim_start().starts_with("//") && line.chars().count() > columns_max;
    (1..).zip(text.lines()).filter(|(_, line)| is_wide(line)).map(|(number, _)| number).collect()
}

/// The first lines of doc comments that are a single word, or only name the module.
pub(crate) fn empty_comments(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut comment: Vec<(usize, &str)> = Vec::new();
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        match line.trim_start().strip_prefix("///") {
            Some(said) => comment.push((number, said.trim())),
            None if comment.is_empty() => {}
            None => {
                let said = comment.iter().map(|(_, said)| *said).collect::<Vec<_>>().join(" ");
                if said.split_whitespace().count() <= 1 || said.trim() == "See the module." {
                    found.push(comment[0].0);
                }
                comment.clear();
            }
        }
    }
    found
}

/// Words of a comment that say nothing of an item.
const EMPTY_WORDS: [&str; 20] = [
    "a", "an", "the", "of", "its", "one", "this", "in", "to", "is", "for", "by", "as", "and", "or", "it", "that",
    "with", "s", "each",
];

/// The doc comments of functions, types and constants that only repeat the name below them, by the
/// lines on which they begin. Fields and variants may: the compiler asks for a comment on each. So
/// may what the description of the interface shows.
pub(crate) fn repeating_comments(text: &str) -> Vec<usize> {
    const ITEMS: [&str; 9] = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "union"];
    let singular =
        |word: &str| word.strip_suffix("ies").map_or(word.trim_end_matches('s').to_owned(), |y| format!("{y}y"));
    let (mut found, mut begin, mut said, mut attributes) = (Vec::new(), 0, String::new(), String::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("///") {
            begin = if said.is_empty() { number } else { begin };
            said.push_str(comment);
            continue;
        }
        if line.starts_with('#') && !said.is_empty() {
            attributes.push_str(line);
            continue;
        }
        let mut behind = names(line)
            .map(|(_, name)| name)
            .skip_while(|name| matches!(*name, "pub" | "crate" | "super" | "async" | "unsafe"));
        let is_item = behind.next().is_some_and(|first| ITEMS.contains(&first));
        let name = behind.find(|name| *name != "fn" && *name != "unsafe");
        let is_described = ["ToSchema", "utoipa"].iter().any(|shown| attributes.contains(shown));
        if let (true, false, false, Some(name)) = (is_item, is_described, said.is_empty(), name) {
            // Each capital begins a word; a constant has nothing else.
            let is_constant = !name.contains(char::is_lowercase);
            let name = if is_constant { name.to_lowercase() } else { name.to_owned() };
            let of_name: Vec<String> = words(&name).iter().map(|word| singular(word)).collect();
            let lower = said.to_lowercase();
            let mut said = lower.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
            if said.all(|word| EMPTY_WORDS.contains(&word) || of_name.contains(&singular(word))) {
                found.push(begin);
            }
        }
        said.clear();
        attributes.clear();
    }
    found
}

/// The words of a name: `of_read_model` and `OfReadModel` have the same.
pub(crate) fn words(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut word = String::new();
    for letter in name.chars().chain(['_']) {
        if (letter == '_' || letter.is_uppercase()) && !word.is_empty() {
            found.insert(std::mem::take(&mut word));
        }
        if letter != '_' {
            word.extend(letter.to_lowercase());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_comments_and_strings() {
        let text = "a // b \"\n\"c // d\" 'e' '\\'' '\"' f::<'g>(r#\"h \" i\"#, r#type) /* j\nk */ l";
        let code = code_of(text);
        let found: Vec<&str> = names(&code).map(|(_, name)| name).collect();
        assert_eq!(found, ["a", "f", "g", "type", "l"]);
        assert_eq!(code.lines().count(), text.lines().count());
        assert_eq!(without_tests("a #[cfg(test)] mod t { {b} } c #[cfg(test)] mod u; d"), "a  c  d");
    }

    #[test]
    fn a_long_function_is_found() {
        let text = "trait A { fn no(&self, of: [u8; 2]); }\nfn short() { \"\n\n\n\" }\nasync fn long(\n) -> u8 {\n    fn inner() {\n    }\n1}\n";
        assert_eq!(long_functions(text, 4), [("long".to_owned(), 5)]);
        assert_eq!(long_functions(text, 1).len(), 3);
    }

    #[test]
    fn a_type_that_is_named_twice_is_found() {
        let sources = [
            ("a.rs", "pub struct Page;\npub(super) struct Line;\nstruct Own;\n"),
            ("b.rs", "pub enum Page<T> {}\npub(in crate::b) type Line = u8;\npub struct Own;\n"),
            ("c.rs", "impl X {\n    pub type Page = u8;\n}\n#[cfg(test)]\nmod t {\npub struct Own;\n}\n"),
        ];
        let sources = sources.map(|(place, text)| (place.to_owned(), text.to_owned()));
        let twice = types_named_twice(&sources);
        let both = vec!["a.rs".to_owned(), "b.rs".to_owned()];
        assert_eq!(
            twice.into_iter().collect::<Vec<_>>(),
            [("Line".to_owned(), both.clone()), ("Page".to_owned(), both)]
        );
    }

    #[test]
    fn a_wide_or_an_empty_comment_is_found() {
        assert_eq!(wide_comments("    // é23\n    // é234\n1234567890123 // é\n", 10), [2]);
        assert_eq!(empty_comments("/// Which.\na\n/// Which\n/// one.\n    ///\nb\n/// See the module.\n"), [1, 7]);
        assert_eq!(words("theReadModel_of"), words("of_the_read_model"));
    }
}
