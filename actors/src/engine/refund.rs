//! Repayments to payers: approved refunds and PIX payments that came too late, which a rail sends,
//! and accepted disputes, which it takes. The decision is durable before the rail is called. The
//! rail is asked, under the decision's own id, until it confirms; the confirmation is a Record of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use derived::records::LoadError;
use futures_util::TryFutureExt;
use futures_util::future::join_all;
use ledger::merchant::{FailRefund, MerchantState, Repayment, RepaymentKind};
use ledger::{Centavos, Event, GroupNumber, LedgerId, MerchantCommand, ObjectId, RailName, RailStamp, Timestamp};

use super::inquiry_times::{Inquiry, OrderFate};
use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, RECONCILED_AT_ONCE, Result, Unavailable, read};
use crate::journal::Permit;
use crate::rails::{Call, Repay, RepayAnswer};
use crate::resident::Outcome;

/// How long the caller of a decision waits for the rail; the schedule asks again.
const REPAY_ANSWER_MAX: Duration = Duration::from_millis(1_500);

/// A payment of which money goes back.
struct GivenPayment {
    /// The rail's id of it.
    payment: String,
    /// The name of its institution; none in a sandbox.
    rail: Option<RailName>,
    /// How much of it was given back by earlier decisions, centavos.
    before: Centavos,
}

impl Engine {
    /// Sends a command that may decide to give money back; if it does, orders the repayment from
    /// the rail.
    pub async fn command_and_repay(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        context: CommandContext,
    ) -> Result<Outcome> {
        let permit = Arc::clone(&context.permit);
        let outcome = self.command(group, command, context).await?;
        if let Outcome::Recorded(record) = &outcome {
            self.order_repayments(group, Repayment::decided_by(record), &permit).await;
        }
        Ok(outcome)
    }

    /// Orders repayments that were decided a moment ago from their rails.
    pub(super) async fn order_repayments(
        &self,
        group: GroupNumber,
        repayments: impl Iterator<Item = (ObjectId, Repayment)>,
        permit: &Arc<Permit>,
    ) {
        for (id, repayment) in repayments {
            let _asked_about_by_the_schedule = self.repay(group, id, &repayment, false, Arc::clone(permit)).await;
        }
    }

    /// Orders a merchant's repayments from the rails, those to card holders or those by PIX. Gives
    /// true when there may be more to confirm.
    pub(super) async fn repay_all(&self, group: GroupNumber, of_cards: bool, now: Timestamp) -> Result<bool> {
        let inquiries = self.shard(group).inquiries.clone();
        let look = move |books: &MerchantState, _: Timestamp| {
            let of_method = books.repayments(now).filter(|(_, one)| one.method.is_card() == of_cards);
            let waiting = of_method.filter(|(id, one)| inquiries.is_time(*id, one.since, now));
            waiting.take(RECONCILED_AT_ONCE).collect::<Vec<_>>()
        };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let repayments = read(&self.shard(group).merchants, LedgerId::Merchant(group), look, permit).await?;
        let outcomes = repayments.iter().map(|(id, repayment)| async move {
            let permit = self.admission.take(INSIDE_BYTES).await;
            self.repay_again((group, *id), repayment, permit).await
        });
        let ended = join_all(outcomes).await.into_iter().filter(|fate| *fate == OrderFate::Ended).count();
        Ok(ended == RECONCILED_AT_ONCE)
    }

    /// Asks for a repayment that may have been ordered before, or orders it, and notes the answer.
    pub(super) async fn repay_again(
        &self,
        (group, id): (GroupNumber, ObjectId),
        repayment: &Repayment,
        permit: Arc<Permit>,
    ) -> OrderFate {
        let fate = self.repay(group, id, repayment, true, permit).await.unwrap_or(OrderFate::Unknown);
        let Repayment { charge, amount, since, .. } = *repayment;
        let asked =
            Inquiry { of_charge: Some((charge, amount)), rail: None, since, at: self.now(), under_way_at: None };
        self.shard(group).inquiries.note(id, asked, fate);
        fate
    }

    /// Orders one repayment from its rail; asks for one that may have been ordered before
    /// (`is_repeat`). No answer changes nothing, and is an error.
    async fn repay(
        &self,
        group: GroupNumber,
        id: ObjectId,
        repayment: &Repayment,
        is_repeat: bool,
        permit: Arc<Permit>,
    ) -> Result<OrderFate> {
        let Repayment { charge, method, amount, kind, since, .. } = *repayment;
        let payment = self.payment_of(id, charge).inspect_err(|error| {
            tracing::error!(%error, id = %id.uuid(), "the payment that goes back can't be read");
        });
        let Some(GivenPayment { payment, rail, before }) = payment? else { return Ok(OrderFate::Unknown) };
        let patience = if is_repeat { RAIL_ANSWER_MAX } else { REPAY_ANSWER_MAX };
        let call = |is_repeat| {
            let payment = payment.clone();
            Repay { id, decided_at: since, charge, payment, amount, before, is_repeat }
        };
        let (named, turn, is_sent) = ((group, id), (patience, is_repeat), kind != RepaymentKind::Taken);
        let answer = if method.is_card() {
            let line = self.card_rail(rail.as_ref())?;
            let order = self.order(named, &line, turn, |rail, is_repeat| match is_sent {
                true => rail.repay(call(is_repeat)),
                false => taken(rail.accept_dispute(call(is_repeat))),
            });
            order.await
        } else {
            let line = self.pix_rail(rail.as_ref())?;
            let order = self.order(named, &line, turn, |rail, is_repeat| match is_sent {
                true => rail.repay(call(is_repeat)),
                false => taken(rail.accept_dispute(call(is_repeat))),
            });
            order.await
        };
        match answer.map_err(|_| Unavailable::OutcomeUnknown)? {
            RepayAnswer::Repaid(stamp) => {
                let context = CommandContext::of_rail(Some(stamp), permit);
                self.command(group, MerchantCommand::ConfirmRepayment { id }, context).await?;
                Ok(OrderFate::Ended)
            }
            RepayAnswer::Refused { reason } => {
                tracing::warn!(id = %id.uuid(), reason, "a rail refuses to give money back");
                let booked = self.refuse_repayment((group, charge), id, (kind, reason), permit).await;
                booked.inspect_err(|error| {
                    tracing::error!(%error, id = %id.uuid(), "a refused repayment can't be booked; it is ordered again");
                })
            }
            RepayAnswer::UnderWay => Ok(OrderFate::UnderWay),
        }
    }

    /// The payment that a repayment gives back; `None` if the charge has none.
    fn payment_of(&self, id: ObjectId, charge: ObjectId) -> Result<Option<GivenPayment>, LoadError> {
        let (mut payment, mut unordered, mut rail) = (None, None, None);
        let (mut before, mut is_decided) = (Centavos::ZERO, false);
        for record in self.records_about(charge)? {
            for event in &record.events {
                is_decided |= matches!(event, Event::RefundApproved { id: of, .. } | Event::DisputeAccepted { id: of, .. } if *of == id);
                match event {
                    Event::RefundApproved { charge: of, amount, .. }
                    | Event::DisputeAccepted { charge: of, amount, .. }
                        if *of == charge && !is_decided =>
                    {
                        before += *amount;
                    }
                    Event::RefundFailed { charge: of, amount, .. }
                    | Event::DisputeReversed { charge: of, amount, .. }
                        if *of == charge && !is_decided =>
                    {
                        before -= *amount;
                    }
                    Event::ChargeOpened { charge: of, rail: name, .. } if *of == charge => rail.clone_from(name),
                    Event::PixPaid { charge: of, end_to_end_id, .. } if *of == charge => {
                        payment = Some(end_to_end_id.clone());
                    }
                    Event::CardCaptured { charge: of, .. } if *of == charge => {
                        payment = Some(record.rail.as_ref().map(|rail| rail.id.clone()).unwrap_or_default());
                    }
                    // A capture by the word of operators has no stamp of the acquirer.
                    Event::RailWordGiven { id: of, happened: true, reference, .. } if *of == charge => {
                        payment = Some(reference.clone());
                    }
                    Event::LatePixReceived { charge: of, end_to_end_id, id: own, .. }
                        if *of == charge && own.unwrap_or(charge) == id =>
                    {
                        unordered = Some(end_to_end_id.clone());
                    }
                    _ => {}
                }
            }
        }
        // A payment that nobody asked for goes back whole.
        let before = if unordered.is_some() { Centavos::ZERO } else { before };
        Ok(unordered.or(payment).map(|payment| GivenPayment { payment, rail, before }))
    }

    /// Books that a rail refuses a repayment. A refund is taken back; a payment that nobody asked
    /// for stays owed to its payer, and is an operator's. An accepted dispute is not ended by it:
    /// no rail can refuse one.
    async fn refuse_repayment(
        &self,
        (group, charge): (GroupNumber, ObjectId),
        id: ObjectId,
        (kind, reason): (RepaymentKind, String),
        permit: Arc<Permit>,
    ) -> Result<OrderFate> {
        let command = match kind {
            RepaymentKind::Sent => MerchantCommand::FailRefund(Box::new(self.failed_refund(charge, id, reason)?)),
            RepaymentKind::Unordered => MerchantCommand::RefuseRepayment { id, reason },
            RepaymentKind::Taken => return Ok(OrderFate::Unknown),
        };
        self.command(group, command, permit).await.map(|_| OrderFate::Ended)
    }

    /// A refund that is taken back.
    pub(super) fn failed_refund(&self, charge: ObjectId, id: ObjectId, notes: String) -> Result<FailRefund> {
        let found = self.charge_facts(charge)?.zip(self.refund_money(id, charge)?);
        let (facts, money) = found.ok_or_else(|| Unavailable::contradicting("a refund that did not happen"))?;
        Ok(FailRefund { id, facts, money, notes, reversed: None })
    }
}

/// The answer to an accepted dispute, whose money a rail takes.
fn taken(answer: Call<'_, RailStamp>) -> Call<'_, RepayAnswer> {
    Box::pin(answer.map_ok(RepayAnswer::Repaid))
}
