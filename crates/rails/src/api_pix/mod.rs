//! An institution that speaks the Central Bank's API Pix (2.9), in the dialects of five: charges,
//! received payments, returns.
//!
//! It holds no state but a token, and promises this: an order is sent once in a call, or a second
//! time after the institution has said that it has none under our id; only its own word about our
//! id is an outcome, and all else is [`RailError::NoAnswer`]; [`RailError::NotSent`] means that
//! nothing of the order has left.
//!
//! Begin with `charges.rs`. What the institutions do differently is one table, `dialects.rs`; the
//! words that decide about money are another, `words.rs`.

mod calls;
mod charges;
mod dialects;
mod infractions;
mod messages;
mod receipts;
mod returns;
mod settings;
mod token;
mod words;

use std::time::Duration;

use actors::rails::{
    CASES_EVERY, Call, CaseAnswer, OpenPix, PixFate, PixOpening, PixRail, PixReceipts, PixSpan, RailCases, RailError,
    Repay, RepayAnswer,
};
use form_urlencoded::byte_serialize;
use hyper::Method;
use ledger::{ObjectId, RailStamp};
use serde_json::json;

use crate::client::SettingsError;

pub(crate) use calls::{Calls, Lookup};
pub use dialects::{Dialect, Login};
pub(crate) use receipts::page;
pub use settings::{ApiPixPaths, ApiPixSettings};

/// How often the special returns of an institution are read that lists no infractions.
const DEBITS_EVERY: Duration = Duration::from_secs(60 * 60);

/// An institution that speaks API Pix.
pub struct ApiPix {
    settings: ApiPixSettings,
    calls: Calls,
}

/// Secrets are in it.
impl std::fmt::Debug for ApiPix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiPix").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Checks the settings and reads their files. Nothing is sent.
pub fn open(settings: &ApiPixSettings) -> Result<ApiPix, SettingsError> {
    Ok(ApiPix { settings: settings.clone(), calls: Calls::open(settings)? })
}

impl ApiPix {
    /// Reads certificate and secret again, for calls from now on. When that fails, the present ones
    /// stay.
    pub async fn reload(&self) -> Result<(), SettingsError> {
        self.calls.reload(&self.settings).await
    }

    /// End of the client certificate's validity, seconds since 1970; none without a certificate.
    pub fn certificate_expires_at(&self) -> Option<i64> {
        self.calls.certificate_expires_at()
    }

    /// Names the address at which the institution rings when a payment arrives. It may be named
    /// again.
    pub async fn register_callback(&self, address: &str) -> Result<(), RailError> {
        let institution = &self.calls.institution;
        let key: String = byte_serialize(institution.key.as_bytes()).collect();
        let path = format!("{}/{key}", institution.webhook);
        let body = json!({ "webhookUrl": address });
        let mut answer = self.calls.order(Method::PUT, &path, &body).await?;
        if answer.status.as_u16() == 401 {
            answer = self.calls.order(Method::PUT, &path, &body).await?;
        }
        if answer.status.is_success() {
            return Ok(());
        }
        let defect = format!("it answers {}: {}", answer.status.as_u16(), messages::reason(&answer));
        self.calls.complain(&institution.webhook, &defect);
        Err(RailError::NoAnswer)
    }
}

impl PixRail for ApiPix {
    /// Its codes come from [`PixRail::open`].
    fn location(&self, _charge: ObjectId) -> Option<String> {
        None
    }

    fn open(&self, call: OpenPix) -> Call<'_, PixOpening> {
        Box::pin(async move { charges::open(&self.calls, &call).await })
    }

    fn received(&self, span: PixSpan) -> Call<'_, PixReceipts> {
        Box::pin(receipts::received(&self.calls, span))
    }

    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(charges::cancel(&self.calls, charge))
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(async move { returns::repay(&self.calls, &call).await })
    }

    /// The special returns that it made; of Efí its open infractions too.
    fn cases(&self, span: PixSpan) -> Call<'_, RailCases> {
        Box::pin(async move {
            let mut cases = returns::debits(&self.calls, span).await?;
            if self.settings.dialect == Dialect::Efi && span.page == 0 {
                cases.cases.extend(infractions::open(&self.calls, span).await?);
            }
            Ok(cases)
        })
    }

    /// Their list of payments is long, and special returns are rare.
    fn cases_every(&self) -> Duration {
        if self.settings.dialect == Dialect::Efi { CASES_EVERY } else { DEBITS_EVERY }
    }

    fn answer_case(&self, answer: CaseAnswer) -> Call<'_, ()> {
        Box::pin(async move {
            match self.settings.dialect {
                Dialect::Efi => infractions::answer(&self.calls, &answer).await,
                _ => Ok(()),
            }
        })
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(async move { returns::accept_dispute(&self.calls, &dispute).await })
    }
}
