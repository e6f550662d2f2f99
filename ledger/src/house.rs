//! House ledger: the platform's own books beside the shards of its merchants. An operator asks for
//! an entry, and another one approves it.

use crate::asked_entry::{AskedEntry, EntryCommand, EntryDecision, EntryTerms};
use crate::{Decision, Event, GroupNumber, Month, ObjectId, Rejection, Result, Timestamp};

pub use crate::terms::{HouseAccount, HouseEntryTerms};

/// Number of the ids of the house's entries. Groups of merchants are numbered from 1.
pub const HOUSE_GROUP: GroupNumber = GroupNumber(0);

/// Command of an operator about the house ledger.
pub type HouseCommand = EntryCommand<HouseEntryTerms>;

/// An entry of the house ledger, from its Records.
pub type HouseEntry = AskedEntry<HouseEntryTerms>;

impl HouseCommand {
    /// Decides it. `entry` is the entry as it stands, if there is one. Nothing is booked into the
    /// months through `closed`.
    pub fn decide(self, entry: Option<&HouseEntry>, closed: Option<Month>) -> Result<Decision> {
        let event = match self {
            Self::Request { id, terms, reason } => {
                may_take_effect(terms.effective_day, closed)?;
                Event::HouseEntryRequested { id, terms, reason }
            }
            Self::Decide { id, ruling } => {
                let entry = entry.ok_or(Rejection::HouseEntryNotFound)?;
                if entry.decision != EntryDecision::Pending {
                    return Err(Rejection::HouseEntryAlreadyDecided);
                }
                match ruling.rejects(&entry.requested_by)? {
                    Some(notes) => Event::HouseEntryRejected { id, notes },
                    None => {
                        may_take_effect(entry.terms.effective_day, closed)?;
                        Event::HouseEntryApproved { id, terms: entry.terms.clone() }
                    }
                }
            }
        };
        Ok(Decision::of(event))
    }
}

impl EntryTerms for HouseEntryTerms {
    fn requested(event: &Event) -> Option<(ObjectId, Self, &String)> {
        match event {
            Event::HouseEntryRequested { id, terms, reason } => Some((*id, terms.clone(), reason)),
            _ => None,
        }
    }
}

/// Refuses an entry that takes effect in one of the months through `closed`. One without a day
/// takes effect when it is booked.
pub(crate) fn may_take_effect(effective_day: Option<u32>, closed: Option<Month>) -> Result<()> {
    let month = effective_day.map(|day| Timestamp::end_of_day(day).month());
    let is_closed = month.is_some_and(|month| closed.is_some_and(|closed| month <= closed));
    if is_closed { Err(Rejection::PeriodIsClosed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked_entry::Ruling;
    use crate::id::LedgerId;
    use crate::money::Centavos;
    use crate::object::Object;
    use crate::record::{Record, Requester};

    const ID: ObjectId = ObjectId(7);

    fn terms() -> HouseEntryTerms {
        let (debit, credit) = (HouseAccount::BankOwn, HouseAccount::BankSettlement);
        HouseEntryTerms { debit, credit, amount: Centavos(250), reference: "EXTRATO-1".to_owned(), effective_day: None }
    }

    /// The Record of a command that is not refused.
    fn record(command: HouseCommand, entry: Option<&HouseEntry>, operator: &str) -> Record {
        let mut record = command.decide(entry, None).unwrap().into_record(LedgerId::System, 1, Timestamp(5));
        record.requested_by(Some(Requester::Operator(operator.to_owned())));
        record
    }

    #[test]
    fn another_operator_decides_and_decides_once() {
        let request = HouseCommand::Request { id: ID, terms: terms(), reason: "Comissão do mês".to_owned() };
        let mut entry = HouseEntry::made_by(&record(request, None, "ana")).unwrap();
        let decide = |ruling| HouseCommand::Decide { id: ID, ruling };
        let approve = |operator: &str| decide(Ruling::Approve { operator: operator.to_owned() });
        let reject = || decide(Ruling::Reject { notes: "valor errado".to_owned() });
        assert_eq!(approve("rui").decide(None, None), Err(Rejection::HouseEntryNotFound));
        assert_eq!(approve("ana").decide(Some(&entry), None), Err(Rejection::SecondOperatorNeeded));
        assert!(reject().decide(Some(&entry), None).is_ok(), "one may take back one's own");
        let day = Timestamp::end_of_day(20_000);
        let dated = HouseEntryTerms { effective_day: Some(20_000), ..terms() };
        let back = HouseCommand::Request { id: ID, terms: dated.clone(), reason: "Tarifa".to_owned() };
        assert_eq!(back.clone().decide(None, Some(day.month())), Err(Rejection::PeriodIsClosed));
        let requested = record(back, None, "ana");
        let of_past = HouseEntry::made_by(&requested).unwrap();
        assert_eq!(approve("rui").decide(Some(&of_past), Some(day.month())), Err(Rejection::PeriodIsClosed));
        let mut booked = record(approve("rui"), Some(&of_past), "rui");
        booked.effective_at = day.plus_ms(90_000_000);
        assert_eq!(booked.takes_effect_at(), day);
        let approved = record(approve("rui"), Some(&entry), "rui");
        assert_eq!(approved.entries.len(), 1);
        assert_eq!(Record::decode(&bytes(&approved)).unwrap(), approved);
        entry.follow(&approved);
        assert_eq!(entry.decision, EntryDecision::Approved { by: "rui".to_owned() });
        for command in [approve("eva"), reject()] {
            assert_eq!(command.decide(Some(&entry), None), Err(Rejection::HouseEntryAlreadyDecided));
        }
    }

    fn bytes(record: &Record) -> Vec<u8> {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes
    }

    #[test]
    fn an_account_has_one_name() {
        for &account in HouseAccount::ALL {
            assert_eq!(HouseAccount::named(&account.account().kind_name()), Some(account));
        }
        assert_eq!(HouseAccount::named("Assets:Platform:Available"), None);
    }
}
