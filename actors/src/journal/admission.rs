//! Admission control of the journal. A sender takes a permit before it sends a command, and the
//! permit travels with the command. So handing a Record to the journal cannot fail after state has
//! changed. Callers from outside wait for their permit up to a deadline; the engine's own senders
//! wait as long as it takes.
//!
//! While the disk is short of space, or the wall clock is in doubt, admission is closed: nothing is
//! written, and reads show what has been booked so far.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use ledger::id::GroupNumber;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::command_turns::{Turn, Turns};
use store::{Partition, Position, Sequence};

/// The requester of a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A caller from outside: refused when the shared part is full.
    Door,
    /// The engine's own senders (what falls due, recovery): they also have a reserved part.
    Inside,
}

/// Why no permits for commands are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ClosedBy {
    /// The disk is short of space.
    Space = 1,
    /// The wall clock is in doubt.
    Clock = 2,
}

/// How much may be under way at once.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Commands under way, all senders.
    pub commands_max: i64,
    /// Bytes of their Records, as estimated, all senders.
    pub bytes_max: i64,
    /// The part of each that only inside senders may use, percent.
    pub reserved_percent: i64,
    /// Commands of callers that have their turn at once.
    pub turns_max: usize,
    /// How long a caller waits for a turn and a permit.
    pub wait_max: Duration,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            commands_max: 16_384,
            bytes_max: 256 * 1024 * 1024,
            reserved_percent: 10,
            turns_max: 512,
            wait_max: Duration::from_secs(1),
        }
    }
}

/// Permits of the journal: how many are taken, and whether any are given.
#[derive(Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    commands: AtomicI64,
    bytes: AtomicI64,
    /// A bit for each reason for which it is closed.
    closed: AtomicU8,
    freed: Notify,
    turns: Arc<Turns>,
}

/// Permission to send one command, or several that are carried out together. It is given back when
/// the last clone of its `Arc` is dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Arc<Admission>,
    commands: i64,
    bytes: i64,
    may_write: bool,
    /// The requester's first Record under it: its partition in the upper 16 bits, its sequence in
    /// the lower 48; 0 while there is none.
    requested: AtomicU64,
    /// Until the command has been sent.
    turn: Mutex<Option<Turn>>,
}

/// The largest sequence beside which a permit has room for the partition.
const SEQUENCE_MAX: u64 = (1 << 48) - 1;

impl Permit {
    /// The first Record under this permit that names a requester: the Record of the request itself,
    /// and not what fell due before it or followed from it. `None` if the request wrote none. Known
    /// once the command's outcome is.
    pub fn requested_record(&self) -> Option<Position> {
        let requested = self.requested.load(Ordering::Acquire);
        let sequence = Sequence(requested & SEQUENCE_MAX);
        let partition = Partition((requested >> SEQUENCE_MAX.count_ones()) as u16);
        (sequence >= Sequence::FIRST).then_some(Position { partition, sequence })
    }

    /// Notes a Record that names a requester; only the first one counts.
    pub(super) fn note_requested(&self, Position { partition, sequence }: Position) {
        let requested = u64::from(partition.0) << SEQUENCE_MAX.count_ones() | sequence.0.min(SEQUENCE_MAX);
        let _first_stays = self.requested.compare_exchange(0, requested, Ordering::AcqRel, Ordering::Acquire);
    }

    /// The turn of its commands, for the time until the outcome of the first is durable; none after
    /// the first time, and for a sender without a turn.
    pub(crate) fn begin_turn(&self) -> Option<impl Sized + use<>> {
        self.turn.lock().take()
    }

    /// True when Records may be written under it.
    pub fn may_write(&self) -> bool {
        self.may_write
    }
}

impl Admission {
    /// Admission with all room free.
    pub fn new(limits: AdmissionLimits) -> Arc<Self> {
        let (commands, bytes) = (AtomicI64::new(0), AtomicI64::new(0));
        let (freed, turns) = (Notify::new(), Turns::new(limits.turns_max));
        Arc::new(Self { limits, commands, bytes, closed: AtomicU8::new(0), freed, turns })
    }

    /// Takes a permit for one command whose Records are about `bytes` long; `None` if the limits
    /// are reached.
    pub fn try_take(self: &Arc<Self>, sender: Sender, bytes: usize) -> Option<Arc<Permit>> {
        if self.is_closed() {
            return None;
        }
        self.try_enter(sender, (1, bytes), true)
    }

    /// Waits for the turn of commands of a merchant, and takes one permit for all of them; `None`
    /// if the wait was too long, or admission is closed.
    pub async fn take_in_turn(
        self: &Arc<Self>,
        group: Option<GroupNumber>,
        (commands, bytes): (u32, usize),
    ) -> Option<Arc<Permit>> {
        let taking = async {
            let turn = self.turns.take(group, commands).await;
            let mut freed = std::pin::pin!(self.freed.notified());
            while !self.is_closed() {
                // From here on it hears of what is freed: several may be at once.
                let _is_freed = freed.as_mut().enable();
                if let Some(permit) = self.try_enter(Sender::Door, (commands, bytes), true) {
                    *permit.turn.lock() = Some(turn);
                    return Some(permit);
                }
                freed.as_mut().await;
                freed.set(self.freed.notified());
            }
            None
        };
        timeout(self.limits.wait_max, taking).await.ok().flatten()
    }

    /// Commands of callers that wait for their turn.
    pub fn waiting(&self) -> i64 {
        self.turns.waiting()
    }

    /// Takes a permit for a read. It may book what is due, unless admission is closed.
    pub fn try_read(self: &Arc<Self>, sender: Sender, bytes: usize) -> Option<Arc<Permit>> {
        let may_write = !self.is_closed();
        self.try_enter(sender, (1, if may_write { bytes } else { 0 }), may_write)
    }

    fn try_enter(
        self: &Arc<Self>,
        sender: Sender,
        (commands, bytes): (u32, usize),
        may_write: bool,
    ) -> Option<Arc<Permit>> {
        let share = |max| self.share(max, sender);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(share(self.limits.bytes_max));
        let commands = i64::from(commands).min(share(self.limits.commands_max));
        if self.commands.fetch_add(commands, Ordering::AcqRel) + commands > share(self.limits.commands_max) {
            self.commands.fetch_sub(commands, Ordering::AcqRel);
            return None;
        }
        if self.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes > share(self.limits.bytes_max) {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
            self.commands.fetch_sub(commands, Ordering::AcqRel);
            return None;
        }
        let (requested, turn) = Default::default();
        Some(Arc::new(Permit { admission: Arc::clone(self), commands, bytes, may_write, requested, turn }))
    }

    /// Takes a permit for an inside sender; waits until there is one.
    pub async fn take(self: &Arc<Self>, bytes: usize) -> Arc<Permit> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            let _is_freed = freed.as_mut().enable();
            if let Some(permit) = self.try_take(Sender::Inside, bytes) {
                return permit;
            }
            freed.await;
        }
    }

    /// Closes admission for a reason, or takes the reason away: it opens with the last one.
    /// Commands under way go on. True when that changed something.
    pub fn set_closed(&self, by: ClosedBy, is_closed: bool) -> bool {
        let bit = by as u8;
        let before = if is_closed {
            self.closed.fetch_or(bit, Ordering::AcqRel)
        } else {
            self.closed.fetch_and(!bit, Ordering::AcqRel)
        };
        if before == bit && !is_closed {
            self.freed.notify_waiters();
        }
        (before & bit != 0) != is_closed
    }

    /// True while no permits for commands are given.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) != 0
    }

    /// True while it is closed for this reason.
    pub(crate) fn is_closed_by(&self, by: ClosedBy) -> bool {
        self.closed.load(Ordering::Acquire) & by as u8 != 0
    }

    /// Bytes under way, as estimated.
    pub fn bytes(&self) -> i64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Commands under way.
    pub fn commands(&self) -> i64 {
        self.commands.load(Ordering::Acquire)
    }

    /// Commands that a sender of this class can still send.
    pub fn free(&self, sender: Sender) -> i64 {
        (self.share(self.limits.commands_max, sender) - self.commands()).max(0)
    }

    /// The part of a limit that a class of senders may use.
    fn share(&self, max: i64, sender: Sender) -> i64 {
        match sender {
            Sender::Door => max - max * self.limits.reserved_percent / 100,
            Sender::Inside => max,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.admission.commands.fetch_sub(self.commands, Ordering::AcqRel);
        (0..self.commands).for_each(|_| self.admission.freed.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> AdmissionLimits {
        AdmissionLimits { commands_max: 10, bytes_max: 1_000, reserved_percent: 20, ..AdmissionLimits::default() }
    }

    #[tokio::test]
    async fn a_caller_waits_for_its_turn_up_to_a_deadline() {
        let hasty = Admission::new(AdmissionLimits { turns_max: 1, wait_max: Duration::ZERO, ..small() });
        let _first = hasty.take_in_turn(None, (1, 10)).await.unwrap();
        assert!(hasty.take_in_turn(None, (1, 10)).await.is_none());

        let room = Admission::new(AdmissionLimits { turns_max: 1, wait_max: Duration::from_secs(60), ..small() });
        let first = room.take_in_turn(None, (1, 10)).await.unwrap();
        let second = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.take_in_turn(None, (1, 10)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        // Its outcome is durable; the permit has still to serve what follows from it.
        drop(first.begin_turn());
        assert!(second.await.unwrap().is_some());
        assert!(first.begin_turn().is_none());
        room.set_closed(ClosedBy::Space, true);
        assert!(room.take_in_turn(None, (1, 10)).await.is_none());
    }

    #[tokio::test]
    async fn a_caller_waits_for_room_in_the_journal_as_well() {
        let room = Admission::new(AdmissionLimits { wait_max: Duration::from_secs(60), ..small() });
        let taken: Vec<_> = std::iter::from_fn(|| room.try_take(Sender::Door, 10)).collect();
        let waiting = tokio::spawn({
            let room = Arc::clone(&room);
            async move { room.take_in_turn(None, (1, 10)).await.is_some() }
        });
        tokio::task::yield_now().await;
        drop(taken);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn commands_that_are_carried_out_together_have_one_permit_and_count_each() {
        let room = Admission::new(AdmissionLimits { wait_max: Duration::from_secs(60), ..small() });
        let together = room.take_in_turn(None, (7, 10)).await.unwrap();
        assert_eq!((room.commands(), room.free(Sender::Door)), (7, 1));
        let waiting: Vec<_> = (0..2).map(|_| Box::pin(room.take_in_turn(None, (3, 10)))).collect();
        let waiting = tokio::join!(futures_util::future::join_all(waiting), async { drop(together) }).0;
        assert!(waiting.iter().all(Option::is_some), "one end lets both in");
        assert_eq!(room.commands(), 6);
        drop(waiting);
        assert!(room.take_in_turn(None, (1_000, 10)).await.is_some(), "more than there may be have all of it");
        assert_eq!((room.commands(), room.waiting()), (0, 0));
    }

    #[test]
    fn the_door_is_refused_before_the_inside_is() {
        let room = Admission::new(small());
        let door: Vec<_> = std::iter::from_fn(|| room.try_take(Sender::Door, 10)).collect();
        assert_eq!(door.len(), 8);
        let inside: Vec<_> = std::iter::from_fn(|| room.try_take(Sender::Inside, 10)).collect();
        assert_eq!(inside.len(), 2);
        drop(door);
        assert_eq!(room.free(Sender::Door), 6);
        assert!(room.try_take(Sender::Door, 1_000).is_none(), "the bytes are bounded as well");
        drop(inside);
        assert!(
            room.try_take(Sender::Door, usize::MAX).is_some(),
            "one large Record passes when nothing else is under way"
        );
        assert_eq!(room.commands(), 0);
    }

    #[test]
    fn a_closed_room_lets_only_readers_in() {
        let room = Admission::new(AdmissionLimits::default());
        assert!(room.set_closed(ClosedBy::Space, true) && !room.set_closed(ClosedBy::Space, true));
        assert!(room.set_closed(ClosedBy::Clock, true));
        assert!(room.try_take(Sender::Door, 1).is_none() && room.try_take(Sender::Inside, 1).is_none());
        assert!(!room.try_read(Sender::Door, 1).unwrap().may_write());
        assert!(room.set_closed(ClosedBy::Space, false));
        assert!(!room.try_read(Sender::Door, 1).unwrap().may_write(), "the other reason still holds");
        assert!(room.set_closed(ClosedBy::Clock, false));
        assert!(room.try_read(Sender::Door, 1).unwrap().may_write());
        assert!(room.try_take(Sender::Door, 1).unwrap().may_write());
    }
}
