//! Read model of one anticipation: what its Record says of it.

use crate::event::AnticipatedSplit;
use crate::{Centavos, Event, ObjectId, Rate};

/// An anticipation that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anticipation {
    /// The anticipation's id.
    pub id: ObjectId,
    /// How many splits.
    pub count: usize,
    /// What was left of the splits before the fee, centavos.
    pub original: Centavos,
    /// The platform's fee, centavos.
    pub fee: Centavos,
    /// In how many days the money is there: 2, 7 or 15.
    pub target_days: u8,
    /// The rate of the fee.
    pub rate: Rate,
}

impl Anticipation {
    /// The anticipation of these splits.
    pub fn new(id: ObjectId, splits: &[AnticipatedSplit], target_days: u8, rate: Rate) -> Self {
        Self {
            id,
            count: splits.len(),
            original: splits.iter().map(|split| split.amount).sum(),
            fee: splits.iter().map(|split| split.fee).sum(),
            target_days,
            rate,
        }
    }

    /// The anticipation among events; `None` if there is none.
    pub fn of(events: &[Event]) -> Option<Self> {
        events.iter().find_map(|event| match event {
            Event::SplitsAnticipated { id, splits, target_days, rate, .. } => {
                Some(Self::new(*id, splits, *target_days, *rate))
            }
            _ => None,
        })
    }

    /// What is available now, centavos.
    pub fn net(&self) -> Centavos {
        self.original - self.fee
    }
}
