//! House ledger: the platform's own books beside the shards of its merchants. An operator asks for
//! an entry, and another one approves it.

use crate::event::Event;
use crate::id::ObjectId;
use crate::object::Object;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;
use crate::time::{Month, Timestamp};

pub use crate::terms::{HouseAccount, HouseEntryTerms};

/// A request of an operator about the house ledger.
#[derive(Clone, Debug)]
pub enum HouseCommand {
    /// Asks for an entry.
    Request {
        /// The entry's id, a new one.
        id: ObjectId,
        /// What it moves.
        terms: HouseEntryTerms,
        /// Why, in the operator's words.
        reason: String,
    },
    /// Approves an entry, which is booked at once.
    Approve {
        /// The entry's id.
        id: ObjectId,
    },
    /// Rejects an entry, or takes back one's own.
    Reject {
        /// The entry's id.
        id: ObjectId,
        /// Why, in the operator's words.
        notes: String,
    },
}

impl HouseCommand {
    /// The entry that it is about.
    pub fn id(&self) -> ObjectId {
        match self {
            Self::Request { id, .. } | Self::Approve { id } | Self::Reject { id, .. } => *id,
        }
    }

    /// Decides it. `entry` is the entry as it stands, if there is one; `operator` asks. Nothing is
    /// booked into the months through `closed`.
    pub fn decide(
        self,
        (entry, closed): (Option<&HouseEntry>, Option<Month>),
        operator: &str,
    ) -> Result<Decision, Rejection> {
        let check = |terms: &HouseEntryTerms| may_take_effect(terms.effective_day, closed);
        let entry = match self {
            Self::Request { id, terms, reason } => {
                check(&terms)?;
                return Ok(Decision::of(Event::HouseEntryRequested { id, terms, reason }));
            }
            Self::Approve { .. } | Self::Reject { .. } => entry.ok_or(Rejection::HouseEntryNotFound)?,
        };
        if entry.decision != HouseEntryDecision::Pending {
            return Err(Rejection::HouseEntryAlreadyDecided);
        }
        match self {
            Self::Reject { id, notes } => Ok(Decision::of(Event::HouseEntryRejected { id, notes })),
            _ if entry.requested_by == operator => Err(Rejection::SecondOperatorNeeded),
            _ => check(&entry.terms)
                .and(Ok(Decision::of(Event::HouseEntryApproved { id: entry.id, terms: entry.terms.clone() }))),
        }
    }
}

/// Refuses an entry that takes effect in one of the months through `closed`. One without a day
/// takes effect when it is booked.
pub(crate) fn may_take_effect(effective_day: Option<u32>, closed: Option<Month>) -> Result<(), Rejection> {
    let month = effective_day.map(|day| Timestamp::end_of_day(day).month());
    let is_closed = month.is_some_and(|month| closed.is_some_and(|closed| month <= closed));
    if is_closed { Err(Rejection::PeriodIsClosed) } else { Ok(()) }
}

/// Status of an entry of the house ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HouseEntryDecision {
    /// No second operator has decided yet.
    Pending,
    /// It is booked.
    Approved {
        /// The operator who approved it.
        by: String,
    },
    /// It is not booked.
    Rejected {
        /// The operator who rejected it.
        by: String,
        /// Why, in the operator's words.
        notes: String,
    },
}

impl HouseEntryDecision {
    /// Takes what a Record decides of an entry: which of its events books it, and the notes of the
    /// one that rejects it.
    pub(crate) fn follow(
        &mut self,
        record: &Record,
        approves: impl Fn(&Event) -> bool,
        rejects: impl Fn(&Event) -> Option<&String>,
    ) {
        let by = || record.operator.clone().unwrap_or_default();
        for event in &record.events {
            if approves(event) {
                *self = Self::Approved { by: by() };
            } else if let Some(notes) = rejects(event) {
                *self = Self::Rejected { by: by(), notes: notes.clone() };
            }
        }
    }
}

/// An entry of the house ledger, from its Records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HouseEntry {
    /// Its id. It tells when the entry was asked for.
    pub id: ObjectId,
    /// What it moves.
    pub terms: HouseEntryTerms,
    /// Why, as the first operator said.
    pub reason: String,
    /// The operator who asked for it.
    pub requested_by: String,
    /// Its status.
    pub decision: HouseEntryDecision,
}

impl Object for HouseEntry {
    fn made_by(record: &Record) -> Option<Self> {
        let requested_by = record.operator.clone().unwrap_or_default();
        record.events.iter().find_map(|event| match event {
            Event::HouseEntryRequested { id, terms, reason } => Some(Self {
                id: *id,
                terms: terms.clone(),
                reason: reason.clone(),
                requested_by: requested_by.clone(),
                decision: HouseEntryDecision::Pending,
            }),
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
            |event| matches!(event, Event::HouseEntryApproved { id, .. } if *id == entry),
            |event| match event {
                Event::HouseEntryRejected { id, notes } if *id == entry => Some(notes),
                _ => None,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::LedgerId;
    use crate::money::Centavos;
    use crate::record::Requester;

    const ID: ObjectId = ObjectId(7);

    fn terms() -> HouseEntryTerms {
        let (debit, credit) = (HouseAccount::BankOwn, HouseAccount::BankSettlement);
        HouseEntryTerms { debit, credit, amount: Centavos(250), reference: "EXTRATO-1".to_owned(), effective_day: None }
    }

    /// The Record of a command that is not refused.
    fn record(command: HouseCommand, entry: Option<&HouseEntry>, operator: &str) -> Record {
        let mut record =
            command.decide((entry, None), operator).unwrap().into_record(LedgerId::System, 1, Timestamp(5));
        record.requested_by(Some(Requester::Operator(operator.to_owned())));
        record
    }

    #[test]
    fn another_operator_decides_and_decides_once() {
        let request = HouseCommand::Request { id: ID, terms: terms(), reason: "Comissão do mês".to_owned() };
        let mut entry = HouseEntry::made_by(&record(request, None, "ana")).unwrap();
        let approve = || HouseCommand::Approve { id: ID };
        let reject = || HouseCommand::Reject { id: ID, notes: "valor errado".to_owned() };
        assert_eq!(approve().decide((None, None), "rui"), Err(Rejection::HouseEntryNotFound));
        assert_eq!(approve().decide((Some(&entry), None), "ana"), Err(Rejection::SecondOperatorNeeded));
        assert!(reject().decide((Some(&entry), None), "ana").is_ok(), "one may take back one's own");
        let day = Timestamp::end_of_day(20_000);
        let dated = HouseEntryTerms { effective_day: Some(20_000), ..terms() };
        let back = HouseCommand::Request { id: ID, terms: dated.clone(), reason: "Tarifa".to_owned() };
        assert_eq!(back.clone().decide((None, Some(day.month())), "ana"), Err(Rejection::PeriodIsClosed));
        let requested = record(back, None, "ana");
        let of_past = HouseEntry::made_by(&requested).unwrap();
        assert_eq!(approve().decide((Some(&of_past), Some(day.month())), "rui"), Err(Rejection::PeriodIsClosed));
        let mut booked = record(approve(), Some(&of_past), "rui");
        booked.effective_at = day.plus_ms(90_000_000);
        assert_eq!(booked.takes_effect_at(), day);
        let approved = record(approve(), Some(&entry), "rui");
        assert_eq!(approved.entries.len(), 1);
        assert_eq!(Record::decode(&bytes(&approved)).unwrap(), approved);
        entry.follow(&approved);
        assert_eq!(entry.decision, HouseEntryDecision::Approved { by: "rui".to_owned() });
        for command in [approve(), reject()] {
            assert_eq!(command.decide((Some(&entry), None), "eva"), Err(Rejection::HouseEntryAlreadyDecided));
        }
    }

    fn bytes(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    }

    #[test]
    fn an_account_has_one_name() {
        for account in HouseAccount::ALL {
            assert_eq!(HouseAccount::named(&account.account().kind_name()), Some(account));
        }
        assert_eq!(HouseAccount::named("Assets:Platform:Available"), None);
    }
}
