//! Lag of the runtime: how long a request waits in its socket before a thread reads it.
//!
//! Under overload most requests wait where no code of this program sees them: in the kernel's list
//! of sockets that are ready, and in the runtime's queue of tasks. A probe waits with them. One end
//! of a socket pair is written to, at most every two milliseconds, and a task reads the other. The
//! time in between is what a request that arrives now has to wait.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Least time between two probes, microseconds.
const PAUSE_US: u64 = 2_000;

/// Probe of the runtime on which it was started.
#[derive(Debug)]
pub(crate) struct LagProbe {
    writer: UnixStream,
    times: Arc<Times>,
}

/// Times in microseconds since the probe was started.
#[derive(Debug)]
struct Times {
    since: Instant,
    /// When the last probe was sent.
    sent: AtomicU64,
    /// When the last probe that was read had been sent.
    read: AtomicU64,
    /// How long that one waited.
    lag: AtomicU64,
}

impl Times {
    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl LagProbe {
    /// Starts a task on the present runtime that reads the probes; it ends when this is dropped.
    ///
    /// Fails when no socket can be opened.
    pub(crate) fn start() -> io::Result<Self> {
        let (writer, reader) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        reader.set_nonblocking(true)?;
        let reader = tokio::net::UnixStream::from_std(reader)?;
        let [sent, read, lag] = Default::default();
        let times = Arc::new(Times { since: Instant::now(), sent, read, lag });
        let of_task = Arc::clone(&times);
        tokio::spawn(async move {
            while reader.readable().await.is_ok() {
                match reader.try_read(&mut [0]) {
                    Ok(1) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    Ok(_) | Err(_) => break,
                }
                let sent = of_task.sent.load(Ordering::Acquire);
                of_task.lag.store(of_task.now().saturating_sub(sent), Ordering::Relaxed);
                of_task.read.store(sent, Ordering::Release);
            }
        });
        Ok(Self { writer, times })
    }

    /// How long a request waits at present, microseconds. Sends the next probe when its time has
    /// come.
    pub(crate) fn look(&self) -> u64 {
        let (now, sent, read) =
            (self.times.now(), self.times.sent.load(Ordering::Acquire), self.times.read.load(Ordering::Acquire));
        let lag = self.times.lag.load(Ordering::Relaxed);
        if sent > read {
            return lag.max(now.saturating_sub(sent));
        }
        if now >= sent + PAUSE_US
            && self.times.sent.compare_exchange(sent, now, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        {
            // There is room for one byte, since none is unread. Without a reader there is no lag.
            if (&self.writer).write(&[0]).is_err() {
                self.times.read.store(now, Ordering::Release);
            }
        }
        lag
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_lag_is_the_time_in_which_nothing_was_read_and_passes() {
        let probe = LagProbe::start().unwrap();
        std::thread::sleep(Duration::from_micros(PAUSE_US));
        assert_eq!(probe.look(), 0, "nothing was sent yet");
        // This is the only thread of the runtime.
        std::thread::sleep(Duration::from_millis(30));
        assert!(probe.look() >= 30_000, "it is known before the probe was read");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(probe.look() >= 30_000);
        while probe.look() >= 30_000 {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
}
