//! Two bridges: one for cards and transfers, one for PIX. They misbehave by chance, carry out what
//! they say, and have records of their own.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use store::testkit::power_cut::Chance;
use testkit::played_http::{Oddity, Reply, Request};
use testkit::rail_player::{RailPlayer, SECRET};

/// Of a hundred requests, so many do not get a good answer at once.
const ODD_IN_100: u64 = 45;

pub(crate) struct Bridges {
    /// Cards and transfers, and the repayments of cards.
    pub(crate) money: RailPlayer,
    /// PIX charges and their repayments.
    pub(crate) pix: RailPlayer,
}

impl Bridges {
    /// PIX must not be sent again with `again`, so its bridge answers a repeat the same.
    pub(crate) async fn start(repeats: &'static str) -> Self {
        let pix_repeats = if repeats == "again" { "same" } else { repeats };
        let bridges = Self { money: RailPlayer::start(repeats).await, pix: RailPlayer::start(pix_repeats).await };
        for player in [&bridges.money, &bridges.pix] {
            player.records().capabilities["answers_within_ms"] = json!(400);
        }
        bridges
    }

    /// The settings file of a server that uses them.
    pub(crate) fn settings(&self, folder: &Path) -> PathBuf {
        let (secret, file) = (folder.join("bridge-secret"), folder.join("centavo.toml"));
        std::fs::write(&secret, SECRET).unwrap();
        let table = |name: &str, player: &RailPlayer, serves: &str| {
            let (url, secret) = (player.url(), secret.display());
            format!("[rail.{name}]\nkind = \"http\"\nurl = \"{url}\"\nsecret_file = \"{secret}\"\nserves = {serves}\n")
        };
        let tables = table("money", &self.money, "[\"card\", \"payout\"]") + &table("bank", &self.pix, "[\"pix\"]");
        let rails = "[rails]\ncard = \"money\"\npayout = \"money\"\npix = \"bank\"\n";
        std::fs::write(&file, format!("{rails}{tables}")).unwrap();
        for private in [&secret, &file] {
            std::fs::set_permissions(private, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        file
    }

    /// From now on they misbehave, by a seed.
    pub(crate) fn misbehave(&self, seed: u64) {
        for (number, player) in [&self.money, &self.pix].into_iter().enumerate() {
            let mut chance = Chance(seed * 2 + number as u64);
            player.stage().chances = Some(Box::new(move |request| oddity(request, &mut chance)));
        }
    }

    /// From now on they behave; what is held up on its way has arrived.
    pub(crate) async fn behave(&self) {
        for player in [&self.money, &self.pix] {
            player.stage().chances = None;
            while player.stage().held_up > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Their clocks go ahead.
    pub(crate) fn pass(&self, seconds: i64) {
        for player in [&self.money, &self.pix] {
            player.records().ahead += chrono::TimeDelta::seconds(seconds);
        }
    }

    /// A payer pays a PIX charge that is open: mostly as ordered, sometimes twice, sometimes
    /// another amount, sometimes to the key alone.
    pub(crate) fn some_payer_pays(&self, chance: &mut Chance) {
        let open: Vec<(String, i64)> = {
            let records = self.pix.records();
            let open = records.objects.iter().filter(|(_, object)| object.status == "open");
            let open = open.filter_map(|(path, object)| {
                Some((path.strip_prefix("/pix/")?.to_owned(), object.body["amount"].as_i64()?))
            });
            open.collect()
        };
        if open.is_empty() {
            return;
        }
        let (charge, amount) = &open[usize::try_from(chance.below(open.len() as u64)).unwrap()];
        match chance.below(20) {
            0 => drop(self.pix.pay(None, 700)),
            1 => drop(self.pix.pay(Some(charge), amount + 1)),
            2 => {
                self.pix.pay(Some(charge), *amount);
                self.pix.pay(Some(charge), *amount);
            }
            _ => drop(self.pix.pay(Some(charge), *amount)),
        }
    }

    /// How often each order was carried out, by the bridge's path.
    pub(crate) fn carried_out(&self) -> BTreeMap<String, u64> {
        let mut times = BTreeMap::new();
        for player in [&self.money, &self.pix] {
            for path in &player.records().carried_out {
                *times.entry(path.clone()).or_default() += 1;
            }
        }
        times
    }
}

/// What becomes of a request.
fn oddity(request: &Request, chance: &mut Chance) -> Option<Oddity> {
    if chance.below(100) >= ODD_IN_100 {
        return None;
    }
    let short = Duration::from_millis(chance.below(1_200));
    // A transfer is asked for by the schedule while it is held up.
    if request.method == "PUT" && request.path.starts_with("/payouts/") && chance.below(2) == 0 {
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
        7 if request.method == "PUT" => Oddity::CarriesOutAfter(short),
        8 => Oddity::Says(Vec::new()),
        _ => Oddity::AnswersAfter(short),
    })
}
