//! Write timeout and bound on unwritten bytes: how slowly a client may read, and how many bytes may
//! wait in all.
//!
//! hyper copies an answer into a buffer of its connection and writes it as the client reads.
//! [`Outgoing`] stands between hyper and the socket. It cuts a connection whose client reads too
//! slowly. It also cuts a connection whose bytes would exceed the bound of all connections
//! together. [`Parts`] gives a large body to hyper part by part, so that no connection copies it
//! whole. Bytes in the buffers of the system's sockets are not counted.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actors::metrics::add;
use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::pace::{Deadline, Pace};

/// Limits on unread bytes, and on slow clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteLimits {
    /// How slowly a client may take what waits for it.
    pub pace: Pace,
    /// Bytes that may wait on all connections together.
    pub waiting_max: usize,
    /// How long a client may take nothing while more than half of `waiting_max` waits.
    pub idle_max_when_tight: Duration,
}

impl Default for WriteLimits {
    fn default() -> Self {
        WriteLimits {
            pace: Pace { idle_max: Duration::from_secs(20), bytes_per_second: 1_024 },
            waiting_max: 64 * 1024 * 1024,
            idle_max_when_tight: Duration::from_secs(1),
        }
    }
}

/// Bytes that hyper is given at a time.
const PART_BYTES: usize = 16 * 1024;

/// Unwritten bytes of all connections together.
#[derive(Debug)]
pub struct Backlog {
    limits: WriteLimits,
    waiting: Gauge,
    cut: Counter,
}

impl Default for Backlog {
    fn default() -> Self {
        Self::new(WriteLimits::default(), &mut Registry::default())
    }
}

impl Backlog {
    /// Nothing waits yet. A registry gets its metrics.
    pub fn new(limits: WriteLimits, registry: &mut Registry) -> Self {
        let to = registry.sub_registry_with_prefix("centavo");
        let waiting = add(to, "http_waiting_bytes", "Bytes that wait for clients to read them", Gauge::default());
        let cut = add(to, "http_unread_cut", "Connections cut because their clients did not read", Counter::default());
        Self { limits, waiting, cut }
    }

    /// Bytes that wait now.
    pub fn waiting(&self) -> usize {
        usize::try_from(self.waiting.get()).unwrap_or_default()
    }

    /// Connections that were cut so far.
    pub fn cuts(&self) -> u64 {
        self.cut.get()
    }

    fn is_tight(&self) -> bool {
        self.waiting() > self.limits.waiting_max / 2
    }

    /// Counts a connection that is cut, and gives the error that says why.
    fn cut(&self, kind: io::ErrorKind, why: &'static str) -> io::Error {
        self.cut.inc();
        io::Error::new(kind, why)
    }
}

/// The part of a backlog that one connection or body has.
#[derive(Debug)]
struct BacklogShare {
    backlog: Arc<Backlog>,
    bytes: usize,
}

impl BacklogShare {
    fn set(&mut self, bytes: usize) -> io::Result<()> {
        let change = bytes as i64 - self.bytes as i64;
        if change == 0 {
            return Ok(());
        }
        let waiting = self.backlog.waiting.inc_by(change) + change;
        self.bytes = bytes;
        if change > 0 && waiting > self.backlog.limits.waiting_max as i64 {
            return Err(self.backlog.cut(io::ErrorKind::OutOfMemory, "too many bytes wait to be written"));
        }
        Ok(())
    }
}

impl Drop for BacklogShare {
    fn drop(&mut self) {
        self.backlog.waiting.dec_by(self.bytes as i64);
    }
}

/// A stream whose writing ends with an error once its peer reads too slowly.
#[derive(Debug)]
pub struct Outgoing<S> {
    stream: S,
    held: BacklogShare,
    /// Only while bytes wait.
    stall: Option<Box<Stall>>,
}

#[derive(Debug)]
struct Stall {
    deadline: Deadline,
    moved_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Stall {
    fn begin(limits: &WriteLimits) -> Box<Self> {
        let now = Instant::now();
        let deadline = Deadline::begin(limits.pace, now);
        let timer = Box::pin(sleep_until(deadline.at().min(now + limits.idle_max_when_tight)));
        Box::new(Stall { deadline, moved_at: now, timer })
    }

    fn ends_at(&self, backlog: &Backlog) -> Instant {
        let at = self.deadline.at();
        if backlog.is_tight() { at.min(self.moved_at + backlog.limits.idle_max_when_tight) } else { at }
    }
}

impl<S> Outgoing<S> {
    /// A stream whose waiting bytes count towards a backlog.
    pub fn new(stream: S, backlog: Arc<Backlog>) -> Self {
        Outgoing { stream, held: BacklogShare { backlog, bytes: 0 }, stall: None }
    }

    fn wrote(&mut self, written: usize, of: usize) {
        let Some(stall) = &mut self.stall else { return };
        if written < of {
            let now = Instant::now();
            stall.deadline.moved(written, now);
            stall.moved_at = now;
        } else {
            self.stall = None;
            let _fewer_always_fit = self.held.set(0);
        }
    }

    fn wait(&mut self, context: &mut Context<'_>, bytes: usize) -> io::Result<()> {
        self.held.set(bytes)?;
        let backlog = &self.held.backlog;
        let stall = self.stall.get_or_insert_with(|| Stall::begin(&backlog.limits));
        while stall.timer.as_mut().poll(context).is_ready() {
            let (now, ends_at) = (Instant::now(), stall.ends_at(backlog));
            if now >= ends_at {
                return Err(backlog.cut(io::ErrorKind::TimedOut, "the client does not read"));
            }
            stall.timer.as_mut().reset(ends_at.min(now + backlog.limits.idle_max_when_tight));
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Outgoing<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Outgoing<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.stream).poll_write(context, bytes) {
            Poll::Ready(Ok(written)) => {
                self.wrote(written, bytes.len());
                Poll::Ready(Ok(written))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match self.wait(context, bytes.len()) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Marks an answer whose body is shared by all callers: it takes no memory of its own while it
/// waits.
#[derive(Clone, Copy, Debug)]
pub struct OneCopy;

/// A body in parts of at most 16 KiB, with a guard that is dropped when the body is.
#[derive(Debug)]
pub struct Parts<G = ()> {
    body: Body,
    /// Rest of the frame that is being handed on.
    rest: Bytes,
    held: BacklogShare,
    is_one_copy: bool,
    guard: G,
}

impl Parts {
    /// The parts of a body. Parts that are not handed on yet count towards a backlog.
    pub fn of(body: Body, is_one_copy: bool, backlog: Arc<Backlog>) -> Self {
        Parts { body, rest: Bytes::new(), held: BacklogShare { backlog, bytes: 0 }, is_one_copy, guard: () }
    }

    /// The same with a guard.
    pub fn guarded<G>(self, guard: G) -> Parts<G> {
        let Parts { body, rest, held, is_one_copy, guard: () } = self;
        Parts { body, rest, held, is_one_copy, guard }
    }
}

impl<G: Unpin> hyper::body::Body for Parts<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let parts = &mut *self;
        if parts.rest.is_empty() {
            match ready!(Pin::new(&mut parts.body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => parts.rest = data,
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let part = parts.rest.split_to(PART_BYTES.min(parts.rest.len()));
        if !parts.is_one_copy
            && let Err(error) = parts.held.set(parts.rest.len())
        {
            return Poll::Ready(Some(Err(axum::Error::new(error))));
        }
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (of_body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    fn backlog(waiting_max: usize) -> Arc<Backlog> {
        Arc::new(Backlog::new(WriteLimits { waiting_max, ..WriteLimits::default() }, &mut Registry::default()))
    }

    #[tokio::test]
    async fn a_body_in_parts_is_the_same_and_what_is_left_of_it_is_counted() {
        for (length, is_one_copy) in [(0, false), (1, false), (PART_BYTES, false), (100_000, false), (100_000, true)] {
            let whole: Bytes = (0..length).map(|index| index as u8).collect();
            let backlog = backlog(1 << 20);
            let mut parts = Parts::of(Body::from(whole.clone()), is_one_copy, Arc::clone(&backlog));
            let mut read = Vec::new();
            while let Some(frame) = parts.frame().await {
                let part = frame.unwrap().into_data().unwrap();
                assert!(part.len() <= PART_BYTES);
                read.extend_from_slice(&part);
                let left = if is_one_copy { 0 } else { whole.len() - read.len() };
                assert_eq!(backlog.waiting(), left);
                let hint = hyper::body::Body::size_hint(&parts);
                assert_eq!(hint.exact(), Some((whole.len() - read.len()) as u64));
            }
            assert!(read == whole, "{length} bytes");
        }
    }

    #[tokio::test]
    async fn a_body_that_would_pass_the_bound_is_broken_off_and_gives_back_what_it_had() {
        let backlog = backlog(100_000);
        let part_of = |length: usize| Parts::of(Body::from(vec![0; length]), false, Arc::clone(&backlog));
        let mut first = part_of(90_000);
        assert!(first.frame().await.unwrap().is_ok());
        let mut second = part_of(90_000);
        assert!(second.frame().await.unwrap().is_err());
        drop(second);
        assert_eq!((backlog.waiting(), backlog.cuts()), (90_000 - PART_BYTES, 1));
        drop(first);
        assert!(part_of(90_000).frame().await.unwrap().is_ok());
        assert_eq!(backlog.waiting(), 0);
    }
}
