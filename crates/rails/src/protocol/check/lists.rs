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
        let (from, until) = (now().plus_ms(-BACK_MS), now());
        let span = |page| PixSpan { from, until, page };
        if self.serves("pix") {
            let list = async |page| {
                let list = changes::received(self.calls, span(page)).await.map_err(unreadable)?;
                Ok((list.payments, list.has_more))
            };
            entries += twice("payments", list).await?;
        }
        if self.serves("payout") {
            let to = PayoutBank::Pix;
            let list = async |page| {
                let list = changes::returned(self.calls, span(page), to).await.map_err(unreadable)?;
                Ok((list.transfers, list.has_more))
            };
            entries += twice("returned transfers", list).await?;
        }
        let kinds = [("card", RailKind::Card), ("pix", RailKind::Pix)];
        if let Some((_, rail)) = kinds.into_iter().find(|(kind, _)| self.capabilities.disputes && self.serves(kind)) {
            let list = async |page| {
                let list = changes::cases(self.calls, rail, span(page)).await.map_err(unreadable)?;
                Ok((list.cases, list.has_more))
            };
            entries += twice("disputes", list).await?;
        }
        if entries == 0 { not_tested("its lists are empty") } else { Ok(()) }
    }

    /// Reads the first batch twice, and the batch behind it.
    async fn settles_the_same_again(&self) -> Result<usize, Defect> {
        let page = async |_| {
            let first = settlements::settlements(self.calls, SettlementCursor::default()).await.map_err(unreadable)?;
            Ok((first.into_iter().collect(), false))
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

/// Reads the first page of a list twice, and the page behind it. The second time has all of the
/// first, and the page behind is another one.
async fn twice<T: PartialEq>(
    what: &str,
    list: impl AsyncFn(u32) -> Result<(Vec<T>, bool), Defect>,
) -> Result<usize, Defect> {
    let (first, has_more) = list(0).await?;
    let (second, _) = list(0).await?;
    if !first.iter().all(|entry| second.contains(entry)) {
        return broken(format!("the list of {what} was read twice, and the second time had not all of the first"));
    }
    if has_more && list(1).await?.0 == first {
        return broken(format!("page 1 of the list of {what} is page 0 once more: `page` is not read"));
    }
    Ok(first.len())
}
