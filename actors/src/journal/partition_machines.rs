//! Machines of all partitions of a process, stepped by one thread: the blocks of several partitions
//! become durable in one call of the store, and one bound holds for their bytes. Synchronous and
//! without I/O, like the machines themselves.
//!
//! - A partition has an order, a head and inboxes of its own. Nothing of one waits for another but
//!   the call that makes their blocks durable.
//! - The machines gather in turn: one that is always busy can fill a commit, but not the next one.
//! - A partition that another owner has taken ends by itself: its replies, opens and permits are
//!   dropped, so that no caller hears of what is not durable, and the others go on.

use ledger::time::Timestamp;

use super::machine::{Input, Machine, Output};
use store::BlockHash;

/// The machines of a process, each at the place of its partition's number. A place is empty while
/// this process does not have the partition.
pub struct Machines<A, I> {
    seats: Vec<Seat<A, I>>,
    /// The place that gathers first.
    turn: usize,
}

struct Seat<A, I> {
    /// None while another process has the partition, or nobody.
    machine: Option<Machine<A, I>>,
    outputs: Vec<Output<A, I>>,
}

impl<A, I: Clone> Machines<A, I> {
    /// So many places, all of them empty.
    pub fn new(places: usize) -> Self {
        let seats = (0..places).map(|_| Seat { machine: None, outputs: Vec::new() });
        Self { seats: seats.collect(), turn: 0 }
    }

    /// Puts a machine at a place. It continues the journal of its partition.
    pub fn begin(&mut self, place: usize, machine: Machine<A, I>) {
        self.seats[place] = Seat { machine: Some(machine), outputs: Vec::new() };
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.seats.len()
    }

    /// Takes one message for the machine at a place. An empty place drops it.
    pub fn step(&mut self, place: usize, input: Input<A, I>) {
        let Seat { machine, outputs } = &mut self.seats[place];
        if let Some(machine) = machine {
            machine.step(input, outputs);
        }
    }

    /// Has each machine hand out its next block, as many as one commit may hold. Every block that
    /// was handed out before must be durable, or its machine ended.
    pub fn gather(&mut self, now: Timestamp) {
        let mut taken = 0;
        let (before, from) = self.seats.split_at_mut(self.turn);
        for Seat { machine, outputs } in from.iter_mut().chain(before) {
            if let Some(machine) = machine {
                machine.gather_within(now, &mut taken, outputs);
            }
        }
        self.turn = (self.turn + 1) % self.seats.len().max(1);
    }

    /// The outputs of a place since they were taken last, for the shell to carry out in order.
    pub fn take(&mut self, place: usize) -> Vec<Output<A, I>> {
        std::mem::take(&mut self.seats[place].outputs)
    }

    /// The block that was handed out at a place is durable, and this is its hash.
    pub fn written(&mut self, place: usize, hash: BlockHash) {
        self.step(place, Input::Written(hash));
    }

    /// Ends the machine at a place: this process gave its partition up, or another one took it. All
    /// that waits there is dropped.
    pub fn end(&mut self, place: usize) {
        self.seats[place] = Seat { machine: None, outputs: Vec::new() };
    }

    /// True when nothing waits and nothing is being written at any place.
    pub fn is_idle(&self) -> bool {
        (0..self.seats.len()).all(|place| self.is_idle_at(place))
    }

    /// True when nothing waits and nothing is being written at a place.
    pub fn is_idle_at(&self, place: usize) -> bool {
        self.seats[place].machine.as_ref().is_none_or(Machine::is_idle)
    }

    /// True when there is nothing to carry out at any place.
    pub fn is_quiet(&self) -> bool {
        self.seats.iter().all(|seat| seat.outputs.is_empty())
    }

    /// True when there is no machine.
    pub fn have_ended(&self) -> bool {
        self.seats.iter().all(|seat| seat.machine.is_none())
    }
}
