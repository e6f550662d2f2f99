//! Bank statements, read by a third-party parser of OFX: it must find in the sandbox's statements
//! what was booked, and what it writes itself, as OFX 2, must agree with the books.

use std::path::Path;
use std::time::Duration;

use books::reconcile::ofx;
use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

const DAY: i64 = 24 * 60 * 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_are_read_by_another_parser_and_its_own_agree_with_the_books() {
    let Some(mut command) = tool::python("ofxtools") else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&Launch::on(&data)).await.unwrap();
    let merchant = json!({"name": "Loja Azul", "city": "São Paulo", "document": "12345678909"});
    let merchant = post(&server.operations, "/ops/merchants", OPS_TOKEN, &merchant).await;
    let keys = format!("/ops/merchants/{}/api-keys", merchant["id"].as_str().unwrap());
    let key = post(&server.operations, &keys, OPS_TOKEN, &json!({})).await;
    let key = key["api_key"].as_str().unwrap();
    let mut paid = Vec::new();
    for valor in ["80.00", "0.01", "1234567.89"] {
        let body = json!({"valor": valor, "nome": "Maria", "cpf": "12345678909"});
        let charge = post(&server.public, "/api/pix", key, &body).await;
        let path = format!("/api/sandbox/pix/{}/pay", charge["txid"].as_str().unwrap());
        paid.push(post(&server.public, &path, key, &json!({})).await["amount"].as_i64().unwrap());
    }
    post(&server.operations, "/ops/sandbox/clock", OPS_TOKEN, &json!({"advance_seconds": DAY})).await;
    let statement = files(&data.join("sandbox/bank-pix"), "ofx").pop().unwrap();
    let (theirs, script) =
        (folder.path().join("theirs.ofx"), concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/statements.py"));
    command.args([Path::new(script), &statement, &theirs]);
    let said = tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    let read: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut found: Vec<_> =
        read["lines"].as_array().unwrap().iter().map(|line| line["centavos"].as_i64().unwrap()).collect();
    found.sort_unstable();
    paid.sort_unstable();
    assert_eq!((&found, &read["balance"]), (&paid, &json!(paid.iter().sum::<i64>())), "{said}");
    for file in [&statement, &theirs] {
        let request = reqwest::Client::new().post(format!("{}/ops/reconciliations?account=pix", server.operations));
        let request = request.bearer_auth(OPS_TOKEN).header("content-type", "application/x-ofx");
        let answer = request.body(std::fs::read(file).unwrap()).send().await.unwrap();
        let result: Value = answer.error_for_status().unwrap().json().await.unwrap();
        assert_eq!([&result["lines"], &result["matched"], &result["findings"]], [&json!(3), &json!(3), &json!([])]);
    }
    server.stop().unwrap();
}

/// Two readers of OFX read the forms of banks, as far as they can, and find the movements that the
/// product finds, with its days and amounts. They take rows of balances for movements.
#[test]
fn the_forms_of_banks_are_read_as_other_readers_do() {
    let Some(mut command) = tool::python("ofxparse, ofxtools") else { return };
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/statements"));
    let paths = files(folder, "ofx");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/statements_of_banks.py")).args(&paths);
    let said = tool::run(command, Duration::from_secs(120)).unwrap_or_else(|said| panic!("{said}"));
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let mut refused = Vec::new();
    for path in &paths {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let ours = ofx::read(&std::fs::read(path).unwrap()).unwrap();
        for (reader, theirs) in found[path.to_str().unwrap()].as_object().unwrap() {
            let Some(accounts) = theirs["accounts"].as_array() else {
                refused.push(format!("{reader} {name}"));
                continue;
            };
            assert_eq!(accounts.len(), ours.len(), "{reader} {name}");
            for (account, theirs) in ours.iter().zip(accounts) {
                let statement = account.statement.as_ref().unwrap();
                let lines = statement.lines.iter().map(|line| row(&line.id, line.amount.0, &line.day.to_string()));
                let theirs =
                    theirs[1].as_array().unwrap().iter().map(|line| {
                        row(line[0].as_str().unwrap(), line[1].as_i64().unwrap(), line[2].as_str().unwrap())
                    });
                let mut theirs: Vec<_> = theirs.collect();
                for line in lines {
                    let at = theirs.iter().position(|found| *found == line);
                    theirs.remove(at.unwrap_or_else(|| panic!("{reader} {name} lacks {line}: {theirs:?}")));
                }
                assert_eq!(theirs.len(), statement.balances.len(), "{reader} {name}: {theirs:?}");
            }
        }
    }
    refused.sort();
    let expected = [
        "ofxparse bradesco",
        "ofxparse caixa",
        "ofxparse pagbank",
        "ofxparse sicoob-iso-dates",
        "ofxtools banco-do-brasil",
        "ofxtools bradesco",
        "ofxtools bradesco-without-period",
        "ofxtools c6",
        "ofxtools caixa",
        "ofxtools inter",
        "ofxtools pagbank",
        "ofxtools santander-without-zeros",
        "ofxtools several-accounts",
        "ofxtools sicoob",
        "ofxtools sicoob-iso-dates",
    ];
    assert_eq!(refused, expected, "what they refuse stands in docs/compatibility.md");
}

fn row(id: &str, centavos: i64, day: &str) -> String {
    format!("{id} {centavos} {day}")
}

/// The files of a folder with an ending, in the order of their names.
fn files(folder: &Path, ending: &str) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|found| found == ending));
    files.sort();
    files
}

async fn post(base: &str, path: &str, credential: &str, body: &Value) -> Value {
    let request = reqwest::Client::new().post(format!("{base}{path}")).bearer_auth(credential).json(body);
    request.send().await.unwrap().error_for_status().unwrap().json().await.unwrap()
}
