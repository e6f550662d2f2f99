//! Maturity: the seller's card money falls due; and when the merchant needs attention next.

use super::MerchantState;
use crate::adjustment::AdjustmentCommand;
use crate::event::Due;
use crate::write_off::WriteOffCommand;
use crate::{AdjustmentTarget, Centavos, Decision, Event, Minute, Rejection, Result, Timestamp};

impl MerchantState {
    /// The facts of all that is due at `now`, and of the Deficit that Available can repay; `None`
    /// if there is neither. Available and a Deficit stand side by side only after a recipient has
    /// paid something back.
    pub fn mature(&self, now: Timestamp, foreign_through: u64) -> Option<Decision> {
        let dues = self.pending.due(now);
        let mut events = Vec::new();
        let raised = dues.iter().map(|due| due.amount).sum::<Centavos>();
        if !dues.is_empty() {
            let next_due = self.next_due_from(Minute(now.minute().0.saturating_add(1)));
            events.push(Event::Matured { dues, foreign_through, next_due });
        }
        // A recipient's Record may have raised Available: that repays the Deficit too.
        events.extend(self.recovery(self.available() + raised));
        (!events.is_empty()).then_some(Decision { events, personal: None })
    }

    pub(super) fn apply_maturity(&mut self, dues: &[Due]) {
        dues.iter().for_each(|due| self.pending.take(due.minute, due.amount));
    }

    /// Asks for the write-off of the Deficit, or decides on the open request.
    pub(super) fn write_off_deficit(&self, command: WriteOffCommand) -> Result<Decision> {
        command.decide(self.write_off.as_ref(), self.deficit(), |open| Event::DeficitWrittenOff {
            id: open.id,
            amount: open.amount,
            reference: open.reference.clone(),
        })
    }

    /// Asks for an adjustment, or decides on one that waits. What it gives repays the Deficit
    /// first.
    pub(super) fn adjust(&self, command: AdjustmentCommand) -> Result<Decision> {
        let event = command.decide(&self.goodwill)?;
        let recovery = match &event {
            // A dispute is reversed by a command of its own.
            Event::AdjustmentCreated { target: Some(AdjustmentTarget::Dispute(_)), .. } => {
                return Err(Rejection::DisputeNotAccepted);
            }
            Event::AdjustmentCreated { amount, target: None, .. } => self.recovery(self.available() + *amount),
            _ => None,
        };
        Ok(Decision { events: [event].into_iter().chain(recovery).collect(), personal: None })
    }

    /// When the next facts of [`MerchantState::mature`] take effect, at `now` or before: in the
    /// minute in which money fell due, also when it is booked later. A Deficit is repaid at `now`,
    /// since it may be younger than the money that fell due.
    pub fn matures_at(&self, now: Timestamp) -> Timestamp {
        let first = self.pending.first().filter(|_| !self.deficit().is_positive());
        first.map_or(now, |minute| minute.end().min(now))
    }

    /// When this merchant needs attention next: money falls due, a Deficit can be repaid, a rail is
    /// to be asked about an open charge or cashout, a payer is to be repaid, or a subscription is
    /// to be charged.
    pub fn next_due(&self) -> Option<Timestamp> {
        let at_once = self.recovery(self.available()).map(|_| Timestamp(0));
        at_once.or_else(|| self.next_due_from(Minute(0)))
    }

    /// The event by which a rise of Available repays the Deficit.
    pub(super) fn recovery(&self, raised: Centavos) -> Option<Event> {
        let amount = raised.min(self.deficit());
        amount.is_positive().then_some(Event::DeficitRecovered { amount })
    }

    /// The same, when the money of earlier minutes is booked.
    fn next_due_from(&self, minute: Minute) -> Option<Timestamp> {
        let pending = self.pending.next_from(minute).into_iter();
        let rails = self.open_charges.first_attention().into_iter().chain(self.cashouts.first_attention());
        pending.chain(rails).chain(self.adjustments.first_attention()).chain(self.subscriptions.first_due()).min()
    }
}
