//! Limit of reports under way: one for each merchant, and a bounded number in all.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ledger::id::GroupNumber;

/// The most reports at once.
const REPORTS_MAX: usize = 8;

/// The merchants whose reports are being made.
#[derive(Clone, Default)]
pub struct ReportLimit(Arc<Mutex<HashSet<GroupNumber>>>);

impl ReportLimit {
    /// Begins a merchant's report; none while another of its own is under way, or too many of
    /// others are.
    pub fn begin(&self, group: GroupNumber) -> Option<ReportUnderWay> {
        let mut groups = self.groups();
        let begins = groups.len() < REPORTS_MAX && groups.insert(group);
        begins.then(|| ReportUnderWay { reporting: self.clone(), group })
    }

    fn groups(&self) -> MutexGuard<'_, HashSet<GroupNumber>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One report of a merchant, under way until it is dropped.
pub struct ReportUnderWay {
    reporting: ReportLimit,
    group: GroupNumber,
}

impl Drop for ReportUnderWay {
    fn drop(&mut self) {
        self.reporting.groups().remove(&self.group);
    }
}
