//! Runners of the three programs that read the exports: their verdict, their errors, and the
//! balances that they compute.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use books::export::Format;
use chrono::NaiveDate;

/// Centavos by account; accounts at zero left out.
pub(crate) type Balances = BTreeMap<String, i128>;

/// A program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    program: &'static str,
    install: &'static str,
    pub(crate) format: Format,
}

const TOOLS: [Tool; 3] = [
    Tool { program: "bean-check", install: "pip install beancount", format: Format::Beancount },
    Tool { program: "hledger", install: "apt-get install hledger", format: Format::Hledger },
    Tool { program: "ledger", install: "apt-get install ledger", format: Format::Ledger },
];

/// The programs that are here. One that is not is named; with `CENTAVO_CONFORMANCE=required` that
/// is a failure.
pub(crate) fn tools() -> Vec<Tool> {
    let (here, missing): (Vec<_>, Vec<_>) = TOOLS.into_iter().partition(|tool| tool.found().is_some());
    let missing: Vec<_> = missing.iter().map(|tool| format!("{} ({})", tool.program, tool.install)).collect();
    if !missing.is_empty() {
        println!("not checked, because it is not installed: {}", missing.join(", "));
        assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and there is no {}", missing.join(", "));
    }
    here
}

/// Whether a program that is missing is a failure.
pub(crate) fn is_required() -> bool {
    std::env::var("CENTAVO_CONFORMANCE").is_ok_and(|value| value == "required")
}

/// Python with some packages, of `CENTAVO_PYTHON` or the system's. `None` if it lacks one, which
/// is named.
pub(crate) fn python(packages: &str) -> Option<Command> {
    let program = std::env::var_os("CENTAVO_PYTHON").unwrap_or_else(|| "python3".into());
    let found = Command::new(&program).args(["-c", &format!("import {packages}")]).output();
    is_here(found, &format!("Python with {packages}")).then(|| Command::new(program))
}

/// Node for a script beside modules of `CENTAVO_NODE_MODULES`, which are linked into its folder.
/// `None` if a module is missing, which is named.
pub(crate) fn node(folder: &Path, module: &str) -> Option<Command> {
    let modules = PathBuf::from(std::env::var_os("CENTAVO_NODE_MODULES").unwrap_or_default());
    std::os::unix::fs::symlink(std::path::absolute(modules).unwrap_or_default(), folder.join("node_modules")).unwrap();
    let mut command = Command::new("node");
    command.current_dir(folder).args(["--input-type=module", "-e"]);
    let found = Command::new("node")
        .current_dir(folder)
        .args(["--input-type=module", "-e", &format!("import '{module}'")])
        .output();
    is_here(found, &format!("Node with {module}")).then_some(command)
}

/// Whether a counterpart ran. One that did not is named; where all are required that is a failure.
fn is_here(found: std::io::Result<Output>, what: &str) -> bool {
    let is_here = found.is_ok_and(|output| output.status.success());
    if !is_here {
        println!("not checked, because it is not installed: {what}");
        assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and there is no {what}");
    }
    is_here
}

impl Tool {
    fn found(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(self.program)).find(|file| file.is_file())
    }

    fn run(self, file: &Path, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.program);
        if self.format != Format::Beancount {
            command.arg("-f");
        }
        command.arg(file).args(arguments).env("LC_ALL", "C.UTF-8");
        if self.format == Format::Ledger {
            command.arg("--init-file").arg("/dev/null");
        }
        command.output().unwrap()
    }

    /// Has the program check a file, as strictly as it can; what it found wrong is the error.
    pub(crate) fn check(self, file: &Path) -> Result<(), String> {
        let output = match self.format {
            Format::Beancount => self.run(file, &["--no-cache"]),
            Format::Hledger => self.run(file, &["check", "-s"]),
            _ => self.run(file, &["--pedantic", "balance"]),
        };
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(()) } else { Err(said) }
    }

    /// The balances that the program computes. bean-check prints none; for a file that it accepts,
    /// these are the last balances that the file asserts.
    pub(crate) fn balances(self, file: &Path) -> Balances {
        let output = match self.format {
            Format::Beancount => return asserted(file),
            Format::Hledger => self.run(file, &["balance", "--flat", "--no-total", "-E", "-O", "csv"]),
            _ => {
                let format = "%(account)\t%(display_total)\n";
                self.run(file, &["balance", "--flat", "--no-total", "--empty", "--format", format])
            }
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().filter_map(|line| line.split_once('\t').or(line.split_once(',')));
        let rows = rows.map(|(account, amount)| (account.trim_matches('"'), amount.trim_matches('"')));
        without_zeros(
            rows.filter(|(account, _)| *account != "account").map(|(account, amount)| (account, centavos(amount))),
        )
    }
}

/// What a program is asked for besides its balances.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Selection {
    /// What moved since a day, that day included.
    MovedSince(NaiveDate),
    /// All but the balances brought forward, by their tag.
    WithoutForward,
    All,
}

impl Tool {
    /// The sums of accounts that the program computes. `None` if it is beancount, and its program
    /// for queries is not installed.
    pub(crate) fn sums(self, file: &Path, selection: Selection) -> Option<Balances> {
        let since = match selection {
            Selection::MovedSince(day) => day.to_string(),
            Selection::WithoutForward | Selection::All => "1970-01-01".to_owned(),
        };
        let is_without = matches!(selection, Selection::WithoutForward);
        let output = match self.format {
            Format::Beancount => {
                let without = if is_without { " AND NOT 'brought-forward' IN tags" } else { "" };
                let query = format!("SELECT account, sum(number) WHERE date >= {since}{without} GROUP BY account");
                let output = Command::new("bean-query").args(["-f", "csv"]).arg(file).arg(query).output();
                let Ok(output) = output else {
                    println!("not checked, because it is not installed: bean-query (pip install beanquery)");
                    assert!(!is_required(), "CENTAVO_CONFORMANCE=required, and there is no bean-query");
                    return None;
                };
                output
            }
            Format::Hledger => {
                let without: &[&str] = if is_without { &["not:tag:brought_forward"] } else { &[] };
                let query = [&["balance", "--flat", "--no-total", "-O", "csv", "-b", &since], without].concat();
                self.run(file, &query)
            }
            _ => {
                let without: &[&str] = if is_without { &["--limit", "!has_tag('brought_forward')"] } else { &[] };
                let format = "%(account)\t%(display_total)\n";
                let query = ["balance", "--flat", "--no-total", "--format", format, "--begin", &since];
                self.run(file, &[&query, without].concat())
            }
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let rows = text.lines().filter_map(|line| line.split_once('\t').or(line.split_once(',')));
        let rows = rows.map(|(account, amount)| (account.trim().trim_matches('"'), amount.trim().trim_matches('"')));
        Some(without_zeros(
            rows.filter(|(account, _)| *account != "account").map(|(account, amount)| (account, centavos(amount))),
        ))
    }
}

/// The closing balances of a beancount file and those that it includes: of each account the last.
fn asserted(file: &Path) -> Balances {
    let mut balances = BTreeMap::new();
    for text in with_included(file) {
        for line in text.lines() {
            let words: Vec<_> = line.split_whitespace().collect();
            if let [_, "balance", account, amount, "~", "0", "BRL"] = words[..] {
                balances.insert(account.to_owned(), centavos(amount));
            }
        }
    }
    balances.retain(|_, balance| *balance != 0);
    balances
}

/// A file's text and those of the files that it includes, in order.
pub(crate) fn with_included(file: &Path) -> Vec<String> {
    let main = std::fs::read_to_string(file).unwrap();
    let names: Vec<_> = main.lines().filter_map(|line| line.strip_prefix("include ")).collect();
    let included = names.iter().map(|name| file.with_file_name(name.trim_matches('"')));
    let included: Vec<_> = included.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    [vec![main.clone()], included].concat()
}

pub(crate) fn without_zeros<'a>(rows: impl Iterator<Item = (&'a str, i128)>) -> Balances {
    let mut balances = Balances::new();
    for (account, centavos) in rows {
        *balances.entry(account.to_owned()).or_default() += centavos;
    }
    balances.retain(|_, centavos| *centavos != 0);
    balances
}

/// `-1234.50 BRL` in centavos; a plain `0` too.
fn centavos(amount: &str) -> i128 {
    let amount = amount.trim().trim_end_matches(" BRL");
    match amount.split_once('.') {
        Some((whole, cents)) if cents.len() == 2 => format!("{whole}{cents}").parse().unwrap(),
        _ => {
            assert!(matches!(amount, "0" | ""), "an amount has two decimals: {amount}");
            0
        }
    }
}
