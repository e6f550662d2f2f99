//! Configuration: flags, then `CENTAVO_…` variables, then a TOML file, then defaults. The first
//! source that names a setting decides it.
//!
//! [`Args`] holds the raw values, [`Settings`] the checked ones. The environment is not read after
//! that.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::{NonZeroU16, NonZeroU32};
use std::path::{Path, PathBuf};
use std::time::Duration;

use actors::engine::IndexOptions;
use books::export::{Chart, Format, Level, Request};
use books::reports::{Report, ReportFormat, ReportRequest, WrongReport};
use chrono::NaiveDate;
use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{
    Arg, ArgGroup, ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};
use clap_complete::Shell;
use ipnet::IpNet;
use ledger::merchant::DisputeWindows;
use store::cut::Cut;
use store::{Partition, Sequence, SledOptions};
use tracing_subscriber::EnvFilter;
use wire::timestamp::day;

use crate::checkpoints::{self, CheckpointSchedule, EVERY_MINUTES_DEFAULT, Place};
use crate::listen::ListenArgs;
use crate::named_rails::settings::{BellSettings, GivenBellSettings, NamedRailSettings, NamedRailsError};
use crate::privacy;
use crate::rail_check::RailCommand;
use crate::secrets::{SecretSource, TwoSources};
use crate::settings_file::{SettingsFile, SettingsFileError};
use crate::store_choice::{DatabaseArgs, Store, StoreArgs, StoreSettingsError};
use crate::trigger::TriggerArgs;
use nodes::{GivenPeerSettings, PeerSettings, PeerSettingsError};
use web::credential::{OpsRoles, OpsTokens, OpsTokensError, Secret};
use web::guards::rate_limit::RateLimitSettings;
use web::network::{NetworkError, network};
use web::tls::TlsFiles;

/// Command line as typed. The doc comments of the flags are the texts of `--help`.
#[derive(Debug, Parser)]
#[command(name = "centavo", version = env!("CENTAVO_VERSION"), about)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve merchants and operators.
    #[command(after_long_help = format!("{TABLES_OF_FILE}\n\n{OTHER_VARIABLES}"))]
    Serve {
        /// Print the settings, where each comes from, and what is wrong with them; start nothing.
        #[arg(long)]
        check: bool,
        /// The settings.
        #[command(flatten)]
        args: ServeArgs,
    },
    /// Serve a sandbox and show what it can do.
    #[command(after_long_help = OTHER_VARIABLES, mut_args(hidden_where_ignored))]
    Demo(DemoArgs),
    /// Print the webhook events of an account as they happen, and post them to a local address.
    Listen(ListenArgs),
    /// Make a webhook event happen in a sandbox, with invented people.
    Trigger(TriggerArgs),
    /// Check a bridge to an acquirer or a bank.
    Rail {
        /// What is to be done.
        #[command(subcommand)]
        command: RailCommand,
    },
    /// Write the books, or those of one ledger, as files for other programs.
    ///
    /// The server may be running.
    Export(ExportArgs),
    /// Make a report from a journal.
    Report(ReportArgs),
    /// Copy what is new in the journal to a backup.
    ///
    /// The server may be running.
    Backup(BackupArgs),
    /// Make a data directory from a backup, and verify it.
    Restore(RestoreArgs),
    /// Move the books from a data directory to a database, or back.
    ///
    /// No server may have them open. A run that was cut off goes on when it is repeated.
    Migrate(MigrateArgs),
    /// Add partitions to a store, for the accounts that are opened from now on.
    ///
    /// No server may have it open.
    Grow(GrowArgs),
    /// Check the journal of a data directory from its first Record to its last.
    Verify(VerifyArgs),
    /// Print the script that completes commands and flags in a shell.
    Completions {
        /// Which shell is to read the script.
        shell: Shell,
    },
    /// Write the manual pages, one a command, as centavo-serve.1.
    Man {
        /// The directory of the pages, made when there is none.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// Settings that a demonstration does not ask for.
const IGNORED_BY_DEMO: [&str; 10] = [
    "sandbox",
    "sandbox_dir",
    "rate_limit",
    "card_rate_limit",
    "other_rate_limit",
    "rails_listen",
    "rails_tls_cert",
    "rails_tls_key",
    "rails_tls_client_ca",
    "rails_path_secret_file",
];

fn hidden_where_ignored(arg: Arg) -> Arg {
    let is_ignored = IGNORED_BY_DEMO.contains(&arg.get_id().as_str());
    if is_ignored { arg.hide(true) } else { arg }
}

/// Settings that `-h` shows. It leaves the others to `--help`.
const SETTINGS_OF_SHORT_HELP: [&str; 10] = [
    "config",
    "listen",
    "ops_listen",
    "data",
    "sandbox",
    "ops_token_file",
    "master_key_file",
    "key_file",
    "url",
    "ops_url",
];

/// Help text about the tables of the file, which have no flags and no variables.
const TABLES_OF_FILE: &str = "\
Tables of the TOML file alone:
  [rails]      the rails of new orders, by name: card, pix, payout = \"NAME\"
  [rail.NAME]  a rail, of kind = \"api_pix\"; its settings: docs/rails/README.md";

/// Help text about the variables that have no flag.
const OTHER_VARIABLES: &str = "\
Variables without a flag, since a command line can be read by others:
  CENTAVO_MASTER_KEY  64 hexadecimal digits that encrypt all other keys [default: the file master.key in the data directory]

Other variables:
  SSL_CERT_FILE, SSL_CERT_DIR  certificates to trust at webhook addresses instead of the system's
  NO_COLOR                     no colors in the log of a terminal";

/// Flags of the commands that serve. An absent flag is looked up in the environment, then in the
/// file.
#[derive(Debug, Default, ClapArgs)]
pub struct ServeArgs {
    /// A TOML file with the same names, underscores for hyphens.
    #[arg(long, env = "CENTAVO_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where merchants call; :8080 is port 8080 of all addresses of the machine [default:
    /// 127.0.0.1:8080].
    #[arg(long, env = "CENTAVO_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Where operators call [default: 127.0.0.1:8081].
    #[arg(long, env = "CENTAVO_OPS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub ops_listen: Option<SocketAddr>,
    /// The directory of the journal [default: ./data].
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// A token of 32 characters or more, or name:token,name:token [default: the file operator.token
    /// in the data directory, made once].
    #[arg(long, env = "CENTAVO_OPS_TOKEN", hide_env_values = true, value_name = "TOKENS", value_parser = secret)]
    pub ops_token: Option<Secret>,
    /// A file of what CENTAVO_OPS_TOKEN would hold. SIGHUP makes the server read it again.
    #[arg(long, env = "CENTAVO_OPS_TOKEN_FILE", value_name = "FILE")]
    pub ops_token_file: Option<PathBuf>,
    /// What each named operator may do: read, decide or admin, with +tax-ids for tax ids in
    /// reports; a token without a name is an admin's.
    #[arg(long, env = "CENTAVO_OPS_ROLES", value_name = "NAME=ROLE,NAME=ROLE")]
    pub ops_roles: Option<String>,
    /// The master key.
    #[command(flatten)]
    pub master_key: MasterKeyArgs,
    /// A PEM file of the certificate chain of the merchants' listener, which speaks TLS then.
    /// SIGHUP makes the server read it and its key again.
    #[arg(long, env = "CENTAVO_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// A PEM file of its private key.
    #[arg(long, env = "CENTAVO_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// The same for the operators' listener.
    #[arg(long, env = "CENTAVO_OPS_TLS_CERT", value_name = "FILE")]
    pub ops_tls_cert: Option<PathBuf>,
    /// A PEM file of its private key.
    #[arg(long, env = "CENTAVO_OPS_TLS_KEY", value_name = "FILE")]
    pub ops_tls_key: Option<PathBuf>,
    /// Where the other processes of a PostgreSQL store call, which serves partitions of it then; a
    /// loopback address, or any with the three settings of TLS.
    #[arg(long, env = "CENTAVO_PEER_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub peer_listen: Option<SocketAddr>,
    /// How the others reach that listener; no two of them have the same [default: its address].
    #[arg(long, env = "CENTAVO_PEER_ADDRESS", value_name = "HOST:PORT")]
    pub peer_address: Option<String>,
    /// A PEM file of the certificate chain that this process shows the others, as a server and as a
    /// client.
    #[arg(long, env = "CENTAVO_PEER_TLS_CERT", value_name = "FILE")]
    pub peer_tls_cert: Option<PathBuf>,
    /// A PEM file of its private key.
    #[arg(long, env = "CENTAVO_PEER_TLS_KEY", value_name = "FILE")]
    pub peer_tls_key: Option<PathBuf>,
    /// A PEM file of the authority whose certificates the others must show.
    #[arg(long, env = "CENTAVO_PEER_TLS_CA", value_name = "FILE")]
    pub peer_tls_ca: Option<PathBuf>,
    /// Where institutions say that something has happened, which a [rail.NAME] names; without it,
    /// they are asked every 10 seconds all the same.
    #[arg(long, env = "CENTAVO_RAILS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub rails_listen: Option<SocketAddr>,
    /// A PEM file of the certificate chain of that listener, which speaks TLS then.
    #[arg(long, env = "CENTAVO_RAILS_TLS_CERT", value_name = "FILE")]
    pub rails_tls_cert: Option<PathBuf>,
    /// A PEM file of its private key.
    #[arg(long, env = "CENTAVO_RAILS_TLS_KEY", value_name = "FILE")]
    pub rails_tls_key: Option<PathBuf>,
    /// A PEM file of the authorities of which an institution must show a certificate there.
    #[arg(long, env = "CENTAVO_RAILS_TLS_CLIENT_CA", value_name = "FILE")]
    pub rails_tls_client_ca: Option<PathBuf>,
    /// A file of the secret with which each path begins there, 32 letters and digits or more, for
    /// institutions that show no certificate. SIGHUP makes the server read it again.
    #[arg(long, env = "CENTAVO_RAILS_PATH_SECRET_FILE", value_name = "FILE")]
    pub rails_path_secret_file: Option<PathBuf>,
    /// The institutions of the configuration file.
    #[arg(skip)]
    pub rails: Option<NamedRailSettings>,
    /// Play the card acquirer and the payment institution instead of calling them.
    #[arg(long, env = "CENTAVO_SANDBOX", value_name = "on|off", num_args = 0..=1, default_missing_value = "on",
          value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub sandbox: Option<bool>,
    /// Where the played institutions keep their records: a directory that all servers of one
    /// database share [default: sandbox in the data directory].
    #[arg(long, env = "CENTAVO_SANDBOX_DIR", value_name = "DIR")]
    pub sandbox_dir: Option<PathBuf>,
    /// Serve a database that lost Records which this process has seen. The refusal of the start
    /// names the last Records that are there: give them. It counts once.
    #[arg(long, value_name = "SEQUENCE|CUT", value_parser = last_records, hide_short_help = true)]
    pub accept_loss_after: Option<LastRecords>,
    /// How many parts the journal of a new store has, each with an order of its own; a store that
    /// has a journal keeps what it has [default: 1, of nodes 16].
    #[arg(long, env = "CENTAVO_PARTITIONS", value_name = "1-64", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub partitions: Option<u16>,
    /// Networks whose webhook addresses may be private and plain http.
    #[arg(long, env = "CENTAVO_WEBHOOK_ALLOW", value_name = "CIDR,CIDR")]
    pub webhook_allow: Option<String>,
    /// Whether requests per minute are limited [default: on].
    #[arg(long, env = "CENTAVO_RATE_LIMIT", value_name = "on|off", value_parser = BoolishValueParser::new(),
          hide_possible_values = true)]
    pub rate_limit: Option<bool>,
    /// Card charges of one API key in a minute [default: 120].
    #[arg(long, env = "CENTAVO_CARD_RATE_LIMIT", value_name = "NUMBER")]
    pub card_rate_limit: Option<NonZeroU32>,
    /// Other requests of one API key in a minute [default: 600].
    #[arg(long, env = "CENTAVO_OTHER_RATE_LIMIT", value_name = "NUMBER")]
    pub other_rate_limit: Option<NonZeroU32>,
    /// Days after its payment in which a card charge can be disputed [default: 540].
    #[arg(long, env = "CENTAVO_CHARGEBACK_DAYS", value_name = "DAYS")]
    pub chargeback_days: Option<NonZeroU16>,
    /// Days after its payment in which a PIX charge can be disputed [default: 90].
    #[arg(long, env = "CENTAVO_MED_DAYS", value_name = "DAYS")]
    pub med_days: Option<NonZeroU16>,
    /// How log lines look [default: text].
    #[arg(long, env = "CENTAVO_LOG_FORMAT")]
    pub log_format: Option<LogFormat>,
    /// Which log lines are written: a level, or levels by module, as in info,centavo=debug
    /// [default: info,ractor=warn; demo: warn,centavo_store=error].
    #[arg(long, env = "CENTAVO_LOG", value_name = "FILTER", value_parser = log_filter)]
    pub log: Option<String>,
    /// Free space below which no command is taken, bytes [default: 68157440].
    #[arg(long, env = "CENTAVO_DISK_RESERVE_BYTES", value_name = "BYTES")]
    pub disk_reserve_bytes: Option<u64>,
    /// Days after the last Record from which on a live start waits until two operators confirm the
    /// wall clock, 1 to 3650 [default: 7].
    #[arg(long, env = "CENTAVO_START_GAP_DAYS", value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub start_gap_days: Option<u16>,
    /// How long a merchant's command waits for its turn under overload, before it is refused,
    /// milliseconds, up to 60000 [default: 1000].
    #[arg(long, env = "CENTAVO_TURN_WAIT_MS", value_name = "MILLISECONDS", value_parser = clap::value_parser!(u32).range(..=60_000))]
    pub turn_wait_ms: Option<u32>,
    /// A file that takes room, to be deleted when the disk is full, bytes; 0 for none [default:
    /// 67108864].
    #[arg(long, env = "CENTAVO_BALLAST_BYTES", value_name = "BYTES")]
    pub ballast_bytes: Option<u64>,
    /// Where signed checkpoints are sent: a folder that exists, or a URL with https; off for
    /// nowhere [default: the folder checkpoints in the data directory].
    #[arg(long, env = "CENTAVO_CHECKPOINTS_TO", value_name = "FOLDER|URL|off")]
    pub checkpoints_to: Option<String>,
    /// How often, minutes, from 1 to 10080 [default: 60].
    #[arg(long, env = "CENTAVO_CHECKPOINTS_EVERY", value_name = "MINUTES",
          value_parser = clap::value_parser!(u32).range(1..=10_080))]
    pub checkpoints_every: Option<u32>,
    /// Bytes of a segment of the journal. For tests, which need many small ones.
    #[arg(long, env = "CENTAVO_SEGMENT_BYTES", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub segment_bytes: Option<u64>,
    /// How many closed segments of the journal stay open for readers. For tests.
    #[arg(long, env = "CENTAVO_SEGMENTS_OPEN", hide = true)]
    pub segments_open: Option<usize>,
    /// Records of a run of the index. For tests, which need many small ones.
    #[arg(long, env = "CENTAVO_RECORDS_PER_RUN", hide = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub records_per_run: Option<u64>,
}

/// Place of the master key, for the commands that open what it encrypts.
#[derive(Debug, Default, ClapArgs)]
pub struct MasterKeyArgs {
    /// A file of what CENTAVO_MASTER_KEY would hold, read at the start.
    #[arg(long, env = "CENTAVO_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,
    /// The text of the configuration file.
    #[arg(skip)]
    pub in_file: Option<Secret>,
}

/// The description of the program: its commands, and their flags with variables.
pub fn program() -> clap::Command {
    let is_rare = |arg: &Arg| {
        let is_setting = arg.get_env().is_some() && !arg.is_hide_set();
        is_setting && !SETTINGS_OF_SHORT_HELP.contains(&arg.get_id().as_str())
    };
    let shorter = |command: clap::Command| {
        let has_more = command.get_arguments().any(is_rare);
        let command = command.mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg });
        if has_more { command.after_help("More settings: --help") } else { command }
    };
    Args::command().mut_subcommands(shorter)
}

/// The arguments of a command: flags, then variables, then the file that one of them names.
pub struct Arguments {
    /// Values of the command and its flags.
    pub args: Args,
    /// The same, with the source of each value.
    pub matches: ArgMatches,
    /// The configuration file, if one is named.
    pub file: Option<SettingsFile>,
}

/// Why a command can't begin.
#[derive(Debug)]
pub enum ArgumentsError {
    /// Flags or variables are wrong, or help was asked for.
    Typed(clap::Error),
    /// The file is wrong.
    File(SettingsFileError),
}

impl From<clap::Error> for ArgumentsError {
    fn from(error: clap::Error) -> Self {
        Self::Typed(error)
    }
}

impl From<SettingsFileError> for ArgumentsError {
    fn from(error: SettingsFileError) -> Self {
        Self::File(error)
    }
}

/// The command line, the variables of the environment, and the file. An empty variable counts as
/// one that is not set. Ends the process where flags or variables are wrong; the error names what
/// was written.
pub fn read_arguments() -> Result<Arguments, SettingsFileError> {
    let typed: Vec<String> = std::env::args().collect();
    let command = with_handed_variables(without_empty_variables(program()));
    parse(command.clone(), &typed).map_err(|error| match error {
        ArgumentsError::Typed(error) => named_as_written(error, &command, &typed).exit(),
        ArgumentsError::File(error) => error,
    })
}

fn parse(command: clap::Command, typed: &[String]) -> Result<Arguments, ArgumentsError> {
    let matches = command.clone().try_get_matches_from(typed)?;
    let (name, of_command) = matches.subcommand().unwrap_or(("", &matches));
    let Some(path) = of_command.try_get_one::<PathBuf>("config").ok().flatten() else {
        return Ok(Arguments { args: Args::from_arg_matches(&matches)?, matches, file: None });
    };
    let file = SettingsFile::read(path, command.find_subcommand("serve").unwrap_or(&command))?;
    let master_key = file.master_key(of_command)?;
    let mut below = Ok(());
    let command = command.mut_subcommand(name, |command| {
        file.below(command.clone(), of_command).unwrap_or_else(|error| {
            below = Err(error);
            command
        })
    });
    below?;
    let matches = command.try_get_matches_from(typed)?;
    let mut args = Args::from_arg_matches(&matches)?;
    if let Command::Serve { args, .. } | Command::Demo(DemoArgs { serve: args, .. }) = &mut args.command {
        args.master_key.in_file = master_key;
        args.rails = file.rails();
    }
    Ok(Arguments { args, matches, file: Some(file) })
}

fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(None::<&'static str>) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

/// The secrets that are no longer in the environment count where no flag gives one.
fn with_handed_variables(command: clap::Command) -> clap::Command {
    let handed = |arg: &Arg| arg.get_env().and_then(|name| privacy::handed(name.to_str()?));
    let command = command.mut_args(|arg| match handed(&arg) {
        Some(value) => arg.default_value(value).hide_default_value(true),
        None => arg,
    });
    command.mut_subcommands(with_handed_variables)
}

/// The error of a value, with the name of the variable that has the value.
fn named_as_written(mut error: clap::Error, command: &clap::Command, typed: &[String]) -> clap::Error {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg).cloned() else { return error };
    let mut command = command.clone();
    command.build();
    let all = command.get_subcommands().chain([&command]).flat_map(clap::Command::get_arguments);
    let arg = all.into_iter().find(|arg| arg.to_string() == named);
    let Some((arg, variable)) = arg.and_then(|arg| Some((arg, arg.get_env()?.to_string_lossy().into_owned()))) else {
        return error;
    };
    let flag = format!("--{}", arg.get_long().unwrap_or_default());
    let is_typed = typed.iter().any(|word| *word == flag || word.starts_with(&format!("{flag}=")));
    if !is_typed && privacy::variable(&variable).is_some() {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

impl MasterKeyArgs {
    /// Where the key is: a variable, a file that is named, or the data directory.
    pub fn source(&self) -> Result<SecretSource, ConfigError> {
        // It has no flag, because others can read the command line of a process.
        let text = privacy::variable("CENTAVO_MASTER_KEY").or_else(|| self.in_file.clone());
        Ok(SecretSource::given("CENTAVO_MASTER_KEY", text, self.master_key_file.clone())?)
    }
}

/// Flags of `demo`: those of `serve`. The sandbox is always on, and the rate limit always off.
#[derive(Debug, ClapArgs)]
pub struct DemoArgs {
    /// The flags of `serve`.
    #[command(flatten)]
    pub serve: ServeArgs,
    /// How many cards to charge.
    #[arg(long, value_name = "NUMBER", default_value_t = 3_000)]
    pub charges: u32,
    /// Where the demonstration's webhooks are sent once it has shown everything; an address of this
    /// machine is allowed.
    #[arg(long, value_name = "URL")]
    pub webhook: Option<String>,
}

/// Flags of the commands that read a journal. They find the data and its server in the same flags,
/// variables and file as `serve`.
#[derive(Debug, ClapArgs)]
pub struct JournalArgs {
    /// The TOML file of the server.
    #[arg(long, env = "CENTAVO_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The directory of the journal [default: ./data].
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Where a server that has the data open is called by operators [default: 127.0.0.1:8081].
    #[arg(long, env = "CENTAVO_OPS_LISTEN", value_name = "ADDRESS:PORT", value_parser = address)]
    pub ops_listen: Option<SocketAddr>,
    /// The certificate chain of its operators' listener, where that speaks TLS.
    #[arg(long, env = "CENTAVO_OPS_TLS_CERT", value_name = "FILE")]
    pub ops_tls_cert: Option<PathBuf>,
    /// The server's token, or name:token,name:token, of which the first is used.
    #[arg(long, env = "CENTAVO_OPS_TOKEN", hide_env_values = true, value_name = "TOKENS", value_parser = secret)]
    pub ops_token: Option<Secret>,
    /// The server's file of its tokens [default: operator.token in the data directory].
    #[arg(long, env = "CENTAVO_OPS_TOKEN_FILE", value_name = "FILE")]
    pub ops_token_file: Option<PathBuf>,
}

/// Flags of `backup`.
#[derive(Debug, ClapArgs)]
pub struct BackupArgs {
    /// The journal.
    #[command(flatten)]
    pub journal: JournalArgs,
    /// The directory of the backup, made when there is none, continued when there is one.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Follow the server at this URL of its operators' listener, from any machine, until the
    /// process is stopped: a warm copy, about a second behind.
    #[arg(long, value_name = "URL")]
    pub follow: Option<String>,
    /// A PEM file of certificates to trust at an https URL, beside those of the system.
    #[arg(long, env = "CENTAVO_TRUST", value_name = "FILE")]
    pub trust: Option<PathBuf>,
}

/// Flags of `export`.
#[derive(Debug, ClapArgs)]
pub struct ExportArgs {
    /// The journal.
    #[command(flatten)]
    pub journal: JournalArgs,
    /// M-…, R-… or P-…, all of them, or P-all: the platform's as one.
    #[arg(long, value_name = "ID|all|P-all", default_value = "all")]
    pub ledger: String,
    /// What to write.
    #[arg(long, value_enum)]
    pub format: Format,
    /// The first day, in America/Sao_Paulo [default: from the beginning].
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub from: Option<NaiveDate>,
    /// The last day [default: all through the cut].
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub to: Option<NaiveDate>,
    /// The last Record that counts, of each partition where there are several, as 0=42,1=17
    /// [default: the last one there is].
    #[arg(long, value_name = "SEQUENCE|CUT", value_parser = cut)]
    pub at: Option<Cut>,
    /// The directory of the files, made when there is none.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Compress the file with gzip; only formats of one file.
    #[arg(long)]
    pub compress: bool,
    /// Codes of the accounts in another program: a TOML file, for journal-entries.
    #[arg(long, value_name = "FILE")]
    pub map: Option<PathBuf>,
    /// One entry a Record, or one a day; for journal-entries [default: entry].
    #[arg(long, value_enum)]
    pub level: Option<Level>,
}

/// Flags of `report`.
#[derive(Debug, ClapArgs)]
pub struct ReportArgs {
    /// Which report.
    #[arg(value_enum)]
    pub name: Report,
    /// The journal.
    #[command(flatten)]
    pub journal: JournalArgs,
    /// M-…, R-… or P-…, or P-all: the platform's as one [default: all].
    #[arg(long, value_name = "ID|P-all")]
    pub ledger: Option<String>,
    /// Account of the general ledger, with those below it [default: all].
    #[arg(long, value_name = "ACCOUNT")]
    pub account: Option<String>,
    /// What to write.
    #[arg(long, value_enum, default_value = "table")]
    pub format: ReportFormat,
    /// The first day, in America/Sao_Paulo [default: from the beginning].
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub from: Option<NaiveDate>,
    /// The last day [default: all through the cut].
    #[arg(long, value_name = "DATE", value_parser = date)]
    pub to: Option<NaiveDate>,
    /// The last Record that counts, of each partition where there are several, as 0=42,1=17
    /// [default: the last one there is].
    #[arg(long, value_name = "SEQUENCE|CUT", value_parser = cut)]
    pub at: Option<Cut>,
    /// The directory of the file, made when there is none [default: the terminal].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Flags of `restore`.
#[derive(Debug, ClapArgs)]
pub struct RestoreArgs {
    /// The directory of the backup.
    #[arg(long, value_name = "BACKUP")]
    pub from: PathBuf,
    /// The directory to make; there may be nothing in it.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = DATA_DEFAULT)]
    pub data: PathBuf,
    /// A second copy that may go further: another backup, or a data directory that no server has
    /// open. It is opened for writing, as its store requires: give a copy of it where it is the
    /// only one.
    #[arg(long, value_name = "OTHER")]
    pub tail: Option<PathBuf>,
    /// The store to fill, which must be empty.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The master key, for the check at the end.
    #[command(flatten)]
    pub master_key: MasterKeyArgs,
}

/// Flags of `migrate`.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("source").required(true).args(["from", "from_file"]))]
#[command(group = ArgGroup::new("target").required(true).args(["to", "to_file"]))]
pub struct MigrateArgs {
    /// Where the books are: a data directory, or a database as
    /// postgres://user:password@host/database. Nobody may serve them.
    #[arg(long, value_name = "DIR|URL", value_parser = secret)]
    pub from: Option<Secret>,
    /// A file of what --from would hold, since a command line can be read by others.
    #[arg(long, value_name = "FILE")]
    pub from_file: Option<PathBuf>,
    /// Where the books move to: a directory to make, or an empty database.
    #[arg(long, value_name = "DIR|URL", value_parser = secret)]
    pub to: Option<Secret>,
    /// A file of what --to would hold.
    #[arg(long, value_name = "FILE")]
    pub to_file: Option<PathBuf>,
    /// The data directory of the servers of the database: what a data directory has beside the
    /// journal (operator.token, last-backup, sandbox) is copied there, or from there.
    #[arg(long, value_name = "DIR")]
    pub beside: Option<PathBuf>,
    /// What is special to a database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// The master key, to see that it opens the books in their new place.
    #[command(flatten)]
    pub master_key: MasterKeyArgs,
}

/// Flags of `grow`.
#[derive(Debug, ClapArgs)]
pub struct GrowArgs {
    /// The directory of the journal.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = DATA_DEFAULT)]
    pub data: PathBuf,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// How many partitions the store is to have in all. Those that it has stay; of the new ones,
    /// each gets its share of the accounts that are opened from now on.
    #[arg(long, value_name = "1-64", value_parser = clap::value_parser!(u16).range(1..=i64::from(PARTITIONS_MAX)))]
    pub partitions: u16,
}

/// Flags of `verify`.
#[derive(Debug, ClapArgs)]
pub struct VerifyArgs {
    /// The directory of the journal.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = DATA_DEFAULT)]
    pub data: PathBuf,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The master key.
    #[command(flatten)]
    pub master_key: MasterKeyArgs,
    /// A file with checkpoints of this journal, as GET /ops/checkpoint answers them, one after the
    /// other, or the folder of those that a server sent: each must agree [default: the folder
    /// checkpoints in the data directory, if there is one].
    #[arg(long, value_name = "FILE|FOLDER")]
    pub against: Option<PathBuf>,
}

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}

/// Checked settings of a server.
#[derive(Debug)]
pub struct Settings {
    /// Address of the merchants' listener.
    pub listen: SocketAddr,
    /// Address of the operators' listener.
    pub ops_listen: SocketAddr,
    /// The directory of the journal.
    pub data: PathBuf,
    /// Store of the journal.
    pub store: Store,
    /// Place of the operators' tokens.
    pub ops_token: SecretSource,
    /// Roles of the operators.
    pub ops_roles: OpsRoles,
    /// Certificate of the merchants' listener; plain HTTP without one.
    pub tls: Option<TlsFiles>,
    /// Certificate of the operators' listener; plain HTTP without one.
    pub ops_tls: Option<TlsFiles>,
    /// The listener for the other processes of the store; `None` if there are none.
    pub peers: Option<PeerSettings>,
    /// The institutions that the settings file names; `None` if it names none.
    pub rails: Option<NamedRailSettings>,
    /// The listener on which they ring; `None` if they are only asked.
    pub bells: Option<BellSettings>,
    /// Whether the acquirer and the payment institution are simulated.
    pub sandbox: bool,
    /// The directory of their records, where it is not the one in the data directory.
    pub sandbox_dir: Option<PathBuf>,
    /// How many partitions a new store gets.
    pub partitions: NonZeroU16,
    /// Networks whose webhook addresses may be private and plain http.
    pub webhook_allow: Vec<IpNet>,
    /// Requests in a minute; `None` if they are not limited.
    pub rate_limits: Option<RateLimitSettings>,
    /// How long after its payment a charge can be disputed.
    pub disputes: DisputeWindows,
    /// Where checkpoints are sent, and how often; `None` if they are not.
    pub checkpoints: Option<CheckpointSchedule>,
    /// Format of the log.
    pub log_format: LogFormat,
    /// Filter of the log, if one was given.
    pub log: Option<String>,
    /// Place of the master key.
    pub master_key: SecretSource,
    /// Options of the index.
    pub index: IndexOptions,
    /// How long after the last Record a live start needs no word of operators.
    pub start_gap_max: Duration,
    /// How long a merchant's command waits for its turn.
    pub turn_wait_max: Duration,
    /// Options of the embedded store.
    pub sled: SledOptions,
}

/// Why the settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The store can't be one.
    #[error(transparent)]
    Store(#[from] StoreSettingsError),
    /// Merchants and operators would share one address.
    #[error("merchants and operators can't share the address {0}")]
    SharedAddress(SocketAddr),
    /// The operators' tokens can't be read.
    #[error("the operators' tokens are wrong: {0}")]
    OpsToken(#[from] OpsTokensError),
    /// The peers' listener would share the address of another one.
    #[error("the peers' listener can't share the address {0}")]
    SharedPeerAddress(SocketAddr),
    /// The settings of the peers' listener make no sense.
    #[error(transparent)]
    Peers(#[from] PeerSettingsError),
    /// The settings of institutions make no sense.
    #[error(transparent)]
    Rails(#[from] NamedRailsError),
    /// One of a certificate and its key is set, and the other is not.
    #[error("{0} and {1} belong together; one of them is not set")]
    HalfTls(&'static str, &'static str),
    /// A network of the webhooks can't be read.
    #[error("the networks of webhooks are wrong: {0}")]
    WebhookAllow(#[from] NetworkError),
    /// The format has the codes of another chart of accounts.
    #[error("{0} wants --map FILE: the codes of the accounts in the other program")]
    NoMap(&'static str),
    /// The entries of several ledgers do not go to one bookkeeping program.
    #[error("{0} wants one --ledger, such as P-all")]
    OneLedger(&'static str),
    /// The format has our own accounts.
    #[error("{0} takes neither --map nor --level")]
    UselessMap(&'static str),
    /// The chart of accounts cannot be read.
    #[error("{}: {error}", file.display())]
    Map {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        error: String,
    },
    /// The files of the format include each other by name, or are compressed already.
    #[error("{0} is not compressed: its files include each other by name, or are compressed already")]
    NotCompressed(&'static str),
    /// The first day is after the last.
    #[error("there is no day from {from} to {to}")]
    NoDays {
        /// The first day.
        from: NaiveDate,
        /// The last day.
        to: NaiveDate,
    },
    /// Checkpoints can't be sent as they are to be.
    #[error("{variable} {defect}")]
    Checkpoints {
        /// The variable.
        variable: &'static str,
        /// The defect.
        defect: String,
    },
    /// The report is not made like this.
    #[error(transparent)]
    Report(#[from] WrongReport),
    /// A file that no terminal shows.
    #[error("{0} wants --out, the directory of the file")]
    NoReportFolder(&'static str),
    /// A secret is given as a text and as a file.
    #[error(transparent)]
    TwoSources(#[from] TwoSources),
}

const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
const OPS_LISTEN_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8081);
const DATA_DEFAULT: &str = "./data";
const BALLAST_BYTES: u64 = 64 << 20;

/// The listener for other processes, which has an address of its own.
fn peers_apart(
    given: GivenPeerSettings,
    is_database: bool,
    others: [SocketAddr; 2],
) -> Result<Option<PeerSettings>, ConfigError> {
    let peers = given.checked(is_database)?;
    match peers.as_ref().map(|peers| peers.listen).filter(|listen| listen.port() != 0 && others.contains(listen)) {
        Some(shared) => Err(ConfigError::SharedPeerAddress(shared)),
        None => Ok(peers),
    }
}

const START_GAP_DAYS: u16 = 7;
const TURN_WAIT_MS: u32 = 1_000;

/// The schedule of checkpoints; `None` if they are switched off.
fn checkpoint_schedule(
    to: Option<String>,
    every: Option<u32>,
    data: &Path,
) -> Result<Option<CheckpointSchedule>, ConfigError> {
    let minutes = every.unwrap_or(EVERY_MINUTES_DEFAULT);
    let wrong = |defect| ConfigError::Checkpoints { variable: "CENTAVO_CHECKPOINTS_TO", defect };
    let to = match to.as_deref() {
        None => Place::Own(data.join(checkpoints::FOLDER)),
        Some("off") => return Ok(None),
        Some(to) => to.parse().map_err(wrong)?,
    };
    Ok(Some(CheckpointSchedule { to, every: Duration::from_secs(u64::from(minutes) * 60) }))
}

impl ServeArgs {
    fn sled_options(&self) -> SledOptions {
        let sled = SledOptions::default();
        SledOptions {
            segment_bytes: self.segment_bytes.unwrap_or(sled.segment_bytes),
            segments_open_max: self.segments_open.unwrap_or(sled.segments_open_max),
            reserve_bytes: self.disk_reserve_bytes.unwrap_or(sled.reserve_bytes),
            ballast_bytes: self.ballast_bytes.unwrap_or(BALLAST_BYTES),
            ..sled
        }
    }

    /// Checks all settings.
    pub fn settings(mut self) -> Result<Settings, ConfigError> {
        let peers = self.take_peers();
        let bells = self.take_bells()?;
        let sled = self.sled_options();
        let data = self.data.unwrap_or_else(|| PathBuf::from(DATA_DEFAULT));
        let accepted = self.accept_loss_after.map(|LastRecords(records)| records);
        let store = self.store.store()?.seen_in(&data, accepted);
        let listen = self.listen.unwrap_or(LISTEN_DEFAULT);
        let ops_listen = self.ops_listen.unwrap_or(OPS_LISTEN_DEFAULT);
        if listen == ops_listen && listen.port() != 0 {
            return Err(ConfigError::SharedAddress(listen));
        }
        let peers = peers_apart(peers, store.is_postgres(), [listen, ops_listen])?;
        let others: Vec<_> = [listen, ops_listen].into_iter().chain(peers.as_ref().map(|peers| peers.listen)).collect();
        let bells = bells.checked(self.rails.is_some(), &others)?;
        let sandbox = self.sandbox.unwrap_or(false);
        self.rails.as_ref().map_or(Ok(()), |rails| rails.fit(sandbox, bells.is_some()))?;
        let mut index = IndexOptions::default();
        index.records_per_run = self.records_per_run.unwrap_or(index.records_per_run);
        let ops_token = SecretSource::given("CENTAVO_OPS_TOKEN", self.ops_token, self.ops_token_file)?;
        let ops_roles: OpsRoles = self.ops_roles.map(|roles| roles.parse()).transpose()?.unwrap_or_default();
        if let SecretSource::Text(tokens) = &ops_token {
            let _they_can_be_used = tokens.reveal().parse::<OpsTokens>()?.with_roles(&ops_roles)?;
        }
        let limits = RateLimitSettings::default();
        let rate_limits = self.rate_limit.unwrap_or(true).then_some(RateLimitSettings {
            card: self.card_rate_limit.unwrap_or(limits.card),
            other: self.other_rate_limit.unwrap_or(limits.other),
        });
        let start_gap_days = u64::from(self.start_gap_days.unwrap_or(START_GAP_DAYS));
        Ok(Settings {
            listen,
            ops_listen,
            store,
            ops_token,
            ops_roles,
            tls: tls_files(["CENTAVO_TLS_CERT", "CENTAVO_TLS_KEY"], [self.tls_cert, self.tls_key])?,
            ops_tls: tls_files(["CENTAVO_OPS_TLS_CERT", "CENTAVO_OPS_TLS_KEY"], [self.ops_tls_cert, self.ops_tls_key])?,
            partitions: partitions(self.partitions, peers.is_some()),
            peers,
            rails: self.rails,
            bells,
            sandbox,
            sandbox_dir: self.sandbox_dir,
            webhook_allow: networks(self.webhook_allow.as_deref().unwrap_or_default())?,
            rate_limits,
            disputes: dispute_windows([self.chargeback_days, self.med_days]),
            checkpoints: checkpoint_schedule(self.checkpoints_to, self.checkpoints_every, &data)?,
            data,
            log_format: self.log_format.unwrap_or(LogFormat::Text),
            log: self.log,
            master_key: self.master_key.source()?,
            turn_wait_max: Duration::from_millis(self.turn_wait_ms.unwrap_or(TURN_WAIT_MS).into()),
            start_gap_max: Duration::from_secs(start_gap_days * 86_400),
            index,
            sled,
        })
    }

    /// The settings of the listener on which institutions ring.
    fn take_bells(&mut self) -> Result<GivenBellSettings, ConfigError> {
        let names = ["CENTAVO_RAILS_TLS_CERT", "CENTAVO_RAILS_TLS_KEY"];
        Ok(GivenBellSettings {
            listen: self.rails_listen,
            tls: tls_files(names, [self.rails_tls_cert.take(), self.rails_tls_key.take()])?,
            client_authority: self.rails_tls_client_ca.take(),
            path_secret: self.rails_path_secret_file.take(),
        })
    }

    /// The settings of the peers' listener.
    fn take_peers(&mut self) -> GivenPeerSettings {
        GivenPeerSettings {
            listen: self.peer_listen,
            address: self.peer_address.take(),
            certificates: self.peer_tls_cert.take(),
            key: self.peer_tls_key.take(),
            authority: self.peer_tls_ca.take(),
        }
    }
}

impl Settings {
    /// The directory of the records of a sandbox's institutions.
    pub fn sandbox_folder(&self) -> PathBuf {
        self.sandbox_dir.clone().unwrap_or_else(|| self.data.join("sandbox"))
    }

    /// Whether other processes may use that directory at the same time: those of one database, or
    /// of one directory that was named.
    pub fn shares_sandbox(&self) -> bool {
        self.store.is_postgres() || self.sandbox_dir.is_some()
    }
}

/// Checked settings of a command that reads the journal.
#[derive(Debug)]
pub struct JournalSettings {
    /// The directory of the journal.
    pub data: PathBuf,
    /// Store of the journal.
    pub store: Store,
    /// Address of the operators' listener of its server, if one runs.
    pub ops_listen: SocketAddr,
    /// Certificate chain of that listener, where it speaks TLS.
    pub ops_tls_cert: Option<PathBuf>,
    /// Place of the server's tokens, of which the first is used.
    pub ops_token: SecretSource,
}

/// Checked settings of `backup`.
#[derive(Debug)]
pub struct BackupSettings {
    /// The journal.
    pub journal: JournalSettings,
    /// The directory of the backup.
    pub out: PathBuf,
    /// URL of the operators' listener of a server to follow; none for one copy.
    pub follow: Option<String>,
    /// Certificates to trust at that URL.
    pub trust: Option<PathBuf>,
}

/// Checked settings of `export`.
#[derive(Debug)]
pub struct ExportSettings {
    /// The journal.
    pub journal: JournalSettings,
    /// What to export, and in which format.
    pub request: Request,
    /// The last Record that is exported; all Records when absent.
    pub at: Option<Cut>,
    /// The directory of the files.
    pub out: PathBuf,
    /// Whether the file is compressed with gzip.
    pub compress: bool,
    /// The chart of accounts of another program, and the granularity of the entries for it.
    pub chart: Option<(Chart, Level)>,
}

/// Checked settings of `report`.
#[derive(Debug)]
pub struct ReportSettings {
    /// The journal.
    pub journal: JournalSettings,
    /// Which report, of which ledger and days.
    pub request: ReportRequest,
    /// Format of the file.
    pub format: ReportFormat,
    /// The last Record that counts; all Records when absent.
    pub at: Option<Cut>,
    /// The directory of the file; the terminal when absent.
    pub out: Option<PathBuf>,
}

impl JournalArgs {
    /// Checks all settings.
    pub fn settings(self) -> Result<JournalSettings, ConfigError> {
        Ok(JournalSettings {
            data: self.data.unwrap_or_else(|| PathBuf::from(DATA_DEFAULT)),
            ops_listen: self.ops_listen.unwrap_or(OPS_LISTEN_DEFAULT),
            ops_tls_cert: self.ops_tls_cert,
            store: self.store.store()?,
            ops_token: SecretSource::given("CENTAVO_OPS_TOKEN", self.ops_token, self.ops_token_file)?,
        })
    }
}

impl BackupArgs {
    /// Checks all settings.
    pub fn settings(self) -> Result<BackupSettings, ConfigError> {
        let Self { journal, out, follow, trust } = self;
        Ok(BackupSettings { journal: journal.settings()?, out, follow, trust })
    }
}

impl ExportArgs {
    /// Checks all settings.
    pub fn settings(self) -> Result<ExportSettings, ConfigError> {
        let Self { journal, ledger, format, from, to, at, out, compress, map, level } = self;
        if compress && (format.is_plain_text() || format.is_compressed()) {
            return Err(ConfigError::NotCompressed(format.name()));
        }
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            return Err(ConfigError::NoDays { from, to });
        }
        let request = Request { ledger: Some(ledger).filter(|ledger| ledger != "all"), format, from, to };
        let chart = match (format.is_mapped(), map) {
            (true, Some(_)) if request.ledger.is_none() => return Err(ConfigError::OneLedger(format.name())),
            (true, Some(file)) => Some((chart(&file)?, level.unwrap_or_default())),
            (true, None) => return Err(ConfigError::NoMap(format.name())),
            (false, None) if level.is_none() => None,
            (false, _) => return Err(ConfigError::UselessMap(format.name())),
        };
        Ok(ExportSettings { journal: journal.settings()?, request, at, out, compress, chart })
    }
}

impl ReportArgs {
    /// Checks all settings.
    pub fn settings(self) -> Result<ReportSettings, ConfigError> {
        let Self { name, journal, ledger, account, format, from, to, at, out } = self;
        let ledger = ledger.filter(|ledger| ledger != "all");
        let request = ReportRequest { report: name, ledger, account, from, to };
        request.check()?;
        if out.is_none() && format == ReportFormat::Xlsx {
            return Err(ConfigError::NoReportFolder(format.name()));
        }
        Ok(ReportSettings { journal: journal.settings()?, request, format, at, out })
    }
}

/// Reads a chart of accounts.
fn chart(file: &Path) -> Result<Chart, ConfigError> {
    let wrong = |error: String| ConfigError::Map { file: file.to_owned(), error };
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Chart::parse(&text).map_err(|error| wrong(error.to_string()))
}

impl DemoArgs {
    /// Checks all settings. The result is a sandbox without institutions and rate limits, whatever
    /// else was given. With a webhook, addresses of this machine are allowed.
    pub fn settings(mut self) -> Result<Settings, ConfigError> {
        (self.serve.rails, self.serve.rails_listen) = (None, None);
        let _unused = self.serve.take_bells()?;
        let settings = self.serve.settings()?;
        let mut webhook_allow = settings.webhook_allow;
        if self.webhook.is_some() {
            webhook_allow.extend(networks("127.0.0.0/8,::1")?);
        }
        Ok(Settings { sandbox: true, rate_limits: None, webhook_allow, ..settings })
    }
}

/// The largest number of partitions that a store gets.
pub(crate) const PARTITIONS_MAX: u16 = 64;

/// How many a new store gets where nodes divide them: enough for four. Each costs some of the speed
/// of a commit.
const PARTITIONS_OF_NODES: u16 = 16;

fn dispute_windows([chargeback_days, med_days]: [Option<NonZeroU16>; 2]) -> DisputeWindows {
    let usual = DisputeWindows::default();
    DisputeWindows {
        chargeback_days: chargeback_days.map_or(usual.chargeback_days, NonZeroU16::get),
        med_days: med_days.map_or(usual.med_days, NonZeroU16::get),
    }
}

fn partitions(asked: Option<u16>, is_node: bool) -> NonZeroU16 {
    let usual = if is_node { PARTITIONS_OF_NODES } else { 1 };
    NonZeroU16::new(asked.unwrap_or(usual)).unwrap_or(NonZeroU16::MIN)
}

fn tls_files(names: [&'static str; 2], paths: [Option<PathBuf>; 2]) -> Result<Option<TlsFiles>, ConfigError> {
    match paths {
        [Some(certificates), Some(key)] => Ok(Some(TlsFiles { certificates, key })),
        [None, None] => Ok(None),
        _ => Err(ConfigError::HalfTls(names[0], names[1])),
    }
}

fn networks(list: &str) -> Result<Vec<IpNet>, NetworkError> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty()).map(network).collect()
}

/// Reads an address to listen on: `127.0.0.1:8080`, `[::1]:8080`, a name such as `localhost:8080`,
/// or `:8080` for all addresses.
fn address(text: &str) -> Result<SocketAddr, String> {
    const EXPECTED: &str =
        "expected an address and a port, such as 127.0.0.1:8080, localhost:8080, [::1]:8080 or :8080";
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or(EXPECTED)?;
    let is_number = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let wrong_port = |_| if is_number { format!("the port {port} is not 0 to 65535") } else { EXPECTED.to_owned() };
    let port: u16 = port.parse().map_err(wrong_port)?;
    if host.is_empty() {
        return Ok(SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), port));
    }
    let found: Vec<_> =
        (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}; {EXPECTED}"))?.collect();
    // IPv4 is preferred, because the defaults are IPv4.
    let found = found.iter().find(|address| address.is_ipv4()).or(found.first()).copied();
    found.ok_or_else(|| format!("{host} has no address; {EXPECTED}"))
}

/// Checks a filter of the log. A word alone must be a level: a misspelled level would be read as
/// the name of a module, and silence all others.
fn log_filter(text: &str) -> Result<String, String> {
    let expected = |what: &str| {
        format!(
            "`{what}` is no level (off, error, warn, info, debug, trace) and no module=level, as in info,centavo=debug"
        )
    };
    let directives: Vec<_> = text.split(',').map(str::trim).collect();
    for directive in &directives {
        let level = directive.rsplit_once('=').map_or(*directive, |(_, level)| level);
        if !["off", "error", "warn", "info", "debug", "trace"].contains(&level.to_ascii_lowercase().as_str()) {
            return Err(expected(directive));
        }
    }
    let filter = directives.join(",");
    EnvFilter::try_new(&filter).map_err(|error| error.to_string())?;
    Ok(filter)
}

/// A cut: the last Record, or `0=42,1=17`, the last one of each partition.
fn cut(text: &str) -> Result<Cut, String> {
    let cut = match text.parse::<u64>() {
        Ok(last) if last < u64::MAX => Ok(Cut::new(vec![Sequence(last)])),
        _ => text.parse::<Cut>().map_err(|error| error.to_string()),
    };
    cut.and_then(|cut| if cut.is_empty() { Err("no Record counts".to_owned()) } else { Ok(cut) })
}

/// The last Record of each partition that an operator counts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRecords(BTreeMap<Partition, Sequence>);

/// Reads `42`, or `0=42,1=17`; 0 is no Record.
fn last_records(text: &str) -> Result<LastRecords, String> {
    let one = |text: &str| {
        let (partition, record) = text.split_once('=').unwrap_or(("0", text));
        Some((Partition(partition.parse().ok()?), Sequence(record.parse().ok()?)))
    };
    let records: Option<_> = text.split(',').map(one).collect();
    records.map(LastRecords).ok_or_else(|| "the last Records are written like 42, or 0=42,1=17".to_owned())
}

fn date(text: &str) -> Result<NaiveDate, &'static str> {
    day(text).ok_or("a day is written like 2026-07-01")
}

fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::from(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use crate::named_rails::settings::TABLES;

    use super::*;

    fn serve(flags: &[&str]) -> ServeArgs {
        match Args::try_parse_from(["centavo", "serve"].iter().chain(flags)).unwrap().command {
            Command::Serve { args, .. } => args,
            command => panic!("{command:?}"),
        }
    }

    fn with_file(toml: &str, flags: &[&str]) -> Result<Settings, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(toml.as_bytes()).unwrap();
        let typed = ["centavo", "serve", "--config", file.path().to_str().unwrap()];
        let typed: Vec<_> = typed.iter().chain(flags).map(|word| (*word).to_owned()).collect();
        match parse(program(), &typed) {
            Ok(Arguments { args: Args { command: Command::Serve { args, .. } }, .. }) => {
                args.settings().map_err(|error| error.to_string())
            }
            Ok(other) => panic!("{:?}", other.args),
            Err(ArgumentsError::File(error)) => Err(error.to_string()),
            Err(ArgumentsError::Typed(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn an_error_names_what_the_person_wrote() {
        let name = "CENTAVO_LISTEN";
        let wrong = || Args::command().try_get_matches_from(["centavo", "serve", "--listen", "here"]).unwrap_err();
        let said = |typed: &[&str]| {
            let typed: Vec<_> = typed.iter().map(|word| (*word).to_owned()).collect();
            named_as_written(wrong(), &Args::command(), &typed).to_string()
        };
        for typed in [&["--listen", "here"][..], &["--listen=here"], &[]] {
            assert!(said(typed).contains("'--listen <ADDRESS:PORT>'") && !said(typed).contains(name), "{typed:?}");
        }
    }

    #[test]
    fn variables_whose_values_are_hidden_leave_the_environment() {
        let mut hidden = vec!["CENTAVO_MASTER_KEY".to_owned()];
        let mut command = Args::command();
        command.build();
        for arg in command.get_subcommands().flat_map(clap::Command::get_arguments) {
            let name = arg.get_env().filter(|_| arg.is_hide_env_values_set());
            hidden.extend(name.map(|name| name.to_str().unwrap().to_owned()));
        }
        hidden.sort();
        hidden.dedup();
        let mut secrets = privacy::SECRETS.to_vec();
        secrets.sort_unstable();
        assert_eq!(hidden, secrets);
    }

    #[test]
    fn nothing_given_means_the_defaults() {
        let settings = ServeArgs::default().settings().unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(settings.ops_listen.to_string(), "127.0.0.1:8081");
        assert_eq!(settings.data, Path::new("./data"));
        assert!(!settings.store.is_postgres());
        assert_eq!(
            (settings.sandbox, settings.rate_limits.is_some(), settings.log_format),
            (false, true, LogFormat::Text)
        );
        assert!(settings.webhook_allow.is_empty());
        assert_eq!((settings.sandbox_folder(), settings.shares_sandbox()), (PathBuf::from("./data/sandbox"), false));
        assert_eq!((settings.ops_token, settings.master_key), (SecretSource::Data, SecretSource::Data));
        let to = Place::Own("./data/checkpoints".into());
        assert_eq!(settings.checkpoints, Some(CheckpointSchedule { to, every: Duration::from_secs(3_600) }));
    }

    #[test]
    fn checkpoints_stand_in_the_data_folder_unless_told_otherwise() {
        let of = |to: Option<&str>, every| checkpoint_schedule(to.map(str::to_owned), every, Path::new("/srv/books"));
        let hourly = Duration::from_secs(3_600);
        for (to, every, expected) in [
            (None, None, Some((Place::Own("/srv/books/checkpoints".into()), hourly))),
            (None, Some(2), Some((Place::Own("/srv/books/checkpoints".into()), hourly / 30))),
            (Some("/mnt/auditor"), None, Some((Place::Folder("/mnt/auditor".into()), hourly))),
            (Some("./off"), None, Some((Place::Folder("./off".into()), hourly))),
            (Some("off"), None, None),
        ] {
            let expected = expected.map(|(to, every)| CheckpointSchedule { to, every });
            assert_eq!(of(to, every).unwrap(), expected, "{to:?}");
        }
        assert!(of(Some("ftp://a"), None).is_err());
    }

    #[test]
    fn flags_come_before_the_file() {
        let toml = "
            listen = '0.0.0.0:9000'
            data = '/srv/books'
            ops_token = 'ana:one-token-of-ana-with-32-characters'
            ops_roles = 'ana=admin'
            sandbox = 'on'
            master_key = '00'
            log = 'warn,centavo=debug'
            webhook_allow = '10.0.0.0/8, ::1'
            rate_limit = 'off'
            log_format = 'json'
        ";
        let settings = with_file(toml, &[]).unwrap();
        assert_eq!(settings.listen.to_string(), "0.0.0.0:9000");
        assert_eq!(settings.data, Path::new("/srv/books"));
        assert_eq!(
            (settings.sandbox, settings.rate_limits.is_some(), settings.log_format),
            (true, false, LogFormat::Json)
        );
        assert_eq!(settings.webhook_allow.len(), 2);
        assert_eq!(settings.log.as_deref(), Some("warn,centavo=debug"));
        assert_eq!(settings.master_key, SecretSource::Text("00".to_owned().into()));
        assert_eq!(settings.ops_token, SecretSource::Text("ana:one-token-of-ana-with-32-characters".to_owned().into()));

        let flags = ["--listen", "127.0.0.1:1", "--sandbox", "off", "--rate-limit", "on", "--log-format", "text"];
        let settings = with_file(toml, &flags).unwrap();
        assert_eq!(settings.listen.to_string(), "127.0.0.1:1");
        assert_eq!(settings.data, Path::new("/srv/books"));
        assert_eq!(
            (settings.sandbox, settings.rate_limits.is_some(), settings.log_format),
            (false, true, LogFormat::Text)
        );
    }

    #[test]
    fn a_flag_of_a_secret_comes_before_both_its_names_in_the_file() {
        let token = "ana:one-token-of-ana-with-32-characters";
        let toml = format!("ops_token = '{token}'\nmaster_key = '00'\nstore_file = 'database'");
        let flags = ["--ops-token-file", "tokens", "--master-key-file", "key", "--store", "sled"];
        let settings = with_file(&toml, &flags).unwrap();
        assert_eq!(settings.ops_token, SecretSource::File("tokens".into()));
        assert_eq!(settings.master_key, SecretSource::File("key".into()));
        assert_eq!(settings.store.place(), "sled");
    }

    #[test]
    fn other_processes_are_served_where_they_are_said_to_be() {
        let toml = "store = 'postgres://db/books'\npeer_listen = ':8082'\npeer_address = 'node-1.internal:8082'\n\
                    peer_tls_cert = 'chain.pem'\npeer_tls_key = 'key.pem'";
        let peers = with_file(toml, &["--peer-tls-ca", "ca.pem"]).unwrap().peers.unwrap();
        assert_eq!(
            (peers.listen.to_string().as_str(), peers.address.as_str()),
            ("0.0.0.0:8082", "node-1.internal:8082")
        );
        let tls = peers.tls.unwrap();
        assert_eq!((tls.own.key.as_path(), tls.authority.as_path()), (Path::new("key.pem"), Path::new("ca.pem")));
        assert!(ServeArgs::default().settings().unwrap().peers.is_none());
    }

    /// An institution as a table.
    fn table(name: &str) -> String {
        format!(
            "[rail.{name}]\nkind = 'api_pix'\ndialect = 'bacen'\nurl = 'http://127.0.0.1:9'\n\
             token_url = 'http://127.0.0.1:9/token'\nclient_id = 'shop'\nclient_secret_file = 'secret'\nkey = 'k'\n"
        )
    }

    #[test]
    fn institutions_stand_in_tables_of_the_file() {
        let listener = "rails_listen = ':8083'\nrails_path_secret_file = 'path-secret'\n";
        let toml = format!("{listener}[rails]\npix = 'itau'\n{}{}", table("bb"), table("itau"));
        let settings = with_file(&toml, &[]).unwrap();
        let rails = settings.rails.unwrap();
        assert_eq!(rails.current.pix.unwrap().as_str(), "itau");
        let lines: Vec<_> = rails.by_name.iter().map(|(name, rail)| (name.as_str(), rail.line)).collect();
        assert_eq!((rails.line, lines), (3, vec![("bb", 5), ("itau", 13)]));
        let bells = settings.bells.unwrap();
        assert_eq!((bells.listen.port(), bells.tls, bells.client_authority), (8083, None, None));
        assert_eq!(bells.path_secret.as_deref(), Some(Path::new("path-secret")));
        let callback = format!("{listener}{}callback_url = 'https://pay.example.com:8443/secret/bb'\n", table("bb"));
        let rails = with_file(&callback, &[]).unwrap().rails.unwrap();
        let urls: Vec<_> = rails.by_name.values().map(|rail| rail.callback_url.as_deref()).collect();
        assert_eq!(urls, [Some("https://pay.example.com:8443/secret/bb")]);
        // Those of earlier charges alone, and other spellings of TOML.
        assert!(with_file(&table("bb"), &[]).unwrap().rails.unwrap().current.pix.is_none());
        let inline = "rail.b_2 = {kind = 'api_pix', dialect = 'efi', client_id = 'a', key = 'k'}\nrails.pix = 'b_2'";
        assert_eq!(with_file(inline, &[]).unwrap().rails.unwrap().current.pix.unwrap().as_str(), "b_2");
        assert!(with_file("data = '/srv'", &[]).unwrap().rails.is_none());
        assert!(with_file("[rails]", &[]).unwrap().rails.unwrap().by_name.is_empty());
        let demo = ["demo", "--rails-listen", "127.0.0.1:9"];
        let Command::Demo(demo) = Args::try_parse_from(["centavo"].iter().chain(&demo)).unwrap().command else {
            panic!("another command")
        };
        assert!(demo.settings().unwrap().bells.is_none());
    }

    #[test]
    fn a_wrong_table_is_named_with_its_line_and_without_its_values() {
        let one = |line: &str| format!("{}{line}\n", table("itau"));
        let cases = [
            ("[rails]\npix = 'itau'".to_owned(), "at line 2: rails.pix: there is no table [rail.itau]"),
            ("[rails]\npix = 'It au'".to_owned(), "at line 2: rails.pix: a name is 1 to 16 small letters"),
            ("[rails]\npix = 7".to_owned(), "at line 2: rails.pix: a name is"),
            ("\n[rails]\ncard = 'adyen'".to_owned(), "at line 3: rails.card: there is no table [rail.adyen]"),
            (
                format!("[rails]\npayout = 'bb'\n{}", table("bb")),
                "at line 2: rails.payout: the kind of [rail.bb] can't be the payout rail",
            ),
            ("[rails]\npics = 'efi'".to_owned(), "at line 2: rails: unknown field `pics`, expected `card`"),
            ("rails = 'itau'".to_owned(), "at line 1: rails: expected a table"),
            ("rail = 'itau'".to_owned(), "at line 1: rail: expected a table"),
            ("rail.itau = 'tesouro'".to_owned(), "at line 1: rail.itau: expected a table"),
            ("[[rail.itau]]\nkind = 'api_pix'".to_owned(), "rail.itau: expected a table"),
            ("[rail.Itau]\nkind = 'api_pix'".to_owned(), "at line 1: rail: a name is 1 to 16 small letters"),
            ("[rail.itau]\nkey = 'k'".to_owned(), "at line 1: rail.itau.kind: expected one of api_pix, efi, http"),
            (
                "[rail.itau]\nkey = 'k'\nkind = 'tesouro'".to_owned(),
                "at line 3: rail.itau.kind: expected one of api_pix, efi, http",
            ),
            ("[rail.itau]\nkind = 'api_pix'".to_owned(), "at line 1: rail.itau: missing field `dialect`"),
            (one("client_secret = 'tesouro'"), "at line 9: rail.itau: unknown field `client_secret`"),
            (one("scope = 7"), "at line 9: rail.itau.scope: expected "),
            (one("headers = 'tesouro'"), "at line 9: rail.itau.headers: expected a map"),
            (one("headers = {x = 7}"), "at line 9: rail.itau.headers: expected "),
            (one("").replace("'bacen'", "'tesouro'"), "at line 3: rail.itau.dialect: expected "),
            (one("callback_url = 'http://tesouro'"), "at line 9: rail.itau.callback_url: expected https://HOST"),
            (one("callback_url = 'https://tesouro/'"), "at line 9: rail.itau.callback_url: expected https://HOST"),
            (one("callback_url = 7"), "at line 9: rail.itau.callback_url: expected https://HOST"),
        ];
        for (toml, reason) in cases {
            let error = with_file(&toml, &[]).unwrap_err();
            assert!(error.contains(reason) && error.contains("the configuration file /"), "{error} for {reason}");
            assert!(!error.contains("tesouro"), "{error}");
        }
    }

    #[test]
    fn institutions_and_their_listener_are_refused_where_they_make_no_sense() {
        let rail = table("itau");
        let guard = ["--rails-path-secret-file", "s"];
        let listen = ["--rails-listen", "127.0.0.1:8083"];
        let (cert, key) = (["--rails-tls-cert", "c"], ["--rails-tls-key", "k"]);
        let both = [listen, guard].concat();
        let ringing = format!("{rail}callback_url = 'https://a.example/x'");
        let cases: [(&str, &[&str], &str); 11] = [
            (&ringing, &[], "at line 1: rail.itau.callback_url has no meaning without CENTAVO_RAILS_LISTEN"),
            (&rail, &["--sandbox"], "at line 1: a sandbox plays the institutions"),
            ("\n[rails]", &["--sandbox"], "at line 2: a sandbox plays the institutions"),
            (&rail, &listen, "CENTAVO_RAILS_LISTEN: anybody could call there: set CENTAVO_RAILS_TLS_CLIENT_CA"),
            (&rail, &[listen, cert, key].concat(), "anybody could call there"),
            (
                &rail,
                &[&listen[..], &["--rails-tls-client-ca", "a"]].concat(),
                "has no meaning without CENTAVO_RAILS_TLS_CERT",
            ),
            (&rail, &[&both[..], &cert].concat(), "CENTAVO_RAILS_TLS_CERT and CENTAVO_RAILS_TLS_KEY belong together"),
            (&rail, &guard, "CENTAVO_RAILS_PATH_SECRET_FILE has no meaning without CENTAVO_RAILS_LISTEN"),
            (
                &rail,
                &["--rails-tls-client-ca", "a"],
                "CENTAVO_RAILS_TLS_CLIENT_CA has no meaning without CENTAVO_RAILS_LISTEN",
            ),
            ("", &both, "CENTAVO_RAILS_LISTEN has no meaning without an institution"),
            (&rail, &[&both[..], &["--listen", "127.0.0.1:8083"]].concat(), "can't share the address 127.0.0.1:8083"),
        ];
        for (toml, flags, reason) in cases {
            let error = with_file(toml, flags).unwrap_err();
            assert!(error.contains(reason), "{error} for {reason}");
        }
        assert!(with_file(&rail, &["--store", "postgres://db/books"]).is_ok(), "one process");
    }

    #[test]
    fn switches_have_many_spellings() {
        let cases: [(&[&str], Option<bool>); 6] = [
            (&[], None),
            (&["--sandbox"], Some(true)),
            (&["--sandbox", "1"], Some(true)),
            (&["--sandbox=true"], Some(true)),
            (&["--sandbox=0"], Some(false)),
            (&["--sandbox", "off"], Some(false)),
        ];
        for (flags, sandbox) in cases {
            assert_eq!(serve(flags).sandbox, sandbox, "{flags:?}");
        }
        assert_eq!(serve(&["--rate-limit", "off"]).rate_limit, Some(false));
        assert!(Args::try_parse_from(["centavo", "serve", "--sandbox", "maybe"]).is_err());
    }

    #[test]
    fn a_sandbox_that_others_may_have_too_is_shared() {
        let database = "store = 'postgres://db/books'\ndata = '/srv/books'";
        let cases: [(&str, &[&str], &str, bool); 4] = [
            (database, &[], "/srv/books/sandbox", true),
            (database, &["--sandbox-dir", "/shared"], "/shared", true),
            ("sandbox_dir = '/shared'", &[], "/shared", true),
            ("sandbox_dir = '/shared'", &["--sandbox-dir", "/other"], "/other", true),
        ];
        for (toml, flags, folder, is_shared) in cases {
            let settings = with_file(toml, flags).unwrap();
            assert_eq!((settings.sandbox_folder(), settings.shares_sandbox()), (PathBuf::from(folder), is_shared));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let cases: [(&str, &[&str], &str); 29] = [
            ("", &["--peer-listen", "127.0.0.1:9"], "CENTAVO_PEER_LISTEN wants a PostgreSQL store"),
            ("peer_tls_cert = 'a'", &[], "CENTAVO_PEER_TLS_CERT has no meaning without CENTAVO_PEER_LISTEN"),
            ("store = 'postgres://db/books'\npeer_listen = ':8082'", &[], "card numbers pass there"),
            (
                "store = 'postgres://db/books'",
                &["--peer-listen", "127.0.0.1:8081"],
                "can't share the address 127.0.0.1:8081",
            ),
            ("ops_roles = 'operator=root'", &[], "a role is read, decide or admin"),
            (
                "",
                &["--ops-token", "ana:one-token-of-ana-with-32-characters", "--ops-roles", "ana=admin,rui=read"],
                "names rui, who has no token",
            ),
            ("ops_token = 'a'\nops_token_file = 'b'", &[], "CENTAVO_OPS_TOKEN and CENTAVO_OPS_TOKEN_FILE are both set"),
            ("master_key = 'a'\nmaster_key_file = 'b'", &[], "CENTAVO_MASTER_KEY and CENTAVO_MASTER_KEY_FILE are both"),
            ("", &["--store", "postgres://db:port/books"], "the address of the database (CENTAVO_STORE) is wrong"),
            ("store = 'postgresql://db/books'\npostgres_allow = 'all'", &[], "`all` is neither fsync_off nor"),
            ("store = 'a'\nstore_file = 'b'", &[], "CENTAVO_STORE and CENTAVO_STORE_FILE are both set"),
            ("store = 'postgres://db/books'\npostgres_takeover_seconds = 301", &[], "301 is not in 1..=300"),
            ("", &["--store", "sqlite"], "the store must be sled"),
            ("", &["--listen", "127.0.0.1:8081"], "can't share the address 127.0.0.1:8081"),
            ("", &["--ops-token", "one,two"], "each must be name:token"),
            ("", &["--ops-token", "fifteen-letters"], "at least 32 characters"),
            ("log = 'loud'", &[], "`loud` is no level"),
            ("sandbox = 'maybe'", &[], "at line 1"),
            ("", &["--webhook-allow", "10.0.0.0/99"], "`10.0.0.0/99` is not a network"),
            ("listem = '127.0.0.1:1'", &[], "at line 1: unknown field `listem`"),
            ("sandbox = true\nlisten = 'here'", &[], "at line 2"),
            ("rate_limit = 'maybe'", &[], "at line 1: rate_limit: expected true, false, \"on\" or \"off\""),
            ("card_rate_limit = 0", &[], "card_rate_limit: expected a whole number: number would be zero"),
            ("partitions = 70000", &[], "partitions: expected a whole number: 70000 is not in 1..=64"),
            ("ops_token = 12345678901234567", &[], "at line 1: ops_token: expected a text in quotation marks"),
            ("card_rate_limit = 1.6", &[], "card_rate_limit: expected a whole number"),
            ("log_format = 'xml'", &[], "log_format: expected one of text, json"),
            ("checkpoints_every = 10081", &[], "checkpoints_every: expected a whole number: 10081 is not in 1..=10080"),
            ("data = 5", &[], "data: expected a text in quotation marks"),
        ];
        for (toml, flags, reason) in cases {
            let error = with_file(toml, flags).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        let missing = ["centavo", "serve", "--config", "no/such/file.toml"].map(str::to_owned);
        let Err(ArgumentsError::File(error)) = parse(program(), &missing) else { panic!("there is no file") };
        assert!(error.to_string().contains("no/such/file.toml can't be read"), "{error}");
    }

    #[test]
    fn addresses_have_many_spellings() {
        for (text, meant) in [
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]:1", "[::1]:1"),
            ("localhost:8080", "127.0.0.1:8080"),
            (":8080", "0.0.0.0:8080"),
        ] {
            assert_eq!(serve(&["--listen", text]).listen.unwrap().to_string(), meant);
            assert_eq!(with_file(&format!("listen = '{text}'"), &[]).unwrap().listen.to_string(), meant);
        }
        for wrong in ["8080", "localhost", "localhost:", ":http", "127.0.0.1:70000", "::1:8080:x"] {
            assert!(Args::try_parse_from(["centavo", "serve", "--listen", wrong]).is_err(), "{wrong}");
        }
        for wrong in ["127.0.0.1:99999", ":65536", "[::1]:70000"] {
            let refused = Args::try_parse_from(["centavo", "serve", "--listen", wrong]).unwrap_err().to_string();
            assert!(refused.contains("is not 0 to 65535") && refused.contains("--listen"), "{refused}");
        }
    }

    #[test]
    fn a_filter_of_the_log_is_levels() {
        for filter in ["info", "WARN", "off", "info,centavo=debug", "info, ractor=warn", "actors::journal=trace"] {
            assert!(log_filter(filter).is_ok(), "{filter}");
        }
        for wrong in ["", "loud", "info,centavo", "centavo=loud", "info,,debug", "info;debug"] {
            assert!(log_filter(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn help_names_every_variable_and_nothing_that_is_not_there() {
        let help = |command: &str| {
            let mut program = program();
            program.find_subcommand_mut(command).unwrap().render_long_help().to_string()
        };
        let serve = help("serve");
        // The file's names, as it lists them itself.
        let error = with_file("nothing = 1", &[]).unwrap_err();
        let names: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(names.len() >= 13, "{error}");
        for name in names.into_iter().filter(|name| !TABLES.contains(name)) {
            let variable = format!("CENTAVO_{}", name.to_uppercase());
            assert!(serve.contains(&variable), "{variable} in {serve}");
        }
        for wrong in ["true, false", "possible values: true"] {
            assert!(!serve.contains(wrong), "{wrong} in {serve}");
        }
        assert!(serve.contains("+tax-ids"), "{serve}");
        let demo = help("demo");
        assert!(demo.contains("CENTAVO_DATA") && demo.contains("CENTAVO_MASTER_KEY"), "{demo}");
        for table in ["[rails]", "[rail.NAME]"] {
            assert!(serve.contains(table) && !demo.contains(table), "{table}");
        }
        for ignored in ["CENTAVO_SANDBOX", "CENTAVO_RATE_LIMIT", "CENTAVO_RAILS"] {
            assert!(!demo.contains(ignored), "a demonstration does not ask for {ignored}");
        }
    }

    #[test]
    fn short_help_fits_a_terminal() {
        for command in program().get_subcommands_mut() {
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= 40, "{}: {help}", command.get_name());
            let has_more = command.render_long_help().to_string().lines().count() > 40;
            assert!(!has_more || help.contains("--help"), "{}: {help}", command.get_name());
        }
    }

    #[test]
    fn tokens_are_not_debugged() {
        let args = serve(&["--ops-token", "ana:tesouro-da-ana-e-do-rui-com-32-letras", "--ops-roles", "ana=admin"]);
        assert!(!format!("{args:?}").contains("tesouro"));
        assert!(!format!("{:?}", args.settings().unwrap()).contains("tesouro"));
        let args = serve(&["--store", "postgres://ana:tesouro@db/books"]);
        assert!(!format!("{args:?}").contains("tesouro"));
        let settings = args.settings().unwrap();
        assert!(!format!("{settings:?}").contains("tesouro"));
        assert_eq!(settings.store.place(), "postgres://db:5432/books");
    }

    #[test]
    fn a_demonstration_is_always_a_sandbox() {
        let cases: [(&[&str], u32); 3] =
            [(&[], 3_000), (&["--charges", "10"], 10), (&["--sandbox=off", "--rate-limit", "on"], 3_000)];
        for (flags, charges) in cases {
            let args = Args::try_parse_from(["centavo", "demo"].iter().chain(flags)).unwrap();
            let Command::Demo(args) = args.command else { panic!("{args:?}") };
            assert_eq!(args.charges, charges);
            let settings = args.settings().unwrap();
            assert_eq!((settings.sandbox, settings.rate_limits), (true, None), "{flags:?}");
        }
    }

    #[test]
    fn a_backup_asks_the_server_as_it_is_set_up() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"data = '/srv/books'\nops_listen = '0.0.0.0:9001'\nops_token = 'ana:token-of-ana,rui:two'")
            .unwrap();
        let config = file.path().to_string_lossy().into_owned();
        let typed = ["centavo", "backup", "--out", "/srv/backup", "--config", &config].map(str::to_owned);
        let Ok(Arguments { args, .. }) = parse(program(), &typed) else { panic!("the settings are right") };
        let Command::Backup(args) = args.command else { panic!("{args:?}") };
        let settings = args.settings().unwrap();
        let BackupSettings { journal, out, .. } = settings;
        assert_eq!((journal.data.as_path(), out.as_path()), (Path::new("/srv/books"), Path::new("/srv/backup")));
        assert_eq!(journal.ops_listen.to_string(), "0.0.0.0:9001");
        assert_eq!(journal.ops_token, SecretSource::Text("ana:token-of-ana,rui:two".to_owned().into()));
        assert!(!format!("{journal:?}").contains("token-of-ana"));
        assert!(Args::try_parse_from(["centavo", "backup", "--data", "/srv/books"]).is_err(), "it must say where to");
    }

    fn export(flags: &[&str]) -> Result<Result<ExportSettings, ConfigError>, clap::Error> {
        let args = Args::try_parse_from(["centavo", "export", "--out", "books"].iter().chain(flags))?;
        let Command::Export(args) = args.command else { panic!("{args:?}") };
        Ok(args.settings())
    }

    #[test]
    fn an_export_names_a_ledger_a_format_and_days() {
        let settings = export(&["--format", "csv"]).unwrap().unwrap();
        let whole = Request { ledger: None, format: Format::Csv, from: None, to: None };
        assert_eq!((settings.request, settings.at, settings.out.as_path()), (whole, None, Path::new("books")));
        let flags =
            ["--format", "beancount", "--ledger", "M-1", "--from", "2026-07-01", "--to", "2026-07-31", "--at", "7"];
        let settings = export(&flags).unwrap().unwrap();
        assert_eq!(settings.request.file_name(), "M-1_2026-07-01_2026-07-31.beancount");
        assert_eq!(settings.at, Some(Cut::new(vec![Sequence(7)])));
    }

    #[test]
    fn an_export_that_cannot_be_made_is_refused_before_anything_is_read() {
        for (flags, expected) in [
            (&["--format", "journal-entries"][..], "journal-entries wants --map"),
            (&["--format", "journal-entries", "--map", "/nowhere.toml"], "journal-entries wants one --ledger"),
            (&["--format", "journal-entries", "--ledger", "P-all", "--map", "/nowhere.toml"], "/nowhere.toml: "),
            (&["--format", "csv", "--map", "/nowhere.toml"], "csv takes neither"),
            (&["--format", "csv", "--level", "day"], "csv takes neither"),
        ] {
            let error = export(flags).unwrap().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for format in ["hledger", "parquet", "xlsx"] {
            let error = export(&["--format", format, "--compress"]).unwrap().unwrap_err().to_string();
            assert!(error.contains(format) && error.contains("is not compressed"), "{error}");
        }
        let days = ["--format", "csv", "--from", "2026-07-02", "--to", "2026-07-01"];
        let error = export(&days).unwrap().unwrap_err().to_string();
        assert!(error.contains("no day from 2026-07-02 to 2026-07-01"), "{error}");
        for flags in
            [&["--format", "pdf"][..], &["--format", "csv", "--from", "2026-7-1"], &["--format", "csv", "--at", "0"]]
        {
            assert!(export(flags).is_err(), "{flags:?}");
        }
        assert!(Args::try_parse_from(["centavo", "export", "--format", "csv"]).is_err(), "it must say where to");
    }

    #[test]
    fn verify_takes_a_directory() {
        let args = Args::try_parse_from(["centavo", "verify", "--data", "/srv/books"]).unwrap();
        assert!(matches!(args.command, Command::Verify(VerifyArgs { data, .. }) if data == Path::new("/srv/books")));
    }
}
