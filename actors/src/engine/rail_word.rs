//! Orders that two operators end, because their rail left the outcome unknown: the first word is a
//! Record, and the second one, the same from another operator, ends the order, unless the rail
//! itself then says what became of it.

use std::sync::Arc;
use std::time::Duration;

use ledger::merchant::{RepaymentKind, WaitingOrder};
use ledger::rail_word::{AskedRailWord, RailWord, SayRailWord};
use ledger::{
    Cashout, Centavos, Event, LedgerId, MerchantCommand, MerchantState, ObjectId, PayoutBank, RailName,
    RecipientCommand, RecipientState, Rejection, Withdrawal,
};
use tokio::time::timeout;

use super::house::operator_of;
use super::inquiry_times::OrderFate;
use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, Result, read};
use crate::resident::Outcome;
use derived::records::may_wait;

/// How long a rail may take to say itself what a second operator is about to say.
const ASKED_MAX: Duration = Duration::from_secs(5);

impl Engine {
    /// Takes the word of an operator on an order. The Record of the outcome has the event that asks
    /// for a second operator, or the order's end. Before a second word the rail is asked once more:
    /// if it speaks, that is booked, and the word is refused: the order is not unknown. Nor is one
    /// that the rail has under way, by its last word of 70 minutes at most: a word that it did not
    /// happen is refused.
    pub async fn say_rail_word(
        &self,
        id: ObjectId,
        word: RailWord,
        reason: String,
        context: CommandContext,
    ) -> Result<Outcome> {
        let shard = self.serving_shard(self.ids().group(id))?;
        let by = operator_of(&context);
        let is_second = self.asked_rail_word(id)?.is_some_and(|asked| asked.word == word && asked.by != by);
        if is_second {
            let has_ended = matches!(timeout(ASKED_MAX, self.ask_about_order(id)).await, Ok(Ok(OrderFate::Ended)));
            if has_ended || !word.happened && shard.inquiries.was_under_way(id, self.now()) {
                return Ok(Outcome::Refused(Rejection::OutcomeNotUnknown));
            }
        }
        let _one_at_a_time = shard.house.lock().await;
        let request = self.asked_rail_word(id)?.filter(|request| request.word == word);
        if request.as_ref().is_some_and(|request| request.by == by) {
            return Ok(Outcome::Refused(Rejection::SecondOperatorNeeded));
        }
        let asked_by = request.map(|request| request.by);
        let bank = self.bank_of_transfer(id)?;
        let deferred = self.deferred_case(id)?.filter(|_| !word.happened).map(|(case, _)| case.charge);
        let said = SayRailWord { id, word, reason, asked_by, bank, refund: None, returned: None, deferred };
        let outcome = match self.object::<Withdrawal>(id)? {
            Some(withdrawal) => {
                let command = RecipientCommand::SayRailWord(Box::new(said));
                self.command_recipient(withdrawal.recipient, command, context).await?
            }
            None => self.say_of_merchant(said, context).await?,
        };
        if let Outcome::Recorded(record) = &outcome
            && record.events.iter().any(|event| matches!(event, Event::RailWordGiven { .. }))
        {
            shard.inquiries.forget(id);
        }
        Ok(outcome)
    }

    /// Asks the rail of an order that operators are about to end, as the schedule does. Nothing is
    /// ordered: the first word waits, and [`Engine::note_try`] refuses.
    async fn ask_about_order(&self, id: ObjectId) -> Result<OrderFate> {
        let (group, now, permit) = (self.ids().group(id), self.now(), self.admission.take(INSIDE_BYTES).await);
        if let Some(Withdrawal { recipient, .. }) = self.object(id)? {
            let look = move |books: &RecipientState, now| books.to_send(now).filter(|open| open.id == id).cloned();
            let open = read(&self.shard_of(recipient).recipients, recipient, look, permit).await?;
            let Some(open) = open else { return Ok(OrderFate::Unknown) };
            return self.settle_transfer(recipient, &open, now).await;
        }
        let look = move |books: &MerchantState, now| {
            let charge = books.needing_attention(now).find(|(of, _)| *of == id).map(|(_, open)| open.clone());
            let cashout = books.cashouts_needing_attention(now).find(|(of, _)| *of == id);
            let repayment = books.repayments(now).find(|(of, _)| *of == id);
            (charge, cashout.map(|(_, open)| open.clone()), repayment.map(|(_, one)| one))
        };
        let (ledger, of_read) = (LedgerId::Merchant(group), Arc::clone(&permit));
        match read(&self.shard(group).merchants, ledger, look, of_read).await? {
            (Some(open), ..) => Ok(self.ask_about_charge((group, id), &open, now).await),
            (None, Some(open), _) => Ok(self.ask_about_cashout((group, id), &open, now).await),
            (None, None, Some(repayment)) => Ok(self.repay_again((group, id), &repayment, permit).await),
            (None, None, None) => Ok(OrderFate::Unknown),
        }
    }

    async fn say_of_merchant(&self, mut said: SayRailWord, context: CommandContext) -> Result<Outcome> {
        let (id, group) = (said.id, self.ids().group(said.id));
        if let Some(cashout) = self.object::<Cashout>(id)?.filter(|_| !said.word.happened)
            && let Some(returned) = self.returned_cashout(&cashout, said.bank, said.reason.clone())
        {
            let key = returned.key;
            said.returned = Some(Box::new(returned));
            let command = MerchantCommand::SayRailWord(Box::new(said));
            return Ok(match self.command_once(group, key, command, context).await? {
                Outcome::Unchanged => Outcome::Refused(Rejection::OutcomeNotUnknown),
                outcome => outcome,
            });
        }
        let order = self.read_merchant(group, move |books: &MerchantState, _| books.waiting_order(id)).await?;
        match order {
            Some(WaitingOrder::Repayment(repayment))
                if repayment.kind == RepaymentKind::Sent && !said.word.happened =>
            {
                said.refund = Some(Box::new(self.failed_refund(repayment.charge, id, said.reason.clone())?));
            }
            _ => {}
        }
        self.command(group, MerchantCommand::SayRailWord(Box::new(said)), context).await
    }

    /// The account that a transfer leaves at its rail. In a sandbox cashouts leave the PIX account.
    fn bank_of_transfer(&self, id: ObjectId) -> Result<PayoutBank> {
        let (mut bank, mut asked_for) = (PayoutBank::Pix, Centavos::ZERO);
        for event in self.records_about(id)?.iter().flat_map(|record| &record.events) {
            let (rail, amount) = match event {
                Event::WithdrawalRequested { amount, .. } => {
                    asked_for = *amount;
                    continue;
                }
                Event::WithdrawalApproved { rail, .. } => (rail.as_ref(), asked_for),
                Event::CashoutCreated { rail: rail @ Some(_), amount, fee, .. } => (rail.as_ref(), *amount - *fee),
                _ => continue,
            };
            bank = self.rails.payout.get(rail).map_or(bank, |rail| rail.pays_withdrawal_from(amount));
        }
        Ok(bank)
    }

    /// The rail of a transfer that was ordered; `None` in a sandbox.
    pub fn rail_of_transfer(&self, id: ObjectId) -> Result<Option<RailName>> {
        let named = |event: &Event| match event {
            Event::CashoutCreated { rail, .. } | Event::WithdrawalApproved { rail, .. } => rail.clone(),
            _ => None,
        };
        Ok(self.records_about(id)?.iter().flat_map(|record| &record.events).find_map(named))
    }

    /// The word on an order that waits for a second operator.
    pub fn asked_rail_word(&self, id: ObjectId) -> Result<Option<AskedRailWord>> {
        Ok(AskedRailWord::in_records(&self.records_about(id)?, id, self.now()))
    }

    /// The ledger of an order, whatever it is; `None` if there is none of this id.
    pub fn owner_of_order(&self, id: ObjectId) -> Result<Option<LedgerId>> {
        Ok(may_wait(|| self.history(id)?.next().transpose().map(|first| first.map(|(_, record)| record.owner)))?)
    }
}
