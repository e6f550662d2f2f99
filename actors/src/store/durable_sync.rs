//! Makes the syncs and the renames of the store below us durable.
//!
//! On Linux sled makes its log "stable" with `sync_file_range`, which writes the file's pages but neither its size nor the
//! disk's own cache: a power cut then loses what was acknowledged, or leaves a folder that does not open. This module
//! defines that symbol for the whole program: whoever calls `sync_file_range` gets `fdatasync`, which does both.
//!
//! When sled opens a database, it writes a snapshot, renames it to its final name, and then zeroes and truncates the segments
//! that only the snapshot before it needed. It never syncs the folder. A power cut can then bring back the old snapshot's
//! name over segments that are durably gone, and the database does not open again. POSIX allows it; ext4 and xfs happen not
//! to do it, since a later sync of another file carries the rename with it. So this module also defines `rename` for the whole
//! program: whoever calls it gets a rename that is durable when it returns.
//!
//! The definitions shadow the C library's when the program is linked; nothing is patched at run time.
//!
//! Whether the linker did so is not taken on trust. Every call is counted, the store writes to a scratch database and
//! renames a file before it opens the real one, and it refuses to serve unless both counts rose. Where sled does not call
//! `sync_file_range` (outside Linux it calls `fsync`), nothing is replaced and nothing is counted.
//!
//! This is the only file of the project with unsafe code.

use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use std::{ffi::CStr, ffi::OsStr, fs::File, os::unix::ffi::OsStrExt, path::Path};

/// How many syncs of the store below us became an `fdatasync` that succeeded, since this process started.
pub fn durable_syncs() -> u64 {
    DURABLE_SYNCS.load(Ordering::SeqCst)
}

/// How many renames were followed by a sync of the folder that succeeded, since this process started.
pub(super) fn durable_renames() -> u64 {
    DURABLE_RENAMES.load(Ordering::SeqCst)
}

/// Whether the store below us goes through the symbols defined here on this system.
pub(super) const REPLACES_SYNC: bool = cfg!(target_os = "linux");

static DURABLE_SYNCS: AtomicU64 = AtomicU64::new(0);
static DURABLE_RENAMES: AtomicU64 = AtomicU64::new(0);

/// Takes the place of the C library's function of this name, and syncs the whole file with its size, through the disk's
/// cache. Returns −1 and leaves `errno` as `fdatasync` set it when that fails.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, so that every caller's view of it holds.
// Its promise is stronger than the original's: the range and the flags only ever ask for less than the whole file.
#[unsafe(no_mangle)]
extern "C" fn sync_file_range(
    file: libc::c_int,
    _offset: libc::off64_t,
    _bytes: libc::off64_t,
    _flags: libc::c_uint,
) -> libc::c_int {
    loop {
        // SAFETY: `fdatasync` takes any number and answers EBADF when it is no open file; no memory is passed.
        let result = unsafe { libc::fdatasync(file) };
        if result == 0 {
            DURABLE_SYNCS.fetch_add(1, Ordering::SeqCst);
            return 0;
        }
        if std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return result;
        }
    }
}

/// Takes the place of the C library's function of this name, and then syncs the folder that holds the new name. Returns −1
/// and sets `errno` when either fails; in the second case the new name is there, though perhaps not after a power cut.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, and so is what it does before it syncs.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const libc::c_char, to: *const libc::c_char) -> libc::c_int {
    // SAFETY: the caller passes what `rename` asks for, two strings that end with a zero; `renameat` asks for the same.
    let (result, to) = unsafe {
        let result = libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to);
        if result != 0 {
            return result;
        }
        (result, CStr::from_ptr(to))
    };
    let parent = match Path::new(OsStr::from_bytes(to.to_bytes())).parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    match File::open(parent).and_then(|folder| folder.sync_all()) {
        Ok(()) => {
            DURABLE_RENAMES.fetch_add(1, Ordering::SeqCst);
            result
        }
        Err(error) => {
            // SAFETY: the C library answers with the place of this thread's own `errno`.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(libc::EIO) };
            -1
        }
    }
}
