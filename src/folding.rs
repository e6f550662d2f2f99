//! Text with its accents taken off, for searching and for channels that speak only ASCII.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The key by which a text is found: lower case, without accents, runs of white space as one space.
///
/// Two texts match when the key of one contains the key of the other.
pub fn search_key(text: &str) -> String {
    let mut key = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(without_accents(word).flat_map(char::to_lowercase).filter(|letter| !is_combining_mark(*letter)));
    }
    key
}

/// The characters of a text with compatibility forms resolved and accents taken off: `Ç` is `C`, `ﬁ` is `fi`.
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
