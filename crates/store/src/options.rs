//! Settings of the store on one machine: caches, sizes, waits and reserves.

use std::time::Duration;

/// How a [`SledStore`](super::SledStore) is opened.
#[derive(Debug, Clone)]
pub struct SledOptions {
    /// The memory for pages of the journal's current segment, in bytes. Little is read twice there.
    pub journal_cache_bytes: u64,
    /// The memory for pages of the state area, in bytes.
    pub state_cache_bytes: u64,
    /// How long to wait for another process that still has the folder open.
    pub lock_wait: Duration,
    /// Bytes of blocks in one segment of the journal before the next one is begun. A start after a
    /// crash reads all of the last one, which takes up to five seconds a GiB with an empty page
    /// cache.
    pub segment_bytes: u64,
    /// Size that each of the two files of the write-ahead log reaches, in bytes.
    pub wal_bytes: usize,
    /// Bytes that must stay free on the disk: room to finish what was begun, and to open again.
    pub reserve_bytes: u64,
    /// Whether to refuse a journal that ends before its anchor, or has a gap before its write-ahead
    /// log. False only to read what is left of a damaged folder.
    pub checks_end: bool,
    /// Size of the ballast file, in bytes. Deleting the file makes room to open the store on a full
    /// disk.
    pub ballast_bytes: u64,
}

impl Default for SledOptions {
    fn default() -> SledOptions {
        SledOptions {
            journal_cache_bytes: 16 << 20,
            state_cache_bytes: 8 << 20,
            lock_wait: Duration::from_secs(10),
            segment_bytes: 256 << 20,
            wal_bytes: 4 << 20,
            reserve_bytes: 65 << 20,
            checks_end: true,
            ballast_bytes: 0,
        }
    }
}
