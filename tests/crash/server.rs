//! The real binary on a data folder.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::cut::Shim;

/// The operators' token.
pub(crate) const OPS_TOKEN: &str = "crash-test-operator";

/// A running server.
pub(crate) struct Server {
    child: Mutex<Child>,
    /// Base address of the merchants' listener.
    pub(crate) public: String,
    /// Base address of the operators' listener.
    pub(crate) operations: String,
}

impl Server {
    /// Starts the binary and waits until it serves, or says why it does not.
    pub(crate) async fn start(data: &Path, shim: Option<&Shim>) -> Result<Self, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_centavo"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-format", "json"]);
        command.arg("--data").arg(data).args(["--sandbox", "on", "--rate-limit", "off"]);
        command.env("CENTAVO_OPS_TOKEN", OPS_TOKEN).stdout(Stdio::null()).stderr(Stdio::piped());
        if let Some(shim) = shim {
            shim.command(&mut command, data);
        }
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let stderr = child.stderr.take().expect("stderr is piped");
        let child = Mutex::new(child);
        let lines = BufReader::new(stderr).lines();
        let addresses = tokio::task::spawn_blocking(move || until_serving(lines));
        let addresses = tokio::time::timeout(Duration::from_secs(60), addresses).await;
        match addresses
            .map_err(|_| "nothing was served within a minute".to_owned())?
            .map_err(|error| error.to_string())?
        {
            Ok((public, operations)) => Ok(Self { child, public, operations }),
            Err(said) => Err(said),
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&self) {
        self.child.lock().unwrap().kill().expect("a child can be killed");
    }

    /// Waits until the process has ended.
    pub(crate) fn wait(&self) {
        self.child.lock().unwrap().wait().expect("a child can be waited for");
    }

    /// SIGTERM, which must end it with 0.
    pub(crate) fn stop(self) -> Result<(), String> {
        let mut child = self.child.into_inner().unwrap();
        let _told = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        let deadline = Instant::now() + Duration::from_secs(30);
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _has_ended = child.kill();
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            other => Err(format!("SIGTERM ended it with {other:?}, or not within 30 seconds")),
        }
    }
}

/// Reads the log until it tells the addresses; what is logged later is read and dropped by a thread.
fn until_serving(mut lines: std::io::Lines<BufReader<std::process::ChildStderr>>) -> Result<(String, String), String> {
    let mut said = String::new();
    for line in lines.by_ref() {
        let line = line.map_err(|error| error.to_string())?;
        let log: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let address = |name: &str| log["fields"][name].as_str().map(|address| format!("http://{address}"));
        if let (Some(public), Some(operations)) = (address("public"), address("operations")) {
            std::thread::spawn(move || lines.for_each(drop));
            return Ok((public, operations));
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(said)
}

/// `centavo verify` on a stopped folder.
pub(crate) fn verify(data: &Path) -> Result<(), String> {
    let verified = Command::new(env!("CARGO_BIN_EXE_centavo")).args(["verify", "--data"]).arg(data).output();
    let verified = verified.map_err(|error| error.to_string())?;
    if verified.status.success() {
        return Ok(());
    }
    Err(format!("verify: {}", String::from_utf8_lossy(&verified.stderr)))
}
