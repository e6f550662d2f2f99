//! Token by which the processes of an installation know each other: made of their master key.

use axum::http::header::{HeaderMap, HeaderName, HeaderValue};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Proof that another process of the installation sends.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("centavo-peer-token");

/// The token of a master key.
#[derive(Clone)]
pub struct PeerToken(HeaderValue);

impl PeerToken {
    /// The token of a master key: HMAC-SHA256 in hexadecimal digits.
    pub fn of(master_key: &[u8; 32]) -> Self {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(master_key).expect("HMAC takes any key");
        mac.update(b"centavo peer token 1");
        let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(HeaderValue::try_from(digits).expect("hexadecimal digits are allowed in a header"))
    }

    /// Adds the proof to the headers of a request.
    pub(super) fn put_in(&self, headers: &mut HeaderMap) {
        headers.insert(TOKEN, self.0.clone());
    }

    /// Whether another process of the installation sends these headers.
    pub(super) fn opens(&self, headers: &HeaderMap) -> bool {
        let mut sent = headers.get_all(TOKEN).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return false };
        sent.as_bytes().ct_eq(self.0.as_bytes()).into()
    }
}

#[cfg(test)]
impl PeerToken {
    pub(super) fn text(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }
}
