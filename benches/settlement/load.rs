//! The load generator: keep-alive connections on one thread of a process of its own, requests that
//! were written out before, one in flight on each connection. A request costs one write and one
//! read; of an answer, only the status is looked at once its length is known.
//!
//! The process is this program with `--load`: it reads a [`LoadSpec`] as a line of JSON, opens the
//! connections, says so, begins at the next line, and answers with a [`LoadOutcome`].
//!
//! A closed load sends the next request when the answer of the last one is there. An open load
//! sends at a fixed rate whatever the server does. Its times count from the moment at which a
//! request *should* have been sent, so that waiting for a free connection is not hidden (no
//! coordinated omission).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, LocalSet};
use tokio::time::sleep;

use crate::machine::CpuTime;

/// The digits of an idempotency key, which are written over with a number never used before.
pub(crate) const KEY: &str = "0000000000000000";
/// The argument by which this program becomes a load generator.
pub(crate) const ARGUMENT: &str = "--load";
/// Keys that one load may use.
const KEYS_OF_A_LOAD: u64 = 1_000_000_000;
/// What each charge of a batch that was made says in the answer.
const MADE: &str = r#""status":201"#;

/// How often requests of an open load come due, as a burst.
const TICK: Duration = Duration::from_micros(250);

/// Connections of a load that come from one loopback address.
const CONNECTIONS_AN_ADDRESS: usize = 1_000;
/// How many connections are opened between two pauses: an eighth of the server's queue.
const OPENED_AT_ONCE: usize = 128;
/// The pause, for the server to accept them.
const OPENING_PAUSE: Duration = Duration::from_millis(4);

static LOADS: AtomicU64 = AtomicU64::new(0);

/// Requests, taken in turn.
#[derive(Serialize, Deserialize)]
pub(crate) struct Requests {
    /// The text of each, head and body.
    pub(crate) texts: Vec<String>,
    /// Charges of each: one, or as many as a batch has, each with a key of its own ([`KEY`]).
    pub(crate) charges: usize,
}

/// A load: which requests, on how many connections, and at which rate.
#[derive(Serialize, Deserialize)]
pub(crate) struct Load<Texts = Requests> {
    /// What is sent.
    pub(crate) requests: Texts,
    /// Requests a second, whatever the server does; without it, the next request of a connection
    /// is sent when the last one is answered.
    pub(crate) rate: Option<f64>,
    /// How many connections.
    pub(crate) connections: usize,
}

/// What a load generator does.
#[derive(Serialize, Deserialize)]
struct LoadSpec<Texts> {
    address: SocketAddr,
    /// Beside each other.
    loads: Vec<Load<Texts>>,
    lasting: Duration,
    /// The first key that it may use.
    first_key: u64,
}

/// What it showed: of each load its figures, and its own CPU time.
#[derive(Serialize, Deserialize)]
struct LoadOutcome {
    loads: Vec<LoadCounts>,
    cpu: Duration,
}

/// [`LoadFigures`] of a load, with microseconds as pairs of a value and how often it came.
#[derive(Serialize, Deserialize)]
struct LoadCounts {
    times: Vec<(u64, u64)>,
    refused: Vec<(u64, u64)>,
    in_time: u64,
    unsent: u64,
}

/// What a load showed.
pub(crate) struct LoadFigures {
    /// Microseconds until the charge was made, of each one that was.
    pub(crate) times: Histogram<u64>,
    /// Microseconds until the answer 503, of each request that got it.
    pub(crate) refused: Histogram<u64>,
    /// Charges made before the load ended: without those of its last moments, but for batches,
    /// which are long beside the load.
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

    fn counts(&self) -> LoadCounts {
        let pairs = |times: &Histogram<u64>| {
            times.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
        };
        let (times, refused) = (pairs(&self.times), pairs(&self.refused));
        LoadCounts { times, refused, in_time: self.in_time, unsent: self.unsent }
    }

    fn of(counts: LoadCounts, lasted: Duration, cpu: CpuTime) -> Self {
        let LoadCounts { times, refused, in_time, unsent } = counts;
        let mut figures = Self { in_time, unsent, lasted, cpu, ..Self::default() };
        for (histogram, pairs) in [(&mut figures.times, times), (&mut figures.refused, refused)] {
            pairs.into_iter().for_each(|(value, count)| histogram.saturating_record_n(value, count));
        }
        figures
    }
}

/// A connection with at most one request in flight.
pub(crate) struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
    usual_len: usize,
}

impl Connection {
    /// Connects to the server, without delay of small packets.
    pub(crate) async fn open(address: SocketAddr) -> Self {
        Self::from_host(Ipv4Addr::LOCALHOST, address).await
    }

    /// Connects from this loopback address.
    async fn from_host(host: Ipv4Addr, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((host, 0).into()).expect("a loopback address");
        let stream = socket.connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, answer: vec![0; 2_048], usual_len: 0 }
    }

    /// How many charges the last answer, of a batch, says were made.
    fn charges_made(&self) -> u64 {
        std::str::from_utf8(self.body()).expect("JSON").matches(MADE).count() as u64
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
pub(crate) fn closed(address: SocketAddr, requests: &Requests, connections: usize, lasting: Duration) -> LoadFigures {
    loads(address, vec![Load { requests, rate: None, connections }], lasting).swap_remove(0)
}

/// Several loads beside each other, by a process of its own. The CPU time of all is that of each.
pub(crate) fn loads(address: SocketAddr, loads: Vec<Load<&Requests>>, lasting: Duration) -> Vec<LoadFigures> {
    let first_key = LOADS.fetch_add(1, Ordering::Relaxed) * KEYS_OF_A_LOAD;
    let spec = serde_json::to_string(&LoadSpec { address, loads, lasting, first_key }).expect("JSON");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut generator = command.spawn().expect("a load generator");
    let mut orders = generator.stdin.take().expect("a pipe");
    let mut said = BufReader::new(generator.stdout.take().expect("a pipe"));
    let mut line = String::new();
    writeln!(orders, "{spec}").expect("a load generator");
    said.read_line(&mut line).expect("a load generator");
    let (cpu, begun) = (CpuTime::now(), Instant::now());
    writeln!(orders).expect("a load generator");
    line.clear();
    said.read_line(&mut line).expect("a load generator");
    let (mut cpu, elapsed) = (CpuTime::since(cpu), begun.elapsed());
    assert!(generator.wait().expect("a load generator").success(), "the load generator failed");
    let outcome: LoadOutcome = serde_json::from_str(&line).expect("what the load showed");
    cpu.generator = outcome.cpu;
    // Batches count until the last answer.
    let lasted = |load: &Load<Requests>| if load.requests.charges > 1 { elapsed } else { lasting };
    let spec: LoadSpec<Requests> = serde_json::from_str(&spec).expect("the same again");
    let counts = spec.loads.iter().zip(outcome.loads);
    counts.map(|(load, counts)| LoadFigures::of(counts, lasted(load), cpu)).collect()
}

/// What this program does with [`ARGUMENT`].
pub(crate) fn generate() {
    let mut orders = std::io::stdin().lock();
    let mut line = String::new();
    orders.read_line(&mut line).expect("what to do");
    let spec: LoadSpec<Requests> = serde_json::from_str(&line).expect("what to do");
    let LoadSpec { address, loads, lasting, first_key } = spec;
    let next_key = Rc::new(Cell::new(first_key));
    let outcome = LocalSet::new().block_on(&generator(), async {
        let mut opened = Vec::with_capacity(loads.len());
        for load in &loads {
            opened.push((load.rate, Sender::all_of(address, load, &next_key).await));
        }
        println!("ready");
        orders.read_line(&mut line).expect("the beginning");
        let cpu = CpuTime::now();
        let running = opened.into_iter().map(|(rate, senders)| {
            tokio::task::spawn_local(async move {
                match rate {
                    None => closed_load(senders, lasting).await,
                    Some(rate) => open_load(senders, rate, lasting).await,
                }
            })
        });
        let (mut counts, mut closed_at_the_end) = (Vec::new(), Vec::new());
        for load in running.collect::<Vec<_>>() {
            let (measured, senders) = load.await.expect("a load");
            counts.push(measured.counts());
            closed_at_the_end.push(senders);
        }
        LoadOutcome { loads: counts, cpu: CpuTime::since(cpu).process }
    });
    println!("{}", serde_json::to_string(&outcome).expect("JSON"));
}

/// A connection with the requests that it sends in turn.
struct Sender {
    connection: Connection,
    /// Each with the places of its keys.
    texts: Rc<Vec<(Vec<u8>, Vec<usize>)>>,
    is_batch: bool,
    turn: usize,
    outgoing: Vec<u8>,
    next_key: Rc<Cell<u64>>,
}

impl Sender {
    /// Opens the connections of a load. Each begins with another request.
    async fn all_of(address: SocketAddr, load: &Load, next_key: &Rc<Cell<u64>>) -> Vec<Self> {
        let places = |text: &String| text.match_indices(KEY).map(|(place, _)| place).collect();
        let texts = load.requests.texts.iter().map(|text| (text.clone().into_bytes(), places(text)));
        let (texts, is_batch) = (Rc::new(texts.collect::<Vec<_>>()), load.requests.charges > 1);
        let connections = open(address, load.connections).await.into_iter().enumerate();
        let sender = |(turn, connection)| {
            let (texts, next_key) = (Rc::clone(&texts), Rc::clone(next_key));
            Self { connection, texts, is_batch, turn, outgoing: Vec::new(), next_key }
        };
        connections.map(sender).collect()
    }

    /// Sends the request whose turn it is, with new keys, reads its answer, and notes it. The
    /// status must be one of success, or 503.
    async fn send(&mut self, due: Instant, ends: Instant, measured: &RefCell<LoadFigures>) {
        let (text, keys) = &self.texts[self.turn % self.texts.len()];
        self.turn += 1;
        self.outgoing.clear();
        self.outgoing.extend_from_slice(text);
        for place in keys {
            let mut number = self.next_key.replace(self.next_key.get() + 1);
            for digit in self.outgoing[*place..*place + KEY.len()].iter_mut().rev() {
                (*digit, number) = (b'0' + (number % 10) as u8, number / 10);
            }
        }
        let status = self.connection.call(&self.outgoing).await;
        let mut measured = measured.borrow_mut();
        measured.note(status, due, ends);
        if self.is_batch {
            let counted = u64::from(status != 503 && Instant::now() <= ends);
            measured.in_time += self.connection.charges_made() - counted;
        }
    }
}

async fn closed_load(senders: Vec<Sender>, lasting: Duration) -> (LoadFigures, Vec<Sender>) {
    let measured = Rc::<RefCell<LoadFigures>>::default();
    let ends = Instant::now() + lasting;
    let clients = senders.into_iter().map(|mut sender| {
        let measured = Rc::clone(&measured);
        tokio::task::spawn_local(async move {
            let mut due = Instant::now();
            while due < ends {
                sender.send(due, ends, &measured).await;
                due = Instant::now();
            }
            sender
        })
    });
    let senders = all_of(clients.collect()).await;
    (measured.take(), senders)
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

async fn open_load(senders: Vec<Sender>, rate: f64, lasting: Duration) -> (LoadFigures, Vec<Sender>) {
    let due = Rc::<DueRequests>::default();
    let ends = Instant::now() + lasting;
    let measured = Rc::<RefCell<LoadFigures>>::default();
    let clients = senders.into_iter().map(|mut sender| {
        let (due, measured) = (Rc::clone(&due), Rc::clone(&measured));
        tokio::task::spawn_local(async move {
            while let Some(since) = due.next().await {
                sender.send(since, ends, &measured).await;
            }
            sender
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
    (LoadFigures { unsent, ..measured.take() }, idle)
}

/// Opens connections, not all at once: where the server's queue of new ones overflows, each that is
/// dropped takes a second more, and the server closes those that have waited 10 s for a request.
/// One address has half of a listener's connections, so each thousand comes from another one.
async fn open(address: SocketAddr, connections: usize) -> Vec<Connection> {
    let mut opened = Vec::with_capacity(connections);
    for number in 1..=connections {
        let host = Ipv4Addr::new(127, 0, 0, (number / CONNECTIONS_AN_ADDRESS) as u8 + 1);
        opened.push(Connection::from_host(host, address).await);
        if number.is_multiple_of(OPENED_AT_ONCE) {
            sleep(OPENING_PAUSE).await;
        }
    }
    opened
}

/// Waits for all clients. Gives their connections back, to be closed when the last answer of all
/// loads is read: to close thousands takes so long that answers would be read late.
async fn all_of(clients: Vec<JoinHandle<Sender>>) -> Vec<Sender> {
    let mut idle = Vec::with_capacity(clients.len());
    for client in clients {
        idle.push(client.await.expect("a client"));
    }
    idle
}
