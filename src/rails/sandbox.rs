//! Rails of the sandbox: simulated card acquirer, PIX institution and payout institution. Each
//! answers every question about a charge or transfer in the same way, also after a crash.

use std::path::Path;

use actors::rails::{Call, PixFate, PixRail, Rails, Repay};
use ledger::id::ObjectId;

use super::acquirer::SandboxAcquirer;
use super::payouts::SandboxPayouts;

/// The rails of a sandbox. Its institutions keep their own files in `folder`.
pub fn rails(folder: &Path) -> Rails {
    Rails {
        card: Box::new(SandboxAcquirer::new(folder)),
        pix: Box::new(SandboxPix),
        payout: Box::new(SandboxPayouts::new(folder)),
    }
}

/// Simulated PIX institution.
struct SandboxPix;

impl PixRail for SandboxPix {
    fn location(&self, charge: ObjectId) -> String {
        format!("sandbox.centavo.invalid/pix/v2/{}", charge.txid())
    }

    /// Cancels the code. The engine asks about pending charges only, whose codes are unpaid.
    fn cancel(&self, _charge: ObjectId) -> Call<'_, PixFate> {
        Box::pin(std::future::ready(Ok(PixFate::Cancelled)))
    }

    fn repay(&self, _order: Repay) -> Call<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}
