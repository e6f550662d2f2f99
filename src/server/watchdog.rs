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

use sd_notify::NotifyState;
use store::LongestWait;
use tokio::signal::unix::{SignalKind, signal};

use crate::server::logging;

/// A wait for the store that takes this long is taken to be endless. The kernel takes a disk that
/// answers no request for 30 seconds to be dead; a slow disk answers within a few seconds.
pub const STALLED_AFTER: Duration = Duration::from_secs(30);
/// Longest orderly stop: connections are drained, and actors are put to sleep.
pub const STOP_MAX: Duration = Duration::from_secs(60);
/// Longest orderly stop while the database does not answer: nothing more can be acknowledged, and
/// what was acknowledged is durable.
pub const STOP_WITHOUT_STORE_MAX: Duration = Duration::from_secs(8);
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
    /// Longest orderly stop without a usable store; [`STOP_WITHOUT_STORE_MAX`] in production.
    pub stop_without_store_max: Duration,
}

impl Default for WatchdogLimits {
    fn default() -> Self {
        let (stalled_after, stop_max) = (STALLED_AFTER, STOP_MAX);
        Self { stalled_after, stop_max, stop_without_store_max: STOP_WITHOUT_STORE_MAX }
    }
}

/// What a look at the store shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreLook {
    /// The longest wait for it that is going on.
    pub longest_wait: Option<LongestWait>,
    /// It can't be used: its database does not answer, or another process has it.
    pub is_unusable: bool,
}

/// Starts the watchdog. `store` looks at the store. `end` ends the process, with the reason.
pub fn start(
    limits: WatchdogLimits,
    store: impl Fn() -> StoreLook + Send + 'static,
    end: impl FnOnce(String) + Send + 'static,
) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let watch = move || end(runtime.block_on(watch(limits, store)));
    thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map(drop)
}

/// Waits until the process must be ended, and gives the reason.
async fn watch(limits: WatchdogLimits, store: impl Fn() -> StoreLook) -> String {
    let (mut terminate, mut interrupt) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
        // Without signals it still watches the store.
        _ => return stalled(limits, &store, sign_of_life, std::future::pending()).await,
    };
    let stop = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    stalled(limits, &store, sign_of_life, stop).await
}

fn sign_of_life() {
    tell_manager(NotifyState::Watchdog);
}

/// Gives a sign of life at each look, until the store makes no progress or a stop takes too long.
async fn stalled(
    limits: WatchdogLimits,
    store: impl Fn() -> StoreLook,
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
        let StoreLook { longest_wait, is_unusable } = store();
        if let Some(LongestWait { what, took }) = longest_wait.filter(|waiting| waiting.took >= limits.stalled_after) {
            let seconds = took.as_secs();
            return format!("the store has made no progress for {seconds} s ({what:?})");
        }
        sign_of_life();
        if told_at.is_some_and(|told_at| told_at.elapsed() >= limits.stop_max) {
            return format!("it did not stop within {} s", limits.stop_max.as_secs());
        }
        let max = limits.stop_without_store_max;
        if is_unusable && told_at.is_some_and(|told_at| told_at.elapsed() >= max) {
            return format!("it did not stop within {} s, and its store can't be used", max.as_secs());
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
    let (monitor, usable) = (engine.monitor(), engine.watch_use());
    let look = move || StoreLook { longest_wait: monitor.longest_stop(), is_unusable: !usable() };
    start(WatchdogLimits::default(), look, exit)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::mpsc;

    use store::{Monitor, WaitFor};

    use super::*;

    fn watched(limits: WatchdogLimits, monitor: &Arc<Monitor>) -> mpsc::Receiver<String> {
        let (ended, reason) = mpsc::channel();
        let monitor = Arc::clone(monitor);
        let look = move || StoreLook { longest_wait: monitor.longest_wait(), is_unusable: false };
        start(limits, look, move |reason| ended.send(reason).unwrap()).unwrap();
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
                || StoreLook { longest_wait: longest_wait(looks.replace(looks.get() + 1)), is_unusable: false },
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
        let stopped = stalled(limits, StoreLook::default, || {}, std::future::ready(()));
        assert_eq!(stopped.await, "it did not stop within 0 s");
        let limits = WatchdogLimits { stop_without_store_max: Duration::ZERO, ..WatchdogLimits::default() };
        let unusable = || StoreLook { longest_wait: None, is_unusable: true };
        let stopped = stalled(limits, unusable, || {}, std::future::ready(())).await;
        assert_eq!(stopped, "it did not stop within 0 s, and its store can't be used");
    }
}
