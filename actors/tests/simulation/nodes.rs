//! The seeded simulation of several nodes: the placement of each as it is in the product, and
//! around them a database in memory, whose answers come late or never, and processes that stand
//! still, die, start again, come and go.
//!
//! A message to the database, what it does there, and its answer are three moments, between which
//! anything may happen. A process that stands still does nothing with an answer until it goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use actors::cluster::{Move, Placement, weight};
use store::{Epoch, NodeSeen, Partition, PartitionSeen, Picture, Sequence};

use crate::audit::ensure;
use crate::chance::Chance;

/// A defect of the shell around a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Defect {
    /// Whatever did not beat between two looks is taken.
    TakesAtOnce,
    /// A node takes its own beat to move whether it does or not.
    SeesItselfBeat,
    /// A take does not say which beat stood still.
    TakesWithoutTheBeat,
    /// A process answers for two takeover times after a beat.
    AnswersTooLong,
    /// A take without an answer is forgotten.
    ForgetsLostTakes,
    /// A process that hands over does not say so.
    HidesLeaving,
    /// The beats of all processes seem to move.
    SeesTheDeadMove,
    /// A node is placed by the name of its process.
    PlacesProcesses,
    /// A node hands over all at once.
    HandsAllOver,
}

/// The takeover time, ms. Nodes beat and look five times as often.
const TAKEOVER: i64 = 10_000;
const PACE: i64 = TAKEOVER / 5;

/// How long it may take until all are at rest after the last trouble.
const REST: i64 = 30 * TAKEOVER;

/// One process, before and after its end.
struct Process {
    name: String,
    /// None for a process that is no node.
    address: Option<String>,
    /// How far its clock is ahead.
    offset: i64,
    placement: Placement,
    is_alive: bool,
    is_leaving: bool,
    /// It does nothing until then.
    stands_until: i64,
    /// When the last beat that succeeded was sent.
    sent: i64,
    /// What it serves, and what it knows that it serves no more.
    held: BTreeMap<Partition, u64>,
    given_up: BTreeMap<Partition, u64>,
    /// Partitions that it takes or hands over right now.
    busy: BTreeSet<Partition>,
    last_picture: Option<Picture>,
    /// The database: its beat, whether it is known to leave, and when the beat came.
    row: Option<(i64, bool)>,
    landed: i64,
    /// The last time at which something was wrong with it.
    troubled: i64,
}

impl Process {
    fn is_current(&self, now: i64, lasts: i64) -> bool {
        self.is_alive && now - self.sent < lasts
    }
}

#[derive(Clone, Copy, Default)]
struct Row {
    epoch: u64,
    owner: Option<usize>,
    /// The node that handed it over, until somebody takes it.
    given_up_by: Option<usize>,
}

enum Action {
    Beat,
    BeatLands {
        sent: i64,
    },
    EpochsAreRead {
        sent: i64,
    },
    BeatIsAnswered {
        sent: i64,
        epochs: Vec<u64>,
    },
    Look,
    LookReads,
    LookIsAnswered {
        picture: Picture,
    },
    TakeLands {
        partition: Partition,
        seen: u64,
        gone: Option<i64>,
    },
    TakeIsAnswered {
        partition: Partition,
        epoch: u64,
        is_taken: Option<bool>,
    },
    GivesUp {
        partition: Partition,
    },
    ReleaseLands {
        partition: Partition,
        epoch: u64,
    },
    Released {
        partition: Partition,
    },
    /// A process starts at this address and ends before its second beat, again and again.
    StartsInVain {
        address: String,
    },
}

struct World {
    chance: Chance,
    defect: Option<Defect>,
    now: i64,
    rows: Vec<Row>,
    processes: Vec<Process>,
    coming: BTreeMap<(i64, u64), (usize, Action)>,
    /// The database does not answer until then, or it writes nothing: no standby answers it.
    away_until: i64,
    reads_until: i64,
    /// Answers that get lost, percent.
    losses: usize,
    /// Whether [`What::StartsInVain`] goes on.
    has_starts_in_vain: bool,
    saw: Saw,
}

/// What a run came to see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saw {
    pub(crate) taken_from_gone: u64,
    pub(crate) handed_over: u64,
    pub(crate) refused_since_it_woke: u64,
    pub(crate) lost_takes: u64,
    pub(crate) superseded: u64,
    pub(crate) left: u64,
    pub(crate) alone_kept_all: u64,
    pub(crate) started_in_vain: u64,
}

impl Saw {
    pub(crate) fn add(&mut self, other: Self) {
        self.taken_from_gone += other.taken_from_gone;
        self.handed_over += other.handed_over;
        self.refused_since_it_woke += other.refused_since_it_woke;
        self.lost_takes += other.lost_takes;
        self.superseded += other.superseded;
        self.left += other.left;
        self.alone_kept_all += other.alone_kept_all;
        self.started_in_vain += other.started_in_vain;
    }
}

/// Runs one seed to its end.
pub(crate) fn run(seed: u64, defect: Option<Defect>) -> Result<Saw, String> {
    let mut world = World::new(seed, defect);
    for _ in 0..world.chance.between(3, 14) {
        world.trouble();
        let time = world.chance.between(0, 4 * TAKEOVER);
        world.run_for(time)?;
    }
    world.come_to_rest()?;
    for _ in 0..2 {
        world.change_one_thing()?;
    }
    Ok(world.saw)
}

impl World {
    fn new(seed: u64, defect: Option<Defect>) -> Self {
        let mut chance = Chance::new(seed);
        let count = chance.between(1, 16) as usize;
        let losses = chance.pick(&[0, 0, 3, 20]).unwrap_or_default();
        let mut world = Self {
            chance,
            defect,
            now: 0,
            rows: vec![Row::default(); count],
            processes: Vec::new(),
            coming: BTreeMap::new(),
            away_until: 0,
            reads_until: 0,
            losses,
            has_starts_in_vain: false,
            saw: Saw::default(),
        };
        if world.chance.percent(20) {
            // A process that has all partitions, as before there were nodes.
            let alone = world.start(None);
            for (number, row) in world.rows.iter_mut().enumerate() {
                *row = Row { epoch: 1, owner: Some(alone), given_up_by: None };
                world.processes[alone].held.insert(Partition(number as u16), 1);
            }
        }
        for _ in 0..world.chance.between(1, 3) {
            world.join();
        }
        if world.chance.percent(20) {
            world.has_starts_in_vain = true;
            world.soon(0, Action::StartsInVain { address: at(3) });
        }
        world
    }

    fn start(&mut self, address: Option<String>) -> usize {
        let name = format!("{:08x}", self.chance.next() as u32);
        let takeover = Duration::from_millis(TAKEOVER as u64);
        self.processes.push(Process {
            placement: Placement::new(name.clone(), takeover),
            name,
            address,
            offset: self.chance.between(0, 1 << 40),
            is_alive: true,
            is_leaving: false,
            stands_until: 0,
            sent: self.now,
            held: BTreeMap::new(),
            given_up: BTreeMap::new(),
            busy: BTreeSet::new(),
            last_picture: None,
            row: Some((1, false)),
            landed: self.now,
            troubled: self.now,
        });
        let process = self.processes.len() - 1;
        // The first beat made the row.
        self.after(PACE, process, Action::Beat);
        self.soon(process, Action::Look);
        process
    }

    /// A message on its way, or work of a process.
    fn soon(&mut self, process: usize, what: Action) {
        let delay = self.chance.between(1, TAKEOVER / 50);
        self.after(delay, process, what);
    }

    fn after(&mut self, delay: i64, process: usize, what: Action) {
        self.coming.insert((self.now + delay, self.chance.next()), (process, what));
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.processes.len()).filter(|process| self.processes[*process].is_alive).collect()
    }

    /// Starts a node at an address that nobody has.
    fn join(&mut self) -> Option<usize> {
        let is_used =
            |address: &str| self.processes.iter().any(|one| one.is_alive && one.address.as_deref() == Some(address));
        let unused: Vec<u8> = (0..4).filter(|number| !is_used(&at(*number))).collect();
        let number = self.chance.pick(&unused)?;
        Some(self.start(Some(at(number))))
    }

    fn trouble(&mut self) {
        let Some(process) = self.chance.pick(&self.alive()).or_else(|| self.join()) else { return };
        match self.chance.below(100) {
            0..40 => {
                // About as long as it takes until it is known to be gone.
                let pause = self.chance.between(1, 2 * TAKEOVER);
                let one = &mut self.processes[process];
                one.stands_until = self.now + pause;
                one.troubled = one.stands_until;
            }
            40..55 => self.processes[process].is_alive = false,
            55..70 => drop(self.join()),
            70..75 => {
                // Its row is there, and its second beat never comes.
                if let Some(process) = self.join() {
                    self.processes[process].is_alive = false;
                }
            }
            75..85 => self.processes[process].is_leaving = true,
            _ => {
                // Whoever can beat in the end does so before the next time.
                if self.now > self.away_until.max(self.reads_until) + 2 * TAKEOVER {
                    let until = self.now + self.chance.between(1, 2 * TAKEOVER);
                    if self.chance.percent(50) { self.away_until = until } else { self.reads_until = until }
                }
            }
        }
    }

    fn run_for(&mut self, time: i64) -> Result<(), String> {
        let end = self.now + time;
        while let Some(entry) = self.coming.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), (process, what)) = entry.remove_entry();
            self.now = self.now.max(at);
            self.happens(process, what)?;
            self.check()?;
        }
        self.now = end;
        Ok(())
    }

    fn happens(&mut self, process: usize, what: Action) -> Result<(), String> {
        let is_of_the_database = matches!(
            what,
            Action::BeatLands { .. }
                | Action::EpochsAreRead { .. }
                | Action::LookReads
                | Action::TakeLands { .. }
                | Action::ReleaseLands { .. }
        );
        if let Action::StartsInVain { address } = what {
            if !self.processes.iter().any(|one| one.is_alive && one.address.as_ref() == Some(&address)) {
                let started = self.start(Some(address.clone()));
                self.processes[started].is_alive = false;
                self.saw.started_in_vain += 1;
            }
            self.after(TAKEOVER / 2, process, Action::StartsInVain { address });
            return Ok(());
        }
        let one = &self.processes[process];
        if is_of_the_database {
            let is_read = matches!(what, Action::LookReads | Action::EpochsAreRead { .. });
            if self.now < self.away_until || !is_read && self.now < self.reads_until {
                self.is_not_done(process, what);
                return Ok(());
            }
            return self.happens_in_the_database(process, what);
        }
        if !one.is_alive {
            return Ok(());
        }
        if self.now < one.stands_until {
            let until = one.stands_until - self.now;
            self.after(until, process, what);
            return Ok(());
        }
        self.happens_in_a_process(process, what)
    }

    /// The database is away: an error comes at once, or a retry.
    fn is_not_done(&mut self, process: usize, what: Action) {
        match what {
            Action::TakeLands { partition, seen, .. } => {
                self.soon(process, Action::TakeIsAnswered { partition, epoch: seen + 1, is_taken: None });
            }
            Action::ReleaseLands { partition, .. } => self.soon(process, Action::Released { partition }),
            _ => {}
        }
    }

    fn happens_in_the_database(&mut self, process: usize, what: Action) -> Result<(), String> {
        match what {
            Action::BeatLands { sent } => {
                let one = &mut self.processes[process];
                let beat = one.row.map_or(0, |(beat, _)| beat);
                one.row = Some((beat + 1, one.is_leaving && self.defect != Some(Defect::HidesLeaving)));
                one.landed = self.now;
                self.soon(process, Action::EpochsAreRead { sent });
            }
            Action::EpochsAreRead { sent } => {
                let epochs = self.rows.iter().map(|row| row.epoch).collect();
                self.answer(process, Action::BeatIsAnswered { sent, epochs });
            }
            Action::LookReads => {
                let picture = self.picture(process);
                self.answer(process, Action::LookIsAnswered { picture });
            }
            Action::TakeLands { partition, seen, gone } => return self.take_lands(process, partition, seen, gone),
            Action::ReleaseLands { partition, epoch } => {
                let row = &mut self.rows[usize::from(partition.0)];
                if (row.epoch, row.owner) == (epoch, Some(process)) {
                    row.owner = None;
                }
                self.soon(process, Action::Released { partition });
            }
            _ => {}
        }
        Ok(())
    }

    /// An answer, which gets lost at times.
    fn answer(&mut self, process: usize, what: Action) {
        if !self.chance.percent(self.losses) {
            self.soon(process, what);
        }
    }

    fn take_lands(&mut self, process: usize, partition: Partition, seen: u64, gone: Option<i64>) -> Result<(), String> {
        let row = self.rows[usize::from(partition.0)];
        let owner = row.owner.filter(|owner| *owner != process);
        let beat = owner.and_then(|owner| self.processes[owner].row).map(|(beat, _)| beat);
        let has_moved = gone.is_some() && gone != beat;
        self.saw.refused_since_it_woke += u64::from(row.epoch == seen && has_moved);
        let is_taken = row.epoch == seen && !has_moved;
        if is_taken {
            if let Some(owner) = owner {
                let former = &self.processes[owner];
                let healthy = former.is_alive && self.now - former.troubled > 3 * TAKEOVER && self.losses == 0;
                ensure(!healthy, || format!("{} was taken from a process that lives", partition.0))?;
                self.saw.taken_from_gone += 1;
            }
            if row.given_up_by.is_some_and(|by| by != process) {
                self.saw.handed_over += 1;
            }
            self.rows[usize::from(partition.0)] = Row { epoch: seen + 1, owner: Some(process), given_up_by: None };
        }
        let is_lost = self.chance.percent(self.losses);
        self.saw.lost_takes += u64::from(is_lost && is_taken);
        let is_taken = Some(is_taken).filter(|_| !is_lost);
        self.soon(process, Action::TakeIsAnswered { partition, epoch: seen + 1, is_taken });
        Ok(())
    }

    /// The picture as `process` gets it.
    fn picture(&self, process: usize) -> Picture {
        let me = &self.processes[process];
        let nodes = self.processes.iter().filter_map(|one| {
            let (beat, is_leaving) = one.row?;
            let address = match self.defect {
                Some(Defect::PlacesProcesses) => one.address.as_ref().map(|_| one.name.clone()),
                _ => one.address.clone(),
            };
            let seems_to_move = match self.defect {
                Some(Defect::SeesTheDeadMove) => true,
                Some(Defect::SeesItselfBeat) => one.name == me.name,
                _ => false,
            };
            let beat = if seems_to_move { self.now } else { beat };
            Some(NodeSeen {
                process: one.name.clone(),
                address,
                beat,
                is_leaving,
                about: String::new(),
                silent_ms: self.now - one.landed,
                takeover_ms: TAKEOVER,
            })
        });
        let partitions = self.rows.iter().enumerate().map(|(number, row)| {
            let partition = Partition(number as u16);
            let is_given_up = row.owner == Some(process)
                && !me.busy.contains(&partition)
                && me.given_up.get(&partition).is_some_and(|up_to| row.epoch <= *up_to);
            let owner = row.owner.filter(|_| !is_given_up).map(|owner| self.processes[owner].name.clone());
            PartitionSeen { partition, epoch: Epoch(row.epoch), owner, next: Sequence::FIRST }
        });
        Picture { nodes: nodes.collect(), partitions: partitions.collect() }
    }

    fn happens_in_a_process(&mut self, process: usize, what: Action) -> Result<(), String> {
        match what {
            Action::Beat => {
                self.soon(process, Action::BeatLands { sent: self.now });
                self.after(PACE, process, Action::Beat);
            }
            Action::BeatIsAnswered { sent, epochs } => {
                let one = &mut self.processes[process];
                let is_ahead = |(partition, epoch): (&Partition, &u64)| epochs[usize::from(partition.0)] > *epoch;
                if one.held.iter().any(is_ahead) {
                    // The process ends, and is started again.
                    one.is_alive = false;
                    self.saw.superseded += 1;
                    let address = one.address.clone();
                    if address.is_some() {
                        self.start(address);
                    }
                } else {
                    one.sent = one.sent.max(sent);
                }
            }
            Action::Look => {
                self.soon(process, Action::LookReads);
                self.after(PACE, process, Action::Look);
            }
            Action::LookIsAnswered { picture } => return self.looked(process, picture),
            Action::TakeIsAnswered { partition, epoch, is_taken } => {
                let one = &mut self.processes[process];
                one.busy.remove(&partition);
                match is_taken {
                    Some(true) => {
                        one.held.insert(partition, epoch);
                        one.given_up.remove(&partition);
                    }
                    None if self.defect != Some(Defect::ForgetsLostTakes) => {
                        one.given_up.insert(partition, epoch);
                    }
                    _ => {}
                }
            }
            Action::GivesUp { partition } => {
                let one = &mut self.processes[process];
                if let Some(epoch) = one.held.remove(&partition) {
                    one.given_up.insert(partition, epoch);
                    self.soon(process, Action::ReleaseLands { partition, epoch });
                }
            }
            Action::Released { partition } => drop(self.processes[process].busy.remove(&partition)),
            _ => {}
        }
        Ok(())
    }

    fn looked(&mut self, process: usize, picture: Picture) -> Result<(), String> {
        let lasts = self.lasts();
        let one = &mut self.processes[process];
        if one.address.is_none() {
            return Ok(());
        }
        let is_current = one.is_current(self.now, lasts);
        let mut moves = one.placement.step(&picture, self.now + one.offset, is_current);
        let before = one.last_picture.replace(picture.clone());
        if self.defect == Some(Defect::TakesAtOnce) {
            moves.extend(before.iter().flat_map(|before| taken_at_once(&one.name, before, &picture)));
        }
        if self.defect == Some(Defect::HandsAllOver) && moves.iter().any(|one| matches!(one, Move::HandOver { .. })) {
            moves.extend(one.held.keys().map(|partition| Move::HandOver { partition: *partition }));
        }
        for one in moves {
            self.moves(process, one)?;
        }
        // What the database does not know yet.
        let one = &self.processes[process];
        let is_given_up = |(partition, up_to): (&Partition, &u64)| {
            let row = self.rows[usize::from(partition.0)];
            row.owner == Some(process) && row.epoch <= *up_to && !one.busy.contains(partition)
        };
        let given_up: Vec<_> = one.given_up.iter().filter(|one| is_given_up(*one)).map(|(one, _)| *one).collect();
        for partition in given_up {
            let epoch = self.rows[usize::from(partition.0)].epoch;
            self.soon(process, Action::ReleaseLands { partition, epoch });
        }
        self.end_if_empty(process);
        Ok(())
    }

    fn moves(&mut self, process: usize, what: Move) -> Result<(), String> {
        let lasts = self.lasts();
        let one = &mut self.processes[process];
        match what {
            Move::Take { partition, seen, gone } => {
                if one.held.contains_key(&partition) || !one.busy.insert(partition) {
                    return Ok(());
                }
                let gone = gone.filter(|_| self.defect != Some(Defect::TakesWithoutTheBeat));
                self.soon(process, Action::TakeLands { partition, seen: seen.0, gone });
            }
            Move::HandOver { partition } => {
                let is_current = one.is_current(self.now, lasts);
                if !one.held.contains_key(&partition) || !is_current || !one.busy.insert(partition) {
                    return Ok(());
                }
                let to = self.processes[process].placement.desired(partition).map(str::to_owned);
                let beats = |one: &Process| one.address == to && one.row.is_some_and(|(beat, _)| beat > 1);
                let is_known = self.processes.iter().any(beats) || self.defect == Some(Defect::PlacesProcesses);
                ensure(is_known, || format!("{} is handed to {to:?}, which never beat", partition.0))?;
                self.rows[usize::from(partition.0)].given_up_by = Some(process);
                let time = self.chance.between(1, TAKEOVER / 4);
                self.after(time, process, Action::GivesUp { partition });
            }
        }
        Ok(())
    }

    /// Ends a process that hands over when it has handed all over, or nobody is there to have it.
    fn end_if_empty(&mut self, process: usize) {
        let one = &mut self.processes[process];
        let is_wanted = |partition: &Partition| one.placement.desired(*partition).is_some();
        let is_known = one.row.is_some_and(|(_, is_leaving)| is_leaving);
        if !one.is_leaving || !is_known || !one.busy.is_empty() || one.held.keys().any(is_wanted) {
            return;
        }
        one.is_alive = false;
        for (partition, epoch) in std::mem::take(&mut one.held) {
            self.soon(process, Action::ReleaseLands { partition, epoch });
        }
        self.saw.left += 1;
    }

    /// How long a process answers after a beat.
    fn lasts(&self) -> i64 {
        if self.defect == Some(Defect::AnswersTooLong) { 2 * TAKEOVER } else { TAKEOVER * 9 / 10 }
    }

    fn check(&mut self) -> Result<(), String> {
        let (now, lasts) = (self.now, self.lasts());
        for number in 0..self.rows.len() {
            let partition = Partition(number as u16);
            let believes = |one: &&Process| one.held.contains_key(&partition) && one.is_current(now, lasts);
            let believers = self.processes.iter().filter(believes).count();
            ensure(believers <= 1, || format!("{believers} processes answer for partition {number}"))?;
        }
        for (process, one) in self.processes.iter().enumerate().filter(|(_, one)| one.is_alive) {
            let under_way = self.rows.iter().filter(|row| row.given_up_by == Some(process)).count();
            ensure(under_way <= 2, || format!("{} hands {under_way} partitions over at once", one.name))?;
        }
        Ok(())
    }

    /// The address that should have a partition.
    fn desired(&self, partition: Partition) -> Option<String> {
        let nodes = self.processes.iter().filter(|one| one.is_alive && !one.is_leaving);
        let addresses: BTreeSet<String> = nodes.filter_map(|one| one.address.clone()).collect();
        let room = self.rows.len().div_ceil(addresses.len().max(1));
        let mut has: BTreeMap<String, usize> = BTreeMap::new();
        let mut desired = None;
        for number in 0..=partition.0 {
            let mut by_weight: Vec<_> = addresses.iter().collect();
            by_weight.sort_by_key(|address| std::cmp::Reverse(weight(address, Partition(number))));
            desired =
                by_weight.into_iter().find(|address| has.get(*address).copied().unwrap_or_default() < room).cloned();
            *has.entry(desired.clone()?).or_default() += 1;
        }
        desired
    }

    /// What is wrong with a partition once nothing happens any more.
    fn unrest(&self) -> Option<String> {
        if let Some(one) = self.processes.iter().find(|one| one.is_alive && one.is_leaving && one.address.is_some()) {
            return Some(format!("{} does not leave", one.name));
        }
        let wrong = self.rows.iter().enumerate().find_map(|(number, row)| {
            let partition = Partition(number as u16);
            let owner = &self.processes[row.owner?];
            let is_served = owner.is_alive && owner.held.get(&partition) == Some(&row.epoch);
            let is_placed = owner.address.is_none() || owner.address == self.desired(partition);
            (!is_served || !is_placed).then(|| format!("partition {number} is not served by its node"))
        });
        let free = self.rows.iter().position(|row| row.owner.is_none());
        wrong.or_else(|| free.map(|number| format!("partition {number} has no owner")))
    }

    /// Lets all troubles end, and waits until every partition is where it should be.
    fn come_to_rest(&mut self) -> Result<(), String> {
        self.losses = 0;
        self.run_for(3 * TAKEOVER)?;
        let has_node =
            |world: &Self| world.processes.iter().any(|one| one.is_alive && !one.is_leaving && one.address.is_some());
        if !has_node(self) {
            // Those that leave give their addresses back.
            self.run_for(REST)?;
            self.join();
        }
        let begun = self.now;
        while let Some(unrest) = self.unrest() {
            ensure(self.now - begun < REST, || format!("after {REST} ms {unrest}"))?;
            self.run_for(PACE)?;
        }
        let before: Vec<u64> = self.rows.iter().map(|row| row.epoch).collect();
        self.run_for(5 * TAKEOVER)?;
        let after: Vec<u64> = self.rows.iter().map(|row| row.epoch).collect();
        ensure(before == after, || "partitions move though no node changed".to_owned())?;
        let all_serve =
            self.rows.iter().all(|row| row.owner.is_some_and(|owner| self.processes[owner].address.is_none()));
        self.saw.alone_kept_all += u64::from(all_serve);
        Ok(())
    }

    /// One node comes, goes, leaves, or starts again: what need not move does not, and what must
    /// moves once. Where processes start in vain, their address is awaited at times, and nodes may
    /// place a partition otherwise in between.
    fn change_one_thing(&mut self) -> Result<(), String> {
        let owners = |world: &Self| -> Vec<(u64, usize, Option<String>)> {
            let owner = |row: &Row| row.owner.unwrap_or_default();
            world.rows.iter().map(|row| (row.epoch, owner(row), world.processes[owner(row)].address.clone())).collect()
        };
        let before = owners(self);
        let nodes = self.alive().into_iter().filter(|process| self.processes[*process].address.is_some());
        let process = self.chance.pick(&nodes.collect::<Vec<_>>()).unwrap_or_default();
        match self.chance.below(4) {
            0 => drop(self.join()),
            1 => {
                self.processes[process].is_alive = false;
                self.start(self.processes[process].address.clone());
            }
            2 if self.alive().len() > 1 => self.processes[process].is_leaving = true,
            _ if self.alive().len() > 1 => self.processes[process].is_alive = false,
            _ => {}
        }
        self.come_to_rest()?;
        for (number, (before, after)) in before.into_iter().zip(owners(self)).enumerate() {
            let was_there = self.processes[before.1].is_alive;
            let moves = if was_there && before.2 == after.2 { 0 } else { 1 };
            let times = after.0 - before.0;
            ensure(times == moves || self.has_starts_in_vain && times <= 4, || {
                format!("partition {number} was taken {times} times, not {moves}")
            })?;
        }
        Ok(())
    }
}

fn at(number: u8) -> String {
    format!("10.0.0.{number}:8081")
}

/// Takes of whatever is another's and did not beat between two pictures.
fn taken_at_once(me: &str, before: &Picture, after: &Picture) -> Vec<Move> {
    let beat =
        |picture: &Picture, owner: &str| picture.nodes.iter().find(|node| node.process == *owner).map(|node| node.beat);
    let takes = after.partitions.iter().filter_map(|seen| {
        let owner = seen.owner.as_deref().filter(|owner| *owner != me)?;
        let gone = beat(after, owner).filter(|now| beat(before, owner) == Some(*now))?;
        Some(Move::Take { partition: seen.partition, seen: seen.epoch, gone: Some(gone) })
    });
    takes.collect()
}
