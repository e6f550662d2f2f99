//! Facets of every fact, by noun: what each event means for the books, the statement, webhooks, the
//! index and the audit trail.
//!
//! [`say`] matches all events without a `_`, so the compiler asks for an arm for a new event. The
//! file of a noun has all facets of its facts, but one: a fact's name comes from its declaration
//! ([`Event::name`]).

mod acquirer;
mod anticipation;
mod card;
mod cashout;
mod charge;
mod dispute;
mod facets;
mod house;
mod maturity;
mod period;
mod pix;
mod recipient;
mod refund;
pub(crate) mod statement_line;
mod subscription;
pub(crate) mod webhook_event;
mod withdrawal;
mod write_off;

use crate::anticipation::Anticipation;
use crate::event::{Batch, Event};
use crate::id::{GroupNumber, LedgerId, RecipientNumber};
use crate::personal::SealedFor;

pub use facets::{AuditSubject, AuditedFact};
pub(crate) use facets::{Books, Effect, Facets, Lines, Outbox};
use webhook_event::WebhookEventKind;

/// Says every facet of an event to `to`, which takes those that it wants.
pub(crate) fn say(event: &Event, to: &mut impl Facets) {
    match event {
        Event::MerchantOpened { id, .. } => {
            to.personal(SealedFor::merchant);
            to.audited(|| AuditedFact::of("create", "merchant", *id));
        }
        Event::MerchantChanged { .. } => {
            to.personal(SealedFor::merchant);
            let (action, kind, subject) = ("change", "merchant", AuditSubject::Merchant);
            to.audited(|| AuditedFact { action, kind, subject, notes: None });
        }
        Event::ApiKeyCreated { id, .. } => to.audited(|| AuditedFact::of("create", "api_key", *id)),
        Event::ApiKeyRevoked { id } => to.audited(|| AuditedFact::of("revoke", "api_key", *id)),
        Event::ApiKeyChanged { id, .. } => to.audited(|| AuditedFact::of("change", "api_key", *id)),
        Event::WebhookSecretRotated { id, .. } => to.audited(|| AuditedFact::of("rotate_secret", "api_key", *id)),
        Event::ClockMoved { .. } => {
            to.audited(|| AuditedFact { action: "advance", kind: "clock", subject: AuditSubject::Clock, notes: None })
        }
        Event::PersonalDataRead { what } => {
            let (action, kind, subject) = ("read", "tax_ids", AuditSubject::Report);
            to.audited(|| AuditedFact { action, kind, subject, notes: Some(what.clone()) });
        }
        Event::RecipientApproved { number } => recipient::approved(to, *number),
        Event::RecipientRejected { number, notes } => recipient::rejected(to, *number, notes),
        Event::BankAccountChanged { number, active } => recipient::bank_account_changed(to, *number, *active),
        Event::BankAccountApproved { number } => recipient::bank_account_approved(to, *number),
        Event::BankAccountRejected { number, notes } => recipient::bank_account_rejected(to, *number, notes),
        Event::ChargeOpened { charge, terms, expires_at, .. } => charge::opened(to, *charge, terms, *expires_at),
        Event::CardCaptured { charge, terms, acquirer_mdr, seller, seller_due, splits_due, .. } => {
            card::captured(to, *charge, terms, *acquirer_mdr, seller, [*seller_due, *splits_due]);
        }
        Event::CardRefused { charge, .. } => card::refused(to, *charge),
        Event::CardUnanswered { charge } => card::unanswered(to, *charge),
        Event::CardStored { id, .. } => card::stored(to, *id),
        Event::PixPaid { charge, terms, seller, end_to_end_id, .. } => {
            pix::paid(to, *charge, terms, seller, end_to_end_id);
        }
        Event::PixCancelled { charge, recipients, .. } => pix::cancelled(to, *charge, recipients),
        Event::LatePixReceived { charge, amount, end_to_end_id } => {
            pix::received_late(to, *charge, *amount, end_to_end_id);
        }
        Event::Matured { dues, .. } => maturity::matured(to, dues),
        Event::AcquirerSettled { batch, lines } => acquirer::settled(to, batch, lines),
        Event::AcquirerBatchBooked { batch, .. } => to.about(Batch::id_of(&batch.reference)),
        Event::AcquirerUnexplained { batch, net, .. } => acquirer::unexplained(to, batch, *net),
        Event::HouseEntryRequested { id, reason, .. } => house::requested(to, *id, reason),
        Event::HouseEntryApproved { id, terms } => house::approved(to, *id, terms),
        Event::HouseEntryRejected { id, notes } => house::rejected(to, *id, notes),
        Event::WriteOffRequested { id, reason, .. } => write_off::requested(to, *id, reason),
        Event::WriteOffRejected { id, notes } => write_off::rejected(to, *id, notes),
        Event::DeficitWrittenOff { id, amount, reference } => write_off::of_deficit(to, *id, *amount, reference),
        Event::ClawbackWrittenOff { id, reference, debts } => write_off::of_clawback(to, *id, reference, debts),
        Event::PeriodCloseRequested { month } => period::close_requested(to, *month),
        Event::PeriodClosed { month, .. } => period::closed(to, *month),
        Event::DeficitRecovered { amount } => maturity::deficit_recovered(to, *amount),
        Event::ClawbackRecovered { debts } => maturity::clawback_recovered(to, debts),
        Event::SplitsAnticipated { id, splits, target_days, rate, .. } => {
            anticipation::anticipated(to, splits, &Anticipation::new(*id, splits, *target_days, *rate));
        }
        Event::WithdrawalRequested { id, amount, .. } => withdrawal::requested(to, *id, *amount),
        Event::WithdrawalApproved { id } => withdrawal::approved(to, *id),
        Event::WithdrawalPaid { id, amount, transfer_id, bank, .. } => {
            withdrawal::paid(to, *id, *amount, transfer_id, *bank);
        }
        Event::WithdrawalRejected { id, amount, notes } => withdrawal::rejected(to, *id, *amount, notes),
        Event::WithdrawalReturned { id, amount, bank, entry, .. } => {
            withdrawal::returned(to, *id, *amount, *bank, entry.as_ref());
        }
        Event::WithdrawalReturnRequested { id, reason, .. } => withdrawal::return_requested(to, *id, reason),
        Event::WithdrawalReturnRejected { id, notes } => withdrawal::return_rejected(to, *id, notes),
        Event::CashoutCreated { id, transaction_key, amount, .. } => {
            cashout::created(to, *id, *transaction_key, *amount)
        }
        Event::CashoutProcessed { id, amount, fee, end_to_end_id, transfer_id, bank } => {
            cashout::processed(to, *id, [*amount, *fee], (end_to_end_id, transfer_id), *bank);
        }
        Event::CashoutFailed { id, amount, .. } => cashout::failed(to, *id, *amount),
        Event::RefundRequested { id, charge, .. } => refund::requested(to, *id, *charge),
        Event::RefundRejected { id, charge, amount, notes } => refund::rejected(to, *id, *charge, *amount, notes),
        Event::RefundApproved {
            id,
            charge,
            amount,
            drawn,
            seller_due,
            commission,
            commission_pending,
            take_backs,
            ..
        } => refund::approved(
            to,
            refund::Approved {
                id: *id,
                charge: *charge,
                amount: *amount,
                drawn,
                seller_due: *seller_due,
                commission,
                commission_pending: *commission_pending,
                take_backs,
            },
        ),
        Event::PayerRepaid { id, charge, method, amount } => refund::repaid(to, *id, *charge, *method, *amount),
        Event::DisputeOpened { id, charge, amount, drawn, seller_due, .. } => {
            dispute::opened(to, *id, *charge, *amount, drawn, *seller_due);
        }
        Event::DisputeAccepted { id, charge, method, amount } => {
            dispute::accepted(to, *id, *charge, *method, *amount);
        }
        Event::AcceptanceConfirmed { id, charge } => refund::about(to, *id, *charge),
        Event::DisputeReleased { id, charge, amount, to_pending, seller_due, to_available } => dispute::released(
            to,
            dispute::Released {
                id: *id,
                charge: *charge,
                amount: *amount,
                to_pending: *to_pending,
                to_available: *to_available,
                seller_due: *seller_due,
            },
        ),
        Event::SubscriptionCreated { id, standing, .. } => {
            to.personal(|_| SealedFor::customer(*id));
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionCreated);
        }
        Event::SubscriptionBilled { id, charge, standing } => subscription::billed(to, *id, *charge, standing),
        Event::SubscriptionAdvanced { id, outcome, standing, .. } => {
            subscription::advanced(to, *id, *outcome, standing);
        }
        Event::SubscriptionPaused { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionPaused);
        }
        Event::SubscriptionResumed { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionResumed);
        }
        Event::SubscriptionCancelled { id, standing } => {
            subscription::changed(to, *id, standing, WebhookEventKind::SubscriptionCancelled);
        }
        // Registrations and plans: nothing moves, no webhook goes out, and lists of their own show
        // them.
        Event::RecipientRegistered { document, .. }
        | Event::RecipientRegisteredAgain { document, .. }
        | Event::RecipientChanged { document, .. } => to.personal(|_| SealedFor::recipient(*document)),
        Event::RecipientSubmitted { .. } | Event::PlanCreated { .. } | Event::PlanDisabled { .. } => {}
    }
}

/// Calls `take` for each effect of events on ledgers of owners other than the one that decided
/// them. A ledger may come more than once.
pub(crate) fn on_others(owner: LedgerId, events: &[Event], take: impl FnMut(LedgerId, Effect)) {
    if let Some(group) = owner.group() {
        let mut others = Others { group, take };
        events.iter().for_each(|event| say(event, &mut others));
    }
}

/// Takes the effects on other ledgers.
struct Others<F> {
    group: GroupNumber,
    take: F,
}

impl<F: FnMut(LedgerId, Effect)> Facets for Others<F> {
    fn others(&mut self, effects: impl Iterator<Item = (Option<RecipientNumber>, Effect)>) {
        for (number, effect) in effects {
            let ledger =
                number.map_or(LedgerId::Merchant(self.group), |number| LedgerId::Recipient(self.group, number));
            (self.take)(ledger, effect);
        }
    }
}
