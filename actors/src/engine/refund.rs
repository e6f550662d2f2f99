//! Repayments to payers: approved refunds and PIX payments that came too late, which a rail sends,
//! and accepted disputes, which it takes. The decision is durable before the rail is called. The
//! rail is asked, under the decision's own id, until it confirms; the confirmation is a Record of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::{FailRefund, MerchantCommand, Repayment, RepaymentKind};

use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Unavailable};
use crate::journal::Permit;
use crate::rails::{RailError, Repay, RepayAnswer};
use crate::resident::Outcome;

/// How long the caller of a decision waits for the rail; the schedule asks again.
const REPAY_ANSWER_MAX: Duration = Duration::from_millis(1_500);

impl Engine {
    /// Sends a command that may decide to give money back; if it does, orders the repayment from
    /// the rail.
    pub async fn command_and_repay(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
        context: CommandContext,
    ) -> Result<Outcome, Unavailable> {
        let permit = Arc::clone(&context.permit);
        let outcome = self.command(group, command, context).await?;
        if let Outcome::Recorded(record) = &outcome {
            for (id, repayment) in Repayment::decided_by(record) {
                self.repay(group, id, &repayment, REPAY_ANSWER_MAX, Arc::clone(&permit)).await;
            }
        }
        Ok(outcome)
    }

    /// Orders repayments from the rails; gives how many were confirmed.
    pub(super) async fn repay_all(&self, group: GroupNumber, repayments: &[(ObjectId, Repayment)]) -> usize {
        let told = repayments.iter().map(|(id, repayment)| async move {
            let permit = self.admission.take(INSIDE_BYTES).await;
            self.repay(group, *id, repayment, RAIL_ANSWER_MAX, permit).await
        });
        join_all(told).await.into_iter().filter(|sent| *sent).count()
    }

    /// Orders one repayment from its rail. Gives true when it was confirmed or refused, and that is
    /// booked; no answer changes nothing.
    async fn repay(
        &self,
        group: GroupNumber,
        id: ObjectId,
        repayment: &Repayment,
        patience: Duration,
        permit: Arc<Permit>,
    ) -> bool {
        let Some(rails) = &self.rails else { return false };
        let Repayment { charge, method, amount, kind, since } = *repayment;
        let call = Repay { id, decided_at: since, charge, amount };
        let answer = async {
            match (method.is_card(), kind) {
                (true, RepaymentKind::Sent) => rails.card.repay(call).await,
                (true, RepaymentKind::Taken) => rails.card.accept_dispute(call).await.map(RepayAnswer::Repaid),
                (false, RepaymentKind::Sent) => rails.pix.repay(call).await,
                (false, RepaymentKind::Taken) => rails.pix.accept_dispute(call).await.map(RepayAnswer::Repaid),
            }
        };
        match tokio::time::timeout(patience, answer).await.unwrap_or(Err(RailError::NoAnswer)) {
            Ok(RepayAnswer::Repaid(stamp)) => {
                let context = CommandContext::of_rail(Some(stamp), permit);
                self.command(group, MerchantCommand::ConfirmRepayment { id }, context).await.is_ok()
            }
            Ok(RepayAnswer::Refused { reason }) => {
                let failed = self.fail_refund((group, charge), id, reason, permit).await;
                failed.inspect_err(|error| tracing::error!(%error, id = %id.uuid(), "a refund cannot fail")).is_ok()
            }
            Err(RailError::NoAnswer) => false,
        }
    }

    /// Takes a refund back that its rail refused. Error also for a payment that came too late: its
    /// money is nobody else's, so the rail is asked again.
    async fn fail_refund(
        &self,
        (group, charge): (GroupNumber, ObjectId),
        id: ObjectId,
        notes: String,
        permit: Arc<Permit>,
    ) -> Result<(), Unavailable> {
        let found = self.charge_facts(charge)?.zip(self.refund_money(id, charge)?);
        let (facts, money) = found.ok_or_else(|| Unavailable::contradicting("a refund that a rail refused"))?;
        let failed = FailRefund { id, facts, money, notes };
        self.command(group, MerchantCommand::FailRefund(Box::new(failed)), permit).await.map(drop)
    }
}
