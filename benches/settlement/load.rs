//! The load generator: keep-alive connections on one thread, requests that were written out before,
//! one in flight on each connection. A request costs one write and one read; of an answer, only the
//! status is looked at once its length is known.
//!
//! A closed load sends the next request when the answer of the last one is there. An open load
//! sends at a fixed rate whatever the server does. Its times count from the moment at which a
//! request *should* have been sent, so that waiting for a free connection is not hidden (no
//! coordinated omission).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::sleep;

use crate::machine::CpuTime;

/// What a request for a charge begins with when it carries a key; the digits are written over with
/// a number never used before.
pub(crate) const KEYED: &str = "POST /api/card HTTP/1.1\r\nidempotency-key: 0000000000000000\r\n";
/// Where the digits are.
const DIGITS: std::ops::Range<usize> = KEYED.len() - 18..KEYED.len() - 2;
/// How often requests of an open load come due, as a burst.
const TICK: Duration = Duration::from_micros(250);

/// How many connections are opened between two pauses: an eighth of the server's queue.
const OPENED_AT_ONCE: usize = 128;
/// The pause, for the server to accept them.
const OPENING_PAUSE: Duration = Duration::from_millis(4);

static NEXT_KEY: AtomicU64 = AtomicU64::new(1);

/// Requests, taken in turn, and the status that each is answered with when all is well.
pub(crate) struct Requests {
    /// The text of each.
    pub(crate) texts: Vec<Vec<u8>>,
    /// True when each begins with [`KEYED`], and gets a key of its own.
    pub(crate) keyed: bool,
}

/// What a load showed.
pub(crate) struct LoadFigures {
    /// Microseconds until the charge was made, of each one that was.
    pub(crate) times: Histogram<u64>,
    /// Microseconds until the answer 503, of each request that got it.
    pub(crate) refused: Histogram<u64>,
    /// Charges made before the load ended: without those of its last moments.
    pub(crate) in_time: u64,
    /// Requests that no connection was free for until the load ended.
    pub(crate) unsent: u64,
    /// How long the load lasted.
    pub(crate) lasted: Duration,
    /// CPU time meanwhile.
    pub(crate) cpu: CpuTime,
}

impl Default for LoadFigures {
    fn default() -> Self {
        let histogram = || Histogram::new_with_bounds(1, 120_000_000, 3).expect("two minutes, to three digits");
        let (lasted, cpu) = Default::default();
        let (in_time, unsent) = (0, 0);
        Self { times: histogram(), refused: histogram(), in_time, unsent, lasted, cpu }
    }
}

impl LoadFigures {
    /// Charges a second.
    pub(crate) fn rate(&self) -> f64 {
        self.in_time as f64 / self.lasted.as_secs_f64()
    }

    /// Answers of all kinds.
    pub(crate) fn answers(&self) -> u64 {
        self.times.len() + self.refused.len()
    }

    /// The latency that this part of all charges stays within, milliseconds.
    pub(crate) fn ms_at(&self, quantile: f64) -> f64 {
        self.times.value_at_quantile(quantile) as f64 / 1_000.0
    }

    /// CPU time for one answer.
    pub(crate) fn cpu_each(&self) -> CpuTime {
        self.cpu.each(self.answers())
    }

    /// Takes in what the same load showed at another time.
    pub(crate) fn add(&mut self, other: &Self) {
        self.times.add(&other.times).expect("equal histograms");
        self.refused.add(&other.refused).expect("equal histograms");
        self.in_time += other.in_time;
        self.unsent += other.unsent;
        self.lasted += other.lasted;
        self.cpu += other.cpu;
    }

    /// Notes an answer to a request that was due then.
    pub(crate) fn note(&mut self, status: u16, due: Instant, ends: Instant) {
        let now = Instant::now();
        let micros = now.duration_since(due).as_micros() as u64;
        match status {
            503 => self.refused.saturating_record(micros),
            _ => self.times.saturating_record(micros),
        }
        self.in_time += u64::from(status != 503 && now <= ends);
    }
}

/// A connection with at most one request in flight.
pub(crate) struct Connection {
    stream: TcpStream,
    outgoing: Vec<u8>,
    answer: Vec<u8>,
    usual_len: usize,
}

impl Connection {
    /// Connects to the server, without delay of small packets.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, outgoing: Vec::new(), answer: vec![0; 2_048], usual_len: 0 }
    }

    /// Sends the request whose turn it is and reads its answer; gives the status, which must be one
    /// of success, or 503.
    async fn call_in_turn(&mut self, requests: &Requests, turn: usize) -> u16 {
        let text = &requests.texts[turn % requests.texts.len()];
        if !requests.keyed {
            return self.call(text).await;
        }
        let mut outgoing = std::mem::take(&mut self.outgoing);
        outgoing.clear();
        outgoing.extend_from_slice(text);
        let mut number = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        for digit in outgoing[DIGITS].iter_mut().rev() {
            (*digit, number) = (b'0' + (number % 10) as u8, number / 10);
        }
        let status = self.call(&outgoing).await;
        self.outgoing = outgoing;
        status
    }

    /// Sends a request and reads its answer; gives the status, which must be one of success, or
    /// 503.
    pub(crate) async fn call(&mut self, request: &[u8]) -> u16 {
        self.stream.write_all(request).await.expect("a request");
        let mut filled = 0;
        loop {
            if filled == self.answer.len() {
                self.answer.resize(2 * filled, 0);
            }
            let read = self.stream.read(&mut self.answer[filled..]).await.expect("an answer");
            assert!(read > 0, "the server closed the connection");
            filled += read;
            let is_usual = filled == self.usual_len && self.answer[filled - 1] == b'}';
            if is_usual || whole_len(&self.answer[..filled]) == Some(filled) {
                self.usual_len = filled;
                return self.status();
            }
        }
    }

    /// The body of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        let head = head_len(&self.answer).expect("an answer");
        &self.answer[head..self.usual_len]
    }

    fn status(&self) -> u16 {
        let status: u16 = self.answer[9..12].iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
        let text = || String::from_utf8_lossy(&self.answer[..self.usual_len]);
        assert!(matches!(status, 200 | 201 | 503), "{}", text());
        status
    }
}

fn head_len(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4)
}

/// The length of an answer whose head is there.
fn whole_len(answer: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(&answer[..head_len(answer)?]).expect("a head in ASCII");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    Some(head.len() + length.parse::<usize>().expect("a number"))
}

/// Where the generator runs: on one thread, so that it wakes no other.
pub(crate) fn generator() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The next request on each connection when the last one is answered.
pub(crate) fn closed(
    address: SocketAddr,
    requests: &Rc<Requests>,
    connections: usize,
    lasting: Duration,
) -> LoadFigures {
    LocalSet::new().block_on(&generator(), async {
        let opened = open(address, connections).await;
        let (cpu, begun) = (CpuTime::now(), Instant::now());
        let ends = begun + lasting;
        let measured = Rc::<RefCell<LoadFigures>>::default();
        let clients = opened.into_iter().enumerate().map(|(first, mut connection)| {
            let (requests, measured) = (Rc::clone(requests), Rc::clone(&measured));
            tokio::task::spawn_local(async move {
                let mut due = Instant::now();
                for turn in first.. {
                    let status = connection.call_in_turn(&requests, turn).await;
                    measured.borrow_mut().note(status, due, ends);
                    due = Instant::now();
                    if due >= ends {
                        break;
                    }
                }
                connection
            })
        });
        let _closed_at_the_end = all_of(clients.collect()).await;
        LoadFigures { lasted: lasting, cpu: CpuTime::since(cpu), ..measured.take() }
    })
}

/// Several open loads beside each other, each with a rate (requests a second) and a number of
/// connections.
pub(crate) fn open_loads(
    address: SocketAddr,
    loads: &[(&Rc<Requests>, f64, usize)],
    lasting: Duration,
) -> Vec<LoadFigures> {
    LocalSet::new().block_on(&generator(), async {
        let mut opened = Vec::with_capacity(loads.len());
        for (requests, rate, connections) in loads {
            opened.push((Rc::clone(requests), *rate, open(address, *connections).await));
        }
        let cpu = CpuTime::now();
        let running: Vec<_> = opened
            .into_iter()
            .map(|(requests, rate, connections)| {
                tokio::task::spawn_local(open_load(requests, rate, connections, lasting))
            })
            .collect();
        let (mut all, mut closed_at_the_end) = (Vec::with_capacity(loads.len()), Vec::new());
        for load in running {
            let (measured, connections) = load.await.expect("a load");
            all.push(measured);
            closed_at_the_end.push(connections);
        }
        let cpu = CpuTime::since(cpu);
        all.into_iter().map(|measured| LoadFigures { cpu, ..measured }).collect()
    })
}

/// Requests that are due, and the connections that are free for them. The connection that was freed
/// last is taken first, as pools of HTTP clients do: so no more connections are in use than the
/// requests under way need.
#[derive(Default)]
struct DueRequests {
    /// Since when each request is due that no connection was free for, oldest first.
    since: RefCell<VecDeque<Instant>>,
    /// Free connections, in the order in which they were freed.
    free: RefCell<Vec<oneshot::Sender<Instant>>>,
    is_over: Cell<bool>,
}

impl DueRequests {
    /// Makes this many requests due, since then.
    fn add(&self, count: usize, then: Instant) {
        for _ in 0..count {
            match self.free.borrow_mut().pop() {
                Some(connection) => connection.send(then).expect("a client that waits"),
                None => self.since.borrow_mut().push_back(then),
            }
        }
    }

    /// Since when the request is due that a free connection is to send; `None` if the load is over.
    async fn next(&self) -> Option<Instant> {
        if self.is_over.get() {
            return None;
        }
        if let Some(since) = self.since.borrow_mut().pop_front() {
            return Some(since);
        }
        let (connection, due) = oneshot::channel();
        self.free.borrow_mut().push(connection);
        due.await.ok()
    }

    /// Ends the load; gives how many requests were not sent.
    fn end(&self) -> u64 {
        self.is_over.set(true);
        self.free.take();
        self.since.borrow().len() as u64
    }
}

/// A timer of Linux that expires every [`TICK`]. Those of tokio are up to 2 ms late, as long as
/// most charges take.
struct Ticks {
    begun: Instant,
    timer: AsyncFd<OwnedFd>,
    /// Ticks that have come due and were not given out yet.
    due: u64,
    given: u32,
}

impl Ticks {
    #[expect(deprecated, reason = "unsound for a descriptor that it does not own; this one it owns")]
    fn start() -> Self {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer");
        let tick = Timespec::try_from(TICK).expect("a short time");
        let every = Itimerspec { it_interval: tick, it_value: tick };
        let begun = Instant::now();
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &every).expect("a timer that is set");
        Self { begun, timer: AsyncFd::new(timer).expect("a timer that can be waited for"), due: 0, given: 0 }
    }

    /// Waits for the next tick; gives when it was due, since the beginning. A late caller gets each
    /// tick that it missed.
    async fn next(&mut self) -> Duration {
        if self.due == 0 {
            let mut due = [0; 8];
            let read = self.timer.async_io(Interest::READABLE, |timer| Ok(rustix::io::read(timer, &mut due)?)).await;
            read.expect("how many ticks have come due");
            self.due = u64::from_ne_bytes(due);
        }
        self.due -= 1;
        self.given += 1;
        TICK * self.given
    }
}

/// What a load showed, and its connections.
async fn open_load(
    requests: Rc<Requests>,
    rate: f64,
    connections: Vec<Connection>,
    lasting: Duration,
) -> (LoadFigures, Vec<Connection>) {
    let due = Rc::<DueRequests>::default();
    let begun = Instant::now();
    let measured = Rc::<RefCell<LoadFigures>>::default();
    let clients = connections.into_iter().enumerate().map(|(first, mut connection)| {
        let (due, requests, measured) = (Rc::clone(&due), Rc::clone(&requests), Rc::clone(&measured));
        tokio::task::spawn_local(async move {
            for turn in first.. {
                let Some(since) = due.next().await else { break };
                let status = connection.call_in_turn(&requests, turn).await;
                measured.borrow_mut().note(status, since, begun + lasting);
            }
            connection
        })
    });
    let clients = clients.collect();
    let (mut ticks, mut sent) = (Ticks::start(), 0);
    loop {
        let elapsed = ticks.next().await;
        if elapsed > lasting {
            break;
        }
        let now_due = (rate * elapsed.as_secs_f64()) as usize - sent;
        due.add(now_due, ticks.begun + elapsed);
        sent += now_due;
    }
    let unsent = due.end();
    let idle = all_of(clients).await;
    (LoadFigures { lasted: lasting, unsent, ..measured.take() }, idle)
}

/// Opens connections, not all at once: where the server's queue of new ones overflows, each that is
/// dropped takes a second more, and the server closes those that have waited 10 s for a request.
async fn open(address: SocketAddr, connections: usize) -> Vec<Connection> {
    let mut opened = Vec::with_capacity(connections);
    for number in 1..=connections {
        opened.push(Connection::open(address).await);
        if number.is_multiple_of(OPENED_AT_ONCE) {
            sleep(OPENING_PAUSE).await;
        }
    }
    opened
}

/// Waits for all clients. Gives their connections back, to be closed when the last answer of all
/// loads is read: to close thousands takes so long that answers would be read late.
async fn all_of(clients: Vec<JoinHandle<Connection>>) -> Vec<Connection> {
    let mut idle = Vec::with_capacity(clients.len());
    for client in clients {
        idle.push(client.await.expect("a client"));
    }
    idle
}
