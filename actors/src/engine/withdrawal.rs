//! Withdrawals on their way out (interface 3.5). The approval is durable before the institution is
//! called, and the transfer is ordered at once. While its outcome is not known, the schedule asks
//! by the withdrawal's own id. Some days after a transfer was paid, the schedule asks whether the
//! bank returned it.

use std::sync::Arc;

use ledger::recipient::{OpenWithdrawal, Returnable, TransferOutcome};
use ledger::{
    BankAccount, Centavos, LedgerId, ObjectId, RailStamp, RecipientCommand, RecipientState, Sealed, SealedFor,
    Timestamp,
};

use super::inquiry_times::{ASK_EVERY_MAX_MS, OrderFate, wait_ms};
use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Result, read};
use crate::rails::{Destination, PayoutAnswer, SendPayout};
use crate::resident::Outcome;

/// Notes of a withdrawal or cashout whose transfer the institution surely does not have.
pub(super) const NOT_TAKEN: &str = "A instituição de pagamento não aceitou a transferência";
/// Notes of a withdrawal without an account to send to: its data was erased.
const NO_ACCOUNT: &str = "O recebedor não tem conta bancária";

impl Engine {
    /// Approves a pending withdrawal and orders its transfer. The outcome is that of the approval.
    /// The institution's answer, if it came in time, is durable too.
    pub async fn approve_withdrawal(
        &self,
        recipient: LedgerId,
        (id, amount, destination): (ObjectId, Centavos, Sealed),
        context: CommandContext,
    ) -> Result<Outcome> {
        let (name, rail) = self.current_payout_rail()?;
        let permit = Arc::clone(&context.permit);
        let command = RecipientCommand::ApproveWithdrawal { id, rail: name };
        let approved = self.command_recipient(recipient, command, context).await?;
        if let Outcome::Recorded(record) = &approved {
            let outcome = match self.transfer((id, amount, &destination), record.effective_at) {
                Some(call) => rail.order_first(call, self.now()).await.ok().map(settled),
                None => Some((TransferOutcome::Refused { notes: NO_ACCOUNT.to_owned() }, None)),
            };
            if let Some((outcome, stamp)) = outcome {
                let command = RecipientCommand::SettleWithdrawal { id, outcome };
                let context = CommandContext::of_rail(stamp, permit);
                let _asked_about_by_the_schedule = self.command_recipient(recipient, command, context).await;
            }
        }
        Ok(approved)
    }

    /// Lets a recipient book what is due, asks about its transfer, and returns the time of the next
    /// look.
    pub(super) async fn attend_recipient(&self, recipient: LedgerId, now: Timestamp) -> Result<Option<Timestamp>> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        let look = |books: &RecipientState, now: Timestamp| {
            (books.next_due(), books.to_send(now).cloned(), books.returnable().to_vec())
        };
        let (next_due, waiting, returnable) =
            read(&self.shard_of(recipient).recipients, recipient, look, permit).await?;
        if !self.rails.payout.has_any() {
            return Ok(next_due);
        }
        let returns_at = self.ask_about_returns(recipient, &returnable, now).await?;
        let next_due = match waiting {
            Some(withdrawal) => self.finish(recipient, withdrawal, now).await?,
            None => next_due,
        };
        Ok(next_due.into_iter().chain(returns_at).min())
    }

    /// Settles a transfer as far as its outcome is known, and returns the time of the next look.
    async fn finish(
        &self,
        recipient: LedgerId,
        withdrawal: OpenWithdrawal,
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        if self.settle_transfer(recipient, &withdrawal, now).await? != OrderFate::Ended {
            return Ok(Some(now.plus_ms(wait_ms(withdrawal.approved_at.unwrap_or(now), now))));
        }
        let permit = self.admission.take(INSIDE_BYTES).await;
        read(&self.shard_of(recipient).recipients, recipient, |books: &RecipientState, _| books.next_due(), permit)
            .await
    }

    /// Asks about an unsettled transfer, and books its outcome.
    pub(super) async fn settle_transfer(
        &self,
        recipient: LedgerId,
        withdrawal: &OpenWithdrawal,
        now: Timestamp,
    ) -> Result<OrderFate> {
        let approved_at = withdrawal.approved_at.unwrap_or(now);
        let Some(call) = self.transfer_of(withdrawal, approved_at) else {
            tracing::error!(withdrawal = %withdrawal.id.uuid(), "a transfer cannot be asked about: there is no account");
            return Ok(OrderFate::Unknown);
        };
        let ordered = (recipient, withdrawal.tried_at.unwrap_or(approved_at));
        let found = self.find_transfer(ordered, withdrawal.rail.as_ref(), call, now).await;
        let Ok(answer) = found else { return Ok(OrderFate::Unknown) };
        let Some((outcome, stamp)) = answer.map(settled) else { return Ok(OrderFate::Ended) };
        let command = RecipientCommand::SettleWithdrawal { id: withdrawal.id, outcome };
        let permit = self.admission.take(INSIDE_BYTES).await;
        self.command_recipient(recipient, command, CommandContext::of_rail(stamp, permit)).await?;
        Ok(OrderFate::Ended)
    }

    /// Asks, of those paid withdrawals whose time has come, whether they came back, and returns
    /// when the next one's time comes. An institution that does not answer is asked again.
    async fn ask_about_returns(
        &self,
        recipient: LedgerId,
        returnable: &[Returnable],
        now: Timestamp,
    ) -> Result<Option<Timestamp>> {
        let due = self.shard_of(recipient).returns_asked.due(recipient, returnable, now);
        let mut answered = Vec::with_capacity(due.len());
        for withdrawal in &due {
            let approved_at = withdrawal.approved_at.unwrap_or(now);
            let Some(call) = self.transfer_of(withdrawal, approved_at) else { continue };
            let Ok(rail) = self.payout_rail(withdrawal.rail.as_ref()) else { continue };
            let found = rail.call(RAIL_ANSWER_MAX, |rail| rail.find(call, now)).await.ok();
            let back = match &found {
                Some(PayoutAnswer::Returned { reason, stamp, to }) => Some((reason, Some(*to), Some(stamp.clone()))),
                Some(PayoutAnswer::Failed { reason }) => Some((reason, None, None)),
                _ => None,
            };
            if let Some((reason, to, stamp)) = back {
                let permit = self.admission.take(INSIDE_BYTES).await;
                let command = RecipientCommand::ReturnWithdrawal { id: withdrawal.id, notes: reason.clone(), to };
                self.command_recipient(recipient, command, CommandContext::of_rail(stamp, permit)).await?;
            }
            answered.extend(found.map(|_| withdrawal.id));
        }
        self.shard_of(recipient).returns_asked.note(recipient, returnable, &answered, now);
        let is_unanswered = answered.len() < due.len();
        let next = returnable.iter().filter_map(|one| one.asked_at().find(|at| *at > now));
        Ok(next.chain(is_unanswered.then(|| now.plus_ms(ASK_EVERY_MAX_MS))).min())
    }

    fn transfer_of(&self, withdrawal: &OpenWithdrawal, ordered_at: Timestamp) -> Option<SendPayout> {
        self.transfer((withdrawal.id, withdrawal.amount, &withdrawal.destination), ordered_at)
    }

    /// The transfer of a withdrawal to the account that was pinned when it was asked for; `None` if
    /// its data was erased.
    fn transfer(
        &self,
        (id, amount, destination): (ObjectId, Centavos, &Sealed),
        ordered_at: Timestamp,
    ) -> Option<SendPayout> {
        let account: BankAccount = self.keyring.open_value(SealedFor::account(id), destination)?;
        Some(SendPayout { id, amount, to: Destination::Account(account), ordered_at })
    }
}

fn settled(answer: PayoutAnswer) -> (TransferOutcome, Option<RailStamp>) {
    match answer {
        PayoutAnswer::Taken { transfer_id, at, from } | PayoutAnswer::Processed { transfer_id, at, from, .. } => {
            let stamp = RailStamp::new(transfer_id.clone(), at);
            (TransferOutcome::Taken { transfer_id, bank: from }, Some(stamp))
        }
        PayoutAnswer::NotTaken => (TransferOutcome::Refused { notes: NOT_TAKEN.to_owned() }, None),
        PayoutAnswer::Failed { reason } | PayoutAnswer::Returned { reason, .. } => {
            (TransferOutcome::Refused { notes: reason }, None)
        }
    }
}
