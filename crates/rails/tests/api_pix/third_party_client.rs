//! A client that nobody here wrote drives the player, which so cannot be wrong in the adapter's
//! way: `pypix-api` from PyPI, in the dialects of its four banks.

use std::process::Stdio;

use serde_json::json;
use testkit::api_pix_player::{ACCOUNT, CLIENT_ID, CLIENT_SECRET, KEY, Player};
use tokio::process::Command;

/// The script's exit code where the package is missing.
const MISSING: i32 = 77;

#[tokio::test]
async fn pypix_api_finds_in_the_player_the_banks_that_it_knows() {
    let python = std::env::var("CENTAVO_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for dialect in ["bb", "inter", "sicoob", "sicredi"] {
        let player = Player::start(dialect).await;
        player.pay(None, "1.00");
        let url = format!("http://{}", player.address);
        let given = json!({
            "dialect": dialect, "url": format!("{url}{}", player.rules.base), "key": KEY, "account": ACCOUNT,
            "token_url": format!("{url}{}", player.rules.token_path), "client_id": CLIENT_ID, "secret": CLIENT_SECRET,
        });
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api_pix/strangers.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(given.to_string()).stdin(Stdio::null()).kill_on_drop(true);
        let run = match command.output().await {
            Ok(run) if run.status.code() != Some(MISSING) => run,
            Ok(run) => return missing(&String::from_utf8_lossy(&run.stderr)),
            Err(error) => return missing(&format!("{python} does not start ({error})")),
        };
        let records = player.records();
        let said = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && records.violations.is_empty(), "{dialect}: {said} {:?}", records.violations);
        assert_eq!(records.charges[&"a".repeat(32)].status, "REMOVIDA_PELO_USUARIO_RECEBEDOR", "{dialect}");
        assert_eq!((records.webhooks.len(), records.payments[0].returns.len()), (1, 1), "{dialect}");
    }
}

fn missing(what: &str) {
    let message = format!("{what}; get it with: python3 -m pip install 'pypix-api==0.14.0', or set CENTAVO_PYTHON");
    let is_required = std::env::var("CENTAVO_CONFORMANCE").is_ok_and(|value| value == "required");
    assert!(!is_required, "{message}");
    println!("not tried: {message}");
}
