//! Exports and reports that are made in the background, into files that are downloaded later: a
//! slow reader holds no thread, no turn and no cut of the journal.
//!
//! One thread with the lowest priority makes them, one after the other. Beside the file of an
//! export stands its manifest, signed with the key of the installation. Files are stored for seven
//! days, on this machine; the oldest go when there are too many. A job that the end of the process
//! interrupts has failed, and is asked for again.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use wire::cut_text::{CutView, by_partition};

use derived::checkpoint::hex;
use derived::seal::Keyring;
use ledger::id::ObjectId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use store::cut::Cut;
use store::{BlockHash, create_private_folder, priority, private_file, write_whole};
use strum::IntoStaticStr;

use super::chart::{Chart, Level};
use super::manifest::{ExportedFile, HashingWriter, ManifestDraft, SUFFIX, are_over};
use super::request::{Format, Request};
use super::totals::ExportTotals;
use crate::error::BooksError;

/// Retention of files, milliseconds.
pub const KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// Largest number of stored jobs, finished or not.
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
/// Ending of the file that describes a job.
const JOB_SUFFIX: &str = ".job.json";

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum JobStatus {
    /// It waits for its turn.
    #[default]
    Queued,
    /// It is being made.
    Running,
    /// Its file is there.
    Done,
    /// It could not be made.
    Failed,
}

/// Job as stored beside its file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Whether its rows have labels.
    #[serde(default)]
    pub labels: bool,
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
    /// The file, under the name for its download.
    pub file: Option<ExportedFile>,
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
pub struct JobOutcome {
    /// Sums of its rows and accounts.
    pub exported: ExportTotals,
    /// The last Records that count.
    pub cut: Cut,
    /// Hash of the journal there.
    pub head: BlockHash,
    /// The last Records that were booked before the first day, and the hash of the journal there.
    pub before: (Cut, BlockHash),
}

/// Error of the work of a job.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;
/// The work of a job: writes the file.
pub type Work = Box<dyn FnOnce(&mut dyn Write) -> Result<JobOutcome, WorkError> + Send>;

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
    /// Whether its rows have labels.
    pub labels: bool,
    /// Its file.
    pub file: JobFile,
    /// Now, milliseconds since 1970 (UTC).
    pub now_ms: i64,
}

/// The file of a job, before it is made.
pub struct JobFile {
    /// The name for its download.
    pub name: String,
    /// Its media type.
    pub media_type: &'static str,
    /// What its manifest says of the request; none for a file without a manifest.
    pub manifest: Option<(Request, Option<(Chart, Level)>)>,
}

impl NewJob {
    /// The job of an export. Labels may change and be erased, so a file with them has no manifest.
    pub fn export(
        (id, owner): (ObjectId, Option<String>),
        request: Request,
        chart: Option<(Chart, Level)>,
        has_labels: bool,
        now_ms: i64,
    ) -> Self {
        let file = JobFile {
            name: request.file_name(),
            media_type: request.format.media_type(),
            manifest: (!has_labels).then(|| (request.clone(), chart)),
        };
        let (format, labels) = (request.format.name().to_owned(), has_labels);
        Self { id, owner, report: None, format, request, labels, file, now_ms }
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
        let NewJob { id, owner, report, request, format, labels, file, now_ms: created_at_ms } = new;
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
            labels,
            created_at_ms,
            ..Job::default()
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

    /// The jobs of an owner, newest first, while their files exist.
    pub fn list(&self, owner: Option<&str>, now_ms: i64) -> io::Result<Vec<Job>> {
        let state = self.0.opened(now_ms)?;
        Ok(state.jobs.values().rev().filter(|job| job.owner.as_deref() == owner).cloned().collect())
    }

    /// A job of an owner; `None` if there is none of this id any more.
    pub fn find(&self, id: ObjectId, owner: Option<&str>, now_ms: i64) -> io::Result<Option<Job>> {
        let state = self.0.opened(now_ms)?;
        let found = state.jobs.get(&id.uuid().to_string());
        Ok(found.filter(|job| job.owner.as_deref() == owner).cloned())
    }

    /// The file of a job that is done.
    pub fn file(&self, job: &Job) -> io::Result<File> {
        File::open(self.0.folder.join(&job.id))
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
            create_private_folder(&self.folder)?;
            state.jobs = self.left_behind()?;
            state.is_open = true;
        }
        let is_over = |job: &Job| matches!(job.status, JobStatus::Done | JobStatus::Failed);
        let bytes = |job: &Job| job.file.as_ref().map_or(0, |file| file.bytes);
        let (mut count, mut all) = (state.jobs.len(), state.jobs.values().map(bytes).sum::<u64>());
        let mut gone = Vec::new();
        for job in state.jobs.values().filter(|job| is_over(job)) {
            let is_old = job.created_at_ms + KEPT_MS <= now_ms;
            if is_old || count > JOBS_MAX || all > ALL_BYTES_MAX {
                (count, all) = (count - 1, all - bytes(job));
                gone.push(job.id.clone());
            }
        }
        for id in gone {
            self.remove(&id);
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
                let _there_may_be_none = fs::remove_file(self.folder.join(&job.id));
                self.keep(&job)?;
            }
            jobs.insert(job.id.clone(), job);
        }
        Ok(jobs)
    }

    /// Removes the files of a job. What stays is tried again at the next start.
    fn remove(&self, id: &str) {
        for name in [id.to_owned(), format!("{id}{SUFFIX}"), format!("{id}{JOB_SUFFIX}")] {
            let _there_may_be_none = fs::remove_file(self.folder.join(name));
        }
    }

    fn keep(&self, job: &Job) -> io::Result<()> {
        let text = serde_json::to_vec(job)?;
        self.put(&format!("{}{JOB_SUFFIX}", job.id), |out| out.write_all(&text)).map(drop)
    }

    /// Writes a file, whole or not at all, and gives its SHA-256.
    fn put(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<String> {
        let mut sha256 = String::new();
        let hashed = |file: &mut dyn Write| {
            let mut out = HashingWriter::new(file);
            write(&mut out)?;
            sha256 = out.finish();
            Ok(())
        };
        write_whole(&self.folder.join(name), hashed)?;
        Ok(sha256)
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
                Ok((cut, file, manifest)) => {
                    job.status = JobStatus::Done;
                    (job.cut, job.file, job.manifest) = (Some(by_partition(&cut)), Some(file), manifest);
                }
                Err(error) => {
                    tracing::error!(id = job.id, %error, "an export could not be made");
                    let _there_may_be_none = fs::remove_file(self.folder.join(&job.id));
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
    ) -> Result<(Cut, ExportedFile, Option<SignedManifest>), WorkError> {
        let mut out = MeasuredFile::new(&self.folder, &job.id)?;
        let JobOutcome { exported, cut, head, before } = work(&mut out)?;
        let file = out.finish(of.name.clone())?;
        let Some((request, chart)) = &of.manifest else {
            File::open(&self.folder)?.sync_all()?;
            return Ok((cut, file, None));
        };
        let is_of_owner = |path: &str| {
            let state = self.state.lock();
            path.strip_suffix(SUFFIX).and_then(|id| state.jobs.get(id)).is_some_and(|other| other.owner == job.owner)
        };
        let draft = ManifestDraft {
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
        let sha256 = self.put(&format!("{}{SUFFIX}", job.id), |out| manifest.write(vec![file.clone()], out))?;
        let (public_key, signature) = self.keyring.sign_manifest(&sha256);
        let signed = SignedManifest { sha256, public_key: hex(&public_key), signature: hex(&signature) };
        Ok((cut, file, Some(signed)))
    }
}

/// A limit that a file has reached.
#[derive(Clone, Copy, Debug, thiserror::Error, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
enum Limit {
    #[error("the file would have more than 4 GiB")]
    TooLarge,
    #[error("less than 1 GiB would stay free on the disk")]
    NoSpace,
}

/// Name of a failure, and what else is to be said of it.
fn failure_of(error: &WorkError) -> (&'static str, Option<String>) {
    let system = error.downcast_ref::<io::Error>().or_else(|| match error.downcast_ref::<BooksError>() {
        Some(BooksError::Write(error)) => Some(error),
        _ => None,
    });
    let limit = system.and_then(io::Error::get_ref).and_then(|limit| limit.downcast_ref::<Limit>());
    match (limit, system, error.downcast_ref::<BooksError>()) {
        (Some(limit), ..) => (limit.into(), None),
        (None, _, Some(error @ BooksError::NoCode(_))) => ("no_code", Some(error.to_string())),
        _ => ("internal", None),
    }
}

/// File that is counted and hashed while it is written, within the limits.
struct MeasuredFile<'a> {
    folder: &'a Path,
    file: io::BufWriter<File>,
    bytes: u64,
    looked_at: u64,
    digest: Sha256,
}

impl<'a> MeasuredFile<'a> {
    fn new(folder: &'a Path, id: &str) -> io::Result<Self> {
        let file = private_file().create(true).write(true).truncate(true).open(folder.join(id))?;
        let file = io::BufWriter::with_capacity(1 << 18, file);
        let mut out = Self { folder, file, bytes: 0, looked_at: 0, digest: Sha256::new() };
        out.look_at_space()?;
        Ok(out)
    }

    fn look_at_space(&mut self) -> io::Result<()> {
        let found = rustix::fs::statvfs(self.folder)?;
        self.looked_at = self.bytes;
        let is_enough = found.f_bavail.saturating_mul(found.f_frsize) >= FREE_BYTES_MIN;
        if is_enough { Ok(()) } else { Err(io::Error::other(Limit::NoSpace)) }
    }

    /// Makes the file durable. `path` is the name for its download.
    fn finish(self, path: String) -> io::Result<ExportedFile> {
        self.file.into_inner()?.sync_all()?;
        Ok(ExportedFile { path, bytes: self.bytes, sha256: hex(&self.digest.finalize()) })
    }
}

impl Write for MeasuredFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        if self.bytes > FILE_BYTES_MAX {
            return Err(io::Error::other(Limit::TooLarge));
        }
        if self.bytes - self.looked_at >= LOOKED_EVERY {
            self.look_at_space()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The media type of a job's file.
pub fn media_type_of(job: &Job) -> &str {
    let of_format = || Format::made(&job.format).unwrap_or(Format::Jsonl).media_type();
    job.media_type.as_deref().unwrap_or_else(of_format)
}
