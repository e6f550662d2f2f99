//! Samples of the reference: every call that its pages show in the shell, in Python and in
//! TypeScript runs as it stands, and the server understands it. Variables hold the ids of real
//! things.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::callers::{self, client};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

/// Statuses of a call that was understood. The id of what a path names is that of a recipient, so
/// many are not found.
const UNDERSTOOD: [&str; 7] = ["200", "201", "202", "403", "404", "409", "422"];

/// The samples of all pages, by language.
#[derive(Default)]
struct Samples {
    shell: Vec<String>,
    python: Vec<String>,
    typescript: Vec<String>,
}

/// The variables of the samples, with the key of a new merchant and the ids of what it has: an
/// active recipient, a plan, a stored card, a charge, and money.
async fn prepared(server: &Server) -> [(&'static str, String); 6] {
    let operate = async |path: &str, body: Value| callers::operate(&client(), server, path, &body).await.unwrap();
    let opened = json!({"name": "Loja", "document": "11222333000181", "split_enabled": true, "cashout_enabled": true});
    let merchant = operate("/ops/merchants", opened).await["id"].as_str().unwrap().to_owned();
    let key = operate(&format!("/ops/merchants/{merchant}/api-keys"), json!({})).await;
    let key = key["api_key"].as_str().unwrap();
    let read = reqwest::get(format!("{}/openapi.json", server.public)).await.unwrap();
    let description: Value = read.json().await.unwrap();
    let post = async |path: &str, body: Value| {
        let request = client().post(format!("{}{path}", server.public)).bearer_auth(key).json(&body);
        request.send().await.unwrap().error_for_status().unwrap().json::<Value>().await.unwrap()
    };
    let example = |path: &str| {
        description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"].clone()
    };
    let made = async |path: &str, id: &str| post(path, example(path)).await[id].as_str().unwrap().to_owned();
    let recipient = made("/api/sub-recipients", "id").await;
    operate(&format!("/ops/sub-recipients/{recipient}/approve"), json!({})).await;
    let charge = post("/api/pix", json!({"valor": "900.00", "nome": "Maria", "cpf": "12345678909"})).await;
    post(&format!("/api/sandbox/pix/{}/pay", charge["txid"].as_str().unwrap()), json!({})).await;
    [
        ("PLAN", made("/api/recurrency/plans", "id").await),
        ("CARD_TOKEN", made("/api/cards", "card_token").await),
        ("TXID", charge["txid"].as_str().unwrap().to_owned()),
        ("ID", recipient.clone()),
        ("RECIPIENT", recipient),
        ("CENTAVO_API_KEY", key.to_owned()),
    ]
}

async fn samples(server: &Server) -> Samples {
    let mut samples = Samples::default();
    for listener in [&server.public, &server.operations] {
        let read = async |path: &str| reqwest::get(format!("{listener}{path}")).await.unwrap().text().await.unwrap();
        let description: Value = serde_json::from_str(&read("/openapi.json").await).unwrap();
        for tag in description["tags"].as_array().unwrap() {
            let name = tag["name"].as_str().unwrap().to_lowercase().replace(' ', "-");
            let page = read(&format!("/reference/{name}")).await;
            for code in page.split("<pre tabindex=0>").skip(1) {
                let code = unescaped(code.split("</pre>").next().unwrap());
                let of_language = match &code {
                    code if code.starts_with("curl") => &mut samples.shell,
                    code if code.starts_with("import os") => &mut samples.python,
                    code if code.starts_with("const answer") => &mut samples.typescript,
                    _ => continue,
                };
                of_language.push(code);
            }
        }
        let described = description["paths"].as_object().unwrap().values().flat_map(|item| item.as_object().unwrap());
        let described = described.filter(|(_, operation)| operation["operationId"].is_string()).count();
        assert!(samples.shell.len() >= described && described > 10, "{described} operations");
    }
    assert_eq!(samples.shell.len(), samples.python.len());
    assert_eq!(samples.shell.len(), samples.typescript.len());
    // What a sample deletes, no other one names afterwards.
    for of_language in [&mut samples.shell, &mut samples.python, &mut samples.typescript] {
        of_language.sort_by_key(|code| {
            ["-X DELETE", "requests.delete(", "method: \"DELETE\""].iter().any(|by| code.contains(by))
        });
    }
    samples
}

fn unescaped(html: &str) -> String {
    let entities = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    entities.iter().fold(html.to_owned(), |text, (entity, letter)| text.replace(entity, letter))
}

/// Runs a program of samples as a merchant of its own, and looks at the statuses that begin its
/// lines.
async fn must_be_understood(mut command: Command, folder: &Path, server: &Server, count: usize) {
    command.current_dir(folder).env("CENTAVO_URL", &server.public).env("CENTAVO_OPS_URL", &server.operations);
    command.env("CENTAVO_OPS_TOKEN", OPS_TOKEN).envs(prepared(server).await);
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(300))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    let mut answered = 0;
    for line in said.lines().filter_map(|line| line.strip_prefix("answered ")) {
        assert!(UNDERSTOOD.iter().any(|status| line.starts_with(status)), "{line}\n{said}");
        answered += 1;
    }
    assert_eq!(answered, count, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sample_of_the_reference_runs() {
    let python = tool::python("requests");
    let (compiler, node) = (tool::node_program("typescript", "bin/tsc"), tool::program("node"));
    let (Some(_), Some(_)) = (tool::program("bash"), tool::program("curl")) else { return };
    let (Some(mut python), Some(mut compiler), Some(mut node)) = (python, compiler, node) else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(&folder.path().join("data"))).await.unwrap();
    let samples = samples(&server).await;
    let count = samples.shell.len();

    let mut shell = Command::new("bash");
    let answered =
        r#"curl() { command curl --silent --output /dev/null --write-out 'answered %{http_code} %{url}\n' "$@"; }"#;
    shell.args(["-euc", &format!("{answered}\n{}", samples.shell.join("\n"))]);
    must_be_understood(shell, folder.path(), &server, count).await;

    let answered = "import builtins\ndef print(status, text): builtins.print('answered', status, text[:200].replace('\\n', ' '))\n";
    python.args(["-c", &format!("{answered}{}", samples.python.join("\n"))]);
    must_be_understood(python, folder.path(), &server, count).await;

    let blocks: String = samples.typescript.iter().map(|sample| format!("{{\n{sample}\n}}\n")).collect();
    let answered = "console.log = (status: number, text: string) => \
        process.stdout.write(`answered ${status} ${text.slice(0, 200).replaceAll('\\n', ' ')}\\n`);\nexport {};\n";
    std::fs::write(folder.path().join("samples.mts"), format!("{answered}{blocks}")).unwrap();
    let modules = std::path::absolute(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default()).unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    compiler.current_dir(folder.path()).args(["--strict", "--skipLibCheck", "--types", "node", "--module", "nodenext"]);
    compiler.args(["--target", "es2022", "samples.mts"]);
    let compiled = tokio::task::spawn_blocking(move || tool::run(compiler, Duration::from_secs(300))).await.unwrap();
    compiled.unwrap_or_else(|said| panic!("{said}"));
    node.arg("samples.mjs");
    must_be_understood(node, folder.path(), &server, count).await;
    server.stop().unwrap();
}
