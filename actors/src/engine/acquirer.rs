//! The acquirer's batches: read page by page, resolved to the charges that they name, and booked by
//! the merchants of those charges. A batch that was interrupted is read again from its start; each
//! merchant passes over the lines that it has.
//!
//! A line whose charge was never captured goes to the house's account of suspense, in the Record
//! that ends the batch. So does a line for what was settled before: an installment is booked once.
//! A charge that has no outcome yet makes its batch wait.

use std::collections::{BTreeMap, BTreeSet};

use ledger::event::{Batch, SettledLine};
use ledger::merchant::BookBatch;
use ledger::{
    Centavos, Charge, ChargeOutcome, Decision, Event, GroupNumber, MerchantCommand, ObjectId, SettledObject, Timestamp,
};

use super::outcome::CommandContext;
use super::rail_line::RailLine;
use super::{Engine, INSIDE_BYTES, RAIL_ANSWER_MAX, Unavailable};
use crate::rails::{CardRail, RailError, SettlementCursor, SettlementLine, SettlementPage};
use crate::resident::Outcome;
use derived::records::may_wait;

/// How many lines one Record has at most.
const LINES_PER_RECORD: usize = 256;
/// How many unexplained lines of a batch its Record lists at most; all of them are summed.
const UNEXPLAINED_LISTED: usize = 10_000;
/// Bytes of a Record for each of its lines, at most.
const BYTES_PER_LINE: usize = 80;
/// After an error the acquirer is asked again after this time, milliseconds.
const ASK_AGAIN_AFTER_MS: i64 = 60_000;

/// How far the acquirer's batches are booked, and when to ask for more.
pub(super) struct AcquirerBatches {
    /// When the acquirer is to be asked.
    pub(super) ask_at: Timestamp,
    read: SettlementCursor,
    /// Lines of the open batch, by merchant.
    lines_of: BTreeMap<GroupNumber, u64>,
    /// Sum of the open batch's lines, after fees.
    net: Centavos,
    /// Objects for which the open batch had a line, some 50 bytes each.
    settled: BTreeSet<(ObjectId, SettledObject, bool)>,
    pub(super) unexplained: UnexplainedLines,
}

/// Lines of the open batch whose charges were never captured, or that were settled before.
#[derive(Default)]
pub(super) struct UnexplainedLines {
    count: u64,
    net: Centavos,
    /// The first of them.
    lines: Vec<SettledLine>,
}

impl UnexplainedLines {
    fn add(&mut self, line: &SettlementLine) {
        let SettlementLine { charge, object, gross, fee } = *line;
        let line = SettledLine { charge, object, gross, fee, booked_fee: Centavos::ZERO };
        self.count += 1;
        self.net += line.net();
        if self.lines.len() < UNEXPLAINED_LISTED {
            self.lines.push(line);
        }
    }

    pub(super) fn event(self, batch: &Batch) -> Option<Event> {
        let Self { count, net, lines } = self;
        (count > 0).then(|| Event::AcquirerUnexplained { batch: batch.clone(), count, net, lines })
    }
}

impl AcquirerBatches {
    /// The batches through this number are booked.
    pub(super) fn booked_through(batch: u64) -> Self {
        Self {
            ask_at: Timestamp(0),
            read: SettlementCursor { batch, lines: 0 },
            lines_of: BTreeMap::new(),
            net: Centavos::ZERO,
            settled: BTreeSet::new(),
            unexplained: UnexplainedLines::default(),
        }
    }
}

impl Engine {
    /// Books the batches that the acquirer has paid by `now`, if it is time to ask.
    pub(super) async fn book_batches(&self, batches: &mut AcquirerBatches, now: Timestamp) {
        let Ok((_, rail)) = self.current_card_rail() else { return };
        // It names charges of all merchants.
        if now < batches.ask_at || !self.serves_house() || !self.has_all() {
            return;
        }
        batches.ask_at = match self.book_pages(&rail, batches, now).await {
            Ok(()) => rail.rail.settles_next(now),
            Err(error) => {
                tracing::warn!(%error, "the acquirer's batches could not be booked; it is asked again");
                *batches = AcquirerBatches::booked_through(batches.read.batch);
                now.plus_ms(ASK_AGAIN_AFTER_MS)
            }
        };
    }

    async fn book_pages(
        &self,
        rail: &RailLine<'_, dyn CardRail>,
        batches: &mut AcquirerBatches,
        now: Timestamp,
    ) -> Result<(), BatchError> {
        loop {
            let read = batches.read;
            let answer = rail.call(RAIL_ANSWER_MAX, |rail| rail.settlements(read, now)).await?;
            let Some(page) = answer else { return Ok(()) };
            self.book_page(page, batches).await?;
        }
    }

    pub(super) async fn book_page(
        &self,
        page: SettlementPage,
        batches: &mut AcquirerBatches,
    ) -> Result<(), BatchError> {
        let SettlementPage { batch, lines, is_last } = page;
        self.catch_up().await.map_err(Unavailable::from)?;
        batches.read.lines += lines.len() as u64;
        batches.net += lines.iter().map(SettlementLine::net).sum();
        let mut by_merchant: BTreeMap<GroupNumber, Vec<SettlementLine>> = BTreeMap::new();
        for line in lines {
            by_merchant.entry(self.ids().group(line.charge)).or_default().push(line);
        }
        for (group, lines) in by_merchant {
            for lines in lines.chunks(LINES_PER_RECORD) {
                let lines = may_wait(|| self.resolve(&batch, lines, batches))?;
                if lines.is_empty() {
                    continue;
                }
                let seen = batches.lines_of.entry(group).or_default();
                let first_line = std::mem::replace(seen, *seen + lines.len() as u64);
                self.book_lines(group, BookBatch { batch: batch.clone(), first_line, lines }).await?;
            }
        }
        if is_last {
            let through = batch.number;
            let unexplained = std::mem::take(&mut batches.unexplained);
            if unexplained.count > 0 {
                let (count, net) = (unexplained.count, unexplained.net);
                tracing::warn!(batch = batch.reference, count, %net, "lines of a batch name no captured charge, or come twice");
            }
            let permit = self.admission.take(INSIDE_BYTES + unexplained.lines.len() * BYTES_PER_LINE).await;
            let mut events: Vec<_> = unexplained.event(&batch).into_iter().collect();
            events.push(Event::AcquirerBatchBooked { lines: batches.read.lines, net: batches.net, batch });
            self.record_of_house(|| Decision { events, personal: None }, CommandContext::from(permit)).await?;
            *batches = AcquirerBatches { ask_at: batches.ask_at, ..AcquirerBatches::booked_through(through) };
        }
        Ok(())
    }

    /// Has a merchant book its lines of a batch, wherever it is. It passes over those that it has.
    pub async fn book_lines(&self, group: GroupNumber, lines: BookBatch) -> Result<(), Unavailable> {
        if !self.serves(group) {
            return self.others_than(self.extents.partition_of(group))?.book_lines(group, lines).await;
        }
        let permit = self.admission.take(INSIDE_BYTES + lines.lines.len() * BYTES_PER_LINE).await;
        match self.command(group, MerchantCommand::BookBatch(Box::new(lines)), permit).await? {
            Outcome::Refused(_) => Err(Unavailable::contradicting("lines of a batch")),
            _ => Ok(()),
        }
    }

    /// The lines of captured charges, with the part of the fee that was booked with each. Those of
    /// other charges, and those of what was settled before, are added to the unexplained ones.
    pub(super) fn resolve(
        &self,
        batch: &Batch,
        lines: &[SettlementLine],
        batches: &mut AcquirerBatches,
    ) -> Result<Vec<SettledLine>, BatchError> {
        let mut resolved = Vec::with_capacity(lines.len());
        for line in lines {
            let SettlementLine { charge, object, gross, fee } = *line;
            let Some(facts) = self.charge_facts(charge).map_err(Unavailable::from)? else {
                self.check_ended(charge)?;
                batches.unexplained.add(line);
                continue;
            };
            let is_paid = gross >= Centavos::ZERO;
            let in_batch = usize::from(batches.settled.contains(&(charge, object, !is_paid)));
            if !batches.settled.insert((charge, object, is_paid))
                || self.is_settled_before(batch, (charge, object), in_batch)?
            {
                batches.unexplained.add(line);
                continue;
            }
            let booked_fee = match object {
                SettledObject::Installment(number) => facts.booked_fee(number),
                SettledObject::Refund(_) | SettledObject::Dispute(_) => Centavos::ZERO,
            };
            resolved.push(SettledLine { charge, object, gross, fee, booked_fee });
        }
        Ok(resolved)
    }

    /// Whether every claim about an object has a line that is booked, in another batch or among
    /// `in_batch` lines of this one. A dispute or refund that was reversed is two claims: what the
    /// acquirer took, and what it gives back.
    fn is_settled_before(
        &self,
        batch: &Batch,
        (charge, object): (ObjectId, SettledObject),
        in_batch: usize,
    ) -> Result<bool, BatchError> {
        let settles = |line: &&SettledLine| (line.charge, line.object) == (charge, object);
        let (mut claims, mut settled) = (1, in_batch);
        let shard = self.shard_with(charge);
        for sequence in shard.read_model().about(charge).map_err(Unavailable::from)? {
            let record = shard.record(sequence).map_err(Unavailable::from)?;
            for event in &record.events {
                match event {
                    Event::AcquirerSettled { batch: other, lines } if !other.is_same(batch) => {
                        settled += lines.iter().filter(settles).count();
                    }
                    Event::DisputeReversed { id, .. } => claims += usize::from(object == SettledObject::Dispute(*id)),
                    Event::RepaymentReversed { id, .. } => claims += usize::from(object == SettledObject::Refund(*id)),
                    _ => {}
                }
            }
        }
        Ok(settled >= claims)
    }

    /// An error for a charge that may still turn out to be captured.
    fn check_ended(&self, charge: ObjectId) -> Result<(), BatchError> {
        let found: Option<Charge> = self.object(charge).map_err(Unavailable::from)?;
        match found.map(|found| found.outcome) {
            Some(ChargeOutcome::Pending | ChargeOutcome::Unanswered) => Err(BatchError::PendingCharge(charge.txid())),
            _ => Ok(()),
        }
    }
}

/// Why a batch is not booked.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    #[error(transparent)]
    Rail(#[from] RailError),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("the acquirer settles charge {0}, which has no outcome yet")]
    PendingCharge(String),
}
