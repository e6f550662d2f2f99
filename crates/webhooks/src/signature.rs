//! Signatures of webhooks: `X-Service-Signature` (interface section 6), and beside it the headers
//! of the Standard Webhooks specification, version 1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use derived::seal::{SealError, random_bytes};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// A new secret: `whsec_` and the base64 of 32 random bytes (the specification wants 24 to 64).
pub fn new_secret() -> Result<String, SealError> {
    Ok(format!("{PREFIX}{}", STANDARD.encode(random_bytes::<32>()?)))
}

/// `X-Service-Signature`: HMAC-SHA256 of the raw body in lower-case hexadecimal digits. The key is
/// the whole text of the secret.
pub(super) fn service_signature(secret: &str, body: &[u8]) -> String {
    let mac = mac(secret.as_bytes(), &[body]);
    mac.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One entry of `webhook-signature`: `v1,` and the base64 of an HMAC-SHA256 of `id.timestamp.body`.
/// The key is the decoded base64 of the secret. `timestamp` is in seconds since 1970.
pub(super) fn standard_signature(secret: &str, id: &str, timestamp: i64, body: &[u8]) -> String {
    let text = secret.strip_prefix(PREFIX).unwrap_or(secret);
    let key = STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_vec());
    let signed = mac(&key, &[id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body]);
    format!("v1,{}", STANDARD.encode(signed))
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).expect("HMAC takes any key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's own test suites.
    #[test]
    fn the_standard_signature_is_that_of_the_specification() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed =
            standard_signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    /// Test case 2 of RFC 4231: the key is the text as it stands.
    #[test]
    fn the_service_signature_is_keyed_with_the_whole_text() {
        assert_eq!(
            service_signature("Jefe", b"what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_new_secret_has_256_bits_and_is_new() {
        let [first, second] = [new_secret().unwrap(), new_secret().unwrap()];
        assert_ne!(first, second);
        assert_eq!(STANDARD.decode(first.strip_prefix(PREFIX).unwrap()).unwrap().len(), 32);
    }
}
