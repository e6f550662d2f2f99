//! `centavo demo`: a sandbox that demonstrates charges and goes on serving.
//!
//! It calls its own listeners over HTTP with credentials, as any client does. It opens a merchant
//! with three sub-recipients, has a PIX charge paid, and charges many cards at once. Each card
//! charge is split four ways, and makes two Records that are durable before the answer leaves. A
//! second start on the same folder continues the books of the first.

mod client;
mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use axum::http::{Method, StatusCode};
use chrono::{DateTime, Datelike};
use indicatif::ProgressBar;
use ledger::{GroupNumber, LedgerId, MerchantProfile, SealedFor};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use self::client::Client;
use crate::commands::terminal;
use crate::commands::terminal::{count, say};
use crate::server::RunningServer;
use actors::engine::Engine;
use ops::invented_parties;
use web::Secret;
use web::network::reachable;

pub use self::client::CallError;

/// Charges under way at once.
const IN_FLIGHT: u64 = 64;
/// Charges a second of a release build with as many connections, by docs/performance.md.
const MEASURED: u64 = 24_644;
/// Lines of the statement that is printed.
const STATEMENT_LINES: u8 = 5;

/// Settings of the demonstration.
pub struct Guide {
    /// The data directory.
    pub data: PathBuf,
    /// Operator's token that the demonstration uses.
    pub operator: Secret,
    /// File of that token, when it was made with the data: it is named.
    pub ops_token_file: Option<PathBuf>,
    /// Number of cards to charge.
    pub charges: u64,
    /// Where webhooks are sent at the end.
    pub webhook: Option<String>,
}

/// Runs the demonstration. The program serves meanwhile and afterwards.
pub async fn show(running: &RunningServer, guide: &Guide) -> Result<(), CallError> {
    introduce(running, guide);
    let stage = Stage::set(running, guide).await?;
    stage.show_credentials(guide);
    stage.pay_pix().await?;
    stage.charge_cards(guide.charges).await?;
    stage.show_books().await?;
    stage.call_webhook(guide).await?;
    stage.show_next_steps(guide);
    say("");
    say("Serving. Ctrl-C stops.");
    Ok(())
}

fn introduce(running: &RunningServer, guide: &Guide) {
    let cores = available_parallelism().map_or(1, usize::from);
    let data = std::path::absolute(&guide.data).unwrap_or_else(|_| guide.data.clone());
    let console = format!("http://{}/console", reachable(running.operations));
    let rows = [
        ["console".to_owned(), format!("{console}, where operators sign in with their token")],
        ["mode", "sandbox: cards, banks and money are played, the books are real"].map(str::to_owned),
        ["store".to_owned(), format!("embedded and durable, at {}", data.display())],
        ["machine".to_owned(), format!("{cores} cores{}", if cfg!(debug_assertions) { ", a debug build" } else { "" })],
        ["merchants".to_owned(), format!("http://{}", reachable(running.public))],
        ["operators".to_owned(), format!("http://{}", reachable(running.operations))],
    ];
    say("Centavo, a demonstration");
    say("");
    terminal::aligned(&rows, 2).iter().for_each(|line| say(&format!("  {line}")));
    say("");
}

/// State of the demonstration: the merchant, its recipients and an API key.
struct Stage<'a> {
    running: &'a RunningServer,
    group: GroupNumber,
    /// Calls the merchants' listener with the key.
    merchant: Client,
    api_key: String,
    /// Id of that key, and the secret of its webhooks.
    webhook_key: [String; 2],
    /// Calls the operators' listener.
    operations: Client,
    /// Ids of the recipients, in the order of [`invented_parties::RECIPIENTS`].
    recipients: Vec<String>,
    year: i32,
}

impl<'a> Stage<'a> {
    /// Finds or opens the merchant, makes a key, and registers and approves the recipients.
    async fn set(running: &'a RunningServer, guide: &Guide) -> Result<Self, CallError> {
        let engine = &running.engine;
        let records = engine.records_published();
        let operations = Client::new(running.operations, guide.operator.reveal())?;
        let found = find_merchant(engine);
        if records > 0 {
            say(&format!("This folder has books already: {} Records. They are continued.", count(records)));
        }
        let id = match found {
            Some(group) => engine.merchant(group, |row| row.id.uuid().to_string()).unwrap_or_default(),
            None => {
                let opened =
                    operations.expect(Method::POST, "/ops/merchants", Some(&invented_parties::merchant())).await?;
                text(&opened, "id").to_owned()
            }
        };
        let path = format!("/ops/merchants/{id}/api-keys");
        let key = operations.expect(Method::POST, &path, Some(&json!({}))).await?;
        let api_key = text(&key, "api_key").to_owned();
        let webhook_key = ["id", "webhook_secret"].map(|member| text(&key, member).to_owned());
        let merchant = Client::new(running.public, &api_key)?;
        let mut recipients = Vec::new();
        for recipient in &invented_parties::RECIPIENTS {
            let body = invented_parties::registration(recipient.name, recipient.document);
            let registered = merchant.expect(Method::POST, "/api/sub-recipients", Some(&body)).await?;
            let recipient_id = text(&registered, "id").to_owned();
            if text(&registered, "status") != "active" {
                let path = format!("/ops/sub-recipients/{recipient_id}/approve");
                operations.expect(Method::POST, &path, None).await?;
            }
            recipients.push(recipient_id);
        }
        let now = DateTime::from_timestamp_millis(engine.now().0).unwrap_or_default();
        let group = found.or_else(|| find_merchant(engine)).unwrap_or_default();
        introduce_cast(&id, &recipients);
        if found.is_some() {
            let balance = merchant.expect(Method::GET, "/api/balance", None).await?;
            say(&format!("  from earlier starts: {}", report::balance(&balance)));
        }
        say("");
        Ok(Self { running, group, merchant, api_key, webhook_key, operations, recipients, year: now.year() + 4 })
    }

    fn show_credentials(&self, guide: &Guide) {
        say(&format!("API key, shown only now:           {}", self.api_key));
        if let Some(path) = &guide.ops_token_file {
            say(&format!("Operator's token:                in {}", path.display()));
        }
        say("");
        say("Charge a card yourself, R$ 100,00 with a part for each of the three:");
        say("");
        let body = invented_parties::card(0, 10_000, &self.recipients, self.year);
        say(&report::curl(reachable(self.running.public), &self.api_key, &body));
        say("");
    }

    /// Sets the address of webhooks, and makes events for it. Had it been set before, each of the
    /// many charges would have sent one.
    async fn call_webhook(&self, guide: &Guide) -> Result<(), CallError> {
        let (Some(url), [id, secret]) = (&guide.webhook, &self.webhook_key) else { return Ok(()) };
        let path = format!("/ops/api-keys/{id}");
        self.operations.expect(Method::PATCH, &path, Some(&json!({ "webhook_url": url }))).await?;
        say("");
        say(&format!("Webhooks go to {url} from now on, signed with {secret}"));
        self.pay_pix().await
    }

    /// Prints commands for a second terminal.
    fn show_next_steps(&self, guide: &Guide) {
        let program = std::env::args().next().unwrap_or_else(|| "centavo".to_owned());
        let addresses = [self.running.public, self.running.operations].map(reachable);
        let [listen, trigger] =
            report::next_commands(&program, addresses, &self.api_key, guide.ops_token_file.as_deref());
        let next = [
            ("Receive its webhooks on this machine", listen),
            ("Make an event happen: a payer's bank wants a charge back, an operator approves a refund, …", trigger),
            ("From the sources: a shop with three sellers", "examples/marketplace/run".to_owned()),
            ("Try each endpoint", format!("http://{}/reference", addresses[0])),
        ];
        say("");
        say("What to try next, in a second terminal or a browser:");
        for (what, how) in next {
            say("");
            say(&format!("  {what}:"));
            say(&format!("    {how}"));
        }
    }

    /// Makes a PIX charge and has the sandbox pay it: its money is available at once.
    async fn pay_pix(&self) -> Result<(), CallError> {
        let charge = self
            .merchant
            .expect(Method::POST, "/api/pix", Some(&invented_parties::pix(8_000, &self.recipients)))
            .await?;
        let path = format!("/api/sandbox/pix/{}/pay", text(&charge, "txid"));
        self.merchant.expect(Method::POST, &path, None).await?;
        say("A PIX charge of R$ 80,00 was paid: its splits are available at once.");
        Ok(())
    }

    /// Charges many cards at once, and prints the rate and the latencies.
    async fn charge_cards(&self, charges: u64) -> Result<(), CallError> {
        if charges == 0 {
            return Ok(());
        }
        let bar = terminal::bar("charging cards", "charges");
        bar.set_length(charges);
        let next = Arc::new(AtomicU64::new(0));
        let records = self.running.engine.records_published();
        let begun = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..IN_FLIGHT.min(charges) {
            let (client, next, recipients) = (self.merchant.clone(), Arc::clone(&next), self.recipients.clone());
            callers.spawn(call_often(client, next, charges, recipients, self.year, bar.clone()));
        }
        let mut answers = Answers::default();
        while let Some(done) = callers.join_next().await {
            answers.add(done??);
        }
        let took = begun.elapsed();
        bar.finish_and_clear();
        let records = self.running.engine.records_published() - records;
        answers.report(took, records).iter().for_each(|line| say(line));
        Ok(())
    }

    /// Prints the trial balance, the merchant's balance, and the first lines of a recipient's
    /// statement.
    async fn show_books(&self) -> Result<(), CallError> {
        let balance = self.merchant.expect(Method::GET, "/api/balance", None).await?;
        let path = format!("/api/dashboard/sub-recipients/{}/splits?per_page={STATEMENT_LINES}", self.recipients[0]);
        let statement = self.merchant.expect(Method::GET, &path, None).await?;
        let (through, rows) = self.running.engine.trial_balance();
        say("");
        say(&format!("Trial balance after Record {}, in reais", count(through.records())));
        say("");
        report::trial_balance(self.group, &rows).iter().for_each(|line| say(&format!("  {line}")));
        say("");
        say(&format!("{}: {}", invented_parties::MERCHANT, report::balance(&balance)));
        say("");
        let name = invented_parties::RECIPIENTS[0].name;
        report::statement(name, &statement).iter().for_each(|line| say(line));
        Ok(())
    }
}

fn introduce_cast(id: &str, recipients: &[String]) {
    let mut rows =
        vec![[invented_parties::MERCHANT.to_owned(), format!("M-{id}"), "keeps the rest, less fees".to_owned()]];
    for (recipient, id) in invented_parties::RECIPIENTS.iter().zip(recipients) {
        let part = format!("gets {} % of every charge, approved", recipient.percent);
        rows.push([recipient.name.to_owned(), format!("R-{id}"), part]);
    }
    terminal::aligned(&rows, 3).iter().for_each(|line| say(&format!("  {line}")));
}

/// The merchant of an earlier start, found by its tax id.
fn find_merchant(engine: &Engine) -> Option<GroupNumber> {
    let is_ours = |group: &GroupNumber| {
        let sealed = engine.merchant(*group, |row| row.profiles.current().cloned()).flatten();
        let profile: Option<MerchantProfile> =
            sealed.and_then(|sealed| engine.keyring().open_value(SealedFor::merchant(*group), &sealed));
        profile.is_some_and(|profile| profile.document == invented_parties::MERCHANT_DOCUMENT)
    };
    engine.groups().into_iter().filter(is_ours).min()
}

/// One caller: makes one charge after the other, until `charges` were begun by all callers.
async fn call_often(
    client: Client,
    next: Arc<AtomicU64>,
    charges: u64,
    recipients: Vec<String>,
    year: i32,
    bar: ProgressBar,
) -> Result<Answers, CallError> {
    let mut answers = Answers::default();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= charges {
            return Ok(answers);
        }
        let body = invented_parties::card(number, invented_parties::amount(number), &recipients, year);
        let begun = Instant::now();
        let (status, _) = client.call(Method::POST, "/api/card", Some(&body)).await?;
        if status == StatusCode::CREATED {
            answers.latencies.push(begun.elapsed());
        } else {
            *answers.others.entry(status.as_u16()).or_default() += 1;
        }
        bar.inc(1);
    }
}

/// Answers to the charges.
#[derive(Default)]
struct Answers {
    /// Latencies of the captured charges.
    latencies: Vec<Duration>,
    /// Number of other answers, by status.
    others: BTreeMap<u16, u64>,
}

impl Answers {
    fn add(&mut self, more: Answers) {
        self.latencies.extend(more.latencies);
        for (status, count) in more.others {
            *self.others.entry(status).or_default() += count;
        }
    }

    fn report(mut self, took: Duration, records: u64) -> Vec<String> {
        self.latencies.sort_unstable();
        let captured = self.latencies.len();
        let rate = captured as f64 / took.as_secs_f64();
        let ms = |percent| self.percentile(percent).as_secs_f64() * 1_000.0;
        let mut lines = vec![
            format!(
                "{} card charges in {:.2} s: {rate:.0} charges/s, p50 {:.1} ms, p99 {:.1} ms.",
                count(captured as u64),
                took.as_secs_f64(),
                ms(50),
                ms(99),
            ),
            format!(
                "  At most {IN_FLIGHT} in flight over HTTP, callers on the same machine; {} Records, each durable before its answer.",
                count(records)
            ),
            format!(
                "  A release build did {} a second on two cores; a slow hour of a shared machine halves it (docs/performance.md).",
                count(MEASURED)
            ),
        ];
        let others = self.others.iter();
        lines.extend(others.map(|(status, number)| format!("  {} were answered {status}.", count(*number))));
        lines
    }

    /// The latency that `percent` of the charges did not exceed (nearest rank); zero when there is
    /// none.
    fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
        self.latencies.get(rank - 1).copied().unwrap_or_default()
    }
}

fn text<'a>(body: &'a Value, field: &str) -> &'a str {
    body[field].as_str().unwrap_or_default()
}

/// Short name of a ledger of the demonstration's group, also as part of an account's name.
fn short_name(ledger: LedgerId) -> String {
    let last = |name: &str| name.split(' ').next_back().unwrap_or_default().to_owned();
    match ledger {
        LedgerId::Merchant(_) => "M-Loja".to_owned(),
        LedgerId::Recipient(_, number) => {
            let place = (number.0 as usize).checked_sub(1);
            let known = place.and_then(|place| invented_parties::RECIPIENTS.get(place));
            known.map_or(format!("R-{}", number.0), |recipient| format!("R-{}", last(recipient.name)))
        }
        LedgerId::Platform(_) => "P-Loja".to_owned(),
        LedgerId::System => "P-house".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figure_beside_a_demo_is_that_of_the_documents() {
        let documents = include_str!("../../../docs/performance.md");
        assert!(documents.contains(&format!("| charges/s | {} |", count(MEASURED))));
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        for (count, percent, expected) in
            [(0, 50, 0), (1, 50, 1), (1, 99, 1), (2, 50, 1), (100, 50, 50), (100, 99, 99), (1_000, 99, 990)]
        {
            let latencies = (1..=count).map(Duration::from_millis).collect();
            let answers = Answers { latencies, others: BTreeMap::new() };
            assert_eq!(answers.percentile(percent), Duration::from_millis(expected), "{percent} of {count}");
        }
    }
}
