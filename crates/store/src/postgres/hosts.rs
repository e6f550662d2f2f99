//! The servers that an address names, and which of them to try. One that does not answer is passed
//! over, and one that was replaced is refused: a promoted standby is on a newer *timeline* than the
//! server before it, which may come back and take writes all the same.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::address::named;

/// How what a former primary says begins.
pub(super) const FORMER: &str = "it is a former primary";

/// How long a connection to one server may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The servers of an address, for all connections of a process.
pub(super) struct Hosts {
    each: Vec<Config>,
    /// Index of the server that is tried first.
    first: AtomicUsize,
    /// The newest timeline that one of them was on.
    newest: AtomicU32,
    /// What each of them said when it was last tried; empty of one that works.
    said: Mutex<Vec<String>>,
    /// Whether one of them takes writes although it was replaced.
    has_former: AtomicBool,
}

impl Hosts {
    /// Servers of an address, in its order.
    pub(super) fn of(address: &Config) -> Self {
        let count = address.get_hosts().len();
        Self {
            each: (0..count).map(|place| only(address, place)).collect(),
            first: AtomicUsize::new(0),
            newest: AtomicU32::new(0),
            said: Mutex::new(vec![String::new(); count]),
            has_former: AtomicBool::new(false),
        }
    }

    /// The name of one of them: host and port.
    pub(super) fn name(&self, place: usize) -> String {
        let config = &self.each[place];
        let port = config.get_ports().first().copied().unwrap_or(5432);
        format!("{}:{port}", config.get_hosts().first().map(named).unwrap_or_default())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// Whether no server was admitted yet.
    pub(super) fn is_new(&self) -> bool {
        self.newest() == 0
    }

    /// Notes what one of them said when it was tried; nothing of one that works. A former primary
    /// is an error of the log, once until that changes.
    pub(super) fn note(&self, place: usize, said: &str, is_former: bool) {
        let mut all = self.said.lock();
        if is_former && all[place] != said {
            tracing::error!(
                host = self.name(place),
                said,
                "a former primary takes writes: end it, or make it a standby"
            );
        }
        said.clone_into(&mut all[place]);
        let has_former = all.iter().any(|said| said.starts_with(FORMER));
        self.has_former.store(has_former, Ordering::Release);
    }

    /// What those said that do not work, each with its name.
    pub(super) fn failures(&self) -> String {
        let all = self.said.lock();
        let failed = all.iter().enumerate().filter(|(_, said)| !said.is_empty());
        failed.map(|(place, said)| format!("{}: {said}", self.name(place))).collect::<Vec<_>>().join("; ")
    }

    /// Whether a former primary was found when the servers were last tried.
    pub(super) fn has_former(&self) -> bool {
        self.has_former.load(Ordering::Acquire)
    }

    /// All of them, that which worked last before the others, with their places.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = (usize, &Config)> {
        let first = self.first.load(Ordering::Relaxed);
        let places = (0..self.each.len()).map(move |at| (first + at) % self.each.len());
        places.map(|place| (place, &self.each[place]))
    }

    /// How long one of them is tried, where an answer may take this long.
    pub(super) fn time_of_one(&self, patience: Duration) -> Duration {
        match self.each.len() {
            1 => patience,
            // So that all of them get their turn.
            many => CONNECT_MAX.min(patience / u32::try_from(many + 1).unwrap_or(u32::MAX)),
        }
    }

    /// Notes that one of them works; false where it is on an older timeline than another one was.
    pub(super) fn admit(&self, place: usize, timeline: u32) -> bool {
        let is_newest = self.newest.fetch_max(timeline, Ordering::AcqRel) <= timeline;
        if is_newest {
            self.first.store(place, Ordering::Relaxed);
        }
        is_newest
    }

    /// The newest timeline that one of them was on; 0 where none is known.
    pub(super) fn newest(&self) -> u32 {
        self.newest.load(Ordering::Acquire)
    }

    /// Whether a connection that was made to this timeline leads to a server that was replaced.
    pub(super) fn is_former(&self, timeline: u32) -> bool {
        timeline < self.newest()
    }

    /// Notes that something failed on one of them: the next one is tried first.
    pub(super) fn suspect(&self, place: usize) {
        let next = (place + 1) % self.each.len();
        let _another_is_first = self.first.compare_exchange(place, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The address with one of its hosts alone.
fn only(address: &Config, place: usize) -> Config {
    let mut one = Config::new();
    match &address.get_hosts()[place] {
        Host::Tcp(name) => one.host(name),
        Host::Unix(path) => one.host_path(path),
    };
    if let Some(ip) = address.get_hostaddrs().get(place) {
        one.hostaddr(*ip);
    }
    if let Some(port) = address.get_ports().get(place).or(address.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = address.get_user() {
        one.user(user);
    }
    if let Some(password) = address.get_password() {
        one.password(password);
    }
    if let Some(name) = address.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = address.get_options() {
        one.options(options);
    }
    if let Some(name) = address.get_application_name() {
        one.application_name(name);
    }
    if let Some(time) = address.get_tcp_user_timeout() {
        one.tcp_user_timeout(*time);
    }
    if let Some(time) = address.get_keepalives_interval() {
        one.keepalives_interval(time);
    }
    if let Some(count) = address.get_keepalives_retries() {
        one.keepalives_retries(count);
    }
    one.keepalives(address.get_keepalives()).keepalives_idle(address.get_keepalives_idle());
    one.ssl_mode(address.get_ssl_mode()).ssl_negotiation(address.get_ssl_negotiation());
    one.connect_timeout(address.get_connect_timeout().copied().unwrap_or(CONNECT_MAX));
    one.target_session_attrs(address.get_target_session_attrs()).channel_binding(address.get_channel_binding());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(hosts: &Hosts) -> Vec<usize> {
        hosts.in_turn().map(|(place, _)| place).collect()
    }

    #[test]
    fn each_host_keeps_all_else_of_the_address() {
        let address = "postgres://ana:segredo@one:1,two:2/books?sslmode=require&connect_timeout=3&keepalives_idle=7";
        let hosts = Hosts::of(&address.parse().unwrap());
        for (place, name) in ["one:1", "two:2"].iter().enumerate() {
            let alone: Config = address.replace("one:1,two:2", name).parse().unwrap();
            assert_eq!(format!("{:?}", hosts.each[place]), format!("{alone:?}"));
            assert_eq!(hosts.each[place].get_password(), Some(b"segredo".as_slice()));
        }
        let one_port = Hosts::of(&"postgres://one,two:2/books".parse().unwrap());
        assert_eq!(one_port.each[0].get_ports(), [5432]);
    }

    #[test]
    fn the_next_is_tried_after_a_failure_and_a_former_primary_is_refused() {
        let hosts = Hosts::of(&"postgres://one,two,three/books".parse().unwrap());
        assert_eq!(places(&hosts), [0, 1, 2]);
        assert!(hosts.admit(0, 1));
        hosts.suspect(0);
        assert_eq!(places(&hosts), [1, 2, 0]);
        hosts.suspect(0);
        assert_eq!(places(&hosts), [1, 2, 0], "another one is first by now");
        assert!(hosts.admit(2, 2));
        assert_eq!(places(&hosts), [2, 0, 1]);
        assert!(!hosts.admit(0, 1) && hosts.is_former(1) && !hosts.is_former(2));
        assert_eq!(places(&hosts), [2, 0, 1]);
        assert!(hosts.admit(1, 3) && hosts.is_former(2));
    }
}
