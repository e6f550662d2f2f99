//! Metrics against `promtool`, which judges their format, names and units; the queries of the
//! dashboard and the configurations of `docs/deploy` against it too. A Prometheus reads a server
//! with these files and serves their dashboard.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::server::{Launch, OPS_TOKEN, Server};

use crate::tool;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promtool_has_nothing_to_say_about_the_metrics() {
    let Some(promtool) = tool::program("promtool") else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(folder.path())).await.unwrap();
    let get = async |path: &str| {
        let request = reqwest::Client::new().get(format!("{}{path}", server.operations)).bearer_auth(OPS_TOKEN);
        request.send().await.unwrap().error_for_status().unwrap().text().await.unwrap()
    };
    get("/ops/backup").await;
    let metrics = get("/metrics").await;
    assert!(
        metrics.contains("centavo_http_requests_total{") && metrics.contains("centavo_backup_age_seconds"),
        "{metrics}"
    );
    let file = folder.path().join("metrics.txt");
    std::fs::write(&file, metrics).unwrap();
    let check = || {
        let mut check = Command::new("sh");
        check.args(["-c", r#""$0" check metrics < "$1""#]).arg(promtool.get_program()).arg(&file);
        tool::run(check, Duration::from_secs(60))
    };
    let said = check().unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(said.trim(), "");
    // A counter whose name is none does not pass.
    std::fs::write(&file, "# HELP centavo_requests Requests.\n# TYPE centavo_requests counter\ncentavo_requests 1\n")
        .unwrap();
    let said = check().unwrap_or_else(|said| said);
    assert!(said.contains("counter metrics should have \"_total\" suffix"), "{said}");
}

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy").join(name)
}

#[test]
fn prometheus_understands_its_configurations() {
    let check = |file: &Path| {
        let mut promtool = tool::program("promtool")?;
        promtool.args(["check", "config"]).arg(file);
        Some(tool::run(promtool, Duration::from_secs(60)))
    };
    for name in ["prometheus.yml", "prometheus-compose.yml"] {
        let Some(said) = check(&deploy(name)) else { return };
        let said = said.unwrap_or_else(|said| panic!("{said}"));
        assert!(said.contains("rules found"), "{said}");
    }
    // An alert whose query is none does not pass, and neither does a setting without a meaning.
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read_to_string(deploy(name)).unwrap();
    let (settings, alerts) = (read("prometheus.yml"), read("alerts.yml"));
    for (settings, alerts, why) in [
        (settings.clone(), alerts.replacen("expr: ", "expr: sum(", 1), "parse error"),
        (settings.replace("job_name:", "job:"), alerts, "field job not found"),
    ] {
        std::fs::write(folder.path().join("prometheus.yml"), settings).unwrap();
        std::fs::write(folder.path().join("alerts.yml"), alerts).unwrap();
        let said = check(&folder.path().join("prometheus.yml")).unwrap().unwrap_err();
        assert!(said.contains(why), "{said}");
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

/// The page that Prometheus serves has the panels of the dashboard for Grafana.
#[test]
fn both_dashboards_have_the_same_panels() {
    let grafana: Value = serde_json::from_slice(&std::fs::read(deploy("grafana.json")).unwrap()).unwrap();
    let legend = |text: &str| text.replace("{{", "[").replace("}}", "]");
    let panel = |panel: &Value| {
        let text = |value: &Value| value.as_str().unwrap().replace("$__rate_interval", "5m");
        let query = |target: &Value| json!([text(&target["expr"]), legend(&text(&target["legendFormat"]))]);
        let queries: Vec<_> = panel["targets"].as_array().unwrap().iter().map(query).collect();
        let unit = &panel["fieldConfig"]["defaults"]["unit"];
        json!({"title": panel["title"], "description": panel["description"], "unit": unit, "queries": queries})
    };
    let of_grafana: Vec<_> = grafana["panels"].as_array().unwrap().iter().map(panel).collect();
    assert_eq!(panels(), of_grafana);
}

/// The panels of the page that Prometheus serves.
fn panels() -> Vec<Value> {
    let page = std::fs::read_to_string(deploy("prometheus-console.html")).unwrap();
    let definitions = page.split("id=\"definitions\">").nth(1).unwrap().split("</script>").next().unwrap();
    serde_json::from_str(definitions).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prometheus_reads_a_server_and_serves_its_dashboard() {
    let Some(mut prometheus) = tool::program("prometheus") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(&Launch::on(&path("data"))).await.unwrap();
    let read = |name: &str| std::fs::read_to_string(deploy(name)).unwrap();
    let given = read("prometheus.yml").replace("scrape_interval: 15s", "scrape_interval: 1s");
    let target = server.operations.strip_prefix("http://").unwrap();
    assert!(given.contains("127.0.0.1:8081"));
    std::fs::write(path("prometheus.yml"), given.replace("127.0.0.1:8081", target)).unwrap();
    std::fs::write(path("alerts.yml"), read("alerts.yml")).unwrap();
    std::fs::create_dir(path("consoles")).unwrap();
    std::fs::write(path("consoles/centavo.html"), read("prometheus-console.html")).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    prometheus.current_dir(folder.path()).arg("--config.file=prometheus.yml").arg("--storage.tsdb.path=samples");
    prometheus.arg("--web.console.templates=consoles").arg(format!("--web.listen-address=127.0.0.1:{port}"));
    prometheus.stderr(std::fs::File::create(path("log")).unwrap());
    let _running = tool::Running(prometheus.spawn().unwrap());

    let client = reqwest::Client::new();
    let ask = async |path: &str| {
        let answer = client.get(format!("http://127.0.0.1:{port}{path}")).send().await.ok()?;
        answer.error_for_status().ok()?.text().await.ok()
    };
    let results = async |query: &str| {
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let answer = ask(&format!("/api/v1/query?query={query}")).await?;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["data"]["result"].as_array().cloned().filter(|results| !results.is_empty())
    };
    let made = client.get(format!("{}/ops/backup", server.operations)).bearer_auth(OPS_TOKEN).send().await.unwrap();
    made.error_for_status().unwrap().bytes().await.unwrap();
    // Credentials are counted from the first wrong one on.
    let wrong = client.get(format!("{}/ops/backup", server.operations)).bearer_auth("wrong").send().await.unwrap();
    assert_eq!(wrong.status(), 401);
    let queries = panels().into_iter().flat_map(|panel| panel["queries"].as_array().unwrap().clone());
    let mut waiting: Vec<_> = queries.map(|query| query[0].as_str().unwrap().to_owned()).collect();
    waiting.push("up{job=\"centavo\"} == 1".to_owned());
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Some(query) = waiting.last() {
        if results(query).await.is_some() {
            waiting.pop();
            continue;
        }
        let log = std::fs::read_to_string(path("log")).unwrap();
        assert!(Instant::now() < deadline, "nothing is known of {waiting:?}\n{log}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let rules: Value = serde_json::from_str(&ask("/api/v1/rules").await.unwrap()).unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert_eq!(rules.len(), read("alerts.yml").matches("- alert:").count());
    assert!(rules.iter().all(|rule| rule["lastError"].is_null()), "{rules:?}");
    let page = ask("/consoles/centavo.html").await.unwrap();
    assert!(page.contains("const prefix = \"\"") && page.contains("id=\"definitions\""), "{page}");
    let Some(_) = tool::program("chromium") else { return };
    let address = format!("http://127.0.0.1:{port}/consoles/centavo.html");
    // The rate of a route is known after two more scrapes.
    let all = ["free: ", " GiB</li>", "resident bytes: ", "GET /ops/backup: "];
    let deadline = Instant::now() + Duration::from_secs(60);
    let drawn = loop {
        let address = address.clone();
        let drawn = tokio::task::spawn_blocking(move || in_a_browser(&address)).await.unwrap();
        if all.iter().all(|metric| drawn.contains(metric)) || Instant::now() > deadline {
            break drawn;
        }
    };
    assert!(drawn.contains("As of ") && !drawn.contains("does not answer"), "{drawn}");
    assert_eq!(drawn.matches("</section>").count(), panels().len(), "{drawn}");
    // A quantile of nothing is no number, and draws no line.
    assert!(drawn.matches("<polyline points=\"").count() >= panels().len() / 2, "{drawn}");
    for metric in all {
        assert!(drawn.contains(metric), "{metric}: {drawn}");
    }
}

/// What a browser makes of a page, without the page's scripts.
fn in_a_browser(address: &str) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.path().display())).arg(address);
    let page = tool::run(browser, Duration::from_secs(120)).unwrap_or_else(|said| panic!("{said}"));
    page.split("<script").map(|part| part.split_once("</script>").map_or(part, |(_, text)| text)).collect()
}
