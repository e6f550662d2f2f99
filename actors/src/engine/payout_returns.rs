//! Intake of transfers that came back after they were carried out: an institution that has a list
//! of them is asked every ten minutes. What is booked already changes nothing.

use std::time::Duration;

use futures_util::future::join_all;
use ledger::cashout::CashoutStage;
use ledger::merchant::ReturnedCashout;
use ledger::{Cashout, MerchantCommand, PayoutBank, RailName, RecipientCommand, Timestamp, Withdrawal};

use super::outcome::CommandContext;
use super::pix_intake::{IntakeError, goes_on};
use super::{Engine, INSIDE_BYTES, Unavailable};
use crate::rails::{PixSpan, ReturnedPayout};
use crate::resident::Outcome;

/// How often the list of an institution is read.
const LOOK_EVERY: Duration = Duration::from_secs(600);
/// How soon a list is read again that could not be read.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long an institution may take for a page.
const PAGE_MAX: Duration = Duration::from_secs(30);
/// How far back a look reads before the end of the one before: an institution may list a return
/// late. Milliseconds.
const OVERLAP_MS: i64 = 86_400_000;
/// How far back the very first look reads, milliseconds.
const FIRST_LOOK_MS: i64 = 30 * 86_400_000;
/// Beginning of the names under which the store keeps how far a list was read, milliseconds.
const READ: &str = "payout-read/";

impl Engine {
    /// Reads the lists of returned transfers of all named institutions. Runs until it is dropped.
    pub async fn run_payout_returns(&self) {
        join_all(self.rails.payout.named_ones().map(|(name, _)| async move {
            loop {
                let looks = self.serves_house() && self.has_all() && !self.admission.is_closed();
                let found = if looks { Some(self.look_for_returns(Some(name)).await) } else { None };
                if let Some(Err(error)) = &found {
                    tracing::warn!(rail = %name, %error, "returned transfers can't be read now");
                }
                tokio::time::sleep(if matches!(found, Some(Ok(()))) { LOOK_EVERY } else { LOOK_AGAIN }).await;
            }
        }))
        .await;
    }

    /// Reads the list of an institution once, and books what is new, although one of it can't be. A
    /// sandbox's has no name.
    pub(super) async fn look_for_returns(&self, name: Option<&RailName>) -> Result<(), IntakeError> {
        let (now, kept_name) = (self.now(), format!("{READ}{}", name.map_or("", RailName::as_str)));
        let rail = self.payout_rail(name)?;
        let stored = self.side_value(&kept_name).map_err(Unavailable::from)?.and_then(|bytes| bytes.try_into().ok());
        let from = stored
            .map_or(now.plus_ms(-FIRST_LOOK_MS), |stored| Timestamp(i64::from_be_bytes(stored)).plus_ms(-OVERLAP_MS));
        let (mut failed, mut before) = (None, None);
        for page in 0.. {
            let returned = rail.call(PAGE_MAX, |rail| rail.returned(PixSpan { from, until: now, page })).await?;
            let goes_on = goes_on(&mut before, &returned.transfers, returned.has_more);
            for transfer in returned.transfers {
                failed = failed.or(self.take_back(transfer).await.err());
            }
            if !goes_on? {
                break;
            }
        }
        failed.map_or(Ok(()), Err)?;
        Ok(self.keep(&kept_name, &now.0.to_be_bytes()).map_err(Unavailable::from)?)
    }

    /// Has the owner of a transfer book that its money is back, wherever the owner is, if the
    /// transfer is one of ours that was carried out.
    pub async fn take_back(&self, transfer: ReturnedPayout) -> Result<(), Unavailable> {
        let group = self.ids().group(transfer.id);
        if !self.serves(group) {
            return self.others_than(self.extents.partition_of(group))?.take_back(group, transfer).await;
        }
        let ReturnedPayout { id, amount, reason, stamp, to } = transfer;
        let permit = self.admission.take(INSIDE_BYTES).await;
        let context = CommandContext::of_rail(Some(stamp), permit);
        if let Some(withdrawal) = self.object::<Withdrawal>(id)? {
            if withdrawal.payment.is_some() && withdrawal.amount == amount {
                let command = RecipientCommand::ReturnWithdrawal { id, notes: reason, to: Some(to) };
                let _refused_when_it_came_back_before =
                    self.command_recipient(withdrawal.recipient, command, context).await?;
                return Ok(());
            }
        } else if let Some(cashout) = self.object::<Cashout>(id)?.filter(|cashout| cashout.net() == amount) {
            let Some(returned) = self.returned_cashout(&cashout, to, reason) else { return Ok(()) };
            let key = returned.key;
            let command = MerchantCommand::ReturnCashout(Box::new(returned));
            return match self.command_once(group, key, command, context).await? {
                Outcome::KeyTaken => Err(Unavailable::OutcomeUnknown),
                _ => Ok(()),
            };
        }
        tracing::error!(id = %id.uuid(), %amount, "money came back of no transfer of this amount: it is in no book");
        Ok(())
    }

    /// The return of a cashout that was processed; none of another one.
    pub(super) fn returned_cashout(
        &self,
        cashout: &Cashout,
        bank: PayoutBank,
        reason: String,
    ) -> Option<ReturnedCashout> {
        let Cashout { id, amount, fee, .. } = *cashout;
        let key = self.keyring.fingerprint("cashout-return", &[&id.0.to_be_bytes()]);
        let is_processed = matches!(cashout.stage, CashoutStage::Processed { .. });
        is_processed.then_some(ReturnedCashout { id, amount, fee, bank, reason, key })
    }
}
