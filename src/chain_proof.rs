//! Proof of the hash chain: blocks are read from the journal, from one to the head, their hashes
//! are computed again, and each must name the hash of the block before it.
//!
//! A proof goes through the head of its beginning. One is made at a time, with its progress; it
//! claims nothing about blocks before its first one.

use std::sync::Arc;

use actors::cut::Position;
use actors::engine::Engine;
use actors::records::LoadError;
use actors::store::{Block, Sequence};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::http::problem::{Code, Problem};
use crate::http::streamed::{ReadPace, in_turn, turn_in_time};

/// What was proved.
#[derive(Default)]
pub struct ChainProof {
    /// Blocks whose hashes were computed.
    pub blocks: u64,
    /// The first Record that was read, and the last block; none when none was read.
    pub stretch: Option<(Sequence, Block)>,
    /// Why a block is not what it was.
    pub broken: Option<String>,
}

/// A proof that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofProgress {
    /// The Record from which it proves.
    pub from: Position,
    /// Records that are read.
    pub read: u64,
    /// Records that there are to read.
    pub of: u64,
}

/// The proofs of a process: one at a time.
pub struct ChainProofs {
    turn: Arc<Semaphore>,
    under_way: Arc<Mutex<Option<ProofProgress>>>,
    ending: watch::Receiver<bool>,
}

impl ChainProofs {
    /// No proof yet. A proof ends early when `ending` becomes true.
    pub fn new(ending: watch::Receiver<bool>) -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), under_way: Arc::default(), ending }
    }

    /// The proof that is under way.
    pub fn under_way(&self) -> Option<ProofProgress> {
        *self.under_way.lock()
    }

    /// Proves the chain from the block of a Record through its partition's head of this moment. It
    /// waits for the proof that is under way, and leaves commands most of the processor.
    pub async fn prove(&self, engine: &Arc<Engine>, from: Position) -> Result<ChainProof, Problem> {
        let turn = turn_in_time(&self.turn).await;
        let (engine, under_way, ending) = (Arc::clone(engine), Arc::clone(&self.under_way), self.ending.clone());
        let work = move || {
            let mut pace = ReadPace::new(&engine);
            let tell = |progress| {
                *under_way.lock() = Some(progress);
                pace.step();
                !*ending.borrow()
            };
            let proof = proof_of(engine.blocks_of(from), (from, engine.published().of(from.partition)), tell);
            *under_way.lock() = None;
            proof.ok_or_else(|| Problem::new(Code::Overloaded).retry_after(5).detail("The server stops."))
        };
        in_turn(turn, work).await
    }
}

/// Proves blocks until the head is among them, or one of them is broken. None when `goes_on`,
/// which gets the progress, says no.
pub fn proof_of(
    blocks: impl Iterator<Item = Result<Block, LoadError>>,
    (from, head): (Position, Sequence),
    mut goes_on: impl FnMut(ProofProgress) -> bool,
) -> Option<ChainProof> {
    let mut proof = ChainProof::default();
    for block in blocks {
        let block = match block {
            Ok(block) => block,
            Err(error) => {
                proof.broken = Some(error.to_string());
                break;
            }
        };
        let (first, next) = (proof.stretch.as_ref().map_or(block.first, |(first, _)| *first), block.next());
        proof.blocks += 1;
        proof.stretch = Some((first, block));
        if next > head {
            break;
        }
        let first = from.sequence.0;
        let progress = ProofProgress { from, read: next.0.saturating_sub(first), of: head.0.saturating_sub(first) + 1 };
        if !goes_on(progress) {
            return None;
        }
    }
    Some(proof)
}

#[cfg(test)]
mod tests {
    use actors::store::{BlockHash, Partition};

    use super::*;

    const FIRST: Position = Position { partition: Partition(0), sequence: Sequence::FIRST };

    fn block(first: u64) -> Result<Block, LoadError> {
        let (partition, previous) = (Partition(0), BlockHash([7; 32]));
        let records = vec![b"one".to_vec(), b"two".to_vec()];
        Ok(Block { partition, first: Sequence(first), booked_at_ms: 1, previous, records })
    }

    #[test]
    fn a_proof_goes_through_the_head_of_its_beginning_and_tells_how_far_it_is() {
        let mut told = Vec::new();
        let blocks = [1, 3, 5, 7].map(block);
        let proof = proof_of(blocks.into_iter(), (FIRST, Sequence(6)), |progress| {
            told.push((progress.read, progress.of));
            true
        });
        let proof = proof.expect("it goes on");
        assert_eq!((proof.blocks, proof.broken), (3, None));
        assert_eq!(proof.stretch.map(|(first, last)| (first.0, last.next().0)), Some((1, 7)));
        assert_eq!(told, [(2, 6), (4, 6)]);
        let stopped = proof_of([1, 3].map(block).into_iter(), (FIRST, Sequence(4)), |_| false);
        assert!(stopped.is_none(), "the server stops");
        let blocks = [block(1), Err(LoadError::Missing(3)), block(5)];
        let proof = proof_of(blocks.into_iter(), (FIRST, Sequence(6)), |_| true).expect("it goes on");
        assert_eq!((proof.blocks, proof.broken.is_some()), (1, true));
    }
}
