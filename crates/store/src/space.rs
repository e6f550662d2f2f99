//! Disk space: a reserve of free bytes, below which the engine takes no commands, and a ballast
//! file.
//!
//! sled does not open a database when it cannot write. So the engine takes no more commands when
//! less than the reserve is free. The ballast takes up room that an operator can give back by
//! deleting it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use super::StoreError;
use super::files::machine;

const BALLAST: &str = "ballast";

/// Bytes that this process may still write where `folder` is.
pub(super) fn free_bytes(folder: &Path) -> Result<u64, StoreError> {
    let space = rustix::fs::statvfs(folder).map_err(|error| machine(folder, error.into()))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// Makes the ballast, if it is not there and there is room for it beyond the reserve.
pub(super) fn keep_ballast(data: &Path, bytes: u64, reserve_bytes: u64) -> Result<(), StoreError> {
    let path = data.join(BALLAST);
    let is_there = path.metadata().is_ok_and(|metadata| metadata.len() >= bytes);
    if bytes == 0 || is_there || free_bytes(data)? < bytes + reserve_bytes {
        return Ok(());
    }
    let made =
        OpenOptions::new().create(true).truncate(true).write(true).open(&path).and_then(|file| fill(file, bytes));
    if let Err(error) = made {
        tracing::warn!(ballast = %path.display(), %error, "the ballast could not be made; it is tried again at the next start");
        let _there_may_be_none = std::fs::remove_file(&path);
    }
    Ok(())
}

/// Advice for an open on a full disk: the file to delete.
pub(super) fn name_ballast(data: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Machine { folder, source } if source.kind() == io::ErrorKind::StorageFull => {
            let ballast = data.join(BALLAST);
            let ballast = if ballast.exists() {
                format!("; if there is nothing else to delete, delete {}, which is made again later", ballast.display())
            } else {
                String::new()
            };
            let message = format!("{source}: make room on this disk{ballast}");
            StoreError::Machine { folder, source: io::Error::new(source.kind(), message) }
        }
        error => error,
    }
}

/// Gives a file blocks of its own, by writing where the file system cannot do it otherwise.
fn fill(mut file: File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).is_ok() {
        return file.sync_all();
    }
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ballast_takes_room_where_there_is_some() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(BALLAST);
        keep_ballast(data.path(), 0, 0).unwrap();
        keep_ballast(data.path(), 1 << 20, u64::MAX / 2).unwrap();
        assert!(!path.exists(), "none is wanted, and there is no room beyond the reserve");
        keep_ballast(data.path(), 3 << 20, 0).unwrap();
        let blocks = std::os::unix::fs::MetadataExt::blocks(&path.metadata().unwrap());
        assert!(blocks * 512 >= 3 << 20, "{blocks} blocks of 512 bytes");
        std::fs::remove_file(&path).unwrap();
        keep_ballast(data.path(), 1 << 20, 0).unwrap();
        assert!(path.exists(), "it is made again once it was used");
        assert!(free_bytes(data.path()).unwrap() > 0);
    }
}
