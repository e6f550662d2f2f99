//! Opening of a merchant's account group, and changes of its settings and profile.

use super::MerchantState;
use crate::event::Event;
use crate::fees::Settings;
use crate::id::ObjectId;
use crate::personal::Sealed;
use crate::record::{Decision, Record};
use crate::rejection::Rejection;

impl MerchantState {
    pub(super) fn open(&self, id: ObjectId, settings: Settings, profile: Sealed) -> Result<Decision, Rejection> {
        if self.id.is_some() {
            return Err(Rejection::MerchantExists);
        }
        Ok(Decision { events: vec![Event::MerchantOpened { id, settings }], personal: Some(profile) })
    }

    pub(super) fn change(settings: Settings, profile: Option<Sealed>) -> Decision {
        Decision { events: vec![Event::MerchantChanged { settings }], personal: profile }
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
