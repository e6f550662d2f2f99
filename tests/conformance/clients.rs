//! Clients from the description: linters accept it, the generators accept the whole of it, the
//! types that they make are exact, and a marketplace's first hour goes through with them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::callers::{self, client};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

/// How long a generator or a compiler may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts a sandbox whose webhooks may go to this machine, and writes the descriptions of both
/// listeners into the folder: `openapi.json` and `operations.json`.
async fn described(folder: &Path) -> Server {
    let data = folder.join("data");
    let launch = Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8");
    let server = Server::start(&launch).await.unwrap();
    for (listener, name) in [(&server.public, "openapi.json"), (&server.operations, "operations.json")] {
        let answer = reqwest::get(format!("{listener}/openapi.json")).await.unwrap().error_for_status().unwrap();
        std::fs::write(folder.join(name), answer.bytes().await.unwrap()).unwrap();
    }
    server
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

async fn run(command: Command) -> String {
    let done = tokio::task::spawn_blocking(move || tool::run(command, PATIENCE)).await.unwrap();
    done.unwrap_or_else(|said| panic!("{said}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_descriptions_are_of_openapi_3_1() {
    let Some(mut validator) = tool::python("openapi_spec_validator") else { return };
    let folder = tempfile::tempdir().unwrap();
    described(folder.path()).await.stop().unwrap();
    validator.current_dir(folder.path()).args(["-m", "openapi_spec_validator", "--schema", "3.1"]);
    let said = run({
        validator.args(["openapi.json", "operations.json"]);
        validator
    })
    .await;
    assert_eq!(said, "openapi.json: OK\noperations.json: OK\n");
}

/// Both have no complaint, not even a warning.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spectral_and_redocly_find_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path()).await;
    server.stop().unwrap();
    std::fs::write(folder.path().join("spectral.yml"), "extends: [\"spectral:oas\"]\n").unwrap();
    for name in ["openapi.json", "operations.json"] {
        let spectral = tool::node_program("@stoplight/spectral-cli", "dist/index.js");
        let redocly = tool::node_program("@redocly/cli", "bin/cli.js");
        let (Some(mut spectral), Some(mut redocly)) = (spectral, redocly) else { return };
        spectral.current_dir(folder.path()).args(["lint", name, "-r", "spectral.yml", "--fail-severity", "hint"]);
        println!("{}", run(spectral).await);
        redocly.current_dir(folder.path()).args(["lint", name, "--extends", "recommended", "--format", "json"]);
        redocly.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
        let said = run(redocly).await;
        let found = &said[said.find("{\n").unwrap_or_else(|| panic!("{said}"))..=said.rfind("\n}").unwrap() + 1];
        let found: Value = serde_json::from_str(found).unwrap();
        assert_eq!(found["totals"], json!({"errors": 0, "warnings": 0, "ignored": 0}), "{said}");
    }
}

/// The generator knows bodies of JSON, of forms, and of bytes. It takes files for bytes when told.
const FILES: &str = "\
content_type_overrides:
  text/csv: application/octet-stream
  application/x-ofx: application/octet-stream
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_python_client_drops_nothing_and_its_clients_go_through_a_flow() {
    let needed = ["openapi_python_client", "standardwebhooks"];
    if needed.iter().any(|package| tool::python(package).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path()).await;
    let python = || {
        let mut command = tool::python("openapi_python_client").unwrap();
        command.current_dir(folder.path());
        command
    };
    // Without this it formats its output, which needs another program.
    std::fs::write(folder.path().join("config.yml"), format!("post_hooks: []\n{FILES}")).unwrap();
    for (name, client) in [("openapi.json", "client"), ("operations.json", "operations")] {
        let mut generator = python();
        generator.args(["-c", "from openapi_python_client.cli import app; app()", "generate", "--path", name]);
        generator.args(["--output-path", client, "--meta", "none", "--config", "config.yml"]);
        let said = run(generator).await;
        assert!(!said.to_lowercase().contains("warning"), "{said}");
    }
    if let Some(mut types) = tool::python("mypy") {
        types.current_dir(folder.path()).args(["-m", "mypy", "--strict", "client", "operations"]);
        println!("{}", run(types).await);
    }
    for script in [include_str!("clients.py"), include_str!("flow.py")] {
        let mut reader = python();
        reader.args(["-c", script]).env("API", &server.public).env("OPS", &server.operations);
        reader.env("OPS_TOKEN", OPS_TOKEN);
        println!("{}", run(reader).await);
    }
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hey_api_types_every_answer_and_its_client_goes_through_a_flow() {
    let generator = || tool::node_program("@hey-api/openapi-ts", "bin/run.js");
    let compiler = tool::node_program("typescript", "bin/tsc");
    let (Some(_), Some(mut compiler), Some(mut flow)) = (generator(), compiler, tool::node("standardwebhooks")) else {
        return;
    };
    let generator = || generator().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path()).await;
    for (description, made) in [("openapi.json", "client"), ("operations.json", "operations")] {
        let mut generator = generator();
        generator.current_dir(folder.path()).args(["-i", description, "-o", made]);
        let said = run(generator).await;
        assert!(!said.to_lowercase().contains("warn"), "{said}");
    }
    std::fs::write(folder.path().join("flow.ts"), include_str!("flow.ts")).unwrap();
    std::fs::write(folder.path().join("operators.ts"), OPERATIONS).unwrap();
    let modules = std::path::absolute(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default()).unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    compiler.current_dir(folder.path()).args(["--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--types"]);
    compiler.args([
        "node",
        "--module",
        "commonjs",
        "--target",
        "es2022",
        "--outDir",
        "made",
        "flow.ts",
        "operators.ts",
    ]);
    println!("{}", run(compiler).await);

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let operate = async |path: &str, body: Value| callers::operate(&client(), &server, path, &body).await.unwrap();
    let opened = json!({"name": "Loja Exemplo", "document": "11222333000181", "split_enabled": true});
    let merchant = text(&operate("/ops/merchants", opened).await["id"]);
    let asked = json!({"webhook_url": format!("http://127.0.0.1:{port}/")});
    let key = operate(&format!("/ops/merchants/{merchant}/api-keys"), asked).await;
    let registration = std::fs::read(folder.path().join("openapi.json")).unwrap();
    let registration: Value = serde_json::from_slice(&registration).unwrap();
    let register = &registration["paths"]["/api/sub-recipients"]["post"]["requestBody"]["content"]["application/json"];
    let request = client().post(format!("{}/api/sub-recipients", server.public)).bearer_auth(text(&key["api_key"]));
    let recipient: Value = request.json(&register["example"]).send().await.unwrap().json().await.unwrap();
    let recipient = text(&recipient["id"]);
    operate(&format!("/ops/sub-recipients/{recipient}/approve"), json!({})).await;

    flow.current_dir(folder.path()).arg("made/flow.js").env("API", &server.public).env("RECIPIENT", recipient);
    flow.env("API_KEY", text(&key["api_key"])).env("WEBHOOK_SECRET", text(&key["webhook_secret"]));
    flow.env("WEBHOOK_PORT", port.to_string());
    println!("{}", run(flow).await);
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_typescript_types_every_event_and_problem() {
    let (Some(mut generator), Some(mut compiler)) = (tool::node("openapi-typescript"), tool::node("typescript")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    described(folder.path()).await.stop().unwrap();
    generator.current_dir(folder.path()).args(["-e", GENERATE]);
    println!("{}", run(generator).await);
    std::fs::write(folder.path().join("clients.ts"), include_str!("clients.ts")).unwrap();
    compiler.current_dir(folder.path()).args(["-e", COMPILE]);
    println!("{}", run(compiler).await);
}

/// Compiles where the operators' client has its functions, and their answers are exact.
const OPERATIONS: &str = "\
import { getQueue, type ReconciliationFinding } from './operations';
export const lineOf = (finding: ReconciliationFinding): number => finding.line ?? 0;
export const total = async (): Promise<number> => (await getQueue({ throwOnError: true })).data.total;";

const GENERATE: &str = "\
const { default: openapiTS, astToString } = require('openapi-typescript');
const { readFileSync, writeFileSync } = require('fs');
for (const [from, to] of [['openapi.json', 'centavo.d.ts'], ['operations.json', 'operations.d.ts']]) {
  openapiTS(JSON.parse(readFileSync(from))).then((made) => writeFileSync(to, astToString(made)));
}";

const COMPILE: &str = "\
const typescript = require('typescript');
const options = { strict: true, noEmit: true, noUncheckedIndexedAccess: true, types: [] };
const wrong = typescript.getPreEmitDiagnostics(typescript.createProgram(['clients.ts', 'operations.d.ts'], options));
wrong.forEach((one) => console.error(one.file?.fileName, typescript.flattenDiagnosticMessageText(one.messageText, ' ')));
process.exit(wrong.length === 0 ? 0 : 1);";
