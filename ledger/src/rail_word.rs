//! Word of two operators on an order whose rail left its outcome unknown for an hour: one operator
//! says what the bank or acquirer confirmed on paper, and another one says the same. It ends the
//! order as the rail's own answer would. Between the two words nothing is sent again. A first word
//! that nobody confirms lapses after a day.

use crate::merchant::{FailRefund, ReturnedCashout};
use crate::{Event, ObjectId, PayoutBank, Record, Rejection, Timestamp};

/// How long an outcome has to be unknown before operators may end it, milliseconds.
pub const UNKNOWN_FOR_MS: i64 = 60 * 60 * 1000;

/// How long a first word waits for the second one, milliseconds. Then it lapses.
const WORD_WAITS_MS: i64 = 24 * 60 * 60 * 1000;

/// What an operator says of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RailWord {
    /// Whether money has moved as it was ordered.
    pub happened: bool,
    /// Reference of the document that proves it; the end-to-end id where a PIX payment or transfer
    /// happened.
    pub reference: String,
}

/// The word of an operator, as a command.
#[derive(Clone, Debug)]
pub struct SayRailWord {
    /// The order: a charge, cashout, withdrawal, refund, dispute or repayment; or a notification
    /// that waits.
    pub id: ObjectId,
    /// The word.
    pub word: RailWord,
    /// Why, in the operator's words.
    pub reason: String,
    /// The operator who said the same before; `None` if this is the first word.
    pub asked_by: Option<String>,
    /// The account that a transfer left.
    pub bank: PayoutBank,
    /// The refund that did not happen, if it is one.
    pub refund: Option<Box<FailRefund>>,
    /// The processed cashout whose money came back, if it is one.
    pub returned: Option<Box<ReturnedCashout>>,
    /// The charge of a notification that waits, if it is one.
    pub deferred: Option<ObjectId>,
}

impl SayRailWord {
    /// The event of the first word.
    pub(crate) fn into_request(self) -> Event {
        let Self { id, word: RailWord { happened, reference }, reason, .. } = self;
        Event::RailWordAsked { id, happened, reference, reason }
    }

    /// The event of the second word, which stands behind those of the order's end.
    pub(crate) fn given(self, asked_by: String) -> Event {
        let Self { id, word: RailWord { happened, reference }, reason, .. } = self;
        Event::RailWordGiven { id, happened, reference, reason, asked_by }
    }

    /// Refuses a word on an order that is not old enough. The rail was to know the order at
    /// `since`, and an hour later an operator may speak. From then on nothing is sent again; what
    /// was sent again before (`tried_at`) has an hour too until the second word.
    pub(crate) fn check_age(
        &self,
        (since, tried_at): (Timestamp, Option<Timestamp>),
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let known_at = tried_at.filter(|_| self.asked_by.is_some()).unwrap_or(since).max(since);
        if known_at.plus_ms(UNKNOWN_FOR_MS) <= now { Ok(()) } else { Err(Rejection::OutcomeNotUnknown) }
    }
}

/// The word that waits for a second operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRailWord {
    /// The word.
    pub word: RailWord,
    /// Why, in the operator's words.
    pub reason: String,
    /// Who said it.
    pub by: String,
    /// When that was.
    pub at: Timestamp,
    /// When the order was last sent again; `None` if it was sent once.
    pub tried_at: Option<Timestamp>,
}

impl AskedRailWord {
    /// The word that is open at `now`, in the Records about an order. It lapses after a day, and
    /// when something becomes of the order, which was unknown when the word was said.
    pub fn in_records(records: &[Record], id: ObjectId, now: Timestamp) -> Option<Self> {
        let events = records.iter().flat_map(|record| record.events.iter().map(move |event| (record, event)));
        let mut tried_at = None;
        let last = events.fold(None, |before, (record, event)| match event {
            Event::RailWordAsked { id: of, happened, reference, reason } if *of == id => Some(Self {
                word: RailWord { happened: *happened, reference: reference.clone() },
                reason: reason.clone(),
                by: record.operator.clone().unwrap_or_default(),
                at: record.effective_at,
                tried_at,
            }),
            Event::RailTried { id: of, .. } if *of == id => {
                tried_at = Some(record.effective_at);
                before.map(|asked| Self { tried_at, ..asked })
            }
            // Of these nothing becomes of it.
            Event::RailTried { .. }
            | Event::NoteWritten { .. }
            | Event::MetadataChanged { .. }
            | Event::FiscalDocumentLinked { .. }
            | Event::FiscalDocumentUnlinked { .. }
            | Event::CardUnanswered { .. } => before,
            _ => None,
        });
        last.filter(|asked: &Self| asked.at.plus_ms(WORD_WAITS_MS) > now)
    }
}
