//! `centavo backup`: copies what is new in the journal to a backup folder, from a stopped data directory or through the server that has
//! it open.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use actors::backup::{BackupError, Frame, FrameReader, Run, Taken, frames};
use actors::store::{Sequence, SledOptions, SledStore, StoreError};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use indicatif::ProgressBar;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};

use crate::config::BackupSettings;
use crate::http::credential::Secret;
use crate::network::reachable;
use crate::terminal;
use crate::verify::quietly;

/// Why a backup is not made.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store or the backup failed, or is damaged.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A server has the data open, and no token was given to ask it.
    #[error(
        "{}: a server has it open; to make the backup through it, set CENTAVO_OPS_TOKEN (or --ops-token) to one of its tokens, \
         and CENTAVO_OPS_LISTEN (or --ops-listen) to its address", data.display()
    )]
    NoToken {
        /// The data directory.
        data: PathBuf,
    },
    /// No server answers.
    #[error(
        "{}: in use by another process, and no server answers at {address}: {what}; is CENTAVO_OPS_LISTEN (or --ops-listen) its \
         address for operators?", data.display()
    )]
    Unreachable {
        /// The data directory.
        data: PathBuf,
        /// The address.
        address: SocketAddr,
        /// What went wrong.
        what: String,
    },
    /// The server said no.
    #[error("the server at {address} answered {status}: {body}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The status.
        status: StatusCode,
        /// What it said.
        body: String,
    },
    /// The data made the program panic: it holds what no sound program writes.
    #[error("the backup could not go on: {0}")]
    Panicked(String),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Backup(error.into())
    }
}

/// Makes or continues a backup and says what it holds.
pub async fn run(settings: BackupSettings) -> Result<(), Failure> {
    let begun = Instant::now();
    let out = settings.out.clone();
    let made = tokio::task::spawn_blocking(move || quietly(|| make(&settings)).unwrap_or_else(panicked)).await;
    let (taken, source) = made.unwrap_or_else(|error| Err(Failure::Panicked(error.to_string())))?;
    for line in summary(&out, &taken, &source, begun.elapsed().as_secs_f64()) {
        terminal::say(&line);
    }
    Ok(())
}

fn panicked<T>(message: String) -> Result<T, Failure> {
    Err(Failure::Panicked(message))
}

/// Makes the backup; says too where it was taken from.
fn make(settings: &BackupSettings) -> Result<(Taken, String), Failure> {
    // Whoever has it open is asked at once.
    let options = SledOptions { lock_wait: std::time::Duration::ZERO, ..SledOptions::default() };
    match SledStore::open_existing(&settings.data, &options) {
        Ok(store) => {
            let run = begin(&settings.out)?;
            let from = run.head().next;
            let taken = take(run, frames(&store, from)?)?;
            Ok((taken, format!("{}, with no server", settings.data.display())))
        }
        Err(StoreError::InUse { .. }) => {
            let no_token = || Failure::NoToken { data: settings.data.clone() };
            let token = settings.ops_token.as_ref().ok_or_else(no_token)?;
            let run = begin(&settings.out)?;
            let address = reachable(settings.ops_listen);
            let body = Handle::current().block_on(ask(&settings.data, address, token, run.head().next))?;
            let name = PathBuf::from(format!("the answer of the server at {address}"));
            let taken = take(run, sent_frames(FrameReader::new(Sent::new(body), name)?))?;
            Ok((taken, format!("the server at {address}")))
        }
        Err(error) => Err(error.into()),
    }
}

fn begin(out: &Path) -> Result<Run, BackupError> {
    let bar = terminal::bar("checking the backup", "Records");
    let run = Run::begin(out, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    run
}

fn take(run: Run, frames: impl Iterator<Item = Result<Frame, BackupError>>) -> Result<Taken, BackupError> {
    let bar = terminal::bar("copying the journal", "Records");
    let taken = run.take(frames, &mut |done, total| advance(&bar, done, total));
    bar.finish_and_clear();
    taken
}

fn advance(bar: &ProgressBar, done: u64, total: u64) {
    bar.set_length(total);
    bar.set_position(done);
}

/// Asks a server for all from a Record on.
async fn ask(data: &Path, address: SocketAddr, token: &Secret, from: Sequence) -> Result<Incoming, Failure> {
    let unreachable = |what: String| Failure::Unreachable { data: data.to_path_buf(), address, what };
    let stream = TcpStream::connect(address).await.map_err(|error| unreachable(error.to_string()))?;
    let (mut sender, connection) =
        handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(error.to_string()))?;
    // It ends when the answer is read or dropped; what breaks it is told to whoever reads.
    tokio::spawn(connection);
    let request = Request::get(format!("/ops/backup?from={}", from.0)).header(HOST, address.to_string());
    let request = request.header(AUTHORIZATION, format!("Bearer {}", token.reveal())).body(Empty::<Bytes>::new());
    let request = request.map_err(|_| unreachable("the token is not visible ASCII".to_owned()))?;
    let answer = sender.send_request(request).await.map_err(|error| unreachable(error.to_string()))?;
    let (head, body) = answer.into_parts();
    if head.status == StatusCode::OK {
        return Ok(body);
    }
    let said = Limited::new(body, PROBLEM_BYTES_MAX).collect().await.map(|said| said.to_bytes()).unwrap_or_default();
    let body = String::from_utf8_lossy(&said).into_owned();
    Err(Failure::Refused { address, status: head.status, body })
}

const PROBLEM_BYTES_MAX: usize = 16 * 1024;

/// The frames of an answer: the values and the head, then the blocks and the end, after which nothing may follow.
fn sent_frames(reader: FrameReader<Sent>) -> impl Iterator<Item = Result<Frame, BackupError>> {
    let mut reader = Some(reader);
    let mut ends = 0;
    std::iter::from_fn(move || {
        let frame = reader.as_mut()?.next_frame();
        ends += u32::from(matches!(frame, Ok(Frame::End(_))));
        match (frame, ends) {
            (Ok(frame), 2) => Some(reader.take()?.finish().map(|()| frame)),
            (frame, _) => Some(frame),
        }
    })
}

/// The body of an answer, for a thread that may wait.
struct Sent {
    parts: Receiver<io::Result<Bytes>>,
    part: Bytes,
}

/// Parts that were received and not read yet.
const PARTS_MAX: usize = 4;

impl Sent {
    fn new(mut body: Incoming) -> Self {
        let (sender, parts) = channel(PARTS_MAX);
        Handle::current().spawn(async move {
            while let Some(frame) = body.frame().await {
                let part = frame.map_err(io::Error::other).map(|frame| frame.into_data().unwrap_or_default());
                if sender.send(part).await.is_err() {
                    return;
                }
            }
        });
        Self { parts, part: Bytes::new() }
    }
}

impl Read for Sent {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            match self.parts.blocking_recv() {
                Some(part) => self.part = part?,
                None => return Ok(0),
            }
        }
        let count = into.len().min(self.part.len());
        into[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}

fn summary(out: &Path, taken: &Taken, source: &str, seconds: f64) -> Vec<String> {
    let last = taken.head.next.0 - 1;
    let rows = [
        ["Records".to_owned(), format!("{} new, {} in all", terminal::count(taken.records), terminal::count(last))],
        [
            "Size".to_owned(),
            format!("{} new, {} in all", terminal::bytes(taken.bytes), terminal::bytes(taken.bytes_in_all)),
        ],
        ["Head".to_owned(), format!("sequence {last}, {:?}", taken.head.hash)],
        ["Taken from".to_owned(), source.to_owned()],
        ["Not in it".to_owned(), "the master key (CENTAVO_MASTER_KEY, or master.key beside the data)".to_owned()],
    ];
    let mut lines = vec![format!("{}: the backup is whole ({seconds:.1} s)", out.display())];
    lines.extend(terminal::aligned(&rows, 2).iter().map(|line| format!("  {line}")));
    lines
}
