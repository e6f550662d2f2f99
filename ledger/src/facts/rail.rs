//! Facets of refused repayments, and of outcomes by the word of operators.

use crate::ObjectId;
use crate::facts::facets::{AuditedFact, Facets, uuid};

/// An operator said what became of an order.
pub(super) fn word_asked(to: &mut impl Facets, id: ObjectId, reason: &str) {
    to.about(id);
    to.audited(|| AuditedFact::of("request", "rail_item", id).because(reason));
}

/// Another operator said the same. The event before, which ends the order, is about it.
pub(super) fn word_given(to: &mut impl Facets, id: ObjectId, reason: &str) {
    to.audited(|| AuditedFact::of("settle", "rail_item", id).because(reason));
}

/// The rail refuses to send a payment back.
pub(super) fn not_repaid(to: &mut impl Facets, id: ObjectId, charge: ObjectId) {
    to.about(id);
    to.about(charge);
    to.objects(|| vec![uuid("repayment", id), ("txid", charge.txid())]);
}
