//! Export to a folder. Rows are one file, beside JSON lines with the query by which DuckDB reads
//! them. Plain-text accounting has a folder for each ledger: a file for each month, `opening` with
//! the balances brought forward, and `main`, which holds the head and includes the others. The
//! names contain the requested days.
//!
//! Files are written under another name and synced. They are renamed when all are complete,
//! included files before those that include them.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use derived::checkpoint::hex;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use store::unfinished;

use super::columns::read_by_duckdb;
use super::destination::{Out, Part};
use super::manifest::{ExportedFile, SUFFIX};
use super::request::{Format, Request};

/// Destination of an export: a folder whose files are not complete yet.
pub struct Folder {
    path: PathBuf,
    request: Request,
    files: BTreeMap<PathBuf, UnfinishedFile>,
    /// Bytes in memory, over all files.
    waiting: usize,
    is_compressed: bool,
}

/// A file that is not complete.
struct UnfinishedFile {
    waiting: WaitingBytes,
    /// Whether a part of it is on the disk.
    has_begun: bool,
    /// Length and SHA-256 of what is on the disk.
    bytes: u64,
    digest: Sha256,
}

/// Bytes of a file that are not on the disk yet.
enum WaitingBytes {
    Plain(Vec<u8>),
    /// Compressed, without a time in the head: the same bytes give the same file.
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

/// Most bytes in memory, over all files.
const WAITING_MAX: usize = 8 << 20;
/// Up to so many files are synced one by one; more of them by one sync of their file system.
const SYNCED_ALONE_MAX: usize = 16;

impl Folder {
    /// Opens the folder; makes it if there is none.
    pub fn open(path: &Path, request: &Request) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let (path, request) = (path.to_path_buf(), request.clone());
        Ok(Self { path, request, files: BTreeMap::new(), waiting: 0, is_compressed: false })
    }

    /// The same folder, whose files are compressed with gzip and end in `.gz`.
    pub fn compressed(mut self) -> Self {
        self.is_compressed = true;
        self
    }

    /// Completes all files, durably, and gives their number.
    pub fn finish(self) -> io::Result<usize> {
        self.finish_with(None, |_, _| Ok(()))
    }

    /// The same with a manifest of this name, which names the files. It is the last to get its
    /// name.
    pub fn finish_with(
        mut self,
        name: Option<String>,
        manifest: impl FnOnce(Vec<ExportedFile>, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<usize> {
        self.put_reader()?;
        self.files.values_mut().try_for_each(|file| file.waiting.end())?;
        self.write_waiting()?;
        let made = self.made();
        let count = made.len();
        if let Some(name) = name {
            self.is_compressed = false;
            let path = self.path.join(name);
            let mut out = BufWriter::new(InFolder { folder: &mut self, path });
            manifest(made, &mut out)?;
            out.flush()?;
            drop(out);
            self.write_waiting()?;
        }
        let files = &self.files;
        sync_all(&self.path, files.keys().map(|path| unfinished(path)))?;
        let (heads, others): (Vec<_>, Vec<_>) =
            files.keys().partition(|path| path.file_stem() == Some("main".as_ref()));
        let is_manifest = |path: &&PathBuf| path.to_string_lossy().ends_with(SUFFIX);
        let (manifests, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_manifest);
        for path in others.into_iter().chain(heads).chain(manifests) {
            fs::rename(unfinished(path), path)?;
        }
        let mut folders: Vec<_> = files.keys().filter_map(|path| path.parent()).collect();
        folders.dedup();
        sync_all(&self.path, folders.into_iter().chain([self.path.as_path()]).map(Path::to_path_buf))?;
        self.files.clear();
        Ok(count)
    }

    /// The files, by path.
    fn made(&self) -> Vec<ExportedFile> {
        let made = |(path, file): (&PathBuf, &UnfinishedFile)| {
            let relative = path.strip_prefix(&self.path).unwrap_or(path);
            let components: Vec<_> = relative.iter().map(|component| component.to_string_lossy()).collect();
            let sha256 = hex(&file.digest.clone().finalize());
            ExportedFile { path: components.join("/"), bytes: file.bytes, sha256 }
        };
        self.files.iter().map(made).collect()
    }

    fn put(&mut self, path: PathBuf, text: &[u8]) -> io::Result<()> {
        let is_compressed = self.is_compressed;
        let file = self.files.entry(path).or_insert_with(|| UnfinishedFile {
            waiting: if is_compressed { WaitingBytes::gzip() } else { WaitingBytes::Plain(Vec::new()) },
            has_begun: false,
            bytes: 0,
            digest: Sha256::new(),
        });
        file.waiting.write_all(text)?;
        self.waiting += text.len();
        if self.waiting < WAITING_MAX { Ok(()) } else { self.write_waiting() }
    }

    /// Writes the bytes in memory. Opens one file at a time: there may be more of them than a
    /// process may have open.
    fn write_waiting(&mut self) -> io::Result<()> {
        for (path, file) in &mut self.files {
            let waiting = file.waiting.take();
            if file.has_begun && waiting.is_empty() {
                continue;
            }
            let mut options = OpenOptions::new();
            if std::mem::replace(&mut file.has_begun, true) {
                options.append(true);
            } else {
                path.parent().map_or(Ok(()), fs::create_dir_all)?;
                options.write(true).create(true).truncate(true);
            }
            options.open(unfinished(path))?.write_all(&waiting)?;
            file.bytes += waiting.len() as u64;
            file.digest.update(&waiting);
        }
        self.waiting = 0;
        Ok(())
    }

    /// Writes, beside JSON lines, the query that gives DuckDB their columns: it guesses the type of
    /// a column from the first rows.
    fn put_reader(&mut self) -> io::Result<()> {
        if self.request.format != Format::Jsonl {
            return Ok(());
        }
        let path = self.row_file(self.request.file_name());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let was_compressed = std::mem::replace(&mut self.is_compressed, false);
        self.put(path.with_file_name(format!("{name}.read.sql")), read_by_duckdb(&name, false).as_bytes())?;
        self.is_compressed = was_compressed;
        Ok(())
    }

    fn row_file(&self, name: String) -> PathBuf {
        self.path.join(if self.is_compressed { name + ".gz" } else { name })
    }

    fn head_of(&self, ledger: &str) -> PathBuf {
        self.in_folder(ledger, "main")
    }

    /// A file of a ledger, by its name without the ending.
    fn in_folder(&self, ledger: &str, name: &str) -> PathBuf {
        self.folder_of(ledger).join(format!("{name}.{}", self.request.format.name()))
    }

    /// Writes to a file that the head includes.
    fn put_included(&mut self, ledger: &str, name: &str, text: &[u8]) -> io::Result<()> {
        let path = self.in_folder(ledger, name);
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

    fn folder_of(&self, ledger: &str) -> PathBuf {
        self.path.join(self.request.dated(ledger))
    }
}

impl WaitingBytes {
    fn gzip() -> Self {
        Self::Gzip(GzEncoder::new(Vec::new(), Compression::default()).into())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bytes) => bytes.write_all(text),
            Self::Gzip(encoder) => encoder.write_all(text),
        }
    }

    /// Takes the bytes that can be written to the file.
    fn take(&mut self) -> Vec<u8> {
        match self {
            Self::Plain(bytes) => std::mem::take(bytes),
            Self::Gzip(encoder) => std::mem::take(encoder.get_mut()),
        }
    }

    /// Ends the text: what waits then are the last bytes of the file.
    fn end(&mut self) -> io::Result<()> {
        if let Self::Gzip(encoder) = self {
            encoder.try_finish()?;
        }
        Ok(())
    }
}

/// Makes files or folders durable. Many of them are synced at once with all else on the file
/// system of `folder`: a sync of each took 8 ms.
fn sync_all(folder: &Path, paths: impl Iterator<Item = PathBuf>) -> io::Result<()> {
    let paths: Vec<_> = paths.collect();
    if paths.len() > SYNCED_ALONE_MAX {
        return Ok(rustix::fs::syncfs(File::open(folder)?)?);
    }
    paths.iter().try_for_each(|path| File::open(path)?.sync_all())
}

/// One file of a folder.
struct InFolder<'a> {
    folder: &'a mut Folder,
    path: PathBuf,
}

impl Write for InFolder<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.folder.put(self.path.clone(), bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Out for Folder {
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()> {
        match part {
            Part::Rows => self.put(self.row_file(self.request.file_name()), text),
            Part::Begin(ledger) => self.put(self.head_of(ledger), text),
            Part::Opening(ledger) => self.put_included(ledger, "opening", text),
            Part::Month(ledger, month) => self.put_included(ledger, &month.format("%Y-%m").to_string(), text),
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
