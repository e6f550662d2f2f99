//! The institutions: a bridge for cards, or Adyen, and either a bridge for transfers and one for
//! PIX, or Efí for both. They misbehave by chance, carry out what they say, and have records of
//! their own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use reqwest::Client;
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use tempfile::TempDir;
use testkit::api_pix_player::{CLIENT_ID, CLIENT_SECRET, KEY, Player};
use testkit::played_http::{Oddity, Reply, Request, Stage};
use testkit::played_tls::{self, Authority, authority, certificate, certificate_for};
use testkit::rail_player::{RailPlayer, RailRecords, SECRET};
use testkit::server::Server;

use crate::adyen::{Acquirer, LATE};

/// Of a hundred requests, so many do not get a good answer at once.
const ODD_IN_100: u64 = 45;

/// Who receives PIX payments.
enum PixSide {
    Bridge(RailPlayer),
    /// It makes the transfers too.
    Efi(Player),
}

pub(crate) struct Bridges {
    /// Cards and their repayments where Adyen has none, and transfers where Efí does not make them.
    pub(crate) money: RailPlayer,
    pub(crate) adyen: Option<Acquirer>,
    /// Paths of card charges that operators ended as captured: the books have no fee of those yet.
    pub(crate) by_word: Mutex<BTreeSet<String>>,
    /// Payers pay nothing that was not ordered: that is in suspense after minutes.
    pub(crate) only_ordered: bool,
    /// Efí wants a client certificate.
    tls: Option<Certificates>,
    pix: PixSide,
}

/// Authorities of clients and of Efí, and the folder of the client's certificate.
struct Certificates {
    of_clients: Authority,
    of_efi: Authority,
    folder: TempDir,
}

/// Money by the institutions' records, centavos.
#[derive(Default)]
pub(crate) struct Moved {
    pub(crate) came_in: i64,
    /// Of that, for no charge.
    pub(crate) of_nothing: i64,
    pub(crate) gone_back: i64,
    pub(crate) gone_out: i64,
}

impl Bridges {
    /// Bridges that take a repeat as said. PIX must not be sent again with `again`, so its bridge
    /// answers a repeat the same.
    pub(crate) async fn start(repeats: &'static str) -> Self {
        let pix = RailPlayer::start(if repeats == "again" { "same" } else { repeats }).await;
        pix.records().capabilities["answers_within_ms"] = json!(400);
        Self::with(RailPlayer::start(repeats).await, PixSide::Bridge(pix))
    }

    /// Efí, and a bridge for cards that answers a repeat the same.
    pub(crate) async fn start_with_efi() -> Self {
        let (of_clients, of_efi) = (authority(), authority());
        let tls = played_tls::server(&certificate("localhost", &of_efi), &of_clients);
        let efi = PixSide::Efi(Player::start_with("efi", Some(tls)).await);
        let tls = Some(Certificates { of_clients, of_efi, folder: tempfile::tempdir().unwrap() });
        Self { tls, ..Self::with(RailPlayer::start("same").await, efi) }
    }

    /// Adyen for cards, and bridges that answer a repeat the same.
    pub(crate) async fn start_with_adyen() -> Self {
        Self { adyen: Some(Acquirer::start().await), ..Self::start("same").await }
    }

    fn with(money: RailPlayer, pix: PixSide) -> Self {
        money.records().capabilities["answers_within_ms"] = json!(400);
        Self { money, adyen: None, by_word: Mutex::default(), only_ordered: false, tls: None, pix }
    }

    /// Gives the server another client certificate, where Efí wants one; it ends after a time where
    /// one is given.
    pub(crate) fn certify(&self, server: Option<&Server>, life: Option<Duration>) {
        let Some(Certificates { of_clients, folder, .. }) = &self.tls else { return };
        let [chain, key] = certificate_for(&["client"], of_clients, life);
        private(folder.path(), "client.pem", &chain);
        private(folder.path(), "client.key", &key);
        server.into_iter().for_each(|server| server.signal("HUP"));
    }

    /// The settings of TLS with Efí, added to others.
    fn certified(&self, mut settings: Value) -> Value {
        if let Some(Certificates { of_efi, folder, .. }) = &self.tls {
            self.certify(None, None);
            let path = |name: &str| json!(folder.path().join(name));
            settings["ca_file"] = json!(private(folder.path(), "ca.pem", &of_efi.as_ref().pem()));
            (settings["certificate_file"], settings["key_file"]) = (path("client.pem"), path("client.key"));
            for name in ["url", "token_url"] {
                if let Some(url) = settings[name].as_str() {
                    settings[name] = json!(url.replace("http://127.0.0.1", "https://localhost"));
                }
            }
        }
        settings
    }

    /// The settings file of a server that uses them.
    pub(crate) fn settings(&self, folder: &Path) -> PathBuf {
        let secret = private(folder, "bridge-secret", SECRET);
        let (card, of_adyen) = match &self.adyen {
            Some(adyen) => ("adyen", adyen.table(folder)),
            None => ("money", String::new()),
        };
        let bridge = |name: &str, player: &RailPlayer, serves: Value| {
            let settings = json!({"kind": "http", "url": player.url(), "secret_file": secret, "serves": serves});
            table(name, &settings)
        };
        let (payout, tables) = match &self.pix {
            PixSide::Bridge(pix) => (
                "money",
                bridge("money", &self.money, json!(["card", "payout"])) + &bridge("bank", pix, json!(["pix"])),
            ),
            PixSide::Efi(player) => {
                let secret = private(folder, "efi-secret", CLIENT_SECRET);
                let mut pix = player.settings(&secret);
                pix["kind"] = json!("api_pix");
                let url = format!("http://{}", player.address);
                let payout = json!({"kind": "efi", "url": url, "client_id": CLIENT_ID, "key": KEY,
                    "client_secret_file": secret});
                let tables = bridge("money", &self.money, json!(["card"])) + &table("bank", &self.certified(pix));
                ("efi", tables + &table("efi", &self.certified(payout)))
            }
        };
        let rails = format!("[rails]\ncard = \"{card}\"\npayout = \"{payout}\"\npix = \"bank\"\n");
        private(folder, "centavo.toml", &(rails + &tables + &of_adyen))
    }

    fn stages(&self) -> Vec<MutexGuard<'_, Stage>> {
        let pix = match &self.pix {
            PixSide::Bridge(player) => player.stage(),
            PixSide::Efi(player) => player.stage(),
        };
        let adyen = self.adyen.iter().map(|adyen| adyen.player.stage());
        [self.money.stage(), pix].into_iter().chain(adyen).collect()
    }

    /// From now on they misbehave, by a seed.
    pub(crate) fn misbehave(&self, seed: u64) {
        for (number, mut stage) in self.stages().into_iter().enumerate() {
            let mut chance = Chance(seed * 2 + number as u64);
            stage.chances = Some(Box::new(move |request| oddity(request, &mut chance)));
        }
    }

    /// From now on nobody reaches them.
    pub(crate) fn go_away(&self) {
        for mut stage in self.stages() {
            stage.chances = Some(Box::new(|_| Some(Oddity::Says(Vec::new()))));
        }
    }

    /// From now on they behave; what is held up on its way has arrived, and transfers end.
    pub(crate) async fn behave(&self) {
        self.stages().into_iter().for_each(|mut stage| stage.chances = None);
        while self.stages().into_iter().any(|stage| stage.held_up > 0) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        if let PixSide::Efi(player) = &self.pix {
            player.records().payouts.first_status = Some("REALIZADO");
            self.some_transfers_end(|| "REALIZADO");
        }
    }

    /// Their clocks go ahead.
    pub(crate) fn pass(&self, seconds: i64) {
        self.money.records().ahead += TimeDelta::seconds(seconds);
        match &self.pix {
            PixSide::Bridge(player) => player.records().ahead += TimeDelta::seconds(seconds),
            PixSide::Efi(player) => player.records().ahead += TimeDelta::seconds(seconds),
        }
    }

    /// A payer pays a PIX charge that is open: mostly as ordered, sometimes twice, sometimes
    /// another amount, sometimes to the key alone. At Efí a transfer may end, and its tokens.
    pub(crate) fn some_payer_pays(&self, chance: &mut Chance) {
        if let PixSide::Efi(player) = &self.pix {
            let is_end = chance.below(10) == 0;
            player.records().payouts.first_status = None;
            self.some_transfers_end(|| match chance.below(8) {
                0 => "NAO_REALIZADO",
                1 | 2 => "REALIZADO",
                _ => "EM_PROCESSAMENTO",
            });
            if is_end {
                player.records().end_tokens();
            }
        }
        let open: Vec<_> = self.pix_charges().into_iter().filter(|charge| charge.1 == "open").collect();
        if open.is_empty() {
            return;
        }
        let (charge, _, amount) = &open[usize::try_from(chance.below(open.len() as u64)).unwrap()];
        match chance.below(20) {
            0 if !self.only_ordered => self.pay(None, 700),
            1 => self.pay(Some(charge), amount + 1),
            2 => [(); 2].iter().for_each(|()| self.pay(Some(charge), *amount)),
            _ => self.pay(Some(charge), *amount),
        }
    }

    fn pay(&self, charge: Option<&str>, centavos: i64) {
        match &self.pix {
            PixSide::Bridge(player) => drop(player.pay(charge, centavos)),
            PixSide::Efi(player) => drop(player.pay(charge, &format!("{}.{:02}", centavos / 100, centavos % 100))),
        }
    }

    fn some_transfers_end(&self, mut status: impl FnMut() -> &'static str) {
        let PixSide::Efi(player) = &self.pix else { return };
        let transfers = &mut player.records().payouts.by_id;
        transfers.values_mut().filter(|of| of.status == "EM_PROCESSAMENTO").for_each(|of| of.status = status());
    }

    /// PIX charges with `open`, `paid` or another status, and their amounts in centavos.
    pub(crate) fn pix_charges(&self) -> Vec<(String, &'static str, i64)> {
        match &self.pix {
            PixSide::Bridge(player) => {
                let records = player.records();
                let charges = records.objects.iter().filter_map(|(path, one)| {
                    let id = path.strip_prefix("/pix/")?.to_owned();
                    Some((id, one.status, one.body["amount"].as_i64().unwrap_or_default()))
                });
                charges.collect()
            }
            PixSide::Efi(player) => {
                let records = player.records();
                let charges = records.charges.iter().map(|(txid, charge)| {
                    let lives = TimeDelta::seconds(charge.body["calendario"]["expiracao"].as_i64().unwrap_or_default());
                    let status = match charge.status {
                        "ATIVA" if charge.created_at + lives > records.now() => "open",
                        "ATIVA" => "expired",
                        "CONCLUIDA" => "paid",
                        _ => "closed",
                    };
                    (txid.clone(), status, centavos(&charge.body["valor"]["original"]))
                });
                charges.collect()
            }
        }
    }

    /// How often each order was carried out, by the protocol's path.
    pub(crate) fn carried_out(&self) -> BTreeMap<String, usize> {
        let mut times = BTreeMap::new();
        let mut count = |path: &str, more| *times.entry(path.to_owned()).or_default() += more;
        self.money.records().carried_out.iter().for_each(|path| count(path, 1));
        self.adyen.iter().flat_map(Acquirer::carried_out).for_each(|path| count(&path, 1));
        match &self.pix {
            PixSide::Bridge(player) => player.records().carried_out.iter().for_each(|path| count(path, 1)),
            PixSide::Efi(player) => {
                let returns = player.returns_done();
                returns.iter().for_each(|made| count(&format!("/repayments/{}", made["id"]), 1));
                for (id, transfer) in &player.records().payouts.by_id {
                    count(&format!("/payouts/{id}"), transfer.carried_out);
                }
            }
        }
        times
    }

    /// How many orders were carried out, and how many PIX charges were ordered.
    pub(crate) fn summary(&self) -> String {
        let times = self.carried_out();
        let of =
            |list: &str| times.iter().filter(|(path, _)| path.starts_with(list)).map(|(_, times)| times).sum::<usize>();
        let [cards, payouts, repayments] = ["/cards/", "/payouts/", "/repayments/"].map(of);
        format!("{cards} cards, {payouts} transfers, {repayments} repayments, {} PIX charges", self.pix_charges().len())
    }

    /// Whether Efí has refused a certificate that had ended; true without TLS.
    pub(crate) fn has_seen_an_end(&self) -> bool {
        self.tls.is_none() || self.stages().iter().any(|stage| stage.refused > 0)
    }

    /// Requests that the institutions' documents do not allow.
    pub(crate) fn violations(&self) -> Vec<String> {
        let of_pix = match &self.pix {
            PixSide::Bridge(player) => player.records().violations.clone(),
            PixSide::Efi(player) => player.records().violations.clone(),
        };
        let of_adyen = self.adyen.as_ref().map(|adyen| adyen.player.records().violations.clone());
        [self.money.records().violations.clone(), of_pix, of_adyen.unwrap_or_default()].concat()
    }

    /// Card charges with their statuses.
    pub(crate) fn card_charges(&self) -> Vec<(String, &'static str)> {
        let money = self.money.records();
        let of_bridge =
            money.objects.iter().filter_map(|(path, one)| Some((path.strip_prefix("/cards/")?, one.status)));
        let of_adyen = self.adyen.iter().flat_map(Acquirer::charges);
        of_bridge.map(|(id, status)| (id.to_owned(), status)).chain(of_adyen).collect()
    }

    /// Adyen does something by itself, and sends a notification, but for the latest.
    pub(crate) async fn adyen_acts(&self, server: &Server, client: &Client, chance: &mut Chance) {
        if let Some(adyen) = &self.adyen {
            adyen.acts(chance);
            adyen.notifies(server, client, chance, LATE).await;
        }
    }

    /// The money of PIX and transfers.
    pub(crate) fn moved(&self) -> Moved {
        match &self.pix {
            PixSide::Bridge(player) => {
                let records = player.records();
                let sum = |of_all: bool| {
                    let counted = records.payments.iter().filter(|payment| of_all || payment.charge.is_none());
                    counted.map(|payment| payment.amount).sum()
                };
                Moved {
                    came_in: sum(true),
                    of_nothing: sum(false),
                    gone_back: carried_out(&records, "/repayments/", |_, _| 0),
                    gone_out: carried_out(&self.money.records(), "/payouts/", |_, _| 0),
                }
            }
            PixSide::Efi(player) => {
                let gone_back = player.returns_done().iter().map(|made| centavos(&made["valor"])).sum();
                let records = player.records();
                let sum = |of_all: bool| {
                    let counted = records.payments.iter().filter(|payment| of_all || payment.txid.is_none());
                    counted.map(|payment| centavos(&json!(payment.amount))).sum()
                };
                let gone_out = i64::try_from(records.payouts.sum()).unwrap();
                Moved { came_in: sum(true), of_nothing: sum(false), gone_back, gone_out }
            }
        }
    }
}

/// A file of a folder that nobody else may read.
pub(crate) fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// A table of the settings file.
pub(crate) fn table(name: &str, settings: &Value) -> String {
    let lines = settings.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}\n"));
    format!("[rail.{name}]\n{}", lines.collect::<String>())
}

/// Centavos of an amount such as `10.50`.
fn centavos(amount: &Value) -> i64 {
    amount.as_str().unwrap_or_default().replace('.', "").parse().unwrap()
}

/// Sum of the orders of a list that a bridge carried out, centavos, less what it keeps of each.
pub(crate) fn carried_out(records: &RailRecords, list: &str, kept: impl Fn(&str, i64) -> i64) -> i64 {
    let amount = |path: &String| records.objects[path].body["amount"].as_i64().unwrap_or_default();
    let paths = records.carried_out.iter().filter(|path| path.starts_with(list));
    paths.map(|path| (path, amount(path))).map(|(path, amount)| amount - kept(path, amount)).sum()
}

/// What becomes of a request.
fn oddity(request: &Request, chance: &mut Chance) -> Option<Oddity> {
    if chance.below(100) >= ODD_IN_100 {
        return None;
    }
    let short = Duration::from_millis(chance.below(1_200));
    // A transfer is asked for by the schedule while it is held up.
    let is_transfer = ["/payouts/", "/v3/gn/pix/"].into_iter().any(|list| request.path.starts_with(list));
    if request.method == "PUT" && is_transfer && chance.below(2) == 0 {
        return Some(Oddity::CarriesOutAfter(3 * short));
    }
    let says = |status: u16, body: &str| Reply { status, media_type: "text/html", body: body.to_owned() }.bytes();
    Some(match chance.below(10) {
        0 => Oddity::IsSilent,
        1 | 2 => Oddity::CutsAnswerAt(usize::try_from(chance.below(200)).unwrap()),
        3 => Oddity::Says(says(500, "{}")),
        4 => Oddity::Says(says(429, "")),
        5 => Oddity::CarriesOutAndSays(says(502, "<h1>Bad Gateway</h1>")),
        6 => Oddity::Says(b"HTTP/1.1 307 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n".to_vec()),
        7 if request.method == "PUT" || request.path.starts_with("/v72/") => Oddity::CarriesOutAfter(short),
        8 => Oddity::Says(Vec::new()),
        _ => Oddity::AnswersAfter(short),
    })
}
