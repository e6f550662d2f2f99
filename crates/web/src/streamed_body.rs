//! Streamed responses: a thread of its own makes the body while the client reads it, with a few
//! parts in memory. A slow client holds up no other request. Charges go first: the thread has the
//! lowest priority, and a thread that reads the whole journal pauses while there are commands.

use std::error::Error;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use actors::engine::Engine;
use rustix::time::{ClockId, clock_gettime};
use store::priority;

use axum::body::{Body, Bytes};
use futures_util::stream::poll_fn;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::problem::{Code, Problem, Result, failed};
use super::request_context::{in_this_request, spawn_blocking};

/// Bytes that are gathered before they are sent.
const PART_BYTES: usize = 256 * 1024;
/// Parts that wait for the caller.
const PARTS_MAX: usize = 4;
/// How long a caller may take nothing before the answer is broken off.
const STALL_MAX: Duration = Duration::from_secs(60);

/// Error that breaks an answer off.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A body that `work` writes. `what` names it in the log. When `work` fails, or the caller reads
/// nothing for a minute, the answer is broken off, so that nobody takes a part of it for the whole.
pub fn streamed(
    what: &'static str,
    work: impl FnOnce(&mut dyn Write) -> Result<(), BoxError> + Send + 'static,
) -> Body {
    let (sender, mut receiver) = channel(PARTS_MAX);
    let (runtime, failures) = (Handle::current(), sender.clone());
    let make = in_this_request(move || {
        priority::run_last();
        let _entered = runtime.enter();
        let mut parts = Parts { part: Vec::new(), sender, is_taken: true };
        let work = AssertUnwindSafe(|| work(&mut parts).and_then(|()| Ok(parts.flush()?)));
        let done = catch_unwind(work).unwrap_or_else(|_| Err("it panicked".into()));
        let Err(error) = done else { return };
        if !parts.is_taken {
            tracing::warn!(what, "an answer was broken off by its caller");
            return;
        }
        tracing::error!(what, %error, "an answer could not be made");
        let _the_caller_is_gone = Handle::current().block_on(parts.sender.send(Err(io::Error::other("broken off"))));
    });
    let made = thread::Builder::new().name("answers".to_owned()).spawn(make);
    if let Err(error) = made {
        tracing::error!(what, %error, "an answer could not be made: there is no thread for it");
        let _room_is_there = failures.try_send(Err(error));
    }
    Body::from_stream(poll_fn(move |context| receiver.poll_recv(context)))
}

/// How long to wait for the answer before, whose caller may have all of it while its thread still
/// ends.
const TURN_MAX: Duration = Duration::from_secs(2);

/// Permit for an answer that is made one at a time. While another one is under way: 503 with
/// `Retry-After`.
pub async fn turn(one_at_a_time: &Arc<Semaphore>, under_way: &'static str) -> Result<OwnedSemaphorePermit> {
    match timeout(TURN_MAX, Arc::clone(one_at_a_time).acquire_owned()).await {
        Ok(Ok(turn)) => Ok(turn),
        _ => Err(Problem::new(Code::Overloaded).retry_after(5).detail(under_way)),
    }
}

/// The same permit, as soon as it is free.
pub async fn turn_in_time(one_at_a_time: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(one_at_a_time).acquire_owned().await.expect("nobody closes it")
}

/// Does work that may wait for the disk on a thread of its own, while it is its turn. Error: that
/// of the work, or `internal_error` when it panics.
pub async fn in_turn<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let work = move || {
        let _until_it_is_done = turn;
        work()
    };
    spawn_blocking(work).await.unwrap_or_else(|panicked| Err(failed(panicked)))
}

/// CPU that a thread takes without a pause, while there are commands. A pause is as many times as
/// long.
const WORK_MAX: Duration = Duration::from_millis(2);
const PAUSE_FACTOR: u32 = 9;
/// The factor where the caller takes several times as much CPU: it may be a process of the same
/// machine, and no priority holds it back where the system divides cores between sessions.
const CALLER_PAUSE_FACTOR: u32 = 60;

/// The pace of an answer that reads much of the journal: beside commands it takes a tenth of a
/// core.
pub struct ReadPace {
    engine: Arc<Engine>,
    pause_factor: u32,
    /// When its thread paused last, and the CPU that it had taken then.
    paused: Option<(Instant, Duration)>,
}

impl ReadPace {
    /// Work begins with the first step.
    pub fn new(engine: &Arc<Engine>) -> Self {
        Self { engine: Arc::clone(engine), pause_factor: PAUSE_FACTOR, paused: None }
    }

    /// The same for a caller that takes several times as much CPU for what it reads.
    pub fn of_caller(engine: &Arc<Engine>) -> Self {
        Self { pause_factor: CALLER_PAUSE_FACTOR, ..Self::new(engine) }
    }

    /// A step is done by this thread. Pauses when it is time to; to wait for the caller is no work.
    pub fn step(&mut self) {
        let Some((at, cpu)) = self.paused else {
            self.paused = Some((Instant::now(), thread_cpu()));
            return;
        };
        // Less time than that is less CPU too, and the clock of the CPU is slower to read.
        if at.elapsed() < WORK_MAX {
            return;
        }
        let worked = thread_cpu().saturating_sub(cpu);
        if let Some(pause) = pause_after(worked, self.pause_factor, || self.engine.has_commands()) {
            thread::sleep(pause);
            self.paused = Some((Instant::now(), thread_cpu()));
        }
    }
}

/// How long to pause after this work.
fn pause_after(worked: Duration, factor: u32, has_commands: impl FnOnce() -> bool) -> Option<Duration> {
    (worked >= WORK_MAX).then(|| if has_commands() { worked * factor } else { Duration::ZERO })
}

/// The CPU that the calling thread has taken.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// Gathers what is written and sends it part by part.
struct Parts {
    part: Vec<u8>,
    sender: Sender<io::Result<Bytes>>,
    /// False once the caller went away or stalled.
    is_taken: bool,
}

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.part.extend_from_slice(bytes);
        if self.part.len() >= PART_BYTES {
            self.flush()?;
            // An answer of several parts fills the next one too.
            self.part.reserve_exact(PART_BYTES + bytes.len());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.part.is_empty() {
            return Ok(());
        }
        let part = Bytes::from(std::mem::take(&mut self.part));
        let send = timeout(STALL_MAX, self.sender.send(Ok(part)));
        self.is_taken = matches!(Handle::current().block_on(send), Ok(Ok(())));
        if self.is_taken { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[test]
    fn there_is_a_pause_while_there_are_commands_and_work_was_done() {
        let (short, long) = (Duration::from_micros(1_999), Duration::from_millis(5));
        assert_eq!(pause_after(short, 9, || panic!("nobody asks for each row")), None);
        assert_eq!(pause_after(long, 9, || true), Some(Duration::from_millis(45)));
        assert_eq!(pause_after(long, 30, || true), Some(Duration::from_millis(150)));
        assert_eq!(pause_after(long, 9, || false), Some(Duration::ZERO));
    }

    /// The thread of the answer before ends a little after its caller has all of it.
    #[tokio::test]
    async fn the_turn_comes_when_the_answer_before_has_ended() {
        let one_at_a_time = Arc::new(Semaphore::new(1));
        let before = turn(&one_at_a_time, "under way").await;
        let (next, ()) = tokio::join!(turn(&one_at_a_time, "under way"), async { drop(before) });
        assert!(next.is_ok());
        let refused = turn(&one_at_a_time, "under way").await.err();
        assert_eq!(refused.map(|problem| problem.code()), Some(Code::Overloaded), "the one before has not ended");
    }

    #[tokio::test]
    async fn an_answer_is_made_by_a_thread_of_its_own() {
        let body = streamed("a test", |out| Ok(out.write_all(thread::current().name().unwrap_or("").as_bytes())?));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "answers");
    }

    #[tokio::test]
    async fn what_is_written_arrives_and_what_fails_breaks_off() {
        let whole = vec![7; 3 * PART_BYTES + 1];
        let written = whole.clone();
        let body = streamed("a test", move |out| Ok(out.write_all(&written)?));
        assert!(body.collect().await.unwrap().to_bytes() == whole);
        type Work = fn(&mut dyn Write) -> Result<(), BoxError>;
        let failing: [Work; 2] = [|_| Err("no more".into()), |_| panic!("a defect, for the test")];
        for work in failing {
            let body = streamed("a test", move |out| {
                out.write_all(&[7; 10])?;
                work(out)
            });
            assert!(body.collect().await.is_err(), "a part is not taken for the whole");
        }
    }
}
