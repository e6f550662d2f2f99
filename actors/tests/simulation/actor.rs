//! Actor of the simulation: the real synchronous core, and in place of the ractor shell a mailbox,
//! the stages of opening and sleeping, and messages that were made but not sent yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use actors::journal::{Input, Permit};
use actors::resident::{Effects, Envelope, KeyLookup, Outcome, Resident};
use derived::snapshots::{Snapshot, StoredSnapshot};
use ledger::{IdKey, LedgerId, MerchantCommand, MerchantState, RecipientState, Record, Timestamp};
use store::Sequence;

/// One life of an actor: a ledger gets a new number whenever it is opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inbox(pub(crate) u64);

/// A client's or the sweep's message on its way to an actor.
#[derive(Debug)]
pub(crate) struct Request {
    /// Who asked; none for the sweep, which hears no answer.
    pub(crate) number: Option<u64>,
    pub(crate) ledger: LedgerId,
    pub(crate) ask: Ask,
    pub(crate) key: Option<KeyLookup>,
    pub(crate) permit: Arc<Permit>,
    /// True when it came in while the disk was full.
    pub(crate) was_full: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Command(MerchantCommand),
    Read,
    Mature,
}

/// Result of a balance read, and the two positions at which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) pending: i128,
    pub(crate) available: i128,
    pub(crate) deficit: i128,
    pub(crate) own: u64,
    pub(crate) foreign: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Outcome(Outcome),
    Standing(Standing),
}

/// A reply on its way out, and what must be durable before anybody may hear it.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) number: u64,
    pub(crate) reply: Reply,
    pub(crate) ledger: LedgerId,
    /// Ordinal of the last Record that the actor had handed on when it decided.
    pub(crate) handed_on: u64,
    pub(crate) key: Option<KeyLookup>,
}

/// What stands in a mailbox: one queue, in the order in which it was put there.
#[derive(Debug)]
pub(crate) enum Message {
    Deliver(Vec<(Sequence, Arc<Record>)>),
    Request(Box<Request>),
}

/// What a handler said, on its way to the journal; the next message waits until all of it is sent.
pub(crate) enum Outgoing {
    Journal(Input<Answer, Inbox>),
    /// Leaves at once when everything is settled by then, else through the journal.
    Reply(Answer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its `Open` is on its way through the journal.
    Opening,
    /// The journal has answered; snapshot and tail are being read.
    Loading(Sequence),
    /// It takes messages.
    Awake,
    /// It is being put to sleep: what is queued is still handled, nothing more comes in.
    Draining,
    /// Its last words are on their way.
    Leaving,
}

pub(crate) struct Actor {
    pub(crate) ledger: LedgerId,
    pub(crate) stage: Stage,
    pub(crate) core: Core,
    pub(crate) mailbox: VecDeque<Message>,
    pub(crate) outgoing: VecDeque<Outgoing>,
    pub(crate) durable: Arc<AtomicU64>,
}

impl Actor {
    pub(crate) fn opening(ledger: LedgerId) -> Self {
        let durable = Arc::new(AtomicU64::new(0));
        let core = Core::new(ledger, Arc::clone(&durable));
        Self { ledger, stage: Stage::Opening, core, mailbox: VecDeque::new(), outgoing: VecDeque::new(), durable }
    }

    pub(crate) fn takes_messages(&self) -> bool {
        matches!(self.stage, Stage::Opening | Stage::Loading(_) | Stage::Awake)
    }

    pub(crate) fn can_handle(&self) -> bool {
        let has_work = match self.stage {
            Stage::Awake => !self.mailbox.is_empty(),
            Stage::Draining => true,
            Stage::Opening | Stage::Loading(_) | Stage::Leaving => false,
        };
        has_work && self.outgoing.is_empty()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.stage == Stage::Awake && self.mailbox.is_empty() && self.outgoing.is_empty()
    }
}

/// The real core, of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Core {
    Merchant(Box<Resident<MerchantState>>),
    Recipient(Box<Resident<RecipientState>>),
}

impl Core {
    pub(crate) fn new(ledger: LedgerId, durable: Arc<AtomicU64>) -> Self {
        let group = ledger.group().expect("only merchants and recipients have actors");
        match ledger {
            LedgerId::Recipient(..) => Self::Recipient(Box::new(Resident::new(ledger, group, durable))),
            _ => Self::Merchant(Box::new(Resident::new(ledger, group, durable))),
        }
    }

    pub(crate) fn restore(&mut self, snapshot: &StoredSnapshot) -> bool {
        match self {
            Self::Merchant(resident) => resident.restore(snapshot),
            Self::Recipient(resident) => resident.restore(snapshot),
        }
    }

    pub(crate) fn replay(&mut self, sequence: Sequence, record: &Record) {
        match self {
            Self::Merchant(resident) => resident.replay(sequence, record),
            Self::Recipient(resident) => resident.replay(sequence, record),
        }
    }

    pub(crate) fn opened(&mut self, through: Sequence) {
        match self {
            Self::Merchant(resident) => resident.opened(through),
            Self::Recipient(resident) => resident.opened(through),
        }
    }

    pub(crate) fn deliver(&mut self, records: &[(Sequence, Arc<Record>)]) {
        match self {
            Self::Merchant(resident) => resident.deliver(records),
            Self::Recipient(resident) => resident.deliver(records),
        }
    }

    pub(crate) fn command(
        &mut self,
        envelope: Envelope<MerchantCommand>,
        now: Timestamp,
        ids: &IdKey,
        effects: &mut Effects,
    ) -> Outcome {
        match self {
            Self::Merchant(resident) => resident.command(envelope, now, ids, effects),
            Self::Recipient(_) => unreachable!("a recipient has no commands in this release"),
        }
    }

    pub(crate) fn mature(&mut self, now: Timestamp, permit: &Arc<Permit>, effects: &mut Effects) {
        match self {
            Self::Merchant(resident) => resident.mature(now, permit, effects),
            Self::Recipient(resident) => resident.mature(now, permit, effects),
        }
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        match self {
            Self::Merchant(resident) => resident.books().mature(now, resident.foreign()).is_some(),
            Self::Recipient(resident) => resident.books().mature(now, resident.foreign()).is_some(),
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        match self {
            Self::Merchant(resident) => resident.is_settled(),
            Self::Recipient(resident) => resident.is_settled(),
        }
    }

    pub(crate) fn own(&self) -> u64 {
        match self {
            Self::Merchant(resident) => resident.own(),
            Self::Recipient(resident) => resident.own(),
        }
    }

    pub(crate) fn foreign(&self) -> u64 {
        match self {
            Self::Merchant(resident) => resident.foreign(),
            Self::Recipient(resident) => resident.foreign(),
        }
    }

    pub(crate) fn snapshot(&mut self) -> Snapshot {
        match self {
            Self::Merchant(resident) => resident.snapshot(),
            Self::Recipient(resident) => resident.snapshot(),
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        let (own, foreign) = (self.own(), self.foreign());
        let (pending, available, deficit) = match self {
            Self::Merchant(resident) => {
                let books = resident.books();
                (books.pending().0, books.available().0, books.deficit().0)
            }
            Self::Recipient(resident) => (resident.books().pending().0, resident.books().available().0, 0),
        };
        let (pending, available, deficit) = (i128::from(pending), i128::from(available), i128::from(deficit));
        Standing { pending, available, deficit, own, foreign }
    }

    pub(crate) fn has_the_books_of(&self, other: &Core) -> bool {
        match (self, other) {
            (Self::Merchant(a), Self::Merchant(b)) => a.books() == b.books(),
            (Self::Recipient(a), Self::Recipient(b)) => a.books() == b.books(),
            _ => false,
        }
    }
}
