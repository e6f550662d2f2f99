//! Languages of pages for people, and the choice between them.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT_LANGUAGE;
use serde::{Deserialize, Serialize};

/// A language in which pages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// Portuguese of Brazil.
    #[default]
    Portuguese,
    /// English, the language of the code.
    English,
}

/// One text in both languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    pt: &'static str,
    en: &'static str,
}

/// A text in Portuguese and in English.
pub const fn word(pt: &'static str, en: &'static str) -> Word {
    Word { pt, en }
}

impl Word {
    /// The text in a language.
    pub fn text(self, language: Language) -> &'static str {
        match language {
            Language::Portuguese => self.pt,
            Language::English => self.en,
        }
    }
}

impl Language {
    /// Its tag (BCP 47).
    pub fn tag(self) -> &'static str {
        match self {
            Self::Portuguese => "pt-BR",
            Self::English => "en",
        }
    }

    /// The language of a tag, by its first part; `None` if pages are not written in it.
    pub fn tagged(tag: &str) -> Option<Self> {
        let primary = tag.split(['-', ';']).next().unwrap_or_default().trim();
        match primary.to_ascii_lowercase().as_str() {
            "pt" => Some(Self::Portuguese),
            "en" => Some(Self::English),
            _ => None,
        }
    }

    /// The language that a browser prefers: of those of `Accept-Language` that pages are written
    /// in, the one of the greatest weight, and of equal weights the first; else Portuguese. A
    /// language of weight 0 is not accepted.
    pub fn preferred(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut preferred = (0.0, Self::default());
        for part in accepted.split(',') {
            if let Some(language) = Self::tagged(part)
                && weight(part) > preferred.0
            {
                preferred = (weight(part), language);
            }
        }
        preferred.1
    }
}

/// The weight of a part of `Accept-Language`: 1 unless it says so, and 0 where it is no weight.
fn weight(part: &str) -> f32 {
    let weight = part.split(';').skip(1).find_map(|parameter| parameter.trim().strip_prefix("q="));
    weight.map_or(1.0, |weight| weight.trim().parse().ok().filter(|weight| (0.0..=1.0).contains(weight)).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_known_language_of_the_greatest_weight_is_taken() {
        for (accepted, expected) in [
            ("", Language::Portuguese),
            ("de,fr;q=0.5", Language::Portuguese),
            ("de-DE, en-US;q=0.7, pt;q=0.3", Language::English),
            ("PT-br,en", Language::Portuguese),
            ("en;q=0.9", Language::English),
            ("en;q=0", Language::Portuguese),
            ("en;q=0, pt;q=0.1", Language::Portuguese),
            ("pt;q=0.5, en;q=0.8", Language::English),
            ("en; q=0.5, pt-BR ; q=0.5", Language::English),
            ("pt;q=0.2,de,en", Language::English),
            ("en;q=x, pt;q=0.1", Language::Portuguese),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_str(accepted).unwrap());
            assert_eq!(Language::preferred(&headers), expected, "{accepted}");
        }
    }
}
