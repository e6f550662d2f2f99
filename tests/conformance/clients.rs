//! Clients from the description: linters accept it, the generators accept the whole of it, the
//! types that they make are exact, and a marketplace's first hour goes through with them.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
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

/// What a gate says of a description: why it refuses it, or what it said when it took it.
type Judged = Result<String, String>;

async fn judge(command: Command) -> Judged {
    tokio::task::spawn_blocking(move || tool::run(command, PATIENCE)).await.unwrap()
}

async fn run(command: Command) -> String {
    judge(command).await.unwrap_or_else(|said| panic!("{said}"))
}

/// A warning is a refusal, also where the program is content.
fn without_warning(judged: Judged) -> Judged {
    judged.and_then(|said| if said.to_lowercase().contains("warn") { Err(said) } else { Ok(said) })
}

async fn validator(folder: &Path, name: &str) -> Option<Judged> {
    let mut validator = tool::python("openapi_spec_validator")?;
    validator.current_dir(folder).args(["-m", "openapi_spec_validator", "--schema", "3.1", name]);
    Some(judge(validator).await)
}

async fn spectral(folder: &Path, name: &str) -> Option<Judged> {
    std::fs::write(folder.join("spectral.yml"), "extends: [\"spectral:oas\"]\n").unwrap();
    let mut spectral = tool::node_program("@stoplight/spectral-cli", "dist/index.js")?;
    spectral.current_dir(folder).args(["lint", name, "-r", "spectral.yml", "--fail-severity", "hint"]);
    Some(judge(spectral).await)
}

async fn redocly(folder: &Path, name: &str) -> Option<Judged> {
    let mut redocly = tool::node_program("@redocly/cli", "bin/cli.js")?;
    redocly.current_dir(folder).args(["lint", name, "--extends", "recommended", "--format", "json"]);
    redocly.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    Some(judge(redocly).await.and_then(|said| {
        let found = &said[said.find("{\n").unwrap_or_else(|| panic!("{said}"))..=said.rfind("\n}").unwrap() + 1];
        let found: Value = serde_json::from_str(found).unwrap();
        let nothing = json!({"errors": 0, "warnings": 0, "ignored": 0});
        if found["totals"] == nothing { Ok(said) } else { Err(said) }
    }))
}

async fn python_client(folder: &Path, name: &str, client: &str) -> Option<Judged> {
    let mut generator = tool::python("openapi_python_client")?;
    // Without this it formats its output, which needs another program.
    std::fs::write(folder.join("config.yml"), format!("post_hooks: []\n{FILES}")).unwrap();
    generator.current_dir(folder);
    generator.args(["-c", "from openapi_python_client.cli import app; app()", "generate", "--path", name]);
    generator.args(["--output-path", client, "--meta", "none", "--config", "config.yml"]);
    Some(without_warning(judge(generator).await))
}

async fn hey_api(folder: &Path, name: &str, client: &str) -> Option<Judged> {
    let mut generator = tool::node_program("@hey-api/openapi-ts", "bin/run.js")?;
    generator.current_dir(folder).args(["-i", name, "-o", client]);
    Some(without_warning(judge(generator).await))
}

async fn openapi_typescript(folder: &Path, name: &str, types: &str) -> Option<Judged> {
    let mut generator = tool::node_program("openapi-typescript", "bin/cli.js")?;
    generator.current_dir(folder).args([name, "-o", types]);
    Some(without_warning(judge(generator).await))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validators_and_linters_find_nothing() {
    let folder = tempfile::tempdir().unwrap();
    described(folder.path()).await.stop().unwrap();
    for name in ["openapi.json", "operations.json"] {
        for judged in [
            validator(folder.path(), name).await,
            spectral(folder.path(), name).await,
            redocly(folder.path(), name).await,
        ] {
            println!("{}", judged.unwrap_or_else(|| Ok(String::new())).unwrap_or_else(|said| panic!("{said}")));
        }
    }
}

/// Each gate refuses a description with a fault of its kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_gate_refuses_a_spoiled_description() {
    let folder = tempfile::tempdir().unwrap();
    described(folder.path()).await.stop().unwrap();
    let folder = folder.path();
    let whole: Value = serde_json::from_slice(&std::fs::read(folder.join("openapi.json")).unwrap()).unwrap();
    let spoil = |spoil: &dyn Fn(&mut Value)| {
        let mut spoiled = whole.clone();
        spoil(&mut spoiled);
        std::fs::write(folder.join("spoiled.json"), spoiled.to_string()).unwrap();
    };
    let must_refuse = |judged: Option<Judged>, why: &str| {
        let Some(judged) = judged else { return };
        let said = judged.expect_err(why);
        assert!(said.contains(why), "{why}: {said}");
    };
    spoil(&|all| all["paths"]["/api/refunds"]["post"]["operationId"] = json!(5));
    must_refuse(validator(folder, "spoiled.json").await, "5 is not of type");
    spoil(&|all| drop(all["paths"]["/api/refunds"]["post"].as_object_mut().unwrap().remove("description")));
    must_refuse(spectral(folder, "spoiled.json").await, "operation-description");
    spoil(&|all| {
        drop(all["paths"]["/api/sandbox/pix/{txid}/pay"]["post"].as_object_mut().unwrap().remove("parameters"))
    });
    must_refuse(redocly(folder, "spoiled.json").await, "path-parameters-defined");
    spoil(&|all| {
        let content = all["paths"]["/api/refunds"]["post"]["requestBody"]["content"].as_object_mut().unwrap();
        let body = content.remove("application/json").unwrap();
        content.insert("text/unknown".to_owned(), body);
    });
    must_refuse(python_client(folder, "spoiled.json", "spoiled").await, "Unsupported content type");
    spoil(&|all| {
        all["components"]["schemas"]["Refund"]["properties"]["gone"] = json!({"$ref": "#/components/schemas/Gone"})
    });
    must_refuse(hey_api(folder, "spoiled.json", "spoiled").await, "Reference not found");
    must_refuse(openapi_typescript(folder, "spoiled.json", "spoiled.d.ts").await, "Can't resolve $ref");
    // A field that a caller needs is gone: its client is made, and the flow does not compile.
    spoil(&|all| {
        drop(all["components"]["schemas"]["ChargePage"]["properties"].as_object_mut().unwrap().remove("pages"))
    });
    let made = openapi_typescript(folder, "spoiled.json", "centavo.d.ts").await;
    if made.is_some() && compiler().is_some() {
        openapi_typescript(folder, "operations.json", "operations.d.ts").await.unwrap().unwrap();
        must_refuse(Some(compile(folder, include_str!("flow_types.ts"), &[]).await), "Property 'pages' does not exist");
    }
    if let Some(mut types) = tool::python("mypy") {
        std::fs::write(folder.join("wrong.py"), "def f(x: int) -> str:\n    return x\n").unwrap();
        types.current_dir(folder).args(["-m", "mypy", "--strict", "wrong.py"]);
        must_refuse(Some(judge(types).await), "Incompatible return value");
    }
}

/// The generator knows JSON, forms, bytes and text. An option makes it take files for bytes, and
/// the image of a QR code for text.
const FILES: &str = "\
content_type_overrides:
  text/csv: application/octet-stream
  application/x-ofx: application/octet-stream
  image/svg+xml: text/plain
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
    for (name, client) in [("openapi.json", "client"), ("operations.json", "operations")] {
        python_client(folder.path(), name, client).await.unwrap().unwrap();
    }
    if let Some(mut types) = tool::python("mypy") {
        types.current_dir(folder.path()).args(["-m", "mypy", "--strict", "client", "operations"]);
        println!("{}", run(types).await);
    }
    for script in [include_str!("clients.py"), include_str!("flow.py")] {
        let mut reader = python();
        reader.args(["-c", script]).env("CENTAVO_URL", &server.public).env("CENTAVO_OPS_URL", &server.operations);
        reader.env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
        println!("{}", run(reader).await);
    }
    server.stop().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hey_api_types_every_answer_and_its_client_goes_through_a_flow() {
    if tool::node("standardwebhooks").is_none() || compiler().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path()).await;
    for (description, made) in [("openapi.json", "client"), ("operations.json", "operations")] {
        let Some(judged) = hey_api(folder.path(), description, made).await else { return };
        judged.unwrap();
    }
    std::fs::write(folder.path().join("operators.ts"), OPERATIONS).unwrap();
    compile_and_go(folder.path(), include_str!("flow.ts"), &["operators.ts", "--skipLibCheck"], &server).await;
    server.stop().unwrap();
}

/// Types alone: the flow calls by `fetch`, and they say what each call takes and gives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openapi_typescript_types_every_event_and_problem_and_a_flow() {
    if tool::node("standardwebhooks").is_none() || compiler().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = described(folder.path()).await;
    for (description, made) in [("openapi.json", "centavo.d.ts"), ("operations.json", "operations.d.ts")] {
        let Some(judged) = openapi_typescript(folder.path(), description, made).await else { return };
        judged.unwrap();
    }
    std::fs::write(folder.path().join("clients.ts"), include_str!("clients.ts")).unwrap();
    compile_and_go(folder.path(), include_str!("flow_types.ts"), &["clients.ts"], &server).await;
    server.stop().unwrap();
}

/// An enumeration with null among its values does not compile, and a null example is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_for_zod_compile_and_take_every_example() {
    if tool::node("zod").is_none() || compiler().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    described(folder.path()).await.stop().unwrap();
    for (description, made) in [("openapi.json", "merchants"), ("operations.json", "operators")] {
        let Some(mut zodios) = tool::node_program("openapi-zod-client", "bin.js") else { return };
        zodios.current_dir(folder.path());
        zodios.args([description, "-o", &format!("{made}.zod.ts"), "--export-schemas"]);
        println!("{}", run(zodios).await);
        let plugin = "{ name: 'zod', compatibilityVersion: 3, dates: { offset: true } }";
        let config = format!("export default {{ input: '{description}', output: '{made}', plugins: [{plugin}] }};");
        std::fs::write(folder.path().join("hey.mjs"), config).unwrap();
        let Some(mut hey) = tool::node_program("@hey-api/openapi-ts", "bin/run.js") else { return };
        hey.current_dir(folder.path()).args(["-f", "hey.mjs"]);
        without_warning(judge(hey).await).unwrap();
    }
    let compiled = compile(folder.path(), include_str!("zod.ts"), &["--skipLibCheck"]).await;
    println!("{}", compiled.unwrap_or_else(|said| panic!("{said}")));
    let mut taken = tool::node("zod").unwrap();
    taken.current_dir(folder.path()).arg("made/flow.js");
    let said = run(taken).await;
    assert!(said.contains("every example was taken"), "{said}");
}

fn compiler() -> Option<Command> {
    tool::node_program("typescript", "bin/tsc")
}

/// Compiles a flow strictly, with what it needs and other files.
async fn compile(folder: &Path, flow: &str, others: &[&str]) -> Judged {
    std::fs::write(folder.join("flow.ts"), flow).unwrap();
    std::fs::write(folder.join("hour.ts"), include_str!("hour.ts")).unwrap();
    let modules = std::path::absolute(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default()).unwrap();
    std::os::unix::fs::symlink(modules, folder.join("node_modules")).unwrap();
    let mut compiler = compiler().unwrap();
    compiler.current_dir(folder).args(["--strict", "--noUncheckedIndexedAccess", "--types", "node"]);
    compiler.args(["--module", "commonjs", "--target", "es2022", "--outDir", "made", "flow.ts"]).args(others);
    judge(compiler).await
}

async fn compile_and_go(folder: &Path, flow: &str, others: &[&str], server: &Server) {
    println!("{}", compile(folder, flow, others).await.unwrap_or_else(|said| panic!("{said}")));
    let mut flow = tool::node("standardwebhooks").unwrap();
    flow.current_dir(folder)
        .arg("made/flow.js")
        .env("CENTAVO_URL", &server.public)
        .env("CENTAVO_OPS_URL", &server.operations);
    flow.env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
    let said = run(flow).await;
    assert!(said.contains("the flow of a marketplace went through"), "{said}");
}

/// Compiles where the operators' client has its functions, and their answers are exact.
const OPERATIONS: &str = "\
import { getQueue, type ReconciliationFinding } from './operations';
export const lineOf = (finding: ReconciliationFinding): number => finding.line ?? 0;
export const total = async (): Promise<number> => (await getQueue({ throwOnError: true })).data.total;";
