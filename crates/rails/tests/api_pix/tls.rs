//! Certificates, and the files of settings.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use actors::rails::{PixOpening, PixRail, RailError};
use centavo_rails::api_pix::{self, ApiPixSettings};
use serde_json::{Value, json};
use testkit::api_pix_player::Player;
use testkit::played_tls::{Authority, authority, certificate, server};

use crate::{World, charge, rail, secret_file, write_private};

fn show(folder: &Path, own: &[String; 2]) -> [PathBuf; 2] {
    [write_private(&folder.join("client.pem"), &own[0]), write_private(&folder.join("client.key"), &own[1])]
}

/// Settings for a player behind TLS.
fn settings(player: &Player, folder: &Path, trusted: &Authority) -> Value {
    let mut settings = player.settings(&secret_file(folder));
    let url = format!("https://localhost:{}", player.address.port());
    settings["url"] = json!(format!("{url}{}", player.rules.base));
    settings["token_url"] = json!(format!("{url}{}", player.rules.token_path));
    std::fs::write(folder.join("ca.pem"), trusted.as_ref().pem()).unwrap();
    settings["ca_file"] = json!(folder.join("ca.pem"));
    settings
}

#[tokio::test]
async fn a_certificate_is_shown_and_read_again() {
    let (ours, theirs, folder) = (authority(), authority(), tempfile::tempdir().unwrap());
    let player = Player::start_with("sicoob", Some(server(&certificate("localhost", &theirs), &ours))).await;
    let mut settings = settings(&player, folder.path(), &theirs);
    let [chain, key] = show(folder.path(), &certificate("client", &authority()));
    (settings["certificate_file"], settings["key_file"]) = (json!(chain), json!(key));
    let rail = rail(settings.clone());
    let first_end = rail.certificate_expires_at().unwrap();
    assert_eq!(rail.open(charge(1)).await, Err(RailError::NotSent), "a certificate of another authority");
    show(folder.path(), &certificate("client", &ours));
    rail.reload().await.unwrap();
    assert!(matches!(rail.open(charge(1)).await, Ok(PixOpening::Registered { .. })));
    assert_eq!(rail.certificate_expires_at(), Some(first_end), "rcgen's certificates end on one day");
    // A file that is broken leaves what there is.
    write_private(&key, "no key");
    let error = rail.reload().await.unwrap_err().to_string();
    assert!(error.contains("client.key") && !error.contains("no key"), "{error}");
    assert!(matches!(rail.open(charge(2)).await, Ok(PixOpening::Registered { .. })));
    // An institution whose certificate nobody vouches for sees nothing.
    show(folder.path(), &certificate("client", &ours));
    std::fs::write(folder.path().join("ca.pem"), authority().as_ref().pem()).unwrap();
    let before = player.stage().requests.len();
    assert_eq!(crate::rail(settings).open(charge(3)).await, Err(RailError::NotSent));
    assert_eq!(player.stage().requests.len(), before);
}

fn refused(settings: &Value) -> String {
    let settings: ApiPixSettings = serde_json::from_value(settings.clone()).unwrap();
    api_pix::open(&settings).unwrap_err().to_string()
}

#[tokio::test]
async fn files_that_others_may_read_are_refused_by_name() {
    let (authority, folder) = (authority(), tempfile::tempdir().unwrap());
    let world = World::new("inter").await;
    let mut settings = world.player.settings(&secret_file(folder.path()));
    let [chain, key] = show(folder.path(), &certificate("client", &authority));
    (settings["certificate_file"], settings["key_file"]) = (json!(chain), json!(key));
    crate::rail(settings.clone());
    for name in ["secret", "client.pem", "client.key"] {
        let path = folder.path().join(name);
        for (mode, is_refused) in [(0o640, true), (0o604, true), (0o700, true), (0o400, false), (0o600, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let parsed: ApiPixSettings = serde_json::from_value(settings.clone()).unwrap();
            let opened = api_pix::open(&parsed).map_err(|error| error.to_string());
            assert_eq!(opened.is_err(), is_refused, "{name} {mode:o}: {opened:?}");
            if let Err(error) = opened {
                assert!(error.contains(name) && error.contains(&format!("{mode:04o}")), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn settings_are_refused_by_name() {
    let world = World::new("bacen").await;
    let good = world.player.settings(&world.folder.path().join("secret"));
    let https = "https://api.example.com";
    let cases = [
        ("url", json!({ "url": null })),
        ("url", json!({ "url": "http://api.example.com/pix" })),
        ("url", json!({ "url": "https://user@api.example.com" })),
        ("url", json!({ "url": "https://api.example.com/pix?a=b" })),
        ("url", json!({ "url": "ftp://127.0.0.1" })),
        ("url", json!({ "url": "api.example.com" })),
        ("token_url", json!({ "token_url": "http://10.0.0.1/token" })),
        ("token_url", json!({ "dialect": "bb", "url": https, "token_url": null })),
        ("client_secret_file", json!({ "client_secret_file": null })),
        ("client_secret_file", json!({ "client_secret_file": "/nowhere/at/all" })),
        ("certificate_file", json!({ "certificate_file": "/nowhere" })),
        ("certificate_file", json!({ "dialect": "sicoob", "url": null, "token_url": null })),
        ("client_id", json!({ "client_id": "a b" })),
        ("key", json!({ "key": "" })),
        ("key", json!({ "key": "k".repeat(78) })),
        ("headers", json!({ "headers": { "Authorization": "Bearer x" } })),
        ("headers", json!({ "headers": { "x a": "b" } })),
        ("headers", json!({ "headers": { "x-a": "b\r\nc: d" } })),
        ("paths.cob", json!({ "paths": { "cob": "cob" } })),
        ("paths.pix", json!({ "paths": { "pix": "/pix/?a" } })),
        ("ca_file", json!({ "ca_file": "/nowhere" })),
    ];
    for (name, change) in cases {
        let mut settings = good.clone();
        for (field, value) in change.as_object().unwrap() {
            settings[field] = value.clone();
        }
        let error = refused(&settings);
        assert!(error.starts_with(name), "{name}: {error}");
    }
    for unknown in ["client_secret", "kind", "verify_tls"] {
        let mut settings = good.clone();
        settings[unknown] = json!("x");
        assert!(serde_json::from_value::<ApiPixSettings>(settings).is_err(), "{unknown}");
    }
    let mut settings = good;
    settings["headers"] = json!({ "x-key": "hidden-1" });
    let settings: ApiPixSettings = serde_json::from_value(settings).unwrap();
    let shown = format!("{settings:?} {:?}", api_pix::open(&settings).unwrap());
    for secret in ["hidden-1", testkit::api_pix_player::CLIENT_SECRET, testkit::api_pix_player::KEY] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
