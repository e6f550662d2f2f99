//! Commands of the pages: every block of code in README, `docs` and the pages beside them is run,
//! here or by another test, or the list here says why not. A block that the list does not name
//! is a failure, and so is an entry whose block is gone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use testkit::callers::{client, operate};
use testkit::server::{Launch, OPS_TOKEN, Server, centavo};

use crate::tool;

/// What becomes of a block.
enum Fate {
    /// It runs here, after this preparation, with these replacements.
    Run(&'static str, &'static [(&'static str, &'static str)]),
    /// Tests of this path do what it says, with values of their own.
    Elsewhere(&'static str),
    /// It is not run, for this reason.
    NotRun(&'static str),
    /// It has no command: a picture, an output, a file.
    Text,
}

use Fate::{Elsewhere, NotRun, Run, Text};

const COMPILES: &str = "compiles the workspace, as .ci/run does with the same profiles";
const MACHINE: &str = "changes the machine: users, units and /etc";
const POSTGRES: &str = "needs a cluster of PostgreSQL; tests/cluster has one, and gives it its address itself";

const LAST: (&str, &str) =
    ("./backup/generations/2026-07-01T12-00-00.250Z", "\"$(ls -d ./backup/generations/* | tail -n 1)\"");

/// The merchant has nothing in July.
const JULY: (&str, &str) = ("--from 2026-07-01 --to 2026-07-31 --format pdf", "--format pdf");

/// Waits for the job and keeps its id.
const JOB: (&str, &str) = (
    "\"to\": \"2026-11-30\"}'",
    "\"to\": \"2026-11-30\"}' | tee job
ID=$(tr -d '\\r' < job | sed -n 's#^[Ll]ocation: .*/ops/exports/##p')
until curl -o /dev/null -H \"Authorization: Bearer $CENTAVO_OPS_TOKEN\" \"$OPS/ops/exports/$ID/file\"; do sleep 1; done",
);

const CHART: &str = "for top in Assets Liabilities Income Expenses Equity; do
  printf '[[account]]\\nprefix = \"%s\"\\ncode = \"9\"\\n' $top
done > chart.toml
printf '%s\\n' \"$CHART\" >> chart.toml";

const CERTIFICATES: &str = "mkdir given compose && touch given/{,ops-}{chain,key}.pem && cd compose
chown() { echo \"the owner would change: $*\"; }";

/// Page, beginning of the block, and what becomes of it. Those that run here run in this order.
const BLOCKS: &[(&str, &str, Fate)] = &[
    ("README.md", "cargo run --release -- demo", NotRun(COMPILES)),
    ("README.md", "M-Loja  Assets", Text),
    ("README.md", "tar xf centavo-", Elsewhere("tests/conformance/release.rs")),
    ("README.md", "CENTAVO_SANDBOX=1", NotRun(COMPILES)),
    ("README.md", "merchants ──HTTP──►", Text),
    ("CONTRIBUTING.md", "cargo check", NotRun(COMPILES)),
    ("CONTRIBUTING.md", "CENTAVO_SIM_SEED", NotRun(COMPILES)),
    ("docs/architecture.md", "merchants ──HTTP──►", Text),
    ("docs/decisions.md", "centavo verify --data DIR", NotRun("a synopsis; the pages that it leads to are run")),
    ("docs/operating.md", "cargo build --profile dist", NotRun(COMPILES)),
    ("docs/operating.md", "curl -X POST localhost:8081/ops/merchants", Run("", &[])),
    ("docs/operating.md", "export CENTAVO_TLS_CERT", Elsewhere("tests/api/tls.rs")),
    ("docs/operating.md", "centavo backup --data ./data --out ./backup\n", Run("", &[])),
    ("docs/operating.md", "centavo backup --data ./data --out ./backup --keep", Run("", &[LAST])),
    ("docs/operating.md", "CENTAVO_OPS_TOKEN_FILE=…", Elsewhere("tests/backup/main.rs")),
    ("docs/operating.md", "export CENTAVO_CHECKPOINTS_TO", Elsewhere("tests/backup/main.rs")),
    (
        "docs/operating.md",
        "centavo restore",
        Run("rm -r again; cp -a data data.damaged", &[("./again --tail", "./again-with-tail --tail")]),
    ),
    ("docs/operating.md", "centavo verify --data ./again", Run("", &[])),
    (
        "docs/operating.md",
        "curl -sS -H 'Authorization: Bearer …' -H 'Content-Type: text/csv'",
        Elsewhere("tests/api/reconciliations.rs"),
    ),
    ("docs/exports.md", "centavo export --data", Run("", &[])),
    ("docs/exports.md", "curl -sS -i", Run("", &[JOB, ("/ops/exports/ID", "/ops/exports/$ID")])),
    ("docs/exports.md", "centavo export --ledger P-all", Run(CHART, &[])),
    ("docs/exports.md", "[[account]]", Text),
    ("docs/reports.md", "centavo report", Run("", &[JULY])),
    ("docs/pt-br/livros.md", "centavo export", Run("", &[])),
    ("docs/pt-br/inicio.md", "cargo run --release -- demo", NotRun(COMPILES)),
    (
        "docs/deploy/README.md",
        "export OPS_TOKEN",
        NotRun("needs a container engine; release.rs runs the image by buildah"),
    ),
    ("docs/deploy/README.md", "apt-get install", Elsewhere("tests/conformance/release.rs")),
    ("docs/deploy/README.md", "install -o centavo", NotRun(MACHINE)),
    ("docs/deploy/README.md", "printf", NotRun(MACHINE)),
    ("docs/deploy/README.md", "runuser", Elsewhere("tests/conformance/units.rs")),
    ("docs/deploy/README.md", "systemctl enable --now centavo.service", NotRun(MACHINE)),
    ("docs/deploy/README.md", "systemctl start centavo-backup", NotRun(MACHINE)),
    ("docs/deploy/README.md", "cp -r /usr/share/centavo", NotRun(MACHINE)),
    ("docs/deploy/README.md", "curl -sS http://127.0.0.1:8081/readyz", NotRun(MACHINE)),
    ("docs/deploy/README.md", "install -m 755", NotRun(MACHINE)),
    ("docs/deploy/README.md", "echo CENTAVO_PRIMARY", NotRun(MACHINE)),
    ("docs/deploy/README.md", "mkdir -p secrets", Run(CERTIFICATES, &[("…/", "../given/")])),
    ("docs/guide/first-charge.md", "CENTAVO_SANDBOX=1", NotRun(COMPILES)),
    ("docs/guide/first-charge.md", "npm install", Elsewhere(".ci/run")),
    ("docs/guide/local-webhooks.md", "charge.paid", Text),
    ("docs/guide/rate-limits.md", "ratelimit-policy", Text),
    ("docs/internals/disk-formats.md", "<data>/lock", Text),
    ("docs/internals/journal.md", "centavo checkpoint 1", Text),
    ("docs/internals/postgres.md", "WITH owner", Text),
    ("docs/internals/snapshots.md", "snapshot/<ledger>", Text),
    (
        "docs/performance.md",
        "cargo bench",
        NotRun("benchmarks take hours, and measure the machine; .ci/run builds them"),
    ),
    ("docs/postgresql.md", "createuser", NotRun(POSTGRES)),
    ("docs/postgresql.md", "umask 077", NotRun(POSTGRES)),
    ("docs/postgresql.md", "install -o centavo", NotRun(POSTGRES)),
    ("docs/postgresql.md", "centavo backup", Elsewhere("tests/cluster/moving.rs")),
    ("docs/testing.md", "cargo test", NotRun(COMPILES)),
    ("docs/testing.md", "CENTAVO_SIM_SEED", NotRun(COMPILES)),
    ("tests/conformance/README.md", "python3 -m venv", Elsewhere(".ci/run")),
];

/// Pages whose fenced blocks run, all of them, and where.
const FENCED: [(&str, &str); 3] = [
    ("docs/runbook.md", "tests/conformance/runbook.rs"),
    ("docs/guide/", "tests/conformance/guide.rs"),
    (FORMATS, "tests/conformance/commands.rs"),
];

const FORMATS: &str = "docs/internals/disk-formats.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages, as paths from the root.
fn pages() -> Vec<String> {
    let mut pages: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/conformance/README.md"].map(str::to_owned).into();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = folder.join(entry.unwrap().file_name());
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    pages
}

/// The indented blocks of a page, and the languages of its fenced ones.
fn blocks_of(page: &str) -> (Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let (mut indented, mut fenced) = (Vec::new(), Vec::new());
    let (mut in_fence, mut in_block, mut after_blank) = (false, false, true);
    for line in text.lines() {
        if let Some(language) = line.trim().strip_prefix("```") {
            in_fence = !in_fence;
            if in_fence {
                fenced.push(language.to_owned());
            }
            in_block = false;
        } else if !in_fence && line.starts_with("    ") && (in_block || after_blank) {
            if !in_block {
                indented.push(String::new());
            }
            in_block = true;
            let block: &mut String = indented.last_mut().unwrap();
            let line = line.strip_prefix("    ").unwrap();
            block.push_str(line.strip_prefix("   ").unwrap_or(line));
            block.push('\n');
        } else if !line.is_empty() {
            in_block = false;
        }
        after_blank = line.is_empty();
    }
    (indented, fenced)
}

/// True for the block that an entry names: it begins so, or is no more than this line.
fn is_of(block: &str, begin: &str) -> bool {
    match begin.strip_suffix('\n') {
        Some(only) => block.trim() == only,
        None => block.trim_start().starts_with(begin),
    }
}

/// A block that nobody knows of, and an entry without its block, are failures.
#[test]
fn every_block_of_the_pages_is_run_or_says_why_not() {
    let (mut counts, mut unnamed) = ([0; 5], Vec::new());
    let mut met = vec![0; BLOCKS.len()];
    for page in pages() {
        let (indented, fenced) = blocks_of(&page);
        let by = FENCED.iter().find(|(begin, by)| page.starts_with(begin) && root().join(by).is_file());
        for language in fenced {
            if ["bash", "python", "ts"].contains(&&*language) && by.is_some() {
                counts[4] += 1;
            } else {
                unnamed.push(format!("{page}: a fenced block of {language:?}"));
            }
        }
        for block in indented {
            let entry = BLOCKS.iter().position(|(of, begin, _)| *of == page && is_of(&block, begin));
            let Some(entry) = entry else {
                unnamed.push(format!("{page}: {block}"));
                continue;
            };
            met[entry] += 1;
            counts[match &BLOCKS[entry].2 {
                Run(..) => 0,
                Elsewhere(path) => {
                    assert!(root().join(path).exists(), "{path}");
                    1
                }
                NotRun(reason) => {
                    println!("not run: {page}: {}: {reason}", block.lines().next().unwrap());
                    2
                }
                Text => 3,
            }] += 1;
        }
    }
    let [here, elsewhere, not_run, text, fenced] = counts;
    println!("blocks: {} run as they stand, {here} of them here", here + fenced);
    println!("{elsewhere} done by other tests, {not_run} not run, {text} without a command");
    assert!(unnamed.is_empty(), "neither run nor with a reason:\n{}", unnamed.join("\n"));
    for ((page, begin, _), met) in BLOCKS.iter().zip(met) {
        assert_eq!(met, 1, "{page}: {begin}");
    }
}

/// The script of all blocks that run here.
fn script(server: &Server, merchant: &str) -> String {
    let address = |url: &str| url.strip_prefix("http://").unwrap().to_owned();
    let mut script =
        "set -euo pipefail\ncurl() { command curl --silent --show-error --fail-with-body \"$@\"; }\n".to_owned();
    for (page, begin, fate) in BLOCKS {
        let Run(before, replacements) = fate else { continue };
        let block = blocks_of(page).0.into_iter().find(|block| is_of(block, begin)).unwrap();
        let mut block = replacements.iter().fold(block, |block, (from, to)| {
            assert!(block.contains(from), "{page}: {from}");
            block.replace(from, to)
        });
        for (from, to) in [
            ("localhost:8081", &*address(&server.operations)),
            ("localhost:8080", &*address(&server.public)),
            ("Bearer …", &format!("Bearer {OPS_TOKEN}")),
            ("M-…", &format!("M-{merchant}")),
        ] {
            block = block.replace(from, to);
        }
        script += &format!("echo '== {page}: {}'\n(\n{before}\n{block})\n", begin.replace('\'', ""));
    }
    script + "python3 -c \"$FORMATS\" data.damaged\necho 'the end is reached'\n"
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_pages_run() {
    if ["bash", "curl", "openssl", "python3"].iter().any(|name| tool::program_with(name, "--help").is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&Launch::on(&folder.path().join("data"))).await.unwrap();
    let ask = async |path: &str, body| operate(&client(), &server, path, &body).await.unwrap();
    let opened = json!({"name": "Outra", "document": "11444777000161", "split_enabled": true});
    let merchant = ask("/ops/merchants", opened).await["id"].as_str().unwrap().to_owned();
    let key = ask(&format!("/ops/merchants/{merchant}/api-keys"), json!({})).await;
    let chart = blocks_of("docs/exports.md").0.into_iter().find(|block| block.starts_with("[[account]]")).unwrap();
    let mut command = Command::new("bash");
    command.args(["-c", &script(&server, &merchant)]).current_dir(folder.path());
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", centavo().parent().unwrap().display()));
    command.env("MERCHANT", &merchant).env("KEY", key["api_key"].as_str().unwrap()).env("CHART", chart);
    command.env("FORMATS", crate::guide::blocks("internals/disk-formats.md", "python").remove(0));
    command.env("OPS", &server.operations).env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
    command.env("CENTAVO_OPS_LISTEN", server.operations.strip_prefix("http://").unwrap());
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(120))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    for told in ["anchor: counter ", "\nwal-0 counter ", "the end is reached"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    server.stop().unwrap();
}
