//! Power cuts: what the store acknowledged is there afterwards.
//!
//! A test starts this same program again as a writer. It opens a store, reports what it finds
//! there, then appends blocks and puts values as fast as it can, and reports each before it tries
//! and after it was acknowledged. The test kills it at some moment, cuts its power (see
//! `testkit::power_cut`) and starts the next writer in the same folder. That writer must open the
//! store. It must find every acknowledged block with its hash in a whole chain, besides them at
//! most the block that was being tried, and every value.
//!
//! `CENTAVO_CUTS=n` makes n cuts instead of a few; `CENTAVO_CUT_SEED=s` begins with another seed.
//! The seed decides the writes, the moment of the kill and the losses of the cut. How far the
//! writer has come by then depends on the machine.
#![cfg(target_os = "linux")]
// The whole program is a test.
#![allow(clippy::unwrap_used)]

mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use store::testkit::power_cut::{Chance, Disk, Loss, Shim};
use tempfile::TempDir;

use self::writer::Line;

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    let cuts = setting("CENTAVO_CUTS").unwrap_or(12);
    let first_seed = setting("CENTAVO_CUT_SEED").unwrap_or(0);
    let shim = Shim::build();
    let (mut losses, mut blocks, mut values) = (Loss::default(), 0, 0);
    let took_everything = |loss: Loss| loss.sectors_lost > 0 && loss.sectors_kept > 0 && loss.names_lost > 0;
    // Cuts that take nothing would prove nothing: when the first ones happen to, there are more, up
    // to a bound.
    for seeds in (first_seed..first_seed + 10 * cuts).collect::<Vec<_>>().chunks(CUTS_PER_FOLDER) {
        if seeds[0] >= first_seed + cuts && took_everything(losses) {
            break;
        }
        let mut life = Life::new(&shim);
        for &seed in seeds {
            match life.write_and_cut(seed) {
                Ok(loss) => losses = sum(losses, loss),
                Err(failure) => life.give_up(seed, &failure),
            }
        }
        if let Err(failure) = life.check() {
            life.give_up(seeds[seeds.len() - 1], &failure);
        }
        blocks += life.truth.blocks.len();
        values += life.truth.acknowledged_values;
    }
    println!("at least {cuts} cuts, {blocks} blocks and {values} values acknowledged, {losses:?}");
    assert!(took_everything(losses), "{losses:?}");
    assert!(blocks > 0 && values > 0, "{blocks} blocks, {values} values");
}

/// A restart reads what the killed writer left unsynced, and the next cut can take it.
#[test]
fn what_was_acknowledged_survives_a_kill_and_then_a_power_cut() {
    let first_seed = setting("CENTAVO_CUT_SEED").unwrap_or(0);
    let shim = Shim::build();
    for seed in first_seed..first_seed + setting("CENTAVO_CUTS").unwrap_or(8) {
        let mut life = Life::new(&shim);
        let after_opening = End::AfterOpening(Duration::from_micros(Chance(seed).below(50_000)));
        let survived = life.run_writer(seed, after_opening).and_then(|()| {
            let unlogged = life.die_in_the_middle_of_a_change();
            drop(life.command(writer::STORE));
            assert!(!unlogged.exists(), "seed {seed}: it was not logged");
            life.write_and_cut(seed)?;
            life.check()
        });
        if let Err(failure) = survived {
            life.give_up(seed, &failure);
        }
    }
}

/// Nothing is acknowledged yet then, but a folder that never opens would stop the server for good.
#[test]
fn a_store_that_was_being_made_opens() {
    let first_seed = setting("CENTAVO_CUT_SEED").unwrap_or(0);
    let shim = Shim::build();
    for seed in first_seed..first_seed + setting("CENTAVO_CUTS").unwrap_or(40) {
        let mut life = Life::new(&shim);
        let end = End::AtChange(1 + Chance(seed).below(CHANGES_OF_OPENING));
        if let Err(failure) = life.end_and_cut(seed, end).and_then(|_| life.check()) {
            life.give_up(seed, &failure);
        }
    }
}

/// The harness would notice if a sync were worth nothing.
#[test]
fn a_disk_that_lies_is_found_out() {
    assert_found_out(Disk::Lying);
}

/// The harness would notice if the store below us used the `sync_file_range` of the C library.
#[test]
fn a_sync_of_a_range_is_not_enough() {
    assert_found_out(Disk::WithPlainRangeSync);
}

/// Within a few cuts by chance something acknowledged is lost, or the folder does not open.
fn assert_found_out(disk: Disk) {
    let shim = Shim::build().with_disk(disk);
    let mut life = Life::new(&shim);
    // Seeds that leave out the cuts which take everything: a loss by chance must be noticed too.
    let found = (0..40).filter(|seed| seed % 8 > 1).find_map(|seed| life.write_and_cut(seed).err());
    assert!(matches!(found, Some(Failure::Lost(_) | Failure::DoesNotOpen(_))), "{disk:?}: {found:?}");
}

/// Files with known syncs after a cut: once when nothing unsynced survives, once when everything
/// does.
#[test]
fn a_cut_takes_what_was_not_synced_and_nothing_else() {
    // File, what is left of it if nothing unsynced survives, and if everything does.
    let cases: [(&str, Option<&str>, Option<&str>); 9] = [
        ("synced", Some("old"), Some("old")),
        ("appended", Some("old"), Some("old and new")),
        ("overwritten", Some("old"), Some("new")),
        ("shortened", Some("old"), Some("o")),
        ("emptied", Some("old"), Some("")),
        ("removed", Some("old"), None),
        ("new", None, Some("new")),
        // A rename is durable at once in every program that links the engine, and with it what the
        // folder knew by then.
        ("renamed", None, None),
        ("renamed to", Some("old"), Some("old")),
    ];
    let shim = Shim::build();
    for (seed, column) in [(0, 1), (1, 2)] {
        let folder = Life::new(&shim);
        folder.write_files();
        shim.cut(&folder.data, seed);
        for (file, none, all) in cases {
            let expected = if column == 1 { none } else { all };
            let found = std::fs::read_to_string(folder.data.join(file)).ok();
            assert_eq!(found.as_deref(), expected, "{file}, seed {seed}");
        }
    }
    // By chance it is one or the other, but a sync holds always.
    for seed in 2..40 {
        let folder = Life::new(&shim);
        folder.write_files();
        shim.cut(&folder.data, seed);
        let synced = std::fs::read_to_string(folder.data.join("synced")).unwrap();
        assert_eq!(synced, "old", "seed {seed}");
        let overwritten = std::fs::read_to_string(folder.data.join("overwritten")).unwrap();
        assert!(["old", "new"].contains(&overwritten.as_str()), "{overwritten:?}, seed {seed}");
    }
}

/// When a writer dies.
enum End {
    /// In the middle of this change of a file, counted from its start.
    AtChange(u64),
    /// Delay after it has printed what it found.
    AfterOpening(Duration),
}

/// Why a store failed its test.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// Something is missing, or is there that nobody wrote.
    #[error("it is not what was acknowledged: {0}")]
    Lost(String),
    /// The writer could not open or read the folder.
    #[error("it does not open: {0}")]
    DoesNotOpen(String),
}

/// A folder through several cuts, with its expected content.
struct Life<'shim> {
    shim: &'shim Shim,
    temporary: TempDir,
    data: PathBuf,
    writers: u64,
    truth: Truth,
}

impl<'shim> Life<'shim> {
    fn new(shim: &'shim Shim) -> Life<'shim> {
        let temporary = TempDir::new().unwrap();
        let data = temporary.path().join("data");
        std::fs::create_dir(&data).unwrap();
        Life { shim, temporary, data, writers: 0, truth: Truth::default() }
    }

    /// Lets a writer write for a while, kills it, compares what it found at its start, and cuts its
    /// power.
    fn write_and_cut(&mut self, seed: u64) -> Result<Loss, Failure> {
        let mut chance = Chance(seed ^ 0x0063_7574);
        // Every third or so dies while it opens or soon after: what a recovery writes is cut as
        // well.
        let end = match chance.below(3) {
            0 => End::AtChange(1 + chance.below(CHANGES_OF_OPENING)),
            _ => End::AfterOpening(Duration::from_micros(chance.below(250_000))),
        };
        self.end_and_cut(seed, end)
    }

    fn end_and_cut(&mut self, seed: u64, end: End) -> Result<Loss, Failure> {
        self.run_writer(seed, end)?;
        Ok(self.shim.cut(&self.data, seed))
    }

    /// Leaves what a kill inside of the shim can leave: a part of a record, and a name without one.
    fn die_in_the_middle_of_a_change(&self) -> PathBuf {
        let log = self.temporary.path().join("data.power-cut/log");
        let record = std::fs::read(&log).unwrap();
        let mut log = OpenOptions::new().append(true).open(&log).unwrap();
        log.write_all(&record[..PART_OF_A_RECORD]).unwrap();
        let unlogged = self.data.join("unlogged");
        std::fs::write(&unlogged, b"").unwrap();
        unlogged
    }

    /// Lets a last writer find what the last cut left.
    fn check(&mut self) -> Result<(), Failure> {
        self.run_writer(0, End::AfterOpening(Duration::ZERO))
    }

    fn run_writer(&mut self, seed: u64, end: End) -> Result<(), Failure> {
        self.writers += 1;
        let mut command = self.command(writer::STORE);
        command.env(writer::NUMBER, self.writers.to_string()).env(writer::SEED, seed.to_string());
        if let End::AtChange(change) = end {
            self.shim.kill_at(&mut command, change);
        }
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(process.stdout.take().unwrap());
        let opening_max = Instant::now() + OPENING_MAX;
        let heard = match end {
            End::AtChange(_) => self.truth.hear_until(&lines, opening_max, false),
            End::AfterOpening(patience) => self
                .truth
                .hear_until(&lines, opening_max, true)
                .and_then(|()| self.truth.hear_until(&lines, Instant::now() + patience, false)),
        };
        process.kill().unwrap();
        let status = process.wait().unwrap();
        heard?;
        // Its output before the kill counts.
        self.truth.hear_until(&lines, opening_max, false)?;
        match status.signal() {
            Some(SIGKILL) => Ok(()),
            _ => Err(Failure::DoesNotOpen(format!("the writer ended by itself: {status}"))),
        }
    }

    /// Lets a writer change a few files and end.
    fn write_files(&self) {
        let status = self.command(writer::FILES).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{status}");
    }

    /// This program as a writer in the folder.
    fn command(&self, role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "writer::the_process_whose_power_is_cut", "--nocapture", "--quiet"]);
        command.env(writer::ROLE, role).env(writer::DATA, &self.data);
        self.shim.command(&mut command, &self.data);
        command
    }

    fn give_up(self, seed: u64, failure: &Failure) -> ! {
        panic!("seed {seed}: {failure}; the folder is kept: {}", self.temporary.keep().display());
    }
}

/// Expected content of a folder, by its writers' reports.
#[derive(Default)]
struct Truth {
    blocks: Vec<(u64, String)>,
    /// The block that was tried last, unless it was acknowledged.
    tried_block: Option<(u64, String)>,
    values: BTreeMap<String, Value>,
    /// The versions that each key was lazily given.
    lazy_values: BTreeMap<String, BTreeSet<String>>,
    acknowledged_values: usize,
    /// What the present writer finds at its start.
    found_blocks: Vec<(u64, String)>,
    found_values: BTreeMap<String, String>,
}

struct Value {
    acknowledged: String,
    tried: Option<String>,
}

impl Default for Value {
    fn default() -> Value {
        Value { acknowledged: writer::ABSENT.to_owned(), tried: None }
    }
}

impl Truth {
    /// Reads the writer's report until the writer has ended, until some moment, or until it has
    /// reported what it found.
    fn hear_until(&mut self, lines: &Receiver<String>, moment: Instant, until_checked: bool) -> Result<(), Failure> {
        loop {
            let line = match lines.recv_timeout(moment.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if until_checked => {
                    return Err(Failure::DoesNotOpen(format!("not open after {OPENING_MAX:?}")));
                }
                Err(RecvTimeoutError::Disconnected) if until_checked => {
                    return Err(Failure::DoesNotOpen("the writer ended before it was open".to_owned()));
                }
                Err(_) => return Ok(()),
            };
            // The test harness of the writer's own process prints lines of its own.
            let Some(line) = Line::parse(&line) else { continue };
            let is_checked = matches!(line, Line::Checked);
            self.hear(line)?;
            if is_checked && until_checked {
                return Ok(());
            }
        }
    }

    fn hear(&mut self, line: Line) -> Result<(), Failure> {
        match line {
            Line::Opening => {
                self.found_blocks.clear();
                self.found_values.clear();
            }
            Line::FoundBlock(first, hash) => self.found_blocks.push((first, hash)),
            Line::FoundValue(key, version) => drop(self.found_values.insert(key, version)),
            Line::Checked => return self.compare(),
            Line::Failed(message) => return Err(Failure::DoesNotOpen(message)),
            Line::TryBlock(first, hash) => self.tried_block = Some((first, hash)),
            Line::Block(first, hash) => {
                assert_eq!(self.tried_block.take(), Some((first, hash.clone())));
                self.blocks.push((first, hash));
            }
            Line::TryValue(key, version) => self.values.entry(key).or_default().tried = Some(version),
            Line::Value(key, version) => {
                self.values.insert(key, Value { acknowledged: version, tried: None });
                self.acknowledged_values += 1;
            }
            Line::TryLazyValue(key, version) => drop(self.lazy_values.entry(key).or_default().insert(version)),
        }
        Ok(())
    }

    /// Compares the found content with the expected content. From then on the found content is
    /// expected.
    fn compare(&mut self) -> Result<(), Failure> {
        let found = std::mem::take(&mut self.found_blocks);
        let expected = self.blocks.len();
        if found.get(..expected) != Some(self.blocks.as_slice()) {
            let common = found.iter().zip(&self.blocks).take_while(|(found, expected)| found == expected).count();
            let count = found.len();
            return Err(Failure::Lost(format!("{expected} blocks expected, {count} found, {common} of them the same")));
        }
        match &found[expected..] {
            [] => {}
            [further] if Some(further) == self.tried_block.as_ref() => {}
            further => return Err(Failure::Lost(format!("blocks that nobody tried: {further:?}"))),
        }
        self.blocks = found;
        self.tried_block = None;
        for (key, version) in std::mem::take(&mut self.found_values) {
            if let Some(tried) = self.lazy_values.get(&key) {
                if version != writer::ABSENT && !tried.contains(&version) {
                    return Err(Failure::Lost(format!("{key} has the version {version}, which nobody tried")));
                }
            } else if let Some(value) = self.values.get_mut(&key) {
                if version != value.acknowledged && value.tried.as_ref() != Some(&version) {
                    let Value { acknowledged, tried } = value;
                    return Err(Failure::Lost(format!("{key} is {version}, not {acknowledged} or {tried:?}")));
                }
                *value = Value { acknowledged: version, tried: None };
            } else if version != writer::ABSENT {
                return Err(Failure::Lost(format!("{key} has the version {version}, which nobody tried")));
            }
        }
        Ok(())
    }
}

fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn sum(left: Loss, right: Loss) -> Loss {
    Loss {
        sectors_lost: left.sectors_lost + right.sectors_lost,
        sectors_kept: left.sectors_kept + right.sectors_kept,
        names_lost: left.names_lost + right.names_lost,
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

const CUTS_PER_FOLDER: usize = 20;
/// About as many changes and syncs as making a new store takes, and some more.
const CHANGES_OF_OPENING: u64 = 120;
/// Less than the header of the shim's records, in bytes.
const PART_OF_A_RECORD: usize = 40;
const SIGKILL: i32 = 9;
/// Far more than opening takes on a slow machine.
const OPENING_MAX: Duration = Duration::from_secs(60);
