//! The command line.

use std::process::ExitCode;

use centavo::config::{Args, Command, LogFormat, ServeArgs, Settings};
use centavo::{serve, terminal, verify};
use clap::Parser;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Args::parse().command {
        Command::Serve(args) => run_server(args).await,
        Command::Demo(_) => Err("not yet".into()),
        Command::Verify(args) => verify::run(&args.data).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("centavo: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<ExitCode, Box<dyn std::error::Error>>;

async fn run_server(args: ServeArgs) -> Done {
    let settings = args.settings()?;
    start_logging(settings.log_format);
    show_made_token(&settings);
    // From the first answer on, a signal must find somebody who drains.
    let terminate = signal(SignalKind::terminate())?;
    let running = serve::start(settings, opening_bar()).await?;
    tracing::info!(public = %running.public, operations = %running.operations, sandbox = running.app.sandbox, "serving");
    Ok(until_told_to_stop(running, terminate).await?)
}

/// Serves until SIGTERM or Ctrl-C, then drains. A failure of the journal ends the process at once.
async fn until_told_to_stop(running: serve::Running, mut terminate: Signal) -> std::io::Result<ExitCode> {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
        () = running.failed() => {
            eprintln!("centavo: a block could not be made durable; nothing of it was acknowledged. See the log, then start again.");
            return Ok(ExitCode::from(74));
        }
    }
    tracing::info!("stopping: answering what is under way");
    running.stop().await;
    Ok(ExitCode::SUCCESS)
}

fn start_logging(format: LogFormat) {
    let filter = EnvFilter::try_from_env("CENTAVO_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => logs.init(),
        LogFormat::Json => logs.json().init(),
    }
}

fn show_made_token(settings: &Settings) {
    if let Some(token) = &settings.made_ops_token {
        eprintln!("No CENTAVO_OPS_TOKEN was given; this one was made, and is shown only now: {}", token.reveal());
    }
}

/// A bar for the opening of a long journal.
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
