//! Folding of text: accents and case removed, for searching and for formats that have only ASCII.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Search key of a text: lower case, without accents, each run of white space as one space.
///
/// Two texts match when the key of one contains the key of the other.
pub fn search_key(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        if word.is_ascii() {
            key.push_str(&word.to_ascii_lowercase());
        } else {
            key.extend(without_accents(word).flat_map(char::to_lowercase).filter(|letter| !is_combining_mark(*letter)));
        }
    }
    key
}

/// The characters of a text without accents, compatibility forms resolved: `Ç` gives `C`, `ﬁ` gives
/// `fi`.
pub fn without_accents(text: &str) -> impl Iterator<Item = char> {
    text.nfkd().filter(|letter| !is_combining_mark(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_ignores_case_accents_and_spacing() {
        let cases = [
            ("João da Conceição", "joao da conceicao"),
            ("JOA\u{303}O", "joao"),
            ("  Padaria \t Pão  Quente ", "padaria pao quente"),
            ("Ação ﬁscal Nº 1", "acao fiscal no 1"),
            ("İzmir", "izmir"),
            ("東京", "東京"),
            ("", ""),
        ];
        for (text, key) in cases {
            assert_eq!(search_key(text), key, "{text}");
        }
    }
}
