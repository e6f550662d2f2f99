//! Facets of entries of the house ledger: requested by one operator, approved by another or
//! rejected.

use crate::ObjectId;
use crate::facts::facets::{AuditedFact, Facets, uuid};
use crate::terms::HouseEntryTerms;

/// An operator asked for an entry.
pub(super) fn requested(to: &mut impl Facets, id: ObjectId, terms: &HouseEntryTerms, reason: &str) {
    to.about(HouseEntryTerms::reference_id(&terms.reference));
    said(to, id, "request", reason);
}

/// Another operator approved it.
pub(super) fn approved(to: &mut impl Facets, id: ObjectId, terms: &HouseEntryTerms) {
    to.about(id);
    to.audited(|| AuditedFact::of("approve", "entry", id));
    to.objects(|| vec![uuid("house_entry", id), ("reference", terms.reference.clone())]);
    to.entries(|books| {
        let mut house = books.house(2);
        house.debit(terms.debit.account(), terms.amount).credit(terms.credit.account(), terms.amount);
        books.post(house);
    });
}

/// What an operator says of an entry of any kind that needs two: that it is asked for, or rejected.
pub(super) fn said(to: &mut impl Facets, id: ObjectId, action: &'static str, why: &str) {
    to.about(id);
    to.audited(|| AuditedFact::of(action, "entry", id).because(why));
}
