//! Notifications of Adyen (standard webhooks). A signature covers eight values, and these alone
//! decide; all else (a reason, a deadline) is shown.
//!
//! `success` is a text. Of `CAPTURE_FAILED` and `REFUND_FAILED` it is `"true"`: the failure
//! happened.

use actors::rails::{CardIncident, CardNotification};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use ledger::{Centavos, ObjectId, RailName};
use serde::Deserialize;
use sha2::Sha256;

use crate::client::now;
use crate::client::values::{REASON_LEN_MAX, instant, is_reference, shortened};

const CURRENCY: &str = "BRL";

/// Why a notification is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBelieved {
    /// It is no notification.
    #[error("its body is no notification")]
    Malformed,
    /// No signature of it holds.
    #[error("its signature does not hold")]
    NotSigned,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    notification_items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    notification_request_item: Notification,
}

/// An item, whose values are texts, but for the amount.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    psp_reference: String,
    #[serde(default)]
    original_reference: Option<String>,
    merchant_account_code: String,
    #[serde(default)]
    merchant_reference: Option<String>,
    amount: Amount,
    event_code: String,
    success: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    additional_data: Additional,
}

#[derive(Deserialize)]
struct Amount {
    currency: String,
    value: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Additional {
    hmac_signature: Option<String>,
    defense_period_ends_at: Option<String>,
}

impl Notification {
    /// What is signed.
    fn signed(&self) -> String {
        let absent = String::new();
        let value = self.amount.value.to_string();
        let values = [
            &self.psp_reference,
            self.original_reference.as_ref().unwrap_or(&absent),
            &self.merchant_account_code,
            self.merchant_reference.as_ref().unwrap_or(&absent),
            &value,
            &self.amount.currency,
            &self.event_code,
            &self.success,
        ];
        values.map(String::as_str).join(":")
    }

    fn is_signed(&self, key: &[u8]) -> bool {
        let signature = self.additional_data.hmac_signature.as_ref();
        let signature = signature.and_then(|text| BASE64_STANDARD.decode(text).ok());
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
        signature.is_some_and(|signature| mac.chain_update(self.signed()).verify_slice(&signature).is_ok())
    }

    /// The incident that it reports; `None` if it changes nothing here.
    fn incident(&self) -> Option<CardIncident> {
        Some(match (self.event_code.as_str(), self.success.as_str()) {
            ("AUTHORISATION", "false") => CardIncident::NotAuthorized,
            ("TECHNICAL_CANCEL", "true") => CardIncident::Cancelled,
            ("EXPIRE", "true") => CardIncident::Expired,
            ("CAPTURE", "false") | ("CAPTURE_FAILED", "true") => CardIncident::CaptureFailed,
            ("REFUND", "false") | ("REFUND_FAILED" | "REFUNDED_REVERSED", "true") => CardIncident::RefundFailed,
            ("NOTIFICATION_OF_CHARGEBACK", "true") => CardIncident::CaseOpened,
            ("CHARGEBACK", "true") => CardIncident::CaseDebited,
            ("CHARGEBACK_REVERSED", "true") => CardIncident::CaseWon,
            ("SECOND_CHARGEBACK", "true") => CardIncident::CaseLostAgain,
            _ => return None,
        })
    }

    fn for_engine(self, rail: &RailName) -> Option<CardNotification> {
        let what = self.incident()?;
        let object = self.merchant_reference.as_deref().and_then(ObjectId::parse)?;
        let (reason, due_at) = (self.reason.unwrap_or_default(), self.additional_data.defense_period_ends_at);
        Some(CardNotification {
            rail: rail.clone(),
            id: self.psp_reference,
            object,
            amount: Centavos(self.amount.value),
            what,
            reason: shortened(&reason, REASON_LEN_MAX),
            due_at: due_at.as_deref().and_then(instant),
            heard_at: now(),
        })
    }
}

/// What a body says. Each item is of this merchant account and signed, or none is believed.
pub(super) fn read(
    body: &[u8],
    key: &[u8],
    merchant_account: &str,
    rail: &RailName,
) -> Result<Vec<CardNotification>, NotBelieved> {
    let body: Body = serde_json::from_slice(body).map_err(|_| NotBelieved::Malformed)?;
    let items: Vec<_> = body.notification_items.into_iter().map(|item| item.notification_request_item).collect();
    if !items.iter().all(|item| item.is_signed(key) && item.merchant_account_code == merchant_account) {
        return Err(NotBelieved::NotSigned);
    }
    let is_ours = |item: &Notification| is_reference(&item.psp_reference) && item.amount.currency == CURRENCY;
    Ok(items.into_iter().filter(is_ours).filter_map(|item| item.for_engine(rail)).collect())
}
