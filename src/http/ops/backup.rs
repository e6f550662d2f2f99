//! A backup of the journal while the server runs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actors::backup::{BackupError, write_magic};
use actors::store::Sequence;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::http::app::{App, Operator};
use crate::http::problem::{Code, Problem};
use crate::http::reply::{number, query};

/// Bytes that are gathered before they are sent.
const PART_BYTES: usize = 64 * 1024;
/// Parts that wait for the caller.
const PARTS_MAX: usize = 4;
/// How long a caller may take nothing before the answer is broken off.
const STALL_MAX: Duration = Duration::from_secs(60);

/// What a backup lacks that has all before `from`, in the frames of a backup's files, through the head of this moment. One at a time. It
/// waits for the caller in a thread of its own, with a few parts in memory; nobody else waits for it.
#[utoipa::path(get, path = "/ops/backup", operation_id = "get_backup", params(("from" = Option<u64>, Query, minimum = 1, description = "The first Record that is lacking; 1 when absent.")),
    responses((status = 200, body = String, content_type = "application/octet-stream")))]
pub async fn backup(State(app): State<Arc<App>>, _: Operator, parts: Parts) -> Result<Response, Problem> {
    let from = Sequence(number(&query(&parts)?, "from", 1, u64::MAX)?);
    let one_at_a_time = Arc::clone(&app.backing_up).try_acquire_owned();
    let under_way = |_| Problem::new(Code::Overloaded).retry_after(5).detail("Another backup is under way.");
    let one_at_a_time = one_at_a_time.map_err(under_way)?;
    let (sender, receiver) = channel(PARTS_MAX);
    tokio::task::spawn_blocking(move || {
        let _until_it_ends = one_at_a_time;
        if let Err(error) = send(&app, from, &sender) {
            tracing::error!(%error, "a backup could not be read from the store");
            let _the_caller_is_gone = Handle::current().block_on(sender.send(Err(io::Error::other("broken off"))));
        }
    });
    Ok(([(CONTENT_TYPE, "application/octet-stream")], Body::new(Parted(receiver))).into_response())
}

/// Sends all frames, unless the caller goes away or stalls.
fn send(app: &App, from: Sequence, sender: &Sender<io::Result<Bytes>>) -> Result<(), BackupError> {
    let failed = |source| BackupError::Machine { path: "the answer".into(), source };
    let runtime = Handle::current();
    let mut part = Vec::with_capacity(PART_BYTES);
    let take = |part: Vec<u8>| {
        let sent = runtime.block_on(async { tokio::time::timeout(STALL_MAX, sender.send(Ok(part.into()))).await });
        matches!(sent, Ok(Ok(())))
    };
    write_magic(&mut part).map_err(failed)?;
    for frame in app.engine.backup(from)? {
        part.extend(frame?.to_bytes().map_err(failed)?);
        if part.len() >= PART_BYTES && !take(std::mem::take(&mut part)) {
            tracing::warn!("a backup was broken off by its caller");
            return Ok(());
        }
    }
    let _taken = take(part);
    Ok(())
}

/// A body in parts, as they come.
struct Parted(Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Parted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, io::Error>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| part.map(hyper::body::Frame::data)))
    }
}
