//! Metrics against `promtool`, which judges their format, names and units; the files of
//! `docs/deploy` against `promtool` and `systemd-analyze`.

use std::process::Command;
use std::time::Duration;

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

#[test]
fn the_files_of_a_deployment_pass_the_checks_of_their_programs() {
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy");
    if let Some(mut promtool) = tool::program("promtool") {
        promtool.args(["check", "config"]).arg(deploy.join("prometheus.yml"));
        let said = tool::run(promtool, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
        assert!(said.contains("rules found"), "{said}");
    }
    for unit in ["centavo.service", "centavo-backup.service"] {
        let Some(mut analyze) = tool::program("systemd-analyze") else { return };
        // Exposure in tenths, from 0 (closed) to 100 (open).
        analyze.args(["security", "--offline=true", "--no-pager", "--threshold=20"]).arg(deploy.join(unit));
        tool::run(analyze, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"));
    }
}
