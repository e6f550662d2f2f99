//! Labels of a charge, and filters of lists by them.

use actors::engine::Engine;
use ledger::charge::Charge;
use ledger::personal::{Labels, Metadata, Payer, SealedFor};

use crate::problem::Problem;
use crate::reply::{single, wrong};

/// The labels of a charge, with the last change of its metadata; empty when the personal data was
/// erased.
pub fn labels(engine: &Engine, charge: &Charge, payer: &Payer) -> Labels {
    let labels = payer.labels.clone().unwrap_or_default();
    let open = |sealed| engine.keyring().open_value::<Metadata>(SealedFor::metadata(charge.id), sealed);
    match &charge.metadata {
        Some(changed) => Labels { metadata: open(changed).unwrap_or_default(), ..labels },
        None => labels,
    }
}

/// Which labels the items of a list are to have: all that are given.
#[derive(Debug)]
pub struct LabelFilter {
    /// The reference, exactly.
    pub reference: Option<String>,
    metadata: Vec<(String, String)>,
}

impl LabelFilter {
    /// Reads `reference`, and `metadata[key]` for each key.
    pub fn read(pairs: &[(String, String)]) -> Result<Self, Problem> {
        let mut metadata: Vec<(String, String)> = Vec::new();
        for (name, value) in pairs {
            let Some(key) = name.strip_prefix("metadata[").and_then(|name| name.strip_suffix(']')) else { continue };
            if metadata.iter().any(|(known, _)| known == key) {
                return Err(wrong("metadata", "ambiguous", "cada chave de metadata só pode vir uma vez".to_owned()));
            }
            metadata.push((key.to_owned(), value.clone()));
        }
        Ok(Self { reference: single(pairs, "reference")?.map(str::to_owned), metadata })
    }

    /// Whether no label is given.
    pub fn is_empty(&self) -> bool {
        self.reference.is_none() && self.metadata.is_empty()
    }

    /// Whether labels meet it.
    pub fn admits(&self, labels: &Labels) -> bool {
        let is_right = |(key, value): &(String, String)| labels.metadata.get(key) == Some(value);
        (self.reference.is_none() || self.reference == labels.reference) && self.metadata.iter().all(is_right)
    }
}
