//! Facets of what is done to months: closing, and erasure of personal data; each requested by one
//! operator and carried out by another.

use crate::Month;
use crate::facts::facets::{AuditSubject, AuditedFact, Facets};
use crate::terms::{ERASURES, period_id};

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

/// An operator asked for the erasure of personal data through a month or took that back, or another
/// carried it out.
pub(super) fn erasure(to: &mut impl Facets, through: Month, action: &'static str) {
    to.about(ERASURES);
    to.audited(|| AuditedFact { kind: "personal_data", ..audited(action, through) });
}

fn audited(action: &'static str, month: Month) -> AuditedFact {
    AuditedFact { action, kind: "period", subject: AuditSubject::Period, notes: Some(month.to_string()) }
}
