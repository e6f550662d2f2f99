//! Reading of the journal: single Records by their sequence, and all blocks in order.

use std::collections::VecDeque;

use tokio_postgres::Row;

use super::PostgresStore;
use super::commit;
use crate::chunk::{BlockAssembler, Chunk, Fault, Key, RecordAssembler};
use crate::{Block, BlockHash, Head, Partition, Result, Sequence, StoreError, StoredRecord};

/// The chunks that hold a Record: the last one before those whose first byte belongs to it, and all
/// of those.
const CHUNKS_OF_RECORDS: &str = "
    SELECT asked.n, c.key, c.value FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS asked(low, high, n)
    CROSS JOIN LATERAL (
        (SELECT key, value FROM chunk WHERE key < asked.low AND key >= $3 ORDER BY key DESC LIMIT 1)
        UNION ALL (SELECT key, value FROM chunk WHERE key BETWEEN asked.low AND asked.high)) AS c
    ORDER BY asked.n, c.key";

/// The block that holds a Record, and some after it.
const BLOCKS_FROM: &str =
    "SELECT first, next, previous, hash FROM block WHERE partition = $1 AND first > 0 AND first >=
        (SELECT first FROM block WHERE partition = $1 AND first <= $2 ORDER BY first DESC LIMIT 1)
    ORDER BY first LIMIT $3";

const CHUNKS_BETWEEN: &str = "SELECT key, value FROM chunk WHERE key >= $1 AND key < $2 ORDER BY key";

/// Blocks that are read at once. A block has 512 KiB, unless one Record alone is larger.
const BLOCKS_AT_ONCE: i64 = 64;

impl PostgresStore {
    pub(super) fn read_records(
        &self,
        partition: Partition,
        sequences: &[Sequence],
    ) -> Result<Vec<Option<StoredRecord>>> {
        let mut found: Vec<_> = {
            let recent = self.parts.recent.lock();
            sequences.iter().map(|sequence| recent.record(partition, *sequence)).collect()
        };
        let missing = || sequences.iter().zip(&found).enumerate().filter(|(_, (_, found))| found.is_none());
        let (places, lacking): (Vec<usize>, Vec<Sequence>) = missing().map(|(place, (at, _))| (place, *at)).unzip();
        if !lacking.is_empty() {
            let read = self.records_in_database(partition, &lacking)?;
            places.into_iter().zip(read).for_each(|(place, record)| found[place] = record);
        }
        Ok(found)
    }

    fn records_in_database(&self, partition: Partition, sequences: &[Sequence]) -> Result<Vec<Option<StoredRecord>>> {
        let bound = |at, index| Key { partition, at, index }.to_bytes();
        let low: Vec<_> = sequences.iter().map(|at| bound(*at, 0)).collect();
        let high: Vec<_> = sequences.iter().map(|at| bound(*at, u32::MAX)).collect();
        let [low, high] = [&low, &high].map(|keys| keys.iter().map(<[u8; _]>::as_slice).collect::<Vec<_>>());
        let lowest = bound(Sequence(0), 0);
        let rows = self.read(async |link| link.rows(CHUNKS_OF_RECORDS, &[&low, &high, &lowest.as_slice()]).await)?;
        let mut found: Vec<Vec<Row>> = sequences.iter().map(|_| Vec::new()).collect();
        for row in rows {
            let number: i64 = row.get(0);
            found[usize::try_from(number - 1).unwrap_or_default()].push(row);
        }
        let mut head = None;
        let mut records = Vec::with_capacity(sequences.len());
        for (sequence, rows) in sequences.iter().zip(&found) {
            let record = self.assembled(*sequence, rows)?;
            if record.is_none() && *sequence >= Sequence::FIRST {
                let head = match head {
                    Some(head) => head,
                    None => *head.insert(self.read_head(partition)?),
                };
                if *sequence < head.next {
                    // It may have come in between the two reads.
                    records.push(Some(self.record_again(partition, *sequence)?));
                    continue;
                }
            }
            records.push(record);
        }
        Ok(records)
    }

    fn record_again(&self, partition: Partition, sequence: Sequence) -> Result<StoredRecord> {
        let bound = |index| Key { partition, at: sequence, index }.to_bytes();
        let (low, high, lowest) = (bound(0), bound(u32::MAX), Key::of_block(partition, Sequence(0)).to_bytes());
        let (low, high) = (vec![low.as_slice()], vec![high.as_slice()]);
        let rows = self.read(async |link| link.rows(CHUNKS_OF_RECORDS, &[&low, &high, &lowest.as_slice()]).await)?;
        self.assembled(sequence, &rows)?.ok_or_else(|| self.damaged(Some(sequence), Fault::Missing))
    }

    /// The Record, if the chunks hold it.
    fn assembled(&self, sequence: Sequence, rows: &[Row]) -> Result<Option<StoredRecord>> {
        let damaged = |fault| self.damaged(Some(sequence), fault);
        let parse = |row: &Row| Chunk::parse(row.get(1), row.get(2)).map_err(damaged);
        let mut chunks = rows.iter().map(parse).collect::<Result<VecDeque<_>, _>>()?;
        // The first one belongs to an earlier Record; this one starts in it, or right behind it.
        let begins = |chunk: &Chunk| chunk.start.is_some_and(|start| start.record == sequence && start.offset == 0);
        if chunks.get(1).is_some_and(|second| second.key.at == sequence && begins(second)) {
            chunks.pop_front();
        }
        let Some(start) = chunks.pop_front() else { return Ok(None) };
        if start.next_block() <= sequence {
            return Ok(None);
        }
        let mut assembler = RecordAssembler::new(start, sequence).map_err(damaged)?;
        while assembler.record().is_none() {
            assembler.push(chunks.pop_front().ok_or_else(|| damaged(Fault::Missing))?).map_err(damaged)?;
        }
        let bytes = assembler.record().map(<[u8]>::to_vec).ok_or_else(|| damaged(Fault::Missing))?;
        Ok(Some(StoredRecord { sequence, booked_at_ms: assembler.booked_at_ms(), bytes }))
    }

    pub(super) fn read_head(&self, partition: Partition) -> Result<Head> {
        self.read(async |link| commit::head(link, partition).await)
    }

    pub(super) fn damaged(&self, sequence: Option<Sequence>, fault: Fault) -> StoreError {
        fault.at(self.place().as_ref(), sequence)
    }

    /// The row of the block that holds `from`, and rows of some blocks after it.
    fn block_rows(&self, partition: Partition, from: Sequence) -> Result<VecDeque<BlockRow>> {
        let (id, from) = (i32::from(partition.0), from.0 as i64);
        let rows = self.read(async |link| link.rows(BLOCKS_FROM, &[&id, &from, &BLOCKS_AT_ONCE]).await)?;
        let hash = |row: &Row, at| BlockHash(row.get::<_, &[u8]>(at).try_into().unwrap_or_default());
        let of = |row: &Row| BlockRow {
            first: Sequence(row.get::<_, i64>(0) as u64),
            next: Sequence(row.get::<_, i64>(1) as u64),
            previous: hash(row, 2),
            hash: hash(row, 3),
        };
        Ok(rows.iter().map(of).collect())
    }

    fn chunk_rows(&self, partition: Partition, from: Sequence, next: Sequence) -> Result<VecDeque<Row>> {
        let [low, high] = [from, next].map(|at| Key::of_block(partition, at).to_bytes());
        let rows = self.read(async |link| link.rows(CHUNKS_BETWEEN, &[&low.as_slice(), &high.as_slice()]).await)?;
        Ok(rows.into())
    }
}

/// Block metadata, from its row.
#[derive(Debug, Clone, Copy)]
struct BlockRow {
    first: Sequence,
    next: Sequence,
    previous: BlockHash,
    hash: BlockHash,
}

/// Reads and checks one block after the other: its chunks, its row, and its place in the chain.
pub(super) struct Blocks<'a> {
    pub(super) store: &'a PostgresStore,
    pub(super) partition: Partition,
    pub(super) head: Head,
    /// A Record of the next block.
    pub(super) next: Sequence,
    /// The hash of the block before; none before the first.
    pub(super) previous: Option<BlockHash>,
    pub(super) is_over: bool,
    rows: VecDeque<BlockRow>,
    chunks: VecDeque<Row>,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(store: &'a PostgresStore, partition: Partition, from: Sequence, head: Head) -> Self {
        let (rows, chunks) = (VecDeque::new(), VecDeque::new());
        Self { store, partition, head, next: from, previous: None, is_over: false, rows, chunks }
    }

    fn checked(&mut self) -> Result<Block> {
        if self.rows.is_empty() {
            self.rows = self.store.block_rows(self.partition, self.next)?;
            if let (Some(first), Some(last)) = (self.rows.front(), self.rows.back()) {
                self.chunks = self.store.chunk_rows(self.partition, first.first, last.next)?;
            }
        }
        let damaged = |sequence, fault| self.store.damaged(Some(sequence), fault);
        let row = self.rows.pop_front().ok_or_else(|| damaged(self.next, Fault::Missing))?;
        let mut next_chunk = || {
            let chunk = self.chunks.pop_front().ok_or_else(|| damaged(row.first, Fault::Missing))?;
            Chunk::parse(chunk.get(0), chunk.get(1)).map_err(|fault| damaged(row.first, fault))
        };
        let first_chunk = next_chunk()?;
        if first_chunk.key != Key::of_block(self.partition, row.first) {
            return Err(damaged(row.first, Fault::Missing));
        }
        let mut assembler = BlockAssembler::new(first_chunk).map_err(|fault| damaged(row.first, fault))?;
        while !assembler.is_complete() {
            assembler.push(next_chunk()?).map_err(|fault| damaged(row.first, fault))?;
        }
        let (block, hash) = assembler.finish().map_err(|fault| damaged(row.first, fault))?;
        let holds_next = row.first <= self.next && self.next < row.next;
        let is_as_in_row = (block.next(), block.previous, hash) == (row.next, row.previous, row.hash);
        let follows = self.previous.is_none_or(|previous| previous == block.previous);
        let is_first = block.first == Sequence::FIRST;
        let begins = !is_first || block.previous == BlockHash::ZERO;
        let reaches_head = block.next() >= self.head.next;
        let ends = !reaches_head || (block.next(), hash) == (self.head.next, self.head.hash);
        if !(holds_next && is_as_in_row && follows && begins && ends) {
            return Err(damaged(row.first, Fault::Chain));
        }
        self.next = block.next();
        self.previous = Some(hash);
        Ok(block)
    }
}

impl Iterator for Blocks<'_> {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.next >= self.head.next {
            return None;
        }
        let checked = self.checked();
        self.is_over = checked.is_err();
        Some(checked)
    }
}
