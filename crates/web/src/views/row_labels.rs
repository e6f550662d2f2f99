//! Labels for the rows of exports and reports, opened as they are now.

use std::io;
use std::sync::Arc;

use actors::engine::Engine;
use books::export::{Exporter, Request};
use books::labels::{LabelsOf, RowLabels};
use ledger::{Cashout, Charge, Labels, ObjectId, Refund};

use crate::views::cashout::destination;
use crate::views::charge::payer;
use crate::views::fiscal::fiscal_documents;
use crate::views::labels::labels;
use crate::views::refund::refund_labels;

/// The exporter of a request, with `labels` where it asks for them: true shows the CPFs of issuers.
pub fn exporter(engine: &Arc<Engine>, request: &Request, labels: Option<bool>) -> Exporter {
    let exporter = Exporter::new(request.clone());
    match labels {
        Some(is_whole) => exporter.labelled(row_labels(engine, is_whole)),
        None => exporter,
    }
}

/// Labels of the charge, cashout or refund that a row is about, for exports and reports. Erased
/// ones are left out; `is_whole` shows the CPFs of issuers. For a thread that may wait.
pub fn row_labels(engine: &Arc<Engine>, is_whole: bool) -> LabelsOf {
    let engine = Arc::clone(engine);
    Box::new(move |objects| {
        let id = |name| {
            let found = objects.iter().find(|(of, _)| *of == name);
            found.and_then(|(_, id)| ObjectId::parse(id))
        };
        let charge = id("txid").map(|id| engine.object::<Charge>(id)).transpose().map_err(io::Error::other)?.flatten();
        let found = match (id("cashout"), id("refund"), &charge) {
            (Some(id), ..) => {
                let cashout = engine.object::<Cashout>(id).map_err(io::Error::other)?;
                cashout.and_then(|cashout| destination(&engine, &cashout).labels)
            }
            (_, Some(id), _) => {
                let refund = engine.object::<Refund>(id).map_err(io::Error::other)?;
                refund.and_then(|refund| refund_labels(&engine, &refund))
            }
            (.., Some(charge)) => Some(labels(&engine, charge, &payer(&engine, charge.id, charge.payer.as_ref()))),
            _ => None,
        };
        let Labels { reference, metadata } = found.unwrap_or_default();
        let documents = charge.map(|charge| fiscal_documents(&engine, &charge, is_whole)).unwrap_or_default();
        let documents: Vec<_> = documents.into_iter().map(|document| document.key).collect();
        Ok(RowLabels {
            reference,
            metadata: (!metadata.is_empty()).then(|| serde_json::json!(metadata).to_string()),
            fiscal_documents: (!documents.is_empty()).then(|| documents.join(" ")),
        })
    })
}
