//! Makes the sync of the store below us durable.
//!
//! On Linux sled makes its log "stable" with `sync_file_range`, which writes the file's pages but neither its size nor the
//! disk's own cache: a power cut then loses what was acknowledged, or leaves a folder that does not open. This module
//! defines that symbol for the whole program: whoever calls `sync_file_range` gets `fdatasync`, which does both.
//! The definition shadows the C library's when the program is linked; nothing is patched at run time.
//!
//! Whether the linker did so is not taken on trust. Every call is counted, the store writes to a scratch database before
//! it opens the real one, and it refuses to serve unless the count rose. Where sled does not call `sync_file_range`
//! (outside Linux it calls `fsync`), there is nothing to replace and nothing to count.
//!
//! This is the only file of the project with unsafe code.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many syncs of the store below us became an `fdatasync` that succeeded, since this process started.
pub fn durable_syncs() -> u64 {
    DURABLE_SYNCS.load(Ordering::SeqCst)
}

/// Whether the store below us goes through the symbol defined here on this system.
pub(super) const REPLACES_SYNC: bool = cfg!(target_os = "linux");

static DURABLE_SYNCS: AtomicU64 = AtomicU64::new(0);

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
