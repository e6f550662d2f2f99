//! Exports and reports that are made in the background, into files that are downloaded later: a
//! slow reader holds no thread, no turn and no cut of the journal.
//!
//! One thread with the lowest priority makes them, one after the other. Beside the file of an
//! export stands its manifest, signed with the key of the installation. Files are kept for seven
//! days, on this machine; the oldest go when there are too many. A job that the end of the process
//! interrupts has failed, and is asked for again.

use crate::http::cut::{CutView, by_partition};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use actors::checkpoint::hex;
use actors::cut::Cut;
use actors::priority;
use actors::seal::Keyring;
use actors::store::BlockHash;
use ledger::id::ObjectId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use strum::IntoStaticStr;

use super::chart::{Chart, Level};
use super::destination::{Out, Part};
use super::exporter::ExportError;
use super::manifest::{Draft, FileMade, Hashed, SUFFIX, are_over};
use super::request::{Format, Request};
use super::totals::Exported;

/// How long files are kept, milliseconds.
pub const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Jobs that are kept, finished or not.
const JOBS_MAX: usize = 200;
/// Jobs that wait or are under way.
const OPEN_MAX: usize = 16;
/// The same of one owner.
const OPEN_OF_ONE_MAX: usize = 2;
/// Bytes of one job's files at most.
const FILE_BYTES_MAX: u64 = 4 << 30;
/// Bytes of all files at most; the oldest go.
const ALL_BYTES_MAX: u64 = 8 << 30;
/// Bytes that stay free on the disk.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// How often the free space is looked at, bytes written.
const LOOKED_EVERY: u64 = 16 << 20;
/// Files of one job at most: QuickBooks takes so many lines in each.
const PIECES_MAX: u32 = 100;
/// Ending of the file that describes a job.
const JOB_SUFFIX: &str = ".job.json";

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JobStatus {
    /// It waits for its turn.
    Queued,
    /// It is being made.
    Running,
    /// Its file is there.
    Done,
    /// It could not be made.
    Failed,
}

/// A job, as it is kept beside its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Its id.
    pub id: String,
    /// The ledger of the merchant whose report it is; none for the operators' exports.
    pub owner: Option<String>,
    /// The report's name; none for an export.
    #[serde(default)]
    pub report: Option<String>,
    /// The ledger that was asked for; none for all.
    pub ledger: Option<String>,
    /// The format's name.
    pub format: String,
    /// The media type of its file.
    #[serde(default)]
    pub media_type: Option<String>,
    /// The first day.
    pub from: Option<String>,
    /// The last day.
    pub to: Option<String>,
    /// When it was asked for, milliseconds since 1970 (UTC).
    pub created_at_ms: i64,
    /// When it ended, milliseconds since 1970 (UTC).
    pub finished_at_ms: Option<i64>,
    /// Where it stands.
    pub status: JobStatus,
    /// Why it failed: a stable name.
    pub failure: Option<String>,
    /// The same for people, where there is more to say.
    #[serde(default)]
    pub detail: Option<String>,
    /// The last Record that counts, by partition.
    pub cut: Option<CutView>,
    /// The file, under the name for its download; the first of several.
    pub file: Option<FileMade>,
    /// The files after the first one.
    #[serde(default)]
    pub others: Vec<FileMade>,
    /// The manifest's digest and signature.
    pub manifest: Option<SignedManifest>,
}

/// Signature of a manifest, hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignedManifest {
    /// SHA-256 of the manifest's bytes.
    pub sha256: String,
    /// Ed25519 key of the installation.
    pub public_key: String,
    /// Signature of the text `centavo manifest 1`, an end of line, the digest, an end of line.
    pub signature: String,
}

/// What the work of a job gives besides the bytes of the file.
pub struct Made {
    /// Sums of its rows and accounts.
    pub exported: Exported,
    /// The last Records that count.
    pub cut: Cut,
    /// Hash of the journal there.
    pub head: BlockHash,
    /// The last Records that were booked before the first day, and the hash of the journal there.
    pub before: (Cut, BlockHash),
}

/// Error of the work of a job.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;
/// The work of a job: writes the file, or several.
pub type Work = Box<dyn FnOnce(&mut dyn Pieces) -> Result<Made, WorkError> + Send>;

/// Destination of a job: one file, or several, one after the other.
pub trait Pieces: Write {
    /// Goes on in the file of this number, from 1.
    fn go_on_in(&mut self, piece: u32) -> io::Result<()>;
}

/// The jobs of a server.
#[derive(Clone)]
pub struct ExportJobs(Arc<SharedJobs>);

struct SharedJobs {
    folder: PathBuf,
    keyring: Arc<Keyring>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the files of an earlier process were looked at.
    is_open: bool,
    /// By id, and so by age.
    jobs: BTreeMap<String, Job>,
    queue: VecDeque<(String, JobFile, Work)>,
    /// Whether the thread that makes the files runs.
    is_working: bool,
}

/// What a job is to make.
pub struct NewJob {
    /// Its id.
    pub id: ObjectId,
    /// See [`Job::owner`].
    pub owner: Option<String>,
    /// The report's name; none for an export.
    pub report: Option<String>,
    /// Ledger, days and format; of a report the format is not used.
    pub request: Request,
    /// The format's name.
    pub format: String,
    /// Its file.
    pub file: JobFile,
    /// Now, milliseconds since 1970 (UTC).
    pub now_ms: i64,
}

/// The file of a job, before it is made.
pub struct JobFile {
    /// The name for its download; of an export in several files each has a name of its own.
    pub name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// What its manifest says of the request; none for a file without a manifest.
    pub manifest: Option<(Request, Option<(Chart, Level)>)>,
}

impl Job {
    /// Its files, in order.
    pub fn files(&self) -> impl Iterator<Item = &FileMade> {
        self.file.iter().chain(&self.others)
    }
}

impl JobFile {
    /// The name for the download of a file, by its number from 1.
    fn name_of(&self, piece: u32) -> String {
        match &self.manifest {
            Some((request, _)) if request.format.is_in_pieces() => request.piece_name(piece),
            _ => self.name.clone(),
        }
    }
}

impl NewJob {
    /// The job of an export.
    pub fn export(
        id: ObjectId,
        owner: Option<String>,
        request: Request,
        chart: Option<(Chart, Level)>,
        now_ms: i64,
    ) -> Self {
        let file = JobFile {
            name: request.file_name(),
            media_type: request.format.media_type(),
            manifest: Some((request.clone(), chart)),
        };
        Self { id, owner, report: None, format: request.format.name().to_owned(), request, file, now_ms }
    }
}

impl ExportJobs {
    /// Jobs whose files are in `folder`, which is made when it is needed.
    pub fn new(folder: PathBuf, keyring: Arc<Keyring>) -> Self {
        Self(Arc::new(SharedJobs { folder, keyring, state: Mutex::default() }))
    }

    /// Takes a job on; none while too many are under way. `now_ms` gives the time at its end.
    pub fn submit(
        &self,
        new: NewJob,
        work: Work,
        now_ms: impl Fn() -> i64 + Send + 'static,
    ) -> io::Result<Option<Job>> {
        let NewJob { id, owner, report, request, format, file, now_ms: created_at_ms } = new;
        let mut state = self.0.opened(created_at_ms)?;
        let is_open = |job: &&Job| matches!(job.status, JobStatus::Queued | JobStatus::Running);
        let open = state.jobs.values().filter(is_open).count();
        let of_owner = state.jobs.values().filter(is_open).filter(|job| job.owner == owner).count();
        if open >= OPEN_MAX || of_owner >= OPEN_OF_ONE_MAX {
            return Ok(None);
        }
        let job = Job {
            id: id.uuid().to_string(),
            owner,
            report,
            ledger: request.ledger,
            format,
            media_type: Some(file.media_type.to_owned()),
            from: request.from.map(|day| day.to_string()),
            to: request.to.map(|day| day.to_string()),
            created_at_ms,
            finished_at_ms: None,
            status: JobStatus::Queued,
            failure: None,
            detail: None,
            cut: None,
            file: None,
            others: Vec::new(),
            manifest: None,
        };
        self.0.keep(&job)?;
        state.jobs.insert(job.id.clone(), job.clone());
        state.queue.push_back((job.id.clone(), file, work));
        if !std::mem::replace(&mut state.is_working, true) {
            let shared = Arc::clone(&self.0);
            let begun = thread::Builder::new().name("exports".to_owned()).spawn(move || shared.work(now_ms));
            if let Err(error) = begun {
                state.is_working = false;
                return Err(error);
            }
        }
        Ok(Some(job))
    }

    /// The jobs of an owner, newest first, as far as their files are kept.
    pub fn list(&self, owner: Option<&str>, now_ms: i64) -> io::Result<Vec<Job>> {
        let state = self.0.opened(now_ms)?;
        Ok(state.jobs.values().rev().filter(|job| job.owner.as_deref() == owner).cloned().collect())
    }

    /// A job of an owner; none when there is none of this id any more.
    pub fn find(&self, id: ObjectId, owner: Option<&str>, now_ms: i64) -> io::Result<Option<Job>> {
        let state = self.0.opened(now_ms)?;
        let found = state.jobs.get(&id.uuid().to_string());
        Ok(found.filter(|job| job.owner.as_deref() == owner).cloned())
    }

    /// A file of a job that is done, by its number from 1.
    pub fn file(&self, job: &Job, piece: u32) -> io::Result<File> {
        File::open(self.0.folder.join(file_name(&job.id, piece)))
    }

    /// The manifest of a job that is done.
    pub fn manifest(&self, job: &Job) -> io::Result<File> {
        File::open(self.0.folder.join(format!("{}{SUFFIX}", job.id)))
    }
}

impl SharedJobs {
    /// The state, without the jobs that are too old or too many.
    fn opened(&self, now_ms: i64) -> io::Result<parking_lot::MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        if !state.is_open {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            state.jobs = self.left_behind()?;
            state.is_open = true;
        }
        let is_over = |job: &Job| matches!(job.status, JobStatus::Done | JobStatus::Failed);
        let bytes = |job: &Job| job.files().map(|file| file.bytes).sum::<u64>();
        let (mut count, mut all) = (state.jobs.len(), state.jobs.values().map(bytes).sum::<u64>());
        let mut gone = Vec::new();
        for job in state.jobs.values().filter(|job| is_over(job)) {
            let is_old = job.created_at_ms + KEPT_MS <= now_ms;
            if is_old || count > JOBS_MAX || all > ALL_BYTES_MAX {
                (count, all) = (count - 1, all - bytes(job));
                gone.push((job.id.clone(), job.files().count() as u32));
            }
        }
        for (id, pieces) in gone {
            self.remove(&id, pieces);
            state.jobs.remove(&id);
        }
        Ok(state)
    }

    /// The jobs that an earlier process has left. Those that were not finished have failed.
    fn left_behind(&self) -> io::Result<BTreeMap<String, Job>> {
        let mut jobs = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if !name.ends_with(JOB_SUFFIX) {
                continue;
            }
            let Ok(mut job) = serde_json::from_slice::<Job>(&fs::read(&path)?) else { continue };
            if matches!(job.status, JobStatus::Queued | JobStatus::Running) {
                (job.status, job.failure) = (JobStatus::Failed, Some("interrupted".to_owned()));
                job.finished_at_ms = Some(job.created_at_ms);
                self.remove_pieces(&job.id);
                self.keep(&job)?;
            }
            jobs.insert(job.id.clone(), job);
        }
        Ok(jobs)
    }

    /// Removes the files of a job. What stays is tried again at the next start.
    fn remove(&self, id: &str, pieces: u32) {
        let others = [format!("{id}{SUFFIX}"), format!("{id}{JOB_SUFFIX}")];
        for name in (1..=pieces.max(1)).map(|piece| file_name(id, piece)).chain(others) {
            let _there_may_be_none = fs::remove_file(self.folder.join(name));
        }
    }

    /// Removes the files of a job that did not come to its end.
    fn remove_pieces(&self, id: &str) {
        for piece in 1..=PIECES_MAX {
            if fs::remove_file(self.folder.join(file_name(id, piece))).is_err() {
                break;
            }
        }
    }

    fn keep(&self, job: &Job) -> io::Result<()> {
        let text = serde_json::to_vec(job)?;
        self.put(&format!("{}{JOB_SUFFIX}", job.id), |out| out.write_all(&text)).map(drop)
    }

    /// Writes a file, whole or not at all, and gives its SHA-256.
    fn put(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<String> {
        let new = self.folder.join(format!("{name}~"));
        let file = private_file(&new)?;
        let mut out = Hashed::new(io::BufWriter::new(&file));
        write(&mut out)?;
        out.flush()?;
        file.sync_all()?;
        fs::rename(&new, self.folder.join(name))?;
        Ok(out.finish())
    }

    /// Makes the files of all jobs that wait.
    fn work(&self, now_ms: impl Fn() -> i64) {
        priority::run_last();
        loop {
            let mut state = self.state.lock();
            let Some((id, file, work)) = state.queue.pop_front() else {
                state.is_working = false;
                return;
            };
            let Some(job) = state.jobs.get_mut(&id) else { continue };
            job.status = JobStatus::Running;
            let job = job.clone();
            drop(state);
            let made = catch_unwind(AssertUnwindSafe(|| self.make(&job, &file, work)));
            let made = made.unwrap_or_else(|_| Err("it panicked".into()));
            let mut job = Job { finished_at_ms: Some(now_ms()), ..job };
            match made {
                Ok((cut, files, manifest)) => {
                    job.status = JobStatus::Done;
                    (job.cut, job.manifest) = (Some(by_partition(&cut)), manifest);
                    let mut files = files.into_iter();
                    (job.file, job.others) = (files.next(), files.collect());
                }
                Err(error) => {
                    tracing::error!(id = job.id, %error, "an export could not be made");
                    self.remove_pieces(&job.id);
                    let (failure, detail) = failure_of(&error);
                    job.status = JobStatus::Failed;
                    (job.failure, job.detail) = (Some(failure.to_owned()), detail);
                }
            }
            if let Err(error) = self.keep(&job) {
                tracing::error!(id = job.id, %error, "an export could not be noted");
            }
            self.state.lock().jobs.insert(job.id.clone(), job);
        }
    }

    fn make(
        &self,
        job: &Job,
        of: &JobFile,
        work: Work,
    ) -> Result<(Cut, Vec<FileMade>, Option<SignedManifest>), WorkError> {
        let mut out = Measured::new(&self.folder, &job.id)?;
        let Made { exported, cut, head, before } = work(&mut out)?;
        let files: Vec<_> =
            (1..).zip(out.finish()?).map(|(piece, made)| FileMade { path: of.name_of(piece), ..made }).collect();
        let Some((request, chart)) = &of.manifest else {
            File::open(&self.folder)?.sync_all()?;
            return Ok((cut, files, None));
        };
        let is_of_owner = |path: &str| {
            let state = self.state.lock();
            path.strip_suffix(SUFFIX).and_then(|id| state.jobs.get(id)).is_some_and(|other| other.owner == job.owner)
        };
        let draft = Draft {
            request,
            chart: chart.as_ref(),
            compress: false,
            cut: cut.clone(),
            is_complete: are_over(request, job.created_at_ms),
            head,
            before,
            is_of_owner: &is_of_owner,
            exported: &exported,
        };
        let manifest = draft.manifest(&self.folder)?;
        let sha256 = self.put(&format!("{}{SUFFIX}", job.id), |out| manifest.write(files.clone(), out))?;
        let (public_key, signature) = self.keyring.sign_manifest(&sha256);
        File::open(&self.folder)?.sync_all()?;
        let signed = SignedManifest { sha256, public_key: hex(&public_key), signature: hex(&signature) };
        Ok((cut, files, Some(signed)))
    }
}

/// A limit that a file has reached.
#[derive(Clone, Copy, Debug, thiserror::Error)]
enum Limit {
    #[error("the file would have more than 4 GiB")]
    TooLarge,
    #[error("less than 1 GiB would stay free on the disk")]
    NoSpace,
    #[error("the program takes so few lines in one file that there would be more than a hundred files")]
    TooManyLines,
}

/// Name of a failure, and what else is to be said of it.
fn failure_of(error: &WorkError) -> (&'static str, Option<String>) {
    let system = error.downcast_ref::<io::Error>().or_else(|| match error.downcast_ref::<ExportError>() {
        Some(ExportError::Write(error)) => Some(error),
        _ => None,
    });
    let limit = system.and_then(io::Error::get_ref).and_then(|limit| limit.downcast_ref::<Limit>());
    match (limit, system, error.downcast_ref::<ExportError>()) {
        (Some(limit), ..) => (limit.name(), None),
        (None, Some(error), _) if error.kind() == io::ErrorKind::FileTooLarge => ("too_large", Some(error.to_string())),
        (None, _, Some(error @ ExportError::NoCode(_))) => ("no_code", Some(error.to_string())),
        (None, _, Some(error @ ExportError::TooMuch(_))) => ("does_not_fit", Some(error.to_string())),
        _ => ("internal", None),
    }
}

/// Destination that writes the parts of an export to the files of a job: all to one, or each piece
/// to a file of its own.
pub struct JobOut<'a>(pub &'a mut dyn Pieces);

impl Out for JobOut<'_> {
    fn write(&mut self, part: Part<'_>, text: &[u8]) -> io::Result<()> {
        if let Part::Piece(piece) = part {
            self.0.go_on_in(piece)?;
        }
        self.0.write_all(text)
    }
}

impl Limit {
    fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::NoSpace => "no_space",
            Self::TooManyLines => "too_many_lines",
        }
    }
}

/// Files that are counted and hashed while they are written, within the limits.
struct Measured<'a> {
    folder: &'a Path,
    id: &'a str,
    /// The files that are complete.
    made: Vec<FileMade>,
    file: io::BufWriter<File>,
    /// Bytes of the current file, and of those before it.
    bytes: u64,
    bytes_before: u64,
    looked_at: u64,
    digest: Sha256,
}

impl<'a> Measured<'a> {
    fn new(folder: &'a Path, id: &'a str) -> io::Result<Self> {
        let file = begun(&folder.join(file_name(id, 1)))?;
        let (made, digest) = (Vec::new(), Sha256::new());
        let mut out = Self { folder, id, made, file, bytes: 0, bytes_before: 0, looked_at: 0, digest };
        out.look_at_space()?;
        Ok(out)
    }

    /// Ends the current file, durably, and goes on in another.
    fn end_file(&mut self, next: io::BufWriter<File>) -> io::Result<()> {
        std::mem::replace(&mut self.file, next).into_inner()?.sync_all()?;
        let sha256 = hex(&std::mem::take(&mut self.digest).finalize());
        self.made.push(FileMade { path: String::new(), bytes: self.bytes, sha256 });
        self.bytes_before += std::mem::take(&mut self.bytes);
        Ok(())
    }

    fn look_at_space(&mut self) -> io::Result<()> {
        let found = rustix::fs::statvfs(self.folder)?;
        self.looked_at = self.bytes_before + self.bytes;
        let is_enough = found.f_bavail.saturating_mul(found.f_frsize) >= FREE_BYTES_MIN;
        if is_enough { Ok(()) } else { Err(io::Error::other(Limit::NoSpace)) }
    }

    /// Makes the files durable; their paths are still to be named.
    fn finish(mut self) -> io::Result<Vec<FileMade>> {
        self.file.into_inner()?.sync_all()?;
        self.made.push(FileMade { path: String::new(), bytes: self.bytes, sha256: hex(&self.digest.finalize()) });
        Ok(self.made)
    }
}

impl Pieces for Measured<'_> {
    fn go_on_in(&mut self, piece: u32) -> io::Result<()> {
        while (self.made.len() as u32) + 1 < piece {
            let next = self.made.len() as u32 + 2;
            if next > PIECES_MAX {
                return Err(io::Error::other(Limit::TooManyLines));
            }
            self.end_file(begun(&self.folder.join(file_name(self.id, next)))?)?;
        }
        Ok(())
    }
}

impl Write for Measured<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        let all = self.bytes_before + self.bytes;
        if all > FILE_BYTES_MAX {
            return Err(io::Error::other(Limit::TooLarge));
        }
        if all - self.looked_at >= LOOKED_EVERY {
            self.look_at_space()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Name of a file of a job, by its number from 1.
fn file_name(id: &str, piece: u32) -> String {
    if piece == 1 { id.to_owned() } else { format!("{id}.{piece}") }
}

fn begun(path: &Path) -> io::Result<io::BufWriter<File>> {
    Ok(io::BufWriter::with_capacity(1 << 18, private_file(path)?))
}

/// A file that only this user can read.
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}

/// The media type of a job's file.
pub fn media_type_of(job: &Job) -> &str {
    let of_format = || Format::made(&job.format).unwrap_or(Format::Jsonl).media_type();
    job.media_type.as_deref().unwrap_or_else(of_format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_job_are_counted_and_hashed_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut out = Measured::new(folder.path(), "job").expect("a file");
        for piece in [1, 1, 2, 3] {
            out.go_on_in(piece).expect("a file");
            out.write_all(format!("{piece}\n").as_bytes()).expect("written");
        }
        let made = out.finish().expect("durable");
        for ((name, text), made) in [("job", "1\n1\n"), ("job.2", "2\n"), ("job.3", "3\n")].into_iter().zip(&made) {
            assert_eq!(fs::read_to_string(folder.path().join(name)).expect("a file"), text);
            assert_eq!((made.bytes, &made.sha256), (text.len() as u64, &hex(&Sha256::digest(text))));
        }
        assert_eq!(made.len(), 3);
    }

    #[test]
    fn a_job_has_so_many_files_at_most() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut out = Measured::new(folder.path(), "job").expect("a file");
        out.go_on_in(PIECES_MAX).expect("the last file");
        let error = out.go_on_in(PIECES_MAX + 1).expect_err("one too many");
        assert_eq!(failure_of(&error.into()).0, "too_many_lines");
    }
}
