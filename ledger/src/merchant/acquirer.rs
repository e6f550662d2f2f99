//! Batches of the acquirer: on the day that it says, and not by the calendar, it pays installments
//! and keeps back the money of refunds and disputes. Each line is booked once.

use minicbor::{Decode, Encode};

use super::MerchantState;
use crate::event::{Batch, Event, SettledLine};
use crate::money::Centavos;
use crate::record::{Decision, Record};

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

impl MerchantState {
    /// Lines that are booked already are left out, so that a batch can be read again from its
    /// start. Batches, and the lines of a batch, come in order.
    pub(super) fn book_batch(&self, reported: BookBatch) -> Decision {
        let BookBatch { batch, first_line, mut lines } = reported;
        let booked = match batch.number.cmp(&self.settled.batch) {
            std::cmp::Ordering::Less => return Decision::default(),
            std::cmp::Ordering::Equal => self.settled.lines.saturating_sub(first_line),
            std::cmp::Ordering::Greater => 0,
        };
        lines.drain(..usize::try_from(booked).unwrap_or(usize::MAX).min(lines.len()));
        if lines.is_empty() { Decision::default() } else { Decision::of(Event::AcquirerSettled { batch, lines }) }
    }

    pub(super) fn apply_batch(&mut self, batch: u64, lines: usize) {
        let before = if batch == self.settled.batch { self.settled.lines } else { 0 };
        self.settled = SettledThrough { batch, lines: before + lines as u64 };
    }
}
