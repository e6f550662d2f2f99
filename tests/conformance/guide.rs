//! The page of the first charge: its blocks for the shell, Python and TypeScript run as they stand.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

/// The blocks of one language in a page of `docs`, in their order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    let page = std::fs::read_to_string(page).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_of_the_first_charge_runs() {
    let needed = ["bash", "curl", "jq", "python3"];
    if needed.iter().any(|name| tool::program(name).is_none()) {
        return;
    }
    let page = "guide/first-charge.md";
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let launch = Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("centavo.py", &blocks(page, "python").join("\n"));
    write("centavo.mts", &blocks(page, "ts").join("\n"));
    let mut script = format!("set -euo pipefail\n{}\npython3 centavo.py\n", blocks(page, "bash").join("\n"));
    let mut heard = 1;
    if tool::node("typescript").is_some() && tool::node("@types/node/package.json").is_some() {
        script += "ln -s \"$NODE_PATH\" node_modules\n\
            node node_modules/typescript/bin/tsc --strict --noEmitOnError --module nodenext --target es2022 --types node centavo.mts\n\
            node centavo.mjs\n";
        heard += 1;
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(folder.path());
    command.env("API", &server.public).env("OPS", &server.operations).env("OPS_TOKEN", OPS_TOKEN);
    command.env("WEBHOOK_URL", format!("http://127.0.0.1:{port}/")).env("WEBHOOK_PORT", port.to_string());
    if let Some(modules) = std::env::var_os("CENTAVO_NODE_MODULES") {
        command.env("NODE_PATH", std::path::absolute(modules).unwrap());
    }
    let said = tool::run(command, Duration::from_secs(180)).unwrap_or_else(|said| panic!("{said}"));
    for (told, times) in [
        ("\"active\"", 1),
        ("\"sellerAmount\": 5938", 1),
        ("refused: card_declined", heard),
        ("webhook: charge.paid", heard),
    ] {
        assert_eq!(said.matches(told).count(), times, "{told} in {said}");
    }
}
