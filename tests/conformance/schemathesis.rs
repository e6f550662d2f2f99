//! Fuzzer: schemathesis reads the description of the interface and sends valid and invalid
//! requests. Nothing may fail inside, every answer must be as described, and invalid requests must
//! be refused.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};
use testkit::setting;

use crate::tool;

/// How long one listener may be tried; both are tried at once.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// The program that runs it: bodies of OFX files are sent as text. An empty text is as good as an
/// absent field, a null as good as no body where an API key is asked for, and a registration's
/// fields of the other kind are passed over. Charges of a batch are refused alone, with 200 for the
/// batch. Schemas do not say so, so bodies that are wrong have none of them.
const RUN: &str = "
import schemathesis as of
of.serializer.alias('application/x-ofx', 'text/plain')

def has_empty_text(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return value == '' or any(map(has_empty_text, inner))

OF_THE_OTHER_KIND = {
    'individual': ['company_name', 'annual_revenue', 'managing_partners'],
    'corporation': ['name', 'birthdate', 'mother_name', 'monthly_income'],
}

def has_unread_field(body):
    of = body.get('register_information') if isinstance(body, dict) else None
    return isinstance(of, dict) and any(
        of.get('type') == kind and any(name in of for name in names) for kind, names in OF_THE_OTHER_KIND.items())

@of.hook
def filter_case(context, case):
    is_wrong = case.meta and case.meta.generation.mode.is_negative
    is_absent = case.body is None and case.operation.path.endswith(('/api-keys', '/keys'))
    # In a query every value is a text, and a key that nothing has finds nothing.
    is_text_in_query = any(name.startswith('metadata') for name in case.query or {})
    is_refused_alone = isinstance(case.body, list) and case.operation.path.endswith('/charges/batch')
    return not (is_wrong and (is_absent or is_text_in_query or is_refused_alone or has_empty_text(case.body) or has_unread_field(case.body)))

from schemathesis.cli import schemathesis
schemathesis()
";

/// What is not held against the service: the description can't say it all. Whether a document or a
/// card number has its check digits, whether an id names an object, and whether its state allows
/// what is asked stands in no schema, so a request that keeps to its schema may be refused.
const EXCLUDED: &str = "positive_data_acceptance";

/// How a request that breaks its schema may be refused. 413 is among it: a body may also be larger
/// than any is taken.
const REFUSALS: &str = r#"
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_merchants_call_is_as_described() {
    let Some(command) = tool::python("schemathesis") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let merchant =
        json!({"name": "Loja Azul", "document": "12.345.678/0001-95", "split_enabled": true, "cashout_enabled": true});
    let id = created(&server, "/ops/merchants", &merchant).await["id"].as_str().unwrap().to_owned();
    let key = created(&server, &format!("/ops/merchants/{id}/api-keys"), &json!({})).await;
    let key = key["api_key"].as_str().unwrap();
    fuzz(command, &server, &server.public, key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_operators_call_is_as_described() {
    let Some(command) = tool::python("schemathesis") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    fuzz(command, &server, &server.operations, OPS_TOKEN).await;
}

/// Tries the operations that this listener describes.
async fn fuzz(mut command: std::process::Command, server: &Server, base: &str, credential: &str) {
    let examples = setting("CENTAVO_CONFORMANCE_EXAMPLES").unwrap_or(20);
    let seed = setting("CENTAVO_CONFORMANCE_SEED").unwrap_or(1);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("schemathesis.toml"), REFUSALS).unwrap();
    command.current_dir(folder.path()).args(["-c", RUN, "run"]);
    command.arg(format!("{base}/openapi.json")).args(["--url", base]);
    command.args(["--header", &format!("Authorization: Bearer {credential}")]);
    command.args(["--phases", "examples,coverage,fuzzing,stateful", "--checks", "all", "--exclude-checks", EXCLUDED]);
    command.args(["--max-examples", &examples.to_string(), "--seed", &seed.to_string()]);
    // The credential is the one given: another made up beside it would be refused before anything
    // else is looked at.
    command.args(["--generation-with-security-parameters", "false", "--generation-database", "none"]);
    // One worker each: in several threads Python 3.11 fails now and then inside its own `ast`.
    // An answer may be waited for (`wait`), so its time is bounded by the request's alone.
    command.args([
        "--max-response-time",
        "60",
        "--workers",
        "1",
        "--request-timeout",
        "60",
        "--continue-on-failure",
        "--no-color",
    ]);
    let done = tokio::task::spawn_blocking(move || tool::run(command, PATIENCE)).await.unwrap();
    match done {
        Ok(said) => println!("{said}"),
        Err(said) => panic!("{said}"),
    }
    assert!(!server.said().contains("a panic"), "{}", server.said());
}

/// Creates something by the operators' interface.
async fn created(server: &Server, path: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN).json(body);
    request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
}
