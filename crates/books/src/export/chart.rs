//! A bookkeeper's chart of accounts: the codes of our accounts in another program, from a file.
//! The same file may have the layout that the program reads.
//!
//! An account gets the row of the longest prefix of whole components of its name.

use std::collections::BTreeMap;

use derived::checkpoint::hex;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::layout::{Layout, LayoutFile};

/// Granularity of the entries for another program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// One entry for each Record.
    #[default]
    Entry,
    /// One entry for each day: the summarized journal.
    Day,
}

/// The chart of accounts of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    rows: BTreeMap<String, ChartRow>,
    pub(super) layout: Layout,
    /// SHA-256 of the text that it was read from, hexadecimal.
    pub(super) sha256: String,
}

/// What the other program calls an account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChartRow {
    pub(super) code: String,
    /// Text of the history, with places for values; none for the default text.
    pub(super) history: Option<String>,
    pub(super) cost_center: String,
}

/// Why a file is no chart of accounts.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// It is no TOML of this form.
    #[error(transparent)]
    Form(#[from] toml::de::Error),
    /// Two rows have the same prefix.
    #[error("two rows have the prefix {0:?}")]
    Twice(String),
    /// A code is empty or too long, or a text has a control character.
    #[error("the row of {0:?} has no usable {1}: 1 to {TEXT_MAX} characters, none of them a control character")]
    Text(String, &'static str),
    /// The layout has other marks than files have.
    #[error("a separator is , or ; or | or a tab, and a decimal mark is , or .")]
    Marks,
    /// The layout has no column.
    #[error("the layout has no column")]
    NoColumn,
    /// A column of the layout has a control character.
    #[error("the column {0:?} has a control character")]
    Column(String),
    /// A value of the layout has a place that does not exist.
    #[error("the value {0:?} has a place that does not exist")]
    Place(String),
}

impl ChartError {
    /// The same in Portuguese, with the line of the file where TOML is wrong. `text` is the file.
    pub fn in_portuguese(&self, text: &str) -> String {
        match self {
            Self::Form(error) => {
                let line = error.span().and_then(|span| text.get(..span.start));
                let line = line.map_or(1, |before| before.matches('\n').count() + 1);
                let named = |said: &str| error.message().strip_prefix(said)?.split('`').next();
                match (named("missing field `"), named("unknown field `")) {
                    (Some(field), _) => format!("linha {line}: falta o campo {field}"),
                    (_, Some(field)) => format!("linha {line}: o campo {field} não existe"),
                    _ => format!("linha {line}: não é TOML desta forma"),
                }
            }
            Self::Twice(prefix) => format!("duas linhas têm o prefixo {prefix:?}"),
            Self::Text(prefix, name) => {
                format!("{name} de {prefix:?} deve ter de 1 a {TEXT_MAX} caracteres, nenhum deles de controle")
            }
            Self::Marks => "o separador é , ou ; ou | ou tab, e a marca decimal , ou .".to_owned(),
            Self::NoColumn => "o layout não tem coluna".to_owned(),
            Self::Column(head) => format!("a coluna {head:?} tem um caractere de controle"),
            Self::Place(value) => format!("o valor {value:?} tem um lugar que não existe"),
        }
    }
}

/// Most characters of a code or a text.
const TEXT_MAX: usize = 250;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    account: Vec<FileRow>,
    layout: Option<LayoutFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRow {
    prefix: String,
    code: String,
    history: Option<String>,
    cost_center: Option<String>,
}

impl Chart {
    /// Reads a chart: `[[account]]` rows with `prefix`, `code`, and if wanted `history` and
    /// `cost_center`; if wanted a `[layout]`.
    pub fn parse(text: &str) -> Result<Self, ChartError> {
        let file: File = toml::from_str(text)?;
        let mut rows = BTreeMap::new();
        for FileRow { prefix, code, history, cost_center } in file.account {
            let is_usable = |text: &str| {
                !text.is_empty() && text.chars().count() <= TEXT_MAX && !text.chars().any(char::is_control)
            };
            let texts = [("code", Some(&code)), ("history", history.as_ref()), ("cost_center", cost_center.as_ref())];
            if let Some((name, _)) = texts.iter().find(|(_, text)| text.is_some_and(|text| !is_usable(text))) {
                return Err(ChartError::Text(prefix, name));
            }
            let row = ChartRow { code, history, cost_center: cost_center.unwrap_or_default() };
            if rows.insert(prefix.clone(), row).is_some() {
                return Err(ChartError::Twice(prefix));
            }
        }
        let layout = file.layout.map(LayoutFile::layout).transpose()?;
        Ok(Self { rows, layout: layout.unwrap_or_default(), sha256: hex(&Sha256::digest(text)) })
    }

    /// The row of an account.
    pub(super) fn row(&self, account: &str) -> Option<&ChartRow> {
        let ends = account.match_indices(':').map(|(at, _)| at).chain([account.len()]);
        ends.filter_map(|end| self.rows.get(&account[..end])).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_of_whole_components_counts() {
        let chart = Chart::parse(
            "[[account]]\nprefix = 'Assets'\ncode = '1'\n[[account]]\nprefix = 'Assets:Bank'\ncode = '1.1'\n\
             [[account]]\nprefix = 'Assets:Bank:Pix'\ncode = '1.1.2'\ncost_center = 'CC'\nhistory = 'Pix {event}'",
        )
        .unwrap();
        for (account, expected) in [
            ("Assets:Bank:Pix", Some("1.1.2")),
            ("Assets:Bank:Settlement", Some("1.1")),
            ("Assets:Banking", Some("1")),
            ("Assets", Some("1")),
            ("Asset", None),
            ("Income:Sales", None),
        ] {
            assert_eq!(chart.row(account).map(|row| row.code.as_str()), expected, "{account}");
        }
    }

    #[test]
    fn a_file_that_is_no_chart_is_refused() {
        for (text, expected) in [
            ("", "account"),
            ("[[account]]\nprefix = 'A'", "code"),
            ("[[account]]\nprefix = 'A'\ncode = '1'\nhystory = 'x'", "hystory"),
            ("[[account]]\nprefix = 'A'\ncode = '1'\n[[account]]\nprefix = 'A'\ncode = '2'", "two rows"),
            ("[[account]]\nprefix = 'A'\ncode = ''", "no usable code"),
            ("[[account]]\nprefix = 'A'\ncode = \"1\\n2\"", "no usable code"),
            ("account = []\n[layout]\ncolumn = []", "no column"),
            ("account = []\n[layout]\nseparator = 'x'\ncolumn = []", "a separator is"),
            ("account = []\n[layout]\ncolumn = [{ head = 'A', value = '{day}' }]", "does not exist"),
        ] {
            let error = Chart::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_in_portuguese_with_its_line() {
        let row = |rest: &str| format!("[[account]]\nprefix = 'Assets'\ncode = '1'\n{rest}");
        for (text, said) in [
            (row("[[account]]\nprefix = 'Income'\n"), "linha 4: falta o campo code"),
            (row("kode = '2'"), "linha 4: o campo kode não existe"),
            (row("\nhistory = "), "linha 5: não é TOML desta forma"),
            ("account = 1".to_owned(), "linha 1: não é TOML desta forma"),
            (row(&row("")), "duas linhas têm o prefixo \"Assets\""),
            (row("history = ''"), "history de \"Assets\" deve ter de 1 a 250 caracteres, nenhum deles de controle"),
            (
                row("[layout]\nseparator = '.'\ncolumn = []"),
                "o separador é , ou ; ou | ou tab, e a marca decimal , ou .",
            ),
            (row("[layout]\ncolumn = []"), "o layout não tem coluna"),
            (row("[[layout.column]]\nhead = 'a\tb'\nvalue = 'x'"), "a coluna \"a\\tb\" tem um caractere de controle"),
            (row("[[layout.column]]\nhead = 'a'\nvalue = '{day}'"), "o valor \"{day}\" tem um lugar que não existe"),
        ] {
            assert_eq!(Chart::parse(&text).unwrap_err().in_portuguese(&text), said, "{text}");
        }
    }
}
