//! Faults of a data folder's files, made behind the server's back.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use store::testkit::power_cut::Chance;

/// Purpose of a file, read from its path, so that files that come with a later release are hit too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Journal,
    /// The write-ahead log.
    Wal,
    /// The file beside a closed segment that says what it holds and where it ends.
    Closing,
    State,
    /// Data derived from the journal, in files.
    Derived,
    Anchor,
    MasterKey,
    Ballast,
    Lock,
    Other,
}

/// How it is damaged.
#[derive(Clone, Debug)]
enum Harm {
    FlipBit {
        offset: u64,
        bit: u8,
    },
    ZeroBlock {
        block: u64,
    },
    SwapBlocks {
        one: u64,
        other: u64,
    },
    Truncate {
        length: u64,
    },
    LoseFile,
    /// The folder that the file is in, with all else in it.
    LoseFolder,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) part: Part,
    /// Below the data folder.
    file: PathBuf,
    harm: Harm,
}

/// What a disk writes or loses as one.
const BLOCK_BYTES: usize = 4_096;

/// How often each part is chosen, where the folder has it.
const WEIGHTS: [(Part, u64); 10] = [
    (Part::Journal, 33),
    (Part::Wal, 12),
    (Part::Closing, 8),
    (Part::State, 20),
    (Part::Derived, 12),
    (Part::Anchor, 8),
    (Part::MasterKey, 4),
    (Part::Ballast, 2),
    (Part::Lock, 2),
    (Part::Other, 2),
];

impl Fault {
    /// Chooses what happens to a folder.
    pub(crate) fn choose(data: &Path, chance: &mut Chance) -> Self {
        let files = files_below(data);
        let part = choose_part(&files, chance);
        let files: Vec<PathBuf> = files.into_iter().filter(|file| part_of(file) == part).collect();
        let file = files[chance.below(files.len() as u64) as usize].clone();
        let content = fs::read(data.join(&file)).unwrap();
        let harm = Harm::choose(&content, chance);
        match harm {
            // The database of the current segment can be lost as a whole.
            Harm::LoseFile if part == Part::Journal && file.iter().count() > 2 && chance.below(3) == 0 => {
                Self { part, file, harm: Harm::LoseFolder }
            }
            harm => Self { part, file, harm },
        }
    }

    /// Lets it happen.
    pub(crate) fn inflict(&self, data: &Path) {
        let path = data.join(&self.file);
        let open = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        match self.harm {
            Harm::FlipBit { offset, bit } => {
                let (file, mut byte) = (open(), [0]);
                file.read_exact_at(&mut byte, offset).unwrap();
                file.write_all_at(&[byte[0] ^ (1 << bit)], offset).unwrap();
            }
            Harm::ZeroBlock { block } => {
                let file = open();
                let length = file.metadata().unwrap().len();
                let from = block * BLOCK_BYTES as u64;
                let count = (length - from).min(BLOCK_BYTES as u64) as usize;
                file.write_all_at(&[0; BLOCK_BYTES][..count], from).unwrap();
            }
            Harm::SwapBlocks { one, other } => {
                let file = open();
                let at = |block: u64| block * BLOCK_BYTES as u64;
                let (mut first, mut second) = ([0; BLOCK_BYTES], [0; BLOCK_BYTES]);
                file.read_exact_at(&mut first, at(one)).unwrap();
                file.read_exact_at(&mut second, at(other)).unwrap();
                file.write_all_at(&second, at(one)).unwrap();
                file.write_all_at(&first, at(other)).unwrap();
            }
            Harm::Truncate { length } => open().set_len(length).unwrap(),
            Harm::LoseFile => fs::remove_file(&path).unwrap(),
            Harm::LoseFolder => fs::remove_dir_all(path.parent().unwrap()).unwrap(),
        }
    }
}

impl Harm {
    fn choose(content: &[u8], chance: &mut Chance) -> Self {
        let used: Vec<u64> = used_blocks(content);
        if used.is_empty() {
            return [Harm::LoseFile, Harm::Truncate { length: 0 }][chance.below(2) as usize].clone();
        }
        let block = choose_block(&used, chance);
        let whole: Vec<u64> =
            used.iter().copied().filter(|block| (block + 1) * BLOCK_BYTES as u64 <= content.len() as u64).collect();
        match chance.below(100) {
            0..45 => {
                let in_block = BLOCK_BYTES.min(content.len() - block as usize * BLOCK_BYTES) as u64;
                let offset = block * BLOCK_BYTES as u64 + chance.below(in_block);
                Harm::FlipBit { offset, bit: chance.below(8) as u8 }
            }
            45..65 => Harm::ZeroBlock { block },
            65..75 if whole.len() > 1 => {
                let one = chance.below(whole.len() as u64) as usize;
                let other = (one + 1 + chance.below(whole.len() as u64 - 1) as usize) % whole.len();
                Harm::SwapBlocks { one: whole[one], other: whole[other] }
            }
            65..90 => {
                let end = (used[used.len() - 1] + 1) * BLOCK_BYTES as u64;
                let length = if chance.below(5) == 0 { 0 } else { chance.below(end.min(content.len() as u64)) };
                Harm::Truncate { length }
            }
            _ => Harm::LoseFile,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {:?}", self.file.display(), self.harm)
    }
}

/// What a file is for.
fn part_of(file: &Path) -> Part {
    let top = file.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    match top {
        "journal" if file.extension().is_some_and(|extension| extension == "closed") => Part::Closing,
        "journal" if file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("wal-")) => Part::Wal,
        "journal" => Part::Journal,
        "state" => Part::State,
        "files" => Part::Derived,
        "anchor" => Part::Anchor,
        "master.key" => Part::MasterKey,
        "ballast" => Part::Ballast,
        "lock" => Part::Lock,
        _ => Part::Other,
    }
}

/// The files below a folder, by their paths in it, in order.
fn files_below(data: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![data.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path().strip_prefix(data).unwrap().to_path_buf()),
            }
        }
    }
    files.sort();
    files
}

fn choose_part(files: &[PathBuf], chance: &mut Chance) -> Part {
    let there = WEIGHTS.iter().filter(|(part, _)| files.iter().any(|file| part_of(file) == *part));
    let there: Vec<(Part, u64)> = there.copied().collect();
    let mut choice = chance.below(there.iter().map(|(_, weight)| weight).sum());
    for (part, weight) in &there {
        match choice.checked_sub(*weight) {
            Some(rest) => choice = rest,
            None => return *part,
        }
    }
    unreachable!("the choice is below the sum of the weights")
}

/// The blocks that hold anything but zeros: harm elsewhere harms nothing.
fn used_blocks(content: &[u8]) -> Vec<u64> {
    let blocks = (0..).zip(content.chunks(BLOCK_BYTES));
    blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0)).map(|(number, _)| number).collect()
}

/// A block of those that are used; the last ones and the first more often, for there a file shows
/// what is in it.
fn choose_block(used: &[u64], chance: &mut Chance) -> u64 {
    let all = used.len() as u64;
    let place = match chance.below(10) {
        0 => 0,
        1..4 => all - 1 - chance.below(all.min(4)),
        _ => chance.below(all),
    };
    used[place as usize]
}
