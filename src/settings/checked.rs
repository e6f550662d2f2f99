//! Checked settings of a server and of the commands.

use super::args::{BellArgs, DemoArgs, ExportArgs, JournalArgs, LogFormat, ReportArgs, ServeArgs, ServerOfJournalArgs};
use super::peers::PeerSettingsError;
use super::values::LastRecords;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actors::engine::IndexOptions;
use books::export::{Chart, Level, Request};
use books::reports::{ReportFormat, ReportRequest, WrongReport};
use chrono::NaiveDate;
use ipnet::IpNet;
use ledger::{Centavos, DisputeWindows};
use store::{Cut, SledOptions};

use crate::server::checkpoints::{self, CheckpointSchedule};
use crate::server::named_rails::settings::{BellSettings, NamedRailSettings, NamedRailsError};
use crate::settings::secrets::{SecretSource, TwoSources};
use crate::settings::store_choice::{Store, StoreSettingsError};
use nodes::PeerSettings;
use web::credential::{OpsRoles, OpsTokens, OpsTokensError};
use web::guards::rate_limit::RateLimitSettings;
use web::network::{NetworkError, network};
use web::tls::TlsFiles;

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
    /// Amount above which a refund or withdrawal takes two operators; `None` if one is enough.
    pub second_operator_above: Option<Centavos>,
    /// Months for which personal data is stored after the month in which it was sealed.
    pub retention_months: u32,
    /// Company whose books these are, one line for reports; `None` if no setting says it.
    pub company: Option<String>,
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
    /// Actors that may be awake.
    pub awake_actors: usize,
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
    #[error("{}: {}", .0.display(), .1)]
    Map(PathBuf, String),
    /// The files of the format include each other by name, or are compressed already.
    #[error("{0} is not compressed: its files include each other by name, or are compressed already")]
    NotCompressed(&'static str),
    /// The first day is after the last.
    #[error("there is no day from {0} to {1}")]
    NoDays(NaiveDate, NaiveDate),
    /// Checkpoints can't be sent as they are to be.
    #[error("CENTAVO_CHECKPOINTS_TO is a folder or off, and not `{0}`")]
    Checkpoints(String),
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

pub(super) const DATA_DEFAULT: &str = "./data";

/// The schedule of checkpoints; `None` if they are switched off.
pub(super) fn checkpoint_schedule(
    to: Option<String>,
    every_minutes: u32,
    data: &Path,
) -> Result<Option<CheckpointSchedule>, ConfigError> {
    let is_own = to.is_none();
    let folder = match to {
        None => data.join(checkpoints::FOLDER),
        Some(to) if to == "off" => return Ok(None),
        Some(to) if to.is_empty() || to.contains("://") => return Err(ConfigError::Checkpoints(to)),
        Some(to) => to.into(),
    };
    Ok(Some(CheckpointSchedule { folder, is_own, every: Duration::from_secs(u64::from(every_minutes) * 60) }))
}

impl ServeArgs {
    fn sled_options(&self) -> SledOptions {
        let (segment_bytes, reserve_bytes) = (self.segment_bytes, self.disk_reserve_bytes);
        SledOptions { segment_bytes, reserve_bytes, ballast_bytes: self.ballast_bytes, ..SledOptions::default() }
    }

    /// Checks all settings.
    pub fn settings(self) -> Result<Settings, ConfigError> {
        let sled = self.sled_options();
        let Self { data, listen, ops_listen, sandbox, .. } = self;
        let accepted = self.accept_loss_after.map(|LastRecords(records)| records);
        let store = self.store.store()?.seen_in(&data, accepted);
        if listen == ops_listen && listen.port() != 0 {
            return Err(ConfigError::SharedAddress(listen));
        }
        let peers = self.peers.checked(store.is_postgres(), &[listen, ops_listen])?;
        let others: Vec<_> = [listen, ops_listen].into_iter().chain(peers.as_ref().map(|peers| peers.listen)).collect();
        let bells = self.bells.checked(self.rails.is_some(), &others)?;
        self.rails.as_ref().map_or(Ok(()), |rails| rails.fit(sandbox, bells.is_some()))?;
        let ops_token = SecretSource::given("CENTAVO_OPS_TOKEN", self.ops_token, self.ops_token_file)?;
        let ops_roles: OpsRoles = self.ops_roles.map(|roles| roles.parse()).transpose()?.unwrap_or_default();
        if let SecretSource::Text(tokens) = &ops_token {
            let _they_can_be_used = tokens.reveal().parse::<OpsTokens>()?.with_roles(&ops_roles)?;
        }
        let limits = RateLimitSettings { card: self.card_rate_limit, other: self.other_rate_limit };
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
            rate_limits: self.rate_limit.then_some(limits),
            disputes: DisputeWindows { chargeback_days: self.chargeback_days, med_days: self.med_days },
            second_operator_above: self.payout_second_operator_above.map(|limit| Centavos(limit.into())),
            retention_months: self.retention_months,
            company: self.company.filter(|company| !company.trim().is_empty()),
            checkpoints: checkpoint_schedule(self.checkpoints_to, self.checkpoints_every, &data)?,
            data,
            log_format: self.log_format,
            log: self.log,
            master_key: self.master_key.source()?,
            awake_actors: self.awake_actors as usize,
            turn_wait_max: Duration::from_millis(self.turn_wait_ms.into()),
            start_gap_max: Duration::from_secs(u64::from(self.start_gap_days) * 86_400),
            index: IndexOptions { records_per_run: self.records_per_run, ..IndexOptions::default() },
            sled,
        })
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
        self.server.journal(self.data, self.store.store()?)
    }
}

impl ServerOfJournalArgs {
    /// The settings of a journal, with those of its server.
    pub fn journal(self, data: PathBuf, store: Store) -> Result<JournalSettings, ConfigError> {
        let Self { ops_listen, ops_tls_cert, ops_token, ops_token_file } = self;
        let ops_token = SecretSource::given("CENTAVO_OPS_TOKEN", ops_token, ops_token_file)?;
        Ok(JournalSettings { data, store, ops_listen, ops_tls_cert, ops_token })
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
            return Err(ConfigError::NoDays(from, to));
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
        let Self { name, journal, ledger, account, by, format, from, to, at, out } = self;
        let ledger = ledger.filter(|ledger| ledger != "all");
        let request = ReportRequest { report: name, ledger, account, by, from, to };
        request.check()?;
        if out.is_none() && format == ReportFormat::Xlsx {
            return Err(ConfigError::NoReportFolder(format.name()));
        }
        Ok(ReportSettings { journal: journal.settings()?, request, format, at, out })
    }
}

/// Reads a chart of accounts.
pub(super) fn chart(file: &Path) -> Result<Chart, ConfigError> {
    let wrong = |error: String| ConfigError::Map(file.to_owned(), error);
    let text = std::fs::read_to_string(file).map_err(|error| wrong(error.to_string()))?;
    Chart::parse(&text).map_err(|error| wrong(error.to_string()))
}

impl DemoArgs {
    /// Checks all settings. The result is a sandbox without institutions and rate limits, whatever
    /// else was given. Webhooks may go to addresses of this machine.
    pub fn settings(mut self) -> Result<Settings, ConfigError> {
        (self.serve.rails, self.serve.bells) = (None, BellArgs::default());
        let settings = self.serve.settings()?;
        let mut webhook_allow = settings.webhook_allow;
        webhook_allow.extend(networks("127.0.0.0/8,::1")?);
        Ok(Settings { sandbox: true, rate_limits: None, webhook_allow, ..settings })
    }
}

/// The largest number of partitions that a store gets.
pub(crate) const PARTITIONS_MAX: u16 = 64;

/// How many a new store gets where nodes divide them: enough for four. Each costs some of the speed
/// of a commit.
const PARTITIONS_OF_NODES: u16 = 16;

pub(super) fn partitions(asked: Option<u16>, is_node: bool) -> NonZeroU16 {
    let usual = if is_node { PARTITIONS_OF_NODES } else { 1 };
    NonZeroU16::new(asked.unwrap_or(usual)).unwrap_or(NonZeroU16::MIN)
}

pub(crate) fn tls_files(
    names: [&'static str; 2],
    paths: [Option<PathBuf>; 2],
) -> Result<Option<TlsFiles>, ConfigError> {
    match paths {
        [Some(certificates), Some(key)] => Ok(Some(TlsFiles { certificates, key })),
        [None, None] => Ok(None),
        _ => Err(ConfigError::HalfTls(names[0], names[1])),
    }
}

pub(super) fn networks(list: &str) -> Result<Vec<IpNet>, NetworkError> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty()).map(network).collect()
}
