//! World of the simulation: the real journal machine, the real cores of the actors, and a store in
//! memory. The seed chooses what happens between them, one thing at a time.
//!
//! Order of messages: a mailbox is one queue, as in ractor, so messages are handled in the order in
//! which they arrive. Anything may happen between sending and arrival. So messages of different
//! senders overtake each other on their way (every request travels alone, and so does every message
//! of an actor to the journal), while messages of one actor keep their order.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use actors::journal::{Admission, AdmissionLimits, BLOCK_BYTES_MAX, ClosedBy, Input, Machine, Output, Permit};
use actors::resident::{Effects, Envelope, Outcome};
use derived::snapshots::{self, Snapshot, StoredSnapshot};
use ledger::{Event, IdKey, LedgerId, MerchantCommand, RailStamp, Record, Requester, Timestamp};
use store::testkit::{AppendStep, Damage, MemoryStore, PowerCut};
use store::{Block, Partition, Sequence, Store, StoreError};

use crate::actor::{Actor, Answer, Ask, Core, Inbox, Message, Outgoing, Reply, Request, Stage};
use crate::audit::{Audit, ensure, recipients_in};
use crate::callers::Callers;
use crate::chance::Chance;
use crate::coverage::Coverage;
use crate::read_model::ReadModel;
use crate::readers::Readers;

/// A defect that a run is given on purpose, to see that it is found. The product has none of them:
/// they sit in the shell that the simulation plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Replies do not wait for the gate.
    AnswersBeforeWritten,
    /// Records are published before they are delivered.
    PublishesBeforeDelivery,
    /// Now and then a delivery is lost.
    DropsDelivery,
    /// Every delivery comes twice. Harmless: the position passes over it.
    DeliversTwice,
    /// A snapshot claims one foreign Record more than it holds.
    SnapshotClaimsForeign,
    /// The loader applies the last own Record of a snapshot again.
    AppliesOwnTwice,
    /// The loader leaves out the last Record of the tail.
    LoadsOneShort,
    /// The door claims that its look-up of a key saw everything.
    ClaimsKeysLookedUp,
    /// A snapshot is written when it is taken, not behind its Records.
    SnapshotsJumpTheQueue,
    /// The door lets commands in while the disk is full.
    DoorForgetsTheDisk,
    /// A read takes room to write, as a command does.
    ReadsWantToWrite,
    /// When there is space again, nobody wakes the inside senders that wait for it.
    ForgetsWhoWaits,
    /// An append that failed is taken for one that did not.
    AcknowledgesFailedAppend,
    /// Folders are closed without a closing line.
    ClosesWithoutLine,
    /// The head of the journal is not stored separately.
    KeepsNoAnchor,
    /// One of the pages of the readers' view is lost, although later ones are not.
    LosesOnePage,
    /// Of a block with several Records, the readers' view and the index do not get the first.
    PublishesOneShort,
    /// An order is sent again while that is not a Record yet.
    SendsAgainBeforeItsRecord,
    /// A charge is captured whose authorization no Record has.
    CapturesBeforeItsRecord,
    /// A charge whose answer was lost is booked as refused.
    TakesSilenceForRefusal,
    /// The acquirer carries out an order that comes after its close.
    CarriesOutWhatWasClosed,
}

/// How a run ended that broke a promise.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) step: u64,
    pub(crate) what: String,
}

/// One thing that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Execute,
    Gather,
    Land,
    Arrive,
    Handle,
    Send,
    Load,
    Call,
    GiveUp,
    Sleep,
    Snapshot,
    Panic,
    Sweep,
    Wake,
    Jump,
    Fill,
    Free,
    FailAppend,
    Background,
    Follow,
    KeepPages,
    Crash,
}

/// How likely each thing is, before the seed changes it; the second number is by how much it may.
const WEIGHTS: &[(Step, usize, &[usize])] = &[
    (Step::Execute, 25, &[1, 4, 16, 32]),
    (Step::Gather, 60, &[1, 2, 8]),
    (Step::Land, 50, &[1, 2, 8]),
    (Step::Arrive, 120, &[1, 2, 4]),
    (Step::Handle, 160, &[1, 2, 4]),
    (Step::Send, 200, &[1, 2, 4]),
    (Step::Load, 60, &[1, 2, 4]),
    (Step::Call, 120, &[1, 2, 4]),
    (Step::GiveUp, 5, &[0, 1, 2, 8, 16]),
    (Step::Sleep, 5, &[0, 0, 1, 2, 6]),
    (Step::Snapshot, 6, &[0, 1, 2, 4]),
    (Step::Panic, 3, &[0, 0, 1, 2]),
    (Step::Sweep, 8, &[0, 1, 2]),
    (Step::Wake, 40, &[1, 2, 4]),
    (Step::Jump, 4, &[0, 1, 2]),
    (Step::Fill, 1, &[0, 1, 2, 4]),
    (Step::Free, 60, &[1, 2, 4]),
    (Step::FailAppend, 1, &[0, 0, 1, 2]),
    (Step::Background, 30, &[0, 1, 2, 4]),
    (Step::Follow, 60, &[1, 2, 4]),
    (Step::KeepPages, 8, &[0, 1, 2, 4]),
    (Step::Crash, 2, &[0, 0, 1, 2]),
];

/// The steps that bring everything under way to its end.
const UNDER_WAY: &[Step] =
    &[Step::Execute, Step::Gather, Step::Land, Step::Arrive, Step::Handle, Step::Send, Step::Load, Step::Wake];

/// The steps with which a run is brought to its end.
const CALM: &[Step] = &[
    Step::Execute,
    Step::Gather,
    Step::Land,
    Step::Arrive,
    Step::Handle,
    Step::Send,
    Step::Load,
    Step::Wake,
    Step::Free,
    Step::Call,
];

/// One seed in this number also runs the read model of the product, which costs as much as all the
/// rest.
const SEEDS_PER_READERS: u64 = 10;

/// Admission that is taken for what the sweep, or any other sender inside, has to book.
const INSIDE_BYTES: usize = 1_024;
/// Senders inside that wait for room at once.
const WAITING_INSIDE_MAX: usize = 6;

/// A sender inside that waits for room, as the product's do. It is looked after only when it was
/// woken, as by an executor.
struct Waiting {
    ledger: LedgerId,
    room: Pin<Box<dyn Future<Output = Arc<Permit>>>>,
    woken: Arc<WakeFlag>,
    has_waited: bool,
}

struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

impl Waiting {
    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::Acquire)
    }
}

pub(crate) struct World {
    pub(crate) chance: Chance,
    pub(crate) now: Timestamp,
    pub(crate) ids: IdKey,
    pub(crate) admission: Arc<Admission>,
    pub(crate) read_model: ReadModel,
    pub(crate) audit: Audit,
    pub(crate) coverage: Coverage,
    pub(crate) defect: Option<Defect>,
    /// Requests on their way to an actor.
    pub(crate) transit: Vec<Request>,
    /// While the disk is short of space the room is closed.
    pub(crate) is_full: bool,
    limits: AdmissionLimits,
    waiting_inside: Vec<Waiting>,
    /// By the order of [`Step`].
    weights: Vec<usize>,
    trace: bool,
    has_readers: bool,
    store: MemoryStore,
    machine: Machine<Answer, Inbox>,
    /// The product's own, for some of the seeds.
    readers: Option<Arc<Readers>>,
    outputs: VecDeque<Output<Answer, Inbox>>,
    handed_out: Option<Block>,
    actors: BTreeMap<Inbox, Actor>,
    directory: BTreeMap<LedgerId, Inbox>,
    /// Requests for an actor that is being put to sleep.
    waiting: BTreeMap<LedgerId, Vec<Request>>,
    inbox_last: u64,
    /// The sequence that the Record submitted last will have.
    submitted: u64,
    /// Every snapshot ever stored.
    snapshots: Vec<(LedgerId, StoredSnapshot)>,
}

/// Runs one seed to its end.
pub(crate) fn run(seed: u64, defect: Option<Defect>, trace: bool) -> Result<Coverage, Failure> {
    let mut world = World::new(seed, defect, trace);
    let mut callers = Callers::new(&mut world.chance);
    match world.live(&mut callers) {
        Ok(()) => {
            world.coverage.records = world.audit.records().count() as u64;
            Ok(world.coverage)
        }
        Err(what) => Err(Failure { seed, step: world.coverage.steps, what }),
    }
}

impl World {
    fn new(seed: u64, defect: Option<Defect>, trace: bool) -> Self {
        let mut chance = Chance::new(seed);
        let mut weights = vec![0; WEIGHTS.len()];
        for (step, weight, factors) in WEIGHTS {
            weights[*step as usize] = weight * chance.pick(factors).unwrap_or(1);
        }
        if defect == Some(Defect::PublishesBeforeDelivery) {
            // Somebody must be answered by key between the two: the shell is slow, the callers are
            // quick.
            weights[Step::Execute as usize] /= 4;
            weights[Step::Call as usize] *= 4;
        }
        let limits = AdmissionLimits {
            commands_max: chance.between(8, 120),
            bytes_max: 64 * 1024,
            reserved_percent: 25,
            ..AdmissionLimits::default()
        };
        let store = MemoryStore::with_segments_of(chance.between(1, 6) as usize);
        Self {
            now: Timestamp(1_700_000_000_000),
            ids: IdKey::new([7; 16]),
            admission: Admission::new(limits),
            read_model: ReadModel::default(),
            audit: Audit::new(),
            coverage: Coverage::default(),
            defect,
            transit: Vec::new(),
            is_full: false,
            limits,
            waiting_inside: Vec::new(),
            weights,
            trace,
            has_readers: seed.is_multiple_of(SEEDS_PER_READERS),
            machine: Machine::new(Partition(0), store::Head::EMPTY),
            store,
            readers: None,
            outputs: VecDeque::new(),
            handed_out: None,
            actors: BTreeMap::new(),
            directory: BTreeMap::new(),
            waiting: BTreeMap::new(),
            inbox_last: 0,
            submitted: 0,
            snapshots: Vec::new(),
            chance,
        }
    }

    fn live(&mut self, callers: &mut Callers) -> Result<(), String> {
        if self.has_readers {
            self.readers = Some(Readers::open(&self.store, self.defect)?);
        }
        let steps: Vec<Step> = WEIGHTS.iter().map(|(step, ..)| *step).collect();
        for _ in 0..self.chance.between(400, 1_200) {
            self.now = self.now.plus_ms(self.chance.between(0, 40));
            self.step(&steps, callers)?;
        }
        if self.chance.percent(25) {
            self.come_to_rest_on_a_full_disk(callers)?;
        }
        self.come_to_rest(callers)?;
        self.open_everybody(callers)?;
        self.check_all()?;
        callers.settle(&self.audit)
    }

    /// Nothing new is asked for and nothing goes wrong any more, until nothing is left to do.
    fn come_to_rest(&mut self, callers: &mut Callers) -> Result<(), String> {
        callers.stop_asking();
        for _ in 0..20_000 {
            if !self.step(CALM, callers)? {
                let waiting = self.waiting_inside.len();
                ensure(waiting == 0, || format!("{waiting} senders inside wait, though there is room"))?;
                ensure(self.is_at_rest(), || "nothing can happen, but something waits".into())?;
                ensure(callers.are_answered(), || "a caller was never answered".into())?;
                return ensure(self.admission.commands() == 0, || {
                    format!("{} permits are lost", self.admission.commands())
                });
            }
        }
        Err("it does not come to rest".into())
    }

    /// What is under way when the disk is full comes to its end, and gives its room back.
    fn come_to_rest_on_a_full_disk(&mut self, callers: &mut Callers) -> Result<(), String> {
        if !self.is_full {
            self.fill();
        }
        for _ in 0..20_000 {
            if !self.step(UNDER_WAY, callers)? {
                self.coverage.saw("what was under way came to rest on a full disk");
                ensure(self.is_at_rest(), || "nothing can happen on a full disk, but something waits".into())?;
                ensure(callers.nobody_waits(), || "a caller was never answered on a full disk".into())?;
                let permits = self.admission.commands();
                return ensure(permits == 0, || format!("{permits} permits are lost on a full disk"));
            }
        }
        Err("it does not come to rest on a full disk".into())
    }

    /// Every owner is asked for its balance once more, whatever it did before.
    fn open_everybody(&mut self, callers: &mut Callers) -> Result<(), String> {
        let mut ledgers = self.audit.ledgers();
        let records: Vec<_> = self.audit.records().map(|(_, record)| record).collect();
        ledgers.extend(recipients_in(&records));
        ledgers.sort_unstable();
        ledgers.dedup();
        callers.ask_balances(&ledgers);
        self.come_to_rest(callers)?;
        let awake = ledgers.iter().all(|ledger| self.directory.contains_key(ledger));
        ensure(awake, || "an owner was asked for its balance and is not awake".into())
    }

    fn is_at_rest(&self) -> bool {
        self.outputs.is_empty()
            && self.transit.is_empty()
            && self.machine.is_idle()
            && self.waiting.values().all(Vec::is_empty)
            && self.actors.values().all(Actor::is_quiet)
    }

    fn check_all(&self) -> Result<(), String> {
        for actor in self.actors.values() {
            self.audit.check_state(&actor.core, actor.ledger, "at the end")?;
            self.audit.check_complete(&actor.core, actor.ledger)?;
        }
        if let Some(readers) = &self.readers {
            readers.check(&self.audit)?;
        }
        self.snapshots.iter().try_for_each(|(ledger, snapshot)| self.audit.check_snapshot(*ledger, snapshot))?;
        self.audit.reread(&self.store.part())
    }

    /// Does one of the things that can happen; false when none can.
    fn step(&mut self, among: &[Step], callers: &mut Callers) -> Result<bool, String> {
        // Mostly one of the first that are drawn is possible; only else they are all looked at.
        let total = self.weight_of(among);
        let drawn = (0..8).find_map(|_| self.draw(among, total).filter(|step| self.is_possible(*step, callers)));
        let step = drawn.or_else(|| {
            let possible = among.iter().copied().filter(|step| self.is_possible(*step, callers));
            let possible: Vec<_> = possible.collect();
            self.draw(&possible, self.weight_of(&possible))
        });
        let Some(step) = step else { return Ok(false) };
        self.coverage.steps += 1;
        self.note(|_| format!("{step:?}"));
        match step {
            Step::Execute => self.execute(callers)?,
            Step::Gather => self.drive(None),
            Step::Land => self.land()?,
            Step::Arrive => self.arrive(),
            Step::Handle => self.handle()?,
            Step::Send => self.send(callers)?,
            Step::Load => self.load()?,
            Step::Call => callers.call(self)?,
            Step::GiveUp => callers.give_up(self),
            Step::Sleep => self.sleep(),
            Step::Snapshot => self.snapshot(),
            Step::Panic => self.panic(callers),
            Step::Sweep => self.sweep(),
            Step::Wake => self.wake(),
            Step::Jump => self.jump(),
            Step::Fill => self.fill(),
            Step::Free => self.free(),
            Step::FailAppend => self.fail_append(callers)?,
            Step::Background => self.work_in_background(),
            Step::Follow => self.readers.as_ref().map_or(Ok(()), |readers| readers.follow())?,
            Step::KeepPages => self.keep_pages()?,
            Step::Crash => self.crash(callers)?,
        }
        Ok(true)
    }

    fn weight_of(&self, among: &[Step]) -> usize {
        among.iter().map(|step| self.weights[*step as usize]).sum()
    }

    /// One of these steps, each as likely as its weight says; `total` is the weight of all.
    fn draw(&mut self, among: &[Step], total: usize) -> Option<Step> {
        let mut at = self.chance.below(total);
        for step in among {
            let weight = self.weights[*step as usize];
            if at < weight {
                return Some(*step);
            }
            at -= weight;
        }
        None
    }

    fn is_possible(&self, step: Step, callers: &Callers) -> bool {
        let any = |holds: fn(&Actor) -> bool| self.actors.values().any(holds);
        match step {
            Step::Execute => !self.outputs.is_empty(),
            Step::Gather => {
                let is_writing =
                    self.handed_out.is_some() || self.outputs.iter().any(|output| matches!(output, Output::Write(_)));
                !self.machine.is_idle() && !is_writing
            }
            Step::Land => self.handed_out.is_some(),
            Step::Arrive => !self.transit.is_empty(),
            Step::Handle => any(Actor::can_handle),
            Step::Send => any(|actor| !actor.outgoing.is_empty()),
            Step::Load => any(|actor| matches!(actor.stage, Stage::Loading(_))),
            Step::Call => callers.can_call(),
            Step::GiveUp => callers.are_waiting(),
            Step::Sleep => any(|actor| actor.stage == Stage::Awake),
            Step::Snapshot => any(|actor| actor.stage == Stage::Awake && actor.outgoing.is_empty()),
            Step::Panic => !self.actors.is_empty(),
            Step::Sweep => self.waiting_inside.len() < WAITING_INSIDE_MAX && self.audit.knows_somebody(),
            Step::Wake => self.waiting_inside.iter().any(Waiting::is_woken),
            Step::Fill => !self.is_full,
            Step::Free => self.is_full,
            Step::FailAppend => self.handed_out.is_some(),
            Step::Follow => self.readers.as_ref().is_some_and(|readers| readers.is_behind()),
            Step::KeepPages => self.readers.is_some(),
            Step::Jump | Step::Background | Step::Crash => true,
        }
    }

    /// Says something to the machine, or has it hand out the next block.
    fn drive(&mut self, input: Option<Input<Answer, Inbox>>) {
        let mut outputs = Vec::new();
        match input {
            Some(input) => {
                if let Input::Submit(submissions) = &input {
                    self.submitted += submissions.len() as u64;
                }
                self.machine.step(input, &mut outputs);
            }
            None => {
                // The clock that the journal reads may go back; what it books may not.
                let goes_back = self.chance.percent(10);
                if goes_back {
                    self.coverage.saw("clock of the journal went back");
                }
                self.machine.gather(self.now.plus_ms(if goes_back { -5_000 } else { 0 }), &mut outputs);
                if let Some(Output::Write(block)) = outputs.last()
                    && block.next().0 <= self.submitted
                {
                    self.coverage.saw("block closed by its size");
                }
            }
        }
        self.outputs.extend(outputs);
    }

    /// The shell does one thing of its list; a crash may come between any two.
    fn execute(&mut self, callers: &mut Callers) -> Result<(), String> {
        let publication = self.outputs.iter().position(|output| matches!(output, Output::Publish(_)));
        let is_hasty = self.defect == Some(Defect::PublishesBeforeDelivery)
            && matches!(self.outputs.front(), Some(Output::Deliver { .. }));
        let at = publication.filter(|_| is_hasty).unwrap_or_default();
        let Some(output) = self.outputs.remove(at) else { return Ok(()) };
        match output {
            Output::Write(block) => self.hand_out(block),
            Output::Publish(records) => {
                for (sequence, record) in &records {
                    self.read_model.publish(*sequence, record)?;
                }
                if let Some(readers) = &self.readers {
                    readers.publish(records);
                }
                Ok(())
            }
            Output::Deliver { inbox, records } => self.deliver(inbox, records),
            Output::Durable { inbox, ordinal } => {
                if let Some(actor) = self.actors.get(&inbox) {
                    let durable = self.audit.ordinal(actor.ledger);
                    ensure(ordinal <= durable, || format!("{ordinal} is called durable, {durable} is"))?;
                    actor.durable.fetch_max(ordinal, Ordering::AcqRel);
                }
                Ok(())
            }
            Output::Release(answer) => self.release(answer, callers),
            Output::Opened { inbox, through } => {
                self.note(|_| format!("  opened {inbox:?} through {}", through.0));
                let published = self.read_model.through();
                ensure(through.0 == published, || format!("opened through {}, published {published}", through.0))?;
                if let Some(actor) = self.actors.get_mut(&inbox) {
                    actor.stage = Stage::Loading(through);
                }
                Ok(())
            }
            Output::Keep { snapshot, own_through } => self.keep(*snapshot, own_through),
        }
    }

    fn hand_out(&mut self, block: Block) -> Result<(), String> {
        ensure(self.handed_out.is_none(), || "two blocks are being written".into())?;
        let mut owners = Vec::new();
        for bytes in &block.records {
            let record = Record::decode(bytes).map_err(|error| error.to_string())?;
            if owners.contains(&record.owner) {
                self.coverage.saw("block of one owner's several Records");
            }
            owners.push(record.owner);
        }
        let (count, bytes) = (block.records.len(), block.records.iter().map(Vec::len).sum::<usize>());
        ensure(count == 1 || bytes <= BLOCK_BYTES_MAX, || format!("a block of {count} Records has {bytes} bytes"))?;
        self.note(|_| format!("  block of {count} from {}", block.first.0));
        self.handed_out = Some(block);
        Ok(())
    }

    /// The block that was handed out is durable.
    fn land(&mut self) -> Result<(), String> {
        let Some(block) = self.handed_out.take() else { return Ok(()) };
        if self.store.append_until(&block, AppendStep::Block).map_err(|error| error.to_string())? {
            self.coverage.saw("folder of the journal closed");
        }
        self.audit.append(&block)?;
        self.drive(Some(Input::Written(block.hash())));
        Ok(())
    }

    /// The disk fails while the block that was handed out is written, and the process ends. The
    /// block is there all the same, or not.
    fn fail_append(&mut self, callers: &mut Callers) -> Result<(), String> {
        let Some(block) = self.handed_out.take() else { return Ok(()) };
        let is_ignored = self.defect == Some(Defect::AcknowledgesFailedAppend);
        if !is_ignored && self.chance.percent(50) {
            self.coverage.saw("append failed and left its block");
            self.store.part().append(&block).map_err(|error| error.to_string())?;
            self.audit.append(&block)?;
        } else {
            self.coverage.saw("append failed and left nothing");
        }
        self.store.fail_next_write();
        ensure(self.store.part().append(&block).is_err(), || "an append failed and said nothing".into())?;
        if is_ignored {
            self.drive(Some(Input::Written(block.hash())));
            return Ok(());
        }
        let again = self.store.part().append(&block);
        ensure(matches!(again, Err(StoreError::Poisoned)), || "a store that failed went on writing".into())?;
        self.restart(callers)
    }

    /// What the store does on threads of its own: the head is anchored, or the next segment is made
    /// ahead of time.
    fn work_in_background(&mut self) {
        if self.chance.percent(75) {
            if self.store.sync_anchor() {
                self.coverage.saw("anchor synced beside the writer");
            }
        } else if self.store.make_next_segment() {
            self.coverage.saw("next segment made ahead of time");
        }
    }

    /// The pages of the readers' view are stored while more blocks are published.
    fn keep_pages(&mut self) -> Result<(), String> {
        let (blocks_meanwhile, is_lossy) = (self.chance.below(4), self.chance.percent(50));
        let Some(readers) = &self.readers else { return Ok(()) };
        if blocks_meanwhile > 0 && readers.is_behind() {
            self.coverage.saw("readers got a block between their pages");
        }
        self.coverage.saw("readers' pages stored");
        readers.keep(blocks_meanwhile, is_lossy)
    }

    fn deliver(&mut self, inbox: Inbox, records: Vec<(Sequence, Arc<Record>)>) -> Result<(), String> {
        let lost = self.defect == Some(Defect::DropsDelivery) && self.chance.percent(15);
        let Some(actor) = self.actors.get_mut(&inbox) else {
            self.coverage.saw("delivery to an actor that is gone");
            return Ok(());
        };
        ensure(actor.stage != Stage::Opening, || format!("a delivery reached {inbox:?} before it was opened"))?;
        let durable = self.audit.head().next.0;
        ensure(records.iter().all(|(sequence, _)| sequence.0 < durable), || "delivered before durable".into())?;
        if !actor.takes_messages() {
            self.coverage.saw("delivery refused by an actor that sleeps");
            return Ok(());
        }
        self.coverage.saw(match actor.stage {
            Stage::Loading(_) => "delivery to an actor that loads",
            _ => "delivery to an actor that is awake",
        });
        if lost {
            return Ok(());
        }
        if self.defect == Some(Defect::DeliversTwice) {
            actor.mailbox.push_back(Message::Deliver(records.clone()));
        }
        actor.mailbox.push_back(Message::Deliver(records));
        Ok(())
    }

    fn keep(&mut self, snapshot: Snapshot, own_through: Sequence) -> Result<(), String> {
        let (ledger, position) = (snapshot.ledger, snapshot.position);
        if self.chance.percent(20) {
            self.note(|_| format!("  dropped {ledger:?} at {position:?}"));
            self.coverage.saw("snapshot dropped");
            return Ok(());
        }
        self.note(|_| format!("  stored {ledger:?} at {position:?}"));
        for (sequence, record) in self.audit.records_of(ledger) {
            let is_own = record.owner == ledger;
            let is_cut_right = (record.ordinal <= position.own) == (sequence <= own_through);
            ensure(!is_own || is_cut_right, || format!("Record {} is on the wrong side of the snapshot", sequence.0))?;
        }
        snapshots::write(&self.store.part(), &snapshot, own_through).map_err(|error| error.to_string())?;
        let stored = snapshots::load(&self.store.part(), ledger).map_err(|error| error.to_string())?;
        let stored = stored.ok_or_else(|| format!("the snapshot of {ledger:?} at {position:?} cannot be read"))?;
        ensure(stored.position == position, || {
            format!("{ledger:?} is stored at {:?}, not {position:?}", stored.position)
        })?;
        self.audit.check_snapshot(ledger, &stored)?;
        if snapshot.since.is_some() {
            self.coverage.saw("snapshot that continues another");
        }
        self.snapshots.push((ledger, stored));
        Ok(())
    }

    /// A reply leaves the engine.
    fn release(&mut self, answer: Answer, callers: &mut Callers) -> Result<(), String> {
        self.note(|_| format!("  released {:?}", answer.reply));
        if let Reply::Outcome(Outcome::Recorded(record)) = &answer.reply {
            self.check_delivered(record)?;
        }
        let floor = callers.floor(answer.number);
        self.audit.hear(&answer, floor)?;
        callers.hear(answer, self)
    }

    /// A request reaches its actor's mailbox; an actor that sleeps is opened for it.
    fn arrive(&mut self) {
        let request = self.transit.swap_remove(self.chance.below(self.transit.len()));
        let ledger = request.ledger;
        let inbox = self.directory.get(&ledger).copied().unwrap_or_else(|| self.open(ledger));
        let Some(actor) = self.actors.get_mut(&inbox) else { return };
        if actor.takes_messages() {
            actor.mailbox.push_back(Message::Request(Box::new(request)));
        } else {
            self.coverage.saw("request waited for a sleeper to end");
            self.waiting.entry(ledger).or_default().push(request);
        }
    }

    fn open(&mut self, ledger: LedgerId) -> Inbox {
        self.inbox_last += 1;
        let inbox = Inbox(self.inbox_last);
        self.note(|_| format!("  open {ledger:?} as {inbox:?}"));
        if self.handed_out.is_some() {
            self.coverage.saw("opened behind a block in flight");
        }
        self.actors.insert(inbox, Actor::opening(ledger));
        self.directory.insert(ledger, inbox);
        self.drive(Some(Input::Open { ledger, inbox }));
        inbox
    }

    /// The loader reads a snapshot, or an older one, or none, and the tail.
    fn load(&mut self) -> Result<(), String> {
        let Some(inbox) = self.any(|actor| matches!(actor.stage, Stage::Loading(_))) else { return Ok(()) };
        let Some(ledger) = self.actors.get(&inbox).map(|actor| actor.ledger) else { return Ok(()) };
        let newest = snapshots::load(&self.store.part(), ledger).map_err(|error| error.to_string())?;
        let chosen = self.choose_snapshot(ledger, newest.as_ref());
        let Some(actor) = self.actors.get_mut(&inbox) else { return Ok(()) };
        let Stage::Loading(through) = actor.stage else { return Ok(()) };
        let mut core = Core::new(ledger, Arc::clone(&actor.durable));
        if let Some(snapshot) = &chosen {
            let mut snapshot = snapshot.clone();
            let position = &mut snapshot.position;
            ensure(position.own <= self.audit.ordinal(ledger), || "a snapshot outran its Records".into())?;
            ensure(self.defect.is_some() || position.foreign <= through.0, || "a snapshot outran its open".into())?;
            if self.defect == Some(Defect::AppliesOwnTwice) {
                position.own = position.own.saturating_sub(1);
            }
            ensure(core.restore(&snapshot), || "a snapshot cannot be read".into())?;
        }
        let tail: Vec<_> = self.audit.records_of(ledger).filter(|(sequence, _)| *sequence <= through).collect();
        let short = usize::from(self.defect == Some(Defect::LoadsOneShort));
        for (sequence, record) in &tail[..tail.len().saturating_sub(short)] {
            core.replay(*sequence, record);
        }
        core.opened(through);
        let own_last =
            tail.iter().filter(|(_, record)| record.owner == ledger).map(|(_, record)| record.ordinal).next_back();
        ensure(core.own() == own_last.unwrap_or_default() && core.foreign() >= through.0, || {
            format!(
                "opened: {ledger:?} at {}, {}, but it was to load through {}",
                core.own(),
                core.foreign(),
                through.0
            )
        })?;
        self.coverage.saw(match &chosen {
            None => "opened from nothing",
            Some(_) if chosen != newest => "opened from an older snapshot",
            Some(_) => "opened from a snapshot that is behind the journal",
        });
        self.audit.check_state(&core, ledger, "opened")?;
        actor.core = core;
        actor.stage = Stage::Awake;
        Ok(())
    }

    /// Mostly the stored snapshot; sometimes an earlier one, or none.
    fn choose_snapshot(&mut self, ledger: LedgerId, newest: Option<&StoredSnapshot>) -> Option<StoredSnapshot> {
        let newest = newest?;
        let is_older = |snapshot: &StoredSnapshot| {
            snapshot.position.own + snapshot.position.foreign < newest.position.own + newest.position.foreign
        };
        let of_ledger = self.snapshots.iter().filter(|(of, snapshot)| *of == ledger && is_older(snapshot));
        let older: Vec<_> = of_ledger.map(|(_, snapshot)| snapshot.clone()).collect();
        match self.chance.below(10) {
            0 => None,
            1 | 2 if !older.is_empty() => Some(older[self.chance.below(older.len())].clone()),
            _ => Some(newest.clone()),
        }
    }

    /// An actor takes the next message, or, when it is being put to sleep and nothing is left, says
    /// its last words.
    fn handle(&mut self) -> Result<(), String> {
        let Some(inbox) = self.any(Actor::can_handle) else { return Ok(()) };
        let Some(mut actor) = self.actors.remove(&inbox) else { return Ok(()) };
        match actor.mailbox.pop_front() {
            Some(Message::Deliver(records)) => actor.core.deliver(&records),
            Some(Message::Request(request)) => self.answer(&mut actor, *request)?,
            None => {
                let ledger = actor.ledger;
                if self.chance.percent(80) {
                    let snapshot = self.snapshot_of(&mut actor);
                    actor.outgoing.push_back(Outgoing::Journal(Input::Keep(Box::new(snapshot))));
                }
                actor.outgoing.push_back(Outgoing::Journal(Input::Close { ledger }));
                actor.stage = Stage::Leaving;
            }
        }
        let is_in_store = actor.core.own() <= self.audit.ordinal(actor.ledger);
        if is_in_store && self.chance.percent(15) {
            self.audit.check_state(&actor.core, actor.ledger, "alive")?;
        }
        if actor.is_quiet() && self.outputs.is_empty() && self.handed_out.is_none() {
            self.audit.check_complete(&actor.core, actor.ledger)?;
        }
        self.actors.insert(inbox, actor);
        Ok(())
    }

    fn answer(&mut self, actor: &mut Actor, request: Request) -> Result<(), String> {
        let Request { number, ledger, ask, key, permit, was_full } = request;
        let mut effects = Effects::default();
        let reply = match ask {
            Ask::Command(command) => {
                let was_due = actor.core.is_due(self.now);
                let requester = requester_of(&command, self.now);
                let order = Envelope { command, key, unique: [None; 2], requester, permit };
                let outcome = actor.core.command(order, self.now, &self.ids, &mut effects);
                let is_recorded = matches!(outcome, Outcome::Recorded(_));
                if effects.submissions.len() > usize::from(is_recorded) {
                    self.coverage.saw("matured before a decision");
                }
                let has_matured = effects.submissions.first().is_some_and(|first| is_maturity(&first.record));
                ensure(has_matured == was_due || matches!(outcome, Outcome::KeyTaken), || {
                    format!("{ledger:?} decided before it booked what was due")
                })?;
                Some(Reply::Outcome(outcome))
            }
            Ask::Read | Ask::Mature => {
                actor.core.mature(self.now, &permit, &mut effects);
                let is_due = actor.core.is_due(self.now);
                ensure(!is_due || was_full, || format!("{ledger:?} left money unmatured"))?;
                if is_due {
                    self.coverage.saw("read on a full disk that left what was due");
                }
                let is_read = matches!(ask, Ask::Read);
                if !effects.submissions.is_empty() {
                    self.coverage.saw(if is_read { "matured in a read" } else { "matured in the sweep" });
                }
                is_read.then(|| Reply::Standing(actor.core.standing()))
            }
        };
        ensure(!was_full || effects.submissions.is_empty(), || {
            format!("{ledger:?} wrote a Record for what came in while the disk was full")
        })?;
        let mut events = effects.submissions.iter().flat_map(|submission| &submission.record.events);
        if events.any(|event| matches!(event, Event::DeficitRecovered { .. })) {
            self.coverage.saw("deficit recovered");
        }
        if !effects.submissions.is_empty() {
            actor.outgoing.push_back(Outgoing::Journal(Input::Submit(effects.submissions)));
        }
        if let (Some(number), Some(reply)) = (number, reply) {
            let handed_on = actor.core.own();
            actor.outgoing.push_back(Outgoing::Reply(Answer { number, reply, ledger, handed_on, key }));
        }
        Ok(())
    }

    /// One thing that an actor said goes on its way.
    fn send(&mut self, callers: &mut Callers) -> Result<(), String> {
        let Some(inbox) = self.any(|actor| !actor.outgoing.is_empty()) else { return Ok(()) };
        let Some(actor) = self.actors.get_mut(&inbox) else { return Ok(()) };
        let Some(outgoing) = actor.outgoing.pop_front() else { return Ok(()) };
        let (ledger, is_settled) = (actor.ledger, actor.core.is_settled());
        let has_left = actor.stage == Stage::Leaving && actor.outgoing.is_empty();
        match outgoing {
            Outgoing::Journal(Input::Keep(snapshot)) if self.defect == Some(Defect::SnapshotsJumpTheQueue) => {
                let published = Sequence(self.read_model.through());
                self.keep(*snapshot, published)?;
            }
            Outgoing::Journal(input) => self.drive(Some(input)),
            Outgoing::Reply(answer) if is_settled || self.defect == Some(Defect::AnswersBeforeWritten) => {
                self.coverage.saw("answer left at once");
                self.release(answer, callers)?;
            }
            Outgoing::Reply(answer) => {
                self.coverage.saw("answer waited for the gate");
                self.drive(Some(Input::Answer(answer)));
            }
        }
        if has_left {
            self.end(inbox, ledger);
        }
        Ok(())
    }

    /// An actor has ended; what waited for that opens it again.
    fn end(&mut self, inbox: Inbox, ledger: LedgerId) {
        self.note(|_| format!("  {inbox:?} has ended"));
        self.actors.remove(&inbox);
        self.directory.remove(&ledger);
        let waiting = self.waiting.remove(&ledger).unwrap_or_default();
        if !waiting.is_empty() {
            let inbox = self.open(ledger);
            if let Some(actor) = self.actors.get_mut(&inbox) {
                actor.mailbox.extend(waiting.into_iter().map(Box::new).map(Message::Request));
            }
        }
    }

    fn sleep(&mut self) {
        let Some(inbox) = self.any(|actor| actor.stage == Stage::Awake) else { return };
        if let Some(actor) = self.actors.get_mut(&inbox) {
            actor.stage = Stage::Draining;
        }
        self.note(|_| format!("  {inbox:?} is being put to sleep"));
    }

    /// An actor keeps its state in mid-life.
    fn snapshot(&mut self) {
        let Some(inbox) = self.any(|actor| actor.stage == Stage::Awake && actor.outgoing.is_empty()) else { return };
        let Some(mut actor) = self.actors.remove(&inbox) else { return };
        if !actor.core.is_settled() {
            self.coverage.saw("snapshot behind Records in flight");
        }
        let snapshot = self.snapshot_of(&mut actor);
        actor.outgoing.push_back(Outgoing::Journal(Input::Keep(Box::new(snapshot))));
        self.actors.insert(inbox, actor);
    }

    fn snapshot_of(&self, actor: &mut Actor) -> Snapshot {
        let mut snapshot = actor.core.snapshot();
        if self.defect == Some(Defect::SnapshotClaimsForeign) {
            snapshot.position.foreign += 1;
        }
        snapshot
    }

    /// An actor panics: its state is lost, and its queued messages get no answer.
    fn panic(&mut self, callers: &mut Callers) {
        let Some(inbox) = self.any(|_| true) else { return };
        let Some(actor) = self.actors.remove(&inbox) else { return };
        self.note(|_| format!("  {inbox:?} of {:?} panics", actor.ledger));
        match actor.stage {
            Stage::Opening | Stage::Loading(_) => self.coverage.saw("panic of an actor that opens"),
            _ if !actor.outgoing.is_empty() => self.coverage.saw("panic of an actor that has spoken half"),
            _ => {}
        }
        let mut is_queued = false;
        for message in actor.mailbox {
            if let Message::Request(request) = message
                && let Some(number) = request.number
            {
                is_queued = true;
                callers.never_hear(number);
            }
        }
        for outgoing in actor.outgoing {
            if let Outgoing::Reply(answer) = outgoing {
                callers.never_hear(answer.number);
            }
        }
        if is_queued {
            self.coverage.saw("panic of an actor with requests queued");
        }
        let ledger = actor.ledger;
        self.end(inbox, ledger);
        if !self.directory.contains_key(&ledger) && self.chance.percent(50) {
            self.open(ledger);
        }
    }

    /// The sweep is to wake an owner and book what is due; it waits for room.
    fn sweep(&mut self) {
        let ledgers = self.audit.ledgers();
        let Some(ledger) = self.chance.pick(&ledgers) else { return };
        let room = Arc::clone(&self.admission);
        let room = Box::pin(async move { room.take(INSIDE_BYTES).await });
        let woken = Arc::new(WakeFlag(AtomicBool::new(true)));
        self.waiting_inside.push(Waiting { ledger, room, woken, has_waited: false });
    }

    /// A sender inside that was woken gets room, or waits on.
    fn wake(&mut self) {
        let woken: Vec<_> = (0..self.waiting_inside.len()).filter(|at| self.waiting_inside[*at].is_woken()).collect();
        let Some(at) = self.chance.pick(&woken) else { return };
        let waiting = &mut self.waiting_inside[at];
        waiting.woken.0.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&waiting.woken));
        let Poll::Ready(permit) = waiting.room.as_mut().poll(&mut Context::from_waker(&waker)) else {
            waiting.has_waited = true;
            self.coverage.saw(if self.is_full {
                "inside sender waited for space"
            } else {
                "inside sender waited for room"
            });
            return;
        };
        let Waiting { ledger, has_waited, .. } = self.waiting_inside.swap_remove(at);
        if has_waited {
            self.coverage.saw("inside sender went on");
        }
        let was_full = self.is_full;
        self.transit.push(Request { number: None, ledger, ask: Ask::Mature, key: None, permit, was_full });
    }

    /// Admission for Records that callers may still take, disregarding the disk.
    pub(crate) fn bytes_free_at_the_door(&self) -> i64 {
        let AdmissionLimits { bytes_max, reserved_percent, .. } = self.limits;
        bytes_max - bytes_max * reserved_percent / 100 - self.admission.bytes()
    }

    /// The disk runs short of space.
    fn fill(&mut self) {
        self.is_full = true;
        self.admission.set_closed(ClosedBy::Space, true);
        self.coverage.saw("disk full");
        if self.admission.commands() > 0 {
            self.coverage.saw("disk full with commands under way");
        }
    }

    /// There is space again.
    fn free(&mut self) {
        self.is_full = false;
        self.admission.set_closed(ClosedBy::Space, false);
        self.coverage.saw("space again");
        if self.defect == Some(Defect::ForgetsWhoWaits) {
            self.waiting_inside.iter().for_each(|waiting| waiting.woken.0.store(false, Ordering::Release));
        }
    }

    fn jump(&mut self) {
        let minutes = self.chance.pick(&[1, 60, 24 * 60, 15 * 24 * 60, 30 * 24 * 60]).unwrap_or(1);
        if minutes == 30 * 24 * 60 {
            self.coverage.saw("time jumped 30 days");
        }
        self.note(|_| format!("  by {minutes} minutes"));
        self.now = self.now.plus_ms(minutes * 60_000);
    }

    /// The process dies and starts again. What was handed to the disk is there, whole or not at
    /// all.
    fn crash(&mut self, callers: &mut Callers) -> Result<(), String> {
        let in_landing = self.outputs.iter().any(|output| !matches!(output, Output::Write(_)));
        if in_landing {
            self.coverage.saw("crash between the outputs of a landing");
        }
        let reached = [AppendStep::NextSegment, AppendStep::ClosingLine, AppendStep::Block, AppendStep::Block];
        match (self.handed_out.take(), self.chance.pick(&reached)) {
            (Some(block), Some(reached)) if self.chance.percent(80) => {
                let rolls = self.store.append_until(&block, reached).map_err(|error| error.to_string())?;
                match reached {
                    AppendStep::Block => {
                        self.coverage.saw("crash with a block in flight that survived");
                        self.audit.append(&block)?;
                    }
                    AppendStep::NextSegment if rolls => self.coverage.saw("crash when the next segment was made"),
                    AppendStep::ClosingLine if rolls => self.coverage.saw("crash when the closing line was written"),
                    AppendStep::NextSegment | AppendStep::ClosingLine => {
                        self.coverage.saw("crash with a block in flight that was lost");
                    }
                }
            }
            (Some(_), _) => self.coverage.saw("crash with a block in flight that was lost"),
            (None, _) => self.coverage.saw("crash with nothing in flight"),
        }
        self.restart(callers)
    }

    /// A new process finds what the power cut left.
    fn restart(&mut self, callers: &mut Callers) -> Result<(), String> {
        self.readers = None;
        let cut = self.cut_power();
        if self.chance.percent(40) {
            self.lose_a_part(cut)?;
        }
        self.store = self.store.after_power_cut(cut).map_err(|error| error.to_string())?;
        self.audit.reread(&self.store.part())?;
        if self.has_readers {
            let readers = Readers::open(&self.store, self.defect)?;
            readers.check(&self.audit)?;
            self.readers = Some(readers);
        }
        let head = self.store.part().head().map_err(|error| error.to_string())?;
        self.machine = Machine::new(Partition(0), head);
        self.submitted = head.next.0 - 1;
        self.outputs.clear();
        self.actors.clear();
        self.directory.clear();
        self.waiting.clear();
        self.transit.clear();
        self.waiting_inside.clear();
        ensure(self.admission.commands() == 0, || format!("{} permits outlive everything", self.admission.commands()))?;
        self.admission = Admission::new(self.limits);
        self.admission.set_closed(ClosedBy::Space, self.is_full);
        if self.is_full {
            self.coverage.saw("crash on a full disk");
        }
        self.read_model = ReadModel::default();
        for (sequence, record) in self.audit.records() {
            self.read_model.publish(sequence, record)?;
        }
        if callers.process_died() {
            self.coverage.saw("crash between an order and its answer");
        }
        Ok(())
    }

    /// The part of the lazy and unfinished writes that reached the disk. (Another test covers a
    /// snapshot of which only a part did.)
    fn cut_power(&mut self) -> PowerCut {
        let lazy = self.store.lazy_count();
        let lazy_kept = match self.chance.below(10) {
            0..4 => 0,
            4..8 => lazy,
            _ => self.chance.below(lazy + 1),
        };
        if lazy_kept < lazy {
            self.coverage.saw("snapshot lost in a crash");
        }
        if lazy_kept > 0 {
            self.coverage.saw("snapshot that survived a crash");
        }
        let anchor_fate = self.chance.below(100);
        let (anchor_is_torn, anchor_is_kept) = (anchor_fate < 30, anchor_fate >= 60);
        let files_undone = if self.chance.percent(50) { self.chance.below(8) } else { 0 };
        if self.has_readers {
            self.coverage.saw("readers opened after a crash");
            let is_part = 0 < lazy_kept && lazy_kept < lazy;
            if is_part {
                self.coverage.saw("readers opened with a part of what was being stored");
            }
            if files_undone > 0 && self.store.part().files().is_ok_and(|files| !files.is_empty()) {
                self.coverage.saw("readers opened with an index that was behind");
            }
        }
        let cut = PowerCut { lazy_kept, files_undone, anchor_is_kept, anchor_is_torn, cursors_are_kept: false };
        self.coverage.saw(match self.store.blocks_behind_anchor(Partition(0), cut) {
            0 => "crash with the anchor up to date",
            _ if anchor_is_torn => "crash while the anchor was written",
            1 => "crash with the anchor one block behind",
            _ => "crash with the anchor some blocks behind",
        });
        cut
    }

    /// Suppose that the disk also lost a part of the journal, or of derived data: the first is
    /// noticed, the second made anew.
    fn lose_a_part(&mut self, cut: PowerCut) -> Result<(), String> {
        let head = self.audit.head();
        let segments = self.store.segments(Partition(0));
        let behind = self.store.blocks_behind_anchor(Partition(0), cut);
        ensure(behind == 0 || !cut.anchor_is_kept, || format!("the anchor is {behind} blocks behind"))?;
        let at = if self.chance.percent(50) { segments - 1 } else { self.chance.below(segments) };
        let damage = match self.chance.below(8) {
            0..3 => Damage::LastBlocks(self.chance.between(1, 5) as usize),
            3..5 => Damage::Segment(at),
            5 => Damage::ClosingLine(at),
            6 => Damage::Anchor,
            _ => Damage::AnchorSlot(self.chance.below(3)),
        };
        let mut damages = vec![damage];
        damages.extend((self.defect == Some(Defect::KeepsNoAnchor)).then_some(Damage::Anchor));
        if self.defect == Some(Defect::ClosesWithoutLine) {
            damages.extend((0..segments).map(Damage::ClosingLine));
        }
        self.note(|_| format!("  lost: {damages:?}"));
        let opened = match self.store.after_damage(cut, &damages) {
            Ok(opened) => opened,
            Err(error) => {
                let is_right = matches!(error, StoreError::Damaged { .. });
                let of_journal = matches!(damage, Damage::LastBlocks(_) | Damage::Segment(_));
                ensure(is_right && of_journal, || format!("{damage:?} was reported as {error}"))?;
                self.coverage.saw(match damage {
                    Damage::Segment(at) if at + 1 == segments => "loss of the last segment noticed",
                    Damage::Segment(_) => "loss of a segment noticed",
                    _ => "loss of the last blocks noticed",
                });
                return Ok(());
            }
        };
        let found = opened.head(Partition(0)).map_err(|error| error.to_string())?;
        let lost = self.store.part().blocks(found.next).count();
        let may_lose = match damage {
            Damage::LastBlocks(_) => behind,
            // The first one, when nothing was anchored yet.
            Damage::Segment(_) if segments == 1 => behind,
            _ => 0,
        };
        ensure(lost <= may_lose, || format!("{damage:?}: a loss of {lost} blocks was not noticed"))?;
        ensure(lost > 0 || found == head, || format!("{damage:?}: the journal has another head"))?;
        if lost > 0 {
            self.coverage.saw("loss of blocks that were not anchored");
            return Ok(());
        }
        if matches!(damage, Damage::ClosingLine(_)) {
            self.audit.reread(&opened.part())?;
        }
        self.coverage.saw(match damage {
            Damage::LastBlocks(_) => "loss of blocks of a journal without any",
            Damage::Segment(_) => "loss of the empty next segment",
            Damage::ClosingLine(_) => "closing line made anew",
            Damage::Anchor => "anchor made anew",
            Damage::AnchorSlot(_) => "slot of the anchor lost",
        });
        if damage == Damage::Anchor && head.next > Sequence::FIRST {
            let shorter = opened.after_damage(PowerCut::default(), &[Damage::LastBlocks(1)]);
            ensure(shorter.is_err(), || "the anchor that was made anew is not at the end".into())?;
        }
        Ok(())
    }

    /// Checks a Record that somebody outside hears of. It stands in the mailbox of every awake
    /// actor that it credits, so that a read that is sent from here on finds it there.
    pub(crate) fn check_delivered(&self, record: &Record) -> Result<(), String> {
        let waits = self.outputs.iter().any(|output| match output {
            Output::Deliver { inbox, records } => {
                let is_awake = self.actors.get(inbox).is_some_and(Actor::takes_messages);
                let is_it = |other: &Record| other.owner == record.owner && other.ordinal == record.ordinal;
                is_awake && records.iter().any(|(_, other)| is_it(other))
            }
            _ => false,
        });
        ensure(!waits, || {
            format!("Record {} of {:?} is published before it is delivered", record.ordinal, record.owner)
        })
    }

    fn any(&mut self, fits: impl Fn(&Actor) -> bool) -> Option<Inbox> {
        let inboxes: Vec<_> = self.actors.iter().filter(|(_, actor)| fits(actor)).map(|(inbox, _)| *inbox).collect();
        self.chance.pick(&inboxes)
    }

    pub(crate) fn note(&self, what: impl FnOnce(&Self) -> String) {
        if self.trace {
            println!("{:>5} {}", self.coverage.steps, what(self));
        }
    }
}

/// The operator who asks for something, or the acquirer that says it.
fn requester_of(command: &MerchantCommand, now: Timestamp) -> Option<Requester> {
    use MerchantCommand as Command;
    match command {
        Command::Open { .. } | Command::ApproveRecipient { .. } | Command::RejectRecipient { .. } => {
            Some(Requester::Operator("operator".to_owned()))
        }
        Command::AuthorizeCard { .. } => Some(Requester::Rail(RailStamp::new("A1".to_owned(), now))),
        _ => None,
    }
}

/// True for the Record that books what fell due.
fn is_maturity(record: &Record) -> bool {
    matches!(record.events.first(), Some(Event::Matured { .. }))
}
