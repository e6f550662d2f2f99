//! Lease: how a process knows that it still owns its partition, and how another one knows that the
//! owner is gone.
//!
//! Each process counts a number up in the database, its beat. Nobody compares clocks of machines:
//!
//! - The owner answers from memory while its last successful beat was *sent* less than nine tenths
//!   of the takeover time ago.
//! - Another process takes the partition when the owner's beat has stood still for the takeover
//!   time, on its own clock, during which its own beats succeeded.
//!
//! The second time begins after the first one did, and is longer. So whoever takes a partition
//! knows that the former owner gives no answer any more. That the former owner *writes* nothing
//! does not depend on time: each of its writes locks the partition's row at its epoch.
//!
//! Both clocks count on while the machine is suspended (`CLOCK_BOOTTIME`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::link::{Line, Link};
use crate::store::{Epoch, Partition, StoreError};

/// Beats in one takeover time.
const BEATS: u32 = 5;

/// Before every beat.
const NEVER_MS: i64 = i64::MIN / 2;

/// Milliseconds on a clock that counts on while the machine is suspended.
pub(super) fn now_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

/// Conditions on which a database keeps what it has acknowledged.
#[derive(Debug, Clone, Copy, Default)]
pub struct PostgresDemands {
    /// A standby must confirm every commit.
    pub standby: bool,
    /// `fsync` may be off: what was acknowledged is lost when the machine fails.
    pub allows_fsync_off: bool,
    /// `full_page_writes` may be off: a torn page loses what was acknowledged.
    pub allows_full_page_writes_off: bool,
}

/// The beat of this process, and the epochs of the partitions that it took.
#[derive(Debug)]
pub(super) struct Lease {
    process: String,
    about: String,
    takeover: Duration,
    demands: PostgresDemands,
    /// When the last successful beat was sent.
    sent_ms: AtomicI64,
    is_superseded: AtomicBool,
    taken: Mutex<BTreeMap<Partition, Epoch>>,
}

const BEAT: &str = "WITH beaten AS (INSERT INTO node (id, beat, about, beaten_at) VALUES ($1, 1, $2, now())
        ON CONFLICT (id) DO UPDATE SET beat = node.beat + 1, beaten_at = now())
    SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names')";
const EPOCHS: &str = "SELECT id, epoch FROM partition";
const FORGET: &str = "DELETE FROM node WHERE beaten_at < now() - interval '1 day'
    AND id NOT IN (SELECT owner FROM partition WHERE owner IS NOT NULL)";

impl Lease {
    pub(super) fn new(process: String, about: &str, takeover: Duration, demands: PostgresDemands) -> Self {
        Self {
            process,
            about: about.to_owned(),
            takeover,
            demands,
            sent_ms: AtomicI64::new(NEVER_MS),
            is_superseded: AtomicBool::new(false),
            taken: Mutex::default(),
        }
    }

    /// The name of this process in the database: no other process has it, before or after.
    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// Time between two beats.
    pub(super) fn pace(&self) -> Duration {
        self.takeover / BEATS
    }

    /// Whether the last successful beat is so fresh that nobody can have taken the partition.
    pub(super) fn is_current(&self) -> bool {
        let lasts_ms = i64::try_from(self.takeover.as_millis() * 9 / 10).unwrap_or(i64::MAX);
        !self.is_superseded() && now_ms() - self.sent_ms.load(Ordering::Acquire) < lasts_ms
    }

    /// Whether another process took a partition that this one had.
    pub(super) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    pub(super) fn set_superseded(&self) {
        if !self.is_superseded.swap(true, Ordering::AcqRel) {
            tracing::error!("another process took the partition: this one may write it no more");
        }
    }

    pub(super) fn took(&self, partition: Partition, epoch: Epoch) {
        self.taken.lock().insert(partition, epoch);
    }

    /// The epoch in which this process took a partition.
    pub(super) fn epoch(&self, partition: Partition) -> Option<Epoch> {
        self.taken.lock().get(&partition).copied()
    }

    /// One beat. Fails when the database does not keep what it acknowledges.
    pub(super) async fn beat(&self, line: &Line) -> Result<(), StoreError> {
        let sent_ms = now_ms();
        let (settings, epochs) = line
            .try_once(async |link| {
                let settings = link.row(BEAT, &[&self.process, &self.about]).await?;
                Ok((settings, link.rows(EPOCHS, &[]).await?))
            })
            .await?;
        if let Some(settings) = settings {
            let text = |at| settings.get::<_, String>(at);
            let admitted = self.admit(line, &text(0), &text(1), &text(2));
            // What is acknowledged from now on could be lost: nothing is answered until then.
            admitted.inspect_err(|_| self.sent_ms.store(NEVER_MS, Ordering::Release))?;
        }
        for row in epochs {
            let found = (Partition(row.get::<_, i32>(0) as u16), Epoch(row.get::<_, i64>(1) as u64));
            // An older epoch was read before this process took the partition.
            if self.epoch(found.0).is_some_and(|taken| found.1 > taken) {
                self.set_superseded();
            }
        }
        self.sent_ms.store(sent_ms, Ordering::Release);
        Ok(())
    }

    fn admit(&self, line: &Line, fsync: &str, full_page_writes: &str, standbys: &str) -> Result<(), StoreError> {
        let PostgresDemands { standby, allows_fsync_off, allows_full_page_writes_off } = self.demands;
        let what = match () {
            () if fsync != "on" && !allows_fsync_off => "fsync is off: what was acknowledged is lost with the machine",
            () if full_page_writes != "on" && !allows_full_page_writes_off => {
                "full_page_writes is off: a page that is written in part loses what was acknowledged"
            }
            () if standbys.trim().is_empty() && standby => {
                "synchronous_standby_names is empty: no standby confirms what is acknowledged"
            }
            () => return Ok(()),
        };
        Err(StoreError::UnsafeDatabase { place: line.place().to_owned(), what })
    }

    /// Forgets the processes that ended long ago.
    pub(super) async fn forget_old(&self, line: &Line) -> Result<(), StoreError> {
        line.try_once(async |link| link.rows(FORGET, &[]).await).await.map(drop)
    }
}

/// A look at a partition from outside, again and again, until its owner is gone.
#[derive(Debug, Default)]
pub struct OwnerWatch {
    seen: Option<Seen>,
    looked_ms: i64,
}

/// The owner of a partition and its beat, unchanged since a time of this machine's clock.
#[derive(Debug)]
struct Seen {
    epoch: Epoch,
    owner: String,
    beat: Option<i64>,
    since_ms: i64,
    /// Its beat has grown since it was first seen.
    is_living: bool,
}

const OWNER: &str =
    "SELECT p.epoch, p.owner, n.beat FROM partition p LEFT JOIN node n ON n.id = p.owner WHERE p.id = $1";

impl OwnerWatch {
    /// The owner that is waited for.
    pub fn owner(&self) -> Option<&str> {
        self.seen.as_ref().map(|seen| seen.owner.as_str())
    }

    /// The owner, if it gave a sign of life between two looks.
    pub fn living(&self) -> Option<&str> {
        self.seen.as_ref().filter(|seen| seen.is_living).map(|seen| seen.owner.as_str())
    }

    /// Looks once. Gives the epoch of a partition that is free or whose owner is gone.
    pub(super) async fn look(
        &mut self,
        line: &Line,
        lease: &Lease,
        partition: Partition,
    ) -> Result<Option<Epoch>, StoreError> {
        let before_ms = now_ms();
        let id = i32::from(partition.0);
        let row = line.try_once(async |link: &Link| link.row(OWNER, &[&id]).await).await?;
        let takeover_ms = i64::try_from(lease.takeover.as_millis()).unwrap_or(i64::MAX);
        // Time in which nobody looked, or this process could not write itself, proves nothing.
        let is_gapless = before_ms - self.looked_ms < takeover_ms / 2 && lease.is_current();
        self.looked_ms = now_ms();
        let Some(row) = row else { return Ok(Some(Epoch::NONE)) };
        let epoch = Epoch(row.get::<_, i64>(0) as u64);
        let Some(owner) = row.get::<_, Option<String>>(1) else { return Ok(Some(epoch)) };
        if owner == lease.process() && lease.epoch(partition).is_none() {
            // A take of this process whose answer was lost: it is asked for again.
            return Ok(Some(Epoch(epoch.0 - 1)));
        }
        let beat: Option<i64> = row.get(2);
        match &self.seen {
            Some(seen) if is_gapless && (seen.epoch, &seen.owner, seen.beat) == (epoch, &owner, beat) => {
                Ok((before_ms - seen.since_ms >= takeover_ms).then_some(epoch))
            }
            _ => {
                let is_same = |seen: &Seen| (seen.epoch, &seen.owner) == (epoch, &owner) && seen.beat < beat;
                let is_living = self.seen.as_ref().is_some_and(is_same);
                self.seen = Some(Seen { epoch, owner, beat, since_ms: self.looked_ms, is_living });
                Ok(None)
            }
        }
    }
}
