//! Rule 15: lists.

use actors::rails::{PixSpan, SettlementCursor};
use ledger::event::PayoutBank;

use super::super::calls::now;
use super::super::settings::RailKind;
use super::super::{changes, settlements};
use super::{Check, Defect, Rule, broken, not_tested};

/// How far back lists are read, milliseconds.
const BACK_MS: i64 = 24 * 60 * 60 * 1000;

impl Check<'_> {
    /// Rule 15.
    pub(super) async fn lists_the_same_again(&self) -> Rule {
        let mut entries = 0;
        if self.serves("card") {
            entries += self.settles_the_same_again().await?;
        }
        let span = PixSpan { from: now().plus_ms(-BACK_MS), until: now(), page: 0 };
        if self.serves("pix") {
            let list = async || Ok(changes::received(self.calls, span).await.map_err(unreadable)?.payments);
            entries += twice("payments", list).await?;
        }
        if self.serves("payout") {
            let to = PayoutBank::Pix;
            let list = async || Ok(changes::returned(self.calls, span, to).await.map_err(unreadable)?.transfers);
            entries += twice("returned transfers", list).await?;
        }
        let kinds = [("card", RailKind::Card), ("pix", RailKind::Pix)];
        if let Some((_, rail)) = kinds.into_iter().find(|(kind, _)| self.capabilities.disputes && self.serves(kind)) {
            let list = async || Ok(changes::cases(self.calls, rail, span).await.map_err(unreadable)?.cases);
            entries += twice("disputes", list).await?;
        }
        if entries == 0 { not_tested("its lists are empty") } else { Ok(()) }
    }

    /// Reads the first batch twice, and the batch behind it.
    async fn settles_the_same_again(&self) -> Result<usize, Defect> {
        let page = async || {
            let first = settlements::settlements(self.calls, SettlementCursor::default()).await.map_err(unreadable)?;
            Ok(first.into_iter().collect())
        };
        let entries = twice("batches", page).await?;
        let first = settlements::settlements(self.calls, SettlementCursor::default()).await.map_err(unreadable)?;
        if let Some(first) = first.filter(|first| first.is_last) {
            let after = SettlementCursor { batch: first.batch.number, lines: 0 };
            settlements::settlements(self.calls, after).await.map_err(unreadable)?;
        }
        Ok(entries)
    }
}

fn unreadable(_: actors::rails::RailError) -> Defect {
    Defect::Broken("a list cannot be read; the log says why".to_owned())
}

/// Reads a list twice; the second time has all of the first.
async fn twice<T: PartialEq>(what: &str, list: impl AsyncFn() -> Result<Vec<T>, Defect>) -> Result<usize, Defect> {
    let first = list().await?;
    let second = list().await?;
    match first.iter().all(|entry| second.contains(entry)) {
        true => Ok(first.len()),
        false => broken(format!("the list of {what} was read twice, and the second time had not all of the first")),
    }
}
