//! Recent blocks: those that this process has written last, in memory. What has just happened
//! is asked for most, and a round trip to the database costs as much as a commit.
//!
//! Only durable blocks are here, which never change.

use std::collections::{BTreeMap, VecDeque};

use crate::{Block, Partition, Sequence, StoredRecord};

/// Largest size of the Records in memory, bytes, of all partitions together. The newest block
/// always stays.
const BYTES_MAX: usize = 16 << 20;

/// The blocks that were written last.
#[derive(Debug, Default)]
pub(super) struct RecentBlocks {
    /// By partition and first Record.
    blocks: BTreeMap<(Partition, Sequence), RecentBlock>,
    /// In the order in which they were written.
    written: VecDeque<(Partition, Sequence)>,
    bytes: usize,
}

/// What is asked of a block.
#[derive(Debug)]
struct RecentBlock {
    booked_at_ms: i64,
    records: Vec<Vec<u8>>,
}

impl RecentBlocks {
    /// Keeps a block that is durable.
    pub(super) fn note(&mut self, block: &Block) {
        let place = (block.partition, block.first);
        let recent = RecentBlock { booked_at_ms: block.booked_at_ms, records: block.records.clone() };
        if self.blocks.insert(place, recent).is_some() {
            return;
        }
        self.written.push_back(place);
        self.bytes += size_of(&block.records);
        while self.bytes > BYTES_MAX && self.written.len() > 1 {
            let oldest = self.written.pop_front().and_then(|place| self.blocks.remove(&place));
            self.bytes -= oldest.map_or(0, |oldest| size_of(&oldest.records));
        }
    }

    /// A Record, if its block is here.
    pub(super) fn record(&self, partition: Partition, sequence: Sequence) -> Option<StoredRecord> {
        let (at, RecentBlock { booked_at_ms, records }) =
            self.blocks.range((partition, Sequence(0))..=(partition, sequence)).next_back()?;
        let bytes = records.get(usize::try_from(sequence.0 - at.1.0).ok()?)?.clone();
        Some(StoredRecord { sequence, booked_at_ms: *booked_at_ms, bytes })
    }
}

fn size_of(records: &[Vec<u8>]) -> usize {
    records.iter().map(Vec::len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockHash;

    fn block(partition: u16, first: u64, records: Vec<Vec<u8>>) -> Block {
        let (booked_at_ms, previous) = (first as i64, BlockHash::ZERO);
        Block { partition: Partition(partition), first: Sequence(first), booked_at_ms, previous, records }
    }

    #[test]
    fn the_last_blocks_are_here_each_with_its_own_records() {
        let mut recent = RecentBlocks::default();
        let found = |recent: &RecentBlocks, partition, sequence| {
            recent.record(Partition(partition), Sequence(sequence)).map(|record| (record.booked_at_ms, record.bytes))
        };
        recent.note(&block(0, 4, vec![vec![4], vec![5]]));
        recent.note(&block(1, 5, vec![vec![15]]));
        recent.note(&block(0, 6, vec![vec![6]]));
        recent.note(&block(0, 6, vec![vec![6]]));
        assert_eq!(found(&recent, 0, 5), Some((4, vec![5])));
        assert_eq!(found(&recent, 0, 6), Some((6, vec![6])));
        assert_eq!(found(&recent, 1, 5), Some((5, vec![15])));
        for (partition, sequence) in [(0, 3), (0, 7), (1, 4), (1, 6), (2, 5)] {
            assert_eq!(found(&recent, partition, sequence), None, "{partition} {sequence}");
        }
        assert_eq!((recent.bytes, recent.written.len()), (4, 3));
        recent.note(&block(0, 7, vec![vec![7; BYTES_MAX - 1]]));
        assert_eq!(found(&recent, 0, 4), None, "the oldest ones leave first");
        assert_eq!(found(&recent, 1, 5), None);
        assert!(found(&recent, 0, 6).is_some() && found(&recent, 0, 7).is_some());
        recent.note(&block(0, 8, vec![vec![8; 2 * BYTES_MAX]]));
        assert_eq!((recent.written.len(), recent.bytes), (1, 2 * BYTES_MAX), "the newest one stays");
    }
}
