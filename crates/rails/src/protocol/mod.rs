//! An institution behind the rail protocol, `docs/rails/rail.yaml`: HTTP and JSON, for whoever
//! writes a bridge to an acquirer or a bank that has no adapter here. One bridge may be card, PIX
//! and payout rail.
//!
//! It holds no state but the capabilities of the bridge, and promises this: an order is sent once
//! in a call; it may be sent again ([`RailError::HasNone`]) only where the bridge promises that a
//! repeat is safe and has said that it has none; only its own word about our id is an outcome, and
//! all else is [`RailError::NoAnswer`].
//!
//! Begin with `calls.rs`. The conformance test of a bridge is [`check`].

mod calls;
mod capabilities;
mod cards;
mod changes;
pub mod check;
mod messages;
mod payouts;
mod pix;
mod repayments;
mod settings;
mod settlements;

use std::time::Duration;

use actors::rails::{
    Call, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, OpenPix, PayoutAnswer, PayoutRail,
    PixFate, PixOpening, PixRail, PixReceipts, PixSpan, RailCases, Repay, RepayAnswer, ReturnedPayouts, SendPayout,
    SettlementCursor, SettlementPage,
};
use ledger::{Centavos, ObjectId, OpenCharge, PayoutBank, RailStamp, Timestamp};

use crate::client::{Address, Credentials, SettingsError};
use crate::shared_settings::Repeats;
use calls::BridgeCalls;
pub use settings::{ProtocolSettings, RailKind};

/// How long a transfer may take to turn up at a bridge that has not said so yet.
const HORIZON_UNKNOWN: Duration = Duration::from_secs(24 * 60 * 60);

/// How long a caller waits for a card charge at a bridge that has not said so yet.
const CARD_PATIENCE_UNKNOWN: Duration = Duration::from_secs(15);

/// An institution behind the rail protocol.
pub struct Protocol {
    settings: ProtocolSettings,
    calls: BridgeCalls,
}

/// Secrets are in it.
impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Protocol").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Checks the settings and reads their files. Nothing is sent.
pub fn open(settings: &ProtocolSettings) -> Result<Protocol, SettingsError> {
    if settings.certificate_file.is_some() != settings.key_file.is_some() {
        return Err(SettingsError::setting("certificate_file", "it goes with key_file"));
    }
    let address = Address::parse("url", &settings.url)?;
    let calls = BridgeCalls::new(address, Credentials::read(&settings.credential_files())?);
    Ok(Protocol { settings: settings.clone(), calls })
}

impl Protocol {
    /// Reads certificate and secret again, for calls from now on. When that fails, the present ones
    /// stay.
    pub fn reload(&self) -> Result<(), SettingsError> {
        self.calls.exchange_credentials(Credentials::read(&self.settings.credential_files())?);
        Ok(())
    }

    /// End of the client certificate's validity, seconds since 1970; none without a certificate.
    pub fn certificate_expires_at(&self) -> Option<i64> {
        self.calls.credentials().certificate_expires_at
    }

    /// Reasons why a live server may disappoint its operator with the bridge, from its capabilities
    /// now.
    pub async fn warnings(&self) -> Vec<String> {
        let Ok(known) = self.calls.capabilities().await else {
            return vec!["its capabilities can't be read now: nothing is ordered from it until they can".to_owned()];
        };
        let lacks = |kind: &&str| self.is(kind) && !known.serves.iter().any(|served| served == kind);
        let lacking = ["card", "pix", "payout"].into_iter().filter(lacks);
        let mut found: Vec<_> = lacking.map(|kind| format!("it does not serve {kind}")).collect();
        if known.test {
            found.push(
                "it is a test environment (test: true): it moves no money, and the books say that it does".to_owned(),
            );
        }
        if self.is("pix") && known.repeats == Repeats::Again {
            found.push("it opens no PIX charge: that takes repeats of same or refused, and it says again".to_owned());
        }
        found
    }

    /// Whether it is a rail of this kind: `card`, `pix` or `payout`.
    pub fn is(&self, kind: &str) -> bool {
        self.settings.is(kind)
    }

    fn pays_from(&self) -> PayoutBank {
        self.settings.pays_from.bank()
    }
}

impl CardRail for Protocol {
    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer> {
        Box::pin(async move { cards::charge(&self.calls, &call).await })
    }

    fn tokenize(&self, card: CardSecrets) -> Call<'_, CardToken> {
        Box::pin(async move { cards::tokenize(&self.calls, &card).await })
    }

    fn delete_token(&self, token: CardToken) -> Call<'_, bool> {
        Box::pin(cards::delete_token(&self.calls, token))
    }

    fn close<'a>(&'a self, charge: ObjectId, open: &'a OpenCharge) -> Call<'a, CardFate> {
        Box::pin(cards::close(&self.calls, charge, open.terms.amount))
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(async move { repayments::repay(&self.calls, RailKind::Card, &call).await })
    }

    fn cases(&self, span: PixSpan) -> Call<'_, RailCases> {
        Box::pin(changes::cases(&self.calls, RailKind::Card, span))
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(async move { repayments::accept_dispute(&self.calls, RailKind::Card, &dispute).await })
    }

    fn settlements(&self, after: SettlementCursor, _now: Timestamp) -> Call<'_, Option<SettlementPage>> {
        Box::pin(settlements::settlements(&self.calls, after))
    }

    fn answers_within(&self) -> Duration {
        self.calls.known.last().map_or(CARD_PATIENCE_UNKNOWN, |known| known.patience())
    }
}

impl PixRail for Protocol {
    /// Its codes come from [`PixRail::open`].
    fn location(&self, _charge: ObjectId) -> Option<String> {
        None
    }

    fn open(&self, call: OpenPix) -> Call<'_, PixOpening> {
        Box::pin(async move { pix::open(&self.calls, &call).await })
    }

    fn received(&self, span: PixSpan) -> Call<'_, PixReceipts> {
        Box::pin(changes::received(&self.calls, span))
    }

    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(pix::cancel(&self.calls, charge))
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(async move { repayments::repay(&self.calls, RailKind::Pix, &call).await })
    }

    /// Its list has the cases of cards too, where it is the acquirer as well: it is read as that
    /// one's while the bridge does not serve PIX.
    fn cases(&self, span: PixSpan) -> Call<'_, RailCases> {
        Box::pin(async move {
            let is_pix =
                !self.is("card") || self.calls.capabilities().await.is_ok_and(|known| known.has(RailKind::Pix));
            changes::cases(&self.calls, if is_pix { RailKind::Pix } else { RailKind::Card }, span).await
        })
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(async move { repayments::accept_dispute(&self.calls, RailKind::Pix, &dispute).await })
    }
}

impl PayoutRail for Protocol {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        Box::pin(async move { payouts::send(&self.calls, &call, self.pays_from()).await })
    }

    fn find(&self, call: SendPayout, _now: Timestamp) -> Call<'_, PayoutAnswer> {
        Box::pin(async move { payouts::find(&self.calls, &call, self.pays_from()).await })
    }

    fn returned(&self, span: PixSpan) -> Call<'_, ReturnedPayouts> {
        Box::pin(changes::returned(&self.calls, span, self.pays_from()))
    }

    fn pays_withdrawal_from(&self, _amount: Centavos) -> PayoutBank {
        self.pays_from()
    }

    fn horizon(&self) -> Duration {
        self.calls.known.last().map_or(HORIZON_UNKNOWN, |known| known.horizon())
    }

    /// False before the bridge has said what a repeat does.
    fn may_send_again(&self, first_ordered_at: Timestamp, now: Timestamp) -> bool {
        self.calls.known.last().is_some_and(|known| known.may_repeat(first_ordered_at, now))
    }
}
