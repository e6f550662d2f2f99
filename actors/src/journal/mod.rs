//! The journal: what orders Records, makes them durable, and lets nobody hear of them before.

mod machine;
mod room;

pub use machine::{BLOCK_BYTES_MAX, Input, Machine, Output, Snapshot, Submission};
pub use room::{Permit, Room, RoomLimits, Sender};
