//! Flags of the commands; then `CENTAVO_…` variables, the TOML file and defaults. The first source
//! that names a setting decides it. [`super::checked`] has the checked values.
//! The environment is not read after that.

use super::checked::{ConfigError, DATA_DEFAULT, PARTITIONS_MAX};
use super::values::{LastRecords, address, cut, date, last_records, log_filter};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use actors::engine::IndexOptions;
use books::export::{Format, Level};
use books::reports::{DayOf, Report, ReportFormat};
use chrono::NaiveDate;
use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand,
    ValueEnum,
};
use clap_complete::Shell;
use ledger::DisputeWindows;
use store::SledOptions;
use store::cut::Cut;

use crate::commands::erase::EraseArgs;
use crate::commands::listen::ListenArgs;
use crate::commands::rail_check::RailCommand;
use crate::commands::trigger::TriggerArgs;
use crate::server::named_rails::settings::NamedRailSettings;
use crate::settings::file::{SettingsFile, SettingsFileError};
use crate::settings::privacy;
use crate::settings::secrets::SecretSource;
use crate::settings::store_choice::{DatabaseArgs, StoreArgs};
use web::credential::Secret;
use web::guards::rate_limit::RateLimitSettings;

const LISTEN: &str = "127.0.0.1:8080";
const OPS_LISTEN: &str = "127.0.0.1:8081";

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
    /// Ask a server to erase personal data past its retention; two operators have to.
    Erase(EraseArgs),
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

pub(super) fn hidden_where_ignored(arg: Arg) -> Arg {
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
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// A TOML file with the same names, underscores for hyphens.
    #[arg(long, env = "CENTAVO_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where merchants call; :8080 is port 8080 of all addresses of the machine.
    #[arg(long, env = "CENTAVO_LISTEN", value_name = "ADDRESS:PORT", default_value = LISTEN, value_parser = address)]
    pub listen: SocketAddr,
    /// Where operators call.
    #[arg(long, env = "CENTAVO_OPS_LISTEN", value_name = "ADDRESS:PORT", default_value = OPS_LISTEN, value_parser = address)]
    pub ops_listen: SocketAddr,
    /// The directory of the journal.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = DATA_DEFAULT)]
    pub data: PathBuf,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// A token of 32 characters or more, or name:token,name:token [default: the file operator.token
    /// in the data directory, made once].
    #[arg(long, env = "CENTAVO_OPS_TOKEN", hide_env_values = true, value_name = "TOKENS")]
    pub ops_token: Option<Secret>,
    /// A file of what CENTAVO_OPS_TOKEN would hold. SIGHUP makes the server read it again.
    #[arg(long, env = "CENTAVO_OPS_TOKEN_FILE", value_name = "FILE")]
    pub ops_token_file: Option<PathBuf>,
    /// What each named operator may do: read, decide or admin, with +tax-ids for tax ids in reports
    /// and +reveal for registrations unmasked; a token without a name is an admin's.
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
    /// The listener for other processes.
    #[command(flatten)]
    pub peers: PeerArgs,
    /// The listener on which institutions ring.
    #[command(flatten)]
    pub bells: BellArgs,
    /// The institutions of the configuration file.
    #[arg(skip)]
    pub rails: Option<NamedRailSettings>,
    /// Play the card acquirer and the payment institution instead of calling them.
    #[arg(long, env = "CENTAVO_SANDBOX", value_name = "on|off", num_args = 0..=1, default_missing_value = "on",
          default_value = "off", action = ArgAction::Set, value_parser = BoolishValueParser::new(),
          hide_possible_values = true)]
    pub sandbox: bool,
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
    /// Whether requests per minute are limited.
    #[arg(long, env = "CENTAVO_RATE_LIMIT", value_name = "on|off", default_value = "on", action = ArgAction::Set,
          value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub rate_limit: bool,
    /// Card charges of one API key in a minute.
    #[arg(long, env = "CENTAVO_CARD_RATE_LIMIT", value_name = "NUMBER", default_value_t = RateLimitSettings::default().card)]
    pub card_rate_limit: NonZeroU32,
    /// Other requests of one API key in a minute.
    #[arg(long, env = "CENTAVO_OTHER_RATE_LIMIT", value_name = "NUMBER", default_value_t = RateLimitSettings::default().other)]
    pub other_rate_limit: NonZeroU32,
    /// Days after its payment in which a card charge can be disputed.
    #[arg(long, env = "CENTAVO_CHARGEBACK_DAYS", value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..),
          default_value_t = DisputeWindows::default().chargeback_days)]
    pub chargeback_days: u16,
    /// Days after its payment in which a PIX charge can be disputed.
    #[arg(long, env = "CENTAVO_MED_DAYS", value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..),
          default_value_t = DisputeWindows::default().med_days)]
    pub med_days: u16,
    /// Amount in centavos above which a refund or a withdrawal takes the approval of two operators
    /// [default: one is enough].
    #[arg(long, env = "CENTAVO_PAYOUT_SECOND_OPERATOR_ABOVE", value_name = "CENTAVOS")]
    pub payout_second_operator_above: Option<u32>,
    /// Months for which personal data is stored after the month in which it was sealed, 60 or more.
    #[arg(long, env = "CENTAVO_RETENTION_MONTHS", value_name = "MONTHS", default_value_t = 120,
          value_parser = clap::value_parser!(u32).range(60..=1_200))]
    pub retention_months: u32,
    /// Company whose books these are, as it stands on reports for people: name and CNPJ.
    #[arg(long, env = "CENTAVO_COMPANY", value_name = "TEXT")]
    pub company: Option<String>,
    /// How log lines look.
    #[arg(long, env = "CENTAVO_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Which log lines are written: a level, or levels by module, as in info,centavo=debug
    /// [default: info,ractor=warn; demo: warn,centavo_store=error].
    #[arg(long, env = "CENTAVO_LOG", value_name = "FILTER", value_parser = log_filter)]
    pub log: Option<String>,
    /// Free space below which no command is taken, bytes.
    #[arg(long, env = "CENTAVO_DISK_RESERVE_BYTES", value_name = "BYTES", default_value_t = SledOptions::default().reserve_bytes)]
    pub disk_reserve_bytes: u64,
    /// Days after the last Record from which on a live start waits until two operators confirm the
    /// wall clock, 1 to 3650.
    #[arg(long, env = "CENTAVO_START_GAP_DAYS", value_name = "DAYS", default_value_t = 7,
          value_parser = clap::value_parser!(u16).range(1..=3650))]
    pub start_gap_days: u16,
    /// How long a merchant's command waits for its turn under overload, before it is refused,
    /// milliseconds, up to 60000.
    #[arg(long, env = "CENTAVO_TURN_WAIT_MS", value_name = "MILLISECONDS", default_value_t = 1_000,
          value_parser = clap::value_parser!(u32).range(..=60_000))]
    pub turn_wait_ms: u32,
    /// Merchants and recipients whose ledgers are in memory; of more, those that were used least
    /// recently leave it, 1000 to 10000000.
    #[arg(long, env = "CENTAVO_AWAKE_ACTORS", value_name = "NUMBER", default_value_t = 100_000,
          value_parser = clap::value_parser!(u32).range(1_000..=10_000_000))]
    pub awake_actors: u32,
    /// A file that takes room, to be deleted when the disk is full, bytes; 0 for none.
    #[arg(long, env = "CENTAVO_BALLAST_BYTES", value_name = "BYTES", default_value_t = 64 << 20)]
    pub ballast_bytes: u64,
    /// A folder that exists, for signed checkpoints; off for none [default: the folder checkpoints
    /// in the data directory].
    #[arg(long, env = "CENTAVO_CHECKPOINTS_TO", value_name = "FOLDER|off")]
    pub checkpoints_to: Option<String>,
    /// How often, minutes, from 1 to 10080.
    #[arg(long, env = "CENTAVO_CHECKPOINTS_EVERY", value_name = "MINUTES", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=10_080))]
    pub checkpoints_every: u32,
    /// Bytes of a segment of the journal. For tests, which need many small ones.
    #[arg(long, env = "CENTAVO_SEGMENT_BYTES", hide = true, default_value_t = SledOptions::default().segment_bytes,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub segment_bytes: u64,
    /// Records of a run of the index. For tests, which need many small ones.
    #[arg(long, env = "CENTAVO_RECORDS_PER_RUN", hide = true, default_value_t = IndexOptions::default().records_per_run,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub records_per_run: u64,
}

/// Flags of the listener for other processes.
#[derive(Debug, ClapArgs)]
pub struct PeerArgs {
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
}

/// Flags of the listener on which institutions ring.
#[derive(Debug, Default, ClapArgs)]
pub struct BellArgs {
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
}

/// Place of the master key, for the commands that open what it encrypts.
#[derive(Debug, ClapArgs)]
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
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// Flags or variables are wrong, or help was asked for.
    #[error(transparent)]
    Typed(#[from] clap::Error),
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] SettingsFileError),
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

pub(super) fn parse(command: clap::Command, typed: &[String]) -> Result<Arguments, ArgumentsError> {
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

pub(super) fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &Arg| {
        let value = arg.get_env().and_then(std::env::var_os);
        value.is_some_and(|value| value.is_empty())
    };
    let command = command.mut_args(|arg| if is_empty(&arg) { arg.env(None::<&'static str>) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

/// The secrets that are no longer in the environment count where no flag gives one.
pub(super) fn with_handed_variables(command: clap::Command) -> clap::Command {
    let handed = |arg: &Arg| arg.get_env().and_then(|name| privacy::handed(name.to_str()?));
    let command = command.mut_args(|arg| match handed(&arg) {
        Some(value) => arg.default_value(value).hide_default_value(true),
        None => arg,
    });
    command.mut_subcommands(with_handed_variables)
}

/// The error of a value, with the name of the variable that has the value.
pub(super) fn named_as_written(mut error: clap::Error, command: &clap::Command, typed: &[String]) -> clap::Error {
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
    /// The directory of the journal.
    #[arg(long, env = "CENTAVO_DATA", value_name = "DIR", default_value = DATA_DEFAULT)]
    pub data: PathBuf,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The server.
    #[command(flatten)]
    pub server: ServerOfJournalArgs,
}

/// Flags that find the server of a journal.
#[derive(Debug, ClapArgs)]
pub struct ServerOfJournalArgs {
    /// Where a server that has the data open is called by operators.
    #[arg(long, env = "CENTAVO_OPS_LISTEN", value_name = "ADDRESS:PORT", default_value = OPS_LISTEN, value_parser = address)]
    pub ops_listen: SocketAddr,
    /// The certificate chain of its operators' listener, where that speaks TLS.
    #[arg(long, env = "CENTAVO_OPS_TLS_CERT", value_name = "FILE")]
    pub ops_tls_cert: Option<PathBuf>,
    /// The server's token, or name:token,name:token, of which the first is used.
    #[arg(long, env = "CENTAVO_OPS_TOKEN", hide_env_values = true, value_name = "TOKENS")]
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
    /// Which day of a Record counts: that of its booking, or of its effect (trial-balance,
    /// general-ledger).
    #[arg(long, value_enum, default_value = "booking")]
    pub by: DayOf,
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
    #[arg(long, value_name = "DIR|URL")]
    pub from: Option<Secret>,
    /// A file of what --from would hold, since a command line can be read by others.
    #[arg(long, value_name = "FILE")]
    pub from_file: Option<PathBuf>,
    /// Where the books move to: a directory to make, or an empty database.
    #[arg(long, value_name = "DIR|URL")]
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
    /// Check the Records of a server that has the data open: it sends its journal, as for a backup.
    /// Snapshots, index, the readers' view and balance files are left out.
    #[arg(long)]
    pub live: bool,
    /// The server.
    #[command(flatten)]
    pub server: ServerOfJournalArgs,
}

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}
