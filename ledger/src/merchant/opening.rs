//! Opening of a merchant's account group, and changes of its settings and profile.

use super::MerchantState;
use crate::{Decision, Event, GroupNumber, ObjectId, Record, Rejection, Result, Sealed, Settings};

/// What an opening did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MerchantOpening {
    /// The merchant's group, a new one.
    pub group: GroupNumber,
    /// The settings that it began with.
    pub settings: Settings,
}

impl MerchantOpening {
    /// The opening that a Record made; `None` if it made none.
    pub fn by(record: &Record) -> Option<Self> {
        let group = record.owner.group()?;
        record.events.iter().find_map(|event| match event {
            Event::MerchantOpened { settings, .. } => Some(Self { group, settings: *settings }),
            _ => None,
        })
    }
}

impl MerchantState {
    pub(super) fn open(&self, id: ObjectId, settings: Settings, profile: Sealed) -> Result<Decision> {
        if self.id.is_some() {
            return Err(Rejection::MerchantExists);
        }
        Ok(Decision { events: vec![Event::MerchantOpened { id, settings }], personal: Some(profile) })
    }

    /// Errors: it would be closed, and something of it is open.
    pub(super) fn change(
        &self,
        settings: Settings,
        profile: Option<Sealed>,
        reason: Option<String>,
    ) -> Result<Decision> {
        if settings.closed && !self.settings.closed {
            self.check_closable()?;
        }
        let changed = Event::MerchantChanged { settings, before: Some(self.settings), reason };
        Ok(Decision { events: vec![changed], personal: profile })
    }

    pub(super) fn apply_opening(&mut self, id: ObjectId, settings: Settings, record: &Record) {
        self.id = Some(id);
        self.settings = settings;
        self.profile = record.personal.clone().unwrap_or_default();
    }

    /// A change of the settings alone keeps the profile.
    pub(super) fn apply_change(&mut self, settings: Settings, record: &Record) {
        self.settings = settings;
        if let Some(profile) = &record.personal {
            self.profile = profile.clone();
        }
    }
}
