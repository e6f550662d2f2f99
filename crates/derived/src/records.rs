//! Single Records of the journal, by their sequence, and a way to read them that does not block
//! other tasks.

use ledger::record::DecodeError;
use ledger::{Record, Timestamp};
use tokio::runtime::{Handle, RuntimeFlavor};

use store::{Part, Sequence, StoreError};

/// What was read of the journal, or why it cannot be read.
pub type Result<T, E = LoadError> = std::result::Result<T, E>;

/// Why a Record of the journal cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A Record is not in the journal, although a later one is.
    #[error("Record {0} is missing from the journal")]
    Missing(u64),
    /// A Record cannot be read.
    #[error("Record {sequence}: {error}")]
    Decode {
        /// Its sequence in the journal.
        sequence: u64,
        /// Why it cannot be decoded.
        error: DecodeError,
    },
    /// A page of a balance file is damaged.
    #[error("a balance file is damaged: nothing is lost, it is made again from the journal; read once more")]
    DamagedBalances,
}

/// Does work that may have to wait for the disk. On a worker of the runtime, another thread becomes
/// the worker meanwhile, so that no other task waits; on any other thread the work is just done.
pub fn may_wait<T>(work: impl FnOnce() -> T) -> T {
    let has_workers = |runtime: &Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    match Handle::try_current() {
        Ok(runtime) if has_workers(&runtime) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// One Record of the journal.
pub fn record(store: &Part, sequence: Sequence) -> Result<Record> {
    booked_record(store, sequence).map(|(_, record)| record)
}

/// Records of the journal that are all there, in the order asked.
pub fn booked_records(store: &Part, sequences: &[Sequence]) -> Result<Vec<(Sequence, Timestamp, Record)>> {
    let stored = may_wait(|| store.records(sequences))?;
    let decoded = sequences.iter().zip(stored).map(|(sequence, stored)| {
        let stored = stored.ok_or(LoadError::Missing(sequence.0))?;
        let record =
            Record::decode(&stored.bytes).map_err(|error| LoadError::Decode { sequence: sequence.0, error })?;
        Ok((*sequence, Timestamp(stored.booked_at_ms), record))
    });
    decoded.collect()
}

/// One Record of the journal, and when it was booked.
pub fn booked_record(store: &Part, sequence: Sequence) -> Result<(Timestamp, Record)> {
    let stored = may_wait(|| store.record(sequence))?.ok_or(LoadError::Missing(sequence.0))?;
    let record = Record::decode(&stored.bytes).map_err(|error| LoadError::Decode { sequence: sequence.0, error })?;
    Ok((Timestamp(stored.booked_at_ms), record))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// A slow disk read does not block other tasks of a one-worker runtime.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_waits_for_the_disk_keeps_no_task_from_running() {
        let (disk, waiting) = channel();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let reading = tokio::spawn(async move {
            may_wait(|| {
                begun.send(()).unwrap();
                waiting.recv_timeout(Duration::from_secs(60)).expect("the other task did not run");
            });
        });
        begins.await.unwrap();
        tokio::spawn(async move { disk.send(()).unwrap() }).await.unwrap();
        reading.await.unwrap();
    }

    #[tokio::test]
    async fn without_workers_it_is_just_done() {
        assert_eq!(may_wait(|| 7), 7);
    }
}
