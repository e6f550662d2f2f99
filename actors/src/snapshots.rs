//! Snapshots: an actor's state at two positions, so that opening it reads only the journal's tail. They are derived: one that is
//! lost, damaged or of another release is built again from the journal.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use ledger::id::{GroupNumber, LedgerId, RecipientNumber};
use minicbor::{Decode, Encode};

use crate::store::{Sequence, Store, StoreError};

/// How many snapshots may wait to be written; further ones are dropped, which costs only a longer tail.
const WAITING_MAX: usize = 256;

/// The version of the states' encoding. A snapshot of another version is not used.
const VERSION: u16 = 1;

#[derive(Encode, Decode)]
struct Stored {
    #[n(0)]
    version: u16,
    #[n(1)]
    own: u64,
    #[n(2)]
    own_through: u64,
    #[n(3)]
    foreign: u64,
    #[cbor(n(4), with = "minicbor::bytes")]
    state: Vec<u8>,
}

/// An actor's state at two positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Whose state.
    pub ledger: LedgerId,
    /// Ordinal of the last own Record in it.
    pub own: u64,
    /// Sequence through which foreign Records are in it.
    pub foreign: u64,
    /// The encoded state.
    pub state: Vec<u8>,
}

/// A snapshot as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The state.
    pub snapshot: Snapshot,
    /// Its owner's Records through this sequence are in it, and none after it.
    pub own_through: Sequence,
}

/// Reads an actor's snapshot.
pub fn load(store: &dyn Store, ledger: LedgerId) -> Result<Option<Kept>, StoreError> {
    let Some(bytes) = store.state(&key(ledger))? else { return Ok(None) };
    let stored: Option<Stored> = minicbor::decode(&bytes).ok().filter(|stored: &Stored| stored.version == VERSION);
    Ok(stored.map(|stored| Kept {
        snapshot: Snapshot { ledger, own: stored.own, foreign: stored.foreign, state: stored.state },
        own_through: Sequence(stored.own_through),
    }))
}

/// The ledgers that have a snapshot.
pub fn ledgers(store: &dyn Store) -> Result<Vec<LedgerId>, StoreError> {
    Ok(store.state_keys(PREFIX)?.iter().filter_map(|key| ledger_of(key)).collect())
}

/// The thread that writes snapshots, so that the journal never waits for one.
pub struct Writer {
    sender: SyncSender<(Snapshot, Sequence)>,
}

impl Writer {
    /// Starts the thread; it ends when the writer is dropped.
    pub fn start(store: Arc<dyn Store>) -> Self {
        let (sender, receiver) = sync_channel::<(Snapshot, Sequence)>(WAITING_MAX);
        let run = move || {
            for (snapshot, own_through) in receiver {
                if let Err(error) = write(&*store, snapshot, own_through) {
                    tracing::warn!(%error, "a snapshot was not written; opening its actor reads more of the journal");
                }
            }
        };
        thread::Builder::new().name("snapshots".to_owned()).spawn(run).expect("a thread can be started");
        Self { sender }
    }

    /// Queues a snapshot.
    pub fn keep(&self, snapshot: Snapshot, own_through: Sequence) {
        let _dropped_when_many_wait = self.sender.try_send((snapshot, own_through));
    }
}

/// Writes a snapshot. Its owner's Records through `own_through` are in it, and none after it.
pub(crate) fn write(store: &dyn Store, snapshot: Snapshot, own_through: Sequence) -> Result<(), StoreError> {
    let stored = Stored {
        version: VERSION,
        own: snapshot.own,
        own_through: own_through.0,
        foreign: snapshot.foreign,
        state: snapshot.state,
    };
    let bytes = minicbor::to_vec(&stored).expect("writing into memory cannot fail");
    store.put_state_lazily(&key(snapshot.ledger), &bytes)
}

const PREFIX: &[u8] = b"snapshot/";

fn key(ledger: LedgerId) -> Vec<u8> {
    let (group, number) = match ledger {
        LedgerId::Merchant(group) | LedgerId::Platform(group) => (group.0, 0),
        LedgerId::Recipient(group, number) => (group.0, number.0),
        LedgerId::System => (0, 0),
    };
    let mut key = PREFIX.to_vec();
    key.extend_from_slice(&group.to_be_bytes());
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn ledger_of(key: &[u8]) -> Option<LedgerId> {
    let (group, number) = key.strip_prefix(PREFIX)?.split_at_checked(4)?;
    let group = GroupNumber(u32::from_be_bytes(group.try_into().ok()?));
    Some(match u32::from_be_bytes(number.try_into().ok()?) {
        0 => LedgerId::Merchant(group),
        number => LedgerId::Recipient(group, RecipientNumber(number)),
    })
}
