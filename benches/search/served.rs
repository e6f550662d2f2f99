//! Search and filtered lists as operators get them, over a socket, at rest and beside charges.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use actors::engine::{CommandContext, Engine, Outcome};
use centavo::server;
use centavo::settings::args::{Args, Command};
use centavo::settings::checked::Settings;
use clap::Parser;
use ledger::event::{CardBrand, CardFace};
use ledger::fees::PaymentMethod;
use ledger::id::ObjectId;
use ledger::merchant::MerchantCommand;
use ledger::money::Centavos;
use ledger::personal::SealedFor;
use ledger::record::{RailStamp, Requester};
use reqwest::Client;
use testkit::shop::{Shop, new_id, open_shops, record};
use tokio::time::{MissedTickBehavior, interval};
use wire::timestamp::day_of;

use crate::{payer, scattered};

const SHOPS: usize = 100;
/// Charges at a time while the books are made.
const CREATORS: u64 = 1_024;
/// Charges of a second beside which requests are measured, in portions.
const RATE: u64 = 1_000;
const PORTIONS: u64 = 100;
/// One of so many charges is by card, and captured: it has last digits and an NSU.
const CARDS: u64 = 7;
/// How long the process rests before it is measured: it still writes what was made.
const SETTLES: Duration = Duration::from_secs(5);

/// Makes the charges, asks for each answer so many times at rest and beside charges, and prints how
/// long the answers took.
pub(crate) async fn measure(charges: u64, requests: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let running = server::start(settings(folder.path()), |_, _| {}).await.expect("a server");
    let engine = Arc::clone(&running.engine);
    let shops = Arc::new(open_shops(&engine, SHOPS).await);
    let last = fill(&engine, &shops, charges).await;
    tokio::time::sleep(SETTLES).await;
    let token = std::fs::read_to_string(folder.path().join("operator.token")).expect("a token");
    let operator = Operator { client: Client::builder().no_proxy().build().expect("a client"), token };
    let asked = asked(&engine, &shops, charges, last);
    println!("{charges} charges of {SHOPS} merchants; {requests} requests each, one at a time");
    println!("| answer | at rest: p50 ms | p95 ms | beside {RATE} charges/s: p50 ms | p95 ms |\n|---|---|---|---|---|");
    let load = AtomicU64::new(0);
    for (name, path) in &asked {
        let of = |number: u64| format!("http://{}{}", running.operations, path(scattered(number)));
        let at_rest = operator.times(requests, &of).await;
        let beside = tokio::select! {
            times = operator.times(requests, &of) => times,
            never = charge_on(&engine, &shops, charges, &load) => never,
        };
        let [rest, busy] = [at_rest, beside].map(|[half, most]| format!("{half:.1} | {most:.1}"));
        println!("| {name} | {rest} | {busy} |");
    }
    println!("{} charges beside them", load.into_inner());
    running.stop().await;
}

/// Names of answers, and the path of a request for one by a number.
type Asked = Vec<(&'static str, Box<dyn Fn(u64) -> String>)>;

fn asked(engine: &Arc<Engine>, shops: &Arc<Vec<Shop>>, charges: u64, last: ObjectId) -> Asked {
    let known = move |number: u64| payer(number % charges + 1);
    let word =
        move |number: u64, place: usize| known(number).name.split(' ').nth(place).expect("three words").to_lowercase();
    let merchant = {
        let (engine, shops) = (Arc::clone(engine), Arc::clone(shops));
        move |number: u64| {
            let group = shops[number as usize % shops.len()].group;
            engine.merchant(group, |row| row.id).expect("a merchant").uuid()
        }
    };
    let (of_refused, of_amount) = (merchant.clone(), merchant);
    let today = day_of(engine.now().0);
    let carded = move |number: u64| (number % (charges / CARDS).max(1) + 1) * CARDS;
    let search = |text: String| format!("/ops/search?q={text}");
    vec![
        ("search: document", Box::new(move |number| search(known(number).document))),
        ("search: all words of a name", Box::new(move |number| search(known(number).name.replace(' ', "%20")))),
        ("search: one word of a name", Box::new(move |number| search(word(number, 0)))),
        ("search: three letters of a word", Box::new(move |number| search(word(number, 2)[..3].to_owned()))),
        ("search: amount", Box::new(move |number| search(amount_of(number % charges + 1)))),
        ("search: date", Box::new(move |_| search(today.format("%d/%m/%Y").to_string()))),
        ("search: e-mail", Box::new(move |number| search(known(number).email.expect("an e-mail")))),
        ("search: NSU", Box::new(move |number| search(nsu(carded(number))))),
        ("search: last four digits", Box::new(move |number| search(format!("{:04}", last4(carded(number)))))),
        ("search: beginning of a txid", Box::new(move |_| search(last.txid()[..16].to_owned()))),
        ("list: the newest charges", Box::new(|_| "/ops/lists/charges".to_owned())),
        (
            "list: charges by amount",
            Box::new(|number| format!("/ops/lists/charges?amount_from={0}&amount_to={0}", number % 50_000)),
        ),
        (
            "list: paid charges of a merchant",
            Box::new(move |number| format!("/ops/lists/charges?status=CONCLUIDA&merchant_id={}", of_refused(number))),
        ),
        (
            "list: charges of a merchant by amount",
            Box::new(move |number| {
                format!("/ops/lists/charges?amount_from={}&merchant_id={}", number % 50_000, of_amount(number))
            }),
        ),
        ("list: recipients by name", Box::new(|_| "/ops/lists/recipients?named=mari".to_owned())),
    ]
}

struct Operator {
    client: Client,
    token: String,
}

impl Operator {
    /// The median and the 95th percentile of so many requests, milliseconds.
    async fn times(&self, requests: u64, of: impl Fn(u64) -> String) -> [f64; 2] {
        let mut times = Vec::new();
        for number in 0..requests {
            let request = self.client.get(of(number)).bearer_auth(self.token.trim());
            let begun = Instant::now();
            let answer = request.send().await.expect("an answer");
            assert_eq!(answer.status().as_u16(), 200, "{}", of(number));
            let body = answer.bytes().await.expect("a body");
            times.push(begun.elapsed().as_secs_f64() * 1e3);
            let is_empty = body.as_ref() == b"{\"groups\":[]}";
            assert!(!is_empty, "{} finds nothing", of(number));
        }
        times.sort_by(f64::total_cmp);
        [50, 95].map(|part| times[(times.len() * part / 100).min(times.len() - 1)])
    }
}

/// Makes the charges; gives the last one.
async fn fill(engine: &Arc<Engine>, shops: &Arc<Vec<Shop>>, charges: u64) -> ObjectId {
    let creators: Vec<_> = (1..=CREATORS.min(charges))
        .map(|creator| {
            let (engine, shops) = (Arc::clone(engine), Arc::clone(shops));
            tokio::spawn(async move {
                let mut last = ObjectId::default();
                for number in (creator..=charges).step_by(CREATORS as usize) {
                    last = charge(&engine, &shops, number).await;
                }
                last
            })
        })
        .collect();
    let mut last = ObjectId::default();
    for creator in creators {
        last = creator.await.expect("a creator");
    }
    last
}

/// Makes [`RATE`] charges a second, for ever.
async fn charge_on(engine: &Arc<Engine>, shops: &Arc<Vec<Shop>>, first: u64, made: &AtomicU64) -> [f64; 2] {
    let mut portions = interval(Duration::from_millis(1_000 / PORTIONS));
    portions.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        portions.tick().await;
        for _ in 0..RATE / PORTIONS {
            let number = first + made.fetch_add(1, Ordering::Relaxed) + 1;
            let (engine, shops) = (Arc::clone(engine), Arc::clone(shops));
            tokio::spawn(async move { charge(&engine, &shops, number).await });
        }
    }
}

fn amount(number: u64) -> Centavos {
    Centavos((scattered(number) % 50_000) as i64 + 5_000)
}

/// The amount of a charge, as people write it.
fn amount_of(number: u64) -> String {
    let Centavos(centavos) = amount(number);
    format!("{},{:02}", centavos / 100, centavos % 100)
}

/// The NSU of a card charge.
fn nsu(number: u64) -> String {
    format!("NSU{number:09}")
}

/// The last four digits of the card of a charge.
fn last4(number: u64) -> u16 {
    (scattered(number) % 10_000) as u16
}

/// A charge with three splits, of a payer of its own: by PIX, or by card and captured.
async fn charge(engine: &Engine, shops: &[Shop], number: u64) -> ObjectId {
    let shop = &shops[number as usize % shops.len()];
    let (now, charge) = (engine.now(), new_id(engine, shop.group));
    let (amount, splits, rail) = (amount(number), shop.splits(), None);
    let payer = engine.keyring().seal_value(SealedFor::payer(charge), now, &payer(number)).expect("sealing");
    if !number.is_multiple_of(CARDS) {
        let expires_at = now.plus_days(1);
        record(engine, shop.group, MerchantCommand::OpenPix { rail, charge, amount, splits, expires_at, payer }).await;
        return charge;
    }
    let card = CardFace { bin: 411_111, last4: last4(number), brand: CardBrand::Visa };
    let (method, installments) = (PaymentMethod::CreditCard, 1);
    let open = MerchantCommand::OpenCard { charge, amount, method, installments, splits, card, payer, rail };
    record(engine, shop.group, open).await;
    let capture = MerchantCommand::CaptureCard { charge, acquirer_mdr: Centavos(200), captured_at: None, brand: None };
    let requester = Some(Requester::Rail(RailStamp::new(nsu(number), now)));
    let permit = engine.permit(1_024).expect("room");
    let captured = engine.command(shop.group, capture, CommandContext { key: None, requester, permit }).await;
    assert!(matches!(captured, Ok(Outcome::Recorded(_))), "{captured:?}");
    charge
}

fn settings(data: &Path) -> Settings {
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--sandbox", "on"];
    match Args::parse_from(fixed.into_iter().chain(["--data", &data.to_string_lossy()])).command {
        Command::Serve { args, .. } => args.settings().expect("settings"),
        _ => unreachable!("serve was asked for"),
    }
}
