//! Damage test: a data folder is damaged behind the server's back, one fault at a time. Either the
//! server refuses to start, and names the file and the way out; or it serves exactly the
//! acknowledged data. Never a wrong balance, never a journal that is silently shorter: at most the
//! last two blocks may be missing, and then everything is as it was before them.
//!
//! `CENTAVO_FAULTS=n` runs more faults; `CENTAVO_FAULT_SEED=s` begins with another seed, so that
//! with one fault a failing seed runs alone. The seed decides what happens to which part of which
//! file; the folder itself is made anew each time.

#![allow(clippy::unwrap_used)]

mod base;
mod fault;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use store::testkit::power_cut::Chance;
use testkit::books::cut;
use testkit::callers::client;
use testkit::server::{Launch, Refused, Server, verify};
use testkit::setting;
use tokio::task::JoinSet;

use base::Base;
use fault::{Fault, Part};

/// Faults that are tried at the same time.
const AT_ONCE: usize = 3;
/// Charges that are read after each fault, by chance, beside all balances, ledgers and statements.
const CHARGES_READ: u64 = 40;

/// What a fault came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The server does not start, and says why.
    Refused,
    /// All is as it was.
    AsBefore,
    /// All is as it was before the last block, or the last two.
    Shorter,
    /// Some of it is answered with a failure, the rest is as it was.
    InPart,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn damage_is_named_or_does_no_harm() {
    let place = tempfile::tempdir().unwrap();
    let base = Arc::new(Base::make(place.path()).await.unwrap());
    let first = setting("CENTAVO_FAULT_SEED").unwrap_or(1);
    let faults = setting("CENTAVO_FAULTS").unwrap_or(60);
    println!("{faults} faults from seed {first} on; {}", base.summary());
    let next = Arc::new(AtomicU64::new(first));
    let mut workers = JoinSet::new();
    for _ in 0..AT_ONCE {
        let (base, next) = (Arc::clone(&base), Arc::clone(&next));
        workers.spawn(async move {
            let mut tried = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first + faults {
                    return tried;
                }
                tried.push((seed, try_fault(&base, seed).await));
            }
        });
    }
    let mut tried: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    tried.sort_by_key(|(seed, _)| *seed);
    let mut outcomes: BTreeMap<(Part, Outcome), u64> = BTreeMap::new();
    let mut failures = Vec::new();
    for (seed, outcome) in tried {
        match outcome {
            Ok((part, outcome)) => *outcomes.entry((part, outcome)).or_default() += 1,
            Err(failure) => failures.push(format!("seed {seed}: {failure}")),
        }
    }
    for ((part, outcome), count) in &outcomes {
        println!("{part:?}: {outcome:?} {count} times");
    }
    if !failures.is_empty() {
        let folder = place.keep();
        panic!("{} faults did harm; see {}:\n{}", failures.len(), folder.display(), failures.join("\n"));
    }
    let had = |wanted: Outcome| outcomes.keys().any(|(_, outcome)| *outcome == wanted);
    assert!(faults < 100 || (had(Outcome::Refused) && had(Outcome::AsBefore)), "{outcomes:?}");
}

/// One fault, in copies of the folder: before a start, or while the server runs.
async fn try_fault(base: &Base, seed: u64) -> Result<(Part, Outcome), String> {
    let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let original = base.folder(&mut chance);
    let copies = Copies {
        served: base.copy(original, &format!("seed-{seed}")),
        verified: base.copy(original, &format!("seed-{seed}-verified")),
    };
    let came_to = match chance.below(5) {
        0 => harmed_while_running(base, &copies, &mut chance).await,
        _ => harmed_at_rest(base, &copies, &mut chance).await,
    };
    if came_to.is_ok() {
        std::fs::remove_dir_all(&copies.served).unwrap();
        std::fs::remove_dir_all(&copies.verified).unwrap();
    }
    came_to
}

/// Copies of the folder for one fault.
struct Copies {
    served: PathBuf,
    verified: PathBuf,
}

async fn harmed_while_running(base: &Base, copies: &Copies, chance: &mut Chance) -> Result<(Part, Outcome), String> {
    let copy = &copies.served;
    let server = Server::start(&Launch::on(copy)).await?;
    let fault = Fault::choose(copy, chance);
    fault.inflict(copy);
    let failed = |failure| format!("while the server ran, in {} {fault}: {failure}", copy.display());
    match held_at_last(base, &server, fault.part, chance).await.map_err(failed)? {
        Outcome::Shorter => Err(failed("it forgot the last blocks".to_owned())),
        outcome => Ok((fault.part, outcome)),
    }
}

async fn harmed_at_rest(base: &Base, copies: &Copies, chance: &mut Chance) -> Result<(Part, Outcome), String> {
    let fault = Fault::choose(&copies.served, chance);
    fault.inflict(&copies.served);
    fault.inflict(&copies.verified);
    let came_to = async {
        let served = match Server::start(&Launch::on(&copies.served)).await {
            Ok(server) => held_at_last(base, &server, fault.part, chance).await?,
            Err(refused) => explained(&refused, &copies.served)?,
        };
        match verified(base, &copies.verified)? {
            true if served == Outcome::InPart => Err("some of it cannot be read, and verify finds it whole".to_owned()),
            _ => Ok((fault.part, served)),
        }
    };
    let came_to: Result<_, String> = came_to.await;
    came_to.map_err(|failure| format!("before a start, in {} {fault}: {failure}", copies.served.display()))
}

/// Holds a running server against the books that it had; once more where a derived file failed a
/// read, since the file is made again then.
async fn held_at_last(base: &Base, server: &Server, part: Part, chance: &mut Chance) -> Result<Outcome, String> {
    match held_against(base, server, chance).await? {
        Outcome::InPart if part == Part::Derived => match held_against(base, server, chance).await? {
            Outcome::InPart => Err("what is derived is not made again".to_owned()),
            held => Ok(held),
        },
        held => Ok(held),
    }
}

/// Holds a running server against the books that it had.
async fn held_against(base: &Base, server: &Server, chance: &mut Chance) -> Result<Outcome, String> {
    let held: Result<Outcome, String> = async {
        let found = cut(&client(), server).await?;
        let books = base.books.iter().find(|books| books.cut == found);
        let last = base.books[0].cut;
        let books = books.ok_or_else(|| format!("the journal ends at {found}, and {last} were acknowledged"))?;
        let mut all_given = books.check(server, CHARGES_READ, chance).await?.is_empty();
        for merchant in &base.merchants {
            all_given &= merchant.repeat(server, chance.next()).await?;
        }
        match cut(&client(), server).await? {
            after if after != found => Err(format!("the journal grew from {found} to {after} by being read")),
            _ if !all_given => Ok(Outcome::InPart),
            _ if found == last => Ok(Outcome::AsBefore),
            _ => Ok(Outcome::Shorter),
        }
    }
    .await;
    match (held, server.ended_within(Duration::from_millis(20))) {
        (held, None) => held.map_err(|failure| format!("{failure}\n{}", server.said())),
        (_, Some(ended)) => Err(format!("it did not go on serving: {ended}")),
    }
}

/// A refusal to start is an error of the program, not a panic, and its last line names a file or
/// folder and the way out.
fn explained(refused: &Refused, data: &Path) -> Result<Outcome, String> {
    let status = refused.status.ok_or_else(|| refused.to_string())?;
    let line = refused.said.lines().last().unwrap_or_default();
    let names_a_file = names_a_file(line, data);
    let tells_a_way_out = WAYS_OUT.iter().any(|way| line.contains(way));
    match status.code() {
        Some(1) if names_a_file && tells_a_way_out && !refused.said.contains("panicked at") => Ok(Outcome::Refused),
        _ => Err(format!("refused without a clear word: {refused}")),
    }
}

fn names_a_file(line: &str, data: &Path) -> bool {
    line.contains(&data.display().to_string()) || line.contains("master.key")
}

/// What an operator can do, in the words of the errors.
const WAYS_OUT: [&str; 4] = ["restore the last backup", "put the file back", "delete it", "use a newer release"];

/// Whether `verify` finds the folder whole. Then all Records must be there; else it must say where
/// it broke.
fn verified(base: &Base, data: &Path) -> Result<bool, String> {
    let verified = verify(data);
    let (out, error) = (String::from_utf8_lossy(&verified.stdout), String::from_utf8_lossy(&verified.stderr));
    if verified.status.success() {
        let count = out.lines().find_map(|line| line.trim().strip_prefix("Records")).unwrap_or_default();
        let count = count.split(" in ").next().unwrap_or_default();
        let records: u64 = count.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0);
        let is_known = base.books.iter().any(|books| books.cut == records);
        return if is_known { Ok(true) } else { Err(format!("verify finds {records} Records whole: {out}")) };
    }
    let is_explained = names_a_file(&error, data) || error.contains("sequence");
    let is_one_line = error.trim().lines().count() == 1;
    match verified.status.code() {
        Some(1) if is_explained && is_one_line && !error.contains("panicked at") => Ok(false),
        _ => Err(format!("verify ended with {} and no clear word: {error}", verified.status)),
    }
}
