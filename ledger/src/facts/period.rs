//! Facets of the closing of a month: requested by one operator, carried out by another.

use crate::facts::facets::{AuditSubject, AuditedFact, Facets};
use crate::terms::period_id;
use crate::time::Month;

/// An operator asked to close a month.
pub(super) fn close_requested(to: &mut impl Facets, month: Month) {
    to.about(period_id(month));
    to.audited(|| audited("request", month));
}

/// Another operator closed it.
pub(super) fn closed(to: &mut impl Facets, month: Month) {
    to.about(period_id(month));
    to.audited(|| audited("close", month));
}

fn audited(action: &'static str, month: Month) -> AuditedFact {
    AuditedFact { action, kind: "period", subject: AuditSubject::Period, notes: Some(month.to_string()) }
}
