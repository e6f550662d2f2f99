//! Text of an API key: how it is made, and what it names.

use ledger::id::ObjectId;
use sha2::{Digest, Sha256};

/// An API key: `test_` or `live_`, the key's id, then its secret, all hexadecimal. The id finds the
/// key; the digest of the whole text, compared in constant time, proves it.
pub struct ApiKeyText;

impl ApiKeyText {
    /// The text of a new key.
    pub fn of(sandbox: bool, id: ObjectId, secret: [u8; 24]) -> String {
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}{}{secret}", Self::prefix(sandbox), id.txid())
    }

    /// Digest of a key: the only part of it that is stored.
    pub fn digest(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }

    /// The id that the text of a key names; `None` if it has not the form of a key.
    pub fn id(sandbox: bool, text: &str) -> Option<ObjectId> {
        ObjectId::parse(text.strip_prefix(Self::prefix(sandbox))?.get(..32)?)
    }

    /// How the text of a key begins: a test key is never taken for a live one.
    pub fn prefix(sandbox: bool) -> &'static str {
        if sandbox { "test_" } else { "live_" }
    }
}
