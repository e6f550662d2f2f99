//! Containers and log shipping of `docs/deploy`: the compose file against docker-compose and the
//! server's own check of settings, the rsyslog configuration in a running rsyslogd.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use testkit::server::centavo;

use crate::commands::blocks_of;
use crate::tool;

const PATIENCE: Duration = Duration::from_secs(30);

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy")
}

#[test]
fn docker_compose_understands_the_compose_file() {
    let check = |file: &Path| {
        let mut compose = tool::program("docker-compose")?;
        compose.arg("-f").arg(file).args(["config", "--quiet"]);
        Some(tool::run(compose, PATIENCE))
    };
    let Some(judged) = check(&deploy().join("compose.yml")) else { return };
    judged.unwrap_or_else(|said| panic!("{said}"));
    // A setting that it does not know does not pass, and neither does a volume that nobody names.
    let folder = tempfile::tempdir().unwrap();
    let compose = std::fs::read_to_string(deploy().join("compose.yml")).unwrap();
    for (from, to, why) in
        [("stop_grace_period:", "stop_grace:", "stop_grace"), ("\nvolumes:\n  data:", "\nvolumes:\n  other:", "data")]
    {
        assert!(compose.contains(from), "{from}");
        let wrong = folder.path().join("compose.yml");
        std::fs::write(&wrong, compose.replace(from, to)).unwrap();
        let said = check(&wrong).unwrap().unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

/// A file of `docs/deploy` in YAML, as JSON.
fn yaml(name: &str) -> Option<Value> {
    let mut python = tool::python("yaml")?;
    python.args(["-c", "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))"]);
    python.arg(deploy().join(name));
    let said = tool::run(python, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
    Some(serde_json::from_str(&said).unwrap())
}

fn compose() -> Option<Value> {
    yaml("compose.yml")
}

/// Grafana finds Prometheus by the name of its service, and the dashboard where it is mounted.
#[test]
fn grafana_finds_its_data_and_its_dashboard() {
    let names = ["compose.yml", "grafana-datasource.yml", "grafana-dashboards.yml"];
    let [Some(compose), Some(data), Some(dashboards)] = names.map(yaml) else { return };
    let source = &data["datasources"][0];
    assert_eq!((&source["type"], &source["url"]), (&"prometheus".into(), &"http://prometheus:9090".into()));
    assert!(compose["services"]["prometheus"]["ports"][0].as_str().unwrap().ends_with(":9090"));
    let folder = dashboards["providers"][0]["options"]["path"].as_str().unwrap();
    let mounted = compose["services"]["grafana"]["volumes"].as_array().unwrap();
    assert!(mounted.contains(&format!("./grafana.json:{folder}/centavo.json:ro").into()), "{folder}: {mounted:?}");
}

/// Before the dashboard: it is of the types that Grafana publishes, as they stand in JSON, where
/// members of enumerations are their values.
const DASHBOARD_TYPES: &str = r#"
import type { Dashboard, Panel } from "@grafana/schema";
type Json<T> = T extends string ? `${T}`
  : T extends number ? (`${T}` extends `${infer N extends number}` ? N : never)
  : T extends Array<infer Item> ? Array<Json<Item>>
  : T extends object ? { [Key in keyof T]: Json<T[Key]> } : T;
type Judged = Omit<Json<Dashboard>, "panels"> & { panels: Json<Panel>[] };
export const dashboard: Judged ="#;

#[test]
fn grafanas_own_types_take_the_dashboard() {
    if tool::node("@grafana/schema").is_none() {
        return;
    }
    let Some(mut compiler) = tool::node_program("typescript", "bin/tsc") else { return };
    let modules = std::path::absolute(std::env::var_os("CENTAVO_NODE_MODULES").unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();
    compiler.current_dir(folder.path()).args(["--strict", "--noEmit", "--skipLibCheck", "--types", "node"]);
    compiler.args(["--pretty", "false", "--module", "nodenext", "--target", "es2022"]);
    let dashboard = std::fs::read_to_string(deploy().join("grafana.json")).unwrap();
    // The dashboard itself, and with a fault each.
    let files = [
        ("\"uid\"", "\"uid\"", ""),
        ("\"schemaVersion\"", "\"schema\"", "'\"schema\"' does not exist"),
        ("\"gridPos\"", "\"grid\"", "'\"grid\"' does not exist"),
        ("\"unit\"", "\"units\"", "'\"units\"' does not exist"),
        ("\"type\": \"datasource\"", "\"type\": \"source\"", "'\"source\"' is not assignable"),
        ("\"hide\": 0", "\"current\": {}, \"hide\": 0", "missing the following properties"),
    ];
    for (at, (from, to, _)) in files.iter().enumerate() {
        assert!(dashboard.contains(from), "{from}");
        let text = format!("{DASHBOARD_TYPES} {};\n", dashboard.replace(from, to));
        std::fs::write(folder.path().join(format!("{at}.ts")), text).unwrap();
        compiler.arg(format!("{at}.ts"));
    }
    let said = tool::run(compiler, PATIENCE * 8).unwrap_err();
    let errors_at = |at: usize| said.lines().filter(|line| line.starts_with(&format!("{at}.ts("))).collect::<Vec<_>>();
    assert_eq!(errors_at(0), [""; 0], "{said}");
    for (at, (from, _, why)) in files.iter().enumerate().skip(1) {
        assert!(errors_at(at).iter().any(|line| line.contains(why)), "{from}: {said}");
    }
    // They are those of the Grafana that is started.
    let compose = std::fs::read_to_string(deploy().join("compose.yml")).unwrap();
    let version = compose.lines().find_map(|line| line.trim().strip_prefix("image: grafana/grafana:")).unwrap();
    let tested = std::fs::read_to_string(deploy().join("../../.ci/run")).unwrap();
    assert!(tested.contains(&format!("@grafana/schema@{version}\n")), "{version} is not what is tested");
}

/// Writes the secrets that the file names, under their names in a container.
fn write_secrets(compose: &Value, folder: &Path) {
    let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let (merchants, operators) = (made("pay.test"), made("centavo"));
    let chain = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| made.cert.pem();
    let key = |made: &rcgen::CertifiedKey<rcgen::KeyPair>| made.signing_key.serialize_pem();
    for name in compose["secrets"].as_object().unwrap().keys() {
        let text = match name.as_str() {
            "master-key" => "0a".repeat(32),
            "ops-token" => format!("operator:{}", "b".repeat(64)),
            "tls-chain" => chain(&merchants),
            "tls-key" => key(&merchants),
            "ops-tls-chain" => chain(&operators),
            "ops-tls-key" => key(&operators),
            "grafana-password" => "c".repeat(32),
            other => panic!("{other} is no secret of these services"),
        };
        std::fs::write(folder.join(name), text).unwrap();
    }
}

/// Every file that a service gets from beside the file is there, but the folders that the page says
/// to make; and every secret that it reads is one that it is given.
#[test]
fn the_services_are_given_what_the_page_says() {
    let Some(compose) = compose() else { return };
    let page = std::fs::read_to_string(deploy().join("README.md")).unwrap();
    let made = page.lines().find_map(|line| line.trim().strip_prefix("mkdir -p ")).unwrap();
    for (name, service) in compose["services"].as_object().unwrap() {
        for volume in service["volumes"].as_array().unwrap() {
            let Some(from) = volume.as_str().unwrap().split(':').next().unwrap().strip_prefix("./") else { continue };
            let is_made = made.split(' ').any(|folder| folder == from);
            assert!(is_made || deploy().join(from).is_file(), "{name}: {from}");
        }
        for secret in service["secrets"].as_array().unwrap() {
            assert!(compose["secrets"].get(secret.as_str().unwrap()).is_some(), "{name}: {secret}");
        }
    }
    let prometheus = std::fs::read_to_string(deploy().join("prometheus-compose.yml")).unwrap();
    let secret = prometheus.lines().find_map(|line| line.trim().strip_prefix("ca_file: /run/secrets/")).unwrap();
    assert_eq!(compose["services"]["prometheus"]["secrets"], serde_json::json!([secret]));
}

#[test]
fn a_server_starts_with_the_settings_of_the_compose_file() {
    let Some(compose) = compose() else { return };
    let folder = tempfile::tempdir().unwrap();
    write_secrets(&compose, folder.path());
    let server = &compose["services"]["centavo"];
    let given: Vec<_> = server["secrets"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let mut check = Command::new(centavo());
    check.args(["serve", "--check"]).env("CENTAVO_DATA", folder.path().join("data")).current_dir(folder.path());
    let mut listening = Vec::new();
    for (name, value) in server["environment"].as_object().unwrap() {
        let value = value.as_str().unwrap();
        match (name.as_str(), value.strip_prefix("/run/secrets/")) {
            (_, Some(secret)) => {
                assert!(given.contains(&secret), "{secret} is not given to the server");
                check.env(name, folder.path().join(secret));
            }
            ("CENTAVO_LISTEN" | "CENTAVO_OPS_LISTEN", None) => {
                listening.push(value.parse::<SocketAddr>().unwrap().port().to_string());
                // The port itself may be in use on this machine.
                check.env(name, "127.0.0.1:0");
            }
            (_, None) => drop(check.env(name, value)),
        }
    }
    let said = tool::run(check, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
    assert!(said.contains("A server starts with these settings.") && !said.contains("error:"), "{said}");
    // A setting that the program does not know would be left out there.
    for name in server["environment"].as_object().unwrap().keys() {
        assert!(said.lines().any(|line| line.trim_end().ends_with(name.as_str())), "{name}: {said}");
    }
    let published: Vec<_> = server["ports"].as_array().unwrap().iter().map(|port| port.as_str().unwrap()).collect();
    for port in listening {
        assert!(published.iter().any(|published| published.ends_with(&format!(":{port}"))), "{port}: {published:?}");
    }
    let backup = compose["services"]["backup"]["command"].as_array().unwrap();
    let mut understood = Command::new(centavo());
    understood.args(backup.iter().map(|argument| argument.as_str().unwrap())).arg("--help");
    tool::run(understood, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
}

/// The container of the page without TLS: its settings and ports, without an engine.
#[test]
fn a_server_starts_with_the_settings_of_the_container() {
    let block =
        blocks_of("docs/deploy/README.md").0.into_iter().find(|block| block.starts_with("export CENTAVO_OPS_TOKEN"));
    let block = block.unwrap().replace("\\\n", " ");
    let words: Vec<_> = block.split_whitespace().collect();
    let after = |flag: &str| words.windows(2).filter(|pair| pair[0] == flag).map(|pair| pair[1]).collect::<Vec<_>>();
    assert_eq!(after("-p"), ["127.0.0.1:8080:8080", "127.0.0.1:8081:8081"]);
    assert_eq!(after("-v"), ["centavo:/data"]);
    assert_eq!(words.last(), Some(&concat!("centavo:", env!("CARGO_PKG_VERSION"))));
    let folder = tempfile::tempdir().unwrap();
    let mut check = Command::new(centavo());
    check.args(["serve", "--check"]).env("CENTAVO_DATA", folder.path().join("data"));
    // What the image itself sets; the port may be in use on this machine.
    check.env("CENTAVO_LISTEN", "127.0.0.1:0");
    let given = after("-e");
    for setting in &given {
        let (name, value) = setting.split_once('=').unwrap();
        match (name, value) {
            ("CENTAVO_OPS_LISTEN", "0.0.0.0:8081") => check.env(name, "127.0.0.1:0"),
            (_, "\"$CENTAVO_OPS_TOKEN\"") => check.env(name, "ab".repeat(16)),
            _ => check.env(name, value),
        };
    }
    let said = tool::run(check, PATIENCE).unwrap_or_else(|said| panic!("{said}"));
    assert!(said.contains("A server starts with these settings."), "{said}");
    for setting in given {
        let name = setting.split('=').next().unwrap();
        assert!(said.lines().any(|line| line.trim_end().ends_with(name)), "{name}: {said}");
    }
}

#[test]
fn rsyslog_sends_the_lines_of_the_server_as_they_are() {
    let (Some(_), Some(_)) = (tool::program_with("rsyslogd", "-v"), tool::program("logger")) else { return };
    let folder = tempfile::tempdir().unwrap();
    let check = |file: &Path| {
        let mut check = Command::new("rsyslogd");
        check.args(["-N1", "-f"]).arg(file);
        let said = tool::run(check, PATIENCE)?;
        if said.contains("error") || said.contains("warning") { Err(said) } else { Ok(said) }
    };
    check(&deploy().join("rsyslog.conf")).unwrap_or_else(|said| panic!("{said}"));
    // A parameter with a slip does not pass.
    let wrong = folder.path().join("wrong.conf");
    let config = std::fs::read_to_string(deploy().join("rsyslog.conf")).unwrap();
    std::fs::write(&wrong, config.replace("target=", "targte=")).unwrap();
    let said = check(&wrong).unwrap_err();
    assert!(said.contains("targte"), "{said}");

    // The same file with a collector on this machine, without TLS, and a socket of its own.
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let file = std::fs::read_to_string(deploy().join("rsyslog.conf")).unwrap();
    let mut here = file.replace(
        "target=\"logs.example.com\" port=\"6514\"",
        &format!("target=\"127.0.0.1\" port=\"{}\"", collector.local_addr().unwrap().port()),
    );
    for (text, other) in [
        ("StreamDriver=\"gtls\" StreamDriverMode=\"1\" StreamDriverAuthMode=\"x509/name\" ", ""),
        ("StreamDriverPermittedPeers=\"logs.example.com\"", ""),
        ("/var/spool/rsyslog", folder.path().to_str().unwrap()),
    ] {
        assert!(here.contains(text), "{text}");
        here = here.replace(text, other);
    }
    let socket = folder.path().join("log");
    let input = format!(
        "module(load=\"imuxsock\" SysSock.Use=\"off\")\ninput(type=\"imuxsock\" Socket=\"{}\")\n",
        socket.display()
    );
    let config = folder.path().join("rsyslog.conf");
    std::fs::write(&config, format!("{input}{here}")).unwrap();
    let mut daemon = Command::new("rsyslogd");
    daemon.args(["-n", "-f"]).arg(&config).arg("-i").arg(folder.path().join("pid"));
    let _running = tool::Running(daemon.spawn().unwrap());
    let deadline = Instant::now() + PATIENCE;
    while !socket.exists() {
        assert!(Instant::now() < deadline, "rsyslogd does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let line = r#"{"timestamp":"2026-07-01T12:00:00Z","level":"INFO","message":"serving"}"#;
    for (tag, text) in [("other", "not of the server"), ("centavo", line)] {
        let status = Command::new("logger").arg("-u").arg(&socket).args(["-t", tag, "--", text]).status();
        assert!(status.unwrap().success());
    }
    collector.set_nonblocking(true).unwrap();
    let mut stream = loop {
        assert!(Instant::now() < deadline, "nothing is sent");
        match collector.accept() {
            Ok((stream, _)) => break stream,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut sent = Vec::new();
    while !sent.ends_with(b"\n") {
        let mut part = [0; 4_096];
        let count = stream.read(&mut part).unwrap();
        assert_ne!(count, 0, "it was closed");
        sent.extend_from_slice(&part[..count]);
    }
    assert_eq!(String::from_utf8(sent).unwrap(), format!("{line}\n"));
}
