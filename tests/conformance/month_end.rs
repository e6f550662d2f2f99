//! What two operators do together, as the pages have it: the write-off of a debt
//! (`docs/operating.md`) and the closing of a month (`docs/books.md`, `docs/pt-br/livros.md`).

use std::process::Command;
use std::time::Duration;

use testkit::callers::client;
use testkit::server::{Launch, Server};

use crate::commands::blocks_of;
use crate::tool;

const ANA: &str = "token-of-ana-for-the-pages-32-characters";
const RUI: &str = "token-of-rui-for-the-pages-32-characters";

/// A merchant whose fees exceed its part of a charge: it owes 496 centavos.
const DEFICIT: &str = r#"
source "$ROOT/docs/guide/first-charge/account.sh"
json "$CENTAVO_URL/api/card" -H "Authorization: Bearer $CENTAVO_API_KEY" -d "{\"amount\": 10000,
  \"customer\": {\"name\": \"Maria\", \"email\": \"maria@example.com\", \"document\": \"12345678909\"},
  \"credit_card\": {\"number\": \"4111111111111111\", \"holder_name\": \"M\", \"exp_month\": 12, \"exp_year\": 2039,
    \"cvv\": \"123\"}, \"splits\": [{\"sub_recipient_id\": \"$RECIPIENT\", \"amount\": 9999}]}" > /dev/null
owed() { json "$CENTAVO_URL/api/balance" -H "Authorization: Bearer $CENTAVO_API_KEY" | jq "\"$1 owes \\(.deficit)\""; }
owed before
"#;

fn block(page: &str, begin: &str) -> String {
    blocks_of(page)
        .0
        .into_iter()
        .find(|block| block.trim_start().starts_with(begin))
        .unwrap_or_else(|| panic!("{page}: {begin}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_debt_is_written_off_and_a_month_is_closed_as_the_pages_say() {
    if ["bash", "curl", "jq"].iter().any(|name| tool::program(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = Launch::on(&data)
        .with("CENTAVO_OPS_TOKEN", format!("ana:{ANA},rui:{RUI}"))
        .with("CENTAVO_OPS_ROLES", "ana=admin,rui=admin")
        .with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let closing = |page, month| {
        [
            "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11\" ",
            "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11/close\"",
        ]
        .map(|begin| block(page, begin).replace("2026-11", month))
        .concat()
    };
    let closed = [closing("docs/books.md", "2025-10"), closing("docs/pt-br/livros.md", "2025-11")].concat();
    let write_off = block("docs/operating.md", "ENTRY=").replace("M-…", "M-'$MERCHANT'");
    let script = format!("set -euo pipefail\n{DEFICIT}{write_off}owed after\n{closed}echo 'the end is reached'");
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path()).env("ROOT", env!("CARGO_MANIFEST_DIR"));
    command.env("CENTAVO_URL", &server.public).env("CENTAVO_OPS_URL", &server.operations).env("CENTAVO_OPS_TOKEN", ANA);
    command.env("ANA", ANA).env("RUI", RUI);
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(60))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    for expected in
        ["before owes 496", "after owes 0", "\"status\":\"open\"", "\"status\":\"pending\"", "\"status\":\"closed\""]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let response = client().get(format!("{}/ops/periods", server.operations)).bearer_auth(RUI).send().await.unwrap();
    let periods: serde_json::Value = response.json().await.unwrap();
    let closed: Vec<_> = periods["items"].as_array().unwrap().iter().map(|period| &period["period"]).collect();
    assert_eq!(closed, ["2025-10", "2025-11"]);
    server.stop().unwrap();
}
