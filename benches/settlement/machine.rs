//! Facts of the machine: its processors, how fast its disk syncs, how fast its memory is read, and
//! the CPU time of this process.

use std::fs::{self, File};
use std::hint::black_box;
use std::ops::AddAssign;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::stores::Store;

/// What is written at a time where the disk is described, bytes.
const PAGE: usize = 4_096;
/// How often it is synced there.
const SYNCS: usize = 300;

/// Bytes of a line of the processor's caches.
const CACHE_LINE: usize = 64;
/// How often memory is read where it is described.
const ACCESSES: usize = 1 << 20;
/// Knuth's, for MMIX.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// What a reader must know to judge the figures, as text.
pub(crate) fn facts(stores: &[Store]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut facts = String::new();
    let mut add = |what: &str, is: String| facts += &fact(what, &is);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    add("machine", format!("{cores} cores, {}", line_of("/proc/cpuinfo", "model name").unwrap_or_default()));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    add("kernel", format!("Linux {}", kernel.trim()));
    add("data folder", format!("{}, {}", folder.path().display(), file_system(folder.path())));
    let file = File::create(folder.path().join("probe")).expect("a file");
    add("fdatasync, growing", format!("{} (4 KiB appended)", quantiles(&file)));
    add("fdatasync, again", format!("{} (4 KiB over what was written before)", quantiles(&file)));
    add(
        "durability",
        "every charge is answered after its Records are synced to the disk; nothing is relaxed".to_owned(),
    );
    for (store, release) in stores.iter().filter_map(|store| Some((store, store.release()?))) {
        add(&store.name, release);
    }
    add(
        "load",
        "from a process of its own with one thread, on the same cores; rows 4, 6 and 12 from this one".to_owned(),
    );
    facts
}

fn fact(what: &str, is: &str) -> String {
    format!("{what:<18}  {is}\n")
}

/// How long an access to memory takes at this moment. Where guests of one host share caches and
/// memory, it can take several times as long as a minute before, and every request takes longer.
pub(crate) fn memory(when: &str) -> String {
    let [small, large] = [4, 64].map(access_ns);
    let is = format!("4 MiB {small:.0} ns, 64 MiB {large:.0} ns (an access at random)");
    fact(&format!("memory, {when}"), &is)
}

/// Reads in this many MiB, a power of two: nanoseconds of an access that waits for the one before.
fn access_ns(mib: usize) -> f64 {
    let lines = vec![[1_u64; CACHE_LINE / size_of::<u64>()]; (mib << 20) / CACHE_LINE];
    let mut place = 0_u64;
    let begun = Instant::now();
    for _ in 0..ACCESSES {
        // A linear congruential generator, whose increment is what was read: it comes to each line
        // once before it comes to one again.
        place = place.wrapping_mul(MULTIPLIER).wrapping_add(lines[place as usize % lines.len()][0]);
    }
    black_box(place);
    begun.elapsed().as_secs_f64() * 1e9 / ACCESSES as f64
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
    /// Of this process, in which the server runs.
    pub(crate) process: Duration,
    /// Of the load generator's process; where it is no process of its own, in that above.
    pub(crate) generator: Duration,
    /// Of the measured servers of PostgreSQL that run on this machine.
    pub(crate) postgres: Duration,
    /// Of all programs on this machine, with what its host took for others.
    machine: Duration,
    /// What all cores had.
    cores: Duration,
}

/// Of the kernel's CPU times, its own clock aside (`sysconf(_SC_CLK_TCK)` on Linux).
const TICKS_PER_SECOND: u64 = 100;

impl CpuTime {
    /// So far.
    pub(crate) fn now() -> Self {
        let postgres = postgres_ticks();
        Self::own(postgres)
    }

    /// What was used since then.
    pub(crate) fn since(then: Self) -> Self {
        // What it costs to look at PostgreSQL does not count.
        let mut now = Self::own(0);
        now.postgres = of_ticks(postgres_ticks());
        Self {
            process: now.process.saturating_sub(then.process),
            generator: Duration::ZERO,
            postgres: now.postgres.saturating_sub(then.postgres),
            machine: now.machine.saturating_sub(then.machine),
            cores: now.cores.saturating_sub(then.cores),
        }
    }

    /// The part of the machine that others took meanwhile, of 1.
    pub(crate) fn of_others(self) -> f64 {
        let others = self.machine.saturating_sub(self.process + self.generator + self.postgres);
        others.as_secs_f64() / self.cores.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn own(postgres: u64) -> Self {
        let stat = Stat::of(Path::new("/proc/self")).expect("Linux");
        let [machine, cores] = machine_ticks();
        let [process, postgres, machine, cores] = [stat.own, postgres, machine, cores].map(of_ticks);
        Self { process, generator: Duration::ZERO, postgres, machine, cores }
    }

    /// A part of it.
    pub(crate) fn each(self, count: u64) -> Self {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let parts = [self.process, self.generator, self.postgres, self.machine, self.cores];
        let [process, generator, postgres, machine, cores] = parts.map(|time| time / count);
        Self { process, generator, postgres, machine, cores }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.process += other.process;
        self.generator += other.generator;
        self.postgres += other.postgres;
        self.machine += other.machine;
        self.cores += other.cores;
    }
}

/// Ticks of all cores so far: those that programs used or the host took, and all. Interrupts count
/// only among all: some of them are a program's own, and among its CPU time too.
fn machine_ticks() -> [u64; 2] {
    let text = fs::read_to_string("/proc/stat").expect("Linux");
    let of_all_cores = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    // user, nice, system, idle, waiting for the disk, two kinds of interrupts, taken by the host.
    let ticks: Vec<u64> = of_all_cores.take(8).map(|ticks| ticks.parse().expect("ticks")).collect();
    let used = [0, 1, 2, 7].iter().filter_map(|field| ticks.get(*field)).sum();
    [used, ticks.iter().sum()]
}

fn of_ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
}

/// First processes of the measured servers of PostgreSQL, whose children do the work.
static POSTMASTERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Counts the CPU time of the server of PostgreSQL that has this process, if that is on this
/// machine.
pub(crate) fn count_postgres(process: u32) {
    let stat = Stat::of(&Path::new("/proc").join(process.to_string()));
    if let Some(stat) = stat.filter(|stat| stat.name == "postgres") {
        POSTMASTERS.lock().expect("no panic").push(stat.parent);
    }
}

/// CPU time of the measured servers. That of a process that ended is in its parent's, so the sum
/// only grows.
fn postgres_ticks() -> u64 {
    let postmasters = POSTMASTERS.lock().expect("no panic");
    if postmasters.is_empty() {
        return 0;
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    // Others may end meanwhile.
    let stats = entries.filter_map(|entry| Stat::of(&entry.path()));
    let measured = stats.filter(|stat| [stat.process, stat.parent].iter().any(|it| postmasters.contains(it)));
    measured.map(|stat| stat.own + stat.of_ended_children).sum()
}

/// What the kernel says of a process; CPU times in ticks.
struct Stat {
    process: u32,
    name: String,
    parent: u32,
    own: u64,
    of_ended_children: u64,
}

impl Stat {
    /// Of the process with this folder, if there is one.
    fn of(folder: &Path) -> Option<Self> {
        let text = fs::read_to_string(folder.join("stat")).ok()?;
        // The name, in parentheses, may hold blanks. The parent is the 4th field; `utime`, `stime`,
        // `cutime` and `cstime` are the 14th to 17th.
        let (process, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(Self {
            process: process.parse().ok()?,
            name: name.to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            own: ticks(14)? + ticks(15)?,
            of_ended_children: ticks(16)? + ticks(17)?,
        })
    }
}
