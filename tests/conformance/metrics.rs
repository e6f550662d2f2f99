//! Metrics against `promtool`, which judges their format, names and units; the queries of the
//! dashboard and the configurations of `docs/deploy` against it too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_has_nothing_to_say_about_the_metrics() {
    let Some(promtool) = tool::program("promtool") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let get = async |path: &str| {
        let asked = reqwest::Client::new().get(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN);
        asked.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    };
    get("/ops/backup").await;
    let metrics = get("/metrics").await;
    assert!(
        metrics.contains("centavo_http_requests_total{") && metrics.contains("centavo_backup_age_seconds"),
        "{metrics}"
    );
    let file = folder.path().join("metrics.txt");
    std::fs::write(&file, metrics).unwrap();
    let mut check = Command::new("sh");
    check.args(["-c", r#""$0" check metrics < "$1""#]).arg(promtool.get_program()).arg(file);
    let said = tool::run(check, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(said.trim(), "");
}

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy").join(name)
}

#[test]
fn prometheus_understands_its_configurations() {
    for name in ["prometheus.yml", "prometheus-compose.yml"] {
        let Some(mut promtool) = tool::program("promtool") else { return };
        promtool.args(["check", "config"]).arg(deploy(name));
        let said = tool::run(promtool, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
        assert!(said.contains("rules found"), "{said}");
    }
}

/// The queries of the dashboard as a file of rules, in which Grafana's variable has a value.
fn rules_of(dashboard: &Value) -> Value {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let rule = |(at, target): (usize, &Value)| {
        let query = target["expr"].as_str().unwrap().replace("$__rate_interval", "5m");
        assert!(!query.contains('$'), "{query} has a variable that nothing replaces");
        json!({"record": format!("query:{at}"), "expr": query})
    };
    let rules: Vec<_> = targets.enumerate().map(rule).collect();
    json!({"groups": [{"name": "dashboard", "rules": rules}]})
}

#[test]
fn every_query_of_the_dashboard_is_one() {
    let dashboard = serde_json::from_slice(&std::fs::read(deploy("grafana.json")).unwrap()).unwrap();
    let rules = rules_of(&dashboard);
    let count = rules["groups"][0]["rules"].as_array().unwrap().len();
    let check = |rules: &Value| {
        let mut promtool = tool::program("promtool")?;
        let file = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
        std::fs::write(file.path(), rules.to_string()).unwrap();
        promtool.args(["check", "rules"]).arg(file.path());
        Some(tool::run(promtool, Duration::from_secs(60)))
    };
    let Some(said) = check(&rules) else { return };
    assert!(said.as_ref().is_ok_and(|said| said.contains(&format!("{count} rules found"))), "{said:?}");
    // A query that is none does not pass.
    let mut wrong = rules;
    wrong["groups"][0]["rules"][0]["expr"] = json!("sum by (method (rate(centavo_http_requests_total[5m]))");
    let said = check(&wrong).unwrap().unwrap_err();
    assert!(said.contains("parse error"), "{said}");
}
