//! Return of a paid withdrawal that the institution did not tell: an operator asks for it, and
//! another one approves it. It belongs to the recipient's ledger, however long ago the withdrawal
//! was paid. At most one waits for each withdrawal.

use minicbor::{Decode, Encode};

use crate::event::{Event, PayoutBank, ReturnEntry};
use crate::house::{HouseEntryDecision, may_take_effect};
use crate::id::{LedgerId, ObjectId};
use crate::money::Centavos;
use crate::object::Object;
use crate::record::Record;
use crate::rejection::Rejection;
use crate::time::{Month, Timestamp};
use crate::withdrawal::Withdrawal;

/// A request of an operator about the return of a withdrawal. The caller has read the withdrawal,
/// and of an approval after it has read the request; the recipient's state knows what came since.
#[derive(Clone, Debug)]
pub enum ReturnCommand {
    /// Asks for it.
    Request {
        /// Id of the entry, a new one.
        id: ObjectId,
        /// The withdrawal.
        withdrawal: Box<Withdrawal>,
        /// The account that the money came back to; none for the one that it had left.
        to: Option<PayoutBank>,
        /// Reference of the document that proves it.
        reference: String,
        /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it
        /// is booked.
        effective_day: Option<u32>,
        /// Why, in the operator's words. Whoever asked for the withdrawal reads it.
        reason: String,
    },
    /// Approves it, which books it at once.
    Approve {
        /// Id of the entry.
        id: ObjectId,
        /// The withdrawal.
        withdrawal: Box<Withdrawal>,
        /// The operator who approves.
        operator: String,
    },
    /// Rejects it, or takes back one's own.
    Reject {
        /// Id of the entry.
        id: ObjectId,
        /// Why, in the operator's words.
        notes: String,
    },
}

/// The return of a withdrawal that waits for a second operator.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub(crate) struct OpenReturn {
    #[n(0)]
    id: ObjectId,
    #[n(1)]
    withdrawal: ObjectId,
    #[n(2)]
    bank: Option<PayoutBank>,
    #[n(3)]
    reference: String,
    #[n(4)]
    effective_day: Option<u32>,
    #[n(5)]
    reason: String,
    /// The operator who asked for it.
    #[n(6)]
    requested_by: String,
    /// True when the withdrawal came back meanwhile: the institution told it.
    #[n(7)]
    is_over: bool,
}

impl OpenReturn {
    /// Those that wait after an event of their recipient's Record.
    pub(crate) fn follow(open: &mut Vec<Self>, event: &Event, record: &Record) {
        match event {
            Event::WithdrawalReturnRequested { id, withdrawal, bank, reference, effective_day, reason, .. } => {
                open.push(Self {
                    id: *id,
                    withdrawal: *withdrawal,
                    bank: *bank,
                    reference: reference.clone(),
                    effective_day: *effective_day,
                    reason: reason.clone(),
                    requested_by: record.operator.clone().unwrap_or_default(),
                    is_over: false,
                });
            }
            Event::WithdrawalReturnRejected { id, .. } => open.retain(|open| open.id != *id),
            Event::WithdrawalReturned { id, entry, .. } => {
                open.retain(|open| entry.as_ref().is_none_or(|entry| entry.id != open.id));
                open.iter_mut().filter(|open| open.withdrawal == *id).for_each(|open| open.is_over = true);
            }
            _ => {}
        }
    }
}

impl ReturnCommand {
    /// The entry that it is about.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Request { id, .. } | Self::Approve { id, .. } | Self::Reject { id, .. } => *id,
        }
    }

    /// Decides it for a recipient of which `open` wait. Nothing is booked into the months through
    /// `closed`.
    pub(crate) fn decide(self, open: &[OpenReturn], closed: Option<Month>) -> Result<Event, Rejection> {
        let of = |id| open.iter().find(|open| open.id == id).ok_or(Rejection::HouseEntryAlreadyDecided);
        match self {
            Self::Request { id, withdrawal, to, reference, effective_day, reason } => {
                let left = check(&withdrawal, effective_day, closed)?;
                if open.iter().any(|open| open.withdrawal == withdrawal.id) {
                    return Err(Rejection::ReturnWaits);
                }
                let (amount, bank) = (withdrawal.amount, to.or(left));
                let withdrawal = withdrawal.id;
                Ok(Event::WithdrawalReturnRequested { id, withdrawal, amount, bank, reference, effective_day, reason })
            }
            Self::Approve { id, withdrawal, operator } => {
                let open = of(id)?;
                if open.requested_by == operator {
                    return Err(Rejection::SecondOperatorNeeded);
                }
                if open.is_over || open.withdrawal != withdrawal.id {
                    return Err(Rejection::WithdrawalNotPaid);
                }
                check(&withdrawal, open.effective_day, closed)?;
                let Withdrawal { id, amount, spans, consumed, settlements, .. } = *withdrawal;
                let OpenReturn { bank, reference, effective_day, reason: notes, .. } = open.clone();
                let entry = Some(ReturnEntry { id: open.id, reference, effective_day });
                Ok(Event::WithdrawalReturned { id, amount, spans, consumed, notes, settlements, bank, entry })
            }
            Self::Reject { id, notes } => Ok(Event::WithdrawalReturnRejected { id: of(id)?.id, notes }),
        }
    }
}

/// The account that a withdrawal left that may come back on this day.
fn check(
    withdrawal: &Withdrawal,
    effective_day: Option<u32>,
    closed: Option<Month>,
) -> Result<Option<PayoutBank>, Rejection> {
    let payment = withdrawal.payment.as_ref().ok_or(Rejection::WithdrawalNotPaid)?;
    if effective_day.is_some_and(|day| Timestamp::end_of_day(day) < payment.effective_at) {
        return Err(Rejection::ReturnedBeforePaid);
    }
    may_take_effect(effective_day, closed)?;
    Ok(payment.bank)
}

/// The return of a withdrawal that an operator asked for, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithdrawalReturn {
    /// Id of the entry. It tells when it was asked for.
    pub id: ObjectId,
    /// The withdrawal.
    pub withdrawal: ObjectId,
    /// The recipient whose withdrawal it is.
    pub recipient: LedgerId,
    /// How much, centavos: the whole withdrawal.
    pub amount: Centavos,
    /// The account that the money came back to.
    pub bank: PayoutBank,
    /// Reference of the document that proves it.
    pub reference: String,
    /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it is
    /// booked.
    pub effective_day: Option<u32>,
    /// Why, as the first operator said.
    pub reason: String,
    /// The operator who asked for it.
    pub requested_by: String,
    /// Its status.
    pub decision: HouseEntryDecision,
}

impl Object for WithdrawalReturn {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::WithdrawalReturnRequested { id, withdrawal, amount, bank, reference, effective_day, reason } => {
                Some(Self {
                    id: *id,
                    withdrawal: *withdrawal,
                    recipient: record.owner,
                    amount: *amount,
                    bank: bank.unwrap_or(PayoutBank::Settlement),
                    reference: reference.clone(),
                    effective_day: *effective_day,
                    reason: reason.clone(),
                    requested_by: record.operator.clone().unwrap_or_default(),
                    decision: HouseEntryDecision::Pending,
                })
            }
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        let entry = self.id;
        self.decision.follow(
            record,
            |event| matches!(event, Event::WithdrawalReturned { entry: Some(said), .. } if said.id == entry),
            |event| match event {
                Event::WithdrawalReturnRejected { id, notes } if *id == entry => Some(notes),
                _ => None,
            },
        );
    }
}
