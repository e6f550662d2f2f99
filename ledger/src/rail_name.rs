//! Names of the institutions of an installation, as Records keep them.

use minicbor::{Decode, Encode};

/// The name that an installation gives to an institution: 1 to 16 small letters, digits and `_`,
/// beginning with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(transparent)]
pub struct RailName(#[n(0)] String);

impl RailName {
    /// The name in a text; `None` if it has other characters or another length.
    pub fn parse(text: &str) -> Option<Self> {
        let begins = text.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        let is_known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        (begins && text.len() <= 16 && text.bytes().all(is_known)).then(|| Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for RailName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
