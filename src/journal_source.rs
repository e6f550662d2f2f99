//! The journal as the commands read it: of a stopped data directory, or through the server that has it open.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actors::backup::{BackupError, Frame, FrameReader, frames};
use actors::store::{Sequence, SledOptions, SledStore, StoreError};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};

use crate::config::JournalSettings;
use crate::http::credential::Secret;
use crate::network::reachable;

/// Why a journal is not read.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The store or the copy failed, or is damaged.
    #[error(transparent)]
    Read(#[from] BackupError),
    /// A server has the data open, and no token was given to ask it.
    #[error(
        "{}: a server has it open; to go through it, set CENTAVO_OPS_TOKEN (or --ops-token) to one of its tokens, \
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
    /// The server does not know the token.
    #[error(
        "the server at {address} does not accept the token: set CENTAVO_OPS_TOKEN (or --ops-token) to one of its tokens"
    )]
    WrongToken {
        /// The address.
        address: SocketAddr,
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
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Read(error.into())
    }
}

/// Frames of a journal, one at a time.
pub type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, BackupError>> + 'a>;

/// A journal that can be read.
pub enum JournalSource {
    /// Nobody has it open.
    Stopped {
        /// The data directory.
        data: PathBuf,
        /// What is in it.
        store: Box<SledStore>,
    },
    /// A server has it open.
    Served {
        /// The data directory.
        data: PathBuf,
        /// Where the server is called by operators.
        address: SocketAddr,
        /// One of its tokens.
        token: Secret,
    },
}

impl JournalSource {
    /// Opens the data directory, or finds the server that has it open, which is not asked yet.
    pub fn open(settings: &JournalSettings) -> Result<Self, Failure> {
        let data = settings.data.clone();
        // Whoever has it open is asked at once.
        let options = SledOptions { lock_wait: Duration::ZERO, ..SledOptions::default() };
        match SledStore::open_existing(&data, &options) {
            Ok(store) => Ok(Self::Stopped { data, store: Box::new(store) }),
            Err(StoreError::InUse { .. }) => {
                let address = reachable(settings.ops_listen);
                let token = settings.ops_token.clone().ok_or(Failure::NoToken { data: data.clone() })?;
                Ok(Self::Served { data, address, token })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Its values and its head, then its blocks from a Record on through that head, and the end; see [`actors::backup::frames`]. For
    /// a thread of a runtime that may wait.
    pub fn frames(&self, from: Sequence) -> Result<Frames<'_>, Failure> {
        match self {
            Self::Stopped { store, .. } => Ok(Box::new(frames(&**store, from)?)),
            Self::Served { data, address, token } => {
                let body = Handle::current().block_on(ask(data, *address, token, from))?;
                let name = PathBuf::from(format!("the answer of the server at {address}"));
                Ok(Box::new(sent_frames(FrameReader::new(Sent::new(body), name)?)))
            }
        }
    }
}

impl fmt::Display for JournalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { data, .. } => write!(f, "{}, with no server", data.display()),
            Self::Served { address, .. } => write!(f, "the server at {address}"),
        }
    }
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
    if head.status == StatusCode::UNAUTHORIZED {
        return Err(Failure::WrongToken { address });
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
