//! Batches of the acquirer: on the day that it says, and not by the calendar, it pays installments
//! and keeps back the money of refunds and disputes. Each line is booked once.

use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::event::{FileApproval, SettledLine};
use crate::{Batch, Centavos, Decision, Event, ObjectId, Record, Timestamp};

/// How far the acquirer's batches are booked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub(super) struct SettledThrough {
    /// Number of the last batch with a line of this merchant; 0 before the first one.
    #[n(0)]
    batch: u64,
    /// How many of this merchant's lines in that batch are booked.
    #[n(1)]
    lines: u64,
}

/// Lines of a batch that belong to one merchant's charges.
#[derive(Clone, Debug, Encode, Decode)]
pub struct BookBatch {
    /// The batch.
    #[n(0)]
    pub batch: Batch,
    /// How many of this merchant's lines come before these in the batch.
    #[n(1)]
    pub first_line: u64,
    /// The lines, in the acquirer's order.
    #[n(2)]
    pub lines: Vec<SettledLine>,
}

impl BookBatch {
    /// Its bytes, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        minicbor::to_vec(self).expect("writing into memory cannot fail")
    }

    /// Reads its bytes; `None` if they are not its.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        minicbor::decode(bytes).ok()
    }
}

/// Batch of the acquirer that is booked whole, from the Record that ended it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedBatch {
    /// The batch.
    pub batch: Batch,
    /// How many lines it has.
    pub lines: u64,
    /// The sum of its lines, after fees, centavos.
    pub net: Centavos,
    /// How many of its lines name a charge that was never captured.
    pub unexplained_lines: u64,
    /// The sum of these, after fees, centavos.
    pub unexplained_net: Centavos,
}

impl EndedBatch {
    /// The batch that a Record ends; `None` if it ends none.
    pub fn in_record(record: &Record) -> Option<Self> {
        let unexplained = record.events.iter().find_map(|event| match event {
            Event::AcquirerUnexplained { count, net, .. } => Some((*count, *net)),
            _ => None,
        });
        let (unexplained_lines, unexplained_net) = unexplained.unwrap_or_default();
        record.events.iter().find_map(|event| match event {
            Event::AcquirerBatchBooked { batch, lines, net } => {
                Some(Self { batch: batch.clone(), lines: *lines, net: *net, unexplained_lines, unexplained_net })
            }
            _ => None,
        })
    }
}

/// A settlement file that operators sent: it waits, or was approved. One that was rejected is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentFile {
    /// The operator who sent it first.
    pub asked_by: String,
    /// References of its batches.
    pub references: Vec<String>,
    /// The number of its first batch, and the operator who approved it; none before.
    pub approved: Option<(u64, String)>,
    /// When that was booked.
    pub approved_at: Option<Timestamp>,
}

/// The id under which the Records of a settlement file are found. It is no object's: its birth time
/// is 0.
pub fn file_id(digest: &[u8; 32]) -> ObjectId {
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    ObjectId::of_text(&hex)
}

impl SentFile {
    /// The file after a Record; `None` if no Record so far is about it.
    pub fn after(before: Option<Self>, of: &[u8; 32], record: &Record) -> Option<Self> {
        let by = record.operator.clone().unwrap_or_default();
        let sent = record.events.iter().find_map(|event| match event {
            Event::AcquirerFileSent { digest, references, approval, .. } if **digest == *of => {
                let references = references.clone();
                Some(Some(match approval.clone() {
                    None => Self { asked_by: by.clone(), references, approved: None, approved_at: None },
                    Some(FileApproval { first_number, asked_by }) => Self {
                        asked_by,
                        references,
                        approved: Some((first_number, by.clone())),
                        approved_at: Some(record.effective_at),
                    },
                }))
            }
            Event::AcquirerFileRejected { digest, .. } if **digest == *of => Some(None),
            _ => None,
        });
        sent.unwrap_or(before)
    }
}

impl MerchantState {
    /// Lines that are booked already are left out, so that a batch can be read again from its
    /// start. Batches, and the lines of a batch, come in order.
    pub(super) fn book_batch(&self, reported: BookBatch) -> Decision {
        let BookBatch { batch, first_line, mut lines } = reported;
        let settled = if batch.of_file { self.settled_by_files } else { self.settled };
        let booked = match batch.number.cmp(&settled.batch) {
            std::cmp::Ordering::Less => return Decision::default(),
            std::cmp::Ordering::Equal => settled.lines.saturating_sub(first_line),
            std::cmp::Ordering::Greater => 0,
        };
        lines.drain(..usize::try_from(booked).unwrap_or(usize::MAX).min(lines.len()));
        if lines.is_empty() { Decision::default() } else { Decision::of(Event::AcquirerSettled { batch, lines }) }
    }

    pub(super) fn apply_batch(&mut self, batch: &Batch, lines: usize) {
        let settled = if batch.of_file { &mut self.settled_by_files } else { &mut self.settled };
        let before = if batch.number == settled.batch { settled.lines } else { 0 };
        *settled = SettledThrough { batch: batch.number, lines: before + lines as u64 };
    }
}
