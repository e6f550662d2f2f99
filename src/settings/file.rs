//! TOML file of settings. Its names are those of the flags, with underscores for hyphens. A value
//! counts where neither the command line nor a variable has one.
//!
//! The values become defaults of the flags, so they are read and checked as flags are. Only the
//! tables of institutions have no flags ([`crate::server::named_rails::settings`]). What is wrong
//! is named with its line; the text of the file is not repeated, since it may hold secrets.

use std::any::TypeId;
use std::error::Error;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Spanned, Value};

use crate::server::named_rails::settings::{self, NamedRailSettings};
use crate::settings::privacy;
use web::credential::Secret;

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
pub enum SettingsFileError {
    /// The file is absent, or can't be read.
    #[error("the configuration file {path} can't be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not TOML, or has unknown names or wrong values. The message does not repeat the
    /// text of the file, which may hold secrets.
    #[error("the configuration file {path} is wrong{}: {message}", .line.map(|line| format!(" at line {line}")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, where it is known.
        line: Option<usize>,
        /// The defect.
        message: String,
    },
}

/// The setting that has no flag, since others can read a command line.
const MASTER_KEY: &str = "master_key";

/// The values of a file.
pub struct SettingsFile {
    path: PathBuf,
    values: Vec<FileValue>,
    rails: Option<NamedRailSettings>,
}

struct FileValue {
    name: String,
    value: Value,
    line: usize,
}

impl SettingsFile {
    /// Reads a file, which must have no other names than the settings of a server.
    pub fn read(path: &Path, serve: &Command) -> Result<Self, SettingsFileError> {
        let unreadable = |source| SettingsFileError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let line_at = |byte: usize| text[..byte].matches('\n').count() + 1;
        let table = toml::from_str::<std::collections::BTreeMap<Spanned<String>, Spanned<Value>>>(&text);
        let table = table.map_err(|error| {
            let line = error.span().map(|span| line_at(span.start));
            SettingsFileError::Malformed { path: path.to_owned(), line, message: error.message().to_owned() }
        })?;
        let values = table.into_iter().map(|(name, value)| {
            let line = line_at(name.span().start);
            FileValue { name: name.into_inner(), value: value.into_inner(), line }
        });
        let rails = settings::of_file(path.to_owned(), &text, line_at).map_err(|defect| {
            let line = Some(line_at(defect.at));
            SettingsFileError::Malformed { path: path.to_owned(), line, message: defect.message }
        })?;
        let file = Self { path: path.to_owned(), values: values.collect(), rails };
        let known: Vec<_> =
            serve.get_arguments().filter(|arg| is_in_files(arg)).map(|arg| arg.get_id().as_str()).collect();
        let known: Vec<_> = known.into_iter().chain([MASTER_KEY]).chain(settings::TABLES).collect();
        match file.values.iter().find(|value| !known.contains(&value.name.as_str())) {
            None => Ok(file),
            Some(unknown) => {
                let known: Vec<_> = known.iter().map(|name| format!("`{name}`")).collect();
                Err(file
                    .wrong(unknown, format!("unknown field `{}`, expected one of {}", unknown.name, known.join(", "))))
            }
        }
    }

    /// The names of the settings that it has.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.name.as_str())
    }

    /// The institutions that it names; `None` if it names none.
    pub fn rails(&self) -> Option<NamedRailSettings> {
        self.rails.clone()
    }

    /// The text of the master key, where neither a flag nor a variable has the key.
    pub fn master_key(&self, matches: &ArgMatches) -> Result<Option<Secret>, SettingsFileError> {
        let Some(value) = self.values.iter().find(|value| value.name == MASTER_KEY) else { return Ok(None) };
        match &value.value {
            _ if is_given_above(MASTER_KEY, matches) => Ok(None),
            Value::String(text) => Ok(Some(Secret::from(text.clone()))),
            _ => Err(self.wrong(value, "expected a text in quotation marks".to_owned())),
        }
    }

    /// The command with the values as defaults of its flags. `matches` is what the command line and
    /// the variables gave.
    pub fn below(&self, mut command: Command, matches: &ArgMatches) -> Result<Command, SettingsFileError> {
        for value in &self.values {
            let Some(arg) = command.get_arguments().find(|arg| arg.get_id() == value.name.as_str()) else { continue };
            let text = self.checked(value, arg)?;
            if !is_given_above(&value.name, matches) {
                command = command.mut_arg(&value.name, |arg| arg.default_value(text));
            }
        }
        Ok(command)
    }

    /// A value as a flag would have it.
    fn checked(&self, value: &FileValue, arg: &Arg) -> Result<String, SettingsFileError> {
        let kind = arg.get_value_parser().type_id();
        let is = |types: &[TypeId]| types.iter().any(|one| kind == *one);
        let is_number =
            is(&[TypeId::of::<u16>(), TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<NonZeroU32>()]);
        let is_switch = is(&[TypeId::of::<bool>()]);
        let expected = match (is_number, is_switch) {
            (true, _) => "expected a whole number",
            (_, true) => "expected true, false, \"on\" or \"off\"",
            _ => "expected a text in quotation marks",
        };
        let text = match &value.value {
            Value::Integer(number) if is_number => number.to_string(),
            Value::Boolean(is_on) if is_switch => is_on.to_string(),
            Value::String(text) if !is_number => text.clone(),
            _ => return Err(self.wrong(value, expected.to_owned())),
        };
        // Alone, so that the error is of this value.
        let alone =
            Command::new("file").no_binary_name(true).arg(arg.clone().env(None::<&'static str>).required(false));
        let flag = format!("--{}={text}", arg.get_long().unwrap_or_default());
        match alone.try_get_matches_from([flag]) {
            Ok(_) => Ok(text),
            Err(_) if is_switch => Err(self.wrong(value, expected.to_owned())),
            Err(error) => {
                let possible: Vec<_> = arg.get_possible_values().iter().map(|one| one.get_name().to_owned()).collect();
                let message = match error.source() {
                    Some(defect) if is_number => format!("{expected}: {defect}"),
                    Some(defect) => defect.to_string(),
                    None => format!("expected one of {}", possible.join(", ")),
                };
                Err(self.wrong(value, message))
            }
        }
    }

    fn wrong(&self, value: &FileValue, message: String) -> SettingsFileError {
        let message = if message.contains(&value.name) { message } else { format!("{}: {message}", value.name) };
        SettingsFileError::Malformed { path: self.path.clone(), line: Some(value.line), message }
    }
}

/// Whether a file may have a setting: those that have a variable and that help shows.
pub(crate) fn is_in_files(arg: &Arg) -> bool {
    arg.get_env().is_some() && !arg.is_hide_set() && arg.get_id() != "config"
}

/// Whether the command line or a variable has a setting, or the same secret as a text or a file.
fn is_given_above(name: &str, matches: &ArgMatches) -> bool {
    let text = name.strip_suffix("_file").unwrap_or(name);
    [text.to_owned(), format!("{text}_file")].iter().any(|name| {
        let is_known = matches.try_contains_id(name).is_ok();
        let source = is_known.then(|| matches.value_source(name)).flatten();
        let is_flag = source.is_some_and(|source| source != ValueSource::DefaultValue);
        is_flag || privacy::variable(&format!("CENTAVO_{}", name.to_uppercase())).is_some()
    })
}
