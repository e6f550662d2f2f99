//! `centavo backup --follow`: a backup that keeps up with a running server, on any machine (a
//! warm copy).
//!
//! The copy is asynchronous: it has a Record about a second after its answer, and a server that
//! is lost takes what was not copied yet with it. It is asked for by `GET
//! /ops/backup?from=…&wait=…`; while the server does not answer, it is asked again every second.
//! The folder is a backup at every moment, whenever the process ends.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use actors::backup::{BackupError, BackupRun, FrameReader};
use axum::body::Bytes;
use axum::http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::commands::backup;
use crate::commands::journal_source::sent_frames;
use crate::commands::remote::{Flags, Remote, RemoteError};
use crate::commands::terminal::{count, say};
use crate::settings::checked::BackupSettings;
use crate::settings::secrets::{self, SecretError};

/// Why following ends.
#[derive(Debug, thiserror::Error)]
pub enum FollowFailure {
    /// The copy cannot be written, is damaged, or is one of another journal.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The operators' tokens cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// No operator's token was found.
    #[error("an operator's token is needed: set CENTAVO_OPS_TOKEN or CENTAVO_OPS_TOKEN_FILE to that of the server")]
    NoToken,
    /// The URL cannot be one.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The server refuses.
    #[error("the server answered {0}; is the token one of its own?")]
    Refused(StatusCode),
    /// Following panicked.
    #[error("following could not go on: {0}")]
    Panicked(String),
}

/// Seconds that a request waits for a new Record: the most that a server allows.
const WAIT_SECONDS: u64 = 20;
/// How long until a server without an answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long an answer may send nothing.
const STALL_MAX: Duration = Duration::from_secs(60);

/// What to correct where the server refuses the token or does not answer.
const FLAGS: Flags = Flags { url: "--follow", credential: "--ops-token" };

/// Follows the server at a URL until the process is stopped.
pub async fn run(url: &str, settings: BackupSettings) -> Result<(), FollowFailure> {
    let token = secrets::first_ops_token(&settings.journal.ops_token, &settings.journal.data)?;
    let server = Remote::new(url, token.ok_or(FollowFailure::NoToken)?, settings.trust.as_ref(), FLAGS)?;
    let followed = tokio::task::spawn_blocking(move || follow(&server, &settings.out)).await;
    followed.unwrap_or_else(|error| Err(FollowFailure::Panicked(error.to_string())))
}

fn follow(server: &Remote, out: &std::path::Path) -> Result<(), FollowFailure> {
    let mut run = backup::begin(out)?;
    say(&format!("{} follows {}, from sequence {} on.", out.display(), server.url(), run.heads().next().name()));
    let (mut is_silent, mut is_behind) = (false, true);
    loop {
        match step(server, &mut run) {
            Ok(records) => {
                if is_silent {
                    say("The server answers again.");
                }
                if std::mem::take(&mut is_behind) {
                    say(&format!(
                        "Up to date through sequence {}, {} Records new.",
                        run.heads().cut().name(),
                        count(records)
                    ));
                }
                is_silent = false;
                run.merge()?;
            }
            Err(StepFailure::Fatal(failure)) => return Err(failure),
            Err(StepFailure::Silent(what)) => {
                if !is_silent {
                    say(&format!("{what}. It is asked again every second."));
                }
                (is_silent, is_behind) = (true, true);
                sleep(ASK_AGAIN);
            }
        }
    }
}

/// Why a step took nothing.
enum StepFailure {
    /// The server did not answer, or not to the end.
    Silent(String),
    /// Another step would fail as well.
    Fatal(FollowFailure),
}

/// Takes what is new; gives the number of Records.
fn step(server: &Remote, run: &mut BackupRun) -> Result<u64, StepFailure> {
    let runtime = Handle::current();
    let path = format!("/ops/backup?from={}&wait={WAIT_SECONDS}", run.heads().next().name());
    let answer = runtime.block_on(server.open(&path)).map_err(|error| StepFailure::Silent(error.to_string()))?;
    let status = answer.status();
    if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
        return Err(StepFailure::Fatal(FollowFailure::Refused(status)));
    }
    if !status.is_success() {
        return Err(StepFailure::Silent(format!("{} answered {status}", server.url())));
    }
    let sent = AnswerBody { runtime, body: answer.into_body(), part: Bytes::new() };
    let name = PathBuf::from(format!("the answer of {}", server.url()));
    let reader = FrameReader::new(sent, name).map_err(|error| StepFailure::Silent(error.to_string()))?;
    // An answer that breaks off is asked for again; what the copy itself refuses is not.
    let is_broken_off = Cell::new(false);
    let frames = sent_frames(reader).inspect(|frame| is_broken_off.set(is_broken_off.get() || frame.is_err()));
    match run.take(frames, &mut |_, _| {}) {
        Ok(taken) => Ok(taken.records),
        Err(error) if is_broken_off.get() => Err(StepFailure::Silent(error.to_string())),
        Err(error) => Err(StepFailure::Fatal(error.into())),
    }
}

/// The body of an answer, which is read by a thread that may wait.
struct AnswerBody {
    runtime: Handle,
    body: Incoming,
    /// Bytes that arrived and were not read yet.
    part: Bytes,
}

impl Read for AnswerBody {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.runtime.block_on(async { timeout(STALL_MAX, self.body.frame()).await }) {
                Ok(Some(Ok(frame))) => self.part = frame.into_data().unwrap_or_default(),
                Ok(Some(Err(error))) => return Err(io::Error::other(error)),
                Ok(None) => return Ok(0),
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
        let count = into.len().min(self.part.len());
        into[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}
