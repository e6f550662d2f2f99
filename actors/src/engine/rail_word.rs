//! Orders that two operators end, because their rail left the outcome unknown: the first word is a
//! Record, and the second one, the same from another operator, ends the order.

use ledger::merchant::{RepaymentKind, WaitingOrder};
use ledger::rail_word::{AskedRailWord, RailWord, SayRailWord};
use ledger::{
    Cashout, Centavos, Event, LedgerId, MerchantCommand, MerchantState, ObjectId, PayoutBank, RailName,
    RecipientCommand, Rejection, Withdrawal,
};

use super::house::operator_of;
use super::outcome::CommandContext;
use super::{Engine, Result};
use crate::resident::Outcome;
use derived::records::may_wait;

impl Engine {
    /// Takes the word of an operator on an order. The Record of the outcome has the event that asks
    /// for a second operator, or the order's end.
    pub async fn say_rail_word(
        &self,
        id: ObjectId,
        word: RailWord,
        reason: String,
        context: CommandContext,
    ) -> Result<Outcome> {
        let shard = self.serving_shard(self.ids().group(id))?;
        let _one_at_a_time = shard.house.lock().await;
        let request = self.asked_rail_word(id)?.filter(|request| request.word == word);
        if request.as_ref().is_some_and(|request| request.by == operator_of(&context)) {
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
        let records = self.records_about(id)?;
        Ok(records.iter().fold(None, |before, record| AskedRailWord::after(before, id, record)))
    }

    /// The ledger of an order, whatever it is; `None` if there is none of this id.
    pub fn owner_of_order(&self, id: ObjectId) -> Result<Option<LedgerId>> {
        Ok(may_wait(|| self.history(id)?.next().transpose().map(|first| first.map(|(_, record)| record.owner)))?)
    }
}
