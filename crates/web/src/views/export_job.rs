//! A job of an export as JSON, and its file as a download.

use std::fs::File;
use std::io;
use std::sync::Arc;

use actors::engine::Engine;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use books::export::jobs::{ExportJobs, Job, JobStatus, KEPT_MS, NewJob, Work, media_type_of};
use books::export::{ExportedFile, Format, read_by_duckdb};
use serde::Serialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use wire::cut_text::CutView;
use wire::timestamp::with_milliseconds;

use crate::request_context::spawn_blocking;
use crate::streamed_body::streamed;
use crate::{Checker, Code, Problem, Raw, Result};

/// Files that are downloaded at once, each by a thread.
const DOWNLOADS_MAX: usize = 32;

static DOWNLOADS: Semaphore = Semaphore::const_new(DOWNLOADS_MAX);

/// An export or report that is made in the background.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportJobView {
    /// The id.
    id: String,
    /// `queued`, `running`, `done` or `failed`.
    #[schema(pattern = "^(queued|running|done|failed)$")]
    status: &'static str,
    /// Why it failed: `too_large` (over 4 GiB), `no_space`, `interrupted` (the server ended),
    /// `no_code` (accounts without a code in the map) or `internal`.
    #[schema(pattern = "^(too_large|no_space|interrupted|no_code|internal)$")]
    failure: Option<String>,
    /// The same for people, such as the accounts without a code.
    detail: Option<String>,
    /// The report's name; absent for an export.
    report: Option<String>,
    /// The ledger; `all` for the rows of all.
    #[schema(example = "all")]
    ledger: String,
    /// The format.
    #[schema(example = "csv")]
    format: String,
    /// The first day; absent for the first of the books.
    from: Option<String>,
    /// The last day; absent for the last of the books.
    to: Option<String>,
    /// True where the rows have labels.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    labels: bool,
    /// When it was asked for.
    created_at: String,
    /// When it ended.
    finished_at: Option<String>,
    /// When its file is removed, at the latest.
    expires_at: String,
    /// The last Record that counts, by partition of the journal.
    #[schema(value_type = Option<BTreeMap<String, u64>>, example = json!({"0": 42}))]
    cut: Option<CutView>,
    /// The file, once it is done.
    file: Option<ExportFileView>,
    /// Signature of the manifest, once it is done.
    manifest: Option<ManifestSignatureView>,
}

/// The file of an export.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExportFileView {
    /// Its name.
    #[schema(example = "all.csv")]
    name: String,
    /// Its length, bytes.
    #[schema(minimum = 0, example = 1024)]
    bytes: u64,
    /// SHA-256 of its bytes, hexadecimal.
    sha256: String,
    /// Query of DuckDB that reads the file of this name with the type of each column; of JSON lines
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "SELECT * FROM read_json('all.jsonl', format = 'newline_delimited', columns = {…});")]
    read_sql: Option<String>,
}

/// Signature of a manifest.
#[derive(Debug, Serialize, ToSchema)]
pub struct ManifestSignatureView {
    /// SHA-256 of the manifest's bytes, hexadecimal.
    sha256: String,
    /// The Ed25519 key of the installation, hexadecimal.
    public_key: String,
    /// Signature of `centavo manifest 1`, an end of line, the digest, an end of line; hexadecimal.
    #[schema(
        pattern = "^[0-9a-f]{128}$",
        example = "5f0c6a1e9d3b4c2a8e7f6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a39285f0c6a1e9d3b4c2a8e7f6d5c4b3a29181706f5e4d3c2b1a09f8e7d6c5b4a3928"
    )]
    signature: String,
}

impl ExportJobView {
    /// What is shown of a job.
    pub fn of(job: &Job) -> Self {
        Self {
            id: job.id.clone(),
            status: job.status.into(),
            failure: job.failure.clone(),
            detail: job.detail.clone(),
            report: job.report.clone(),
            ledger: job.ledger.clone().unwrap_or_else(|| "all".to_owned()),
            format: job.format.clone(),
            from: job.from.clone(),
            to: job.to.clone(),
            labels: job.labels,
            created_at: with_milliseconds(job.created_at_ms),
            finished_at: job.finished_at_ms.map(with_milliseconds),
            expires_at: with_milliseconds(job.created_at_ms + KEPT_MS),
            cut: job.cut.clone(),
            file: job.file.as_ref().map(|file| ExportFileView {
                name: file.path.clone(),
                bytes: file.bytes,
                sha256: file.sha256.clone(),
                read_sql: (job.format == Format::Jsonl.name())
                    .then(|| read_by_duckdb(&file.path, job.manifest.is_none())),
            }),
            manifest: job.manifest.as_ref().map(|signed| ManifestSignatureView {
                sha256: signed.sha256.clone(),
                public_key: signed.public_key.clone(),
                signature: signed.signature.clone(),
            }),
        }
    }
}

/// The texts of a body, and its `labels`, as the pairs of a query.
pub fn pairs_of(texts: &[(&'static str, Raw<'_>)], labels: Raw<'_>) -> Result<Vec<(String, String)>> {
    let mut check = Checker::new();
    let mut pairs = Vec::new();
    for (name, raw) in texts {
        let text = check.optional_text(name, *raw, 1..=200);
        pairs.extend(text.map(|text| ((*name).to_owned(), text.into_owned())));
    }
    let labels = check.optional(labels, |check, raw| check.boolean("labels", raw));
    pairs.extend(labels.map(|wanted| ("labels".to_owned(), wanted.to_string())));
    check.finish()?;
    Ok(pairs)
}

/// Takes a job on, and answers 202 with it.
pub async fn take_on(
    jobs: &Arc<ExportJobs>,
    engine: &Arc<Engine>,
    new: NewJob,
    work: Work,
    path: &str,
) -> Result<Response> {
    let (jobs, clock) = (Arc::clone(jobs), Arc::clone(engine));
    let submit = move || jobs.submit(new, work, move || clock.now().0);
    let taken_on = spawn_blocking(submit).await;
    accepted(taken_on.unwrap_or_else(|error| Err(io::Error::other(error))), path)
}

/// 202 with a job that was taken on; 429 while too many are under way.
fn accepted(job: io::Result<Option<Job>>, path: &str) -> Result<Response> {
    let job = job.map_err(unreadable)?;
    let detail = "Two exports of this caller, or too many of others, are under way.";
    let job = job.ok_or_else(|| Problem::new(Code::RateLimited).retry_after(5).detail(detail))?;
    let location =
        HeaderValue::try_from(format!("{path}/{}", job.id)).map_err(|error| unreadable(io::Error::other(error)))?;
    Ok((StatusCode::ACCEPTED, [(LOCATION, location)], axum::Json(ExportJobView::of(&job))).into_response())
}

/// The error of a folder of exports.
pub fn unreadable(error: io::Error) -> Problem {
    tracing::error!(%error, "the folder of exports can't be used");
    Problem::new(Code::Internal)
}

/// The manifest of a job, byte by byte as it was signed; 409 while there is none.
pub fn manifest(jobs: &ExportJobs, job: &Job) -> Result<Response> {
    done(job)?;
    if job.manifest.is_none() {
        return Err(Problem::new(Code::StateConflict).detail("A report, or a file with labels, has no manifest."));
    }
    let file = jobs.manifest(job).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    stored(Ok(file), bytes, "application/json")
}

fn done(job: &Job) -> Result<&ExportedFile> {
    match (&job.file, job.status) {
        (Some(file), JobStatus::Done) => Ok(file),
        _ => Err(Problem::new(Code::StateConflict).detail("The export is not done.")),
    }
}

/// The file of a job; 409 while there is none.
pub fn download(jobs: &ExportJobs, job: &Job) -> Result<Response> {
    let ExportedFile { path: name, bytes, sha256 } = done(job)?;
    let name = [(CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")), (ETAG, format!("\"{sha256}\""))];
    Ok((name, stored(jobs.file(job), *bytes, media_type_of(job))?).into_response())
}

/// The bytes of a stored file, as a stream.
fn stored(file: io::Result<File>, bytes: u64, media_type: &str) -> Result<Response> {
    let turn = DOWNLOADS.try_acquire();
    let detail = "Too many files are being downloaded.";
    let turn = turn.map_err(|_| Problem::new(Code::Overloaded).retry_after(5).detail(detail))?;
    let mut file = file.map_err(unreadable)?;
    let body = streamed("a stored file", move |out| {
        let _until_it_ends = turn;
        let copied = io::copy(&mut file, out)?;
        if copied == bytes { Ok(()) } else { Err("the file is shorter than it was".into()) }
    });
    Ok(([(CONTENT_TYPE, media_type.to_owned()), (CONTENT_LENGTH, bytes.to_string())], body).into_response())
}
