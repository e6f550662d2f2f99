//! Servers of tests as nodes: where `CENTAVO_TEST_NODES` is 2, a world's server shares a PostgreSQL
//! database and its partitions with another server, which nobody talks to.

use std::cell::RefCell;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::cluster::weight;
use actors::rails::{
    Call, PayoutAnswer, PayoutRail, PixFate, PixRail, Rails, Repay, RepayAnswer, SendPayout, UnpayableAccount,
};
use centavo::server::{self, RunningServer, StartError};
use centavo::settings::checked::Settings;
use ledger::event::PayoutBank;
use ledger::id::ObjectId;
use ledger::money::Centavos;
use ledger::personal::BankAccount;
use ledger::record::RailStamp;
use ledger::time::Timestamp;
use nodes::node::Node;
use nodes::{Owner, Owners, PeerSettings};
use store::Partition;
use store::testkit::postgres::{PostgresServer, shared};

/// The other node's data folder, in that of the first one.
pub(crate) const OTHER: &str = "other-node";

/// How many partitions the nodes divide, where nothing else is said.
pub(crate) const PARTITIONS: u16 = 8;

/// Time after which a node that gives no sign of life is gone.
pub(crate) const TAKEOVER_SECONDS: u16 = 6;

/// How long nodes may take to divide the partitions.
const PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    /// The database server of a test, which lives until its thread ends: also between two servers
    /// on the same books.
    static DATABASE: RefCell<Option<Arc<PostgresServer>>> = const { RefCell::new(None) };
}

const FOLDER: &str = "it reads, changes or fills files of the data folder, where a database has none";

const METRICS: &str = "it reads what one process measured, and either may have answered";
const PARTITIONS_HERE: &str = "they are about several partitions in one process";

/// Tests, and modules, whose servers are alone in any case, and why.
const ALONE: &[(&str, &str)] = &[
    ("books::balance_file_starts::a_beginning_at_a_balance_file_changes_no_byte", FOLDER),
    ("books::imported::json_lines_in_an_empty_store_come_to_the_same_trial_balance", FOLDER),
    ("books::same_bytes::days_that_are_over_have_the_same_bytes_for_ever", FOLDER),
    ("lifecycle::people_and_cards_stand_nowhere_in_the_clear", FOLDER),
    ("search::a_month_without_a_key_is_not_found", FOLDER),
    ("monitoring::", METRICS),
    ("operations::a_store_that_stands_still_is_not_ready", METRICS),
    ("operations::health_and_metrics_need_no_credential", METRICS),
    ("partitions::", PARTITIONS_HERE),
    ("closed_periods::a_damaged_balance_file_is_made_again_and_read_at_once", FOLDER),
    ("tls::a_command_reads_the_journal_of_a_server_over_tls", FOLDER),
    ("misbehaving_clients::guessing_is_slowed_down_and_refused_and_who_is_right_passes", METRICS),
];

/// Whether servers are nodes: not in a test that has its server alone.
pub(crate) fn are_nodes() -> bool {
    let is_wanted = std::env::var("CENTAVO_TEST_NODES").is_ok_and(|count| {
        assert!(count == "2" || count == "1", "CENTAVO_TEST_NODES is 1 or 2");
        count == "2"
    });
    is_wanted && why_alone(&test()).is_none()
}

/// Name of the test that this thread runs.
fn test() -> String {
    let thread = std::thread::current();
    let name = thread.name().filter(|name| *name != "main");
    name.expect("CENTAVO_TEST_NODES needs a thread for each test: --test-threads=2 or more").to_owned()
}

fn why_alone(test: &str) -> Option<&'static str> {
    let is_it = |alone: &str| if alone.ends_with("::") { test.starts_with(alone) } else { test == alone };
    ALONE.iter().find(|(alone, _)| is_it(alone)).map(|(_, why)| *why)
}

/// The address of a new database.
pub(crate) fn database() -> String {
    let server = DATABASE.with_borrow_mut(|held| {
        Arc::clone(held.get_or_insert_with(|| shared().expect("CENTAVO_TEST_NODES needs PostgreSQL")))
    });
    server.database()
}

/// Starts the first node, and the other one beside it. `rails` gives both the same institutions.
pub(crate) async fn start(
    folder: &Path,
    settings: impl Fn(&Path) -> Settings,
    rails: Option<impl Fn() -> Rails>,
) -> Result<(RunningServer, RunningServer), StartError> {
    let addresses = addresses();
    let start = async |at: usize| {
        let data = if at == 0 { folder.to_owned() } else { folder.join(OTHER) };
        let mut settings = settings(&data);
        settings.sandbox_dir = Some(folder.join("sandbox"));
        let address = addresses[at].clone();
        settings.peers = Some(PeerSettings { listen: address.parse().unwrap(), address, tls: None });
        match &rails {
            Some(rails) => server::start_with(rails(), settings, |_, _| {}).await,
            None => server::start(settings, |_, _| {}).await,
        }
    };
    let (first, other) = tokio::join!(start(0), start(1));
    let (first, other) = (first?, other?);
    settled(&first, &other).await;
    Ok((first, other))
}

/// Addresses of both on loopback. The other node gets the house, so that the first one has nothing
/// that is about all merchants.
fn addresses() -> [String; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let mut addresses = listeners.map(|listener| listener.local_addr().unwrap().to_string());
    addresses.sort_by_key(|address| weight(address, Partition(0)));
    addresses
}

/// Waits until each partition has its node, both know it, and the house can answer for all.
async fn settled(first: &RunningServer, other: &RunningServer) {
    let begun = Instant::now();
    let nodes = [first, other].map(|running| Arc::clone(running.desk.node.as_ref().unwrap()));
    loop {
        let [first, other] = [&nodes[0], &nodes[1]];
        let all = first.all();
        let has = |node: &Arc<Node>, partition: &Partition| node.owner(*partition) == Owner::Here;
        let knows = |node: &Arc<Node>, partition: &Partition| matches!(node.owner(*partition), Owner::At(_));
        let of_first = all.iter().filter(|partition| has(first, partition) && knows(other, partition)).count();
        let of_other = all.iter().filter(|partition| has(other, partition) && knows(first, partition)).count();
        let is_divided = of_first == all.len() / 2 && of_first + of_other == all.len();
        if is_divided && has(other, &other.house()) && other.read_all().await.is_some() {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{of_first} and {of_other} of {} partitions", all.len());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An institution that both nodes have.
pub(crate) struct Both<T>(pub(crate) Arc<T>);

impl<T: PixRail> PixRail for Both<T> {
    fn location(&self, charge: ObjectId) -> Option<String> {
        self.0.location(charge)
    }

    fn cancel(&self, charge: ObjectId) -> Call<'_, PixFate> {
        self.0.cancel(charge)
    }

    fn repay(&self, call: Repay) -> Call<'_, RepayAnswer> {
        self.0.repay(call)
    }

    fn accept_dispute(&self, dispute: Repay) -> Call<'_, RailStamp> {
        self.0.accept_dispute(dispute)
    }
}

impl<T: PayoutRail> PayoutRail for Both<T> {
    fn send(&self, call: SendPayout) -> Call<'_, PayoutAnswer> {
        self.0.send(call)
    }

    fn find(&self, call: SendPayout, now: Timestamp) -> Call<'_, PayoutAnswer> {
        self.0.find(call, now)
    }

    fn pays_withdrawal_from(&self, amount: Centavos) -> PayoutBank {
        self.0.pays_withdrawal_from(amount)
    }

    fn can_pay(&self, account: &BankAccount) -> Result<(), UnpayableAccount> {
        self.0.can_pay(account)
    }

    fn may_send_again(&self, first_ordered_at: Timestamp, now: Timestamp) -> bool {
        self.0.may_send_again(first_ordered_at, now)
    }

    fn horizon(&self) -> Duration {
        self.0.horizon()
    }
}
