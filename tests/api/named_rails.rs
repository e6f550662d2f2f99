//! Institutions of the settings file: the start with them and without, and what is read again.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use actors::rails::RailParties;
use centavo::server::named_rails::settings::{AdapterSettings, CurrentRails, NamedRail, NamedRailSettings};
use centavo::server::{self, RunningServer, StartError};
use centavo::settings::checked::Settings;
use ledger::rail_name::RailName;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use reqwest::Client;
use serde_json::json;
use testkit::rail_player::{RailPlayer, SECRET};

use crate::world::settings;

fn itau() -> RailName {
    RailName::parse("itau").unwrap()
}

/// The institution `itau`, with a client certificate in a folder, as a settings file would have it.
/// Nothing listens at its address.
fn rails(folder: &Path, pix: Option<RailName>) -> Option<NamedRailSettings> {
    let path = |name: &str| folder.join(name).display().to_string();
    let adapter = format!(
        "dialect = 'bacen'\nurl = 'https://127.0.0.1:9'\nclient_id = 'shop'\nkey = 'shop@example.com'\n\
         client_secret_file = '{}'\ncertificate_file = '{}'\nkey_file = '{}'",
        path("secret"),
        path("chain.pem"),
        path("key.pem")
    );
    let adapter = AdapterSettings::ApiPix(toml::from_str(&adapter).unwrap());
    let rail = NamedRail { line: 7, callback_url: None, parties: RailParties::default(), adapter };
    let by_name = BTreeMap::from([(itau(), rail)]);
    Some(NamedRailSettings {
        file: folder.join("centavo.toml"),
        line: 5,
        current: CurrentRails { pix, ..CurrentRails::default() },
        by_name,
    })
}

/// Writes the secret, and a certificate that ends with a year.
fn certify(folder: &Path, year: i32) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["shop.test".to_owned()]).unwrap();
    params.not_after = date_time_ymd(year, 12, 31);
    let certificate = params.self_signed(&key).unwrap();
    for (name, text) in
        [("secret", "tesouro".to_owned()), ("chain.pem", certificate.pem()), ("key.pem", key.serialize_pem())]
    {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

async fn started(folder: &Path, rails: Option<NamedRailSettings>) -> Result<RunningServer, StartError> {
    let settings = Settings { rails, ..settings(&folder.join("data"), false) };
    server::start(settings, |_, _| {}).await
}

/// The year in which the client certificate ends, as the metrics say.
async fn end_in_metrics(running: &RunningServer) -> i64 {
    let client = Client::builder().no_proxy().build().unwrap();
    let metrics =
        client.get(format!("http://{}/metrics", running.operations)).send().await.unwrap().text().await.unwrap();
    let sample = "centavo_rail_tls_expiry_timestamp_seconds{rail=\"itau\"} ";
    let seconds: i64 = metrics.lines().find_map(|line| line.strip_prefix(sample)).unwrap().parse().unwrap();
    1970 + seconds / (365 * 86_400 + 21_600)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_an_institution_that_charges_may_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), 2050);
    let running = started(folder.path(), rails(folder.path(), Some(itau()))).await.unwrap();
    assert!(running.engine.ring(&itau()));
    running.stop().await;
    let refused = started(folder.path(), None).await.err().unwrap().to_string();
    assert!(refused.contains("[rail.itau]") && refused.contains("120 days"), "{refused}");
    // The table alone is enough: new charges may go elsewhere.
    let running = started(folder.path(), rails(folder.path(), None)).await.unwrap();
    assert!(running.engine.ring(&itau()));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_for_an_institution_is_measured_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), 2050);
    let running = started(folder.path(), rails(folder.path(), Some(itau()))).await.unwrap();
    assert_eq!(end_in_metrics(&running).await, 2050);
    // A certificate that can't be used changes nothing.
    certify(folder.path(), 2060);
    let key = folder.path().join("key.pem");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    running.reload().await;
    assert_eq!(end_in_metrics(&running).await, 2050);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    running.reload().await;
    assert_eq!(end_in_metrics(&running).await, 2060);
    running.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_refuse_the_start_with_the_place_of_their_table() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), 2050);
    let secret = folder.path().join("secret");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o640)).unwrap();
    let refused = started(folder.path(), rails(folder.path(), Some(itau()))).await.err().unwrap().to_string();
    for expected in ["centavo.toml is wrong at line 7: rail.itau.client_secret_file", "secret", "0600"] {
        assert!(refused.contains(expected), "{refused}");
    }
    assert!(!refused.contains("tesouro"), "{refused}");
}

/// Runs `serve --check` with a settings file; gives its exit code and all that it printed.
fn checked(folder: &Path, toml: &str) -> (Option<i32>, String) {
    let file = folder.join("centavo.toml");
    std::fs::write(&file, toml).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_centavo"));
    command.env_clear().args(["serve", "--check", "--config"]).arg(&file);
    let output = command.output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn a_check_shows_the_institutions_and_finds_their_defects() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), 2050);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let toml = |secret: &str| {
        format!(
            "data = '{}'\nlisten = '127.0.0.1:0'\nops_listen = '127.0.0.1:0'\nrails_listen = '127.0.0.1:0'\n\
             rails_path_secret_file = '{}'\n[rails]\npix = 'itau'\n[rail.itau]\nkind = 'api_pix'\n\
             dialect = 'efi'\nclient_id = 'shop'\nkey = 'k'\nclient_secret_file = '{}'\n",
            path("data"),
            path("path-secret"),
            path(secret)
        )
    };
    let secret = |text: &str| {
        std::fs::write(folder.path().join("path-secret"), text).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(folder.path().join("path-secret"), private).unwrap();
    };
    secret("the-secret-of-the-paths-with-32-characters");
    let (code, said) = checked(folder.path(), &toml("secret"));
    assert_eq!(code, Some(0), "{said}");
    for shown in [
        "card=none pix=itau payout=none (of itau)",
        "rails_listen",
        "no rail is configured for card charges and payouts",
    ] {
        assert!(said.contains(shown), "{shown} in {said}");
    }
    assert!(!said.contains("the-secret-of"), "{said}");
    let (code, said) = checked(folder.path(), &toml("absent"));
    assert!(code == Some(1) && said.contains("at line 8: rail.itau.client_secret_file"), "{said}");
    secret("tesouro");
    let (code, said) = checked(folder.path(), &toml("secret"));
    assert!(code == Some(1) && said.contains("32 to 128") && !said.contains("tesouro"), "{said}");
}

/// A bridge that moves no money, can open no PIX charge, or is away, is no reason not to start: a
/// bank's test environment is tried with a live server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_warns_of_what_a_bridge_says_of_itself() {
    let (player, folder) = (RailPlayer::start("again").await, tempfile::tempdir().unwrap());
    let secret = folder.path().join("bridge-secret");
    std::fs::write(&secret, SECRET).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let toml = format!(
        "data = '{}'\nlisten = '127.0.0.1:0'\nops_listen = '127.0.0.1:0'\n[rails]\ncard = 'bridge'\npix = 'bridge'\n\
         [rail.bridge]\nkind = 'http'\nurl = '{}'\nsecret_file = '{}'\nserves = ['card', 'pix', 'payout']\n",
        folder.path().join("data").display(),
        player.url(),
        secret.display()
    );
    let warnings = || {
        let (code, said) = checked(folder.path(), &toml);
        assert_eq!(code, Some(0), "{said}");
        let of_bridge = said.lines().filter_map(|line| line.strip_prefix("warning: rail.bridge: "));
        of_bridge.map(|line| line.split([':', '(']).next().unwrap().trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(warnings(), ["it is a test environment", "it opens no PIX charge"]);
    {
        let mut records = player.records();
        records.capabilities["test"] = json!(false);
        records.capabilities["repeats"] = json!("same");
        records.capabilities["serves"] = json!(["card", "pix"]);
    }
    assert_eq!(warnings(), ["it does not serve payout"]);
    player.records().capabilities["serves"] = json!(["card", "pix", "payout"]);
    assert_eq!(warnings(), [""; 0]);
    drop(player);
    assert_eq!(warnings(), ["its capabilities can't be read now"]);
}

/// A payout rail of its own table, which cannot be the rail of PIX charges and is not called back.
#[test]
fn a_check_shows_the_payout_rail() {
    let folder = tempfile::tempdir().unwrap();
    certify(folder.path(), 2050);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let toml = |rails: &str, more: &str| {
        format!(
            "data = '{}'\nlisten = '127.0.0.1:0'\nops_listen = '127.0.0.1:0'\n[rails]\n{rails} = 'envios'\n\
             [rail.envios]\nkind = 'efi'\nclient_id = 'shop'\nkey = 'k'\nclient_secret_file = '{}'\n\
             certificate_file = '{}'\nkey_file = '{}'\n{more}",
            path("data"),
            path("secret"),
            path("chain.pem"),
            path("key.pem")
        )
    };
    let (code, said) = checked(folder.path(), &toml("payout", "repeats = 'again'\npays_from = 'settlement'\n"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("payout=envios"), "{said}");
    let cases = [
        ("pix", "", "rails.pix: the kind of [rail.envios] can't be the pix rail"),
        ("payout", "repeats = 'maybe'\n", "rail.envios.repeats: expected"),
        ("payout", "dialect = 'efi'\n", "rail.envios: unknown field `dialect`"),
        ("payout", "horizon_s = 60\n", "rail.envios.horizon_s: it is at least 120"),
        ("payout", "callback_url = 'https://pay.example.com/efi'\n", "rail.envios.callback_url: transfers are asked"),
    ];
    for (rails, more, defect) in cases {
        let (code, said) = checked(folder.path(), &toml(rails, more));
        assert!(code == Some(1) && said.contains(defect), "{defect} in {said}");
    }
}
