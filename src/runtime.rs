//! Runtime of the program: tokio on all processors, with short queues.
//!
//! A thread that is busy takes few sockets at a time from the kernel. With tokio's 1,024, the tasks
//! of a command under way would wait behind as many new requests at each of its steps, and under
//! overload nearly all commands would be late. What is not taken waits in the kernel, where
//! [`actors::engine::Engine`] measures how long.

use std::io;

use tokio::runtime::{Builder, Runtime};

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
