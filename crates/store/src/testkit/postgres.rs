//! PostgreSQL servers for tests: Debian's programs, in a folder of their own, on loopback.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The variable that makes a missing PostgreSQL an error instead of a line of text.
pub const VARIABLE: &str = "CENTAVO_POSTGRES";

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest life of a server, in seconds, should a test be killed.
/// [`LIFE_VARIABLE`] gives it another one, for tests that take longer.
const LIFE_SECONDS: &str = "1800";

/// The variable with the longest life of a server, seconds.
const LIFE_VARIABLE: &str = "CENTAVO_POSTGRES_LIFE_SECONDS";

/// The user of every server.
const USER: &str = "centavo";

/// A PostgreSQL server. It is ended when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    running: Mutex<Option<Child>>,
    databases: AtomicU32,
}

/// The folder of PostgreSQL's programs. Where there are none, it prints how to get them.
///
/// # Panics
///
/// Where there are none and [`VARIABLE`] is `required`.
pub fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|programs| programs.join("initdb").exists())
        .collect();
    found.sort();
    if found.is_empty() {
        let missing = "PostgreSQL is missing: install it (Debian: apt-get install postgresql), then run the test again";
        assert!(std::env::var(VARIABLE).as_deref() != Ok("required"), "{missing}");
        println!("NOT RUN: {missing}");
    }
    found.pop()
}

/// The server that the tests of one program share; `None` if PostgreSQL is missing.
pub fn shared() -> Option<Arc<PostgresServer>> {
    static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap();
    if let Some(server) = shared.upgrade() {
        return Some(server);
    }
    let server = Arc::new(PostgresServer::start(&programs()?, &[]));
    *shared = Arc::downgrade(&server);
    Some(server)
}

impl PostgresServer {
    /// Makes a server with these lines in its settings, and starts it.
    #[must_use]
    pub fn start(programs: &Path, settings: &[&str]) -> Self {
        let server = Self::made(programs);
        let data = server.data();
        let mut initdb = server.command("initdb");
        initdb.args(["--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-sync", "--pgdata"]).arg(&data);
        must(&mut initdb);
        server.set(settings);
        server.go_on();
        server
    }

    /// Makes a standby of this server, which follows it under a name, and starts it.
    #[must_use]
    pub fn standby(&self, name: &str) -> Self {
        let standby = Self::made(&self.programs);
        let mut copy = standby.command("pg_basebackup");
        copy.args(["--checkpoint=fast", "--write-recovery-conf", "--no-sync", "--pgdata"]).arg(standby.data());
        let source = format!("host=127.0.0.1 port={} user={USER} application_name={name}", self.port);
        must(copy.args(["--dbname", &source]));
        standby.set(&[]);
        standby.go_on();
        standby
    }

    fn made(programs: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self {
            folder,
            programs: programs.to_owned(),
            port,
            running: Mutex::default(),
            databases: AtomicU32::default(),
        };
        // The server's user is another one than root.
        fs::set_permissions(server.folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        server
    }

    /// The folder that the server's data is in.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Adds lines to the settings, which count from the next start or [`PostgresServer::reload`]
    /// on.
    pub fn set(&self, settings: &[&str]) {
        let path = self.data().join("postgresql.conf");
        let mut text = fs::read_to_string(&path).unwrap();
        let own = [
            format!("port = {}", self.port),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{}'", self.folder.path().display()),
            "max_connections = 400".to_owned(),
        ];
        for line in own.iter().map(String::as_str).chain(settings.iter().copied()) {
            text.push_str(line);
            text.push('\n');
        }
        fs::write(&path, text).unwrap();
    }

    /// Lets the running server read its settings again.
    pub fn reload(&self) {
        self.signal("HUP");
    }

    /// Starts the server, which was ended, and waits until it answers.
    pub fn go_on(&self) {
        let mut command = Command::new("timeout");
        let life = std::env::var(LIFE_VARIABLE).unwrap_or_else(|_| LIFE_SECONDS.to_owned());
        command.args(["--signal=QUIT", &life]).args(self.as_its_user()).arg(self.programs.join("postgres"));
        let log = fs::File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap();
        command.arg("-D").arg(self.data()).current_dir(self.folder.path()).stdout(Stdio::null()).stderr(log);
        *self.running.lock().unwrap() = Some(command.spawn().expect("PostgreSQL can be started"));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut ready = Command::new(self.programs.join("pg_isready"));
            ready.args(["--quiet", "--host=127.0.0.1"]).arg(format!("--port={}", self.port));
            if ready.status().is_ok_and(|status| status.success()) {
                return;
            }
            assert!(Instant::now() < deadline, "PostgreSQL does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends the server at once: nothing is flushed, its clients lose their connections.
    pub fn crash(&self) {
        self.signal("QUIT");
        self.wait();
    }

    /// Ends the server in good order.
    pub fn stop(&self) {
        self.signal("INT");
        self.wait();
    }

    /// Sends a signal to the server and all its processes.
    pub fn signal_all(&self, signal: &str) {
        let postmaster = self.postmaster();
        let children = Command::new("pgrep").args(["-P", &postmaster]).output().unwrap();
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        must(Command::new("kill").arg(format!("-{signal}")).args(children.split_whitespace()).arg(postmaster));
    }

    /// Makes a standby a primary.
    pub fn promote(&self) {
        must(self.command("pg_ctl").args(["promote", "--wait", "--pgdata"]).arg(self.data()));
    }

    fn signal(&self, signal: &str) {
        must(Command::new("kill").arg(format!("-{signal}")).arg(self.postmaster()));
    }

    fn postmaster(&self) -> String {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    fn wait(&self) {
        if let Some(mut child) = self.running.lock().unwrap().take() {
            child.wait().unwrap();
        }
    }

    /// Makes an empty database, and gives its address.
    #[must_use]
    pub fn database(&self) -> String {
        let name = format!("books{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run_in("postgres", &format!("CREATE DATABASE {name}"));
        self.address_of(&name)
    }

    /// The address of a database.
    #[must_use]
    pub fn address_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on loopback.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Starts a PgBouncer before this server, in this mode; `None` if it is missing.
    #[must_use]
    pub fn pooler(&self, mode: &str) -> Option<Pooler> {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let settings = folder.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={USER}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nauth_type = any\npool_mode = {mode}\nunix_socket_dir =\n\
             ignore_startup_parameters = extra_float_digits\n",
            self.port
        );
        fs::write(&settings, text).unwrap();
        let mut command = Command::new("pgbouncer");
        if is_root() {
            command.args(["--user", "postgres"]);
        }
        let Ok(running) = command.arg(settings).stdout(Stdio::null()).stderr(Stdio::null()).spawn() else {
            println!("NOT RUN: PgBouncer is missing");
            return None;
        };
        let pooler = Pooler { running, port, _folder: folder };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "PgBouncer does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Some(pooler)
    }

    /// Runs a statement in a database, and gives what it prints, without headings.
    pub fn run_in(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "--set=ON_ERROR_STOP=1",
            "--host=127.0.0.1",
        ]);
        psql.arg(format!("--port={}", self.port)).args(["--username", USER, "--dbname", database, "--command", sql]);
        must(&mut psql)
    }

    /// The server's log.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Lets the server's user read a file of its folder, for itself alone.
    pub fn hand_over(&self, path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            must(Command::new("chown").arg("postgres").arg(path));
        }
    }

    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut words = self.as_its_user().into_iter().map(str::to_owned).map(PathBuf::from).chain([path]);
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).current_dir(self.folder.path());
        command
    }

    /// PostgreSQL refuses to run as root.
    fn as_its_user(&self) -> Vec<&'static str> {
        match is_root() {
            true => vec!["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"],
            false => Vec::new(),
        }
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.running.lock().unwrap().take() {
            // A server that was stopped by a signal goes on first.
            let postmaster = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
            if let Some(postmaster) = postmaster.lines().next() {
                for signal in ["-CONT", "-QUIT"] {
                    let _is_gone = Command::new("kill").args([signal, postmaster]).stderr(Stdio::null()).status();
                }
            }
            let _is_gone = child.wait();
        }
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs a program that must succeed, and gives what it wrote.
fn must(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error: io::Error| panic!("{:?}: {error}", command.get_program()));
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let words: Vec<&OsStr> = command.get_args().collect();
    assert!(output.status.success(), "{:?} {words:?}: {said}", command.get_program());
    said
}

/// A PgBouncer, which ends when it is dropped.
#[derive(Debug)]
pub struct Pooler {
    running: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// The address of a database through it.
    #[must_use]
    pub fn address_of(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ended_already = self.running.kill();
        let _reaped = self.running.wait();
    }
}
