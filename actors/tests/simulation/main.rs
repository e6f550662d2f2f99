//! # The seeded simulation of the engine
//!
//! One thread, no clock, no disk: the journal's state machine and the actors' cores as they are in
//! the product, and around them a world in which a seed decides what happens next. Messages
//! overtake each other, callers lose answers and ask again, actors fall asleep, panic and are
//! opened again from old snapshots, and the process dies between any two things that the journal
//! does. The disk runs full and fails; its journal rolls from segment to segment, and loses parts
//! of it that must be noticed. An acquirer whose records outlive the process ([`acquirer`]) answers
//! late or not at all, is ordered again, closes, authorizes and captures. Every tenth seed runs the
//! product's read model too ([`readers`]).
//!
//! A smaller world has several partitions in one process ([`partitions`]), another one several
//! nodes that divide partitions ([`nodes`]).
//!
//! An auditor reads every block and every answer ([`audit`]); the callers keep books of their own
//! ([`model`]).
//!
//! `CENTAVO_SIM_SEEDS=n` runs n seeds, `CENTAVO_SIM_SEED=s` replays one and prints each step.

mod acquirer;
mod actor;
mod audit;
mod callers;
mod chance;
mod coverage;
mod model;
mod nodes;
mod partitions;
mod read_model;
mod readers;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use coverage::{Coverage, EXPECTED};
use world::{Defect, Failure};

const SEEDS: u64 = 3_000;

/// Number of threads that run seeds; each seed runs on one thread.
const THREADS: u64 = 2;

#[test]
fn every_seed_keeps_every_promise() {
    if let Some(seed) = number_from_environment("CENTAVO_SIM_SEED") {
        let coverage = replay(seed);
        println!("seed {seed}: {} steps, {} Records", coverage.steps, coverage.records);
        return;
    }
    let seeds = number_from_environment("CENTAVO_SIM_SEEDS").unwrap_or(SEEDS);
    let (started, next) = (Instant::now(), AtomicU64::new(0));
    let work = || -> Result<Coverage, Failure> {
        let mut total = Coverage::default();
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                seed if seed < seeds => {
                    total.add(&run(seed, None, false).inspect_err(|_| next.store(seeds, Ordering::Relaxed))?)
                }
                _ => return Ok(total),
            }
        }
    };
    let mut total = Coverage::default();
    thread::scope(|scope| {
        let threads = (0..THREADS).map(|_| scope.spawn(work)).collect::<Vec<_>>();
        for thread in threads {
            match thread.join().expect("a panic of a seed is its failure") {
                Ok(coverage) => total.add(&coverage),
                Err(failure) => panic!("{}", how_to_replay(&failure)),
            }
        }
    });
    let per_second = seeds as f64 / started.elapsed().as_secs_f64();
    println!("{seeds} seeds, {} steps, {} Records, {per_second:.0} seeds/s", total.steps, total.records);
    for what in EXPECTED {
        println!("{:>9}  {what}", total.count(what));
    }
    // A few seeds cannot see everything.
    if seeds >= SEEDS {
        assert_eq!(total.missing(), Vec::<&str>::new(), "the simulation no longer sees these");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..10 {
        let again = || run(seed, None, false).map_err(|failure| how_to_replay(&failure));
        assert_eq!(again(), again(), "seed {seed}");
    }
}

/// A simulation that finds nothing proves nothing: here it is given the defects that it exists for.
#[test]
fn seeded_defects_are_found() {
    for (defect, promise, seeds_max) in [
        (Defect::AnswersBeforeWritten, "durable", 5),
        (Defect::PublishesBeforeDelivery, "published before it is delivered", 4_000),
        (Defect::DropsDelivery, "", 200),
        (Defect::SnapshotClaimsForeign, "", 1_000),
        (Defect::AppliesOwnTwice, "opened", 200),
        (Defect::LoadsOneShort, "opened", 5),
        (Defect::ClaimsKeysLookedUp, "counts twice", 100),
        (Defect::SnapshotsJumpTheQueue, "snapshot", 200),
        (Defect::DoorForgetsTheDisk, "while the disk was full", 50),
        (Defect::ReadsWantToWrite, "because the disk is full", 50),
        (Defect::ForgetsWhoWaits, "though there is room", 200),
        (Defect::AcknowledgesFailedAppend, "durable", 200),
        (Defect::ClosesWithoutLine, "was not noticed", 1_000),
        (Defect::KeepsNoAnchor, "was not noticed", 200),
        (Defect::LosesOnePage, "the readers' view", 500),
        (Defect::PublishesOneShort, "the readers' view", 50),
        (Defect::SendsAgainBeforeItsRecord, "sent again before", 50),
        (Defect::CapturesBeforeItsRecord, "captured before its authorization", 50),
        (Defect::TakesSilenceForRefusal, "its money was taken", 50),
        (Defect::CarriesOutWhatWasClosed, "its money was taken", 500),
    ] {
        let found = (0..seeds_max).find_map(|seed| run(seed, Some(defect), false).err());
        let failure = found.unwrap_or_else(|| panic!("{defect:?} was not found within {seeds_max} seeds"));
        println!("{defect:?}: seed {}, step {}: {}", failure.seed, failure.step, failure.what);
        assert!(failure.what.contains(promise), "{defect:?} was found by another promise: {}", failure.what);
    }
}

#[test]
fn a_delivery_that_comes_twice_is_harmless() {
    for seed in 0..100 {
        if let Err(failure) = run(seed, Some(Defect::DeliversTwice), false) {
            panic!("{}", how_to_replay(&failure));
        }
    }
}

/// Seeds of the smaller world with several partitions.
const PARTITION_SEEDS: u64 = 400;

#[test]
fn partitions_of_one_process_are_independent() {
    let mut total = partitions::Saw::default();
    for seed in 0..number_from_environment("CENTAVO_SIM_SEEDS").unwrap_or(PARTITION_SEEDS) {
        total.add(partitions::run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}")));
    }
    println!("{total:?}");
    let partitions::Saw {
        commits_of_several,
        commits_that_were_full,
        fenced_beside_durable,
        interrupted,
        lone_large_records,
    } = total;
    let seen = [commits_of_several, commits_that_were_full, fenced_beside_durable, interrupted, lone_large_records];
    assert!(seen.into_iter().all(|count| count > 0), "the simulation no longer sees all of these");
}

#[test]
fn seeded_defects_of_partitions_are_found() {
    use partitions::Defect;
    for (defect, promise) in [
        (Defect::AppendsUnderAnothersTenure, "nobody took it"),
        (Defect::SharesOneSequence, "does not follow the head"),
        (Defect::MixesHashes, "does not follow the head"),
        (Defect::MixesMessages, "are durable"),
        (Defect::AcknowledgesFenced, "are durable"),
        (Defect::EndsAllWithOne, "replies were released"),
        (Defect::AcknowledgesHalf, "are durable"),
    ] {
        let found = (0..200).find_map(|seed| Some((seed, partitions::run(seed, Some(defect)).err()?)));
        let (seed, what) = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        println!("{defect:?}: seed {seed}: {what}");
        assert!(what.contains(promise), "{defect:?} was found by another promise: {what}");
    }
}

/// Seeds of the world of several nodes.
const NODE_SEEDS: u64 = 500;

#[test]
fn nodes_divide_partitions() {
    if let Some(seed) = number_from_environment("CENTAVO_SIM_SEED") {
        println!("{:?}", nodes::run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}")));
        return;
    }
    let mut total = nodes::Saw::default();
    for seed in 0..number_from_environment("CENTAVO_SIM_SEEDS").unwrap_or(NODE_SEEDS) {
        total.add(nodes::run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}")));
    }
    println!("{total:?}");
    let nodes::Saw {
        taken_from_gone,
        handed_over,
        refused_since_it_woke,
        lost_takes,
        superseded,
        left,
        alone_kept_all,
        started_in_vain,
    } = total;
    let seen = [
        taken_from_gone,
        handed_over,
        refused_since_it_woke,
        lost_takes,
        superseded,
        left,
        alone_kept_all,
        started_in_vain,
    ];
    assert!(seen.into_iter().all(|count| count > 0), "the simulation no longer sees all of these");
}

#[test]
fn seeded_defects_of_nodes_are_found() {
    use nodes::Defect;
    for (defect, promise) in [
        (Defect::TakesAtOnce, "processes answer for"),
        (Defect::SeesItselfBeat, "from a process that lives"),
        (Defect::TakesWithoutTheBeat, "processes answer for"),
        (Defect::AnswersTooLong, "processes answer for"),
        (Defect::ForgetsLostTakes, "is not served by its node"),
        (Defect::HidesLeaving, "does not leave"),
        (Defect::SeesTheDeadMove, "is not served by its node"),
        (Defect::PlacesProcesses, "is not served by its node"),
        (Defect::HandsAllOver, "at once"),
    ] {
        let found = (0..1_000).find_map(|seed| Some((seed, nodes::run(seed, Some(defect)).err()?)));
        let (seed, what) = found.unwrap_or_else(|| panic!("{defect:?} was not found"));
        println!("{defect:?}: seed {seed}: {what}");
        assert!(what.contains(promise), "{defect:?} was found by another promise: {what}");
    }
}

/// Runs a seed; a panic of the product is a failure like any other.
fn run(seed: u64, defect: Option<Defect>, trace: bool) -> Result<Coverage, Failure> {
    let caught = catch_unwind(AssertUnwindSafe(|| world::run(seed, defect, trace)));
    caught.unwrap_or_else(|_| Err(Failure { seed, step: 0, what: "a panic, printed above".into() }))
}

fn replay(seed: u64) -> Coverage {
    match run(seed, None, true) {
        Ok(coverage) => coverage,
        Err(failure) => panic!("{}", how_to_replay(&failure)),
    }
}

fn how_to_replay(failure: &Failure) -> String {
    let Failure { seed, step, what } = failure;
    format!(
        "seed {seed}, step {step}: {what}\nto see each step: \
         CENTAVO_SIM_SEED={seed} cargo test -p actors --test simulation every_seed -- --nocapture"
    )
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
