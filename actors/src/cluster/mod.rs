//! Cluster: which of several nodes serves which partition.
//!
//! A node is a process that serves some partitions of one database. All nodes look at the same
//! picture (`store::Picture`) and come to the same placement without asking each other:
//!
//! - `placement.rs`: what a node takes and hands over after each look.
//! - `rendezvous.rs`: which node should have a partition.
//! - `namesakes.rs`: whether another process lives at the address of a node.
//!
//! **Architecture Invariant:** nothing here reads a clock, a database or a socket. That two nodes
//! never write one partition does not depend on this room: the store's epochs see to it.

mod namesakes;
mod placement;
mod rendezvous;

pub use self::namesakes::{Namesake, Namesakes};
pub use self::placement::{Move, PartitionOwner, Placement};
pub use self::rendezvous::weight;
