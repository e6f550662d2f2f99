//! The commands as an operator types them, and a data folder to try them on.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use actors::engine::AdmissionLimits;
use actors::engine::IndexOptions;
use actors::engine::{Engine, EngineOptions};
use centavo::settings::secrets::{SecretSource, master_key};
use ledger::fees::Settings;
use ledger::merchant::MerchantCommand;
use ledger::personal::{MerchantProfile, SealedFor};
use store::SledOptions;
use testkit::server::OPS_TOKEN;

/// A backup of a stopped folder.
pub(crate) async fn backup(data: &Path, copies: &Path) -> Result<String, String> {
    run(Command::new(BINARY).args(["backup", "--data"]).arg(data).arg("--out").arg(copies)).await
}

/// A backup of a stopped folder, by a shell with this umask.
pub(crate) async fn backup_with_umask(umask: &str, data: &Path, copies: &Path) -> Result<String, String> {
    let mut command = Command::new("sh");
    command.args(["-c", r#"umask "$0" && exec "$@""#, umask, BINARY, "backup", "--data"]);
    run(command.arg(data).arg("--out").arg(copies)).await
}

/// A backup through the server at an address.
pub(crate) async fn backup_through(data: &Path, copies: &Path, operations: &str) -> Result<String, String> {
    backup_with_token(data, copies, operations, OPS_TOKEN).await
}

/// The same with another token.
pub(crate) async fn backup_with_token(
    data: &Path,
    copies: &Path,
    operations: &str,
    token: &str,
) -> Result<String, String> {
    let mut command = Command::new(BINARY);
    command.args(["backup", "--data"]).arg(data).arg("--out").arg(copies);
    command.args(["--ops-listen", operations.trim_start_matches("http://")]).env("CENTAVO_OPS_TOKEN", token);
    run(&mut command).await
}

/// The same without one.
pub(crate) async fn backup_without_token(data: &Path, copies: &Path) -> Result<String, String> {
    run(Command::new(BINARY).args(["backup", "--data"]).arg(data).arg("--out").arg(copies)).await
}

/// A restore with the master key of `original`, which is then put beside the data, as the command
/// says.
pub(crate) async fn restore(
    copies: &Path,
    data: &Path,
    original: &Path,
    tail: Option<&Path>,
) -> Result<String, String> {
    let key = std::fs::read_to_string(original.join("master.key")).map_err(|error| error.to_string())?;
    let mut command = Command::new(BINARY);
    command.args(["restore", "--from"]).arg(copies).arg("--data").arg(data).env("CENTAVO_MASTER_KEY", key);
    command.args(tail.map(|tail| ["--tail".as_ref(), tail.as_os_str()]).into_iter().flatten());
    let said = run(&mut command).await?;
    std::fs::copy(original.join("master.key"), data.join("master.key")).map_err(|error| error.to_string())?;
    Ok(said)
}

/// `centavo verify`.
pub(crate) async fn verify(data: &Path) -> Result<String, String> {
    run(Command::new(BINARY).args(["verify", "--data"]).arg(data)).await
}

/// `centavo verify --live` of what a server at an address has open.
pub(crate) async fn verify_live(data: &Path, operations: &str) -> Result<String, String> {
    let mut command = Command::new(BINARY);
    command.args(["verify", "--live", "--data"]).arg(data).env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
    run(command.args(["--ops-listen", operations.trim_start_matches("http://")])).await
}

/// `centavo verify --against`.
pub(crate) async fn verify_against(data: &Path, checkpoints: &Path) -> Result<String, String> {
    run(Command::new(BINARY).args(["verify", "--data"]).arg(data).arg("--against").arg(checkpoints)).await
}

/// Runs a command with two folders and kills it after so long; false when it had ended by then.
pub(crate) async fn kill_after(millis: u64, verb: &[&str], first: &Path, flag: &[&str], second: &Path) -> bool {
    let mut command = Command::new(BINARY);
    command.args(verb).arg(first).args(flag).arg(second).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    tokio::time::sleep(Duration::from_millis(millis)).await;
    let _ended_perhaps = child.kill();
    child.wait().unwrap().code().is_none()
}

/// Head in a command's output: sequence and hash.
pub(crate) fn head_of(said: &str) -> &str {
    said.lines().find_map(|line| line.trim().strip_prefix("Head")).expect("a head").trim()
}

/// The files of a folder.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// A copy of a backup.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for (name, bytes) in files(from) {
        std::fs::write(to.join(name), bytes).unwrap();
    }
}

/// Adds a merchant and changes its name this number of times, one block each: a journal of many
/// blocks. Made in a thread with a runtime of its own, so that nothing has the folder open
/// afterwards.
pub(crate) fn fill(data: &Path, changes: u64) {
    let data = data.to_path_buf();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(change(&data, changes));
    };
    std::thread::spawn(work).join().unwrap();
}

/// The engine of a stopped folder, as the commands open it.
pub(crate) async fn open(data: &Path, store: &SledOptions) -> Arc<Engine> {
    let options = EngineOptions {
        sandbox: true,
        master_key: master_key(&SecretSource::Data, data).unwrap(),
        admission: AdmissionLimits::default(),
        idle: Duration::from_secs(60),
        awake_max: 1_000,
        rails: actors::rails::Rails::default(),
        fold_name: str::to_lowercase,
        index: IndexOptions::default(),
        partitions: std::num::NonZeroU16::MIN,
        start_gap_max: std::time::Duration::from_secs(7 * 86_400),
        metrics: Arc::default(),
    };
    Engine::open(data, store, options, |_, _| {}).await.unwrap()
}

async fn change(data: &Path, changes: u64) {
    let engine = open(data, &SledOptions::default()).await;
    let (group, now) = (engine.new_group(None), engine.now());
    let id = engine.ids().object(group, now, 1);
    let sealed = |number: u64| {
        let profile = MerchantProfile { name: format!("Loja {number}"), ..MerchantProfile::default() };
        engine.keyring().seal_value(SealedFor::merchant(group), now, &profile).unwrap()
    };
    let opened = MerchantCommand::Open { id, settings: Settings::default(), profile: sealed(0) };
    let commands = (1..=changes).map(|number| MerchantCommand::Change {
        settings: Settings { split_enabled: number % 2 == 0, ..Settings::default() },
        profile: Some(sealed(number)),
        reason: None,
    });
    for command in std::iter::once(opened).chain(commands) {
        let permit = engine.permit(1_024).unwrap();
        engine.command(group, command, permit).await.unwrap();
    }
    engine.stop().await;
}

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_centavo");

pub(crate) async fn run(command: &mut Command) -> Result<String, String> {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| error.to_string())?;
    let output = tokio::task::spawn_blocking(move || child.wait_with_output()).await.unwrap().unwrap();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).unwrap()),
        code => Err(format!("{code:?}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
