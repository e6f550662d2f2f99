//! Privacy of the process: its secrets leave the environment, and its memory is not dumped.
//!
//! The environment of a process stands where the system put it, for everybody who may read
//! `/proc/PID/environ`, and a program can take no variable out of that place. So a start with
//! secrets in its environment runs the program again, in the same process, without them: they pass
//! through a file in memory, which is emptied when it is read. Where the system does not let it,
//! the program goes on as it is.

use std::env;
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use crate::http::credential::Secret;

/// Variables that hold secrets.
const SECRETS: [&str; 3] = ["CENTAVO_MASTER_KEY", "CENTAVO_OPS_TOKEN", "CENTAVO_STORE"];

/// The variable that names the file in memory: its number.
const FILE: &str = "CENTAVO_SECRETS_IN";

/// Secrets that came through the file.
static HANDED: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes the secrets out of the environment, and forbids dumps of the memory. To be called first,
/// before there are threads.
pub fn begin() {
    let handed = env::var(FILE).ok().and_then(|number| read(&number).ok());
    match handed {
        Some(handed) => drop(HANDED.set(handed)),
        None => drop(run_again()),
    }
    // Nothing is lost where the system refuses.
    let _dumps_stay = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _cores_stay = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// A secret that a variable held at the start, if it was not empty.
pub fn variable(name: &str) -> Option<Secret> {
    let handed = HANDED.get().and_then(|handed| handed.iter().find(|(handed, _)| handed == name));
    let value = handed.map(|(_, value)| value.clone()).or_else(|| env::var(name).ok());
    value.filter(|value| !value.is_empty()).map(Secret::from)
}

/// Runs the program of a server again without the secrets; returns only where that can't be done,
/// or where there are none.
fn run_again() -> std::io::Result<()> {
    let secrets = SECRETS.into_iter().filter_map(|name| Some((name, env::var(name).ok()?)));
    let secrets: Vec<_> = secrets.filter(|(_, value)| !value.is_empty() && !value.contains('\0')).collect();
    let is_server = env::args_os().nth(1).is_some_and(|command| command == "serve" || command == "demo");
    if secrets.is_empty() || !is_server || env::var_os(FILE).is_some() {
        return Ok(());
    }
    let mut file = File::from(memfd_create("secrets", MemfdFlags::empty())?);
    for (name, value) in &secrets {
        write!(file, "{name}={value}\0")?;
    }
    let mut again = Command::new(env::current_exe()?);
    let mut words = env::args_os();
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    again.args(words).env(FILE, file.as_raw_fd().to_string());
    for (name, _) in &secrets {
        again.env_remove(name);
    }
    Err(again.exec())
}

/// Reads the file in memory, and empties it.
fn read(number: &str) -> std::io::Result<Vec<(String, String)>> {
    let number: u32 = number.parse().map_err(std::io::Error::other)?;
    let mut file = File::options().read(true).write(true).open(format!("/proc/self/fd/{number}"))?;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    file.set_len(0)?;
    let pairs = text.split_terminator('\0').filter_map(|pair| pair.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
