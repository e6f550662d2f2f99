//! Export to a folder. Rows are one file. Plain-text accounting has a folder for each ledger: a
//! file for each month, and `main`, which holds the head and includes the months. The names contain
//! the requested days.
//!
//! Files are written under another name and synced. They are renamed when all are complete,
//! included files before those that include them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use super::destination::{Out, Part};
use super::request::{Format, Request};

/// Destination of an export: a folder whose files are not complete yet.
pub struct Folder {
    path: PathBuf,
    request: Request,
    files: BTreeMap<PathBuf, Unfinished>,
    /// Bytes in memory, over all files.
    waiting: usize,
}

/// A file that is not complete.
#[derive(Default)]
struct Unfinished {
    waiting: Vec<u8>,
    /// Whether a part of it is on the disk.
    has_begun: bool,
}

/// Most bytes in memory, over all files.
const WAITING_MAX: usize = 8 << 20;
/// Suffix of the name of a file that is not complete.
const UNFINISHED: &str = "~";

impl Folder {
    /// Opens the folder; makes it if there is none.
    pub fn open(path: &Path, request: &Request) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let (path, request) = (path.to_path_buf(), request.clone());
        Ok(Self { path, request, files: BTreeMap::new(), waiting: 0 })
    }

    /// Completes all files, durably, and gives their number.
    pub fn finish(mut self) -> io::Result<usize> {
        self.write_waiting()?;
        let files = std::mem::take(&mut self.files);
        for path in files.keys() {
            File::open(unfinished(path))?.sync_all()?;
        }
        let (heads, others): (Vec<_>, Vec<_>) =
            files.keys().partition(|path| path.file_stem() == Some("main".as_ref()));
        for path in others.into_iter().chain(heads) {
            fs::rename(unfinished(path), path)?;
        }
        let mut folders: Vec<_> = files.keys().filter_map(|path| path.parent()).collect();
        folders.dedup();
        folders.into_iter().chain([self.path.as_path()]).try_for_each(|folder| File::open(folder)?.sync_all())?;
        Ok(files.len())
    }

    fn put(&mut self, path: PathBuf, text: &[u8]) -> io::Result<()> {
        self.files.entry(path).or_default().waiting.extend_from_slice(text);
        self.waiting += text.len();
        if self.waiting < WAITING_MAX { Ok(()) } else { self.write_waiting() }
    }

    /// Writes the bytes in memory. Opens one file at a time: there may be more of them than a
    /// process may have open.
    fn write_waiting(&mut self) -> io::Result<()> {
        for (path, file) in &mut self.files {
            if file.has_begun && file.waiting.is_empty() {
                continue;
            }
            let mut options = OpenOptions::new();
            if std::mem::replace(&mut file.has_begun, true) {
                options.append(true);
            } else {
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                options.write(true).create(true).truncate(true);
            }
            options.open(unfinished(path))?.write_all(&file.waiting)?;
            file.waiting = Vec::new();
        }
        self.waiting = 0;
        Ok(())
    }

    fn head_of(&self, ledger: &str) -> PathBuf {
        self.folder_of(ledger).join(format!("main.{}", self.request.format.name()))
    }

    fn month_of(&self, ledger: &str, month: NaiveDate) -> PathBuf {
        self.folder_of(ledger).join(format!("{}.{}", month.format("%Y-%m"), self.request.format.name()))
    }

    fn folder_of(&self, ledger: &str) -> PathBuf {
        self.path.join(self.request.dated(ledger))
    }
}

impl Out for Folder {
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()> {
        match part {
            Part::Rows => self.put(self.path.join(self.request.file_name()), text),
            Part::Begin(ledger) => self.put(self.head_of(ledger), text),
            Part::Month(ledger, month) => {
                let path = self.month_of(ledger, month);
                if !self.files.contains_key(&path) {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    let include = match self.request.format {
                        Format::Beancount => format!("\ninclude \"{name}\"\n"),
                        _ => format!("\ninclude {name}\n"),
                    };
                    self.put(self.head_of(ledger), include.as_bytes())?;
                }
                self.put(path, text)
            }
        }
    }
}

/// Removes the incomplete files of an export that failed.
impl Drop for Folder {
    fn drop(&mut self) {
        for path in self.files.iter().filter(|(_, file)| file.has_begun).map(|(path, _)| path) {
            let _there_was_none = fs::remove_file(unfinished(path));
        }
    }
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    name.into()
}
