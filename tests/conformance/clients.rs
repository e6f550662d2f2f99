//! Generated clients: the generators must accept the whole description of the interface, and the
//! types that they make must be exact.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use testkit::server::{Launch, Server};

use crate::tool;

/// How long a generator or a compiler may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Asks a server for the description and writes it into the folder.
async fn describe(folder: &Path) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(data.path())).await.unwrap();
    let answer = reqwest::get(format!("{}/openapi.json", server.public)).await.unwrap().error_for_status().unwrap();
    std::fs::write(folder.join("openapi.json"), answer.bytes().await.unwrap()).unwrap();
    server.stop().unwrap();
}

async fn run(command: Command) -> String {
    let done = tokio::task::spawn_blocking(move || tool::run(command, PATIENCE)).await.unwrap();
    done.unwrap_or_else(|said| panic!("{said}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_python_client_drops_nothing_and_reads_problems_and_events() {
    let Some(mut generator) = tool::python("openapi_python_client") else { return };
    let Some(mut reader) = tool::python("openapi_python_client") else { return };
    let folder = tempfile::tempdir().unwrap();
    describe(folder.path()).await;
    // Without this it formats its output, which needs another program.
    std::fs::write(folder.path().join("config.yml"), "post_hooks: []\n").unwrap();
    generator.current_dir(folder.path()).args(["-c", "from openapi_python_client.cli import app; app()", "generate"]);
    generator.args(["--path", "openapi.json", "--output-path", "client", "--meta", "none", "--config", "config.yml"]);
    let said = run(generator).await;
    assert!(!said.to_lowercase().contains("warning"), "{said}");
    reader.current_dir(folder.path()).args(["-c", include_str!("clients.py")]);
    println!("{}", run(reader).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_typescript_types_every_event_and_problem() {
    let (Some(mut generator), Some(mut compiler)) = (tool::node("openapi-typescript"), tool::node("typescript")) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    describe(folder.path()).await;
    generator.current_dir(folder.path()).args(["-e", GENERATE]);
    println!("{}", run(generator).await);
    std::fs::write(folder.path().join("clients.ts"), include_str!("clients.ts")).unwrap();
    compiler.current_dir(folder.path()).args(["-e", COMPILE]);
    println!("{}", run(compiler).await);
}

const GENERATE: &str = "\
const { default: openapiTS, astToString } = require('openapi-typescript');
const { readFileSync, writeFileSync } = require('fs');
openapiTS(JSON.parse(readFileSync('openapi.json'))).then((made) => writeFileSync('centavo.d.ts', astToString(made)));";

const COMPILE: &str = "\
const typescript = require('typescript');
const options = { strict: true, noEmit: true, noUncheckedIndexedAccess: true, types: [] };
const wrong = typescript.getPreEmitDiagnostics(typescript.createProgram(['clients.ts'], options));
wrong.forEach((one) => console.error(one.file?.fileName, typescript.flattenDiagnosticMessageText(one.messageText, ' ')));
process.exit(wrong.length === 0 ? 0 : 1);";
