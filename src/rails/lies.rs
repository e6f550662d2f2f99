//! Lies of the sandbox's institutions: an operator tells one of them to write a false line into the
//! next file that it writes. Its records, and so what the engine books, stay true. A lie that is
//! still to be told stands in a file, so that each process that uses the institution knows it.

use std::collections::BTreeMap;
use std::fs::remove_file;
use std::io;
use std::path::{Path, PathBuf};

use super::folder_lock::{FolderLock, Patience};
use super::lines::{read_lines, write_whole};

/// An institution that writes files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Institution {
    /// The acquirer: CSV of a batch.
    Acquirer,
    /// The PIX institution: list of the payments of a day.
    Pix,
    /// The bank: statements of a day of the settlement account and of the PIX account.
    Bank,
}

/// A false line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// The first line has a centavo more.
    Amount,
    /// The first line has a centavo more of fee. Only the acquirer's lines have fees.
    Fee,
    /// The first line has another day: the one before. Only the acquirer tells it: the files of the
    /// others have a period, in which it would not lie.
    Date,
    /// The first line is left out.
    Missing,
    /// There is a line more, of which the books know nothing.
    Added,
    /// The first line is there twice.
    Twice,
}

impl Institution {
    /// The names of the interface, in order.
    pub const NAMES: [&str; 3] = ["acquirer", "pix", "bank"];

    const ALL: [Self; 3] = [Self::Acquirer, Self::Pix, Self::Bank];

    /// The institution of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl Lie {
    /// Whether an institution can tell it.
    pub fn is_of(self, institution: Institution) -> bool {
        institution == Institution::Acquirer || !matches!(self, Self::Fee | Self::Date)
    }

    /// The names of the interface, in order.
    pub const NAMES: [&str; 6] = ["amount", "fee", "date", "missing", "added", "twice"];

    const ALL: [Self; 6] = [Self::Amount, Self::Fee, Self::Date, Self::Missing, Self::Added, Self::Twice];

    /// The lie of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Changes the lines of a file, of which there is at least one. `change` makes a line false:
    /// by amount, fee or day, or into one of which the books know nothing.
    pub fn tell<L: Clone>(self, lines: &mut Vec<L>, change: impl FnOnce(Self, &mut L)) {
        let Some(first) = lines.first().cloned() else { return };
        match self {
            Self::Amount | Self::Fee | Self::Date => change(self, &mut lines[0]),
            Self::Missing => drop(lines.remove(0)),
            Self::Twice => lines.push(first),
            Self::Added => {
                let mut added = first;
                change(self, &mut added);
                lines.push(added);
            }
        }
    }
}

/// The file of the lies that are still to be told.
const FILE: &str = "lies";

/// The lies that are still to be told, one of each institution.
pub struct Lies {
    folder: PathBuf,
    lock: FolderLock<()>,
}

impl Lies {
    pub(super) fn new(folder: &Path, is_shared: bool) -> Self {
        Self { folder: folder.to_owned(), lock: FolderLock::new(folder.to_owned(), "lies-lock", is_shared) }
    }

    /// Has an institution lie in its next file, in place of what it was told before. It waits for
    /// the disk.
    pub fn order(&self, institution: Institution, lie: Lie) -> io::Result<()> {
        self.change(Patience::LONG, |lies| {
            lies.insert(institution, lie);
        })
    }

    /// The lie for a file that is about to be written. It is taken once.
    pub(super) fn take(&self, patience: Patience, institution: Institution) -> io::Result<Option<Lie>> {
        if !self.folder.join(FILE).exists() {
            return Ok(None);
        }
        self.change(patience, |lies| lies.remove(&institution))
    }

    fn change<T>(
        &self,
        patience: Patience,
        change: impl FnOnce(&mut BTreeMap<Institution, Lie>) -> T,
    ) -> io::Result<T> {
        self.lock.turn(
            patience,
            || Ok(()),
            |_| {
                let mut lies: BTreeMap<_, _> =
                    read_lines(&self.folder.join(FILE))?.lines().filter_map(parsed).collect();
                let before = lies.clone();
                let given = change(&mut lies);
                if lies.is_empty() && !before.is_empty() {
                    remove_file(self.folder.join(FILE))?;
                } else if lies != before {
                    let lines =
                        lies.iter().map(|(institution, lie)| format!("{} {}\n", institution.name(), lie.name()));
                    write_whole(&self.folder, FILE, &lines.collect::<String>())?;
                }
                Ok(given)
            },
        )
    }
}

fn parsed(line: &str) -> Option<(Institution, Lie)> {
    let (institution, lie) = line.split_once(' ')?;
    Some((Institution::named(institution)?, Lie::named(lie)?))
}
