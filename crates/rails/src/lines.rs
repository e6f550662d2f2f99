//! Files of the sandbox's institutions: files of lines that only grow, to which several processes
//! may append in turns, and files that are written whole.
//!
//! A line counts when it has its end. What a crash or a full disk left without one is removed by
//! the next append.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, read_dir, rename};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use chrono::NaiveDate;

/// A file of lines that only grows. A caller has the lock of its folder.
pub(super) struct Lines {
    file: Arc<File>,
    is_shared: bool,
    /// Bytes of the whole lines that are known.
    whole: u64,
    /// Bytes of the file.
    len: u64,
}

/// How much is read at once to find the end of the last line, bytes.
const STEP: u64 = 4_096;

impl Lines {
    /// Opens a file, and makes it where there is none. Gives the whole lines that it has, too.
    /// `is_shared`: other processes append to it.
    pub(super) fn open(path: &Path, is_shared: bool) -> io::Result<(Self, String)> {
        let mut lines = Self::unread(path, is_shared)?;
        let text = lines.read_on()?;
        Ok((lines, text))
    }

    /// Opens a file to append to it only: its lines count as known.
    pub(super) fn open_at_end(path: &Path, is_shared: bool) -> io::Result<Self> {
        let mut lines = Self::unread(path, is_shared)?;
        lines.pass_over()?;
        Ok(lines)
    }

    fn unread(path: &Path, is_shared: bool) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).read(true).open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), is_shared, whole: 0, len })
    }

    /// The whole lines that are not known yet, which are known from now on.
    pub(super) fn read_on(&mut self) -> io::Result<String> {
        self.look()?;
        let mut bytes = vec![0; self.len.saturating_sub(self.whole) as usize];
        self.file.read_exact_at(&mut bytes, self.whole)?;
        bytes.truncate(end_of_last(&bytes).unwrap_or(0));
        self.whole += bytes.len() as u64;
        Ok(text_of(bytes))
    }

    /// Appends lines, with their ends, in one write. Lines of others before them become known.
    pub(super) fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.is_shared {
            self.look()?;
            self.pass_over()?;
        }
        if self.whole < self.len {
            self.file.set_len(self.whole)?;
        }
        (&*self.file).write_all(lines.as_bytes())?;
        self.whole += lines.len() as u64;
        self.len = self.whole;
        Ok(())
    }

    /// The file, to make its lines durable when the turn is over.
    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Sees how long the file is, if others may have changed that.
    fn look(&mut self) -> io::Result<()> {
        if self.is_shared {
            self.len = self.file.metadata()?.len();
        }
        Ok(())
    }

    /// Takes all whole lines for known, without reading them: looks for the end of the last one.
    fn pass_over(&mut self) -> io::Result<()> {
        let mut to = self.len;
        while to > self.whole {
            let from = to.saturating_sub(STEP).max(self.whole);
            let mut bytes = vec![0; (to - from) as usize];
            self.file.read_exact_at(&mut bytes, from)?;
            if let Some(end) = end_of_last(&bytes) {
                self.whole = from + end as u64;
                return Ok(());
            }
            to = from;
        }
        Ok(())
    }
}

/// Where the last whole line of some bytes ends.
fn end_of_last(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1)
}

/// A damaged line keeps no other from being read.
fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The whole lines of a file; empty if there is no file.
pub(super) fn read_lines(path: &Path) -> io::Result<String> {
    let mut bytes = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        bytes => bytes?,
    };
    bytes.truncate(end_of_last(&bytes).unwrap_or(0));
    Ok(text_of(bytes))
}

/// The days after one, or all of them, that have a file of this beginning of the name.
pub(super) fn days_after(folder: &Path, name: &str, after: Option<NaiveDate>) -> io::Result<BTreeSet<NaiveDate>> {
    let mut days = BTreeSet::new();
    for entry in read_dir(folder)? {
        let file = entry?.file_name();
        let day = file.to_str().and_then(|file| file.strip_prefix(name)?.parse().ok());
        days.extend(day.filter(|day| after.is_none_or(|after| after < *day)));
    }
    Ok(days)
}

/// Writes a file, which is there whole or not at all.
pub(super) fn write_whole(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    write_whole_with(folder, name, |out| out.write_all(text.as_bytes()))
}

/// The same, of a file that is written piece by piece.
pub(super) fn write_whole_with(
    folder: &Path,
    name: &str,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let new = folder.join("new");
    let mut out = io::BufWriter::new(File::create(&new)?);
    write(&mut out)?;
    out.into_inner()?.sync_all()?;
    rename(&new, folder.join(name))?;
    File::open(folder)?.sync_all()
}
