//! Previews of decisions: the Records that a command would write, from the same `decide`. What is
//! due is booked first, as before the command itself. A preview stores nothing.

use ledger::event::Cut;
use ledger::{Centavos, GroupNumber, LedgerId, MerchantCommand, PayoutBank, RecipientCommand, Record, Rejection};

use super::{Engine, Unavailable};

/// A Record of a preview has no place among its owner's.
const UNNUMBERED: u64 = 0;

impl Engine {
    /// The account that a withdrawal's transfer would leave now; none without an institution.
    pub fn pays_withdrawal_from(&self, amount: Centavos) -> Option<PayoutBank> {
        self.rails.payout.current().map(|(_, rail)| rail.pays_withdrawal_from(amount))
    }

    /// The Record that a merchant's command would write now, or why it would be refused. It has no
    /// events when there is nothing to change.
    pub async fn preview(
        &self,
        group: GroupNumber,
        command: MerchantCommand,
    ) -> Result<Result<Record, Rejection>, Unavailable> {
        let ids = self.ids().clone();
        let decide = move |books: &ledger::merchant::MerchantState, now| {
            let decision = books.decide(command, group, now, &ids)?;
            Ok(decision.into_record(LedgerId::Merchant(group), UNNUMBERED, now))
        };
        self.read_merchant(group, decide).await
    }

    /// The Records that commands to a recipient would write, one after the other, or why one of
    /// them would be refused. The state's cut is not known here, so commands that take splits (a
    /// new withdrawal, an anticipation) can't be previewed.
    pub async fn preview_recipient(
        &self,
        recipient: LedgerId,
        commands: Vec<RecipientCommand>,
    ) -> Result<Result<Vec<Record>, Rejection>, Unavailable> {
        let decide = move |books: &ledger::recipient::RecipientState, now: ledger::time::Timestamp| {
            let (last, cut) = (commands.len().saturating_sub(1), Cut { minute: now.minute(), ..Cut::default() });
            let mut changed = None;
            let mut records = Vec::with_capacity(commands.len());
            for (place, command) in commands.into_iter().enumerate() {
                let decision = changed.as_ref().unwrap_or(books).decide(command, now, cut)?;
                let record = decision.into_record(recipient, UNNUMBERED, now);
                if place < last {
                    changed.get_or_insert_with(|| books.clone()).evolve(&record);
                }
                records.push(record);
            }
            Ok(records)
        };
        self.read_recipient(recipient, decide).await
    }
}
