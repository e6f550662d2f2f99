//! `centavo backup --follow`: a backup that keeps up with a running server, on any machine (a
//! warm copy).
//!
//! The copy is asynchronous: it has a Record about a second after its answer, and a server that
//! is lost takes what was not copied yet with it. It is asked for by `GET
//! /ops/backup?from=…&wait=…`; while the server does not answer, it is asked again every second.
//! The folder is a backup at every moment, whenever the process ends.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use actors::backup::{BackupRun, FrameReader};
use axum::http::StatusCode;
use tokio::runtime::Handle;

use crate::commands::journal_source::sent_frames;
use crate::commands::remote::{AnswerBody, Flags, Remote};
use crate::commands::terminal::{count, say};
use crate::commands::{Failure, backup};
use crate::settings::checked::JournalSettings;
use crate::settings::secrets;

/// Seconds that a request waits for a new Record: the most that a server allows.
const WAIT_SECONDS: u64 = 20;
/// How long until a server without an answer is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// How long an answer may send nothing.
const STALL_MAX: Duration = Duration::from_secs(60);

/// What to correct where the server refuses the token or does not answer.
const NO_TOKEN: &str =
    "an operator's token is needed: set CENTAVO_OPS_TOKEN or CENTAVO_OPS_TOKEN_FILE to that of the server";

const FLAGS: Flags = Flags { url: "--follow", credential: "--ops-token" };

/// Follows the server at a URL until the process is stopped.
pub async fn run(url: &str, settings: &JournalSettings, out: PathBuf, trust: Option<&PathBuf>) -> Result<(), Failure> {
    let token = secrets::first_ops_token(&settings.ops_token, &settings.data)?;
    let server = Remote::new(url, token.ok_or(NO_TOKEN)?, trust, FLAGS)?;
    tokio::task::spawn_blocking(move || follow(&server, &out)).await?
}

fn follow(server: &Remote, out: &Path) -> Result<(), Failure> {
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
    Fatal(Failure),
}

/// Takes what is new; gives the number of Records.
fn step(server: &Remote, run: &mut BackupRun) -> Result<u64, StepFailure> {
    let path = format!("/ops/backup?from={}&wait={WAIT_SECONDS}", run.heads().next().name());
    let answer =
        Handle::current().block_on(server.open(&path)).map_err(|error| StepFailure::Silent(error.to_string()))?;
    let status = answer.status();
    if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
        let refused = format!("the server answered {status}; is the token one of its own?");
        return Err(StepFailure::Fatal(refused.into()));
    }
    if !status.is_success() {
        return Err(StepFailure::Silent(format!("{} answered {status}", server.url())));
    }
    let sent = AnswerBody::new(answer, Some(STALL_MAX));
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
