//! Pay-outs by Efí: transfers to PIX keys and to bank accounts, under our own id (`idEnvio`).
//!
//! It calls, logs in and reads as [`crate::api_pix`] does, and promises the same: an order is sent
//! once in a call; only Efí's word about our id is an outcome, and all else is
//! [`RailError::NoAnswer`]; [`RailError::NotSent`] means that nothing of the order has left.
//!
//! It never sends an order again by itself: whether a repeat is safe is a setting, which the
//! engine asks for before it orders a second time. A refusal does not close the id at Efí: it
//! would carry out a later order of the same id whose cause of refusal is gone.
//!
//! Begin with `transfers.rs`. The words that decide about money are one table, `words.rs`.

mod messages;
mod settings;
mod transfers;
mod words;

use std::sync::Arc;
use std::time::Duration;

use actors::rails::{Call, PayoutAnswer, PayoutRail, PixSpan, ReturnedPayouts, SendPayout, UnpayableAccount};
use ledger::{BankAccount, Centavos, PayoutBank, Timestamp};
use parking_lot::RwLock;

use crate::api_pix::Calls;
use crate::client::SettingsError;
use crate::participant_lists::ParticipantLists;
use crate::shared_settings::Repeats;
pub use settings::EfiSettings;

/// Efí, as the institution that pays out.
pub struct Efi {
    settings: EfiSettings,
    calls: Calls,
    lists: RwLock<Arc<ParticipantLists>>,
}

/// Secrets are in it.
impl std::fmt::Debug for Efi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Efi").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Checks the settings and reads their files. Nothing is sent.
pub fn open(settings: &EfiSettings) -> Result<Efi, SettingsError> {
    let lists = RwLock::new(Arc::new(settings.lists()?));
    Ok(Efi { settings: settings.clone(), calls: Calls::open(&settings.checked()?)?, lists })
}

impl Efi {
    /// Reads the lists, certificate and secret again, for calls from now on. When that fails, the
    /// present ones stay.
    pub async fn reload(&self) -> Result<(), SettingsError> {
        let lists = self.settings.lists()?;
        self.calls.reload(&self.settings.checked()?).await?;
        *self.lists.write() = Arc::new(lists);
        Ok(())
    }

    /// End of the client certificate's validity, seconds since 1970; none without a certificate.
    pub fn certificate_expires_at(&self) -> Option<i64> {
        self.calls.certificate_expires_at()
    }

    fn lists(&self) -> Arc<ParticipantLists> {
        Arc::clone(&self.lists.read())
    }

    fn pays_from(&self) -> PayoutBank {
        self.settings.pays_from.bank()
    }
}

impl PayoutRail for Efi {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        let order = messages::order(&call, self.calls.key(), &self.lists());
        Box::pin(async move { transfers::send(&self.calls, &call, order, self.pays_from()).await })
    }

    fn find(&self, call: SendPayout, _now: Timestamp) -> Call<'_, PayoutAnswer> {
        Box::pin(async move { transfers::find(&self.calls, &call, self.pays_from()).await })
    }

    fn returned(&self, span: PixSpan) -> Call<'_, ReturnedPayouts> {
        Box::pin(transfers::returned(&self.calls, span, self.pays_from()))
    }

    fn pays_withdrawal_from(&self, _amount: Centavos) -> PayoutBank {
        self.pays_from()
    }

    fn can_pay(&self, account: &BankAccount) -> Result<(), UnpayableAccount> {
        let lists = self.lists();
        messages::receiving_account(account, &lists)?;
        messages::check_institution(account, &lists)
    }

    fn may_send_again(&self, _first_ordered_at: Timestamp, _now: Timestamp) -> bool {
        self.settings.repeats != Repeats::Again
    }

    fn horizon(&self) -> Duration {
        Duration::from_secs(u64::from(self.settings.horizon_s))
    }
}
