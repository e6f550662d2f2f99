//! Languages of pages for people, and the choice between them.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;

/// A language in which pages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// Portuguese of Brazil.
    #[default]
    Portuguese,
    /// English, the language of the code.
    English,
}

impl Language {
    /// Its tag (BCP 47).
    pub fn tag(self) -> &'static str {
        match self {
            Self::Portuguese => "pt-BR",
            Self::English => "en",
        }
    }

    /// The language of a tag, by its first part; none when pages are not written in it.
    pub fn tagged(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', ';']).next().unwrap_or_default().trim();
        match primary.to_ascii_lowercase().as_str() {
            "pt" => Some(Self::Portuguese),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// The language that a browser prefers: the first of `Accept-Language` that pages are written
    /// in, or Portuguese. Browsers send the preferred one first, so the weights are not compared.
    pub fn preferred(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        accepted.split(',').find_map(Self::tagged).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_known_language_is_taken() {
        for (accepted, expected) in [
            ("", Language::Portuguese),
            ("de,fr;q=0.5", Language::Portuguese),
            ("de-DE, en-US;q=0.7, pt;q=0.3", Language::English),
            ("PT-br,en", Language::Portuguese),
            ("en;q=0.9", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_str(accepted).unwrap());
            assert_eq!(Language::preferred(&headers), expected, "{accepted}");
        }
    }
}
