//! The server that is measured, with its merchants, and the requests that they send.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use actors::engine::Engine;
use centavo::server::{self, RunningServer};
use centavo::settings::args::{Args, Command};
use centavo::settings::checked::Settings;
use clap::Parser;
use ledger::event_choice::EventChoice;
use ledger::id::{GroupNumber, ObjectId};
use ledger::merchant::MerchantCommand;
use ledger::money::Centavos;
use ledger::scope::Scopes;
use tempfile::TempDir;
use testkit::shop::{Shop, new_id, open_shops, record};
use tokio::runtime::Runtime;
use web::api_key::ApiKeyText;

use crate::load::{KEY, Requests};
use crate::stores::{Database, Store};

/// The journal, the index, and stored states, keys and the read model.
pub(crate) const PARTS: [&str; 3] = ["journal", "files", "state"];

/// A limit of requests a minute that no load reaches.
const NO_REFUSAL: &str = "4000000000";

/// A server with its merchants, on a folder and, where the store is PostgreSQL, a database of its
/// own.
pub(crate) struct Shopfront {
    /// What keeps its journal.
    pub(crate) store: Store,
    /// What it runs on.
    pub(crate) runtime: Runtime,
    /// Its merchants.
    pub(crate) shops: Arc<Vec<Shop>>,
    /// An API key of each.
    pub(crate) keys: Vec<String>,
    running: RunningServer,
    folder: TempDir,
    /// It is dropped after the server.
    _database: Option<Database>,
}

impl Shopfront {
    /// Starts a server without rate limits, and opens this number of merchants.
    pub(crate) fn open(store: &Store, merchants: usize) -> Self {
        Self::with(store, merchants, &["--rate-limit", "off"])
    }

    /// The same with rate limits, as `serve` has them: each request is counted, none is refused.
    pub(crate) fn as_served(store: &Store, merchants: usize) -> Self {
        let limits = ["--rate-limit", "on", "--card-rate-limit", NO_REFUSAL, "--other-rate-limit", NO_REFUSAL];
        Self::with(store, merchants, &limits)
    }

    fn with(store: &Store, merchants: usize, limits: &[&str]) -> Self {
        let (folder, database) = (tempfile::tempdir().expect("a folder"), store.database());
        let runtime = centavo::server::runtime::start().expect("a runtime");
        let settings = settings(folder.path(), store, database.as_ref(), limits);
        let running = runtime.block_on(server::start(settings, |_, _| {})).expect("a server");
        let engine = &running.engine;
        let (shops, keys) = runtime.block_on(async {
            let shops = open_shops(engine, merchants).await;
            let mut keys = Vec::with_capacity(merchants);
            for shop in &shops {
                keys.push(make_key(engine, shop.group).await);
            }
            (Arc::new(shops), keys)
        });
        Self { store: store.clone(), runtime, shops, keys, running, folder, _database: database }
    }

    /// Where merchants call.
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.public
    }

    /// The engine below.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.running.engine
    }

    /// How many Records its journal has.
    pub(crate) fn records(&self) -> u64 {
        self.engine().records_published()
    }

    /// The size of the last Record of its first partition, as it is encoded.
    pub(crate) fn bytes_of_last_record(&self) -> usize {
        let (mut encoded, published) = (Vec::new(), self.engine().published());
        let last = published.iter().next().expect("a partition");
        self.engine().record(last).expect("the last Record").encode(&mut encoded);
        encoded.len()
    }

    /// Requests for a card charge with a split for each recipient, one for each of these merchants.
    pub(crate) fn charges(&self, merchants: std::ops::Range<usize>, keyed: bool) -> Requests {
        let texts = merchants.map(|number| {
            let splits: Vec<_> =
                self.shops[number].splits().iter().map(|split| (split.recipient, split.amount)).collect();
            charge(&self.keys[number], Centavos(10_000), &splits, keyed)
        });
        Requests { texts: texts.collect(), charges: 1 }
    }

    /// The bytes that its data takes in each part of the folder: [`PARTS`].
    pub(crate) fn bytes(&self) -> [u64; 3] {
        PARTS.map(|part| bytes_below(&self.folder.path().join(part)))
    }

    /// Ends the server in good order, and gives the bytes that its data takes then.
    pub(crate) fn stop(self) -> [u64; 3] {
        self.runtime.block_on(self.running.stop());
        PARTS.map(|part| bytes_below(&self.folder.path().join(part)))
    }
}

/// Bytes of the files below a folder; 0 if there is no such folder, as with PostgreSQL.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry"));
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => bytes_below(&entry.path()),
        Ok(data) => data.len(),
        // It was replaced meanwhile.
        Err(_) => 0,
    });
    bytes.sum()
}

fn settings(data: &Path, store: &Store, database: Option<&Database>, limits: &[&str]) -> Settings {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let fixed = ["centavo", "serve", "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--sandbox", "on"];
    let mut all: Vec<String> = fixed.into_iter().chain(limits.iter().copied()).map(str::to_owned).collect();
    let address = database.map_or("sled", |database| &database.address);
    all.extend(["--data".to_owned(), text(data), "--store".to_owned(), address.to_owned()]);
    if let Some(partitions) = &store.partitions {
        all.extend(["--partitions".to_owned(), partitions.clone()]);
    }
    if let Some(database) = database {
        let confirmed = if database.is_confirmed { "on" } else { "off" };
        all.extend(["--postgres-standby".to_owned(), confirmed.to_owned()]);
        if std::env::var_os("CENTAVO_MASTER_KEY").is_none() {
            let file = data.join("master-key");
            fs::write(&file, "07".repeat(32)).expect("a master key");
            all.extend(["--master-key-file".to_owned(), text(&file)]);
        }
    }
    match Args::parse_from(all).command {
        Command::Serve { args, .. } => args.settings().expect("settings"),
        _ => unreachable!("serve was asked for"),
    }
}

async fn make_key(engine: &Engine, group: GroupNumber) -> String {
    let id = new_id(engine, group);
    let text = ApiKeyText::of(true, id, [7; 24]);
    let digest = ApiKeyText::digest(&text);
    let command = MerchantCommand::CreateApiKey {
        id,
        digest,
        webhook_url: None,
        webhook_secret: Vec::new(),
        scopes: Scopes::ALL,
        events: EventChoice::ALL,
    };
    record(engine, group, command).await;
    text
}

/// The body of a card charge.
pub(crate) fn charge_body(amount: Centavos, splits: &[(ObjectId, Centavos)]) -> String {
    let item =
        |(id, amount): &(ObjectId, Centavos)| format!(r#"{{"sub_recipient_id":"{}","amount":{}}}"#, id.uuid(), amount);
    let splits: Vec<String> = splits.iter().map(item).collect();
    format!(
        concat!(
            r#"{{"amount":{},"customer":{{"name":"Pedro da Silva","email":"pedro@example.com","#,
            r#""document":"12345678909"}},"credit_card":{{"number":"4111111111111111","#,
            r#""holder_name":"PEDRO DA SILVA","exp_month":12,"exp_year":2039,"cvv":"123"}},"#,
            r#""installments":1,"splits":[{}]}}"#
        ),
        amount,
        splits.join(",")
    )
}

/// The request for a card charge; keyed, its key gets new digits each time.
pub(crate) fn charge(key: &str, amount: Centavos, splits: &[(ObjectId, Centavos)], keyed: bool) -> String {
    let keyed = if keyed { format!("idempotency-key: {KEY}\r\n") } else { String::new() };
    post("/api/card", key, &keyed, &charge_body(amount, splits))
}

/// A request with a JSON body; of its other headers each ends with its line.
pub(crate) fn post(path: &str, key: &str, headers: &str, body: &str) -> String {
    let head = format!("POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n{headers}");
    format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
