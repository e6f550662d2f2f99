//! Queue of log lines, and the thread that writes them.
//!
//! The log is no book: whoever logs never waits for whoever reads. A line that finds the queue
//! full, or that cannot be written, is dropped and counted. Nothing here panics, so that a panic
//! can be logged too.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;

/// How many bytes of lines may wait: some 20,000 lines.
pub const BYTES_MAX: usize = 4 << 20;

/// Pause before an output that takes nothing just now (`EAGAIN`) is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Lines that wait to be written.
#[derive(Debug)]
pub struct LogQueue {
    waiting: Mutex<WaitingLines>,
    changed: Condvar,
    bytes_max: usize,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct WaitingLines {
    lines: VecDeque<Box<[u8]>>,
    /// Bytes of these lines, and of the line that is being written.
    bytes: usize,
}

impl LogQueue {
    /// Starts the thread that writes to `output`, for the life of the process. `dropped` counts the
    /// lines that are not written.
    pub fn start(output: impl Write + Send + 'static, bytes_max: usize, dropped: Counter) -> io::Result<Arc<Self>> {
        let queue = Arc::new(Self { waiting: Mutex::default(), changed: Condvar::new(), bytes_max, dropped });
        let written = Arc::clone(&queue);
        thread::Builder::new().name("log".to_owned()).spawn(move || written.write_to(Output::of(output)))?;
        Ok(queue)
    }

    /// Hands in a line, which ends with a line feed. Returns at once.
    pub fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes + line.len() > self.bytes_max {
            self.dropped.inc();
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line.into());
        self.changed.notify_all();
    }

    /// Waits until all lines are written, at most this long.
    pub fn flush(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut waiting = self.waiting.lock();
        while waiting.bytes > 0 && !self.changed.wait_until(&mut waiting, deadline).timed_out() {}
    }

    fn write_to(&self, mut output: Output<impl Write>) {
        let mut reported = 0;
        loop {
            let line = self.next();
            let written = output.write(&line);
            if written.is_err() {
                self.dropped.inc();
            }
            let is_empty = {
                let mut waiting = self.waiting.lock();
                waiting.bytes -= line.len();
                self.changed.notify_all();
                waiting.bytes == 0
            };
            let dropped = self.dropped.get();
            if written.is_ok() && is_empty && dropped > reported {
                let lines = dropped - reported;
                reported = dropped;
                tracing::warn!(lines, "lines of this log were dropped: its reader was slow or gone, or its disk full");
            }
        }
    }

    /// The oldest line, once there is one.
    fn next(&self) -> Box<[u8]> {
        let mut waiting = self.waiting.lock();
        loop {
            match waiting.lines.pop_front() {
                Some(line) => return line,
                None => self.changed.wait(&mut waiting),
            }
        }
    }
}

/// An output of lines.
struct Output<W> {
    to: W,
    /// The last line was written in part.
    is_cut: bool,
}

impl<W: Write> Output<W> {
    fn of(to: W) -> Self {
        Self { to, is_cut: false }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_cut {
            self.write_bytes(b"\n")?;
            self.is_cut = false;
        }
        self.write_bytes(line)
    }

    fn write_bytes(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.to.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(TRY_AGAIN_AFTER);
                    continue;
                }
                Err(error) => return Err(error),
            }
            self.is_cut = !bytes.is_empty();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// An output that takes a byte, or refuses one, when it gets a word for it.
    struct Slow {
        words: Receiver<io::Result<usize>>,
        taken: Sender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let bytes_max = self.words.recv().unwrap_or(Ok(usize::MAX))?.min(bytes.len());
            let _nobody_listens = self.taken.send(bytes[..bytes_max].to_vec());
            Ok(bytes_max)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn slow(bytes_max: usize) -> (Arc<LogQueue>, Sender<io::Result<usize>>, Receiver<Vec<u8>>) {
        let ((word, words), (taken, lines)) = (channel(), channel());
        let queue = LogQueue::start(Slow { words, taken }, bytes_max, Counter::default()).unwrap();
        (queue, word, lines)
    }

    #[test]
    fn a_reader_that_stands_still_costs_lines_and_no_time() {
        let (queue, word, lines) = slow(40);
        (0..1_000).for_each(|number| queue.push(format!("line {number:03}\n").as_bytes()));
        assert_eq!(queue.dropped.get(), 996, "4 lines of 9 bytes fit into 40");
        queue.flush(Duration::ZERO);
        drop(word);
        queue.flush(PATIENCE);
        let read: Vec<u8> = lines.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(read).unwrap(), "line 000\nline 001\nline 002\nline 003\n");
        queue.push(b"after\n");
        queue.flush(PATIENCE);
        assert_eq!(lines.recv_timeout(PATIENCE).unwrap(), b"after\n");
    }

    #[test]
    fn a_line_that_cannot_be_written_is_counted_and_the_next_one_begins_anew() {
        let (queue, word, lines) = slow(1_000);
        let refused = |kind: ErrorKind| Err(io::Error::from(kind));
        let words = [
            Ok(3),
            refused(ErrorKind::Interrupted),
            refused(ErrorKind::WouldBlock),
            Ok(2),
            refused(ErrorKind::StorageFull),
            refused(ErrorKind::BrokenPipe),
            Ok(1),
            Ok(100),
        ];
        words.into_iter().for_each(|next| word.send(next).unwrap());
        ["one, cut\n", "two, lost\n", "three\n"].iter().for_each(|line| queue.push(line.as_bytes()));
        queue.flush(PATIENCE);
        let read: Vec<u8> = lines.try_iter().flatten().collect();
        assert_eq!(String::from_utf8(read).unwrap(), "one, \nthree\n");
        assert_eq!(queue.dropped.get(), 2);
    }
}
