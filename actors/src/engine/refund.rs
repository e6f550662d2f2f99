//! Repayments to payers: approved refunds and PIX payments that came too late, which a rail sends,
//! and accepted disputes, which it takes. The decision is durable before the rail is called. The
//! rail is asked, under the decision's own id, until it confirms; the confirmation is a Record of
//! its own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::{MerchantCommand, Repayment, RepaymentKind};

use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Unavailable};
use crate::journal::Permit;
use crate::rails::{RailError, Repay};
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

    /// Orders one repayment from its rail. Gives true when it was confirmed; no answer changes
    /// nothing.
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
        let call = match (method.is_card(), kind) {
            (true, RepaymentKind::Sent) => rails.card.repay(call),
            (true, RepaymentKind::Taken) => rails.card.accept_dispute(call),
            (false, RepaymentKind::Sent) => rails.pix.repay(call),
            (false, RepaymentKind::Taken) => rails.pix.accept_dispute(call),
        };
        match tokio::time::timeout(patience, call).await.unwrap_or(Err(RailError::NoAnswer)) {
            Ok(stamp) => {
                let context = CommandContext::of_rail(Some(stamp), permit);
                self.command(group, MerchantCommand::ConfirmRepayment { id }, context).await.is_ok()
            }
            Err(RailError::NoAnswer) => false,
        }
    }
}
