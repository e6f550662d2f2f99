//! End of a merchant: its subscriptions and open PIX codes are cancelled, at their institutions
//! too.

use futures_util::future::join_all;
use ledger::merchant::SubscriptionChange;
use ledger::{GroupNumber, MerchantCommand, MerchantState, ObjectId, PaymentMethod};

use super::{Engine, INSIDE_BYTES, Unavailable};

/// Open PIX codes that one call cancels.
const CODES_MAX: usize = 1_024;
/// Codes about which the institution is asked at once.
const AT_ONCE: usize = 16;

impl Engine {
    /// Cancels the subscriptions and the first 1,024 open PIX codes of a merchant, as long as it is
    /// closing. A code about which the institution does not answer is left to its expiry, and a
    /// card charge to its outcome.
    pub async fn end_what_charges(&self, group: GroupNumber) -> Result<(), Unavailable> {
        let look = |books: &MerchantState, _| {
            let codes = books.open_charges().iter().filter(|(_, charge)| charge.terms.method == PaymentMethod::Pix);
            let codes: Vec<ObjectId> = codes.map(|(id, _)| *id).take(CODES_MAX).collect();
            (codes, books.subscriptions().keys().copied().collect::<Vec<_>>())
        };
        let (codes, subscriptions) = self.read_merchant(group, look).await?;
        let is_closing = || self.merchant(group, |row| row.settings.closing) == Some(true);
        for id in subscriptions {
            if !is_closing() {
                return Ok(());
            }
            let permit = self.admission.take(INSIDE_BYTES).await;
            let command = MerchantCommand::ChangeSubscription { id, change: SubscriptionChange::Cancel };
            // One that ended meanwhile stays as it is.
            self.command(group, command, permit).await?;
        }
        for some in codes.chunks(AT_ONCE) {
            if !is_closing() {
                return Ok(());
            }
            let ended = join_all(some.iter().map(|code| self.end_code(group, *code, None))).await;
            // A code of a rail that is gone is left to its expiry, too.
            let has_rail = |ended: &Result<(), Unavailable>| !matches!(ended, Err(Unavailable::NoRail));
            ended.into_iter().filter(has_rail).collect::<Result<(), _>>()?;
        }
        Ok(())
    }
}
