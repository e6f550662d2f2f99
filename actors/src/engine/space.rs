//! Disk space: closes admission while the disk is short of space. Then nothing is written, and
//! reads go on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Engine;
use crate::journal::ClosedBy;

/// How often the disk's space is looked at, milliseconds. In that time a disk takes less than the
/// reserve.
const SPACE_SEEN_EVERY_MS: u64 = 100;

impl Engine {
    /// True while the disk is short of space.
    pub fn is_storage_full(&self) -> bool {
        self.look_at_space();
        self.admission.is_closed_by(ClosedBy::Space)
    }

    /// Looks at the space on the disk every second, so that senders who wait for it go on also when
    /// no request comes. Runs until it is dropped.
    pub async fn watch_space(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.look_at_space();
        }
    }

    /// Looks at the space on the disk, unless that was done less than [`SPACE_SEEN_EVERY_MS`] ago.
    pub(super) fn look_at_space(&self) {
        let now = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let seen = self.space_seen_ms.load(Ordering::Acquire);
        let is_time = now >= seen + SPACE_SEEN_EVERY_MS;
        if is_time && self.space_seen_ms.compare_exchange(seen, now, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.see_space();
        }
    }

    /// Closes admission while the free space, less what is under way, is below the reserve; opens
    /// it again when there is more.
    pub(super) fn see_space(&self) {
        let free = match self.store.free_bytes() {
            Ok(Some(free)) => free,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "the space on the disk cannot be told");
                return;
            }
        };
        self.metrics.storage_free_bytes.set(i64::try_from(free).unwrap_or(i64::MAX));
        let under_way = u64::try_from(self.admission.bytes()).unwrap_or_default();
        let is_full = free < self.store.reserve_bytes() + under_way;
        if !self.admission.set_closed(ClosedBy::Space, is_full) {
            return;
        }
        if is_full {
            tracing::error!(free, "the disk is short of space: nothing is written until there is more; reads go on");
        } else {
            tracing::info!(free, "there is space on the disk again");
        }
    }
}
