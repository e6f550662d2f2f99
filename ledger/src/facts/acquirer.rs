//! Facets of the acquirer's batches. The platform's money arrives, and what the acquirer owes goes
//! down; a fee that differs from the booked one changes the expense.

use crate::event::SettledLine;
use crate::facts::facets::{AuditSubject, AuditedFact, Facets};
use crate::merchant::file_id;
use crate::{Account, Batch, Centavos, SettledObject};

/// How many references of a file its audit row names.
const REFERENCES_NAMED: usize = 5;

/// Lines of a merchant's charges in a batch.
pub(super) fn settled(to: &mut impl Facets, batch: &Batch, lines: &[SettledLine]) {
    to.about_each(lines.iter().flat_map(|line| {
        let returned = match line.object {
            SettledObject::Installment(_) => None,
            SettledObject::Refund(id) | SettledObject::Dispute(id) => Some(id),
        };
        returned.into_iter().chain([line.charge])
    }));
    to.about(Batch::id_of(&batch.reference));
    to.objects(|| vec![("batch", batch.reference.clone())]);
    to.entries(|books| {
        let sum = |part: fn(&SettledLine) -> Centavos| lines.iter().map(part).sum::<Centavos>();
        let mut platform = books.platform(3);
        platform
            .debit_or_credit(Account::BankSettlement, sum(SettledLine::net))
            .debit_or_credit(Account::AcquirerMdr, sum(|line| line.fee - line.booked_fee))
            .debit_or_credit(Account::AcquirerReceivable, -sum(|line| line.gross - line.booked_fee));
        books.post(platform);
    });
}

/// Lines of a batch whose charges were never captured: the money is at the bank, and in suspense
/// until an operator has found out whose it is.
pub(super) fn unexplained(to: &mut impl Facets, batch: &Batch, net: Centavos) {
    to.about(Batch::id_of(&batch.reference));
    to.objects(|| vec![("batch", batch.reference.clone())]);
    to.entries(|books| {
        let mut house = books.house(2);
        house.debit_or_credit(Account::BankSettlement, net).debit_or_credit(Account::Suspense, -net);
        books.post(house);
    });
}

/// An operator rejected a settlement file that waited.
pub(super) fn file_rejected(to: &mut impl Facets, digest: &[u8; 32], notes: &str) {
    to.about(file_id(digest));
    let (action, kind, subject) = ("reject", "batch", AuditSubject::File);
    to.audited(|| AuditedFact { action, kind, subject, notes: Some(notes.to_owned()) });
}

/// An operator sent a settlement file; a second one approves it.
pub(super) fn file_sent(to: &mut impl Facets, digest: &[u8; 32], references: &[String], is_approved: bool) {
    to.about(file_id(digest));
    to.objects(|| references.iter().map(|reference| ("batch", reference.clone())).collect());
    to.audited(|| {
        let named: Vec<_> = references.iter().take(REFERENCES_NAMED).map(String::as_str).collect();
        let more = if references.len() > named.len() { ", …" } else { "" };
        let notes = Some(format!("{}{more}", named.join(", ")));
        let action = if is_approved { "approve" } else { "request" };
        AuditedFact { action, kind: "batch", subject: AuditSubject::File, notes }
    });
}
