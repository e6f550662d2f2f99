//! Charges of subscriptions, made when they are due. The intent names the subscription and the
//! cycle, and is durable before the acquirer is called. When an answer is lost, the reconciliation
//! of the charge asks for it, and its Record moves the subscription on.

use futures_util::future::join_all;
use ledger::{
    GroupNumber, LedgerId, MerchantCommand, MerchantState, ObjectId, Payer, PaymentMethod, Requester, SealedFor,
    Timestamp,
};

use super::card::not_after;
use super::outcome::{CommandContext, terms_opened_by};
use super::{Engine, INSIDE_BYTES, PixOpened, Unavailable, read};
use crate::rails::{ChargeCard, ChargedCard};
use crate::resident::Outcome;
use derived::records::LoadError;
use derived::seal::SealError;

/// How many subscriptions of one merchant are charged at once.
const BILLED_AT_ONCE: usize = 64;

/// A subscription that is to be charged.
struct DueSubscription {
    id: ObjectId,
    /// The description of the charge: the plan's tag.
    tag: String,
}

/// Why a subscription was not charged; it is tried again later.
#[derive(Debug, thiserror::Error)]
enum NotBilled {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Seal(#[from] SealError),
    #[error("what began the subscription is not in the journal")]
    Missing,
    #[error("the card's token cannot be opened")]
    Token,
}

impl Engine {
    /// Charges a merchant's subscriptions that are due. Gives whether any charge was made.
    pub(super) async fn bill_due(&self, group: GroupNumber) -> Result<bool, Unavailable> {
        let look = |books: &MerchantState, now: Timestamp| {
            let due = books.subscriptions_due(now).take(BILLED_AT_ONCE).map(|(id, subscription)| {
                let tag = books.plan(subscription.terms.plan).map(|plan| plan.terms.tag.clone()).unwrap_or_default();
                DueSubscription { id, tag }
            });
            due.collect::<Vec<_>>()
        };
        if !self.rails.has_any() {
            return Ok(false);
        }
        let permit = self.admission.take(INSIDE_BYTES).await;
        let due = read(&self.shard(group).merchants, LedgerId::Merchant(group), look, permit).await?;
        let billed = join_all(due.into_iter().map(|due| self.bill(group, due))).await;
        for failure in billed.iter().filter_map(|billed| billed.as_ref().err()) {
            tracing::warn!(error = %failure, "a subscription was not charged; it is tried again");
        }
        Ok(billed.iter().any(|billed| matches!(billed, Ok(true))))
    }

    /// Ends the open PIX code of a subscription that its merchant cancels: cancelled at the
    /// institution, or paid by its word. A code about which the institution does not answer is left
    /// to its expiry.
    pub async fn end_code(
        &self,
        group: GroupNumber,
        code: ObjectId,
        requester: Option<Requester>,
    ) -> Result<(), Unavailable> {
        let permit = self.admission.take(INSIDE_BYTES).await;
        match self.cancel_pix(group, code, CommandContext { key: None, requester, permit }).await {
            Ok(_) | Err(Unavailable::OutcomeUnknown) => Ok(()),
            Err(unavailable) => Err(unavailable),
        }
    }

    /// Charges one subscription; true when that was decided now.
    async fn bill(&self, group: GroupNumber, due: DueSubscription) -> Result<bool, NotBilled> {
        let merchant = LedgerId::Merchant(group);
        let row = self.subscription(merchant, due.id)?.ok_or(NotBilled::Missing)?;
        let pix = || self.rails.pix.current().map(|(name, _)| name.cloned());
        let (card, rail) = match row.card() {
            None => (None, pix()),
            Some(card) => {
                let stored = self.stored_card(merchant, card.id)?.ok_or(NotBilled::Missing)?;
                let has_rail = self.rails.card.get(stored.rail.as_ref()).is_some();
                let card = ChargedCard::Token(self.token_of(&stored).ok_or(NotBilled::Token)?);
                (Some(card), has_rail.then_some(stored.rail))
            }
        };
        let Some(rail) = rail else { return Ok(false) };
        let now = self.now();
        let charge = self.new_id(group)?;
        let payer = Payer { description: Some(due.tag), ..self.subscriber(&row) };
        let sealed = self.keyring.seal_value(SealedFor::payer(charge), now, &payer)?;
        let command = MerchantCommand::BillSubscription { id: due.id, charge, payer: sealed, rail: rail.clone() };
        let permit = self.admission.take(INSIDE_BYTES).await;
        let Outcome::Recorded(record) = self.command(group, command, permit).await? else {
            return Ok(false);
        };
        if let (Some((_, terms)), Some(card)) = (terms_opened_by(&record), card) {
            let amount = terms.amount;
            let (installments, method, merchant) =
                (1, PaymentMethod::CreditCard, self.merchant_profile(group, rail.as_ref()));
            let not_after = not_after(charge);
            let call = ChargeCard { charge, amount, installments, method, card, merchant, payer, not_after };
            let permit = self.admission.take(INSIDE_BYTES).await;
            self.ask_acquirer(group, call, rail.as_ref(), permit).await?;
        } else if let Some(opened) = PixOpened::new_of(&record).filter(|opened| opened.registers.is_some()) {
            let _tried_again_by_the_schedule = self.register_pix(group, &opened).await;
        }
        Ok(true)
    }
}
