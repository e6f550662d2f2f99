//! Clients that charge and read over HTTP, whatever happens to the servers, and keep the history of
//! it.
//!
//! A charge's amount is the element: no other charge of its merchant has it, so that a charge is
//! known in every list and statement, also one that got no answer. One in ten is asked for without
//! an idempotency key: what is carried out twice stands in the lists twice.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::callers::operate;
use testkit::server::{OPS_TOKEN, Server};
use tokio::task::JoinHandle;
use wire::cut_text::named_record;

use super::checker::{Fault, elements_by_place, faults, unsettled};
use super::{Element, History, NEVER, Nanos, Operation, Outcome, ReadResult, THE_END, What, edn};

/// How long a client waits for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// How long a client waits after its charge or as an operator, after what it read, and after no
/// answer.
const PAUSE: Duration = Duration::from_millis(40);
const PAUSE_OF_READERS: Duration = Duration::from_millis(4);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);
/// How long servers have to give a clear answer once nothing disturbs them.
const PATIENCE: Duration = Duration::from_secs(60);
/// Elements are amounts: above this one, centavos.
const AMOUNT: u64 = 10_000;
/// The recipient's part of every sale.
const SPLIT: i64 = 1_000;
/// Elements of a page: what clients read, and what is read at the end.
const PER_PAGE: u64 = 15;
const PER_PAGE_MAX: u64 = 100;

/// Addresses of the servers that clients know: those that serve, and those that did and may not
/// know better.
#[derive(Clone, Default)]
pub(crate) struct Addresses(Arc<Mutex<Vec<Address>>>);

/// Of the merchants' and of the operators' listener.
#[derive(Clone, Default)]
struct Address {
    public: String,
    operations: String,
}

impl Addresses {
    pub(crate) fn add(&self, server: &Server) {
        let address = Address { public: server.public.clone(), operations: server.operations.clone() };
        locked(&self.0).push(address);
    }

    pub(crate) fn remove(&self, server: &Server) {
        locked(&self.0).retain(|address| address.public != server.public);
    }

    /// Clients that lag behind ask this one from now on.
    pub(crate) fn put_first(&self, server: &Server) {
        locked(&self.0).sort_by_key(|address| address.public != server.public);
    }

    /// The oldest known address.
    fn oldest(&self) -> Option<Address> {
        locked(&self.0).first().cloned()
    }

    /// The address after another one.
    fn next(&self, before: &Address) -> Option<Address> {
        let known = locked(&self.0);
        let place = known.iter().position(|address| address.public == before.public).map_or(0, |place| place + 1);
        known.get(place).or_else(|| known.first()).cloned()
    }

    fn any(&self, chance: &mut Chance) -> Option<Address> {
        let known = locked(&self.0);
        let place = chance.below(known.len().max(1) as u64) as usize;
        known.get(place).cloned()
    }
}

/// What a client does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Charges,
    Reads,
    /// Reads the balance of the quiet merchant from the server that has served for longest, until
    /// that has ended: it does not hear of a successor.
    Lags,
    /// Reads, as an operator, what is about all merchants.
    Operates,
}

/// Clients that lag behind, and operators, where several servers serve.
const LAGGING: usize = 2;
const OPERATORS: usize = 2;

/// Merchants, their charges, and the history of both.
#[derive(Clone)]
pub(crate) struct Recorder {
    client: Client,
    begun: Instant,
    addresses: Addresses,
    merchants: Arc<Vec<Merchant>>,
    /// Nobody charges for the last of them before [`Recorder::must_go_on`]. So a server that fails
    /// has nothing under way for it, and could answer from its memory.
    is_quiet: Arc<AtomicBool>,
    /// All servers serve at once: clients ask any of them, and there are operators.
    any_serves: bool,
    log: Arc<Mutex<Log>>,
}

struct Merchant {
    id: String,
    api_key: String,
    recipient: String,
    /// Places of its lists.
    charges: usize,
    sales: usize,
    next: AtomicU64,
}

#[derive(Default)]
struct Log {
    history: History,
    charges: Vec<Charge>,
    /// Answers that no state of the server explains.
    strange: Vec<String>,
    /// When something was done to the servers.
    marks: Vec<Nanos>,
    /// The newest elements of lists, without their number.
    tails: Vec<Tail>,
    cuts: Vec<CutRead>,
    /// The last answers to charges that booked nothing, and when they came.
    unbooked: VecDeque<(Nanos, String)>,
}

/// Largest number of them.
const UNBOOKED_MAX: usize = 12;

/// A read that shows the last elements of a list, and not how long it is.
struct Tail {
    at: (usize, Nanos, Nanos),
    list: usize,
    elements: Vec<Element>,
}

/// A read that says up to which Record of each partition it counts.
struct CutRead {
    invoked: Nanos,
    completed: Nanos,
    cut: BTreeMap<String, u64>,
}

/// A charge that was asked for.
#[derive(Clone)]
struct Charge {
    ask: Ask,
    /// Places of its appends in the history; a PIX charge that nobody pays is no sale.
    listed: usize,
    sold: Option<usize>,
    answer: Option<Answer>,
}

#[derive(Clone)]
struct Ask {
    merchant: usize,
    element: Element,
    /// Its idempotency key is the element, if it has one.
    has_key: bool,
    path: &'static str,
    body: Value,
}

/// An answer that names a charge.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Answer {
    status: StatusCode,
    txid: String,
    state: String,
}

/// What a request for a charge came to.
enum Reply {
    Booked(Answer, Option<u64>),
    /// Nothing was done.
    Refused(String),
    Unknown(String),
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Opens merchants, each with a recipient, and an empty history.
    pub(crate) async fn open(server: &Server, addresses: &Addresses, merchants: usize) -> Result<Self, String> {
        Self::open_at(&[server], addresses, merchants).await
    }

    /// The same over servers that all serve: merchants are opened at one after the other.
    pub(crate) async fn open_at(servers: &[&Server], addresses: &Addresses, merchants: usize) -> Result<Self, String> {
        let client = Client::builder().no_proxy().timeout(ANSWER_MAX).build().map_err(|error| error.to_string())?;
        let mut log = Log::default();
        let mut opened = Vec::new();
        for number in 0..merchants {
            let (charges, sales) = (format!("charges of merchant {number}"), format!("sales of merchant {number}"));
            let (charges, sales) = (log.history.add_list(charges), log.history.add_list(sales));
            let server = servers[number % servers.len()];
            opened.push(patiently(|| Merchant::open(&client, server, charges, sales)).await?);
        }
        let log = Arc::new(Mutex::new(log));
        let (begun, addresses) = (Instant::now(), addresses.clone());
        let is_quiet = Arc::new(AtomicBool::new(true));
        let any_serves = servers.len() > 1;
        Ok(Self { client, begun, addresses, merchants: Arc::new(opened), is_quiet, any_serves, log })
    }

    /// Charges once for the quiet merchant. Gives the partition of its Record.
    pub(crate) async fn partition_of_quiet(&self, server: &Server) -> Result<u64, String> {
        let quiet = self.merchants.len() - 1;
        let address = Address { public: server.public.clone(), operations: server.operations.clone() };
        patiently(|| async {
            match self.charge(THE_END, &address, quiet).await {
                true => Ok(()),
                false => Err("no charge".to_owned()),
            }
        })
        .await?;
        let url = format!("{}/ops/lists/charges", server.operations);
        let list = || answered(self.client.get(&url).bearer_auth(OPS_TOKEN));
        let (_, newest) = patiently(|| async { list().await.ok_or_else(|| "no list".to_owned()) }).await?;
        let items = newest["items"].as_array().into_iter().flatten();
        let of_quiet = items.clone().find(|charge| charge["merchant_id"] == self.merchants[quiet].id.as_str());
        let record = of_quiet.and_then(|charge| named_record(charge["record"].as_str()?));
        record.map(|at| at.partition.0.into()).ok_or_else(|| format!("{newest}"))
    }

    /// Lets clients charge and read until something has happened.
    pub(crate) async fn during<T>(&self, writers: usize, readers: usize, event: impl Future<Output = T>) -> T {
        let ending = Arc::new(AtomicBool::new(false));
        let operators = if self.any_serves { OPERATORS } else { 0 };
        let roles =
            [(Role::Charges, writers), (Role::Reads, readers), (Role::Lags, LAGGING), (Role::Operates, operators)];
        let roles = roles.into_iter().flat_map(|(role, count)| std::iter::repeat_n(role, count));
        let clients: Vec<JoinHandle<()>> = roles
            .enumerate()
            .map(|(client, role)| {
                let (recorder, ending) = (self.clone(), Arc::clone(&ending));
                tokio::spawn(async move { recorder.act(client, role, &ending).await })
            })
            .collect();
        let happened = event.await;
        ending.store(true, Ordering::Release);
        for client in clients {
            client.await.expect("a client");
        }
        happened
    }

    /// Notes that something was done to the servers, for [`Recorder::first_answers`].
    pub(crate) fn mark(&self) {
        let now = self.now();
        locked(&self.log).marks.push(now);
    }

    /// The time from each mark to the first acknowledgement of a charge that was sent after it.
    pub(crate) fn first_answers(&self) -> Vec<Duration> {
        let log = locked(&self.log);
        let is_answer = |operation: &&Operation| matches!(operation.what, What::Append(_, Outcome::Acknowledged));
        let after = |mark: &Nanos| {
            let answers = log.history.operations.iter().filter(is_answer).filter(|answer| answer.invoked >= *mark);
            answers.map(|answer| Duration::from_nanos(answer.completed.saturating_sub(*mark))).min()
        };
        log.marks.iter().filter_map(after).collect()
    }

    /// Waits until some sales of the quiet merchant were acknowledged that were asked for from now
    /// on.
    pub(crate) async fn must_go_on(&self) {
        let (now, deadline) = (self.now(), Instant::now() + PATIENCE);
        self.is_quiet.store(false, Ordering::Release);
        let sales = self.merchants[self.merchants.len() - 1].sales;
        let is_acknowledged = |operation: &&Operation| {
            operation.list == sales
                && operation.invoked >= now
                && matches!(operation.what, What::Append(_, Outcome::Acknowledged))
        };
        while locked(&self.log).history.operations.iter().filter(is_acknowledged).count() < 5 {
            let unbooked = || locked(&self.log).unbooked.clone();
            assert!(Instant::now() < deadline, "nobody acknowledges charges since {now}: {:#?}", unbooked());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn now(&self) -> Nanos {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(NEVER - 1)
    }

    async fn act(&self, client: usize, role: Role, ending: &AtomicBool) {
        let mut chance = Chance(client as u64 * 7_919 + self.now());
        let mut address = Address::default();
        while !ending.load(Ordering::Acquire) {
            if address.public.is_empty() {
                address = self.addresses.next(&address).unwrap_or_default();
            }
            if self.any_serves && role != Role::Lags {
                address = self.addresses.any(&mut chance).unwrap_or_default();
            }
            let quiet = self.merchants.len() - 1;
            let charged = quiet + usize::from(!self.is_quiet.load(Ordering::Acquire));
            let merchant = match role {
                Role::Charges => chance.below(charged as u64) as usize,
                Role::Reads | Role::Operates => chance.below(self.merchants.len() as u64) as usize,
                Role::Lags => quiet,
            };
            let is_answered = match role {
                Role::Charges => self.charge(client, &address, merchant).await,
                Role::Reads => self.read(client, &address, merchant, &mut chance).await,
                Role::Lags => self.look(client, &address.public, merchant, "/api/balance").await.is_some(),
                Role::Operates => self.operate(client, &address, merchant, &mut chance).await,
            };
            if role == Role::Lags {
                address = self.addresses.oldest().unwrap_or_default();
            } else if !is_answered {
                address = self.addresses.next(&address).unwrap_or_default();
            }
            let pause = if matches!(role, Role::Charges | Role::Operates) { PAUSE } else { PAUSE_OF_READERS };
            tokio::time::sleep(if is_answered { pause } else { PAUSE_AFTER_FAILURE }).await;
        }
    }

    /// Charges once; false when there was no clear answer.
    async fn charge(&self, client: usize, address: &Address, merchant: usize) -> bool {
        let ask = self.merchants[merchant].next_ask(merchant);
        let invoked = self.now();
        let reply = self.send(&address.public, &ask).await;
        let completed = self.now();
        let is_answered = matches!(reply, Reply::Booked(..));
        locked(&self.log).note_charge(&self.merchants[merchant], client, ask, (invoked, completed), reply);
        is_answered
    }

    async fn send(&self, address: &str, ask: &Ask) -> Reply {
        let request = self.client.post(format!("{address}{}", ask.path)).json(&ask.body);
        let request = request.bearer_auth(&self.merchants[ask.merchant].api_key);
        let request = match ask.has_key {
            true => request.header("Idempotency-Key", ask.element.to_string()),
            false => request,
        };
        let response = match request.send().await {
            Ok(response) => response,
            // Nothing was sent.
            Err(error) if error.is_connect() => return Reply::Refused(error.to_string()),
            Err(error) => return Reply::Unknown(error.to_string()),
        };
        reply(response).await
    }

    /// Reads once; false when there was no clear answer.
    async fn read(&self, client: usize, address: &Address, merchant: usize, chance: &mut Chance) -> bool {
        let of = &self.merchants[merchant];
        let path = match chance.below(8) {
            0..2 => of.charges_path(1, PER_PAGE),
            2..4 => of.statement_path(1, PER_PAGE),
            4..6 => "/api/balance".to_owned(),
            _ => match locked(&self.log).known_charge(merchant, chance) {
                Some(txid) => format!("/api/charges/{txid}"),
                None => return true,
            },
        };
        self.look(client, &address.public, merchant, &path).await.is_some()
    }

    /// Reads what is about all merchants once; false when there was no clear answer.
    async fn operate(&self, client: usize, address: &Address, merchant: usize, chance: &mut Chance) -> bool {
        let path = match chance.below(4) {
            0 => "/ops/trial-balance?per_page=1".to_owned(),
            1 => format!("/ops/trial-balance?ledger=R-{}", self.merchants[merchant].recipient),
            _ => "/ops/lists/charges?per_page=100".to_owned(),
        };
        self.look_over(client, &address.operations, merchant, &path).await.is_some()
    }

    /// Asks, as an operator, for what is about all merchants, and notes what it says.
    async fn look_over(&self, client: usize, address: &str, merchant: usize, path: &str) -> Option<()> {
        let invoked = self.now();
        let (status, body) = answered(self.client.get(format!("{address}{path}")).bearer_auth(OPS_TOKEN)).await?;
        let (at, mut log) = ((client, invoked, self.now()), locked(&self.log));
        match status {
            StatusCode::OK if path.starts_with("/ops/lists/") => log.note_newest(&self.merchants, at, &body),
            StatusCode::OK if path.contains("ledger=") => log.note_ledger(&self.merchants[merchant], at, path, &body),
            StatusCode::OK => log.note_trial_balance(at, &body),
            StatusCode::SERVICE_UNAVAILABLE => return None,
            _ => {
                log.strange.push(format!("{path}: {status} {body}"));
                return None;
            }
        }
        Some(())
    }

    /// Asks for a page, a balance or a charge, and notes what it says.
    async fn look(&self, client: usize, address: &str, merchant: usize, path: &str) -> Option<Value> {
        let of = &self.merchants[merchant];
        let request = self.client.get(format!("{address}{path}")).bearer_auth(&of.api_key);
        let invoked = self.now();
        let answered = answered(request).await;
        let mut log = locked(&self.log);
        let at = (client, invoked, self.now());
        match answered {
            Some((StatusCode::OK, body)) => {
                log.note_read(of, at, path, &body);
                Some(body)
            }
            other => {
                log.note(at, of.charges, What::Read(ReadResult::Nothing));
                if let Some((status, body)) = other.filter(|(status, _)| *status != StatusCode::SERVICE_UNAVAILABLE) {
                    log.strange.push(format!("{path}: {status} {body}"));
                }
                None
            }
        }
    }

    /// Asks again, with their keys, for all that is still unknown, and looks for the others in the
    /// lists; then whether what was pending was captured. Some answers that were given are
    /// asked for once more. Then all lists are read.
    async fn settle(&self, server: &Server) -> Result<(), String> {
        let charges = locked(&self.log).charges.clone();
        for (place, charge) in charges.iter().enumerate().filter(|(_, charge)| charge.ask.has_key) {
            let is_unknown = locked(&self.log).outcome(charge.listed) == Outcome::Unknown;
            if is_unknown || (place.is_multiple_of(7) && charge.answer.is_some()) {
                let (answer, sequence) = patiently(|| self.answer_again(server, &charge.ask)).await?;
                let now = self.now();
                locked(&self.log).note_answer(place, answer, sequence, now);
            }
        }
        for (place, merchant) in self.merchants.iter().enumerate() {
            self.read_all(server, place, |page| merchant.charges_path(page, PER_PAGE_MAX)).await?;
        }
        let now = self.now();
        locked(&self.log).look_for_those_without_key(now);
        // A charge whose acquirer was being asked is found by the reconciliation, 60 seconds later.
        patiently(|| async {
            operate(&self.client, server, "/ops/sandbox/clock", &json!({"advance_seconds": 61})).await
        })
        .await?;
        let charges = locked(&self.log).charges.clone();
        for charge in charges.iter().filter(|charge| charge.answer.is_some()) {
            let Some(sold) = charge.sold else { continue };
            if locked(&self.log).outcome(sold) == Outcome::Unknown {
                patiently(|| self.ask_for_end(server, charge, sold)).await?;
            }
        }
        for (place, merchant) in self.merchants.iter().enumerate() {
            self.read_all(server, place, |page| merchant.charges_path(page, PER_PAGE_MAX)).await?;
            self.read_all(server, place, |page| merchant.statement_path(page, PER_PAGE_MAX)).await?;
            self.must_see(server, place, "/api/balance").await?;
            if self.any_serves {
                let ledger = format!("/ops/trial-balance?ledger=R-{}", merchant.recipient);
                let seen = || async {
                    self.look_over(THE_END, &server.operations, place, &ledger).await.ok_or_else(|| ledger.clone())
                };
                patiently(seen).await?;
            }
        }
        Ok(())
    }

    /// The answer to a request that is repeated.
    async fn answer_again(&self, server: &Server, ask: &Ask) -> Result<(Option<Answer>, Option<u64>), String> {
        match self.send(&server.public, ask).await {
            Reply::Booked(answer, sequence) => Ok((Some(answer), sequence)),
            Reply::Refused(why) if why.starts_with('4') => Ok((None, None)),
            Reply::Refused(why) | Reply::Unknown(why) => Err(format!("no answer to a repeated request: {why}")),
        }
    }

    /// Whether a charge that was pending is a sale.
    async fn ask_for_end(&self, server: &Server, charge: &Charge, sold: usize) -> Result<(), String> {
        let txid = charge.answer.as_ref().map(|answer| answer.txid.clone()).unwrap_or_default();
        let body = self.must_see(server, charge.ask.merchant, &format!("/api/charges/{txid}")).await?;
        let outcome = match body["status"].as_str() {
            Some("CONCLUIDA") => Outcome::Acknowledged,
            Some("RECUSADA") => Outcome::Refused,
            other => return Err(format!("{txid} is still {other:?}")),
        };
        let now = self.now();
        locked(&self.log).decide(sold, outcome, now);
        Ok(())
    }

    async fn must_see(&self, server: &Server, merchant: usize, path: &str) -> Result<Value, String> {
        let seen = patiently(|| async {
            self.look(THE_END, &server.public, merchant, path).await.ok_or_else(|| format!("{path} has no answer"))
        });
        seen.await
    }

    async fn read_all(&self, server: &Server, merchant: usize, path: impl Fn(u64) -> String) -> Result<(), String> {
        let (mut page, mut pages) = (1, 1);
        while page <= pages {
            pages = self.must_see(server, merchant, &path(page)).await?["pages"].as_u64().unwrap_or_default();
            page += 1;
        }
        Ok(())
    }

    /// Settles and judges: what cannot be settled may have its reason in the history.
    pub(crate) async fn settle_and_judge(&self, server: &Server, name: &str) -> Result<String, String> {
        let settled = self.settle(server).await;
        let judged = self.judge(name);
        settled.map_err(|error| format!("{error}\n{}", judged.as_ref().err().unwrap_or(&server.said())))?;
        judged
    }

    /// Judges the history. Gives a summary; an error has the faults, and where the history is.
    fn judge(&self, name: &str) -> Result<String, String> {
        let mut log = locked(&self.log);
        log.place_tails();
        log.compare_cuts();
        let mut found: Vec<String> =
            faults(&log.history).iter().chain(&unsettled(&log.history)).map(Fault::to_string).collect();
        found.extend(log.strange.iter().map(|text| format!("Strange: {text}")));
        let folder_wanted = std::env::var_os("CENTAVO_HISTORY").map(PathBuf::from);
        if found.is_empty() && folder_wanted.is_none() {
            return Ok(log.summary());
        }
        let folder = folder_wanted.unwrap_or_else(std::env::temp_dir);
        let file = folder.join(format!("history-{name}-{}.edn", std::process::id()));
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, edn::written(&log.history)));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        if found.is_empty() {
            return Ok(format!("{}; in {}", log.summary(), file.display()));
        }
        let count = found.len();
        // Some of each rule.
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        found.retain(|fault| {
            let of_rule = shown.entry(fault.split(':').next().unwrap_or_default().to_owned()).or_default();
            *of_rule += 1;
            *of_rule <= 4
        });
        Err(format!("{count} faults, the history is in {}:\n{}", file.display(), found.join("\n")))
    }

    /// The history, for another judge.
    pub(crate) fn history(&self) -> History {
        locked(&self.log).history.clone()
    }

    /// The sales by the charge's id, with their amounts.
    pub(crate) fn sales(&self) -> BTreeMap<String, u64> {
        let log = locked(&self.log);
        let is_sold = |charge: &&Charge| charge.sold.is_some_and(|sold| log.outcome(sold) == Outcome::Acknowledged);
        let sold = log.charges.iter().filter(is_sold);
        sold.filter_map(|charge| Some((charge.answer.as_ref()?.txid.clone(), charge.ask.element))).collect()
    }
}

/// The captures that the sandbox's acquirer has on record in a data folder, by the charge's id,
/// with their amounts.
pub(crate) fn captures(data: &Path) -> BTreeMap<String, u64> {
    let mut captures = BTreeMap::new();
    for entry in fs::read_dir(data.join("sandbox/acquirer")).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("captures-")) {
            for line in fs::read_to_string(path).unwrap().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                captures.insert(words[0].replace('-', ""), words[1].parse().unwrap());
            }
        }
    }
    captures
}

/// Tries again until there is a clear answer.
async fn patiently<T, F: Future<Output = Result<T, String>>>(mut attempt: impl FnMut() -> F) -> Result<T, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt().await {
            Err(_) if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(200)).await,
            done => return done,
        }
    }
}

/// The status and the body of an answer, if there is one.
async fn answered(request: reqwest::RequestBuilder) -> Option<(StatusCode, Value)> {
    let response = request.send().await.ok()?;
    Some((response.status(), response.json::<Value>().await.ok()?))
}

async fn reply(response: Response) -> Reply {
    let status = response.status();
    let sequence = response.headers().get("centavo-sequence").and_then(|value| value.to_str().ok()?.parse().ok());
    let body: Value = match response.json().await {
        Ok(body) => body,
        Err(error) => return Reply::Unknown(error.to_string()),
    };
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let code = text("code");
    match status {
        StatusCode::CREATED | StatusCode::PAYMENT_REQUIRED => {
            Reply::Booked(Answer { status, txid: text("txid"), state: text("status") }, sequence)
        }
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Reply::Refused(format!("{status} {code}")),
        // Nothing was begun.
        StatusCode::SERVICE_UNAVAILABLE if ["store_unavailable", "overloaded"].contains(&code.as_str()) => {
            Reply::Refused(code)
        }
        _ => Reply::Unknown(format!("{status} {code}")),
    }
}

impl Merchant {
    async fn open(client: &Client, server: &Server, charges: usize, sales: usize) -> Result<Self, String> {
        let body =
            json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": false});
        let merchant = operate(client, server, "/ops/merchants", &body).await?["id"].clone();
        let merchant = merchant.as_str().unwrap_or_default().to_owned();
        let key = operate(client, server, &format!("/ops/merchants/{merchant}/api-keys"), &json!({})).await?;
        let api_key = key["api_key"].as_str().unwrap_or_default().to_owned();
        let body = json!({
            "register_information": {
                "type": "individual", "document_number": "12345678909", "name": "Maria", "birthdate": "01/02/1980",
                "mother_name": "Ana", "phone_numbers": [{"ddd": "11", "number": "999999999"}],
                "address": {"street": "Rua A", "number": "1", "neighborhood": "B", "city": "C", "state": "SP",
                    "zip_code": "01000000"}
            },
            "bank_account": {"bank_code": "001", "agencia": "1", "conta": "12"}
        });
        let request = client.post(format!("{}/api/sub-recipients", server.public)).bearer_auth(&api_key).json(&body);
        let response = request.send().await.map_err(|error| error.to_string())?;
        let recipient: Value = response.json().await.map_err(|error| error.to_string())?;
        let recipient = recipient["id"].as_str().ok_or_else(|| format!("no recipient: {recipient}"))?.to_owned();
        operate(client, server, &format!("/ops/sub-recipients/{recipient}/approve"), &json!({})).await?;
        Ok(Self { id: merchant, api_key, recipient, charges, sales, next: AtomicU64::new(AMOUNT) })
    }

    fn charges_path(&self, page: u64, per_page: u64) -> String {
        format!("/api/charges?per_page={per_page}&page={page}")
    }

    fn statement_path(&self, page: u64, per_page: u64) -> String {
        format!("/api/dashboard/sub-recipients/{}/splits?per_page={per_page}&page={page}", self.recipient)
    }

    /// Of ten charges one is by PIX, one by a card that is declined, one has splits that reach its
    /// total; the others are captured. One of these has no idempotency key.
    fn next_ask(&self, merchant: usize) -> Ask {
        let element = self.next.fetch_add(1, Ordering::Relaxed);
        let (path, body) = match element % 10 {
            0 => {
                let valor = format!("{}.{:02}", element / 100, element % 100);
                ("/api/pix", json!({"valor": valor, "nome": "Pedro", "cpf": "12345678909"}))
            }
            kind => {
                let number = if kind == 1 { "4000000000000002" } else { "4111111111111111" };
                let split = if kind == 2 { element as i64 } else { SPLIT };
                let body = json!({
                    "amount": element,
                    "customer": {"name": "Pedro", "email": "pedro@example.com", "document": "12345678909"},
                    "card": {"number": number, "holder_name": "PEDRO", "exp_month": "12", "exp_year": "2039", "cvv": "123"},
                    "splits": [{"sub_recipient_id": self.recipient, "amount": split}]
                });
                ("/api/card", body)
            }
        };
        Ask { merchant, element, has_key: element % 10 != 3, path, body }
    }
}

impl Log {
    fn note(&mut self, at: (usize, Nanos, Nanos), list: usize, what: What) -> usize {
        let (client, invoked, completed) = at;
        self.history.operations.push(Operation { client, list, invoked, completed, what });
        self.history.operations.len() - 1
    }

    fn outcome(&self, append: usize) -> Outcome {
        match self.history.operations[append].what {
            What::Append(_, outcome) => outcome,
            What::Read(_) => Outcome::Unknown,
        }
    }

    fn decide(&mut self, append: usize, outcome: Outcome, now: Nanos) {
        let operation = &mut self.history.operations[append];
        if let What::Append(element, Outcome::Unknown) = operation.what {
            operation.what = What::Append(element, outcome);
            operation.completed = now;
        }
    }

    fn note_charge(&mut self, of: &Merchant, client: usize, ask: Ask, at: (Nanos, Nanos), reply: Reply) {
        let (invoked, completed) = at;
        let append = |outcome| What::Append(ask.element, outcome);
        let is_refused = matches!(reply, Reply::Refused(_));
        if let Reply::Refused(text) | Reply::Unknown(text) = &reply {
            self.unbooked.push_back((completed, text.clone()));
            self.unbooked.drain(..self.unbooked.len().saturating_sub(UNBOOKED_MAX));
        }
        let (outcome, completed) = if is_refused { (Outcome::Refused, completed) } else { (Outcome::Unknown, NEVER) };
        let listed = self.note((client, invoked, completed), of.charges, append(outcome));
        let is_card = ask.path == "/api/card";
        let sold = is_card.then(|| self.note((client, invoked, completed), of.sales, append(outcome)));
        self.charges.push(Charge { ask, listed, sold, answer: None });
        if let Reply::Booked(answer, sequence) = reply {
            self.note_answer(self.charges.len() - 1, Some(answer), sequence, at.1);
        }
    }

    /// Notes the answer to a charge: the first one, or one that must be the same. None means that
    /// it was refused.
    fn note_answer(&mut self, place: usize, answer: Option<Answer>, sequence: Option<u64>, now: Nanos) {
        let Charge { ask, listed, sold, answer: before } = self.charges[place].clone();
        let Some(answer) = answer else {
            if before.is_some() {
                self.strange.push(format!("{before:?}, and then {} was refused", ask.element));
            }
            for append in [Some(listed), sold].into_iter().flatten() {
                self.decide(append, Outcome::Refused, now);
            }
            return;
        };
        if before.as_ref().is_some_and(|before| *before != answer) {
            self.strange.push(format!("{before:?}, and then {answer:?} to the same request"));
        }
        let list = self.history.operations[listed].list;
        let list = &mut self.history.lists[list];
        list.names.entry(ask.element).or_default().insert(answer.txid.clone());
        list.sequences.entry(ask.element).or_default().extend(sequence);
        self.decide(listed, Outcome::Acknowledged, now);
        match (sold, answer.state.as_str()) {
            (Some(sold), "CONCLUIDA") => self.decide(sold, Outcome::Acknowledged, now),
            (Some(sold), "RECUSADA") => self.decide(sold, Outcome::Refused, now),
            _ => {}
        }
        self.charges[place].answer.get_or_insert(answer);
    }

    /// Decides about charges that were asked for without a key, and got no answer: they are in the
    /// lists that were read, or never will be.
    fn look_for_those_without_key(&mut self, now: Nanos) {
        for place in 0..self.charges.len() {
            let Charge { ask, listed, .. } = self.charges[place].clone();
            if ask.has_key || self.outcome(listed) != Outcome::Unknown {
                continue;
            }
            let names = self.history.lists[self.history.operations[listed].list].names.get(&ask.element);
            match names.and_then(|names| names.first().cloned()) {
                Some(txid) => {
                    self.decide(listed, Outcome::Acknowledged, now);
                    let answer = Answer { status: StatusCode::CREATED, txid, state: String::new() };
                    self.charges[place].answer = Some(answer);
                }
                None => self.note_answer(place, None, None, now),
            }
        }
    }

    /// The id of some charge of a merchant that was acknowledged.
    fn known_charge(&self, merchant: usize, chance: &mut Chance) -> Option<String> {
        let recent = self.charges.iter().rev().filter(|charge| charge.ask.merchant == merchant);
        let known: Vec<&Answer> = recent.take(60).filter_map(|charge| charge.answer.as_ref()).collect();
        let place = chance.below(known.len().max(1) as u64) as usize;
        known.get(place).map(|answer| answer.txid.clone())
    }

    fn note_read(&mut self, of: &Merchant, at: (usize, Nanos, Nanos), path: &str, body: &Value) {
        let amount = |value: &Value| value.as_i64().unwrap_or_default();
        match path {
            "/api/balance" => {
                let [available, pending, reserved, deficit] =
                    ["available", "pending", "reserved", "deficit"].map(|name| amount(&body[name]));
                let sum = available + pending + reserved - deficit;
                self.note(at, of.sales, What::Read(ReadResult::Sum(sum)));
            }
            path if path.starts_with("/api/charges/") => self.note_one(of, at, body),
            path if path.starts_with("/api/charges") => {
                for charge in body["items"].as_array().into_iter().flatten() {
                    if let Some(net) = charge["breakdown"]["sellerAmount"].as_i64() {
                        let element = amount(&charge["amount"]) as Element;
                        self.history.lists[of.sales].values.insert(element, net);
                    }
                }
                let shown = |charge: &Value| (amount(&charge["amount"]) as Element, charge["txid"].clone());
                self.note_page(of.charges, at, path, body, shown);
            }
            path => {
                let shown =
                    |split: &Value| (amount(&split["payment"]["gross_amount"]) as Element, split["payment_id"].clone());
                self.note_page(of.sales, at, path, body, shown);
                let money: i64 = ["available", "pending", "paid", "reserved"]
                    .iter()
                    .map(|name| amount(&body["balance"][*name]))
                    .sum();
                self.note_money(of, at, path, money);
            }
        }
    }

    /// A page of a list, whose newest elements come first.
    fn note_page(
        &mut self,
        list: usize,
        at: (usize, Nanos, Nanos),
        path: &str,
        body: &Value,
        shown: impl Fn(&Value) -> (Element, Value),
    ) {
        let items: Vec<_> = body["items"].as_array().into_iter().flatten().rev().map(shown).collect();
        for (element, name) in &items {
            let name = name.as_str().unwrap_or_default().to_owned();
            self.history.lists[list].names.entry(*element).or_default().insert(name);
        }
        let number = |name: &str| body[name].as_u64().unwrap_or_default();
        let (length, before) = (number("total"), number("page").saturating_sub(1) * number("per_page"));
        let elements: Vec<Element> = items.into_iter().map(|(element, _)| element).collect();
        if length < before + elements.len() as u64 {
            self.strange.push(format!("{path}: {length} in all, and {} after {before}", elements.len()));
        }
        let first = length.saturating_sub(before + elements.len() as u64);
        self.note(at, list, What::Read(ReadResult::Page { first, elements, length }));
    }

    /// One charge: it is in the list, and in that of the sales if it was captured.
    fn note_one(&mut self, of: &Merchant, at: (usize, Nanos, Nanos), charge: &Value) {
        let element = charge["amount"].as_u64().unwrap_or_default();
        self.note(at, of.charges, What::Read(ReadResult::Has(element, true)));
        if charge["payment_method"] != "pix" {
            self.note(at, of.sales, What::Read(ReadResult::Has(element, charge["status"] == "CONCLUIDA")));
        }
    }

    /// The recipient's balance gives the length of the list of sales.
    fn note_money(&mut self, of: &Merchant, at: (usize, Nanos, Nanos), path: &str, money: i64) {
        match u64::try_from(money / SPLIT) {
            Ok(length) if money % SPLIT == 0 => {
                self.note(at, of.sales, What::Read(ReadResult::Length(length)));
            }
            _ => self.strange.push(format!("{path}: the recipient has {money}")),
        }
    }

    /// The newest charges of all merchants: of each it is a read of the end of its list.
    fn note_newest(&mut self, merchants: &[Merchant], at: (usize, Nanos, Nanos), body: &Value) {
        let items: Vec<&Value> = body["items"].as_array().into_iter().flatten().rev().collect();
        for merchant in merchants {
            let of_merchant = items.iter().filter(|charge| charge["merchant_id"] == merchant.id.as_str());
            let elements: Vec<Element> = of_merchant.filter_map(|charge| charge["amount"].as_u64()).collect();
            if !elements.is_empty() {
                self.tails.push(Tail { at: ahead(at), list: merchant.charges, elements });
            }
        }
    }

    /// A recipient's ledger: its money is its part of each sale.
    fn note_ledger(&mut self, of: &Merchant, at: (usize, Nanos, Nanos), path: &str, body: &Value) {
        let accounts = body["accounts"].as_array().into_iter().flatten();
        let money = accounts.filter(|row| row["account"].as_str().is_some_and(|name| name.starts_with("Assets:")));
        let money: i64 = money.map(|row| row["balance"].as_i64().unwrap_or_default()).sum();
        self.note_money(of, ahead(at), path, money);
        self.note_trial_balance(at, body);
    }

    fn note_trial_balance(&mut self, (_, invoked, completed): (usize, Nanos, Nanos), body: &Value) {
        if body["balanced"] != true {
            self.strange.push(format!("the books do not balance: {body}"));
        }
        let cut = body["cut"].as_object().into_iter().flatten();
        let cut = cut.map(|(partition, last)| (partition.clone(), last.as_u64().unwrap_or_default())).collect();
        self.cuts.push(CutRead { invoked, completed, cut });
    }

    /// Says of each end of a list how long the list was, which its last element shows now.
    fn place_tails(&mut self) {
        for list in 0..self.history.lists.len() {
            let places = elements_by_place(&self.history.of_list(list).collect::<Vec<_>>());
            let places: BTreeMap<Element, u64> = places.into_iter().map(|(place, element)| (element, place)).collect();
            let tails: Vec<Tail> = self.tails.extract_if(.., |tail| tail.list == list).collect();
            for Tail { at, elements, .. } in tails {
                let last = elements[elements.len() - 1];
                let result = match places.get(&last).map(|place| place + 1) {
                    Some(length) => {
                        ReadResult::Page { first: length.saturating_sub(elements.len() as u64), elements, length }
                    }
                    None => ReadResult::Has(last, true),
                };
                self.note(at, list, What::Read(result));
            }
        }
    }

    /// What a read counted, a later one counts too.
    fn compare_cuts(&mut self) {
        let mut found = Vec::new();
        for later in &self.cuts {
            for earlier in self.cuts.iter().filter(|earlier| earlier.completed < later.invoked) {
                let went_back = |partition: &&String| later.cut.get(*partition) < earlier.cut.get(*partition);
                if let Some(partition) = earlier.cut.keys().find(went_back) {
                    let (before, after) = (&earlier.cut[partition], later.cut.get(partition));
                    found.push(format!(
                        "partition {partition} was read up to {before}, then up to {after:?} (from {} to {})",
                        earlier.completed, later.invoked
                    ));
                }
            }
        }
        self.cuts.clear();
        self.strange.extend(found);
    }

    fn summary(&self) -> String {
        let count = |is_so: &dyn Fn(&What) -> bool| {
            self.history.operations.iter().filter(|operation| is_so(&operation.what)).count()
        };
        let appended = count(&|what| matches!(what, What::Append(_, Outcome::Acknowledged)));
        let refused = count(&|what| matches!(what, What::Append(_, Outcome::Refused)));
        let reads = count(&|what| matches!(what, What::Read(reads) if *reads != ReadResult::Nothing));
        let nothing = count(&|what| matches!(what, What::Read(ReadResult::Nothing)));
        format!("{appended} appends, {refused} refused, {reads} reads, {nothing} without an answer: linearizable")
    }
}

/// The trial balance of all books must balance.
pub(crate) async fn must_balance(server: &Server) -> Result<(), String> {
    let client = testkit::callers::client();
    patiently(|| async {
        let url = format!("{}/ops/trial-balance", server.operations);
        let response = client.get(url).bearer_auth(OPS_TOKEN).send().await.map_err(|error| error.to_string())?;
        let trial: Value = response.json().await.map_err(|error| error.to_string())?;
        if trial["balanced"] == true { Ok(()) } else { Err(format!("the books do not balance: {}", trial["code"])) }
    })
    .await
}

/// The time of a read of what is about all merchants. The node that has the house reads the
/// journals of the others, so it may show a charge that is durable before the charge's own node has
/// learnt of its commit: what such a read shows, a later one of that node need not show yet. It
/// shows itself whatever was shown before it began.
fn ahead((client, invoked, _): (usize, Nanos, Nanos)) -> (usize, Nanos, Nanos) {
    (client, invoked, NEVER - 1)
}
