//! Runtime of the program: tokio on all processors, with short queues.
//!
//! A thread that is busy takes few sockets at a time from the kernel. With tokio's 1,024, the tasks
//! of a command under way would wait behind as many new requests at each of its steps, and under
//! overload nearly all commands would be late. What is not taken waits in the kernel.

use std::future::Future;
use std::{io, thread};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// Sockets that an idle thread takes at a time: half of its queue of 256 tasks.
const SOCKETS_MAX: usize = 128;
/// Sockets that a thread takes at a time while tasks wait for it.
const SOCKETS_MAX_WHEN_BUSY: usize = 8;

/// Starts the runtime.
///
/// Fails when the system gives no threads or no event queue.
pub fn start() -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .enable_all()
        .max_io_events_per_tick(SOCKETS_MAX)
        .max_io_events_per_busy_tick(SOCKETS_MAX_WHEN_BUSY)
        .build()
}

/// Runs a future, and what it spawns, on threads of their own. When these wait for the disk, no
/// thread of the present runtime does. The receiver hears when the future has ended.
///
/// Fails when the system gives no threads or no event queue.
pub fn beside(name: &str, future: impl Future<Output = ()> + Send + 'static) -> io::Result<oneshot::Receiver<()>> {
    let runtime = Builder::new_multi_thread().thread_name(name).enable_all().build()?;
    let (running, ended) = oneshot::channel();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(future);
        let _nobody_waits = running.send(());
    })?;
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn what_waits_beside_keeps_nobody_here_waiting() {
        let (disk, waiting) = channel();
        let read = async move { waiting.recv_timeout(Duration::from_secs(60)).expect("the others wait") };
        let ended = beside("reads", read).unwrap();
        tokio::task::yield_now().await;
        disk.send(()).unwrap();
        ended.await.unwrap();
    }
}
