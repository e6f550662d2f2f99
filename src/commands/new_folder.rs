//! Data folder that a command makes: it has another name until it is whole, so that nothing half
//! done is served.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a folder is empty or absent.
pub(crate) fn is_free(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// The name of a folder until it is whole: its own with this ending.
pub(crate) fn unfinished(folder: &Path, ending: &str) -> PathBuf {
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    folder.with_file_name(name)
}
