//! The seeded simulation of several partitions in one process: one shell steps the machines of all
//! of them and makes their blocks durable in one call, while other processes take partitions away,
//! and the process dies before, within and after a commit.
//!
//! Each Record says whose it is: its partition, the life of the process, its number there. So the
//! journals show afterwards whether a Record is in another partition's, twice, or missing.

use std::sync::Arc;

use actors::journal::{
    Admission, AdmissionLimits, COMMIT_BYTES_MAX, Input, Machine, Machines, Output, Sender, Submission,
};
use ledger::{Decision, Event, LedgerId, Timestamp};
use store::testkit::{MemoryStore, PowerCut};
use store::{AppendOutcome, Block, Part, Partition, Sequence, Store, Tenure};

use crate::audit::ensure;
use crate::chance::Chance;

/// A defect of the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// A block is appended under the tenure of another partition.
    AppendsUnderAnothersTenure,
    /// A machine goes on from the head of another partition, as if they shared one sequence.
    SharesOneSequence,
    /// The hashes of two blocks of a commit go to each other's machines.
    MixesHashes,
    /// A message is handed to another partition's machine.
    MixesMessages,
    /// A block that was refused counts as durable.
    AcknowledgesFenced,
    /// Every partition ends when one is taken.
    EndsAllWithOne,
    /// A commit that was interrupted between two blocks counts as durable.
    AcknowledgesHalf,
}

/// A reply behind this number of Records of its partition in this life.
#[derive(Clone, Copy, Debug)]
struct Reply {
    partition: usize,
    behind: u64,
}

struct World {
    chance: Chance,
    defect: Option<Defect>,
    store: MemoryStore,
    admission: Arc<Admission>,
    now: Timestamp,
    /// How often the process was started.
    life: u64,
    machines: Machines<Reply, ()>,
    books: Vec<Books>,
    /// Replies that were released, with the life in which they were.
    acknowledged: Vec<(u64, Reply)>,
    saw: Saw,
}

/// What the process and its auditor know of one partition.
struct Books {
    part: Part,
    /// Where its journal ended when the process took it, and when another one did.
    from: u64,
    taken_at: Option<u64>,
    submitted: u64,
    handed_out: u64,
    released: u64,
    requests: u64,
    /// The process knows it.
    has_ended: bool,
    /// Commits in a row that had no room for it although it had Records.
    passed_over: usize,
}

/// What a run came to see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saw {
    pub(crate) commits_of_several: u64,
    pub(crate) commits_that_were_full: u64,
    pub(crate) fenced_beside_durable: u64,
    pub(crate) interrupted: u64,
    pub(crate) lone_large_records: u64,
}

impl Saw {
    pub(crate) fn add(&mut self, other: Self) {
        self.commits_of_several += other.commits_of_several;
        self.commits_that_were_full += other.commits_that_were_full;
        self.fenced_beside_durable += other.fenced_beside_durable;
        self.interrupted += other.interrupted;
        self.lone_large_records += other.lone_large_records;
    }
}

/// Runs one seed to its end.
pub(crate) fn run(seed: u64, defect: Option<Defect>) -> Result<Saw, String> {
    let mut world = World::new(seed, defect)?;
    // Where commits are rare, more waits than one of them can hold.
    let commits = world.chance.pick(&[4, 20, 40]).unwrap_or_default();
    for _ in 0..world.chance.between(20, 120) {
        world.now = world.now.plus_ms(world.chance.between(-20, 40));
        match world.chance.below(100 + commits) {
            0..92 => world.submit(),
            92..95 => world.is_taken_from()?,
            95..98 => world.ask(),
            98..100 => world.restart()?,
            _ => world.commit()?,
        }
    }
    world.come_to_rest()?;
    world.check_journals()?;
    Ok(world.saw)
}

impl World {
    fn new(seed: u64, defect: Option<Defect>) -> Result<Self, String> {
        let mut chance = Chance::new(seed);
        let (store, count) = (MemoryStore::new(), chance.between(2, 5) as u16);
        let limits = AdmissionLimits { commands_max: 1 << 20, bytes_max: 1 << 40, ..AdmissionLimits::default() };
        let books = (0..count).map(|number| Books::taken(&store, Partition(number)));
        let mut world = Self {
            chance,
            defect,
            books: books.collect::<Result<_, _>>()?,
            store,
            admission: Admission::new(limits),
            now: Timestamp(1_790_000_000_000),
            life: 0,
            machines: Machines::new(0),
            acknowledged: Vec::new(),
            saw: Saw::default(),
        };
        world.start()?;
        Ok(world)
    }

    fn start(&mut self) -> Result<(), String> {
        let count = self.books.len();
        let machine = |place: usize| {
            let from = if self.defect == Some(Defect::SharesOneSequence) { (place + 1) % count } else { place };
            let head = self.books[from].part.head().map_err(|error| error.to_string())?;
            Ok::<_, String>(Machine::new(self.books[place].part.partition(), head))
        };
        let mut machines = Machines::new(count);
        for place in 0..count {
            machines.begin(place, machine(place)?);
        }
        self.machines = machines;
        Ok(())
    }

    /// A Record of some partition, and mostly a reply behind it.
    fn submit(&mut self) {
        let place = self.chance.below(self.books.len());
        let large = self.chance.percent(6);
        let length = if large { self.chance.between(100_000, 1_300_000) } else { self.chance.between(24, 2_000) };
        let books = &mut self.books[place];
        let mut bytes = vec![0; length as usize];
        for (at, number) in [place as u64, self.life, books.submitted].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&number.to_be_bytes());
        }
        books.submitted += 1;
        let moved = Decision::of(Event::ClockMoved { offset_ms: 0 });
        let record = Arc::new(moved.into_record(LedgerId::System, books.submitted, self.now));
        let permit = self.admission.try_take(Sender::Door, 0).expect("room");
        let to = match self.defect {
            Some(Defect::MixesMessages) if self.chance.percent(10) => (place + 1) % self.books.len(),
            _ => place,
        };
        self.machines.step(to, Input::Submit(vec![Submission { record, bytes, permit }]));
        if self.chance.percent(80) {
            self.answer(place);
        }
    }

    /// A reply that waits for what its partition has in flight, or for nothing.
    fn ask(&mut self) {
        let place = self.chance.below(self.books.len());
        self.answer(place);
    }

    fn answer(&mut self, place: usize) {
        let books = &mut self.books[place];
        books.requests += 1;
        self.machines.step(place, Input::Answer(Reply { partition: place, behind: books.submitted }));
    }

    /// One round of the journal's thread.
    fn commit(&mut self) -> Result<(), String> {
        self.machines.gather(self.now);
        let blocks = self.carry_out()?;
        self.check_room(&blocks)?;
        if self.chance.percent(4) {
            return self.die_within(&blocks);
        }
        let tenure = |place: usize| match self.defect {
            Some(Defect::AppendsUnderAnothersTenure) => self.books[(place + 1) % self.books.len()].part.tenure(),
            _ => self.books[place].part.tenure(),
        };
        let appended: Vec<(Tenure, &Block)> = blocks.iter().map(|(place, block)| (tenure(*place), block)).collect();
        let mut landed = self.store.append(&appended).map_err(|error| error.to_string())?;
        ensure(landed.len() == blocks.len(), || "an outcome is missing".into())?;
        if self.defect == Some(Defect::MixesHashes) && landed.len() > 1 {
            landed.swap(0, 1);
        }
        if landed.contains(&AppendOutcome::Fenced) && landed.iter().any(|one| *one != AppendOutcome::Fenced) {
            self.saw.fenced_beside_durable += 1;
        }
        for ((place, block), landed) in blocks.into_iter().zip(landed) {
            match landed {
                AppendOutcome::Durable(hash) => self.machines.written(place, hash),
                AppendOutcome::Fenced if self.defect == Some(Defect::AcknowledgesFenced) => {
                    self.machines.written(place, block.hash());
                }
                AppendOutcome::Fenced => {
                    let is_taken = self.books[place].taken_at.is_some();
                    ensure(is_taken, || format!("partition {place} is refused, and nobody took it"))?;
                    let with = if self.defect == Some(Defect::EndsAllWithOne) {
                        0..self.books.len()
                    } else {
                        place..place + 1
                    };
                    for place in with {
                        self.machines.end(place);
                    }
                    self.books[place].has_ended = true;
                }
                AppendOutcome::Unknown => return Err("this store always knows".into()),
            }
        }
        let more = self.carry_out()?;
        ensure(more.is_empty(), || "a block is handed out that nobody gathered".into())
    }

    /// Carries out what the machines want, and gives the blocks that they hand out.
    fn carry_out(&mut self) -> Result<Vec<(usize, Block)>, String> {
        let mut blocks = Vec::new();
        for place in 0..self.machines.places() {
            for output in self.machines.take(place) {
                match output {
                    Output::Write(block) => blocks.push((place, block)),
                    Output::Release(reply) => self.release(place, reply)?,
                    _ => {}
                }
            }
        }
        Ok(blocks)
    }

    fn release(&mut self, place: usize, reply: Reply) -> Result<(), String> {
        ensure(place == reply.partition, || "a reply comes out of another partition's machine".into())?;
        let durable = self.books[place].durable()?;
        let Reply { behind, .. } = reply;
        ensure(durable >= behind, || {
            format!("partition {place}: a reply behind {behind} Records is released, and {durable} are durable")
        })?;
        self.books[place].released += 1;
        self.acknowledged.push((self.life, reply));
        Ok(())
    }

    fn check_room(&mut self, blocks: &[(usize, Block)]) -> Result<(), String> {
        let records: Vec<usize> = blocks.iter().flat_map(|(_, block)| block.records.iter().map(Vec::len)).collect();
        let bytes: usize = records.iter().sum();
        ensure(bytes <= COMMIT_BYTES_MAX || records.len() == 1, || format!("a commit has {bytes} bytes"))?;
        self.saw.commits_of_several += u64::from(blocks.len() > 1);
        self.saw.lone_large_records += u64::from(bytes > COMMIT_BYTES_MAX);
        let count = self.books.len();
        for (place, books) in self.books.iter_mut().enumerate() {
            let block = blocks.iter().find(|(at, _)| *at == place);
            let has_waited = books.submitted > books.handed_out && !books.has_ended;
            books.handed_out += block.map_or(0, |(_, block)| block.records.len() as u64);
            books.passed_over = if block.is_none() && has_waited { books.passed_over + 1 } else { 0 };
            self.saw.commits_that_were_full += u64::from(books.passed_over > 0);
            ensure(books.passed_over < count || self.defect.is_some(), || format!("partition {place} has no turn"))?;
        }
        Ok(())
    }

    /// The process dies when some blocks of a commit are there and others are not.
    fn die_within(&mut self, blocks: &[(usize, Block)]) -> Result<(), String> {
        self.saw.interrupted += u64::from(!blocks.is_empty());
        for (place, block) in blocks.iter().take(self.chance.below(blocks.len() + 1)) {
            self.books[*place].part.append(block).map(drop).or_else(|error| {
                let is_taken = self.books[*place].taken_at.is_some();
                ensure(is_taken, || error.to_string())
            })?;
        }
        if self.defect == Some(Defect::AcknowledgesHalf) {
            blocks.iter().for_each(|(place, block)| self.machines.written(*place, block.hash()));
            self.carry_out()?;
        }
        self.restart()
    }

    /// Another process takes a partition, and books something in it.
    fn is_taken_from(&mut self) -> Result<(), String> {
        let place = self.chance.below(self.books.len());
        let other =
            Part::take(Arc::new(self.store.clone()), Partition(place as u16)).map_err(|error| error.to_string())?;
        let head = other.head().map_err(|error| error.to_string())?;
        self.books[place].taken_at.get_or_insert(head.next.0);
        let mut bytes = (place as u64).to_be_bytes().to_vec();
        bytes.extend(u64::MAX.to_be_bytes());
        bytes.extend(head.next.0.to_be_bytes());
        let (partition, first, previous) = (other.partition(), head.next, head.hash);
        let booked_at_ms = head.booked_at_ms.max(self.now.0);
        let block = Block { partition, first, booked_at_ms, previous, records: vec![bytes] };
        other.append(&block).map(drop).map_err(|error| error.to_string())
    }

    /// A new process takes all partitions; what was not durable is gone.
    fn restart(&mut self) -> Result<(), String> {
        self.store = self.store.after_power_cut(PowerCut::default()).map_err(|error| error.to_string())?;
        self.life += 1;
        let count = self.books.len() as u16;
        let taken = (0..count).map(|number| Books::taken(&self.store, Partition(number)));
        self.books = taken.collect::<Result<_, _>>()?;
        self.start()
    }

    /// Nothing new comes, until all that is under way has come to its end.
    fn come_to_rest(&mut self) -> Result<(), String> {
        let life = self.life;
        for _ in 0..10_000 {
            if self.machines.is_idle() {
                for (place, books) in self.books.iter().enumerate().filter(|(_, books)| !books.has_ended) {
                    let (requests, released) = (books.requests, books.released);
                    ensure(requests == released || self.life > life, || {
                        format!("partition {place}: {released} of {requests} replies were released")
                    })?;
                }
                return ensure(self.admission.commands() == 0, || "permits are lost".into());
            }
            self.commit()?;
        }
        Err("it does not come to rest".into())
    }

    /// Partition, life and number of the Records in the journal of a partition.
    fn records_of(&self, place: usize) -> Result<Vec<(u64, u64, u64)>, String> {
        let mut found = Vec::new();
        for block in self.store.blocks(Partition(place as u16), Sequence::FIRST) {
            for record in block.map_err(|error| error.to_string())?.records {
                let mut words =
                    record.chunks_exact(8).map(|word| u64::from_be_bytes(word.try_into().expect("8 bytes")));
                let mut next = || words.next().ok_or("a Record is too short");
                found.push((next()?, next()?, next()?));
            }
        }
        Ok(found)
    }

    fn check_journals(&self) -> Result<(), String> {
        for place in 0..self.books.len() {
            let records = self.records_of(place)?;
            for life in 0..=self.life {
                let own = records.iter().filter(|(_, of, _)| *of == life);
                let numbers: Vec<u64> = own.map(|(_, _, number)| *number).collect();
                let expected: Vec<u64> = (0..numbers.len() as u64).collect();
                ensure(numbers == expected, || format!("partition {place} has {numbers:?} of life {life}"))?;
                let promised = self.acknowledged.iter().filter(|(of, reply)| *of == life && reply.partition == place);
                let promised = promised.map(|(_, reply)| reply.behind).max().unwrap_or_default();
                let count = numbers.len() as u64;
                ensure(count >= promised, || {
                    format!("partition {place}: {promised} Records were acknowledged, {count} are there")
                })?;
            }
            let stray = records.iter().find(|(of, ..)| *of != place as u64);
            ensure(stray.is_none(), || format!("partition {place} has a Record of another one: {stray:?}"))?;
        }
        Ok(())
    }
}

fn next(part: &Part) -> Result<u64, String> {
    part.head().map(|head| head.next.0).map_err(|error| error.to_string())
}

impl Books {
    /// How many Records of this life are durable.
    fn durable(&self) -> Result<u64, String> {
        Ok(self.taken_at.map_or_else(|| next(&self.part), Ok)? - self.from)
    }

    fn taken(store: &MemoryStore, partition: Partition) -> Result<Self, String> {
        let part = Part::take(Arc::new(store.clone()), partition).map_err(|error| error.to_string())?;
        Ok(Self {
            from: next(&part)?,
            part,
            taken_at: None,
            submitted: 0,
            handed_out: 0,
            released: 0,
            requests: 0,
            has_ended: false,
            passed_over: 0,
        })
    }
}
