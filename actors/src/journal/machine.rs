//! State machine of group commit, synchronous and without I/O. It decides which Records form a
//! block, and the order of deliveries, publication and replies. The journal's thread and the
//! simulation are shells around it.
//!
//! All messages pass one queue. A block takes what waits, in order, up to a size. When the block is
//! durable, its Records are delivered to the foreign owners that are awake, published, and reported
//! to their owners as durable. Only then do the other messages of the block take effect, in their
//! order: replies leave, opens are answered, snapshots are written.
//!
//! - Delivery comes before publication. A caller whose repeated request is answered from the index,
//!   by its key, reads its own write in the recipients' balances too.
//! - The gate (output commit): a reply queued behind a Record leaves with that Record's block or a
//!   later one. No caller learns of a fact before it is durable.
//! - An open is answered with a sequence S after everything up to S was published, and its inbox
//!   gets everything from S + 1.

use std::collections::VecDeque;
use std::sync::Arc;

use ledger::{IdMap, IdSet, LedgerId, Record, Timestamp};

use super::admission::Permit;
use derived::snapshots::Snapshot;
use store::{Block, BlockHash, Head, Partition, Position, Sequence};

/// A block closes at this many bytes of Records, unless one Record alone is larger.
pub const BLOCK_BYTES_MAX: usize = 512 * 1024;
/// The blocks of several partitions that become durable together have at most this many bytes of
/// Records, unless one Record alone is larger.
pub const COMMIT_BYTES_MAX: usize = 1024 * 1024;

/// A Record on its way into the journal.
#[derive(Debug)]
pub struct Submission {
    /// The Record to make durable.
    pub record: Arc<Record>,
    /// Its encoding, made by its owner.
    pub bytes: Vec<u8>,
    /// The permit that its command took; given back when the Record is durable.
    pub permit: Arc<Permit>,
}

/// A message to the journal. `A` is a reply on its way out, `I` a handle to an actor's inbox.
#[derive(Debug)]
pub enum Input<A, I> {
    /// Make Records durable, in order.
    Submit(Vec<Submission>),
    /// Let a reply go, behind everything that was submitted before it.
    Answer(A),
    /// Register an actor's inbox, and send it the sequence through which to load.
    Open {
        /// Whose actor.
        ledger: LedgerId,
        /// Inbox for its deliveries.
        inbox: I,
    },
    /// Forget an actor's inbox.
    Close {
        /// Whose actor.
        ledger: LedgerId,
    },
    /// Keep an actor's state, once all that is in it is durable.
    Keep(Box<Snapshot>),
    /// The block handed out last is durable, and this is its hash.
    Written(BlockHash),
}

/// Actions for the shell, in this order.
#[derive(Debug)]
pub enum Output<A, I> {
    /// Make a block durable, then say [`Input::Written`]. Until then no other block is handed out.
    Write(Block),
    /// Make a durable block's Records visible to readers.
    Publish(Vec<(Sequence, Arc<Record>)>),
    /// Hand foreign Records to an actor that is awake.
    Deliver {
        /// The inbox.
        inbox: I,
        /// In order.
        records: Vec<(Sequence, Arc<Record>)>,
    },
    /// All of an actor's Records through this ordinal are durable.
    Durable {
        /// Recipient of the message.
        inbox: I,
        /// The ordinal.
        ordinal: u64,
    },
    /// Let a reply go.
    Release(A),
    /// Confirm an actor's registration; it loads everything through this sequence.
    Opened {
        /// Recipient of the message.
        inbox: I,
        /// Load through here; deliveries follow from the next one on.
        through: Sequence,
    },
    /// Write a snapshot.
    Keep {
        /// The state.
        snapshot: Box<Snapshot>,
        /// Its owner's Records through this sequence are in it, and none after it.
        own_through: Sequence,
    },
}

/// A message that takes effect once everything queued before it is durable.
enum Follower<A, I> {
    Answer(A),
    Open { ledger: LedgerId, inbox: I },
    Close { ledger: LedgerId },
    Keep { snapshot: Box<Snapshot>, own_through: Sequence },
}

/// A message in the queue.
enum Item<A, I> {
    Record(Submission),
    Snapshot(Box<Snapshot>),
    Follower(Follower<A, I>),
}

/// Durable Records, in order.
type PublishedRecords = Vec<(Sequence, Arc<Record>)>;

/// A block that is being made durable, and what follows it. The permits go back when it is done.
struct Flight<A, I> {
    records: Vec<(Sequence, Arc<Record>)>,
    permits: Vec<Arc<Permit>>,
    followers: Vec<Follower<A, I>>,
}

/// The state machine: its queue, the block that is being written, and the inboxes of actors that
/// are awake.
///
/// ```
/// use std::sync::Arc;
///
/// use actors::engine::AdmissionLimits;
/// use actors::journal::{Admission, Input, Machine, Output, Sender, Submission};
/// use store::{Head, Partition};
/// use ledger::event::Event;
/// use ledger::id::LedgerId;
/// use ledger::record::Decision;
/// use ledger::time::Timestamp;
///
/// let mut machine: Machine<&str, ()> = Machine::new(Partition(0), Head::EMPTY);
/// let (mut outputs, now) = (Vec::new(), Timestamp(1_767_225_600_000));
/// let moved = Decision::of(Event::ClockMoved { offset_ms: 1 });
/// let record = moved.into_record(LedgerId::System, 1, now);
/// let mut bytes = Vec::new();
/// record.encode(&mut bytes);
/// let admission = Admission::new(AdmissionLimits::default());
/// let permit = admission.try_take(Sender::Door, bytes.len()).unwrap();
/// let submission = Submission { record: Arc::new(record), bytes, permit };
/// machine.step(Input::Submit(vec![submission]), &mut outputs);
/// machine.step(Input::Answer("carried out"), &mut outputs);
/// machine.gather(now, &mut outputs);
///
/// let Some(Output::Write(block)) = outputs.pop() else { panic!("a block is to be made durable") };
/// assert!(outputs.is_empty(), "no reply leaves before that");
/// machine.step(Input::Written(block.hash()), &mut outputs);
/// assert!(matches!(outputs[..], [Output::Publish(_), Output::Release("carried out")]));
/// ```
pub struct Machine<A, I> {
    partition: Partition,
    head: Head,
    queue: VecDeque<Item<A, I>>,
    flight: Option<Flight<A, I>>,
    inboxes: IdMap<LedgerId, I>,
}

impl<A, I: Clone> Machine<A, I> {
    /// A machine that continues the journal of a partition.
    pub fn new(partition: Partition, head: Head) -> Self {
        Self { partition, head, queue: VecDeque::new(), flight: None, inboxes: IdMap::default() }
    }

    /// Takes one message; `outputs` grows by what is to be done at once.
    pub fn step(&mut self, input: Input<A, I>, outputs: &mut Vec<Output<A, I>>) {
        match input {
            Input::Submit(submissions) => {
                for submission in submissions {
                    self.queue.push_back(Item::Record(submission));
                }
            }
            Input::Answer(answer) => self.queue.push_back(Item::Follower(Follower::Answer(answer))),
            Input::Open { ledger, inbox } => self.queue.push_back(Item::Follower(Follower::Open { ledger, inbox })),
            Input::Close { ledger } => self.queue.push_back(Item::Follower(Follower::Close { ledger })),
            Input::Keep(snapshot) => self.queue.push_back(Item::Snapshot(snapshot)),
            Input::Written(hash) => {
                self.head.hash = hash;
                let flight = self.flight.take().expect("only a block that was handed out can be written");
                self.land(flight, outputs);
            }
        }
    }

    /// Hands out the next block, if none is under way and something waits. Followers without a
    /// Record before them need no block and are let go at once. `now` is the time of booking; it
    /// never goes back.
    pub fn gather(&mut self, now: Timestamp, outputs: &mut Vec<Output<A, I>>) {
        self.gather_within(now, &mut 0, outputs);
    }

    /// The same for a block that becomes durable together with those of other partitions. `taken`
    /// are the bytes of all their Records so far; it grows by those of this block.
    pub(super) fn gather_within(&mut self, now: Timestamp, taken: &mut usize, outputs: &mut Vec<Output<A, I>>) {
        if self.flight.is_some() || self.queue.is_empty() {
            return;
        }
        let first = self.head.next;
        let mut flight = Flight { records: Vec::new(), permits: Vec::new(), followers: Vec::new() };
        let (mut records, mut bytes) = (Vec::new(), 0);
        let before = *taken;
        let is_too_much = |bytes: usize, more: usize| {
            bytes > 0 && bytes + more > BLOCK_BYTES_MAX
                || before + bytes > 0 && before + bytes + more > COMMIT_BYTES_MAX
        };
        while let Some(item) = self.queue.pop_front() {
            match item {
                Item::Record(submission) if is_too_much(bytes, submission.bytes.len()) => {
                    self.queue.push_front(Item::Record(submission));
                    break;
                }
                Item::Record(Submission { record, bytes: encoded, permit }) => {
                    bytes += encoded.len();
                    let sequence = Sequence(first.0 + records.len() as u64);
                    if record.is_requested() {
                        permit.note_requested(Position { partition: self.partition, sequence });
                    }
                    flight.records.push((sequence, record));
                    flight.permits.push(permit);
                    records.push(encoded);
                }
                Item::Snapshot(snapshot) => {
                    let own_through = Sequence(first.0 + records.len() as u64 - 1);
                    flight.followers.push(Follower::Keep { snapshot, own_through });
                }
                Item::Follower(follower) => flight.followers.push(follower),
            }
        }
        *taken += bytes;
        if records.is_empty() {
            self.land(flight, outputs);
            return;
        }
        let booked_at_ms = now.0.max(self.head.booked_at_ms);
        let block = Block { partition: self.partition, first, booked_at_ms, previous: self.head.hash, records };
        // The hash comes back with the word that the block is durable; until then no other block is
        // handed out.
        self.head = Head { next: block.next(), booked_at_ms, ..self.head };
        self.flight = Some(flight);
        outputs.push(Output::Write(block));
    }

    /// True when nothing waits and nothing is being written.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flight.is_none()
    }

    fn land(&mut self, flight: Flight<A, I>, outputs: &mut Vec<Output<A, I>>) {
        let Flight { records, permits, followers } = flight;
        if !records.is_empty() {
            let durable = self.durable(&records);
            outputs.extend(self.deliveries(&records));
            outputs.push(Output::Publish(records));
            outputs.extend(durable);
        }
        drop(permits);
        for follower in followers {
            match follower {
                Follower::Answer(answer) => outputs.push(Output::Release(answer)),
                Follower::Open { ledger, inbox } => {
                    self.inboxes.insert(ledger, inbox.clone());
                    outputs.push(Output::Opened { inbox, through: Sequence(self.published_next() - 1) });
                }
                Follower::Close { ledger } => {
                    self.inboxes.remove(&ledger);
                }
                Follower::Keep { snapshot, own_through } => outputs.push(Output::Keep { snapshot, own_through }),
            }
        }
    }

    /// The sequence after the last published one. A block in flight has numbers already, but is not
    /// published.
    fn published_next(&self) -> u64 {
        let in_flight = self.flight.as_ref().and_then(|flight| flight.records.first());
        in_flight.map_or(self.head.next.0, |(first, _)| first.0)
    }

    /// One delivery for each foreign owner that is awake, in the order of its first Record.
    fn deliveries(&self, records: &[(Sequence, Arc<Record>)]) -> impl Iterator<Item = Output<A, I>> + use<A, I> {
        let mut places: IdMap<LedgerId, usize> = IdMap::default();
        let mut foreign: Vec<(I, PublishedRecords)> = Vec::new();
        for (sequence, record) in records {
            for ledger in record.other_ledgers() {
                let place = match places.get(&ledger) {
                    Some(place) => *place,
                    None => {
                        let Some(inbox) = self.inboxes.get(&ledger).filter(|_| ledger != record.owner) else {
                            continue;
                        };
                        foreign.push((inbox.clone(), Vec::new()));
                        places.insert(ledger, foreign.len() - 1);
                        foreign.len() - 1
                    }
                };
                foreign[place].1.push((*sequence, Arc::clone(record)));
            }
        }
        foreign.into_iter().map(|(inbox, records)| Output::Deliver { inbox, records })
    }

    /// One report for each owner that is awake: its Records are durable.
    fn durable(&self, records: &[(Sequence, Arc<Record>)]) -> Vec<Output<A, I>> {
        let mut seen: IdSet<LedgerId> = IdSet::default();
        // The last Record of each is the newest.
        let newest = records.iter().rev().filter(|(_, record)| seen.insert(record.owner));
        let durable = newest.filter_map(|(_, record)| {
            let inbox = self.inboxes.get(&record.owner)?.clone();
            Some(Output::Durable { inbox, ordinal: record.ordinal })
        });
        durable.collect()
    }
}

#[cfg(test)]
mod tests {
    use ledger::event::Event;
    use ledger::record::{Decision, Requester};

    use super::super::admission::{Admission, AdmissionLimits, Sender};
    use super::*;

    #[test]
    fn a_permit_knows_the_record_that_was_asked_for() {
        let admission = Admission::new(AdmissionLimits::default());
        let permit = || admission.try_take(Sender::Door, 0).unwrap();
        let mut machine: Machine<(), ()> = Machine::new(Partition(0), Head::EMPTY);
        let mut submit = |permit: &Arc<Permit>, requester: Option<Requester>| {
            let mut record =
                Decision::of(Event::ClockMoved { offset_ms: 0 }).into_record(LedgerId::System, 1, Timestamp(0));
            record.requested_by(requester);
            let submission = Submission { record: Arc::new(record), bytes: vec![0], permit: Arc::clone(permit) };
            machine.step(Input::Submit(vec![submission]), &mut Vec::new());
        };
        let (request, schedule) = (permit(), permit());
        let operator = || Some(Requester::Operator("ana".to_owned()));
        submit(&schedule, None);
        // In this order: a due Record, two requested ones, and one that they caused.
        submit(&request, None);
        submit(&request, operator());
        submit(&request, operator());
        submit(&request, None);
        assert_eq!(request.requested_record(), None, "it has no sequence yet");
        machine.gather(Timestamp(0), &mut Vec::new());
        assert_eq!(request.requested_record(), Some(Position { partition: Partition(0), sequence: Sequence(3) }));
        assert_eq!(schedule.requested_record(), None);
    }
}
