//! Rails benchmark: what slow and silent institutions cost, and how soon a merchant hears of a
//! payment. `cargo bench --bench rails` prints figures beside their targets and judges nothing;
//! `-- --seconds 20` measures each for so long.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actors::engine::{CommandContext, Engine, FirstAnswer, NewCardCharge, NewChargeCard, NewPixCharge, Outcome};
use actors::rails::{
    Call, CardAnswer, CardFate, CardRail, CardSecrets, CardToken, ChargeCard, NamedRails, OpenPix, PixFate, PixOpening,
    PixRail, RailError, Rails, Repay, RepayAnswer, SettlementCursor, SettlementPage,
};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use ledger::charge::{Charge, ChargeOutcome};
use ledger::event::{CardBrand, CardFace, Event};
use ledger::fees::PaymentMethod;
use ledger::id::ObjectId;
use ledger::merchant::OpenCharge;
use ledger::money::Centavos;
use ledger::personal::Payer;
use ledger::rail_name::RailName;
use ledger::record::{Decision, RailStamp};
use ledger::time::Timestamp;
use parking_lot::Mutex;
use rails::sandbox;
use reqwest::Client;
use serde_json::{Value, json};
use testkit::api_pix_player::{CLIENT_SECRET, Player};
use testkit::callers::{client, operate};
use testkit::server::{Launch, Server};
use testkit::shop::{CHARGED, Shop, open_engine_as, open_shops};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use wire::case_folding::search_key;

const SHOPS: usize = 100;
/// Charges under way at an acquirer that takes its time.
const IN_FLIGHT: usize = 16_384;
/// How long that acquirer takes for a charge.
const TAKES: Duration = Duration::from_secs(2);
/// Charges that a silent acquirer leaves unanswered.
const UNANSWERED: usize = 10_000;
/// Payments of a second, of which the institution's bell tells.
const PAYMENTS: usize = 500;
/// Payments are made in so many portions a second, each with a bell.
const PORTIONS: usize = 10;
/// The secret at the beginning of the path of a bell.
const PATH_SECRET: &str = "the-secret-of-the-paths-with-32-characters";

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let seconds = arguments.iter().position(|argument| argument == "--seconds");
    let seconds = seconds.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(20);
    println!("| what | figure | target |\n|---|---|---|");
    registration();
    slow_acquirer(Duration::from_secs(seconds)).await;
    silent_acquirer(Duration::from_secs(seconds)).await;
    bell_to_webhook(seconds as usize).await;
}

fn row(what: &str, figure: &str, target: &str) {
    println!("| {what} | {figure} | {target} |");
}

/// Median, 99th percentile and most of some times, milliseconds.
fn spread(mut times: Vec<f64>) -> String {
    times.sort_by(f64::total_cmp);
    let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1)));
    let of = |part| at(part).copied().unwrap_or(f64::NAN);
    format!("p50 {:.0}, p99 {:.0}, at most {:.0} ms of {}", of(50), of(99), of(100), times.len())
}

/// Memory of this process, MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() / 1_024
}

/// What the registration of a PIX charge adds to the journal. The institution's text is stored
/// where it is not what Centavo makes.
fn registration() {
    let bytes = |code: &str| {
        let charge = ObjectId(0x019b_8c4e_5f5d_8a3e_9c1d_2f3a_4b5c_6d7e);
        let registered = Decision::of(Event::PixRegistered { charge, code: code.to_owned() });
        let ledger = ledger::id::LedgerId::Merchant(ledger::id::GroupNumber(77));
        let mut bytes = Vec::new();
        registered.into_record(ledger, 100_000, Timestamp(1_790_000_000_000)).encode(&mut bytes);
        bytes.len()
    };
    let location = "pix.example.com/qr/v2/cobv/9d36b84fc70b478fb95c12729b90ca25";
    let code = format!(
        "00020101021226{:02}0014br.gov.bcb.pix25{:02}{location}5204000053039865802BR5905Loja 6006Recife62070503***6304ABCD",
        22 + location.len(),
        location.len()
    );
    row(
        "a PIX charge is registered: bytes of its Record",
        &format!("{} with a code of {} characters", bytes(&code), code.len()),
        "≤ 150",
    );
}

/// An acquirer that takes its time; or one that loses two of three answers, and never says what
/// became of a charge.
enum Acquirer {
    Slow,
    Silent(AtomicU64),
}

impl CardRail for Acquirer {
    fn charge(&self, call: ChargeCard) -> Call<'_, CardAnswer> {
        Box::pin(async move {
            match self {
                Self::Slow => sleep(TAKES).await,
                Self::Silent(calls) if calls.fetch_add(1, Ordering::Relaxed) % 3 > 0 => {
                    return Err(RailError::NoAnswer);
                }
                Self::Silent(_) => {}
            }
            let id = format!("{:012}", call.charge.0 % 1_000_000_000_000);
            let stamp = RailStamp::new(id, call.charge.created_at());
            Ok(CardAnswer::Captured { acquirer_mdr: Centavos(200), brand: None, stamp })
        })
    }

    fn answers_within(&self) -> Duration {
        TAKES * 3
    }

    fn tokenize(&self, _card: CardSecrets) -> Call<'_, CardToken> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn close<'a>(&'a self, _charge: ObjectId, _open: &'a OpenCharge) -> Call<'a, CardFate> {
        Box::pin(pending())
    }

    fn repay(&self, _call: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(pending())
    }

    fn accept_dispute(&self, _dispute: Repay) -> Call<'_, RailStamp> {
        Box::pin(std::future::ready(Err(RailError::NoAnswer)))
    }

    fn settlements(&self, _after: SettlementCursor, _now: Timestamp) -> Call<'_, Option<SettlementPage>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// A PIX institution that answers at once, and is never paid.
struct Institution;

impl PixRail for Institution {
    fn location(&self, _: ObjectId) -> Option<String> {
        None
    }

    fn open(&self, call: OpenPix) -> Call<'_, PixOpening> {
        Box::pin(ready(Ok(PixOpening::Registered { code: format!("code of {}", call.charge.txid()) })))
    }

    fn cancel(&self, _: ObjectId) -> Call<'_, PixFate> {
        Box::pin(ready(Ok(PixFate::Cancelled)))
    }

    fn repay(&self, _: Repay) -> Call<'_, RepayAnswer> {
        Box::pin(ready(Ok(RepayAnswer::UnderWay)))
    }

    fn accept_dispute(&self, _: Repay) -> Call<'_, RailStamp> {
        Box::pin(ready(Err(RailError::NoAnswer)))
    }
}

/// Rails of one name.
fn named<R: ?Sized>(name: &str, rail: Arc<R>) -> NamedRails<R> {
    let name = RailName::parse(name).expect("a name");
    NamedRails::named([(name.clone(), rail)].into(), Some(name))
}

/// An engine of the sandbox, which lets any number of calls be under way, or a live one.
async fn engine_with(folder: &Path, rails: Rails, is_sandbox: bool) -> (Arc<Engine>, Arc<Vec<Shop>>) {
    let engine = open_engine_as(is_sandbox, folder, rails, search_key).await;
    let shops = Arc::new(open_shops(&engine, SHOPS).await);
    (engine, shops)
}

/// Charges a card; `None` where there was no room.
async fn charge_card(engine: &Engine, shop: &Shop) -> Option<FirstAnswer> {
    let permit = engine.permit_in_turn(Some(shop.group), 1_024).await.ok()?;
    let card = CardSecrets {
        number: "4111111111111111".into(),
        holder_name: "MARIA".into(),
        exp_month: 12,
        exp_year: 2039,
        cvv: "737".into(),
    };
    let wanted = NewCardCharge {
        amount: CHARGED,
        method: PaymentMethod::CreditCard,
        installments: 1,
        splits: shop.splits(),
        face: CardFace { bin: 411_111, last4: 1_111, brand: CardBrand::Visa },
        payer: Payer { name: "Pedro da Silva".into(), document: "12345678909".into(), ..Payer::default() },
        card: NewChargeCard::Given(card),
        reference: None,
    };
    let context = CommandContext { key: None, requester: None, permit };
    match engine.charge_card(shop.group, wanted, context).await {
        Ok(Outcome::Recorded(charged)) => Some(charged.answer),
        _ => None,
    }
}

/// Charges under way at an acquirer that takes two seconds for each.
async fn slow_acquirer(time: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let card = NamedRails::sandbox(Arc::new(Acquirer::Slow) as Arc<dyn CardRail>);
    let rails = Rails { card, ..sandbox::rails(&folder.path().join("sandbox")) };
    let (engine, shops) = engine_with(folder.path(), rails, true).await;
    let before = resident_mib();
    let counts = Arc::new([const { AtomicU64::new(0) }; 2]);
    let until = Instant::now() + time;
    let mut callers = JoinSet::new();
    for number in 0..IN_FLIGHT {
        let (engine, shops, counts) = (engine.clone(), shops.clone(), counts.clone());
        callers.spawn(async move {
            while Instant::now() < until {
                let is_captured = charge_card(&engine, &shops[number % SHOPS]).await == Some(FirstAnswer::Captured);
                // What ends later is of no rate.
                let counts_now = u64::from(Instant::now() < until);
                counts[usize::from(is_captured)].fetch_add(counts_now, Ordering::Relaxed);
            }
        });
    }
    let mut most = 0;
    while Instant::now() < until {
        sleep(Duration::from_millis(100)).await;
        most = most.max(resident_mib());
    }
    while callers.join_next().await.is_some() {}
    let [refused, captured] = [0, 1].map(|kind: usize| counts[kind].load(Ordering::Relaxed));
    let rate = captured as f64 / time.as_secs_f64();
    let figure = format!("{rate:.0}/s of {}/s, {refused} refused or unanswered", IN_FLIGHT as u64 / TAKES.as_secs());
    row(&format!("card charges at an acquirer that takes 2 s, {IN_FLIGHT} callers"), &figure, "–");
    row("memory meanwhile", &format!("{} MiB more than before", most.saturating_sub(before)), "–");
}

/// An acquirer that never answers has some [`UNANSWERED`] charges, all of which are to be asked
/// for. Beside them, codes of PIX charges expire at an institution that answers.
async fn silent_acquirer(time: Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let card = named("acquirer", Arc::new(Acquirer::Silent(AtomicU64::new(0))) as Arc<dyn CardRail>);
    let pix = named("institution", Arc::new(Institution) as Arc<dyn PixRail>);
    let (engine, shops) = engine_with(folder.path(), Rails { card, pix, ..Rails::default() }, false).await;
    let mut callers = JoinSet::new();
    for number in 0..UNANSWERED / 2 * 3 {
        let (engine, shops) = (engine.clone(), shops.clone());
        callers.spawn(async move { while charge_card(&engine, &shops[number % SHOPS]).await.is_none() {} });
    }
    while callers.join_next().await.is_some() {}
    let schedule = tokio::spawn({
        let engine = engine.clone();
        async move { engine.run_schedule().await }
    });
    // All of them are due from here on.
    let due = ledger::merchant::RECONCILE_AFTER_MS.cast_unsigned();
    sleep(Duration::from_millis(due)).await;
    let late = Arc::new(Mutex::new(Vec::new()));
    let mut waiting = JoinSet::new();
    let until = Instant::now() + time;
    let mut ticks = interval(Duration::from_millis(20));
    let mut number = 0;
    while Instant::now() < until {
        ticks.tick().await;
        let (engine, shops, late) = (engine.clone(), shops.clone(), late.clone());
        number += 1;
        waiting.spawn(async move {
            let Some((charge, expires_at)) = open_pix(&engine, &shops[number % SHOPS]).await else { return };
            while outcome(&engine, charge) == Some(ChargeOutcome::Pending) {
                sleep(Duration::from_millis(10)).await;
            }
            late.lock().push((engine.now().0 - expires_at.0) as f64);
        });
    }
    let ended = tokio::time::timeout(Duration::from_secs(60), async { while waiting.join_next().await.is_some() {} });
    let all_ended = if ended.await.is_ok() { "" } else { "; some have not ended" };
    let figure = format!("{}{all_ended}", spread(late.lock().clone()));
    row(
        &format!("a PIX code expires beside {UNANSWERED} charges at a silent acquirer: how late, of a sweep a second"),
        &figure,
        "p99 of the sweep ≤ 1,000 ms",
    );
    schedule.abort();
}

fn outcome(engine: &Engine, charge: ObjectId) -> Option<ChargeOutcome> {
    engine.object::<Charge>(charge).expect("it is read").map(|charge| charge.outcome)
}

/// A PIX charge whose code expires in a second; `None` where there was no room.
async fn open_pix(engine: &Engine, shop: &Shop) -> Option<(ObjectId, Timestamp)> {
    let payer = Payer { name: "Pedro da Silva".into(), document: "12345678909".into(), ..Payer::default() };
    let wanted = NewPixCharge { amount: CHARGED, splits: shop.splits(), payer, expires_in_seconds: 1, reference: None };
    let permit = engine.permit_in_turn(Some(shop.group), 1_024).await.ok()?;
    let opened = engine.open_pix(shop.group, wanted, CommandContext { key: None, requester: None, permit }).await;
    let Ok(Outcome::Recorded(opened)) = opened else { return None };
    engine.register_pix(shop.group, &opened).await.expect("a registration");
    Some((opened.charge, opened.expires_at))
}

/// When each charge was paid, and how long its webhook took, milliseconds.
#[derive(Default)]
struct Heard {
    paid: Mutex<HashMap<String, Instant>>,
    took: Mutex<Vec<f64>>,
}

/// Payments at an institution that speaks API Pix: from its bell to the merchant's endpoint.
async fn bell_to_webhook(seconds: usize) {
    let (folder, player) = (tempfile::tempdir().expect("a folder"), Player::start("bacen").await);
    let config = live_settings(folder.path(), &player);
    let bells = free_address().await;
    let launch = Launch::on(folder.path()).live().with("CENTAVO_CONFIG", config.to_str().expect("a name"));
    let launch = launch.with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8").with("CENTAVO_RAILS_LISTEN", &bells);
    let secret = private(folder.path(), "path-secret", PATH_SECRET);
    let launch = launch.with("CENTAVO_RAILS_PATH_SECRET_FILE", secret.to_str().expect("a name"));
    let server = Server::start(&launch).await.map_err(|refused| refused.said).expect("a server");
    let heard = Arc::new(Heard::default());
    let client = client();
    let key = merchant(&client, &server, &listen(heard.clone()).await).await;
    let charges = register(&client, &server, &key, seconds * PAYMENTS).await;
    let mut ticks = interval(Duration::from_millis(1_000 / PORTIONS as u64));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let bell = format!("http://{bells}/{PATH_SECRET}/bank/pix");
    for portion in charges.chunks(PAYMENTS / PORTIONS) {
        ticks.tick().await;
        for txid in portion {
            heard.paid.lock().insert(txid.clone(), Instant::now());
            player.pay(Some(txid), "80.00");
        }
        let rung = client.post(&bell).json(&json!({"pix": []})).send().await.expect("a bell");
        assert!(rung.status().is_success(), "{}", rung.status());
    }
    let begun = Instant::now();
    while heard.took.lock().len() < charges.len() && begun.elapsed() < Duration::from_secs(120) {
        sleep(Duration::from_millis(50)).await;
    }
    let figure = format!("{} ({} paid)", spread(heard.took.lock().clone()), charges.len());
    row(&format!("{PAYMENTS} PIX payments/s: from the payment and its bell to the webhook"), &figure, "p99 ≤ 2,000 ms");
    let violations = player.records().violations.clone();
    assert!(violations.is_empty(), "{violations:?}");
    server.stop().expect("it stops");
}

/// A settings file of a live server whose PIX charges are the player's.
fn live_settings(folder: &Path, player: &Player) -> PathBuf {
    let secret = private(folder, "secret", CLIENT_SECRET);
    let mut table = String::new();
    for (name, value) in player.settings(&secret).as_object().expect("a table") {
        table += &format!("{name} = {value}\n");
    }
    private(folder, "centavo.toml", &format!("[rails]\npix = \"bank\"\n[rail.bank]\nkind = \"api_pix\"\n{table}"))
}

fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    path
}

async fn free_address() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("its address").to_string()
}

/// An endpoint of a merchant; gives its address.
async fn listen(heard: Arc<Heard>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let hear = |State(heard): State<Arc<Heard>>, body: Bytes| async move {
        let event: Value = serde_json::from_slice(&body).expect("an event");
        let txid = event.pointer("/charge/txid").and_then(Value::as_str);
        let paid = txid.and_then(|txid| heard.paid.lock().remove(txid));
        heard.took.lock().extend(paid.map(|at| at.elapsed().as_secs_f64() * 1e3));
    };
    let router = Router::new().route("/", post(hear)).with_state(heard);
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Opens a merchant; gives its API key.
async fn merchant(client: &Client, server: &Server, webhook_url: &str) -> String {
    let merchant = json!({"name": "Loja", "document": "11222333000181"});
    let id = operate(client, server, "/ops/merchants", &merchant).await.expect("a merchant")["id"].clone();
    let path = format!("/ops/merchants/{}/api-keys", id.as_str().expect("an id"));
    let key = operate(client, server, &path, &json!({"webhook_url": webhook_url})).await.expect("a key");
    key["api_key"].as_str().expect("a key").to_owned()
}

/// Creates PIX charges, which the institution registers; gives their txids.
async fn register(client: &Client, server: &Server, key: &str, charges: usize) -> Vec<String> {
    const AT_ONCE: usize = 64;
    let mut callers = JoinSet::new();
    for caller in 0..AT_ONCE {
        let (client, url, key) = (client.clone(), format!("{}/api/pix", server.public), key.to_owned());
        callers.spawn(async move {
            let mut txids = Vec::new();
            for _ in (caller..charges).step_by(AT_ONCE) {
                let body =
                    json!({"valor": "80.00", "nome": "Maria das Dores", "cpf": "12345678909", "descricao": "Pedido"});
                let answer = client.post(&url).bearer_auth(&key).json(&body).send().await.expect("an answer");
                assert_eq!(answer.status().as_u16(), 201);
                let answer: Value = answer.json().await.expect("a body");
                txids.push(answer["txid"].as_str().expect("a txid").to_owned());
            }
            txids
        });
    }
    callers.join_all().await.into_iter().flatten().collect()
}
