//! Third-party tools: running one, and reporting a missing one.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Python with the packages of `requirements.txt`: `CENTAVO_PYTHON`, or what the system has. `None`
/// if it can't load a package.
pub(crate) fn python(package: &str) -> Option<Command> {
    let program = std::env::var_os("CENTAVO_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    // A relative path is of the folder that the tests run in, wherever the program is started.
    let program = if program.components().count() > 1 { std::path::absolute(program).unwrap() } else { program };
    let command = || Command::new(&program);
    let loaded = command().args(["-c", &format!("import {package}")]).output();
    found(loaded, &format!("Python with {package}")).then(command)
}

/// Node with the modules of `CENTAVO_NODE_MODULES`. `None` if it can't load a module.
pub(crate) fn node(module: &str) -> Option<Command> {
    let command = || {
        let mut command = Command::new("node");
        if let Some(modules) = std::env::var_os("CENTAVO_NODE_MODULES") {
            command.env("NODE_PATH", std::path::absolute(modules).unwrap());
        }
        command
    };
    let loaded = command().args(["-e", &format!("require('{module}')")]).output();
    found(loaded, &format!("Node with {module}")).then(command)
}

/// A program of a package in `CENTAVO_NODE_MODULES`. `None` if it is not there.
pub(crate) fn node_program(package: &str, file: &str) -> Option<Command> {
    let modules = PathBuf::from(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default());
    let program = std::path::absolute(modules.join(package).join(file)).unwrap_or_default();
    let checked = Command::new("node").arg("--check").arg(&program).output();
    let program = || {
        let mut command = Command::new("node");
        command.arg(program);
        command
    };
    found(checked, &format!("Node with {package}")).then(program)
}

/// A program of the system. `None` if it is not there.
pub(crate) fn program(name: &str) -> Option<Command> {
    found(Command::new(name).arg("--version").output(), name).then(|| Command::new(name))
}

/// A program that does not know `--version`, and answers to this argument.
pub(crate) fn program_with(name: &str, argument: &str) -> Option<Command> {
    found(Command::new(name).arg(argument).output(), name).then(|| Command::new(name))
}

fn found(loaded: std::io::Result<Output>, what: &str) -> bool {
    is_there(loaded.is_ok_and(|output| output.status.success()), what)
}

/// Says that a tool is missing. Where every tool is required, that is a failure.
pub(crate) fn is_there(is_there: bool, what: &str) -> bool {
    if !is_there {
        let missing = format!("{what} is missing; tests/conformance/README.md says how to get it");
        assert!(std::env::var("CENTAVO_CONFORMANCE").as_deref() != Ok("required"), "{missing}");
        println!("Nothing was tested: {missing}");
    }
    is_there
}

/// A process that is killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _has_ended = (self.0.kill(), self.0.wait());
    }
}

/// Runs a program; what it wrote on both streams, and whether it was content. One that takes longer
/// than this is killed, and failed.
pub(crate) fn run(mut command: Command, within: Duration) -> Result<String, String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let both = std::fs::OpenOptions::new().append(true).open(log.path()).unwrap();
    command.stdin(Stdio::null()).stdout(both.try_clone().unwrap()).stderr(both);
    let mut child = command.spawn().unwrap();
    let status = ended(&mut child, within);
    let said = std::fs::read(log.path()).unwrap();
    let said = String::from_utf8_lossy(&said).into_owned();
    match status {
        Some(true) => Ok(said),
        Some(false) => Err(said),
        None => Err(format!("{said}\nIt was killed after {} seconds.", within.as_secs())),
    }
}

fn ended(child: &mut Child, within: Duration) -> Option<bool> {
    let deadline = Instant::now() + within;
    while Instant::now() < deadline {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.success());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}
