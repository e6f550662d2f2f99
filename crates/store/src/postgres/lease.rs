//! Lease: how a process knows that it still owns its partition, and how another one knows that the
//! owner is gone.
//!
//! Each process counts a number up in the database, its beat. Nobody compares clocks of machines:
//!
//! - The owner answers from memory while its last successful beat was *sent* less than nine tenths
//!   of the takeover time ago.
//! - Another process takes the partition when the owner's beat has stood still for the takeover
//!   time, on its own clock, during which its own beats succeeded. The row of the owner has the
//!   time that the owner counts on; of two that differ, the longer one counts.
//!
//! The second time begins after the first one did, and is longer. So whoever takes a partition
//! knows that the former owner gives no answer any more. That the former owner *writes* nothing
//! does not depend on time: each of its writes locks the partition's row at its epoch.
//!
//! The take itself looks once more: it locks the row of the owner's beats and takes nothing when
//! the beat has moved since the proof (`TAKE_FROM_GONE`). So an owner that wakes up between the
//! proof and the take either keeps the partition, or learns of the take in its first beat.
//!
//! Both clocks count on while the machine is suspended (`CLOCK_BOOTTIME`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::PostgresOptions;
use super::database_seen::{SeenHeads, heads_of};
use super::link::{Line, Link};
use crate::{Epoch, Partition, Result, StoreError, Tenure};

/// Beats in one takeover time.
const BEATS: u32 = 5;

/// Before every beat.
const NEVER_MS: i64 = i64::MIN / 2;

/// Milliseconds on a clock that counts on while the machine is suspended.
pub fn now_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

/// Milliseconds since 1970 (UTC) on this machine's clock.
fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
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

/// What a beat saw of the database.
pub(super) struct BeatResult {
    pub(super) system: Option<String>,
    pub(super) timeline: u32,
    pub(super) heads: SeenHeads,
}

/// The beat of this process, and the epochs of the partitions that it took.
#[derive(Debug)]
pub(super) struct Lease {
    process: String,
    about: String,
    address: Option<String>,
    takeover_ms: i64,
    demands: PostgresDemands,
    /// When the last successful beat was sent.
    sent_ms: AtomicI64,
    /// How far the database's clock was ahead of this machine's at the last beat.
    ahead_ms: AtomicI64,
    has_joined: AtomicBool,
    is_leaving: AtomicBool,
    is_superseded: AtomicBool,
    tenures: Mutex<Tenures>,
}

/// The partitions of this process.
#[derive(Debug, Default)]
struct Tenures {
    taken: BTreeMap<Partition, Epoch>,
    /// Partitions no longer held, with the last epoch: released, or the take's result is unknown.
    given_up: BTreeMap<Partition, Epoch>,
    /// Takes without an answer so far.
    asking: BTreeSet<Partition>,
}

const BEAT: &str = "WITH beaten AS (INSERT INTO node (id, beat, about, beaten_at, address, leaving, takeover_ms)
        VALUES ($1, 1, $2, now(), $3, $4, $5)
        ON CONFLICT (id) DO UPDATE SET beat = node.beat + 1, beaten_at = now(), address = EXCLUDED.address,
            leaving = EXCLUDED.leaving)
    SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names')";

/// The database's time and the epochs; one row at least.
const EPOCHS: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, p.id, p.epoch
    FROM (SELECT 1) AS one LEFT JOIN partition p ON true";
const FORGET: &str = "DELETE FROM node WHERE beaten_at < now() - interval '1 day'
    AND id NOT IN (SELECT owner FROM partition WHERE owner IS NOT NULL)";

impl Lease {
    pub(super) fn new(process: String, options: &PostgresOptions) -> Self {
        Self {
            process,
            about: options.about.clone(),
            address: options.node.clone(),
            takeover_ms: i64::try_from(options.takeover.as_millis()).unwrap_or(i64::MAX),
            demands: options.demands,
            sent_ms: AtomicI64::new(NEVER_MS),
            ahead_ms: AtomicI64::new(0),
            has_joined: AtomicBool::new(false),
            is_leaving: AtomicBool::new(false),
            is_superseded: AtomicBool::new(false),
            tenures: Mutex::default(),
        }
    }

    /// The name of this process in the database: no other process has it, before or after.
    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// Whether this process is a node, beside others.
    pub(super) fn is_node(&self) -> bool {
        self.address.is_some()
    }

    /// What may keep a beat from an answer although the database runs.
    pub(super) fn hint(&self) -> Option<&'static str> {
        self.demands
            .standby
            .then_some("commits wait for the synchronous standby: is it connected (pg_stat_replication)?")
    }

    /// How long a beat stands still at least until its process is taken to be gone, milliseconds.
    pub(super) fn takeover_ms(&self) -> i64 {
        self.takeover_ms
    }

    /// Time between two beats.
    pub(super) fn pace(&self) -> Duration {
        Duration::from_millis(self.takeover_ms.unsigned_abs()) / BEATS
    }

    /// Whether the last successful beat is so fresh that nobody can have taken the partition.
    pub(super) fn is_current(&self) -> bool {
        let lasts_ms = self.takeover_ms / 10 * 9;
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

    /// This process asks for a partition.
    pub(super) fn asks(&self, partition: Partition) {
        self.tenures.lock().asking.insert(partition);
    }

    /// Result of a take: whether this process has the partition. `None` if the result is unknown;
    /// the partition is released then.
    pub(super) fn note_take(&self, tenure: Tenure, is_taken: Option<bool>) {
        let mut tenures = self.tenures.lock();
        tenures.asking.remove(&tenure.partition);
        match is_taken {
            Some(true) => {
                tenures.taken.insert(tenure.partition, tenure.epoch);
                tenures.given_up.remove(&tenure.partition);
            }
            Some(false) => {}
            None => tenures.give_up(tenure),
        }
    }

    /// This process has a partition no more, by its own will. Another owner's epoch is no surprise
    /// from now on, and nothing is written in this one.
    pub(super) fn left(&self, tenure: Tenure) {
        self.tenures.lock().give_up(tenure);
    }

    /// The epoch in which this process took a partition.
    pub(super) fn epoch(&self, partition: Partition) -> Option<Epoch> {
        self.tenures.lock().taken.get(&partition).copied()
    }

    /// Whether this process gave a partition up that it had in this epoch.
    pub(super) fn is_given_up(&self, tenure: Tenure) -> bool {
        self.tenures.lock().is_given_up(tenure)
    }

    /// True if the database may not know that this process gave up what it
    /// has in this epoch.
    pub(super) fn is_to_be_released(&self, tenure: Tenure) -> bool {
        let tenures = self.tenures.lock();
        tenures.is_given_up(tenure) && !tenures.asking.contains(&tenure.partition)
    }

    /// From its next beat on, this process shows its address.
    pub(super) fn join(&self) {
        self.has_joined.store(true, Ordering::Release);
    }

    /// From the next beat on the others know that this process hands its partitions over.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Release);
    }

    /// How far the database's clock is ahead of this machine's, milliseconds.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Acquire)
    }

    /// One beat. Fails when the database loses acknowledged writes. Gives the state of the
    /// database, where that may be read.
    pub(super) async fn beat(&self, line: &Line) -> Result<Option<BeatResult>> {
        let sent_ms = now_ms();
        let is_leaving = self.is_leaving.load(Ordering::Acquire);
        let address = self.address.as_ref().filter(|_| self.has_joined.load(Ordering::Acquire));
        let (settings, epochs, queried_ms, answered_ms, beaten) = line
            .try_once(async |link| {
                let settings =
                    link.row(BEAT, &[&self.process, &self.about, &address, &is_leaving, &self.takeover_ms]).await?;
                // The beat may wait for a standby, which says nothing about the time; this only
                // reads.
                let queried_ms = wall_ms();
                let epochs = link.rows(EPOCHS, &[]).await?;
                let answered_ms = wall_ms();
                let system = link.system().map(str::to_owned);
                let beaten = BeatResult { system, timeline: link.timeline(), heads: heads_of(link).await? };
                Ok((settings, epochs, queried_ms, answered_ms, beaten))
            })
            .await?;
        if let Some(settings) = settings {
            let text = |at| settings.get::<_, String>(at);
            let admitted = self.admit(line, &text(0), &text(1), &text(2));
            // What is acknowledged from now on could be lost: nothing is answered until then.
            admitted.inspect_err(|_| self.sent_ms.store(NEVER_MS, Ordering::Release))?;
        }
        if let Some(row) = epochs.first() {
            let ahead_ms = ahead_by(self.ahead_ms(), row.get(0), queried_ms, answered_ms);
            self.ahead_ms.store(ahead_ms, Ordering::Release);
        }
        for row in epochs {
            let Some(id) = row.get::<_, Option<i32>>(1) else { continue };
            let found = (Partition(id as u16), Epoch(row.get::<_, i64>(2) as u64));
            // An older epoch was read before this process took the partition.
            if self.epoch(found.0).is_some_and(|taken| found.1 > taken) {
                self.set_superseded();
            }
        }
        self.sent_ms.store(sent_ms, Ordering::Release);
        Ok((beaten.timeline > 0).then_some(beaten))
    }

    fn admit(&self, line: &Line, fsync: &str, full_page_writes: &str, standbys: &str) -> Result<()> {
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
    pub(super) async fn forget_old(&self, line: &Line) -> Result<()> {
        line.try_once(async |link| link.rows(FORGET, &[]).await).await.map(drop)
    }
}

/// How far the database's clock is ahead of this machine's, when it was asked for its time and
/// answered at these times of this machine. What was known before stays where it may still be true:
/// a slow answer shows little. All in milliseconds.
fn ahead_by(known: i64, database: i64, queried: i64, answered: i64) -> i64 {
    let is_still_true = (queried..=answered).contains(&database.saturating_sub(known));
    if is_still_true { known } else { database.saturating_sub(i64::midpoint(queried, answered)) }
}

impl Tenures {
    fn give_up(&mut self, tenure: Tenure) {
        if self.taken.get(&tenure.partition) == Some(&tenure.epoch) {
            self.taken.remove(&tenure.partition);
        }
        let up_to = self.given_up.entry(tenure.partition).or_default();
        *up_to = tenure.epoch.max(*up_to);
    }

    fn is_given_up(&self, tenure: Tenure) -> bool {
        self.given_up.get(&tenure.partition).is_some_and(|up_to| tenure.epoch <= *up_to)
    }
}

/// A look at a partition from outside, again and again, until its owner is gone.
#[derive(Debug, Default)]
pub struct OwnerWatch {
    seen: Option<OwnerBeat>,
    looked_ms: i64,
    /// The beat that stood still, if the last look proved that.
    gone: Option<i64>,
}

/// The owner of a partition and its beat, unchanged since a time of this machine's clock.
#[derive(Debug)]
struct OwnerBeat {
    epoch: Epoch,
    owner: String,
    beat: Option<i64>,
    since_ms: i64,
    /// Its beat has grown since it was first seen.
    is_living: bool,
}

const OWNER: &str = "SELECT p.epoch, p.owner, n.beat, n.takeover_ms
    FROM partition p LEFT JOIN node n ON n.id = p.owner WHERE p.id = $1";

impl OwnerWatch {
    /// The owner that is waited for.
    pub fn owner(&self) -> Option<&str> {
        self.seen.as_ref().map(|seen| seen.owner.as_str())
    }

    /// The owner, if it gave a sign of life between two looks.
    pub fn living(&self) -> Option<&str> {
        self.seen.as_ref().filter(|seen| seen.is_living).map(|seen| seen.owner.as_str())
    }

    /// The last beat of an owner that is gone, if the last look proved that.
    pub fn gone(&self) -> Option<i64> {
        self.gone
    }

    /// Looks once. Gives the epoch of a partition that is free or whose owner is gone.
    pub(super) async fn look(&mut self, line: &Line, lease: &Lease, partition: Partition) -> Result<Option<Epoch>> {
        let before_ms = now_ms();
        let id = i32::from(partition.0);
        let row = line.try_once(async |link: &Link| link.row(OWNER, &[&id]).await).await?;
        let counted_on = row.as_ref().and_then(|row| row.get::<_, Option<i64>>(3)).unwrap_or_default();
        let takeover_ms = counted_on.max(lease.takeover_ms);
        // Time in which nobody looked, or this process could not write itself, proves nothing.
        let is_gapless = before_ms - self.looked_ms < takeover_ms / 2 && lease.is_current();
        self.looked_ms = now_ms();
        self.gone = None;
        let Some(row) = row else { return Ok(Some(Epoch::NONE)) };
        let epoch = Epoch(row.get::<_, i64>(0) as u64);
        let Some(owner) = row.get::<_, Option<String>>(1) else { return Ok(Some(epoch)) };
        if owner == lease.process() {
            // A take of this process whose answer was lost, or one that it gave up: it is asked for
            // again.
            return Ok(lease.is_given_up(Tenure { partition, epoch }).then_some(epoch));
        }
        let beat: Option<i64> = row.get(2);
        match &self.seen {
            Some(seen) if is_gapless && (seen.epoch, &seen.owner, seen.beat) == (epoch, &owner, beat) => {
                let is_gone = before_ms - seen.since_ms >= takeover_ms;
                self.gone = beat.filter(|_| is_gone);
                Ok(is_gone.then_some(epoch))
            }
            _ => {
                let is_same = |seen: &OwnerBeat| (seen.epoch, &seen.owner) == (epoch, &owner) && seen.beat < beat;
                let is_living = self.seen.as_ref().is_some_and(is_same);
                self.seen = Some(OwnerBeat { epoch, owner, beat, since_ms: self.looked_ms, is_living });
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_moves_no_clock_that_may_be_right() {
        for (known, database, [queried, answered], expected) in [
            (0, 1_000, [1_000, 1_000], 0),
            (0, 1_002, [1_000, 1_004], 0),
            // An answer of 1.4 s whose time was read at its begin, and at its end.
            (0, 1_000, [1_000, 2_400], 0),
            (0, 2_400, [1_000, 2_400], 0),
            (-7, 993, [1_000, 2_400], -7),
            (0, 3_601_002, [1_000, 1_004], 3_600_000),
            (3_600_000, 3_602_000, [1_000, 2_400], 3_600_000),
            (3_600_000, 1_700, [1_000, 2_400], 0),
            (0, 4_000, [1_000, 3_000], 2_000),
        ] {
            assert_eq!(
                ahead_by(known, database, queried, answered),
                expected,
                "{known} {database} {queried} to {answered}"
            );
        }
    }
}
