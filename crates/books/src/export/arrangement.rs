//! Facts behind a row: how the payer pays, and when the posted money falls due.

use ledger::{Account, CardBrand, DisputeKind, Event, LedgerId, Minute, PaymentMethod};

/// How the charge of a fact is paid, as far as the Record says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// `pix`, `credit_card` or `debit_card`.
    pub(super) method: Option<&'static str>,
    /// `visa`, …; only of a capture.
    pub(super) brand: Option<&'static str>,
    /// 1 to 12; only of a capture.
    pub(super) installments: Option<u8>,
}

/// The arrangement of a fact; `brand` is that of the card that its Record captured.
pub(super) fn arrangement(event: &Event, brand: Option<CardBrand>) -> Arrangement {
    let by = |method: PaymentMethod| Arrangement { method: Some(method.name()), ..Arrangement::default() };
    match event {
        Event::CardCaptured { terms, .. } => Arrangement {
            brand: brand.map(CardBrand::name),
            installments: Some(terms.installments),
            ..by(terms.method)
        },
        Event::PixPaid { .. } | Event::LatePixReceived { .. } => by(PaymentMethod::Pix),
        Event::DisputeOpened { kind: DisputeKind::Med, .. } => by(PaymentMethod::Pix),
        Event::RefundApproved { method, .. }
        | Event::RefundFailed { method, .. }
        | Event::PayerRepaid { method, .. }
        | Event::RepaymentReversed { method, .. }
        | Event::DisputeReversed { method, .. }
        | Event::DisputeAccepted { method, .. } => by(*method),
        _ => Arrangement::default(),
    }
}

/// When the money of a posting falls due: only for what is pending, and only where all of the
/// amount falls due in one minute.
pub(super) fn due(event: &Event, ledger: LedgerId, account: Account) -> Option<Minute> {
    let is_of_recipient = match (ledger, account) {
        (LedgerId::Merchant(_), Account::Pending) | (_, Account::MerchantPending) => false,
        (LedgerId::Recipient(..), Account::Pending) | (_, Account::RecipientPending(_)) => true,
        _ => return None,
    };
    match event {
        Event::CardCaptured { splits_due, .. } if is_of_recipient => Some(*splits_due),
        Event::CardCaptured { seller_due, .. } => Some(*seller_due),
        Event::RefundFailed { give_backs, .. } if is_of_recipient => {
            same(give_backs.iter().filter(|part| !part.to_pending.is_zero()).map(|part| part.due))
        }
        Event::RefundApproved { seller_due, .. }
        | Event::RefundFailed { seller_due, .. }
        | Event::DisputeOpened { seller_due, .. }
        | Event::DisputeReversed { seller_due, .. }
        | Event::DisputeReleased { seller_due, .. } => *seller_due,
        Event::ClawbackRecovered { debts, .. } if is_of_recipient => {
            same(debts.iter().filter(|debt| !debt.from_pending.is_zero()).map(|debt| debt.due))
        }
        Event::ClawbackRecovered { debts, .. } => {
            same(debts.iter().filter(|debt| !debt.to_pending.is_zero()).map(|debt| debt.seller_due))
        }
        Event::SplitsAnticipated { splits, .. } => same(splits.iter().map(|split| Some(split.due))),
        Event::Matured { dues, .. } => same(dues.iter().map(|due| Some(due.minute))),
        _ => None,
    }
}

/// The minute that all of them name.
fn same(mut minutes: impl Iterator<Item = Option<Minute>>) -> Option<Minute> {
    let first = minutes.next().flatten();
    if minutes.all(|minute| minute == first) { first } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_minute_is_a_due_date() {
        let minutes =
            |of: &[Option<u32>]| same(of.iter().map(|minute| minute.map(Minute)).collect::<Vec<_>>().into_iter());
        for (of, expected) in [
            (&[][..], None),
            (&[Some(1)], Some(Minute(1))),
            (&[Some(1), Some(1)], Some(Minute(1))),
            (&[Some(1), Some(2)], None),
            (&[Some(1), None], None),
            (&[None, Some(1)], None),
        ] {
            assert_eq!(minutes(of), expected, "{of:?}");
        }
    }
}
