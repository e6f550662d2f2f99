//! Notifications of acquirers: what became of an order after it was received, and cases of payers'
//! banks. An acquirer may repeat them, and send them in any order: what was booked changes nothing.
//!
//! A capture that was not carried out is booked as a case whose money was taken. A refund whose
//! money the acquirer has again fails. A charge of unknown fate is ended; no notification makes one
//! paid.

use std::collections::BTreeMap;

use ledger::merchant::ReversedRefund;
use ledger::refund::RefundDecision;
use ledger::{
    CardRefusal, Charge, ChargeOutcome, Event, GroupNumber, MerchantCommand, MerchantState, ObjectId, OpenCharge,
    RailStamp, Refund,
};

use super::outcome::CommandContext;
use super::{Engine, INSIDE_BYTES, Result, Unavailable};
use crate::rails::{CardIncident, CardNotification, CaseStage, RailCase};

/// End of the id under which the second debit of a case is booked.
const AGAIN: &str = "/2";

impl Engine {
    /// Books a notification, wherever its charge is. One about no charge of its rail is logged.
    pub async fn book_card_notification(&self, notification: CardNotification) -> Result<()> {
        let group = self.ids().group(notification.object);
        if !self.serves(group) {
            return self
                .others_than(self.extents.partition_of(group))?
                .book_card_notification(group, notification)
                .await;
        }
        let refund: Option<Refund> = self.object(notification.object)?;
        let charge = refund.as_ref().map_or(notification.object, |refund| refund.charge);
        let charge = self.object::<Charge>(charge)?.filter(|charge| charge.rail.as_ref() == Some(&notification.rail));
        let Some(charge) = charge else {
            tracing::warn!(rail = %notification.rail, id = notification.id, amount = %notification.amount, "a notification names no charge of its rail");
            return Ok(());
        };
        match notification.what {
            CardIncident::NotAuthorized => {
                self.end_open(group, charge.id, CardRefusal::NotAuthorized, |open| open.authorized.is_none()).await
            }
            CardIncident::Cancelled | CardIncident::Expired => {
                self.end_open(group, charge.id, CardRefusal::Failed, |_| true).await
            }
            CardIncident::CaptureFailed => {
                self.end_open(group, charge.id, CardRefusal::Failed, |open| open.authorized.is_some()).await?;
                match self.object::<Charge>(charge.id)?.map(|charge| charge.outcome) {
                    Some(ChargeOutcome::Refused(_)) => Ok(()),
                    _ => self.book_case_of(group, notification, charge.id).await,
                }
            }
            CardIncident::RefundFailed => self.undo_refund(group, charge.id, notification).await,
            CardIncident::CaseOpened
            | CardIncident::CaseDebited
            | CardIncident::CaseWon
            | CardIncident::CaseLostAgain => self.book_case_of(group, notification, charge.id).await,
        }
    }

    async fn open_card_charge(&self, group: GroupNumber, charge: ObjectId) -> Result<Option<OpenCharge>> {
        self.read_merchant(group, move |books: &MerchantState, _| books.open_charges().get(&charge).cloned()).await
    }

    /// Refuses a charge that is open and is as said: no money of it was taken.
    async fn end_open(
        &self,
        group: GroupNumber,
        charge: ObjectId,
        refusal: CardRefusal,
        is_meant: fn(&OpenCharge) -> bool,
    ) -> Result<()> {
        if self.open_card_charge(group, charge).await?.is_some_and(|open| is_meant(&open)) {
            let permit = self.admission.take(INSIDE_BYTES).await;
            // A charge that has ended meanwhile stays as it is.
            self.command(group, MerchantCommand::RefuseCard { charge, refusal }, permit).await?;
        }
        Ok(())
    }

    /// Books a case. That of a charge whose capture is not booked yet comes too early: the acquirer
    /// sends it again.
    async fn book_case_of(&self, group: GroupNumber, notification: CardNotification, charge: ObjectId) -> Result<()> {
        match self.open_card_charge(group, charge).await? {
            Some(_) => Err(Unavailable::OutcomeUnknown),
            None => self.book_case(case_of(notification, charge)).await,
        }
    }

    /// Takes a refund back that the acquirer had received.
    async fn undo_refund(&self, group: GroupNumber, charge: ObjectId, notification: CardNotification) -> Result<()> {
        let shard = self.serving_shard(group)?;
        let _one_at_a_time = shard.house.lock().await;
        let refund = match self.refund_of_notification(charge, &notification)? {
            // It may be that of a refund whose order is not answered yet.
            (None, true) => return Err(Unavailable::OutcomeUnknown),
            (refund, _) => refund,
        };
        let approved = refund.filter(|refund| refund.decision == RefundDecision::Approved);
        let Some(Refund { id, amount, .. }) = approved.filter(|refund| refund.amount == notification.amount) else {
            tracing::warn!(
                id = notification.id,
                charge = charge.txid(),
                "a notification undoes no approved refund of its amount"
            );
            return Ok(());
        };
        let key = self.keyring.fingerprint("refund-reversed", &[&id.0.to_be_bytes()]);
        let mut failed = self.failed_refund(charge, id, notification.reason)?;
        failed.reversed = Some(ReversedRefund { amount, key });
        let context = CommandContext::from(self.admission.take(INSIDE_BYTES).await);
        self.command_once(group, key, MerchantCommand::FailRefund(Box::new(failed)), context).await.map(drop)
    }

    /// The refund that a notification names by our id, or by the acquirer's id of it; and whether
    /// one of its charge and amount waits for the acquirer's answer, which brings that id.
    fn refund_of_notification(
        &self,
        charge: ObjectId,
        notification: &CardNotification,
    ) -> Result<(Option<Refund>, bool)> {
        if notification.object != charge {
            return Ok((self.object(notification.object)?, false));
        }
        let (mut repaid, mut waiting) = (None, BTreeMap::new());
        for record in self.records_about(charge)? {
            let is_named = record.rail.as_ref().is_some_and(|stamp| stamp.id == notification.id);
            for event in &record.events {
                match event {
                    Event::RefundApproved { id, amount, .. } => drop(waiting.insert(*id, *amount)),
                    Event::PayerRepaid { id, .. } | Event::RefundFailed { id, .. } => {
                        waiting.remove(id);
                        repaid = Some(*id).filter(|_| is_named).or(repaid);
                    }
                    _ => {}
                }
            }
        }
        let refund = repaid.map(|id| self.object(id)).transpose().map_err(Unavailable::from)?;
        Ok((refund.flatten(), waiting.values().any(|amount| *amount == notification.amount)))
    }
}

/// The case of a notification. A capture that failed is a case whose money was taken.
fn case_of(notification: CardNotification, charge: ObjectId) -> RailCase {
    let CardNotification { id, amount, what, reason, due_at, heard_at, .. } = notification;
    let stage = match what {
        CardIncident::CaseOpened => CaseStage::Open,
        CardIncident::CaseWon => CaseStage::Won(RailStamp::new(id.clone(), heard_at)),
        // Its first debit may have the same id.
        CardIncident::CaseLostAgain => CaseStage::Debited(RailStamp::new(format!("{id}{AGAIN}"), heard_at)),
        _ => CaseStage::Debited(RailStamp::new(id.clone(), heard_at)),
    };
    RailCase { id, charge, amount, reason, due_at, stage, is_debit_alone: false }
}
