//! Stores that are measured: sled in a folder, or a database of PostgreSQL. Each server of a run
//! gets a folder of its own and, on PostgreSQL, a database of its own, since a second server on one
//! database waits for the end of the first.

use std::cell::Cell;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::rc::Rc;

use store::testkit::postgres::{self, PostgresServer};

use crate::machine;

/// The variable that names a database whose server is measured.
const VARIABLE: &str = "CENTAVO_STORE";
/// The database that every server of PostgreSQL has.
const FIRST_DATABASE: &str = "postgres";
/// The name by which a standby follows.
const STANDBY: &str = "second";

/// A store, with a number of partitions.
#[derive(Clone)]
pub(crate) struct Store {
    /// Its name in the table, as it was asked for.
    pub(crate) name: String,
    /// Partitions of a server's journal; `None` if `CENTAVO_PARTITIONS` counts.
    pub(crate) partitions: Option<String>,
    databases: Option<Rc<Databases>>,
}

/// A server of PostgreSQL that gives databases.
struct Databases {
    /// The address of one that is there.
    address: String,
    psql: PathBuf,
    is_confirmed: bool,
    made: Cell<u32>,
    /// The servers that were started for this run.
    own: Vec<PostgresServer>,
}

/// An empty database. It is dropped together with this.
pub(crate) struct Database {
    /// Its address.
    pub(crate) address: String,
    /// Whether a standby confirms its commits.
    pub(crate) is_confirmed: bool,
    name: String,
    of: Rc<Databases>,
}

/// The stores of a list such as `sled,postgres:16`; without a list sled, and the database that
/// [`VARIABLE`] names. Starts the servers that they need.
pub(crate) fn named(list: Option<&str>) -> Result<Vec<Store>, String> {
    let address = std::env::var(VARIABLE).ok().filter(|store| store.starts_with("postgres"));
    let list = list.unwrap_or(if address.is_some() { "sled,postgres" } else { "sled" });
    let (mut plain, mut confirmed) = (None, None);
    let store = |name: &str| {
        let (kind, partitions) =
            name.split_once(':').map_or((name, None), |(kind, partitions)| (kind, Some(partitions)));
        let databases = match kind {
            "sled" => None,
            "postgres" => Some(started(&mut plain, || Databases::plain(address.as_deref()))?),
            "standby" => Some(started(&mut confirmed, Databases::confirmed)?),
            _ => return Err(format!("there is no store {name}; the stores are sled, postgres and standby")),
        };
        Ok(Store { name: name.to_owned(), partitions: partitions.map(str::to_owned), databases })
    };
    list.split(',').map(store).collect()
}

/// The servers that were started already, or new ones.
fn started(
    slot: &mut Option<Rc<Databases>>,
    start: impl FnOnce() -> Result<Databases, String>,
) -> Result<Rc<Databases>, String> {
    if slot.is_none() {
        *slot = Some(Rc::new(start()?));
    }
    Ok(slot.clone().expect("it was started"))
}

impl Store {
    /// Whether it is a database.
    pub(crate) fn is_postgres(&self) -> bool {
        self.databases.is_some()
    }

    /// An empty database for a server; none on sled.
    pub(crate) fn database(&self) -> Option<Database> {
        let of = self.databases.as_ref()?;
        let number = of.made.replace(of.made.get() + 1);
        let name = format!("settlement_{}_{number}", std::process::id());
        of.run(&format!("CREATE DATABASE {name}"));
        let address = beside(&of.address, &name);
        Some(Database { address, is_confirmed: of.is_confirmed, name, of: Rc::clone(of) })
    }

    /// What answers, as text; none on sled.
    pub(crate) fn release(&self) -> Option<String> {
        Some(self.databases.as_ref()?.run("SELECT version()"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.of.run(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

impl Databases {
    /// The server at an address, or a new one.
    fn plain(address: Option<&str>) -> Result<Self, String> {
        match address {
            Some(address) => Ok(Self::of(address.to_owned(), false, Vec::new())),
            None => {
                let server = PostgresServer::start(&programs()?, &[]);
                Ok(Self::of(server.address_of(FIRST_DATABASE), false, vec![server]))
            }
        }
    }

    /// A new server whose commits wait for a new standby.
    fn confirmed() -> Result<Self, String> {
        let server = PostgresServer::start(&programs()?, &[]);
        let standby = server.standby(STANDBY);
        server.set(&[&format!("synchronous_standby_names = '{STANDBY}'")]);
        server.reload();
        Ok(Self::of(server.address_of(FIRST_DATABASE), true, vec![server, standby]))
    }

    fn of(address: String, is_confirmed: bool, own: Vec<PostgresServer>) -> Self {
        let psql = postgres::programs().map_or_else(|| "psql".into(), |programs| programs.join("psql"));
        let databases = Self { address, psql, is_confirmed, made: Cell::new(0), own };
        let own = databases.own.iter().map(|server| server.address_of(FIRST_DATABASE));
        for address in own.chain([databases.address.clone()]) {
            let checkpointer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
            // A role without the right to see it gets no number.
            databases.run_in(&address, checkpointer).parse().into_iter().for_each(machine::count_postgres);
        }
        databases
    }

    /// Runs a statement, which must succeed; gives what it prints.
    fn run(&self, statement: &str) -> String {
        self.run_in(&self.address, statement)
    }

    fn run_in(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new(&self.psql);
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", statement]);
        psql.args(["--dbname", database]).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = psql.output().unwrap_or_else(|error| panic!("psql does not run: {error}"));
        assert!(output.status.success(), "PostgreSQL refuses: {statement}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

fn programs() -> Result<PathBuf, String> {
    let missing = format!("PostgreSQL is missing: install Debian's, or name a database in {VARIABLE}");
    postgres::programs().ok_or(missing)
}

/// The address of another database of the same server.
fn beside(address: &str, name: &str) -> String {
    let (place, parameters) = address.split_at(address.find('?').unwrap_or(address.len()));
    let (scheme, rest) = place.split_once("://").expect("an address");
    let host = rest.split('/').next().unwrap_or_default();
    format!("{scheme}://{host}/{name}{parameters}")
}
