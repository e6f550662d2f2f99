//! Cards by Adyen: its Checkout API, version 72.
//!
//! A charge is authorized with manual capture, and captured by an order of its own, which the
//! engine gives once the authorization is a Record: what no Record knows takes no money. Adyen is
//! idempotent on a key, which is made of our id. An order is sent once in a call. The adapter holds
//! no state.
//!
//! Only Adyen's word about our reference and our amount is an outcome. All else is
//! [`RailError::NoAnswer`]: a time that has passed, 3xx, 408, 429, 5xx, a page, half an answer, and
//! each code of an error that `words.rs` does not have.
//!
//! Adyen cannot be asked what became of a payment. [`CardRail::close`] orders that it be cancelled
//! by our reference, and what became of that comes as a notification alone, whose signature
//! `notifications.rs` checks.
//!
//! Begin with `payments.rs`.

mod calls;
mod messages;
mod modifications;
mod notifications;
mod payments;
mod settings;
mod words;

use std::future::ready;
use std::time::Duration;

use actors::rails::{
    Call, CaptureCard, CardAnswer, CardFate, CardNotification, CardRail, CardSecrets, CardToken, ChargeCard, RailError,
    Repay, RepayAnswer, SettlementCursor, SettlementPage,
};
use ledger::{ObjectId, OpenCharge, RailName, RailStamp, Timestamp};
use parking_lot::RwLock;
use zeroize::Zeroizing;

use crate::client::SettingsError;
use calls::AdyenCalls;
pub use notifications::NotBelieved;
pub use settings::AdyenSettings;

/// How long the caller of a charge waits.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);

/// Adyen, as the acquirer of cards.
pub struct Adyen {
    settings: AdyenSettings,
    calls: AdyenCalls,
    hmac_key: RwLock<Option<Zeroizing<Vec<u8>>>>,
}

/// Secrets are in it.
impl std::fmt::Debug for Adyen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adyen").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Checks the settings and reads their files. Nothing is sent.
pub fn open(settings: &AdyenSettings) -> Result<Adyen, SettingsError> {
    let (calls, hmac_key) = (AdyenCalls::open(settings)?, RwLock::new(settings.hmac_key()?));
    Ok(Adyen { settings: settings.clone(), calls, hmac_key })
}

impl Adyen {
    /// Reads the keys again, for calls from now on. When that fails, the present ones stay.
    pub fn reload(&self) -> Result<(), SettingsError> {
        let hmac_key = self.settings.hmac_key()?;
        self.calls.reload(&self.settings)?;
        *self.hmac_key.write() = hmac_key;
        Ok(())
    }

    /// The notifications of a body, without those that change nothing here. `rail` is the
    /// adapter's name. Errors: it is not signed with the key of the settings.
    pub fn notifications(&self, body: &[u8], rail: &RailName) -> Result<Vec<CardNotification>, NotBelieved> {
        let key = self.hmac_key.read();
        let key = key.as_ref().ok_or(NotBelieved::NotSigned)?;
        notifications::read(body, key, &self.settings.merchant_account, rail)
    }
}

impl CardRail for Adyen {
    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer> {
        Box::pin(async move { payments::authorize(&self.calls, &call).await })
    }

    fn capture(&self, call: CaptureCard) -> Call<'_, CardAnswer> {
        Box::pin(async move { modifications::capture(&self.calls, &call).await })
    }

    fn answers_within(&self) -> Duration {
        ANSWERS_WITHIN
    }

    fn keys_hold_at(&self) -> Option<&str> {
        Some(self.calls.host())
    }

    fn tokenize(&self, card: CardSecrets) -> Call<'_, CardToken> {
        Box::pin(async move { payments::tokenize(&self.calls, &card).await })
    }

    fn delete_token(&self, token: CardToken) -> Call<'_, bool> {
        Box::pin(async move { payments::delete_token(&self.calls, &token).await })
    }

    /// Orders that the payment be cancelled. What became of it is a notification's to say: Adyen
    /// receives the order for a reference that it never had, too, so this says nothing of the
    /// charge.
    fn close<'a>(&'a self, charge: ObjectId, _open: &'a OpenCharge) -> Call<'a, CardFate> {
        Box::pin(async move {
            modifications::cancel(&self.calls, charge).await?;
            Err(RailError::NoAnswer)
        })
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(async move { modifications::refund(&self.calls, &call).await })
    }

    /// Adyen takes the money of a chargeback by itself, and says so in a notification.
    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(ready(Err(RailError::NoAnswer)))
    }

    /// Batches come as files, which operators send.
    fn settlements(&self, _after: SettlementCursor, _now: Timestamp) -> Call<'_, Option<SettlementPage>> {
        Box::pin(ready(Ok(None)))
    }
}
