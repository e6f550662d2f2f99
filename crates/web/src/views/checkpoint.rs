//! Checkpoint as JSON: as it is answered, and as `verify --against` reads it.

use derived::checkpoint::{Checkpoint, SignedCheckpoint, hex, unhex};
use serde::{Deserialize, Serialize};
use store::{BlockHash, Partition, Sequence};
use utoipa::ToSchema;

/// A signed statement of what the journal holds through a Record. Whoever keeps it can show later
/// whether the past was changed.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckpointView {
    /// The partition of the journal.
    partition: u16,
    /// The last Record that counts.
    #[schema(minimum = 1, example = 42)]
    sequence: u64,
    /// When it was booked, milliseconds since 1970 (UTC).
    #[schema(example = 1_795_000_000_000_i64)]
    booked_at_ms: i64,
    /// Hash of the block that ends with it, and so of all before it: SHA-256, hexadecimal.
    head: String,
    /// Digest of the sums of all accounts of the platform's chart: SHA-256, hexadecimal.
    totals: String,
    /// Digest of the checkpoint that it follows: SHA-256 of its signed text, hexadecimal; absent
    /// for one that stands alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    /// The Ed25519 key of the installation, hexadecimal.
    public_key: String,
    /// The signature of the fields above, as the documents say, hexadecimal.
    #[schema(
        pattern = "^[0-9a-f]{128}$",
        example = "5f0c6a1e9d3b4c2a8e7f6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a39285f0c6a1e9d3b4c2a8e7f6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a3928"
    )]
    signature: String,
}

impl CheckpointView {
    /// What is shown of a checkpoint.
    pub fn of(signed: &SignedCheckpoint) -> Self {
        let Checkpoint { partition, sequence, booked_at_ms, head, totals, previous } = signed.checkpoint;
        Self {
            partition: partition.0,
            sequence: sequence.0,
            booked_at_ms,
            head: hex(&head.0),
            totals: hex(&totals),
            previous: previous.map(|previous| hex(&previous)),
            public_key: hex(&signed.public_key),
            signature: hex(&signed.signature),
        }
    }

    /// The checkpoint; `None` if digits are wrong or missing.
    pub fn read(&self) -> Option<SignedCheckpoint> {
        let checkpoint = Checkpoint {
            partition: Partition(self.partition),
            sequence: Sequence(self.sequence),
            booked_at_ms: self.booked_at_ms,
            head: BlockHash(unhex(&self.head)?),
            totals: unhex(&self.totals)?,
            previous: match &self.previous {
                None => None,
                Some(digits) => Some(unhex(digits)?),
            },
        };
        Some(SignedCheckpoint { checkpoint, public_key: unhex(&self.public_key)?, signature: unhex(&self.signature)? })
    }
}
