//! The ledger's laws, proved from outside: text tables of the rules (`cases/*.txt`), a page of
//! postings for every event (`postings.txt`), properties over sequences of commands, every
//! interleaving of a recipient's Records, and the golden files of each journal format
//! (`tests/golden`).
//!
//! `UPDATE_SNAPSHOTS=1` writes `postings.txt` anew, and golden files that do not exist yet; it
//! never changes a golden file.
#![allow(clippy::disallowed_methods, reason = "tests read their tables, and a variable says when to write them anew")]

mod adjustments;
mod cases;
mod credits;
mod golden;
mod interleavings;
mod objects;
mod postings;
mod properties;
mod recurrence;
mod shelf;
mod sources;
mod statement;
mod webhook_events;
mod world;
