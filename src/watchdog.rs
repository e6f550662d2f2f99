//! Watchdog: ends the process when the store has stopped, or when the process does not stop though it was told to.
//!
//! It has a thread and a runtime of its own, so that it works when every worker of the other one is blocked. Ending loses nothing: only
//! what is durable was acknowledged, and the next process opens what is there.

use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use actors::store::LongestWait;
use tokio::signal::unix::{SignalKind, signal};

/// Who has waited this long for the store waits for ever. The kernel takes a disk that answers no request for 30 seconds for
/// dead; a slow one answers within a few seconds.
pub const STALLED_AFTER: Duration = Duration::from_secs(30);
/// So long may the end in good order take once it was asked for: the drain of the connections, and all actors put to sleep.
pub const STOP_MAX: Duration = Duration::from_secs(60);
/// What the process ends with: an error of input or output, as in `sysexits.h`.
pub const EXIT_CODE: u8 = 74;

const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// So long may the last line of the log take.
const LAST_WORD_MAX: Duration = Duration::from_secs(1);

/// When the process is ended.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// See [`STALLED_AFTER`].
    pub stalled_after: Duration,
    /// See [`STOP_MAX`].
    pub stop_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { stalled_after: STALLED_AFTER, stop_max: STOP_MAX }
    }
}

/// Starts the watchdog. `longest_wait` tells the longest wait for the store that goes on; `end` ends the process.
pub fn start(
    limits: Limits,
    longest_wait: impl Fn() -> Option<LongestWait> + Send + 'static,
    end: impl FnOnce(String) + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = move || end(runtime.block_on(watch(limits, longest_wait)));
    thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map(drop)
}

/// Waits until the process must be ended, and tells why.
async fn watch(limits: Limits, longest_wait: impl Fn() -> Option<LongestWait>) -> String {
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        // Without signals it still sees that the store has stopped.
        _ => return stalled(limits, &longest_wait, std::future::pending()).await,
    };
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    stalled(limits, &longest_wait, told).await
}

async fn stalled(
    limits: Limits,
    longest_wait: impl Fn() -> Option<LongestWait>,
    told_to_stop: impl Future<Output = ()>,
) -> String {
    let mut told_to_stop = std::pin::pin!(told_to_stop);
    let mut told_at: Option<Instant> = None;
    loop {
        tokio::select! {
            () = told_to_stop.as_mut(), if told_at.is_none() => told_at = Some(Instant::now()),
            () = tokio::time::sleep(LOOKS_EVERY.min(limits.stalled_after)) => {}
        }
        if let Some(LongestWait { what, took }) = longest_wait().filter(|waiting| waiting.took >= limits.stalled_after)
        {
            let seconds = took.as_secs();
            return format!("the store has made no progress for {seconds} s ({what:?})");
        }
        if told_at.is_some_and(|told_at| told_at.elapsed() >= limits.stop_max) {
            return format!("it did not stop within {} s", limits.stop_max.as_secs());
        }
    }
}

/// Ends the process at once, whatever its other threads wait for.
pub fn exit(reason: String) {
    let (told, has_told) = mpsc::channel();
    // The log may be what hangs.
    let telling = thread::Builder::new().spawn(move || {
        tracing::error!(reason, "the process is ended: restart it; nothing that was acknowledged is lost");
        let _nobody_waits = told.send(());
    });
    if telling.is_ok() {
        let _too_late = has_told.recv_timeout(LAST_WORD_MAX);
    }
    std::process::exit(i32::from(EXIT_CODE));
}

/// Watches an engine's store until the process ends.
pub fn guard(engine: &Arc<actors::engine::Engine>) -> std::io::Result<()> {
    // Not the engine itself: it is dropped, and its data closed, before the process ends.
    let monitor = engine.monitor();
    start(Limits::default(), move || monitor.longest_wait(), exit)
}

#[cfg(test)]
mod tests {
    use actors::store::{Monitor, WaitFor};

    use super::*;

    fn watched(limits: Limits, monitor: &Arc<Monitor>) -> mpsc::Receiver<String> {
        let (ended, reason) = mpsc::channel();
        let monitor = Arc::clone(monitor);
        start(limits, move || monitor.longest_wait(), move |reason| ended.send(reason).unwrap()).unwrap();
        reason
    }

    #[test]
    fn a_wait_without_an_end_ends_the_process() {
        let monitor = Arc::new(Monitor::default());
        let _publishing = monitor.begin(WaitFor::Publish);
        let _hangs = monitor.begin(WaitFor::Commit);
        let limits = Limits { stalled_after: Duration::from_millis(20), ..Limits::default() };
        let reason = watched(limits, &monitor).recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(reason.starts_with("the store has made no progress") && reason.ends_with("(Commit)"), "{reason}");
    }

    #[tokio::test]
    async fn a_stop_that_does_not_end_ends_the_process() {
        let limits = Limits { stop_max: Duration::ZERO, ..Limits::default() };
        assert_eq!(stalled(limits, || None, std::future::ready(())).await, "it did not stop within 0 s");
    }
}
