//! Power cuts without a machine to unplug: a process runs under `shim.c`, is killed, and then loses
//! its unsynced writes.
//!
//! A kill alone proves nothing, since the kernel still writes the dirty pages of the process. Here
//! the shim logs every change below one folder with the content that it replaces, and [`Shim::cut`]
//! takes changes back as a disk might have. Its model:
//!
//! - **Contents.** A change is durable once an `fsync` or `fdatasync` of the file that began after
//!   it has succeeded. Of the others each sector of 512 bytes (or each page of 4 KiB, by chance)
//!   has its old content, its newest or one in between, whatever the order of the writes. A sector
//!   that the file did not have before may be zeros.
//! - **Sizes.** A file has any size that it had since its sync, or one within its last growth. A
//!   truncation that survives takes the content with it; one that does not leaves it.
//! - **Names.** A file that was created, renamed or removed is durably so once its folder was
//!   synced. A sync of the file itself does not count: ext4, xfs and btrfs happen to make a new
//!   name durable with it, POSIX does not promise it, and a store that holds under the stricter
//!   rule holds under theirs. Changes in a folder belong to the folder's name at that time.
//!   Unsynced names survive either in the order in which they were made, as a file system with a
//!   journal keeps them, or each by chance.
//!
//! By its seed a cut takes everything unsynced, or nothing, or stops at one moment, or goes by
//! chance; see [`Shim::cut`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What the disk does with a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// What it promises.
    Honest,
    /// It answers that it did and does not.
    Lying,
    /// `fdatasync` does nothing, as sled's `sync_file_range` would without `durable_sync`.
    WithPlainRangeSync,
}

/// What a cut took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Unsynced sectors that do not hold their newest content.
    pub sectors_lost: usize,
    /// Unsynced sectors that do.
    pub sectors_kept: usize,
    /// Files and folders whose unsynced creation, renaming or removal was taken back.
    pub names_lost: usize,
}

/// The library that is loaded into a process so that its power can be cut.
pub struct Shim {
    library: PathBuf,
    disk: Disk,
    /// Removed with the library in it.
    _folder: TempDir,
}

impl Shim {
    /// Compiles the library, with the C compiler that `CC` names, or `cc`.
    pub fn build() -> Shim {
        let folder = TempDir::new().unwrap();
        let (source, library) = (folder.path().join("shim.c"), folder.path().join("shim.so"));
        fs::write(&source, include_str!("shim.c")).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut command = Command::new(&compiler);
        command
            .args(["-shared", "-fPIC", "-Wl,-Bsymbolic-functions", "-O2", "-pthread", "-o"])
            .arg(&library)
            .arg(&source);
        match command.output() {
            Ok(output) if output.status.success() => Shim { library, disk: Disk::Honest, _folder: folder },
            Ok(output) => panic!("{compiler} refused the shim:\n{}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => panic!("the power cuts need a C compiler, and {compiler} can't be run: {error}"),
        }
    }

    /// The same library over another disk.
    pub fn with_disk(self, disk: Disk) -> Shim {
        Shim { disk, ..self }
    }

    /// Makes the process that `command` will start lose its unsynced changes below `folder` at the
    /// next [`Shim::cut`]. Processes that wrote there since the last cut must have ended, and have
    /// run under the shim: what they left unsynced is lost with it, and names that were made
    /// without the shim are removed here.
    pub fn command(&self, command: &mut Command, folder: &Path) {
        let folder = folder.canonicalize().unwrap();
        let notes = notes_of(&folder);
        if notes.exists() {
            take_back_the_unlogged(&folder, &notes);
        } else {
            fs::create_dir_all(notes.join(ORIGINALS)).unwrap();
            Names::on_disk(&folder, &notes).store(&notes.join(NAMES_BEFORE));
        }
        let disk = match self.disk {
            Disk::Honest => "honest",
            Disk::Lying => "lying",
            Disk::WithPlainRangeSync => "range",
        };
        command
            .env("LD_PRELOAD", &self.library)
            .env("CENTAVO_CUT_FOLDER", &folder)
            .env("CENTAVO_CUT_LOG", notes.join(LOG))
            .env("CENTAVO_CUT_KEPT", notes.join(ORIGINALS))
            .env("CENTAVO_CUT_DISK", disk)
            .env("CENTAVO_CUT_KILL", "0");
    }

    /// Has the process of `command` kill itself in the middle of its n-th change or sync, instead
    /// of at a moment that depends on the machine. Call it after [`Shim::command`].
    pub fn kill_at(&self, command: &mut Command, change: u64) {
        command.env("CENTAVO_CUT_KILL", change.to_string());
    }

    /// Cuts the power of the processes that wrote below `folder`; they must have ended, best by a
    /// kill.
    ///
    /// Which of the unsynced changes survive is decided by `seed` alone: none if it is a multiple
    /// of 8, all if it is one more, those before some moment if two more, and else by chance. Eight
    /// seeds in a row show every extreme.
    pub fn cut(&self, folder: &Path, seed: u64) -> Loss {
        let folder = folder.canonicalize().unwrap();
        let notes = notes_of(&folder);
        let log = fs::read(notes.join(LOG)).unwrap_or_default();
        let history = History::parse(&log);
        let mut chance = Chance(seed);
        let fate = Fate::of(seed, log.len() as u64, &mut chance);
        let mut loss = Loss::default();
        for (inode, file) in &history.files {
            file.cut(&notes.join(ORIGINALS).join(inode.to_string()), fate, &mut chance, &mut loss);
        }
        let names = Names::load(&notes.join(NAMES_BEFORE));
        history.names_after(names, fate, &mut chance, &mut loss).restore(&folder, &notes);
        fs::remove_dir_all(&notes).unwrap();
        loss
    }
}

/// Forgets a record that is not whole, and takes back a name that was changed without one, as if a
/// process that was killed in the middle of a change had been killed before it.
fn take_back_the_unlogged(folder: &Path, notes: &Path) {
    let log = fs::read(notes.join(LOG)).unwrap_or_default();
    let history = History::parse(&log);
    if history.length < log.len() as u64 {
        OpenOptions::new().write(true).open(notes.join(LOG)).unwrap().set_len(history.length).unwrap();
    }
    let before = Names::load(&notes.join(NAMES_BEFORE));
    history.names_after(before, Fate::EverythingSurvives, &mut Chance(0), &mut Loss::default()).restore(folder, notes);
}

/// Beside the folder, since its files are there under second names. What stands there is the
/// shim's and the cut's.
fn notes_of(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().unwrap().to_os_string();
    name.push(".power-cut");
    folder.with_file_name(name)
}

const LOG: &str = "log";
const ORIGINALS: &str = "kept";
const NAMES_BEFORE: &str = "names";

/// The principle by which one cut chooses.
#[derive(Debug, Clone, Copy)]
enum Fate {
    NothingSurvives,
    EverythingSurvives,
    /// As if every change had reached the disk at once, up to this length of the log.
    StopsAt(u64),
    Chance {
        /// How likely the newest survives, in percent.
        survival: u64,
        /// Unit that is lost or survives as a whole, in sectors.
        grain: u64,
        /// Whether names survive in their order only.
        names_in_order: bool,
    },
}

impl Fate {
    fn of(seed: u64, log_length: u64, chance: &mut Chance) -> Fate {
        match seed % 8 {
            0 => Fate::NothingSurvives,
            1 => Fate::EverythingSurvives,
            2 => Fate::StopsAt(chance.below(log_length + 1)),
            _ => Fate::Chance {
                survival: [2, 10, 30, 50, 70, 90, 98][chance.below(7) as usize],
                grain: [1, 8][chance.below(2) as usize],
                names_in_order: chance.below(2) == 0,
            },
        }
    }
}

/// Events of the log, by file, and for names in the order of time.
#[derive(Default)]
struct History<'log> {
    files: BTreeMap<u64, FileHistory<'log>>,
    names: Vec<(u64, NameChange)>,
    /// How far the log had come when the last sync of a folder began, by the folder's path.
    folder_syncs: BTreeMap<PathBuf, u64>,
    /// Of the whole records, in bytes.
    length: u64,
}

/// The unsynced changes of one file.
#[derive(Default)]
struct FileHistory<'log> {
    changes: Vec<Change<'log>>,
}

struct Change<'log> {
    /// Where its record stands in the log.
    at: u64,
    size_before: u64,
    /// The size that a resize gives to the file; a write gives none.
    new_size: Option<u64>,
    /// The sectors that it touches.
    sectors: std::ops::Range<u64>,
    old_offset: u64,
    old: &'log [u8],
}

enum NameChange {
    Create(PathBuf, u64),
    Unlink(PathBuf),
    Rename(PathBuf, PathBuf),
    MakeFolder(PathBuf),
    RemoveFolder(PathBuf),
}

impl<'log> History<'log> {
    /// Reads the shim's records. A last one that is not whole belongs to a change that was never
    /// made.
    fn parse(log: &'log [u8]) -> History<'log> {
        let mut history = History::default();
        let mut rest = log;
        while let Some((header, behind)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let at = (log.len() - rest.len()) as u64;
            let word = |index: usize| u64::from_ne_bytes(*header[8 * index..].first_chunk().unwrap());
            assert_eq!(word(0), MAGIC, "the log is not the shim's at byte {at}");
            let payload_length = usize::try_from(word(7)).unwrap();
            let Some((payload, behind)) = behind.split_at_checked(payload_length) else { break };
            history.note(at, [word(1), word(2), word(3), word(4), word(5), word(6)], payload);
            rest = behind;
        }
        history.length = (log.len() - rest.len()) as u64;
        history
    }

    fn note(&mut self, at: u64, words: [u64; 6], payload: &'log [u8]) {
        let [kind, inode, offset, length, size_before, old_offset] = words;
        let path = || PathBuf::from(std::str::from_utf8(payload).unwrap());
        match kind {
            WRITE => {
                let sectors = offset / SECTOR..(offset + length).div_ceil(SECTOR);
                let change = Change { at, size_before, new_size: None, sectors, old_offset, old: payload };
                self.files.entry(inode).or_default().changes.push(change);
            }
            RESIZE => {
                // Growth touches no sector: the added part reads as zeros, as everything beyond the
                // end does.
                let sectors = if length < size_before { length / SECTOR..size_before.div_ceil(SECTOR) } else { 0..0 };
                let change = Change { at, size_before, new_size: Some(length), sectors, old_offset, old: payload };
                self.files.entry(inode).or_default().changes.push(change);
            }
            // A sync vouches for what stood in the log before it began.
            SYNC => self.files.entry(inode).or_default().changes.retain(|change| change.at >= offset),
            SYNC_FOLDER => {
                let began = self.folder_syncs.entry(path()).or_default();
                *began = offset.max(*began);
            }
            CREATE => self.names.push((at, NameChange::Create(path(), inode))),
            UNLINK => self.names.push((at, NameChange::Unlink(path()))),
            MAKE_FOLDER => self.names.push((at, NameChange::MakeFolder(path()))),
            REMOVE_FOLDER => self.names.push((at, NameChange::RemoveFolder(path()))),
            RENAME => {
                let (from, to) = std::str::from_utf8(payload).unwrap().split_once('\0').unwrap();
                self.names.push((at, NameChange::Rename(from.into(), to.into())));
            }
            other => panic!("the shim wrote a record of kind {other}"),
        }
    }

    /// The names that the folder has after the cut.
    fn names_after(&self, mut names: Names, fate: Fate, chance: &mut Chance, loss: &mut Loss) -> Names {
        let is_durable = |(at, change): &(u64, NameChange)| {
            change.parents().iter().all(|parent| self.folder_syncs.get(*parent).is_some_and(|began| began > at))
        };
        let durable_to = self.names.iter().rposition(is_durable).map_or(0, |last| last + 1);
        let kept_to = durable_to + chance.below((self.names.len() - durable_to) as u64 + 1) as usize;
        for (index, named) in self.names.iter().enumerate() {
            let survives = is_durable(named)
                || match fate {
                    Fate::NothingSurvives => false,
                    Fate::EverythingSurvives => true,
                    Fate::StopsAt(end) => named.0 < end,
                    Fate::Chance { names_in_order: true, .. } => index < kept_to,
                    Fate::Chance { survival, .. } => chance.below(100) < survival,
                };
            match survives {
                true => names.apply(&named.1),
                false => loss.names_lost += 1,
            }
        }
        names
    }
}

impl FileHistory<'_> {
    /// Gives the file, which is known by `path`, the content and size that the cut leaves it.
    fn cut(&self, path: &Path, fate: Fate, chance: &mut Chance, loss: &mut Loss) {
        if self.changes.is_empty() {
            return;
        }
        let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        let size_now = file.metadata().unwrap().len();
        // The sizes and truncations are those after this many changes; each sector goes its own way
        // between them.
        let sized_to = self.sized_to(fate, chance);
        let size = self.size_after(sized_to, size_now, fate, chance);
        let mut touched: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, change) in self.changes.iter().enumerate() {
            change.sectors.clone().for_each(|sector| touched.entry(sector).or_default().push(index));
        }
        let mut grain_choice = (u64::MAX, 0);
        for (sector, touching) in touched {
            // Version 0 is the content before the first of the changes; the last version is the
            // present content.
            let is_resize = |index: usize| self.changes[touching[index]].new_size.is_some();
            let lowest =
                (0..touching.len()).rev().find(|i| is_resize(*i) && touching[*i] < sized_to).map_or(0, |i| i + 1);
            let unmade = (lowest..touching.len()).find(|i| is_resize(*i) && touching[*i] >= sized_to);
            let highest = unmade.unwrap_or(touching.len());
            let version = match fate {
                Fate::NothingSurvives => lowest,
                Fate::EverythingSurvives => highest,
                Fate::StopsAt(_) => touching.iter().filter(|change| **change < sized_to).count().clamp(lowest, highest),
                Fate::Chance { survival, grain, .. } => {
                    if grain_choice.0 != sector / grain {
                        grain_choice = (sector / grain, chance.next());
                    }
                    let mut choice = Chance(grain_choice.1);
                    match choice.below(100) < survival {
                        true => highest,
                        false => lowest + choice.below((highest - lowest) as u64 + 1) as usize,
                    }
                }
            };
            if version == touching.len() {
                loss.sectors_kept += 1;
                continue;
            }
            loss.sectors_lost += 1;
            let old = self.changes[touching[version]].old_sector(sector);
            file.write_all_at(&old, sector * SECTOR).unwrap();
        }
        file.set_len(size).unwrap();
    }

    fn sized_to(&self, fate: Fate, chance: &mut Chance) -> usize {
        let all = self.changes.len();
        match fate {
            Fate::NothingSurvives => 0,
            Fate::EverythingSurvives => all,
            Fate::StopsAt(end) => self.changes.iter().filter(|change| change.at < end).count(),
            Fate::Chance { survival, .. } if chance.below(100) < survival => all,
            Fate::Chance { .. } => chance.below(all as u64 + 1) as usize,
        }
    }

    /// The size after the first `count` changes; by chance with a part of the growth that the next
    /// one brings.
    fn size_after(&self, count: usize, size_now: u64, fate: Fate, chance: &mut Chance) -> u64 {
        let size_before = |index: usize| self.changes.get(index).map_or(size_now, |change| change.size_before);
        let (size, next) = (size_before(count), size_before(count + 1));
        let sectors_grown = next.saturating_sub(size).div_ceil(SECTOR);
        match fate {
            Fate::Chance { .. } if sectors_grown > 0 => (size + chance.below(sectors_grown) * SECTOR).min(next),
            _ => size,
        }
    }
}

impl Change<'_> {
    /// What a sector held before this change, with zeros beyond the end of the file.
    fn old_sector(&self, sector: u64) -> [u8; SECTOR as usize] {
        let mut content = [0; SECTOR as usize];
        let from = usize::try_from(sector * SECTOR - self.old_offset).unwrap();
        if let Some(old) = self.old.get(from..) {
            let length = old.len().min(content.len());
            content[..length].copy_from_slice(&old[..length]);
        }
        content
    }
}

impl NameChange {
    /// The folders whose syncs make it durable.
    fn parents(&self) -> Vec<&Path> {
        match self {
            NameChange::Create(path, _)
            | NameChange::Unlink(path)
            | NameChange::MakeFolder(path)
            | NameChange::RemoveFolder(path) => vec![parent_of(path)],
            NameChange::Rename(from, to) => vec![parent_of(from), parent_of(to)],
        }
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The folders and the files below the folder, by inode.
#[derive(Default)]
struct Names {
    folders: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, u64>,
}

impl Names {
    /// The names that are there now. Every file gets a second name among the notes, so that its
    /// inode's number stays its own.
    fn on_disk(folder: &Path, notes: &Path) -> Names {
        let mut names = Names::default();
        let mut unread = vec![folder.to_path_buf()];
        while let Some(next) = unread.pop() {
            for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
                let path = entry.path().strip_prefix(folder).unwrap().to_path_buf();
                let metadata = entry.metadata().unwrap();
                if metadata.is_dir() {
                    names.folders.insert(path);
                    unread.push(entry.path());
                } else {
                    assert!(metadata.is_file(), "{}: not a file", path.display());
                    fs::hard_link(entry.path(), notes.join(ORIGINALS).join(metadata.ino().to_string())).unwrap();
                    names.files.insert(path, metadata.ino());
                }
            }
        }
        names
    }

    fn store(&self, place: &Path) {
        let folders = self.folders.iter().map(|path| format!("0 {}\n", path.to_str().unwrap()));
        let files = self.files.iter().map(|(path, inode)| format!("{inode} {}\n", path.to_str().unwrap()));
        fs::write(place, folders.chain(files).collect::<String>()).unwrap();
    }

    fn load(place: &Path) -> Names {
        let mut names = Names::default();
        for line in fs::read_to_string(place).unwrap().lines() {
            match line.split_once(' ').unwrap() {
                ("0", path) => drop(names.folders.insert(path.into())),
                (inode, path) => drop(names.files.insert(path.into(), inode.parse().unwrap())),
            }
        }
        names
    }

    /// Makes a change, if those before it that it needs were made.
    fn apply(&mut self, change: &NameChange) {
        let has_parent = |names: &Names, path: &Path| {
            let parent = parent_of(path);
            parent == Path::new("") || names.folders.contains(parent)
        };
        match change {
            NameChange::Create(path, inode) if has_parent(self, path) => drop(self.files.insert(path.clone(), *inode)),
            NameChange::MakeFolder(path) if has_parent(self, path) => drop(self.folders.insert(path.clone())),
            NameChange::Rename(from, to) if has_parent(self, to) => {
                if let Some(inode) = self.files.remove(from) {
                    self.files.insert(to.clone(), inode);
                }
                self.rename_folder(from, to);
            }
            NameChange::Unlink(path) => drop(self.files.remove(path)),
            NameChange::RemoveFolder(path) => {
                let is_inside = |inside: &PathBuf| inside != path && inside.starts_with(path);
                if !self.files.keys().any(is_inside) && !self.folders.iter().any(is_inside) {
                    self.folders.remove(path);
                }
            }
            NameChange::Create(..) | NameChange::MakeFolder(..) | NameChange::Rename(..) => {}
        }
    }

    /// Moves the paths below a folder, and its own.
    fn rename_folder(&mut self, from: &Path, to: &Path) {
        let moved = |path: PathBuf| match path.strip_prefix(from) {
            Ok(inside) if inside == Path::new("") => to.to_path_buf(),
            Ok(inside) => to.join(inside),
            Err(_) => path,
        };
        if self.folders.contains(from) {
            self.folders = std::mem::take(&mut self.folders).into_iter().map(moved).collect();
            let files = std::mem::take(&mut self.files).into_iter();
            self.files = files.map(|(path, inode)| (moved(path), inode)).collect();
        }
    }

    /// Gives the folder these names and no others.
    fn restore(&self, folder: &Path, notes: &Path) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => fs::remove_dir_all(entry.path()).unwrap(),
                false => fs::remove_file(entry.path()).unwrap(),
            }
        }
        self.folders.iter().for_each(|path| fs::create_dir(folder.join(path)).unwrap());
        for (path, inode) in &self.files {
            fs::hard_link(notes.join(ORIGINALS).join(inode.to_string()), folder.join(path)).unwrap();
        }
    }
}

/// Chance that can be had again: SplitMix64.
#[derive(Debug, Clone)]
pub struct Chance(
    /// The state: a seed, at first.
    pub u64,
);

impl Chance {
    /// The next 64 bits.
    #[allow(clippy::should_implement_trait, reason = "it never ends, so it is no iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

const SECTOR: u64 = 512;
const HEADER_BYTES: usize = 64;
const MAGIC: u64 = 0x6f67_6e75_7265_7770;

const WRITE: u64 = 1;
const RESIZE: u64 = 2;
const SYNC: u64 = 3;
const CREATE: u64 = 4;
const UNLINK: u64 = 5;
const RENAME: u64 = 6;
const MAKE_FOLDER: u64 = 7;
const REMOVE_FOLDER: u64 = 8;
const SYNC_FOLDER: u64 = 9;
