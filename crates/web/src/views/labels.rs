//! Labels as JSON, and those of a charge with its changes.

use actors::engine::Engine;
use ledger::{Charge, Labels, Metadata, Payer};
use serde::Serialize;
use utoipa::ToSchema;

/// The labels of a charge, with the last change of its metadata; empty when the personal data was
/// erased.
pub fn labels(engine: &Engine, charge: &Charge, payer: &Payer) -> Labels {
    engine.labels_now(charge.id, payer.labels.clone(), charge.metadata.as_ref()).unwrap_or_default()
}

/// The caller's labels in a view, where there are some.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct LabelsView {
    /// The caller's reference, where the request had one.
    #[schema(min_length = 1, max_length = 64, example = "pedido-1042")]
    pub reference: Option<String>,
    /// The caller's values by key, where there are any.
    #[schema(value_type = Option<HashMap<String, String>>, example = json!({"loja": "azul"}))]
    pub metadata: Option<Metadata>,
}

impl From<Option<Labels>> for LabelsView {
    fn from(labels: Option<Labels>) -> Self {
        let Labels { reference, metadata } = labels.unwrap_or_default();
        Self { reference, metadata: Some(metadata).filter(|metadata| !metadata.is_empty()) }
    }
}
