//! Failing system calls under the store: a broken disk, a full one.
//!
//! A test starts this same program again as a writer, which goes through a script (see `script.rs`)
//! under a shim (`shim.c`). The shim lets the n-th call fail that changes the store's folder. The
//! writer reports acknowledged and refused writes. For every n, until the script runs through
//! without a failure:
//!
//! - After the failure nothing is acknowledged, except where [`survivable`] and
//!   [`is_in_background`] say why.
//! - The process ends by itself, with an error that names the failed action, and the path if the
//!   store was being opened.
//! - When all unsynced bytes are lost too (see `testkit::power_cut`), the store opens and can be
//!   written. It holds every acknowledged write whole, and besides at most the write during which
//!   the call failed.
//!
//! A block whose sync failed was not acknowledged, but may be there.
//!
//! `CENTAVO_FAILS=all` tries every n; otherwise it is every so-many-th, from a first one that
//! depends on `CENTAVO_FAIL_SEED` or else on the clock. `CENTAVO_FAIL_AT=n` tries that one alone.
#![cfg(target_os = "linux")]
// The whole program is a test.
#![allow(clippy::unwrap_used)]

mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use store::testkit::power_cut::Shim;
use store::{Part, StoreError};
use tempfile::TempDir;

use self::script::{ABSENT, Line};

#[test]
fn a_write_that_fails_once() {
    every_failure(&Failing { error: libc::EIO, duration: "once", ..CHANGES });
}

#[test]
fn a_disk_that_is_full_for_a_moment() {
    every_failure(&Failing { error: libc::ENOSPC, duration: "once", ..CHANGES });
}

#[test]
fn a_disk_that_breaks() {
    every_failure(&Failing { error: libc::EIO, duration: "ever", ..CHANGES });
}

/// Few calls of the script, and most of its syncs by a thread of its own.
#[test]
fn an_anchor_that_can_not_be_kept() {
    every_failure(&Failing { error: libc::EIO, among: "anchor", ..CHANGES });
}

/// A read that fails is an error, never a shorter journal: neither in this process nor in the next.
#[test]
fn a_read_that_fails_once() {
    let failing_calls = FailingCalls::build();
    let written = TempDir::new().unwrap();
    let none = Failing { error: libc::EIO, duration: "once", calls: "reads", among: "", at: 0 };
    let data = failing_calls.folder(&written);
    failing_calls.run(&data, script::WRITE, &none, None).unwrap();
    let copy = TempDir::new().unwrap();
    copy_folder(&data, copy.path());
    let expected = found(copy.path(), |_| Ok(())).unwrap();
    assert!(expected.len() > 10, "{expected:?}");
    let seen = std::cell::Cell::new(0);
    for_every(none, |failing| {
        let temporary = TempDir::new().unwrap();
        let data = failing_calls.folder(&temporary);
        copy_folder(&written.path().join("data"), &data);
        let output = failing_calls.run(&data, script::READ, failing, None)?;
        let found_then: Vec<_> = output.lines.iter().filter(|line| matches!(line, Line::Found(..))).cloned().collect();
        if output.failed_call().is_some() {
            seen.set(seen.get() + 1);
        }
        let is_prefix = expected.starts_with(&found_then);
        if !is_prefix || (output.code == 0 && found_then.len() < expected.len()) {
            return Err(format!(
                "{:?}: a wrong answer: {}",
                output.failed_call(),
                first_difference(&expected, &found_then)
            ));
        }
        let found_later =
            found(&data, |_| Ok(())).map_err(|error| format!("{:?}: then {error}", output.failed_call()))?;
        if found_later != expected {
            let difference = first_difference(&expected, &found_later);
            return Err(format!("{:?}: it holds something else from then on: {difference}", output.failed_call()));
        }
        Ok(output)
    });
    assert!(seen.get() > 0);
}

fn every_failure(failing: &Failing) {
    let failing_calls = FailingCalls::build();
    let shim = Shim::build();
    for_every(*failing, |failing| {
        let temporary = TempDir::new().unwrap();
        let data = failing_calls.folder(&temporary);
        let output = failing_calls.run(&data, script::WRITE, failing, Some(&shim))?;
        let truth = Truth::of(&output, failing, &data)?;
        assert!(failing.at > 0 || data.join("journal/000004").exists(), "the script closes too few folders");
        shim.cut(&data, failing.at);
        let place = || format!("{:?}", output.failed_call());
        let found = found(&data, script::write_on).map_err(|error| format!("{}: then {error}", place()))?;
        truth.compare(&found).map_err(|difference| format!("{}: {difference}", place()))?;
        Ok(output)
    });
}

/// Where the failure of a call need not end the process, and why.
fn survivable(call: &str, path: &str, thread: &str, is_closed: bool) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or_default();
    match (call, name) {
        _ if is_closed || thread == "journal files" => {
            Some("a closed segment was durable before; it stays a database, or what is left of that is removed later")
        }
        ("fsync", _) if path.starts_with("sync-check") => Some("it is closed, and then removed, unread"),
        _ if path == "files" || path.starts_with("files/") => {
            Some("what is derived is refused, stops nothing else, and is written again")
        }
        (_, "cursors" | "cursors~") => Some("cursors may be behind; they are written again"),
        (_, "ballast") => Some("it takes room and holds nothing; it is made at the next start"),
        ("unlink" | "unlinkat", name) if name.starts_with("snap.") => {
            Some("the database goes by its newest summary; older ones are removed when it is opened again")
        }
        _ => None,
    }
}

/// Whether it fails on a thread that no caller waits for: what is acknowledged until that is
/// noticed must be durable, and it must be noticed.
fn is_in_background(path: &str, thread: &str) -> bool {
    thread.starts_with("journal ") || path.contains(".unfinished/") || is_behind_wal(path, thread)
}

/// Whether a folder's database fails to write, by itself, what is durable in the write-ahead log.
/// That need only be noticed when the database is to be durable too, which it is before the
/// folder's closing line is written.
fn is_behind_wal(path: &str, thread: &str) -> bool {
    let is_by_itself = thread.starts_with("sled-io") || thread == "journal wal";
    path.starts_with("journal/0") && !path.contains(".unfinished/") && is_by_itself
}

/// Whether the segment of the journal in which `path` lies was closed.
fn has_closing_line(data: &Path, path: &str) -> bool {
    let folder = Path::new(path).iter().take(2).collect::<PathBuf>();
    data.join(folder).with_extension("closed").exists()
}

/// Which call fails, and how.
#[derive(Debug, Clone, Copy)]
struct Failing {
    calls: &'static str,
    /// What the paths below the folder begin with.
    among: &'static str,
    at: u64,
    error: i32,
    duration: &'static str,
}

const CHANGES: Failing = Failing { calls: "changes", among: "", at: 0, error: 0, duration: "once" };

/// Tries one call after the other, until one is beyond the last.
fn for_every(failing: Failing, mut fail: impl FnMut(&Failing) -> Result<RunOutput, String>) {
    let seen = fail(&Failing { at: 0, ..failing }).unwrap().calls_seen();
    let step = match std::env::var("CENTAVO_FAILS").as_deref() {
        Ok("all") => 1,
        _ => seen.div_ceil(FAILURES_BY_DEFAULT),
    };
    let clock = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_micros();
    let seed = number("CENTAVO_FAIL_SEED").unwrap_or(u64::from(clock));
    let only = number("CENTAVO_FAIL_AT");
    println!("about {seen} calls, every {step} of them fails, CENTAVO_FAIL_SEED={seed}");
    let mut at = only.unwrap_or(1 + seed % step);
    let (mut failed, mut violations) = (0, Vec::new());
    loop {
        match fail(&Failing { at, ..failing }) {
            // Threads make the number of calls differ a little from run to run.
            Ok(output) if output.failed_call().is_none() => break,
            Ok(_) => {}
            Err(violation) => violations.push(format!("call {at}: {violation}")),
        }
        failed += 1;
        at += step;
        if only.is_some() {
            break;
        }
    }
    println!("{failed} calls failed");
    assert!(failed > 0);
    assert!(violations.is_empty(), "{failing:?}: {} of {failed}:\n{}", violations.len(), violations.join("\n"));
}

/// The library that lets calls fail.
struct FailingCalls {
    library: PathBuf,
    /// Removed with the library in it.
    _folder: TempDir,
}

impl FailingCalls {
    fn build() -> FailingCalls {
        let folder = TempDir::new().unwrap();
        let (source, library) = (folder.path().join("shim.c"), folder.path().join("failing.so"));
        fs::write(&source, include_str!("shim.c")).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut command = Command::new(&compiler);
        command.args(["-shared", "-fPIC", "-O2", "-pthread", "-o"]).arg(&library).arg(&source).arg("-ldl");
        let output = command.output().unwrap_or_else(|error| panic!("{compiler} can't be run: {error}"));
        assert!(output.status.success(), "{compiler} refused:\n{}", String::from_utf8_lossy(&output.stderr));
        FailingCalls { library, _folder: folder }
    }

    /// A new folder for a store.
    fn folder(&self, temporary: &TempDir) -> PathBuf {
        let data = temporary.path().canonicalize().unwrap().join("data");
        fs::create_dir(&data).unwrap();
        data
    }

    /// Lets a process go through its script; an error if it does not end by itself, or not as it
    /// should.
    fn run(&self, data: &Path, role: &str, failing: &Failing, cut: Option<&Shim>) -> Result<RunOutput, String> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "script::the_process_whose_calls_fail", "--nocapture", "--quiet"]);
        let mut preloaded = self.library.clone().into_os_string();
        if let Some(cut) = cut {
            cut.command(&mut command, data);
            let below = command.get_envs().find_map(|(name, value)| value.filter(|_| name == "LD_PRELOAD")).unwrap();
            preloaded.push(":");
            preloaded.push(below);
        }
        let errors = data.with_file_name("errors");
        command
            .env("LD_PRELOAD", preloaded)
            .env(script::ROLE, role)
            .env(script::DATA, data)
            .env("CENTAVO_FAIL_FOLDER", data)
            .env("CENTAVO_FAIL_CALLS", failing.calls)
            .env("CENTAVO_FAIL_AMONG", failing.among)
            .env("CENTAVO_FAIL_AT", failing.at.to_string())
            .env("CENTAVO_FAIL_FOR", failing.duration)
            .env("CENTAVO_FAIL_ERROR", failing.error.to_string())
            .stdout(Stdio::piped())
            .stderr(File::create(&errors).unwrap());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let lines = output.lines().map_while(Result::ok).filter_map(|line| Line::parse(&line));
            lines.for_each(|line| drop(sender.send(line)));
        });
        let (mut lines, deadline) = (Vec::new(), Instant::now() + END_MAX);
        let is_over = loop {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        if !is_over {
            process.kill().unwrap();
        }
        let status = process.wait().unwrap();
        let run_output = RunOutput { lines, code: status.code().unwrap_or(-1) };
        let errors = fs::read_to_string(&errors).unwrap();
        if !is_over {
            return Err(format!(
                "{:?}: it hangs after {:?}:\n{errors}",
                run_output.failed_call(),
                run_output.lines.last()
            ));
        }
        let last_word = errors.lines().last().unwrap_or_default();
        if ![0, script::REFUSED].contains(&run_output.code) || !last_word.starts_with("the end: ") {
            return Err(format!("{:?}: it ended with {status}:\n{errors}", run_output.failed_call()));
        }
        Ok(run_output)
    }
}

/// Output of a process.
#[derive(Debug)]
struct RunOutput {
    lines: Vec<Line>,
    code: i32,
}

impl RunOutput {
    fn failed_call(&self) -> Option<&Line> {
        self.lines.iter().find(|line| matches!(line, Line::FailedCall { .. }))
    }

    fn calls_seen(&self) -> u64 {
        let seen = self.lines.iter().find_map(|line| if let Line::CallsSeen(seen) = line { Some(*seen) } else { None });
        seen.expect("the shim is loaded")
    }
}

/// Expected content of a folder, by its writer's report.
#[derive(Default)]
struct Truth {
    things: BTreeMap<String, Thing>,
}

struct Thing {
    /// The version that was acknowledged last.
    acknowledged: String,
    /// Those that may be there instead.
    possible: BTreeSet<String>,
}

impl Truth {
    /// An error if something was acknowledged that may not be.
    fn of(output: &RunOutput, failing: &Failing, data: &Path) -> Result<Truth, String> {
        let mut truth = Truth::default();
        let (mut failed, mut tried, mut refused, mut stopped, mut end) = (None, 0, 0, 0, None);
        // Whether a call had failed when the present write was begun.
        let mut begun_after_failure = false;
        let mut went_on = false;
        for line in &output.lines {
            match line {
                Line::FailedCall { call, path, thread, is_closed } => failed = Some((call, path, thread, *is_closed)),
                Line::Try(name, version) => {
                    tried += 1;
                    begun_after_failure = failed.is_some();
                    // Nothing is written once a write of the journal, or a durable one, was
                    // refused.
                    if stopped == 0 {
                        truth.thing(name).possible.insert(version.clone());
                    }
                }
                Line::Done(name, version) => {
                    let is_lazy = name.starts_with("lazy/");
                    // The state area stops the rest only when something durable does not get into
                    // it.
                    let is_apart = |path: &str| path.starts_with("state/") && !name.starts_with("state/");
                    if let Some((call, path, thread, is_closed)) = failed.filter(|(_, path, ..)| !is_apart(path)) {
                        let is_survivable = survivable(call, path, thread, is_closed).is_some();
                        let is_allowed = match failing.duration {
                            // A write may be through while another thread has just met with the
                            // failure.
                            "ever" => {
                                is_survivable && is_lazy || is_in_background(path, thread) && !begun_after_failure
                            }
                            _ => is_survivable || is_in_background(path, thread),
                        };
                        went_on |= begun_after_failure;
                        if !is_allowed {
                            let later: Vec<_> = output
                                .lines
                                .iter()
                                .skip_while(|line| !matches!(line, Line::FailedCall { .. }))
                                .collect();
                            return Err(format!("it acknowledged {name}: {later:?}"));
                        }
                    }
                    let thing = truth.thing(name);
                    let before = std::mem::replace(&mut thing.acknowledged, version.clone());
                    // What is lazy may be older after a power cut, and a file that was removed may
                    // be there again.
                    if name.starts_with("file/") && version == ABSENT {
                        thing.possible.insert(before);
                    } else if !is_lazy {
                        thing.possible.clear();
                    }
                }
                Line::Refused(name, _) => {
                    refused += 1;
                    stopped += usize::from(!name.starts_with("lazy/") && !name.starts_with("file/"));
                }
                Line::End(word) => end = Some(word),
                Line::Found(..) | Line::CallsSeen(_) => {}
            }
        }
        let end = end.ok_or("it did not say how it ended")?;
        let Some((call, path, thread, is_closed)) = failed else {
            return if refused == 0 && tried > 10 {
                Ok(truth)
            } else {
                Err(format!("refused without a failure: {end}"))
            };
        };
        let is_unnoticed = refused == 0 && went_on && survivable(call, path, thread, is_closed).is_none();
        if is_unnoticed && (!is_behind_wal(path, thread) || has_closing_line(data, path)) {
            return Err(format!("{:?}: it went on to the end", output.failed_call()));
        }
        let is_opening = tried == 0;
        let says_where = end.contains(&*data.to_string_lossy());
        if is_opening && !says_where && survivable(call, path, thread, is_closed).is_none() {
            return Err(format!("{:?}: opening does not say where it failed: {end}", output.failed_call()));
        }
        Ok(truth)
    }

    fn thing(&mut self, name: &str) -> &mut Thing {
        let new = || Thing { acknowledged: ABSENT.to_owned(), possible: BTreeSet::new() };
        self.things.entry(name.to_owned()).or_insert_with(new)
    }

    fn compare(&self, found: &[Line]) -> Result<(), String> {
        let found: BTreeMap<&str, &str> = found
            .iter()
            .filter_map(|line| if let Line::Found(name, version) = line { Some((&**name, &**version)) } else { None })
            .filter(|(name, _)| *name != "end")
            .collect();
        if let Some((name, version)) = found.iter().find(|(name, _)| !self.things.contains_key(**name)) {
            return Err(format!("{name} {version} is there, which nobody tried"));
        }
        for (name, Thing { acknowledged, possible }) in &self.things {
            let version = found.get(&**name).copied().unwrap_or(ABSENT);
            let may_be_absent = name.starts_with("lazy/") && version == ABSENT;
            if version != acknowledged && !possible.contains(version) && !may_be_absent {
                return Err(format!("{name} is {version}, not {acknowledged} or one of {possible:?}"));
            }
        }
        Ok(())
    }
}

/// Opens the store without failures, in this process, and answers with all that it held before
/// `then` was done to it.
fn found(data: &Path, then: fn(&Part) -> Result<(), StoreError>) -> Result<Vec<Line>, String> {
    let (data, (sender, receiver)) = (data.to_path_buf(), channel());
    std::thread::spawn(move || {
        let read = || -> Result<Vec<Line>, StoreError> {
            let mut found = Vec::new();
            let store = script::open(&data)?;
            script::print_all(&store, &mut |line| found.push(line))?;
            then(&store)?;
            Ok(found)
        };
        sender.send(read().map_err(|error| error.to_string()))
    });
    receiver.recv_timeout(END_MAX).unwrap_or_else(|_| Err("it hangs or panics".to_owned()))
}

fn first_difference(expected: &[Line], found: &[Line]) -> String {
    let same = expected.iter().zip(found).take_while(|(expected, found)| expected == found).count();
    format!(
        "{} instead of {}; at {same}: {:?} instead of {:?}",
        found.len(),
        expected.len(),
        found.get(same),
        expected.get(same)
    )
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is no number: {value}")))
}

const FAILURES_BY_DEFAULT: u64 = 14;
/// Far more than the script takes on a slow machine.
const END_MAX: Duration = Duration::from_secs(20);
