//! Privacy of the process: its secrets leave the environment, and its memory is not dumped.
//!
//! The environment of a process stands where the system put it at the start, for everybody who may
//! read `/proc/PID/environ`, and a program can take no variable out of that place. So a start with
//! secrets in its environment executes the program again, in the same process, without them: they
//! pass through a file in memory, which is emptied when it is read. Where the system does not let
//! it, the program goes on as it is.

use std::env;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

use web::credential::Secret;

/// Variables that hold secrets.
pub(crate) const SECRETS: [&str; 5] =
    ["CENTAVO_MASTER_KEY", "CENTAVO_OPS_TOKEN", "CENTAVO_STORE", "CENTAVO_API_KEY", "CENTAVO_WEBHOOK_SECRET"];

/// The variable that names the file in memory: the number of its descriptor.
const FILE: &str = "CENTAVO_SECRETS_IN";

/// Secrets that came through the file, with the names of their variables.
static HANDED: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// Takes the secrets out of the environment, and forbids dumps of the memory. To be called first,
/// before there are threads. Without the secrets that were handed on it must not go on: it would
/// make others.
pub fn begin() -> Result<(), String> {
    match env::var(FILE) {
        Ok(number) => {
            let handed = read(&number).map_err(|error| format!("{FILE}: the secrets can't be read: {error}"))?;
            HANDED.set(handed).map_err(|_| format!("{FILE}: read twice"))?;
        }
        // Nothing is lost where the system refuses.
        Err(_) => drop(execute_without_secrets()),
    }
    let _dumps_stay = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _cores_stay = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    Ok(())
}

/// The secret that a variable held at the start, if it was not empty.
pub fn variable(name: &str) -> Option<Secret> {
    let value = handed(name).map(str::to_owned).or_else(|| env::var(name).ok());
    value.filter(|value| !value.is_empty()).map(Secret::from)
}

/// The same, where it is no longer in the environment.
pub(crate) fn handed(name: &str) -> Option<&'static str> {
    HANDED.get()?.iter().find(|(handed, _)| handed == name).map(|(_, value)| value.as_str())
}

/// Executes the program again without the secrets. Returns only where that can't be done, or where
/// there are none.
fn execute_without_secrets() -> io::Result<()> {
    let secrets = SECRETS.into_iter().filter_map(|name| Some((name, env::var(name).ok()?)));
    let secrets: Vec<_> = secrets.filter(|(_, value)| !value.is_empty()).collect();
    if secrets.is_empty() {
        return Ok(());
    }
    let mut file = File::from(memfd_create("secrets", MemfdFlags::empty())?);
    for (name, value) in &secrets {
        write!(file, "{name}={value}\0")?;
    }
    let number = file.as_raw_fd();
    let _it_can_be_opened_again = open(number)?;
    let mut again = Command::new(env::current_exe()?);
    let mut words = env::args_os();
    if let Some(name) = words.next() {
        again.arg0(name);
    }
    again.args(words).env(FILE, number.to_string());
    for (name, _) in &secrets {
        again.env_remove(name);
    }
    Err(again.exec())
}

fn open(number: i32) -> io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/self/fd/{number}"))
}

/// Reads the file in memory, and empties it.
fn read(number: &str) -> io::Result<Vec<(String, String)>> {
    let mut file = open(number.parse().map_err(io::Error::other)?)?;
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    file.set_len(0)?;
    let pairs = text.split_terminator('\0').filter_map(|pair| pair.split_once('='));
    Ok(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}
