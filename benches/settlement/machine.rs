//! Facts of the machine: its processors, how fast its disk syncs, and the CPU time of this process.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is written at a time where the disk is described, bytes.
const PAGE: usize = 4_096;
/// How often it is synced there.
const SYNCS: usize = 300;

/// What a reader must know to judge the figures, as text.
pub(crate) fn facts() -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut facts = String::new();
    let mut tell = |what: &str, is: String| writeln!(facts, "{what:<18}  {is}").expect("text takes text");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    tell("machine", format!("{cores} cores, {}", line_of("/proc/cpuinfo", "model name").unwrap_or_default()));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    tell("kernel", format!("Linux {}", kernel.trim()));
    tell("data folder", format!("{}, {}", folder.path().display(), file_system(folder.path())));
    let file = File::create(folder.path().join("probe")).expect("a file");
    tell("fdatasync, growing", format!("{} (4 KiB appended)", quantiles(&file)));
    tell("fdatasync, again", format!("{} (4 KiB over what was written before)", quantiles(&file)));
    tell(
        "durability",
        "every charge is answered after its Records are synced to the disk; nothing is relaxed".to_owned(),
    );
    tell("load", "from the same process on the same cores, on one thread of its own".to_owned());
    facts
}

/// The rest of the first line that begins so, after the colon.
fn line_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The type and the device of the file system that a folder is on.
fn file_system(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let fields = mounts.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        Some((fields.next()?, fields.next()?, fields.next()?))
    });
    let on = fields.filter(|(_, place, _)| folder.starts_with(place)).max_by_key(|(_, place, _)| place.len());
    on.map_or_else(|| "on an unknown file system".to_owned(), |(device, _, kind)| format!("{kind} on {device}"))
}

fn quantiles(file: &File) -> String {
    let mut took: Vec<Duration> = (0..SYNCS).map(|number| timed_sync(file, number * PAGE, PAGE)).collect();
    took.sort_unstable();
    let ms = |percent: usize| took[SYNCS * percent / 100].as_secs_f64() * 1_000.0;
    format!("p50 {:.3} ms, p99 {:.3} ms", ms(50), ms(99))
}

fn timed_sync(file: &File, offset: usize, bytes: usize) -> Duration {
    let begun = Instant::now();
    file.write_all_at(&[1; PAGE][..bytes], offset as u64).expect("a write");
    file.sync_data().expect("a sync");
    begun.elapsed()
}

/// How many files and connections this process may have open at a time.
pub(crate) fn open_files_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(usize::MAX)
}

/// A file that small writes are made durable in, one after the other: what one client could see at
/// best.
pub(crate) struct Disk {
    file: File,
    write: usize,
    /// At the end of the growing file.
    pub(crate) growing: Syncs,
    /// Over what was written before.
    pub(crate) again: Syncs,
}

/// Writes that were made durable one after the other.
#[derive(Default)]
pub(crate) struct Syncs {
    count: usize,
    took: Duration,
}

impl Disk {
    /// An empty file, for writes of this size in bytes, at most a page.
    pub(crate) fn new(write: usize) -> Self {
        let (growing, again) = Default::default();
        Self { file: tempfile::tempfile().expect("a file"), write, growing, again }
    }

    /// Writes at the end for this long; then over the same again.
    pub(crate) fn sync_for(&mut self, lasting: Duration) {
        let first = self.growing.count;
        let begun = Instant::now();
        while begun.elapsed() < lasting {
            self.growing.took += timed_sync(&self.file, self.growing.count * self.write, self.write);
            self.growing.count += 1;
        }
        for number in first..self.growing.count {
            self.again.took += timed_sync(&self.file, number * self.write, self.write);
            self.again.count += 1;
        }
    }
}

impl Syncs {
    /// Rate per second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.took.as_secs_f64()
    }
}

/// CPU time, a program's own and the kernel's for it.
#[derive(Clone, Copy, Default)]
pub(crate) struct CpuTime {
    /// Of this process.
    pub(crate) process: Duration,
    /// Of this thread, on which the load generator runs.
    pub(crate) generator: Duration,
}

impl CpuTime {
    /// So far.
    pub(crate) fn now() -> Self {
        /// Unit of the kernel's CPU times, independent of its own clock (`sysconf(_SC_CLK_TCK)` on
        /// Linux).
        const TICKS_PER_SECOND: u64 = 100;
        let text = fs::read_to_string("/proc/self/stat").expect("Linux");
        // The name, in parentheses, may hold blanks; `utime` and `stime` are the 14th and 15th
        // field.
        let fields = text.rsplit_once(')').map(|(_, rest)| rest.split_whitespace()).expect("a name in parentheses");
        let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number of ticks")).sum();
        let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let ns = text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or_default();
        let process = Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND);
        Self { process, generator: Duration::from_nanos(ns) }
    }

    /// What was used since then.
    pub(crate) fn since(then: Self) -> Self {
        let now = Self::now();
        let process = now.process.saturating_sub(then.process);
        Self { process, generator: now.generator.saturating_sub(then.generator) }
    }

    /// A part of it.
    pub(crate) fn each(self, count: u64) -> Self {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        Self { process: self.process / count, generator: self.generator / count }
    }
}
