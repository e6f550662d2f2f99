//! Commands of the pages: every block of code in README, `docs` and the pages beside them is run,
//! here or by another test, or the list here says why not. A block that the list does not name
//! is a failure, and so is an entry whose block is gone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use store::testkit::postgres::{self, PostgresServer};
use testkit::callers::{client, operate};
use testkit::server::{Launch, OPS_TOKEN, Server, centavo};

use crate::tool;

/// What becomes of a block.
enum Fate {
    /// It runs here, after this preparation, with these replacements.
    Run(&'static str, &'static [(&'static str, &'static str)]),
    /// The file of this path does what it says, with values of its own: in the lines around this
    /// text.
    Elsewhere(&'static str, &'static str),
    /// It is not run, for this reason.
    NotRun(&'static str),
    /// It has no command: a picture, an output, a file.
    Text,
}

use Fate::{Elsewhere, NotRun, Run, Text};

const MONTH_END: Fate = Elsewhere("tests/conformance/month_end.rs", "async fn a_debt_is_written_off");
const INSTALLATION: Fate = Elsewhere("tests/conformance/install.rs", "async fn the_commands_of_the_installation_run");

const POSTGRES: &str = "docs/postgresql.md";
/// The settings file names the store, and a server starts with it.
const CHECKED: &str = "centavo.toml
CENTAVO_MASTER_KEY_FILE=etc/master-key centavo serve --config etc/centavo.toml --data data";

/// A server starts with the certificates that the block names.
const ENCRYPTED: &str = "ops-key.pem\nCENTAVO_SANDBOX=1 centavo serve\n";
const MAKE_CERTIFICATES: &str = "own tls
for name in '' ops-; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost \\
    -keyout ${name}key.pem -out ${name}chain.pem 2> /dev/null
done";

/// The account of the first charge, whose recipient the example charges for.
const ACCOUNT: &str = "source \"$ROOT\"/docs/guide/first-charge/account.sh";

/// What the blocks find. `serve` and `demo` run until they answer, on free ports. `cargo run` is
/// the program that is built; other words of cargo are written down, and looked at afterwards.
const SHELL: &str = r#"
set -euo pipefail
curl() { command curl --silent --show-error --fail-with-body "$@"; }
own() { mkdir "$1" && cd "$1"; }
gates() { test -x "$ROOT/.ci/run"; }
centavo() {
  case $1 in
    serve | demo)
      if [ "$1" = demo ]; then set -- "$@" --charges 30; fi
      # What the one before wrote does not count.
      : > ran
      CENTAVO_LISTEN=127.0.0.1:0 CENTAVO_OPS_LISTEN=127.0.0.1:0 command centavo "$@" > ran 2>&1 &
      local server=$!
      until grep -q -e '^Serving\.' -e ' serving ' ran; do
        kill -0 "$server" 2> /dev/null || { cat ran; return 1; }
        sleep 0.1
      done
      { kill "$server" && wait "$server"; } || { echo "it ended with $?"; cat ran; return 1; }
      echo "centavo $1 has served" ;;
    *) command centavo "$@" ;;
  esac
}
cargo() {
  echo "$*" >> "$ASKED"
  case "$*" in
    run*' -- '*) while [ "$1" != -- ]; do shift; done; shift; centavo "$@" ;;
    run*--example*)
      if [ -x "$EXAMPLES/${*: -1}" ]; then "$EXAMPLES/${*: -1}"; else
        echo "Nothing was tested: cargo build --workspace --examples makes ${*: -1}"
        test "${CENTAVO_CONFORMANCE:-}" != required
      fi ;;
  esac
}
"#;

/// The merchant has nothing in July.
const JULY: (&str, &str) = ("--from 2026-07-01 --to 2026-07-31 --format html", "--format html");

/// Waits for the job and keeps its id.
const JOB: (&str, &str) = (
    "\"to\": \"2026-11-30\"}'",
    "\"to\": \"2026-11-30\"}' | tee job
ID=$(tr -d '\\r' < job | sed -n 's#^[Ll]ocation: .*/ops/exports/##p')
until curl -o /dev/null -H \"Authorization: Bearer $CENTAVO_OPS_TOKEN\" \"$CENTAVO_OPS_URL/ops/exports/$ID/file\"; do sleep 1; done",
);

const CHART: &str = "for top in Assets Liabilities Income Expenses Equity; do
  printf '[[account]]\\nprefix = \"%s\"\\ncode = \"9\"\\n' $top
done > chart.toml
printf '%s\\n' \"$CHART\" >> chart.toml";

/// A synopsis runs nothing: the help of each command has its flags.
const HELP_KNOWS: &str = r#"centavo() {
  local help word; help=$(command centavo "$1" --help; [[ $1 != rail ]] || command centavo rail check --help)
  for word in "$@"; do
    case $word in --*) grep -qE -e "$word( |$)" <<< "$help" || { echo "$1 has no $word"; return 1; } ;; esac
  done
}"#;

/// Benchmarks take hours, and measure the machine: they are looked at, as all that is asked of
/// cargo.
const PEER: &str = "test -x \"$ROOT/benches/peers/postgres.sh\"";

const CERTIFICATES: &str = "mkdir given compose && touch given/{,ops-}{chain,key}.pem && cd compose
chown() { echo \"the owner would change: $*\"; }";

/// Page, beginning of the block, and what becomes of it. Those that run here run in this order.
const BLOCKS: &[(&str, &str, Fate)] = &[
    ("README.md", "cargo run --release -- demo", Run("own demo", &[])),
    ("README.md", "M-Loja  Assets", Text),
    ("README.md", "merchants ──HTTP──►", Text),
    ("CONTRIBUTING.md", "cargo check", Run(ACCOUNT, &[(".ci/run ", "gates ")])),
    ("CONTRIBUTING.md", "CENTAVO_SIM_SEED", Run("", &[])),
    ("docs/decisions.md", "centavo verify --data DIR", Run(HELP_KNOWS, &[("ID|all|P-all", "ID"), ("DIR|URL", "DIR")])),
    ("docs/testing.md", "CENTAVO_POSTGRES=required cargo test --test cluster hist", Run("", &[])),
    ("docs/testing.md", "3 Separated(LosesAnswers)", Text),
    ("docs/testing.md", "WentBack: sales of merchant 0", Text),
    ("docs/operating.md", "cargo build --profile dist", Run("own operating", &[("target/dist/centavo", "centavo")])),
    (
        "docs/operating.md",
        "centavo erase --through",
        NotRun("two operators drop keys of months past retention for good: tests/api/people.rs"),
    ),
    ("docs/operating.md", "curl -X POST \"$CENTAVO_OPS_URL/ops/merchants\"", Run("", &[])),
    (
        "docs/operating.md",
        "export CENTAVO_TLS_CERT",
        Run(MAKE_CERTIFICATES, &[("/etc/centavo/tls", "$PWD"), ("ops-key.pem\n", ENCRYPTED)]),
    ),
    ("docs/operating.md", "export CENTAVO_PEER_LISTEN", Elsewhere("tests/cluster/nodes.rs", "CENTAVO_PEER_LISTEN")),
    ("docs/operating.md", "openssl req -x509", Run("", &[])),
    (POSTGRES, "export CENTAVO_SANDBOX=1", Elsewhere("tests/cluster/nodes.rs", "CENTAVO_PEER_LISTEN")),
    ("docs/operating.md", "centavo backup --data ./data --out ./backup\n", Run("", &[])),
    ("docs/operating.md", "CENTAVO_OPS_TOKEN_FILE=… centavo backup", Elsewhere("tests/backup/main.rs", "\"--follow\"")),
    (
        "docs/operating.md",
        "CENTAVO_OPS_TOKEN_FILE=… centavo verify",
        Elsewhere("tests/backup/commands.rs", "\"--live\""),
    ),
    ("docs/operating.md", "export CENTAVO_CHECKPOINTS_TO", Elsewhere("tests/backup/main.rs", "CENTAVO_CHECKPOINTS_TO")),
    (
        "docs/operating.md",
        "centavo restore",
        Run("cp -a data data.damaged", &[("./again --tail", "./again-with-tail --tail")]),
    ),
    ("docs/operating.md", "centavo verify --data ./again", Run("", &[])),
    ("docs/operating.md", "centavo grow", Run("", &[("/var/lib/centavo", "./again")])),
    (
        "docs/operating.md",
        "curl -sS -H 'Authorization: Bearer …' -H 'Content-Type: text/csv'",
        Elsewhere("tests/api/reconciliations.rs", "\"text/csv\""),
    ),
    ("docs/operating.md", "ENTRY=", MONTH_END),
    ("docs/exports.md", "centavo export --data", Run("", &[])),
    ("docs/exports.md", "curl -sS -i", Run("", &[JOB, ("/ops/exports/ID", "/ops/exports/$ID")])),
    ("docs/exports.md", "centavo export --ledger P-all", Run(CHART, &[])),
    ("docs/exports.md", "[[account]]", Text),
    ("docs/exports.md", "[layout]", Text),
    ("docs/reports.md", "centavo report", Run("", &[JULY])),
    ("docs/books.md", "centavo report", Run("", &[])),
    ("docs/books.md", "centavo export", Run("", &[])),
    (
        "docs/books.md",
        "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11\" -H \"Authorization: Bearer $ANA\"\n",
        MONTH_END,
    ),
    ("docs/books.md", "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11/close\"", MONTH_END),
    ("docs/pt-br/livros.md", "centavo report", Run("", &[])),
    ("docs/pt-br/livros.md", "centavo export", Run("", &[])),
    (
        "docs/pt-br/livros.md",
        "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11\" -H \"Authorization: Bearer $ANA\"\n",
        MONTH_END,
    ),
    ("docs/pt-br/livros.md", "curl -sS \"$CENTAVO_OPS_URL/ops/periods/2026-11/close\"", MONTH_END),
    ("docs/pt-br/inicio.md", "cargo run --release -- demo", Run("own inicio", &[])),
    ("docs/deploy/README.md", "tar xf centavo-", Elsewhere("tests/conformance/release.rs", "starts_with(\"tar xf\")")),
    (
        "docs/deploy/README.md",
        "export CENTAVO_OPS_TOKEN",
        NotRun("needs a container engine; release.rs runs the image by buildah, and deploy.rs checks the settings"),
    ),
    ("docs/deploy/README.md", "apt-get install", INSTALLATION),
    ("docs/deploy/README.md", "centavo-setup tls", INSTALLATION),
    ("docs/deploy/README.md", "echo 'sandbox", INSTALLATION),
    ("docs/deploy/README.md", "runuser", INSTALLATION),
    ("docs/deploy/README.md", "systemctl enable --now centavo.service", INSTALLATION),
    ("docs/deploy/README.md", "systemctl start centavo-backup", INSTALLATION),
    ("docs/deploy/README.md", "centavo-setup prometheus", INSTALLATION),
    ("docs/deploy/README.md", "curl -sS --cacert", INSTALLATION),
    ("docs/deploy/README.md", "install -m 755", INSTALLATION),
    ("docs/deploy/README.md", "echo CENTAVO_PRIMARY", INSTALLATION),
    ("docs/deploy/README.md", "mkdir -p secrets", Run(CERTIFICATES, &[("…/", "../given/")])),
    (
        "docs/guide/first-charge.md",
        "CENTAVO_SANDBOX=1",
        Run("own first; unset CENTAVO_OPS_TOKEN", &[("serve\n", "serve\ntest -s data/operator.token\n")]),
    ),
    (
        "docs/guide/first-charge.md",
        "npm install",
        Elsewhere("tests/conformance/guide.rs", "starts_with(\"npm install\")"),
    ),
    ("docs/guide/first-charge.md", "\"active\"", Text),
    ("docs/guide/first-charge.md", "{\"status\":\"CONCLUIDA\"", Text),
    ("docs/guide/first-charge.md", "{\"available\":0", Text),
    ("docs/guide/first-charge.md", "refused: card_declined", Text),
    ("docs/guide/local-webhooks.md", "charge.paid", Text),
    ("docs/guide/rate-limits.md", "ratelimit-policy", Text),
    ("docs/internals/disk-formats.md", "<data>/lock", Text),
    ("docs/internals/journal.md", "centavo checkpoint 1", Text),
    ("docs/internals/postgres.md", "WITH owner", Text),
    ("docs/internals/snapshots.md", "snapshot/<ledger>", Text),
    ("docs/rails/README.md", "[rails]\npix", Text),
    ("docs/rails/README.md", "[rails]\ncard", Text),
    ("docs/rails/README.md", "[rail.bb]", Text),
    ("docs/rails/README.md", "[rail.inter]", Text),
    ("docs/rails/README.md", "[rail.sicoob]", Text),
    ("docs/rails/README.md", "[rail.sicredi]", Text),
    ("docs/rails/README.md", "[rail.efi]", Text),
    ("docs/rails/README.md", "[rail.envios]", Text),
    ("docs/rails/README.md", "centavo rail check", Run(HELP_KNOWS, &[])),
    ("docs/rails/README.md", "rails_listen", Text),
    ("docs/rails/README.md", "callback_url", Text),
    ("docs/rails/adyen.md", "[rails]", Text),
    ("docs/rails/adyen.md", "https://pay.example.com", Text),
    ("docs/rails/going-live.md", "install -d -o centavo", NotRun("needs the certificate that an institution gives")),
    ("docs/rails/going-live.md", "[rails]", Text),
    ("docs/rails/going-live.md", "rails_listen", Text),
    ("docs/rails/going-live.md", "callback_url", Text),
    ("docs/rails/going-live.md", "runuser -u centavo", NotRun("needs an institution's test environment")),
    ("docs/rails/going-live.md", "centavo rail check", Run(HELP_KNOWS, &[])),
    (
        "docs/runbook.md",
        "curl -s -X POST \"$CENTAVO_OPS_URL/ops/clock/confirm",
        Elsewhere("tests/time/clock_jump.rs", "/ops/clock/confirm"),
    ),
    ("docs/performance.md", "cargo bench", Run("", &[("benches/peers/postgres.sh 8 64 hot", PEER)])),
    ("docs/performance.md", "CENTAVO_STORE=", Run("", &[])),
    ("docs/performance.md", "CENTAVO_FOLLOW_ROUNDS", Run("", &[])),
    (POSTGRES, "createuser", Run("", &[("--pwprompt centavo", "clerk"), ("--owner centavo", "--owner clerk")])),
    (
        POSTGRES,
        "umask 077",
        Run(
            "unset CENTAVO_OPS_TOKEN",
            &[("centavo:PASSWORD@db.internal", "clerk@127.0.0.1:$PGPORT"), ("/var/lib/centavo", "data")],
        ),
    ),
    (
        POSTGRES,
        "install -o centavo",
        Run(
            "unset CENTAVO_OPS_TOKEN; mkdir etc",
            &[("-o centavo -g centavo ", ""), ("/etc/centavo", "etc"), ("centavo.toml\n", CHECKED)],
        ),
    ),
    (POSTGRES, "centavo migrate", Elsewhere("tests/cluster/migration.rs", "\"migrate\"")),
    ("docs/testing.md", "CENTAVO_SIM_SEED", Run("", &[])),
    ("tests/conformance/README.md", "python3 -m venv", Elsewhere(".ci/run", "python3 -m venv")),
];

/// True for a page whose fenced blocks run, all of them.
fn has_fenced_that_run(page: &str) -> bool {
    ["docs/runbook.md", FORMATS].contains(&page) || crate::guide::is_run(page)
}

const FORMATS: &str = "docs/internals/disk-formats.md";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All pages, as paths from the root.
pub(crate) fn pages() -> Vec<String> {
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
pub(crate) fn blocks_of(page: &str) -> (Vec<String>, Vec<String>) {
    blocks_in(&std::fs::read_to_string(root().join(page)).unwrap())
}

fn blocks_in(text: &str) -> (Vec<String>, Vec<String>) {
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

/// The blocks of a page that have no command: what its commands print, for example.
pub(crate) fn texts_of(page: &str) -> Vec<String> {
    let texts = BLOCKS.iter().filter(|(of, _, fate)| *of == page && matches!(fate, Text));
    texts.flat_map(|(_, begin, _)| blocks_of(page).0.into_iter().filter(|block| is_of(block, begin))).collect()
}

/// How many blocks have each fate, and what no entry names.
#[derive(Default)]
struct Census {
    here: usize,
    elsewhere: usize,
    not_run: usize,
    text: usize,
    fenced: usize,
    unnamed: Vec<String>,
    /// How often the block of each entry was met.
    met: Vec<usize>,
}

impl Census {
    fn count(&mut self, page: &str, text: &str) {
        let (indented, fenced) = blocks_in(text);
        for language in fenced {
            if ["bash", "sh", "python", "ts", "php"].contains(&&*language) && has_fenced_that_run(page) {
                self.fenced += 1;
            } else {
                self.unnamed.push(format!("{page}: a fenced block of {language:?}"));
            }
        }
        for block in indented {
            let entry = BLOCKS.iter().position(|(of, begin, _)| *of == page && is_of(&block, begin));
            let Some(entry) = entry else {
                self.unnamed.push(format!("{page}: {block}"));
                continue;
            };
            self.met[entry] += 1;
            match &BLOCKS[entry].2 {
                Run(..) => self.here += 1,
                Elsewhere(path, text) => {
                    assert!(std::fs::read_to_string(root().join(path)).unwrap().contains(text), "{path}: no {text}");
                    self.elsewhere += 1;
                }
                NotRun(reason) => {
                    println!("not run: {page}: {}: {reason}", block.lines().next().unwrap());
                    self.not_run += 1;
                }
                Text => self.text += 1,
            }
        }
    }
}

/// A block that nobody knows of, and an entry without its block, are failures.
#[test]
fn every_block_of_the_pages_is_run_or_says_why_not() {
    let mut census = Census { met: vec![0; BLOCKS.len()], ..Census::default() };
    for page in pages() {
        census.count(&page, &std::fs::read_to_string(root().join(&page)).unwrap());
    }
    let Census { here, elsewhere, not_run, text, fenced, unnamed, met } = census;
    println!("blocks: {} run as they stand, {here} of them here", here + fenced);
    println!("{elsewhere} done by other tests, {not_run} not run, {text} without a command");
    assert!(unnamed.is_empty(), "neither run nor with a reason:\n{}", unnamed.join("\n"));
    for ((page, begin, _), met) in BLOCKS.iter().zip(met) {
        assert_eq!(met, 1, "{page}: {begin}");
    }
}

#[test]
fn a_block_that_nobody_runs_is_found() {
    for (page, text) in [
        ("docs/limits.md", "Text:\n\n    centavo something\n"),
        ("docs/limits.md", "Text:\n\n```bash\ncentavo something\n```\n"),
        ("docs/guide/new.md", "Text:\n\n```bash\ncentavo something\n```\n"),
        ("docs/runbook.md", "1. Text:\n\n   ```json\n   {}\n   ```\n"),
    ] {
        let mut census = Census { met: vec![0; BLOCKS.len()], ..Census::default() };
        census.count(page, text);
        assert_eq!(census.unnamed.len(), 1, "{page}: {text}");
    }
}

/// A command of a page that fails ends its script, and the test with it.
#[test]
fn a_command_that_fails_is_found() {
    for wrong in ["centavo verify --data nothing", "curl http://127.0.0.1:1", "(\ntest -s nothing\necho on)"] {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("{SHELL}{wrong}\necho 'the end is reached'\n")]);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", centavo().parent().unwrap().display()));
        let said = tool::run(command, Duration::from_secs(60)).expect_err(wrong);
        assert!(!said.contains("the end is reached"), "{wrong}: {said}");
    }
}

/// The script of those blocks that run here, by page.
fn script(of: impl Fn(&str) -> bool, values: &[(&str, &str)]) -> String {
    let mut script = SHELL.to_owned();
    for (page, begin, fate) in BLOCKS.iter().filter(|(page, ..)| of(page)) {
        let Run(before, replacements) = fate else { continue };
        let block = blocks_of(page).0.into_iter().find(|block| is_of(block, begin)).unwrap();
        let block = replacements.iter().fold(block, |block, (from, to)| {
            assert!(block.contains(from), "{page}: {from}");
            block.replace(from, to)
        });
        let block = values.iter().fold(block, |block, (from, to)| block.replace(from, to));
        script += &format!("echo '== {page}: {}'\n(\n{before}\n{block})\n", begin.replace('\'', ""));
    }
    script
}

/// Runs a script in a folder with the built program in its path, and what the scripts need.
async fn run(script: String, folder: &Path, variables: &[(&str, &str)]) -> String {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("{script}echo 'the end is reached'\n")]).current_dir(folder);
    let built = centavo().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", built.display())).env("ROOT", root());
    command
        .env("EXAMPLES", built.join("examples"))
        .env("ASKED", folder.join("asked"))
        .env("CENTAVO_OPS_TOKEN", OPS_TOKEN);
    command.envs(variables.iter().copied());
    let done = tokio::task::spawn_blocking(move || tool::run(command, Duration::from_secs(240))).await.unwrap();
    let said = done.unwrap_or_else(|said| panic!("{said}"));
    println!("{said}");
    assert!(said.contains("the end is reached"), "{said}");
    said
}

/// What a command asks of cargo is there: package, profile, example, test, and a test's name that
/// has the word by which it is chosen.
pub(crate) fn cargo_knows(command: &str) {
    let words: Vec<_> = command.split(' ').take_while(|word| *word != "--").collect();
    let after = |flag: &str| words.iter().position(|word| *word == flag).and_then(|at| words.get(at + 1)).copied();
    let package = after("-p").map_or_else(|| root().to_owned(), |package| root().join(package));
    assert!(package.join("Cargo.toml").is_file(), "{command}");
    if let Some(profile) = after("--profile") {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("[profile.{profile}]")), "{command}");
    }
    if let Some(example) = after("--example") {
        assert!(package.join("examples").join(example).with_extension("rs").is_file(), "{command}");
    }
    if let Some(bench) = after("--bench") {
        let folder = package.join("benches").join(bench);
        let files = std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path());
        let files = files.chain([folder.with_extension("rs")]);
        let source: String = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        assert!(!source.is_empty(), "{command}");
        let flags = command.split(' ').skip(words.len() + 1).filter(|word| word.starts_with("--"));
        flags.for_each(|flag| assert!(source.contains(&format!("\"{flag}\"")), "{command}: no {flag}"));
    }
    let Some(test) = after("--test") else { return };
    let folder = package.join("tests").join(test);
    let file = folder.with_extension("rs");
    assert!(folder.join("main.rs").is_file() || file.is_file(), "{command}");
    let Some(chosen) = words.last().filter(|word| **word != test) else { return };
    let files = std::fs::read_dir(&folder).into_iter().flatten().map(|entry| entry.unwrap().path()).chain([file]);
    let has_it = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let is_named = text.lines().any(|line| line.contains("fn ") && line.contains(chosen));
        is_named || path.file_stem().is_some_and(|stem| stem == *chosen)
    };
    assert!(files.into_iter().any(has_it), "{command}: no test is named so");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_pages_run() {
    if ["bash", "curl", "openssl", "python3"].iter().any(|name| tool::program_with(name, "--help").is_none()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&Launch::on(&data).with("CENTAVO_WEBHOOK_ALLOW", "127.0.0.0/8")).await.unwrap();
    let ask = async |path: &str, body| operate(&client(), &server, path, &body).await.unwrap();
    let opened = json!({"name": "Outra", "document": "11444777000161", "split_enabled": true});
    let merchant = ask("/ops/merchants", opened).await["id"].as_str().unwrap().to_owned();
    let key = ask(&format!("/ops/merchants/{merchant}/api-keys"), json!({})).await;
    let chart = blocks_of("docs/exports.md").0.into_iter().find(|block| block.starts_with("[[account]]")).unwrap();
    let formats = crate::guide::blocks("internals/disk-formats.md", "python").remove(0);
    let address = |url: &str| url.strip_prefix("http://").unwrap().to_owned();
    let script = script(
        |page| page != POSTGRES,
        &[("Bearer …", &format!("Bearer {OPS_TOKEN}")), ("M-…", &format!("M-{merchant}"))],
    ) + "python3 -c \"$FORMATS\" data.damaged\n";
    let variables = [
        ("MERCHANT", &*merchant),
        ("KEY", key["api_key"].as_str().unwrap()),
        ("CHART", &chart),
        ("FORMATS", &formats),
        ("CENTAVO_URL", &server.public),
        ("CENTAVO_OPS_URL", &server.operations),
        ("CENTAVO_OPS_TOKEN", OPS_TOKEN),
        ("CENTAVO_OPS_LISTEN", &address(&server.operations)),
    ];
    let said = run(script, folder.path(), &variables).await;
    for expected in ["anchor: counter ", "\nwal-0 counter ", "centavo demo has served", "centavo serve has served"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let log = std::fs::read_to_string(folder.path().join("asked")).unwrap();
    assert!(log.lines().count() > 12, "{log}");
    log.lines().for_each(cargo_knows);
    server.stop().unwrap();
}

#[test]
fn a_command_for_cargo_that_does_not_work_is_found() {
    cargo_knows("test -p actors --test simulation every_seed -- --nocapture");
    for wrong in [
        "test -p actor",
        "test --test nothing",
        "build --profile dists",
        "run --example clients",
        "bench --bench settlements",
        "bench --bench export -- --posting 5",
        "test -p actors --test simulation every_sed -- --nocapture",
    ] {
        assert!(std::panic::catch_unwind(|| cargo_knows(wrong)).is_err(), "{wrong} was taken");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_postgresql_run() {
    let Some(programs) = postgres::programs() else { return };
    let database = PostgresServer::start(&programs, &[]);
    let folder = tempfile::tempdir().unwrap();
    let port = database.port().to_string();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let script = format!("PATH=$PATH:{path}\n{}", script(|page| page == POSTGRES, &[("$PGPORT", &port)]));
    let said = run(script, folder.path(), &[("PGHOST", "127.0.0.1"), ("PGPORT", &port), ("PGUSER", "centavo")]).await;
    assert_eq!(said.matches("centavo serve has served").count(), 2, "{said}");
}

/// Commands of a text: its lines, less those that go on with the one before them.
fn commands_in(block: &str) -> usize {
    let begins = |(before, line): &(&str, &str)| !before.ends_with('\\') && !line.starts_with([' ', '}', '#']);
    [""].into_iter().chain(block.lines()).zip(block.lines()).filter(begins).count()
}

/// The ways of a stranger, counted: each command is a line that is pasted.
#[test]
fn the_first_hour_takes_fewer_than_ten_commands_each_way() {
    let count = |blocks: &[String]| blocks.iter().map(|block| commands_in(block)).sum::<usize>();
    let bash = crate::guide::blocks("guide/first-charge.md", "bash");
    let mut indented = blocks_of("docs/guide/first-charge.md").0;
    let texts = texts_of("docs/guide/first-charge.md");
    indented.retain(|block| !texts.contains(block));
    assert_eq!((count(&bash), count(&indented)), (4, 4), "{bash:?} {indented:?}");
    let page = blocks_of("docs/deploy/README.md").0;
    let first = page.iter().position(|block| block.starts_with("apt-get install")).unwrap();
    let last = page.iter().position(|block| block.starts_with("install -m 755")).unwrap();
    let installation = count(&page[first..last]);
    assert!(installation < 10, "{installation}: {:?}", &page[first..last]);
    let text = std::fs::read_to_string(root().join("docs/deploy/README.md")).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(installation == 9 && text.contains("eight steps, nine commands"), "{installation}");
    assert_eq!(commands_in("a \\\n  b\nc -d '{\n  x}'\n"), 2);
}
