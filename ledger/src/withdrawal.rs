//! Withdrawal: the read model of one transfer of a recipient's money to its bank account (interface
//! 2.9, 3.5).

use strum::IntoStaticStr;

use crate::event::{Settlement, Span};
use crate::{Centavos, Event, LedgerId, Object, ObjectId, PayoutBank, Record, Sealed, Timestamp};

/// A withdrawal, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The withdrawal's id, which contains the time of the request.
    pub id: ObjectId,
    /// The recipient's ledger.
    pub recipient: LedgerId,
    /// How much is sent, centavos.
    pub amount: Centavos,
    /// The splits in it.
    pub spans: Vec<Span>,
    /// The part of these splits that debts had consumed, centavos.
    pub consumed: Centavos,
    /// The anticipated part of them, and when it can be sent.
    pub settlements: Vec<Settlement>,
    /// The part of the amount that is goodwill, which no split has, centavos.
    pub goodwill: Centavos,
    /// The account that the money goes to: a sealed [`crate::personal::BankAccount`].
    pub destination: Sealed,
    /// The API key that asked for it.
    pub api_key: Option<ObjectId>,
    /// When an administrator approved it.
    pub approved_at: Option<Timestamp>,
    /// When the institution had taken the money; `None` if the bank returned it.
    pub paid_at: Option<Timestamp>,
    /// How the money left; none before, and when it came back.
    pub payment: Option<WithdrawalPayment>,
    /// Why it was rejected or returned.
    pub notes: Option<String>,
    /// Who rejected or returned it.
    pub rejected_by: Option<RejectedBy>,
}

/// Who said no to a withdrawal or a cashout. Its name on the wire is its own in small letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum RejectedBy {
    /// An operator, before anything was sent.
    Operator,
    /// The institution did not take the transfer, or did not carry it out.
    Bank,
    /// The bank returned the paid money.
    Returned,
    /// The merchant took it back before it was approved.
    Merchant,
}

/// Payment of a withdrawal: its money has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithdrawalPayment {
    /// When it took effect: when the institution acted.
    pub effective_at: Timestamp,
    /// The account that the money left; the settlement account when absent.
    pub bank: Option<PayoutBank>,
}

impl Object for Withdrawal {
    fn made_by(record: &Record) -> Option<Self> {
        record.events.iter().find_map(|event| match event {
            Event::WithdrawalRequested { id, amount, spans, consumed, settlements, goodwill } => Some(Self {
                id: *id,
                recipient: record.owner,
                amount: *amount,
                spans: spans.clone(),
                consumed: *consumed,
                settlements: settlements.clone(),
                goodwill: *goodwill,
                destination: record.personal.clone().unwrap_or_default(),
                api_key: record.api_key,
                approved_at: None,
                paid_at: None,
                payment: None,
                notes: None,
                rejected_by: None,
            }),
            _ => None,
        })
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn follow(&mut self, record: &Record) {
        for event in &record.events {
            match event {
                Event::WithdrawalApproved { id, .. } if *id == self.id => self.approved_at = Some(record.effective_at),
                Event::WithdrawalPaid { id, bank, .. } if *id == self.id => {
                    self.paid_at = Some(record.takes_effect_at());
                    self.payment = Some(WithdrawalPayment { effective_at: record.takes_effect_at(), bank: *bank });
                }
                Event::WithdrawalRejected { id, notes, by_merchant, .. } if *id == self.id => {
                    let by = match by_merchant {
                        true => RejectedBy::Merchant,
                        false if self.approved_at.is_some() => RejectedBy::Bank,
                        false => RejectedBy::Operator,
                    };
                    (self.notes, self.rejected_by) = (Some(notes.clone()), Some(by));
                }
                Event::WithdrawalReturned { id, notes, .. } if *id == self.id => {
                    (self.paid_at, self.payment) = (None, None);
                    (self.notes, self.rejected_by) = (Some(notes.clone()), Some(RejectedBy::Returned));
                }
                _ => {}
            }
        }
    }
}
