//! Choice of the store: the embedded one in the data directory, or a PostgreSQL database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args as ClapArgs};
use derived::extents::{ExtentError, Extents};
use store::place_stamps::{admit_reading, stamp_filling};
use store::{
    Epoch, OwnerWatch, Part, Partition, PostgresAddress, PostgresDemands, PostgresOptions, PostgresStore, Sequence,
    SledOptions, SledStore, StoreError, TAKEOVER,
};

use crate::commands::terminal;
use crate::settings::secrets::{SecretError, SecretSource, TwoSources};
use web::credential::Secret;

/// The partition that this release keeps everything in.
const PARTITION: Partition = Partition(0);

/// Flags of the store, for every command that opens one.
#[derive(Debug, ClapArgs)]
pub struct StoreArgs {
    /// What keeps the journal: sled, in the data directory, or a database as
    /// postgres://user:password@host/database [default: sled].
    #[arg(long, env = "CENTAVO_STORE", hide_env_values = true, value_name = "sled|URL")]
    pub store: Option<Secret>,
    /// A file of what CENTAVO_STORE would hold.
    #[arg(long, env = "CENTAVO_STORE_FILE", value_name = "FILE")]
    pub store_file: Option<PathBuf>,
    /// What is special to a database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// Flags of a database.
#[derive(Debug, ClapArgs)]
pub struct DatabaseArgs {
    /// Seconds without a sign of life after which another process takes the database over; of two
    /// processes that differ the longer time counts.
    #[arg(long, env = "CENTAVO_POSTGRES_TAKEOVER_SECONDS", value_name = "SECONDS", default_value_t = TAKEOVER.as_secs() as u16,
          value_parser = clap::value_parser!(u16).range(1..=300))]
    pub postgres_takeover_seconds: u16,
    /// Whether a standby must confirm every commit; the database is refused where none does.
    #[arg(long, env = "CENTAVO_POSTGRES_STANDBY", value_name = "on|off", default_value = "off", action = ArgAction::Set,
          value_parser = BoolishValueParser::new(), hide_possible_values = true)]
    pub postgres_standby: bool,
    /// Settings of the database to accept although it can lose what it acknowledged:
    /// fsync_off, full_page_writes_off.
    #[arg(long, env = "CENTAVO_POSTGRES_ALLOW", value_name = "NAME,NAME")]
    pub postgres_allow: Option<String>,
}

/// Why the settings of the store are refused.
#[derive(Debug, thiserror::Error)]
pub enum StoreSettingsError {
    /// The name of the store is unknown.
    #[error("the store must be sled, or an address that begins with postgres://")]
    Unknown,
    /// The address of a database can't be read. The message does not repeat it, since it may hold a
    /// password.
    #[error("the address of the database (CENTAVO_STORE) is wrong: {0}")]
    Address(String),
    /// Something is to be accepted that has no such name.
    #[error("CENTAVO_POSTGRES_ALLOW: `{0}` is neither fsync_off nor full_page_writes_off")]
    Allow(String),
    /// The address is given as a text and as a file.
    #[error(transparent)]
    TwoSources(#[from] TwoSources),
    /// The file of the address can't be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// Store of the journal.
#[derive(Debug, Clone)]
pub enum Store {
    /// The embedded store, in the data directory.
    Sled,
    /// A database.
    Postgres(Box<PostgresOptions>),
}

impl Store {
    /// Whether it is a database, which other processes may have too.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Store::Postgres(_))
    }

    /// The store with what a server keeps of a database in its data folder, and with the loss that
    /// an operator accepts.
    #[must_use]
    pub(crate) fn seen_in(mut self, data: &Path, accepted: Option<BTreeMap<Partition, Sequence>>) -> Self {
        if let Store::Postgres(options) = &mut self {
            (options.seen_in, options.accept_loss_after) = (Some(data.to_owned()), accepted);
        }
        self
    }

    /// What it is, without a password.
    pub fn place(&self) -> &str {
        match self {
            Store::Sled => "sled",
            Store::Postgres(options) => options.address.place(),
        }
    }
}

impl StoreArgs {
    /// Checks the settings; sled, where they name no store.
    pub fn store(self) -> Result<Store, StoreSettingsError> {
        let named = match SecretSource::given("CENTAVO_STORE", self.store, self.store_file)? {
            SecretSource::Data => return Ok(Store::Sled),
            source => source.read("".as_ref(), "")?.unwrap_or_else(|| Secret::from(String::new())),
        };
        if named.reveal() == "sled" {
            return Ok(Store::Sled);
        }
        if !is_address(named.reveal()) {
            return Err(StoreSettingsError::Unknown);
        }
        Ok(Store::Postgres(Box::new(self.database.options(named.reveal())?)))
    }
}

/// Whether a text is the address of a database, rather than a folder.
pub(crate) fn is_address(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

impl DatabaseArgs {
    /// How the database at an address is opened.
    pub(crate) fn options(&self, address: &str) -> Result<PostgresOptions, StoreSettingsError> {
        let address = PostgresAddress::parse(address).map_err(StoreSettingsError::Address)?;
        let mut demands = PostgresDemands { standby: self.postgres_standby, ..PostgresDemands::default() };
        let allowed = self.postgres_allow.as_deref().unwrap_or_default();
        for name in allowed.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "fsync_off" => demands.allows_fsync_off = true,
                "full_page_writes_off" => demands.allows_full_page_writes_off = true,
                _ => return Err(StoreSettingsError::Allow(name.to_owned())),
            }
        }
        let takeover = Duration::from_secs(self.postgres_takeover_seconds.into());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let about = format!("{} on {}, process {}", env!("CARGO_PKG_VERSION"), host.trim(), std::process::id());
        Ok(PostgresOptions { takeover, demands, about, ..PostgresOptions::at(address) })
    }
}

/// All partitions of a database as it is now, for a command that only reads.
pub(crate) fn snapshot(options: &PostgresOptions) -> Result<Vec<Part>, ExtentError> {
    let store = PostgresStore::open_snapshot(options)?;
    if options.address.has_several_hosts() {
        terminal::note(&format!("centavo: reading from {}", store.read_from()?));
    }
    let store: Arc<dyn store::Store> = Arc::new(store);
    admit_reading(&*store)?;
    Extents::parts_of(&store)
}

/// All partitions of a data folder that no other process has open, for a command that only reads.
pub(crate) fn folder(data: &Path, options: &SledOptions) -> Result<Vec<Part>, ExtentError> {
    let store: Arc<dyn store::Store> = Arc::new(SledStore::open_existing(data, options)?);
    Extents::parts_of(&store)
}

/// A database without a journal, for a command that fills it: it is stamped with the name of that
/// command until it is whole. `None` if there is something.
pub(crate) fn open_empty(
    options: &PostgresOptions,
    command: &str,
) -> Result<Option<Arc<dyn store::Store>>, StoreError> {
    let store = Arc::new(PostgresStore::open(options)?);
    if store.look(&mut OwnerWatch::default(), PARTITION)? != Some(Epoch::NONE) {
        return Ok(None);
    }
    if stamp_filling(&*store, command)? != command {
        return Ok(None);
    }
    Ok(Some(store))
}
