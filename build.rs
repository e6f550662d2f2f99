//! The version that `centavo --version` prints: with the commit, in builds that are optimized.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Each commit compiles the package again. A developer's build does without.
    let is_optimized = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = is_optimized.then(|| git(&["rev-parse", "--short=12", "HEAD"])).flatten();
    for name in ["HEAD", "logs/HEAD"].into_iter().filter(|_| is_optimized) {
        let path = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists());
        if let Some(path) = path {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let build = commit.map_or("no commit known".to_owned(), |commit| format!("commit {commit}"));
    println!("cargo::rustc-env=CENTAVO_VERSION={version} ({build})");
}

/// What git prints; nothing without git or outside of a clone.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    Some(printed.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
