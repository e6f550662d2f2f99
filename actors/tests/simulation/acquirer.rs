//! Acquirer of the simulation: its records outlive the process. Orders are sent, sent again, closed
//! and captured by the seed, their answers are lost or come late, and the process dies between any
//! two of these. What is sent a second time, and what is captured, must be a Record before.

use std::collections::BTreeMap;

use ledger::ObjectId;

use crate::audit::{Audit, ensure};
use crate::chance::Chance;
use crate::coverage::Coverage;
use crate::model::{Action, Closing};
use crate::world::Defect;

/// What the acquirer has under a charge's id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Nothing,
    Declined,
    Authorized,
    Captured,
    /// It never had it, or has cancelled it: a later order carries nothing out.
    Closed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Order {
    sent: u32,
    fate: Fate,
    /// It has answered, and nobody has heard it yet.
    is_unheard: bool,
}

#[derive(Default)]
pub(crate) struct Acquirer(BTreeMap<ObjectId, Order>);

impl Acquirer {
    /// Something happens to a card charge: gives what is to be booked of it, if anything is.
    pub(crate) fn happens(
        &mut self,
        charge: ObjectId,
        (audit, coverage): (&Audit, &mut Coverage),
        defect: Option<Defect>,
        chance: &mut Chance,
    ) -> Result<Option<Action>, String> {
        let order = self.0.entry(charge).or_default();
        let (tries, is_authorized) = (audit.tries(charge), audit.is_authorized(charge));
        // An order may be held up, and its end ordered before it.
        if order.sent == 0 && chance.percent(85) {
            return order.send(charge, tries, coverage, defect, chance);
        }
        match chance.below(20) {
            0..2 if order.sent <= tries => order.send(charge, tries, coverage, defect, chance),
            0..2 => {
                if defect == Some(Defect::SendsAgainBeforeItsRecord) {
                    order.send(charge, tries, coverage, defect, chance)?;
                }
                Ok(Some(Action::TryOrder { charge, attempt: order.sent + 1 }))
            }
            2 => Ok(Some(Action::LeaveUnanswered { charge })),
            3..10 if order.is_unheard => {
                order.is_unheard = false;
                Ok(order.said(charge))
            }
            3..18 if order.fate == Fate::Authorized => {
                let may = is_authorized || defect == Some(Defect::CapturesBeforeItsRecord);
                if !may {
                    return Ok(order.said(charge));
                }
                ensure(is_authorized, || format!("{charge:?} is captured before its authorization is a Record"))?;
                order.fate = Fate::Captured;
                coverage.saw("authorized, and captured by an order of its own");
                order.is_unheard = chance.percent(30);
                Ok(order.said(charge).filter(|_| !order.is_unheard))
            }
            3..18 => Ok(order.said(charge)),
            _ if defect == Some(Defect::TakesSilenceForRefusal) && order.sent > 0 => {
                Ok(Some(Action::Refuse { charge }))
            }
            // What is known to be authorized is captured, and not closed.
            _ if is_authorized && order.fate == Fate::Authorized => Ok(None),
            _ => {
                if matches!(order.fate, Fate::Nothing | Fate::Authorized) {
                    order.fate = Fate::Closed;
                    coverage.saw("charge closed at the acquirer");
                }
                Ok(order.said(charge))
            }
        }
    }

    /// The process dies: whether an order is without an answer then.
    pub(crate) fn has_unheard(&self) -> bool {
        self.0.values().any(|order| order.is_unheard)
    }

    /// At the end: money was taken of the charges that the journal has as paid, and of no refused
    /// one.
    pub(crate) fn settle(&self, audit: &Audit, closing: impl Fn(ObjectId) -> Option<Closing>) -> Result<(), String> {
        self.0.iter().try_for_each(|(charge, order)| {
            let (closing, is_captured) = (closing(*charge), order.fate == Fate::Captured);
            ensure(closing != Some(Closing::Paid) || is_captured, || {
                format!("{charge:?} is paid, and was not captured")
            })?;
            ensure(closing != Some(Closing::Refused) || !is_captured, || {
                format!("{charge:?} is refused, and its money was taken")
            })?;
            ensure(order.sent <= 1 + audit.tries(*charge), || {
                format!("{charge:?} was sent more often than Records say")
            })
        })
    }
}

impl Order {
    /// It is sent, once more or for the first time; a repeat has the same outcome.
    fn send(
        &mut self,
        charge: ObjectId,
        tries: u32,
        coverage: &mut Coverage,
        defect: Option<Defect>,
        chance: &mut Chance,
    ) -> Result<Option<Action>, String> {
        ensure(self.sent <= tries, || format!("{charge:?} is sent again before that is a Record"))?;
        if self.sent > 0 {
            coverage.saw("order sent again after its Record");
        }
        self.sent += 1;
        match self.fate {
            Fate::Nothing => {
                self.fate = match chance.below(10) {
                    0 => Fate::Declined,
                    1..4 => Fate::Authorized,
                    4 => Fate::Nothing,
                    _ => Fate::Captured,
                };
            }
            Fate::Closed => {
                coverage.saw("order that came after the close");
                if defect == Some(Defect::CarriesOutWhatWasClosed) {
                    self.fate = Fate::Captured;
                }
            }
            _ => {}
        }
        self.is_unheard = chance.percent(20);
        Ok(self.said(charge).filter(|_| !self.is_unheard))
    }

    /// What is to be booked of its answer.
    fn said(&self, charge: ObjectId) -> Option<Action> {
        match self.fate {
            Fate::Nothing => None,
            Fate::Authorized => Some(Action::Authorize { charge }),
            Fate::Captured => Some(Action::Capture { charge }),
            Fate::Declined | Fate::Closed => Some(Action::Refuse { charge }),
        }
    }
}
