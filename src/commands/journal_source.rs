//! Source of the journal for a command: a stopped data directory, or the server that has it open.

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use actors::backup::{BackupError, Frame, FrameReader, Frames, frames};
use actors::engine::{BalanceFiles, BooksAsOf};
use axum::http::header::AUTHORIZATION;
use axum::http::{Request, StatusCode};
use derived::extents::ExtentError;
use derived::records::LoadError;
use http_body_util::Full;
use ledger::time::Timestamp;
use store::{Cut, Part, Sequence, SledOptions, StoreError};
use tokio::runtime::Handle;
use wire::cut_text::cut_name;

use crate::commands::Failure;
use crate::commands::remote::AnswerBody;
use crate::settings::checked::JournalSettings;
use crate::settings::secrets;
use crate::settings::store_choice::{Store, folder, snapshot};
use web::Secret;
use web::client;
use web::network::{reachable, root_cause};
use web::tls;

/// How long to wait for a server that is stopping and can't be asked.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A journal that can be read, and where it is.
pub enum JournalSource {
    /// No other process has the data directory open.
    Stopped {
        /// The data directory.
        data: PathBuf,
        /// The partitions of the store in it, which is open now.
        parts: Vec<Part>,
    },
    /// A database, as it was when it was opened. Servers go on meanwhile.
    Database {
        /// Host, port and database.
        place: String,
        /// The partitions of the store in it.
        parts: Vec<Part>,
    },
    /// A server has the data directory open.
    Served {
        /// The data directory.
        data: PathBuf,
        /// Address of the server's operators' listener.
        address: SocketAddr,
        /// One of the server's tokens.
        token: Secret,
        /// Certificate chain of the listener, where it speaks TLS.
        certificates: Option<PathBuf>,
    },
}

impl JournalSource {
    /// Opens the data directory. If a server has it open, nothing is sent to that server yet.
    pub fn open(settings: &JournalSettings) -> Result<Self, Failure> {
        if let Store::Postgres(options) = &settings.store {
            let (place, parts) = (settings.store.place().to_owned(), snapshot(options)?);
            return Ok(Self::Database { place, parts });
        }
        let data = settings.data.clone();
        let opened = |lock_wait| match folder(&data, &SledOptions { lock_wait, ..SledOptions::default() }) {
            Ok(parts) => Ok(Some(parts)),
            Err(ExtentError::Store(StoreError::InUse { .. })) => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(parts) = opened(Duration::ZERO)? {
            return Ok(Self::Stopped { data, parts });
        }
        if let Some(token) = secrets::first_ops_token(&settings.ops_token, &data)? {
            let (address, certificates) = (reachable(settings.ops_listen), settings.ops_tls_cert.clone());
            return Ok(Self::Served { data, address, token, certificates });
        }
        // The server can't be asked, but one that is stopping leaves the data soon.
        match opened(LOCK_WAIT)? {
            Some(parts) => Ok(Self::Stopped { data, parts }),
            None => Err(format!(
                "{}: a server has it open; to go through it, set CENTAVO_OPS_TOKEN (or --ops-token) to one of its \
                 tokens, and CENTAVO_OPS_LISTEN (or --ops-listen) to its address",
                data.display()
            )
            .into()),
        }
    }

    /// The books of the nearest balance files that were cut before an instant (milliseconds since
    /// 1970, UTC), and within a cut; `None` if there is none. With what is due then, if that is
    /// asked for. Blocks the thread.
    pub fn before(&self, time: i64, at: Option<&Cut>, with_receivables: bool) -> Result<Option<BooksAsOf>, Failure> {
        let time = Timestamp(time);
        let within = |partition| at.map_or(Sequence(u64::MAX), |at| at.of(partition));
        let of_partitions = match self {
            Self::Stopped { parts, .. } | Self::Database { parts, .. } => {
                let of_part = |part: &Part| {
                    let through = within(part.partition()).min(Sequence(part.head()?.next.0 - 1));
                    let files = BalanceFiles::reading(part.clone())?;
                    let found = files.nearest_before(time, through, with_receivables);
                    let found = found.map_err(|error| match error {
                        LoadError::Store(error) => BackupError::from(error),
                        _ => BackupError::Source("its balance files can't be read"),
                    })?;
                    Ok::<_, BackupError>((part.partition(), found))
                };
                parts.iter().map(of_part).collect::<Result<Vec<_>, _>>()?
            }
            Self::Served { data, .. } => {
                let folder = data.join("files");
                let of_partition = |partition| {
                    let before = (time, within(partition));
                    (partition, BalanceFiles::nearest_in(&folder, partition, before, with_receivables))
                };
                BalanceFiles::partitions_in(&folder).map(of_partition).collect()
            }
        };
        let as_of = BooksAsOf::new(of_partitions);
        Ok((!as_of.through().is_empty()).then_some(as_of))
    }

    /// Its values and heads, its blocks from these Records on through those heads, and the end, as
    /// [`actors::backup::frames`] gives them. A server does not count them as a backup.
    /// Blocks the thread: a task of the runtime must not call it.
    pub fn frames(&self, from: &Cut) -> Result<Frames<'_>, Failure> {
        self.frames_with(from, "&wait=0")
    }

    /// The same frames, which a server counts as a backup.
    pub fn backup_frames(&self, from: &Cut) -> Result<Frames<'_>, Failure> {
        self.frames_with(from, "")
    }

    fn frames_with(&self, from: &Cut, query: &str) -> Result<Frames<'_>, Failure> {
        match self {
            Self::Stopped { parts, .. } | Self::Database { parts, .. } => Ok(frames(parts, from)?),
            Self::Served { data, address, token, certificates } => {
                let answer = ask(data, *address, token, certificates.as_ref(), (from, query))?;
                let name = PathBuf::from(format!("the answer of the server at {address}"));
                Ok(Box::new(sent_frames(FrameReader::new(answer, name)?)))
            }
        }
    }
}

/// The cut that is asked for, among the Records that there are: all of them when none is. Error:
/// the cut, if it has others, or leaves a partition out.
pub fn admitted_cut(asked: Option<&Cut>, last: &Cut) -> Result<Cut, Failure> {
    match asked {
        None => Ok(last.clone()),
        Some(at) if at.partitions() == last.partitions() && at.is_within(last) => Ok(at.clone()),
        Some(at) => {
            let (at, last) = (cut_name(at), cut_name(last));
            Err(format!("there is no Record {at} to cut at: the journal ends at {last}").into())
        }
    }
}

impl fmt::Display for JournalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { data, .. } => write!(f, "{}, with no server", data.display()),
            Self::Database { place, .. } => f.write_str(place),
            Self::Served { address, .. } => write!(f, "the server at {address}"),
        }
    }
}

/// How often a server that is busy is asked again.
const TRIES_MAX: u32 = 5;
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Asks a server for its journals from these Records on, again when it is busy.
fn ask(
    data: &Path,
    address: SocketAddr,
    token: &Secret,
    certificates: Option<&PathBuf>,
    (from, query): (&Cut, &str),
) -> Result<AnswerBody, Failure> {
    let unreachable = |what: String| {
        Failure::from(format!(
            "{}: in use by another process, and no server answers at {address}: {what}; is CENTAVO_OPS_LISTEN (or \
             --ops-listen) its address for operators?",
            data.display()
        ))
    };
    let trust = certificates.map(tls::trust).transpose().map_err(|error| format!("CENTAVO_OPS_TLS_CERT: {error}"))?;
    let first = if from.is_empty() { "1".to_owned() } else { from.name() };
    let path = format!("/ops/backup?from={first}{query}");
    let request = || {
        Request::get(&path)
            .header(AUTHORIZATION, format!("Bearer {}", token.reveal()))
            .body(Full::default())
            .map_err(|_| unreachable("the token is not visible ASCII".to_owned()))
    };
    // There is no time limit: a journal may take hours.
    let send = || {
        let sent = Handle::current().block_on(client::send(address, trust.as_ref(), request()?));
        sent.map_err(|error| unreachable(root_cause(&error)))
    };
    let mut response = send()?;
    for _ in 0..TRIES_MAX {
        // A server that was left in the middle of its journal needs a moment until it notices.
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            drop(response);
            sleep(TRY_AGAIN_AFTER);
            response = send()?;
        }
    }
    let (status, answer) = (response.status(), AnswerBody::new(response, None));
    match status {
        StatusCode::OK => Ok(answer),
        StatusCode::UNAUTHORIZED => Err(format!(
            "the server at {address} does not accept the token: set CENTAVO_OPS_TOKEN (or --ops-token) to one of its \
             tokens; without it, the file operator.token of the data folder is tried"
        )
        .into()),
        status => {
            let mut said = Vec::new();
            let _what_came_is_shown = answer.take(PROBLEM_BYTES_MAX).read_to_end(&mut said);
            Err(format!("the server at {address} answered {status}: {}", String::from_utf8_lossy(&said)).into())
        }
    }
}

const PROBLEM_BYTES_MAX: u64 = 16 * 1024;

/// The frames of an answer: the values and the heads, then the blocks and the end. Data after the
/// end is an error.
pub fn sent_frames<R: Read>(reader: FrameReader<R>) -> impl Iterator<Item = Result<Frame, BackupError>> {
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
