//! A small disk that can be filled to its last byte: a file system in memory.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

/// See the module. It is unmounted when it is dropped.
pub(crate) struct SmallDisk {
    folder: TempDir,
}

impl SmallDisk {
    /// Mounts a disk of this size in MiB, which needs the right to mount.
    pub(crate) fn mount(size_mib: u64) -> Result<Self, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size_mib}m"), "centavo-test"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self { folder }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(format!("mount can't be run: {error}")),
        }
    }

    /// A folder on it.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    /// Fills it to the last byte, a piece at a time.
    pub(crate) async fn fill(&self) {
        let mut filler = File::options().append(true).create(true).open(self.filler()).unwrap();
        for piece in [4 << 20, 64 << 10, 4 << 10, 1] {
            let bytes = vec![b'x'; piece];
            loop {
                match filler.write(&bytes) {
                    Ok(_) => tokio::time::sleep(Duration::from_millis(if piece > 1 << 20 { 25 } else { 0 })).await,
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => panic!("the disk can't be filled: {error}"),
                }
            }
        }
    }

    /// Takes away what filled it.
    pub(crate) fn free(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.folder.path().join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let path: &Path = self.folder.path();
        // Lazily: a server of a test that failed may still be ending.
        let unmounted = Command::new("umount").arg("--lazy").arg(path).status();
        assert!(std::thread::panicking() || unmounted.is_ok_and(|status| status.success()), "{} stays", path.display());
    }
}
