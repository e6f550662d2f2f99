//! Durable syncs: makes the syncs and the renames of sled survive a power cut.
//!
//! On Linux sled makes its log "stable" with `sync_file_range`, which writes the file's pages but
//! neither its size nor the disk's own cache. A power cut then loses acknowledged rows, or leaves a
//! folder that does not open. This module defines that symbol for the whole program: every caller
//! of `sync_file_range` gets `fdatasync`, which does both.
//!
//! When sled opens a database, it writes a snapshot and renames it to its final name. Then it
//! zeroes and truncates the segments that only the previous snapshot needed. It never syncs the
//! folder. A power cut can then bring back the old snapshot's name over segments that are durably
//! gone, and the database does not open again. POSIX allows it; ext4 and xfs happen not to do it,
//! since a later sync of another file carries the rename with it. So this module also defines
//! `rename` for the whole program: every caller gets a rename that is durable when it returns.
//!
//! When a read fails while sled opens a database, sled takes the place of the read for the end of
//! its log. It opens without the rest, and zeroes and truncates it, or writes a snapshot without
//! it. One failed read that would have succeeded the next time is then a permanent loss. So this
//! module also defines `pread64`, `pwrite64` and `ftruncate64` for the whole program: a file that
//! could not be read is not written any more, and nothing is renamed beside it, until it is
//! [`trust_again`]. The caller that opens a database asks [`is_distrusted`] when it is open.
//!
//! The definitions shadow the C library's when the program is linked; nothing is patched at run
//! time.
//!
//! The store does not trust that the linker did so. Every call is counted; before the store opens
//! the real database, it writes to a scratch database and renames a file, and it refuses to serve
//! unless every count rose. Where sled does not call `sync_file_range` (outside Linux it calls
//! `fsync`), nothing is replaced and nothing is counted.
//!
//! This is the only file of the product with unsafe code.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use std::{ffi::CStr, ffi::OsStr, fs::File, os::fd::BorrowedFd, os::unix::ffi::OsStrExt, path::Path};
use std::{fs::Metadata, os::unix::fs::MetadataExt};

use parking_lot::Mutex;

/// How many syncs of sled became an `fdatasync` that succeeded, since this process started.
pub fn durable_syncs() -> u64 {
    DURABLE_SYNCS.load(Ordering::SeqCst)
}

/// The most syncs of sled that were under way at one moment, since this process started.
pub fn durable_syncs_at_once_max() -> u64 {
    SYNCING_MAX.load(Ordering::SeqCst)
}

/// The calling thread's slice, nanoseconds: the shortest that Linux gives.
#[cfg(target_os = "linux")]
const SHORT_SLICE_NANOS: u64 = 100_000;

/// Asks for a short slice for the calling thread, at the usual policy and its nice value; true when
/// that was heard. It stands here since no library that we use has the call.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
pub(crate) fn with_short_slice() -> bool {
    let nice = rustix::process::getpriority_process(None).unwrap_or_default();
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_OTHER as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SHORT_SLICE_NANOS,
        sched_deadline: 0,
        sched_period: 0,
    };
    let (thread, flags): (libc::pid_t, libc::c_uint) = (0, 0);
    // SAFETY: the structure lives through the call and contains its own size; 0 is the calling
    // thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(&attributes), flags) == 0 }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn with_short_slice() -> bool {
    false
}

/// How many renames were followed by a sync of the folder that succeeded, since this process
/// started.
pub(super) fn durable_renames() -> u64 {
    DURABLE_RENAMES.load(Ordering::SeqCst)
}

/// How many reads, writes and truncations at a place went through the functions defined here, since
/// this process started.
pub(super) fn guarded_calls() -> u64 {
    GUARDED_CALLS.load(Ordering::SeqCst)
}

/// Whether a read of this file has failed since it was trusted: what was made of it may be wrong.
pub(super) fn is_distrusted(file: &Metadata) -> bool {
    IS_ANY_DISTRUSTED.load(Ordering::SeqCst) && DISTRUSTED.lock().contains(&(file.dev(), file.ino()))
}

/// Lets a file be written again after a failed read; it is read anew from now on.
pub(super) fn trust_again(file: &Metadata) {
    DISTRUSTED.lock().retain(|distrusted| *distrusted != (file.dev(), file.ino()));
}

/// Whether sled goes through the symbols defined here on this system.
pub(super) const REPLACES_SYNC: bool = cfg!(target_os = "linux");

static DURABLE_SYNCS: AtomicU64 = AtomicU64::new(0);
static SYNCING: AtomicU64 = AtomicU64::new(0);
static SYNCING_MAX: AtomicU64 = AtomicU64::new(0);
static DURABLE_RENAMES: AtomicU64 = AtomicU64::new(0);
static GUARDED_CALLS: AtomicU64 = AtomicU64::new(0);
/// Files with a failed read, by their devices and inodes.
static DISTRUSTED: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
/// Whether there was ever one, so that as a rule nobody has to look.
static IS_ANY_DISTRUSTED: AtomicBool = AtomicBool::new(false);

/// Takes the place of the C library's function of this name, and syncs the whole file with its
/// size, through the disk's cache. Returns −1 and leaves `errno` as `fdatasync` set it when that
/// fails.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, so that every
// caller's view of it holds. Its promise is stronger than the original's: the range and the flags
// only ever ask for less than the whole file.
#[unsafe(no_mangle)]
extern "C" fn sync_file_range(
    file: libc::c_int,
    _offset: libc::off64_t,
    _bytes: libc::off64_t,
    _flags: libc::c_uint,
) -> libc::c_int {
    SYNCING_MAX.fetch_max(SYNCING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    let result = loop {
        // SAFETY: `fdatasync` takes any number and answers EBADF when it is no open file; no memory
        // is passed.
        let result = unsafe { libc::fdatasync(file) };
        if result == 0 {
            DURABLE_SYNCS.fetch_add(1, Ordering::SeqCst);
        }
        if result == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            break result;
        }
    };
    SYNCING.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Takes the place of the C library's function of this name; remembers the file if it can't be
/// read.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, and so is what it
// does.
#[unsafe(no_mangle)]
unsafe extern "C" fn pread64(
    file: libc::c_int,
    bytes: *mut libc::c_void,
    length: libc::size_t,
    offset: libc::off64_t,
) -> libc::ssize_t {
    GUARDED_CALLS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller passes what `pread64` asks for; `pread` asks for the same.
    let read = unsafe { libc::pread(file, bytes, length, offset) };
    if read < 0
        && std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted
        && let Some(identity) = identity_of(file)
    {
        let mut distrusted = DISTRUSTED.lock();
        if !distrusted.contains(&identity) {
            distrusted.push(identity);
        }
        IS_ANY_DISTRUSTED.store(true, Ordering::SeqCst);
    }
    read
}

/// Takes the place of the C library's function of this name. Returns −1 and sets `errno` to EIO for
/// a file that is distrusted.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, and so is what it
// does, if it does it.
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    file: libc::c_int,
    bytes: *const libc::c_void,
    length: libc::size_t,
    offset: libc::off64_t,
) -> libc::ssize_t {
    if refuses(file) {
        return -1;
    }
    // SAFETY: the caller passes what `pwrite64` asks for; `pwrite` asks for the same.
    unsafe { libc::pwrite(file, bytes, length, offset) }
}

/// Takes the place of the C library's function of this name. Returns −1 and sets `errno` to EIO for
/// a file that is distrusted.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, and so is what it
// does, if it does it.
#[unsafe(no_mangle)]
extern "C" fn ftruncate64(file: libc::c_int, size: libc::off64_t) -> libc::c_int {
    if refuses(file) {
        return -1;
    }
    // SAFETY: `ftruncate` takes any numbers; no memory is passed.
    unsafe { libc::ftruncate(file, size) }
}

/// Whether the file is distrusted; says so in `errno`.
#[cfg(target_os = "linux")]
fn refuses(file: libc::c_int) -> bool {
    GUARDED_CALLS.fetch_add(1, Ordering::SeqCst);
    let refuses = IS_ANY_DISTRUSTED.load(Ordering::SeqCst)
        && identity_of(file).is_some_and(|identity| DISTRUSTED.lock().contains(&identity));
    if refuses {
        set_errno(libc::EIO);
    }
    refuses
}

/// The device and the inode of an open file. Leaves `errno` as it is.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn identity_of(file: libc::c_int) -> Option<(u64, u64)> {
    if file < 0 {
        return None;
    }
    // SAFETY: it is not −1, and whoever calls with it keeps it open meanwhile; if not, the answer
    // is an error.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    rustix::fs::fstat(file).ok().map(|status| (status.st_dev, status.st_ino))
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn set_errno(number: libc::c_int) {
    // SAFETY: the C library answers with the place of this thread's own `errno`.
    unsafe { *libc::__errno_location() = number };
}

/// Takes the place of the C library's function of this name, and then syncs the folder that holds
/// the new name. Returns −1 and sets `errno` when either fails; in the second case the new name is
/// there, though perhaps not after a power cut. Fails too if a file beside the new name is
/// distrusted.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
// SAFETY: the name and the signature are those of the function that it replaces, and so is what it
// does before it syncs.
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const libc::c_char, to: *const libc::c_char) -> libc::c_int {
    // SAFETY: the caller passes what `rename` asks for, two strings that end with a zero.
    let name = unsafe { CStr::from_ptr(to) };
    let parent = match Path::new(OsStr::from_bytes(name.to_bytes())).parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if holds_distrusted(parent) {
        set_errno(libc::EIO);
        return -1;
    }
    // SAFETY: `renameat` asks for the same strings.
    let result = unsafe { libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to) };
    if result != 0 {
        return result;
    }
    match File::open(parent).and_then(|folder| folder.sync_all()) {
        Ok(()) => {
            DURABLE_RENAMES.fetch_add(1, Ordering::SeqCst);
            result
        }
        Err(error) => {
            set_errno(error.raw_os_error().unwrap_or(libc::EIO));
            -1
        }
    }
}

/// Whether a distrusted file lies in this folder.
#[cfg(target_os = "linux")]
fn holds_distrusted(folder: &Path) -> bool {
    let mut entries =
        IS_ANY_DISTRUSTED.load(Ordering::SeqCst).then(|| folder.read_dir()).into_iter().flatten().flatten();
    entries.any(|entry| entry.is_ok_and(|entry| entry.metadata().is_ok_and(|file| is_distrusted(&file))))
}
