//! Defects of an institution's settings and files.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why an institution cannot be used as it is set. No message repeats a secret.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A setting is absent or wrong.
    #[error("{setting}: {defect}")]
    Setting {
        /// Its name.
        setting: &'static str,
        /// The defect.
        defect: String,
    },
    /// A file is absent, cannot be read, or holds something else.
    #[error("{setting} {}: {defect}", .path.display())]
    File {
        /// The setting that names it.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// The defect.
        defect: String,
    },
}

impl SettingsError {
    pub(crate) fn setting(setting: &'static str, defect: impl Into<String>) -> Self {
        Self::Setting { setting, defect: defect.into() }
    }

    pub(crate) fn file(setting: &'static str, path: &Path, defect: impl fmt::Display) -> Self {
        Self::File { setting, path: path.to_owned(), defect: defect.to_string() }
    }
}
