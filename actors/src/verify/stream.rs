//! Pipeline that reads a journal: one thread reads its blocks, others decode them, and the caller
//! takes them in their order.
//!
//! # Memory
//! A batch holds [`BATCH_BYTES`] and at most one block more. For each decoder there are at most
//! twice [`AHEAD`] batches and three more.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use store::{Block, StoreError};

use super::VerifyResult;

/// Batches that may wait in one queue between two threads.
pub(super) const AHEAD: usize = 2;
/// Bytes of Records from which on a batch is passed on.
const BATCH_BYTES: usize = 64 * 1024;
/// Most threads that decode: one thread takes what they give, and is busy with four.
const DECODERS_MAX: usize = 4;

/// The beginning of the names of these threads.
pub const THREADS: &str = "verify";

type Batch<T> = Vec<Result<T, StoreError>>;
/// Blocks with what was made of their Records.
type Decoded<T> = Batch<(Block, Vec<T>)>;

/// Calls `take` with every block and with what `decode` makes of its Records, in the order of the
/// blocks. Ends with the first error of `blocks` or of `take`. A panic of a thread is one of the
/// caller.
pub(super) fn in_order<T: Send>(
    blocks: impl Iterator<Item = Result<Block, StoreError>> + Send,
    decode: impl Fn(&[u8]) -> T + Sync,
    mut take: impl FnMut(Block, Vec<T>) -> VerifyResult<()>,
) -> VerifyResult<()> {
    let decoders = thread::available_parallelism().map_or(1, |cores| cores.get() - 1).clamp(1, DECODERS_MAX);
    thread::scope(|scope| {
        let (mut threads, mut to_decode, mut decoded) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..decoders {
            let ((blocks, read), (done, next)) = (sync_channel(AHEAD), sync_channel(AHEAD));
            let decode = &decode;
            threads.push(start(scope, "decode", move || decode_all(&read, decode, &done)));
            to_decode.push(blocks);
            decoded.push(next);
        }
        threads.push(start(scope, "read", move || read_all(blocks, &to_decode)));
        let taken = take_all(&decoded, &mut take);
        // Whoever still sends ends now.
        drop(decoded);
        threads.into_iter().for_each(joined);
        taken
    })
}

/// Starts a thread of a verification.
pub(super) fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    what: &str,
    run: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    Builder::new().name(format!("{THREADS} {what}")).spawn_scoped(scope, run).expect("a thread can be started")
}

/// What a thread gave; its panic goes on here.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Sends the blocks in batches, to one decoder after the other.
fn read_all(blocks: impl Iterator<Item = Result<Block, StoreError>>, decoders: &[SyncSender<Batch<Block>>]) {
    let (mut batch, mut bytes, mut decoders) = (Vec::new(), 0, decoders.iter().cycle());
    let mut send = |batch| decoders.next().is_some_and(|decoder| decoder.send(batch).is_ok());
    for block in blocks {
        bytes += block.as_ref().map_or(0, |block| block.records.iter().map(Vec::len).sum());
        batch.push(block);
        if bytes >= BATCH_BYTES {
            bytes = 0;
            if !send(std::mem::take(&mut batch)) {
                return;
            }
        }
    }
    send(batch);
}

fn decode_all<T>(read: &Receiver<Batch<Block>>, decode: &impl Fn(&[u8]) -> T, done: &SyncSender<Decoded<T>>) {
    let of_block = |block: Block| {
        let records = block.records.iter().map(|bytes| decode(bytes)).collect();
        (block, records)
    };
    for batch in read {
        if done.send(batch.into_iter().map(|block| block.map(of_block)).collect()).is_err() {
            return;
        }
    }
}

/// Takes from one decoder after the other. The first that gives nothing has no more.
fn take_all<T>(
    decoded: &[Receiver<Decoded<T>>],
    take: &mut impl FnMut(Block, Vec<T>) -> VerifyResult<()>,
) -> VerifyResult<()> {
    for next in decoded.iter().cycle() {
        let Ok(batch) = next.recv() else { break };
        for block in batch {
            let (block, records) = block?;
            take(block, records)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::iter::once;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use store::{BlockHash, Partition, Sequence};

    use super::*;

    /// Blocks of one Record each; every third is larger than a batch.
    fn blocks(count: u64) -> impl Iterator<Item = Result<Block, StoreError>> + Send {
        (1..=count).map(|number| {
            let record = vec![number as u8; if number % 3 == 0 { BATCH_BYTES + 1 } else { 7 }];
            let (partition, first, previous) = (Partition(0), Sequence(number), BlockHash::ZERO);
            Ok(Block { partition, first, booked_at_ms: 0, previous, records: vec![record] })
        })
    }

    #[test]
    fn blocks_come_in_their_order_with_what_was_made_of_them() {
        for count in [0, 1, 2, 3, 4, 200] {
            let mut taken = Vec::new();
            let all = in_order(
                blocks(count),
                |bytes| bytes[0],
                |block, firsts| {
                    taken.push((block.first.0, firsts));
                    Ok(())
                },
            );
            all.unwrap();
            assert_eq!(taken, (1..=count).map(|number| (number, vec![number as u8])).collect::<Vec<_>>());
        }
    }

    /// The blocks before it are taken; threads that have more to give end.
    #[test]
    fn the_first_error_ends_it() {
        let poisoned = || once(Err(StoreError::Poisoned));
        for (fails_at, expected) in [(u64::MAX, 10), (4, 4)] {
            let mut taken = 0;
            let failed = in_order(
                blocks(10).chain(poisoned()).chain(blocks(200)),
                |_| (),
                |block, _| {
                    taken += 1;
                    if block.first.0 == fails_at { Err(StoreError::Poisoned.into()) } else { Ok(()) }
                },
            );
            assert!(failed.is_err());
            assert_eq!(taken, expected);
        }
    }

    #[test]
    fn a_panic_of_a_thread_is_one_of_the_caller() {
        let read = || in_order(blocks(9), |bytes| assert_ne!(bytes[0], 5, "five"), |_, _| Ok(()));
        let panic = catch_unwind(AssertUnwindSafe(read)).unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("five")));
    }
}
