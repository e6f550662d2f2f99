//! Files of a data folder beside the journal, for a migration: the operators' token that was made,
//! the time of the last backup, the checkpoints, the records of a sandbox's institutions.
//!
//! The master key is not among them: whoever has the books must not find the key beside them
//! because a command put it there. Exports that were made in the background are not either: they
//! last some days, and are asked for again.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use store::unfinished;

use crate::server::checkpoints;

/// Their names.
const NAMES: [&str; 4] = [checkpoints::FOLDER, "last-backup", "operator.token", "sandbox"];

/// Those that a folder has.
pub(crate) fn found(folder: &Path) -> Vec<&'static str> {
    NAMES.into_iter().filter(|name| folder.join(name).exists()).collect()
}

/// The first one that both folders have with another content.
pub(crate) fn in_the_way(from: &Path, to: &Path) -> io::Result<Option<PathBuf>> {
    for name in found(from) {
        let there = to.join(name);
        if there.exists() && !is_same(&from.join(name), &there)? {
            return Ok(Some(there));
        }
    }
    Ok(None)
}

/// Copies those that `to` lacks; each is there whole or not at all. Gives the names of all that are
/// there then.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<Vec<&'static str>> {
    let names = found(from);
    if names.is_empty() {
        return Ok(names);
    }
    fs::create_dir_all(to)?;
    for name in &names {
        let (here, there) = (from.join(name), to.join(name));
        if there.exists() {
            continue;
        }
        let begun = unfinished(&there);
        if begun.is_dir() {
            fs::remove_dir_all(&begun)?;
        }
        copy_all(&here, &begun)?;
        fs::rename(&begun, &there)?;
    }
    File::open(to)?.sync_all()?;
    Ok(names)
}

/// Removes those that a folder has.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    found(folder).into_iter().map(|name| folder.join(name)).try_for_each(|path| match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    })
}

/// Copies a file, or a folder with all that is in it, durably.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::copy(from, to)?;
        return File::open(to)?.sync_all();
    }
    fs::create_dir_all(to)?;
    for name in names(from)? {
        copy_all(&from.join(&name), &to.join(&name))?;
    }
    File::open(to)?.sync_all()
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    if one.is_dir() != other.is_dir() {
        return Ok(false);
    }
    if !one.is_dir() {
        return Ok(fs::read(one)? == fs::read(other)?);
    }
    let names_of_one = names(one)?;
    if names_of_one != names(other)? {
        return Ok(false);
    }
    for name in names_of_one {
        if !is_same(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The names in a folder, in order.
fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_go_along_once_and_never_over_others() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("sandbox/pix")).unwrap();
        ["journal", "checkpoints"].iter().for_each(|name| fs::create_dir_all(from.join(name)).unwrap());
        for name in ["sandbox/pix/closed", "sandbox/payouts", "checkpoints/one.json", "operator.token", "master.key"] {
            fs::write(from.join(name), name).unwrap();
        }
        // What an interrupted run left.
        fs::create_dir_all(to.join("sandbox~/old")).unwrap();
        for _ in 0..2 {
            assert_eq!(in_the_way(&from, &to).unwrap(), None);
            assert_eq!(copy(&from, &to).unwrap(), ["checkpoints", "operator.token", "sandbox"]);
        }
        assert_eq!(names(&to).unwrap(), ["checkpoints", "operator.token", "sandbox"]);
        assert!(is_same(&from.join("sandbox"), &to.join("sandbox")).unwrap());
        for (changed, text) in [("sandbox/pix/closed", "other"), ("sandbox/more", ""), ("operator.token", "")] {
            fs::write(to.join(changed), text).unwrap();
            let found = in_the_way(&from, &to).unwrap().unwrap();
            assert!(to.join(changed).starts_with(&found), "{}", found.display());
            remove(&to).unwrap();
            assert_eq!(names(&to).unwrap(), [""; 0]);
            copy(&from, &to).unwrap();
        }
    }
}
