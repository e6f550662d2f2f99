//! Adyen as the acquirer: what it does by itself with payments that it captured, and its
//! notifications, which come in any order, twice, late and forged. A server that is killed takes
//! them later.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::Client;
use serde_json::{Value, json};
use store::testkit::power_cut::Chance;
use testkit::adyen_player::{AdyenPlayer, PlayedPayment};
use testkit::callers::client;
use testkit::played_http::{Odd, Oddity};
use testkit::server::{Launch, Server};
use testkit::wall_clock::WallClock;

use crate::bridges::{private, table};
use crate::load::{Load, card_charge, text};

/// Beginning of the paths of callbacks.
const PATH_SECRET: &str = "the-secret-of-the-paths-with-32-characters";
/// Notifications that wait on while callers call.
pub(crate) const LATE: usize = 8;

pub(crate) struct Acquirer {
    pub(crate) player: AdyenPlayer,
    /// The last that it did with a payment, by reference.
    last_acts: Mutex<BTreeMap<String, &'static str>>,
    /// References of refunds that failed after they were received.
    failed: Mutex<BTreeSet<String>>,
}

impl Acquirer {
    pub(crate) async fn start() -> Self {
        Self { player: AdyenPlayer::start().await, last_acts: Mutex::default(), failed: Mutex::default() }
    }

    /// Its table of the settings file.
    pub(crate) fn table(&self, folder: &Path) -> String {
        let mut settings = self.player.settings(folder);
        settings["kind"] = json!("adyen");
        table("adyen", &settings)
    }

    /// Has a server listen to it.
    pub(crate) fn heard<'a>(launch: Launch<'a>, folder: &Path) -> Launch<'a> {
        let secret = private(folder, "path-secret", PATH_SECRET);
        let launch = launch.with("CENTAVO_RAILS_LISTEN", "127.0.0.1:0");
        launch.with("CENTAVO_RAILS_PATH_SECRET_FILE", secret.to_str().unwrap())
    }

    /// What it has of each charge, by reference.
    pub(crate) fn charges(&self) -> Vec<(String, &'static str)> {
        let status = |payment: &PlayedPayment| match payment.result_code {
            "Refused" => "refused",
            _ if payment.taken > 0 || payment.is_cancelled => "taken",
            _ if payment.captured == 0 => "not captured",
            _ => "captured",
        };
        let payments = &self.player.records().payments;
        payments.iter().map(|payment| (text(&payment.body["reference"]), status(payment))).collect()
    }

    /// The orders that it carried out, by the protocol's path.
    pub(crate) fn carried_out(&self) -> Vec<String> {
        let records = self.player.records();
        let paths = records.modifications.iter().filter_map(|(path, body)| {
            let list = match path.rsplit('/').next()? {
                "captures" => "cards",
                "refunds" => "repayments",
                _ => return None,
            };
            Some(format!("/{list}/{}", text(&body["reference"])))
        });
        paths.collect()
    }

    /// What it owes by its records, centavos.
    pub(crate) fn owes(&self) -> i64 {
        let records = self.player.records();
        records.payments.iter().map(|payment| payment.captured - payment.refunded - payment.taken).sum()
    }

    /// By chance a capture fails, a payer's bank takes a payment, gives it back or takes it again,
    /// or a refund fails.
    pub(crate) fn acts(&self, chance: &mut Chance) {
        match chance.below(30) {
            0 | 1 => self.takes(chance),
            2 => self.fails_a_refund(chance),
            _ => {}
        }
    }

    fn takes(&self, chance: &mut Chance) {
        let mut records = self.player.records();
        let mut captured: Vec<_> = records.payments.iter_mut().filter(|payment| payment.captured > 0).collect();
        let count = captured.len() as u64;
        if count == 0 {
            return;
        }
        let payment = &mut captured[usize::try_from(chance.below(count)).unwrap()];
        let (reference, psp) = (text(&payment.body["reference"]), payment.psp_reference.clone());
        let amount = payment.captured;
        let mut last_acts = self.last_acts.lock();
        let last = last_acts.entry(reference.clone()).or_default();
        let (event, taken) = match (*last, chance.below(4)) {
            ("", 0) if payment.refunded == 0 => ("CAPTURE_FAILED", amount),
            ("", 1) => ("NOTIFICATION_OF_CHARGEBACK", 0),
            ("" | "NOTIFICATION_OF_CHARGEBACK", _) => ("CHARGEBACK", amount),
            ("CHARGEBACK", _) => ("CHARGEBACK_REVERSED", 0),
            ("CHARGEBACK_REVERSED", 0) => ("SECOND_CHARGEBACK", amount),
            _ => return,
        };
        (payment.taken, *last) = (taken, event);
        records.notify(event, true, &format!("{psp}D"), [&reference, &psp], amount);
    }

    fn fails_a_refund(&self, chance: &mut Chance) {
        let mut records = self.player.records();
        let refunds = records.modifications.iter().filter(|(path, _)| path.ends_with("/refunds"));
        let refunds: Vec<Value> = refunds.map(|(_, body)| body.clone()).collect();
        let count = refunds.len() as u64;
        if count == 0 {
            return;
        }
        let refund = &refunds[usize::try_from(chance.below(count)).unwrap()];
        let (reference, original) = (text(&refund["reference"]), text(&refund["paymentPspReference"]));
        if !self.failed.lock().insert(reference.clone()) {
            return;
        }
        let amount = refund["amount"]["value"].as_i64().unwrap();
        let payment = records.payments.iter_mut().find(|payment| payment.psp_reference == original).unwrap();
        payment.refunded -= amount;
        // It names the refund, or the payment alone.
        let named = if chance.below(2) == 0 { reference } else { text(&payment.body["reference"]) };
        records.notify("REFUND_FAILED", true, &text(&refund["pspReference"]), [&named, &original], amount);
    }

    /// Sends one of the notifications that wait, whichever; some of those that a server has taken
    /// are sent again. A forged one is not believed.
    pub(crate) async fn notifies(&self, server: &Server, client: &Client, chance: &mut Chance, waiting: usize) {
        let mut sent = {
            let mut records = self.player.records();
            if records.notifications.len() <= waiting {
                return;
            }
            let index = chance.below(records.notifications.len() as u64);
            records.notifications.swap_remove(usize::try_from(index).unwrap())
        };
        let url = format!("{}/{PATH_SECRET}/adyen/notifications", server.callbacks.as_ref().unwrap());
        let send = async |sent: &Value| {
            let answer = client.post(&url).json(sent).send().await;
            answer.map(|answer| answer.status().as_u16()).unwrap_or_default()
        };
        if chance.below(8) == 0 {
            let mut forged = sent.clone();
            forged["notificationItems"][0]["NotificationRequestItem"]["amount"]["value"] = json!(1);
            let status = send(&forged).await;
            assert!(matches!(status, 0 | 401), "{status} for a forged notification");
        }
        if send(&sent).await != 200 || chance.below(4) == 0 {
            self.player.records().notifications.push(sent.take());
        }
    }

    /// Sends all notifications that wait, until the server has taken them.
    pub(crate) async fn notifies_all(&self, server: &Server) {
        let waiting = self.player.records().notifications.len();
        let (client, mut chance) = (client(), Chance(waiting as u64));
        for _ in 0..2 * waiting {
            self.notifies(server, &client, &mut chance, 0).await;
        }
    }
}

/// Time that passes before the next server starts, seconds.
const LATER: i64 = 130;

/// A server is killed while an order of a charge is under way, and the next one ends the charge:
/// captured once, or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_whose_server_is_killed_is_captured_once_or_not_at_all() {
    for (path, oddity, status, captured) in [
        // It is authorized, and no Record knows: it is cancelled.
        ("/payments", Oddity::IsSilent, "RECUSADA", 0),
        // Adyen has nothing to cancel, and cannot be asked: the charge is an operator's.
        ("/payments", Oddity::IsLost, "pending", 0),
        ("/captures", Oddity::IsSilent, "CONCLUIDA", 1),
        ("/captures", Oddity::IsLost, "CONCLUIDA", 1),
        ("/captures", Oddity::CarriesOutAfter(Duration::from_millis(300)), "CONCLUIDA", 1),
    ] {
        let (acquirer, data, clock) = (Acquirer::start().await, tempfile::tempdir().unwrap(), WallClock::running());
        let config = private(
            data.path(),
            "centavo.toml",
            &format!("[rails]\ncard = \"adyen\"\n{}", acquirer.table(data.path())),
        );
        let launch = || {
            let launch = Launch::on(data.path()).live().with("CENTAVO_CONFIG", config.to_str().unwrap());
            clock.rule(Acquirer::heard(launch, data.path()))
        };
        let server = Server::start(&launch()).await.unwrap();
        let load = Load::open(&server).await.unwrap();
        let stage = || acquirer.player.stage();
        stage().odd.push(Odd { method: "POST", path, times: 9, oddity });
        let url = format!("{}/api/card", server.public);
        let request = client().post(url).bearer_auth(&load.api_key).json(&card_charge(5_000, "4111111111111111"));
        let caller = tokio::spawn(request.send());
        while !stage().requests.iter().any(|request| request.path.ends_with(path)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.kill();
        server.wait();
        let _nobody_answers = caller.await.unwrap();
        while stage().held_up > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stage().odd.clear();
        clock.jump(LATER);
        let server = Server::start(&launch()).await.unwrap();
        let url = format!("{}/api/charges", server.public);
        let mut shown = Value::Null;
        for _ in 0..60 {
            tokio::time::sleep(Duration::from_millis(250)).await;
            acquirer.notifies_all(&server).await;
            shown = client().get(&url).bearer_auth(&load.api_key).send().await.unwrap().json().await.unwrap();
            let has_ended = status != "pending" || acquirer.player.count("/cancels") > 0;
            if has_ended && shown["items"][0]["status"] == status && acquirer.player.records().notifications.is_empty()
            {
                break;
            }
        }
        assert_eq!((&shown["items"][0]["status"], &shown["total"]), (&json!(status), &json!(1)), "{path}: {shown}");
        assert_eq!(acquirer.carried_out().len(), captured, "{path}");
        assert_eq!(acquirer.owes(), 5_000 * captured as i64, "{path}");
        assert_eq!(acquirer.player.records().violations, [""; 0], "{path}");
        server.stop().unwrap();
        testkit::server::must_verify(data.path()).unwrap();
    }
}
