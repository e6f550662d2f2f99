//! Watchdog: ends the process when the store makes no progress, or when a stop takes too long.
//!
//! It has its own thread and its own runtime, so it works while every worker of the other runtime
//! is blocked. Ending the process loses nothing: only durable Records were acknowledged, and the
//! next process opens them.
//!
//! It notifies a service manager by `sd_notify(3)`: a sign of life each second, as long as the
//! store makes progress.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use actors::store::LongestWait;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// A wait for the store that takes this long is taken to be endless. The kernel takes a disk that
/// answers no request for 30 seconds to be dead; a slow disk answers within a few seconds.
pub const STALLED_AFTER: Duration = Duration::from_secs(30);
/// Longest orderly stop: connections are drained, and actors are put to sleep.
pub const STOP_MAX: Duration = Duration::from_secs(60);
/// Exit code of the process: an error of input or output, as in `sysexits.h`.
pub const EXIT_CODE: u8 = 74;

const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// Limits after which the process is ended.
#[derive(Clone, Copy, Debug)]
pub struct WatchdogLimits {
    /// Longest wait for the store; [`STALLED_AFTER`] in production.
    pub stalled_after: Duration,
    /// Longest orderly stop; [`STOP_MAX`] in production.
    pub stop_max: Duration,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        Self { stalled_after: STALLED_AFTER, stop_max: STOP_MAX }
    }
}

/// Starts the watchdog. `longest_wait` gives the longest wait for the store that is going on. `end`
/// ends the process, with the reason.
pub fn start(
    limits: WatchdogLimits,
    longest_wait: impl Fn() -> Option<LongestWait> + Send + 'static,
    end: impl FnOnce(String) + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = move || end(runtime.block_on(watch(limits, longest_wait)));
    thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map(drop)
}

/// Waits until the process must be ended, and gives the reason.
async fn watch(limits: WatchdogLimits, longest_wait: impl Fn() -> Option<LongestWait>) -> String {
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        // Without signals it still watches the store.
        _ => return stalled(limits, &longest_wait, sign_of_life, std::future::pending()).await,
    };
    let told = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    stalled(limits, &longest_wait, sign_of_life, told).await
}

fn sign_of_life() {
    tell_manager(NotifyState::Watchdog);
}

/// Gives a sign of life at each look, until the store makes no progress or a stop takes too long.
async fn stalled(
    limits: WatchdogLimits,
    longest_wait: impl Fn() -> Option<LongestWait>,
    sign_of_life: impl Fn(),
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
        sign_of_life();
        if told_at.is_some_and(|told_at| told_at.elapsed() >= limits.stop_max) {
            return format!("it did not stop within {} s", limits.stop_max.as_secs());
        }
    }
}

/// Notifies the service manager of a state, if one listens (`NOTIFY_SOCKET`).
pub fn tell_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager does not listen");
    }
}

/// Ends the process at once, whatever its other threads wait for.
pub fn exit(reason: String) {
    tracing::error!(reason, "the process is ended: restart it; nothing that was acknowledged is lost");
    logging::flush();
    std::process::exit(i32::from(EXIT_CODE));
}

/// Starts the watchdog of an engine's store, for the life of the process.
pub fn guard(engine: &Arc<actors::engine::Engine>) -> std::io::Result<()> {
    // The monitor, not the engine: the engine must be dropped before the process ends.
    let monitor = engine.monitor();
    start(WatchdogLimits::default(), move || monitor.longest_stop(), exit)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;

    use actors::store::{Monitor, WaitFor};

    use super::*;

    fn watched(limits: WatchdogLimits, monitor: &Arc<Monitor>) -> mpsc::Receiver<String> {
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
        let limits = WatchdogLimits { stalled_after: Duration::from_millis(20), ..WatchdogLimits::default() };
        let reason = watched(limits, &monitor).recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(reason.starts_with("the store has made no progress") && reason.ends_with("(Commit)"), "{reason}");
    }

    /// A manager hears nothing more once the store has stopped, and does so while it waits less
    /// long.
    #[test]
    fn the_signs_of_life_end_with_the_progress_of_the_store() {
        let limits = WatchdogLimits { stalled_after: Duration::from_millis(20), ..WatchdogLimits::default() };
        let heard = |longest_wait: &dyn Fn(usize) -> Option<LongestWait>| {
            let (signs, looks) = (Cell::new(0), Cell::new(0));
            let watch = stalled(
                limits,
                || longest_wait(looks.replace(looks.get() + 1)),
                || signs.set(signs.get() + 1),
                std::future::pending(),
            );
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            (runtime.block_on(watch), signs.get())
        };
        let waiting = |millis| Some(LongestWait { what: WaitFor::Commit, took: Duration::from_millis(millis) });
        let (reason, signs) = heard(&|look| [None, waiting(19), None, waiting(20)][look]);
        assert!(reason.starts_with("the store has made no progress"), "{reason}");
        assert_eq!(signs, 3, "a sign for each look that found progress, and none for the last one");
    }

    #[tokio::test]
    async fn a_stop_that_does_not_end_ends_the_process() {
        let limits = WatchdogLimits { stop_max: Duration::ZERO, ..WatchdogLimits::default() };
        assert_eq!(stalled(limits, || None, || {}, std::future::ready(())).await, "it did not stop within 0 s");
    }
}
