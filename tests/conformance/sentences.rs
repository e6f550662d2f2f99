//! Commands within the sentences of the pages: subcommands, flags, targets, units and services that
//! they name exist. They are not run; the blocks of the pages are (`commands.rs`).
//!
//! A command is a span of code of two words or more whose first word could be a program's name, or
//! a flag. [`TEXTS`] names the spans that look so and are none. A command whose kind nobody here
//! knows is a failure, and so is an entry of a list that no page has.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use pulldown_cmark::{Event, Options, Parser};
use testkit::server::centavo;

use crate::commands::{cargo_knows, pages, root};
use crate::tool;

/// Code that looks like a command and is none, or none that can be looked at here, and why.
const TEXTS: &[(&str, &[&str])] = &[
    ("scopes of a token at an institution", &["cob.read cob.write pix.read pix.write webhook.read webhook.write"]),
    (
        "the first line of a text that is signed, or the label of a hash",
        &["centavo checkpoint 2", "centavo manifest 1", "centavo placement 1", "previous <64 hexadecimal digits>"],
    ),
    (
        "fields of an answer or of a body",
        &[
            "adjustment {id, recipient_id?, amount, reason, reference}",
            "card {bin, last4, brand}",
            "debt {recipient_id, amount_cents, debt_cents}",
            "debt {recipient_id, amount_cents, refund_id, payment_id}",
            "destination {bank_code, ispb, agencia, conta, type, legal_name, document_number}",
            "fees {mdr_1x, mdr_2_6x, mdr_7_12x, margin, pix, antifraud_cents, cashout_cents, anticipation {d2, d7, d15}}",
            "last_answer {status?, cause, at, duration_ms}",
            "options {split_guard, mdr_base, refund_commission, card_settlement_days, own_keys}",
            "payer {name, document masked}",
            "rate_limits {card, other}",
        ],
    ),
    ("a field and its value", &["enabled = false", "enabled = true", "kind = \"adyen\"", "kind = \"http\""]),
    ("a line that `rail check` prints", &["not tested"]),
    ("a message of the interface", &["amount deve ser inteiro em centavos", "line N"]),
    (
        "a setting of PostgreSQL",
        &["enable_seqscan = off", "jit = off", "max_connections = 2500", "synchronous_commit = on"],
    ),
    ("a query of Prometheus", &["up == 1"]),
    ("a setting of PgBouncer", &["server_login_retry = 1"]),
    (
        "a line of a reader of exports, which `tests/api/books/spans.rs` runs",
        &[
            ".read all.jsonl.read.sql",
            "await parquetReadObjects({ file: await asyncBufferFromFile('all.parquet'), compressors })",
            "bean-query main.beancount \"SELECT account, sum(number) WHERE date >= 2026-07-01 GROUP BY account\"",
        ],
    ),
    ("a flag of hledger and ledger", &["-f"]),
    ("a program that sets clocks, which no test starts", &["chronyc makestep"]),
    ("an assertion of beancount", &["balance … ~ 0 BRL"]),
    ("a case of a text table", &["given · when · then"]),
    ("the order of the rooms", &["src → actors → derived → ledger"]),
    ("a place of an index", &["first 0, next 1"]),
    ("a signal that tests send", &["kill -9"]),
    ("a step of the state machine's table", &["store-card k"]),
    (
        "no container engine is here; buildah loads the image (`release.rs`)",
        &[
            "podman load -i …",
            "podman system service",
            "skopeo copy oci-archive:… docker-daemon:centavo:VERSION",
            "skopeo copy …",
        ],
    ),
    (
        "a setting of the reader's shell, which curl reads",
        &["export CENTAVO_URL=https://localhost:8443 CURL_CA_BUNDLE=chain.pem"],
    ),
    ("what the package asks of systemd", &["try-restart --no-block"]),
    ("the clusters' tests restart their servers so (`tests/cluster`)", &["pg_ctl -m immediate restart"]),
];

/// Programs of others: the arguments by which each prints its flags and subcommands.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("apt", &["--help"]),
    ("apt-get", &["--help"]),
    ("apt-mark", &["--help"]),
    ("chown", &["--help"]),
    ("cp", &["--help"]),
    ("curl", &["--help", "all"]),
    ("dpkg", &["--help"]),
    ("hledger", &["check", "--help"]),
    ("ledger", &["--help"]),
    ("mv", &["--help"]),
    ("openssl", &["help"]),
    ("pg_basebackup", &["--help"]),
    ("promtool", &["check", "--help"]),
    ("sha256sum", &["--help"]),
    ("ssh", &[]),
    ("sysctl", &["--help"]),
    ("systemd-analyze", &["--help"]),
    ("tar", &["--help"]),
];

/// Those whose second word is a subcommand, which the help names.
const WITH_SUBCOMMANDS: [&str; 5] = ["apt", "apt-get", "apt-mark", "promtool", "systemd-analyze"];

/// Flags within sentences that are not the program's: the file that knows each.
const FLAGS: &[(&str, &str)] = &[
    ("--signed", "docs/audit/verify_exports.py"),
    ("--stores", "benches/settlement/main.rs"),
    ("--trial", "docs/deploy/centavo-setup"),
    ("--profile", "docs/deploy/release.sh"),
];

/// Units that are Debian's.
const UNITS_OF_OTHERS: [&str; 2] = ["rsyslog", "prometheus"];

/// True for code that could be a command, or flags of one.
fn is_command(code: &str) -> bool {
    let words: Vec<_> = after_settings(code).collect();
    let first = words.first().copied().unwrap_or_default();
    let is_name = first.starts_with(|c: char| c.is_ascii_lowercase() || c == '.')
        && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./_-".contains(&byte));
    (is_name && words.len() > 1) || is_flag(first)
}

/// The words of a command, without the variables that are set for it, and a `--` before its flags.
fn after_settings(code: &str) -> impl Iterator<Item = &str> {
    let is_before = |word: &&str| *word == "--" || word.split_once('=').is_some_and(|(name, _)| is_variable(name));
    code.split(' ').skip_while(is_before)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

fn is_flag(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        || (word.len() == 2 && word.starts_with('-') && word.as_bytes()[1].is_ascii_alphabetic())
}

/// What programs say of themselves, each asked once.
#[derive(Default)]
struct ProgramTexts {
    helps: BTreeMap<String, Option<String>>,
    subcommands: BTreeSet<String>,
    reports: String,
}

impl ProgramTexts {
    fn new() -> Self {
        let mut known = Self::default();
        let help = known.help(centavo().to_str().unwrap(), &["--help"]).unwrap();
        let listed = help.split("Commands:").nth(1).unwrap().lines();
        let names = listed.take_while(|line| !line.starts_with("Options")).filter_map(|line| line.strip_prefix("  "));
        known.subcommands = names.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
        known.subcommands.retain(|name| !name.is_empty());
        assert!(known.subcommands.contains("serve"), "{help}");
        known.reports = known.help(centavo().to_str().unwrap(), &["report", "--help"]).unwrap();
        known
    }

    /// What a program prints with these arguments. `None` if it is not there, which is said.
    fn help(&mut self, program: &str, arguments: &[&str]) -> Option<String> {
        let command = format!("{program} {}", arguments.join(" "));
        let ask = || {
            let output = Command::new(program).args(arguments).env("PAGER", "cat").output();
            tool::is_there(output.is_ok(), program);
            let output = output.ok()?;
            Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
        };
        self.helps.entry(command).or_insert_with(ask).clone()
    }

    /// Says what of a command does not exist.
    fn judge(&mut self, code: &str) -> Result<(), String> {
        let words: Vec<_> = after_settings(code).collect();
        let (first, rest) = words.split_first().unwrap();
        match *first {
            "centavo" => self.judge_own(rest),
            own if self.subcommands.contains(own) => self.judge_own(&words),
            report if self.reports.contains(&format!("- {report}: ")) => {
                self.judge_own(&[&["report"], &words[..]].concat())
            }
            flag if is_flag(flag) => self.judge_flags(&words),
            "cargo" => self.judge_cargo(rest),
            "docker" if rest.first() == Some(&"compose") => self.judge_compose(&rest[1..]),
            "docker-compose" => self.judge_compose(rest),
            "systemctl" => self.judge_systemctl(rest),
            "npm" | "pip" if rest.first() == Some(&"install") => of_the_tests(&rest[1..]),
            "bean-check" => stands_in("\"bean-check\"", "tests/api/books/tools.rs"),
            "centavo-setup" => stands_in(&format!("\n  {})", rest[0]), "docs/deploy/centavo-setup"),
            script if root().join("docs/audit").join(script).is_file() => {
                let path = root().join("docs/audit").join(script);
                self.judge_program("python3", &[path.to_str().unwrap(), "--help"], rest)
            }
            script if script.contains('/') && root().join(script).is_file() => Ok(()),
            other => {
                let entry = PROGRAMS.iter().find(|(name, _)| *name == other);
                let (_, arguments) = entry.ok_or("is a command of an unknown kind")?;
                let Some(help) = self.help(other, arguments) else { return Ok(()) };
                if WITH_SUBCOMMANDS.contains(&other) {
                    rest.iter().take_while(|word| !word.contains(['.', '/'])).take(1).try_for_each(|word| {
                        has_word(&help, word).then_some(()).ok_or(format!("{other} has no {word}"))
                    })?;
                }
                self.judge_program(other, arguments, rest)
            }
        }
    }

    /// Every flag is in the help of a program.
    fn judge_program(&mut self, program: &str, arguments: &[&str], words: &[&str]) -> Result<(), String> {
        let Some(help) = self.help(program, arguments) else { return Ok(()) };
        flags(words).try_for_each(|flag| {
            has_word(&help, flag).then_some(()).ok_or(format!("{program} {} has no {flag}", arguments.join(" ")))
        })
    }

    fn judge_own(&mut self, words: &[&str]) -> Result<(), String> {
        let program = centavo();
        let program = program.to_str().unwrap();
        let [name, rest @ ..] = words else { return Err("names no command".to_owned()) };
        if is_flag(name) {
            return self.judge_program(program, &["--help"], words);
        }
        if !self.subcommands.contains(*name) {
            return Err(format!("centavo has no {name}"));
        }
        match rest {
            [nested, rest @ ..]
                if self.help(program, &[name, "--help"]).unwrap().contains(&format!("\n  {nested} ")) =>
            {
                self.judge_program(program, &[name, nested, "--help"], rest)
            }
            _ => self.judge_program(program, &[name, "--help"], rest),
        }
    }

    /// Flags without their command are those of any command of the program, or of a named file.
    fn judge_flags(&mut self, words: &[&str]) -> Result<(), String> {
        let program = centavo();
        let program = program.to_str().unwrap();
        let commands: Vec<_> = self.subcommands.iter().cloned().collect();
        let is_own = |known: &mut Self, flag: &str| {
            commands.iter().any(|name| has_word(&known.help(program, &[name, "--help"]).unwrap(), flag))
        };
        let first = words[0];
        if is_own(self, first) {
            return flags(words).try_for_each(|flag| is_own(self, flag).then_some(()).ok_or(format!("no {flag}")));
        }
        let (_, file) = FLAGS.iter().find(|(flag, _)| *flag == first).ok_or("is a flag of nothing that is known")?;
        flags(words).try_for_each(|flag| stands_in(flag, file))
    }

    fn judge_cargo(&mut self, words: &[&str]) -> Result<(), String> {
        let name = words.first().ok_or("names no command")?;
        if *name == "deny" {
            return stands_in("cargo deny", ".ci/run");
        }
        let before_own: Vec<_> = words.iter().copied().take_while(|word| *word != "--").collect();
        if *name == "install" {
            of_the_tests(&words[1..].iter().copied().filter(|word| !is_flag(word)).collect::<Vec<_>>())?;
        }
        let help = self.help(env!("CARGO"), &[name, "--help"]).unwrap();
        if !help.contains("Usage: ") {
            return Err(format!("cargo has no {name}"));
        }
        self.judge_program(env!("CARGO"), &[name, "--help"], &before_own)?;
        let command = words.join(" ");
        std::panic::catch_unwind(|| cargo_knows(&command)).map_err(|_| "names nothing that is there".to_owned())
    }

    fn judge_compose(&mut self, words: &[&str]) -> Result<(), String> {
        let name = words.first().ok_or("names no command")?;
        self.judge_program("docker-compose", &[name, "--help"], &words[1..])?;
        let services = &words[1..].iter().filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
        services.clone().try_for_each(|service| stands_in(&format!("\n  {service}:\n"), "docs/deploy/compose.yml"))
    }

    fn judge_systemctl(&mut self, words: &[&str]) -> Result<(), String> {
        self.judge_program("systemctl", &["--help"], words)?;
        let mut named = words.iter().filter(|word| !is_flag(word));
        let verb = named.next().ok_or("names no command")?;
        let Some(help) = self.help("systemctl", &["--help"]) else { return Ok(()) };
        if !has_word(&help, verb) {
            return Err(format!("systemctl has no {verb}"));
        }
        named.try_for_each(|unit| {
            let file = if unit.contains('.') { (*unit).to_owned() } else { format!("{unit}.service") };
            let is_there = root().join("docs/deploy").join(file).is_file() || UNITS_OF_OTHERS.contains(unit);
            is_there.then_some(()).ok_or(format!("no unit {unit}"))
        })
    }
}

fn flags<'a>(words: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    words.iter().copied().filter(|word| is_flag(word)).map(|word| word.split('=').next().unwrap())
}

/// True where a text has a word, and not only as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(goes_on) && !text[at + word.len()..].starts_with(goes_on))
}

fn stands_in(text: &str, file: &str) -> Result<(), String> {
    let content = std::fs::read_to_string(root().join(file)).unwrap();
    content.contains(text).then_some(()).ok_or_else(|| format!("{file} has no {text}"))
}

/// Packages of others are those that the tests use, in the same version.
fn of_the_tests(packages: &[&str]) -> Result<(), String> {
    packages.iter().try_for_each(|package| {
        stands_in(package, ".ci/run").or_else(|_| stands_in(package, "tests/conformance/requirements.txt"))
    })
}

/// The spans of code of a page's sentences.
fn code_in(page: &str) -> Vec<String> {
    let spans = Parser::new_ext(page, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Code(code) => Some(code.split_whitespace().collect::<Vec<_>>().join(" ")),
        _ => None,
    });
    spans.collect()
}

#[test]
fn every_command_within_a_sentence_names_what_exists() {
    let mut known = ProgramTexts::new();
    let (mut met, mut judged, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for page in pages() {
        for code in code_in(&std::fs::read_to_string(root().join(&page)).unwrap()) {
            if !is_command(&code) {
                continue;
            }
            if TEXTS.iter().any(|(_, texts)| texts.contains(&&*code)) {
                met.insert(code);
            } else if let Err(why) = known.judge(&code) {
                wrong.push(format!("{page}: {code}: {why}"));
            } else {
                judged.insert(code);
            }
        }
    }
    for (why, texts) in TEXTS {
        println!("not looked at, for {why}: {}", texts.join(", "));
    }
    println!("{} commands and flags within sentences name what exists", judged.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged.len() > 80, "{judged:?}");
    for text in TEXTS.iter().flat_map(|(_, texts)| *texts) {
        assert!(met.contains(*text), "no page has {text}");
    }
    let texts: String = judged.into_iter().map(|text| text + "\n").collect();
    FLAGS.iter().for_each(|(flag, _)| assert!(has_word(&texts, flag), "no page has {flag}"));
    PROGRAMS.iter().for_each(|(name, _)| assert!(texts.contains(&format!("{name} ")), "no page has {name}"));
}

#[test]
fn a_command_within_a_sentence_that_names_nothing_is_found() {
    let mut known = ProgramTexts::new();
    let wrong = [
        ("", "centavo verfy"),
        ("", "centavo serve --chek"),
        ("", "serve --chek"),
        ("", "statement --leger M-…"),
        ("", "--folow"),
        ("", "cargo bench --bench nothing"),
        ("", "cargo test --test nothing"),
        ("", "cargo build --profil dist"),
        ("", "cargo biuld"),
        ("", "cargo install --locked cargo-debs"),
        ("", "centavo-setup grafana"),
        ("", "npm install openapi-typescript@1.0.0"),
        ("", "frobnicate --all"),
        ("", "CENTAVO_SANDBOX=1 centavo serv"),
        ("python3", "verify_exports.py ./year --thru 2026-12-31"),
        ("curl", "curl --cacerts chain.pem https://localhost:8443"),
        ("hledger", "hledger -f main.hledger check --stricter"),
        ("systemctl", "systemctl reboot-it centavo"),
        ("systemctl", "systemctl restart centavos"),
        ("systemctl", "systemctl enable --nowe centavo"),
        ("apt-get", "apt-get instal jq"),
        ("docker-compose", "docker compose up --detatch"),
        ("docker-compose", "docker compose kill -s HUP centavos"),
        ("docker-compose", "docker-compose stop -t 5 grafanas"),
    ];
    for (program, code) in wrong {
        let is_there = program.is_empty() || known.help(program, &["--help"]).is_some();
        assert!(is_command(code), "{code}");
        assert!(!is_there || known.judge(code).is_err(), "{code} was taken");
    }
    let spans = code_in("A `centavo\nserve` and | `up == 1` `12 x`.\n\n    `centavo block`\n");
    assert_eq!(spans, ["centavo serve", "up == 1", "12 x"]);
    assert!(!is_command("12 x") && !is_command("serve") && !is_command("GET /x") && is_command("A=1 b c"));
}
