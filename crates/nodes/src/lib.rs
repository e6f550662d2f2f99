//! Several processes on one store: a request is answered by the process that owns the partition of
//! its merchant, whichever process it came to.
//!
//! [`door`] stands before the routes of a listener. It finds the partition of a request
//! ([`request_partition`]) and its owner ([`Owners`]). Where that is another process, the whole
//! request is sent there ([`forward`]), to a listener that serves only the other processes
//! ([`listener`]), and its answer comes back. A request that was not carried out is tried again.
//! One that may have been carried out is never sent twice.
//!
//! [`node`] takes partitions and hands them over, the first time by [`takeover`]. What the work on
//! all merchants needs of another process are [`work_requests`].

pub mod door;
pub mod forward;
pub mod listener;
mod measures;
pub mod node;
pub mod partition_measures;
mod peer_greeting;
pub mod peer_token;
mod refusals;
pub mod request_partition;
mod settings;
pub mod takeover;
#[cfg(test)]
mod tests;
pub mod work_requests;

use std::pin::Pin;

use ledger::id::GroupNumber;
use store::Partition;

pub use measures::PeerMeasures;
pub use settings::{PeerSettings, PeerTlsFiles, host};

/// The process that owns a partition, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This process.
    Here,
    /// Another one, by the address of its peers' listener: a host and a port.
    At(String),
    /// None at this moment: the partition is between two owners.
    Nobody,
}

/// Right to answer for a partition, for the time of one request. The partition is not handed over
/// while it lives.
pub trait Hold: Send + Sync {
    /// Whether no other process can have taken the partition since.
    fn stands(&self) -> bool;
}

/// A hold, once it is there.
pub type HoldFuture<'a> = Pin<Box<dyn Future<Output = Option<Box<dyn Hold>>> + Send + 'a>>;

/// The owners of the partitions.
pub trait Owners: Send + Sync {
    /// All partitions, in their order.
    fn all(&self) -> Vec<Partition>;

    /// The partition of a group.
    fn partition_of(&self, group: GroupNumber) -> Partition;

    /// The partition of what is about all merchants: that of group 0.
    fn house(&self) -> Partition;

    /// The partition in which an account is opened that is asked for with this `Idempotency-Key`:
    /// the same one every time.
    fn partition_for_new(&self, key: Option<&str>) -> Partition;

    /// The owner of a partition.
    fn owner(&self, partition: Partition) -> Owner;

    /// Gets ready to answer what is about all merchants, for the owner of the house; `None` if it
    /// can't yet. The hold stands while nothing is missing.
    fn read_all(&self) -> HoldFuture<'_>;

    /// The partitions that this process neither owns nor reads, and that an answer about all
    /// merchants would lack.
    fn missing(&self) -> Vec<Partition>;

    /// A hold on a partition; `None` if this process does not own it, or hands it over.
    fn hold(&self, partition: Partition) -> Option<Box<dyn Hold>>;
}
