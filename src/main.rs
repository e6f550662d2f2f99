//! The `centavo` program: runs the command that its arguments name, and turns errors into exit
//! codes.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use centavo::commands::rail_check::RailCommand;
use centavo::commands::{
    Failure, backup, check, demo, erase, export, grow, listen, migrate, rail_check, report, restore, shell_help,
    terminal, trigger, verify,
};
use centavo::server::ServingFailure;
use centavo::server::{self, logging, runtime, watchdog};
use centavo::settings::args::{self, Arguments, Command, DemoArgs, ServeArgs, VerifyArgs};
use centavo::settings::checked::Settings;
use centavo::settings::privacy;
use centavo::settings::secrets::{self, SecretSource};
use clap_complete::Shell;
use nodes::node::NodeFailure;
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

fn main() -> ExitCode {
    if let Err(error) = privacy::begin() {
        logging::complain(&format!("centavo: {error}"));
        return ExitCode::FAILURE;
    }
    let code = match runtime::start() {
        Ok(runtime) => runtime.block_on(run()),
        Err(error) => {
            logging::complain(&format!("centavo: no threads could be started: {error}"));
            ExitCode::FAILURE
        }
    };
    logging::flush();
    code
}

/// Runs the command that the arguments name.
async fn run() -> ExitCode {
    // The data and its copies are for their owner alone; databases make their files themselves.
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let done = match args::read_arguments() {
        Ok(arguments) => run_command(arguments).await,
        Err(error) => Err(error.into()),
    };
    done.unwrap_or_else(|error| {
        logging::complain(&format!("centavo: {error}"));
        ExitCode::FAILURE
    })
}

type CommandResult = Result<ExitCode, Failure>;

/// The code of a check, which fails where something is wrong.
fn code_of(is_passed: bool) -> ExitCode {
    if is_passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run_command(Arguments { args, matches, file }: Arguments) -> CommandResult {
    match args.command {
        Command::Serve { check: true, args } => return Ok(code_of(check::run(args, &matches, file.as_ref()).await?)),
        Command::Serve { check: false, args } => return run_server(args).await,
        Command::Demo(args) => return run_demo(args).await,
        Command::Rail { command: RailCommand::Check(args) } => return Ok(code_of(rail_check::run(args).await?)),
        Command::Listen(args) => listen::run(args).await?,
        Command::Trigger(args) => trigger::run(args).await?,
        Command::Erase(args) => erase::run(args).await?,
        Command::Export(args) => export::run(args.settings()?).await?,
        Command::Report(args) => report::run(args.settings()?).await?,
        Command::Backup(args) => backup::run(args).await?,
        Command::Restore(args) => restore::run(args)?,
        Command::Migrate(args) => migrate::run(args)?,
        Command::Grow(args) => grow::run(args)?,
        Command::Verify(VerifyArgs { data, store, master_key, against, live: false, .. }) => {
            verify::run(&data, &store.store()?, &master_key.source()?, against.as_deref())?;
        }
        Command::Verify(VerifyArgs { data, store, master_key, against, live: true, server }) => {
            let (journal, master_key) = (server.journal(data, store.store()?)?, master_key.source()?);
            let work = move || verify::run_live(&journal, &master_key, against.as_deref());
            tokio::task::spawn_blocking(work).await??;
        }
        Command::Completions { shell } => print_completions(shell)?,
        Command::Man { out } => shell_help::write_manual(args::program(), &out)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_server(args: ServeArgs) -> CommandResult {
    let settings = args.settings()?;
    start_logging(&settings, logging::SERVE_FILTER)?;
    let mut signals = Signals::listen()?;
    // A process that waits for another one to end has nothing to answer yet.
    let running = tokio::select! {
        running = server::start(settings, opening_bar()) => running?,
        () = signals.asked_to_end() => {
            logging::flush();
            std::process::exit(0)
        }
    };
    watchdog::guard(&running.engine)?;
    let [peers, rails] = [running.peers, running.bells].map(|address| address.map(tracing::field::display));
    tracing::info!(public = %running.public, operations = %running.operations, peers, rails, sandbox = running.desk.sandbox, "serving");
    watchdog::tell_manager(NotifyState::Ready);
    let end = until_told_to_stop(&running, signals).await;
    Ok(stop(running, end).await)
}

/// Serves the demonstration, which a signal stops at any moment.
async fn run_demo(args: DemoArgs) -> CommandResult {
    let (charges, webhook) = (u64::from(args.charges), args.webhook.clone());
    let settings = args.settings()?;
    // A wait of the store for the disk is no news in a text that is read as it comes.
    start_logging(&settings, "warn,centavo_store=error")?;
    let (data, ops_token) = (settings.data.clone(), settings.ops_token.clone());
    let signals = Signals::listen()?;
    let running = server::start(settings, opening_bar()).await?;
    let operator = secrets::first_ops_token(&ops_token, &data)?.ok_or("the operators' token is gone")?;
    let ops_token_file = (ops_token == SecretSource::Data).then(|| data.join(secrets::OPS_TOKEN_FILE));
    let guide = demo::Guide { data, operator, ops_token_file, charges, webhook };
    watchdog::guard(&running.engine)?;
    let (shown, end) = {
        let mut stop_signal = std::pin::pin!(until_told_to_stop(&running, signals));
        tokio::select! {
            end = &mut stop_signal => (Ok(()), end),
            shown = demo::show(&running, &guide) => match shown {
                Ok(()) => (Ok(()), stop_signal.await),
                Err(error) => (Err(error), End::Asked),
            },
        }
    };
    let verify = format!("centavo verify --data {}", guide.data.display());
    let code = stop(running, end).await;
    terminal::say(&format!(
        "Stopped. The books stay: `{verify}` checks every Record, the same demo goes on with them."
    ));
    Ok(shown.map(|()| code)?)
}

/// Prints to the standard output, which a reader may close early.
fn print_completions(shell: Shell) -> std::io::Result<()> {
    match std::io::stdout().write_all(&shell_help::completions(args::program(), shell)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Signals to the process. They are listened to before the first answer: from then on SIGTERM
/// drains the connections, and SIGHUP does not end the process.
struct Signals {
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, hangup: signal(SignalKind::hangup())? })
    }

    /// Waits for SIGTERM or Ctrl-C.
    async fn asked_to_end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
}

/// Why the program ends.
enum End {
    /// SIGTERM or Ctrl-C.
    Asked,
    /// It can't go on.
    Failed(ServingFailure),
}

/// Waits for the end. SIGHUP reads tokens, secrets and certificates again.
async fn until_told_to_stop(running: &server::RunningServer, mut signals: Signals) -> End {
    loop {
        return tokio::select! {
            _ = signals.hangup.recv() => {
                running.reload().await;
                continue;
            }
            _ = signals.terminate.recv() => End::Asked,
            _ = tokio::signal::ctrl_c() => End::Asked,
            failure = running.failed() => End::Failed(failure),
        };
    }
}

/// Drains the connections, unless the server can't go on: then the process ends at once.
async fn stop(running: server::RunningServer, end: End) -> ExitCode {
    match end {
        End::Asked => {
            tracing::info!("stopping: answering what is under way");
            watchdog::tell_manager(NotifyState::Stopping);
            running.stop().await;
            ExitCode::SUCCESS
        }
        End::Failed(failure) => {
            logging::complain(&format!("centavo: {failure}"));
            match failure {
                ServingFailure::Superseded | ServingFailure::Node(NodeFailure::Grown) => {
                    std::process::exit(START_AGAIN_EXIT_CODE)
                }
                ServingFailure::Journal | ServingFailure::Node(NodeFailure::Unserved) => {
                    ExitCode::from(watchdog::EXIT_CODE)
                }
            }
        }
    }
}

/// Exit code of a process whose database another one took, or that does not know all partitions:
/// try again, as in `sysexits.h`.
const START_AGAIN_EXIT_CODE: i32 = 75;

fn start_logging(settings: &Settings, default: &str) -> std::io::Result<()> {
    logging::start(settings.log_format, settings.log.as_deref().unwrap_or(default))
}

/// A progress bar for the opening of a long journal.
fn opening_bar() -> impl Fn(u64, u64) + Send + 'static {
    let bar = terminal::bar("reading the journal", "Records");
    move |read, total| {
        bar.set_length(total);
        bar.set_position(read);
        if read == total {
            bar.finish_and_clear();
        }
    }
}
