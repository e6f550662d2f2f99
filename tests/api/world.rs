//! A server of one test's own, a client for it, and the checks that hold whatever a test did.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use actors::rails::{CardRail, NamedRails, PayoutRail, PixRail, Rails};
use centavo::server::{self, RunningServer};
use centavo::settings::args::{self, ServeArgs};
use centavo::settings::checked::{JournalSettings, Settings};
use centavo::settings::secrets::SecretSource;
use centavo::settings::store_choice::Store;
use chrono::{DateTime, Utc};
use clap::Parser as _;
use futures_util::future::join_all;
use rails::sandbox::Institutions;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use store::cut::{Cut, Position};
use store::{Partition, Sequence};
use tempfile::TempDir;
use web::credential::OpsTokens;
pub(crate) use wire::cut_text::record_name;

use crate::description::Description;
use crate::second_node::{self, Both};

/// The operators' tokens of every server of these tests.
pub(crate) const OPS_TOKEN: &str = "operations-of-the-test-with-32-characters";
/// The token of another operator, `second`.
pub(crate) const SECOND_OPS_TOKEN: &str = "second-operator-of-the-test-with-32-characters";

/// A card that is approved.
pub(crate) const APPROVED: &str = "4111111111111111";
/// A card that the acquirer refuses.
pub(crate) const REFUSED: &str = "4000000000000002";
/// A card without funds.
pub(crate) const WITHOUT_FUNDS: &str = "4000000000009995";
/// A card on which the acquirer is silent.
pub(crate) const SILENT: &str = "4000000000000119";

/// The file that has the address of a folder's database.
const DATABASE: &str = "database";

/// Seconds of a day.
pub(crate) const DAY: i64 = 24 * 60 * 60;

/// A running server and a client.
pub(crate) struct World {
    running: RunningServer,
    /// The other node, where servers are nodes.
    other: Option<RunningServer>,
    client: Client,
    pub(crate) description: Arc<Description>,
    folder: TempDir,
}

/// An answer, read in whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    /// The text as JSON; null when it is none.
    pub(crate) body: Value,
}

/// A merchant of the server, with a key.
pub(crate) struct Merchant<'w> {
    pub(crate) world: &'w World,
    pub(crate) names: Names,
}

/// What a merchant is known by, also after a restart.
#[derive(Clone)]
pub(crate) struct Names {
    pub(crate) id: String,
    pub(crate) key_id: String,
    pub(crate) key: String,
}

/// All that a refused request must leave as it was.
#[derive(Debug, PartialEq)]
pub(crate) struct Trace {
    trial_balance: Value,
    balances: Vec<Value>,
    recipients: Vec<Value>,
}

pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

impl World {
    /// A sandbox on an empty folder.
    pub(crate) async fn sandbox() -> Self {
        Self::start(tempfile::tempdir().unwrap(), true).await
    }

    /// A sandbox whose PIX institution is the test's own.
    pub(crate) async fn with_institution(pix: impl PixRail) -> Self {
        let pix = Arc::new(pix);
        Self::with_rails(tempfile::tempdir().unwrap(), move |rails| Rails {
            pix: NamedRails::sandbox(Arc::clone(&pix) as Arc<dyn PixRail>),
            ..rails
        })
        .await
    }

    /// A sandbox whose acquirer is the test's own.
    pub(crate) async fn with_acquirer(card: impl CardRail) -> Self {
        let card = Arc::new(card);
        Self::with_rails(tempfile::tempdir().unwrap(), move |rails| Rails {
            card: NamedRails::sandbox(Arc::clone(&card) as Arc<dyn CardRail>),
            ..rails
        })
        .await
    }

    /// A sandbox whose transfers out go through the test's own institution.
    pub(crate) async fn with_payouts(payout: impl PayoutRail) -> Self {
        Self::with_payouts_on(tempfile::tempdir().unwrap(), payout).await
    }

    /// The same on a folder that another one has left.
    pub(crate) async fn with_payouts_on(folder: TempDir, payout: impl PayoutRail) -> Self {
        let payout = Arc::new(payout);
        Self::with_rails(folder, move |rails| Rails {
            payout: NamedRails::sandbox(Arc::new(Both(Arc::clone(&payout)))),
            ..rails
        })
        .await
    }

    async fn with_rails(folder: TempDir, change: impl Fn(Rails) -> Rails) -> Self {
        let institutions = folder.path().join("sandbox");
        let rails = || change(Institutions::open(&institutions, second_node::are_nodes()).1);
        Self::begin(folder, true, |_| {}, Some(rails)).await
    }

    /// A live server, which has no rail, on an empty folder.
    pub(crate) async fn live() -> Self {
        Self::start(tempfile::tempdir().unwrap(), false).await
    }

    /// A live server on a folder, with other settings than the tests' own.
    pub(crate) async fn live_on(folder: TempDir, change: impl Fn(&mut Settings)) -> Self {
        Self::begin(folder, false, change, NO_RAILS).await
    }

    /// Calls the listener of callbacks; gives the status.
    pub(crate) async fn ring(&self, path: &str, body: &Value) -> u16 {
        let address = self.running.bells.expect("a listener of callbacks");
        self.client.post(format!("http://{address}{path}")).json(body).send().await.unwrap().status().as_u16()
    }

    /// A sandbox with other settings than the tests' own.
    pub(crate) async fn with_settings(change: impl Fn(&mut Settings)) -> Self {
        Self::begin(tempfile::tempdir().unwrap(), true, change, NO_RAILS).await
    }

    /// A sandbox on a folder that another one has left.
    pub(crate) async fn on(folder: TempDir) -> Self {
        Self::start(folder, true).await
    }

    async fn start(folder: TempDir, sandbox: bool) -> Self {
        Self::begin(folder, sandbox, |_| {}, NO_RAILS).await
    }

    async fn begin(
        folder: TempDir,
        sandbox: bool,
        change: impl Fn(&mut Settings),
        rails: Option<impl Fn() -> Rails>,
    ) -> Self {
        let changed = |data: &Path| {
            let mut settings = settings_in(folder.path(), data, sandbox);
            change(&mut settings);
            settings
        };
        let (running, other) = if second_node::are_nodes() {
            let (first, other) = second_node::start(folder.path(), changed, rails).await.unwrap();
            (first, Some(other))
        } else {
            let settings = changed(folder.path());
            let running = match rails {
                Some(rails) => server::start_with(rails(), settings, |_, _| {}).await,
                None => server::start(settings, |_, _| {}).await,
            };
            (running.unwrap(), None)
        };
        Self::of(running, other, folder).await
    }

    async fn of(running: RunningServer, other: Option<RunningServer>, folder: TempDir) -> Self {
        let client = Client::builder().no_proxy().build().unwrap();
        let description = Description::of(&client, [running.public, running.operations], running.desk.sandbox).await;
        Self { running, other, client, description, folder }
    }

    /// Ends the server in good order and starts it again on the same folder.
    pub(crate) async fn restarted(self) -> Self {
        self.restarted_with(|_| {}).await
    }

    /// The same with other settings than the tests' own.
    pub(crate) async fn restarted_with(self, change: impl Fn(&mut Settings)) -> Self {
        let sandbox = self.running.desk.sandbox;
        Self::begin(self.stopped().await, sandbox, change, NO_RAILS).await
    }

    /// Ends the server in good order and gives its folder.
    pub(crate) async fn stopped(self) -> TempDir {
        let other = async {
            if let Some(other) = self.other {
                other.stop().await;
            }
        };
        tokio::join!(self.running.stop(), other);
        self.folder
    }

    /// The data folder of the process that answers what is about all merchants.
    pub(crate) fn data(&self) -> PathBuf {
        let data = if self.other.is_some() { second_node::OTHER } else { "" };
        self.folder.path().join(data)
    }

    /// Where the books are.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The listener that serves a path.
    pub(crate) fn address_of(&self, path: &str) -> SocketAddr {
        let of_merchants = ["/api", "/openapi", "/reference", "/problems"].iter().any(|start| path.starts_with(start));
        if of_merchants { self.running.public } else { self.running.operations }
    }

    /// Sends a request as it is: to the operations' listener when the path is theirs. The answer
    /// must be as it is described.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: Headers<'_>,
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        let address = self.address_of(path);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), HeaderValue::try_from(*value).unwrap());
        }
        let request = self.client.request(method.clone(), format!("http://{address}{path}")).headers(map).body(body);
        let answer = Answer::of(request.send().await.unwrap()).await;
        self.description.check(method.as_str(), path, &answer);
        answer
    }

    /// GETs a body that is no text, which must come with 200.
    pub(crate) async fn bytes(&self, path: &str, headers: Headers<'_>) -> (HeaderMap, Vec<u8>) {
        let url = format!("http://{}{path}", self.address_of(path));
        let request = headers.iter().fold(self.client.get(url), |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        (response.headers().clone(), response.bytes().await.unwrap().to_vec())
    }

    pub(crate) async fn ops_get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[("authorization", &bearer(OPS_TOKEN))], "").await
    }

    pub(crate) async fn ops_post(&self, path: &str, body: &Value) -> Answer {
        self.ops_send(Method::POST, path, &[], body.to_string()).await
    }

    /// Waits until an export has ended; gives its id.
    pub(crate) async fn finished(&self, path: &str, id: &str, key: &str) -> String {
        let authorization = bearer(key);
        let headers = [("authorization", authorization.as_str())];
        loop {
            let found = self.send(Method::GET, &format!("{path}/{id}"), &headers, "").await.expect(200);
            if found["status"] == "done" || found["status"] == "failed" {
                return id.to_owned();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }

    /// Sends a file of an institution to be compared with the books.
    pub(crate) async fn reconcile(&self, media_type: &str, query: &str, file: String) -> Answer {
        let authorization = bearer(OPS_TOKEN);
        let headers = [("authorization", authorization.as_str()), ("content-type", media_type)];
        self.send(Method::POST, &format!("/ops/reconciliations{query}"), &headers, file).await
    }

    pub(crate) async fn ops_send(&self, method: Method, path: &str, headers: Headers<'_>, body: String) -> Answer {
        let authorization = bearer(OPS_TOKEN);
        let own = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        self.send(method, path, &[&own, headers].concat(), body).await
    }

    /// A request of the second operator.
    pub(crate) async fn second_ops_post(&self, path: &str, headers: Headers<'_>, body: &Value) -> Answer {
        let authorization = bearer(SECOND_OPS_TOKEN);
        let own = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        self.send(Method::POST, path, &[&own, headers].concat(), body.to_string()).await
    }

    pub(crate) async fn ops_patch(&self, path: &str, body: &Value) -> Answer {
        self.ops_send(Method::PATCH, path, &[], body.to_string()).await
    }

    /// A merchant that may split.
    pub(crate) async fn merchant(&self) -> Merchant<'_> {
        self.open(json!({"name": "Loja Azul", "document": cnpj(1), "split_enabled": true, "cashout_enabled": true}))
            .await
    }

    /// A merchant as it is asked for, with a key.
    pub(crate) async fn open(&self, body: Value) -> Merchant<'_> {
        let merchant = self.ops_post("/ops/merchants", &body).await.expect(201);
        let id = text(&merchant["id"]);
        let key = self.ops_post(&format!("/ops/merchants/{id}/api-keys"), &json!({})).await.expect(201);
        Merchant { world: self, names: Names { id, key_id: text(&key["id"]), key: text(&key["api_key"]) } }
    }

    /// Moves the clock and gives the time.
    pub(crate) async fn advance(&self, seconds: i64) -> DateTime<Utc> {
        let moved = self.ops_post("/ops/sandbox/clock", &json!({"advance_seconds": seconds})).await.expect(200);
        time(&moved["now"])
    }

    /// Moves the clock to a time, or just past it: the clock moves by whole seconds.
    pub(crate) async fn advance_to(&self, target: DateTime<Utc>) {
        let now = self.advance(0).await;
        let missing = (target - now).num_milliseconds();
        assert!(missing > 0, "the clock stands at {now}, past {target}");
        assert!(self.advance(missing / 1000 + 1).await >= target);
    }

    /// Books this many Records of the house that are about nothing that is listed.
    pub(crate) async fn fill(&self, records: usize) {
        let engine = self.engine();
        let book = |_| async { engine.note_tax_ids_read("x".to_owned(), engine.permit(1_024).unwrap()).await.unwrap() };
        for first in (0..records).step_by(200) {
            join_all((first..records.min(first + 200)).map(book)).await;
        }
    }

    /// The engine that has all Records: of the other node, where servers are nodes.
    pub(crate) fn engine(&self) -> &actors::engine::Engine {
        &self.desk().engine
    }

    /// State of the handlers that answer what is about all merchants: of the other node, where
    /// servers are nodes.
    pub(crate) fn desk(&self) -> &ops::desk::Desk {
        &self.other.as_ref().unwrap_or(&self.running).desk
    }

    /// Gives the server, or both nodes, other operators' tokens.
    pub(crate) fn set_operators(&self, tokens: &str) {
        for running in [Some(&self.running), self.other.as_ref()].into_iter().flatten() {
            let tokens: OpsTokens = tokens.parse().unwrap();
            let roles: Vec<_> = tokens.names().map(|name| format!("{name}=admin")).collect();
            let roles = roles.join(",").parse().unwrap();
            *running.desk.ops_tokens.write() = tokens.with_roles(&roles).unwrap();
        }
    }

    /// An administrator approves a withdrawal.
    pub(crate) async fn approve(&self, withdrawal: &str) -> Answer {
        self.ops_send(Method::POST, &format!("/ops/withdrawals/{withdrawal}/approve"), &[], String::new()).await
    }

    /// An administrator rejects a withdrawal.
    pub(crate) async fn reject(&self, withdrawal: &str, notes: &str) -> Answer {
        self.ops_post(&format!("/ops/withdrawals/{withdrawal}/reject"), &json!({"notes": notes})).await
    }

    /// The last Record of each partition that was published.
    pub(crate) async fn cut(&self) -> Cut {
        cut_in(&self.ops_get("/ops/trial-balance").await.expect(200))
    }

    /// The Records after a cut, one partition after the other.
    pub(crate) async fn since(&self, cut: &Cut) -> Vec<Position> {
        let place = |partition, sequence| Position { partition, sequence: Sequence(sequence) };
        let now = self.cut().await;
        let after = now.iter().flat_map(|last| {
            (cut.of(last.partition).0 + 1..=last.sequence.0).map(move |sequence| place(last.partition, sequence))
        });
        after.collect()
    }

    /// The Records that an operator or an API key asked for. Others come at any time: the schedule
    /// books what is due, and institutions answer.
    pub(crate) async fn requested(&self) -> Vec<Position> {
        let is_requested = |at: &Position| {
            let record = self.engine().record(*at).unwrap();
            record.operator.is_some() || record.api_key.is_some()
        };
        self.since(&Cut::default()).await.into_iter().filter(is_requested).collect()
    }

    /// The Record that was booked last.
    pub(crate) async fn last(&self) -> Position {
        place_in(&items(&self.ops_get("/ops/records?per_page=1").await.expect(200))[0])
    }

    /// Debits minus credits of every account, by ledger and account.
    pub(crate) async fn accounts(&self) -> BTreeMap<(String, String), i64> {
        let balance = self.ops_get("/ops/trial-balance").await.expect(200);
        accounts_of(&balance)
    }

    /// What the laws of the books say, seen from outside: debits equal credits, mirrors mirror,
    /// claims are not negative, what is given away is received, fees are commission, and each
    /// ledger's entries add up to its accounts.
    pub(crate) async fn check_books(&self) {
        // An owner's actor books the effects that wait for it when its accounts are read.
        let owners: BTreeSet<String> = self.accounts().await.into_keys().map(|(ledger, _)| ledger).collect();
        for ledger in owners {
            self.ops_get(&format!("/ops/ledgers/{ledger}/accounts")).await.expect(200);
        }
        let balance = self.ops_get("/ops/trial-balance").await.expect(200);
        assert_eq!(balance["balanced"], true, "{balance}");
        let accounts = accounts_of(&balance);
        let mut ledgers: BTreeMap<&str, i64> = BTreeMap::new();
        let mut mirrors: BTreeMap<String, i64> = BTreeMap::new();
        let (mut splits, mut fees) = (0, 0);
        for ((ledger, account), balance) in &accounts {
            *ledgers.entry(ledger).or_default() += balance;
            if let Some(pair) = mirror_of(ledger, account) {
                *mirrors.entry(pair).or_default() += balance;
            }
            if ["Income:Contra:Splits", "Income:Splits:", "Income:Contra:SplitReversals"]
                .iter()
                .any(|prefix| account.starts_with(prefix))
            {
                splits += balance;
            }
            if ["Expenses:Fees:", "Income:Commission:", "Income:Fees:"].iter().any(|prefix| account.starts_with(prefix))
            {
                fees += balance;
            }
            if account.starts_with("Assets:Platform:") {
                assert!(*balance >= 0, "{ledger} {account}: {balance}");
            }
        }
        assert!(ledgers.values().all(|sum| *sum == 0), "{ledgers:?}");
        assert!(mirrors.values().all(|sum| *sum == 0), "{mirrors:?}");
        assert_eq!((splits, fees), (0, 0), "{accounts:?}");
        let ledgers: Vec<String> = ledgers.keys().map(ToString::to_string).collect();
        for ledger in ledgers {
            self.check_entries(&ledger, &accounts).await;
        }
    }

    async fn check_entries(&self, ledger: &str, accounts: &BTreeMap<(String, String), i64>) {
        let expected: BTreeMap<_, _> = accounts
            .iter()
            .filter(|((owner, _), balance)| owner == ledger && **balance != 0)
            .map(|((_, account), balance)| (account.clone(), *balance))
            .collect();
        let shown = self.ops_get(&format!("/ops/ledgers/{ledger}/accounts")).await.expect(200);
        let shown = accounts_of(&json!({"accounts": shown["items"]}));
        let shown: BTreeMap<_, _> =
            shown.into_iter().filter(|(_, net)| *net != 0).map(|((_, account), net)| (account, net)).collect();
        assert_eq!(shown, expected, "{ledger}");
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for page in 1.. {
            let entries =
                self.ops_get(&format!("/ops/ledgers/{ledger}/entries?page={page}&per_page=100")).await.expect(200);
            for entry in items(&entries) {
                let mut sum = 0;
                for posting in entry["postings"].as_array().unwrap() {
                    let amount = posting["amount"].as_i64().unwrap();
                    assert!(amount > 0, "{entry}");
                    let signed = if posting["side"] == "debit" { amount } else { -amount };
                    sum += signed;
                    *sums.entry(text(&posting["account"])).or_default() += signed;
                }
                assert_eq!(sum, 0, "{entry}");
            }
            if entries["pages"].as_u64().unwrap() <= page {
                break;
            }
        }
        sums.retain(|_, sum| *sum != 0);
        assert_eq!(sums, expected, "{ledger}");
    }

    /// All that a refused request must leave as it was. Drafts that nobody decided on are submitted
    /// before, so that nothing else moves meanwhile.
    pub(crate) async fn trace(&self, merchants: &[&Merchant<'_>]) -> Trace {
        let trial_balance = self.ops_get("/ops/trial-balance").await.expect(200);
        let (mut balances, mut recipients) = (Vec::new(), Vec::new());
        for merchant in merchants {
            balances.push(merchant.get("/api/balance").await.expect(200));
            recipients.push(merchant.get("/api/dashboard/sub-recipients").await.expect(200));
        }
        Trace { trial_balance, balances, recipients }
    }
}

impl std::ops::Deref for Merchant<'_> {
    type Target = Names;

    fn deref(&self) -> &Names {
        &self.names
    }
}

impl Merchant<'_> {
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.world.send(Method::GET, path, &[("token", &self.key)], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_raw(path, &[], body.to_string()).await
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Answer {
        let headers = [("token", self.key.as_str()), ("content-type", "application/json")];
        self.world.send(Method::PATCH, path, &headers, body.to_string()).await
    }

    pub(crate) async fn post_keyed(&self, path: &str, key: &str, body: &Value) -> Answer {
        self.post_raw(path, &[("idempotency-key", key)], body.to_string()).await
    }

    pub(crate) async fn post_raw(&self, path: &str, headers: Headers<'_>, body: impl Into<reqwest::Body>) -> Answer {
        let authorization = bearer(&self.key);
        let own = [("authorization", authorization.as_str()), ("content-type", "application/json")];
        self.world.send(Method::POST, path, &[&own, headers].concat(), body).await
    }

    /// An active recipient; `number` makes its CPF.
    pub(crate) async fn recipient(&self, name: &str, number: u32) -> String {
        let id = self.draft(name, number).await;
        self.world.ops_post(&format!("/ops/sub-recipients/{id}/approve"), &json!({})).await.expect(200);
        id
    }

    /// A recipient that nobody has decided on.
    pub(crate) async fn draft(&self, name: &str, number: u32) -> String {
        let registered = self.post("/api/sub-recipients", &individual(name, &cpf(number))).await.expect(201);
        text(&registered["id"])
    }

    /// Creates a PIX charge and pays it; gives the charge as read.
    pub(crate) async fn paid_pix(&self, body: &Value) -> Value {
        let txid = text(&self.post("/api/pix", body).await.expect(201)["txid"]);
        self.pay(&txid).await.expect(200)
    }

    /// Gives its key an address at which nobody listens.
    pub(crate) async fn has_address(&self) {
        let address = json!({"webhook_url": "http://127.0.0.1:9/"});
        self.world.ops_patch(&format!("/ops/api-keys/{}", self.key_id), &address).await.expect(200);
    }

    pub(crate) async fn pay(&self, txid: &str) -> Answer {
        self.post_raw(&format!("/api/sandbox/pix/{txid}/pay"), &[], "").await
    }

    pub(crate) async fn balance(&self) -> [i64; 4] {
        let balance = self.get("/api/balance").await.expect(200);
        ["available", "pending", "reserved", "deficit"].map(|name| balance[name].as_i64().unwrap())
    }

    pub(crate) async fn statement(&self, recipient: &str) -> Value {
        self.get(&format!("/api/dashboard/sub-recipients/{recipient}/splits")).await.expect(200)
    }

    /// Available and pending money of a recipient.
    pub(crate) async fn recipient_balance(&self, recipient: &str) -> [i64; 2] {
        let statement = self.statement(recipient).await;
        ["available", "pending"].map(|name| statement["balance"][name].as_i64().unwrap())
    }

    /// Available, pending, reserved and paid money of a recipient.
    pub(crate) async fn recipient_money(&self, recipient: &str) -> [i64; 4] {
        let statement = self.statement(recipient).await;
        ["available", "pending", "reserved", "paid"].map(|name| statement["balance"][name].as_i64().unwrap())
    }

    /// Asks for a withdrawal of all that a recipient has available.
    pub(crate) async fn withdraw(&self, recipient: &str) -> Answer {
        self.post_raw(&format!("/api/dashboard/sub-recipients/{recipient}/withdraw"), &[], "").await
    }

    /// A recipient's withdrawals, newest first.
    pub(crate) async fn withdrawals(&self, recipient: &str) -> Vec<Value> {
        let list = self.get(&format!("/api/dashboard/sub-recipients/{recipient}/withdraw")).await.expect(200);
        has_exactly(&list, &["items"]);
        items(&list).clone()
    }

    /// The ledger's name in the books.
    pub(crate) fn ledger(&self) -> String {
        format!("M-{}", self.id)
    }
}

impl Answer {
    async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or_default();
        Self { status, headers, text, body }
    }

    /// The body, of an answer that must have this status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body
    }

    /// The body of a problem that must have this status and code, in the documented shape.
    #[track_caller]
    pub(crate) fn refused(self, status: u16, code: &str) -> Value {
        assert_eq!((self.status, &self.body["code"]), (status, &json!(code)), "{}", self.text);
        assert_eq!(self.headers["content-type"], "application/problem+json");
        let body = self.body;
        for name in ["type", "title", "detail", "instance", "code", "message", "request_id"] {
            assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{name} of {body}");
        }
        assert_eq!(body["success"], false);
        if code != "card_declined" {
            assert_eq!(body["status"], status);
        }
        assert_eq!(self.headers["x-request-id"], text(&body["request_id"]));
        assert_eq!(self.headers["api-version"], "2026-11-29");
        for error in body["errors"].as_array().unwrap() {
            has_exactly(error, &["field", "code", "message"]);
        }
        body
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// No institutions but those of the settings.
const NO_RAILS: Option<fn() -> Rails> = None;

pub(crate) fn settings(data: &Path, sandbox: bool) -> Settings {
    settings_in(data, data, sandbox)
}

/// The store of the books of a folder.
pub(crate) fn store_in(folder: &Path) -> Store {
    if folder.join(DATABASE).exists() { settings(folder, true).store } else { Store::Sled }
}

/// The settings of a command on the books of a folder whose server has ended.
pub(crate) fn journal_in(folder: &Path) -> JournalSettings {
    JournalSettings {
        store: store_in(folder),
        ops_tls_cert: None,
        data: folder.to_path_buf(),
        ops_listen: "127.0.0.1:1".parse().unwrap(),
        ops_token: SecretSource::Data,
    }
}

/// A cut of so many Records, those of the first partitions before others.
pub(crate) fn first_of(cut: &Cut, mut count: u64) -> Cut {
    let take = |last: Position| {
        let taken = last.sequence.0.min(count);
        count -= taken;
        Position { sequence: Sequence(taken), ..last }
    };
    cut.iter().map(take).fold(cut.begin(), |cut, at| cut.with(at))
}

/// Cut in an answer.
pub(crate) fn cut_in(answer: &Value) -> Cut {
    let last = |(partition, last): (&String, &Value)| Position {
        partition: Partition(partition.parse().unwrap()),
        sequence: Sequence(last.as_u64().unwrap()),
    };
    answer["cut"].as_object().unwrap().iter().map(last).fold(Cut::default(), |cut, at| cut.with(at))
}

/// The Record that an item of an answer names.
pub(crate) fn place_in(item: &Value) -> Position {
    let number = |name: &str| item[name].as_u64().unwrap_or_else(|| panic!("no {name} in {item}"));
    Position { partition: Partition(number("partition").try_into().unwrap()), sequence: Sequence(number("sequence")) }
}

/// A Record as an address has it at its end: its number, and its partition where that is not 0.
pub(crate) fn record_in_path(at: Position) -> String {
    match at.partition.0 {
        0 => at.sequence.0.to_string(),
        partition => format!("{}?partition={partition}", at.sequence.0),
    }
}

/// The address of a Record, or of its block, among the routes of operators.
pub(crate) fn read_at(route: &str, at: Position) -> String {
    format!("{route}/{}", record_in_path(at))
}

/// The page of a Record.
pub(crate) fn page_of(at: Position) -> String {
    format!("/console/records/{}", record_name(at))
}

/// Settings of a server; its database, if there is one, is that of a folder.
fn settings_in(folder: &Path, data: &Path, sandbox: bool) -> Settings {
    let any_port = "127.0.0.1:0".parse().unwrap();
    let args = ServeArgs {
        listen: any_port,
        ops_listen: any_port,
        data: data.to_owned(),
        ops_token: Some(format!("operator:{OPS_TOKEN},second:{SECOND_OPS_TOKEN}").into()),
        ops_roles: Some("operator=admin+reveal,second=admin".to_owned()),
        sandbox,
        rate_limit: false,
        webhook_allow: Some("127.0.0.0/8".to_owned()),
        partitions: partitions(),
        // On a busy machine no command is refused for the load.
        turn_wait_ms: 60_000,
        ..serve_args()
    };
    on_database(args, folder).settings().unwrap()
}

/// The flags of a server that is given none.
pub(crate) fn serve_args() -> ServeArgs {
    match args::Args::try_parse_from(["centavo", "serve"]).unwrap().command {
        args::Command::Serve { args, .. } => args,
        command => panic!("{command:?}"),
    }
}

/// How many partitions the tests' stores have, where `CENTAVO_TEST_PARTITIONS` says so.
fn partitions() -> Option<u16> {
    let said = std::env::var("CENTAVO_TEST_PARTITIONS").ok();
    let said = said.map(|count| count.parse().expect("a number of partitions"));
    said.or_else(|| second_node::are_nodes().then_some(second_node::PARTITIONS))
}

/// Where servers are nodes, or `CENTAVO_TEST_POSTGRES` is the address of a PostgreSQL server's
/// database `postgres`, the books of each data folder are in a database of their own.
fn on_database(mut args: ServeArgs, folder: &Path) -> ServeArgs {
    let server = std::env::var("CENTAVO_TEST_POSTGRES").ok();
    if server.is_none() && !second_node::are_nodes() {
        return args;
    }
    let (file, key) = (folder.join(DATABASE), folder.join("key-of-database"));
    if !file.exists() {
        std::fs::create_dir_all(folder).unwrap();
        let address = server.map_or_else(second_node::database, |server| made_database(&server, folder));
        std::fs::write(&key, "0b".repeat(32)).unwrap();
        std::fs::write(&file, address).unwrap();
    }
    if second_node::are_nodes() {
        args.store.database.postgres_takeover_seconds = second_node::TAKEOVER_SECONDS;
    }
    (args.store.store_file, args.master_key.master_key_file) = (Some(file), Some(key));
    args
}

/// Makes the database of a folder, and gives its address.
fn made_database(server: &str, folder: &Path) -> String {
    let name: String = folder.to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
    let name = format!("api{}", name.to_lowercase());
    let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
    let made = Command::new("psql").args(["--no-psqlrc", "--quiet", "--command", &sql, server]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    server.replace("/postgres", &format!("/{name}"))
}

pub(crate) fn bearer(credential: &str) -> String {
    format!("Bearer {credential}")
}

fn accounts_of(balance: &Value) -> BTreeMap<(String, String), i64> {
    let rows = balance["accounts"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let [debits, credits, net] = ["debits", "credits", "balance"].map(|name| row[name].as_i64().unwrap());
            assert_eq!(debits - credits, net, "{row}");
            ((text(&row["ledger"]), text(&row["account"])), net)
        })
        .collect()
}

/// One name for both accounts of a mirrored pair: the owner's and the platform's, or what one owes
/// and what the other is owed.
fn mirror_of(ledger: &str, account: &str) -> Option<String> {
    let of_platform = |prefix: &str| {
        let (owner, part) = account.strip_prefix(prefix)?.split_once(':')?;
        Some(format!("{owner} {part}"))
    };
    if ledger.starts_with("P-") {
        return ["Liabilities:Merchants:", "Liabilities:Recipients:", "Assets:Merchants:"]
            .iter()
            .find_map(|prefix| of_platform(prefix));
    }
    if let Some(recipient) = account.strip_prefix("Assets:Receivable:Recipients:") {
        return Some(format!("{recipient} owes {ledger}"));
    }
    if let Some(merchant) = account.strip_prefix("Liabilities:Clawback:") {
        return Some(format!("{ledger} owes {merchant}"));
    }
    let part = account.strip_prefix("Assets:Platform:").or(account.strip_prefix("Liabilities:Platform:"))?;
    Some(format!("{ledger} {part}"))
}

/// A card charge.
pub(crate) fn card(amount: i64, number: &str) -> Value {
    json!({
        "amount": amount,
        "customer": {"name": "João Ávila", "email": "joao@example.com", "document": "12345678909"},
        "credit_card": {"number": number, "holder_name": "JOAO AVILA", "exp_month": 12, "exp_year": 2099, "cvv": "737"},
    })
}

/// A PIX charge.
pub(crate) fn pix(valor: &str) -> Value {
    json!({"valor": valor, "nome": "Maria das Dores", "cpf": "12345678909", "descricao": "Pedido 7"})
}

/// A charge with splits.
pub(crate) fn with_splits(charge: Value, splits: &[(&str, i64)]) -> Value {
    let splits = splits.iter().map(|(id, amount)| json!({"sub_recipient_id": id, "amount": amount}));
    with(&charge, "/splits", splits.collect())
}

/// The registration of a corporation.
pub(crate) fn corporation(name: &str, document: &str) -> Value {
    let partner_address = json!({"street": "Rua Direita", "street_number": "10", "neighborhood": "Sé", "city": "São Paulo",
        "state": "SP", "zipcode": "01002000"});
    json!({
        "register_information": {
            "type": "corporation",
            "document_number": document,
            "company_name": name,
            "address": address(),
            "phone_numbers": [{"ddd": "11", "number": "33334444"}],
            "email": "contato@example.com",
            "annual_revenue": 100_000_000,
            "managing_partners": [{
                "name": "Ana Prado", "document_number": "123.456.789-09", "birthdate": "01/02/1980",
                "mother_name": "Rita Prado", "email": "ana@example.com",
                "phone_numbers": [{"ddd": "11", "number": "987654321"}], "address": partner_address,
            }],
        },
        "bank_account": {"bank_code": "001", "agencia": "1", "agencia_dv": "X", "conta": "2", "type": "conta_poupanca",
            "legal_name": name, "document_number": document},
    })
}

/// The registration of an individual.
pub(crate) fn individual(name: &str, document: &str) -> Value {
    json!({
        "register_information": {
            "type": "individual",
            "document_number": document,
            "name": name,
            "birthdate": "29/02/2000",
            "mother_name": "Ana Prado",
            "address": address(),
            "phone_numbers": [{"ddd": "11", "number": "987654321"}],
        },
        "bank_account": {"bank_code": "341", "agencia": "1234", "conta": "56789", "conta_dv": "7"},
    })
}

pub(crate) fn address() -> Value {
    json!({"street": "Rua Direita", "number": "10", "neighborhood": "Sé", "city": "São Paulo", "state": "SP",
        "zip_code": "01002-000"})
}

/// A body with one value put in its place, by JSON pointer.
pub(crate) fn with(body: &Value, pointer: &str, value: Value) -> Value {
    let mut changed = body.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap()[name] = value;
    changed
}

/// A body with one value taken out, by JSON pointer.
pub(crate) fn without(body: &Value, pointer: &str) -> Value {
    let mut changed = body.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    changed.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    changed
}

/// A valid CPF, one for each number.
pub(crate) fn cpf(number: u32) -> String {
    let mut digits: Vec<u32> =
        format!("{:09}", 100_000_000 + number).bytes().map(|byte| u32::from(byte - b'0')).collect();
    for _ in 0..2 {
        let weights = (2..).take(digits.len()).collect::<Vec<u32>>();
        let sum: u32 = digits.iter().zip(weights.iter().rev()).map(|(digit, weight)| digit * weight).sum();
        digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
    }
    digits.iter().map(u32::to_string).collect()
}

/// A valid CNPJ, one for each number.
pub(crate) fn cnpj(number: u32) -> String {
    let mut digits: Vec<u32> = format!("{number:08}0001").bytes().map(|byte| u32::from(byte - b'0')).collect();
    for _ in 0..2 {
        let sum: u32 = digits.iter().rev().zip((2..=9).cycle()).map(|(digit, weight)| digit * weight).sum();
        digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
    }
    digits.iter().map(u32::to_string).collect()
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

pub(crate) fn items(list: &Value) -> &Vec<Value> {
    list["items"].as_array().unwrap_or_else(|| panic!("{list} has no items"))
}

/// A timestamp, which must be RFC 3339 with milliseconds and `Z`.
#[track_caller]
pub(crate) fn time(value: &Value) -> DateTime<Utc> {
    let text = text(value);
    assert!(text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.', "{text}");
    DateTime::parse_from_rfc3339(&text).unwrap().to_utc()
}

/// The day of business that a timestamp lies in, such as `2026-07-01`.
#[track_caller]
pub(crate) fn day_of(value: &Value) -> String {
    wire::timestamp::day_of(time(value).timestamp_millis()).to_string()
}

#[track_caller]
pub(crate) fn has_exactly(object: &Value, names: &[&str]) {
    let mut found: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = names.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[track_caller]
pub(crate) fn is_uuid(value: &Value) {
    let text = text(value);
    let parsed = uuid::Uuid::parse_str(&text).unwrap();
    assert_eq!(parsed.hyphenated().to_string(), text);
}

#[track_caller]
pub(crate) fn is_txid(value: &Value) -> String {
    let txid = text(value);
    assert!(txid.len() == 32 && txid.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{txid}");
    txid
}

/// Several requests at once; their answers in the order they were sent.
pub(crate) async fn futures_of<F: Future<Output = Answer>>(count: usize, request: impl Fn(usize) -> F) -> Vec<Answer> {
    join_all((0..count).map(request)).await
}

/// Waits until something is so; the server asks its rails by itself.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if is_so().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{what}");
}
