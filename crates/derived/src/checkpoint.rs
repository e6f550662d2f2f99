//! Checkpoints: signed statements of what the journal holds through a Record. Stored elsewhere,
//! they show whether anybody changed the past. Somebody with the master key can forge a journal and
//! hash it again, but can't change a statement that others hold.
//!
//! # Format 1
//! The signed text has a line for each field, each with an end of line:
//! ```text
//! centavo checkpoint 1
//! partition 0
//! sequence 1234
//! booked_at_ms 1795000000000
//! head <64 hexadecimal digits>
//! totals <64 hexadecimal digits>
//! ```
//! `head` is the hash of the block that ends with the Record. `totals` is the SHA-256 of the sums
//! of the platform's chart: a line `<code> <debits> <credits>` for each code of an account that is
//! not zero, in the order of the codes, in centavos. The signature is Ed25519 (RFC 8032).
//!
//! # Format 2
//! A checkpoint of a chain is `centavo checkpoint 2` and has a last line
//! `previous <64 hexadecimal digits>`: the SHA-256 of the text of the one before it, zeros for the
//! first. So a checkpoint that is left out between two others is noticed.

use std::fmt::Write as _;

use ledger::entry::Balance;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};

use store::{BlockHash, Partition, Sequence};

/// What the journal of a partition holds through a Record that ends a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The partition of the journal.
    pub partition: Partition,
    /// The last Record that counts.
    pub sequence: Sequence,
    /// When its block was booked, milliseconds since 1970 (UTC).
    pub booked_at_ms: i64,
    /// Hash of its block, and so of all before it.
    pub head: BlockHash,
    /// Digest of the sums of all accounts.
    pub totals: [u8; 32],
    /// Digest of the checkpoint that it follows in a chain, zeros for the first; none for one that
    /// stands alone.
    pub previous: Option<[u8; 32]>,
}

/// A checkpoint, and who stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    /// The statement.
    pub checkpoint: Checkpoint,
    /// Ed25519 key of the installation.
    pub public_key: [u8; 32],
    /// Signature of [`Checkpoint::text`].
    pub signature: [u8; 64],
}

impl Checkpoint {
    /// The text that is signed.
    pub fn text(&self) -> String {
        let Self { partition, sequence, booked_at_ms, head, totals, previous } = self;
        let (format, last) = match previous {
            None => (1, String::new()),
            Some(previous) => (2, format!("previous {}\n", hex(previous))),
        };
        format!(
            "centavo checkpoint {format}\npartition {}\nsequence {}\nbooked_at_ms {booked_at_ms}\nhead {}\ntotals {}\n\
             {last}",
            partition.0,
            sequence.0,
            hex(&head.0),
            hex(totals)
        )
    }

    /// SHA-256 of [`Checkpoint::text`], by which the next one names it.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.text()).into()
    }
}

impl SignedCheckpoint {
    /// True when the signature is that of the key.
    pub fn is_genuine(&self) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.public_key);
        key.verify(self.checkpoint.text().as_bytes(), &self.signature).is_ok()
    }
}

/// Digest of the sums of all accounts by the code of their kind; each place of the list is a code.
pub fn digest_of(totals: &[Balance]) -> [u8; 32] {
    let mut text = String::new();
    for (code, sum) in totals.iter().enumerate().filter(|(_, sum)| **sum != Balance::default()) {
        writeln!(text, "{code} {} {}", sum.debits, sum.credits).expect("text grows");
    }
    Sha256::digest(text).into()
}

/// The key that signs checkpoints.
pub struct Signer(Ed25519KeyPair);

impl Signer {
    /// The key of an Ed25519 seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed has 32 bytes"))
    }

    /// Signs the text of a checkpoint.
    pub fn sign(&self, checkpoint: Checkpoint) -> SignedCheckpoint {
        let (public_key, signature) = self.sign_text(&checkpoint.text());
        SignedCheckpoint { checkpoint, public_key, signature }
    }

    /// The public key, and the signature of a text.
    pub fn sign_text(&self, text: &str) -> ([u8; 32], [u8; 64]) {
        let public_key = self.0.public_key().as_ref().try_into().expect("a key has 32 bytes");
        let signature = self.0.sign(text.as_bytes());
        (public_key, signature.as_ref().try_into().expect("a signature has 64 bytes"))
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("text grows");
        text
    })
}

/// The bytes of hexadecimal digits, two for each.
pub fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if digits.len() != 2 * N || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_whole_or_not_at_all() {
        assert_eq!(unhex::<2>("00ff"), Some([0, 255]));
        for wrong in ["", "00f", "00ff0", "00fg", "00fé", "00+f"] {
            assert_eq!(unhex::<2>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_that_of_its_text_and_key() {
        let checkpoint = Checkpoint {
            partition: Partition(0),
            sequence: Sequence(7),
            booked_at_ms: 1_795_000_000_000,
            head: BlockHash([0xab; 32]),
            totals: digest_of(&[Balance::default(), Balance { debits: 5, credits: 3 }]),
            previous: None,
        };
        let signed = Signer::new(&[7; 32]).sign(checkpoint);
        assert!(signed.is_genuine());
        let later = Checkpoint { sequence: Sequence(8), ..checkpoint };
        let following = Signer::new(&[7; 32]).sign(Checkpoint { previous: Some(checkpoint.digest()), ..checkpoint });
        assert!(following.is_genuine() && following.checkpoint.text().contains("\nprevious "));
        let forged = [
            SignedCheckpoint { checkpoint, ..following },
            SignedCheckpoint { checkpoint: later, ..signed },
            SignedCheckpoint { public_key: Signer::new(&[8; 32]).sign(checkpoint).public_key, ..signed },
            SignedCheckpoint { signature: Signer::new(&[8; 32]).sign(checkpoint).signature, ..signed },
        ];
        assert!(forged.iter().all(|forged| !forged.is_genuine()));
        let totals: [u8; 32] = Sha256::digest("1 5 3\n").into();
        assert_eq!(checkpoint.totals, totals);
    }
}
