//! Runs one test of this binary under valgrind's callgrind, which counts instructions: the same
//! ones on a busy machine as on an idle one.

use std::process::{Command, Stdio};

use crate::path::{CHARGES, Stage};

/// Instructions of each stage for one charge; `None` if valgrind is not installed, unless
/// `CENTAVO_CALLGRIND=required`.
pub(crate) fn instructions(test: &str) -> Option<Vec<(Stage, f64)>> {
    let version = Command::new("valgrind").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        let missing = "valgrind is missing (its package has this name everywhere)";
        assert!(std::env::var("CENTAVO_CALLGRIND").as_deref() != Ok("required"), "{missing}");
        println!("Nothing was tested: {missing}");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=cost::path::counted*"]);
    valgrind.args(["--compress-strings=no", "--compress-pos=no", "--vgdb=no"]);
    valgrind.arg(format!("--callgrind-out-file={}", profile.display()));
    valgrind.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--test-threads=1"]);
    let run = valgrind.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout) + String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success() && said.contains("1 passed"), "{test} fails under callgrind: {said}");
    let profile = std::fs::read_to_string(&profile).unwrap();
    let each = Stage::ALL.map(|stage| {
        let all = calls(&profile).filter(|(name, _)| is_of(name, stage)).map(|(_, cost)| cost).sum::<u64>();
        assert!(all > 0, "callgrind has not seen {stage:?}");
        (stage, all as f64 / CHARGES as f64)
    });
    Some(each.to_vec())
}

/// The calls of a profile: the name of who is called, and the instructions of the calls with all
/// that they call. A call is three lines: `cfn=name`, `calls=count line`, `line instructions`;
/// those that say where the name is from stand before these.
fn calls(profile: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut called = "";
    let mut lines = profile.lines();
    std::iter::from_fn(move || {
        loop {
            let line = lines.next()?;
            if let Some(name) = line.strip_prefix("cfn=") {
                called = name;
            } else if line.starts_with("calls=") {
                let cost = lines.next()?.split(' ').nth(1).expect("a line and its cost");
                return Some((called, cost.parse().expect("a number")));
            }
        }
    })
}

/// True of the stage's function: what is called within it has a longer name.
fn is_of(name: &str, stage: Stage) -> bool {
    let rest = name.strip_prefix("cost::path::").and_then(|name| name.strip_prefix(stage.name()));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::h") && rest.len() == "::h".len() + 16)
}
