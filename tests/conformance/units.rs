//! Units of `docs/deploy` against the programs of systemd: what they say is understood, they leave
//! little open, and they stop the server no earlier than it stops by itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use centavo::server::watchdog::STOP_MAX;
use testkit::server::centavo;
use web::server::ServerLimits;

use crate::tool;

const UNITS: [&str; 4] =
    ["centavo.service", "centavo-backup.service", "centavo-follower.service", "centavo-backup.timer"];

/// Where the package puts the program, and the units look for it.
const INSTALLED: &str = "/usr/bin/centavo";
/// The settings file of the package.
const SETTINGS: &str = "/etc/centavo/centavo.toml";

fn deploy(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/deploy").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(deploy(name)).unwrap()
}

/// What a unit says about a name: all of its values.
fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
}

fn analyze(arguments: &[&str]) -> Option<Command> {
    let mut analyze = tool::program("systemd-analyze")?;
    analyze.args(arguments);
    Some(analyze)
}

fn said(command: Command) -> String {
    tool::run(command, Duration::from_secs(60)).unwrap_or_else(|said| panic!("{said}"))
}

/// Not even a warning about a name that it does not know.
#[test]
fn systemd_understands_the_units() {
    let folder = tempfile::tempdir().unwrap();
    for name in UNITS {
        let unit = read(name);
        for command in values(&unit, "ExecStart") {
            assert!(command.starts_with(&format!("{INSTALLED} ")), "{name}: {command}");
        }
        let unit = unit.replace(INSTALLED, centavo().to_str().unwrap());
        std::fs::write(folder.path().join(name), unit).unwrap();
    }
    let Some(mut verify) = analyze(&["verify", "--man=no"]) else { return };
    verify.args(UNITS.map(|name| folder.path().join(name)));
    assert_eq!(said(verify), "");
    // A name that it does not know, such as one with a slip, does not pass.
    let wrong = folder.path().join("centavo-wrong.service");
    let unit = read("centavo.service").replace(INSTALLED, centavo().to_str().unwrap());
    std::fs::write(&wrong, unit.replace("NoNewPrivileges=", "NoNewPrivilege=")).unwrap();
    let mut verify = analyze(&["verify", "--man=no"]).unwrap();
    verify.arg(wrong);
    assert!(tool::run(verify, Duration::from_secs(60)).unwrap_or_else(|said| said).contains("NoNewPrivilege"));
    for time in values(&read("centavo-backup.timer"), "OnCalendar") {
        let next = said(analyze(&["calendar", time]).unwrap());
        assert!(next.contains("Normalized form: *-*-* *:00:00"), "it is not hourly: {next}");
    }
    let Some(mut users) = tool::program("systemd-sysusers") else { return };
    users.arg("--dry-run").arg(deploy("centavo-sysusers.conf"));
    said(users);
}

#[test]
fn the_units_leave_little_open_and_have_one_user() {
    for name in UNITS.into_iter().filter(|name| name.ends_with(".service")) {
        assert_eq!(values(&read(name), "User"), ["centavo"], "{name}");
        assert!(read("centavo-sysusers.conf").contains("\nu centavo "));
        let Some(judged) = exposure(&deploy(name)) else { return };
        judged.unwrap_or_else(|said| panic!("{said}"));
    }
    // A unit that leaves more open does not pass.
    let folder = tempfile::tempdir().unwrap();
    let open = folder.path().join("centavo.service");
    let closed = ["ProtectSystem=", "CapabilityBoundingSet=", "SystemCallFilter=", "PrivateUsers="];
    let unit = read("centavo.service");
    let lines: Vec<_> = unit.lines().filter(|line| !closed.iter().any(|name| line.starts_with(name))).collect();
    std::fs::write(&open, lines.join("\n")).unwrap();
    let said = exposure(&open).unwrap().unwrap_err();
    assert!(said.contains("Overall exposure level"), "{said}");
}

/// Whether a unit leaves no more than 20 open, in tenths from 0 (closed) to 100 (open).
fn exposure(unit: &Path) -> Option<Result<String, String>> {
    let mut security = analyze(&["security", "--offline=true", "--no-pager", "--threshold=20"])?;
    security.arg(unit);
    Some(tool::run(security, Duration::from_secs(60)))
}

#[test]
fn the_server_has_time_to_stop() {
    let unit = read("centavo.service");
    let allowed: Vec<_> = values(&unit, "TimeoutStopSec").iter().map(|text| text.parse().unwrap()).collect();
    let [allowed] = allowed[..] else { panic!("{allowed:?}") };
    let allowed = Duration::from_secs(allowed);
    assert!(allowed > STOP_MAX && STOP_MAX > ServerLimits::default().drain_max, "{allowed:?} is not enough");
    // Tokens and certificates are read again in their places, where a copy would stay the old one.
    assert_eq!(values(&unit, "ExecReload"), ["/bin/kill -HUP $MAINPID"]);
    assert!(values(&unit, "LoadCredential").is_empty());
    // Decisions, The program: it starts again after 74 as well.
    assert!(values(&unit, "RestartPreventExitStatus").is_empty());
}

/// The settings file of the package as it is and with all that it offers: the check of the server
/// takes it from there, and the units read that file and give no other settings.
#[test]
fn the_settings_of_the_package_start_a_server() {
    for name in ["centavo.service", "centavo-backup.service"] {
        let unit = read(name);
        assert!(unit.contains(&format!(" --config {SETTINGS} --data /var/lib/centavo")), "{name}");
        assert!(values(&unit, "Environment").is_empty(), "{name}: the check would not know of it");
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let tls = rcgen::generate_simple_self_signed(vec!["pay.test".to_owned()]).unwrap();
    for (file, text) in [
        ("ops-token", format!("operator:{}", "b".repeat(64))),
        ("master-key", "0a".repeat(32)),
        ("chain.pem", tls.cert.pem()),
        ("key.pem", tls.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let given = read("centavo.toml").replace("/etc/centavo/tls", place).replace("/etc/centavo", place);
    let given = given.replace("/var/lib/centavo", &format!("{place}/data"));
    let all = given.replace("\n#", "\n").replace("\n ", "\n# ").replace(":8443", "127.0.0.1:0");
    assert!(!given.contains("\nsandbox") && all.contains("\nsandbox"), "{given}");
    for (text, sources) in [(&given, 5), (&all, 10)] {
        let file = folder.path().join("centavo.toml");
        std::fs::write(&file, text).unwrap();
        let mut check = Command::new(centavo());
        check.args(["serve", "--check", "--ops-listen", "127.0.0.1:0", "--config"]).arg(&file);
        if text == &given {
            check.args(["--listen", "127.0.0.1:0"]);
        }
        let said = said(check);
        assert!(said.contains("A server starts with these settings."), "{said}");
        let from_file = said.lines().filter(|line| line.trim_end().ends_with(file.to_str().unwrap())).count();
        assert_eq!(from_file, sources, "{said}");
    }
}

/// What the package brings is there, and it brings every file that an installation needs.
#[test]
fn the_package_has_the_files_of_a_deployment() {
    let manifest = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let brought: Vec<_> =
        manifest.lines().filter_map(|line| line.trim().strip_prefix("[\"docs/deploy/")?.split('"').next()).collect();
    for name in &brought {
        assert!(deploy(name).is_file(), "{name}");
    }
    for file in std::fs::read_dir(deploy("")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        // These make the package and the image; dpkg runs the scripts of the folder.
        let is_needed = !["release.sh", "Dockerfile", "debian"].contains(&&*name);
        assert_eq!(brought.contains(&&*name), is_needed, "{name}");
    }
    let program = INSTALLED.trim_start_matches('/').trim_end_matches("centavo");
    assert!(manifest.contains(&format!("[\"target/release/centavo\", \"{program}\", \"755\"]")));
}
