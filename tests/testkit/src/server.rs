//! The real binary on a data folder.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use store::testkit::power_cut::Shim;

/// The operators' token.
pub const OPS_TOKEN: &str = "operator-of-the-test-with-32-characters";

/// Bytes of a segment of the journal, few enough for every test to cross from one to the next.
const SEGMENT_BYTES: &str = "300000";

/// Records after which the index writes a run, so that every test writes several and merges them.
const RECORDS_PER_RUN: &str = "250";

/// The ballast, small enough to be copied often.
const BALLAST_BYTES: &str = "100000";

/// How long the binary may take until it serves, or says why it does not, and until it has ended
/// on request.
const PATIENCE: Duration = Duration::from_secs(180);

/// How a server is started.
pub struct Launch<'a> {
    data: &'a Path,
    shim: Option<&'a Shim>,
    stdout: Option<&'a Path>,
    open_files_max: Option<u64>,
    rate_limit: &'static str,
    sandbox: &'static str,
    patience: Duration,
    environment: Vec<(String, String)>,
}

/// A running server. It is killed when it is dropped.
pub struct Server {
    child: Mutex<Child>,
    log: Log,
    /// Base address of the merchants' listener.
    pub public: String,
    /// Base address of the operators' listener.
    pub operations: String,
    /// Base address of the listener of callbacks; `None` if there is none.
    pub callbacks: Option<String>,
}

/// A server that ended by itself, or did not begin to serve in time.
#[derive(Debug)]
pub struct Refused {
    /// How it ended; `None` if it had to be killed.
    pub status: Option<ExitStatus>,
    /// All that it wrote on standard error.
    pub said: String,
}

/// What a server wrote on standard error so far.
type Log = Arc<Mutex<String>>;

impl<'a> Launch<'a> {
    /// Small files, so that tests make many.
    pub fn on(data: &'a Path) -> Self {
        let small = [
            ("CENTAVO_SEGMENT_BYTES", SEGMENT_BYTES),
            ("CENTAVO_RECORDS_PER_RUN", RECORDS_PER_RUN),
            ("CENTAVO_BALLAST_BYTES", BALLAST_BYTES),
        ];
        small.into_iter().fold(Self::as_shipped(data), |launch, (name, value)| launch.with(name, value))
    }

    /// Files of the sizes that they have by default.
    pub fn as_shipped(data: &'a Path) -> Self {
        Self {
            data,
            shim: None,
            stdout: None,
            open_files_max: None,
            rate_limit: "off",
            sandbox: "on",
            patience: PATIENCE,
            environment: Vec::new(),
        }
    }

    /// Lets the server's power be cut.
    pub fn with_shim(self, shim: Option<&'a Shim>) -> Self {
        Self { shim, ..self }
    }

    /// Keeps what the server writes on standard output.
    pub fn with_stdout(self, stdout: &'a Path) -> Self {
        Self { stdout: Some(stdout), ..self }
    }

    /// Waits longer until it serves: for a process that waits for another one to end.
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Limits the rate of requests, by the default numbers.
    pub fn with_rate_limits(self) -> Self {
        Self { rate_limit: "on", ..self }
    }

    /// Serves without a sandbox, and so without rails.
    pub fn live(self) -> Self {
        Self { sandbox: "off", ..self }
    }

    /// Bounds the number of files that the server may open.
    pub fn with_open_files_max(self, files: u64) -> Self {
        Self { open_files_max: Some(files), ..self }
    }

    fn command(&self) -> Command {
        let mut command = match self.open_files_max {
            None => Command::new(centavo()),
            Some(files) => {
                let mut command = Command::new("sh");
                command.args(["-c", &format!("ulimit -n {files} && exec \"$0\" \"$@\"")]).arg(centavo());
                command
            }
        };
        command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-format", "json"]);
        command.arg("--data").arg(self.data).args(["--sandbox", self.sandbox, "--rate-limit", self.rate_limit]);
        command.env("CENTAVO_OPS_TOKEN", OPS_TOKEN).stderr(Stdio::piped());
        let file = self.stdout.map(|path| File::create(path).expect("a file for standard output"));
        command.stdout(file.map_or_else(Stdio::null, Stdio::from));
        if let Some(shim) = self.shim {
            shim.command(&mut command, self.data);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Sets a variable of the server's environment.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }
}

impl Server {
    /// Starts the binary and waits until it serves, or says why it does not.
    pub async fn start(launch: &Launch<'_>) -> Result<Self, Refused> {
        let mut child = launch.command().spawn().expect("the binary can be started");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (log, (serving, addresses)) = (Log::default(), channel());
        let log_writer = Arc::clone(&log);
        let reader = std::thread::spawn(move || listen_to(stderr, &log_writer, &serving));
        let patience = launch.patience;
        let addresses_read =
            tokio::task::spawn_blocking(move || addresses.recv_timeout(patience)).await.expect("a thread");
        if let Ok(([public, operations], callbacks)) = addresses_read {
            return Ok(Self { child: Mutex::new(child), log, public, operations, callbacks });
        }
        let status = child.try_wait().expect("a child can be asked").or_else(|| ended_within(&mut child, PATIENCE));
        let _is_gone = (child.kill(), child.wait(), reader.join());
        let said = log.lock().unwrap().clone();
        Err(Refused { status, said })
    }

    /// Starts the binary and kills it after this long, whether it has begun to serve or not.
    pub async fn start_and_kill(launch: &Launch<'_>, life: Duration) {
        let mut child = launch.command().stderr(Stdio::null()).spawn().expect("the binary can be started");
        tokio::time::sleep(life).await;
        child.kill().expect("a child can be killed");
        child.wait().expect("a child can be waited for");
    }

    /// The process's number.
    pub fn id(&self) -> u32 {
        self.child.lock().unwrap().id()
    }

    /// Ends the process with SIGKILL, without waiting for it.
    pub fn kill(&self) {
        self.child.lock().unwrap().kill().expect("a child can be killed");
    }

    /// Waits until the process has ended.
    pub fn wait(&self) {
        self.child.lock().unwrap().wait().expect("a child can be waited for");
    }

    /// What it came to, if it has ended by itself within this time.
    pub fn ended_within(&self, time: Duration) -> Option<Refused> {
        let status = ended_within(&mut self.child.lock().unwrap(), time);
        status.map(|status| Refused { status: Some(status), said: self.said() })
    }

    /// All that it wrote on standard error so far.
    pub fn said(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// SIGTERM: it answers what is under way, keeps its snapshots, and ends.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal, as `HUP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "a child gets its signal");
    }

    /// SIGTERM, which must end it with 0.
    pub fn stop(self) -> Result<(), String> {
        self.terminate();
        let mut child = self.child.lock().unwrap();
        match ended_within(&mut child, PATIENCE) {
            Some(status) if status.success() => Ok(()),
            other => Err(format!("SIGTERM ended it with {other:?}, or not in time: {}", self.said())),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _has_ended = (child.kill(), child.wait());
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(formatter, "it ended with {status}: {}", self.said),
            None => write!(formatter, "it did not serve in time: {}", self.said),
        }
    }
}

impl From<Refused> for String {
    fn from(refused: Refused) -> String {
        refused.to_string()
    }
}

fn ended_within(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let deadline = Instant::now() + time;
    loop {
        match child.try_wait().expect("a child can be asked") {
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            ended => return ended,
        }
    }
}

/// Stores the log lines, and sends the addresses once they are logged.
fn listen_to(stderr: ChildStderr, log: &Log, serving: &Sender<([String; 2], Option<String>)>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let address = |name: &str| event[name].as_str().map(|address| format!("http://{address}"));
        if let (Some(public), Some(operations)) = (address("public"), address("operations")) {
            let _nobody_waits = serving.send(([public, operations], address("rails")));
        }
        let mut text = log.lock().unwrap();
        text.push_str(&line);
        text.push('\n');
    }
}

/// The binary that cargo built for this test: it stands one folder above the test's own.
pub fn centavo() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    test.ancestors().nth(2).expect("the folder of what is built").join("centavo")
}

/// An address on loopback that nobody listens on, and that no connection gets by itself: those
/// have ports from 32,768 on. It stays free while its process starts again.
pub fn free_address() -> String {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(std::process::id() % 40).unwrap_or_default() * 250;
    loop {
        let address = format!("127.0.0.1:{}", 20_000 + (begin + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
        if std::net::TcpListener::bind(&address).is_ok() {
            return address;
        }
    }
}

/// `centavo verify` on a stopped folder.
pub fn verify(data: &Path) -> Output {
    let mut command = Command::new(centavo());
    command.args(["verify", "--data"]).arg(data).env("CENTAVO_SEGMENT_BYTES", SEGMENT_BYTES);
    command.output().expect("the binary can be started")
}

/// The folder must verify.
pub fn must_verify(data: &Path) -> Result<(), String> {
    let verified = verify(data);
    match verified.status.success() {
        true => Ok(()),
        false => Err(format!("verify: {}", String::from_utf8_lossy(&verified.stderr))),
    }
}
