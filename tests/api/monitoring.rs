//! Dashboard, alert rules and the page of metrics name metrics that the server has.

use std::collections::BTreeSet;
use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::*;

/// The names of samples in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("centavo_") || word.starts_with("process_"))
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    words(text).map(|word| base(word).to_owned()).collect()
}

/// The metric of a sample's name.
fn base(name: &str) -> &str {
    ["_bucket", "_count", "_sum"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// Metrics of named institutions, which a sandbox has none of.
const OF_NAMED_RAILS: [&str; 3] =
    ["centavo_pix_read_timestamp_seconds", "centavo_rail_bells_total", "centavo_rail_tls_expiry_timestamp_seconds"];

#[tokio::test]
async fn each_metric_is_documented_and_each_one_that_is_named_exists() {
    let world = World::sandbox().await;
    let merchant = world.merchant().await;
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    world.send(Method::GET, "/api/balance", &[("token", "test_wrong")], "").await.refused(401, "unauthorized");
    let body = json!({"webhook_url": "http://127.0.0.1:9/hook"});
    world.ops_post(&format!("/ops/merchants/{}/api-keys", merchant.id), &body).await.expect(201);
    merchant.post("/api/card", &card(10_000, APPROVED)).await.expect(201);
    assert_eq!(world.ops_get("/ops/backup").await.status, 200);
    let metrics = loop {
        let metrics = world.send(Method::GET, "/metrics", &[], "").await.text;
        // The first try of a webhook is made in the background.
        if metrics.contains("centavo_webhook_deliveries_total") {
            break metrics;
        }
        tokio::task::yield_now().await;
    };
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let mut exposed: BTreeSet<String> = types.map(str::to_owned).collect();
    // Only listeners with TLS have it: see the tests of TLS.
    exposed.insert("centavo_tls_expiry_timestamp_seconds".to_owned());
    // Only named institutions have these: see their tests.
    exposed.extend(OF_NAMED_RAILS.map(str::to_owned));
    let read = |path: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let documented = names(&read("docs/operating.md"));
    let missing: Vec<_> = exposed.difference(&documented).collect();
    assert!(missing.is_empty(), "docs/operating.md does not name {missing:?}");
    let dashboard: Value = serde_json::from_str(&read("docs/deploy/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let queries: Vec<_> = panels.iter().flat_map(|panel| items_of(&panel["targets"])).collect();
    assert!(queries.len() >= 12);
    let queried: String = queries.iter().map(|query| query["expr"].as_str().unwrap()).collect::<Vec<_>>().join("\n");
    let unknown: Vec<_> = documented.difference(&exposed).collect();
    assert!(unknown.is_empty(), "docs/operating.md names {unknown:?}, which the server does not have");
    let histograms = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" histogram"));
    let histograms: BTreeSet<_> = histograms.map(str::to_owned).collect();
    assert!(histograms.len() > 3);
    for (place, text) in [("alerts.yml", read("docs/deploy/alerts.yml")), ("grafana.json", queried)] {
        let unknown: Vec<_> = words(&text).filter(|word| !is_sample(word, &exposed, &histograms)).collect();
        assert!(unknown.is_empty(), "docs/deploy/{place} names {unknown:?}, which the server does not have");
    }
    for (seeded, is_one) in [
        ("centavo_shed_total", true),
        ("centavo_gate_wait_seconds_bucket", true),
        ("centavo_gate_wait_seconds", false),
        ("centavo_shed_total_bucket", false),
        ("centavo_backup_age_seconds_sum", false),
    ] {
        assert_eq!(is_sample(seeded, &exposed, &histograms), is_one, "{seeded}");
    }
}

/// Whether a query of this name finds samples: a histogram has three series, and no other metric
/// has one of them.
fn is_sample(name: &str, metrics: &BTreeSet<String>, histograms: &BTreeSet<String>) -> bool {
    let metric = base(name);
    if metric == name { metrics.contains(name) && !histograms.contains(name) } else { histograms.contains(metric) }
}

/// A follower polls for ever, and a copy that it keeps is overwritten with every change: the age is
/// that of the last backup that somebody made.
#[tokio::test]
async fn a_copy_that_follows_is_no_backup_whose_age_is_measured() {
    let world = World::sandbox().await;
    let has_age = async || {
        let metrics = world.send(Method::GET, "/metrics", &[], "").await.text;
        metrics.lines().any(|line| line.starts_with("centavo_backup_age_seconds "))
    };
    for polled in ["/ops/backup?wait=0", "/ops/backup?from=1&wait=1", "/ops/backup?from=9000&wait=0"] {
        assert_eq!(world.ops_get(polled).await.status, 200, "{polled}");
        assert!(!has_age().await, "{polled}");
    }
    assert_eq!(world.ops_get("/ops/backup?from=1").await.status, 200);
    assert!(has_age().await);
}

fn items_of(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
