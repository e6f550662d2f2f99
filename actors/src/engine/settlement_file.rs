//! Settlement files: batches of an acquirer that gives files only. One operator sends a file, and
//! another one who sends the same file approves it: then its batches are booked, as those of a rail
//! are.
//!
//! The file itself is in no Record. The approval gives its batches their numbers; until they are
//! booked no other file is approved. When the booking breaks off, the same file is sent once more,
//! and merchants pass over the lines that they have.

use std::collections::BTreeMap;

use ledger::event::{Batch, FileApproval};
use ledger::house::HOUSE_GROUP;
use ledger::merchant::{EndedBatch, SentFile, file_id};
use ledger::{Centavos, Decision, Event, GroupNumber, LedgerId, Record, Rejection};

use super::acquirer::{AcquirerBatches, BatchError};
use super::house::operator_of;
use super::outcome::CommandContext;
use super::{Engine, Unavailable};
use crate::rails::{SettlementLine, SettlementPage};
use crate::resident::Outcome;
use derived::records::{LoadError, may_wait};

/// A Record of a preview has no place among its owner's.
const UNNUMBERED: u64 = 0;

/// A batch of a settlement file.
#[derive(Clone, Debug)]
pub struct FileBatch {
    /// The acquirer's name for it.
    pub reference: String,
    /// Day of the payment, in days since 1970-01-01.
    pub paid_on: u32,
    /// Its lines, at least one, in the order of the file.
    pub lines: Vec<SettlementLine>,
}

/// A settlement file, read.
#[derive(Clone, Debug)]
pub struct SettlementFile {
    /// SHA-256 of its lines: two files with the same lines are the same.
    pub digest: [u8; 32],
    /// Its batches, each with another reference.
    pub batches: Vec<FileBatch>,
}

/// What booking a settlement file would write.
#[derive(Clone, Debug, Default)]
pub struct FilePreview {
    /// Each batch, as its last Record would have it.
    pub batches: Vec<EndedBatch>,
    /// For each merchant of a batch, one Record; and one of the house for the lines that name no
    /// captured charge.
    pub records: Vec<Record>,
}

/// Why a settlement file is not booked. Nothing of it is, unless it was approved before.
#[derive(Debug, thiserror::Error)]
pub enum FileRefusal {
    /// A batch of this reference is booked.
    #[error("the batch {0} is booked")]
    BatchBooked(String),
    /// It names a charge that may still turn out to be captured.
    #[error("the acquirer settles charge {0}, which has no outcome yet")]
    PendingCharge(String),
    /// The operator who sent it first sends it again.
    #[error("another operator than the one who asked for it must decide")]
    SecondOperatorNeeded,
    /// The booking of another file broke off.
    #[error("the booking of another file broke off: send that one again first")]
    OtherUnfinished,
    /// Nothing, or only a part, could be written.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl From<BatchError> for FileRefusal {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::PendingCharge(charge) => Self::PendingCharge(charge),
            BatchError::Unavailable(unavailable) => Self::Unavailable(unavailable),
            BatchError::Rail(_) => Self::Unavailable(Unavailable::RailUnavailable),
        }
    }
}

impl From<LoadError> for FileRefusal {
    fn from(error: LoadError) -> Self {
        Self::Unavailable(error.into())
    }
}

impl Engine {
    /// What booking a file would write now. Nothing is changed.
    pub async fn preview_settlement_file(&self, file: &SettlementFile) -> Result<FilePreview, FileRefusal> {
        self.catch_up_for_file().await?;
        let sent = self.sent_file(&file.digest)?;
        may_wait(|| self.check_file(file, sent.and_then(|sent| sent.approved).map(|(first, _)| first)))
    }

    /// Notes that an operator asks for a file to be booked; or books it, when another operator
    /// asked for it before. Gives the file as it stands then, with what is booked.
    pub async fn book_settlement_file(
        &self,
        file: SettlementFile,
        context: CommandContext,
    ) -> Result<(SentFile, FilePreview), FileRefusal> {
        // No batch of a rail is booked meanwhile: what it settles is settled once.
        let _one_at_a_time = self.batches.lock().await;
        self.catch_up_for_file().await?;
        let house = self.house_shard();
        let (sent, batches) = (self.sent_file(&file.digest)?, house.read_model().house(|house| house.file_batches));
        let first_number = sent.as_ref().and_then(|sent| sent.approved.as_ref()).map(|(first, _)| *first);
        let preview = may_wait(|| self.check_file(&file, first_number))?;
        let first_number = match (&sent, first_number) {
            (_, Some(first_number)) => first_number,
            (Some(sent), None) if sent.asked_by == operator_of(&context) => {
                return Err(FileRefusal::SecondOperatorNeeded);
            }
            (Some(_), None) if batches.approved > batches.booked => return Err(FileRefusal::OtherUnfinished),
            (sent, None) => {
                let first_number = batches.approved + 1;
                let approval = sent.as_ref().map(|sent| FileApproval { first_number, asked_by: sent.asked_by.clone() });
                let is_approved = approval.is_some();
                let record = self.record_of_house(|| Decision::of(file.sent(approval)), context).await?;
                if !is_approved {
                    let sent = SentFile::after(None, &file.digest, &record);
                    let sent = sent.ok_or_else(|| Unavailable::contradicting("a settlement file"))?;
                    return Ok((sent, preview));
                }
                first_number
            }
        };
        let digest = file.digest;
        for (number, batch) in (first_number..).zip(file.batches).filter(|(number, _)| *number > batches.booked) {
            let page = batch.page(number);
            self.book_page(page, &mut AcquirerBatches::booked_through(number - 1)).await?;
        }
        let sent = self.sent_file(&digest)?.ok_or_else(|| Unavailable::contradicting("a settlement file"))?;
        Ok((sent, preview))
    }

    /// A file is about charges of all merchants.
    async fn catch_up_for_file(&self) -> Result<(), Unavailable> {
        self.serving_shard(HOUSE_GROUP)?;
        match self.missing().first() {
            Some(partition) => Err(Unavailable::Elsewhere(*partition)),
            None => Ok(self.catch_up().await?),
        }
    }

    /// Rejects a file that waits for another operator. The outcome leaves when it is durable.
    pub async fn reject_settlement_file(
        &self,
        digest: [u8; 32],
        notes: String,
        context: impl Into<CommandContext>,
    ) -> Result<Outcome, Unavailable> {
        let context = context.into();
        let _one_at_a_time = self.batches.lock().await;
        if let Some(key) = &context.key
            && self.find_key(LedgerId::System, key.idempotency.key)?.sequence.is_some()
        {
            return Ok(Outcome::KeyTaken);
        }
        match self.sent_file(&digest)? {
            None => Ok(Outcome::Refused(Rejection::HouseEntryNotFound)),
            Some(SentFile { approved: Some(_), .. }) => Ok(Outcome::Refused(Rejection::HouseEntryAlreadyDecided)),
            Some(_) => {
                let rejected = Decision::of(Event::AcquirerFileRejected { digest: digest.into(), notes });
                Ok(Outcome::Recorded(self.record_of_house(|| rejected, context).await?))
            }
        }
    }

    /// A file as it stands, if an operator sent it and none rejected it.
    pub fn sent_file(&self, digest: &[u8; 32]) -> Result<Option<SentFile>, LoadError> {
        may_wait(|| {
            let house = self.house_shard();
            let mut sent = None;
            for sequence in house.read_model().about(file_id(digest))? {
                sent = SentFile::after(sent, digest, &house.record(sequence)?);
            }
            Ok(sent)
        })
    }

    /// What a file would book. `first_number` is that of a file whose booking broke off: it may
    /// have batches that are booked.
    fn check_file(&self, file: &SettlementFile, first_number: Option<u64>) -> Result<FilePreview, FileRefusal> {
        let mut preview = FilePreview::default();
        let mut batches = AcquirerBatches::booked_through(0);
        let booked = self.house_shard().read_model().house(|house| house.file_batches.booked);
        for (number, batch) in (first_number.unwrap_or(booked + 1)..).zip(&file.batches) {
            let is_own = first_number.is_some() && number <= booked;
            if !is_own && self.is_booked(&batch.reference)? {
                return Err(FileRefusal::BatchBooked(batch.reference.clone()));
            }
            if !is_own {
                self.add_to_preview(batch, number, &mut batches, &mut preview)?;
            }
        }
        // Of an approved file nothing is left to book.
        match file.batches.last() {
            Some(last) if preview.batches.is_empty() => Err(FileRefusal::BatchBooked(last.reference.clone())),
            _ => Ok(preview),
        }
    }

    fn add_to_preview(
        &self,
        batch: &FileBatch,
        number: u64,
        batches: &mut AcquirerBatches,
        preview: &mut FilePreview,
    ) -> Result<(), FileRefusal> {
        let SettlementPage { batch, lines, .. } = batch.clone().page(number);
        let now = self.now();
        let mut by_merchant: BTreeMap<GroupNumber, Vec<SettlementLine>> = BTreeMap::new();
        for line in &lines {
            by_merchant.entry(self.ids().group(line.charge)).or_default().push(*line);
        }
        let mut records = Vec::new();
        for (group, lines) in by_merchant {
            let lines = self.resolve(&batch, &lines, batches)?;
            if !lines.is_empty() {
                let settled = Decision::of(Event::AcquirerSettled { batch: batch.clone(), lines });
                records.push(settled.into_record(LedgerId::Merchant(group), UNNUMBERED, now));
            }
        }
        let mut events: Vec<Event> = std::mem::take(&mut batches.unexplained).event(&batch).into_iter().collect();
        let (lines, net) = (lines.len() as u64, lines.iter().map(SettlementLine::net).sum());
        events.push(Event::AcquirerBatchBooked { batch, lines, net });
        let ended = Decision { events, personal: None }.into_record(LedgerId::System, UNNUMBERED, now);
        preview.batches.extend(EndedBatch::in_record(&ended));
        records.push(ended);
        preview.records.extend(records.into_iter().filter(|record| !record.entries.is_empty()));
        Ok(())
    }

    /// Whether a batch of this reference is booked, from a rail or a file.
    fn is_booked(&self, reference: &str) -> Result<bool, LoadError> {
        let house = self.house_shard();
        for sequence in house.read_model().about(Batch::id_of(reference))? {
            let ended = EndedBatch::in_record(&house.record(sequence)?);
            if ended.is_some_and(|ended| ended.batch.reference == reference) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl SettlementFile {
    fn sent(&self, approval: Option<FileApproval>) -> Event {
        let lines = self.batches.iter().flat_map(|batch| &batch.lines);
        Event::AcquirerFileSent {
            digest: self.digest.into(),
            references: self.batches.iter().map(|batch| batch.reference.clone()).collect(),
            lines: lines.clone().count() as u64,
            net: lines.map(SettlementLine::net).sum::<Centavos>(),
            approval,
        }
    }
}

impl FileBatch {
    /// All of it as one page, as a rail sends it.
    fn page(self, number: u64) -> SettlementPage {
        let Self { reference, paid_on, lines } = self;
        SettlementPage { batch: Batch { number, reference, paid_on, of_file: true }, lines, is_last: true }
    }
}
