//! Exports that are made in the background: the same bytes as the stream, downloads with ranges,
//! signed manifests that follow each other, limits, age, and restarts.

use books::export::{Chart, Format, Level, Request};
use books::reports::{Report, ReportFormat};
use centavo::settings::checked::{ExportSettings, JournalSettings};
use centavo::settings::secrets::SecretSource;
use reqwest::Method;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use wire::cut_text::by_partition;

use crate::world::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(digits: &Value) -> Vec<u8> {
    let digits = text(digits);
    (0..digits.len() / 2).map(|place| u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap()).collect()
}

/// Takes an export on, and gives it once it is done.
async fn made(world: &World, path: &str, key: &str, body: &Value) -> Value {
    let authorization = bearer(key);
    let headers = [("authorization", authorization.as_str()), ("content-type", "application/json")];
    let answer = world.send(Method::POST, path, &headers, body.to_string()).await;
    let location = answer.header("location").unwrap().to_owned();
    let id = text(&answer.expect(202)["id"]);
    assert_eq!(location, format!("{path}/{id}"));
    world.finished(path, &id, key).await;
    let job = world.send(Method::GET, &location, &headers[..1], "").await.expect(200);
    assert_eq!(job["status"], "done", "{job}");
    job
}

async fn get(world: &World, path: &str, key: &str, headers: Headers<'_>) -> Answer {
    let authorization = bearer(key);
    let own = [("authorization", authorization.as_str())];
    world.send(Method::GET, path, &[&own, headers].concat(), "").await
}

#[tokio::test]
async fn a_file_is_what_the_stream_is_and_its_manifest_is_signed() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    for (path, key, stream) in [
        ("/ops/exports", OPS_TOKEN, "/ops/export?format=csv"),
        ("/api/reports", &merchant.key, "/api/reports/ledger?format=csv"),
    ] {
        let cut = world.cut().await;
        let job = made(&world, path, key, &json!({"format": "csv"})).await;
        let at = format!("{path}/{}", text(&job["id"]));
        let file = get(&world, &format!("{at}/file"), key, &[]).await;
        let streamed = get(&world, stream, key, &[]).await;
        assert_eq!((file.status, file.text.as_str()), (200, streamed.text.as_str()), "{path}");
        assert_eq!(streamed.header("x-cut"), Some(cut.to_string().as_str()));
        assert_eq!(job["cut"], json!(by_partition(&cut)));
        let digest = hex(&Sha256::digest(file.text.as_bytes()));
        assert_eq!([&job["file"]["sha256"], &job["file"]["bytes"]], [&json!(digest), &json!(file.text.len())]);

        let manifest = get(&world, &format!("{at}/manifest"), key, &[]).await;
        let signed = &job["manifest"];
        let digest = hex(&Sha256::digest(manifest.text.as_bytes()));
        assert_eq!(signed["sha256"], digest);
        let public = bytes(&signed["public_key"]);
        let checkpoint = format!("/ops/checkpoint?partition={}", world.last().await.partition.0);
        let checkpoint = world.ops_get(&checkpoint).await.expect(200);
        assert_eq!(signed["public_key"], checkpoint["public_key"]);
        let signature = bytes(&signed["signature"]);
        let statement = format!("centavo manifest 1\n{digest}\n");
        UnparsedPublicKey::new(&ED25519, &public).verify(statement.as_bytes(), &signature).unwrap();
        let other = format!("centavo manifest 1\n{}\n", "0".repeat(64));
        assert!(UnparsedPublicKey::new(&ED25519, &public).verify(other.as_bytes(), &signature).is_err());
        assert_eq!(manifest.body["files"][0]["sha256"], job["file"]["sha256"]);
        assert!(cut.partitions() > 1 || manifest.body["head"] == checkpoint["head"], "{}", manifest.text);
    }
}

/// A query for a program that guesses types from the first rows, beside JSON lines alone.
#[tokio::test]
async fn json_lines_come_with_the_types_of_their_columns() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    for (path, key) in [("/ops/exports", OPS_TOKEN), ("/api/reports", &merchant.key)] {
        let job = made(&world, path, key, &json!({"format": "jsonl"})).await;
        let (name, query) = (text(&job["file"]["name"]), text(&job["file"]["read_sql"]));
        assert!(query.starts_with(&format!("SELECT * FROM read_json('{name}'")), "{query}");
        let file = get(&world, &format!("{path}/{}/file", text(&job["id"])), key, &[]).await;
        let row: Value = serde_json::from_str(file.text.lines().next().unwrap()).unwrap();
        let missing = row.as_object().unwrap().keys().find(|column| !query.contains(&format!("\"{column}\": ")));
        assert_eq!(missing, None, "{query}");
        let job = made(&world, path, key, &json!({"format": "csv"})).await;
        assert_eq!(job["file"].get("read_sql"), None);
    }
}

/// A file that is made in the background has the labels that the stream has, and no manifest.
#[tokio::test]
async fn a_file_has_labels_where_they_are_asked_for() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let sold = with(&with(&pix("80.00"), "/reference", json!("pedido-1")), "/metadata", json!({"loja": "azul"}));
    merchant.paid_pix(&sold).await;
    let ledger = format!("M-{}", merchant.id);
    let of_operators = format!("/ops/export?format=csv&ledger={ledger}&labels=true");
    for (path, key, stream) in [
        ("/api/reports", &*merchant.key, "/api/reports/ledger?format=csv&labels=true"),
        ("/ops/exports", OPS_TOKEN, &*of_operators),
    ] {
        let asked = json!({"format": "csv", "labels": true});
        let asked = if path.starts_with("/ops") { with(&asked, "/ledger", json!(ledger)) } else { asked };
        let job = made(&world, path, key, &asked).await;
        let address = format!("{path}/{}", text(&job["id"]));
        let file = get(&world, &format!("{address}/file"), key, &[]).await;
        assert!(file.text.contains("pedido-1") && file.text.contains(r#"{""loja"":""azul""}"#), "{}", file.text);
        assert_eq!(file.text, get(&world, stream, key, &[]).await.text, "{path}");
        assert_eq!((job.get("manifest"), &job["labels"]), (None, &json!(true)), "{job}");
        get(&world, &format!("{address}/manifest"), key, &[]).await.refused(409, "state_conflict");
        for (wrong, code) in [(json!("true"), "not_a_boolean"), (json!(true), "not_taken")] {
            let format = if code == "not_taken" { "hledger" } else { "csv" };
            let body = with(&with(&asked, "/format", json!(format)), "/labels", wrong);
            let headers = [("authorization", &*bearer(key)), ("content-type", "application/json")];
            let wrong = world.send(Method::POST, path, &headers, body.to_string()).await;
            assert_eq!(wrong.refused(400, "validation_failed")["errors"][0]["code"], code, "{path}");
        }
        let plain = made(&world, path, key, &with(&asked, "/labels", json!(false))).await;
        assert!(plain["manifest"].is_object() && plain.get("labels").is_none(), "{plain}");
    }
    let report = json!({"report": "statement", "format": "csv", "ledger": ledger, "labels": true});
    let job = made(&world, "/ops/exports", OPS_TOKEN, &report).await;
    assert_eq!(job["labels"], true);
    let file = get(&world, &format!("/ops/exports/{}/file", text(&job["id"])), OPS_TOKEN, &[]).await;
    assert!(file.text.contains("merchant_reference") && file.text.contains("pedido-1"), "{}", file.text);
}

#[tokio::test]
async fn a_file_is_its_callers_alone() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let job = made(&world, "/api/reports", &merchant.key, &json!({"format": "csv"})).await;
    let other = world.merchant().await;
    for end in ["", "/file", "/manifest"] {
        let foreign = format!("/api/reports/{}{end}", text(&job["id"]));
        get(&world, &foreign, &other.key, &[]).await.refused(404, "not_found");
        get(&world, &foreign.replace("/api/reports", "/ops/exports"), OPS_TOKEN, &[]).await.refused(404, "not_found");
    }
}

/// The manifest of a month names that of the month before, and its balances follow.
#[tokio::test]
async fn manifests_follow_each_other() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    let today = |world: &World| wire::timestamp::day_of(world.engine().now().0);
    merchant.paid_pix(&pix("80.00")).await;
    let first = today(&world);
    world.advance(DAY).await;
    merchant.paid_pix(&pix("20.00")).await;
    let second = today(&world);
    let of = |day: chrono::NaiveDate| json!({"format": "jsonl", "from": day.to_string(), "to": day.to_string()});
    let mut manifests = Vec::new();
    // Of a day that is not over, and of another owner: none of them comes before the next day.
    let job = made(&world, "/api/reports", &merchant.key, &of(second)).await;
    let path = format!("/api/reports/{}/manifest", text(&job["id"]));
    assert_eq!(get(&world, &path, &merchant.key, &[]).await.body["complete"], false);
    merchant.paid_pix(&pix("3.00")).await;
    world.advance(DAY).await;
    merchant.paid_pix(&pix("7.00")).await;
    let third = today(&world);
    let theirs = with(&of(second), "/ledger", json!(merchant.ledger()));
    made(&world, "/ops/exports", OPS_TOKEN, &theirs).await;
    let job = made(&world, "/api/reports", &merchant.key, &of(third)).await;
    let path = format!("/api/reports/{}/manifest", text(&job["id"]));
    assert_eq!(get(&world, &path, &merchant.key, &[]).await.body["previous"], Value::Null);
    for day in [first, second] {
        let job = made(&world, "/api/reports", &merchant.key, &of(day)).await;
        let path = format!("/api/reports/{}/manifest", text(&job["id"]));
        manifests.push((job, get(&world, &path, &merchant.key, &[]).await.body));
    }
    assert!(manifests.iter().all(|(_, manifest)| manifest["complete"] == true));
    assert_eq!(manifests[0].1["previous"], Value::Null);
    assert_eq!(manifests[1].1["previous"]["sha256"], manifests[0].0["manifest"]["sha256"]);
    let account = |manifest: &Value| {
        let accounts = manifest["accounts"].as_array().unwrap();
        accounts.iter().find(|one| one["account"] == "Assets:Platform:Available").unwrap().clone()
    };
    assert_eq!(account(&manifests[1].1)["opening"], account(&manifests[0].1)["closing"]);
    // Days that are over stay as they are, whatever is booked later.
    merchant.paid_pix(&pix("1.00")).await;
    let job = made(&world, "/api/reports", &merchant.key, &of(second)).await;
    let path = format!("/api/reports/{}/manifest", text(&job["id"]));
    assert_eq!(get(&world, &path, &merchant.key, &[]).await.body, manifests[1].1);
}

#[tokio::test]
async fn exports_are_limited_and_go_when_they_are_old() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    for wrong in [
        json!({"format": "doc"}),
        json!({"format": 1}),
        json!({"from": "2026-02-30"}),
        json!({"from": "2026-02-02", "to": "2026-02-01"}),
        json!({"format": "ledger"}),
    ] {
        world.ops_post("/ops/exports", &wrong).await.refused(400, "validation_failed");
    }
    world.ops_post("/ops/exports", &json!({"ledger": "M-x"})).await.refused(400, "validation_failed");
    merchant.post("/api/reports", &json!({"ledger": "all"})).await.refused(400, "validation_failed");
    let before = made(&world, "/ops/exports", OPS_TOKEN, &json!({})).await;
    let id = text(&before["id"]);
    let name = format!("exports/{id}");
    assert!(world.data().join(&name).exists());
    drop(merchant);
    let world = world.restarted().await;
    let listed = world.ops_get("/ops/exports").await.expect(200);
    assert_eq!((&listed["total"], &listed["items"][0]), (&json!(1), &before), "it outlives a restart");
    assert_eq!(get(&world, &format!("/ops/exports/{id}/file"), OPS_TOKEN, &[]).await.status, 200);

    // A job that the end of the process interrupted has failed.
    let path = world.data().join(format!("{name}.job.json"));
    let folder = world.stopped().await;
    let job = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, job.replace("\"done\"", "\"running\"")).unwrap();
    let world = World::on(folder).await;
    let found = world.ops_get(&format!("/ops/exports/{id}")).await.expect(200);
    assert_eq!([&found["status"], &found["failure"]], [&json!("failed"), &json!("interrupted")]);
    get(&world, &format!("/ops/exports/{id}/file"), OPS_TOKEN, &[]).await.refused(409, "state_conflict");

    world.advance(7 * DAY).await;
    world.ops_get(&format!("/ops/exports/{id}")).await.refused(404, "not_found");
    let left = std::fs::read_dir(world.data().join("exports")).unwrap().count();
    assert_eq!((left, &world.ops_get("/ops/exports").await.expect(200)["total"]), (0, &json!(0)));
}

/// A chart of all accounts.
const CHART: &str = "[[account]]\nprefix = 'Assets'\ncode = '1'\n[[account]]\nprefix = 'Liabilities'\ncode = '2'\n\
    [[account]]\nprefix = 'Equity'\ncode = '2.9'\n[[account]]\nprefix = 'Income'\ncode = '3'\n\
    [[account]]\nprefix = 'Expenses'\ncode = '4'\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_in_the_background_is_the_report_that_is_served() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    for &report in Report::ALL {
        for format in ReportFormat::SERVED {
            let ledger = Some(merchant.ledger()).filter(|_| report == Report::Statement);
            let of = ledger.as_ref().map(|ledger| format!("&ledger={ledger}")).unwrap_or_default();
            let served = format!("/ops/reports/{}?format={}{of}", report.name(), format.name());
            let headers = [("authorization", bearer(OPS_TOKEN))];
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let (_, expected) = world.bytes(&served, &headers).await;
            let mut body = json!({"report": report.name(), "format": format.name()});
            if let Some(ledger) = ledger {
                body["ledger"] = json!(ledger);
            }
            let job = made(&world, "/ops/exports", OPS_TOKEN, &body).await;
            assert_eq!((&job["report"], &job["manifest"]), (&json!(report.name()), &Value::Null));
            let at = format!("/ops/exports/{}", text(&job["id"]));
            let (file_headers, found) = world.bytes(&format!("{at}/file"), &headers).await;
            assert!(found == expected, "{report:?} {format:?}");
            assert_eq!(file_headers["content-type"], format.media_type());
            assert_eq!(job["file"]["sha256"], hex(&Sha256::digest(&found)));
            get(&world, &format!("{at}/manifest"), OPS_TOKEN, &[]).await.refused(409, "state_conflict");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_with_the_codes_of_another_chart_are_those_of_the_command() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    let format = Format::JournalEntries;
    {
        for (level, name) in [(Level::Entry, "entry"), (Level::Day, "day")] {
            let out = tempfile::tempdir().unwrap();
            let request = Request { ledger: Some("P-all".to_owned()), format, from: None, to: None };
            let journal = JournalSettings {
                store: store_in(&world.folder()),
                ops_tls_cert: None,
                data: world.folder(),
                ops_listen: world.address_of("/ops/export"),
                ops_token: SecretSource::Text(OPS_TOKEN.to_owned().into()),
            };
            let chart = Some((Chart::parse(CHART).unwrap(), level));
            let folder = out.path().to_owned();
            let settings =
                ExportSettings { journal, request: request.clone(), at: None, out: folder, compress: false, chart };
            centavo::commands::export::run(settings).await.unwrap();
            let expected = std::fs::read_to_string(out.path().join(request.file_name())).unwrap();
            let body = json!({"ledger": "P-all", "format": format.name(), "map": CHART, "level": name});
            let job = made(&world, "/ops/exports", OPS_TOKEN, &body).await;
            let at = format!("/ops/exports/{}", text(&job["id"]));
            assert_eq!(get(&world, &format!("{at}/file"), OPS_TOKEN, &[]).await.text, expected, "{format:?} {name}");
            let manifest = get(&world, &format!("{at}/manifest"), OPS_TOKEN, &[]).await.expect(200);
            assert_eq!(manifest["request"]["level"], name);
            assert_eq!(manifest["request"]["map"], hex(&Sha256::digest(CHART)));
        }
    }
    let body =
        json!({"ledger": "P-all", "format": "journal-entries", "map": "[[account]]\nprefix = 'Assets'\ncode = '1'\n"});
    let id = text(&world.ops_post("/ops/exports", &body).await.expect(202)["id"]);
    world.finished("/ops/exports", &id, OPS_TOKEN).await;
    let job = world.ops_get(&format!("/ops/exports/{id}")).await.expect(200);
    assert_eq!((&job["status"], &job["failure"]), (&json!("failed"), &json!("no_code")), "{job}");
    assert!(text(&job["detail"]).contains("Liabilities:Merchants"), "{job}");
}

/// A map is set once, and exports without one of their own use it.
#[tokio::test]
async fn the_chart_of_accounts_is_stored() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.paid_pix(&pix("80.00")).await;
    let asked = json!({"ledger": "P-all", "format": "journal-entries"});
    assert_eq!(world.ops_get("/ops/chart").await.expect(200), json!({"map": null}));
    world.ops_post("/ops/exports", &asked).await.refused(400, "validation_failed");
    for wrong in [json!({}), json!({"map": "[[account]]\nprefix = 1"}), json!({"map": "x".repeat(50_001)})] {
        world.ops_post("/ops/chart", &wrong).await.refused(400, "validation_failed");
    }
    world.ops_post("/ops/chart", &json!({"map": "[[account]]\nprefix = 'Assets'\ncode = '1'\n"})).await.expect(200);
    let set = world.ops_post("/ops/chart", &json!({"map": CHART})).await.expect(200);
    assert_eq!(set["map"], CHART);
    let world = world.restarted().await;
    assert_eq!(world.ops_get("/ops/chart").await.expect(200), set);
    let mut jobs = Vec::new();
    for body in [asked.clone(), json!({"ledger": "P-all", "format": "journal-entries", "map": CHART})] {
        let job = made(&world, "/ops/exports", OPS_TOKEN, &body).await;
        let at = format!("/ops/exports/{}", text(&job["id"]));
        jobs.push(get(&world, &format!("{at}/file"), OPS_TOKEN, &[]).await.text);
        let manifest = get(&world, &format!("{at}/manifest"), OPS_TOKEN, &[]).await.expect(200);
        assert_eq!(manifest["request"]["map"], hex(&Sha256::digest(CHART)));
    }
    assert_eq!(jobs[0], jobs[1]);
    let audit = world.ops_get("/ops/audit?kind=chart_of_accounts").await.expect(200);
    let rows: Vec<_> = audit["items"].as_array().unwrap().iter().map(|row| row["action"].clone()).collect();
    assert_eq!(rows, ["change", "change"]);
}

#[tokio::test]
async fn what_a_job_does_not_take_is_named() {
    let world = World::sandbox().await;
    for (body, field) in [
        (json!({"report": "profit"}), "report"),
        (json!({"report": "statement"}), "ledger"),
        (json!({"report": "fees", "format": "parquet"}), "format"),
        (json!({"report": "fees", "map": CHART}), "map"),
        (json!({"report": "fees", "level": "day"}), "level"),
        (json!({"report": "receivables", "from": "2026-01-01"}), "from"),
        (json!({"format": "journal-entries", "ledger": "P-all"}), "map"),
        (json!({"format": "journal-entries", "map": CHART}), "ledger"),
        (json!({"format": "journal-entries", "ledger": "P-all", "map": "no chart"}), "map"),
        (json!({"format": "journal-entries", "ledger": "P-all", "map": CHART, "level": "month"}), "level"),
        (json!({"format": "csv", "map": CHART}), "map"),
        (json!({"format": "csv", "level": "day"}), "level"),
        (json!({"format": "csv", "account": "Assets"}), "account"),
    ] {
        let answer = world.ops_post("/ops/exports", &body).await;
        assert_eq!((answer.status, &answer.body["code"]), (400, &json!("validation_failed")), "{body}");
        assert_eq!(answer.body["errors"][0]["field"], field, "{body}: {}", answer.text);
    }
}
