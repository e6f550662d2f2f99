//! Return of a paid withdrawal that the institution did not report: an operator asks for it, and
//! another one approves it. It belongs to the recipient's ledger, however long ago the withdrawal
//! was paid. At most one waits for each withdrawal.

use minicbor::{Decode, Encode};

use crate::asked_entry::{AskedEntry, EntryCommand, EntryTerms};
use crate::event::ReturnEntry;
use crate::house::may_take_effect;
use crate::{Centavos, Event, Month, ObjectId, PayoutBank, Record, Rejection, Result, Timestamp, Withdrawal};

/// Command of an operator about the return of a withdrawal. The caller has read the withdrawal, and
/// of a ruling after it has read the request; the recipient's state knows what came since.
#[derive(Clone, Debug)]
pub struct ReturnCommand {
    /// The withdrawal.
    pub withdrawal: Box<Withdrawal>,
    /// What the operator does.
    pub command: EntryCommand<ReturnRequest>,
}

/// What an operator says of a return.
#[derive(Clone, Debug)]
pub struct ReturnRequest {
    /// The account that the money came back to; `None` if it is the account that it had left.
    pub to: Option<PayoutBank>,
    /// Reference of the document that proves it.
    pub reference: String,
    /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it is
    /// booked.
    pub effective_day: Option<u32>,
}

/// What a return gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReturnTerms {
    /// The withdrawal.
    pub withdrawal: ObjectId,
    /// How much, centavos: the whole withdrawal.
    pub amount: Centavos,
    /// The account that the money came back to.
    pub bank: PayoutBank,
    /// Reference of the document that proves it.
    pub reference: String,
    /// The day on which it takes effect, in days since 1970-01-01; none for the day on which it is
    /// booked.
    pub effective_day: Option<u32>,
}

/// The return of a withdrawal that an operator asked for, from its Records. Its owner is the
/// recipient. Whoever asked for the withdrawal reads the reason.
pub type WithdrawalReturn = AskedEntry<ReturnTerms>;

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
    /// True if the withdrawal came back meanwhile, by the institution's word.
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
    /// Decides the return; `open` are the recipient's returns that await approval. Nothing is
    /// booked into the months through `closed`.
    pub(crate) fn decide(self, open: &[OpenReturn], closed: Option<Month>) -> Result<Event> {
        let withdrawal = *self.withdrawal;
        match self.command {
            EntryCommand::Request { id, terms: ReturnRequest { to, reference, effective_day }, reason } => {
                let left = check(&withdrawal, effective_day, closed)?;
                if open.iter().any(|open| open.withdrawal == withdrawal.id) {
                    return Err(Rejection::ReturnWaits);
                }
                let (withdrawal, amount, bank) = (withdrawal.id, withdrawal.amount, to.or(left));
                Ok(Event::WithdrawalReturnRequested { id, withdrawal, amount, bank, reference, effective_day, reason })
            }
            EntryCommand::Decide { id, ruling } => {
                let open = open.iter().find(|open| open.id == id).ok_or(Rejection::HouseEntryAlreadyDecided)?;
                if let Some(notes) = ruling.rejects(&open.requested_by)? {
                    return Ok(Event::WithdrawalReturnRejected { id, notes });
                }
                if open.is_over || open.withdrawal != withdrawal.id {
                    return Err(Rejection::WithdrawalNotPaid);
                }
                check(&withdrawal, open.effective_day, closed)?;
                let Withdrawal { id, amount, spans, consumed, settlements, goodwill, .. } = withdrawal;
                let OpenReturn { bank, reference, effective_day, reason: notes, .. } = open.clone();
                let entry = Some(ReturnEntry { id: open.id, reference, effective_day });
                Ok(Event::WithdrawalReturned { id, amount, spans, consumed, notes, settlements, bank, entry, goodwill })
            }
        }
    }
}

/// The account that a withdrawal left that may come back on this day.
fn check(withdrawal: &Withdrawal, effective_day: Option<u32>, closed: Option<Month>) -> Result<Option<PayoutBank>> {
    let payment = withdrawal.payment.as_ref().ok_or(Rejection::WithdrawalNotPaid)?;
    if effective_day.is_some_and(|day| Timestamp::end_of_day(day) < payment.effective_at) {
        return Err(Rejection::ReturnedBeforePaid);
    }
    may_take_effect(effective_day, closed)?;
    Ok(payment.bank)
}

impl EntryTerms for ReturnTerms {
    fn requested(event: &Event) -> Option<(ObjectId, Self, &String)> {
        match event {
            Event::WithdrawalReturnRequested { id, withdrawal, amount, bank, reference, effective_day, reason } => {
                let (withdrawal, amount, bank) = (*withdrawal, *amount, bank.unwrap_or(PayoutBank::Settlement));
                let (reference, effective_day) = (reference.clone(), *effective_day);
                Some((*id, Self { withdrawal, amount, bank, reference, effective_day }, reason))
            }
            _ => None,
        }
    }
}
