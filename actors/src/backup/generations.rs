//! Generations of a backup: the states in which its last runs left it, each of which can be
//! restored. A generation is a folder with the same files under the same names. They are hard
//! links, since a file of blocks is never changed and `keys` is replaced by another file: a
//! generation takes no room of its own.
//!
//! ```text
//! <backup>/generations/2026-07-01T12-00-00.250Z/   000001.blocks, …, keys
//! ```
//!
//! A generation has its name when it is whole. Generations share their bytes with the backup: they
//! lead back to an earlier state, and do not replace a second copy of the backup.

use std::path::{Path, PathBuf};

use super::BackupError;
use super::folder::{BackupRun, KEYS, LOCK, machine, names, number_of, sync_folder, unfinished};
use crate::store::create_private_folder;

/// The folder of the generations, in that of the backup.
const GENERATIONS: &str = "generations";
/// Letters of the name of a generation: a digit for each `0`.
const NAME: &[u8] = b"0000-00-00T00-00-00.000Z";

/// Generations of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generations {
    /// The folder of the one that was made.
    pub made: PathBuf,
    /// How many there are now.
    pub count: usize,
}

impl BackupRun {
    /// Keeps the backup as [`BackupRun::take`] left it as a generation of this name, a time such as
    /// `2026-07-01T12-00-00.250Z`, and removes the oldest generations beyond `keep`.
    pub fn keep(&self, name: &str, keep: usize) -> Result<Generations, BackupError> {
        let backup = self.path();
        let folder = backup.join(GENERATIONS);
        create_private_folder(&folder).map_err(|source| machine(&folder, source))?;
        for left_over in names(&folder)?.iter().filter(|name| name.strip_suffix('~').is_some_and(is_generation)) {
            remove(&folder.join(left_over))?;
        }
        let made = folder.join(name);
        let unnamed = unfinished(&made);
        create_private_folder(&unnamed).map_err(|source| machine(&unnamed, source))?;
        for file in names(backup)?.iter().filter(|name| *name == KEYS || number_of(name).is_some()) {
            let link = unnamed.join(file);
            std::fs::hard_link(backup.join(file), &link).map_err(|source| machine(&link, source))?;
        }
        sync_folder(&unnamed)?;
        std::fs::rename(&unnamed, &made).map_err(|source| machine(&made, source))?;
        // The one that was made stays, whatever the clock says of the others.
        let mut others = names(&folder)?;
        others.retain(|other| is_generation(other) && other != name);
        let too_many = (others.len() + 1).saturating_sub(keep.max(1));
        for old in others.drain(..too_many) {
            let unnamed = unfinished(&folder.join(&old));
            std::fs::rename(folder.join(&old), &unnamed).map_err(|source| machine(&unnamed, source))?;
            remove(&unnamed)?;
        }
        sync_folder(&folder)?;
        Ok(Generations { made, count: others.len() + 1 })
    }
}

/// Removes a generation; it is an error when there is anything else in its folder.
fn remove(generation: &Path) -> Result<(), BackupError> {
    for file in names(generation)?.iter().filter(|name| *name == KEYS || *name == LOCK || number_of(name).is_some()) {
        let path = generation.join(file);
        std::fs::remove_file(&path).map_err(|source| machine(&path, source))?;
    }
    std::fs::remove_dir(generation).map_err(|source| machine(generation, source))
}

fn is_generation(name: &str) -> bool {
    let fits = |(letter, shape): (u8, &u8)| if *shape == b'0' { letter.is_ascii_digit() } else { letter == *shape };
    name.len() == NAME.len() && name.bytes().zip(NAME).all(fits)
}
